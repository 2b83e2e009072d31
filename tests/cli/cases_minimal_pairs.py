"""`deberta eval --minimal-pairs`: scores against logits of the same sequences, counts, the same bits however pairs are batched, bad lines.

SPDX-License-Identifier: MIT
"""
import json
import math

from helpers import DEMO, ROOT, check_message, contains, equal, near, read_tensors

DISCRIMINATOR = str(ROOT / "models" / "discriminator")
PAIRS = [("The old man shook his head and said nothing.", "The old man shook his head and say nothing.", "verb", "agreement"),
         ("The ships were in the harbour.", "The ships was in the harbour.", "verb", "agreement"),
         ("She has seen herself in the glass.", "She has seen himself in the glass.", "reflexive", "anaphor"),
         ("Nobody has ever been here.", "Somebody has ever been here.", "polarity", None)]


def lines_of(pairs):
    rows = ({"sentence_good": good, "sentence_bad": bad, "UID": name, **({"linguistics_term": term} if term else {})} for good, bad, name, term in pairs)
    return "".join(json.dumps(row) + "\n" for row in rows)


def found_of(bench, *words, model=DEMO, pairs=PAIRS, code=0):
    """(the object, rows of --pair-scores as {sentence: score}, stderr)."""
    path = bench.write("pairs.jsonl", lines_of(pairs))
    out, err = bench.expect(code, "eval", model, "--minimal-pairs", path, "--json", "--pair-scores", bench.path("scores.jsonl"), *words).strict()
    rows = [json.loads(line) for line in bench.read("scores.jsonl").splitlines()]
    return json.loads(out), rows, err


def ids_of(bench, model, sentence):
    return bench.json("tokenize", model, "--text", sentence)["ids"]


def log_softmax(row, k):
    largest = max(row)
    return row[k] - largest - math.log(sum(math.exp(x - largest) for x in row))


def rows_of_logits(bench, model, sequences, head):
    """Of each token of each sequence, through `encode --logits`."""
    words = [word for ids in sequences for word in ("--ids", ",".join(map(str, ids)))]
    bench.fine("encode", model, *words, "--logits", "-o", bench.path("logits.safetensors"))
    tensor = read_tensors(bench.path("logits.safetensors"))[0]["logits." + head]
    tokens = tensor.shape[1]
    width = len(tensor.values) // (tensor.shape[0] * tokens)
    return lambda k, t: tensor.values[(k * tokens + t) * width:(k * tokens + t + 1) * width]


# ----------------------------------------------------------------------------------------------------------- scores


def test_pseudo_log_likelihood(bench):
    mask = json.loads((ROOT / "models" / "demo" / "added_tokens.json").read_text())["[MASK]"]
    for decoder, head in (("emd", "mlm_emd"), ("plain", "mlm")):
        found, rows, _ = found_of(bench, "--mlm-decoder", decoder, pairs=PAIRS[1:3])
        equal((found["schema"], found["score"], found["head"]), ("deberta-minimal-pairs/1", "pll", head))
        for (good, bad, _, _), row in zip(PAIRS[1:3], rows):
            for key, sentence in (("sentence_good", good), ("sentence_bad", bad)):
                ids = ids_of(bench, DEMO, sentence)
                places = range(1, len(ids) - 1)
                logits = rows_of_logits(bench, DEMO, [[*ids[:t], mask, *ids[t + 1:]] for t in places], head)
                near(row[key], sum(log_softmax(logits(k, t), ids[t]) for k, t in enumerate(places)), 1e-5, sentence)


def test_replaced_tokens(bench):
    found, rows, _ = found_of(bench, "--score", "rtd", model=DISCRIMINATOR)
    equal((found["score"], found["head"]), ("rtd", "rtd"))
    for (good, bad, _, _), row in zip(PAIRS, rows):
        for key, sentence in (("sentence_good", good), ("sentence_bad", bad)):
            ids = ids_of(bench, DISCRIMINATOR, sentence)
            logits = rows_of_logits(bench, DISCRIMINATOR, [ids], "rtd")
            near(row[key], -sum(math.log1p(math.exp(logits(0, t)[0])) for t in range(1, len(ids) - 1)), 1e-5, sentence)


def test_same_bits_however_batched(bench):
    """Also where a pair is alone: what it shares with others, or its two sentences with each other, is computed once."""
    _, rows, _ = found_of(bench)
    for words in (("--batch-tokens", "1"), ("--threads", "1"), ("--threads", "3", "--isa", "scalar"), ("--batch-tokens", "64")):
        equal(found_of(bench, *words)[1], rows, words)
    twice = found_of(bench, pairs=PAIRS + PAIRS[::-1])[1]
    scores = [(row["sentence_good"], row["sentence_bad"]) for row in rows]
    equal([(row["sentence_good"], row["sentence_bad"]) for row in twice], scores + scores[::-1])
    for pair, row in zip(PAIRS, rows):
        alone = found_of(bench, pairs=[pair])[1][0]
        equal((alone["sentence_good"], alone["sentence_bad"]), (row["sentence_good"], row["sentence_bad"]))


def test_precision(bench):
    exact = found_of(bench)[1]
    for precision, bound in (("int16", 0.1), ("int8", 5)):
        found, rows, _ = found_of(bench, "--precision", precision)
        equal(found["precision"], precision)
        assert rows != exact
        for row, other in zip(rows, exact):
            near(row["sentence_good"], other["sentence_good"], bound, precision)
        equal(found_of(bench, "--precision", precision, "--batch-tokens", "1", "--threads", "1")[1], rows)


# ----------------------------------------------------------------------------------------------------------- counts


def interval(right, pairs):
    z, p = 1.959963984540054, right / pairs
    middle, half = p + z * z / (2 * pairs), z * math.sqrt(p * (1 - p) / pairs + z * z / (4 * pairs * pairs))
    return (middle - half) / (1 + z * z / pairs), (middle + half) / (1 + z * z / pairs)


def check_groups(groups, rows, names):
    equal([group["name"] for group in groups], list(dict.fromkeys(name for name in names if name)))
    for group in groups:
        of_it = [row["sentence_good"] > row["sentence_bad"] for row, name in zip(rows, names) if name == group["name"]]
        equal((group["pairs"], group["right"]), (len(of_it), sum(of_it)))
        near(group["accuracy"], sum(of_it) / len(of_it), 1e-8)
        for k, key in enumerate(("low", "high")):
            near(group[key], interval(sum(of_it), len(of_it))[k], 1e-8)


def test_counts(bench):
    pairs = PAIRS + [(bad, good, name, term) for good, bad, name, term in PAIRS[:2]]
    found, rows, _ = found_of(bench, pairs=pairs)
    right = sum(row["sentence_good"] > row["sentence_bad"] for row in rows)
    assert 0 < right < len(pairs)
    equal((found["pairs"], found["right"], found["ties"], found["bad"]), (len(pairs), right, 0, 0))
    near(found["accuracy"], right / len(pairs), 1e-8)
    for low_or_high, expected in zip(found["interval"], interval(right, len(pairs))):
        near(low_or_high, expected, 1e-8)
    check_groups(found["paradigms"], rows, [pair[2] for pair in pairs])
    check_groups(found["terms"], rows, [pair[3] for pair in pairs])
    equal([(row["line"], row["UID"]) for row in rows], [(k + 1, pair[2]) for k, pair in enumerate(pairs)])
    halves = [bench.write(name, lines_of(part)) for name, part in (("a.txt", pairs[:3]), ("b", pairs[3:]))]  # objects, whatever the names
    given = [word for path in halves for word in ("--minimal-pairs", path)]
    equal(bench.json("eval", DEMO, *given), found)
    table = bench.fine("eval", DEMO, *given, "--format", "csv").strict()[0].splitlines()
    equal([line.split(",")[:3] for line in table], [["name", "pairs", "right"]] + [[g["name"], str(g["pairs"]), str(g["right"])] for g in found["paradigms"]])
    contains(bench.fine("eval", DEMO, *given).strict()[0], f"of {right} of {len(pairs)} pairs", "by paradigm", "by term", "reflexive")


def test_ties_are_not_right(bench):
    found, _, _ = found_of(bench, pairs=[("The door  was open.", "The door was open.", "blanks", None)])
    equal((found["pairs"], found["right"], found["ties"], found["terms"]), (1, 0, 1, []))
    contains(bench.fine("eval", DEMO, "--minimal-pairs", "pairs.jsonl").strict()[0], "1 pair: equal scores")


def test_one_sentence_twice_is_a_tie(bench):
    """BLiMP has seven such pairs among its 67,000."""
    found, _, err = found_of(bench, pairs=[("The door was open.", "The door was open.", "same", None), PAIRS[0]])
    equal((found["pairs"], found["ties"], found["bad"], found["paradigms"][0]["right"]), (2, 1, 0, 0))
    contains(err, "1 pair has one sentence twice: a tie, which counts as wrong")
    assert "UID" not in err, err
    _, rows, err = found_of(bench, pairs=[("The door was\0 open.", "The door was\0 opened.", "behind a NUL", None)])  # all of a sentence is scored
    assert rows[0]["sentence_good"] != rows[0]["sentence_bad"] and "one sentence twice" not in err, (rows, err)


def test_unknown_words_are_named(bench):
    found, _, err = found_of(bench, pairs=[("The \u2603 was open.", "The \u2603 were open.", "snow", None), PAIRS[0]])
    equal(found["pairs"], 2)
    contains(err, "1 pair holds text that the vocabulary does not know")


# ------------------------------------------------------------------------------------------------------- bad input


def test_bad_lines(bench):
    bad = [{"sentence_good": "a b", "sentence_bad": "b a"}, {"sentence_good": "a b", "UID": "x"}, {"sentence_good": "a b", "sentence_bad": 7, "UID": "x"},
           {"sentence_good": "a [MASK]", "sentence_bad": "a b", "UID": "x"},
           {"sentence_good": "a b", "sentence_bad": "", "UID": "x"}, {"sentence_good": "word " * 1100, "sentence_bad": "a b", "UID": "x"}]
    words = ["\"UID\" is no text", "no key \"sentence_bad\"", "\"sentence_bad\" is not a text",
             "\"sentence_good\": the text spells '[MASK]'", "\"sentence_bad\": the text is empty", "\"sentence_good\": 1"]
    path = bench.write("bad.jsonl", lines_of(PAIRS[:1]) + "".join(json.dumps(row) + "\n" for row in bad) + "no object\n")
    out, err = bench.expect(3, "eval", DEMO, "--minimal-pairs", path, "--json").strict()
    found = json.loads(out)
    equal((found["pairs"], found["bad"]), (1, len(bad) + 1))
    for number, word in enumerate([*words, "expected a JSON object"], 2):
        contains(err.split(f"line {number}: ")[1].split("\n")[0], word)
    result = bench.run("eval", DEMO, "--minimal-pairs", bench.write("none.jsonl", "x\n"), "-o", "s.json", "--pair-scores", "p.jsonl")
    contains(result.strict()[1], "none of the lines can be used")
    equal(result.code, 3)
    assert not {"s.json", "p.jsonl"} & set(bench.files()), bench.files()


def test_names_of_pairs(bench):
    """A paradigm and a term are texts without NUL, or the pair has a problem; no term is none, also as null or empty."""
    def pair(**names):
        return json.dumps({"sentence_good": "a b", "sentence_bad": "b a", "UID": "x", **names}) + "\n"

    wrong = [({"UID": 5}, '"UID" is no text'), ({"UID": None}, '"UID" is no text'), ({"UID": "p\0one"}, '"UID" holds a NUL character'),
             ({"UID": "p\0two"}, '"UID" holds a NUL character'), ({"linguistics_term": 5}, '"linguistics_term" is no text'),
             ({"linguistics_term": ["a"]}, '"linguistics_term" is no text'), ({"linguistics_term": "a\0b"}, '"linguistics_term" holds a NUL character')]
    path = bench.write("names.jsonl", "".join(pair(**names) for names, _ in wrong) + pair(linguistics_term=None) + pair(linguistics_term=""))
    out, err = bench.expect(3, "eval", DEMO, "--minimal-pairs", path, "--json").strict()
    found = json.loads(out)
    equal((found["pairs"], found["bad"], found["terms"], [g["name"] for g in found["paradigms"]]), (2, len(wrong), [], ["x"]))
    for number, (_, said) in enumerate(wrong, 1):
        contains(err.split(f"line {number}: ")[1].split("\n")[0], said)


def test_what_does_not_go_together(bench):
    given = ["eval", DEMO, "--minimal-pairs", bench.write("pairs.jsonl", lines_of(PAIRS[:1]))]
    for words, code, said in ((["eval", DEMO], 2, ["MODEL FILE.tsv ...", "--minimal-pairs FILE"]), ([*given, "more.tsv"], 2, ["more.tsv"]),
                              ([*given, "--against", "int8"], 2, ["--against", "--minimal-pairs"]), (["eval", DEMO, "x.tsv", "--score", "rtd"], 2, ["--minimal-pairs"]),
                              ([*given, "--score", "rtd", "--mlm-decoder", "emd"], 2, ["--mlm-decoder"]), ([*given, "-o", "x.svg"], 2, ["x.svg", "picture"]),
                              ([*given, "-o", "x.png", "--dpi", "100"], 2, ["'x.png' is a picture's name, and of minimal pairs there is none"]),
                              ([*given, "--dpi", "100"], 2, ["--dpi: changes a picture, and of minimal pairs there is none"]),
                              ([*given, "-o", "x.json", "--pair-scores", "x.json"], 2, ["x.json"]), ([*given, "--pair-scores", "-"], 2, ["--pair-scores"]),
                              ([*given, "--score", "rtd"], 3, ["'rtd'", "mlm, mlm_emd"]), (["eval", DISCRIMINATOR, *given[2:]], 3, ["'mlm'", "rtd"]),
                              ([*given[:3], "nowhere.jsonl"], 3, ["nowhere.jsonl"])):
        check_message(bench.run(*words), code, said)
    equal(bench.files(), ["pairs.jsonl"])
