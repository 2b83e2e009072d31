"""`deberta receptive-field` as a user calls it: the JSON contract, numbers computed here from the definition, wrong usage.

SPDX-License-Identifier: MIT
"""
import json
import math
import os
import re

from helpers import DEMO, check, contains, equal, has_figures

V1, V3 = (512, 0, 512, True), (256, 256, 512, True)  # span, buckets, maximum, whether distances are clamped
SMALL = "synthetic:v3-base,layers=2,hidden=64,heads=2,intermediate=64,vocab=97,buckets=32,distance=80"


def study(bench, *arguments):
    return bench.json("receptive-field", *arguments)


def row(r, span, buckets, maximum, clamp):
    """The definition, once more."""
    if buckets:
        size, middle = abs(r), buckets // 2
        if clamp:
            size = min(size, maximum - 1)
        if size > middle:
            size = math.ceil(math.log(size / middle) / math.log((maximum - 1) / middle) * (middle - 1)) + middle
        r = size if r > 0 else -size
    return min(max(r + span, 0), 2 * span - 1)


def unique_distances(reach, *rule):
    rows = {}
    for r in range(-reach, reach + 1):
        rows.setdefault(row(r, *rule), []).append(r)
    return sorted(rs[0] for rs in rows.values() if len(rs) == 1), len(rows)


def check_numbers(name, found, reach, rule, layers):
    most = reach if found["length"] else 10**9  # no displacement that the text does not have
    unique, slots = unique_distances(reach, *rule)
    left = right = 0
    while left + 1 in unique:
        left += 1
    while -right - 1 in unique:
        right += 1
    check(found["k"] == rule[0] and found["layers"] == layers and found["slots_used"] == slots, f"{name}: sizes")
    one = found["unique_distances"]
    check((one["min"], one["max"], one["count"]) == (unique[0], unique[-1], len(unique)), f"{name}: unique distances {one}")
    intervals = [r for low, high in one["intervals"] for r in range(low, high + 1)]
    check(intervals == unique, f"{name}: intervals")
    check(found["contiguous_unique"] == {"left": left, "right": right, "width": left + right + 1}, f"{name}: run")
    sums = {0}
    for n in range(1, layers + 1):
        sums = {a + r for a in sums for r in unique} if n < 3 else None
        if sums is None:
            break
        there, low, high = {r for r in sums if abs(r) <= most}, 0, 0
        while low - 1 in there:
            low -= 1
        while high + 1 in there:
            high += 1
        expected = {"layers": n, "run": 1 + min(left * n, most) + min(right * n, most), "unique_set": len(there), "contiguous": high - low + 1,
                    "hull": max(there) - min(there) + 1}
        check(found["per_layer"][n - 1] == expected, f"{name}: {n} layers: {found['per_layer'][n - 1]}, expected {expected}")
    check({**found["per_layer"][-1]} == {**found["composed"], "layers": layers}, f"{name}: composed")
    k, n = rule[0], layers
    formulas = {"(2k-1)n": (2 * k - 1) * n, "2(k-1)n": 2 * (k - 1) * n, "1+2(k-1)n": 1 + 2 * (k - 1) * n,
                "1+(2k-1)n": 1 + (2 * k - 1) * n, "1+(2k-3)n": 1 + (2 * k - 3) * n}
    check(found["formulas"] == formulas, f"{name}: formulas")
    if found["length"]:
        equal(found["verdicts"], None, f"{name}: formulas are of texts of any length")
        return
    for formula, value in formulas.items():
        verdict = found["verdicts"][formula]
        check(verdict["over_run_by"] == value - found["composed"]["run"], f"{name}: {formula} over the run")
        check(sorted(verdict["equals"]) == sorted(d for d, x in found["composed"].items() if x == value), f"{name}: {formula} equals")


def test_numbers_of_v1(bench):
    one = study(bench, "synthetic:v1-base")
    check_numbers("v1", one, 1500, V1, 12)
    check(one["length"] is None and one["composed"]["run"] == 12253, "v1: composed run")
    equal(one["contiguous_unique"], {"left": 510, "right": 511, "width": 1022}, "v1: run")
    equal(one["verdicts"]["1+(2k-3)n"]["equals"], ["run", "unique_set", "contiguous", "hull"], "v1: the formula that is right")
    equal(one["paper_pairs"]["unique_distances"]["count"], 1023, "v1: pairs")
    check_numbers("v1 at 513", study(bench, "synthetic:v1-base", "-n", "513"), 512, V1, 12)
    short = study(bench, "synthetic:v1-base", "-n", "512")
    equal({key: short["composed"][key] for key in ("run", "unique_set", "contiguous", "hull")}, dict.fromkeys(("run", "unique_set", "contiguous", "hull"), 1023), "v1 at 512")
    said = bench.fine("receptive-field", "synthetic:v1-base", "-n", "512", "--depth", "1").out  # where a formula gives 1,023, too
    contains(said, "a text of 512 tokens has at most 1023 displacements")
    check("equal" not in said and "(2k-1)n" not in said, f"-n and formulas: {said}")
    tokens = study(bench, "synthetic:v1-base", "-n", "1024")["per_token"]
    equal(tokens["sees_every_key_uniquely"], {"first": 511, "last": 511, "count": 1}, "v1 at 1024: token 511")


def test_numbers_of_v3(bench):
    three = study(bench, "synthetic:v3-large")
    check_numbers("v3", three, 1500, V3, 24)
    check(three["contiguous_unique"]["width"] == 261 and three["unique_distances"]["count"] == 279, "v3: run and unique set")
    check_numbers("v3 at 256", study(bench, "synthetic:v3-base", "-n", "256", "--depth", "2"), 255, V3, 2)
    check_numbers("hf", study(bench, "synthetic:v3-base", "--reference", "hf", "--depth", "3"), 3000, (256, 256, 512, False), 3)
    rows = study(bench, "synthetic:v3-base", "--rows")["rows"]
    check(len(rows) == 511 and rows[0]["lowest"] is None and rows[-1]["highest"] is None and rows[0]["count"] is None, "all rows")


def test_behaviour(bench):
    behaviour = study(bench, SMALL, "--behaviour", "--behaviour-tokens", "400")["behaviour"]
    check(len(behaviour) > 15 and all(test["pass"] for test in behaviour.values() if "skipped" not in test), behaviour)
    short = study(bench, SMALL, "--behaviour", "--behaviour-tokens", "40")["behaviour"].values()
    equal({test["pass"] for test in short if "skipped" in test}, {None}, "a test that was skipped has not passed")
    equal({test["pass"] for test in short if "skipped" not in test}, {True}, "the others have")


def test_behaviour_without_terms(bench):
    """Without both position terms no distance can be told from another: exactly the tests that ask for a difference fail."""
    done = bench.expect(1, "receptive-field", SMALL, "--behaviour", "--behaviour-tokens", "600", "--ablate", "c2p@all,p2c@all", "--json")
    tests = json.loads(done.out)["behaviour"]
    unlike = {name for name in tests if tests[name]["pass"] is False}
    equal(unlike, {name for name in tests if name.startswith(("distinct", "global"))}, "behaviour under --ablate")
    # with one of its terms, and an ablation above the layers that are tested
    study(bench, SMALL, "--behaviour", "--behaviour-tokens", "600", "--behaviour-depth", "1", "--ablate", "p2c@all,c2p@1")


def write_config(bench):
    config = {"model_type": "deberta-v2", "vocab_size": 100, "hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 2,
              "intermediate_size": 64, "hidden_act": "gelu", "max_position_embeddings": 512, "type_vocab_size": 0,
              "relative_attention": True, "pos_att_type": "p2c|c2p", "position_buckets": 256, "norm_rel_ebd": "layer_norm",
              "share_att_key": True, "position_biased_input": False, "layer_norm_eps": 1e-7, "max_relative_positions": -1}
    bench.write("config.json", json.dumps(config))


def test_config_alone(bench):
    write_config(bench)
    check_numbers("config.json alone", study(bench, "."), 3000, (256, 256, 512, False), 2)  # its model_type: transformers' rule
    check_numbers("Microsoft's rule", study(bench, ".", "--reference", "microsoft"), 1500, V3, 2)
    contains(bench.fine("receptive-field", ".").out, "Attention is global", "key to the left")
    bench.fine("receptive-field", ".", "--json", "-o", "out.json")
    equal(json.loads(bench.read("out.json"))["k"], 256, "--out")


def test_figures(bench):
    write_config(bench)
    if not has_figures(bench):
        contains(bench.run("receptive-field", ".", "--plot", "field.svg").err, "without figures")
        return
    for suffix in ("png", "svg", "pdf"):
        bench.fine("receptive-field", ".", "--plot", "field." + suffix)
        check(os.path.getsize("field." + suffix) > 1000, f"--plot .{suffix}")
    bench.expect(2, "receptive-field", ".", "--plot", "field.doc")
    bench.fine("receptive-field", DEMO, "--plot", "demo.svg")
    contains(bench.read("demo.svg"), ">run = unique set = contiguous = hull<", ">161<", ">+154<", ">demo</text>")  # one row for what agrees, no path
    check_drawn_aliases(bench)


def check_drawn_aliases(bench):
    """The panel of aliases: as many levels as there are sizes of rows, on a logarithmic axis; rows without end are lines of that name, unless a length ends them."""
    panel = re.search(r'<g aria-label="what looks alike[^"]*">(.*?)\n</g>', bench.read("field.svg"), re.S).group(1)
    curve = max(re.findall(r'<path d="([^"]*)" fill="none" stroke="#005293"', panel), key=len)
    levels = sorted({float(point.split()[1]) for point in re.findall(r"[ML]?([\d.]+ [\d.]+)", curve)}, reverse=True)
    rows = study(bench, ".", "--rows")["rows"]
    sizes = sorted({row["highest"] - row["lowest"] + 1 for row in rows if None not in (row["lowest"], row["highest"])})
    contains(panel, ">without end<")
    bench.fine("receptive-field", ".", "-n", "600", "-o", "ends.svg")
    check("without end" not in bench.read("ends.svg"), "a text of 600 tokens ends")
    check(len(levels) == len(sizes) > 3, f"sizes of rows: {sizes}, levels {levels}")
    scale = (levels[-1] - levels[0]) / math.log(sizes[-1] / sizes[0])
    check(all(abs(levels[0] + scale * math.log(s / sizes[0]) - y) < 0.02 for s, y in zip(sizes, levels)), f"levels {levels} of sizes {sizes}")


def influence_of(bench, *arguments):
    return study(bench, SMALL, "--influence", *arguments)["influence"]


def test_influence(bench):
    influence = influence_of(bench, "--influence-tokens", "60")
    check(influence["float64"]["median_error"] < 1e-3 and len(influence["per_layer"]) == 2, "influence against float64")
    check(all(0 < layer["radius95"] < 60 and layer["bounded"] == (2 * layer["radius95"] < 60) for layer in influence["per_layer"]), "influence: radius")
    check(not any(layer["bounded"] for layer in influence["per_layer"]), "influence of untrained weights follows the text's length")
    done = bench.fine("receptive-field", SMALL, "--influence", "--influence-tokens", "60", *(["-o", "influence.svg"] if has_figures(bench) else []))
    contains(done.out, "not bounded by this text: its 60 tokens have distances up to 59")
    if has_figures(bench):
        contains(bench.read("influence.svg"), "not bounded by this text<", ">end of the text<", "Influence in a text of 60 tokens.")
    for sources in (1, 3):
        moved = influence_of(bench, "--influence-tokens", "20", "--influence-sources", str(sources))
        counted = [sum(b["count"] for b in layer["bins"]) for layer in moved["per_layer"]]
        check(moved["sources"] == sources and set(counted) == {sources * 20}, f"influence of {sources} tokens on all: {counted}")
    ids = ",".join(str(t % 97) for t in range(40))
    equal(influence_of(bench, "--ids", ids)["tokens"], 40, "influence in given ids")
    bench.expect(2, "receptive-field", SMALL, "--ids", ids)
    bench.expect(2, "receptive-field", SMALL, "--influence", "--ids", "5")


def test_influence_without_a_term(bench):
    """Without c2p in the upper layer influence changes there and not below; float64 does without it too."""
    whole, cut = (influence_of(bench, "--influence-tokens", "60", *more) for more in ((), ("--ablate", "c2p@1")))
    check(cut["float64"]["median_error"] < 1e-3, "influence under --ablate against float64")
    moved = [max(abs(a["mean"] / b["mean"] - 1) for a, b in zip(cut["per_layer"][k]["bins"], whole["per_layer"][k]["bins"])) for k in (0, 1)]
    check(moved[0] < 2e-3 and moved[1] > 0.1, f"influence under --ablate, by layer: {moved}")  # the steps of the two runs may differ


def test_advice_of_info(bench):
    advice = lambda model: bench.json("info", model)["model"]["context"]
    tiny = ",layers=2,hidden=64,heads=2,intermediate=64,vocab=97"
    found = advice("synthetic:v3-base" + tiny)
    check(found["longest_unambiguous_text"] == 132 and found["composed_run"] == 521 and found["position_table_limit"] is None and
          found["contiguous_unique"]["width"] == 261 and found["trained_length"] == 512, f"info: advice {found}")
    equal(advice("synthetic:v1-base,biased=1" + tiny)["position_table_limit"], 512, "info: position table")
    check("contiguous_unique" not in advice("synthetic:v1-base,terms=none" + tiny), "info: no relative positions")


def test_wrong_use(bench):
    for arguments, code in ((("synthetic:v3-base", "--depth", "0"), 2), (("synthetic:v3-base", "-n", "x"), 2), ((), 2),
                            (("synthetic:v3-base", "--reference", "jax"), 2), (("/nowhere",), 3),
                            (("synthetic:v3-base,terms=none",), 3)):
        done = bench.expect(code, "receptive-field", *arguments)
        check(not done.out and done.err, f"{arguments}: {done.describe()}")
