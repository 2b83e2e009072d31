#!/usr/bin/env python3
"""Small experiments for docs/claims.md that no command of the program does.

    studies/claims.py arithmetic                what follows from numbers that the paper prints
    studies/claims.py function-words [MODEL]    do function words attend to content words?
    studies/claims.py length FOLDER             Microsoft's code on more than 512 tokens; FOLDER is a clone of microsoft/DeBERTa
    studies/claims.py mlm-head [MODEL]          transformers' masked-LM head on a checkpoint with Microsoft's names
    studies/claims.py norms [MODEL]             norms of words, positions and their sums; are both found again in a sum?
    studies/claims.py position-to-position ...  the term that DeBERTa leaves out, added after training
    studies/claims.py swap ...                  which cells of a term change when one token does

MODEL is a folder, models/demo if not given. The last two run the program (--program build/deberta). Needs numpy, norms and the last two
safetensors, mlm-head also transformers and torch, length torch. SPDX-License-Identifier: MIT
"""
import argparse
import csv
import json
import math
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parents[1]

# Development results of the paper's Table 1: CoLA, QQP, MNLI-m, SST-2, STS-B, QNLI, RTE, MRPC, and the average that it prints.
PAPER_TABLE_1 = {"BERT-large": (60.6, 91.3, 86.6, 93.2, 90.0, 92.3, 70.4, 88.0, 84.05), "RoBERTa-large": (68.0, 92.2, 90.2, 96.4, 92.4, 93.9, 86.6, 90.9, 88.82),
                 "XLNet-large": (69.0, 92.3, 90.8, 97.0, 92.5, 94.9, 85.9, 90.8, 89.15), "DeBERTa-large": (70.5, 92.3, 91.1, 96.8, 92.8, 95.3, 88.3, 91.9, 90.00)}
# Perplexity of Wikitext-103 in its Table 10: positions at the input, positions in the decoder.
PAPER_TABLE_10 = {"development": (20.7, 20.5), "test": (20.0, 19.9)}
SHAPES = {"base": (12, 768, 3072), "large": (24, 1024, 4096)}  # layers, width, width of the feed-forward
CLIP, VOCABULARY = 512, 50265
FUNCTION_WORDS = set("a an the and or but nor if of to in on at by for from with without into upon over under as that which who whom this these those he she it "
                     "they we you i him her them us me his its their our your my is are was were be been being am do does did have has had will would shall should "
                     "can could may might must not no so than then there here when where while".split())


def load_file(path):
    from safetensors.numpy import load_file as load
    return load(path)


def parameters(layers, width, inner):
    """Of v1's encoder: docs/specification.md 1.3."""
    layer = 3 * width ** 2 + 2 * width + width ** 2 + 2 * (width ** 2 + width) + 2 * width + 2 * width * inner + inner + width + 2 * width
    return VOCABULARY * width + 2 * width + 2 * CLIP * width + layers * layer


def arithmetic(arguments):
    for name, (layers, width, inner) in SHAPES.items():
        table, added = 2 * CLIP * width, 2 * layers * width ** 2 + 2 * CLIP * width
        more = 100 * added / (parameters(layers, width, inner) - added)
        print(f"EMD {name}: {100 * 0.15 * 2 / layers:.2f} % of all layers, where 15 % of the tokens pass one of them twice more")
        print(f"positions {name}: {added / 1e6:.1f} M parameters, {added / 2 ** 20:.1f} Mi, {more:.1f} % more; with shared projections {table / 1e6:.2f} M")
        print(f"field {name}: (2k-1)n {(2 * CLIP - 1) * layers:,}, 2(k-1)n {2 * (CLIP - 1) * layers:,}, 1+(2k-1)n {1 + (2 * CLIP - 1) * layers:,}")
    for name, (*tasks, printed) in PAPER_TABLE_1.items():
        print(f"GLUE {name}: mean of eight tasks {sum(tasks) / len(tasks):.3f}, printed {printed:.2f}")
    ours = PAPER_TABLE_1["DeBERTa-large"][:8]
    for name in ("RoBERTa-large", "XLNet-large"):
        print(f"DeBERTa-large is better than {name} on {sum(a > b for a, b in zip(ours, PAPER_TABLE_1[name]))} of 8 tasks of GLUE")
    for name, (at_input, in_decoder) in PAPER_TABLE_10.items():
        print(f"perplexity, {name}: {at_input:.1f} and {in_decoder:.1f}, {math.log(at_input / in_decoder):.4f} nats")
    superglue()
    for number, words in enumerate(("The cat sat on mat", "A quick brown cat sat on the soft mat"), 1):
        words = words.split()
        print(f"sentence {number} of the notebook: mat - cat = {words.index('mat') - words.index('cat')}")
    concatenation()
    return 0


def superglue():
    """The average of SuperGLUE from its tasks, two metrics of a task counting as their mean."""
    with open(ROOT / "docs" / "studies" / "data" / "benchmarks.csv", encoding="utf-8") as file:
        rows = list(csv.DictReader(line for line in file if not line.startswith("#")))
    means = {}
    for model in ("human", "DeBERTa 1.5B"):
        tasks = {}
        for row in rows:
            if row["model"] == model and row["benchmark"].startswith("SuperGLUE "):
                tasks.setdefault(row["benchmark"], []).append(float(row["value"]))
        means[model] = {task: sum(values) / len(values) for task, values in tasks.items()}
        print(f"SuperGLUE, {model.replace('1.5B', '1500M')}: {sum(means[model].values()) / len(tasks):.3f}, the average of {len(tasks)} tasks")
    above = [task.split()[1] for task, value in means["DeBERTa 1.5B"].items() if value > means["human"][task]]
    print(f"SuperGLUE: DeBERTa above human in {len(above)} of 8 tasks: {', '.join(above)}")


def concatenation():
    """Words of half the width and positions of the other half, added, are the two after one another."""
    random = np.random.default_rng(1)
    words, positions, nothing = random.normal(size=(50, 16)), random.normal(size=(50, 16)), np.zeros((50, 16))
    added = np.hstack([words, nothing]) + np.hstack([nothing, positions])
    weights = random.normal(size=(8, 32))
    rest = np.hstack([words, positions]) @ weights.T - words @ weights[:, :16].T - positions @ weights[:, 16:].T
    print(f"adding, with halves of zeros, is concatenating: {(added == np.hstack([words, positions])).all()}")
    print(f"a layer over a concatenation is the sum of two layers: {np.abs(rest).max() < 1e-12}")


def function_words(arguments):
    """Of the attention that a word gives to other words: how much goes to content words, by layer, and how many of the others these are."""
    import deberta_c
    import study

    model = deberta_c.Model(arguments.model)
    with open(arguments.file, encoding="utf-8") as file:
        texts = [line.rstrip("\n") for line in file][:arguments.sentences]
    parts = []  # [text][asker][layer]: attention to content words, to all others, content words, others
    for text in texts:
        tokens = model.tokenize(text)
        # whole words alone: a piece with the mark of a word's beginning that no other piece follows
        starts = [one.startswith("\u2581") for one in tokens.tokens] + [True]
        whole = np.array([starts[k] and starts[k + 1] and one[1:].isalpha() for k, one in enumerate(tokens.tokens)])
        function = whole & np.array([one[1:].lower() in FUNCTION_WORDS for one in tokens.tokens])
        content = whole & ~function
        found = model.encode(np.asarray(tokens.ids, np.int32), hidden=None, attention="all")
        others = whole[None] & ~np.eye(len(whole), dtype=bool)
        parts.append([[[float((attention * (others & content)[None])[:, asks].sum()), float((attention * others[None])[:, asks].sum()),
                        float((others & content)[asks].sum()), float(others[asks].sum())]
                       for layer in range(model.info["layers"]) for attention in [np.asarray(found[f"attn.{layer}.probs"], float).reshape(-1, *others.shape)]]
                      for asks in (function, content)])
    parts = np.array(parts)
    print("| layer | function words ask: to content words | content words ask: to content words |\n|--:|--:|--:|")
    show = lambda asks, layer, k: "{:.1f} % ({:.1f} to {:.1f})".format(*(100 * one for one in study.ratio(parts[:, asks, layer, k], parts[:, asks, layer, k + 1], seed=1)))
    for layer in range(parts.shape[2]):
        print(f"| {layer} | {show(0, layer, 0)} | {show(1, layer, 0)} |")
    print(f"| none: share of the other words | {show(0, 0, 2)} | {show(1, 0, 2)} |")
    print(f"\n{len(texts)} sentences; 95 % intervals over sentences; attention of whole words to other whole words alone")
    return 0


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
    parser.add_argument("experiment", choices=["arithmetic", "function-words", "length", "mlm-head", "norms", "position-to-position", "swap"])
    parser.add_argument("model", nargs="?", default="models/demo")
    parser.add_argument("--program", default="build/deberta")
    parser.add_argument("--file", default="docs/studies/data/sentences.txt")
    parser.add_argument("--sentences", type=int, default=100)
    arguments = parser.parse_args()
    run = {"arithmetic": arithmetic, "function-words": function_words, "length": length, "mlm-head": mlm_head, "norms": norms, "position-to-position": position_to_position, "swap": swap}
    return run[arguments.experiment](arguments)


if __name__ == "__main__":
    sys.exit(main())
