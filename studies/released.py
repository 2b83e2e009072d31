#!/usr/bin/env python3
"""What the answers of released classifiers rest on: integers in place of float32, and attention without one of its terms.

    python3 studies/released.py docs/studies/data/released.csv

Puts to the test: an answer needs both position terms, and it stays in int16 and int8. --measure FOLDER writes RESULTS: FOLDER is a classifier of texts, such as
tools/making/folder_of_wheel.py makes of a published one; --quick asks models/demo about a few sentences. SPDX-License-Identifier: MIT
"""
from pathlib import Path

import study
import numpy as np
import trained

CHANGES = {"int16": ("int16", None), "int8": ("int8", None), "without c2p": (None, "c2p@all"), "without p2c": (None, "p2c@all"),
           "without both": (None, "c2p@all,p2c@all"), "without c2c": (None, "c2c@all")}
SENTENCES = "docs/studies/data/sentences.txt"
TOGETHER, QUICK = 64, 100  # sentences encoded at once; asked by --quick


def probabilities(model, ids):
    """[texts][labels]"""
    rows = [model.encode(ids[first:first + TOGETHER], hidden=None, logits="sequence")["logits.sequence"].astype(float) for first in range(0, len(ids), TOGETHER)]
    rows = np.exp(np.concatenate(rows) - np.concatenate(rows).max(1, keepdims=True))
    return rows / rows.sum(1, keepdims=True)


def measure(s, folders):
    """A row for every model and change, with intervals over sentences."""
    rows = []
    for folder in folders:
        open_model = lambda **given: trained.deberta_c.Model(folder, threads=s.options.threads, **given)
        plain = open_model()
        texts = [text for _, text in study.lines_of([str(study.ROOT / SENTENCES)])][:QUICK if s.options.quick else None]
        ids = [plain.tokenize(text).ids for text in texts]
        exact = probabilities(plain, ids)
        most = float(np.bincount(exact.argmax(1)).max() / len(exact))
        for change, (precision, ablated) in CHANGES.items():
            if ablated:
                with plain.ablate(ablated):
                    found = probabilities(plain, ids)
            else:
                found = probabilities(open_model(precision=precision), ids)
            other, moved = s.ratio(100.0 * (found.argmax(1) != exact.argmax(1))), s.ratio(np.abs(found - exact).max(1))
            rows.append({"model": Path(folder).name, "sentences": len(ids), "most": most, "change": change, "other": other.value, "other_low": other.low,
                         "other_high": other.high, "moved": moved.value, "moved_low": moved.low, "moved_high": moved.high})
    return rows


def main():
    parser = study.command_line(__doc__)
    parser.add_argument("results", metavar="RESULTS", nargs="?", help="estimates, CSV: read, or with --measure written")
    parser.add_argument("--measure", action="append", metavar="FOLDER", help="ask this model; may be repeated")
    parser.add_argument("--quick", action="store_true", help=f"ask models/demo about {QUICK} sentences")
    parser.add_argument("-t", "--threads", type=int, default=1, metavar="N", help="of the models (default 1; no bit depends on it)")
    s = study.begin(parser)
    rows = trained.rows_read_or_measured(s, lambda: measure(s, s.options.measure or [study.ROOT / "models" / "demo"]))
    s.add_data("model", "change", "measure", "value", "low", "high")
    table = s.add_table("released", "Another label than in float32 with all terms, and how far the probability moved that moved most (95 % interval)",
                        ["model", "change", "another label (%)", "move, mean"])
    for row in rows:
        other, moved = (study.Estimate(row[name], row[f"{name}_low"], row[f"{name}_high"]) for name in ("other", "moved"))
        table.add(row["model"], row["change"], other.show("%.1f (%.1f to %.1f)"), moved.show("%.2g (%.2g to %.2g)"))
        s.data.add(row["model"], row["change"], "another label", other)
        s.data.add(row["model"], row["change"], "move", moved)
    frequent = ", ".join(f"{model} {100 * most:.1f} %" for model, most in dict.fromkeys((row["model"], row["most"]) for row in rows))
    s.finish(f"{rows[0]['sentences']} sentences; the most frequent label: {frequent}. 95 % intervals over sentences ({s.resamples}).")


if __name__ == "__main__":
    study.run(main)
