#!/usr/bin/env python3
"""Time against the number of layers, over several runs of one sweep.

    deberta bench synthetic:v3-base,vocab=1000 --depth 1-12 -n 16,128 --threads 1 -o run1.json        five or more times
    tools/layer_times.py collect run1.json run2.json ... > docs/benchmarks/amd-zen4-layers.csv
    tools/layer_times.py docs/benchmarks/amd-zen4-layers.csv

The table has means over the runs of their minima, which other work on the machine moves least, with 95 % t-intervals over runs; then of a straight line of each
run: what a layer takes, and what is left without layers (words, norms). SPDX-License-Identifier: MIT
"""
import csv
import json
import math
import statistics
import sys

STUDENT = {2: 12.706, 3: 4.303, 4: 3.182, 5: 2.776, 6: 2.571, 7: 2.447, 8: 2.365, 9: 2.306, 10: 2.262}  # 97.5 % point by number of runs


def collect(paths):
    print("run,threads,n,layers,median_ms,minimum_ms,other_cores")
    for run, path in enumerate(paths, 1):
        with open(path, encoding="utf-8") as file:
            results = json.load(file)["results"]
        for one in sorted(results, key=lambda one: (one["threads"], one["n"], one["layers"])):
            print(run, one["threads"], one["n"], one["layers"], *(f"{1e3 * time:.4f}" for time in (one["median_s"], min(one["samples_s"]))), f"{one['other_cores']:.2f}", sep=",")


def interval(values, form):
    half = STUDENT[len(values)] * statistics.stdev(values) / math.sqrt(len(values))
    return f"{form} ({form} to {form})" % (statistics.mean(values), statistics.mean(values) - half, statistics.mean(values) + half)


def line(points):
    """Slope and height at 0 of (layers, time) by least squares."""
    (x, y), mean = zip(*points), statistics.mean
    slope = sum((a - mean(x)) * (b - mean(y)) for a, b in points) / sum((a - mean(x)) ** 2 for a in x)
    return slope, mean(y) - slope * mean(x)


def table(path):
    with open(path, encoding="utf-8") as file:
        rows = [{name: float(value) for name, value in row.items()} for row in csv.DictReader(file)]
    kinds = sorted({(row["threads"], row["n"]) for row in rows})
    times = {}  # by kind, layers, run
    for row in rows:
        times.setdefault((row["threads"], row["n"]), {}).setdefault(int(row["layers"]), {})[row["run"]] = row["minimum_ms"]
    names = [f"{n:.0f} tokens, {threads:.0f} thread{'s' * (threads > 1)}" for threads, n in kinds]
    print("| layers | " + " | ".join(f"{name}, ms" for name in names) + " |")
    print("|--:" * (len(kinds) + 1) + "|")
    for layers in sorted({layers for kind in kinds for layers in times[kind]}):
        print(f"| {layers} | " + " | ".join(interval(list(times[kind][layers].values()), "%.2f") for kind in kinds) + " |")
    print("\n| | a layer, ms | without layers, ms | farthest from the line, % |")
    print("|---|--:|--:|--:|")
    for name, kind in zip(names, kinds):
        runs = sorted(times[kind][min(times[kind])])
        lines = [line([(layers, of_run[run]) for layers, of_run in times[kind].items()]) for run in runs]
        slope, height = (statistics.mean(part) for part in zip(*lines))
        off = max(abs(statistics.mean(of_run.values()) / (height + slope * layers) - 1) for layers, of_run in times[kind].items())
        print(f"| {name} | {interval([one for one, _ in lines], '%.3f')} | {interval([other for _, other in lines], '%.3f')} | {100 * off:.1f} |")
    print(f"\n{len({row['run'] for row in rows})} runs; others used at most {max(row['other_cores'] for row in rows):.2f} cores.")


if __name__ == "__main__":
    if len(sys.argv) > 2 and sys.argv[1] == "collect":
        collect(sys.argv[2:])
    elif len(sys.argv) == 2:
        table(sys.argv[1])
    else:
        sys.exit(__doc__)
