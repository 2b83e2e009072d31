#!/usr/bin/env python3
"""The mean of every column of a table of losses: studies/column_means.py docs/studies/data/grid.csv

A column CELL@CONTEXT#SEED holds the losses of one model on every held-out text (docs/studies/data/README.md).
SPDX-License-Identifier: MIT
"""
import sys

with open(sys.argv[1], encoding="utf-8") as file:
    titles, *rows = [line.rstrip("\n").split(",") for line in file if not line.startswith("#")]
for k, title in enumerate(titles):
    cell, _, rest = title.partition("@")
    context, _, seed = rest.partition("#")
    print(f"{cell} at {context} seed {seed}: {sum(float(row[k]) for row in rows) / len(rows):.4f}")
