#!/usr/bin/env python3
"""A copy of an installed Python package whose libraries believe in a processor with fewer features.

    studies/hide_features.py PACKAGE FOLDER
    CPUID_HIDE=avx512 LD_PRELOAD=FOLDER/hide_features.so PYTHONPATH=FOLDER python3 ...

PACKAGE is a folder in site-packages, or one library; FOLDER gets a copy (links, but for what changes). In it every cpuid instruction is ud2, and
hide_features.c answers. Libraries choose their kernels by cpuid, so this needs no switch of theirs, and it runs at full speed.
An instruction is one if objdump says so from almost any place before it: code reads the same way again after a few instructions.

Needs objdump and cc. SPDX-License-Identifier: MIT
"""
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

CPUID, UD2, NOPS = b"\x0f\xa2", b"\x0f\x0b", b"\x90" * 16
BEGINS = range(60, 200, 10)  # bytes before a candidate from where it is read
AGREE = 8  # of these 14


def executable(path):
    """(offset, size) of the sections of code in the file."""
    told = subprocess.run(["objdump", "-h", str(path)], capture_output=True, text=True).stdout
    found = re.findall(r"\n\s*\d+ \S+\s+(\w+)\s+\w+\s+\w+\s+(\w+)\s+\S+\n([^\n]*)", told)
    return [(int(offset, 16), int(size, 16)) for size, offset, flags in found if "CODE" in flags]


def instructions(data, sections):
    """Offsets of the cpuid instructions in the file."""
    candidates = [offset + found.start() for offset, size in sections for found in re.finditer(re.escape(CPUID), data[offset:offset + size])]
    windows, expected = bytearray(), {}
    for at in candidates:
        for back in BEGINS:
            windows += data[at - back:at]
            expected[len(windows)] = at
            windows += CPUID + NOPS
    with tempfile.NamedTemporaryFile() as file:
        file.write(windows)
        file.flush()
        told = subprocess.run(["objdump", "-D", "-b", "binary", "-m", "i386:x86-64", file.name], capture_output=True, text=True).stdout
    votes = {}
    for place in re.findall(r"^\s*([0-9a-f]+):\t0f a2\s+\tcpuid", told, re.M):
        at = expected.get(int(place, 16))
        votes[at] = votes.get(at, 0) + 1
    return [at for at in candidates if votes.get(at, 0) >= AGREE]


def patch(path):
    """The number of instructions that were replaced."""
    data = bytearray(path.read_bytes())
    places = instructions(data, executable(path))
    for at in places:
        data[at:at + 2] = UD2
    if places:
        path.unlink()  # a link to the installed file, which stays as it is
        path.write_bytes(data)
        path.chmod(0o755)
    return len(places)


def link(source, target):
    """A link where both lie on one disk."""
    try:
        os.link(source, target)
    except OSError:
        shutil.copy2(source, target)


def main():
    package, folder = Path(sys.argv[1]), Path(sys.argv[2])
    copy = folder / package.stem
    if package.is_file():
        copy.mkdir(parents=True)
        shutil.copy2(package.resolve(), copy / package.name)
    else:
        shutil.copytree(package, copy, copy_function=link)
    for path in sorted(copy.rglob("*.so*")):
        count = patch(path) if path.is_file() else 0
        if count:
            print(path.relative_to(folder), count, flush=True)
    source = Path(__file__).with_suffix(".c")
    subprocess.run(["cc", "-O2", "-shared", "-fPIC", "-o", str(folder / "hide_features.so"), str(source)], check=True)


if __name__ == "__main__":
    main()
