#!/usr/bin/env python3
"""Whose answers depend on the batch? The same sentences, classified in batches, alone, in another order and by another number of threads.

    tools/label_flips.py MODEL --file SENTENCES --work W [--engines deberta,deberta-int8,...] [--out TABLE.md]

MODEL is a folder with a sequence classifier that transformers opens. Each engine and condition is a fresh process, which writes the
logits of all texts. A condition is compared with the same engine's `batches of 32`: texts whose logits differ in a bit, the largest
change, and texts with another label, with the 95 % interval of Wilson. `again` is the control: the same condition in a second process.
Batches are padded to their longest text. Engines get the same ids.

ONNX Runtime's int8 is its default dynamic quantisation (QInt8, one scale a matrix; with 7 bits of weights where the processor has no VNNI, as
it advises), `-channel` has a scale a channel. PyTorch's int8 is `quantize_dynamic` of its linear layers.

Needs the installed package deberta_c and tools/peers-requirements.txt. SPDX-License-Identifier: MIT
"""
import argparse
import dataclasses
import json
import math
import os
import subprocess
import sys
from pathlib import Path

import numpy as np

BATCH = 32


@dataclasses.dataclass(frozen=True)
class Condition:
    name: str
    batch: int = BATCH
    threads: int = 1
    order: int = 0  # seed of a permutation of the texts; 0: as they stand
    isa: str = ""  # of deberta only: no switch of the others is documented to choose all of their kernels


BASE = Condition(f"batches of {BATCH}")
CONDITIONS = [Condition("again"), Condition("alone", batch=1), Condition("another order", order=1), Condition("2 threads", threads=2)]


# ------------------------------------------------------------------------------------------------------- one process


def open_deberta(precision):
    def opened(model, _graph, condition):
        import deberta_c

        m = deberta_c.Model(model, threads=condition.threads, precision=precision, isa=condition.isa or None)
        return lambda ids, mask: m.encode([list(map(int, row[:n])) for row, n in zip(ids, mask.sum(1))], hidden=None, logits=True)["logits.sequence"]

    return opened


def open_torch(precision):
    def opened(model, _graph, condition):
        import torch
        import transformers

        torch.set_num_threads(condition.threads)
        m = transformers.AutoModelForSequenceClassification.from_pretrained(model, dtype=torch.float32).eval()
        if precision == "int8":
            m = torch.ao.quantization.quantize_dynamic(m, {torch.nn.Linear}, dtype=torch.qint8)

        def run(ids, mask):
            with torch.inference_mode():
                return m(input_ids=torch.from_numpy(ids), attention_mask=torch.from_numpy(mask)).logits.numpy()

        return run

    return opened


def open_onnxruntime(precision):
    def opened(_model, graph, condition):
        import onnxruntime

        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = condition.threads
        session = onnxruntime.InferenceSession(graph + precision, options, providers=["CPUExecutionProvider"])
        return lambda ids, mask: session.run(None, {"input_ids": ids, "attention_mask": mask})[0]

    return opened


ENGINES = {
    "deberta": open_deberta("float32"),
    "deberta-int16": open_deberta("int16"),
    "deberta-int8": open_deberta("int8"),
    "torch": open_torch("float32"),
    "torch-int8": open_torch("int8"),
    "onnxruntime": open_onnxruntime(".onnx"),
    "onnxruntime-int8": open_onnxruntime("-int8.onnx"),
    "onnxruntime-int8-channel": open_onnxruntime("-int8-channel.onnx"),
}
DEFAULT = "deberta,deberta-int8,torch,torch-int8,onnxruntime,onnxruntime-int8,onnxruntime-int8-channel"


def classify(model, engine, condition, work, out):
    """Writes the logits [texts][labels]."""
    texts = np.load(work / "texts.npz")
    rows = np.split(texts["ids"], texts["starts"][1:-1])
    order = np.random.default_rng(condition.order).permutation(len(rows)) if condition.order else np.arange(len(rows))
    run, logits = ENGINES[engine](str(model), str(work / "model"), condition), None
    for at in range(0, len(rows), condition.batch):
        which = order[at : at + condition.batch]
        lengths = np.array([len(rows[i]) for i in which])
        mask = (np.arange(lengths.max()) < lengths[:, None]).astype(np.int64)
        ids = np.zeros_like(mask)
        ids[mask.astype(bool)] = np.concatenate([rows[i] for i in which])
        found = np.asarray(run(ids, mask), np.float32)
        logits = np.full((len(rows), found.shape[1]), np.nan, np.float32) if logits is None else logits
        logits[which] = found
    np.save(out, logits)


def prepare(model, file, work):
    """The texts as ids, and the graphs of ONNX: in a process of its own, since PyTorch takes its threads once."""
    import deberta_c
    import onnxruntime
    import torch
    import transformers
    from onnxruntime.quantization import QuantType, quantize_dynamic
    from peers_worker import saturates

    m = deberta_c.Model(str(model), threads=1)
    ids = [np.array(m.tokenize(line).ids, np.int64) for line in Path(file).read_text(encoding="utf-8").splitlines() if line.strip()]
    np.savez(work / "texts.npz", ids=np.concatenate(ids), starts=np.cumsum([0] + [len(row) for row in ids]))
    module = transformers.AutoModelForSequenceClassification.from_pretrained(model, dtype=torch.float32).eval()

    class Logits(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = module

        def forward(self, input_ids, attention_mask):
            return self.inner(input_ids=input_ids, attention_mask=attention_mask).logits

    example, axes = torch.randint(4, 1000, (2, 48)), {0: "batch", 1: "n"}
    graph, folded = str(work / "model.onnx"), str(work / "model-folded.onnx")
    with torch.no_grad():
        torch.onnx.export(Logits().eval(), (example, torch.ones_like(example)), graph, dynamo=False, opset_version=18, input_names=["input_ids", "attention_mask"],
                          output_names=["logits"], dynamic_axes={"input_ids": axes, "attention_mask": axes, "logits": {0: "batch"}})  # fmt: skip
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_BASIC
    options.optimized_model_filepath = folded
    onnxruntime.InferenceSession(graph, options, providers=["CPUExecutionProvider"])
    for name, told in {"-int8": {}, "-int8-channel": {"per_channel": True}}.items():
        quantize_dynamic(folded, str(work / f"model{name}.onnx"), weight_type=QuantType.QInt8, reduce_range=saturates(), **told)
    os.remove(folded)


# ------------------------------------------------------------------------------------------------------------- table


def wilson(count, of, z=1.96):
    """The 95 % interval of a share, as counts."""
    p, d = count / of, 1 + z * z / of
    middle, half = (p + z * z / 2 / of) / d, z / d * math.sqrt(p * (1 - p) / of + z * z / 4 / of / of)
    return max(0.0, middle - half) * of, min(1.0, middle + half) * of


def compared(base, other):
    """Cells of a row; both [texts][labels]."""
    texts = len(base)
    differ = int((base.view(np.int32) != other.view(np.int32)).any(1).sum())
    flips = int((base.argmax(1) != other.argmax(1)).sum())
    low, high = wilson(flips, texts)
    largest = np.abs(base.astype(np.float64) - other).max()
    return [f"{texts:,}", f"{differ:,}", f"{largest:.2g}" if largest else "0", f"**{flips}** ({low:.1f} to {high:.1f})"]


def measure(options, engine, condition):
    out = options.work / f"{engine}.npy"
    subprocess.run([sys.executable, __file__, "--worker", json.dumps([str(options.model), engine, dataclasses.asdict(condition), str(options.work), str(out)])],
                   check=True, stderr=subprocess.DEVNULL)  # fmt: skip
    return np.load(out)


def rows_of(options, engine):
    base = measure(options, engine, BASE)
    if not np.isfinite(base).all():
        sys.exit(f"label_flips.py: {engine} gives logits that are not finite")
    own = engine.split("-")[0] == "deberta"
    for condition in CONDITIONS + [Condition(f"the {isa} kernels", isa=isa) for isa in options.tiers if own]:
        yield [engine, condition.name, *compared(base, measure(options, engine, condition))]


def main():
    if sys.argv[1:2] == ["--worker"]:
        model, engine, condition, work, out = json.loads(sys.argv[2])
        return classify(model, engine, Condition(**condition), Path(work), out)
    if sys.argv[1:2] == ["--prepare"]:
        return prepare(*map(Path, sys.argv[2:]))
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("model", type=Path)
    parser.add_argument("--file", type=Path, required=True, help="a text a line")
    parser.add_argument("--work", type=Path, required=True, help="folder for graphs and logits")
    parser.add_argument("--engines", default=DEFAULT, type=lambda text: text.split(","))
    parser.add_argument("--tiers", default="avx2", type=lambda text: [t for t in text.split(",") if t], help="other kernels of deberta to compare")
    parser.add_argument("--out", type=Path, help="the table, as Markdown; default standard output")
    options = parser.parse_args()
    unknown = [e for e in options.engines if e not in ENGINES]
    if unknown:
        parser.error(f"unknown engine {unknown[0]}: expected {', '.join(ENGINES)}")
    options.work.mkdir(parents=True, exist_ok=True)
    subprocess.run([sys.executable, __file__, "--prepare", options.model, options.file, options.work], check=True)
    titles = ["engine", f"{BASE.name} against", "texts", "differ in a bit", "largest change of a logit", "another label (95 %)"]
    lines = ["| " + " | ".join(titles) + " |", "|---|---|--:|--:|--:|--:|"]
    for engine in options.engines:
        for row in rows_of(options, engine):
            lines.append("| " + " | ".join(row) + " |")
            print(lines[-1], file=sys.stderr, flush=True)
    text = "\n".join(lines) + "\n"
    if options.out:
        options.out.write_text(text, encoding="utf-8")
    else:
        print(text, end="")


if __name__ == "__main__":
    main()
