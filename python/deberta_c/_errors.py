"""What the library refuses, each with its sentence. SPDX-License-Identifier: MIT"""
from __future__ import annotations

from typing import Any, Optional

import numpy as np


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


def one_of(what: str, value: Any, *names: Optional[str]) -> int:
    """The place of an option's value among those that it may have."""
    if value not in names:
        *others, last = map(repr, names)
        raise ArgumentError(f"{what}: expected {', '.join(others)} or {last}, found {value!r}")
    return names.index(value)


def whole_number(what: str, value: Any, most: Optional[int] = None, least: int = 0) -> int:
    """An option that counts something; None is 0, which leaves it to the library."""
    found = 0 if value is None else value
    if not isinstance(found, (int, np.integer)) or found < least or (most is not None and found > most):
        raise ArgumentError(f"{what}: expected {f'{least} to {most}' if most else f'a number from {least}'}, found {value!r}")
    return int(found)
