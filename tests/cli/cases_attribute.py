"""`deberta attribute`: attributions add up to the difference of the answer, whose logit is that of `encode --logits`; what it refuses.

SPDX-License-Identifier: MIT
"""
import csv
import json
import math
import os
import re

from cases_heads import answers, logits, model, run
from helpers import DEMO, check_message, has_figures

TEXT = "a new store opened beside the house"
MASKED = "a new [MASK] opened beside the house"
PARTS = ("words", "distances", "positions")


def total(found):
    return (sum(t["word"] + t["position"] + t["token_type"] for t in found["tokens"])
            + sum(d["c2p"] + d["p2c"] for d in found["distances"]))


def adds_up(found, gap=0.01):
    difference = found["value"] - found["baseline_value"]
    assert abs(total(found) - found["sum"]) < 1e-6 * max(1, abs(found["sum"])), found
    assert found["gap"] <= gap and abs(found["sum"] - difference) <= gap * abs(difference) + 1e-9, found


def test_colour_bar_of_a_narrow_page(bench):
    """The colour bar of the words is no wider than the page has room for."""
    if not has_figures(bench):
        return
    bench.fine("attribute", DEMO, "--text", "a new store", "--parts", "words", "--width-mm", "30", "-q", "-o", "narrow.svg")
    svg = bench.read("narrow.svg")
    width = float(re.search(r'viewBox="0 0 ([\d.]+)', svg)[1])
    bar = re.search(r'<g aria-label="colour bar">.*?<image[^>]*?x="([\d.]+)"[^>]*?width="([\d.]+)"', svg, re.S) or \
        re.search(r'<g aria-label="colour bar">.*?<image[^>]*?width="([\d.]+)"', svg, re.S)
    assert sum(map(float, bar.groups())) <= width, (bar.groups(), width)


def test_attributions_add_up_to_the_logit(bench):
    for words, name, head, text, index in ((["--class", "good"], "sequence", "sequence", TEXT, 2),
                                           (["--class", "good,bad"], "sequence", "sequence", TEXT, 2),
                                           (["--answer", "the"], "mlm", "mlm_emd", MASKED, None),
                                           (["--answer", "the", "--mlm-decoder", "plain"], "mlm", "mlm", MASKED, None),
                                           (["--answer", " the"], "mlm-v1", "mlm_emd", MASKED, None),
                                           (["--token", "store"], "rtd", "rtd", TEXT, 0),
                                           (["--token", "store", "--class", "B-LOC"], "token", "token", TEXT, 3)):
        found, = answers(bench, "attribute", model(bench, name), *words, "--text", text)
        adds_up(found)
        assert found["head"] == head and (index is None or found["answer"]["index"] == index), found
        row = logits(bench, name, head, "--text", text)[found.get("at", 0)]
        expected = row[found["answer"]["index"]] - (row[found["contrast"]["index"]] if "contrast" in found else 0)
        assert abs(found["value"] - expected) < 1e-5 * max(1, abs(expected)), (found["value"], expected)


def test_a_word_is_the_token_that_fills_the_mask(bench):
    """Byte pairs have another token for a word behind a blank: that at [MASK] is meant, with the blank written or not, in either segment."""
    for name, wanted in (("mlm-v1", "\u0120the"), ("mlm", "\u2581the")):
        for word in ("the", " the"):
            for texts in (("--text", MASKED), ("--text", "the house", "--pair", MASKED)):
                found, = answers(bench, "attribute", model(bench, name), "--answer", word, "--steps", "2", *texts)
                assert found["answer"]["name"] == wanted, (name, word, found["answer"])


def test_a_word_fills_the_mask_beside_punctuation(bench):
    """The mark may be tokenized in another way beside a word than beside [MASK]; a word that joins the text beside it is refused."""
    for text in ("the enormous [MASK].", "the [MASK], he said.", '"[MASK]" he said', "([MASK]) swam", "see [MASK]!"):
        found, = answers(bench, "attribute", DEMO, "--text", text, "--answer", "whale", "--steps", "2")
        assert found["answer"]["name"].lstrip("\u2581") == "whale", (text, found["answer"])
        traced = json.loads(bench.fine("attention", "trace", DEMO, "--text", text, "--swap", "0,1", "--answer", "whale", "--what", "states",
                                       "--layers", "0", "--json").out)
        whale, = answers(bench, "attribute", DEMO, "--text", text, "--answer", "whale", "--steps", "1", "--of", "log-probability")
        assert abs(math.log(traced["clean"]) - whale["value"]) < 1e-5, (text, traced["clean"])
    for text, word in (("the st[MASK]", "ore"), ("the [MASK]ling", "sap")):
        check_message(bench.run("attribute", DEMO, "--text", text, "--answer", word), 3, [f'"{word}"', "[MASK]"])


def test_attributions_leave_special_tokens_and_what_is_not_asked(bench):
    found, = answers(bench, "attribute", model(bench, "mlm"), "--text", MASKED, "--answer", "the")
    assert all(t["word"] == 0 for t in found["tokens"] if t["special"]) and any(t["word"] for t in found["tokens"])
    assert [t["token"] for t in found["tokens"]][found["at"]] == "[MASK]"
    rows = [(d["first"], d["last"]) for d in found["distances"]]
    n = len(found["tokens"])
    assert rows[0][0] == 1 - n and rows[-1][1] == n - 1 and all(a[1] + 1 == b[0] for a, b in zip(rows, rows[1:])), rows
    for part in PARTS:
        alone, = answers(bench, "attribute", model(bench, "mlm"), "--text", MASKED, "--answer", "the", "--parts", part)
        adds_up(alone)
        assert any(t["word"] for t in alone["tokens"]) == (part == "words")
        assert bool(alone["distances"]) == (part == "distances")
        assert any(t["position"] for t in alone["tokens"]) == (part == "positions")


def test_attributions_have_the_same_bytes_everywhere(bench):
    words = ["attribute", model(bench, "mlm"), "--text", MASKED, "--of", "log-probability", "--json"]
    first = run(bench, *words)[0]
    for more in (["--threads", "1"], ["--threads", "3"], ["--isa", "scalar"]):
        assert run(bench, *words, *more)[0] == first, more


def test_attributions_of_the_answer_that_the_model_gives(bench):
    best, = answers(bench, "classify", model(bench, "sequence"), "--text", TEXT, "--top", 1)
    found, = answers(bench, "attribute", model(bench, "sequence"), "--text", TEXT)
    assert found["answer"]["name"] == best["labels"][0]["label"]
    word, = answers(bench, "fill-mask", model(bench, "mlm"), "--text", MASKED, "--top", 1)
    found, = answers(bench, "attribute", model(bench, "mlm"), "--text", MASKED)
    assert found["answer"]["index"] == word["masks"][0]["candidates"]["emd"][0]["id"]


def test_a_mask_that_is_not_asked_about_is_named(bench):
    done = bench.run("attribute", DEMO, "--text", "a new [MASK] opened", "--steps", "2", "--json")
    assert "--head mlm asks for the word at [MASK]" in done.err and '"sequence"' in done.out, done.describe()
    several = bench.run("attribute", DEMO, "--text", "The [MASK] sailor told the [MASK] a story.", "--steps", "2", "--json")
    assert "--head mlm asks for the word at [MASK], of which it takes one" in several.err and '"sequence"' in several.out, several.describe()
    for more in (("--head", "sequence"), ("--head", "mlm")):
        assert "asks for the word" not in bench.run("attribute", DEMO, "--text", "a new [MASK] opened", "--steps", "2", "--json", *more).err


def test_attributions_of_log_probabilities_and_by_gradient_times_input(bench):
    found, = answers(bench, "attribute", model(bench, "sequence"), "--text", TEXT, "--of", "log-probability", "--baseline", "zero")
    adds_up(found)
    assert found["value"] < 0 and found["baseline"] == "zero"
    quick, = answers(bench, "attribute", model(bench, "sequence"), "--text", TEXT, "--method", "gradient-input")
    assert quick["steps"] == 1 and abs(total(quick) - quick["sum"]) < 1e-6
    few, = answers(bench, "attribute", model(bench, "sequence"), "--text", TEXT, "--steps", "1")
    assert few["steps"] == 1


def test_options_that_change_no_attribution_are_named(bench):
    """Gradient times input has no points, and a text whose words stay has no baseline for them."""
    words = ["attribute", model(bench, "sequence"), "--text", TEXT, "--json"]
    for more, option, others in ((["--method", "gradient-input"], ["--steps", "64"], ["--steps", "1"]), (["--parts", "distances,positions"], ["--baseline", "pad"], ["--baseline", "zero"])):
        found, other = (bench.fine(*words, *more, *one) for one in (option, others))
        assert total(json.loads(found.out)) == total(json.loads(other.out))
        assert f"note: {option[0]}: " in found.err and "note: --" not in bench.fine(*words, *more).err, found.err
    assert "note: --" not in bench.fine(*words, "--steps", "64", "--baseline", "pad", "--parts", "words").err


def test_attributions_of_lines_pairs_and_objects(bench):
    lines = "\n".join(json.dumps(row) for row in ({"text": TEXT, "pair": "the house", "id": 7}, {"text": TEXT})) + "\n"
    bench.write("in.jsonl", lines)
    got = answers(bench, "attribute", model(bench, "sequence"), "--file", "in.jsonl")
    alone, = answers(bench, "attribute", model(bench, "sequence"), "--text", TEXT, "--pair", "the house")
    assert got[0]["id"] == 7 and got[0]["tokens"] == alone["tokens"] and len(got) == 2
    assert answers(bench, "attribute", model(bench, "sequence"), "--file", "-", given=TEXT.encode() + b"\n")[0]["tokens"] == got[1]["tokens"]


def test_attributions_for_a_person(bench):
    out, _ = run(bench, "attribute", model(bench, "sequence"), "--text", TEXT, "--class", "good")
    assert "logit of \u201cgood\u201d" in out and "add up to" in out and "distances, query minus key" in out, out


def test_attribute_refuses(bench):
    sequence, masked = model(bench, "sequence"), model(bench, "mlm")
    for words, code, said in ((["attribute", sequence, "--text", TEXT, "--precision", "int8"], 2, "float32 only"),
                              (["attribute", sequence, "--text", TEXT, "--class", "best"], 2, "no label"),
                              (["attribute", sequence, "--text", TEXT, "--class", "good,best"], 2, "'best' is no label"),
                              (["attribute", sequence, "--text", TEXT, "--class", "good,bad", "--of", "log-probability"], 2, "contrast"),
                              (["attribute", sequence, "--text", TEXT, "--token", "store"], 3, "rtd"),
                              (["attribute", sequence, "--text", TEXT, "--parts", "heads"], 2, "expected words"),
                              (["attribute", sequence, "--text", TEXT, "--ablate", "c2p@all"], 2, "--ablate"),
                              (["attribute", masked, "--text", TEXT], 3, "0 [MASK]"),
                              (["attribute", masked, "--text", MASKED + " [MASK]"], 3, "2 [MASK]"),
                              (["attribute", masked, "--text", MASKED, "--answer", "store house"], 3, "expected one"),
                              (["attribute", model(bench, "token"), "--text", TEXT], 2, "--token"),
                              (["attribute", model(bench, "token"), "--text", TEXT, "--token", "castle"], 3, "no token 'castle'"),
                              (["attribute", model(bench, "token"), "--text", TEXT, "--token", "ashore"], 3, "no token 'ashore'"),
                              (["attribute", model(bench, "token"), "--text", "the house beside the store", "--token", "the"], 3, "'the' 2 times"),
                              (["attribute", masked, "--text", MASKED, "--answer", "the,the"], 2, "one word twice"),
                              (["attribute", sequence, "--text", TEXT, "--class", "good,good"], 2, "one label twice"),
                              (["attribute", sequence, "--text", TEXT, "--class", "good,2"], 2, "one label twice"),
                              (["attribute", model(bench, "qa"), "--text", TEXT], 3, "does not hold")):
        message = run(bench, *words, code=code)[1]
        assert said in message, (words, message)


def test_attribute_draws_one_text(bench):
    run(bench, "attribute", model(bench, "mlm"), "--text", MASKED, "--answer", "the", "--width-mm", 85, "-o", "a.svg", "-o", "a.json", "--json")
    svg, found = open("a.svg", encoding="utf-8").read(), json.load(open("a.json", encoding="utf-8"))
    assert found["answer"]["index"] and "opened" in svg and "c2p" in svg and "the" in svg, svg[:500]
    bench.fine("attribute", DEMO, "--text", MASKED, "--answer", "the", "--steps", "1", "--parts", "words", "-o", "w.svg")  # no bars
    assert "opened" in bench.read("w.svg") and "c2p" not in bench.read("w.svg")
    said = bench.fine("attribute", DEMO, "--text", MASKED + 40 * " the sea", "--answer", "the", "--steps", "1", "--parts", "distances", "--width-mm", "40", "-o", "n.svg").err
    assert "names is written below the bars" in said and "names below the bars one" in " ".join(re.findall(">([^<]*)</text>", bench.read("n.svg"))), said
    text = MASKED + " x"  # two pieces, one of which is a space alone
    found = answers(bench, "attribute", model(bench, "mlm"), "--text", text, "--answer", "the")[0]
    run(bench, "attribute", model(bench, "mlm"), "--text", text, "--answer", "the", "--numbers", "a.csv")
    with open("a.csv", encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    run(bench, "attention", "lines", model(bench, "mlm"), "--text", text, "--numbers", "lines.csv", "-q")
    with open("lines.csv", encoding="utf-8", newline="") as file:
        names = {int(row["key"]): row["key_label"] for row in csv.DictReader(file)}
    assert {int(row["index"]): row["label"] for row in rows if row["part"] == "word"} == names  # tokens have the names of all other tables
    assert {row["part"] for row in rows} == {"word", "position", "token type", "c2p", "p2c"}
    assert abs(sum(float(row["attribution"]) for row in rows) - found["sum"]) < 1e-5 * max(1, abs(found["sum"]))
    message = run(bench, "attribute", model(bench, "sequence"), "--text", TEXT, "--text", TEXT, "-o", "b.svg", code=2)[1]
    assert "one text" in message, message


def test_a_bad_line_keeps_no_text_from_being_drawn(bench):
    """As in `eval`: the bad line is named, and picture and numbers are those of the good one."""
    good = json.dumps({"text": TEXT})
    words = ["attribute", model(bench, "sequence"), "--method", "gradient-input", "--file"]
    run(bench, *words, bench.write("good.jsonl", good + "\n"), "-o", "good.svg", "--numbers", "good.csv")
    for lines in ((good, '{"text": 5}'), ('{"text": 5}', good), ("no object", good, "{}")):
        message = run(bench, *words, bench.write("bad.jsonl", "\n".join(lines) + "\n"), "-o", "bad.svg", "-o", "bad.json", "--numbers", "bad.csv", "--json", code=3)[1]
        assert "line " in message, message
        assert bench.read("bad.csv") == bench.read("good.csv") and "store" in bench.read("bad.svg"), message
        for name in ("bad.csv", "bad.svg", "bad.json"):
            os.remove(name)
    run(bench, *words, bench.write("none.jsonl", '{"text": 5}\n'), "-o", "none.svg", "--numbers", "none.csv", code=3)
    assert not {"none.svg", "none.csv"} & set(bench.files()), bench.files()
