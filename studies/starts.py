#!/usr/bin/env python3
"""Is the place in a sentence worth anything to text models, and does the Enhanced Mask Decoder win by it?

    python3 studies/starts.py docs/studies/data/starts.csv

Puts to the test: the decoder helps because relative positions cannot say where a token stands. All texts begin where a sentence begins. --train STATE --corpus FOLDER
trains what STATE lacks and writes the table of losses; --quick trains two models on sentences of the repository. SPDX-License-Identifier: MIT
"""

import study
import numpy as np
import positions
import study_models
import trained
from seeds import streams


CHARACTERS, SEQUENCES, STEPS, WARM_UP = 63, 16, 600, 60
CLS = 95  # an id that no character has
KINDS = ((4, False), (64, True), (4, True), (64, False))  # k, and whether there is a [CLS]: those first that should differ most
HEADS = ("H[L]", "EMD", "one place")  # "one place": the decoder, with every token at the same absolute position
UNTRAINED = "untrained"  # the control of the probes
TEXTS, QUICK_TEXTS, ASKED = 600, 100, 16
GROUPS = ((0, 1), (1, 4), (4, 16), (16, CHARACTERS))  # of places
PENALTY = 1e-4


def recipe(stream, k, cls, head, seed):
    name = f"k{k}{'-cls' if cls else ''}-{head.replace('[L]', '').replace(' ', '-')}-seed{seed}"
    made = trained.Recipe(name, trained.config(study_models.VOCABULARY, 3, k), lambda: batches(stream, cls, head, seed), STEPS, WARM_UP, seed, logits_of(head))
    return made._replace(steps=1, warm_up=0, peak=0) if head == UNTRAINED else made


def logits_of(head):
    return "mlm_emd" if head in HEADS[1:] else "mlm"


def framed(values, cls, before):
    """With what stands before a text where there is a [CLS]."""
    return np.pad(values, ((0, 0), (1, 0)), constant_values=before) if cls else values


def places_of(head, shape):
    return np.ascontiguousarray(np.broadcast_to(0 if head == "one place" else np.arange(shape[-1]), shape).astype(np.int32))


def batches(stream, cls, head, seed):
    """All models of a seed see the same characters and the same masks."""
    random = np.random.default_rng([seed, 3])
    begins = stream.starts[: np.searchsorted(stream.starts, len(stream.ids) - CHARACTERS)]
    texts = stream.ids[random.choice(begins, STEPS * SEQUENCES)[:, None] + np.arange(CHARACTERS)]
    hidden, rows, targets = study_models.mask(texts, random, round(study_models.MASKED_IN_TRAINING * CHARACTERS))
    labels = np.full(texts.shape, trained.NOT_ASKED)
    np.put_along_axis(labels, rows, targets, 1)
    ids = framed(hidden, cls, CLS).reshape(STEPS, SEQUENCES, -1).astype(np.int32)
    labels = framed(labels, cls, trained.NOT_ASKED).reshape(ids.shape).astype(np.int32)
    return {"input_ids": ids, "attention_mask": np.ones_like(ids), "labels": labels, "position_ids": places_of(head, ids.shape)}


def models(quick):
    """k, whether there is a [CLS], head, seed."""
    if quick:
        return [(4, False, head, 1) for head in HEADS[1:]]
    return [(*kind, head, seed) for kind in KINDS for seed in range(1, trained.SEEDS + 1) for head in (*HEADS, UNTRAINED)]


# --------------------------------------------------------------------------------------------------------------- measuring


def losses(model, head, cls, asked, places):
    """[texts, ASKED] in nats, with the tokens at these absolute positions."""
    hidden, rows, targets = asked
    ids, name = framed(hidden, cls, CLS).astype(np.int32), logits_of(head)
    found = model.encode(ids, position_ids=places_of(places, ids.shape), hidden=None, logits=name, at=[row + cls for row in rows])[f"logits.{name}"]
    return np.array([study.mask_losses(logits, study.Hidden(None, row, target)) for logits, row, target in zip(found, rows, targets)])


def place_known(model, cls, whole):
    """R2 of a straight line from a row of H[L - 1] and of H[L] to its index, fitted on the first half of the texts and asked in the other."""
    found = model.encode(framed(whole, cls, CLS).astype(np.int32), hidden="all")
    for layer in (2, 3):
        rows = found[f"hidden_states.{layer}"][:, int(cls):].astype(float)
        half, width, indices = len(rows) // 2, rows.shape[-1], np.arange(CHARACTERS, dtype=float)
        fitted, asked = positions.RidgeSums(1, width), positions.RidgeSums(1, width)
        for sums, part in ((fitted, rows[:half]), (asked, rows[half:])):
            sums.add([part.reshape(-1, width)], np.tile(indices, len(part)))
        yield float(asked.r2(0, fitted.solve(0, PENALTY)))


def measure(folder, settings, held_out):
    k, cls, head, seed = settings
    whole, asked = held_out
    with trained.deberta_c.Model(folder, threads=1) as model:
        found = losses(model, head, cls, asked, head)
        same = losses(model, head, cls, asked, "one place") if head == "EMD" else found
        below, last = place_known(model, cls, whole)
    groups = {f"at{first}": float(found[(asked[1] >= first) & (asked[1] < end)].mean()) for first, end in GROUPS}
    yield {"k": k, "cls": int(cls), "head": head, "seed": seed, "loss": float(found.mean()), **groups, "at_one_place": float(same.mean()), "r2_below": below, "r2_last": last}


# ---------------------------------------------------------------------------------------------------------------- report


def main():
    s = trained.begin_with_corpus(trained.command_line(__doc__, "losses by model"))
    o = s.options
    stream = held_out = None
    texts = QUICK_TEXTS if o.quick and not o.corpus else TEXTS
    if o.train or o.quick:
        stream, test = streams(o.corpus)
        whole = test.texts(texts, CHARACTERS)
        held_out = whole, study_models.mask(whole, np.random.default_rng(15), ASKED)
    rows = trained.rows_of(s, models, lambda folder, settings: measure(folder, settings, held_out), lambda settings: recipe(stream, *settings))
    report(s, rows, texts)


def report(s, rows, texts):
    by_cell = {}
    for row in sorted(rows, key=lambda row: row["seed"]):
        by_cell.setdefault((row["k"], row["cls"], row["head"]), []).append(row)
    kinds = list(dict.fromkeys((k, cls) for k, cls, _ in by_cell))
    names = {(k, cls): f"k = {k}, {'[CLS]' if cls else 'no [CLS]'}" for k, cls in kinds}
    column = lambda kind, head, name: np.array([row[name] for row in by_cell[(*kind, head)]])
    parts = [f"at{first}" for first, _ in GROUPS]
    s.add_data("k", "cls", "head", "what", "seed", "value")
    for cell, found in by_cell.items():
        for row in found:
            for name in ("loss", *parts, "at_one_place", "r2_below", "r2_last"):
                s.data.add(*cell, name, row["seed"], row[name])
    compared = []

    def change(values):
        compared.append(trained.over_seeds(values))
        return compared[-1].show("%+.3f (%+.3f to %+.3f)")

    pairs = [pair for pair in (("EMD", "H[L]"), ("one place", "H[L]")) if all((*kind, head) in by_cell for kind in kinds for head in pair)]
    table = s.add_table("loss", "Masked characters of held-out texts: loss (nats) of each head, and differences paired by seed",
                        ["models", "seeds", *HEADS, *(" - ".join(pair) for pair in pairs)])
    for kind in kinds:
        heads = [f"{column(kind, head, 'loss').mean():.3f}" if (*kind, head) in by_cell else "" for head in HEADS]
        table.add(names[kind], len(by_cell[(*kind, HEADS[-1])]), *heads, *(change(column(kind, one, "loss") - column(kind, other, "loss")) for one, other in pairs))
    worth = {kind: [column(kind, "EMD", name) - column(kind, "one place", name) for name in ("loss", *parts)] for kind in kinds}
    table = s.add_table("worth", "What places in the decoder change: EMD - one place (nats), by place of the masked character",
                        ["models", "all places", *(f"{first} to {end - 1}" if end - first > 1 else str(first) for first, end in GROUPS)])
    for kind in kinds:
        table.add(names[kind], *map(change, worth[kind]))
    for far, near in ((KINDS[0], near) for near in kinds if KINDS[0] in kinds and near != KINDS[0]):
        more = [one - other for one, other in zip(worth[far], worth[near])]
        table.add(f"{names[far]} less {names[near]}", *map(change, more))
    probed = [kind for kind in kinds if (*kind, UNTRAINED) in by_cell]
    if probed:
        probes = s.add_table("place", "What a row knows of its index (R2 of a straight line); what one place at the test changes in a model that was trained with EMD (nats)",
                             ["models", "H[L], untrained", "H[L], trained on it", "H[L - 1], trained with EMD", "one place at the test"])
    for kind in probed:
        known = [trained.over_seeds(column(kind, head, name)).show("%.3f (%.3f to %.3f)") for head, name in ((UNTRAINED, "r2_last"), ("H[L]", "r2_last"), ("EMD", "r2_below"))]
        probes.add(names[kind], *known, change(column(kind, "EMD", "at_one_place") - column(kind, "EMD", "loss")))
    outside = sum(one.low > 0 or one.high < 0 for one in compared)
    s.finish(f"{STEPS} steps of {SEQUENCES} texts of {CHARACTERS} characters; {texts} held-out texts, {ASKED} masks each. Means and 95 % t-intervals over seeds. {outside} of {len(compared)} "
             "changes have an interval without 0.", (lambda: draw(kinds, names, column)) if len(kinds) > 1 else None)


def draw(kinds, names, column):
    """The worth of places in the decoder by place of the mask; what is known of places without it."""
    figure, axes = study.panels(1, 2, height=50)
    for shift, kind in enumerate(kinds):
        worth = [trained.over_seeds(column(kind, "one place", f"at{first}") - column(kind, "EMD", f"at{first}")) for first, _ in GROUPS]
        study.draw_estimates(axes[0, 0], np.arange(len(GROUPS)) + 0.1 * shift, worth, label=names[kind])
    axes[0, 0].axhline(0, color="0.6", lw=0.6)
    axes[0, 0].set_xticks(range(len(GROUPS)), [f"{first} to {end - 1}" if end - first > 1 else str(first) for first, end in GROUPS])
    axes[0, 0].set(title="what places in the decoder are worth", xlabel="place of the masked character", ylabel="nats")
    axes[0, 0].legend(fontsize=5.5, ncols=2, loc="upper right")
    low, high = axes[0, 0].get_ylim()
    axes[0, 0].set_ylim(low, high + 0.25 * (high - low))  # room for the legend
    for shift, (head, name, label) in enumerate(((UNTRAINED, "r2_last", "untrained"), ("H[L]", "r2_last", "trained, head on H[L]"), ("EMD", "r2_below", "trained with EMD, H[L - 1]"))):
        study.draw_bars(axes[0, 1], np.arange(len(kinds)) + 0.27 * (shift - 1), [trained.over_seeds(column(kind, head, name)) for kind in kinds], 0.27, label=label)
    axes[0, 1].set_xticks(range(len(kinds)), [names[kind].replace(", ", "\n") for kind in kinds])
    axes[0, 1].set(title="what a row knows of its place", ylabel="R2 of a straight line")
    axes[0, 1].legend(fontsize=5.5, loc="upper right")
    axes[0, 1].set_ylim(0, 1.4 * axes[0, 1].get_ylim()[1])
    return figure


if __name__ == "__main__":
    study.run(main)
