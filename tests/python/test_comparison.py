"""compare(): the same model before and after, on the reader's texts, left as it was. SPDX-License-Identifier: MIT"""
import json
import subprocess
import sys

import numpy as np
import pytest

import deberta_c
from deberta_c import comparison
from deberta_c.__main__ import main
from conftest import DEMO, refuses
from test_accelerate import V2, V3, made, torch, transformers

TEXTS = ["Call me Ishmael.", "a new store opened beside the mall", "The old sailor told the boys a story about the sea."]


@pytest.fixture(scope="module")
def tokenizer():
    return transformers.AutoTokenizer.from_pretrained(DEMO)


@pytest.fixture()
def model():
    return made("DebertaV2ForSequenceClassification", V2(**{**V3, "vocab_size": 6000}))


def test_a_model_with_its_tokenizer(model, tokenizer):
    before = {name: value.clone() for name, value in model.state_dict().items()}
    found = deberta_c.compare(model, [*TEXTS, (TEXTS[0], TEXTS[1])], tokenizer=tokenizer, rounds=2)
    assert [row["precision"] for row in found.rows] == ["float32", "int16", "int8"]
    first, _, last = found.rows
    assert first["largest_difference"] < 1e-5 < last["largest_difference"] and first["changed"] == 0
    assert all(0 < row["before_p50_s"] <= row["before_p99_s"] and 0 < row["factor"] and row["calls"] == 4 for row in found.rows)
    assert first["memory_before_bytes"] == sum(4 * one.numel() for one in model.deberta.parameters())
    json.dumps(found.as_dict())
    assert "times as fast" in str(found) and "PyTorch" in str(found) and len(str(found).splitlines()) == 6
    assert all(torch.equal(value, before[name]) for name, value in model.state_dict().items())
    assert "forward" not in vars(model.deberta) and not hasattr(model.deberta.encoder, "accelerated")
    assert deberta_c.compare(model, TEXTS, tokenizer=tokenizer, rounds=1, batch=2, precisions=["int8"]).about["calls"] == 2


def test_pipelines_and_calls(model, tokenizer):
    pipe = transformers.pipeline("text-classification", model=model, tokenizer=tokenizer, device="cpu")
    (row,) = deberta_c.compare(pipe, TEXTS, precisions=["float32"], rounds=1, top_k=None).rows
    assert row["changed"] == 0 and 0 <= row["largest_difference"] < 1e-5
    (row,) = deberta_c.compare(pipe, TEXTS, precisions=["float32"], rounds=1, call=lambda text: pipe(text)).rows
    assert row["changed"] == 0
    zero = transformers.pipeline("zero-shot-classification", model=model, tokenizer=tokenizer, device="cpu")
    (row,) = deberta_c.compare(zero, TEXTS, precisions=["float32"], rounds=1, candidate_labels=["sea", "shop"]).rows
    assert row["changed"] == 0


def test_what_differs_is_seen(model, tokenizer):
    """A call whose labels depend on how often it was made."""
    count = [0]

    def call(text):
        count[0] += 1
        return {"label": str(count[0]), "score": model(**tokenizer(text, return_tensors="pt")).logits}
    (row,) = deberta_c.compare(model, TEXTS, call=call, precisions=["float32"], rounds=1).rows
    assert row["changed"] == 3


def test_what_is_refused(model, tokenizer):
    def failing(_text):
        raise ValueError("mine")

    whole = {"tokenizer": tokenizer, "rounds": 1}
    for call, words in ((lambda: deberta_c.compare(model, [], **whole), "found none"), (lambda: deberta_c.compare(model, "text", **whole), "a list of texts"),
                        (lambda: deberta_c.compare(model, [3], **whole), "found int at place 0"), (lambda: deberta_c.compare(model, TEXTS), "needs tokenizer="),
                        (lambda: deberta_c.compare(model, TEXTS, call=failing), "call 0 fails before .*mine"), (lambda: deberta_c.compare("text", TEXTS), "holds no"),
                        (lambda: deberta_c.compare(model, TEXTS, tokenizer=tokenizer, rounds=0), "rounds"),
                        (lambda: deberta_c.compare(model, TEXTS, tokenizer=tokenizer, precisions=["int4"]), "precisions: expected"),
                        (lambda: deberta_c.compare(made("DebertaV2Model", V2(**{**V3, "vocab_size": 6000, "position_biased_input": True, "max_position_embeddings": 4})),
                                                   TEXTS, **whole), "too long"),
                        (lambda: deberta_c.compare(model.train(), TEXTS, **whole), "training mode")):
        refuses(deberta_c.Error, words, call)
        model.eval()
        assert "forward" not in vars(model.deberta) and not hasattr(model.deberta.encoder, "accelerated")
    handle = model.deberta.encoder.layer[0].register_forward_hook(lambda *_: None)
    refuses(deberta_c.UnsupportedError, "forward hook", deberta_c.compare, model, TEXTS, **whole)
    handle.remove()


def test_command(tmp_path, capsys):
    """What is refused is refused in this process, since a new one first imports PyTorch for seconds."""
    (tmp_path / "texts").write_text("\n".join(TEXTS) + "\n\n")
    (tmp_path / "none").write_text("\n")

    command = ["compare", DEMO, "--task", "text-classification", "--rounds", "1"]
    done = subprocess.run([sys.executable, "-m", "deberta_c", *command, "--file", str(tmp_path / "texts"), "--precision", "float32,int8", "--json"],
                          capture_output=True, text=True)
    assert done.returncode == 0 and f"1 of {len(TEXTS) + 1} lines are empty, and passed over" in done.stderr, done.stderr
    found = json.loads(done.stdout)
    assert [row["precision"] for row in found["rows"]] == ["float32", "int8"]
    assert found["about"]["dtype"] == "float16", "as the file has it, and transformers opens it"
    for words, status, sentence in ((["--file", str(tmp_path / "none")], 2, "there is no text in it"), (["--file", str(tmp_path / "nowhere")], 3, "cannot be read"),
                                    (["--file", str(tmp_path / "texts"), "--precision", "int4"], 2, "precisions: expected")):
        assert main([*command, *words]) == status
        printed = capsys.readouterr()
        assert sentence in printed.err and not printed.out


def test_command_without_a_task(tmp_path):
    """The class that the config names, or the encoder with a note where transformers cannot open it."""
    (tmp_path / "texts").write_text(TEXTS[0] + "\n")
    done = subprocess.run([sys.executable, "-m", "deberta_c", "compare", DEMO, "--rounds", "1", "--file", str(tmp_path / "texts"), "--precision", "float32", "--dtype", "float32", "--json"],
                          capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    about = json.loads(done.stdout)["about"]
    assert about["dtype"] == "float32" and (about["model"] == "DebertaV2ForMaskedLM" or "the encoder alone is compared" in done.stderr)


def test_a_result_that_is_no_number_is_a_difference(model, tokenizer):
    """NaN on one side alone is infinitely far from a number; on both sides it is the same."""
    calls = iter(range(100))

    def later_nan(_text):
        return {"label": "a", "score": 0.5 if next(calls) < 1 else float("nan")}
    found = deberta_c.compare(model, TEXTS[:1], call=later_nan, rounds=1, precisions=["float32"]).rows[0]
    assert found["largest_difference"] == found["relative_difference"] == np.inf
    always = deberta_c.compare(model, TEXTS[:1], call=lambda _text: [float("nan"), float("-inf"), 1.0], rounds=1, precisions=["float32"]).rows[0]
    assert always["largest_difference"] == always["relative_difference"] == 0
    several = iter(range(100))
    more = deberta_c.compare(model, TEXTS[:1], call=lambda _text: [0.5] * (1 + (next(several) > 0)), rounds=1, precisions=["float32"]).rows[0]
    assert more["changed"] == 1


def cut_tokenizer(texts, return_tensors, padding):
    """Two texts, of which the second has two tokens of padding."""
    return {"input_ids": torch.zeros(2, 4, dtype=torch.long), "attention_mask": torch.tensor([[1, 1, 1, 1], [1, 1, 0, 0]])}


def test_start_and_end_are_compared_at_tokens_that_are_there():
    """Reversed ends are another answer; what stands at padding is none."""
    start = torch.arange(8.0).view(2, 4)

    def heads(start, end):
        return comparison._heads(lambda **_: {"start_logits": start, "end_logits": end}, cut_tokenizer, ["x", "y"], {})
    plain, reverse = heads(start, start), heads(start, start.flip(1))
    assert plain[0].tolist() == 2 * [0, 1, 2, 3, 4, 5] and plain[1] == ["3-3", "1-1"]
    assert reverse[1] == ["0-0", "0-0"] and not np.array_equal(plain[0], reverse[0])
    padded = start.clone()
    padded[1, 2:] = 99
    assert np.array_equal(heads(padded, start)[0], plain[0]) and heads(start, padded)[1] == plain[1]
    rng = np.random.default_rng(5)
    for _ in range(50):  # beside all spans
        a, b = rng.normal(size=(2, int(rng.integers(1, 9))))
        spans = {(i, j): a[i] + b[j] for i in range(len(a)) for j in range(i, len(a))}
        assert comparison._best_span(a, b) == "%d-%d" % max(spans, key=spans.get)


def test_a_model_of_question_answering(tokenizer):
    model = made("DebertaV2ForQuestionAnswering", V2(**{**V3, "vocab_size": 6000, "num_labels": 2}))
    pairs = [("Who went home?", "The old sailor went home."), ("Where?", "A boat lay by the sea, far from the town, and nobody was there.")]
    for batch in (None, 2):
        (row,) = deberta_c.compare(model, pairs, tokenizer=tokenizer, rounds=1, precisions=["float32"], batch=batch).rows
        assert row["largest_difference"] < 1e-4 and row["changed"] == 0, batch


def test_labels_by_what_the_config_says(tokenizer):
    logits = torch.tensor([[-1.0, 2.0, 3.0]])
    for problem, expected in ((None, ["2"]), ("single_label_classification", ["2"]), ("multi_label_classification", ["0", "1", "1"]), ("regression", [])):
        assert comparison._labels(made("DebertaV2ForSequenceClassification", V2(**{**V3, "problem_type": problem})), logits) == expected
    assert comparison._labels(None, logits[:, :1]) == []


def test_pairs_in_every_form(model, tokenizer):
    pairs = [(TEXTS[0], TEXTS[1]), (TEXTS[1], TEXTS[2])]
    judge = transformers.pipeline("text-classification", model=model, tokenizer=tokenizer, device="cpu")
    asked = {"rounds": 1, "precisions": ["float32"]}
    for texts in (pairs, [{"text": a, "text_pair": b} for a, b in pairs], [{"text": TEXTS[0]}, pairs[1]]):
        for batch in (None, 2):
            (row,) = deberta_c.compare(judge, texts, batch=batch, **asked).rows
            assert row["changed"] == 0 and row["largest_difference"] < 1e-5
    zero = transformers.pipeline("zero-shot-classification", model=model, tokenizer=tokenizer, device="cpu")
    for holder, texts, words in ((zero, pairs, "a pair of texts for a pipeline of zero-shot-classification.*call="), (judge, [{"text": "a", "pair": "b"}], "dictionaries of text and text_pair, found text, pair"),
                                 (judge, [["a", "b"]], "a pair is a tuple"), (judge, ("a", "b"), "a list of texts, found tuple"), (judge, [{"text": "a", "text_pair": 3}], "found str, int")):
        refuses(deberta_c.ArgumentError, words, deberta_c.compare, holder, texts, **asked)
    given = []
    deberta_c.compare(judge, [{"text": "a", "text_pair": "b"}], call=lambda one: given.append(one) or judge(one), **asked)
    assert given[0] == {"text": "a", "text_pair": "b"}, "what was given, as it was given"


def test_options_that_no_call_reads(model, tokenizer):
    """A pipeline hands what it does not know to the tokenizer, which passes over it: asked before anything is computed."""
    pipe = transformers.pipeline("text-classification", model=model, tokenizer=tokenizer)
    refuses(deberta_c.ArgumentError, "takes dtype=; its type is the one that it was made with", deberta_c.compare, pipe, TEXTS, dtype="float32")
    refuses(deberta_c.ArgumentError, "takes round=; did you mean", deberta_c.compare, pipe, TEXTS, round=3)
    refuses(deberta_c.ArgumentError, "takes wholly_unknown=; call=", deberta_c.compare, pipe, TEXTS, wholly_unknown=3)
    refuses(deberta_c.ArgumentError, "takes top_k=", deberta_c.compare, model, TEXTS, tokenizer=tokenizer, top_k=3)
    refuses(deberta_c.ArgumentError, "call= says how the model is called", deberta_c.compare, pipe, TEXTS, call=lambda text: pipe(text), top_k=3)
    for options in ({"top_k": 2}, {"truncation": True, "max_length": 16}, {"batch_size": 2}):
        assert deberta_c.compare(pipe, TEXTS[:1], rounds=1, precisions=["float32"], **options).rows[0]["changed"] == 0
    zero = transformers.pipeline("zero-shot-classification", model=model, tokenizer=tokenizer)
    assert deberta_c.compare(zero, TEXTS[:1], rounds=1, precisions=["float32"], candidate_labels=["sea", "town"]).rows[0]["changed"] == 0
    refuses(deberta_c.ArgumentError, "takes candidate_label=; did you mean candidate_labels=", deberta_c.compare, zero, TEXTS, candidate_label=["sea"])


ASKED = {"precision": "int8", "threads": 1, "sessions": 2, "isa": "scalar"}


def held(kind, model, tokenizer, folder):
    """What holds the model, and the options of compare that it needs."""
    if kind == "model":
        return model, {"tokenizer": tokenizer}
    if kind == "cross-encoder":
        sentence_transformers = pytest.importorskip("sentence_transformers")
        model.save_pretrained(folder)
        tokenizer.save_pretrained(folder)
        return sentence_transformers.CrossEncoder(str(folder), device="cpu"), {}
    return transformers.pipeline("zero-shot-classification", model=model, tokenizer=tokenizer, device="cpu"), {"candidate_labels": ["sea", "shop"]}


@pytest.mark.parametrize("kind", ["model", "pipeline", "cross-encoder"])
def test_what_is_accelerated_already(kind, model, tokenizer, tmp_path):
    """It is compared with PyTorch, not with itself, and is accelerated again as it was, also where the measurement raises."""
    holder, options = held(kind, model, tokenizer, tmp_path)
    inner = getattr(holder, "model", holder)
    (base,) = [one for one in inner.modules() if type(one).__name__ == "DebertaV2Model"]
    weights = {name: value.clone() for name, value in base.state_dict().items()}
    texts = [(one, TEXTS[0]) for one in TEXTS] if kind == "cross-encoder" else TEXTS
    asked = {"rounds": 1, "precisions": ["float32", "int8"], "isa": "scalar", **options}
    plain = deberta_c.compare(holder, texts, **asked)
    deberta_c.accelerate(holder, **ASKED)

    def logits():
        with torch.no_grad():
            return base(**tokenizer(TEXTS, return_tensors="pt", padding=True)).last_hidden_state
    before, calls = logits(), []

    def fails(_text):
        calls.append(hasattr(base.encoder, "accelerated"))
        if len(calls) == 3:
            raise KeyboardInterrupt
        return 0.5
    for use in (lambda: deberta_c.compare(holder, texts, **asked), lambda: pytest.raises(KeyboardInterrupt, deberta_c.compare, holder, texts, call=fails),
                lambda: refuses(deberta_c.ArgumentError, "takes unknown=", deberta_c.compare, holder, texts, **options, unknown=1)):
        found = use()
        assert base.encoder.accelerated.options == ASKED and torch.equal(logits(), before)
        refuses(deberta_c.UnsupportedError, "does not train", inner.train)
        if isinstance(found, deberta_c.Comparison):
            assert found.about["threads"] == 1 and found.about["isa"] == "scalar", "its own, where nothing else is asked"
            for one, other in zip(found.rows, plain.rows):
                same = ("precision", "largest_difference", "relative_difference", "changed", "memory_before_bytes")
                assert [one[name] for name in same] == [other[name] for name in same]
            assert found.rows[0]["largest_difference"] < 1e-4 < found.rows[1]["largest_difference"]
    assert calls == [False] * 3
    deberta_c.restore(holder)
    assert all(torch.equal(value, weights[name]) for name, value in base.state_dict().items()) and "train" not in vars(inner)


def test_a_method_around_an_accelerated_one_is_not_lost(model, tokenizer):
    deberta_c.accelerate(model)
    inside = model.deberta.forward
    model.deberta.forward = lambda *given, **named: inside(*given, **named)
    wrapper = model.deberta.forward
    refuses(deberta_c.UnsupportedError, "'forward' of DebertaV2Model was replaced after", deberta_c.compare, model, TEXTS, tokenizer=tokenizer, rounds=1)
    assert model.deberta.forward is wrapper and hasattr(model.deberta.encoder, "accelerated")


def test_accelerating_again_after_a_change_that_is_refused(model, tokenizer):
    """A hook below the base stays refused; the model is left accelerated."""
    deberta_c.accelerate(model)
    model.deberta.embeddings.register_forward_hook(lambda *_: None)
    refuses(deberta_c.UnsupportedError, "forward hook", deberta_c.compare, model, TEXTS, tokenizer=tokenizer, rounds=1)
    assert hasattr(model.deberta.encoder, "accelerated")


def test_tables_and_generators(model, tokenizer):
    pandas = pytest.importorskip("pandas")
    for texts, words in ((pandas.DataFrame({"text": TEXTS}), r"found DataFrame; give a column of texts: frame\['text'\]"), ((one for one in TEXTS), r"found generator; give a list: list")):
        refuses(deberta_c.ArgumentError, words, deberta_c.compare, model, texts, tokenizer=tokenizer)
