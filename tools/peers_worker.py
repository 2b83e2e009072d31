"""The inside of tools/peers.py: what one fresh process does for one engine. Started by peers.py, not by hand.

    model NAME FOLDER              a folder as transformers writes it, random weights
    input FOLDER FILE --lengths    token ids, mask, and what PyTorch makes of them in float64
    graph FOLDER FILE.onnx         the same weights for ONNX Runtime and OpenVINO
    measure ...                    one engine, one shape: a line of JSON
    serve ...                      one engine, streams of texts: a line of JSON

An engine is a function from a Job to a function (ids, mask) -> last hidden state. All packages are imported by the engine
that uses them, so that no process pays for another engine's memory or start.

SPDX-License-Identifier: MIT
"""
import argparse
import json
import os
import resource
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

Encode = Callable[[Any, Any], Any]


@dataclass(frozen=True)
class Job:
    folder: str
    graph: str
    threads: int
    shape: tuple[int, int] | None  # batch and length, if all inputs have the same


@dataclass(frozen=True)
class Engine:
    open: Callable[[Job], tuple[Encode, str]]  # the function and "name version"
    summary: str
    precision: str = "float32"
    graph: str | None = None  # which file it reads: "float32" or one of QUANTISED, both ONNX, or CALIBRATED
    environment: tuple[tuple[str, str], ...] = ()
    versions: tuple[int, ...] = (1, 3)  # of DeBERTa that it can run


@dataclass(frozen=True)
class Own:
    """A way to run this project's program, which measures itself."""

    summary: str
    precision: str = "float32"
    packed: bool = False  # maps what `deberta pack` wrote


# ------------------------------------------------------------------------------------------------------------ shapes


@dataclass(frozen=True)
class Shape:
    version: int  # 1: deberta, 3: deberta-v2 with buckets
    hidden: int
    heads: int
    layers: int
    intermediate: int
    longest: int  # rows beyond are not measured
    vocabulary: int = 1000  # one row is copied per token: the size costs memory, not time
    outliers: tuple[int, float] = (0, 1)  # channels of the hidden states that are so many times as large as others


SHAPES = {
    "v3-xsmall": Shape(3, 384, 6, 12, 1536, 4096),
    "v3-small": Shape(3, 768, 12, 6, 3072, 4096),
    "v3-base": Shape(3, 768, 12, 12, 3072, 4096),
    "v1-base": Shape(1, 768, 12, 12, 3072, 1024),
    "v3-base-outliers": Shape(3, 768, 12, 12, 3072, 4096, outliers=(6, 20)),
    "v3-base-outlier": Shape(3, 768, 12, 12, 3072, 4096, outliers=(1, 60)),
    "tiny-v3": Shape(3, 64, 4, 3, 128, 4096, 200),
    "tiny-v1": Shape(1, 64, 4, 3, 128, 1024, 200),
}

TABLE = 512  # max_position_embeddings: v1 tells distances apart up to here
SHORT_TRACE, LONG_TRACE = 48, 1024  # tokens

# q and k of standard deviation g each, over the three terms and the scale 1/sqrt(3d): logits of g squared, about 2.
QUERY_KEY_GAIN = 2**0.5


def weight_scale(name, weight):
    """Mean and standard deviation of a random parameter."""
    if name.endswith("LayerNorm.weight"):
        return 1.0, 0.1
    if weight.dim() == 1:
        return 0.0, 0.05
    if "embeddings" in name:
        return 0.0, 1.0
    gain = QUERY_KEY_GAIN if any(part in name for part in ("query", "key", "in_proj", "pos_")) else 1.0
    return 0.0, gain / weight.shape[1] ** 0.5


def write_model(name, folder):
    import torch
    import transformers

    shape = SHAPES[name]
    fields = {
        "hidden_size": shape.hidden, "num_attention_heads": shape.heads, "num_hidden_layers": shape.layers,
        "intermediate_size": shape.intermediate, "vocab_size": shape.vocabulary, "max_position_embeddings": TABLE,
        "type_vocab_size": 0, "layer_norm_eps": 1e-7, "relative_attention": True, "max_relative_positions": -1,
        "pos_att_type": "c2p|p2c", "position_biased_input": False, "pad_token_id": 0,
    }  # fmt: skip
    if shape.version == 3:
        fields |= {"position_buckets": 256, "norm_rel_ebd": "layer_norm", "share_att_key": True}
        model = transformers.DebertaV2Model(transformers.DebertaV2Config(**fields))
    else:
        model = transformers.DebertaModel(transformers.DebertaConfig(**fields))
    torch.manual_seed(1)
    with torch.no_grad():
        for key, weight in model.named_parameters():
            mean, deviation = weight_scale(key, weight)
            weight.copy_(mean + deviation * torch.randn_like(weight))
        if shape.outliers[0]:
            enlarge_channels(model, shape)
    partial = Path(folder + ".part")
    model.save_pretrained(partial)
    partial.rename(folder)


def outlier_channels(shape):
    """As `synthetic:...,outliers=,outlier_size=` places them (core/load/synthetic.h)."""
    count = shape.outliers[0]
    return [(2 * k + 1) * shape.hidden // (2 * count) for k in range(count)]


def enlarge_channels(model, shape):
    """What a layer's LayerNorms give in few channels becomes far larger, and what is multiplied with it as much smaller."""
    channels, size = outlier_channels(shape), shape.outliers[1]
    columns = ("query_proj.weight", "key_proj.weight", "value_proj.weight", "intermediate.dense.weight")
    for name, weight in model.named_parameters():
        if not name.startswith("encoder.layer."):
            continue
        if "LayerNorm." in name:
            weight[channels] *= size
        elif name.endswith(columns) and not name.startswith("encoder.layer.0.attention"):
            weight[:, channels] /= size


# ----------------------------------------------------------------------------------------------------------- engines


def torch_model(folder, threads, dtype="float32"):
    """The encoder as a module (ids, mask) -> last hidden state."""
    import torch
    import transformers

    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()
    torch.set_num_threads(threads)
    torch.set_num_interop_threads(1)
    model = transformers.AutoModel.from_pretrained(folder, dtype=getattr(torch, dtype)).eval()

    class LastHidden(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.model = model

        def forward(self, input_ids, attention_mask):
            return self.model(input_ids=input_ids, attention_mask=attention_mask).last_hidden_state

    return LastHidden().eval()


def torch_version():
    import torch
    import transformers

    return f"torch {torch.__version__}, transformers {transformers.__version__}"


def torch_encode(module, context):
    """Runs a module on arrays inside a context such as autocast, made anew for each call."""
    import torch

    def encode(ids, mask):
        with torch.inference_mode(), context():
            return module(torch.from_numpy(ids), torch.from_numpy(mask)).float().numpy()

    return encode


def open_torch(job):
    from contextlib import nullcontext

    return torch_encode(torch_model(job.folder, job.threads), nullcontext), torch_version()


def open_torch_bf16(job):
    import torch

    module = torch_model(job.folder, job.threads)
    return torch_encode(module, lambda: torch.autocast("cpu", dtype=torch.bfloat16)), torch_version()


def open_torch_compile(job):
    from contextlib import nullcontext

    import torch

    module = torch.compile(torch_model(job.folder, job.threads), dynamic=job.shape is None)
    return torch_encode(module, nullcontext), torch_version()


def open_onnxruntime(job):
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads, options.inter_op_num_threads = job.threads, 1
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_ALL
    session = onnxruntime.InferenceSession(job.graph, options, providers=["CPUExecutionProvider"])

    def encode(ids, mask):
        return session.run(None, {"input_ids": ids, "attention_mask": mask})[0]

    return encode, f"onnxruntime {onnxruntime.__version__}"


def open_openvino(job, hint="f32", wanted="FP32"):
    import openvino

    core = openvino.Core()
    able = core.get_property("CPU", "OPTIMIZATION_CAPABILITIES")
    if wanted not in able:
        raise SystemExit(f"OpenVINO has no {wanted} on this processor, only {', '.join(able)}")
    model = core.read_model(job.graph)
    if job.shape:
        model.reshape({tensor.any_name: list(job.shape) for tensor in model.inputs})
    options = {"PERFORMANCE_HINT": "LATENCY", "INFERENCE_NUM_THREADS": job.threads, "NUM_STREAMS": 1,
               "INFERENCE_PRECISION_HINT": hint}  # fmt: skip
    request = core.compile_model(model, "CPU", options).create_infer_request()

    def encode(ids, mask):
        return request.infer({"input_ids": ids, "attention_mask": mask})["last_hidden_state"]

    return encode, f"openvino {openvino.__version__.split('-')[0]}"


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
ENGINES = {
    "torch": Engine(open_torch, "PyTorch eager"),
    "torch-malloc": Engine(open_torch, "PyTorch eager, glibc told to keep freed memory", environment=KEEP_MEMORY),
    "torch-compile": Engine(open_torch_compile, "torch.compile, fixed shape; compiles in every process",
                            environment=COMPILE_ANEW),
    "torch-bf16": Engine(open_torch_bf16, "PyTorch eager, bf16 autocast; v1's mask overflows in it", precision="bfloat16",
                         versions=(3,)),
    "onnxruntime": Engine(open_onnxruntime, "TorchScript export, any batch and length", graph="float32"),
    "onnxruntime-int8": Engine(open_onnxruntime, "the same after quantize_dynamic, QInt8", precision="int8", graph="int8"),
    "onnxruntime-int8-channel": Engine(open_onnxruntime, "the same with a scale a channel", precision="int8",
                                       graph="int8-channel"),
    "openvino": Engine(open_openvino, "the same ONNX file at one shape (documents: any)", graph="float32"),
    "openvino-bf16": Engine(open_openvino_bf16, "the same with INFERENCE_PRECISION_HINT bf16; fails without bf16",
                            precision="bfloat16", graph="float32"),
    "openvino-int8": Engine(open_openvino, "the same after nncf.quantize: static scales, from random texts; all else float32",
                            precision="int8", graph="int8-calibrated"),
    "openvino-int8-bf16": Engine(open_openvino_bf16, "the same with INFERENCE_PRECISION_HINT bf16 for all else", precision="int8",
                                 graph="int8-calibrated"),
}  # fmt: skip

# ONNX files after quantize_dynamic, and what it is told beyond QInt8.
QUANTISED = {"int8": {}, "int8-channel": {"per_channel": True}}
CALIBRATED, CALIBRATION_TEXTS, CALIBRATION_TOKENS = "int8-calibrated", 32, 128


def saturates():
    """Does the processor multiply bytes in 16 bits, which overflow? ONNX Runtime advises weights of 7 bits there."""
    flags = Path("/proc/cpuinfo").read_text("ascii", errors="replace")
    return "avx2" in flags and not any(name in flags for name in ("avx512_vnni", "avx_vnni"))


def traced_length(name, n):
    """Of the input with which the graph for n tokens is traced. A trace keeps which branch v1's distances took: a graph from
    a short input gathers beyond the table of positions on longer ones, one from a long input uses the whole table on short ones."""
    return LONG_TRACE if SHAPES[name].version == 1 and n > TABLE else SHORT_TRACE


def write_graph(folder, path, precision, traced):
    import torch

    if precision in QUANTISED:
        quantise_graph(folder, path, traced, QUANTISED[precision])
        return
    if precision == CALIBRATED:
        calibrate_graph(folder, path, traced)
        return
    axes = {0: "batch", 1: "n"}
    ids = torch.randint(1, 100, (1, traced))
    with torch.no_grad():
        torch.onnx.export(torch_model(folder, 1), (ids, torch.ones_like(ids)), path + ".part", dynamo=False, opset_version=18,
                          input_names=["input_ids", "attention_mask"], output_names=["last_hidden_state"],
                          dynamic_axes={"input_ids": axes, "attention_mask": axes, "last_hidden_state": axes})  # fmt: skip
    os.rename(path + ".part", path)


def quantise_graph(folder, path, traced, told):
    """Constants are folded first: otherwise position projections would be quantised as products of each run."""
    import onnxruntime
    from onnxruntime.quantization import QuantType, quantize_dynamic

    plain, folded = path + ".plain", path + ".folded"
    write_graph(folder, plain, "float32", traced)
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_BASIC
    options.optimized_model_filepath = folded
    onnxruntime.InferenceSession(plain, options, providers=["CPUExecutionProvider"])
    quantize_dynamic(folded, path + ".part", weight_type=QuantType.QInt8, reduce_range=saturates(), **told)
    os.remove(plain)
    os.remove(folded)
    os.rename(path + ".part", path)


def calibrate_graph(folder, path, traced):
    """For OpenVINO: scales of activations come from texts like those that are measured, drawn with another seed."""
    import nncf
    import numpy
    import openvino

    plain = path + ".onnx"
    write_graph(folder, plain, "float32", traced)
    random, vocabulary = numpy.random.default_rng(20), vocabulary_of(folder)
    texts = [padded_batch([CALIBRATION_TOKENS], random, vocabulary) for _ in range(CALIBRATION_TEXTS)]
    feeds = nncf.Dataset([{"input_ids": ids, "attention_mask": mask} for ids, mask in texts])
    quantised = nncf.quantize(openvino.Core().read_model(plain), feeds, model_type=nncf.ModelType.TRANSFORMER, subset_size=CALIBRATION_TEXTS)
    partial = Path(path + ".part.xml")
    openvino.save_model(quantised, partial, compress_to_fp16=False)
    os.remove(plain)
    os.rename(partial.with_suffix(".bin"), Path(path).with_suffix(".bin"))
    os.rename(partial, path)


# ------------------------------------------------------------------------------------------------------------ inputs


def vocabulary_of(folder):
    return json.loads(Path(folder, "config.json").read_text("utf-8"))["vocab_size"]


def write_input(folder, path, lengths):
    """A padded batch and its last hidden state in float64, computed one sequence at a time, where padding cannot matter."""
    import numpy
    import torch
    from safetensors.numpy import save_file

    with open(Path(folder, "config.json"), encoding="utf-8") as file:
        config = json.load(file)
    module = torch_model(folder, os.cpu_count() or 1, "float64")
    random = numpy.random.default_rng(lengths)
    ids = numpy.zeros((len(lengths), max(lengths)), dtype=numpy.int64)
    mask = numpy.zeros_like(ids)
    expected = numpy.zeros((*ids.shape, config["hidden_size"]))
    for row, length in enumerate(lengths):
        ids[row, :length] = random.integers(1, config["vocab_size"], length)
        mask[row, :length] = 1
        with torch.inference_mode():
            part = module(*(torch.from_numpy(x[row : row + 1, :length]) for x in (ids, mask)))
        expected[row, :length] = part[0].numpy()
    save_file({"input_ids": ids, "attention_mask": mask, "expected": expected}, path + ".part")
    os.rename(path + ".part", path)


def errors_of(output, tensors, shape=None):
    """Of an output, over tokens that are not padding: the largest difference from float64, and the relative error, the norm of
    the differences over that of what was expected. Of a shape with outliers the second leaves them out: they would drown the
    other channels. Not a number if that is what came out."""
    import numpy

    kept = tensors["attention_mask"].astype(bool)
    expected = tensors["expected"][kept]
    difference = output.astype(numpy.float64)[kept] - expected
    usual = numpy.ones(expected.shape[-1], dtype=bool)
    usual[outlier_channels(shape) if shape else []] = False
    norms = [float(numpy.linalg.norm(x[:, usual])) for x in (difference, expected)]
    return {"max_abs_difference": float(numpy.abs(difference).max()), "relative_error": norms[0] / norms[1]}


def padded_batch(lengths, random, vocabulary):
    import numpy

    mask = (numpy.arange(max(lengths)) < numpy.array(lengths)[:, None]).astype(numpy.int64)
    return mask * random.integers(1, vocabulary, mask.shape), mask


def bucketed_batches(lengths, size, vocabulary):
    """Documents of like length together, each batch padded to its longest: what one does for engines that need rectangles."""
    import numpy

    random = numpy.random.default_rng(7)
    ordered = sorted(lengths)
    return [padded_batch(ordered[start : start + size], random, vocabulary) for start in range(0, len(ordered), size)]


# --------------------------------------------------------------------------------------------------------- measuring


def machine_seconds():
    """CPU seconds that the whole machine has used, and those that the hypervisor took, since boot."""
    with open("/proc/stat", encoding="ascii") as file:
        user, nice, system, _, _, irq, softirq, stolen = (int(x) for x in file.readline().split()[1:9])
    hertz = os.sysconf("SC_CLK_TCK")
    return (user + nice + system + irq + softirq) / hertz, stolen / hertz


def peak_memory_bytes():
    """VmHWM, because ru_maxrss survives exec and so tells of the parent."""
    with open("/proc/self/status", encoding="ascii") as file:
        return next(1024 * int(line.split()[1]) for line in file if line.startswith("VmHWM:"))


def limit_memory():
    """An engine that wants more than there is shall fail, and not take the machine along."""
    with open("/proc/meminfo", encoding="ascii") as file:
        available = next(1024 * int(line.split()[1]) for line in file if line.startswith("MemAvailable:"))
    resource.setrlimit(resource.RLIMIT_DATA, (available * 9 // 10,) * 2)


SECONDS_OF_A_SLOW_CALL = 10


def enough_calls(once, repetitions):
    """How many timed calls are enough when one takes so many seconds: slow calls vary little and are repeated less."""
    return 1 if once > SECONDS_OF_A_SLOW_CALL else min(3, repetitions) if once > 2 else repetitions


def take_samples(call, once, repetitions, min_seconds):
    """Times of single calls, and the cores that others used meanwhile. `once`: seconds of the call that warmed up."""
    least = enough_calls(once, repetitions)
    samples, (busy, _) = [], machine_seconds()
    begun, own = time.perf_counter(), time.process_time()
    while len(samples) < least or (time.perf_counter() - begun < min_seconds and len(samples) < 1000):
        samples.append(seconds_of(call))
    wall, own = time.perf_counter() - begun, time.process_time() - own
    return samples, max(0.0, (machine_seconds()[0] - busy - own) / wall)


def seconds_of(call):
    started = time.perf_counter()
    call()
    return time.perf_counter() - started


def encode_by_parts(encode, ids, mask, size):
    """So many sequences at once as will be timed, so that checking the output does not ask for more memory than the rest."""
    import numpy

    parts = []
    for start in range(0, len(ids), size):
        rows = slice(start, start + size)
        longest = int(mask[rows].sum(axis=1).max())
        part = encode(ids[rows, :longest], mask[rows, :longest])
        parts.append(numpy.pad(part, ((0, 0), (0, ids.shape[1] - longest), (0, 0))))
    return numpy.concatenate(parts)


def open_engine(arguments, shape):
    limit_memory()
    return ENGINES[arguments.engine].open(Job(arguments.folder, arguments.graph, arguments.threads, shape))


def measure(arguments):
    from safetensors.numpy import load_file

    tensors = load_file(arguments.input)
    ids, mask = tensors["input_ids"], tensors["attention_mask"]
    encode, version = open_engine(arguments, None if arguments.documents else ids.shape)
    started = time.perf_counter()
    output = encode_by_parts(encode, ids, mask, arguments.batch)
    once = time.perf_counter() - started
    first_result = time.monotonic() - arguments.spawned
    errors = errors_of(output, tensors, SHAPES.get(Path(arguments.folder).name))
    batches = [(ids, mask)]
    if arguments.documents:
        batches = bucketed_batches(arguments.documents, arguments.batch, int(ids.max()) + 1)

    def call():
        for batch_ids, batch_mask in batches:
            encode(batch_ids, batch_mask)

    if arguments.documents or once < SECONDS_OF_A_SLOW_CALL:  # the first call of an engine may have compiled or allocated
        once = seconds_of(call)
    samples, others = take_samples(call, once, arguments.reps, arguments.min_time)
    return {"version": version, "samples_s": samples, "other_cores": others, "first_result_s": first_result,
            "peak_rss_bytes": peak_memory_bytes(), **errors}  # fmt: skip


def serve(arguments):
    """Streams of texts, one after the other: each alone, and in padded batches in the order of the stream."""
    import numpy
    from safetensors.numpy import load_file

    tensors = load_file(arguments.input)
    encode, version = open_engine(arguments, None)
    errors = errors_of(encode(tensors["input_ids"], tensors["attention_mask"]), tensors)
    random, vocabulary = numpy.random.default_rng(7), int(tensors["input_ids"].max()) + 1
    streams = []
    for lengths in arguments.stream:
        latencies, seconds = {}, {}
        for way, size in (("alone", 1), ("batches", arguments.group)):
            groups = [lengths[start : start + size] for start in range(0, len(lengths), size)]
            batches = [padded_batch(group, random, vocabulary) for group in groups]
            for batch in {ids.shape: (ids, mask) for ids, mask in batches}.values():
                encode(*batch)  # what an engine allocates and compiles once, for each new shape too, is no request's
            times = [seconds_of(lambda: encode(*batch)) for batch in batches]  # noqa: B023 - called at once
            seconds[way] = sum(times)
            latencies[way] = [time for time, group in zip(times, groups, strict=True) for _ in group]
        streams.append({"latencies_s": latencies, "seconds": seconds})
    return {"version": version, "streams": streams, **errors}


def number_list(text):
    return [int(part) for part in text.split(",")]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    command = commands.add_parser("model")
    command.add_argument("name", choices=SHAPES)
    command.add_argument("folder")
    command = commands.add_parser("input")
    command.add_argument("folder")
    command.add_argument("file")
    command.add_argument("--lengths", type=number_list, required=True)
    command = commands.add_parser("graph")
    command.add_argument("folder")
    command.add_argument("file")
    command.add_argument("--precision", default="float32")
    command.add_argument("--traced", type=int, default=SHORT_TRACE, help="tokens of the input that is traced")
    command = commands.add_parser("measure")
    command.add_argument("folder")
    command.add_argument("--engine", choices=ENGINES, required=True)
    command.add_argument("--graph", default="")
    command.add_argument("--input", required=True)
    command.add_argument("--documents", type=number_list, help="lengths of a corpus to measure instead of the input")
    command.add_argument("--batch", type=int, default=1, help="documents at once")
    command.add_argument("--threads", type=int, required=True)
    command.add_argument("--reps", type=int, required=True)
    command.add_argument("--min-time", type=float, required=True)
    command.add_argument("--spawned", type=float, required=True, help="CLOCK_MONOTONIC when this process was started")
    command = commands.add_parser("serve")
    command.add_argument("folder")
    command.add_argument("--engine", choices=ENGINES, required=True)
    command.add_argument("--graph", default="")
    command.add_argument("--input", required=True, help="the text that is checked")
    command.add_argument("--stream", type=number_list, required=True, action="append", help="lengths in order")
    command.add_argument("--group", type=int, required=True, help="texts of a batch")
    command.add_argument("--threads", type=int, required=True)
    arguments = parser.parse_args()
    if arguments.command == "model":
        write_model(arguments.name, arguments.folder)
    elif arguments.command == "input":
        write_input(arguments.folder, arguments.file, arguments.lengths)
    elif arguments.command == "graph":
        write_graph(arguments.folder, arguments.file, arguments.precision, arguments.traced)
    else:
        print(json.dumps((measure if arguments.command == "measure" else serve)(arguments)))


if __name__ == "__main__":
    main()
