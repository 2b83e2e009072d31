#!/usr/bin/env python3
"""Which clipping distance do words need? A trained model goes on with its distances clipped at k.

    python3 studies/words.py docs/studies/data/words.csv

Puts to the test: there is an optimal clipping distance. models/demo learns on for a hundred steps on the paragraphs of books.tsv, with its table cut to 2k rows,
and is asked for masked pieces of another book. --train STATE trains what STATE lacks (--quick: two models). SPDX-License-Identifier: MIT
"""
import functools
import json

import study
import numpy as np
import trained

DEMO, DATA = study.ROOT / "models" / "demo", study.ROOT / "docs" / "studies" / "data"
TABLE, OWN = "deberta.encoder.rel_embeddings.weight", 32  # its rows on either side
TOKENS, SEQUENCES, STEPS, WARM_UP, PEAK, RATE = 128, 8, 100, 10, 5e-4, 0.15
WINDOWS = 100  # that are asked


def cut(folder, k):
    """models/demo with distances clipped at k, whose rows of the table are exact; 0: with its own log buckets."""
    folder.mkdir()
    config, weights = json.loads((DEMO / "config.json").read_text()), trained.read_tensors(DEMO / "model.safetensors")
    if k:
        config.update(max_relative_positions=k, position_buckets=-1)
        weights[TABLE] = weights[TABLE][OWN - k:OWN + k]
    (folder / "config.json").write_text(json.dumps(config))
    trained.write_tensors(folder / "model.safetensors", weights)
    return folder


@functools.lru_cache(maxsize=None)
def windows(name):
    """Of a file of the repository."""
    lines = [line.rpartition("\t")[2] for _, line in study.lines_of([str(DATA / name)])]
    with trained.deberta_c.Model(DEMO, threads=1) as model:
        return trained.windows(model, lines, TOKENS)


def hidden(ids, mask, random):
    where = random.random(ids.shape) < RATE
    where[..., [0, -1]] = False
    return np.where(where, mask, ids), where


def batches(seed):
    ids, mask = windows("books.tsv")
    random = np.random.default_rng([seed, 7])
    chosen = ids[random.integers(0, len(ids), (STEPS, SEQUENCES))]
    shown, where = hidden(chosen, mask, random)
    return {"input_ids": shown.astype(np.int32), "attention_mask": np.ones_like(shown, np.int32), "labels": np.where(where, chosen, trained.NOT_ASKED).astype(np.int32)}


def recipe(k, seed):
    return trained.Recipe(f"k{k}-seed{seed}", {}, lambda: batches(seed), STEPS, WARM_UP, seed, start=lambda here, _: cut(here / "start", k), peak=PEAK)


def models(quick):
    """k, 0 for the model's own log buckets; seed."""
    return [(k, 1) for k in (2, 16)] if quick else [(k, seed) for seed in range(1, trained.SEEDS + 1) for k in (16, 2, 8, 4, 0)]


def measure(folder, settings):
    k, seed = settings
    yield {"k": k, "seed": seed, "steps": STEPS, **asked(folder)}
    if seed == 1:
        start = folder.with_name(f"{folder.name}-start")
        if not start.exists():
            cut(start, k)
        yield {"k": k, "seed": seed, "steps": 0, **asked(start)}


def asked(folder):
    ids, mask = windows("sentences.txt")
    ids = ids[:WINDOWS]
    shown, where = hidden(ids, mask, np.random.default_rng(99))
    texts = [study.Hidden(row.astype(np.int32), np.flatnonzero(at), text[at]) for row, at, text in zip(shown, where, ids)]
    with trained.deberta_c.Model(folder, threads=1) as model:
        logits = study.mask_logits(model, texts, "mlm")
    loss = sum(study.mask_losses(one, text).sum() for one, text in zip(logits, texts))
    return {"asked": int(where.sum()), "loss": float(loss), "right": sum(int((one.argmax(1) == text.targets).sum()) for one, text in zip(logits, texts))}


def main():
    s = study.begin(trained.command_line(__doc__, "losses by seed"))
    rows = trained.rows_of(s, models, measure, lambda settings: recipe(*settings))
    trained_rows = {k: sorted((row for row in rows if row["k"] == k and row["steps"]), key=lambda row: row["seed"]) for k in sorted({row["k"] for row in rows}, key=lambda k: (k == 0, k))}
    losses = {k: np.array([row["loss"] / row["asked"] for row in of_k]) for k, of_k in trained_rows.items()}
    table = s.add_table("words", "Masked pieces of another book: loss (nats) before and after training with k, and its change from k = 16",
                        ["k", "seeds", "cut only", "trained", "right (%)", "against 16"])
    s.add_data("k", "seed", "loss")
    for k, of_k in trained_rows.items():
        before = next(row["loss"] / row["asked"] for row in rows if row["k"] == k and not row["steps"])
        right = trained.over_seeds([100 * row["right"] / row["asked"] for row in of_k])
        change = trained.over_seeds(losses[k] - losses[16])
        table.add(k or "own buckets", len(of_k), f"{before:.3f}", trained.over_seeds(losses[k]).show("%.3f (%.3f to %.3f)"), right.show("%.1f (%.1f to %.1f)"),
                  "" if k == 16 else change.show("%+.4f (%+.4f to %+.4f)"))
        for row, loss in zip(of_k, losses[k]):
            s.data.add(k, row["seed"], float(loss))
    s.finish(f"{STEPS} steps of {SEQUENCES * TOKENS} tokens from models/demo, head on H[L]; {rows[0]['asked']} pieces asked; 95 % t-intervals over seeds, paired for changes.")


if __name__ == "__main__":
    study.run(main)
