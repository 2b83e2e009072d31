"""`verify`: JSON key by key, formats, what a file of expected numbers must hold, long texts, and that it notices planted faults.

A sample (DEBERTA_TEST_QUICK) takes of tiers, long texts and planted faults those of the day; DEBERTA_TEST_DAY has those of another one again.
SPDX-License-Identifier: MIT
"""
import json
import os
import re
import subprocess

from helpers import SAMPLED, TINY, check_message, needs_figures, read_tensors, sample, write_tensors


def test_verify_json(bench):
    found = json.loads(bench.fine("verify", TINY, "-n", "5", "--isa", "scalar", "--json").out)
    assert set(found) == {"schema", "checks", "failures", "tiers", "results"} and found["schema"] == "deberta-verify/1"
    assert found["checks"] == len(found["results"]) > 0 and found["failures"] == 0
    for row in found["results"]:
        assert {"subject", "isa", "values", "differing", "passed", "limit"} <= set(row), row
        assert row["isa"] == "scalar" and row["passed"] is True and row["differing"] == 0


def test_verify_everything(bench):
    """Without a model: every kernel, on inputs chosen to hurt too, every way of computing, and which kernels ran; a sample takes the tier of the day."""
    here = [tier["name"] for tier in bench.json("info")["tiers"] if tier["available"]]
    found = bench.json("verify", *sample([("--isa", tier) for tier in here], 1)[0] if SAMPLED else ())
    rows = {(row["subject"], row["isa"]): row for row in found["results"]}
    assert len(rows) == found["checks"] == len(found["results"])
    ran = [tier for tier in found["tiers"] if tier["verified"]]
    assert {tier["isa"] for tier in ran} | {"scalar"} == {isa for _, isa in rows}
    assert len(ran) == 1 if SAMPLED else {tier["isa"] for tier in ran} == set(here) and all(tier["missing"] for tier in found["tiers"] if not tier["verified"])
    for tier in ran:
        assert tier["kernels"] and all(tier["kernels"].values()), tier
        for kernel in tier["kernels"]:
            for suffix in ("", " huge", " ties", " subnormal", " constant"):
                assert (kernel + suffix, tier["isa"]) in rows, kernel + suffix
        for model in ("v1", "v2", "v3", "edges", "ties"):
            for way in ("1 thread", "2 threads", "3 threads", "in a batch", "padding after it", "while observed", "layer 0 p2c"):
                if (way, tier["isa"]) == ("1 thread", "scalar"):  # what the others are compared with
                    assert (f"{model} {way}", "scalar") not in rows
                    continue
                assert rows[f"{model} {way}", tier["isa"]]["differing"] == 0, (model, way)
    row = rows["v3 layer 2 probs", "scalar"]
    assert row["quantity"] == "probs" and row["layer"] == 2 and 0 < row["median"] <= row["p999"] <= row["worst"] <= row["limit"]
    assert 0 < row["p999_ulp"] <= row["worst_ulp"] and "expected" in row["where"]


def test_verify_formats(bench):
    plain = bench.fine("verify", TINY, "-n", "5").out
    assert "worst ULP" in plain and "p99.9 of hidden states by layer" in plain and "0 failed" in plain, plain
    rows = [line for line in bench.fine("verify", TINY, "-n", "5", "--format", "csv").out.splitlines()]
    assert rows[0].startswith("what,isa,values") and all(line.count(",") >= 9 for line in rows), rows
    assert "\n| what | isa |" in bench.fine("verify", TINY, "-n", "5", "--format", "md").out
    assert bench.fine("verify", TINY, "-n", "5", "--format", "latex", "-o", "errors.tex").out == ""
    text = bench.read("errors.tex")
    assert text == bench.fine("verify", TINY, "-n", "5", "--format", "latex").out
    assert "\\toprule" in text and "\\bottomrule" in text and text.count("\\\\\n") == len(rows), text


def test_verify_chart(bench):
    needs_figures(bench)
    text = bench.fine("verify", TINY, "-n", "5", "-o", "errors.png", "-o", "errors.svg").out
    assert "0 failed" in text and bench.files() == ["errors.png", "errors.svg"]
    drawn = bench.read("errors.svg")
    assert "<svg" in drawn and "deberta verify" in drawn


def verify_against(case):
    def test(bench):
        folder = os.path.join(bench.golden, case)
        good = os.path.join(folder, "expected.safetensors")
        extra = ["--allow-extra"] if any(name.startswith(("zero_fill.", "emd.", "ms_clamp.")) for name in read_tensors(good)[0]) else []
        assert "bits differ" not in bench.fine("verify", folder, "--expected", good, *extra).out
        assert all("differing" not in row for row in json.loads(bench.fine("verify", folder, "--expected", good, *extra, "--json").out)["results"])
        tensors, _ = read_tensors(good)
        real = [k for k, v in enumerate(tensors["attention_mask"].values) if v]
        name = max(n for n in tensors if n.startswith("hidden_states."))
        tensors[name].values[real[-1] * tensors[name].shape[2] + 1] += 1e-3
        write_tensors(bench.path("changed.safetensors"), tensors)
        result = bench.run("verify", folder, "--expected", "changed.safetensors", *extra)
        assert result.code == 1 and "FAILED" in result.out and name in result.out and "repeat: deberta verify" in result.err, result.describe()
        only = {k: v for k, v in tensors.items() if k in ("input_ids", "attention_mask")}
        write_tensors(bench.path("nothing.safetensors"), only)
        check_message(bench.run("verify", folder, "--expected", "nothing.safetensors"), 3, ["nothing.safetensors", "hidden_states"])
    return test


def test_all_is_compared(bench):
    """A tensor of a type or a name that cannot be compared is refused by name: passing over it would look like agreement."""
    folder = os.path.join(bench.golden, "01-v1-both-n33")
    good, _ = read_tensors(os.path.join(folder, "expected.safetensors"))

    def verify(tensors, *options):
        write_tensors(bench.path("x.safetensors"), tensors)
        return bench.run("verify", folder, "--expected", "x.safetensors", *options)

    everything = verify(good)
    assert everything.code == 0, everything.describe()
    kinds = {"I64": "q", "I32": "i", "I16": "h", "I8": "b", "U8": "B", "BOOL": "B", "U16": "H", "U32": "I", "U64": "Q", "F8_E4M3": "B", "C64": "d"}
    for name in ("hidden_states.1", "attn.0.c2c"):
        for kind, code in kinds.items():
            zeros = type(good[name].values)(code, [0] * len(good[name].values))
            for extra in ([], ["--allow-extra"]):
                check_message(verify({**good, name: type(good[name])(kind, good[name].shape, zeros)}, *extra), 3,
                              ["x.safetensors: 1 of its tensors cannot be compared", f"{name} ({kind})", "expected F32"])
        other = {name + "s" if one == name else one: tensor for one, tensor in good.items()}
        check_message(verify(other), 3, ["x.safetensors: 1 of its tensors are none", f"{name}s (F64)", "--allow-extra"])
        assert verify(other, "--allow-extra").code == 0
        assert verify({one: tensor for one, tensor in good.items() if one in (name, "input_ids", "attention_mask")}).code == 0


def test_own_results_agree(bench):
    """What encode writes with its input beside it is a file that verify --expected accepts."""
    folder = os.path.join(bench.golden, "21-v2-conv-tanh-g2")
    bench.fine("encode", folder, "--input", os.path.join(folder, "expected.safetensors"), "--hidden", "all", "--component-layers", "all", "-o", "o.safetensors")
    tensors, _ = read_tensors(bench.path("o.safetensors"))
    expected, _ = read_tensors(os.path.join(folder, "expected.safetensors"))
    tensors.update({k: expected[k] for k in ("input_ids", "attention_mask", "token_type_ids") if k in expected})
    write_tensors(bench.path("both.safetensors"), tensors)
    bench.fine("verify", folder, "--expected", "both.safetensors")


# Buckets that skip rows of the table, so that a block of queries reaches more rows than distances; and a text that needs more than a
# chunk of keys far away, where one of the two position terms is missing.
LONG_TEXTS = {"steps-of-several-rows": ("buckets=512,distance=258", 600), "far-without-p2c": ("terms=c2p", 800),
              "far-without-c2p": ("terms=p2c", 800), "meaningless-buckets": ("buckets=512,distance=257", 300)}


def verify_long(settings, length):
    def test(bench):
        ids = ",".join(str(1 + k % 96) for k in range(length))
        for reference in ("microsoft", "hf"):
            bench.fine("verify", "synthetic:v3-base,layers=1,hidden=64,heads=2,intermediate=64,vocab=97," + settings, "--ids", ids, "--reference", reference)
    return test


def mutation_names(settings):
    lines = subprocess.run([settings.program, "verify", "--mutate", "list"], capture_output=True, text=True).stdout.splitlines()
    return [line.split(" ", 1)[0] for line in lines]


def test_mutation_list(bench):
    text = bench.fine("verify", "--mutate", "list").out
    assert not bench.fine("verify", "--mutate", "list", "-o", "list.txt").out
    listed = json.loads(bench.fine("verify", "--mutate", "list", "--json").out)
    assert "".join(f"{m['name']} {m['description']}\n" for m in listed) == text
    assert bench.read("list.txt") == text
    assert len(text.splitlines()) >= 10 and all(len(line.split(" ", 1)) == 2 for line in text.splitlines()), text
    bench.expect_text("mutations", text)


def mutation(name):
    def test(bench):
        result = bench.run("verify", "--mutate", name)
        assert result.code == 1 and result.out.startswith(f"{name}: caught"), result.describe()
    return test


def test_mutation_as_json(bench):
    result = bench.run("verify", "--mutate", "p2c_ji", "-o", "m.json")
    assert result.code == 1 and not result.out, result.describe()
    found = bench.load("m.json")
    assert found["mutation"] == "p2c_ji" and found["caught"] is True and 0 < found["failures"] <= found["checks"], found


def test_mutation_on_a_tier(bench):
    """--isa names the tier that computes with the fault; scalar is compared with float64 alone, another one with scalar as well."""
    found = [json.loads(bench.run("verify", "--mutate", "p2c_ji", "--json", *words).out) for words in (["--isa", "scalar"], [], ["--isa", "auto"])]
    assert all(one["caught"] for one in found) and found[1] == found[2], found
    fewer = found[0]["checks"] < found[1]["checks"]
    assert fewer == (re.search(r"^  (?!scalar)\S+ +available$", bench.fine("info").out, re.M) is not None), found


def tests(settings):
    for case in ("01-v1-both-n33", "09-v1-relu-seqcls", "24-v3-b3-ragged", "33-v3-mlm-emd"):
        yield "against/" + case, verify_against(case)
    for name, (shape, length) in sample(LONG_TEXTS.items(), 1):
        yield "long/" + name, verify_long(shape, length)
    for name in sample(mutation_names(settings), 4):
        yield "mutate/" + name, mutation(name)
