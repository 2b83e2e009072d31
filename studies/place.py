#!/usr/bin/env python3
"""Can a token say where it stands, without absolute positions? And when does the Enhanced Mask Decoder help?

    python3 studies/place.py docs/studies/data/place.csv

Puts to the test: relative positions cannot say where a token stands, absolute ones in the decoder can. A text is noise; every token is
asked for its own index. --train STATE trains what STATE lacks (--quick: a few models) and writes the table of counts.
SPDX-License-Identifier: MIT
"""
import study
import numpy as np
import trained

TOKENS, SEQUENCES, STEPS, WARM_UP = 40, 24, 400, 40
CLS, NOISE, NOISES, LABELS = 1, 2, 20, 32  # ids; a label is LABELS + index
TESTS, EACH = (40, 32), 100  # lengths; texts of each


def recipe(k, layers, cls, seed, head="mlm"):
    """One model: clip distance k, 0 for no position terms; with [CLS] before the noise or without; its head."""
    name = f"{f'k{k}' if k else 'none'}-layers{layers}{'-cls' if cls else ''}{'-emd' if head == 'mlm_emd' else ''}-seed{seed}"
    config = trained.config(LABELS + TOKENS, layers, k or 4, ("c2p", "p2c") if k else ())
    return trained.Recipe(name, config, lambda: batches(cls, seed), STEPS, WARM_UP, seed, head)


def batches(cls, seed):
    ids = texts(cls, np.random.default_rng([seed, 7]), (STEPS, SEQUENCES, TOKENS))
    labels = np.broadcast_to(LABELS + np.arange(TOKENS, dtype=np.int32), ids.shape)
    return {"input_ids": ids, "attention_mask": np.ones_like(ids), "labels": labels}


def texts(cls, random, shape):
    ids = random.integers(NOISE, NOISE + NOISES, shape).astype(np.int32)
    if cls:
        ids[..., 0] = CLS
    return ids


def models(quick):
    """k, layers, whether there is a [CLS], head; the first ones are controls."""
    cells = [(0, 2, False, "mlm"), (0, 2, False, "mlm_emd"), (4, 2, False, "mlm"), (4, 2, True, "mlm"), (32, 2, False, "mlm"), (32, 2, True, "mlm"),
             (4, 2, False, "mlm_emd"), (8, 1, True, "mlm"), (16, 1, True, "mlm"), (32, 1, True, "mlm")]
    if quick:
        return [(*cell, seed) for cell in (cells[0], cells[1], cells[7], cells[8]) for seed in (1, 2)]
    return [(*cell, seed) for seed in range(1, trained.SEEDS + 1) for cell in cells]


def measure(folder, settings):
    """Right answers of each index, at every length of a test."""
    k, layers, cls, head, seed = settings
    for tokens in TESTS:
        ids = texts(cls, np.random.default_rng([seed, 99, tokens]), (EACH, tokens))
        right = (trained.logits(folder, ids, head).argmax(-1) == LABELS + np.arange(tokens)).sum(0)
        yield {"k": k, "layers": layers, "cls": int(cls), "head": head, "seed": seed, "tokens": tokens, "texts": EACH,
               **{f"at{i}": int(right[i]) if i < tokens else 0 for i in range(TOKENS)}}


def main():
    s = study.begin(trained.command_line(__doc__, "right answers by index"))
    rows = trained.rows_of(s, models, measure, lambda settings: recipe(settings[0], settings[1], settings[2], settings[4], settings[3]))
    table = s.add_table("right", "Tokens that say their own index, in %", ["layers", "k", "[CLS]", "head", "seeds", *(f"{n} tokens" for n in TESTS)])
    s.add_data("layers", "k", "cls", "head", "index", "right", "low", "high", "seeds")
    by_index = {}
    cells = list(dict.fromkeys((one["k"], one["layers"], one["cls"], one["head"]) for one in rows))
    for cell in sorted(cells, key=lambda one: (-one[1], one[3], one[0], one[2])):
        of_cell = [one for one in rows if (one["k"], one["layers"], one["cls"], one["head"]) == cell]
        shares = {tokens: [100 * sum(one[f"at{i}"] for i in range(tokens)) / one["texts"] / tokens for one in of_cell if one["tokens"] == tokens] for tokens in TESTS}
        k, layers, cls, head = cell
        seeds = len(shares[TOKENS])
        table.add(layers, k or "none", "yes" if cls else "no", {"mlm": "on H[L]", "mlm_emd": "EMD"}[head], seeds,
                  *(trained.seed_range(one).show("%.1f (%.1f to %.1f)") for one in shares.values()))
        by_index[cell] = [trained.seed_range([100 * one[f"at{i}"] / one["texts"] for one in of_cell if one["tokens"] == TOKENS]) for i in range(TOKENS)]
        for i, estimate in enumerate(by_index[cell]):
            s.data.add(layers, k, cls, head, i, estimate, seeds)
    edge = [(k, by_index[k, 1, 1, "mlm"]) for k in (8, 16, 32) if (k, 1, 1, "mlm") in by_index]
    if edge:
        table = s.add_table("edge", "One layer, [CLS] first: right answers by index, in %", ["k", "0 to k - 2", "k - 1", "k and more"])
        for k, shares in edge:
            groups = [[100 * sum(one[f"at{i}"] for i in places) / one["texts"] / len(places) for one in rows
                       if (one["k"], one["layers"], one["cls"], one["head"], one["tokens"]) == (k, 1, 1, "mlm", TOKENS)]
                      for places in (range(k - 1), [k - 1], range(k, TOKENS))]
            table.add(k, *(trained.seed_range(one).show("%.1f (%.1f to %.1f)") for one in groups))
    s.finish(f"Noise of {TOKENS} tokens, {STEPS} steps of {SEQUENCES} texts; chance is {100 / TOKENS:.1f} %. "
             "Mean of the seeds (lowest to highest).", lambda: draw(by_index))


def draw(by_index):
    figure, axes = study.panels(1, 2, height=50)
    for (k, layers, cls, head), shares in by_index.items():
        if layers == 1:
            axes[0, 0].plot([one.value for one in shares], marker=".", label=f"k = {k}")
        elif k in (0, 32) and (k == 0 or cls) or (k == 4 and not cls):
            name = f"{f'k = {k}' if k else 'no relative positions'}{', [CLS]' if cls else ''}{', EMD' if head == 'mlm_emd' else ''}"
            look = {"ls": "--", "lw": 1.6} if head == "mlm_emd" else {"lw": 4, "alpha": 0.4} if cls else {"marker": "."}
            axes[0, 1].plot([one.value for one in shares], label=name, **look)
    axes[0, 0].set(title="one layer, [CLS] at 0", xlabel="index of the token", ylabel="right (%)", ylim=(-4, 104))
    axes[0, 1].set(title="two layers", xlabel="index of the token", ylim=(-4, 104))
    for axis in axes[0]:
        axis.legend(fontsize=5.5, loc=(0.45, 0.15))
    return figure


if __name__ == "__main__":
    study.run(main)
