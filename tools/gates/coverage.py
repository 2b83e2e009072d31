#!/usr/bin/env python3
"""Which lines and branches of the library the tests run; the stage `coverage` of tools/gates/run_tests.py.

    tools/gates/coverage.py                      builds build-coverage, runs the tests that have not run on it, prints the table, compares
    tools/gates/coverage.py --seconds 100        the same, but begins no test after so long; a later call goes on
    tools/gates/coverage.py --uncovered PATH     also the lines below this path that no test ran, as blocks
    tools/gates/coverage.py --tests FILE:LINE    only which tests ran this line
    tools/gates/coverage.py --update             writes the figures to tests/coverage.tsv

A folder whose figure is more than MARGIN points below tests/coverage.tsv fails the run. Each test leaves what it ran in
build-coverage/runs. Lines of a template count once, whichever tier ran them; what is not compiled here (NEON, WebAssembly) does not count.

SPDX-License-Identifier: MIT
"""
import argparse
import collections
import concurrent.futures
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time

from testing import builds, counting, processes
from testing.processes import ROOT

FOLDER = "build-coverage"
FIGURES = os.path.join("tests", "coverage.tsv")
ROOMS = ("core", "simd", "train")
MARGIN = {"lines": 0.5, "branches": 1.0}  # points; what threads and signals leave to chance is a tenth of this
# Counters of threads must not lose a count, or gcov finds counts where nothing ran.
OPTIONS = ["-Dviz=disabled", "-Dmpi=disabled", "-Db_coverage=true", "-Doptimization=1", "-Dc_args=-fprofile-update=atomic"]


# ------------------------------------------------------------------------------------------------------------- running

TRAINING = ("cli train_limits", "cli train_memory")  # beside those of the suite "training"


def wanted(test):
    """What says something about the library. Not: tests of the tests, figures, which are not built here, and what takes minutes and runs
    nothing else of it: identity, shards."""
    if test.suites & {"unit", "golden", "kernels", "fuzz"}:
        return test.name not in ("checkasm catches broken kernels", "golden notices a flipped bit", "identity")
    return test.suites & {"training", "files"} and test.name not in ("cli bench_plot", "cli shards") or test.name in TRAINING


def build():
    steps = (builds.configure_command(FOLDER, OPTIONS), ["ninja", "-C", FOLDER])
    for command in steps:
        outcome = processes.execute(command)
        if outcome.status != 0:
            sys.exit(outcome.output + "\ncoverage.py: this failed: " + " ".join(command))


def newest_notes(place):
    """When the compiler last wrote what it knows of a file of the library: runs before that are of another one."""
    folders = ("libdeberta_core.a.p", "simd", os.path.join("tests", "stand_ins"))
    return max((os.path.getmtime(path) for folder in folders for path in files_below(os.path.join(place, folder), ".gcno")), default=0.0)


def files_below(place, ending):
    return sorted(os.path.join(folder, name) for folder, _, names in os.walk(place) for name in names if name.endswith(ending))


def run_file(test):
    return os.path.join(ROOT, FOLDER, "runs", re.sub(r"\W+", "_", test.name) + ".json")


def run_test(test):
    """Runs one test in which every program writes its counts into a folder of their own, and keeps what they say."""
    place = os.path.join(ROOT, FOLDER)
    counts = tempfile.mkdtemp(prefix="counts-", dir=place)
    quick = {} if test.name == "allocations" else {"DEBERTA_TEST_QUICK": "1"}  # each request that is refused is a line of its own
    outcome = processes.execute(test.command, {**test.environment, **quick, "GCOV_PREFIX": counts,
                                               "GCOV_PREFIX_STRIP": str(len(os.path.realpath(place).strip("/").split("/")))},
                                test.limit * builds.EMULATED_LIMIT, test.folder)
    passed, failed, _ = counting.count(outcome.output, outcome.status, test.tap)
    if failed:
        print(f"{test.name}: {passed} passed, {failed} failed\n{counting.failures_in(outcome.output)}", flush=True)
    for data in files_below(counts, ".gcda"):
        notes = data[:-5] + ".gcno"
        os.symlink(os.path.join(place, os.path.relpath(notes, counts)), notes)
    write_json(run_file(test), {"name": test.name, "failed": failed, "seconds": round(outcome.processor, 2),
                                "files": read_counts(files_below(counts, ".gcda"))})
    shutil.rmtree(counts)


def run_tests(tests, seconds):
    """Those that did not run on this build yet, several at once; returns how many are left."""
    os.makedirs(os.path.join(ROOT, FOLDER, "runs"), exist_ok=True)
    built, begin = newest_notes(os.path.join(ROOT, FOLDER)), time.monotonic()
    left = [test for test in tests if not os.path.exists(run_file(test)) or os.path.getmtime(run_file(test)) < built]
    left.sort(key=lambda test: test.priority)  # many short ones in a call

    def run_in_time(test):
        if time.monotonic() - begin >= seconds:
            return 1
        run_test(test)
        return 0
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        return sum(pool.map(run_in_time, left))


# ------------------------------------------------------------------------------------------------------------- reading

def write_json(path, value):
    with open(path + ".new", "w", encoding="utf-8") as out:
        json.dump(value, out)
    os.rename(path + ".new", path)


def of_the_library(path):
    """The path in the project, or None: notes name it as seen from the folder of the build. Loops that measure the peak of a tier lie in
    simd/, but only the program has them, and it runs those of the processor at hand."""
    path = os.path.normpath(os.path.join(ROOT, FOLDER, path))
    inside = os.path.relpath(path, ROOT)
    return inside if inside.split(os.sep)[0] in ROOMS and not os.path.basename(inside).startswith("peak_") else None


def read_counts(paths):
    """{file: {line: [how often it ran, [how often each branch was taken]]}}, added up over all objects that hold it."""
    found = {}
    for begin in range(0, len(paths), 100):
        said = subprocess.run(["gcov", "--json-format", "--stdout", "--branch-probabilities", *paths[begin:begin + 100]],
                              stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, check=True).stdout
        for row in objects_in(said):
            for file in row["files"]:
                name = of_the_library(file["file"])
                if name:
                    add_lines(found.setdefault(name, {}), file["lines"])
    return found


def objects_in(text):
    """The objects of JSON that follow each other, with or without line breaks between them."""
    decoder, at = json.JSONDecoder(), 0
    while text[at:].strip():
        row, end = decoder.raw_decode(text[at:].lstrip())
        at = len(text) - len(text[at:].lstrip()) + end
        yield row


def add_lines(lines, rows):
    for row in rows:
        add_line(lines, str(row["line_number"]), row["count"], [branch["count"] for branch in row["branches"]])


def add_line(lines, number, count, branches):
    total = lines.setdefault(number, [0, []])
    total[0] += count
    total[1] = [a + b for a, b in zip(total[1] + [0] * len(branches), branches + [0] * len(total[1]))][:max(len(total[1]), len(branches))]


def lines_with_code():
    """What exists, as the notes of the compiler say; a stand-in is the kernel of a tier that this machine need not have."""
    place = os.path.join(ROOT, FOLDER)
    for data in files_below(place, ".gcda"):
        os.remove(data)  # of a program that ran while others were built
    return read_counts([path for path in files_below(place, ".gcno") if os.sep + "tests" + os.sep not in path or "stand_in" in path])


def add_up(tests):
    """Of the lines with code what the tests ran; with the tests that failed."""
    found, failed = lines_with_code(), []
    for test in tests:
        if os.path.exists(run_file(test)):
            with open(run_file(test), encoding="utf-8") as run:
                run = json.load(run)
            failed += [test.name] * bool(run["failed"])
            for name, lines in run["files"].items():
                for number, (count, branches) in lines.items():
                    add_line(found.setdefault(name, {}), number, count, branches)
    return found, failed


# ------------------------------------------------------------------------------------------------------------- telling

def figures(found):
    """{folder: (lines, lines run, branches, branches taken)}, with a sum for each room."""
    sums = collections.defaultdict(lambda: [0, 0, 0, 0])
    for name, lines in found.items():
        for folder in {os.path.dirname(name), name.split(os.sep)[0]}:
            total = sums[folder]
            total[0] += len(lines)
            total[1] += sum(count > 0 for count, _ in lines.values())
            total[2] += sum(len(branches) for _, branches in lines.values())
            total[3] += sum(taken > 0 for _, branches in lines.values() for taken in branches)
    return dict(sorted(sums.items()))


def percent(part, whole):
    return 100 * part / whole if whole else 100.0


def table(sums):
    yield f"{'folder':20} {'lines':>7} {'run':>7} {'%':>6} {'branches':>9} {'taken':>7} {'%':>6}"
    for folder, (lines, ran, branches, taken) in sums.items():
        yield f"{folder:20} {lines:7} {ran:7} {percent(ran, lines):6.1f} {branches:9} {taken:7} {percent(taken, branches):6.1f}"


def committed_figures():
    with open(os.path.join(ROOT, FIGURES), encoding="utf-8") as rows:
        rows = [row.rstrip("\n").split("\t") for row in rows if not row.startswith("#")]
    return {row[0]: {"lines": float(row[1]), "branches": float(row[2])} for row in rows[1:]}


def write_figures(sums):
    with open(os.path.join(ROOT, FIGURES), "w", encoding="utf-8") as out:
        out.write("# Percent of lines and branches that the tests run: tools/gates/coverage.py --update\nfolder\tlines\tbranches\n")
        for folder, (lines, ran, branches, taken) in sums.items():
            out.write(f"{folder}\t{percent(ran, lines):.1f}\t{percent(taken, branches):.1f}\n")


def fallen(sums, committed):
    """A sentence for each figure below the committed one, and for each folder that only one of the two knows."""
    for folder in sorted(set(sums) | set(committed)):
        if folder not in sums or folder not in committed:
            yield f"{folder}: {'not' if folder in sums else 'only'} in {FIGURES} (tools/gates/coverage.py --update)"
            continue
        lines, ran, branches, taken = sums[folder]
        for what, now in (("lines", percent(ran, lines)), ("branches", percent(taken, branches))):
            if now < committed[folder][what] - MARGIN[what]:
                yield f"{folder}: {now:.1f} % of {what}, {committed[folder][what]:.1f} % are committed, {MARGIN[what]} points may be lost"


def uncovered_blocks(lines):
    """[(first line, last line)] that no test ran; lines without code between two of them belong to the block."""
    blocks, ran = [], True
    for number in sorted(lines, key=int):
        if lines[number][0] > 0:
            ran = True
        elif ran:
            blocks.append([int(number), int(number)])
            ran = False
        else:
            blocks[-1][1] = int(number)
    return blocks


def tell_uncovered(found, path):
    for name in sorted(name for name in found if name.startswith(path)):
        with open(os.path.join(ROOT, name), encoding="utf-8") as source:
            text = source.read().split("\n")
        for first, last in uncovered_blocks(found[name]):
            print(f"{name}:{first}-{last}: {text[first - 1].strip()}")


def tests_of_line(tests, name, number):
    """[(seconds, test)] that ran it, the quickest first."""
    runs = []
    for test in tests:
        if os.path.exists(run_file(test)):
            with open(run_file(test), encoding="utf-8") as run:
                run = json.load(run)
            if run["files"].get(name, {}).get(str(number), [0])[0] > 0:
                runs.append((run["seconds"], test.name))
    return sorted(runs)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=1e9)
    parser.add_argument("--uncovered", metavar="PATH")
    parser.add_argument("--tests", metavar="FILE:LINE")
    parser.add_argument("--update", action="store_true")
    options = parser.parse_args()
    os.chdir(ROOT)
    build()
    tests = [test for test in builds.listed_tests(FOLDER) if wanted(test)]
    if options.tests:
        for seconds, name in tests_of_line(tests, *options.tests.split(":")):
            print(f"{seconds:8.2f} s  {name}")
        return 0
    left = run_tests(tests, options.seconds)
    found, failed = add_up(tests)
    sums = figures(found)
    print("\n".join(table(sums)))
    if options.uncovered is not None:
        tell_uncovered(found, options.uncovered)
    if left:
        print(f"{left} of {len(tests)} tests have not run: call it again")
        return 75
    if options.update:
        write_figures(sums)
    faults = [f"failed: {name}" for name in failed] + list(fallen(sums, committed_figures()))
    print("\n".join([*faults, f"{2 * len(sums) - len(faults)} passed, {len(faults)} failed"]))
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
