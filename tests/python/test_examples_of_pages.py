"""Examples in Python of README and pages, as they stand there: they run, and print what the page says. SPDX-License-Identifier: MIT"""
import re

import numpy as np
import pytest

import deberta_c
from conftest import DEMO, ROOT


def example_with(page, words):
    """The one block in Python of a page that has these words."""
    (block,) = [code for code in re.findall(r"```python\n(.*?)```", (ROOT / page).read_text(encoding="utf-8"), re.S) if words in code]
    return block


@pytest.fixture()
def place(tmp_path, monkeypatch):
    """A folder that has models/."""
    (tmp_path / "models").symlink_to(ROOT / "models")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_readme(place, capsys):
    """All of it, with a small model of its own in place of a published one."""
    transformers = pytest.importorskip("transformers")
    from test_accelerate import V2, V3, made
    block, path = example_with("README.md", "accelerate"), "./deberta-v3-zeroshot"
    assert block.count(path) == 1
    labels = ["entailment", "neutral", "contradiction"]
    config = V2(**{**V3, "vocab_size": 6000, "num_labels": 3}, id2label=dict(enumerate(labels)), label2id={name: k for k, name in enumerate(labels)})
    made("DebertaV2ForSequenceClassification", config).save_pretrained(place / "small")
    transformers.AutoTokenizer.from_pretrained(DEMO).save_pretrained(place / "small")
    names = {}
    exec(block.replace(path, str(place / "small")), names)
    printed = capsys.readouterr().out
    (shapes,) = re.findall(r"print\(states.*?# *(.*)", block)
    assert shapes in printed and "'token'" in printed and "times as fast" in printed
    assert names["pipe"].model.deberta.encoder.accelerated.options["precision"] == "float32", "it is still accelerated behind compare"


def test_attributions(place, capsys):
    """It prints the block below it, with equal tokens each by itself, as plain numbers."""
    page = (ROOT / "docs" / "attribution.md").read_text(encoding="utf-8")
    block = example_with("docs/attribution.md", "attribute(")
    (said,) = re.findall(re.escape(block) + r"```\n\n```\n(.*?)```", page, re.S)
    exec(block, {})
    assert capsys.readouterr().out == said and "np." not in said
    assert (place / "ishmael.pdf").stat().st_size and (place / "ishmael.tex").stat().st_size


def test_the_measure_of_a_trace_is_the_one_described(demo):
    """One answer is a probability, two are a difference of logits, and the description of Model.trace has both names."""
    asked = {"corrupted": "The old captain [MASK] home."}
    one, two = (demo.trace("The old sailor [MASK] home.", answer=answer, **asked) for answer in ("went", "was,went"))
    for found, name in ((one, "probability"), (two, "logit difference")):
        assert found["measure"] == name and f'"{name}"' in deberta_c.Model.trace.__doc__
    states = one["measures"]["states"][~np.isnan(one["measures"]["states"])]  # NaN: not patched
    assert all(0 <= one[run] <= 1 for run in ("clean", "corrupted")) and states.size and 0 <= states.min() <= states.max() <= 1
