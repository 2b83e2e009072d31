"""One set of texts in every form gives the same bytes, or a refusal that names the form; no key of an object is passed over in silence.
SPDX-License-Identifier: MIT
"""
import json
import os
import random

from helpers import DEMO, contains, equal

QUICK = bool(os.environ.get("DEBERTA_TEST_QUICK"))
KEYS = 25
SEED = 46
WORDS = "a new store opened beside the mall old captain house sea number seven red boat ä 日本 it's , .".split()
EXTRA = {"idx": 3, "source": "web", "meta": {"url": "x"}, "timestamp": "2020", "score": 0.5, "label": 1}
COMMANDS = (["tokenize", "--json"], ["encode", "--pool", "mean"], ["classify", "--json"])

# What objects of published data sets hold, and how such keys are misspelt.
FOUND = """idx ID Id index guid uid uuid _id doc_id sentence sentence1 sentence2 sentence_1 sentence_2 sentenceA sentence_a sentence_b Sentence2 text1 text2
text_1 text_2 text_a text_b textA textB text_pair pair Pair PAIR text-pair textPair Text TEXT hypothesis premise Hypothesis question question1 question2
context answer answers passage passages query document documents title summary abstract body content article paragraph url domain source target lang
language meta metadata timestamp date author user score rating stars label labels Label LABEL label_text gold_label gold annotator annotations tags
ner_tags pos_tags chunk_tags tokens words token lemmas upos deps head choices choice options endings candidates correct answer_start start end span
spans entities entity relation relations input_ids attention_mask attention_masks mask Mask input_mask attn_mask padding_mask token_type_ids
token_type_id token_types segment_ids position_ids position_id positions special_tokens_mask offset_mapping offsets length overflow_to_sample_mapping
word_ids input inputs output outputs prompt completion response instruction messages role conversation turn speaker utterance sent1 sent2 string1
string2 claim evidence reference references hypothesis_id premise_id pairID pair_id pairs text_pairs texts second_text first_text sample_id example_id
review reviews helpful verified asin product_id category genre topic intent slot slots domain_label fold split set version license copyright perplexity
quality toxicity severe_toxicity obscene threat insult identity_hate sentiment polarity aspect emotion emotions stance veracity explanation rationale
rationale_tokens weight weights prob probs logits confidence num_tokens n_tokens token_count char_count word_count md5 sha1 hash dump file_path
warc_id __index_level_0__ level region country year month views likes retweets image image_id caption audio duration bbox code docstring func_name
repo path size stars_count""".split()


def drawn_text(draw):
    return " ".join(draw.choices(WORDS, k=draw.randint(1, 9)))


def objects(texts, more=lambda k: {}):
    return "".join(json.dumps({"text": text, **more(k)}, ensure_ascii=k % 2 == 0) + "\n" for k, text in enumerate(texts))


def forms(texts):
    """(name of the file, its content, read from standard input, more options, what the note says)."""
    lines = "".join(text + "\n" for text in texts)
    return [("x.txt", lines, False, [], ""), ("crlf.txt", lines.replace("\n", "\r\n"), False, [], ""), ("mark.txt", "\ufeff" + lines, False, [], ""),
            ("cut.txt", lines[:-1], False, [], ""), ("x.jsonl", objects(texts), False, [], ""), ("x.json", objects(texts), False, [], ""),
            ("x.ndjson", objects(texts), False, [], ""), ("x.jl", objects(texts), False, [], ""), ("o.txt", objects(texts), False, [], "read as objects"),
            ("x.tsv", lines, False, [], "one text here"), ("o.log", objects(texts), False, ["--jsonl"], ""), ("-", lines, True, [], ""),
            ("-", objects(texts), True, [], "read as objects"), ("mark.jsonl", "\ufeff" + objects(texts), False, [], ""),
            ("crlf.json", objects(texts).replace("\n", "\r\n"), False, [], ""),
            ("more.jsonl", objects(texts, lambda k: EXTRA), False, [], "keys not used: idx, source"),
            ("array.json", json.dumps([{"text": t} for t in texts]), False, [], None), ("array.txt", json.dumps([{"text": t} for t in texts], indent=1), False, [], None),
            ("-", json.dumps([{"text": t} for t in texts]), True, [], None), ("names.tsv", "text\n" + lines, False, [], None)]


def answer(bench, model, command, form):
    name, content, standard, options, _note = form
    options = [] if command[0] == "tokenize" else options  # the first line tells there
    if not standard:
        bench.write(name, content.encode())
    out = ["-o", "out.npy"] if command[0] == "encode" else []
    said = bench.run(command[0], model, *command[1:], "--file", name, *options, *out, **({"stdin": content.encode()} if standard else {}))
    if said.code:
        return said, None
    if out:
        return said, bench.bytes("out.npy")
    return said, [{key: value for key, value in json.loads(line).items() if key != "file"} for line in said.out.splitlines()]


def test_one_text_set_every_form(bench):
    """Every form through every command; cases_text_forms.py draws others."""
    draw = random.Random(SEED)
    texts = [drawn_text(draw) for _ in range(4)]
    for command in COMMANDS:
        first, *others = forms(texts)
        right = answer(bench, DEMO, command, first)[1]
        for form in others:
            said, found = answer(bench, DEMO, command, form)
            if form[4] is None:
                assert said.code == 3 and ("array" in said.err or "names columns" in said.err), (form[0], said.describe())
            else:
                assert found == right and form[4] in said.err, (form[0], said.describe())


def test_one_more_key(bench):
    """Equal with a note, or refused by name."""
    draw = random.Random(SEED)
    bench.write("plain.jsonl", '{"text": "a new store"}\n')
    plain = bench.fine("tokenize", DEMO, "--file", "plain.jsonl", "--json").out
    names = FOUND if not QUICK else draw.sample(FOUND, KEYS)
    assert len(set(FOUND)) >= 200, len(set(FOUND))
    for name in names:
        bench.write("key.jsonl", json.dumps({"text": "a new store", name: "the old sea"}) + "\n")
        said = bench.run("tokenize", DEMO, "--file", "key.jsonl", "--json")
        if said.code:
            assert name in said.err, (SEED, name, said.describe())
        elif name in ("pair", "text_pair"):
            assert said.out != plain and not said.err, said.describe()
        else:
            assert said.out == plain and f"keys not used: {name}" in said.err, (SEED, name, said.describe())
    for name in ("sentence2", "hypothesis", "text_b", "passage", "mask", "attention_masks", "position_id", "ID", "Pair"):
        bench.write("key.jsonl", json.dumps({"text": "a new store", name: "the old sea"}) + "\n")
        contains(bench.expect(3, "tokenize", DEMO, "--file", "key.jsonl").err, name, "looks like")


def test_names_of_a_pair(bench):
    found = []
    for key in ("pair", "text_pair"):
        bench.write("p.jsonl", json.dumps({"text": "a new store", key: "the sea"}) + "\n")
        found.append(bench.fine("tokenize", DEMO, "--file", "p.jsonl", "--json").out)
    assert found[0] == found[1]
    bench.write("p.jsonl", '{"text": "a", "pair": "b", "text_pair": "c"}\n')
    contains(bench.expect(3, "tokenize", DEMO, "--file", "p.jsonl").err, "both \"pair\" and \"text_pair\"")


def test_training_reads_objects(bench):
    """Weights are those of the lines; a text with line breaks is a document; another key is named."""
    texts = [f"the old captain number {k} opened a store" for k in range(12)]
    bench.write("c.txt", "".join(t + "\n" for t in texts[:4]) + "\n" + "".join(t + "\n" for t in texts[4:8]) + "\n" + "".join(t + "\n" for t in texts[8:]))
    bench.write("c.jsonl", objects([*texts[:4], "\n".join(texts[4:8]) + "\n", *texts[8:]], lambda k: {"url": k}))
    weights = []
    for kind in ("txt", "jsonl"):
        name = "c." + kind
        said = bench.fine("train", "mlm", DEMO, "--file", name, "--eval", name, "--steps", "1", "--sequence-tokens", "16", "--batch-sequences", "4", "-t", "1", "-o", "m-" + kind)
        assert ("keys not used: url" in said.err) == (name == "c.jsonl"), said.describe()
        weights.append(bench.bytes(f"m-{kind}/model.safetensors"))
        bench.fine("train", "tokenizer", "--file", name, "--vocabulary", "34", "--width", "32", "--depth", "1", "--head-count", "1", "-o", "t-" + kind)
    assert weights[0] == weights[1]
    assert bench.bytes("t-txt/spm.model") == bench.bytes("t-jsonl/spm.model")
    bench.write("no.jsonl", '{"content": "a"}\n')
    contains(bench.expect(3, "train", "mlm", DEMO, "--file", "no.jsonl", "--steps", "1", "-o", "no").err, "no key \"text\"", "\"content\"")
    bench.write("null.jsonl", '{"text": null}\n')
    for words in (("train", "mlm", DEMO, "--file", "null.jsonl", "--steps", "1", "-o", "no"), ("classify", DEMO, "--file", "null.jsonl")):
        contains(bench.expect(3, *words).err, "line 1: the value of \"text\" is ")  # the key is there


def test_names_in_batches(bench):
    batch = {"input_ids": [[1, 442, 2, 0]]}
    for name in ("mask", "attention_masks", "position_id", "note"):
        bench.write("b.json", json.dumps({**batch, name: [[1, 1, 1, 0]]}))
        contains(bench.expect(3, "encode", DEMO, "--input", "b.json", "-o", "b.safetensors").err, f"'{name}' is no part")
    for name in ("special_tokens_mask", "labels", "length"):
        bench.write("b.json", json.dumps({**batch, name: [[1, 1, 1, 0]]}))
        bench.fine("encode", DEMO, "--input", "b.json", "-o", "b.safetensors")


def test_other_formats_are_named(bench):
    for content, word in ((b"PAR1\x15\x04", "Parquet"), (b"ARROW1\0\0", "Arrow"), (b"\xff\xff\xff\xff\x10\0\0\0", "Arrow"), ("a b".encode("utf-16"), "UTF-16")):
        bench.write("x.txt", content * 9)
        contains(bench.expect(3, "tokenize", DEMO, "--file", "x.txt").err, word)


def test_carriage_returns_end_no_line(bench):
    """A text whose lines end in CR alone would be one long line."""
    bench.write("x.txt", "a new store\rthe old mall\r")
    for arguments in (("tokenize", DEMO), ("classify", DEMO), ("train", "mlm", DEMO, "--steps", "1", "--out", "run")):
        contains(bench.expect(3, *arguments, "--file", "x.txt").err, "x.txt: its first line has carriage returns before its end")
    bench.write("x.txt", "a new store\r\nthe old mall\r\n")
    equal(len(bench.fine("classify", DEMO, "--file", "x.txt", "--json").out.splitlines()), 2)


def test_texts_without_tokens_are_named(bench):
    """Of an empty text, a blank line and an empty second text, special tokens alone are answered for."""
    bench.write("x.txt", "a store\n\n \nthe mall\n")
    for arguments in (("classify", DEMO), ("encode", DEMO, "--pool", "mean", "-o", "x.npy"), ("tokenize", DEMO)):
        for given, found in ((("--text", ""), ("text 1: the text is empty",)), (("--text", "a"), ())) if arguments[0] != "encode" else ():
            err = bench.fine(*arguments, *given).err
            contains(err, *found)
            equal(err.count("is empty: special tokens alone stand for it"), len(found), err)
        equal(bench.fine(*arguments, "--file", "x.txt").err.count("the text is empty: special tokens alone stand for it"), 2, arguments[0])
    contains(bench.fine("classify", DEMO, "--text", "a", "--pair", "").err, "text 1: the second text is empty")


def test_a_summary_counts_what_was_used(bench):
    bench.write("x.jsonl", '{"text": "a"}\n{"x": 1}\n{"text": "b"}\n')
    contains(bench.fine("encode", DEMO, "--file", "x.jsonl", "--pool", "mean", "--skip-bad", "-o", "x.npy").err, "2 texts (1 more cannot be used), ")
    contains(bench.fine("encode", DEMO, "--text", "a", "--pool", "mean", "-o", "y.npy").err, "1 text, ")


def test_a_mask_that_was_cut_away(bench):
    text = "a store " * 9 + "[MASK]"
    err = bench.expect(3, "fill-mask", DEMO, "--text", text, "--max-tokens", "8").err
    contains(err, "--max-tokens cuts the text before its first [MASK]")
    contains(bench.expect(3, "attribute", DEMO, "--head", "mlm", "--text", text, "--max-tokens", "8").err, "the text as it was cut has 0 [MASK]")


def test_answers_of_an_ablated_model_say_so(bench):
    bench.write("x.tsv", "Moby-Dick\tthe ship\nDracula\tthe castle\n")
    for arguments in (("classify", DEMO, "--text", "a ship"), ("fill-mask", DEMO, "--text", "a [MASK]"), ("eval", DEMO, "x.tsv")):
        whole, cut = (json.loads(bench.fine(*arguments, "--json", *more).out) for more in ((), ("--ablate", "c2p@all")))
        assert "ablate" not in whole and cut["ablate"] == "c2p@all", arguments
    contains(bench.fine("eval", DEMO, "x.tsv", "--ablate", "c2p@all").out, "ablated: c2p@all")
