#!/usr/bin/env python3
"""What scale-invariant fine-tuning does to small tasks, by dose, and whether a scale of the embeddings matters.

    python3 studies/sift.py docs/studies/data/sift-dose.csv

Puts to the test: SiFT improves fine-tuning; its perturbation does not depend on the scale of embeddings. --train STATE --corpus FOLDER trains what STATE lacks from
models/demo and writes the table; --quick trains a few on paragraphs of the repository. SPDX-License-Identifier: MIT
"""
import json
import shutil

import study
import numpy as np
import tasks
import trained

DEMO = study.ROOT / "models" / "demo"
TABLE = "deberta.embeddings.word_embeddings.weight"
WEIGHT = "4"
PUBLISHED = (0.01, 1e-4)
DOSES = (PUBLISHED, (0.01, 0.1), (0.01, 1.0))  # deviation of the start, step; raw: times the deviation of the embeddings
START_ALONE = (1.0, 1e-4)
SCALED, SCALE, SCALED_DOSE = "spoken", 4, (0.01, 1.0)


def models(quick):
    """task, what is moved, start, step, scale of the table, seed."""
    if quick:
        return [("spoken", *dose, 1, seed) for seed in (1, 2) for dose in (("base", 0, 0), ("normalized", *PUBLISHED), ("normalized", 0.01, 1.0))]
    doses = [("base", 0, 0), *(("normalized", *dose) for dose in (*DOSES, START_ALONE)), *(("raw", *dose) for dose in DOSES[1:])]
    scaled = [(SCALED, *dose, SCALE) for dose in (("base", 0, 0), ("normalized", *SCALED_DOSE), ("raw", *SCALED_DOSE))]
    return [(*cell, seed) for cells in (*([(task, *dose, 1) for dose in doses] for task in tasks.TASKS), scaled) for seed in range(1, trained.SEEDS + 1) for cell in cells]


def scaled_demo(folder, scale):
    """models/demo with its table of words times `scale`: the norm behind the table makes it the same model."""
    if scale == 1:
        return DEMO
    if not (folder / "model.safetensors").exists():
        folder.mkdir(parents=True, exist_ok=True)
        for name in ("config.json", "spm.model", "added_tokens.json", "tokenizer_config.json"):
            shutil.copy(DEMO / name, folder / name)
        weights = {name: values.astype(np.float32) for name, values in trained.read_tensors(DEMO / "model.safetensors").items()}
        weights[TABLE] = weights[TABLE] * np.float32(scale)
        trained.write_tensors(folder / "model.safetensors", weights)
    return folder


def deviation():
    """Of the numbers of a row of models/demo's table: what normalising divides by."""
    return float(trained.read_tensors(DEMO / "model.safetensors")[TABLE].astype(float).std(1).mean())


def tuned(settings, state, threads):
    """A folder with what this fine-tuning gave; the model itself is not kept."""
    task, kind, start, step, scale, seed = settings
    folder = state / f"{task}-{kind}-{start:g}-{step:g}-x{scale}-seed{seed}"
    unit = deviation() if kind == "raw" else 1.0
    dose = [] if kind == "base" else ["--sift", WEIGHT, "--perturb", kind, "--sift-start", repr(start * unit), "--sift-step", repr(step * unit)]
    tasks.remembered(folder, lambda: tasks.finetune(scaled_demo(state / f"demo-x{scale}", scale), state / "tasks", task, seed, ["--freeze", "embeddings", *dose], threads))
    return folder


def measure(folder, settings):
    found = json.loads((folder / "recipe.json").read_text())
    yield {**dict(zip(("task", "kind", "start", "step", "scale", "seed"), settings)), **{name: found[name] for name in ("accuracy", "loss", "added")}}


def main():
    s = trained.begin_with_corpus(trained.command_line(__doc__, "accuracy and loss by run"))
    o = s.options
    report(s, trained.rows_of(s, models, measure, lambda settings: settings, lambda settings, state, threads: in_state(o.corpus, settings, state, threads)))


def in_state(corpus, settings, state, threads):
    if not (state / "tasks").exists():
        tasks.write(state / "tasks", corpus)
    return tuned(settings, state, threads)


def report(s, rows):
    cells = {}
    for row in sorted(rows, key=lambda row: row["seed"]):
        cells.setdefault((row["task"], row["kind"], row["start"], row["step"], row["scale"]), []).append(row)
    column = lambda cell, name, factor=1: factor * np.array([row[name] for row in cells[cell]])
    compared = []

    def change(cell, other, name, factor, digits):
        compared.append(trained.over_seeds(column(cell, name, factor) - column(other, name, factor)))
        return compared[-1].show(f"%+.{digits}f (%+.{digits}f to %+.{digits}f)")

    s.add_data("task", "kind", "start", "step", "scale", "seed", "accuracy", "loss", "added")
    for cell, found in cells.items():
        for row in found:
            s.data.add(*cell, *(row[name] for name in ("seed", "accuracy", "loss", "added")))
    names = list(dict.fromkeys(task for task, *_ in cells))
    doses = list(dict.fromkeys(dose for _, *dose, scale in cells for dose in [tuple(dose)] if scale == 1))
    seeds = len(next(iter(cells.values())))
    for name, title, factor, digits in (("loss", "Held-out loss (nats)", 1, 4), ("accuracy", "Right answers (%)", 100, 2)):
        table = s.add_table(name, f"{title}: of the base, and what moving changes, paired by seed ({seeds} seeds)", ["moved", "start", "step", *names])
        for dose in doses:
            kind, start, step = dose
            bases = {task: (task, "base", 0, 0, 1) for task in names if (task, *dose, 1) in cells}
            values = ["" if task not in bases else f"{column(bases[task], name, factor).mean():.{digits}f}" if kind == "base" else
                      change((task, *dose, 1), bases[task], name, factor, digits) for task in names]
            table.add(kind, *(("", "") if kind == "base" else (f"{start:g}", f"{step:g}")), *values)
        for _, start, step in (dose for dose in doses if dose[0] == "raw"):
            pairs = [[(task, kind, start, step, 1) for kind in ("normalized", "raw")] for task in names]
            table.add("normalized - raw", f"{start:g}", f"{step:g}", *(change(*pair, name, factor, digits) if all(one in cells for one in pair) else "" for pair in pairs))
    large = [cell for cell in cells if cell[-1] != 1]
    if large:
        table = s.add_table("scale", f"{SCALED}: runs with a table {SCALE} times as large, less those with the table as it is", ["moved", "start", "step", "loss (nats)", "right (points)"])
        for cell in large:
            _, kind, start, step, _ = cell
            table.add(kind, f"{start:g}", f"{step:g}", *(change(cell, (*cell[:4], 1), name, factor, digits) for name, factor, digits in (("loss", 1, 4), ("accuracy", 100, 2))))
    outside = sum(one.low > 0 or one.high < 0 for one in compared)
    s.finish(f"{tasks.STEPS} steps of {tasks.BATCH} of {tasks.LEARNED} examples, at most {tasks.MEASURED} held out. 95 % t-intervals over seeds. {outside} of {len(compared)} changes have an "
             "interval without 0.", (lambda: draw(cells, names, column)) if len(names) > 1 else None)


def draw(cells, names, column):
    """Response by dose: change of the held-out loss against the step, one panel a task."""
    figure, axes = study.panels(1, len(names), height=45)
    for axis, task in zip(axes[0], names):
        for kind in ("normalized", "raw"):
            found = [(cell[3], trained.over_seeds(column(cell, "loss") - column((task, "base", 0, 0, 1), "loss"))) for cell in cells
                     if cell[0] == task and cell[1] == kind and cell[2] == PUBLISHED[0] and cell[4] == 1]
            study.draw_estimates(axis, [step * (1.1 if kind == "raw" else 1) for step, _ in found], [one for _, one in found], label=kind)
        axis.axhline(0, color="0.6", lw=0.6)
        axis.set(xscale="log", title=task, xlabel="step, in deviations of the embeddings")
        axis.set_xticks([step for _, step in DOSES], [f"{step:g}" for _, step in DOSES])
        axis.set_xticks([], minor=True)
    axes[0, 0].set_ylabel("held-out loss, change (nats)")
    axes[0, 0].legend(fontsize=5.5)
    return figure


if __name__ == "__main__":
    study.run(main)
