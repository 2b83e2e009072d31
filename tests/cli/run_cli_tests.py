#!/usr/bin/env python3
"""Tests of the program from outside: what it prints, how it ends, what it writes and what it leaves behind.

    run_cli_tests.py --program build/deberta [--cases NAME,...] [--only WORD] [--jobs N] [--tap] [--update] [--show] [--list]

A test is a function that takes a `Bench`: what the file cases_NAME.py calls test_*, and what its tests(settings) yields with a name.
Functions in the file's REQUIRES are called before each test_* and may skip it.
--cases: only these files. --only: the test of that name, or those whose names contain the word. --list prints their names and runs none.
--tap: for meson, as the Test Anything Protocol has it. --update writes the golden texts in expected/ anew; --show prints every message that
wrong use brings, to be read through.

Every test runs in a process and a working folder of its own. helpers.py has what tests share. The last line is
`N passed, N failed, N skipped`. SPDX-License-Identifier: MIT
"""
import argparse
import concurrent.futures
import csv
import fcntl
import glob
import importlib
import json
import multiprocessing
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import traceback
from unittest import SkipTest

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
sys.path.insert(0, HERE)
sys.dont_write_bytecode = True


class Result:
    """out and err are texts whatever their bytes are; strict() is for tests in which they must be UTF-8."""

    def __init__(self, command, code, out, err):
        self.command, self.code, self.bytes = command, code, (out, err)
        self.out, self.err = (text.decode(errors="replace") for text in self.bytes)

    def strict(self):
        return tuple(text.decode() for text in self.bytes)

    def describe(self):
        return f"$ {self.command[:500]}\n[exit {self.code}]\nstdout: {self.out[-1500:]!r}\nstderr: {self.err[-1500:]!r}"


class Bench:
    """What a test works with: the program, a folder of its own, which is the working folder, and the places of the test data."""

    def __init__(self, settings, folder):
        self.program, self.golden, self.folder = settings.program, settings.golden, folder
        self.update, self.show = settings.update, settings.show
        self.root, self.shared_folder = ROOT, pathlib.Path(settings.shared)

    def command(self, arguments):
        return [self.program] + [str(a) if not isinstance(a, bytes) else a for a in arguments]

    def environment(self, extra):
        return {**{k: v for k, v in os.environ.items() if k not in ("DEBERTA_ISA", "COLUMNS")}, "LC_ALL": "C.UTF-8", **(extra or {})}

    def start(self, *arguments, env=None, **kwargs):
        return subprocess.Popen(self.command(arguments), cwd=self.folder, env=self.environment(env), **kwargs)

    def run(self, *arguments, stdin=b"", env=None, timeout=120, stdout=subprocess.PIPE, **kwargs):
        done = subprocess.run(self.command(arguments), cwd=self.folder, input=stdin, stdout=stdout, stderr=subprocess.PIPE,
                              env=self.environment(env), timeout=timeout, **kwargs)
        shown = " ".join(["deberta"] + [repr(str(a)) if not str(a) or " " in str(a) else str(a) for a in arguments])
        return Result(shown, done.returncode, done.stdout or b"", done.stderr)

    def expect(self, code, *arguments, **kwargs):
        """Runs the program, which must end with that code."""
        result = self.run(*arguments, **kwargs)
        assert result.code == code, f"expected exit {code}\n{result.describe()}"
        return result

    def fine(self, *arguments, **kwargs):
        return self.expect(0, *arguments, **kwargs)

    def json(self, *arguments, **kwargs):
        return json.loads(self.fine(*arguments, "--json", **kwargs).out)

    def path(self, name):
        return os.path.join(self.folder, name)

    def write(self, name, content):
        """A file of texts or bytes; its path."""
        with open(self.path(name), "wb") as file:
            file.write(content if isinstance(content, bytes) else content.encode())
        return self.path(name)

    def append(self, name, content):
        with open(self.path(name), "ab") as file:
            file.write(content if isinstance(content, bytes) else content.encode())

    def flip(self, name, *places):
        """Changes one bit of the bytes there, counted from the end where they are negative; the file stays the same one."""
        content = bytearray(self.bytes(name))
        for at in places:
            content[at] ^= 1
        self.write(name, bytes(content))

    def read(self, name):
        with open(self.path(name), encoding="utf-8") as file:
            return file.read()

    def bytes(self, name):
        with open(self.path(name), "rb") as file:
            return file.read()

    def load(self, name):
        """What a JSON file holds."""
        return json.loads(self.read(name))

    def objects(self, name):
        """What a file of JSON holds, an object a line."""
        with open(self.path(name), encoding="utf-8") as file:
            return [json.loads(line) for line in file]

    def table(self, name):
        """The rows of a CSV file, as dictionaries."""
        with open(self.path(name), encoding="utf-8", newline="") as file:
            return list(csv.DictReader(file))

    def files(self):
        return sorted(os.listdir(self.folder))

    def shared(self, name, make):
        """A folder or file that several tests only read: the first that asks makes it, with make(path)."""
        path, unfinished = self.shared_folder / name, self.shared_folder / "unfinished" / name
        with open(self.shared_folder / (name + ".lock"), "w", encoding="ascii") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not path.exists():
                shutil.rmtree(unfinished, ignore_errors=True)  # of one that failed
                unfinished.parent.mkdir(exist_ok=True)
                make(unfinished)
                unfinished.rename(path)
        return path

    def expect_text(self, name, text):
        """Compares with the golden text of that name."""
        path = os.path.join(HERE, "expected", name + ".txt")
        if self.update:
            with open(path, "w", encoding="utf-8") as file:
                file.write(text)
            return
        assert os.path.exists(path), f"{path} is missing; run_cli_tests.py --update makes it"
        with open(path, encoding="utf-8") as file:
            expected = file.read()
        assert text == expected, f"expected/{name}.txt differs\n--- expected\n{expected}\n--- found\n{text}"


# ----------------------------------------------------------------------------------------------------------- collecting

def case_files():
    return sorted(os.path.basename(path)[len("cases_"):-len(".py")] for path in glob.glob(os.path.join(HERE, "cases_*.py")))


def behind(requirements, test):
    def run(bench):
        for requirement in requirements:
            requirement(bench)
        test(bench)
    return run


def tests_of(name, settings):
    """(name, function) of every test of cases_NAME.py."""
    module = importlib.import_module("cases_" + name)
    for word, function in vars(module).items():
        if word.startswith("test_") and function.__module__ == module.__name__:
            yield f"{name}/{word[len('test_'):].replace('_', '-')}", behind(getattr(module, "REQUIRES", ()), function)
    if hasattr(module, "tests"):
        yield from module.tests(settings)


def collect(settings):
    tests = {}
    for name in settings.cases:
        for test_name, test in tests_of(name, settings):
            assert test_name not in tests, f"two tests are called '{test_name}'"
            if settings.only in test_name:
                tests[test_name] = test
    return {settings.only: tests[settings.only]} if settings.only in tests else tests


# -------------------------------------------------------------------------------------------------------------- running

SETTINGS, TESTS = None, {}  # set before the workers are forked


def place_of(failure):
    """File and line of the test that failed, not of what it called to compare."""
    frames = [f for f in traceback.extract_tb(failure.__traceback__) if os.path.basename(f.filename).startswith("cases_")]
    where = (frames or traceback.extract_tb(failure.__traceback__))[-1]
    return f"{os.path.basename(where.filename)}:{where.lineno}: {failure or where.line}"


def run_one(name):
    folder = tempfile.mkdtemp(prefix="deberta-cli-")
    os.chdir(folder)
    try:
        TESTS[name](Bench(SETTINGS, folder))
        return name, "passed", ""
    except SkipTest as reason:
        return name, "skipped", str(reason)
    except AssertionError as failure:
        return name, "failed", place_of(failure)
    except Exception:  # whatever a test meets is its failure
        return name, "failed", traceback.format_exc()
    finally:
        os.chdir("/")
        shutil.rmtree(folder, ignore_errors=True)


def run_all(jobs):
    """Outcomes as they come."""
    if jobs == 1:
        yield from map(run_one, TESTS)
        return
    with concurrent.futures.ProcessPoolExecutor(jobs, mp_context=multiprocessing.get_context("fork")) as pool:
        for done in concurrent.futures.as_completed([pool.submit(run_one, name) for name in TESTS]):
            yield done.result()


def print_tap(number, name, outcome, text):
    name = name.replace("#", "_")
    if outcome == "failed":
        print(f"not ok {number} - {name}", *text.split("\n"), sep="\n# ")
    else:
        print(f"ok {number} - {name}" + (f" # SKIP {text}" if outcome == "skipped" else ""))
    sys.stdout.flush()


def parse_arguments():
    parser = argparse.ArgumentParser()
    parser.add_argument("--program", required=True)
    parser.add_argument("--golden", default=os.path.join(ROOT, "tests", "golden"))
    parser.add_argument("--cases", default=",".join(case_files()))
    parser.add_argument("--only", default="")
    parser.add_argument("--jobs", type=int, default=2)
    for flag in ("--tap", "--update", "--show", "--list"):
        parser.add_argument(flag, action="store_true")
    settings = parser.parse_args()
    settings.program, settings.golden = os.path.abspath(settings.program), os.path.abspath(settings.golden)
    settings.cases = settings.cases.split(",")
    unknown = set(settings.cases) - set(case_files())
    if unknown:
        parser.error(f"--cases: no {', '.join(sorted(unknown))}; there are {', '.join(case_files())}")
    return settings


def main():
    # A shell ignores it for what it runs in the background, and so would every program that is tested.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    global SETTINGS, TESTS
    settings, begin, counts = parse_arguments(), time.monotonic(), {"passed": 0, "failed": 0, "skipped": 0}
    with tempfile.TemporaryDirectory(prefix="deberta-cli-shared-") as settings.shared:
        SETTINGS, TESTS = settings, collect(settings)
        if settings.list:
            print(*TESTS, sep="\n")
            return 0
        if settings.tap:
            print(f"1..{len(TESTS)}")
        for name, outcome, text in run_all(1 if settings.show else settings.jobs):
            counts[outcome] += 1
            if settings.tap:
                print_tap(sum(counts.values()), name, outcome, text)
            elif outcome != "passed":
                print(f"{outcome.upper()} {name}: {text}", flush=True)
    if not settings.tap:
        print(f"{time.monotonic() - begin:.0f} s")
        print("{passed} passed, {failed} failed, {skipped} skipped".format(**counts))
    return 1 if counts["failed"] or not counts["passed"] + counts["skipped"] else 0


if __name__ == "__main__":
    sys.exit(main())
