"""Jobs next to each other, so that every processor has work until the end.

A job is one process. It starts when the jobs that it waits for have ended well and its processors are free; of those that may start, the
longest does. While jobs only wait, for a browser, a launcher or a download, others may run.

SPDX-License-Identifier: MIT
"""
import os
import queue
import threading
import time

from testing import processes

PERIOD = 0.5  # seconds over which idle processors are looked at
IDLE = 0.4  # processors that do nothing, from which on another job may run


def idle_seconds():
    """Of all processors since the machine was started; 0 where nothing says so."""
    try:
        with open("/proc/stat", encoding="ascii") as file:
            words = file.readline().split()
        return (int(words[4]) + int(words[5])) / os.sysconf("SC_CLK_TCK")
    except (OSError, IndexError, ValueError):
        return 0.0


class Job:
    """command: what runs, or a function that knows it when it is to begin. expected: seconds, roughly. ended(outcome): called once it has run, and may add jobs. given_up(): called instead of running, since
    a job before it has failed. well(outcome): may what waits for it begin?"""

    def __init__(self, command, ended, environment=None, limit=1800, folder=processes.ROOT, expected=1.0, processors=1, after=(), given_up=None,
                 well=lambda outcome: outcome.status == 0):
        self.command, self.ended, self.environment, self.limit, self.folder = command, ended, environment, limit, folder
        self.expected, self.processors = expected, processors
        self.after, self.given_up, self.well = list(after), given_up, well
        self.state = "waiting"  # then "running", then "well" or "bad"
        self.began = 0.0  # seconds after the schedule


class Schedule:
    """shared: between several stages. lent: how many jobs more run than there are processors; each that ends takes such a place away."""

    def __init__(self, processors, shared=False):
        self.processors, self.free, self.shared, self.lent = processors, processors, shared, 0
        self.waiting, self.running, self.endings = [], [], queue.Queue()
        self.seconds_busy = 0.0  # of processor time
        self.began = 0.0

    def add(self, job):
        job.processors = min(job.processors, self.processors)
        self.waiting.append(job)
        return job

    def run(self):
        self.began = time.monotonic()
        try:
            self._start_jobs()
            since, idle = time.monotonic(), idle_seconds()
            while self.free < self.processors:
                try:
                    self._take(*self.endings.get(timeout=PERIOD))
                except queue.Empty:
                    pass
                if time.monotonic() - since >= PERIOD:
                    self._lend((idle_seconds() - idle) / (time.monotonic() - since))
                    since, idle = time.monotonic(), idle_seconds()
                self._start_jobs()
        except BaseException:
            processes.stop_all()
            raise

    def _lend(self, idle_processors):
        """To a job that could begin now, where the running ones leave a processor idle."""
        whole = any(job.processors > 1 for job in self.running)
        could = any(job.processors == 1 and all(before.state == "well" for before in job.after) for job in self.waiting)
        if idle_processors >= IDLE and self.free == 0 and could and self.lent < self.processors and not whole:
            self.free, self.lent = 1, self.lent + 1

    def _start_jobs(self):
        self._give_up_what_cannot_begin()
        ready = [job for job in self.waiting if all(before.state == "well" for before in job.after)]
        for job in sorted(ready, key=lambda job: -job.expected):
            if job.processors <= self.free:
                self._start(job)

    def _start(self, job):
        self.waiting.remove(job)
        self.running.append(job)
        job.state, job.began = "running", time.monotonic() - self.began
        self.free -= job.processors

        def work():
            try:
                job.command = job.command() if callable(job.command) else job.command
                self.endings.put((job, processes.execute(job.command, job.environment, job.limit, job.folder)))
            except BaseException as failure:  # or the run would wait for ever
                self.endings.put((job, processes.Outcome(f"{job.command}: {failure!r}\n", 127, 0.0, 0.0)))

        threading.Thread(target=work, daemon=True).start()

    def _take(self, job, outcome):
        self.running.remove(job)
        self.free += job.processors
        if self.lent:
            self.free, self.lent = self.free - 1, self.lent - 1
        self.seconds_busy += outcome.processor
        job.state = "well" if job.well(outcome) else "bad"
        job.ended(outcome)

    def _give_up_what_cannot_begin(self):
        """A job that waits for a bad one is bad as well, and so on."""
        lost = True
        while lost:
            lost = [job for job in self.waiting if any(before.state == "bad" for before in job.after)]
            for job in lost:
                self.waiting.remove(job)
                job.state = "bad"
                if job.given_up:
                    job.given_up()
