"""Runs one process and returns its output, exit status and seconds. A process that takes too long is stopped.

SPDX-License-Identifier: MIT
"""
import os
import random
import signal
import subprocess
import tempfile
import threading
import time

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
# These variables of the caller would weaken the tests, or make them write their expected files.
NOT_FROM_THE_CALLER = {"DEBERTA_UPDATE_GOLDEN", "DEBERTA_TEST_QUICK", "DEBERTA_TEST_SEED", "DEBERTA_TEST_EVERY_CALL", "DEBERTA_ISA"}
PATIENCE = 30  # seconds that a process may take to stop

running = set()  # process groups to stop if the run is interrupted
interrupted = threading.Event()  # set: nothing begins any more


class Outcome:
    """status: None if the process was stopped. seconds: wall time; processor: user and system time, with all children."""

    def __init__(self, output, status, seconds=0.0, processor=0.0):
        self.output, self.status, self.seconds, self.processor = output, status, seconds, processor


def environment_for(extra):
    inherited = {name: value for name, value in os.environ.items() if name not in NOT_FROM_THE_CALLER}
    # As in `meson test`: freed and fresh memory holds no zeros.
    return {"MALLOC_PERTURB_": str(random.randint(1, 255)), **inherited, **(extra or {})}


def stop(group):
    for number, seconds in ((signal.SIGTERM, PATIENCE), (signal.SIGKILL, 0)):
        try:
            os.killpg(group, number)
        except ProcessLookupError:
            return
        end = time.monotonic() + seconds
        while time.monotonic() < end and group in running:
            time.sleep(0.05)


def stop_all():
    interrupted.set()
    for group in list(running):
        threading.Thread(target=stop, args=(group,)).start()


def execute(command, environment=None, limit=3600):
    """Runs a command to its end, or for `limit` seconds."""
    if interrupted.is_set():
        return Outcome("the run was interrupted\n", None)
    begin, late = time.monotonic(), threading.Event()
    # A file, not a pipe, because a grandchild that outlives the command would keep a pipe open.
    with tempfile.TemporaryFile() as output:
        try:
            process = subprocess.Popen(command, cwd=ROOT, stdout=output, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL,
                                       env=environment_for(environment), start_new_session=True)
        except OSError as failure:
            return Outcome(f"{command[0]}: {failure}\n", 127)
        running.add(process.pid)

        def stop_late():
            late.set()
            stop(process.pid)

        timer = threading.Timer(limit, stop_late)
        timer.daemon = True
        timer.start()
        _, status, usage = os.wait4(process.pid, 0)
        timer.cancel()
        process.returncode = os.waitstatus_to_exitcode(status)  # otherwise subprocess would wait for it again
        running.discard(process.pid)
        output.seek(0)
        text = output.read().decode(errors="replace")
    text, status = (f"{text}\nstopped after {limit} s", None) if late.is_set() else (text, process.returncode)
    return Outcome(text, status, time.monotonic() - begin, usage.ru_utime + usage.ru_stime)
