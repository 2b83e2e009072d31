"""Holds weights, and sessions that encode batches and capture hidden states and attention. SPDX-License-Identifier: MIT"""
from __future__ import annotations

import collections.abc
import contextlib
import ctypes as c
import os
import signal
import threading
from typing import Any, Dict, Iterable, Iterator, List, Mapping, Optional, Sequence, Tuple

import numpy as np

from . import _abi as abi
from ._abi import ArgumentError, Error, library, terminated
from ._inputs import SIZE, Batch, address, view

WATCHED_WORK = 4096  # tokens times layers from which an encode is interruptible
Matrices = Mapping[Tuple[int, int], Sequence[int]]  # {(layer, component): heads}


def parse_ablations(terms: str) -> List[Any]:
    """Parses "c2p@3:5,p2c=mean@all" into structs."""
    found, count = (abi.Ablation * (terms.count(",") + 1))(), abi.SIZE()
    library.ablations_parse(found, count, terminated("terms", terms))
    return list(found)


def check_not_closed(weights: abi.Owned) -> None:
    if not weights.handle:
        raise ArgumentError("the model is closed: open it again, Model(path)")


def check_process(weights: abi.Owned) -> None:
    if weights.pid != os.getpid():
        raise ArgumentError("the model was opened before a fork: its threads are in the other process; open it again in this one")


def check_open(weights: abi.Owned) -> None:
    check_process(weights)
    check_not_closed(weights)


class Capture:
    """Keeps results of a batch while its parts are encoded: rows of hidden states, matrices of attention for each text."""

    def __init__(self, batch: Batch, session: "Session", layers: Iterable[int], matrices: Matrices) -> None:
        self.first = self.begin = 0  # first text and first token of the part that is being encoded
        self.hidden = {layer: np.empty((len(batch.ids), session.hidden_size), np.float32) for layer in layers}
        self.observes = bool(matrices) or any(layer < session.layers for layer in self.hidden)  # the last layer is available at the end anyway
        self.heads, lengths = matrices, np.diff(batch.starts).tolist()
        self.equal = len(set(lengths)) == 1  # the matrices of all texts then form one array
        self.attention: Dict[Tuple[int, int], Any] = {
            place: np.zeros((len(lengths), len(heads), lengths[0], lengths[0]), np.float32) if self.equal
            else [np.zeros((len(heads), n, n), np.float32) for n in lengths] for place, heads in matrices.items()}

    def on_hidden(self, block: Any) -> None:
        if block.layer in self.hidden:
            rows = slice(self.begin, self.begin + block.tokens)
            self.hidden[block.layer][rows] = view(block.values, (block.tokens, block.columns), stride=block.stride)

    def wants(self, _context: Any, layer: int, head: int, component: int) -> int:
        return head in self.heads.get((layer, component), ())

    def on_attention(self, block: Any) -> None:
        place = block.layer, block.component
        matrices, heads = self.attention[place][self.first + block.sequence], self.heads[place]
        rows = slice(block.first_query, block.first_query + block.rows)
        first = heads.index(block.head)
        matrices[first, rows] = view(block.values, (block.rows, block.keys), stride=block.stride)
        for again in range(first + 1, len(heads)):  # a head that was asked for more than once
            if heads[again] == block.head:
                matrices[again, rows] = matrices[first, rows]


class Changes:
    """Changes inside an encode: functions of hidden states by layer, numbers for c2p by row of the relative table."""

    def __init__(self, edit: Any, row_bias: Any, info: Any) -> None:
        if edit is not None and not isinstance(edit, collections.abc.Mapping):
            raise ArgumentError(f"edit: expected functions by layers from 0 to {info.layers}, such as {{2: function}}, found {type(edit).__name__}")
        self.functions = dict(edit or {})
        for layer, function in self.functions.items():
            if not isinstance(layer, (int, np.integer)) or isinstance(layer, bool) or not 0 <= layer <= info.layers or not callable(function):
                raise ArgumentError(f"edit: expected functions by layers from 0 to {info.layers}, found {layer!r}: {type(function).__name__}")
        self._bias: Optional[np.ndarray] = None
        if row_bias is not None:
            shape = info.layers, info.heads, info.relative_rows
            self._bias = np.ascontiguousarray(_numbers("row_bias", row_bias, shape), np.float32)

    def struct(self, guarded: Any, starts: np.ndarray) -> Any:
        """Returns the library's struct. guarded: makes a callback that reports exceptions."""
        edits = abi.EDIT_HIDDEN(guarded(lambda block: self._edit(block, starts))) if self.functions else abi.EDIT_HIDDEN()
        return abi.Interventions(edit_hidden=edits, row_bias=address(self._bias))

    def _edit(self, block: Any, starts: np.ndarray) -> None:
        function = self.functions.get(block.layer)
        if function is None:
            return
        rows = view(block.values, (block.tokens, block.columns), stride=block.stride)
        for begin, end in zip(starts.tolist(), starts[1:].tolist()):
            given = rows[begin:end].copy()
            rows[begin:end] = _numbers(f"the edit of hidden states {block.layer}", function(given), given.shape)


def _numbers(what: str, values: Any, shape: Tuple[int, ...]) -> np.ndarray:
    found = np.asarray(values)
    if found.shape != shape or found.dtype.kind not in "fiu":
        raise ArgumentError(f"{what}: expected numbers of shape {list(shape)}, found " + ("None" if values is None else f"{found.dtype} {list(found.shape)}"))
    return found


class Session:
    """A caller's workspace, reopened if a batch needs more tokens or other features than it has."""

    def __init__(self, weights: abi.Owned, isa: Optional[str], threads: Optional[int]) -> None:
        self.weights, self._session, self._lock = weights, abi.Owned(library.session_free), threading.Lock()
        self._threads = abi.thread_count(threads)
        self._capacity, self._features, self._is_whole = 0, abi.OBSERVE_HIDDEN, False  # whole: an encode gives all rows of H[L]
        self.ablations: List[Any] = []
        self._isa = abi.tier(isa)
        info = library.model_describe(weights.handle).contents
        self.layers, self.heads, self.hidden_size = info.layers, info.heads, info.hidden_size
        self._batch, self._outputs = abi.sized(abi.Batch), abi.sized(abi.Outputs)
        self._changed: Any = None  # keeps alive what the library's session points at

    def check_open(self) -> None:
        check_open(self.weights)

    @contextlib.contextmanager
    def working(self) -> Iterator[None]:
        """Serializes calls: the content of the session belongs to the call that filled it."""
        self.check_open()
        if not self._lock.acquire(blocking=False):
            raise ArgumentError("the session is at work: it serves one call at a time; make another one for each thread with share()")
        try:
            yield
        finally:
            self._lock.release()

    def close(self) -> None:
        self._session.close()

    def prepare(self, tokens: int = 1, features: int = 0) -> Any:
        """Returns the library's session with enough room. One that has been whole stays so: heads find in it what they need as well."""
        if self._is_whole or not features & abi.ONLY_HEADS:
            features &= ~abi.ONLY_HEADS
            self._is_whole = True
        wanted = (self._features | features) if features & abi.ONLY_HEADS else (self._features & ~abi.ONLY_HEADS | features)
        if self._session.handle and tokens <= self._capacity and wanted == self._features:
            return self._session.handle
        capacity = max(512, self._capacity, 1 << max(tokens - 1, 0).bit_length())
        self.close()
        self._features = wanted
        ablations = (abi.Ablation * len(self.ablations))(*self.ablations)
        options = abi.sized(abi.SessionOptions, isa=self._isa, max_tokens=capacity, threads=self._threads, features=self._features,
                            ablations=c.addressof(ablations), ablation_count=len(ablations))
        session = abi.Owned(library.session_free, self.weights)
        library.session_create(session.handle, self.weights.handle, options)
        self._session, self._capacity = session, capacity
        return session.handle

    def some(self) -> Any:
        """Returns the library's session as it is; where there is none yet, one for heads alone."""
        return self._session.handle or self.prepare(features=abi.ONLY_HEADS)

    def encode(self, batch: Batch, features: int = 0, capture: Optional[Capture] = None, changes: Optional[Changes] = None) -> np.ndarray:
        """H[L] [tokens, h] in the session's memory, valid until its next encode; of a session for heads alone there are no rows. Changes stay until
        the heads have been asked."""
        tokens, given = len(batch.ids), self._batch
        handle = self.prepare(tokens, features | (abi.OBSERVE_ATTENTION if capture and capture.attention else 0))
        given.ids, given.sequence_starts, given.sequences = address(batch.ids), address(batch.starts), len(batch.starts) - 1
        given.token_types, given.mask, given.position_ids = map(address, (batch.token_types, batch.mask, batch.position_ids))
        if self._changed is not None and not changes:
            library.session_intervene(handle, None)
            self._changed = None
        if changes or (capture and capture.observes) or tokens * self.layers >= WATCHED_WORK:
            self._watched(handle, capture, changes, batch.starts)
        else:
            library.encode(handle, given, self._outputs)
        if not self._outputs.hidden:
            return np.empty((0, self.hidden_size), np.float32)
        return view(self._outputs.hidden, (tokens, self.hidden_size), stride=self._outputs.hidden_stride)

    def _watched(self, handle: Any, capture: Optional[Capture], changes: Optional[Changes], starts: np.ndarray) -> None:
        """With changes and an observer, which keeps what is wanted, and stops the encode when that failed or SIGINT came: an exception inside a
        callback would be lost. The handler of SIGINT is called behind it."""
        failures: List[BaseException] = []
        handler: Any = signal.getsignal(signal.SIGINT)
        ours = callable(handler) and threading.current_thread() is threading.main_thread()  # no other thread receives signals
        stopped = False

        def guarded(keep: Any) -> Any:
            def observe(_context: Any, block: Any) -> int:
                try:
                    if keep and not failures:
                        keep(block.contents)
                except BaseException as failure:  # noqa: BLE001: an exception must not leave a callback
                    failures.append(failure)
                return bool(failures)
            return observe

        observer = abi.sized(abi.Observer, on_hidden=abi.ON_HIDDEN(guarded(capture and capture.on_hidden)))
        if capture and capture.attention:
            observer.wants_attention = abi.WANTS(capture.wants)
            observer.on_attention = abi.ON_ATTENTION(guarded(capture.on_attention))
        if changes:
            made = changes.struct(guarded, starts)
            library.session_intervene(handle, made)
            self._changed = made  # kept until the next encode, because heads read it
        self._batch.observer = c.addressof(observer)
        if ours:
            signal.signal(signal.SIGINT, lambda *_: failures.append(KeyboardInterrupt()))
        try:
            library.encode(handle, self._batch, self._outputs)
        except Error:
            stopped = bool(failures)
            if not stopped:
                raise
        finally:
            self._batch.observer = None
            if ours:
                signal.signal(signal.SIGINT, handler)
        if any(isinstance(one, KeyboardInterrupt) for one in failures):
            handler(signal.SIGINT, None)
        if stopped:
            raise failures[0]

    def parts(self, batch: Batch, most_tokens: int, features: int = 0, capture: Optional[Capture] = None,
              changes: Optional[Changes] = None) -> Iterator[Tuple[int, int, Batch]]:
        """Encodes a batch in parts; yields each, with the indices of its first text and token, while the session holds it."""
        for first, part in batch.parts(most_tokens):
            begin = int(batch.starts[first])
            if capture:
                capture.first, capture.begin = first, begin
            last = self.encode(part, features, capture, changes)
            if capture and self.layers in capture.hidden:
                capture.hidden[self.layers][begin:begin + len(last)] = last
            yield first, begin, part

    def logits(self, task: int, positions: np.ndarray, found: Optional[np.ndarray] = None) -> np.ndarray:
        """Returns [positions, labels] of the last encode. The library reports an unknown or missing head."""
        width, places = library.task_width(self.weights.handle, task), np.ascontiguousarray(positions, SIZE)
        found = np.empty((len(places), width), np.float32) if found is None else found
        library.task_logits(self._session.handle, task, address(places), len(places), address(found), width)
        return found


class Sessions:
    """Sessions of the same weights for as many calls at a time as were asked for, made when they are first needed; further calls wait."""

    def __init__(self, weights: abi.Owned, isa: Optional[str], threads: Optional[int], most: int) -> None:
        self._weights, self._open, self._most = weights, lambda: Session(weights, isa, threads), most
        self._places, self._closing, self._is_closed = threading.Semaphore(most), threading.Lock(), False
        self._idle = [self._open()]
        self._idle[0].prepare()

    def _check_process(self) -> None:
        """Refuses a forked child, which would wait for threads that it does not have. Another thread may close the weights at any moment."""
        if not self._is_closed:
            check_process(self._weights)

    @contextlib.contextmanager
    def one(self) -> Iterator[Optional[Session]]:
        """Yields a session for exclusive use; None once they are closed."""
        self._check_process()
        with self._places:
            if self._is_closed:
                yield None
                return
            try:
                session = self._idle.pop()
            except IndexError:
                session = self._open()
            try:
                with session.working():
                    yield session
            finally:
                self._idle.append(session)

    @contextlib.contextmanager
    def alone(self) -> Iterator[None]:
        """Waits for all calls; calls that begin within the block wait for its end."""
        self._check_process()
        with self._closing, contextlib.ExitStack() as all_places:
            for _ in range(self._most):
                all_places.enter_context(self._places)
            yield

    @contextlib.contextmanager
    def closing(self) -> Iterator[None]:
        """Waits for all calls, and closes after the block; calls that come later get no session."""
        with self.alone():
            yield
            self._is_closed = True
            for session in self._idle:
                session.close()
