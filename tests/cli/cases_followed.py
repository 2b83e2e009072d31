"""config.json and tensors: what is read and could change the answer is followed, refused, or named in one note.

SPDX-License-Identifier: MIT
"""
import array
import contextlib
import json
import math
import os
import pathlib
import random
import shutil
import subprocess
import sys

from cases_records import FOUND
from helpers import ROOT, Tensor, check, contains, equal, has_figures, make_model, near, read_tensors, write_tensors

sys.path.insert(0, str(ROOT / "tools" / "gates"))
from machine import DAY, day  # noqa: E402

TEXT = "the old house"
LAYER = "deberta.encoder.layer.0."
HEADS = {"sequence": 29, "token": 30, "mlm": 33}

# What real folders hold beside what a model needs, one row each: kind (a key of config.json, a tensor, a key of tokenizer_config.json, a file), name, what the
# program must do, value. quiet: the same answer and no word; equal: the same answer, with or without a note; said: the same answer and a note that names it, or a
# refusal that does; vectors: as said where vectors of a corpus are made, else quiet.
ROWS = ROOT / "tests" / "cli" / "folder_rows.tsv"
DRAWN, DRAWN_KEYS = (40, 21) if os.environ.get("DEBERTA_TEST_QUICK") else (150, 70)
COMMANDS = {"classify": ("sequence", ["-t1", "--text", TEXT, "--json"]), "encode": ("sequence", ["-t1", "--text", TEXT, "-o", "v.npy"]), "tag": ("token", ["-t1", "--text", TEXT, "--json"]),
            "fill-mask": ("mlm", ["-t1", "--text", "the [MASK] house", "--json"]), "tokenize": ("token", ["--text", TEXT, "--json"])}


def rows_of_folders():
    lines = (line.split("\t") for line in ROWS.read_text(encoding="utf-8").splitlines()[1:])
    return [(kind, name, says, json.loads(value)) for kind, name, says, value in lines]


def made(bench, name="m", head="sequence"):
    return make_model(bench.path(name), HEADS[head], "spm-unigram", 3100 if head == "mlm" else 2100)


def edit(folder, **changes):
    path = folder / "config.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **changes}))


def add(folder, changes, drop=()):
    tensors, _ = read_tensors(folder / "model.safetensors")
    for name in drop:
        del tensors[name]
    tensors.update({name: Tensor("F32", list(shape), array.array("f", [0.25] * math.prod(shape))) for name, shape in changes.items()})
    write_tensors(folder / "model.safetensors", tensors)


def classified(bench, folder, *more):
    return bench.fine("classify", str(folder), "--text", TEXT, "--json", *more)


def test_problem_type(bench):
    """Sigmoids, values, a softmax; --multi-label takes the place of each; eval and finetune refuse what they cannot score."""
    folder = made(bench)
    sigmoids = json.loads(classified(bench, folder, "--multi-label").out)
    plain = json.loads(classified(bench, folder).out)
    near(sum(one["probability"] for one in plain["labels"]), 1, 1e-6)
    edit(folder, problem_type="multi_label_classification")
    equal(json.loads(classified(bench, folder).out), sigmoids)
    bench.write("e.tsv", "0\tthe house\n1\tthe boat\n")
    contains(bench.expect(3, "eval", str(folder), "e.tsv").err, "multi_label_classification")
    contains(bench.expect(3, "finetune", "sequence", str(folder), "--examples", "e.tsv", "--out", "new", "--steps", "1").err, "multi_label_classification", "--new-head")
    edit(folder, problem_type="regression")
    values = json.loads(classified(bench, folder).out)["labels"]
    for one in values:
        near(1 / (1 + math.exp(-one["score"])), next(s["probability"] for s in sigmoids["labels"] if s["index"] == one["index"]), 1e-6)
    equal(json.loads(classified(bench, folder, "--multi-label").out), sigmoids)
    contains(bench.expect(3, "eval", str(folder), "e.tsv").err, "regression")
    edit(folder, problem_type="single_label_classification")
    equal(json.loads(classified(bench, folder).out), plain)
    edit(folder, problem_type="ranking")
    contains(bench.expect(3, "info", str(folder)).err, "problem_type", "'ranking'", "regression")


def test_keys(bench):
    """The lists of the code: what says nothing is passed over, the rest noted or refused; unknown keys are one note."""
    folder = made(bench)
    plain, original = classified(bench, folder), (folder / "config.json").read_text()
    equal(plain.err, "")
    edit(folder, **{name: None for kind, name, _, _ in rows_of_folders() if kind == "key" and name not in original})
    equal(classified(bench, folder).err, "")
    (folder / "config.json").write_text(original)
    edit(folder, rope_theta=1.5, sliding_window=8)
    found = classified(bench, folder)
    equal(found.out, plain.out)
    equal(found.err.count("note: "), 1)
    contains(found.err, "rope_theta", "sliding_window", "not known here")


def test_tensors(bench):
    """Adapters say that they must be merged; parts that config.json turns off and layers beyond the last are notes; heads that do not fit are not offered."""
    folder = made(bench)
    plain = classified(bench, folder)
    add(folder, {LAYER + "attention.self.query_proj.lora_A": (4, 8)})
    contains(bench.expect(3, "info", str(folder)).err, "lora_A", "merge")
    folder = made(bench, "based")  # peft's names: the plain weight is missing
    add(folder, {LAYER + "output.dense.base_layer.weight": (8, 8)}, [LAYER + "output.dense.weight"])
    contains(bench.expect(3, "info", str(folder)).err, "base_layer", "merge")
    folder = made(bench, "more")
    add(folder, {"deberta.encoder.layer.7.output.dense.bias": (8,), "deberta.encoder.layer.9.output.dense.bias": (8,), "deberta.encoder.conv.conv.bias": (8,),
                 "deberta.embeddings.position_ids": (1, 64), "encoder.of_my_own": (3,)})
    found = classified(bench, folder)
    equal(found.out, plain.out)
    contains(found.err, "layers 7 to 9", "encoder.conv.*", "conv_kernel_size")
    equal(found.err.count("note: "), 2)
    folder = made(bench, "widths")
    add(folder, {"qa_outputs.weight": (5, 7), "qa_outputs.bias": (5,), "mask_predictions.dense.weight": (3, 3), "deberta.embeddings.position_embeddings.weight": (3, 3)})
    found = classified(bench, folder)
    equal(found.out, plain.out)
    contains(found.err, "qa_outputs.weight", "mask_predictions.dense.weight", "position_embeddings", "not offered")
    contains(bench.expect(3, "answer", str(folder), "--question", "who", "--context", TEXT).err, "'qa'")


def test_a_table_of_fewer_positions(bench):
    """Raised max_position_embeddings: a table that the input does not read is no obstacle; the decoder that reads it is not offered."""
    folder = made(bench)
    plain = classified(bench, folder)
    add(folder, {"deberta.embeddings.position_embeddings.weight": (64, 32)})
    edit(folder, max_position_embeddings=128)
    equal(classified(bench, folder).out, plain.out)
    folder = made(bench, "mlm", "mlm")
    words = ("fill-mask", str(folder), "--text", "the [MASK] house", "--json", "--mlm-decoder")
    plain = bench.fine(*words, "plain")
    bench.fine(*words, "emd")
    edit(folder, max_position_embeddings=128)
    found = bench.fine(*words, "plain")
    equal(found.out, plain.out)
    contains(found.err, "position_embeddings", "128", "mlm_emd", "not offered")
    contains(bench.expect(3, *words, "emd").err, "mlm_emd")


def test_cut_pairs(bench):
    """What each text of a pair keeps, as the library tokenizers' longest_first decides it."""
    folder = made(bench)
    bench.write("p.jsonl", "".join(json.dumps({"text": "a " * left, "pair": "b " * right}) + "\n" for left in (1, 4, 5, 9) for right in (1, 5, 8, 9)))

    def lengths(*words):
        """Tokens of the first and of the second text, without the frame of three."""
        said = bench.fine("tokenize", str(folder), "--file", "p.jsonl", "--json", *words).out.splitlines()
        return [(types.count(0) - 2, types.count(1) - 1) for types in (json.loads(line)["type_ids"] for line in said)]
    whole = lengths()
    check(len({max(pair) for pair in whole}) > 2 and len(whole) == 16, whole)
    for budget in range(1, 19):
        expected = []
        for pair in whole:
            shorter, longer = sorted(pair)
            longer = max(shorter, budget - shorter) if shorter <= budget else shorter
            if shorter + longer > budget:
                shorter, longer = budget // 2, budget // 2 + budget % 2
            kept = (longer, shorter) if pair[0] > pair[1] else (shorter, longer)
            expected.append((min(pair[0], kept[0]), min(pair[1], kept[1])))
        equal(lengths("--max-tokens", str(budget + 3)), expected, budget)


def test_heads(bench):
    """A classifier of another class than transformers' is no token head; a discriminator's masked head is a leftover."""
    folder = made(bench, head="token")
    bench.fine("tag", str(folder), "--text", TEXT)
    edit(folder, architectures=["DebertaV2Model"])
    contains(bench.expect(3, "tag", str(folder), "--text", TEXT).err, "classifier.weight", "architectures")
    check("token" not in bench.json("info", str(folder))["model"]["heads_present"], "offered")
    folder = make_model(bench.path("rtd"), 37, "spm-unigram", 3100)
    contains(bench.fine("fill-mask", str(folder), "--text", "the [MASK] house").err, "discriminator", "generator")


def test_dialect(bench):
    """Long distances and cut pairs: by the library that wrote config.json; --reference overrides the first."""
    folder = make_model(bench.path("m"), 15, "spm-unigram", 2100)
    ids = ",".join(str(5 + k % 200) for k in range(160))
    edit(folder, max_position_embeddings=40, position_buckets=16, max_relative_positions=-1)
    tensors, _ = read_tensors(folder / "model.safetensors")
    name = next(one for one in tensors if one.endswith("rel_embeddings.weight"))
    tensors[name].values = tensors[name].values[:32 * tensors[name].shape[1]]
    tensors[name].shape = [32, tensors[name].shape[1]]
    write_tensors(folder / "model.safetensors", {k: v for k, v in tensors.items() if "position_embeddings" not in k})

    def encoded(*words):
        bench.fine("encode", str(folder), "--ids", ids, "-o", "o.safetensors", *words)
        found, about = read_tensors("o.safetensors")
        return {key: bytes(value.values) for key, value in found.items()}, about["reference"]
    hf, microsoft = encoded("--reference", "hf"), encoded("--reference", "microsoft")
    check(hf[0] != microsoft[0], "the rules must differ here")
    equal(encoded(), hf, "with a model_type")
    pair = ("--text", "a b c d e f g h", "--pair", "i k l m n o p q", "--max-tokens")
    odd = [json.loads(bench.fine("tokenize", str(folder), *pair, "8", "--json").out)["ids"]]
    config = json.loads((folder / "config.json").read_text())
    del config["model_type"]
    (folder / "config.json").write_text(json.dumps(config))
    equal(encoded(), microsoft, "without one")
    odd.append(json.loads(bench.fine("tokenize", str(folder), *pair, "8", "--json").out)["ids"])
    places = [ids.index(2, 1) - 1 for ids in odd]
    equal(places, [2, 3], "tokens of the first text: five in all")


def test_page(bench):
    """docs/followed.md has the lists of the code; a list that changes is noticed, and a key that nobody reads."""
    copy = pathlib.Path(bench.path("tree"))
    for folder in ("core", "train", "program/train"):
        shutil.copytree(ROOT / folder, copy / folder)
    for file in ("tools/making/make_followed.py", "docs/followed.md"):
        (copy / file).parent.mkdir(parents=True)
        shutil.copy(ROOT / file, copy / file)

    def checked():
        done = subprocess.run([sys.executable, "-B", str(copy / "tools" / "making" / "make_followed.py"), "--check"], capture_output=True, text=True, check=False)
        return done.returncode, done.stdout
    equal(checked(), (0, ""))
    for file, old, new, words in (
            ("config_keys.c", 'X(HARMLESS, "legacy"', 'X(NOTED, "legacy"', "the table 'config.json harmless'"),
            ("config_keys.c", 'X(HARMLESS, "xla_device"', 'X(FOLLOWED, "xla_device"', "xla_device is called followed, but nobody reads it"),
            ("config_keys.c", 'X(FOLLOWED, "conv_act"', 'X(HARMLESS, "conv_act"', "reads conv_act"),
            ("tensor_account.c", 'X("dora")', 'X("dora2")', "the table 'tensors of adapters'"),
            ("folder_kind.c", '"*.h5"', '"*.h6"', "the table 'folders with weights of others'"),
            ("tokenizer_keys.c", '"vocab_type", ONE_OF', '"vocab_type", OFF', "the table 'tokenizer settings'"),
            ("record_keys.h", 'X("sent2", "pair")', 'X("sent2", "text")', "the table 'record names'"),
            ("followed.md", "`scaler.pt`", "`scaling.pt`", "the table 'folders with files of trainers'")):
        (path,) = copy.rglob(file)
        text = path.read_text(encoding="utf-8")
        check(old in text, (file, old))
        path.write_text(text.replace(old, new), encoding="utf-8")
        code, said = checked()
        check(code == 1 and words in said, (file, words, said))
        path.write_text(text, encoding="utf-8")


class Changed:
    """A model's folder with one more thing in it, and without it again. spm.model cuts alone, so that a tokenizer.json can be what is added."""

    def __init__(self, bench, head):
        self.folder = made(bench, head, head)
        (self.folder / "tokenizer.json").unlink()
        self.weights = (self.folder / "model.safetensors").read_bytes()

    @contextlib.contextmanager
    def with_more(self, kind, name, value):
        path = self.folder / {"key": "config.json", "setting": "tokenizer_config.json", "tensor": "model.safetensors", "file": name}[kind]
        before = path.read_bytes() if path.exists() else None
        path.parent.mkdir(parents=True, exist_ok=True)
        if kind == "tensor":
            path.write_bytes(self.with_tensor(name, value))
        else:
            path.write_text(value if kind == "file" else json.dumps({**json.loads(before), name: value}), encoding="utf-8")
        try:
            yield
        finally:
            if before is None:
                path.unlink()
            else:
                path.write_bytes(before)

    def with_tensor(self, name, shape):
        """The file of weights with a tensor of quarters behind the others."""
        length = int.from_bytes(self.weights[:8], "little")
        header, body = json.loads(self.weights[8:8 + length]), self.weights[8 + length:]
        check(name not in header, name)
        more = array.array("f", [0.25] * math.prod(shape)).tobytes()
        header[name] = {"dtype": "F32", "shape": shape, "data_offsets": [len(body), len(body) + len(more)]}
        text = json.dumps(header).encode()
        text += b" " * (-len(text) % 8)
        return len(text).to_bytes(8, "little") + text + body + more


def judge(bench, changed, command, row, plain):
    """What is wrong with the answer of a folder with one more thing, "" for nothing."""
    kind, name, says, value = row
    with changed.with_more(kind, name, value):
        found = answered(bench, changed, command)
    named = name.removeprefix("deberta.") in found[2].err
    if says == "vectors":
        says = "said" if command == "encode" else "quiet"
    if found[0] == 3:
        return "" if says == "said" and named else "refused without its name, or although nothing depends on it"
    if found[:2] != plain[:2]:
        return "another answer, in silence"
    if says == "said":
        return "" if named else "nothing names it"
    return "there is nothing to say" if says == "quiet" and noted(found[2]) != noted(plain[2]) else ""


def noted(result):
    return [line for line in result.err.splitlines() if "note: " in line]


def answered(bench, changed, command):
    """(exit code, the answer's bytes, all that was said)."""
    said = bench.run(command, str(changed.folder), *COMMANDS[command][1])
    if command == "encode" and said.code == 0:
        return said.code, pathlib.Path(bench.path("v.npy")).read_bytes(), said
    return said.code, said.out, said


def test_drawn(bench):
    """A folder with one more key, tensor, setting or file: the same answer, a note that names it, or a refusal that does; never another answer in silence."""
    rows = rows_of_folders()
    check(len(rows) > 400 and {row[2] for row in rows} == {"quiet", "equal", "said", "vectors"}, len(rows))
    draw = random.Random(day())
    folders = {head: Changed(bench, head) for head in HEADS}
    plain = {command: answered(bench, folders[head], command) for command, (head, _) in COMMANDS.items()}
    check(all(one[0] == 0 for one in plain.values()), plain)
    wrong = []
    for row in draw.sample(rows, min(DRAWN, len(rows))):
        # The model of the masked head has the heads that a row adds to others.
        command = draw.choice([one for one in COMMANDS if not (one == "tokenize" and row[0] != "setting") and not (one == "fill-mask" and row[2] == "equal")])
        problem = judge(bench, folders[COMMANDS[command][0]], command, row, plain[command])
        wrong += [f"{command}, {row[0]} {row[1]} ({row[2]}): {problem}"] if problem else []
    equal(wrong, [], f"{DAY}={day()} draws it again")


# Commands that read objects: the model's head, options, an object, keys that the command reads.
PAIRED = {"id", "pair", "text_pair"}
READERS = {
    "classify": ("sequence", ["classify", "-t1", "--json"], {"text": TEXT}, PAIRED),
    "encode": ("sequence", ["encode", "-t1", "--pool", "mean", "-o", "v.npy"], {"text": TEXT}, PAIRED),
    "states": ("sequence", ["encode", "-t1", "-o", "v.safetensors"], {"text": TEXT}, PAIRED),
    "eval": ("sequence", ["eval", "-t1", "--json"], {"text": TEXT, "label": 1}, PAIRED | {"label"}),
    "fill-mask": ("mlm", ["fill-mask", "-t1", "--json"], {"text": "the [MASK] house"}, PAIRED),
    "tag": ("token", ["tag", "-t1", "--json"], {"text": TEXT}, PAIRED | {"words"}),
    "attention": ("mlm", ["attention", "-t1", "--layers", "0", "--heads", "0", "--numbers", "v.csv", "-o", "v.svg"], {"text": TEXT}, PAIRED),
}


def read(bench, folder, options, objects):
    """(exit code, the answer's bytes, what was said) of a command over objects."""
    bench.write("o.jsonl", "".join(json.dumps(one) + "\n" for one in objects))
    file = ["o.jsonl"] if options[0] == "eval" else ["--file", "o.jsonl"]
    said = bench.run(options[0], str(folder), *options[1:], *file)
    if "v.safetensors" in options and said.code == 0:
        return 0, {name: one.values.tobytes() for name, one in read_tensors(bench.path("v.safetensors"))[0].items()}, said
    written = next((name for name in ("v.npy", "v.csv") if name in options), None)
    return said.code, pathlib.Path(bench.path(written)).read_bytes() if written and said.code == 0 else said.out, said


def test_objects(bench):
    """An object with one more key, in every kind of command that reads objects: the same answer and a note that names it, or a refusal that does."""
    draw = random.Random(day())
    folders = {head: made(bench, head, head) for head in HEADS}
    readers = {name: one for name, one in READERS.items() if name != "attention" or has_figures(bench)}
    plain = {name: read(bench, folders[head], options, [one]) for name, (head, options, one, _) in readers.items()}
    check(all(one[0] == 0 for one in plain.values()), {name: one[2].describe() for name, one in plain.items() if one[0]})
    wrong = []
    for name in draw.sample(sorted(readers), len(readers)) * (DRAWN_KEYS // len(readers)):
        head, options, one, used = readers[name]
        key = draw.choice([word for word in FOUND if word not in used | one.keys()])
        code, answer, said = read(bench, folders[head], options, [{**one, key: "the boat"}])
        named = f"keys not used: {key}" if code == 0 else key
        if code not in (0, 3) or named not in said.err or (code == 0 and answer != plain[name][1]):
            wrong.append((name, key, said.describe()))
    equal(wrong, [], f"{DAY}={day()} draws it again")
