"""What a change has cost or saved: tools/peers.py pairs [--interval] docs/benchmarks/emerald-rapids-training.tsv

Columns NAME_before and NAME_after are times of one round. For every shape: the median of the rounds' ratios after / before, the smallest and
the largest, and the smallest times. --interval: the geometric mean of the ratios with its 95 % interval, over rounds drawn again 10,000
times, and medians of the times. SPDX-License-Identifier: MIT
"""
import statistics

from rivals.results import mean_ratio, print_table, ratios, read_rows, spread


def options(parser):
    parser.add_argument("file")
    parser.add_argument("--interval", action="store_true")


def cells(rows, name, interval):
    """Returns both times, and the ratio."""
    rounds = [{when: float(row[f"{name}_{when}"]) for when in ("before", "after")} for row in rows]
    of_times = statistics.median if interval else min
    found = ratios(rounds, "after", "before")
    times = [of_times([one[when] for one in rounds]) for when in ("before", "after")]
    return ["{:.3f}, {:.3f}".format(*times), mean_ratio(found) if interval else spread(found, ".2f", always=True)]


def run(arguments):
    rows = read_rows(arguments.file)
    names = [title[: -len("_before")] for title in rows[0] if title.endswith("_before")]
    unit = "ms" if rows[0].get("unit") == "ms" else "s"
    shapes = {}
    for row in rows:
        shapes.setdefault(row["shape"], []).append(row)
    print_table(["shape", "rounds", *(title for name in names for title in (f"{name.replace('_', ' ')}: {unit}", "after / before"))],
                [[shape, len(found), *(cell for name in names for cell in cells(found, name, arguments.interval))]
                 for shape, found in shapes.items()])
    return 0
