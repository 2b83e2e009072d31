#!/usr/bin/env python3
"""Runs the tests and adds them up; `./build.sh test [--full]` calls it.

Quick: everything in build/ and the lint rules. Full: also a sanitizer build with clang, the scalar tier on a processor without FMA, the
NEON tier on an emulated aarch64, and AVX-512 on an emulated processor where this one lacks it. Says which tiers ran, and how.
The last line is `N passed, N failed, N skipped`.
"""
import json
import os
import re
import shutil
import subprocess
import sys
import time

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
COUNT = re.compile(r"^(\d+) passed, (\d+) failed(?:, (\d+) skipped)?$", re.M)


class Totals:
    def __init__(self):
        self.passed = self.failed = self.skipped = 0

    def add(self, passed, failed, skipped=0):
        self.passed += passed
        self.failed += failed
        self.skipped += skipped


totals = Totals()
tiers = []  # (tier, how it ran)


def say(text):
    print(text, flush=True)


def count_output(text, returned_well):
    """Counts of one test program: its own closing line, cmocka's, or itself as one test."""
    lines = COUNT.findall(text)
    if lines:
        passed, failed, skipped = (int(x or 0) for x in lines[-1])
    elif "[==========]" in text:
        passed = sum(int(n) for n in re.findall(r"^\[  PASSED  \] (\d+) test", text, re.M))
        failed = sum(int(n) for n in re.findall(r"^\[  FAILED  \] (\d+) test", text, re.M))
        skipped = sum(int(n) for n in re.findall(r"^\[  SKIPPED \] (\d+) test", text, re.M))
    else:
        passed, failed, skipped = int(returned_well), 0, 0
    if not returned_well and failed == 0:
        failed = 1
    return passed, failed, skipped


def run(title, command, environment=None, directory=ROOT, timeout=3600):
    """One program as a test of its own."""
    begin = time.time()
    try:
        done = subprocess.run(command, cwd=directory, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace",
                              stdin=subprocess.DEVNULL, env={**os.environ, **(environment or {})}, timeout=timeout)
        output, well = done.stdout, done.returncode == 0
    except subprocess.TimeoutExpired as late:
        output, well = (late.stdout or b"").decode(errors="replace") + f"\nstopped after {timeout} s", False
    counts = count_output(output, well)
    totals.add(*counts)
    say(f"  {title}: {counts[0]} passed, {counts[1]} failed, {counts[2]} skipped ({time.time() - begin:.0f} s)")
    if not well:
        say("    " + " ".join(command))
        say("\n".join("    " + line for line in output.rstrip().split("\n")[-40:]))
    return output


def must(title, command, environment=None):
    """A step without which the following tests cannot run: counts as one failure when it fails."""
    done = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace",
                          stdin=subprocess.DEVNULL, env={**os.environ, **(environment or {})})
    if done.returncode != 0:
        totals.add(0, 1)
        say(f"  {title}: failed: {' '.join(command)}\n" + "\n".join("    " + l for l in done.stdout.rstrip().split("\n")[-30:]))
    return done.returncode == 0


def meson_tests(title, build, arguments=(), environment=None):
    begin = time.time()
    log = os.path.join(ROOT, build, "meson-logs", "testlog.json")
    if os.path.exists(log):
        os.remove(log)
    subprocess.run(["meson", "test", "-C", build, "--no-rebuild", "--num-processes", "2", *arguments], cwd=ROOT,
                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, stdin=subprocess.DEVNULL,
                   env={**os.environ, **(environment or {})})
    before = (totals.passed, totals.failed, totals.skipped)
    names = 0
    if os.path.exists(log):
        for line in open(log, encoding="utf-8", errors="replace"):
            entry = json.loads(line)
            names += 1
            text = entry.get("stdout", "") + "\n" + (entry.get("stderr") or "")
            if entry["result"] == "SKIP":
                totals.add(0, 0, 1)
                continue
            well = entry["result"] in ("OK", "EXPECTEDFAIL")
            totals.add(*count_output(text, well))
            if not well:
                say(f"    {entry['name']}: {entry['result']}: {' '.join(entry['command'])}")
                say("\n".join("      " + l for l in text.rstrip().split("\n")[-25:]))
    if names == 0:
        totals.add(0, 1)
        say(f"  {title}: no test ran")
    delta = [now - then for now, then in zip((totals.passed, totals.failed, totals.skipped), before)]
    say(f"  {title}: {names} programs, {delta[0]} passed, {delta[1]} failed, {delta[2]} skipped ({time.time() - begin:.0f} s)")


def setup(build, *arguments):
    if os.path.exists(os.path.join(ROOT, build, "build.ninja")):
        return must(f"configuring {build}", ["meson", "configure", build, *[a for a in arguments if a.startswith("-D")]])
    return must(f"configuring {build}", ["meson", "setup", build, *arguments])


def has_flag(flag):
    try:
        return any(line.startswith("flags") and f" {flag} " in line + " " for line in open("/proc/cpuinfo"))
    except OSError:
        return False


def quick():
    say("native build")
    meson_tests("tests", "build")
    run("lint", [sys.executable, "tools/lint.py", "build"])
    tiers.append(("scalar", "native, with FMA" if has_flag("fma") else "native"))
    for tier, flag in (("avx2", "avx2"), ("avx512", "avx512vl")):
        if has_flag(flag):
            tiers.append((tier, "native"))


def sanitizers():
    say("address and undefined-behaviour sanitizers, clang")
    if setup("build-sanitize", "-Db_sanitize=address,undefined", "-Db_lundef=false", "--buildtype=debugoptimized", "-Db_ndebug=false",
             "--native-file=tools/clang.ini") and must("building", ["ninja", "-C", "build-sanitize"]):
        meson_tests("tests", "build-sanitize", ["--timeout-multiplier", "8"],
                    {"ASAN_OPTIONS": "detect_leaks=1:allocator_may_return_null=1",
                     "UBSAN_OPTIONS": "halt_on_error=1:print_stacktrace=1"})


def emulated_x86():
    say("a processor without FMA and AVX: the scalar tier (qemu, Nehalem)")
    # The build must not assume more than the base instruction set: the same programs run as they are.
    emulator = ["qemu-x86_64-static", "-cpu", "Nehalem"]
    run("checkasm", emulator + ["build/tests/checkasm/checkasm", "--quick", "--no-guard"], timeout=1200)
    run("golden", emulator + ["build/tests/golden/golden", "--quick"], timeout=1200)
    tiers.append(("scalar", "without FMA, under qemu"))
    if has_flag("avx2"):
        return
    run("checkasm on an AVX2 processor", ["qemu-x86_64-static", "-cpu", "Haswell", "build/tests/checkasm/checkasm", "--quick",
                                          "--no-guard"], timeout=1200)
    tiers.append(("avx2", "under qemu"))


def emulated_neon():
    say("aarch64: the NEON tier (cross build, qemu)")
    if setup("build-arm64", "--cross-file=tools/cross-aarch64.ini", "-Dtext=disabled", "-Dviz=disabled", "-Dtests=enabled") and \
            must("building", ["ninja", "-C", "build-arm64"]):
        meson_tests("tests", "build-arm64", ["--timeout-multiplier", "10"], {"DEBERTA_TEST_QUICK": "1"})
        tiers.append(("neon", "under qemu-aarch64"))


def emulated_avx512():
    if has_flag("avx512vl"):
        return
    say("AVX-512 on an emulated processor (Bochs)")
    run("checkasm and golden", ["tools/run-avx512-bochs.sh", "-f", "build/tests/checkasm/checkasm", "-f", "build/tests/golden/golden",
                                "-f", "tests/golden/16-v3-b256-n33", "-f", "tests/golden/01-v1-both-n33",
                                "-f", "tests/golden/bars.tsv", "/bin/sh", "-c",
                                "build/tests/checkasm/checkasm --quick --no-guard --require=avx512 && "
                                "build/tests/golden/golden --isa avx512 --only 16 --only 01"], timeout=1800)
    tiers.append(("avx512", "under Bochs"))


def main():
    full = "--full" in sys.argv[1:]
    os.chdir(ROOT)
    begin = time.time()
    quick()
    if full:
        for stage, tool in ((emulated_x86, "qemu-x86_64-static"), (emulated_neon, "aarch64-linux-gnu-gcc"),
                            (emulated_avx512, "true"), (sanitizers, "clang")):
            if shutil.which(tool):
                stage()
            else:
                say(f"{stage.__name__}: skipped, {tool} is not installed")
                totals.add(0, 0, 1)
    else:
        say("emulated tiers and sanitizers: skipped (./build.sh test --full)")
        totals.add(0, 0, 2)
    say("tiers that ran: " + "; ".join(f"{tier} ({how})" for tier, how in tiers))
    say(f"{time.time() - begin:.0f} s")
    say(f"{totals.passed} passed, {totals.failed} failed, {totals.skipped} skipped")
    return 1 if totals.failed else 0


if __name__ == "__main__":
    sys.exit(main())
