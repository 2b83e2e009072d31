"""`pack`: what it writes is used, by every command, and only while it fits. SPDX-License-Identifier: MIT
"""
import json
import os
import shutil

from helpers import TINY, at_most, contains, read_tensors


PACKED = "deberta.packed"
NOTE = "deberta.packed is not of these weights"


def copied(bench, name="33-v3-mlm-emd"):
    shutil.copytree(os.path.join(bench.golden, name), bench.path("model"))
    return "model"


def content(bench, *names):
    return bench.bytes(os.path.join(*names))


def encode(bench, model):
    """Standard error, and the file that was written."""
    return bench.fine("encode", model, "--ids", "1,3,5,7,2", "--hidden", "all", "-o", "x.safetensors").err, content(bench, "x.safetensors")


def state(bench, model):
    return json.loads(bench.fine("info", model, "--json").out)["model"]["packed"]


def test_used(bench):
    model = copied(bench)
    _, before = encode(bench, model)
    assert state(bench, model) == "none" and "packed weights" not in bench.fine("info", model).out
    said = bench.fine("pack", model)
    assert said.out.endswith("in model/deberta.packed: mapped from now on whenever this model is opened\n") and not said.err, said.describe()
    assert bench.fine("pack", model, "--out", "said.txt").err == f"note: the packed weights are {model}/deberta.packed, beside the model; said.txt holds only what is said of them\n" and "mapped from now on" in bench.read("said.txt")
    assert state(bench, model) == "mapped" and "mapped from deberta.packed" in bench.fine("info", model).out
    err, after = encode(bench, model)
    assert after == before and not err, err
    bench.fine("verify", model)
    bench.fine("pack", model, "--json", "-o", "said.json")
    said = json.loads(content(bench, "said.json"))
    assert said["model"] == "model" and said["file"] == PACKED
    assert said["bytes"] + 4096 + 64 * -(-said["bytes"] // (256 << 10)) == os.path.getsize(bench.path(os.path.join(model, PACKED))), said
    said = bench.fine("pack", "--check", model).out
    assert said == "model/deberta.packed: every byte is as it was written, and the model's files are those that were packed\n", said
    assert json.loads(bench.fine("pack", "--check", model, "--json").out) == {"model": "model", "file": PACKED, "checked": True}


def test_passed_over(bench):
    model = copied(bench)
    _, before = encode(bench, model)
    bench.fine("pack", model)
    weights = bench.path(os.path.join(model, "model.safetensors"))
    os.utime(weights, ns=(0, os.stat(weights).st_mtime_ns + 1))
    err, after = encode(bench, model)
    assert after == before and NOTE in err and "deberta pack model" in err, err
    assert not bench.fine("encode", model, "--ids", "1,2", "-q", "-o", "y.safetensors").err
    assert state(bench, model) == "stale"
    bench.fine("pack", model)
    assert state(bench, model) == "mapped"
    os.remove(bench.path(os.path.join(model, PACKED)))
    assert state(bench, model) == "none"


def failing(bench, code, says, *arguments):
    contains(bench.expect(code, *arguments).err, says)


def test_damaged(bench):
    """What opening does not look at: `pack --check` and `verify` do."""
    model = copied(bench)
    failing(bench, 3, "deberta.packed: cannot be opened", "pack", "--check", model)
    weights = bench.path(os.path.join(model, "model.safetensors"))
    times = os.stat(weights)
    bench.fine("pack", model)
    bench.flip(weights, times.st_size // 3)
    os.utime(weights, ns=(times.st_atime_ns, times.st_mtime_ns))
    assert state(bench, model) == "mapped"
    for command in (("pack", "--check"), ("verify",)):
        failing(bench, 1, "was made of other weights", *command, model)
    bench.fine("pack", model)
    bench.flip(os.path.join(model, PACKED), 5000)
    failing(bench, 1, "is damaged: 1 of ", "pack", "--check", model)
    bench.flip(os.path.join(model, PACKED), -1)
    assert state(bench, model) == "stale" and "or damaged" in encode(bench, model)[0]


def test_refused(bench):
    for model, code, text in (("nowhere", 3, "nowhere"), (TINY, 3, "made-up model")):
        contains(bench.expect(code, "pack", model).err, text)


def test_without_weights(bench):
    """A file of low precision in place of the weights: the same answers, in that precision alone."""
    model = copied(bench)
    words = ["--ids", "1,5,9,2", "--hidden", "all"]

    def states(name):
        return {key: list(tensor.values) for key, tensor in read_tensors(bench.path(name))[0].items()}
    for precision in ("int16", "int8"):
        name = f"deberta.{precision}.packed"
        bench.fine("encode", model, *words, "--precision", precision, "-o", "before.safetensors")
        bench.fine("pack", model, "--precision", precision)
        shutil.copytree(bench.path(model), bench.path(precision))
        os.remove(bench.path(os.path.join(precision, "model.safetensors")))
        for threads in ("1", "2"):
            bench.fine("encode", precision, *words, "--precision", precision, "--threads", threads, "-o", "after.safetensors")
            assert states("after.safetensors") == states("before.safetensors")
        assert bench.fine("pack", "--check", precision, "--precision", precision).out.startswith(f"{precision}/{name}: every byte")
        assert "mapped from " + name in bench.fine("info", precision, "--precision", precision).out
        failing(bench, 3, f"has no weights but packed ones of {precision}", "info", precision)
        failing(bench, 3, "has no weights to pack", "pack", precision, "--precision", precision)
        bench.append(os.path.join(precision, "config.json"), " ")
        failing(bench, 3, f"{name}: was made with another config.json", "encode", precision, "--ids", "1", "--precision", precision, "-o", "no.safetensors")
        assert not os.path.exists(bench.path("no.safetensors"))
        os.remove(bench.path(os.path.join(model, name)))


def test_small_disk(bench):
    """No file, old or new, is damaged by a disk that fills up."""
    model = copied(bench)
    bench.fine("pack", model)
    names, old = sorted(os.listdir(bench.path(model))), content(bench, model, PACKED)
    contains(bench.expect(4, "pack", model, preexec_fn=at_most("FSIZE", 8192)).err, "File too large")
    assert sorted(os.listdir(bench.path(model))) == names and content(bench, model, PACKED) == old
