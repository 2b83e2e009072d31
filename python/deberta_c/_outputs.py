"""Checks output paths before anything is written. SPDX-License-Identifier: MIT"""
from __future__ import annotations

import os
from pathlib import Path
from typing import Any, Iterator, Sequence, Tuple

from ._abi import ArgumentError, SystemRefusedError, terminated


def output_suffix(path: Any, formats: Sequence[str], inputs: Sequence[str]) -> str:
    """The suffix of a file that is to be written, in lower case. Refuses one that is none of the formats (if there are any), and a file
    that is one of the inputs, or in a folder among these, by whatever name."""
    name = os.fsdecode(terminated("path", path))
    suffix = os.path.splitext(name)[1].lower()
    if formats and suffix not in formats:
        raise ArgumentError(f"{name}: expected a name that ends in {' or '.join(filter(None, [', '.join(formats[:-1]), formats[-1]]))}")
    there = _identity(name)
    for one in _files(inputs) if there else ():
        if _identity(one) == there:
            raise ArgumentError(f"{name}: is {one}, which is read: it would be replaced; give another name")
    return suffix


def write_output(path: Any, data: bytes) -> None:
    try:
        Path(os.fsdecode(path)).write_bytes(data)
    except OSError as reason:
        raise SystemRefusedError(f"{os.fsdecode(path)}: cannot be written ({reason.strerror})") from None


def _files(inputs: Sequence[str]) -> Iterator[str]:
    for one in inputs:
        if os.path.isdir(one):
            yield from (os.path.join(folder, name) for folder, _, names in os.walk(one) for name in names)
        else:
            yield one


def _identity(path: str) -> "Tuple[int, int] | None":
    """Returns the identity of a regular file, the same for all its names."""
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_dev, found.st_ino
