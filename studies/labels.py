#!/usr/bin/env python3
"""The same text on another processor, in another batch, in another order: does it get another label?

    python3 studies/labels.py docs/studies/data/labels.csv

Puts to the test: a model gives a text one answer. RESULTS is what studies/label_flips.py counted over several engines.
--quick counts now, with the engines that are installed, on the repository's own sentences. SPDX-License-Identifier: MIT
"""
import importlib.util
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import study
import trained

SHOWN = {"avx512 hidden": "AVX2 only", "vnni hidden": "no VNNI", "alone": "alone", "another order": "another order"}
FEW = {"avx hidden": "SSE only", "2 threads": "2 threads", "again": "again", "aarch64": "Arm (emulated)"}
QUICK = ["deberta", "deberta int8", "onnxruntime", "onnxruntime int8 dynamic"]
QUICK_TEXTS = 1024
COLORS = ["#0072b2", "#d55e00", "#009e73", "#cc79a7"]


def measured(model):
    """Rows of the engines that are here."""
    needed = ("torch", "transformers", "onnx", "onnxruntime")
    engines = QUICK if all(map(importlib.util.find_spec, needed)) else QUICK[:2]
    if engines != QUICK:
        print(f"labels.py: this project's engine alone; tools/peers-requirements.txt has {', '.join(needed)}", file=sys.stderr)
    with tempfile.TemporaryDirectory() as work:
        def flips(*words):
            paths = os.pathsep.join([str(study.ROOT / "python"), os.environ.get("PYTHONPATH", "")])
            command = [sys.executable, str(study.ROOT / "studies" / "label_flips.py"), *words, "--work", work, "--engines", ",".join(engines)]
            if subprocess.run(command, env={**os.environ, "PYTHONPATH": paths}, stdout=subprocess.DEVNULL).returncode:
                study.refuse(study.SYSTEM, f"{' '.join(command)} failed")
        flips("prepare", model, "--hide")
        flips("run", "--texts", str(QUICK_TEXTS), "--conditions", ",".join(["base", *SHOWN]))
        flips("table", str(Path(work) / "labels.csv"))
        return trained.read_rows(str(Path(work) / "labels.csv"))


def count(row):
    return "-" if row is None else f"{row['flips']} ({row['low']:.1f} to {row['high']:.1f})"


def bits(row):
    return "-" if row is None else f"{100 * row['bits'] / row['texts']:.1f}; {row['largest']:.2g}"


def tabulate(s, found, engines):
    for name, title, show in (("labels", "Texts with another label than in batches of 32 with AVX-512 and VNNI (95 %)", count),
                              ("bits", "Texts whose logits differ in a bit, in %; largest change of a logit", bits)):
        there = [condition for condition in SHOWN if any((engine, condition, "all") in found for engine in engines)]
        table = s.add_table(name, title, ["engine", "texts", *(SHOWN[condition] for condition in there)])
        for engine in engines:
            rows = [found.get((engine, condition, "all")) for condition in there]
            texts = {row["texts"] for row in rows if row}
            for of in sorted(texts, reverse=True):  # a line for each number of texts
                table.add(engine, of, *(show(row if row and row["texts"] == of else None) for row in rows))
    there = [condition for condition in FEW if any((engine, condition, "all") in found for engine in engines)]
    few = [engine for engine in engines if any((engine, condition, "all") in found for condition in there)]
    table = few and s.add_table("few", "The same: with another label; that differ in a bit, of how many", ["engine", *(FEW[condition] for condition in there)])
    for engine in few:
        rows = [found.get((engine, condition, "all")) for condition in there]
        table.add(engine, *("-" if row is None else f"{row['flips']}; {row['bits']:,} of {row['texts']:,}" for row in rows))
    if any(kind == "other" for _, _, kind in found):
        table = s.add_table("kinds", "Another label, by kind of text, of 1,000; pairs of texts ranked otherwise, of 100,000",
                            ["engine", "against", "own books", "another book", "pairs"])
        for engine in engines:
            for condition, shown in SHOWN.items():
                rows = [found.get((engine, condition, kind)) for kind in ("own", "other", "all")]
                if all(rows) and rows[2]["flips"]:
                    table.add(engine, shown, *(f"{1000 * row['flips'] / row['texts']:.1f}" for row in rows[:2]), rows[2]["reordered"])
    if any(against == "PyTorch float32" for _, against, _ in found):
        table = s.add_table("float32", "Another label than PyTorch's float32, all in batches of 32", ["engine", "texts", "another label (95 %)"])
        for engine in engines:
            row = found.get((engine, "PyTorch float32", "all"))
            if row:
                table.add(engine, row["texts"], count(row))


def main():
    parser = study.command_line(__doc__)
    parser.add_argument("results", metavar="RESULTS", help="counts, CSV; with --quick the folder of a classifier")
    parser.add_argument("--quick", action="store_true", help=f"count now, on {QUICK_TEXTS} sentences of the repository")
    s = study.begin(parser)
    if s.options.quick and Path(s.options.results).is_file():
        study.refuse(study.WRONG_USE, f"{s.options.results} is a file, and --quick asks the folder of a classifier: leave --quick out to read the file")
    rows = measured(s.options.results) if s.options.quick else trained.read_rows(s.options.results)
    found = {(row["engine"], row["against"], row["kind"]): row for row in rows}
    engines = list(dict.fromkeys(row["engine"] for row in rows))
    tabulate(s, found, engines)
    s.add_data(*rows[0])
    for row in rows:
        s.data.add(*row.values())
    s.finish("Intervals draw whole paragraphs again (1000 resamples, seed 1); where no text changed, Wilson's, as if a paragraph were one text. "
             "Processors are imitated: libraries are told of fewer features.", lambda: draw(found, engines))


def draw(found, engines):
    engines = [engine for engine in engines if any((engine, condition, "all") in found for condition in SHOWN)]
    figure, axes = study.panels(1, 1, height=75, width=150)
    for k, (condition, shown) in enumerate(SHOWN.items()):
        there = [(place, found[engine, condition, "all"]) for place, engine in enumerate(engines) if (engine, condition, "all") in found]
        for place, row in there:
            height, per = -place - (k - 1.5) * 0.18, 1000 / row["texts"]
            axes[0, 0].plot([row["low"] * per, row["high"] * per], [height] * 2, color=COLORS[k], lw=1)
            axes[0, 0].plot(row["flips"] * per, height, "o", color=COLORS[k], ms=3, label=shown if place == 0 else None)
    axes[0, 0].set_yticks([-place for place in range(len(engines))], engines)
    axes[0, 0].set(ylim=(0.6 - len(engines), 0.6), xlabel="texts of 1,000 with another label than in batches of 32 with AVX-512 and VNNI", xlim=(0, None))
    study.legend_above(figure, axes[0, 0])
    return figure


if __name__ == "__main__":
    study.run(main)
