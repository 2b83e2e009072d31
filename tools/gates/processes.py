"""One process and what came of it: output, exit status, seconds. A process that takes too long is stopped.

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
# With these the caller's environment would weaken the tests, or have them write what they should compare with.
NOT_FROM_THE_CALLER = {"DEBERTA_UPDATE_GOLDEN", "DEBERTA_TEST_QUICK", "DEBERTA_TEST_SEED", "DEBERTA_TEST_EVERY_CALL", "DEBERTA_ISA"}
PATIENCE = 30  # seconds that a process which was asked to stop may take

running = set()  # process groups, to be stopped if the run is interrupted
interrupted = threading.Event()  # nothing begins any more


class Outcome:
    """status: None if the process was stopped. seconds: on the clock; processor: user and system time, with all children."""

    def __init__(self, output, status, seconds=0.0, processor=0.0):
        self.output, self.status, self.seconds, self.processor = output, status, seconds, processor


def environment_for(extra):
    inherited = {name: value for name, value in os.environ.items() if name not in NOT_FROM_THE_CALLER}
    # As `meson test` does: memory that is freed, and memory that is fresh, holds no zeros.
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
    """Runs it to its end, or for `limit` seconds."""
    if interrupted.is_set():
        return Outcome("the run was interrupted\n", None)
    begin, late = time.monotonic(), threading.Event()
    # A file, not a pipe: a grandchild that outlives the command would keep a pipe open.
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
        process.returncode = os.waitstatus_to_exitcode(status)  # or subprocess would wait for it once more
        running.discard(process.pid)
        output.seek(0)
        text = output.read().decode(errors="replace")
    text, status = (f"{text}\nstopped after {limit} s", None) if late.is_set() else (text, process.returncode)
    return Outcome(text, status, time.monotonic() - begin, usage.ru_utime + usage.ru_stime)
