#!/usr/bin/env python3
"""Recognised scores of models: masked words, minimal pairs, three classifications and parts of speech.

    scores.py SETS STATE MODEL... [--books FILE] [--seeds 1,2,3] [--threads N] [--seconds S] [--blimp-every N]

SETS is what recognised.py made. STATE keeps every result, in a folder for each model by the digest of its weights; with --seconds S no measurement begins after S seconds, the exit
status is 75, and the same command goes on. The table has a row for each model:

    masked    % of masked pieces whose likeliest piece is right, of FILE, a fifth masked, the same for all models with these pieces
    blimp     % of minimal pairs of which the good sentence is likelier; every N-th pair of the file with --blimp-every
    mr ...    % of held-out texts (of masc: words) that are right after a fine-tuning on the training part; mean over seeds

After blimp stands the interval over paradigms (bootstrap), after the others the lowest and the highest seed. No model is chosen on
held-out data: the last step counts. SPDX-License-Identifier: MIT
"""
import argparse
import hashlib
import json
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, Callable, Dict, NamedTuple, Union

import study
import tasks
import trained

MORE_TO_DO = 75


class Task(NamedTuple):
    """A fine-tuning. steps of 32 texts: some two to four times through the training part."""

    kind: str
    steps: int
    tokens: int


TASKS = {"mr": Task("sequence", 800, 96), "subj": Task("sequence", 600, 96), "trec": Task("sequence", 600, 64), "masc": Task("token", 1500, 128)}
RATE = "3e-4"


def masked(model: Path, books: str, threads: int, head: str = "auto") -> Dict[str, Any]:
    """A step with rate 0 leaves the model as it is; what is held out is measured after it."""
    with tempfile.TemporaryDirectory() as scratch:
        out = Path(scratch) / "same"
        trained.program("train", "mlm", str(model), "--file", books, "--eval", books, "--steps", "1", "--learning-rate", "0", "--mask-probability", "0.2",
                        "--sequence-tokens", "512", "--head", head, "--dropout", "0", "--seed", "1", "--threads", str(threads), "--quiet", "--out", str(out))
        last = trained.log(out)[-1]
    return {"right": last["eval_right"], "of": last["eval_labelled"], "loss": last["eval_loss"]}


def blimp(model: Path, pairs: Path, every: int, threads: int, *how: str) -> Dict[str, Any]:
    """how: options of `deberta eval`, such as --score rtd."""
    with tempfile.TemporaryDirectory() as scratch:
        part = Path(scratch) / "pairs.jsonl"
        part.write_text("".join(line for k, line in enumerate(pairs.open(encoding="utf-8")) if k % every == 0), encoding="utf-8")
        found = json.loads(trained.program("eval", str(model), "--minimal-pairs", str(part), *how, "--json", "--threads", str(threads), "--quiet"))
    return {name: found[name] for name in ("pairs", "right", "accuracy", "paradigms", "terms")}


def finetuned(model: Path, data: Path, task: Task, seed: int, threads: int) -> Dict[str, Any]:
    with tempfile.TemporaryDirectory() as scratch:
        out = Path(scratch) / "model"
        trained.program("finetune", task.kind, str(model), "--new-head", "--examples", str(data / "train.tsv"), "--eval", str(data / "held-out.tsv"),
                        "--sequence-tokens", str(task.tokens), "--cut", "--steps", str(task.steps), "--warmup", str(task.steps // 10), "--batch-sequences", "32",
                        "--learning-rate", RATE, "--dropout", "0", "--seed", str(seed), "--threads", str(threads), "--quiet", "--out", str(out))
        last = trained.log(out)[-1]
    return {"accuracy": last["eval_accuracy"], "loss": last["eval_loss"]}


def digest(path: Union[str, Path]) -> str:
    return hashlib.sha256(Path(path).read_bytes()).hexdigest()[:12]


def kept(place: Path, make: Callable[[], Dict[str, Any]], end: float) -> Dict[str, Any]:
    """What a measurement gave; none begins after `end`."""
    def begin() -> Dict[str, Any]:
        if time.monotonic() > end:
            sys.exit(MORE_TO_DO)
        return make()
    return tasks.remembered(place, begin)


def scores_of(model: Path, name: str, given: argparse.Namespace, end: float) -> Dict[str, Any]:
    """{score: what was found}; of a fine-tuning a list, one for each seed."""
    state, sets, threads = Path(given.state) / name, Path(given.sets), given.threads
    found: Dict[str, Any] = {}
    if given.books:
        found["masked"] = kept(state / f"masked-{digest(given.books)}", lambda: masked(model, given.books, threads), end)
    if (sets / "blimp").exists():
        found["blimp"] = kept(state / f"blimp-{given.blimp_every}", lambda: blimp(model, sets / "blimp" / "pairs.jsonl", given.blimp_every, threads), end)
    for task, how in TASKS.items():
        if (sets / task).exists():
            found[task] = [kept(state / f"{task}-{seed}", lambda: finetuned(model, sets / task, how, seed, threads), end) for seed in given.seeds]
    return found


def cell(score: str, found: Any) -> str:
    if score == "masked":
        return f"{100 * found['right'] / found['of']:.1f}"
    if score == "blimp":
        estimate = study.ratio([one["right"] for one in found["paradigms"]], [one["pairs"] for one in found["paradigms"]], seed=1)
        return estimate.mapped(lambda share: 100 * share).show("%.1f (%.1f to %.1f)")
    return trained.seed_range([100 * one["accuracy"] for one in found]).show("%.1f (%.1f to %.1f)")


def name_of(model: str) -> str:
    """The folder, and a digest of the weights: a model that was trained anew is another one."""
    return f"{Path(model).resolve().name}-{digest(Path(model) / 'model.safetensors')}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sets", metavar="SETS")
    parser.add_argument("state", metavar="STATE")
    parser.add_argument("models", metavar="MODEL", nargs="+")
    parser.add_argument("--books", help="text of which pieces are masked")
    parser.add_argument("--seeds", type=lambda text: [int(one) for one in text.split(",")], default=[1, 2, 3])
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=float("inf"))
    parser.add_argument("--blimp-every", type=int, default=1)
    given = parser.parse_args()
    end = time.monotonic() + given.seconds
    rows = [(name, scores_of(Path(model), name, given, end)) for name, model in ((name_of(model), model) for model in given.models)]
    columns = list(rows[0][1])
    print(f"| model | {' | '.join(columns)} |\n|---|{'--:|' * len(columns)}")
    for name, found in rows:
        print(f"| {name} | {' | '.join(cell(score, found[score]) for score in columns)} |")


if __name__ == "__main__":
    study.run(main)
