"""The same training by this program and by PyTorch: same new model, same batches in the same order, same recipe; the losses of held-out texts.

    tools/peers.py losses build/deberta CORPUS [--steps 200] [--engine transformers|lean] [--dropout P] [--work FOLDER]

CORPUS has train.txt and valid.txt. The recipe is that of models/demo/recipe.sh, its rates spread over --steps. PyTorch's side is
torch.optim.AdamW with a new model of the shape of models/demo: transformers' DebertaV2ForMaskedLM, whose head is on H[L], or the
model of lean_deberta.py, which has the Enhanced Mask Decoder. Both trained models are judged by both programs. With --dropout
masks differ between the two, so that losses agree as well as those of two seeds do; without it they agree but for rounding, which
training magnifies.

Needs torch, transformers, safetensors, sentencepiece, numpy.

SPDX-License-Identifier: MIT
"""
import json
import tempfile
from pathlib import Path

import numpy
import sentencepiece
import torch
from safetensors.numpy import save_file
from safetensors.torch import load_file

from rivals.training import lean_loss, transformers_loss
from rivals.turns import ROOT, Failure, Runner

DEMO = ROOT / "models" / "demo"
CLS, SEP, MASK, FIRST_PIECE, NOT_LABELLED = 1, 2, 5990, 4, -100
TOKENS, SEQUENCES, LABELLED, HELD_OUT = 128, 16, 32, 128
RECIPE = {"learning_rate": 1.2e-3, "weight_decay": 0.05, "beta1": 0.9, "beta2": 0.98, "epsilon": 1e-6, "clip": 1.0}
RUNNER = Runner(limit=7200)


def pieces_of(path):
    tokenizer = sentencepiece.SentencePieceProcessor(model_file=str(DEMO / "spm.model"))
    return numpy.array(tokenizer.encode(path.read_text("utf-8").replace("\n", " ")), dtype=numpy.int64)


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
    """DebertaV2ForMaskedLM, with the head on H[L]."""

    head = "mlm"

    def __init__(self, config, dropout):
        kept = {key: value for key, value in config.items() if key not in ("architectures", "id2label", "label2id", "legacy")}
        self.model, self.loss = transformers_loss(kept | {"hidden_dropout_prob": dropout, "attention_probs_dropout_prob": dropout})

    def save(self, folder):
        self.model.save_pretrained(folder)

    def load(self, folder):
        self.model, self.loss = transformers_loss(folder)


class Lean:
    """LeanDeberta, with the Enhanced Mask Decoder."""

    head = "mlm_emd"

    def __init__(self, config, dropout):
        if dropout > 0:
            raise Failure("--dropout: the lean model has none")
        self.model, self.loss = lean_loss(config)

    def save(self, folder):
        self.model.write(folder)

    def load(self, folder):
        self.model.load_state_dict(load_file(folder / "model.safetensors"), strict=False)


ENGINES = {"transformers": Transformers, "lean": Lean}


def loss_of(engine, ids, labels):
    """Returns the loss at the labelled places of each text."""
    ids, labels = torch.from_numpy(ids), torch.from_numpy(labels)
    rows = (labels != NOT_LABELLED).nonzero()[:, 1].view(-1, LABELLED)
    return engine.loss(ids, rows, labels.gather(1, rows))


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
        loss = loss_of(engine, ids, labels)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(engine.model.parameters(), RECIPE["clip"])
        optimizer.step()
        schedule.step()
        losses.append(loss.item())
    engine.model.eval()
    return losses


def train(program, *words):
    return RUNNER.run(program, "train", "mlm", *words).output


def judged(program, engine, folder, held_out, ids, labels):
    """Returns the held-out loss of a trained model by the program and by PyTorch."""
    engine.load(folder)
    engine.model.eval()
    with torch.no_grad():
        theirs = loss_of(engine, ids, labels).item()
    return json.loads(train(program, folder, "--head", engine.head, "--dropout", 0, "--one-batch", held_out, "--json"))["loss"], theirs


def options(parser):
    parser.add_argument("program")
    parser.add_argument("corpus", type=Path)
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--engine", choices=ENGINES, default="transformers", help="PyTorch's side")
    parser.add_argument("--dropout", type=float, default=0.0)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--work", type=Path, help="where the models are left (default: nowhere)")


def compare(arguments, work):
    random, steps = numpy.random.default_rng(arguments.seed), arguments.steps
    pieces = pieces_of(arguments.corpus / "train.txt")
    batches = [draw_batch(pieces, SEQUENCES, random) for _ in range(steps)]
    ids, labels = draw_batch(pieces_of(arguments.corpus / "valid.txt"), HELD_OUT, random)
    torch.manual_seed(arguments.seed)
    engine = ENGINES[arguments.engine](json.loads((DEMO / "config.json").read_text("utf-8")), arguments.dropout)
    engine.save(work / "new")
    given, held_out = work / "batches.safetensors", work / "held_out.safetensors"
    save_file({"input_ids": numpy.stack([b[0] for b in batches]), "labels": numpy.stack([b[1] for b in batches])}, given)
    save_file({"input_ids": ids, "labels": labels}, held_out)
    recipe = [word for name, value in RECIPE.items() for word in (f"--{name.replace('_', '-')}", value)]
    warmup = max(1, steps // 40)
    train(arguments.program, work / "new", "--head", engine.head, "--batches", given, "--steps", steps, "--warmup", warmup, *recipe,
          "--dropout", arguments.dropout, "--out", work / "ours")
    theirs = train_with_torch(engine, batches, warmup)
    engine.save(work / "theirs")
    ours = [json.loads(line)["loss"] for line in (work / "ours" / "log.jsonl").read_text("utf-8").splitlines()]
    print(f"{steps} steps of {SEQUENCES} x {TOKENS} tokens, {arguments.engine}, dropout {arguments.dropout}, seed {arguments.seed}")
    for step in sorted({0, steps // 10, steps // 2, steps - 1}):
        print(f"step {step + 1:4}: loss {ours[step]:.6f}, PyTorch {theirs[step]:.6f}")
    for name, folder in (("this program's model", "ours"), ("PyTorch's model", "theirs")):
        by_program, by_torch = judged(arguments.program, engine, work / folder, held_out, ids, labels)
        print(f"{name}: held-out loss {by_program:.6f}, by PyTorch {by_torch:.6f}")


def run(arguments):
    with tempfile.TemporaryDirectory() as temporary:
        compare(arguments, arguments.work or Path(temporary))
    return 0
