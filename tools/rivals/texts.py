"""Streams of whole texts through Python, from a file of texts to logits: this package beside PyTorch, ONNX Runtime and OpenVINO.

    tools/peers.py texts --work W --out F.tsv [--seconds 50]     in pieces: the same command goes on where it stopped
    tools/peers.py texts --table F.tsv                           what is there as Markdown

A stream is a file of W: a query with each of 100 passages, a text with each of 20 labels, 8 texts, 32 texts. Passages and texts are runs of
words of a book; the tokens of a line, with its query, are drawn between 60 and 250 so that their logarithm is uniform. The seed is printed.

A call reads the file, tokenizes, and gives a row of logits for each line. This package gets all lines at once (ragged). A peer gets them
after transformers' quick tokenizer, alone, in one batch padded to its longest, and, if there are more than 32, by length in batches of
32. Lean engines take any length: without a mask for texts alone, with one for batches. Opening a model and one call before do not count; a
call above 30 s is its own sample.

Before anything is measured, the logits of all engines are compared with one another. The largest difference over the largest logit is at
most 1e-4 in float32, 0.2 with int8; each visit is held against the same logits. A visit is a process. Engines take turns, and each round
begins with another one. The work folder is that of tools/peers.py. Exit status 1: something differed or failed, or the time was over.
SPDX-License-Identifier: MIT
"""
import csv
import itertools
import json
import math
import statistics
import time
from pathlib import Path

import numpy as np

from rivals.engines import ENGINES, OWN, Job, is_peer, precision_of
from rivals.results import name_list, print_table, read_rows, spread
from rivals.shapes import LONGEST, SHAPES, STREAMS, lines_of
from rivals.turns import Failure, Runner, TimeOver, rotated, with_threads, worker_command
from rivals.work_folder import Work
from rivals.worker import limit_memory, take_samples

AT_ONCE, SLOW_SECONDS = 32, 30  # texts of a batch of like lengths; a slower call is its own sample
BOUNDS = {"float32": 1e-4, "int8": 0.2}
ENGINES_HERE = ("deberta", "deberta-int8", "torch", "torch-malloc", "torch-lean", "onnxruntime-lean", "openvino-lean", "openvino-lean-int8", "accelerate")
VISIT = ("model", "threads", "seed", "stream", "engine", "way", "round")
TITLES = (*VISIT, "among", "texts", "tokens", "samples_ms", "other_cores", "difference", "version", "failed")


def file_of(work, stream, seed):
    path = work.folder / "texts" / f"{stream}-{seed}.tsv"
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("\n".join(lines_of(stream, seed)) + "\n", "utf-8")
    return path


def read_lines(path):
    """Returns texts, or pairs."""
    return [tuple(line.split("\t")) if "\t" in line else line for line in Path(path).read_text("utf-8").splitlines()]


def opened_here(given):
    """Returns a function of the texts that gives logits, one that gives numbers of tokens, and the version."""
    import deberta_c

    model = deberta_c.Model(given["folder"], threads=given["threads"], precision=precision_of(given["engine"]))
    return (lambda lines: model.encode(lines, hidden=None, logits="sequence")["logits.sequence"],
            lambda lines: [len(model.tokenize(line).ids) for line in lines], f"deberta_c {deberta_c.__version__}")  # fmt: skip


def opened_peer(given):
    import transformers

    tokenizer = transformers.AutoTokenizer.from_pretrained(given["folder"])
    encode, version = ENGINES[given["engine"]].open(Job(given["folder"], tuple(given["graphs"]), given["threads"], None, LONGEST, "logits"))

    def tokenize(lines):
        parts = [lines] if isinstance(lines[0], str) else map(list, zip(*lines, strict=True))
        return tokenizer(*parts, return_attention_mask=False, return_token_type_ids=False)["input_ids"]

    def answer(lines):
        rows = tokenize(lines)
        order = sorted(range(len(rows)), key=lambda k: len(rows[k]))
        size, found = {"alone": 1, "one batch": len(rows), "by length": AT_ONCE}[given["way"]], [None] * len(rows)
        for group in (order[start : start + size] for start in range(0, len(rows), size)):
            mask = (np.arange(len(rows[group[-1]])) < np.array([[len(rows[k])] for k in group])).astype(np.int64)
            ids = np.zeros_like(mask)
            ids[mask == 1] = np.concatenate([rows[k] for k in group])
            for k, logits in zip(group, encode(ids, mask), strict=True):
                found[k] = logits
        return np.array(found)

    return answer, lambda lines: list(map(len, tokenize(lines))), version


def work_here(given):
    """Prints logits, and times of calls if any are asked."""
    limit_memory()
    answer, lengths, version = (opened_here if given["engine"] in OWN else opened_peer)(given)
    found = {"version": version, "tokens": lengths(read_lines(given["file"]))}

    def call():
        found["logits"] = answer(read_lines(given["file"]))

    samples, others = take_samples(call, math.inf, 1, 0)  # what is slow is called once, which is then its sample
    if given["calls"] and samples[0] < SLOW_SECONDS:
        samples, others = take_samples(call, samples[0], given["calls"], 0)
    print(json.dumps(found | {"logits": found["logits"].astype(float).tolist(), "samples_ms": [1e3 * s for s in samples], "other_cores": others}))


def ways_of(engine, stream):
    return ["ragged"] if engine in OWN else ["alone", "one batch"] + ["by length"] * (STREAMS[stream] > AT_ONCE)


def visit(work, arguments, stream, engine, way, calls):
    threads, spec = arguments.threads, ENGINES.get(engine)
    graphs = work.graphs(arguments.model, spec and spec.graph, LONGEST, False, "logits")
    given = {"folder": str(work.model(arguments.model)), "file": str(file_of(work, stream, arguments.seed)), "graphs": list(map(str, graphs)),
             "engine": engine, "way": way, "threads": threads, "calls": calls}  # fmt: skip
    variables = with_threads(threads, (*(spec.environment if spec else ()), ("RAYON_NUM_THREADS", str(threads))))
    return json.loads(work.runner.run(*worker_command("--worker", json.dumps(given), job="texts"), environment=variables).output.splitlines()[-1])


def check(found, other, engine, among):
    """Returns the largest difference of an engine's logits from another's over the other's largest; fails above the bound."""
    if found["tokens"] != other["tokens"]:
        raise Failure(f"{engine} and {among} have other tokens")
    one, two = np.array(found["logits"]), np.array(other["logits"])
    gap, bound = float(np.abs(one - two).max() / np.abs(two).max()), max(BOUNDS[precision_of(name)] for name in (engine, among))
    if not gap <= bound:  # true of what is not a number, too
        raise Failure(f"the logits of {engine} are {gap:.1e} from those of {among}, more than {bound:.0e}")
    return gap


def compared(work, arguments, stream):
    """Returns the answers of all engines to a stream, once made and then kept, which agree."""
    answers = {}
    for engine in arguments.engines:
        path = work.folder / "logits" / arguments.model / f"{stream}-{arguments.seed}-{engine}.json"
        if not path.exists():
            if time.monotonic() > arguments.end:
                raise TimeOver
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(json.dumps(visit(work, arguments, stream, engine, ways_of(engine, stream)[0], 0)), "utf-8")
        answers[engine] = json.loads(path.read_text("utf-8"))
    gaps = {pair: check(answers[pair[0]], answers[pair[1]], *pair) for pair in itertools.permutations(answers, 2)}
    tokens = answers[arguments.engines[0]]["tokens"]
    print(f"{stream}, seed {arguments.seed}: {len(tokens)} texts of {min(tokens)} to {max(tokens)} tokens, {sum(tokens)} in all; logits differ by at most "
          f"{max(gaps.values(), default=0):.1e} ({', '.join(max(gaps, key=gaps.get, default=()))})", flush=True)  # fmt: skip
    return answers


def row_of(work, arguments, planned, answers):
    base = min(arguments.engines, key=lambda engine: precision_of(engine) != "float32")  # the first of float32
    try:
        found = visit(work, arguments, planned["stream"], planned["engine"], planned["way"], arguments.calls)
        gap = check(found, answers[base], planned["engine"], base)
    except Failure as failure:
        return planned | {"failed": str(failure)}
    return planned | {"texts": len(found["tokens"]), "tokens": sum(found["tokens"]), "samples_ms": ",".join(f"{s:.5g}" for s in found["samples_ms"]),
                      "other_cores": f"{found['other_cores']:.2f}", "difference": f"{gap:.1e}", "version": found["version"]}  # fmt: skip


def planned_visits(arguments):
    """Yields settings of visits. Each round begins with another engine."""
    for turn, stream in itertools.product(range(arguments.rounds), arguments.streams):
        for engine, way in rotated([(engine, way) for engine in arguments.engines for way in ways_of(engine, stream)], turn):
            yield dict(zip(VISIT, (arguments.model, arguments.threads, arguments.seed, stream, engine, way, turn), strict=True))


def measure(arguments):
    """Returns true if all visits are there and none has failed."""
    work, over, answers = Work(arguments.work, Runner(), end=arguments.end), "not measured, the time is over; the same command goes on", {}
    for stream in arguments.streams:
        try:
            answers[stream] = compared(work, arguments, stream)
        except TimeOver:
            print(f"{stream}: {over}")
            return False
    rows = read_rows(arguments.out) if arguments.out.exists() else []
    done = {tuple(row[name] for name in VISIT) for row in rows}
    with arguments.out.open("a", encoding="utf-8", newline="") as file:
        out = csv.DictWriter(file, TITLES, delimiter="\t", lineterminator="\n")
        if not file.tell():
            out.writeheader()
        for planned in planned_visits(arguments):
            if tuple(map(str, planned.values())) in done:
                continue
            try:
                if time.monotonic() > arguments.end:
                    raise TimeOver
                row = row_of(work, arguments, planned, answers[planned["stream"]])
            except TimeOver:
                print(f"round {planned['round']}, {planned['stream']}, {planned['engine']} {planned['way']}: {over}")
                return False
            rows.append(row | {"among": ",".join(arguments.engines)})
            out.writerow(rows[-1])
            file.flush()
            print(*(f"{name}={rows[-1][name]}" for name in (*VISIT[3:], *TITLES[10:]) if name in rows[-1]), flush=True)
    return not any(row.get("failed") for row in rows)


def cell_of_ratio(stream, times, own, rows):
    """Ours over the best peer, round by round, where a round has all peers of the run but those that failed."""
    failed = {(row["engine"], row["way"]) for row in rows if row["failed"] and row["stream"] == stream}
    names = {(engine, way) for row in rows for engine in row["among"].split(",") if is_peer(engine) for way in ways_of(engine, stream)}
    needed, peers = [times.get(name, {}) for name in names - failed], [times[name] for name in names if name in times]
    common = [turn for turn in times.get(own, ()) if needed and all(turn in found for found in needed)]
    return spread([times[own][turn] / min(found[turn] for found in peers if turn in found) for turn in common], ".2f") if common else "–"


def cell_of_factor(times, name):
    """How many times as long as this program an engine takes."""
    own, found = times.get(("deberta", "ragged"), {}), times.get(name, {})
    return spread([found[turn] / own[turn] for turn in found if turn in own], ".2f") if set(found) & set(own) else "–"


def tabulate(path):
    rows, groups = read_rows(path), {}
    measured = [row for row in rows if not row["failed"]]
    for row in measured:
        streams = groups.setdefault((row["model"], row["threads"], row["seed"]), {})
        times = streams.setdefault(f"{row['stream']}: {row['texts']} texts, {int(row['tokens']):,} tokens", {})
        times.setdefault((row["engine"], row["way"]), {})[row["round"]] = statistics.median(map(float, row["samples_ms"].split(",")))
    for (model, threads, seed), streams in groups.items():
        print(f"**{model}, {threads} thread{'s' * (threads != '1')}, seed {seed}: median ms of a stream over rounds, and their range**\n")
        names = list(dict.fromkeys(name for times in streams.values() for name in times))
        lines = [[", ".join(name), *(spread(list(times[name].values())) if name in times else "–" for times in streams.values())] for name in names]
        lines += [[f"{own[0]} / best float32 peer", *(cell_of_ratio(title.partition(":")[0], times, own, rows) for title, times in streams.items())]
                  for own in names if own[0] in OWN]  # fmt: skip
        print_table(["engine, texts at once", *streams], lines)
        print("\nTimes as long as deberta, round by round:\n")
        print_table(["engine, texts at once", *(title.partition(":")[0] for title in streams)],
                    [[", ".join(name), *(cell_of_factor(times, name) for times in streams.values())] for name in names if is_peer(name[0])])
        print()
    for precision in BOUNDS:
        if own := [float(row["difference"]) for row in measured if precision_of(row["engine"]) == precision]:
            print(f"{precision}: logits differ by at most {max(own):.1e} of the largest.")
    if measured:
        print(f"Others used at most {max(float(row['other_cores']) for row in measured):.2f} cores.")
    for row in (row for row in rows if row["failed"]):
        print(f"{row['engine']} {row['way']} failed at {row['stream']}, round {row['round']}: {row['failed']}")


def options(parser):
    add = parser.add_argument
    add("--work", type=Path, help="folder of models, texts, logits, ONNX files")
    add("--out", type=Path, metavar="FILE", help="rows are appended to it, with all samples")
    add("--table", type=Path, metavar="FILE", help="print what FILE holds as Markdown")
    add("--model", choices=[name for name in SHAPES if SHAPES[name].labels], default="v3-base-texts")
    add("--streams", type=name_list(STREAMS), default=list(STREAMS))
    add("--engines", type=name_list(ENGINES_HERE), default="deberta,deberta-int8,torch,onnxruntime-lean,openvino-lean".split(","))
    add("--threads", type=int, default=2)
    add("--seed", type=int, default=1)
    add("--rounds", type=int, default=5)
    add("--calls", type=int, default=3, help="calls of a visit; slow ones are fewer")
    add("--seconds", type=float, default=math.inf, help="begin no visit after so long")
    add("--worker", type=json.loads, help="(what a process of this job does)")


def run(arguments):
    if arguments.worker:
        return work_here(arguments.worker)
    if arguments.table:
        return tabulate(arguments.table)
    if not arguments.work or not arguments.out:
        raise Failure("--work and --out are needed, or --table")
    arguments.end = time.monotonic() + arguments.seconds
    return int(not measure(arguments))
