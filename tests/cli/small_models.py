"""Small models with tokenizers for the tests of the program: the weights of a golden case, its word table grown to the vocabulary
of a golden tokenizer. Also a reader of safetensors files. Standard library only.

SPDX-License-Identifier: MIT"""
import array
import json
import pathlib
import random
import shutil
import struct

GOLDEN = pathlib.Path(__file__).resolve().parents[1] / "golden"
TYPES = {"F32": "f", "F64": "d", "I64": "q", "I32": "i"}


def read_tensors(path):
    """{name: (shape, array)} of a safetensors file, and its header."""
    data = pathlib.Path(path).read_bytes()
    size = struct.unpack("<Q", data[:8])[0]
    header = json.loads(data[8:8 + size])
    tensors = {}
    for name, facts in header.items():
        if name == "__metadata__":
            continue
        begin, end = facts["data_offsets"]
        values = array.array(TYPES[facts["dtype"]])
        values.frombytes(data[8 + size + begin:8 + size + end])
        tensors[name] = (facts["shape"], values)
    return tensors, header


def write_tensors(path, tensors):
    header, offset = {}, 0
    for name, (shape, values) in tensors.items():
        end = offset + 4 * len(values)
        header[name] = {"dtype": "F32", "shape": shape, "data_offsets": [offset, end]}
        offset = end
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        for _, values in tensors.values():
            file.write(values.tobytes())


def make_model(folder, case, tokenizer, vocabulary, rename_labels=None):
    """A folder with the weights of a golden case (its number), a golden tokenizer and a word table of `vocabulary` rows.
    rename_labels: the value of id2label."""
    folder = pathlib.Path(folder)
    folder.mkdir()
    source = next(GOLDEN.glob(f"{case}-*"))
    config = json.loads((source / "config.json").read_text())
    tensors, _ = read_tensors(source / "model.safetensors")
    dice, before = random.Random(1), config["vocab_size"]
    for name, (shape, values) in list(tensors.items()):
        if shape and shape[0] == before and ("word_embeddings" in name or name.endswith("lm_head.bias")):
            width = shape[1] if len(shape) > 1 else 1
            values = values + array.array("f", (dice.gauss(0, 0.5) for _ in range((vocabulary - before) * width)))
            tensors[name] = ([vocabulary] + shape[1:], values)
    config["vocab_size"] = vocabulary
    if rename_labels:
        config["id2label"] = {str(k): label for k, label in enumerate(rename_labels)}
        config.pop("label2id", None)
    (folder / "config.json").write_text(json.dumps(config))
    write_tensors(folder / "model.safetensors", tensors)
    for file in (GOLDEN / "tokenizers" / tokenizer).iterdir():
        if file.suffix in (".json", ".model", ".txt"):
            shutil.copy(file, folder)
    return folder
