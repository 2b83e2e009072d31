#!/usr/bin/env python3
"""What absolute positions before the softmax (the Enhanced Mask Decoder) change at masks that depend on their place.

    python3 studies/decoder.py models/demo --file docs/studies/data/decoder.txt

Puts to the test: store and mall cannot be told apart by relative positions; content-only and position-enhanced predictions differ on
subject, verb and preposition. SPDX-License-Identifier: MIT
"""
import itertools
import re
from typing import NamedTuple

import study
import numpy as np

DECODERS = {"plain": "head on H[L]", "emd": "EMD", "emd_level": "EMD, one position"}
KINDS, EITHER, ALL = ("subject", "verb", "preposition"), "either", "all three"


class Context(NamedTuple):
    """A sentence with two masks; pairs: ids and words, the first belongs at the first mask."""

    frame: int
    kind: str
    sentence: str
    ids: np.ndarray
    masks: np.ndarray
    pairs: list


class Answer(NamedTuple):
    """At one mask of one context, for one pair: log probabilities by decoder."""

    context: Context
    place: int
    words: tuple
    right: dict
    other: dict


# ----------------------------------------------------------------------------------------------------------------- the file


def read(s):
    """Contexts, and how many pairs were left out because their words are not single tokens."""
    contexts, skipped, frame = [], 0, 0
    for place, line in study.lines_of(s.options.file, s.options.text):
        if line.startswith("#"):
            continue
        if "\0" in line:
            study.refuse(study.BAD_INPUT, f"{place}: expected kind, tab, template, tab, pairs, found a NUL byte")
        parts = line.split("\t", 2)
        if len(parts) < 3:
            study.refuse(study.BAD_INPUT, f"{place}: expected kind, tab, template, tab, pairs")
        kind, template, pairs = parts
        if kind not in (*KINDS, EITHER):
            study.refuse(study.BAD_INPUT, f"{place}: expected the kind subject, verb, preposition or either, found '{kind}'")
        found = [pair_of(s, text, place) for text in pairs.split(",")]
        kept = [pair for pair in found if pair]
        skipped += len(found) - len(kept)
        sentences = expanded(template, place)
        if kept:
            contexts += [context_of(s, frame, kind, sentence, kept) for sentence in sentences]
        frame += 1
    if not contexts:
        study.refuse(study.BAD_INPUT, "there is no frame whose words are single tokens")
    return contexts, skipped, frame


def pair_of(s, text, place):
    words = tuple(text.split("/"))
    if len(words) != 2 or not all(words):
        study.refuse(study.BAD_INPUT, f"{place}: expected word/word, found '{text}'")
    tokens = [s.text(" " + word, place) for word in words]
    ids = [one.ids[one.own] for one in tokens]
    return (words, [int(one[0]) for one in ids]) if all(len(one) == 1 for one in ids) else None


def expanded(template, place):
    """The sentences of a template, [MASK] in the places of {1} and {2}; the first alternative changes fastest."""
    pieces = re.split(r"<([^<>]*)>", template)
    if [*re.findall(r"\{(.?\}?)", template)] != ["1}", "2}"] or "<" in "".join(pieces[::2]):
        study.refuse(study.BAD_INPUT, f"{place}: expected a sentence with {{1}}, then {{2}}, and <a|b>, found '{template[:200]}'")
    choices = [piece.split("|") for piece in pieces[1::2]]
    found = []
    for chosen in itertools.product(*choices[::-1]):
        words = [None] * len(pieces)
        words[::2], words[1::2] = pieces[::2], chosen[::-1]
        found.append("".join(words).replace("{1}", "[MASK]").replace("{2}", "[MASK]"))
    return found


def context_of(s, frame, kind, sentence, pairs):
    ids = s.text(sentence).ids
    return Context(frame, kind, sentence, ids, np.flatnonzero(ids == s.mask_id)[:2], pairs)


# ------------------------------------------------------------------------------------------------------------- measuring


def logits_of(model, context, decoder):
    """[2, vocabulary] at the masks. For emd_level every token has the position of the sentence's middle: the decoder adds a vector that is
    like those it was trained with, and that says nothing."""
    level = np.full(len(context.ids), len(context.ids) // 2, np.int32) if decoder == "emd_level" else None
    head = "mlm" if decoder == "plain" else "mlm_emd"
    return model.encode([context.ids], hidden=None, logits=head, at=[context.masks], position_ids=None if level is None else [level])[f"logits.{head}"][0]


def measure(s, model, contexts):
    """Answers; by decoder and context the largest difference between a logit at both masks; by context the largest logit of the plain head at the first mask."""
    answers, differences, scales = [], {decoder: [] for decoder in DECODERS}, []
    for context in s.progress(contexts):
        logs = {}
        for decoder in DECODERS:
            logits = logits_of(model, context, decoder).astype(float)
            differences[decoder].append(np.abs(logits[0] - logits[1]).max())
            logs[decoder] = logits - logits.max(1, keepdims=True)
            logs[decoder] -= np.log(np.exp(logs[decoder]).sum(1, keepdims=True))
            if decoder == "plain":
                scales.append(np.abs(logits[0]).max())
        for words, ids in context.pairs:
            for place in range(2):
                answers.append(Answer(context, place, (words[place], words[1 - place]), {d: logs[d][place, ids[place]] for d in DECODERS},
                                      {d: logs[d][place, ids[1 - place]] for d in DECODERS}))
    return answers, {decoder: np.array(values) for decoder, values in differences.items()}, np.array(scales)


# ---------------------------------------------------------------------------------------------------------------- report


def mean_of(s, answers, number):
    """Over the answers; frames are what is drawn again, as sentences of a frame are much alike."""
    frames = {frame: k for k, frame in enumerate(dict.fromkeys(one.context.frame for one in answers))}
    parts, wholes = np.zeros((2, len(frames)))
    for one in answers:
        parts[frames[one.context.frame]] += number(one)
        wholes[frames[one.context.frame]] += 1
    return s.ratio(parts, wholes)


def decoders(s, answers, number, factor, form):
    """Estimates of each decoder and their texts; last what the Enhanced Mask Decoder has over the head and over itself without positions."""
    means = [mean_of(s, answers, lambda one: number(one, d)) for d in DECODERS]
    differences = [mean_of(s, answers, lambda one: number(one, "emd") - number(one, d)) for d in ("plain", "emd_level")]
    means, differences = ([one.mapped(lambda value: factor * value) for one in some] for some in (means, differences))
    signed = form.replace("%", "%+")
    return means, [*(one.show(form) for one in means), *(one.show(signed) for one in differences)]


def of_kind(answers, kind):
    return [one for one in answers if one.context.kind == kind or (kind == ALL and one.context.kind != EITHER)]


def main():
    parser = study.command_line(__doc__, "model", texts=False)
    parser.add_argument("-f", "--file", action="append", default=[], metavar="FILE",
                        help="frames: kind, tab, sentence with {1}, {2} and <a|b>, tab, pairs of words; may be repeated")
    parser.add_argument("--text", action="append", default=[], metavar="TEXT", help="such a line; may be repeated")
    s = study.begin(parser)
    (model,) = s.models
    info = model.info
    if "mlm_emd" not in info["tasks"] or info["position_biased_input"]:
        study.refuse(study.BAD_INPUT, f"{model.path} has no Enhanced Mask Decoder to be compared with its plain head")
    if not s.options.file and not s.options.text:
        study.refuse(study.WRONG_USE, "no text: give --text or --file")
    contexts, skipped, frames = read(s)
    answers, differences, scales = measure(s, model, contexts)
    kinds = [kind for kind in (*KINDS, ALL) if of_kind(answers, kind)]
    columns = [*DECODERS.values(), "EMD - head", "EMD - one position"]
    accuracy = s.add_table("accuracy", "Which of the two words is more probable: the one that belongs here, in %", ["position of", "items", *columns])
    logs = s.add_table("log_probability", "Mean log probability of the word that belongs here, in nats", ["position of", *columns])
    shares = {}
    for kind in (*KINDS, ALL):
        chosen = of_kind(answers, kind)
        if not chosen:
            accuracy.add(kind, 0, *[None] * len(columns))
            logs.add(kind, *[None] * len(columns))
            continue
        shares[kind], cells = decoders(s, chosen, lambda one, d: float(one.right[d] > one.other[d]), 100, "%.1f (%.1f to %.1f)")
        accuracy.add(kind, len(chosen), *cells)
        logs.add(kind, *decoders(s, chosen, lambda one, d: one.right[d], 1, "%.2f (%.2f to %.2f)")[1])
    tabulate_masks(s, contexts, differences, scales)
    s.add_data("kind", "sentence", "mask", "word", "other", "decoder", "log_p_word", "log_p_other")
    for one in answers:
        for d in DECODERS:
            s.data.add(one.context.kind, one.context.sentence, one.place + 1, *one.words, d, one.right[d], one.other[d])
    s.finish(f"{len(answers)} items in {len(contexts)} sentences of {frames} frames; {skipped} pairs left out, their words are not single tokens. 95 % "
             f"intervals over frames ({s.resamples}). EMD, one position: every token is given the position of the sentence's middle.",
             lambda: draw(kinds, shares))


def tabulate_masks(s, contexts, differences, scales):
    """Are the two masks of a sentence told apart? The smallest difference also in units of float32's rounding."""
    table = s.add_table("two_masks", "The two masks of a sentence: largest difference of a logit; eps = 2^-23",
                        ["position of", "decoder", "sentences", "with equal logits", ("smallest", "%.2f"), ("median", "%.2f"),
                         ("smallest, in eps x largest logit", "%.2g")])
    for kind in (*KINDS, EITHER):
        chosen = np.array([context.kind == kind for context in contexts])
        for decoder, title in DECODERS.items() if chosen.any() else ():
            values = differences[decoder][chosen]
            table.add(kind, title, len(values), int((values == 0).sum()), values.min(), np.median(values),
                      (values / (np.finfo(np.float32).eps * scales[chosen])).min())


def draw(kinds, shares):
    figure, axes = study.panels(1, 1, height=60, width=120)
    for k, title in enumerate(DECODERS.values()):
        study.draw_bars(axes[0, 0], [place + 0.27 * (k - 1) for place in range(len(kinds))], [shares[kind][k] for kind in kinds], 0.25, label=title)
    axes[0, 0].axhline(50, color="#5a5a5a", ls="--", lw=0.6)
    axes[0, 0].set_xticks(range(len(kinds)), kinds)
    axes[0, 0].set(title="Which of two words belongs at this mask?", xlabel="position of", ylabel="items right (%); dashed: chance", ylim=(0, 100))
    study.legend_above(figure, axes[0, 0])
    return figure


if __name__ == "__main__":
    study.run(main)
