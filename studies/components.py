#!/usr/bin/env python3
"""Which share of the attention scores each term makes, by layer, head, distance and kind of token.

    python3 studies/components.py models/demo --file docs/studies/data/sentences.txt -o shares.png

And what the term that the models leave out, position to position, would make and do. Puts to the test: the position-to-position term is not
useful; position fades in deeper layers. SPDX-License-Identifier: MIT
"""
import string
import unicodedata

import study
import numpy as np

TERMS = ("c2c", "c2p", "p2c", "p2p")
MODEL, P2P = slice(0, 3), 3  # the model's own terms; the one that it does not have
CLASSES = ("special", "punctuation", "word", "continuation")


def is_punctuation(text):
    return bool(text) and all(c in string.punctuation or unicodedata.category(c).startswith("P") for c in text)


def classes_of(text):
    """The kind of each token, as an index of CLASSES. A word begins a text, or stands after a space or after punctuation."""
    found = []
    for (begin, end), token, role in zip(text.characters.tolist(), text.tokens, text.roles):
        piece = text.sentence[begin:end].lstrip()
        shown = piece or token.lstrip("▁")  # of several tokens made from one character all but the last have no place
        if role != study.OF_TEXT:
            found.append(0)
        elif is_punctuation(shown):
            found.append(1)
        else:
            begins = begin == 0 or (end > begin and len(piece) < end - begin) or found[-1] == 1
            found.append(2 if begins else 3)
    return np.array(found)


class Squares:
    """Sums by sentence of the squared scores of each term, less what is constant over the keys of a row, which does nothing to a softmax:
    by head; and of all heads together by distance and by kind of token. [sentences, layers, ..., terms]"""

    def __init__(self, s, model, p2p):
        info, count = model.info, len(s.texts)
        self.layers, self.heads = info["layers"], info["heads"]
        self.by_head = np.zeros((count, self.layers, self.heads, 4))
        self.by_distance = np.zeros((count, self.layers, len(study.DISTANCE_BINS), 4))
        self.by_class = np.zeros((count, self.layers, len(CLASSES), 4))
        for k, text in enumerate(s.progress(s.texts)):
            n, classes = len(text.ids), classes_of(text)
            r = np.arange(n)[:, None] - np.arange(n)
            bins = (study.distance_bin(r) - study.DISTANCE_BINS[0]).ravel()
            found = model.encode([text.ids], hidden=None, components="all")
            for layer in range(self.layers):
                terms = [found.get(f"attn.{layer}.{name}") for name in TERMS[MODEL]]
                terms = [None if one is None else one[0].astype(float) for one in terms] + [None if p2p is None else p2p.by_distance(layer, r)]
                for term, values in enumerate(terms):
                    if values is None:
                        continue
                    squares = (values - values.mean(2, keepdims=True)) ** 2
                    self.by_head[k, layer, :, term] = squares.sum((1, 2))
                    together = squares.sum(0)
                    self.by_distance[k, layer, :, term] = np.bincount(bins, together.ravel(), len(study.DISTANCE_BINS))
                    self.by_class[k, layer, :, term] = np.bincount(classes, together.sum(1), len(CLASSES))


class PositionTerm:
    """Position to position, PQ[row(r)] . PK[row(r)] by row of the table, [layers, heads, rows]: a bias for every distance. mirrored: with
    PQ[row(-r)], as the paper writes it; the published code indexes p2c by row(r), so that both read the same row."""

    def __init__(self, model, reach, mirrored=False):
        info, distances = model.info, range(-reach, reach + 1)
        row = {r: model.position_row(r) for r in distances}
        distance = {}  # of each row the one that is nearest to 0; 0 where the texts never meet the row
        for r in sorted(distances, key=abs, reverse=True):
            distance[row[r]] = r
        query_rows = [model.position_row(-distance.get(k, 0)) if mirrored else k for k in range(info["relative_rows"])]
        self.by_row = np.empty((info["layers"], info["heads"], info["relative_rows"]), np.float32)
        for layer in range(info["layers"]):
            keys, queries = (one.astype(float) for one in model.positions(layer))
            self.by_row[layer] = (queries[:, query_rows] * keys).sum(2)
        self._rows = np.array([row[r] for r in distances])
        self._reach = reach

    def by_distance(self, layer, r):
        """[heads, *r.shape]"""
        return self.by_row[layer][:, self._rows[r + self._reach]].astype(float)


def losses_with(s, model, biases):
    """Sums of the masked-LM losses by sentence with each bias by row, and the number of masks."""
    hidden, head = study.hide(s.texts, s.mask_id, s.seed), study.mask_head(model, s.options.mlm_decoder)
    losses = [[study.mask_losses(rows, one).sum() for rows, one in zip(study.mask_logits(model, hidden, head, row_bias=bias), hidden)] for bias in biases]
    return np.array(losses), [len(one.places) for one in hidden]


class Report:
    """Shares in tables and data."""

    def __init__(self, s, has_p2p):
        self.s, self.terms = s, TERMS if has_p2p else TERMS[MODEL]
        s.add_data("group", "layer", "name", "term", "share", "low", "high")

    def table(self, name, title, *first):
        return self.s.add_table(name, title, [*first, *(term if term != "p2p" else "p2p, if added" for term in self.terms)])

    def shares(self, group, layer, name, squares):
        """Texts of the shares of one place, whose squares are [sentences, terms], and their rows in the data."""
        cells = []
        for term, title in enumerate(self.terms):
            whole = squares[:, MODEL].sum(1) + (squares[:, P2P] if term == P2P else 0)
            share = self.s.ratio(squares[:, term], whole)
            cells.append(share.mapped(lambda value: 100 * value).show("%.1f %% (%.1f-%.1f)"))
            self.s.data.add(group, layer, name, title, share)
        return cells

    def group(self, table, group, names, squares):
        """Over all layers into the table, by layer into the data as well. squares [sentences, layers, names, terms]"""
        for k, name in enumerate(names):
            if squares[:, :, k, MODEL].sum() > 0:
                table.add(name, *self.shares(group, "all", name, squares[:, :, k].sum(1)))
                for layer in range(squares.shape[1]):
                    self.shares(group, layer, name, squares[:, layer, k])


def main():
    s = study.begin(study.with_mask_decoder(study.command_line(__doc__, "model")))
    (model,) = s.models
    info, reach = model.info, max(len(text.ids) for text in s.texts)
    has_p2p = bool(info["has_c2p"] and info["has_p2c"])
    asks = has_p2p and bool({"mlm", "mlm_emd"} & {*info["tasks"]})
    if not asks and s.options.mlm_decoder != "auto":
        study.refuse(study.WRONG_USE, f"--mlm-decoder: {model.path} lacks a masked-LM head or one of c2p and p2c, so no loss is measured")
    p2p = [PositionTerm(model, reach), PositionTerm(model, reach, mirrored=True)] if has_p2p else [None]
    squares = Squares(s, model, p2p[0])
    report = Report(s, has_p2p)
    table = report.table("shares", "Share of the variance of the scores", "layer", "head")
    for layer in range(info["layers"]):
        for head in [*range(info["heads"]), *(["all"] if info["heads"] > 1 else [])]:
            chosen = squares.by_head[:, layer]
            table.add(layer, head, *report.shares("head", layer, head, chosen.sum(1) if head == "all" else chosen[:, head]))
    names = [*map(study.distance_name, study.DISTANCE_BINS)]
    report.group(report.table("distances", "By the place of the key", "key"), "distance", names, squares.by_distance)
    report.group(report.table("classes", "By the kind of the token that asks", "token"), "token", CLASSES, squares.by_class)
    if asks:
        tabulate_losses(s, *losses_with(s, model, [None, *(one.by_row for one in p2p)]))
    s.finish(f"{len(s.texts)} sentences, {s.tokens} tokens; 95 % intervals over sentences ({s.resamples}).", lambda: draw(squares, names))


def tabulate_losses(s, losses, masks):
    table = s.add_table("losses", "Masked-LM loss with the position-to-position term", ["model", "loss (nats)", "change"])
    for name, sums in zip(("as it is", "with p2p, row(r) on both sides", "with p2p, row(r) and row(-r)"), losses):
        change = None if sums is losses[0] or (sums == losses[0]).all() else s.ratio(sums - losses[0], masks).show("%+.4f (%+.4f, %+.4f)")
        table.add(name, s.ratio(sums, masks).show("%.4f (%.4f, %.4f)"), change)


def draw(squares, names):
    """Stacked shares of the places that occur, in per cent."""
    figure, axes = study.panels(1, 3, height=55)
    groups = (("by layer", "layer", range(squares.layers), squares.by_head.sum((0, 2))),
              ("by place of the key", "place of the key", names, squares.by_distance.sum((0, 1))),
              ("by kind of token", "", CLASSES, squares.by_class.sum((0, 1))))
    for axis, (title, label, places, sums) in zip(axes[0], groups):
        there = sums[:, MODEL].sum(1) > 0
        shares = 100 * sums[there][:, MODEL] / sums[there][:, MODEL].sum(1, keepdims=True)
        at, below = np.arange(len(shares)), np.zeros(len(shares))
        for term in range(3):
            axis.bar(at, shares[:, term], bottom=below, label=TERMS[term])
            below += shares[:, term]
        axis.set_xticks(at, [str(place) for place, one in zip(places, there) if one], rotation=90 if len(at) > 5 else 0)
        axis.set(title=title, xlabel=label, ylim=(0, 100))
    axes[0, 0].set_ylabel("share of the variance (%)")
    study.legend_above(figure, axes[0, 0])
    figure.suptitle("What the attention scores are made of")
    return figure


if __name__ == "__main__":
    study.run(main)
