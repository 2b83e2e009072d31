"""What the program that comes with this package does best: measure, draw, describe. SPDX-License-Identifier: MIT

Measuring must not share a process with Python, and drawing and receptive fields are no part of the library; their JSON and SVG are
contracts (docs/json.md)."""
from __future__ import annotations

import html
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any, Dict, List, Optional, Tuple

from ._abi import ArgumentError, Error, FormatError, HERE, SystemRefusedError, UnsupportedError, terminated
PROGRAM = os.environ.get("DEBERTA_PROGRAM") or str(HERE / "deberta")
_KINDS = {2: ArgumentError, 3: FormatError, 4: SystemRefusedError}  # exit codes: a wrong command line, bad input, the system


def _words(options: Dict[str, Any]) -> List[str]:
    """threads=2, heads=[0, 3], breakdown=True as --threads 2 --heads 0,3 --breakdown."""
    given = {"--" + name.rstrip("_").replace("_", "-"): value for name, value in options.items() if value is not None and value is not False}
    return [word for name, value in given.items() for word in ([name] if value is True else [name, _word(value)])]


def _word(value: Any) -> str:
    return ",".join(map(str, value)) if isinstance(value, (list, tuple, range)) else str(value)


def run(*arguments: str, **options: Any) -> bytes:
    """Standard output of the program; what it refuses is an exception with its sentence."""
    command = [PROGRAM, *arguments, "--quiet", *_words(options)]
    try:
        done = subprocess.run(command, capture_output=True, stdin=subprocess.DEVNULL)
    except (OSError, ValueError) as reason:  # a file that is not there; a text with NUL
        raise Error(f"{PROGRAM}: cannot be run: {getattr(reason, 'strerror', reason)}") from None
    if done.returncode:
        sentence = done.stderr.decode("utf-8", "replace").strip() or f"{' '.join(command)} ended with {done.returncode}"
        raise _KINDS.get(done.returncode, Error)(sentence)
    return done.stdout


def json_of(*arguments: str, **options: Any) -> Dict[str, Any]:
    return dict(json.loads(run(*arguments, "--json", **options)))


def _opened(model: Any) -> Tuple[str, Dict[str, Any]]:
    """The folder of a model, and what an open one was opened with: the program opens it again in the same way."""
    return (model.path, dict(model.opened_with)) if hasattr(model, "opened_with") else (os.fsdecode(terminated("model", model)), {})


def bench(model: Any, **options: Any) -> List[Dict[str, Any]]:
    """Latency of `deberta bench`, one dictionary a point, as pandas.DataFrame takes them: model, isa, threads, layers, batch, n,
    median_s, samples_s and the others of docs/json.md, deberta-bench/1. model: a folder or a Model. options: as of the program
    (tokens=[16, 128], threads=2)."""
    folder, given = _opened(model)
    if "layers" in given:
        given["depth"] = given.pop("layers")
    return list(json_of("bench", folder, **{**given, **options})["results"])


class Figure:
    """A figure as SVG; notebooks show it."""

    def __init__(self, svg: bytes, title: str) -> None:
        self.svg, self.title = svg, title

    def _repr_svg_(self) -> str:
        return self.svg.decode()

    def _repr_html_(self) -> str:
        text = self.svg.decode()
        return f'<figure aria-label="{html.escape(self.title, quote=True)}">{text[text.index("<svg"):]}</figure>'

    def save(self, path: "str | os.PathLike[str]") -> None:
        """Writes the SVG."""
        Path(path).write_bytes(self.svg)


def attention_figure(model: Any, text: Optional[str] = None, kind: Optional[str] = None, pair: Optional[str] = None,
                     **options: Any) -> Figure:
    """A figure of `deberta attention` (docs/figures.md) of a text. model: a folder, or a Model, as it is now: with its precision and what
    it is without in a block of ablate. kind: components (default), rollout, distances and others. options: as of the program
    (layers=2, heads=[0, 1], width_mm=85, font_size=9)."""
    folder, given = _opened(model)
    if given.pop("layers", None):
        raise UnsupportedError("the model was opened with its first layers only, figures are of whole models: open it without layers=")
    given["ablate"] = getattr(model, "ablated", "") or None
    with tempfile.TemporaryDirectory() as place:
        path = Path(place) / "figure.svg"
        run("attention", *([kind] if kind else []), folder, text=text, pair=pair, out=path, **{**given, **options})
        return Figure(path.read_bytes(), f"attention of: {text}" if text else "attention")


def main() -> None:
    """The program itself, for the command `deberta`."""
    os.execv(PROGRAM, [PROGRAM, *sys.argv[1:]])
