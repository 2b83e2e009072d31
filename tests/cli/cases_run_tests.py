"""Does what runs the tests (tools/gates/run_tests.py) notice what did not run, or did not end well?

SPDX-License-Identifier: MIT
"""
import contextlib
import io
import os
import subprocess
import sys
from unittest import mock

from helpers import ROOT, check, contains, equal

sys.path.insert(0, str(ROOT / "tools" / "gates"))
import counting
import processes
import run_tests
import stage

EVERY = run_tests.STAGES + run_tests.NIGHTLY


def run_stages(names, answer, tests=None):
    """(exit status, what was said) of a full run of these stages. Nothing is started: answer(command) is what comes of it."""
    def execute(command, *_):
        output, status = answer(command)
        return processes.Outcome(output, status)

    def run_as_a_program(self, title, folder, choose, **_):
        self.program(title, ["meson", "test", folder, *(test["name"] for test in LISTED if choose(test))])
    said = io.StringIO()
    with mock.patch.object(stage, "execute", execute), mock.patch.object(stage.Stage, "tests", tests or run_as_a_program), \
            mock.patch.object(run_tests.stages, "native_tiers", lambda: ["scalar"]), mock.patch("shutil.which", lambda tool: tool), contextlib.redirect_stdout(said):
        ran, skipped = run_tests.run([stage for stage in EVERY if stage[0] in names], True)
        status = run_tests.summarize(ran, skipped, "")
    return status, said.getvalue()


LISTED = [{"name": suite, "suite": [f"deberta:{suite}"]} for suite in ("unit", "golden", "kernels", "cli", "long")]
FINE = "1 passed, 0 failed\n" * 3


def test_any_failure_in_any_stage_fails_the_run(bench):
    """Each process of each stage fails once: it is named, and counted in the last line."""
    for name, *_ in EVERY:
        commands = []
        status, said = run_stages([name], lambda command: commands.append(command) or (FINE, 0))
        equal((status, said.split()[-5:-2]), (0, ["passed,", "0", "failed,"]), (name, said))
        for broken in {tuple(command) for command in commands}:
            for bad in (("3 passed, 0 failed\n" * 3, 1), ("2 passed, 1 failed\n" * 3, 1), ("", None)):
                status, said = run_stages([name], lambda command: bad if tuple(command) == broken else (FINE, 0))
                failed = int(said.rstrip().split("\n")[-1].split()[2])
                check(status == 1 and failed >= 1 and " ".join(broken) in said and "\nfailed: " + name in said, (name, broken, said))


def test_every_test_of_the_build_has_a_stage(bench):
    """One of the two that --full takes, whatever waits there for its turn; and once."""
    listed = stage.introspect(os.path.dirname(bench.program), "tests")
    chosen = []
    run_stages(["native", "program"], lambda command: (FINE, 0), lambda self, title, folder, choose, **_: chosen.extend(test["name"] for test in listed if choose(test)))
    equal(sorted(chosen), sorted(test["name"] for test in listed if test["name"] not in ("checkasm", "cli check_hub")))


def test_what_could_not_be_built_has_failed(bench):
    status, said = run_stages(["neon", "native"], lambda command: (FINE, int(command[:3] == ["ninja", "-C", "build-arm64"])))
    contains(said, "neon: building build-arm64: failed", "tiers that ran and passed: scalar (native)")
    equal(status, 1)


def test_a_stage_that_ends_in_a_fault_has_failed(bench):
    def tests(*_, **__):
        raise KeyError("made up")
    status, said = run_stages(["threads"], lambda command: (FINE, 0), tests)
    contains(said, "failed: threads: KeyError: 'made up'")
    equal(status, 1)


PROJECT = """project('small', 'c')
add_test_setup('quick', env: {'QUICK': '1'}, exclude_suites: 'long', timeout_multiplier: 10)
shell = find_program('sh')
foreach name, script : {'fine': 'echo 1..2; echo ok 1 - a; echo ok 2 - b $QUICK', 'bad': 'echo 1..2; echo ok 1 - a; echo not ok 2 - b; echo \\# why; exit 1',
    'missing': 'echo 1..3; echo ok 1 - a', 'skipped': 'echo 1..1; echo ok 1 - a \\# SKIP c'}
    test(name, shell, args: ['-c', script], protocol: 'tap', suite: 'unit')
endforeach
test('closing line', shell, args: ['-c', 'echo 3 passed, 0 failed, 2 skipped'], suite: 'golden')
test('left out', shell, args: ['-c', 'exit 77'], suite: 'golden')
test('late', shell, args: ['-c', 'sleep 9'], timeout: 1, suite: 'unit')
test('long', shell, args: ['-c', 'exit 1'], suite: 'long')
"""


def test_tests_of_a_build(bench):
    """Meson runs them; its log is read. What failed is named and shown, what has no result has failed."""
    bench.write("meson.build", PROJECT)
    subprocess.run(["meson", "setup", "small"], cwd=bench.folder, check=True, stdout=subprocess.DEVNULL)
    small, said = os.path.join(bench.folder, "small"), io.StringIO()

    def counts_of(choose, **about):
        one = stage.Stage("stage", "says", lambda: 1)
        with contextlib.redirect_stdout(said):
            one.tests("tests", small, choose, **about)
        return one.counts, sorted(one.failures), one.tier_failures
    equal(counts_of(lambda test: test["name"] != "late"), ((7, 4, 4), ["bad", "long", "missing"], 0))
    equal(counts_of(lambda test: test["name"] == "late"), ((0, 1, 0), ["late"], 0))
    equal(counts_of(lambda test: test["name"] in ("fine", "long"), quick=True), ((2, 0, 0), [], 0))
    equal(counts_of(lambda test: test["name"] in ("fine", "bad"), quick=True, wrapper="env A=1"), ((3, 1, 0), ["bad"], 0))
    equal(counts_of(lambda test: False), ((0, 1, 0), ["tests: no test ran"], 0))
    contains(said.getvalue(), "stage: bad: failed, status 1", "not ok 2 - b\n    # why")


def test_what_takes_turns_has_its_turn(bench):
    """Each day a part runs and the rest is left to the stage that takes it; in as many days as there are parts all of it has run."""
    rows, ran = [{"name": f"t{k}", "suite": ["deberta:cli"], "priority": k} for k in range(7)], []
    for day in range(3):
        with mock.patch.object(stage, "introspect", lambda *_: rows), mock.patch.dict(os.environ, DEBERTA_TEST_DAY=str(739000 + day)), \
                mock.patch.multiple(stage.Stage, build_for=lambda *_: None, run_chosen=lambda self, title, folder, chosen, *_: ran.extend(test["name"] for test in chosen)):
            one, before = stage.Stage("stage", "says", lambda: 1), len(ran)
            one.tests("tests", "build", turns=3, nightly="whole")
            equal(sorted(ran[before:] + one.left["whole"]), [row["name"] for row in rows])
    equal(sorted(ran), [row["name"] for row in rows])


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


def test_a_program_that_is_missing_has_failed(bench):
    one = stage.Stage("stage", "says", lambda: 1)
    with contextlib.redirect_stdout(io.StringIO()):
        one.program("missing", ["/nowhere/at all"])
    equal((one.counts, one.failures), ((0, 1, 0), ["missing"]))


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


def test_every_file_of_cases_is_a_test_of_meson(bench):
    folder = ROOT / "tests" / "cli"
    listed = (folder / "meson.build").read_text(encoding="utf-8")
    missing = [path.name for path in folder.glob("cases_*.py") if f"'{path.stem[len('cases_'):]}'" not in listed]
    check(not missing, missing)


PAGE = "| file | what it does |\n|---|---|\n| `a.py` | does this |\n| `b.py` | does that |\n"
FIRST, SECOND = '#include "core/a.h"\n', '#include "core/b.h"\n'
INSIDE = 'static void a(void)\n{\n    plain_numbers n = plain_numbers_begin();\n    fprintf(f, "%.17g", x);\n    plain_numbers_end(n);\n}\n'
OUTSIDE = 'static void b(void)\n{\n    fprintf(f, "%.17g", x);\n}\n'
BREACHES = {  # of a rule of lint.py: what it is given, and how many breaches that has
    "check_tools_listed": [(("tools/a.py", "tools/b.py", "tools/README.md", "core/c.c"), PAGE, 0), (("tools/a.py", "tools/b.py", "tools/c.py"), PAGE, 1), (("tools/a.py",), PAGE, 1)],
    "check_include_order": [("core/c.c", FIRST + SECOND, 0), ("core/c.c", SECOND + FIRST, 1), ("core/c.c", SECOND + "\n" + FIRST, 0),
                            ("core/c.c", FIRST + "\n" + FIRST, 1), ("simd/c.c", SECOND + FIRST, 0), ("tests/c.c", "#include <b.h>\n#include <a.h>\n", 0)],
    "check_static_names": [({f"core/{k}.c": "static int run(void)\n{\n}\n" for k in range(files)}, breaches) for files, breaches in ((3, 0), (4, 1))],
    "check_plain_numbers": [("train/a.c", INSIDE, 0), ("train/a.c", OUTSIDE, 1), ("train/a.c", INSIDE + OUTSIDE, 1), ("core/io/a.c", "x = strtod(t, NULL);", 1),
                            ("core/a.c", 'sscanf(t, "%lf", &x);', 1), ("core/a.c", 'snprintf(t, n, "%zu", k);', 0), ("core/a.c", "/* strtod(t) */", 0), ("program/a.c", OUTSIDE, 0)],
    "check_streams": [("program/a.c", "if (fclose(file) != 0) return;", 1), ("train/a.c", "fflush (log);", 1), ("core/io/a.c", "x = fclose(f) + fflush(f);", 1),
                      ("core/a.c", "/* no fclose(f) */ stream_discard(f); // nor fflush(f)", 0), ("viz/a.c", "my_fclose(f);", 0), ("core/base/text.c", "fclose(f);", 0),
                      ("tests/unit/a.c", "fclose(f);", 0)],
}


def test_lint_finds_breaches(bench):
    import lint
    for rule, rows in BREACHES.items():
        for *given, breaches in rows:
            with mock.patch.multiple(lint, failures=[], passes=0):
                getattr(lint, rule)(*given)
                equal(len(lint.failures), breaches, (rule, given))
    assert lint.STREAM_ENDS.search((ROOT / lint.STREAM_HOMES[0]).read_text()), "the home of the rule has no such call"
