"""Calls of PyTorch that are under way in other threads, for which accelerate waits. SPDX-License-Identifier: MIT

They began before anything here could count them, so they are looked for on the stacks of their threads, by the code that runs. Local
variables of another thread are not read: before Python 3.13 that copies all of them and lets go what was copied before, tensors among
them, whose end gives other threads the turn; the frame that is being copied may then be gone, and the process with it."""
from __future__ import annotations

import contextlib
import gc
import linecache
import sys
import threading
import time
from typing import Any, Dict, Iterator, List, Set

import torch

from ._abi import UnsupportedError

PATIENCE_S = 60
_REGISTERED: Dict[object, Any] = {}  # bases whose PyTorch is called from the library's forward, because they were restored while the call waited


@contextlib.contextmanager
def registered(base: Any) -> Iterator[None]:
    call = object()
    _REGISTERED[call] = base
    try:
        yield
    finally:
        del _REGISTERED[call]


def wait(base: Any, encoder: Any, forward: Any) -> None:
    """Waits for the calls of the base in PyTorch, whose weights are about to go: they would multiply by what is put in their place.

    New calls are in `forward`, the library's, already, so that what is found at once is all there is. The code is that of every model of
    these classes: calls of another one that are found are waited for as well, and those that it begins later are not."""
    until, found = time.monotonic() + PATIENCE_S, _frames(_codes(base, encoder), forward.__code__)
    while _still_there(found) or any(one is base for one in list(_REGISTERED.values())):
        if time.monotonic() > until:
            raise UnsupportedError(f"a call of a {type(base).__name__}, this one or another, has been under way in another thread for {PATIENCE_S} s: "
                                   "accelerate the model before it is first called")
        time.sleep(1e-3)


def _codes(base: Any, encoder: Any) -> Set[Any]:
    """Returns the code of the forward methods of the base and of whatever is inside the encoder, and of what is wrapped around them."""
    codes, methods = set(), {type(one).forward for one in (base, *encoder.modules())}
    while methods:
        codes |= {method.__code__ for method in methods if hasattr(method, "__code__")}
        methods = {method.__wrapped__ for method in methods if hasattr(method, "__wrapped__")}
    return codes


def _nested(code: Any) -> Set[Any]:
    return {code, *(one for one in code.co_consts if isinstance(one, type(code)) and one.co_name == "inner")}


# What calls the forward of a module. A thread that is here, or in a hook that was called from here, may have read the base's forward before
# it became the library's.
_CALLERS = {code for name in ("_wrapped_call_impl", "_call_impl") if name in vars(torch.nn.Module) for code in _nested(vars(torch.nn.Module)[name].__code__)}


def _is_about_to_call(frames: List[Any], place: int) -> bool:
    """Returns true for a caller that is the innermost frame, or has called something else than a forward: a hook."""
    frame = frames[place]
    if frame.f_code not in _CALLERS or (place and frames[place - 1].f_code in _CALLERS):
        return False
    return place == 0 or "forward_call(" not in linecache.getline(frame.f_code.co_filename, frame.f_lineno)


def _frames(codes: Set[Any], forward: Any) -> List[Any]:
    """Returns the frames of other threads that run one of the codes, or are about to; none that `forward` was called from."""
    found = []
    for frames in _stacks():
        for place, frame in enumerate(frames):
            if frame.f_code is forward:
                break
            if frame.f_code in codes or _is_about_to_call(frames, place):
                found.append(frame)
    return found


def _still_there(found: List[Any]) -> bool:
    """Forgets frames that have come to their end. Returns true if one has not."""
    there = {id(frame) for frames in _stacks() for frame in frames}
    found[:] = [frame for frame in found if id(frame) in there]
    return bool(found)


def _stacks() -> List[List[Any]]:
    """Returns the frames of all other threads, each from the innermost to the outermost. The garbage collector rests meanwhile: it can run
    while a frame is made visible, and give other threads the turn, to which that frame belongs."""
    stacks, resting = [], gc.isenabled()
    gc.disable()
    try:
        for thread, frame in sys._current_frames().items():
            frames: List[Any] = []
            while thread != threading.get_ident() and frame:
                frames.append(frame)
                frame = frame.f_back  # type: ignore[assignment]
            stacks.append(frames)
    finally:
        if resting:
            gc.enable()
    return stacks
