"""The engines of label_flips.py: each opens a prepared model and gives a function (ids, mask) -> logits.

int8 of ONNX Runtime: "dynamic" is its default (one scale a matrix, activations scaled by the batch), "channel" has a scale an output channel of the weights,
"7 bit" weights of seven bits besides, as it advises for processors without VNNI, "static" scales of activations that were measured before.
"precise" is the same file with the option of a session, session.x64quantprecision, which keeps products of bytes from overflowing where VNNI is missing.
Of OpenVINO it is NNCF's, of PyTorch `quantize_dynamic` of linear layers.

Packages are imported by the engine that uses them. SPDX-License-Identifier: MIT
"""
import importlib.util
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

sys.path.append(str(Path(__file__).resolve().parents[1] / "tools"))
from rivals import engines, graphs  # noqa: E402


def deberta(precision):
    def opened(work, threads):
        if os.environ.get("LABELS_PROGRAM"):
            return lambda ids, mask: encoded(work, precision, threads, [row[:n] for row, n in zip(ids, mask.sum(1))])
        import deberta_c
        model = deberta_c.Model(str(work / "model"), threads=threads, precision=precision)
        return lambda ids, mask: model.encode([list(map(int, row[:n])) for row, n in zip(ids, mask.sum(1))], hidden=None, logits=True)["logits.sequence"]
    return opened


def encoded(work, precision, threads, rows):
    """Logits by a program instead of the library: of another architecture, under an emulator."""
    import safetensors.numpy
    with tempfile.TemporaryDirectory() as scratch:
        out = Path(scratch) / "logits.safetensors"
        texts = [word for row in rows for word in ("--ids", ",".join(map(str, row)))]
        command = [*os.environ["LABELS_PROGRAM"].split(), "encode", str(work / "model"), *texts, "--precision", precision, "--threads", str(threads)]
        subprocess.run([*command, "--logits", "--quiet", "-o", str(out)], check=True)
        return safetensors.numpy.load_file(out)["logits.sequence"]


def pytorch(precision):
    def opened(work, threads):
        import torch
        import transformers
        torch.set_num_threads(threads)
        model = transformers.AutoModelForSequenceClassification.from_pretrained(work / "model", dtype=torch.float32).eval()
        if precision == "int8":
            model = torch.ao.quantization.quantize_dynamic(model, {torch.nn.Linear}, dtype=torch.qint8)

        def run(ids, mask):
            with torch.inference_mode(), torch.autocast("cpu", dtype=torch.bfloat16, enabled=precision == "bfloat16"):
                return model(input_ids=torch.from_numpy(ids), attention_mask=torch.from_numpy(mask)).logits.float().numpy()
        return run
    return opened


def onnx(name, precise=False):
    def opened(work, threads):
        session = engines.onnx_session(work / f"model{name}.onnx", threads, {"session.x64quantprecision": "1"} if precise else {})
        return lambda ids, mask: session.run(None, {"input_ids": ids, "attention_mask": mask})[0]
    return opened


def openvino(name, precision):
    def opened(work, threads):
        _, request = engines.openvino_request(work / name, threads, precision)
        return lambda ids, mask: np.array(request.infer({"input_ids": ids, "attention_mask": mask})[0], copy=True)
    return opened


ENGINES = {"deberta": deberta("float32"), "deberta int16": deberta("int16"), "deberta int8": deberta("int8"),
           "torch": pytorch("float32"), "torch bfloat16": pytorch("bfloat16"), "torch int8": pytorch("int8"),
           "onnxruntime": onnx(""), "onnxruntime int8 dynamic": onnx("-int8"), "onnxruntime int8 channel": onnx("-int8-channel"),
           "onnxruntime int8 7 bit": onnx("-int8-7bit"), "onnxruntime int8 static": onnx("-int8-static"),
           "onnxruntime int8 dynamic precise": onnx("-int8", True), "onnxruntime int8 channel precise": onnx("-int8-channel", True),
           "onnxruntime int8 static precise": onnx("-int8-static", True),
           "openvino": openvino("model.onnx", "f32"), "openvino bfloat16": openvino("model.onnx", "bf16"), "openvino int8": openvino("model-int8.xml", "f32")}


def packages(engines):
    """Folders of the installed packages of these engines, and this project's library: what chooses kernels by the processor."""
    names = {engine.split()[0] for engine in engines}
    if "deberta" in names and os.environ.get("DEBERTA_LIBRARY"):
        yield os.environ["DEBERTA_LIBRARY"]
    yield from (str(Path(importlib.util.find_spec(name).origin).parent) for name in ("onnxruntime", "openvino", "torch") if name in names)


# -------------------------------------------------------------------------------------------------------------- graphs


def write_graphs(model, work, scales, engines):
    """The model in float32 for transformers and this program, as a graph, and quantised; static scales where there are texts for them."""
    import torch
    import transformers
    module = transformers.AutoModelForSequenceClassification.from_pretrained(model, dtype=torch.float32).eval()
    module.save_pretrained(work / "model")
    plain, folded = work / "model.onnx", work / "model-folded.onnx"
    export(module, plain)
    graphs.fold(plain, folded)
    asked = {engine.removesuffix(" precise") for engine in engines}
    for kind, name, told in (("dynamic", "", {}), ("channel", "-channel", {"per_channel": True}), ("7 bit", "-7bit", {"per_channel": True, "reduce_range": True})):
        if f"onnxruntime int8 {kind}" in asked:
            graphs.quantise(folded, work / f"model-int8{name}.onnx", **told)
    texts = [(np.array([ids], np.int64), np.ones((1, len(ids)), np.int64)) for ids in scales]
    if texts and "onnxruntime int8 static" in asked:
        quantise_static(folded, work / "model-int8-static.onnx", texts)
    if texts and "openvino int8" in asked:
        graphs.calibrate(plain, work / "model-int8.xml", texts)
    folded.unlink()


def export(module, path):
    import torch

    class Logits(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = module

        def forward(self, input_ids, attention_mask):
            return self.inner(input_ids=input_ids, attention_mask=attention_mask).logits

    example, axes = torch.randint(4, 1000, (2, 48)), {0: "batch", 1: "n"}
    graphs.export(Logits().eval(), path, (example, torch.ones_like(example)), {"input_ids": axes, "attention_mask": axes, "logits": {0: "batch"}})


def quantise_static(folded, path, texts):
    from onnxruntime.quantization import CalibrationDataReader, QuantType, quantize_static

    class Reader(CalibrationDataReader):
        def __init__(self):
            self.feeds = iter(texts)

        def get_next(self):
            found = next(self.feeds, None)
            return found and dict(zip(("input_ids", "attention_mask"), found))

    quantize_static(str(folded), str(path), Reader(), per_channel=True, weight_type=QuantType.QInt8, op_types_to_quantize=["MatMul", "Gemm"])
