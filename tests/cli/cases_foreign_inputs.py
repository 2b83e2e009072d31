"""Files that another program made and nobody meant as texts, batches or results: each is refused by name, or what is not followed is said.

SPDX-License-Identifier: MIT
"""
import bz2
import contextlib
import io
import json
import os
import random
import sqlite3
import zipfile

from cases_text_forms import COMMANDS, SEED, Plain, give, models
from helpers import DEMO, GOLDEN, Tensor, check_message, contains, has_figures, read_tensors, write_tensors

TEXTS = b"a new store\nthe old sea\n" * 40
OF_A_PAIR = ["sentence2", "hypothesis", "text_b", "passage"]


def containers(bench):
    """(what the message calls it, its bytes)."""
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w") as file:
        file.writestr("x.txt", TEXTS)
    with contextlib.closing(sqlite3.connect(bench.path("base.db"))) as base:
        base.execute("create table texts (text)")
        base.execute("insert into texts values ('a new store')")
        base.commit()
    with open(bench.path("base.db"), "rb") as file:
        return [("SQLite", file.read()), ("zip archive", archive.getvalue()), *(("bzip2", bz2.compress(TEXTS, level)) for level in (1, 5, 9))]


def test_containers_are_named(bench):
    for word, content in containers(bench):
        for name in ("x.txt", "x.tsv", "x.jsonl", "x"):
            bench.write(name, content)
            check_message(bench.run("tokenize", DEMO, "--file", name), 3, [name, word])
        for command in (["eval", DEMO, "x.tsv"], ["encode", DEMO, "--file", "x.txt", "-o", "o.npy"],
                        ["train", "mlm", DEMO, "--file", "x.txt", "--steps", "1", "-o", "no"], ["train", "tokenizer", "--file", "x.txt", "-o", "no"],
                        ["finetune", "sequence", DEMO, "--examples", "x.tsv", "--new-head", "--steps", "1", "-o", "no"]):
            contains(bench.expect(3, *command).err, word)
    bench.write("x.txt", "BZh is no word\nPK neither\n")
    bench.fine("tokenize", DEMO, "--file", "x.txt")


def test_look_alike_keys_of_every_command(bench):
    """Each is refused by name, or named in the note on keys that are not used; where a second text is read it is refused."""
    draw, folder, wrong, refused = random.Random(SEED), models(bench), [], 0
    os.chdir(bench.folder)
    for name, (kind, _model, words, _found, _times) in COMMANDS.items():
        if words[0] == "attention" and not has_figures(bench) or words[0] in ("report", "verify"):
            continue
        for key in ("mask", draw.choice(OF_A_PAIR)):
            rows = kind(draw)
            rows[draw.randrange(len(rows))][key] = "the old sea"
            said, _found = give(bench, folder, name, Plain(kind, rows, True))
            fine = key in said.err and (said.code == 3 and "looks like" in said.err or said.code == 0 and key != "mask" and "keys not used: " in said.err)
            fine = fine or said.code == 0 and "-q" in words and key != "mask"  # notes were not wanted
            refused += said.code == 3
            if not fine:
                wrong.append(f"seed {SEED} (DEBERTA_TEST_DAY), {name}, {key}: {said.describe()}")
    assert not wrong, f"{len(wrong)}; the first:\n" + "\n\n".join(wrong[:4])
    assert refused >= len(COMMANDS) - 3, refused  # a mask everywhere


def test_batch_with_a_tensor_named_mask(bench):
    case = GOLDEN.parent / "golden_train" / "03-v3-mlm-emd"
    tensors, _ = read_tensors(case / "batch.safetensors")
    steps = {name: Tensor(tensor.dtype, (1, *tensor.shape), tensor.values) for name, tensor in tensors.items()}
    for more in ({"mask": "attention_mask"}, {"segment_ids": "token_type_ids"}):
        for option, batch, rest in (("--one-batch", tensors, ["--gradients", "g"]), ("--batches", steps, ["--steps", "1", "-o", "no"])):
            name, meant = next(iter(more.items()))
            write_tensors("b.safetensors", batch | {name: batch["input_ids"]})
            check_message(bench.run("train", "mlm", str(case), option, "b.safetensors", *rest), 3, ["b.safetensors", f"'{name}'", meant])


def test_results_of_another_program(bench):
    """As deep or as many as no sweep is, with a key twice, and what follows the object."""
    good = {"schema": "deberta-bench/1", "environment": {}, "results": [{"model": "m", "n": 4, "samples_s": [1.0]}]}
    text = json.dumps(good)
    bench.write("good.json", text)
    for content, word in ((text[:-1] + ', "more": ' + "[" * 40 + "]" * 40 + "}", "nested deeper than 32"),
                          (text[:-1] + ', "more": [' + "[]," * (9 << 20) + "0]}", "values"), ("[" + text + "]", "holds an array"),
                          (text + "}", "end of file expected"), (text[:-1] + ', "schema": "x"}', "'schema' occurs twice")):
        bench.write("bad.json", content)
        for command in (["merge", "good.json", "bad.json"], ["compare", "good.json", "bad.json"]):
            contains(bench.expect(3, "bench", *command).err, "bad.json", word)


def test_quotation_marks_of_a_table(bench):
    """One note a file, where a program for tables wrote them; none where a text begins and ends with one by chance. The texts keep them."""
    quoted, natural = '1\t"a new store"\n0\t"the old sea"\n', '1\ta new store\n0\t"the old sea"\n1\t"no" he said "\n'
    for lines, line in ((quoted, 1), ("label\ttext\n" + quoted, 2), ('1\ta new store\n0\t"the ""old"" sea"\n1\t"a ""boat"""\n', 2), (natural, 0)):
        bench.write("table.tsv", lines)
        for command in (["eval", DEMO, "table.tsv"], ["finetune", "sequence", DEMO, "--examples", "table.tsv", "--new-head", "--steps", "1", "--sequence-tokens", "16", "-t", "1", "-o", f"m{line}{len(lines)}"]):
            said = bench.fine(*command).err
            assert said.count("quotation marks") == (line > 0) and f"table.tsv, line {line}: a text stands" in said or not line and "quotation" not in said, said
    bench.write("plain.tsv", quoted.replace('"', ""))
    bench.write("table.tsv", quoted)
    found = [{key: value for key, value in bench.json("eval", DEMO, name).items() if key not in ("command", "files", "made")} for name in ("plain.tsv", "table.tsv")]
    assert found[0] != found[1], found
