"""What is one model to `bench compare`, `merge` and `plot`, and which points of several runs are compared.

SPDX-License-Identifier: MIT
"""
import copy
import csv
import io
import json
import os

from helpers import DEMO, TINY, check, check_message, contains, equal, has_figures

QUICK = ["--reps", "3", "--min-time", "0", "--no-peak", "-q", "-t", "1"]
SMALL = "synthetic:v3-xsmall,vocab=50,layers=1,hidden=64,heads=2,intermediate=64"


def measure(bench, model, out, n="4", *more):
    bench.fine("bench", model, "-n", n, *QUICK, *more, "--json", "-o", out)
    return json.loads(bench.read(out))


def save(bench, name, results):
    bench.write(name, json.dumps(results))
    return name


def test_bench_two_spellings_are_one_model(bench):
    os.symlink(DEMO, bench.path("demo"))
    equal(len(measure(bench, "demo", "a.json")["results"][0]["model_sha256"]), 64)
    for k, name in enumerate(("demo/", "./demo", "././/demo//", DEMO)):
        measure(bench, name, f"b{k}.json", "4" if k else "8")
    point = json.loads(bench.fine("bench", "compare", "a.json", "b1.json", "--json").out)["points"][0]
    equal(point["verdict"], "not decided: one run each")
    if point["pairs"] == 1:  # one pair has a ratio, but neither an interval nor a test
        equal([point[f"pairs_{name}"] for name in ("low", "high", "confidence_percent", "p")], [None] * 4)
        assert point["pairs_ratio"] > 0, point
    for k in (2, 3):
        bench.fine("bench", "compare", "a.json", f"b{k}.json")
    check_message(bench.run("bench", "merge", "a.json", "b1.json"), 3, ["both have the point"])
    joined = json.loads(bench.fine("bench", "merge", "a.json", "b0.json", "-o", "m.json").out or bench.read("m.json"))
    equal([r["model"] for r in joined["results"]], ["demo", "demo/"])
    if has_figures(bench):
        bench.fine("bench", "plot", "m.json", "-o", "m.svg")  # one curve of two points


def test_bench_without_digests_names_are_compared(bench):
    found = measure(bench, TINY, "a.json")
    check("model_sha256" not in found["results"][0], "a made-up model has no files")
    for mine, other, same in ((TINY, SMALL, True), (SMALL, SMALL.replace("hidden=64,", "hidden=64,embedding=64,qa=0,positions=512,"), True),
                              (SMALL, SMALL + ",seed=2", False), ("out/m/", "./out//m", True), ("out/m", "out/n", False)):
        for name, model in (("x.json", mine), ("y.json", other)):
            changed = copy.deepcopy(found)
            changed["results"][0]["model"] = model
            save(bench, name, changed)
        if same:
            bench.fine("bench", "compare", "x.json", "y.json")
        else:
            check_message(bench.run("bench", "compare", "x.json", "y.json"), 3, ["no measured point in common", f"'{mine[:100]}' and '{other[:100]}'"])


def test_bench_two_results_of_one_point(bench):
    """Only one of them would be compared, the one that stands first."""
    found = measure(bench, TINY, "a.json")
    found["results"].append(copy.deepcopy(found["results"][0]))
    save(bench, "b.json", found)
    for files in (("a.json", "b.json"), ("b.json", "a.json")):
        check_message(bench.run("bench", "compare", *files), 3, ["b.json: results[0] and results[1] are of one point"])


def test_bench_one_name_of_two_models(bench):
    found = measure(bench, TINY, "a.json", "4,8")
    for name, digit, keep in (("x.json", "a", 0), ("y.json", "b", 1)):
        changed = copy.deepcopy(found)
        changed["results"] = [dict(changed["results"][keep], model="m", model_sha256=64 * digit)]
        save(bench, name, changed)
    check_message(bench.run("bench", "compare", "x.json", "y.json"), 3, ["model 'm' of other weights or settings", "aaaaaaaa and bbbbbbbb", "n 4 and 8"])
    check_message(bench.run("bench", "merge", "x.json", "y.json"), 3, ["different models named m"])
    if has_figures(bench):
        both = copy.deepcopy(found)
        for r, digit in zip(both["results"], "ab"):
            r.update(model="m", model_sha256=64 * digit)
        save(bench, "both.json", both)
        result = bench.run("bench", "plot", "both.json", "--figure", "curves", "-o", "both.svg")
        check(result.code == 2 and "one length" not in result.err, result.describe())
        contains(result.err, "of other weights")


def test_bench_compare_takes_all_points_of_a_side(bench):
    """Whichever file is first: a run that was stopped lacks points, not the side."""
    whole = measure(bench, TINY, "whole.json", "4,8")
    part = save(bench, "part.json", dict(whole, results=whole["results"][:1]))
    slow = copy.deepcopy(whole)
    for r in slow["results"]:
        r["samples_s"] = [2 * s for s in r["samples_s"]]
    save(bench, "slow.json", slow)
    sides = [[part] + ["whole.json"] * 4, ["whole.json"] * 4 + [part]]
    found = []
    for first in sides:
        result = json.loads(bench.fine("bench", "compare", *first, "with", *["slow.json"] * 5, "--json").out)
        found.append(sorted((p["n"], p["runs"], p["ratio"], p["p"], p["verdict"]) for p in result["points"]))
    equal(found[0], found[1])
    equal([(n, runs) for n, runs, *_ in found[0]], [(4, "5 + 5"), (8, "4 + 5")])
    contains(bench.fine("bench", "compare", part, "whole.json").out, "without a partner: 0 of A, 1 of B", "three with five, two with eight")
    by = [json.loads(bench.fine("bench", "compare", *files, "--by", "depth", "--json").out)["points"] for files in
          ([save(bench, "deep.json", dict(whole, results=[dict(r, layers=2) for r in whole["results"]] + whole["results"][:1])), "whole.json"],)]
    equal([p["n"] for p in by[0]], [4, 8])


def test_bench_csv_has_no_zero_for_what_was_not_measured(bench):
    rows = list(csv.DictReader(io.StringIO(bench.fine("bench", TINY, "-n", "4", *QUICK, "--format", "csv").out)))
    equal([(r["relative_error"], r["peak_fraction"], r["model_sha256"]) for r in rows], [("", "", "")])
    check(float(rows[0]["median_s"]) > 0, rows)
