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

CHANGES, REFUSED, SAID, SILENCE = "changes", "refused", "said", "the same, in silence"
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
    "position_row": ("mlm", lambda m, **given: m.position_row(**{"distance": -40, **given})),
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
    "positions": {**dict.fromkeys(SETTINGS, "the table is of the weights, before any term, and projected in float32"), "int8": REFUSED},
    "share": {**dict.fromkeys(("c2p@all", "p2c=mean@1", "c2c@1:2"), REFUSED)},
    "trace": {"layers": REFUSED}, "attribute": {**dict.fromkeys(("c2p@all", "p2c=mean@1", "c2c@1:2", "layers", "int8", "int16"), REFUSED)}, "attention_figure": {"layers": REFUSED},
    "receptive_field": {**dict.fromkeys(SETTINGS, "all follows from config.json"), "layers": REFUSED, "microsoft": CHANGES},
    "receptive_field, influence": dict.fromkeys(("layers", "int8", "int16"), REFUSED),
    "receptive_field, behaviour": dict.fromkeys(("layers", "int8", "int16"), REFUSED),
    "bench": {**dict.fromkeys(("c2p@all", "p2c=mean@1", "c2c@1:2"), REFUSED), "microsoft": "times are measured, and clamping is in the index", "threads": None},
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
        with deberta_c.Model(folders[kind], threads=1) as model, warnings.catch_warnings(record=True) as notes:
            warnings.simplefilter("always")
            found[name] = call(model), noted(notes)
    return found


def noted(notes):
    return {str(one.message) for one in notes if issubclass(one.category, deberta_c.NoteWarning)}


def outcome(call, expected):
    """What came of a call; expected: what it gives, and says, otherwise."""
    with warnings.catch_warnings(record=True) as notes:
        warnings.simplefilter("always")
        try:
            found = call()
        except deberta_c.Error as reason:
            assert len(str(reason)) > 20, reason
            return REFUSED
    return CHANGES if not same(found, expected[0]) else SAID if noted(notes) - expected[1] else SILENCE


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
            found = outcome(lambda: call(model), whole[name])
        if expected is not None and found != (expected if expected in (CHANGES, REFUSED, SAID) else SILENCE):
            wrong.append(f"{name}: {found}; expected {expected}")
    assert not wrong, "\n".join(wrong)


# The commands of the program that answer the same; what they print beside the package's answer is their line's number.
COMMANDS = {"classify": ["--text", TEXT], "fill_mask": ["--text", MASKED], "detect": ["--text", TEXT], "tag": ["--text", TEXT], "answer": ["--question", "who?", "--context", TEXT]}


def near(one, other):
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(near(one[key], other[key]) for key in one)
    if isinstance(one, list):
        return len(one) == len(other) and all(map(near, one, other))
    return abs(one - other) < 1e-6 if isinstance(one, float) else one == other


@pytest.mark.parametrize("setting", [name for name, (opened, _) in SETTINGS.items() if "layers" not in opened])
def test_answers_are_the_program_s(folders, setting):
    opened, terms = SETTINGS[setting]
    options = [word for name, value in {**opened, "ablate": terms}.items() if value for word in ("--" + name.replace("_", "-"), str(value))]
    for name, words in COMMANDS.items():
        kind, call = CALLS[name]
        with deberta_c.Model(folders[kind], **{"threads": 1, **opened}) as model, model.ablate(terms) if terms else contextlib.nullcontext():
            found = call(model)
        (said,) = program_json(name.replace("_", "-"), str(folders[kind]), *words, *options)
        assert said.pop("line") == 1 and said.pop("precision", "float32") == opened.get("precision", "float32") and said.pop("ablate", "") == terms
        for one in said.get("masks", ()):
            ((said["decoder"], one["candidates"]),) = one["candidates"].items()
        assert near(found, said), (name, found, said)


# What each argument of a call is given, with SAID or the reason why nothing can differ; None where another test gives it.
ARGUMENTS = {
    "encode": {"inputs": {"inputs": OTHER}, "token_types": ({"inputs": IDS, "token_types": [[0] * 7 + [1] * 7]}, "type_vocab_size is 0"), "mask": {"inputs": IDS, "mask": [[1] * 6 + [0] + [1] * 7]},
               "position_ids": [({"inputs": IDS, "position_ids": [list(range(14))[::-1]]}, SAID), {"inputs": IDS, "position_ids": [list(range(14))[::-1]], "logits": "mlm_emd"}], "hidden": {"hidden": "all"}, "attention": {"attention": 1},
               "components": {"components": [(1, 2)]}, "logits": {"logits": True}, "at": {"logits": ["mlm"], "at": [[1, 2]]}, "edit": {"edit": {1: lambda states: states + 1}},
               "row_bias": {"row_bias": np.ones((3, 4, 8))}, "max_tokens": {"max_tokens": 6}, "batch_tokens": ({"batch_tokens": 8}, "the same bits for any number")},
    "tokenize": {"texts": {"texts": OTHER}, "max_tokens": {"max_tokens": 6}},
    "detokenize": {"ids": {"ids": [9, 12]}},
    "classify": {"texts": {"texts": OTHER}, "top": {"top": 1}, "multi_label": {"multi_label": True}, "max_tokens": {"max_tokens": 6}},
    "fill_mask": {"texts": {"texts": MASKED + " again"}, "top": {"top": 1}, "decoder": {"decoder": "plain"}, "max_tokens": {"max_tokens": 12}},
    "detect": {"texts": {"texts": OTHER}, "threshold": {"threshold": 1e-6}, "max_tokens": {"max_tokens": 6}},
    "tag": {"texts": {"texts": OTHER}, "grouping": {"grouping": "simple"}, "max_tokens": {"max_tokens": 6}},
    "answer": {"question": {"question": "where?"}, "context": {"context": OTHER}, "top": {"top": 1}, "max_answer": {"max_answer": 1}, "max_tokens": {"max_tokens": 20}},
    "position_row": {"distance": {"distance": 3}}, "positions": {"layer": {"layer": 1}},
    "trace": {"text": {"text": MASKED.replace("old", "new")}, "pair": {"pair": "a boat"}, "options": {"direction": "corrupt"}},
    "receptive_field": {"options": {"depth": 1}}, "attribute": {"text": {"text": MASKED.replace("old", "new")}, "pair": {"pair": "a boat"}, "options": {"of": "log-probability"}},
    "attention_figure": {"model": None, "text": {"text": OTHER}, "kind": {"kind": "rollout", "heads": None}, "pair": {"pair": "a boat"}, "out": None, "options": {"palette": "magma"}},
    "share": {"isa": None, "threads": None}, "ablate": {"terms": None}, "bench": {"model": None, "options": None},
}


@pytest.mark.parametrize("name", ARGUMENTS)
def test_arguments_of_a_call(folders, whole, name):
    function = getattr(deberta_c, name, None) or getattr(deberta_c.Model, name)
    names = [one for one in inspect.signature(function).parameters if one != "self"]
    assert names == list(ARGUMENTS[name]), "an argument without a row here"
    kind, call = CALLS[name]
    with deberta_c.Model(folders[kind], threads=1) as model:
        ids = (call(model, inputs=IDS), set()) if name == "encode" else None
        for argument, row in ARGUMENTS[name].items():
            for one in row if isinstance(row, list) else [row]:
                given, reason = one if isinstance(one, tuple) else (one, None)
                if given is not None:
                    plain = ids if given.get("inputs") is IDS else whole[name]
                    expected = SAID if reason == SAID else SILENCE if reason else CHANGES
                    assert outcome(lambda: call(model, **given), plain) == expected, argument


def test_calls_with_arguments_have_rows():
    """Names of all calls that take something."""
    for name in {one.split(", ")[0] for one in CALLS}:
        thing = getattr(deberta_c, name, None) or getattr(deberta_c.Model, name)
        assert isinstance(thing, property) or name in ARGUMENTS or len(inspect.signature(thing).parameters) == 1, name


# Of an Encoder: what it is opened with, and the column that comes of it.
OF_AN_ENCODER = {
    "path": None, "column": {"column": "other"}, "pair": {"pair": "other"}, "pool": {"pool": "cls"}, "task": {"task": "classify"}, "task_options": {"task": "classify", "task_options": {"top": 1}}, "into": {"into": "rows"},
    "isa": ({"isa": "scalar"}, FOR_ALL["scalar"]), "threads": ({"threads": 2}, FOR_ALL["threads"]), "precision": {"precision": "int8"}, "max_tokens": {"max_tokens": 6},
    "batch_tokens": ({"batch_tokens": 8}, "the same bits for any number"),
}


def test_arguments_of_an_encoder(folders):
    assert list(inspect.signature(deberta_c.Encoder).parameters) == list(OF_AN_ENCODER)
    batch = {"text": [TEXT, OTHER], "other": [OTHER, MASKED]}

    def called(**given):
        return deberta_c.Encoder(folders["sequence"], **given)(batch)
    plain = called(), set()
    for argument, row in OF_AN_ENCODER.items():
        given, reason = row if isinstance(row, tuple) else (row, None)
        if given is not None:
            against = (called(task="classify"), set()) if argument == "task_options" else plain
            assert outcome(lambda: called(**given), against) == (SILENCE if reason else CHANGES), argument
