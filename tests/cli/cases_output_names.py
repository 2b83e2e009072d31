"""What --out is called says what goes there: each command of the program writes the form that the suffix says, or refuses the name. Each meets a third of the
suffixes, so that each form is met by several commands of a kind.

SPDX-License-Identifier: MIT
"""
import csv
import io
import json
import os
import re
import shutil

from cases_documents import commands_of
from cases_heads import model
from helpers import DEMO, GOLDEN, TINY, check_message, equal, has_figures

BENCHED = os.path.join(os.path.dirname(__file__), "bench_sample.json")
BATCH = str(GOLDEN.parent / "golden_train" / "03-v3-mlm-emd")
QUICK = ["--reps", "1", "--min-time", "0", "-t", "1", "-q"]
FORMS = {"txt": "text", "out": "text", "": "text", "json": "JSON", "JSON": "JSON", "jsonl": "lines", "ndjson": "lines", "csv": "CSV", "md": "Markdown", "tex": "LaTeX"}
OTHERS = ["svg", "pdf", "html", "tsv", "xlsx", "npy", "safetensors", "gz", "jpeg", "yaml"]
TEXT, LINES, TABLE = {"text", "JSON"}, {"text", "JSON", "lines"}, {"text", "JSON", "CSV", "Markdown", "LaTeX"}
NEW = {""}  # the names of a folder


def lines_of(bench):
    """Each command that has --out, a quick command line of it, and what it writes; None: the command looks at its names, which other tests try."""
    mlm, texts = model(bench, "mlm"), ["--text", "the man went home"]
    training = {f"finetune {word}": (["none"], NEW) for word in ("sequence", "choice", "token", "qa")}
    return {
        **training, "train mlm": (["none"], NEW), "train rtd": (["none"], NEW), "train tokenizer": (["--file", "none"], NEW),
        "train mlm --one-batch": ([BATCH, "--one-batch", BATCH + "/batch.safetensors"], TEXT), "report": (["none"], {"", "html"}),
        "info": ([TINY], TEXT), "pack": (["packed"], TEXT), "receptive-field": ([TINY], TEXT), "completion": (["bash"], {"text"}),
        "tokenize": ([DEMO, *texts], LINES), "classify": ([DEMO, *texts], LINES), "tag": ([model(bench, "token"), *texts], LINES),
        "fill-mask": ([mlm, "--text", "a [MASK]"], LINES), "detect": ([model(bench, "rtd"), *texts], LINES),
        "answer": ([model(bench, "qa"), "--question", "who", "--context", "it was me"], LINES), "attribute": ([DEMO, *texts, "--steps", "1", "-q"], LINES),
        "eval": ([DEMO, "labelled.tsv"], TABLE), "verify": ([TINY, "-n", "4", "--isa", "scalar", "-q"], TABLE), "bench": ([TINY, "-n", "4", "--no-peak", *QUICK], TABLE),
        "bench requests": ([TINY, "--requests", "2", "--lengths", "short-uniform", "-t", "1", "-q"], TABLE), "bench compare": ([BENCHED, BENCHED], TABLE),
        "bench kernel": (["problems.txt", "--isa", "scalar", "--reps", "1", "-q"], TABLE), "bench machine": (["none"], None),
        "bench train": ([TINY + ",lm=1", "-n", "4", "-b", "1", "--no-peak", "--reps", "1", "-t", "1", "-q"], TABLE), "bench merge": (["1.json", "2.json"], {"JSON"}),
        "encode": (["none"], None), "merge": (["none"], None), "bench plot": (["none"], None), "train plot": (["none"], None), "examples": (["copied"], TEXT)}


def check_form(content, form, what):
    if form == "JSON" and content.count("\n") == 1 or form == "lines":
        assert all(json.loads(line) for line in content.splitlines()), what
    elif form == "JSON":
        json.loads(content)
    elif form == "CSV":
        rows = list(csv.reader(io.StringIO(content)))
        assert len(rows) > 1 and len(rows[0]) > 3 and {len(row) for row in rows} == {len(rows[0])}, what
    else:
        has = {"Markdown": "|", "LaTeX": "\\begin{tabular}"}.get(form, "")
        assert content.strip() and has in content and not content.startswith(("{", "[{")), what


def prepare(bench):
    bench.write("labelled.tsv", "label\ttext\nMoby-Dick\tCall me Ishmael.\nMoby-Dick\tIt was the best of times.\n")
    bench.write("problems.txt", "softmax rows=2 columns=16\n")
    os.mkdir(bench.path("packed"))
    for file in ("config.json", "model.safetensors"):
        shutil.copy2(next(GOLDEN.glob("33-*")) / file, bench.path("packed"))
    whole = json.loads(open(BENCHED, encoding="utf-8").read())
    for k, points in enumerate((whole["results"][:2], whole["results"][2:]), 1):
        bench.write(f"{k}.json", json.dumps({**whole, "results": points}))


def test_every_command_is_known(bench):
    lines = lines_of(bench)
    have_out = {name for name in commands_of(bench) if re.search(r"^  -o, --out ", bench.fine(*name.split(), "--help").out, re.M)}
    equal({name for name in have_out if not name.startswith("attention")}, {name.replace(" --one-batch", "") for name in lines} & have_out)


def check_command(bench, place, name, words, forms):
    """A third of the suffixes. How many files were written."""
    start, written = name.replace(" --one-batch", "").split(), 0
    draws = has_figures(bench) and start[0] in ("attribute", "receptive-field", "eval", "verify")
    for suffix in [suffix for k, suffix in enumerate([*FORMS, *OTHERS]) if (k + place) % 3 == 0]:
        if suffix in ("", "out") and not forms & {suffix, "text"}:
            continue  # such a name says nothing
        path = f"x.{suffix}" if suffix else "x"
        line = [*start, *words, "-o", path]
        if suffix in forms and "none" in words:
            assert "--out: '" not in bench.run(*line).err, line  # the name is right; there is no model
        elif FORMS.get(suffix) in forms:
            bench.fine(*line)
            check_form(bench.read(path), FORMS[suffix], line)
            written += 1
        elif not (draws and suffix in ("svg", "pdf")):
            check_message(bench.run(*line), 2, ["--out: ", f"'{path}'", "expected" if suffix != "jpeg" or not draws else ".svg"])
        assert os.path.exists(bench.path(path)) == (FORMS.get(suffix) in forms) or draws, line
        for left in (path, "packed/deberta.packed", "copied"):
            shutil.rmtree(left) if os.path.isdir(left) else os.path.exists(left) and os.remove(left)
    return written


def check_commands(bench, kept):
    prepare(bench)
    known = [(name, words, forms) for name, (words, forms) in lines_of(bench).items() if forms]
    written = sum(check_command(bench, place, *known[place]) for place in range(len(known)) if kept(known[place][0]))
    assert written >= 5, written


def test_suffixes_of_measurements(bench):
    check_commands(bench, lambda name: name.startswith(("bench", "verify", "eval")))


def test_suffixes_of_answers(bench):
    check_commands(bench, lambda name: name in ("tokenize", "classify", "tag", "fill-mask", "detect", "answer", "attribute"))


def test_suffixes_of_other_commands(bench):
    check_commands(bench, lambda name: name.startswith(("train", "finetune", "report", "info", "pack", "receptive", "completion", "examples")))


def test_what_is_said_counts(bench):
    """--json and --format say more than a suffix; a name chooses JSON as --json does, in what is recorded, too."""
    for name in ("x.txt", "x.csv"):
        bench.fine("info", TINY, "--json", "-o", name)
        assert "topology" in bench.load(name)
    bench.fine("classify", DEMO, "--text", "a ship", "--text", "the sea", "-o", "x.jsonl")
    bench.fine("classify", DEMO, "--text", "a ship", "--text", "the sea", "--json", "-o", "y.out")
    equal(bench.read("x.jsonl"), bench.read("y.out"))
    bench.write("t.txt", "a ship\nthe sea\n")
    for shard in range(2):
        bench.fine("classify", DEMO, "--file", "t.txt", "--shards", 2, "--shard", shard, "-o", "s.jsonl", "-q")
    bench.fine("merge", "s.jsonl.shards", "-o", "s.jsonl", "-q")
    assert len(bench.objects("s.jsonl")) == 2
    check_message(bench.run("attribute", DEMO, "--text", "a ship", "-o", "x.csv"), 2, ["--numbers FILE.csv has the numbers"])
    batch = ["train", "mlm", BATCH, "--one-batch", BATCH + "/batch.safetensors"]
    check_message(bench.run(*batch, "--gradients", "g.json"), 2, ["--gradients: 'g.json' is the name of a JSON file; expected .safetensors"])
    check_message(bench.run("eval", DEMO, "--minimal-pairs", "none", "--pair-scores", "p.csv"), 2, ["--pair-scores: 'p.csv' is the name of a CSV file; expected .jsonl"])
    check_message(bench.run("report", DEMO, "-o", "x.pdf"), 2, ["'x.pdf' is the name of a picture", "NAME.html"])
