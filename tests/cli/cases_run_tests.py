"""Does what runs the tests (tools/run_tests.py) notice what did not run, or did not end well?

SPDX-License-Identifier: MIT
"""
import contextlib
import io
import os
import sys
import tempfile
from unittest import mock

from helpers import ROOT, check, contains, equal

sys.path.insert(0, str(ROOT / "tools"))
import run_tests

# Lists two tests; runs them as $LOG and $CODE say.
MESON = """#!/bin/sh
case " $* " in *" --list "*) echo "unit - deberta:one"; echo "unit - deberta:two"; exit 0 ;; esac
printf '%s' "$LOG" >"$(dirname "$0")/meson-logs/testlog.json"
if [ -n "$COUNTED" ]; then printf '%s' "$COUNTED" >"$(dirname "$0")/meson-logs/testlog.junit.xml"; fi
exit "$CODE"
"""
ENTRY = '{"name": "unit - deberta:%s", "result": "%s", "stdout": "", "command": ["x"]}\n'


def test_what_meson_counted_counts(bench):
    one, two = ENTRY % ("one", "OK"), ENTRY % ("two", "OK")
    suite = '<testsuite name="deberta.unit - deberta:one" tests="%d" errors="%d" failures="%d" skipped="%d"/>'
    for numbers, result, expected in (((5, 0, 0, 2), "OK", (4, 0)), ((5, 1, 1, 0), "FAIL", (4, 2)), ((0, 0, 0, 0), "OK", (1, 1)), ((3, 0, 0, 0), "FAIL", (4, 1)),
                                      ((3, 0, 0, 3), "SKIP", (1, 0))):
        log = ENTRY % ("one", result) + two
        equal(counts_of(log, str(int(result == "FAIL")), f'<testsuites><testsuite name="deberta"/>{suite % numbers}</testsuites>'), expected, numbers)
    equal(counts_of(one + two, "0", ""), (2, 0))


def test_what_failed_is_shown(bench):
    text = "1..4\nok 1 - a\nnot ok 2 - b\n# why\n# and where\nok 3 - c # SKIP d\nnot ok 4 - e\n"
    equal(run_tests.failures_in(text), "not ok 2 - b\n# why\n# and where\nnot ok 4 - e\n")
    equal(run_tests.failures_in("".join(f"{k}\n" for k in range(30))).split("\n"), [str(k) for k in range(5, 30)])


def test_nothing_counted_is_a_failure(bench):
    equal(run_tests.count_output("0 passed, 0 failed, 0 skipped\n", True), (0, 1, 0))
    equal(run_tests.count_output("3 passed, 0 failed\n", False), (3, 1, 0))


def test_what_runs_side_by_side_is_added_up_in_order(bench):
    said, old, run_tests.totals = io.StringIO(), run_tests.totals, run_tests.Totals()
    try:
        with contextlib.redirect_stdout(said):
            run_tests.run_together({"slow": ["sh", "-c", "sleep 0.2; echo 2 passed, 0 failed, 1 skipped"], "bad": ["false"], "good": ["true"]})
        equal((run_tests.totals.passed, run_tests.totals.failed, run_tests.totals.skipped), (3, 1, 1))
    finally:
        run_tests.totals = old
    equal([line.split(":")[0].strip() for line in said.getvalue().split("\n") if " passed, " in line], ["slow", "bad", "good"])


def test_which_failures_are_a_tiers(bench):
    for name, expected in (("unit - deberta:one", False), ("golden+long - deberta:one", True), ("kernels - deberta:two", True), ("one", True)):
        equal(run_tests.judges_tiers(name), expected)
    equal(counts_of(ENTRY % ("one", "FAIL") + ENTRY % ("two", "OK"), "1"), (1, 1))
    equal(run_tests.totals.tier_failures, 0)


def test_a_tier_passes_though_another_test_fails(bench):
    for of_tiers, last in ((False, "tiers that ran and passed: x (here)\n"),
                           (True, "tiers that ran and passed: none\ntiers among whose tests one failed: x (here)\n")):
        def stage():
            run_tests.totals.add(1, 1, of_tiers=of_tiers)
            return [("x", "here")]
        said = io.StringIO()
        with mock.patch.object(run_tests, "STAGES", [("stage", stage, "sh", True)]), mock.patch.object(sys, "argv", ["run_tests.py", "--full"]), \
                mock.patch.object(run_tests, "totals", run_tests.Totals()), contextlib.redirect_stdout(said):
            equal(run_tests.main(), 1)
        contains(said.getvalue(), last)
        check(said.getvalue().endswith("1 passed, 1 failed, 0 skipped\n"), said.getvalue())


def counts_of(log, code, counted=""):
    with tempfile.TemporaryDirectory() as folder:
        os.mkdir(os.path.join(folder, "meson-logs"))
        with open(os.path.join(folder, "meson"), "w", encoding="ascii") as file:
            file.write(MESON)
        os.chmod(os.path.join(folder, "meson"), 0o755)
        old, run_tests.totals = os.environ["PATH"], run_tests.Totals()
        os.environ["PATH"] = folder + ":" + old
        try:
            with contextlib.redirect_stdout(io.StringIO()):
                run_tests.meson_tests("tests", folder, environment={"LOG": log, "CODE": code, "COUNTED": counted})
        finally:
            os.environ["PATH"] = old
    return run_tests.totals.passed, run_tests.totals.failed


def test_what_meson_did_not_run_has_failed(bench):
    one, two = ENTRY % ("one", "OK"), ENTRY % ("two", "OK")
    equal(counts_of(one + two, "0"), (2, 0))
    equal(counts_of(one, "0"), (1, 1))
    equal(counts_of(one, "1"), (1, 1))
    equal(counts_of(one + two, "1"), (2, 1))
    equal(counts_of(one + ENTRY % ("two", "TIMEOUT"), "1"), (1, 1))
    equal(counts_of("", "0")[0], 0)


def test_the_caller_weakens_nothing(bench):
    for name in sorted(run_tests.NOT_FROM_THE_CALLER):
        os.environ[name] = "1"
        equal(run_tests.execute(["sh", "-c", f'echo "[${name}]"']), ("[]\n", True))
        equal(run_tests.execute(["sh", "-c", f'echo "[${name}]"'], {name: "2"}), ("[2]\n", True))
        del os.environ[name]


def test_what_hangs_is_asked_to_stop(bench):
    output, well = run_tests.execute(["sh", "-c", 'trap "echo asked; exit 0" TERM; while :; do sleep 0.05; done'], timeout=2)
    check(not well, well)
    equal(output, "asked\n\nstopped after 2 s")


def test_every_file_of_cases_is_a_test_of_meson(bench):
    folder = ROOT / "tests" / "cli"
    listed = (folder / "meson.build").read_text(encoding="utf-8")
    missing = [path.name for path in folder.glob("cases_*.py") if f"'{path.stem[len('cases_'):]}'" not in listed]
    check(not missing, missing)


def test_lint_finds_streams_that_are_ended_elsewhere(bench):
    import lint
    for path, text, breaches in (("cli/a.c", "if (fclose(file) != 0) return;", 1), ("train/a.c", "fflush (log);", 1), ("core/io/a.c", "x = fclose(f) + fflush(f);", 1),
                                 ("core/a.c", "/* no fclose(f) */ stream_discard(f); // nor fflush(f)", 0), ("viz/a.c", "my_fclose(f);", 0),
                                 ("core/base/stream.c", "fclose(f);", 0), ("tests/unit/a.c", "fclose(f);", 0)):
        with mock.patch.multiple(lint, failures=[], passes=0):
            lint.check_streams(path, text)
            equal(len(lint.failures), breaches, (path, text))
    assert lint.STREAM_ENDS.search((ROOT / lint.STREAM_HOMES[0]).read_text()), "the home of the rule has no such call"
