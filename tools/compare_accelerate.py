#!/usr/bin/env python3
"""deberta_c.accelerate next to PyTorch eager, torch.compile, ONNX Runtime and OpenVINO: engines take turns in one run.

    tools/compare_accelerate.py --work W [--models v3-base,v3-small] [--batches one,documents] [--threads 2] [--rounds 9] [--seconds 150]
    tools/compare_accelerate.py --work W --prepare        only writes the models and the graphs of ONNX

Each engine is a process of its own that keeps its model and waits between its turns; in every round each encodes the same batch once,
after a warm-up (of its own in every turn, where that takes less than a second). Rounds end at --rounds, or behind the third when --seconds are over. Weights are random, of the published shapes with
1,000 words (a row of the word table is copied for a token: the number of rows costs no time). Batches: one text of 40 tokens, and 16 texts of the lengths of documents (bench/shapes/document_lengths.txt), which the
others compute padded. OpenVINO and torch.compile are given the very shape. The program (`deberta bench --mix`) encodes the same lengths
in the same rounds (not with --processor-time). Prints medians, and each engine's ratio to ours, round by round. All outputs are compared with PyTorch's.

Needs the installed package deberta_c and tools/peers-requirements.txt. SPDX-License-Identifier: MIT
"""
import argparse
import json
import os
import statistics
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
from peers_worker import ENGINES, SHAPES, Job, torch_model, traced_length

ROOT = Path(__file__).resolve().parent.parent
QUICK = 1.0  # seconds below which each turn begins with a call that is not measured
OTHERS = ["torch", "torch-compile", "onnxruntime", "openvino"]


def lengths_of_documents(count):
    lines = (ROOT / "bench" / "shapes" / "document_lengths.txt").read_text().splitlines()
    return [int(word) for line in lines if not line.startswith("#") for word in line.replace(",", " ").split()][:count]


def padded(lengths, vocabulary):
    mask = (np.arange(max(lengths)) < np.array(lengths)[:, None]).astype(np.int64)
    return mask * np.random.default_rng(7).integers(1, vocabulary, mask.shape), mask


def worker(engine, folder, graph, threads, lengths, processor):
    """Says the largest difference from PyTorch, then a time for every line that it reads."""
    ids, mask = padded(lengths, SHAPES[Path(folder).name].vocabulary)
    job = Job(folder, graph, threads, ids.shape)
    if engine == "accelerate":
        import deberta_c
        import torch

        module = torch_model(folder, threads)
        expected = module(torch.from_numpy(ids), torch.from_numpy(mask)).detach().numpy()
        deberta_c.accelerate(module.model, threads=threads)

        def encode(ids, mask):
            with torch.inference_mode():
                return module(torch.from_numpy(ids), torch.from_numpy(mask)).numpy()
    else:
        encode, _ = ENGINES[engine].open(job)
        expected = None
    found = encode(ids, mask)
    if expected is not None:
        print(float(np.abs(found - expected)[mask.astype(bool)].max()), flush=True)
    else:
        print(0.0, flush=True)
    clock, last = time.process_time if processor else time.perf_counter, None
    for _ in sys.stdin:
        if last is None or last < QUICK:  # caches hold what the engine before left: as little as this may be half of a short time
            encode(ids, mask)
        begin = clock()
        encode(ids, mask)
        last = clock() - begin
        print(last, flush=True)


def program_seconds(folder, threads, lengths):
    mix = ",".join(map(str, lengths))
    command = [os.environ.get("DEBERTA_PROGRAM", ROOT / "build" / "deberta"), "bench", folder, "--mix", mix, "--threads", str(threads), "--reps", "1",
               "--no-peak", "--json", "--quiet"]
    return json.loads(subprocess.run(command, capture_output=True, check=True).stdout)["results"][0]["median_s"]


def prepared(name, work):
    """Folder and graph of a model, each made by a process of its own: PyTorch takes its number of threads only once."""
    folder, graph = work / name, work / f"{name}.onnx"
    made = [sys.executable, ROOT / "tools" / "peers_worker.py"]
    if not folder.exists():
        subprocess.run([*made, "model", name, folder], check=True)
    if not graph.exists():
        subprocess.run([*made, "graph", folder, graph, "--traced", str(traced_length(name, 128))], check=True)
    return folder, graph


def measure(name, lengths, options):
    threads, processor = options.threads, options.processor_time
    folder, graph = prepared(name, options.work)
    engines = ["accelerate", *OTHERS]
    command = [sys.executable, __file__, "--worker"]
    running = {e: subprocess.Popen([*command, json.dumps([e, str(folder), str(graph), threads, lengths, processor])], stdin=subprocess.PIPE,
                                   stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) for e in engines}
    try:
        difference = float(running["accelerate"].stdout.readline())
        alive = [e for e in engines if e == "accelerate" or running[e].stdout.readline()]
        times = {e: [] for e in (alive if processor else [*alive, "program"])}
        begin = time.monotonic()
        for done in range(options.rounds):
            if done >= 3 and time.monotonic() - begin > options.seconds:
                break
            for e in alive:
                running[e].stdin.write("go\n")
                running[e].stdin.flush()
                times[e].append(float(running[e].stdout.readline()))
            if not processor:
                times["program"].append(program_seconds(folder, threads, lengths))
    finally:
        for process in running.values():
            process.stdin.close()
            process.wait(60)
    what = f"{len(lengths)} texts, {sum(lengths)} tokens, padded {len(lengths) * max(lengths)}" if len(lengths) > 1 else f"1 text of {lengths[0]} tokens"
    for e, found in times.items():
        ratio = statistics.median(b / a for a, b in zip(times["accelerate"], found))
        print(f"| {name} | {what} | {e} | {1e3 * statistics.median(found):.1f} ms | {ratio:.2f} |", flush=True)
    dead = [e for e in engines if e not in times]
    print(f"  {len(times['accelerate'])} rounds; largest difference of accelerate from PyTorch: {difference:.1e}"
          + (f"; ended by themselves: {', '.join(dead)}" if dead else ""), flush=True)


def main():
    if sys.argv[1:2] == ["--worker"]:
        return worker(*json.loads(sys.argv[2]))
    parser = argparse.ArgumentParser()
    parser.add_argument("--work", type=Path, required=True)
    parser.add_argument("--models", default="v3-base,v3-small")
    parser.add_argument("--batches", default="one,documents")
    parser.add_argument("--prepare", action="store_true")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--seconds", type=float, default=150)
    parser.add_argument("--processor-time", action="store_true", help="of each process, instead of the clock: for a machine that others use")
    options = parser.parse_args()
    options.work.mkdir(parents=True, exist_ok=True)
    names = options.models.split(",")
    if options.prepare:
        for name in names:
            prepared(name, options.work)
        return
    print("| shapes | batch | engine | median | time over ours |\n|---|---|---|--:|--:|")
    lengths = {"one": [40], "documents": lengths_of_documents(16)}
    for name in names:
        for batch in options.batches.split(","):
            measure(name, lengths[batch], options)


if __name__ == "__main__":
    main()
