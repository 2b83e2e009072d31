"""Nothing that a caller gives is passed over: closed models, unknown options, texts where a batch is due. What is asked is found by looking at the package.

SPDX-License-Identifier: MIT
"""
import inspect
import json
import re
import shutil
import subprocess

import numpy as np
import pytest

import deberta_c
from deberta_c import Encoder, Model, _program
from conftest import DEMO, refuses

# What a method is called with, by the names of its parameters without a default.
GIVEN = {"texts": "a ship", "text": "a ship", "inputs": "a ship", "ids": [1, 5, 2], "question": "who", "context": "the king", "distance": 3, "layer": 0, "terms": "c2p@all",
         "model": None}
LEFT = {"close"}  # closing twice changes nothing
NAMES = [name for name in dir(Model) if not name.startswith("_") and name not in LEFT]


def required(function):
    """Values for the parameters that have no default."""
    return {name: GIVEN[name] for name, one in inspect.signature(function).parameters.items()
            if one.default is one.empty and one.kind not in (one.VAR_KEYWORD, one.VAR_POSITIONAL) and name != "self"}


@pytest.fixture(scope="module")
def closed():
    model = Model(DEMO, threads=1)
    model.close()
    return model


@pytest.mark.parametrize("name", NAMES)
def test_closed_model_says_so(closed, name):
    def use():
        method = getattr(closed, name)
        found = method(**required(method))
        if hasattr(found, "__enter__"):
            found.__enter__()
    refuses(deberta_c.ArgumentError, "the model is closed", use)


@pytest.mark.parametrize("function", [deberta_c.attention_figure, deberta_c.bench])
def test_closed_model_in_functions(closed, function):
    refuses(deberta_c.ArgumentError, "the model is closed", function, closed, **{"tokens": 8} if function is deberta_c.bench else {"text": "a ship"})


def test_methods_are_found():
    assert len(NAMES) >= 20 and {"trace", "attribute", "receptive_field", "encode", "share"} <= set(NAMES)


def test_everything_public_is_described():
    for name in deberta_c.__all__:
        thing = getattr(deberta_c, name)
        assert inspect.getdoc(thing), name
        for member, value in vars(thing).items() if inspect.isclass(thing) and thing.__module__.startswith("deberta_c") else ():
            if callable(value) and not member.startswith("_"):
                assert inspect.getdoc(value), f"{name}.{member}"


# ------------------------------------------------------------------------------------------------------------- options


@pytest.mark.parametrize("call", [
    lambda m: m.trace("a ship", unknown=1), lambda m: m.attribute("a ship", unknown=1), lambda m: m.receptive_field(unknown=1),
    lambda m: deberta_c.attention_figure(m, "a ship", unknown=1), lambda m: deberta_c.bench(m, unknown=1)])
def test_unknown_options_of_the_program(demo, call):
    refuses(deberta_c.ArgumentError, "unknown", call, demo)


COMMANDS = (("bench",), ("attribute",), ("receptive-field",), *(("attention", kind) for kind in ("components", "trace", "difference", "kernel", "shares")))


@pytest.mark.parametrize("command", COMMANDS)
def test_options_have_the_kind_that_the_program_takes(command):
    """Of every option of a command that the package runs, which the program says itself: a value is refused for switches, True for the others."""
    values = _program._option_values(*command)
    script = _program.run("completion", "bash").decode()
    named = re.search(rf"^ *'{' '.join(command)} '\*\) options='(.*?)'", script, re.M)[1]
    assert set(values) == {word[2:] for word in named.split() if word.startswith("--")}, command
    assert values["no-peak" if command == ("bench",) else "no-notes"] == values["quiet"] == "" != values["out"]
    for name, takes in values.items():
        if name in ("help", "version"):
            continue
        said = subprocess.run([_program.PROGRAM, *command, DEMO, f"--{name}=x" if not takes else f"--{name}"], capture_output=True, text=True, check=False)
        assert said.returncode == 2 and ("needs a value" if takes else "takes no value") in said.stderr, (name, said.stderr)
        wrong, words = (True, f"{name.replace('-', '_')}: expected a value .*, found True, which is for switches") if takes else ("x", "expected True or False, found str 'x'")
        refuses(deberta_c.ArgumentError, words, _program.run, *command, DEMO, **{name.replace("-", "_"): wrong})


@pytest.mark.parametrize("name", ["help", "version"])
def test_texts_of_the_program_are_no_arguments(demo, name):
    refuses(deberta_c.ArgumentError, f"{name}: is no argument", deberta_c.attention_figure, demo, "a b", **{name: True})


def test_truth_values_and_none_are_no_numbers(demo):
    figure = lambda **given: deberta_c.attention_figure(demo, "a ship", **given)
    for call, words in ((lambda: figure(title=True, no_notes=True), r"title: expected a value \(TEXT\), found True"), (lambda: figure(no_notes=1), "no_notes: is a switch: expected True or False, found int 1"),
                        (lambda: figure(heads=[0, True]), r"heads: expected .* found list \[0, True\]"), (lambda: figure(no_notes="yes"), "no_notes: .* found str 'yes'"),
                        (lambda: demo.positions(None), "layer: expected a number from 0 to 4, found None"), (lambda: demo.position_row(None), "distance: .* found None"),
                        (lambda: demo.encode("a", attention=[True]), r"attention: expected .* found \[True\]"), (lambda: demo.encode("a", attention=[True, 2]), "attention: "),
                        (lambda: demo.encode("a", attention=np.array([True])), "attention: "), (lambda: demo.encode("a", components=[(0, True)]), "components: "),
                        (lambda: demo.encode("a", attention=[None]), "attention: "), (lambda: demo.encode("a", edit={True: lambda rows: rows}), "edit: .* found True"),
                        (lambda: demo.encode("a", edit=5), "edit: expected functions by layers from 0 to 5, .* found int"),
                        (lambda: demo.encode("a", logits="mlm", at=5), r"at: expected a row of token numbers for each of 1 texts, such as \[\[0, 3\]\] for one, found 5"),
                        (lambda: demo.encode([[1, 5, 2]], mask=[[1, 0, 1]], logits="mlm", at=5), "at: expected a row of token numbers"),
                        (lambda: demo.encode("a", logits="mlm", at=[[True]]), "at: "), (lambda: demo.encode("a", logits=1), "logits: expected True, the name of a head .* found 1"),
                        (lambda: demo.encode("a", logits=b"mlm"), "logits: ")):
        refuses(deberta_c.ArgumentError, words, call)
    plain = figure(no_notes=True)
    assert plain.svg == figure(no_notes=np.True_).svg and figure(title=False, exact_width=np.False_).svg == figure().svg != plain.svg
    assert set(demo.encode("a", attention=[np.int64(1), 0], hidden=None)) == {"attn.0.probs", "attn.1.probs"}


@pytest.mark.parametrize("batch", ["a text", b"a text", ["a text", "another"], 5, None])
def test_encoder_says_what_it_takes(batch):
    refuses(deberta_c.ArgumentError, "expected a batch, a mapping of columns such as {'text'", Encoder(DEMO, threads=1), batch)


@pytest.mark.parametrize("options, words", [
    ({"task_options": {"top": 2}}, "there is no task"), ({"task": "classify", "pool": "mean"}, "pool: is for vectors"),
    ({"task": "classify", "task_options": {"topk": 2}}, "classify has no topk; it has top, multi_label"),
    ({"path": None}, "path: expected a text without NUL, found None"),
    ({"isa": "sse"}, "isa: unknown instruction set 'sse'; known are auto, scalar"), ({"threads": -1}, "threads: expected a number from 0 to 1024, found -1"),
    ({"precision": "fp16"}, "precision: expected 'float32', 'int16' or 'int8', found 'fp16'"),
    ({"task": "classify", "task_options": {"top": 0}}, "top: expected a number from 1 to .*, found 0"),
    ({"task": "classify", "task_options": {"multi_label": "no"}}, "multi_label: expected True or False, found 'no'"),
    ({"task": "detect", "task_options": {"threshold": 2}}, "threshold: expected a number from 0 to 1, found 2"),
    ({"task": "tag", "task_options": {"grouping": "max"}}, "grouping: expected 'first' or 'simple', found 'max'"),
    ({"task": "fill_mask", "task_options": {"decoder": "gdes"}}, "decoder: expected 'emd', 'plain' or None, found 'gdes'"),
    ({"task": "tag", "pair": "other"}, "pair: tag takes no pairs"), ({"task": "tag", "task_options": {"max_tokens": 5}}, "tag has no max_tokens")])
def test_encoder_options_that_nothing_reads(options, words):
    refuses(deberta_c.ArgumentError, words, Encoder, **{"path": DEMO, **options})


def test_a_tier_is_refused_when_a_model_is_made(demo):
    """In the words of the program; an Encoder is made on one machine and may open its model on another, so that only names are its matter."""
    other, why = re.search(r"^ +(\w+) +not here: (.*)$", _program.run("info").decode(), re.M).groups()
    done = subprocess.run([_program.PROGRAM, "info", "--isa", other], capture_output=True, text=True)
    assert f"--isa: {other} cannot run here: {why}\n" in done.stderr, done.stderr
    for call in (lambda: Model(DEMO, isa=other), lambda: demo.share(isa=other)):
        refuses(deberta_c.ArgumentError, re.escape(f"isa: {other} cannot run here: {why}"), call)
    for wrong in ("sse", "AVX2", ""):
        refuses(deberta_c.ArgumentError, f"isa: unknown instruction set '{wrong}'", Model, DEMO, isa=wrong)
    assert Encoder(DEMO, isa=other).opening["isa"] == other


@pytest.mark.parametrize("call", [lambda m: m.classify([], top=0), lambda m: m.fill_mask([], top=-1), lambda m: m.classify([], multi_label=1),
                                  lambda m: m.fill_mask([], decoder="x"), lambda m: m.detect([], threshold=-1), lambda m: m.tag([], grouping=None)])
def test_options_of_answers_are_checked_without_texts(demo, call):
    refuses(deberta_c.ArgumentError, "expected .* found", call, demo)


def test_encoder_of_an_open_model(demo):
    refuses(deberta_c.ArgumentError, f"path: expected a folder, found an open Model: .*: Encoder\\('{DEMO}'\\)", Encoder, demo)


def test_encoder_options_that_are_read():
    answers = Encoder(DEMO, threads=1, task="classify", task_options={"top": 2})({"text": ["a ship"]})["classify"]
    assert len(json.loads(answers[0])["labels"]) == 2


@pytest.mark.parametrize("said, words", [
    ({"id2label": {str(k): f"name {k}" for k in range(15)}}, "id2label in config.json does not name the label 15, but the classifier has the labels 0 to 15"),
    ({"id2label": {str(k): f"name {k}" for k in range(17)}}, "id2label in config.json names the label 16, but the classifier has the labels 0 to 15"),
    ({"num_labels": 3}, "num_labels in config.json is 3, but the classifier has 16 outputs"), ({"num_labels": 16}, None), ({}, None)])
def test_labels_that_do_not_fit_the_classifier(tmp_path, said, words):
    """The program's sentence, and no name that is made up."""
    shutil.copytree(DEMO, tmp_path / "model")
    config = json.loads((tmp_path / "model" / "config.json").read_text())
    (tmp_path / "model" / "config.json").write_text(json.dumps({**config, "id2label": None, "label2id": None, **said}))
    model = deberta_c.Model(tmp_path / "model")
    for call in (lambda: model.classify("a ship"), lambda: model.labels):
        if words is None:
            call()
        else:
            refuses(deberta_c.FormatError, words, call)
    assert words is not None or model.labels[15] == "LABEL_15"
