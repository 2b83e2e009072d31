"""Rows of a machine, kept: what a run measured is added to the machine's table, and what it replaces is marked.

A table is a CSV file as `--csv` prints it with columns more: date and commit of the run, the version of each engine, and "old" where a later
run has the same model, threads, tokens and engine. SPDX-License-Identifier: MIT
"""
import csv
import json
import re
from pathlib import Path

from rivals.tables_of_times import CSV_TITLES, ONE_TEXT, csv_lines
from rivals.turns import ROOT, Failure

BENCHMARKS = ROOT / "docs" / "benchmarks"
KEPT = ("date", "commit", "version", "state")
OLD = "old"


def file_of(environment):
    """Returns the file of a processor, by its name and its best tier."""
    name = re.sub(r"\((r|tm)\)|processor|cpu|@.*", " ", environment["cpu"].lower())
    return "-".join(re.findall(r"[a-z0-9.]+", f"{name} {environment['isa']} {environment['usable_cores']} cores")) + ".csv"


def read_table(path):
    if not path.exists():
        return []
    with path.open(encoding="utf-8", newline="") as file:
        lines = list(csv.DictReader(file))
    if lines and "texts" in lines[0]:
        raise Failure(f"{path} holds batches; a table of latencies has no column of texts")
    return lines


def added(lines, results, date, commit):
    """Returns the lines of a table, followed by those of the results."""
    new = [dict(zip((*ONE_TEXT[:2], "tokens", *CSV_TITLES), map(str, line))) | {"date": date, "commit": commit, "version": version, "state": ""}
           for line, version in csv_lines(results)]  # fmt: skip
    names = (*ONE_TEXT[:2], "tokens", "engine")
    replaced = {tuple(line[name] for name in names) for line in new}
    kept = [line | {"state": OLD if tuple(line[name] for name in names) in replaced else line.get("state", "")} for line in lines]
    return [{name: "" for name in KEPT} | line for line in kept] + new


def record(folder, target):
    """Records results. target: the file, or a folder with one for each machine."""
    path = Path(folder) / "latency" / "all.json"
    if not path.exists():
        raise Failure(f"{folder} holds no latencies")
    report = json.loads(path.read_text("utf-8"))
    table = target / file_of(report["environment"]) if target.is_dir() else target
    lines = read_table(table)
    date = report["environment"]["date"]
    if any(line.get("date") == date for line in lines):
        raise Failure(f"{table} has the run of {date} already")
    whole = added(lines, report["results"], date, report["environment"]["commit"])
    partial = table.with_suffix(".part")
    with partial.open("w", encoding="utf-8", newline="") as file:
        out = csv.DictWriter(file, [*ONE_TEXT[:2], "tokens", *CSV_TITLES, *KEPT], lineterminator="\n")
        out.writeheader()
        out.writerows(whole)
    partial.rename(table)
    old = sum(line["state"] == OLD for line in whole)
    print(f"{table}: {len(whole) - len(lines)} rows of {date} added; {old} of {len(whole)} rows are old")
