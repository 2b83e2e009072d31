#!/usr/bin/env python3
"""Does scale-invariant fine-tuning help on one small task? Base, raw and sift, so many seeds each, paired by seed.

    studies/sift_effect.py make train.txt valid.txt FOLDER     the task: is a sentence spoken or told?
    studies/sift_effect.py run build/deberta models/demo FOLDER results.csv [--seeds 5]
    studies/sift_effect.py table results.csv

The task: sentences of novels, one paragraph a line, with their quotation marks taken away; those that stood inside are
"spoken", those of paragraphs without any are "told". 400 of the books of train.txt to learn from, 1,000 of valid.txt, another
book, to be measured on, half of each kind. `run` goes on with a table that is there already.

SPDX-License-Identifier: MIT
"""
import argparse
import csv
import json
import math
import os
import random
import re
import statistics
import subprocess
import tempfile

VARIANTS = {"base": [], "raw": ["--sift", "4", "--perturb", "raw"], "sift": ["--sift", "4"]}
STEPS, RATE, BATCH = 75, "5e-4", 16
FEWEST_WORDS, MOST_WORDS = 5, 30
QUOTED = re.compile("[\u201c\"]([^\u201c\u201d\"]+)[\u201d\"]")
SENTENCE = re.compile(r"[^.!?]+[.!?]")


def sentences(path):
    """(label, sentence), each once."""
    found = {}
    with open(path, encoding="utf-8") as file:
        for paragraph in file:
            spoken = QUOTED.findall(paragraph)
            quotes = any(mark in paragraph for mark in "\u201c\u201d\"")
            for part, label in [(text, "spoken") for text in spoken] + ([] if quotes else [(paragraph, "told")]):
                for sentence in SENTENCE.findall(part):
                    sentence = " ".join(sentence.split())
                    if FEWEST_WORDS <= len(sentence.split()) <= MOST_WORDS and "\t" not in sentence:
                        found[sentence] = label
    return sorted((label, sentence) for sentence, label in found.items())


def sample(items, count, seed):
    draw = random.Random(seed)
    half = [draw.sample([item for item in items if item[0] == label], count // 2) for label in ("spoken", "told")]
    both = half[0] + half[1]
    draw.shuffle(both)
    return both


def make(train, valid, folder):
    os.makedirs(folder, exist_ok=True)
    for name, path, count in (("train.tsv", train, 400), ("test.tsv", valid, 1000)):
        with open(os.path.join(folder, name), "w", encoding="utf-8") as file:
            file.writelines(f"{label}\t{sentence}\n" for label, sentence in sample(sentences(path), count, 1))


def train_once(program, model, folder, variant, seed):
    with tempfile.TemporaryDirectory() as work:
        out = os.path.join(work, "model")
        command = [program, "finetune", "sequence", model, "--examples", os.path.join(folder, "train.tsv"), "--new-head", "--eval", os.path.join(folder, "test.tsv"),
                   "--steps", str(STEPS), "--warmup", str(STEPS // 10), "--learning-rate", RATE, "--batch-sequences", str(BATCH), "--dropout", "0",
                   "--seed", str(seed), "--threads", "1", "--quiet", "--out", out, *VARIANTS[variant]]
        subprocess.run(command, check=True)
        with open(os.path.join(out, "log.jsonl"), encoding="utf-8") as file:
            last = json.loads(file.readlines()[-1])
    return last["eval_accuracy"], last["eval_loss"]


def run(program, model, folder, path, seeds):
    done = {(row["variant"], int(row["seed"])) for row in read(path)} if os.path.exists(path) else set()
    for seed in range(seeds):
        for variant in VARIANTS:
            if (variant, seed) in done:
                continue
            accuracy, loss = train_once(program, model, folder, variant, seed)
            begins = not os.path.exists(path)
            with open(path, "a", encoding="utf-8", newline="") as file:
                writer = csv.writer(file, lineterminator="\n")
                if begins:
                    writer.writerow(["variant", "seed", "accuracy", "loss"])
                writer.writerow([variant, seed, f"{accuracy:.6f}", f"{loss:.6f}"])


def read(path):
    with open(path, encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def t_quantile(degrees):
    """Of Student's distribution at 97.5 %: its distribution function by Simpson's rule, inverted by halving."""
    scale = math.exp(math.lgamma((degrees + 1) / 2) - math.lgamma(degrees / 2)) / math.sqrt(degrees * math.pi)

    def above(x, pieces=2000):
        step = x / pieces
        values = [(1 + (k * step) ** 2 / degrees) ** (-(degrees + 1) / 2) for k in range(pieces + 1)]
        return 0.5 - scale * step / 3 * (values[0] + values[-1] + 4 * sum(values[1:-1:2]) + 2 * sum(values[2:-1:2]))

    low, high = 0.0, 1000.0
    while high - low > 1e-6:
        middle = (low + high) / 2
        low, high = (middle, high) if above(middle) > 0.025 else (low, middle)
    return low


def interval(values):
    """Mean and half width of its 95 % t-interval."""
    return statistics.mean(values), t_quantile(len(values) - 1) * statistics.stdev(values) / math.sqrt(len(values))


def table(path):
    rows = read(path)
    seeds = sorted({int(row["seed"]) for row in rows})
    found = {(row["variant"], int(row["seed"])): row for row in rows}
    seeds = [seed for seed in seeds if all((variant, seed) in found for variant in VARIANTS)]
    print(f"{len(seeds)} seeds; mean with its 95 % t-interval; differences are paired by seed\n")
    print("| | accuracy, % | loss |\n|---|---|---|")

    def line(name, values):
        cells = []
        for key, scale, digits in (("accuracy", 100, 2), ("loss", 1, 4)):
            mean, half = interval([scale * values(seed, key) for seed in seeds])
            cells.append(f"{mean:.{digits}f} \u00b1 {half:.{digits}f}")
        print(f"| {name} | {' | '.join(cells)} |")

    for variant in VARIANTS:
        line(variant, lambda seed, key, variant=variant: float(found[variant, seed][key]))
    for one, other in (("raw", "base"), ("sift", "base"), ("sift", "raw")):
        line(f"{one} \u2212 {other}", lambda seed, key, one=one, other=other: float(found[one, seed][key]) - float(found[other, seed][key]))


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    commands = parser.add_subparsers(dest="command", required=True)
    one = commands.add_parser("make")
    for name in ("train", "valid", "folder"):
        one.add_argument(name)
    one = commands.add_parser("run")
    for name in ("program", "model", "folder", "results"):
        one.add_argument(name)
    one.add_argument("--seeds", type=int, default=5)
    commands.add_parser("table").add_argument("results")
    options = parser.parse_args()
    if options.command == "make":
        make(options.train, options.valid, options.folder)
    elif options.command == "run":
        run(options.program, options.model, options.folder, options.results, options.seeds)
    else:
        table(options.results)


if __name__ == "__main__":
    main()
