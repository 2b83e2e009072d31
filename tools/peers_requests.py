#!/usr/bin/env python3
"""One drawn stream of single requests, served by deberta and by other engines: latencies as a service sees them.

    tools/peers_requests.py --work W --model v3-base --threads 2 --rounds 3 > streams.tsv
    tools/peers_requests.py --table streams.tsv

`deberta bench requests` draws the lengths of a stream, of every --lengths that it knows, and serves them back to back: each text alone,
and batches of at most --group texts in the order of the stream. Every other engine gets the same lengths in the same order in a process
of its own; its batches are padded to their longest text, since it needs rectangles. Engines take turns. A latency in a batch is the
batch's. Each process first encodes a checked text: an engine of float32 that is not within 5e-5 of float64 is refused.

W is the work folder of tools/peers.py, which documents the engines. A row of the output is one engine, mix, way, number of threads and
round: requests a second, p50, p90 and p99 in milliseconds. The table has medians over the rounds, and p99 and requests a second of
deberta against the best peer of the same number of digits.

SPDX-License-Identifier: MIT
"""
import argparse
import csv
import json
import statistics
import sys
from pathlib import Path

from peers import ROOT, TOLERANCE, Failure, Runner, Work, engine_environment, number_list, worker_command
from peers_worker import ENGINES, OURS, OWN, SHAPES

MIXES = ("uniform", "short-uniform", "short-zipf", "mixed-tail", "flat-long")
WAYS = ("alone", "batches")
TITLES = ("model", "threads", "mix", "engine", "precision", "way", "round", "requests", "requests_per_second", "p50_ms", "p90_ms", "p99_ms",
          "version")  # fmt: skip
CHECKED_TOKENS = 40
DEFAULT = "deberta,deberta-int16,deberta-int8,torch,onnxruntime,onnxruntime-int8,openvino"


def percentile(ordered, share):
    """The same rule as the program's analysis/quantile.h: between neighbours in proportion."""
    place = share * (len(ordered) - 1)
    below = int(place)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (place - below) * (ordered[above] - ordered[below])


def figures(seconds, latencies):
    ordered = sorted(latencies)
    return [len(ordered) / seconds, *(1e3 * percentile(ordered, share) for share in (0.5, 0.9, 0.99))]


def serve_ours(engine, mix, work, arguments, threads):
    """The lengths of the stream, the two ways, the version."""
    command = [work.program, "bench", "requests", work.own_model(arguments.model, engine), "--lengths", mix, "--requests", arguments.requests,
               "--group", arguments.group, "--seed", arguments.seed, "--threads", threads, "--precision", OWN[engine].precision,
               "--reference", "hf", "--json", "--quiet"]  # fmt: skip
    found = json.loads(work.runner.run(list(map(str, command)), engine_environment(threads, engine)).output)
    rows = [[way["requests_per_second"], way["p50_ms"], way["p90_ms"], way["p99_ms"]] for way in found["ways"][: len(WAYS)]]
    return found["lengths"], rows, "deberta"


def serve_peer(engine, lengths, work, arguments, threads):
    spec = ENGINES[engine]
    command = worker_command("serve", work.model(arguments.model), "--engine", engine, "--threads", threads, "--group", arguments.group,
                             "--input", work.input(arguments.model, (CHECKED_TOKENS,)), "--stream", ",".join(map(str, lengths)))  # fmt: skip
    if spec.graph:
        command += ["--graph", str(work.graph(arguments.model, spec.graph, max(lengths)))]
    found = json.loads(work.runner.run(command, engine_environment(threads, engine)).output.splitlines()[-1])
    if spec.precision == "float32" and not found["max_abs_difference"] <= TOLERANCE:
        raise Failure(f"{engine} is {found['max_abs_difference']:.1e} from float64, more than {TOLERANCE:.0e}")
    return [figures(found["seconds"][way], found["latencies_s"][way]) for way in WAYS], found["version"]


def serve(arguments, out):
    work = Work(arguments.work, Runner(arguments.limit), arguments.program)
    lengths_of = {}
    for turn in range(arguments.rounds):
        for threads in arguments.threads:
            for mix in arguments.mixes:
                # Ours comes first: it draws the stream. The others begin with another one each round.
                peers = [e for e in arguments.engines if e in ENGINES]
                peers = peers[turn % max(1, len(peers)) :] + peers[: turn % max(1, len(peers))]
                for engine in [*(e for e in arguments.engines if e in OWN), *peers]:
                    precision = (OWN if engine in OWN else ENGINES)[engine].precision
                    if engine in OWN:
                        lengths, rows, version = serve_ours(engine, mix, work, arguments, threads)
                        if lengths_of.setdefault(mix, lengths) != lengths:
                            raise Failure(f"{engine} drew another stream of {mix}")
                    else:
                        rows, version = serve_peer(engine, lengths_of[mix], work, arguments, threads)
                    for way, row in zip(WAYS, rows, strict=True):
                        out.writerow([arguments.model, threads, mix, engine, precision, way, turn, len(lengths_of[mix]), *(f"{x:.4g}" for x in row), version])
                    sys.stdout.flush()


def read_medians(path):
    """{(model, threads, mix, way): {engine: {title: median}}}"""
    with open(path, encoding="utf-8", newline="") as file:
        lines = list(csv.DictReader(file, delimiter="\t"))
    found = {}
    for line in lines:
        key = tuple(line[name] for name in ("model", "threads", "mix", "way"))
        found.setdefault(key, {}).setdefault(line["engine"], []).append(line)
    numbers = TITLES[8:12]
    return {key: {engine: {"precision": rounds[0]["precision"]} | {name: statistics.median(float(r[name]) for r in rounds) for name in numbers}
                  for engine, rounds in engines.items()} for key, engines in found.items()}  # fmt: skip


def against(engines, own):
    """p99 and rate of ours over those of the best peer with the same precision (int16 is held against float32)."""
    precision = "int8" if engines[own]["precision"] == "int8" else "float32"
    peers = [row for name, row in engines.items() if name in ENGINES and row["precision"] == precision]
    if not peers:
        return "–", "–"
    ours = engines[own]
    return (f"{ours['p99_ms'] / min(p['p99_ms'] for p in peers):.2f}",
            f"{ours['requests_per_second'] / max(p['requests_per_second'] for p in peers):.2f}")  # fmt: skip


def print_table(path):
    medians = read_medians(path)
    for model, threads, way in dict.fromkeys((key[0], key[1], key[3]) for key in medians):
        print(f"**{model}, {threads} thread{'' if threads == '1' else 's'}, {way}**\n")
        print("| stream | engine | requests/s | p50 ms | p90 ms | p99 ms | p99 of ours / best | rate of ours / best |")
        print("|---|---|--:|--:|--:|--:|--:|--:|")
        for key, engines in medians.items():
            if (key[0], key[1], key[3]) != (model, threads, way):
                continue
            for engine, row in engines.items():
                shares = against(engines, engine) if engine in OWN else ("", "")
                cells = [f"{row[name]:.4g}" for name in TITLES[8:12]]
                print("| " + " | ".join([key[2], engine, *cells, *shares]) + " |")
        print()


def name_list(known):
    def parse(text):
        names = text.split(",")
        if unknown := [name for name in names if name not in known]:
            raise argparse.ArgumentTypeError(f"{unknown[0]} is not among {', '.join(known)}")
        return names

    return parse


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add = parser.add_argument
    add("--work", type=Path, help="folder for models, inputs, ONNX files")
    add("--table", type=Path, metavar="FILE", help="print what FILE holds as Markdown")
    add("--program", type=Path, default=ROOT / "build" / "deberta")
    add("--model", choices=SHAPES, default="v3-base")
    add("--mixes", type=name_list(MIXES), default=list(MIXES))
    add("--engines", type=name_list([*OWN, *ENGINES]), default=DEFAULT.split(","))
    add("--threads", type=number_list, default=[2])
    add("--requests", type=int, default=100)
    add("--group", type=int, default=8)
    add("--seed", type=int, default=1)
    add("--rounds", type=int, default=3)
    add("--limit", type=float, default=900, help="seconds that one process may take")
    arguments = parser.parse_args()
    if arguments.table:
        print_table(arguments.table)
        return
    if not arguments.work or OURS not in arguments.engines:
        parser.error(f"--work is needed, and {OURS} among the engines: it draws the stream")
    out = csv.writer(sys.stdout, delimiter="\t", lineterminator="\n")
    out.writerow(TITLES)
    try:
        serve(arguments, out)
    except Failure as failure:
        sys.exit(f"peers_requests.py: {failure}")


if __name__ == "__main__":
    main()
