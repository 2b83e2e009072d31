"""tools/making/book_texts.py on books that are made up here: what stays of Markdown, how groups are cut, and what is refused.

SPDX-License-Identifier: MIT
"""
import hashlib
import subprocess
import sys

from helpers import ROOT, contains, equal

SENTENCE = "One two three four five six seven eight nine ten eleven twelve."  # of 12 words
BOOK = f"""# Title: A Book

## Author: Nobody

-------

## CHAPTER I

"It is _so_," he said--and
went  *away*.

**A HEAD**

> - A list\\.

[Illustration: a ship at sea]

XII

{" ".join([SENTENCE] * 10)}

Last words.
"""


def make(bench, rows, code=0):
    """rows: (into, title, text). (the result, folder)."""
    folder = bench.path("out")
    table = "into\tauthor\ttitle\tyear\twords\tsha256\tpath\n"
    for into, title, text in rows:
        bench.write(f"Nobody - {title}.md", text)
        table += f"{into}\tNobody\t{title}\t1900\t1\t{hashlib.sha256(text.encode()).hexdigest()}\tNobody/{title}.md\n"
    words = [sys.executable, str(ROOT / "tools" / "making" / "book_texts.py"), bench.folder, folder, "--table", bench.write("table.tsv", "# a table\n" + table)]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    equal(done.returncode, code, done.stderr)
    return done, folder


def read(folder, name):
    with open(f"{folder}/{name}", encoding="utf-8") as file:
        return file.read()


def test_rules_and_groups(bench):
    long = "\n\n".join(f"Block {k}." for k in range(400))
    done, folder = make(bench, [("train", "A Book", BOOK), ("held-out", "Another", long), ("train", "Third", "Short.\n")])
    first = "\"It is so,\" he said—and went away."
    # The third block does not fit behind the first two; 84 words hold seven of its sentences.
    equal(read(folder, "train.txt").split("\n\n"),
          [f"{first}\nA list.", " ".join([SENTENCE] * 7), f"{' '.join([SENTENCE] * 3)}\nLast words.", "Short.\n"])
    equal(read(folder, "valid.txt"), "".join(f"Block {k}.\n" for k in range(400)))
    equal(read(folder, "sample.txt"), "".join(f"Block {k}.\n" for k in range(300, 345)))
    contains(done.stdout, hashlib.sha256(read(folder, "train.txt").encode()).hexdigest(), "4 documents")


def test_groups_are_of_all_lengths(bench):
    _, folder = make(bench, [("train", "A Book", " ".join([SENTENCE] * 400))])
    words = [len(group.split()) for group in read(folder, "train.txt").split("\n\n")]
    equal(words[:17], [84, 84, 84, 12] * 3 + [84, 84, 84, 336, 84])
    equal(sum(words), 12 * 400)


def test_other_texts_are_refused(bench):
    make(bench, [("train", "A Book", BOOK)])
    bench.write("Nobody - A Book.md", BOOK + "More.\n")
    words = [sys.executable, str(ROOT / "tools" / "making" / "book_texts.py"), bench.folder, bench.path("new"), "--table", bench.path("table.tsv")]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    equal(done.returncode, 3)
    contains(done.stderr, "Nobody - A Book.md: SHA-256 ", "expected ")
    bench.write("table.tsv", bench.read("table.tsv").replace("A Book", "Missing"))
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    contains(done.stderr, "Nobody/Missing.md", "the book Missing of Nobody")
    assert "new" not in bench.files()
