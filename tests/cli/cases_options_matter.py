"""Every option of every command changes what the command gives, is refused, or is said to change nothing: none is passed over in silence.

Commands and options are those that `completion` lists; each has a row here, and one without fails. A row holds words that give the option, and what must come of them:

    CHANGES   other numbers, words or files than without the option
    LOOKS     another picture or text of the same numbers
    REFUSED   a sentence, and no result
    SAID      the same numbers, and a note
    SAME      the same result; the row says why
    TOLD      any of the first four: there is no silence
    FREE      whatever comes; the row says why it cannot be known

Where an option has company (words beside it, in the run that it is compared with, too), it is also given alone. SPDX-License-Identifier: MIT
"""
import array
import dataclasses
import functools
import hashlib
import json
import os
import pathlib
import random
import re
import shutil
import subprocess
import tempfile
import typing
from unittest import SkipTest

from helpers import DAY, ROOT, SAMPLED, Tensor, check, make_model, read_tensors, write_tensors

CHANGES, LOOKS, REFUSED, SAID, SAME, TOLD, FREE = "changes", "looks", "refused", "said", "same", "told", "free"
DRAWN = 6  # options of a command in the short run
TEXT = "the old house by the sea stood beside a new store and nobody knew who had opened it in the summer"
OTHER = "a new store opened beside the old house by the sea and everybody who had seen it before went there"
CASES = ("03-v3-mlm-emd", "11-v3-rtd", "07-v1-sequence-types", "18-v3-choice", "08-v2-conv-token", "10-v3-qa")
TRAINED_CASES = str(ROOT / "tests" / "golden_train")
MASKED = "the old house by the [MASK] stood beside a new store and nobody knew who had opened it"
SEEN = "the old house stood beside the sea"
OTHER_SEEN = "a new store opened behind the mall in the summer"
SEEN_MASKED = "the old [MASK] stood beside the sea"
LINES = [TEXT, OTHER, "the boat left the shore early", "nobody saw the captain again", "she went home", "the sea was old"]
PICTURE = ("title", "width-mm", "exact-width", "dpi", "font", "font-size", "no-notes")


@dataclasses.dataclass
class Row:
    """words: the option and its value. beside: what both runs have, too. input: takes the place of the command's input in the run with the option; both: in both.
    tail: takes the place of where results go, in both runs. fails: exit code of the run without the option. alone: what comes of the option without its company; """

    words: typing.Sequence[str]
    outcome: str = CHANGES
    reason: str = ""
    beside: typing.Sequence[str] = ()
    input: typing.Optional[typing.Sequence[str]] = None
    both: typing.Optional[typing.Sequence[str]] = None
    tail: typing.Optional[typing.Sequence[str]] = None
    fails: int = 0
    alone: str = TOLD
    head: typing.Optional[typing.Sequence[str]] = None  # takes the place of command and model, in both


def same(words, reason, **more):
    return Row(words, SAME, reason, **more)


def looks(*words, **more):
    return Row(words, LOOKS, **more)


def row(*words, **more):
    return Row(words, **more)


def refused(*words, **more):
    return Row(words, REFUSED, **more)


def said(*words, **more):
    return Row(words, SAID, **more)


def told(*words, **more):
    return Row(words, TOLD, **more)


@dataclasses.dataclass
class Base:
    """How a command is run: its words and model, its input, where results go."""

    head: typing.Sequence[str]
    input: typing.Sequence[str]
    tail: typing.Sequence[str] = ()
    rows: typing.Mapping[str, typing.Any] = dataclasses.field(default_factory=dict)
    copies: str = ""  # a model of the inputs that is copied into the folder, where the command writes into it
    measures: bool = False  # what it gives are measurements, of which all but the numbers is compared


# What an option means everywhere; a command's own rows come first.
SAME_BITS = "every tier and number of threads gives the same bits"
COMMON = {
    "isa": same(["--isa", "scalar"], SAME_BITS), "threads": same(["--threads", "2"], SAME_BITS), "quiet": same(["--quiet"], "it is about notes"),
    "progress": same(["--progress", "never"], "it is about standard error"), "help": row("--help"), "version": row("--version"), "json": row("--json"),
    "reference": row("--reference", "microsoft"), "precision": row("--precision", "int8"), "memory-limit": refused("--memory-limit", "1K"), "seed": row("--seed", "7"),
    "ablate": row("--ablate", "c2p@all"), "max-tokens": row("--max-tokens", "6"), "strict": refused("--strict", both=["--file", "{X}/broken.txt"]),
    "text": [row(input=["--text", OTHER]), row("--text", OTHER)], "pair": row("--pair", OTHER), "file": row(input=["--file", "{X}/lines.txt"]),
    "ids": row(input=["--ids", "1,9,30,12,40,17,2"]), "input": row(input=["--input", "{X}/ids.json"]),
    "batch-tokens": same(["--batch-tokens", "8"], "rows are computed each by itself: speed and memory"),
    "jsonl": refused("--jsonl", both=["--file", "{X}/lines.txt"]), "top": row("--top", "1"),
    "shards": row("--shards", "2", both=["--file", "{X}/lines.txt"], beside=["--shard", "1", "-o", "o.jsonl"], alone=REFUSED, fails=2),
    "shard": row("--shard", "1", both=["--file", "{X}/lines.txt"], beside=["--shards", "2", "-o", "o.jsonl"], fails=2),
    "skip-bad": row("--skip-bad", both=["--file", "{X}/bad.jsonl"], fails=3), "out": row("--out", "o.txt"),
    "format": row("--format", "csv"), "layers": row("--layers", "0"), "heads": row("--heads", "2"),
}


class Words:
    """What a run gave: numbers and words by place, pictures apart."""

    def __init__(self, result, folder, measures):
        self.measures = measures
        self.code, self.err = result.returncode, result.stderr.decode(errors="replace")
        self.answer, self.look = {"exit": self.code}, {}
        self.add("stdout", result.stdout)
        for path in sorted(folder.rglob("*")):
            if path.is_file() and path.name not in BESIDE:
                self.add(str(path.relative_to(folder)), path)

    def add(self, name, content):
        suffix = pathlib.Path(name).suffix
        data = content if isinstance(content, bytes) else content.read_bytes()
        if suffix == ".safetensors":
            length = int.from_bytes(data[:8], "little")
            header = json.loads(data[8:8 + length])
            self.look.update({f"{name}: {key}": value for key, value in header.pop("__metadata__", {}).items() if key not in HOW})
            self.answer[name] = sorted((key, str(value)) for key, value in header.items()), digest(data[8 + length:])
            return
        if suffix in (".svg", ".png", ".pdf", ".html", ".tex"):
            self.answer[name], self.look[name] = "there", digest(drawing(data))
            return
        try:
            lines = [json.loads(data)] if suffix == ".json" or data[:1] == b"{" and data.count(b"\n") > 1 and b"\n{" not in data else [json.loads(line) for line in data.splitlines()]
        except ValueError:
            self.answer[name] = data if len(data) < 100000 else digest(data)
            return
        self.answer[name + ": lines"] = len(lines)
        for k, one in enumerate(lines):
            self.flatten(f"{name}:{k}", one)

    def flatten(self, place, one):
        if isinstance(one, dict):
            passed = HOW | {key for key in one if self.measures and (key.endswith("_bytes") or key in ("warm", "batches"))}
            self.answer[place] = sorted(key for key in one if key not in passed)
            for key, value in one.items():
                if key not in passed:
                    self.flatten(f"{place}.{key}", value)
        elif self.measures and isinstance(one, float):
            self.answer[place] = "measured"
        elif isinstance(one, list):
            self.answer[place] = len(one)
            for k, value in enumerate(one):
                self.flatten(f"{place}[{k}]", value)
        else:
            self.answer[place] = one

    def notes(self):
        return {line for line in self.err.splitlines() if "note: " in line}


HOW = {"command", "seconds", "date", "environment", "recipe", "options", "arguments"}  # members that repeat how something was made
BESIDE = {"commands.sh", "training.json", "recipe.json", "training.safetensors"}  # files that do


def digest(data):
    return hashlib.sha256(data).hexdigest()[:16]


def drawing(svg):
    """A figure without its command and the names that are made of it."""
    return re.sub(rb'<entry key="Command">.*?</entry>|(?<=id=")[^"]*|(?<=url\(#)[^)]*|(?<=href="#)[^"]*', b"", svg, flags=re.S)


def listed(bench):
    """{command: names of its options}, as the shells' completion has them."""
    rows = re.findall(r"^    '([^']*) '\*\) options=' ([^']*)'", bench.fine("completion", "bash").out, re.M)
    return {command: [word[2:] for word in words.split() if word.startswith("--")] for command, words in rows}


# ---------------------------------------------------------------------------------------------------------------- inputs


def make_inputs(bench, folder):
    """Models whose tables end after eight distances, so that those beyond matter, and files."""
    folder.mkdir()
    for name, case in (("sequence", 29), ("token", 30), ("qa", 31), ("mlm", 33), ("rtd", 36)):
        model = make_model(folder / name, case, "spm-unigram", 3100)
        config = model / "config.json"
        config.write_text(json.dumps({**json.loads(config.read_text()), "max_relative_positions": 8}))
    files = {"lines.txt": "\n".join(LINES) + "\n", "broken.txt": b"the old \xff house\n", "objects.txt": json.dumps({"text": TEXT}) + "\n",
             "bad.jsonl": json.dumps({"text": TEXT}) + "\n{}\n", "ids.json": json.dumps({"input_ids": [[1, 9, 30, 12, 40, 17, 2]], "attention_mask": [[1, 1, 1, 0, 1, 1, 1]]}),
             "corpus.txt": "\n".join([*LINES[:3], "", *LINES[3:]] * 3) + "\n", "held.txt": "\n".join(LINES[:2]) + "\n", "more.txt": "\n".join(reversed(LINES)) + "\n",
             "masked.txt": MASKED.replace("old", "new") + "\n", "masked-broken.txt": b"the \xff [MASK] sea\n", "seen.txt": SEEN_MASKED.replace("old", "new") + "\n", "masked-objects.txt": json.dumps({"text": MASKED}) + "\n",
             "masked-bad.jsonl": json.dumps({"text": MASKED}) + "\n{}\n",
             "problems.txt": "gemm rows=3 depth=8 columns=16 bias\n",
             "two.json": json.dumps({"input_ids": [[1, 9, 30, 12, 40, 17, 2], [1, 40, 8, 12, 40, 17, 2]]}), "broken.tsv": b"0\tthe old \xff house\n",
             "pairs.jsonl": json.dumps({"sentence_good": "the old house", "sentence_bad": "the old old", "UID": "a"}) + "\n",
             "choices.tsv": "".join(f"{k % 2}\t{line}\tthe sea\tthe house\n" for k, line in enumerate(LINES)),
             "tags.tsv": "".join(f"{word}\t{len(word) % 2}\n" if word else "\n" for line in LINES for word in [*line.split(), ""]),
             "squad.jsonl": "".join(json.dumps({"question": "who?", "context": line, "text": line.split()[1], "start": line.index(line.split()[1])}) + "\n" for line in LINES),
             "labels.tsv": "".join(f"{k % 2}\t{line}\n" for k, line in enumerate(LINES)), "held.tsv": f"0\t{TEXT}\n1\t{OTHER}\n",
             "questions.jsonl": json.dumps({"question": "who went home?", "context": TEXT}) + "\n", "questions.txt": json.dumps({"question": "who went home?", "context": TEXT}) + "\n",
             "questions-broken.jsonl": b'{"question": "who \xff?", "context": "the old house"}\n'}
    for name, content in files.items():
        (folder / name).write_bytes(content if isinstance(content, bytes) else content.encode())
    place = str(folder)
    run = ["train", "mlm", place + "/mlm", "--file", place + "/corpus.txt", *TRAINED[:-1]]
    for case in CASES:
        data = (ROOT / "tests" / "golden_train" / case / "batch.safetensors").read_bytes()
        length = int.from_bytes(data[:8], "little")
        header = {name: {**one, "shape": [1, *one["shape"]]} if "shape" in one else one for name, one in json.loads(data[8:8 + length]).items()}
        text = json.dumps(header).encode()
        (folder / (case + ".safetensors")).write_bytes((len(text) + -len(text) % 8).to_bytes(8, "little") + text + b" " * (-len(text) % 8) + data[8 + length:])
    for name in ("run", "run-2"):
        bench.fine(*run, place + "/" + name, "--chain", "--chain-every", "1", "--keep-every", "1", "--seed", str(len(name)))
    bench.fine("encode", place + "/mlm", "--text", SEEN, "-o", place + "/states.safetensors")
    sample = json.loads(pathlib.Path(SAMPLE).read_text())
    (folder / "other.json").write_text(json.dumps({**sample, "environment": {**sample["environment"], "cpu": "another"}}))
    for name, lines in (("choices.tsv", 3), ("squad.jsonl", 3), ("tags.tsv", 21)):
        first, suffix = name.split(".")
        (folder / f"{first}-2.{suffix}").write_text("".join((folder / name).read_text().splitlines(True)[:lines]))
    tensors, _ = read_tensors(folder / "states.safetensors")
    write_tensors(folder / "states-more.safetensors", {**tensors, "more": Tensor("F32", [1], array.array("f", [1]))})
    for shard in ("0", "1"):
        bench.fine("encode", place + "/mlm", "--file", place + "/lines.txt", "--shards", "2", "--shard", shard, "-o", place + "/v.jsonl")
    for k, n in enumerate(("8", "16"), 1):
        bench.fine("bench", MADE_UP, "-n", n, "--reps", "1", "--min-time", "0", "--no-peak", "-o", f"{place}/part-{k}.json")
    bench.fine("train", "tokenizer", "--file", place + "/corpus.txt", "--vocabulary", "60", "--width", "32", "--head-count", "2", "--depth", "2", "-o", place + "/new")


# -------------------------------------------------------------------------------------------------------------- commands

TRACE = ["attention", "trace", "{X}/mlm"]
MINIMAL, AUDIT = ["--minimal-pairs", "{X}/pairs.jsonl"], ["--audit", "{X}/run", "--file", "{X}/corpus.txt", "--seed", "1"]
DRAWN_AS = ["--anonymous", "--numbers", "n.csv", "-o", "f.svg"]
NO_PICTURE = "options of a picture are refused where there is none"


def task(command, model, text, /, *more, **rows):
    return Base([command, "{X}/" + model], ["--text", text], more, rows)


def look_rows(*tail):
    """Options of a picture: they change it, and where none is made they are refused or said. tail: results without a picture."""
    value = {"title": ["A house"], "width-mm": ["120"], "exact-width": [], "dpi": ["50"], "font": ["serif"], "font-size": ["9"], "no-notes": []}
    found = {name: [looks("--" + name, *words, tail=[*tail, "-o", "p.png" if name == "dpi" else "p.svg"]), told("--" + name, *words, tail=tail)] for name, words in value.items()}
    found["dpi"].append(told("--dpi", "50", tail=[*tail, "-o", "p.svg"]))
    found["exact-width"] = [Row(["--exact-width"], FREE, "a figure that needs the width has it"), *found["exact-width"][1:]]
    found["out"] = [row("--out", "o.svg")]
    return found


def figure(kind, /, *more, beside=(), **rows):
    own = {**look_rows("--anonymous"), "anonymous": looks("--anonymous", tail=["-o", "f.svg"]),
           "out": row("--out", "g.svg"), "numbers": row("--numbers", "m.csv", tail=["-o", "f.svg"]), "latex": row("--latex", "t.tex", tail=["--anonymous", "-o", "f.pdf"]),
           "row": row("--row", "1", both=["--input", "{X}/two.json"]), "text": [row(input=["--text", OTHER_SEEN]), said("--text", OTHER_SEEN)], "pair": row("--pair", "a new boat"),
           "file": row(input=["--file", "{X}/more.txt"]), "token-range": row("--token-range", "2:9"), "drop-special": row("--drop-special"), "words": row("--words"),
           "pieces": same(["--pieces"], "these pieces have room"), "palette": looks("--palette", "magma"), "signed-palette": looks("--signed-palette", "magma"),
           "scale": told("--scale", "panel"), "center": looks("--center", "none"), "log": looks("--log"), "annotate": told("--annotate"), "mark": looks("--mark", "1,2"),
           "letters": looks("--letters"), "layout": told("--layout", "1", beside=["--layers", "1", "--heads", "0,1"]), "components": row("--components", "c2p")}
    for name in PICTURE:
        own[name] = own[name][:1] + own[name][2:]  # without a picture there is no figure
    text = SEEN_MASKED if kind == "trace" else SEEN
    return Base(["attention", *kind.split(), "{X}/mlm", *beside], ["--text", text], [*more, *DRAWN_AS], {**own, **rows})


NO_MASK = {"jsonl": refused("--jsonl", both=["--file", "{X}/masked.txt"])}
THERE = ["--model", "{X}/mlm", "--file", "{X}/lines.txt"]
MEASURE = ["--json", "--no-peak"]
MADE_UP = "synthetic:v3-xsmall,layers=2,vocab=50,hidden=64,heads=2,intermediate=64"
SAMPLE = str(ROOT / "tests" / "cli" / "bench_sample.json")


def measured(*head, **rows):
    tail = MEASURE if "no-peak" in rows else MEASURE[:1]
    return Base(["bench", *head], [], tail, {"json": row("--json", tail=tail[1:]), "format": row("--format", "csv", tail=tail[1:]), "threads": row("--threads", "2"), "isa": row("--isa", "scalar"),
                                                "reference": same(["--reference", "microsoft"], "made-up models are as Microsoft has them"), **rows}, measures=True)


TRAINED = ["--sequence-tokens", "48", "--batch-sequences", "2", "--steps", "3", "--threads", "1", "-o", "run"]
RUNS = {
    "eval-every": [row("--eval-every", "2", beside=["--eval", "{held}"]), said("--eval-every", "5", beside=["--eval", "{held}"], alone=REFUSED)], "sequence-tokens": row("--sequence-tokens", "32"), "batch-sequences": row("--batch-sequences", "3"),
    "batch-tokens": row("--batch-tokens", "60"), "steps": row("--steps", "4"), "resume": refused("--resume"),
    "checkpoint-minutes": same(["--checkpoint-minutes", "0"], "a run that ends at once is over before"), "checkpoint-every": row("--checkpoint-every", "2"),
    "keep": row("--keep", "1", beside=["--checkpoint-every", "1"], alone=SAME), "keep-every": row("--keep-every", "1"), "stop-at": row("--stop-at", "2"),
    "bad-steps": same(["--bad-steps", "2"], "all steps are finite"), "save-dtype": row("--save-dtype", "f16"), "freeze": row("--freeze", "embeddings"), "chain": row("--chain"),
    "chain-every": row("--chain-every", "2", beside=["--chain"]), "new-head": row("--new-head"), "optimizer": row("--optimizer", "xadam"), "schedule": row("--schedule", "constant"),
    "warmup": row("--warmup", "2"), "learning-rate": row("--learning-rate", "0.01"), "weight-decay": row("--weight-decay", "0.5"), "beta1": row("--beta1", "0.5"), "beta2": row("--beta2", "0.5"),
    "epsilon": row("--epsilon", "0.1"), "clip": row("--clip", "0.001"), "layer-decay": row("--layer-decay", "0.5"), "dropout": row("--dropout", "0.3"),
    "micro-tokens": same(["--micro-tokens", "48"], "parts of a step are the same bits"), "recompute": same(["--recompute"], "layers run twice are the same bits"),
    "virtual-shards": row("--virtual-shards", "1"), "json": row("--json"), "out": row("--out", "walk", tail=TRAINED[:-2], fails=2), "labels": told("--labels", "3"),
    "sift": row("--sift", "1"),
    **{name: [row("--" + name, value, beside=["--sift", "1"]), said("--" + name, value, beside=["--sift", "0"], alone=REFUSED)] for name, value in (("perturb", "raw"), ("sift-step", "0.1"), ("sift-start", "0.5"))},
    "patience": [row("--patience", "1", beside=["--eval", "{held}", "--eval-every", "1", "--learning-rate", "0"], alone=REFUSED),
                 said("--patience", "2", beside=["--eval", "{held}", "--eval-every", "1", "--learning-rate", "0"], alone=REFUSED)],
}
LANGUAGE = {
    "file": row(input=["--file", "{X}/more.txt"]), "eval": row("--eval", "{X}/held.txt"), "sequences": row("--sequences", "lines"), "masking": row("--masking", "uniform"),
    "mask-probability": row("--mask-probability", "0.4"), "max-ngram": row("--max-ngram", "3"), "head": row("--head", "mlm"), "drop": told("--drop", "lm_predictions*"),
}


def training(words, case, held, /, **rows):
    golden = "{T}/" + case
    batch, head = golden + "/batch.safetensors", [*words, golden]
    of_batches = {"one-batch": row("--one-batch", batch, head=head, both=["--gradients", "g.safetensors"], tail=["--threads", "1"], fails=2),
                  "batches": row("--batches", "{X}/" + case + ".safetensors", head=head, both=["--steps", "1", "-o", "run"], tail=["--threads", "1"], fails=2),
                  "gradients": row("--gradients", "g.safetensors", head=head, both=["--one-batch", batch], tail=["--threads", "1"])}
    cut = ["--sequence-tokens", "12", *TRAINED[2:]]
    learned = {} if words[0] == "train" else {"examples": row(input=["--examples", held]), "cut": row("--cut", tail=cut, fails=3), "drop": refused("--drop", "embeddings.LayerNorm*"), "sequence-tokens": refused("--sequence-tokens", "12"),
                                                     **({} if words[1] == "qa" else {"batch-tokens": row("--batch-tokens", "45")})}
    found = {**RUNS, **of_batches, **learned, "eval": row("--eval", held), **rows}
    for name, given in found.items():
        found[name] = [dataclasses.replace(one, beside=[word.replace("{held}", held) for word in one.beside]) for one in (given if isinstance(given, list) else [given])]
    return found


def commands():
    """{command: Base}"""
    masked = {"text": [row(input=["--text", MASKED.replace("old", "new")]), row("--text", MASKED.replace("old", "new"))], "file": row(input=["--file", "{X}/masked.txt"]),
              "strict": refused("--strict", both=["--file", "{X}/masked-broken.txt"]), "jsonl": refused("--jsonl", both=["--file", "{X}/masked.txt"]),
              "skip-bad": row("--skip-bad", both=["--file", "{X}/masked-bad.jsonl"], fails=3), "max-tokens": row("--max-tokens", "12"),
              "shards": row("--shards", "2", both=["--file", "{X}/masked.txt"], beside=["--shard", "1", "-o", "o.jsonl"], alone=REFUSED, fails=2),
              "shard": row("--shard", "1", both=["--file", "{X}/masked.txt"], beside=["--shards", "2", "-o", "o.jsonl"], fails=2)}
    decoder = row("--mlm-decoder", "plain")
    found = {
        "encode": task("encode", "sequence", TEXT, "-o", "o.safetensors", hidden=row("--hidden", "all"), strict=refused("--strict", both=["--file", "{X}/broken.txt"]), **{
            "attention-layers": row("--attention-layers", "1"), "component-layers": row("--component-layers", "1"), "logits": row("--logits"), "pool": row("--pool", "cls"),
            "window": row("--window", "8"), "stride": row("--stride", "2", beside=["--window", "8"], alone=REFUSED), "batch-tokens": row("--batch-tokens", "8"),
            "resume": row("--resume"), "out": row("--out", "o.npy", tail=[], fails=2),
            "shard": row("--shard", "1", both=["--file", "{X}/lines.txt"], beside=["--shards", "2"], tail=["-o", "o.npy"], fails=2),
            "shards": row("--shards", "2", both=["--file", "{X}/lines.txt"], beside=["--shard", "1"], tail=["-o", "o.npy"], fails=2)}),
        "tokenize": task("tokenize", "sequence", TEXT, **{
            "strict": refused("--strict", both=["--file", "{X}/broken.txt"])}),
        "fill-mask": task("fill-mask", "mlm", MASKED, **masked, **{"mlm-decoder": decoder, "compare": [row("--compare"), refused("--compare", both=["--text", MASKED, "--mlm-decoder", "plain"])]}),
        "detect": task("detect", "rtd", TEXT, threshold=row("--threshold", "0.01")),
        "classify": task("classify", "sequence", TEXT, "--top", "2", choice=refused("--choice", "a boat", "--choice", "the sea"), **{"multi-label": row("--multi-label")}),
        "tag": task("tag", "token", TEXT, grouping=row("--grouping", "none")),
        "answer": Base(["answer", "{X}/qa"], ["--question", "who?", "--context", TEXT], [], {
            "question": row(input=["--question", "where?", "--context", TEXT]), "context": row(input=["--question", "who?", "--context", OTHER]), "file": row(input=["--file", "{X}/questions.jsonl"]),
            "jsonl": same(["--jsonl"], "a first line that is an object is recognised, and said", both=["--file", "{X}/questions.txt"]), "precision": row("--precision", "int8", tail=["--json"]), "max-answer": row("--max-answer", "1"), "max-tokens": row("--max-tokens", "20"),
            "strict": refused("--strict", both=["--question", "who \udcff?", "--context", TEXT])}),
        "eval": Base(["eval", "{X}/sequence"], ["{X}/labels.tsv"], [], {
            **look_rows(), "score": refused("--score", "rtd", head=["eval", "{X}/mlm"], both=MINIMAL), "mlm-decoder": row("--mlm-decoder", "plain", head=["eval", "{X}/mlm"], both=MINIMAL, tail=["--pair-scores", "s.jsonl"]),
            "pair-scores": row("--pair-scores", "s.jsonl", head=["eval", "{X}/mlm"], both=MINIMAL), "against": row("--against", "int8"), "strict": refused("--strict", both=["{X}/broken.tsv"]), "minimal-pairs": row("--minimal-pairs", "{X}/pairs.jsonl", head=["eval", "{X}/mlm"], both=[], fails=2),
            "precision": row("--precision", "int8", tail=["--json"]), "max-tokens": row("--max-tokens", "6", tail=["--json"]), "reference": row("--reference", "microsoft", tail=["--json"]),
            "ablate": row("--ablate", "c2p@all", tail=["--json"])}),
        "attribute": task("attribute", "mlm", SEEN_MASKED, "--json", "--steps", "4", **{
            **look_rows("--steps", "4"), "head": refused("--head", "sequence"), "class": told("--class", "1"), "answer": row("--answer", "a"), "token": told("--token", "2"), "of": row("--of", "log-probability"),
            "mlm-decoder": decoder, "method": row("--method", "gradient-input", tail=["--json"]), "baseline": [row("--baseline", "zero"), told("--baseline", "zero", beside=["--parts", "distances"], alone=CHANGES)], "parts": row("--parts", "words"),
            "steps": [row("--steps", "8", tail=["--json"]), said("--steps", "8", tail=["--json"], beside=["--method", "gradient-input"], alone=CHANGES)],
            "anonymous": [looks("--anonymous", tail=["--steps", "4", "-o", "p.svg"]), told("--anonymous")], "numbers": row("--numbers", "n.csv"), "latex": [row("--latex", "t.tex", tail=["--steps", "4", "-o", "p.pdf"]), told("--latex", "t.tex")],
            "text": [row(input=["--text", MASKED]), row("--text", MASKED)], "file": row(input=["--file", "{X}/masked.txt"]), "jsonl": masked["jsonl"], "strict": masked["strict"],
            "max-tokens": row("--max-tokens", "12"), "precision": refused("--precision", "int8"), "json": row("--json", tail=["--steps", "4"])}),
        "info": Base(["info", "{X}/mlm"], [], [], {"isa": row("--isa", "scalar"), "reference": Row(["--reference", "microsoft"], FREE, "the advice on lengths depends on it in few models")}),
        "pack": Base(["pack", "mlm"], [], [], {"check": refused("--check")}, copies="mlm"),
        "examples": Base(["examples"], ["d"], [], {}),
        "completion": Base(["completion"], ["zsh"], [], {}),
        "merge": Base(["merge"], ["{X}/v.jsonl.shards"], ["-o", "all.jsonl"], {
            "verify": row("--verify", tail=[], fails=2), "audit": row("--audit", "100%", beside=THERE, alone=FREE, fails=2), "model": row("--model", "{X}/mlm", beside=["--audit", "100%", "--file", "{X}/lines.txt"], fails=3, alone=FREE),
            "file": row("--file", "{X}/lines.txt", beside=["--audit", "100%", "--model", "{X}/mlm"], fails=3, alone=REFUSED), "seed": row("--seed", "7", beside=["--audit", "50%", *THERE]),
            "threads": [same(["--threads", "2"], SAME_BITS, beside=["--audit", "100%", "--seed", "1", *THERE], alone=SAME), said("--threads", "2")], "isa": said("--isa", "scalar"), "out": row("--out", "some.jsonl", tail=[], fails=2)}),
        "report": Base(["report", "{X}/mlm"], ["--text", SEEN], ["-o", "r"], {
            "with": row("--with", "latency"), "tokens": row("--tokens", "8"), "depth": row("--depth", "1"), "reps": row("--reps", "2", beside=["--tokens", "8", "--depth", "1"]),
            "skip": row("--skip", "receptive-field"), "training-log": row("--training-log", "{X}/run"), "live": told("--live"), "no-model": told("--no-model"), "modules": told("--modules", "{X}"),
            "layers": looks("--layers", "0"), "heads": looks("--heads", "2"), "isa": looks("--isa", "scalar"), "threads": looks("--threads", "2"), "seed": said("--seed", "7"), "out": row("--out", "page.html", tail=[])}),
        "receptive-field": Base(["receptive-field", "{X}/mlm"], [], [], {
            **look_rows(), "tokens": row("--tokens", "8"), "depth": row("--depth", "1"), "plot": row("--plot", "p.svg"), "behaviour": row("--behaviour"),
            "behaviour-depth": row("--behaviour-depth", "1", beside=["--behaviour"]), "behaviour-tokens": row("--behaviour-tokens", "4", beside=["--behaviour"]), "influence": row("--influence"),
            "influence-tokens": row("--influence-tokens", "32", beside=["--influence"]), "influence-sources": row("--influence-sources", "2", beside=["--influence"]),
            "text": row("--text", SEEN, beside=["--influence"]), "ids": row("--ids", "1,9,30,12,40,17,2", beside=["--influence"]), "ablate": row("--ablate", "c2p@all", beside=["--influence"]),
            "seed": row("--seed", "7", beside=["--influence"]), "rows": row("--rows"), "memory-limit": refused("--memory-limit", "1K", beside=["--influence"]),
            "threads": same(["--threads", "2"], SAME_BITS, beside=["--influence"], alone=SAME), "isa": same(["--isa", "scalar"], SAME_BITS, beside=["--influence"], alone=SAME)}),
        "verify": Base(["verify", "{X}/mlm"], ["--text", SEEN], ["--json", "--isa", "scalar"], {
            **look_rows("--isa", "scalar"), "tokens": row(input=["--tokens", "8"]), "expected": row(input=["--expected", "{X}/states.safetensors"]), "allow-extra": row("--allow-extra", both=["--expected", "{X}/states-more.safetensors"], fails=3),
            "mutate": row("--mutate", "no_clamp", head=["verify"], both=["--mutate", "p2c_ji"], tail=["--json"], fails=1), "publish": row("--publish", head=["verify", MADE_UP], both=[], tail=[]),
            "seed": [row("--seed", "7", both=["--tokens", "8"]), said("--seed", "7")], "audit": row(input=AUDIT),
            "segments": row("--segments", "2", both=AUDIT), "generator": told("--generator", "{X}/mlm", both=AUDIT),
            "commit": row("--commit", head=["verify"], both=AUDIT[:2], tail=[], fails=3), "published": refused("--published", "x", both=AUDIT),
            "format": row("--format", "csv", tail=[]), "json": row("--json", tail=[]), "isa": row("--isa", "scalar", tail=[]),
            "threads": same(["--threads", "2"], SAME_BITS)}),
        "train": Base(["train"], ["list"], [], {"help": row("--help", fails=2), "version": row("--version", fails=2)}),
        "finetune": Base(["finetune"], ["list"], [], {"help": row("--help", fails=2), "version": row("--version", fails=2)}),
        "train mlm": Base(["train", "mlm", "{X}/mlm"], ["--file", "{X}/corpus.txt"], TRAINED, training(["train", "mlm"], "03-v3-mlm-emd", "{X}/held.txt", **LANGUAGE, config=row("--config", "{X}/new", head=["train", "mlm"], both=["--file", "{X}/corpus.txt"], fails=2))),
        "train rtd": Base(["train", "rtd", "{X}/rtd"], ["--generator", "{X}/mlm", "--file", "{X}/corpus.txt"], TRAINED, training(["train", "rtd"], "11-v3-rtd", "{X}/held.txt", **{**LANGUAGE, "generator": row("--generator", "{X}/mlm", head=["train", "rtd", "{X}/rtd"], both=["--file", "{X}/corpus.txt"], fails=2), "file": row(input=["--generator", "{X}/mlm", "--file", "{X}/more.txt"]),
            "rtd-weight": row("--rtd-weight", "10"), "sharing": row("--sharing", "none"), "coupled": row("--coupled")})),
        "finetune sequence": Base(["finetune", "sequence", "{X}/sequence"], ["--examples", "{X}/labels.tsv"], TRAINED, training(["finetune", "sequence"], "07-v1-sequence-types", "{X}/held.tsv")),
        "finetune choice": Base(["finetune", "choice", "{X}/sequence", "--new-head"], ["--examples", "{X}/choices.tsv"], TRAINED, training(["finetune", "choice"], "18-v3-choice", "{X}/choices-2.tsv", **{"batch-tokens": row("--batch-tokens", "100"), "new-head": row("--new-head", head=["finetune", "choice", "{X}/sequence"], fails=3)})),
        "finetune token": Base(["finetune", "token", "{X}/token"], ["--examples", "{X}/tags.tsv"], TRAINED, training(["finetune", "token"], "08-v2-conv-token", "{X}/tags-2.tsv")),
        "finetune qa": Base(["finetune", "qa", "{X}/qa"], ["--examples", "{X}/squad.jsonl"], TRAINED, training(["finetune", "qa"], "10-v3-qa", "{X}/squad-2.jsonl")),
        "train tokenizer": Base(["train", "tokenizer"], ["--file", "{X}/corpus.txt"], ["--vocabulary", "60", "-o", "t"], {
            "file": row(input=["--file", "{X}/more.txt"]), "vocabulary": row("--vocabulary", "50", tail=["-o", "t"], fails=3), "depth": row("--depth", "2"), "width": row("--width", "64"), "head-count": row("--head-count", "2"),
            "out": row("--out", "u", tail=["--vocabulary", "60"], fails=2)}),
        "train plot": Base(["train", "plot"], ["{X}/run"], ["-o", "p.svg"], {**{name: one[0] for name, one in look_rows().items()}, "band": looks("--band", both=["{X}/run", "{X}/run-2"]), "smooth": looks("--smooth", "2"), "no-notes": Row(["--no-notes"], FREE, "there may be no sentence"),
            "out": row("--out", "q.svg")}),
        "bench": measured(MADE_UP, "--min-time", "0", "--reps", "2", "-n", "8", **{
            "no-peak": row("--no-peak", tail=["--json"]), "tokens": row("--tokens", "16"), "batch": row("--batch", "2"), "mix": row("--mix", "8,16"), "depth": row("--depth", "1"), "attention": row("--attention", "c2c"),
            "position-cache": row("--position-cache", "off"), "reps": row("--reps", "3"), "min-time": row("--min-time", "0.05"), "breakdown": row("--breakdown"), "cold": row("--cold"), "pin": Row(["--pin"], FREE, "what it changes is measured"),
            "roof-share": row("--roof-share", "0", tail=["--json"])}),
        "bench requests": measured("requests", MADE_UP, "--requests", "6", lengths=row("--lengths", "short-zipf"), requests=row("--requests", "7"), group=row("--group", "2"), load=Row(["--load", "0.3"], FREE, "what it changes is measured")),
        "bench train": measured("train", MADE_UP + ",lm=1", "-n", "8", "-b", "2", "--reps", "1", **{
            "no-peak": row("--no-peak", tail=["--json"]), "tokens": row("--tokens", "16"), "batch": row("--batch", "3"), "labelled": row("--labelled", "0.5"), "head": row("--head", "mlm"), "virtual-shards": row("--virtual-shards", "4"),
            "micro-tokens": row("--micro-tokens", "8"), "recompute": row("--recompute"), "reps": row("--reps", "2"), "seed": Row(["--seed", "7"], FREE, "what it changes is measured")}),
        "bench machine": measured("machine", threads=Row(["--threads", "2"], FREE, "what it changes is measured")),
        "bench kernel": measured("kernel", "{X}/problems.txt", "--reps", "2", reps=Row(["--reps", "3"], FREE, "what it changes is measured"), cold=Row(["--cold"], FREE, "what it changes is measured")),
        "bench compare": Base(["bench", "compare"], [SAMPLE, SAMPLE], [], {"by": row("--by", "isa", input=[SAMPLE]), "any-environment": row("--any-environment", both=[SAMPLE, "{X}/other.json"], fails=3)}),
        "bench merge": Base(["bench", "merge"], ["{X}/part-1.json", "{X}/part-2.json"], ["-o", "m.json"], {"out": row("--out", "n.json", tail=[])}),
        "bench plot": Base(["bench", "plot"], [SAMPLE], ["-o", "p.svg"], {**{name: one[0] for name, one in look_rows().items()}, "figure": looks("--figure", "roofline"), "out": row("--out", "q.svg")}),
    }
    short = ["--layers", "1,2", "--heads", "0,1"]
    curves = {"ribbon": row("--ribbon", "0.2")}
    beside_kind = {"query": ["--query", "3"], "difference": ["--ablate", "p2c@1"], "trace": ["--mask-word", "sea"]}
    drawn_in_words, merged = {"words": looks("--words")}, {"pieces": row("--pieces")}
    silent = {"no-notes": Row(["--no-notes"], FREE, "there may be no sentence")}
    of_kind = {
        "grid": {"signed-palette": [said("--signed-palette", "magma"), looks("--signed-palette", "magma", beside=["--components", "c2p"])], "palette": [looks("--palette", "magma"), said("--palette", "magma", beside=["--components", "c2p"])],
                 "center": [said("--center", "none"), looks("--center", "none", beside=["--components", "c2p"])], "log": [looks("--log"), said("--log", beside=["--components", "c2p"])], "scale": refused("--scale", "panel"), "dpi": said("--dpi", "50")},
        "shares": {"measure": looks("--measure", "kl"), "signed-palette": told("--signed-palette", "magma"), "form": looks("--form", "bars")}, "distance": {**curves, "statistic": looks("--statistic", "mean"), "center": [row("--center", "none"), said("--center", "none", beside=["--components", "probs"], alone=CHANGES)]},
        "kernel": {**curves, "statistic": looks("--statistic", "median"), "center": row("--center", "none"), "row": refused("--row", "1", both=["--input", "{X}/two.json"]), "seed": looks("--seed", "7"),
                   "text": [row(input=["--text", OTHER_SEEN]), row("--text", OTHER_SEEN)]}, "query": {"query": row("--query", "4")}, "lines": {"query": row("--query", "3"), "cutoff": looks("--cutoff", "0.5"), "center": [said("--center", "none"), looks("--center", "none", beside=["--components", "c2p"])], "width-mm": looks("--width-mm", "60")},
        "difference": {"minus": row("--minus", "{X}/rtd"), "minus-ablate": row("--minus-ablate", "c2p@1", beside=["--minus", "{X}/mlm"], alone=REFUSED), "file": row(input=["--text", OTHER_SEEN]),
                       "text": [row(input=["--text", OTHER_SEEN]), refused("--text", OTHER_SEEN)]},
        "error": {"isa": looks("--isa", "scalar"), **drawn_in_words, **merged}, "value-weighted": {**drawn_in_words, **merged}, "four-types": {**drawn_in_words, **merged},
        "delta": {**drawn_in_words, **merged}, "": silent, "components": silent, "rollout": {"scale": looks("--scale", "shared")},
        "trace": {"text": [row(input=["--text", SEEN_MASKED.replace("old", "new")]), said("--text", SEEN_MASKED)], "file": row(input=["--file", "{X}/seen.txt"]), "strict": refused("--strict", both=["--file", "{X}/masked-broken.txt"]),
                  "max-tokens": told("--max-tokens", "6"), "ids": refused(input=["--ids", "1,9,30"]), "input": refused(input=["--input", "{X}/ids.json"]), "row": told("--row", "1", both=["--text", SEEN_MASKED, "--text", SEEN_MASKED.replace("old", "new")]),
                  "corrupted": row("--corrupted", SEEN_MASKED.replace("stood beside", "beside stood"), head=TRACE, fails=2), "mask-word": row("--mask-word", "stood"), "swap": row("--swap", "old,sea", head=TRACE, fails=2),
                  "noise": row("--noise", "sea", head=TRACE, fails=2), "noise-scale": [row("--noise-scale", "1", head=TRACE, beside=["--noise", "sea"], alone=FREE), refused("--noise-scale", "1")],
                  "seed": [row("--seed", "7", head=TRACE, beside=["--noise", "sea"], alone=FREE), said("--seed", "7")], "token-range": row("--token-range", "2:9"), "drop-special": row("--drop-special"), "precision": refused("--precision", "int8"), "answer": row("--answer", "a"), "class": told("--class", "1"), "at": row("--at", "3"),
                  "mlm-decoder": decoder, "direction": row("--direction", "corrupt"), "what": row("--what", "states")},
    }
    for kind in ("", "components", "grid", "mean", "rollout", "shares", "entropy", "distance", "delta", "difference", "query", "lines", "value-weighted", "four-types", "kernel", "embeddings", "error", "trace"):
        found[f"attention {kind}".rstrip()] = figure(kind, *(short if kind != "embeddings" else ()), beside=beside_kind.get(kind, ()), **of_kind.get(kind, {}))
    return found


class Crossing:
    """Runs of one command."""

    def __init__(self, bench, command):
        self.bench, self.command, self.base = bench, command, commands()[command]
        self.inputs = bench.shared("options-matter", functools.partial(make_inputs, bench))
        self.kept = {}

    def run(self, row, with_option, company=True):
        given = row.both if row.both is not None else row.input if with_option and row.input is not None else self.base.input
        tail = self.base.tail if row.tail is None else row.tail
        words = [*(self.base.head if row.head is None else row.head), *given, *(row.beside if company else ()), *tail, *(row.words if with_option else ())]
        key = tuple(words)
        if key not in self.kept:
            self.kept[key] = self.fresh([word.replace("{X}", str(self.inputs)).replace("{T}", TRAINED_CASES) for word in words])
        return self.kept[key]

    def fresh(self, words):
        with tempfile.TemporaryDirectory(dir=self.bench.folder) as folder:
            if self.base.copies:
                shutil.copytree(self.inputs / self.base.copies, pathlib.Path(folder, self.base.copies))
            done = subprocess.run(self.bench.command(words), cwd=folder, capture_output=True, stdin=subprocess.DEVNULL, env=self.bench.environment({"OMP_NUM_THREADS": "1"}), timeout=120, check=False)
            return Words(done, pathlib.Path(folder), self.base.measures)

    def judge(self, row):
        """What is wrong, "" for nothing."""
        plain, found = self.run(row, False), self.run(row, True)
        if plain.code != row.fails:
            return f"without it: exit {plain.code}: {plain.err.strip()[:300]}"
        problem = self.compare(row.outcome, plain, found)
        if not problem and row.beside and row.alone != SAME:
            alone = self.run(row, True, company=False)
            problem = self.compare(row.alone, self.run(row, False, company=False), alone)
            problem = f"without {' '.join(row.beside)}: {problem}" if problem else ""
        return problem

    def compare(self, outcome, plain, found):
        refused = found.code in (2, 3, 4) and found.code != plain.code
        differs = found.answer != plain.answer
        looks = differs or found.look != plain.look
        noted = found.notes() - plain.notes()
        if outcome == FREE:
            return ""
        if outcome == TOLD:
            return "" if refused or looks or noted else "nothing differs, and nothing is said"
        if refused != (outcome == REFUSED):
            return f"exit {found.code}: {found.err.strip()[:300]}"
        if outcome == CHANGES and not differs:
            return "the same numbers" + (", drawn otherwise" if looks else "") + (f"; {noted}" if noted else "")
        if outcome == LOOKS and (differs or not looks):
            return "other numbers" if differs else f"the same picture {noted or ''}"
        if outcome == SAID and (differs or not noted):
            return "not the same" if differs else "no note"
        if outcome == SAME and looks:
            return "not the same: " + str([key for key in {**found.answer, **plain.answer} if found.answer.get(key) != plain.answer.get(key)][:3])
        return ""


def rows_of(base, name, parts=()):
    """Rows of an option. One that takes a part of something, and has no row, is tried with a half."""
    given = base.rows.get(name, COMMON.get(name))
    given = told(f"--{name}", "0.5") if given is None and name in parts else given
    return [] if given is None else given if isinstance(given, list) else [given]


def parts_of(bench, command):
    return set(re.findall(r"^ +--([a-z-]+) PART ", bench.fine(*command.split(), "--help").out, re.M))


def crossed(command):
    def test(bench):
        if command not in listed(bench):
            raise SkipTest("this build has no such command")
        crossing, parts = Crossing(bench, command), parts_of(bench, command)
        rows = [(name, one) for name in listed(bench)[command] for one in rows_of(crossing.base, name, parts)]
        if SAMPLED:
            rows = random.Random(f"{DAY} {command}").sample(rows, min(DRAWN, len(rows)))
        wrong = [f"{command} {' '.join(map(str, [*one.beside, *(one.input or ()), *one.words]))} ({name}, {one.outcome}): {problem}" for name, one in rows if (problem := crossing.judge(one))]
        assert not wrong, "\n".join(["", *wrong])
    return test


def test_every_option_has_a_row(bench):
    """A command, or an option of one, that nobody has thought about."""
    known, missing = commands(), []
    for command, options in listed(bench).items():
        if command not in known:
            missing.append(command)
            continue
        lost = [name for name in options if not rows_of(known[command], name)]
        missing += [f"{command} --{name}" for name in lost if name not in (parts_of(bench, command) if lost else ())]
    check(not missing, "\n".join(["", *missing]))


def tests(settings):
    for command in commands():
        yield "options-matter/" + command.replace(" ", "-"), crossed(command)
