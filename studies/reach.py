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
LONG, LONG_SEQUENCES, LONG_STEPS = 128, 8, 2400  # of the long texts; as many of them as of the others
SHORTEST = 16  # of the texts of varied length
MARKER, NOISE, NOISES, FIRST, LAST, LABELS = 1, 2, 20, 30, 31, 32  # ids; a label is LABELS + the length of the training + distance
BANDS = (0, 1), (2, 3), (4, 7), (8, 15), (16, 31), (32, 63), (64, 127)  # distances to either side, the same for all models
FAR = 16  # what "far" is at other lengths: this distance and more
TESTS, LONG_TESTS, EACH, LONG_EACH = (24, 32, 40, 48), (96, 128), 5, 1  # lengths; texts of each place of the marker
EDITS = "ends@1", "inner@1", "marker@1"  # states after the first layer that another text gives


class Cell(NamedTuple):
    """What all seeds of a cell share: distances clipped at k, or in log buckets up to k; texts of one length, or of 16 to 40 tokens; the terms;
    the length of the training; whether [CLS] and [SEP] stand around a text, which are not asked."""

    k: int
    layers: int
    varied: bool = False
    buckets: int = -1
    terms: str = "c2p+p2c"
    length: int = TOKENS
    framed: bool = False

    @property
    def reached(self):
        """Sums of n unambiguous distances: the smallest and the largest."""
        return tuple(self.layers * end for end in self.run)

    @property
    def steps(self):
        return STEPS if self.length == TOKENS else LONG_STEPS

    @property
    def tests(self):
        return TESTS if self.length == TOKENS else LONG_TESTS

    @property
    def each(self):
        return EACH if self.length == TOKENS else LONG_EACH

    @property
    def patched(self):
        """Whether the states after its first layer are changed too."""
        return self.k == 4 and self.layers == 2 and self.terms == "c2p+p2c" and not self.varied

    @property
    def run(self):
        """The unambiguous distances of one step."""
        return (-(self.buckets // 2), self.buckets // 2) if self.buckets > 0 else (1 - self.k, self.k - 2)

    @property
    def shown(self):
        return f"{self.buckets} buckets" if self.buckets > 0 else self.k


def recipe(cell, seed):
    more = [f"buckets{cell.buckets}"] * (cell.buckets > 0) + ["varied"] * cell.varied + [cell.terms] * (cell.terms != "c2p+p2c")
    more += [f"tokens{cell.length}"] * (cell.length != TOKENS) + ["framed"] * cell.framed
    name = "-".join([f"k{cell.k}", f"layers{cell.layers}", *more, f"seed{seed}"])
    config = trained.config(LABELS + 2 * cell.length, cell.layers, cell.k, cell.terms.split("+"), cell.buckets)
    return trained.Recipe(name, config, lambda: batches(seed, cell), cell.steps, WARM_UP, seed)


def batches(seed, cell):
    random = np.random.default_rng([seed, 7])
    shape = cell.steps, SEQUENCES if cell.length == TOKENS else LONG_SEQUENCES, cell.length
    lengths = random.integers(SHORTEST, cell.length + 1, shape[:2]) if cell.varied else np.full(shape[:2], cell.length)
    ids, places = random.integers(NOISE, NOISE + NOISES, shape), random.integers(int(cell.framed), lengths - cell.framed)
    np.put_along_axis(ids, places[..., None], MARKER, 2)
    there = np.arange(cell.length) < lengths[..., None]
    labels = np.where(there, LABELS + cell.length + np.arange(cell.length) - places[..., None], trained.NOT_ASKED)
    if cell.framed:
        ids[..., 0], ids[..., -1] = FIRST, LAST
        labels[..., [0, -1]] = trained.NOT_ASKED
    return {"input_ids": (ids * there).astype(np.int32), "attention_mask": there.astype(np.int32), "labels": labels.astype(np.int32)}


def models(quick):
    """(cell, seed)"""
    if quick:
        return [(cell, seed) for cell in (Cell(4, 1), Cell(4, 2)) for seed in (1, 2)]
    cells = [*(Cell(k, layers) for k in (4, 2, 8) for layers in (1, 2)), Cell(4, 2, True), *(Cell(4, layers, terms=one) for layers in (1, 2) for one in ("c2p", "p2c")),
             *(Cell(32, layers, buckets=8) for layers in (1, 2)), Cell(4, 3), Cell(2, 3), Cell(4, 4), Cell(8, 3), Cell(8, 2, True), Cell(4, 3, True), Cell(2, 4),
             Cell(32, 2, True, 8), Cell(2, 2, True), Cell(32, 3, buckets=8), Cell(8, 4), Cell(4, 2, framed=True), *(Cell(16, layers) for layers in (1, 2, 3, 4)),
             *(Cell(LONG, layers, buckets=16, length=LONG) for layers in (1, 2))]
    return [(cell, seed) for cell in cells for seed in range(1, trained.SEEDS + 1)]


def measure(folder, settings):
    """Right answers by distance at every length of a test; then without one term, with edited states, and under the hard window."""
    cell, seed = settings
    of_model = {**cell._asdict(), "varied": int(cell.varied), "framed": int(cell.framed), "seed": seed}
    terms = cell.terms.split("+")
    without = [f"{term}@all" for term in terms if len(terms) > 1 and cell.length == TOKENS]

    def row(tokens, what, each, answers):
        ids, distances = test_texts(seed, tokens, each, cell.framed)
        right = answers(ids).argmax(-1) == LABELS + cell.length + distances
        return {**of_model, "tokens": tokens, "without": what or "nothing", "each": each, "right": counts(cell, right, distances)}

    for tokens, what in [*((tokens, "") for tokens in cell.tests), *((cell.length, what) for what in without)]:
        yield row(tokens, what, cell.each, lambda ids: trained.logits(folder, ids, "mlm", what))
    for what in EDITS if cell.patched else ():
        yield row(cell.length, what, cell.each, lambda ids: edited(folder, ids, what))
    if cell.buckets > 0 or len(terms) < 2 or cell.framed or cell.length != TOKENS:
        return  # which the NumPy model does not have, or is not asked for
    for window, what in ((None, "numpy"), (cell.run, "window")):
        yield row(TOKENS, what, 1, lambda ids: windowed.logits(folder, ids, window))


def test_texts(seed, tokens, each, framed=False):
    """`each` texts of every place of the marker, and the distance of every token; one that no label has for [CLS] and [SEP]."""
    inner = tokens - 2 * framed
    ids = np.random.default_rng([seed, 99, tokens]).integers(NOISE, NOISE + NOISES, (each * inner, tokens))
    places = np.arange(len(ids)) % inner + framed
    ids[np.arange(len(ids)), places] = MARKER
    distances = np.arange(tokens) - places[:, None]
    if framed:
        ids[:, 0], ids[:, -1] = FIRST, LAST
        distances[:, [0, -1]] = 10**6
    return ids, distances


def edited(folder, ids, what):
    """Logits where some states after the first layer are those of another text, whose marker stands half a text away: of the first and the last token,
    of two that lie inside, or of the marker. A token that is the marker of one of both is left alone, but for the last way."""
    with trained.deberta_c.Model(folder, threads=1, reference=trained.REFERENCE) as model:
        ids = np.asarray(ids, np.int32)
        states = np.asarray(model.encode(ids, hidden="all")["hidden_states.1"])
        tokens, markers = ids.shape[1], (ids == MARKER).argmax(1)
        donors = (np.arange(len(ids)) + len(np.unique(markers)) // 2) % len(ids)
        candidates = {"ends@1": [0, tokens - 1], "inner@1": [tokens // 3, 2 * tokens // 3]}.get(what, [])

        def changed(text, donor):
            here = there = [one for one in candidates if one not in markers[[text, donor]]]
            if what == "marker@1":
                here, there = markers[[text]], markers[[donor]]

            def of(state):
                state = np.array(state)
                state[here] = states[donor, there]
                return state
            return model.encode(ids[text:text + 1], hidden=None, logits="mlm", edit={1: of})["logits.mlm"]
        return np.concatenate([changed(*both) for both in enumerate(donors)])


def counts(cell, right, distances):
    """Of the right answers at each distance, from the smallest to the largest that texts of this length and labels have."""
    most = min(right.shape[1], cell.length) - 1
    found = np.bincount((distances + most)[right & (abs(distances) <= most)], minlength=2 * most + 1)
    return " ".join(map(str, found))


# ---------------------------------------------------------------------------------------------------------------- report


def share(row, parts):
    """Of the right answers at distances low ... high of all parts, in %; NaN where no text has such a distance."""
    found = list(map(int, row["right"].split()))
    most, inner = len(found) // 2, row["tokens"] - 2 * row["framed"]
    places = [r for low, high in parts for r in range(max(low, -most), min(high, most) + 1) if abs(r) < inner]
    return 100 * sum(found[r + most] for r in places) / sum(row["each"] * (inner - abs(r)) for r in places) if places else float("nan")


def both_sides(low, high):
    return [(-high, -low), (max(low, 1), high)]


def inside(cell):
    return [cell.reached]


def outside(cell):
    left, right = cell.reached
    return [(-LONG, left - 1), (right + 1, LONG)]


def name_of(band, length):
    low, high = band[0], min(band[1], length - 1)
    return f"{low}, {high}" if high == low + 1 else f"{low} to {high}"


def bands_of(length):
    return [band for band in BANDS if band[0] < length]


def of_cell(row):
    return Cell(row["k"], row["layers"], bool(row["varied"]), row["buckets"], row["terms"], row["length"], bool(row["framed"]))


def columns_of(cell):
    length = f"{SHORTEST} to {cell.length}" if cell.varied else f"{cell.length}, framed" if cell.framed else cell.length
    return cell.layers, cell.shown, cell.terms, length, "{} to {}".format(*cell.reached)


def shown(values):
    return trained.seed_range(values).show("%.0f (%.0f to %.0f)") if not np.isnan(values).any() else None


class Told:
    """Shares by cell, length and what was taken away: a list of seeds for each band."""

    def __init__(self, rows):
        self.rows = {}
        for row in sorted(rows, key=lambda one: one["seed"]):
            self.rows.setdefault((of_cell(row), row["tokens"], row["without"]), []).append(row)
        self.cells = sorted({cell for cell, _, _ in self.rows},
                            key=lambda one: (one.length, one.framed, one.buckets > 0, one.terms != "c2p+p2c", one.terms, one.varied, one.layers, one.k))

    def __contains__(self, key):
        return key in self.rows

    def at(self, key, parts):
        """A share a seed."""
        return [share(one, parts) for one in self.rows[key]]

    def in_bands(self, key):
        return [self.at(key, both_sides(*band)) for band in bands_of(key[0].length)]


def tabulate_differences(s, told):
    """What one change does, the same seeds on both sides."""
    table = s.add_table("differences", "What a change does to distances that are told, in points (95 % t-interval over seeds)",
                        ["layers", "change", "test", "seeds", *(name_of(band, TOKENS) for band in bands_of(TOKENS))])
    base = Cell(4, 2)
    changes = [("c2p alone, k 4", Cell(4, 1), Cell(4, 1, terms="c2p")), ("p2c alone, k 4", Cell(4, 1), Cell(4, 1, terms="p2c")),
               ("c2p alone, k 4", base, Cell(4, 2, terms="c2p")), ("p2c alone, k 4", base, Cell(4, 2, terms="p2c")),
               ("8 buckets for k 8", Cell(8, 1), Cell(32, 1, buckets=8)), ("8 buckets for k 8", Cell(8, 2), Cell(32, 2, buckets=8)),
               ("lengths varied, k 4", base, Cell(4, 2, True)), ("lengths varied, k 8", Cell(8, 2), Cell(8, 2, True))]
    pairs = [(name, (one, tokens, "nothing"), (other, tokens, "nothing")) for (name, one, other), tokens in
             [*((change, TOKENS) for change in changes), (changes[5], TESTS[-1]), (changes[6], TESTS[-1])]]
    pairs += [(name, (cell, TOKENS, "nothing"), (cell, TOKENS, EDITS[0])) for name, cell in (("ends from another text, k 4", base), ("the same, framed", base._replace(framed=True)))]
    for name, before, after in pairs:
        if before in told and after in told:
            moved = [trained.over_seeds(np.subtract(*both)) for both in zip(told.in_bands(after), told.in_bands(before))]
            table.add(before[0].layers, name, before[1], len(told.rows[before]), *(one.show("%+.0f (%+.0f to %+.0f)") for one in moved))


def tabulate_edits(s, told):
    cells = [cell for cell in told.cells if (cell, cell.length, EDITS[0]) in told]
    table = cells and s.add_table("edits", "k = 4, two layers: states after the first layer from a text whose marker is elsewhere, told in %",
                                  ["trained on", "from the other text", *(name_of(band, TOKENS) for band in bands_of(TOKENS))])
    for cell in cells:
        for what, name in {"nothing": "nothing", EDITS[0]: "first and last token", EDITS[1]: "two tokens inside", EDITS[2]: "the marker"}.items():
            table.add(columns_of(cell)[3], name, *map(shown, told.in_bands((cell, cell.length, what))))


def main():
    s = study.begin(trained.command_line(__doc__, "right answers by distance"))
    told = Told(trained.rows_of(s, models, measure, lambda settings: recipe(*settings)))
    s.add_data("layers", "k", "terms", "trained on", "tokens", "without", "band", "right", "low", "high", "seeds")
    first = ["layers", "k", "terms", "trained on", "n steps reach"]
    for length in sorted({cell.length for cell in told.cells}):
        cells, bands = [cell for cell in told.cells if cell.length == length], bands_of(length)
        others = [tokens for tokens in cells[0].tests if tokens != length]
        right = s.add_table(f"right{length}", f"Distances that are told in texts of {length} tokens, in %", [*first, "seeds", "inside", *(name_of(band, length) for band in bands)])
        other = s.add_table(f"lengths{length}", f"At other lengths, distances of {FAR} and more", [*first, *(f"{tokens} tokens" for tokens in others)])
        for cell in cells:
            columns, at = columns_of(cell), (cell, length, "nothing")
            right.add(*columns, len(told.rows[at]), shown(told.at(at, inside(cell))), *map(shown, told.in_bands(at)))
            other.add(*columns, *(shown(told.at((cell, tokens, "nothing"), both_sides(FAR, LONG))) for tokens in others))
    controls = s.add_table("controls", f"Inside, at {TOKENS} tokens, without a term and under the hard window", [*first, "no c2p", "no p2c", "window", "window, outside"])
    for cell in told.cells:
        for (of, tokens, what), of_seeds in told.rows.items():
            if of == cell and what != "numpy":
                for band, values in zip(bands_of(cell.length), told.in_bands((cell, tokens, what))):
                    s.data.add(cell.layers, str(cell.shown), *columns_of(cell)[2:4], tokens, what, name_of(band, cell.length), trained.seed_range(values), len(of_seeds))
        if (cell, TOKENS, "window") in told:
            controls.add(*columns_of(cell), *(shown(told.at((cell, TOKENS, what), inside(cell))) for what in ("c2p@all", "p2c@all", "window")),
                         shown(told.at((cell, TOKENS, "window"), outside(cell))))
    tabulate_differences(s, told)
    tabulate_edits(s, told)
    s.finish(f"Noise with one marker, {STEPS} steps of {SEQUENCES} texts of {TOKENS} tokens, or {LONG_STEPS} of {LONG_SEQUENCES} of {LONG}. Distance = token - marker; a column "
             f"has both sides. Inside: sums of n unambiguous distances. Mean of the seeds (lowest to highest).", lambda: draw(told))


def draw(told):
    """Every distance, both sides, of k = 4 by depth; at another length; and in long texts."""
    clipped = [cell for cell in told.cells if cell.k == 4 and cell.terms == "c2p+p2c" and not cell.framed]
    parts = [("k = 4, texts of 40 tokens", TOKENS, [cell for cell in clipped if not cell.varied]),
             ("the same, texts of 32 tokens", 32, [cell for cell in clipped if cell.layers in (2, 4) or cell.varied]),
             (f"texts of {LONG} tokens", LONG, [cell for cell in told.cells if cell.length == LONG])]
    parts = [(title, tokens, cells) for title, tokens, cells in parts if any((cell, tokens, "nothing") in told for cell in cells)]
    figure, axes = study.panels(1, len(parts), height=52)
    for axis, (title, tokens, cells) in zip(axes[0], parts):
        places = range(1 - tokens, tokens)
        for cell in cells:
            lines = np.array([[share(one, [(r, r)]) for r in places] for one in told.rows[cell, tokens, "nothing"]])
            table = f"{'' if cell.length == TOKENS else f'k = {cell.k}, ' if cell.buckets < 0 else f'{cell.buckets} buckets, '}"
            (drawn,) = axis.plot(places, lines.mean(0), lw=0.9, label=f"{table}{cell.layers} layer{'s' if cell.layers > 1 else ''}{', lengths varied' if cell.varied else ''}")
            axis.fill_between(places, lines.min(0), lines.max(0), color=drawn.get_color(), alpha=0.2, lw=0)
        axis.set(title=title, xlabel="token − marker", ylabel="told (%)", ylim=(-36, 104), yticks=range(0, 101, 20))
        axis.legend(fontsize=4.5, loc="lower center", ncols=2)
    return figure


if __name__ == "__main__":
    study.run(main)
