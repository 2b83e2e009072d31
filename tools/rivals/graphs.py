"""The files that ONNX Runtime and OpenVINO read: what PyTorch exports of a model, and what their own tools quantise of that.

SPDX-License-Identifier: MIT
"""
import os
from pathlib import Path

from rivals.shapes import SHAPES, TABLE, drawn_batches, lengths_up_to, same_lengths, texts_of_a_book, torch_model

SHORT_TRACE, LONG_TRACE = 48, 1024  # lengths in tokens
ANY_LENGTH = ("lean-any", "lean-logits")  # beginnings of kinds of lean graphs for texts of any length


def kinds_of(kind, one_length, answer="last_hidden_state"):
    """Returns the kinds of files that an engine reads whose graph is of this kind. There are two of a lean one for texts of any length:
    without a mask and with one."""
    if not kind or not kind.startswith("lean") or one_length:
        return (kind,) if kind else ()
    stem, precision = ANY_LENGTH[answer == "logits"], kind.removeprefix("lean")
    return f"{stem}{precision}", f"{stem}-padded{precision}"


def traced_length(kind, name, n):
    """Of the input with which the graph for n tokens is traced. A trace keeps which branch v1's distances took: a graph from
    a short input gathers beyond the table of positions on longer ones, one from a long input uses the whole table on short ones.
    A lean graph is for its own length, or for texts of any length up to that of the table, or of the longest."""
    if kind.startswith("lean"):
        return max(n, TABLE) if kind.startswith(ANY_LENGTH) else n
    return LONG_TRACE if SHAPES[name].version == 1 and n > TABLE else SHORT_TRACE


def saturates():
    """Returns true if the processor multiplies bytes in 16 bits, which overflow; ONNX Runtime advises weights of 7 bits there."""
    flags = Path("/proc/cpuinfo").read_text("ascii", errors="replace")
    return "avx2" in flags and not any(name in flags for name in ("avx512_vnni", "avx_vnni"))


# -------------------------------------------------------------------------------------------------------- of any model


def export(module, path, example, axes):
    """Exports a module. axes: the free dimensions of each input by name, and of the output, which comes last."""
    import torch

    *inputs, output = axes
    with torch.no_grad():
        torch.onnx.export(module, example, str(path), dynamo=False, opset_version=18, input_names=inputs, output_names=[output],
                          dynamic_axes=axes)  # fmt: skip


def fold(graph, path):
    """Constants are folded, so that the quantiser sees weights as weights and does not quantise projections of positions as products of
    each run."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_BASIC
    options.optimized_model_filepath = str(path)
    onnxruntime.InferenceSession(str(graph), options, providers=["CPUExecutionProvider"])


def quantise(folded, path, **told):
    """Quantises weights to eight bits, with activations scaled by the batch."""
    from onnxruntime.quantization import QuantType, quantize_dynamic

    quantize_dynamic(str(folded), str(path), weight_type=QuantType.QInt8, **told)


def calibrate(graph, path, texts):
    """Quantises for OpenVINO with static scales of activations, from texts of (ids, mask)."""
    import nncf
    import openvino

    model = openvino.Core().read_model(graph)
    names = [given.any_name for given in model.inputs]
    feeds = nncf.Dataset([{name: {"input_ids": ids, "attention_mask": mask}[name] for name in names} for ids, mask in texts])
    quantised = nncf.quantize(model, feeds, model_type=nncf.ModelType.TRANSFORMER, subset_size=len(texts))
    partial = Path(f"{path}.part.xml")
    openvino.save_model(quantised, partial, compress_to_fp16=False)
    partial.with_suffix(".bin").rename(Path(path).with_suffix(".bin"))
    partial.rename(path)


# ---------------------------------------------------------------------------------------------------- of peers' models


def plain_graph(folder, path, traced):
    import torch

    ids, axes = torch.randint(1, 100, (1, traced)), {0: "batch", 1: "n"}
    export(torch_model(folder, 1), path, (ids, torch.ones_like(ids)), dict.fromkeys(("input_ids", "attention_mask", "last_hidden_state"), axes))


def lean_graph(answer="last_hidden_state", any_length=True, padded=False):
    """Of the lean encoder or classifier, for texts of one length or of any up to it; padded: with a mask."""

    def make(folder, path, longest):
        import torch

        from rivals.lean_encoder import lean_module

        module = lean_module(torch_model(folder, 1, answer=answer).model, longest, answer)
        ids = torch.randint(1, 100, (2, min(SHORT_TRACE, longest)) if any_length else (1, longest))
        given = {"input_ids": ids, "attention_mask": torch.ones_like(ids)} if padded else {"input_ids": ids}
        axes = {0: "batch", 1: "n"} if any_length else {0: "batch"}
        export(module, path, tuple(given.values()), dict.fromkeys(given, axes) | {answer: {0: "batch"} if answer == "logits" else axes})

    return make


def int8_graph(**told):
    def make(folder, path, traced):
        plain, folded = f"{path}.plain", f"{path}.folded"
        plain_graph(folder, plain, traced)
        fold(plain, folded)
        quantise(folded, path, reduce_range=saturates(), **told)
        os.remove(plain)
        os.remove(folded)

    return make


def calibrated_graph(kind, texts):
    """Calibrates the graph of this kind, which is made first if it is missing."""

    def make(folder, path, traced):
        ready, plain = Path(path).with_name(f"{kind}-{traced}.onnx"), f"{path}.onnx"
        if not ready.exists():
            GRAPHS[kind][1](folder, plain, traced)
        calibrate(ready if ready.exists() else plain, path, texts(folder, traced))
        Path(plain).unlink(missing_ok=True)

    return make


# Suffix of the file, and the function that makes it from a folder for a length.
GRAPHS = {
    "float32": ("onnx", plain_graph),
    "int8": ("onnx", int8_graph()),
    "int8-channel": ("onnx", int8_graph(per_channel=True)),
    "int8-calibrated": ("xml", calibrated_graph("float32", drawn_batches)),
    "lean": ("onnx", lean_graph(any_length=False)),
    "lean-any": ("onnx", lean_graph()),
    "lean-any-padded": ("onnx", lean_graph(padded=True)),
    "lean-logits": ("onnx", lean_graph("logits")),
    "lean-logits-padded": ("onnx", lean_graph("logits", padded=True)),
    "lean-int8": ("xml", calibrated_graph("lean", texts_of_a_book(same_lengths))),
}
for form in (form for stem in ANY_LENGTH for form in (stem, f"{stem}-padded")):
    GRAPHS[f"{form}-int8"] = ("xml", calibrated_graph(form, texts_of_a_book(lengths_up_to)))


def write_graph(folder, path, kind, traced):
    """Writes under a temporary name until it is complete; the weights next to OpenVINO's XML come first."""
    suffix, make = GRAPHS[kind]
    if suffix == "xml":
        make(folder, path, traced)
        return
    make(folder, f"{path}.part", traced)
    os.rename(f"{path}.part", path)
