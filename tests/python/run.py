#!/usr/bin/env python3
"""The Python package as somebody gets it: a wheel is built, installed into a virtual environment of its own, and tested there.

    tests/python/run.py [--work FOLDER] [--prepare | --part K/N | --engines | --sanitized LIBRARY] [pytest arguments]

--prepare makes the environment and installs the wheel, and tests nothing. With what was prepared --part runs the tests without most of
what takes long: of that the K-th of N parts. LIBRARY: one that clang's address sanitizer was built into; the environment that is there then runs the tests of the library with it,
without the program. --engines: the tests in Ray, datasets and datatrove, with the wheel that is there, in an environment of their own. FOLDER (default build-python) keeps the environments, which are made anew when their requirements change. Where packages cannot be installed,
everything is skipped with a sentence. The last line is `N passed, N failed, N skipped`.

SPDX-License-Identifier: MIT
"""
import argparse
import hashlib
import os
import re
import shutil
import subprocess
import sys
import venv
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
sys.path.insert(0, str(ROOT / "tools" / "gates"))
from machine import even_parts
LIMIT = 1200  # seconds for the installation of packages
# Files of tests that take long and know no arithmetic of their own, in seconds: parts are made of them that take equally long.
SECONDS = {"test_accelerate.py": 65, "test_attribution.py": 30, "test_comparison.py": 60, "test_folder_of_wheel.py": 25, "test_hub_twins.py": 100,
           "test_mutations.py": 55, "test_notebook.py": 35, "test_peers_quick.py": 20, "test_reproduce.py": 20, "test_studies.py": 95, "test_studies_of_models.py": 25, "test_wheel.py": 55}


def skip(sentence):
    print(f"skipped: {sentence}\n0 passed, 0 failed, 1 skipped")
    sys.exit(0)


def environment(work, engines, prepared):
    """Python of a virtual environment that has the requirements."""
    requirements = HERE / ("requirements-engines.txt" if engines else "requirements.txt")
    text = requirements.read_bytes()
    stamp, folder = work / ("engines.sha256" if engines else "requirements.sha256"), work / ("engines" if engines else "venv")
    python = folder / "bin" / "python"
    digest = hashlib.sha256(text).hexdigest()
    if stamp.exists() and stamp.read_text() == digest and python.exists():
        return python
    if prepared:
        skip(f"nothing is prepared in {work}: tests/python/run.py --prepare does it")
    shutil.rmtree(folder, ignore_errors=True)
    try:
        venv.create(folder, with_pip=True)
    except (subprocess.CalledProcessError, OSError):
        skip("this Python makes no virtual environments (Debian: apt-get install python3-venv)")
    # What is imported is compiled then; the rest, which is most of it, never.
    command = [python, "-m", "pip", "install", "-q", "--no-compile", "--only-binary=:all:", "-r", requirements]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT)
    except subprocess.TimeoutExpired:
        skip(f"packages were not installed within {LIMIT} s")
    if done.returncode:
        skip("packages cannot be installed here: " + (done.stderr.strip().splitlines() or ["pip said nothing"])[-1])
    stamp.write_text(digest)
    return python


def build_and_install(python, work, engines):
    """Installs a fresh wheel, or among engines the one that is there; None, or what went wrong."""
    wheels = work / "wheels"
    inside = dict(os.environ, PATH=f"{python.parent}{os.pathsep}{os.environ['PATH']}")
    commands = [[python, "-m", "pip", "install", "-q", "--no-deps", "--force-reinstall", "--no-index", "--find-links", wheels, "deberta_c"]]
    if not engines:
        shutil.rmtree(wheels, ignore_errors=True)
        commands.insert(0, [python, "-m", "pip", "wheel", "-q", "--no-build-isolation", "--no-deps", "-w", wheels, ROOT])
    elif not list(wheels.glob("*.whl")):
        skip(f"no wheel in {wheels}: tests/python/run.py without --engines makes one")
    for command in commands:
        done = subprocess.run(command, capture_output=True, text=True, env=inside)
        if done.returncode:
            return done.stdout[-3000:] + done.stderr[-3000:]
    return None


def part_of(files, part):
    """All that do not take long, and of the others the K-th of N parts."""
    wanted, parts = (int(number) for number in part.split("/"))
    long = sorted(file for file in files if file.name in SECONDS)
    return sorted(set(files) - set(long)) + even_parts(long, parts, lambda file: SECONDS[file.name])[wanted - 1]


def sanitized(library):
    """Environment in which an interpreter that knows nothing of the sanitizer loads it. Leaks are looked for by test_no_leak: an
    interpreter leaves much behind at its end."""
    where = subprocess.run(["clang", "-print-file-name=libclang_rt.asan-x86_64.so"], capture_output=True, text=True)
    runtime = where.stdout.strip()
    if where.returncode or not os.path.isabs(runtime):
        skip("clang has no shared address sanitizer here")
    return {"DEBERTA_LIBRARY": str(library), "LD_PRELOAD": runtime, "ASAN_OPTIONS": "detect_leaks=0:allocator_may_return_null=1",
            "UBSAN_OPTIONS": "halt_on_error=1:print_stacktrace=1"}


def main():
    parser = argparse.ArgumentParser(add_help=True)
    parser.add_argument("--work", type=Path, default=ROOT / "build-python")
    what = parser.add_mutually_exclusive_group()
    what.add_argument("--prepare", action="store_true")
    what.add_argument("--part")
    what.add_argument("--sanitized", type=Path)
    what.add_argument("--engines", action="store_true")
    options, rest = parser.parse_known_args()
    work = options.work.resolve()
    work.mkdir(parents=True, exist_ok=True)
    python = environment(work, options.engines, options.part)
    problem = None if options.sanitized or options.part else build_and_install(python, work, options.engines)
    if problem:
        print(problem + "\n0 passed, 1 failed, 0 skipped")
        return 1
    if options.prepare:
        print("1 passed, 0 failed, 0 skipped")
        return 0
    # Not from the source tree, where the package would be found instead of the installed one; PATH has its tools.
    own = dict(os.environ, PATH=f"{python.parent}{os.pathsep}{os.environ['PATH']}", DEBERTA_WHEELS=str(work / "wheels"))
    # One processor is what the schedule of the suite gives it; tests that want more threads say so.
    # Compiled modules are kept next to the environments: a process that imports transformers compiles for 12 s without them.
    own.update(OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1", PYTHONPYCACHEPREFIX=str(work / "bytecode"))
    for name in ("PYTHONPATH", "PYTHONDONTWRITEBYTECODE", "DEBERTA_LIBRARY", "DEBERTA_PROGRAM"):
        own.pop(name, None)
    if options.sanitized:
        own.update(sanitized(options.sanitized.resolve()))
        rest += ["-k", "not program and not leak and not memory and not overhead and not parallel and not interrupt and not fork and not shrink"]  # it has a handler of SIGBUS of its own
    engines = HERE / "test_engines.py"
    files = [file for file in HERE.glob("test_*.py") if file != engines]
    if options.engines:
        tests = [engines]
    elif options.sanitized:
        tests = [HERE / "test_model.py"]
    elif options.part:
        tests = part_of(files, options.part)
    else:
        tests = sorted(files)
    done = subprocess.run([python, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-W", "ignore", "-rs", *tests, *rest], cwd=work, env=own,
                          capture_output=True, text=True)
    crash = done.stderr.find("Fatal Python error")  # the threads come first, then hundreds of modules
    print(done.stdout[-20000:] + (done.stderr[-3000:] if crash < 0 else done.stderr[crash:crash + 6000]))
    counts = {word: int(number) for number, word in re.findall(r"(\d+) (passed|failed|skipped|error)", done.stdout.rsplit("\n", 2)[-2] if done.stdout else "")}
    failed = counts.get("failed", 0) + counts.get("error", 0)
    print(f"{counts.get('passed', 0)} passed, {failed or int(done.returncode != 0)} failed, {counts.get('skipped', 0)} skipped")
    return int(done.returncode != 0)


if __name__ == "__main__":
    sys.exit(main())
