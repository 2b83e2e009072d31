"""DeBERTa v1, v2 and v3 encoders on the CPU, and what happens inside them.

    import deberta_c
    m = deberta_c.Model("models/demo")
    states = m.encode("a new store", components="all")
    pipe = deberta_c.accelerate(transformers.pipeline("zero-shot-classification", model=...))

SPDX-License-Identifier: MIT
"""
from ._abi import ArgumentError, Error, FileError, FormatError, NoteWarning, OutOfMemoryError, SystemRefusedError, UnsupportedError, library as _library
from ._attribution import Attribution
from ._model import Model, Tokens
from ._program import Figure, attention_figure, bench
from .accelerate import accelerate, restore
from .batches import Encoder
from .comparison import Comparison, compare

__version__: str = _library.version().decode()
__all__ = ["Model", "Encoder", "Tokens", "Figure", "Comparison", "Attribution", "accelerate", "restore", "compare", "attention_figure", "bench", "Error", "ArgumentError", "FileError",
           "FormatError", "NoteWarning", "OutOfMemoryError", "SystemRefusedError", "UnsupportedError"]
