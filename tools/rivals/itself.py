"""How often `bench compare` calls a program different from itself: sweeps of one binary for two sides, in turns A B B A, compared, again and again.

    tools/peers.py itself build/deberta           20 comparisons of 8 with 8 runs; exit 1 if more than 5 % of the points are called
    tools/peers.py itself build/deberta --runs 4 --repetitions 5 -n 64,128
    tools/peers.py itself before/deberta --beside after/deberta --repetitions 1 --out R      two programs, whose table is printed; R keeps the runs

SPDX-License-Identifier: MIT
"""
import json
import tempfile
from pathlib import Path

from rivals.turns import Runner, rotated

SWEEP = ("-t", "1", "--reps", "7", "--no-peak", "-q")
RUNNER = Runner()
LEVEL = 0.05


def options(parser):
    parser.add_argument("program")
    parser.add_argument("--model", default="synthetic:v3-xsmall,layers=2,vocab=500")
    parser.add_argument("-n", "--tokens", default="16,40,64,128")
    parser.add_argument("--beside", help="another program: what is called different then is no fault")
    parser.add_argument("--runs", type=int, default=8, help="on each side; eight pairs can call a single point of up to six")
    parser.add_argument("--repetitions", type=int, default=20)
    parser.add_argument("--out", type=Path, help="a folder that keeps the runs")


def compared(arguments, folder, repetition):
    """Returns the points of `bench compare` for both sides. The sides alternate in beginning a turn."""
    programs = {"a": arguments.program, "b": arguments.beside or arguments.program}
    paths = {side: [folder / f"{repetition}{side}{run}.json" for run in range(arguments.runs)] for side in programs}
    for run in range(arguments.runs):
        for side in rotated("ab", run + repetition):
            RUNNER.run(programs[side], "bench", arguments.model, "-n", arguments.tokens, *SWEEP, "-o", paths[side][run])
    command = [arguments.program, "bench", "compare", *paths["a"], "with", *paths["b"]]
    if arguments.beside:
        print(RUNNER.run(*command, "--any-environment").output)
    found = json.loads(RUNNER.run(*command, "--any-environment", "--json").output)["points"]
    assert all(row["verdict"] != "not decided" for row in found), found
    return found


def run(arguments):
    called = points = tables = 0
    by_runs = by_pairs = 0
    with tempfile.TemporaryDirectory() as temporary:
        folder = arguments.out or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        for repetition in range(arguments.repetitions):
            rows = compared(arguments, folder, repetition)
            differ = sum(row["verdict"] in ("faster", "slower") for row in rows)
            called, points, tables = called + differ, points + len(rows), tables + (differ > 0)
            by_runs += sum(row["p"] <= LEVEL for row in rows)
            by_pairs += sum(row["pairs_p"] is not None and row["pairs_p"] <= LEVEL for row in rows)
            shares = ", ".join(f"{row['ratio']:.3f}" for row in rows)
            print(f"{repetition + 1}: {differ} of {len(rows)} called different by {rows[0]['decided_by']}; ratios {shares}", flush=True)
    print(f"{called} of {points} points called different ({100 * called / points:.1f} %), in {tables} of {arguments.repetitions} tables; "
          f"p at most {LEVEL}: {by_runs} by runs, {by_pairs} by pairs")
    return int(called > LEVEL * points and not arguments.beside)
