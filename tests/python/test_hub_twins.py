"""Twins of published checkpoints (tools/making/make_hub_twin.py): opened by transformers and by us from one folder, they give the same.

Small twins: two layers, the vocabulary of the tests' tokenizers, everything else as tests/hub says it is published. One has its whole
vocabulary, so that [MASK] is the published 128000 and the table has 128100 rows. SPDX-License-Identifier: MIT
"""
import json
import shutil
import sys

import numpy as np
import pytest
import sentencepiece
import torch
import transformers
from safetensors.torch import load_file, save_file
from transformers.models.deberta import modeling_deberta as v1
from transformers.models.deberta_v2 import modeling_deberta_v2 as v2

import deberta_c
from conftest import ROOT

sys.path[:0] = [str(ROOT / "tools" / "making"), str(ROOT / "tools" / "gates")]
import make_hub_twin  # noqa: E402
import reference  # noqa: E402

HUB = ROOT / "tests" / "hub"
BOUND = 1e-5  # of a tensor's largest value, against transformers in float64
LENGTHS = (140, 17, 1)  # beyond the buckets' linear part, and padded
TEXTS = ["Paris is the capital of France.", "It cost 1,234.50 euros (about 20% less)!", "don't you'll we've I'm", "na\u00efve caf\u00e9", "UPPER lower MiXeD",
         "\u65e5\u672c\u8a9e and English", "the [MASK] of the matter"]


@pytest.fixture(autouse=True, scope="module")
def as_it_was():
    """tools/gates/reference.py makes transformers exact in float64, and needs no gradients; the other tests do."""
    before = v1.scaled_size_sqrt, v2.scaled_size_sqrt, v1.DebertaLayerNorm.forward
    transformers.utils.logging.set_verbosity_error()
    transformers.utils.logging.disable_progress_bar()
    yield
    v1.scaled_size_sqrt, v2.scaled_size_sqrt, v1.DebertaLayerNorm.forward = before
    torch.set_grad_enabled(True)


@pytest.fixture()
def place(tmp_path):
    yield tmp_path
    shutil.rmtree(tmp_path, ignore_errors=True)


def made_up_ids(vocabulary):
    dice = np.random.default_rng(7)
    return [dice.integers(4, vocabulary, length).tolist() for length in LENGTHS]


def compare(ours, theirs, rows):
    """Hidden states of all layers and the logits of every head that transformers' side computes; the names compared."""
    expected = reference.compute(str(theirs), *reference.pad(rows))
    with deberta_c.Model(ours) as model:
        found = model.encode(rows, hidden="all", logits=True)
    names = [name for name in expected if name.startswith(("hidden_states.", "logits."))]
    assert sorted(name for name in found if name.startswith(("hidden_states.", "logits."))) == sorted(names)
    for name in names:
        others = [expected[name][row].numpy()[:None if name == "logits.sequence" else len(ids)] for row, ids in enumerate(rows)]
        assert [values.size for values in found[name]] == [other.size for other in others], name
        error = max(np.abs(values.reshape(other.shape) - other).max() for values, other in zip(found[name], others))
        assert error <= BOUND * max(np.abs(other).max() for other in others), (name, error)
    return {name[len("logits."):] for name in names if name.startswith("logits.")}


def check_tokens(folder, checkpoint):
    """transformers' ids; of a SentencePiece model that library's, since transformers 5 drops the map of characters."""
    kind, pieces = checkpoint["tokenizer"]["kind"], checkpoint["tokenizer"]["pieces"]
    spm = sentencepiece.SentencePieceProcessor(model_file=str(folder / "spm.model")) if kind == "spm" else None
    theirs = transformers.AutoTokenizer.from_pretrained(folder)
    mask = pieces - 1 if kind == "bpe" else pieces
    with deberta_c.Model(folder) as model:
        for text in TEXTS:
            ids = model.tokenize(text).ids
            if spm is not None:
                head, marked, tail = text.partition("[MASK]")
                between = [mask] if marked else []
                assert list(ids) == [1] + spm.encode(head) + between + (spm.encode(tail) if marked else []) + [2], text
            else:
                # From version 5 on [MASK] leaves the white space before it to the tokenizer, unless the files say otherwise.
                assert "[MASK]" in text or list(ids) == theirs(text)["input_ids"], text
                assert ("[MASK]" in text) == (mask in ids), text
        assert model.tokenize("[PAD][CLS][SEP][UNK]").ids[1:-1].tolist() == [0, 1, 2, 3]


def check_commands(folder, heads):
    """The task of every head takes a text in this folder's tokenizer."""
    tasks = {"mlm": lambda m: m.fill_mask("the [MASK] of the matter"), "rtd": lambda m: m.detect("Paris is the capital of France."),
             "sequence": lambda m: m.classify(("It rained.", "The road is wet.")), "token": lambda m: m.tag("Call me Ishmael."),
             "qa": lambda m: m.answer("What rose?", "The river rose in the night.")}
    with deberta_c.Model(folder) as model:
        assert all(tasks[head](model) for head in heads if head in tasks)


def with_encoder_config(folder, checkpoint):
    """What docs/checkpoints.md advises: the base model's config.json, with the rows that the table has."""
    config = dict(make_hub_twin.read(checkpoint["encoder"])["config"])
    config.update(vocab_size=checkpoint["sizes"]["vocab_size"], num_hidden_layers=checkpoint["sizes"]["num_hidden_layers"])
    (folder / "config.json").write_text(json.dumps(config))
    return config


def bare_encoder(folder, checkpoint, config, place):
    """The encoder of a wrapper for transformers' class, which looks for no such prefix."""
    prefix = next(iter(checkpoint["tensors"]))
    place.mkdir()
    (place / "config.json").write_text(json.dumps(config))
    tensors = {name[len(prefix):]: tensor for name, tensor in reference.read_weights(str(folder)).items() if name.startswith(prefix)}
    save_file(tensors, place / "model.safetensors", metadata={"format": "pt"})
    return place


def without_twins_twins():
    """Small twins of models that differ in nothing but their depth are the same: one of them is made."""
    kinds = {}
    for name in make_hub_twin.names():
        checkpoint = make_hub_twin.reduce(make_hub_twin.read(name), make_hub_twin.SMALL_LAYERS, "small")
        kinds.setdefault(json.dumps({key: value for key, value in checkpoint.items() if key not in ("name", "facts")}, sort_keys=True), name)
    return list(kinds.values())


@pytest.mark.parametrize("name", without_twins_twins())
def test_twin(name, place):
    folder = place / "twin"
    checkpoint, _ = make_hub_twin.make(name, folder, layers=make_hub_twin.SMALL_LAYERS, vocabulary="small")
    other = folder
    if "refused" in checkpoint:
        with pytest.raises(deberta_c.Error) as refusal:
            deberta_c.Model(folder)
        assert all(word in str(refusal.value) for word in checkpoint["refused"]), refusal.value
        other = bare_encoder(folder, checkpoint, with_encoder_config(folder, checkpoint), place / "bare")
    heads = compare(folder, other, made_up_ids(checkpoint["sizes"]["vocab_size"]))
    assert heads == set(checkpoint["heads"])
    if "tokenizer" in checkpoint:
        check_tokens(folder, checkpoint)
        check_commands(folder, heads)


def test_quality_classifier_as_tokens(place):
    """What docs/checkpoints.md advises for a wrapper whose head is one matrix on the first row: rename it, and read that row."""
    folder = place / "twin"
    checkpoint, _ = make_hub_twin.make("nvidia/quality-classifier-deberta", folder, layers=1, vocabulary="small")
    config = with_encoder_config(folder, checkpoint)
    config.update(architectures=["DebertaV2ForTokenClassification"], id2label=checkpoint["config"]["id2label"])
    (folder / "config.json").write_text(json.dumps(config))
    tensors = load_file(folder / "model.safetensors")
    save_file({name.replace("fc.", "classifier."): tensor for name, tensor in tensors.items()}, folder / "model.safetensors")
    with deberta_c.Model(folder) as model:
        found = model.encode([TEXTS[0]], hidden="last", logits=True)
        assert model.labels == ["High", "Medium", "Low"]
    expected = found["hidden_states.1"][0][0] @ tensors["fc.weight"].numpy().T + tensors["fc.bias"].numpy()
    assert np.abs(found["logits.token"][0][0] - expected).max() <= 1e-5 * np.abs(expected).max()


def test_whole_vocabulary(place):
    """v3 as it is published: 128000 pieces, [MASK] after them, 128100 rows; the smallest one that has it so."""
    checkpoint, _ = make_hub_twin.make("microsoft/deberta-v3-xsmall", place / "twin", layers=1)
    assert checkpoint["tokenizer"]["pieces"] == 128000
    check_tokens(place / "twin", checkpoint)
    compare(place / "twin", place / "twin", [[1, 128000, 127999, 128001, 128099, 2]])


@pytest.mark.parametrize("name", ["cross-encoder/nli-deberta-v3-base", "microsoft/deberta-v3-base"])
def test_shards(name, place):
    make_hub_twin.make(name, place / "one", layers=1, vocabulary="small")
    checkpoint, _ = make_hub_twin.make(name, place / "three", layers=1, vocabulary="small", shards=3)
    assert len(list((place / "three").glob("*-of-00003.*"))) == 3
    rows = made_up_ids(checkpoint["sizes"]["vocab_size"])
    with deberta_c.Model(place / "one") as one, deberta_c.Model(place / "three") as three:
        assert one.encode(rows[0])["hidden_states.1"].tobytes() == three.encode(rows[0])["hidden_states.1"].tobytes()


@pytest.mark.parametrize("name", make_hub_twin.names())
def test_facts(name):
    """Each says where it is from; sizes that are published are those of the tensors that are listed."""
    checkpoint = make_hub_twin.read(name)
    assert name in (ROOT / "docs" / "checkpoints.md").read_text(encoding="utf-8")
    sources = json.loads((HUB / "sources.json").read_text(encoding="utf-8"))
    assert {"config", "tensors", "weights"} | ({"tokenizer"} if "tokenizer" in checkpoint else set()) == set(checkpoint["facts"])
    for fact in checkpoint["facts"].values():
        assert fact["state"] in ("published", "derived") and set(fact.get("from", [])) <= set(sources)
        assert fact.get("from") if fact["state"] == "published" else fact.get("why")
    count = sum(int(np.prod(shape)) for shape in make_hub_twin.shapes(checkpoint).values())
    weights = checkpoint["weights"]
    if "published_size" in weights:
        assert abs(count * torch.finfo(getattr(torch, weights["dtype"])).bits // 8 - weights["published_size"]["bytes"]) <= weights["published_size"]["within"]
    if "published_values" in weights:
        assert abs(count - weights["published_values"]["count"]) <= weights["published_values"]["within"]
