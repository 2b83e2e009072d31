#!/usr/bin/env python3
"""The rules of the house, checked: who may include whom, which object may hold which instructions, and plain hygiene.

    tools/lint.py [BUILD_DIR]      prints each breach, ends with `N passed, N failed, N skipped`

The object rules need BUILD_DIR (default: build) and are skipped without it.
"""
import os
import re
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
ROOMS = ["core", "simd", "study", "bench", "viz", "cli", "include", "tests"]

# A room may include headers of these rooms (prefixes). Downwards only: cli -> study, bench, viz -> core -> the kernel table.
MAY_INCLUDE = {
    "include": [],
    "core/base": ["include/", "core/base/"],
    "core/io": ["include/", "core/base/", "core/io/"],
    "core/text": ["include/", "core/base/", "core/io/", "core/text/"],
    "core/model": ["include/", "core/"],
    "core": ["include/", "core/"],
    "simd": ["core/kernels.h", "simd/"],
    "viz": ["include/deberta.h", "core/base/status.h", "viz/"],
    "study": ["include/", "core/", "study/"],
    "bench": ["include/", "core/", "bench/"],
    "cli": ["include/", "core/", "study/", "bench/", "viz/", "cli/"],
    "tests": ROOMS,
}

# A library is known in one place only.
LIBRARY_HOMES = {
    r"cairo|pango": ["viz/draw_cairo.c"],
    r"png\.h": ["viz/png_metadata.c"],
    r"hwloc": ["core/base/topology.c"],
    r"sleef": [],
    r"zip\.h": ["core/io/torch_file.c"],
    r"sentencepiece_processor|sentencepiece\.pb": ["core/text/sentencepiece_shim.cc"],
    r"pcre2\.h": ["core/text/"],
    r"immintrin|arm_neon": ["simd/"],
    r"omp\.h": [],
}
SIMD_SYSTEM_HEADERS = {"stddef.h", "stdint.h", "stdbool.h", "math.h", "string.h", "assert.h", "immintrin.h", "arm_neon.h"}

failures, passes, skips = [], 0, 0


def check(fine, message):
    global passes
    if fine:
        passes += 1
    else:
        failures.append(message)


def tracked(*suffixes):
    out = subprocess.run(["git", "-C", ROOT, "ls-files", "-co", "--exclude-standard"], capture_output=True, text=True)
    return [f for f in out.stdout.split("\n") if f.endswith(suffixes) and os.path.isfile(os.path.join(ROOT, f))]


def read(path):
    with open(os.path.join(ROOT, path), encoding="utf-8", errors="replace") as f:
        return f.read()


def room_of(path):
    """The longest entry of MAY_INCLUDE that holds the file."""
    return max((r for r in MAY_INCLUDE if path.startswith(r + "/")), key=len, default=None)


def check_includes(path, text):
    room = room_of(path)
    for line, target in re.findall(r'^\s*(#\s*include\s*[<"]([^>"]+)[>"])', text, re.M):
        where = f"{path}: {line.strip()}"
        if '"' in line:
            if room:
                allowed = any(target.startswith(prefix) for prefix in MAY_INCLUDE[room])
                local = os.path.exists(os.path.join(ROOT, os.path.dirname(path), target)) and room == "tests"
                check(allowed or local, f"{where}: {room} may not include that (dependency direction)")
        else:
            for pattern, homes in LIBRARY_HOMES.items():
                if re.search(pattern, target) and not path.startswith("tests/"):
                    check(any(path.startswith(h) for h in homes), f"{where}: belongs in {homes or 'tests only'}")
            if room == "simd":
                check(target in SIMD_SYSTEM_HEADERS, f"{where}: not among the headers that kernels may use")


def check_hygiene(path, text):
    check("\t" not in text, f"{path}: a tab")
    check(not re.search(r"[ \r]+$", text, re.M), f"{path}: trailing white space")
    check(text.endswith("\n") or not text, f"{path}: no newline at the end")
    if path.endswith((".c", ".h", ".cc")):
        check("SPDX-License-Identifier: MIT" in text[:6000], f"{path}: no SPDX line")
        check(not re.search(r"^\s*#\s*if\s+0\b", text, re.M), f"{path}: #if 0")
        long = [n for n, l in enumerate(text.split("\n"), 1) if len(l) > 132]
        check(not long, f"{path}:{long[:1]}: longer than 132 columns")
    if path.startswith(("core/", "study/", "bench/", "viz/")) and path.endswith((".c", ".cc")):
        found = re.search(r"^[^/\n*]*\b(abort|exit|_exit|printf|puts|perror)\s*\(", text, re.M)
        allowed = path.startswith("bench/") and found and found.group(1) == "_exit"  # the child that measures peaks
        check(not found or allowed, f"{path}: the library must not {found and found.group(1)}")


def check_unique_names(paths):
    seen = {}
    for path in paths:
        name = os.path.basename(path)
        if name in ("meson.build", "README.md") or path.startswith(("tests/golden/", "models/")):
            continue
        check(name not in seen, f"{path}: the name is taken by {seen.get(name)}")
        seen[name] = path


def objects(build):
    for folder, _, files in os.walk(build):
        for f in files:
            if f.endswith(".o") and ".p" in folder and "meson-private" not in folder:
                yield os.path.join(folder, f)


def check_objects(build):
    """STYLE of the kernel objects: one exported symbol each; wide registers only where they belong."""
    for path in objects(build):
        name = os.path.relpath(path, build)
        disassembly = subprocess.run(["objdump", "-d", "--no-show-raw-insn", path], capture_output=True, text=True).stdout
        ymm, zmm = "%ymm" in disassembly, "%zmm" in disassembly
        simd = re.search(r"simd_(avx2|avx512|neon|scalar\w*)\.a\.p", name) or re.search(r"peak_(avx2|avx512)", name)
        tier = simd.group(1) if simd else ""
        if not name.startswith("tests") or "checkasm" not in name:
            check(not zmm or tier == "avx512", f"{name}: %zmm outside the avx512 tier")
            check(not ymm or tier in ("avx2", "avx512"), f"{name}: %ymm outside the avx tiers")
        if re.search(r"simd_\w+\.a\.p", name):
            exported = [l.split()[-1] for l in subprocess.run(["nm", "-g", "--defined-only", path], capture_output=True,
                                                              text=True).stdout.split("\n") if l.strip()]
            expected = "kernels_init_" + re.search(r"simd_(\w+)\.a\.p", name).group(1)
            check(exported == [expected], f"{name}: exports {exported}, expected only {expected}")
    library = os.path.join(build, "libdeberta.so")
    if os.path.exists(library):
        exported = [l.split()[-1] for l in subprocess.run(["nm", "-D", "--defined-only", library], capture_output=True,
                                                          text=True).stdout.split("\n") if l.strip()]
        strangers = [s for s in exported if not s.startswith("deberta_")]
        check(not strangers, f"libdeberta.so exports {strangers[:5]}: only deberta_* may leave the library")


def main():
    global skips
    build = sys.argv[1] if len(sys.argv) > 1 else os.path.join(ROOT, "build")
    code = tracked(".c", ".h", ".cc", ".py", ".sh", "meson.build", ".tsv.in")
    for path in code:
        text = read(path)
        check_hygiene(path, text)
        if path.endswith((".c", ".h", ".cc")):
            check_includes(path, text)
    check_unique_names([p for p in code if p.endswith((".c", ".h", ".cc"))])
    for path in tracked(""):
        size = os.path.getsize(os.path.join(ROOT, path))
        check(size <= 8_000_000, f"{path}: {size} bytes, 8 MB is the limit")
    if os.path.isdir(build):
        check_objects(build)
    else:
        skips += 1
    for failure in failures:
        print("lint:", failure)
    print(f"{passes} passed, {len(failures)} failed, {skips} skipped")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
