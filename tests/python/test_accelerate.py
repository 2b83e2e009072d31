"""accelerate() beside the model as it was: every head class, random configurations, padding, holes, wrong use. SPDX-License-Identifier: MIT"""
import copy
import gc
import re
import sys
import threading

import numpy as np
import pytest

import deberta_c
from conftest import DEMO, ROOT, refuses, resident_kib

sys.path.insert(0, str(ROOT / "tools"))
from rivals import python_costs  # noqa: E402

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

from deberta_c import _lending  # noqa: E402

V1, V2 = transformers.DebertaConfig, transformers.DebertaV2Config
# All that transformers has, so that a new one is tested too.
HEADS = sorted(name for name in dir(transformers) if re.fullmatch(r"Deberta(V2)?(Model|For\w+)", name))
SMALL = {"vocab_size": 200, "hidden_size": 48, "num_hidden_layers": 2, "num_attention_heads": 3, "intermediate_size": 80, "relative_attention": True,
         "pos_att_type": ["c2p", "p2c"], "initializer_range": 0.15, "num_labels": 5}
V3 = {**SMALL, "share_att_key": True, "position_biased_input": False, "position_buckets": 16, "norm_rel_ebd": "layer_norm", "type_vocab_size": 0}

V2_PLAIN = {**SMALL, "conv_kernel_size": 3, "conv_act": "gelu", "type_vocab_size": 2, "position_biased_input": True, "norm_rel_ebd": "none"}


def made(name, config, seed=0):
    torch.manual_seed(seed)
    return getattr(transformers, name)(config).eval()


def padded(rows, columns, vocabulary, seed, types=0, holes=False, left=False):
    rng = np.random.default_rng(seed)
    ids = rng.integers(4, vocabulary, (rows, columns))
    lengths = rng.integers(2, columns + 1, rows)
    lengths[0] = columns
    mask = np.arange(columns) < lengths[:, None]
    if holes:
        mask &= rng.random((rows, columns)) > 0.2
        mask[:, 0] = True
    if left:
        mask = mask[:, ::-1].copy()
    given = {"input_ids": torch.tensor(np.where(mask, ids, 0)), "attention_mask": torch.tensor(mask.astype(np.int64))}
    if types:
        given["token_type_ids"] = torch.tensor(rng.integers(0, types, (rows, columns)))
    return given


def agree(before, after, mask, bar=3e-5):
    """Everything that the outputs hold, where tokens are real."""
    assert type(before) is type(after) and list(before.keys()) == list(after.keys())
    real = mask.bool()
    for name in before.keys():
        pairs = zip(before[name], after[name]) if isinstance(before[name], tuple) else [(before[name], after[name])]
        for a, b in pairs:
            assert a.shape == b.shape and a.dtype == b.dtype, name
            if name == "attentions":
                both = real[:, None, :, None] & real[:, None, None, :]
                a, b = a * both, b * both
            elif a.dim() >= 2 and a.shape[:2] == real.shape:
                a, b = a[real], b[real]
            assert (a - b).abs().max() <= bar * max(1.0, float(a.abs().max())), name


def test_the_classes_are_found():
    assert {"DebertaModel", "DebertaForMaskedLM", "DebertaV2ForMultipleChoice", "DebertaV2ForQuestionAnswering"} <= set(HEADS)


@pytest.mark.parametrize("name, config", [(name, config) for name in HEADS for config in ([V2(**V3), V2(**V2_PLAIN)] if "V2" in name
                                                                                         else [V1(**SMALL, type_vocab_size=2)])])
def test_every_head_class(name, config):
    config = copy.deepcopy(config)
    config.num_labels = 2 if "QuestionAnswering" in name else 5
    model = made(name, config)
    given = padded(5, 19, 200, 1, types=2, holes=True)
    if "MultipleChoice" in name:
        given = {k: v.view(1, 5, 19) for k, v in given.items()}
    asked = {} if "MultipleChoice" in name else {"output_hidden_states": True, "output_attentions": True}
    with torch.no_grad():
        before, plain = model(**given, **asked), model(**given, return_dict=False)
    assert deberta_c.accelerate(model) is model
    with torch.no_grad():
        after, after_plain = model(**given, **asked), model(**given, return_dict=False)
    agree(before, after, given["attention_mask"])
    assert len(plain) == len(after_plain)
    deberta_c.restore(model)
    with torch.no_grad():
        assert all(torch.equal(a, b) for a, b in zip(model(**given, return_dict=False), plain))


def random_config(seed):
    rng = np.random.default_rng(seed)
    heads = int(rng.integers(1, 5))
    hidden = heads * int(rng.choice([8, 12, 16, 20, 64]))
    v1 = seed % 3 == 0
    options = {"vocab_size": 150, "hidden_size": hidden, "num_hidden_layers": int(rng.integers(1, 5)), "num_attention_heads": heads,
               "intermediate_size": int(rng.integers(3, 9)) * 16, "hidden_act": str(rng.choice(["gelu", "relu", "gelu_new", "silu"])),
               "relative_attention": bool(rng.random() < 0.85), "pos_att_type": [["c2p"], ["p2c"], ["c2p", "p2c"]][rng.integers(3)],
               "position_biased_input": bool(rng.random() < 0.4), "type_vocab_size": int(rng.choice([0, 2])), "max_position_embeddings": 96,
               "max_relative_positions": int(rng.choice([-1, 24])), "initializer_range": 0.12, "layer_norm_eps": float(rng.choice([1e-7, 1e-5]))}
    if v1:
        return V1(**options, talking_head=False)
    return V2(**options, share_att_key=bool(rng.random() < 0.6), position_buckets=int(rng.choice([-1, 8, 16])),
              norm_rel_ebd=str(rng.choice(["none", "layer_norm"])), conv_kernel_size=int(rng.choice([0, 3])), conv_act="gelu")


@pytest.mark.parametrize("seed", range(20))
def test_random_configurations(seed):
    """As many tokens as there are positions, so that the far distances are met; left padding too."""
    config = random_config(seed)
    model = made("DebertaModel" if isinstance(config, V1) else "DebertaV2Model", config, seed)
    given = padded(4, 70, 150, seed, types=config.type_vocab_size, holes=seed % 4 == 1, left=seed % 4 == 2)
    asked = {"output_hidden_states": True, "output_attentions": config.relative_attention}
    with torch.no_grad():
        before = model(**given, **asked)
        deberta_c.accelerate(model)
        agree(before, model(**given, **asked), given["attention_mask"], 1e-4)


@pytest.mark.parametrize("kind", ["float32", "float16", "bfloat16", "float64"])
@pytest.mark.parametrize("seed", [0, 1, 3, 5])
def test_weights_come_back(seed, kind):
    """The same bits in every parameter, and next to nothing held meanwhile, where positions are not projected by themselves."""
    config = random_config(seed) if seed else V2(**V3)
    model = made("DebertaModel" if isinstance(config, V1) else "DebertaV2Model", config, seed).to(getattr(torch, kind))
    before = {name: value.clone() for name, value in model.state_dict().items()}
    deberta_c.accelerate(model)
    lent = model.encoder.accelerated.lent
    assert seed or kind == "float64" or {name for name, (_, _, whole) in lent.kept.items() if whole is not None} == {"rel_embeddings.weight"}
    after = deberta_c.restore(model).state_dict()
    assert list(after) == list(before)
    for name, value in before.items():
        assert value.dtype == after[name].dtype and torch.equal(value, after[name]), name
    assert not hasattr(model.encoder, "accelerated")


@pytest.mark.parametrize("kind", ["float16", "bfloat16", "float64"])
def test_other_dtypes(kind):
    """Computed in float32 from the stored values; outputs have the model's type."""
    model = made("DebertaV2ForSequenceClassification", V2(**V3))
    given = padded(3, 12, 200, 3)
    model = model.to(getattr(torch, kind))
    wide = copy.deepcopy(model).double()
    deberta_c.accelerate(model)
    with torch.no_grad():
        hidden = model.deberta(**given).last_hidden_state
        exact = wide.deberta(**given).last_hidden_state
    real = given["attention_mask"].bool()
    assert hidden.dtype == getattr(torch, kind)
    assert (hidden.double() - exact)[real].abs().max() < {"float16": 4e-3, "bfloat16": 4e-2, "float64": 1e-4}[kind] * exact.abs().max()


def test_the_demo():
    model = transformers.DebertaV2ForSequenceClassification.from_pretrained(DEMO, dtype=torch.float32).eval()
    ours = deberta_c.Model(DEMO, reference="hf")
    given = padded(6, 40, 6000, 5)
    with torch.no_grad():
        agree(model(**given, output_hidden_states=True), deberta_c.accelerate(model)(**given, output_hidden_states=True), given["attention_mask"])
        hidden = model.deberta(**given).last_hidden_state
    rows = [row[m.bool()].numpy() for row, m in zip(given["input_ids"], given["attention_mask"])]
    for k, one in enumerate(ours.encode(rows)["hidden_states.5"]):
        assert np.array_equal(one, hidden[k, :len(one)].numpy()), "other bits than of the same weights from the file"


def test_padding_costs_nothing():
    """Rows of padding are zero, a text without tokens is, and work follows the real tokens."""
    model = deberta_c.accelerate(made("DebertaV2Model", V2(**V3)))
    given = padded(3, 9, 200, 2)
    given["attention_mask"][1] = 0
    with torch.no_grad():
        out = model(**given, output_hidden_states=True, output_attentions=True)
    assert not out.last_hidden_state[given["attention_mask"] == 0].any() and not out.attentions[0][1].any()
    assert model.encoder.accelerated.sessions._idle[0]._batch.sequences == 2


def test_in_place_of_the_encoder_of_a_pipeline():
    tokenizer = transformers.AutoTokenizer.from_pretrained(DEMO)
    config = V2(**{**V3, "vocab_size": 6000}, id2label={0: "entailment", 1: "neutral", 2: "contradiction"}, label2id={"entailment": 0, "neutral": 1, "contradiction": 2})
    config.num_labels = 3
    model = made("DebertaV2ForSequenceClassification", config)
    pipe = transformers.pipeline("zero-shot-classification", model=model, tokenizer=tokenizer, device="cpu")
    labels = ["whales", "shops", "wars"]
    before = pipe(["Call me Ishmael.", "a new store opened beside the mall"], candidate_labels=labels)
    assert deberta_c.accelerate(pipe) is pipe
    after = pipe(["Call me Ishmael.", "a new store opened beside the mall"], candidate_labels=labels)
    for a, b in zip(before, after):
        assert a["labels"] == b["labels"] and np.allclose(a["scores"], b["scores"], atol=1e-5)
    ner = transformers.pipeline("token-classification", model=made("DebertaV2ForTokenClassification", config), tokenizer=tokenizer, device="cpu")
    before = ner("Ada Lovelace was born in London.")
    after = deberta_c.accelerate(ner)("Ada Lovelace was born in London.")
    assert [one["entity"] for one in before] == [one["entity"] for one in after]


def test_cross_encoder(tmp_path):
    sentence_transformers = pytest.importorskip("sentence_transformers")
    made("DebertaV2ForSequenceClassification", V2(**{**V3, "vocab_size": 6000, "num_labels": 1})).save_pretrained(tmp_path)
    transformers.AutoTokenizer.from_pretrained(DEMO).save_pretrained(tmp_path)
    model = sentence_transformers.CrossEncoder(str(tmp_path), device="cpu")
    pairs = [("who sails?", "Call me Ishmael."), ("what opened?", "a new store opened beside the new mall, and everybody went there")]
    assert np.allclose(model.predict(pairs), deberta_c.accelerate(model).predict(pairs), atol=1e-5)


def test_gliner(tmp_path):
    pytest.importorskip("gliner")
    import gliner.model
    made("DebertaV2Model", V2(**{**V3, "vocab_size": 6100})).save_pretrained(tmp_path)
    transformers.AutoTokenizer.from_pretrained(DEMO).save_pretrained(tmp_path)
    torch.manual_seed(0)
    config = {"model_name": str(tmp_path), "hidden_size": 48, "max_width": 4, "span_mode": "markerV0", "max_len": 64}
    model = gliner.model.UniEncoderSpanGLiNER.load_from_config(config).eval()
    text, labels = "Ada Lovelace was born in London.", ["person", "city"]
    before = model.predict_entities(text, labels, threshold=0.0)
    after = deberta_c.accelerate(model).predict_entities(text, labels, threshold=0.0)
    assert [(e["start"], e["end"], e["label"]) for e in before] == [(e["start"], e["end"], e["label"]) for e in after] and before
    assert np.allclose([e["score"] for e in before], [e["score"] for e in after], atol=1e-4)


def test_what_is_refused(tmp_path):
    model = made("DebertaV2ForSequenceClassification", V2(**V3))
    given = padded(2, 8, 200, 4)
    refuses(deberta_c.UnsupportedError, "training mode", deberta_c.accelerate, model.train())
    deberta_c.accelerate(model.eval())
    assert deberta_c.accelerate(model) is model, "twice is once"
    model.to("cpu"), model.float(), model.eval()
    refused = [(lambda: model.half(), "stays"), (lambda: model.to(torch.float64), "stays"), (lambda: model.to("meta"), "stays"), (lambda: model.train(), "does not train"),
               (lambda: copy.deepcopy(model), "copied"), (lambda: model.save_pretrained(tmp_path), "to the library"),
               (lambda: model(inputs_embeds=torch.zeros(1, 3, 48)), "inputs_embeds"), (lambda: model(given["input_ids"], attention_mask=given["attention_mask"] * 0.5), "0 and 1"),
               (lambda: model.deberta(given["input_ids"], attention_mask=torch.ones(2, 8, 8)), r"attention_mask has shape \[2, 8, 8\], expected \[2, 8\]"), (lambda: model.deberta(given["input_ids"] + 500), "vocabulary"),
               (lambda: model.deberta(given["input_ids"], attention_mask=torch.ones(2, 7)), "shape"), (lambda: model.deberta(given["input_ids"][0]), "expected integers"),
               (lambda: deberta_c.accelerate(torch.nn.Linear(2, 2)), "holds no DebertaModel"), (lambda: deberta_c.accelerate("text"), "holds no DebertaModel"),
               (lambda: deberta_c.accelerate(made("DebertaV2Model", V2(**V3)), threads=-1), "threads: expected a number from 0 to 1024, found -1")]
    for call, words in refused:
        refuses(deberta_c.Error, words, call)
        model.eval()
        with torch.no_grad():
            model(**given)
    assert model.deberta.embeddings.word_embeddings.weight.dtype == torch.float32
    refuses(deberta_c.Error, "is torch.float32 on meta, expected .* on the CPU", deberta_c.accelerate, made("DebertaV2Model", V2(**V3)).to("meta"))
    other = made("DebertaV2Model", V2(**V3))
    del other.encoder.layer[0].output.dense.weight
    refuses(deberta_c.FormatError, "'encoder.layer.0.output.dense.weight' is missing", deberta_c.accelerate, other)
    model.resize_token_embeddings(210)
    refuses(deberta_c.Error, "word embeddings are others", model, **given)


def test_threads_wait_or_have_a_session():
    """Four threads, 30 calls each: the same bits as one after the other. Restoring meanwhile lets the rest run in PyTorch."""
    model, given = made("DebertaV2ForSequenceClassification", V2(**V3)), padded(4, 30, 200, 1)
    cut = [{name: value[:, :k + 2] for name, value in given.items()} for k in range(20)]

    def logits(k):
        with torch.no_grad():
            return model(**cut[k]).logits

    plain = [logits(k) for k in range(20)]
    for sessions, threads in ((1, None), (2, 1), (4, 1)):
        deberta_c.accelerate(model, sessions=sessions, threads=threads)
        alone, found = [logits(k) for k in range(20)], []

        def work(first):
            for k in range(first, first + 30):
                try:
                    found.append((k % 20, logits(k % 20)))
                except deberta_c.Error as reason:
                    found.append((k % 20, reason))

        for meanwhile in (lambda: None, lambda: deberta_c.restore(model)):
            found.clear()
            workers = [threading.Thread(target=work, args=(5 * k,)) for k in range(4)]
            for one in workers:
                one.start()
            meanwhile()
            for one in workers:
                one.join()
            assert len(found) == 120
            for k, value in found:
                assert torch.is_tensor(value), value
                assert torch.equal(value, alone[k]) or (meanwhile() is not None and torch.equal(value, plain[k]))
    for wrong in (0, "2", True):
        refuses(deberta_c.ArgumentError, "sessions: expected a number from 1", deberta_c.accelerate, model, sessions=wrong)


def test_gradients():
    """Reading needs no gradient; the head's own is right; one through the encoder is refused; frozen, the head may learn."""
    model, plain = (made("DebertaV2ForSequenceClassification", V2(**V3)) for _ in range(2))
    given, labels = padded(3, 9, 200, 2), torch.tensor([0, 1, 2])
    deberta_c.accelerate(model)
    out = model(**given, labels=labels, output_hidden_states=True, output_attentions=True)
    assert out.logits.requires_grad and all(one.requires_grad for one in (*out.hidden_states, *out.attentions))
    head, other = (torch.autograd.grad(one(**given, labels=labels).loss, [one.classifier.weight])[0] for one in (model, plain))
    assert (head - other).abs().max() < 1e-5
    for through in (out.loss, out.hidden_states[0].sum(), out.attentions[1].sum()):
        refuses(deberta_c.UnsupportedError, "no gradient flows", through.backward)
    model.zero_grad()
    model.deberta(**given).last_hidden_state[:, 0] = 0  # as before
    with torch.no_grad():
        assert not model(**given).logits.requires_grad
    deberta_c.restore(model).deberta.requires_grad_(False)
    deberta_c.accelerate(model)(**given, labels=labels).loss.backward()
    plain(**given, labels=labels).loss.backward()
    assert (model.classifier.weight.grad - plain.classifier.weight.grad).abs().max() < 1e-5


def test_an_interrupted_accelerate_changes_nothing(monkeypatch):
    """Ctrl-C while weights are handed over: what the library had already comes back."""
    model = made("DebertaV2Model", V2(**V3))
    before = {name: value.clone() for name, value in model.state_dict().items()}
    lent, names = _lending._Lent, []
    lend = lent._lend

    def interrupted(self, name, parameter):
        names.append(name)
        if len(names) == 9:
            raise KeyboardInterrupt
        lend(self, name, parameter)

    monkeypatch.setattr(lent, "_lend", interrupted)
    refuses(KeyboardInterrupt, "", deberta_c.accelerate, model)
    monkeypatch.undo()
    assert len(names) == 9 and type(model.encoder).__name__ == "DebertaV2Encoder" and "forward" not in vars(model)
    assert all(torch.equal(value, before[name]) for name, value in model.state_dict().items())
    deberta_c.restore(deberta_c.accelerate(model))
    assert all(torch.equal(value, before[name]) for name, value in model.state_dict().items())


def test_train_changes_nothing():
    model = deberta_c.accelerate(made("DebertaV2ForSequenceClassification", V2(**V3)))
    outer = deberta_c.accelerate(torch.nn.Sequential(torch.nn.Dropout(), made("DebertaV2ForSequenceClassification", V2(**V3)))).eval()
    for one in (model, model.deberta, outer):
        refuses(deberta_c.UnsupportedError, "does not train", one.train)
        assert not any(module.training for module in one.modules() if module is not model.deberta.encoder)
        with torch.no_grad():
            model(**padded(2, 8, 200, 4))
    for one in (model, outer):
        assert deberta_c.restore(one).train().training and "train" not in vars(one)


def test_numbers_that_would_be_cut():
    model, given = deberta_c.accelerate(made("DebertaV2Model", V2(**V2_PLAIN))), padded(2, 8, 200, 4)
    ids = given["input_ids"]
    for wrong, words in (({"input_ids": ids + 2**32}, "does not fit into 32 bits"), ({"input_ids": ids[:0]}, "there is no token"),
                         ({"input_ids": ids[:, :0]}, "there is no token"), ({"input_ids": ids.tolist()}, "a list, expected integers"),
                         ({"input_ids": ids.to("meta")}, "on meta, expected .* on the CPU"), ({"input_ids": ids, "token_type_ids": ids * 0.5}, "token_type_ids is torch.float32"),
                         ({"input_ids": ids, "position_ids": ids * 0.5}, "expected integers"), ({"input_ids": ids, "attention_mask": [[1] * 8] * 2}, "has shape")):
        refuses(deberta_c.Error, words, model, **wrong)


def test_options_of_a_second_accelerate():
    model = deberta_c.accelerate(made("DebertaV2Model", V2(**V3)))
    refuses(deberta_c.UnsupportedError, "accelerated already, with precision='float32', not 'int8'", deberta_c.accelerate, model, precision="int8")
    both = torch.nn.ModuleList([made("DebertaV2Model", V2(**V3)), made("DebertaV2Model", V2(**V3))])
    both[1].encoder = both[0].encoder
    refuses(deberta_c.Error, "", deberta_c.accelerate, both)
    assert not hasattr(both[0].encoder, "accelerated"), "all of them, or none"
    deberta_c.accelerate(both[0])
    refuses(deberta_c.UnsupportedError, "restore.. that one first", deberta_c.accelerate, both[1])


def test_memory():
    """Twice the weights and 200 MB while it takes over, once afterwards (and the folded positions)."""
    rows = list(python_costs.memory(None))
    assert len(rows) == 2 and all(row[-1] for row in rows), rows


@pytest.mark.parametrize("precision", ["int16", "int8"])
def test_low_precision(precision):
    """As good as the library's low precision is, other bits than float32, and undone without a trace."""
    model = made("DebertaV2ForSequenceClassification", V2(**{**V3, "hidden_size": 96}))
    given = padded(4, 23, 200, 6, holes=True)
    real = given["attention_mask"].bool()
    with torch.no_grad():
        before = model(**given, output_hidden_states=True)
        deberta_c.accelerate(model, precision=precision)
        after = model(**given, output_hidden_states=True)
    a, b = before.hidden_states[-1][real], after.hidden_states[-1][real]
    assert {"int16": 1e-6, "int8": 1e-4}[precision] < float((a - b).norm() / a.norm()) < {"int16": 1e-3, "int8": 1e-1}[precision]
    assert model.deberta.encoder.accelerated.weights.handle and after.logits.shape == before.logits.shape
    deberta_c.restore(model)
    with torch.no_grad():
        assert torch.equal(model(**given).logits, before.logits)
    refuses(deberta_c.ArgumentError, "precision: expected 'float32', 'int16' or 'int8', found 'int4'", deberta_c.accelerate, model, precision="int4")


def test_no_leak():
    gc.collect()
    model = deberta_c.accelerate(made("DebertaV2Model", V2(**V3)))
    given = padded(2, 8, 200, 4)
    with torch.no_grad():
        for _ in range(500):
            model(**given)
        before = resident_kib()
        for _ in range(3000):
            model(**given)
    assert resident_kib() - before < 4096
