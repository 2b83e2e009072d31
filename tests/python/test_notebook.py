"""The notebooks run from their first cell to their last. SPDX-License-Identifier: MIT"""
import json
from pathlib import Path

import pytest

import deberta_c
from conftest import DEMO, ROOT, refuses

TOUR, EXERCISES = ROOT / "docs" / "tour.ipynb", ROOT / "docs" / "exercises.ipynb"


def test_tour(monkeypatch, tmp_path):
    nbformat, nbclient = pytest.importorskip("nbformat"), pytest.importorskip("nbclient")
    for name in ("matplotlib", "pandas", "torch", "transformers", "ipykernel"):
        pytest.importorskip(name)
    monkeypatch.setenv("DEMO", DEMO)
    notebook = nbformat.read(TOUR, as_version=4)
    nbformat.validate(notebook)
    nbclient.NotebookClient(notebook, timeout=300, kernel_name="python3", resources={"metadata": {"path": str(tmp_path)}}).execute()
    shown = [output for cell in notebook.cells if cell.cell_type == "code" for output in cell.outputs]
    assert not [output for output in shown if output.output_type == "error"]
    assert sum("image/svg+xml" in output.get("data", {}) for output in shown) == 1
    assert sum("image/png" in output.get("data", {}) for output in shown) == 2  # that of matplotlib, and the same figure for front ends without SVG


def test_tour_finds_the_program_of_the_package(monkeypatch, capsys):
    """The cell that trains needs no program on PATH."""
    monkeypatch.setenv("PATH", "/nowhere")
    cell, = ("".join(cell["source"]) for cell in json.loads(TOUR.read_text())["cells"] if cell["id"] == "c18")
    exec(cell, {"Path": Path, "DEMO": DEMO, "deberta_c": deberta_c})
    assert capsys.readouterr().out.startswith("['land', 'sea'] ")


def test_tour_is_small_and_stripped():
    """At most 60 KB; outputs of the two cells with a figure alone."""
    assert TOUR.stat().st_size <= 60 * 1024
    for cell in json.loads(TOUR.read_text())["cells"]:
        if cell["cell_type"] == "code":
            assert cell["execution_count"] is None
            assert bool(cell["outputs"]) == ("figure" in cell["metadata"].get("tags", []))
            assert all(set(output["data"]) <= {"image/svg+xml", "image/png"} for output in cell["outputs"])


def test_exercises_print_what_they_show():
    """Run again, every cell prints what the notebook has; it is small."""
    nbformat, nbclient = pytest.importorskip("nbformat"), pytest.importorskip("nbclient")
    pytest.importorskip("ipykernel")
    assert EXERCISES.stat().st_size <= 16 * 1024

    def printed(notebook):
        return ["".join(output.get("text", output.output_type) for output in cell.outputs) for cell in notebook.cells if cell.cell_type == "code"]
    notebook = nbformat.read(EXERCISES, as_version=4)
    nbformat.validate(notebook)
    shown = printed(notebook)
    nbclient.NotebookClient(notebook, timeout=300, kernel_name="python3", resources={"metadata": {"path": str(ROOT)}}).execute()
    assert printed(notebook) == shown and sum(map(bool, shown)) == 6


def test_exercises_say_what_is_wrong(monkeypatch, tmp_path, capsys):
    """Outside the tree; with a slash behind the folder; a clipping distance that no model has; a word of several pieces."""
    cells = {cell["id"]: "".join(cell["source"]) for cell in json.loads(EXERCISES.read_text())["cells"] if cell["cell_type"] == "code"}
    known = {}
    monkeypatch.chdir(tmp_path)
    for value, sentence in (("", "set DEMO"), (str(tmp_path / "nothing"), f"no model in {tmp_path / 'nothing'}")):
        monkeypatch.setenv("DEMO", value)
        refuses(AssertionError, sentence, exec, cells["e1"], known)
    monkeypatch.setenv("DEMO", f"{DEMO}/")
    for name in ("e1", "e11", "e13"):
        exec(cells[name], known)
    assert "k 8: 36 to 36 % (layers: 1)" in capsys.readouterr().out
    for call, sentence in (("told(3, 1)", "no models with k = 3"), ("told(2, 1, 25)", "1 layers, 25 tokens"), ("rank(1, 'flibbertigibbet')", "several pieces in: The flibbertigibbet sailor")):
        refuses(AssertionError, sentence, eval, call, known)
