"""Dropout against transformers in float64: its modules are given the masks that docs/training.md describes, made here by a generator of
their own; loss and gradients of a prepared batch must agree.

    tools/peers.py dropout build/deberta MODEL BATCH [--dropout P] [--seed N]

MODEL is a folder that DebertaV2ForMaskedLM opens, BATCH its safetensors file. Needs torch, transformers, safetensors, numpy.

SPDX-License-Identifier: MIT
"""
import tempfile
from pathlib import Path

import numpy
import torch
from safetensors.torch import load_file
from transformers import DebertaV2ForMaskedLM

from rivals.turns import Runner

EMBEDDINGS, TABLE, PROBABILITIES, ATTENTION, FEED_FORWARD = range(5)
LIMIT = 1e-5  # fraction of a gradient's largest value: float32 against float64


def philox(counter, key):
    """Returns Philox4x32-10 of arrays of 32-bit numbers: [..., 4]."""
    low = numpy.uint64(0xffffffff)
    a, b, c, d = (x.copy() for x in numpy.broadcast_arrays(*(numpy.asarray(x, dtype=numpy.uint64) for x in counter)))
    key_0, key_1 = (numpy.uint64(k) for k in key)
    for _ in range(10):
        even, odd = numpy.uint64(0xD2511F53) * a, numpy.uint64(0xCD9E8D57) * c
        a, b = (odd >> numpy.uint64(32)) ^ b ^ key_0, odd & low
        c, d = (even >> numpy.uint64(32)) ^ d ^ key_1, even & low
        key_0, key_1 = (key_0 + numpy.uint64(0x9E3779B9)) & low, (key_1 + numpy.uint64(0xBB67AE85)) & low
    return numpy.stack([a, b, c, d], -1)


class CountedDropout(torch.nn.Module):
    """Replaces one nn.Dropout."""

    def __init__(self, site, layer, arguments):
        super().__init__()
        self.last, self.p, self.key, self.site = (site << 26) + (layer << 12), arguments.dropout, (arguments.seed, 0), site

    def mask(self, columns, place, sequence, last):
        place, sequence, last = numpy.broadcast_arrays(*(numpy.asarray(x, dtype=numpy.uint64) for x in (place, sequence, last)))
        blocks = numpy.arange((columns + 3) // 4)
        words = philox((blocks, place[..., None], sequence[..., None], last[..., None]), self.key).reshape(*place.shape, -1)[..., :columns]
        return torch.from_numpy((words >= int(self.p * 2 ** 32)) / (1 - self.p))

    def forward(self, x):
        rows = numpy.arange(x.shape[-2])
        if self.site == TABLE:
            return x * self.mask(x.shape[-1], rows, 2 ** 32 - 1, self.last)
        sequences = numpy.arange(x.shape[0])
        if self.site == PROBABILITIES:
            heads = numpy.arange(x.shape[1])[None, :, None]
            return x * self.mask(x.shape[-1], rows[None, None, :], sequences[:, None, None], self.last + heads)
        return x * self.mask(x.shape[-1], rows[None, :], sequences[:, None], self.last)


def their_model(arguments):
    model = DebertaV2ForMaskedLM.from_pretrained(arguments.model).double().train()
    model.deberta.embeddings.dropout = CountedDropout(EMBEDDINGS, 0, arguments)
    for at, layer in enumerate(model.deberta.encoder.layer):
        layer.attention.self.dropout = CountedDropout(PROBABILITIES, at, arguments)
        layer.attention.self.pos_dropout = CountedDropout(TABLE, at, arguments)
        layer.attention.output.dropout = CountedDropout(ATTENTION, at, arguments)
        layer.output.dropout = CountedDropout(FEED_FORWARD, at, arguments)
    assert not [m for m in model.modules() if isinstance(m, torch.nn.Dropout)], "a dropout of transformers that is not known here"
    return model


def options(parser):
    parser.add_argument("program")
    parser.add_argument("model", type=Path)
    parser.add_argument("batch", type=Path)
    parser.add_argument("--dropout", type=float, default=0.3)
    parser.add_argument("--seed", type=int, default=5)


def run(arguments):
    batch, model = load_file(arguments.batch), their_model(arguments)
    logits = model(**{name: batch[name] for name in ("input_ids", "attention_mask", "token_type_ids")}).logits
    loss = torch.nn.functional.cross_entropy(logits.flatten(0, 1), batch["labels"].flatten(), ignore_index=-100)
    loss.backward()
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "gradients.safetensors"
        Runner().run(arguments.program, "train", "mlm", arguments.model, "--head", "mlm", "--reference", "hf", "--dropout", arguments.dropout,
                     "--seed", arguments.seed, "--one-batch", arguments.batch, "--gradients", out)
        ours = load_file(out)
    errors = {name: ((ours["grad." + name].double() - p.grad).abs().max() / p.grad.abs().max()).item()
              for name, p in model.named_parameters() if "grad." + name in ours and p.grad is not None and p.grad.abs().max() > 0}
    worst = max(errors, key=errors.get)
    print(f"loss {ours['loss'].item():.9f}, transformers {loss.item():.9f}; {len(errors)} gradients, at most {errors[worst]:.1e} of the largest value off, in {worst}")
    return 0 if errors[worst] < LIMIT and abs(ours["loss"].item() - loss.item()) < LIMIT else 1
