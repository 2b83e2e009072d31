#!/usr/bin/env python3
"""How good a model stays when its positions are shifted, and when its texts are longer.

    python3 studies/shift.py docs/studies/data/shift.csv

Puts to the test: relative positions hold where absolute ones do not. The same masked tokens are asked each time: in windows of TOKENS whose position ids begin
later, and in windows two and four times as long. --measure writes the table of losses; --quick measures a few windows. SPDX-License-Identifier: MIT
"""
import tempfile
from pathlib import Path

import study
import numpy as np
import positions
import trained

MODELS = ("models/demo", "models/demo-bert")
SENTENCES = "docs/studies/data/sentences.txt"
TOKENS, LONGER, SHIFTS, RATE, QUICK = 64, (2, 4), (16, 64, 256), 0.15, 8


def units(model, count):
    """Texts of four windows, on end and without their frames, and which of their tokens are hidden."""
    stream = np.concatenate([model.tokenize(text).ids[1:-1] for _, text in study.lines_of([str(study.ROOT / SENTENCES)])])
    size = TOKENS * max(LONGER)
    texts = stream[:len(stream) // size * size].reshape(-1, size)[:count]
    return texts, np.random.default_rng(1).random(texts.shape) < RATE


def asked(model, texts, hidden, mask, times, shift):
    """(loss, right) of every hidden token, [texts][tokens] with NaN elsewhere: in windows of `times` TOKENS, position ids from `shift` on."""
    first, last = model.tokenize("a").ids[[0, -1]]
    size = times * TOKENS
    windows, masks = texts.reshape(-1, size), hidden.reshape(-1, size)
    ids = np.pad(np.where(masks, mask, windows), ((0, 0), (1, 1)))
    ids[:, 0], ids[:, -1] = first, last
    places = np.broadcast_to(np.arange(shift, shift + size + 2, dtype=np.int32), ids.shape)
    head = study.mask_head(model, "plain")
    losses, right = (np.full(texts.shape, np.nan).reshape(-1, size) for _ in range(2))
    for k, (row, where, text) in enumerate(zip(ids, np.pad(masks, ((0, 0), (1, 1))), windows)):
        at = np.flatnonzero(where)
        logits = model.encode([row.astype(np.int32)], position_ids=[places[k]], hidden=None, logits=head, at=[at])[f"logits.{head}"][0]
        losses[k, at - 1] = study.mask_losses(logits, study.Hidden(row, at, text[at - 1]))
        right[k, at - 1] = logits.argmax(1) == text[at - 1]
    return losses.reshape(texts.shape), right.reshape(texts.shape)


def measure(s):
    """A row for every model, condition and text."""
    rows = []
    with tempfile.TemporaryDirectory() as scratch:
        for path in map(Path, s.options.model or (study.ROOT / one for one in MODELS)):
            name, control = path.name, Path(scratch) / f"{path.name} shuffled"
            control.mkdir()
            positions.shuffled_folder(str(path), s.seed, str(control))
            for folder in (path, control):
                model = trained.deberta_c.Model(folder, threads=s.options.threads)
                tokens = model.tokenize("[MASK]")
                texts, hidden = units(model, QUICK if s.options.quick else None)
                for times, shift in [(1, 0), *((1, shift) for shift in SHIFTS), *((times, 0) for times in LONGER)]:
                    losses, right = asked(model, texts, hidden, int(tokens.ids[tokens.roles == study.SPELLED][0]), times, shift)
                    rows += [{"model": folder.name if folder == control else name, "times": times, "shift": shift, "text": k, "asked": int(hidden[k].sum()),
                              "loss": float(np.nansum(losses[k])), "right": int(np.nansum(right[k]))} for k in range(len(texts))]
    return rows


def main():
    parser = study.command_line(__doc__)
    parser.add_argument("results", metavar="RESULTS", nargs="?", help="losses by text, CSV: read, or with --measure written")
    parser.add_argument("--measure", action="store_true", help="ask the models")
    parser.add_argument("--model", action="append", default=[], metavar="FOLDER", help=f"of --measure and --quick; may be repeated (default {' and '.join(MODELS)})")
    parser.add_argument("--quick", action="store_true", help=f"ask them about {QUICK} texts")
    parser.add_argument("-t", "--threads", type=int, default=1, metavar="N", help="of the models (default 1; no bit depends on it)")
    s = study.begin(parser)
    names = [Path(path).name for path in s.options.model]
    if names and not (s.options.measure or s.options.quick):
        study.refuse(study.WRONG_USE, "--model is of --measure and --quick; a file of results names its models")
    if len({*names}) < len(names):
        study.refuse(study.WRONG_USE, f"--model: two folders have one name, which tells their rows apart: {', '.join(names)}")
    rows = trained.rows_read_or_measured(s, lambda: measure(s))
    cells = {}
    for row in rows:
        cells.setdefault((row["model"], row["times"], row["shift"]), []).append(row)
    column = lambda key, name: np.array([row[name] for row in cells[key]], float)
    s.add_data("model", "times", "shift", "what", "value", "low", "high")
    table = s.add_table("loss", f"Masked pieces: windows of {TOKENS}, then with ids later, then in longer windows; the same pieces asked",
                        ["model", "window", "ids from", "loss (nats)", "right (%)", "loss, change"])
    for model in dict.fromkeys(key[0] for key in cells):
        base = model, 1, 0
        asked_of = column(base, "asked")
        for key in (key for key in cells if key[0] == model):
            loss, right = s.ratio(column(key, "loss"), asked_of), s.ratio(100 * column(key, "right"), asked_of)
            more, less = (s.ratio(scale * (column(key, name) - column(base, name)), asked_of) for name, scale in (("loss", 1), ("right", 100)))
            change = "" if key == base else more.show("%+.3f (%+.3f to %+.3f)")
            table.add(model, key[1] * TOKENS, key[2], f"{loss.value:.3f}", right.show("%.1f (%.1f to %.1f)"), change)
            for what, estimate in (("loss", loss), ("right", right), ("loss, change", more), ("right, change", less)):
                s.data.add(*key, what, estimate)
    first = cells[next(iter(cells))]
    s.finish(f"{len(first)} texts of {TOKENS * max(LONGER)} pieces, {sum(row['asked'] for row in first)} asked, head on H[L]; 95 % intervals over texts, paired "
             f"for changes ({s.resamples}). Shuffled: the values of each matrix of the layers in another order.")


if __name__ == "__main__":
    study.run(main)
