"""Shapes at which the training's memory could end: labels beyond all other widths, more choices than anybody has; flags that must not reach a
model; labels that no softmax knows.

SPDX-License-Identifier: MIT
"""
import array
import json
import os
import shutil
import time

from cases_train import TRAIN, case, digest, read_log, tensors, write
from helpers import DEMO, contains, equal

LABELS = 2000


def floats(*shape):
    """Small numbers that differ."""
    count = 1
    for size in shape:
        count *= size
    return "F32", list(shape), array.array("f", [((n * 7919) % 1009 - 504) / 4000 for n in range(count)])


def wide_model(bench, name, folder, intermediate):
    """A golden model with LABELS labels, and its layers' middle widened by zeros, which change nothing."""
    os.makedirs(bench.path(name))
    config = bench.load(os.path.join(folder, "config.json"))
    weights, before = tensors(os.path.join(folder, "model.safetensors")), config["intermediate_size"]
    config |= {"intermediate_size": intermediate, "id2label": {str(k): f"L{k}" for k in range(LABELS)}}
    config.pop("label2id", None)
    for tensor, (_, shape, values) in list(weights.items()):
        zeros = array.array("f", [0] * (intermediate - before))
        if "intermediate.dense" in tensor:
            width = len(values) // before
            weights[tensor] = "F32", [intermediate, *shape[1:]], values + zeros * width
        elif "output.dense.weight" in tensor and "attention" not in tensor:
            rows = [values[at:at + before] + zeros for at in range(0, len(values), before)]
            weights[tensor] = "F32", [shape[0], intermediate], sum(rows, array.array("f"))
    weights |= {"classifier.weight": floats(LABELS, config["hidden_size"]), "classifier.bias": floats(LABELS)}
    write(bench.path(f"{name}/model.safetensors"), weights)
    bench.write(f"{name}/config.json", json.dumps(config))
    return name


def test_many_labels(bench):
    """A classifier with more outputs than any other matrix: the gradients are those of a model whose middle is wider than that."""
    for task, golden, more in (("sequence", "13-v3-sift-sequence", ()), ("token", "08-v2-conv-token", ()), ("sequence", "13-v3-sift-sequence", ("--sift", "2")),
                               ("token", "08-v2-conv-token", ("--sift", "2"))):
        folder = case(bench, golden)
        found = []
        for name, intermediate in (("narrow", 48), ("wide", 2048)):
            shutil.rmtree(bench.path(name), ignore_errors=True)
            model = wide_model(bench, name, folder, intermediate)
            bench.fine("finetune", task, model, *TRAIN, *more, "--one-batch", os.path.join(folder, "batch.safetensors"), "--gradients", "g.safetensors")
            found.append(tensors(bench.path("g.safetensors")))
        for tensor, (_, _, values) in found[0].items():
            if "intermediate" not in tensor and not ("output.dense.weight" in tensor and "attention" not in tensor):
                assert values == found[1][tensor][2], (task, more, tensor)


def test_more_words_than_a_weight_holds(bench):
    """Their gradients are summed in parts where the width fills no panel; those of the bias of a softmax cancel."""
    made_up = "synthetic:v3-small,layers=1,hidden=24,heads=2,intermediate=32,vocab=97,positions=64,buckets=8,lm=1"
    bench.fine("train", "mlm", made_up, *TRAIN, "--one-batch", os.path.join(case(bench, "03-v3-mlm-emd"), "batch.safetensors"), "--gradients", "g.safetensors")
    gradients = tensors(bench.path("g.safetensors"))["grad.lm_predictions.lm_head.bias"][2]
    assert len(gradients) == 97 and max(gradients) > 1e-3 and abs(sum(gradients)) < 1e-5, (max(gradients), sum(gradients))


def test_many_choices(bench):
    """SiFT compares the distribution over 1,100 choices; groups of shards do not change it."""
    folder, choices = case(bench, "18-v3-choice"), 1100
    ids = [5 + n * 31 % 50 for n in range(4 * choices)]
    write(bench.path("b.safetensors"), {"input_ids": ("I64", [1, choices, 4], array.array("q", ids)), "labels": ("I64", [1], array.array("q", [1099]))})
    for out, more in (("a", ()), ("b", ("--micro-tokens", "300"))):
        bench.fine("finetune", "choice", folder, *TRAIN, "--sift", "2", "--one-batch", "b.safetensors", "--gradients", out, *more)
    equal(digest(bench, "a"), digest(bench, "b"))


def test_head_of_a_pair(bench):
    """--head is the generator's: the discriminator runs its last layer, whatever it says."""
    folder = case(bench, "12-v3-rtd-gdes")
    words = ["train", "rtd", os.path.join(folder, "discriminator"), "--generator", os.path.join(folder, "generator"), *TRAIN,
             "--one-batch", os.path.join(folder, "batch.safetensors"), "--gradients"]
    bench.fine(*words, "auto")
    bench.fine(*words, "asked", "--head", "mlm_emd")
    equal(digest(bench, "asked"), digest(bench, "auto"))


def test_replaced_tokens_without_a_generator(bench):
    """The loss that is not weighted stands beside the gradients."""
    folder = case(bench, "11-v3-rtd")
    bench.fine("train", "rtd", folder, *TRAIN, "--one-batch", os.path.join(folder, "batch.safetensors"), "--gradients", "g")
    got, want = tensors(bench.path("g")), tensors(os.path.join(folder, "expected.safetensors"))
    equal(set(got), set(want))
    assert abs(got["loss.discriminator"][2][0] - want["loss.discriminator"][2][0]) < 1e-6, got["loss.discriminator"]


def test_answer_at_a_hole(bench):
    """An end of an answer that the mask takes out is refused with its place; behind the text it is no answer."""
    folder = case(bench, "10-v3-qa")
    for tensor, what in (("start_positions", "start"), ("end_positions", "end")):
        batch = tensors(os.path.join(folder, "batch.safetensors"))
        batch["attention_mask"][2][2 * batch["input_ids"][1][1] + 5] = 0
        batch[tensor][2][2] = 5
        write(bench.path("b.safetensors"), batch)
        result = bench.expect(3, "finetune", "qa", folder, *TRAIN, "--one-batch", "b.safetensors", "--gradients", "g")
        contains(result.err, f"sequence 2, token 5: the {what} of the answer is at a hole of the attention_mask")
        batch[tensor][2][2] = 6
        write(bench.path("b.safetensors"), batch)
        bench.fine("finetune", "qa", folder, *TRAIN, "--one-batch", "b.safetensors", "--gradients", "g")


def test_texts_of_one_token(bench):
    """Labels of sequences are no labels of tokens where both are as many."""
    folder = wide_model(bench, "m", case(bench, "13-v3-sift-sequence"), 48)
    write(bench.path("b.safetensors"), {"input_ids": ("I64", [3, 1], array.array("q", [5, 6, 7])),
                                        "labels": ("I64", [3], array.array("q", [3, 1999, 70]))})  # the vocabulary has 61 pieces
    bench.fine("finetune", "sequence", folder, *TRAIN, "--one-batch", "b.safetensors", "--gradients", "g")


def test_optimizer_numbers(bench):
    """What would be NaN at the second update is refused before the first."""
    folder = case(bench, "t1-v3-mlm-emd-adamw")
    for option, value, message in (("--beta1", "1", "0 to 0.999999"), ("--beta2", "1", "0 to 0.999999"), ("--epsilon", "0", "1e-30 to 1")):
        words = ["train", "mlm", folder, *TRAIN, "--batches", os.path.join(folder, "batches.safetensors"), "--steps", "3", option]
        contains(bench.expect(2, *words, value, "--out", "x").err, message)
        assert not os.path.exists(bench.path("x")), "nothing is left behind"
    words = ["train", "mlm", folder, *TRAIN, "--batches", os.path.join(folder, "batches.safetensors"), "--steps", "3"]
    bench.fine(*words, "--beta1", "0", "--beta2", "0.999999", "--epsilon", "1e-30", "--out", "y")
    assert all(line["loss"] < 100 for line in read_log(bench, "y"))


def test_many_names(bench):
    """As many names as lines are looked up in about the time that it takes to read them."""
    count = 150000
    bench.write("many.tsv", "".join(f"name {n * 7919 % count}\tA text.\n" for n in range(count)) + "\tno name\n")
    begin = time.monotonic()
    result = bench.expect(3, "finetune", "sequence", DEMO, *TRAIN, "--new-head", "--examples", "many.tsv", "--steps", "1", "--out", "x")
    contains(result.err, f"line {count + 1}", "the label is empty")
    assert os.environ.get("DEBERTA_TEST_QUICK") or time.monotonic() - begin < 20, "by halves or by a hash, not one by one"
