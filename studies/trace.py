#!/usr/bin/env python3
"""Which term carries number: agreement across a distractor, traced by activation patching.

    python3 studies/trace.py docs/studies/data/trace.csv

Puts to the test: content-to-content attention carries grammatical number from a subject to its verb. In each item the subject and a noun between
it and the verb differ in number, and change places; then all heads of all layers take one term, or their outputs, from the clean run. The control
corrupts the subject's identity alone: another item's subject of the same number takes its place. --trace MODEL --blimp ZIP traces the items that
the file lacks: it may be stopped and goes on. SPDX-License-Identifier: MIT
"""
import csv
import json
import zipfile
from pathlib import Path
from typing import NamedTuple

import study
import numpy as np
import deberta_c

TRIES = 20
PARTS = {"c2c": "c2c", "c2p": "c2p", "p2c": "p2c", "terms": "all terms", "heads": "outputs of heads"}
SINGLE = ("heads", "c2c", "c2p", "p2c")
PREPOSITIONS, RELATIVES = ("of", "about"), ("who", "that", "which")
# Of a relative clause that does not say the subject's number itself; with them verbs in -ed.
WITHOUT_NUMBER = {f"{word}{end}" for word in ("had", "did", "could", "would", "should", "might") for end in ("", "n't")} | {"can", "can't", "will", "won't"}
GROUPS = {"all": lambda row: True, "relational noun": lambda row: row["set"] == "relational_noun", "relative clause": lambda row: row["set"] == "relative_clause",
          "no name in it": lambda row: row["name"] == "0", "relative clause, no name": lambda row: row["set"] == "relative_clause" and row["name"] == "0",
          "the, some before both": lambda row: row["determiners"] == "both"}


class Item(NamedTuple):
    """Clean text with [MASK] in the place of the verb, the right verb and the wrong one, the nouns, and what kind of item it is."""

    set: str
    line: int  # of the set's file, from 1
    text: str
    right: str
    wrong: str
    subject: str
    distractor: str
    name: int  # 1: the distractor is a name
    determiners: str  # "both": those of both nouns go with either number


def subject_of(words, verb, kind):
    """Its place: before the preposition, or before the pronoun of a clause whose own verb has no number; None: another construction."""
    if kind == "relational_noun":
        return next((k - 1 for k in range(1, verb) if words[k] in PREPOSITIONS), None)
    at = next((k for k in range(1, verb) if words[k] in RELATIVES), None)
    return at - 1 if at and (words[at + 1] in WITHOUT_NUMBER or words[at + 1].endswith("ed")) else None


def items_of(archive):
    with zipfile.ZipFile(archive) as whole:
        for kind in ("relational_noun", "relative_clause"):
            for number, line in enumerate(whole.read(f"data/distractor_agreement_{kind}.jsonl").decode("utf-8").splitlines(), 1):
                good, bad = (json.loads(line)[key].split() for key in ("sentence_good", "sentence_bad"))
                differ = [i for i, pair in enumerate(zip(good, bad)) if pair[0] != pair[1]]
                verb = differ[0]
                subject = subject_of(good, verb, kind)
                if len(good) != len(bad) or len(differ) != 1 or not subject or verb - subject < 3:  # a subject in front would take its capital along
                    continue
                before = [good[noun - 1].lower() for noun in (subject, verb - 1)]
                yield Item(kind, number, " ".join([*good[:verb], "[MASK]", *good[verb + 1:]]), good[verb], bad[verb], good[subject], good[verb - 1],
                           int(good[verb - 1][0].isupper()), "both" if {"the", "some"}.issuperset(before) else "one")


def same_number(model, random, others, item, asked):
    """The same text with another subject of this number, in as many tokens; None: there is none."""
    for _ in range(TRIES if others else 0):
        other = others[random.below(len(others))]
        try:
            return model.trace(item.text, corrupted=item.text.replace(f"{item.subject} ", f"{other} ", 1), **asked)
        except (deberta_c.ArgumentError, deberta_c.FormatError):  # another number of pieces
            continue
    return None


def traced(model, items, item, seed):
    """What the two corruptions give: a row of the file, whose numbers are empty for an item that does not fit."""
    row = {"set": item.set, "line": item.line, "name": item.name, "determiners": item.determiners}
    asked = {"answer": [item.right, item.wrong], "what": "heads,terms", "quiet": True}
    others = sorted({one.subject for one in items if one.right == item.right and one.set == item.set} - {item.subject})
    try:
        found = model.trace(item.text, swap=[item.subject, item.distractor], **asked)
    except (deberta_c.ArgumentError, deberta_c.FormatError):  # a verb of several tokens, a word twice
        return row
    control = same_number(model, study.Random(seed * 1000003 + item.line), others, item, asked)
    if control is None:
        return row
    row.update(clean=f"{found['clean']:.5f}", corrupted=f"{found['corrupted']:.5f}")
    for prefix, one in (("", found), ("control_", control)):
        row.update({f"{prefix}{name}": f"{one['measures']['together'][name] - one['corrupted']:.5f}" for name in PARTS})
    for name in SINGLE:
        moved = (found["measures"][name] - found["corrupted"]).sum(axis=1)
        row.update({f"{name}_{layer}": f"{one:.5f}" for layer, one in enumerate(moved)})
    return row


def trace_what_is_missing(s, path):
    """Appends a line an item, so that a run that is stopped loses none."""
    items, there = list(items_of(s.options.blimp)), rows_of(path) if Path(path).exists() else []
    known = {(row["set"], int(row["line"])) for row in there}
    with s.open(s.options.trace) as model, open(path, "a", encoding="utf-8", newline="") as file:
        layers = range(model.info["layers"])
        names = ["set", "line", "name", "determiners", "clean", "corrupted", *PARTS, *(f"control_{name}" for name in PARTS), *(f"{name}_{k}" for name in SINGLE for k in layers)]
        writer = csv.DictWriter(file, names, lineterminator="\n")
        if not there:
            writer.writeheader()
        for item in s.progress([one for one in items if (one.set, one.line) not in known], "items"):
            writer.writerow(traced(model, items, item, s.seed))
            file.flush()


def rows_of(path):
    try:
        with open(path, encoding="utf-8", newline="") as file:
            return list(csv.DictReader(file))
    except OSError as reason:
        study.refuse(study.BAD_INPUT, f"{path}: cannot be opened: {reason.strerror}")


def main():
    parser = study.command_line(__doc__)
    parser.add_argument("results", metavar="RESULTS", help="a line an item, CSV")
    parser.add_argument("--trace", metavar="MODEL", help="trace the items that RESULTS lacks, and add them; needs --blimp")
    parser.add_argument("--blimp", metavar="ZIP", help="BLiMP.zip, your own copy")
    for name, value in (("isa", None), ("threads", None), ("reference", "auto"), ("memory_limit", None), ("precision", "float32"), ("ablate", "")):
        parser.set_defaults(**{name: value})
    s = study.begin(parser)
    if bool(s.options.trace) != bool(s.options.blimp):
        study.refuse(study.WRONG_USE, "--trace and --blimp need each other")
    if s.options.trace:
        trace_what_is_missing(s, s.options.results)
    show(s, rows_of(s.options.results))


def show(s, rows):
    fit = [row for row in rows if row.get("clean")]
    if not fit:
        study.refuse(study.BAD_INPUT, f"{s.options.results}: expected items with numbers, found none in {len(rows)} rows")

    def column(name, of):
        return np.array([float(row[name]) for row in of])

    def share(name, of, form="%.3f (%.3f to %.3f)"):
        return s.ratio(column(name, of), column("clean", of) - column("corrupted", of)).show(form)

    table = s.add_table("together", "Part of the answer that comes back, all heads of all layers", ["from the clean run", "subject and distractor exchanged", "control: another subject of the same number"])
    for name, title in PARTS.items():
        table.add(title, share(name, fit), share(f"control_{name}", fit))
    table = s.add_table("groups", "The same by kind of item", ["items", "number", "the right verb is ahead", *(title for name, title in PARTS.items() if name != "heads")])
    for title, belongs in GROUPS.items():
        some = [row for row in fit if belongs(row)]
        table.add(title, len(some), s.ratio(column("clean", some) > 0, np.ones(len(some))).show("%.2f (%.2f to %.2f)"), *(share(name, some) for name in PARTS if name != "heads"))
    layers = [int(name[6:]) for name in fit[0] if name.startswith("heads_")]
    whole = column("clean", fit) - column("corrupted", fit)
    single = {name: [s.ratio(column(f"{name}_{layer}", fit), whole) for layer in layers] for name in SINGLE}
    table = s.add_table("layers", "The same one head at a time, summed over the heads of a layer", ["layer", *single])
    for layer in layers:
        table.add(layer, *(one[layer].show("%+.3f (%+.3f to %+.3f)") for one in single.values()))
    s.add_data(*fit[0])
    for row in fit:
        s.data.add(row["set"], int(row["line"]), int(row["name"]), row["determiners"], *(float(row[name]) for name in list(row)[4:]))
    right, mean = s.ratio(column("clean", fit) > 0, np.ones(len(fit))), s.ratio(whole, np.ones(len(fit)))
    s.finish(f"{len(fit)} items, {len(rows) - len(fit)} passed over (a verb of several tokens, a word twice, no subject for the control). The right verb is ahead in "
             f"{right.show('%.2f (%.2f to %.2f)')} of the clean texts; the exchange takes {mean.show('%.3f (%.3f to %.3f)')} logits from it. 95 % intervals over items ({s.resamples}).",
             lambda: draw(single))


def draw(single):
    figure, axes = study.panels(1, 1, height=50)
    for place, (name, estimates) in enumerate(single.items()):
        study.draw_estimates(axes[0, 0], np.arange(len(estimates)) + 0.08 * (place - 1.5), estimates, label="outputs of heads" if name == "heads" else name)
    axes[0, 0].set(xlabel="layer", ylabel="share restored,\none head at a time", xticks=range(len(estimates)))
    study.legend_above(figure, axes[0, 0])
    return figure


if __name__ == "__main__":
    study.run(main)
