#!/usr/bin/env python3
"""What one rank costs: the plain program and `mpirun -n 1 deberta-mpi`, in turns, at the same training and the same corpus.

    tools/measure_ranks.py [--build build] [--pairs 5] [--steps 12]

Prints, of a training, the median time of a step without the first, and of a corpus the median time that `encode` tells; and, of both, how much
longer the whole command takes with its launcher. Keep the machine alone. SPDX-License-Identifier: MIT
"""
import argparse
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
ENVIRONMENT = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1", "OMPI_MCA_hwloc_base_binding_policy": "none"}
LINES = "".join(f"the old sailor number {n} sold {n * 7 % 13} silver spoons to a stranger\n" for n in range(1200))


def run(program, words, folder):
    begin = time.monotonic()
    done = subprocess.run([*program, *words], cwd=folder, env={**os.environ, **ENVIRONMENT}, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"{' '.join(map(str, [*program, *words]))}\n{done.stderr}")
    return done.stderr, time.monotonic() - begin


def train(program, folder, out, steps):
    words = ["train", "mlm", ROOT / "models" / "demo", "--file", "texts.txt", "--sequence-tokens", "64", "--batch-sequences", "16", "--steps", str(steps), "--threads", "1"]
    _, whole = run(program, [*words, "--out", out], folder)
    seconds = [json.loads(line).get("seconds") for line in (folder / out / "log.jsonl").read_text().splitlines()]
    return statistics.median([value for value in seconds if value][1:]), whole


def encode(program, folder, out):
    said, whole = run(program, ["encode", ROOT / "models" / "demo", "--file", "texts.txt", "--threads", "1", "--out", f"{out}.npy"], folder)
    return float(re.search(r"tokens in ([\d.]+) s", said)[1]), whole


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--build", type=Path, default=ROOT / "build")
    parser.add_argument("--pairs", type=int, default=5)
    parser.add_argument("--steps", type=int, default=12)
    options = parser.parse_args()
    program = options.build.resolve() / "deberta"
    programs = {"plain": [program], "one rank": ["mpirun", "-n", "1", f"{program}-mpi"]}
    found = {}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "texts.txt").write_text(LINES)
        for pair in range(options.pairs):
            for which in programs if pair % 2 else reversed(programs):
                out = f"{which}-{pair}".replace(" ", "-")
                for task, times in (("train", train(programs[which], folder, out, options.steps)), ("encode", encode(programs[which], folder, out))):
                    found.setdefault((task, which), []).append(times)
    for task in ("train", "encode"):
        (plain, whole), (ranked, launched) = ([statistics.median(column) for column in zip(*found[task, which])] for which in programs)
        ratios = [b[0] / a[0] for a, b in zip(found[task, "plain"], found[task, "one rank"])]
        print(f"{task}: {plain:.4f} s and {ranked:.4f} s ({'a step' if task == 'train' else 'the corpus'}): {100 * (statistics.median(ratios) - 1):+.1f} % "
              f"(pairs {100 * (min(ratios) - 1):+.1f} to {100 * (max(ratios) - 1):+.1f} %); the launcher adds {launched - whole:.2f} s to the command")


if __name__ == "__main__":
    main()
