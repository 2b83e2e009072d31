"""A stream served by several engines: one that fails stops no other, a run goes on where it was stopped, the table has each round's ratio.
SPDX-License-Identifier: MIT"""
import math
import random
import re
import statistics
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from conftest import ROOT

sys.path.insert(0, str(ROOT / "tools"))
from rivals import requests as peers_requests  # noqa: E402
from rivals.results import read_rows  # noqa: E402
from rivals.turns import TimeOver  # noqa: E402
from rivals.work_folder import Work  # noqa: E402

ENGINES = ["deberta", "onnxruntime", "openvino"]
SEED = 20261126


@pytest.fixture()
def served(tmp_path, monkeypatch):
    """(arguments, visits): engines that give drawn numbers, but OpenVINO, which fails at flat-long; every visit is noted."""
    draw, visits = random.Random(SEED), []
    print(f"seed {SEED}")

    def serve(visit, lengths, work, arguments):
        visits.append((visit["round"], visit["mix"], visit["engine"]))
        if len(visits) == arguments.stop_at:
            arguments.end = 0
        if visits[-1][1:] == ("flat-long", "openvino"):
            raise peers_requests.Failure("took more than 900 s")
        assert lengths == [8] * visit["requests"]
        return [[draw.uniform(1, 100) for _ in peers_requests.NUMBERS] for _ in peers_requests.WAYS], "version", 0.25

    monkeypatch.setattr(peers_requests, "visit_ours", serve)
    monkeypatch.setattr(peers_requests, "visit_peer", serve)
    monkeypatch.setattr(peers_requests, "serve_ours", lambda model, mix, requests, *_: ({"lengths": [8] * requests}, None))
    arguments = SimpleNamespace(work=tmp_path, out=tmp_path / "streams.tsv", program="", limit=1, model="v3-base", mixes=peers_requests.mix_list("flat-long:3,mixed-tail"),
                                engines=ENGINES, threads=[2], requests=2, rounds=3, stop_at=0, end=math.inf)  # fmt: skip
    return arguments, visits


def test_an_engine_that_fails_stops_no_other(served):
    arguments, visits = served
    assert peers_requests.serve_all(arguments)
    rows = read_rows(arguments.out)
    assert len(rows) == 3 * 3 * 2 * 2
    assert {(row["engine"], row["mix"]) for row in rows if row["failed"]} == {("openvino", "flat-long")}
    assert {(row["mix"], row["requests"]) for row in rows} == {("flat-long", "3"), ("mixed-tail", "2")}
    assert [visits[k][2] for k in (0, 3, 6, 9, 12, 15)] == [engine for engine in ENGINES for _ in range(2)]  # a round begins with another one


def test_a_stopped_run_goes_on(served, capsys):
    arguments, visits = served
    arguments.stop_at = 7
    assert not peers_requests.serve_all(arguments)
    assert "round 1, openvino flat-long: not measured, the time is over; the same command goes on" in capsys.readouterr().out
    arguments.end = math.inf
    assert peers_requests.serve_all(arguments) and peers_requests.serve_all(arguments)
    assert len(set(visits)) == len(visits) == 3 * 3 * 2
    keys = [tuple(row[name] for name in (*peers_requests.VISIT, "way")) for row in read_rows(arguments.out)]
    assert len(set(keys)) == len(keys) == 3 * 3 * 2 * 2


def test_a_round_without_all_peers_has_no_ratio(served, capsys):
    """A file of a run that was stopped before OpenVINO's first visit, and behind it, where it failed."""
    arguments, _ = served
    for arguments.stop_at, cell in ((2, "–"), (3, r"\d+\.\d+")):
        assert not peers_requests.serve_all(arguments)
        arguments.end = math.inf
        capsys.readouterr()
        peers_requests.tabulate(arguments.out)
        assert re.search(rf"\| flat-long \| 3 \| deberta \|.*\| {cell} \| {cell} \|", capsys.readouterr().out)


def test_a_run_whose_time_is_over_stops_behind_a_file_that_it_made(tmp_path):
    made = []

    def run(*command):
        made.append(Path(command[-1]))
        made[-1].touch()

    work = Work(tmp_path, SimpleNamespace(run=run), end=0)
    with pytest.raises(TimeOver):
        work.model("tiny-v3")
    assert work.model("tiny-v3") == made[0] and len(made) == 1


def test_a_file_of_other_columns_is_not_continued(served):
    arguments, visits = served
    arguments.out.write_text("model\tthreads\nv3-base\t2\n")
    with pytest.raises(peers_requests.Failure, match="streams.tsv has other columns than model, threads, mix"):
        peers_requests.serve_all(arguments)
    assert not visits


def test_the_table_has_the_ratio_of_each_round(served, capsys):
    arguments, _ = served
    peers_requests.serve_all(arguments)
    capsys.readouterr()
    peers_requests.tabulate(arguments.out)
    said = capsys.readouterr().out
    rows = [row for row in read_rows(arguments.out) if (row["mix"], row["way"]) == ("mixed-tail", "batches")]
    p99 = {engine: [float(row["p99_ms"]) for row in rows if row["engine"] == engine] for engine in ENGINES}
    shares = [ours / min(others) for ours, *others in zip(*p99.values())]
    ours = [line for line in said.splitlines() if line.startswith("| mixed-tail | 2 | deberta |")][1]
    assert f"| {statistics.median(shares):.2f} ({min(shares):.2f} to {max(shares):.2f}) |" in ours
    assert "openvino failed at flat-long: took more than 900 s" in said and "Others used at most 0.25 cores." in said
    assert not any(line.startswith("| flat-long | 3 | openvino") for line in said.splitlines())
