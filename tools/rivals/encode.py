"""deberta next to PyTorch, ONNX Runtime and OpenVINO: the same weights, the same shapes, in turn, checked against each other.

    tools/peers.py --work W --out R [--models v3-base] [-n 16,128,512] [--threads 1,2]      latency, batch 1
    tools/peers.py --work W --out R --documents      throughput on bench/shapes/document_lengths.txt
    tools/peers.py --work W --out R --batches 1,4,16,64 -n 16,128       so many equal texts at once
    tools/peers.py --work W --out R --neighbour      each row with and without a busy process on one core
    tools/peers.py --out R --table                   the results so far as Markdown; --csv: all numbers; --chart: bars of each engine
    tools/peers.py --out R --record                  adds them to this machine's table in docs/benchmarks; what they replace is marked old
    tools/peers.py --quick                           what is installed, in three minutes, as a table and a chart; what is not, by name

W keeps models, inputs and ONNX files (about 2 GB for all). R keeps visits.jsonl, one line for each process, and for each kind of
measurement a folder of JSON files of the schema of `deberta bench --json`: all.json, model-*.json for `bench plot`, engine-*.json
for `bench compare`. What visits.jsonl has undisturbed, or as failed, is not measured again. docs/benchmarking.md has the method.

Exit status 1: an engine of float32 disagreed with float64, one failed, or (without --accept-disturbed) was disturbed by others; or, without
--quick, the time of --seconds was over before all was measured.

Needs build/deberta and tools/peers-requirements.txt: python3 -m venv v && v/bin/pip install -r tools/peers-requirements.txt
SPDX-License-Identifier: MIT
"""
import collections
import contextlib
import dataclasses
import datetime
import json
import math
import os
import signal
import statistics
import subprocess
import sys
import time
from pathlib import Path

from rivals.engines import ENGINES, NEEDED, OURS, OWN, absent, fits
from rivals.results import median_deviation, name_list, number_list, plot
from rivals.shapes import DOCUMENTS, SHAPES, errors_of, read_lengths
from rivals.records import BENCHMARKS, record
from rivals.tables_of_times import CSV_MODES, print_csv, print_tables
from rivals.turns import PROGRAM, ROOT, Failure, Patience, Runner, TimeOver, busy_neighbour, rotated, with_threads, worker_command
from rivals.work_folder import Work
from rivals.worker import enough_calls

TOLERANCE = 5e-5  # largest |difference| of the last hidden state from PyTorch in float64, for float32 engines
MOST_MIXES = 64  # --mix options of one `deberta bench`
CHECKED_DOCUMENTS = 16
FEWEST_CALLS = 3  # least calls of our program
CORES = len(os.sched_getaffinity(0))
MODES = ("latency", "batches", "neighbour", "documents")


@dataclasses.dataclass(frozen=True)
class Row:
    """A combination of settings at which all engines are measured in turn."""

    mode: str  # one of MODES
    model: str
    threads: int
    n: int  # tokens; for documents: of the longest
    batch: int = 1  # sequences in a batch

    def __str__(self):
        batch = f" batch {self.batch}" if self.mode in ("documents", "batches") else ""
        return f"{self.mode} {self.model} n={self.n}{batch} threads={self.threads}"


# --------------------------------------------------------------------------------------------------------- campaign


class Journal:
    """visits.jsonl: every visit that gave numbers or failed, in order."""

    def __init__(self, folder):
        self.path = folder / "visits.jsonl"
        self.visits = []
        if self.path.exists():
            self.visits = [json.loads(line) for line in self.path.read_text("utf-8").splitlines()]

    @staticmethod
    def row(visit):
        return Row(**{field.name: visit[field.name] for field in dataclasses.fields(Row)})

    def find(self, row, engine, turn, disturbed_too):
        """Returns a visit that need not be repeated, because it was made, or the engine failed at this row; else None."""
        mine = [v for v in self.visits if v["engine"] == engine and self.row(v) == row]
        enough = (v for v in mine if "failed" in v or (v["round"] == turn and (disturbed_too or not v["disturbed"])))
        return next(enough, None)

    def knows(self, row, engine):
        return any(v["engine"] == engine and self.row(v) == row for v in self.visits)

    def add(self, row, engine, turn, visit):
        line = dataclasses.asdict(row) | {"engine": engine, "round": turn} | visit
        self.visits.append(line)
        with self.path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(line) + "\n")

    def grouped(self, mode):
        """Returns {row: {engine: visits}} without failures, and undisturbed visits only where there are any."""
        rows = {}
        for visit in self.visits:
            if visit["mode"] == mode and "failed" not in visit:
                rows.setdefault(self.row(visit), {}).setdefault(visit["engine"], []).append(visit)
        return {row: {engine: [v for v in visits if not v["disturbed"]] or visits for engine, visits in engines.items()}
                for row, engines in rows.items()}  # fmt: skip


class Campaign:
    """State of the whole run: the command line, and values derived from it."""

    def __init__(self, given):
        self.given, self.runner, self.end = given, Runner(given.limit), time.monotonic() + given.seconds  # no visit begins after the end
        self.documents = read_lengths(given.lengths_file)[: given.document_count]
        self.work, self.journal = Work(given.work, self.runner, given.program, self.end), Journal(given.out)
        self.patience = Patience(given.other_cpus, given.patience, 3, given.accept_disturbed)
        self.cut = set()  # rows for which the time was over before each engine had a visit: nothing is compared in them


# ----------------------------------------------------------------------------------------------------------- visits


def visit_peer(row, engine, campaign, runner):
    spec, work = ENGINES[engine], campaign.work
    source = work.input(row.model, checked_lengths(row, campaign))
    command = worker_command("measure", work.model(row.model), "--engine", engine, "--input", source, "--threads", row.threads,
                             "--batch", row.batch, "--reps", campaign.given.reps, "--min-time", campaign.given.min_time)  # fmt: skip
    for graph in work.graphs(row.model, spec.graph, row.n, row.mode != "documents"):
        command += ["--graph", graph]
    if row.mode == "documents":
        command += ["--documents", ",".join(map(str, campaign.documents))]
    done = runner.run(*command, environment=with_threads(row.threads, spec.environment))
    visit = json.loads(done.output.splitlines()[-1])
    return visit | {"precision": spec.precision, "isa": "native", "stolen_cores": done.stolen_cores,
                    "life_other_cores": done.other_cores}  # fmt: skip


def visit_ours(row, engine, campaign, runner):
    """Measures errors and time to first result by `encode`, times by `bench`: two processes, as a user would run them."""
    model = campaign.work.own_model(row.model, engine)
    alike = ["--threads", row.threads, "--reference", "hf", "--precision", OWN[engine].precision]
    visit = encode_ours(row, model, alike, campaign, runner)
    reps = max(FEWEST_CALLS, enough_calls(visit["first_result_s"], campaign.given.reps))  # the start may have been slow, not the call
    common = [campaign.given.program, "bench", model, *alike, "--no-peak", "--json", "--reps", reps, "--min-time", campaign.given.min_time]
    if row.mode != "documents":
        done = runner.run(*common, "-n", row.n, "--batch", row.batch, environment=with_threads(row.threads))
        report = json.loads(done.output)
        found = report["results"][0]
    else:
        done, report, found = bench_documents(row, campaign, common, runner)
    kept = ("isa", "precision", "samples_s", "other_cores", "layers", "gflop", "gflop_reachable", "peak_rss_bytes",
            "workspace_bytes", "checksum")  # fmt: skip
    visit |= {name: found[name] for name in kept if name in found}
    return visit | {"version": version_in(report), "stolen_cores": done.stolen_cores, "life_other_cores": done.other_cores}


def version_in(report):
    return f"deberta {report['environment']['version']} {report['environment']['commit']}"


def encode_ours(row, model, alike, campaign, runner):
    from safetensors.numpy import load_file

    source = campaign.work.input(row.model, checked_lengths(row, campaign))
    target = campaign.work.folder / f"output-{os.getpid()}.safetensors"
    command = [campaign.given.program, "encode", model, "--input", source, *alike, "-o", target]
    try:
        done = runner.run(*command, environment=with_threads(row.threads))
        output = load_file(target)[f"hidden_states.{SHAPES[row.model].layers}"]
    finally:
        target.unlink(missing_ok=True)
    return {"first_result_s": done.seconds} | errors_of(output, load_file(source), SHAPES[row.model])


def bench_documents(row, campaign, common, runner):
    """Measures documents in their order, in ragged batches. Equal batches are measured once and counted often."""
    lengths = campaign.documents
    batches = [tuple(lengths[start : start + row.batch]) for start in range(0, len(lengths), row.batch)]
    counts = collections.Counter(batches)
    distinct, found, processes = list(counts), {}, []
    for start in range(0, len(distinct), MOST_MIXES):
        mixes = [word for batch in distinct[start : start + MOST_MIXES] for word in ("--mix", ",".join(map(str, batch)))]
        processes.append(runner.run(*common, *mixes, environment=with_threads(row.threads)))
        report = json.loads(processes[-1].output)
        found |= {tuple(r.get("lengths", [r["n"]])): r for r in report["results"]}
    if missing := [batch for batch in distinct if batch not in found]:
        raise Failure(f"bench --mix {','.join(map(str, missing[0]))} measured something else")
    passes = min(len(r["samples_s"]) for r in found.values())
    sums = [sum(counts[b] * found[b]["samples_s"][k] for b in distinct) for k in range(passes)]
    whole = dict(found[distinct[0]], samples_s=sums)
    for name in ("gflop", "gflop_reachable"):
        whole[name] = sum(counts[b] * found[b][name] for b in distinct)
    for name in ("other_cores", "peak_rss_bytes", "workspace_bytes"):
        whole[name] = max(found[b][name] for b in distinct)
    del whole["checksum"]
    return max(processes, key=lambda done: done.other_cores), report, whole


def checked_lengths(row, campaign):
    """Returns the lengths of the sequences whose last hidden state is compared."""
    return campaign.documents[:CHECKED_DOCUMENTS] if row.mode == "documents" else (row.n,) * row.batch


def foreign_load(row, visit):
    """In cores, while it was timed or over its whole life, whichever is more: the start counts, as first results are timed
    as well. With a neighbour of ours only the driver, who sees whole processes, knows what is foreign."""
    others = visit["life_other_cores"]
    if row.mode != "neighbour":
        others = max(others, visit["other_cores"])
    return others + visit["stolen_cores"]


def disagrees(visit):
    """Returns true for a difference above the tolerance, or one that is not a number."""
    return visit["precision"] == "float32" and not visit["max_abs_difference"] <= TOLERANCE


# ------------------------------------------------------------------------------------------------------------ driver


def prepare(row, engine, campaign):
    """Makes files that are needed once before the clock runs."""
    campaign.work.input(row.model, checked_lengths(row, campaign))
    if engine in OWN:
        campaign.work.own_model(row.model, engine)
    else:
        campaign.work.graphs(row.model, ENGINES[engine].graph, row.n, row.mode != "documents")


def visit_once(row, engine, campaign, runner):
    """Returns a visit, or {"failed": why}."""
    try:
        prepare(row, engine, campaign)
        return (visit_ours if engine in OWN else visit_peer)(row, engine, campaign, runner)
    except Failure as failure:
        return {"failed": str(failure)}


def visit_quietly(row, engine, campaign, runner):
    """Returns the first undisturbed visit, else the least disturbed one; None if the machine was never quiet."""
    best, patience = None, campaign.patience
    for _ in range(patience.attempts):
        if not patience.wait(runner) and not patience.accept:
            break
        visit = visit_once(row, engine, campaign, runner)
        if "failed" in visit:
            return visit
        visit["foreign_cores"] = foreign_load(row, visit)
        visit["disturbed"] = visit["foreign_cores"] > patience.other_cores
        if best is None or visit["foreign_cores"] < best["foreign_cores"]:
            best = visit
        if not best["disturbed"] or patience.accept:
            break
    return best


def visit_in_time(row, engine, campaign, runner):
    if time.monotonic() > campaign.end:
        raise TimeOver
    return visit_quietly(row, engine, campaign, runner)


def describe(visit):
    if visit is None:
        return "refused: the machine is busy"
    if "failed" in visit:
        return f"FAILED {visit['failed']}"
    samples = [1e3 * s for s in visit["samples_s"]]
    marks = ("  DISTURBED" if visit["disturbed"] else "") + ("  DISAGREES" if disagrees(visit) else "")
    return (f"median {statistics.median(samples):9.3f} ms, min {min(samples):9.3f} ms, "
            f"relative error {visit['relative_error']:.1e}, max |diff| {visit['max_abs_difference']:.1e}, {visit['peak_rss_bytes'] / 1e6:.0f} MB, "
            f"first result {visit['first_result_s']:.2f} s, "
            f"others {visit['foreign_cores']:.2f}{marks}")  # fmt: skip


def measure_row(row, campaign, runner):
    """Runs engines in turn, in several rounds with rotated order; returns false if something is missing or wrong."""
    fine = True
    engines = [e for e in campaign.given.engines if fits(e, row.model)]
    for turn in range(campaign.given.rounds):
        for engine in rotated(engines, turn):
            visit = campaign.journal.find(row, engine, turn, campaign.patience.accept)
            if visit is None:
                try:
                    visit = visit_in_time(row, engine, campaign, runner)
                except TimeOver:
                    if not campaign.journal.knows(row, engine):
                        campaign.cut.add(row)
                    print(f"{row} {engine:16} not measured: the time is over; the same command goes on", flush=True)
                    fine = fine and campaign.given.quick
                    continue
                print(f"{row} {engine:16} {describe(visit)}", flush=True)
                if visit is not None:
                    campaign.journal.add(row, engine, turn, visit)
            fine = fine and is_fine(visit, campaign.patience)
    return fine


def is_fine(visit, patience):
    if visit is None or "failed" in visit or disagrees(visit):
        return False
    return patience.accept or not visit["disturbed"]


# ------------------------------------------------------------------------------------------------------ JSON results


def peak_gflops(environment, threads):
    """Returns the peak of the best tier with so many threads; 0: not measured."""
    name = f"{environment['isa']}_gflops"
    return next((roof.get(name, 0) for roof in environment["roofs"] if roof["threads"] == threads), 0)


def make_result(row, engine, visits, ours, environment, documents):
    """One entry of "results", as `deberta bench --json` has it, and what only peers.py knows. Useful work is what our cost
    model says of the row, whoever does it."""
    samples = sorted(s for visit in visits for s in visit["samples_s"])
    median, last = statistics.median(samples), visits[-1]
    lengths = list(documents) if row.mode == "documents" else None
    tokens = sum(lengths) if lengths else row.n * row.batch
    gflop = ours[-1]["gflop"] if ours else None
    peak = peak_gflops(environment, row.threads) if last["precision"] == "float32" else 0
    result = {
        "model": row.model, "engine": engine, "isa": last["isa"], "precision": last["precision"], "threads": row.threads,
        "batch": len(lengths) if lengths else row.batch, "n": row.n, "tokens": tokens,
        "layers": SHAPES[row.model].layers, "attention": "full", "position_cache": True, "cold": False,
        "repetitions": len(samples), "samples_s": samples, "min_s": samples[0], "median_s": median,
        "mad_s": median_deviation(samples), "p95_s": samples[-(-95 * len(samples) // 100) - 1],
        "other_cores": max(visit["other_cores"] for visit in visits), "gflop": gflop,
        "gflops": gflop / median if gflop else None, "peak_fraction": gflop / median / peak if gflop and peak else None,
        "tokens_per_s": tokens / median, "peak_rss_bytes": max(visit["peak_rss_bytes"] for visit in visits),
        "version": last["version"], "visits": len(visits), "disturbed": any(v["disturbed"] for v in visits),
        "max_abs_difference": max(v["max_abs_difference"] for v in visits), "agrees": not any(map(disagrees, visits)),
        "relative_error": max(v["relative_error"] for v in visits),
        "first_result_s": statistics.median(v["first_result_s"] for v in visits),
    }  # fmt: skip
    if lengths:
        result |= {"lengths": lengths, "documents_at_once": row.batch}
    return result | {name: last[name] for name in ("gflop_reachable", "workspace_bytes", "checksum") if name in last}


def read_machine(program, folder):
    """Returns the limits by `deberta bench machine`, measured if the folder is new."""
    path = folder / "machine.json"
    if not path.exists():
        threads = ",".join(map(str, range(1, len(os.sched_getaffinity(0)) + 1)))
        command = [program, "bench", "machine", "--threads", threads, "--json"]
        path.write_text(subprocess.run(command, capture_output=True, text=True, check=True).stdout, "utf-8")
    return json.loads(path.read_text("utf-8"))["environment"]


def write_report(path, environment, results):
    disturbed = sum(result["disturbed"] for result in results)
    notes = list(environment["notes"])
    if disturbed:
        notes.append(f"other processes disturbed {disturbed} of {len(results)} results")
    date = datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    sheet = environment | {"date": date, "command": "tools/peers.py", "notes": notes}
    path.parent.mkdir(parents=True, exist_ok=True)
    report = {"schema": "deberta-bench/1", "environment": sheet, "results": results, "trends": []}
    partial = path.with_suffix(".part")
    partial.write_text(json.dumps(report, indent=1) + "\n", "utf-8")
    partial.rename(path)


def collect_results(campaign, mode, environment):
    return [make_result(row, engine, visits, next((engines[e] for e in OWN if e in engines), None), environment, campaign.documents)
            for row, engines in campaign.journal.grouped(mode).items() if row not in campaign.cut for engine, visits in engines.items()]  # fmt: skip


def write_reports(campaign, environment):
    folder = campaign.given.out
    for mode in MODES:
        results = collect_results(campaign, mode, environment)
        if not results:
            continue
        write_report(folder / mode / "all.json", environment, results)
        for key in ("model", "engine"):
            for name in sorted({result[key] for result in results}):
                write_report(folder / mode / f"{key}-{name}.json", environment, [r for r in results if r[key] == name])


# ------------------------------------------------------------------------------------------------------ command line


# Defaults of the campaign.
STANDARD = {"models": ["v3-base", "v1-base", "v3-small", "v3-xsmall"], "tokens": [16, 40, 128, 256, 512, 1024, 2048, 4096],
            "threads": sorted({1, min(2, CORES)}), "rounds": 3, "reps": 7, "min_time": 0.5, "accept_disturbed": False,
            "engines": [OURS, "torch", "torch-malloc", "onnxruntime", "openvino"], "work": None, "out": None, "document_count": 256,
            "seconds": math.inf}  # fmt: skip
# The same of --quick, in how many seconds. torch-lean would cost as much as two others, and has not been the fastest at these lengths.
QUICK = {"models": ["v3-small"], "tokens": [40, 128], "threads": [min(2, CORES)], "rounds": 1, "reps": 3, "min_time": 0.3, "accept_disturbed": True,
         "engines": ["deberta", "deberta-int8", "torch", "onnxruntime", "onnxruntime-lean", "openvino", "openvino-lean",
                     "openvino-lean-int8"],
         "work": ROOT / "out" / "peers", "out": ROOT / "out" / "peers" / "quick", "document_count": 24, "seconds": 150}  # fmt: skip


def settle(arguments):
    """Fills in defaults; values on the command line take precedence, also if they equal a default."""
    for name, value in (QUICK if arguments.quick else STANDARD).items():
        if getattr(arguments, name) is None:
            setattr(arguments, name, value)


def options(parser):
    parser.epilog = "engines:\n" + "\n".join(f"  {name:25} {spec.precision:9} {spec.summary}" for name, spec in {**OWN, **ENGINES}.items())
    add = parser.add_argument
    add("--work", type=Path, help="folder for models, inputs, ONNX files")
    add("--out", type=Path, help="folder for results")
    add("--program", type=Path, default=PROGRAM)
    add("--models", type=name_list(SHAPES))
    add("--engines", type=name_list([*OWN, *ENGINES]), help="names or all; default: those without compilation and with all digits")
    add("-n", "--tokens", type=number_list)
    add("--threads", type=number_list)
    add("--rounds", type=int)
    add("--reps", type=int, help="timed calls in a process, at least; fewer if one takes seconds")
    add("--min-time", type=float, help="seconds of timed calls in a process, at least")
    add("--documents", action="store_true")
    add("--lengths-file", type=Path, default=DOCUMENTS)
    add("--document-count", type=int, help="the first so many of the file")
    add("--batch-documents", type=number_list, default=[1, 8, 32], help="documents at once; the table takes each engine's best")
    add("--batches", type=number_list, default=[], help="equal texts at once, of each -n")
    add("--neighbour", action="store_true")
    add("--table", action="store_true")
    add("--csv", choices=CSV_MODES, const="latency", nargs="?", help="all numbers of latencies or batches (default: latency)")
    add("--chart", action="store_true", help="bars of each engine, by the program itself, into R: for a column and for a page")
    add("--record", type=Path, const=BENCHMARKS, nargs="?", metavar="FILE",
        help="add the latencies of R to a table, with date and commit (default: this machine's in docs/benchmarks)")  # fmt: skip
    add("--quick", action="store_true", help="what is installed, one small model, a table and a chart; into out/peers/quick")
    add("--seconds", type=float, help="begin no visit after so long; the same command goes on")
    add("--other-cpus", type=float, default=0.1, help="cores that others may use while a row is measured")
    add("--patience", type=float, default=60, help="seconds to wait for a quiet machine before a row is refused")
    add("--accept-disturbed", action="store_true", default=None, help="do not wait; measure and mark")
    add("--limit", type=float, default=900, help="seconds that one process may take")


def planned_rows(arguments, documents):
    for model in arguments.models:
        for threads in arguments.threads:
            if arguments.documents:
                for batch in arguments.batch_documents:
                    yield Row("documents", model, threads, max(documents), batch)
                continue
            for n in (n for n in arguments.tokens if n <= SHAPES[model].longest):
                if arguments.batches:
                    yield from (Row("batches", model, threads, n, batch) for batch in arguments.batches)
                    continue
                yield Row("latency", model, threads, n)
                if arguments.neighbour:
                    yield Row("neighbour", model, threads, n)


def installed(engines, quick):
    """Those whose packages are here. The others are named, with the way to them; a longer campaign does not begin without them, and none
    without what makes the models."""
    missing = {name: ENGINES[name].missing for name in engines if name in ENGINES and ENGINES[name].missing}
    words = [f"{name} is not measured: {', '.join(packages)} {'is' if len(packages) == 1 else 'are'} not installed"
             for name, packages in missing.items()]  # fmt: skip
    way = f"{sys.executable} -m pip install -r {ROOT / 'tools' / 'peers-requirements.txt'}    installs what is missing"
    if needed := absent(NEEDED):
        raise Failure(f"nothing was measured: {', '.join(needed)} {'is' if len(needed) == 1 else 'are'} not installed\n{way}")
    if missing and not quick:
        raise Failure("\n".join(["nothing was measured; leave out of --engines what is not there", *words, way]))
    if missing:
        print("\n".join([*words, way]), file=sys.stderr)
    return [name for name in engines if name not in missing]


# Names of charts, and their width in mm: a column and a page of a journal.
CHARTS = {"bars-column": 85, "bars": 174}


def draw(arguments):
    for name, width in CHARTS.items():
        targets = [arguments.out / f"{name}.{suffix}" for suffix in ("svg", "png")]
        print(plot(arguments.program, arguments.out / "latency" / "all.json", "bars", targets, "--width-mm", width))


def measure(arguments):
    arguments.out.mkdir(parents=True, exist_ok=True)
    campaign = Campaign(arguments)
    if not campaign.patience.wait(campaign.runner) and not campaign.patience.accept:
        raise Failure("the machine is busy; nothing was measured (--accept-disturbed measures and marks)")
    environment = read_machine(arguments.program, arguments.out)
    fine = True
    for row in planned_rows(arguments, campaign.documents):
        busy = busy_neighbour(max(os.sched_getaffinity(0))) if row.mode == "neighbour" else contextlib.nullcontext(0)
        with busy as neighbour:
            fine = measure_row(row, campaign, dataclasses.replace(campaign.runner, neighbour=neighbour)) and fine
        write_reports(campaign, environment)
    for row in campaign.cut:
        print(f"{row} is in no table and no chart until each engine was measured: the same command goes on", flush=True)
    return fine


def run(arguments):
    settle(arguments)
    shows = arguments.table or arguments.csv or arguments.chart or arguments.record
    if not arguments.out or not (shows or arguments.work):
        sys.exit("peers.py: --work and --out are needed, or --out and --table, --chart or --record, or --quick")
    if shows:
        signal.signal(signal.SIGPIPE, signal.SIG_DFL)  # `--table | head` is no error
        for wanted, show in ((arguments.table, lambda: print_tables(arguments.out)), (arguments.csv, lambda: print_csv(arguments.out, arguments.csv)),
                             (arguments.chart, lambda: draw(arguments)), (arguments.record, lambda: record(arguments.out, arguments.record))):
            if wanted:
                show()
        return 0
    begun = time.monotonic()
    arguments.engines = installed(arguments.engines, arguments.quick)
    fine = measure(arguments)
    if arguments.quick:
        print_tables(arguments.out)
        draw(arguments)
        print(f"--quick took {time.monotonic() - begun:.0f} s")
    return 0 if fine else 1
