#!/usr/bin/env python3
"""The clipping distance k: trained with it, beyond the training length, and read in other buckets.

    python3 studies/clipping.py docs/studies/data/clipping.csv

Puts to the test: there is an optimal clipping distance; relative distances generalise across lengths. SPDX-License-Identifier: MIT
"""
import study
import losses

DISTANCES, CONTEXTS = (2, 4, 8, 16, 32, 64, 128), (64, 128, 256, 512)  # as train_grid.py trains them
TRAINED, LONGEST = 128, 512  # contexts


def main():
    s = study.begin(losses.command_line(__doc__))
    found = losses.read(s.options.losses)

    def cell(k, context, reading=""):
        return losses.find(found, f"k{k}@{context}{reading}", s.options.losses)
    cells = {(k, context): cell(k, context) for k in DISTANCES for context in CONTEXTS}
    seeds = cells[DISTANCES[-1], LONGEST].seeds
    s.add_data("k", "context", "what", "value", "low", "high", "seeds")
    contexts = [f"context {context}" for context in CONTEXTS]
    to_longest, reread = {}, {}
    for name, title, what in (("losses", "Held-out loss of masked characters (nats); trained on contexts of 128", "loss"),
                              ("differences", "Against k 128", "against k 128")):
        table = s.add_table(name, title, ["k", *contexts])
        for k in DISTANCES:
            means = {context: losses.mean(s, cells[k, context], cells[DISTANCES[-1], context] if what != "loss" else None) for context in CONTEXTS}
            for context, estimate in means.items():
                s.data.add(k, context, what, estimate, seeds)
                to_longest[k, context] = estimate
            table.add(k, *(losses.show(one, what != "loss") for one in means.values()))
    table = s.add_table("readings", "Change of the loss when the trained table is read in other buckets",
                        ["trained k", "read as", f"context {TRAINED}", f"context {LONGEST}"])
    for k in DISTANCES[1:]:
        for smaller in [*(one for one in DISTANCES if one < k), None]:
            reading, column = (f"clipped at {smaller}", f" clipped {smaller}") if smaller else ("log buckets", " log")
            means = [losses.mean(s, cell(k, context, column), cells[k, context]) for context in (TRAINED, LONGEST)]
            for context, estimate in zip((TRAINED, LONGEST), means):
                s.data.add(k, context, reading, estimate, seeds)
            table.add(k, reading, *(losses.show(one, True) for one in means))
            reread[k, smaller] = means[1]
    s.finish(losses.note(s, cells[DISTANCES[-1], LONGEST]), lambda: draw(to_longest, reread))


def draw(to_longest, reread):
    figure, axes = study.panels(1, 2, height=55)
    for context in CONTEXTS:
        study.draw_estimates(axes[0, 0], DISTANCES, [to_longest[k, context] for k in DISTANCES], label=f"context {context}")
    for k in DISTANCES[1:]:  # from the strongest clip to the model's own, where the change is 0
        smaller = [one for one in DISTANCES if one < k]
        study.draw_estimates(axes[0, 1], [*smaller, k], [*(reread[k, one] for one in smaller), study.Estimate(0, 0, 0)], label=f"trained with k {k}")
    axes[0, 0].set(title="trained with k", xlabel="clipping distance k", ylabel="loss against k 128 (nats)")
    axes[0, 1].set(title=f"read with a smaller k, context {LONGEST}", xlabel="clipping distance at inference", ylabel="change of the loss (nats)")
    for axis in axes[0]:
        axis.set_xscale("log", base=2)
        axis.set_xticks(DISTANCES, map(str, DISTANCES))
        axis.legend()
    return figure


if __name__ == "__main__":
    study.run(main)
