#!/usr/bin/env python3
"""Which term carries number: agreement across a distractor, traced by activation patching.

    python3 studies/trace.py models/demo --blimp BLiMP.zip

Puts to the test: content-to-content attention carries grammatical number from a subject to its verb. In each item the subject and a noun between
it and the verb differ in number, and change places; then all heads of all layers take one term, or their outputs, from the clean run. The control
corrupts the subject's identity alone: another item's subject of the same number takes its place. SPDX-License-Identifier: MIT
"""
import json
import zipfile

import study
import numpy as np
import deberta_c

TRIES = 20
SETS = ("distractor_agreement_relational_noun",)
PARTS = {"c2c": "c2c", "c2p": "c2p", "p2c": "p2c", "terms": "all terms", "heads": "outputs of heads"}


def items_of(archive):
    """Clean text with [MASK] in the place of the verb, the right verb and the wrong one, subject and distractor."""
    with zipfile.ZipFile(archive) as whole:
        for name in SETS:
            for line in whole.read(f"data/{name}.jsonl").decode("utf-8").splitlines():
                good, bad = (json.loads(line)[key].split() for key in ("sentence_good", "sentence_bad"))
                differ = [i for i, pair in enumerate(zip(good, bad)) if pair[0] != pair[1]]
                if len(good) == len(bad) and len(differ) == 1 and differ[0] >= 4 and "of" in good[1:differ[0]]:
                    verb, of = differ[0], good.index("of")
                    yield (" ".join([*good[:verb], "[MASK]", *good[verb + 1:]]), good[verb], bad[verb], good[of - 1], good[verb - 1])


def same_number(model, random, items, item, asked):
    """The same text with another subject of this number, in as many tokens."""
    text, right, subject = item
    others = [one for one in items if one[1] == right and one[3] != subject]
    for _ in range(TRIES if others else 0):
        other = others[random.below(len(others))][3]
        try:
            return model.trace(text, corrupted=text.replace(f" {subject} ", f" {other} ", 1), **asked)
        except deberta_c.Error:  # another number of pieces
            continue
    raise deberta_c.Error("no other subject of this number fits")


def main():
    parser = study.command_line(__doc__, "model", texts=False)
    parser.add_argument("--blimp", required=True, metavar="ZIP", help="BLiMP.zip, your own copy")
    parser.add_argument("--items", type=int, default=300, metavar="N", help="items that are traced (default 300)")
    s = study.begin(parser)
    model, drawn = s.models[0], list(items_of(s.options.blimp))
    random, rows, controls, skipped = study.Random(s.seed), [], [], 0
    for place in range(len(drawn) - 1, 0, -1):
        other = random.below(place + 1)
        drawn[place], drawn[other] = drawn[other], drawn[place]
    for text, right, wrong, subject, distractor in drawn:
        if len(rows) >= s.options.items:
            break
        asked = {"answer": [right, wrong], "what": "heads,terms", "quiet": True}
        try:
            found = model.trace(text, swap=[subject, distractor], **asked)
            control = same_number(model, random, drawn, (text, right, subject), asked)
        except deberta_c.Error:  # a verb of several tokens, a word twice, no such subject
            skipped += 1
            continue
        rows.append(found)
        controls.append(control)
    differences = np.array([one["clean"] - one["corrupted"] for one in rows])
    table = s.add_table("together", "Part of the answer that comes back, all heads of all layers", ["from the clean run", "subject and distractor exchanged", "control: another subject of the same number"])
    s.add_data("item", "clean", "corrupted", *PARTS, *(f"control_{name}" for name in PARTS))
    moved = {name: [np.array([one["measures"]["together"][name] - one["corrupted"] for one in group]) for group in (rows, controls)] for name in PARTS}
    for name, title in PARTS.items():
        table.add(title, *(s.ratio(part, differences).show("%.3f (%.3f to %.3f)") for part in moved[name]))
    for i, one in enumerate(rows):
        s.data.add(i, one["clean"], one["corrupted"], *(moved[name][0][i] for name in PARTS), *(moved[name][1][i] for name in PARTS))
    mean = s.ratio(differences, np.ones(len(rows)))
    right = s.ratio([one["clean"] > 0 for one in rows], np.ones(len(rows)))
    layers = {name: [s.ratio(np.array([one["measures"][name][layer].sum() - len(one["measures"][name][layer]) * one["corrupted"] for one in rows]), differences)
                     for layer in range(len(rows[0]["measures"][name]))] for name in ("heads", "c2c", "c2p", "p2c") if name in rows[0]["measures"]}
    table = s.add_table("layers", "The same one head at a time, summed over the heads of a layer", ["layer", *layers])
    for layer in range(len(layers["heads"])):
        table.add(layer, *(one[layer].show("%+.3f (%+.3f to %+.3f)") for one in layers.values()))
    s.finish(f"{len(rows)} items, {skipped} passed over (a verb of several tokens, a word twice, no subject for the control). The right verb is ahead in {right.show('%.2f (%.2f to %.2f)')} of the "
             f"clean texts; the exchange takes {mean.show('%.3f (%.3f to %.3f)')} logits from it. 95 % intervals over items ({s.resamples}).", lambda: draw(layers))


def draw(layers):
    figure, axes = study.panels(1, 1, height=50)
    for name, estimates in layers.items():
        study.draw_estimates(axes[0, 0], range(len(estimates)), estimates, label=name)
    axes[0, 0].set(xlabel="layer", ylabel="share restored, one head at a time")
    axes[0, 0].legend()
    return figure


if __name__ == "__main__":
    study.run(main)
