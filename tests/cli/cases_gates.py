"""Do the gates close: less covered, a finding of an analyser (tools/gates/coverage.py, analysis.py), a reader that crashes, a command that does not look at its writes, a digest of other bits, a big-endian processor, a large file?

SPDX-License-Identifier: MIT
"""
import contextlib
import io
import os
import pathlib
import shutil
import subprocess
import sys
from unittest import SkipTest, mock

from helpers import DEMO, ROOT, check, contains, ending, equal, wait_until

sys.path.insert(0, str(ROOT / "tools" / "gates"))
import analysis
import cases_failing_writes
import cases_info
import coverage
import lint

SOURCE = """int smaller(int a, int b);
int doubled(int a);
int smaller(int a, int b)
{
    if (a < b)
        return a;
    return b;
}
int doubled(int a)
{
    return a * 2;
}
"""
TEST = """#include <stdio.h>
int smaller(int a, int b);
int doubled(int a);
int main(int count, char **words)
{
    (void)words;
    int fine = (count > 1 || smaller(2, 3) == 2) && smaller(3, 2) == 2;
    doubled(2);
    printf("%d passed, %d failed\\n", fine, !fine);
    return !fine;
}
"""


def test_coverage_that_falls_is_named(bench):
    if not shutil.which("gcovr"):
        raise SkipTest("gcovr is not installed")
    os.makedirs(bench.path("core"))
    os.mkdir(bench.path("build-coverage"))
    for name, text in {"core/small.c": SOURCE, "main.c": TEST}.items():
        bench.write(name, text)
    subprocess.run(["gcc", "--coverage", "core/small.c", "main.c", "-o", "build-coverage/small"], check=True)

    def figures_of(*words):
        for path in coverage.counts_below("build-coverage"):
            os.remove(path)
        subprocess.run(["build-coverage/small", *words], check=False, stdout=subprocess.DEVNULL)
        return coverage.figures()
    whole, less = figures_of(), figures_of("without a smaller one")
    equal((whole, less), ({"core": [6, 6, 2, 2]}, {"core": [6, 5, 2, 1]}))
    committed = {"core": (100.0, 100.0)}
    equal(list(coverage.fallen(whole, committed)), [])
    contains(" ".join(coverage.fallen(less, committed)), "core: 83.3 % of lines, 100.0 % are committed", "core: 50.0 % of branches")
    check("not in" in " ".join(coverage.fallen(whole, {})), "a folder without a figure")
    check("only in" in " ".join(coverage.fallen({}, committed)), "a figure without a folder")


def test_analysers_see_planted_faults_and_new_findings(bench):
    for tool in ("gcc", "cppcheck"):
        with contextlib.suppress(analysis.CannotRun):
            analysis.version_of(tool)
            equal(analysis.sees_planted_faults(tool), set(), tool)
    output = "core/io/a.c:3:1: warning: leak of 'x' [CWE-401] [-Wanalyzer-malloc-leak]\n"
    findings = [*analysis.findings_in("cppcheck", output, ""), *analysis.findings_in("cppcheck", output.replace(":3:", ":9:"), "")]
    kind = ("cppcheck", "core/io/a.c", "-Wanalyzer-malloc-leak")
    equal(analysis.not_accepted(findings, {kind: 2}), [])
    equal(len(analysis.not_accepted(findings, {kind: 1})), 2)
    equal(analysis.unneeded("cppcheck", findings, {kind: 3}), [kind])
    seen = [analysis.findings_in("clang-tidy", f"{path}core/base/text.c:3:1: warning: m [k]\n", str(ROOT / "tools")) for path in ("../", "", str(ROOT) + "/")]
    equal({finding.file for found in seen for finding in found}, {"core/base/text.c"})
    sources = [("core/io/a.c", ["cc"])]
    with mock.patch.object(analysis, "findings_of", lambda *_: findings), mock.patch.object(analysis, "version_of", lambda _: "1"), \
            mock.patch.object(analysis, "compilations", lambda _: sources), mock.patch.object(analysis, "sees_planted_faults", lambda _: set()), \
            contextlib.redirect_stdout(io.StringIO()) as said:
        equal(analysis.judge("cppcheck", "build"), (1, 1))
        sources.clear()
        equal(analysis.judge("cppcheck", "build"), (1, 1))
    contains(said.getvalue(), "core/io/a.c:3: leak of", "0 of them read and accepted", "build: no file of the library is compiled with its warnings")


CARELESS = """#include <stdio.h>
int main(void)
{
    FILE *file = fopen("x.json", "w");
    if (!file || fputs("whole\\n", file) < 0) return 4;
    fclose(file);
    return 0;
}
"""


HASTY = """#include <stdio.h>
#include <unistd.h>
int main(void)
{
    FILE *file = fopen("x.new", "w");
    if (!file || fputs("whole\\n", file) < 0 || fclose(file) != 0) return 4;
    unlink("x.json");
    return rename("x.new", "x.json") == 0 ? 0 : 4;
}
"""


def test_a_program_that_cannot_be_killed_everywhere_is_noticed(bench):
    with_failing_calls(bench)
    bench.program = compiled(bench, "deberta", HASTY)
    try:
        cases_failing_writes.killed(cases_failing_writes.Case("hasty", ["hasty", "-q"], ["x.json"], keeps=r"x\.new", again=["hasty"]))(bench)
    except AssertionError as failure:
        contains(str(failure), "x.json is gone")
    else:
        check(False, "a hasty program passed")


def test_a_write_that_nobody_looks_at_is_noticed(bench):
    with_failing_calls(bench)
    bench.program = compiled(bench, "deberta", CARELESS)
    try:
        cases_failing_writes.failing(cases_failing_writes.Case("careless", ["careless", "-q"], ["x.json"]))(bench)
    except AssertionError as failure:
        contains(str(failure), "exit 0, and x.json is not what it should be")
    else:
        check(False, "a careless program passed")


def with_failing_calls(bench):
    """What is preloaded lies beside the program, also beside one that a test makes."""
    preloaded = os.path.join(os.path.dirname(bench.program), cases_failing_writes.LIBRARY)
    if not os.path.exists(preloaded) or cases_failing_writes.is_sanitized(bench.program):
        raise SkipTest("system calls cannot be made to fail here")
    os.makedirs("tests/failing_calls")
    os.symlink(preloaded, cases_failing_writes.LIBRARY)


def compiled(bench, name, source, *more):
    path = bench.path(name)
    subprocess.run(["gcc", "-x", "c", "-", "-x", "none", *more, "-I", ROOT, "-o", path], input=source.encode(), check=True)
    return path


KEEPS_MEMORY = "void free(void *memory) { (void)memory; }\n"
KEEPS_FILES = "int close(int file) { return file < 0; }\n"


def test_a_service_that_grows_or_changes_is_noticed(bench):
    """Long runs end with what they noticed: memory or descriptors that are kept, and other bits, here of weights that are replaced."""
    runs = os.path.join(os.path.dirname(bench.program), "tests", "long", "long_run")
    if not os.path.exists(runs) or cases_failing_writes.is_sanitized(runs):
        raise SkipTest("no long runs are built here")
    for source, said in (("", ""), (KEEPS_MEMORY, "memory grows"), (KEEPS_FILES, "descriptors are left open")):
        kept = {"LD_PRELOAD": compiled(bench, "kept.so", source, "-shared", "-fPIC")} if source else {}
        ended = subprocess.run([runs, DEMO, "opens", "20"], env={**os.environ, **kept}, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, check=False)
        equal(ended.returncode, int(bool(said)), ended.stderr)
        contains(ended.stderr, said)
    shutil.copytree(DEMO, bench.path("demo"))
    weights = pathlib.Path(bench.path("demo/model.safetensors"))
    content = bytearray(weights.read_bytes())
    content[len(content) // 2:] = bytes(len(content) - len(content) // 2)
    bench.write("other", bytes(content))
    with subprocess.Popen([runs, bench.path("demo"), "opens", "2000"], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) as process, ending(process):
        check(wait_until(lambda: "model.safetensors" in pathlib.Path(f"/proc/{process.pid}/maps").read_text(encoding="utf-8")), "the model is open")
        os.rename(bench.path("other"), weights)
        contains(process.communicate(timeout=100)[1], "bits of a fixed text change")
    equal(process.returncode, 1)


READER = """#include <stdlib.h>
#include "tests/fuzz/fuzz.h"
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size > 3 && data[0] == 'd' && data[3] != 'e') abort();
    return 0;
}
"""


def test_a_reader_that_a_damaged_file_ends_is_noticed(bench):
    replay = compiled(bench, "replay", READER, str(ROOT / "tests" / "fuzz" / "replay.c"))
    bench.write("seed", "deberta")
    equal([subprocess.run([replay, "--mutations", count, "seed"], check=False, stdout=subprocess.DEVNULL).returncode for count in ("0", "300")], [0, -6])
    equal(subprocess.run([replay, "nothing"], check=False, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL).returncode, 1)


def test_a_digest_of_other_bits_is_noticed(bench):
    rows = (ROOT / "tests" / "golden" / "published.tsv").read_text(encoding="utf-8").splitlines()
    name, *digests = next(row for row in rows if row.startswith("synthetic:")).split("\t")
    for changed in (None, 0, len(digests) - 1):
        expected = [digest if k != changed else "0" + digest[1:] if digest[0] != "0" else "1" + digest[1:] for k, digest in enumerate(digests)]
        bench.write("published.tsv", "\t".join([name, *expected]) + "\n")
        bench.golden, failed = bench.folder, False
        try:
            cases_info.published_digests(0)(bench)
        except AssertionError:
            failed = True
        equal(failed, changed is not None, changed)


def test_a_big_endian_processor_is_refused(bench):
    bench.write("cross.ini", "[binaries]\nc = 'gcc'\nar = 'ar'\nstrip = 'strip'\npkg-config = 'pkg-config'\n"
                             "[host_machine]\nsystem = 'linux'\ncpu_family = 's390x'\ncpu = 's390x'\nendian = 'big'\n")
    ended = subprocess.run(["meson", "setup", bench.path("big"), ROOT, "--cross-file", "cross.ini"], stdout=subprocess.PIPE, text=True, check=False)
    equal(ended.returncode, 1)
    contains(ended.stdout, "big-endian processors are not supported")


def test_a_large_file_is_noticed(bench):
    for size, breaches in ((8_000_000, 0), (8_000_001, 1)):
        with mock.patch.multiple(lint, failures=[], passes=0), mock.patch.object(os.path, "getsize", lambda _: size):
            lint.check_sizes(["a"])
            equal(len(lint.failures), breaches, size)


def test_pages_are_compared(bench):
    """tools/gates/guard.py without words compares every page with what commands printed."""
    outputs = "docs/studies/data/outputs"
    for folder in ("tools/gates", outputs):
        os.makedirs(bench.path(folder))
    shutil.copy(ROOT / "tools" / "gates" / "guard.py", bench.path("tools/gates"))
    bench.write(f"{outputs}/commands.tsv", "small\tcheap\tdeberta info\n")
    bench.write(f"{outputs}/small.txt", "mean 1.25\n")
    bench.write("docs/studies/data/ties.tsv", "")

    def compared(page, *words):
        bench.write("README.md", page)
        done = subprocess.run([sys.executable, "tools/gates/guard.py", *words], cwd=bench.folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
        return done.returncode, done.stdout
    page = "<!-- sources: small -->\n\nThe mean is 1.25. <!-- = [small/mean/1] -->\n"
    for words in ((), ("README.md",)):
        code, said = compared(page, *words)
        equal((code, said.splitlines()[-1]), (0, "1 passed, 0 failed"), said)
        code, said = compared(page.replace("1.25", "1.35"), *words)
        equal(code, 1, said)
        contains(said, "README.md:3: stated 1.35; found 1.25", "0 passed, 1 failed")
    equal(compared("Nothing is tied.\n")[0], 1)
    equal(compared(page, "other.md")[0], 2)
