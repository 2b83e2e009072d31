"""Model.attribute beside autograd through transformers' own classes, and beside captum. SPDX-License-Identifier: MIT"""
import shutil
from pathlib import Path

import numpy as np
import pytest

import deberta_c
from conftest import DEMO, refuses

TEXT = "The old sailor told the boys a story about the sea."
POINTS = 8


def test_they_add_up_and_are_drawn(demo, tmp_path):
    found = demo.attribute("a new [MASK] opened", answer="store,house")
    assert found.tokens[3] == "[MASK]" and found.words.shape == found.positions.shape == (6,) and found.words[[0, 3, 5]].tolist() == [0, 0, 0]
    everything = found.words.sum() + found.positions.sum() + found.token_types.sum() + found.distances["c2p"].sum() + found.distances["p2c"].sum()
    assert abs(everything - found.sum) < 1e-6 and found.gap <= 0.01
    assert abs(found.sum - (found.value - found.baseline_value)) <= found.gap * abs(found.value - found.baseline_value) + 1e-6
    found.save(tmp_path / "a.svg", width_mm=85)
    found.save(tmp_path / "b.pdf", latex=tmp_path / "b.tex")
    text = (tmp_path / "b.tex").read_text(encoding="utf-8")
    assert "{b.pdf}" in text and "Integrated gradients of the" in text, text
    assert b"opened" in (tmp_path / "a.svg").read_bytes()
    refuses(deberta_c.ArgumentError, "float32 only", lambda: demo.attribute("a store", precision="int8"))
    with demo.ablate("c2p@all"):
        refuses(deberta_c.UnsupportedError, "leave the block of ablate", lambda: demo.attribute("a store"))


def made_folder(seed, folder):
    """A classifier of transformers with drawn configuration and weights, and the tokenizer of models/demo."""
    from test_accelerate import V1, made, random_config
    config = random_config(seed)
    config.vocab_size, config.num_labels = deberta_c.Model(DEMO).info["vocabulary_size"], 3
    model = made("DebertaForSequenceClassification" if isinstance(config, V1) else "DebertaV2ForSequenceClassification", config, seed)
    model.save_pretrained(folder)
    for name in ("spm.model", "tokenizer_config.json", "added_tokens.json"):
        shutil.copy(Path(DEMO) / name, folder)
    return model.double()


def torch_attributions(model, ids, baseline, rows, target):
    """Words, rows of the relative table, all positions, all token types; along one straight way, in float64."""
    import torch
    base = model.deberta
    embeddings, encoder = base.embeddings, base.encoder
    word = embeddings.word_embeddings.weight.detach()
    tables = [(embeddings, name, getattr(embeddings, name).weight.detach().clone()) for name in ("position_embeddings", "token_type_embeddings")
              if getattr(embeddings, name, None) is not None]
    relative = encoder.get_rel_embedding() if len(rows) else None
    relative = None if relative is None else relative.detach()
    mean = None if relative is None else relative[rows].mean(0)
    points, weights = np.polynomial.legendre.leggauss(POINTS)
    sums = {"words": torch.zeros(len(ids), dtype=torch.float64), "position_embeddings": 0.0, "token_type_embeddings": 0.0}
    distances = torch.zeros(0 if relative is None else len(relative), dtype=torch.float64)
    ends = {}
    for at, weight in [(1.0, None), (0.0, None)] + [((x + 1) / 2, w / 2) for x, w in zip(points, weights)]:
        given = (word[baseline] + at * (word[ids] - word[baseline]))[None].requires_grad_()
        for module, name, table in tables:
            getattr(module, name).weight = torch.nn.Parameter(at * table)
        moved = None if relative is None else (mean + at * (relative - mean)).requires_grad_()
        if moved is not None:
            encoder.get_rel_embedding = lambda moved=moved: moved
        logit = model(inputs_embeds=given, attention_mask=torch.ones(1, len(ids), dtype=torch.long)).logits[0, target]
        if weight is None:
            ends[at] = float(logit)
            continue
        model.zero_grad()
        logit.backward()
        sums["words"] += weight * (given.grad[0] * (word[ids] - word[baseline])).sum(-1)
        for module, name, table in tables:
            gradient = getattr(module, name).weight.grad
            sums[name] += 0.0 if gradient is None else weight * float((gradient * table).sum())
        if moved is not None and moved.grad is not None:
            distances += weight * (moved.grad * (relative - mean)).sum(-1)
    return sums, distances, ends


@pytest.mark.parametrize("seed", range(24))
def test_beside_autograd_of_transformers(seed, tmp_path):
    torch = pytest.importorskip("torch")
    pytest.importorskip("transformers")
    model = made_folder(seed, tmp_path)
    opened = deberta_c.Model(str(tmp_path))
    found = opened.attribute(TEXT, class_="1", steps=POINTS)
    cut = opened.tokenize(TEXT)
    ids = torch.tensor(np.array(cut.ids, np.int64))
    mask = int(opened.tokenize("[MASK]").ids[1])
    baseline = torch.tensor([i if token["special"] else mask for i, token in zip(cut.ids.tolist(), found.about["tokens"])])
    rows = found.distances["row"]
    sums, distances, ends = torch_attributions(model, ids, baseline, rows.tolist(), 1)
    size = sum(np.abs(part).sum() for part in (found.words, found.positions, found.token_types, found.distances["c2p"], found.distances["p2c"]))
    bar = 2e-5 * (size + max(map(abs, ends.values())))
    assert abs(found.value - ends[1.0]) < bar and abs(found.baseline_value - ends[0.0]) < bar
    assert np.abs(found.words - sums["words"].numpy()).max() < bar
    assert abs(found.positions.sum() - sums["position_embeddings"]) < bar and abs(found.token_types.sum() - sums["token_type_embeddings"]) < bar
    if len(rows):
        assert np.abs(found.distances["c2p"] + found.distances["p2c"] - distances.numpy()[rows]).max() < bar
        assert abs(float(distances.sum()) - float(distances.numpy()[rows].sum())) < bar, "rows that the text does not read have no share"


@pytest.mark.parametrize("seed", range(20))
def test_beside_captum(seed, tmp_path):
    """Words alone, which is what captum's layer of embeddings attributes to."""
    torch, attr = pytest.importorskip("torch"), pytest.importorskip("captum.attr")
    pytest.importorskip("transformers")
    model = made_folder(100 + seed, tmp_path)
    opened = deberta_c.Model(str(tmp_path))
    found = opened.attribute(TEXT, class_="2", steps=POINTS, parts="words", baseline="pad")
    ids = opened.tokenize(TEXT).ids.tolist()
    pad = 0
    baseline = [i if token["special"] else pad for i, token in zip(ids, found.about["tokens"])]
    forward = lambda given: model(input_ids=given, attention_mask=torch.ones_like(given)).logits  # noqa: E731
    by = attr.LayerIntegratedGradients(forward, model.deberta.embeddings.word_embeddings)
    other = by.attribute(torch.tensor([ids]), baselines=torch.tensor([baseline]), target=2, n_steps=POINTS, method="gausslegendre").sum(-1)[0]
    bar = 2e-5 * (np.abs(found.words).sum() + abs(found.value))
    assert np.abs(found.words - other.detach().numpy()).max() < bar
