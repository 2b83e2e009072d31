"""Edits of hidden states, biases by table row, and logits of chosen heads and tokens. SPDX-License-Identifier: MIT"""
import os

import numpy as np
import pytest

import deberta_c
from conftest import DEMO, refuses

TEXTS = ["a new store opened beside the mall", "Call me Ishmael.", "It was the best of times", "Zoë"]
MADE_UP = "synthetic:v2-xlarge,layers=3,hidden=64,heads=2,intermediate=64,vocab=97,buckets=16,distance=40"
SEED = int(os.environ.get("TEST_SEED", "1"))


def same(a, b):
    assert a.keys() == b.keys()
    return {name for name in a if not all(map(np.array_equal, a[name], b[name]))}


def rows_of_ids(random, count):
    return [random.integers(0, 97, random.integers(1, 60)).astype(np.int32) for _ in range(count)]


@pytest.mark.parametrize("precision", ["float32", "int16", "int8"])
def test_identity_moves_no_bit(precision):
    with deberta_c.Model(DEMO, precision=precision) as model:
        plain = model.encode(TEXTS, hidden="all", attention="all", logits=True)
        layers = range(model.info["layers"] + 1)
        assert not same(plain, model.encode(TEXTS, hidden="all", attention="all", logits=True, edit={k: lambda h: h for k in layers}))


def test_what_follows_an_edit(demo):
    """H[2] is what the function returned, and the states before it are as they were; all after it follow, to the heads."""
    plain = demo.encode(TEXTS, hidden="all", logits=True)
    edited = demo.encode(TEXTS, hidden="all", logits=True, edit={2: lambda h: 0.5 * h})
    assert same(plain, edited) == {f"hidden_states.{k}" for k in (2, 3, 4, 5)} | {name for name in plain if name.startswith("logits")}
    for before, after in zip(plain["hidden_states.2"], edited["hidden_states.2"]):
        assert np.array_equal(np.float32(0.5) * before, after)
    assert not same(plain, demo.encode(TEXTS, hidden="all", logits=True)), "the next encode knows nothing of it"


def test_patching_gives_the_other_text(demo):
    """With all states of one text in the place of those of another, layer after layer, what follows is that of the first."""
    one = demo.tokenize("The sailor went home.").ids
    other = np.concatenate([one[:1], one[1:-1][::-1], one[-1:]])
    clean = demo.encode(one, hidden="all", logits="mlm")
    for layer in range(demo.info["layers"] + 1):
        patched = demo.encode(other, hidden="all", logits="mlm", edit={layer: lambda h: clean[f"hidden_states.{layer}"][0]})
        assert not {name for name in same(clean, patched) if name.startswith("logits") or int(name.split(".")[1]) >= layer}


def test_batches_threads_precisions():
    """Drawn: an edit and a bias give the same bits for any batches and threads, in every precision."""
    random = np.random.default_rng(SEED)
    for case in range(12):
        precision = ("float32", "int16", "int8")[case % 3]
        with deberta_c.Model(MADE_UP, threads=1, precision=precision) as model, model.share(threads=3) as other:
            ids = rows_of_ids(random, 5)
            factors, info = random.random(2), model.info
            edit = {int(random.integers(0, 4)): lambda h: h * factors[0] + factors[1], 3: lambda h: h[:, ::-1]}
            bias = random.normal(size=(info["layers"], info["heads"], info["relative_rows"]))
            given = {"hidden": "all", "attention": "all", "edit": edit, "row_bias": bias}
            together = model.encode(ids, **given)
            assert not same(together, other.encode(ids, batch_tokens=int(random.integers(1, 100)), **given)), (SEED, case, precision)
            for k, row in enumerate(ids):
                alone = model.encode(row, **given)
                assert not {name for name in alone if not np.array_equal(alone[name][0], together[name][k])}, (SEED, case, precision)


def test_bias_by_row(demo):
    """The bias of a distance's row is in c2p and in the logits."""
    random, ids = np.random.default_rng(SEED), demo.tokenize(TEXTS[0]).ids
    info = demo.info
    bias = random.normal(size=(info["layers"], info["heads"], info["relative_rows"])).astype(np.float32)
    plain, biased = (demo.encode(ids, components="all", row_bias=given) for given in (None, bias))
    row = np.array([[demo.position_row(i - j) for j in range(len(ids))] for i in range(len(ids))])
    assert np.array_equal(plain["attn.0.c2p"][0] + bias[0][:, row], biased["attn.0.c2p"][0])
    assert np.allclose(plain["attn.0.logits"][0] + bias[0][:, row], biased["attn.0.logits"][0], atol=1e-5)


def test_the_relative_table_is_read_back():
    """Its shape and rows; its numbers are compared in C (tests/unit/test_interventions.c)."""
    with deberta_c.Model(DEMO) as model:
        keys, queries = model.positions(0)
        info = model.info
        assert keys.shape == queries.shape == (info["heads"], info["relative_rows"], info["head_size"])
        assert model.position_row(0) == info["relative_rows"] // 2 and model.position_row(10 ** 6) == info["relative_rows"] - 1
    with deberta_c.Model(os.path.join(os.path.dirname(DEMO), "demo-bert")) as model:
        assert model.positions(0) == (None, None) and model.position_row(5) == 0


def test_chosen_heads_and_tokens(demo):
    everything = demo.encode(TEXTS, logits=True)
    at = [[3, 1, 1], [], [0], [2, 1]]
    for parts in (1, 2048):
        found = demo.encode(TEXTS, hidden=None, logits=["mlm_emd", "sequence"], at=at, batch_tokens=parts)
        assert set(found) == {"logits.mlm_emd", "logits.sequence"} and np.array_equal(found["logits.sequence"], everything["logits.sequence"])
        for rows, chosen, all_rows in zip(found["logits.mlm_emd"], at, everything["logits.mlm_emd"]):
            assert np.array_equal(rows, all_rows[chosen])
    assert demo.encode(TEXTS[:2], logits="mlm", at=[[1], [2]])["logits.mlm"].shape == (2, 1, demo.info["vocabulary_size"])


def test_position_ids():
    with deberta_c.Model(os.path.join(os.path.dirname(DEMO), "demo-bert")) as model:
        ids = model.tokenize(TEXTS[0]).ids
        plain, same_ones, later = (model.encode(ids, position_ids=given)["hidden_states.5"] for given in (
            None, np.arange(len(ids)), np.arange(len(ids)) + 9))
        assert np.array_equal(plain, same_ones) and not np.array_equal(plain, later)


@pytest.mark.parametrize("given, words", [
    ({"edit": {6: len}}, "edit: expected functions by layers from 0 to 5, found 6"),
    ({"edit": {1: 3}}, "edit: expected functions by layers from 0 to 5, found 1: int"),
    ({"edit": {1: lambda h: None}}, "the edit of hidden states 1: expected numbers of shape \\[10, 192\\], found None"),
    ({"edit": {1: lambda h: h[1:]}}, "found float32 \\[9, 192\\]"),
    ({"edit": {1: lambda h: h.astype(complex)}}, "found complex"),
    ({"row_bias": np.zeros(3)}, "row_bias: expected numbers of shape \\[5, 3, 64\\]"),
    ({"at": [[1]]}, "no head of tokens is asked"),
    ({"logits": "mlm", "at": [[1], [2]]}, "2 rows of token numbers, expected one for each of 1 texts"),
    ({"logits": "mlm", "at": [[10]]}, "expected numbers of tokens below 10 for text 0"),
    ({"logits": "best"}, "logits: expected 'mlm', .* found 'best'"),
    ({"position_ids": [[1]]}, "position_ids are for ids")])
def test_wrong_use(demo, given, words):
    plain = demo.encode(TEXTS[0])
    refuses(deberta_c.ArgumentError, words, demo.encode, TEXTS[0], **given)
    assert not same(plain, demo.encode(TEXTS[0]))


def test_refused_by_name(demo):
    refuses(deberta_c.UnsupportedError, "no head 'qa'", demo.encode, TEXTS[0], logits="qa")
    with deberta_c.Model("synthetic:v3-base,layers=1,hidden=48,heads=2,vocab=97,terms=none") as model:
        refuses(deberta_c.UnsupportedError, "has no c2p", model.encode, [1, 2], row_bias=np.zeros((1, 2, model.info["relative_rows"])))


def test_an_edit_that_fails(demo):
    """Its own exception comes out, as from a function that was called; the session refuses to be used from within."""
    refuses(ZeroDivisionError, "", demo.encode, TEXTS, edit={2: lambda h: 1 // 0})
    refuses(deberta_c.ArgumentError, "at work", demo.encode, TEXTS, edit={2: lambda h: demo.encode("a")})
    assert not same(demo.encode(TEXTS), demo.encode(TEXTS, edit={0: lambda h: h}))
