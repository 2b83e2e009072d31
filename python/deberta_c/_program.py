"""Calls the program that comes with this package: to measure, draw, describe. SPDX-License-Identifier: MIT

Measuring must not share a process with Python, and drawing and receptive fields are no part of the library; their JSON and SVG are
contracts (docs/json.md)."""
from __future__ import annotations

import functools
import hashlib
import html
import json
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any, Callable, Dict, List, Mapping, Optional, Sequence, Tuple

import numpy as np

from ._abi import ArgumentError, BUILT, Error, FormatError, SystemRefusedError, UnsupportedError, note, terminated
from ._inputs import as_texts, one_text
from ._outputs import output_suffix, write_output
PROGRAM = os.environ.get("DEBERTA_PROGRAM") or str(BUILT / "deberta")
SCREEN_DPI = 144
FORMATS = (".svg", ".pdf", ".png")  # formats of a figure
SEVERAL_TEXTS = ("difference", "kernel")  # kinds of figures that take several texts
REPEATED = ("mark", "scale", "file", "text", "pair", "ids", "plot")  # options of which a list gives the option several times
OTHER_INPUTS, WRITTEN = ("ids", "input", "file"), ("numbers", "latex")  # options of a figure that name inputs, and files that it writes
# What follows an option in a sentence and is its value, not the next word: a number, a placeholder, a choice.
_CHOICES = "all|bars|float32|int16|int8|map|microsoft|mlm|none|probs|rtd|scalar|sequence|shapley|states|token"
_VALUE = rf"(?:\d[\w.:@*-]*(?<=\w)|[A-Z]+\b(?:\.[a-z]+)?|(?:{_CHOICES})\b)(?:,(?:\d+|[A-Z]+|[a-z]+)\b)*"
_KINDS = {2: ArgumentError, 3: FormatError, 4: SystemRefusedError}  # exit codes: a wrong command line, bad input, the system


def _given(options: Dict[str, Any]) -> Dict[str, Any]:
    """Returns the options by the names that they have here (class_ is class), without those that are None or False, which mean that they are
    not given."""
    found: Dict[str, Any] = {}
    for given, value in options.items():
        name = given.rstrip("_").replace("-", "_")
        if value is None or (isinstance(value, (bool, np.bool_)) and not value):
            continue
        if name in found:
            raise ArgumentError(f"{name}: is given twice, also as {given}")
        found[name] = value
    return found


def _without(ablated: str, more: Any) -> Optional[str]:
    """The terms that a model is without already and those that a call takes out, as one option; None: none. Of several for one place the last
    counts, which is the one of the call."""
    return ",".join(filter(None, (ablated, _word("ablate", more) if more is not None else ""))) or None


def _words(options: Dict[str, Any], values: Mapping[str, str]) -> List[str]:
    """Turns threads=2, heads=[0, 3], breakdown=True into --threads 2 --heads 0,3 --breakdown. values: of _option_values. An option that takes
    a value would take the next word of the command line for it; so what is given must be of the kind that it takes."""
    return [word for name, value in _given(options).items() for one in _repeats(name, value)
            for word in (["--" + name.replace("_", "-")] + _value_words(name, one, values.get(name.replace("_", "-"))))]


def _value_words(name: str, given: Any, takes: Optional[str]) -> List[str]:
    """Returns the value of an option as a word of a command line, or none of a flag. takes: the name of its value, "" for a flag, None where the
    program has no such option, and says so."""
    is_true = isinstance(given, (bool, np.bool_))
    if is_true and takes:
        raise ArgumentError(f"{name}: expected a value ({takes}), found {given!r}, which is for switches")
    if not is_true and takes == "":
        raise ArgumentError(f"{name}: is a switch: expected True or False, found {type(given).__name__} {given!r:.60}")
    return [] if is_true else [_word(name, given)]


@functools.lru_cache(maxsize=None)
def _option_values(*command: str) -> Mapping[str, str]:
    """Returns the options of a command and the names of their values, "" for those that are switches, from its --help."""
    try:
        done = subprocess.run([PROGRAM, *command, "--help"], capture_output=True, stdin=subprocess.DEVNULL, check=False)
    except OSError:
        return {}  # the command itself will say that the program cannot be run
    rows = re.findall(r"^ +(?:-\w, )?--([a-z][a-z0-9-]*)(?: (\S+))?(?:  |$)", done.stdout.decode("utf-8", "replace"), re.M)
    return {name: value for name, value in rows}


def _repeats(name: str, value: Any) -> List[Any]:
    """Returns the values of an option: mark=(1, 2) is one, mark=[(1, 2), (2, 1)] and scale=["-6,6", "0,1"] are two."""
    value = value.tolist() if hasattr(value, "tolist") else value
    several = name in REPEATED and isinstance(value, (list, tuple)) and not all(isinstance(one, (int, float, np.number)) for one in value)
    return list(value) if several else [value]


def _word(name: str, value: Any) -> str:
    """Returns a number, a word, or several of these with commas, as the program takes layers, heads and ids; refuses other types."""
    value = value.tolist() if hasattr(value, "tolist") else value
    if isinstance(value, (str, int, float, os.PathLike)):
        return os.fspath(value) if isinstance(value, os.PathLike) else str(value)
    if isinstance(value, (list, tuple, range)) and all((isinstance(one, (int, float, np.integer, np.floating)) and not isinstance(one, bool)) or
                                                       (isinstance(one, str) and "," not in one) for one in value):
        return ",".join(map(str, value))
    found = f"{type(value).__name__} {value!r:.60}"
    raise ArgumentError(f"{name}: expected a number, a word or a list of these, found {found}")


def _own_words(said: str) -> str:
    """Rewords a sentence of the program for Python: options are arguments here, and there is no `deberta COMMAND --help`."""
    lines = [line for line in said.splitlines() if line.strip() and not line.startswith("see: ")]
    first = next((k for k, line in enumerate(lines) if line.startswith("deberta")), 0)  # after the notes
    kept = [re.sub("^note: ", "", line) for line in lines[first:]]
    sentence = re.sub(r"^deberta( [a-z-]+)*: ", "", "\n".join(kept)).replace("did you mean attention ", "did you mean ")  # a kind
    outside_commands = rf"(?:`|: )deberta [a-z][^`\n]*|--([a-z][a-z-]+)(?: ({_VALUE}))?"  # a command that the sentence shows stays one
    return re.sub(outside_commands, lambda found: _as_argument(found[1], found[2]) if found[1] else found[0], sentence)


def _as_argument(name: str, value: Optional[str]) -> str:
    """Returns head="mlm", steps=64, width_mm=MM (a placeholder), or head= where the sentence names no value."""
    bare = value is None or re.fullmatch(r"[\d.]+|[A-Z]+", value)
    return f"{name.replace('-', '_')}=" + ((value or "") if bare else f'"{value}"')


def _argument(word: str) -> str:
    """Returns a word of a command line, which can hold neither NUL nor half of a surrogate pair, unless it stands for a byte of a path."""
    try:
        if b"\0" not in os.fsencode(word):
            return word
        what = "NUL"
    except UnicodeEncodeError as reason:
        what = f"half of a surrogate pair at character {reason.start}"
    raise ArgumentError(f"expected a text that an argument of the program can be, found {word!r:.60}, which holds {what}")


def run(*arguments: str, but: str = "", **options: Any) -> bytes:
    """Returns standard output of the program; its errors become exceptions with its sentence, its notes NoteWarnings. but: an option whose
    notes are left out."""
    said = [*map(_argument, arguments)]
    values = _option_values(*said[:2 if said[0] == "attention" else 1]) if options else {}  # a kind of figure has options of its own
    command = [PROGRAM, *said, *map(_argument, _words(options, values))]
    try:
        done = subprocess.run(command, capture_output=True, stdin=subprocess.DEVNULL)
    except OSError as reason:
        raise Error(f"{PROGRAM}: cannot be run: {reason.strerror}") from None
    if done.returncode:
        sentence = _own_words(done.stderr.decode("utf-8", "replace")) or f"{' '.join(command)} ended with {done.returncode}"
        raise _KINDS.get(done.returncode, Error)(sentence)
    for line in done.stderr.decode("utf-8", "replace").splitlines():
        if line.strip() and not (but and line.startswith(f"note: --{but}: ")):
            note(_own_words(line))
    return done.stdout


def json_of(*arguments: str, out: Any = None, **options: Any) -> Dict[str, Any]:
    """Returns the program's JSON. out: a .json file for a copy; it may be none of the arguments."""
    if out is not None:
        output_suffix(out, (".json",), arguments)
    options = _given(options)
    for one in _repeats("plot", options.get("plot", [])) if "plot" in options else ():
        output_suffix(one, FORMATS, arguments)
    said = run(*arguments, "--json", **options)
    try:
        found = dict(json.loads(said))
    except ValueError:
        shown = ", ".join(f"{name}=" for name in options)
        raise ArgumentError(f"{arguments[0]}: prints no JSON with {shown}: leave out what shows texts") from None
    if out is not None:
        write_output(out, said)
    return found


def _subtracted(options: Dict[str, Any], given: Dict[str, Any]) -> Dict[str, Any]:
    """The options with the folder of an open model that is subtracted, and what it is without. The program opens both models alike."""
    other = options.get("minus")
    if not hasattr(other, "opened_with"):
        return options
    folder, opened = _opened(other)
    for name in ("layers", "precision", "reference"):
        if opened.get(name) != given.get(name):
            raise UnsupportedError(f"minus: both models are opened in the same way, and {name}= differs: {given.get(name)!r} and {opened.get(name)!r} "
                                   "(None: by default)")
    return {**options, "minus": folder, "minus_ablate": _without(other.ablated, options.get("minus_ablate"))}


def _opened(model: Any) -> Tuple[str, Dict[str, Any]]:
    """The folder of a model, and what an open one was opened with: the program opens it again in the same way. Of a closed one nothing is
    made, as nothing is encoded."""
    if hasattr(model, "_check_not_closed"):
        model._check_not_closed()
    return (model.path, dict(model.opened_with)) if hasattr(model, "opened_with") else (os.fsdecode(terminated("model", model)), {})


def _opened_whole(model: Any, what: str) -> Tuple[str, Dict[str, Any]]:
    """As _opened. Raises UnsupportedError for a model with its first layers only, of which the program would take all."""
    folder, given = _opened(model)
    if given.pop("layers", None):
        raise UnsupportedError(f"the model was opened with its first layers only, {what} are of whole models: open it without layers=")
    return folder, given


def bench(model: Any, **options: Any) -> List[Dict[str, Any]]:
    """Latency of `deberta bench`, one dictionary a point, as pandas.DataFrame takes them: model, isa, threads, layers, batch, n,
    median_s, samples_s and the others of docs/json.md, deberta-bench/1. model: a folder or a Model. options: as of the program
    (tokens=[16, 128], threads=2). Names that end in _s are seconds, in _bytes bytes. Raises ArgumentError for a closed model and for
    options that the program does not take, UnsupportedError after ablate."""
    folder, given = _opened(model)
    if getattr(model, "ablated", ""):
        raise UnsupportedError(f"this model is without {model.ablated}, and bench leaves out terms by attention=: remove() what ablate returned")
    if "layers" in given:
        given["depth"] = given.pop("layers")
    return list(json_of("bench", folder, **{**given, **_given(options)})["results"])


class Figure:
    """A figure. Notebooks show it; save() writes it as SVG, PDF or PNG.

    svg: its bytes. title: what a screen reader says.
    """

    def __init__(self, svg: bytes, title: str, draw: Optional[Callable[[str, Optional[int]], bytes]] = None, inputs: Sequence[str] = ()) -> None:
        """draw(".png", dpi): the same figure in another format. inputs: files and folders that it was made of, which save() never replaces."""
        self.svg, self.title, self._draw, self._inputs = svg, title, draw, tuple(inputs)
        self._made: Dict[Tuple[str, Optional[int]], bytes] = {(".svg", None): svg}

    def _as(self, suffix: str, dpi: Optional[int] = None) -> bytes:
        """Returns another format. dpi: None means that of the figure's options."""
        if (suffix, dpi) not in self._made:
            if self._draw is None:
                raise UnsupportedError(f"this figure is there as SVG alone, so that no {suffix} can be made of it")
            self._made[suffix, dpi] = self._draw(suffix, dpi)
        return self._made[suffix, dpi]

    def _repr_svg_(self) -> str:
        return self.svg.decode()

    def _repr_html_(self) -> str:
        own = f"\\g<0>f{hashlib.sha256(self.svg).hexdigest()[:8]}-"  # ids must be unique where several figures are in one page
        text = re.sub(r'\bid="|url\(#|href="#', own, self.svg.decode())
        return f'<figure aria-label="{html.escape(self.title, quote=True)}">{text[text.index("<svg"):]}</figure>'

    def _repr_png_(self) -> Optional[bytes]:
        """Returns a PNG for front ends that show no SVG; None if the figure can no longer be drawn."""
        try:
            return self._as(".png", SCREEN_DPI)
        except Error:
            return None

    def save(self, path: "str | os.PathLike[str]") -> None:
        """Writes the format that the name says: .svg, .pdf or .png. Refused: other names, and files that the figure was made of."""
        write_output(path, self._as(output_suffix(path, FORMATS, self._inputs)))


def _drawing(svg: bytes) -> bytes:
    """Returns a figure without its command and the names that are made of it."""
    return re.sub(rb'<entry key="Command">.*?</entry>|(?<=id=")[^"]*|(?<=url\(#)[^)]*|(?<=href="#)[^"]*', b"", svg, flags=re.S)


def _texts_of_figure(text: Any, pair: Any, kind: Optional[str], options: Dict[str, Any]) -> Tuple[List[str], str]:
    """Returns the texts of a figure as words of a command line, and for readers."""
    others = [name for name in OTHER_INPUTS if name in options]
    if text is None:
        if pair is not None or not others:
            wrong = "there is nothing to draw" if pair is None else "pair: is the second segment of a text, and there is no text"
            raise ArgumentError(f"{wrong}: expected a text, a pair (text, second text), {', '.join(f'{name}=' for name in OTHER_INPUTS[:-1])} or {OTHER_INPUTS[-1]}=")
        return [], ""
    if others:
        raise ArgumentError(f"expected one input, found a text and {', '.join(f'{name}=' for name in others)}")
    items, single = as_texts(text)
    assert items is not None
    if pair is not None:
        if not single or not isinstance(items[0], str):
            raise ArgumentError(f"pair: is the second segment of one text, found {type(text).__name__} as the text")
        items = [(items[0], one_text("pair", pair))]
    if not single and kind not in SEVERAL_TEXTS:
        raise ArgumentError(f"expected a text, or a pair as a tuple (text, second text), found a list of {len(items)}: a figure shows one text "
                            f"(of several: {', '.join(SEVERAL_TEXTS)})")
    if len({isinstance(item, tuple) for item in items}) > 1:
        raise ArgumentError("expected texts or pairs, found both in one list")
    rows = [item if isinstance(item, tuple) else (item,) for item in items]
    return [word for row in rows for words in zip(("--text", "--pair"), row) for word in words], " and ".join(" | ".join(row) for row in rows)


def attention_figure(model: Any, text: Any = None, kind: Optional[str] = None, pair: Optional[str] = None, *, out: Any = None,
                     **options: Any) -> Figure:
    """A figure of `deberta attention` (docs/figures.md) of a text or a pair (text, second text). model: a folder, or a Model, as it is
    now: with its precision and what it is without after ablate. kind: components (default), rollout, distance and others;
    difference and kernel take a list of texts. pair: the second segment, as in a tuple. out: a file or files to write as well, .svg,
    .pdf or .png. options: as of the program (layers=2, heads=[0, 1], width_mm=85, font_size=9): sizes in millimetres and points, layers
    and heads from 0. Raises ArgumentError for a closed model, for options that the program does not take and for an out= that is one of
    its inputs, UnsupportedError for a model opened with layers=."""
    folder, given = _opened_whole(model, "figures")
    options = _given(options)
    for name in {"help", "version"} & set(options):
        raise ArgumentError(f"{name}: is no argument: it prints a text in the place of the figure")
    words, title = _texts_of_figure(text, pair, kind, options)
    options = {**given, **_subtracted(options, given), "ablate": _without(getattr(model, "ablated", ""), options.get("ablate"))}
    out = None if out is False else out
    if "latex" in options and out is None:
        raise ArgumentError("latex: the file includes the figure by its name: give out=, too")
    inputs = [folder, *(os.fspath(one) for name in ("input", "file", "minus") if name in options for one in _repeats(name, options[name])
              if isinstance(one, (str, os.PathLike)))]
    outs = [] if out is None else list(out) if isinstance(out, (list, tuple)) else [out]
    for one in outs:
        output_suffix(one, FORMATS, inputs)
    for name in WRITTEN:
        if name in options:
            output_suffix(options[name], (), inputs)

    def drawn(*suffixes: str, more: Sequence[str] = (), **changed: Any) -> List[bytes]:
        with tempfile.TemporaryDirectory() as place:
            paths = [str(Path(place) / f"figure{suffix}") for suffix in suffixes]
            files = [word for path in (*more, *paths) for word in ("--out", path)]
            # dpi: is that of what save() writes, which is not there yet.
            run("attention", *([kind] if kind else []), folder, *words, *files, but="dpi", **{**options, **changed})
            return [Path(path).read_bytes() for path in paths]

    def draw(suffix: str, dpi: Optional[int]) -> bytes:
        again, found = drawn(".svg", suffix, quiet=True, **{name: None for name in WRITTEN}, **({} if dpi is None else {"dpi": dpi}))
        if _drawing(again) != _drawing(svg):
            raise UnsupportedError("the model or its input has changed since the figure was made: make it again")
        return found

    svg, = drawn(".svg", more=[os.fspath(one) for one in outs])
    return Figure(svg, f"attention of: {title}" if title else "attention", draw, inputs)


def trace(model: Any, text: Any, pair: Optional[str] = None, **options: Any) -> Dict[str, Any]:
    """`deberta attention trace` as a dictionary (docs/json.md, deberta-trace/1), whose measures and shares are arrays: states [L + 1, tokens],
    heads, c2c, c2p, p2c [L, A], NaN where nothing was patched."""
    folder, given = _opened_whole(model, "traces")
    options = _given(options)
    words, _ = _texts_of_figure(text, pair, "trace", options)
    found = json_of("attention", "trace", folder, *words, **{**given, **options, "ablate": _without(getattr(model, "ablated", ""), options.get("ablate"))})
    for grids in (found["measures"], found["shares"]):
        grids.update({name: np.array(grid, np.float64) for name, grid in grids.items() if name != "together"})
    return found


def main() -> None:
    """Runs the program itself, for the command `deberta`."""
    os.execv(PROGRAM, [PROGRAM, *sys.argv[1:]])
