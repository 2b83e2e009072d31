"""Weights, and a session that encodes batches and shows what happens inside. SPDX-License-Identifier: MIT"""
from __future__ import annotations

import contextlib
import os
import re
import threading
from typing import Any, Callable, Dict, Iterator, List, Optional, Sequence, Set, Tuple

import numpy as np

from . import _abi as abi
from ._errors import ArgumentError
from ._inputs import Batch, address, view
from ._interrupt import Interruption

WATCHED_WORK = 4096  # tokens times layers from which on an encode is worth interrupting
_ABLATION = re.compile(r"(c2c|c2p|p2c)(?:=(zero|mean))?@(all|\d+)(?::(all|\d+))?")


def parse_ablations(text: str) -> "list[tuple[int, int, int, int]]":
    """"c2p@3:5,p2c=mean@all" as term, layer, head and kind."""
    found = []
    for item in text.split(","):
        parts = _ABLATION.fullmatch(item.strip())
        if not parts:
            raise ArgumentError(f"expected term[=zero|=mean]@layer[:head] with term c2c, c2p or p2c, layer and head a number or all; found '{item}'")
        term, kind, layer, head = parts.groups()
        places = [abi.EVERY if place in (None, "all") else int(place) for place in (layer, head)]
        found.append((abi.COMPONENTS.index(term), *places, int(kind == "mean")))
    return found


class Session:
    """One caller's workspace, made anew when a batch needs more tokens or other features than it has."""

    def __init__(self, weights: abi.Owned, isa: Optional[str], threads: Optional[int]) -> None:
        self.weights, self._threads, self._lock = weights, int(threads or 0), threading.Lock()
        self._session: Optional[abi.Owned] = None
        self._capacity, self._features = 0, abi.OBSERVE_HIDDEN
        self.ablations: "list[tuple[int, int, int, int]]" = []
        number = abi.c.c_int(0)
        if isa is not None:
            abi.call("isa_from_name", number, isa.encode())
        self._isa = number.value
        self._info = abi.ask("model_describe", weights.handle).contents
        self.layers, self.heads, self.hidden_size = self._info.layers, self._info.heads, self._info.hidden_size
        self._batch, self._outputs = abi.sized(abi.Batch), abi.sized(abi.Outputs)

    @contextlib.contextmanager
    def working(self) -> Iterator[None]:
        """One call at a time: what the session holds belongs to the call that filled it."""
        if self.weights.pid != os.getpid():
            raise ArgumentError("the model was opened before a fork: its threads are in the other process; open it again in this one")
        if not self.weights.handle:
            raise ArgumentError("the model is closed")
        if not self._lock.acquire(blocking=False):
            raise ArgumentError("the session is at work: it serves one call at a time; make another one for each thread with share()")
        try:
            yield
        finally:
            self._lock.release()

    def close(self) -> None:
        if self._session:
            self._session.close()
        self._session, self._capacity = None, 0

    def prepare(self, tokens: int, features: int = 0) -> abi.POINTER:
        if self._session and tokens <= self._capacity and not features & ~self._features:
            return self._session.handle
        capacity = max(512, self._capacity, 1 << max(tokens - 1, 0).bit_length())
        self.close()
        self._features |= features
        options = abi.sized(abi.SessionOptions, isa=self._isa, max_tokens=capacity, threads=self._threads, features=self._features)
        if self.ablations:
            options.ablations = (abi.Ablation * len(self.ablations))(*self.ablations)
            options.ablation_count = len(self.ablations)
        session = abi.Owned("session_free", self.weights)
        abi.call("session_create", session.handle, self.weights.handle, options)
        self._session, self._capacity = session, capacity
        return session.handle

    def encode(self, batch: Batch, features: int = 0, watcher: "Optional[Watcher]" = None) -> np.ndarray:
        """H[L] [tokens, h] in the session's memory, valid until its next encode."""
        tokens, given = len(batch.ids), self._batch
        handle = self.prepare(tokens, features | (abi.OBSERVE_ATTENTION if watcher and watcher.components else 0))
        given.ids, given.sequence_starts, given.sequences = address(batch.ids), address(batch.starts), len(batch.starts) - 1
        given.token_types, given.mask, given.position_ids = address(batch.token_types), address(batch.mask), address(batch.position_ids)
        if watcher is None and tokens * self.layers < WATCHED_WORK:
            given.observer = None
            abi.call("encode", handle, given, self._outputs)
        else:
            with Interruption() as interruption:
                finished = (watcher or Watcher()).encode(self, handle, batch, interruption)
            if not finished:
                raise KeyboardInterrupt
        stride = self._outputs.hidden_stride
        return view(self._outputs.hidden, (tokens, self.hidden_size), strides=(4 * stride, 4))

    def logits(self, task: int, positions: np.ndarray) -> np.ndarray:
        """[positions, labels] of what was encoded last. The head's name and what it lacks are the library's to say."""
        width = abi.ask("task_width", self.weights.handle, task)
        found = np.empty((len(positions), width), np.float32)
        assert self._session is not None
        abi.call("task_logits", self._session.handle, task, address(positions), len(positions), address(found), width)
        return found

    def run_encode(self, handle: abi.POINTER, observer: Any) -> None:
        self._batch.observer = abi.c.pointer(observer)
        try:
            abi.call("encode", handle, self._batch, self._outputs)
        finally:
            self._batch.observer = None


class Watcher:
    """Keeps hidden states of layers and attention of (layer, head), and lets an encode be interrupted."""

    def __init__(self, layers: Sequence[int] = (), components: "Optional[Dict[int, Dict[int, Set[int]]]]" = None) -> None:
        self.layers, self.components = set(layers), components or {}  # components: {layer: {component: heads}}
        self.hidden: Dict[int, np.ndarray] = {}
        self.attention: Dict[Tuple[int, int], List[np.ndarray]] = {}
        self._failure: Optional[BaseException] = None

    def _guarded(self, function: Callable[[Any], None], interruption: Interruption) -> Callable[[Any, Any], int]:
        def observe(_context: Any, block: Any) -> int:
            try:
                if interruption.seen:
                    return 1
                function(block.contents)
                return 0
            except BaseException as failure:  # noqa: BLE001: nothing may leave a callback
                self._failure = failure
                return 1
        return observe

    def _on_hidden(self, block: Any) -> None:
        if block.layer in self.layers:
            rows = view(block.values, (block.tokens, block.columns), strides=(4 * block.stride, 4))
            self.hidden[block.layer] = rows.copy()

    def _wants(self, _context: Any, layer: int, head: int, component: int) -> int:
        return head in self.components.get(layer, {}).get(component, ())

    def _on_attention(self, block: Any) -> None:
        chosen = sorted(self.components[block.layer][block.component])
        matrix = self.attention[block.layer, block.component][block.sequence][chosen.index(block.head)]
        matrix[block.first_query:block.first_query + block.rows] = view(
            block.values, (block.rows, block.keys), strides=(4 * block.stride, 4))

    def encode(self, session: Session, handle: abi.POINTER, batch: Batch, interruption: Interruption) -> bool:
        """False: it was interrupted."""
        for layer, parts in self.components.items():
            for component, heads in parts.items():
                self.attention[layer, component] = [np.zeros((len(heads), n, n), np.float32) for n in batch.lengths.tolist()]
        observer = abi.sized(abi.Observer, on_hidden=abi.ON_HIDDEN(self._guarded(self._on_hidden, interruption)))
        if self.components:
            observer.wants_attention = abi.WANTS(self._wants)
            observer.on_attention = abi.ON_ATTENTION(self._guarded(self._on_attention, interruption))
        try:
            session.run_encode(handle, observer)
        except Exception:
            if self._failure is not None:
                raise self._failure from None
            if not interruption.seen:
                raise
            return False
        return True
