"""Zeros with which a mask begins are padding: they are cut with one note, by what encodes and by what trains; nothing that could be learnt is cut.

SPDX-License-Identifier: MIT
"""
import array
import json
import os
import pathlib
import shutil

from cases_train import TRAIN, case, digest, tensors, write
from helpers import DEMO, contains, equal

IDS = [1, 442, 2685, 764, 2]


def notes(result):
    return [line for line in result.err.splitlines() if "begins with" in line]


def write_json(bench, name, rows, mask):
    bench.write(name, json.dumps({"input_ids": rows, "attention_mask": mask}))
    return name


def test_left_padding_is_cut_with_one_note(bench):
    """The answer is that of the text alone, and the note names the first of the rows."""
    alone = write_json(bench, "alone.json", [IDS], [[1] * 5])
    left = write_json(bench, "left.json", [IDS + [0, 0], [0, 0] + IDS, [0] + IDS + [0]], [[1] * 5 + [0, 0], [0, 0] + [1] * 5, [0] + [1] * 5 + [0]])
    right = write_json(bench, "right.json", [IDS + [0, 0]], [[1, 1, 0, 1, 1, 0, 0]])
    empty = write_json(bench, "empty.json", [[0] * 5, IDS], [[0] * 5, [1] * 5])
    said = bench.fine("encode", DEMO, "--input", left, "--logits", "-o", "left.safetensors")
    equal(len(notes(said)), 1, said.err)
    contains(said.err, "left.json: the attention_mask of row 1 begins with 2 zeros: what stands there is padding")
    bench.fine("encode", DEMO, "--input", alone, "--logits", "-o", "alone.safetensors")
    found, expected = tensors(bench.path("left.safetensors")), tensors(bench.path("alone.safetensors"))
    equal(list(found["logits.sequence"][2]), list(expected["logits.sequence"][2]) * 3)
    for name in (alone, right, empty):
        equal(notes(bench.fine("encode", DEMO, "--input", name, "-o", "x.safetensors")), [], name)
    equal(bench.fine("encode", DEMO, "--input", left, "-q", "-o", "x.safetensors").err, "")
    equal(len(notes(bench.fine("encode", DEMO, "--input", "-", "-o", "x.safetensors", stdin=bench.bytes("left.json")))), 1)


def test_verify_says_what_it_cuts(bench):
    """A file of vectors whose rows are padded on the left."""
    left = {"input_ids": ("I64", [1, 7], array.array("q", [0, 0] + IDS)), "attention_mask": ("I64", [1, 7], array.array("q", [0, 0] + [1] * 5))}
    write(bench.path("left.safetensors"), left)
    bench.fine("encode", DEMO, "--input", "left.safetensors", "-o", "hidden.safetensors")
    write(bench.path("both.safetensors"), left | tensors(bench.path("hidden.safetensors")))
    equal(len(notes(bench.fine("verify", DEMO, "--expected", "both.safetensors", "--isa", "scalar"))), 1)


def moved(batch):
    """The batch with all of its sequences at the right border, and where each of them begins then."""
    shape = batch["input_ids"][1]
    columns, mask = shape[-1], batch["attention_mask"][2]
    rows = len(mask) // columns
    firsts = [columns - max(t + 1 for t in range(columns) if mask[i * columns + t]) for i in range(rows)]
    found = {}
    for name, (dtype, its_shape, values) in batch.items():
        values = array.array(values.typecode, values)
        if name in ("start_positions", "end_positions"):
            for i, first in enumerate(firsts):
                values[i] += first
        elif its_shape[:len(shape)] == shape:
            width = len(values) // len(mask)
            for i, first in enumerate(firsts):
                row = values[i * columns * width:(i + 1) * columns * width]
                filling = array.array(values.typecode, [-100 if name == "labels" else 0] * (first * width))
                values[i * columns * width:(i + 1) * columns * width] = filling + row[:(columns - first) * width]
        found[name] = dtype, its_shape, values
    return found, firsts


def test_training_cuts_left_padding(bench):
    """Gradients are the same bits whichever side the padding is on, for each task and with positions that count columns."""
    for words, name in (("train mlm --head mlm_emd", "03-v3-mlm-emd"), ("finetune token", "08-v2-conv-token"), ("finetune qa", "10-v3-qa"),
                        ("train rtd", "11-v3-rtd"), ("finetune sequence --sift 5", "13-v3-sift-sequence"), ("finetune sequence", "07-v1-sequence-types"),
                        ("finetune choice", "18-v3-choice")):
        command, task, *more = words.split()
        folder = case(bench, name)
        batch = tensors(os.path.join(folder, "batch.safetensors"))
        columns = batch["input_ids"][1][-1]
        if "start_positions" in batch:  # the case has no padding
            for row in range(2):
                batch["attention_mask"][2][(row + 1) * columns - 2 + row:(row + 1) * columns] = array.array("q", [0] * (2 - row))
                batch["start_positions"][2][row], batch["end_positions"][2][row] = 1, 3
        shifted, firsts = moved(batch)
        assert any(firsts), f"{name}: no sequence is padded"
        batch["position_ids"] = "I64", batch["input_ids"][1], array.array("q", [min(first + t, columns - 1) for first in firsts for t in range(columns)])
        for tensor in ("start_positions", "end_positions"):  # a place behind the text is none on either side
            for i, place in enumerate(batch[tensor][2] if tensor in batch else []):
                if place >= columns:
                    shifted[tensor][2][i] = columns
        write(bench.path("right.safetensors"), batch)
        write(bench.path("left.safetensors"), shifted)
        said = {}
        for side in ("right", "left"):
            said[side] = bench.fine(command, task, folder, *more, *TRAIN, "--one-batch", f"{side}.safetensors", "--gradients", f"of-{side}")
        equal(digest(bench, "of-left"), digest(bench, "of-right"), words)
        equal((len(notes(said["right"])), len(notes(said["left"]))), (0, 1), words)
        contains(said["left"].err, "left.safetensors: the attention_mask of sequence")


def test_nothing_that_could_be_learnt_is_cut(bench):
    """A label, or an end of an answer, at padding of either side is refused with its place in the file."""
    folder = case(bench, "08-v2-conv-token")
    batch = tensors(os.path.join(folder, "batch.safetensors"))
    columns, mask, labels = batch["input_ids"][1][1], batch["attention_mask"][2], batch["labels"][2]
    row = next(i for i in range(len(mask) // columns) if not mask[(i + 1) * columns - 1])
    labels[(row + 1) * columns - 1] = 1
    write(bench.path("b.safetensors"), batch)
    words = ["finetune", "token", folder, *TRAIN, "--one-batch", "b.safetensors", "--gradients", "g"]
    contains(bench.expect(3, *words).err, f"sequence {row}, token {columns - 1}: label 1 where the attention_mask has padding, expected -100")
    labels[(row + 1) * columns - 1] = -100
    mask[0], labels[0] = 0, 1
    write(bench.path("b.safetensors"), batch)
    contains(bench.expect(3, *words).err, "sequence 0, token 0: label 1 where the attention_mask has padding")
    labels[0], hole = -100, next(t for t in range(2, columns) if mask[t])
    mask[hole], labels[hole] = 0, 1
    write(bench.path("b.safetensors"), batch)
    contains(bench.expect(3, *words).err, f"sequence 0, token {hole}: label 1 at a hole of the attention_mask")

    folder = case(bench, "10-v3-qa")
    batch = tensors(os.path.join(folder, "batch.safetensors"))
    columns = batch["input_ids"][1][1]
    batch["attention_mask"][2][columns] = batch["attention_mask"][2][columns + 1] = 0
    batch["end_positions"][2][1] = 1
    write(bench.path("b.safetensors"), batch)
    words = ["finetune", "qa", folder, *TRAIN, "--one-batch", "b.safetensors", "--gradients", "g"]
    contains(bench.expect(3, *words).err, "sequence 1, token 1: the end of the answer is at padding of the attention_mask")
    batch["attention_mask"][2][columns + 4], batch["end_positions"][2][1] = 0, 4
    write(bench.path("b.safetensors"), batch)
    contains(bench.expect(3, *words).err, "sequence 1, token 4: the end of the answer is at a hole of the attention_mask")


def test_a_run_says_once_what_it_cuts(bench):
    """A file of several steps, of which a later one is padded on the left."""
    folder = case(bench, "t4-v2-conv-token-xadam")
    batches = tensors(os.path.join(folder, "batches.safetensors"))
    steps, rows, columns = batches["input_ids"][1]
    for step in (1, 2):
        batches["attention_mask"][2][step * rows * columns] = 0
        batches["labels"][2][step * rows * columns] = -100
    write(bench.path("b.safetensors"), batches)
    said = bench.fine("finetune", "token", folder, *TRAIN, "--batches", "b.safetensors", "--steps", "3", "-o", "out")
    equal(len(notes(said)), 1, said.err)
    contains(said.err, "the attention_mask of sequence 0 begins with 1 zero:")


def test_a_text_without_a_token(bench):
    """Its states are 0, and that is said; of a head that would read its first token nothing can be said."""
    some = write_json(bench, "some.json", [IDS, IDS], [[1] * 5, [0] * 5])
    every = write_json(bench, "every.json", [IDS], [[0] * 5])
    for name, text in ((some, 1), (every, 0)):
        contains(bench.fine("encode", DEMO, "--input", name, "-o", "x.safetensors").err, f"{name}: the mask keeps no token of text {text}: all of its results are 0")
        bench.fine("encode", DEMO, "--input", name, "-o", "none.safetensors")
        contains(bench.expect(3, "encode", DEMO, "--input", name, "--logits", "-o", "y.safetensors").err,
                 f"{name}: the mask keeps no token of text {text}, so that a head has nothing to read of it")
    assert not os.path.exists(bench.path("y.safetensors"))


def test_padding_without_a_mask_is_said(bench):
    sentence = "begins or ends with id 0, which is padding, and there is no mask: padding is read as text"
    bench.write("ends.json", json.dumps({"input_ids": [IDS + [0], IDS[:-1] + [0, 2]]}))
    contains(bench.fine("encode", DEMO, "--input", "ends.json", "-o", "x.safetensors").err, "note: ends.json: row 0 " + sentence)
    bench.write("begins.json", json.dumps({"input_ids": [IDS + [2], [0] + IDS]}))
    contains(bench.fine("encode", DEMO, "--input", "begins.json", "-o", "x.safetensors").err, "row 1 " + sentence)
    other = bench.path("other")
    shutil.copytree(DEMO, other)
    config = json.loads(pathlib.Path(other, "config.json").read_text())
    config.pop("pad_token_id", None)
    pathlib.Path(other, "config.json").write_text(json.dumps(config | {"padding_idx": IDS[-1]}))  # Microsoft's name
    contains(bench.fine("encode", other, "--input", "begins.json", "-o", "x.safetensors").err, f"row 0 begins or ends with id {IDS[-1]}, which is padding")
    bench.write("inside.json", json.dumps({"input_ids": [IDS[:-1] + [0, 2]]}))
    masked = write_json(bench, "masked.json", [IDS + [0]], [[1] * 5 + [0]])
    for name in ("inside.json", masked):
        equal(bench.fine("encode", DEMO, "--input", name, "-o", "x.safetensors").err, "")
