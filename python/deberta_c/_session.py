"""Weights, and a session that encodes batches and shows what happens inside. SPDX-License-Identifier: MIT"""
from __future__ import annotations

import contextlib
import ctypes as c
import os
import re
import signal
import threading
from typing import Any, Dict, Iterable, Iterator, List, Mapping, Optional, Sequence, Tuple

import numpy as np

from . import _abi as abi
from ._abi import library
from ._errors import ArgumentError, Error, whole_number
from ._inputs import SIZE, Batch, address, view

WATCHED_WORK = 4096  # tokens times layers from which on an encode is worth interrupting
_ABLATION = re.compile(r"(c2c|c2p|p2c)(?:=(zero|mean))?@(all|\d+)(?::(all|\d+))?")
Ablations = List[Tuple[int, int, int, int]]
Matrices = Mapping[Tuple[int, int], Sequence[int]]  # {(layer, component): heads}


def number_of_threads(threads: Optional[int]) -> int:
    return whole_number("threads", threads, abi.MOST_THREADS)


def parse_ablations(text: str) -> Ablations:
    """"c2p@3:5,p2c=mean@all" as term, layer, head and kind."""
    found: Ablations = []
    for item in str(text).split(","):
        parts = _ABLATION.fullmatch(item.strip())
        if not parts:
            raise ArgumentError("expected term[=zero|=mean]@layer[:head] with term c2c, c2p or p2c, layer and head a number or all; "
                                f"found '{item}'")
        term, kind, *places = parts.groups()
        layer, head = (abi.EVERY if place in (None, "all") else int(place) for place in places)
        found.append((abi.COMPONENTS.index(term), layer, head, int(kind == "mean")))
    return found


@contextlib.contextmanager
def _interrupts(noted: List[BaseException]) -> Iterator[None]:
    """Notes SIGINT instead of raising at once: an exception inside a callback would be lost. The observer then stops the encode, and
    the handler that was there is called behind it. Only the main thread receives signals; elsewhere this does nothing."""
    before: Any = signal.getsignal(signal.SIGINT)
    here = callable(before) and threading.current_thread() is threading.main_thread()
    if here:
        signal.signal(signal.SIGINT, lambda *_: noted.append(KeyboardInterrupt()))
    try:
        yield
    finally:
        if here:
            signal.signal(signal.SIGINT, before)
            if any(isinstance(one, KeyboardInterrupt) for one in noted):
                before(signal.SIGINT, None)


class Capture:
    """What is kept of a batch while its parts are encoded: rows of hidden states, matrices of attention of each text."""

    def __init__(self, batch: Batch, session: "Session", layers: Iterable[int], matrices: Matrices) -> None:
        self.first = self.begin = 0  # of the part that is encoded: its first text, its first token
        self.hidden = {layer: np.empty((len(batch.ids), session.hidden_size), np.float32) for layer in layers}
        self.observes = bool(matrices) or any(layer < session.layers for layer in self.hidden)  # the last is there when all is done
        self.heads, lengths = matrices, np.diff(batch.starts).tolist()
        self.equal = len(set(lengths)) == 1  # the matrices of all texts are one array then
        self.attention: Dict[Tuple[int, int], Any] = {
            place: np.zeros((len(lengths), len(heads), lengths[0], lengths[0]), np.float32) if self.equal
            else [np.zeros((len(heads), n, n), np.float32) for n in lengths] for place, heads in matrices.items()}

    def on_hidden(self, block: Any) -> None:
        if block.layer in self.hidden:
            rows = view(block.values, (block.tokens, block.columns), strides=(4 * block.stride, 4))
            self.hidden[block.layer][self.begin:self.begin + block.tokens] = rows

    def wants(self, _context: Any, layer: int, head: int, component: int) -> int:
        return head in self.heads.get((layer, component), ())

    def on_attention(self, block: Any) -> None:
        place = block.layer, block.component
        matrix = self.attention[place][self.first + block.sequence][self.heads[place].index(block.head)]
        rows = view(block.values, (block.rows, block.keys), strides=(4 * block.stride, 4))
        matrix[block.first_query:block.first_query + block.rows] = rows


class Session:
    """One caller's workspace, made anew when a batch needs more tokens or other features than it has."""

    def __init__(self, weights: abi.Owned, isa: Optional[str], threads: Optional[int]) -> None:
        self.weights, self._threads, self._lock = weights, number_of_threads(threads), threading.Lock()
        self._session = abi.Owned(library.session_free)
        self._capacity, self._features = 0, abi.OBSERVE_HIDDEN
        self.ablations: Ablations = []
        self._isa = c.c_int(0)
        if isa is not None:
            library.isa_from_name(self._isa, str(isa).encode())
        info = library.model_describe(weights.handle).contents
        self.layers, self.heads, self.hidden_size = info.layers, info.heads, info.hidden_size
        self._batch, self._outputs = abi.sized(abi.Batch), abi.sized(abi.Outputs)

    def check_open(self) -> None:
        if self.weights.pid != os.getpid():
            raise ArgumentError("the model was opened before a fork: its threads are in the other process; open it again in this one")
        if not self.weights.handle:
            raise ArgumentError("the model is closed")

    @contextlib.contextmanager
    def working(self) -> Iterator[None]:
        """One call at a time: what the session holds belongs to the call that filled it."""
        self.check_open()
        if not self._lock.acquire(blocking=False):
            raise ArgumentError("the session is at work: it serves one call at a time; make another one for each thread with share()")
        try:
            yield
        finally:
            self._lock.release()

    def close(self) -> None:
        self._session.close()
        self._capacity = 0

    def prepare(self, tokens: int = 1, features: int = 0) -> Any:
        """The library's session, large enough."""
        if self._session.handle and tokens <= self._capacity and not features & ~self._features:
            return self._session.handle
        capacity = max(512, self._capacity, 1 << max(tokens - 1, 0).bit_length())
        self.close()
        self._features |= features
        ablations = (abi.Ablation * len(self.ablations))(*self.ablations)
        options = abi.sized(abi.SessionOptions, isa=self._isa, max_tokens=capacity, threads=self._threads, features=self._features,
                            ablations=c.addressof(ablations), ablation_count=len(ablations))
        session = abi.Owned(library.session_free, self.weights)
        library.session_create(session.handle, self.weights.handle, options)
        self._session, self._capacity = session, capacity
        return session.handle

    def encode(self, batch: Batch, features: int = 0, capture: Optional[Capture] = None) -> np.ndarray:
        """H[L] [tokens, h] in the session's memory, valid until its next encode."""
        tokens, given = len(batch.ids), self._batch
        handle = self.prepare(tokens, features | (abi.OBSERVE_ATTENTION if capture and capture.attention else 0))
        given.ids, given.sequence_starts, given.sequences = address(batch.ids), address(batch.starts), len(batch.starts) - 1
        given.token_types, given.mask = address(batch.token_types), address(batch.mask)
        given.position_ids = address(batch.position_ids)
        if (capture and capture.observes) or tokens * self.layers >= WATCHED_WORK:
            self._watched(handle, capture)
        else:
            library.encode(handle, given, self._outputs)
        return view(self._outputs.hidden, (tokens, self.hidden_size), strides=(4 * self._outputs.hidden_stride, 4))

    def _watched(self, handle: Any, capture: Optional[Capture]) -> None:
        """With an observer, which keeps what is wanted and stops the encode when it is interrupted."""
        failures: List[BaseException] = []

        def guarded(keep: Any) -> Any:
            def observe(_context: Any, block: Any) -> int:
                try:
                    if keep and not failures:
                        keep(block.contents)
                except BaseException as failure:  # noqa: BLE001: nothing may leave a callback
                    failures.append(failure)
                return int(bool(failures))
            return observe

        observer = abi.sized(abi.Observer, on_hidden=abi.ON_HIDDEN(guarded(capture and capture.on_hidden)))
        if capture and capture.attention:
            observer.wants_attention = abi.WANTS(capture.wants)
            observer.on_attention = abi.ON_ATTENTION(guarded(capture.on_attention))
        self._batch.observer = c.addressof(observer)
        try:
            with _interrupts(failures):
                library.encode(handle, self._batch, self._outputs)
        except Error:
            if failures:
                raise failures[0] from None
            raise
        finally:
            self._batch.observer = None

    def parts(self, batch: Batch, most_tokens: int, features: int = 0, capture: Optional[Capture] = None) -> Iterator[Tuple[int, int, Batch]]:
        """Encodes a batch in parts; gives each, with the numbers of its first text and token, while the session holds it."""
        for first, part in batch.parts(most_tokens):
            begin = int(batch.starts[first])
            if capture:
                capture.first, capture.begin = first, begin
            last = self.encode(part, features, capture)
            if capture and self.layers in capture.hidden:
                capture.hidden[self.layers][begin:begin + len(last)] = last
            yield first, begin, part

    def logits(self, task: int, positions: np.ndarray, found: Optional[np.ndarray] = None) -> np.ndarray:
        """[positions, labels] of what was encoded last. The head's name and what it lacks are the library's to say."""
        width, places = library.task_width(self.weights.handle, task), np.ascontiguousarray(positions, SIZE)
        found = np.empty((len(places), width), np.float32) if found is None else found
        library.task_logits(self._session.handle, task, address(places), len(places), address(found), width)
        return found
