"""Turns columns of texts into columns of vectors or answers, for Ray Data's map_batches and Hugging Face datasets' map.

    ds.map_batches(deberta_c.Encoder, fn_constructor_kwargs={"path": "models/demo", "threads": 1}, batch_size=256, concurrency=4)
    dataset.map(deberta_c.Encoder("models/demo"), batched=True, num_proc=4)

SPDX-License-Identifier: MIT
"""
from __future__ import annotations

import inspect
import json
import os
from typing import Any, Dict, List, Mapping, Optional, Tuple

import numpy as np

from ._abi import (LEAST_TOKENS, MADE_UP, PRECISIONS, ArgumentError, UnsupportedError, VectorRecipe, library, one_of, size_or_default, terminated,
                   thread_count, tier, whole_number)
from ._inputs import is_table
from ._model import Model
from ._tasks import TAGS_NO_PAIRS, checked

Columns = Dict[str, Any]
TASKS = ("classify", "tag", "detect", "fill_mask")


class Encoder:
    """Called with a batch, a mapping of column names to arrays or lists (datasets: map(..., batched=True)), gives it back with one column
    more.

    path: a model's folder. column: where the texts are; pair: where their second segments are, if anywhere. pool: "mean" over all
    tokens, frame included, or "cls": the rows that `deberta encode --pool` writes, bit for bit. None: as modules.json of a folder of
    sentence-transformers says (cls or mean, length 1, max_seq_length; anything else is refused), "mean" where there is none. task: "classify", "tag", "detect" or
    "fill_mask" instead of vectors: their answers as JSON texts, with options of those calls in `task_options`. into: the new column;
    "vector" or the task's name. Of the others see Model.

    datasets keeps every column that it gets back: instead of map's remove_columns call `.remove_columns("text")` on the result.

    The model is opened in the process that calls, at its first batch: an Encoder may be pickled and forked. Where `deberta pack` has
    been run on the folder, all processes of a machine share its weights.
    """

    def __init__(self, path: "str | os.PathLike[str]", *, column: str = "text", pair: Optional[str] = None, pool: Optional[str] = None,
                 task: Optional[str] = None, task_options: Optional[Mapping[str, Any]] = None, into: Optional[str] = None,
                 isa: Optional[str] = None, threads: Optional[int] = None, precision: str = "float32", max_tokens: Optional[int] = None,
                 batch_tokens: int = 2048) -> None:
        one_of("pool", pool, "mean", "cls", None)
        one_of("task", task, *TASKS, None)
        one_of("precision", precision, *PRECISIONS)
        thread_count(threads)
        tier(isa, is_here=False)  # the machine that opens the model may be another one
        if isinstance(path, Model):
            raise ArgumentError(f"path: expected a folder, found an open Model: an Encoder opens its own in each process: Encoder({path.path!r})")
        self.path, self.column, self.pair, self.pool, self.task = os.fsdecode(terminated("path", path)), column, pair, pool, task
        self.task_options = dict(task_options or {})
        self._check_task(pool)
        self.into = into or task or "vector"
        self.max_tokens = size_or_default("max_tokens", max_tokens, LEAST_TOKENS) or None
        self.batch_tokens = whole_number("batch_tokens", batch_tokens, least=1)
        self.opening = {"isa": isa, "threads": threads, "precision": precision}
        self._model: Optional[Model] = None
        self._process = 0

    def _check_task(self, pool: Optional[str]) -> None:
        """What would be passed over is refused here, not in a worker at its first batch."""
        if self.task is not None and pool is not None:
            raise ArgumentError(f"pool: is for vectors, and task={self.task!r} gives answers: leave one of them out")
        if self.task is None and self.task_options:
            raise ArgumentError(f"task_options: {', '.join(map(str, self.task_options))}: there is no task: give task=, one of {', '.join(TASKS)}")
        if self.task == "tag" and self.pair is not None:
            raise ArgumentError(f"pair: {TAGS_NO_PAIRS}")
        known = list(inspect.signature(getattr(Model, self.task)).parameters)[2:] if self.task else []
        unknown = [name for name in self.task_options if name not in known or name == "max_tokens"]
        if unknown:
            raise ArgumentError(f"task_options: {self.task} has no {', '.join(map(str, unknown))}; it has {', '.join(name for name in known if name != 'max_tokens')}")
        checked(**self.task_options)

    def __getstate__(self) -> Dict[str, Any]:
        return {**self.__dict__, "_model": None, "_process": 0}

    @property
    def model(self) -> Model:
        """Returns the model of this process."""
        if self._model is None or self._process != os.getpid():
            self._model, self._process = Model(self.path, **self.opening), os.getpid()  # type: ignore[arg-type]
        return self._model

    def __call__(self, batch: Mapping[str, Any]) -> Columns:
        """The columns of the batch and, under `into`, one more: float32 [texts, h] vectors, or an object array of JSON texts. Raises
        ArgumentError for what is no mapping of columns, for a column that holds no list of texts, and where `into` is there already."""
        if not hasattr(batch, "keys") or not hasattr(batch, "__getitem__"):
            raise ArgumentError(f"expected a batch, a mapping of columns such as {{{self.column!r}: [...]}}, found {type(batch).__name__}: an Encoder is "
                                "what map(..., batched=True) calls, and Model(path).encode takes texts")
        if self.into in batch:
            raise ArgumentError(f"the batch has a column {self.into!r}, which would be replaced: into= takes another name, or leave that column out")
        texts = self._texts(batch)
        return {**batch, self.into: self._answers(texts) if self.task else self._vectors(texts)}

    def _texts(self, batch: Mapping[str, Any]) -> Any:
        columns = [self._column(batch, name) for name in (self.column, *([] if self.pair is None else [self.pair]))]
        if len({len(column) for column in columns}) > 1:
            raise ArgumentError(f"the columns '{self.column}' and '{self.pair}' have {len(columns[0])} and {len(columns[1])} rows, expected as many of both")
        return columns[0] if self.pair is None else list(zip(*columns))

    def _column(self, batch: Mapping[str, Any], name: str) -> List[str]:
        if name not in batch:
            raise ArgumentError(f"the batch has no column '{name}'; it has {', '.join(map(str, batch)) or 'none'}")
        if isinstance(batch[name], (str, bytes, Mapping)) or not hasattr(batch[name], "__len__") or is_table(batch[name]):
            raise ArgumentError(f"column '{name}': expected a list of texts, found one {type(batch[name]).__name__}: an Encoder takes batches, "
                                "map(..., batched=True)")
        for row, text in enumerate(batch[name]):
            if not isinstance(text, str):
                raise ArgumentError(f"column '{name}', row {row} of the batch: expected a text, found {text!r:.60}")
        return [str(text) for text in batch[name]]

    def _vectors(self, texts: Any) -> np.ndarray:
        model = self.model
        width = model.info["hidden_size"]
        if not texts:
            return np.empty((0, width), np.float32)
        pool, normalized, max_tokens = self._recipe()
        rows = next(iter(model.encode(texts, max_tokens=max_tokens, batch_tokens=self.batch_tokens).values()))
        # Adds in double and in the order of the tokens, as the program does, for the same bits.
        pooled = [text[0] if pool == "cls" else np.add.reduce(text, axis=0, dtype=np.float64, initial=0.0) / len(text) for text in rows]
        vectors = np.asarray(pooled).astype(np.float32).reshape(len(texts), width)
        if normalized:  # squares are added in the order of the elements, as in the program
            lengths = np.sqrt(np.cumsum(vectors.astype(np.float64) ** 2, axis=1)[:, -1:])
            vectors = (vectors / np.maximum(lengths, 1e-12)).astype(np.float32)
        return vectors

    def _recipe(self) -> "Tuple[str, bool, Optional[int]]":
        """Returns pooling, normalization and the maximal length: given values, or those of the folder."""
        if self.pool is not None or self.path.startswith(MADE_UP):
            return self.pool or "mean", False, self.max_tokens
        said = VectorRecipe()
        library.vector_recipe_read(said, os.fsencode(self.path))
        if said.obstacle:
            raise UnsupportedError(f"{self.path}: modules.json asks for {said.obstacle.decode('utf-8', 'replace')}, which is not followed: "
                                   "give pool=\"mean\" or pool=\"cls\" for vectors without it")
        length = self.max_tokens if self.max_tokens is not None else said.max_tokens or None
        return "cls" if said.cls else "mean", bool(said.normalized), length

    def _answers(self, texts: Any) -> np.ndarray:
        found = getattr(self.model, str(self.task))(texts, max_tokens=self.max_tokens, **self.task_options) if texts else []
        return np.array([json.dumps(answer, ensure_ascii=False) for answer in found], dtype=object)
