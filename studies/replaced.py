#!/usr/bin/env python3
"""How should the two models of replaced tokens (RTD) share their table of words?

    python3 studies/replaced.py docs/studies/data/replaced.csv

Puts to the test: one shared table (ES) hurts, gradient-disentangled sharing (GDES) mends it. Tiny models of words read the same texts and masks. --train STATE --corpus
FOLDER trains what STATE lacks and writes the table; --quick trains two on paragraphs of the repository. SPDX-License-Identifier: MIT
"""
import functools
import json
import resource
import shutil
import tempfile
from pathlib import Path

import study
import numpy as np
import tasks
import trained

PIECES, WIDTH, HEADS, LAYERS, GENERATOR_LAYERS, RANGE = 2000, 64, 2, 4, 2, 0.1
TOKENS, SEQUENCES, STEPS, HIDDEN, PEAK = 64, 16, 500, 9, "2e-3"  # HIDDEN: of the 62 pieces of a window
LAST = 100  # steps whose mean loss is told; no text comes twice, so they are new to the model
EVERY = 10  # paragraph is one that the tokenizer learns from
DRAWN_STEPS = STEPS * 3 // 2  # masks are drawn for so many, whichever are read
RTD = {"rtd-none": ("--sharing", "none", "--coupled"), "rtd-es": ("--sharing", "es", "--coupled"), "rtd-gdes": ("--sharing", "gdes", "--coupled"), "rtd-gdes-first": ("--sharing", "gdes")}
NAMES = {"mlm": "MLM", "rtd-none": "RTD, two tables", "rtd-es": "RTD, ES", "rtd-gdes": "RTD, GDES", "rtd-gdes-first": "RTD, GDES, generator first"}
COMPARED = [("rtd-es", "rtd-none"), ("rtd-gdes", "rtd-none"), ("rtd-gdes", "rtd-es"), ("rtd-gdes-first", "rtd-gdes")]
TABLE = "deberta.embeddings.word_embeddings.weight"


def models(quick):
    """Kind and seed. One seed of all before the next; the pair's other order comes last."""
    if quick:
        return [(kind, 1) for kind in ("mlm", "rtd-gdes")]
    return sorted(((kind, seed) for seed in range(1, trained.SEEDS + 1) for kind in NAMES), key=lambda one: one[0] == "rtd-gdes-first")


# ------------------------------------------------------------------------------------------------------------ what is read


def lines_of(corpus):
    if corpus:
        return (Path(corpus) / "train.txt").read_text(encoding="utf-8").splitlines()
    return [line.rpartition("\t")[2] for line in (study.ROOT / "docs/studies/data/books.tsv").read_text(encoding="utf-8").splitlines()[1::2]]


def prepare(state, corpus, threads):
    """A tokenizer with the configuration of a model, and all windows of the texts, each made once."""
    state.mkdir(parents=True, exist_ok=True)
    if not (state / "tokenizer").exists():
        with tempfile.TemporaryDirectory(dir=state) as scratch:
            text, made = Path(scratch) / "text.txt", Path(scratch) / "made"
            text.write_text("\n".join(lines_of(corpus)[::EVERY if corpus else 1]), encoding="utf-8")
            trained.program("train", "tokenizer", "--file", str(text), "--vocabulary", str(PIECES), "--depth", str(LAYERS), "--width", str(WIDTH), "--head-count", str(HEADS), "--out", str(made))
            made.rename(state / "tokenizer")
    if not (state / "windows.npz").exists():
        with tempfile.TemporaryDirectory(dir=state) as scratch:
            with trained.deberta_c.Model(begun(Path(scratch), state, LAYERS, 1, threads), threads=1) as model:
                ids, mask = trained.windows(model, lines_of(corpus), TOKENS)
            np.savez(Path(scratch) / "windows.npz", ids=ids, mask=mask)
            (Path(scratch) / "windows.npz").rename(state / "windows.npz")


@functools.lru_cache(maxsize=1)
def windows(state):
    with np.load(state / "windows.npz") as found:
        return found["ids"], int(found["mask"])


def batches(state, seed, steps):
    """All models of a seed see the same windows with the same masks; nothing twice where there are enough."""
    most = DRAWN_STEPS * SEQUENCES
    ids, mask = windows(state)
    random = np.random.default_rng([seed, 11])
    count = steps * SEQUENCES
    order = np.concatenate([random.permutation(len(ids)) for _ in range(-(-most // len(ids)))])
    chosen = ids[order[:count]]
    places = np.argpartition(random.random((most, TOKENS - 2)), HIDDEN, 1)[:count, :HIDDEN] + 1
    labels, shown = np.full(chosen.shape, trained.NOT_ASKED), chosen.copy()
    np.put_along_axis(labels, places, np.take_along_axis(chosen, places, 1), 1)
    np.put_along_axis(shown, places, mask, 1)
    shape = steps, SEQUENCES, TOKENS
    return {"input_ids": shown.reshape(shape).astype(np.int32), "attention_mask": np.ones(shape, np.int32), "labels": labels.reshape(shape).astype(np.int32)}


# ----------------------------------------------------------------------------------------------------------------- training


def begun(here, state, layers, seed, threads):
    """Drawn weights. A tensor is drawn by its name, so that a generator begins as the lower layers of its discriminator, with the same table."""
    config = here / f"config-{layers}"
    shutil.copytree(state / "tokenizer", config)
    settings = json.loads((config / "config.json").read_text())
    settings.update(num_hidden_layers=layers, initializer_range=RANGE, hidden_dropout_prob=0, attention_probs_dropout_prob=0)
    (config / "config.json").write_text(json.dumps(settings))
    one = np.full((1, 1, 8), 5, np.int32)
    trained.write_tensors(here / "one.safetensors", {"input_ids": one, "attention_mask": np.ones_like(one), "labels": one})
    trained.program("train", "mlm", "--config", str(config), "--batches", str(here / "one.safetensors"), "--head", "mlm", "--steps", "1", "--learning-rate", "0",
                    "--dropout", "0", "--seed", str(seed), "--threads", str(threads), "--out", str(here / f"begun-{layers}"))
    return here / f"begun-{layers}"


def pretrained(here, state, kind, seed, threads):
    """Folders of the encoder and of the generator (None), and the log."""
    start = begun(here, state, LAYERS, seed, threads)
    trained.write_tensors(here / "batches.safetensors", batches(state, seed, STEPS))
    common = ["--batches", str(here / "batches.safetensors"), "--steps", str(STEPS), "--warmup", str(STEPS // 10), "--learning-rate", PEAK, "--beta2", "0.98", "--weight-decay", "0.01",
              "--epsilon", "1e-6", "--dropout", "0", "--seed", str(seed), "--threads", str(threads), "--out", str(here / "model")]
    if kind == "mlm":
        trained.program("train", "mlm", str(start), "--head", "mlm", *common)
        return here / "model", None, trained.log(here / "model")
    trained.program("train", "rtd", str(start), "--generator", str(begun(here, state, GENERATOR_LAYERS, seed, threads)), "--new-head", *RTD[kind], *common)
    return here / "model" / "discriminator", here / "model" / "generator", trained.log(here / "model")


def cosine(folder):
    """Mean over all pairs of two words' rows. [PAD], whose row is 0 at first, is none."""
    rows = trained.read_tensors(folder / "model.safetensors")[TABLE][1:].astype(float)
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    return float((np.square(rows.sum(0)).sum() - len(rows)) / len(rows) / (len(rows) - 1))


def processor_seconds():
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def found(state, kind, seed, threads):
    """Of one pre-training; "" is what such a model does not have."""
    with tempfile.TemporaryDirectory(dir=state) as scratch:
        before = processor_seconds()
        encoder, generator, log = pretrained(Path(scratch), state, kind, seed, threads)
        seconds, last = processor_seconds() - before, log[-LAST:]
        mean = lambda name: float(np.mean([one[name] for one in last])) if name in last[0] else ""
        return {"seconds": round(seconds, 1), "loss_words": mean("loss_generator" if generator else "loss"), "loss_replaced": mean("loss_discriminator"),
               "cosine_generator": cosine(generator) if generator else "", "cosine": cosine(encoder)}


def learned(settings, state, threads, corpus):
    prepare(state, corpus, threads)
    kind, seed = settings
    folder = state / f"{kind}-seed{seed}"
    tasks.remembered(folder, lambda: found(state, kind, seed, threads))
    return folder


def measure(folder, settings):
    row = json.loads((folder / "recipe.json").read_text())
    row.pop("commit")
    yield {"kind": settings[0], "seed": settings[1], **row}


# ------------------------------------------------------------------------------------------------------------------- report


def main():
    s = trained.begin_with_corpus(trained.command_line(__doc__, "what models learned, by kind and seed"))
    o = s.options
    report(s, trained.rows_of(s, models, measure, lambda settings: settings, lambda settings, state, threads: learned(settings, state, threads, o.corpus)))


def report(s, rows):
    by_kind = {kind: sorted((row for row in rows if row["kind"] == kind), key=lambda row: row["seed"]) for kind in NAMES if any(row["kind"] == kind for row in rows)}
    column = lambda kind, name: np.array([row[name] for row in by_kind[kind]])
    s.add_data("kind", "seed", "what", "value")
    for kind, of_kind in by_kind.items():
        for row in of_kind:
            for name, value in row.items():
                if name not in ("kind", "seed", "commit") and value != "":
                    s.data.add(kind, row["seed"], name, value)
    table = s.add_table("learned", f"Loss in the last {LAST} steps (nats), mean cosine of two words' rows, processor time (s)",
                        ["encoder", "loss of words", "loss of replaced", "cosine, generator", "cosine, encoder", "seconds"])
    for kind in by_kind:
        cells = [trained.over_seeds(column(kind, name)).show(form) if by_kind[kind][0][name] != "" else "" for name, form in (
            ("loss_words", "%.3f (%.3f to %.3f)"), ("loss_replaced", "%.4f (%.4f to %.4f)"), ("cosine_generator", "%.3f (%.3f to %.3f)"), ("cosine", "%.3f (%.3f to %.3f)"))]
        table.add(NAMES[kind], *cells, f"{column(kind, 'seconds').mean():.1f}")
    share = HIDDEN / TOKENS  # of the tokens, replaced at most
    table.add("always the share of hidden tokens", "", f"{-share * np.log(share) - (1 - share) * np.log(1 - share):.4f}", "", "", "")
    pairs, changes = [pair for pair in COMPARED if all(one in by_kind for one in pair)], []
    table = pairs and s.add_table("pairs", "Pairs in those steps, differences paired by seed (nats)", ["pairs", "loss of words", "loss of replaced"])
    for one, other in pairs:
        of_pair = [trained.over_seeds(column(one, name) - column(other, name)) for name in ("loss_words", "loss_replaced")]
        changes += of_pair
        table.add(f"{NAMES[one]} less {NAMES[other]}", of_pair[0].show("%+.3f (%+.3f to %+.3f)"), of_pair[1].show("%+.4f (%+.4f to %+.4f)"))
    outside = sum(one.low > 0 or one.high < 0 for one in changes)
    seeds = len(next(iter(by_kind.values())))
    s.finish(f"{STEPS} steps of {SEQUENCES} windows of {TOKENS} pieces, seeds: {seeds}; 95 % t-intervals over seeds. {outside} of {len(changes)} differences have an interval "
             "without 0.")


if __name__ == "__main__":
    study.run(main)
