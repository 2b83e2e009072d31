#!/usr/bin/env python3
"""The same training by this program and by PyTorch: same new model, same batches in the same order, same recipe; the losses of held-out texts.

    tools/compare_training.py build/deberta CORPUS [--steps 200] [--dropout P] [--work FOLDER]

CORPUS has train.txt and valid.txt. PyTorch's side is transformers' DebertaV2ForMaskedLM and torch.optim.AdamW, the model that of
models/demo with new weights and the head on H[L]. Both models are judged by both programs. With --dropout masks differ between the
two, so that losses agree as well as those of two seeds do; without it they agree but for rounding, which training magnifies.

Needs torch, transformers, safetensors, sentencepiece, numpy.

SPDX-License-Identifier: MIT
"""
import argparse
import json
import subprocess
import tempfile
from pathlib import Path

import numpy
import sentencepiece
import torch
from safetensors.numpy import save_file
from transformers import DebertaV2Config, DebertaV2ForMaskedLM

ROOT = Path(__file__).resolve().parent.parent
CLS, SEP, MASK, NOT_LABELLED = 1, 2, 5990, -100
TOKENS, SEQUENCES, HELD_OUT = 64, 16, 128
RECIPE = {"learning_rate": 1e-3, "weight_decay": 0.01, "beta1": 0.9, "beta2": 0.999, "epsilon": 1e-6, "clip": 1.0}


def pieces_of(path):
    tokenizer = sentencepiece.SentencePieceProcessor(model_file=str(ROOT / "models/demo/spm.model"))
    with open(path, encoding="utf-8") as file:
        return numpy.array(tokenizer.encode(file.read(4_000_000).replace("\n", " ")), dtype=numpy.int64)


def draw_batch(pieces, count, random):
    """[count, TOKENS] of ids, 15 % of them [MASK], and labels."""
    starts = random.integers(0, len(pieces) - TOKENS, count)
    ids = numpy.stack([numpy.concatenate([[CLS], pieces[s:s + TOKENS - 2], [SEP]]) for s in starts])
    labelled = random.random(ids.shape) < 0.15
    labelled[:, [0, -1]] = False
    labelled[:, 1] |= ~labelled.any(axis=1)
    return numpy.where(labelled, MASK, ids), numpy.where(labelled, ids, NOT_LABELLED)


def new_model(folder, seed, dropout):
    with open(ROOT / "models/demo/config.json", encoding="utf-8") as file:
        config = json.load(file)
    for key in ("architectures", "id2label", "label2id", "legacy"):
        config.pop(key, None)
    config.update(hidden_dropout_prob=dropout, attention_probs_dropout_prob=dropout)
    torch.manual_seed(seed)
    model = DebertaV2ForMaskedLM(DebertaV2Config(**config))
    model.save_pretrained(folder)
    return model


def loss_of(model, ids, labels):
    logits = model(input_ids=torch.from_numpy(ids)).logits
    return torch.nn.functional.cross_entropy(logits.flatten(0, 1), torch.from_numpy(labels).flatten(), ignore_index=NOT_LABELLED)


def train_with_torch(model, batches, warmup):
    decays = [p for name, p in model.named_parameters() if "bias" not in name and "LayerNorm.weight" not in name]
    stays = [p for name, p in model.named_parameters() if "bias" in name or "LayerNorm.weight" in name]
    optimizer = torch.optim.AdamW([{"params": decays}, {"params": stays, "weight_decay": 0.0}], lr=RECIPE["learning_rate"],
                                  betas=(RECIPE["beta1"], RECIPE["beta2"]), eps=RECIPE["epsilon"], weight_decay=RECIPE["weight_decay"])
    steps = len(batches)
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda done: done / warmup if done < warmup else (steps - done) / (steps - warmup))
    losses = []
    model.train()
    for ids, labels in batches:
        optimizer.zero_grad()
        loss = loss_of(model, ids, labels)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), RECIPE["clip"])
        optimizer.step()
        schedule.step()
        losses.append(loss.item())
    model.eval()
    return losses


def run(program, *words):
    return subprocess.run([program, "train", "mlm", *map(str, words)], check=True, capture_output=True, text=True).stdout


def judged_by_program(program, model, held_out):
    return json.loads(run(program, model, "--head", "mlm", "--dropout", "0", "--batch", held_out, "--json"))["loss"]


def judged_by_torch(folder, ids, labels):
    with torch.no_grad():
        return loss_of(DebertaV2ForMaskedLM.from_pretrained(folder).eval(), ids, labels).item()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("corpus", type=Path)
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--dropout", type=float, default=0.0)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--work", type=Path, help="where the models are left (default: nowhere)")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        work, random = arguments.work or Path(temporary), numpy.random.default_rng(arguments.seed)
        pieces = pieces_of(arguments.corpus / "train.txt")
        batches = [draw_batch(pieces, SEQUENCES, random) for _ in range(arguments.steps)]
        ids, labels = draw_batch(pieces_of(arguments.corpus / "valid.txt"), HELD_OUT, random)
        model, warmup = new_model(work / "new", arguments.seed, arguments.dropout), max(1, arguments.steps // 10)
        save_file({"input_ids": numpy.stack([b[0] for b in batches]), "labels": numpy.stack([b[1] for b in batches])}, work / "batches.safetensors")
        save_file({"input_ids": ids, "labels": labels}, work / "held_out.safetensors")
        recipe = [word for name, value in RECIPE.items() for word in (f"--{name.replace('_', '-')}", value)]
        run(arguments.program, work / "new", "--head", "mlm", "--batches", work / "batches.safetensors", "--steps", arguments.steps, "--warmup", warmup,
            *recipe, "--dropout", arguments.dropout, "--out", work / "ours")
        theirs = train_with_torch(model, batches, warmup)
        model.save_pretrained(work / "theirs")
        with open(work / "ours/log.jsonl", encoding="utf-8") as file:
            ours = [json.loads(line)["loss"] for line in file]
        print(f"{arguments.steps} steps of {SEQUENCES} x {TOKENS} tokens, dropout {arguments.dropout}, seed {arguments.seed}")
        for step in sorted({0, arguments.steps // 10, arguments.steps // 2, arguments.steps - 1}):
            print(f"step {step + 1:4}: loss {ours[step]:.6f}, PyTorch {theirs[step]:.6f}")
        for name, folder in (("this program's model", work / "ours"), ("PyTorch's model", work / "theirs")):
            print(f"{name}: held-out loss {judged_by_program(arguments.program, folder, work / 'held_out.safetensors'):.6f}, "
                  f"by PyTorch {judged_by_torch(folder, ids, labels):.6f}")


if __name__ == "__main__":
    main()
