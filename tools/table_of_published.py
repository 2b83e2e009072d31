#!/usr/bin/env python3
"""The table of published results on docs/studies/benchmarks.md, from docs/studies/data/benchmarks.csv. SPDX-License-Identifier: MIT"""
import csv
from pathlib import Path

MODELS = ("BERT-large", "RoBERTa-large", "XLNet-large", "DeBERTa-large", "DeBERTa-v2-xxlarge", "DeBERTa-base", "DeBERTa-v3-base", "DeBERTa-v3-large")
BENCHMARKS = ("SQuAD 1.1 (F1)", "SQuAD 1.1 (EM)", "SQuAD 2.0 (F1)", "SQuAD 2.0 (EM)", "GLUE MNLI-m (accuracy)", "GLUE SST-2 (accuracy)",
              "GLUE QNLI (accuracy)", "GLUE CoLA (MCC)", "GLUE RTE (accuracy)", "GLUE MRPC (accuracy)", "GLUE QQP (accuracy)", "GLUE STS-B (Pearson)",
              "GLUE MNLI-mm (accuracy)")

path = Path(__file__).resolve().parent.parent / "docs" / "studies" / "data" / "benchmarks.csv"
lines = [line for line in path.read_text(encoding="utf-8").splitlines() if not line.startswith("#")]
rows = list(csv.DictReader(lines))
found = {(f"{row['benchmark']} ({row['metric']})", row["model"]): row["value"] for row in rows if row["model"] != "quoted"}
print("| quoted as | value | by | finding |\n|---|--:|---|---|")
for row in rows:
    if row["model"] == "quoted":
        name = f"{row['benchmark']} ({row['metric']})"
        same = [model for (benchmark, model), value in found.items() if benchmark == name and value == row["value"]]
        other = [f"{benchmark} of {model}" for (benchmark, model), value in found.items()
                 if benchmark.split()[0] == name.split()[0] and value == row["value"]]
        finding = f"as published, for {same[0]}" if same else f"wrong: it is {other[0]}" if other else "not found"
        print(f"| {name} | {row['value']} | {row['source']} | {finding} |")
print()
print("| | " + " | ".join(MODELS) + " |\n|---|" + "--:|" * len(MODELS))
for benchmark in BENCHMARKS:
    print(f"| {benchmark} | " + " | ".join(found.get((benchmark, model), "-") for model in MODELS) + " |")
print()
for (benchmark, model), value in found.items():
    print(f"{model.replace('1.5B', '1500M')}, {benchmark.replace('1.1', '1').replace('2.0', '2')}: {value}")
