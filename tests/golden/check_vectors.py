#!/usr/bin/env python3
"""Judges another implementation of DeBERTa (docs/evidence.md). Needs NumPy. SPDX-License-Identifier: MIT

    check_vectors.py --list                            cases, easy ones first, and what each needs
    check_vectors.py CASE OUTPUT.safetensors [--bits]
    check_vectors.py --all FOLDER [--bits]             FOLDER/CASE.safetensors of every case that is there

CASE is a folder beside this file: its name, its number or its path. OUTPUT holds float32 or float64 tensors, named and shaped as in CASE/expected.safetensors (for `.rows` all rows
will do). Each of that file is compared where tokens are real, or named as missing, and `attn.*.logits` with the sum of its terms: the largest
difference may be three times that of float32 PyTorch (bars.tsv), and 2e-6 where that is less. --bits also compares the checksums of bits.tsv, which
need all of a quantity. Exit status 1: a tensor is outside its bar, misshapen or holds what is no number, or nothing was compared; 2: wrong use."""
import csv
import json
import re
import sys
from pathlib import Path

import numpy as np

HERE, KINDS = Path(__file__).resolve().parent, {"F16": "<f2", "F32": "<f4", "F64": "<f8", "I64": "<i8", "I32": "<i4"}
BARS = {"hidden": "f32_hidden", "probs": "f32_probs", "emd": "f32_emd", "logits.mlm_emd": "f32_emd", "logits.rtd": "f32_rtd"}  # columns of bars.tsv
VARIANTS = ("ms_clamp.", "zero_fill.")  # before names: Microsoft's far distances, and its padding
RESULT = re.compile(r"hidden_states\.\d+|attn\.\d+\.(c2c|c2p|p2c|logits|probs)(\.rows)?|emd\.\w+|logits\.(sequence|token|qa|mlm|mlm_emd|rtd)")


def read(path):
    try:
        data = Path(path).read_bytes()
    except OSError as problem:
        sys.exit(f"{path}: {problem.strerror}")
    try:
        base = 8 + int.from_bytes(data[:8], "little")
        header = {name: entry for name, entry in json.loads(data[8:base]).items() if name != "__metadata__"}
        return {name: np.frombuffer(data[base:], KINDS[e["dtype"]], np.prod(e["shape"], dtype=int), e["data_offsets"][0]).reshape(e["shape"])
                for name, e in header.items() if e["dtype"] in KINDS}, {name: e["dtype"] for name, e in header.items()}
    except (ValueError, KeyError, TypeError, AttributeError, OverflowError, MemoryError):
        sys.exit(f"{path}: is no whole safetensors file")


def plain(name):
    return name.split(".", 1)[1] if name.startswith(VARIANTS) else name


def selected(name, values, real, rows):
    """What counts: real rows; of attention real queries and keys, of probabilities also the keys of holes inside a text, which are 0; of `.rows` those."""
    name = plain(name)
    if name.startswith("attn."):
        inside = [np.logical_or.accumulate(row) & np.logical_or.accumulate(row[::-1])[::-1] for row in real]
        chosen = [row[rows] if name.endswith(".rows") else row for row in real]
        return [m[:, queries][:, :, keys if "probs" in name else row] for m, queries, row, keys in zip(values, chosen, real, inside)]
    return list(values) if name == "logits.sequence" else [m[row] for m, row in zip(values, real)]


def checksum(parts):
    total = 0xCBF29CE484222325
    for word in np.concatenate([np.asarray(p, np.float32).ravel() for p in parts]).view(np.uint32).tolist():
        total = ((total ^ word) * 0x100000001B3) & (1 << 64) - 1
    return f"{total:016x}"


def outputs_of(tensors):
    return sorted(name for name in tensors if plain(name).startswith(("hidden_states.", "attn.", "logits.", "emd.")))


def needs(case):
    """What an implementation must have for the case, and how much of it there is: for the order of the list."""
    config, names = json.loads((HERE / case / "config.json").read_text()), read(HERE / case / "expected.safetensors")[1]
    parts = [config["model_type"] == "deberta" and "v1's fused projection" or "v2/v3", *sorted(n for n in names if n.startswith("logits."))]
    for key, what in (("conv_kernel_size", "convolution"), ("type_vocab_size", "token types"), ("talking_head", "talking heads")):
        parts += [what] * bool(config.get(key, 0))
    parts += ["embedding projection"] * (config.get("embedding_size", config["hidden_size"]) != config["hidden_size"])
    parts += ["absolute positions at the input"] * bool(config.get("position_biased_input", True))
    return ["Enhanced Mask Decoder (EMD)" if part == "logits.mlm_emd" else part for part in parts]


def judge(case, output, bits_too):
    """Prints a line a tensor and a sentence; was something compared, and all of it right?"""
    tables = ((HERE / name).read_text().splitlines() for name in ("bars.tsv", "bits.tsv"))
    (bars,), bits = ([row for row in csv.DictReader(table, delimiter="\t") if row["name"] == case] for table in tables)
    (expected, _), (found, kinds), verdicts, gathered = read(HERE / case / "expected.safetensors"), read(output), [], {}
    real, rows, compared = expected["attention_mask"].astype(bool), expected.get("probs_rows"), 0
    for name in [n for n in kinds if n.startswith("attn.") and n.endswith(".logits")]:  # of which cases hold the terms alone
        terms = [values for other, values in expected.items() if other in [name[:-6] + term for term in ("c2c", "c2p", "p2c")]]
        expected.update({name: sum(terms)} if terms else {})
    wanted, wholes = outputs_of(expected), set()
    for name in [n for n in wanted if n.endswith(".rows") and n not in found and getattr(found.get(n[:-5]), "ndim", 0) == 4]:
        found[name], kinds[name] = found[name[:-5]][:, :, rows[rows < found[name[:-5]].shape[2]]], kinds[name[:-5]]  # of all rows these
        wholes.add(name[:-5])
    for name in outputs_of(kinds):
        parts = plain(name).removesuffix(".rows").split(".")
        quantity = {"hidden_states": "hidden", "emd": "emd", "attn": parts[-1]}.get(parts[0], name)
        group = quantity if name == plain(name).removesuffix(".rows") else name  # its name in bits.tsv
        if kinds[name] not in ("F32", "F64"):
            verdicts.append((False, f"{name:24} has the type {kinds[name]}, expected F32 or F64"))
        elif name in expected and expected[name].shape != found[name].shape:
            verdicts.append((False, f"{name:24} has the shape {list(found[name].shape)}, expected {list(expected[name].shape)}"))
        else:
            try:
                ours = selected(name, found[name], real, rows)
            except (IndexError, ValueError):
                verdicts.append((False, f"{name:24} has the shape {list(found[name].shape)}, which does not suit the case's tokens"))
                continue
            gathered[group] = gathered.get(group, []) + ours
            if name in expected:
                compared += 1
                error = np.max([np.abs(a - b).max() for a, b in zip(ours, selected(name, expected[name], real, rows))])  # NaN if one is
                limit = max(3 * float(bars[BARS.get(quantity, "f32_logits" if quantity == name else "f32_components")] or 0), 2e-6)
                verdicts.append((error <= limit, f"{name:24} error {error:.2e}  bar {limit:.2e}"))
            elif not all(np.isfinite(part).all() for part in ours):
                verdicts.append((False, f"{name:24} holds what is no number"))
    verdicts += [(False, f"{name:24} holds what is no number") for name in sorted({*found} - {*outputs_of(kinds)}) if not np.isfinite(found[name]).all()]
    ids = found.get("input_ids", expected["input_ids"])
    if ids.shape != real.shape or (ids != expected["input_ids"])[real].any():
        verdicts.append((False, "input_ids                are not those of the case"))
    layers = json.loads((HERE / case / "config.json").read_text())["num_hidden_layers"]
    for row in [row for row in bits if bits_too and not row["quantity"].startswith(("int", "ms_clamp."))]:  # not this project's low precision, nor the variant
        quantity = row["quantity"]
        names = [f"hidden_states.{k}" for k in range(layers + 1)] if quantity == "hidden" else [quantity] if "." in quantity else [f"attn.{k}.{quantity}" for k in range(layers)]
        absent = [n for n in names if n not in kinds]
        if absent or quantity not in gathered:  # nothing differs, but nothing can be said
            verdicts.append((None, f"bits of {quantity}: not all of it is there, so that it has no checksum: {' '.join(absent) or quantity} missing"))
        else:
            verdicts.append((checksum(gathered[quantity]) == row["bits"], f"bits of {quantity}"))
    print("".join(f"{'' if fine is None else 'ok' if fine else 'FAIL':4} {what}\n" for fine, what in verdicts), end="")
    others = {n for n in kinds if n not in expected and n not in wholes}
    known = {n for n in others if RESULT.fullmatch(plain(n)) and int((re.search(r"\.(\d+)", n) or [0, 0])[1]) < layers + ("hidden" in n)}
    for what, names in (("missing", {*wanted} - {*kinds}), ("not compared, as the case has no values of it", known), ("not of this case", others - known)):
        if names:
            print(f"{what}: {' '.join(sorted(names))}")
    failed = sum(fine is not None and not fine for fine, _ in verdicts)
    print(f"{case}: {compared} of {len(wanted)} tensors compared, {failed} checks failed" if compared or failed else f"{output}: no tensor of {case} to compare")
    return compared > 0 and not failed


def main(arguments):
    cases = sorted(folder.parent.name for folder in HERE.glob("[0-9]*/expected.safetensors"))
    options, rest = [a for a in arguments if a.startswith("--")], [a for a in arguments if not a.startswith("--")]
    if options == ["--list"] and not rest:
        print("\n".join(f"{case:28} {', '.join(parts)}" for parts, case in sorted(((needs(c), c) for c in cases), key=lambda x: (len(x[0]), x[1]))))
        return 0
    if options == ["--help"] and not rest:
        print(__doc__)
        return 0
    whole = "--all" in options
    if len(rest) != (1 if whole else 2) or not set(options) <= {"--bits", "--all"}:
        print(__doc__, file=sys.stderr)
        return 2
    meant = [c for c in cases if rest[0] in (c, c.split("-")[0]) or Path(rest[0]).resolve() == HERE / c]  # a name, a number, a path
    pairs = [(case, Path(rest[0]) / f"{case}.safetensors") for case in cases] if whole else [(*meant, rest[1])]
    if (not Path(rest[0]).is_dir()) if whole else len(meant) != 1:
        print(f"{rest[0]}: no such {'folder' if whole else 'case; --list names them'}", file=sys.stderr)
        return 2
    results = [judge(*pair, "--bits" in options) for pair in pairs if not whole or pair[1].exists()]
    if whole:
        print(f"{len(results)} of {len(pairs)} cases were there, {results.count(False)} of them failed")
    return int(not results or not all(results))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
