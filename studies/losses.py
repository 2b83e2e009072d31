"""Tables of losses of models that were trained alike, as train_grid.py and train_studies.py write them: what `grid` and `clipping` share.

SPDX-License-Identifier: MIT
"""
import math
from typing import NamedTuple

import study
import numpy as np


class Cell(NamedTuple):
    """Models of the same settings and other random numbers: columns NAME#1, NAME#2 ..."""

    losses: np.ndarray  # of each text, the mean over the seeds
    seeds: int
    lowest: float  # means over the texts of the best and the worst seed
    highest: float


def command_line(documentation):
    parser = study.command_line(documentation)
    parser.add_argument("losses", metavar="LOSSES", help="a table of losses: a row a text, a column a model")
    return parser


def read(path):
    """{name: Cell} in the order of the columns. Lines that begin with # are passed over, the first other one has the names."""
    columns, rows = None, []
    for place, line in study.lines_of([path]):
        if line.startswith("#"):
            continue
        if "\0" in line:
            study.refuse(study.BAD_INPUT, f"{place}: expected a number, found a NUL byte")
        cells = line.split(",")
        if columns is None:
            columns = cells
            continue
        if len(cells) != len(columns):
            study.refuse(study.BAD_INPUT, f"{place}: expected {len(columns)} losses, found {len(cells)}")
        rows.append([_number(cell, place) for cell in cells])
    if not rows:
        study.refuse(study.BAD_INPUT, f"{path}: expected a table of losses, found no row")
    losses, names = np.array(rows), [name.partition("#")[0] for name in columns]
    found = {}
    for name in dict.fromkeys(names):
        seeds = losses[:, [one == name for one in names]]
        found[name] = Cell(seeds.mean(1), seeds.shape[1], seeds.mean(0).min(), seeds.mean(0).max())
    return found


def _number(cell, place):
    try:
        value = float(cell)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        study.refuse(study.BAD_INPUT, f"{place}: expected a number, found '{cell[:40]}'")
    return value


def find(cells, name, path):
    if name not in cells:
        study.refuse(study.BAD_INPUT, f"{path}: there is no column '{name}#1'")
    return cells[name]


def mean(s, cell, against=None):
    """Over the texts; of the difference from another cell on the same texts."""
    return s.ratio(cell.losses if against is None else cell.losses - against.losses)


def show(estimate, difference=False):
    if not difference:
        return estimate.show("%.3f (%.3f-%.3f)")
    if estimate.value == 0 and not estimate.low < 0 and not estimate.high > 0:  # a cell against itself
        return 0
    return estimate.show("%+.3f (%+.3f to %+.3f)")


def note(s, cell):
    return (f"{len(cell.losses)} held-out texts, mean of {cell.seeds} seed{'' if cell.seeds == 1 else 's'}; 95 % intervals over texts, paired for differences "
            f"({s.resamples}). They say nothing about other seeds.")
