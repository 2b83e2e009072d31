"""Encoder: the rows of the program, whatever process and batch they come from. SPDX-License-Identifier: MIT"""
import json
import multiprocessing
import os
import pickle
import random
import shutil

import numpy as np
import pytest

import deberta_c
from deberta_c import _program
from conftest import DEMO, refuses

SEED = int(os.environ.get("DEBERTA_BATCHES_SEED", "1"))
WORDS = "the a new store opened beside old mall in Zürich ☃ and".split()


def texts_of(count, seed=SEED):
    dice = random.Random(seed)
    return [" ".join(dice.choices(WORDS, k=dice.randrange(1, 30))) for _ in range(count)]


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    """Texts, and what the program says of them."""
    folder, texts = tmp_path_factory.mktemp("corpus"), texts_of(120)
    (folder / "c.txt").write_text("".join(t + "\n" for t in texts))
    for pool in ("mean", "cls"):
        _program.run("encode", DEMO, "--file", str(folder / "c.txt"), "--pool", pool, "--out", str(folder / f"{pool}.npy"))
    return texts, {pool: np.load(folder / f"{pool}.npy") for pool in ("mean", "cls")}


def in_batches(encoder, texts, dice):
    """As an engine would: batches of any size."""
    found, at = [], 0
    while at < len(texts):
        size = dice.randrange(1, 50)
        found.append(encoder({"text": np.array(texts[at:at + size], dtype=object)})["vector"])
        at += size
    return np.concatenate(found)


def work(packed):
    encoder, texts = pickle.loads(packed)
    return encoder({"text": texts})["vector"]


@pytest.mark.parametrize("pool", ["mean", "cls"])
def test_the_rows_of_the_program(corpus, pool):
    texts, rows = corpus
    print(f"DEBERTA_BATCHES_SEED={SEED}")
    for case in range(4):
        dice = random.Random(SEED + case)
        encoder = deberta_c.Encoder(DEMO, pool=pool, isa=dice.choice([None, "scalar"]), threads=dice.choice([1, 2]), batch_tokens=dice.choice([1, 100, 2048]))
        assert in_batches(encoder, texts, dice).tobytes() == rows[pool].tobytes(), case


@pytest.mark.parametrize("way", ["fork", "spawn"])
def test_other_processes(corpus, way):
    """An encoder that was used already goes to other processes and opens its own model there."""
    texts, rows = corpus
    encoder = deberta_c.Encoder(DEMO, threads=1)
    encoder({"text": texts[:3]})
    with multiprocessing.get_context(way).Pool(2) as pool:
        parts = pool.map(work, [pickle.dumps((encoder, texts[k:k + 40])) for k in range(0, 120, 40)])
    assert np.concatenate(parts).tobytes() == rows["mean"].tobytes()


def test_columns_stay_and_answers_are_json():
    batch = {"id": [1, 2], "text": ["a new store", "the old mall"], "more": ["x", "y"]}
    found = deberta_c.Encoder(DEMO, task="classify", task_options={"top": 2})(batch)
    assert list(found) == ["id", "text", "more", "classify"] and found["id"] == [1, 2]
    with deberta_c.Model(DEMO) as model:
        assert [json.loads(a) for a in found["classify"]] == model.classify(batch["text"], top=2)
        pair = deberta_c.Encoder(DEMO, pair="more", into="both")(batch)["both"]
        alone = model.encode([("a new store", "x")])["hidden_states.5"][0]
    assert pair.shape == (2, 192) and np.allclose(pair[0], alone.mean(axis=0), atol=1e-5)
    assert deberta_c.Encoder(DEMO)({"text": []})["vector"].shape == (0, 192)


def test_what_is_refused():
    for batch, wanted in (({"txt": ["a"]}, "no column 'text'; it has txt"), ({"text": ["a", None]}, "row 1 of the batch: expected a text, found None"), ({"text": [3]}, "found 3"),
                          ({"text": ["a"], "vector": [1]}, "the batch has a column 'vector', which would be replaced: into= takes another name")):
        with pytest.raises(deberta_c.ArgumentError, match=wanted):
            deberta_c.Encoder(DEMO)(batch)
    for options in ({"pool": "max"}, {"task": "sing"}, {"batch_tokens": 0}):
        refuses(deberta_c.ArgumentError, "", deberta_c.Encoder, DEMO, **options)
    with pytest.raises(deberta_c.Error):
        deberta_c.Encoder("nowhere")({"text": ["a"]})


def test_recipe_of_the_folder(tmp_path):
    """modules.json of sentence-transformers is followed by program and package, with the same bits; a given pool takes its place."""
    folder = tmp_path / "model"
    shutil.copytree(DEMO, folder)
    kind = "sentence_transformers.models."
    (folder / "modules.json").write_text(json.dumps([{"path": "", "type": kind + "Transformer"}, {"path": "1_Pooling", "type": kind + "Pooling"},
                                                     {"path": "2_Normalize", "type": kind + "Normalize"}]))
    (folder / "1_Pooling").mkdir()
    (folder / "1_Pooling" / "config.json").write_text('{"pooling_mode": "cls"}')
    (folder / "sentence_bert_config.json").write_text('{"max_seq_length": 6}')
    texts = ["a new store opened in the old town by the river", "the king"]
    found = deberta_c.Encoder(folder)({"text": texts})["vector"]
    _program.run("encode", str(folder), *[word for text in texts for word in ("--text", text)], "--out", str(tmp_path / "v.npy"))
    assert np.array_equal(found, np.load(tmp_path / "v.npy")) and np.allclose(np.linalg.norm(found, axis=1), 1)
    plain = deberta_c.Encoder(folder, pool="cls", max_tokens=6)({"text": texts})["vector"]
    assert np.abs(found - plain / np.linalg.norm(plain, axis=1, keepdims=True)).max() < 1e-6
    (folder / "1_Pooling" / "config.json").write_text('{"pooling_mode": "max"}')
    with pytest.raises(deberta_c.UnsupportedError, match="the pooling 'max'"):
        deberta_c.Encoder(folder)({"text": texts})


def test_model_in_0_transformer(tmp_path):
    """As sentence-transformers saved it for years: the list of modules lies above the model."""
    above, kind = tmp_path / "old", "sentence_transformers.models."
    shutil.copytree(DEMO, above / "0_Transformer")
    texts = ["a new store opened", "the old house"]
    plain = deberta_c.Encoder(DEMO, threads=1, pool="cls", max_tokens=4)({"text": texts})["vector"]
    (above / "modules.json").write_text(json.dumps([{"path": "0_Transformer", "type": kind + "Transformer"}, {"path": "1_Pooling", "type": kind + "Pooling"}]))
    (above / "1_Pooling").mkdir()
    (above / "1_Pooling" / "config.json").write_text('{"pooling_mode_cls_token": true, "pooling_mode_mean_tokens": false}')
    (above / "0_Transformer" / "sentence_bert_config.json").write_text('{"max_seq_length": 4}')
    assert np.array_equal(deberta_c.Encoder(above / "0_Transformer", threads=1)({"text": texts})["vector"], plain)
    with pytest.raises(deberta_c.Error, match="0_Transformer"):
        deberta_c.Encoder(above, threads=1)({"text": texts})
