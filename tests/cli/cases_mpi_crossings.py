"""Training by several processes, crossed with what else a training can be: every head, convolution, narrow embeddings, one label, sequences of
one token, batches smaller than the number of ranks, and ways to save memory. Weights and logs are those of the plain program.

DEBERTA_TEST_SEED repeats what was drawn, DEBERTA_MPI_CASES lengthens it. SPDX-License-Identifier: MIT
"""
import array
import json
import os
import random
import shutil

from cases_mpi import SEED, needs_mpi, ranked, same
from cases_train import case, tensors, write
from helpers import contains, equal

CASES, STEPS = int(os.environ.get("DEBERTA_MPI_CASES", "6")), 4
REQUIRES = [needs_mpi]
# Of tests/golden_train: which command trains it.
MODELS = {"03-v3-mlm-emd": "train mlm", "07-v1-sequence-types": "finetune sequence", "08-v2-conv-token": "finetune token", "10-v3-qa": "finetune qa",
          "11-v3-rtd": "train rtd", "13-v3-sift-sequence": "finetune sequence", "15-v2-plain-absolute": "train mlm", "18-v3-choice": "finetune choice",
          "20-v2-conv-rtd-first-hole": "train rtd", "21-v3-sift-narrow-first-hole": "finetune sequence"}
# The two rarest first, the rest is drawn.
ONE_LABEL, PAIR = "07-v1-sequence-types", "12-v3-rtd-gdes"


def draw_batches(dice, path, found, one_label):
    """Steps of drawn rows of a batch, of which some are cut to one token; labels beyond that count for nothing."""
    rows, sequences = found["input_ids"][1][0], dice.choice([1, 2, 3, 5])
    chosen = [dice.randrange(rows) for _ in range(STEPS * sequences)]
    # The first row of a step keeps its labels: a step without any is refused, by one rank as by several.
    short = [dice.random() < 0.3 and k % sequences > 0 for k in range(len(chosen))]
    labels = found.get("labels", ("", [], []))[2]
    labelled = [row for row in range(rows) if any(label != -100 for label in labels[row * len(labels) // rows:(row + 1) * len(labels) // rows])] or range(rows)
    chosen = [dice.choice(labelled) if k % sequences == 0 else row for k, row in enumerate(chosen)]
    contents, mask = {}, found["attention_mask"][2]
    for name, (dtype, shape, values) in found.items():
        if name == "delta":
            continue
        width = len(values) // rows
        tokens = shape[-1] if len(shape) > 1 else 0
        taken = array.array(values.typecode)
        for row, is_short in zip(chosen, short):
            part = values[row * width:(row + 1) * width]
            for at in range(width if is_short and tokens and name in ("attention_mask", "labels") else 0):
                sequence = mask[row * width + at - at % tokens:][:tokens]
                if at % tokens != sequence.index(1):  # the first that is there: some begin with a hole
                    part[at] = 0 if name == "attention_mask" else -100
            taken.extend(array.array(values.typecode, [0] * width) if is_short and name.endswith("_positions") else part)
        if one_label and name == "labels":
            dtype, taken = "F32", array.array("f", (dice.gauss(0, 1) for _ in chosen))
        contents[name] = (dtype, [STEPS, sequences, *shape[1:]], taken)
    write(path, contents)


def with_one_label(bench, folder):
    """The model with the first row of its classifier alone, which is a regression."""
    own = bench.path("one-label")
    shutil.copytree(folder, own)
    found = tensors(os.path.join(folder, "model.safetensors"))
    for name, (dtype, shape, values) in found.items():
        if name.startswith("classifier."):
            found[name] = (dtype, [1, *shape[1:]], values[:len(values) // shape[0]])
    write(os.path.join(own, "model.safetensors"), found)
    config = {key: value for key, value in bench.load(os.path.join(folder, "config.json")).items() if key not in ("label2id", "num_labels")}
    bench.write(os.path.join(own, "config.json"), json.dumps({**config, "id2label": {"0": "value"}}))
    return own


def draw_run(bench, dice, number):
    name = {0: ONE_LABEL, 1: PAIR}.get(number) or dice.choice(sorted(MODELS))
    folder = case(bench, name)
    draw_batches(dice, bench.path("batches.safetensors"), tensors(os.path.join(folder, "batch.safetensors")), number == 0)
    words = [*MODELS.get(name, "train rtd").split(), with_one_label(bench, folder) if number == 0 else folder]
    if name == PAIR:
        words = ["train", "rtd", os.path.join(folder, "discriminator"), "--generator", os.path.join(folder, "generator")]
    words += ["--batches", "batches.safetensors", "--steps", str(STEPS), "--learning-rate", "0.01", "--checkpoint-every", "2", "--threads", "1",
              "--seed", str(dice.randrange(1000)), "--virtual-shards", dice.choice(["4", "8", "16"])]
    words += dice.choice([[], ["--micro-tokens", dice.choice(["1", "20", "60"])], ["--recompute"], ["--recompute", "--micro-tokens", "20"]])
    words += dice.choice([["--dropout", "0"], ["--dropout", "0.1"]])
    words += dice.choice([[], ["--isa", "scalar"]]) + dice.choice([[], ["--layer-decay", "0.8"]]) + dice.choice([[], ["--optimizer", "xadam"]])
    if words[0] == "finetune" and words[1] != "qa":
        words += dice.choice([[], ["--sift", "1"]])
    return words, ("generator/model.safetensors", "discriminator/model.safetensors") if name == PAIR else ("model.safetensors",)


def test_drawn_crossings(bench):
    """A run by drawn ranks, and one that stops with some and goes on with others."""
    for number in range(CASES):
        dice = random.Random(f"{SEED} crossings {number}")
        words, files = draw_run(bench, dice, number)
        ranks, others = dice.choice([2, 3, 4]), dice.choice([1, 2, 3, 4])
        print(f"seed {SEED}: case {number}, {ranks} ranks, then {others}: {' '.join(words)}")
        for out in ("plain", "ranks"):
            shutil.rmtree(bench.path(out), ignore_errors=True)
        bench.fine(*words, "--out", "plain")
        if dice.random() < 0.5:
            ranked(bench, (ranks, [*words, "--out", "ranks"]))
        else:
            ranked(bench, (ranks, [*words, "--stop-at", "2", "--out", "ranks"]))
            ranked(bench, (others, [*words, "--resume", "--out", "ranks"]))
        same(bench, "ranks", "plain", files)


def test_full_disk(bench):
    """The disk of the rank that writes is full at a drawn call: it is named, and what goes on has the same bits."""
    folder, dice = case(bench, "03-v3-mlm-emd"), random.Random(f"{SEED} full disk")
    draw_batches(dice, bench.path("batches.safetensors"), tensors(os.path.join(folder, "batch.safetensors")), False)
    words = ["train", "mlm", folder, "--batches", "batches.safetensors", "--steps", "6", "--checkpoint-every", "2", "--threads", "1", "--dropout", "0"]
    bench.fine(*words, "--out", "plain")
    library = os.path.join(os.path.dirname(os.path.abspath(bench.program)), "tests/failing_calls/failing_calls.so")
    for number, at in enumerate((dice.randrange(1, 8), dice.randrange(8, 40))):
        out = f"full-{number}"
        print(f"seed {SEED}: call {at}")
        full = ["env", f"LD_PRELOAD={library}", "FAIL_WITH=28", "FAIL_FROM=1", f"FAIL_UNDER={out}", f"FAIL_AT={at}", f"{bench.program}-mpi"]
        _, err = ranked(bench, (1, [*words, "--out", out], full), (2, [*words, "--out", out]), code=4)
        contains(err, "No space left on device", "this was rank 0 of 3")
        equal(err.count("No space left on device"), 1, err)
        ranked(bench, (2, [*words, *["--resume"] * os.path.exists(bench.path(out)), "--out", out]))
        same(bench, out, "plain", ("model.safetensors",))
