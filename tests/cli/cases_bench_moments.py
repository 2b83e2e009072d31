"""`bench`: limits of the machine between samples and steps, visits and their times, the machine's record. SPDX-License-Identifier: MIT"""
import json
import math
import re
import statistics

from helpers import check, check_message, equal

SMALL = "synthetic:v3-xsmall,vocab=50,layers=2,hidden=64,heads=2,intermediate=128"


def measured(bench, *words):
    return json.loads(bench.fine("bench", SMALL, "-n", "8,60", "-t", "1", "--reps", "21", "-q", "--json", *words).out)


def test_bench_moments_of_samples(bench):
    """Every sample has its visit and its time; a visit says what it encoded before. Times alone have no limits beside them."""
    report = measured(bench, "--no-peak")
    for r in report["results"]:
        equal(len(r["visit"]), 21)
        equal(r["visit"], sorted(r["visit"]))
        equal(set(r["visit"]), set(range(len(r["warm"]))))
        check(all(1 <= warm <= 12 for warm in r["warm"]), r["warm"])
        check(all(now + took <= then for now, took, then in zip(r["at_s"], r["samples_s"], r["at_s"][1:])), r["at_s"])
        check("peak_then" not in r and r.get("peak_then_fraction", 0) == 0, r)
    sheet = report["environment"]
    check(sheet["clock_wide_ghz"] >= 0 and sheet["clock_wide_ghz_after"] >= 0, sheet)
    check({"hypervisor", "microcode", "huge_pages", "huge_page_bytes"} <= sheet.keys(), sheet)
    codes = re.findall(r"microcode\s*: (\S+)", bench.read("/proc/cpuinfo"))
    equal(sheet["microcode"], codes[0] if codes else "")


def check_share(bench, precision, products):
    """A share of the peak then is the rate over what was measured between the samples."""
    for r in measured(bench, "--precision", precision, "--roof-share", "0.5")["results"]:
        then = r["peak_then"]
        limit = then["gops"] / products if products else then["gflops"]
        check(math.isclose(r["peak_then_fraction"], r["gflop"] / r["median_s"] / limit, rel_tol=1e-6), (r, limit))
        check("read_gbs" not in then and then["slices"] >= 1 and r["peak_fraction"] > 0, then)


def test_bench_moments_of_the_peak(bench):
    check_share(bench, "float32", None)
    check_message(bench.run("bench", SMALL, "--no-peak", "--roof-share", "0.1"), 2, ["--roof-share", "--no-peak"])
    check_message(bench.run("bench", SMALL, "--roof-share", "2"), 2, ["--roof-share"])


def test_bench_moments_of_the_peak_in_int16(bench):
    check_share(bench, "int16", 3)


def test_bench_moments_without_a_share(bench):
    for r in measured(bench, "--precision", "int8", "--roof-share", "0")["results"]:
        check("peak_then" not in r and r["peak_fraction"] > 0, r)


def test_bench_moments_of_a_breakdown(bench):
    """The table of stages holds both shares; its limits and reading are of the moment of the encodes with clocks."""
    out = bench.fine("bench", SMALL, "-n", "60", "-t", "1", "--reps", "3", "-q", "--breakdown").out
    title = next(line for line in out.splitlines() if line.startswith("stage"))
    check("% of peak then" in title and "% of peak  " in title, title)
    r = measured(bench, "--breakdown")["results"][1]
    check(r["breakdown_peak_then"]["read_gbs"] > 0 and r["peak_then"]["read_gbs"] > 0, r)
    check(r["breakdown_peak_then"]["gflops"] > 0, r)


def test_bench_moments_of_training(bench):
    report = json.loads(bench.fine("bench", "train", SMALL + ",lm=1", "-n", "24", "-b", "2", "--reps", "4", "--threads", "1", "--json").out)
    forward = next(stage for stage in report["stages"] if stage["stage"] == "forward")
    check(math.isclose(forward["percent_of_peak_then"], 100 * forward["gflops"] / report["peak_then_gflops"], rel_tol=1e-6), report)
    check(math.isclose(forward["percent_of_peak"], 100 * forward["gflops"] / report["peak_gflops"], rel_tol=1e-6), report)
    check(math.isclose(report["median_seconds"], statistics.median(report["step_seconds"]), rel_tol=5e-9), report)
    alone = json.loads(bench.fine("bench", "train", SMALL + ",lm=1", "-n", "24", "-b", "2", "--reps", "1", "--no-peak", "--json").out)
    check(alone["peak_then_gflops"] is None and alone["peak_gflops"] is None, alone)
