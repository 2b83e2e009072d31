"""Ranks that cannot work together say so, and none waits for ever: builds of one version, and a rank that was asked for help.

SPDX-License-Identifier: MIT
"""
from cases_mpi import needs_mpi, ranked
from cases_shard_audits import other_build
from helpers import DEMO, contains, equal

REQUIRES = [needs_mpi]


def words(bench, out):
    bench.write("texts.txt", "a ship\nthe cat sat on the mat\n")
    return ["encode", DEMO, "--file", "texts.txt", "--pool", "mean", "--threads", 1, "-o", out]


def test_ranks_of_two_builds(bench):
    program, build = other_build(bench, f"{bench.program}-mpi", "other-mpi")
    _, err = ranked(bench, (1, words(bench, "b.npy")), (1, words(bench, "b.npy"), [program]), code=3)
    contains(err, "rank 1 is version", "zzz", f"but rank 0 is {build}")


def test_a_rank_that_prints_its_help(bench):
    for first, second, who in ((words(bench, "h.npy"), ["encode", "--help"], 1), (["--version"], words(bench, "h.npy"), 0), (words(bench, "h.npy"), ["help", "encode"], 1)):
        _, err = ranked(bench, (1, first), (1, second), code=2)
        contains(err, f"rank {who} printed its help or its version, and computes nothing")
    out, _ = ranked(bench, (2, ["encode", "--help"]))
    equal(out.count("usage: deberta encode"), 2, out)
