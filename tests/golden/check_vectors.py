#!/usr/bin/env python3
"""Judges another implementation by the golden vectors (docs/conformance.md).

    tests/golden/check_vectors.py CASE OUTPUT.safetensors [--bits]

CASE: a folder beside this file. OUTPUT: float32 or float64 tensors named and shaped as in CASE/expected.safetensors. Every tensor that both
have is compared where tokens are real; --bits also compares the checksums of bits.tsv, which needs all of a quantity. Exit status 1: one is
outside its bar (three times float32 PyTorch's error, bars.tsv). Needs NumPy. SPDX-License-Identifier: MIT
"""
import json
import sys
from pathlib import Path

import numpy as np

HERE, KINDS = Path(__file__).resolve().parent, {"F32": "<f4", "F64": "<f8", "I64": "<i8", "I32": "<i4"}


def read(path):
    data = Path(path).read_bytes()
    base = 8 + int.from_bytes(data[:8], "little")
    return {name: np.frombuffer(data[base + e["data_offsets"][0]:base + e["data_offsets"][1]], KINDS[e["dtype"]]).reshape(e["shape"])
            for name, e in json.loads(data[8:base]).items() if name != "__metadata__"}


def table(name, case):
    lines = [line.split("\t") for line in (HERE / name).read_text().splitlines()]
    return [dict(zip(lines[0], line)) for line in lines if line[0] == case]


def quantity_of(name):
    """Its bar, and its name in bits.tsv."""
    part = name.split(".")[-1]
    if name.startswith("hidden_states."):
        return "f32_hidden", "hidden"
    if name.startswith("attn."):
        return ("f32_probs" if part == "probs" else "f32_components"), part
    return {"mlm_emd": "f32_emd", "rtd": "f32_rtd"}.get(part, "f32_logits"), f"logits.{part}"


def selected(name, values, real):
    """What counts: real rows; of attention real queries and keys, of probabilities also the keys of holes inside a text, which are 0."""
    if name.startswith("attn."):
        inside = [np.logical_or.accumulate(row) & np.logical_or.accumulate(row[::-1])[::-1] for row in real]
        return [m[:, row][:, :, keys if name.endswith("probs") else row] for m, row, keys in zip(values, real, inside)]
    return list(values) if name == "logits.sequence" else [m[row] for m, row in zip(values, real)]


def checksum(parts):
    total = 0xCBF29CE484222325
    for word in np.concatenate([np.ascontiguousarray(p, np.float32).ravel() for p in parts]).view(np.uint32).tolist():
        total = ((total ^ word) * 0x100000001B3) & (1 << 64) - 1
    return f"{total:016x}"


def main(case, output, with_bits):
    expected, found, bars = read(HERE / case / "expected.safetensors"), read(output), table("bars.tsv", case)[0]
    real, failures, gathered = expected["attention_mask"].astype(bool), 0, {}
    for name in sorted(set(found) - {"input_ids", "attention_mask", "token_type_ids", "position_ids"}):
        bar, quantity = quantity_of(name)
        ours = selected(name, found[name], real)
        gathered.setdefault(quantity, []).extend(ours)
        if name in expected and expected[name].shape == found[name].shape:
            error = max(np.abs(a - b).max() for a, b in zip(ours, selected(name, expected[name], real)))
            limit = max(3 * float(bars.get(bar) or 0), 2e-6)
            failures += not error <= limit
            print(f"{'ok' if error <= limit else 'FAIL':4} {name:24} error {error:.2e}  bar {limit:.2e}")
    for line in table("bits.tsv", case) if with_bits else ():
        if line["quantity"].startswith("int"):  # low precision: this project's arithmetic, not DeBERTa's
            continue
        same = line["quantity"] in gathered and checksum(gathered[line["quantity"]]) == line["bits"]
        failures += not same
        print(f"{'ok' if same else 'FAIL':4} bits of {line['quantity']}")
    return int(failures > 0 or not gathered)


if __name__ == "__main__":
    if len(sys.argv) not in (3, 4) or sys.argv[3:] not in ([], ["--bits"]):
        sys.exit(__doc__)
    sys.exit(main(sys.argv[1], sys.argv[2], sys.argv[3:] == ["--bits"]))
