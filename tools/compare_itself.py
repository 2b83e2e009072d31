#!/usr/bin/env python3
"""How often `bench compare` calls a program different from itself: sweeps of one binary, taken in turns for two sides, compared, again and again.

tools/compare_itself.py build/deberta                       20 comparisons of 7 with 7 runs; exit 1 if more than 5 % of the points are called
tools/compare_itself.py build/deberta --runs 4 --repetitions 5 -n 64,128

SPDX-License-Identifier: MIT
"""
import argparse
import json
import os
import subprocess
import sys
import tempfile


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("program")
    parser.add_argument("--model", default="synthetic:v3-xsmall,layers=2,vocab=500")
    parser.add_argument("-n", "--tokens", default="16,40,64,128")
    parser.add_argument("--runs", type=int, default=7, help="on each side")
    parser.add_argument("--repetitions", type=int, default=20)
    settings = parser.parse_args()
    called = points = tables = 0
    with tempfile.TemporaryDirectory() as folder:
        for repetition in range(settings.repetitions):
            sides = {"a": [], "b": []}
            for run in range(2 * settings.runs):
                side = "ab"[(run + repetition) % 2]
                path = os.path.join(folder, f"{side}{run}.json")
                subprocess.run([settings.program, "bench", settings.model, "-n", settings.tokens, "-t", "1", "--reps", "7", "--no-peak", "-q", "-o", path], check=True)
                sides[side].append(path)
            done = subprocess.run([settings.program, "bench", "compare", *sides["a"], "with", *sides["b"], "--json"], check=True, stdout=subprocess.PIPE)
            rows = json.loads(done.stdout)["points"]
            differ = sum(row["verdict"] in ("faster", "slower") for row in rows)
            assert all(row["verdict"] != "not decided" for row in rows), rows
            called, points, tables = called + differ, points + len(rows), tables + (differ > 0)
            ratios = ", ".join(f"{row['ratio']:.3f}" for row in rows)
            print(f"{repetition + 1}: {differ} of {len(rows)} called different; ratios {ratios}", flush=True)
    print(f"{called} of {points} points called different ({100 * called / points:.1f} %), in {tables} of {settings.repetitions} tables")
    sys.exit(called > 0.05 * points)


if __name__ == "__main__":
    main()
