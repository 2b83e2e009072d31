#!/usr/bin/env python3
"""Runs the tests and adds them up; `./build.sh test [--full]` calls it.

    tools/run_tests.py                 everything in build/ and the lint rules
    tools/run_tests.py --full          also every stage below
    tools/run_tests.py --nightly       only the stages that take too long for every change
    tools/run_tests.py --stage NAME    only this stage; may be repeated

Stages, all of them after `build/` has been built:
    native            the tests in build/ and the lint rules
    without-fma       the scalar tier on a processor without FMA and AVX, under qemu
    neon              a cross build for aarch64, under qemu
    avx512-emulated   the AVX-512 tier on an emulated processor, under Bochs; --full takes it only where this processor lacks AVX-512
    openmp            a build whose loops run on OpenMP: threads, golden results, one arithmetic
    options           a build without figures and its tests, without those of training; warnings are errors
    clang             a release build with the second compiler: kernels, golden results, one arithmetic
    sanitizers        clang's address and undefined-behaviour sanitizers over the whole suite
    threads           the compiler's thread sanitizer over the tests in which threads meet
    contributing      the diffs of CONTRIBUTING.md, applied to a copy that is built and run
    python            the Python package from its wheel, beside transformers, in an environment of its own (build-python)

Nightly stages:
    debian-12, -13    the README's first commands and the tests on a Debian system with nothing installed (tools/bare_debian.sh; needs root)

Emulated and sanitized programs run as `meson test --setup quick` would: fewer sizes, no long tests (tests/meson.build).
Says which tiers ran, and how. The last line is `N passed, N failed, N skipped`.

SPDX-License-Identifier: MIT
"""
import collections
import concurrent.futures
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from xml.etree import ElementTree as tree

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
COUNT = re.compile(r"^(\d+) passed, (\d+) failed(?:, (\d+) skipped)?$", re.M)
JOBS = str(min(os.cpu_count() or 1, 8))
SANITIZER_OPTIONS = {"ASAN_OPTIONS": "detect_leaks=1:allocator_may_return_null=1", "UBSAN_OPTIONS": "halt_on_error=1:print_stacktrace=1",
                     "LSAN_OPTIONS": f"suppressions={ROOT}/tools/leaks.supp:print_suppressions=0"}
# With these the caller's environment would weaken the tests, or have them write what they should compare with.
NOT_FROM_THE_CALLER = {"DEBERTA_UPDATE_GOLDEN", "DEBERTA_TEST_QUICK", "DEBERTA_TEST_SEED", "DEBERTA_ISA"}
# Longer than any single test may take (900 s, ten times that with --setup quick): meson itself stops one that hangs, and says which.
MESON_LIMIT = 3 * 3600


# The suites that run the kernels tier by tier; the others say nothing about a tier.
TIER_SUITES = {"kernels", "golden"}


class Totals:
    def __init__(self):
        self.passed = self.failed = self.skipped = 0
        self.tier_failures = 0  # of what a tier must pass

    def add(self, passed, failed, skipped=0, of_tiers=True):
        self.passed += passed
        self.failed += failed
        self.skipped += skipped
        self.tier_failures += failed if of_tiers else 0


totals = Totals()


def say(text):
    print(text, flush=True)


def count_output(text, returned_well):
    """Counts of one program: its own closing line, or itself as one test."""
    lines = COUNT.findall(text)
    counts = tuple(int(x or 0) for x in lines[-1]) if lines else (int(returned_well), 0, 0)
    return checked(counts, returned_well)


def checked(counts, returned_well):
    """Having tested nothing is no success, nor is ending badly without a failure to show."""
    passed, failed, skipped = counts
    if failed == 0 and (not returned_well or passed + skipped == 0):
        failed = 1
    return passed, failed, skipped


def execute(command, environment=None, timeout=3600):
    """Output and whether it ended well; a hanging command is stopped."""
    inherited = {name: value for name, value in os.environ.items() if name not in NOT_FROM_THE_CALLER}
    # A file, not a pipe: a grandchild that outlives the command would keep a pipe open.
    with tempfile.TemporaryFile() as output:
        process = subprocess.Popen(command, cwd=ROOT, stdout=output, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL,
                                   env={**inherited, **(environment or {})})
        late = ""
        try:
            process.wait(timeout)
        except subprocess.TimeoutExpired:
            late = f"\nstopped after {timeout} s"
            process.terminate()  # meson then stops the tests that it has started; SIGKILL would leave them running
            try:
                process.wait(30)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        output.seek(0)
        return output.read().decode(errors="replace") + late, process.returncode == 0 and not late


def show_end(command, output, lines):
    say("    " + " ".join(command))
    say("\n".join("    " + line for line in output.rstrip().split("\n")[-lines:]))


def run(title, command, environment=None, timeout=1800, of_tiers=True):
    """One program as a test of its own."""
    return add_program(title, command, *timed(command, environment, timeout), of_tiers)


def run_together(programs):
    """{title: command}: side by side, each as a test of its own."""
    with concurrent.futures.ThreadPoolExecutor(int(JOBS)) as pool:
        for (title, command), ended in zip(programs.items(), pool.map(timed, programs.values())):
            add_program(title, command, *ended)


def timed(command, environment=None, timeout=1800):
    begin = time.time()
    return *execute(command, environment, timeout), time.time() - begin


def add_program(title, command, output, well, seconds, of_tiers=True):
    counts = count_output(output, well)
    totals.add(*counts, of_tiers=of_tiers)
    say(f"  {title}: {counts[0]} passed, {counts[1]} failed, {counts[2]} skipped ({seconds:.0f} s)")
    if not well:
        show_end(command, output, 40)
    return output


def lint(build, *options):
    """One test, however many lines it looks at."""
    say("  " + run("lint", [sys.executable, "tools/lint.py", *options, build], of_tiers=False).rstrip().split("\n")[-1])


def must(title, command):
    """A step without which the following tests cannot run: counts as one failure when it fails."""
    output, well = execute(command)
    if not well:
        totals.add(0, 1)
        say(f"  {title} failed")
        show_end(command, output, 30)
    return well


def judges_tiers(name):
    """name: of a test in meson's log, `suite+suite - project:test`; one without suites may judge anything."""
    suites, dash, _ = name.partition(" - ")
    return not dash or bool(TIER_SUITES.intersection(suites.split("+")))


def subtests(path):
    """{name of a test: (passed, failed, skipped)}, of tests that speak the Test Anything Protocol: meson has counted them."""
    found = {}
    for suite in tree.parse(path).getroot().iter("testsuite") if os.path.exists(path) else ():
        number = {key: int(suite.get(key) or 0) for key in ("tests", "failures", "errors", "skipped")}
        failed = number["failures"] + number["errors"]
        found[suite.get("name").partition(".")[2]] = (number["tests"] - failed - number["skipped"], failed, number["skipped"])
    return found


def add_entry(entry, counts):
    """One test of meson's log. counts: what meson counted in it, or None."""
    text = entry.get("stdout", "") + "\n" + (entry.get("stderr") or "")
    well = entry["result"] in ("OK", "EXPECTEDFAIL", "SKIP")
    if counts is None:
        counts = (0, 0, 1) if entry["result"] == "SKIP" else count_output(text, well)
    totals.add(*checked(counts, well), of_tiers=judges_tiers(entry["name"]))
    if not well:
        say(f"    {entry['name']}: {entry['result']}")
        show_end(entry["command"], failures_in(text), 100)


def failures_in(text):
    """Of a test that speaks the Test Anything Protocol: what failed, with its comments. Of another: its end."""
    found = re.findall(r"^not ok (?!.*# SKIP).*\n(?:#.*\n)*", text, re.M)
    return "".join(found) or "\n".join(text.rstrip().split("\n")[-25:])


def listed_tests(build, arguments):
    """Names of the tests that meson would run, as its log has them."""
    output, well = execute(["meson", "test", "-C", build, "--no-rebuild", "--list", *arguments])
    return re.findall(r"^.*\w:\w.*$", output, re.M) if well else []


def meson_tests(title, build, arguments=(), environment=None):
    begin = time.time()
    expected = listed_tests(build, arguments)
    # meson names its log after the wrapper or the setup.
    names = [a.split()[0] for b, a in zip(arguments, arguments[1:]) if b in ("--setup", "--wrapper")]
    log, counted = (os.path.join(ROOT, build, "meson-logs", "testlog" + "".join("-" + n for n in names) + end) for end in (".json", ".junit.xml"))
    for old in (log, counted):
        if os.path.exists(old):
            os.remove(old)
    output, well = execute(["meson", "test", "-C", build, "--no-rebuild", "--num-processes", JOBS, *arguments], environment, MESON_LIMIT)
    before = (totals.passed, totals.failed, totals.skipped)
    entries = []
    if os.path.exists(log):
        with open(log, encoding="utf-8", errors="replace") as lines:
            entries = [json.loads(line) for line in lines]
    counts = subtests(counted)
    for entry in entries:
        add_entry(entry, counts.get(entry["name"]))
    missing = collections.Counter(expected) - collections.Counter(entry["name"] for entry in entries)
    for name in missing.elements():
        totals.add(0, 1, of_tiers=judges_tiers(name))
        say(f"    {name}: did not run")
    if not expected or not entries:
        totals.add(0, 1)
        say(f"  {title}: no test ran")
    unexplained = not well and totals.failed == before[1]  # meson knows of a failure that its log does not show
    totals.add(0, int(unexplained))
    if missing or not entries or unexplained:
        say("\n".join("    " + line for line in output.rstrip().split("\n")[-15:]))
    delta = [now - then for now, then in zip((totals.passed, totals.failed, totals.skipped), before)]
    say(f"  {title}: {len(entries)} programs, {delta[0]} passed, {delta[1]} failed, {delta[2]} skipped ({time.time() - begin:.0f} s)")


def build_in(build, *arguments, targets=()):
    """Configures if need be, and builds, everything or these targets."""
    begin = time.time()
    arguments = ("-Dtests=enabled", *arguments)
    configured = os.path.exists(os.path.join(ROOT, build, "build.ninja"))
    changeable = [a for a in arguments if not a.startswith(("--cross-file", "--native-file"))]
    configure = ["meson", "configure", build, *changeable] if configured else ["meson", "setup", build, *arguments]
    well = must(f"configuring {build}", configure) and must(f"building {build}", ["ninja", "-C", build, *targets])
    if well:
        say(f"  {build}: built ({time.time() - begin:.0f} s)")
    return well


def has_flag(flag):
    """Is this in the processor's list? (x86)"""
    try:
        with open("/proc/cpuinfo", encoding="utf-8", errors="replace") as lines:
            return any(line.startswith("flags") and flag in line.split() for line in lines)
    except OSError:
        return False


def native_tiers():
    """The tiers that this machine must be able to run: those that the build knows (simd/meson.build), with the words of /proc/cpuinfo
    that each needs. The stand-ins of parts run where their tier does."""
    with open("build/simd/tiers.txt", encoding="utf-8") as lines:
        words = {line.split()[0]: line.split()[2:] for line in lines if line.strip()}
    if os.uname().machine == "aarch64":
        return [tier for tier in ("scalar", "scalar_fma", "neon") if tier in words]
    words |= {f"{part}_stand_in": words[tier] for part, tier in (("avxvnni", "avx2"), ("avx512amx", "avx512")) if tier in words}
    return [tier for tier, flags in words.items() if all(has_flag(flag) for flag in flags)]


def native():
    say("native build")
    meson_tests("tests", "build")
    # The tests skip a tier that is missing, whether the processor or the build lacks it.
    run("tiers of this processor", ["build/tests/checkasm/checkasm", "--quick"] + [f"--require={tier}" for tier in native_tiers()])
    if "--full" in sys.argv:  # the suite lets some calls of each command fail, this each of them
        run("failing calls, each", [sys.executable, "tests/cli/run_cli_tests.py", "--program", "build/deberta", "--cases", "failing_writes"],
            {"DEBERTA_TEST_EVERY_CALL": "1"}, of_tiers=False)
    lint("build", *["--format"] * ("--full" in sys.argv))
    return [(tier, "native") for tier in native_tiers()]


def without_fma():
    say("a processor without FMA and AVX: the scalar tier (qemu, Nehalem)")
    # The same programs as they are: the build must not assume more than the base instruction set.
    emulator = ["qemu-x86_64-static", "-cpu", "Nehalem"]
    run("checkasm", emulator + ["build/tests/checkasm/checkasm", "--quick", "--require=scalar"])
    run("golden", emulator + ["build/tests/golden/golden", "--isa", "scalar", "--only", "01-,08-,16-,20-,33-,36-", "--failures-only"])
    ran = [("scalar", "without FMA, under qemu")]
    if "avx2" not in native_tiers():
        run("checkasm on an AVX2 processor", ["qemu-x86_64-static", "-cpu", "Haswell", "build/tests/checkasm/checkasm", "--quick",
                                              "--no-guard", "--require=avx2"])
        ran.append(("avx2", "kernels, under qemu"))
    return ran


def neon():
    say("aarch64: the NEON tier (cross build, qemu)")
    if build_in("build-arm64", "--cross-file=tools/cross-aarch64.ini", "-Dviz=disabled", "--werror"):
        # What the tier computes. The rest of the tests knows no tier, and its clocks and threads are not an emulator's.
        meson_tests("kernels and golden results", "build-arm64", ["--setup", "quick", "--suite", "kernels", "--suite", "golden",
                                                                  "--no-suite", "long"])
        programs = {f"one arithmetic, a sample, {part}": ["qemu-aarch64-static", "build-arm64/tests/golden/identity", "--folder", "tests/golden",
                                                          "--quick", "--part", part] for part in ("1/5", "2/5", "3/5", "4/5", "5/5")}
        programs |= {f"{kernel} on {cpu}": ["qemu-aarch64-static", "-cpu", cpu, "build-arm64/tests/checkasm/checkasm", "--quick",
                                            f"--kernel={kernel}", *(f"--require={tier}" for tier in tiers)]
                     for kernel in ("gemm_u8", "gemm_u8x2")
                     for cpu, tiers in (("max", ("neon", "neondot", "neoni8mm")), ("cortex-a53", ("neon",)))}
        run_together(programs)
        # And sums of scores, which are the only floating-point numbers outside the kernels that decide something.
        meson_tests("tokenizers", "build-arm64", ["--setup", "quick", "unigram", "piece_bpe", "sentencepiece", "tokenizer"])
    return [(tier, "under qemu-aarch64") for tier in ("neon", "neondot", "neoni8mm")]


def avx512_emulated():
    say("AVX-512 on an emulated processor (Bochs)")
    cases = ["01-v1-both-n33", "16-v3-b256-n33", "20-v2-conv-gelu-b3"]
    golden = "build/tests/golden/golden --isa avx512 --failures-only --only"
    programs = {"checkasm": "build/tests/checkasm/checkasm --quick --isa=avx512 --require=avx512 --no-guard",
                "golden": f"{golden} {','.join(cases)}", "golden with stand-ins": f"{golden} {cases[0]} --stand-ins"}
    # One start for all: the emulated machine needs some seconds to boot.
    script = "failed=0\n" + "".join(f"{program} >/tmp/log || failed=1; cat /tmp/log\n" for program in programs.values()) + "exit $failed"
    files = ["build/tests/checkasm/checkasm", "build/tests/golden/golden", "tests/golden/bars.tsv", "tests/golden/bits.tsv", "tests/golden/formats", "/bin/cat"]
    files += [f"tests/golden/{name}" for name in cases]
    command = ["tools/run-avx512-bochs.sh", "-t", "1500"]
    for path in files:
        command += ["-f", path]
    begin = time.time()
    output, well = execute(command + ["/bin/sh", "-c", script])
    counts = [tuple(int(x or 0) for x in found) for found in COUNT.findall(output)]
    for title, count in zip(programs, counts):
        totals.add(*count)
        say(f"  {title}: {count[0]} passed, {count[1]} failed, {count[2]} skipped")
    if not well or len(counts) != len(programs):
        totals.add(0, 0 if any(c[1] for c in counts) else 1)
        show_end(command, output, 40)
    say(f"  {time.time() - begin:.0f} s")
    return [("avx512", "under Bochs")]


def options():
    say("a build without figures and its tests, warnings are errors")
    if build_in("build-no-viz", "-Dviz=disabled", "--werror", "--buildtype=release"):
        meson_tests("without viz", "build-no-viz", ["--setup", "quick", "--suite", "unit", "--suite", "cli", "--no-suite", "long",
                                                   "--no-suite", "training"])
        lint("build-no-viz", "--objects")


def openmp():
    say("loops on OpenMP, warnings are errors")
    if build_in("build-openmp", "-Dthreads=openmp", "-Dviz=disabled", "--werror", "--buildtype=release"):
        meson_tests("threads", "build-openmp", ["--suite", "unit", "child", "parallel", "session", "weight_loader", "pack"])
        meson_tests("golden results, one arithmetic", "build-openmp", ["--setup", "quick", "--suite", "golden", "--no-suite", "long"])


def clang():
    say("release build with clang, warnings are errors")
    if build_in("build-clang", "--native-file=tools/clang.ini", "--werror", "--buildtype=release"):
        meson_tests("kernels and golden results", "build-clang", ["--setup", "quick", "--suite", "kernels", "--suite", "golden",
                                                                  "--no-suite", "long"])
        lint("build-clang", "--objects")


def build_sanitized(targets=()):
    return build_in("build-sanitize", "-Db_sanitize=address,undefined", "-Db_lundef=false", "--buildtype=debugoptimized",
                    "-Db_ndebug=false", "--native-file=tools/clang.ini", targets=targets)


def sanitizers():
    say("address and undefined-behaviour sanitizers, clang")
    if build_sanitized():
        meson_tests("tests", "build-sanitize", ["--setup", "quick"], SANITIZER_OPTIONS)


def threads():
    say("thread sanitizer: tests in which threads meet")
    names = ("parallel", "session", "checkpoint", "tokenizer")
    if build_in("build-threads", "-Db_sanitize=thread", "-Db_lundef=false", "--buildtype=debugoptimized", "-Db_ndebug=false",
                "-Dviz=disabled", targets=["tests/golden/identity", *("tests/unit/test_" + name for name in names)]):
        # gcc 12's sanitizer ends at once where addresses are more random than 28 bits (vm.mmap_rnd_bits): setarch -R.
        environment = {"DEBERTA_TEST_QUICK": "1", "DEBERTA_GOLDEN": os.path.join(ROOT, "tests", "golden")}
        meson_tests("where threads meet", "build-threads", ["--wrapper", "setarch -R", *names], environment)
        run("one arithmetic, a sample", ["setarch", "-R", "build-threads/tests/golden/identity", "--folder", "tests/golden", "--quick", "--golden"])


def contributing():
    say("what CONTRIBUTING.md shows, tried")
    run("its diffs", [sys.executable, "tools/try_contributing.py"], of_tiers=False)


def python_package():
    say("the Python package, installed from its wheel")
    run("tests/python", [sys.executable, "tests/python/run.py"], timeout=3000, of_tiers=False)
    with open("include/deberta.h", encoding="utf-8") as header:
        version = re.findall(r"^#define DEBERTA_VERSION_(?:MAJOR|MINOR|PATCH) (\d+)", header.read(), re.M)
    library = f"libdeberta.so.{'.'.join(version)}"
    if shutil.which("clang") and os.path.exists("build-python/wheels") and build_sanitized(targets=[library]):
        run("with the address sanitizer", [sys.executable, "tests/python/run.py", "--sanitized", f"build-sanitize/{library}"],
            timeout=3000, of_tiers=False)


# Name, what does it, the command without which it is skipped, whether --full takes it on this machine.
def bare_debian(suite):
    """What the README tells a newcomer to type, where nothing is installed."""
    say(f"Debian, nothing installed ({suite})")
    run(f"{suite}: demo", ["tools/bare_debian.sh", suite, "./build.sh demo"], of_tiers=False)
    run(f"{suite}: tests", ["tools/bare_debian.sh", suite, "./build.sh test"], timeout=3600, of_tiers=False)


# Name, function, the program without which it is skipped, and whether it runs unasked.
STAGES = [
    ("native", native, "meson", True),
    ("without-fma", without_fma, "qemu-x86_64-static", os.uname().machine == "x86_64"),
    ("neon", neon, "aarch64-linux-gnu-gcc", True),
    ("avx512-emulated", avx512_emulated, "bochs-bin", os.uname().machine == "x86_64" and not has_flag("avx512f")),
    ("openmp", openmp, "gcc", True),
    ("options", options, "gcc", True),
    ("clang", clang, "clang", True),
    ("sanitizers", sanitizers, "clang", True),
    ("threads", threads, "setarch", True),
    ("contributing", contributing, "meson", True),
    ("python", python_package, "ninja", True),
]
NIGHTLY = [
    ("debian-12", lambda: bare_debian("bookworm"), "unshare", os.geteuid() == 0),
    ("debian-13", lambda: bare_debian("trixie"), "unshare", os.geteuid() == 0),
]


def chosen_stages(arguments):
    """The stages to run; None if the arguments are wrong."""
    every = STAGES + NIGHTLY
    names = [stage[0] for stage in every]
    wanted = [b for a, b in zip(arguments, arguments[1:]) if a == "--stage"]
    rest = [a for i, a in enumerate(arguments) if a != "--stage" and (i == 0 or arguments[i - 1] != "--stage")]
    if any(a not in ("--full", "--nightly") for a in rest) or any(w not in names for w in wanted) or arguments[-1:] == ["--stage"]:
        print(f"run_tests.py: --full, --nightly, or --stage with one of {', '.join(names)}", file=sys.stderr)
        return None
    if wanted:
        return [stage for stage in every if stage[0] in wanted]
    if "--nightly" in rest:
        return [stage for stage in NIGHTLY if stage[3]]
    return [stage for stage in STAGES if stage[3]] if "--full" in rest else STAGES[:1]


def main():
    stages = chosen_stages(sys.argv[1:])
    if stages is None:
        return 2
    os.chdir(ROOT)
    begin = time.time()
    passed, failed = [], []  # tiers, and how they ran
    for name, function, tool, _ in stages:
        before = totals.tier_failures
        if shutil.which(tool):
            ran = [f"{tier} ({how})" for tier, how in function() or []]
            (passed if totals.tier_failures == before else failed).extend(ran)
        else:
            say(f"{name}: skipped, {tool} is not installed")
            totals.add(0, 0, 1)
    if len(sys.argv) == 1:
        say("emulated tiers, a second compiler, sanitizers: not run (./build.sh test --full)")
    say("tiers that ran and passed: " + ("; ".join(passed) or "none"))
    if failed:
        say("tiers among whose tests one failed: " + "; ".join(failed))
    say(f"{time.time() - begin:.0f} s")
    say(f"{totals.passed} passed, {totals.failed} failed, {totals.skipped} skipped")
    return 1 if totals.failed else 0


if __name__ == "__main__":
    sys.exit(main())
