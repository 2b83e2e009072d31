"""The adapters of other engines, and of this project's program: a row each of a list, which has how it is opened and what it reads.

An adapter says what has to be prepared (`graph`, made by graphs.py), and opens: it is a function from a Job to a function
(ids, mask) -> last hidden state, which runs once and whose answer is checked. All packages are imported by the engine that uses
them, so that no process pays for another engine's memory or start. Lean engines leave the mask out where no text is padded, as an
expert would.

SPDX-License-Identifier: MIT
"""
import functools
import importlib.util
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any

from rivals.shapes import SHAPES, torch_model

Encode = Callable[[Any, Any], Any]


@dataclass(frozen=True)
class Job:
    folder: str
    graphs: tuple[str, ...]  # files; of two the second has a mask, and the first is for batches without padding
    threads: int
    shape: tuple[int, int] | None  # batch and length, if all inputs have the same
    longest: int  # tokens of a text, at most
    answer: str = "last_hidden_state"  # or logits


def absent(packages):
    return [name for name in packages if not importlib.util.find_spec(name)]


@dataclass(frozen=True)
class Engine:
    open: Callable[[Job], tuple[Encode, str]]  # function that returns the encoder and "name version"
    summary: str
    precision: str = "float32"
    graph: str | None = None  # kind of file that it reads: a name of graphs.GRAPHS
    environment: tuple[tuple[str, str], ...] = ()
    versions: tuple[int, ...] = (1, 3)  # versions of DeBERTa that it can run
    packages: tuple[str, ...] = ()  # packages that it needs
    peer: bool = True  # false: this project's program

    @property
    def missing(self):
        return absent(self.packages)


@dataclass(frozen=True)
class Own:
    """A way to run this project's program, which measures itself."""

    summary: str
    precision: str = "float32"
    packed: bool = False  # maps the file of `deberta pack`


def torch_version():
    import torch
    import transformers

    return f"torch {torch.__version__}, transformers {transformers.__version__}"


def torch_encode(module, context):
    """Returns an encoder that runs a module on arrays inside a context such as autocast, made anew for each call."""
    import torch

    def encode(ids, mask):
        with torch.inference_mode(), context():
            return module(torch.from_numpy(ids), None if mask is None else torch.from_numpy(mask)).float().numpy()

    return encode


def open_torch(job):
    return torch_encode(torch_model(job.folder, job.threads, answer=job.answer), nullcontext), torch_version()


def open_torch_bf16(job):
    import torch

    module = torch_model(job.folder, job.threads)
    return torch_encode(module, lambda: torch.autocast("cpu", dtype=torch.bfloat16)), torch_version()


def open_torch_compile(job):
    import torch

    return torch_encode(torch.compile(torch_model(job.folder, job.threads), dynamic=job.shape is None), nullcontext), torch_version()


def open_torch_lean(job):
    from rivals.lean_encoder import lean_module

    encode = torch_encode(lean_module(torch_model(job.folder, job.threads, answer=job.answer).model, job.longest, job.answer), nullcontext)
    return lambda ids, mask: encode(ids, None if mask.all() else mask), torch_version()


def open_accelerate(job):
    import deberta_c

    module = torch_model(job.folder, job.threads, answer=job.answer)
    deberta_c.accelerate(module.model, threads=job.threads)
    return torch_encode(module, nullcontext), f"deberta_c {deberta_c.__version__}, {torch_version()}"


def by_padding(job, open_graph):
    """Returns an encoder that gives each batch to the graph that is for it. open_graph makes an encoder of a file; the first is opened
    here, the second when a batch first needs it."""
    opened = functools.cache(open_graph)
    opened(job.graphs[0])
    return lambda ids, mask: opened(job.graphs[0 if mask.all() else -1])(ids, mask)


def onnx_session(path, threads, told=()):
    """A session; told: entries of its configuration by name."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    for name, value in dict(told).items():
        options.add_session_config_entry(name, value)
    options.intra_op_num_threads, options.inter_op_num_threads = threads, 1
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_ALL
    return onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])


def open_onnxruntime(job):
    import onnxruntime

    def open_graph(path):
        session = onnx_session(path, job.threads)
        names = [given.name for given in session.get_inputs()]
        return lambda ids, mask: session.run(None, {name: {"input_ids": ids, "attention_mask": mask}[name] for name in names})[0]

    return by_padding(job, open_graph), f"onnxruntime {onnxruntime.__version__}"


def openvino_request(path, threads, hint, shape=None):
    """Returns the names of its inputs, and the request."""
    import openvino

    core = openvino.Core()
    model = core.read_model(path)
    names = [given.any_name for given in model.inputs]
    if shape:
        model.reshape({name: list(shape) for name in names})
    options = {"PERFORMANCE_HINT": "LATENCY", "INFERENCE_NUM_THREADS": threads, "NUM_STREAMS": 1, "INFERENCE_PRECISION_HINT": hint}
    return names, core.compile_model(model, "CPU", options).create_infer_request()


def open_openvino(job, hint="f32", wanted="FP32"):
    import openvino

    able = openvino.Core().get_property("CPU", "OPTIMIZATION_CAPABILITIES")
    if wanted not in able:
        raise SystemExit(f"OpenVINO has no {wanted} on this processor, only {', '.join(able)}")

    def open_graph(path):
        names, request = openvino_request(path, job.threads, hint, job.shape)
        return lambda ids, mask: request.infer({name: {"input_ids": ids, "attention_mask": mask}[name] for name in names})[job.answer]

    return by_padding(job, open_graph), f"openvino {openvino.__version__.split('-')[0]}"


def open_openvino_bf16(job):
    return open_openvino(job, "bf16", "BF16")


# glibc gives large temporaries back to the system at every free: half of PyTorch's time is page faults. This keeps them.
KEEP_MEMORY = (("MALLOC_MMAP_MAX_", "0"), ("MALLOC_TRIM_THRESHOLD_", str(1 << 40)), ("MALLOC_TOP_PAD_", str(1 << 26)))

# No caches: the first result is that of a new process. No pool: what it leaves behind would count as somebody else's work.
COMPILE_ANEW = (("TORCHINDUCTOR_FORCE_DISABLE_CACHES", "1"), ("TORCHINDUCTOR_COMPILE_THREADS", "1"))

OURS = "deberta"
OWN = {
    OURS: Own("this project"),
    "deberta-packed": Own("the same, with weights packed by `deberta pack`", packed=True),
    "deberta-int16": Own("the same with --precision int16", precision="int16"),
    "deberta-int8": Own("the same with --precision int8", precision="int8"),
}
# Packages that engines import, and that make their graphs.
TORCH = ("torch", "transformers")
NEEDED = ("numpy", "safetensors", *TORCH)  # packages that make models, and what all engines are compared with
EXPORTED = (*TORCH, "onnx")
ONNX, VINO = (*EXPORTED, "onnxruntime"), (*EXPORTED, "openvino")
VINO_INT8 = (*VINO, "nncf")
LEAN_INT8 = (*VINO_INT8, "sentencepiece")
ENGINES = {
    "torch": Engine(open_torch, "PyTorch eager", packages=TORCH),
    "torch-malloc": Engine(open_torch, "PyTorch eager, glibc told to keep freed memory", environment=KEEP_MEMORY, packages=TORCH),
    "torch-compile": Engine(open_torch_compile, "torch.compile, fixed shape; compiles in every process",
                            environment=COMPILE_ANEW, packages=TORCH),
    "torch-bf16": Engine(open_torch_bf16, "PyTorch eager, bf16 autocast; v1's mask overflows in it", precision="bfloat16",
                         versions=(3,), packages=TORCH),
    "torch-lean": Engine(open_torch_lean, "PyTorch as an expert writes it (lean_encoder.py); memory kept",
                         environment=KEEP_MEMORY, versions=(3,), packages=TORCH),
    "onnxruntime": Engine(open_onnxruntime, "TorchScript export, any batch and length", graph="float32", packages=ONNX),
    "onnxruntime-int8": Engine(open_onnxruntime, "the same after quantize_dynamic, QInt8", precision="int8", graph="int8",
                               packages=ONNX),
    "onnxruntime-int8-channel": Engine(open_onnxruntime, "the same with a scale a channel", precision="int8",
                                       graph="int8-channel", packages=ONNX),
    "onnxruntime-lean": Engine(open_onnxruntime, "the export of torch-lean, for one length where all have it", graph="lean",
                               versions=(3,), packages=ONNX),
    "openvino": Engine(open_openvino, "the same ONNX file at one shape (documents: any)", graph="float32", packages=VINO),
    "openvino-bf16": Engine(open_openvino_bf16, "the same with INFERENCE_PRECISION_HINT bf16; fails without bf16",
                            precision="bfloat16", graph="float32", packages=VINO),
    "openvino-int8": Engine(open_openvino, "the same after nncf.quantize: static scales, from random texts; all else float32",
                            precision="int8", graph="int8-calibrated", packages=VINO_INT8),
    "openvino-int8-bf16": Engine(open_openvino_bf16, "the same with INFERENCE_PRECISION_HINT bf16 for all else", precision="int8",
                                 graph="int8-calibrated", packages=VINO_INT8),
    "openvino-lean": Engine(open_openvino, "the export of torch-lean, for one length where all have it", graph="lean", versions=(3,),
                            packages=VINO),
    "openvino-lean-bf16": Engine(open_openvino_bf16, "the same with INFERENCE_PRECISION_HINT bf16", precision="bfloat16", graph="lean",
                                 versions=(3,), packages=VINO),
    "openvino-lean-int8": Engine(open_openvino, "openvino-lean after nncf.quantize: static scales, from sentences of a book",
                                 precision="int8", graph="lean-int8", versions=(3,), packages=LEAN_INT8),
    "accelerate": Engine(open_accelerate, "PyTorch eager after deberta_c.accelerate: this project in transformers", peer=False,
                         packages=(*TORCH, "deberta_c")),
}  # fmt: skip


def is_peer(name):
    return name in ENGINES and ENGINES[name].peer


def precision_of(name):
    return (OWN if name in OWN else ENGINES)[name].precision


def fits(name, model):
    """Returns true if the engine can run the model's version of DeBERTa."""
    return name in OWN or SHAPES[model].version in ENGINES[name].versions
