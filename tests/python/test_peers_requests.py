"""A stream served by several engines: one that fails stops no other, a run goes on where it was stopped, the table has each round's ratio.
SPDX-License-Identifier: MIT"""
import random
import statistics
import sys
from types import SimpleNamespace

import pytest

from conftest import ROOT

sys.path.insert(0, str(ROOT / "tools"))
from rivals import requests as peers_requests  # noqa: E402
from rivals.results import read_rows  # noqa: E402

ENGINES = ["deberta", "onnxruntime", "openvino"]
SEED = 20261126


@pytest.fixture()
def served(tmp_path, monkeypatch):
    """(arguments, visits): engines that give drawn numbers, but OpenVINO, which fails at flat-long; every visit is noted."""
    draw, visits = random.Random(SEED), []
    print(f"seed {SEED}")

    def serve(engine, streams, work, arguments, threads):
        visits.append((engine, [mix for mix, _ in streams]))
        if len(visits) == arguments.stop_at:
            raise KeyboardInterrupt
        if engine == "openvino" and "flat-long" in visits[-1][1]:
            raise peers_requests.Failure("took more than 900 s")
        return [[[draw.uniform(1, 100) for _ in peers_requests.NUMBERS] for _ in peers_requests.WAYS] for _ in streams], "version"

    monkeypatch.setattr(peers_requests, "visit_ours", serve)
    monkeypatch.setattr(peers_requests, "visit_peer", serve)
    monkeypatch.setattr(peers_requests, "serve_ours", lambda model, mix, requests, *_: {"lengths": [8] * requests})
    arguments = SimpleNamespace(work=tmp_path, out=tmp_path / "streams.tsv", program="", limit=1, model="v3-base", mixes=peers_requests.mix_list("flat-long:3,mixed-tail"),
                                engines=ENGINES, threads=[2], requests=2, rounds=3, stop_at=0)  # fmt: skip
    return arguments, visits


def test_an_engine_that_fails_stops_no_other(served):
    arguments, visits = served
    peers_requests.serve_all(arguments)
    rows = read_rows(arguments.out)
    alone = [["flat-long"], ["mixed-tail"]]
    assert [mixes for engine, mixes in visits if engine == "openvino"] == 3 * [["flat-long", "mixed-tail"], *alone]  # all streams, then each
    assert len(rows) == 3 * 3 * 2 * 2
    assert {(row["engine"], row["mix"]) for row in rows if row["failed"]} == {("openvino", "flat-long")}
    assert {(row["mix"], row["requests"]) for row in rows} == {("flat-long", "3"), ("mixed-tail", "2")}
    assert [engine for engine, _ in visits[:7]] == ["deberta", "onnxruntime", *3 * ["openvino"], "onnxruntime", *["openvino"]]  # another one begins


def test_a_stopped_run_goes_on(served):
    arguments, visits = served
    arguments.stop_at = 7
    with pytest.raises(KeyboardInterrupt):
        peers_requests.serve_all(arguments)
    arguments.stop_at = 0
    peers_requests.serve_all(arguments)
    assert visits[6] == visits[7] and len(visits) == 3 * (1 + 1 + 3) + 1
    keys = [tuple(row[name] for name in (*peers_requests.VISIT, "way")) for row in read_rows(arguments.out)]
    assert len(set(keys)) == len(keys) == 3 * 3 * 2 * 2


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
    assert "openvino failed at flat-long: took more than 900 s" in said
    assert not any(line.startswith("| flat-long | 3 | openvino") for line in said.splitlines())
