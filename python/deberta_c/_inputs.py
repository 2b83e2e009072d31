"""What encode() takes, as the library wants it. SPDX-License-Identifier: MIT"""
from __future__ import annotations

from typing import AbstractSet, Any, Iterator, List, Mapping, NamedTuple, Optional, Sequence, Tuple

import numpy as np

from ._errors import ArgumentError

INT32, SIZE = np.dtype(np.int32), np.dtype(np.uintp)


def integers(values: Any, what: str, kind: np.dtype = INT32) -> np.ndarray:
    """One row of integers, as it is where it is contiguous and of that type already."""
    try:
        row = np.asarray(values)
    except ValueError:
        raise ArgumentError(f"{what} are rows within a row, expected one row of integers for each text") from None
    if row.dtype == kind and row.ndim == 1 and row.flags.c_contiguous:
        return row
    if row.ndim != 1:
        raise ArgumentError(f"{what} have {row.ndim} dimensions, expected one row of integers for each text")
    if row.dtype.kind not in "iub" and row.size:
        raise ArgumentError(f"{what} are of type {row.dtype}, expected integers")
    converted = np.ascontiguousarray(row, kind)
    if row.size and not np.array_equal(converted, row):
        at = int(np.flatnonzero(converted != row)[0])
        raise ArgumentError(f"{what}: {row[at]} at token {at} does not fit into {kind}")
    return converted


def address(array: Optional[np.ndarray]) -> Optional[int]:
    return None if array is None else array.__array_interface__["data"][0]


class _Memory:
    __slots__ = ("__array_interface__",)


def view(place: int, shape: Tuple[int, ...], kind: str = "<f4", strides: Optional[Tuple[int, ...]] = None) -> np.ndarray:
    """The library's memory as an array, without a copy; valid as long as the library says."""
    memory = _Memory()
    memory.__array_interface__ = {"version": 3, "data": (place, True), "shape": shape, "typestr": kind, "strides": strides}
    return np.asarray(memory)


class Batch(NamedTuple):
    """Ragged rows one after the other; starts: [rows + 1]."""

    ids: np.ndarray
    starts: np.ndarray
    token_types: Optional[np.ndarray] = None
    mask: Optional[np.ndarray] = None
    position_ids: Optional[np.ndarray] = None

    @property
    def lengths(self) -> np.ndarray:
        return np.diff(self.starts.astype(np.int64))

    def chunks(self, most_tokens: int) -> Iterator[Tuple[int, int]]:
        """Rows that are encoded together: [first, end)."""
        first, ends = 0, self.starts[1:].tolist()
        for row, end in enumerate(ends):
            if row > first and end - (ends[first - 1] if first else 0) > most_tokens:
                yield first, row
                first = row
        if first < len(ends) or not ends:
            yield first, len(ends)

    def part(self, first: int, end: int) -> "Batch":
        if first == 0 and end == len(self.starts) - 1:
            return self
        begin, stop = int(self.starts[first]), int(self.starts[end])
        cut = [None if rows is None else rows[begin:stop] for rows in (self.token_types, self.mask, self.position_ids)]
        return Batch(self.ids[begin:stop], self.starts[first:end + 1] - self.starts[first], *cut)


def join(rows: Sequence[np.ndarray]) -> np.ndarray:
    return rows[0] if len(rows) == 1 else np.concatenate(rows) if rows else np.empty(0, INT32)


def _companion(given: Any, rows: List[np.ndarray], single: bool, what: str, kind: np.dtype) -> Optional[np.ndarray]:
    """Token types or a mask: as many as ids, row by row."""
    if given is None:
        return None
    others = [integers(row, what, kind) for row in ([given] if single else given)]
    if [len(row) for row in others] != [len(row) for row in rows]:
        raise ArgumentError(f"{what}: {[len(row) for row in others][:8]} values in a row, expected as many as ids: {[len(row) for row in rows][:8]}")
    return join(others)


def batch_of_rows(rows: List[np.ndarray], **others: Any) -> Batch:
    if len(rows) == 1:
        return Batch(rows[0], np.array((0, len(rows[0])), SIZE), **others)
    starts = np.zeros(len(rows) + 1, SIZE)
    if rows:
        np.cumsum([len(row) for row in rows], out=starts[1:])
    return Batch(join(rows), starts, **others)


def batch_of_ids(ids: Any, token_types: Any = None, mask: Any = None) -> Tuple[Batch, bool]:
    """The batch, and whether it is one row that was given by itself."""
    if isinstance(ids, Mapping):
        if "input_ids" not in ids:
            raise ArgumentError(f"expected a mapping with input_ids, found {list(ids)[:8]}")
        ids, token_types, mask = ids["input_ids"], ids.get("token_type_ids", token_types), ids.get("attention_mask", mask)
    if not hasattr(ids, "__len__") or isinstance(ids, (str, bytes, AbstractSet)):
        raise ArgumentError(f"expected texts or ids, found {type(ids).__name__}")
    single = getattr(ids, "ndim", None) == 1 and np.asarray(ids).dtype != object
    if not hasattr(ids, "ndim"):
        single = len(ids) > 0 and not hasattr(ids[0], "__len__") and not getattr(ids[0], "ndim", 0)
    rows = [integers(row, "ids") for row in ([ids] if single else ids)]
    types = _companion(token_types, rows, single, "token types", INT32)
    return batch_of_rows(rows, token_types=types, mask=_companion(mask, rows, single, "the mask", np.dtype(np.uint8))), single
