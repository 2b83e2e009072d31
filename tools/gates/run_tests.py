#!/usr/bin/env python3
"""Runs the tests and adds them up; `./build.sh test [--full]` calls it.

    tools/gates/run_tests.py                 the tests in build/ and the lint rules, a third of the samples, without what tests the tests and what takes turns
    tools/gates/run_tests.py --full          all of that, and every stage below
    tools/gates/run_tests.py --nightly       only the stages that take too long for every change
    tools/gates/run_tests.py --stage NAME    only this stage, with all of it; may be repeated

Stages; as many run side by side as there are processors, the longest first, and each does its steps one after the other:
    program           the program from outside, on build/
    python            the Python package from its wheel, beside transformers, in an environment of its own (build-python)
    sanitizers        clang's address and undefined-behaviour sanitizers
    native            the library on build/: units, kernels, golden results; and the lint rules
    clang             the second compiler, loops on OpenMP, no figures: kernels, golden results, one arithmetic, units, the program; warnings are errors
    neon              a cross build for aarch64, under qemu
    wasm              the modules of WebAssembly under node, against the native program
    avx512-emulated   the AVX-512 tier on an emulated processor, under Bochs; --full takes it only where this processor lacks AVX-512
    threads           the compiler's thread sanitizer over the tests in which threads meet
    without-fma       the scalar tier on a processor without FMA and AVX, under qemu
    without-training  a build with -Dtraining=disabled: what trains refuses, the rest works
    contributing      the diffs of CONTRIBUTING.md fit the tree and touch as few files as they should

What takes long is divided: each run has a part of it, another every day, and a nightly stage all. The run's end says what it left to which.

Nightly stages:
    native-whole      what the stages native and program take samples of or by turns: every case of the kernels, drawn cases, failing calls, browsers
    python-whole      every test of the package, in Ray, datasets and datatrove, and with the address sanitizer
    clang-whole       every unit, and every test of the program that the switches of the stage clang can change
    without-training-whole  its units and golden results
    without-fma-whole every kernel and more golden results
    sanitizers-whole  every test of the program that reads or writes files
    wasm-whole        the stage wasm with every module and case of the kernels, golden results without multiply-adds, and more damaged models
    neon-whole        kernels, tokenizers, golden results and one arithmetic on aarch64 without leaving anything out (under qemu)
    analysis          gcc's analyser and warnings, and cppcheck, over the library, at zero findings (tools/gates/analysis.py)
    contributing-whole  all diffs of CONTRIBUTING.md in one copy, which is built, and the commands under them
    audits            runs that this processor trains, executed again on aarch64 and AVX-512 under emulation
    drawn-cases       2,000 drawn models, texts and ways of training; the seed is the day's
    debian-12, -13    the README's first commands and the tests on a Debian system with nothing installed (tools/gates/bare_debian.sh; needs root)
    failing-calls     every command that writes, while each of its calls fails in turn
    long-runs         20,000 encodes, 2,000 models opened and closed, 200,000 texts killed and resumed, 8 callers under the thread sanitizer
    large-corpus      200,000 texts through 8 shards, two of which are killed: the bytes of one process
    clang-tidy        the checks of .clang-tidy over the library, at zero findings
    coverage          lines and branches of the library that the tests run, against the committed figures (tools/gates/coverage.py)
    wheels            tools/release.sh and what it makes: wheels (aarch64 under qemu), source archive, SHA-256 sums, list of contents

Emulated and sanitized programs run as `meson test --setup quick` has them: fewer sizes, no long tests (tests/meson.build).
Says which tiers ran, and how, and what took longest; out/test-times.tsv lists how long each build, test and program took. The last line is
`N passed, N failed, N skipped`.

SPDX-License-Identifier: MIT
"""
import argparse
import concurrent.futures
import os
import shutil
import signal
import sys
import time
import traceback

import processes
import stages
from machine import DAY, day, has_flag
from processes import ROOT
from stage import Stage, say

WASM = shutil.which("wasm-ld-19") is not None
# Name, function, required program, whether --full takes it on this machine, and description; the longest first. While packages for Python are
# downloaded, the program's tests have that processor.
STAGES = [
    ("program", stages.program, "meson", True, "the program from outside"),
    ("python", stages.python_package, "ninja", True, "the Python package, installed from its wheel"),
    ("sanitizers", stages.sanitizers, "clang", True, "address and undefined-behaviour sanitizers, clang"),
    ("native", stages.native, "meson", True, "the library as it is installed"),
    ("clang", stages.second_compiler, "clang", True, "clang, loops on OpenMP, no figures; warnings are errors"),
    ("neon", stages.neon, "aarch64-linux-gnu-gcc", True, "aarch64, the NEON tier (cross build, qemu)"),
    ("avx512-emulated", stages.avx512_emulated, "bochs-bin", stages.X86 and not has_flag("avx512f"), "AVX-512 on an emulated processor (Bochs)"),
    ("wasm", stages.webassembly, "node", WASM, "WebAssembly: three modules in node"),
    ("threads", stages.threads, "setarch", True, "thread sanitizer: tests in which threads meet"),
    ("without-fma", stages.without_fma, "qemu-x86_64-static", stages.X86, "a processor without FMA and AVX: the scalar tier (qemu, Nehalem)"),
    ("without-training", stages.without_training, "meson", True, "a build without training"),
    ("contributing", stages.contributing, "meson", True, "what CONTRIBUTING.md shows fits the tree"),
]
NIGHTLY = [
    ("native-whole", stages.native_whole, "meson", True, "the build as it is installed: what takes turns, samples whole"),
    ("python-whole", stages.python_whole, "ninja", True, "the Python package, all of its tests"),
    ("clang-whole", stages.clang_whole, "clang", True, "clang, loops on OpenMP, no figures: units, the program"),
    ("without-training-whole", stages.without_training_whole, "meson", True, "a build without training: units, golden results"),
    ("without-fma-whole", stages.without_fma_whole, "qemu-x86_64-static", stages.X86, "a processor without FMA and AVX: every kernel"),
    ("sanitizers-whole", stages.sanitizers_whole, "clang", True, "address and undefined-behaviour sanitizers, clang: the program"),
    ("wasm-whole", stages.webassembly_whole, "node", WASM, "WebAssembly: every case of the kernels, more damaged models"),
    ("neon-whole", stages.neon_whole, "aarch64-linux-gnu-gcc", True, "aarch64: every golden case, every length"),
    ("analysis", stages.analysis(), "meson", True, "the library under static analysis"),
    ("contributing-whole", stages.contributing_whole, "meson", True, "what CONTRIBUTING.md shows, tried"),
    ("audits", stages.audits, "qemu-aarch64-static", True, "runs audited on emulated processors"),
    ("drawn-cases", stages.drawn_cases, "meson", True, "2,000 drawn cases of the day"),
    ("debian-12", stages.bare_debian("bookworm"), "unshare", os.geteuid() == 0, "Debian 12, nothing installed"),
    ("debian-13", stages.bare_debian("trixie"), "unshare", os.geteuid() == 0, "Debian 13, nothing installed"),
    ("failing-calls", stages.failing_calls, "meson", True, "each call of each command fails"),
    ("long-runs", stages.long_runs, "setarch", True, "a service's day"),
    ("large-corpus", stages.large_corpus, "meson", True, "200,000 texts in 8 shards"),
    ("clang-tidy", stages.analysis("clang-tidy"), "clang-tidy", True, "the library under clang-tidy"),
    ("coverage", stages.coverage, "gcovr", True, "what the tests run of the library"),
    ("wheels", stages.wheels, "git", stages.X86, "what is released"),
]
ALWAYS = ("program", "native")  # stages that run without --full
SLOWEST = 10  # number of the slowest programs that the end of a run names
TIMES = os.path.join("out", "test-times.tsv")  # a file with the times of all


def chosen_stages(options):
    if options.stage:
        return [stage for stage in STAGES + NIGHTLY if stage[0] in options.stage]
    if options.nightly:
        return [stage for stage in NIGHTLY if stage[3]]
    return [stage for stage in STAGES if stage[3] and (options.full or stage[0] in ALWAYS)]


def run(chosen, full):
    """Runs stages; returns those that ran, and the names of those that could not."""
    began, cores, ran, skipped = time.monotonic(), min(os.cpu_count() or 1, 8), [], []
    with concurrent.futures.ThreadPoolExecutor(cores if full else 1) as pool:  # two stages alone follow each other, each on all processors
        jobs = []

        def processors():
            """Returns the processors that the other running stages do not use."""
            return max(1, min(cores, cores + 1 - sum(job.running() for job in jobs)))
        for name, prepare, tool, _, says in chosen:
            if shutil.which(tool):
                ran.append(Stage(name, says, processors))
                jobs.append(pool.submit(ran[-1].run, prepare, full, began))
            else:
                skipped.append(name)
                say(f"{name}: skipped, {tool} is not installed")
        try:
            for job, stage in zip(jobs, ran):
                if job.exception():
                    stage.failures.append("".join(traceback.format_exception_only(job.exception())).strip())
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            processes.stop_all()
            raise
    say(f"{time.monotonic() - began:.0f} s on {cores} processors, {sum(stage.busy for stage in ran):.0f} s of processor time")
    return ran, skipped


def summarize(ran, skipped, unasked):
    """Prints the results of the run; returns the exit status."""
    times = sorted(((seconds, f"{stage.name}: {what}") for stage in ran for seconds, what in stage.times), reverse=True)
    say("longest: " + "; ".join(f"{name} {seconds:.0f} s" for seconds, name in times[:SLOWEST]))
    os.makedirs("out", exist_ok=True)
    with open(TIMES, "w", encoding="utf-8") as table:
        table.write("seconds\tprogram\n" + "".join(f"{seconds:.1f}\t{name}\n" for seconds, name in times))
    for nightly in sorted({name for stage in ran for name in stage.left}):
        say(f"left to the nightly stage {nightly}: {', '.join(one for stage in ran for one in stage.left.get(nightly, ()))}")
    say(f"what is drawn by the day: {DAY}={day()} draws it again")
    if unasked:
        say(unasked)
    for word, fine in (("tiers that ran and passed", True), ("tiers among whose tests one failed", False)):
        tiers = [f"{tier} ({how})" for stage in ran if (stage.tier_failures == 0) == fine for tier, how in stage.tiers]
        if fine or tiers:
            say(f"{word}: " + ("; ".join(tiers) or "none"))
    failures = [f"{stage.name}: {what}" for stage in ran for what in stage.failures]
    if failures:
        say("failed: " + "; ".join(failures))
    passed, failed, left = (sum(stage.counts[k] for stage in ran) for k in range(3))
    say(f"{passed} passed, {max(failed, bool(failures))} failed, {left + len(skipped)} skipped")
    return 1 if failed or failures else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--full", action="store_true")
    parser.add_argument("--nightly", action="store_true")
    parser.add_argument("--stage", action="append", choices=[stage[0] for stage in STAGES + NIGHTLY])
    options = parser.parse_args()
    os.chdir(ROOT)
    # Files compiled in another copy of the tree come from the compiler's cache, which skips the preprocessor for new ones.
    os.environ.update(CCACHE_BASEDIR=ROOT, CCACHE_NOHASHDIR="1", CCACHE_DEPEND="1")
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    unasked = "" if sys.argv[1:] else "what tests the tests, emulated tiers, a second compiler, sanitizers: not run (./build.sh test --full)"
    return summarize(*run(chosen_stages(options), options.full or bool(options.stage)), unasked)


if __name__ == "__main__":
    sys.exit(main())
