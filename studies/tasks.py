"""Three small tasks from prose, a paragraph a line, and what `deberta finetune` makes of a model on them. Studies share them.

spoken: did a sentence stand inside quotation marks (which are taken off)? asked: did it end with a question mark (the end is taken off)?
named: which words began with a capital (all are made small, the first word is left out)? SPDX-License-Identifier: MIT
"""
import json
import random
import re
import tempfile
from pathlib import Path
from typing import Any, Dict, List, Sequence, Tuple

import trained

TASKS = ("spoken", "asked", "named")
LEARNED, MEASURED = 400, 600  # examples, where there are so many
FEWEST_WORDS, MOST_WORDS = 5, 14
STEPS, BATCH, RATE = 75, 8, "5e-4"
QUOTED = re.compile("[\u201c\"]([^\u201c\u201d\"]+)[\u201d\"]")
SENTENCE = re.compile(r"[^.!?]+[.!?]")
NAME, FIRST_PERSON = re.compile(r"\W*[A-Z]"), re.compile(r"\W*I\b")


def sentences(lines: Sequence[str]) -> List[Tuple[str, bool]]:
    """(sentence, whether it was spoken), each once; of paragraphs with quotation marks only what stands between them."""
    found = {}
    for paragraph in lines:
        quotes = any(mark in paragraph for mark in "\u201c\u201d\"")
        for part, spoken in [(text, True) for text in QUOTED.findall(paragraph)] + ([] if quotes else [(paragraph, False)]):
            for sentence in SENTENCE.findall(part):
                sentence = " ".join(sentence.split())
                if FEWEST_WORDS <= len(sentence.split()) <= MOST_WORDS and "\t" not in sentence:
                    found[sentence] = spoken
    return sorted(found.items())


def labelled(task: str, lines: Sequence[str]) -> List[List[str]]:
    """Examples of a task by their labels, each as `deberta finetune` reads it."""
    kinds: Dict[Any, List[str]] = {}
    for sentence, spoken in sentences(lines):
        if task == "spoken":
            kinds.setdefault(spoken, []).append(f"{'spoken' if spoken else 'told'}\t{sentence}\n")
        elif task == "asked":
            kinds.setdefault(sentence[-1] == "?", []).append(f"{'asked' if sentence[-1] == '?' else 'said'}\t{sentence[:-1]}\n")
        else:
            labels = ["NAME" if NAME.match(word) and not FIRST_PERSON.match(word) else "O" for word in sentence.split()]
            if "NAME" in labels[1:]:
                kinds.setdefault("", []).append("".join(f"{word.lower()}\t{label}\n" for word, label in list(zip(sentence.split(), labels))[1:]) + "\n")
    return [kinds[label] for label in sorted(kinds)]


def sample(kinds: Sequence[Sequence[str]], count: int) -> List[str]:
    """As many of every label, in an order that is drawn."""
    draw = random.Random(1)
    chosen = [example for of_label in kinds for example in draw.sample(list(of_label), min(len(of_label), count // len(kinds)))]
    draw.shuffle(chosen)
    return chosen


def write(folder: Path, corpus: Any, learned: int = LEARNED, measured: int = MEASURED) -> None:
    """TASK-train and TASK-test of all tasks. corpus: a folder of train.txt and valid.txt; None: paragraphs of the repository."""
    if corpus:
        train, test = ((Path(corpus) / name).read_text(encoding="utf-8").splitlines() for name in ("train.txt", "valid.txt"))
    else:
        lines = (trained.study.ROOT / "docs/studies/data/books.tsv").read_text(encoding="utf-8").splitlines()
        train, test = ([line.rpartition("\t")[2] for line in lines[part::2]] for part in (0, 1))
    folder.mkdir(parents=True, exist_ok=True)
    for task in TASKS:
        for name, lines, count in (("train", train, learned), ("test", test, measured)):
            (folder / f"{task}-{name}.tsv").write_text("".join(sample(labelled(task, lines), count)), encoding="utf-8")


def finetune(model: Path, data: Path, task: str, seed: int, options: Sequence[str] = (), threads: int = 1, steps: int = STEPS, batch: int = BATCH,
             rate: str = RATE) -> Dict[str, float]:
    """Of held-out examples after the last step: accuracy (of words where words are labelled) and loss; what SiFT adds in the last third of the steps."""
    with tempfile.TemporaryDirectory() as scratch:
        out = Path(scratch) / "model"
        trained.program("finetune", "token" if task == "named" else "sequence", str(model), "--examples", str(data / f"{task}-train.tsv"), "--new-head",
                        "--eval", str(data / f"{task}-test.tsv"), "--steps", str(steps), "--warmup", str(steps // 10), "--learning-rate", rate,
                        "--batch-sequences", str(batch), "--dropout", "0", "--seed", str(seed), "--threads", str(threads), "--quiet", "--out", str(out), *options)
        log = trained.log(out)
    last = [one for one in log if one["step"] > steps * 2 // 3 and "loss_clean" in one]
    added = sum(one["loss"] - one["loss_clean"] for one in last) / len(last) if last else 0.0
    return {"accuracy": log[-1]["eval_accuracy"], "loss": log[-1]["eval_loss"], "added": added}


def most_frequent(data: Path, task: str) -> float:
    """The share of right answers to held-out examples if all have the most frequent label."""
    lines = [line.split("\t") for line in (data / f"{task}-test.tsv").read_text(encoding="utf-8").splitlines() if line]
    labels = [cells[1] if task == "named" else cells[0] for cells in lines]
    return max(map(labels.count, set(labels))) / len(labels)


def remembered(folder: Path, make: Any) -> Dict[str, Any]:
    """What a measurement gave, which a folder of state keeps in recipe.json."""
    path = folder / "recipe.json"
    if not path.exists():
        folder.mkdir(parents=True, exist_ok=True)
        found = make()
        path.with_suffix(".part").write_text(json.dumps({"commit": trained.commit(), **found}))
        path.with_suffix(".part").rename(path)
    return json.loads(path.read_text())
