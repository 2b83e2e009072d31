#!/usr/bin/env python3
"""deberta next to PyTorch, ONNX Runtime and OpenVINO: the same weights, the same shapes, in turn, checked against each other.

    tools/peers.py --work W --out R [--models v3-base] [-n 16,128,512] [--threads 1,2]      latency, batch 1
    tools/peers.py --work W --out R --documents      throughput on bench/shapes/document_lengths.txt
    tools/peers.py --work W --out R --batches 1,4,16,64 -n 16,128       so many equal texts at once
    tools/peers.py --work W --out R --neighbour      each row with and without a busy process on one core
    tools/peers.py --out R --table                   the results so far as Markdown; --csv: all numbers
    tools/peers.py --work W --out R --quick          tiny models, all engines, a few minutes: does it work here?

W keeps models, inputs and ONNX files (about 2 GB for all). R keeps visits.jsonl, one line for each process, and for each kind of
measurement a folder of JSON files of the schema of `deberta bench --json`: all.json, model-*.json for `bench plot`, engine-*.json
for `bench compare`. What visits.jsonl has undisturbed, or as failed, is not measured again. docs/benchmarking.md has the method.

Exit status 1: an engine of float32 disagreed with float64, one failed, or (without --accept-disturbed) was disturbed by others.

Needs build/deberta and tools/peers-requirements.txt: python3 -m venv v && v/bin/pip install -r tools/peers-requirements.txt
SPDX-License-Identifier: MIT
"""
import argparse
import collections
import contextlib
import dataclasses
import datetime
import json
import os
import resource
import shutil
import signal
import statistics
import subprocess
import sys
import time
from pathlib import Path

from peers_tables import CSV_MODES, print_csv, print_tables
from peers_worker import CALIBRATED, ENGINES, OURS, OWN, SHAPES, enough_calls, errors_of, machine_seconds, number_list, traced_length

ROOT = Path(__file__).resolve().parent.parent
WORKER = Path(__file__).resolve().with_name("peers_worker.py")
DOCUMENTS = ROOT / "bench" / "shapes" / "document_lengths.txt"
TOLERANCE = 5e-5  # largest |difference| of the last hidden state from PyTorch in float64, for float32 engines
QUIET_SECONDS = 0.5  # how long the machine is looked at before each visit
MOST_MIXES = 64  # --mix options of one `deberta bench`
CHECKED_DOCUMENTS = 16
FEWEST_CALLS = 3  # of ours
MODES = ("latency", "batches", "neighbour", "documents")


class Failure(Exception):
    """A process ended badly; the text is the last that it said."""


@dataclasses.dataclass(frozen=True)
class Row:
    """What all engines are measured at in turn."""

    mode: str  # one of MODES
    model: str
    threads: int
    n: int  # tokens; documents: of the longest
    batch: int = 1  # sequences at once

    def __str__(self):
        batch = f" batch {self.batch}" if self.mode in ("documents", "batches") else ""
        return f"{self.mode} {self.model} n={self.n}{batch} threads={self.threads}"


# --------------------------------------------------------------------------------------------------------- processes


@dataclasses.dataclass(frozen=True)
class Finished:
    output: str
    seconds: float
    other_cores: float  # used by neither the process nor this one nor the neighbour, over its whole life
    stolen_cores: float


@dataclasses.dataclass(frozen=True)
class Runner:
    limit: float  # seconds that a process may take
    neighbour: int = 0  # process id of the busy process

    def cpu_seconds(self):
        """Of this process, of those that it waited for, and of the neighbour."""
        used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
        seconds = sum(u.ru_utime + u.ru_stime for u in used)
        if self.neighbour:
            fields = Path(f"/proc/{self.neighbour}/stat").read_text("ascii").rsplit(")", 1)[1].split()
            seconds += (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
        return seconds

    def run(self, command, environment=None):
        (busy, stolen), own, spawned = machine_seconds(), self.cpu_seconds(), time.monotonic()
        if command[0] == sys.executable and "measure" in command:
            command = [*command, "--spawned", repr(spawned)]
        output, said, status = self.finish(command, environment)
        seconds = time.monotonic() - spawned
        if status != 0:
            raise Failure(f"exit status {status}: {(said.strip().splitlines() or [''])[-1]}"[:300])
        busy_after, stolen_after = machine_seconds()
        others = (busy_after - busy - (self.cpu_seconds() - own)) / seconds
        return Finished(output, seconds, max(0.0, others), (stolen_after - stolen) / seconds)

    def finish(self, command, environment):
        """Output, errors and exit status. In a session of its own, so that nothing it forked outlives it."""
        with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                              start_new_session=True) as process:  # fmt: skip
            try:
                return *process.communicate(timeout=self.limit), process.returncode
            except BaseException as interruption:
                os.killpg(process.pid, signal.SIGKILL)
                if isinstance(interruption, subprocess.TimeoutExpired):
                    raise Failure(f"took more than {self.limit:.0f} s") from None
                raise

    def foreign_cores(self):
        """Used by other processes, and taken by the hypervisor, just now."""
        before, own, began = sum(machine_seconds()), self.cpu_seconds(), time.monotonic()
        time.sleep(QUIET_SECONDS)
        used = sum(machine_seconds()) - before - (self.cpu_seconds() - own)
        return max(0.0, used / (time.monotonic() - began))


def worker_command(*arguments):
    return [sys.executable, str(WORKER), *map(str, arguments)]


def engine_environment(threads, engine):
    variables = dict(os.environ, OMP_NUM_THREADS=str(threads), MKL_NUM_THREADS=str(threads), HF_HUB_OFFLINE="1")
    return variables | dict(ENGINES[engine].environment if engine in ENGINES else ())


@contextlib.contextmanager
def busy_neighbour():
    """A process that keeps the last core busy; its id."""
    with subprocess.Popen([sys.executable, "-c", "while True: pass"]) as process:
        try:
            os.sched_setaffinity(process.pid, {max(os.sched_getaffinity(0))})
            yield process.pid
        finally:
            process.kill()


# -------------------------------------------------------------------------------------------------------- work folder


@dataclasses.dataclass(frozen=True)
class Work:
    """Models, inputs and graphs, made when they are first asked for."""

    folder: Path
    runner: Runner
    program: Path  # packs what is to be mapped

    def _made(self, path, *command):
        if not path.exists():
            print(f"making {path}", file=sys.stderr, flush=True)
            path.parent.mkdir(parents=True, exist_ok=True)
            self.runner.run(worker_command(*command))
        return path

    def model(self, name):
        path = self.folder / "models" / name
        return self._made(path, "model", name, path)

    def own_model(self, name, engine):
        return self.packed_model(name) if OWN[engine].packed else self.model(name)

    def packed_model(self, name):
        """The same weights with `deberta.packed` beside them, made by this very program."""
        path = self.folder / "packed" / name
        if not path.exists():
            partial = path.with_suffix(".part")
            shutil.rmtree(partial, ignore_errors=True)
            shutil.copytree(self.model(name), partial)
            partial.rename(path)
        about = json.loads(self.runner.run([str(self.program), "info", str(path), "--json", "--quiet"]).output)
        if about["model"]["packed"] != "mapped":
            self.runner.run([str(self.program), "pack", str(path)])
        return path

    def input(self, name, lengths):
        called = f"documents-{sum(lengths)}"
        if len(set(lengths)) == 1:
            called = str(lengths[0]) if len(lengths) == 1 else f"{len(lengths)}x{lengths[0]}"
        path = self.folder / "inputs" / name / f"{called}-float64.safetensors"
        return self._made(path, "input", self.model(name), path, "--lengths", ",".join(map(str, lengths)))

    def graph(self, name, precision, n):
        traced = traced_length(name, n)
        path = self.folder / "graphs" / name / f"{precision}-{traced}.{'xml' if precision == CALIBRATED else 'onnx'}"
        return self._made(path, "graph", self.model(name), path, "--precision", precision, "--traced", traced)


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
        """The visit that need not be made, because it was, or because the engine failed at this row; else None."""
        mine = [v for v in self.visits if v["engine"] == engine and self.row(v) == row]
        enough = (v for v in mine if "failed" in v or (v["round"] == turn and (disturbed_too or not v["disturbed"])))
        return next(enough, None)

    def add(self, row, engine, turn, visit):
        line = dataclasses.asdict(row) | {"engine": engine, "round": turn} | visit
        self.visits.append(line)
        with self.path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(line) + "\n")

    def grouped(self, mode):
        """{row: {engine: visits}} of what did not fail; undisturbed visits, where there are any."""
        rows = {}
        for visit in self.visits:
            if visit["mode"] == mode and "failed" not in visit:
                rows.setdefault(self.row(visit), {}).setdefault(visit["engine"], []).append(visit)
        return {row: {engine: [v for v in visits if not v["disturbed"]] or visits for engine, visits in engines.items()}
                for row, engines in rows.items()}  # fmt: skip


@dataclasses.dataclass(frozen=True)
class Patience:
    other_cores: float  # that others may use
    seconds: float  # to wait for them to stop
    attempts: int  # at a visit that was disturbed
    accept: bool  # measure all the same, and mark

    def wait(self, runner):
        """True when the machine is quiet."""
        deadline = time.monotonic() + self.seconds
        while (foreign := runner.foreign_cores()) > self.other_cores:
            if self.accept or time.monotonic() > deadline:
                return False
            print(f"waiting: others use {foreign:.2f} cores", file=sys.stderr, flush=True)
            time.sleep(5)
        return True


@dataclasses.dataclass(frozen=True)
class Campaign:
    """What is the same for all rows."""

    program: Path
    engines: list[str]
    rounds: int
    reps: int
    min_time: float
    documents: tuple[int, ...]  # lengths
    work: Work
    patience: Patience
    journal: Journal


# ----------------------------------------------------------------------------------------------------------- visits


def visit_peer(row, engine, campaign, runner):
    spec, work = ENGINES[engine], campaign.work
    source = work.input(row.model, checked_lengths(row, campaign))
    command = worker_command("measure", work.model(row.model), "--engine", engine, "--input", source, "--threads", row.threads,
                             "--reps", campaign.reps, "--min-time", campaign.min_time)  # fmt: skip
    if spec.graph:
        command += ["--graph", str(work.graph(row.model, spec.graph, row.n))]
    command += ["--batch", str(row.batch)]
    if row.mode == "documents":
        command += ["--documents", ",".join(map(str, campaign.documents))]
    done = runner.run(command, engine_environment(row.threads, engine))
    visit = json.loads(done.output.splitlines()[-1])
    return visit | {"precision": spec.precision, "isa": "native", "stolen_cores": done.stolen_cores,
                    "life_other_cores": done.other_cores}  # fmt: skip


def visit_ours(row, engine, campaign, runner):
    """Errors and time to first result by `encode`, times by `bench`: two processes, as a user would run them."""
    model = campaign.work.own_model(row.model, engine)
    alike = ["--threads", row.threads, "--reference", "hf", "--precision", OWN[engine].precision]
    visit = encode_ours(row, model, alike, campaign, runner)
    reps = max(FEWEST_CALLS, enough_calls(visit["first_result_s"], campaign.reps))  # the start may have been slow, not the call
    common = [campaign.program, "bench", model, *alike, "--no-peak", "--json", "--reps", reps, "--min-time", campaign.min_time]
    if row.mode != "documents":
        done = runner.run([*map(str, common), "-n", str(row.n), "--batch", str(row.batch)], engine_environment(row.threads, OURS))
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
    command = [campaign.program, "encode", model, "--input", source, *alike, "-o", target]
    try:
        done = runner.run(list(map(str, command)), engine_environment(row.threads, OURS))
        output = load_file(target)[f"hidden_states.{SHAPES[row.model].layers}"]
    finally:
        target.unlink(missing_ok=True)
    return {"first_result_s": done.seconds} | errors_of(output, load_file(source), SHAPES[row.model])


def bench_documents(row, campaign, common, runner):
    """Documents in the order in which they come, in ragged batches. Equal batches are measured once and counted often."""
    lengths = campaign.documents
    batches = [tuple(lengths[start : start + row.batch]) for start in range(0, len(lengths), row.batch)]
    counts = collections.Counter(batches)
    distinct, found, processes = list(counts), {}, []
    for start in range(0, len(distinct), MOST_MIXES):
        mixes = [word for batch in distinct[start : start + MOST_MIXES] for word in ("--mix", ",".join(map(str, batch)))]
        processes.append(runner.run([*map(str, common), *mixes], engine_environment(row.threads, OURS)))
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
    """Of the sequences whose last hidden state is compared."""
    return campaign.documents[:CHECKED_DOCUMENTS] if row.mode == "documents" else (row.n,) * row.batch


def foreign_load(row, visit):
    """In cores, while it was timed or over its whole life, whichever is more: the start counts, as first results are timed
    as well. With a neighbour of ours only the driver, who sees whole processes, knows what is foreign."""
    others = visit["life_other_cores"]
    if row.mode != "neighbour":
        others = max(others, visit["other_cores"])
    return others + visit["stolen_cores"]


def disagrees(visit):
    """Also when the difference is not a number."""
    return visit["precision"] == "float32" and not visit["max_abs_difference"] <= TOLERANCE


# ------------------------------------------------------------------------------------------------------------ driver


def visit_once(row, engine, campaign, runner):
    """A visit, or {"failed": why}."""
    try:
        return (visit_ours if engine in OWN else visit_peer)(row, engine, campaign, runner)
    except Failure as failure:
        return {"failed": str(failure)}


def visit_quietly(row, engine, campaign, runner):
    """The first visit that nobody disturbed, else the least disturbed one; None if the machine never was quiet."""
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


def prepare(row, engines, campaign):
    """What is made once is made before the clock runs."""
    campaign.work.input(row.model, checked_lengths(row, campaign))
    for engine in OWN.keys() & engines:
        campaign.work.own_model(row.model, engine)
    for precision in sorted({ENGINES[e].graph for e in engines if e in ENGINES and ENGINES[e].graph}):
        campaign.work.graph(row.model, precision, row.n)


def measure_row(row, campaign, runner):
    """Engines in turn, several rounds, each round beginning with another one; false if something is missing or wrong."""
    fine = True
    engines = [e for e in campaign.engines if e not in ENGINES or SHAPES[row.model].version in ENGINES[e].versions]
    prepare(row, engines, campaign)
    for turn in range(campaign.rounds):
        first = turn % len(engines)
        for engine in engines[first:] + engines[:first]:
            visit = campaign.journal.find(row, engine, turn, campaign.patience.accept)
            if visit is None:
                visit = visit_quietly(row, engine, campaign, runner)
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


def median_deviation(samples):
    middle = statistics.median(samples)
    return statistics.median(abs(s - middle) for s in samples)


def peak_gflops(environment, threads):
    """Of the best tier with so many threads; 0: not measured."""
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
    """`deberta bench machine`, measured when the folder is new."""
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


def collect_results(journal, mode, environment, documents):
    return [make_result(row, engine, visits, next((engines[e] for e in OWN if e in engines), None), environment, documents)
            for row, engines in journal.grouped(mode).items() for engine, visits in engines.items()]  # fmt: skip


def write_reports(journal, folder, environment, documents):
    for mode in MODES:
        results = collect_results(journal, mode, environment, documents)
        if not results:
            continue
        write_report(folder / mode / "all.json", environment, results)
        for key in ("model", "engine"):
            for name in sorted({result[key] for result in results}):
                write_report(folder / mode / f"{key}-{name}.json", environment, [r for r in results if r[key] == name])


# ------------------------------------------------------------------------------------------------------ command line


def read_lengths(path):
    text = [line.split("#")[0] for line in path.read_text("utf-8").splitlines()]
    return tuple(int(word) for line in text for word in line.split())


def name_list(known):
    def parse(text):
        names = list(known) if text == "all" else text.split(",")
        unknown = [name for name in names if name not in known]
        if unknown:
            raise argparse.ArgumentTypeError(f"{unknown[0]} is not among {', '.join(known)}")
        return names

    return parse


def parse_arguments():
    cores = len(os.sched_getaffinity(0))
    engines = "\n".join(f"  {name:25} {spec.precision:9} {spec.summary}" for name, spec in {**OWN, **ENGINES}.items())
    parser = argparse.ArgumentParser(description=__doc__, epilog=f"engines:\n{engines}",
                                     formatter_class=argparse.RawDescriptionHelpFormatter)  # fmt: skip
    add = parser.add_argument
    add("--work", type=Path, help="folder for models, inputs, ONNX files")
    add("--out", type=Path, required=True, help="folder for results")
    add("--program", type=Path, default=ROOT / "build" / "deberta")
    add("--models", type=name_list(SHAPES), default=["v3-base", "v1-base", "v3-small", "v3-xsmall"])
    add("--engines", type=name_list([*OWN, *ENGINES]), default=[OURS, "torch", "torch-malloc", "onnxruntime", "openvino"],
        help="names or all; default: those without compilation and with all digits")  # fmt: skip
    add("-n", "--tokens", type=number_list, default=[16, 40, 128, 256, 512, 1024, 2048, 4096])
    add("--threads", type=number_list, default=sorted({1, min(2, cores)}))
    add("--rounds", type=int, default=3)
    add("--reps", type=int, default=7, help="timed calls in a process, at least; fewer if one takes seconds")
    add("--min-time", type=float, default=0.5, help="seconds of timed calls in a process, at least")
    add("--documents", action="store_true")
    add("--lengths-file", type=Path, default=DOCUMENTS)
    add("--document-count", type=int, default=256, help="the first so many of the file")
    add("--batch-documents", type=number_list, default=[1, 8, 32], help="documents at once; the table takes each engine's best")
    add("--batches", type=number_list, default=[], help="equal texts at once, of each -n")
    add("--neighbour", action="store_true")
    add("--table", action="store_true")
    add("--csv", choices=CSV_MODES, const="latency", nargs="?", help="all numbers of latencies or batches (default: latency)")
    add("--quick", action="store_true")
    add("--other-cpus", type=float, default=0.1, help="cores that others may use while a row is measured")
    add("--patience", type=float, default=60, help="seconds to wait for a quiet machine before a row is refused")
    add("--accept-disturbed", action="store_true", help="do not wait; measure and mark")
    add("--limit", type=float, default=900, help="seconds that one process may take")
    arguments = parser.parse_args()
    if not arguments.table and not arguments.csv and not arguments.work:
        parser.error("--work is needed")
    if arguments.quick:
        arguments.models, arguments.engines, arguments.tokens = ["tiny-v3", "tiny-v1"], [*OWN, *ENGINES], [16, 40]
        arguments.threads, arguments.rounds, arguments.reps, arguments.min_time = [1], 1, 3, 0.2
        arguments.document_count, arguments.batch_documents, arguments.accept_disturbed = 24, [1, 8], True
    return arguments


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


def run(arguments):
    arguments.out.mkdir(parents=True, exist_ok=True)
    alone = Runner(arguments.limit)
    campaign = Campaign(arguments.program, arguments.engines, arguments.rounds, arguments.reps, arguments.min_time,
                        read_lengths(arguments.lengths_file)[: arguments.document_count], Work(arguments.work, alone, arguments.program),
                        Patience(arguments.other_cpus, arguments.patience, 3, arguments.accept_disturbed),
                        Journal(arguments.out))  # fmt: skip
    if not campaign.patience.wait(alone) and not campaign.patience.accept:
        sys.exit("peers.py: the machine is busy; nothing was measured (--accept-disturbed measures and marks)")
    environment = read_machine(arguments.program, arguments.out)
    fine = True
    for row in planned_rows(arguments, campaign.documents):
        with busy_neighbour() if row.mode == "neighbour" else contextlib.nullcontext(0) as neighbour:
            fine = measure_row(row, campaign, dataclasses.replace(alone, neighbour=neighbour)) and fine
        write_reports(campaign.journal, arguments.out, environment, campaign.documents)
    return fine


def main():
    arguments = parse_arguments()
    if arguments.table or arguments.csv:
        signal.signal(signal.SIGPIPE, signal.SIG_DFL)  # `--table | head` is no error
        print_tables(arguments.out) if arguments.table else print_csv(arguments.out, arguments.csv)
        return
    try:
        sys.exit(0 if run(arguments) else 1)
    except Failure as failure:
        sys.exit(f"peers.py: {failure}")


if __name__ == "__main__":
    main()
