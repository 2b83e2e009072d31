"""`bench requests`: what it says of a stream follows from the latencies beside it. SPDX-License-Identifier: MIT"""
import json
from math import isclose

from helpers import TINY, has_figures, quantile

MIXES = {"uniform": (8, 512), "short-uniform": (8, 64), "short-zipf": (8, 128), "mixed-tail": (8, 256), "flat-long": (256, 256)}


def measured(bench, *arguments):
    return json.loads(bench.fine("bench", "requests", TINY, *arguments, "--json").out)


def test_numbers_follow_from_latencies(bench):
    for precision in ("float32", "int16", "int8"):
        found = measured(bench, "--requests", 70, "--group", 4, "--precision", precision, "--threads", 2, "--load", 0.9, "--seed", 5)
        assert found["schema"] == "deberta-bench-requests/1" and found["precision"] == precision and found["threads"] == 2
        assert len(found["lengths"]) == 70 and sum(found["lengths"]) == found["tokens"]
        names = [way["way"] for way in found["ways"]]
        assert names == ["back to back, alone", "back to back, in batches", "arriving, alone", "arriving, in batches"], names
        for way, latencies in zip(found["ways"], found["latencies_s"]):
            assert way["other_bits"] == 0 and len(latencies) == 70 and min(latencies) > 0
            for name, q in (("p50_ms", 0.5), ("p90_ms", 0.9), ("p99_ms", 0.99), ("most_ms", 1)):
                assert isclose(way[name], 1e3 * quantile(latencies, q), rel_tol=1e-5), (way, name)
        alone, batches, arriving, grouped = found["ways"]
        assert [alone["batches"], batches["batches"], arriving["batches"]] == [70, 18, 70] and 18 <= grouped["batches"] <= 70
        assert isclose(sum(found["latencies_s"][0]), 70 / alone["requests_per_second"], rel_tol=0.2)
        assert isclose(found["requests_due_per_second"], 0.9 * alone["requests_per_second"], rel_tol=1e-6)
        # Whoever arrives later is served later.
        assert arriving["requests_per_second"] < 1.5 * found["requests_due_per_second"]


def test_mixes(bench):
    """Lengths are those of the mix, and a seed draws the same ones again."""
    for mix, (shortest, longest) in MIXES.items():
        lengths = measured(bench, "--lengths", mix, "--requests", 130, "--seed", 3, "--threads", 1)["lengths"]
        assert shortest <= min(lengths) and max(lengths) <= longest, (mix, lengths)
        assert lengths == measured(bench, "--lengths", mix, "--requests", 130, "--seed", 3, "--threads", 1)["lengths"]
        if mix == "mixed-tail":
            assert [k for k, n in enumerate(lengths) if n == 256] == [0, 64, 128] and max(n for n in lengths if n < 256) <= 48
        if mix == "short-zipf":
            assert sum(n == 8 for n in lengths) > 30
        elif mix != "flat-long":
            assert len(set(lengths)) > 20


def test_one_request_and_refusals(bench):
    assert measured(bench, "--requests", 1)["ways"][3]["batches"] == 1
    assert "expected one of uniform, short-uniform" in bench.expect(2, "bench", "requests", TINY, "--lengths", "long").err
    assert "--load" in bench.expect(2, "bench", "requests", TINY, "--load", 0).err
    told = bench.expect(4, "bench", "requests", TINY, "--memory-limit", "10K")
    assert "10" in told.err and not told.out
    few = "synthetic:v1-base,layers=1,hidden=48,heads=3,intermediate=64,vocab=61,biased=1,positions=16"
    assert "position table of this model has 16 rows" in bench.expect(3, "bench", "requests", few).err


def test_they_are_no_sweep(bench):
    bench.fine("bench", "requests", TINY, "--requests", 4, "--json", "-o", "r.json")
    commands = [("compare", "r.json", "r.json")] + [("plot", "r.json", "-o", "r.png")] * has_figures(bench)
    for command in commands:
        done = bench.run("bench", *command)
        assert done.code == 3 and "r.json: results of bench requests" in done.err, (command, done.code, done.err)


def test_models(bench):
    """A request has one answer whatever shares its batch: v1 with odd heads and absolute positions, v2 with its convolution, one layer or two."""
    small = "hidden=48,heads=3,intermediate=64,vocab=61"
    for model in (f"v1-base,layers=1,{small},biased=1,types=2", f"v2-xlarge,layers=2,{small},convolution=3", f"v3-base,layers=2,{small},buckets=8"):
        for precision in ("float32", "int8"):
            words = ["bench", "requests", f"synthetic:{model}", "--requests", 24, "--group", 5, "--precision", precision, "--threads", 2, "--load", 10]
            ways = json.loads(bench.fine(*words, "--json").out)["ways"]
            assert [way["other_bits"] for way in ways] == [0, 0, 0, 0] and ways[3]["batches"] < 24, (model, precision, ways)
