"""What one fresh process does for one engine. Started by the jobs, not by hand.

    model NAME FOLDER              a folder as transformers writes it, random weights
    input FOLDER FILE --lengths    token ids, mask, and what PyTorch makes of them in float64
    graph FOLDER FILE --kind       the same weights for ONNX Runtime and OpenVINO
    measure ...                    one engine, one shape: a line of JSON
    serve ...                      one engine, a stream of texts: a line of JSON

SPDX-License-Identifier: MIT
"""
import json
import os
import resource
import time
from pathlib import Path

from rivals.engines import ENGINES, Job
from rivals.graphs import GRAPHS, SHORT_TRACE, write_graph
from rivals.results import number_list
from rivals.shapes import SHAPES, bucketed_batches, errors_of, padded_batch, write_input, write_model
from rivals.turns import machine_seconds, memory_of, peak_memory_bytes, seconds_of

SECONDS_OF_A_SLOW_CALL = 10


def enough_calls(once, repetitions):
    """Returns how many timed calls are enough if one takes `once` seconds: slow calls vary little and are repeated less."""
    return 1 if once > SECONDS_OF_A_SLOW_CALL else min(3, repetitions) if once > 2 else repetitions


def take_samples(call, once, repetitions, min_seconds):
    """Returns times of single calls, and the cores that others used meanwhile. `once`: seconds of the warm-up call."""
    least = enough_calls(once, repetitions)
    samples, (busy, _) = [], machine_seconds()
    begun, own = time.perf_counter(), time.process_time()
    while len(samples) < least or (time.perf_counter() - begun < min_seconds and len(samples) < 1000):
        samples.append(seconds_of(call))
    wall, own = time.perf_counter() - begun, time.process_time() - own
    return samples, max(0.0, (machine_seconds()[0] - busy - own) / wall)


def limit_memory():
    """Limits memory, so that an engine that wants more fails without affecting the machine."""
    resource.setrlimit(resource.RLIMIT_DATA, (memory_of("/proc/meminfo", "MemAvailable") * 9 // 10,) * 2)


def encode_by_parts(encode, ids, mask, size):
    """Encodes as many sequences at once as are timed, so that the check needs no more memory than the measurement."""
    import numpy

    parts = []
    for start in range(0, len(ids), size):
        rows = slice(start, start + size)
        longest = int(mask[rows].sum(axis=1).max())
        part = encode(ids[rows, :longest], mask[rows, :longest])
        parts.append(numpy.pad(part, ((0, 0), (0, ids.shape[1] - longest), (0, 0))))
    return numpy.concatenate(parts)


def open_engine(arguments, shape, longest):
    limit_memory()
    return ENGINES[arguments.engine].open(Job(arguments.folder, tuple(arguments.graph), arguments.threads, shape, longest))


def measure(arguments):
    from safetensors.numpy import load_file

    tensors = load_file(arguments.input)
    ids, mask = tensors["input_ids"], tensors["attention_mask"]
    one_batch = len(arguments.documents or ()) <= min(arguments.batch, len(ids))
    encode, version = open_engine(arguments, ids.shape if one_batch else None, max(arguments.documents or [ids.shape[1]]))
    started = time.perf_counter()
    output = encode_by_parts(encode, ids, mask, arguments.batch)
    once = time.perf_counter() - started
    first_result = time.monotonic() - float(os.environ["RIVALS_SPAWNED"])
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
    """Serves a stream of texts: each alone, and in padded batches in the order of the stream."""
    import numpy
    from safetensors.numpy import load_file

    tensors, lengths = load_file(arguments.input), arguments.stream
    encode, version = open_engine(arguments, None, max(lengths))
    checks = [errors_of(encode_by_parts(encode, tensors["input_ids"], tensors["attention_mask"], size), tensors) for size in (1, arguments.group)]
    random, vocabulary = numpy.random.default_rng(7), int(tensors["input_ids"].max()) + 1
    latencies, seconds = {}, {}
    for way, size in (("alone", 1), ("batches", arguments.group)):
        groups = [lengths[start : start + size] for start in range(0, len(lengths), size)]
        batches = [padded_batch(group, random, vocabulary) for group in groups]
        for batch in {ids.shape: (ids, mask) for ids, mask in batches}.values():
            encode(*batch)  # costs of each new shape, such as allocation and compilation, do not count as a request's
        times = [seconds_of(lambda: encode(*batch)) for batch in batches]  # noqa: B023 - called at once
        seconds[way] = sum(times)
        latencies[way] = [time for time, group in zip(times, groups, strict=True) for _ in group]
    return {"version": version, "latencies_s": latencies, "seconds": seconds, "differences": [one["max_abs_difference"] for one in checks]}


def options(parser):
    commands = parser.add_subparsers(dest="command", required=True)

    def command(name, *paths):
        made = commands.add_parser(name)
        for path in paths:
            made.add_argument(path)
        return made.add_argument

    command("model", "name", "folder")
    add = command("input", "folder", "file")
    add("--lengths", type=number_list, required=True)
    add = command("graph", "folder", "file")
    add("--kind", choices=GRAPHS, default="float32")
    add("--traced", type=int, default=SHORT_TRACE, help="tokens of the input that is traced")
    measured, served = command("measure", "folder"), command("serve", "folder")
    for add in (measured, served):
        add("--engine", choices=ENGINES, required=True)
        add("--graph", default=[], action="append", help="once, or without a mask and with one")
        add("--input", required=True, help="what is checked")
        add("--threads", type=int, required=True)
    measured("--documents", type=number_list, help="lengths of a corpus to measure instead of the input")
    measured("--batch", type=int, default=1, help="documents at once")
    measured("--reps", type=int, required=True)
    measured("--min-time", type=float, required=True)
    served("--stream", type=number_list, required=True, help="lengths in order")
    served("--group", type=int, required=True, help="texts of a batch")


def run(arguments):
    if arguments.command == "model":
        write_model(arguments.name, arguments.folder)
    elif arguments.command == "input":
        write_input(arguments.folder, arguments.file, arguments.lengths)
    elif arguments.command == "graph":
        write_graph(arguments.folder, arguments.file, arguments.kind, arguments.traced)
    else:
        print(json.dumps((measure if arguments.command == "measure" else serve)(arguments)))
