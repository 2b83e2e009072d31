"""The stages: what each builds, and which tests and programs it runs.

A stage is a function that puts its jobs on the schedule; `full` says whether the run takes everything. SPDX-License-Identifier: MIT
"""
import functools
import os
import re
import shutil
import subprocess
import sys

from testing.builds import FIRST
from testing.machine import day, has_flag, native_tiers, turn_of_today
from testing.processes import ROOT
from testing.stage import Tests

SANITIZER_OPTIONS = {"ASAN_OPTIONS": "detect_leaks=1:allocator_may_return_null=1", "UBSAN_OPTIONS": "halt_on_error=1:print_stacktrace=1",
                     "LSAN_OPTIONS": f"suppressions={ROOT}/tools/leaks.supp:print_suppressions=0"}
# Half of a run compiles: as much optimisation as makes the tests quick, and of debug symbols the lines.
SANITIZED_OPTIONS = ["-Db_lundef=false", "-Doptimization=1", "-Ddebug=true", "-Db_ndebug=false", "-Dc_args=-g1"]
THREAD_OPTIONS = ["-Db_sanitize=thread", *SANITIZED_OPTIONS, "-Dviz=disabled"]
NEON_TIERS = ("neon", "neondot", "neoni8mm")
NEON_OPTIONS, NEON_MACHINE = ["-Dviz=disabled", "--werror"], "tools/cross-aarch64.ini"
PARTS = ("1/5", "2/5", "3/5", "4/5", "5/5")
PYTHON_PARTS = ("1/2", "2/2")
# Into how many parts is divided what takes turns: each run has one of them, a nightly stage all.
NATIVE_TURNS, KERNEL_TURNS, CLANG_TURNS, SANITIZER_TURNS, NEON_KERNEL_TURNS = 3, 4, 2, 4, 3
X86 = os.uname().machine == "x86_64"


def names(*wanted):
    return lambda test: test.name in wanted


def suites(*wanted, without=()):
    return lambda test: test.suites.intersection(wanted) and not test.suites.intersection(without)


def lint(stage, folder, *options, **about):
    """One test, however many places it looks at."""
    stage.program("lint", [sys.executable, "tools/lint.py", *options, folder], of_tiers=False, **about)


def native_build(stage, **about):
    """build/, as build.sh has it: somebody else's choice of options stays."""
    options = [] if os.path.exists(os.path.join(ROOT, "build", "build.ninja")) else ["--buildtype=release"]
    return stage.build("build", options, **about)


def parts_of_today(parts, how_many=1):
    """["K/N", ...]: other parts every day."""
    return [f"{(day() + k) % parts + 1}/{parts}" for k in range(how_many)]


def native_kernels(stage, built, title, *options, **about):
    # With the tiers that this processor must have: the tests skip one that is missing, whether processor or build lacks it.
    stage.program(title, lambda: ["build/tests/checkasm/checkasm", *options, *(f"--require={tier}" for tier in native_tiers())], after=[built], **about)


def native(stage, full):
    def wanted(test):
        return test.name != "checkasm" and (full or not test.suites & {"long", "full"})
    tests = [Tests("tests", lambda test: wanted(test) and not test.suites & {"sampled", "turns"}),
             Tests("samples of what has many combinations", lambda test: wanted(test) and "sampled" in test.suites, quick=True)]
    if full:
        tests.append(Tests("what takes turns", suites("turns"), turns=NATIVE_TURNS, nightly="native-whole"))
    built = native_build(stage, tests=tests, everything=True)
    native_kernels(stage, built, "kernels, every tier of this processor, a sample", "--quick", expected=15)
    if full:
        for part in parts_of_today(KERNEL_TURNS):
            native_kernels(stage, built, f"kernels, whole, {part}", f"--part={part}", expected=35)
        stage.leave("native-whole", "the other kernels whole", "the samples whole")
    lint(stage, "build", *["--format"] * full, expected=20, after=[built])
    stage.tiers = lambda: [(tier, "native") for tier in native_tiers()]


def native_whole(stage, _full):
    """What the stage native takes a sample of, and what takes turns there."""
    built = native_build(stage, tests=[Tests("tests", lambda test: test.suites & {"sampled", "turns"})], targets=["tests/checkasm/checkasm"])
    native_kernels(stage, built, "kernels, every tier of this processor", expected=130)


def without_fma(stage, _full):
    # The same programs as they are: the build must not assume more than the base instruction set.
    built = native_build(stage, targets=["tests/checkasm/checkasm", "tests/golden/golden"])
    emulator = ["qemu-x86_64-static", "-cpu", "Nehalem"]
    stage.program("checkasm", emulator + ["build/tests/checkasm/checkasm", "--quick", "--require=scalar"], expected=20, after=[built])
    stage.program("golden", emulator + ["build/tests/golden/golden", "--isa", "scalar", "--only", "01-,08-,16-,20-,33-,36-", "--failures-only"],
                  expected=10, after=[built])
    tiers = [("scalar", "without FMA, under qemu")]
    if not has_flag("avx2"):
        stage.program("checkasm on an AVX2 processor", ["qemu-x86_64-static", "-cpu", "Haswell", "build/tests/checkasm/checkasm", "--quick",
                                                        "--no-guard", "--require=avx2"], expected=60, after=[built])
        tiers.append(("avx2", "kernels, under qemu"))
    stage.tiers = lambda: tiers


def neon_kernels(stage, built, title, *options, **about):
    stage.program(title, ["qemu-aarch64-static", "-cpu", "max", "build-arm64/tests/checkasm/checkasm", "--quick", *options,
                          *(f"--require={tier}" for tier in NEON_TIERS)], after=[built], **about)


def neon(stage, _full):
    # What the tier computes. The rest of the tests knows no tier, and its clocks and threads are not an emulator's. Of the tokenizers sums of
    # scores, which are the only floating-point numbers outside the kernels that decide something.
    emulator = ["qemu-aarch64-static"]
    elsewhere = {"oracle", "appendix", "checkasm"}  # the reference against golden results, where no kernel takes part; kernels are below
    built = stage.build("build-arm64", NEON_OPTIONS, cross_file=NEON_MACHINE, tests=[
        Tests("golden results", lambda test: test.suites & {"kernels", "golden"} and "long" not in test.suites and test.name not in elsewhere,
              quick=True, wrapper=emulator, slower=10),
        Tests("tokenizers", names("unigram", "piece_bpe", "sentencepiece", "tokenizer"), quick=True, wrapper=emulator, slower=20)],
        targets=["tests/golden/identity", "tests/checkasm/checkasm"])
    for part in parts_of_today(len(PARTS)):
        stage.program(f"one arithmetic, a sample, {part}", [*emulator, "build-arm64/tests/golden/identity", "--folder", "tests/golden", "--quick", "--part", part],
                      expected=40, after=[built])
    # On a processor that has everything, and products of integers where it lacks the parts of a tier.
    for part in parts_of_today(NEON_KERNEL_TURNS):
        neon_kernels(stage, built, f"kernels, {part}", f"--part={part}", expected=60)
    stage.leave("neon-whole", "the other kernels", "the other parts of one arithmetic")
    for kernel in ("gemm_u8", "gemm_u8x2"):
        stage.program(f"{kernel} on cortex-a53", [*emulator, "-cpu", "cortex-a53", "build-arm64/tests/checkasm/checkasm", "--quick", f"--kernel={kernel}",
                                                  "--require=neon"], expected=4, after=[built])
    stage.tiers = lambda: [(tier, "under qemu-aarch64") for tier in NEON_TIERS]


def neon_whole(stage, _full):
    """What the stage neon takes a sample of: every kernel, every case in every precision, the large one, every length on every number of threads."""
    emulator = ["qemu-aarch64-static"]
    built = stage.build("build-arm64", NEON_OPTIONS, cross_file=NEON_MACHINE, targets=["tests/golden/golden", "tests/golden/identity", "tests/checkasm/checkasm"])
    neon_kernels(stage, built, "kernels", expected=180)
    stage.program("golden", [*emulator, "build-arm64/tests/golden/golden", "--folder", "tests/golden", "--failures-only"], limit=7200, expected=700, after=[built])
    for part in PARTS:
        stage.program(f"one arithmetic, {part}", [*emulator, "build-arm64/tests/golden/identity", "--folder", "tests/golden", "--part", part], limit=7200,
                      expected=300, after=[built])


def avx512_emulated(stage, _full):
    cases = ["01-v1-both-n33", "16-v3-b256-n33", "20-v2-conv-gelu-b3"]
    golden = "build/tests/golden/golden --isa avx512 --failures-only --only"
    programs = [("checkasm", "build/tests/checkasm/checkasm --quick --isa=avx512 --require=avx512 --no-guard"), ("golden", f"{golden} {','.join(cases)}"),
                ("golden with stand-ins", f"{golden} {cases[0]} --stand-ins")]
    built = native_build(stage, targets=["tests/checkasm/checkasm", "tests/golden/golden"])
    # One start for all: the emulated machine needs some seconds to boot. Each must have said its counts; they are added up to one closing line.
    script = "failed=0\n" + "".join(f"{program} >/tmp/log || failed=1; cat /tmp/log\n" for _, program in programs) + "exit $failed"
    files = ["build/tests/checkasm/checkasm", "build/tests/golden/golden", "tests/golden/bars.tsv", "tests/golden/bits.tsv", "tests/golden/formats", "/bin/cat"]
    files += [f"tests/golden/{name}" for name in cases]
    command = ["tools/run-avx512-bochs.sh", "-t", "1500", *(word for path in files for word in ("-f", path)), "/bin/sh", "-c", script]
    stage.program(", ".join(title for title, _ in programs), command, programs=len(programs), expected=300, after=[built])
    stage.tiers = lambda: [("avx512", "under Bochs")]


def build_without_training(stage, **about):
    """All but some files is compiled as build/ has it, and comes from the compiler's cache."""
    native_program = native_build(stage, targets=["deberta"])
    built = stage.build("build-without-training", ["-Dtraining=disabled", "--buildtype=release"], **about)
    built.after.append(native_program)
    return built


def without_training(stage, _full):
    """What measures and looks does not need what trains."""
    built = build_without_training(stage, targets=["deberta"])
    stage.program("it refuses, and does the rest", [sys.executable, "tests/install/without_training.py", "build-without-training/deberta"], of_tiers=False,
                  expected=5, after=[built])
    stage.leave("without-training-whole", "units and golden results")


def without_training_whole(stage, _full):
    build_without_training(stage, everything=True, tests=[Tests("tests", suites("unit", "golden"), quick=True)])


def build_with_clang(stage, **about):
    """Three switches that know nothing of each other, in one build: clang, loops on OpenMP, no figures. Warnings are errors."""
    return stage.build("build-clang", ["-Dthreads=openmp", "-Dviz=disabled", "--werror", "--buildtype=release"], native_file="tools/clang.ini", **about)


# Threads that wait sleep: others need the processors that these would spin on.
CLANG_TESTS = {"quick": True, "environment": {"OMP_WAIT_POLICY": "passive"}}


def second_compiler(stage, _full):
    """Of the program what these switches change, by turns."""
    built = build_with_clang(stage, everything=True, tests=[
        Tests("tests", suites("kernels", "golden", "unit"), **CLANG_TESTS),
        Tests("the program", suites("switches"), turns=CLANG_TURNS, nightly="clang-whole", **CLANG_TESTS)])
    lint(stage, "build-clang", "--objects", expected=10, after=[built])


def clang_whole(stage, _full):
    build_with_clang(stage, tests=[Tests("the program", suites("switches"), **CLANG_TESTS)])


def build_sanitized(stage, **about):
    # Its tests train and encode for minutes with the kernels that they have.
    return stage.build("build-sanitize", ["-Db_sanitize=address,undefined", "-Dkernels=fast", *SANITIZED_OPTIONS], native_file="tools/clang.ini", **about)


SANITIZER_TESTS = {"quick": True, "environment": SANITIZER_OPTIONS, "slower": 3}


def sanitizers(stage, _full):
    """Of the program what opens input of others, and by turns what reads or writes files in ways of its own. Of the kernels those that are
    sanitized (simd/meson.build)."""
    built = build_sanitized(stage, targets=["tests/checkasm/checkasm"], tests=[
        Tests("tests", lambda test: ("cli" not in test.suites or "foreign" in test.suites) and test.name != "checkasm", **SANITIZER_TESTS),
        Tests("files of its own", suites("files", without=("foreign",)), turns=SANITIZER_TURNS, nightly="sanitizers-whole", **SANITIZER_TESTS)])
    for tier in ("scalar", "scalar_fma"):
        stage.program(f"kernels, {tier}", ["build-sanitize/tests/checkasm/checkasm", "--quick", f"--isa={tier}"], environment=SANITIZER_OPTIONS, expected=5,
                      after=[built])


def sanitizers_whole(stage, _full):
    build_sanitized(stage, tests=[Tests("tests", suites("files"), **SANITIZER_TESTS)])


def threads(stage, _full):
    wanted = ("parallel", "session", "checkpoint", "tokenizer")
    # gcc 12's sanitizer ends at once where addresses are more random than 28 bits (vm.mmap_rnd_bits): setarch -R.
    built = stage.build("build-threads", THREAD_OPTIONS,
                        tests=[Tests("where threads meet", names(*wanted), quick=True, wrapper=["setarch", "-R"], slower=10)], targets=["tests/golden/identity"])
    stage.program("one arithmetic, a sample", ["setarch", "-R", "build-threads/tests/golden/identity", "--folder", "tests/golden", "--quick", "--golden"],
                  expected=30, after=[built])


@functools.lru_cache(maxsize=None)
def without_zip(root):
    """Golden cases whose weights are no zip archive, which the modules do not read."""
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
    """Node is asked once: tests of the schedule put the stage on it a hundred times."""
    return subprocess.run([os.path.join(ROOT, "wasm", "node_flags.sh")], stdout=subprocess.PIPE, text=True, check=True).stdout.split()


def webassembly(stage, _full, sampled=True):
    """The three modules: kernels, golden results, damaged models; all against what the native program gives."""
    node = ["tests/wasm/run_node.py", *node_flags()]
    tiers = ("scalar", "exact", "relaxed")
    native_program = native_build(stage, targets=["deberta"])
    built = stage.program("the modules are built without a warning", ["sh", "-c", "wasm/fetch_sources.sh build-wasm/sources && wasm/configure.py build-wasm && "
                                                                      "ninja -C build-wasm && wasm/pack.py build-wasm"], expected=60, after=[native_program])
    program = [*node, "tests/wasm/run_program.mjs"]
    for tier in tiers:
        isa = "scalar" if tier == "scalar" else "wasm"
        stage.program(f"checkasm, {tier}", [*program, f"build-wasm/tests/checkasm-{tier}.wasm", "--no-guard", *["--quick"] * sampled, f"--isa={isa}",
                                            f"--require={isa}"], expected=8, after=[built])
        # Where every fmaf is a call of a function, low precision is a sample of the cases, and that a nightly one.
        if sampled and tier == "scalar":
            stage.leave("wasm-whole", "golden, scalar")
        else:
            stage.program(f"golden, {tier}", [*program, f"build-wasm/tests/golden-{tier}.wasm", "--threads", "1", "--failures-only", "--isa", isa,
                                              "--only", ",".join(without_zip(os.path.join(ROOT, "tests", "golden")))],
                          environment={"DEBERTA_TEST_QUICK": "1"} if tier == "scalar" else {}, expected=15, after=[built])
        stage.program(f"bad models, {tier}", [*program, f"build-wasm/tests/bad_models-{tier}.wasm", "--without-zip"], expected=2, after=[built])
    models = ["build-wasm", "models/demo", "build/deberta"]
    stage.program("texts, directed multiply-adds", [*node, "tests/wasm/run_bits.mjs", *models], expected=10, after=[built])
    stage.program("the package", [*node, "tests/wasm/run_package.mjs", *models], of_tiers=False, expected=3, after=[built])
    stage.program("sizes, damaged heads", [*node, "tests/wasm/run_sizes.mjs", *models[:2]], of_tiers=False, expected=4, after=[built])
    stage.program("damaged models", [*node, "tests/wasm/run_damaged.mjs", *models, "60" if sampled else "2000"], of_tiers=False, expected=6, after=[built])
    stage.tiers = lambda: [(tier, "WebAssembly in node") for tier in tiers]


def webassembly_whole(stage, full):
    """The same with every case of the kernels and many more damaged models."""
    webassembly(stage, full, sampled=False)


def contributing(stage, _full):
    stage.program("the diffs of CONTRIBUTING.md fit", [sys.executable, "tools/try_contributing.py", "--fit"], of_tiers=False, expected=2)
    stage.leave("contributing-whole", "what the diffs build and do")


def contributing_whole(stage, _full):
    stage.program("the diffs of CONTRIBUTING.md", [sys.executable, "tools/try_contributing.py"], of_tiers=False, expected=200)


def library_name():
    with open(os.path.join(ROOT, "include", "deberta.h"), encoding="utf-8") as header:
        version = re.findall(r"^#define DEBERTA_VERSION_(?:MAJOR|MINOR|PATCH) (\d+)", header.read(), re.M)
    return f"libdeberta.so.{'.'.join(version)}"


def python_package(stage, _full, whole=False):
    """The tests that share one environment; of what needs another, or another build, one by turns."""
    def run(title, *words, **about):
        about = {"limit": 3000, "expected": 120, "after": [prepared], **about}
        stage.program(f"tests/python{title}", [sys.executable, "tests/python/run.py", *words], of_tiers=False, **about)

    def engines():
        run(" in Ray, datasets, datatrove", "--engines", limit=1500)

    def with_sanitizer():
        built = build_sanitized(stage, targets=[library_name()])
        run(" with the address sanitizer", "--sanitized", f"build-sanitize/{library_name()}", after=[prepared, built])

    # It loads packages while others compile, and all that follows waits for it.
    prepared = stage.program("the wheel and the packages of its tests", [sys.executable, "tests/python/run.py", "--prepare"], limit=3000, of_tiers=False,
                             expected=2 * FIRST)
    for part in PYTHON_PARTS:
        run(f", {part}", "--part", part, expected=150)
    apart = [("in Ray, datasets, datatrove", engines), ("with the address sanitizer", with_sanitizer)]
    today, later = (apart, []) if whole else turn_of_today(apart, len(apart))
    for _, begin in today:
        begin()
    stage.leave("python-whole", *(f"tests/python {title}" for title, _ in later))


def python_whole(stage, full):
    python_package(stage, full, whole=True)


def bare_debian(suite):
    """What the README tells a newcomer to type, where nothing is installed."""
    def run(stage, _full):
        # In one system, one after the other, as a newcomer types them: the second finds what the first has left.
        stage.program("demo, then tests", ["tools/bare_debian.sh", suite, "./build.sh demo && ./build.sh test"], limit=7200, of_tiers=False)
    return run


def large_corpus(stage, _full):
    """Eight shards, some of which are killed and repeated, against one process."""
    built = native_build(stage, targets=["deberta"])
    stage.program("200,000 texts in 8 shards", [sys.executable, "tests/cli/run_cli_tests.py", "--program", "build/deberta", "--cases", "shards", "--only", "large-corpus"],
                  environment={"DEBERTA_SHARDS_TEXTS": "200000"}, of_tiers=False, after=[built])


def failing_calls(stage, _full):
    """Each call of each command that writes fails, of which the suite takes some."""
    built = native_build(stage, targets=["deberta", "tests/failing_calls/failing_calls.so", "tests/failing_calls/failing_memory.so"])
    stage.program("failing calls, each", [sys.executable, "tests/cli/run_cli_tests.py", "--program", "build/deberta", "--cases", "failing_writes"],
                  environment={"DEBERTA_TEST_EVERY_CALL": "1"}, limit=7200, of_tiers=False, after=[built])


def long_runs(stage, _full):
    """What a service does in a day: memory, descriptors and bits stay what they are."""
    built = native_build(stage, targets=["deberta", "tests/long/long_run"])
    small = "synthetic:v3-small,layers=2,vocab=500,hidden=64,heads=2,intermediate=128"
    for model, run, count in ((small, "encodes", "20000"), ("models/demo", "opens", "2000")):
        stage.program(f"{count} {run}", ["build/tests/long/long_run", model, run, count], of_tiers=False, expected=60, after=[built])
    stage.program("200,000 texts, killed and resumed", [sys.executable, "tests/cli/run_cli_tests.py", "--program", "build/deberta", "--cases", "encode_corpus",
                                                        "--only", "killed-again-and-again"],
                  environment={"DEBERTA_RESUMED_TEXTS": "200000"}, of_tiers=False, expected=200, after=[built])
    watched = stage.build("build-threads", THREAD_OPTIONS, targets=["tests/long/long_run"])
    stage.program("8 callers, thread sanitizer", ["setarch", "-R", "build-threads/tests/long/long_run", small, "callers", "1000"], of_tiers=False,
                  expected=60, after=[watched])


def drawn_cases(stage, _full):
    """Other models, texts and ways of training every day."""
    built = native_build(stage, targets=["tests/drawn/drawn"])
    seed = str(day())
    for first in range(0, 2000, 500):
        stage.program(f"drawn cases, seed {seed}, from {first}", ["build/tests/drawn/drawn", "--configurations", "500", "--first", str(first), "--seed", seed],
                      of_tiers=False, expected=150, after=[built])


def wheels(stage, _full):
    """What is released, made in a copy of the last commit and tried."""
    stage.program("tests/release", [sys.executable, "tests/release/run.py"], limit=3000, of_tiers=False, expected=300)


def analysis(stage, _full):
    """What the build has configured is read, not run."""
    configured = native_build(stage, targets=["deberta"])
    stage.program("gcc's analyser and warnings, cppcheck", [sys.executable, "tools/analysis.py", "--drawn"], of_tiers=False, expected=20, after=[configured])
    stage.leave("analysis-whole", "gcc's analyser over the other files")


def analysis_whole(stage, _full):
    configured = native_build(stage, targets=["deberta"])
    stage.program("gcc's analyser and warnings, cppcheck", [sys.executable, "tools/analysis.py"], of_tiers=False, expected=45, after=[configured])


def clang_tidy(stage, _full):
    configured = native_build(stage, targets=["deberta"])
    stage.program("the checks of .clang-tidy", [sys.executable, "tools/analysis.py", "clang-tidy"], of_tiers=False, expected=200, after=[configured])


def coverage(stage, _full):
    stage.program("lines that the tests run", [sys.executable, "tools/coverage.py"], limit=7200, of_tiers=False)
