"""Attributions of an answer to words, distances and positions, as arrays. SPDX-License-Identifier: MIT

They are what `deberta attribute --json` prints (docs/attribution.md): the program computes them."""
from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import Any, Dict, List, Optional

import numpy as np

from . import _program
from ._abi import UnsupportedError
from ._outputs import output_suffix


class Attribution:
    """Shares of an answer; they add up to value - baseline_value, but for the gap.

    tokens: names of the tokens. words, positions, token_types: [tokens]. distances: rows (row, first, last, c2p, p2c) as a structured
    array; a row of the relative table serves pairs whose distance, query minus key, is first to last. value, baseline_value, sum, gap,
    steps. about: the object of the program, with the answer and the places of tokens.
    """

    def __init__(self, found: Dict[str, Any], command: List[str], options: Dict[str, Any]) -> None:
        tokens, distances = found["tokens"], found["distances"]
        self.about, self._command, self._options = found, command, options
        self.tokens: List[str] = [token["token"] for token in tokens]
        self.words, self.positions, self.token_types = (np.array([token[name] for token in tokens]) for name in ("word", "position", "token_type"))
        kinds = [("row", "i8"), ("first", "i8"), ("last", "i8"), ("c2p", "f8"), ("p2c", "f8")]
        self.distances = np.array([tuple(row[name] for name, _ in kinds) for row in distances], kinds)
        self.value, self.baseline_value, self.sum = (float(found[name]) for name in ("value", "baseline_value", "sum"))
        self.gap = float("nan") if found["gap"] is None else float(found["gap"])
        self.steps = int(found["steps"])

    def figure(self, **style: Any) -> _program.Figure:
        """Draws the text with its tokens shaded, and bars over distances. style: options of a figure: width_mm=85, title=..., font_size=9."""
        def drawn(suffix: str, dpi: Optional[int] = None) -> bytes:
            with tempfile.TemporaryDirectory() as place:
                path = str(Path(place) / f"figure{suffix}")
                _program.run(*self._command, "--out", path, but="dpi", **{**self._options, **style, **({} if dpi is None else {"dpi": dpi})})
                return Path(path).read_bytes()
        return _program.Figure(drawn(".svg"), "attributions", drawn, [self._command[1]])

    def save(self, path: Any, latex: Any = None, **style: Any) -> None:
        """Writes the figure in the format of the suffix: .svg, .pdf or .png. latex: a .tex file that includes it, with caption and label."""
        output_suffix(path, _program.FORMATS, [self._command[1]])
        if latex is None:
            self.figure(**style).save(path)
            return
        output_suffix(latex, (".tex",), [self._command[1]])
        _program.run(*self._command, "--out", os.fspath(path), "--latex", os.fspath(latex), **{**self._options, **style})


def attribute(model: Any, text: Any, pair: Optional[str] = None, **options: Any) -> Attribution:
    """Implements Model.attribute for an open model."""
    folder, given = _program._opened_whole(model, "attributions")
    if getattr(model, "ablated", ""):
        raise UnsupportedError("attributions are of whole models, and this one is without a term: leave the block of ablate, or remove() what ablate returned")
    words, _ = _program._texts_of_figure(text, pair, None, {})
    command, options = ["attribute", folder, *words], {**given, **_program._given(options)}
    return Attribution(_program.json_of(*command, **options), command, options)
