#!/usr/bin/env python3
"""The table of published results on docs/studies/benchmarks.md, from docs/studies/data/benchmarks.csv. SPDX-License-Identifier: MIT"""
import csv
from decimal import Decimal
from pathlib import Path

MODELS = ("BERT-large", "RoBERTa-large", "XLNet-large", "DeBERTa-large", "DeBERTa-v2-xxlarge", "DeBERTa-base", "DeBERTa-v3-base", "DeBERTa-v3-large")
BENCHMARKS = ("SQuAD 1.1 (F1)", "SQuAD 1.1 (EM)", "SQuAD 2.0 (F1)", "SQuAD 2.0 (EM)", "GLUE MNLI-m (accuracy)", "GLUE SST-2 (accuracy)",
              "GLUE QNLI (accuracy)", "GLUE CoLA (MCC)", "GLUE RTE (accuracy)", "GLUE MRPC (accuracy)", "GLUE QQP (accuracy)", "GLUE STS-B (Pearson)",
              "GLUE MNLI-mm (accuracy)")

path = Path(__file__).resolve().parent.parent / "docs" / "studies" / "data" / "benchmarks.csv"
lines = [line for line in path.read_text(encoding="utf-8").splitlines() if not line.startswith("#")]
rows = list(csv.DictReader(lines))
found = {(f"{row['benchmark']} ({row['metric']})", row["model"]): row["value"] for row in rows if row["model"] != "quoted"}


def judged(benchmark, quoted, model):
    """What a quoted number is: its published value, if there is one, and the finding."""
    published = [found[name, model] for name in found_as(benchmark) if (name, model) in found]
    same = [(name, of) for (name, of), value in found.items() if Decimal(value).quantize(Decimal("0.1")) == Decimal(quoted)]
    # first the same benchmark and model, then another model, then another benchmark of the model
    for kind, fits in (("as published", lambda name, of: name in found_as(benchmark) and of == model), ("of", lambda name, of: name in found_as(benchmark)),
                       ("of its", lambda name, of: of == model and name.split()[0] == benchmark.split()[0])):
        for name, of in same:
            if fits(name, of):
                return published, {"as published": kind, "of": f"of {of}" + (", dev" if "dev" in name else ""), "of its": f"its {name}"}[kind]
    return published, "not found"


def found_as(benchmark):
    """An average of GLUE is of the test set or of the dev set."""
    return ["GLUE test (average)", "GLUE dev (average)"] if benchmark == "GLUE (average)" else [benchmark]


print("| quoted as | of | value | published | finding |\n|---|---|--:|--:|---|")
findings = []
for row in rows:
    if row["model"] == "quoted":
        name, of = f"{row['benchmark']} ({row['metric']})", row["source"].partition(": ")[2]
        published, finding = judged(name, row["value"], of)
        findings.append(finding)
        print(f"| {name} | {of} | {row['value']} | {', '.join(published) or '-'} | {finding} |")
right, missing = findings.count("as published"), findings.count("not found")
print(f"\nQuoted scores: {len(findings)}; as published {right}; of another model or benchmark {len(findings) - right - missing}; not found {missing}\n")
print("| | " + " | ".join(MODELS) + " |\n|---|" + "--:|" * len(MODELS))
for benchmark in BENCHMARKS:
    print(f"| {benchmark} | " + " | ".join(found.get((benchmark, model), "-") for model in MODELS) + " |")
print()
for (benchmark, model), value in found.items():
    print(f"{model.replace('1.5B', '1500M')}, {benchmark.replace('1.1', '1').replace('2.0', '2')}: {value}")
