"""Jobs next to each other, so that every processor has work until the end.

A job is one process. It starts when the jobs that it waits for have ended well and its processors are free; of those that may start, the
longest does. A job that looks at clocks is alone: it runs when all others have ended, one at a time.

SPDX-License-Identifier: MIT
"""
import queue
import threading

from testing import processes


class Job:
    """command: what runs, or a function that knows it when it is to begin. expected: seconds, roughly. ended(outcome): called once it has run, and may add jobs. given_up(): called instead of running, since
    a job before it has failed. well(outcome): may what waits for it begin?"""

    def __init__(self, command, ended, environment=None, limit=1800, folder=processes.ROOT, expected=1.0, processors=1, alone=False, after=(),
                 given_up=None, well=lambda outcome: outcome.status == 0):
        self.command, self.ended, self.environment, self.limit, self.folder = command, ended, environment, limit, folder
        self.expected, self.processors, self.alone = expected, processors, alone
        self.after, self.given_up, self.well = list(after), given_up, well
        self.state = "waiting"  # then "running", then "well" or "bad"


class Schedule:
    """shared: between several stages."""

    def __init__(self, processors, shared=False):
        self.processors, self.free, self.shared = processors, processors, shared
        self.waiting, self.endings = [], queue.Queue()
        self.seconds_busy = 0.0  # of processor time

    def add(self, job):
        job.processors = min(job.processors, self.processors)
        self.waiting.append(job)
        return job

    def run(self):
        try:
            self._start_jobs()
            while self.free < self.processors:
                self._take(*self.endings.get())
                self._start_jobs()
        except BaseException:
            processes.stop_all()
            raise

    def _start_jobs(self):
        self._give_up_what_cannot_begin()
        ready = [job for job in self.waiting if all(before.state == "well" for before in job.after)]
        for job in sorted(ready, key=lambda job: (job.alone, -job.expected)):
            # One that must be alone begins when nothing runs and nothing else could.
            fits = self.free == self.processors and all(other.alone for other in ready) if job.alone else job.processors <= self.free
            if fits:
                self._start(job)

    def _start(self, job):
        self.waiting.remove(job)
        job.state = "running"
        if job.alone:
            job.processors = self.processors
        self.free -= job.processors

        def work():
            try:
                job.command = job.command() if callable(job.command) else job.command
                self.endings.put((job, processes.execute(job.command, job.environment, job.limit, job.folder)))
            except BaseException as failure:  # or the run would wait for ever
                self.endings.put((job, processes.Outcome(f"{job.command}: {failure!r}\n", 127, 0.0, 0.0)))

        threading.Thread(target=work, daemon=True).start()

    def _take(self, job, outcome):
        self.free += job.processors
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
