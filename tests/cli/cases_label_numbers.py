"""Labels that a file says by numbers: which names they mean is noted by eval and finetune; numbers of objects and of tables are one label; fractions
are said to be classes.

SPDX-License-Identifier: MIT
"""
import json

from helpers import DEMO, contains, equal, make_model

TRAIN = ["--steps", "1", "--sequence-tokens", "32", "-t", "1"]


def three(bench):
    """A classifier whose config.json names its labels."""
    return str(bench.shared("three", lambda path: make_model(path, "29", "spm-unigram", 2100, ["neg", "mid", "pos"])))


def numbers(result):
    return [line for line in result.err.splitlines() if "labels are numbers" in line]


def finetune(bench, *words, out="m"):
    return bench.expect(0, "finetune", "sequence", *words, *TRAIN, "-o", out)


def test_training_says_which_names_the_numbers_mean(bench):
    bench.write("num.tsv", "0\tthe sea\n1\tthe store\n")
    said = finetune(bench, DEMO, "--examples", "num.tsv")
    equal(numbers(said), ["note: labels are numbers of the 16 labels from 0: 0 is 'A Tale of Two Cities', 1 is 'Alice's Adventures in Wonderland'; 2 of 16 occur; "
                          "--new-head makes a head for the labels of the file"])
    contains(said.err, "16 labels: A Tale of Two Cities, ")
    bench.write("five.tsv", "".join(f"{k}\ttext {k}\n" for k in (9, 1, 3, 5, 7)))
    contains(numbers(finetune(bench, DEMO, "--examples", "five.tsv", out="m2"))[0], " 1 is ", " ...; 5 of 16 occur")
    names = bench.write("names.tsv", "Dracula\tthe sea\nMoby-Dick\tthe store\n")
    equal(numbers(finetune(bench, DEMO, "--examples", names, out="m3")), [])
    equal(len(numbers(finetune(bench, DEMO, "--examples", names, "--eval", "num.tsv", out="m4"))), 1)
    equal(numbers(finetune(bench, DEMO, "--examples", "num.tsv", "--new-head", out="m5")), [])


def test_eval_says_which_names_the_numbers_mean(bench):
    bench.write("one.tsv", "1\tthe sea\n2\tthe store\n")
    equal(numbers(bench.expect(0, "eval", three(bench), "one.tsv")), ["note: labels are numbers of the 3 labels from 0: 1 is 'mid', 2 is 'pos'; 2 of 3 occur"])
    bench.write("names.tsv", "neg\tthe sea\npos\tthe store\n")
    equal(numbers(bench.expect(0, "eval", three(bench), "names.tsv")), [])
    plain = make_model(bench.path("plain"), "29", "spm-unigram", 2100, ["LABEL_0", "LABEL_1", "LABEL_2"])
    equal(numbers(bench.expect(0, "eval", str(plain), "one.tsv")), [])
    own = make_model(bench.path("own"), "29", "spm-unigram", 2100, ["2", "1", "0"])
    equal(numbers(bench.expect(0, "eval", str(own), "one.tsv")), [])


def test_numbers_of_objects_are_those_of_tables(bench):
    """A label that was learned from an object is known in a table, and no digit is made up."""
    rows = [0.7, 1, 0.1, 2.0]
    bench.write("o.jsonl", "".join(json.dumps({"label": label, "text": f"the sea {k}"}) + "\n" for k, label in enumerate(rows * 2)))
    bench.write("t.tsv", "".join(f"{label}\tthe store\n" for label in ("0.7", "1", "0.1", "2")))
    said = finetune(bench, DEMO, "--examples", "o.jsonl", "--eval", "t.tsv", "--new-head")
    contains(said.err, "4 labels: 0.1, 0.7, 1, 2", "labels are fractions, and each is a class: --labels 1 makes a regression")
    equal(numbers(said), [])
    missing = bench.write("m.tsv", "".join(f"{'nan' if k == 3 else k / 7}\tthe sea {k}\n" for k in range(20)))
    contains(bench.expect(3, "finetune", "sequence", DEMO, "--examples", missing, "--new-head", "--steps", "1", "-o", "never").err,
             "labels are fractions, and each is a class: --labels 1 makes a regression")
    bench.write("whole.tsv", "1\tthe sea\n2\tthe store\n")
    assert "fractions" not in finetune(bench, DEMO, "--examples", "whole.tsv", "--new-head", out="w").err
    assert "fractions" not in finetune(bench, DEMO, "--examples", "t.tsv", "--labels", "1", out="r").err
    contains(bench.expect(3, "eval", "r", "whole.tsv").err, "is a regression", "'deberta classify' gives its values")


READINGS = [  # classes, labels of a file, its classes or None where it is refused, what is said
    ("123", ["0", "1", "2"], [0, 1, 2], "labels are numbers of the 3 labels from 0: 0 is '1', 1 is '2'"),
    ("123", ["1", "2"], [0, 1], "read as names, and all of them could be numbers from 0: '1' is the class of that name, not the class with that number, '2'"),
    ("123", ["1", "3"], [0, 2], ""),
    ("123", ["3", "1", "0"], None, "the label '3' of line 1 is a name, and '0' of line 3 can only be a number: write all labels of the file as names"),
    ("abc", ["1", "c"], None, "the label 'c' of line 2 is a name, and '1' of line 1 can only be a number"),
    ("abc", ["1", "01"], None, "there is no label '01', expected a name or 0 to 2"),
    ("012", ["0", "2", "1"], [0, 2, 1], ""),
]


def test_labels_of_a_file_are_all_names_or_all_numbers(bench):
    """A name of one class that is the number of another is what the other labels of its file are; a mixture is refused."""
    def classes_of(names, *tables):
        result = json.loads(bench.expect(0, "eval", model(names), *tables, "--json").out)
        return dict(zip(result["labels"], map(sum, result["confusion"])))

    def model(names):
        return str(bench.shared(f"classes-{names}", lambda path: make_model(path, "29", "spm-unigram", 2100, list(names))))

    for row, (names, labels, classes, said) in enumerate(READINGS):
        table, code = bench.write(f"{row}.tsv", "".join(f"{label}\tthe sea {k}\n" for k, label in enumerate(labels))), 3 if classes is None else 0
        for result in (bench.expect(code, "eval", model(names), table),
                       bench.expect(code, "finetune", "sequence", model(names), "--examples", table, *TRAIN, "-o", f"m{row}")):
            contains(result.err, said)
            assert said or "note: labels are" not in result.err, result.err
        if classes is not None:
            equal(classes_of(names, table), {name: classes.count(k) for k, name in enumerate(names)}, str(labels))
    # each file for itself: names in one, numbers in the other
    equal(classes_of("123", bench.write("a.tsv", "1\tthe sea\n3\tthe store\n"), bench.write("b.tsv", "1\tthe sea\n0\tthe store\n")), {"1": 2, "2": 1, "3": 1})


SPELLINGS = [  # labels of a new head, exit status, what is said
    (["Pos", "pos", "neg"], 0, "the labels 'Pos' and 'pos' differ only by capitals: they are two classes"),
    (["pos ", "pos", "neg"], 3, "differ only by blanks"),
    (["1", "01", "2"], 3, "the labels '1' and '01' are one number: they would be two classes; write one of them in the file"),
    (["1", "1.0", "2"], 3, "are one number"),
    (["pos", "neg", "pos,neg"], 0, "the label 'pos,neg' is a class of its own: a text has one label"),
    (["Paris, Texas", "London"], 0, ""),
]


def test_spellings_of_one_class(bench):
    for row, (labels, code, said) in enumerate(SPELLINGS):
        table = bench.write(f"{row}.tsv", "".join(f"{label}\tthe sea {k}\n" for k, label in enumerate(labels)))
        result = bench.expect(code, "finetune", "sequence", DEMO, "--examples", table, "--new-head", *TRAIN, "-o", f"m{row}")
        contains(result.err, said)
        assert said or "a class of its own" not in result.err, result.err
    several = bench.write("list.jsonl", '{"label": ["pos", "neg"], "text": "the sea"}\n')
    contains(bench.expect(3, "finetune", "sequence", DEMO, "--examples", several, "--new-head", *TRAIN, "-o", "m").err, '"label" is a list: a text has one label')


def test_a_name_of_several_labels(bench):
    """It says no class, in whatever line, and is refused by what measures and by what trains; numbers say it, and other names as before."""
    folder = str(bench.shared("classes-shared", lambda path: make_model(path, "29", "spm-unigram", 2100, list("aba"))))
    for number, words in enumerate((["eval", folder], ["finetune", "sequence", folder, *TRAIN, "--examples"])):
        more = ["-o", f"shared-{number}"] if number else []
        bad = bench.write("a.tsv", "b\tthe sea\na\tthe store\na\tthe ship\n")
        contains(bench.expect(3, *words, bad, *more).err, "line 2: 'a' is the name of the labels 0 and 2 of this model: write numbers from 0")
        bench.fine(*words, bench.write("b.tsv", "b\tthe sea\nb\tthe store\n"), *more)
    found = json.loads(bench.fine("eval", folder, bench.write("n.tsv", "0\tthe sea\n2\tthe store\n1\ta ship\n"), "--json").out)
    assert 0 <= found["accuracy"] <= 1


def test_controls_of_a_file_steer_no_terminal(bench):
    """What a label or a name holds is printed without them."""
    for label in ("\x1b[31mfoo", "a\x0bb", "\x07"):
        said = bench.expect(3, "eval", DEMO, bench.write("e.tsv", f"{label}\tthe sea\n")).err
        assert not set(said) & set("\x1b\x0b\x07") and "\\x" in said, repr(said)
    folder = str(bench.shared("classes-controls", lambda path: make_model(path, "29", "spm-unigram", 2100, ["\x1b[1m", "b\nc", "d"])))
    said = bench.fine("eval", folder, bench.write("n.tsv", "0\tthe sea\n1\tthe store\n")).err
    assert "\x1b" not in said and said.count("\n") == len(said.splitlines()) and "1 is 'b\\x0ac'" in said, repr(said)
