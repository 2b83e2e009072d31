"""The package beside the golden results, the program and wrong use. SPDX-License-Identifier: MIT"""
import copy
import gc
import json
import os
import pickle
import re
import shutil
import subprocess
import sys
import threading
import time
import warnings
import weakref

import numpy as np
import pytest

import deberta_c
from deberta_c import _inputs, _program
from conftest import DEMO, GOLDEN, ROOT, program_json, read_safetensors, refuses, resident_kib
from helpers import make_model

sys.path.insert(0, str(ROOT / "tools"))
from rivals import python_costs  # noqa: E402

MOST = sys.maxsize  # of what counts something
TEXTS = ["a new store opened beside the mall", "Call me Ishmael.", "It was the best of times, it was the worst of times", "Zoë"]


@pytest.mark.parametrize("case", sorted(p.name for p in GOLDEN.iterdir() if (p / "expected.safetensors").exists()))
def test_golden(case):
    """Every quantity that the case has, by its own name, where tokens are real."""
    expected = read_safetensors(GOLDEN / case / "expected.safetensors")
    info = json.loads((GOLDEN / case / "config.json").read_text())
    with deberta_c.Model(GOLDEN / case, reference="hf") as model:
        found = model.encode({k: expected[k] for k in ("input_ids", "attention_mask", "token_type_ids") if k in expected},
                             hidden="all", attention="all", components="all", logits=True)
    real = expected.get("attention_mask", np.ones_like(expected["input_ids"])).astype(bool)
    compared = 0
    for name, values in found.items():
        if name not in expected or values.shape != expected[name].shape:
            continue
        exact = expected[name]
        rows = real if values.shape[:2] == real.shape else np.ones(len(real), bool)
        if name.startswith("attn."):
            both = real[:, None, :, None] & real[:, None, None, :]
            values, exact, rows = np.where(both, values, 0), np.where(both, exact, 0), np.ones(len(real), bool)
        assert np.abs(values[rows] - exact[rows]).max() < 3e-5 * max(1, np.abs(exact[rows]).max()), name
        compared += 1
    assert compared >= info["num_hidden_layers"] + 1


def test_bits_of_program(demo, tmp_path):
    """The same bits as in the program's file, for one text and for several of unequal lengths."""
    for texts in ([TEXTS[0]], TEXTS):
        path = tmp_path / "states.safetensors"
        words = [word for text in texts for word in ("--text", text)]
        subprocess.run([deberta_c._program.PROGRAM, "encode", DEMO, *words, "--hidden", "all", "--attention-layers", "all",
                        "--component-layers", "0,2", "--logits", "-o", path], check=True)
        stored = read_safetensors(path)
        found = demo.encode(texts, hidden="all", attention="all", components=[(l, h) for l in (0, 2) for h in range(3)], logits=True)
        assert set(found) == set(stored) - {"input_ids", "attention_mask"}
        for name, values in found.items():
            for k, one in enumerate(values):
                assert np.array_equal(one, stored[name][(k, *tuple(slice(0, size) for size in one.shape))]), name


@pytest.mark.parametrize("precision", ["int16", "int8"])
def test_precision(precision, demo, tmp_path):
    """Low precision is the program's, bit for bit, and near float32."""
    path = tmp_path / "states.safetensors"
    subprocess.run([deberta_c._program.PROGRAM, "encode", DEMO, "--text", TEXTS[0], "--precision", precision, "-o", path], check=True)
    with deberta_c.Model(DEMO, precision=precision) as model:
        found = model.encode(TEXTS[0])["hidden_states.5"]
        assert model.info["precision"] == model.precision == precision
        assert repr(model.share(threads=1)) == f"deberta_c.Model({DEMO!r}, precision={precision!r}, threads=1)"
    assert np.array_equal(found[0], read_safetensors(path)["hidden_states.5"][0])
    exact = demo.encode(TEXTS[0])["hidden_states.5"]
    error = np.linalg.norm(found - exact) / np.linalg.norm(exact)
    assert 0 < error < {"int16": 5e-4, "int8": 5e-2}[precision]
    refuses(deberta_c.Error, "precision: expected 'float32', 'int16' or 'int8', found 'int4'", deberta_c.Model, DEMO, precision="int4")


def test_batches_are_the_same_bits(demo):
    one_by_one = [demo.encode(text)["hidden_states.5"][0] for text in TEXTS]
    for tokens in (1, 9, 2048):
        assert all(np.array_equal(a, b) for a, b in zip(one_by_one, demo.encode(TEXTS, batch_tokens=tokens)["hidden_states.5"]))
    assert demo.encode([TEXTS[1], TEXTS[1]])["hidden_states.5"].shape == (2, *one_by_one[1].shape)


def test_chosen_heads(demo):
    whole = demo.encode(TEXTS[0], components="all")
    some = demo.encode(TEXTS[0], hidden=None, components=[(3, 2), (1, 0), (3, 0), (3, 2)])  # in the order asked for, with repeats
    assert set(some) == {f"attn.{layer}.{term}" for layer in (1, 3) for term in ("c2c", "c2p", "p2c", "logits")}
    for name, values in some.items():
        assert np.array_equal(values, whole[name][:, [2, 0, 2] if ".3." in name else [0]])
    one, listed = (demo.encode(TEXTS[0], hidden=None, attention=layers) for layers in (np.int64(2), [2]))
    assert list(one) == list(listed) == ["attn.2.probs"] and np.array_equal(*one.values(), *listed.values())


def test_ids_in_every_shape(demo):
    tokens = demo.tokenize(TEXTS[0])
    expected = demo.encode(TEXTS[0])["hidden_states.5"]
    strided = np.zeros(2 * len(tokens.ids), np.int64)[::2]
    strided[:] = tokens.ids
    columns = np.asfortranarray(np.stack([tokens.ids, tokens.ids]).astype(np.int64))[:1]  # neighbours of a row are not neighbours in memory
    fixed = tokens.ids.copy()
    fixed.setflags(write=False)
    for ids in (columns, fixed, tokens.ids.astype(">i4"), tokens.ids, tokens.ids.tolist(), tokens.ids.astype(np.uint16), strided, [tokens.ids], tokens.ids[None].astype(np.int64),
                {"input_ids": tokens.ids[None], "attention_mask": np.ones((1, len(tokens.ids)), np.int64)}):
        assert np.array_equal(demo.encode(ids)["hidden_states.5"], expected)
    assert tokens.tokens[0] == "[CLS]" and demo.detokenize(tokens.ids) == TEXTS[0]
    assert [TEXTS[0][b:e].strip() for b, e in tokens.characters][1] == "a"


def test_contiguous_ids_are_not_copied(demo):
    from deberta_c import _inputs

    ids = np.array([1, 11, 442, 2], np.int32)
    assert _inputs.batch_of_ids(ids).ids is ids
    types = np.zeros(4, np.int32)
    assert _inputs.batch_of_ids(ids, types).token_types is types


def answers_of(command, *options):
    found = program_json(command, *options)
    return [{k: v for k, v in one.items() if k != "line"} for one in found]


def close(a, b):
    if isinstance(a, dict):
        return set(a) == set(b) and all(close(a[k], b[k]) for k in a)
    if isinstance(a, list):
        return len(a) == len(b) and all(map(close, a, b))
    return abs(a - b) < 1e-9 if isinstance(a, float) else a == b


def test_tasks_are_the_program_s(demo):
    masked = "a new [MASK] opened beside the new [MASK]"
    (expected,) = answers_of("fill-mask", DEMO, "--text", masked, "--compare")
    for decoder in ("emd", "plain"):
        found = demo.fill_mask(masked, decoder=decoder)
        assert found["decoder"] == decoder and demo.fill_mask(masked)["decoder"] == "emd"
        for one, other in zip(found["masks"], expected["masks"]):
            assert close({**one, "candidates": None}, {**other, "candidates": None})
            assert close(one["candidates"], other["candidates"][decoder])
    assert close(demo.fill_mask(masked), demo.fill_mask(masked, decoder="emd"))
    masks = demo.fill_mask(("a [MASK] b", "  ☃  [MASK]"), top=1)["masks"]
    assert [(m["segment"], *m["characters"]) for m in masks] == [(0, 2, 8), (1, 5, 11)]
    assert close(demo.classify(TEXTS), answers_of("classify", DEMO, *[w for t in TEXTS for w in ("--text", t)]))
    assert close([demo.classify(TEXTS[0], multi_label=True, top=99)], answers_of("classify", DEMO, "--text", TEXTS[0], "--multi-label", "--top", "99"))
    assert demo.labels[7] == "Moby-Dick"


def test_logits_of_any_iterable():
    """Names of heads from a generator or an array, beside a mask, are those of a list."""
    ids = np.array([[1, 291, 269, 262, 362, 4378, 2]])
    with deberta_c.Model(DEMO, threads=1) as model:
        for beside in ({}, {"mask": np.array([[1, 1, 1, 1, 1, 1, 0]])}, {"position_ids": np.arange(7)[None]}):
            expected = model.encode(ids, logits=["mlm", "sequence"], **beside)
            assert {"logits.mlm", "logits.sequence"} <= set(expected)
            for names in ((name for name in ("mlm", "sequence")), np.array(["mlm", "sequence"])):
                found = model.encode(ids, logits=names, **beside)
                assert set(found) == set(expected) and all(np.array_equal(found[name], expected[name]) for name in found)


def test_what_a_cut_takes_is_not_called_empty():
    with deberta_c.Model(DEMO, threads=1) as model:
        for pair, limit, words in ((("a b c", "d"), 4, "max_tokens cuts all of the second text: special"), (("a", ""), None, "the second text is empty"),
                                   (("", "d"), None, "the text is empty")):
            with pytest.warns(deberta_c.NoteWarning, match=words):
                model.tokenize(pair, max_tokens=limit)


def test_padding_is_the_library_s(tmp_path):
    """Also where config.json has another name for it."""
    place = tmp_path / "padded"
    shutil.copytree(DEMO, place, ignore=shutil.ignore_patterns("*.packed"))
    config = json.loads((place / "config.json").read_text())
    del config["pad_token_id"]
    (place / "config.json").write_text(json.dumps({**config, "padding_idx": 3}))
    with deberta_c.Model(place, threads=1) as model:
        assert model.info["padding_id"] == 3
        with pytest.warns(deberta_c.NoteWarning, match="id 3, which is padding"):
            model.encode([[1, 291, 3]])
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            model.encode([[1, 291, 0]])


def test_names_beside_ids_are_the_program_s():
    """What a mapping may have beside its inputs stands in one list of the library, and here again."""
    header = (ROOT / "core/io/record_keys.h").read_text().replace("\\\n", "")
    lists = {name: set(re.findall(r'X\("([^"]+)"\)', text)) for name, text in re.findall(r"#define (BATCH_\w+)\(X\)(.*)", header)}
    assert _inputs.BESIDE | set(_inputs.ASIDE) | {"input_ids"} == lists["BATCH_KEYS"] | lists["BATCH_BESIDE"]
    assert set(_inputs.RESULTS) == lists["BATCH_RESULTS"]


def test_heads_alone_and_whole():
    """A model whose heads alone have been asked leaves rows of the last layer out; one that has encoded is whole, and stays so. Same bits."""
    asked = {"classify": TEXTS, "fill_mask": ["a new [MASK] opened beside the [MASK]", "Call me [MASK]."]}
    for precision in ("float32", "int16", "int8"):
        with deberta_c.Model(DEMO, threads=1, precision=precision) as heads, deberta_c.Model(DEMO, threads=1, precision=precision) as whole:
            rows = whole.encode(TEXTS)["hidden_states.5"]
            plain = whole.classify(TEXTS)
            for name, texts in asked.items():
                assert getattr(heads, name)(texts) == getattr(whole, name)(texts), (precision, name)
            assert heads.fill_mask(asked["fill_mask"], decoder="plain") == whole.fill_mask(asked["fill_mask"], decoder="plain")
            assert heads.threads == 1 and heads.isa == whole.isa
            assert not heads._session._is_whole and whole._session._is_whole
            with heads.ablate("c2p=mean@4"), whole.ablate("c2p=mean@4"):  # means of all queries
                assert heads.classify(TEXTS) == whole.classify(TEXTS) != plain
            assert all(np.array_equal(a, b) for a, b in zip(heads.encode(TEXTS)["hidden_states.5"], rows)) and heads._session._is_whole
            session = heads._session._session
            heads.classify(TEXTS)
            assert heads._session._session is session


def shape(value):
    """Names of the members, at every depth; of a list that of its first element."""
    return {k: shape(v) for k, v in value.items()} if isinstance(value, dict) else [shape(value[0])] if isinstance(value, list) and value else None


def test_answers_have_the_keys_of_the_program_s():
    """What docs/python.md says of these calls: the members of the commands' objects but `line` and `precision`, and fill_mask names its decoder."""
    asked = (("fill_mask", DEMO, ["a new [MASK] opened"], ["--text"]), ("classify", DEMO, ["a new store"], ["--text"]),
             ("classify", DEMO, [("a new store", "it opened")], ["--text", "--pair"]), ("tag", ROOT / "models" / "tags", ["Come in, Tom."], ["--text"]),
             ("detect", ROOT / "models" / "discriminator", ["He took the letter."], ["--text"]),
             ("answer", ROOT / "models" / "answers", ["Who opened the door?", "Tom opened the door."], ["--question", "--context"]))
    for method, folder, given, options in asked:
        words = given[0] if isinstance(given[0], tuple) else given
        (said,) = answers_of(method.replace("_", "-"), folder, *[word for pair in zip(options, words) for word in pair])
        with deberta_c.Model(folder, threads=1) as model:
            found = getattr(model, method)(*given)
        if method == "fill_mask":
            name = found.pop("decoder")
            for one in said["masks"]:
                assert list(one["candidates"]) == [name], one
                one["candidates"] = one["candidates"][name]
        assert shape(found) == shape(said) and list(found) == list(said), (method, found, said)


def test_tag_answer_detect_are_the_program_s(tmp_path):
    texts = ["Ada Lovelace, of London, met Zoë Babbage's friends (in Turin) twice.", "a new store"]
    words = [w for t in texts for w in ("--text", t)]
    folder = str(make_model(tmp_path / "tag", "30", "spm-unigram", 3001, ["O", "B-PER", "I-PER", "B-LOC", "I-LOC"]))
    with deberta_c.Model(folder) as model:
        for grouping in ("first", "simple"):
            found = model.tag(texts, grouping=grouping)
            assert close(found, answers_of("tag", folder, *words, "--grouping", grouping)) and found[0]["entities"]
        for pairs in (("'Come' said he", "'Go' said I"), ["a", ("a", "b " * 999)]):
            refuses(deberta_c.ArgumentError, "tag takes no pairs", model.tag, pairs)
    folder = str(make_model(tmp_path / "detect", "36", "spm-unigram", 3001))
    with deberta_c.Model(folder) as model:
        assert close(model.detect(texts), answers_of("detect", folder, *words))
        tokens = model.detect(("a new store", "Zoë " * 20 + "went"))["tokens"]  # the second text is longer than the first
        assert [t["segment"] for t in tokens] == sorted(t["segment"] for t in tokens) and tokens[0]["segment"] == 0
        assert tokens[-1]["segment"] == 1 and tokens[-1]["characters"][1] == 84 and tokens[-1]["bytes"][1] == 104
    folder = str(make_model(tmp_path / "answer", "31", "spm-unigram", 3001))
    with deberta_c.Model(folder) as model:
        (expected,) = answers_of("answer", folder, "--question", texts[1], "--context", texts[0])
        assert close(model.answer(texts[1], texts[0]), expected)
        refuses(deberta_c.ArgumentError, "the context holds no tokens", model.answer, "who?", "")
        refuses(deberta_c.ArgumentError, "the question holds no tokens", model.answer, "", texts[0])
        refuses(deberta_c.ArgumentError, "the question holds no tokens", model.answer, " ", texts[0])
        for option in ("top", "max_answer"):  # a negative count would be a huge one, behind the end of what is filled
            for value in (-1, 0):
                refuses(deberta_c.ArgumentError, f"{option}: expected a number from 1 to {MOST}, found {value}", model.answer, texts[1], texts[0], **{option: value})
        assert len(model.answer(texts[1], texts[0], top=1 << 40)["answers"]) >= len(expected["answers"])


def test_ablation(demo):
    full = demo.encode(TEXTS[0], components=[(3, 1)])
    with demo.ablate("c2p@3:1"):
        without = demo.encode(TEXTS[0], components=[(3, 1)])
        assert not without["attn.3.c2p"].any() and not np.array_equal(without["hidden_states.5"], full["hidden_states.5"])
        with demo.ablate("c2c=mean@0"):
            assert not np.array_equal(demo.encode(TEXTS[0])["hidden_states.5"], without["hidden_states.5"])
        assert np.array_equal(demo.encode(TEXTS[0])["hidden_states.5"], without["hidden_states.5"])
    assert np.array_equal(demo.encode(TEXTS[0])["hidden_states.5"], full["hidden_states.5"])
    for wrong in (3, None, ["c2p@3:1"], "", "rubbish", "c2p", "c2p@x", "p2p@1", "c2p@99", "c2p@0:9"):
        refuses(deberta_c.Error, ".", demo.ablate, wrong)  # at the call, before any block is entered
    assert np.array_equal(demo.encode(TEXTS[0])["hidden_states.5"], full["hidden_states.5"])


def test_what_follows_an_ablation(demo):
    """A field is measured without the terms that are out; what would be whole in silence is refused."""
    given = {"influence": True, "influence_tokens": 24, "influence_sources": 1}
    whole, asked = demo.receptive_field(**given), demo.receptive_field(**given, ablate="c2p@all")
    with demo.ablate("c2p@all"):
        assert demo.receptive_field(**given)["influence"] == asked["influence"] != whole["influence"]
        assert demo.receptive_field()["composed"] == whole["composed"]
        for call, words in ((demo.share, "share() first"), (lambda: deberta_c.bench(demo, tokens=4), "remove()")):
            with pytest.raises(deberta_c.UnsupportedError, match=re.escape(words)):
                call()
    with demo.share() as other, other.ablate("c2p@all"):
        assert not demo.ablated
    with deberta_c.Model(DEMO, layers=2, threads=1) as cut, pytest.raises(deberta_c.UnsupportedError, match="open it without layers="):
        cut.receptive_field()
    with deberta_c.Model(DEMO, precision="int8", threads=1) as coarse:
        assert coarse.receptive_field()["composed"] == whole["composed"]
        with pytest.raises(deberta_c.UnsupportedError, match="measured in float32"):
            coarse.receptive_field(**given)


def test_ablations_of_the_model_and_of_a_call(demo):
    """Both hold together, under any name of the option, also where the model is subtracted."""
    text = "The old [MASK] told the boys a story about the sea."
    given = {"mask_word": "old", "what": "states", "layers": 0, "answer": "man", "threads": 1}
    both = deberta_c._program.trace(DEMO, text, ablate="c2p@0,p2c@0", **given)["clean"]
    figure = {"layers": 2, "heads": 0, "components": "logits", "threads": 1}
    drawn = lambda model, **more: deberta_c._program._drawing(deberta_c.attention_figure(model, "a new store", anonymous=True, **figure, **more).svg)
    field = {"influence": True, "influence_tokens": 24, "influence_sources": 1}
    with demo.ablate("c2p@0"):
        values = [demo.trace(text, **given)["clean"]] + [demo.trace(text, **more, **given)["clean"] for more in ({"ablate": "p2c@0"}, {"ablate_": ["p2c@0"]})]
        assert values[1] == values[2] == both != values[0], (values, both)
        assert drawn(demo, ablate="p2c@0") == drawn(DEMO, ablate="c2p@0,p2c@0") != drawn(demo)
        assert demo.receptive_field(ablate="p2c@0", **field)["influence"] == deberta_c._program.json_of("receptive-field", DEMO, ablate="c2p@0,p2c@0", **field)["influence"]
        assert drawn(DEMO, kind="difference", minus=demo, minus_ablate=["p2c@0"]) == drawn(DEMO, kind="difference", minus=DEMO, minus_ablate="c2p@0,p2c@0")
    refuses(deberta_c.ArgumentError, "ablate: is given twice, also as ablate_", demo.trace, text, ablate="c2p@0", ablate_="p2c@0", **given)


def test_ablation_without_a_block(demo):
    """It holds from the call on, as a hook of PyTorch does, and each is removed by itself."""
    def last():
        return demo.encode(TEXTS[0])["hidden_states.5"].tobytes()

    full, states = last(), {}
    for terms in ("c2p@3:1", "c2c=mean@0"):
        with demo.ablate(terms) as model:
            assert model is demo and demo.ablated == terms
            states[terms] = last()
    one, two = demo.ablate("c2p@3:1"), demo.ablate(" c2c=mean@0 ")
    assert demo.ablated == "c2p@3:1,c2c=mean@0" and demo.ablated in repr(one) and last() not in (full, *states.values())
    one.remove()
    assert demo.ablated == "c2c=mean@0" and last() == states["c2c=mean@0"] and "c2p@3:1 was removed" in repr(one)
    one.remove()
    with two, one:
        assert demo.ablated == "c2c=mean@0,c2p@3:1"
        refuses(deberta_c.ArgumentError, "entered already", one.__enter__)
    assert demo.ablated == "" and last() == full
    with deberta_c.Model(DEMO, threads=1) as model:
        kept = model.ablate("c2p@0")
    kept.remove()
    model = deberta_c.Model(DEMO, threads=1)
    model.ablate("c2p@0")
    gone = weakref.ref(model)
    del model
    assert gone() is None, "a model keeps no handle of its own, so that its memory is freed with it"


def test_program_rows_and_figures():
    (row,) = deberta_c.bench(DEMO, tokens=16, threads=1, reps=3, no_peak=True)
    assert row["n"] == 16 and len(row["samples_s"]) == 3
    figure = deberta_c.attention_figure(DEMO, "a <new> store", layers=2, heads=0)
    assert figure._repr_svg_().startswith("<?xml") and figure._repr_html_().startswith('<figure aria-label="attention of: a &lt;new&gt; store"><svg')
    with deberta_c.Model(DEMO) as model:
        assert model.receptive_field()["schema"] == "deberta-receptive-field/1"
    with deberta_c.Model(DEMO, reference="microsoft") as model:  # the rule that the model was opened with, not the config's
        assert [model.receptive_field(**given)["config"]["reference"] for given in ({}, {"reference": "hf"})] == ["microsoft", "hf"]
    refuses(deberta_c.ArgumentError, "unknown option", deberta_c.bench, DEMO, nonsense=1)
    refuses(deberta_c.Error, "nowhere", deberta_c.bench, "nowhere")


def test_program_figure_of_an_open_model(demo):
    """The figure of a Model is that of what it computes: its precision, and what it is without."""
    def svg(model, **options):
        figure = deberta_c.attention_figure(model, TEXTS[0], layers=2, heads=0, anonymous=True, **options)._repr_svg_()
        return re.sub(r"<metadata.*?</metadata>", "", figure, flags=re.S)

    plain = svg(DEMO)
    assert svg(demo) == plain
    with demo.ablate("c2c=mean@0, p2c@1"), demo.ablate("c2p@1:2"):
        assert svg(demo) == svg(DEMO, ablate="c2c=mean@0,p2c@1,c2p@1:2") != plain
    assert svg(demo) == plain
    with deberta_c.Model(DEMO, precision="int8", threads=1) as model:
        assert svg(model) == svg(DEMO, precision="int8") != plain
        assert svg(model, precision="float32") == plain
        (row,) = deberta_c.bench(model, tokens=4, reps=1, no_peak=True)
        assert (row["precision"], row["threads"], row["layers"]) == ("int8", 1, 5)
    with deberta_c.Model(DEMO, layers=2) as model:
        (row,) = deberta_c.bench(model, tokens=4, reps=1, no_peak=True)
        assert row["layers"] == 2
        refuses(deberta_c.UnsupportedError, "opened with its first layers only", svg, model)


def test_program_figure_of_the_manual(tmp_path, monkeypatch):
    """The example of docs/python.md as it stands there."""
    (example,) = [code for code in re.findall(r"```python\n(.*?)```", (ROOT / "docs" / "python.md").read_text(), re.S)
                  if "attention_figure" in code]
    (tmp_path / "models").symlink_to(ROOT / "models")
    monkeypatch.chdir(tmp_path)
    exec(example, {})
    (made,) = tmp_path.glob("*.svg")
    (asked,) = re.findall(r"width_mm=(\d+)", example)
    assert f' width="{asked}mm"' in made.read_text()


# ------------------------------------------------------------------------------------------------------------ wrong use

ROW = "expected one row of integers for each text, found"
WRONG = [
    ([1, 2.5], f"ids: {ROW} 1 dimensions of type float64"), (np.array([[1.0]]), f"{ROW} 1 dimensions of type float64"), (["a", 3], "found int"),
    ([], "the batch is empty"), ([[]], "sequence 0 is empty"), (np.zeros(0, np.int32), "sequence 0 is empty"),
    (np.zeros((0, 4), np.int32), "the batch is empty"), (np.zeros((2, 0), np.int64), "sequence 0 is empty"), ([[1, 2], []], "sequence 1 is empty"),
    ([1, 6000, 2], "id 6000 at token 1"), ([-1], "id -1 at token 0"), ([1, 1 << 40], f"{1 << 40} at token 1 does not fit into int32"),
    (np.array([1, 1 << 63], np.uint64), "does not fit into int32"), (np.zeros((1, 2, 3), np.int32), f"{ROW} 2 dimensions of type int32"),
    (np.array(7), "expected texts or ids, found ndarray"), ([1, None], f"{ROW} 1 dimensions of type object"), ([[1, [2]]], f"ids: {ROW} 2 dimensions"),
    (np.array([True, False]), f"ids: {ROW} 1 dimensions of type bool"), ([[True, False]], f"ids: {ROW} 1 dimensions of type bool"),
    ({"input_ids": [[1, 2]], "token_type_ids": np.array([[True, False]])}, f"token types: {ROW} 1 dimensions of type bool"),
    (np.array([1 + 2j]), f"{ROW} 1 dimensions of type complex128"),
    (np.array([1, 2], object), "an array of dtype object"), (np.array([1, 2], "M8[s]"), f"{ROW} 1 dimensions of type datetime64"), ([[1, 2], 3], f"{ROW} 0 dimensions"),
    ({"input_ids": [[1, 2]], "attention_mask": [[1]]}, "the mask: .* expected as many as ids"), ({}, "a mapping with input_ids, found"),
    ({"ids": [1]}, r"a mapping with input_ids, found \['ids'\]"), ({"input_ids": [[1, 2]], "attention_mask": 1}, "expected the mask, found int"),
    (3, "expected texts or ids, found int"), (None, "expected texts or ids, found NoneType"), (b"a", "expected .* or ids, found bytes"),
    ({1, 2}, "expected texts or ids, found set"), ([("a", "b", "c")], "a pair of texts, found str, str, str"),
    ([()], "a pair of texts, found nothing"), (["a", ("b", 3)], "found str, int"),
]


@pytest.mark.parametrize("wrong, words", WRONG)
def test_wrong_inputs(demo, wrong, words):
    refuses(deberta_c.Error, words, demo.encode, wrong)
    assert demo.encode("still works")["hidden_states.5"].shape[2] == 192


def test_wrong_options(demo):
    for options, words in (({"hidden": "some"}, "hidden: expected"), ({"attention": [5]}, r"attention: expected 'all' or numbers of layers below 5, found \[5\]"),
                           ({"attention": [-1]}, r"below 5, found \[-1\]"), ({"attention": [1.5]}, r"found \[1.5\]"),
                           ({"components": [(0, 3)]}, r"components: expected 'all' or pairs \(layer, head\) below 5 and 3, found \[\(0, 3\)\]"),
                           ({"components": [(5, 0)]}, r"found \[\(5, 0\)\]"), ({"components": [(0, 1), (2,)]}, "found"),
                           ({"batch_tokens": -1}, f"batch_tokens: expected a number from 1 to {MOST}, found -1"),
                           ({"components": "c2p"}, r"components: .* found 'c2p'"),
                           ({"components": 3}, "components: .* found 3"), ({"components": (2, 0)}, r"components: .* found \(2, 0\)"),
                           ({"components": [(0, "x")]}, r"components: .* found \[\(0, 'x'\)\]"),
                           ({"attention": "some"}, "attention: .* found 'some'"),
                           ({"attention": 5}, "attention: .* below 5, found 5"), ({"attention": True}, "attention: .* found True"), ({"token_types": [0]}, "expected as many as ids"), ({"mask": np.ones((1, 9), np.uint8)}, "the mask")):
        refuses(deberta_c.ArgumentError, words, demo.encode, [1, 2, 3], **options)
    for call, words in ((lambda: demo.tag("a"), "has no head 'token' .*finetune token --new-head.* it has mlm, mlm_emd, sequence"),
                        (lambda: demo.encode("a", max_tokens=-1), f"max_tokens: expected a number from 3 to {MOST}, found -1"),
                        (lambda: demo.fill_mask("nothing"), "there is no"), (lambda: demo.positions(9), "layer: expected a number from 0 to 4, found 9"),
                        (lambda: demo.classify(3), "expected a text"), (lambda: demo.classify("a", top=0), f"top: expected a number from 1 to {MOST}, found 0"),
                        (lambda: demo.fill_mask("a [MASK]", top=2.5), "top: .* found 2.5"), (lambda: deberta_c.Model(DEMO, isa=3), "'3'"),
                        (lambda: demo.detokenize([[1]]), "2 dimensions"), (lambda: demo.detokenize("abc"), "0 dimensions"),
                        (lambda: demo.detokenize([99999]), "99999"), (lambda: demo.tokenize(b"a"), "found bytes")):
        refuses(deberta_c.Error, words, call)
    for path, options, kind in (("nowhere", {}, deberta_c.FileError), (DEMO, {"isa": "sse9"}, ValueError), (DEMO, {"memory_limit": 1000}, MemoryError),
                                (DEMO, {"layers": 99}, ValueError), (DEMO, {"threads": 4096}, ValueError), ("synthetic:v9", {}, ValueError)):
        with pytest.raises(kind) as refused:
            deberta_c.Model(path, **options).encode([1])
        assert isinstance(refused.value, deberta_c.Error) and len(str(refused.value)) > 10


def test_no_copies(demo, capfd):
    """In one sentence with the way out, and nothing is left that would be freed twice."""
    encoder = deberta_c.Encoder(DEMO, threads=1)
    expected = encoder({"text": ["a"]})["vector"]
    for thing in (demo, {"a": [demo]}, demo._weights):
        for call in (pickle.dumps, copy.deepcopy, copy.copy):
            if call is copy.copy and isinstance(thing, dict):
                continue
            refuses(deberta_c.UnsupportedError, r"neither copied nor pickled: share\(\) makes one", call, thing)
    gc.collect()
    assert "Exception ignored" not in "".join(capfd.readouterr())
    assert demo.encode("a")["hidden_states.5"].shape == demo.share().encode("a")["hidden_states.5"].shape
    for other in (copy.deepcopy(encoder), copy.copy(encoder), pickle.loads(pickle.dumps(encoder))):  # opens its own
        assert np.array_equal(other({"text": ["a"]})["vector"], expected) and other.model is not encoder.model


def test_wrong_thresholds(demo):
    for wrong in (-0.1, 1.5, 2, float("nan"), True, "0.5", None):
        refuses(deberta_c.ArgumentError, re.escape(f"threshold: expected a number from 0 to 1, found {wrong!r}"), demo.detect, "a", threshold=wrong)


def test_a_model_for_multiple_choice_is_named(tmp_path):
    folder = tmp_path / "model"
    shutil.copytree(DEMO, folder)
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps({**config, "architectures": ["DebertaV2ForMultipleChoice"]}))
    with deberta_c.Model(folder) as model:
        with pytest.warns(UserWarning, match="is a model for multiple choice"):
            model.classify(("a", "b"))


def test_wrong_numbers(demo):
    """Numbers that are no counts are refused before the library takes them as huge ones."""
    for most in (-1, deberta_c._abi.MOST_THREADS + 1, "many", float("inf")):
        for call in (lambda: deberta_c.Model(DEMO, threads=most), lambda: demo.share(threads=most)):
            refuses(deberta_c.ArgumentError, re.escape(f"threads: expected a number from 0 to 1024, found {most!r}"), call)
    for call in (lambda: deberta_c.Model(DEMO, layers=1 << 70), lambda: demo.encode("a", max_tokens=1 << 64), lambda: deberta_c.Model(DEMO, threads=True),
                 lambda: demo.encode(["a", "b"], batch_tokens=1 << 63), lambda: deberta_c.Model(DEMO, memory_limit=1 << 64)):
        refuses(deberta_c.ArgumentError, "expected a number from [013] to ", call)
    with deberta_c.Model(str(ROOT / "models" / "answers")) as answers:
        for wrong in (0, -1, True, 2.0, "4"):
            for name, call in (("layers", lambda **one: deberta_c.Model(DEMO, **one)), ("memory_limit", lambda **one: deberta_c.Model(DEMO, **one)),
                               ("max_tokens", lambda **one: demo.encode("a", **one)), ("max_tokens", lambda **one: demo.tokenize("a", **one)),
                               ("max_tokens", lambda **one: demo.classify("a", **one)), ("batch_tokens", lambda **one: demo.encode("a", **one)),
                               ("top", lambda **one: answers.answer("a", "b", **one)), ("max_answer", lambda **one: answers.answer("a", "b", **one)),
                               ("max_tokens", lambda **one: deberta_c.Encoder(DEMO, **one)), ("batch_tokens", lambda **one: deberta_c.Encoder(DEMO, **one))):
                refuses(deberta_c.ArgumentError, re.escape(f"{name}: expected a number from {3 if name == 'max_tokens' else 1} to {MOST}, found {wrong!r}"), call, **{name: wrong})
    assert f"TOPOLOGY_MAX_WORKERS = {deberta_c._abi.MOST_THREADS} " in (ROOT / "core" / "base" / "topology.h").read_text()


def test_texts_that_c_would_cut_off(demo):
    """NUL ends a text in C: what stands behind it would be ignored. Neither that, nor what is no text, is taken."""
    for call, words in ((lambda: deberta_c.Model(f"{DEMO}\0x"), "path: expected a text without NUL"), (lambda: deberta_c.Model(None), "path: .* found None"),
                        (lambda: deberta_c.Model(3), "path: .* found 3"), (lambda: deberta_c.Model("\ud800"), "path: "),
                        (lambda: deberta_c.Model(DEMO, isa="scalar\0x"), "isa: expected a text without NUL"),
                        (lambda: demo.ablate("c2p@0\0x"), "terms: expected a text without NUL"),
                        (lambda: demo.ablate("c2p@\ud800"), "terms: "), (lambda: deberta_c.bench(None), "model: .* found None"),
                        (lambda: deberta_c.bench("a\0b"), "model: expected a text without NUL"),
                        (lambda: deberta_c.attention_figure(demo, "a\0b"), "an argument of the program can be, found 'a.x00b', which holds NUL"),
                        (lambda: demo.receptive_field(tokens="1\0"), "which holds NUL"), (lambda: deberta_c.attention_figure(demo, "a", title="\0"), "which holds NUL"),
                        (lambda: demo.fill_mask(["a [MASK]", "b"]), r"there is no \[MASK\] in the text at place 1"),
                        (lambda: demo.encode(["a", "b\ud800"]), "the text at place 1 holds half of a surrogate pair"),
                        (lambda: deberta_c.attention_figure(demo, kind="heatmap", text="a"), "deberta attention MODEL --text TEXT -o FILE.png$"),
                        (lambda: deberta_c.attention_figure(demo, "a\ud800"), "which holds half of a surrogate pair at character 1")):
        refuses(deberta_c.Error, words, call)
    with deberta_c.Model(os.fsencode(DEMO)) as model:
        assert model.path == DEMO and model.encode("a")["hidden_states.5"].shape[2] == 192
    assert demo.tokenize("a\0b").tokens == ["[CLS]", "\u2581a", "\0", "b", "[SEP]"], "texts to encode may hold it"


def test_options_that_would_be_ignored(demo):
    for inputs, options in (("a", {"mask": [1, 1, 1]}), (["a"], {"token_types": [[0, 0, 0]]}), ([1, 2, 3], {"max_tokens": 2})):
        refuses(deberta_c.ArgumentError, "max_tokens is for texts; token_types, mask and position_ids are for ids", demo.encode, inputs, **options)
    for option in ("precision", "reference"):
        refuses(deberta_c.ArgumentError, f"{option}: expected .* found array", deberta_c.Model, DEMO, **{option: np.array(["int8", "hf"])})


def test_errors_are_named_as_they_are_imported():
    for name in ("Error", "ArgumentError", "FileError", "OutOfMemoryError"):
        assert f"{getattr(deberta_c, name).__module__}.{name}" == f"deberta_c.{name}"


def test_made_up_model_reads_no_texts():
    with deberta_c.Model("synthetic:v3-small,layers=2,vocab=1000") as model:
        for call in (lambda: model.encode("a"), lambda: model.tokenize("a"), lambda: model.detokenize([1])):
            refuses(deberta_c.ArgumentError, "a made-up model has no tokenizer, so it cannot read texts: give ids", call)
        refuses(deberta_c.UnsupportedError, "has no head 'sequence'.*no head at all", model.classify, "a")


def test_accelerate_without_torch(monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)
    for call in (deberta_c.accelerate, deberta_c.restore):
        refuses(deberta_c.UnsupportedError, "PyTorch, which is not here .*pip install torch transformers", call, object())


def test_program_names_the_same_download():
    """ORGANISATION/NAME of a hub that is no folder: the sentence of the program."""
    done = subprocess.run([deberta_c._program.PROGRAM, "info", "an-organisation/a-model"], capture_output=True, text=True)
    with pytest.raises(deberta_c.FileError) as refused:
        deberta_c.Model("an-organisation/a-model")
    assert "hf download an-organisation/a-model " in str(refused.value)
    assert done.stderr.splitlines()[0] == f"deberta info: {refused.value}"
    for path in (f"{ROOT}/nowhere", "./nowhere", "nowhere", "nowhere/at/all", "an-organisation/"):
        refuses(deberta_c.FileError, "config.json|no such folder in /", deberta_c.Model, path)


@pytest.mark.parametrize("call", [
    lambda m: m.encode("a"), lambda m: m.encode([1]), lambda m: m.tokenize("a"), lambda m: m.detokenize([1]), lambda m: m.info, lambda m: m.labels,
    lambda m: m.isa, lambda m: m.threads, lambda m: m.digest(), lambda m: m.classify("a"), lambda m: m.fill_mask("a [MASK]"), lambda m: m.tag("a"),
    lambda m: m.detect("a"), lambda m: m.answer("a", "b"), lambda m: m.share(), lambda m: m.ablate("c2p@0")])
def test_closed_model(call):
    """Every call that needs the weights is refused; a model that shares them has them still, and closing twice is closing once."""
    model = deberta_c.Model(DEMO, threads=1)
    other = model.share(threads=1)
    model.close()
    refuses(deberta_c.ArgumentError, "the model is closed", call, model)
    assert other.encode("a")["hidden_states.5"].shape[2] == 192
    model.close()


def test_after_a_fork(demo):
    demo.encode("a")
    child = os.fork()
    if child == 0:
        code = 0
        for call in (lambda: demo.encode("a"), lambda: demo.info, lambda: demo.share(), lambda: demo.close()):
            try:
                call()
                code = 1
            except deberta_c.ArgumentError as refused:
                code |= 0 if "before a fork" in str(refused) else 2
        with deberta_c.Model(DEMO, threads=1) as own:
            code += 4 * (own.encode("a")["hidden_states.5"].shape[2] != 192)
        del demo
        gc.collect()
        os._exit(code)
    assert os.waitpid(child, 0)[1] == 0


def test_one_session_two_threads():
    """Refused while it works; two sessions of one model work side by side."""
    model = deberta_c.Model("synthetic:v3-small,vocab=1000", threads=1)
    other = model.share(threads=1)
    long = np.ones(400, np.int32)
    running, results = threading.Event(), []

    def work():
        running.set()
        results.append(model.encode(long)["hidden_states.6"])

    thread = threading.Thread(target=work)
    thread.start()
    running.wait()
    time.sleep(0.02)
    refuses(deberta_c.ArgumentError, "the session is at work", model.encode, [1, 2])
    assert np.array_equal(other.encode(long)["hidden_states.6"], (thread.join(), results[0])[1])


def test_two_sessions_run_in_parallel():
    """Short calls begin and end within a long one of another thread: neither the interpreter nor the library makes them wait."""
    model = deberta_c.Model("synthetic:v3-small,vocab=1000", threads=1)
    other = model.share(threads=1)
    model.encode(np.ones(2000, np.int32)[:8]), other.encode([1])
    finished = []
    thread = threading.Thread(target=lambda: finished.append(model.encode(np.ones(2000, np.int32))))
    thread.start()
    time.sleep(0.05)
    for _ in range(5):
        other.encode([1, 2, 3])
    assert not finished, "the long call was over before the short ones"
    thread.join()
    assert finished


INTERRUPTED = """
import os, signal, sys, threading, time, numpy as np, deberta_c
seen = []
handler = signal.default_int_handler if sys.argv[1] == "raises" else lambda number, frame: seen.append(number)
signal.signal(signal.SIGINT, handler)  # a background job of a shell begins with it ignored
model = deberta_c.Model("synthetic:v3-base,vocab=1000", threads=1)
begin = time.monotonic()
threading.Timer(0.3, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
try:
    model.encode([np.ones(3000, np.int32)] * 2)
    print("not interrupted")
except KeyboardInterrupt:
    print("interrupted after", time.monotonic() - begin, len(seen))
print(model.encode([1, 2, 3])["hidden_states.12"].shape, signal.getsignal(signal.SIGINT) is handler)
"""


@pytest.mark.parametrize("handler", ["raises", "returns"])
def test_interrupt(handler):
    """Ends the encode at a layer, whatever the handler of SIGINT does; it is called once, and is there again afterwards."""
    done = subprocess.run([sys.executable, "-c", INTERRUPTED, handler], capture_output=True, text=True, timeout=300)
    assert done.stdout.startswith("interrupted after") and "(1, 3, 768) True" in done.stdout, done.stdout + done.stderr
    assert done.stdout.split()[3] == {"raises": "0", "returns": "1"}[handler]


# ------------------------------------------------------------------------------------------------------------ what it costs


def test_no_leak(demo):
    """5,000 calls of everything cheap, failures too, leave the memory where it was."""
    ids = np.array([1, 11, 442, 2], np.int32)

    def calls(count):
        for k in range(count):
            demo.encode(ids)
            if k % 10 == 0:
                demo.encode(ids, attention=[0], logits=True)
                demo.tokenize("a new store")
                refuses(deberta_c.Error, "", demo.encode, [7000])
                demo.share(threads=1).encode(ids)
        gc.collect()

    calls(1000)
    before = resident_kib()
    calls(5000)
    assert resident_kib() - before < 1024


def test_overhead_of_a_call():
    """50 us above the C call, at 16 tokens, is what tools/peers.py python asks of a quiet fast processor. With others beside it, who share its
    caches, the same calls took four times as long, so the clock judges roughly; what test_calls_within_a_call counts is the same everywhere."""
    assert any(python_costs.call_us(200) < 300 for _ in range(20))


def test_calls_within_a_call():
    """The usual call asks nothing twice, makes no session and copies the outputs once."""
    model, ids, made = deberta_c.Model("synthetic:v3-xsmall,layers=1,vocab=1000", threads=1), np.ones(16, np.int32), []
    model.encode(ids)
    sys.setprofile(lambda frame, event, what: made.append(getattr(what, "__name__", frame.f_code.co_name)) if event in ("call", "c_call") else None)
    try:
        model.encode(ids)
    finally:
        sys.setprofile(None)
    assert len(made) <= 70 and made.count("copy") == 1, made


def test_ids_are_not_copied_and_memory_is_steady():
    for section in (python_costs.copies, python_costs.steady):
        assert all(row[-1] for row in section(None)), list(section(None))


def test_what_no_utf8_and_no_mask_has(demo):
    for call, words in ((lambda: demo.encode("a\ud800b"), r"half of a surrogate pair, U\+D800 at character 1"), (lambda: demo.fill_mask("[MASK] \udfff"), "U\\+DFFF"),
                        (lambda: demo.encode([5, 6, 7], mask=[1, 2, 1]), r"the mask: found 2, expected 0 \(a hole\) or 1"),
                        (lambda: demo.encode(np.array([5, 6], object)), "an array of dtype object")):
        refuses(deberta_c.ArgumentError, words, call)
    assert demo.encode(np.array([[5, 6], [7]], object))["hidden_states.5"][1].shape[0] == 1


@pytest.mark.parametrize("packed", [False, True])
def test_weights_that_shrink(tmp_path, packed):
    """A file that is cut while a model is open raises FileError, rather than SIGBUS; refused by the environment it is the signal again."""
    for name in ("config.json", "model.safetensors"):
        shutil.copy(GOLDEN / "16-v3-b256-n33" / name, tmp_path)
    name = "deberta.packed" if packed else "model.safetensors"
    script = f"""
import os, deberta_c
model = deberta_c.Model({str(tmp_path)!r})
os.truncate({str(tmp_path / name)!r}, 4096)
try:
    model.encode([[1, 2, 3, 40]])
except deberta_c.FileError as reason:
    assert "became shorter" in str(reason), reason
    print("refused")
"""
    content = (GOLDEN / "16-v3-b256-n33/model.safetensors").read_bytes()
    for asked, code, out in (("1", 0, "refused\n"), ("0", -7, "")):
        (tmp_path / "model.safetensors").write_bytes(content)
        if packed:
            subprocess.run([_program.PROGRAM, "pack", tmp_path, "-q"], check=True)
        done = subprocess.run([sys.executable, "-c", script], env={**os.environ, "DEBERTA_GUARD_FILES": asked}, stdout=subprocess.PIPE, text=True, check=False)
        assert (done.returncode, done.stdout) == (code, out)
