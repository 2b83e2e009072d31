"""Compares a user's own model before accelerate and after: times, differences, memory. SPDX-License-Identifier: MIT"""
from __future__ import annotations

import contextlib
import difflib
import inspect
import os
import platform
import time
from typing import Any, Callable, Dict, Iterator, List, Optional, Sequence, Tuple

import numpy as np

from ._abi import PRECISIONS, ArgumentError, Error, one_of, thread_count, whole_number
from ._inputs import as_texts, way_out
from .accelerate import in_pytorch, lending_part

Facts = Tuple[np.ndarray, List[str]]  # numbers of a result, and its labels
COLUMNS = ("precision", "before p50", "p99", "after p50", "p99", "times as fast", "largest difference", "of the largest", "labels changed", "MB before", "after")


class Comparison:
    """What compare() found. str() is a table; rows and about are made of numbers and texts alone, as json.dumps takes them."""

    def __init__(self, about: Dict[str, Any], rows: List[Dict[str, Any]]) -> None:
        self.about, self.rows = about, rows

    def as_dict(self) -> Dict[str, Any]:
        """about and rows in one dictionary of numbers, texts and lists, as json.dumps takes it."""
        return {"about": self.about, "rows": self.rows}

    def __str__(self) -> str:
        cells = [COLUMNS, *(
            (row["precision"], *(f"{1e3 * row[name]:.1f} ms" for name in ("before_p50_s", "before_p99_s", "after_p50_s", "after_p99_s")),
             f"{row['factor']:.2f}", f"{row['largest_difference']:.1e}", f"{row['relative_difference']:.1e}",
             f"{row['changed']} of {row['calls']}", f"{row['memory_before_bytes'] / 1e6:.0f}", f"{row['memory_after_bytes'] / 1e6:.0f}")
            for row in self.rows)]
        widths = [max(map(len, column)) for column in zip(*cells)]
        lines = ["  ".join(cell.rjust(width) for cell, width in zip(line, widths)) for line in cells]
        about = self.about
        return "\n".join([
            f"{about['model']} in {about['dtype']}: {about['texts']} texts in {about['calls']} calls, {about['rounds']} rounds, before and after in turn",
            f"{about['machine']}; threads: PyTorch {about['torch_threads']}, deberta_c {about['threads']} ({about['isa']})", *lines])

    __repr__ = __str__


def compare(model: Any, texts: Sequence[Any], *, call: Optional[Callable[[Any], Any]] = None, tokenizer: Any = None, batch: Optional[int] = None,
            precisions: Sequence[str] = PRECISIONS, rounds: int = 5, isa: Optional[str] = None, threads: Optional[int] = None,
            **options: Any) -> Comparison:
    """How a reader's own model does with accelerate() on the reader's own texts. The model is given back as it was: one that is
    accelerated already is compared as it was before, with its own isa and threads unless others are given, and is accelerated again with
    its options, also where this raises.

    model: as of accelerate(): a pipeline of transformers, a CrossEncoder, or a model, in the type that it has; options go to each call of
    a pipeline (candidate_labels=[...]). A model by itself needs its tokenizer, and what is compared are its logits at tokens that are no
    padding, of question answering start and end logits and the best span. call: for anything else, a function of one text (of a list of
    texts with batch) that uses the model: call=lambda text: gliner.predict_entities(text, labels).
    texts: texts and pairs (text, second text), also as {"text", "text_pair"}; one call each, or `batch` a call. Every call is made before and after in turn, `rounds` times, behind one that warms up.

    rows, one a precision: p50 and p99 of a call in seconds before and after; factor: the median over all pairs of before / after;
    largest_difference of all numbers in the results, and relative_difference, of the largest of them; changed: calls with other labels, or more or fewer numbers.
    memory: bytes of the base's weights in PyTorch, and what the library holds in their place.

    Raises ArgumentError for an option that neither compare nor a call of the model takes, UnsupportedError for what accelerate refuses.
    """
    lending = lending_part()
    read = _texts(texts)
    texts = read if call is None else list(texts)  # the user's own function may take anything
    whole_number("rounds", rounds, least=1)
    calls = texts if batch is None else [texts[k:k + batch] for k in range(0, len(texts), whole_number("batch", batch, least=1))]
    for precision in precisions:
        one_of("precisions", precision, *PRECISIONS)
    asked = {name: value for name, value in (("isa", isa), ("threads", thread_count(threads) or None)) if value}
    run = _caller(model, call, tokenizer, options)
    bases = lending.bases(model)
    own = [getattr(base.encoder, "accelerated", None) for base in bases]
    wanted = [(base, {"isa": None, "threads": None, **(one.options if one else {}), **asked, "sessions": 1}) for base, one in zip(bases, own)]
    rows: List[Dict[str, Any]] = []
    with in_pytorch(lending, bases):
        for base in bases:
            lending.check(model, base)
        expected = [_facts(_before(run, one, k)) for k, one in enumerate(calls)]
        about = {"model": type(model).__name__, "dtype": str(next(bases[0].parameters()).dtype).split(".")[-1], "texts": len(texts), "calls": len(calls), "rounds": rounds,
                 "machine": _machine(), "torch_threads": lending.torch.get_num_threads()}
        for precision in precisions:
            with _beside(lending, [(base, {**given, "precision": precision}) for base, given in wanted]) as (accelerated, switched):
                about.update(accelerated[0].describe())
                rows.append({"precision": precision, **_row(run, calls, expected, rounds, switched),
                             "memory_before_bytes": sum(one.numel() * one.element_size() for base in bases for one in base.parameters()),
                             "memory_after_bytes": sum(one.memory_bytes() for one in accelerated)})
    return Comparison(about, rows)


def _texts(texts: Any) -> List[Any]:
    """Returns texts and pairs; a pair may also be the dictionary that pipelines of transformers take."""
    if isinstance(texts, (str, bytes, tuple, dict)) or not hasattr(texts, "__len__") or way_out(texts):
        raise ArgumentError(f"texts: expected a list of texts, found {type(texts).__name__}{way_out(texts)}")
    if not len(texts):
        raise ArgumentError("texts: expected one at least, found none")
    found, _ = as_texts([_of_dictionary(one) for one in texts])
    assert found is not None
    return found


def _of_dictionary(one: Any) -> Any:
    """Returns {"text", "text_pair"} as a text or a pair."""
    if not isinstance(one, dict):
        return one
    unknown = [name for name in one if name not in ("text", "text_pair")]
    if unknown or "text" not in one:
        raise ArgumentError(f"texts: expected dictionaries of text and text_pair, found {', '.join(map(str, one)) or 'an empty one'}")
    return (one["text"], one["text_pair"]) if one.get("text_pair") is not None else one["text"]


@contextlib.contextmanager
def _beside(lending: Any, wanted: List[Tuple[Any, Dict[str, Any]]]) -> Iterator[Tuple[List[Any], Any]]:
    """Opens the library's models of the bases, which keep their weights; within a block the bases are switched to them."""
    made: List[Any] = []

    @contextlib.contextmanager
    def switched() -> Iterator[None]:
        try:
            for one in made:
                one.base.forward = one.forward
            yield
        finally:
            for one in made:
                vars(one.base).pop("forward", None)

    try:
        for base, options in wanted:
            made.append(lending.Accelerated(base, **options))
        yield made, switched
    finally:
        for one in made:
            one.undo()


def _row(run: Any, calls: List[Any], expected: List[Facts], rounds: int, switched: Any) -> Dict[str, Any]:
    largest = relative = 0.0
    changed, times = 0, []
    with switched():
        found = [_facts(run(one)) for one in calls]
    for (numbers, labels), (others, other_labels) in zip(expected, found):
        changed += labels != other_labels or numbers.shape != others.shape
        if numbers.shape == others.shape and numbers.size:
            difference = _difference(numbers, others)
            largest = max(largest, difference)
            relative = max(relative, difference / float(np.abs(numbers[np.isfinite(numbers)]).max(initial=1e-30)))
    for _ in range(rounds):
        for one in calls:
            before = _seconds(run, one)
            with switched():
                times.append((before, _seconds(run, one)))
    before_s, after_s = np.array(times).T
    return {"calls": len(calls), "before_p50_s": float(np.median(before_s)), "before_p99_s": float(np.percentile(before_s, 99)),
            "after_p50_s": float(np.median(after_s)), "after_p99_s": float(np.percentile(after_s, 99)),
            "factor": float(np.median(before_s / after_s)), "largest_difference": largest, "relative_difference": relative, "changed": changed}


def _difference(numbers: np.ndarray, others: np.ndarray) -> float:
    """Returns the largest difference. A number that is finite on one side only is infinitely far from the other."""
    same = (numbers == others) | (np.isnan(numbers) & np.isnan(others))
    with np.errstate(invalid="ignore"):
        apart = np.where(same, 0.0, np.abs(numbers - others))
    return float(np.where(np.isnan(apart), np.inf, apart).max())


def _seconds(run: Any, one: Any) -> float:
    begin = time.perf_counter()
    run(one)
    return time.perf_counter() - begin


def _before(run: Any, one: Any, k: int) -> Any:
    try:
        return run(one)
    except Error:
        raise
    except Exception as reason:  # noqa: BLE001: the user's model may raise anything
        raise ArgumentError(f"call {k} fails before anything is accelerated ({type(reason).__name__}: {reason}); is its text too long, or is an "
                            "option of the pipeline missing?") from reason


# -------------------------------------------------------------------------------------------------- calls, and what they give


def _caller(model: Any, call: Any, tokenizer: Any, options: Dict[str, Any]) -> Callable[[Any], Any]:
    import torch

    def quiet(function: Any) -> Callable[[Any], Any]:
        def run(one: Any) -> Any:
            with torch.inference_mode():
                return function(one)
        return run

    if call is not None:
        if options:
            raise ArgumentError(f"compare: call= says how the model is called, so that {', '.join(f'{name}=' for name in options)} would be passed over: put it into call")
        return quiet(call)
    _check_options(model, options)
    if hasattr(model, "predict") and hasattr(model, "rank"):  # a CrossEncoder
        return quiet(lambda one: model.predict([one] if isinstance(one, tuple) else one, show_progress_bar=False, **options))
    if not isinstance(model, torch.nn.Module):
        return quiet(lambda one: model(_for_pipeline(model, one), **options))
    if tokenizer is None:
        raise ArgumentError(f"compare: a {type(model).__name__} by itself needs tokenizer=, or give a pipeline, or call=")
    return quiet(lambda one: _heads(model, tokenizer, one, options))


# What a call of each kind takes: of a pipeline its steps, for which it sorts its options itself.
STEPS = ("__call__", "_sanitize_parameters", "preprocess", "_forward", "postprocess")


def _check_options(model: Any, options: Dict[str, Any]) -> None:
    """Refuses options that no call would read: pipelines hand unknown ones to the tokenizer, which passes over them."""
    if hasattr(model, "forward") and hasattr(model, "state_dict") and not hasattr(model, "rank"):
        functions = [model.forward]
    elif hasattr(model, "rank"):
        functions = [model.predict]
    else:
        functions = [getattr(kind, step) for kind in type(model).__mro__ for step in STEPS if step in vars(kind)]
        functions += [type(one).__call__ for one in (getattr(model, "tokenizer", None),) if callable(one)]
    known = {name for function in functions for name, one in inspect.signature(function).parameters.items() if one.kind in (one.POSITIONAL_OR_KEYWORD, one.KEYWORD_ONLY)}
    for name in options:
        if name in known and name != "self":
            continue
        near = difflib.get_close_matches(name, sorted({*known, *inspect.signature(compare).parameters}), 1)
        way = ("its type is the one that it was made with, pipeline(..., dtype=torch.float32)" if name in ("dtype", "torch_dtype")
               else f"did you mean {near[0]}=?" if near else "call=lambda text: ... says how it is called otherwise")
        raise ArgumentError(f"compare: neither compare nor a call of {type(model).__name__} takes {name}=; {way}")


def _for_pipeline(pipeline: Any, one: Any) -> Any:
    """Returns pairs as pipelines take them."""
    if isinstance(one, list):
        return [_for_pipeline(pipeline, text) for text in one]
    if not isinstance(one, tuple):
        return one
    if getattr(pipeline, "task", None) != "text-classification":
        raise ArgumentError(f"compare: a pair of texts for a pipeline of {getattr(pipeline, 'task', type(pipeline).__name__)}, which takes single texts: "
                            "say by call= how it is called")
    return {"text": one[0], "text_pair": one[1]}


def _heads(model: Any, tokenizer: Any, one: Any, options: Dict[str, Any]) -> Facts:
    """Returns the outputs of a bare model: its head's logits at real tokens and their answer, or its last hidden state."""
    texts = one if isinstance(one, list) else [one]
    if len({isinstance(text, tuple) for text in texts}) > 1:
        raise ArgumentError("compare: texts and pairs in one call: give them apart, or batch=None")
    columns = list(zip(*texts)) if isinstance(texts[0], tuple) else [texts]
    given = tokenizer(*map(list, columns), return_tensors="pt", padding=True)
    out, real = model(**given, **options), given["attention_mask"].bool()
    if "start_logits" in out and "end_logits" in out:
        both = [out[name].float() for name in ("start_logits", "end_logits")]
        labels = [_best_span(*(values[row][real[row]].numpy() for values in both)) for row in range(len(real))]
        return np.concatenate([values[real].numpy() for values in both]).astype(np.float64), labels
    name = "logits" if "logits" in out else next(iter(out))
    values = out[name].float()
    values = values[real] if values.shape[:2] == real.shape and values.dim() == 3 else values
    return values.numpy().ravel().astype(np.float64), _labels(model, values) if name == "logits" else []


def _labels(model: Any, logits: Any) -> List[str]:
    """Returns the answer: the largest logit; for independent labels all that are true; nothing for a single number."""
    kind = getattr(getattr(model, "config", None), "problem_type", None)
    if kind == "regression" or logits.shape[-1] == 1:
        return []
    if kind == "multi_label_classification":
        return [str(int(k)) for k in (logits > 0).flatten()]
    return [str(int(k)) for k in logits.argmax(-1).flatten()]


def _best_span(start: np.ndarray, end: np.ndarray) -> str:
    """Returns the tokens, among those that are not padding, between which start and end are most probable together."""
    best = np.maximum.accumulate(start)
    last = int((best + end).argmax())
    return f"{int(start[:last + 1].argmax())}-{last}"


def _facts(result: Any) -> Facts:
    """Returns all numbers of a result in order, and all its texts."""
    if isinstance(result, tuple) and len(result) == 2 and isinstance(result[0], np.ndarray) and isinstance(result[1], list):
        return result
    numbers: List[np.ndarray] = []
    labels: List[str] = []

    def look(thing: Any) -> None:
        if isinstance(thing, str):
            labels.append(thing)
        elif hasattr(thing, "detach"):
            numbers.append(thing.detach().double().numpy().ravel())
        elif isinstance(thing, (float, np.ndarray, np.floating)):
            numbers.append(np.ravel(np.asarray(thing, np.float64)))
        elif isinstance(thing, (int, np.integer)):
            labels.append(str(thing))
        elif hasattr(thing, "values"):
            [look(one) for one in thing.values()]
        elif isinstance(thing, (list, tuple)):
            [look(one) for one in thing]

    look(result)
    return np.concatenate(numbers) if numbers else np.empty(0), labels


def _machine() -> str:
    with contextlib.suppress(OSError, StopIteration), open("/proc/cpuinfo", encoding="utf-8") as file:
        name = next(line.split(":", 1)[1].strip() for line in file if line.startswith("model name"))
        return f"{name}, {os.cpu_count()} processors"
    return f"{platform.machine()}, {os.cpu_count()} processors"
