"""Drawn models, texts and ways of training through every feature; a case repeats alone; planted faults are noticed.
SPDX-License-Identifier: MIT
"""
import copy
import json
import os
from unittest import SkipTest

from helpers import contains, is_sanitized, needs_speed

QUICK = bool(os.environ.get("DEBERTA_TEST_QUICK"))
# Several processes, so that none takes long where other tests run as well. The fixed seed draws every feature within these cases; 2,000 others a
# day are the nightly stage drawn-cases. With a sanitizer, which is eight times slower, so few that not everything is drawn.
CASES, AT_ONCE, SANITIZED_CASES = 40 if QUICK else 80, 10, 10
# Every task is there, and so is everything that is drawn, with the fixed seed.
TASKS = ("mlm", "mlm, legacy head", "mlm_emd", "rtd", "rtd with a generator", "sequence", "one label", "token", "choice", "qa")
BITS = ("training: scalar", "training: 2 threads", "training: micro-tokens", "training: recompute", "training: micro-tokens, recompute, 2 threads",
        "dropout: scalar, 2 threads", "dropout: micro-tokens", "dropout: recompute", "resumed training", "hidden states", "attention",
        "inference: each text alone", "inference: 2 threads", "inference: from memory", "inference: packed",
        "inference: packed, without weights", "attributions")
ERRORS = ("attributed answers", *(f"attributions to {part}" for part in ("words", "positions", "token types", "distances")), "hidden states", "attention", "int8: hidden states", "int8: attention", "int16: hidden states", "int16: attention",
          *(f"{precision}logits {head}" for precision in ("", "int8: ", "int16: ") for head in ("mlm", "mlm_emd", "rtd", "sequence", "token", "qa")))


def of_drawn(bench):
    """The same for the program of drawn cases, which is built beside the program."""
    other = copy.copy(bench)
    other.program = os.path.join(os.path.dirname(bench.program), "tests/drawn/drawn")
    return other


def drawn(bench, *words, code=0):
    result = of_drawn(bench).run(*words, "--json")
    assert result.code == code, result.describe()
    return json.loads(result.out)


def joined(parts):
    """The rows of several runs as those of one."""
    rows = {}
    for row in (row for part in parts for row in part["features"]):
        whole = rows.setdefault((row["feature"], row["against"]), {**row, "cases": 0, "failures": 0})
        whole["cases"] += row["cases"]
        whole["failures"] += row["failures"]
        if "worst" in row:
            whole["worst"] = max(whole["worst"], row["worst"])
    return rows


def cases_from(bench, first):
    """What AT_ONCE cases show, all of which pass; whoever asks first runs them."""
    def run(path):
        part = drawn(bench, "--configurations", str(AT_ONCE), "--seed", "1", "--first", str(first))
        assert set(part) == {"schema", "seed", "first", "cases", "failures", "failed_cases", "features"} and part["schema"] == "deberta-verify-drawn/1"
        assert (part["seed"], part["first"], part["cases"], part["failures"], part["failed_cases"]) == (1, first, AT_ONCE, 0, 0)
        path.write_text(json.dumps(part), encoding="utf-8")
    return json.loads(bench.shared(f"drawn-from-{first}.json", run).read_text(encoding="utf-8"))


def named(first):
    def run(bench):
        if first >= SANITIZED_CASES and is_sanitized(bench.program):
            raise SkipTest("a sanitizer takes fewer cases")
        cases_from(bench, first)
    return f"drawn/cases-from-{first}", run


def tests(_settings):
    return (named(first) for first in range(0, CASES, AT_ONCE))


def test_every_feature_is_drawn(bench):
    cases = SANITIZED_CASES if is_sanitized(bench.program) else CASES
    rows = joined([cases_from(bench, first) for first in range(0, cases, AT_ONCE)])
    assert all(row["cases"] > 0 and row["failures"] == 0 for row in rows.values())
    for (feature, against), row in rows.items():
        assert (against == "float64") == ("worst" in row) and row.get("worst", 0) <= 1, row
    if cases == SANITIZED_CASES:
        return
    for task in TASKS:
        for what in ("loss", "gradients"):
            assert any(feature.split(", SiFT")[0] == f"{what} of {task}" for feature, _ in rows), (what, task)
    for task in ("sequence", "one label", "token", "choice"):
        assert any(feature.startswith(f"gradients of {task}, SiFT") for feature, _ in rows), task
    assert rows["a label at a hole", "its refusal"]["cases"] > 0
    trained = sum(row["cases"] for (feature, _), row in rows.items() if feature.startswith("loss of "))
    assert trained < rows["hidden states", "bits"]["cases"] == CASES, "models with talking heads are not trained"
    for feature in BITS:
        assert (feature, "bits") in rows, feature
    for feature in ERRORS:
        assert (feature, "float64") in rows, feature


def test_a_case_repeats_alone(bench):
    """What a case is depends on its seed and its number, not on those before it."""
    several, alone = (drawn(bench, "--training", "--seed", "3", "--configurations", count, "--first", first) for count, first in (("3", "20"), ("1", "22")))
    of_one = {(row["feature"], row["against"]): row for row in alone["features"]}
    row = of_one["loss of mlm_emd", "float64"]
    assert row["worst_case"] == 22 and row in several["features"], (row, several["features"])
    assert row not in drawn(bench, "--training", "--seed", "4", "--configurations", "1", "--first", "22")["features"]
    assert not any("int8" in feature or "inference" in feature for feature, _ in of_one), "training alone"


def test_terms_that_cancel(bench):
    """A norm over three columns in int8, a bias that all choices share, a norm behind relu with one live column, choices that are the same text."""
    for number, feature in (("390", "int8: logits mlm"), ("2478", "gradients of choice"), ("2512", "cancelling gradients of mlm_emd"),
                            ("3958", "gradients of choice, SiFT"), ("4548", "gradients of choice, SiFT raw")):
        found = drawn(bench, "--configurations", "1", "--seed", "77", "--first", number)
        assert feature in {row["feature"] for row in found["features"] if row["against"] == "float64"}, (number, found["features"])


def test_cases_that_once_failed(bench):
    """A config that asks for talking heads over tensors that have none, with a decoder; a label that is certain to 3e-6."""
    for number, feature in (("22", "logits mlm_emd"), ("400", "gradients of mlm")):
        found = drawn(bench, "--configurations", "1", "--seed", "79", "--first", number)
        assert feature in {row["feature"] for row in found["features"] if row["against"] == "float64"}, (number, found["features"])


def test_drawn_table(bench):
    said = of_drawn(bench).fine("--training", "--configurations", "1").out
    contains(said, "gradients of mlm", "training: recompute", "error / limit", "1 cases from 0 on, seed 1: 0 failed")


def test_planted_faults(bench):
    needs_speed(bench)
    faults = [line.split()[0] for line in of_drawn(bench).fine("--mutate", "list").out.splitlines()]
    assert len(faults) >= 18, faults
    for fault in faults:
        said = of_drawn(bench).run("--mutate", fault)
        # Where two things have the same place, a sanitizer may be the first to say so.
        assert said.code != 0 and (f"{fault}: caught" in said.out or "AddressSanitizer" in said.err), said.describe()


def test_words_of_drawn_cases(bench):
    for words, wanted in ((["--mutate", "p2c_ji"], "none is called p2c_ji"), (["--configurations", "-1"], "a whole number"), (["--first", "2x"], "found 2x"),
                          (["--isa", "avx3"], "avx3"), (["synthetic:v3-small"], "unexpected argument"), (["--ids", "1"], "--ids"), (["--mutate", "list", "--json"], "--json")):
        said = of_drawn(bench).run(*words)
        assert said.code == 2 and wanted in said.err and not said.out, said.describe()

