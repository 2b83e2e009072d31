#!/usr/bin/env python3
"""The same training by this program and by PyTorch: same new model, same batches in the same order, same recipe; the losses of held-out texts.

    tools/compare_training.py build/deberta CORPUS [--steps 200] [--engine transformers|lean] [--dropout P] [--work FOLDER]

CORPUS has train.txt and valid.txt. The recipe is that of models/demo/recipe.sh, its rates spread over --steps. PyTorch's side is
torch.optim.AdamW with a new model of the shape of models/demo: transformers' DebertaV2ForMaskedLM, whose head is on H[L], or the
model of tools/lean_deberta.py, which has the Enhanced Mask Decoder. Both trained models are judged by both programs. With --dropout
masks differ between the two, so that losses agree as well as those of two seeds do; without it they agree but for rounding, which
training magnifies.

Needs torch, transformers, safetensors, sentencepiece, numpy.

SPDX-License-Identifier: MIT
"""
import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy
import sentencepiece
import torch
from lean_deberta import LeanDeberta
from safetensors.numpy import save_file
from safetensors.torch import load_file as load_torch_file, save_file as torch_file
from transformers import DebertaV2Config, DebertaV2ForMaskedLM

ROOT = Path(__file__).resolve().parent.parent
CLS, SEP, MASK, FIRST_PIECE, NOT_LABELLED = 1, 2, 5990, 4, -100
TOKENS, SEQUENCES, LABELLED, HELD_OUT = 128, 16, 32, 128
RECIPE = {"learning_rate": 1.2e-3, "weight_decay": 0.05, "beta1": 0.9, "beta2": 0.98, "epsilon": 1e-6, "clip": 1.0}


def pieces_of(path):
    tokenizer = sentencepiece.SentencePieceProcessor(model_file=str(ROOT / "models/demo/spm.model"))
    with open(path, encoding="utf-8") as file:
        return numpy.array(tokenizer.encode(file.read().replace("\n", " ")), dtype=numpy.int64)


def draw_batch(pieces, count, random):
    """[count, TOKENS] of ids and labels: LABELLED places of each sequence, 80 % [MASK], 10 % another piece, 10 % as they are."""
    starts = random.integers(0, len(pieces) - TOKENS, count)
    ids = numpy.stack([numpy.concatenate([[CLS], pieces[s:s + TOKENS - 2], [SEP]]) for s in starts])
    order = random.random((count, TOKENS - 2)).argsort(axis=1) + 1
    labelled = numpy.zeros(ids.shape, dtype=bool)
    numpy.put_along_axis(labelled, order[:, :LABELLED], True, axis=1)
    lot = random.random(ids.shape)
    shown = numpy.where(lot < 0.8, MASK, numpy.where(lot < 0.9, random.integers(FIRST_PIECE, MASK, ids.shape), ids))
    return numpy.where(labelled, shown, ids), numpy.where(labelled, ids, NOT_LABELLED)


class Transformers:
    """DebertaV2ForMaskedLM: the head on H[L]."""

    head = "mlm"

    def __init__(self, config, dropout):
        for key in ("architectures", "id2label", "label2id", "legacy"):
            config.pop(key, None)
        config.update(hidden_dropout_prob=dropout, attention_probs_dropout_prob=dropout)
        self.model = DebertaV2ForMaskedLM(DebertaV2Config(**config))

    def loss(self, ids, labels):
        return torch.nn.functional.cross_entropy(self.model(input_ids=ids).logits.flatten(0, 1), labels.flatten(), ignore_index=NOT_LABELLED)

    def save(self, folder):
        self.model.save_pretrained(folder)

    def load(self, folder):
        self.model = DebertaV2ForMaskedLM.from_pretrained(folder)


class Lean:
    """LeanDeberta: the Enhanced Mask Decoder."""

    head = "mlm_emd"

    def __init__(self, config, dropout):
        if dropout > 0:
            sys.exit("--dropout: the lean model has none")
        self.config, self.model = config, LeanDeberta(config, 1)

    def loss(self, ids, labels):
        rows = (labels != NOT_LABELLED).nonzero()[:, 1].view(-1, LABELLED)
        decoded, _ = self.model.decode(ids, rows)
        return torch.nn.functional.cross_entropy(self.model.vocabulary_logits(decoded).flatten(0, 1), labels.gather(1, rows).flatten())

    def save(self, folder):
        folder.mkdir(parents=True, exist_ok=True)
        weights = {k: v for k, v in self.model.state_dict().items() if not k.startswith(("pooler", "classifier"))}
        torch_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
        (folder / "config.json").write_text(json.dumps(self.config))

    def load(self, folder):
        self.model.load_state_dict(load_torch_file(folder / "model.safetensors"), strict=False)


def train_with_torch(engine, batches, warmup):
    decays = [p for name, p in engine.model.named_parameters() if "bias" not in name and "LayerNorm.weight" not in name]
    stays = [p for name, p in engine.model.named_parameters() if "bias" in name or "LayerNorm.weight" in name]
    optimizer = torch.optim.AdamW([{"params": decays}, {"params": stays, "weight_decay": 0.0}], lr=RECIPE["learning_rate"],
                                  betas=(RECIPE["beta1"], RECIPE["beta2"]), eps=RECIPE["epsilon"], weight_decay=RECIPE["weight_decay"])
    steps = len(batches)
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda done: done / warmup if done < warmup else (steps - done) / (steps - warmup))
    losses = []
    engine.model.train()
    for ids, labels in batches:
        optimizer.zero_grad()
        loss = engine.loss(torch.from_numpy(ids), torch.from_numpy(labels))
        loss.backward()
        torch.nn.utils.clip_grad_norm_(engine.model.parameters(), RECIPE["clip"])
        optimizer.step()
        schedule.step()
        losses.append(loss.item())
    engine.model.eval()
    return losses


def run(program, *words):
    return subprocess.run([program, "train", "mlm", *map(str, words)], check=True, capture_output=True, text=True).stdout


def judged_by_program(program, model, head, held_out):
    return json.loads(run(program, model, "--head", head, "--dropout", "0", "--one-batch", held_out, "--json"))["loss"]


def judged_by_torch(engine, folder, ids, labels):
    engine.load(folder)
    engine.model.eval()
    with torch.no_grad():
        return engine.loss(torch.from_numpy(ids), torch.from_numpy(labels)).item()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("corpus", type=Path)
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--engine", choices=("transformers", "lean"), default="transformers", help="PyTorch's side")
    parser.add_argument("--dropout", type=float, default=0.0)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--work", type=Path, help="where the models are left (default: nowhere)")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        work, random = arguments.work or Path(temporary), numpy.random.default_rng(arguments.seed)
        pieces = pieces_of(arguments.corpus / "train.txt")
        batches = [draw_batch(pieces, SEQUENCES, random) for _ in range(arguments.steps)]
        ids, labels = draw_batch(pieces_of(arguments.corpus / "valid.txt"), HELD_OUT, random)
        with open(ROOT / "models/demo/config.json", encoding="utf-8") as file:
            config = json.load(file)
        torch.manual_seed(arguments.seed)
        engine = {"transformers": Transformers, "lean": Lean}[arguments.engine](config, arguments.dropout)
        engine.save(work / "new")
        save_file({"input_ids": numpy.stack([b[0] for b in batches]), "labels": numpy.stack([b[1] for b in batches])}, work / "batches.safetensors")
        save_file({"input_ids": ids, "labels": labels}, work / "held_out.safetensors")
        recipe = [word for name, value in RECIPE.items() for word in (f"--{name.replace('_', '-')}", value)]
        warmup = max(1, arguments.steps // 40)
        run(arguments.program, work / "new", "--head", engine.head, "--batches", work / "batches.safetensors", "--steps", arguments.steps, "--warmup", warmup,
            *recipe, "--dropout", arguments.dropout, "--out", work / "ours")
        theirs = train_with_torch(engine, batches, warmup)
        engine.save(work / "theirs")
        with open(work / "ours/log.jsonl", encoding="utf-8") as file:
            ours = [json.loads(line)["loss"] for line in file]
        print(f"{arguments.steps} steps of {SEQUENCES} x {TOKENS} tokens, {arguments.engine}, dropout {arguments.dropout}, seed {arguments.seed}")
        for step in sorted({0, arguments.steps // 10, arguments.steps // 2, arguments.steps - 1}):
            print(f"step {step + 1:4}: loss {ours[step]:.6f}, PyTorch {theirs[step]:.6f}")
        for name, folder in (("this program's model", work / "ours"), ("PyTorch's model", work / "theirs")):
            print(f"{name}: held-out loss {judged_by_program(arguments.program, folder, engine.head, work / 'held_out.safetensors'):.6f}, "
                  f"by PyTorch {judged_by_torch(engine, folder, ids, labels):.6f}")


if __name__ == "__main__":
    main()
