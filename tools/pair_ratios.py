#!/usr/bin/env python3
"""What a change has cost or saved: tools/pair_ratios.py docs/benchmarks/emerald-rapids-training.tsv

Columns NAME_before and NAME_after are times of one round. For every shape: the median of the rounds' ratios after / before, the smallest and
the largest, and the smallest times. SPDX-License-Identifier: MIT
"""
import csv
import statistics
import sys

with open(sys.argv[1], encoding="utf-8") as file:
    rows = list(csv.DictReader((line for line in file if not line.startswith("#")), delimiter="\t"))
names = [title[:-len("_before")] for title in rows[0] if title.endswith("_before")]
print("| shape | rounds | " + " | ".join(f"{name.replace('_', ' ')}: s | after / before" for name in names) + " |")
print("|---|--:" + "|--:|--:" * len(names) + "|")
for shape in dict.fromkeys(row["shape"] for row in rows):
    rounds = [row for row in rows if row["shape"] == shape]
    cells = [shape, str(len(rounds))]
    for name in names:
        before, after = ([float(row[f"{name}_{when}"]) for row in rounds] for when in ("before", "after"))
        ratios = [b / a for a, b in zip(before, after)]
        cells += [f"{min(before):.3f}, {min(after):.3f}", f"{statistics.median(ratios):.2f} ({min(ratios):.2f} to {max(ratios):.2f})"]
    print("| " + " | ".join(cells) + " |")
