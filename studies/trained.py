"""Tiny models that a study trains itself: a recipe, its batches, `deberta train`, and a folder of finished models to which a run goes on adding.

SPDX-License-Identifier: MIT
"""
import json
import shutil
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Any, Callable, Dict, List, NamedTuple, Sequence, Tuple

import study
import deberta_c
import numpy as np
from deberta_c._program import run as program

NOT_ASKED = -100  # the label of a token that is not asked
SEEDS = 5  # the fewest that are called a difference here
STUDENT = {1: 12.706, 2: 4.303, 3: 3.182, 4: 2.776, 5: 2.571, 6: 2.447, 7: 2.365, 8: 2.306, 9: 2.262, 14: 2.145, 19: 2.093, 24: 2.064, 29: 2.045, 39: 2.023, 59: 2.001, 99: 1.984}  # 97.5 % point of t by degrees of freedom
REFERENCE = "microsoft"  # how distances beyond the table are read, in training and afterwards: what is recorded has Microsoft's rule
SHAPE = {"model_type": "deberta-v2", "hidden_size": 64, "num_attention_heads": 2, "intermediate_size": 256, "layer_norm_eps": 1e-7,
         "initializer_range": 0.1, "position_buckets": -1, "norm_rel_ebd": "layer_norm", "share_att_key": True, "position_biased_input": False,
         "hidden_act": "gelu", "type_vocab_size": 0, "legacy": False, "hidden_dropout_prob": 0, "attention_probs_dropout_prob": 0}


class Recipe(NamedTuple):
    """One model. A name says all that makes it, so that a folder of that name is that model."""

    name: str
    config: Dict[str, Any]
    batches: Callable[[], Dict[str, np.ndarray]]  # [steps, sequences, tokens]: input_ids, attention_mask, labels
    steps: int
    warm_up: int
    seed: int
    head: str = "mlm"
    start: Any = None  # makes a folder to begin with, in place of weights that are drawn
    decay: float = 0.01
    epsilon: float = 1e-6
    peak: float = 0.002
    shards: int = 16  # parts that sums over tokens are cut into: another number is another order of the sums


def config(vocabulary: int, layers: int, k: int, terms: Sequence[str] = ("c2p", "p2c"), buckets: int = -1) -> Dict[str, Any]:
    return {**SHAPE, "vocab_size": vocabulary, "num_hidden_layers": layers, "max_relative_positions": k, "position_buckets": buckets,
            "relative_attention": bool(terms), "pos_att_type": list(terms), "max_position_embeddings": 64}


def train(recipe: Recipe, state: Path, threads: int) -> Path:
    """The folder of the model, which is trained unless it is there: `log.jsonl` has the losses, `recipe.json` the rest."""
    folder = state / recipe.name
    if (folder / "model.safetensors").exists():
        return folder
    begun = time.monotonic()
    state.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=state) as scratch:
        prepare(recipe, Path(scratch), threads)
        finish(recipe, Path(scratch), folder, threads, begun)
    return folder


def train_in_pieces(recipe: Recipe, state: Path, threads: int, every: int) -> Path:
    """As train, with a checkpoint every so many steps that stays: what was broken off goes on from the last one."""
    folder, here, begun = state / recipe.name, state / f"{recipe.name}.begun", time.monotonic()
    if not (folder / "model.safetensors").exists():
        if not (here / "ready").exists():
            shutil.rmtree(here, ignore_errors=True)
            here.mkdir(parents=True)
            prepare(recipe, here, threads)
            (here / "ready").touch()
        finish(recipe, here, folder, threads, begun, *["--resume"] * (here / "model").exists(), "--keep", "1", "--checkpoint-every", str(every), "--keep-every", str(every))
        shutil.rmtree(here)
    return folder


def prepare(recipe: Recipe, here: Path, threads: int) -> None:
    """What a training reads: the batches, and a configuration or weights to begin with."""
    (here / "new").mkdir()
    (here / "new" / "config.json").write_text(json.dumps(recipe.config))
    write_tensors(here / "batches.safetensors", recipe.batches())
    if recipe.start:
        recipe.start(here, threads).rename(here / "start")


def finish(recipe: Recipe, here: Path, folder: Path, threads: int, begun: float, *more: str) -> None:
    source = [str(here / "start")] if recipe.start else ["--config", str(here / "new")]
    program("train", "mlm", *source, "--batches", str(here / "batches.safetensors"), "--head", recipe.head, "--steps", str(recipe.steps),
            "--warmup", str(recipe.warm_up), "--learning-rate", str(recipe.peak), "--beta2", "0.98", "--weight-decay", str(recipe.decay), "--epsilon", str(recipe.epsilon),
            "--dropout", "0", "--seed", str(recipe.seed), "--threads", str(threads), "--reference", REFERENCE, "--virtual-shards", str(recipe.shards),
            *more, "--out", str(here / "model"))
    (here / "model" / "recipe.json").write_text(json.dumps({"commit": commit(), "seconds": round(time.monotonic() - begun, 1)}))
    shutil.move(str(here / "model"), folder)


def commit() -> str:
    """Of this tree; "" where it is no clone."""
    done = subprocess.run(["git", "-C", str(study.ROOT), "rev-parse", "--short=12", "HEAD"], capture_output=True, text=True)
    return done.stdout.strip()


def log(folder: Path) -> List[Dict[str, Any]]:
    return [json.loads(line) for line in (folder / "log.jsonl").read_text().splitlines()]


def windows(model: deberta_c.Model, lines: Sequence[str], tokens: int) -> Tuple[np.ndarray, int]:
    """[windows, tokens]: texts on end, cut, each with the frame; and the id of [MASK]."""
    first, last = model.tokenize("a").ids[[0, -1]]
    stream = np.concatenate([model.tokenize(line).ids[1:-1] for line in lines])
    spelled = model.tokenize("[MASK]")
    ids = np.pad(stream[:len(stream) // (tokens - 2) * (tokens - 2)].reshape(-1, tokens - 2), ((0, 0), (1, 1)))
    ids[:, 0], ids[:, -1] = first, last
    return ids, int(spelled.ids[spelled.roles == study.SPELLED][0])


def logits(folder: Path, ids: Any, head: str, ablate: str = "") -> np.ndarray:
    """[texts, tokens, vocabulary] of texts of one length."""
    with deberta_c.Model(folder, threads=1, reference=REFERENCE) as model, model.ablate(ablate) if ablate else model:
        return np.asarray(model.encode(np.asarray(ids, np.int32), hidden=None, logits=head)[f"logits.{head}"])


# ------------------------------------------------------------------------------------------------------------- safetensors

_KINDS = {"F32": "<f4", "I32": "<i4", "F16": "<f2"}


def write_tensors(path: Path, tensors: Dict[str, np.ndarray]) -> None:
    header, body, at = {}, [], 0
    for name, values in tensors.items():
        kind = "F32" if values.dtype.kind == "f" else "I32"
        body.append(np.ascontiguousarray(values, _KINDS[kind]).tobytes())
        header[name] = {"dtype": kind, "shape": list(values.shape), "data_offsets": [at, at + len(body[-1])]}
        at += len(body[-1])
    head = json.dumps(header).encode()
    head += b" " * (-len(head) % 8)
    with open(path, "wb") as file:
        file.writelines([len(head).to_bytes(8, "little"), head, *body])


def read_tensors(path: Path) -> Dict[str, np.ndarray]:
    data = path.read_bytes()
    base = 8 + int.from_bytes(data[:8], "little")
    header = json.loads(data[8:base])
    return {name: np.frombuffer(data[base + one["data_offsets"][0]:base + one["data_offsets"][1]], _KINDS[one["dtype"]]).reshape(one["shape"])
            for name, one in header.items() if name != "__metadata__"}


# ---------------------------------------------------------------------------------------------------------------- over seeds


def student(freedom: int) -> float:
    """97.5 % point of Student's t, of the next smaller number of degrees of freedom in the table: never too narrow."""
    return STUDENT[max(one for one in STUDENT if one <= freedom)]


def over_seeds(values: Sequence[float]) -> study.Estimate:
    """The mean with its 95 % t-interval over seeds, which fewer than five do not get."""
    values = np.asarray(values, float)
    freedom = len(values) - 1
    return study.Estimate(float(values.mean())) if freedom < SEEDS - 1 else over_few_seeds(values)


def over_few_seeds(values: Sequence[float]) -> study.Estimate:
    """The mean with its 95 % t-interval from two seeds on: of differences seed by seed, where a wide interval is the answer."""
    values = np.asarray(values, float)
    half = student(len(values) - 1) * values.std(ddof=1) / np.sqrt(len(values))
    return study.Estimate(float(values.mean()), float(values.mean() - half), float(values.mean() + half))


def seed_range(values: Sequence[float]) -> study.Estimate:
    """The mean with the lowest and the highest seed: for shares near 0 or 100 %, around which no t-interval fits."""
    return study.Estimate(float(np.mean(values)), float(np.min(values)), float(np.max(values)))


# ------------------------------------------------------------------------------------------------------- command line, files


def command_line(documentation: str, table: str) -> Any:
    """table: what the file of results holds."""
    parser = study.command_line(documentation)
    parser.add_argument("results", metavar="RESULTS", nargs="?", help=f"{table}, CSV: read, or with --train written")
    parser.add_argument("--train", metavar="STATE", help="train the models that this folder lacks, and measure all of them")
    parser.add_argument("--quick", action="store_true", help="with a few models, in a folder of its own where --train names none")
    parser.add_argument("-t", "--threads", type=int, default=1, metavar="N", help="of training (default 1; no bit depends on it)")
    return parser


def begin_with_corpus(parser: Any) -> study.Study:
    """Of a study that trains on texts of a folder: --corpus is what --train needs, and --quick does without."""
    parser.add_argument("--corpus", metavar="FOLDER", help="of train.txt and valid.txt (docs/studies/data), for --train")
    s = study.begin(parser)
    if s.options.train and not s.options.corpus and not s.options.quick:
        study.refuse(study.WRONG_USE, "--train needs --corpus")
    return s


def keep_results(options: Any) -> None:
    """A few models or texts do not take the place of all: --quick writes a new file alone. What is resumed is the folder of --train, never RESULTS."""
    if options.quick and options.results and Path(options.results).is_file():
        study.refuse(study.WRONG_USE, f"{options.results} is there, and --quick does not write over it: give --quick without a file, "
                                      "or the file without --quick, which reads it")


Row = Dict[str, Any]


def rows_of(s: study.Study, recipes: Callable[[bool], Sequence[Any]], measure: Callable[[Path, Any], Sequence[Row]], make: Callable[[Any], Any],
            trainer: Callable[[Any, Path, int], Path] = train) -> List[Row]:
    """The results: of the file, or of models that are trained and measured now. recipes(quick): settings of the models, of which `make` makes recipes
    for the trainer."""
    o = s.options
    keep_results(o)
    if not o.train and not o.quick:
        return read_rows(o.results) if o.results else study.refuse(study.WRONG_USE, "name a file of results, or give --train or --quick")
    with tempfile.TemporaryDirectory() as own:
        rows = []
        for settings in s.progress(recipes(o.quick), "models"):
            folder = trainer(make(settings), Path(o.train or own), o.threads)
            rows += [{**one, "commit": json.loads((folder / "recipe.json").read_text())["commit"]} for one in measure(folder, settings)]
    if o.results:
        study.write_whole(o.results, csv_of(rows).encode())
    return rows


def rows_read_or_measured(s: study.Study, measure: Callable[[], List[Row]]) -> List[Row]:
    """The rows of RESULTS; with --measure or --quick those of `measure`, which are written there."""
    o = s.options
    keep_results(o)
    if not o.measure and not o.quick:
        return read_rows(o.results) if o.results else study.refuse(study.WRONG_USE, "name a file of results, or give --measure or --quick")
    rows = measure()
    if o.results:
        study.write_whole(o.results, csv_of(rows).encode())
    return rows


def csv_of(rows: Sequence[Row]) -> str:
    columns = list(rows[0])
    table = study.Table("results", None, [(name, "%.10g") for name in columns])
    for row in rows:
        table.add(*(row[name] for name in columns))
    return table.to_csv()


def read_rows(path: str) -> List[Row]:
    lines = list(study.lines_of([path]))
    if len(lines) < 2:
        study.refuse(study.BAD_INPUT, f"{path}: expected a table of results, found no row")
    columns = lines[0][1].split(",")
    rows = []
    for place, line in lines[1:]:
        cells = line.split(",")
        if len(cells) != len(columns):
            study.refuse(study.BAD_INPUT, f"{place}: expected {len(columns)} cells, found {len(cells)}")
        rows.append({name: _value(cell) for name, cell in zip(columns, cells)})
    return rows


def _value(cell: str) -> Any:
    for kind in (int, float):
        try:
            return kind(cell)
        except ValueError:
            pass
    return cell
