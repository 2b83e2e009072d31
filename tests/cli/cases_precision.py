"""--precision: what low precision makes of odd models and texts, where it is refused, and which packed file belongs to it.
SPDX-License-Identifier: MIT
"""
import json
import math
import os
import pathlib
import re
import shutil

from helpers import DEMO, TINY, Picture, check, contains, make_model, needs_figures, read_tensors, write_tensors

LOW = ("int16", "int8")
BARS = {"int16": 5e-4, "int8": 5e-2}  # as of the golden cases
LAYER = "encoder.layer.1."


def model_with(folder, change):
    """A model of the golden cases after change(name, values) of every tensor."""
    made = make_model(pathlib.Path(folder), "29", "spm-unigram", 3001)
    tensors, _ = read_tensors(made / "model.safetensors")
    for name, tensor in tensors.items():
        change(name, tensor.values)
    write_tensors(made / "model.safetensors", tensors)
    return str(made)


def hidden(bench, model, *words):
    bench.fine("encode", model, *words, "-o", "x.safetensors")
    tensors, _ = read_tensors(bench.path("x.safetensors"))
    return max((int(name.split(".")[1]), list(tensor.values)) for name, tensor in tensors.items() if name.startswith("hidden_states."))[1]


def relative_error(found, expected):
    return math.dist(found, expected) / math.hypot(*expected)


def near_float32(bench, model, *words):
    """Every low precision gives finite numbers, near those of float32, and others than float32's."""
    expected = hidden(bench, model, *words)
    for precision in LOW:
        error = relative_error(hidden(bench, model, *words, "--precision", precision), expected)
        check(0 < error < BARS[precision], f"{model} {words}: {precision} is {error:.1e} from float32")


def test_one_token(bench):
    near_float32(bench, TINY, "--ids", "7")


def test_zero_channels(bench):
    """Channels that are always zero have no amplitude, and weights that are all zero no largest one: nothing to even out."""
    def empty(name, values):
        if name.endswith(LAYER + "attention.output.LayerNorm.weight") or name.endswith(LAYER + "attention.output.LayerNorm.bias"):
            values[0] = values[3] = values[9] = 0
        if name.endswith(LAYER + "output.dense.weight"):
            values[: len(values) // 2] = type(values)(values.typecode, [0] * (len(values) // 2))
    near_float32(bench, model_with("zeros", empty), "--ids", "1,5,9,12,2")


def test_constant_rows(bench):
    """Rows of one value have a range of its size, and rows of zeros none."""
    for value in (0.5, 0.0):
        def level(name, values, value=value):
            if name.endswith("encoder.layer.0.output.LayerNorm.weight") or name.endswith("encoder.layer.0.output.LayerNorm.bias"):
                values[:] = type(values)(values.typecode, [value if name.endswith("bias") else 0] * len(values))
        near_float32(bench, model_with(f"constant-{value:g}", level), "--ids", "1,5,9,12,2")


def test_damaged(bench):
    """An infinity or a NaN among the activations is found in every precision; a zero in its place would be a wrong result."""
    for bad in (math.inf, -math.inf, math.nan):
        for part in ("attention.output.LayerNorm.weight", "output.dense.bias"):
            def spoil(name, values, bad=bad, part=part):
                if name.endswith("encoder.layer.0." + part):
                    values[3] = bad
            model = model_with(f"damaged{bad}{part}", spoil)
            for precision in ("float32", *LOW):
                result = bench.run("encode", model, "--ids", "1,5,9,2", "--precision", precision, "-o", "bad.safetensors")
                check(result.code == 3 and "weights of the model are damaged" in result.err, result.describe())
                check(not os.path.exists(bench.path("bad.safetensors")), "a file of what is no result")


def test_looked_into(bench):
    """Components, ablations and what observes them agree with float64 and between tiers."""
    for precision in LOW:
        for words in ([], ["--ablate", "c2p@0,p2c=mean@0:1"]):
            bench.fine("verify", TINY, "--ids", "1,5,9,12,2", "--precision", precision, *words)
    plain, without = (hidden(bench, TINY, "--ids", "1,5,9", "--precision", "int8", *words) for words in ([], ["--ablate", "c2p@all"]))
    check(relative_error(without, plain) > 0.01, "an ablation changed nothing")


def test_packed_apart(bench):
    """A packed file belongs to one precision: another one passes over it."""
    shutil.copytree(os.path.join(bench.golden, "33-v3-mlm-emd"), bench.path("model"))
    bench.fine("pack", "model", "--precision", "int8")

    def state(precision):
        return json.loads(bench.fine("info", "model", "--precision", precision, "--json").out)["model"]["packed"]
    check([state(p) for p in ("float32", "int16", "int8")] == ["none", "none", "mapped"], "packed as int8")
    expected = hidden(bench, "model", "--ids", "1,5,9,2", "--precision", "int16")
    os.rename(bench.path("model/deberta.int8.packed"), bench.path("model/deberta.int16.packed"))
    check(state("int16") == "stale", "int8's file under the name of int16's")
    result = bench.fine("encode", "model", "--ids", "1,5,9,2", "--precision", "int16", "-o", "y.safetensors")
    contains(result.err, "deberta.int16.packed is not of these weights")
    check(hidden(bench, "model", "--ids", "1,5,9,2", "--precision", "int16") == expected, "the file was not passed over")


def test_other_labels(bench):
    """`eval --against` lists the labels that a precision changes, and fails if there are any."""
    lines = open(os.path.join(os.path.dirname(DEMO), "..", "docs/studies/data/books.tsv"), encoding="utf-8").read().splitlines()[:40]
    bench.write("few.tsv", "\n".join(lines) + "\n")
    contains(bench.expect(2, "eval", DEMO, "few.tsv", "--against", "float32").err, "float32 is the precision already: nothing can differ")

    def answers(precision):
        bench.write("texts.txt", "".join(line.split("\t")[1] + "\n" for line in lines if not line.startswith("label\t")))
        said = bench.fine("classify", DEMO, "--file", "texts.txt", "--json", "--top", "1", "--precision", precision).out
        return [json.loads(line)["labels"][0]["label"] for line in said.splitlines()]
    header = lines[0].startswith("label\t")
    expected = [{"file": "few.tsv", "line": k + 1 + header, "label": a, "expected": b}
                for k, (a, b) in enumerate(zip(answers("int8"), answers("float32"))) if a != b]
    result = bench.run("eval", DEMO, "few.tsv", "--precision", "int8", "--against", "float32", "--json")
    found = json.loads(result.out)
    check(expected and found["changes"] == expected and found["changed"] == len(expected), (found["changes"], expected))
    check(result.code == 1, result.describe())
    contains(bench.expect(1, "eval", DEMO, "few.tsv", "--precision", "int8", "--against", "float32").out, "in the other precision")


def test_refused(bench):
    """What computes in float32 says so instead of passing over the option."""
    bench.write("a.txt", "a new store\n")
    for words in (["train", "mlm", TINY, "--file", "a.txt", "--steps", "1", "-o", "out"],
                  ["finetune", "sequence", TINY, "--examples", "a.txt", "--steps", "1", "-o", "out"], ["bench", "train", TINY]):
        for precision in LOW:
            result = bench.run(*words, "--precision", precision)
            check(result.code == 2, result.describe())
            check("--precision would change nothing here" in result.err or "--precision: train does not take it" in result.err, result.describe())
            check(not os.path.exists(bench.path("out")), "a folder for nothing")
    for words in (["--behaviour"], ["--influence"]):
        result = bench.run("receptive-field", TINY, *words, "--precision", "int8")
        check(result.code == 2, result.describe())
        contains(result.err, "--precision would change nothing here")
    for words in (["encode", TINY, "--ids", "1", "-o", "z.safetensors"], ["bench", TINY, "-n", "4"], ["info", TINY]):
        result = bench.run(*words, "--precision", "bf16")
        check(result.code == 2, result.describe())
        contains(result.err, "--precision: expected one of float32, int16, int8; found 'bf16'")


def test_advice(bench):
    """`info` says what multiplies, and when that is no gain."""
    for precision in LOW:
        said = bench.fine("info", TINY, "--precision", precision, "--isa", "scalar").out
        contains(said, f"precision         {precision}, multiplied by scalar", "; exact but slow: float32 is faster here")
    check("multiplied by" not in bench.fine("info", TINY).out, "advice about float32")
    gains = {("avx2", "int16"): "no gain, float32 is faster here", ("avx2", "int8"): "some gain over float32",
             ("avx512vnni", "int16"): "a gain over float32", ("avx512vnni", "int8"): "a gain over float32"}
    for tier in json.loads(bench.fine("info", "--json").out)["tiers"]:
        for precision in LOW if tier["available"] and tier["name"] != "scalar" else ():
            said = bench.fine("info", TINY, "--precision", precision, "--isa", tier["name"]).out
            by = re.search(f"{precision}, multiplied by (\\w+)(.*)", said)
            check(by[2].endswith(gains.get((by[1], precision), "was not measured")), said)


def test_against(bench):
    """`verify --expected` has the limits of the precision, and tells relative errors and cosines."""
    shutil.copytree(os.path.join(bench.golden, "33-v3-mlm-emd"), bench.path("model"))
    bench.fine("encode", "model", "--ids", "1,5,9,12,2", "--hidden", "all", "-o", "exact.safetensors")
    for precision in LOW:
        found = json.loads(bench.fine("verify", "model", "--expected", "exact.safetensors", "--precision", precision, "--json").out)
        last = [row for row in found["results"] if row["subject"].startswith("hidden_states.")][-1]
        check(0 < last["relative_error"] < BARS[precision] and 1 - BARS[precision] < last["cosine"] <= 1.0000001, last)
    said = bench.fine("verify", TINY, "--ids", "1,5,9", "--precision", "int8").out
    contains(said, "linear layers of the engine in int8")
    contains(said, "growth, relative error of hidden states by layer: ", "growth, 1 - cosine of hidden states by layer: ")


def test_named_in_figures(bench):
    """A figure of low precision says so in picture, caption, data and metadata; one of float32 has no word of it."""
    needs_figures(bench)
    part = [DEMO, "--text", "a new store", "--layers", "2", "--anonymous"]
    bench.fine("attention", *part, "--precision", "int8", "-o", "low.svg", "-o", "low.png", "--latex", "low.tex")
    contains(bench.read("low.svg"), ">int8</text>", ">Linear layers in int8.</text>")
    contains(bench.read("low.tex"), "Linear layers in int8.")
    check(Picture.read(bench.path("low.png")).texts["Precision"] == "int8", "the key Precision")
    bench.fine("attention", "error", *part, "--precision", "int16", "-o", "error.svg", "-o", "error.pdf", "--latex", "error.tex")
    contains(bench.read("error.svg"), "|int16 \u2212 float64|", ">int16</text>")
    contains(bench.read("error.tex"), "Absolute error of int16 against float64.")
    bench.fine("attention", *part, "-o", "plain.svg")
    check("int8" not in re.sub("<metadata>.*</metadata>", "", bench.read("plain.svg"), flags=re.S), part)


def test_named_in_charts(bench):
    """So do the charts of verify and benchmarks; where benchmarks differ in precision, the legend has it."""
    needs_figures(bench)
    bench.fine("verify", TINY, "--ids", "1,5,9", "--precision", "int8", "-o", "verify.svg")
    contains(bench.read("verify.svg"), "errors of int8 against float64, by layer")
    bench.fine("bench", TINY, "-n", "8,16", "--reps", "1", "--precision", "int8", "--breakdown", "--json", "-o", "low.json")
    for kind in ("latency", "breakdown", "roofline"):
        bench.fine("bench", "plot", "low.json", "--figure", kind, "-o", "bench.svg")
        contains(bench.read("bench.svg"), "Linear layers in int8.")


def test_named_in_answers(bench):
    """Objects of tasks have the precision where it is not float32."""
    for words in (["classify", "--text", "a"], ["fill-mask", "--text", "a [MASK]"], ["eval"]):
        if words[0] == "eval":
            bench.write("a.tsv", "0\ta new store\n")
            words = ["eval", "a.tsv"]
        for more, expected in ((["--precision", "int8"], "int8"), ([], None)):
            found = json.loads(bench.fine(words[0], DEMO, *words[1:], *more, "--json").out)
            check(found.get("precision") == expected, (words, found))


def test_named_in_report(bench):
    """The page has it in its heading, from info, and in the list of files."""
    for more, expected in (("int8", "components and probabilities of int8 linear layers, stored as float32"), ("float32", "exact components and probabilities, float32")):
        bench.fine("report", TINY, "--ids", "1,7,3", "--skip", "latency,verify,receptive-field", "--precision", more, "-o", "r")
        contains(bench.read("r/index.html"), f'"what":"{expected}"', f'"precision":"{more}"')
