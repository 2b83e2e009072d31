"""Errors against float64, value by value: this program's beside those of float32 transformers, on the golden cases.

    tools/peers.py errors [--program build/deberta] [--folder tests/golden]

For every layer of every case, the median over the values of H[l] of |found - float64|, and the ratio of the two. Needs
tools/gates/reference-requirements.txt. SPDX-License-Identifier: MIT
"""
import tempfile
from pathlib import Path

import numpy as np
import torch
import transformers
from safetensors.numpy import load_file

from rivals.turns import PROGRAM, ROOT, Runner


def ours(program, folder):
    with tempfile.TemporaryDirectory() as scratch:
        path = Path(scratch) / "states.safetensors"
        Runner().run(program, "encode", folder, "--input", folder / "expected.safetensors", "--hidden", "all", "--reference", "hf", "-o", path)
        return load_file(path)


def theirs(folder, expected):
    model = transformers.AutoModel.from_pretrained(folder, dtype=torch.float32).eval()
    given = {name: torch.tensor(expected[name]) for name in ("input_ids", "attention_mask")}
    if model.config.type_vocab_size:
        given["token_type_ids"] = torch.tensor(expected["token_type_ids"])
    with torch.no_grad():
        states = model(**given, output_hidden_states=True).hidden_states
    return {f"hidden_states.{layer}": state.numpy() for layer, state in enumerate(states)}


def options(parser):
    parser.add_argument("--program", type=Path, default=PROGRAM)
    parser.add_argument("--folder", type=Path, default=ROOT / "tests" / "golden")


def run(arguments):
    transformers.logging.set_verbosity_error()
    torch.set_num_threads(1)
    ratios = []
    for folder in sorted(arguments.folder.glob("[0-9][0-9]-*")):
        expected = load_file(folder / "expected.safetensors")
        real = expected["attention_mask"] > 0
        found = [ours(arguments.program, folder), theirs(folder, expected)]
        for name in found[1]:
            errors = [np.median(np.abs(tensors[name][real].astype(np.float64) - expected[name][real])) for tensors in found]
            ratios.append(errors[0] / errors[1])
            print(f"{folder.name:28s} {name:18s} {errors[0]:.2e} of {errors[1]:.2e}: {ratios[-1]:.2f}")
    low, middle, high = np.quantile(ratios, [0.25, 0.5, 0.75])
    print(f"{len(ratios)} layers: median error over that of float32 transformers {middle:.2f} (quartiles {low:.2f} and {high:.2f}, largest {max(ratios):.2f})")
    return 0
