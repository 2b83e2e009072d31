"""Configures, builds and runs one stage, step by step, and collects its results.

SPDX-License-Identifier: MIT
"""
import collections
import glob
import json
import os
import shutil
import threading
import time

import counting
from machine import turn_of_today
from processes import ROOT, execute

TIER_SUITES = {"kernels", "golden"}  # these suites run the kernels tier by tier; others tell nothing about a tier
WELL = {"OK", "SKIP", "EXPECTEDFAIL"}  # meson's results of a test that has not failed


def say(text):
    print(text, flush=True)


BUSY = collections.defaultdict(threading.Lock)  # {folder: lock while it is configured or built}


class Broken(Exception):
    """A build failed, so the rest of the stage cannot run."""


def introspect(folder, what):
    """Reads what meson wrote when it configured the folder; nothing where that failed."""
    path = os.path.join(ROOT, folder, "meson-info", f"intro-{what}.json")
    if not os.path.exists(path):
        return []
    with open(path, encoding="utf-8") as listing:
        return json.load(listing)


def suites_of(test):
    """Returns the suites of a test without the project's name."""
    return {suite.rpartition(":")[2] for suite in test["suite"]}


class Stage:
    """processors(): how many a step that begins now may use. tiers: [(tier, how it ran)]; they have passed if no test that judges one has
    failed. left: {nightly stage: what is left to it}. times: [(seconds, what)]."""

    def __init__(self, name, says, processors):
        self.name, self.says, self.processors = name, says, processors
        self.counts, self.lines, self.failures, self.times = (0, 0, 0), [], [], []
        self.tiers, self.tier_failures, self.left, self.busy = [], 0, {}, 0.0

    def add(self, title, counts, outcome, programs=1):
        self.counts = tuple(a + b for a, b in zip(self.counts, counts))
        self.busy += outcome.processor
        self.lines.append(f"  {title}: {f'{programs} programs, ' if programs != 1 else ''}{counts[0]} passed, {counts[1]} failed, {counts[2]} skipped "
                          f"({outcome.processor:.0f} s of processor time in {outcome.seconds:.0f} s)")

    def fail(self, what, command, output, status, of_tiers=True):
        self.failures.append(what)
        self.tier_failures += of_tiers
        say(f"    {self.name}: {what}: {f'failed, status {status}' if status is not None else 'stopped'}\n    {' '.join(command)}")
        say("\n".join("    " + line for line in counting.failures_in(output).rstrip().split("\n")[-100:]))

    def step(self, what, command, folder):
        """Runs a command that must succeed, and is no test."""
        with BUSY[folder]:
            outcome = execute(command)
        self.times.append((outcome.seconds, what))
        self.lines.append(f"  {what}: {outcome.processor:.0f} s of processor time in {outcome.seconds:.0f} s")
        self.busy += outcome.processor
        if outcome.status != 0:
            self.counts = (self.counts[0], self.counts[1] + 1, self.counts[2])
            self.fail(what, command, outcome.output, outcome.status)
            raise Broken

    def program(self, title, command, environment=None, limit=1800, programs=1, of_tiers=True):
        """Runs one process as a test. programs: how many it runs itself, each with its closing line."""
        outcome = execute(command, environment, limit)
        counts = counting.count(outcome.output, outcome.status, programs=programs)
        self.times.append((outcome.seconds, title))
        self.lines += [f"  {line}" for line in outcome.output.split("\n") if line.startswith("lint: ")]
        self.add(title, counts, outcome)
        if counts[1]:
            self.fail(title, command, outcome.output, outcome.status, of_tiers)

    def configure(self, folder, options=(), native_file=None, cross_file=None):
        """Sets the folder up, or changes the options of an existing one."""
        options = ["-Dtests=enabled", *options]
        if os.path.exists(os.path.join(ROOT, folder, "build.ninja")):
            self.step(f"configuring {folder}", ["meson", "configure", folder, *options], folder)
            return
        files = [f"--native-file={native_file}"] * bool(native_file) + [f"--cross-file={cross_file}"] * bool(cross_file)
        if shutil.which("ccache"):  # meson adds ccache only to a compiler of its own choice
            files += ["--native-file=tools/gates/ccache-clang.ini"] * bool(native_file) + ["--cross-file=tools/gates/ccache-aarch64.ini"] * bool(cross_file)
        if native_file and shutil.which("ld.lld-19"):  # halves the time to link a hundred programs
            files.append("--native-file=tools/gates/lld-clang.ini")
        self.step(f"configuring {folder}", ["meson", "setup", folder, *options, *files], folder)

    def build(self, folder, targets=()):
        """Builds these targets, or everything."""
        self.step(f"building {folder}", ["ninja", "-C", folder, "-j", str(self.processors()), *targets], folder)

    def tests(self, title, folder, choose=lambda test: True, quick=False, wrapper=None, environment=None, turns=1, nightly=None):
        """Of the tests that meson lists in the folder those that choose(test) wants, with what they need. quick: as `meson test --setup quick`
        has them. turns, nightly: a run takes one of so many parts, another every day, and that nightly stage takes all."""
        wanted = [test for test in introspect(folder, "tests") if choose(test) and not (quick and "long" in suites_of(test))]
        chosen, later = turn_of_today(sorted(wanted, key=lambda test: test["name"]), turns, lambda test: 1 + test["priority"])
        self.leave(nightly, *(test["name"] for test in later))
        if not wanted:
            self.counts = (self.counts[0], self.counts[1] + 1, self.counts[2])
            self.failures.append(f"{title}: no test ran")
        if chosen:
            self.build_for(folder, chosen)
            self.run_chosen(title, folder, chosen, [*["--setup", "quick"] * quick, *["--wrapper", wrapper or ""] * bool(wrapper)], environment)

    def build_for(self, folder, chosen):
        place = os.path.realpath(os.path.join(ROOT, folder))
        files = {row["id"]: [os.path.relpath(name, place) for name in row["filename"]] for row in introspect(folder, "targets")}
        self.build(folder, sorted({file for test in chosen for need in test["depends"] for file in files.get(need, ())}))

    def run_chosen(self, title, folder, chosen, how, environment):
        log = "".join(c if c.isalnum() else "-" for c in f"{self.name}-{title}-log")
        pattern = os.path.join(ROOT, folder, "meson-logs", f"{log}*.json")  # meson adds the names of set-up and wrapper
        for path in glob.glob(pattern):
            os.remove(path)
        # Tests of the program wait for a browser, a signal or a clock a fifth of their time, so one more of them runs.
        processes = self.processors() + all("cli" in suites_of(test) for test in chosen)
        command = ["meson", "test", "-C", folder, "--no-rebuild", "--logbase", log, "--num-processes", str(processes), *how]
        outcome = execute([*command, *(test["name"] for test in chosen)], environment, limit=7200)
        rows = []
        for path in glob.glob(pattern):
            with open(path, encoding="utf-8") as lines:
                rows += [json.loads(line) for line in lines]
        sums, about = [0, 0, 0], {test["name"]: test for test in chosen}
        for row in rows:
            # Meson puts project and suite before the name, in a form that depends on its version.
            name = max((name for name in about if row["name"] == name or row["name"].endswith((f" / {name}", f":{name}"))), key=len)
            test, output = about.pop(name), row.get("stdout", "") + row.get("stderr", "")
            status = row["returncode"] if row["result"] in WELL else row["returncode"] or None
            counts = counting.count(row.get("stdout", ""), status, test["protocol"] == "tap")
            sums = [a + b for a, b in zip(sums, counts)]
            self.times.append((row["duration"], name))
            if counts[1]:
                self.fail(name, row["command"], output, status, bool(suites_of(test) & TIER_SUITES))
        for name in about:  # meson itself stopped
            sums[1] += 1
            self.fail(name, command, outcome.output, outcome.status)
        self.add(title, tuple(sums), outcome, len(chosen))

    def leave(self, nightly, *what):
        """Notes that this run leaves work to the nightly stage."""
        if what:
            self.left.setdefault(nightly, []).extend(what)

    def run(self, prepare, full, began):
        begin = time.monotonic()
        try:
            prepare(self, full)
        except Broken:
            pass
        say(f"{self.name}: {self.says} (from {begin - began:.0f} to {time.monotonic() - began:.0f} s)")
        for line in self.lines:
            say(line)
