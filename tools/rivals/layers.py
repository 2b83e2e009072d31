"""Time against the number of layers, over several runs of one sweep.

    deberta bench synthetic:v3-base,vocab=1000 --depth 1-12 -n 16,128 --threads 1 -o run1.json        five or more times
    tools/peers.py layers run1.json run2.json ... > docs/benchmarks/amd-zen4-layers.csv
    tools/peers.py layers docs/benchmarks/amd-zen4-layers.csv

The table has means over the runs of their minima, which other work on the machine moves least, with 95 % t-intervals over runs; then of a
straight line of each run: what a layer takes, and what is left without layers (words, norms). SPDX-License-Identifier: MIT
"""
import json
import statistics

from rivals.results import print_table, read_rows, t_interval


def options(parser):
    parser.add_argument("files", nargs="+", help="a CSV file to be tabulated, or JSON files of runs to be collected")


def collect(paths):
    print("run,threads,n,layers,median_ms,minimum_ms,other_cores")
    for run_number, path in enumerate(paths, 1):
        with open(path, encoding="utf-8") as file:
            results = json.load(file)["results"]
        for one in sorted(results, key=lambda one: (one["threads"], one["n"], one["layers"])):
            times = [f"{1e3 * time:.4f}" for time in (one["median_s"], min(one["samples_s"]))]
            print(run_number, one["threads"], one["n"], one["layers"], *times, f"{one['other_cores']:.2f}", sep=",")


def tabulate(path):
    rows = [{name: float(value) for name, value in row.items()} for row in read_rows(path, ",")]
    times = {}  # times by kind, layers, run
    for row in sorted(rows, key=lambda row: (row["threads"], row["n"])):
        times.setdefault((row["threads"], row["n"]), {}).setdefault(int(row["layers"]), {})[row["run"]] = row["minimum_ms"]
    names = [f"{n:.0f} tokens, {threads:.0f} thread{'s' * (threads > 1)}" for threads, n in times]
    depths = sorted({layers for kind in times.values() for layers in kind})
    print_table(["layers", *(f"{name}, ms" for name in names)],
                [[layers, *(t_interval(list(kind[layers].values()), ".2f") for kind in times.values())] for layers in depths], words=())
    print()
    print_table(["tokens, threads", "a layer, ms", "without layers, ms", "farthest from the line, %"],
                [[name, *line_of(kind)] for name, kind in zip(names, times.values())])
    print(f"\n{len({row['run'] for row in rows})} runs; others used at most {max(row['other_cores'] for row in rows):.2f} cores.")


def line_of(kind):
    """Slope and height at 0 of each run's (layers, time) by least squares, and how far the means are from the mean line."""
    lines = [statistics.linear_regression(list(kind), [of_run[one] for of_run in kind.values()]) for one in sorted(kind[min(kind)])]
    slope, height = (statistics.mean(part) for part in zip(*lines))
    off = max(abs(statistics.mean(of_run.values()) / (height + slope * layers) - 1) for layers, of_run in kind.items())
    return [t_interval([line.slope for line in lines], ".3f"), t_interval([line.intercept for line in lines], ".3f"), f"{100 * off:.1f}"]


def run(arguments):
    if len(arguments.files) == 1 and arguments.files[0].endswith(".csv"):
        tabulate(arguments.files[0])
    else:
        collect(arguments.files)
    return 0
