#!/usr/bin/env python3
"""Train the tiny models of the studies `python3 studies/grid.py` and `python3 studies/clipping.py` with PyTorch, and write their tables.

    train_grid.py run                  trains what is missing; one JSON line for every finished model
    train_grid.py tables FOLDER        grid.csv and clipping.csv from those lines

Folders: --corpus holds train.txt and valid.txt, --state the lines of finished models (grid.jsonl). Needs torch, numpy.
What is trained, and on what, is in study_models.py. One thread, products in bfloat16. train_studies.py trains the same
models with this program, but for two controls, whose attention it does not have.

SPDX-License-Identifier: MIT
"""

import sys
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F

import study_models
from study_models import BETAS, EPSILON, PEAK_RATE, WARM_UP, WEIGHT_DECAY

sys.path.append(str(Path(__file__).resolve().parents[1] / "tools"))
from rivals.lean_deberta import LeanDeberta, bucket_rows  # noqa: E402


def tensors(arrays):
    return [torch.from_numpy(np.ascontiguousarray(a)) for a in arrays]


class Trained:
    def __init__(self, config, seed, study, stream):
        torch.manual_seed(seed)
        self.model = LeanDeberta(config, 1)
        parameters = [p for name, p in self.model.named_parameters() if not name.startswith(("pooler", "classifier"))]
        optimizer = torch.optim.AdamW(parameters, lr=PEAK_RATE, betas=BETAS, eps=EPSILON, weight_decay=WEIGHT_DECAY)
        for step in range(study.steps):
            ids, rows, labels = tensors(study_models.step_batch(stream, study, seed, step))
            logits = self.model.vocabulary_logits(self.model.decode(ids, rows, torch.bfloat16)[0])
            loss = F.cross_entropy(logits.flatten(0, 1), labels.flatten())
            loss.backward()
            torch.nn.utils.clip_grad_norm_(parameters, 1.0)
            for group in optimizer.param_groups:
                group["lr"] = PEAK_RATE * min((step + 1) / WARM_UP, (study.steps - step) / (study.steps - WARM_UP))
            optimizer.step()
            optimizer.zero_grad()

    def reread(self, n, k, buckets):
        """Reads the trained table with other rows: distances clipped at k (buckets -1) or the published log buckets up
        to max distance k. The rows stay around the middle of the table."""
        own = len(self.model.deberta.encoder.rel_embeddings.weight) // 2
        self.model.tables[n] = (bucket_rows(n, buckets, k) + own - (buckets if buckets > 0 else k)).flip(0)

    def losses(self, ids, rows, labels, table):
        if table:
            self.reread(ids.shape[1], *table)
        with torch.no_grad():
            logits = self.model.vocabulary_logits(self.model.decode(*tensors((ids, rows)))[0]).flatten(0, 1)
        return F.cross_entropy(logits, tensors([labels])[0].flatten(), reduction="none").numpy()


def main():
    arguments = study_models.command_line(__doc__).parse_intermixed_args()
    torch.set_num_threads(1)

    def trains(config):
        return True

    study_models.follow(arguments, "train_grid.py", Trained, trains)
    return 0


if __name__ == "__main__":
    sys.exit(main())
