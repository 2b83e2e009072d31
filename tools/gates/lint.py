#!/usr/bin/env python3
"""The rules of the house, checked: who may include whom, which object may hold which instructions, what is cited, and plain hygiene.

    tools/gates/lint.py [--objects] [--format] [BUILD_DIR]

Prints each breach, and last how many lines, files and objects it looked at. The object rules need BUILD_DIR (default: build) and are
left out without it. --objects: only these. --format: also what clang-format 14 says (.clang-format).

SPDX-License-Identifier: MIT
"""
import json
import os
import re
import shutil
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
ROOMS = ["core", "simd", "train", "output", "analysis", "check", "bench", "viz", "program", "include", "tests"]
SOURCE_FOLDERS = [*ROOMS, "docs", "tools"]

# A room may include headers of these rooms (prefixes). Downwards only: the program's rooms -> what analyses, measures, draws -> core -> the kernel table.
# The program's rooms know the library by its header alone. Of the core they use what is no model: helpers, and files in and out.
PROGRAM = ["include/", "core/base/", "core/io/", "output/", "analysis/", "check/", "bench/", "viz/", "program/frame/"]
MAY_INCLUDE = {
    "include": ["deberta.h", "deberta_training.h", "deberta_unstable.h"],
    "core/base": ["include/", "core/base/"],
    "core/answer": ["include/", "core/base/", "core/answer/"],
    "core/io": ["include/", "core/base/", "core/io/"],
    "core/text": ["include/", "core/base/", "core/io/", "core/text/"],
    "core/model": ["include/", "core/base/", "core/io/", "core/text/", "core/model/", "core/activation_list.h", "core/kernels.h", "core/integer_kernels.h", "core/dispatch.h"],
    "core/load": ["include/", "core/base/", "core/io/", "core/text/", "core/model/", "core/load/", "core/activation_list.h", "core/kernels.h", "core/integer_kernels.h", "core/dispatch.h"],
    "core/encode": ["include/", "core/base/", "core/io/", "core/text/", "core/model/", "core/load/", "core/encode/", "core/activation_list.h", "core/kernels.h", "core/integer_kernels.h", "core/dispatch.h"],
    "train/state": ["include/", "core/", "train/state/"],
    "train/backward": ["include/", "core/", "train/state/", "train/backward/"],
    "train/step": ["include/", "core/", "train/state/", "train/backward/", "train/step/"],
    "train/attribution": ["include/", "core/", "train/state/", "train/backward/", "train/step/", "train/attribution/"],
    "train/data": ["include/", "core/", "train/state/", "train/data/"],
    "train/pieces": ["include/", "core/", "train/state/", "train/pieces/"],
    "train/run": ["include/", "core/", "train/"],
    "train": ["include/", "core/", "train/"],
    "core": ["include/", "core/base/", "core/activation_list.h", "core/kernels.h", "core/integer_kernels.h", "core/dispatch.h", "core/part_check.h"],
    "simd": ["core/kernels.h", "core/integer_kernels.h", "core/base/tiers.h", "simd/"],
    "output": ["include/", "core/base/", "core/io/", "output/"],
    "viz": ["include/deberta.h", "core/base/memory.h", "core/base/numbers.h", "core/base/text.h", "core/base/numbers.h", "core/base/status.h", "core/base/text.h", "core/base/text.h", "core/io/atomic_file.h", "output/", "viz/"],
    # The second opinion: it reads files and configurations, but nothing of what it judges.
    "analysis/reference": ["output/scope.h", "include/", "core/activation_list.h", "core/base/", "core/io/", "core/model/config.h", "core/load/synthetic.h", "core/load/synthetic.h", "analysis/reference/"],
    "analysis": ["output/scope.h", "include/", "core/", "analysis/"],
    "check": ["output/scope.h", "include/", "core/", "analysis/", "check/"],
    # What a kernel is asked, and its exact answer: for those who check and for those who measure.
    "check/kernels": ["output/scope.h", "include/", "core/", "train/state/counters.h", "analysis/reference/exact_activation.h", "check/kernels/"],
    "bench": ["include/", "core/", "train/", "output/", "analysis/reference/sleef_math.h", "check/kernels/", "simd/peak.h", "bench/"],  # SLEEF: rows beside ours
    "program/frame": PROGRAM,
    "program": [*PROGRAM, "program/", "train/run/trainer_options.h"],  # the list that rows of the command line are made of
    "tests": ROOMS,
}

# What a room may call without including it: the table of kernels is filled by the tiers, which know the table alone, and
# the peaks of tiers are measured.
MAY_CALL = {"core": ["simd/"], "bench": ["simd/"]}

# A library is known in one place only.
LIBRARY_HOMES = {
    r"cairo|pango": ["viz/draw_cairo.c"],
    r"png\.h": ["viz/png_metadata.c"],
    r"mpi\.h": ["program/cluster/cluster_mpi.c"],
    r"hwloc": ["core/base/topology.c"],
    r"sleef": ["analysis/reference/sleef_math.c"],
    r"zip\.h": ["core/io/zip_reader.c"],
    r"zlib\.h": ["program/report/live_parts.c"],
    r"pcre2\.h": ["core/text/"],
    r"immintrin|arm_neon|wasm_simd128": ["simd/", "core/base/sha256.c"],
    r"omp\.h": ["core/base/executor_create.c"],
}
SIMD_SYSTEM_HEADERS = {"stddef.h", "stdint.h", "stdbool.h", "math.h", "string.h", "assert.h", "immintrin.h", "arm_neon.h", "wasm_simd128.h"}

# What ends or flushes a stream, and where alone: other places ask for too little (core/base/text.h). The generator of the page's arrays
# runs on the building machine, by itself.
STREAM_ENDS = re.compile(r"\b(fclose|fflush|fcloseall|freopen)\s*\(")
STREAM_HOMES = ["core/base/text.c", "program/report/embed_files.c"]
STREAM_ROOMS = ("core/", "train/", "output/", "analysis/", "check/", "bench/", "viz/", "program/")

# The library reads and prints fractions between plain_numbers_begin and _end alone, because the host program's locale would give them a comma.
# Apart from that stand functions that are called between the two, and files that print for people only. DEBERTA_FAIL makes sentences for people.
PLAIN_NUMBERS = re.compile(r"\b(?:strtod|strtof|strtold|atof)(?:_l)?\s*\(|"
                           r"\b(?:v?(?:f|d|sn?|as)?printf|[fs]?scanf)\s*\([^;]*?%[-+ #0-9.*lL]*[aefgAEFG]")
NUMBERS_HOME = "core/base/numbers.h"
NUMBERS_INSIDE = {("train/run/run_evaluation.c", "write_measure")}
NUMBERS_FOR_PEOPLE = {"core/base/memory.c"}

# Who ends a process: for want of memory, through one hook; a child. The library (core, simd, train) never does.
MAY_END = {"output/scope.c": {"exit"}, "bench/child.c": {"_exit"}}

# Comments that need the declaration under them to be understood, and the rooms that have none.
FRAGMENT = re.compile(r"/\*+ (?:Of|The same|Behind|Beside) ")
WHOLE_SENTENCES = ("include/", "core/", "simd/", "train/", "output/", "viz/", "program/")

failures, left_out, passes = [], [], 0


def check(fine, message):
    global passes
    if fine:
        passes += 1
    else:
        failures.append(message)


def git_files(*options):
    out = subprocess.run(["git", "-C", ROOT, "ls-files", *options], capture_output=True, text=True)
    return out.stdout.split("\n") if out.returncode == 0 else []


def list_sources():
    """Files of the project, relative to its root: what git knows, and what is new in the folders of sources. A model or a Python
    environment that somebody has put elsewhere in the tree is none. In an unpacked archive, what is in the folders of sources."""
    known = [name for name in git_files() if name]
    names = known + git_files("-o", "--exclude-standard", "--", *SOURCE_FOLDERS) if known else []
    for source in SOURCE_FOLDERS if not known else ():
        for folder, inside, files in os.walk(os.path.join(ROOT, source)):
            inside[:] = [d for d in inside if d != "__pycache__"]
            names += [os.path.relpath(os.path.join(folder, f), ROOT) for f in files]
    return [name for name in names if os.path.isfile(os.path.join(ROOT, name))]


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
        of_the_tree = next((t for t in (target, "include/" + target) if os.path.exists(os.path.join(ROOT, t))), None)
        if '"' in line or of_the_tree:
            if room:
                target = target if '"' in line else of_the_tree  # in angle brackets as well
                allowed = any(target.startswith(prefix) for prefix in MAY_INCLUDE[room])
                local = os.path.exists(os.path.join(ROOT, os.path.dirname(path), target)) and room == "tests"
                check(allowed or local, f"{where}: {room} may not include that (dependency direction)")
        else:
            for pattern, homes in LIBRARY_HOMES.items():
                if re.search(pattern, target) and not path.startswith("tests/"):
                    check(any(path.startswith(h) for h in homes), f"{where}: belongs in {homes or 'tests only'}")
            if room == "simd":
                check(target in SIMD_SYSTEM_HEADERS, f"{where}: not among the headers that kernels may use")


def unit_of(path):
    """foo.c and foo.h are one unit."""
    return os.path.splitext(path)[0]


def include_arrows(paths):
    """{unit: {unit whose header it includes}}"""
    arrows = {unit_of(path): set() for path in paths}
    for path in paths:
        for target in re.findall(r'^\s*#\s*include\s*"([^"]+)"', read(path), re.M):
            beside = os.path.normpath(os.path.join(os.path.dirname(path), target))
            arrows[unit_of(path)] |= {unit_of(t) for t in (target, beside) if unit_of(t) in arrows}
        arrows[unit_of(path)].discard(unit_of(path))
    return arrows


def check_circles(arrows, what):
    """No unit needs itself by way of others. What is left when units without arrows are taken away again and again lies on a circle or
    between two; from there, each step to a unit that is left too, one comes back to where one was."""
    left = {unit: set(targets) for unit, targets in arrows.items()}
    while free := [unit for unit, targets in left.items() if not targets & left.keys()]:
        for unit in free:
            del left[unit]
    trail = []
    while left and (not trail or trail[-1] not in trail[:-1]):
        trail.append(min(left[trail[-1]] & left.keys()) if trail else min(left))
    check(not left, f"a circle of {what}: {' -> '.join(trail[trail.index(trail[-1]):] if trail else [])}")


def check_hygiene(path, text):
    check("\t" not in text, f"{path}: a tab")
    check(not re.search(r"[ \r]+$", text, re.M), f"{path}: trailing white space")
    check(text.endswith("\n") or not text, f"{path}: no newline at the end")
    if not path.endswith("meson.build"):
        check("SPDX-License-Identifier: MIT" in text[:6000], f"{path}: no SPDX line")
    if path.endswith((".c", ".h")):
        check(not re.search(r"^\s*#\s*if\s+0\b", text, re.M), f"{path}: #if 0")
        check(path.startswith("check/") or "MUTATION" not in text, f"{path}: MUTATION outside check/: nothing else knows of deliberate mistakes")
        opening = FRAGMENT.search(text) if path.startswith(WHOLE_SENTENCES) else None
        check(not opening, f"{path}: a comment that begins with {opening and opening[0]!r} is no sentence without what it stands before")
    if path.endswith(".c"):
        head = re.match(r"/\*(.*?)\*/", text, re.S)
        words = head[1].replace("SPDX-License-Identifier: MIT", "").replace("*", "").split() if head else []
        check(len(words) > 3, f"{path}: the first comment does not say what the file is for")
    if path.startswith(("core/", "simd/", "output/", "analysis/", "check/", "bench/", "viz/", "train/")) and path.endswith(".c"):
        found = set(re.findall(r"^[^/\n*]*\b(abort|exit|_exit|printf|puts|putchar|perror)\s*\(", text, re.M))
        found -= MAY_END.get(path, set())
        check(not found, f"{path}: must not {', '.join(sorted(found))}: the library hands errors up, the program's rooms end it through output/scope.h")


def without_comments(text):
    return re.sub(r"/\*.*?\*/|//[^\n]*", "", text, flags=re.S)


def check_streams(path, text):
    """Every stream is flushed and ended by the functions that ask whether all of it was written."""
    if path.startswith(STREAM_ROOMS) and path not in STREAM_HOMES:
        found = sorted(set(STREAM_ENDS.findall(without_comments(text))))
        check(not found, f"{path}: {', '.join(found)}: streams are flushed and ended by core/base/text.h")


def check_plain_numbers(path, text):
    """Numbers in the library's files have a point in every locale: what reads or prints fractions does so in a function that begins plain numbers."""
    if not path.startswith(("core/", "train/")) or path == NUMBERS_HOME or path in NUMBERS_FOR_PEOPLE:
        return
    for body in re.split(r"^}", without_comments(text), flags=re.M):
        name = re.findall(r"^\w[^\n;]*?(\w+)\(", body, re.M)
        if "plain_numbers_begin" in body or (path, name[-1] if name else "") in NUMBERS_INSIDE:
            continue
        found = PLAIN_NUMBERS.search(body)
        check(not found, f"{path}: {found.group()[:40] if found else ''}: numbers are read and printed between plain_numbers_begin and _end ({NUMBERS_HOME})")


def check_format(paths):
    """clang-format's opinion, of the one version whose opinion counts."""
    program = shutil.which("clang-format-14") or shutil.which("clang-format")
    if not program or " 14." not in subprocess.run([program, "--version"], capture_output=True, text=True).stdout:
        left_out.append("the format, clang-format 14 is not installed")
        return
    paths = [path for path in paths if not path.startswith("simd/tmpl/")]  # set by hand: clang-format takes the unrolling macros for statements
    said = subprocess.run([program, "--dry-run", "-Werror", *paths], cwd=ROOT, capture_output=True, text=True)
    breaches = set(re.findall(r"^(\S+?):\d+:\d+: error:", said.stderr, re.M))
    check((said.returncode == 0) == (not breaches), f"clang-format ended with {said.returncode}: {said.stderr[-500:]}")
    for path in paths:
        check(path not in breaches, f"{path}: not as clang-format 14 would have it")


def check_unique_names(paths):
    seen = {}
    for path in paths:
        name = os.path.basename(path)
        if name in ("meson.build", "README.md") or path.startswith(("tests/golden/", "models/")):
            continue
        check(name not in seen, f"{path}: the name is taken by {seen.get(name)}")
        seen[name] = path


def check_include_order(path, text):
    """A header is included once; quoted ones that stand together are in order. The kernels' templates have an order of their own."""
    blocks = [re.findall(r'^#include (["<][^">]+[">])', block, re.M) for block in re.findall(r"(?:^#include [^\n]*\n)+", text, re.M)]
    names = [name for block in blocks for name in block]
    check(len(names) == len(set(names)), f"{path}: includes a header twice")
    if not path.startswith("simd/"):
        check(all(block == sorted(block) for block in blocks if all(name[0] == '"' for name in block)), f"{path}: its quoted includes are not in order")


FILES_OF_A_NAME = 3


def check_static_names(texts):
    """A profile and a back trace name functions, not files. {path: text}"""
    files = {}
    for path, text in texts.items():
        if path.endswith(".c") and not path.startswith(("tests/", "simd/", "docs/")):
            for name in set(re.findall(r"^static (?:[\w ]+?[ *]+)(\w+)\(", text, re.M)):
                files.setdefault(name, []).append(path)
    for name, paths in sorted(files.items()):
        check(len(paths) <= FILES_OF_A_NAME, f"{len(paths)} files have a static function {name}: name it after its file ({', '.join(paths[:4])}, ...)")


def check_tools_listed(paths, page):
    """tools/README.md says of each file of tools/ what it does, and of no other."""
    listed = re.findall(r"^\| `([^`]+)` \| \S", page, re.M)
    there = {path[len("tools/"):] for path in paths if path.startswith("tools/")} - {"README.md"}
    for name in sorted(there | set(listed)):
        check(name in there and listed.count(name) == 1, f"tools/README.md: {name} is {'not a file' if name not in there else f'listed {listed.count(name)} times'}")


def check_citations(paths):
    """Every `SPEC 4.3` names a heading of docs/specification.md."""
    headings = set(re.findall(r"^#+ (\d+(?:\.\d+)?|Appendix [A-Z])\b", read("docs/specification.md"), re.M))
    cited = 0
    for path in paths:
        for numbers in re.findall(r"\bSPEC(?:'s)? (\d+(?:\.\d+)?(?:(?:, | and | to )\d+(?:\.\d+)?)*|Appendix [A-Z])\b", read(path)):
            for number in re.split(", | and | to ", numbers):
                cited += 1
                check(number in headings, f"{path}: cites SPEC {number}, which is no heading of docs/specification.md")
    check(cited > 50, f"{cited} citations of the specification found: too few to be all")


def objects(build):
    for folder, _, files in os.walk(build):
        for f in files:
            if f.endswith(".o") and folder.endswith(".p") and "meson-private" not in folder:
                yield os.path.join(folder, f)


def output_of(*command):
    """Standard output of a tool that must work."""
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def symbols(*command):
    return [line.split()[-1] for line in output_of("nm", "--defined-only", *command).split("\n") if line.strip()]


# What an object may hold, by tier: "sse" the base instruction set, "vex" AVX encodings of 128 bits (what -mfma brings), then wider.
WIDTHS = ["sse", "vex", "ymm", "zmm"]
PEAK_WIDTH = {"scalar": "vex"}
STAND_IN = "_stand_in"


def tier_widths(build):
    """Of the tiers that were built, and on x86 of the stand-ins of tests: those of their parts."""
    widths = {line.split()[0]: line.split()[1] for line in read(os.path.join(build, "simd/tiers.txt")).split("\n") if line.strip()}
    stand_ins = {name[len("stand_in_"):-2] for name in os.listdir(os.path.join(ROOT, "tests/stand_ins")) if name.startswith("stand_in_")}
    x86 = os.uname().machine == "x86_64"
    return {**widths, **{part + STAND_IN: widths[part] for part in stand_ins if x86 and part in widths}}


def widest(path):
    code = output_of("objdump", "-d", "--no-show-raw-insn", path)
    if "%zmm" in code:
        return "zmm"
    if "%ymm" in code:
        return "ymm"
    return "vex" if re.search(r"\tv[a-z0-9]+ .*%xmm", code) else "sse"


def check_objects(build):
    """One exported symbol in each kernel object; wide registers and AVX encodings only where they belong."""
    found, width_of = [], tier_widths(os.path.abspath(build))
    for path in objects(build):
        name = os.path.relpath(path, build)
        simd = re.search(r"libsimd_(\w+)\.a\.p", name)
        peak = re.search(r"libpeak_(\w+)\.a\.p", name)
        if os.uname().machine == "x86_64":
            allowed = width_of[simd.group(1)] if simd else PEAK_WIDTH.get(peak.group(1), width_of.get(peak.group(1))) if peak else "sse"
            used = widest(path)
            check(WIDTHS.index(used) <= WIDTHS.index(allowed), f"{name}: {used} instructions, only {allowed} belong there")
            # A check that cannot see wide registers would pass everything.
            check(not simd or used == allowed, f"{name}: no {allowed} instructions in their own tier")
        if simd:
            found.append(simd.group(1))
            exported = symbols("-g", path)
            check(exported == ["kernels_init_" + simd.group(1)], f"{name}: exports {exported}, expected only its kernels_init_")
    expected = sorted(width_of)
    check(sorted(found) == expected, f"{build}: kernel objects of {sorted(found)}, expected {expected}")
    check_exports(symbols("-D", os.path.join(build, "libdeberta.so")))


PUBLIC_HEADERS = [f"include/deberta{part}.h" for part in ("", "_unstable", "_training")]


def check_exports(exported):
    """The stable interface and what the Python package needs beyond it leave the shared library, and nothing else."""
    stable, unstable, training = ({*re.findall(r"^DEBERTA_API [^;(]*?\b(deberta_\w+)\(", read(header), re.M)} for header in PUBLIC_HEADERS)
    check(not training, f"include/deberta_training.h: {sorted(training)} may change in any version: DEBERTA_STATIC_API")
    for name in sorted(unstable):
        check(f'"{name[len("deberta_"):]}": "' in read("python/deberta_c/_abi.py"), f"include/deberta_unstable.h: {name} is not called by the Python package: DEBERTA_STATIC_API")
    check(stable and set(exported) == stable | unstable, f"libdeberta.so: exports differ from DEBERTA_API in the headers: {sorted(set(exported) ^ (stable | unstable))[:8]}")


def reaches(room, target):
    """Whether a room may include another, directly or by way of others."""
    seen, waiting = set(), [room]
    while waiting:
        here = waiting.pop()
        if here not in seen:
            seen.add(here)
            waiting += [r for r in MAY_INCLUDE if any((r + "/").startswith(prefix) for prefix in MAY_INCLUDE[here])]
    return target in seen


def global_names(build):
    """Of all units: {name: units whose objects define it}, {name: units that take it from elsewhere}."""
    with open(os.path.join(build, "compile_commands.json"), encoding="utf-8") as f:
        commands = json.load(f)
    units = {}
    for command in commands:
        source = os.path.relpath(os.path.join(command["directory"], command["file"]), ROOT)
        path = os.path.join(build, command["output"])
        if room_of(source) and os.path.exists(path):
            units[path] = unit_of(source)
    defined, needed = {}, {}
    for line in output_of("nm", "-A", "-g", *units).split("\n"):
        if line.strip():
            path, kind, name = line.split(":")[0], line.split()[-2], line.split()[-1]
            (needed if kind == "U" else defined).setdefault(name, set()).add(units[path])
    return defined, needed


def call_arrows(defined, needed):
    """{(unit, unit): names that the first takes from the second}, of all units but tests. A name that several units define (a main) says
    nothing."""
    arrows = {}
    for name in needed.keys() & defined.keys():
        owners = {unit for unit in defined[name] if room_of(unit) != "tests"}
        for user in needed[name] - owners if len(owners) == 1 else ():
            if room_of(user) != "tests":
                arrows.setdefault((user, *owners), set()).add(name)
    return arrows


def check_unused(defined, needed):
    """What only its own file uses is static, what nobody uses is not there. The public header is for users elsewhere, and modules for
    browsers are built apart. A build without tests, without figures or without SLEEF has not all users."""
    has_tests = any(room_of(unit) == "tests" for unit in set().union(*needed.values()))
    has_figures = any("viz/draw_cairo" in unit for unit in set().union(*defined.values()))
    has_sleef = any(name.startswith("Sleef_") for name in needed)
    if not (has_tests and has_figures and has_sleef):
        left_out.append("functions that nobody uses, the build has not all parts")
        return
    public = set(re.findall(r"\bdeberta_\w+", "".join(map(read, PUBLIC_HEADERS))))
    public |= set(re.findall(r"\b\w+(?=\()", "".join(map(read, (f"wasm/{name}" for name in sorted(os.listdir(os.path.join(ROOT, "wasm"))) if name.endswith(".c"))))))
    for name, owners in sorted(defined.items()):
        if name != "main" and name not in public and all(room_of(unit) != "tests" for unit in owners):
            check(needed.get(name, set()) - owners, f"{', '.join(sorted(owners))}.c: {name} is used in no other file: make it static, or delete it")


def check_calls(build):
    """Calls go where includes may go. Functions of the public header may be called by whoever may include it, unless the room that has
    them lies above the caller's."""
    includes = include_arrows([path for path in list_sources() if path.endswith((".c", ".h"))])
    defined, needed = global_names(build)
    check_unused(defined, needed)
    calls = call_arrows(defined, needed)
    check(len(calls) > 500, f"{len(calls)} calls between units found: too few to be all")
    for (user, owner), names in sorted(calls.items()):
        room = room_of(user)
        open_rooms = MAY_INCLUDE[room] + MAY_CALL.get(room, [])
        allowed = room == room_of(owner) or any(owner.startswith(unit_of(prefix)) for prefix in open_rooms)
        public = "include/" in open_rooms and not reaches(room_of(owner), room)
        strangers = sorted(name for name in names if not (allowed or (public and name.startswith("deberta_"))))
        check(not strangers, f"{user}.c calls {', '.join(strangers)} of {owner}.c: {room} may not include that (dependency direction)")
        includes.setdefault(user, set()).add(owner)
    check_circles(includes, "includes and calls")


def check_sizes(paths):
    for path in paths:
        size = os.path.getsize(os.path.join(ROOT, path))
        most = 18 if path.startswith("models/") else 8
        check(size <= most * 1_000_000, f"{path}: {size} bytes, {most} MB is the limit")


def check_sources(format_too):
    everything = list_sources()
    code = [path for path in everything if path.endswith((".c", ".h", ".py", ".sh", ".js", ".css", ".html", "meson.build"))]
    for path in code:
        text = read(path)
        check_hygiene(path, text)
        if path.endswith((".c", ".h")):
            check_includes(path, text)
            check_include_order(path, text)
            check_streams(path, text)
            check_plain_numbers(path, text)
    c_files = [path for path in code if path.endswith((".c", ".h"))]
    check_circles(include_arrows(c_files), "includes")
    check_unique_names(c_files)
    check_static_names({path: read(path) for path in c_files})
    check_tools_listed(everything, read("tools/README.md"))
    check_citations(code + [path for path in everything if path.endswith((".md", ".tsv"))])
    if format_too:
        check_format(c_files)
    check(len(code) > 100, f"{len(code)} source files found: too few to be all")
    check_sizes(everything)


def main():
    options = {argument for argument in sys.argv[1:] if argument.startswith("--")}
    folders = [argument for argument in sys.argv[1:] if argument not in options]
    if options - {"--objects", "--format"} or len(folders) > 1:
        print(__doc__, file=sys.stderr)
        return 2
    build = folders[0] if folders else os.path.join(ROOT, "build")
    if "--objects" not in options:
        check_sources("--format" in options)
    if os.path.exists(os.path.join(build, "libdeberta.so")):
        check_objects(build)
        check_calls(build)
    else:
        left_out.append(f"the objects, {build} has no libdeberta.so")
    for failure in failures:
        print("lint:", failure)
    print(f"lint: {passes + len(failures)} places looked at, {len(failures)} breaches" + "".join(f"; left out: {rule}" for rule in left_out))
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
