"""Training by several processes: losses, weights and moments equal those of the plain program, whatever the number of ranks and their
instruction sets, also where a run stops with some and goes on with others; a rank that fails or differs ends all, with its name, and none
waits for ever.

SPDX-License-Identifier: MIT
"""
import contextlib
import os
import random
import shutil
import signal
import subprocess
import time
from unittest import SkipTest

from cases_train import digest, log_without_time
from cases_train_interrupted import FILES, LINES, small_run
from cases_shard_attacks import other_build
from helpers import DEMO, check, contains, equal, is_sanitized, make_model, wait_until

SEED = int(os.environ.get("DEBERTA_TEST_SEED", random.SystemRandom().randrange(1 << 30)))
ENVIRONMENT = {"OMPI_MCA_rmaps_base_oversubscribe": "1", "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
               "OMPI_MCA_btl_vader_single_copy_mechanism": "none", "OMPI_MCA_hwloc_base_binding_policy": "none"}
LABELS = ("red", "green", "blue")


def needs_mpi(bench):
    if not shutil.which("mpirun") or not os.path.exists(f"{bench.program}-mpi"):
        raise SkipTest("no mpirun, or no deberta-mpi")
    if is_sanitized(bench.program):
        raise SkipTest("the sanitizer sees what MPI leaves")


REQUIRES = [needs_mpi]


def start(bench, apps):
    """One mpirun of one application or several: [(ranks, words)], or with what calls it instead: (ranks, words, ["env", "A=B", program])."""
    command = ["mpirun"]
    for number, (ranks, words, *called) in enumerate(apps):
        command += [":"] * (number > 0) + ["-n", str(ranks), *(called[0] if called else [f"{bench.program}-mpi"]), *map(str, words)]
    return subprocess.Popen(command, cwd=bench.folder, env={**os.environ, **ENVIRONMENT}, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def launcher_crashed(code, err):
    """Open MPI 4.1's mpirun can die of a signal of its own while it hands on the message of MPI_Abort; a rank's signal gives 128 and more."""
    return code < 0 and "libopen-rte" in err


def ranked(bench, *apps, code=0):
    """Runs them; again, without what the first run has left, where the launcher itself was at fault."""
    before = set(os.listdir(bench.folder))
    for _ in range(3):
        run = start(bench, apps)
        try:
            out, err = run.communicate(timeout=120)
        except subprocess.TimeoutExpired:
            run.kill()
            raise AssertionError(f"{apps} hangs") from None
        if not launcher_crashed(run.returncode, err):
            break
        print("mpirun itself ended by a signal; once more")
        for name in set(os.listdir(bench.folder)) - before:
            path = bench.path(name)
            shutil.rmtree(path) if os.path.isdir(path) else os.remove(path)
    equal(run.returncode, code, err)
    return out, err


def same(bench, found, expected, files=FILES):
    for file in files:
        equal(digest(bench, f"{found}/{file}"), digest(bench, f"{expected}/{file}"), f"{found}/{file}")
    equal(log_without_time(bench, found), log_without_time(bench, expected), found)


def words_of(bench, dice, kind):
    """A run of a kind, with drawn ways to save memory; all of its files are tiny."""
    words = small_run(bench, 4, "--checkpoint-every", "2")
    more = ["--seed", str(dice.randrange(1000))]
    more += dice.choice([[], ["--micro-tokens", "40"], ["--recompute"]])
    more += dice.choice([[], ["--dropout", "0.1"], ["--dropout", "0"]])
    if kind == "mlm":
        return words + more + dice.choice([[], ["--eval", "corpus.txt", "--eval-every", "2"]])
    if kind == "rtd":
        discriminator, generator = (str(bench.shared(f"mpi-{case}", lambda path, case=case: make_model(path, case, "spm-unigram", 3001, None))) for case in ("36", "33"))
        return ["train", "rtd", discriminator, "--generator", generator, "--file", "corpus.txt", "--sequence-tokens", "16", "--batch-sequences", "5", "--steps", "4",
                "--checkpoint-every", "2", "--threads", "1", *more, *dice.choice([[], ["--coupled"]])]
    if not os.path.exists(bench.path("base")):
        bench.fine(*words, "--out", "base")
    if kind == "sequence":
        bench.write("sequence.tsv", "".join(f"{dice.choice(LABELS)}\t{line}\n" for line in LINES))
    if kind == "choice":
        bench.write("choice.tsv", "".join(f"{n % 2}\t{LINES[n]}\t{LINES[n + 1]}\t{LINES[n + 2]}\n" for n in range(40)))
    more += dice.choice([[], ["--sift", "1"]])
    return ["finetune", kind, "base", "--examples", f"{kind}.tsv", "--new-head", "--cut", "--steps", "4", "--checkpoint-every", "2", "--batch-sequences", "6",
            "--threads", "1", *more, *dice.choice([[], ["--eval", f"{kind}.tsv", "--eval-every", "2"]])]


def files_of(kind):
    return ("generator/model.safetensors", "discriminator/model.safetensors") if kind == "rtd" else ("model.safetensors",)


def drawn(bench, kind, ranks):
    dice = random.Random(f"{SEED} {kind} {ranks}")
    words = words_of(bench, dice, kind)
    print(f"seed {SEED}: {ranks} ranks, {' '.join(words)}")
    bench.fine(*words, "--out", "plain")
    ranked(bench, (ranks, [*words, "--out", "ranks"]))
    same(bench, "ranks", "plain", files_of(kind))
    ranked(bench, (ranks, [*words, "--stop-at", "2", "--out", "halves"]))
    others = dice.choice([number for number in (1, 2, 3, 4) if number != ranks])
    if others == 1:
        bench.fine(*words, "--resume", "--out", "halves")
    else:
        ranked(bench, (others, [*words, "--resume", "--out", "halves"]))
    same(bench, "halves", "plain", files_of(kind))
    ranked(bench, (ranks, [*words, "--resume", "--out", "halves"]))  # finished: all ranks end, and nothing is written
    same(bench, "halves", "plain", files_of(kind))


def test_mlm(bench):
    drawn(bench, "mlm", 3)


def test_rtd(bench):
    drawn(bench, "rtd", 2)


def test_sequence(bench):
    drawn(bench, "sequence", 4)


def test_choice(bench):
    drawn(bench, "choice", 3)


def test_chain(bench):
    """The first rank writes the chain, and it is that of one process."""
    words = small_run(bench, 4, "--checkpoint-every", "2", "--chain", "--chain-every", "1")
    bench.fine(*words, "--out", "plain")
    ranked(bench, (3, [*words, "--out", "ranks"]))
    same(bench, "ranks", "plain", (*FILES, "chain.jsonl"))
    contains(bench.fine("verify", "--audit", "ranks", "--segments", "9").out, "every record is equal")


def test_one_rank_and_tiers(bench):
    """One rank is the plain program; ranks of different instruction sets give its bits."""
    words = small_run(bench, 3)
    bench.fine(*words, "--out", "plain")
    ranked(bench, (1, [*words, "--out", "one"]))
    same(bench, "one", "plain")
    ranked(bench, (1, [*words, "--isa", "scalar", "--out", "tiers"]), (1, [*words, "--out", "tiers"]))
    same(bench, "tiers", "plain")


def test_differing_inputs(bench):
    """A rank with another file, or another option that bits depend on, is named once, and nothing is written."""
    words = small_run(bench, 3)
    bench.write("other.txt", "\n".join(LINES[1:]) + "\n")
    others = ["other.txt" if word == "corpus.txt" else word for word in words]
    _, err = ranked(bench, (2, [*words, "--out", "a"]), (1, [*others, "--out", "a"]), code=3)
    contains(err, "rank 2 has another 'data' than rank 0")
    equal(err.count("rank 2 has another"), 1, err)
    _, err = ranked(bench, (1, [*words, "--out", "a"]), (1, [*words, "--seed", "5", "--out", "a"]), code=3)
    contains(err, "rank 1 has another")
    check(not os.path.exists(bench.path("a")), "nothing is written")


def test_errors(bench):
    """All fail alike, or one alone: one message, and the exit code of the failure."""
    words = small_run(bench, 3)
    _, err = ranked(bench, (3, [*words, "--file", "missing.txt", "--out", "a"]), code=3)
    equal(err.count("missing.txt"), 1, err)
    _, err = ranked(bench, (1, [*words, "--out", "a"]), (1, [*words, "--file", "missing.txt", "--out", "a"]), code=3)
    contains(err, "rank 1 of 2 (", "missing.txt")
    equal(err.count("missing.txt"), 1, err)
    _, err = ranked(bench, (4, [*words, "--virtual-shards", "2", "--out", "a"]), code=3)
    contains(err, "4 ranks, but a step has 2 shards")
    _, err = ranked(bench, (2, ["info"]), code=2)
    contains(err, "several ranks compute train and finetune")


def pids_of_ranks(launcher):
    with open(f"/proc/{launcher}/task/{launcher}/children") as file:
        return [int(word) for word in file.read().split()]


def kill_a_rank(dice, launcher):
    """One of those that run; one that has just ended is none."""
    victims = pids_of_ranks(launcher.pid) if launcher.poll() is None else []
    if victims:
        with contextlib.suppress(ProcessLookupError):
            os.kill(dice.choice(victims), signal.SIGKILL)


def test_killed(bench):
    """A rank is killed at drawn moments: the others end with a message, and what goes on has the same bits."""
    words = small_run(bench, 120, "--checkpoint-every", "5")
    bench.fine(*words, "--out", "whole")
    dice = random.Random(f"{SEED} killed")
    print(f"seed {SEED}")
    killed = 0
    for number in range(3):
        out = f"killed-{number}"
        run = start(bench, [(3, [*words, "--out", out])])
        wait_until(lambda: run.poll() is not None or os.path.exists(bench.path(f"{out}/log.jsonl")), 20)  # noqa: B023
        time.sleep(dice.uniform(0, 0.5))
        kill_a_rank(dice, run)
        _, err = run.communicate(timeout=60)
        if run.returncode == 0:
            continue
        killed += 1
        if not launcher_crashed(run.returncode, err):
            contains(err, "rank", "signal")
        ranked(bench, (2, [*words, "--resume", "--out", out]))
        same(bench, out, "whole")
    check(killed > 0, "nobody was killed")


def test_stopped_by_a_signal(bench):
    """One rank is told to stop: all do, rank 0 writes its checkpoint to the end, and what goes on has the same bits."""
    words = small_run(bench, 400, "--checkpoint-every", "1000")
    bench.fine(*words, "--out", "whole")
    run = start(bench, [(3, [*words, "--out", "stopped"])])
    log = bench.path("stopped/log.jsonl")
    wait_until(lambda: run.poll() is not None or (os.path.exists(log) and os.path.getsize(log) > 500), 20)
    for victim in pids_of_ranks(run.pid)[-1:]:
        os.kill(victim, signal.SIGTERM)
    _, err = run.communicate(timeout=60)
    if not launcher_crashed(run.returncode, err):
        equal(run.returncode, 75, err)
    ranked(bench, (2, [*words, "--resume", "--out", "stopped"]))
    same(bench, "stopped", "whole")


def test_plain_program_has_no_mpi(bench):
    listed = subprocess.run(["ldd", bench.program], capture_output=True, text=True, check=True).stdout
    check("libmpi" not in listed, listed)
    contains(bench.fine("info", "--json").out, '"mpi": false')
    out, _ = ranked(bench, (1, ["info", "--json"]))
    contains(out, '"mpi": true')


def vectors_of(bench, out):
    bench.write("texts.txt", "a ship\nthe cat sat on the mat\n")
    return ["encode", DEMO, "--file", "texts.txt", "--pool", "mean", "--threads", 1, "-o", out]


def test_ranks_of_two_builds(bench):
    program, build = other_build(bench, f"{bench.program}-mpi", "other-mpi")
    _, err = ranked(bench, (1, vectors_of(bench, "b.npy")), (1, vectors_of(bench, "b.npy"), [program]), code=3)
    contains(err, "rank 1 is version", "zzz", f"but rank 0 is {build}")


def test_a_rank_that_prints_its_help(bench):
    for first, second, who in ((vectors_of(bench, "h.npy"), ["encode", "--help"], 1), (["--version"], vectors_of(bench, "h.npy"), 0), (vectors_of(bench, "h.npy"), ["help", "encode"], 1)):
        _, err = ranked(bench, (1, first), (1, second), code=2)
        contains(err, f"rank {who} printed its help or its version, and computes nothing")
    out, _ = ranked(bench, (2, ["encode", "--help"]))
    equal(out.count("usage: deberta encode"), 2, out)
