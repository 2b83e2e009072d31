#!/usr/bin/env python3
"""Each term of disentangled attention and each way of absolute positions, in tiny models trained alike.

    python3 studies/grid.py docs/studies/data/grid.csv

Puts to the test: absolute positions before the softmax work much better than at the input; what each term is worth. SPDX-License-Identifier: MIT
"""
import study
import losses
import numpy as np

# Ways of absolute positions, as tables have them, and legends.
WAYS = {"none": "no absolute positions", "decoder": "in the Enhanced Mask Decoder", "input": "at the input",
        "decoder without them": "the decoder without positions"}
# Columns of the file, terms of the scores, way; in the order of the table. Controls, the last ones, may be missing in a file.
CELLS = [("c2c/none@64", "c2c", "none"), ("c2c/emd@64", "c2c", "decoder"), ("c2c+c2p/none@64", "c2c c2p", "none"),
         ("c2c+c2p/emd@64", "c2c c2p", "decoder"), ("c2c+p2c/none@64", "c2c p2c", "none"), ("c2c+p2c/emd@64", "c2c p2c", "decoder"),
         ("full/none@64", "c2c c2p p2c", "none"), ("full/emd@64", "c2c c2p p2c", "decoder"), ("input/none@64", "c2c", "input")]
CONTROLS = [("full/input@64", "c2c c2p p2c", "input"), ("full/level@64", "c2c c2p p2c", "decoder without them"),
            ("full+p2p/none@64", "c2c c2p p2c p2p", "none"), ("full-ji/none@64", "c2c c2p p2c(j-i)", "none")]
TERMS = ["c2c", "c2c c2p", "c2c p2c", "c2c c2p p2c", "c2c c2p p2c p2p", "c2c c2p p2c(j-i)"]


def main():
    s = study.begin(losses.command_line(__doc__))
    path = s.options.losses
    cells = losses.read(path)
    found = {one: losses.find(cells, one[0], path) for one in CELLS}
    found.update((one, cells[one[0]]) for one in CONTROLS if one[0] in cells)
    against = {"": None, "full with decoder": cells["full/emd@64"], "positions at the input": cells["input/none@64"]}
    table = s.add_table("cells", "Held-out loss of masked characters (nats)",
                        ["terms", "absolute positions", "loss", "best-worst seed", "against full with decoder", "against positions at the input"])
    s.add_data("terms", "positions", "against", "value", "low", "high", "seeds")
    means = {}
    for (name, terms, way), cell in found.items():
        estimates = {other: losses.mean(s, cell, one) for other, one in against.items()}
        for other, estimate in estimates.items():
            s.data.add(terms, way, other or None, estimate, cell.seeds)
        means[terms, way] = estimates[""]
        loss, *differences = estimates.values()
        table.add(terms, way, losses.show(loss), f"{cell.lowest:.3f}-{cell.highest:.3f}", *(losses.show(one, True) for one in differences))
    s.finish(losses.note(s, found[CELLS[0]]), lambda: draw(means))


def draw(means):
    """Side by side the ways of each set of terms; sets and ways that the file lacks are left out."""
    figure, axes = study.panels(1, 1, height=55)
    sets = [terms for terms in TERMS if any(one == terms for one, _ in means)]
    ways = [way for way in WAYS if any(one == way for _, one in means)]
    for k, way in enumerate(ways):
        there = [(place, means[terms, way]) for place, terms in enumerate(sets) if (terms, way) in means]
        study.draw_bars(axes[0, 0], [place + (k - (len(ways) - 1) / 2) * 0.8 / len(ways) for place, _ in there], [one for _, one in there],
                        0.75 / len(ways), label=WAYS[way])
    axes[0, 0].set_xticks(np.arange(len(sets)), sets)
    axes[0, 0].set(xlabel="terms of the attention scores", ylabel="held-out loss (nats)", ylim=(0, None))
    study.legend_above(figure, axes[0, 0])
    return figure


if __name__ == "__main__":
    study.run(main)
