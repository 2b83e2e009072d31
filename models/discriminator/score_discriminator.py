#!/usr/bin/env python3
"""Scores of models/discriminator, models/tags and models/answers beside their controls, from what the program prints with --json.

    score_discriminator.py build/deberta MODEL [--generator MODEL --best N] [--tags HELD-OUT.tsv TRAIN.tsv] [--questions FILE.jsonl]

Detection: in each sentence of docs/studies/data/sentences.txt, of a book that nobody was trained on, a word in ten is another one: a word
of another sentence, or one that a generator would put there (drawn among its best; if that is the word that stands there, it is not
replaced). A word counts by the highest probability of its pieces. Controls: a word by its rarity, everything replaced (F1), chance (AUC).
Tags come from studies/recognised.py (masc), for the folder tags beside MODEL; the control is what each word is most often in TRAIN.
Questions come from models/answers/make_questions.py, for the folder answers beside MODEL; an answer counts without case, articles and marks.
Controls: another question of the same passage, and a question's first word alone. Intervals have 95 % of 400 draws of sentences, or of
passages (AUC: 200). Needs nothing but Python.

SPDX-License-Identifier: MIT
"""
import argparse
import collections
import itertools
import json
import math
import random
import re
import subprocess
import sys
from pathlib import Path

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


def corrupt(program, sentences, generator, best, draw):
    """{way: [(text, spans of replaced words)]}, both at the same places."""
    places = [[m.span() for m in WORD.finditer(sentence) if draw.random() < 0.1] for sentence in sentences]
    words = [m[0] for sentence in sentences for m in WORD.finditer(sentence)]
    masked = [{"text": changed(sentence, at, ["[MASK]"] * len(at))[0]} for sentence, at in zip(sentences, places)]
    some = [k for k, at in enumerate(places) if at]
    answers = dict(zip(some, ask(program, "fill-mask", generator, [masked[k] for k in some], "--top", str(best))))
    ways = {"a word of another sentence": [], f"a word that {'/'.join(Path(generator).resolve().parts[-2:])} would put there": []}
    for k, (sentence, at) in enumerate(zip(sentences, places)):
        drawn, guessed = [], []
        for number, span in enumerate(at):
            drawn.append(draw.choice(words))
            (candidates,) = answers[k]["masks"][number]["candidates"].values()
            found = [c for c in candidates if c["token"].startswith("▁") and WORD.fullmatch(c["text"].strip())]
            guessed.append(draw.choices([c["text"].strip() for c in found], [c["probability"] for c in found])[0] if found else sentence[slice(*span)])
        for way, others in zip(ways, (drawn, guessed)):
            text, spans = changed(sentence, at, others)
            same = [other == sentence[slice(*span)] for other, span in zip(others, at)]
            ways[way].append((text, [span for span, kept in zip(spans, same) if not kept]))
    return ways


def auc(scores, truth, weights):
    """The chance that a replaced word has a higher score than another; ties count half. A word counts as often as its weight says."""
    below = hits = positive = 0.0
    for _, group in itertools.groupby(sorted(range(len(scores)), key=scores.__getitem__), key=scores.__getitem__):
        mass = [0.0, 0.0]
        for k in group:
            mass[truth[k]] += weights[k]
        hits += mass[1] * (below + mass[0] / 2)
        below += mass[0]
        positive += mass[1]
    return hits / (positive * below)


def interval(groups, measure, seed=1, times=400):
    """"0.812 (0.801 to 0.822)": measure(weight of each item), and 95 % of its values where whole groups are drawn anew."""
    draw, kinds = random.Random(seed), sorted(set(groups))
    found = []
    for _ in range(times):
        drawn = collections.Counter(draw.choices(kinds, k=len(kinds)))
        found.append(measure([drawn[group] for group in groups]))
    found.sort()
    return measure([1] * len(groups)), found[round(0.025 * times)], found[round(0.975 * times) - 1]


def told(numbers, form="{:.3f} ({:.3f} to {:.3f})"):
    return form.format(*numbers)


def share_right(right, groups):
    """% right, with its interval."""
    return told([100 * x for x in interval(groups, lambda w: sum(map(float.__mul__, map(float, right), map(float, w))) / (sum(w) or 1))], "{:.1f} % ({:.1f} to {:.1f})")


def f1(guessed, truth):
    hits = sum(a and b for a, b in zip(guessed, truth))
    return 2 * hits / (sum(guessed) + sum(truth)) if hits else 0.0


def detection(program, model, sentences, generator, best, seed):
    frequency = collections.Counter(m[0].lower() for sentence in sentences for m in WORD.finditer(sentence))
    lines = ["| replaced by | words | replaced | AUC | F1 at 0.5 | AUC of rarity | F1 of all |", "|---|--:|--:|--:|--:|--:|--:|"]
    for way, cases in corrupt(program, sentences, generator, best, random.Random(seed)).items():
        scores, rarity, truth, groups = [], [], [], []
        for number, ((text, spans), answer) in enumerate(zip(cases, ask(program, "detect", model, [{"text": text} for text, _ in cases]))):
            for word in WORD.finditer(text):
                pieces = [t["probability"] for t in answer["tokens"] if t["characters"][0] < word.end() and t["characters"][1] > word.start()]
                scores.append(max(pieces))
                rarity.append(-math.log(frequency[word[0].lower()] or 1))
                truth.append(word.span() in spans)
                groups.append(number)
        share = sum(truth) / len(truth)
        lines.append(f"| {way} | {len(truth)} | {100 * share:.1f} % | {told(interval(groups, lambda w: auc(scores, truth, w), times=200))} "
                     f"| {f1([s > 0.5 for s in scores], truth):.3f} | {auc(rarity, truth, [1] * len(truth)):.3f} | {2 * share / (1 + share):.3f} |")
    print("\n".join(lines))


def blocks_of(path):
    return [[line.split("\t") for line in block.split("\n") if line] for block in Path(path).read_text(encoding="utf-8").split("\n\n") if block.strip()]


def tags(program, model, path, learned):
    """Words whose label is right, beside the label that each word has most often in what was learned from."""
    counts = collections.defaultdict(collections.Counter)
    for word, label in (row for block in blocks_of(learned) for row in block):
        counts[word][label] += 1
        counts[None][label] += 1
    blocks = blocks_of(path)
    texts = [" ".join(word for word, _ in block) for block in blocks]
    right, usual, seen, groups = [], [], [], []
    for number, (block, answer) in enumerate(zip(blocks, ask(program, "tag", model, [{"text": text} for text in texts]))):
        at = 0
        for word, label in block:
            found = [entity["label"] for entity in answer["entities"] if entity["characters"][0] <= at < entity["characters"][1]]
            right.append(found == [label])
            usual.append(counts[word if word in counts else None].most_common(1)[0][0] == label)
            seen.append(word in counts)
            groups.append(number)
            at += len(word) + 1
    print("| words | | models/tags | each word's usual part |\n|---|--:|--:|--:|")
    for kind, chosen in (("all", range(len(right))), ("not in what was learned from", [k for k, known in enumerate(seen) if not known])):
        print(f"| {kind} | {len(chosen)} | {' | '.join(share_right([them[k] for k in chosen], [groups[k] for k in chosen]) for them in (right, usual))} |")


def plain(text):
    """As SQuAD compares answers: without case, articles and marks."""
    return " ".join(re.sub(r"\b(a|an|the)\b", " ", re.sub(r"[^\w\s]", "", text.lower())).split())


def questions(program, model, path):
    cases = [json.loads(line) for line in Path(path).read_text(encoding="utf-8").splitlines()]
    asked = collections.defaultdict(list)
    for case in cases:
        asked[case["passage"]].append(case)
    others = [next((one["question"] for one in asked[case["passage"]] if plain(one["text"]) != plain(case["text"])), None) for case in cases]

    def right(chosen, questions_of):
        lines = [{"question": question, "context": case["context"]} for case, question in zip(chosen, questions_of)]
        return [plain(answer["answers"][0]["text"]) == plain(case["text"]) for answer, case in zip(ask(program, "answer", model, lines, "--top", "1"), chosen)]
    print("| passages of | questions | right | a first word alone | questions with another beside them | their own | the other instead |\n|---|--:|--:|--:|--:|--:|--:|")
    for kind in sorted({case["of"] for case in cases}):
        chosen = [(case, other) for case, other in zip(cases, others) if case["of"] == kind]
        of_two = [(case, other) for case, other in chosen if other]

        def share(pairs, question_of):
            return share_right(right([case for case, _ in pairs], [question_of(*pair) for pair in pairs]), [case["passage"] for case, _ in pairs])
        print(f"| {kind} | {len(chosen)} | {share(chosen, lambda case, _: case['question'])} | {share(chosen, lambda case, _: case['question'].split()[0] + '?')} "
              f"| {len(of_two)} | {share(of_two, lambda case, _: case['question'])} | {share(of_two, lambda _, other: other)} |")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("model")
    parser.add_argument("--generator", default=str(ROOT / "models/demo"), metavar="MODEL", help="who guesses words (models/demo)")
    parser.add_argument("--best", type=int, default=20, metavar="N", help="among how many guesses one is drawn (%(default)s)")
    parser.add_argument("--tags", nargs=2, metavar="TSV")
    parser.add_argument("--questions", metavar="JSONL")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    sentences = (ROOT / "docs/studies/data/sentences.txt").read_text(encoding="utf-8").splitlines()
    detection(options.program, options.model, sentences, options.generator, options.best, options.seed)
    if options.tags:
        tags(options.program, str(Path(options.model).resolve().parent / "tags"), *options.tags)
    if options.questions:
        questions(options.program, str(Path(options.model).resolve().parent / "answers"), options.questions)


if __name__ == "__main__":
    main()
