"""Streams of texts through several engines: logits that differ end it before anything is measured, a run goes on where it was stopped, the
table has each round's ratio to the best peer. SPDX-License-Identifier: MIT"""
import argparse
import random
import re
import statistics
import sys

import pytest

from conftest import ROOT

sys.path.insert(0, str(ROOT / "tools"))
from rivals import texts  # noqa: E402
from rivals.results import read_rows  # noqa: E402

SEED = 20261129
VISITS = [("deberta", "ragged"), ("torch", "alone"), ("torch", "one batch")]


@pytest.fixture()
def stream(tmp_path, monkeypatch):
    """A function of words of the command line and of torch's second logits, and the visits: engines have drawn times."""
    draw, visits, shift = random.Random(SEED), [], [0.0]

    def visit(work, arguments, stream, engine, way, calls):
        visits.append((stream, engine, way, calls))
        if len(visits) == arguments.stop_at:
            arguments.end = 0
        return {"version": "1", "tokens": [70, 80], "logits": [[1.0, -2.0], [0.5, shift[0] if engine == "torch" else 0.0]],
                "samples_ms": [draw.uniform(1, 100) for _ in range(3)], "other_cores": 0.25}  # fmt: skip

    monkeypatch.setattr(texts, "visit", visit)
    print(f"seed {SEED}")

    def run(*words, torch=0.0, stop_at=0):
        shift[0] = torch
        parser = argparse.ArgumentParser()
        texts.options(parser)
        given = parser.parse_args(["--work", str(tmp_path / "W"), "--out", str(tmp_path / "F.tsv"), "--engines", "deberta,torch", "--streams", "batch-8",
                                   "--rounds", "3", *words])  # fmt: skip
        given.stop_at = stop_at
        return texts.run(given)

    return run, visits, tmp_path / "F.tsv"


@pytest.mark.parametrize("second", [1e-3, float("nan")])
def test_logits_that_differ_end_it_before_anything_is_measured(stream, second):
    run, visits, out = stream
    with pytest.raises(texts.Failure, match="the logits of deberta are .* from those of torch, more than 1e-04"):
        run(torch=second)
    assert [calls for *_, calls in visits] == [0, 0] and not out.exists()


def test_a_visit_with_other_logits_has_failed(stream, capsys):
    run, visits, out = stream
    assert run("--rounds", "1") == 0
    assert run("--rounds", "2", torch=0.1) == 1
    assert [bool(row["failed"]) for row in read_rows(out)] == [False] * 3 + [engine == "torch" for _, engine, _, _ in visits[-3:]]
    texts.tabulate(out)
    assert "torch alone failed at batch-8, round 1: the logits of torch are 5.0e-02 from those of deberta" in capsys.readouterr().out


def test_a_stopped_run_goes_on_and_each_round_begins_with_another(stream, capsys):
    run, visits, out = stream
    assert run(stop_at=6) == 1
    assert "round 1, batch-8, torch one batch: not measured, the time is over; the same command goes on" in capsys.readouterr().out
    assert run() == 0 and run() == 0
    assert [visit[1:3] for visit in visits[2:]] == VISITS + VISITS[1:] + VISITS[:1] + VISITS[2:] + VISITS[:2]
    assert len(read_rows(out)) == 9


def test_the_table_has_the_ratio_of_each_round(stream, capsys):
    run, _, out = stream
    assert run() == 0
    capsys.readouterr()
    assert run("--table", str(out)) is None
    said, found = capsys.readouterr().out, {}
    for row in read_rows(out):
        found.setdefault((row["engine"], row["way"]), []).append(statistics.median(map(float, row["samples_ms"].split(","))))
    ours, alone, padded = (found[name] for name in VISITS)
    shares = [a / min(b, c) for a, b, c in zip(ours, alone, padded)]
    assert "| engine, texts at once | batch-8: 2 texts, 150 tokens |" in said
    assert f"| torch, alone | {statistics.median(alone):.4g} ({min(alone):.4g} to {max(alone):.4g}) |" in said
    assert f"| deberta / best float32 peer | {statistics.median(shares):.2f} ({min(shares):.2f} to {max(shares):.2f}) |" in said
    assert "Others used at most 0.25 cores." in said


def test_a_round_without_all_peers_has_no_ratio(stream, capsys):
    """A file of a run that was stopped within its first round, then within its second."""
    run, _, out = stream
    for stop_at, cell in ((4, "–"), (7, r"\d\.\d+")):
        assert run(stop_at=stop_at) == 1
        capsys.readouterr()
        texts.tabulate(out)
        assert re.search(rf"\| deberta / best float32 peer \| {cell} \|", capsys.readouterr().out)


def test_streams_are_those_of_their_seed():
    pytest.importorskip("sentencepiece")
    for name, count in texts.STREAMS.items():
        lines = texts.lines_of(name, 1)
        assert len(lines) == count and lines == texts.lines_of(name, 1) != texts.lines_of(name, 2)
    query, text = ([line.split("\t") for line in texts.lines_of(name, 1)] for name in ("reranker", "zero-shot"))
    assert len({first for first, _ in query}) == 1 and len({first for first, _ in text}) == 1 and len({second for _, second in text}) == 20
