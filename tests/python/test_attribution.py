"""Model.attribute beside autograd through transformers' own classes, and beside captum. SPDX-License-Identifier: MIT"""
import re
import shutil
import warnings
from pathlib import Path

import numpy as np
import pytest

import deberta_c
from conftest import DEMO, ROOT, refuses
from deberta_c import _program

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


@pytest.mark.parametrize("text", ["a new [MASK] opened", "The [MASK] sailor told the [MASK] a story."])
def test_a_mask_that_is_not_asked_about_is_named(demo, text):
    with pytest.warns(deberta_c.NoteWarning, match=re.escape('this is about the label of the text; head="mlm" asks for the word at [MASK]')):
        demo.attribute(text, steps=2)
    with warnings.catch_warnings(record=True) as said:
        demo.attribute(text, steps=2, head="sequence")
    assert not any("asks for the word" in str(one.message) for one in said)


def test_options_of_sentences_become_arguments():
    """With a value where the sentence has one: a choice of that option, a number, a placeholder; the next word is none."""
    for said, own in (("--head mlm asks", 'head="mlm" asks'), ("--row N draws another", "row=N draws another"), ("--steps 64, which", "steps=64, which"),
                      ("--layers 2,3 of --heads all.", 'layers="2,3" of heads="all".'), ("--numbers FILE.csv has", 'numbers="FILE.csv" has'),
                      ("(--swap A,B or --noise WORDS)", '(swap="A,B" or noise=WORDS)'), ("without --steps they are", "without steps= they are"),
                      ("--token-range 3:9: x", 'token_range="3:9": x'), ("see `deberta bench MODEL --isa all`", "see `deberta bench MODEL --isa all`")):
        assert _program._own_words(said) == own, said
    script = "".join(re.findall(r"^ *'(?:bench|attention|attribute|receptive-field) .*\n.*", _program.run("completion", "bash").decode(), re.M))
    choices = {(name, one) for name, values in re.findall(r"--([a-z-]+)\) values='([^']*)'", script) for one in values.split()}
    seen = 0
    for path in sorted((ROOT / "program").glob("**/*.[ch]")):
        for text in re.findall(r'"((?:[^"\\\n]|\\.)*)"', re.sub(r'"\s*\n\s*"', "", path.read_text())):
            if re.search(r"(note|[a-z]{3}).*--[a-z]", text) and "deberta " not in text and path.parts[-2] not in ("train", "tasks", "verify", "encode"):
                for name, word in re.findall(r"--([a-z][a-z-]+) ([a-z0-9-]+)", text):
                    found = _program._own_words(f"--{name} {word} x")
                    is_value = found == f'{name.replace("-", "_")}="{word}" x'
                    could_be = word in ("all", "states") or word in {one for _, one in choices}  # those two are of lists, which have no choices
                    assert could_be if is_value else (name, word) not in choices, (path, text, found)
                    seen += is_value
    assert seen >= 4
