#!/usr/bin/env python3
"""Looks for model configurations for which `deberta encode` and transformers disagree.

    tools/gates/differential_models.py build/deberta [--models 100] [--seed 1] [--isa scalar,avx2]

Each model has a random shape, random options of every kind (v1 or v2, terms, buckets, a convolution, heads of pre-training and
fine-tuning ...), random weights large enough to make attention peaky, and a random file format; its input is a ragged batch,
sometimes with holes in the mask. Hidden states, probabilities, components and logits must be within three times the error of
transformers in float32 against float64, or 2e-6 of the largest value; the tiers of --isa must agree in every bit. Prints one
line per disagreement with the seed that makes the model; exit status 1 if there are any.

Needs tools/gates/reference-requirements.txt. SPDX-License-Identifier: MIT
"""
import argparse
import json
import os
import random
import subprocess
import sys
import tempfile

import reference  # prints what to install
import torch
import transformers
from safetensors.torch import load_file, save_file

ACTIVATIONS = ["gelu", "gelu", "gelu", "gelu_new", "relu", "silu", "swish", "tanh", "gelu_fast", "sigmoid", "gelu_pytorch_tanh", "quick_gelu"]
HEADS = {"": "Model", "mlm": "ForMaskedLM", "sequence": "ForSequenceClassification", "token": "ForTokenClassification",
         "qa": "ForQuestionAnswering"}


def random_settings(chance):
    v1 = chance.random() < 0.35
    heads = chance.choice([1, 1, 2, 3, 4, 5, 7])
    hidden = heads * chance.choice([1, 3, 4, 7, 8, 11, 12, 16, 17, 31, 64, 80])
    relative = chance.random() < 0.9
    settings = {
        "vocab_size": chance.choice([13, 61, 257]), "hidden_size": hidden, "num_hidden_layers": chance.choice([1, 2, 2, 3]),
        "num_attention_heads": heads, "intermediate_size": chance.choice([1, 7, 12, 33, 64, 131]),
        "hidden_act": chance.choice(ACTIVATIONS), "max_position_embeddings": chance.choice([64, 65, 128, 512]),
        "relative_attention": relative, "max_relative_positions": chance.choice([-1, -1, 0, 2, 5, 16, 64]),
        "pos_att_type": chance.choice([["c2p", "p2c"], ["p2c", "c2p"], ["c2p"], ["p2c"], [], "c2p|p2c", "P2C | c2p"]),
        "position_biased_input": chance.random() < 0.4, "type_vocab_size": chance.choice([0, 0, 2, 3]),
        "layer_norm_eps": chance.choice([1e-7, 1e-7, 1e-12, 1e-5, 1e-3]), "pooler_hidden_act": chance.choice(["gelu", "gelu", "tanh", "relu"]),
        "pooler_hidden_size": hidden, "num_labels": chance.choice([1, 2, 3, 9]), "legacy": chance.random() < 0.5,
    }
    if v1:
        settings["talking_head"] = chance.random() < 0.3
    else:
        settings |= {"position_buckets": chance.choice([-1, 0, 2, 3, 4, 5, 8, 9, 31, 32, 256]), "share_att_key": chance.random() < 0.5,
                     "norm_rel_ebd": chance.choice(["layer_norm", "none", " Layer_Norm | x"])}
        if chance.random() < 0.3:
            settings |= {"conv_kernel_size": chance.choice([1, 3, 5, 7]), "conv_act": chance.choice(["gelu", "tanh", "relu", "sigmoid"]),
                         "conv_groups": chance.choice([g for g in range(1, hidden + 1) if hidden % g == 0])}
    if chance.random() < 0.2:
        settings["embedding_size"] = chance.choice([5, 8, 24, 33])
    limit = settings["max_relative_positions"] if settings["max_relative_positions"] > 0 else settings["max_position_embeddings"]
    if limit - 1 == settings.get("position_buckets", 0) // 2:  # transformers then divides by log(1) and converts infinities to integers
        settings["max_relative_positions"] = limit + 1
    return ("Deberta" if v1 else "DebertaV2"), settings


def fill_with_noise(model):
    for name, tensor in model.named_parameters():
        noise = torch.randn(tensor.shape)
        if "LayerNorm" in name:
            noise = 0.2 * noise + (1 if name.endswith("weight") else 0)
        elif tensor.dim() < 2:
            noise = 0.3 * noise
        elif "embeddings" not in name or "proj" in name:
            noise = noise * (1.5 if any(part in name for part in ("query", "key", "in_proj", "pos_")) else 1) / tensor[0].numel() ** 0.5
        tensor.data.copy_(noise)


def write_variant(chance, source, target, v1):
    """Writes the same model in another valid form, and returns what was changed."""
    weights = load_file(os.path.join(source, "model.safetensors"))
    with open(os.path.join(source, "config.json"), encoding="utf-8") as file:
        config = json.load(file)
    done = []
    if chance.random() < 0.3 and any(name.startswith("deberta.") for name in weights):
        prefix = chance.choice(["bert.", ""] if not any(n.startswith(("cls", "pooler", "classifier", "qa", "lm_")) for n in weights) else ["bert."])
        weights = {name.replace("deberta.", prefix, 1): tensor for name, tensor in weights.items()}
        done.append(f"prefix '{prefix}'")
    terms = config["pos_att_type"]
    if chance.random() < 0.2 and terms and config["pooler_hidden_act"] == config["hidden_act"]:  # as Microsoft writes it: without a type, so that v1 is known by the tensors alone
        del config["model_type"]
        config["pos_att_type"] = "|".join(terms)
        done.append("no model_type")
    kind = chance.choice(["safetensors", "safetensors", "shards", "zip", "legacy", "bin shards"])
    done.append(kind)
    names = sorted(weights)
    parts = [weights]
    if "shards" in kind:
        cut = chance.randrange(1, len(names))
        parts = [{n: weights[n] for n in names[:cut]}, {n: weights[n] for n in names[cut:]}]
    stem, suffix, save = "model", "safetensors", save_file
    if kind in ("zip", "legacy", "bin shards"):
        stem, suffix = "pytorch_model", "bin"
        save = lambda part, path: torch.save(part, path, _use_new_zipfile_serialization=kind != "legacy")
    index = {}
    for i, part in enumerate(parts):
        file = f"{stem}.{suffix}" if len(parts) == 1 else f"{stem}-{i + 1:05}-of-{len(parts):05}.{suffix}"
        save(part, os.path.join(target, file))
        index.update({name: file for name in part})
    if len(parts) > 1:
        with open(os.path.join(target, f"{stem}.{suffix}.index.json"), "w", encoding="utf-8") as file:
            json.dump({"metadata": {"total_size": 0}, "weight_map": index}, file)
    with open(os.path.join(target, "config.json"), "w", encoding="utf-8") as file:
        json.dump(config, file)
    return ", ".join(done)


def random_input(chance, config):
    """Returns ids, mask, types, and positions or None."""
    length = chance.choice([1, 2, 3, 7, 16, 17, 33, 60])
    rows = chance.choice([1, 1, 2, 3])
    ids = torch.randint(0, config.vocab_size, (rows, length))
    types = torch.randint(0, max(config.type_vocab_size, 1), (rows, length))
    mask = torch.ones_like(ids)
    kind = chance.choice(["full", "ragged", "left", "holes"])
    for row in mask if kind != "full" else []:
        at = chance.randrange(length)
        if kind == "ragged":
            row[at + 1:] = 0
        elif kind == "left":
            row[:at] = 0
        else:
            row[torch.rand(length) < 0.3] = 0
            row[at] = 1
    positions = None
    if config.position_biased_input and chance.random() < 0.3:
        positions = torch.randint(0, config.max_position_embeddings, (rows, length))
    return ids, mask, types, positions


def real_part(name, tensor, mask):
    """Returns the values that do not depend on padding: those of real tokens, or of pairs of them."""
    if name.startswith("attn."):
        pairs = mask[:, None, :, None] * mask[:, None, None, :] > 0
        return tensor[pairs.expand(tensor.shape)]
    if name == "logits.sequence":
        return tensor[mask[:, 0] > 0]  # these heads read the first row, which is meaningless if the mask leaves it out
    return tensor[mask > 0]


def check(program, seed, tiers, work):
    """Returns sentences on what is wrong with the model of this seed."""
    chance = random.Random(seed)
    torch.manual_seed(seed)
    torch.set_grad_enabled(False)
    family, settings = random_settings(chance)
    head = chance.choice(list(HEADS))
    if head == "mlm" and not settings["legacy"]:
        settings.pop("embedding_size", None)
    if head == "qa":
        settings["num_labels"] = 2
    source, target = (tempfile.mkdtemp(dir=work) for _ in range(2))
    model = getattr(transformers, family + HEADS[head])(getattr(transformers, family + "Config")(**settings))
    fill_with_noise(model)
    model.save_pretrained(source)
    config = model.config
    about = write_variant(chance, source, target, family == "Deberta")
    ids, mask, types, positions = random_input(chance, config)
    expected = reference.compute(source, ids, mask, types, positions=positions)
    rough = reference.compute(source, ids, mask, types, float32=True, positions=positions)
    inputs = {"input_ids": ids, "attention_mask": mask, "token_type_ids": types}
    save_file(inputs if positions is None else inputs | {"position_ids": positions}, os.path.join(work, "in.safetensors"))
    about = f"seed {seed}, {family}, {head or 'encoder'}, {about}, {tuple(ids.shape)}, {settings}"

    problems, first = [], None
    for tier in tiers:
        out = os.path.join(work, f"{tier}.safetensors")
        run = subprocess.run([program, "encode", target, "--input", os.path.join(work, "in.safetensors"), "--hidden", "all", "--attention-layers",
                              "all", "--component-layers", "all", "--logits", "--reference", "hf", "--isa", tier, "-q", "-o", out],
                             capture_output=True)
        if run.returncode != 0:
            return [f"exit status {run.returncode}: {run.stderr.decode().strip()} ({about})"]
        found = load_file(out)
        first = first or found
        for name, values in found.items():
            if not torch.equal(values, first[name]):
                problems.append(f"{tier}: {name} differs from {tiers[0]} ({about})")
    for name, exact in expected.items():
        if name.endswith(("ids", "mask")):
            continue
        if name not in first:
            problems.append(f"{name} is missing ({about})")
            continue
        ours, exact, theirs = (real_part(name, t.double().reshape(exact.shape), mask) for t in (first[name], exact, rough[name]))
        if not exact.numel():
            continue
        error, bar = (ours - exact).abs().max().item(), (theirs - exact).abs().max().item()
        if not error <= max(3 * bar, 2e-6 * max(1, exact.abs().max().item())):
            problems.append(f"{name} is off by {error:.2g}, transformers in float32 by {bar:.2g} ({about})")
    extra = [n for n in first if n.startswith("logits.") and n not in expected and n != "logits.mlm_emd"]
    return problems + [f"{name} was not expected ({about})" for name in extra]


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("program")
    parser.add_argument("--models", type=int, default=100)
    parser.add_argument("--seed", type=int, default=1, help="of the first model; the next ones count on")
    parser.add_argument("--isa", default="auto", help="tiers with commas")
    arguments = parser.parse_args()
    transformers.utils.logging.disable_progress_bar()
    transformers.utils.logging.set_verbosity_error()
    torch.set_num_threads(1)
    different = 0
    for seed in range(arguments.seed, arguments.seed + arguments.models):
        with tempfile.TemporaryDirectory() as work:
            problems = check(arguments.program, seed, arguments.isa.split(","), work)
        different += bool(problems)
        for problem in problems[:2]:
            print(problem, flush=True)
    print(f"{arguments.models} models, {different} differ")
    return 1 if different else 0


if __name__ == "__main__":
    sys.exit(main())
