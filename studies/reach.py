#!/usr/bin/env python3
"""How far can n layers tell a distance, if they are trained for nothing else?

    python3 studies/reach.py docs/studies/data/reach.csv

Puts to the test: the receptive field of n layers is (2k-1)n. A text is noise with one marker; every token is asked how far it stands from it.
--train STATE trains what STATE lacks (--quick: a few small models) and writes the table of counts. SPDX-License-Identifier: MIT
"""
import numpy as np
import study
import trained
import windowed

TOKENS, SEQUENCES, STEPS, WARM_UP = 40, 24, 800, 60
SHORTEST = 16  # of the texts of varied length
MARKER, NOISE, NOISES, LABELS = 1, 2, 20, 32  # ids; a label is LABELS + TOKENS + distance
TESTS, EACH = (24, 32, 40, 48), 5  # lengths; texts of each place of the marker


def recipe(k, layers, seed, varied=False, buckets=-1):
    """One model: clip distance k, or log buckets up to distance k; texts of one length, or of 16 to 40 tokens."""
    name = f"k{k}-layers{layers}{f'-buckets{buckets}' if buckets > 0 else ''}{'-varied' if varied else ''}-seed{seed}"
    return trained.Recipe(name, trained.config(LABELS + 2 * TOKENS, layers, k, buckets=buckets), lambda: batches(seed, varied), STEPS, WARM_UP, seed)


def batches(seed, varied):
    random = np.random.default_rng([seed, 7])
    shape = STEPS, SEQUENCES, TOKENS
    lengths = random.integers(SHORTEST, TOKENS + 1, shape[:2]) if varied else np.full(shape[:2], TOKENS)
    ids, places = random.integers(NOISE, NOISE + NOISES, shape), random.integers(0, lengths)
    np.put_along_axis(ids, places[..., None], MARKER, 2)
    there = np.arange(TOKENS) < lengths[..., None]
    labels = np.where(there, LABELS + TOKENS + np.arange(TOKENS) - places[..., None], trained.NOT_ASKED)
    return {"input_ids": (ids * there).astype(np.int32), "attention_mask": there.astype(np.int32), "labels": labels.astype(np.int32)}


def models(quick):
    """k, layers, varied, buckets; the seed comes last."""
    cells = [(4, 1, False, -1), (4, 2, False, -1)]
    if quick:
        return [(*cell, seed) for cell in cells for seed in (1, 2)]
    cells += [(2, 1, False, -1), (2, 2, False, -1), (4, 2, True, -1)]
    return [(*cell, seed) for seed in range(1, trained.SEEDS + 1) for cell in cells]


def measure(folder, settings):
    """Right answers by distance at every length of a test; then without one term, and under the hard window."""
    k, layers, varied, buckets, seed = settings
    of_model = {"k": k, "layers": layers, "varied": int(varied), "buckets": buckets, "seed": seed}
    for tokens, what in [*((tokens, "") for tokens in TESTS), (TOKENS, "c2p@all"), (TOKENS, "p2c@all")]:
        ids, distances = test_texts(seed, tokens, EACH)
        right = trained.logits(folder, ids, "mlm", what).argmax(-1) == LABELS + TOKENS + distances
        yield {**of_model, "tokens": tokens, "without": what or "nothing", "each": EACH, **counts(right, distances)}
    ids, distances = test_texts(seed, TOKENS, 1)
    for window, what in ((None, "numpy"), ((1 - k, k - 2), "window")):
        if buckets > 0:
            continue
        right = windowed.logits(folder, ids, window).argmax(-1) == LABELS + TOKENS + distances
        yield {**of_model, "tokens": TOKENS, "without": what, "each": 1, **counts(right, distances)}


def test_texts(seed, tokens, each):
    """`each` texts of every place of the marker."""
    ids = np.random.default_rng([seed, 99, tokens]).integers(NOISE, NOISE + NOISES, (each * tokens, tokens))
    places = np.arange(len(ids)) % tokens
    ids[np.arange(len(ids)), places] = MARKER
    return ids, np.arange(tokens) - places[:, None]


def counts(right, distances):
    found = np.bincount((distances + TOKENS)[right & (abs(distances) < TOKENS)], minlength=2 * TOKENS)
    return {f"r{r}": int(found[r + TOKENS]) for r in range(1 - TOKENS, TOKENS)}


# ---------------------------------------------------------------------------------------------------------------- report


def share(row, low, high):
    """Of the right answers at distances low ... high, in %; None where no text has such a distance."""
    places = [r for r in range(low, high + 1) if abs(r) < min(row["tokens"], TOKENS)]
    asked = sum(row["each"] * (row["tokens"] - abs(r)) for r in places)
    return 100 * sum(row[f"r{r}"] for r in places) / asked if asked else None


def bands(k, layers):
    """Distances inside n steps of unambiguous distances, as many to either side, and the rest."""
    left, right = layers * (1 - k), layers * (k - 2)
    more = max(right, k - 1)
    return [(left, right)], [(left - more, left - 1), (right + 1, right + more)], [(1 - TOKENS, left - more - 1), (right + more + 1, TOKENS - 1)]


def in_band(row, parts):
    found = [(share(row, *part), sum(row["each"] * max(0, row["tokens"] - abs(r)) for r in range(part[0], part[1] + 1))) for part in parts]
    found = [one for one in found if one[0] is not None]
    return sum(value * asked for value, asked in found) / sum(asked for _, asked in found) if found else float("nan")


def main():
    s = study.begin(trained.command_line(__doc__, "right answers by distance"))
    rows = trained.rows_of(s, models, measure, lambda settings: recipe(settings[0], settings[1], settings[4], settings[2], settings[3]))
    cells = sorted({(one["layers"], one["k"], one["varied"]) for one in rows if one["buckets"] < 0})
    chosen = {(cell, tokens, what): [one for one in rows if (one["layers"], one["k"], one["varied"]) == cell and one["tokens"] == tokens and one["without"] == what
                                     and one["buckets"] < 0]
              for cell in cells for tokens in TESTS for what in ("nothing", "c2p@all", "p2c@all", "window")}
    s.add_data("layers", "k", "trained on", "tokens", "without", "band", "right", "low", "high", "seeds")
    columns = ["layers", "k", "trained on", "n steps reach", "test", "seeds", "inside", "next to it", "further"]
    right = s.add_table("right", "Distances that are told, in %", columns)
    controls = s.add_table("controls", f"The same models at {TOKENS} tokens, without a term, and under the hard window", columns)
    for (cell, tokens, what), of_cell in chosen.items():
        if not of_cell:
            continue
        layers, k, varied = cell
        estimates = [trained.seed_range([in_band(one, band) for one in of_cell]) for band in bands(k, layers)]
        trained_on = f"{SHORTEST} to {TOKENS}" if varied else TOKENS
        for name, estimate in zip(("inside", "next", "further"), estimates):
            s.data.add(layers, k, trained_on, tokens, what, name, estimate, len(of_cell))
        test = {"nothing": tokens, "window": "window"}.get(what, f"no {what[:3]}")
        (controls if what != "nothing" else right).add(layers, k, trained_on, f"{layers * (1 - k)} to {layers * (k - 2)}", test, len(of_cell),
                                                       *(one.show("%.0f (%.0f to %.0f)") for one in estimates))
    s.finish(f"Noise of {TOKENS} tokens with one marker, {STEPS} steps of {SEQUENCES} texts. Distance = token - marker. Mean of the seeds (lowest to highest). "
             f"Next to it: as many tokens more to each side.", lambda: draw(chosen, cells))


def draw(chosen, cells):
    figure, axes = study.panels(1, 2, height=52)
    places = range(1 - TOKENS, TOKENS)
    for axis, tokens in zip(axes[0], (TOKENS, 32)):
        for layers, k, varied in cells:
            of_cell = chosen[(layers, k, varied), tokens, "nothing"]
            if k != 4 or not of_cell:
                continue
            lines = np.array([[share(one, r, r) or 0 for r in places] for one in of_cell])
            lines[:, [abs(r) >= tokens for r in places]] = np.nan
            name = f"{layers} layer{'s' if layers > 1 else ''}{', lengths varied' if varied else ''}"
            (drawn,) = axis.plot(places, lines.mean(0), label=name)
            axis.fill_between(places, lines.min(0), lines.max(0), color=drawn.get_color(), alpha=0.2, lw=0)
            if not varied:
                for edge in (layers * (1 - k) - 0.5, layers * (k - 2) + 0.5):
                    axis.axvline(edge, color=drawn.get_color(), ls="--", lw=0.6)
        axis.set(title=f"k = 4, texts of {tokens} tokens", xlabel="token − marker", ylabel="told (%)", ylim=(-4, 104))
    axes[0, 0].legend(fontsize=5.5)
    return figure


if __name__ == "__main__":
    study.run(main)
