"""Commands that write rows of a corpus or lines of a shard run on one loop: each stops after what it has begun, says the same, and goes
on to the bytes of an undisturbed run.

SPDX-License-Identifier: MIT
"""
import contextlib
import os
import pathlib
import re
import signal
import subprocess

from helpers import DEMO, ending, equal, wait_until

TEXTS = ["a new store opened\n", "beside the old mall\n", "in town\n"]


def test_stops_and_goes_on(bench):
    """The input comes through a pipe, so that the program stops after the first text or the second, whatever the speed of the machine."""
    pathlib.Path("all.txt").write_text("".join(TEXTS))
    for name, command in (("rows.npy", ["encode", DEMO]), ("rows.jsonl", ["encode", DEMO, "--window", 4]), ("lines.jsonl", ["classify", DEMO, "--json"])):
        shard = ["--shards", 1, "--shard", 0, "--batch-tokens", 1]
        suffix = pathlib.Path(name).suffix
        journal = pathlib.Path(f"{name}.shards/0-of-1{suffix}.part.journal")
        os.mkfifo(f"{name}.fifo")
        process = bench.start(*command, "--file", f"{name}.fifo", "-o", name, *shard, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        with ending(process), open(f"{name}.fifo", "wb", buffering=0) as pipe:
            pipe.write(TEXTS[0].encode())
            assert wait_until(lambda: journal.exists() and b'{"texts":1,' in journal.read_bytes()), name
            process.send_signal(signal.SIGUSR1)
            with contextlib.suppress(BrokenPipeError):
                pipe.write(TEXTS[1].encode())
            said = process.communicate(timeout=60)[1]
        done = re.fullmatch(r"stopped after ([12]) items of the input; the same command goes on", said.decode().splitlines()[-1])
        assert process.returncode == 75 and done, (process.returncode, said)
        told = bench.fine(*command, "--file", "all.txt", "-o", name, *shard)
        assert f"{done[1]} {'text is' if done[1] == '1' else 'texts are'} done already\n" in told.err, told.err
        bench.fine(*command, "--file", "all.txt", "-o", f"whole-{name}", *shard)
        rows = [pathlib.Path(f"{out}.shards/0-of-1{suffix}").read_bytes() for out in (name, f"whole-{name}")]
        assert rows[0].replace(f"{name}.fifo".encode(), b"all.txt") == rows[1], name


def test_nothing_to_read(bench):
    """All say it in the same words, and leave no file."""
    pathlib.Path("none.txt").write_text("")
    for command in (["encode", DEMO, "-o", "none.npy"], ["classify", DEMO, "--json", "-o", "none.jsonl"]):
        told = bench.run(*command, "--file", "none.txt")
        equal((told.code, told.err), (3, f"deberta {command[0]}: none.txt has no lines\n"))
        assert not list(pathlib.Path(".").glob("none.[nj]*")), command
