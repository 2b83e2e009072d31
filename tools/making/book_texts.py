#!/usr/bin/env python3
"""Makes train.txt and valid.txt, ten million words of English prose for `deberta train mlm --file`, from books in Markdown.

    book_texts.py SOURCES OUT     OUT: train.txt, valid.txt, sample.txt

SOURCES is a checkout of the repository that tools/making/book_texts.tsv names, or a folder with its files under "AUTHOR - TITLE.md", also in
folders of their own. Nothing is downloaded; each file is compared with the SHA-256 of the table. The rules:

1. Lines between blank lines are a block. A line of signs alone and a head (#, ##, ...) end a block and are left out.
2. Marks of quotation (>) and of lists (-, * and a space) go, so do "_", "*" and the backslash before a sign; white space becomes
   single spaces; then "--" becomes a dash. A block all of which is bold is a head.
3. A block is left out if it has no small letter, or if it speaks of an illustration in brackets.
4. train.txt has a block a line and an empty line, which ends a document, between groups of blocks: a group has at most 84 words, every
   fourth one at most 20, every 32nd one 340, so that a sequence begins where a sentence begins and `--sequence-tokens 512` sees all
   lengths. A block that does not fit begins the next group, and is cut behind the last end of a sentence that fits there.
5. valid.txt has a block a line and an empty line between books, as tools/making/make_corpus.py has it; sample.txt, for measuring now and
   then, the blocks 301 to 345 of each of its books.

Prints words, lines and SHA-256 of each. Exit codes: 0 done, 2 wrong usage, 3 bad input, 4 system. SPDX-License-Identifier: MIT
"""
import argparse
import re
import sys
from pathlib import Path
from typing import NamedTuple

from make_corpus import BAD_INPUT, SYSTEM, Refused, decode, digest, read, text_of, write

TABLE = Path(__file__).resolve().with_suffix(".tsv")
COLUMNS = ("into", "author", "title", "year", "words", "sha256", "path")
PLACES = {"train": "train.txt", "held-out": "valid.txt"}
SAMPLE, SAMPLED = "sample.txt", slice(300, 345)
SIGNS = re.compile(r"[-*_=~ .]+")
MARKS = re.compile(r"\s*(>\s*)*([-*+] )?")
SENTENCE_END = re.compile(r"""(?<=[.!?])["')]*\s+(?=["'(]*[A-Z])""")
MOST_WORDS = 84
OTHERS = ((32, 16, 340), (4, 0, 20))  # (every, which, words): this group of every so many has at most this many words


class Row(NamedTuple):
    """A line of the table: a book."""
    into: str
    author: str
    title: str
    year: str
    words: str
    sha256: str
    path: str


def table_of(path=TABLE):
    lines = decode(read(path, "the table of the books"), "utf-8", path).split("\n")
    cells = [line.split("\t") for line in lines if line and not line.startswith("#")]
    if not cells or tuple(cells[0]) != COLUMNS or any(len(row) != len(COLUMNS) or row[0] not in PLACES for row in cells[1:]):
        raise Refused(f"{path}: expected a head with {', '.join(COLUMNS)} and books that go into {' or '.join(PLACES)}")
    return [Row(*row) for row in cells[1:]]


def source_of(folder, row):
    """Returns the text of a book, after its digest is checked."""
    name = row.path.replace("/", " - ")
    path = next((path for path in (folder / row.path, folder / name, folder / row.into / name) if path.is_file()), folder / row.path)
    content = read(path, f"the book {row.title} of {row.author}, under this name or as {name}")
    if digest(content) != row.sha256:
        raise Refused(f"{path}: SHA-256 {digest(content)}; expected {row.sha256}, the text of the commit that {TABLE.name} names")
    return decode(content, "utf-8", path)


def blocks_of(text):
    """Returns paragraphs of a book in Markdown, without its heads and marks."""
    blocks = [[]]
    for line in text.replace("\r\n", "\n").replace("\r", "\n").split("\n"):
        if not line.strip() or line.startswith("#") or SIGNS.fullmatch(line.strip()):
            blocks.append([])
        else:
            blocks[-1].append(MARKS.sub("", line, count=1))
    return [block for block in map(plain, blocks) if block]


def plain(lines):
    """Joins the lines of a block into one; returns an empty text if the block is left out."""
    text = " ".join(" ".join(lines).split())
    if re.fullmatch(r"\*\*[^*]*\*\*", text) or re.search(r"\[[^\]]*illustration", text, re.IGNORECASE) or not re.search("[a-z]", text):
        return ""
    text = re.sub(r"\\(?=[^\w\s])", "", text)
    return " ".join(re.sub(r"[_*]", "", text).replace("--", "—").split())


def parts_of(block, words):
    """Returns the block, or pieces of at most so many words that end with a sentence; longer sentences stay whole."""
    if len(block.split()) <= words:
        return [block]
    parts, count = [], words + 1
    starts = [0] + [match.end() for match in SENTENCE_END.finditer(block)] + [len(block)]
    for begin, end in zip(starts, starts[1:]):
        sentence = block[begin:end].strip()
        more = len(sentence.split())
        if count + more > words:
            parts.append(sentence)
            count = more
        else:
            parts[-1] += " " + sentence
            count += more
    return parts


def most_words(number):
    """Returns the largest number of words of a group by its number in the book, from 1."""
    return next((words for every, at, words in OTHERS if number % every == at), MOST_WORDS)


def groups_of(blocks):
    """Returns documents: lists of whole blocks, or parts of them, with at most so many words together."""
    groups, count, limit = [[]], 0, most_words(1)
    for block in blocks:
        rest = block
        while rest:
            part = parts_of(rest, limit)[0] if not groups[-1] or len(rest.split()) > MOST_WORDS else rest
            more = len(part.split())
            if groups[-1] and count + more > limit:
                groups.append([])
                count, limit = 0, most_words(len(groups))
                continue
            groups[-1].append(part)
            count += more
            rest = rest[len(part):].strip()
    return groups


def made_of(options):
    """Returns {file: its lines}."""
    made = {name: [] for name in (*PLACES.values(), SAMPLE)}
    problems = []
    for row in table_of(options.table):
        try:
            blocks = blocks_of(source_of(options.sources, row))
        except Refused as problem:
            problems.append(str(problem))
            continue
        groups = [(made["train.txt"], group) for group in groups_of(blocks)] if row.into == "train" else \
            [(made["valid.txt"], blocks), (made[SAMPLE], blocks[SAMPLED])]
        for lines, group in groups:
            lines += ([""] if lines and group else []) + group
    if problems:
        raise Refused("\n".join(problems))
    return made


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sources", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--table", type=Path, default=TABLE, help="of other books (%(default)s)")
    options = parser.parse_args()
    try:
        made = made_of(options)
        contents = {options.out / name: text_of(lines) for name, lines in made.items()}
        write(contents)
    except Refused as problem:
        for sentence in str(problem).split("\n"):
            print(f"book_texts.py: {sentence}", file=sys.stderr)
        return BAD_INPUT
    except OSError as error:
        print(f"book_texts.py: {error.filename}: {error.strerror or error}", file=sys.stderr)
        return SYSTEM
    for (path, content), lines in zip(contents.items(), made.values()):
        print(f"{path}: {sum(len(line.split()) for line in lines)} words, {len(lines)} lines, {lines.count('') + 1} documents, "
              f"SHA-256 {digest(content)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
