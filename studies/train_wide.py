#!/usr/bin/env python3
"""A wide classifier for label_flips.py: v3-base's width, three layers, "which book?" of single sentences.

    studies/train_wide.py CORPUS OUT [--steps N] [--threads N] [OPTIONS]      OUT/model/best, by `deberta finetune sequence`, which gets the OPTIONS

CORPUS is what tools/making/make_corpus.py makes. Sentences are those of the paragraphs that models/demo learned from; every 20th paragraph is held out.
The encoder begins with drawn weights. Words begin where models/demo has them: its rows of 192 numbers, spread over 768 by a drawn matrix, because
minutes of training teach no words. DEBERTA_PROGRAM names the program. SPDX-License-Identifier: MIT
"""
import argparse
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import safetensors.numpy

from label_flips import LONGEST, SHORTEST, sentences

ROOT = Path(__file__).resolve().parent.parent
PROGRAM = os.environ.get("DEBERTA_PROGRAM") or str(ROOT / "build" / "deberta")
WIDTH, HEADS, LAYERS = 768, 12, 3
TABLE = "deberta.embeddings.word_embeddings.weight"
SPREAD = 0.1  # standard deviation of a word's numbers
MEASURED = 2000  # held-out sentences


def program(*words):
    subprocess.run([PROGRAM, *map(str, words)], check=True)


def begun(folder, threads):
    """folder/begun has drawn weights, and words of models/demo."""
    demo = ROOT / "models" / "demo"
    config = {**json.loads((demo / "config.json").read_text()), "hidden_size": WIDTH, "pooler_hidden_size": WIDTH, "intermediate_size": 4 * WIDTH,
              "num_attention_heads": HEADS, "num_hidden_layers": LAYERS}
    (folder / "config").mkdir(parents=True)
    for name in ("spm.model", "added_tokens.json", "tokenizer_config.json"):
        shutil.copy(demo / name, folder / "config")
    (folder / "config" / "config.json").write_text(json.dumps({key: value for key, value in config.items() if key not in ("id2label", "label2id", "dtype")}))
    ids = np.full((1, 1, 8), 5, np.int32)
    safetensors.numpy.save_file({"input_ids": ids, "attention_mask": np.ones_like(ids), "labels": ids}, folder / "one.safetensors")
    program("train", "mlm", "--config", folder / "config", "--batches", folder / "one.safetensors", "--head", "mlm", "--steps", 1, "--learning-rate", 0,
            "--dropout", 0, "--seed", 1, "--threads", threads, "--quiet", "--out", folder / "begun")
    weights = safetensors.numpy.load_file(folder / "begun" / "model.safetensors")
    words = safetensors.numpy.load_file(demo / "model.safetensors")[TABLE].astype(np.float32)
    spread = words @ np.random.default_rng(1).normal(size=(words.shape[1], WIDTH)).astype(np.float32)
    weights[TABLE] = np.ascontiguousarray(spread * (SPREAD / spread.std()), np.float32)
    safetensors.numpy.save_file(weights, folder / "begun" / "model.safetensors", {"format": "pt"})


def examples(corpus, folder):
    """Files of "title, tab, sentence": of paragraphs to learn from, and of those that are held out."""
    program_of_corpus = [sys.executable, str(ROOT / "tools" / "making" / "make_corpus.py"), "split", str(corpus), "--text", str(folder / "text.txt")]
    subprocess.run([*program_of_corpus, "--train", str(folder / "train.tsv"), "--held-out", str(folder / "held-out.tsv")], check=True)
    for name in ("train", "held-out"):
        rows = [line.split("\t") for line in (folder / f"{name}.tsv").read_text(encoding="utf-8").splitlines()]
        rows = [(title, one) for title, paragraph in rows for one in sentences(paragraph) if SHORTEST <= len(one.split()) <= LONGEST // 2]
        random.Random(1).shuffle(rows)
        rows = rows if name == "train" else rows[:MEASURED]
        (folder / f"{name}-sentences.tsv").write_text("".join(f"{title}\t{one}\n" for title, one in rows), encoding="utf-8")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("corpus", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--steps", type=int, default=1200)
    parser.add_argument("--threads", type=int, default=1)
    o, further = parser.parse_known_args()
    data = o.out / "data"
    if not data.exists():
        with tempfile.TemporaryDirectory() as scratch:
            begun(Path(scratch), o.threads)
            examples(o.corpus, Path(scratch))
            shutil.copytree(scratch, data)
    resume = ["--resume"] if (o.out / "model" / "log.jsonl").exists() else []
    program("finetune", "sequence", data / "begun", "--examples", data / "train-sentences.tsv", "--eval", data / "held-out-sentences.tsv",
            "--eval-every", o.steps // 4, "--new-head", "--sequence-tokens", LONGEST, "--cut", "--batch-sequences", 16, "--steps", o.steps,
            "--warmup", o.steps // 10, "--learning-rate", "3e-4", "--dropout", 0, "--seed", 1, "--threads", o.threads, *resume, *further,
            "--out", o.out / "model")


if __name__ == "__main__":
    main()
