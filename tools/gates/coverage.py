#!/usr/bin/env python3
"""Lines and branches of the library that the tests run, by gcovr; the nightly stage `coverage` of tools/gates/run_tests.py.

    tools/gates/coverage.py                 builds build-coverage, runs the tests, prints a table, and fails below tests/coverage.tsv
    tools/gates/coverage.py --suite unit    runs only what `meson test` takes for these words, and asks for no floor
    tools/gates/coverage.py --none          runs no test: what was run by hand in build-coverage counts
    tools/gates/coverage.py --update        also writes the figures, as the new floors

Lines and branches that no test runs stand in build-coverage/lines.txt and branches.txt: `diff` says what a change of tests has lost. Lines of a
template count once, whichever tier ran them; what is not compiled here (NEON, WebAssembly) does not count.

SPDX-License-Identifier: MIT
"""
import collections
import json
import os
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
FOLDER, FLOORS = "build-coverage", os.path.join("tests", "coverage.tsv")
MARGIN = (0.5, 1.0)  # points of lines, of branches; a tenth of this is due to chance in threads and signals
# Thread counters must be exact, or gcov reports counts where nothing ran.
OPTIONS = ["-Dtests=enabled", "-Dviz=disabled", "-Dmpi=disabled", "-Db_coverage=true", "-Doptimization=1", "-Dc_args=-fprofile-update=atomic"]
# Each refused request for memory reaches lines of its own, so this test runs whole; the others run with fewer sizes.
WHOLE = ["allocations"]
QUICK = ["--setup", "quick"]
OF_THE_LIBRARY = [f"--suite={suite}" for suite in ("unit", "golden", "kernels", "fuzz", "files", "sampled")]
# Loops that measure a tier's peak are in simd/, but only the program contains them, and it runs only those of this processor.
GCOVR = ["gcovr", "--filter", "(core|simd|train)/", "--exclude", "simd/.*/peak_", "--exclude", "simd/tmpl/peak_", "-j", str(os.cpu_count())]


def run(command, **about):
    return subprocess.run(command, check=True, **about)


def counts_below(folder):
    return [os.path.join(place, name) for place, _, names in os.walk(folder) for name in names if name.endswith(".gcda")]


def run_tests(words):
    if not os.path.exists(os.path.join(FOLDER, "build.ninja")):
        run(["meson", "setup", FOLDER, *OPTIONS])
    for path in counts_below(FOLDER):
        os.remove(path)
    run(["ninja", "-C", FOLDER, "--quiet"])
    ended = [subprocess.run(["meson", "test", "-C", FOLDER, "--no-rebuild", "--quiet", "--print-errorlogs", *chosen], check=False).returncode
             for chosen in ([[*QUICK, *words]] if words else [WHOLE, [*QUICK, *OF_THE_LIBRARY]])]
    return ["a test failed"] * any(ended)


def figures():
    """Returns {folder: [lines, lines run, branches, branches taken]}, with a sum for each top folder."""
    counts, lines, branches, summary = (os.path.join(FOLDER, name) for name in ("counts.json", "lines.txt", "branches.txt", "summary.json"))
    run([*GCOVR, FOLDER, "--json", counts])
    run([*GCOVR, "--add-tracefile", counts, "--txt", lines, "--json-summary", summary])
    run([*GCOVR, "--add-tracefile", counts, "--branches", "--txt", branches])
    sums = collections.defaultdict(lambda: [0, 0, 0, 0])
    with open(summary, encoding="utf-8") as summary:
        for file in json.load(summary)["files"]:
            for folder in {os.path.dirname(file["filename"]), file["filename"].split("/")[0]}:
                for k, what in enumerate(("line_total", "line_covered", "branch_total", "branch_covered")):
                    sums[folder][k] += file[what]
    return dict(sorted(sums.items()))


def percent(part, whole):
    return 100 * part / whole if whole else 100.0


def floors():
    with open(FLOORS, encoding="utf-8") as rows:
        rows = [row.split("\t") for row in rows if not row.startswith(("#", "folder"))]
    return {folder: (float(lines), float(branches)) for folder, lines, branches in rows}


def write_floors(sums):
    with open(FLOORS, "w", encoding="utf-8") as out:
        out.write("# Percent of lines and branches that the tests run: tools/gates/coverage.py --update\nfolder\tlines\tbranches\n")
        for folder, (lines, ran, branches, taken) in sums.items():
            out.write(f"{folder}\t{percent(ran, lines):.1f}\t{percent(taken, branches):.1f}\n")


def fallen(sums, committed):
    """Yields a sentence for each folder below its floor, and for each that only one of the two lists has."""
    for folder in sorted(set(sums) ^ set(committed)):
        yield f"{folder}: {'not' if folder in sums else 'only'} in {FLOORS} (tools/gates/coverage.py --update)"
    for folder in sorted(set(sums) & set(committed)):
        lines, ran, branches, taken = sums[folder]
        for what, now, floor, margin in zip(("lines", "branches"), (percent(ran, lines), percent(taken, branches)), committed[folder], MARGIN):
            if now < floor - margin:
                yield f"{folder}: {now:.1f} % of {what}, {floor:.1f} % are committed, {margin} points may be lost"


def main(words):
    os.chdir(ROOT)
    chosen = [word for word in words if word not in ("--none", "--update")]
    faults = [] if "--none" in words else run_tests(chosen)
    sums = figures()
    print(f"{'folder':20} {'lines':>7} {'run':>7} {'%':>6} {'branches':>9} {'taken':>7} {'%':>6}")
    for folder, (lines, ran, branches, taken) in sums.items():
        print(f"{folder:20} {lines:7} {ran:7} {percent(ran, lines):6.1f} {branches:9} {taken:7} {percent(taken, branches):6.1f}")
    if "--update" in words:
        write_floors(sums)
    faults += [] if chosen else fallen(sums, floors())
    print("\n".join([*faults, f"{2 * len(sums) - len(faults)} passed, {len(faults)} failed"]))
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
