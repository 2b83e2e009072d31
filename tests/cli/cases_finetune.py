"""`finetune --examples` and `train tokenizer`: from files to models that the other commands open, what is measured on the way, and what bad
files are answered with.

SPDX-License-Identifier: MIT
"""
import importlib.util
import json
import os
import random
import re
import shlex
import shutil
import struct
import subprocess
import sys

from cases_train import in_two_parts, narrow
from helpers import DEMO, SAMPLED, contains, equal, has_figures, near, needs_figures, needs_speed, read_tensors

RECIPE = ("--dropout", "0", "--learning-rate", "1e-3", "--steps", "25")
# The other instruction set: under sanitizers plain C takes minutes for what takes seconds, and other tests compare it.
OTHER_ISA = "auto" if SAMPLED else "scalar"
NAMES, PLACES = ["Alice", "Bob", "Carol", "Dave"], ["London", "Paris", "Rome"]


def log_of(bench, folder):
    return bench.objects(f"{folder}/log.jsonl")


def evaluations(bench, folder):
    return [line for line in log_of(bench, folder) if "eval_loss" in line]


def weights(bench, folder, name="model.safetensors"):
    return bench.bytes(f"{folder}/{name}")


def tensor(data, name):
    size = struct.unpack("<Q", data[:8])[0]
    begin, end = json.loads(data[8:8 + size])[name]["data_offsets"]
    return data[8 + size + begin:8 + size + end]


def moods(bench, name, count=200, seed=0):
    draw = random.Random(seed)
    words = {"good": ["good", "great", "fine", "lovely"], "bad": ["bad", "awful", "poor", "ugly"]}
    lines = []
    for _ in range(count):
        label = draw.choice(["good", "bad"])
        lines.append(f"{label}\tThe day was {draw.choice(words[label])} and the {draw.choice(['cat', 'dog'])} was old.")
    return bench.write(name, "label\ttext\n" + "\n".join(lines) + "\n")


def test_held_out_lines_of_one_label_are_noticed(bench):
    def write(name, text):
        bench.write(name, text)

    write("train.tsv", "a\tone fine day\nb\ttwo bad days\na\tx y\nb\tz\n")
    for held_out, noticed in (("a\tone fine day\na\ttwo bad days\n", True), ("a\tone fine day\nb\ttwo bad days\n", False)):
        write("held-out.tsv", held_out)
        done = bench.fine("finetune", "sequence", DEMO, "--examples", "train.tsv", "--eval", "held-out.tsv", "--new-head", "--steps", "1", "--out", f"run{noticed}")
        equal("texts of --eval have one label, 'a'" in done.err, noticed)


def test_held_out_lines_that_are_longer(bench):
    """The memory of steps has room for them, whatever is learned from is short."""
    examples = bench.write("train.tsv", "a\tone\nb\ttwo\n")
    held_out = bench.write("held-out.tsv", "".join(f"{label}\t{'one fine day and two bad days ' * 9}\n" for label in "ab" * 8))
    words = ["finetune", "sequence", DEMO, "--examples", examples, "--eval", held_out, "--new-head", "--batch-sequences", "2"]
    bench.fine(*words, "--steps", "1", "--out", "run")
    equal([line["eval_sequences"] for line in evaluations(bench, "run")], [16])


def test_sequence(bench):
    """Labels from the data, in order; the best model is kept, and eval and classify open what came out."""
    needs_speed(bench)
    train, held_out = moods(bench, "train.tsv"), moods(bench, "dev.tsv", 60, 1)
    words = ["finetune", "sequence", DEMO, *RECIPE, "--examples", train, "--eval", held_out, "--eval-every", "5"]
    bench.fine(*words, "--new-head", "--out", "a")
    config = bench.load("a/config.json")
    equal((config["id2label"], config["architectures"]), ({"0": "bad", "1": "good"}, ["DebertaV2ForSequenceClassification"]))
    found = evaluations(bench, "a")
    equal([line["step"] for line in found], [5, 10, 15, 20, 25])
    assert found[-1]["eval_accuracy"] > 0.95, found
    best = max(found, key=lambda line: line["eval_accuracy"])
    for folder, line in (("a", found[-1]), ("a/best", best)):
        scores = json.loads(bench.fine("eval", folder, held_out, "--json").out)
        near(scores["accuracy"], line["eval_accuracy"], 1e-9, folder)
        near(scores["macro_f1"], line["eval_macro_f1"], 1e-9, folder)
    contains(bench.fine("classify", "a", "--text", "The day was lovely and the cat was old.").out.split("\n")[1], "good")
    bench.fine(*words, "--steps", "5", "--new-head", "--out", "short")
    bench.fine(*words[:-4], "--steps", "5", "--labels", "bad,good", "--threads", "2", "--isa", OTHER_ISA, "--out", "b")
    assert weights(bench, "short") == weights(bench, "b"), "evaluations, threads and instruction sets must not show"
    objects = "".join(json.dumps(dict(zip(("label", "text"), line.split("\t")))) + "\n" for line in open(bench.path("train.tsv"), encoding="utf-8").read().split("\n")[1:-1])
    bench.fine(*words[:5], *RECIPE[4:], "--learning-rate", "1e-3", "--examples", bench.write("train.jsonl", objects), "--new-head", "--out", "c")
    assert weights(bench, "a") == weights(bench, "c"), "lines and objects are the same data"
    equal(bench.fine("eval", "a", "train.jsonl").out, bench.fine("eval", "a", train).out)


def test_patience_and_resume(bench):
    train, held_out = moods(bench, "train.tsv"), moods(bench, "dev.tsv", 20, 1)
    words = ["finetune", "sequence", DEMO, *RECIPE, "--examples", train, "--eval", held_out, "--eval-every", "2", "--new-head"]
    bench.fine(*words, "--patience", "2", "--out", "a")
    found = [line["eval_accuracy"] for line in evaluations(bench, "a")]
    best = found.index(max(found))
    assert len(found) == best + 3 < 12 and os.path.exists(bench.path("a/model.safetensors")), found
    ended = {name: bench.bytes(f"a/{name}") for name in os.listdir(bench.path("a")) if name != "best"}
    said = bench.fine(*words, "--patience", "2", "--resume", "--out", "a").err
    assert "what was trained is in a" in said and "stopped" not in said, said
    contains(bench.expect(3, *words, "--patience", "2", "--resume", "--save-dtype", "f16", "--out", "a").err, "this run is finished, with weights in float32")
    equal({name: bench.bytes(f"a/{name}") for name in ended}, ended)
    bench.fine(*words, "--out", "whole")
    bench.fine(*words, "--resume", "--out", "a")  # without patience it goes on behind its end
    assert weights(bench, "a") == weights(bench, "whole") and len(log_of(bench, "a")) == len(log_of(bench, "whole"))
    rounded = [*words, "--save-dtype", "f16"]
    bench.fine(*rounded, "--patience", "2", "--out", "half")
    assert "half precision" not in bench.fine(*rounded, "--patience", "2", "--resume", "--out", "half").err
    contains(bench.fine(*rounded, "--resume", "--out", "half").err, "note: the run goes on behind an end that wrote its weights in half precision")
    in_two_parts(bench, words, 9, "parts")
    assert weights(bench, "whole") == weights(bench, "parts") and weights(bench, "whole/best") == weights(bench, "parts/best")
    equal(weights(bench, "whole", "config.json"), weights(bench, "parts", "config.json"))
    bench.fine(*words, "--stop-at", "4", "--out", "other")
    for change, said in ((["--labels", "good,bad"], "labels"), (["--sift", "2"], "sift"), (["--freeze", "embeddings"], "freeze"), (["--seed", "9"], "seed")):
        changed = [word for word in words if word != "--new-head"] if change[0] == "--labels" else words
        result = bench.run(*changed, *change, "--resume", "--out", "other")
        assert result.code != 0, result.describe()
        contains(result.err, "is of another run", said)
    bench.append("train.tsv", "good\tOne more.\n")
    contains(bench.run(*words, "--resume", "--out", "other").err, "is of another run", "data")


def test_sift_of_all(bench):
    """Distances begin where both passes agree nearly: 2 log K of classes and choices, near 0 of a regression."""
    needs_speed(bench)
    train = moods(bench, "train.tsv")
    values = bench.write("values.tsv", "".join(f"{n / 2}\t{'very ' * n}good\n" for n in range(5)) * 8)
    tags = bench.write("tags.tsv", "Bob\tB-PER\nwent\tO\n\nRome\tB-PER\nfell\tO\n\n" * 20)
    choices = bench.write("choices.tsv", "1\tShe spoke.\tHe slept.\tShe said so.\n0\tHe slept.\tHe dreamt.\tIt rained.\n" * 20)
    weight, log_of_two = 4, 0.6931471805599453
    for task, file, more, classes in (("sequence", train, ["--new-head"], 2), ("token", tags, ["--new-head"], 2), ("choice", choices, ["--new-head"], 2),
                                      ("sequence", values, ["--labels", "1"], 1)):
        for perturb, isa in (("normalized", OTHER_ISA), ("raw", "auto"))[:1 if SAMPLED and task != "sequence" else 2]:
            out = f"{task}{classes}{perturb}"
            words = ["finetune", task, narrow(bench), *RECIPE[:-1], "3", "--batch-sequences", "8", "--examples", file, *more, "--sift", str(weight), "--perturb", perturb]
            bench.fine(*words, "--out", out)
            first = log_of(bench, out)[0]
            near((first["loss"] - first["loss_clean"]) / weight, 2 * log_of_two if classes == 2 else 0, 0.05, out)
            bench.fine(*words, "--threads", "3", "--isa", isa, "--out", out + "2")
            assert weights(bench, out) == weights(bench, out + "2"), out
    clean = ["finetune", "sequence", narrow(bench), *RECIPE[:-1], "3", "--batch-sequences", "8", "--examples", train, "--new-head", "--out", "plain"]
    bench.fine(*clean)
    assert len({weights(bench, folder) for folder in ("plain", "sequence2raw", "sequence2normalized")}) == 3


def test_tags(bench):
    draw = random.Random(0)
    sentences = [[(draw.choice(NAMES), "B-PER"), (draw.choice(NAMES) + "s", "I-PER"), ("went", "O"), ("to", "O"), (draw.choice(PLACES), "B-LOC"), (".", "O")] for _ in range(120)]
    data = bench.write("tags.tsv", "".join("".join(f"{word}\t{label}\n" for word, label in sentence) + "\n" for sentence in sentences))
    bench.fine("finetune", "token", DEMO, *RECIPE, "--examples", data, "--eval", data, "--new-head", "--out", "a")
    found = evaluations(bench, "a")[-1]
    equal(found["eval_labelled"], 6 * 120)
    assert found["eval_f1"] > 0.95 and found["eval_accuracy"] > 0.95, found
    entities = json.loads(bench.fine("tag", "a", "--text", "Bob Alices went to Rome .", "--json").out)["entities"]
    equal([(e["text"], e["label"]) for e in entities], [("Bob Alices", "PER"), ("Rome", "LOC")])
    objects = "".join(json.dumps({"words": [w for w, _ in s], "labels": [label for _, label in s]}) + "\n" for s in sentences)
    bench.fine("finetune", "token", DEMO, *RECIPE, "--examples", bench.write("tags.jsonl", objects), "--new-head", "--out", "b")
    assert weights(bench, "a") == weights(bench, "b")
    for name, rows in (("n.tsv", "Bob\t1\nwent\t0\n"), ("n.jsonl", '{"words": ["Bob", "went"], "labels": [1, 0.0]}\n')):  # numbers are the labels that a table writes
        bench.fine("finetune", "token", DEMO, "--examples", bench.write(name, rows), "--new-head", "--steps", "1", "--out", f"numbers-{name[2:]}")
    assert weights(bench, "numbers-tsv") == weights(bench, "numbers-jsonl")


def test_choices_and_values(bench):
    draw = random.Random(0)
    lines = []
    for _ in range(120):
        names = draw.sample(NAMES, 3)
        right = draw.randrange(3)
        lines.append(f"{right}\t{names[right]} said so.\t" + "\t".join(f"{name} spoke." for name in names))
    data = bench.write("choices.tsv", "\n".join(lines) + "\n")
    bench.fine("finetune", "choice", DEMO, *RECIPE, "--examples", data, "--eval", data, "--new-head", "--out", "a")
    assert evaluations(bench, "a")[-1]["eval_accuracy"] > 0.9, evaluations(bench, "a")
    answer = json.loads(bench.fine("classify", "a", "--text", "Bob said so.", "--choice", "Dave spoke.", "--choice", "Bob spoke.", "--json").out)
    equal(answer["choices"][0]["choice"], "Bob spoke.")
    values = bench.write("values.tsv", "".join(f"{n / 2}\t{'very ' * n}good\n" for n in range(5)) * 20)
    bench.fine("finetune", "sequence", DEMO, *RECIPE, "--examples", values, "--eval", values, "--labels", "1", "--out", "b")
    found = evaluations(bench, "b")[-1]
    assert found["eval_pearson"] > 0.95, found
    near(found["eval_minus_mse"], -found["eval_loss"], 1e-6)


def test_answers(bench):
    """Long contexts are cut into windows, and answers of all windows compared."""
    draw = random.Random(0)
    objects = []
    for _ in range(120):
        name, place = draw.choice(NAMES), draw.choice(PLACES)
        context = "It was a fine day. " * draw.randrange(12) + f"{name} went to {place} in the morning. " + "The rest stayed. " * draw.randrange(9)
        objects.append({"question": f"Where did {name} go?", "context": context, "text": place, "start": context.index(place)})
    data = bench.write("qa.jsonl", "".join(json.dumps(o) + "\n" for o in objects))
    bench.fine("finetune", "qa", DEMO, *RECIPE, "--examples", data, "--eval", data, "--new-head", "--sequence-tokens", "64", "--out", "a")
    found = evaluations(bench, "a")[-1]
    assert found["eval_sequences"] > 120 and found["eval_f1"] > 0.9 and found["eval_exact_match"] > 0.9, found
    answer = json.loads(bench.fine("answer", "a", "--question", "Where did Bob go?", "--context", "It was a fine day. Bob went to Rome in the morning.", "--json").out)
    equal(answer["answers"][0]["text"], "Rome")


def windows_of(bench, model, record, room):
    """The windows of a question as `finetune qa` cuts them: offset, first token of the context, and logits of begin and end."""
    question, context = (bench.json("tokenize", model, "--text", record[key])["ids"][1:-1] for key in ("question", "context"))
    first, offset, found = len(question) + 2, 0, []
    room -= first + 1
    while True:
        part = context[offset:offset + room]
        bench.fine("encode", model, "--ids", ",".join(map(str, [1, *question, 2, *part, 2])), "--logits", "-o", "window.safetensors")
        values = read_tensors("window.safetensors")[0]["logits.qa"].values
        found.append((offset, first, len(part), values[0::2], values[1::2]))
        if offset + len(part) == len(context):
            return found
        offset += room // 2


def test_no_answer_is_that_of_all_windows(bench):
    """Of contexts without an answer the share for which "no answer" wins, computed anew from the logits of a head that has seen both kinds: its
    least score of all windows counts, as in SQuAD."""
    draw = random.Random(1)
    words = "it was a fine day and the old sailor went to the sea with his daughter in the morning while they stayed at home".split()

    def filler(least, most):
        return " ".join(draw.choices(words, k=draw.randrange(least, most)))

    def answered():
        begin, place = filler(2, 12), draw.choice(("London", "Rome", "Paris"))
        return {"question": "Where did he go?", "context": f"{begin} he went to {place} {filler(2, 8)}", "text": place, "start": len(f"{begin} he went to ")}
    beside = [{"question": "Where did he go?", "context": filler(30, 70), "text": None} for _ in range(8)]
    train = [*(answered() for _ in range(12)), *({"question": "Where did he go?", "context": filler(6, 20), "text": None} for _ in range(6))]
    told, data = bench.write("train.jsonl", "".join(json.dumps(o) + "\n" for o in train)), bench.write("qa.jsonl", "".join(json.dumps(o) + "\n" for o in beside))
    differing = 0
    for steps in (4, 8, 12, 20, 30):
        bench.fine("finetune", "qa", DEMO, "--steps", str(steps), "--learning-rate", "1e-3", "--warmup", "0", "--dropout", "0", "--new-head", "--examples", told,
                   "--eval", data, "--sequence-tokens", "40", "-q", "-o", f"w{steps}")
        right = {min: 0, max: 0}
        for record in beside:
            windows = windows_of(bench, f"w{steps}", record, 40)
            best = max(begins[first + b] + ends[first + e] for _, first, count, begins, ends in windows for b in range(count) for e in range(b, min(count, b + 30)))
            for rule in right:
                right[rule] += best <= rule(begins[0] + ends[0] for _, _, _, begins, ends in windows)
        near(evaluations(bench, f"w{steps}")[-1]["eval_exact_match"], right[min] / len(beside), 1e-9)
        differing += right[min] != right[max]
    assert differing, "no head tells the two rules apart"


def test_answers_that_are_no_text(bench):
    """A list or a number is no answer, and a place without an answer is none: each spoils its line. null and an empty text mean none."""
    context = "the house is in London near the river"
    good = {"question": "where is the house", "context": context, "text": "London", "start": 16}
    command = ["finetune", "qa", os.path.join(os.path.dirname(DEMO), "answers"), "--steps", "1", "--learning-rate", "0"]
    for number, (bad, words) in enumerate([({"text": ["London"], "start": [16]}, 'expected "text" to be the answer'), ({"text": 5, "start": 0}, 'expected "text"'),
                                           ({"text": {"a": 1}}, 'expected "text"'), ({"text": "", "start": 16}, 'found "start" without an answer'),
                                           ({"text": None, "start": 3}, 'found "start" without')]):
        data = bench.write("bad.jsonl", json.dumps(good) + "\n" + json.dumps({**good, **bad}) + "\n")
        contains(bench.expect(3, *command, "--examples", data, "--out", f"bad-{number}").err, "line 2", words)
    none = [{"text": None, "start": None}, {"text": "", "start": 0}, {"text": "", "start": -1}]
    data = bench.write("none.jsonl", "".join(json.dumps({**good, **more}) + "\n" for more in none) + json.dumps(good) + "\n")
    bench.fine(*command, "--examples", data, "--out", "none")


def test_what_a_cut_takes_is_said(bench):
    """How many texts of each option are cut, once; nothing where all fit."""
    words = bench.write("words.tsv", "Tom\tB-PER\nsaw\tO\nAnn\tB-PER\nLee\tI-PER\n\nTom\tB-PER\n")
    tags = ["finetune", "token", DEMO, "--examples", words, "--eval", words, "--new-head", "--steps", "1", "--learning-rate", "0", "--cut"]
    said = bench.fine(*tags, "--sequence-tokens", "4", "-o", "cut").err
    contains(said, *(f"note: --cut: 1 of 2 texts of --{option} are cut to 4 tokens; labels of words behind the cut do not count" for option in ("examples", "eval")))
    equal(evaluations(bench, "cut")[-1]["eval_labelled"], 3)
    assert "note: --cut" not in bench.fine(*tags, "--sequence-tokens", "16", "-o", "whole").err
    lines = bench.write("lines.tsv", "1\tthe old sea and the old ship\n0\tthe\n")
    contains(bench.fine("finetune", "sequence", DEMO, "--examples", lines, "--new-head", "--steps", "1", "--learning-rate", "0", "--cut", "--sequence-tokens", "5", "-o", "s").err,
             "note: --cut: 1 of 2 texts of --examples are cut to 5 tokens\n")


def test_freeze(bench):
    train = moods(bench, "train.tsv")
    bench.fine("finetune", "sequence", narrow(bench), *RECIPE, "--examples", train, "--new-head", "--freeze", "embeddings", "--freeze", "layers:0", "--out", "a")
    bench.fine("finetune", "sequence", narrow(bench), *RECIPE[:-1], "1", "--warmup", "1", "--examples", train, "--new-head", "--out", "start")  # the first rate is 0
    changed, begun = weights(bench, "a"), weights(bench, "start")
    for name, same in (("deberta.embeddings.word_embeddings.weight", True), ("deberta.encoder.layer.0.output.dense.weight", True),
                       ("deberta.encoder.layer.1.output.dense.weight", False), ("classifier.weight", False)):
        assert (tensor(changed, name) == tensor(begun, name)) == same, name
    result = bench.run("finetune", "sequence", narrow(bench), *RECIPE, "--examples", train, "--new-head", "--freeze", "nothing*", "--out", "x")
    assert result.code != 0
    contains(result.err, "'nothing*'")


def bad(bench, task, name, text, code, *words, more=("--new-head",)):
    result = bench.run("finetune", task, DEMO, *RECIPE, "--examples", bench.write(name, text), *more, "--out", "never")
    equal(result.code, code, result.describe())
    contains(result.err, *words)
    assert result.err.strip().count("\n") == (code == 2) and not os.path.exists(bench.path("never")), result.describe()


def test_bad_lines(bench):
    long_text = "word " * 600
    bad(bench, "sequence", "a.tsv", "x\tone\nno tab here\n", 3, "a.tsv, line 2", "no tab")
    bad(bench, "sequence", "a.tsv", "x\tone\ny\t\n", 3, "a.tsv, line 2", "the text is empty")
    bad(bench, "sequence", "a.tsv", "x\tone\n\ttwo\n", 3, "a.tsv, line 2", "the label is empty")
    bad(bench, "sequence", "a.tsv", "x\ta\tb\tc\n", 3, "a.tsv, line 1", "more fields")
    bad(bench, "sequence", "a.tsv", "x\tone\nx\ttwo\n", 3, "one label, 'x'")
    bad(bench, "sequence", "a.tsv", "text\tlabel\none\tx\ntwo\ty\n", 3, "a.tsv, line 1", "begins with 'text', expected 'label'")
    bad(bench, "sequence", "a.tsv", "\n\n", 3, "a.tsv holds no example")
    bad(bench, "sequence", "a.tsv", f"x\tone\ny\t{long_text}\n", 3, "a.tsv, line 2", "at most 512", "--cut")
    bad(bench, "sequence", "a.tsv", f"x\tone\ny\t{long_text}\tpair\n", 3, "a.tsv, line 2", "the pair has")
    bad(bench, "sequence", "a.tsv", "x\tone\nz\ttwo\n", 3, "a.tsv, line 2", "no label 'z'", "0 to 1", more=("--labels", "x,y"))
    bad(bench, "sequence", "a.tsv", "3\tone\n", 3, "a.tsv, line 1", "no label '3'", "0 to 2", more=("--labels", "3"))
    bad(bench, "sequence", "a.tsv", "1.5\tone\nmuch\ttwo\n", 3, "a.tsv, line 2", "expected a number", more=("--labels", "1"))
    bad(bench, "sequence", "a.tsv", "nan\tone\n", 3, "a.tsv, line 1", "expected a number", more=("--labels", "1"))
    bad(bench, "sequence", "a.jsonl", '{"label": "x", "text": "one"}\n{"text": "two"}\n', 3, "a.jsonl, line 2", '"label"')
    bad(bench, "sequence", "a.tsv", "x\tone\n", 3, "no label 'x'", "--new-head makes a head for the labels of the file", more=())  # the labels of the model
    bad(bench, "sequence", "a.tsv", "x\tone\n", 3, "'x' is there twice", more=("--labels", "x,x"))
    bad(bench, "sequence", "a.tsv", "1\tone\n", 3, "--labels: 'x' is one name, and classes are two at least; 1 makes a regression", more=("--labels", "x"))
    bad(bench, "token", "a.tsv", "word\tO\n", 3, "--labels: 'O' is one name, and classes are two at least\n", more=("--labels", "O"))
    bad(bench, "token", "a.tsv", "word\tO\n", 3, "--labels: expected 2 to ", more=("--labels", "1"))
    bad(bench, "sequence", "a.tsv", "x\tone\n", 2, "--new-head", more=("--labels", "x,y", "--new-head"))
    bad(bench, "token", "a.tsv", "word\tO\nword\n", 3, "a.tsv, line 2", "no tab")
    bad(bench, "token", "a.tsv", "word\tO\n\tO\n", 3, "a.tsv, line 2", "the word is empty")
    bad(bench, "token", "a.tsv", "\n".join("word\tO" for _ in range(600)), 3, "a.tsv, line 1", "at most 512")
    bad(bench, "token", "a.tsv", "word\tO\n", 3, "has no head for this task", "--new-head", more=())
    bad(bench, "token", "a.jsonl", '{"words": ["a"], "labels": []}\n', 3, "a.jsonl, line 1", "same length")
    bad(bench, "choice", "a.tsv", "0\ttext\tone\ttwo\n2\ttext\tone\ttwo\n", 3, "a.tsv, line 2", "0 to 1")
    bad(bench, "choice", "a.tsv", "0\ttext\tone\ttwo\n0\ttext\tone\ttwo\tthree\n", 3, "a.tsv, line 2", "expected 2 as before")
    bad(bench, "token", "a.jsonl", '{"words": ["a"], "labels": [null]}\n', 3, "a.jsonl, line 1", "the label of word 0 is neither")
    bad(bench, "choice", "a.tsv", "0\ttext\tone\ttwo\n", 3, "16 labels, a choice needs one score", "--new-head", more=())
    bad(bench, "choice", "a.tsv", "0\ttext\tone\n", 3, "a.tsv, line 1", "two or more choices")
    good = {"question": "Who?", "context": "Bob came.", "text": "Bob", "start": 0}
    for change, words in (({"start": 1}, ["'Bob' at character 1"]), ({"start": "0"}, ['"start"']), ({"context": " ", "text": ""}, ["no tokens"]), ({"question": ""}, ["question is empty"]), ({"question": " "}, ["the question holds no tokens"]),
                          ({"question": "Who? " * 300}, ["no room for its context"])):
        bad(bench, "qa", "a.jsonl", json.dumps(good) + "\n" + json.dumps({**good, **change}) + "\n", 3, "a.jsonl, line 2", *words, more=("--new-head", "--sequence-tokens", "64"))
    for other in ({"answer": "Bob"}, {"answers": {"text": ["Bob"], "answer_start": [0]}}, {"start": 0}):  # none of these is "no answer"
        bad(bench, "qa", "a.jsonl", json.dumps({"question": "Who?", "context": "Bob came.", **other}) + "\n", 3, "a.jsonl, line 1", f'found "{list(other)[0]}", expected "text"', more=("--new-head",))


def test_end_of_a_run(bench):
    """The labels at the beginning; at the end losses, the measure and the best step, for people and as JSON: those of the log."""
    train = bench.write("train.tsv", "bad\ta poor film\ngood\ta fine film\n" * 4)
    run = ("finetune", "sequence", DEMO, "--examples", train, "--eval", train, "--eval-every", "1", "--new-head", "--steps", "3", "--batch-sequences", "4", "--dropout", "0")
    said = bench.fine(*run, "--out", "a").err
    log = bench.objects("a/log.jsonl")
    steps, evals = [line for line in log if "loss" in line], [line for line in log if "eval_loss" in line]
    best = max(evals, key=lambda line: line["eval_accuracy"])  # of equal ones the first
    contains(said, "2 labels: bad, good", "log: a/log.jsonl", f"loss of the last step {steps[-1]['loss']:.4f}", f"held-out loss {evals[-1]['eval_loss']:.4f}",
             f"the best is step {best['step']} with accuracy {best['eval_accuracy']:.4f}, in a/best")
    found = json.loads(bench.fine(*run, "--json", "--out", "b").out)
    equal({key: found[key] for key in ("steps", "of", "finished", "folder", "measure", "best_step")},
          {"steps": 3, "of": 3, "finished": True, "folder": "b", "measure": "accuracy", "best_step": best["step"]})
    near(found["loss"], steps[-1]["loss"], 1e-8)
    near(found["eval_loss"], evals[-1]["eval_loss"], 1e-8)
    equal(bench.fine(*run, "--out", "silent", "--quiet").err, "")
    rises = "the loss is far above that of step 1"
    assert rises not in said, said
    known = bench.write("known.tsv", "7\tCall me Ishmael.\n")
    contains(bench.fine(*run[:3], "--examples", known, "--steps", "2", "--learning-rate", "1", "--dropout", "0", "--out", "off").err, rises, "--learning-rate")
    swapped = bench.write("swapped.tsv", "".join(f"text number {k}\tgood\n" for k in range(4)))
    contains(bench.fine(*run[:3], "--examples", swapped, "--new-head", "--steps", "1", "--out", "c").err, "4 labels for 4 texts; a line is the label")


def test_new_model(bench):
    """From a text alone: pieces, a configuration, a model, a head; every command opens what comes out."""
    draw = random.Random(5)
    nouns, verbs = ["sailor", "captain", "stranger", "daughter", "lantern"], ["carried", "followed", "remembered", "whispered"]
    text = "".join(f"The {draw.choice(nouns)} {draw.choice(verbs)} the {draw.choice(nouns)} and the {draw.choice(nouns)}, {draw.randrange(99)} times.\n" for _ in range(400))
    corpus = bench.write("corpus.txt", text)
    said = bench.fine("train", "tokenizer", "--file", corpus, "--vocabulary", "80", "--depth", "1", "--width", "32", "--head-count", "2", "--out", "new")
    contains(said.err, "80 pieces", "bits a character")
    written = bench.bytes("new/spm.model")
    for field, name in ((45, b"[UNK]"), (46, b"[CLS]"), (47, b"[SEP]"), (48, b"[PAD]")):  # of trainer_spec
        assert bytes([field * 8 % 128 + 128 + 2, field // 16, len(name)]) + name in written, name
    tokens = bench.fine("tokenize", "new", "--text", "The sailor followed the captain.").out
    contains(tokens, "\u2581The", "\u2581the")
    assert "[UNK]" not in tokens, tokens
    words = ["train", "mlm", "--config", "new", "--file", corpus, "--sequence-tokens", "32", "--learning-rate", "0.01", "--dropout", "0", "--steps", "30"]
    bench.fine(*words, "--out", "model")
    log = log_of(bench, "model")
    assert log[0]["loss"] > 4 and log[-1]["loss"] < 0.75 * log[0]["loss"], (log[0], log[-1])
    bench.fine(*words, "--stop-at", "11", "--threads", "2", "--isa", OTHER_ISA, "--out", "parts")
    bench.fine(*words, "--resume", "--out", "parts")
    assert weights(bench, "model") == weights(bench, "parts")
    bench.fine("fill-mask", "model", "--text", "The sailor [MASK] the captain.")
    result = bench.run("train", "tokenizer", "--file", corpus, "--vocabulary", "5000", "--out", "other")
    assert result.code != 0
    contains(result.err, "expected 4996", "fewer")
    contains(bench.run("train", "tokenizer", "--file", corpus, "--vocabulary", "1000000", "--out", "other").err, "expected 999996", "fewer")
    contains(bench.run("train", "tokenizer", "--file", corpus, "--vocabulary", "80", "--out", "new").err, "holds a model already")
    for name in ("spm.model", "tokenizer.json", "vocab.txt", "bpe_encoder.bin", "tokenizer_config.json", "added_tokens.json"):
        os.makedirs(bench.path("used"))
        bench.write(f"used/{name}", "mine")
        contains(bench.expect(3, "train", "tokenizer", "--file", corpus, "--vocabulary", "80", "--out", "used").err,
                 f"used holds a tokenizer already: {name}; expected a new folder, or one without it")
        equal((bench.read(f"used/{name}"), os.listdir(bench.path("used"))), ("mine", [name]))
        shutil.rmtree(bench.path("used"))
    contains(bench.run("train", "tokenizer", "--file", corpus, "--vocabulary", "10", "--out", "tiny").err, "characters", "6 pieces")
    contains(bench.run(*words[:2], DEMO, *words[2:], "--out", "x").err, "found both")
    contains(bench.run("train", "mlm", "--file", corpus, "--steps", "1", "--out", "x").err, "--config FOLDER")


def shrunk(words):
    """A command of the page with fewer steps and one layer."""
    less = {"--steps": "4", "--warmup": "1", "--layers": "1", "--eval-every": "2", "--hidden": "32", "--batch-sequences": "4"}
    return [less.get(before, word) for before, word in zip(["", *words], words)]


def commands_of_block(block):
    """The commands of a shell, of which one goes on behind a backslash and inside quotes."""
    commands, begun = [], ""
    for line in block.replace("\\\n", " ").split("\n"):
        begun += line
        try:
            shlex.split(begun)
        except ValueError:
            begun += "\n"
            continue
        if begun:
            commands.append(begun)
        begun = ""
    return commands


def test_page(bench):
    """The commands of docs/training.md, each as it stands there but for its size."""
    os.symlink(os.path.join(bench.root, "docs"), bench.path("docs"))
    block = re.search(r"## From a text to a model.*?```sh\n(.*?)```", bench.read(os.path.join(bench.root, "docs", "training.md")), re.S).group(1)
    ran = []
    for line in commands_of_block(block):
        words = shlex.split(line)
        if words[0] == "build/deberta" and (words[2] != "plot" or has_figures(bench)):
            bench.fine(*shrunk(words[1:]))
            ran.append(" ".join(words[1:3]))
        elif words[0] == "python3":
            compile(words[2], "docs/training.md", "exec")
            ran.append(words[0])
            if importlib.util.find_spec("transformers"):
                subprocess.run([sys.executable, *words[1:]], cwd=bench.path("."), check=True, capture_output=True)
        elif words[0] != "build/deberta":
            subprocess.run(line, shell=True, cwd=bench.path("."), check=True)
    equal(ran[:5], ["train tokenizer", "train mlm", "finetune sequence", "classify books/best", "python3"])
    equal([bench.read(f"{part}.tsv").count("\n") for part in ("held-out", "train")], [540, 1725])


def test_equal_runs_are_said_to_be(bench):
    needs_figures(bench)
    for run, first in (("one", 3.0), ("two", 3.0), ("three", 2.0)):
        os.mkdir(bench.path(run))
        lines = [{"step": n + 1, "loss": first - n / 10, "learning_rate": 0.001, "gradient_norm": 1 + first * n} for n in range(10)]
        bench.write(f"{run}/log.jsonl", "".join(json.dumps(line) + "\n" for line in lines))
    bench.fine("train", "plot", "one", "two", "three", "-o", "equal.svg")
    said = " ".join(re.findall(r"<text[^>]*>([^<]*)</text>", bench.read("equal.svg")))
    contains(said, "one and two are equal, one covers the other (loss, learning rate, norm of the gradients).", "one and three are equal, one covers the other (learning rate).")


def test_plot_has_a_panel_for_each_measure(bench):
    """Accuracy and F1 are no values of one axis, nor of one band; each panel has the name of its measure."""
    needs_figures(bench)
    for run, measure, value in (("q1", "f1", 0.25), ("ft-1", "accuracy", 0.5), ("ft-2", "accuracy", 0.75), ("ft-3", "f1", 0.125), ("ft-4", "f1", 0.375)):
        lines = [{"step": 1, "loss": 2.5}, {"step": 1, "eval_loss": 2.0, f"eval_{measure}": value, "eval_exact": 0.9},
                 {"step": 2, "loss": 2.25}, {"step": 2, "eval_loss": 2.0, "eval_exact": 0.9, f"eval_{measure}": value}]
        bench.write(f"{run}.jsonl", "".join(json.dumps(line) + "\n" for line in lines))

    def panels(*words):
        bench.fine("train", "plot", *words, "-o", "p.svg")
        return re.findall(r"<text[^>]*>([^<]*)</text>", bench.read("p.svg"))

    both = panels("ft-1.jsonl", "q1.jsonl")
    equal([both.count(name) > 0 for name in ("accuracy", "f1", "exact")], [True, True, False])
    assert "f1" not in panels("ft-1.jsonl") and "accuracy" not in panels("q1.jsonl")
    banded = panels("ft-1.jsonl", "ft-2.jsonl", "ft-3.jsonl", "ft-4.jsonl", "--band")
    assert {"accuracy", "f1", "ft (2), accuracy", "ft (2), f1"} <= set(banded), banded
    contains(bench.fine("train", "plot", "ft-1.jsonl", "ft-3.jsonl", "--band", "-o", "p.svg").err, "note: --band: no two runs", "the same measure")


def test_plot(bench):
    """Several runs, a band over seeds, a log file alone; what is no log is refused."""
    needs_figures(bench)
    for seed in range(3):
        lines = [{"step": n + 1, "loss": 2.5 - n / 10 + seed / 10, "learning_rate": 0.001 * n, "gradient_norm": 1 + seed} for n in range(10)]
        lines.insert(5, {"step": 5, "eval_loss": 2.0, "eval_sequences": 3, "eval_tokens": 30, "eval_labelled": 3, "eval_accuracy": 0.5})
        os.mkdir(bench.path(f"run-{seed}"))
        bench.write(f"run-{seed}/log.jsonl", "".join(json.dumps(line) + "\n" for line in lines))
    for name, words in (("one.svg", ["run-0"]), ("three.svg", ["run-0", "run-1/log.jsonl", "run-2"]), ("band.svg", ["run-0", "run-1", "run-2", "--band", "--smooth", "3"])):
        bench.fine("train", "plot", *words, "-o", name)
    texts = {}
    for name in ("one", "three", "band"):
        texts[name] = bench.read(f"{name}.svg")
    for title in ("held-out loss", "accuracy", "learning rate", "norm of the gradients", "run-0"):
        contains(texts["one"], title)
    contains(texts["three"], ">run-0<", ">run-1<", ">run-2<")  # the file says the command line as well
    contains(texts["band"], ">run (3)<")
    assert ">run-1<" not in texts["band"] and len(set(texts.values())) == 3
    os.mkdir(bench.path("again"))
    shutil.copytree(bench.path("run-0"), bench.path("again/run-0"))
    bench.fine("train", "plot", "run-0", "again/run-0", "run-1", "-o", "twice.svg")
    contains(bench.read("twice.svg"), ">run-0<", ">again/run-0<", ">run-1<")
    bench.fine("train", "plot", "run-0", "-o", "a.png", "-o", "a.pdf")
    bench.fine("train", "plot", bench.write("killed.jsonl", '{"step": 1, "loss": 2}\n{"step": 2, "loss": 1.5}\n{"step": 3, "lo'), "-o", "killed.svg")
    contains(bench.run("train", "plot", bench.write("only.jsonl", '{"step": 1, "lo'), "-o", "x.svg").err, "only.jsonl, line 1")
    contains(bench.run("train", "plot", bench.write("bad.jsonl", '{"step": 1, "loss": 2}\n{"loss": 1}\n'), "-o", "x.svg").err, "bad.jsonl, line 2", '"step"')
    contains(bench.run("train", "plot", bench.write("empty.jsonl", ""), "-o", "x.svg").err, "has no step")
    contains(bench.run("train", "plot", "nothing", "-o", "x.svg").err, "No such file")
    contains(bench.expect(2, "train", "plot", "run-0").err, "--out")
