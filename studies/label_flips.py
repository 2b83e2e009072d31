#!/usr/bin/env python3
"""Whose answers depend on the processor, the batch, the order, the threads? The same texts through several engines and conditions.

    studies/label_flips.py prepare MODEL --work W [--corpus CORPUS] [--hide]   texts as ids, graphs, quantised graphs, copies of libraries
    studies/label_flips.py prepare MODEL --work W --asked FILE --scales FILE   the same of labelled texts, a tabulator between label and text
    studies/label_flips.py run --work W [--engines E,...] [--conditions C,...] [--texts N]   the logits that W lacks, one fresh process each
    studies/label_flips.py run --work W --engines deberta --conditions aarch64 --aarch64 'qemu-aarch64-static -cpu max build-arm64/deberta'
    studies/label_flips.py table --work W RESULTS.csv      counts and intervals, for studies/labels.py

MODEL is a folder with a sequence classifier that transformers opens. Batches are padded to their longest text; all engines get the same ids.
Processors with less are imitated: hide_features.py makes copies of the engines' libraries that are told of fewer features.
What the engines do is in label_engines.py. Needs tools/peers-requirements.txt. SPDX-License-Identifier: MIT
"""
import argparse
import csv
import json
import os
import random
import re
import subprocess
import sys
from pathlib import Path

import numpy as np

from label_engines import ENGINES

ROOT = Path(__file__).resolve().parent.parent
BATCH, SHORTEST, LONGEST = 32, 5, 64
HELD_OUT = 20, 7  # of train.txt every 20th paragraph from the 7th on was kept from models/demo
CALIBRATION = 256  # sentences of its training for static scales
# Features that are hidden, texts of a batch, threads, seed of the order.
CONDITIONS = {"base": ("", BATCH, 1, 0), "again": ("", BATCH, 1, 0), "vnni hidden": ("vnni", BATCH, 1, 0), "avx512 hidden": ("avx512", BATCH, 1, 0),
              "avx hidden": ("avx", BATCH, 1, 0), "alone": ("", 1, 1, 0), "another order": ("", BATCH, 1, 1), "2 threads": ("", BATCH, 2, 0),
              "aarch64": ("", BATCH, 1, 0)}
DRAWN_PAIRS, RESAMPLES = 100_000, 1000


# -------------------------------------------------------------------------------------------------------------- texts


def sentences(paragraph):
    return [one for one in re.split(r"(?<=[.!?])[\"”’']?\s+", paragraph) if len(one) > 12]


def lines(path):
    return Path(path).read_text(encoding="utf-8").splitlines()


def drawn_texts(corpus):
    """(kind, paragraph, sentence): "own", paragraphs of the training's books that it did not see, and "other", a book that it never saw.
    Without a corpus they are those that the repository has; ten neighbours of a book's sentences count as a paragraph there."""
    if corpus:
        every, first = HELD_OUT
        own = [paragraph for k, paragraph in enumerate(lines(corpus / "train.txt")) if k % every == first]
        other = [sentences(paragraph) for paragraph in lines(corpus / "valid.txt")]
    else:
        own = [line.split("\t")[1] for line in lines(ROOT / "docs/studies/data/books.tsv")[1:]]
        every = lines(ROOT / "docs/studies/data/sentences.txt")
        other = [every[at:at + 10] for at in range(0, len(every), 10)]
    for kind, paragraphs in (("own", map(sentences, own)), ("other", other)):
        for k, paragraph in enumerate(paragraphs):
            yield from ((kind, k, one) for one in paragraph)


def calibration_texts(corpus):
    """Sentences of the training itself; without a corpus there are none."""
    if not corpus:
        return []
    every, first = HELD_OUT
    seen = [paragraph for k, paragraph in enumerate(lines(corpus / "train.txt")) if k % every != first]
    return [sentences(one)[0] for one in random.Random(3).sample(seen, 4 * CALIBRATION) if sentences(one)]


def labelled_texts(path):
    """Of a file of labelled texts; each is a paragraph of its own."""
    return [("own", k, line.split("\t", 1)[1]) for k, line in enumerate(lines(path))]


def ids_of(model, texts):
    import deberta_c
    with deberta_c.Model(str(model), threads=1) as opened:
        return [list(map(int, opened.tokenize(text).ids)) for text in texts]


def prepare(options):
    import label_engines
    work = options.work
    (work / "logits").mkdir(parents=True, exist_ok=True)
    asked = labelled_texts(options.asked) if options.asked else drawn_texts(options.corpus)
    texts = list({one[2]: one for one in asked}.values())
    kept = [(one, ids) for one, ids in zip(texts, ids_of(options.model, [one[2] for one in texts])) if SHORTEST <= len(ids) <= LONGEST]
    random.Random(2).shuffle(kept)
    with open(work / "texts.json", "w", encoding="utf-8") as file:
        json.dump([{"kind": kind, "paragraph": paragraph, "ids": ids} for (kind, paragraph, _), ids in kept], file)
    seen = [one[2] for one in labelled_texts(options.scales)] if options.scales else calibration_texts(options.corpus)
    scales = [ids for ids in ids_of(options.model, seen) if SHORTEST <= len(ids) <= LONGEST][:CALIBRATION]
    if any(not engine.startswith("deberta") for engine in options.engines):
        label_engines.write_graphs(options.model, work, scales, options.engines)
    else:
        (work / "model").symlink_to(options.model.resolve())
    if options.hide:
        for package in label_engines.packages(options.engines):
            subprocess.run([sys.executable, str(ROOT / "studies" / "hide_features.py"), package, str(work / "hidden")], check=True)
    print(f"{len(kept)} texts of {len({one[:2] for one, _ in kept})} paragraphs, {len(scales)} for scales")


# -------------------------------------------------------------------------------------------------------- one process


def padded(rows):
    lengths = np.array([len(row) for row in rows])
    mask = (np.arange(lengths.max()) < lengths[:, None]).astype(np.int64)
    ids = np.zeros_like(mask)
    ids[mask.astype(bool)] = np.concatenate(rows)
    return ids, mask


def classify(work, engine, condition, count, out):
    """Writes the logits [texts][labels] of the first texts."""
    _, batch, threads, order = CONDITIONS[condition]
    rows = [np.array(one["ids"], np.int64) for one in json.loads((work / "texts.json").read_text())[:count]]
    places = np.random.default_rng(order).permutation(len(rows)) if order else np.arange(len(rows))
    run, logits = ENGINES[engine](work, threads), None
    for at in range(0, len(rows), batch):
        which = places[at:at + batch]
        found = np.asarray(run(*padded([rows[i] for i in which])), np.float32)
        logits = np.full((len(rows), found.shape[1]), np.nan, np.float32) if logits is None else logits
        logits[which] = found
    np.save(out, logits)


def environment(options, condition):
    """In which an engine's libraries are told of fewer features, or another program takes the place of this project's library."""
    if condition == "aarch64":
        return {**os.environ, "LABELS_PROGRAM": options.aarch64}
    hidden = CONDITIONS[condition][0]
    if not hidden:
        return os.environ
    folder = (options.work / "hidden").resolve()
    own = next(folder.glob("*/libdeberta.so.0"), None)
    return {**os.environ, "CPUID_HIDE": hidden, "LD_PRELOAD": str(folder / "hide_features.so"), **({"DEBERTA_LIBRARY": str(own)} if own else {}),
            "PYTHONPATH": os.pathsep.join([str(folder), os.environ.get("PYTHONPATH", "")])}


def run(options):
    for condition in options.conditions:
        for engine in options.engines:
            out = options.work / "logits" / f"{engine}@{condition}.npy"
            if out.exists() or (condition == "aarch64" and not engine.startswith("deberta")):  # of the others no program is at hand
                continue
            done = subprocess.run([sys.executable, __file__, "one", "--work", str(options.work), "--engines", engine, "--conditions", condition,
                                   "--texts", str(options.texts), str(out.with_suffix(".part.npy"))], env=environment(options, condition),
                                  capture_output=True, text=True)
            if done.returncode:
                print(f"{engine}, {condition}: {done.stderr.strip().splitlines()[-1:]}", flush=True)
                continue
            out.with_suffix(".part.npy").rename(out)
            print(f"{engine}, {condition}", flush=True)


# --------------------------------------------------------------------------------------------------------------- table


def interval(flips, paragraphs):
    """95 % of the count of flips, whole paragraphs drawn again; where there is none, as if each paragraph were one text (Wilson)."""
    names, of = np.unique(paragraphs, return_inverse=True)
    if not flips.any():
        return 0.0, 3.84 / (len(names) + 3.84) * len(flips)
    counts, sizes = np.bincount(of, flips), np.bincount(of)
    drawn = np.random.default_rng(1).integers(0, len(names), (RESAMPLES, len(names)))
    shares = counts[drawn].sum(1) / sizes[drawn].sum(1)
    return tuple(np.percentile(shares, [2.5, 97.5]) * len(flips))


def reordered(one, other):
    """Of drawn pairs of texts those which the probability of a label ranks in another order; the label is the first text's."""
    pairs = np.random.default_rng(0).integers(0, len(one), (DRAWN_PAIRS, 2))
    label = one[pairs[:, 0]].argmax(1)
    signs = []
    for logits in (one, other):
        odds = np.exp(logits.astype(float) - logits.max(1, keepdims=True))
        odds /= odds.sum(1, keepdims=True)
        signs.append(np.sign(odds[pairs[:, 0], label] - odds[pairs[:, 1], label]))
    return int((signs[0] * signs[1] < 0).sum())


def compared(one, other, paragraphs):
    flips = one.argmax(1) != other.argmax(1)
    change = np.abs(one.astype(float) - other).max(1)
    low, high = interval(flips, paragraphs)
    return {"texts": len(one), "paragraphs": len(set(paragraphs)), "bits": int((one.view(np.int32) != other.view(np.int32)).any(1).sum()),
            "largest": f"{change.max():.3g}", "median": f"{np.median(change):.3g}", "flips": int(flips.sum()), "low": f"{low:.1f}", "high": f"{high:.1f}",
            "reordered": reordered(one, other)}


def rows_of(work):
    texts = json.loads((work / "texts.json").read_text())
    kinds = np.array([one["kind"] for one in texts])
    paragraphs = np.array([f"{one['kind']} {one['paragraph']}" for one in texts])
    logits = {tuple(path.stem.split("@")): np.load(path) for path in sorted((work / "logits").glob("*@*.npy"))}
    pairs = [(engine, condition, (engine, "base")) for engine in ENGINES for condition in CONDITIONS if condition != "base"]
    pairs += [(engine, "base", ("torch", "base")) for engine in ENGINES if engine != "torch"]
    for engine, condition, against in pairs:
        if (engine, condition) not in logits or against not in logits:
            continue
        one, other = logits[against], logits[engine, condition]
        count = min(len(one), len(other))
        if len(one) != len(other):  # the last batch of the shorter run has other neighbours
            count -= count % BATCH
        for kind in ("all", "own", "other"):
            chosen = np.flatnonzero((kinds[:count] == kind) | (kind == "all"))
            if not len(chosen):
                continue
            label = condition if against[0] == engine else "PyTorch float32"
            yield {"engine": engine, "against": label, "kind": kind, **compared(one[chosen], other[chosen], paragraphs[chosen])}


def table(options):
    rows = list(rows_of(options.work))
    with open(options.out, "w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("command", choices=["prepare", "run", "table", "one"])
    parser.add_argument("out", nargs="?", help="prepare: the model; table: the results")
    parser.add_argument("--work", type=Path, required=True, help="folder for texts, graphs and logits")
    parser.add_argument("--corpus", type=Path, help="folder of train.txt and valid.txt (docs/studies/data); default: the sentences of the repository")
    parser.add_argument("--asked", type=Path, help="prepare: labelled texts in place of the corpus")
    parser.add_argument("--scales", type=Path, help="prepare: labelled texts for static scales, of the training")
    parser.add_argument("--hide", action="store_true", help="prepare: copies of libraries for conditions with hidden features")
    parser.add_argument("--aarch64", metavar="COMMAND", help="run: an emulator and this project's program, for the condition of that name")
    parser.add_argument("--engines", type=lambda text: text.split(","), default=list(ENGINES))
    parser.add_argument("--conditions", type=lambda text: text.split(","), help="default: all; aarch64 with --aarch64 alone")
    parser.add_argument("--texts", type=int, default=10**9, help="the first N texts")
    options = parser.parse_intermixed_args()
    options.model = Path(options.out or "")
    options.conditions = options.conditions or [name for name in CONDITIONS if name != "aarch64" or options.aarch64]
    if options.command == "run" and "aarch64" in options.conditions and not options.aarch64:
        parser.error("--conditions aarch64 needs --aarch64 'EMULATOR PROGRAM'")
    if options.command == "one":
        return classify(options.work, options.engines[0], options.conditions[0], options.texts, options.out)
    return {"prepare": prepare, "run": run, "table": table}[options.command](options)


if __name__ == "__main__":
    sys.exit(main())
