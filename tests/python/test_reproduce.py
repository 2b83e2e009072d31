"""./reproduce.sh: claims come out as the pages say, and a page with another number does not pass. SPDX-License-Identifier: MIT"""
import sys

import pytest

from conftest import ROOT
from deberta_c import _program

sys.path.insert(0, str(ROOT / "tools"))
reproduce = pytest.importorskip("reproduce")


@pytest.fixture()
def out(tmp_path, monkeypatch):
    monkeypatch.setattr(reproduce, "PROGRAM", _program.PROGRAM)
    return tmp_path


@pytest.mark.parametrize("group", [reproduce.sum_of_terms, reproduce.tutorial, reproduce.receptive_field])
def test_what_is_claimed(group, out):
    rows = list(group(out))
    assert rows and all(row.ok for row in rows), [row.cells for row in rows]


@pytest.mark.parametrize("group, stated, wrong", [(reproduce.sum_of_terms, "5e-07: rounding", "5e-09: rounding"), (reproduce.tutorial, "0.249  man", "0.250  man"),
                                                  (reproduce.receptive_field, "12,253 | 3,121", "12,253 | 3,122")])
def test_another_number_is_noticed(group, stated, wrong, out, monkeypatch):
    text_of = reproduce.text_of
    monkeypatch.setattr(reproduce, "text_of", lambda path: text_of(path).replace(stated, wrong))
    assert any(row.ok is False for row in group(out))


def test_cheap_stops_at_another_number(out, monkeypatch, capsys):
    page = "docs/studies/grid.md"
    assert reproduce.cheap(None, out) == 0
    text_of = reproduce.text_of
    monkeypatch.setattr(reproduce, "text_of", lambda path: text_of(path).replace("-0.909 (-0.936", "+0.909 (-0.936"))
    assert reproduce.cheap(page, out) == 1
    said = capsys.readouterr().out
    assert f"{page}:" in said and "+0.909" in said and "-0.909" in said and "studies/grid.py" in said


def test_what_fails_is_a_row(out):
    (row,) = reproduce.attempt("a claim", lambda: reproduce.run("deberta nonsense", out, "x"), ())
    assert row.ok is False and "unknown" in row.cells[2]


def test_the_list_says_what_it_took_and_what_was_not_run(out, monkeypatch):
    monkeypatch.setattr(sys, "argv", ["reproduce.py", "--only", "long_text", "--out", str(out)])
    assert reproduce.main() == 0
    monkeypatch.setattr(sys, "argv", ["reproduce.py", "--only", "sum_of_terms", "--out", str(out / "sum")])
    assert reproduce.main() == 0
    titles, row = [line.split("\t") for line in (out / "list.tsv").read_text().splitlines()]
    assert titles[-1] == "seconds" and row[0] == "Checks the memory of 65,536 tokens in README.md." and row[4] == "not run"
    (_, row) = [line.split("\t") for line in (out / "sum" / "list.tsv").read_text().splitlines()]
    assert row[4] == "ok" and float(row[5]) >= 0


@pytest.mark.parametrize("words, found, missing", [(["--only", "twins"], [], "numpy and matplotlib not found"), (["--only", "twins"], ["numpy"], "python3-matplotlib"),
                                                   (["--only", "grid-seeds"], [], "numpy not found"), (["--cheap"], ["matplotlib"], "numpy not found")])
def test_what_is_missing_is_said_before_the_first_row(words, found, missing, out, monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["reproduce.py", *words, "--out", str(out / "none")])
    find = reproduce.importlib.util.find_spec
    monkeypatch.setattr(reproduce.importlib.util, "find_spec", lambda name: None if name in {"numpy", "matplotlib"} - {*found} else find(name))
    assert reproduce.main() == reproduce.LACKS
    said = capsys.readouterr()
    assert missing in said.err and len(said.err.splitlines()) == 1 and not said.out and not (out / "none").exists()


def test_a_program_that_is_not_there_is_said_first(out, monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["reproduce.py", "--only", "same_bits", "--out", str(out / "none")])
    monkeypatch.setattr(reproduce, "PROGRAM", str(out / "nowhere"))
    assert reproduce.main() == reproduce.LACKS and "./build.sh" in capsys.readouterr().err
