#!/usr/bin/env python3
"""Makes train.txt and valid.txt, which models/demo, its recipe and the studies read, from books of Project Gutenberg.

    make_corpus.py make SOURCES OUT [--other-editions] [--like CORPUS]    OUT: train.txt, valid.txt, README.md
    make_corpus.py check CORPUS                                           are these the files that the table names?
    make_corpus.py split CORPUS --text FILE [--train TSV --held-out TSV]  what the recipes train on

SOURCES holds the plain text of every book under the name that tools/making/corpus.tsv has for it. Nothing is downloaded. The rules:

1. A book is what lies between its lines "*** START OF TH..." and "*** END OF TH...".
2. Blank lines end a paragraph. Within it all white space becomes single spaces; then "--" becomes a dash, and "_" goes.
3. A paragraph is left out if it has fewer than 20 characters, if less than three fifths of them are letters, or if it holds a
   word of LEFT_OUT, in capitals or not. Those words find notes of the site, and also some prose ("pretext").
4. The books follow one another as in the table, a paragraph a line.

A source of another edition is named, with what differs; so is a book whose text differs, and then nothing is written unless
--other-editions allows it. --like names the first paragraph of each book that a finished corpus has otherwise. README.md
counts the paragraphs of each book, and split divides train.txt by it: an empty line stands between books in --text, each
paragraph follows its title in --train. With --held-out every 20th paragraph is there only.

Exit codes: 0 done, 1 a text differs from the table, 2 wrong usage, 3 bad input, 4 system. SPDX-License-Identifier: MIT
"""
import argparse
import collections
import hashlib
import os
import re
import sys
from pathlib import Path
from typing import NamedTuple

TABLE = Path(__file__).resolve().with_name("corpus.tsv")
FILES = ("train.txt", "valid.txt")
COLUMNS = ("into", "ebook", "title", "source", "encoding", "source_sha256", "paragraphs", "text_sha256")
ENCODINGS = ("utf-8", "iso-8859-1", "ascii")
WHOLE = "all"  # replaces the ebook in the rows of the results
START, END = (re.compile(rf"^\*\*\* ?{word} OF TH[^*]*\*\*\*", re.MULTILINE) for word in ("START", "END"))
SHORTEST = 20
LEFT_OUT = ("gutenberg", "illustration", "produced by", "distributed", "etext", "transcriber")
HELD_OUT_EVERY, HELD_OUT_AT = 20, 7
DIFFERS, BAD_INPUT, SYSTEM = 1, 3, 4


class Refused(Exception):
    """Unusable input; one sentence a line."""


class Row(NamedTuple):
    """A line of the table: a book, or (ebook WHOLE) a result."""
    into: str
    ebook: str
    title: str
    source: str
    encoding: str
    source_sha256: str
    paragraphs: int
    text_sha256: str


class Book(NamedTuple):
    """A line of the README.md next to a corpus."""
    ebook: str
    title: str
    paragraphs: int


def digest(content):
    return hashlib.sha256(content).hexdigest()


def text_of(paragraphs):
    return "".join(paragraph + "\n" for paragraph in paragraphs).encode()


def read(path, what):
    try:
        return path.read_bytes()
    except OSError as error:
        raise Refused(f"{path}: {error.strerror or error}; expected {what}") from error


def decode(content, encoding, path):
    try:
        text = content.decode(encoding).removeprefix("\ufeff")
    except UnicodeDecodeError as error:
        raise Refused(f"{path}: byte {error.start} is 0x{content[error.start]:02x}, which is no {encoding}; expected a text in {encoding}") from error
    if encoding == "iso-8859-1" and not content.isascii():  # any byte is valid in it, so other encodings are tested as well
        try:
            content.decode("utf-8")
        except UnicodeDecodeError:
            return text
        raise Refused(f"{path}: the text is in utf-8; expected {encoding}")
    return text


# ------------------------------------------------------------------------------------------------ tables


def table_of(path=TABLE):
    """Returns (rows of books in order, {file: row of the result})."""
    books, results = [], {}
    for number, line in enumerate(decode(read(path, "the table of the books"), "utf-8", path).split("\n"), 1):
        cells = line.split("\t")
        if not line or line.startswith("#") or tuple(cells) == COLUMNS:
            continue
        if len(cells) != len(COLUMNS) or cells[0] not in FILES or not cells[6].isdecimal():
            raise Refused(f"{path}, line {number}: found {line[:80]!r}; expected {len(COLUMNS)} columns: {', '.join(COLUMNS)}")
        row = Row(*cells[:6], int(cells[6]), cells[7])
        if row.ebook == WHOLE:
            results[row.into] = row
        elif row.encoding in ENCODINGS:
            books.append(row)
        else:
            raise Refused(f"{path}, line {number}: the encoding is {row.encoding!r}; expected one of {', '.join(ENCODINGS)}")
    if set(results) != set(FILES):
        raise Refused(f"{path}: no row {WHOLE!r} of {' and '.join(sorted(set(FILES) - set(results)))}")
    return books, results


def books_of(corpus, into="train.txt"):
    """Returns the books of that file, in its order, from the table in README.md."""
    text = decode(read(Path(corpus) / "README.md", "the README.md that counts the paragraphs of each book"), "utf-8", corpus)
    rows = [[cell.strip() for cell in line.split("|")] for line in text.split("\n")]
    return [Book(row[1], row[2], int(row[3])) for row in rows if len(row) == 7 and row[5] == into and row[3].isdecimal()]


def texts_of(corpus, into):
    """Returns [(book, its paragraphs)] for a file of a finished corpus."""
    path, books = Path(corpus) / into, books_of(corpus, into)
    lines = decode(read(path, "a paragraph a line"), "utf-8", path).split("\n")
    lines = lines[:-1] if lines[-1] == "" else lines
    counted = sum(book.paragraphs for book in books)
    if counted != len(lines):
        raise Refused(f"{path}: {len(lines)} paragraphs; README.md beside it counts {counted}")
    rest = iter(lines)
    return [(book, [next(rest) for _ in range(book.paragraphs)]) for book in books]


# ------------------------------------------------------------------------------------------------ rules


def body_of(text, path):
    """Returns the text between the two markers."""
    first, last = list(START.finditer(text)), list(END.finditer(text))
    for word, found in (("START", first), ("END", last)):
        if len(found) != 1:
            raise Refused(f"{path}: {len(found) or 'no'} lines '*** {word} OF TH...'; expected one; is the file whole?")
    if first[0].end() > last[0].start():
        raise Refused(f"{path}: '*** END OF TH...' stands before '*** START OF TH...'; expected it after the text")
    return text[first[0].end():last[0].start()]


def is_kept(paragraph):
    letters = sum(map(str.isalpha, paragraph))
    return len(paragraph) >= SHORTEST and 5 * letters >= 3 * len(paragraph) and not any(word in paragraph.lower() for word in LEFT_OUT)


def paragraphs_of(content, encoding, path):
    pieces = re.split(r"\n\s*\n", body_of(decode(content, encoding, path).replace("\r\n", "\n").replace("\r", "\n"), path))
    return list(filter(is_kept, (" ".join(piece.split()).replace("--", "—").replace("_", "") for piece in pieces)))


# ------------------------------------------------------------------------------------------------ make


def other_edition(content, row):
    """Describes how a source differs, as far as its bytes show."""
    with_lf = content.replace(b"\r\n", b"\n")
    ways = {"only in its line ends: LF, not CR LF": with_lf.replace(b"\n", b"\r\n"), "only in its line ends: CR LF, not LF": with_lf,
            "only in a byte order mark that it lacks": b"\xef\xbb\xbf" + content, "only in a byte order mark": content.removeprefix(b"\xef\xbb\xbf")}
    return next((way for way, same in ways.items() if digest(same) == row.source_sha256), "in more than line ends")


def book_of(folder, row, say):
    """Returns the paragraphs of a book, and whether they are those of the table."""
    path = folder / row.source
    content = read(path, f"the text of ebook {row.ebook}, {row.title}")
    paragraphs = paragraphs_of(content, row.encoding, path)
    same = digest(text_of(paragraphs)) == row.text_sha256
    if digest(content) != row.source_sha256:
        say(f"{path}: SHA-256 {digest(content)}, expected {row.source_sha256}: another edition, which differs {other_edition(content, row)}"
            + ("; its paragraphs are the same" if same else ""))
    if not same:
        say(f"{path}: {len(paragraphs)} paragraphs with SHA-256 {digest(text_of(paragraphs))}, expected {row.paragraphs} with {row.text_sha256}")
    return paragraphs, same


def compare(path, found, expected, say):
    """Reports where a book begins to differ from a finished corpus."""
    if found == expected:
        return
    gone, new = (sum((collections.Counter(a) - collections.Counter(b)).values()) for a, b in ((expected, found), (found, expected)))
    at = next((k for k, (a, b) in enumerate(zip(found, expected)) if a != b), min(len(found), len(expected)))
    mine, theirs = ((paragraphs + ["(no more)"])[at] for paragraphs in (found, expected))
    begin = max(0, len(os.path.commonprefix([mine, theirs])) - 20)
    say(f"{path}: paragraphs of the corpus that are missing: {gone}, new ones: {new}; paragraph {at + 1} from character {begin + 1}: "
        f"{mine[begin:begin + 60]!r}, expected {theirs[begin:begin + 60]!r}")


def readme_of(made):
    """Returns the README.md of a corpus, which books_of reads."""
    rows = "".join(f"| {row.ebook} | {row.title} | {len(paragraphs)} | {sum(map(len, paragraphs))} | {row.into} |\n" for row, paragraphs in made)
    return ("# English prose, public domain\n\nA paragraph a line, UTF-8. tools/making/make_corpus.py made the files from books of Project Gutenberg.\n\n"
            "| ebook | title | paragraphs | characters | file |\n|--:|---|--:|--:|---|\n" + rows).encode()


def write(contents):
    """Writes {path: bytes}, each file complete or not at all."""
    parts = {path: path.with_name(path.name + ".part") for path in contents}
    try:
        for path, part in parts.items():
            path.parent.mkdir(parents=True, exist_ok=True)
            part.write_bytes(contents[path])
        for path, part in parts.items():
            os.replace(part, path)
    finally:
        for part in parts.values():
            part.unlink(missing_ok=True)


def make(options, say):
    books, results = table_of(options.table)
    problems, made, differs = [], [], False
    known = {book.ebook: text for into in FILES for book, text in texts_of(options.like, into)} if options.like else {}
    for row in books:
        try:
            paragraphs, same = book_of(options.sources, row, say)
        except Refused as problem:
            problems.append(str(problem))
            continue
        made.append((row, paragraphs))
        differs |= not same
        if row.ebook in known:
            compare(options.sources / row.source, paragraphs, known[row.ebook], say)
    if problems:
        raise Refused("\n".join(problems))
    contents = {name: b"".join(text_of(paragraphs) for row, paragraphs in made if row.into == name) for name in FILES}
    differs |= any(digest(content) != results[name].text_sha256 for name, content in contents.items())
    if differs and not options.other_editions:
        say("nothing is written: the text is another one (--other-editions writes it nonetheless)")
        return DIFFERS
    write({options.out / name: content for name, content in contents.items()} | {options.out / "README.md": readme_of(made)})
    for name, content in contents.items():
        state = "as in the table" if digest(content) == results[name].text_sha256 else f"expected {results[name].text_sha256}"
        print(f"{options.out / name}: {content.count(10)} paragraphs, {len(content)} bytes, SHA-256 {digest(content)}, {state}")
    return 0


# ------------------------------------------------------------------------------------------------ check and split


def check(options, say):
    books, results = table_of(options.table)
    by_number, differs = {row.ebook: row for row in books}, False
    for name in FILES:
        content = read(options.corpus / name, "a file of the corpus")
        if digest(content) == results[name].text_sha256:
            print(f"{options.corpus / name}: SHA-256 {digest(content)}, as in the table")
            continue
        differs = True
        say(f"{options.corpus / name}: SHA-256 {digest(content)}, expected {results[name].text_sha256}; {len(content)} bytes")
        for book, paragraphs in texts_of(options.corpus, name):
            row = by_number.get(book.ebook)
            if row is None or digest(text_of(paragraphs)) != row.text_sha256:
                expected = f"expected {row.paragraphs} with {row.text_sha256}" if row else "which is not in the table"
                say(f"{options.corpus / name}: ebook {book.ebook}: {len(paragraphs)} paragraphs with SHA-256 {digest(text_of(paragraphs))}, {expected}")
    return DIFFERS if differs else 0


def is_held_out(index):
    """Returns true if the paragraph with this index, from 0, in train.txt is held out."""
    return index % HELD_OUT_EVERY == HELD_OUT_AT


def split(options, _):
    text, train, held_out, index = [], [], [], 0
    for number, (book, paragraphs) in enumerate(texts_of(options.corpus, "train.txt")):
        text += [""] if number else []
        for paragraph in paragraphs:
            held = options.held_out and is_held_out(index)
            (held_out if held else train).append(f"{book.title}\t{paragraph}")
            text += [] if held else [paragraph]
            index += 1
    write({path: text_of(lines) for path, lines in ((options.text, text), (options.train, train), (options.held_out, held_out)) if path})
    return 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    making, checking, splitting = (commands.add_parser(name) for name in ("make", "check", "split"))
    making.add_argument("sources", type=Path)
    making.add_argument("out", type=Path)
    making.add_argument("--other-editions", action="store_true", help="write another text than the table's, too")
    making.add_argument("--like", type=Path, metavar="CORPUS", help="a finished corpus to compare paragraphs with")
    for one in (making, checking):
        one.add_argument("--table", type=Path, default=TABLE, help="of other books (%(default)s)")
    for one in (checking, splitting):
        one.add_argument("corpus", type=Path)
    splitting.add_argument("--text", type=Path, required=True)
    splitting.add_argument("--train", type=Path)
    splitting.add_argument("--held-out", type=Path)
    options = parser.parse_args()

    def say(sentences):
        for sentence in sentences.split("\n"):
            print(f"make_corpus.py: {sentence}", file=sys.stderr)
    try:
        return {"make": make, "check": check, "split": split}[options.command](options, say)
    except Refused as problem:
        say(str(problem))
        return BAD_INPUT
    except OSError as error:
        say(f"{error.filename}: {error.strerror or error}")
        return SYSTEM


if __name__ == "__main__":
    sys.exit(main())
