"""Small things that are followed, refused or said: undefined measures, nothing to train, threads of the environment, modes of files;
labels that are numbers, and labels that differ by what nobody sees.

SPDX-License-Identifier: MIT
"""
import json
import os
import re
import stat

from cases_train import narrow
from helpers import DEMO, TINY, check_message, contains, equal

TRAIN = ["--sequence-tokens", "32", "-t", "1"]


def lines(count=12):
    return "".join(f"the old captain number {k} opened a new store\n" for k in range(count))


def test_an_undefined_correlation_decides_nothing(bench):
    bench.write("t.tsv", "3.5\ta good day\n1.25\ta bad day\n2.0\tthe old captain\n0.5\tnothing of it\n")
    bench.write("e.tsv", "3.5\tthe sea\n3.5\ta new store\n")
    said = bench.run("finetune", "sequence", narrow(bench), "--examples", "t.tsv", "--labels", "1", "--eval", "e.tsv", "--eval-every", "1",
                     "--steps", "3", "--learning-rate", "1e-3", *TRAIN, "-o", "m")
    log = [json.loads(line) for line in bench.read("m/log.jsonl").splitlines()]
    found = [line for line in log if "eval_loss" in line]
    equal([line["eval_pearson"] for line in found], [None] * 3)
    best = min(found, key=lambda line: line["eval_loss"])
    contains(said.err, "pearson is undefined in 3 of 3", "the least held-out loss decides", f"the best is step {best['step']} with")
    bench.fine("train", "plot", "m", "-o", "m.svg")
    equal("pearson" in bench.read("m.svg"), False)


def test_a_correlation_with_equal_values_is_undefined(bench):
    """Whatever their mean is rounded to: 27 times 1/27 is not 1."""
    bench.write("t.tsv", "3.5\ta good day\n1.25\ta bad day\n2.0\tthe old captain\n0.5\tnothing of it\n")
    for label, count in (("1", 27), ("5", 11), ("1", 20)):
        bench.write("e.tsv", "".join(f"{label}\tthe sea {k}\n" for k in range(count)))
        bench.write("f.tsv", "".join(f"{k}\tthe sea\n" for k in range(count)))  # equal answers
        for held_out in ("e.tsv", "f.tsv"):
            out = f"m{label}-{count}-{held_out[0]}"
            bench.fine("finetune", "sequence", narrow(bench), "--examples", "t.tsv", "--labels", "1", "--eval", held_out, "--eval-every", "1",
                       "--steps", "3", "--learning-rate", "1e-3", *TRAIN, "-q", "-o", out)
            found = [json.loads(line) for line in bench.read(f"{out}/log.jsonl").splitlines()]
            equal([line["eval_pearson"] for line in found if "eval_loss" in line], [None] * 3)


def test_labels_that_mean_none(bench):
    words = ["finetune", "token", narrow(bench), "--new-head", "--steps", "1", *TRAIN]
    bench.write("t.jsonl", '{"words": ["a", "b"], "labels": ["X", "Y"]}\n{"words": ["a", "b"], "labels": [-100, "X"]}\n')
    check_message(bench.run(*words, "--examples", "t.jsonl", "-o", "m"), 3, ["t.jsonl, line 2", "the label -100 marks elsewhere what has no label"])
    bench.write("t.tsv", "0\ta good day\n1\ta bad day\n-1\tthe old captain\n")
    contains(bench.run("finetune", "sequence", narrow(bench), "--new-head", "--steps", "1", *TRAIN, "--examples", "t.tsv", "-o", "n").err,
             "the label '-1' is a class of its own")
    for name in ("NA", "nan", "None", "null"):
        bench.write("t.tsv", f"0\ta good day\n1\ta bad day\n{name}\tthe old captain\n")
        contains(bench.fine("finetune", "sequence", narrow(bench), "--new-head", "--steps", "1", *TRAIN, "--examples", "t.tsv", "-o", name).err,
                 f"the label '{name}' is a class of its own")


def test_blank_lines_between_objects(bench):
    """They are none, as in other readers; numbers of lines are those of the file."""
    for kind, words in (("classify", []), ("fill-mask", ["--json"]), ("tokenize", ["--json"])):
        bench.write("a.jsonl", '{"text": "a [MASK] store"}\n{"text": "the [MASK]"}\n')
        bench.write("b.jsonl", '\n{"text": "a [MASK] store"}\n  \n\r\n{"text": "the [MASK]"}\n\n')
        answers = [bench.fine(kind, DEMO, "--file", name, *words, "-q").strict()[0] for name in ("a.jsonl", "b.jsonl")]
        places = re.compile(r'"line": [0-9]+, "file": "..jsonl"|..jsonl:[0-9]+')
        equal(*[places.sub("", one) for one in answers], kind)
    bench.write("c.jsonl", '{"text": "a"}\n\n{"text": 7}\n')
    contains(bench.run("classify", DEMO, "--file", "c.jsonl").err, "c.jsonl, line 3")


def test_spans_that_nobody_can_find_decide_nothing(bench):
    bench.write("t.tsv", "the\tO\nsea\tB-X\n\n")
    bench.write("e.tsv", "the\tO\nstore\tO\n\n")
    said = bench.run("finetune", "token", narrow(bench), "--examples", "t.tsv", "--new-head", "--eval", "e.tsv", "--eval-every", "1", "--steps", "2", *TRAIN, "-o", "m")
    found = [line for line in map(json.loads, bench.read("m/log.jsonl").splitlines()) if "eval_loss" in line]
    equal([line["eval_f1"] for line in found], [None] * 2)
    contains(said.err, "f1 is undefined in 2 of 2", "nothing to find", "the least held-out loss decides")


def test_equal_measures_are_said(bench):
    """The first of equals is the best, and one sentence says so."""
    bench.write("t.tsv", "a\ta good day\nb\ta bad day\n")
    said = bench.run("finetune", "sequence", narrow(bench), "--examples", "t.tsv", "--new-head", "--eval", "t.tsv", "--eval-every", "1", "--steps", "3",
                     "--learning-rate", "1e-9", *TRAIN, "-o", "m")
    contains(said.err, "3 of 3 measurements have the same best accuracy; the first of them is kept", "the best is step 1 with")


def test_nothing_left_to_train_is_refused(bench):
    bench.write("t.txt", lines())
    words = ["train", "mlm", narrow(bench), "--file", "t.txt", "--steps", "1", "--batch-sequences", "2", *TRAIN]
    contains(bench.run(*words, "--freeze", "*", "-o", "m").err, "freeze", "nothing to train")
    equal(os.path.exists(bench.path("m/log.jsonl")), False)


def test_a_run_in_the_way_names_the_way_out(bench):
    bench.write("t.txt", lines())
    words = ["train", "mlm", narrow(bench), "--file", "t.txt", "--batch-sequences", "2", *TRAIN, "-q", "-o", "m"]
    bench.fine(*words, "--steps", "1")
    contains(bench.run(*words, "--steps", "2", "--resume").err, "steps 1, now 2", "MODEL", "another --out")
    contains(bench.run(*words, "--steps", "1").err, "is not empty: it holds a run", "--resume")


def test_document_marks_are_no_words(bench):
    text = "the\tO\nsea\tB-X\n\n"
    bench.write("plain.tsv", text * 2)
    bench.write("marked.tsv", "-DOCSTART-\tO\n\n" + text + "-DOCSTART- -X- O O\n\n" + text)
    words = ["finetune", "token", narrow(bench), "--new-head", "--steps", "1", *TRAIN]
    bench.fine(*words, "--examples", "plain.tsv", "-o", "a", "-q")
    equal(bench.run(*words, "--examples", "marked.tsv", "-o", "b").err.count("-DOCSTART-"), 1)
    equal(*[json.loads(bench.read(f"{out}/log.jsonl"))["loss"] for out in "ab"])


def test_threads_of_the_environment(bench):
    words = ["bench", TINY, "-n", "4", "--reps", "1", "--min-time", "0", "--no-peak", "--json"]
    for value, threads in ((" 3", 3), ("3 ,2", 3), ("3x", 0), ("all", 0), ("-1", 0), ("99999999999", 0), ("5000", 0)):
        result = bench.run(*words, env={"OMP_NUM_THREADS": value})
        equal(result.code, 0, value)
        equal(result.err.count("OMP_NUM_THREADS"), 0 if threads else 1, value)
        if threads:
            equal(json.loads(result.out)["results"][0]["threads"], threads, value)


def test_a_file_that_is_overwritten_keeps_its_mode(bench):
    for mode in (0o600, 0o640):
        bench.write("old.json", "{}")
        os.chmod(bench.path("old.json"), mode)
        bench.fine("tokenize", DEMO, "--text", "a new store", "--json", "-o", "old.json")
        equal(oct(stat.S_IMODE(os.stat(bench.path("old.json")).st_mode)), oct(mode))
    before = os.umask(0o027)
    try:
        bench.fine("tokenize", DEMO, "--text", "a new store", "--json", "-o", "new.json")
    finally:
        os.umask(before)
    equal(oct(stat.S_IMODE(os.stat(bench.path("new.json")).st_mode)), oct(0o640))


def classes(bench, name, out):
    bench.fine("finetune", "sequence", narrow(bench), "--examples", name, "--new-head", "--steps", "1", "-q", *TRAIN, "-o", out)
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
        result = bench.run("finetune", "sequence", narrow(bench), "--examples", "t.jsonl", "--new-head", "--steps", "1", "-q", *TRAIN, "-o", f"m{k}")
        check_message(result, 3, ["'pos'", f"'{other}'", "only by blanks"])


def test_files_that_are_the_same(bench):
    """Twice by name, by path, as a copy: of what is trained on, learned from, measured; a pipe is read once."""
    bench.write("a.tsv", "1\ta\n0\tb\n")
    bench.write("b.tsv", "1\ta\n0\tb\n")
    bench.write("c.tsv", "1\ta\n0\tc\n")
    bench.write("e.tsv", "1\td\n0\te\n")
    bench.write("a.txt", lines())
    pair = json.dumps({"sentence_good": "a good day", "sentence_bad": "day good a", "UID": "order"}) + "\n"
    for name in ("a.jsonl", "b.jsonl"):
        bench.write(name, pair)
    run = ["finetune", "sequence", narrow(bench), "--new-head", "--steps", "1", *TRAIN]
    bench.fine(*run, "--examples", "a.tsv", "-q", "-o", "m")
    narrower = "each text counts twice, and the interval is narrower than these texts allow"
    for k, (words, said) in enumerate((
            (["eval", "m", "a.tsv", "a.tsv"], f"note: a.tsv is given twice: {narrower}"),
            (["eval", "m", "a.tsv", "c.tsv", "./a.tsv"], f"note: a.tsv and ./a.tsv hold the same: {narrower}"),
            (["eval", "m", "a.tsv", "b.tsv"], f"note: a.tsv and b.tsv hold the same: {narrower}"),
            (["eval", DEMO, "--minimal-pairs", "a.jsonl", "--minimal-pairs", "b.jsonl"], f"note: a.jsonl and b.jsonl hold the same: {narrower}"),
            ([*run, "--examples", "a.tsv", "--examples", "b.tsv", "-o", "0"], "note: a.tsv and b.tsv hold the same: each counts twice in an epoch"),
            ([*run, "--examples", "a.tsv", "--eval", "b.tsv", "-o", "1"], "note: --eval b.tsv is trained on as well"),
            ([*run, "--examples", "a.tsv", "--eval", "e.tsv", "--eval", "e.tsv", "-o", "2"], "note: e.tsv is given twice: each counts twice in what is measured"),
            (["train", "mlm", narrow(bench), "--file", "a.txt", "--file", "a.txt", "--steps", "1", *TRAIN, "-o", "3"], "note: a.txt is given twice: each counts twice in an epoch"),
            (["train", "tokenizer", "--file", "a.txt", "--file", "a.txt", "--vocabulary", "40", "--width", "16", "--head-count", "2", "-o", "4"],
             "note: a.txt is given twice: each word counts twice"))):
        found = bench.fine(*words).err
        assert found.count("twice") == said.count("twice") and said in found, f"{k}: {found}"
    assert "note:" not in bench.fine("eval", "m", "a.tsv", "c.tsv").err
    piped = bench.fine("eval", "m", "/dev/stdin", "a.tsv", stdin=b"1\ta\n0\tb\n")
    assert "note:" not in piped.err and " of 4;" in piped.out, piped.describe()


def test_a_replaced_head_is_named(bench):
    """A head that the model has is lost by --new-head and --labels, of every task; a run that goes on has lost it before."""
    bench.write("t.tsv", "1\ta good day\n0\ta bad day\n")
    bench.write("t.txt", lines())
    replaced = "the model's head for this task is replaced by a new one"
    words = ["--steps", "2", *TRAIN]
    first = ["finetune", "sequence", narrow(bench), "--examples", "t.tsv", "--labels", "1", *words]
    assert replaced in bench.fine("train", "mlm", narrow(bench), "--new-head", "--file", "t.txt", *words, "-o", "l").err
    bench.fine(*first, "-o", "m")
    again = ["finetune", "sequence", "m", "--examples", "t.tsv", *words]
    for k, more in enumerate((["--labels", "1"], ["--new-head"])):
        assert replaced in bench.fine(*again, *more, "--stop-at", "1", "-o", f"n{k}").err
        assert replaced not in bench.fine(*again, *more, "--resume", "-o", f"n{k}").err
    assert replaced not in bench.fine(*again, "-o", "o").err
    bench.fine("finetune", "choice", "m", "--examples", bench.write("c.tsv", "0\tthe\tsea\tcat\n"), "--new-head", *words, "-q", "-o", "c")
    assert "replaced" not in bench.fine("finetune", "qa", "m", "--new-head", "--steps", "1", *TRAIN, "-o", "q", "--examples", bench.write(
        "q.jsonl", json.dumps({"question": "who", "context": "the captain", "text": "captain", "start": 4}) + "\n")).err


def test_a_run_that_diverged_says_so(bench):
    """Weights that no other command opens are no success: the first of them is named as that command names it."""
    bench.write("t.tsv", "1\ta good day\n0\ta bad day\n")
    bench.write("w.tsv", "a\tA\nday\tB\n")
    bench.write("t.txt", lines())
    words = ["--steps", "1", "--warmup", "0", "--schedule", "constant", "--learning-rate", "3e3", "--clip", "0", *TRAIN]
    model = narrow(bench)
    for k, (run, parts) in enumerate(((["finetune", "sequence", model, "--examples", "t.tsv", "--new-head"], [""]),
                                      (["finetune", "token", model, "--examples", "w.tsv", "--new-head"], [""]),
                                      (["train", "mlm", model, "--file", "t.txt"], [""]),
                                      (["train", "rtd", model, "--new-head", "--generator", model, "--file", "t.txt"], ["/discriminator", "/generator"]))):
        said = bench.expect(1, *run, *words, "-o", f"d{k}")
        contains(said.err, "of the trained tensor", "the training diverged", "a smaller --learning-rate", "--clip")
        assert "sha256" not in said.err and "--resume" not in said.err, said.describe()
        refused = [bench.run("encode", f"d{k}{part}", "--text", "a", "-o", "x.safetensors") for part in parts]
        assert all(one.code == 3 and "weights of the model are damaged or diverged in training" in one.err for one in refused), [one.err for one in refused]
    assert bench.fine(*run[:-2], "--file", "t.txt", "--steps", "1", *TRAIN, "-o", "fine").err.count("diverged") == 0


def test_curves_say_what_they_are(bench):
    """The mean of --smooth at its axis, what a band is below the figure; what neither can do is noted."""
    bench.write("t.txt", lines())
    for name, seed in (("a-1", "1"), ("a-2", "2"), ("b", "3")):
        bench.fine("train", "mlm", narrow(bench), "--file", "t.txt", "--steps", "3", "--seed", seed, *TRAIN, "-q", "-o", name)
    said = bench.fine("train", "plot", "a-1", "a-2", "--band", "--smooth", "2", "-o", "a.svg").err
    contains(bench.read("a.svg"), ">loss, mean of 2 steps<", "Bands and bars: lowest to highest of the runs")
    assert "note:" not in said, said
    said = bench.fine("train", "plot", "a-1", "b", "--band", "--smooth", "4", "-o", "b.svg").err
    contains(said, "note: --band: no two runs have the same name", "note: --smooth 4: a-1 has 3 steps")
    assert "Bands and bars" not in bench.read("b.svg")
    bench.fine("train", "plot", "b", "-o", "c.svg")
    assert "mean of" not in bench.read("c.svg")
    contains(bench.fine("train", "plot", "b", "./b", "-o", "d.svg").err, "note: b/log.jsonl and ./b/log.jsonl hold the same")


def test_what_has_no_use_is_said(bench):
    """An option given twice, a rate of nothing, a stop behind the end, texts of --eval that are trained on under another name; a folder
    that cannot be made."""
    contains(bench.fine("classify", DEMO, "--text", "a", "--top", "2", "--top", "3").err, "note: --top has one value, and the last counts: '3', not '2'")
    assert "one value" not in bench.fine("classify", DEMO, "--text", "a", "--top", "3", "--top", "3", "--text", "b").err
    contains(bench.fine("classify", DEMO, "--text", "a", "--max-tokens", "3", "--max-tokens", "4").err, "note: --max-tokens has one value, and the last counts: '4'")
    assert "one value" not in bench.fine("classify", DEMO, "--text", "a", "--ablate", "c2p@0", "--ablate", "p2c@0").err
    ids = bench.write("ids.json", '{"input_ids": [[1, 5, 2]]}')
    contains(bench.expect(2, "encode", DEMO, "-i", ids, "-i", ids, "-o", "o.safetensors").err, "--input: expected one file, found 2")
    contains(bench.expect(2, "classify", DEMO, "--text", "a", "--memory-limit", "0K").err, "--memory-limit: expected a number from 1, found '0K'")
    bench.write("two.tsv", "1\ta\n0\tb\n")
    words = ["finetune", "sequence", narrow(bench), "--examples", "two.tsv", "--new-head", "--steps", "1", *TRAIN]
    said = bench.fine(*words, "--learning-rate", "0", "--eval", "./two.tsv", "-o", "m").err
    contains(said, "note: --learning-rate 0: the new head stays as it is drawn", "note: --eval ./two.tsv is trained on as well")
    bench.write("three.tsv", "1\ta\n0\tc\n")
    assert "note: --" not in bench.fine(*words, "--eval", "three.tsv", "--stop-at", "1", "-o", "n").err
    contains(bench.fine(*words, "--stop-at", "2", "-o", "s").err, "note: --stop-at 2: the run ends before, with step 1")
    said = bench.fine(*words, "--eval", "three.tsv", "--eval-every", "5", "--patience", "3", "--sift", "0", "--perturb", "raw", "--sift-step", "0.1", "-o", "p").err
    contains(said, "note: --eval-every 5: held-out data is measured after the last step alone, step 1", "note: --patience: the run has 1 measurement, too few",
             "note: --perturb: --sift 0 moves no input", "note: --sift-step: --sift 0")
    assert "--sift-start" not in said, said
    longer = [*words[:7], "5", *TRAIN, "--eval", "three.tsv", "--eval-every", "2"]  # measured after 2, 4 and 5 steps
    contains(bench.fine(*longer, "--patience", "2", "-o", "q").err, "note: --patience: the run has 3 measurements, too few")
    assert "note: --" not in bench.fine(*longer, "--patience", "1", "--sift", "1", "--perturb", "raw", "-o", "r").err
    own = ["finetune", "sequence", "m", *words[3:5], *words[6:], "--learning-rate", "0", "-o", "k"]
    said = bench.fine(*own).err
    contains(said, "note: --learning-rate 0: no weight changes")
    assert "head" not in said, said
    said = bench.run(*words, "-o", "none/there")
    assert said.code == 4 and "none/there: cannot make this folder" in said.err and "log:" not in said.err, said.err


def test_names_of_files_and_ends_of_ranges(bench):
    """A .json of several texts, an end that no number holds, what a page alone cannot draw; every id of a page is there once."""
    masked = ["fill-mask", DEMO, "--text", "a [MASK]"]
    assert "note" not in bench.fine(*masked, "-o", "one.json").err
    json.loads(bench.read("one.json"))
    contains(bench.fine(*masked, "--text", "b [MASK]", "-o", "two.json").err, "note: two.json has an object a line")
    assert "note" not in bench.fine(*masked, "--text", "b [MASK]", "-o", "two.jsonl").err
    for end in (2 ** 64 - 1, 2 ** 64, 10 ** 30):
        contains(bench.expect(2, "attention", "distance", DEMO, "--text", "a b", "--token-range", f"1:{end}", "-o", "d.json").err, "--token-range: expected FIRST:END")
    said = bench.fine("report", DEMO, "--text", "a b", "--layers", "1", "--heads", "0", "--training-log", "nowhere", "-o", "page.html").err
    contains(said, *(f"note: --{name}: " for name in ("training-log", "layers", "heads")))
    found = re.findall(r'\sid="([\w-]+)"', bench.read("page.html"))
    equal(sorted(found), sorted(set(found)))
    assert {link for link in re.findall(r'href="#([\w-]+)"', bench.read("page.html"))} <= set(found)
