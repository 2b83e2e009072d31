"""One drawn stream of single requests, served by deberta and by other engines: latencies as a service sees them.

    tools/peers.py requests --work W --out streams.tsv --model v3-base --threads 2 --rounds 3 --mixes short-zipf,flat-long:16
    tools/peers.py requests --table streams.tsv

`deberta bench requests` draws the lengths of a stream, of every --mixes that it knows, and serves them back to back: each text alone,
and batches of at most --group texts in the order of the stream. Every other engine gets the same lengths in the same order in a process
of its own; its batches are padded to their longest text, since it needs rectangles. Engines take turns, each with all streams; one that
ends badly is asked for each stream alone. A latency in a batch is the batch's. Each process first encodes a checked text: an engine of
float32 that is not within 5e-5 of float64 has failed.

W is the work folder of tools/peers.py, which documents the engines. A row of the output is one engine, mix, way, number of threads and
round: requests a second, p50, p90 and p99 in milliseconds. What the file holds, as failed too, is not measured again, so a run may be
stopped and begun anew. The table has medians over the rounds and their range, and p99 and requests a second of deberta against the
best peer of each round: of float32, for int16 of bfloat16, for int8 of int8.

SPDX-License-Identifier: MIT
"""
import csv
import json
import sys
from pathlib import Path

from rivals.encode import TOLERANCE, version_in
from rivals.engines import ENGINES, OWN, fits, is_peer, precision_of
from rivals.results import name_list, number_list, percentile, print_table, read_rows, spread
from rivals.shapes import SHAPES
from rivals.turns import PROGRAM, ROOT, Failure, Runner, rotated, with_threads, worker_command
from rivals.work_folder import Work

MIXES = ("uniform", "short-uniform", "short-zipf", "mixed-tail", "flat-long")
WAYS = ("alone", "batches")
VISIT = ("model", "threads", "mix", "engine", "precision", "round", "requests")  # settings of a process
NUMBERS = ("requests_per_second", "p50_ms", "p90_ms", "p99_ms")
TITLES = (*VISIT[:5], "way", *VISIT[5:], *NUMBERS, "version", "failed")
CHECKED_TOKENS = 40
DEFAULT = "deberta,deberta-int16,deberta-int8,torch,onnxruntime,onnxruntime-int8,openvino"
DRAWING = "models/demo"  # serves the stream once to learn its lengths, which do not depend on the model
MOST_LOAD = 10  # a high rate, because arriving requests are not evaluated and should end soon
HELD_AGAINST = {"float32": "float32", "int16": "bfloat16", "int8": "int8"}


def figures(seconds, latencies):
    ordered = sorted(latencies)
    return [len(ordered) / seconds, *(1e3 * percentile(ordered, share) for share in (0.5, 0.9, 0.99))]


def serve_ours(model, mix, requests, arguments, threads, runner, precision="float32"):
    """Returns the program's report on the stream."""
    command = [arguments.program, "bench", "requests", model, "--lengths", mix, "--requests", requests, "--group", arguments.group,
               "--seed", arguments.seed, "--threads", threads, "--precision", precision, "--load", MOST_LOAD, "--reference", "hf",
               "--json", "--quiet"]  # fmt: skip
    return json.loads(runner.run(*command, environment=with_threads(threads)).output)


def version_of(program, runner):
    return version_in(json.loads(runner.run(program, "bench", ROOT / DRAWING, "-n", 8, "--reps", 1, "--no-peak", "--json").output))


def visit_ours(engine, streams, work, arguments, threads):
    """Returns a row for each way and each (mix, lengths), and the version."""
    model, rows = work.own_model(arguments.model, engine), []
    for mix, lengths in streams:
        found = serve_ours(model, mix, len(lengths), arguments, threads, work.runner, precision_of(engine))
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
        command += ["--graph", work.graph(arguments.model, spec.graph, max(max(lengths) for _, lengths in streams))]
    found = json.loads(work.runner.run(*command, environment=with_threads(threads, spec.environment)).output.splitlines()[-1])
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
    """Yields lists of an engine's visits. Each round begins with another engine."""
    for turn in range(arguments.rounds):
        for threads in arguments.threads:
            for engine in rotated(arguments.engines, turn):
                yield [dict(zip(VISIT, (arguments.model, threads, mix, engine, precision_of(engine), turn, requests or arguments.requests), strict=True))
                       for mix, requests in arguments.mixes]  # fmt: skip


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


def by_round(rows, name):
    return {row["round"]: float(row[name]) for row in rows}


def against(engines, own, name, best):
    """Ours over the best peer of the precision that it is held against, round by round; "" where a round lacks either."""
    precision = HELD_AGAINST[engines[own][0]["precision"]]
    peers = [by_round(rows, name) for engine, rows in engines.items() if is_peer(engine) and rows[0]["precision"] == precision]
    ours = by_round(engines[own], name)
    common = [turn for turn in ours if peers and all(turn in peer for peer in peers)]
    return spread([ours[turn] / best(peer[turn] for peer in peers) for turn in common], ".2f") if common else ""


def rows_of_table(streams):
    """Yields the cells of each engine at each stream."""
    for (mix, requests), engines in streams.items():
        for engine, rows in engines.items():
            shares = [against(engines, engine, "p99_ms", min), against(engines, engine, "requests_per_second", max)] if engine in OWN else ["", ""]
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
        print_table(titles, rows_of_table(streams), words=(0, 2))
        print()
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


def run(arguments):
    if arguments.table:
        tabulate(arguments.table)
        return 0
    if not arguments.work or not arguments.out:
        raise Failure("--work and --out are needed, or --table")
    if unfit := [engine for engine in arguments.engines if not fits(engine, arguments.model, one_length=False)]:
        raise Failure(f"{unfit[0]} takes no texts of different lengths of {arguments.model}")
    serve_all(arguments)
    return 0
