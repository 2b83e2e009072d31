"""include/deberta.h as ctypes has it: structs, functions, errors. SPDX-License-Identifier: MIT"""
from __future__ import annotations

import ctypes as c
import os
import threading
from pathlib import Path
from typing import Any, Optional

from ._errors import ERRORS, Error

HERE = Path(__file__).resolve().parent
SIZE, POINTER = c.c_size_t, c.c_void_p
EVERY = SIZE(-1).value
COMPONENTS = ("c2c", "c2p", "p2c", "logits", "probs")
TASKS = ("mlm", "mlm_emd", "rtd", "sequence", "token", "qa")
SPECIALS = ("cls", "sep", "unk", "pad", "mask")
TASK_MLM, TASK_EMD, TASK_RTD, TASK_SEQUENCE, TASK_TOKEN, TASK_QA = range(6)
OBSERVE_HIDDEN, OBSERVE_ATTENTION, KEEP_DECODER_INPUT = 1, 2, 4
FRAME = 2  # DEBERTA_TOKEN_FRAME


def _struct(name: str, *fields: tuple) -> Any:
    return type(name, (c.Structure,), {"_fields_": list(fields)})


class Failure(c.Structure):
    _fields_ = [("code", c.c_int), ("message", c.c_char * 504)]


ModelOptions = _struct("ModelOptions", ("struct_size", SIZE), ("reference", c.c_int), ("threads", SIZE), ("memory_limit_bytes", SIZE),
                       ("layers", SIZE), ("describe_only", c.c_int), ("precision", c.c_int))
Tensor = _struct("Tensor", ("name", c.c_char_p), ("values", POINTER), ("dtype", c.c_int), ("rank", SIZE), ("shape", c.POINTER(SIZE)),
                 ("strides", c.POINTER(SIZE)))
Info = _struct("Info", ("name", c.c_char_p), ("version", c.c_int), *((n, SIZE) for n in (
    "vocabulary_size", "hidden_size", "intermediate_size", "layers", "heads", "head_size", "embedding_size", "max_positions",
    "max_relative_positions", "position_buckets", "relative_rows")), ("has_c2p", c.c_int), ("has_p2c", c.c_int),
    ("position_biased_input", c.c_int), ("has_position_table", c.c_int), ("token_types", SIZE), ("convolution_width", SIZE),
    ("tasks_present", c.c_uint), ("sequence_labels", SIZE), ("token_labels", SIZE), ("parameters", SIZE), ("memory_bytes", SIZE),
    ("packed", c.c_int), ("precision", c.c_int))
PRECISIONS = ("float32", "int16", "int8")
Ablation = _struct("Ablation", ("term", c.c_int), ("layer", SIZE), ("head", SIZE), ("kind", c.c_int))
SessionOptions = _struct("SessionOptions", ("struct_size", SIZE), ("isa", c.c_int), ("max_tokens", SIZE), ("threads", SIZE),
                         ("features", c.c_uint), ("memory_limit_bytes", SIZE), ("pin_threads", c.c_int),
                         ("ablations", c.POINTER(Ablation)), ("ablation_count", SIZE), ("shared_threads", POINTER))
HiddenBlock = _struct("HiddenBlock", *((n, SIZE) for n in ("layer", "tokens", "columns", "stride")), ("values", POINTER))
AttentionBlock = _struct("AttentionBlock", *((n, SIZE) for n in ("layer", "sequence", "head", "first_query", "rows", "keys", "stride")),
                         ("component", c.c_int), ("values", POINTER))
ON_HIDDEN = c.CFUNCTYPE(c.c_int, POINTER, c.POINTER(HiddenBlock))
WANTS = c.CFUNCTYPE(c.c_int, POINTER, SIZE, SIZE, c.c_int)
ON_ATTENTION = c.CFUNCTYPE(c.c_int, POINTER, c.POINTER(AttentionBlock))
Observer = _struct("Observer", ("struct_size", SIZE), ("context", POINTER), ("on_hidden", ON_HIDDEN), ("wants_attention", WANTS),
                   ("on_attention", ON_ATTENTION))
Batch = _struct("Batch", ("struct_size", SIZE), ("ids", POINTER), ("sequence_starts", POINTER), ("sequences", SIZE),
                ("token_types", POINTER), ("position_ids", POINTER), ("mask", POINTER), ("observer", c.POINTER(Observer)))
Outputs = _struct("Outputs", ("struct_size", SIZE), ("hidden", POINTER), ("hidden_stride", SIZE))
Text = _struct("Text", ("struct_size", SIZE), ("text", c.c_char_p), ("text_bytes", SIZE), ("pair", c.c_char_p), ("pair_bytes", SIZE),
               ("max_tokens", SIZE), ("strict", c.c_int), ("literal_specials", c.c_int))
Span = _struct("Span", ("begin", SIZE), ("end", SIZE))
Tokens = _struct("Tokens", ("count", SIZE), ("ids", POINTER), ("token_types", POINTER), ("byte_spans", POINTER),
                 ("character_spans", POINTER), ("dropped", SIZE), ("replaced", SIZE), ("first_replaced_segment", SIZE),
                 ("first_replaced_byte", SIZE), ("segments", SIZE), ("roles", POINTER))
Place = _struct("Place", ("bytes", Span), ("characters", Span))
Entity = _struct("Entity", ("place", Place), ("type", c.c_char_p), ("label", SIZE), ("units", SIZE), ("probability", c.c_double))
Answer = _struct("Answer", ("first_token", SIZE), ("last_token", SIZE), ("place", Place), ("probability", c.c_double))

TOKENS = c.POINTER(Tokens)
# What returns no status: its result. What does: None; it has a place for the error at its end, which call() adds.
_FUNCTIONS: "dict[str, tuple]" = {
    "version": (c.c_char_p,), "free": ("void", POINTER), "isa_name": (c.c_char_p, c.c_int),
    "isa_from_name": (None, c.POINTER(c.c_int), c.c_char_p), "isa_missing": (c.c_char_p, c.c_int),
    "model_open": (None, c.POINTER(POINTER), c.c_char_p, c.POINTER(ModelOptions)),
    "model_open_memory": (None, c.POINTER(POINTER), c.c_char_p, c.c_char_p, c.POINTER(Tensor), SIZE, c.POINTER(ModelOptions)),
    "model_free": ("void", c.POINTER(POINTER)), "model_describe": (c.POINTER(Info), POINTER), "model_label": (c.c_char_p, POINTER, SIZE),
    "model_digest": (None, POINTER, c.c_char_p), "model_read_weight": (None, POINTER, c.c_char_p, POINTER, SIZE),
    "session_create": (None, c.POINTER(POINTER), POINTER, c.POINTER(SessionOptions)), "session_free": ("void", c.POINTER(POINTER)),
    "session_isa": (c.c_int, POINTER), "session_threads": (SIZE, POINTER), "session_memory_bytes": (SIZE, POINTER),
    "encode": (None, POINTER, c.POINTER(Batch), c.POINTER(Outputs)),
    "task_width": (SIZE, POINTER, c.c_int), "task_logits": (None, POINTER, c.c_int, POINTER, SIZE, POINTER, SIZE),
    "tokenizer_open": (None, c.POINTER(POINTER), c.c_char_p), "tokenizer_free": ("void", c.POINTER(POINTER)),
    "tokenizer_special_id": (c.c_int32, POINTER, c.c_int), "tokenizer_token": (POINTER, POINTER, c.c_int32, c.POINTER(SIZE)),
    "tokenize": (None, c.POINTER(TOKENS), POINTER, c.POINTER(Text)), "tokens_free": ("void", c.POINTER(TOKENS)),
    "tokens_text": (POINTER, TOKENS, SIZE, c.POINTER(SIZE)),
    "detokenize": (None, c.POINTER(POINTER), c.POINTER(SIZE), POINTER, POINTER, SIZE),
    "softmax": ("void", POINTER, POINTER, SIZE), "sigmoid": (c.c_double, c.c_double),
    "rank": (SIZE, POINTER, SIZE, POINTER, SIZE), "token_place": (Place, TOKENS, SIZE, c.c_char_p),
    "entities": (None, c.POINTER(Entity), c.POINTER(SIZE), POINTER, TOKENS, c.c_char_p, SIZE, POINTER, c.c_int),
    "context_tokens": (SIZE, TOKENS),
    "answers": (None, c.POINTER(Answer), c.POINTER(SIZE), c.POINTER(c.c_double), TOKENS, c.c_char_p, POINTER, SIZE),
}


def _open_library() -> c.CDLL:
    name = os.environ.get("DEBERTA_LIBRARY") or str(HERE / "libdeberta.so.0")
    try:
        library = c.CDLL(name)
    except OSError as reason:
        raise ImportError(f"{name}: the library of this package cannot be loaded ({reason}); was it installed with pip?") from None
    for short, (result, *arguments) in _FUNCTIONS.items():
        function = getattr(library, "deberta_" + short)
        function.restype = {None: c.c_int, "void": None}.get(result, result)
        function.argtypes = arguments if result is not None else [*arguments, c.POINTER(Failure)]
    return library


library = _open_library()
_CALLS = {short: getattr(library, "deberta_" + short) for short in _FUNCTIONS}
_local = threading.local()


def call(name: str, *arguments: Any) -> None:
    """A function that returns a status; anything but success is an exception with the library's sentence."""
    failure = getattr(_local, "failure", None) or _local.__dict__.setdefault("failure", Failure())
    if _CALLS[name](*arguments, failure):
        raise ERRORS.get(failure.code, Error)(failure.message.decode("utf-8", "replace"))


def ask(name: str, *arguments: Any) -> Any:
    """A function that cannot fail."""
    return _CALLS[name](*arguments)


def sized(kind: Any, **members: Any) -> Any:
    return kind(struct_size=c.sizeof(kind), **members)


def text_of(address: Optional[int], size: SIZE) -> Optional[str]:
    return None if address is None else c.string_at(address, size.value).decode("utf-8", "replace")


class Owned:
    """What the library made and frees. A child of fork has neither its threads nor the right to free it."""

    def __init__(self, free: str, *needed: Any, kind: Any = POINTER) -> None:
        self.handle, self.pid, self._free, self._needed = kind(), os.getpid(), free, needed

    def close(self) -> None:
        if self.handle and self.pid == os.getpid():
            _CALLS[self._free](self.handle)
        self.handle, self._needed = type(self.handle)(), ()

    def __del__(self, getpid: Any = os.getpid) -> None:
        if self.handle and self.pid == getpid():
            self.close()
