#!/usr/bin/env python3
"""Small experiments for docs/claims.md that no command of the program does.

    tools/claims.py length FOLDER             Microsoft's code on more than 512 tokens; FOLDER is a clone of microsoft/DeBERTa
    tools/claims.py mlm-head [MODEL]          transformers' masked-LM head on a checkpoint with Microsoft's names
    tools/claims.py norms [MODEL]             norms of words, positions and their sums; are both found again in a sum?
    tools/claims.py position-to-position ...  the term that DeBERTa leaves out, added after training
    tools/claims.py swap ...                  which cells of a term change when one token does

MODEL is a folder, models/demo if not given. The last two run the program (--program build/deberta). Needs numpy and
safetensors, mlm-head also transformers and torch, length torch. SPDX-License-Identifier: MIT
"""
import argparse
import json
import math
import os
import shutil
import subprocess
import sys
import tempfile

import numpy as np
from safetensors.numpy import load_file


def microsoft_model(folder):
    """A small made-up v3 of Microsoft's own classes. What downloads checkpoints and writes logs is not needed for that and is left out."""
    import importlib
    import logging
    import types

    root = os.path.join(folder, "DeBERTa")
    for name, path in (("DeBERTa", root), ("DeBERTa.deberta", os.path.join(root, "deberta")), ("DeBERTa.utils", os.path.join(root, "utils"))):
        sys.modules[name] = types.ModuleType(name)
        sys.modules[name].__path__ = [path]
    sys.modules["DeBERTa.utils"].get_logger = logging.getLogger
    sys.modules["DeBERTa.deberta.cache_utils"] = types.ModuleType("DeBERTa.deberta.cache_utils")
    sys.modules["DeBERTa.deberta.cache_utils"].load_model_state = None
    config = {"hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 64, "vocab_size": 100, "hidden_act": "gelu",
              "hidden_dropout_prob": 0.1, "attention_probs_dropout_prob": 0.1, "max_position_embeddings": 512, "type_vocab_size": 0,
              "relative_attention": True, "position_buckets": 256, "norm_rel_ebd": "layer_norm", "share_att_key": True, "pos_att_type": "p2c|c2p",
              "position_biased_input": False, "layer_norm_eps": 1e-7, "max_relative_positions": -1, "initializer_range": 0.02, "padding_idx": 0}
    parsed = importlib.import_module("DeBERTa.deberta.config").ModelConfig.from_dict(config)
    return importlib.import_module("DeBERTa.deberta.deberta").DeBERTa(parsed).eval()


def length(arguments):
    import torch

    model = microsoft_model(arguments.model)
    for tokens, given in ((512, False), (513, False), (513, True), (2000, True)):
        ids = torch.randint(1, 100, (1, tokens))
        positions = torch.arange(tokens).clamp(max=511)[None] if given else None
        try:
            with torch.no_grad():
                found = list(model(ids, position_ids=positions)["hidden_states"][-1].shape)
        except IndexError as error:
            found = f"IndexError: {error}"
        print(f"{tokens} tokens, position ids {'given, none above 511' if given else 'left to the code'}: {found}")
    return 0


def mlm_head(arguments):
    import torch
    import transformers

    transformers.logging.set_verbosity_error()
    ids = torch.tensor([[1, 5990, 600, 700, 5990, 2]])
    for legacy in (True, False):
        with tempfile.TemporaryDirectory() as folder:
            folder = shutil.copytree(arguments.model, os.path.join(folder, "model"))
            path = os.path.join(folder, "config.json")
            with open(path, encoding="utf-8") as file:
                config = json.load(file)
            config["legacy"] = legacy
            with open(path, "w", encoding="utf-8") as file:
                json.dump(config, file)
            # this head reads the word table, tied or not; transformers 5.16 looks for a parameter to tie that it has not
            options = {"dtype": torch.float32, "output_loading_info": True, **({} if legacy else {"tie_word_embeddings": False})}
            loaded = [transformers.AutoModelForMaskedLM.from_pretrained(folder, **options) for _ in range(2)]
        with torch.no_grad():
            first, second = (model.eval()(ids).logits for model, _ in loaded)
        missing = sorted(loaded[0][1]["missing_keys"])
        print(f"legacy {str(legacy).lower()}{' (transformers default)' if legacy else ''}: {len(missing)} tensors of the head made up"
              f"{': ' + ', '.join(missing[:3]) + ' ...' if missing else ''}; loaded twice, logits differ by {(first - second).abs().max():.3g}")
    return 0


def norms(arguments):
    tensors = load_file(os.path.join(arguments.model, "model.safetensors"))
    find = lambda end: next(t.astype(np.float64) for n, t in tensors.items() if n.endswith(end))
    words, positions = find("word_embeddings.weight"), find("position_embeddings.weight")
    random = np.random.default_rng(1)
    word, position = words[random.integers(4, len(words), 20000)], positions[random.integers(0, len(positions), 20000)]
    norm = lambda x: np.linalg.norm(x, axis=1)
    cosine = (word * position).sum(1) / norm(word) / norm(position)
    orthogonal = np.sqrt(norm(word) ** 2 + norm(position) ** 2)
    print(f"words {norm(word).mean():.3f}, positions {norm(position).mean():.3f}, sums {norm(word + position).mean():.3f}; "
          f"orthogonal vectors of these norms would have sums of {orthogonal.mean():.3f}")
    print(f"cosine of word and position: mean {cosine.mean():+.3f}, standard deviation {cosine.std():.3f}; "
          f"random directions: 0 and {1 / math.sqrt(words.shape[1]):.3f}")

    # The nearest word to a sum, less the mean position; the nearest position, less the mean word.
    def found_again(sums, candidates, others, right):
        sums = sums - others.mean(0)
        distance = (candidates ** 2).sum(1) - 2 * sums @ candidates.T
        return 100 * (distance.argmin(1) == right).mean()

    w, p = random.integers(4, len(words), 5000), random.integers(0, len(positions), 5000)
    sums = words[w] + positions[p]
    print(f"found again in 5,000 sums as the nearest one: the word in {found_again(sums, words, positions, w):.1f} %, "
          f"the position in {found_again(sums, positions, words[4:], p):.1f} %")
    return 0


def encode(arguments, *words):
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "o.safetensors")
        subprocess.run([arguments.program, "encode", arguments.model, *words, "-o", path], check=True, capture_output=True)
        return {name: tensor.astype(np.float64) for name, tensor in load_file(path).items()}


def swap(arguments):
    """Token 4 of seven is another one."""
    a, b = (encode(arguments, "--ids", ids, "--component-layers", "0") for ids in ("1,500,600,700,800,900,2", "1,500,600,700,850,900,2"))
    for term in ("c2c", "c2p", "p2c"):
        changed = (a[f"attn.0.{term}"] != b[f"attn.0.{term}"]).any((0, 1))
        print(f"{term}: query rows that changed {np.flatnonzero(changed.all(1)).tolist()}, key columns {np.flatnonzero(changed.all(0)).tolist()}, "
              f"{changed.sum()} of {changed.size} cells")
    return 0


def softmax(x):
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def bucket(r, buckets, maximum):
    """The table's row of the distance, less the middle: sizes above half the buckets share rows logarithmically."""
    size, middle = min(abs(r), maximum - 1), buckets // 2
    if size > middle:
        size = math.ceil(math.log(size / middle) / math.log((maximum - 1) / middle) * (middle - 1)) + middle
    return int(math.copysign(size, r)) if r else 0


def fit(query, key, span):
    """How much of the term over the distance a key bias can be: PQ[row(r)] . bias for the best bias of each head, as R^2; and the rows in use."""
    rows = np.arange(1, 2 * span)
    residual = total = 0
    for head in range(query.shape[1]):
        columns = np.hstack([query[rows, head], np.ones((len(rows), 1))])  # a constant does nothing to a softmax
        term = (query[rows, head] * key[rows, head]).sum(1)
        best = columns @ np.linalg.lstsq(columns, term, rcond=None)[0]
        residual += ((term - best) ** 2).sum()
        total += ((term - term.mean()) ** 2).sum()
    return 1 - residual / total, len(rows)


def position_to_position(arguments):
    with open(os.path.join(arguments.model, "config.json"), encoding="utf-8") as file:
        config = json.load(file)
    tensors = {n: t.astype(np.float64) for n, t in load_file(os.path.join(arguments.model, "model.safetensors")).items()}
    heads, span = config["num_attention_heads"], config["position_buckets"]
    table = tensors["deberta.encoder.rel_embeddings.weight"]
    table = (table - table.mean(1, keepdims=True)) / np.sqrt(table.var(1, keepdims=True) + config["layer_norm_eps"])
    table = table * tensors["deberta.encoder.LayerNorm.weight"] + tensors["deberta.encoder.LayerNorm.bias"]
    with open(arguments.file, encoding="utf-8") as file:
        texts = [line.rstrip("\n") for line in file][:arguments.sentences]
    fits = np.zeros((config["num_hidden_layers"], 2))
    sums, moved, count = np.zeros((config["num_hidden_layers"], 4)), np.zeros(config["num_hidden_layers"]), 0
    for text in texts:
        found = encode(arguments, "--text", text, "--component-layers", "all")
        n = found["attn.0.c2c"].shape[-1]
        row = np.array([[bucket(i - j, span, config["max_position_embeddings"]) + span for j in range(n)] for i in range(n)]).clip(0, 2 * span - 1)
        for layer in range(len(moved)):
            part = f"deberta.encoder.layer.{layer}.attention.self."
            project = lambda kind: (table @ tensors[f"{part}{kind}_proj.weight"].T + tensors[f"{part}{kind}_proj.bias"]).reshape(2 * span, heads, -1)
            query, key = project("query"), project("key")
            # row(r) on both sides, as the published code indexes p2c; the paper writes row(r) and row(-r).
            term = np.einsum("ijad,ijad->aij", query[row], key[row]) / math.sqrt(3 * query.shape[-1])
            if count == 0:
                fits[layer] = fit(query, key, span)
            terms = [found[f"attn.{layer}.{name}"][0] for name in ("c2c", "c2p", "p2c")] + [term]
            sums[layer] += [((t - t.mean(-1, keepdims=True)) ** 2).sum() for t in terms]
            logits = sum(terms[:3])
            moved[layer] += np.abs(softmax(logits + term) - softmax(logits)).sum(-1).mean() / 2
        count += 1
    print("| layer | p2p beside c2c, c2p and p2c: share of the variance | attention that it would move | of it a key bias can be (R2) |\n|--:|--:|--:|--:|")
    for layer in range(len(moved)):
        print(f"| {layer} | {100 * sums[layer, 3] / sums[layer].sum():.1f} % | {100 * moved[layer] / count:.1f} % | {fits[layer, 0]:.4f} |")
    print(f"\np2p(r) = PQ[row(r)] . PK[row(r)]; {count} sentences; {fits[0, 1]:.0f} rows of the table, heads of {config['hidden_size'] // heads}")
    return 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("experiment", choices=["length", "mlm-head", "norms", "position-to-position", "swap"])
    parser.add_argument("model", nargs="?", default="models/demo")
    parser.add_argument("--program", default="build/deberta")
    parser.add_argument("--file", default="docs/studies/data/sentences.txt")
    parser.add_argument("--sentences", type=int, default=100)
    arguments = parser.parse_args()
    run = {"length": length, "mlm-head": mlm_head, "norms": norms, "position-to-position": position_to_position, "swap": swap}
    return run[arguments.experiment](arguments)


if __name__ == "__main__":
    sys.exit(main())
