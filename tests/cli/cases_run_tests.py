"""Does what runs the tests (tools/gates/run_tests.py) notice what did not run, or did not end well?

SPDX-License-Identifier: MIT
"""
import contextlib
import io
import os
import pathlib
import sys
import time
from unittest import mock

from helpers import ROOT, check, contains, equal

sys.path.insert(0, str(ROOT / "tools" / "gates"))
import run_tests
from testing import builds, counting, processes, schedule
from testing.stage import Stage, Tests


def row(name, **about):
    """A test as `meson introspect --tests` shows it."""
    return {"name": name, "cmd": ["run", name], "env": {}, "workdir": None, "timeout": 30, "suite": ["deberta:golden"], "priority": 0,
            "protocol": "exitcode", "depends": [], **about}


def outcome(output="", status=0):
    return processes.Outcome(output, status, 0.0, 0.0)


SUITES = {"two": ["cli"], "foreign": ["cli", "files", "foreign"], "files": ["cli", "files"], "switch": ["cli", "switches"], "sampled": ["cli", "sampled"],
          "turn": ["cli", "full", "turns"]}  # "one" and others are golden results
EVERY = ("one", "unigram", "parallel", *SUITES)


@contextlib.contextmanager
def instead_of_processes(answer, listed=EVERY):
    """Nothing is started: answer(command) is what comes of it; every build has these tests."""
    rows = [builds.Listed(row(name, suite=["deberta:" + suite for suite in SUITES.get(name, ["golden"])]), "build") for name in listed]
    with mock.patch.object(processes, "execute", lambda command, *_: answer(command)), mock.patch.object(builds, "listed_tests", lambda _: rows), \
            mock.patch.object(builds, "files_of_targets", lambda _: {}), mock.patch("shutil.which", lambda tool: tool):
        yield


def run_stages(names, answer, listed=EVERY):
    """(exit status, what was said) of a full run of these stages."""
    said = io.StringIO()
    chosen = [stage for stage in run_tests.STAGES + run_tests.NIGHTLY if stage[0] in names]
    with instead_of_processes(answer, listed), contextlib.redirect_stdout(said):
        with mock.patch.object(run_tests.stages, "native_tiers", lambda: ["scalar"]):
            status = run_tests.summarize(*run_tests.run(chosen, True), "")
    return status, said.getvalue()


def test_any_failure_in_any_stage_fails_the_run(bench):
    """Each process of each stage fails once: it is named, and counted in the last line."""
    for name, *_ in run_tests.STAGES + run_tests.NIGHTLY:
        commands = []
        status, said = run_stages([name], lambda command: commands.append(command) or outcome("1 passed, 0 failed\n" * 3))
        equal((status, said.split()[-5:-2]), (0, ["passed,", "0", "failed,"]), (name, said))
        check(len(commands) >= 2 or name in ("debian-12", "debian-13", "contributing-whole", "wheels", "large-corpus", "coverage", "contributing"), (name, commands))
        for broken in {tuple(command) for command in commands}:
            for bad in (outcome("3 passed, 0 failed\n" * 3, 1), outcome("2 passed, 1 failed\n" * 3, 1), outcome("", None)):
                status, said = run_stages([name], lambda command: bad if tuple(command) == broken else outcome("1 passed, 0 failed\n" * 3))
                failed = int(said.rstrip().split("\n")[-1].split()[2])
                check(status == 1 and failed >= 1 and " ".join(broken) in said and "\nfailed: " + name in said, (name, broken, said))


def test_nothing_runs_twice(bench):
    commands = []
    names = [stage[0] for stage in run_tests.STAGES if stage[0] != "avx512-emulated"]
    run_stages(names, lambda command: commands.append(" ".join(command)) or outcome("1 passed, 0 failed\n" * 3))
    # Every build has these tests, and so the same command in each that takes it: "one" runs in native, neon, clang and sanitizers, "foreign" in native and sanitizers.
    equal([command for command in set(commands) if commands.count(command) > 1 and " run " not in f" {command}"], [])
    equal([sum(f" {command}".endswith(f" run {name}") for command in commands) for name in ("one", "two", "foreign", "sampled")], [4, 1, 2, 1], commands)


def test_what_takes_turns_has_its_turn(bench):
    """Each day a part runs and the rest is named with the stage that takes it; in as many days as there are parts all of it has run."""
    for name, suite, nightly, days in (("native", "turns", "native-whole", 3), ("clang", "switches", "clang-whole", 2), ("sanitizers", "files", "sanitizers-whole", 4)):
        listed, ran = ("one", "two", "foreign", "sampled", *(f"t{k}" for k in range(7))), []
        for day in range(days):
            commands = []
            with mock.patch.dict(SUITES, {f"t{k}": ["cli", suite] for k in range(7)}), mock.patch.dict(os.environ, DEBERTA_TEST_DAY=str(739000 + day)):
                _, said = run_stages([name], lambda command: commands.append(command) or outcome("1 passed, 0 failed\n"), listed)
            today = {command[-1] for command in commands if command[0] == "run" and command[-1][0] == "t" and command[-1] != "two"}
            left = said.split(f"\nleft to the nightly stage {nightly}: ")[1].split("\n")[0].split(", ")
            equal(sorted(today | {test for test in left if test[0] == "t" and test[1:].isdigit()}), [f"t{k}" for k in range(7)], said)
            ran += today
        equal(sorted(ran), [f"t{k}" for k in range(7)])
        commands = []
        with mock.patch.dict(SUITES, {f"t{k}": ["cli", suite] for k in range(7)}):
            run_stages([nightly], lambda command: commands.append(command) or outcome("1 passed, 0 failed\n"), listed)
        check(all(["run", f"t{k}"] in commands for k in range(7)), (nightly, commands))


def test_what_a_build_has_not_is_a_failure(bench):
    for name in ("native", "neon", "clang", "sanitizers", "threads"):
        status, said = run_stages([name], lambda command: outcome("1 passed, 0 failed\n"), listed=())
        check(status == 1 and "no test ran" in said, said)


def test_what_could_not_be_built_has_failed(bench):
    status, said = run_stages(["neon"], lambda command: outcome("", int(command[0] == "ninja")))
    contains(said, "neon: building build-arm64: failed", "tiers that ran and passed: none", "tiers among whose tests one failed: neon (under qemu-aarch64)")
    equal((status, said.rstrip().split("\n")[-1].split(", ")[0]), (1, "0 passed"))


def test_which_failures_are_a_tiers(bench):
    for broken, passed in (("one", False), ("two", True)):  # golden results, and the program
        status, said = run_stages(["native"], lambda command: outcome("1 passed, 0 failed\n", int(command[-1] == broken)))
        equal((status, "tiers that ran and passed: scalar (native)" in said), (1, passed), said)


def test_counts_of_the_protocol(bench):
    for text, status, expected in (("1..3\nok 1 - a\nok 2 - b # SKIP c\nnot ok 3 - d\n# why\n", 1, (1, 1, 1)), ("1..2\nok 1 - a\nok 2 - b\n", 0, (2, 0, 0)),
                                   ("1..3\nok 1 - a\n", 0, (1, 2, 0)), ("ok 1 - a\n", 0, (1, 1, 0)), ("1..1\nok 1 - a\nok 2 - b\n", 0, (2, 1, 0)), ("1..1\nok 1 - a\n", 1, (1, 1, 0)),
                                   ("1..2\nok 1 - a\nBail out! no memory\nok 2 - b\n", 0, (2, 1, 0)), ("", 0, (0, 1, 0)), ("1..1\nok 1 - a\n", None, (1, 1, 0))):
        equal(counting.count(text, status, tap=True), expected, text)


def test_counts_of_a_closing_line(bench):
    for text, status, expected in (("3 passed, 0 failed\n", 0, (3, 0, 0)), ("3 passed, 0 failed, 2 skipped\n", 0, (3, 0, 2)), ("0 passed, 0 failed, 0 skipped\n", 0, (0, 1, 0)),
                                   ("3 passed, 0 failed\n", -11, (3, 1, 0)), ("", 0, (1, 0, 0)), ("", 1, (0, 1, 0)), ("", 77, (0, 0, 1)), ("", None, (0, 1, 0))):
        equal(counting.count(text, status), expected, text)
    equal(counting.count("1 passed, 0 failed\n2 passed, 0 failed, 4 skipped\n", 0, programs=3), (3, 1, 4))


def test_what_failed_is_shown(bench):
    text = "1..4\nok 1 - a\nnot ok 2 - b\n# why\n# and where\nok 3 - c # SKIP d\nnot ok 4 - e\n"
    equal(counting.failures_in(text), "not ok 2 - b\n# why\n# and where\nnot ok 4 - e\n")
    equal(counting.failures_in("".join(f"{k}\n" for k in range(30))).split("\n"), [str(k) for k in range(5, 30)])


def test_long_tests_are_left_out_where_all_is_slow(bench):
    listed = [builds.Listed(row("a", suite=["deberta:cli", "deberta:long"]), "build"), builds.Listed(row("b"), "build")]
    equal([test.name for test in Tests("t", quick=True).of(listed)[0]], ["b"])
    equal([test.name for test in Tests("t").of(listed)[0]], ["a", "b"])


def test_where_a_test_runs(bench):
    equal([builds.Listed(row("a", workdir=folder), "build-x").folder for folder in (None, "/there")], [str(ROOT / "build-x"), "/there"])


def test_processors_are_shared(bench):
    """The longest begins first, two run at a time, one waits for another, and one that takes all processors has no neighbour."""
    plan, log = schedule.Schedule(2), []

    def job(name, seconds, **about):
        script = f"date +%s%N; sleep {seconds}; date +%s%N"
        return plan.add(schedule.Job(["sh", "-c", script], lambda ended: log.append((name, *map(int, ended.output.split()))), **about))
    long = job("long", 0.4, expected=9)
    job("short", 0.1, expected=1)
    job("middle", 0.2, expected=5)
    job("after", 0.1, expected=50, after=[long])
    job("both", 0.1, expected=0.1, processors=8)
    plan.run()
    times = {name: (begin, end) for name, begin, end in log}
    equal(len(times), 5)
    check(times["long"][0] < times["short"][0] and times["middle"][0] < times["short"][0], times)
    check(times["after"][0] >= times["long"][1] and times["short"][0] < times["long"][1], times)
    both = times.pop("both")
    check(all(begin >= both[1] or end <= both[0] for begin, end in times.values()), (both, times))


def test_one_more_runs_while_others_wait(bench):
    """Two jobs wait for what a third makes: it runs where processors are idle, one alone, and where none is they are stopped in vain."""
    for idle in (1.0, 0.0):
        plan, log = schedule.Schedule(2), []

        def job(name, script, **about):
            plan.add(schedule.Job(["sh", "-c", script], lambda ended: log.append(name if ended.status == 0 else "stopped"), folder=bench.folder, **about))
        for _ in range(2):
            job("waits", "until [ -e made ]; do sleep 0.01; done", expected=9, limit=60 if idle else 1)
        job("makes", "[ ! -e last ] && : > made", expected=5)
        job("last", ": > last", expected=1)
        with mock.patch.object(schedule, "PERIOD", 0.1), mock.patch.object(schedule, "idle_seconds", lambda: idle * time.monotonic()):
            plan.run()
        equal(sorted(log) if idle else log[0], ["last", "makes", "waits", "waits"] if idle else "stopped")
        equal((plan.free, plan.lent), (2, 0))
        for name in ("made", "last"):
            pathlib.Path(bench.path(name)).unlink(missing_ok=True)


def test_what_waits_for_a_failure_is_given_up(bench):
    plan, log = schedule.Schedule(2), []
    bad = plan.add(schedule.Job(["false"], lambda ended: log.append(ended.status)))
    middle = plan.add(schedule.Job(["true"], lambda _: log.append("ran"), after=[bad], given_up=lambda: log.append("middle")))
    plan.add(schedule.Job(["true"], lambda _: log.append("ran"), after=[middle], given_up=lambda: log.append("last")))
    plan.run()
    equal(log, [1, "middle", "last"])


def test_a_program_that_is_missing_has_failed(bench):
    stage = Stage("stage", "says", schedule.Schedule(1), {})
    stage.program("missing", ["/nowhere/at all"])
    with contextlib.redirect_stdout(io.StringIO()):
        stage.schedule.run()
    equal((stage.counts(), stage.failures), ((0, 1, 0), ["missing"]))


def test_the_caller_weakens_nothing(bench):
    for name in sorted(processes.NOT_FROM_THE_CALLER):
        os.environ[name] = "1"
        equal(processes.execute(["sh", "-c", f'echo "[${name}]"']).output, "[]\n")
        equal(processes.execute(["sh", "-c", f'echo "[${name}]"'], {name: "2"}).output, "[2]\n")
        del os.environ[name]


def test_what_hangs_is_asked_to_stop(bench):
    ended = processes.execute(["sh", "-c", 'trap "echo asked; exit 0" TERM; while :; do sleep 0.05; done'], limit=2)
    contains(ended.output, "asked\n", "\nstopped after 2 s")
    equal(ended.status, None)


def test_processor_time_is_that_of_children_too(bench):
    begin = time.monotonic()
    ended = processes.execute(["sh", "-c", "(ulimit -t 1; while :; do :; done); sleep 0.2; echo done"])
    check(0.5 < ended.processor <= time.monotonic() - begin and ended.output.endswith("done\n"), (ended.processor, ended.output))


def test_every_file_of_cases_is_a_test_of_meson(bench):
    folder = ROOT / "tests" / "cli"
    listed = (folder / "meson.build").read_text(encoding="utf-8")
    missing = [path.name for path in folder.glob("cases_*.py") if f"'{path.stem[len('cases_'):]}'" not in listed]
    check(not missing, missing)


def test_lint_finds_tools_that_no_page_names(bench):
    import lint
    page = "| file | what it does |\n|---|---|\n| `a.py` | does this |\n| `b.py` | does that |\n"
    for paths, breaches in ((("tools/a.py", "tools/b.py", "tools/README.md", "core/c.c"), 0), (("tools/a.py", "tools/b.py", "tools/c.py"), 1), (("tools/a.py",), 1)):
        with mock.patch.multiple(lint, failures=[], passes=0):
            lint.check_tools_listed(paths, page)
            equal(len(lint.failures), breaches, paths)


def breaches_of(rule, *arguments):
    import lint
    with mock.patch.multiple(lint, failures=[], passes=0):
        getattr(lint, rule)(*arguments)
        return len(lint.failures)


def test_lint_finds_includes_out_of_order(bench):
    first, second = '#include "core/a.h"\n', '#include "core/b.h"\n'
    for path, text, breaches in (("core/c.c", first + second, 0), ("core/c.c", second + first, 1), ("core/c.c", second + "\n" + first, 0),
                                 ("core/c.c", first + "\n" + first, 1), ("simd/c.c", second + first, 0), ("tests/c.c", "#include <b.h>\n#include <a.h>\n", 0)):
        equal(breaches_of("check_include_order", path, text), breaches, (path, text))


def test_lint_finds_static_names_in_many_files(bench):
    for files, breaches in ((3, 0), (4, 1)):
        equal(breaches_of("check_static_names", {f"core/{k}.c": "static int run(void)\n{\n}\n" for k in range(files)}), breaches, files)


def test_lint_finds_numbers_that_follow_the_locale(bench):
    import lint
    inside = 'static void a(void)\n{\n    plain_numbers n = plain_numbers_begin();\n    fprintf(f, "%.17g", x);\n    plain_numbers_end(n);\n}\n'
    outside = 'static void b(void)\n{\n    fprintf(f, "%.17g", x);\n}\n'
    for path, text, breaches in (("train/a.c", inside, 0), ("train/a.c", outside, 1), ("train/a.c", inside + outside, 1), ("core/io/a.c", "x = strtod(t, NULL);", 1),
                                 ("core/a.c", 'sscanf(t, "%lf", &x);', 1), ("core/a.c", 'snprintf(t, n, "%zu", k);', 0), ("core/a.c", "/* strtod(t) */", 0),
                                 ("program/a.c", outside, 0)):
        with mock.patch.multiple(lint, failures=[], passes=0):
            lint.check_plain_numbers(path, text)
            equal(len(lint.failures), breaches, (path, text))


def test_lint_finds_streams_that_are_ended_elsewhere(bench):
    import lint
    for path, text, breaches in (("program/a.c", "if (fclose(file) != 0) return;", 1), ("train/a.c", "fflush (log);", 1), ("core/io/a.c", "x = fclose(f) + fflush(f);", 1),
                                 ("core/a.c", "/* no fclose(f) */ stream_discard(f); // nor fflush(f)", 0), ("viz/a.c", "my_fclose(f);", 0),
                                 ("core/base/text.c", "fclose(f);", 0), ("tests/unit/a.c", "fclose(f);", 0)):
        with mock.patch.multiple(lint, failures=[], passes=0):
            lint.check_streams(path, text)
            equal(len(lint.failures), breaches, (path, text))
    assert lint.STREAM_ENDS.search((ROOT / lint.STREAM_HOMES[0]).read_text()), "the home of the rule has no such call"
