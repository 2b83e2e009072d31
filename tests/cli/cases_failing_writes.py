"""Every command that writes, while one system call fails: creating, writing, syncing, closing, renaming or removing a file, each in turn
(tests/failing_calls), alone or with all that follow it, as on a disk that stays full.

Wanted is one of two. Exit 0, and every byte is there. Or an error with one sentence that names the command and the file; then every file
is whole, as it was before or as it should be, and no temporary file stays. What a command keeps to go on from (`--resume`, runs of
training) is named below, and going on from it must give the bytes of a run without a failure.

The same commands while one request for memory, a mapping or a thread fails (tests/failing_calls/failing_memory.c): exit 0 and every byte,
or one sentence that names what is short, exit 4 and nothing half written.

Commands that can be gone on from are killed in place of each rename, link, removal and new folder; going on gives the same bytes.

Of calls of one kind on one file that follow each other, as writes of a large file do, the first, the last and a drawn one count; of the
requests that one place in the program makes, likewise. The nightly stage failing-calls, with DEBERTA_TEST_EVERY_CALL=1, lets each of these
fail. The full suite takes a drawn 5 % of the calls, four at least, every other one with all that follow it, and four requests, a sample of it
(DEBERTA_TEST_QUICK) one of each beside the last, and memory is short in every second command; the seed is DEBERTA_TEST_CALLS_SEED (1).

SPDX-License-Identifier: MIT
"""
import functools
import itertools
import json
import os
import pathlib
import random
import re
import shutil
import signal
import struct
import subprocess
from unittest import SkipTest

import cases_heads
from helpers import DEMO, GOLDEN, ROOT, SAMPLED, SPM, TINY, has_figures, is_sanitized

LIBRARY = "tests/failing_calls/failing_calls.so"
MEMORY_LIBRARY = "tests/failing_calls/failing_memory.so"
EVERY = bool(os.environ.get("DEBERTA_TEST_EVERY_CALL"))
SEED = int(os.environ.get("DEBERTA_TEST_CALLS_SEED", "1"))
SHARE, FEWEST = (0, 1) if SAMPLED else (0.05, 4)
NO_SPACE, INPUT_OUTPUT = 28, 5
TEMPORARY = re.compile(r"\.deberta-[A-Za-z0-9.]+-\d+-\d+\.tmp$")
REMOVALS = {"x86_64": {84, 87, 263}, "aarch64": {35}}.get(os.uname().machine, set())  # rmdir, unlink, unlinkat
CHANGES = REMOVALS | {"x86_64": {82, 83, 86, 88, 258, 264, 265, 266, 316}, "aarch64": {34, 36, 37, 38, 276}}.get(os.uname().machine, set())  # rename, mkdir, link, ...

TEXTS = "".join(f"text {k} of a small corpus that goes on\n" for k in range(60))
ROWS = "".join(f"{('good', 'fair', 'bad')[k % 3]}\ta text of number {k}\n" for k in range(12))
RECIPE = ["--sequence-tokens", "16", "--batch-sequences", "2", "--dropout", "0", "--steps", "3", "--checkpoint-every", "1", "--keep", "1", "-t", "1", "-q"]
RUN = r"x|x/(log\.jsonl|chain\.jsonl|\.checkpoint(/.*)?|checkpoint-\d+(/.*)?|best)"
LOG = "".join(f'{{"step": {k}, "loss": {9 - k}.5, "gradient_norm": 1.25, "learning_rate": 0.001, "seconds": 0.1}}\n' for k in range(1, 6))
TRAINED = ROOT / "tests" / "golden_train"


GROUPS = ("train", "finetune", "bench")


def old_report(folder):
    (folder / "x").mkdir()
    for name in ("index.html", "info.json", "mine"):
        (folder / "x" / name).write_text("old")
    (folder / "x" / "commands.sh").write_text("#!/bin/sh\n# Makes everything in this folder again but the page; run it where the report was made.\n")


class Case:
    """name: what the test is called, beginning with the command. words: without the program. outs: names of results, one of which an
    error names. keeps: patterns of names that may stay behind unfinished. again: what finishes the work then. old: whether the results are
    there before. figures: drawn, left out where the program cannot."""

    def __init__(self, name, words, outs, keeps=None, again=None, old=True, figures=False, prepare=None):
        self.name, self.words, self.outs, self.keeps, self.again = name, words, outs, keeps, again
        self.old, self.figures, self.prepare = old, figures, prepare
        self.command = " ".join(words[:2] if isinstance(words[1], str) and re.fullmatch("[a-z]+", words[1]) and words[0] in GROUPS else words[:1])


def head(name):
    return lambda bench: cases_heads.model(bench, name)


def packed_model(folder):
    for file in ("config.json", "model.safetensors"):
        shutil.copy2(next(GOLDEN.glob("33-*")) / file, folder)


def parts(folder):
    """Of a sweep, as two tasks would have measured it."""
    whole = json.loads(pathlib.Path(BENCHED).read_text(encoding="utf-8"))
    for k, points in enumerate((whole["results"][:2], whole["results"][2:]), 1):
        (folder / f"{k}.json").write_text(json.dumps({**whole, "results": points}), encoding="utf-8")


def made_once(*commands):
    """What these commands leave in the folder of work, made once without a failure."""
    made = {}

    def prepare(folder):
        before = set(tree(folder))
        for words in () if made else commands:
            subprocess.run([PROGRAM[0], *words], check=True, cwd=folder)
        if not made:
            made.update({name: content for name, content in tree(folder).items() if name not in before})
        for name, content in sorted(made.items()):
            if content is None:
                (folder / name).mkdir(exist_ok=True)
            else:
                (folder / name).write_bytes(content)
    return prepare


def shards(suffix):
    return made_once(*([*CORPUS, "--shards", "2", "--shard", str(k), "-o", "x." + suffix] for k in range(2)))


PROGRAM = []  # the tests' own
BENCHED = str(pathlib.Path(__file__).parent / "bench_sample.json")
CORPUS = ["encode", DEMO, "--file", "../texts.txt", "--batch-tokens", "64", "-t", "1", "-q"]
QUICK = ["-t", "1", "-q"]
NEW = ["train", "tokenizer", "--file", "../texts.txt", "--vocabulary", "40", "--depth", "1", "--width", "32", "--head-count", "2", "-q", "--out", "new"]
CHAINED = ["train", "mlm", "--config", "new", "--file", "../texts.txt", *RECIPE, "--eval", "../texts.txt", "--eval-every", "2", "--chain", "--chain-every", "1",
           "--keep-every", "2"]
KEPT = RUN.replace("best", "best(/.*)?")
CASES = [
    Case("encode states", ["encode", TINY, "--ids", "1,2,3", *QUICK, "-o", "x.safetensors"], ["x.safetensors"]),
    *(Case(f"encode corpus {suffix}", [*CORPUS, "-o", "x." + suffix], ["x." + suffix]) for suffix in ("npy", "safetensors", "jsonl")),
    *(Case(f"encode resumable {suffix}", [*CORPUS, "--resume", "-o", "x." + suffix], ["x." + suffix], keeps=r"x\.\w+\.part(\.journal)?",
           again=[*CORPUS, "-o", "x." + suffix]) for suffix in ("npy", "safetensors", "jsonl")),
    Case("encode windows", [*CORPUS, "--window", "8", "--pool", "none", "--resume", "-o", "x.safetensors"], ["x.safetensors"], keeps=r"x\.\w+\.part(\.journal)?",
         again=[*CORPUS, "--window", "8", "--pool", "none", "-o", "x.safetensors"]),
    Case("encode shard", [*CORPUS, "--shards", "2", "--shard", "1", "-o", "x.npy"], ["x.npy"], keeps=r"x\.npy\.shards(/.*)?", old=False,
         again=[*CORPUS, "--shards", "2", "--shard", "1", "-o", "x.npy"]),
    *(Case(f"merge {suffix}", ["merge", f"x.{suffix}.shards", "-q", "-o", "y." + suffix], ["y." + suffix], prepare=shards(suffix))
      for suffix in ("npy", "safetensors", "jsonl")),
    Case("encode threads", ["encode", TINY, "--ids", "1,2,3", "-t", "2", "-q", "-o", "x.safetensors"], ["x.safetensors"]),
    Case("tokenize", ["tokenize", str(GOLDEN / SPM), "--file", "../texts.txt", "--json", "-q", "-o", "x.json"], ["x.json"]),
    Case("fill-mask", ["fill-mask", head("mlm"), "--text", "a [MASK]", *QUICK, "-o", "x.txt"], ["x.txt"]),
    Case("classify", ["classify", head("sequence"), "--file", "../texts.txt", "--json", *QUICK, "-o", "x.jsonl"], ["x.jsonl"]),
    Case("tag", ["tag", head("token"), "--file", "../texts.txt", *QUICK, "-o", "x.txt"], ["x.txt"]),
    Case("detect", ["detect", head("rtd"), "--file", "../texts.txt", "--json", *QUICK, "-o", "x.jsonl"], ["x.jsonl"]),
    Case("attribute", ["attribute", head("sequence"), "--file", "../texts.txt", "--json", "--steps", "1", *QUICK, "-o", "x.jsonl"], ["x.jsonl"]),
    Case("attribute figure", ["attribute", head("sequence"), "--text", "a store", "--steps", "1", *QUICK, "-o", "x.svg", "-o", "x.txt"], ["x.svg", "x.txt"], figures=True),
    Case("answer", ["answer", head("qa"), "--question", "who", "--context", "it was me", *QUICK, "-o", "x.txt"], ["x.txt"]),
    Case("eval", ["eval", head("sequence"), "../rows.tsv", *QUICK, "-o", "x.json", "-o", "x.svg"], ["x.json", "x.svg"], figures=True),
    Case("attention", ["attention", TINY, "--ids", "1,2,3", *QUICK, "-o", "x.svg", "-o", "x.pdf", "-o", "x.png", "--numbers", "x.safetensors"],
         ["x.svg", "x.pdf", "x.png", "x.safetensors"], figures=True),
    Case("attention numbers", ["attention", TINY, "--ids", "1,2,3", *QUICK, "--numbers", "x.csv", "-o", "x.svg"], ["x.csv", "x.svg"], figures=True),
    Case("receptive-field", ["receptive-field", TINY, "--plot", "x.svg", "-o", "x.json", "-q"], ["x.json", "x.svg"], figures=True),
    Case("report", ["report", TINY, "--ids", "1,2,3", "-n", "4", "--reps", "1", "--skip", "latency,verify", *QUICK, "-o", "x"], ["x"], old=False, figures=True),
    Case("report again", ["report", TINY, "--ids", "1,2,3", "--skip", "latency,verify,receptive-field", *QUICK, "-o", "x"], ["x"], figures=True,
         prepare=old_report),
    Case("pack", ["pack", ".", "-q"], ["deberta.packed"], prepare=packed_model),
    Case("info", ["info", TINY, "--json", "-o", "x.json"], ["x.json"]),
    Case("info printed", ["info", TINY], ["standard output"]),
    Case("completion", ["completion", "bash"], ["standard output"]),
    Case("verify", ["verify", TINY, *QUICK, "-o", "x.json"], ["x.json"]),
    Case("bench", ["bench", TINY, "-n", "4", "--reps", "1", "--min-time", "0", "--no-peak", *QUICK, "-o", "x.json"], ["x.json"]),
    Case("bench requests", ["bench", "requests", TINY, "--requests", "4", "--lengths", "short-uniform", *QUICK, "-o", "x.json"], ["x.json"]),
    Case("bench merge", ["bench", "merge", "1.json", "2.json", "-q", "-o", "x.json"], ["x.json"], prepare=parts),
    Case("bench compare", ["bench", "compare", BENCHED, BENCHED, "-o", "x.csv"], ["x.csv"]),
    Case("bench kernel", ["bench", "kernel", "../problems.txt", "--isa", "scalar", "--reps", "1", "-q", "-o", "x.md"], ["x.md"]),
    Case("bench train", ["bench", "train", TINY + ",lm=1", "-n", "4", "-b", "1", "--reps", "1", "--no-peak", *QUICK, "-o", "x.tex"], ["x.tex"]),
    Case("verify figure", ["verify", TINY, *QUICK, "-o", "x.svg", "-o", "x.json"], ["x.svg", "x.json"], figures=True),
    Case("bench plot", ["bench", "plot", BENCHED, "-q", "-o", "x.svg", "-o", "x.png"], ["x.svg", "x.png"], figures=True),
    *(Case(" ".join(words[:2]), [*words, *RECIPE, "-o", "x"], ["x"], keeps=RUN, again=[*words, *RECIPE, "-o", "x"], old=False)
      for words in (["train", "mlm", head("mlm"), "--file", "../texts.txt"], ["train", "rtd", head("rtd"), "--file", "../texts.txt", "--generator", head("mlm")],
                    ["finetune", "sequence", head("sequence"), "--examples", "../rows.tsv", "--eval", "../rows.tsv", "--eval-every", "1"])),
    Case("train chain", [*CHAINED, "--out", "x"], ["x"], keeps=KEPT, again=[*CHAINED, "--out", "x"], old=False, prepare=made_once(NEW)),
    Case("train chain resumed", [*CHAINED, "--resume", "--out", "x"], ["x"], keeps=KEPT, again=[*CHAINED, "--out", "x"], old=False,
         prepare=made_once(NEW, [*CHAINED, "--stop-at", "2", "--out", "x"])),
    Case("verify audit", ["verify", "--audit", "run", "--segments", "9", "--seed", "1", *QUICK, "-o", "x.json"], ["x.json", "/deberta-audit-"],
         prepare=made_once(NEW, [*CHAINED, "--out", "run"])),
    Case("train gradients", ["train", "mlm", str(TRAINED / "03-v3-mlm-emd"), "--one-batch", str(TRAINED / "03-v3-mlm-emd" / "batch.safetensors"), *QUICK,
                             "--gradients", "x.safetensors"], ["x.safetensors"]),
    Case("train tokenizer", ["train", "tokenizer", "--file", "../texts.txt", "--vocabulary", "40", "--depth", "1", "--width", "32", "--head-count", "2", "-q", "-o", "x"],
         ["x"], old=False),
    Case("train plot", ["train", "plot", "../log.jsonl", "-q", "-o", "x.svg", "-o", "x.pdf"], ["x.svg", "x.pdf"], figures=True),
]


# --------------------------------------------------------------------------------------------------------------- a run


def tree(folder):
    """{name: bytes} of all files; None for folders."""
    found = {}
    for path in pathlib.Path(folder).rglob("*"):
        found[str(path.relative_to(folder))] = None if path.is_dir() else path.read_bytes()
    return found


def plain(content):
    """Without numbers, which are other ones in each run where time is measured, and without remarks on how quiet the machine was."""
    if content is None:
        return None
    content = re.sub(rb'"notes":\s*\[[^\]]*\]', b'"notes": []', content)
    return re.sub(rb"-?[0-9][0-9.eE+-]*", b"#", content).replace(b" ", b"")


class Trial:
    """One case: the result without a failure, and what each failing call leaves."""

    library_name, report_format, kills, share = LIBRARY, "<QQq232s", False, SHARE
    noun, asked = "call", "system calls cannot be made to fail"

    def __init__(self, bench, case):
        self.bench, self.case = bench, case
        self.words, self.again = ([word(bench) if callable(word) else word for word in words or []] for words in (case.words, case.again))
        self.work, self.report = pathlib.Path(bench.path("work")), bench.path("report")
        self.library = os.path.join(os.path.dirname(bench.program), self.library_name)
        bench.write("texts.txt", TEXTS)
        bench.write("rows.tsv", ROWS)
        bench.write("log.jsonl", LOG)
        bench.write("problems.txt", "softmax rows=2 columns=16\n")
        self.start = {}
        first, self.whole, self.calls = self.run(0, log=bench.path("calls"))
        self.worth = self.worth_failing(bench.read("calls").splitlines())
        second, again, _ = self.run(0)
        assert first.code == second.code == 0, first.describe()
        self.out = first.bytes[0]
        self.varies = {name for name in self.whole if again.get(name) != self.whole[name] or name.endswith("log.jsonl")} | ({"stdout"} if second.bytes[0] != self.out else set())

    def worth_failing(self, calls):
        """Numbers, from 1, of calls that differ: a line for each says what it is."""
        return representatives(list(group) for _, group in itertools.groupby(range(1, len(calls) + 1), lambda k: calls[k - 1]))

    def ways(self, k):
        """Whether all calls that follow fail as well."""
        return (False, True) if EVERY or k == self.worth[-1] else (k % 2 == 0,)

    def run(self, k, on=False, log=None):
        """(result, files, how many calls there were); `failed` is which one failed."""
        shutil.rmtree(self.work, ignore_errors=True)
        self.work.mkdir()
        if self.case.prepare:
            self.case.prepare(self.work)
        if k and self.case.old:
            for name in self.case.outs:
                if "." in name:
                    (self.work / name).write_text("old")
        self.start = tree(self.work)
        pathlib.Path(self.report).unlink(missing_ok=True)
        environment = {"LD_PRELOAD": self.library, "FAIL_REPORT": self.report, "FAIL_AT": str(k), "FAIL_WITH": str(NO_SPACE if on or k % 2 else INPUT_OUTPUT),
                       "SOURCE_DATE_EPOCH": "0", "TMPDIR": str(self.work), **({"FAIL_FROM": "1"} if on else {}),
                       **({"FAIL_KILL": "1"} if self.kills else {}), **({"FAIL_LOG": log} if log else {})}
        os.chdir(self.work)
        result = self.program(self.words, environment)
        calls, failed, *which = struct.unpack(self.report_format, pathlib.Path(self.report).read_bytes())
        number, path = which or (0, b"")
        self.failed = (number, path.rstrip(b"\0").decode(errors="replace")) if failed else None
        return result, tree(self.work), calls

    def program(self, words, environment=None):
        self.bench.folder, folder = str(self.work), self.bench.folder
        try:
            return self.bench.run(*words, env=environment)
        finally:
            self.bench.folder = folder

    def same(self, name, content):
        if name in self.varies:
            return plain(content) == plain(self.whole.get(name, self.out))
        return content == (self.out if name == "stdout" else self.whole[name])

    def faults(self, k, on):
        """What is wrong with the end of the run whose call number k fails; nothing where all is well, None where no call failed."""
        result, files, _ = self.run(k, on)
        if not self.failed:
            return None
        if self.failed[0] in REMOVALS:  # a folder of an audit that cannot be removed stays
            files = {name: content for name, content in files.items() if not name.startswith("deberta-audit-")}
        if result.code == 0:
            return [f"exit 0, and {name} is not what it should be" for name in self.whole.keys() | files.keys()
                    if name not in files or name not in self.whole or not self.same(name, files[name])] + \
                   (["exit 0, and something is missing on standard output"] if not self.same("stdout", result.bytes[0]) else [])
        if result.code < 0:
            return [f"ended by signal {-result.code}"]
        return self.faults_of_message(result) + self.faults_of_files(files) + self.faults_of_going_on()

    def faults_of_message(self, result):
        told = [line for line in result.err.splitlines() if line.startswith("deberta")]
        if result.code != 4 or len(told) != 1:
            return [f"exit {result.code}, and {len(told)} sentences: {result.err[-300:]!r}"]
        command = "deberta: " if "standard output" in told[0] else f"deberta {self.case.command}: "
        names = [*self.case.outs, *self.whole, "standard output"]
        right = told[0].startswith(command) and any(name in told[0] for name in names) and "Success" not in told[0]
        return [] if right else [f"the sentence is {told[0]!r}"]

    def faults_of_files(self, files):
        faults = []
        for name, content in files.items():
            if TEMPORARY.search(name) or name.startswith("deberta-audit-"):
                if self.failed[0] not in REMOVALS:
                    faults.append(f"{name} stays")
            elif self.case.keeps and re.fullmatch(self.case.keeps, name):
                continue
            elif name not in self.start and (name not in self.whole or (content is not None and not self.same(name, content))) \
                    or name in self.start and content != self.start[name] and not (name in self.whole and self.same(name, content)):
                faults.append(f"{name} is neither as it was nor whole")
        return faults + [f"{name} is gone" for name in self.start if name not in files]

    def faults_of_going_on(self):
        """What is kept is gone on from; a run that kept nothing begins anew."""
        if not self.again:
            return []
        result = self.program([*self.again, "--resume"])
        if result.code and ("no run to resume" in result.err or "has no checkpoint" in result.err):
            shutil.rmtree(self.work / "x", ignore_errors=True)
            result = self.program(self.again)
        if result.code:
            return [f"going on: {result.err[-300:]!r}"]
        files = tree(self.work)
        return [f"after going on, {name} is not what it should be" for name in self.whole.keys() | files.keys()
                if name not in files or name not in self.whole or not self.same(name, files[name])]


def representatives(groups):
    """Of each group the first, the last and a drawn one."""
    draw = random.Random(SEED)
    return sorted({k for group in groups for k in (group[0], draw.choice(group), group[-1])})


def chosen(worth, share):
    """The last, and others by the seed: all in the nightly stage, or a share."""
    count = len(worth) if EVERY else min(len(worth), max(FEWEST, round(share * len(worth))))
    return sorted({worth[-1], *random.Random(SEED).sample(worth, count)})


def note_counts(kind, case, tried, wrong):
    """For the table of docs/reliability.md: a line in the file that DEBERTA_TEST_COUNTS names."""
    if os.environ.get("DEBERTA_TEST_COUNTS"):
        with open(os.environ["DEBERTA_TEST_COUNTS"], "a", encoding="utf-8") as file:
            file.write(f"{kind}\t{case.name}\t{tried}\t{len(wrong)}\n")


class KilledTrial(Trial):
    """The same with a process that is killed in place of a call that changes files; what it wrote before may be anything that is kept."""

    kills, noun, asked = True, "kill", "system calls cannot be watched"

    def ways(self, k):
        return (False,)

    def worth_failing(self, calls):
        return [k for k, call in enumerate(calls, 1) if int(call.split()[0]) in CHANGES]

    def faults(self, k, on):
        result, files, _ = self.run(k, on)
        if not self.failed:
            return ["it was not made"]
        if result.code != -signal.SIGKILL:
            return [f"ended with {result.code}, not killed"]
        return self.faults_of_files({name: content for name, content in files.items() if not TEMPORARY.search(name)}) + self.faults_of_going_on()


class MemoryTrial(Trial):
    """The same with requests for memory."""

    library_name, report_format, share = MEMORY_LIBRARY, "<QQ", 0
    noun, asked = "request", "requests for memory cannot be made to fail"

    def ways(self, k):
        return (False,)

    def worth_failing(self, calls):
        of_place = {}
        for k, place in enumerate(calls, 1):
            of_place.setdefault(place, []).append(k)
        return representatives(of_place.values())

    def faults_of_message(self, result):
        told = [line for line in result.err.splitlines() if line.startswith("deberta")]
        if result.code != 4 or len(told) != 1:
            return [f"exit {result.code}, and {len(told)} sentences: {result.err[-300:]!r}"]
        return [] if told[0].startswith(f"deberta {self.case.command}: ") and ("memory" in told[0] or "thread" in told[0]) else [f"the sentence is {told[0]!r}"]


def on_trial(kind, case):
    def test(bench):
        if is_sanitized(bench.program):  # it has allocators of its own, and makes calls inside the handler of those that fail
            raise SkipTest(f"{kind.asked} under a sanitizer")
        if case.figures and not has_figures(bench):
            raise SkipTest("built without figures")
        environment = {"LD_PRELOAD": os.path.join(os.path.dirname(bench.program), kind.library_name), "FAIL_AT": "0"}
        if not os.path.exists(environment["LD_PRELOAD"]) or bench.run("--version", env=environment).code:
            raise SkipTest(f"{kind.asked} here")
        trial = kind(bench, case)
        assert trial.calls, f"no {kind.noun} was seen that could fail"
        tried, wrong = 0, []
        for k in chosen(trial.worth, kind.share):
            for on in trial.ways(k):
                faults = trial.faults(k, on)
                tried += faults is not None
                if faults:
                    wrong.append(f"{kind.noun} {k} of {trial.calls}{' and all that follow' if on else ''} ({trial.failed}): " + "; ".join(faults))
        note_counts(kind.noun, case, tried, wrong)
        assert tried, f"no {kind.noun} failed"
        assert not wrong, f"DEBERTA_TEST_CALLS_SEED={SEED}: {len(wrong)} of {tried} end neither well nor with an error:\n" + "\n".join(wrong[:12])
    return test


failing, killed, short_of_memory = (functools.partial(on_trial, kind) for kind in (Trial, KilledTrial, MemoryTrial))


def tests(settings):
    PROGRAM[:] = [settings.program]
    for case in CASES:
        yield "one call fails/" + case.name.replace(" ", "-"), failing(case)
    for number, case in enumerate(CASES):
        if not SAMPLED or (number + SEED) % 2 == 0:
            yield "memory is short/" + case.name.replace(" ", "-"), short_of_memory(case)
        if case.again:
            yield "killed/" + case.name.replace(" ", "-"), killed(case)
