"""Corpora by several ranks: whatever is drawn (command, format, number of ranks and of shards, moments of death), the joined file has the
bytes of one process, and the shards those of the plain program; a rank that fails, differs or is stopped is told of once.

DEBERTA_TEST_SEED repeats what was drawn. SPDX-License-Identifier: MIT
"""
import json
import os
import pathlib
import random
import re
import signal
import time

from cases_mpi import SEED, kill_a_rank, launcher_crashed, needs_mpi, pids_of_ranks, ranked, start
from cases_shards import digest, draw_command, make_input, plain
from helpers import DEMO, check, contains, equal, other_build, wait_until

FAILING = "tests/failing_calls/failing_calls.so"
REQUIRES = [needs_mpi]


def shards_of(folder):
    return {path.name: digest(path) for path in pathlib.Path(folder).iterdir()}


def test_drawn_corpora(bench):
    """One to four ranks write the file of one process, and each its shards as the plain program would, bad items and all."""
    for case in range(2):
        dice = random.Random(f"{SEED} corpora {case}")
        command, words, suffix = draw_command(bench, dice)
        source = make_input(dice, f"in{case}", dice.randrange(1, 60), command == "fill-mask")
        words = [command, *words, "--file", source, "--threads", 1, *["--skip-bad"] * (dice.random() < 0.6)]
        print(f"seed {SEED}: case {case}, {' '.join(map(str, words))}")
        one = bench.run(*words, "-o", f"one{case}{suffix}")
        shards = dice.randrange(4, 7)
        for ranks in (1, 2, 3, 4):
            out = f"of{ranks}-{case}{suffix}"
            divided = ["--shards", shards] if ranks in (1, 4) else []
            _, err = ranked(bench, (ranks, [*words, *divided, "-o", out]), code=one.code)
            equal(digest(out), digest(f"one{case}{suffix}"), out)
            said, wanted = (sorted(re.findall(r"^deberta [a-z-]+: in\d.*, line \d+: .*$", text, re.MULTILINE)) for text in (err, one.err))
            check(said == wanted or len(wanted) >= 10, f"{said}, wanted {wanted}")
        for shard in range(shards):
            bench.run(*words, "-o", f"of5-{case}{suffix}", "--shards", shards, "--shard", shard)
        for ranks in (1, 4):
            equal(shards_of(f"of{ranks}-{case}{suffix}.shards"), shards_of(f"of5-{case}{suffix}.shards"), f"shards of {ranks} ranks")


def test_tiers(bench):
    """Ranks of different instruction sets: one file."""
    words = ["encode", DEMO, "--file", plain("tiers.txt", 40), "--threads", 1]
    bench.fine(*words, "-o", "one.npy")
    ranked(bench, (1, [*words, "--isa", "scalar", "-o", "tiers.npy"]), (1, [*words, "-o", "tiers.npy"]))
    equal(digest("tiers.npy"), digest("one.npy"))


def test_what_ranks_refuse(bench):
    words = ["encode", DEMO, "--file", plain("texts.txt", 10), "-o", "refused.npy"]
    for more, wanted in ((["--shards", 4, "--shard", 1], "leave it out"), (["--shards", "array"], "no job array"), (["--file", "-"], "every rank reads all"),
                         (["--shards", 1], "expected 2 or more")):
        _, err = ranked(bench, (2, [*words, *more]), code=2)
        contains(err, wanted)
        equal(err.count(wanted), 1, err)
    _, err = ranked(bench, (2, ["encode", DEMO, "--text", "a", "-o", "refused.safetensors"]), code=2)
    contains(err, "no padded tensors")
    _, err = ranked(bench, (2, ["info"]), code=2)
    contains(err, "several ranks compute train and finetune, and corpora")
    check(not os.path.exists("refused.npy.shards"), "nothing is written")


def test_ranks_that_differ(bench):
    """Another input or option at one rank is named once, before anything is written; so is a rank that cannot begin."""
    source, other = plain("texts.txt", 10), plain("others.txt", 11)
    words = ["encode", DEMO, "--file", source, "-o", "differing.npy"]
    for changed, wanted in (([*words[:3], other, *words[4:]], "rank 1 has another 'file' than rank 0"), ([*words, "--pool", "cls"], "rank 1 has another 'options' than rank 0"),
                            ([*words[:-1], "elsewhere.npy"], "rank 1 has another 'out' than rank 0"), ([*words, "--file", "missing.txt"], "missing.txt: No such file")):
        _, err = ranked(bench, (1, words), (1, changed), code=3)
        contains(err, wanted)
        equal(err.count(wanted), 1, err)
    check(not os.path.exists("differing.npy.shards") and not os.path.exists("elsewhere.npy.shards"), "nothing is written")
    ranked(bench, (2, words))
    before = digest("differing.npy")
    _, err = ranked(bench, (2, ["encode", DEMO, "--file", "missing.txt", "-o", "differing.npy"]), code=3)
    contains(err, "missing.txt: No such file")
    equal(digest("differing.npy"), before, "what was there stays")


def test_other_version(bench):
    """A rank of another version is named before anything else is compared."""
    _, own = other_build(bench, f"{bench.program}-mpi", "other")
    for words in (["encode", DEMO, "--file", plain("texts.txt", 4), "-o", "version.npy"], ["train", "mlm", DEMO, "--file", "texts.txt", "--steps", "1", "--out", "trained"]):
        _, err = ranked(bench, (1, words), (1, words, ["./other"]), code=3)
        equal(err.count(f"but rank 0 is {own}"), 1, err)
        contains(err, "rank 1 is version", "(zzz")
    check(not os.path.exists("version.npy.shards") and not os.path.exists("trained"), "nothing is written")


def test_full_disk(bench):
    """The disk of one rank is full at drawn moments: it says so with its name, and the same command goes on to the same bytes."""
    library = os.path.join(os.path.dirname(os.path.abspath(bench.program)), FAILING)
    words = ["encode", DEMO, "--file", plain("full.txt", 200), "--threads", 1, "--batch-tokens", 64]
    bench.fine(*words, "-o", "one.npy")
    dice = random.Random(f"{SEED} full")
    for number in range(2):
        out, rank, at = f"full{number}.npy", dice.randrange(3), dice.randrange(1, 30)
        print(f"seed {SEED}: rank {rank}, call {at}")
        arguments = [*words, "-o", out]
        full = ["env", f"LD_PRELOAD={library}", "FAIL_WITH=28", "FAIL_FROM=1", f"FAIL_UNDER={out}.shards", f"FAIL_AT={at}", f"{bench.program}-mpi"]
        _, err = ranked(bench, *[(1, arguments, full) if k == rank else (1, arguments) for k in range(3)], code=4)
        contains(err, "No space left on device", f"rank {rank} of 3" if rank else "this was rank 0 of 3")
        equal(err.count("No space left on device"), 1, err)
        check(not os.path.exists(out), "nothing half written")
        ranked(bench, (2, [*arguments, "--shards", 3]))
        equal(digest(out), digest("one.npy"))


def hears_of_stops(pid):
    """The program has said so for SIGUSR1; false of a process that has just ended, or is the launcher's own until it becomes the program."""
    try:
        if not os.readlink(f"/proc/{pid}/exe").endswith("-mpi"):
            return False
        status = pathlib.Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return False
    return int(re.search(r"SigCgt:\s*(\w+)", status)[1], 16) >> (signal.SIGUSR1 - 1) & 1


def flushes(out, shard, shards):
    journal = pathlib.Path(f"{out}.shards/{shard}-of-{shards}.npy.part.journal")
    return journal.read_bytes().count(b"\n") if journal.exists() else 0


def test_killed(bench):
    """A rank is killed at drawn moments: all end, what was flushed is not computed again, and the bytes are those of one process."""
    words = ["encode", DEMO, "--file", plain("killed.txt", 1200), "--threads", 1, "--batch-tokens", 64]
    bench.fine(*words, "-o", "one.npy")
    dice, killed, far = random.Random(f"{SEED} killed"), 0, [0] * 4
    print(f"seed {SEED}")
    for _ in range(4):
        run = start(bench, [(dice.choice([2, 3, 4]), [*words, "--shards", 4, "-o", "killed.npy"])])
        before = sum(far)
        wait_until(lambda: run.poll() is not None or sum(flushes("killed.npy", k, 4) for k in range(4)) > before + 4, 30)  # noqa: B023
        time.sleep(dice.uniform(0, 0.1))
        kill_a_rank(dice, run)
        _, err = run.communicate(timeout=60)
        if run.returncode == 0:
            break
        killed += 1
        if not launcher_crashed(run.returncode, err):
            contains(err, "rank", "signal")
        for k in range(4):
            found = flushes("killed.npy", k, 4)
            check(found >= far[k] or os.path.exists(f"killed.npy.shards/{k}-of-4.json"), "work that was flushed is lost")
            far[k] = max(found, far[k])
    check(killed > 0, "nobody was killed")
    ranked(bench, (2, [*words, "--shards", 4, "-o", "killed.npy"]))
    equal(digest("killed.npy"), digest("one.npy"))


def test_told_to_stop(bench):
    """mpirun hands SIGUSR1 to all ranks, or one alone is told: 75, and another number of ranks goes on with the same command."""
    words = ["classify", DEMO, "--json", "--file", plain("stop.txt", 900), "--threads", 1, "--batch-tokens", 64]
    bench.fine(*words, "-o", "one.jsonl")
    for case in ("all", "one"):
        out = f"stop-{case}.jsonl"
        run = start(bench, [(3, [*words, "--shards", 6, "-o", out])])
        journal = pathlib.Path(f"{out}.shards/0-of-6.jsonl.part.journal")
        wait_until(lambda: run.poll() is not None or (journal.exists() and journal.read_bytes().count(b"\n") >= 2), 30)  # noqa: B023
        os.kill(run.pid if case == "all" else pids_of_ranks(run.pid)[-1], signal.SIGUSR1)
        _, err = run.communicate(timeout=60)
        if not launcher_crashed(run.returncode, err):
            equal(run.returncode, 75, err)
        check(not os.path.exists(out), "not yet joined")
        ranked(bench, (2, [*words, "--shards", 6, "-o", out]))
        equal(digest(out), digest("one.jsonl"))


def test_told_to_stop_early(bench):
    """One rank is told as soon as it would hear of it, long before the first item: all end with 75, and the same command begins or goes on."""
    encode = ["encode", DEMO, "--file", plain("early.txt", 900), "--threads", 1, "--batch-tokens", 64]
    mlm = ["train", "mlm", DEMO, "--file", "early.txt", "--steps", 100000, "--sequence-tokens", 16, "--batch-sequences", 4, "--threads", 1, "-q", "-o", "early"]
    for words in ([*encode, "--shards", 6, "-o", "early.npy"], mlm):
        run = start(bench, [(2, words)])
        wait_until(lambda: run.poll() is not None or any(hears_of_stops(rank) for rank in pids_of_ranks(run.pid)[-1:]), 30)  # noqa: B023
        os.kill(pids_of_ranks(run.pid)[-1], signal.SIGUSR1)
        _, err = run.communicate(timeout=60)
        if not launcher_crashed(run.returncode, err):
            equal(run.returncode, 75, err)
    check(not os.path.exists("early.npy"), "not yet joined")
    check(any(name.startswith("checkpoint-") for name in os.listdir("early")), "a checkpoint is written")
    ranked(bench, (2, [*encode, "--shards", 6, "-o", "early.npy"]))
    bench.fine(*encode, "-o", "one.npy")
    equal(digest("early.npy"), digest("one.npy"))


def test_one_rank(bench):
    """Asked for shards, but not for which, one rank computes all; a task of a job array keeps its own."""
    source = plain("few.txt", 9)
    words = ["encode", DEMO, "--file", source, "--shards", 3, "-o", "few.npy"]
    ranked(bench, (1, words))
    bench.fine("encode", DEMO, "--file", source, "-o", "one.npy")
    equal(digest("few.npy"), digest("one.npy"))
    contains(bench.expect(2, *words).err, "say which one: --shard")
    ranked(bench, (1, [*words[:-1], "array.npy"], ["env", "SLURM_ARRAY_TASK_ID=1", f"{bench.program}-mpi"]))
    equal(sorted(os.listdir("array.npy.shards")), ["1-of-3.items", "1-of-3.json", "1-of-3.npy"])
    equal(json.loads(pathlib.Path("array.npy.shards/1-of-3.json").read_text())["shard"], 1)
    check(not os.path.exists("array.npy"), "one shard is not the whole")
