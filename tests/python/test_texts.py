"""One reader of texts: what a text, a pair and several of them are, everywhere and in every
container that Python has; the rest is refused. SPDX-License-Identifier: MIT"""
import collections
import datetime
import os
import random
import re
import sys
import warnings

import numpy as np
import pytest

import deberta_c
from deberta_c import _abi, _inputs
from conftest import DEMO, GOLDEN, refuses

SEED = int(os.environ.get("DEBERTA_TEST_DAY") or datetime.date.today().toordinal())
WORDS = "a new store opened beside the mall old captain sea ä 日本 it's , .".split()
PAIR = ("a new store", "Call me")


class Column(list):
    """Of a table: a sequence of its own kind."""


def called(model):
    """Calls that take texts, as functions of them that give a list of what can be compared."""
    def several(found, one):
        return [found] if isinstance(found, one) else found
    return {"tokenize": lambda texts: [one.tokens for one in several(model.tokenize(texts), deberta_c.Tokens)],
            "encode": lambda texts: [row.tobytes() for row in model.encode(texts)["hidden_states.5"]],
            "classify": lambda texts: several(model.classify(texts), dict)}


@pytest.mark.parametrize("name", ["tokenize", "encode", "classify"])
def test_every_form_of_the_same_texts(demo, name):
    call = called(demo)[name]
    texts = ["a new store", "Call me Ishmael.", "Zoë"]
    one_by_one = [call(text)[0] for text in texts]
    array = np.array(texts)
    for several in (texts, array, np.array(texts, object), Column(texts), [np.str_(text) for text in texts], array[:]):
        assert call(several) == one_by_one
    assert call([PAIR, texts[0]]) == [*call(PAIR), *call(texts[0])] and len(call(PAIR)) == 1
    assert call(list(PAIR)) == [*call(PAIR[0]), *call(PAIR[1])] != call(PAIR)  # a list of two is two texts
    assert call(pytest.importorskip("pandas").Series(texts, index=[7, 8, 9])) == one_by_one


@pytest.mark.parametrize("name", ["tokenize", "encode", "classify"])
@pytest.mark.parametrize("wrong, words", [
    (b"a", "found bytes: decode"), (bytearray(b"a"), "found bytearray: decode"), (["a", b"b"], "found bytes at place 1"), ([["a", "b"], ["c", "d"]], "found a list at place 0: a pair is a tuple"),
    (np.array([["a", "b"]]), "a pair is a tuple"), (("a", "b", "c"), "several texts are a list"), ((("a", "b"), ("c", "d")), "several texts are a list"),
    (["a", None], "found NoneType at place 1"), ([None], "found NoneType at place 0"), ((None, "a"), "found NoneType, str; a tuple"), ([float("nan"), "a"], "found float at place 0"), (["a", 3], "found int at place 1"), ([("a", 3)], "found str, int at place 0"), ({"text": "a"}, "found (dict|.'text'.; texts are given as they are)"),
    (None, "found NoneType"), (5, "found int"), (1.5, "found float"), ((text for text in "ab"), "found generator"), ({"a"}, "found set"), (np.array(["a"], "S1"), "found bytes")])
def test_anything_else_is_refused(demo, name, wrong, words):
    with pytest.raises(deberta_c.ArgumentError, match=words):
        called(demo)[name](wrong)


def test_one_text_where_one_is_due(demo):
    for wrong in (["a"], ("a", "b"), b"a", None):
        refuses(deberta_c.ArgumentError, "question: expected a text, found", demo.answer, wrong, "a")
        refuses(deberta_c.ArgumentError, "context: expected a text, found", demo.answer, "a", wrong)


def test_an_encoder_takes_columns():
    for options, batch, words in (
            ({}, {"text": "Call me Ishmael."}, r"found one str: an Encoder takes batches, map\(\.\.\., batched=True\)"), ({}, {"text": b"a"}, "found one bytes"), ({}, {"text": None}, "found one NoneType"),
            ({"task": "classify"}, {"text": "a"}, "batched=True"), ({"pair": "b"}, {"text": ["a"], "b": "b"}, "column 'b': .* batched=True"),
            ({"pair": "b"}, {"text": ["a", "b"], "b": ["c"]}, "have 2 and 1 rows"), ({"pair": "b"}, {"text": ["a"], "b": ["c", "d"]}, "have 1 and 2 rows")):
        with pytest.raises(deberta_c.ArgumentError, match=words):
            deberta_c.Encoder(DEMO, threads=1, **options)(batch)


def test_names_in_a_mapping(demo):
    """What is known is followed, what changes nothing passed over, anything else refused."""
    ids, mask = [[1, 442, 2685, 764, 2, 0, 0], [1, 5, 442, 728, 121, 8, 2]], [[1, 1, 1, 1, 1, 0, 0], [1] * 7]
    expected = demo.encode(ids, mask=mask)["hidden_states.5"]
    beside = {"special_tokens_mask": mask, "offset_mapping": [], "length": [7, 7], "overflow_to_sample_mapping": [0, 1], "labels": [3, 4], "token_type_ids": None}
    assert np.array_equal(demo.encode({"input_ids": ids, "attention_mask": mask, **beside})["hidden_states.5"], expected)
    assert np.array_equal(demo.encode({"input_ids": ids}, mask=mask)["hidden_states.5"], expected)
    for name, words in (("mask", "is attention_mask meant"), ("attention_masks", "is attention_mask meant"), ("position_id", "is position_ids meant"), ("token_types", "is token_type_ids meant"),
                        ("inputs_embeds", "leave it out"), ("ids", "leave it out")):
        refuses(deberta_c.ArgumentError, f"the mapping holds '{name}', which is not known: .*{words}", demo.encode, {"input_ids": ids, name: mask})
    refuses(deberta_c.ArgumentError, "mask: given beside a mapping that has it", demo.encode, {"input_ids": ids, "attention_mask": mask}, mask=mask)
    with deberta_c.Model(GOLDEN / "04-v1-plain-posbias-types") as model:  # which adds absolute positions
        given = {"input_ids": [[1, 5, 7]], "position_ids": [[4, 5, 6]]}
        found, same, plain = (next(iter(model.encode(one, **more).values())) for one, more in ((given, {}), ([[1, 5, 7]], {"position_ids": [[4, 5, 6]]}), ([[1, 5, 7]], {})))
        assert np.array_equal(found, same) and not np.array_equal(found, plain)


def test_padding_without_a_mask_is_said(demo):
    for ids in ([[1, 5, 2], [1, 2, 0]], [1, 2, 0], [0, 1, 2], {"input_ids": np.array([[1, 2, 0]])}):
        with pytest.warns(deberta_c.NoteWarning, match="is padding, and there is no mask") as seen:
            demo.encode(ids)
        assert seen[0].filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        demo.encode([[1, 5, 2], [1, 7, 2]])
        demo.encode([[1, 5, 2], [1, 2, 0]], mask=[[1, 1, 1], [1, 1, 0]])
        demo.encode(["a", "a new store"])


def test_texts_longer_than_anybody_asks_for(demo, monkeypatch):
    """As the program: 32,768 tokens, unless somebody says how many."""
    with pytest.raises(deberta_c.ArgumentError, match=r"text 1 has 40002 tokens, expected at most 32768, or more with max_tokens="):
        demo.encode(["a", "word " * 40000])
    monkeypatch.setattr(_inputs, "LONGEST_UNASKED", 20)
    long, ids = "word " * 30, [1] * 30
    for call in (demo.encode, demo.classify, lambda text: deberta_c.Encoder(DEMO)({"text": [text]}), lambda text: demo.fill_mask(text + "[MASK]")):
        refuses(deberta_c.ArgumentError, "expected at most 20", call, long)
    assert demo.encode(long, max_tokens=25)["hidden_states.5"].shape[1] == 25 and demo.classify(long, max_tokens=100) and len(demo.tokenize(long).ids) == 32
    refuses(deberta_c.ArgumentError, re.escape("row 0 has 30 tokens, expected at most 20, or more with Model(..., memory_limit=)"), demo.encode, ids)
    with deberta_c.Model(DEMO, memory_limit=sys.maxsize) as model:
        assert model.encode(ids)["hidden_states.5"].shape[1] == model.share().encode(ids)["hidden_states.5"].shape[1] == 30


def test_notes_of_the_folder_are_said_and_kept(monkeypatch):
    """One warning each when it is opened, at the caller's line; again by Model.notes."""
    for name, sentences in (("model_note", [b"config.json: one", b"config.json: two"]), ("tokenizer_note", ["spm.model: \u00fc".encode()])):
        monkeypatch.setattr(_abi.library, name, lambda _handle, k, all=sentences: all[k] if k < len(all) else None)
    with pytest.warns(deberta_c.NoteWarning) as seen:
        model = deberta_c.Model(DEMO)
    assert [str(one.message) for one in seen] == model.notes == ["config.json: one", "config.json: two"] and {one.filename for one in seen} == {__file__}
    with pytest.warns(deberta_c.NoteWarning, match="spm.model: ü") as seen:
        model.encode("a")
    assert len(seen) == 1 and seen[0].filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model.encode("a"), model.classify("a"), model.share()
    assert model.notes == ["config.json: one", "config.json: two", "spm.model: ü"]


def test_a_folder_without_notes():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with deberta_c.Model(DEMO) as model:
            model.encode("a")
            assert model.notes == []


def test_tables_and_what_is_read_once(demo):
    """A table is iterated over by its columns' names, a generator has no length: neither is read as something else."""
    pandas, texts = pytest.importorskip("pandas"), ["a", "a new store"]
    frame = pandas.DataFrame({"text": texts, "n": [1, 2]})
    calls = (demo.encode, demo.tokenize, demo.classify, demo.attribute)
    for given, words in ((frame, re.escape("found DataFrame; give a column of texts: frame['text']")), (frame[["n"]], "give a column of texts"),
                         *((one, re.escape("; give a list: list(...)")) for one in ((text for text in texts), map(str, texts), zip(texts, texts), dict(a="b").values()))):
        for call in calls:
            refuses(deberta_c.ArgumentError, words, call, given)
    for column in (frame, {"text": "a"}):
        refuses(deberta_c.ArgumentError, "column 'text': expected a list of texts, found one", deberta_c.Encoder(DEMO, threads=1), {"text": column})
    assert np.array_equal(demo.encode(frame["text"])["hidden_states.5"][0], demo.encode(texts)["hidden_states.5"][0])


def containers(texts, pairs):
    """Functions that put texts (pairs: tuples) into something else."""
    def of_objects(items):
        array = np.empty(len(items), object)
        array[:] = items
        return array
    found = {"list": list, "objects": of_objects, "user list": collections.UserList}
    if not pairs:
        found |= {"array": np.array, "strings": lambda items: [np.str_(item) for item in items]}
    try:
        import datasets
        if not pairs:
            found |= {"column": lambda items: datasets.Dataset.from_dict({"text": items})["text"],
                      "slice": lambda items: datasets.Dataset.from_dict({"text": items})[:]["text"],
                      "numpy": lambda items: datasets.Dataset.from_dict({"text": items}).with_format("numpy")[:]["text"]}
    except ImportError:
        pass
    try:
        import pandas
        found["series"] = lambda items: pandas.Series(items, index=range(7, 7 + len(items)))
    except ImportError:
        pass
    return found


def test_drawn_texts_in_every_container(demo):
    draw = random.Random(SEED)
    calls = {"tokenize": lambda texts: [list(one.tokens) for one in demo.tokenize(texts)],
             "encode": lambda texts: [row.tobytes() for row in demo.encode(texts)["hidden_states.5"]],
             "classify": demo.classify}
    for case in range(60):
        pairs = case % 3 == 2
        one = lambda: " ".join(draw.choices(WORDS, k=draw.randint(1, 7)))
        texts = [(one(), one()) if pairs else one() for _ in range(draw.randint(1, 4))]
        name, call = draw.choice(sorted(containers(texts, pairs))), draw.choice(sorted(calls))
        assert calls[call](containers(texts, pairs)[name](texts)) == calls[call](texts), (SEED, case, name, call, texts)


def test_texts_without_tokens_are_named(demo):
    """Also of a pair, and in a list by its place; a mask that max_tokens cuts away is not said to be missing."""
    with pytest.warns(deberta_c.NoteWarning, match="the text is empty: special tokens alone stand for it"):
        demo.classify("")
    with pytest.warns(deberta_c.NoteWarning, match="the second text at place 1 is empty"):
        demo.encode([("a", "b"), ("a", " ")])
    with pytest.raises(deberta_c.ArgumentError, match=r"max_tokens: cuts the text before its first \[MASK\]"):
        demo.fill_mask("a store " * 9 + "[MASK]", max_tokens=8)
