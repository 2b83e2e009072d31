#!/usr/bin/env python3
"""What a shift of position moves, and where position can be read back, in two models.

    python3 studies/positions.py models/demo models/demo-bert --file docs/studies/data/sentences.txt

Puts to the test: position mixed into the input fades in deeper layers; relative distances hold where absolute positions do not.
SPDX-License-Identifier: MIT
"""
import json
import os
import shutil
import tempfile
import warnings

import study
import numpy as np

CHANGES, AMOUNTS, SHOWN = ("ids later", "before", "after"), (1, 16, 64), 16
PROBE_TOKENS = 128  # of a window, frame included
LEAST_WINDOWS = 20
PHRASE_TOKENS = range(6, 41)
PENALTIES = (1e-5, 1e-4, 1e-3, 1e-2, 1e-1, 1)
WINDOWS_TOGETHER = 16


def cut_texts(s):
    """Sentences of middle length without their frames are the phrases; all sentences on end, cut into windows of one length and framed
    again, are what the probes see: a window begins anywhere in a sentence, so that content says little about the position."""
    inside = [text.ids[1:-1] for text in s.texts]
    first, last = s.texts[0].ids[0], s.texts[0].ids[-1]
    phrases = [ids for ids in inside if len(ids) in PHRASE_TOKENS]
    stream, size = np.concatenate(inside), PROBE_TOKENS - 2
    windows = [np.concatenate([[first], stream[k:k + size], [last]]).astype(np.int32) for k in range(0, len(stream) - size + 1, size)]
    if len(windows) < LEAST_WINDOWS:
        study.refuse(study.BAD_INPUT, f"the probes need {LEAST_WINDOWS} windows of {size} tokens; these texts fill {len(windows)}")
    if len(phrases) < 2:
        study.refuse(study.BAD_INPUT, f"expected at least 2 texts of {PHRASE_TOKENS[0]} to {PHRASE_TOKENS[-1]} tokens, found {len(phrases)}")
    return phrases, windows


# --------------------------------------------------------------------------------------------------------------- the control


def shuffled_folder(path, seed, folder):
    """The model with the values of each matrix of its layers in another order (Fisher and Yates), every order equally probable."""
    if path.startswith("synthetic:"):
        study.refuse(study.BAD_INPUT, f"{path}: a made-up model has learned nothing that shuffling could take away")
    weights = sorted(name for name in os.listdir(path) if name.endswith(".safetensors")) if os.path.isdir(path) else []
    if not weights:
        study.refuse(study.BAD_INPUT, f"{path}: the control shuffles the matrices of safetensors, and there are none")
    random = study.Random(seed)
    for name in os.listdir(path):
        if not name.endswith((".safetensors", ".bin", ".packed")):
            (shutil.copytree if os.path.isdir(os.path.join(path, name)) else shutil.copy)(os.path.join(path, name), os.path.join(folder, name))
    contents, matrices = {}, []
    for name in weights:
        with open(os.path.join(path, name), "rb") as file:
            contents[name] = content = bytearray(file.read())
        base = 8 + int.from_bytes(content[:8], "little")
        matrices += [(tensor, name, entry["shape"], *(base + offset for offset in entry["data_offsets"])) for tensor, entry
                     in json.loads(content[8:base]).items() if tensor != "__metadata__" and len(entry["shape"]) == 2 and "encoder.layer." in tensor]
    for _, name, (rows, columns), begin, end in sorted(matrices):
        values = np.frombuffer(bytes(contents[name][begin:end]), np.dtype(f"V{(end - begin) // (rows * columns)}"))
        contents[name][begin:end] = shuffled(values, random).tobytes()
    for name, content in contents.items():
        with open(os.path.join(folder, name), "wb") as file:
            file.write(content)


def shuffled(values, random):
    left = np.arange(len(values), 1, -1)
    order = list(range(len(values)))
    for last, other in zip((left - 1).tolist(), random.many_below(left, len(left)).tolist()):
        order[last], order[other] = order[other], order[last]
    return values[order]


# -------------------------------------------------------------------------------------------------------------- the movement


def variants_of(phrase, following, first, last):
    """[(ids, position ids, where the phrase begins)]: the phrase alone, then changed, by change and amount."""
    def variant(later=0, before=0, after=0):
        ids = np.concatenate([[first], following[:before], phrase, following[:after], [last]]).astype(np.int32)
        return ids, np.arange(later, later + len(ids), dtype=np.int32), 1 + before
    return [variant(), *(variant(**{name: amount}) for name in ("later", "before", "after") for amount in AMOUNTS)]


class Shift:
    """By variant, layer and phrase: the mean squared movement of a token's row of H[l], and how far attention inside the phrase moved, as
    the total variation distance; by layer and phrase the mean squared distance between two tokens of the phrase unmoved."""

    def __init__(self, s, model, phrases):
        layers, count = model.info["layers"], len(CHANGES) * len(AMOUNTS)
        self.moved, self.spread = np.zeros((count, layers + 1, len(phrases))), np.zeros((layers + 1, len(phrases)))
        self.attention = np.zeros((count, layers, len(phrases)))
        stream = np.concatenate(phrases)
        starts = np.cumsum([0, *map(len, phrases)])
        frame = s.texts[0].ids[[0, -1]]
        for k, phrase in enumerate(s.progress(phrases, "phrases")):
            following = np.take(stream, np.arange(starts[k + 1], starts[k + 1] + AMOUNTS[-1]), mode="wrap")
            variants = variants_of(phrase, following, *frame)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", study.deberta_c.NoteWarning)  # that ids change nothing in a relative model is what is measured
                found = model.encode([ids for ids, *_ in variants], position_ids=[places for _, places, _ in variants], hidden="all",
                                     attention="all", batch_tokens=1 << 16)
            inside = [slice(begin, begin + len(phrase)) for *_, begin in variants]
            for layer in range(layers + 1):
                alone, *others = (rows[here].astype(float) for rows, here in zip(found[f"hidden_states.{layer}"], inside))
                n = len(phrase)
                squares = (alone ** 2).sum()
                self.spread[layer, k] = (n * squares - (alone.sum(0) ** 2).sum()) / (n * (n - 1) / 2)
                self.moved[:, layer, k] = [((alone - other) ** 2).sum() / n for other in others]
            for layer in range(layers):
                alone, *others = (renormalised(rows[:, here, here]) for rows, here in zip(found[f"attn.{layer}.probs"], inside))
                self.attention[:, layer, k] = [0.5 * np.abs(alone - other).sum(2).mean() for other in others]


def renormalised(probabilities):
    """To sum to 1 over the keys of the phrase."""
    values = probabilities.astype(float)
    return values / values.sum(2, keepdims=True)


# --------------------------------------------------------------------------------------------------------------- the probes


class RidgeSums:
    """Of rows x and targets y: what a ridge regression needs of them, by layer."""

    def __init__(self, layers, width):
        self.xx, self.x, self.xy = np.zeros((layers, width, width)), np.zeros((layers, width)), np.zeros((layers, width))
        self.y = self.yy = self.count = 0.0

    def add(self, rows, targets):
        """rows [layers][count, width]"""
        for layer, x in enumerate(rows):
            self.xx[layer] += x.T @ x
            self.x[layer] += x.sum(0)
            self.xy[layer] += x.T @ targets
        self.y, self.yy, self.count = self.y + targets.sum(), self.yy + (targets ** 2).sum(), self.count + len(targets)

    def merged(self, other):
        both = RidgeSums(*self.x.shape)
        for name in vars(both):
            setattr(both, name, getattr(self, name) + getattr(other, name))
        return both

    def solve(self, layer, penalty):
        """Weights and intercept; the penalty is a part of the mean variance of the features."""
        centred = self.xx[layer] - np.outer(self.x[layer], self.x[layer]) / self.count
        trace = np.trace(centred)
        centred[np.diag_indices_from(centred)] += penalty * trace / len(centred) if trace > 0 else 1
        weights = np.linalg.solve(centred, self.xy[layer] - self.x[layer] * self.y / self.count)
        return weights, (self.y - weights @ self.x[layer]) / self.count

    def r2(self, layer, fit):
        weights, b = fit
        errors = self.yy + b * (self.count * b - 2 * self.y) + weights @ (self.xx[layer] @ weights) + 2 * weights @ (b * self.x[layer] - self.xy[layer])
        return 1 - errors / (self.yy - self.y ** 2 / self.count)


class Probe:
    """Errors and deviations of the index of each token, squared and summed by window of the test part, by layer: a ridge regression that was
    fitted on the first three fifths of the windows, whose penalty the next fifth chose."""

    def __init__(self, s, model, windows):
        layers, width = model.info["layers"] + 1, model.info["hidden_size"]
        chosen, tested = len(windows) * 3 // 5, len(windows) * 4 // 5
        sums = [RidgeSums(layers, width), RidgeSums(layers, width)]
        places = np.arange(1, PROBE_TOKENS - 1, dtype=float)
        for part, first, end in ((0, 0, chosen), (1, chosen, tested)):
            for rows in self._encode(model, windows[first:end], s):
                sums[part].add([x.reshape(-1, width) for x in rows], np.tile(places, len(rows[0])))
        both = sums[0].merged(sums[1])
        fits = []
        for layer in range(layers):
            best = max(PENALTIES, key=lambda penalty: sums[1].r2(layer, sums[0].solve(layer, penalty)))
            fits.append(both.solve(layer, best))
        self.errors = np.concatenate([[((places - x @ weights - b) ** 2).sum(1) for x, (weights, b) in zip(rows, fits)]
                                      for rows in self._encode(model, windows[tested:], s)], 1)
        self.deviations = np.broadcast_to(((places - both.y / both.count) ** 2).sum(), self.errors.shape)

    @staticmethod
    def _encode(model, windows, s):
        """Hidden states of some windows at a time, [layers][windows, tokens without the frame, width]."""
        for first in s.progress(range(0, len(windows), WINDOWS_TOGETHER), f"times {WINDOWS_TOGETHER} windows"):
            found = model.encode(windows[first:first + WINDOWS_TOGETHER], hidden="all")
            yield [found[f"hidden_states.{layer}"][:, 1:-1].astype(float) for layer in range(model.info["layers"] + 1)]


# --------------------------------------------------------------------------------------------------------------- the report


class Findings:
    """Of a model or its control: estimates by variant and layer."""

    def __init__(self, s, model, phrases, windows):
        shift, probe = Shift(s, model, phrases), Probe(s, model, windows)
        self.layers = model.info["layers"]
        names = [(change, amount) for change in CHANGES for amount in AMOUNTS]
        self.moved = {name: [s.ratio(*pair).mapped(np.sqrt) for pair in zip(moved, shift.spread)] for name, moved in zip(names, shift.moved)}
        self.attention = {name: [*map(s.ratio, rows)] for name, rows in zip(names, shift.attention)}
        self.r2 = [s.ratio(*pair).mapped(lambda rest: 1 - rest) for pair in zip(probe.errors, probe.deviations)]
        self.tested = probe.errors.shape[1]


def main():
    parser = study.command_line(__doc__, "model", "other", optional=("other",))
    parser.add_argument("--control", action="store_true", help="measure each model again with the values of its layers' matrices shuffled (--seed)")
    s = study.begin(parser)
    phrases, windows = cut_texts(s)
    found = {name: Findings(s, model, phrases, windows) for name, model in zip(s.names, s.models)}
    controls = {}
    for name, model in zip(s.names, s.models) if s.options.control else ():
        with tempfile.TemporaryDirectory() as folder:
            shuffled_folder(model.path, s.seed, folder)
            controls[f"{name}, shuffled"] = Findings(s, s.open(folder), phrases, windows)
    tabulate_movement(s, found, "", "")
    if controls:
        tabulate_movement(s, controls, "control_", "Control: ")
    found.update(controls)
    depth = max(one.layers for one in found.values())
    table = s.add_table("probes", "R2 of the token's position from its row, held-out windows", ["layer", *found])
    for layer in range(depth + 1):
        table.add(f"H[{layer}]", *(show(one.r2, layer) for one in found.values()))
    collect(s, found)
    note = (f"{len(phrases)} phrases, {len(windows)} windows of {PROBE_TOKENS} tokens ({next(iter(found.values())).tested} held out); 95 % intervals over "
            f"phrases and windows ({s.resamples}).")
    if controls:
        note += " Shuffled: the values of every matrix of the layers in another order, which says what depth does without what was learned."
    s.finish(note, lambda: draw(found))


def show(estimates, layer):
    return estimates[layer].show("%.3f (%.3f-%.3f)") if layer < len(estimates) else "-"


def tabulate_movement(s, found, name, title):
    columns = [f"{model}: {change}" for model in found for change in CHANGES]
    depth = max(one.layers for one in found.values())
    table = s.add_table(f"{name}hidden", f"{title}Movement of hidden states, {SHOWN} positions or tokens (1: as far as two tokens are apart)",
                        ["layer", *columns])
    for layer in range(depth + 1):
        table.add(f"H[{layer}]", *(show(one.moved[change, SHOWN], layer) for one in found.values() for change in CHANGES))
    table = s.add_table(f"{name}amounts", f"{title}The last layer, by how many positions or tokens", ["amount", *columns])
    for amount in AMOUNTS:
        table.add(amount, *(show(one.moved[change, amount], one.layers) for one in found.values() for change in CHANGES))
    table = s.add_table(f"{name}attention", f"{title}Movement of attention inside the phrase, same amount (total variation, 0 to 1)", ["layer", *columns])
    for layer in range(depth):
        table.add(layer, *(show(one.attention[change, SHOWN], layer) for one in found.values() for change in CHANGES))


def collect(s, found):
    s.add_data("model", "what", "change", "amount", "layer", "value", "low", "high")
    for model, one in found.items():
        rows = [(what, *name, estimates) for name in one.moved for what, estimates in (("hidden", one.moved[name]), ("attention", one.attention[name]))]
        for what, change, amount, estimates in [*rows, ("probe", None, 0, one.r2)]:
            for layer, estimate in enumerate(estimates):
                s.data.add(model, what, change, amount, layer, estimate)


def draw(found):
    figure, axes = study.panels(2, 2)
    titles = ("position ids 16 later", "16 tokens before", "16 tokens after", "position read back")
    for k, (axis, title) in enumerate(zip(axes.ravel(), titles)):
        for name, one in found.items():
            estimates = one.moved[CHANGES[k], SHOWN] if k < len(CHANGES) else one.r2
            study.draw_estimates(axis, range(len(estimates)), estimates, label=name)
        axis.set(title=title, xlabel="layer", ylabel="movement" if k < len(CHANGES) else "held-out R²")
        axis.set_ylim(bottom=min(0, axis.get_ylim()[0]))
    axes[0, 0].legend()
    return figure


if __name__ == "__main__":
    study.run(main)
