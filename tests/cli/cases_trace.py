"""`attention trace`: its numbers against the same patches made through `encode`-like ways, ways to corrupt a text, and what it refuses.
SPDX-License-Identifier: MIT
"""
import json
import math
import os
import random

from helpers import DEMO, Picture, check_message, make_model, needs_figures

REQUIRES = (needs_figures,)
DISCRIMINATOR = os.path.join(os.path.dirname(DEMO), "discriminator")
TEXT, OTHER = "the boys near the store [MASK] here", "the boy near the store [MASK] here"
BASE = ("--text", TEXT, "--corrupted", OTHER, "--answer", "were,was")
MADE_UP = "synthetic:v3-base,layers=2,hidden=64,heads=2,intermediate=64,vocab=97,buckets=16,distance=40,lm=1,seed={}"


def traced(bench, *arguments, model=DEMO):
    return json.loads(bench.fine("attention", "trace", model, *arguments, "--json").out)


def logits(bench, text, words):
    """Of the words at [MASK], up to a constant: by fill-mask, another program."""
    found = json.loads(bench.fine("fill-mask", DEMO, "--text", text, "--top", "1000", "--json").out)["masks"][0]["candidates"]["emd"]
    by_text = {one["text"]: math.log(one["probability"]) for one in found}
    return [by_text[word] for word in words]


def test_both_runs_are_those_of_fill_mask(bench):
    found = traced(bench, *BASE)
    for name, text in (("clean", TEXT), ("corrupted", OTHER)):
        were, was = logits(bench, text, ("were", "was"))
        assert abs(found[name] - (were - was)) < 1e-4, (name, found[name], were - was)
    probability = traced(bench, "--text", TEXT, "--corrupted", OTHER, "--answer", "was", "--what", "states")
    assert abs(math.log(probability["clean"]) - logits(bench, TEXT, ("was",))[0]) < 1e-4


def test_what_must_be(bench):
    """The changed token of H[0] restores all, the others nothing; H[L] is not read by the decoder; both directions are of the same runs."""
    found, back = traced(bench, *BASE), traced(bench, *BASE, "--direction", "corrupt")
    assert [abs(one - (place == 2)) < 1e-6 for place, one in enumerate(found["shares"]["states"][0])] == [True] * 9
    assert found["shares"]["states"][-1] == [None] * 9 and len(found["shares"]["states"]) == 6
    assert (found["clean"], found["corrupted"]) == (back["clean"], back["corrupted"])
    assert abs(back["shares"]["states"][0][2] - 1) < 1e-6
    for name in ("heads", "c2c", "c2p", "p2c"):
        assert len(found["shares"][name]) == 5 and all(len(row) == 3 for row in found["shares"][name])
        for row, shares in zip(found["measures"][name], found["shares"][name]):
            for one, share in zip(row, shares):
                assert abs((one - found["corrupted"]) / (found["clean"] - found["corrupted"]) - share) < 1e-6
    assert abs(found["shares"]["together"]["heads"] - 1) < 1e-5  # the decoder's queries at [MASK] are of the same tokens
    plain = traced(bench, *BASE, "--mlm-decoder", "plain", "--what", "states")["shares"]["states"][-1]
    assert abs(plain[6] - 1) < 1e-6 and max(map(abs, plain[:6] + plain[7:])) < 1e-6


def test_layers_and_heads(bench):
    whole, part = traced(bench, *BASE), traced(bench, *BASE, "--layers", "1,3", "--heads", "2")
    for name in ("heads", "c2p"):
        for layer in range(5):
            for head in range(3):
                chosen = layer in (1, 3) and head == 2
                assert part["measures"][name][layer][head] == (whole["measures"][name][layer][head] if chosen else None)
    assert part["measures"]["together"] == {} and traced(bench, *BASE, "--isa", "scalar", "-t", "1") == whole


def test_states_are_inputs_of_the_chosen_layers(bench):
    """--layers names the numbers of the axis; where nothing says what is asked, a text with one [MASK] asks for its word."""
    whole, some, last = (traced(bench, "--text", TEXT, "--corrupted", OTHER, "--what", "states", *more) for more in ((), ("--layers", "1,4"), ("--layers", "4")))
    assert whole["answer"]["head"] == "mlm_emd", whole["answer"]
    for found, chosen in ((some, (1, 4)), (last, (4,))):
        assert [layer for layer, row in enumerate(found["measures"]["states"]) if row[0] is not None] == list(chosen), found["measures"]["states"]
        assert all(found["measures"]["states"][layer] == whole["measures"]["states"][layer] for layer in chosen)
    assert traced(bench, "--text", "the boys sat here", "--corrupted", "the boy sat here", "--what", "states")["answer"]["head"] == "sequence"


def test_ways_to_corrupt(bench):
    swapped = traced(bench, "--text", TEXT, "--swap", "boys,store", "--answer", "were,was", "--what", "states")
    assert swapped["corrupted_tokens"] == traced(bench, "--text", TEXT, "--corrupted", "the store near the boys [MASK] here", "--answer", "were,was",
                                                 "--what", "states")["corrupted_tokens"]
    masked = traced(bench, "--text", TEXT, "--mask-word", "boys", "--answer", "were,was", "--what", "states")
    assert masked["corrupted_tokens"][2] == "[MASK]" and masked == {**traced(bench, "--text", TEXT, "--mask-word", "2", "--answer", "were,was", "--what", "states"),
                                                                    "corruption": masked["corruption"]}
    noisy = [traced(bench, "--text", TEXT, "--noise", "boys", "--answer", "were,was", "--what", "states", "--seed", seed) for seed in ("1", "1", "2")]
    assert noisy[0] == noisy[1] and noisy[0]["corrupted"] != noisy[2]["corrupted"] and noisy[0]["clean"] == swapped["clean"]
    assert abs(noisy[0]["shares"]["states"][0][2] - 1) < 1e-6


def test_drawn_ids(bench):
    """Texts of ids, of drawn models and lengths: whatever is corrupted, all places of H[0] that differ are what there is to bring back."""
    draw = random.Random(20)
    for case in range(4):
        ids = [draw.randrange(97) for _ in range(draw.choice((2, 5, 17)))]
        place, at = draw.randrange(len(ids)), draw.randrange(len(ids))
        other = [*ids[:place], (ids[place] + 1 + draw.randrange(90)) % 97, *ids[place + 1:]]
        found = traced(bench, "--ids", ",".join(map(str, ids)), "--corrupted", ",".join(map(str, other)), "--at", str(at), "--answer", "5,6",
                       model=MADE_UP.format(case))
        for token, share in enumerate(found["shares"]["states"][0]):
            assert abs(share - (token == place)) < 1e-5, (case, token, share)


def test_figure_and_numbers(bench):
    for width in ("85", "174"):
        bench.fine("attention", "trace", DEMO, *BASE, "--width-mm", width, "--dpi", "60", "-o", "t.png", "-o", "t.pdf", "--numbers", "t.csv", "--latex", "t.tex")
        assert Picture.read(bench.path("t.png")).width > 50
    found, lines = traced(bench, *BASE), bench.table("t.csv")
    assert len(lines) == 5 * 9 + 5 * 3 * 4
    for line in lines:
        assert abs(found["shares"][line["term"] or line["part"]][int(line["layer"])][int(line["index"])] - float(line["share"])) < 1e-6
    assert "comes back" in bench.read("t.tex")
    for more, shown in ((["--token-range", "1:3"], range(1, 3)), (["--drop-special"], (1, 2, 3, 4, 5, 7))):
        said = bench.fine("attention", "trace", DEMO, *BASE, *more, "--numbers", "t.csv", "--json")
        states = [line for line in lines if line["part"] != "states" or int(line["index"]) in shown]
        assert bench.table("t.csv") == states and len(json.loads(said.out)["tokens"]) == 9 and "--json has all 9 tokens" in said.err, said.describe()


def test_labels_with_commas(bench):
    """A label is found by its whole name, by "LABEL_<k>" where it has none, or by its number."""
    folder = bench.path("named")
    os.mkdir(folder)
    for name in os.listdir(DEMO):
        if name != "config.json":
            os.symlink(os.path.join(DEMO, name), os.path.join(folder, name))
    config = bench.load(os.path.join(DEMO, "config.json"))
    labels = {str(k): f"book {k}, volume {k + 1}" for k in range(len(config["id2label"]))}
    for given, asked in ((labels, ["book 3, volume 4", "book 5, volume 6"]), (None, ["LABEL_3", "LABEL_5"]), (labels, ["3", "book 5, volume 6"])):
        config["id2label"] = given
        config = {name: value for name, value in config.items() if value is not None and name not in ("label2id", "num_labels")}
        bench.write("named/config.json", json.dumps(config if given else {**config, "num_labels": len(labels)}))
        found = [traced(bench, "--text", "the boys sat here", "--corrupted", "the boy sat here", "--what", "states", "--class", one, model=folder)["answer"]
                 for one in (asked[0], ",".join(asked))]
        assert [one["column"] for one in found] == [3, 3] and found[1]["contrast_column"] == 5, found


def test_refusals(bench):
    def refused(sentence, *arguments, model=DEMO, status=2):
        check_message(bench.run("attention", "trace", model, *arguments, "--json"), status, [sentence])
    refused("the corrupted text has 10 tokens and the clean one 9", "--text", TEXT, "--corrupted", "the old boy near the store [MASK] here", "--answer", "were")
    refused("both texts give nearly the same answer", "--text", TEXT, "--corrupted", TEXT, "--answer", "were,was", status=3)
    refused("expected one way to corrupt the text, found 0", "--text", TEXT, "--answer", "were")
    refused("tokens in the place of [MASK]", "--text", TEXT, "--mask-word", "boys", "--answer", "antidisestablishment", status=3)
    refused("the text has 0 [MASK]", "--text", "the boys", "--mask-word", "boys", "--answer", "were", status=3)
    refused("no head that fills [MASK]", "--ids", "1,5,2", "--corrupted", "1,6,2", model="synthetic:v3-xsmall,layers=1,vocab=100,hidden=64,heads=1", status=3)
    for text, answer in (("the boys", "were"), (TEXT, "antidisestablishment")):  # a text or a model without the answer is bad input for every command
        assert bench.run("attribute", DEMO, "--text", text, "--head", "mlm", "--answer", answer).code == 3
    refused("the word 'girl' is 0 times in the text", "--text", TEXT, "--mask-word", "girl", "--answer", "were")
    refused("'the' is 2 times in the text", "--text", TEXT, "--mask-word", "the", "--answer", "were")
    refused("one word twice", "--text", TEXT, "--mask-word", "boys", "--answer", "were,were")
    refused("one label twice", "--text", "the boys", "--mask-word", "boys", "--class", "3,3")
    refused("expected two words", "--text", TEXT, "--swap", "boys", "--answer", "were")
    refused("--what states,heads", *BASE, "--precision", "int8")
    assert traced(bench, *BASE, "--precision", "int8", "--what", "states,heads")["shares"]["states"][0][2] == 1


def test_words_that_a_cut_took(bench):
    """A word counts where all its tokens are left; one that was cut off is told from one that is not there, for traces and attributions alike."""
    text = "the boy said that a new [MASK] opened beside the old mall and the girls were happy about all of it"
    base = ("--text", text, "--what", "states", "--layers", "0")
    words = [piece.lstrip("\u2581") for piece in json.loads(bench.fine("tokenize", DEMO, "--text", text, "--json").out)["tokens"]]
    mall = words.index("old") + 1
    assert words.index("and") > mall + 1, "the word mall is of several pieces"
    for limit, word, *ways in ((mall, "girls", ("--swap", "boy,girls"), ("--noise", "boy,girls"), ("--mask-word", "girls")),
                               (mall + 2, "mall", ("--swap", "boy,mall"), ("--noise", "mall"), ("--mask-word", "mall"))):
        for way in ways:
            check_message(bench.run("attention", "trace", DEMO, *base, *way, "--quiet", "--max-tokens", str(limit), "--json"), 2,
                          [way[0], f"the word '{word}' is in the part of the text that --max-tokens cuts: {limit} tokens are left"])
        said = bench.run("attribute", DISCRIMINATOR, "--text", text, "--head", "rtd", "--token", word, "--quiet", "--max-tokens", str(limit))
        check_message(said, 3, [f"the word '{word}' is in the part"])
    check_message(bench.run("attention", "trace", DEMO, *base, "--mask-word", "ship", "--quiet", "--max-tokens", "12", "--json"), 2, ["the word 'ship' is 0 times in the text"])
    pair = ("--text", "the boy sat", "--pair", "a [MASK] and the girls near the old mall", "--what", "states", "--layers", "0", "--quiet", "--max-tokens", "10", "--json")
    check_message(bench.run("attention", "trace", DEMO, *pair, "--mask-word", "girls"), 2, ["'girls' is in the part of the text that --max-tokens cuts"])
    cut = json.loads(bench.fine("attention", "trace", DEMO, *pair, "--mask-word", "boy").out)["corrupted_tokens"]
    assert [place for place, name in enumerate(cut) if name == "[MASK]"] == [2, 6], cut
    twice = traced(bench, "--text", "the boy saw a [MASK] and the boy sat", "--mask-word", "boy", "--quiet", "--max-tokens", "8", "--what", "states", "--layers", "0")
    assert twice["corrupted_tokens"][2] == "[MASK]", "the model sees the word once"
    check_message(bench.run("attention", "trace", DEMO, "--text", text, "--mask-word", "boy", "--answer", "store", "--quiet", "--max-tokens", "6", "--json"), 3, ["the text as it was cut has 0 [MASK]"])
    for more, noted in (((), True), (("--class", "1"), False)):
        said = bench.fine("attention", "trace", DEMO, *base, "--mask-word", "boy", "--max-tokens", "6", *more, "--json").err
        assert ("--max-tokens cuts the text before its [MASK]: its label is followed" in said) == noted, said


def test_a_cut_hides_no_pieces(bench):
    """An answer of several pieces at the last token that is left, and a corrupted text whose places have moved."""
    for command in (("attention", "trace", DEMO, "--swap", "1,2", "--json"), ("attribute", DEMO)):
        said = bench.run(*command, "--text", "the old [MASK] told a story", "--quiet", "--max-tokens", "5", "--answer", "mall")
        check_message(said, 3, ["mall", "2 tokens"])
    check_message(bench.run("attention", "trace", DEMO, "--text", "the old [MASK] told a story", "--corrupted", "the mall [MASK] told a story", "--quiet", "--max-tokens", "6", "--json"), 2,
                  ["the corrupted text has 9 tokens and the clean one 8"])


def test_a_character_of_several_tokens(bench):
    """Of a character that is spelled in bytes every token belongs to the word, and it is no word of one token."""
    folder = bench.shared("bytes", lambda path: make_model(path, "33", "spm-bytefallback", 3001))
    for text, places in (("a \U0001f600 b [MASK]", [3, 4, 5, 6]), ("\U0001f600 b [MASK]", [2, 3, 4, 5])):
        found = traced(bench, "--text", text, "--mask-word", "\U0001f600", "--at", "1", "--what", "states", "--layers", "0", model=folder)
        masks = [place for place, name in enumerate(found["corrupted_tokens"]) if name == "[MASK]"]
        assert masks[:-1] == places, (masks, found["corrupted_tokens"])
    check_message(bench.run("attention", "trace", folder, "--text", "a [MASK] b", "--mask-word", "b", "--answer", "\U0001f600", "--json"), 3, ["is 4 tokens in the place of [MASK]"])
    assert traced(bench, "--text", "a \U0001f600 b [MASK]", "--mask-word", "b", "--at", "1", "--what", "states", "--layers", "0", model=folder)["corrupted_tokens"].count("[MASK]") == 2


def test_digits_are_a_word_of_a_text(bench):
    """The answer "5" is the word, as for attributions; of ids it is an id."""
    text = "there were [MASK] boys near the store"
    base = ("--mask-word", "boys", "--what", "states", "--layers", "0")
    found = traced(bench, "--text", text, *base, "--answer", "5")
    told = json.loads(bench.fine("attribute", DEMO, "--text", text, "--answer", "5", "--of", "log-probability", "--steps", "1", "--json").out)
    assert found["answer"]["column"] == told["answer"]["index"] != 5, (found["answer"], told["answer"])
    assert abs(math.log(found["clean"]) - told["value"]) < 1e-5
    ids = json.loads(bench.fine("tokenize", DEMO, "--text", text, "--json").out)["ids"]
    other = [*ids[:2], 77, *ids[3:]]
    of_ids = traced(bench, "--ids", ",".join(map(str, ids)), "--corrupted", ",".join(map(str, other)), "--at", "3", "--answer", "5", "--what", "states", "--layers", "0")
    assert of_ids["answer"]["column"] == 5, of_ids["answer"]
    check_message(bench.run("attention", "trace", DEMO, "--text", text, *base, "--at", "0", "--answer", "5", "--json"), 2, ["no word can stand there", "--ids"])


def test_a_small_difference_is_noted(bench):
    """Shares of a difference of a few percent are mostly noise, and a note says so; of a large one none does."""
    for other, noted in (("the boys near the store [MASK] there", True), (OTHER, False)):
        said = bench.fine("attention", "trace", DEMO, "--text", TEXT, "--corrupted", other, "--answer", "were,was", "--what", "heads", "--json").err
        assert ("differ by less than 5 %" in said) == noted, said


def test_options_of_parts_left_out(bench):
    """States have no heads, heads no tokens: what chooses among them is named, and neither sentence nor provenance speaks of it."""
    def drawn(*arguments):
        err = bench.fine("attention", "trace", DEMO, *BASE, *arguments, "-o", "part.svg").err
        return [word for word in ("--heads:", "--token-range:", "--drop-special:") if "note: " + word in err], bench.read("part.svg")

    for what in ("heads", "terms", "heads,terms"):
        named, figure = drawn("--what", what, "--token-range", "0:5", "--drop-special", "--heads", "1")
        assert named == ["--token-range:", "--drop-special:"], (what, named)
        assert "Tokens 0 to 4" not in figure and "pecial tokens" not in figure and 'key="Heads">1<' in figure
    named, figure = drawn("--what", "states", "--token-range", "0:5", "--drop-special", "--heads", "1")
    assert named == ["--heads:"] and "Tokens 0 to 4" in figure and 'key="Heads"' not in figure, named
    assert drawn("--token-range", "0:5", "--drop-special", "--heads", "1")[0] == []
