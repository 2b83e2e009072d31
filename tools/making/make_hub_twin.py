#!/usr/bin/env python3
"""Makes a twin of a published checkpoint: the same files, settings, tensor names, shapes and types, with made-up weights.

    tools/making/make_hub_twin.py --list
    tools/making/make_hub_twin.py microsoft/deberta-v3-base -o twin                    full size: 371 MB
    tools/making/make_hub_twin.py microsoft/deberta-v3-base --small -o twin            2 layers and a small vocabulary, all else as published
    tools/making/make_hub_twin.py microsoft/deberta-v3-base --tensors                  its tensors, a line each

What is known of the checkpoints, and from where, is in tests/hub; docs/checkpoints.md says what the program does with them. Weights
come from a seed and a tensor's name: attention is neither flat nor on single tokens, and no row of hidden states is like another.
--shards N cuts the file into N with an index; --layers and --vocabulary small take one reduction without the other.

Needs PyTorch and safetensors (tools/gates/reference-requirements.txt). SPDX-License-Identifier: MIT
"""
import argparse
import json
import math
import os
import shutil
import struct
import sys
import zlib
from pathlib import Path

try:
    import torch
    from safetensors.torch import save_file
except ImportError as error:
    sys.exit(f"{error}: pip install -r tools/gates/reference-requirements.txt")

from small_vocabularies import block, fields, write_varint

ROOT = Path(__file__).resolve().parents[2]
HUB = ROOT / "tests" / "hub"
TOKENIZERS = ROOT / "tests" / "golden" / "tokenizers"
SMALL_LAYERS = 2
FIRST_BPE_ID, GPT2_WORDS = 4, 50257  # [PAD], [CLS], [SEP], [UNK] come before the words; number of GPT-2's own ids


# ------------------------------------------------------------------------------------------------------------- descriptions


def names():
    return sorted(path.stem.replace("--", "/") for path in (HUB / "checkpoints").glob("*.json"))


def read(name):
    with open(HUB / "checkpoints" / (name.replace("/", "--") + ".json"), encoding="utf-8") as file:
        return json.load(file)


def encoder_config(checkpoint):
    """Returns the config with the encoder's sizes: the checkpoint's own, or its base model's for a wrapper class."""
    if "encoder" not in checkpoint:
        return checkpoint["config"]
    config = dict(read(checkpoint["encoder"])["config"])
    if "encoder_vocabulary" in checkpoint:
        config["vocab_size"] = checkpoint["encoder_vocabulary"]
    return config


def small_pieces(kind):
    with open(TOKENIZERS / "bpe-v1" / "vocab.json", encoding="utf-8") as file:
        return len(json.load(file)) if kind == "bpe" else len(spm_pieces()[1])


def reduce(checkpoint, layers=None, vocabulary=None):
    """Reduces the description to fewer layers, or to the pieces of the tests' tokenizers; spare rows stay."""
    for config in ([checkpoint["config"]] if "encoder" not in checkpoint else []):
        config["num_hidden_layers"] = layers or config["num_hidden_layers"]
    checkpoint["sizes"] = sizes = dict(encoder_config(checkpoint))
    sizes["num_hidden_layers"] = layers or sizes["num_hidden_layers"]
    tokenizer = checkpoint.get("tokenizer", {"kind": "spm", "pieces": 128000, "files": {}})
    if vocabulary == "small":
        pieces = small_pieces(tokenizer["kind"])
        sizes["vocab_size"] += pieces - tokenizer["pieces"]
        tokenizer["pieces"] = pieces
        if "added_tokens.json" in tokenizer["files"]:
            tokenizer["files"]["added_tokens.json"] = {"[MASK]": pieces}
        if "encoder" not in checkpoint:
            checkpoint["config"]["vocab_size"] = sizes["vocab_size"]
    return checkpoint


def shapes(checkpoint):
    """Returns {name: shape} of every tensor of the checkpoint."""
    with open(HUB / "parts.json", encoding="utf-8") as file:
        parts = json.load(file)
    sizes = checkpoint.get("sizes") or encoder_config(checkpoint)
    span = sizes["position_buckets"] if sizes.get("position_buckets", -1) > 0 else sizes["max_position_embeddings"]
    h = sizes["hidden_size"]
    letters = {"V": sizes["vocab_size"], "h": h, "f": sizes["intermediate_size"], "P": sizes["max_position_embeddings"], "R": 2 * span,
               "w": sizes.get("conv_kernel_size", 0), "C": len(checkpoint["config"].get("id2label", {})), "h/2": h // 2, "2h": 2 * h, "3h": 3 * h,
               "4h": 4 * h, "1": 1, "2": 2}
    found = {}
    for prefix, chosen in checkpoint["tensors"].items():
        for pattern, shape in ((pattern, shape) for part in chosen for pattern, shape in parts[part].items()):
            for layer in range(sizes["num_hidden_layers"] if "*" in pattern else 1):
                found[prefix + pattern.replace("*", str(layer))] = tuple(letters[word] for word in shape.split())
    return found


# ------------------------------------------------------------------------------------------------------------------ weights


def values(name, shape, dtype, seed):
    tensor = torch.randn(shape, generator=torch.Generator().manual_seed(seed << 32 | zlib.crc32(name.encode())))
    if len(shape) == 1:
        tensor = 0.1 * tensor + (1 if name.endswith("LayerNorm.weight") else 0)
    elif "_embeddings." in name:
        tensor *= 0.3 if "_weight" not in name else 0.05
    else:
        sharper = any(part in name for part in ("query_proj", "key_proj", "in_proj", "pos_proj", "pos_q_proj"))
        tensor *= (1.4 if sharper else 1.0) / math.sqrt(math.prod(shape[1:]))
    return tensor.to(dtype)


def write_weights(folder, checkpoint, seed, shards):
    weights = checkpoint["weights"]
    dtype, tensors = getattr(torch, weights["dtype"]), {}
    for name, shape in shapes(checkpoint).items():
        tensors[name] = values(name, shape, dtype, seed)
    stem, ending = os.path.splitext(weights["file"])
    files = [weights["file"]] if shards == 1 else [f"{stem}-{i + 1:05}-of-{shards:05}{ending}" for i in range(shards)]
    groups = [dict(list(tensors.items())[i::shards]) for i in range(shards)]
    for file, group in zip(files, groups):
        if weights["container"] == "safetensors":
            save_file(group, folder / file, metadata={"format": "pt"})
            continue
        if weights.get("entry_config"):  # Microsoft's fine-tuned v1 files hold their settings next to the tensors
            group = {**group, "config": {"hidden_size": checkpoint["config"]["hidden_size"], "hidden_act": "gelu", "padding_idx": 0}}
        torch.save(group, folder / file, _use_new_zipfile_serialization=weights["container"] == "zip")
    if shards > 1:
        where = {name: file for file, group in zip(files, groups) for name in group}
        size = sum(tensor.numel() * tensor.element_size() for tensor in tensors.values())
        write_json(folder / (weights["file"] + ".index.json"), {"metadata": {"total_size": size}, "weight_map": where})
    return sum(tensor.numel() for tensor in tensors.values())


# --------------------------------------------------------------------------------------------------------------- tokenizers


def write_json(path, value):
    path.write_text(json.dumps(value, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")


def spm_pieces():
    """Returns the tests' unigram model: its encoded fields other than pieces, and its pieces as (text, score, block)."""
    rest, pieces = b"", []
    for number, wire, value in fields((TOKENIZERS / "spm-unigram" / "spm.model").read_bytes()):
        if number == 1:
            piece = {n: v for n, _, v in fields(value)}
            pieces.append((piece[1].decode(), struct.unpack("<f", piece[2])[0], value))
        else:
            rest += block(number, value) if wire == 2 else write_varint(number << 3) + write_varint(value)
    return rest, pieces


def filler(count):
    """Returns pieces that no test text has, below all others, so that [MASK] follows at the id of the published model."""
    return [(f"\u2581twin{i}", -90.0) for i in range(count)]


def write_spm(folder, count):
    rest, pieces = spm_pieces()
    data = b"".join(block(1, value) for _, _, value in pieces)
    data += b"".join(block(1, block(1, text.encode()) + b"\x15" + struct.pack("<f", score)) for text, score in filler(count - len(pieces)))
    (folder / "spm.model").write_bytes(data + rest)


def write_tokenizer_json(folder, count):
    with open(TOKENIZERS / "spm-unigram" / "tokenizer.json", encoding="utf-8") as file:
        whole = json.load(file)
    vocabulary = whole["model"]["vocab"]
    vocabulary += [list(piece) for piece in filler(count - len(vocabulary))]
    for token in whole["added_tokens"]:
        token["id"] = count if token["content"] == "[MASK]" else token["id"]
    write_json(folder / "tokenizer.json", whole)


def write_bpe(folder, count, with_bpe_encoder):
    with open(TOKENIZERS / "bpe-v1" / "vocab.json", encoding="utf-8") as file:
        vocabulary = json.load(file)
    merges = (TOKENIZERS / "bpe-v1" / "merges.txt").read_text(encoding="utf-8")
    del vocabulary["[MASK]"]
    vocabulary.update({f"madeupword{i:04}": i for i in range(len(vocabulary), count - 1)})
    vocabulary["[MASK]"] = count - 1
    write_json(folder / "vocab.json", vocabulary)
    (folder / "merges.txt").write_text(merges, encoding="utf-8")
    if not with_bpe_encoder:
        return
    words = [word for word, number in sorted(vocabulary.items(), key=lambda item: item[1]) if FIRST_BPE_ID <= number < count - 1]
    gpt2 = {word: len(words) - 1 - i for i, word in enumerate(words) if not word.startswith("madeupword")}
    listed = [(str(gpt2[word]) if word in gpt2 else word, 1) for word in words]
    pairs = [tuple(line.split()) for line in merges.splitlines() if line and not line.startswith("#version")]
    torch.save({"encoder": {word: number for word, number in gpt2.items() if number < GPT2_WORDS}, "vocab": pairs, "dict_map": listed},
               folder / "bpe_encoder.bin")


def write_tokenizer(folder, tokenizer):
    kind, pieces, also = tokenizer["kind"], tokenizer["pieces"], tokenizer.get("also", [])
    if kind == "spm":
        write_spm(folder, pieces)
    if kind == "tokenizer.json" or "tokenizer.json" in also:
        write_tokenizer_json(folder, pieces)
    if kind == "bpe":
        write_bpe(folder, pieces, "bpe_encoder.bin" in also)
    for file, value in tokenizer["files"].items():
        write_json(folder / file, value)


# ---------------------------------------------------------------------------------------------------------------- the whole


def make(name, folder, layers=None, vocabulary=None, shards=1, seed=1):
    """Writes the twin; returns its description and the number of values in its weights."""
    checkpoint = reduce(read(name), layers, vocabulary)
    folder = Path(folder)
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    write_json(folder / checkpoint.get("config_file", "config.json"), checkpoint["config"])
    if "tokenizer" in checkpoint:
        write_tokenizer(folder, checkpoint["tokenizer"])
    return checkpoint, write_weights(folder, checkpoint, seed, shards)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("name", nargs="?", help="name of a checkpoint on the hub, one of --list")
    parser.add_argument("-o", "--out", help="a folder; what is in it is replaced")
    parser.add_argument("--small", action="store_true", help=f"--layers {SMALL_LAYERS} --vocabulary small")
    parser.add_argument("--layers", type=int)
    parser.add_argument("--vocabulary", choices=["small"])
    parser.add_argument("--shards", type=int, default=1)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--list", action="store_true", help="the checkpoints that are described")
    parser.add_argument("--tensors", action="store_true", help="names and shapes, a line each; nothing is written")
    arguments = parser.parse_args()
    if arguments.list:
        print("\n".join(names()))
        return
    if arguments.name not in names():
        parser.error(f"{arguments.name}: not one of --list")
    layers, vocabulary = (SMALL_LAYERS, "small") if arguments.small else (arguments.layers, arguments.vocabulary)
    if arguments.tensors:
        for name, shape in shapes(reduce(read(arguments.name), layers, vocabulary)).items():
            print(name, list(shape))
        return
    if not arguments.out:
        parser.error("-o FOLDER is needed")
    checkpoint, count = make(arguments.name, arguments.out, layers, vocabulary, arguments.shards, arguments.seed)
    print(f"{arguments.out}: {arguments.name}, {count} values as {checkpoint['weights']['dtype']}")


if __name__ == "__main__":
    main()
