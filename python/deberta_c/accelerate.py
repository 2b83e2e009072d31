"""The encoder of a transformers model, run by this library. SPDX-License-Identifier: MIT"""
from __future__ import annotations

import contextlib
import ctypes as c
import gc
from typing import Any, Dict, Iterator, List, Optional, Tuple

from ._abi import MOST_THREADS, PRECISIONS, UnsupportedError, one_of, whole_number


def lending_part() -> Any:
    """Imports the part that needs PyTorch."""
    try:
        import torch  # noqa: F401: fails here even if the module below was imported before
        from . import _lending
    except ImportError as reason:
        raise UnsupportedError(f"accelerate runs models of PyTorch, which is not here ({reason}): pip install torch transformers") from None
    return _lending


def accelerate(model: Any, isa: Optional[str] = None, threads: Optional[int] = None, precision: str = "float32", sessions: int = 1) -> Any:
    """Runs the encoder of a transformers model by this library, for inference on the CPU. Gives back what it was given.

    model: a DebertaModel or DebertaV2Model, or anything that holds one, itself, in .model or in an attribute: a model with a head, a
    pipeline, a CrossEncoder, a GLiNER model, a class of another library around these. Outputs are as before (last_hidden_state, hidden_states, attentions); rows of padding are zero. Texts of unequal lengths
    are computed without their padding. Weights are handed over in memory and then held once, by the library, until restore(model).
    float16 and bfloat16 weights are computed with in float32. precision: "int16" or "int8" for linear layers of integers
    (docs/precision.md); what these were made of is then kept as well. sessions: how many calls of different threads are computed at the
    same time, each by its own `threads`; further ones wait. Calls of PyTorch that are under way in other threads are waited for.

    Refused with a sentence: whatever is not as transformers builds it from the model's config (adapters, hooks, other classes, constants
    or methods), training, gradients, inputs_embeds, masks of other values than 0 and 1, a change of dtype or device, weights that are
    loaded into it, tracing.
    """
    one_of("precision", precision, *PRECISIONS)
    asked = {"isa": isa, "threads": threads, "precision": precision, "sessions": whole_number("sessions", sessions, MOST_THREADS, least=1)}
    lending = lending_part()
    found = lending.bases(model)
    for base in found:
        if hasattr(base.encoder, "accelerated"):
            base.encoder.accelerated.check_options(**asked)
        else:
            lending.check(model, base)
    _take_over(lending, [(base, asked) for base in found if not hasattr(base.encoder, "accelerated")])
    for base in found:  # also bases that were accelerated before, as a part of something smaller
        lending.guard(model, base.encoder.accelerated)
    return model


def _take_over(lending: Any, wanted: List[Tuple[Any, Dict[str, Any]]]) -> None:
    """Accelerates bases, each with its options: all of them, or none where one fails."""
    made: List[Any] = []
    try:
        for base, options in wanted:
            made.append(lending.Accelerated(base, **options))
            made[-1].take_over()
    except BaseException:
        for one in made:
            one.undo()
        raise
    gc.collect()
    trim = getattr(c.CDLL(None), "malloc_trim", None)  # weights return to the system: glibc keeps freed blocks below its threshold
    if made and trim:
        trim(0)


@contextlib.contextmanager
def in_pytorch(lending: Any, bases: List[Any]) -> Iterator[None]:
    """Within a block the bases run in PyTorch. Those that were accelerated are so again behind it, with the same options and for the same
    holders, also where the block raises."""
    before = [base.encoder.accelerated for base in bases if hasattr(base.encoder, "accelerated")]
    for one in before:
        one.check_unwrapped()
    try:
        for one in before:
            one.undo()
        yield
    finally:
        again = [one for one in before if not hasattr(one.base.encoder, "accelerated")]  # all, unless undoing was interrupted
        _take_over(lending, [(one.base, one.options) for one in again])
        for one in again:
            one.base.encoder.accelerated.succeed(one)


def restore(model: Any) -> Any:
    """Undoes accelerate(model): restores PyTorch's encoder, with the same bits in its weights. Returns the model."""
    for base in lending_part().bases(model):
        if hasattr(base.encoder, "accelerated"):
            base.encoder.accelerated.undo()
    return model
