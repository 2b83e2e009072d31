#!/usr/bin/env python3
"""What each term of each head is worth to the masked-LM loss, by taking it out.

    python3 studies/ablate.py models/demo --file docs/studies/data/sentences.txt -o effects.png
    python3 studies/ablate.py models/demo --file docs/studies/data/sentences.txt --kind mean --data effects.csv

Puts to the test: position information fades in deeper layers; a term's share of the scores says what it is worth.
SPDX-License-Identifier: MIT
"""
import math

import study
import numpy as np

TERMS = ("c2c", "c2p", "p2c")
KINDS = {"zero": "zero", "mean": "its mean over the text"}
KEPT_BYTES = 1 << 28  # of the logits of the whole model, with which those without a term are compared


def interventions(model):
    """(layer, head, term): heads, layers as a whole, the model as a whole; and the terms that the model has."""
    info = model.info
    terms = [term for term, there in zip(TERMS, (True, info["has_c2p"], info["has_p2c"])) if there]
    heads = [*range(info["heads"]), *(["all"] if info["heads"] > 1 else [])]
    places = [*((layer, head) for layer in range(info["layers"]) for head in heads), ("all", "all")]
    return [(layer, head, term) for layer, head in places for term in terms], terms


def squares_by_head(model, ids, terms):
    """Variance of each term's scores, [layers, heads, terms]: what is constant over the keys does nothing to a softmax."""
    info, found = model.info, model.encode([ids], hidden=None, components="all")
    squares = np.zeros((info["layers"], info["heads"], len(terms)))
    for layer in range(info["layers"]):
        for k, term in enumerate(terms):
            values = found[f"attn.{layer}.{term}"][0].astype(float)
            squares[layer, :, k] = ((values - values.mean(2, keepdims=True)) ** 2).sum((1, 2))
    return squares


def centred_change(plain, changed):
    """Mean over the vocabulary of |d - mean of d|: a softmax does not see a change that is the same for all words."""
    change = changed.astype(float) - plain
    return np.abs(change - change.mean(1, keepdims=True)).mean(1).sum()


def measure(s, model, hidden, head, asked):
    """Sums by sentence over its masks: loss [sentences], changes of loss and of logits [interventions, sentences]."""
    loss, changes = np.zeros(len(hidden)), np.zeros((2, len(asked), len(hidden)))
    together = max(1, KEPT_BYTES // (4 * model.info["vocabulary_size"] * max(len(one.places) for one in hidden)))
    parts = [range(first, min(first + together, len(hidden))) for first in range(0, len(hidden), together)]
    for part in parts:
        plain = study.mask_logits(model, [hidden[k] for k in part], head)
        loss[part] = [study.mask_losses(rows, hidden[k]).sum() for k, rows in zip(part, plain)]
        for index, (layer, place, term) in enumerate(s.progress(asked, f"interventions on {len(part)} sentences")):
            with model.ablate(f"{term}={s.options.kind}@{layer}:{place}"):
                for k, before, after in zip(part, plain, study.mask_logits(model, [hidden[k] for k in part], head)):
                    changes[0, index, k] = study.mask_losses(after, hidden[k]).sum() - loss[k]
                    changes[1, index, k] = centred_change(before, after)
    return loss, changes


def main():
    parser = study.with_mask_decoder(study.command_line(__doc__, "model"))
    parser.add_argument("--kind", choices=KINDS, default="zero", help="what replaces a term: zero (default), or mean: what it says whatever the token is")
    s = study.begin(parser)
    (model,) = s.models
    head = study.mask_head(model, s.options.mlm_decoder)
    asked, terms = interventions(model)
    hidden = study.hide(s.texts, s.mask_id, s.seed)
    squares = sum(squares_by_head(model, one.ids, terms) for one in s.progress(hidden))
    loss, changes = measure(s, model, hidden, head, asked)
    masks = [len(one.places) for one in hidden]
    shares, losses = report(s, asked, terms, squares / squares.sum(2, keepdims=True), changes, masks)
    tabulate_prediction(s, asked, terms, shares, losses)
    whole = s.ratio(loss, masks).show("%.4f nats (%.4f, %.4f)")
    note = (f"Loss of the whole model: {whole} over {sum(masks)} masked tokens of {len(s.texts)} sentences (15 %, seed {s.seed}); one term at a time "
            f"replaced by {KINDS[s.options.kind]}. Intervals over sentences, {study.RESAMPLES} resamples. Masked-LM head: "
            f"{'emd' if head == 'mlm_emd' else 'plain'}.")
    s.finish(note, lambda: draw(model, terms, dict(zip(asked, losses))))


def report(s, asked, terms, share_of, changes, masks):
    """Table and data; shares of the variance and changes of the loss of every intervention."""
    table = s.add_table("effects", "Change of the loss per masked token without a term (95 % interval), and mean change of the logits",
                        ["layer", "head", *terms, *((f"{term} logits", "%.3f") for term in terms)])
    s.add_data("layer", "head", "term", "share", "loss_change", "loss_low", "loss_high", "logit_change", "logit_low", "logit_high")
    shares, losses = np.full(len(asked), np.nan), np.zeros(len(asked))
    for first in range(0, len(asked), len(terms)):
        cells, logits = [], []
        for k in range(first, first + len(terms)):
            layer, head, term = asked[k]
            if head != "all":
                shares[k] = share_of[layer, head, terms.index(term)]
            loss, moved = (s.ratio(change[k], masks) for change in changes)
            losses[k] = loss.value
            cells.append(loss.show("%+.4f (%+.4f, %+.4f)"))
            logits.append(moved.value)
            s.data.add(layer, head, term, shares[k], loss, moved)
        table.add(*asked[first][:2], *cells, *logits)
    return shares, losses


def tabulate_prediction(s, asked, terms, shares, losses):
    """Does the share of the variance foretell the effect? Among the heads."""
    table = s.add_table("prediction", "Rank correlation of a term's share of the variance with the change of the loss",
                        ["term", "heads", ("rho", "%.2f"), "95 %"])
    for term in (*terms, "all"):
        chosen = [k for k, one in enumerate(asked) if not math.isnan(shares[k]) and term in (one[2], "all")]
        rho = rank_correlation(shares[chosen], losses[chosen])
        interval = None
        if len(chosen) > 3 and not math.isnan(rho):  # Fisher's transformation
            middle, width = math.atanh(rho), 1.96 / math.sqrt(len(chosen) - 3)
            interval = f"{math.tanh(middle - width):.2f} to {math.tanh(middle + width):.2f}"
        table.add(term, len(chosen), rho, interval)


def rank_correlation(x, y):
    """Spearman's, ties at their mean rank; NaN if one does not vary."""
    ranks = [((one[:, None] > one).sum(1) + ((one[:, None] == one).sum(1) - 1) / 2) - (len(one) - 1) / 2 for one in (x, y)]
    size = math.sqrt((ranks[0] ** 2).sum() * (ranks[1] ** 2).sum())
    return float((ranks[0] * ranks[1]).sum() / size) if size > 0 else math.nan


def draw(model, terms, losses):
    """Panels by term, rows by layer, columns by head and, last, all heads of the layer at once."""
    info = model.info
    columns = [*range(info["heads"]), *(["all"] if info["heads"] > 1 else [])]
    maps = {term: [[losses[layer, head, term] for head in columns] for layer in range(info["layers"])] for term in terms}
    figure, axes = study.panels(1, len(terms), height=max(42, 7 * info["layers"]))
    study.draw_maps(figure, axes[0], maps, range(info["layers"]), columns, "change of the loss\n(nats per masked token)")
    for axis in axes[0]:
        axis.set(xlabel="head", ylabel="layer")
    figure.suptitle("Change of the masked-LM loss without a term")
    return figure


if __name__ == "__main__":
    study.run(main)
