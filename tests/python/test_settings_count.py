"""Whatever a model is opened with, or is without, and whatever a call is given, changes what the call gives, is refused, or is said to change nothing.

Calls and their arguments are those that the package has: one without a row here fails. Rows have words for the outcome; SAME has the reason behind it.
SPDX-License-Identifier: MIT
"""
import contextlib
import inspect
import json
import sys
import warnings

import numpy as np
import pytest

import deberta_c
from conftest import ROOT, program_json

sys.path.insert(0, str(ROOT / "tests" / "cli"))
from helpers import make_model  # noqa: E402

CHANGES, REFUSED, SAID = "changes", "refused", "said"
TEXT = "the old house by the sea stood beside a new store and nobody knew who had opened it"
OTHER = "a new store opened beside the old house by the sea"
MASKED = "the old [MASK] stood beside the sea"
IDS = [[1, 9, 30, 12, 40, 17, 25, 33, 8, 41, 19, 22, 16, 2]]

# How each call is made: the model's kind, and the call.
CALLS = {
    "encode": ("mlm", lambda m, **given: m.encode(**{"inputs": TEXT, **given})),
    "encode, all": ("mlm", lambda m: m.encode(TEXT, hidden="all", attention="all", components="all", logits=True)),
    "tokenize": ("mlm", lambda m, **given: m.tokenize(**{"texts": TEXT, **given})),
    "detokenize": ("mlm", lambda m, **given: m.detokenize(**{"ids": IDS[0], **given})),
    "classify": ("sequence", lambda m, **given: m.classify(**{"texts": TEXT, **given})),
    "fill_mask": ("mlm", lambda m, **given: m.fill_mask(**{"texts": MASKED, **given})),
    "detect": ("rtd", lambda m, **given: m.detect(**{"texts": TEXT, **given})),
    "tag": ("token", lambda m, **given: m.tag(**{"texts": TEXT, **given})),
    "answer": ("qa", lambda m, **given: m.answer(**{"question": "who?", "context": TEXT, **given})),
    "position_row": ("mlm", lambda m, **given: m.position_row(**{"distance": 11, **given})),
    "positions": ("mlm", lambda m, **given: m.positions(**{"layer": 0, **given})),
    "trace": ("mlm", lambda m, **given: m.trace(**{"text": MASKED, "mask_word": "sea", "what": "states", **given})),
    "receptive_field": ("mlm", lambda m, **given: m.receptive_field(**given)),
    "receptive_field, influence": ("mlm", lambda m: m.receptive_field(influence=True, influence_tokens=24)),
    "receptive_field, behaviour": ("mlm", lambda m: m.receptive_field(behaviour=True, behaviour_depth=2)),
    "attribute": ("mlm", lambda m, **given: facts(m.attribute(**{"text": MASKED, "steps": 4, **given}))),
    "attention_figure": ("mlm", lambda m, **given: drawn(deberta_c.attention_figure(**{"model": m, "text": MASKED, "layers": 0, "heads": 0, **given}))),
    "info": ("mlm", lambda m: {key: value for key, value in m.info.items() if key not in ("name", "precision")}),
    "digest": ("mlm", lambda m: m.digest()),
    "labels": ("sequence", lambda m: m.labels),
    "share": ("mlm", lambda m: m.share().encode(TEXT)),
    "ablate": ("mlm", lambda m: within(m, "c2p@0")),
    "bench": ("mlm", lambda m: [{key: value for key, value in one.items() if key in ("layers", "terms", "attention", "precision")} for one in deberta_c.bench(m, tokens=8, reps=1, min_time=0, no_peak=True)]),
}
# Public names that answer nothing of a model's, and why.
NO_CALLS = {
    "Model.close": "it ends a model", "Model.notes": "it is of the folder", "Model.isa": "it says how it was opened", "Model.threads": "it says how it was opened",
    "accelerate": "it takes a model of transformers: test_accelerate, test_mutations", "restore": "it takes a model of transformers", "compare": "it takes a model of transformers: test_comparison",
    "Comparison": "it is what compare gives", "Comparison.as_dict": "it is what compare gives", "Attribution": "it is what attribute gives", "Attribution.figure": "it is drawn from what attribute gives",
    "Attribution.save": "it is drawn from what attribute gives", "Figure": "it is what attention_figure gives", "Figure.save": "it is what attention_figure gives", "Tokens": "it is what tokenize gives",
    "Model": "its methods have rows", "Encoder": "it opens its model itself: test_arguments_of_an_encoder", "Encoder.model": "it is a model, which has rows", "Tokens.count": "of tuples", "Tokens.index": "of tuples",
}

# What a model is opened with, or is without.
SETTINGS = {
    "c2p@all": ({}, "c2p@all"), "p2c=mean@1": ({}, "p2c=mean@1"), "c2c@1:2": ({}, "c2c@1:2"), "layers": ({"layers": 1}, ""), "int8": ({"precision": "int8"}, ""), "int16": ({"precision": "int16"}, ""),
    "microsoft": ({"reference": "microsoft"}, ""), "memory": ({"memory_limit": 1 << 40}, ""), "scalar": ({"isa": "scalar"}, ""), "threads": ({"threads": 2}, ""),
}
TEXTS_ALONE = "tokens are of the tokenizer"
WEIGHTS = "it is of the folder and its weights"
FOR_ALL = {"memory": "a limit that is not reached", "scalar": "all tiers give the same bits", "threads": "any number of threads gives the same bits"}
# What differs from "changes": the outcome, or the sentence that says why nothing can differ.
ROWS = {
    "tokenize": dict.fromkeys(SETTINGS, TEXTS_ALONE), "detokenize": dict.fromkeys(SETTINGS, TEXTS_ALONE), "digest": dict.fromkeys(SETTINGS, WEIGHTS), "labels": dict.fromkeys(SETTINGS, WEIGHTS),
    "info": {**dict.fromkeys(("c2p@all", "p2c=mean@1", "c2c@1:2"), "ablated= says what it is without"), "int8": CHANGES, "int16": CHANGES},
    "position_row": {**dict.fromkeys(SETTINGS, "rows are of the configuration"), "microsoft": CHANGES},
    "positions": {**dict.fromkeys(SETTINGS, "the table is of the weights, before any term"), "int8": CHANGES, "int16": CHANGES},
    "share": {**dict.fromkeys(("c2p@all", "p2c=mean@1", "c2c@1:2"), REFUSED)},
    "trace": {"layers": REFUSED}, "attribute": {**dict.fromkeys(("c2p@all", "p2c=mean@1", "c2c@1:2", "layers", "int8", "int16"), REFUSED)}, "attention_figure": {"layers": REFUSED},
    "receptive_field": {**dict.fromkeys(SETTINGS, "all follows from config.json"), "layers": REFUSED, "microsoft": CHANGES},
    "receptive_field, influence": dict.fromkeys(("layers", "int8", "int16"), REFUSED),
    "receptive_field, behaviour": dict.fromkeys(("layers", "int8", "int16"), REFUSED),
    "bench": {**dict.fromkeys(("c2p@all", "p2c=mean@1", "c2c@1:2"), REFUSED), "microsoft": "times are measured, and clamping is in the index"},
}


def within(model, terms):
    with model.ablate(terms):
        return model.encode(TEXT)


def facts(found):
    return {"words": found.words, "distances": found.distances.tolist(), "value": found.value, "baseline": found.baseline_value}


def drawn(figure):
    from deberta_c._program import _drawing
    return _drawing(figure.svg)


def same(one, other):
    if isinstance(one, dict):
        return isinstance(other, dict) and one.keys() == other.keys() and all(same(one[key], other[key]) for key in one)
    if isinstance(one, (list, tuple)):
        return len(one) == len(other) and all(map(same, one, other))
    if isinstance(one, np.ndarray):
        return one.shape == other.shape and np.array_equal(one, other, equal_nan=one.dtype.kind == "f")
    return one == other or (one != one and other != other)


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    """Models of three layers, whose relative table ends after eight distances."""
    place, made = tmp_path_factory.mktemp("models"), {}
    for name, case in (("sequence", 29), ("token", 30), ("qa", 31), ("mlm", 33), ("rtd", 36), ("single", 29)):
        made[name] = make_model(place / name, case, "spm-unigram", 3100)
        config = made[name] / "config.json"
        config.write_text(json.dumps({**json.loads(config.read_text()), "max_relative_positions": 8}))
    return made


@pytest.fixture(scope="module")
def whole(folders):
    """{call: what it gives of a model as it is}"""
    found = {}
    for name, (kind, call) in CALLS.items():
        with deberta_c.Model(folders[kind], threads=1) as model:
            found[name] = call(model)
    return found


def outcome(call, expected):
    """(what came of a call, what it gave)"""
    with warnings.catch_warnings(record=True) as notes:
        warnings.simplefilter("always")
        try:
            found = call()
        except deberta_c.Error as reason:
            assert len(str(reason)) > 20, reason
            return REFUSED, None
    if not same(found, expected):
        return CHANGES, found
    return SAID if any(issubclass(one.category, deberta_c.NoteWarning) for one in notes) else "the same, in silence", found


def public():
    """Names of all that the package offers."""
    for name in deberta_c.__all__:
        thing = getattr(deberta_c, name)
        if isinstance(thing, type) and issubclass(thing, (Exception, Warning)):
            continue
        yield name
        if isinstance(thing, type):
            yield from (f"{name}.{one}" for kind in thing.__mro__ if kind.__module__.startswith("deberta_c") or kind is thing for one in vars(kind)
                        if not one.startswith("_") and (callable(getattr(thing, one)) or isinstance(vars(kind)[one], property)))


def test_every_call_has_a_row():
    rows = {name.split(", ")[0] for name in CALLS}
    missing = [name for name in public() if name not in NO_CALLS and name.removeprefix("Model.") not in rows]
    assert not missing, f"without a row here: {missing}"


@pytest.mark.parametrize("setting", SETTINGS)
def test_settings_of_a_model(folders, whole, setting):
    opened, terms = SETTINGS[setting]
    wrong = []
    for name, (kind, call) in CALLS.items():
        expected = ROWS.get(name, {}).get(setting, FOR_ALL.get(setting, CHANGES))
        with deberta_c.Model(folders[kind], **{"threads": 1, **opened}) as model, model.ablate(terms) if terms else contextlib.nullcontext():
            found, _ = outcome(lambda: call(model), whole[name])
        if found != (expected if expected in (CHANGES, REFUSED, SAID) else "the same, in silence"):
            wrong.append(f"{name}: {found}; expected {expected}")
    assert not wrong, "\n".join(wrong)
