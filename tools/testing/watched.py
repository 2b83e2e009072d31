"""A test that runs while it is looked at: it ends with its first failure, and what it may take is processor time, not time of the clock.

SPDX-License-Identifier: MIT
"""
import os
import re
import resource
import signal
import subprocess
import tempfile
import time

from testing import counting
from testing.processes import environment_for

MEMORY, FILE = 8 << 30, 1 << 30  # what a wrong size may ask for
PERIOD = 0.2
WAITING = 60  # seconds in which no process of the test runs


class Outcome:
    """fault: how the test failed, in a word or two; empty if it passed."""

    def __init__(self, fault, output, processor):
        self.fault, self.output, self.processor = fault, output, processor


def limit_to(seconds):
    def limit():
        resource.setrlimit(resource.RLIMIT_CPU, (int(seconds) + 1, int(seconds) + 6))
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
        resource.setrlimit(resource.RLIMIT_FSIZE, (FILE, FILE))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    return limit


def activity(session):
    """(ticks of processor, does one of them want to run) of the processes of a session."""
    ticks, runs = 0, False
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                with open(f"/proc/{name}/stat", encoding="utf-8", errors="replace") as file:
                    fields = file.read().rpartition(")")[2].split()
            except OSError:
                continue
            if int(fields[3]) == session:
                ticks += sum(map(int, fields[11:15]))
                runs = runs or fields[0] in "RDT"
    return ticks, runs


def end(process):
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass


def run(test, extra, seconds):
    """test: as meson lists it (builds.Listed). seconds: of processor, for each of its processes."""
    with tempfile.TemporaryFile() as output:
        process = subprocess.Popen(test.command, cwd=test.folder, stdout=output, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL,
                                   env={**environment_for(extra), "MALLOC_PERTURB_": "165"}, start_new_session=True, preexec_fn=limit_to(seconds))
        fault, quiet_since, before, looked = "", time.monotonic(), (0, True), 0.0
        while True:
            pid, status, usage = os.wait4(process.pid, os.WNOHANG)
            if pid:
                break
            time.sleep(PERIOD if time.monotonic() - quiet_since > 2 else 0.02)
            if test.tap and not fault and re.search(rb"^not ok (?!.*# SKIP)", os.pread(output.fileno(), 1 << 24, 0), re.M):
                fault = "fails"
            if time.monotonic() - looked > 2:
                looked, now = time.monotonic(), activity(process.pid)
                if now[1] or now[0] != before[0]:
                    quiet_since = looked
                before = now
                if looked - quiet_since > WAITING:
                    fault = "waits without end"
            if fault:
                end(process)
                _, status, usage = os.wait4(process.pid, 0)
                break
        process.returncode = os.waitstatus_to_exitcode(status)
        end(process)  # what it may have left behind
        output.seek(0)
        text = output.read().decode(errors="replace")
    used = usage.ru_utime + usage.ru_stime
    if not fault and counting.count(text, process.returncode, test.tap)[1]:
        by_time = -process.returncode in (signal.SIGXCPU, signal.SIGKILL) or "SIGXCPU" in text
        fault = "too much processor time" if by_time else f"signal {-process.returncode}" if process.returncode < 0 else "fails"
    return Outcome(fault, text, used)
