"""One set of texts in every form, through every command that takes texts: the same answer, or a refusal; never another one in silence.

A case is drawn: a command, what its rows hold (texts, pairs, labels, words, choices, answers, sentences of minimal pairs, ids), and a form of
these rows, whose parts are drawn each by itself: lines or objects, the name, standard input, line ends, a byte order mark, a last line without an
end, more keys, null, the order of keys, a header. What a form must give (`wanted`) is said here once, in words of docs/json.md. The seed is
the day (DEBERTA_TEST_DAY has those of another one again).

SPDX-License-Identifier: MIT
"""
import array
import datetime
import json
import os
import pathlib
import random
import shutil

from helpers import GOLDEN, Tensor, contains, has_figures, read_tensors, write_tensors

CASES = 60 if os.environ.get("DEBERTA_TEST_QUICK") else 300
SEED = int(os.environ.get("DEBERTA_TEST_DAY") or datetime.date.today().toordinal())
WORDS = "a new store opened beside the mall old captain house sea number seven red boat it's , .".split()
MORE = {"idx": 3, "source": "web", "meta": {"url": "x"}, "timestamp": "2020", "score": 0.5, "lang": None, "id": "k1"}
OBJECTS, MAYBE_OBJECTS = (".jsonl", ".ndjson", ".jl"), (".json", ".txt", ".log", "", "-")
TRAIN = ["--steps", "1", "-t", "1", "-q"]
LONG, TOKENS = ["--sequence-tokens", "64"], ["--sequence-tokens", "32", "--batch-sequences", "2"]


# ------------------------------------------------------------------------------------------------------------ models


def models(bench):
    def make(path):
        path.mkdir()
        draw = random.Random(1)
        here = lambda name: str(path / name)
        (path / "c.txt").write_text("".join(drawn_text(draw) + "\n" for _ in range(60)))
        (path / "s.tsv").write_text("".join(f"{'abc'[k % 3]}\t{drawn_text(draw)}\n" for k in range(6)))
        (path / "w.tsv").write_text("".join(f"{word}\t{'OBI'[k % 3]}\n" for k, word in enumerate(WORDS)))
        (path / "q.jsonl").write_text(json.dumps({"question": "a", "context": "a new store", "text": "new", "start": 2}) + "\n")
        bench.fine("train", "tokenizer", "--file", here("c.txt"), "--vocabulary", "40", "--width", "32", "--depth", "1", "--head-count", "2", "-q", "-o", here("new"))
        bench.fine("train", "mlm", "--config", here("new"), "--file", here("c.txt"), *TRAIN, *TOKENS, "-o", here("mlm"))
        for task, name, examples in (("sequence", "seq", "s.tsv"), ("token", "tok", "w.tsv"), ("qa", "qa", "q.jsonl"), ("choice", "cho", None)):
            if examples is None:
                (path / "h.tsv").write_text("0\ta new\tstore\tboat\n")
                examples = "h.tsv"
            bench.fine("finetune", task, here("mlm"), "--examples", here(examples), "--new-head", *TRAIN, *LONG, "-o", here(name))
        shutil.copytree(path / "mlm", path / "rtd")
        golden, _ = read_tensors(next(GOLDEN.glob("36-*")) / "model.safetensors")  # of the same width
        write_tensors(path / "rtd" / "model.safetensors", read_tensors(path / "mlm" / "model.safetensors")[0] |
                      {key: tensor for key, tensor in golden.items() if key.startswith("mask_predictions.")})
    return bench.shared("forms", make)


def drawn_text(draw, least=1):
    return " ".join(draw.choices(WORDS, k=draw.randint(least, 8)))


# ---------------------------------------------------------------------------------------------------------- commands


def lines_of(said, *without):
    return [{key: value for key, value in json.loads(line).items() if key not in ("file", "id", *without)} for line in said.out.splitlines()]


def whole(said):
    return {key: value for key, value in json.loads(said.out).items() if key not in ("file", "files", "command", "made")}


def file_of(name):
    """All of that name: of a generator and a discriminator both."""
    return lambda said: [path.read_bytes() for path in sorted(pathlib.Path(".").glob(name))]


def values_of(name):
    return lambda said: {key: (tensor.shape, tensor.values.tobytes()) for key, tensor in read_tensors(name)[0].items()}


def corpus_of(name):
    return lambda said: [{key: value for key, value in json.loads(line).items() if key not in ("file", "id")} for line in pathlib.Path(name).read_text().splitlines()]


def texts(draw):
    return [{"text": drawn_text(draw)} for _ in range(draw.randint(1, 4))]


def masked(draw):
    return [{"text": drawn_text(draw) + " [MASK] " + drawn_text(draw)} for _ in range(draw.randint(1, 3))]


def one_text(draw):
    return [{"text": drawn_text(draw, 3)}]


def documents(draw):
    return [{"text": drawn_text(draw, 6)} for _ in range(draw.randint(12, 16))]


def pairs(draw):
    return [{"text": drawn_text(draw), "pair": drawn_text(draw)} for _ in range(draw.randint(1, 4))]


def labelled(draw):
    return [{"label": "abc"[k % 3], "text": drawn_text(draw)} for k in range(draw.randint(3, 5))]


def labelled_pairs(draw):
    return [{"label": "abc"[k % 3], "text": drawn_text(draw), "pair": drawn_text(draw)} for k in range(draw.randint(3, 5))]


def sentences(draw):
    return [{"words": (words := drawn_text(draw, 2).split()), "labels": [draw.choice("OBI") for _ in words]} for _ in range(draw.randint(1, 3))]


def chosen(draw):
    return [{"label": draw.randint(0, 1), "text": drawn_text(draw), "choices": [drawn_text(draw), drawn_text(draw)]} for _ in range(draw.randint(1, 3))]


def questions(draw):
    return [{"question": drawn_text(draw), "context": drawn_text(draw, 4)} for _ in range(draw.randint(1, 3))]


def answers(draw):
    rows = [{"question": drawn_text(draw), "context": (context := drawn_text(draw, 4)), "text": context.split()[0], "start": 0} for _ in range(draw.randint(1, 3))]
    return rows


def minimal(draw):
    return [{"sentence_good": "a " + drawn_text(draw), "sentence_bad": "the " + drawn_text(draw), "UID": "p"} for _ in range(draw.randint(1, 3))]


# name: rows, model, words of the command (FILE stands for the file), what is compared, how often it is drawn, are lines a form?
COMMANDS = {
    "tokenize": (texts, "mlm", ["tokenize", "M", "--json", "--file", "FILE"], lines_of, 5),
    "tokenize pairs": (pairs, "mlm", ["tokenize", "M", "--json", "--file", "FILE"], lines_of, 3),
    "encode": (texts, "mlm", ["encode", "M", "--file", "FILE", "-o", "o.safetensors"], values_of("o.safetensors"), 4),
    "encode pairs": (pairs, "mlm", ["encode", "M", "--file", "FILE", "-o", "o.safetensors"], values_of("o.safetensors"), 3),
    "encode --pool": (texts, "mlm", ["encode", "M", "--pool", "mean", "--file", "FILE", "-o", "o.npy"], file_of("o.npy"), 4),
    "encode --window": (pairs, "mlm", ["encode", "M", "--batch-tokens", "64", "--file", "FILE", "-o", "o.jsonl"], corpus_of("o.jsonl"), 3),
    "classify": (texts, "seq", ["classify", "M", "--json", "--file", "FILE"], lines_of, 4),
    "classify pairs": (pairs, "seq", ["classify", "M", "--json", "--file", "FILE"], lines_of, 3),
    "tag": (texts, "tok", ["tag", "M", "--json", "--file", "FILE"], lines_of, 4),
    "detect": (texts, "rtd", ["detect", "M", "--json", "--file", "FILE"], lines_of, 4),
    "attribute": (texts, "seq", ["attribute", "M", "--json", "--steps", "2", "--file", "FILE"], lines_of, 3),
    "fill-mask": (masked, "mlm", ["fill-mask", "M", "--json", "--file", "FILE"], lines_of, 4),
    "answer": (questions, "qa", ["answer", "M", "--json", "--file", "FILE"], lines_of, 4),
    "attention": (one_text, "mlm", ["attention", "M", "--file", "FILE", "--numbers", "o.csv"], file_of("o.csv"), 4),
    "verify": (texts, "mlm", ["verify", "M", "--json", "--isa", "scalar", "--file", "FILE"], whole, 2),
    "report": (one_text, "mlm", ["report", "M", "--skip", "latency,verify,receptive-field", "--file", "FILE", "-o", "o"], values_of("o/text0.safetensors"), 1),
    "eval": (labelled, "seq", ["eval", "M", "--json", "FILE"], whole, 4),
    "eval pairs": (labelled_pairs, "seq", ["eval", "M", "--json", "FILE"], whole, 4),
    "eval --minimal-pairs": (minimal, "mlm", ["eval", "M", "--json", "--minimal-pairs", "FILE"], whole, 3),
    "finetune sequence": (labelled_pairs, "seq", ["finetune", "sequence", "M", "--examples", "FILE", *TRAIN, *LONG, "-o", "o"], file_of("o/**/model.safetensors"), 4),
    "finetune token": (sentences, "tok", ["finetune", "token", "M", "--examples", "FILE", *TRAIN, *LONG, "-o", "o"], file_of("o/**/model.safetensors"), 4),
    "finetune choice": (chosen, "cho", ["finetune", "choice", "M", "--examples", "FILE", *TRAIN, *LONG, "-o", "o"], file_of("o/**/model.safetensors"), 4),
    "finetune qa": (answers, "qa", ["finetune", "qa", "M", "--examples", "FILE", *TRAIN, *LONG, "-o", "o"], file_of("o/**/model.safetensors"), 4),
    "train mlm": (documents, "mlm", ["train", "mlm", "M", "--file", "FILE", *TRAIN, *TOKENS, "-o", "o"], file_of("o/**/model.safetensors"), 4),
    "train rtd": (documents, "rtd", ["train", "rtd", "M", "--generator", "G", "--file", "FILE", *TRAIN, *TOKENS, "-o", "o"], file_of("o/**/model.safetensors"), 3),
    "train tokenizer": (documents, "mlm", ["train", "tokenizer", "--file", "FILE", "--vocabulary", "34", "--width", "32", "--depth", "1", "--head-count", "1", "-q", "-o", "o"],
                        file_of("o/spm.model"), 3),
}
TABLES = {labelled: ["label", "text"], labelled_pairs: ["label", "text", "pair"], chosen: ["label", "text", "choice0", "choice1"], sentences: ["word", "label"]}


# ------------------------------------------------------------------------------------------------------------- forms


def rows_as_lines(kind, rows, header):
    """None: the rows have no form as lines."""
    if kind in (pairs, questions, answers, minimal):
        return None
    if kind is sentences:
        body = "\n".join("".join(f"{word}\t{label}\n" for word, label in zip(row["words"], row["labels"])) for row in rows)
    elif kind in TABLES:
        body = "".join("\t".join(str(field) for value in row.values() for field in (value if isinstance(value, list) else [value])) + "\n" for row in rows)
    else:
        body = "".join(row["text"] + "\n" for row in rows)
    return ("\t".join(TABLES[kind]) + "\n" if header else "") + body


class Form:
    """A drawn form of rows: `file` (its name, or "-"), its bytes, and what it must give: True equal, False a refusal, None one of the two."""

    def __init__(self, draw, kind, rows):
        header = kind in TABLES and draw.random() < 0.5
        content = rows_as_lines(kind, rows, header)
        style = draw.choice(["lines", "objects", "objects", "objects"]) if content else "objects"
        if draw.random() < 0.08:
            style = "array"
        self.more, self.file = False, draw.choice(OBJECTS + MAYBE_OBJECTS) if style != "lines" else draw.choice([".txt", ".tsv", ".log", "", "-", "-", ".jsonl", ".json"])
        if style == "array":
            content = json.dumps(rows, indent=draw.choice([None, 1])) + "\n"
        elif style == "objects":
            content = self.objects(draw, kind, rows)
        jsonl = style == "objects" and draw.random() < 0.1
        if draw.random() < 0.3:
            content = content.replace("\n", "\r\n")
        if draw.random() < 0.2:
            content = content.rstrip("\r\n")
        if draw.random() < 0.3:
            content = "\ufeff" + content
        self.options, self.bytes, self.style = ["--jsonl"] if jsonl else [], content.encode(), style
        self.wanted = False if style == "array" or style == "lines" and self.file in (".jsonl", ".json") else True
        self.name = "-" if self.file == "-" else "rows" + self.file

    def objects(self, draw, kind, rows):
        more, shuffled, ascii_only, pair = draw.random() < 0.4, draw.random() < 0.3, draw.random() < 0.5, draw.choice(["pair", "text_pair"])
        self.more, found = more, ""
        for row in rows:
            row = {pair if key == "pair" and kind is not labelled else key: value for key, value in row.items()}
            if more:
                row |= {key: MORE[key] for key in draw.sample(sorted(MORE), 3)} | {"url": 1}
            if kind is texts and draw.random() < 0.2:
                row["pair"] = None
            keys = draw.sample(sorted(row), len(row)) if shuffled else list(row)
            found += json.dumps({key: row[key] for key in keys}, ensure_ascii=ascii_only, separators=draw.choice([(",", ":"), (", ", ": ")])) + "\n"
        return found

    def describe(self):
        return f"{self.name} {self.options} {self.bytes[:300]!r}"


def give(bench, folder, name, form):
    """(what the program said, what is compared or None)."""
    _rows, model, words, found, _times = COMMANDS[name]
    shutil.rmtree("o", ignore_errors=True)
    if form.name != "-":
        pathlib.Path(form.name).write_bytes(form.bytes)
    options = form.options if name not in WITHOUT_JSONL else []
    said = bench.run(*[{"M": str(folder / model), "G": str(folder / "mlm"), "FILE": form.name}.get(word, word) for word in words], *options,
                     stdin=form.bytes if form.name == "-" else b"")
    return said, None if said.code else found(said)


class Plain:
    """The form that all others are compared with."""

    def __init__(self, kind, rows, corpus):
        lines = None if corpus else rows_as_lines(kind, rows, False)
        self.name, self.options = ("plain.txt" if lines else "plain.jsonl" if corpus else "plain.json"), []
        self.bytes = (lines or "".join(json.dumps(row) + "\n" for row in rows)).encode()


WITHOUT_JSONL = [name for name, (_rows, _model, words, _found, _times) in COMMANDS.items() if words[0] in ("tokenize", "attention", "verify", "report", "eval", "finetune", "train")]
NOT_FROM_STANDARD_INPUT = ("train mlm", "train rtd", "train tokenizer")


def test_every_command_and_every_form(bench):
    draw, folder = random.Random(SEED), models(bench)
    os.chdir(bench.folder)
    names = [name for name, command in COMMANDS.items() for _ in range(command[4]) if command[2][0] != "attention" or has_figures(bench)]
    order = [name for _ in range(1 + CASES // len(names)) for name in draw.sample(names, len(names))][:CASES]
    rows, plain, counts, wrong = {}, {}, {"equal": 0, "refused": 0}, []
    for case, name in enumerate(order):
        kind = COMMANDS[name][0]
        if case % 150 == 0:
            rows, plain = {}, {}
        rows.setdefault(kind, kind(draw))
        form = Form(draw, kind, rows[kind])
        key = name, name in ("encode", "encode pairs") and ("--jsonl" in form.options or form.file in OBJECTS)  # the output of a corpus
        if key not in plain:
            said, plain[key] = give(bench, folder, name, Plain(kind, rows[kind], key[1]))
            assert plain[key], f"seed {SEED}, case {case}, {name}: {said.describe()}"
        said, found = give(bench, folder, name, form)
        what = f"seed {SEED} (DEBERTA_TEST_DAY), case {case}, {name}, {form.describe()}\n{said.describe()}"
        wanted = form.wanted and not (form.name == "-" and name in NOT_FROM_STANDARD_INPUT)
        noted = not form.more or "keys not used: " in said.err or "-q" in said.command.split()
        fine = found == plain[key] and noted if wanted else said.code in (2, 3) and len(said.err) > 20
        counts["equal" if wanted else "refused"] += 1
        if not fine:
            wrong.append(what)
    assert not wrong, f"{len(wrong)} of {CASES}; the first:\n" + "\n\n".join(wrong[:4])
    assert counts["equal"] > counts["refused"] > 0, counts


def test_blank_lines_before_objects(bench):
    """The first line that is not blank tells."""
    model = str(models(bench) / "mlm")
    plain = lines_of(bench.fine("tokenize", model, "--text", "", "--text", "a new store", "--json"), "line")
    for content in ('\n{"text": "a new store"}\n', ' \r\n{"text": "a new store"}\r\n'):
        found = lines_of(bench.fine("tokenize", model, "--file", "-", "--json", stdin=content.encode()), "line")
        assert found[-1] == plain[-1] and len(found) == 2, found
        bench.write("x.json", content)
        said = bench.run("classify", str(models(bench) / "seq"), "--file", "x.json", "--json")
        bench.write("x.jsonl", content)
        bench.expect(3, "tokenize", model, "--file", "x.json", "--json")
        contains(bench.expect(3, "train", "mlm", model, "--file", "x.json", *TRAIN, "-o", "no").err, "x.json", "object")
        assert lines_of(bench.fine("tokenize", model, "--file", "x.jsonl", "--json"), "line") == plain[-1:]
        bench.write("one.jsonl", '{"text": "a new store"}\n')
        for name in ("one.jsonl", "x.jsonl"):
            bench.fine("train", "mlm", model, "--file", name, *TRAIN, "-o", f"run-{name}-{len(content)}")
        assert len({json.loads(bench.read(f"run-{name}-{len(content)}/log.jsonl"))["loss"] for name in ("one.jsonl", "x.jsonl")}) == 1
    for content in ("a new store\n", '"a"\n', "5\n", "null\n", "\n\ntrue\n"):
        bench.write("x.json", content)
        contains(bench.expect(3, "tokenize", model, "--file", "x.json").err, "x.json: its first line is no JSON object")
        contains(bench.expect(3, "train", "mlm", model, "--file", "x.json", *TRAIN, "-o", "no").err, "is no JSON object")


def test_ids_in_every_form(bench):
    """A batch of ids: from the command line, JSON and safetensors, a file and standard input, with what tokenizers return beside them."""
    model, ids, draw = str(models(bench) / "mlm"), [[1, 8, 9, 10, 2], [1, 11, 12, 2, 0]], random.Random(SEED)
    os.chdir(bench.folder)
    mask = [[int(value > 0) for value in row] for row in ids]
    plain = None
    beside = {"special_tokens_mask": mask, "length": [5, 4], "offset_mapping": [[[0, 0]] * 5] * 2, "overflow_to_sample_mapping": [0, 1], "labels": [0, 1]}

    def rows(said):
        """Of each sequence the states of what is no padding."""
        tensor = read_tensors("o.safetensors")[0]["hidden_states.1"]
        width = tensor.shape[1] * tensor.shape[2]
        return [tensor.values[r * width:r * width + sum(mask[r]) * tensor.shape[2]] for r in range(2)]
    for case in range(30):
        batch = {"input_ids": ids, "attention_mask": mask} | {key: beside[key] for key in draw.sample(sorted(beside), draw.randint(0, 3))}
        kind = draw.choice(["ids", "file", "standard input", "safetensors"])
        text = json.dumps({key: batch[key] for key in draw.sample(sorted(batch), len(batch))}, indent=draw.choice([None, 2])).encode()
        if kind == "ids":
            given = [word for row, real in zip(ids, mask) for word in ("--ids", ",".join(map(str, row[:sum(real)])))]
        elif kind == "safetensors":
            write_tensors("b.safetensors", {key: Tensor("I64", (2, 5), array.array("q", sum(batch[key], []))) for key in ("input_ids", "attention_mask")})
            given = ["-i", "b.safetensors"]
        else:
            bench.write("b.json", text)
            given = ["-i", "b.json" if kind == "file" else "-"]
        said = bench.fine("encode", model, *given, "-o", "o.safetensors", stdin=text)
        plain = plain or rows(said)
        assert rows(said) == plain, (SEED, case, kind, text)
    for content, word in ((b"\xef\xbb\xbf" + text, ""), (json.dumps([ids]).encode(), "object"), (json.dumps({"input_ids": ids, "mask": mask}).encode(), "'mask'")):
        bench.write("b.json", content)
        said = bench.run("encode", model, "-i", "b.json", "-o", "o.safetensors")
        assert said.code == 3 and word in said.err or not word and rows(said) == plain, said.describe()
