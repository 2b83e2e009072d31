"""How often `bench compare` calls a program different from itself: sweeps of one binary, taken in turns for two sides, compared, again and again.

    tools/peers.py itself build/deberta           20 comparisons of 7 with 7 runs; exit 1 if more than 5 % of the points are called
    tools/peers.py itself build/deberta --runs 4 --repetitions 5 -n 64,128

SPDX-License-Identifier: MIT
"""
import json
import tempfile
from pathlib import Path

from rivals.turns import Runner, rotated

SWEEP = ("-t", "1", "--reps", "7", "--no-peak", "-q")
RUNNER = Runner()


def options(parser):
    parser.add_argument("program")
    parser.add_argument("--model", default="synthetic:v3-xsmall,layers=2,vocab=500")
    parser.add_argument("-n", "--tokens", default="16,40,64,128")
    parser.add_argument("--runs", type=int, default=7, help="on each side")
    parser.add_argument("--repetitions", type=int, default=20)


def compared(arguments, folder, repetition):
    """Rows of `bench compare` of two sides of the same program."""
    paths = {side: [folder / f"{side}{run}.json" for run in range(arguments.runs)] for side in "ab"}
    for run in range(arguments.runs):
        for side in rotated("ab", run + repetition):
            RUNNER.run(arguments.program, "bench", arguments.model, "-n", arguments.tokens, *SWEEP, "-o", paths[side][run])
    found = json.loads(RUNNER.run(arguments.program, "bench", "compare", *paths["a"], "with", *paths["b"], "--json").output)["points"]
    assert all(row["verdict"] != "not decided" for row in found), found
    return found


def run(arguments):
    called = points = tables = 0
    with tempfile.TemporaryDirectory() as folder:
        for repetition in range(arguments.repetitions):
            rows = compared(arguments, Path(folder), repetition)
            differ = sum(row["verdict"] in ("faster", "slower") for row in rows)
            called, points, tables = called + differ, points + len(rows), tables + (differ > 0)
            shares = ", ".join(f"{row['ratio']:.3f}" for row in rows)
            print(f"{repetition + 1}: {differ} of {len(rows)} called different; ratios {shares}", flush=True)
    print(f"{called} of {points} points called different ({100 * called / points:.1f} %), in {tables} of {arguments.repetitions} tables")
    return int(called > 0.05 * points)
