#!/usr/bin/env python3
"""The tables of other studies over models that were trained alike from several seeds: mean, lowest and highest.

    over_seeds.py RESULTS STUDY                print the tables of a study: twins, positions, components, ablate, shift, decoder,
                                             decoder-plain (of models trained by the plain head) or decoder-control
    over_seeds.py RESULTS --measure STATE      run each study on each seed's models, where RESULTS lacks it

STATE is the folder that variants.py trained in: kinds "all" (relative), "absolute" and "emd" (with the Enhanced Mask Decoder). RESULTS is
JSON, a table a study and seed. With --seconds S nothing begins after S seconds, the exit status is 75, and the same command goes on. A
number below is the mean over seeds, its range that of the seeds; intervals over sentences stand in RESULTS. SPDX-License-Identifier: MIT
"""
import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, Dict, List, Optional, Sequence, Tuple

import study
import scores
import trained

STUDIES_FOLDER = Path(__file__).resolve().parent
DATA = STUDIES_FOLDER.parent / "docs" / "studies" / "data"
SENTENCES = ["--file", str(DATA / "sentences.txt")]
KINDS = {"relative": "all", "absolute": "absolute", "decoder": "emd"}  # what a study calls a model: its kind in variants.py
# A study's command, a control's under its name; a word of KINDS stands for that model of the seed. Models without a decoder's training are asked by their plain head.
COMMANDS: Dict[str, List[str]] = {
    "twins": ["relative", "absolute", *SENTENCES, "--layers", "0"],
    "positions": ["relative", "absolute", *SENTENCES, "--control"],
    "components": ["relative", *SENTENCES, "--mlm-decoder", "plain"],
    "ablate": ["relative", *SENTENCES, "--mlm-decoder", "plain"],
    "shift": ["--measure", "--model", "relative", "--model", "absolute"],
    "decoder": ["decoder", "--file", str(DATA / "decoder.txt")],
    "decoder-plain": ["relative", "--file", str(DATA / "decoder.txt")],  # trained by the plain head: only its column says something
    "decoder-control": ["decoder", "--file", str(DATA / "decoder.txt"), "--ablate", "c2p@all,p2c@all"],
}
NUMBER = re.compile(r"([-+]?)(\d+)(\.\d+)?")
Tables = Dict[str, Dict[str, Any]]


def measure(given: argparse.Namespace) -> None:
    end = time.monotonic() + given.seconds
    results = json.loads(Path(given.results).read_text()) if Path(given.results).exists() else {}
    for name, command in COMMANDS.items():
        for seed in given.seeds:
            if str(seed) in results.get(name, {}):
                continue
            if time.monotonic() > end:
                sys.exit(scores.MORE_TO_DO)
            found = {**results.get(name, {}), str(seed): tables_of(name, command, Path(given.measure), seed, given)}
            results[name] = {one: found[one] for one in sorted(found, key=int)}
            study.write_whole(given.results, (json.dumps(results, ensure_ascii=False, indent=0) + "\n").encode())


def tables_of(name: str, command: Sequence[str], state: Path, seed: int, given: argparse.Namespace) -> Tables:
    """Runs a study on the models of a seed, under the names that the study shall print."""
    with tempfile.TemporaryDirectory() as scratch:
        words = []
        for word in command:
            if word in KINDS:
                model = state / f"{KINDS[word]}-{given.steps}-{seed}" / "model"
                if not (model / "model.safetensors").exists():
                    study.refuse(study.BAD_INPUT, f"{model}: no trained model; studies/variants.py --train makes it")
                os.symlink(model.resolve(), Path(scratch) / word)
                word = str(Path(scratch) / word)
            words.append(word)
        results = [str(Path(scratch) / "results.csv")] if name == "shift" else []
        done = subprocess.run([sys.executable, str(STUDIES_FOLDER / f"{name.split('-')[0]}.py"), *results, *words, "--threads", str(given.threads), "--json", "--quiet"],
                              capture_output=True, text=True, env={**os.environ, "PYTHONPATH": str(Path(study.deberta_c.__file__).parents[1])})
    if done.returncode:
        study.refuse(study.BAD_INPUT, f"{name}, seed {seed}: {done.stderr.strip()}")
    found = json.loads(done.stdout)
    return {key: value for key, value in found.items() if key != "data" and isinstance(value, dict)}


def first_number(cell: Any) -> Optional[float]:
    """Of "+0.12 (+0.10 to +0.14)", "32.0 % (31.3-32.7)" or a number; None where there is none, or a range alone."""
    if isinstance(cell, (int, float)):
        return float(cell)
    found = NUMBER.match(cell or "")
    return float(found.group()) if found and not cell[found.end():].startswith(" to ") else None


def form_of(cell: Any) -> Tuple[str, str]:
    """How numbers like this one are printed, and what stands behind them."""
    if isinstance(cell, float) and abs(cell) >= 1e5:
        return "%.2g", ""
    if isinstance(cell, float):
        return f"%.{1 if abs(cell) >= 10 else 2 if abs(cell) >= 1 else 3}f", ""
    found = NUMBER.match(str(cell))
    assert found
    sign, _, decimals = found.groups()
    return f"%{'+' if sign == '+' else ''}.{len(decimals or '.') - 1}f", " %" if str(cell)[found.end():].startswith(" %") else ""


def together(cells: Sequence[Any]) -> Any:
    """One cell of those that the seeds have in the same place: numbers as mean and range, counts and texts that are equal as they are."""
    values = [first_number(one) for one in cells]
    if any(one is None for one in values) or all(isinstance(one, int) and one == cells[0] for one in cells):
        return cells[0] if all(one == cells[0] for one in cells) else " / ".join(str(one) for one in cells)
    forms = [form_of(one) for one in cells]  # of numbers of unlike size: a sign if one has it, the fewest decimals
    form, unit = min(forms, key=lambda one: ("+" not in one[0], one[0]))
    return trained.seed_range([one for one in values if one is not None]).show(f"{form}{unit.replace('%', '%%')} ({form} to {form})")


def show(results: Dict[str, Dict[str, Tables]], name: str) -> None:
    by_seed = results.get(name)
    if not by_seed:
        study.refuse(study.BAD_INPUT, f"expected one of {', '.join(results)}, found {name}")
    seeds = sorted(by_seed, key=int)
    print(f"Mean over seeds {', '.join(seeds)}, lowest and highest seed.")
    for key, first in by_seed[seeds[0]].items():
        # A place for each row of the first seed; a head has no counterpart in another seed, but all heads of a layer have.
        table = study.Table(key, None, first["columns"])
        rows = [{tuple(row[:places(first)]): row for row in by_seed[seed].get(key, {"rows": []})["rows"]} for seed in seeds]
        for label in rows[0]:
            if all(label in one for one in rows) and not is_head(first, label):
                table.add(*label, *map(together, zip(*(one[label][len(label):] for one in rows))))
        if table.rows:
            print(f"\n{key}\n\n{table.to_text(aligned=False)}")


def places(table: Dict[str, Any]) -> int:
    """How many of the first columns name a row."""
    names = ("layer", "head", "key", "token", "model", "term", "heads", "window", "ids from", "position of", "decoder", "items", "sentences", "what", "at")
    count = 0
    while count < len(table["columns"]) and table["columns"][count] in names:
        count += 1
    return max(count, 1)


def is_head(table: Dict[str, Any], label: Sequence[Any]) -> bool:
    return "head" in table["columns"] and isinstance(label[table["columns"].index("head")], int)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("results", metavar="RESULTS", help="JSON, tables by study and seed")
    parser.add_argument("study", metavar="STUDY", nargs="?", choices=COMMANDS, help=f"which tables are printed: {', '.join(COMMANDS)}")
    parser.add_argument("--measure", metavar="STATE", help="run what RESULTS lacks on the models of this folder")
    parser.add_argument("--steps", type=int, default=2000, help="of the models (default 2000)")
    parser.add_argument("--seeds", type=lambda text: [int(one) for one in text.split(",")], default=[1, 2, 3])
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=float("inf"))
    given = parser.parse_args()
    if given.measure:
        measure(given)
    if not given.study:
        return None if given.measure else study.refuse(study.WRONG_USE, "name a study, or give --measure")
    if not Path(given.results).exists():
        study.refuse(study.BAD_INPUT, f"{given.results}: no such file; --measure makes it")
    show(json.loads(Path(given.results).read_text()), given.study)
    return None


if __name__ == "__main__":
    study.run(main)
