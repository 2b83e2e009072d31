#!/usr/bin/env python3
"""What int16 and int8 change at masked tokens: how often the first answer is right, the loss, and how far the distribution is from float32's.

    python3 studies/precision.py models/demo --file docs/studies/data/sentences.txt

Puts to the test: integers in the linear layers do not change what a model answers. SPDX-License-Identifier: MIT
"""
import study
import numpy as np

PRECISIONS = ("float32", "int16", "int8")
MEASURES = {"top1": ("right, %", 100, "%.2f (%.2f to %.2f)"), "loss": ("loss, nats", 1, "%.4f (%.4f to %.4f)"),
            "same_top1": ("the same first answer, %", 100, "%.2f (%.2f to %.2f)"), "divergence": ("KL divergence, nats", 1, "%.2g (%.2g to %.2g)")}
TOGETHER = 64  # sentences whose logits are in memory at once


def log_softmax(logits):
    x = logits.astype(float)
    x -= x.max(1, keepdims=True)
    return x - np.log(np.exp(x).sum(1, keepdims=True))


def sums(rows, exact, targets):
    """Over the masks of a sentence."""
    first, expected = rows.argmax(1), exact.argmax(1)
    return {"top1": (first == targets).sum(), "loss": -rows[np.arange(len(rows)), targets].sum(), "same_top1": (first == expected).sum(),
            "divergence": (np.exp(exact) * (exact - rows)).sum()}


def main():
    s = study.begin(study.command_line(__doc__, "model"))
    if s.options.precision != "float32":
        study.refuse(study.WRONG_USE, "--precision: expected float32 only, as all precisions are measured")
    (path,) = (getattr(s.options, name) for name in s.options._models)
    models = {name: s.models[0] if name == "float32" else s.open(path, precision=name) for name in PRECISIONS}
    head = study.mask_head(models["float32"])
    hidden = study.hide(s.texts, s.mask_id, s.seed)
    found = {(name, measure): np.zeros(len(hidden)) for name in PRECISIONS for measure in MEASURES}
    for first in s.progress(range(0, len(hidden), TOGETHER), f"times {TOGETHER} sentences"):
        part = hidden[first:first + TOGETHER]
        rows = {name: [log_softmax(one) for one in study.mask_logits(model, part, head)] for name, model in models.items()}
        for name in PRECISIONS:
            for k, one in enumerate(part):
                for measure, value in sums(rows[name][k], rows["float32"][k], one.targets).items():
                    found[name, measure][first + k] = value
    masks = [len(one.places) for one in hidden]
    table = s.add_table("precision", "Masked tokens: what the first answer and the loss are, and how near to float32 (95 % interval)", ["precision", *(title for title, *_ in MEASURES.values())])
    s.add_data("precision", "measure", "value", "low", "high")
    for name in PRECISIONS:
        cells = []
        for measure, (_, scale, form) in MEASURES.items():
            estimate = s.ratio(found[name, measure], masks)
            cells.append(estimate.mapped(lambda value: scale * value).show(form))
            s.data.add(name, measure, estimate)
        table.add(name, *cells)
    s.finish(f"{sum(masks)} masked tokens of {len(s.texts)} sentences; {s.resamples}")


if __name__ == "__main__":
    study.run(main)
