"""What studies share: the command line, models and texts, intervals, tables, files and figures. studies/README.md shows how to write one.

SPDX-License-Identifier: MIT
"""
from __future__ import annotations

import argparse
import contextlib
import csv
import functools
import io
import json
import math
import os
import shlex
import sys
from pathlib import Path
from typing import Any, Callable, Dict, Iterable, Iterator, List, NamedTuple, NoReturn, Optional, Sequence, Tuple

ROOT = Path(__file__).resolve().parent.parent
if "DEBERTA_LIBRARY" not in os.environ and (ROOT / "build" / "libdeberta.so.0").exists():
    # The package of this tree and what was built of it go before an installed one: a study is about what stands here.
    sys.path.insert(0, str(ROOT / "python"))
    os.environ["DEBERTA_LIBRARY"] = str(ROOT / "build" / "libdeberta.so.0")
    os.environ.setdefault("DEBERTA_PROGRAM", str(ROOT / "build" / "deberta"))
try:
    import numpy as np
except ImportError as reason:
    sys.exit(f"{Path(sys.argv[0]).name}: {reason}: studies need NumPy (pip install numpy)")
try:
    import deberta_c
except ImportError as reason:
    sys.exit(f"{Path(sys.argv[0]).name}: {reason}: build this tree with ./build.sh, or install the package with pip (docs/python.md)")

SCHEMA = "deberta-study/1"
RESAMPLES = 1000
FORMATS = ("md", "table", "csv", "json")
FIGURES = (".png", ".svg", ".pdf")
OF_TEXT = 0  # the role of a token that comes from the text
SPELLED, FRAME = 1, 2  # the roles of "[MASK]" in a text, and of [CLS] and [SEP]
WRONG_USE, BAD_INPUT, SYSTEM = 2, 3, 4  # exit codes, as the program has them


def refuse(code: int, sentence: str) -> NoReturn:
    print(f"{Path(sys.argv[0]).name}: {sentence}", file=sys.stderr)
    sys.exit(code)


# ----------------------------------------------------------------------------------------------------------- random numbers


class Random:
    """splitmix64, so that a seed draws the same masks and samples as ever: one number at a time, or many at once."""

    STEP, FIRST, SECOND = 0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB
    WORD = (1 << 64) - 1

    def __init__(self, seed: int) -> None:
        self.state = seed & self.WORD

    def next(self) -> int:
        self.state = z = (self.state + self.STEP) & self.WORD
        z = ((z ^ z >> 30) * self.FIRST) & self.WORD
        z = ((z ^ z >> 27) * self.SECOND) & self.WORD
        return z ^ z >> 31

    def fraction(self) -> float:
        """[0, 1)"""
        return (self.next() >> 11) * 2.0 ** -53

    def below(self, count: int) -> int:
        """0 ... count - 1, for counts below 2^32."""
        return ((self.next() >> 32) * count) >> 32

    def many(self, count: int) -> np.ndarray:
        """The next numbers as uint64 [count]; their arithmetic wraps around."""
        z = np.uint64(self.state) + np.uint64(self.STEP) * np.arange(1, count + 1, dtype=np.uint64)
        self.state = (self.state + self.STEP * count) & self.WORD
        z = (z ^ z >> np.uint64(30)) * np.uint64(self.FIRST)
        z = (z ^ z >> np.uint64(27)) * np.uint64(self.SECOND)
        return z ^ z >> np.uint64(31)

    def many_below(self, counts: Any, count: int) -> np.ndarray:
        """As below, of one count or of [count] of them."""
        drawn = self.many(count) >> np.uint64(32)
        return ((drawn * np.asarray(counts, np.uint64)) >> np.uint64(32)).astype(np.intp)


# ------------------------------------------------------------------------------------------------------------ intervals


class Estimate(NamedTuple):
    """A value with its 95 % interval, which is NaN where there was one unit alone."""

    value: float
    low: float = math.nan
    high: float = math.nan

    def show(self, form: str) -> str:
        """By a format that takes value, low and high, these from " (" on: "%.2f (%.2f to %.2f)"."""
        if math.isnan(self.low):
            return form.partition(" (")[0] % self.value
        return form % tuple(self)

    def mapped(self, function: Callable[[float], float]) -> "Estimate":
        """Of a function of the value; a falling one turns the interval around."""
        value, low, high = map(function, self)
        return Estimate(value, min(low, high), max(low, high)) if low == low else Estimate(value)


@functools.lru_cache(maxsize=4)
def _times_drawn(units: int, seed: int, first: int, end: int) -> np.ndarray:
    """How often each unit is drawn in the resamples [first, end)."""
    random = Random(seed + Random.STEP * units * first)
    rows = random.many_below(units, (end - first) * units).reshape(end - first, units) + units * np.arange(end - first)[:, None]
    return np.bincount(rows.ravel(), minlength=(end - first) * units).reshape(end - first, units).astype(float)


def ratio(parts: Any, wholes: Any = None, *, seed: int) -> Estimate:
    """sum of parts / sum of wholes (their number, if not given) over the units, and its percentile bootstrap over units. The same seed
    draws the same units for any quantity, so that differences are paired."""
    parts = np.asarray(parts, float)
    wholes = np.ones(len(parts)) if wholes is None else np.asarray(wholes, float)
    together = np.stack([parts, wholes], 1)
    value, whole = together.sum(0)
    value = value / whole if whole else 0.0
    if len(parts) < 2:
        return Estimate(_thirteen_digits(value))
    step = max(1, min(RESAMPLES, 4_000_000 // len(parts)))  # as many resamples as take 32 MB at once
    sums = np.concatenate([_times_drawn(len(parts), seed, first, min(first + step, RESAMPLES)) @ together for first in range(0, RESAMPLES, step)])
    found = np.sort(np.divide(sums[:, 0], sums[:, 1], out=np.zeros(RESAMPLES), where=sums[:, 1] != 0))
    return Estimate(*map(_thirteen_digits, (value, found[RESAMPLES * 25 // 1000], found[RESAMPLES * 975 // 1000 - 1])))


def _thirteen_digits(value: Any) -> float:
    """No order of summation shows, not even where a number that is printed lies halfway between two digits."""
    return float(f"{value:.13g}")


# ----------------------------------------------------------------------------------------------------------------- tables


class Table:
    """Rows for people or, with all digits, for programs. columns: names, or pairs of a name and the format of its numbers."""

    def __init__(self, name: str, title: Optional[str], columns: Sequence[Any]) -> None:
        self.name, self.title, self.rows = name, title, []  # type: str, Optional[str], List[Tuple[Any, ...]]
        self.columns = [one if isinstance(one, str) else one[0] for one in columns]
        self._forms = [None if isinstance(one, str) else one[1] for one in columns]

    def add(self, *cells: Any) -> None:
        """A row: texts, integers, real numbers; None and NaN are not known. An Estimate takes three cells."""
        flat = [part for cell in cells for part in (cell if isinstance(cell, Estimate) else (cell,))]
        assert len(flat) == len(self.columns), (self.name, flat)
        self.rows.append(tuple(_plain(cell) for cell in flat))

    def shown(self, form: Optional[str] = None) -> List[List[str]]:
        """Texts of the title row and all others; form: of real numbers without a format of their own."""
        def text(cell: Any, own: Optional[str]) -> str:
            if cell is None:
                return ""
            return (own or form or "%g") % cell if isinstance(cell, float) else str(cell)
        return [self.columns, *([text(cell, own) for cell, own in zip(row, self._forms)] for row in self.rows)]

    def to_text(self, aligned: bool) -> str:
        """Markdown, or columns of a terminal."""
        rows = self.shown()
        right = [len(rows) < 2 or not cell or cell[0] in "+-.0123456789" for cell in (rows + rows)[1]]
        if not aligned:
            lines = ["| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |" for row in rows]
            lines.insert(1, "".join("|--:" if r else "|---" for r in right) + "|")
            return "\n".join(lines)
        widths = [max(map(len, column)) for column in zip(*rows)]
        return "\n".join("  ".join(cell.rjust(w) if r else cell.ljust(w) for cell, w, r in zip(row, widths, right)).rstrip() for row in rows)

    def to_csv(self) -> str:
        text = io.StringIO()
        csv.writer(text, lineterminator="\n").writerows(self.shown("%.6f"))
        return text.getvalue()

    def to_json(self) -> Dict[str, Any]:
        return {"columns": self.columns, "rows": [list(row) for row in self.rows]}


def _plain(cell: Any) -> Any:
    """What JSON has of it; numbers that are not finite are not known."""
    if isinstance(cell, np.generic):
        cell = cell.item()
    return None if isinstance(cell, float) and not math.isfinite(cell) else cell


# ------------------------------------------------------------------------------------------------------------------ texts


class Text(NamedTuple):
    """A sentence as tokens: what deberta_c.Tokens has, and the sentence."""

    sentence: str
    ids: np.ndarray
    tokens: List[str]
    characters: np.ndarray
    roles: np.ndarray

    @property
    def own(self) -> np.ndarray:
        """Which tokens are the text's own: not [CLS] and [SEP]."""
        return self.roles != FRAME


def _is_object(line: str) -> bool:
    try:
        return line.lstrip().startswith("{") and isinstance(json.loads(line), dict)
    except ValueError:
        return False


def lines_of(paths: Iterable[str], texts: Iterable[str] = ()) -> Iterator[Tuple[str, str]]:
    """Lines that are not empty, with the place of each; "-" is standard input. Objects, which the program reads, are refused: no study means
    their braces and keys."""
    for path in paths:
        sentences = f"{path}: expected a sentence a line, found %s; write out its texts first, as `jq -r .text` does"
        if path.lower().endswith((".jsonl", ".ndjson", ".json")):
            refuse(BAD_INPUT, sentences % "the name of a file of objects")
        is_first = True
        try:
            with (sys.stdin.buffer if path == "-" else open(path, "rb")) as file:
                content = file.read()
        except OSError as reason:
            refuse(BAD_INPUT, f"{path}: cannot be opened: {reason.strerror}")
        for number, line in enumerate(content.split(b"\n"), 1):
            try:
                text = line.rstrip(b"\r").decode()
            except UnicodeDecodeError:
                refuse(BAD_INPUT, f"{path}: line {number}: expected UTF-8, found the bytes {line[:20]!r}")
            if is_first and _is_object(text.lstrip("\ufeff")):
                refuse(BAD_INPUT, sentences % f"an object in line {number}")
            if text:
                is_first = is_first and not text.strip()
                yield f"{path}: line {number}", text
    for number, text in enumerate(texts, 1):
        yield f"text {number}", text


class Hidden(NamedTuple):
    """A text some of whose tokens are [MASK]."""

    ids: np.ndarray
    places: np.ndarray  # of the masks
    targets: np.ndarray  # what stood there


def hide(texts: Sequence[Text], mask: int, seed: int, rate: float = 0.15) -> List[Hidden]:
    """Hides each token that is a piece of its text with probability `rate`, and at least one of every text that has any."""
    random, found = Random(seed), []
    for text in texts:
        candidates = np.flatnonzero(text.roles == OF_TEXT).tolist()
        places = [t for t in candidates if random.fraction() < rate]
        if candidates and not places:
            places = [candidates[random.below(len(candidates))]]
        ids = text.ids.copy()
        ids[places] = mask
        found.append(Hidden(ids, np.array(places, np.intp), text.ids[places]))
    return found


def mask_head(model: deberta_c.Model, decoder: str = "auto") -> str:
    """Name of the masked-LM head that is asked: "emd", after the Enhanced Mask Decoder; "plain", on the last layer; "auto", the first
    where the model has it."""
    tasks = model.info["tasks"]
    wanted = {"emd": ["mlm_emd"], "plain": ["mlm"], "auto": ["mlm_emd", "mlm"]}[decoder]
    found = [task for task in wanted if task in tasks]
    if not found:
        refuse(BAD_INPUT, f"{model.path} has no {'Enhanced Mask Decoder' if decoder == 'emd' else 'masked-LM head, so there is no loss to measure'}")
    return found[0]


def mask_logits(model: deberta_c.Model, hidden: Sequence[Hidden], head: str, **given: Any) -> Sequence[np.ndarray]:
    """Logits [masks, vocabulary] of each text; given: more of what deberta_c.Model.encode takes."""
    return model.encode([one.ids for one in hidden], hidden=None, logits=head, at=[one.places for one in hidden], **given)[f"logits.{head}"]


def mask_losses(logits: np.ndarray, hidden: Hidden) -> np.ndarray:
    """-ln p of what stood at each mask, in nats."""
    x = logits.astype(float)
    top = x.max(1, initial=-np.inf)
    return top + np.log(np.exp(x - top[:, None]).sum(1)) - x[np.arange(len(x)), hidden.targets]


# -------------------------------------------------------------------------------------------------------------- distances

_EDGES = (0, 1, 2, 4, 8, 16, 32)


def distance_bin(r: Any) -> Any:
    """Query - key binned by size, 0, 1, 2, 3 to 4, 5 to 8 ... 33 and more, with the sign: keys to the left are positive."""
    return np.sign(r) * np.searchsorted(_EDGES, np.abs(r))


def distance_name(place: int) -> str:
    """Where the key of a bin stands: "left 3..4", "itself", "right 33.."."""
    if place == 0:
        return "itself"
    side, size = "left" if place > 0 else "right", abs(place)
    low, high = _EDGES[size - 1] + 1, _EDGES[size] if size < len(_EDGES) else ""
    return f"{side} {low}" if low == high else f"{side} {low}..{high}"


DISTANCE_BINS = range(-len(_EDGES), len(_EDGES) + 1)


# ------------------------------------------------------------------------------------------------------------ command line


def command_line(documentation: str, *models: str, texts: bool = True, optional: Sequence[str] = ()) -> argparse.ArgumentParser:
    """The options that all studies have. models: names of the arguments that are models; with them come the options of models and, unless
    texts is False, of sentences. optional: which of the models may be left out."""
    parser = argparse.ArgumentParser(description=documentation, formatter_class=argparse.RawDescriptionHelpFormatter, allow_abbrev=False)
    for name in models:
        parser.add_argument(name, metavar=name.upper(), nargs="?" if name in optional else None, help="a model's folder")
    parser.set_defaults(_models=models, _texts=bool(models) and texts)
    if models and texts:
        parser.add_argument("-f", "--file", action="append", default=[], metavar="FILE", help="sentences, one a line; - is standard input; may be repeated")
        parser.add_argument("--text", action="append", default=[], metavar="TEXT", help="a sentence; may be repeated")
        parser.add_argument("--sentences", type=_count, metavar="N", help="only the first N of them")
        parser.add_argument("--max-tokens", type=_count, metavar="N", help="cut longer ones to N tokens, frame included; nothing is cut otherwise")
    if models:
        parser.add_argument("--ablate", metavar="TERMS", default="", help="what the models do without: c2p@3:5,p2c=mean@all")
        parser.add_argument("--precision", default="float32", metavar="NAME", help="float32 (default), int16 or int8: what linear layers multiply in")
        parser.add_argument("--reference", default="auto", metavar="NAME", help="distances beyond the table: microsoft, hf, or as the config says (default)")
        parser.add_argument("--isa", metavar="NAME", help="the instruction set; the best one if not given")
        parser.add_argument("-t", "--threads", type=_count, metavar="N", help="physical cores if not given")
        parser.add_argument("--memory-limit", type=_bytes, metavar="SIZE", help="bytes that the weights of a model may take, as 2G")
    parser.add_argument("--seed", type=_whole, default=1, metavar="N", help="of all that is drawn (default 1)")
    parser.add_argument("--format", choices=FORMATS, metavar="NAME", help="md (default), table, csv (the data) or json")
    parser.add_argument("--json", action="store_true", help="the same as --format json")
    parser.add_argument("--data", metavar="FILE", help="write the data as CSV, one row an observation")
    parser.add_argument("-o", "--out", action="append", default=[], metavar="FILE", help="draw the figure: .png, .svg, .pdf; may be repeated")
    parser.add_argument("-q", "--quiet", action="store_true", help="no progress on standard error")
    return parser


def with_mask_decoder(parser: argparse.ArgumentParser) -> argparse.ArgumentParser:
    """With --mlm-decoder, what mask_head takes."""
    parser.add_argument("--mlm-decoder", choices=("auto", "emd", "plain"), default="auto", help="the head: after the Enhanced Mask Decoder, or on the "
                        "last layer; auto (default): emd where the model has it")
    return parser


def _whole(text: str) -> int:
    value = int(text)
    if not 0 <= value < 1 << 64:
        raise argparse.ArgumentTypeError(f"expected 0 to 2^64 - 1, found {text}")
    return value


def _count(text: str) -> int:
    value = int(text)
    if not 1 <= value < 1 << 31:
        raise argparse.ArgumentTypeError(f"expected 1 or more, found {text}")
    return value


def _bytes(text: str) -> int:
    factor = {"K": 10, "M": 20, "G": 30, "T": 40}.get(text[-1:].upper())
    if factor is None:
        return _count(text)
    value = float(text[:-1]) * (1 << factor)
    if not 1 <= value < 1 << 63:  # which NaN is not either
        raise argparse.ArgumentTypeError(f"expected a size such as 500M or 2G, found {text}")
    return int(value)


# ------------------------------------------------------------------------------------------------------------------ a study


class Study:
    """What was asked (options), what is studied (models, names, texts), and what was found."""

    def __init__(self, options: argparse.Namespace) -> None:
        self.options, self.seed, self.name = options, options.seed, Path(sys.argv[0]).stem
        self.command = os.fsencode(shlex.join(["python3", f"studies/{self.name}.py", *sys.argv[1:]])).decode("utf-8", "replace")
        self.format = "json" if options.json else options.format or "md"
        self.tables: List[Table] = []
        self.data: Optional[Table] = None
        self._lacks_interval = False
        self._ablated = contextlib.ExitStack()
        self._check_files()
        paths = [path for name in options._models if (path := getattr(options, name)) is not None]
        self.models: List[deberta_c.Model] = [self.open(path) for path in paths]
        self.names = [os.path.basename(os.path.normpath(path)) or path for path in paths]
        self.texts: List[Text] = self._read_texts() if options._texts else []
        for path, model in zip(paths[1:], self.models[1:]):
            sizes = [one.info["vocabulary_size"] for one in (self.models[0], model)]
            if sizes[0] != sizes[1]:
                refuse(WRONG_USE, f"{path}: expected a model with the tokenizer of {paths[0]}, found a vocabulary of {sizes[1]} instead of {sizes[0]}")

    def _check_files(self) -> None:
        o = self.options
        if o.json and o.format not in (None, "json"):
            refuse(WRONG_USE, "give one of --format and --json")
        for path in o.out:
            if not path.lower().endswith(FIGURES):
                refuse(WRONG_USE, f"--out: unknown suffix in '{path}', expected {', '.join(FIGURES)}")
        if o.data is not None and Path(o.data).suffix.lower() not in ("", ".csv") or o.data == "":
            refuse(WRONG_USE, f"--data: unknown suffix in '{o.data}', expected .csv")
        files = [os.path.abspath(path) for path in (o.data, *o.out) if path]
        if len({*files}) < len(files):
            refuse(WRONG_USE, "--data and --out: two of them name the same file")
        for path in files:
            if not os.path.isdir(os.path.dirname(path)):
                refuse(SYSTEM, f"{path}: cannot be written: there is no folder {os.path.dirname(path)}")
        if o.out:
            _plotting()

    def open(self, path: str, **changed: Any) -> deberta_c.Model:
        """A model as the command line asks for it, but for what is changed."""
        o = self.options
        given = {"isa": o.isa, "threads": o.threads, "reference": o.reference, "memory_limit": o.memory_limit, "precision": o.precision}
        model = deberta_c.Model(path, **{**given, **changed})
        if o.ablate:
            self._ablated.enter_context(model.ablate(o.ablate))
        return model

    def _read_texts(self) -> List[Text]:
        o, found = self.options, []
        if not o.file and not o.text:
            refuse(WRONG_USE, "no text: give --text or --file")
        for place, sentence in lines_of(o.file, o.text):
            if len(found) == (o.sentences or math.inf):
                break
            found.append(self.text(sentence, place))
        if not found:
            refuse(BAD_INPUT, "the files hold no sentence")
        return found

    def text(self, sentence: str, place: str = "the text") -> Text:
        """A sentence in the tokens of the first model. place: where it stands, for what is wrong with it."""
        try:
            found = self.models[0].tokenize(sentence, self.options.max_tokens if self.options._texts else None)
        except deberta_c.FormatError as reason:
            refuse(BAD_INPUT, f"{place}: {reason}")
        for model in self.models:
            info = model.info
            if info["position_biased_input"] and len(found.ids) > info["max_positions"]:
                refuse(BAD_INPUT, f"{place}: {len(found.ids)} tokens, but {model.path} has {info['max_positions']} positions: --max-tokens cuts")
        return Text(sentence, found.ids, found.tokens, found.characters, found.roles)

    @property
    def mask_id(self) -> int:
        found = self.models[0].tokenize("[MASK]")
        return int(found.ids[found.roles == SPELLED][0])

    @property
    def tokens(self) -> int:
        return sum(len(text.ids) for text in self.texts)

    @property
    def resamples(self) -> str:
        """For a note: how the intervals were drawn."""
        return f"{RESAMPLES} resamples, seed {self.seed}"

    def ratio(self, parts: Any, wholes: Any = None) -> Estimate:
        """sum of parts / sum of wholes over units (sentences, items), with an interval over these."""
        found = ratio(parts, wholes, seed=self.seed)
        self._lacks_interval |= math.isnan(found.low) and not math.isnan(found.value)
        return found

    def add_table(self, name: str, title: Optional[str], columns: Sequence[Any]) -> Table:
        """One of the short tables for people."""
        self.tables.append(Table(name, title, columns))
        return self.tables[-1]

    def add_data(self, *columns: str) -> Table:
        """The table of all observations: --data, --format csv, and the member `data` of JSON."""
        self.data = Table("data", None, columns)
        return self.data

    def progress(self, items: Sequence[Any], what: str = "sentences") -> Iterator[Any]:
        """The items one by one, counted on a terminal."""
        shows = sys.stderr.isatty() and not self.options.quiet
        for k, item in enumerate(items, 1):
            yield item
            if shows:
                print(f"\r{k} of {len(items)} {what}", end="" if k < len(items) else "\n", file=sys.stderr, flush=True)

    def finish(self, note: str, figure: Optional[Callable[[], Any]] = None) -> None:
        """Writes the data, draws the figure, which is made only if one is asked for, and prints."""
        self._ablated.close()
        if self._lacks_interval:
            note += " A number without an interval was measured on one unit alone."
        if self.options._models and self.options.precision != "float32":
            note += f" Linear layers in {self.options.precision}."
        if self.options.out and figure is None:
            refuse(WRONG_USE, "--out: this study draws no figure")
        if self.options.out and figure is not None:
            self._save(figure(), note)
        if self.options.data and self.data:
            write_whole(self.options.data, self.data.to_csv().encode())
        print(self._printed(note))

    def _printed(self, note: str) -> str:
        if self.format == "csv":
            return (self.data or self.tables[0]).to_csv()[:-1]
        if self.format == "json":
            whole = {"schema": SCHEMA, "study": self.name, "command": self.command, "version": deberta_c.__version__, "note": note}
            whole.update((table.name, table.to_json()) for table in (*self.tables, *([self.data] if self.data else ())))
            return json.dumps(whole, ensure_ascii=False, indent=1)
        parts = [f"{table.title}\n\n{table.to_text(self.format == 'table')}" if table.title else table.to_text(self.format == "table") for table in self.tables]
        return "\n\n".join([*parts, note])

    def _save(self, figure: Any, note: str) -> None:
        """Every figure says below what was measured, and inside its file of which command and version it is."""
        figure.supxlabel(_wrapped(note, figure.get_figwidth()), fontsize=5.5, color="#5a5a5a", x=0.01, ha="left")
        made_by = f"{self.command} (deberta_c {deberta_c.__version__})"
        for path in self.options.out:
            suffix, file = Path(path).suffix[1:].lower(), io.BytesIO()
            metadata = {"png": {"Title": self.name, "Description": note, "Software": made_by},
                        "svg": {"Title": self.name, "Description": note, "Creator": made_by, "Date": None},
                        "pdf": {"Title": self.name, "Subject": note, "Creator": made_by, "CreationDate": None}}[suffix]
            figure.savefig(file, format=suffix, metadata=metadata)
            write_whole(path, file.getvalue())


def begin(parser: argparse.ArgumentParser) -> Study:
    return Study(parser.parse_args())


def run(main: Callable[[], None]) -> None:
    """Calls it; what the library, the system or the caller refuses is a sentence and an exit code."""
    try:
        main()
        sys.stdout.flush()
    except (deberta_c.OutOfMemoryError, deberta_c.SystemRefusedError, MemoryError) as reason:
        refuse(SYSTEM, str(reason) or "out of memory")
    except deberta_c.ArgumentError as reason:
        refuse(WRONG_USE, str(reason))
    except deberta_c.Error as reason:
        refuse(BAD_INPUT, str(reason))
    except BrokenPipeError:  # as of `| head`
        sys.stdout = open(os.devnull, "w")
        sys.exit(1)
    except OSError as reason:  # a disk that is full
        sys.stdout = open(os.devnull, "w")  # which the interpreter would flush once more
        refuse(SYSTEM, f"{reason.filename or 'standard output'}: cannot be written: {reason.strerror}")
    except KeyboardInterrupt:
        sys.exit(130)


# ---------------------------------------------------------------------------------------------------------- files, figures


def write_whole(path: str, content: bytes) -> None:
    """The file appears whole or not at all; a device or a pipe is written to."""
    if os.path.exists(path) and not os.path.isfile(path):
        with open(path, "wb") as file:
            file.write(content)
        return
    temporary = f"{path}.{os.getpid()}.part"
    try:
        with open(temporary, "wb") as file:
            file.write(content)
        os.replace(temporary, path)
    except BaseException:
        if os.path.exists(temporary):
            os.remove(temporary)
        raise


def _plotting() -> Any:
    """matplotlib in the style of the program's own figures."""
    try:
        import matplotlib
    except ImportError:
        refuse(WRONG_USE, "--out: figures need matplotlib (pip install matplotlib)")
    matplotlib.use("agg")
    import logging
    import matplotlib.pyplot
    logging.getLogger("matplotlib.font_manager").setLevel(logging.ERROR)  # a font of the style's list that is not installed: the next one serves
    matplotlib.pyplot.style.use(str(Path(__file__).with_name("style.mplstyle")))
    return matplotlib.pyplot


WIDTH = 174 / 25.4  # inches: two columns of a journal


def panels(rows: int, columns: int, height: float = 38, width: float = WIDTH * 25.4) -> Tuple[Any, Any]:
    """A figure and its axes [rows, columns]; height: of a row, width: of all, in millimetres."""
    return _plotting().subplots(rows, columns, figsize=(width / 25.4, rows * height / 25.4 + 0.35), squeeze=False)


def draw_estimates(axes: Any, x: Sequence[float], estimates: Sequence[Estimate], **look: Any) -> None:
    """A line through values with their intervals."""
    values, low, high = np.array(estimates, float).T
    axes.errorbar(x, values, np.nan_to_num([values - low, high - values]), **{"marker": "o", **look})


def draw_bars(axes: Any, x: Sequence[float], estimates: Sequence[Estimate], width: float, **look: Any) -> None:
    """Bars with their intervals."""
    values, low, high = np.array(estimates, float).T
    axes.bar(x, values, width, yerr=np.nan_to_num([values - low, high - values]), error_kw={"elinewidth": 0.6, "ecolor": "#282828"}, **look)


def legend_above(figure: Any, axes: Any) -> None:
    """One legend for panels of the same series, where it hides none of them."""
    handles, names = axes.get_legend_handles_labels()
    figure.legend(handles, names, loc="outside upper right", ncols=len(names))


def draw_maps(figure: Any, axes: Sequence[Any], maps: Dict[str, Any], rows: Sequence[Any], columns: Sequence[Any], unit: str) -> None:
    """Matrices by title, signed, with one colour bar: white is 0. Where there is room, cells have their numbers."""
    largest = max(float(np.abs(values).max()) for values in maps.values()) or 1.0
    for axis, (title, values) in zip(axes, maps.items()):
        image = axis.imshow(values, cmap="RdBu_r", vmin=-largest, vmax=largest, aspect="auto")
        axis.set_title(title)
        axis.grid(False)
        axis.set_xticks(range(len(columns)), [str(one) for one in columns])
        axis.set_yticks(range(len(rows)), [str(one) for one in rows])
        for (row, column), value in np.ndenumerate(np.asarray(values)) if len(columns) <= 8 else ():
            axis.text(column, row, f"{value:+.3f}", ha="center", va="center", fontsize=5, color="white" if abs(value) > 0.6 * largest else "#282828")
    figure.colorbar(image, ax=list(axes), label=unit)


def distance_axis(axes: Any) -> None:
    """Query - key along the x axis, logarithmic from 4 on."""
    ticks = (-64, -32, -16, -8, -4, 0, 4, 8, 16, 32, 64)
    axes.set_xscale("symlog", linthresh=4, base=2)
    axes.set_xticks(ticks, [f"{tick}".replace("-", "−") for tick in ticks])
    axes.set_xticks([], minor=True)
    axes.set_xlabel("query − key (tokens; > 0: key to the left)")


def _wrapped(text: str, inches: float) -> str:
    import textwrap
    return "\n".join(textwrap.wrap(text, int(inches * 27)))
