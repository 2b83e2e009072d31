"""fill-mask, detect, classify, tag and answer from the command line, against `encode --logits` and on bad input.

SPDX-License-Identifier: MIT
"""
import json
import math
import os
import pathlib
import select
import shutil
import subprocess

from helpers import DEMO, GOLDEN, Tensor, has_figures, make_model, read_tensors, softmax, write_tensors

CASES = {"mlm": ("33", "spm-unigram", 3001, None), "mlm-v1": ("10", "bpe-v1", 3010, None), "rtd": ("36", "spm-unigram", 3001, None),
         "sequence": ("29", "spm-unigram", 3001, ["bad", "fair", "good"]),
         "token": ("30", "spm-unigram", 3001, ["O", "B-PER", "I-PER", "B-LOC", "I-LOC"]),
         "qa": ("31", "spm-unigram", 3001, None), "misfit": ("29", "spm-unigram", 3001, ["only", "two"]),
         "surplus": ("29", "spm-unigram", 3001, ["one", "too", "many", "names"])}


def model(bench, name):
    if name == "choice":
        return bench.shared(name, lambda path: make_choice_model(path, model(bench, "sequence")))
    return bench.shared(name, lambda path: make_model(path, *CASES[name]))


def run(bench, *words, given=b"", code=0):
    """Runs the program, expects its exit code, returns (stdout, stderr)."""
    return bench.expect(code, *words, stdin=given).strict()


def answers(bench, *words, **keywords):
    """One object for each line of --json."""
    return [json.loads(line) for line in run(bench, *words, "--json", **keywords)[0].splitlines()]


def logits(bench, name, head, *words):
    """Rows of a head for one text, through `encode --logits`."""
    run(bench, "encode", model(bench, name), *words, "--logits", "-o", "logits.safetensors")
    tensor = read_tensors("logits.safetensors")[0]["logits." + head]
    width = tensor.shape[-1] if head != "rtd" else 1
    return [tensor.values[k:k + width] for k in range(0, len(tensor.values), width)]


def near(a, b):
    assert abs(a - b) < 1e-6, f"{a} is not {b}"


# ------------------------------------------------------------------------------------------------------- fill-mask

def test_fill_mask_agrees_with_the_logits(bench):
    text = "a new [MASK] opened beside the new [MASK]"
    for name in ("mlm", "mlm-v1"):
        got = answers(bench, "fill-mask", model(bench, name), "--compare", "--top", 4, "--text", text)[0]
        assert [text[slice(*mask["characters"])] for mask in got["masks"]] == ["[MASK]", "[MASK]"], got
        for decoder, head in (("emd", "mlm_emd"), ("plain", "mlm")):
            rows = logits(bench, name, head, "--text", text)
            for mask in got["masks"]:
                expected = softmax(rows[mask["token"]])
                best = sorted(range(len(expected)), key=lambda k: -expected[k])[:4]
                found = mask["candidates"][decoder]
                assert [c["id"] for c in found] == best, (decoder, found, best)
                for candidate in found:
                    near(candidate["probability"], expected[candidate["id"]])


def test_fill_mask_prefers_the_mask_decoder(bench):
    one = answers(bench, "fill-mask", model(bench, "mlm"), "--text", "[MASK] it")[0]["masks"][0]["candidates"]
    other = answers(bench, "fill-mask", model(bench, "mlm"), "--mlm-decoder", "plain", "--text", "[MASK] it")[0]["masks"][0]["candidates"]
    assert list(one) == ["emd"] and list(other) == ["plain"] and one["emd"] != other["plain"]
    assert len(one["emd"]) == 5


def test_fill_mask_for_a_person(bench):
    out, _ = run(bench, "fill-mask", model(bench, "mlm"), "--compare", "--top", 2, "--text", "the [MASK] of")
    lines = out.splitlines()
    assert lines[0] == "the »[MASK]« of" and lines[1].split() == ["emd", "plain"] and len(lines) == 4, out
    assert len(lines[2].split()) >= 4 and len({len(line.split("  0.")[0]) for line in lines[2:]}) == 1


def test_bad_lines_are_reported_and_the_rest_goes_on(bench):
    lines = [b"one [MASK]", b"", b"no mask", b"   ", b"nul\0 [MASK]", b"\xff [MASK]", b"[MASK] " + b"x " * 1_000_000, b"last [MASK]"]
    path = pathlib.Path("lines.txt")
    path.write_bytes(b"\n".join(lines))
    out, notes = run(bench, "fill-mask", model(bench, "mlm"), "--file", path, "--json", code=3)
    got = [json.loads(line) for line in out.splitlines()]
    assert [g["line"] for g in got] == list(range(1, 9))
    assert [("error" in g) for g in got] == [False, True, True, True, False, False, True, False], got
    for line in (2, 3, 4, 7):
        assert f"lines.txt, line {line}: " in notes, notes
    assert "tokens, but" in got[6]["error"] and "--max-tokens" in got[6]["error"]
    assert "lines.txt, line 6: broken UTF-8 replaced by U+FFFD in 1 place," in notes
    assert "error" not in answers(bench, "fill-mask", model(bench, "mlm"), "--file", path, "--max-tokens", 20, code=3)[6]
    strict = answers(bench, "fill-mask", model(bench, "mlm"), "--strict", "--file", path, code=3)
    assert "UTF-8" in strict[5]["error"], strict[5]
    # the same line alone and in company
    assert answers(bench, "fill-mask", model(bench, "mlm"), "--text", "last [MASK]")[0]["masks"] == got[7]["masks"]


def test_results_do_not_depend_on_batches(bench):
    path = pathlib.Path("many.txt")
    path.write_text("".join(f"{'word ' * (k % 7)}[MASK] number {k}\n" for k in range(70)))
    one = run(bench, "fill-mask", model(bench, "mlm"), "--file", path, "--json")[0]
    assert one == run(bench, "fill-mask", model(bench, "mlm"), "--file", path, "--json", "--batch-tokens", 1)[0]
    assert one == run(bench, "fill-mask", model(bench, "mlm"), "--file", path, "--json", "--threads", 1, "--batch-tokens", 100)[0]


def test_jsonl_input(bench):
    path = pathlib.Path("in.jsonl")
    path.write_text('{"text": "a [MASK]", "id": "x1"}\n{"txt": 1}\nnot json\n{"text": 5}\n\n{"text": "b [MASK]", "id": 7}\n')
    got = answers(bench, "fill-mask", model(bench, "mlm"), "--file", path, code=3)
    assert [g.get("id") for g in got] == ["x1", None, None, None, 7]  # a blank line is none
    assert ["error" in g for g in got] == [False, True, True, True, False] and got[-1]["line"] == 6
    exact = '{"text": "a [MASK]", "id": [0.1234567890123, 12345678901234567890.5]}\n'
    got_exact = answers(bench, "fill-mask", model(bench, "mlm"), "--file", "-", "--jsonl", given=exact.encode())[0]
    assert got_exact["id"] == json.loads(exact)["id"] and got_exact["masks"], got_exact
    for words in (("fill-mask", model(bench, "mlm")), ("classify", model(bench, "sequence")), ("tag", model(bench, "token"), "--json")):
        assert "standard input has no lines" in run(bench, *words, "--file", "-", given=b"", code=3)[1]
    piped = answers(bench, "fill-mask", model(bench, "mlm"), "--file", "-", "--jsonl", given=path.read_bytes(), code=3)
    assert piped[0]["masks"] == got[0]["masks"] and piped[4]["file"] == "standard input"


def test_positions_behind_the_table(bench):
    text = "word " * 70 + "[MASK]"
    assert "position table" in answers(bench, "fill-mask", model(bench, "mlm"), "--text", text, code=3)[0]["error"]
    answers(bench, "fill-mask", model(bench, "mlm"), "--mlm-decoder", "plain", "--text", text)


# ---------------------------------------------------------------------------------------------------------- models

def test_missing_tokenizer_and_heads(bench):
    _, notes = run(bench, "fill-mask", next(GOLDEN.glob("33-*")), "--text", "[MASK]", code=3)
    assert "spm.model" in notes and "tokenizer.json" in notes and "vocab.json" in notes, notes
    _, notes = run(bench, "detect", model(bench, "mlm"), "--text", "x", code=3)
    assert "'rtd'" in notes and "mlm, mlm_emd" in notes, notes
    _, notes = run(bench, "fill-mask", model(bench, "token"), "--text", "[MASK]", code=3)
    assert "'mlm'" in notes and "token" in notes, notes
    counted = pathlib.Path(shutil.copytree(model(bench, "sequence"), bench.path("counted")))
    config = json.loads((counted / "config.json").read_text())
    (counted / "config.json").write_text(json.dumps({**config, "id2label": None, "label2id": None, "num_labels": 2}))
    named, labels = "id2label in config.json", "but the classifier has the labels 0 to 2"
    for name, said in (("misfit", f"{named} does not name the label 2, {labels}"), ("surplus", f"{named} names the label 3, {labels}"),
                       ("counted", "num_labels in config.json is 2, but the classifier has 3 outputs")):
        folder = counted if name == "counted" else model(bench, name)
        for command in (["classify"], ["attribute", "--steps", "2"], *[["attention", "trace", "--mask-word", "1", "-o", "t.pdf"]] * has_figures(bench)):
            _, notes = run(bench, *command, folder, "--text", "x", code=3)
            assert said in notes, notes
        _, notes = run(bench, "report", folder, "--text", "x", "--skip", "receptive-field", "-o", f"{name}.page")
        assert f"the page has no labels of the model: {said}" in notes and f'"no_labels":"{said}' in pathlib.Path(f"{name}.page", "index.html").read_text(), notes
    _, notes = run(bench, "tag", "synthetic:v3-xsmall,layers=1,vocab=100", "--text", "x", code=2)
    assert "no tokenizer" in notes


def test_architecture_without_its_pooler(bench):
    """A sequence classifier without a pooler is an incomplete file, not a token classifier."""
    folder = make_model(pathlib.Path("poolerless"), *CASES["sequence"])
    tensors, _ = read_tensors(folder / "model.safetensors")
    for name in [name for name in tensors if name.startswith("pooler.")]:
        del tensors[name]
    write_tensors(folder / "model.safetensors", tensors)
    config = json.loads((folder / "config.json").read_text())
    for architecture, code in (("DebertaV2ForSequenceClassification", 3), ("DebertaV2ForTokenClassification", 0)):
        (folder / "config.json").write_text(json.dumps(config | {"architectures": [architecture]}))
        _, notes = run(bench, "tag", folder, "--text", "x", code=code)
        assert code == 0 or "pooler.dense.weight" in notes, notes


DAMAGED = [  # tensor, its value of index 1, what is said of it; None: it is used
    ("classifier.bias", math.nan, "value 1 of tensor 'classifier.bias' is nan, expected -1.07374e+09 to 1.07374e+09: weights of the model are damaged"),
    ("classifier.bias", 1e9, None),
    ("encoder.layer.0.intermediate.dense.weight", 1e20, "value 1 of tensor 'encoder.layer.0.intermediate.dense.weight' is 1e+20, expected -1024 to 1024"),
    ("encoder.layer.0.intermediate.dense.bias", math.inf, "value 1 of tensor 'encoder.layer.0.intermediate.dense.bias' is inf"),
    ("encoder.layer.0.attention.output.LayerNorm.weight", -1025, "value 1 of tensor 'encoder.layer.0.attention.output.LayerNorm.weight' is -1025, expected -1024 to 1024"),
    ("encoder.layer.0.output.dense.weight", 1024, None),
    ("encoder.rel_embeddings.weight", math.nan, "value 1 of tensor 'encoder.rel_embeddings.weight' is nan"),
    ("pooler.dense.weight", 1e19, "value 1 of tensor 'pooler.dense.weight' is 1e+19"),
]


def test_damaged_weights(bench):
    """A weight that is no number, or with which a product may overflow, is refused before GELU or a norm can hide it; in low precision too."""
    for row, (name, value, said) in enumerate(DAMAGED):
        folder = make_model(pathlib.Path(f"damaged{row}"), *CASES["sequence"])
        tensors, _ = read_tensors(folder / "model.safetensors")
        full = next(n for n in tensors if n.endswith(name))
        tensors[full].values[1] = value
        write_tensors(folder / "model.safetensors", tensors)
        for precision in ("float32", "int8"):
            out, notes = run(bench, "classify", folder, "--text", "x", "--json", "--precision", precision, code=3 if said else 0)
            assert (out == "" and said in notes) if said else out, (name, out, notes)
        if said:
            out, notes = run(bench, "encode", folder, "--text", "x", "--logits", "-o", "logits.safetensors", code=3)
            assert out == "" and said in notes and not pathlib.Path("logits.safetensors").exists(), (out, notes)
    # rows of the word table stay in the file, and are checked where a text has them
    folder = make_model(pathlib.Path("words"), *CASES["sequence"])
    tensors, _ = read_tensors(folder / "model.safetensors")
    words = next(tensor for name, tensor in tensors.items() if name.endswith("word_embeddings.weight"))
    words.values[7 * words.shape[1]] = 1e30
    write_tensors(folder / "model.safetensors", tensors)
    run(bench, "encode", folder, "--ids", "1,3,2", "-o", "fine.safetensors")
    for precision in ("float32", "int16"):
        said = run(bench, "encode", folder, "--ids", "1,7,2", "-o", "x.safetensors", "--precision", precision, code=3)[1]
        assert f"value {7 * words.shape[1]} of tensor 'embeddings.word_embeddings.weight' is 1e+30" in said, said
    assert "is 1e+30" in run(bench, "pack", folder, "--precision", "int8", code=3)[1]


# ---------------------------------------------------------------------------------------------------------- detect

def test_detect(bench):
    text = "the cook ate the house"
    got = answers(bench, "detect", model(bench, "rtd"), "--text", text)[0]["tokens"]
    rows = logits(bench, "rtd", "rtd", "--text", text)
    assert len(got) == len(rows) - 2
    for token in got:
        near(token["probability"], 1 / (1 + math.exp(-rows[token["index"]][0])))
        assert token["replaced"] == (token["probability"] > 0.5)
    top = answers(bench, "detect", model(bench, "rtd"), "--top", 2, "--text", text)[0]["tokens"]
    assert [t["index"] for t in top] == [t["index"] for t in sorted(got, key=lambda t: -t["probability"])[:2]]
    assert "".join(text[slice(*t["characters"])] for t in got) == text.replace(" ", "")
    out, _ = run(bench, "detect", model(bench, "rtd"), "--top", 1, "--text", text)
    assert "»" + text[slice(*top[0]["characters"])] + "«" in out
    assert answers(bench, "detect", model(bench, "rtd"), "--text", "  ")[0]["tokens"] == []
    assert "nothing above 1" in run(bench, "detect", model(bench, "rtd"), "--threshold", 1, "--text", text)[0]


# -------------------------------------------------------------------------------------------------------- classify

def test_classify(bench):
    rows = logits(bench, "sequence", "sequence", "--text", "one", "--pair", "two")
    got = answers(bench, "classify", model(bench, "sequence"), "--text", "one", "--pair", "two")[0]["labels"]
    expected = softmax(rows[0])
    assert [g["label"] for g in got] == [["bad", "fair", "good"][k] for k in sorted(range(3), key=lambda k: -expected[k])]
    for g in got:
        near(g["probability"], expected[g["index"]])
    several = answers(bench, "classify", model(bench, "sequence"), "--multi-label", "--text", "one", "--pair", "two", "--top", 2)[0]["labels"]
    assert len(several) == 2
    for g in several:
        near(g["probability"], 1 / (1 + math.exp(-rows[0][g["index"]])))
    assert len(answers(bench, "classify", model(bench, "sequence"), "--text", "", "--text", " ")) == 2
    out, _ = run(bench, "classify", model(bench, "sequence"), "--text", "a\tb\x1b[31m")
    assert out.startswith("a·b·[31m\n  0."), out


def make_choice_model(path, sequence_model):
    """The classifier of the sequence model with one of its rows."""
    folder = pathlib.Path(shutil.copytree(sequence_model, path))
    tensors, _ = read_tensors(folder / "model.safetensors")
    for name in ("classifier.weight", "classifier.bias"):
        whole = tensors[name]
        tensors[name] = Tensor("F32", (1, *whole.shape[1:]), whole.values[:len(whole.values) // whole.shape[0]])
    write_tensors(folder / "model.safetensors", tensors)
    config = json.loads((folder / "config.json").read_text())
    config.pop("id2label")
    config["architectures"] = ["DebertaV2ForMultipleChoice"]
    (folder / "config.json").write_text(json.dumps(config))


def test_choices(bench):
    """Scores of each choice alone, and the softmax over them."""
    choices = ["went in", "boiled over", "", "a longer one than all the others"]
    words = [word for choice in choices for word in ("--choice", choice)]
    texts = ["she opened the door and", "two"]
    got = answers(bench, "classify", model(bench, "choice"), "--text", texts[0], "--text", texts[1], *words, "--batch-tokens", 20)
    assert len(got) == 2
    for text, line in zip(texts, got):
        scores = [logits(bench, "choice", "sequence", "--text", text, "--pair", choice)[0][0] for choice in choices]
        expected = softmax(scores)
        assert [c["index"] for c in line["choices"]] == sorted(range(4), key=lambda k: -expected[k])
        for found in line["choices"]:
            assert found["choice"] == choices[found["index"]]
            near(found["score"], scores[found["index"]])
            near(found["probability"], expected[found["index"]])
    best = got[1]["choices"][0]
    said = bench.fine("classify", model(bench, "choice"), "--text", "two", *words).err
    assert said.count("text 1: choice 2 is empty: special tokens alone stand for it") == 1, said
    assert run(bench, "classify", model(bench, "choice"), "--text", "two", *words, "--top", 1)[0] == f"two\n  {best['probability']:.3f}  {best['choice']}\n"
    lines = answers(bench, "classify", model(bench, "choice"), "--file", "-", *words, given=b"two\n" + b"x " * 16383 + b"\ntwo\n", code=3)
    assert lines[0]["choices"] == lines[2]["choices"] == got[1]["choices"] and "with choice 0" in lines[1]["error"], lines[1]
    objects = [{"id": 7, "text": "two", "choices": choices, "label": 1}, {"text": "two"}, {"text": "two", "choices": None}, {"text": "two", "choices": choices[::-1]},
               *({"text": "two", **wrong} for wrong in ({"choices": ["a"]}, {"choices": "a, b"}, {"choices": ["a", 3]}, {"choices": ["a", "b\0"]}, {"choices": choices, "pair": "a"}))]
    given = "".join(json.dumps(one) + "\n" for one in objects).encode()
    lines = answers(bench, "classify", model(bench, "choice"), "--file", "-", "--jsonl", given=given, code=3)
    assert lines[0]["id"] == 7 and lines[0]["choices"] == got[1]["choices"] and set(lines[1]) == {"line", "file", "score", "probability"}, lines[:2]
    for at in range(2):
        broken = [word for k in range(2) for word in ("--choice", b"\xff" if k == at else "a story")]
        said = bench.expect(3, "classify", model(bench, "choice"), "--strict", "--text", "two", *broken).err
        assert f"text 1: with choice {at}: " in said and "UTF-8" in said, said
    said = bench.fine("classify", model(bench, "choice"), "--text", "two", "--text", "three").err
    assert said.count("is a model for multiple choice") == 1 and "--choice" in said, said
    assert "multiple choice" not in bench.fine("classify", model(bench, "choice"), "--text", "two", *words).err + bench.fine("classify", DEMO, "--text", "two").err
    assert lines[2] == {**lines[1], "line": 3} and sorted(c["score"] for c in lines[3]["choices"]) == sorted(c["score"] for c in got[1]["choices"]), lines[3]
    assert all("choices" in line["error"] for line in lines[4:]) and len(lines) == 9 and "a pair" in lines[8]["error"], lines[4:]
    out, err = run(bench, "classify", model(bench, "choice"), "--file", "-", "--jsonl", "--top", 1, given=given.splitlines()[0])
    assert out == f"two\n  {best['probability']:.3f}  {best['choice']}\n" and err.endswith("note: standard input: keys not used: label\n") and "line 1: choice 2 is empty" in err, out + err
    other = answers(bench, "classify", model(bench, "sequence"), "--file", "-", "--jsonl", given=given, code=3)
    assert "a single output, and this one has 3" in other[0]["error"] and "labels" in other[1] and "labels" in other[2], other[:3]
    assert "3 outputs" in run(bench, "classify", model(bench, "sequence"), "--text", "a", *words, code=3)[1]
    assert "at least two" in run(bench, "classify", model(bench, "choice"), "--text", "a", *words[:2], code=2)[1]
    assert "--pair" in run(bench, "classify", model(bench, "choice"), "--text", "a", "--pair", "b", *words, code=2)[1]


def test_answers_as_lines_come(bench):
    """A writer that waits for the answer of each line gets it, from a pipe and from a named pipe, with any --batch-tokens."""
    pipe = bench.path("pipe")
    os.mkfifo(pipe)
    for more, place in (([], "-"), (["--batch-tokens", 1], "-"), (["--json"], "-"), (["--json"], pipe)):
        with bench.start("classify", DEMO, "--file", place, *more, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as program:
            given = program.stdin if place == "-" else open(pipe, "wb")
            for text in (b"a ship\n", b"the house\n"):
                given.write(text)
                given.flush()
                assert select.select([program.stdout], [], [], 60)[0], f"no answer to {text}"
                assert os.read(program.stdout.fileno(), 1 << 16)
            given.close()
            program.stdin.close()
            assert program.wait() == 0


# ------------------------------------------------------------------------------------------------------------- tag

def expected_entities(text, names, tokens):
    """Grouping written again, from the tokens of --grouping none, every token for itself."""
    found, open_type = [], None
    for token in tokens:
        label = token["labels"][0]["label"]
        prefix, _, kind = label.partition("-")
        if token["characters"][0] == token["characters"][1]:
            continue
        if label == "O":
            open_type = None
        elif prefix == "I" and open_type == kind:
            found[-1][1] = token["characters"][1]
        else:
            found.append([token["characters"][0], token["characters"][1], kind])
            open_type = kind
    return found


def test_tag(bench):
    names = CASES["token"][3]
    text = "Ada Lovelace went to London, and Mary stayed behind in the old house of Zürich."
    rows = logits(bench, "token", "token", "--text", text)
    tokens = answers(bench, "tag", model(bench, "token"), "--grouping", "none", "--top", 5, "--text", text)[0]["tokens"]
    assert len(tokens) == len(rows) - 2
    for token, row in zip(tokens, rows[1:-1]):
        for label, probability in zip(names, softmax(row)):
            near(next(x["probability"] for x in token["labels"] if x["label"] == label), probability)
    entities = answers(bench, "tag", model(bench, "token"), "--grouping", "simple", "--text", text)[0]["entities"]
    assert [[*e["characters"], e["label"]] for e in entities] == expected_entities(text, names, tokens)
    assert all(e["text"] == text[slice(*e["characters"])] for e in entities)
    words = answers(bench, "tag", model(bench, "token"), "--text", text)[0]["entities"]
    starts = {0} | {k + 1 for k, c in enumerate(text) if c in " ,."} | {k for k, c in enumerate(text) if c in ",."}
    assert words and all(e["characters"][0] in starts for e in words), words
    assert len(answers(bench, "tag", model(bench, "token"), "--top", 1, "--text", text)[0]["entities"]) == 1
    assert answers(bench, "tag", model(bench, "token"), "--text", "")[0]["entities"] == []
    out, _ = run(bench, "tag", model(bench, "token"), "--text", text)
    assert out.splitlines()[0].replace("»", "").replace("«", "") == text and "»" in out, out


# ---------------------------------------------------------------------------------------------------------- answer

def test_answer(bench):
    question, context = "Where was she born?", "Ada – the countess – was born in London ☃ in 1815."
    rows = logits(bench, "qa", "qa", "--text", question, "--pair", context)
    listing = json.loads(run(bench, "tokenize", model(bench, "qa"), "--json", "--text", question, "--pair", context)[0])
    inside = [t for t in range(len(rows)) if listing["type_ids"][t] == 1 and listing["offsets"][t]]
    kept = [0] + inside
    begin, end = (softmax([rows[t][side] for t in kept]) for side in (0, 1))
    places = [(lambda first, last: (last - len(context[first:last].lstrip()), last))(*listing["offsets"][t]) for t in inside]
    full = [k for k, (first, last) in enumerate(places) if first < last]
    assert 0 < len(full) < len(inside), "some tokens are empty"
    # An empty token's begin is that of the next full one, its end that of the one before.
    begins = {k: sum(begin[j + 1] for j in range(max([f for f in full if f < k], default=-1) + 1, k + 1)) for k in full}
    ends = {k: sum(end[j + 1] for j in range(k, min([f for f in full if f > k], default=len(inside)))) for k in full}
    spans = [(begins[b] * ends[e], -b, -e) for b in full for e in full if b <= e < b + 6]
    spans.sort(reverse=True)
    got = answers(bench, "answer", model(bench, "qa"), "--question", question, "--context", context, "--max-answer", 6, "--top", 4)[0]
    near(got["no_answer"], begin[0] * end[0])
    for found, (probability, b, e) in zip(got["answers"], spans):
        near(found["probability"], probability)
        where = slice(listing["offsets"][inside[-b]][0], listing["offsets"][inside[-e]][1])
        assert found["text"] == context[where].lstrip(), (found, context[where])
        assert found["text"] == context[slice(*found["characters"])]
        assert found["text"].encode() == context.encode()[slice(*found["bytes"])]
    bundled = pathlib.Path(DEMO).parent / "answers"
    for context, most in (("x", 1), ("北京 saw it", 6), ("a  ☃ b", 6)):  # a lone piece "▁" is no place of its own
        every = answers(bench, "answer", bundled, "--question", "Who?", "--context", context, "--top", 1000)[0]["answers"]
        assert len(every) == len({one["text"] for one in every}) == most and all(one["text"].strip() == one["text"] != "" for one in every), every
    out, _ = run(bench, "answer", model(bench, "qa"), "--question", question, "--question", "Who?", "--context", context)
    assert "(no answer)" in out or got["no_answer"] < got["answers"][-1]["probability"]
    assert out.count(question) == 1 and out.count("Who?") == 1
    assert "no tokens" in answers(bench, "answer", model(bench, "qa"), "--question", "x", "--context", " ", code=3)[0]["error"]
    out, _ = run(bench, "answer", bundled, "--question", "Who?", "--context", "x", "--max-tokens", 5)
    assert out.endswith("(no answer)\n"), out  # the only token of the context that is left is empty
    run(bench, "answer", model(bench, "qa"), "--question", "x", code=2)


def test_answer_from_a_file(bench):
    path = pathlib.Path("questions.jsonl")
    path.write_text('{"question": "a?", "context": "b c d", "id": 1}\n{"question": "a?"}\n')
    got = answers(bench, "answer", model(bench, "qa"), "--file", path, code=3)
    assert len(got[0]["answers"]) == 3 and "context" in got[1]["error"]
    plain = pathlib.Path("questions.txt")
    plain.write_text("a?\n")
    assert ".jsonl" in answers(bench, "answer", model(bench, "qa"), "--file", plain, code=3)[0]["error"]


# ---------------------------------------------------------------------------------------------------------- output

def test_out_is_whole_or_absent(bench):
    path = pathlib.Path("out.jsonl")
    run(bench, "classify", model(bench, "sequence"), "--text", "x", "--json", "-o", path)
    assert json.loads(path.read_text())["labels"]
    run(bench, "classify", model(bench, "sequence"), "--text", "x", "-o", pathlib.Path("no") / "where", code=4)


def test_both_models_of_rtd(bench):
    """Microsoft's file of a generator and a discriminator, with its difference of tables: the discriminator, as if it were alone."""
    alone, other = model(bench, "rtd"), model(bench, "mlm")
    config, tensors = json.loads((alone / "config.json").read_text()), read_tensors(alone / "model.safetensors")[0]
    both = {f"discriminator.{name}": tensor for name, tensor in tensors.items()}
    both |= {f"generator.{name}": tensor for name, tensor in read_tensors(other / "model.safetensors")[0].items()}
    table = "discriminator.deberta.embeddings.word_embeddings.weight"
    both[table.replace(".weight", "._weight")] = both[table]
    pair = {"generator": json.loads((other / "config.json").read_text()), "discriminator": config, "embedding_sharing": "gdes"}

    def folder(name, about, held):
        path = pathlib.Path(bench.path(name))
        shutil.copytree(alone, path)
        (path / "config.json").write_text(json.dumps(about))
        write_tensors(path / "model.safetensors", held)
        return path
    words = ["detect", "--text", "the old sailor sold silver spoons", "--json"]
    expected = json.loads(run(bench, words[0], alone, *words[1:])[0])
    for name, held in (("pair", both), ("module", {f"module.{name}": tensor for name, tensor in both.items()})):
        found = json.loads(run(bench, words[0], folder(name, pair, held), *words[1:])[0])
        assert str(found).replace(str(bench.path(name)), "") == str(expected).replace(str(alone), ""), (found, expected)
    _, told = run(bench, words[0], folder("plain", config, both), *words[1:], code=3)
    assert "holds a generator and a discriminator, but config.json describes one model" in told, told
    _, told = run(bench, words[0], folder("delta", pair, {name: tensor for name, tensor in both.items() if name != table}), *words[1:], code=3)
    assert "._weight' is only the difference to a generator's table" in told, told
