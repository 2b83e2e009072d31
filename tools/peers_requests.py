#!/usr/bin/env python3
"""One drawn stream of single requests, served by deberta and by other engines: latencies as a service sees them.

    tools/peers_requests.py --work W --out streams.tsv --model v3-base --threads 2 --rounds 3 --mixes short-zipf,flat-long:16
    tools/peers_requests.py --table streams.tsv

`deberta bench requests` draws the lengths of a stream, of every --mixes that it knows, and serves them back to back: each text alone,
and batches of at most --group texts in the order of the stream. Every other engine gets the same lengths in the same order in a process
of its own; its batches are padded to their longest text, since it needs rectangles. Engines take turns, each with all streams; one that
ends badly is asked for each stream alone. A latency in a batch is the batch's. Each process first encodes a checked text: an engine of float32 that is not within 5e-5 of float64 has failed.

W is the work folder of tools/peers.py, which documents the engines. A row of the output is one engine, mix, way, number of threads and
round: requests a second, p50, p90 and p99 in milliseconds. What the file holds, as failed too, is not measured again, so a run may be
stopped and begun anew. The table has medians over the rounds and their range, and p99 and requests a second of deberta against the
best peer of each round: of float32, for int16 of bfloat16, for int8 of int8.

SPDX-License-Identifier: MIT
"""
import argparse
import csv
import json
import statistics
import sys
from pathlib import Path

from peers import ROOT, TOLERANCE, Failure, Runner, Work, engine_environment, name_list, version_in, worker_command
from peers_worker import ENGINES, OURS, OWN, SHAPES, number_list

MIXES = ("uniform", "short-uniform", "short-zipf", "mixed-tail", "flat-long")
WAYS = ("alone", "batches")
VISIT = ("model", "threads", "mix", "engine", "precision", "round", "requests")  # what a process is asked for
NUMBERS = ("requests_per_second", "p50_ms", "p90_ms", "p99_ms")
TITLES = (*VISIT[:5], "way", *VISIT[5:], *NUMBERS, "version", "failed")
CHECKED_TOKENS = 40
DEFAULT = "deberta,deberta-int16,deberta-int8,torch,onnxruntime,onnxruntime-int8,openvino"
DRAWING = "models/demo"  # serves the stream once, so that it is known: lengths do not depend on the model
MOST_LOAD = 10  # how arriving requests are served is not looked at: they shall be done soon
HELD_AGAINST = {"float32": "float32", "int16": "bfloat16", "int8": "int8"}


def percentile(ordered, share):
    """The same rule as the program's core/base/numbers.h: between neighbours in proportion."""
    place = share * (len(ordered) - 1)
    below = int(place)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (place - below) * (ordered[above] - ordered[below])


def figures(seconds, latencies):
    ordered = sorted(latencies)
    return [len(ordered) / seconds, *(1e3 * percentile(ordered, share) for share in (0.5, 0.9, 0.99))]


def serve_ours(model, mix, requests, arguments, threads, runner, precision="float32"):
    """What the program reports of the stream."""
    command = [arguments.program, "bench", "requests", model, "--lengths", mix, "--requests", requests, "--group", arguments.group,
               "--seed", arguments.seed, "--threads", threads, "--precision", precision, "--load", MOST_LOAD, "--reference", "hf",
               "--json", "--quiet"]  # fmt: skip
    return json.loads(runner.run(list(map(str, command)), engine_environment(threads, OURS)).output)


def version_of(program, runner):
    return version_in(json.loads(runner.run([str(program), "bench", str(ROOT / DRAWING), "-n", "8", "--reps", "1", "--no-peak", "--json"]).output))


def visit_ours(engine, streams, work, arguments, threads):
    """For each (mix, lengths) a row a way; the version."""
    model, rows = work.own_model(arguments.model, engine), []
    for mix, lengths in streams:
        found = serve_ours(model, mix, len(lengths), arguments, threads, work.runner, OWN[engine].precision)
        if found["lengths"] != lengths:
            raise Failure(f"{engine} drew another stream of {mix}")
        rows.append([[way[name] for name in NUMBERS] for way in found["ways"][: len(WAYS)]])
    return rows, version_of(arguments.program, work.runner)


def visit_peer(engine, streams, work, arguments, threads):
    spec = ENGINES[engine]
    command = worker_command("serve", work.model(arguments.model), "--engine", engine, "--threads", threads, "--group", arguments.group,
                             "--input", work.input(arguments.model, (CHECKED_TOKENS,)))  # fmt: skip
    for _, lengths in streams:
        command += ["--stream", ",".join(map(str, lengths))]
    if spec.graph:
        command += ["--graph", str(work.graph(arguments.model, spec.graph, max(max(lengths) for _, lengths in streams)))]
    found = json.loads(work.runner.run(command, engine_environment(threads, engine)).output.splitlines()[-1])
    if spec.precision == "float32" and not found["max_abs_difference"] <= TOLERANCE:
        raise Failure(f"{engine} is {found['max_abs_difference']:.1e} from float64, more than {TOLERANCE:.0e}")
    rows = [[figures(one["seconds"][way], one["latencies_s"][way]) for way in WAYS] for one in found["streams"]]
    return rows, found["version"]


def rows_of_visits(visits, drawn, work, arguments):
    """Visits of one engine that differ in their streams, in one process: a row a visit and way. An engine that cannot serve a stream
    has failed there; the others go on."""
    engine, threads = visits[0]["engine"], visits[0]["threads"]
    try:
        found, version = (visit_ours if engine in OWN else visit_peer)(engine, [(v["mix"], drawn[v["mix"]]) for v in visits], work, arguments, threads)
    except Failure as failure:
        if len(visits) > 1:
            return [row for visit in visits for row in rows_of_visits([visit], drawn, work, arguments)]
        print(f"{engine} {visits[0]['mix']}: FAILED {failure}", file=sys.stderr, flush=True)
        return [visits[0] | {"way": way, "failed": str(failure)} for way in WAYS]
    return [visit | {"way": way, "version": version} | {name: f"{x:.4g}" for name, x in zip(NUMBERS, row, strict=True)}
            for visit, rows in zip(visits, found, strict=True) for way, row in zip(WAYS, rows, strict=True)]  # fmt: skip


def planned_visits(arguments):
    """Lists of an engine's visits. In each round the engines begin with another one."""
    for turn in range(arguments.rounds):
        first = turn % len(arguments.engines)
        for threads in arguments.threads:
            for engine in arguments.engines[first:] + arguments.engines[:first]:
                precision = (OWN if engine in OWN else ENGINES)[engine].precision
                yield [dict(zip(VISIT, (arguments.model, threads, mix, engine, precision, turn, requests or arguments.requests), strict=True))
                       for mix, requests in arguments.mixes]  # fmt: skip


def read_rows(path):
    with open(path, encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file, delimiter="\t"))


def serve_all(arguments):
    work = Work(arguments.work, Runner(arguments.limit), arguments.program)
    done = {tuple(row[name] for name in VISIT) for row in (read_rows(arguments.out) if arguments.out.exists() else ())}
    drawn = {}
    with arguments.out.open("a", encoding="utf-8", newline="") as file:
        out = csv.DictWriter(file, TITLES, delimiter="\t", lineterminator="\n")
        if not file.tell():
            out.writeheader()
        for planned in planned_visits(arguments):
            visits = [visit for visit in planned if tuple(str(visit[name]) for name in VISIT) not in done]
            for visit in visits:
                if visit["mix"] not in drawn:
                    model, requests = ROOT / DRAWING, visit["requests"]
                    drawn[visit["mix"]] = serve_ours(model, visit["mix"], requests, arguments, visit["threads"], work.runner)["lengths"]
            rows = rows_of_visits(visits, drawn, work, arguments) if visits else []
            out.writerows(rows)
            file.flush()
            for row in rows:
                print(*(f"{name}={row.get(name, '')}" for name in ("round", "engine", "mix", "way", *NUMBERS)), flush=True)


def spread(values):
    """The median, and the range if there is one."""
    middle = f"{statistics.median(values):.4g}"
    return middle if len(values) == 1 else f"{middle} ({min(values):.4g} to {max(values):.4g})"


def by_round(rows, name):
    return {row["round"]: float(row[name]) for row in rows}


def against(engines, own, name, best):
    """Ours over the best peer of the precision that it is held against, round by round; "" where a round lacks either."""
    precision = HELD_AGAINST[engines[own][0]["precision"]]
    peers = [by_round(rows, name) for engine, rows in engines.items() if engine in ENGINES and rows[0]["precision"] == precision]
    ours = by_round(engines[own], name)
    common = [turn for turn in ours if peers and all(turn in peer for peer in peers)]
    shares = [ours[turn] / best(peer[turn] for peer in peers) for turn in common]
    if not shares:
        return ""
    middle = f"{statistics.median(shares):.2f}"
    return middle if len(shares) == 1 else f"{middle} ({min(shares):.2f} to {max(shares):.2f})"


def print_table(path):
    groups, failed = {}, {}
    for row in read_rows(path):
        key = (row["model"], row["threads"], row["way"])
        if row.get("failed"):
            failed[row["engine"], row["mix"]] = row["failed"]
            continue
        groups.setdefault(key, {}).setdefault((row["mix"], row["requests"]), {}).setdefault(row["engine"], []).append(row)
    for (model, threads, way), streams in groups.items():
        print(f"**{model}, {threads} thread{'' if threads == '1' else 's'}, {way}**\n")
        print("| stream | requests | engine | requests/s | p50 ms | p90 ms | p99 ms | p99 of ours / best | rate of ours / best |")
        print("|---|--:|---|--:|--:|--:|--:|--:|--:|")
        for (mix, requests), engines in streams.items():
            for engine, rows in engines.items():
                shares = ["", ""]
                if engine in OWN:
                    shares = [against(engines, engine, "p99_ms", min), against(engines, engine, "requests_per_second", max)]
                cells = [spread([float(row[name]) for row in rows]) for name in NUMBERS]
                print("| " + " | ".join([mix, requests, engine, *cells, *shares]) + " |")
        print()
    for (engine, mix), why in failed.items():
        print(f"{engine} failed at {mix}: {why}")


def mix_list(text):
    """(name, requests) each; 0 requests: as many as --requests says."""
    parts = [part.partition(":") for part in text.split(",")]
    name_list(MIXES)(",".join(name for name, _, _ in parts))
    return [(name, int(requests or 0)) for name, _, requests in parts]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add = parser.add_argument
    add("--work", type=Path, help="folder for models, inputs, ONNX files")
    add("--out", type=Path, metavar="FILE", help="rows are appended to it")
    add("--table", type=Path, metavar="FILE", help="print what FILE holds as Markdown")
    add("--program", type=Path, default=ROOT / "build" / "deberta")
    add("--model", choices=SHAPES, default="v3-base")
    add("--mixes", type=mix_list, default=[(mix, 0) for mix in MIXES], help="NAME or NAME:REQUESTS each")
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
    if not arguments.work or not arguments.out:
        parser.error("--work and --out are needed")
    try:
        serve_all(arguments)
    except Failure as failure:
        sys.exit(f"peers_requests.py: {failure}")


if __name__ == "__main__":
    main()
