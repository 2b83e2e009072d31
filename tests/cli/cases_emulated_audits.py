"""Runs that this machine trains are audited on a processor that it does not have, and a changed record is noticed there as well: the nightly
stage audits of tools/gates/run_tests.py.

DEBERTA_TEST_AUDITOR is the program on that processor, with what emulates it; DEBERTA_TEST_AUDITOR_TIERS names the instruction sets there.
Without them the tests are skipped. SPDX-License-Identifier: MIT
"""
import os
import random
import shlex
import subprocess
from unittest import SkipTest

from cases_chain import SEED, check_chain, linked, read_chain
from cases_train_interrupted import small_run
from helpers import contains, equal

AUDITOR, TIERS = (os.environ.get(f"DEBERTA_TEST_AUDITOR{name}", "") for name in ("", "_TIERS"))
CHAIN = ("--chain", "--chain-every", "1", "--keep-every", "2", "--checkpoint-every", "2")


def needs_auditor(_bench):
    if not AUDITOR or not TIERS:
        raise SkipTest("no DEBERTA_TEST_AUDITOR: tools/gates/run_tests.py --stage audits has one")


REQUIRES = [needs_auditor]


def masked(bench):
    return small_run(bench, 4, *CHAIN), ("",)


def replaced(bench):
    """Both models begin as one of 50 pieces and one layer: an emulated processor takes a minute for that, and for larger ones many."""
    bench.fine(*small_run(bench, 1), "--out", "generator")
    return ["train", "rtd", "generator", "--new-head", "--generator", "generator", "--file", "corpus.txt", "--sequence-tokens", "16", "--batch-sequences", "3", "--steps", "4",
            "--threads", "1", *CHAIN], ("generator", "discriminator")


def audited(bench, code, *words):
    run = subprocess.run([*shlex.split(AUDITOR), "verify", "--audit", "run", "--segments", "99", *words], cwd=bench.folder, stdout=subprocess.PIPE,
                         stderr=subprocess.STDOUT, text=True, timeout=1500, check=False)
    equal(run.returncode, code, run.stdout)
    return run.stdout


def trained_here(bench, run):
    dice = random.Random(f"{SEED} {run.__name__}")
    words, parts = run(bench)
    words += ["--seed", str(dice.randrange(1000)), *dice.choice([[], ["--dropout", "0.1"], ["--recompute"], ["--micro-tokens", "40"]])]
    print(f"seed {SEED}: {' '.join(words)}")
    bench.fine(*words, "--out", "run")
    check_chain(bench, "run", parts)
    for tier in TIERS.split(","):
        contains(audited(bench, 0, "--isa", tier), "2 of 2 segments executed again", "every record is equal")
    records = read_chain(bench, "run")
    places = [k for k, record in enumerate(records) if "state" in record]
    records[places[1]]["state"] = records[places[2]]["state"]
    bench.write("run/chain.jsonl", linked(records))
    contains(audited(bench, 1), "differs: the state after step 1: computed is")


def test_mlm(bench):
    trained_here(bench, masked)


def test_rtd(bench):
    trained_here(bench, replaced)
