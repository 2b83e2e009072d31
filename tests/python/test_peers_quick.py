"""`tools/peers.py --quick` without a rival: what is not installed is named, with the way to it; what is there is measured, checked, tabulated
and drawn. ONNX Runtime is a stand-in that gives prepared answers. SPDX-License-Identifier: MIT"""
import argparse
import csv
import json
import re
import sys

import numpy as np
import pytest
from safetensors.numpy import save_file

import deberta_c
from conftest import DEMO, ROOT
from deberta_c import _program

sys.path.insert(0, str(ROOT / "tools"))
from rivals import encode, engines, records, shapes, tables_of_times  # noqa: E402

N, MISSING = 16, ("openvino", "nncf")
ENGINES = "deberta,deberta-int8,onnxruntime,onnxruntime-lean,openvino,openvino-lean-int8"
MACHINE = {"commit": "abc", "cpu": "a processor", "usable_cores": 2, "isa": "avx2", "system": "a system", "notes": [], "roofs": []}


@pytest.fixture()
def quick(tmp_path, monkeypatch):
    """A function of words of the command line and of what is added to the answers of the stand-in; the folder of results."""
    model = deberta_c.Model(str(DEMO), threads=1)
    layers = json.loads((ROOT / "models" / "demo" / "config.json").read_text())["num_hidden_layers"]
    monkeypatch.setitem(shapes.SHAPES, "demo", shapes.Shape(3, 192, 3, layers, 768, 512))
    monkeypatch.setattr(engines.importlib.util, "find_spec", lambda name: None if name in MISSING else name)
    monkeypatch.setenv("PYTHONPATH", f"{ROOT / 'tests' / 'stand_ins'}")
    work, out = tmp_path / "work", tmp_path / "out"
    for folder in ("models", "inputs/demo", "graphs/demo"):
        (work / folder).mkdir(parents=True)
    out.mkdir()
    (out / "machine.json").write_text(json.dumps({"environment": MACHINE}))
    (work / "models" / "demo").symlink_to(ROOT / "models" / "demo")
    ids = np.random.default_rng(1).integers(10, 5000, (1, N))
    expected = model.encode(ids.astype(np.int32), hidden="last")[f"hidden_states.{layers}"].reshape(1, N, -1).astype(np.float64)

    def run(*words, off=1e-6):
        given = {"input_ids": ids, "attention_mask": np.ones_like(ids)}
        save_file(given | {shapes.EXPECTED: expected}, work / "inputs" / "demo" / f"{N}-float64.safetensors")
        save_file(given | {shapes.EXPECTED: expected + off}, work / "answer.safetensors")
        for graph in ("float32-48", f"lean-{N}"):
            (work / "graphs" / "demo" / f"{graph}.onnx").write_text(str(work / "answer.safetensors"))
        parser = argparse.ArgumentParser()
        encode.options(parser)
        command = ["--models", "demo", "--quick", "-n", str(N), "--threads", "1", "--min-time", "0.01", "--engines", ENGINES, "--program",
                   str(_program.PROGRAM), "--work", str(work), "--out", str(out), *words]
        run.words = command
        return encode.run(parser.parse_args(command))

    return run, out


def results(out):
    return {found["engine"]: found for found in json.loads((out / "latency" / "all.json").read_text())["results"]}


def test_quick_measures_what_is_installed_and_names_the_rest(quick, capsys):
    run, out = quick
    assert run() == 0
    said = capsys.readouterr()
    assert "openvino is not measured: openvino is not installed\n" in said.err
    assert "openvino-lean-int8 is not measured: openvino, nncf are not installed\n" in said.err
    assert f"-m pip install -r {ROOT / 'tools' / 'peers-requirements.txt'}" in said.err
    found = results(out)
    assert set(found) == {"deberta", "deberta-int8", "onnxruntime", "onnxruntime-lean"}
    assert all(one["agrees"] and one["median_s"] > 0 and len(one["samples_s"]) >= 3 for one in found.values())
    assert found["onnxruntime"]["version"] == "onnxruntime stand-in" and found["onnxruntime"]["max_abs_difference"] < 1e-5
    ours, best = found["deberta"]["median_s"], min(found[name]["median_s"] for name in ("onnxruntime", "onnxruntime-lean"))
    assert f"**{ours / best:.3f}**" in said.out
    assert re.search(r"--quick took \d+ s", said.out)
    charts = {out / "bars.svg": 174, out / "bars-column.svg": 85}
    if "no figure:" not in said.out:
        assert all(f"the figure: {chart}" in said.out and "onnxruntime-lean" in chart.read_text() for chart in charts)
        assert all(f'width="{width}' in chart.read_text() and chart.with_suffix(".png").exists() for chart, width in charts.items())


def test_an_answer_that_is_wrong_is_no_rival(quick, capsys):
    run, out = quick
    assert run(off=1e-3) == 1
    found = results(out)
    assert not found["onnxruntime"]["agrees"] and found["deberta"]["agrees"]
    assert "DISAGREES" in capsys.readouterr().out


def test_time_that_is_over_ends_quick_and_the_same_command_goes_on(quick, capsys):
    run, out = quick
    with pytest.raises(SystemExit, match="holds no results"):
        run("--seconds", "0")
    assert capsys.readouterr().out.count("not measured: the time is over") == 4
    assert run() == 0 and len(results(out)) == 4


def test_what_not_all_engines_did_is_compared_with_nobody(quick, capsys, monkeypatch):
    """The time is over within a second row: the table and the results have the first alone, and what was measured is kept."""
    run, out = quick
    assert run() == 0
    monkeypatch.setattr(encode, "visit_once", lambda row, engine, campaign, runner: monkeypatch.setattr(campaign, "end", 0) or {
        name: value for name, value in encode.Journal(out).visits[0].items() if name not in ("n", "engine")})
    capsys.readouterr()
    assert run("-n", f"{N},{N + 1}") == 0
    said = capsys.readouterr().out
    assert said.count("not measured: the time is over") == 3 and f"n={N + 1} threads=1 is in no table and no chart" in said
    assert {found["n"] for found in json.loads((out / "latency" / "all.json").read_text())["results"]} == {N}
    assert [visit["n"] for visit in encode.Journal(out).visits].count(N + 1) == 1


def test_a_longer_run_says_by_its_status_that_something_is_missing(quick):
    run, _ = quick
    assert run() == 0
    given = settled(*run.words)
    given.quick, given.engines = False, ["deberta", "onnxruntime"]
    assert encode.run(given) == 0
    given.tokens = [N, N + 1]
    given.seconds = 0
    assert encode.run(given) == 1


def settled(*words):
    parser = argparse.ArgumentParser()
    encode.options(parser)
    found = parser.parse_args(words)
    encode.settle(found)
    return found


def test_quick_takes_what_the_command_line_says():
    for words in (["--rounds", "2", "--quick"], ["--quick", "--rounds", "2"]):
        found = settled(*words)
        assert (found.rounds, found.tokens, found.accept_disturbed) == (2, encode.QUICK["tokens"], True)
    assert settled().tokens == encode.STANDARD["tokens"] and not settled().accept_disturbed
    assert encode.QUICK.keys() <= encode.STANDARD.keys()


def test_what_is_typed_holds_where_it_is_a_default_without_quick():
    """Each option that --quick sets, given the value that it has without --quick."""
    for name, value in encode.STANDARD.items():
        if value in (None, False):
            continue
        words = ["-n" if name == "tokens" else f"--{name.replace('_', '-')}", ",".join(map(str, value)) if isinstance(value, list) else str(value)]
        found = settled(*words, "--quick")
        assert getattr(found, name) == value, name
        others = [other for other in encode.QUICK if other != name]
        assert [getattr(found, other) for other in others] == [encode.QUICK[other] for other in others]


def test_a_longer_run_does_not_begin_without_its_engines(tmp_path, monkeypatch):
    monkeypatch.setattr(engines.importlib.util, "find_spec", lambda name: None if name in MISSING else name)
    given = settled("--work", str(tmp_path / "work"), "--out", str(tmp_path / "out"), "--engines", "deberta,openvino-lean-int8")
    with pytest.raises(encode.Failure, match="openvino-lean-int8 is not measured: openvino, nncf are not installed"):
        encode.run(given)
    assert not (tmp_path / "out").exists()


def test_nothing_begins_without_what_makes_models(quick, monkeypatch):
    """A failure would be kept, and not be measured again once the package is there."""
    run, out = quick
    monkeypatch.setattr(engines.importlib.util, "find_spec", lambda name: None if name == "torch" else name)
    with pytest.raises(encode.Failure, match="nothing was measured: torch is not installed\n.* -m pip install -r"):
        run()
    assert not (out / "visits.jsonl").exists()


def test_record_adds_rows_and_marks_those_that_they_replace(quick, tmp_path, capsys):
    run, out = quick
    table = tmp_path / "table.csv"
    table.write_text("model,threads,tokens,engine,median_ms,minimum_ms,mark,largest_difference,percent_of_peak,peak_memory_mb,first_result_s\n"
                     f"demo,1,{N},deberta,99,98,,1e-6,,30,0.1\ndemo,1,77,deberta,99,98,,1e-6,,30,0.1\n")
    assert run() == 0
    encode.run(settled("--out", str(out), "--record", str(table)))
    assert "4 rows of" in capsys.readouterr().out
    rows = list(csv.DictReader(table.open(encoding="utf-8")))
    report = json.loads((out / "latency" / "all.json").read_text())
    assert [(row["tokens"], row["state"], row["date"]) for row in rows[:2]] == [(str(N), "old", ""), ("77", "", "")]
    assert {row["engine"] for row in rows[2:]} == set(results(out)) and {row["date"] for row in rows[2:]} == {report["environment"]["date"]}
    assert all(float(row["median_ms"]) == pytest.approx(1e3 * results(out)[row["engine"]]["median_s"], rel=1e-3) for row in rows[2:])
    assert {row["commit"] for row in rows[2:]} == {"abc"} and all(row["version"] and not row["state"] for row in rows[2:])
    with pytest.raises(encode.Failure, match="has the run of"):
        encode.run(settled("--out", str(out), "--record", str(table)))
    report["environment"]["date"] = "2030-01-01T00:00:00Z"
    (out / "latency" / "all.json").write_text(json.dumps(report))
    encode.run(settled("--out", str(out), "--record", str(table)))
    rows = list(csv.DictReader(table.open(encoding="utf-8")))
    assert [row["state"] for row in rows] == ["old", "", *["old"] * 4, *[""] * 4]
    capsys.readouterr()
    tables_of_times.run(argparse.Namespace(file=table, errors=None))
    assert "99" not in capsys.readouterr().out.split("least")[0]


def test_a_machine_has_a_table_of_its_own():
    machine = {"cpu": "Intel(R) Xeon(R) Processor @ 2.50GHz", "isa": "avx512", "usable_cores": 2}
    assert records.file_of(machine) == "intel-xeon-avx512-2-cores.csv"
    assert records.file_of(machine | {"cpu": "AMD EPYC 9R14", "usable_cores": 8}) == "amd-epyc-9r14-avx512-8-cores.csv"
