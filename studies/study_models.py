"""The tiny models of the studies `python3 studies/grid.py` and `python3 studies/clipping.py`: their shapes, their texts, how they are
tested, and the tables of their losses. train_studies.py trains them with this program, train_grid.py with PyTorch.

The models read characters, not pieces: neighbours say more about a character than anything else does, so a minute of
training is enough to tell the ways of knowing about position apart. A model is a function of its settings and seed, and
the models of one seed see the same batches in the same order.

SPDX-License-Identifier: MIT
"""

import argparse
import collections
import json
import re
import time
from pathlib import Path

import numpy as np

# The most frequent characters of train.txt; everything else is UNKNOWN.
CHARACTERS, UNKNOWN, MASK = 93, 93, 94
VOCABULARY = 96
SHAPE = {
    "vocab_size": VOCABULARY, "hidden_size": 64, "num_hidden_layers": 3, "num_attention_heads": 2,
    "intermediate_size": 256, "layer_norm_eps": 1e-7, "initializer_range": 0.02, "scaled_start": True,
    "position_buckets": -1, "norm_rel_ebd": "layer_norm", "share_att_key": True,
}
TOKENS_PER_STEP, PEAK_RATE, WARM_UP, WEIGHT_DECAY, BETAS, EPSILON = 1024, 2e-3, 60, 0.05, (0.9, 0.98), 1e-8
MASKED_IN_TRAINING = 0.25
# Held-out texts are masked in blocks, so that a text cut into shorter contexts keeps its masks.
BLOCK, MASKED_IN_BLOCK = 64, 10

# Both studies: characters of a training sequence, and of the first ones (until step, length); steps, seeds, held-out
# texts and their characters. Without relative positions a model finds out about neighbours from short sequences first;
# all models of a study are trained alike.
Study = collections.namedtuple("Study", "length short steps seeds texts text_length")
GRID = Study(64, ((200, 16), (400, 32)), 800, 3, 600, 64)
CLIPPING = Study(128, (), 400, 3, 40, 512)
TERMS = {"c2c": [], "c2c+c2p": ["c2p"], "c2c+p2c": ["p2c"], "full": ["c2p", "p2c"]}
CONTROLS = {"full/input": {"position_biased_input": True},
            "full/level": {"enhanced_mask_decoder": True, "decoder_positions": False},
            "full+p2p/none": {"p2p": True}, "full-ji/none": {"p2c_from_query": True}}
DISTANCES = (2, 4, 8, 16, 32, 64, 128)


# ------------------------------------------------------------------------------------------------ what is trained


def grid_models(seeds=GRID.seeds):
    """Every combination of terms with and without the Enhanced Mask Decoder, and positions at the input as in BERT;
    then controls of both terms: absolute positions at the input, the decoder's computation without its positions, a
    position-to-position term, and p2c that reads the row of j - i."""
    for seed in range(1, seeds + 1):
        yield f"input/none#{seed}", seed, configuration([], GRID.length, GRID.length, False, True)
        for name, terms in TERMS.items():
            for decoder in ("none", "emd"):
                yield f"{name}/{decoder}#{seed}", seed, configuration(terms, GRID.length, GRID.length, decoder == "emd")
        for name, settings in CONTROLS.items():
            yield f"{name}#{seed}", seed, configuration(TERMS["full"], GRID.length, GRID.length, False) | settings


def clipping_models(seeds=CLIPPING.seeds):
    for seed in range(1, seeds + 1):
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


def step_batch(stream, study, seed, step):
    """Characters with masks, rows of the masks, what stood there: of one step of all models of a seed."""
    random = np.random.Generator(np.random.PCG64([seed, step]))
    return stream.batch(random, next((length for until, length in study.short if step < until), study.length))


def held_out_batch(stream, study):
    ids = stream.texts(study.texts, study.text_length).reshape(-1, BLOCK)
    return mask(ids, np.random.Generator(np.random.PCG64(15)), MASKED_IN_BLOCK)


def context_losses(model, batch, n, text_length, table=None):
    """Mean loss of every text when the model sees n characters at a time; the masks stay where they are. table: k and
    buckets with which the trained rows are read."""
    ids, rows, labels = batch
    blocks = n // BLOCK
    rows = rows + np.arange(len(rows))[:, None] % blocks * BLOCK
    losses = model.losses(ids.reshape(-1, n), rows.reshape(-1, blocks * MASKED_IN_BLOCK), labels.reshape(-1, blocks * MASKED_IN_BLOCK), table)
    return losses.reshape(-1, text_length // BLOCK * MASKED_IN_BLOCK).mean(1).tolist()


# ------------------------------------------------------------------------------------------------ evaluation


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
                results[f"{n} clipped {k}"] = context_losses(model, batch, n, CLIPPING.text_length, (k, -1))
        if own > 2:
            results[f"{n} log"] = context_losses(model, batch, n, CLIPPING.text_length, (CLIPPING.text_length, own))
    return results


STUDIES = {"grid": (GRID, grid_models, evaluate_grid), "clipping": (CLIPPING, clipping_models, evaluate_clipping)}


# ------------------------------------------------------------------------------------------------ commands


def finished(state):
    path = state / "grid.jsonl"
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def wanted(only, trains, seeds):
    """One seed of everything before the next, so that an early end leaves whole comparisons. seeds: None for those of the tables."""
    models = [(seed, order, name, label, config) for order, (name, (study, models_of, _)) in enumerate(STUDIES.items()) if only in (None, name)
              for label, seed, config in models_of(seeds or study.seeds) if trains(config)]
    return sorted(models, key=lambda item: item[:2])


def run(arguments, train, trains):
    arguments.state.mkdir(parents=True, exist_ok=True)
    text = (arguments.corpus / "train.txt").read_text(encoding="utf-8")
    ids = alphabet(text)
    stream = Stream(text, ids)
    held_out = Stream((arguments.corpus / "valid.txt").read_text(encoding="utf-8"), ids)
    done = {(line["study"], line["model"]) for line in finished(arguments.state)}
    for seed, _, name, label, config in wanted(arguments.only, trains, arguments.seeds):
        if (name, label) in done:
            continue
        study, _, evaluate = STUDIES[name]
        begin = time.monotonic()
        model = train(config, seed, study, stream)
        seconds = time.monotonic() - begin
        losses = evaluate(model, config, held_out_batch(held_out, study))
        line = {"study": name, "model": label, "steps": study.steps, "train_seconds": round(seconds, 1),
                "losses": {n: [round(x, 4) for x in v] for n, v in losses.items()}}
        with open(arguments.state / "grid.jsonl", "a", encoding="utf-8") as out:
            out.write(json.dumps(line) + "\n")
        print(name, label, f"{seconds:.0f} s", {n: round(float(np.mean(v)), 4) for n, v in losses.items()}, flush=True)


def tables(arguments, program, trains):
    """A column CELL@CONTEXT#SEED for every model and context, a row for every held-out text. A seed that lacks a model
    is left out: its means would be of other seeds than their neighbours'."""
    arguments.folder.mkdir(parents=True, exist_ok=True)
    for name, (study, models, _) in STUDIES.items():
        lines = {line["model"]: line["losses"] for line in finished(arguments.state) if line["study"] == name}
        expected = [model for model in models() if trains(model[2])]
        missing = {seed for model, seed, _ in expected if model not in lines}
        columns = {f"@{n}#".join(model.split("#")): losses for model, seed, _ in expected if seed not in missing
                   for n, losses in lines[model].items()}
        print(f"{name}: {study.seeds - len(missing)} of {study.seeds} seeds")
        settings = study._replace(seeds=study.seeds - len(missing))
        if not columns:
            continue
        with open(arguments.folder / f"{name}.csv", "w", encoding="utf-8") as out:
            out.write(f"# mean loss (nats) of the masked characters of every held-out text: studies/{program}, {settings}\n")
            out.write(",".join(columns) + "\n")
            for row in zip(*columns.values()):
                out.write(",".join(f"{x:.3f}" for x in row) + "\n")


def means(arguments):
    """The mean loss of every model, of any seeds, at the training length and the longest: NAME-seeds.csv for studies/seeds.py."""
    for name, (study, _, _) in STUDIES.items():
        contexts = sorted({study.length, study.text_length})
        rows = [(*line["model"].split("#"), context, np.mean(line["losses"][str(context)])) for line in finished(arguments.state)
                if line["study"] == name for context in contexts]
        with open(arguments.folder / f"{name}-seeds.csv", "w", encoding="utf-8") as out:
            out.write("cell,seed,context,loss\n")
            out.writelines(f"{cell},{seed},{context},{loss:.4f}\n" for cell, seed, context, loss in sorted(rows, key=lambda row: (row[0], row[2], int(row[1]))))


def follow(arguments, program, train, trains):
    if arguments.command == "run":
        run(arguments, train, trains)
    elif arguments.command == "tables":
        tables(arguments, program, trains)
    else:
        means(arguments)


def command_line(description):
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("command", choices=["run", "tables", "means"])
    parser.add_argument("folder", nargs="?", type=Path, default=Path("docs/studies/data"))
    parser.add_argument("--seeds", type=int, metavar="N", help="run: seeds 1 to N of every model (default: those of the tables)")
    parser.add_argument("--only", choices=list(STUDIES), help="train for one study")
    parser.add_argument("--corpus", type=Path, default=Path("corpus"), help="folder of train.txt and valid.txt")
    parser.add_argument("--state", type=Path, default=Path("train-state"), help="folder of grid.jsonl")
    return parser
