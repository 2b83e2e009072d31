"""The stages: what each builds, and which tests and programs it runs.

A stage is a function that does its steps one after the other; `full` says whether the run takes everything. SPDX-License-Identifier: MIT
"""
import functools
import os
import re
import shutil
import subprocess
import sys

from machine import day, has_flag, native_tiers
from processes import ROOT
from stage import suites_of

SANITIZER_OPTIONS = {"ASAN_OPTIONS": "detect_leaks=1:allocator_may_return_null=1", "UBSAN_OPTIONS": "halt_on_error=1:print_stacktrace=1",
                     "LSAN_OPTIONS": f"suppressions={ROOT}/tools/gates/leaks.supp:print_suppressions=0"}
# Half of a run is compilation, so optimization is just enough for quick tests, with line numbers as debug symbols.
SANITIZED_OPTIONS = ["-Db_lundef=false", "-Doptimization=1", "-Ddebug=true", "-Db_ndebug=false"]
THREAD_OPTIONS = ["-Db_sanitize=thread", *SANITIZED_OPTIONS, "-Dc_args=-g1", "-Dviz=disabled"]
NEON_TIERS = ("neon", "neondot", "neoni8mm")
X86 = os.uname().machine == "x86_64"
# Number of parts of divided tests: each run takes one part, a nightly stage all.
NATIVE_TURNS, KERNEL_TURNS, CLANG_TURNS, SANITIZER_TURNS, NEON_TURNS, NEON_KERNEL_TURNS, IDENTITY_TURNS, PYTHON_TURNS = 8, 8, 8, 8, 4, 8, 8, 8
CLANG_UNIT_TURNS, SAMPLED_TURNS = 4, 3  # the last in a run without --full


def names(*wanted):
    return lambda test: test["name"] in wanted


def suites(*wanted, without=()):
    return lambda test: suites_of(test).intersection(wanted) and not suites_of(test).intersection(without)


def lint(stage, folder, *options):
    """Runs lint as one test, however many places it checks."""
    stage.program("lint", [sys.executable, "tools/gates/lint.py", *options, folder], of_tiers=False)


def native_build(stage, *targets):
    """Configures build/ as build.sh does; existing options stay."""
    stage.configure("build", [] if os.path.exists(os.path.join(ROOT, "build", "build.ninja")) else ["--buildtype=release"])
    stage.build("build", targets)


def part_of_today(parts):
    """Returns K/N, another K every day."""
    return f"{day() % parts + 1}/{parts}"


def native_kernels(stage, title, *options):
    # With the tiers that this processor must have, since tests skip a missing one, whether processor or build lacks it.
    stage.program(title, ["build/tests/checkasm/checkasm", *options, *(f"--require={tier}" for tier in native_tiers())])


def native(stage, full):
    """Tests the library: all but the program from outside."""
    beyond = {"cli", "long", "sampled"} | (set() if full else {"full"})
    native_build(stage)
    stage.tests("tests", "build", lambda test: test["name"] != "checkasm" and not suites_of(test) & beyond)
    stage.tests("samples of what has many combinations", "build", suites("sampled", without=("cli",)), quick=True)
    native_kernels(stage, "kernels, every tier of this processor, a sample", "--quick")
    if full:
        stage.tests("what tests the tests", "build", suites("long", without=("cli",)), turns=NATIVE_TURNS, nightly="native-whole")
        native_kernels(stage, f"kernels, whole, {part_of_today(KERNEL_TURNS)}", f"--part={part_of_today(KERNEL_TURNS)}")
        stage.leave("native-whole", "the other kernels whole", "the samples whole")
    lint(stage, "build", *["--format"] * full)
    stage.tiers = [(tier, "native") for tier in native_tiers()]


def program(stage, full):
    """Tests the program from outside."""
    beyond = () if full else ("full", "long")
    native_build(stage)
    stage.tests("the program", "build", suites("cli", without=("sampled", "turns", "long", *beyond)))
    stage.tests("samples of what has many combinations", "build", lambda test: suites_of(test) >= {"cli", "sampled"} and "turns" not in suites_of(test), quick=True,
                turns=1 if full else SAMPLED_TURNS, nightly="native-whole")
    if full:
        stage.tests("what takes turns", "build", suites("turns"), quick=True, turns=NATIVE_TURNS, nightly="native-whole")
    else:
        stage.leave("native-whole", "what takes turns")


def native_whole(stage, _full):
    """Runs everything of which the stages native and program take samples or turns."""
    native_build(stage)
    stage.tests("tests", "build", suites("sampled", "turns", "long"))
    native_kernels(stage, "kernels, every tier of this processor")


def without_fma(stage, _full):
    # The same programs on a base processor: the build must not assume more than the base instruction set.
    native_build(stage, "tests/checkasm/checkasm", "tests/golden/golden")
    emulator = ["qemu-x86_64-static", "-cpu", "Nehalem"]
    part = part_of_today(4)
    stage.program(f"checkasm, {part}", emulator + ["build/tests/checkasm/checkasm", "--quick", f"--part={part}", "--require=scalar"])
    stage.program("golden", emulator + ["build/tests/golden/golden", "--isa", "scalar", "--only", "01-,16-,33-", "--failures-only"])
    stage.tiers = [("scalar", "without FMA, under qemu")]
    if not has_flag("avx2"):
        stage.program("checkasm on an AVX2 processor", ["qemu-x86_64-static", "-cpu", "Haswell", "build/tests/checkasm/checkasm", "--quick",
                                                        "--no-guard", "--require=avx2"])
        stage.tiers.append(("avx2", "kernels, under qemu"))
    stage.leave("without-fma-whole", "the other kernels, golden cases")


def without_fma_whole(stage, _full):
    native_build(stage, "tests/checkasm/checkasm", "tests/golden/golden")
    emulator = ["qemu-x86_64-static", "-cpu", "Nehalem"]
    stage.program("checkasm", emulator + ["build/tests/checkasm/checkasm", "--quick", "--require=scalar"])
    stage.program("golden", emulator + ["build/tests/golden/golden", "--isa", "scalar", "--only", "01-,08-,16-,20-,33-,36-", "--failures-only"])


def build_for_neon(stage, *targets):
    stage.configure("build-arm64", ["-Dviz=disabled", "--werror"], cross_file="tools/gates/cross-aarch64.ini")
    stage.build("build-arm64", targets or ["tests/golden/golden", "tests/golden/identity", "tests/checkasm/checkasm"])


def on_neon(stage, title, cpu, program, *words, limit=1800):
    stage.program(title, ["qemu-aarch64-static", "-cpu", cpu, f"build-arm64/tests/{program}", *words], limit=limit)


def neon_kernels(stage, title, *options):
    """Tests all kernels on an emulated processor with all features."""
    on_neon(stage, title, "max", "checkasm/checkasm", "--quick", *options, *(f"--require={tier}" for tier in NEON_TIERS))


PRODUCTS = ("gemm_u8", "gemm_u8x2")


def products_without_a_part(stage, *kernels):
    """Tests products of integers where a processor lacks parts of a tier."""
    for kernel in kernels:
        on_neon(stage, f"{kernel} on cortex-a53", "cortex-a53", "checkasm/checkasm", "--quick", f"--kernel={kernel}", "--require=neon")


NEON_TOKENIZERS = names("unigram", "piece_bpe", "sentencepiece", "tokenizer")


def neon(stage, _full):
    # What the tier computes. The rest of the tests knows no tier, and its clocks and threads are not an emulator's. Of the tokenizers sums of
    # scores, which are the only floating-point numbers outside the kernels that decide something.
    build_for_neon(stage)
    elsewhere = {"oracle", "appendix", "checkasm"}  # reference against golden results, without kernels, which are tested below
    stage.tests("golden results", "build-arm64", lambda test: suites_of(test) & {"kernels", "golden"} and test["name"] not in elsewhere, quick=True)
    stage.tests("tokenizers", "build-arm64", NEON_TOKENIZERS, quick=True, turns=NEON_TURNS, nightly="neon-whole")
    part = part_of_today(IDENTITY_TURNS)
    on_neon(stage, f"one arithmetic, a sample, {part}", "max", "golden/identity", "--folder", "tests/golden", "--quick", "--part", part)
    part = part_of_today(NEON_KERNEL_TURNS)
    neon_kernels(stage, f"kernels, {part}", f"--part={part}")
    products_without_a_part(stage, *PRODUCTS[day() % 2:][:1])
    stage.leave("neon-whole", "the other kernels", "the other parts of one arithmetic")
    stage.tiers = [(tier, "under qemu-aarch64") for tier in NEON_TIERS]


def neon_whole(stage, _full):
    """What the stage neon takes a sample of: every kernel, every case in every precision, the large one, every length on every number of threads."""
    build_for_neon(stage)
    neon_kernels(stage, "kernels")
    products_without_a_part(stage, *PRODUCTS)
    stage.tests("tokenizers", "build-arm64", NEON_TOKENIZERS, quick=True)
    on_neon(stage, "golden", "max", "golden/golden", "--folder", "tests/golden", "--failures-only", limit=7200)
    on_neon(stage, "one arithmetic", "max", "golden/identity", "--folder", "tests/golden", limit=7200)


def avx512_emulated(stage, _full):
    cases = ["01-v1-both-n33", "16-v3-b256-n33", "20-v2-conv-gelu-b3"]
    golden = "build/tests/golden/golden --isa avx512 --failures-only --only"
    programs = [("checkasm", "build/tests/checkasm/checkasm --quick --isa=avx512 --require=avx512 --no-guard"), ("golden", f"{golden} {','.join(cases)}"),
                ("golden with stand-ins", f"{golden} {cases[0]} --stand-ins")]
    native_build(stage, "tests/checkasm/checkasm", "tests/golden/golden")
    # One start for all: the emulated machine needs some seconds to boot. Each must have said its counts; they are added up to one closing line.
    script = "failed=0\n" + "".join(f"{program} >/tmp/log || failed=1; cat /tmp/log\n" for _, program in programs) + "exit $failed"
    files = ["build/tests/checkasm/checkasm", "build/tests/golden/golden", "tests/golden/bars.tsv", "tests/golden/bits.tsv", "tests/golden/formats", "/bin/cat"]
    files += [f"tests/golden/{name}" for name in cases]
    command = ["tools/gates/run-avx512-bochs.sh", "-t", "1500", *(word for path in files for word in ("-f", path)), "/bin/sh", "-c", script]
    stage.program(", ".join(title for title, _ in programs), command, programs=len(programs))
    stage.tiers = [("avx512", "under Bochs")]


def build_without_training(stage, *targets):
    """Builds all but some files as build/ does, so that they come from the compiler's cache."""
    stage.configure("build-without-training", ["-Dtraining=disabled", "--buildtype=release"])
    stage.build("build-without-training", targets)


def without_training(stage, _full):
    """Tests that a build without training measures and draws all the same."""
    build_without_training(stage, "deberta")
    stage.program("it refuses, and does the rest", [sys.executable, "tests/install/without_training.py", "build-without-training/deberta"], of_tiers=False)
    stage.leave("without-training-whole", "units and golden results")


def without_training_whole(stage, _full):
    build_without_training(stage)
    stage.tests("tests", "build-without-training", suites("unit", "golden"), quick=True)


# Waiting threads sleep, because other processes need the processors on which they would spin.
KNOWS_LOOPS = names("parallel", "session")  # units that run loops on OpenMP
CLANG_TESTS = {"quick": True, "environment": {"OMP_WAIT_POLICY": "passive"}}


def configure_with_clang(stage):
    """Has three independent switches: clang, loops on OpenMP, no figures. Warnings are errors; a nightly run compiles all that there is."""
    stage.configure("build-clang", ["-Dthreads=openmp", "-Dviz=disabled", "--werror", "--buildtype=release"], native_file="tools/gates/clang.ini")


def second_compiler(stage, _full):
    """Tests kernels, golden results and, by turns, units and the parts of the program that these switches change."""
    configure_with_clang(stage)
    stage.build("build-clang", ["deberta", library_name()])
    stage.tests("tests", "build-clang", lambda test: suites_of(test) & {"kernels", "golden"} or KNOWS_LOOPS(test), **CLANG_TESTS)
    stage.tests("units", "build-clang", lambda test: "unit" in suites_of(test) and not KNOWS_LOOPS(test), turns=CLANG_UNIT_TURNS, nightly="clang-whole", **CLANG_TESTS)
    stage.tests("the program", "build-clang", suites("switches"), turns=CLANG_TURNS, nightly="clang-whole", **CLANG_TESTS)
    lint(stage, "build-clang", "--objects")


def clang_whole(stage, _full):
    configure_with_clang(stage)
    stage.build("build-clang")
    stage.tests("units and the program", "build-clang", suites("unit", "switches"), **CLANG_TESTS)


SANITIZED_TIERS = ("scalar", "scalar_fma")
SANITIZER_TESTS = {"quick": True, "environment": SANITIZER_OPTIONS}


def configure_sanitized(stage):
    # Its tests train and encode for minutes with these kernels. A fault ends the process, since checks that can go on compile longer.
    stage.configure("build-sanitize", ["-Db_sanitize=address,undefined", "-Dkernels=fast", "-Dc_args=-g1 -fno-sanitize-recover=all", *SANITIZED_OPTIONS], native_file="tools/gates/clang.ini")


def is_sanitized(test):
    """Selects all tests but the kernels, which are below, and those of the program that open untrusted input."""
    return test["name"] != "checkasm" and (not suites_of(test) & {"cli"} or suites_of(test) & {"foreign"})


def has_turns_when_sanitized(test):
    """Of the program what reads or writes files in ways of its own; what computes or measures for long what other tests compute as well."""
    return test["name"] in ("verify", "identity", "smoothing", "sweep", "train direction") or ("files" in suites_of(test) and "foreign" not in suites_of(test))


def sanitizers(stage, _full):
    """Selects the kernels that are sanitized (simd/meson.build)."""
    configure_sanitized(stage)
    stage.build("build-sanitize", ["tests/checkasm/checkasm"])
    stage.tests("tests", "build-sanitize", lambda test: is_sanitized(test) and not has_turns_when_sanitized(test), **SANITIZER_TESTS)
    stage.tests("what takes turns", "build-sanitize", has_turns_when_sanitized, turns=SANITIZER_TURNS, nightly="sanitizers-whole", **SANITIZER_TESTS)
    sanitized_kernels(stage, *SANITIZED_TIERS[day() % 2:][:1])
    stage.leave("sanitizers-whole", "kernels of the other plain tier")


def sanitized_kernels(stage, *tiers):
    for tier in tiers:
        stage.program(f"kernels, {tier}", ["build-sanitize/tests/checkasm/checkasm", "--quick", f"--isa={tier}"], environment=SANITIZER_OPTIONS)


def sanitizers_whole(stage, _full):
    configure_sanitized(stage)
    stage.build("build-sanitize", ["tests/checkasm/checkasm"])
    sanitized_kernels(stage, *SANITIZED_TIERS)
    stage.tests("tests", "build-sanitize", lambda test: "files" in suites_of(test) or has_turns_when_sanitized(test), **SANITIZER_TESTS)


def threads(stage, _full):
    # gcc 12's sanitizer ends at once where addresses are more random than 28 bits (vm.mmap_rnd_bits): setarch -R.
    stage.configure("build-threads", THREAD_OPTIONS)
    stage.build("build-threads", ["tests/golden/identity"])
    stage.tests("where threads meet", "build-threads", names("parallel", "session", "checkpoint", "tokenizer"), quick=True, wrapper="setarch -R")
    stage.program("one arithmetic, a sample", ["setarch", "-R", "build-threads/tests/golden/identity", "--folder", "tests/golden", "--quick", "--golden"])


@functools.lru_cache(maxsize=None)
def without_zip(root):
    """Returns golden cases whose weights are no zip archive, which the modules do not read."""
    def is_zip(folder):
        weights = os.path.join(folder, "pytorch_model.bin")
        if not os.path.exists(weights):
            return False
        with open(weights, "rb") as stream:
            return stream.read(2) == b"PK"
    folders = [entry for place in (root, os.path.join(root, "formats")) for entry in sorted(os.scandir(place), key=lambda entry: entry.name)]
    return [entry.name for entry in folders if re.match(r"f?\d\d-", entry.name) and not is_zip(entry.path)]


@functools.lru_cache(maxsize=None)
def node_flags():
    """Returns node's flags, cached because tests of the schedule create the stage a hundred times."""
    return subprocess.run([os.path.join(ROOT, "wasm", "node_flags.sh")], stdout=subprocess.PIPE, text=True, check=True).stdout.split()


def webassembly(stage, _full, sampled=True):
    """The three modules: kernels, golden results, damaged models; all against what the native program gives."""
    node = ["tests/wasm/run_node.py", *node_flags()]
    tiers = ("scalar", "exact", "relaxed")
    native_build(stage, "deberta")
    today = tiers if not sampled else tiers[day() % len(tiers):][:1]
    # Of the tests' programs those of today; a nightly run builds all that there is.
    targets = [*(f"deberta-{tier}.wasm" for tier in tiers), *(f"tests/{name}-{tier}.wasm" for tier in today for name in ("checkasm", "golden", "bad_models"))] * sampled
    stage.program("the modules are built without a warning", ["sh", "-c", "wasm/fetch_sources.sh build-wasm/sources && wasm/configure.py build-wasm && "
                                                              f"ninja -C build-wasm -j {stage.processors()} {' '.join(targets)} && wasm/pack.py build-wasm"])
    program = [*node, "tests/wasm/run_program.mjs"]
    for tier in today:
        isa = "scalar" if tier == "scalar" else "wasm"
        stage.program(f"checkasm, {tier}", [*program, f"build-wasm/tests/checkasm-{tier}.wasm", "--no-guard", *["--quick"] * sampled, f"--isa={isa}",
                                            f"--require={isa}"])
        # Every fmaf is a function call here, so low precision runs a sample of the cases, and only nightly.
        if not sampled or tier != "scalar":
            stage.program(f"golden, {tier}", [*program, f"build-wasm/tests/golden-{tier}.wasm", "--threads", "1", "--failures-only", "--isa", isa,
                                              "--only", ",".join(without_zip(os.path.join(ROOT, "tests", "golden")))],
                          environment={"DEBERTA_TEST_QUICK": "1"} if tier == "scalar" else {})
        stage.program(f"bad models, {tier}", [*program, f"build-wasm/tests/bad_models-{tier}.wasm", "--without-zip"])
    models = ["build-wasm", "models/demo", "build/deberta"]
    stage.program("texts, directed multiply-adds", [*node, "tests/wasm/run_bits.mjs", *models])
    stage.program("the package", [*node, "tests/wasm/run_package.mjs", *models], of_tiers=False)
    stage.program("sizes, damaged heads", [*node, "tests/wasm/run_sizes.mjs", *models[:2]], of_tiers=False)
    stage.program("damaged models", [*node, "tests/wasm/run_damaged.mjs", *models, "60" if sampled else "2000"], of_tiers=False)
    stage.tiers = [(tier, "WebAssembly in node") for tier in today]
    if sampled:
        stage.leave("wasm-whole", *(f"kernels, golden results: {tier}" for tier in tiers if tier not in today))


def webassembly_whole(stage, full):
    """Runs the same with every case of the kernels and many more damaged models."""
    webassembly(stage, full, sampled=False)


def contributing(stage, _full):
    stage.program("the diffs of CONTRIBUTING.md fit", [sys.executable, "tools/gates/try_contributing.py", "--fit"], of_tiers=False)
    stage.leave("contributing-whole", "what the diffs build and do")


def contributing_whole(stage, _full):
    stage.program("the diffs of CONTRIBUTING.md", [sys.executable, "tools/gates/try_contributing.py"], of_tiers=False)


def library_name():
    with open(os.path.join(ROOT, "include", "deberta.h"), encoding="utf-8") as header:
        version = re.findall(r"^#define DEBERTA_VERSION_(?:MAJOR|MINOR|PATCH) (\d+)", header.read(), re.M)
    return f"libdeberta.so.{'.'.join(version)}"


def python_tests(stage, title, *words, limit=3000):
    stage.program(title, [sys.executable, "tests/python/run.py", *words], limit=limit, of_tiers=False)


def python_package(stage, _full):
    """Runs the tests that share one environment, and a part of the slow ones."""
    python_tests(stage, "the wheel and the packages of its tests", "--prepare")
    part = part_of_today(PYTHON_TURNS)
    python_tests(stage, f"tests/python, of what takes long {part}", "--part", part)
    stage.leave("python-whole", "the rest of what takes long", "in Ray, datasets, datatrove", "with the address sanitizer")


def python_whole(stage, _full):
    python_tests(stage, "tests/python")
    python_tests(stage, "tests/python in Ray, datasets, datatrove", "--engines")
    configure_sanitized(stage)
    stage.build("build-sanitize", [library_name()])
    python_tests(stage, "tests/python with the address sanitizer", "--sanitized", f"build-sanitize/{library_name()}")


def bare_debian(suite):
    """Runs the README's first commands on a system with nothing installed."""
    def run(stage, _full):
        # Both run in one system, one after the other: the second finds what the first has left.
        stage.program("demo, then tests", ["tools/gates/bare_debian.sh", suite, "./build.sh demo && ./build.sh test"], limit=7200, of_tiers=False)
    return run


def cli_cases(stage, title, *words, environment, limit=1800):
    stage.program(title, [sys.executable, "tests/cli/run_cli_tests.py", "--program", "build/deberta", "--cases", *words], environment, limit, of_tiers=False)


def large_corpus(stage, _full):
    """Compares eight shards, some of which are killed and repeated, with one process."""
    native_build(stage, "deberta")
    cli_cases(stage, "200,000 texts in 8 shards", "shards", "--only", "large-corpus", environment={"DEBERTA_SHARDS_TEXTS": "200000"})


def failing_calls(stage, _full):
    """Makes each call of each writing command fail; the suite takes a sample of these."""
    native_build(stage, "deberta", "tests/failing_calls/failing_calls.so", "tests/failing_calls/failing_memory.so")
    cli_cases(stage, "failing calls, each", "failing_writes", environment={"DEBERTA_TEST_EVERY_CALL": "1"}, limit=7200)


def long_runs(stage, _full):
    """Repeats a service's work of a day, and checks that memory, descriptors and bits stay the same."""
    native_build(stage, "deberta", "tests/long/long_run")
    small = "synthetic:v3-small,layers=2,vocab=500,hidden=64,heads=2,intermediate=128"
    for model, run, count in ((small, "encodes", "20000"), ("models/demo", "opens", "2000")):
        stage.program(f"{count} {run}", ["build/tests/long/long_run", model, run, count], of_tiers=False)
    cli_cases(stage, "200,000 texts, killed and resumed", "encode_corpus", "--only", "killed-again-and-again", environment={"DEBERTA_RESUMED_TEXTS": "200000"})
    stage.configure("build-threads", THREAD_OPTIONS)
    stage.build("build-threads", ["tests/long/long_run"])
    stage.program("8 callers, thread sanitizer", ["setarch", "-R", "build-threads/tests/long/long_run", small, "callers", "1000"], of_tiers=False)


def audits(stage, _full):
    """Executes runs of this processor again on emulated ones."""
    native_build(stage, "deberta")
    build_for_neon(stage, "deberta")
    auditors = {"neon,scalar": ["qemu-aarch64-static", "-cpu", "max", os.path.join(ROOT, "build-arm64", "deberta")]}
    if shutil.which("bochs-bin"):
        program = os.path.join(ROOT, "build", "deberta")
        auditors["avx512"] = [os.path.join(ROOT, "tools", "gates", "run-avx512-bochs.sh"), "-t", "1500", "-f", ".", program]
    for tiers, auditor in auditors.items():
        cli_cases(stage, f"audits by {tiers}", "emulated_audits", environment={"DEBERTA_TEST_AUDITOR": " ".join(auditor), "DEBERTA_TEST_AUDITOR_TIERS": tiers}, limit=7200)


def drawn_cases(stage, _full):
    """Runs other models, texts and ways of training every day."""
    native_build(stage, "tests/drawn/drawn")
    stage.program(f"drawn cases, seed {day()}", ["build/tests/drawn/drawn", "--configurations", "2000", "--seed", str(day())], of_tiers=False)


def wheels(stage, _full):
    """Makes a release in a copy of the last commit, and tests it."""
    stage.program("tests/release", [sys.executable, "tests/release/run.py"], limit=3000, of_tiers=False)


def analysis(*tools):
    """Reads what the build has configured, without running it."""
    def run(stage, _full):
        native_build(stage, "deberta")
        stage.program(" ".join(tools) or "gcc's analyser and warnings, cppcheck", [sys.executable, "tools/gates/analysis.py", *tools], of_tiers=False)
    return run


def coverage(stage, _full):
    stage.program("lines that the tests run", [sys.executable, "tools/gates/coverage.py"], limit=7200, of_tiers=False)
