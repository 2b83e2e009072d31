#!/usr/bin/env python3
"""How far can n layers tell a distance, if they are trained for nothing else?

    python3 studies/reach.py docs/studies/data/reach.csv

Puts to the test: the receptive field of n layers is (2k-1)n. A text is noise with one marker; every token is asked how far it stands from it.
--train STATE trains what STATE lacks (--quick: a few small models) and writes the table of counts. SPDX-License-Identifier: MIT
"""
from typing import NamedTuple

import study
import numpy as np
import trained
import windowed

TOKENS, SEQUENCES, STEPS, WARM_UP = 40, 24, 800, 60
SHORTEST = 16  # of the texts of varied length
MARKER, NOISE, NOISES, LABELS = 1, 2, 20, 32  # ids; a label is LABELS + TOKENS + distance
BANDS = "inside", "next to it", "further"
TESTS, EACH = (24, 32, 40, 48), 5  # lengths; texts of each place of the marker


class Cell(NamedTuple):
    """What all seeds of a cell share: distances clipped at k, or in log buckets up to k; texts of one length, or of 16 to 40 tokens; the terms."""

    k: int
    layers: int
    varied: bool = False
    buckets: int = -1
    terms: str = "c2p+p2c"

    @property
    def run(self):
        """The unambiguous distances of one step."""
        return (-(self.buckets // 2), self.buckets // 2) if self.buckets > 0 else (1 - self.k, self.k - 2)

    @property
    def shown(self):
        return f"{self.buckets} buckets" if self.buckets > 0 else self.k


def recipe(cell, seed):
    more = [f"buckets{cell.buckets}"] * (cell.buckets > 0) + ["varied"] * cell.varied + [cell.terms] * (cell.terms != "c2p+p2c")
    name = "-".join([f"k{cell.k}", f"layers{cell.layers}", *more, f"seed{seed}"])
    config = trained.config(LABELS + 2 * TOKENS, cell.layers, cell.k, cell.terms.split("+"), cell.buckets)
    return trained.Recipe(name, config, lambda: batches(seed, cell.varied), STEPS, WARM_UP, seed)


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
    """(cell, seed)"""
    if quick:
        return [(cell, seed) for cell in (Cell(4, 1), Cell(4, 2)) for seed in (1, 2)]
    cells = [*(Cell(k, layers) for k in (4, 2, 8) for layers in (1, 2)), Cell(4, 2, True), *(Cell(4, layers, terms=one) for layers in (1, 2) for one in ("c2p", "p2c")),
             *(Cell(32, layers, buckets=8) for layers in (1, 2)), Cell(4, 3), Cell(2, 3), Cell(4, 4), Cell(8, 3), Cell(8, 2, True), Cell(4, 3, True), Cell(2, 4),
             Cell(32, 2, True, 8), Cell(2, 2, True), Cell(32, 3, buckets=8), Cell(8, 4)]
    return [(cell, seed) for cell in cells for seed in range(1, trained.SEEDS + 1)]


def measure(folder, settings):
    """Right answers by distance at every length of a test; then without one term, and under the hard window."""
    cell, seed = settings
    of_model = {**cell._asdict(), "varied": int(cell.varied), "seed": seed}
    terms = cell.terms.split("+")
    for tokens, what in [*((tokens, "") for tokens in TESTS), *((TOKENS, f"{term}@all") for term in terms if len(terms) > 1)]:
        ids, distances = test_texts(seed, tokens, EACH)
        right = trained.logits(folder, ids, "mlm", what).argmax(-1) == LABELS + TOKENS + distances
        yield {**of_model, "tokens": tokens, "without": what or "nothing", "each": EACH, **counts(right, distances)}
    if cell.buckets > 0 or len(terms) < 2:
        return  # which the NumPy model does not have
    ids, distances = test_texts(seed, TOKENS, 1)
    for window, what in ((None, "numpy"), (cell.run, "window")):
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


def bands(cell):
    """Distances inside n steps of unambiguous distances, as many to either side, and the rest."""
    left, right = (cell.layers * end for end in cell.run)
    more = max(right, -cell.run[0])
    return [(left, right)], [(left - more, left - 1), (right + 1, right + more)], [(1 - TOKENS, left - more - 1), (right + more + 1, TOKENS - 1)]


def in_band(row, parts):
    found = [(share(row, *part), sum(row["each"] * max(0, row["tokens"] - abs(r)) for r in range(part[0], part[1] + 1))) for part in parts]
    found = [one for one in found if one[0] is not None]
    return sum(value * asked for value, asked in found) / sum(asked for _, asked in found) if found else float("nan")


def of_cell(row):
    return Cell(row["k"], row["layers"], bool(row["varied"]), row["buckets"], row["terms"])


def columns_of(cell):
    left, right = (cell.layers * end for end in cell.run)
    return cell.layers, cell.shown, cell.terms, f"{SHORTEST} to {TOKENS}" if cell.varied else TOKENS, f"{left} to {right}"


def shown(values):
    return trained.seed_range(values).show("%.0f (%.0f to %.0f)") if not np.isnan(values).any() else None


class Told:
    """Shares by cell, length and what was taken away: a list of seeds for each band."""

    def __init__(self, rows):
        self.rows = {}
        for row in sorted(rows, key=lambda one: one["seed"]):
            self.rows.setdefault((of_cell(row), row["tokens"], row["without"]), []).append(row)
        self.cells = sorted({cell for cell, _, _ in self.rows}, key=lambda one: (one.buckets > 0, one.terms != "c2p+p2c", one.terms, one.varied, one.layers, one.k))

    def __contains__(self, key):
        return key in self.rows

    def __getitem__(self, key):
        return self.in_bands_of(key[0], key)

    def in_bands_of(self, cell, key):
        return [[in_band(one, band) for one in self.rows[key]] for band in bands(cell)]


def tabulate_differences(s, told):
    """What one change does, the same seeds and the same bands on both sides: those of the model before the change."""
    table = s.add_table("differences", "What a change does to distances that are told, in points (95 % t-interval over seeds)",
                        ["layers", "change", "test", "seeds", *BANDS])
    base = Cell(4, 2)
    changes = [("c2p alone, k 4", Cell(4, 1), Cell(4, 1, terms="c2p")), ("p2c alone, k 4", Cell(4, 1), Cell(4, 1, terms="p2c")),
               ("c2p alone, k 4", base, Cell(4, 2, terms="c2p")), ("p2c alone, k 4", base, Cell(4, 2, terms="p2c")),
               ("8 buckets for k 8", Cell(8, 1), Cell(32, 1, buckets=8)), ("8 buckets for k 8", Cell(8, 2), Cell(32, 2, buckets=8)),
               ("lengths varied, k 4", base, Cell(4, 2, True)), ("lengths varied, k 8", Cell(8, 2), Cell(8, 2, True))]
    for (name, one, other), tokens in [*((change, TOKENS) for change in changes), (changes[5], TESTS[-1]), (changes[6], TESTS[-1])]:
        keys = (one, tokens, "nothing"), (other, tokens, "nothing")
        if all(key in told for key in keys):
            pairs = [trained.over_seeds(np.subtract(after, before)) for before, after in zip(told[keys[0]], told.in_bands_of(one, keys[1]))]
            table.add(one.layers, name, tokens, len(told.rows[keys[0]]), *(pair.show("%+.0f (%+.0f to %+.0f)") for pair in pairs))


def main():
    s = study.begin(trained.command_line(__doc__, "right answers by distance"))
    told = Told(trained.rows_of(s, models, measure, lambda settings: recipe(*settings)))
    s.add_data("layers", "k", "terms", "trained on", "tokens", "without", "band", "right", "low", "high", "seeds")
    first = ["layers", "k", "terms", "trained on", "n steps reach"]
    right = s.add_table("right", f"Distances that are told in texts of {TOKENS} tokens, in %", [*first, "seeds", *BANDS])
    other = s.add_table("lengths", "At other lengths, further than next to it", [*first, *(f"{tokens} tokens" for tokens in TESTS if tokens != TOKENS)])
    controls = s.add_table("controls", f"Inside, at {TOKENS} tokens, without a term and under the hard window", [*first, "no c2p", "no p2c", "window", "window, further"])
    for cell in told.cells:
        columns = columns_of(cell)
        for (of, tokens, what), of_seeds in told.rows.items():
            if of == cell and what != "numpy":
                for name, values in zip(BANDS, told[cell, tokens, what]):
                    s.data.add(cell.layers, str(cell.shown), *columns[2:4], tokens, what, name, trained.seed_range(values), len(of_seeds))
        at = told[cell, TOKENS, "nothing"]
        right.add(*columns, len(at[0]), *map(shown, at))
        other.add(*columns, *(shown(told[cell, tokens, "nothing"][2]) for tokens in TESTS if tokens != TOKENS))
        if (cell, TOKENS, "window") in told:
            controls.add(*columns, *(shown(told[cell, TOKENS, what][0]) for what in ("c2p@all", "p2c@all", "window")), shown(told[cell, TOKENS, "window"][2]))
    tabulate_differences(s, told)
    s.finish(f"Noise of {TOKENS} tokens with one marker, {STEPS} steps of {SEQUENCES} texts. Distance = token - marker. Mean of the seeds (lowest to highest). "
             f"Next to it: as many tokens more to each side.", lambda: draw(told))


def draw(told):
    figure, axes = study.panels(1, 2, height=52)
    places = range(1 - TOKENS, TOKENS)
    for axis, tokens in zip(axes[0], (TOKENS, 32)):
        for cell in told.cells:
            if (cell.k, cell.terms) != (4, "c2p+p2c") or cell.layers > 2:
                continue
            lines = np.array([[share(one, r, r) or 0 for r in places] for one in told.rows[cell, tokens, "nothing"]])
            lines[:, [abs(r) >= tokens for r in places]] = np.nan
            name = f"{cell.layers} layer{'s' if cell.layers > 1 else ''}{', lengths varied' if cell.varied else ''}"
            (drawn,) = axis.plot(places, lines.mean(0), label=name)
            axis.fill_between(places, lines.min(0), lines.max(0), color=drawn.get_color(), alpha=0.2, lw=0)
            if not cell.varied:
                for edge in (cell.layers * cell.run[0] - 0.5, cell.layers * cell.run[1] + 0.5):
                    axis.axvline(edge, color=drawn.get_color(), ls="--", lw=0.6)
        axis.set(title=f"k = 4, texts of {tokens} tokens", xlabel="token − marker", ylabel="told (%)", ylim=(-4, 104))
    axes[0, 0].legend(fontsize=5.5)
    return figure


if __name__ == "__main__":
    study.run(main)
