"""Answers of output heads for texts, as the commands of these names print them with --json. SPDX-License-Identifier: MIT"""
from __future__ import annotations

import json
from ctypes import c_double
from functools import cached_property
from pathlib import Path
from typing import Any, Callable, Dict, List, Optional

import numpy as np

from . import _abi as abi
from ._abi import ArgumentError, FormatError, UnsupportedError, library, one_of, probability, whole_number
from ._inputs import Cut, Tokenizer, address, as_texts, batch_of_cuts, described, one_text
from ._session import Session

Answer = Dict[str, Any]
TOGETHER = 2048  # in tokens
TAGS_NO_PAIRS = "tag takes no pairs, as entities are those of one text: give each text by itself"
MADE_BY = {abi.TASK_SEQUENCE: "finetune sequence --new-head", abi.TASK_TOKEN: "finetune token --new-head",
           abi.TASK_QA: "finetune qa --new-head", abi.TASK_RTD: "train rtd --new-head"}  # commands of the program that make a missing head


def _softmax(logits: np.ndarray) -> np.ndarray:
    found = np.empty(len(logits), np.float64)
    library.softmax(address(found), address(logits), len(found))
    return found


def _truth(what: str, value: Any) -> bool:
    if not isinstance(value, (bool, np.bool_)):
        raise ArgumentError(f"{what}: expected True or False, found {value!r}")
    return bool(value)


# Each checks an option of the calls below and returns its value.
OPTIONS: Dict[str, Callable[[Any], Any]] = {
    "top": lambda value: whole_number("top", value, least=1), "max_answer": lambda value: whole_number("max_answer", value, least=1),
    "threshold": lambda value: probability("threshold", value), "multi_label": lambda value: _truth("multi_label", value),
    "grouping": lambda value: one_of("grouping", value, "first", "simple"), "decoder": lambda value: one_of("decoder", value, "emd", "plain", None)}


def checked(**options: Any) -> List[Any]:
    """Returns the values of these options; refuses before any text is encoded."""
    return [OPTIONS[name](value) for name, value in options.items()]


def _rank(values: np.ndarray, top: int) -> List[int]:
    found = np.empty(min(top, len(values)), np.intp)
    library.rank(address(found), len(found), address(values), len(values))
    return [int(k) for k in found]


def _spoken(text: bytes, place: Any) -> Answer:
    """Returns a place with its text."""
    return {"text": text[place.bytes.begin:place.bytes.end].decode("utf-8", "replace"), **described(place)}


class Tasks:
    """The part of a Model that asks its heads."""

    def __init__(self, path: str, weights: abi.Owned, given: Dict[str, Any], memory_limit: Optional[int] = None) -> None:
        self.path, self.ablated, self.precision = path, "", given.get("precision", "float32")
        self.opened_with = {name: value for name, value in given.items() if value not in (None, 0, "auto", "float32")}
        self._memory_limit = memory_limit
        self._weights, self._tokenizer = weights, Tokenizer(path)
        self._session = Session(weights, given.get("isa"), given.get("threads"))
        self._active: List[Any] = []  # Terms of ablations, oldest first

    def __reduce_ex__(self, protocol: Any) -> Any:
        return self._weights.__reduce_ex__(protocol)

    def _widths(self) -> Dict[int, int]:
        """Returns the number of logits of each head that the checkpoint holds."""
        return {task: width for task in range(len(abi.TASKS)) if (width := library.task_width(self._weights.handle, task))}

    def _answers(self, texts: Any, max_tokens: Optional[int], task: int, describe: Callable[[Cut, np.ndarray], Answer],
                 places: Callable[[Cut], np.ndarray] = lambda cut: np.arange(cut.count), pairs: bool = True) -> Any:
        """Answers texts. places(cut): tokens at which the head is asked; describe(cut, logits): the answer; pairs: those are taken."""
        items, single = as_texts(texts)
        assert items is not None
        if not pairs and any(isinstance(item, tuple) for item in items):
            raise ArgumentError(TAGS_NO_PAIRS)
        found: List[Answer] = []
        with self._session.working():
            self._check_head(task)
            cuts = self._tokenizer.cut(items, max_tokens)
            features = {abi.TASK_SEQUENCE: abi.ONLY_HEADS, abi.TASK_MLM: abi.ONLY_HEADS, abi.TASK_EMD: abi.ONLY_HEADS | abi.KEEP_DECODER_INPUT}
            for first, _, part in self._session.parts(batch_of_cuts(cuts, self._is_limited(max_tokens)), TOGETHER, features.get(task, 0)):
                here = cuts[first:first + len(part.starts) - 1]
                asked = [np.array([k]) if task == abi.TASK_SEQUENCE else part.starts[k] + places(cut) for k, cut in enumerate(here)]
                logits = self._session.logits(task, np.concatenate(asked))
                if not np.isfinite(logits).all():
                    raise FormatError(f"{self.path}: logits of head '{abi.TASKS[task]}' are not finite: weights of the model are damaged or diverged in training")
                found += map(describe, here, np.split(logits, np.cumsum([len(one) for one in asked])[:-1]))
        return found[0] if single else found

    @cached_property
    def _config(self) -> Dict[str, Any]:
        """Returns config.json, of a pair the discriminator's part; nothing where there is none, as of a made-up model."""
        try:
            config = dict(json.loads((Path(self.path) / "config.json").read_bytes()))
            inner = config.get("discriminator")
            return inner if isinstance(inner, dict) and "hidden_size" not in config else config
        except (OSError, ValueError, TypeError):
            return {}

    def _is_limited(self, max_tokens: Optional[int]) -> bool:
        """Returns true if the user has set no maximal length."""
        return max_tokens is None and not self._memory_limit

    def _check_head(self, task: int) -> None:
        present = self._widths()
        if task not in present:
            way = f" (`deberta {MADE_BY[task]}` makes one)" if task in MADE_BY else ""
            others = ", ".join(abi.TASKS[one] for one in present) or "no head at all"
            raise UnsupportedError(f"{self.path} has no head '{abi.TASKS[task]}'{way}; it has {others}")
        if task in (abi.TASK_SEQUENCE, abi.TASK_TOKEN):
            self._check_labels(present[task])

    def _check_labels(self, count: int) -> None:
        """Refuses an id2label that names other labels than the classifier has, as the program does."""
        said = self._config.get("num_labels")
        is_named = [library.model_label(self._weights.handle, k) is not None for k in range(count + 1)]
        if is_named[count] or any(is_named) and not all(is_named[:count]):
            what = "names" if is_named[count] else "does not name"
            raise FormatError(f"{self.path}: id2label in config.json {what} the label {count if is_named[count] else is_named.index(False)}, "
                              f"but the classifier has the labels 0 to {count - 1}")
        if not any(is_named) and isinstance(said, int) and said not in (0, count):
            raise FormatError(f"{self.path}: num_labels in config.json is {said}, but the classifier has {count} outputs")

    def _label(self, number: int) -> str:
        name: Optional[bytes] = library.model_label(self._weights.handle, number)
        return f"LABEL_{number}" if name is None else name.decode("utf-8", "replace")

    def _problem(self) -> Optional[str]:
        """Returns problem_type of config.json."""
        return abi.PROBLEMS[library.model_describe(self._weights.handle).contents.problem]

    def classify(self, texts: Any, top: int = 5, multi_label: bool = False, max_tokens: Optional[int] = None) -> Any:
        """The most probable labels of a text or pair: {"labels": [{"label", "index", "probability"}]}, as problem_type of config.json
        says: each by itself if it is multi_label_classification (or multi_label is given), "score" in place of "probability" if it is
        regression, else one of all. Of a single output {"score", "probability"}, of a regression {"score"}. Of a list of texts a list."""
        most, by_itself = checked(top=top, multi_label=multi_label)

        def describe(_cut: Cut, logits: np.ndarray) -> Answer:
            problem = "multi_label_classification" if by_itself else self._problem()
            values, regression = logits[0], problem == "regression"
            if len(values) == 1 and problem != "multi_label_classification":
                score = float(values[0])
                return {"score": score} if regression else {"score": score, "probability": library.sigmoid(score)}
            if problem == "multi_label_classification":
                each = np.array([library.sigmoid(v) for v in values])
            else:
                each = values.astype(np.float64) if regression else _softmax(values)
            name = "score" if regression else "probability"
            return {"labels": [{"label": self._label(k), "index": k, name: float(each[k])} for k in _rank(each, most)]}
        if any("ForMultipleChoice" in str(name) for name in (self._config.get("architectures") or [])[:1]):
            abi.note(f"{self.path} is a model for multiple choice (architectures of config.json): a score says something only beside those of other "
                     "choices, each the second text of a pair with the same first")
        return self._answers(texts, max_tokens, abi.TASK_SEQUENCE, describe)

    def fill_mask(self, texts: Any, top: int = 5, decoder: Optional[str] = None, max_tokens: Optional[int] = None) -> Any:
        """Candidates for each [MASK]: {"decoder", "masks": [{"token", "characters", "bytes", "candidates": [{"id", "token", "text",
        "probability"}]}]}; of a pair also "segment", 0 or 1, the text of the place. "decoder" is the one that answered.
        decoder: "emd", the Enhanced Mask Decoder (default where there is one), or "plain": what transformers computes, which has no such decoder."""
        most, _ = checked(top=top, decoder=decoder)
        with self._session.working():
            emd = decoder == "emd" or (decoder is None and abi.TASK_EMD in self._widths())
            mask = self._tokenizer.special("mask")
            if abi.TASK_RTD in self._widths():
                abi.note(f"{self.path} is a discriminator of replaced-token training: its masked head was left over, and what it says "
                         "means little; the generator's checkpoint fills masks")

        def places(cut: Cut) -> np.ndarray:
            found = np.flatnonzero(cut.values("ids") == mask)
            if not len(found):
                token = self._tokenizer.token(mask)
                raise ArgumentError(f"max_tokens: cuts the text{cut.where} before its first {token}" if cut.list.contents.dropped and token.encode() in cut.text else
                                    f"there is no {token} in the text{cut.where}")
            return found

        def candidate(k: int, probability: float) -> Answer:
            token = self._tokenizer.token(k)
            text = None if token is None else self._tokenizer.spell(np.array([k], np.int32))
            return {"id": k, "token": token, "text": text, "probability": probability}

        def describe(cut: Cut, logits: np.ndarray) -> Answer:
            rows = [(t, _softmax(row)) for t, row in zip(places(cut).tolist(), logits)]
            return {"decoder": "emd" if emd else "plain",
                    "masks": [{"token": t, **cut.place(t), "candidates": [candidate(k, float(row[k])) for k in _rank(row, most)]}
                              for t, row in rows]}
        return self._answers(texts, max_tokens, abi.TASK_EMD if emd else abi.TASK_MLM, describe, places)

    def detect(self, texts: Any, threshold: float = 0.5, max_tokens: Optional[int] = None) -> Any:
        """Which tokens look replaced: {"tokens": [{"index", "token", "characters", "bytes", "probability", "replaced"}]};
        of a pair also "segment", 0 or 1, the text of the place."""
        least, = checked(threshold=threshold)

        def describe(cut: Cut, logits: np.ndarray) -> Answer:
            probabilities = {t: library.sigmoid(logits[t, 0]) for t in np.flatnonzero(cut.values("roles", "|u1") != abi.FRAME).tolist()}
            return {"tokens": [{"index": t, "token": cut.name(t), **cut.place(t), "probability": p, "replaced": p > least}
                               for t, p in probabilities.items()]}
        return self._answers(texts, max_tokens, abi.TASK_RTD, describe)

    def tag(self, texts: Any, grouping: str = "first", max_tokens: Optional[int] = None) -> Any:
        """Entities: {"entities": [{"text", "characters", "bytes", "label", "probability"}]}; pairs are refused. grouping: "first",
        words by their first token, or "simple", every token by itself."""
        units, = checked(grouping=grouping)

        def describe(cut: Cut, logits: np.ndarray) -> Answer:
            entities, count = (abi.Entity * len(logits))(), abi.SIZE()
            library.entities(entities, count, self._weights.handle, cut.list, cut.text, len(cut.text), address(logits), units)
            return {"entities": [{**_spoken(cut.text, e.place), "label": self._label(e.label) if e.type is None else e.type.decode(),
                                  "probability": e.probability} for e in entities[:count.value]]}
        return self._answers(texts, max_tokens, abi.TASK_TOKEN, describe, pairs=False)

    def answer(self, question: str, context: str, top: int = 3, max_answer: int = 30, max_tokens: Optional[int] = None) -> Answer:
        """Spans of the context: {"answers": [{"text", "characters", "bytes", "probability"}], "no_answer"}; max_answer in tokens."""
        most, longest = checked(top=top, max_answer=max_answer)

        def describe(cut: Cut, logits: np.ndarray) -> Answer:
            context_tokens = library.context_tokens(cut.list)
            if not context_tokens:
                raise ArgumentError("the context holds no tokens")
            if np.count_nonzero(cut.values("roles", "|u1") != abi.FRAME) <= context_tokens:
                raise ArgumentError("the question holds no tokens")
            answers = (abi.Answer * min(most, cut.count ** 2))()
            count, none = abi.SIZE(len(answers)), c_double()
            library.answers(answers, count, none, cut.list, cut.pair, address(logits), longest)
            return {"answers": [{**_spoken(cut.pair or b"", a.place), "probability": a.probability} for a in answers[:count.value]],
                    "no_answer": none.value}
        return dict(self._answers((one_text("question", question), one_text("context", context)), max_tokens, abi.TASK_QA, describe))
