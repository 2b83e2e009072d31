"""What the library refuses, each with its sentence. SPDX-License-Identifier: MIT"""
from __future__ import annotations

from typing import Any, Optional


class Error(Exception):
    """Base of all; the text is one sentence: what, where, found, expected."""


class ArgumentError(Error, ValueError):
    """A wrong call: an id outside the vocabulary, an empty batch, a closed model."""


class FileError(Error, OSError):
    """A file is missing or unreadable."""


class FormatError(Error, ValueError):
    """A file is damaged, or not what its name says."""


class UnsupportedError(Error, NotImplementedError):
    """Understood, but not done."""


class OutOfMemoryError(Error, MemoryError):
    """Out of memory, or above the caller's limit."""


class SystemRefusedError(Error, OSError):
    """The operating system refused something else: a thread, a write."""


ERRORS = {-1: ArgumentError, -2: FileError, -3: FormatError, -4: UnsupportedError, -5: OutOfMemoryError, -6: SystemRefusedError,
          -7: Error}  # DEBERTA_E_NOT_FINITE: of training, which this package leaves to the program


def one_of(what: str, value: Any, *names: Optional[str]) -> None:
    """Refuses another value of an option."""
    if value not in names:
        *others, last = map(repr, names)
        raise ArgumentError(f"{what}: expected {', '.join(others)} or {last}, found {value!r}")


def whole_number(what: str, value: Any, most: Optional[int] = None) -> int:
    """An option that counts something; None is 0, which leaves it to the library."""
    try:
        found = int(value or 0)
    except (TypeError, ValueError, OverflowError):
        found = -1
    if found < 0 or (most and found > most):
        raise ArgumentError(f"{what}: expected {f'0 to {most}' if most else 'a number from 0'}, found {value!r}")
    return found
