"""`deberta eval` against the answers of `classify` and the definitions of precision, recall and F1; bad lines; outputs.

SPDX-License-Identifier: MIT
"""
import json
import os

from helpers import DEMO, GOLDEN, ROOT, contains, equal, has_figures, near

BOOKS = ROOT / "docs" / "studies" / "data" / "books.tsv"


def run(bench, *arguments, code=0):
    return bench.expect(code, *arguments).strict()


def scores(bench, *arguments):
    return bench.json("eval", DEMO, *arguments)


def near_or_none(found, expected):
    """What has nothing to divide by is not 0."""
    if found is None or expected is None:
        equal(found, expected)
    else:
        near(found, expected, 5e-8)


def check_scores(found, pairs, names):
    """pairs: (right, answered) for every text."""
    equal(found["labels"], names)
    equal(found["texts"], len(pairs))
    hits = sum(a == b for a, b in pairs)
    near(found["accuracy"], hits / len(pairs), 5e-8)
    low, high = found["accuracy_interval"]
    assert low < hits / len(pairs) < high
    f1 = []
    for k, row in enumerate(found["classes"]):
        right, answered, both = sum(r == k for r, _ in pairs), sum(a == k for _, a in pairs), sum(r == a == k for r, a in pairs)
        equal((row["label"], row["index"], row["texts"], row["answers"], row["hits"]), (names[k], k, right, answered, both))
        for key, part, whole in (("precision", both, answered), ("recall", both, right), ("f1", 2 * both, right + answered)):
            near_or_none(row[key], part / whole if whole else None)
        f1 += [row["f1"]] * (right + answered > 0)
        for other in range(len(names)):
            equal(found["confusion"][k][other], pairs.count((k, other)))
    near(found["macro_f1"], sum(f1) / len(f1), 5e-8)
    near(found["majority"], max(sum(r == k for r, _ in pairs) for k in range(len(names))) / len(pairs), 5e-8)


def test_against_classify(bench):
    with open(BOOKS, encoding="utf-8") as file:
        lines = [line.rstrip("\n").split("\t") for line in file][1::9]
    texts = bench.write("texts.txt", "".join(text + "\n" for _, text in lines))
    answers = [json.loads(line)["labels"][0] for line in run(bench, "classify", DEMO, "--file", texts, "--json")[0].splitlines()]
    label_of = bench.load(os.path.join(DEMO, "config.json"))["label2id"]
    names = sorted(label_of, key=label_of.get)
    pairs = [(label_of[label], answer["index"]) for (label, _), answer in zip(lines, answers)]
    assert 0 < sum(a != b for a, b in pairs) < len(pairs) / 2
    by_name = scores(bench, bench.write("a.tsv", "label\ttext\n" + "".join(f"{n}\t{t}\n" for n, t in lines)))
    check_scores(by_name, pairs, names)
    equal(by_name, scores(bench, bench.write("b.tsv", "\n".join(f"{label_of[n]}\t{t}" for n, t in lines))))
    halves = [bench.write(f"{k}.tsv", "".join(f"{n}\t{t}\n" for n, t in lines[k::2])) for k in (0, 1)]
    equal(by_name["confusion"], scores(bench, *halves)["confusion"])


def test_pairs(bench):
    words = ["Who are you?", "The Count bowed.", "I saw the whale."]
    answer = json.loads(run(bench, "classify", DEMO, "--text", words[0], "--pair", words[2], "--json")[0])["labels"][0]["index"]
    found = scores(bench, bench.write("p.tsv", f"{answer}\t{words[0]}\t{words[2]}\n"))
    equal((found["texts"], found["hits"]), (1, 1))


def test_byte_order_mark(bench):
    bench.write("plain.tsv", "label\ttext\n0\ta\n1\tb\n")
    bench.write("marked.tsv", "\ufefflabel\ttext\n0\ta\n1\tb\n")
    equal(run(bench, "eval", DEMO, "marked.tsv")[0], run(bench, "eval", DEMO, "plain.tsv")[0])


def test_bad_lines(bench):
    bad = "7\tCall me Ishmael.\nNobody\tx\nno tab\n16\ty\n2\t\n1\ta\tb\tc\n\nlabel\tx\n7\tThe whale!\n"
    out, err = run(bench, "eval", DEMO, bench.write("bad.tsv", bad), "--json", code=3)
    found = json.loads(out)
    equal((found["texts"], found["bad"]), (2, 6))
    for line, word in ((2, "'Nobody'"), (3, "no tab"), (4, "'16'"), (5, "empty"), (6, "more fields"), (8, "'label'")):
        contains(err, f"bad.tsv, line {line}: ")
        contains(err.split(f"line {line}: ")[1].split("\n")[0], word)
    swapped = bench.write("swapped.tsv", "text\tlabel\nCall me Ishmael.\t7\n")
    contains(run(bench, "eval", DEMO, swapped, code=3)[1], "swapped.tsv, line 1: the header begins with 'text', expected 'label', then the text")
    swapped = bench.write("capital.tsv", "Text\tLabel\nCall me Ishmael.\t7\n")
    contains(run(bench, "eval", DEMO, swapped, code=3)[1], "capital.tsv, line 1: the header begins with 'Text', expected 'label', then the text")
    for header in ("Label\tText", "LABEL\tTEXT"):
        equal(scores(bench, bench.write("capital.tsv", f"{header}\n0\ta\n1\tb\n")), scores(bench, bench.write("small.tsv", "label\ttext\n0\ta\n1\tb\n")), header)
    equal(scores(bench, bench.write("word.tsv", "7\tlabel\n"))["texts"], 1)  # a number is no name of a column
    contains(run(bench, "eval", DEMO, bench.write("none.tsv", "x\n"), code=3)[1], "none of the lines")
    bench.run("eval", DEMO, "none.tsv", "-o", "s.json", "-o", "s.svg")
    assert not {"s.json", "s.svg"} & set(bench.files()), bench.files()


def test_wrong_kind_of_file(bench):
    """Every line of it is bad: a few are named, the others counted, and the last sentence says what that means."""
    lines = run(bench, "eval", DEMO, bench.write("novel.txt", "It was a dark night.\n" * 30), code=3)[1].splitlines()
    equal(len(lines), 12)
    contains(lines[9], "novel.txt, line 10: ")
    contains(lines[10], "20 more lines cannot be used")
    measure = "`deberta finetune choice|sequence|token|qa MODEL --examples F --eval F --steps 1 --learning-rate 0 -o FOLDER` measures"
    contains(lines[11], "none of the lines can be used", measure)
    contains(run(bench, "eval", os.path.join(os.path.dirname(DEMO), "answers"), "novel.txt", code=3)[1], "does not hold the head 'sequence'", measure)


def test_labels_that_occur(bench):
    """The confusions that people see are of labels that occur; JSON has all."""
    table = bench.write("two.tsv", "7\tCall me Ishmael.\n7\tThe whale!\n")
    lines = run(bench, "eval", DEMO, table)[0].splitlines()
    begin = next(k for k, line in enumerate(lines) if line.startswith("right (rows)")) + 2
    found = scores(bench, table)["confusion"]
    used = [k for k in range(16) if sum(found[k]) or sum(row[k] for row in found)]
    assert 7 in used and len(used) < 16
    equal([line.split() for line in lines[begin:] if line.split()],
          [["right", *map(str, used)]] + [[str(k), *(str(found[k][j] or ".") for j in used)] for k in used])
    equal(len(found), 16)
    begin = next(k for k, line in enumerate(lines) if line.startswith("index")) + 1
    equal([line.split()[0] for line in lines[begin:lines.index("", begin)]], [str(k) for k in used])
    equal(len(run(bench, "eval", DEMO, table, "--format", "csv")[0].splitlines()), 17)


def test_columns_as_text(bench):
    """Labelled lines where texts are expected are said to be read with their labels."""
    table = bench.write("labelled.tsv", "7\tCall me Ishmael.\n")
    contains(bench.expect(0, "classify", DEMO, "--file", table).err, "labelled.tsv: a line is one text here")
    contains(bench.expect(0, "eval", DEMO, table).err, "labels are numbers of the 16 labels from 0: 7 is 'Moby-Dick'; 1 of 16 occur")


def test_misuse(bench):
    good = bench.write("good.tsv", "7\tCall me Ishmael.\n")
    contains(run(bench, "eval", DEMO, "no.tsv", code=3)[1], "No such file")
    contains(run(bench, "eval", DEMO, code=2)[1], "expected MODEL FILE.tsv")
    contains(run(bench, "eval", DEMO, bench.write("x.jsonl", '{"text": "x"}\n'), code=3)[1], "x.jsonl, line 1", '"label"')
    contains(run(bench, "eval", DEMO, good, "--format", "x", code=2)[1], "--format")
    assert bench.run("eval", GOLDEN / "33-v3-mlm-emd", good).code != 0


def test_outputs(bench):
    good = bench.write("good.tsv", "7\tCall me Ishmael.\n3\tThe Count bowed.\n")
    text = run(bench, "eval", DEMO, good)[0]
    for word in ("accuracy ", "macro F1", "precision", "Moby-Dick", "right (rows)"):
        contains(text, word)
    equal(run(bench, "eval", DEMO, good, "-o", "scores.txt")[0], "")
    equal(bench.read("scores.txt"), text)
    assert run(bench, "eval", DEMO, good, "--format", "csv")[0].startswith("index,label,texts,answers")
    contains(run(bench, "eval", DEMO, good, "--format", "latex")[0], "\\bottomrule")
    if has_figures(bench):
        run(bench, "eval", DEMO, good, "-o", "scores.svg")
        contains(bench.read("scores.svg"), "<svg")
