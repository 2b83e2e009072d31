"""Checks output paths before anything is written, and writes files that appear whole or not at all. SPDX-License-Identifier: MIT"""
from __future__ import annotations

import contextlib
import os
import secrets
import stat
from typing import IO, Any, Iterator, Optional, Sequence, Tuple

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
    """Writes a file that appears whole or not at all: what was there before stays until the new one is complete. Devices and pipes are written
    directly. Of a symbolic link the file that it names is replaced."""
    name = os.fsdecode(path)
    try:
        before = _open_before(name)
        if before is None:
            _replace(os.path.realpath(name), data, None)
            return
        with before:
            about = os.fstat(before.fileno())
            if stat.S_ISREG(about.st_mode) and not _is_stream(name):
                _replace(os.path.realpath(name), data, about)
                return
            if stat.S_ISREG(about.st_mode):
                before.truncate()
            before.write(data)
    except OSError as reason:
        raise SystemRefusedError(f"{name}: cannot be written ({reason.strerror})") from None


def _open_before(name: str) -> Optional[IO[bytes]]:
    """Opens what is there for writing, so that what may not be written is refused as ever; None: nothing is there."""
    try:
        return os.fdopen(os.open(name, os.O_WRONLY | os.O_CLOEXEC), "wb")
    except FileNotFoundError:
        return None


def _is_stream(name: str) -> bool:
    """Returns true for names of a process's own files, such as /dev/stdout, which stay what the process has open."""
    for _ in range(40):  # as many links as the system follows
        folder = os.path.realpath(os.path.dirname(name) or ".")
        if folder.startswith("/proc/"):
            return True
        if not os.path.islink(name):
            return False
        name = os.path.join(folder, os.readlink(name))
    return False


def _replace(target: str, data: bytes, before: Optional[os.stat_result]) -> None:
    """Writes a temporary file beside the target, and renames it. before: the file that it replaces, whose owner and permissions it keeps."""
    temporary = os.path.join(os.path.dirname(target), f".deberta-{secrets.token_hex(8)}.tmp")
    file = os.fdopen(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666), "wb")
    try:
        with file:
            if before is not None:
                with contextlib.suppress(OSError):  # file systems without permissions
                    if (before.st_uid, before.st_gid) != (os.geteuid(), os.getegid()):
                        os.fchown(file.fileno(), before.st_uid, before.st_gid)
                with contextlib.suppress(OSError):
                    os.fchmod(file.fileno(), stat.S_IMODE(before.st_mode))
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, target)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(temporary)
        raise


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
