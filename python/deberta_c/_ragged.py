"""Converts a padded batch of PyTorch to the library's ragged one, and back. SPDX-License-Identifier: MIT"""
from __future__ import annotations

from typing import Any, List, Optional, Tuple

import numpy as np

from ._abi import ArgumentError, UnsupportedError
from ._inputs import INT32, SIZE, Batch


def kind_of(tensor: Any) -> str:
    """Describes a given value in a sentence."""
    if not hasattr(tensor, "dtype"):
        return f"a {type(tensor).__name__}"
    where = getattr(tensor.device, "type", "cpu") if hasattr(tensor, "device") else "cpu"
    return f"{tensor.dtype} {list(tensor.shape)}" + (f" on {where}" if where != "cpu" else "")


def values_of(tensor: Any) -> np.ndarray:
    try:
        return np.asarray(tensor.detach().cpu().float() if tensor.is_floating_point() else tensor.detach().cpu())
    except RuntimeError as reason:
        raise UnsupportedError(f"a {type(tensor).__name__} has no values here, as while a model is traced or mapped ({reason}): "
                               "deberta_c.restore(model) first") from None


def numbers(tensor: Any, shape: Tuple[int, ...], what: str) -> Optional[np.ndarray]:
    if tensor is None:
        return None
    if tuple(getattr(tensor, "shape", ())) not in (shape, (1, shape[1])):
        raise ArgumentError(f"{what} has shape {list(getattr(tensor, 'shape', ()))}, expected {list(shape)}")
    found = values_of(tensor)
    if what != "attention_mask" and found.dtype.kind not in "iu":
        raise ArgumentError(f"{what} is {kind_of(tensor)}, expected integers")
    return np.broadcast_to(found, shape)


def _int32(rows: np.ndarray, what: str) -> np.ndarray:
    narrow = np.ascontiguousarray(rows, INT32)
    if not np.array_equal(narrow, rows):
        raise ArgumentError(f"{what}: {rows[narrow != rows][0]} does not fit into 32 bits")
    return narrow


class Ragged:
    """A padded batch without its padding: for each text that has a token, the range from its first to its last one."""

    def __init__(self, ids: np.ndarray, mask: Optional[np.ndarray], types: Optional[np.ndarray], positions: Optional[np.ndarray]) -> None:
        mask = np.ones(ids.shape, bool) if mask is None else mask
        self.mask, columns = mask.astype(bool), np.arange(ids.shape[1])
        if not np.array_equal(self.mask, mask):
            raise UnsupportedError("attention_mask holds other values than 0 and 1: deberta_c.restore(model) first")
        some = self.mask.any(axis=1)
        self.begin, self.texts = self.mask.argmax(axis=1), np.flatnonzero(some)
        self.end = np.where(some, len(columns) - self.mask[:, ::-1].argmax(axis=1), 0)
        self.inside = (columns >= self.begin[:, None]) & (columns < self.end[:, None])
        self.kept = self.mask[self.inside]
        if positions is None and self.begin.any():
            positions = np.broadcast_to(columns, ids.shape)
        given = {"input_ids": ids, "token_type_ids": types, "position_ids": positions}
        cut: List[Any] = [None if rows is None else _int32(rows[self.inside], what) for what, rows in given.items()]
        starts = np.append(0, np.cumsum((self.end - self.begin)[self.texts])).astype(SIZE)
        self.batch = Batch(cut[0], starts, cut[1], None if self.kept.all() else self.kept.view(np.uint8), cut[2])

    def pad(self, rows: np.ndarray) -> np.ndarray:
        """Returns [tokens, h] as [texts, n, h], zero where the mask is."""
        if len(rows) == self.mask.size and self.kept.all():
            return rows.reshape(*self.mask.shape, -1)
        padded = np.zeros((*self.mask.shape, rows.shape[-1]), np.float32)
        padded[self.mask] = rows if self.kept.all() else rows[self.kept]
        return padded

    def pad_maps(self, matrices: Any, heads: int) -> np.ndarray:
        """Returns [heads, n, n] of each text that has a token as [texts, heads, n, n]."""
        texts, n = self.mask.shape
        padded = np.zeros((texts, heads, n, n), np.float32)
        for text, matrix in zip(self.texts, matrices):
            place = slice(self.begin[text], self.end[text])
            padded[text, :, place, place] = matrix
        return padded
