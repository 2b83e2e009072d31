#!/usr/bin/env python3
"""Reads from built ELF files what the compiler and the linker were asked for (meson.build, "Hardening").

    hardening.py [--optimized] BUILD_DIR

Program and library: addresses not fixed, everything bound before the start and then read-only, stack not executable, stack protector,
entries marked for control-flow protection, and in an optimised build the checked copies of the C library (FORTIFY).
`--self-test` builds files without one of these, each of which must be noticed.

SPDX-License-Identifier: MIT
"""
import argparse
import os
import pathlib
import shutil
import struct
import subprocess
import sys
import tempfile

PT_LOAD, PT_DYNAMIC, PT_STACK, PT_RELRO = 1, 2, 0x6474E551, 0x6474E552
DT_STRTAB, DT_SYMTAB, DT_TEXTREL, DT_BIND_NOW, DT_FLAGS, DT_FLAGS_1, DT_GNU_HASH = 5, 6, 22, 24, 30, 0x6FFFFFFB, 0x6FFFFEF5
DF_TEXTREL, DF_BIND_NOW, DF_1_NOW, DF_1_PIE = 4, 8, 1, 0x08000000
X86_64, AARCH64 = 62, 183
# endbr64; bti c, bti jc, paciasp (which is one as well).
ENTRIES = {X86_64: (b"\xf3\x0f\x1e\xfa",), AARCH64: (b"\x5f\x24\x03\xd5", b"\xdf\x24\x03\xd5", b"\x3f\x23\x03\xd5")}


class Elf:
    """An ELF file of 64 bits, little-endian: its segments, its dynamic section and its dynamic symbols."""

    def __init__(self, path):
        self.bytes = pathlib.Path(path).read_bytes()
        assert self.bytes[:6] == b"\x7fELF\x02\x01", f"{path}: no little-endian ELF file of 64 bits"
        self.kind, self.machine = struct.unpack_from("<HH", self.bytes, 16)
        (first,) = struct.unpack_from("<Q", self.bytes, 32)
        size, count = struct.unpack_from("<HH", self.bytes, 54)
        self.segments = [struct.unpack_from("<IIQQQQQQ", self.bytes, first + k * size) for k in range(count)]
        self.dynamic = {}
        for kind, _, offset, _, _, length, _, _ in self.segments:
            if kind == PT_DYNAMIC:
                self.dynamic = dict(struct.iter_unpack("<QQ", self.bytes[offset:offset + length]))
        self.symbols = dict(self.read_symbols())

    def offset(self, address):
        for kind, _, offset, start, _, length, _, _ in self.segments:
            if kind == PT_LOAD and start <= address < start + length:
                return offset + address - start
        raise ValueError(f"address {address:#x} is in no segment")

    def read_symbols(self):
        """(name, address) of each; the string table stands after the symbols, as every linker lays it."""
        at, names = self.offset(self.dynamic[DT_SYMTAB]), self.offset(self.dynamic[DT_STRTAB])
        for place in range(at + 24, names - 23, 24):
            name, _, _, _, address, _ = struct.unpack_from("<IBBHQQ", self.bytes, place)
            yield self.bytes[names + name:self.bytes.index(b"\0", names + name)].decode(), address


def problems(path, is_program, optimized):
    """What the file lacks, in words."""
    elf = Elf(path)
    flags, flags_1 = elf.dynamic.get(DT_FLAGS, 0), elf.dynamic.get(DT_FLAGS_1, 0)
    stack = [segment[1] for segment in elf.segments if segment[0] == PT_STACK]
    functions = [address for name, address in elf.symbols.items() if name.startswith("deberta_") and address]
    wanted = {
        "it has fixed addresses (no PIE)": elf.kind == 3 and (not is_program or flags_1 & DF_1_PIE),
        "no segment becomes read-only after the start (RELRO)": any(segment[0] == PT_RELRO for segment in elf.segments),
        "functions are bound at their first call (no BIND_NOW)": DT_BIND_NOW in elf.dynamic or flags & DF_BIND_NOW or flags_1 & DF_1_NOW,
        "the stack is executable": len(stack) == 1 and not stack[0] & 1,
        "code is changed at the start (TEXTREL)": DT_TEXTREL not in elf.dynamic and not flags & DF_TEXTREL,
        "there is no stack protector": "__stack_chk_fail" in elf.symbols,
        "copies are not checked (no FORTIFY)": not optimized or any(name in elf.symbols for name in ("__snprintf_chk", "__memcpy_chk", "__vsnprintf_chk")),
        "entries are not marked (no control-flow protection)":
            is_program or (functions and all(elf.bytes[elf.offset(at):elf.offset(at) + 4] in ENTRIES.get(elf.machine, ()) for at in functions)),
    }
    return [what for what, fine in wanted.items() if not fine]


FAULTY = """
#include <stdio.h>
#include <string.h>
void take(char *);
__attribute__((visibility("default"))) int deberta_try(const char *text, int n)
{
    char copy[64];
    snprintf(copy, (size_t)n, "%s", text);
    take(copy);
    return copy[0];
}
"""
SOUND = ["-O2", "-fPIC", "-shared", "-fstack-protector-strong", "-U_FORTIFY_SOURCE", "-D_FORTIFY_SOURCE=2", "-Wl,-z,relro", "-Wl,-z,now", "-Wl,-z,noexecstack"]
PROTECTION = "-fcf-protection=" if os.uname().machine == "x86_64" else "-mbranch-protection="
FAULTS = {"-fno-stack-protector": "there is no stack protector", "-U_FORTIFY_SOURCE": "copies are not checked (no FORTIFY)",
          "-Wl,-z,norelro": "no segment becomes read-only after the start (RELRO)", "-Wl,-z,execstack": "the stack is executable",
          "-Wl,-z,lazy": "functions are bound at their first call (no BIND_NOW)",
          PROTECTION + "none": "entries are not marked (no control-flow protection)"}


def self_test(compiler):
    """Builds a library that has it all, and one without each: (passed, failed)."""
    protected = PROTECTION + ("full" if "cf-" in PROTECTION else "standard")
    failed = 0
    with tempfile.TemporaryDirectory() as folder:
        source, library = pathlib.Path(folder, "x.c"), pathlib.Path(folder, "x.so")
        source.write_text(FAULTY)
        for fault, expected in [(None, []), *FAULTS.items()]:
            subprocess.run([compiler, *SOUND, protected, *([fault] if fault else []), str(source), "-o", str(library)], check=True)
            found = problems(library, False, True)
            if found != ([expected] if fault else []):
                failed += 1
                print(f"FAIL {fault}: found {found}, expected {expected}")
    return len(FAULTS) + 1 - failed, failed


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--optimized", action="store_true")
    parser.add_argument("--self-test", action="store_true")
    parser.add_argument("build", type=pathlib.Path)
    options = parser.parse_args()
    files = [(options.build / "deberta", True), ((options.build / "libdeberta.so").resolve(), False)]
    passed = failed = 0
    for path, is_program in files:
        found = problems(path, is_program, options.optimized)
        for what in found:
            print(f"FAIL {path.name}: {what}")
        passed, failed = passed + (not found), failed + bool(found)
    if options.self_test:
        more, bad = self_test(shutil.which("gcc") or "cc")
        passed, failed = passed + more, failed + bad
    print(f"{passed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
