#!/usr/bin/env python3
"""Scores of models/discriminator beside their controls, from what the program prints with --json.

    models/discriminator/score_discriminator.py build/deberta MODEL [--tags FILE.tsv --questions FILE.jsonl] [--seed 1]

Detection: in each sentence of docs/studies/data/sentences.txt, of a book that nobody was trained on, a word in ten is another one:
a word of another sentence, or one that models/demo would put there (drawn among its twenty best; if that is the word that stands there,
it is not replaced). A word counts by the highest probability of its pieces. Controls: a word by its rarity, everything replaced (F1),
chance (AUC). Files of tags and questions come from models/discriminator/make_examples.py. Controls: one label for all, the first person
of the context, the question without its words ("Who?"). Needs nothing but Python.

SPDX-License-Identifier: MIT
"""
import argparse
import collections
import json
import math
import random
import re
import subprocess
import sys
from pathlib import Path

import make_examples

ROOT = Path(__file__).resolve().parents[2]

WORD = re.compile(r"[A-Za-z]+(?:['’][a-z]+)?")


def refuse(code, sentence):
    print(f"score_discriminator.py: {sentence}", file=sys.stderr)
    sys.exit(code)


def ask(program, command, model, lines, *words):
    """What the program says of each line, a text or an object."""
    objects = "".join(json.dumps(line) + "\n" for line in lines)
    try:
        done = subprocess.run([program, command, model, "--file", "-", "--jsonl", "--json", "-q", *words], input=objects, capture_output=True, text=True)
    except OSError as reason:
        refuse(4, f"{program}: cannot be run: {reason.strerror}: build this tree with ./build.sh")
    if done.returncode:
        refuse(done.returncode if done.returncode > 0 else 4, done.stderr.strip() or f"{program} {command} ended with {done.returncode}")
    return [json.loads(line) for line in done.stdout.splitlines()]


def changed(sentence, at, word):
    """The sentence with other words at spans, and their new spans."""
    spans, parts, end = [], [], 0
    for (begin, stop), other in zip(at, word):
        parts += [sentence[end:begin], other]
        start = sum(map(len, parts)) - len(other)
        spans.append((start, start + len(other)))
        end = stop
    return "".join(parts) + sentence[end:], spans


def corrupt(program, sentences, draw):
    """{way: [(text, spans of replaced words)]}, both at the same places."""
    places = [[m.span() for m in WORD.finditer(sentence) if draw.random() < 0.1] for sentence in sentences]
    words = [m[0] for sentence in sentences for m in WORD.finditer(sentence)]
    masked = [{"text": changed(sentence, at, ["[MASK]"] * len(at))[0]} for sentence, at in zip(sentences, places)]
    some = [k for k, at in enumerate(places) if at]
    answers = dict(zip(some, ask(program, "fill-mask", str(ROOT / "models/demo"), [masked[k] for k in some], "--top", "20")))
    ways = {"a word of another sentence": [], "a word that models/demo would put there": []}
    for k, (sentence, at) in enumerate(zip(sentences, places)):
        drawn, guessed = [], []
        for number, span in enumerate(at):
            drawn.append(draw.choice(words))
            found = [c for c in answers[k]["masks"][number]["candidates"]["emd"] if c["token"].startswith("▁") and WORD.fullmatch(c["text"].strip())]
            guessed.append(draw.choices([c["text"].strip() for c in found], [c["probability"] for c in found])[0] if found else sentence[slice(*span)])
        for way, others in zip(ways, (drawn, guessed)):
            text, spans = changed(sentence, at, others)
            same = [other == sentence[slice(*span)] for other, span in zip(others, at)]
            ways[way].append((text, [span for span, kept in zip(spans, same) if not kept]))
    return ways


def auc(scores, truth):
    """The chance that a replaced word has a higher score than another; ties count half."""
    ranks, order, k = {}, sorted(range(len(scores)), key=scores.__getitem__), 0
    while k < len(order):
        end = k
        while end < len(order) and scores[order[end]] == scores[order[k]]:
            end += 1
        for i in order[k:end]:
            ranks[i] = (k + end - 1) / 2 + 1
        k = end
    positive = sum(truth)
    return (sum(ranks[i] for i in range(len(scores)) if truth[i]) - positive * (positive + 1) / 2) / (positive * (len(scores) - positive))


def f1(guessed, truth):
    hits = sum(a and b for a, b in zip(guessed, truth))
    return 2 * hits / (sum(guessed) + sum(truth)) if hits else 0.0


def detection(program, model, sentences, seed):
    frequency = collections.Counter(m[0].lower() for sentence in sentences for m in WORD.finditer(sentence))
    lines = ["| replaced by | words | replaced | AUC | F1 at 0.5 | AUC of rarity | F1 of all |", "|---|--:|--:|--:|--:|--:|--:|"]
    for way, cases in corrupt(program, sentences, random.Random(seed)).items():
        scores, rarity, truth = [], [], []
        for (text, spans), answer in zip(cases, ask(program, "detect", model, [{"text": text} for text, _ in cases])):
            for word in WORD.finditer(text):
                pieces = [t["probability"] for t in answer["tokens"] if t["characters"][0] < word.end() and t["characters"][1] > word.start()]
                scores.append(max(pieces))
                rarity.append(-math.log(frequency[word[0].lower()] or 1))
                truth.append(word.span() in spans)
        share = sum(truth) / len(truth)
        lines.append(f"| {way} | {len(truth)} | {100 * share:.1f} % | {auc(scores, truth):.3f} | {f1([s > 0.5 for s in scores], truth):.3f} "
                     f"| {auc(rarity, truth):.3f} | {2 * share / (1 + share):.3f} |")
    print("\n".join(lines))


def spans_of(labels):
    """{(begin, end, kind)} of B-, I- labels."""
    found, begin = set(), None
    for k, label in enumerate([*labels, "O"]):
        if begin is not None and not (label.startswith("I-") and label[2:] == labels[begin][2:]):
            found.add((begin, k, labels[begin][2:]))
            begin = None
        if label.startswith("B-"):
            begin = k
    return found


def tags(program, model, path):
    blocks = [[line.split("\t") for line in block.split("\n") if line] for block in Path(path).read_text(encoding="utf-8").split("\n\n") if block.strip()]
    texts = [" ".join(word for word, _ in block) for block in blocks]
    right, words, counts, hits = 0, 0, collections.Counter(), collections.defaultdict(collections.Counter)
    for block, text, answer in zip(blocks, texts, ask(program, "tag", model, [{"text": text} for text in texts])):
        guessed = ["O"] * len(block)
        begins, at = [], 0
        for word, _ in block:
            begins.append(at)
            at += len(word) + 1
        for entity in answer["entities"]:
            inside = [k for k, begin in enumerate(begins) if entity["characters"][0] <= begin < entity["characters"][1]]
            for k in inside:
                guessed[k] = ("B-" if k == inside[0] else "I-") + entity["label"]
        right += sum(a[2:] == b[2:] for a, (_, b) in zip(guessed, block))
        words += len(block)
        counts.update(label[2:] for _, label in block)
        there, said = spans_of([label for _, label in block]), spans_of(guessed)
        for kind in ("SPEECH", "SPEAKER"):
            hits[kind].update({"there": sum(s[2] == kind for s in there), "said": sum(s[2] == kind for s in said),
                               "both": sum(s[2] == kind for s in there & said)})
    print(f"kind of a word right: {100 * right / words:.1f} % of {words}; the most frequent for all: {100 * max(counts.values()) / words:.1f} %")
    for kind, c in hits.items():
        print(f"{kind}: {c['there']} spans, F1 of whole spans {2 * c['both'] / max(1, c['there'] + c['said']):.3f}")


def questions(program, model, path):
    cases = [json.loads(line) for line in Path(path).read_text(encoding="utf-8").splitlines()]
    people = collections.Counter(case["text"] for case in cases)

    def exact(lines):
        return sum(answer["answers"][0]["text"].strip() == case["text"] for answer, case in zip(ask(program, "answer", model, lines, "--top", "1"), cases))
    first = sum(next((m[0] for m in make_examples.SOMEBODY.finditer(case["context"]) if m[0] in people), "") == case["text"] for case in cases)
    asked = exact([{"question": case["question"], "context": case["context"]} for case in cases])
    silent = exact([{"question": "Who?", "context": case["context"]} for case in cases])
    share = 100 / len(cases)
    print(f"{len(cases)} questions: the answer word for word {asked * share:.1f} %; without the question's words {silent * share:.1f} %; "
          f"the first person of the context {first * share:.1f} %")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("model")
    parser.add_argument("--tags")
    parser.add_argument("--questions")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    sentences = (ROOT / "docs/studies/data/sentences.txt").read_text(encoding="utf-8").splitlines()
    detection(options.program, options.model, sentences, options.seed)
    if options.tags:
        tags(options.program, options.model, options.tags)
    if options.questions:
        questions(options.program, options.model, options.questions)


if __name__ == "__main__":
    main()
