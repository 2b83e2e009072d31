#!/usr/bin/env python3
"""Train the tiny models of the studies `python3 studies/grid.py` and `python3 studies/clipping.py` with this program, and write their tables.

    train_studies.py run               trains what is missing; one JSON line for every finished model
    train_studies.py tables FOLDER     grid.csv and clipping.csv from those lines
    train_studies.py means FOLDER      grid-seeds.csv and clipping-seeds.csv: the mean loss of every model, of more seeds (run --seeds N)

Folders: --corpus holds train.txt and valid.txt, --state the lines of finished models (grid.jsonl). Needs numpy, safetensors.
What is trained, and on what, is in study_models.py. The weights have the same bits on any machine and for any number of threads.
Two controls of the grid are left out, whose attention the program does not have (train_grid.py trains them with PyTorch).

SPDX-License-Identifier: MIT
"""

import json
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
from safetensors.numpy import load_file, save_file

import study_models
from study_models import BETAS, EPSILON, PEAK_RATE, TOKENS_PER_STEP, WARM_UP, WEIGHT_DECAY

NOT_LABELLED = -100
POSITIONS, TABLE = "deberta.embeddings.position_embeddings.weight", "deberta.encoder.rel_embeddings.weight"
# Of study_models.SHAPE what config.json does not know: lean_deberta.py's start, and what decides about the head.
NOT_OF_CONFIG = {"scaled_start", "enhanced_mask_decoder", "decoder_positions"}


def trains(config):
    return not config.get("p2p") and not config.get("p2c_from_query")


def published(config):
    """config.json. Its head has the names of v3."""
    fields = {name: value for name, value in config.items() if name not in NOT_OF_CONFIG}
    return fields | {"model_type": "deberta-v2", "hidden_act": "gelu", "type_vocab_size": 0, "legacy": False,
                     "hidden_dropout_prob": 0, "attention_probs_dropout_prob": 0}


def whole_run(stream, study, seed):
    """All steps in one shape. A step of short sequences has more of them; the rest of a longer step's are single
    characters without a label."""
    sequences = TOKENS_PER_STEP // min([length for _, length in study.short], default=study.length)
    shape = study.steps, sequences, study.length
    ids, mask = np.zeros(shape, np.int32), np.zeros(shape, np.int32)
    labels = np.full(shape, NOT_LABELLED, np.int32)
    mask[:, :, 0] = 1
    for step in range(study.steps):
        masked, rows, targets = study_models.step_batch(stream, study, seed, step)
        count, length = masked.shape
        ids[step, :count, :length] = masked
        mask[step, :count, :length] = 1
        np.put_along_axis(labels[step, :count], rows, targets.astype(np.int32), 1)
    return {"input_ids": ids, "attention_mask": mask, "labels": labels}


def begin(path, config):
    """Of the weights that the program draws: linear layers scaled by their inputs, and positions at the input as sines and
    cosines, as lean_deberta.py begins (attention without position terms does not get away from the usual start)."""
    weights = load_file(path)
    deviation = config["initializer_range"]
    for name, values in weights.items():
        if values.ndim == 2 and "embeddings" not in name:
            values *= np.float32(values.shape[1] ** -0.5 / deviation)
    if config["position_biased_input"]:
        places, width = weights[POSITIONS].shape
        angle = np.arange(places)[:, None] / 10000 ** (np.arange(0, width, 2) / width)
        weights[POSITIONS][:] = np.hstack([np.sin(angle), np.cos(angle)]) * (deviation * np.sqrt(2))
    if not config.get("decoder_positions", True):
        weights[POSITIONS][:] = 0
    save_file(weights, path)


class Program:
    def __init__(self, path, threads):
        # Distances beyond the table as Microsoft reads them: what is recorded has that rule.
        self.words = [path], ["--threads", str(threads), "--quiet", "--reference", "microsoft"]

    def __call__(self, *words):
        program, options = self.words
        subprocess.run([*program, *map(str, words), *options], check=True, stdout=subprocess.DEVNULL)


class Trained:
    """A model in a temporary folder."""

    def __init__(self, program, config, seed, study, stream):
        self.program, self.scratch = program, tempfile.TemporaryDirectory()
        here = Path(self.scratch.name)
        self.folder, self.head = here / "model", "mlm_emd" if config["enhanced_mask_decoder"] else "mlm"
        (here / "new").mkdir()
        (here / "new" / "config.json").write_text(json.dumps(published(config)))
        save_file(whole_run(stream, study, seed), here / "batches.safetensors")
        kept = [] if config.get("decoder_positions", True) else ["--freeze", POSITIONS]
        data = ["--batches", here / "batches.safetensors", "--head", self.head, "--dropout", 0, "--weight-decay", WEIGHT_DECAY, "--seed", seed]
        program("train", "mlm", "--config", here / "new", *data, "--steps", 1, "--learning-rate", 0, "--out", here / "begun")
        begin(here / "begun" / "model.safetensors", config)
        program("train", "mlm", here / "begun", *kept, *data, "--steps", study.steps, "--warmup", WARM_UP, "--learning-rate", PEAK_RATE,
                "--beta1", BETAS[0], "--beta2", BETAS[1], "--epsilon", EPSILON, "--out", self.folder)
        (here / "batches.safetensors").unlink()

    def reread(self, k, buckets):
        """A folder whose table is read with distances clipped at k (buckets -1) or with the published log buckets up to
        distance k."""
        other = Path(self.scratch.name) / "reread"
        other.mkdir(exist_ok=True)
        config = json.loads((self.folder / "config.json").read_text())
        weights = load_file(self.folder / "model.safetensors")
        own, rows = len(weights[TABLE]) // 2, buckets if buckets > 0 else k
        weights[TABLE] = np.ascontiguousarray(weights[TABLE][own - rows:own + rows])
        (other / "config.json").write_text(json.dumps(config | {"max_relative_positions": k, "position_buckets": buckets}))
        save_file(weights, other / "model.safetensors")
        return other

    def losses(self, ids, rows, labels, table):
        batch, found = (Path(self.scratch.name) / f"{name}.safetensors" for name in ("held-out", "found"))
        save_file({"input_ids": ids.astype(np.int32)}, batch)
        self.program("encode", self.reread(*table) if table else self.folder, "--input", batch, "--logits", "-o", found)
        logits = load_file(found)[f"logits.{self.head}"].astype(np.float64)
        logits = np.take_along_axis(logits, rows[:, :, None], 1)
        largest = logits.max(-1, keepdims=True)
        log_sums = largest[..., 0] + np.log(np.exp(logits - largest).sum(-1))
        return (log_sums - np.take_along_axis(logits, labels[:, :, None], 2)[..., 0]).ravel()


def main():
    parser = study_models.command_line(__doc__)
    parser.add_argument("--program", default="build/deberta")
    parser.add_argument("--threads", type=int, default=0, help="0: all cores")
    arguments = parser.parse_intermixed_args()
    program = Program(arguments.program, arguments.threads)
    study_models.follow(arguments, "train_studies.py", lambda *what: Trained(program, *what), trains)
    return 0


if __name__ == "__main__":
    sys.exit(main())
