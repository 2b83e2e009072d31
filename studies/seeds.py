#!/usr/bin/env python3
"""What is a seed made of, and how many does a sentence need?

    python3 studies/seeds.py docs/studies/data/seeds.csv --grid docs/studies/data/grid-seeds.csv --clipping docs/studies/data/clipping-seeds.csv
    python3 studies/seeds.py --long docs/studies/data/seeds-long.csv

Puts to the test: training is chaotic, so rounding is noise like any other; a few seeds are enough to tell cells of a grid apart.
--train STATE --corpus FOLDER trains what STATE lacks and writes the table of losses; --quick trains three models on sentences of the repository.
SPDX-License-Identifier: MIT
"""
from pathlib import Path
from typing import NamedTuple

import study
import numpy as np
import study_models
import trained


SQUARE = 5  # starts, orders and masks, in a Latin square
PLACES = (0, 1001, 5003, 9001, 15013)  # of a weight that is moved by one unit in its last place
MOVED = "deberta.encoder.layer.0.intermediate.dense.weight"
GRID = study_models.GRID
LONG, KEPT = 6400, 8  # steps of --long, and how often its weights are kept and measured
LOGGED = (100, 200, 400)  # steps before those whose loss of the training is told as well
SHARDS = 16  # parts that sums over tokens are cut into, unless a setting says otherwise


class Run(NamedTuple):
    """Of --long: the seeds of start, order and masks, the parts of sums, and whether it reads the few sentences of the repository again and again."""

    start: int = 1
    order: int = 1
    masks: int = 1
    shards: int = SHARDS
    few: bool = False

    @property
    def base(self):
        """What it is compared with."""
        return Run(few=self.few)

    @property
    def shown(self):
        what = "another start" if self.start > 1 else "another order" if self.order > 1 else f"sums in {self.shards} part{'s' if self.shards > 1 else ''}"
        return f"{what}, few texts" if self.few else what


def recipe(stream, start, order, masks, moved=None, shards=SHARDS, steps=GRID.steps):
    """Full terms without a decoder, as in the grid: weights of one seed, texts of another, masks of a third."""
    more = [f"moved{moved}"] * (moved is not None) + [f"shards{shards}"] * (shards != SHARDS) + [f"steps{steps}"] * (steps != GRID.steps)
    name = "-".join([f"start{start}", f"order{order}", f"masks{masks}", *more])
    config = {key: value for key, value in study_models.configuration(["c2p", "p2c"], GRID.length, GRID.length, False).items()
              if key not in ("scaled_start", "enhanced_mask_decoder")}
    config = {**trained.SHAPE, **config}
    return trained.Recipe(name, config, lambda: batches(stream, order, masks, steps), steps, study_models.WARM_UP, start, decay=study_models.WEIGHT_DECAY,
                          epsilon=study_models.EPSILON, start=lambda here, threads: begun(here, threads, start, moved), shards=shards)


def batches(stream, order, masks, steps=GRID.steps):
    """All steps in one shape; the rest of a step of short texts are single characters without a label."""
    rows = study_models.TOKENS_PER_STEP // min(length for _, length in GRID.short)
    shape = steps, rows, GRID.length
    ids, there, labels = np.zeros(shape, np.int32), np.zeros(shape, np.int32), np.full(shape, trained.NOT_ASKED, np.int32)
    there[:, :, 0] = 1
    for step in range(steps):
        length = next((length for until, length in GRID.short if step < until), GRID.length)
        begins = stream.starts[: np.searchsorted(stream.starts, len(stream.ids) - length)]
        at = np.random.default_rng([order, step]).choice(begins, study_models.TOKENS_PER_STEP // length)
        of_masks = np.random.default_rng([masks, step, 1])
        hidden, places, targets = study_models.mask(stream.ids[at[:, None] + np.arange(length)], of_masks, round(study_models.MASKED_IN_TRAINING * length))
        ids[step, :len(at), :length] = hidden
        there[step, :len(at), :length] = 1
        np.put_along_axis(labels[step, :len(at)], places, targets.astype(np.int32), 1)
    return {"input_ids": ids, "attention_mask": there, "labels": labels}


def begun(here, threads, start, moved):
    """Weights of a seed, linear layers scaled by their inputs; one of them moved."""
    folder = here / "begun"
    trained.program("train", "mlm", "--config", str(here / "new"), "--batches", str(here / "batches.safetensors"), "--head", "mlm", "--steps", "1",
                    "--learning-rate", "0", "--dropout", "0", "--seed", str(start), "--threads", str(threads), "--out", str(folder))
    path = folder / "model.safetensors"
    weights = {name: values.copy() for name, values in trained.read_tensors(path).items()}
    for name, values in weights.items():
        if values.ndim == 2 and "embeddings" not in name:
            values *= np.float32(values.shape[1] ** -0.5 / study_models.SHAPE["initializer_range"])
    if moved is not None:
        place = weights[MOVED].reshape(-1)[moved:moved + 1]
        place[:] = np.nextafter(place, np.float32(10))
    trained.write_tensors(path, weights)
    return folder


def streams(corpus):
    """Texts of training and of the test: of the corpus, or for --quick sentences of the repository."""
    if corpus:
        train, test = ((Path(corpus) / name).read_text(encoding="utf-8") for name in ("train.txt", "valid.txt"))
    else:
        lines = (study.ROOT / "docs/studies/data/sentences.txt").read_text(encoding="utf-8").splitlines()
        train, test = "\n".join(lines[:800]), "\n".join(lines[800:])
    ids = study_models.alphabet(train)
    return study_models.Stream(train, ids), study_models.Stream(test, ids)


def settings_of(quick):
    """start, order, masks, place of the moved weight."""
    moved = [(1, 1, 1, None), *((1, 1, 1, place) for place in PLACES)]
    if quick:
        return [*moved[:2], (2, 2, 2, None)]
    return [*moved, *((i + 1, j + 1, (i + j) % SQUARE + 1, None) for i in range(SQUARE) for j in range(SQUARE) if i or j)]


def held_out_loss(folder, held_out):
    ids, places, labels = held_out
    found = trained.logits(folder, ids, "mlm").astype(float)
    found = np.take_along_axis(found, places[:, :, None], 1)
    top = found.max(-1)
    losses = top + np.log(np.exp(found - top[..., None]).sum(-1)) - np.take_along_axis(found, labels[:, :, None], 2)[..., 0]
    return float(losses.mean())


def measure(folder, settings, held_out):
    """Mean held-out loss, and the losses of some steps of the training."""
    start, order, masks, moved = settings
    steps = {f"step{one['step']}": one["loss"] for one in trained.log(folder) if one["step"] in (1, 10, 100, GRID.steps)}
    yield {"start": start, "order": order, "masks": masks, "moved": -1 if moved is None else moved, "loss": held_out_loss(folder, held_out), **steps}


def long_runs(quick):
    """Sums in three orders and another start; then two orders of sums on few texts, which --quick has alone."""
    few = [Run(few=True), Run(shards=1, few=True)]
    return few if quick else [Run(), Run(shards=1), Run(start=2), Run(shards=4), *few]


def long_recipe(run, stream, steps):
    made = recipe(stream, run.start, run.order, run.masks, None, run.shards, steps)
    return made._replace(name=f"{made.name}{'-few' * run.few}")


def measure_long(folder, run, held_out):
    """Losses of the training, and held-out ones where weights were kept."""
    losses = trained.log(folder)
    for one in losses:
        step = one["step"]
        kept = step % (len(losses) // KEPT) == 0
        if kept or step in LOGGED:
            held = held_out_loss(folder if step == len(losses) else folder / f"checkpoint-{step:06}", held_out) if kept else ""
            yield {**run._asdict(), "few": int(run.few), "step": step, "training": one["loss"], "held_out": held}


# ---------------------------------------------------------------------------------------------------------------- report


def square(rows):
    """Standard deviation of the means by start, order and masks, and of what is left, in a complete Latin square; None in another."""
    values = {(one["start"], one["order"], one["masks"]): one["loss"] for one in rows if one["moved"] < 0}
    if len(values) < SQUARE * SQUARE:
        return None
    mean = np.mean(list(values.values()))
    effects = [[np.mean([loss for key, loss in values.items() if key[part] == one + 1]) - mean for one in range(SQUARE)] for part in range(3)]
    rest = [loss - mean - sum(effects[part][key[part] - 1] for part in range(3)) for key, loss in values.items()]
    freedom = SQUARE * SQUARE - 1 - 3 * (SQUARE - 1)
    return [float(np.std(one, ddof=1)) for one in effects], float(np.sqrt(np.sum(np.square(rest)) / freedom)), float(np.std(list(values.values()), ddof=1))


def needed(difference, deviation):
    """Seeds whose 95 % t-interval around such a difference leaves out 0; None above 100."""
    for count in range(3, 101):
        if trained.student(count - 1) * deviation / np.sqrt(count) < abs(difference):
            return count
    return None


# Differences that sentences of grid.md and clipping.md speak of: (cell, context) less (cell, context).
PAIRS = {"grid": [(one, "64", other, "64") for one, other in (
             ("full/emd", "full/input"), ("full/emd", "full/none"), ("full/emd", "full/level"), ("full/level", "full/none"), ("full/input", "full/none"),
             ("c2c+c2p/emd", "c2c+c2p/none"), ("c2c+p2c/emd", "c2c+p2c/none"), ("full/none", "c2c+c2p/none"), ("c2c+p2c/none", "c2c+c2p/none"),
             ("c2c/emd", "c2c/none"), ("input/none", "full/emd"))],
         "clipping": [*((one, "128", "k16", "128") for one in ("k2", "k4", "k8", "k32", "k64", "k128")),
                      ("k16", "512", "k16", "128"), ("k128", "512", "k128", "128")]}


def of_cells(path):
    """{(cell, context): {seed: loss}}"""
    cells = {}
    for row in trained.read_rows(path):
        cells.setdefault((row["cell"], str(row["context"])), {})[row["seed"]] = row["loss"]
    return cells


def tabulate(s, study_name, cells):
    """Every difference with the first three seeds and with all; then the seeds whose interval would leave out 0."""
    table = s.add_table(study_name, f"Sentences of the {study_name}: differences, and the seeds that they need",
                        ["difference", "seeds", "first three (nats)", "all of them (nats)", "sd of a pair", "seeds for this", "seeds for 0.02"])
    found = []
    for one, context, other, other_context in PAIRS[study_name]:
        left, right = cells[one, context], cells[other, other_context]
        both = sorted(set(left) & set(right))
        differences = [left[seed] - right[seed] for seed in both]
        estimate, deviation = trained.over_seeds(differences), float(np.std(differences, ddof=1))
        enough = [needed(size, deviation) or "> 100" for size in (estimate.value, 0.02)] if len(both) >= trained.SEEDS else ["", ""]
        label = f"{one} - {other}" if context == other_context else f"{one}, context {context} - {other_context}"
        table.add(label, len(both), f"{np.mean(differences[:3]):+.3f}", estimate.show("%+.3f (%+.3f to %+.3f)"), f"{deviation:.3f}", *map(str, enough))
        found.append((label, differences))
    return found


def main():
    parser = trained.command_line(__doc__, "held-out losses")
    for name in PAIRS:
        parser.add_argument(f"--{name}", metavar="FILE", help=f"losses of the models of the {name} by seed")
    parser.add_argument("--long", action="store_true", help=f"RESULTS are, and --train trains, runs of {LONG} steps: how rounding grows")
    s = trained.begin_with_corpus(parser)
    o = s.options
    held_out = stream = None
    if o.train or o.quick:
        stream, test = streams(o.corpus)
        held_out = study_models.held_out_batch(test, GRID)
    if o.long:
        steps = GRID.steps if o.quick else LONG
        texts = {few: streams(None if few else o.corpus) for few in {run.few for run in long_runs(o.quick)}} if held_out else {}
        held = {few: study_models.held_out_batch(test, GRID) for few, (_, test) in texts.items()}
        return tell_long(s, trained.rows_of(s, long_runs, lambda folder, run: measure_long(folder, run, held[run.few]),
                                            lambda run: long_recipe(run, texts[run.few][0], steps),
                                            lambda one, state, threads: trained.train_in_pieces(one, state, threads, steps // KEPT)))
    rows = trained.rows_of(s, settings_of, lambda folder, settings: measure(folder, settings, held_out), lambda settings: recipe(stream, *settings))
    base = next(one for one in rows if (one["start"], one["order"], one["masks"], one["moved"]) == (1, 1, 1, -1))
    steps = [name for name in base if name.startswith("step")]
    table = s.add_table("moved", "One weight moved by one unit in the last place: change of losses (nats)", ["weight", "held-out", *(f"step {name[4:]}" for name in steps)])
    s.add_data("start", "order", "masks", "moved", "loss")
    for one in rows:
        s.data.add(one["start"], one["order"], one["masks"], one["moved"], one["loss"])
        if one["moved"] >= 0 or (o.quick and one is not base):
            table.add(one["moved"] if one["moved"] >= 0 else "another seed", f"{one['loss'] - base['loss']:+.1e}", *(f"{one[name] - base[name]:+.1e}" for name in steps))
    parts = square(rows)
    if parts:
        effects, rest, all_of_them = parts
        table = s.add_table("square", f"{SQUARE} starts, orders and masks in a Latin square: standard deviation (nats)", ["of", "deviation", "F"])
        for name, one in zip(("means by start", "means by order", "means by masks"), effects):
            table.add(name, f"{one:.4f}", f"{SQUARE * (one / rest) ** 2:.2f}")
        table.add("what is left", f"{rest:.4f}", "")
        table.add("all models", f"{all_of_them:.4f}", "")
    found = {name: tabulate(s, name, of_cells(getattr(o, name))) for name in PAIRS if getattr(o, name)}
    small = [one for one in found.get("grid", []) if abs(np.mean(one[1])) < 0.5]
    s.finish(f"Losses are means over {GRID.texts} held-out texts. F of 4 and 12 degrees of freedom is above 3.26 in 5 % of squares without an effect. "
             f"Differences: mean over seeds, paired, with a 95 % t-interval; \"seeds for\": how many would leave out 0.", (lambda: draw(rows, small)) if parts else None)


def tell_long(s, rows):
    """Every run against its base: by how much it moves a loss, step by step."""
    runs = {}
    for row in rows:
        runs.setdefault(Run(row["start"], row["order"], row["masks"], row["shards"], bool(row["few"])), {})[row["step"]] = row["training"], row["held_out"]
    runs = dict(sorted(runs.items(), key=lambda one: (one[0].few, one[0].start + one[0].order, -one[0].shards)))
    steps = list(next(iter(runs.values())))
    kept = [step for step in steps if steps[-1] // KEPT <= step]
    early = [step for step in steps if step <= kept[0]]
    table = s.add_table("long", "Held-out loss of a run, and what a change moves it by (nats)", ["run", *(f"{step} steps" for step in kept)])
    first = s.add_table("early", "What a change moves the loss of the training by (nats)", ["change", *(f"step {step}" for step in early)])
    s.add_data("run", "step", "training", "held-out")
    for run, losses in runs.items():
        base = runs[run.base]
        for step, (training, held_out) in losses.items():
            s.data.add(run.shown, step, training, held_out)
        table.add(run.shown, *(f"{losses[step][1]:.4f}" if run == run.base else f"{losses[step][1] - base[step][1]:+.5f}" for step in kept))
        if run != run.base:
            first.add(run.shown, *(f"{losses[step][0] - base[step][0]:+.1e}" for step in early))
    s.finish(f"One schedule of {steps[-1]} steps; losses are means over {GRID.texts} held-out texts. Every row is one run.", lambda: draw_long(runs, kept))


def draw_long(runs, kept):
    """Sizes of the changes of the held-out loss."""
    figure, axes = study.panels(1, 1, height=62, width=120)
    for run, losses in runs.items():
        if run != run.base:
            sizes = [abs(losses[step][1] - runs[run.base][step][1]) for step in kept]
            axes[0, 0].plot(kept, sizes, marker=".", ls="-" if run.start == run.order == 1 else "--", label=run.shown)
    axes[0, 0].set(yscale="log", xlabel="steps", ylabel="change of the held-out loss (nats)", xticks=kept)
    axes[0, 0].yaxis.set_major_formatter("{x:g}")
    study.legend_above(figure, axes[0, 0])
    return figure


def draw(rows, differences):
    """The square by each of its parts with the means, and the moved weights; then differences of the grid's cells, a dot a seed."""
    figure, axes = study.panels(1, 2, height=60, width=175)
    square_rows = [one for one in rows if one["moved"] < 0]
    for place, part in enumerate(("start", "order", "masks")):
        for one in square_rows:
            axes[0, 0].plot(3 * place + (one[part] - 3) / 3, one["loss"], ".", color="#0072b2", ms=4)
        for value in range(1, SQUARE + 1):
            mean = np.mean([one["loss"] for one in square_rows if one[part] == value])
            axes[0, 0].plot(3 * place + (value - 3) / 3 + np.array([-0.12, 0.12]), [mean, mean], color="#d55e00", lw=1.5)
    moved = [one["loss"] for one in rows if one["moved"] >= 0]
    axes[0, 0].plot(9 + np.linspace(-0.3, 0.3, len(moved)), moved, ".", color="#0072b2", ms=4)
    axes[0, 0].set_xticks([0, 3, 6, 9], ["start", "order", "masks", "one weight,\nlast place"])
    axes[0, 0].set(ylabel="held-out loss (nats)", title="What a seed is made of")
    for place, (label, values) in enumerate(differences):
        estimate = trained.over_seeds(values)
        axes[0, 1].plot(values, np.full(len(values), -place), ".", color="#0072b2", ms=3)
        axes[0, 1].plot([estimate.low, estimate.high], [-place - 0.25] * 2, color="#d55e00", lw=1.5)
    axes[0, 1].axvline(0, color="0.6", lw=0.6)
    axes[0, 1].set_yticks([-place for place in range(len(differences))], [label for label, _ in differences], fontsize=5)
    axes[0, 1].set(xlabel="difference of a pair (nats)", title="Sentences of the grid, a dot a seed")
    return figure


if __name__ == "__main__":
    study.run(main)
