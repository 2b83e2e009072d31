"""The lean form of the encoder that tools/peers.py measures (torch-lean, and what ONNX Runtime and OpenVINO get of it) against transformers.
SPDX-License-Identifier: MIT"""
import sys

import numpy as np
import pytest
from conftest import ROOT

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")
sys.path.insert(0, str(ROOT / "tools"))
from rivals import engines, shapes  # noqa: E402
from rivals.graphs import kinds_of, traced_length  # noqa: E402
from rivals.lean_encoder import LeanClassifier, LeanEncoder  # noqa: E402

CONFIG = {"vocab_size": 50, "hidden_size": 24, "num_hidden_layers": 2, "num_attention_heads": 3, "intermediate_size": 32, "type_vocab_size": 0,
          "max_position_embeddings": 32, "relative_attention": True, "pos_att_type": ["p2c", "c2p"], "share_att_key": True,
          "norm_rel_ebd": "layer_norm", "position_biased_input": False, "layer_norm_eps": 1e-7}


@pytest.mark.parametrize(("n", "buckets", "farthest"), [(1, 8, -1), (7, 8, -1), (40, 8, -1), (40, 8, 16), (20, 32, -1)])
def test_the_lean_encoder_is_the_encoder(n, buckets, farthest):
    """Near distances, log buckets, distances beyond the farthest; several texts at once. Weights that make position terms matter."""
    torch.manual_seed(n)
    config = transformers.DebertaV2Config(**CONFIG, position_buckets=buckets, max_relative_positions=farthest)
    model = transformers.DebertaV2Model(config).double().eval()
    with torch.no_grad():
        for weight in model.parameters():
            weight.copy_(torch.randn_like(weight) * (1.0 if weight.dim() == 1 else weight.shape[1] ** -0.5))
        ids = torch.randint(1, 50, (3, n))
        expected = model(input_ids=ids, attention_mask=torch.ones_like(ids)).last_hidden_state
        found = LeanEncoder(model, n).eval()(ids)
        assert found.shape == expected.shape
        assert (found - expected).abs().max() < 1e-6 * expected.abs().max()


@pytest.mark.parametrize("lengths", [(40,), (1, 3), (7, 23, 12)])
def test_the_lean_classifier_takes_any_length_and_padding(lengths):
    torch.manual_seed(1)
    model = transformers.DebertaV2ForSequenceClassification(transformers.DebertaV2Config(**CONFIG, position_buckets=8, num_labels=3)).double().eval()
    with torch.no_grad():
        for weight in model.parameters():
            weight.copy_(torch.randn_like(weight) * (1.0 if weight.dim() == 1 else weight.shape[1] ** -0.5))
        lean, ids = LeanClassifier(model, 40).eval(), torch.randint(1, 50, (len(lengths), max(lengths)))
        mask = (torch.arange(max(lengths)) < torch.tensor(lengths)[:, None]).long()
        expected = torch.cat([model(input_ids=row[None, :n], attention_mask=mask[:1, :1].expand(1, n)).logits for row, n in zip(ids, lengths)])
        assert (lean(ids, mask) - expected).abs().max() < 1e-6 * expected.abs().max()
        assert (lean(ids[:1, : lengths[0]]) - expected[:1]).abs().max() < 1e-6 * expected.abs().max()


@pytest.mark.parametrize("lengths", [(40,), (1, 3), (7, 23, 12)])
def test_torch_lean_takes_any_length_and_padding(lengths, tmp_path, monkeypatch):
    """As a stream of requests has them: the engine, from a folder."""
    torch.manual_seed(2)
    model = transformers.DebertaV2Model(transformers.DebertaV2Config(**CONFIG, position_buckets=8)).eval()
    model.save_pretrained(tmp_path)
    monkeypatch.setattr(torch, "set_num_interop_threads", lambda _: None)  # can be said once in a process
    encode, _ = engines.open_torch_lean(engines.Job(str(tmp_path), (), 1, None, 40))
    ids, mask = shapes.padded_batch(lengths, np.random.default_rng(1), 50)
    found = encode(ids, mask)
    with torch.inference_mode():
        for row, (text, n) in enumerate(zip(torch.from_numpy(ids), lengths)):
            expected = model(input_ids=text[None, :n], attention_mask=torch.ones(1, n, dtype=torch.long)).last_hidden_state[0].numpy()
            assert np.abs(found[row, :n] - expected).max() < 1e-5


def test_a_batch_goes_to_the_graph_that_is_for_it():
    opened, used = [], []

    def open_graph(path):
        opened.append(path)
        return lambda ids, mask: used.append(path)

    for graphs, expected in ((("whole", "masked"), ["whole", "masked", "whole"]), (("one",), ["one"] * 3)):
        opened.clear(), used.clear()
        encode = engines.by_padding(engines.Job("", graphs, 1, None, 40), open_graph)
        assert opened == [graphs[0]]
        for mask in ([[1, 1]], [[1, 1], [1, 0]], [[1, 1], [1, 1]]):
            encode(None, np.array(mask))
        assert used == expected and opened == list(graphs)


def test_kinds_of_graphs():
    assert kinds_of(None, False) == () and kinds_of("float32", False) == kinds_of("float32", True) == ("float32",)
    assert kinds_of("lean-int8", True) == ("lean-int8",)
    assert kinds_of("lean", False) == ("lean-any", "lean-any-padded")
    assert kinds_of("lean-int8", False, "logits") == ("lean-logits-int8", "lean-logits-padded-int8")
    assert [traced_length(kind, "v3-base", 40) for kind in ("lean", "lean-int8", "lean-any", "lean-logits-padded-int8")] == [40, 40, 512, 512]
    lengths = shapes.lengths_up_to(512)
    assert (min(lengths), max(lengths), len(lengths)) == (16, 512, 32) and shapes.lengths_up_to(5) == [5] * 32
