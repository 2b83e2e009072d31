"""Runs measurements in turns: processes and the load by others, processes that stay alive, and the order of a round.

SPDX-License-Identifier: MIT
"""
import contextlib
import dataclasses
import math
import os
import resource
import signal
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PROGRAM = Path(os.environ.get("DEBERTA_PROGRAM", ROOT / "build" / "deberta"))
QUIET_SECONDS = 0.5  # time over which the machine is observed before each visit
LEAST_ROUNDS = 3  # rounds before the limit of seconds can end them


class Failure(Exception):
    """A process ended badly; the text is the last of its output."""


class TimeOver(Exception):
    """A file was made, and the time of this run is over: the same command goes on with it."""


# ------------------------------------------------------------------------------------------------------------- rounds


def rotated(names, turn):
    """Rotates names, so that every round begins with another one."""
    first = turn % max(1, len(names))
    return names[first:] + names[:first]


def in_turns(rounds, parties, seconds=math.inf):
    """Returns the results of each party of {name: function}, by round; the limit of seconds ends them after the third."""
    found, begun = [], time.monotonic()
    for turn in range(rounds):
        if turn >= LEAST_ROUNDS and time.monotonic() - begun > seconds:
            break
        found.append({name: parties[name]() for name in rotated(list(parties), turn)})
    return found


def seconds_of(call, clock=time.perf_counter):
    begun = clock()
    call()
    return clock() - begun


# ------------------------------------------------------------------------------------------------------------ machine


def machine_seconds():
    """Returns CPU seconds of the whole machine, and those that the hypervisor took, since boot."""
    with open("/proc/stat", encoding="ascii") as file:
        user, nice, system, _, _, irq, softirq, stolen = (int(x) for x in file.readline().split()[1:9])
    hertz = os.sysconf("SC_CLK_TCK")
    return (user + nice + system + irq + softirq) / hertz, stolen / hertz


def memory_of(path, key):
    """Returns the bytes in a line of a file of /proc."""
    return next(1024 * int(line.split()[1]) for line in Path(path).read_text("ascii").splitlines() if line.startswith(key + ":"))


def peak_memory_bytes():
    """Returns VmHWM, because ru_maxrss survives exec and so includes the parent."""
    return memory_of("/proc/self/status", "VmHWM")


@contextlib.contextmanager
def busy_neighbour(core=None):
    """Starts a process that keeps a core busy; yields its id."""
    with subprocess.Popen([sys.executable, "-c", "while True: pass"]) as process:
        try:
            if core is not None:
                os.sched_setaffinity(process.pid, {core})
            yield process.pid
        finally:
            process.kill()


@dataclasses.dataclass(frozen=True)
class Patience:
    other_cores: float  # cores that others may use
    seconds: float  # time to wait for them to stop
    attempts: int  # repetitions of a disturbed visit
    accept: bool  # true: measure all the same, and mark

    def wait(self, runner):
        """Waits; returns True when the machine is quiet."""
        deadline = time.monotonic() + self.seconds
        while (foreign := runner.foreign_cores()) > self.other_cores:
            if self.accept or time.monotonic() > deadline:
                return False
            print(f"waiting: others use {foreign:.2f} cores", file=sys.stderr, flush=True)
            time.sleep(5)
        return True


# ---------------------------------------------------------------------------------------------------------- processes


@dataclasses.dataclass(frozen=True)
class Finished:
    output: str
    said: str
    seconds: float
    other_cores: float  # cores used by other processes than it, this one and the neighbour, over its whole life
    stolen_cores: float


@dataclasses.dataclass(frozen=True)
class Runner:
    limit: float = 900  # seconds that a process may take
    neighbour: int = 0  # process id of the busy process

    def cpu_seconds(self):
        """Returns CPU seconds of this process, of those that it waited for, and of the neighbour."""
        used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
        seconds = sum(u.ru_utime + u.ru_stime for u in used)
        if self.neighbour:
            fields = Path(f"/proc/{self.neighbour}/stat").read_text("ascii").rsplit(")", 1)[1].split()
            seconds += (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
        return seconds

    def run(self, *command, environment=None, folder=None):
        (busy, stolen), own, spawned = machine_seconds(), self.cpu_seconds(), time.monotonic()
        variables = dict(environment or os.environ, RIVALS_SPAWNED=repr(spawned))
        output, said, status = self.finish(list(map(str, command)), variables, folder)
        seconds = time.monotonic() - spawned
        if status != 0:
            raise Failure(f"exit status {status}: {(said.strip().splitlines() or [''])[-1]}"[:300])
        busy_after, stolen_after = machine_seconds()
        others = (busy_after - busy - (self.cpu_seconds() - own)) / seconds
        return Finished(output, said, seconds, max(0.0, others), (stolen_after - stolen) / seconds)

    def finish(self, command, environment, folder):
        """Returns output, errors and exit status. The process has a session of its own, so that no descendant outlives it."""
        with subprocess.Popen(command, env=environment, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                              start_new_session=True) as process:  # fmt: skip
            try:
                return *process.communicate(timeout=self.limit), process.returncode
            except BaseException as interruption:
                os.killpg(process.pid, signal.SIGKILL)
                if isinstance(interruption, subprocess.TimeoutExpired):
                    raise Failure(f"took more than {self.limit:.0f} s") from None
                raise

    def foreign_cores(self):
        """Returns the cores used by other processes, and taken by the hypervisor, at this moment."""
        before, own, began = sum(machine_seconds()), self.cpu_seconds(), time.monotonic()
        time.sleep(QUIET_SECONDS)
        used = sum(machine_seconds()) - before - (self.cpu_seconds() - own)
        return max(0.0, used / (time.monotonic() - began))


def worker_command(*arguments, job="worker"):
    """Returns the command of a fresh process of this interpreter that does one thing of a job (worker.py)."""
    return [sys.executable, str(ROOT / "tools" / "peers.py"), job, *map(str, arguments)]


def with_threads(threads, further=()):
    """Returns variables for a process that uses so many threads, and no network."""
    return dict(os.environ, OMP_NUM_THREADS=str(threads), MKL_NUM_THREADS=str(threads), HF_HUB_OFFLINE="1") | dict(further)


# ------------------------------------------------------------------------------------------- processes that stay alive


class Alive:
    """A process that stays open and times calls on request; its other side is answer_turns."""

    def __init__(self, name, command, environment=None):
        self.name = name
        self.process = subprocess.Popen(command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def answer(self):
        line = self.process.stdout.readline()
        if not line:
            raise Failure(f"{self.name}: its process ended")
        return line

    def seconds(self, key=0, warm=1, calls=1):
        """Returns the seconds of so many calls, after uncounted ones."""
        self.process.stdin.write(f"{key} {warm} {calls}\n")
        self.process.stdin.flush()
        return list(map(float, self.answer().split()))

    def close(self):
        self.process.stdin.close()
        self.process.wait(60)


def answer_turns(calls, first, processor_time=False):
    """Prints `first`, then for every line of input the seconds of so many calls of {key: function}."""
    print(first, flush=True)
    for line in sys.stdin:
        key, warm, count = map(int, line.split())
        clock = time.process_time if processor_time else time.perf_counter
        print(*[seconds_of(calls[key], clock) for _ in range(warm + count)][warm:], flush=True)
