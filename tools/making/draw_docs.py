#!/usr/bin/env python3
"""Draw the small pictures of docs/figures.md again, each by the command that its row names, and docs/images/latency-v3-base.png.

    tools/making/draw_docs.py [--only NAME] [--folder docs/images/figures] [--width-mm 85] [--dpi 96]
    tools/making/draw_docs.py --latency       from the medians of docs/benchmarks/intel-emerald-rapids.csv
    tools/making/draw_docs.py --page          docs/images/explorer.png: the page that its command makes, as Chromium shows it

A row begins with a picture, images/figures/NAME.png (or .svg), and has one command that ends in
`-o NAME.pdf`; dots stand for what the table's head says. Other widths, into another folder, are for looking at all kinds of figures after a change.

SPDX-License-Identifier: MIT
"""
import argparse
import csv
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PROGRAM = os.environ.get("DEBERTA_PROGRAM") or str(ROOT / "build" / "deberta")
PAGE = "docs/figures.md"
COMMAND = re.compile(r"`((?:[^`]*\s)?-o ([\w-]+)\.pdf)`")
PICTURE = re.compile(r"^\| (?:!\[[^]]*\]\(|<img [^>]*src=\")images/figures/([\w-]+)\.(png|svg)")
BEGINNING = re.compile(r"`deberta (attention )(?:KIND \.\.\.|(models[^`]*))`")  # in the commands of a table
DOTS = re.compile(r"the dots: `([^`]*)`")
EXPLORER = "docs/images/explorer.png"
MEDIANS, LATENCY, MODEL, LAYERS = "docs/benchmarks/intel-emerald-rapids.csv", "docs/images/latency-v3-base.png", "v3-base", 12


def commands(page):
    """Yields (file, words) of every row that has a picture."""
    beginning, dots = "", ""
    for line in page.splitlines():
        dots = (DOTS.search(line) or [None, dots])[1]
        if line.startswith("#"):
            beginning = ""
        if BEGINNING.search(line):
            beginning = "".join(BEGINNING.search(line).groups(""))
        picture = PICTURE.match(line)
        if not picture:
            continue
        command, name = COMMAND.search(line).groups()
        if name != picture[1]:
            raise SystemExit(f"{PAGE}: the row with the picture {picture[1]} draws {name}")
        yield name + "." + picture[2], shlex.split(f"{beginning} {command}".replace("...", dots).replace("\\|", "|"))


def draw(file, words, arguments):
    words = [f"{arguments.folder}/{file}" if word == f"{Path(file).stem}.pdf" else word for word in words]
    words += [] if "--width-mm" in words else ["--width-mm", str(arguments.width_mm)]
    words += ["--dpi", str(arguments.dpi)]
    done = subprocess.run([PROGRAM, *words], cwd=ROOT, capture_output=True, text=True)
    print(f"{file}: {done.stderr.strip() or 'ok'}")
    return done.returncode == 0


def medians():
    """Makes a point of a sweep from each median, its only sample. Missing and marked values are left out."""
    with open(ROOT / MEDIANS, encoding="utf-8", newline="") as file:
        rows = [row for row in csv.DictReader(file) if row["model"] == MODEL and row["median_ms"] and not row["mark"]]
    for row in rows:
        seconds, n = float(row["median_ms"]) / 1000, int(row["tokens"])
        yield {"model": MODEL, "engine": row["engine"], "threads": int(row["threads"]), "layers": LAYERS, "batch": 1, "n": n, "tokens": n,
               "attention": "full", "precision": "float32", "position_cache": True, "cold": False, "samples_s": [seconds],
               **{name: seconds for name in ("min_s", "median_s", "median_low_s", "median_high_s", "p95_s")}}


def draw_latency():
    sweep = {"schema": "deberta-bench/1", "environment": {}, "results": list(medians())}
    with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
        json.dump(sweep, file)
        file.flush()
        command = [PROGRAM, "bench", "plot", file.name, "--figure", "latency", "--no-notes", "--dpi", "200", "-o", LATENCY]
        return subprocess.run(command, cwd=ROOT).returncode


def picture_of_page():
    chromium = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    if not chromium:
        raise SystemExit("no Chromium here (Debian: apt-get install chromium)")
    command = re.search(r"^deberta (report models/demo .*) -o \S+", (ROOT / PAGE).read_text(encoding="utf-8"), re.M)[1]
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([PROGRAM, *shlex.split(command), "--quiet", "-o", f"{folder}/report"], cwd=ROOT, check=True)
        return subprocess.run([chromium, "--headless=new", "--no-sandbox", "--hide-scrollbars", f"--user-data-dir={folder}/profile", "--window-size=1280,1060",
                               "--virtual-time-budget=3000", f"--screenshot={ROOT / EXPLORER}", f"file://{folder}/report/index.html"],
                              capture_output=True).returncode


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", help="the picture of this name")
    parser.add_argument("--folder", default="docs/images/figures")
    parser.add_argument("--width-mm", type=int, default=85)
    parser.add_argument("--dpi", type=int, default=96)
    parser.add_argument("--latency", action="store_true", help=f"draw {LATENCY} instead")
    parser.add_argument("--page", action="store_true", help=f"take {EXPLORER} instead")
    arguments = parser.parse_args()
    if arguments.page:
        sys.exit(picture_of_page())
    if arguments.latency:
        sys.exit(draw_latency())
    (ROOT / arguments.folder).mkdir(parents=True, exist_ok=True)
    rows = [row for row in commands((ROOT / PAGE).read_text(encoding="utf-8")) if arguments.only in (None, Path(row[0]).stem)]
    if not rows:
        raise SystemExit(f"{PAGE} has no picture {arguments.only}")
    sys.exit(not all([draw(file, words, arguments) for file, words in rows]))


if __name__ == "__main__":
    main()
