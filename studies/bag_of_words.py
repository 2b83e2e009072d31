#!/usr/bin/env python3
"""What a bag of words reaches on the tasks of scores.py: the control of every score that needs no order of words and no pre-training.

    bag_of_words.py SETS

SETS is what recognised.py made. Words and pairs of neighbouring words that a text has (not how often) go into a logistic regression; its
penalty is chosen on the training part, by five folds. It prints the % of held-out texts that are right. Needs scikit-learn.
SPDX-License-Identifier: MIT
"""
import argparse
from pathlib import Path
from typing import List, Tuple

import study

TASKS = ("mr", "subj", "trec")
PENALTIES = [10 ** (k / 2) for k in range(-4, 5)]  # scikit-learn's C, 0.01 to 100


def read(path: Path) -> Tuple[List[str], List[str]]:
    """Labels and texts."""
    if not path.exists():
        study.refuse(study.BAD_INPUT, f"{path}: no such file; studies/recognised.py makes it")
    pairs = [line.split("\t", 1) for line in path.read_text(encoding="utf-8").splitlines()]
    return [label for label, _ in pairs], [text for _, text in pairs]


def accuracy(data: Path) -> float:
    """The share of held-out texts whose label is found."""
    try:
        from sklearn.feature_extraction.text import CountVectorizer
        from sklearn.linear_model import LogisticRegression
        from sklearn.model_selection import GridSearchCV
        from sklearn.pipeline import make_pipeline
    except ImportError:
        study.refuse(study.BAD_INPUT, "bag_of_words.py needs scikit-learn: pip install scikit-learn")
    words = CountVectorizer(binary=True, ngram_range=(1, 2), token_pattern=r"\S+")
    search = GridSearchCV(make_pipeline(words, LogisticRegression(max_iter=1000)), {"logisticregression__C": PENALTIES}, cv=5)
    labels, texts = read(data / "train.tsv")
    held_labels, held_texts = read(data / "held-out.tsv")
    search.fit(texts, labels)
    return float(search.score(held_texts, held_labels))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sets", metavar="SETS", type=Path)
    given = parser.parse_args()
    there = [task for task in TASKS if (given.sets / task).exists()]
    if not there:
        study.refuse(study.BAD_INPUT, f"{given.sets}: expected a folder {', '.join(TASKS)} of studies/recognised.py, found none")
    cells = [f"{100 * accuracy(given.sets / task):.1f}" for task in there]
    print(f"| model | {' | '.join(there)} |\n|---|{'--:|' * len(there)}\n| bag of words and pairs | {' | '.join(cells)} |")


if __name__ == "__main__":
    study.run(main)
