"""What encode() takes, as the library wants it. SPDX-License-Identifier: MIT"""
from __future__ import annotations

from itertools import accumulate
from typing import AbstractSet, Any, Dict, Iterator, List, Mapping, NamedTuple, Optional, Sequence, Tuple

import numpy as np

from ._errors import ArgumentError

# Of size_t, which no count here fills, so that NumPy need not mix it with signed numbers.
INT32, BYTE, SIZE = np.dtype(np.int32), np.dtype(np.uint8), np.dtype(np.intp)


def integers(values: Any, what: str, kind: np.dtype = INT32) -> np.ndarray:
    """One row of integers, as it is where it is contiguous and of that type already."""
    try:
        row = np.asarray(values)
    except ValueError:  # rows within a row
        row = np.empty((0, 0), object)
    if row.ndim != 1 or (row.size and row.dtype.kind not in "iub"):
        raise ArgumentError(f"{what}: expected one row of integers for each text, found {row.ndim} dimensions of type {row.dtype}")
    converted = np.ascontiguousarray(row, kind)
    if converted is not row and not np.array_equal(converted, row):
        at = int(np.flatnonzero(converted != row)[0])
        raise ArgumentError(f"{what}: {row[at]} at token {at} does not fit into {kind}")
    return converted


def address(array: Optional[np.ndarray]) -> Optional[int]:
    return None if array is None else int(array.__array_interface__["data"][0])


class _Memory:
    __slots__ = ("__array_interface__",)
    __array_interface__: Dict[str, Any]


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

    @classmethod
    def of_rows(cls, rows: Sequence[np.ndarray], **others: Optional[np.ndarray]) -> Batch:
        return cls(_join(rows), np.array([0, *accumulate(map(len, rows))], SIZE), **others)

    def parts(self, most_tokens: int) -> Iterator[Tuple[int, Batch]]:
        """Rows that are encoded together, and the number of the first of them."""
        first, last = 0, len(self.starts) - 1
        while first < max(last, 1):  # an empty batch too, which the library refuses
            fitting = int(np.searchsorted(self.starts, self.starts[first] + most_tokens, "right")) - 1
            end = max(first + 1, fitting)
            tokens = slice(self.starts[first], self.starts[min(end, last)])
            cut = [None if rows is None else rows[tokens] for rows in (self.token_types, self.mask, self.position_ids)]
            yield first, Batch(self.ids[tokens], self.starts[first:end + 1] - self.starts[first], *cut)
            first = end


def _join(rows: Sequence[np.ndarray]) -> np.ndarray:
    return rows[0] if len(rows) == 1 else np.concatenate(rows) if rows else np.empty(0, INT32)


def batch_of_ids(ids: Any, token_types: Any = None, mask: Any = None) -> Batch:
    """ids: one row, a list of rows, a 2-D array, or a mapping as tokenizers give it; the others as many, row by row."""
    if isinstance(ids, Mapping):
        if "input_ids" not in ids:
            raise ArgumentError(f"expected a mapping with input_ids, found {list(ids)[:8]}")
        ids, token_types, mask = ids["input_ids"], ids.get("token_type_ids", token_types), ids.get("attention_mask", mask)
    _expect_rows("texts or ids", ids)
    single = ids.ndim == 1 and ids.dtype != object if hasattr(ids, "ndim") else len(ids) > 0 and not hasattr(ids[0], "__len__")
    rows = [integers(row, "ids") for row in ([ids] if single else ids)]

    def beside(given: Any, what: str, kind: np.dtype) -> Optional[np.ndarray]:
        if given is None:
            return None
        _expect_rows(what, given)
        found = [integers(row, what, kind) for row in ([given] if single else given)]
        counts, lengths = ([len(row) for row in one] for one in (found, rows))
        if counts != lengths:
            raise ArgumentError(f"{what}: {counts[:8]} values in a row, expected as many as ids: {lengths[:8]}")
        return _join(found)

    return Batch.of_rows(rows, token_types=beside(token_types, "token types", INT32), mask=beside(mask, "the mask", BYTE))


def _expect_rows(what: str, given: Any) -> None:
    if not hasattr(given, "__len__") or getattr(given, "ndim", 1) == 0 or isinstance(given, (str, bytes, dict, AbstractSet)):
        raise ArgumentError(f"expected {what}, found {type(given).__name__}")
