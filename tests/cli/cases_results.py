"""What the commands compute and write: encode's file contract against the golden results, JSON key by key, figures, and that
verify notices what is wrong. SPDX-License-Identifier: MIT
"""
import array
import contextlib
import json
import os
import pty
import re
import resource
import shutil
import subprocess
import sys
import time
from unittest import SkipTest

from helpers import (DEMO, SPM, TINY, Picture, Tensor, check_message, children_of, contains, ending, needs_figures, read_tensors,
                     wait_until, write_tensors)

# ------------------------------------------------------------------------------------------------------------ encode

EPSILON = 2.0**-24  # what a float32 is rounded by at most, relatively

# Cases with padding, holes, every head, v1 and v2; 18 goes beyond the table, where transformers clamps later.
ENCODED = ["01-v1-both-n33", "05-v1-posbias-types-b3", "08-v1-talking-head", "09-v1-relu-seqcls", "10-v1-mlm-emd", "12-v2-b8-n33-c2p",
           "18-v2-beyond-m16-n33", "20-v2-conv-gelu-b3", "21-v2-conv-tanh-g2", "22-v2-embedproj-types", "24-v3-b3-ragged", "28-v3-n1",
           "29-v3-seqcls", "30-v3-token", "31-v3-qa", "32-v3-mlm-legacy", "33-v3-mlm-emd", "34-v2-conv-mlm-emd", "35-v2-mlm-posbias",
           "36-v3-rtd", "37-v3-rtd-lm-leftover"]


def is_real(name, shape, index, mask):
    """Whether a value belongs to real tokens only. mask: [B][N]."""
    if name == "logits.sequence":
        return any(mask[index // shape[1]])
    columns = shape[1] if not name.startswith("attn.") else shape[3]
    if name.startswith("attn."):
        key = index % columns
        query = index // columns % columns
        row = index // (columns * columns * shape[1])
        return mask[row][query] and mask[row][key]
    width = shape[2] if len(shape) == 3 else 1
    return mask[index // width // columns][index // width % columns]


def compare_case(case, extra=()):
    def test(bench):
        folder = os.path.join(bench.golden, case)
        expected, _ = read_tensors(os.path.join(folder, "expected.safetensors"))
        reference = "hf" if case.startswith("18") else "microsoft"
        bench.fine("encode", folder, "--input", os.path.join(folder, "expected.safetensors"), "--hidden", "all", "--attention-layers", "all",
                   "--component-layers", "all", "--logits", "--reference", reference, "-o", "out.safetensors", *extra)
        found, metadata = read_tensors(bench.path("out.safetensors"))
        assert sorted(metadata) == ["model", "precision", "reference", "version"], metadata
        assert metadata["reference"] == reference, metadata
        batch, columns = expected["input_ids"].shape
        given = expected.get("attention_mask")
        mask = [[given is None or given.values[b * columns + n] != 0 for n in range(columns)] for b in range(batch)]
        config = bench.load(os.path.join(folder, "config.json"))
        layers, heads = config["num_hidden_layers"], config["num_attention_heads"]
        for layer in range(layers + 1):
            assert found[f"hidden_states.{layer}"].shape == (batch, columns, config["hidden_size"])
        for layer in range(layers):
            for what in ("probs", "c2c", "logits"):
                assert found[f"attn.{layer}.{what}"].shape == (batch, heads, columns, columns), what
        inputs = {name: found.pop(name) for name in list(found) if name.endswith(("ids", "mask"))}
        assert set(inputs) >= {"input_ids", "attention_mask"}, set(inputs)
        for name, tensor in inputs.items():
            assert tensor.dtype == "I64" and tensor.shape == (batch, columns), name
            for k, value in enumerate(tensor.values):
                row = mask[k // columns]
                hole = any(row[:k % columns]) and any(row[k % columns:])
                there = expected[name].values[k] if name in expected else k % columns  # position_ids of rows padded on the left
                want = int(row[k % columns]) if name == "attention_mask" else there if row[k % columns] or hole else 0
                assert value == want, f"{name}[{k}] = {value}, expected {want}"
        for name, tensor in found.items():
            assert tensor.dtype == "F32" and (name not in expected or tensor.shape == expected[name].shape), (name, tensor.shape)
            for k, value in enumerate(tensor.values):
                assert value == 0 or is_real(name, tensor.shape, k, mask), f"{name}[{k}] is padding, found {value}"
        named = {n for n in expected if n.startswith(("logits.", "hidden_states.")) or (n.startswith("attn.") and n.count(".") == 2
                 and not n.endswith("probs_rows") and ".probs." not in n)}
        missing = {n for n in named if n not in found}
        assert not missing, f"not written: {sorted(missing)}"
        for layer in range(layers):
            terms = [found[f"attn.{layer}.{w}"].values for w in ("c2c", "c2p", "p2c") if f"attn.{layer}.{w}" in found]
            for k, total in enumerate(found[f"attn.{layer}.logits"].values):
                bound = 4 * EPSILON * sum(abs(t[k]) for t in terms)
                assert abs(total - sum(t[k] for t in terms)) <= bound, f"attn.{layer}.logits[{k}] is not the sum of its terms"
        for file in (os.path.join(folder, "expected.safetensors"), "out.safetensors"):  # numbers: what is golden, and what was written
            bench.fine("verify", folder, "--expected", file, "--allow-extra", "--reference", reference)
        assert bench.files() == ["out.safetensors"]
    return test


def test_encode_defaults(bench):
    """Only the last hidden state is written unless more is asked for; the same command gives the same bytes on every tier."""
    about = json.loads(bench.fine("encode", TINY, "--ids", "1,7,3,2", "--ids", "4,5", "--json", "-o", "a.safetensors").out)
    assert set(about) == {"out", "model", "isa", "tokens", "tensors"}, about
    assert about["tokens"] == 6 and about["tensors"] == [{"name": "input_ids", "shape": [2, 4]}, {"name": "attention_mask", "shape": [2, 4]},
                                                        {"name": "hidden_states.1", "shape": [2, 4, 64]}], about
    tensors, metadata = read_tensors(bench.path("a.safetensors"))
    assert list(tensors) == ["input_ids", "attention_mask", "hidden_states.1"] and tensors["hidden_states.1"].shape == (2, 4, 64)
    assert list(tensors["input_ids"].values) == [1, 7, 3, 2, 4, 5, 0, 0] and list(tensors["attention_mask"].values) == [1] * 6 + [0] * 2
    assert all(v == 0 for v in tensors["hidden_states.1"].values[6 * 64:]) and all(tensors["hidden_states.1"].values[:6 * 64])
    bench.fine("encode", TINY, "--ids", "1,7,3,2", "--ids", "4,5", "--isa", "scalar", "--threads", "1", "-o", "b.safetensors")
    assert bench.bytes("a.safetensors") == bench.bytes("b.safetensors") and set(metadata) == {"model", "precision", "reference", "version"}
    bench.fine("encode", TINY, "--ids=1,7,3,2", "--ids=4,5", "-oc.safetensors")
    assert bench.bytes("a.safetensors") == bench.bytes("c.safetensors"), "the same command gives other bytes"


def test_encode_lists(bench):
    bench.fine("encode", TINY.replace("layers=1", "layers=4"), "--ids", "1,7,3", "--attention-layers", "0,2-3", "--component-layers", "1", "-o", "x.safetensors")
    names = {name for name in read_tensors(bench.path("x.safetensors"))[0] if name.startswith("attn.")}
    assert names == {f"attn.{layer}.probs" for layer in (0, 2, 3)} | {f"attn.1.{what}" for what in ("c2c", "c2p", "p2c", "logits")}, names


def test_memory_limit_is_for_all(bench):
    """The sum of model, session and what is kept is what --memory-limit is compared with, to the byte."""
    model = json.loads(bench.fine("info", TINY, "--json").out)["model"]["memory_bytes"]
    ids = ",".join(["1"] * 300)
    encode = ["encode", TINY, "--ids", ids, "-o", "x.safetensors", "--threads", "1"]
    commands = [encode, encode + ["--attention-layers", "all"], encode + ["--hidden", "all"],
                ["verify", TINY, "--ids", ids, "--isa", "scalar", "--threads", "1"]]
    commands += [["encode", DEMO, "--text", "a", "-o", "x.npy"], ["fill-mask", DEMO, "--text", "[MASK]"]]
    if "\n  attention " in bench.fine("--help").out:
        commands.append(["attention", TINY, "--ids", ids, "--threads", "1", "-o", "x.svg"])
    for command in commands:
        held = model if command[1] == TINY else json.loads(bench.fine("info", DEMO, "--json").out)["model"]["memory_bytes"]
        refusal = bench.run(*command, "--memory-limit", held + 1)
        check_message(refusal, 4, ["for the model", "for the session", "the limit is"])
        total, *parts, limit = [int(number) for number in re.findall(r"(\d+) bytes", refusal.err)]
        assert total == sum(parts) and parts[0] == held and parts[1] > 0 and limit == held + 1, refusal.err
        assert bench.run(*command, "--memory-limit", total - 1).code == 4, command
        if command[0] != "attention":  # refused once for the session, once for the matrices
            bench.fine(*command, "--memory-limit", total)


def test_encode_json_input(bench):
    """A .json file of the same content as a .safetensors file, and everything masked."""
    bench.write("in.json", json.dumps({"input_ids": [[1, 7, 3, 0], [0, 4, 5, 6]], "attention_mask": [[1, 1, 1, 0], [0, 1, 1, 1]], "special_tokens_mask": []}))
    write_tensors(bench.path("in.safetensors"), {
        "input_ids": Tensor("I64", (2, 4), array.array("q", [1, 7, 3, 0, 0, 4, 5, 6])),
        "attention_mask": Tensor("I32", (2, 4), array.array("i", [1, 1, 1, 0, 0, 1, 1, 1]))})
    for name in ("json", "safetensors"):
        bench.fine("encode", TINY, "--input", f"in.{name}", "-o", f"{name}.safetensors")
        bench.fine("encode", TINY, "--input", "-", "-o", "stdin.safetensors", stdin=bench.bytes(f"in.{name}"))  # either kind from standard input
        assert bench.bytes("stdin.safetensors") == bench.bytes(f"{name}.safetensors"), name
    check_message(bench.run("encode", TINY, "--input", "-", "-o", "no.safetensors", stdin=b"[1, 2]"), 3, ["standard input: holds an array"])
    a, b = (read_tensors(bench.path(f"{n}.safetensors"))[0]["hidden_states.1"] for n in ("json", "safetensors"))
    assert a.values.tobytes() == b.values.tobytes() and a.shape == (2, 4, 64)
    bad = os.path.join(bench.golden, "bad", "82-mask-all-zero")
    bench.fine("encode", bad, "--input", os.path.join(bad, "inputs.json"), "--attention-layers", "all", "-o", "zero.safetensors")
    for name, tensor in read_tensors(bench.path("zero.safetensors"))[0].items():
        assert not any(tensor.values), name


def processor_seconds(bench, *arguments):
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    bench.fine(*arguments, timeout=600)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def test_logits_in_blocks(bench):
    """A call of a head walks the word table, so one for each token would make 64 tokens cost 16 times what 4 cost. In blocks it is some
    3 times, for the products and the file. Processor time, because a loaded machine does not change it much."""
    def cost(tokens, runs):
        encode = ["encode", "synthetic:v3-small,layers=1,lm=1", "--ids", ",".join(str(3 + k % 90) for k in range(tokens)), "-t", "1",
                  "-o", "x.safetensors"]
        return min(processor_seconds(bench, *encode, "--logits") for _ in range(runs)) - processor_seconds(bench, *encode)

    few, many = cost(4, 2), cost(64, 1)
    assert 0 < many < 8 * few, f"logits of 4 tokens cost {few:.2f} s, of 64 tokens {many:.2f} s"


def test_encode_is_verified(bench):
    """What encode writes is what verify --expected reads: texts with pairs, and padding, holes, types and positions of a file."""
    model = TINY + ",types=2,biased=1,positions=64"
    bench.write("in.json", json.dumps({"input_ids": [[1, 7, 3, 0], [9, 4, 5, 6], [1, 1, 1, 1]], "attention_mask": [[1, 0, 1, 0], [0, 1, 1, 1], [1, 1, 1, 1]],
                                       "token_type_ids": [[0, 0, 1, 0], [0, 0, 1, 1], [0, 0, 0, 0]], "position_ids": [[0] * 4, [3, 9, 8, 7], [0] * 4]}))
    wanted = ["--hidden", "all", "--attention-layers", "all", "--component-layers", "all", "--logits", "--ablate", "c2p@0:1", "--ablate", "p2c=mean@0"]
    bench.fine("encode", model, "--input", "in.json", *wanted, "-o", "a.safetensors")
    tensors, metadata = read_tensors(bench.path("a.safetensors"))
    assert metadata["ablate"] == "c2p@0:1,p2c=mean@0" and set(metadata) == {"ablate", "model", "precision", "reference", "version"}, metadata
    assert list(tensors["position_ids"].values) == [0, 0, 0, 0, 0, 9, 8, 7, 0, 0, 0, 0], tensors["position_ids"].values
    bench.fine("verify", model, "--expected", "a.safetensors", "--ablate", metadata["ablate"])
    assert bench.run("verify", model, "--expected", "a.safetensors").code == 1, "without the interventions the numbers are others"
    bench.fine("encode", model, "--input", "a.safetensors", *wanted, "-o", "b.safetensors")
    assert bench.bytes("a.safetensors") == bench.bytes("b.safetensors"), "encode of its own output gives other bytes"
    bench.fine("encode", DEMO, "--text", "a", "--text", "a new store", "--pair", "b", "--pair", "", "-o", "c.safetensors")
    assert any(read_tensors(bench.path("c.safetensors"))[0]["token_type_ids"].values)
    bench.fine("verify", DEMO, "--expected", "c.safetensors")


def through_link(name, *arguments):
    """What a link points to is replaced, not the link. One that leads nowhere is neither followed nor replaced."""
    def test(bench):
        if arguments[0] == "attention":
            needs_figures(bench)
        os.mkdir(bench.path("real"))
        os.symlink("real/" + name, bench.path(name))
        contains(bench.expect(4, *arguments, name).err, "symbolic link to a file that does not exist")
        assert os.readlink(bench.path(name)) == "real/" + name and os.listdir(bench.path("real")) == []
        bench.write("real/" + name, "old")
        bench.fine(*arguments, name)
        assert os.readlink(bench.path(name)) == "real/" + name and os.listdir(bench.path("real")) == [name]
        assert os.path.getsize(bench.path("real/" + name)) > 3 and bench.files() == ["real", name]
    return test


def test_suffixes_in_capitals(bench):
    """X.CSV is what x.csv is, whatever reads or writes it."""
    bench.fine("encode", TINY, "--ids", "1,7", "-o", "X.SAFETENSORS")
    folder = os.path.join(bench.golden, "24-v3-b3-ragged")
    shutil.copy(os.path.join(folder, "expected.safetensors"), bench.path("EXPECTED.SAFETENSORS"))
    bench.fine("verify", folder, "--expected", "EXPECTED.SAFETENSORS", "--allow-extra")
    bench.write("IN.JSON", '{"input_ids": [[1, 7]]}')
    bench.fine("encode", TINY, "--input", "IN.JSON", "-o", "x.safetensors")
    for suffix in ("csv", "md", "json", "tex"):
        for name in ("x." + suffix, "X." + suffix.upper()):
            bench.fine("verify", TINY, "-n", "3", "-o", name)
        assert bench.read("X." + suffix.upper()).splitlines()[0] == bench.read("x." + suffix).splitlines()[0], suffix


def test_untouched(bench):
    """A command that fails leaves what was there."""
    for name in ("x.safetensors", "x.json", "x.png"):
        bench.write(name, "precious")
    for arguments in (["encode", TINY, "--ids", "99", "-o", "x.safetensors"], ["bench", TINY, "--depth", "7", "-o", "x.json"],
                      ["attention", TINY, "--ids", "99", "-o", "x.png"], ["verify", TINY, "--ids", "99", "-o", "x.json"]):
        assert bench.run(*arguments).code == 2, arguments
    for name in bench.files():
        assert bench.read(name) == "precious", name
    assert len(bench.files()) == 3, bench.files()


def test_encode_position_ids(bench):
    """One id everywhere: what enters the first layer then depends on the position alone, and rows move with it. A row that is padded
    on the left counts columns, and is the row with such positions."""
    folder, ids = os.path.join(bench.golden, "04-v1-plain-posbias-types"), [7] * 12

    def rows(name, **keys):
        bench.write("in.json", json.dumps(keys))
        bench.fine("encode", folder, "--input", "in.json", "--hidden", "all", "-o", "o.safetensors")
        tensor = read_tensors(bench.path("o.safetensors"))[0][name]
        width = tensor.shape[2]
        return [tensor.values[at:at + width] for at in range(0, len(tensor.values), width)]

    first, last = "hidden_states.0", "hidden_states.2"
    plain = rows(first, input_ids=[ids])
    chosen = [5, 0, 11, 3, 3, 7, 1, 10, 2, 9, 4, 8]
    assert rows(first, input_ids=[ids], position_ids=[chosen]) == [plain[p] for p in chosen]
    assert all(a != b for k, a in enumerate(plain) for b in plain[:k]), "positions do not show"
    moved = rows(last, input_ids=[ids[:9]], position_ids=[list(range(3, 12))])
    assert moved == rows(last, input_ids=[[0] * 3 + ids[3:]], attention_mask=[[0] * 3 + [1] * 9])[3:] and moved != rows(last, input_ids=[ids[:9]])


# ---------------------------------------------------------------------------------------------------------- tokenize

def test_tokenize_texts(bench):
    model = os.path.join(bench.golden, SPM)
    texts = ["a new store opened beside the new mall", "", "-x", " two  spaces ", "naïve café 東京 🙂"]
    listed = [word for text in texts for word in ("--text", text)]
    bench.expect_text("tokenize-spm", bench.fine("tokenize", model, *listed).out)
    bench.expect_text("tokenize-spm-json", bench.fine("tokenize", model, "--json", *listed).out)
    bench.expect_text("tokenize-bpe", bench.fine("tokenize", os.path.join(bench.golden, "tokenizers", "bpe-v1"), *listed).out)
    lines = "\n".join(texts).encode()
    from_file = bench.fine("tokenize", model, "--json", "--file", "-", stdin=lines + b"\n").out
    assert from_file == bench.fine("tokenize", model, "--json", *listed).out
    assert bench.fine("tokenize", model, "--json", "-f", "-", stdin=lines.replace(b"\n", b"\r\n")).out == from_file, "CRLF, no newline at the end"
    bench.write("l.jsonl", "".join(json.dumps({"text": text}) + "\n" for text in texts))
    assert bench.fine("tokenize", model, "--json", "-f", "l.jsonl").out == from_file, "objects, one a line"
    bench.append("l.jsonl", "no object\n")
    check_message(bench.run("tokenize", model, "-f", "l.jsonl"), 3, ["l.jsonl, line 6", "JSON object", '"text"'])
    bench.fine("tokenize", model, "--json", "--out", "t.jsonl", *listed)
    assert bench.read("t.jsonl") == from_file


def test_tokenize_json(bench):
    model = os.path.join(bench.golden, SPM)
    text, pair = "a new 東京", "store"
    found = json.loads(bench.fine("tokenize", model, "--json", "--text", text, "--pair", pair).out)
    assert list(found) == ["ids", "tokens", "offsets", "byte_offsets", "type_ids"], list(found)
    assert len({len(v) for v in found.values()}) == 1
    assert found["offsets"][0] is None and found["byte_offsets"][-1] is None, "framing tokens have no place in the text"
    assert found["type_ids"][0] == 0 and found["type_ids"][-1] == 1
    for token, chars, octets, kind in zip(found["tokens"], found["offsets"], found["byte_offsets"], found["type_ids"]):
        if chars is None:
            continue
        source = pair if kind else text
        assert source[chars[0]:chars[1]].encode() == source.encode()[octets[0]:octets[1]], (token, chars, octets)
    assert len(json.loads(bench.fine("tokenize", model, "--json", "--text", "", "--pair", "").out)["ids"]) == 3, "an empty pair is a segment"
    assert bench.fine("tokenize", model, "--json", "--text=", "--pair=").out == bench.fine("tokenize", model, "--json", "--text", "", "--pair", "").out


def test_tokenize_notes(bench):
    model = os.path.join(bench.golden, SPM)
    result = bench.fine("tokenize", model, "--file", "-", stdin=b"caf\xe9 a\n")
    assert "U+FFFD in 1 place, the first at byte 3" in result.err, result.describe()
    result = bench.fine("tokenize", model, "--text", "a b c d e", "--max-tokens", "4")
    assert "cut to 4 tokens, 4 dropped" in result.err, result.describe()
    for quiet in ("-q", "--quiet"):
        assert bench.fine("tokenize", model, quiet, "--text", "a b c d e", "--max-tokens", "4").err == ""


# ------------------------------------------------------------------------------------------------------------- bench

QUICK = ["--reps", "2", "--min-time", "0", "--no-peak"]


def test_bench_json(bench):
    bench.fine("bench", TINY.replace("layers=1", "layers=2"), "-n", "4-8*2", "--depth", "1-2", "--threads", "1", "--isa", "scalar", *QUICK, "--breakdown", "--json", "-o", "b.json")
    found = bench.load("b.json")
    assert found["schema"] == "deberta-bench/1"
    missing = {"cpu", "tiers", "isa", "cores", "caches", "governor", "load", "compiler", "flags", "commit", "dirty"} - set(found["environment"])
    assert not missing, f"environment lacks {missing}"
    assert len(found["results"]) == 4
    for result in found["results"]:
        missing = {"model", "isa", "precision", "threads", "batch", "n", "layers", "attention", "position_cache", "repetitions", "samples_s", "min_s",
                   "median_s", "mad_s", "p95_s", "gflop", "gflops", "tokens_per_s", "peak_rss_bytes", "workspace_bytes", "breakdown",
                   "checksum"} - set(result)
        assert not missing, f"a result lacks {missing}"
        assert result["repetitions"] == len(result["samples_s"]) == 2 and result["min_s"] <= result["median_s"] <= result["p95_s"]
        assert result["isa"] == "scalar" and result["threads"] == 1
    assert {(r["n"], r["layers"]) for r in found["results"]} == {(4, 1), (4, 2), (8, 1), (8, 2)}


def test_bench_formats(bench):
    rows = bench.fine("bench", TINY, "-n", "4,8", *QUICK, "--format", "csv").out.strip().split("\n")
    assert len(rows) == 3 and rows[0].startswith("model,") and all(r.startswith('"synthetic:') for r in rows[1:]), rows
    table = [line for line in bench.fine("bench", TINY, "-n", "4", *QUICK, "--format", "md").out.split("\n") if line.startswith("|")]
    assert len(table) >= 3 and set(table[1]) <= set("|-: "), table
    same = {}
    for isa in ("scalar", "auto"):
        for threads in ("1", "2", "0"):
            line = bench.fine("bench", TINY, "-n", "7", "--isa", isa, "--threads", threads, *QUICK, "--format", "csv").out.strip().split("\n")[-1]
            same[line.rsplit(",", 1)[1]] = (isa, threads)
    assert len(same) == 1, f"checksums differ: {same}"


def test_bench_sweep_axes(bench):
    """Every axis accepts a list."""
    result = bench.fine("bench", TINY, "-n", "4", "--threads", "1,2", "--batch", "1,2", "--attention", "full,c2c", "--position-cache", "both",
                        "--mix", "3,5", *QUICK, "--json")
    seen = json.loads(result.out)["results"]
    assert {r["threads"] for r in seen} == {1, 2} and {r["batch"] for r in seen} >= {1, 2}, seen
    assert {r["attention"] for r in seen} == {"full", "c2c"} and len({r["position_cache"] for r in seen}) == 2


MARK = b"\xef\xbb\xbf"


def test_byte_order_marks(bench):
    """What editors put before UTF-8 is no part of a text and no damage to JSON."""
    def write(name, *parts):
        bench.write(name, b"".join(parts))
    source = os.path.join(bench.golden, "01-v1-both-n33")
    os.mkdir(bench.path("m"))
    shutil.copy(os.path.join(source, "model.safetensors"), bench.path("m"))
    write("m/config.json", MARK, bench.bytes(os.path.join(source, "config.json")))
    write("ids.json", MARK, b'{"input_ids": [[1, 2, 3]]}')
    bench.fine("encode", "m", "--input", "ids.json", "-o", "marked.safetensors")
    bench.fine("encode", source, "--ids", "1,2,3", "-o", "plain.safetensors")
    marked, plain = (read_tensors(bench.path(name))[0] for name in ("marked.safetensors", "plain.safetensors"))
    assert all(marked[name].values == plain[name].values for name in plain if name.startswith("hidden_states."))
    bench.fine("bench", TINY, "-n", "4", *QUICK, "--json", "-o", "plain.json")
    write("marked.json", MARK, bench.bytes("plain.json"))
    bench.fine("bench", "compare", "plain.json", "marked.json")
    write("broken.json", MARK[:2], b"{}")
    check_message(bench.run("bench", "compare", "plain.json", "broken.json"), 3, ["broken.json: line 1"])
    write("problems.txt", MARK, b"softmax columns=16\n")
    bench.fine("bench", "kernel", "problems.txt", "--isa", "scalar", "--reps", "1")
    model = os.path.join(bench.golden, SPM)  # the rest needs tokenizers
    expected = bench.fine("tokenize", model, "--json", "--text", "a store", "--text", "b").out
    write("t.txt", MARK, b"a store\nb\n")
    write("t.jsonl", MARK, b'{"text": "a store"}\n{"text": "b"}\n')
    write("only.txt", MARK)
    assert bench.fine("tokenize", model, "--json", "-f", "t.txt").out == bench.fine("tokenize", model, "--json", "-f", "t.jsonl").out == expected
    check_message(bench.run("tokenize", model, "-f", "only.txt"), 3, ["only.txt has no lines"])
    marks = bench.fine("tokenize", model, "--json", "-f", "-", stdin=b"a\n" + MARK + b"b\n").out, bench.fine("tokenize", model, "--json", "-f", "-", stdin=b"a\nb\n").out
    assert json.loads(marks[0].split("\n")[1])["byte_offsets"] != json.loads(marks[1].split("\n")[1])["byte_offsets"], "in the middle it is text"


def test_bench_compare(bench):
    for name in ("a.json", "b.json"):
        bench.fine("bench", TINY, "-n", "4,8", *QUICK, "--json", "-o", name)
    bench.write("copy.json", bench.read("a.json"))
    for other in (["a.json"], ["copy.json"], ["b.json", "with", "./a.json"]):
        contains(bench.fine("bench", "compare", "a.json", *other).err, f"note: a.json and {other[-1]} hold the same run")
    assert "the same run" not in bench.fine("bench", "compare", "a.json", "b.json").err
    single = ["bench", TINY, "-n", "4", "--reps", "1", "--min-time", "0", "--no-peak", "-t", "1"]
    bench.fine(*single, "--json", "-o", "1.json")
    assert bench.load("1.json")["results"][0]["mad_s"] is None, "one sample has no scatter"
    assert json.loads(bench.fine("bench", "compare", "1.json", "1.json", "--json").out)["points"][0]["a_mad_ms"] is None
    one_each = json.loads(bench.fine("bench", "compare", "a.json", "a.json", "--json").out)["points"]
    assert [(row["verdict"], row["ratio"], row["p"]) for row in one_each] == [("not decided: one run each", 1, None)] * 2, one_each
    four = ["a.json"] * 4  # as if four runs had agreed to the nanosecond
    assert {row["verdict"] for row in json.loads(bench.fine("bench", "compare", *four, "with", *four, "--json").out)["points"]} == {"no difference shown"}
    slower = bench.load("a.json")
    for result in slower["results"]:
        result["samples_s"] = [2 * s for s in result["samples_s"]]
    slower["results"] += [dict(result, threads=result["threads"] + 1) for result in slower["results"]]
    slower["environment"]["notes"] = ["the cat slept on it"]
    bench.write("s.json", json.dumps(slower))
    text = bench.fine("bench", "compare", *four, "with", *["s.json"] * 4).out
    assert text.count("not quiet: s.json: the cat slept on it\n") == 4 and text.count("  slower\n") == 2, text
    by = json.loads(bench.fine("bench", "compare", "s.json", "--by", "threads", "--json").out)["points"]
    assert [row["ratio"] for row in by] == [1, 1] and all(" / " in row["threads"] for row in by), by
    deeper = dict(slower, results=[dict(result, layers=layers) for result in slower["results"][:1] for layers in (1, 2, 5)])
    bench.write("depths.json", json.dumps(deeper))
    by = json.loads(bench.fine("bench", "compare", "depths.json", "--by", "depth", "--json").out)["points"]
    assert [row["layers"] for row in by] == ["1 / 2", "1 / 5"], by
    other = bench.load("b.json")
    other["environment"]["cpu"] = "another processor"
    bench.write("b.json", json.dumps(other))
    result = bench.run("bench", "compare", "a.json", "b.json")
    check_message(result, 3, ["another processor", "--any-environment"])
    text = bench.fine("bench", "compare", "a.json", "b.json", "--any-environment").out
    bench.fine("bench", "compare", "a.json", "b.json", "--any-environment", "-o", "compared.txt")
    assert bench.read("compared.txt") == text


def test_bench_kernel(bench):
    lines = [line for line in bench.read(os.path.join(bench.root, "bench", "shapes", "base.txt")).splitlines() if line and not line.startswith("#")]
    bench.write("one.txt", lines[0])
    result = bench.fine("bench", "kernel", "one.txt", "--isa", "scalar", "--reps", "1")
    assert lines[0].split()[0] in result.out, result.describe()
    found = json.loads(bench.fine("bench", "kernel", "one.txt", "--isa", "scalar", "--reps", "1", "--json").out)
    assert found["measurements"][0]["mad_us"] is None, "one sample has no scatter"
    assert found["schema"] == "deberta-bench-kernel/1" and len(found["measurements"]) == 1, found
    measured = found["measurements"][0]
    assert measured["problem"] == lines[0].strip() and measured["isa"] == "scalar" and measured["speed_up"] == 1 and measured["ulp"] is None
    assert measured["min_us"] <= measured["median_us"] and measured["gflops"] > 0, measured
    latex = bench.fine("bench", "kernel", "one.txt", "--isa", "scalar", "--reps", "1", "--format", "latex").out
    assert "\\toprule" in latex and "median us" in latex, latex


def test_bench_cold(bench):
    """Cold caches are noted in the result, and change no bit of it."""
    warm, cold = (json.loads(bench.fine("bench", TINY, "-n", "7", *QUICK, *extra, "--json").out)["results"] for extra in ((), ("--cold",)))
    assert [r["cold"] for r in warm + cold] == [False, True] and warm[0]["checksum"] == cold[0]["checksum"]
    bench.write("one.txt", "gemm rows=4 depth=64 columns=64\n")
    assert "gemm rows=4" in bench.fine("bench", "kernel", "one.txt", "--isa", "scalar", "--reps", "1", "--cold").out


def bound_workers(pid):
    """How many processors each worker of a process and of its children may use."""
    found = []
    for process in [pid] + children_of(pid):
        try:
            for task in os.listdir(f"/proc/{process}/task"):
                with open(f"/proc/{process}/task/{task}/comm", encoding="utf-8") as file:
                    if file.read().startswith("worker-"):
                        found.append(len(os.sched_getaffinity(int(task))))
        except OSError:  # it ended meanwhile
            pass
    return found


def test_bench_pin(bench):
    """With --pin a worker has one processor, without it all of them."""
    allowed = len(os.sched_getaffinity(0))
    if allowed < 2:
        raise SkipTest("one processor")
    for extra, processors in ((["--pin"], 1), ([], allowed)):
        process = bench.start("bench", TINY, "-n", "64", "--threads", "2", "--reps", "10000", "--min-time", "30", "--no-peak", *extra,
                              stdout=subprocess.DEVNULL)
        try:
            # a worker may go where it likes only after it has begun somewhere
            assert wait_until(lambda: bound_workers(process.pid) == [processors]), (extra, bound_workers(process.pid), process.poll())
        finally:
            process.terminate()
            process.wait()
    same = {json.loads(bench.fine("bench", TINY, "-n", "7", "--threads", "2", *QUICK, *extra, "--json").out)["results"][0]["checksum"]
            for extra in ((), ("--pin",))}
    assert len(same) == 1, same


def test_bench_machine(bench):
    """Rates of the tiers that there are, for the threads asked for; the machine is measured, not a model."""
    available = [tier["name"] for tier in json.loads(bench.fine("info", "--json").out)["tiers"] if tier["available"]]
    bench.fine("bench", "machine", "--threads", "1", "-o", "m.json")
    found = bench.load("m.json")
    assert found["schema"] == "deberta-bench/1" and found["results"] == []
    assert found["environment"]["command"] == "deberta bench machine --threads 1", found["environment"]["command"]
    (roof,) = found["environment"]["roofs"]
    assert roof["threads"] == 1 and roof["read_gbs"] > 0 and roof["triad_gbs"] > 0, roof
    assert all(roof[tier + "_gflops"] > 0 for tier in available), roof
    assert all(roof[tier + "_gops"] > 0 for tier in available if tier != "scalar"), roof
    assert "scalar_gops" not in roof, roof


def test_bench_peak_of_integers(bench):
    """Shares of results in low precision are of the peak of the tier's products of bytes; of three of them in int16."""
    for precision, products in (("float32", None), ("int16", 3), ("int8", 1)):
        found = bench.json("bench", TINY, "-n", "7", "--threads", "1", "--reps", "2", "--min-time", "0", "--precision", precision)
        (roof,), (row,), best = found["environment"]["roofs"], found["results"], found["environment"]["isa"]
        peak = roof.get(best + "_gops", 0) / products if products else roof[best + "_gflops"]
        if peak:
            assert abs(row["peak_fraction"] * peak / row["gflops"] - 1) < 1e-6, (precision, row, peak)
        else:
            assert row["peak_fraction"] is None, row


def test_document_lengths(bench):
    """bench/shapes/document_lengths.txt, read as tools/peers.py reads it, is what its head says."""
    sys.path.insert(0, os.path.join(bench.root, "tools"))
    from rivals.shapes import DOCUMENTS, read_lengths
    lengths = sorted(read_lengths(DOCUMENTS))
    assert len(lengths) == 512 and (lengths[0], lengths[-1]) == (16, 512), lengths
    assert lengths[255] <= 53 <= lengths[256] and round(sum(lengths) / 512) == 80, (lengths[255:257], sum(lengths) / 512)


@contextlib.contextmanager
def terminal():
    """The end for a program's stderr, and a function that takes what it has said there."""
    ours, theirs = pty.openpty()

    def said():
        os.set_blocking(ours, False)
        try:
            return os.read(ours, 1 << 16)
        except BlockingIOError:
            return b""

    try:
        yield theirs, said
    finally:
        os.close(theirs)
        os.close(ours)


def test_progress_on_a_terminal(bench):
    """How much is left, after a second. A point is measured for 1.5 s, however fast the machine: only above 10,000 encodes in
    that time would it end earlier, and one of these takes milliseconds."""
    with terminal() as (stderr, said):
        bench.start("bench", "synthetic:v3-xsmall,vocab=50,layers=4", "-n", "256", "--reps", "3", "--min-time", "1.5", "--no-peak", "-t", "1",
                    stdout=subprocess.DEVNULL, stderr=stderr).wait(timeout=120)
        found = said()
    assert b"s left" in found and b"time: n = 256, batch 1, 4 layers" in found, found


def test_progress_that_is_not_wanted(bench):
    """The text arrives a second late, so that progress is due for certain; it is shown unless one asks for none."""
    def opened_pipe(name, process):
        ends = []

        def has_reader():
            with contextlib.suppress(OSError):  # nobody reads yet
                ends.append(os.open(bench.path(name), os.O_WRONLY | os.O_NONBLOCK))
            return ends or process.poll() is not None
        assert wait_until(has_reader) and ends, name
        return ends[0]

    with contextlib.ExitStack() as stack:
        begun = []
        for extra, shown in (([], True), (["--progress", "never"], False), (["--quiet"], False)):
            os.mkfifo(bench.path(name := f"texts{len(begun)}"))
            stderr, said = stack.enter_context(terminal())
            process = bench.start("encode", DEMO, "--file", name, "-o", name + ".jsonl", *extra, stderr=stderr)
            stack.enter_context(ending(process))
            begun.append((process, opened_pipe(name, process), extra, shown, said))
        time.sleep(1.1)  # the programs opened their pipes when their clocks ran already
        for process, pipe, extra, shown, said in begun:
            os.write(pipe, b"a text\n")
            os.close(pipe)
            assert process.wait(timeout=60) == 0, said()
            found = said()
            assert (b"\r\033[Kencode  " in found) == shown, (extra, found)


# ----------------------------------------------------------------------------------------------------------- figures

def test_attention_figures(bench):
    needs_figures(bench)
    same = ["attention", TINY, "--ids", "1,7,3,11,5,2", "--heads", "all"]
    bench.fine(*same, "-o", "a.png", "-o", "a.svg", "-o", "a.pdf")
    bench.fine(*same, "-o", "b.png", "-o", "b.svg", "-o", "b.pdf")
    for suffix in ("png", "svg", "pdf"):
        first, second = bench.bytes(f"a.{suffix}"), bench.bytes(f"b.{suffix}")
        assert first == second, f"{suffix}: the same command gives other bytes"
        assert first.startswith({"png": b"\x89PNG", "svg": b"<?xml", "pdf": b"%PDF-1."}[suffix])
    picture = Picture.read(bench.path("a.png"))
    assert abs(picture.width - 174 / 25.4 * 300) < 3 and picture.height > 100, (picture.width, picture.height)
    assert picture.dots_per_metre == (11811, 11811), picture.dots_per_metre
    assert {"Software", "Model", "Command"} <= set(picture.texts), picture.texts
    assert "--heads all" in picture.texts["Command"] and "a.png" not in picture.texts["Command"]
    bench.fine(*same, "--width-mm", "85", "--dpi", "100", "-o", "c.png")
    assert abs(Picture.read(bench.path("c.png")).width - 85 / 25.4 * 100) < 3
    assert len(bench.files()) == 7, bench.files()


def test_fonts(bench):
    """The type that was asked for is the one of all labels."""
    needs_figures(bench)
    bench.fine("bench", TINY, "-n", "4,8", *QUICK, "--json", "-o", "b.json")
    for font in ("DejaVu Serif", "DejaVu Sans Mono"):
        bench.fine("attention", TINY, "--ids", "1,7,3", "--font", font, "-o", "a.svg")
        bench.fine("bench", "plot", "b.json", "--font", font, "-o", "p.svg")
        for name in ("a.svg", "p.svg"):
            found = set(re.findall('font-family="([^"]*)"', bench.read(name)))
            assert found == {font}, (name, found)


def test_bench_plot(bench):
    needs_figures(bench)
    bench.fine("bench", TINY, "-n", "4-16*2", "--isa", "all", *QUICK, "--json", "-o", "b.json")
    bench.fine("bench", "plot", "b.json", "--title", "a sweep", "-o", "p.png", "-o", "p.svg")
    picture = Picture.read(bench.path("p.png"))
    assert picture.width > 500 and picture.height > 200, (picture.width, picture.height)
    bench.fine("bench", TINY, "-n", "4", *QUICK, "--json", "-o", "one.json")
    check_message(bench.run("bench", "plot", "one.json", "-o", "one.png"), 2, ["plot", "no curve"])
    assert not os.path.exists(bench.path("one.png"))


def page_json(page, name):
    """One of the documents that the page holds."""
    return json.loads(re.search(rf'<script type="application/json" id="json-{name}">(.*?)</script>', page).group(1))


def test_whole_report(bench):
    bench.fine("report", TINY.replace("layers=1", "layers=2"), "-n", "4-8*2", "--reps", "1", "--isa", "scalar", "--threads", "1", "--with", "verify", "-o", "r")
    page = open(bench.path("r/index.html"), encoding="utf-8").read()
    assert {(r["isa"], r["threads"]) for r in bench.load("r/lengths.json")["results"]} == {("scalar", 1)}
    for name in ("info", "verify", "receptive-field", "layers"):
        assert page_json(page, name) == bench.load(f"r/{name}.json"), name
    about = page_json(page, "page")
    commands = open(bench.path("r/commands.sh"), encoding="utf-8").read()
    for step in about["steps"]:
        assert step["command"] + "\n" in commands, step
    assert {step["command"].split()[1] for step in about["steps"]} >= {"info", "encode", "verify", "receptive-field", "bench"}
    for file in about["files"]:
        assert os.path.getsize(bench.path("r/" + file["name"])) == file["bytes"], file
    assert "{{" not in page and not re.search(r"(src|href)=.?https?:|@import|url\(", page), "the page must not load anything"
    assert not [f for f in os.listdir(bench.path("r")) if f.startswith(".deberta-")]


def test_report_sweep_layers(bench):
    bench.fine("report", TINY.replace("layers=1", "layers=3"), "--depth", "1,3", "-n", "4", "--reps", "1", "--isa", "scalar",
               "--skip", "verify,receptive-field", "-o", "new/folder/r/")  # folders on the way are made
    assert [r["layers"] for r in bench.load("new/folder/r/layers.json")["results"]] == [1, 3]


def test_report_pieces(bench):
    """A piece inside a word does not look like a word in the page, and a piece that the model does not know is grey, as in figures."""
    bench.fine("report", DEMO, "--text", "The committee \u00fc", "--skip", "latency,verify,receptive-field", "-o", "r")
    text = page_json(bench.read("r/index.html"), "page")["texts"][0]
    assert text["tokens"] == ["[CLS]", "The", "commit", "\u00b7t", "\u00b7ee", "\u2423", "\u00fc", "[SEP]"], text["tokens"]
    assert text["special"] == [1, 0, 0, 0, 0, 0, 1, 1], text["special"]


def test_report_texts(bench):
    """Texts that would break out of a page, and what is left out."""
    evil = "</script><script>alert(1)</script><!-- & \""
    bench.fine("report", DEMO, "--text", evil, "--text", "b", "--skip", "latency,verify,receptive-field", "-o", "r")
    page = open(bench.path("r/index.html"), encoding="utf-8").read()
    assert page.count("<script>") == 1 and "<script>alert" not in page and "<!-- &" not in page, "a text must not become part of the page"
    texts = page_json(page, "page")["texts"]
    assert [text["title"] for text in texts] == [evil, "b"] and texts[1]["exact"] and texts[1]["n"] == 3
    assert set(os.listdir(bench.path("r"))) >= {"commands.sh", "index.html", "info.json", "text0.safetensors", "text1.safetensors"}
    again = subprocess.run(["sh", "r/commands.sh"], cwd=bench.folder, env=dict(os.environ, DEBERTA=bench.program), capture_output=True, text=True)
    assert again.returncode == 0, again.stderr
    assert not os.path.exists(bench.path("r/verify.json"))
    bench.write("r/verify.json", '{"checks": 77}')
    bench.fine("report", TINY, "--skip", "latency,verify,receptive-field", "-o", "r")
    page = open(bench.path("r/index.html"), encoding="utf-8").read()
    assert "json-verify" not in page and "verify.json" not in page.split('id="json-page"')[1], "an older run's results are not this one's"


def test_report_ablated(bench):
    """An intervention reaches texts, figures and verification, and says so in the commands of the page."""
    bench.fine("report", TINY, "--ids", "1,7,3,5", "--with", "verify", "--ablate", "c2p@0:1", "--ablate", "p2c@all", "-o", "r")
    tensors = read_tensors(bench.path("r/text0.safetensors"))[0]
    assert any(tensors["attn.0.c2p"].values) and not any(tensors["attn.0.p2c"].values)
    about = page_json(open(bench.path("r/index.html"), encoding="utf-8").read(), "page")
    ablated = {step["command"].split()[1] for step in about["steps"] if "c2p@0:1,p2c@all" in step["command"]}
    assert ablated >= {"encode", "verify"} and not ablated & {"info", "receptive-field"}, ablated


# ------------------------------------------------------------------------------------------------------ interventions

def matrices(tensors, layer, term):
    """[head][query][key] of the one sequence."""
    tensor = tensors[f"attn.{layer}.{term}"]
    _, heads, n, _ = tensor.shape
    return [[list(tensor.values[(head * n + i) * n:(head * n + i + 1) * n]) for i in range(n)] for head in range(heads)]


def near(a, b):
    return all(abs(x - y) < 3e-6 for row_a, row_b in zip(a, b) for x, y in zip(row_a, row_b))


def test_ablate(bench):
    """Layer 0 of what is ablated follows from layer 0 of what is not; only the chosen heads change."""
    ids = ("--ids", ",".join(str(k * 7 % 50) for k in range(23)), "--component-layers", "all")
    model = TINY.replace("layers=1", "layers=2")

    def components(*extra):
        bench.fine("encode", model, *ids, "-o", "o.safetensors", *extra)
        return read_tensors(bench.path("o.safetensors"))[0]

    plain = components()
    n = 23
    for term in ("c2c", "c2p", "p2c"):
        zero, mean = components("--ablate", term + "@0:1"), components("--ablate", term + "=mean@0:1")
        assert components("--ablate", term + "=zero@0:1")["hidden_states.2"].values == zero["hidden_states.2"].values
        for found in (zero, mean):
            for other in ("c2c", "c2p", "p2c"):
                before, after = matrices(plain, 0, other), matrices(found, 0, other)
                assert before[0] == after[0] and (before[1] == after[1]) == (other != term), (term, other)
            assert matrices(plain, 1, "c2c")[0] != matrices(found, 1, "c2c")[0]
        assert all(value == 0 for row in matrices(zero, 0, term)[1] for value in row)
        before, after = matrices(plain, 0, term)[1], matrices(mean, 0, term)[1]
        if term == "c2c":  # the mean query: every row is the mean row
            assert near(after, [[sum(row[j] for row in before) / n for j in range(n)]] * n)
        else:  # a mean vector knows the distance only
            assert near(after, [[after[0][j - i] if j >= i else after[i - j][0] for j in range(n)] for i in range(n)])
    last = components("--ablate", "c2c@all,c2p@all", "--ablate", "p2c@all")
    assert all(value == 0 for layer in (0, 1) for head in matrices(last, layer, "logits") for row in head for value in row)


# -------------------------------------------------------------------------------------------------------------- names

def test_names_that_are_not_utf8(bench):
    """Folders and files may have any bytes for a name; JSON has U+FFFD in their place, and all else that it always has."""
    model, shown = os.fsdecode(b"caf\xe9"), "caf\ufffd"
    shutil.copytree(os.path.join(bench.golden, "16-v3-b256-n33"), bench.path(model))
    assert json.loads(bench.fine("encode", TINY, "--ids", "1,2", "--json", "-o", os.fsdecode(b"\xe9.safetensors")).out)["out"] == "\ufffd.safetensors"
    assert json.loads(bench.fine("info", model, "--json").out)["model"]["name"] == shown
    found = json.loads(bench.fine("receptive-field", model, "--json").out)
    assert found["config"]["model"] == shown and found["verdicts"]
    swept = json.loads(bench.fine("bench", model, "-n", "4", "--reps", "1", "--min-time", "0", "--no-peak", "--json").out)
    assert swept["results"][0]["model"] == shown and shown in swept["environment"]["command"]


def tests(settings):
    for case in ENCODED:
        yield "encode/" + case, compare_case(case)
    yield "encode/scalar", compare_case("21-v2-conv-tanh-g2", ("--isa", "scalar", "--threads", "1"))
    yield "link/tensors", through_link("x.safetensors", "encode", TINY, "--ids", "1", "-o")
    yield "link/text", through_link("x.json", "info", "--json", "-o")
    yield "link/figure", through_link("x.png", "attention", TINY, "--ids", "1,2", "-o")
    yield "link/numbers", through_link("x.csv", "attention", TINY, "--ids", "1,2", "--numbers")


def test_report_folders(bench):
    """A report goes into a new folder or that of a report, whose old files go; somebody else's folder is left alone."""
    model = "synthetic:v3-xsmall,layers=1,vocab=60,hidden=64,heads=1,intermediate=64"
    os.mkdir(bench.path("mine"))
    bench.write("mine/index.html", "mine")
    refused = bench.run("report", model, "-q", "-o", "mine")
    assert refused.code == 4, refused.describe()
    contains(refused.err, "mine is not empty, it holds index.html; expected a new folder, or that of a report")
    assert bench.read("mine/index.html") == "mine" and os.listdir(bench.path("mine")) == ["index.html"]
    bench.fine("report", model, "-q", "-o", "page", "--with", "verify", *[word for k in range(12) for word in ("--ids", f"1,{k + 3},2")])
    old = {"verify.json", "receptive-field.json", "text1.safetensors", "text11.safetensors"}
    assert old <= set(os.listdir(bench.path("page")))
    mine = {"notes.txt", "verify.txt", "text1.md", "text12.png", "layers.json"}  # no report wrote them, whatever they are called
    for name in mine:
        bench.write(f"page/{name}", "mine")
    for name in os.listdir(bench.path("page")):
        os.utime(bench.path(f"page/{name}"), (4e9, 4e9))  # a copied folder, or a clock that was wrong
    bench.fine("report", model, "-q", "-o", "page", "--skip", "receptive-field", "--ids", "1,3,2")
    left = set(os.listdir(bench.path("page")))
    assert {"index.html", "commands.sh", "text0.safetensors"} | mine <= left and not left & old, left
    assert all(bench.read(f"page/{name}") == "mine" for name in mine)
