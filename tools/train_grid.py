#!/usr/bin/env python3
"""Train the tiny models of the studies `deberta study grid` and `deberta study clipping`, and write their tables.

    train_grid.py run                  trains what is missing; one JSON line for every finished model
    train_grid.py tables FOLDER        grid.csv and clipping.csv from those lines, for docs/studies/data

Folders: --corpus holds train.txt and valid.txt, --state the lines of finished models (grid.jsonl). Needs torch, numpy.
The models read characters, not pieces: neighbours say more about a character than anything else does, so a minute of
training is enough to tell the ways of knowing about position apart. One thread; a model is a function of its settings
and seed, and the models of one seed see the same batches in the same order.

SPDX-License-Identifier: MIT
"""

import argparse
import collections
import json
import re
import sys
import time
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F

from lean_deberta import LeanDeberta, bucket_rows

# The most frequent characters of train.txt; everything else is UNKNOWN.
CHARACTERS, UNKNOWN, MASK = 93, 93, 94
VOCABULARY = 96
SHAPE = {
    "vocab_size": VOCABULARY, "hidden_size": 64, "num_hidden_layers": 3, "num_attention_heads": 2,
    "intermediate_size": 256, "layer_norm_eps": 1e-7, "initializer_range": 0.02, "scaled_start": True,
    "position_buckets": -1, "norm_rel_ebd": "layer_norm", "share_att_key": True,
}
TOKENS_PER_STEP, PEAK_RATE, WARM_UP, WEIGHT_DECAY = 1024, 2e-3, 60, 0.05
MASKED_IN_TRAINING = 0.25
# Held-out texts are masked in blocks, so that a text cut into shorter contexts keeps its masks.
BLOCK, MASKED_IN_BLOCK = 64, 10

# Both studies: characters of a training sequence, and of the first ones (until step, length); steps, seeds, held-out
# texts and their characters. Without relative positions a model finds out about neighbours from short sequences first;
# all models of a study are trained alike.
Study = collections.namedtuple("Study", "length short steps seeds texts text_length")
GRID = Study(64, ((200, 16), (400, 32)), 800, 3, 600, 64)
CLIPPING = Study(128, (), 400, 2, 40, 512)
TERMS = {"c2c": [], "c2c+c2p": ["c2p"], "c2c+p2c": ["p2c"], "full": ["c2p", "p2c"]}
CONTROLS = {"full/input": {"position_biased_input": True},
            "full/level": {"enhanced_mask_decoder": True, "decoder_positions": False},
            "full+p2p/none": {"p2p": True}, "full-ji/none": {"p2c_from_query": True}}
DISTANCES = (2, 4, 8, 16, 32, 64, 128)


# ------------------------------------------------------------------------------------------------ what is trained


def grid_models():
    """Every combination of terms with and without the Enhanced Mask Decoder, and positions at the input as in BERT;
    then controls of both terms: absolute positions at the input, the decoder's computation without its positions, a
    position-to-position term, and p2c that reads the row of j - i."""
    for seed in range(1, GRID.seeds + 1):
        yield f"input/none#{seed}", seed, configuration([], GRID.length, GRID.length, False, True)
        for name, terms in TERMS.items():
            for decoder in ("none", "emd"):
                yield f"{name}/{decoder}#{seed}", seed, configuration(terms, GRID.length, GRID.length, decoder == "emd")
        for name, settings in CONTROLS.items():
            yield f"{name}#{seed}", seed, configuration(TERMS["full"], GRID.length, GRID.length, False) | settings


def clipping_models():
    for seed in range(1, CLIPPING.seeds + 1):
        for k in DISTANCES:
            yield f"k{k}#{seed}", seed, configuration(["c2p", "p2c"], k, CLIPPING.text_length, False)


def configuration(terms, k, positions, decoder, at_the_input=False):
    return SHAPE | {"relative_attention": bool(terms), "pos_att_type": terms, "max_relative_positions": k,
                    "max_position_embeddings": positions, "position_biased_input": at_the_input,
                    "enhanced_mask_decoder": decoder}


# ------------------------------------------------------------------------------------------------ text


def alphabet(text):
    counts = collections.Counter(text)
    return {c: i for i, (c, _) in enumerate(sorted(counts.items(), key=lambda item: (-item[1], item[0]))[:CHARACTERS])}


class Stream:
    """A file as one array of character ids, paragraphs separated by line breaks, and where its sentences begin: all
    segments begin there, so that the absolute position in a segment says something."""

    def __init__(self, text, ids):
        self.ids = np.array([ids.get(c, UNKNOWN) for c in text], np.int64)
        self.starts = np.array([m.end() for m in re.finditer(r"\A|\n|[.!?][\"']* (?=\"?'?[A-Z])", text)])

    def batch(self, random, n):
        starts = self.starts[: np.searchsorted(self.starts, len(self.ids) - n)]
        at = random.choice(starts, TOKENS_PER_STEP // n)
        return mask(self.ids[at[:, None] + np.arange(n)], random, round(MASKED_IN_TRAINING * n))

    def texts(self, count, n):
        """`count` texts of n characters spread evenly over the file, none overlapping."""
        chosen, end = [], 0
        for at in self.starts:
            if at >= end and at + n <= len(self.ids):
                chosen.append(at)
                end = at + n
        chosen = np.array(chosen)[np.linspace(0, len(chosen) - 1, count).astype(int)]
        return self.ids[chosen[:, None] + np.arange(n)]


def mask(ids, random, count):
    rows = np.sort(np.argpartition(random.random(ids.shape), count, 1)[:, :count], 1)
    labels = np.take_along_axis(ids, rows, 1)
    ids = ids.copy()
    np.put_along_axis(ids, rows, MASK, 1)
    return ids, rows, labels


def tensors(arrays):
    return [torch.from_numpy(np.ascontiguousarray(a)) for a in arrays]


# ------------------------------------------------------------------------------------------------ training


def train(config, seed, study, stream):
    torch.manual_seed(seed)
    model = LeanDeberta(config, 1)
    parameters = [p for name, p in model.named_parameters() if not name.startswith(("pooler", "classifier"))]
    optimizer = torch.optim.AdamW(parameters, lr=PEAK_RATE, betas=(0.9, 0.98), weight_decay=WEIGHT_DECAY)
    for step in range(study.steps):
        random = np.random.Generator(np.random.PCG64([seed, step]))
        length = next((length for until, length in study.short if step < until), study.length)
        ids, rows, labels = tensors(stream.batch(random, length))
        logits = model.vocabulary_logits(model.decode(ids, rows, torch.bfloat16)[0])
        loss = F.cross_entropy(logits.flatten(0, 1), labels.flatten())
        loss.backward()
        torch.nn.utils.clip_grad_norm_(parameters, 1.0)
        for group in optimizer.param_groups:
            group["lr"] = PEAK_RATE * min((step + 1) / WARM_UP, (study.steps - step) / (study.steps - WARM_UP))
        optimizer.step()
        optimizer.zero_grad()
    return model


def held_out_batch(stream, study):
    ids = stream.texts(study.texts, study.text_length).reshape(-1, BLOCK)
    return mask(ids, np.random.Generator(np.random.PCG64(15)), MASKED_IN_BLOCK)


def context_losses(model, batch, n, text_length):
    """Mean loss of every text when the model sees n characters at a time; the masks stay where they are."""
    ids, rows, labels = batch
    blocks = n // BLOCK
    rows = rows + np.arange(len(rows))[:, None] % blocks * BLOCK
    with torch.no_grad():
        decoded = model.decode(*tensors((ids.reshape(-1, n), rows.reshape(-1, blocks * MASKED_IN_BLOCK))))[0]
        logits = model.vocabulary_logits(decoded).flatten(0, 1)
    losses = F.cross_entropy(logits, tensors([labels])[0].flatten(), reduction="none")
    return losses.view(-1, text_length // BLOCK * MASKED_IN_BLOCK).mean(1).tolist()


# ------------------------------------------------------------------------------------------------ evaluation


def reread(model, n, k, buckets):
    """Reads the trained table with other rows: distances clipped at k (buckets -1) or the published log buckets up to
    max distance k. The rows stay around the middle of the table."""
    own = len(model.deberta.encoder.rel_embeddings.weight) // 2
    model.tables[n] = (bucket_rows(n, buckets, k) + own - (buckets if buckets > 0 else k)).flip(0)


def evaluate_grid(model, config, batch):
    return {"64": context_losses(model, batch, GRID.length, GRID.text_length)}


def evaluate_clipping(model, config, batch):
    """Contexts within and beyond the training length; then, at the training length and the longest, the table read
    with every smaller clip, and with log buckets up to the longest."""
    results = {}
    for n in (64, 128, 256, 512):
        results[str(n)] = context_losses(model, batch, n, CLIPPING.text_length)
    own = config["max_relative_positions"]
    for n in (CLIPPING.length, CLIPPING.text_length):
        for k in DISTANCES:
            if k < own:
                reread(model, n, k, -1)
                results[f"{n} clipped {k}"] = context_losses(model, batch, n, CLIPPING.text_length)
        if own > 2:
            reread(model, n, CLIPPING.text_length, own)
            results[f"{n} log"] = context_losses(model, batch, n, CLIPPING.text_length)
    return results


STUDIES = {"grid": (GRID, grid_models, evaluate_grid), "clipping": (CLIPPING, clipping_models, evaluate_clipping)}


# ------------------------------------------------------------------------------------------------ commands


def finished(state):
    path = state / "grid.jsonl"
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def run(arguments):
    torch.set_num_threads(1)
    arguments.state.mkdir(parents=True, exist_ok=True)
    text = (arguments.corpus / "train.txt").read_text(encoding="utf-8")
    ids = alphabet(text)
    stream = Stream(text, ids)
    held_out = Stream((arguments.corpus / "valid.txt").read_text(encoding="utf-8"), ids)
    done = {(line["study"], line["model"]) for line in finished(arguments.state)}
    # One seed of everything before the next, so that an early end leaves whole comparisons.
    queue = sorted(((seed, order, name, model, config) for order, name in enumerate(STUDIES)
                    for model, seed, config in STUDIES[name][1]()), key=lambda item: item[:2])
    for seed, _, name, label, config in queue:
        if (name, label) in done or arguments.only not in (None, name):
            continue
        study, _, evaluate = STUDIES[name]
        cpu = time.process_time()
        model = train(config, seed, study, stream)
        seconds = time.process_time() - cpu
        line = {"study": name, "model": label, "steps": study.steps, "train_seconds": round(seconds, 1),
                "losses": {n: [round(x, 4) for x in v] for n, v in evaluate(model, config, held_out_batch(held_out, study)).items()}}
        with open(arguments.state / "grid.jsonl", "a", encoding="utf-8") as out:
            out.write(json.dumps(line) + "\n")
        print(name, label, f"{seconds:.0f} s", {n: round(float(np.mean(v)), 4) for n, v in line["losses"].items()},
              flush=True)


def tables(arguments):
    """A column CELL@CONTEXT#SEED for every model and context, a row for every held-out text. A seed that lacks a model
    is left out: its means would be of other seeds than their neighbours'."""
    arguments.folder.mkdir(parents=True, exist_ok=True)
    for name, (study, models, _) in STUDIES.items():
        lines = {line["model"]: line["losses"] for line in finished(arguments.state) if line["study"] == name}
        expected = list(models())
        missing = {seed for model, seed, _ in expected if model not in lines}
        columns = {f"@{n}#".join(model.split("#")): losses for model, seed, _ in expected if seed not in missing
                   for n, losses in lines[model].items()}
        print(f"{name}: {study.seeds - len(missing)} of {study.seeds} seeds")
        settings = study._replace(seeds=study.seeds - len(missing))
        if not columns:
            continue
        with open(arguments.folder / f"{name}.csv", "w", encoding="utf-8") as out:
            out.write(f"# mean loss (nats) of the masked characters of every held-out text: tools/train_grid.py, {settings}\n")
            out.write(",".join(columns) + "\n")
            for row in zip(*columns.values()):
                out.write(",".join(f"{x:.3f}" for x in row) + "\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("command", choices=["run", "tables"])
    parser.add_argument("folder", nargs="?", type=Path, default=Path("docs/studies/data"))
    parser.add_argument("--only", choices=list(STUDIES), help="train for one study")
    parser.add_argument("--corpus", type=Path, default=Path("corpus"), help="folder of train.txt and valid.txt")
    parser.add_argument("--state", type=Path, default=Path("train-state"), help="folder of grid.jsonl")
    arguments = parser.parse_intermixed_args()
    {"run": run, "tables": tables}[arguments.command](arguments)
    return 0


if __name__ == "__main__":
    sys.exit(main())
