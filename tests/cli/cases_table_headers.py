"""What the first line of a table says: its columns are read as they are called, or refused, or named in a note; tabs that are part of a
text are said.

SPDX-License-Identifier: MIT
"""
import json

from helpers import DEMO, check_message, contains, equal, make_model

STEP = ["--steps", "1", "--sequence-tokens", "32", "-t", "1"]
TRAIN = [*STEP, "-q"]


def small(bench):
    return str(bench.shared("headers", lambda path: make_model(path, "29", "spm-unigram", 3001)))


def scores(bench, name, lines=""):
    found = bench.json("eval", DEMO, name, stdin=lines.encode())
    return {key: value for key, value in found.items() if key not in ("command", "files", "made")}


def test_columns_by_their_names(bench):
    """A third column under a name that means no second text is not read as one; a text in the place of another is none."""
    lines = "".join(f"{k}\ta new store {k}\tthe sea\n" for k in range(4))
    bench.write("none.tsv", lines)
    plain = scores(bench, "none.tsv")
    for header in ("label\ttext\tpair", "Label\tsentence1\tsentence2", "LABEL\tpremise\thypothesis", "label\ttext\ttext_pair", "label\tquery\tpassage"):
        bench.write("table.tsv", header + "\r\n" + lines)
        equal(scores(bench, "table.tsv"), plain, header)
    for header, name in (("label\ttext\tsource", "source"), ("label\ttext\tid", "id"), ("label\tid\ttext", "id"), ("label\ttext\ttext", "text"),
                         ("label\tpair\ttext", "pair"), ("label\ttext\t", ""), ("label\ttext\tpair\tsource", "source"), ("label\ttext\tlabel", "label")):
        bench.write("table.tsv", header + "\n" + lines)
        check_message(bench.run("eval", DEMO, "table.tsv", "--json"), 3, ["table.tsv: the header", f"'{name}'"])
        check_message(bench.run("finetune", "sequence", DEMO, "--examples", "table.tsv", "--new-head", *TRAIN, "-o", "m"), 3, [f"'{name}'"])
    bench.write("table.tsv", "label\treview\n" + "".join(f"{k}\ta new store\n" for k in range(4)))
    contains(bench.fine("eval", DEMO, "table.tsv").err, "the column 'review' is read as \"text\"")
    bench.write("table.tsv", '"label"\t"text"\n' + lines)
    check_message(bench.run("eval", DEMO, "table.tsv"), 3, ["quotation marks"])


def test_headers_of_labels(bench):
    """A header is followed or refused, not trained as a class; a class of such a name, with a sentence behind it, is one."""
    words = ["finetune", "sequence", small(bench), "--new-head", *STEP, "--examples", "t.tsv"]
    body = "land\tthe old road\nsea\tthe old ship\n"
    for k, (header, code, said) in enumerate((("labels\ttext", 0, "2 labels: land, sea"), ("Label\tsentence", 0, "2 labels: land, sea"),
                                              ("category\theadline", 3, "line 1, 'category' and 'headline', looks like a header"), ("topic\tbody", 3, "looks like a header"),
                                              ("class\ttext", 3, "'class' and 'text', looks"), ("target\ttext\tpair", 3, "looks like a header"),
                                              ("polarity\ttext", 3, "looks like a header"), ("y\tsentence", 3, "looks like a header"),
                                              ("land\tthe sea\nlabel\ttext", 3, "t.tsv, line 2: a header within the table"),
                                              ("topic\tThe topic of the day.", 0, "3 labels: land, sea, topic"))):
        bench.write("t.tsv", f"{header}\n{body}")
        result = bench.run(*words, "-o", f"m{k}")
        equal((result.code, header), (code, header))
        contains(result.err + result.out, said)


def test_headers_of_tags(bench):
    words = ["finetune", "token", small(bench), "--new-head", *STEP, "--examples", "t.tsv"]
    body = "the\tDET\nsea\tNOUN\n\n"
    for k, header in enumerate(("word\tlabel", "Word\tpos", "form\tUPOS", "token\tpos_tag", "Sentence\tTag")):
        bench.write("t.tsv", f"{header}\n{body}")
        contains(bench.fine(*words, "-o", f"m{k}").err, "2 labels: DET, NOUN")
        bench.write("t.tsv", f"{header}\n{body}{header}\n{body}")
        contains(bench.expect(3, *words, "-o", f"n{k}").err, "t.tsv, line 5: a header within the table")
    bench.write("t.tsv", f"word\tNOUN\n{body}")
    contains(bench.fine(*words, "-o", "m").err, "2 labels: DET, NOUN")


def test_columns_of_choices(bench):
    lines = "".join(f"{k % 2}\ta new store\topened\tsank {k}\n" for k in range(4))
    log = []
    for header in ("", "label\ttext\tchoice0\tchoice1\n", "label\tpremise\tending0\tending1\n", "label\ttext\tA\tB\n"):
        bench.write("table.tsv", header + lines)
        bench.fine("finetune", "choice", small(bench), "--examples", "table.tsv", "--new-head", *TRAIN, "-o", f"m{len(log)}")
        log.append(json.loads(bench.read(f"m{len(log)}/log.jsonl"))["loss"])
    assert len(set(log)) == 1, log
    bench.write("table.tsv", "label\ttext\tid\tchoice0\n" + lines)
    check_message(bench.run("finetune", "choice", small(bench), "--examples", "table.tsv", "--new-head", *TRAIN, "-o", "m"), 3, ["'id'", '"choice"'])
    bench.write("table.tsv", "label\ttext\tright\twrong\n" + lines)
    contains(bench.fine("finetune", "choice", small(bench), "--examples", "table.tsv", "--new-head", "--steps", "1", "--sequence-tokens", "32", "-o", "n").err,
             "'right' is read as", "'wrong' is read as")


def test_columns_of_words(bench):
    lines = "old\tO\ncaptain\tB\n\nsea\tO\n"
    for k, header in enumerate(("", "word\tlabel\n", "Token\tTag\n", "tokens\tner_tags\n\n")):
        bench.write("words.tsv", header + lines)
        bench.fine("finetune", "token", small(bench), "--examples", "words.tsv", "--new-head", *TRAIN, "-o", f"m{k}")
        equal(list(json.loads(bench.read(f"m{k}/config.json"))["id2label"].values()), ["B", "O"], header)


def test_tabs_in_texts_are_said(bench):
    """Labelled lines without a header, in a file of any name and from standard input."""
    lines = "1\ta new store\n0\tthe sea\n"
    bench.write("lines.txt", lines)
    bench.write("indented.txt", "\ta new store\t\n")
    for command in (["tokenize", DEMO], ["classify", DEMO, "--json"]):
        contains(bench.fine(*command, "--file", "lines.txt").err, "lines.txt: its first line has a tab", "`deberta eval`")
        contains(bench.fine(*command, "--file", "-", stdin=lines.encode()).err, "standard input: its first line has a tab")
        equal(bench.fine(*command, "--file", "indented.txt").err, "")
    bench.write("long.txt", "a\tb\n" + "the old captain opened a new store beside the mall, seven red boats\n" * 20)
    contains(bench.fine("train", "tokenizer", "--file", "long.txt", "--vocabulary", "30", "--width", "32", "--depth", "1", "--head-count", "1", "-o", "t").err,
             "long.txt: its first line has a tab")
    equal(scores(bench, "lines.txt"), scores(bench, "-", lines))


PAIRS = [  # lines of a table, exit status, what is said
    ("label\ttext\tpair\n1\ta\tb\n0\tc\n", 3, "line 3: the header names a pair, and the line has none"),
    ("label\ttext\tpair\n1\ta\tb\n0\tc\t\n", 0, ""),
    ("1\ta\tb\n0\tc\n1\td\te\n", 0, "2 of 3 texts have a pair; the others, line 2 is the first, are read alone"),
    ("1\ta\n0\tc\n", 0, ""),
    ("label\ttext\n1\ta\tb\n0\tc\n", 3, "line 2: the header names no third column, and the line has one: name it \"pair\", or leave it out"),
]


def test_rows_without_the_pair_of_others(bench):
    """A row without its second text is refused where the header names it, and elsewhere counted in one note."""
    for row, (lines, code, said) in enumerate(PAIRS):
        table = bench.write("t.tsv", lines)
        for words in (["eval", small(bench), table], ["finetune", "sequence", small(bench), "--examples", table, "--new-head", *TRAIN[:-3], "-t", "1", "-o", f"p{row}"]):
            err = bench.expect(code, *words).err
            contains(err, said)
            assert said or "pair" not in err, err
    objects = bench.write("o.jsonl", '{"text": "a", "pair": "b"}\n{"text": "c"}\n{"text": "d", "pair": null}\n')
    contains(bench.fine("classify", small(bench), "--file", objects).err, "o.jsonl: 1 of 3 texts have a pair; the others, line 2 is the first, are read alone")
