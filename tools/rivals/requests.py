"""One drawn stream of single requests, served by deberta and by other engines: latencies as a service sees them.

    tools/peers.py requests --work W --out streams.tsv --model v3-base --threads 2 --rounds 3 --mixes short-zipf,flat-long:16 [--seconds 50]
    tools/peers.py requests --table streams.tsv

`deberta bench requests` draws the lengths of a stream, of every --mixes that it knows, and serves them back to back: each text alone,
and batches of at most --group texts in the order of the stream. Every other engine gets the same lengths in the same order, a stream in
a process of its own; its batches are padded to their longest text, since it needs rectangles. Engines take turns. A latency in a batch
is the batch's. Each process first encodes two checked texts, alone and in a batch: an engine of float32 that is not within 5e-5 of float64
has failed.

W is the work folder of tools/peers.py, which documents the engines. A row of the output is one engine, mix, way, number of threads and
round: requests a second, p50, p90 and p99 in milliseconds, and the cores that others used during the process. What the file holds, as
failed too, is not measured again, so a run may be stopped and begun anew; with --seconds it stops by itself, with exit status 1 while
something is missing. The table has medians over the rounds and their range, and p99 and requests a second of deberta against the best
peer of each round: of float32, for int16 of bfloat16, for int8 of int8.

SPDX-License-Identifier: MIT
"""
import csv
import itertools
import json
import math
import sys
import time
from pathlib import Path

from rivals.encode import TOLERANCE, installed, version_in
from rivals.engines import ENGINES, OWN, fits, is_peer, precision_of
from rivals.results import name_list, number_list, percentile, print_table, read_rows, spread
from rivals.shapes import SHAPES
from rivals.turns import PROGRAM, ROOT, Failure, Runner, TimeOver, rotated, with_threads, worker_command
from rivals.work_folder import Work

MIXES = ("uniform", "short-uniform", "short-zipf", "mixed-tail", "flat-long")
WAYS = ("alone", "batches")
VISIT = ("model", "threads", "mix", "engine", "precision", "round", "requests")  # settings of a process
NUMBERS = ("requests_per_second", "p50_ms", "p90_ms", "p99_ms")
TITLES = (*VISIT[:5], "way", *VISIT[5:], *NUMBERS, "version", "failed", "among", "other_cores")
CHECKED = (40, 17)  # tokens
DEFAULT = "deberta,deberta-int16,deberta-int8,torch,torch-lean,onnxruntime,onnxruntime-lean,onnxruntime-int8,openvino,openvino-lean,openvino-lean-int8"
DRAWING = "models/demo"  # serves the stream once to learn its lengths, which do not depend on the model
MOST_LOAD = 10  # a high rate, because arriving requests are not evaluated and should end soon
HELD_AGAINST = {"float32": "float32", "int16": "bfloat16", "int8": "int8"}


def figures(seconds, latencies):
    ordered = sorted(latencies)
    return [len(ordered) / seconds, *(1e3 * percentile(ordered, share) for share in (0.5, 0.9, 0.99))]


def serve_ours(model, mix, requests, arguments, threads, runner, precision="float32"):
    """Returns the program's report on the stream, and how it ran."""
    command = [arguments.program, "bench", "requests", model, "--lengths", mix, "--requests", requests, "--group", arguments.group,
               "--seed", arguments.seed, "--threads", threads, "--precision", precision, "--load", MOST_LOAD, "--reference", "hf",
               "--json", "--quiet"]  # fmt: skip
    done = runner.run(*command, environment=with_threads(threads))
    return json.loads(done.output), done


def version_of(program, runner):
    return version_in(json.loads(runner.run(program, "bench", ROOT / DRAWING, "-n", 8, "--reps", 1, "--no-peak", "--json").output))


def visit_ours(visit, lengths, work, arguments):
    """Returns the numbers of each way, the version, and the cores that others used."""
    engine = visit["engine"]
    found, done = serve_ours(work.own_model(arguments.model, engine), visit["mix"], len(lengths), arguments, visit["threads"], work.runner, precision_of(engine))
    if found["lengths"] != lengths:
        raise Failure(f"{engine} drew another stream of {visit['mix']}")
    return [[way[name] for name in NUMBERS] for way in found["ways"][: len(WAYS)]], version_of(arguments.program, work.runner), done.other_cores


def visit_peer(visit, lengths, work, arguments):
    engine, spec = visit["engine"], ENGINES[visit["engine"]]
    command = worker_command("serve", work.model(arguments.model), "--engine", engine, "--threads", visit["threads"], "--group", arguments.group,
                             "--input", work.input(arguments.model, CHECKED), "--stream", ",".join(map(str, lengths)))  # fmt: skip
    for graph in work.graphs(arguments.model, spec.graph, max(lengths), one_length=False):
        command += ["--graph", graph]
    done = work.runner.run(*command, environment=with_threads(visit["threads"], spec.environment))
    found = json.loads(done.output.splitlines()[-1])
    if spec.precision == "float32" and not all(difference <= TOLERANCE for difference in found["differences"]):
        raise Failure(f"{engine} is {max(found['differences']):.1e} from float64, more than {TOLERANCE:.0e}")
    return [figures(found["seconds"][way], found["latencies_s"][way]) for way in WAYS], found["version"], done.other_cores


def rows_of_visit(visit, lengths, work, arguments):
    """Returns a row for each way."""
    try:
        found, version, others = (visit_ours if visit["engine"] in OWN else visit_peer)(visit, lengths, work, arguments)
    except Failure as failure:
        print(f"{visit['engine']} {visit['mix']}: FAILED {failure}", file=sys.stderr, flush=True)
        return [visit | {"way": way, "failed": str(failure)} for way in WAYS]
    return [visit | {"way": way, "version": version, "other_cores": f"{others:.2f}"} | {name: f"{x:.4g}" for name, x in zip(NUMBERS, row, strict=True)}
            for way, row in zip(WAYS, found, strict=True)]  # fmt: skip


def planned_visits(arguments):
    """Yields settings of visits. Each round begins with another engine."""
    for turn, threads, (mix, requests) in itertools.product(range(arguments.rounds), arguments.threads, arguments.mixes):
        for engine in rotated(arguments.engines, turn):
            yield dict(zip(VISIT, (arguments.model, threads, mix, engine, precision_of(engine), turn, requests or arguments.requests), strict=True))


def serve_all(arguments):
    """Returns true if all visits are there."""
    work = Work(arguments.work, Runner(arguments.limit), arguments.program, arguments.end)
    kept = read_rows(arguments.out) if arguments.out.exists() else []
    if kept and tuple(kept[0]) != TITLES:
        raise Failure(f"{arguments.out} has other columns than {', '.join(TITLES)}; a run goes on in a file of its own")
    done, drawn, among = {tuple(row[name] for name in VISIT) for row in kept}, {}, ",".join(arguments.engines)
    with arguments.out.open("a", encoding="utf-8", newline="") as file:
        out = csv.DictWriter(file, TITLES, delimiter="\t", lineterminator="\n")
        if not file.tell():
            out.writeheader()
        for visit in planned_visits(arguments):
            if tuple(map(str, visit.values())) in done:
                continue
            mix, requests = visit["mix"], visit["requests"]
            try:
                if time.monotonic() > arguments.end:
                    raise TimeOver
                if mix not in drawn:
                    drawn[mix] = serve_ours(ROOT / DRAWING, mix, requests, arguments, visit["threads"], work.runner)[0]["lengths"]
                rows = [row | {"among": among} for row in rows_of_visit(visit, drawn[mix], work, arguments)]
            except TimeOver:
                print(f"round {visit['round']}, {visit['engine']} {mix}: not measured, the time is over; the same command goes on")
                return False
            out.writerows(rows)
            file.flush()
            for row in rows:
                print(*(f"{name}={row.get(name, '')}" for name in ("round", "engine", "mix", "way", *NUMBERS)), flush=True)
    return True


def by_round(rows, name):
    return {row["round"]: float(row[name]) for row in rows}


def against(engines, failed, own, name, best):
    """Ours over the best peer of the precision that it is held against, round by round, where a round has all peers of the run but those
    that failed; else "–"."""
    precision = HELD_AGAINST[engines[own][0]["precision"]]
    among = {engine for engine in (engines[own][0].get("among") or "").split(",") if is_peer(engine) and precision_of(engine) == precision}
    if among - engines.keys() - failed:
        return "–"
    peers = [by_round(rows, name) for engine, rows in engines.items() if is_peer(engine) and rows[0]["precision"] == precision]
    ours = by_round(engines[own], name)
    common = [turn for turn in ours if peers and all(turn in peer for peer in peers)]
    return spread([ours[turn] / best(peer[turn] for peer in peers) for turn in common], ".2f") if common else "–"


def rows_of_table(streams, failures):
    """Yields the cells of each engine at each stream."""
    for (mix, requests), engines in streams.items():
        failed = {engine for engine, name in failures if name == mix}
        for engine, rows in engines.items():
            shares = ["", ""]
            if engine in OWN:
                shares = [against(engines, failed, engine, "p99_ms", min), against(engines, failed, engine, "requests_per_second", max)]
            yield [mix, requests, engine, *(spread([float(row[name]) for row in rows]) for name in NUMBERS), *shares]


def tabulate(path):
    groups, failed = {}, {}
    for row in read_rows(path):
        if row.get("failed"):
            failed[row["engine"], row["mix"]] = row["failed"]
            continue
        streams = groups.setdefault((row["model"], row["threads"], row["way"]), {})
        streams.setdefault((row["mix"], row["requests"]), {}).setdefault(row["engine"], []).append(row)
    titles = ["stream", "requests", "engine", "requests/s", "p50 ms", "p90 ms", "p99 ms", "p99 of ours / best", "rate of ours / best"]
    for (model, threads, way), streams in groups.items():
        print(f"**{model}, {threads} thread{'' if threads == '1' else 's'}, {way}**\n")
        print_table(titles, rows_of_table(streams, failed), words=(0, 2))
        print()
    if others := [float(row["other_cores"]) for row in read_rows(path) if row.get("other_cores")]:
        print(f"Others used at most {max(others):.2f} cores.")
    for (engine, mix), why in failed.items():
        print(f"{engine} failed at {mix}: {why}")


def mix_list(text):
    """Parses (name, requests) pairs; 0 requests: as many as --requests says."""
    parts = [part.partition(":") for part in text.split(",")]
    name_list(MIXES)(",".join(name for name, _, _ in parts))
    return [(name, int(requests or 0)) for name, _, requests in parts]


def options(parser):
    add = parser.add_argument
    add("--work", type=Path, help="folder for models, inputs, ONNX files")
    add("--out", type=Path, metavar="FILE", help="rows are appended to it")
    add("--table", type=Path, metavar="FILE", help="print what FILE holds as Markdown")
    add("--program", type=Path, default=PROGRAM)
    add("--model", choices=SHAPES, default="v3-base")
    add("--mixes", type=mix_list, default=[(mix, 0) for mix in MIXES], help="NAME or NAME:REQUESTS each")
    add("--engines", type=name_list([*OWN, *ENGINES]), default=DEFAULT.split(","))
    add("--threads", type=number_list, default=[2])
    add("--requests", type=int, default=100)
    add("--group", type=int, default=8)
    add("--seed", type=int, default=1)
    add("--rounds", type=int, default=3)
    add("--limit", type=float, default=900, help="seconds that one process may take")
    add("--seconds", type=float, default=math.inf, help="begin no visit after so long")


def run(arguments):
    if arguments.table:
        tabulate(arguments.table)
        return 0
    if not arguments.work or not arguments.out:
        raise Failure("--work and --out are needed, or --table")
    if unfit := [engine for engine in arguments.engines if not fits(engine, arguments.model)]:
        raise Failure(f"{unfit[0]} does not run {arguments.model}")
    arguments.end = time.monotonic() + arguments.seconds
    installed(arguments.engines, quick=False)
    return int(not serve_all(arguments))
