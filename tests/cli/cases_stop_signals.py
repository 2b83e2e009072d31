"""What a scheduler sends ends every long command with 75, as early as it may come; a training has written its checkpoint.

SPDX-License-Identifier: MIT
"""
import os
import resource
import signal
import subprocess
import time

from helpers import DEMO, check, equal

STOPS = (signal.SIGTERM, signal.SIGUSR1, signal.SIGUSR2, signal.SIGXCPU)
TRAIN = ["--steps", "100000", "--sequence-tokens", "32", "--batch-sequences", "2", "-t", "1", "-q"]


def stopped(bench, words, number, ready):
    run = bench.start(*words, stderr=subprocess.PIPE, text=True)
    until = time.monotonic() + 30
    while time.monotonic() < until and run.poll() is None and not ready(run):
        time.sleep(0.01)
    run.send_signal(number)
    said = run.communicate(timeout=60)[1]
    return run.returncode, said


def has_line(path):
    return lambda _: os.path.exists(path) and os.path.getsize(path) > 0


def catches(run):
    """As soon as the program has said that it will hear of SIGUSR1."""
    with open(f"/proc/{run.pid}/status", encoding="ascii") as file:
        caught = [int(line.split()[1], 16) for line in file if line.startswith("SigCgt")]
    return caught[0] >> (signal.SIGUSR1 - 1) & 1


def checkpoints(bench, folder):
    return [name for name in os.listdir(bench.path(folder)) if name.startswith("checkpoint-")]


def test_stop_signals_in_training(bench):
    bench.write("t.txt", "".join(f"the old captain number {k} opened a new store beside the sea\n" for k in range(60)))
    bench.write("t.tsv", "".join(f"{k % 2}\tthe old captain number {k}\n" for k in range(20)))
    mlm, sequence = ["train", "mlm", DEMO, "--file", "t.txt", *TRAIN], ["finetune", "sequence", DEMO, "--examples", "t.tsv", "--new-head", *TRAIN]
    for k, number in enumerate(STOPS):
        words, out = (mlm, sequence)[k % 2], f"m{k}"
        code, said = stopped(bench, [*words, "-o", out], number, has_line(bench.path(f"{out}/log.jsonl")))
        equal(code, 75, said)
        check(checkpoints(bench, out), "a checkpoint is written")


def test_stop_signals_that_come_early(bench):
    bench.write("t.txt", "".join(f"the old captain number {k} opened a new store\n" for k in range(20000)))
    code, said = stopped(bench, ["train", "mlm", DEMO, "--file", "t.txt", *TRAIN, "-o", "m"], signal.SIGUSR1, catches)
    equal((code, bool(checkpoints(bench, "m"))), (75, True), said)
    for words in (["encode", DEMO, "--file", "t.txt", "--pool", "mean", "-o", "x.npy"], ["fill-mask", DEMO, "--file", "t.txt", "--json", "-o", "x.jsonl"]):
        code, said = stopped(bench, [*words, "--shards", "1", "--shard", "0", "-t", "1", "-q"], signal.SIGTERM, catches)
        equal(code, 75, said)


def test_stop_where_processor_time_is_short(bench):
    """The kernel sends SIGXCPU every second: the step and the checkpoint still come to their end."""
    bench.write("t.txt", "".join(f"the old captain number {k} opened a new store beside the sea\n" for k in range(60)))
    run = bench.start("train", "mlm", DEMO, "--file", "t.txt", *TRAIN, "-o", "m", stderr=subprocess.PIPE, text=True,
                      preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_CPU, (1, 30)))
    said = run.communicate(timeout=60)[1]
    equal((run.returncode, bool(checkpoints(bench, "m"))), (75, True), said)
