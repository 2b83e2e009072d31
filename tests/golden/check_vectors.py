#!/usr/bin/env python3
"""Judges another implementation (docs/conformance.md): tests/golden/check_vectors.py CASE OUTPUT.safetensors [--bits]

CASE: a folder beside this file. OUTPUT: float32 or float64 tensors, named and shaped as in CASE/expected.safetensors; those that both have are
compared where tokens are real, with --bits also the checksums of bits.tsv, which need all of a quantity. Exit status 1: one is outside its
bar (three times float32 PyTorch's error, bars.tsv), or there was nothing to compare. Needs NumPy. SPDX-License-Identifier: MIT"""
import csv
import json
import sys
from pathlib import Path

import numpy as np

HERE, KINDS = Path(__file__).resolve().parent, {"F32": "<f4", "F64": "<f8", "I64": "<i8", "I32": "<i4"}
BARS = {"hidden": "f32_hidden", "probs": "f32_probs", "logits.mlm_emd": "f32_emd", "logits.rtd": "f32_rtd"}  # columns of bars.tsv


def read(path):
    data = Path(path).read_bytes()
    base = 8 + int.from_bytes(data[:8], "little")
    return {name: np.frombuffer(data[base:], KINDS[e["dtype"]], np.prod(e["shape"], dtype=int), e["data_offsets"][0]).reshape(e["shape"])
            for name, e in json.loads(data[8:base]).items() if name != "__metadata__"}


def selected(name, values, real):
    """What counts: real rows; of attention real queries and keys, of probabilities also the keys of holes inside a text, which are 0."""
    if name.startswith("attn."):
        inside = [np.logical_or.accumulate(row) & np.logical_or.accumulate(row[::-1])[::-1] for row in real]
        return [m[:, row][:, :, keys if name.endswith("probs") else row] for m, row, keys in zip(values, real, inside)]
    return list(values) if name == "logits.sequence" else [m[row] for m, row in zip(values, real)]


def checksum(parts):
    total = 0xCBF29CE484222325
    for word in np.concatenate([np.asarray(p, np.float32).ravel() for p in parts]).view(np.uint32).tolist():
        total = ((total ^ word) * 0x100000001B3) & (1 << 64) - 1
    return f"{total:016x}"


def main(case, output, *options):
    tables = ((HERE / name).read_text().splitlines() for name in ("bars.tsv", "bits.tsv"))
    (bars,), bits = ([row for row in csv.DictReader(table, delimiter="\t") if row["name"] == case] for table in tables)
    expected, found, verdicts, gathered = read(HERE / case / "expected.safetensors"), read(output), [], {}
    real = expected["attention_mask"].astype(bool)
    for name in sorted(name for name in found if name.startswith(("hidden_states.", "attn.", "logits."))):
        quantity = {"hidden_states": "hidden", "attn": name.split(".")[-1]}.get(name.split(".")[0], name)  # its name in bits.tsv
        ours = selected(name, found[name], real)
        gathered[quantity] = gathered.get(quantity, []) + ours
        if name in expected and expected[name].shape == found[name].shape:
            error = np.max([np.abs(a - b).max() for a, b in zip(ours, selected(name, expected[name], real))])  # NaN if one is
            limit = max(3 * float(bars[BARS.get(quantity, "f32_logits" if quantity == name else "f32_components")] or 0), 2e-6)
            verdicts.append((error <= limit, f"{name:24} error {error:.2e}  bar {limit:.2e}"))
    for row in [row for row in bits if options and not row["quantity"].startswith("int")]:  # low precision is this project's, not DeBERTa's
        verdicts.append((row["quantity"] in gathered and checksum(gathered[row["quantity"]]) == row["bits"], f"bits of {row['quantity']}"))
    print("\n".join(f"{'ok' if fine else 'FAIL':4} {what}" for fine, what in verdicts) or f"{output}: no tensor of {case} to compare")
    return int(not verdicts or not all(fine for fine, _ in verdicts))


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]) if len(sys.argv) in (3, 4) and sys.argv[3:] in ([], ["--bits"]) else __doc__)
