#!/usr/bin/env python3
"""What a change has cost or saved: tools/pair_ratios.py [--interval] docs/benchmarks/emerald-rapids-training.tsv

Columns NAME_before and NAME_after are times of one round. For every shape: the median of the rounds' ratios after / before, the smallest and
the largest, and the smallest times. --interval: the geometric mean of the ratios with its 95 % interval, over rounds drawn again 10,000
times, and medians of the times. SPDX-License-Identifier: MIT
"""
import argparse
import csv
import math
import random
import statistics

DRAWS = 10000


def mean_ratio(ratios):
    logs, draw = [math.log(ratio) for ratio in ratios], random.Random(1)
    means = sorted(statistics.fmean(draw.choices(logs, k=len(logs))) for _ in range(DRAWS))
    found = statistics.fmean(logs), means[DRAWS // 40], means[-1 - DRAWS // 40]
    return "{:.3f} ({:.3f} to {:.3f})".format(*map(math.exp, found))


def median_ratio(ratios):
    return f"{statistics.median(ratios):.2f} ({min(ratios):.2f} to {max(ratios):.2f})"


parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
parser.add_argument("file")
parser.add_argument("--interval", action="store_true")
options = parser.parse_args()
of_times, of_ratios = (statistics.median, mean_ratio) if options.interval else (min, median_ratio)
with open(options.file, encoding="utf-8") as file:
    rows = list(csv.DictReader((line for line in file if not line.startswith("#")), delimiter="\t"))
names = [title[:-len("_before")] for title in rows[0] if title.endswith("_before")]
print("| shape | rounds | " + " | ".join(f"{name.replace('_', ' ')}: {'ms' if rows[0].get('unit') == 'ms' else 's'} | after / before" for name in names) + " |")
print("|---|--:" + "|--:|--:" * len(names) + "|")
for shape in dict.fromkeys(row["shape"] for row in rows):
    rounds = [row for row in rows if row["shape"] == shape]
    cells = [shape, str(len(rounds))]
    for name in names:
        before, after = ([float(row[f"{name}_{when}"]) for row in rounds] for when in ("before", "after"))
        ratios = [b / a for a, b in zip(before, after)]
        cells += [f"{of_times(before):.3f}, {of_times(after):.3f}", of_ratios(ratios)]
    print("| " + " | ".join(cells) + " |")
