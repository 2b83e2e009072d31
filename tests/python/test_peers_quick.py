"""`tools/peers.py --quick` without a rival: what is not installed is named, with the way to it; what is there is measured, checked, tabulated
and drawn. ONNX Runtime is a stand-in that gives prepared answers. SPDX-License-Identifier: MIT"""
import argparse
import json
import sys

import numpy as np
import pytest
from safetensors.numpy import save_file

import deberta_c
from conftest import DEMO, ROOT
from deberta_c import _program

sys.path.insert(0, str(ROOT / "tools"))
from rivals import encode, engines, shapes  # noqa: E402

N, MISSING = 16, ("openvino", "nncf")
ENGINES = "deberta,deberta-int8,onnxruntime,onnxruntime-lean,openvino,openvino-lean-int8"
MACHINE = {"cpu": "a processor", "usable_cores": 2, "isa": "avx2", "system": "a system", "notes": [], "roofs": []}


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
    assert "onnxruntime" in (out / "error.svg").read_text() if "the chart:" in said.out else "no chart:" in said.out


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


def test_quick_takes_what_the_command_line_says():
    parser = argparse.ArgumentParser()
    encode.options(parser)
    for words in (["--rounds", "2", "--quick"], ["--quick", "--rounds", "2"]):
        found = parser.parse_args(words)
        assert (found.rounds, found.tokens, found.accept_disturbed) == (2, encode.QUICK["tokens"], True)
    assert parser.parse_args([]).tokens == parser.get_default("tokens")
