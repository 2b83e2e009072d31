"""What a folder says is followed, refused or a warning in the package as in the program. SPDX-License-Identifier: MIT"""
import json
import math
import shutil
import warnings

import numpy as np
import pytest

import deberta_c
from conftest import DEMO, GOLDEN, program_json, read_safetensors

TEXT = "a new store opened beside the mall"
FAR = "18-v2-beyond-m16-n33"  # texts beyond the table, in log buckets


def changed(tmp_path, source, *without, **keys):
    """A copy of a model's folder with other keys in config.json."""
    folder = tmp_path / f"model{len(list(tmp_path.iterdir()))}"
    shutil.copytree(source, folder)
    config = {**json.loads((folder / "config.json").read_text()), **keys}
    (folder / "config.json").write_text(json.dumps({key: value for key, value in config.items() if key not in without}))
    return folder


@pytest.mark.parametrize("problem", [None, "single_label_classification", "multi_label_classification", "regression"])
def test_problem_types(tmp_path, problem):
    """Model.classify, Encoder and the program read the outputs as problem_type says."""
    folder = changed(tmp_path, DEMO, problem_type=problem)
    with deberta_c.Model(folder) as model:
        labels = model.classify(TEXT, top=99)["labels"]
        logits = model.encode(TEXT, hidden=None, logits=True)["logits.sequence"].astype(float).ravel()
        sigmoids = {one["index"]: one["probability"] for one in model.classify(TEXT, top=99, multi_label=True)["labels"]}
    name = "score" if problem == "regression" else "probability"
    expected = {"regression": logits, "multi_label_classification": 1 / (1 + np.exp(-logits))}.get(problem, np.exp(logits) / np.exp(logits).sum())
    for one in labels:
        assert math.isclose(one[name], expected[one["index"]], rel_tol=1e-6, abs_tol=1e-7)
        assert math.isclose(sigmoids[one["index"]], 1 / (1 + math.exp(-logits[one["index"]])), rel_tol=1e-6)
    (said,) = program_json("classify", folder, "--text", TEXT, "--top", "99")
    assert [one["index"] for one in said["labels"]] == [one["index"] for one in labels]
    assert all(math.isclose(a[name], b[name], rel_tol=1e-6, abs_tol=1e-7) for a, b in zip(said["labels"], labels))
    (answer,) = deberta_c.Encoder(folder, task="classify", task_options={"top": 99})({"text": [TEXT]})["classify"]
    assert json.loads(answer)["labels"] == labels


def test_an_unheard_problem_is_refused(tmp_path):
    with pytest.raises(deberta_c.FormatError, match="problem_type.*'ranking'"):
        deberta_c.Model(changed(tmp_path, DEMO, problem_type="ranking"))


def test_keys_beside_a_discriminator(tmp_path):
    """Of a pair's config only the discriminator is read: keys beside it are named, and its number of labels is the one that counts."""
    folder = changed(tmp_path, DEMO)
    config = json.loads((folder / "config.json").read_text())

    def notes(inner, **outer):
        (folder / "config.json").write_text(json.dumps({"discriminator": {**config, **inner}, "generator": {}, **outer}))
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            with deberta_c.Model(folder) as model:
                model.classify(TEXT, top=1)
        return [str(one.message) for one in said]
    assert not notes({})
    (said,) = notes({}, problem_type="regression", hidden_act="relu", num_labels=3)
    assert "not used: problem_type, hidden_act, num_labels" in said
    del config["id2label"], config["label2id"]
    with pytest.raises(deberta_c.FormatError, match="num_labels in config.json is 3, but the classifier has 16 outputs"):
        notes({"num_labels": 3})


def test_distances_beyond_the_table(tmp_path):
    """As transformers reads them where the config has a model_type, as Microsoft does where it has none, unless it is said."""
    expected = read_safetensors(GOLDEN / FAR / "expected.safetensors")
    last = max((name for name in expected if name.startswith("hidden_states.")), key=lambda name: int(name.split(".")[1]))

    def states(folder, **given):
        with deberta_c.Model(folder, **given) as model:
            return model.info["reference"], model.encode({"input_ids": expected["input_ids"]}, hidden="all")[last].reshape(expected[last].shape)
    (auto, found), (_, hf), (_, microsoft) = (states(GOLDEN / FAR, **given) for given in ({}, {"reference": "hf"}, {"reference": "microsoft"}))
    assert auto == "hf" and np.array_equal(found, hf) and not np.array_equal(hf, microsoft)
    assert np.abs(found - expected[last]).max() < 1e-4 and np.abs(microsoft - expected[f"ms_clamp.{last}"]).max() < 1e-4
    auto, found = states(changed(tmp_path, GOLDEN / FAR, "model_type"))
    assert auto == "microsoft" and np.array_equal(found, microsoft)


def test_keys(tmp_path):
    """Keys on no list are one warning, parts that would change the answer another; what quantizes is refused; all of it once a model."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with deberta_c.Model(changed(tmp_path, DEMO, use_cache=True, torch_dtype="float16")) as model:
            assert not list(model.notes)
    with pytest.warns(deberta_c.NoteWarning, match="rope_theta.*sliding_window"):
        with deberta_c.Model(changed(tmp_path, DEMO, rope_theta=1.5, sliding_window=8)) as model:
            assert len(model.notes) == 1
    with pytest.warns(deberta_c.NoteWarning, match="is_decoder"):
        deberta_c.Model(changed(tmp_path, DEMO, is_decoder=True)).close()
    with pytest.raises(deberta_c.UnsupportedError, match="quantization_config"):
        deberta_c.Model(changed(tmp_path, DEMO, quantization_config={"bits": 4}))
