"""Padding and holes: one rule in package, program and accelerate. SPDX-License-Identifier: MIT"""
import json
import subprocess
import warnings

import numpy as np
import pytest

import deberta_c
from conftest import DEMO, GOLDEN, read_safetensors, refuses
from deberta_c import _program

IDS = [[0, 0, 1, 442, 2685, 2], [1, 5, 442, 728, 121, 2], [0, 1, 9, 8, 2, 0], [1, 7, 8, 9, 2, 0]]
MASK = [[0, 0, 1, 1, 1, 1], [1, 1, 0, 1, 1, 1], [0, 1, 1, 0, 1, 0], [1, 1, 1, 1, 1, 0]]


@pytest.mark.parametrize("folder", [DEMO, str(GOLDEN / "05-v1-posbias-types-b3")])
@pytest.mark.parametrize("rows", [range(4), [0], [1], [2], [3]])
def test_the_bits_of_the_program(folder, rows, tmp_path):
    """Every tensor of a batch with padding on either side and holes, in places and shapes as well."""
    given = {"input_ids": [[k % 60 for k in IDS[r]] for r in rows], "attention_mask": [MASK[r] for r in rows]}
    (tmp_path / "i.json").write_text(json.dumps(given))
    subprocess.run([_program.PROGRAM, "encode", folder, "--input", tmp_path / "i.json", "--hidden", "all", "--attention-layers", "all", "--component-layers", "all",
                    "--logits", "-q", "-o", tmp_path / "o.safetensors"], check=True)
    stored = read_safetensors(tmp_path / "o.safetensors")
    with deberta_c.Model(folder) as model:
        found = model.encode(given, hidden="all", attention="all", components="all", logits=True)
        last = model.encode(given)
    assert set(found) == {name for name in stored if name.startswith(("hidden", "attn", "logits"))} and set(last) < set(found)
    for name, values in found.items():
        assert values.shape == stored[name].shape and np.array_equal(values, stored[name]), name
    assert all(np.array_equal(values, found[name]) for name, values in last.items())


def test_left_padding_changes_nothing_and_is_said(demo):
    plain = demo.encode([[1, 442, 2685, 2]], logits="sequence")
    with pytest.warns(deberta_c.NoteWarning, match="mask of text 0 begins with 2 zeros: .* first token is the first one that the mask keeps"):
        padded = demo.encode([[0, 0, 1, 442, 2685, 2]], mask=[[0, 0, 1, 1, 1, 1]], logits="sequence")
    assert np.array_equal(plain["logits.sequence"], padded["logits.sequence"]) and np.array_equal(plain["hidden_states.5"][0], padded["hidden_states.5"][0, 2:])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        demo.encode([IDS[1], IDS[3]], mask=[MASK[1], MASK[3]])
    ragged = demo.encode([[1, 442, 2], [1, 5, 7, 9, 2]], mask=[[1, 0, 1], [1, 1, 1, 1, 0]])["hidden_states.5"]
    assert [one.shape for one in ragged] == [(3, 192), (5, 192)] and not ragged[0][1].any() and not ragged[1][4].any() and ragged[1][3].any()


@pytest.mark.filterwarnings("ignore")
def test_no_head_is_asked_of_a_hole(demo):
    at = demo.encode(IDS, mask=MASK, logits="mlm", at=[[2, 5], [], [4], [0]])["logits.mlm"]
    whole = demo.encode(IDS, mask=MASK, logits="mlm")["logits.mlm"]
    assert [len(one) for one in at] == [2, 0, 1, 1] and np.array_equal(at[0], whole[0, [2, 5]]) and np.array_equal(at[2], whole[2, [4]])
    assert not whole[0, :2].any() and not whole[1, 2].any() and not whole[2, 3].any()
    for places, words in (([[0], [], [], []], "token 0 of text 0 is masked"), ([[], [2], [], []], "token 2 of text 1 is masked"), ([[], [6], [], []], "below 6 for text 1"), ([[]], "1 rows of token numbers")):
        refuses(deberta_c.ArgumentError, words, demo.encode, IDS, mask=MASK, logits="mlm", at=places)
    none = [MASK[0], [0] * 6, MASK[2], MASK[3]]
    found = demo.encode(IDS, mask=none)["hidden_states.5"]
    assert not found[1].any() and np.array_equal(found[2], demo.encode(IDS, mask=MASK)["hidden_states.5"][2])
    refuses(deberta_c.ArgumentError, "the mask keeps no token of text 1, so that a head", demo.encode, IDS, mask=none, logits=True)
    refuses(deberta_c.ArgumentError, "the mask keeps no token of any text", demo.encode, [[1, 2]], mask=[[0, 0]])


def test_a_masked_first_token_of_an_accelerated_model():
    torch = pytest.importorskip("torch")
    from test_accelerate import V2, V3, made
    given = {"input_ids": torch.tensor([[0, 0, 1, 5, 7], [1, 6, 7, 8, 9]]), "attention_mask": torch.tensor([[0, 0, 1, 1, 1], [1] * 5])}
    judge, plain = made("DebertaV2ForSequenceClassification", V2(**V3)), made("DebertaV2Model", V2(**V3))
    with torch.no_grad():
        deberta_c.accelerate(judge)
        refuses(deberta_c.UnsupportedError, "first token of text 0 is masked, which the classifier reads: pad on the right", judge, **given)
        judge(given["input_ids"][1:])
        deberta_c.restore(judge)(**given)
        deberta_c.accelerate(plain)
        with pytest.warns(deberta_c.NoteWarning, match="first token of text 0 is masked: leading holes are padding") as seen:
            states = [plain(**given).last_hidden_state for _ in range(2)]
        assert len(seen) == 1 and not states[0][0, :2].any() and states[0][0, 2:].any()


@pytest.mark.parametrize("rows, words", [(([0] * 5,), "text 0"), (([1] * 5, [0] * 5), "text 1"), (([1, 0, 1, 0, 1], [1] * 5, [0] * 5, [0, 1, 1, 0, 1]), "text 2")])
def test_a_text_without_tokens_of_an_accelerated_model(rows, words):
    """Alone, in a batch, beside holes: PyTorch's classifier reads a row of numbers there and ours one of zeros."""
    torch = pytest.importorskip("torch")
    from test_accelerate import V2, V3, made
    mask = torch.tensor(rows)
    ids = 4 + torch.arange(mask.numel()).view(mask.shape)
    good = [k for k, row in enumerate(rows) if row[0]]
    judge, plain = made("DebertaV2ForSequenceClassification", V2(**V3)), made("DebertaV2Model", V2(**V3))
    with torch.no_grad():
        before = judge(ids, attention_mask=mask).logits
        deberta_c.accelerate(judge)
        refuses(deberta_c.UnsupportedError, f"first token of {words} is masked, which the classifier reads: the mask keeps no token of it; leave the text out", judge, ids, attention_mask=mask)
        if good:
            assert (judge(ids[good], attention_mask=mask[good]).logits - before[good]).abs().max() < 1e-5
        deberta_c.accelerate(plain)
        with pytest.warns(deberta_c.NoteWarning, match=f"first token of {words} is masked: the mask keeps no token of it") as seen:
            states = [plain(ids, attention_mask=mask).last_hidden_state for _ in range(2)]
    assert len(seen) == 1 and not states[1][mask == 0].any() and (not good or states[1][good][mask[good] == 1].all())
