"""tools/making/make_corpus.py on two made-up books: the rules, and a planted fault of each kind. Its committed table, against models/demo.

SPDX-License-Identifier: MIT
"""
import csv
import json
import os
import pathlib
import shutil
import subprocess
import sys

from helpers import DEMO, ROOT, contains, equal

sys.path.insert(0, str(ROOT / "tools" / "making"))
import make_corpus

SEA = """\ufeffThe Project Gutenberg EBook of The Sea

*** START OF THIS PROJECT GUTENBERG EBOOK THE
SEA ***

Produced by somebody who typed it

THE SEA

  The captain _looked_ at the
sea--and said   nothing.
\x20
No. 7, 1,234 or 5,678 (9)

“I know the café,” said the mate of the ship.

[Illustration: the captain, who looks]

It was on a pretext that he went away.

*** END OF THIS PROJECT GUTENBERG EBOOK THE SEA ***

Its licence has many more words than these.
"""
HILL = SEA.replace("SEA", "HILL").replace("\ufeff", "").replace("“", '"').replace("”", '"').replace("captain _", "teacher _")
TRAIN = ["The captain looked at the sea—and said nothing.", "“I know the café,” said the mate of the ship."]
VALID = ["The teacher looked at the sea—and said nothing.", '"I know the café," said the mate of the ship.']
SOURCES = {"1-0.txt": SEA.replace("\n", "\r\n").encode(), "2-8.txt": HILL.replace("\n", "\r\n").encode("iso-8859-1")}


def lines(paragraphs):
    return "".join(paragraph + "\n" for paragraph in paragraphs).encode()


def prepare(bench, **changed):
    """SOURCES, with other bytes (or None: no file) of a name, and the table of the right ones."""
    books = [("train.txt", "1", "The Sea", "1-0.txt", "utf-8", TRAIN), ("valid.txt", "2", "The Hill", "2-8.txt", "iso-8859-1", VALID)]
    rows = [make_corpus.COLUMNS]
    rows += [(into, ebook, title, name, encoding, make_corpus.digest(SOURCES[name]), "2", make_corpus.digest(lines(text)))
             for into, ebook, title, name, encoding, text in books]
    rows += [(into, "all", "-", "-", "utf-8", "-", "2", make_corpus.digest(lines(text))) for into, *_, text in books]
    bench.write("table.tsv", "# made up\n" + "".join("\t".join(row) + "\n" for row in rows))
    shutil.rmtree(bench.path("sources"), ignore_errors=True)
    os.mkdir(bench.path("sources"))
    for name, content in {**SOURCES, **changed}.items():
        if content is not None:
            bench.write(f"sources/{name}", content)


def run(bench, code, *words):
    table = [] if words[:1] == ("split",) or "--table" in words else ["--table", "table.tsv"]
    done = subprocess.run([sys.executable, "-B", str(ROOT / "tools" / "making" / "make_corpus.py"), *words, *table], cwd=bench.folder, capture_output=True,
                          text=True, check=False)
    equal(done.returncode, code, done.stderr)
    assert "Traceback" not in done.stderr, done.stderr
    return done.stdout + done.stderr


def made(bench, out="out"):
    return [pathlib.Path(bench.path(f"{out}/{name}")).read_bytes() for name in make_corpus.FILES]


def test_rules(bench):
    """Markers, paragraphs, white space, dashes and what is left out; what README.md counts is what split divides by."""
    prepare(bench)
    said = run(bench, 0, "make", "sources", "out")
    contains(said, "out/train.txt: 2 paragraphs", "as in the table")
    assert "expected" not in said and "another edition" not in said, said
    equal(made(bench), [lines(TRAIN), lines(VALID)])
    equal(sorted(os.listdir(bench.path("out"))), ["README.md", "train.txt", "valid.txt"])
    contains(bench.read("out/README.md"), f"| 1 | The Sea | 2 | {sum(map(len, TRAIN))} | train.txt |\n")
    contains(run(bench, 0, "check", "out"), "out/valid.txt: SHA-256", "as in the table")
    run(bench, 0, "split", "out", "--text", "text", "--train", "train")
    equal((bench.read("text"), bench.read("train")), (lines(TRAIN).decode(), "".join(f"The Sea\t{one}\n" for one in TRAIN)))


def test_paragraphs_of_the_repository_stay(bench):
    """The rules leave the 535 paragraphs that the studies hold as they are."""
    with open(ROOT / "docs" / "studies" / "data" / "books.tsv", encoding="utf-8", newline="") as file:
        paragraphs = [row[1] for row in csv.reader(file, delimiter="\t", quoting=csv.QUOTE_NONE)][1:]
    text = "\n\n".join(["*** START OF THE TEXT ***", *paragraphs, "*** END OF THE TEXT ***"])
    equal(make_corpus.paragraphs_of(text.encode(), "utf-8", "books.tsv"), paragraphs)
    equal(len(paragraphs), 535)


def test_other_editions_with_the_same_text(bench):
    """They are named, with what differs, and the corpus is made."""
    sea, hill = SOURCES["1-0.txt"], SOURCES["2-8.txt"]
    for name, content, words in (("1-0.txt", sea.replace(b"\r\n", b"\n"), "only in its line ends: LF, not CR LF"),
                                 ("1-0.txt", sea[3:], "only in a byte order mark that it lacks"),
                                 ("2-8.txt", hill.replace(b"EBook of", b"eBook of"), "in more than line ends"),
                                 ("2-8.txt", hill.replace(b"*** START", b"***START"), "in more than line ends")):
        prepare(bench, **{name: content})
        said = run(bench, 0, "make", "sources", "out")
        contains(said, f"sources/{name}: SHA-256 {make_corpus.digest(content)}, expected {make_corpus.digest(SOURCES[name])}", words, "its paragraphs are the same")
        equal(made(bench), [lines(TRAIN), lines(VALID)], name)
        shutil.rmtree(bench.path("out"))


def test_another_text(bench):
    """Exit 1 and nothing written; --like names the paragraph; --other-editions writes."""
    prepare(bench)
    run(bench, 0, "make", "sources", "right")
    prepare(bench, **{"1-0.txt": SOURCES["1-0.txt"].replace(b"the mate", b"the cook")})
    said = run(bench, 1, "make", "sources", "out", "--like", "right")
    other = [TRAIN[0], TRAIN[1].replace("mate", "cook")]
    contains(said, f"1-0.txt: 2 paragraphs with SHA-256 {make_corpus.digest(lines(other))}, expected 2 with {make_corpus.digest(lines(TRAIN))}",
             "corpus that are missing: 1, new ones: 1; paragraph 2 from character 9: 'the café,” said the cook of the ship.', expected 'the café,” said the mate",
             "nothing is written")
    assert not os.path.exists(bench.path("out")) and "2-8.txt" not in said, said
    run(bench, 0, "make", "sources", "out", "--other-editions")
    equal(made(bench), [lines(other), lines(VALID)])
    contains(run(bench, 1, "check", "out"), "out/train.txt: SHA-256", "ebook 1: 2 paragraphs with SHA-256", "out/valid.txt: SHA-256")


FAULTS = {
    "no end": ("1-0.txt", lambda text: text.replace(b"*** END", b"END"), ["1-0.txt: no lines '*** END OF TH...'; expected one; is the file whole?"]),
    "no start": ("2-8.txt", lambda text: text.replace(b"*** START", b"START"), ["2-8.txt: no lines '*** START OF TH...'"]),
    "cut off": ("2-8.txt", lambda text: text[:300], ["2-8.txt: no lines '*** END OF TH...'"]),
    "two books": ("1-0.txt", lambda text: text + text[3:], ["1-0.txt: 2 lines '*** START OF TH...'"]),
    "turned round": ("1-0.txt", lambda text: text.replace(b"START", b"new").replace(b"END", b"START").replace(b"new", b"END"), ["stands before '*** START"]),
    "latin for utf-8": ("1-0.txt", lambda text: text.replace("é".encode(), b"\xe9"), ["1-0.txt: byte ", "is 0xe9, which is no utf-8; expected a text in utf-8"]),
    "utf-8 for latin": ("2-8.txt", lambda text: text.replace(b"\xe9", "é".encode()), ["2-8.txt: the text is in utf-8; expected iso-8859-1"]),
    "no file": ("2-8.txt", lambda text: None, ["2-8.txt: No such file or directory; expected the text of ebook 2, The Hill"]),
    "empty": ("1-0.txt", lambda text: b"", ["1-0.txt: no lines '*** START OF TH...'"]),
}


def test_faults(bench):
    """A sentence that names the file, exit 3, and what was there before stays."""
    prepare(bench)
    run(bench, 0, "make", "sources", "out")
    before = made(bench)
    for fault, (name, change, words) in FAULTS.items():
        changed = change(SOURCES[name])
        assert changed != SOURCES[name], fault
        prepare(bench, **{name: changed})
        contains(run(bench, 3, "make", "sources", "out", "--other-editions"), *words)
        equal((made(bench), len(os.listdir(bench.path("out")))), (before, 3), fault)
    prepare(bench, **{name: None for name in SOURCES})
    contains(run(bench, 3, "make", "sources", "out"), "sources/1-0.txt: No such file", "sources/2-8.txt: No such file")
    contains(run(bench, 3, "make", "nowhere", "out"), "nowhere/1-0.txt: No such file")


def test_other_faults(bench):
    """Tables that cannot be read, a corpus that its README.md does not count, no room for OUT, wrong use."""
    prepare(bench)
    for content, words in (("train.txt\t1\n", "table.tsv, line 1: found 'train.txt\\t1'; expected 8 columns"), ("", "no row 'all' of train.txt and valid.txt"),
                           ("train.txt\t1\tA\ta\tebcdic\t-\t2\t-\n", "line 1: the encoding is 'ebcdic'; expected one of utf-8")):
        bench.write("other.tsv", content)
        contains(run(bench, 3, "make", "sources", "out", "--table", "other.tsv"), words.replace("table.tsv", "other.tsv"))
    contains(run(bench, 3, "check", "nowhere"), "nowhere/train.txt: No such file")
    run(bench, 0, "make", "sources", "out")
    bench.write("out/train.txt", lines(TRAIN + TRAIN))
    contains(run(bench, 3, "split", "out", "--text", "text"), "out/train.txt: 4 paragraphs; README.md beside it counts 2")
    contains(run(bench, 3, "check", "out"), "out/train.txt: SHA-256", "README.md beside it counts 2")
    bench.write("file", "")
    contains(run(bench, 4, "make", "sources", "file"), "file")
    contains(run(bench, 4, "make", "sources", "file/out"), "file/out")
    for words in ((), ("make", "sources"), ("split", "out"), ("make", "sources", "out", "--quick")):
        contains(run(bench, 2, *words), "usage")


def test_held_out(bench):
    """Every 20th paragraph of train.txt, counted through its books, and an empty line between books."""
    text = [f"This is the paragraph {k}." for k in range(50)]
    os.mkdir(bench.path("corpus"))
    bench.write("corpus/README.md", "| ebook | title | paragraphs | characters | file |\n| 1 | The Sea | 25 | 1 | train.txt |\n| 2 | The Hill | 25 | 1 | train.txt |\n")
    bench.write("corpus/train.txt", lines(text))
    run(bench, 0, "split", "corpus", "--text", "text", "--train", "train", "--held-out", "held")
    equal(bench.read("held"), "".join(f"The {'Sea' if k < 25 else 'Hill'}\t{text[k]}\n" for k in (7, 27, 47)))
    kept = [k for k in range(50) if k % 20 != 7]
    equal(bench.read("text"), "".join(("\n" if k == 25 else "") + text[k] + "\n" for k in kept))
    equal(bench.read("train"), "".join(f"The {'Sea' if k < 25 else 'Hill'}\t{text[k]}\n" for k in kept))


def test_committed_table(bench):
    """The titles are the labels of models/demo in their order, and the books of a file have its paragraphs."""
    books, results = make_corpus.table_of()
    labels = json.loads((pathlib.Path(DEMO) / "config.json").read_text(encoding="utf-8"))["id2label"]
    equal([row.title for row in books if row.into == "train.txt"], [labels[str(k)] for k in range(len(labels))])
    for name, result in results.items():
        equal(sum(row.paragraphs for row in books if row.into == name), result.paragraphs, name)
    assert all(len(row.source_sha256) == len(row.text_sha256) == 64 for row in books), books
    equal(len({row.source for row in books}), 17)
