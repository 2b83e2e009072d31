"""Labels that are numbers, and labels that differ by what nobody sees.

SPDX-License-Identifier: MIT
"""
import json

from helpers import DEMO, check_message, equal

TRAIN = ["--steps", "1", "--sequence-tokens", "32", "-q", "-t", "1"]


def classes(bench, name, out):
    bench.fine("finetune", "sequence", DEMO, "--examples", name, "--new-head", *TRAIN, "-o", out)
    return list(json.loads(bench.read(f"{out}/config.json"))["id2label"].values())


def test_class_numbers_are_sorted_as_numbers(bench):
    numbers = [str(k) for k in range(12)]
    bench.write("t.tsv", "".join(f"{k * 5 % 12}\ttext number {k}\n" for k in range(24)))
    equal(classes(bench, "t.tsv", "lines"), numbers)
    bench.write("t.jsonl", "".join(json.dumps({"label": k * 5 % 12 if k % 2 else float(k * 5 % 12), "text": f"text number {k}"}) + "\n" for k in range(24)))
    equal(classes(bench, "t.jsonl", "objects"), numbers)
    equal(*[json.loads(bench.read(f"{out}/log.jsonl"))["loss"] for out in ("lines", "objects")])
    found = bench.json("eval", "lines", "t.tsv")
    for key in ("labels", "classes"):
        if key in found:
            equal([row["label"] if isinstance(row, dict) else row for row in found[key]], numbers)


def test_confusions_of_class_numbers_are_in_their_order(bench):
    """Of label k there are k + 1 texts: rows are in the order of the numbers, for machines and for people."""
    bench.write("t.tsv", "".join(f"{k}\ttext number {k} of {n}\n" for k in range(11, -1, -1) for n in range(k + 1)))
    equal(classes(bench, "t.tsv", "m"), [str(k) for k in range(12)])
    found = bench.json("eval", "m", "t.tsv")
    equal(found["labels"], [str(k) for k in range(12)])
    equal([sum(row) for row in found["confusion"]], list(range(1, 13)))
    equal([(row["index"], row["label"], row["texts"]) for row in found["classes"]], [(k, str(k), k + 1) for k in range(12)])
    lines = bench.fine("eval", "m", "t.tsv").out.splitlines()
    begin = next(k for k, line in enumerate(lines) if line.startswith("right (rows)"))
    equal([word for word in lines[begin + 2].split() if word.isdigit()], [str(k) for k in range(12)])
    equal([int(line.split()[0]) for line in lines[begin + 3:begin + 15]], list(range(12)))


def test_other_numbers_and_names(bench):
    for given, expected in ((["10", "-2", "9", "10"], ["-2", "9", "10"]), (["b", "10", "9", "a"], ["10", "9", "a", "b"]),
                            (["1.5", "10", "9"], ["1.5", "10", "9"])):
        bench.write("t.jsonl", "".join(json.dumps({"label": label, "text": "a store"}) + "\n" for label in given))
        equal(classes(bench, "t.jsonl", "m" + given[0]), expected)


def test_labels_that_differ_by_blanks_are_refused(bench):
    for k, other in enumerate(("pos ", " pos", "pos\u0020\u0020")):
        bench.write("t.jsonl", "".join(json.dumps({"label": label, "text": "a store"}) + "\n" for label in ("pos", "neg", other)))
        result = bench.run("finetune", "sequence", DEMO, "--examples", "t.jsonl", "--new-head", *TRAIN, "-o", f"m{k}")
        check_message(result, 3, ["'pos'", f"'{other}'", "only by blanks"])
