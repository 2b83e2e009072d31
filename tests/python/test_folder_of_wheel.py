"""tools/making/folder_of_wheel.py on made-up packages: what their graphs hold comes out value by value, transformers and the program open the folder
and agree, and other graphs are refused. Nothing is fetched: pip finds the packages in a folder. SPDX-License-Identifier: MIT"""
import hashlib
import json
import os
import subprocess
import sys
import zipfile
from types import SimpleNamespace

import numpy as np
import onnx
import pytest
import torch
import transformers
from onnx import TensorProto, helper, numpy_helper
from safetensors.numpy import load_file

from conftest import DEMO, ROOT, program_json
from deberta_c import _program

sys.path.insert(0, str(ROOT / "tools" / "making"))
import folder_of_wheel  # noqa: E402

SEED = int(os.environ.get("DEBERTA_WHEEL_SEED", "1"))
HIDDEN, INNER, LAYERS, TABLE, LABELS = 128, 96, 2, 64, ["no", "yes"]
TEXTS = ["a new store opened beside the new mall", "the store", "Zürich in the rain, and the old mall beside it"]
TOKENIZER = ["spm.model", "tokenizer_config.json", "added_tokens.json", "tokenizer.json"]
PREFIX = "model."


def draw_weights():
    """{name of a checkpoint: float32}, drawn so that float16 holds every value."""
    draw = np.random.default_rng(SEED)
    vocabulary = json.loads((ROOT / "models" / "demo" / "config.json").read_text())["vocab_size"]
    shapes = {"deberta.embeddings.word_embeddings.weight": (vocabulary, HIDDEN), "deberta.encoder.rel_embeddings.weight": (TABLE, HIDDEN),
              "pooler.dense": (HIDDEN, HIDDEN), "classifier": (len(LABELS), HIDDEN)}
    norms = ["deberta.embeddings.LayerNorm", "deberta.encoder.LayerNorm"]
    for layer in (f"deberta.encoder.layer.{k}." for k in range(LAYERS)):
        for name in ("attention.self.query_proj", "attention.self.key_proj", "attention.self.value_proj", "attention.output.dense"):
            shapes[layer + name] = (HIDDEN, HIDDEN)
        shapes[layer + "intermediate.dense"], shapes[layer + "output.dense"] = (INNER, HIDDEN), (HIDDEN, INNER)
        norms += [layer + "attention.output.LayerNorm", layer + "output.LayerNorm"]

    def some(*shape, around=0):
        return (around + draw.standard_normal(shape) / np.sqrt(shape[-1])).astype(np.float16).astype(np.float32)

    weights = {name: some(*shape) for name, shape in shapes.items() if name.endswith("weight")}
    for name, shape in shapes.items():
        if not name.endswith("weight"):
            weights |= {name + ".weight": some(*shape), name + ".bias": some(shape[0])}
    for name in norms:
        weights |= {name + ".weight": some(HIDDEN, around=1), name + ".bias": some(HIDDEN)}
    return weights


def in_eight_bits(values):
    """(bytes, scale, zero point) of a matrix, and what they stand for."""
    scale = np.float32((values.max() - values.min()) / 255)
    zero = np.uint8(np.clip(np.rint(-values.min() / scale), 0, 255))
    codes = np.clip(np.rint(values / scale) + zero, 0, 255).astype(np.uint8)
    return (codes, scale, zero), (codes.astype(np.int32) - np.int32(zero)).astype(np.float32) * scale


def make_graph(weights, kind):
    """(the bytes of a graph that holds them, what the folder must have). kind "half": float16, and words of 8 bits; "eight": products of
    integers, of which that of the queries has an exact copy."""
    values, nodes, expected = [], [], dict(weights)

    def hold(name, array):
        values.append(numpy_helper.from_array(np.asarray(array), name))

    def hold_eight(name, array):
        codes, meant = in_eight_bits(array)
        for end, part in zip(("_quantized", "_scale", "_zero_point"), codes):
            hold(name + end, part)
        return meant

    for number, (name, array) in enumerate(weights.items()):
        matrix = name.removesuffix("weight") + "bias" in weights and array.ndim == 2
        if name.endswith("word_embeddings.weight"):
            expected[name] = hold_eight(PREFIX + name, array)
        elif not matrix:
            hold(PREFIX + name, array.astype(np.float16) if kind == "half" else array)
        else:
            inside, bias = f"onnx::MatMul_{number}", PREFIX + name.removesuffix("weight") + "bias"
            if kind == "half":
                hold(inside, array.T.astype(np.float16))
                nodes += [helper.make_node("MatMul", [f"x{number}", inside], [f"y{number}"]),
                          helper.make_node("Add", [bias, f"y{number}"], [f"z{number}"])]
                continue
            meant = hold_eight(inside, array.T)
            if "query_proj" in name:
                hold(inside, array.T)
            else:
                expected[name] = meant.T
            nodes += [helper.make_node("MatMulInteger", [f"x{number}", inside + "_quantized", "xz", inside + "_zero_point"], [f"y{number}"]),
                      helper.make_node("Cast", [f"y{number}"], [f"f{number}"], to=TensorProto.FLOAT),
                      helper.make_node("Mul", [f"f{number}", f"scale{number}"], [f"s{number}"]),
                      helper.make_node("Add", [f"s{number}", bias], [f"z{number}"])]
    return helper.make_model(helper.make_graph(nodes, kind, [], [], values)).SerializeToString(), expected


@pytest.fixture(scope="module")
def tokenizer_files():
    """{name: bytes} of a package that has both forms, as the published one of pairs has."""
    both = {name: (ROOT / "models" / "demo" / name).read_bytes() for name in TOKENIZER[:3]}
    both["tokenizer.json"] = transformers.AutoTokenizer.from_pretrained(DEMO).backend_tokenizer.to_str().encode()
    return both


@pytest.fixture()
def publish(tmp_path, monkeypatch, tokenizer_files):
    """publish(graph): a package of that graph is what the tool knows, and all that pip finds. Returns the tool as a function of its words."""
    shelf = tmp_path / "shelf"
    shelf.mkdir()
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(shelf))

    def tool(*words):
        monkeypatch.setattr(sys, "argv", ["folder_of_wheel.py", *map(str, words), "--program", _program.PROGRAM])
        return folder_of_wheel.main()

    def made(graph, **changes):
        wheel = shelf / "made_up_model-1.0-py3-none-any.whl"
        with zipfile.ZipFile(wheel, "w") as package:
            package.writestr("made_up_model/model.onnx", graph)
            for name, data in tokenizer_files.items():
                package.writestr(f"made_up_model/{name}", data)
            about = "made_up_model-1.0.dist-info/"
            package.writestr(about + "METADATA", "Metadata-Version: 2.1\nName: made-up-model\nVersion: 1.0\n")
            package.writestr(about + "WHEEL", "Wheel-Version: 1.0\nGenerator: a test\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
            package.writestr(about + "RECORD", "")
        entry = {"package": "made-up-model==1.0", "sha256": hashlib.sha256(wheel.read_bytes()).hexdigest(), "graph": "made_up_model/model.onnx",
                 "tokenizer": [f"made_up_model/{name}" for name in TOKENIZER], "what": "made up", "licence": "none", "labels": LABELS}
        monkeypatch.setattr(folder_of_wheel, "PUBLISHED", {"made-up": entry | changes})
        return tool

    return made


@pytest.fixture(params=["half", "eight"])
def graph(request):
    print(f"DEBERTA_WHEEL_SEED={SEED}")
    return make_graph(draw_weights(), request.param)


def answers(folder):
    """Probabilities of the labels, text by text, of transformers."""
    tokenizer, model = (kind.from_pretrained(folder) for kind in (transformers.AutoTokenizer, transformers.AutoModelForSequenceClassification))
    with torch.no_grad():
        return np.stack([torch.softmax(model.eval()(**tokenizer(text, return_tensors="pt")).logits[0], 0).numpy() for text in TEXTS])


def test_the_folder_has_what_the_graph_holds(publish, graph, tmp_path, tokenizer_files, capfd):
    data, expected = graph
    folder = tmp_path / "made"
    assert publish(data)("made-up", "-o", folder) == 0
    found = load_file(folder / "model.safetensors")
    assert sorted(found) == sorted(expected)
    for name, array in expected.items():
        assert found[name].dtype == np.float32 and np.array_equal(found[name], array), name
    assert f"{sum(a.size for a in expected.values()):,} values in {len(expected)} tensors" in capfd.readouterr().out
    config = json.loads((folder / "config.json").read_text())
    sizes = {"hidden_size": HIDDEN, "num_hidden_layers": LAYERS, "num_attention_heads": 2, "intermediate_size": INNER, "position_buckets": TABLE // 2}
    assert {name: config[name] for name in sizes} == sizes and list(config["id2label"].values()) == LABELS
    assert (folder / "graph.onnx").read_bytes() == data
    assert all((folder / name).read_bytes() == tokenizer_files[name] for name in TOKENIZER)


def test_the_program_and_transformers_agree_on_it(publish, graph, tmp_path):
    folder = tmp_path / "made"
    publish(graph[0])("made-up", "-o", folder)
    for text, want in zip(TEXTS, answers(folder)):
        (said,) = program_json("classify", str(folder), "--text", text, "--quiet")
        have = np.zeros(len(LABELS))
        for label in said["labels"]:
            assert label["label"] == LABELS[label["index"]]
            have[label["index"]] = label["probability"]
        assert np.abs(have - want).max() < 1e-5, text


def test_compare_counts_ids_and_labels(publish, graph, tmp_path, monkeypatch, capfd):
    """With the graph's answers out of transformers: once as they are, once with those of one text turned around."""
    folder, lines = tmp_path / "made", tmp_path / "texts.txt"
    lines.write_text("".join(text + "\n" for text in TEXTS), encoding="utf-8")
    tool = publish(graph[0])
    tool("made-up", "-o", folder)
    logits = np.log(answers(folder))
    calls = []

    class Session:
        def __init__(self, path):
            assert path == str(folder / "graph.onnx")

        def get_inputs(self):
            return [SimpleNamespace(shape=["batch", "tokens"])]

        def run(self, _, given):
            calls.append(given["input_ids"].shape[1])
            assert given["attention_mask"].all()
            row = logits[(len(calls) - 1) % len(TEXTS)]
            return [[row[::-1] if len(calls) == 2 * len(TEXTS) else row]]

    monkeypatch.setitem(sys.modules, "onnxruntime", SimpleNamespace(InferenceSession=Session, set_default_logger_severity=lambda _: None))
    for changed in (0, 1):
        capfd.readouterr()
        assert tool("made-up", "-o", folder, "--compare", lines) == 0
        said = capfd.readouterr().out.splitlines()
        assert said[0].startswith(f"made: {len(TEXTS)} of {len(TEXTS)} texts have the ids of tokenizers")
        assert [line.split()[1] for line in said[1:]] == ["float32", "int16", "int8"]
        assert f"another label in {changed} of {len(TEXTS)} texts" in said[1]


def without(data, name):
    model = onnx.load_from_string(data)
    kept = [value for value in model.graph.initializer if value.name != name]
    assert len(kept) < len(model.graph.initializer)
    del model.graph.initializer[:]
    model.graph.initializer.extend(kept)
    return model.SerializeToString()


def test_other_graphs_are_refused(publish, tmp_path, capfd):
    data, _ = make_graph(draw_weights(), "half")
    folder = tmp_path / "made"
    bias = PREFIX + "deberta.encoder.layer.1.intermediate.dense.bias"
    narrow = draw_weights()
    narrow["pooler.dense.weight"] = narrow["pooler.dense.weight"][:, :-1]
    cases = [(without(data, bias), {}, "nothing is added to the product with"),
             (make_graph(narrow, "half")[0], {}, f"pooler.dense.weight: expected ({HIDDEN}, {HIDDEN}), found ({HIDDEN}, {HIDDEN - 1})"),
             (data, {"labels": ["a", "b", "c"]}, f"classifier.weight: expected (3, {HIDDEN}), found (2, {HIDDEN})"),
             (data, {"sha256": 64 * "0"}, f"expected {64 * '0'}")]
    for graph, changes, sentence in cases:
        assert publish(graph, **changes)("made-up", "-o", folder) == 1
        assert sentence in capfd.readouterr().err
        assert not folder.exists()


def test_no_package_and_wrong_words(publish, tmp_path):
    data, _ = make_graph(draw_weights(), "half")
    tool = publish(data, package="made-up-model==2.0")
    for words, code in ((["made-up", "-o", tmp_path / "made"], 3), (["made-up"], 2), (["made-up", "-o", tmp_path], 2)):
        with pytest.raises(SystemExit) as end:
            tool(*words)
        assert end.value.code == code
    listed = subprocess.run([sys.executable, ROOT / "tools" / "making" / "folder_of_wheel.py", "--list"], capture_output=True, text=True, check=True)
    assert "licence: none stated" in listed.stdout
