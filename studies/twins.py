#!/usr/bin/env python3
"""Entropy of every head and attention by distance, in two models of one tokenizer side by side.

    python3 studies/twins.py models/demo models/demo-bert --file docs/studies/data/sentences.txt -o twins.png

Puts to the test: disentangled attention looks elsewhere than attention with positions at the input. SPDX-License-Identifier: MIT
"""
import study
import numpy as np

NUMBERS = ("entropy", "distance", "offset")
MOST_REACH = 64  # of the curves
FRAME = "[CLS], [SEP]"
PLACES = [*map(study.distance_name, study.DISTANCE_BINS), FRAME]


class Spread:
    """What was measured of one model: sums by sentence, so that intervals can be made over sentences, and mean curves."""

    def __init__(self, model, texts, reach, progress):
        info = model.info
        self.layers, self.heads, self.reach, self.count = info["layers"], info["heads"], reach, len(texts)
        self.numbers = np.zeros((3, self.layers, self.heads, self.count))  # summed over the queries
        self.places = np.zeros((len(PLACES), self.layers, self.count))  # attention of all heads and of the text's own queries
        self._curves = {}
        for s, text in enumerate(progress(texts)):
            found = model.encode([text.ids], hidden=None, attention="all", components="all")
            for layer in range(self.layers):
                self._add(s, layer, text.own, {name: found[key][0].astype(float) for name in ("c2c", "c2p", "p2c", "probs")
                                               if (key := f"attn.{layer}.{name}") in found})

    def _add(self, s, layer, own, matrices):
        p, n = matrices["probs"], len(own)
        r = np.arange(n)[:, None] - np.arange(n)
        bits = np.log2(p, out=np.zeros_like(p), where=p > 0)
        self.numbers[:, layer, :, s] = -(p * bits).sum((1, 2)), (p * np.abs(r)).sum((1, 2)), (p * r).sum((1, 2))
        asked = p[:, own].sum(0)
        bins = study.distance_bin(r)[np.ix_(own, own)].ravel() - study.DISTANCE_BINS[0]
        self.places[:-1, layer, s] = np.bincount(bins, asked[:, own].ravel(), len(study.DISTANCE_BINS))
        self.places[-1, layer, s] = asked[:, ~own].sum()
        inside = (np.abs(r) <= self.reach) & own[:, None] & own
        at = r[inside] + self.reach
        for name, values in matrices.items():
            if name != "probs":  # a softmax does not see what is constant over the keys
                values = values - values[:, :, own].mean(2, keepdims=True)
            sums, counts = self._curves.setdefault((layer, name), np.zeros((2, 2 * self.reach + 1)))
            sums += np.bincount(at, values.sum(0)[inside], len(sums))
            counts += self.heads * np.bincount(at, minlength=len(sums))

    def sums(self, number, layer, head):
        """Of each sentence; head "all": the mean over the heads."""
        of_layer = self.numbers[NUMBERS.index(number), layer]
        return of_layer.mean(0) if head == "all" else of_layer[head]

    def curve(self, layer, name):
        """Distances and means where there are pairs; None for a term that the model lacks."""
        if (layer, name) not in self._curves:
            return None
        sums, counts = self._curves[layer, name]
        there = counts > 0
        return np.arange(-self.reach, self.reach + 1)[there], sums[there] / counts[there]


def layers_of(text):
    return None if text == "all" else sorted({int(k) for k in text.split(",")})


def main():
    parser = study.command_line(__doc__, "model", "other")
    parser.add_argument("--layers", type=layers_of, metavar="LIST", help="layers whose curves are drawn, from 0; tables and data have all")
    s = study.begin(parser)
    lengths = [len(text.ids) for text in s.texts]
    reach = min(max(lengths) - 1, MOST_REACH)
    depth = max(model.info["layers"] for model in s.models)
    drawn = range(depth) if s.options.layers is None else s.options.layers
    if any(not 0 <= layer < depth for layer in drawn):
        study.refuse(study.WRONG_USE, f"--layers: expected numbers from 0 to {depth - 1}, found {drawn}")
    spreads = dict(zip(s.names if s.names[0] != s.names[1] else s.options._models, (Spread(m, s.texts, reach, s.progress) for m in s.models)))
    s.add_data("model", "what", "layer", "head", "at", "value", "low", "high")
    heads = tabulate_heads(s, spreads, depth, lengths)
    tabulate_differences(s, *spreads.values(), lengths)
    tabulate_places(s, spreads, depth)
    for name, spread in spreads.items():
        for layer in range(spread.layers):
            for term in ("c2c", "c2p", "p2c", "probs"):
                for at, value in zip(*(spread.curve(layer, term) or ((), ()))):
                    s.data.add(name, term, layer, "all", at, study.Estimate(value))
    s.finish(f"{len(s.texts)} sentences, {s.tokens} tokens. Entropy, distance and offset: all tokens ask; places and curves: those of the "
             f"text, not [CLS] and [SEP]. 95 % intervals over sentences ({s.resamples}). Head numbers of the two models have nothing to do "
             "with each other.", lambda: draw(spreads, heads, drawn))


def tabulate_heads(s, spreads, depth, lengths):
    """The estimates by model, number, layer and head."""
    table = s.add_table("heads", "Entropy (bits), mean distance and mean offset (tokens; > 0: to the left)",
                        ["layer", "head", *(f"{name}: {number}" for name in spreads for number in NUMBERS)])
    found = {}
    for layer in range(depth):
        for head in [*range(max(one.heads for one in spreads.values())), "all"]:
            cells = []
            for name, spread in spreads.items():
                for number in NUMBERS:
                    if layer >= spread.layers or (head != "all" and head >= spread.heads):
                        cells.append("-")
                        continue
                    found[name, number, layer, head] = estimate = s.ratio(spread.sums(number, layer, head), lengths)
                    cells.append(estimate.show("%+.2f (%+.2f to %+.2f)" if number == "offset" else "%.2f (%.2f to %.2f)"))
                    s.data.add(name, number, layer, head, None, estimate)
            table.add(layer, head, *cells)
    return found


def tabulate_differences(s, one, other, lengths):
    """Heads together: a head of one has no counterpart in the other."""
    table = s.add_table("differences", "The first model minus the second, means over heads", ["layer", "entropy (bits)", "distance (tokens)"])
    for layer in range(min(one.layers, other.layers)):
        table.add(layer, *(s.ratio(one.sums(number, layer, "all") - other.sums(number, layer, "all"), lengths).show("%+.2f (%+.2f to %+.2f)")
                           for number in ("entropy", "distance")))


def tabulate_places(s, spreads, depth):
    table = s.add_table("places", "Where attention goes, in % of a layer's",
                        ["key", *((f"{name}: {layer}", "%.1f") for name in spreads for layer in range(depth))])
    for k, place in enumerate(PLACES):
        if not next(iter(spreads.values())).places[k].any():
            continue
        cells = []
        for name, spread in spreads.items():
            for layer in range(depth):
                if layer >= spread.layers:
                    cells.append("-")
                    continue
                share = s.ratio(100 * spread.places[k, layer], spread.places[:, layer].sum(0))
                cells.append(share.value)
                s.data.add(name, "place", layer, "all", place, share)
        table.add(place, *cells)


def draw(spreads, heads, drawn):
    figure, axes = study.panels(1 + len(drawn), 2)
    for k, (name, spread) in enumerate(spreads.items()):
        at = np.arange(spread.layers) + (-0.08, 0.08)[k]
        for axis, number, label in zip(axes[0], NUMBERS, ("bits", "mean distance (tokens)")):
            study.draw_estimates(axis, at, [heads[name, number, layer, "all"] for layer in range(spread.layers)], color=f"C{k}", label=name)
            points = [[heads[name, number, layer, head].value for head in range(spread.heads)] for layer in range(spread.layers)]
            axis.plot(at, points, "o", color=f"C{k}", alpha=0.5, mew=0)
            axis.set(xlabel="layer", ylabel=label, xticks=range(spread.layers))
        for row, layer in zip(axes[1:], drawn):
            for axis, terms in zip(row, (("probs",), ("c2c", "c2p", "p2c"))):
                for term in terms:
                    if (curve := spread.curve(layer, term)) is not None:
                        look = {"color": f"C{k}"} if term in ("probs", "c2c") else {"color": f"C{2 * terms.index(term) + k}", "ls": "--"}
                        axis.plot(*curve, label=name if term == "probs" else f"{name}: {term}", **look)
                study.distance_axis(axis)
                axis.set(ylabel="probability" if len(terms) == 1 else "scaled logit", title=f"layer {layer}, {'attention' if len(terms) == 1 else 'terms'}")
    for axis in axes[0]:
        axis.set_ylim(bottom=0)
    axes[0, 0].set_title("entropy of heads"), axes[0, 1].set_title("how far they look")
    for axis in axes.ravel():
        axis.legend()
    return figure


if __name__ == "__main__":
    study.run(main)
