"""Summarizes measurements: medians, ratios within rounds, intervals, tables; parses lists of the command line.

SPDX-License-Identifier: MIT
"""
import argparse
import csv
import math
import random
import statistics
import subprocess

STUDENT = {2: 12.706, 3: 4.303, 4: 3.182, 5: 2.776, 6: 2.571, 7: 2.447, 8: 2.365, 9: 2.306, 10: 2.262}  # 97.5 % point by number of runs
DRAWS = 10000


# ------------------------------------------------------------------------------------------------------------- numbers


def percentile(ordered, share):
    """Interpolates linearly, as the program's core/base/numbers.h does."""
    place = share * (len(ordered) - 1)
    below = int(place)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (place - below) * (ordered[above] - ordered[below])


def median_deviation(samples):
    middle = statistics.median(samples)
    return statistics.median(abs(s - middle) for s in samples)


def ratios(rounds, name, base):
    """Returns, for rounds that have both, the time of one divided by that of the other in the same round."""
    return [found[name] / found[base] for found in rounds if name in found and base in found]


def spread(values, form=".4g", always=False):
    """Formats the median, and the range if there is one."""
    middle = f"{statistics.median(values):{form}}"
    return middle if len(values) == 1 and not always else f"{middle} ({min(values):{form}} to {max(values):{form}})"


def t_interval(values, form):
    """Formats the mean with its 95 % interval by Student's distribution."""
    mean, half = statistics.mean(values), STUDENT[len(values)] * statistics.stdev(values) / math.sqrt(len(values))
    return f"{mean:{form}} ({mean - half:{form}} to {mean + half:{form}})"


def mean_ratio(values):
    """Returns the geometric mean with its 95 % interval by bootstrap."""
    logs, draw = [math.log(ratio) for ratio in values], random.Random(1)
    means = sorted(statistics.fmean(draw.choices(logs, k=len(logs))) for _ in range(DRAWS))
    found = statistics.fmean(logs), means[DRAWS // 40], means[-1 - DRAWS // 40]
    return "{:.3f} ({:.3f} to {:.3f})".format(*map(math.exp, found))


# -------------------------------------------------------------------------------------------------------------- tables


def print_row(cells):
    print("| " + " | ".join(map(str, cells)) + " |", flush=True)


def print_titles(titles, words=(0,)):
    """Prints titles; these columns hold words, the others numbers."""
    print_row(titles)
    print("|" + "".join("---|" if place in words else "--:|" for place in range(len(titles))))


def print_table(titles, rows, words=(0,)):
    print_titles(titles, words)
    for row in rows:
        print_row(row)


def read_rows(path, delimiter="\t"):
    """Reads a table with a line of titles; lines with # are comments."""
    with open(path, encoding="utf-8", newline="") as file:
        return list(csv.DictReader((line for line in file if not line.startswith("#")), delimiter=delimiter))


# -------------------------------------------------------------------------------------------------------- command line


def number_list(text):
    return [int(part) for part in text.split(",")]


def name_list(known):
    """Returns a type of argparse: names with commas between them, or all."""

    def parse(text):
        names = list(known) if text == "all" else text.split(",")
        unknown = [name for name in names if name not in known]
        if unknown:
            raise argparse.ArgumentTypeError(f"{unknown[0]} is not among {', '.join(known)}")
        return names

    return parse


def plot(program, report, figure, targets, *options):
    """Draws a figure of results by the program itself, and says where it is, or why there is none: the program may be built without figures."""
    command = [program, "bench", "plot", report, "--figure", figure, *options, *(word for target in targets for word in ("-o", target))]
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True)
    return f"the figure: {targets[0]}" if done.returncode == 0 else f"no figure: {done.stderr.strip()}"
