"""`tools/peers.py growth`: points that are there are not measured again, exponents are those of the times, the page says what is missing by
leaving it out. The program is a stand-in whose times follow a law. SPDX-License-Identifier: MIT"""
import argparse
import json
import re
import sys

import pytest

from conftest import ROOT

sys.path.insert(0, str(ROOT / "tools"))
from rivals import growth  # noqa: E402

PROGRAM = '''#!{python}
import json, sys
words = sys.argv[1:]
if words[1] == "plot":
    sys.exit("no figures here")
said = dict(zip(words[2::2], words[3::2]))
n, layers = int(said["-n"]), int(said.get("--depth", 1))
seconds = 1e-6 * n ** 1.5 * layers / (2 if said["--precision"] == "int8" else 1) if "--precision" in said else 1e-3 * layers
with open({calls!r}, "a") as file:
    file.write(" ".join(words) + "\\n")
result = dict(n=n, layers=layers, precision=said.get("--precision", "float32"), median_s=seconds, min_s=0.9 * seconds, other_cores={others},
              workspace_bytes=1000 * n, peak_rss_bytes=10 ** 8)
sheet = dict(cpu="a processor", usable_cores=2, isa="avx2", date="2026-01-02T03:04:05Z", version="0.1.0", commit="abc")
print(json.dumps(dict(environment=sheet, results=[result])))
'''


@pytest.fixture()
def grow(tmp_path):
    program, calls = tmp_path / "program", tmp_path / "calls"
    calls.touch()

    def run(*words, others=0.05):
        program.write_text(PROGRAM.format(python=sys.executable, calls=str(calls), others=others))
        program.chmod(0o755)
        parser = argparse.ArgumentParser()
        growth.options(parser)
        status = growth.run(parser.parse_args(["--out", str(tmp_path / "R"), "--program", str(program), "--threads", "2", *words]))
        return status, calls.read_text().splitlines()

    return run, tmp_path / "R"


def test_growth_in_pieces(grow, capsys):
    run, out = grow
    with pytest.raises(growth.Failure, match="holds nothing"):
        run("--seconds", "0")
    status, calls = run("--only", "tokens", "--tokens", "512,1024,4096,8192")
    assert status == 0 and len(calls) == 8 and sum("--reps 1" in call for call in calls) == 2
    text = (out / "growth.md").read_text()
    assert text in capsys.readouterr().out and "## So many layers" not in text
    assert "float32: time grows with the power 1.50 of n, the session's memory with 1.00." in text
    rows = [line.split("|")[1:-1] for line in text.splitlines() if re.match(r"\| (float32|int8),", line)]
    assert [row[-1].strip() for row in rows] == ["–", "1.50", "1.50", "1.50"] * 2
    assert float(rows[3][1]) == pytest.approx(1e-3 * 8192**1.5, rel=1e-3) and float(rows[7][1]) == pytest.approx(5e-4 * 8192**1.5, rel=1e-3)
    status, calls = run("--only", "tokens,layers", "--tokens", "512,1024,4096,8192")
    assert status == 0 and len(calls) == 12
    text = (out / "growth.md").read_text()
    assert "time grows with the power 1.00 of layers" in text and "abc" in text
    assert len(json.loads((out / "tokens.json").read_text())["results"]) == 8


def test_what_was_disturbed_is_measured_again(grow):
    run, out = grow
    status, calls = run("--only", "neighbour", others=1.05)
    text = (out / "growth.md").read_text()
    assert len(calls) == 2 and re.search(r"beside nobody \| [\d.]+! ", text) and re.search(r"beside a busy process \| [\d.]+ ", text)
    status, calls = run("--only", "neighbour", others=1.2)
    assert len(calls) == 3 and " 1.05 |" in (out / "growth.md").read_text()  # the better one stays
    status, calls = run("--only", "neighbour")
    assert len(calls) == 4 and "!" not in (out / "growth.md").read_text().split("## ")[1]
    assert len(run("--only", "neighbour")[1]) == 4


def test_a_part_that_is_none_is_refused(grow, capsys):
    with pytest.raises(SystemExit):
        grow[0]("--only", "wrods")
    assert "--only: wrods is not among tokens, layers, words" in capsys.readouterr().err
