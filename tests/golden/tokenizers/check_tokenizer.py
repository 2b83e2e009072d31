#!/usr/bin/env python3
"""Judges another implementation of these tokenizers. Needs Python alone. SPDX-License-Identifier: MIT

    check_tokenizer.py FOLDER COMMAND...      one of the folders beside this file, or all

COMMAND is run once a folder. In its words {folder} becomes the tokenizer's folder, {inputs} a file of JSON lines, which it also gets on standard
input: {"text": ..., "pair": ...}, without "pair" for one segment. It prints a line for each: a JSON list of ids with [CLS] and [SEP], or an object
that has it as "ids". For example the tokenizers of deberta itself:

    check_tokenizer.py all deberta tokenize {folder} --file {inputs} --json

Exit status 1: some ids differ, of which the first five are shown; 2: wrong use, or COMMAND failed or printed another number of lines."""
import json
import subprocess
import sys
import tempfile
from pathlib import Path

HERE, SHOWN = Path(__file__).resolve().parent, 5


def fail(sentence):
    print(f"check_tokenizer.py: {sentence}", file=sys.stderr)
    sys.exit(2)


def ids_of(line, number, name):
    try:
        found = json.loads(line)
        ids = found["ids"] if isinstance(found, dict) else found
        return [int(one) for one in ids]
    except (ValueError, KeyError, TypeError):
        return fail(f"{name}, line {number}: expected a list of ids, or an object with ids, found {line[:80]!r}")


def judge(folder, command):
    """How many lines of the folder are right, and of how many."""
    wanted = [json.loads(line) for line in (folder / "golden.jsonl").read_text(encoding="utf-8").split("\n") if line]
    inputs = "".join(json.dumps({key: row[key] for key in ("text", "pair") if row[key] is not None}) + "\n" for row in wanted)
    with tempfile.TemporaryDirectory() as room:
        path = Path(room, "inputs.jsonl")
        path.write_text(inputs, encoding="utf-8")
        words = [word.replace("{folder}", str(folder)).replace("{inputs}", str(path)) for word in command]
        try:
            done = subprocess.run(words, input=inputs.encode(), stdout=subprocess.PIPE, check=False)
        except OSError as problem:
            fail(f"{words[0]}: {problem.strerror}")
    lines = done.stdout.decode(errors="replace").rstrip("\n").split("\n")
    if done.returncode or len(lines) != len(wanted):
        fail(f"{folder.name}: the command ended with {done.returncode} and printed {len(lines)} lines; expected 0, and {len(wanted)} lines")
    right = 0
    for number, (row, line) in enumerate(zip(wanted, lines), 1):
        ids = ids_of(line, number, folder.name)
        right += ids == row["ids"]
        if ids != row["ids"] and number - right <= SHOWN:
            print(f"{folder.name}, line {number}: {json.dumps(row['text'])[:80]}: expected {row['ids'][:20]}, found {ids[:20]}")
    return right, len(wanted)


def main():
    folders = sorted(path.parent for path in HERE.glob("*/golden.jsonl"))
    if len(sys.argv) < 3 or (sys.argv[1] != "all" and HERE / sys.argv[1] not in folders):
        print(__doc__, file=sys.stderr)
        fail(f"expected one of {', '.join(path.name for path in folders)}, or all, and a command")
    all_right = True
    for folder in folders if sys.argv[1] == "all" else [HERE / sys.argv[1]]:
        right, count = judge(folder, sys.argv[2:])
        print(f"{folder.name}: {right} of {count} lines")
        all_right = all_right and right == count
    sys.exit(0 if all_right else 1)


if __name__ == "__main__":
    main()
