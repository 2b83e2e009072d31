"""Models: tokens, hidden states, attention and answers of texts. SPDX-License-Identifier: MIT"""
from __future__ import annotations

import contextlib
import os
from typing import Any, Dict, Iterator, List, NamedTuple, Optional, Sequence, Tuple, Union

import numpy as np

from . import _abi as abi
from . import _program
from ._errors import ArgumentError
from ._inputs import Batch, address, batch_of_ids, batch_of_rows, view
from ._session import Session, Watcher, parse_ablations

Text = Union[str, Tuple[str, str]]
Arrays = Dict[str, Any]
C, INT32 = abi.c, np.dtype(np.int32)
MASKS_AT_ONCE = 64


class Tokens(NamedTuple):
    """[CLS] text [SEP], or [CLS] text [SEP] pair [SEP], n tokens."""

    ids: np.ndarray  # int32 [n]
    token_types: np.ndarray  # int32 [n]: 1 for the pair and its [SEP], else 0
    tokens: List[str]  # as the vocabulary writes them
    characters: np.ndarray  # [n, 2] begin and end in its segment, in characters; 0, 0 of [CLS] and [SEP]
    bytes: np.ndarray  # [n, 2] the same in bytes of UTF-8
    roles: np.ndarray  # uint8 [n]: 0 of the text, 1 a special token that the text spells, 2 [CLS] and [SEP]


class Model:
    """A model folder, or "synthetic:v3-base" and the like, opened for one caller.

    path: folder with config.json, weights and tokenizer. isa: "avx512", "avx2", "neon" or "scalar"; None the best here. threads: None
    OMP_NUM_THREADS, else the physical cores. reference: "microsoft" or "hf", how distances beyond the table are clamped. layers: only
    the first ones. memory_limit: bytes that the weights may take. precision: "float32", or "int16" and "int8" for linear layers of
    integers (docs/precision.md).

    One call at a time; `share()` makes a model of the same weights for another thread. Errors are `deberta_c.Error`, one sentence each.
    """

    def __init__(self, path: "str | os.PathLike[str]", isa: Optional[str] = None, threads: Optional[int] = None, *,
                 reference: str = "microsoft", layers: Optional[int] = None, memory_limit: Optional[int] = None,
                 precision: str = "float32") -> None:
        if reference not in ("microsoft", "hf"):
            raise ArgumentError(f"reference: expected microsoft or hf, found '{reference}'")
        if precision not in abi.PRECISIONS:
            raise ArgumentError(f"precision: expected one of {', '.join(abi.PRECISIONS)}; found '{precision}'")
        options = abi.sized(abi.ModelOptions, reference=int(reference == "hf"), threads=int(threads or 0), layers=int(layers or 0),
                            memory_limit_bytes=int(memory_limit or 0), precision=abi.PRECISIONS.index(precision))
        weights = abi.Owned("model_free")
        self.path = os.fspath(path)
        abi.call("model_open", weights.handle, os.fsencode(self.path), options)
        self._start(weights, isa, threads)

    def _start(self, weights: abi.Owned, isa: Optional[str], threads: Optional[int]) -> None:
        self._weights, self._isa, self._threads = weights, isa, threads
        self._session = Session(weights, isa, threads)
        self._vocabulary: Optional[abi.Owned] = None
        self._list = abi.Owned("tokens_free", kind=abi.TOKENS)
        self._ablated: List[str] = []

    def share(self, isa: Optional[str] = None, threads: Optional[int] = None) -> "Model":
        """Another model of the same weights, with threads and memory of its own, for another thread of the program."""
        other = object.__new__(Model)
        other.path = self.path
        other._start(self._weights, isa or self._isa, threads or self._threads)
        return other

    def close(self) -> None:
        """Frees the session now; the weights go with the last model that shares them."""
        if not self._weights.handle:
            return
        with self._session.working():
            self._session.close()
            self._session.weights = self._weights = abi.Owned("model_free")

    def __enter__(self) -> "Model":
        return self

    def __exit__(self, *reason: Any) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"deberta_c.Model({self.path!r})"

    # ------------------------------------------------------------------------------------------------------- what it is

    @property
    def info(self) -> Dict[str, Any]:
        """Shape, memory and heads: deberta_model_info by name; tasks: names of the heads that the checkpoint holds."""
        with self._session.working():
            info = abi.ask("model_describe", self._weights.handle).contents
            found = {name: getattr(info, name) for name, _ in info._fields_ if name != "tasks_present"}
            found["name"], found["precision"] = found["name"].decode(), abi.PRECISIONS[found["precision"]]
            return {**found, "tasks": [name for bit, name in enumerate(abi.TASKS) if info.tasks_present >> bit & 1]}

    @property
    def labels(self) -> List[str]:
        """Of the classifier, or of the token head; LABEL_k where config.json names none."""
        info = self.info
        return [self._label(k) for k in range(info["sequence_labels"] or info["token_labels"])]

    def _label(self, number: int) -> str:
        name = abi.ask("model_label", self._weights.handle, number)
        return f"LABEL_{number}" if name is None else name.decode("utf-8", "replace")

    @property
    def isa(self) -> str:
        """The instruction set that encodes."""
        with self._session.working():
            return abi.ask("isa_name", abi.ask("session_isa", self._session.prepare(1))).decode()

    @property
    def threads(self) -> int:
        """Threads that encode."""
        with self._session.working():
            return abi.ask("session_threads", self._session.prepare(1))

    def digest(self) -> str:
        """SHA-256 of the checkpoint's files; empty for a made-up model."""
        text = C.create_string_buffer(65)
        abi.call("model_digest", self._weights.handle, text)
        return text.value.decode()

    # ----------------------------------------------------------------------------------------------------------- tokens

    def _tokenizer(self) -> abi.POINTER:
        if self._vocabulary is None:
            opened = abi.Owned("tokenizer_free")
            abi.call("tokenizer_open", opened.handle, os.fsencode(self.path))
            self._vocabulary = opened
        return self._vocabulary.handle

    def _cut(self, item: Text, max_tokens: Optional[int], into: Optional[abi.Owned] = None) -> abi.Owned:
        text, pair = item if isinstance(item, tuple) else (item, None)
        if not isinstance(text, str) or not isinstance(pair, (str, type(None))):
            raise ArgumentError(f"expected a text or a pair of texts, found {type(text if not isinstance(text, str) else pair).__name__}")
        into = into or abi.Owned("tokens_free", kind=abi.TOKENS)
        segments = [None if one is None else one.encode("utf-8", "surrogatepass") for one in (text, pair)]
        asked = abi.sized(abi.Text, text=segments[0], text_bytes=len(segments[0] or b""), pair=segments[1],
                          pair_bytes=len(segments[1] or b""), max_tokens=int(max_tokens or 0))
        abi.call("tokenize", into.handle, self._tokenizer(), asked)
        return into

    def tokenize(self, text: Text, max_tokens: Optional[int] = None) -> Tokens:
        """Tokens of a text, or of a pair (text, second text); max_tokens cuts, frame included."""
        with self._session.working():
            cut = self._cut(text, max_tokens, self._list)
            found, n, size = cut.handle.contents, cut.handle.contents.count, abi.SIZE()
            names = [abi.text_of(abi.ask("tokens_text", cut.handle, k, size), size) or "" for k in range(n)]
            return Tokens(view(found.ids, (n,), "<i4").copy(), view(found.token_types, (n,), "<i4").copy(), names,
                          view(found.character_spans, (n, 2), "<u8").astype(np.int64), view(found.byte_spans, (n, 2), "<u8").astype(np.int64),
                          view(found.roles, (n,), "|u1").copy())

    def detokenize(self, ids: Any) -> str:
        """The text that ids stand for, without [CLS], [SEP] and [PAD]."""
        row = batch_of_ids(np.asarray(ids))[0].ids
        with self._session.working():
            return self._spell(row)

    def _spell(self, row: np.ndarray) -> str:
        text, size = abi.POINTER(), abi.SIZE()
        abi.call("detokenize", text, size, self._tokenizer(), address(row), len(row))
        try:
            return abi.text_of(text.value, size) or ""
        finally:
            abi.ask("free", text)

    def _row(self, item: Text, max_tokens: Optional[int]) -> Tuple[np.ndarray, np.ndarray]:
        found = self._cut(item, max_tokens, self._list).handle.contents
        return view(found.ids, (found.count,), "<i4").copy(), view(found.token_types, (found.count,), "<i4").copy()

    def _batch(self, inputs: Any, token_types: Any, mask: Any, max_tokens: Optional[int]) -> Tuple[Batch, bool]:
        items, single = _texts(inputs)
        if items is None:
            return batch_of_ids(inputs, token_types, mask)
        rows = [self._row(item, max_tokens) for item in items]
        types = [row[1] for row in rows]
        return batch_of_rows([row[0] for row in rows], token_types=np.concatenate(types) if any(t.any() for t in types) else None), single

    # ----------------------------------------------------------------------------------------------------------- encode

    def encode(self, inputs: Any, *, token_types: Any = None, mask: Any = None, hidden: Optional[str] = "last", attention: Any = None,
               components: Any = None, logits: bool = False, max_tokens: Optional[int] = None, batch_tokens: int = 2048) -> Arrays:
        """Hidden states, attention and logits of texts or ids, named as the files of `deberta encode`.

        inputs: a text, a pair (text, second text), a list of these; or ids: one row of integers, a list of rows, a 2-D array, or a
        mapping with input_ids (token_type_ids, attention_mask). token_types, mask: rows like ids; a 0 of the mask marks a hole.
        hidden: "last", "all" or None. attention: "all" or numbers of layers. components: "all" or pairs (layer, head).
        logits: of every head that the checkpoint holds, of all tokens: the vocabulary's take 4 V bytes a token.

        Gives float32 arrays, B texts of n tokens: "hidden_states.L" [B, n, h]; "attn.L.probs" [B, A, n, n]; "attn.L.c2c", ".c2p",
        ".p2c", ".logits" [B, heads, n, n] of the chosen heads in ascending order; "logits.sequence" [B, labels], "logits.rtd" [B, n],
        "logits.mlm", ".mlm_emd", ".token", ".qa" [B, n, labels]. Where lengths differ, a list of B arrays without the first axis.
        Results are the same bits for any batch_tokens, the number of tokens that are encoded together.
        """
        with self._session.working():
            batch = self._batch(inputs, token_types, mask, max_tokens)[0]
            return self._encode(batch, hidden, self._wanted(attention, components), logits, batch_tokens)

    def _wanted(self, attention: Any, components: Any) -> "dict[int, dict[int, set[int]]]":
        layers, heads = self._session.layers, self._session.heads
        wanted: "dict[int, dict[int, set[int]]]" = {}
        if attention is None and components is None:
            return wanted
        pairs = [(layer, head) for layer in range(layers) for head in range(heads)] if components == "all" else components or ()
        chosen = range(layers) if attention == "all" else attention if attention is not None else ()
        for layer, head in pairs:
            self._check_place(layer, head)
            for component in range(4):
                if component in (0, 3) or getattr(self._session._info, ("", "has_c2p", "has_p2c")[component]):
                    wanted.setdefault(layer, {}).setdefault(component, set()).add(head)
        for layer in chosen:
            self._check_place(layer, 0)
            wanted.setdefault(layer, {})[4] = set(range(heads))
        return wanted

    def _check_place(self, layer: int, head: int) -> None:
        if not 0 <= layer < self._session.layers or not 0 <= head < self._session.heads:
            raise ArgumentError(f"layer {layer}, head {head}: the model has layers 0 to {self._session.layers - 1} and heads 0 to {self._session.heads - 1}")

    def _encode(self, batch: Batch, hidden: Optional[str], wanted: Any, logits: bool, batch_tokens: int) -> Arrays:
        if hidden not in ("last", "all", None):
            raise ArgumentError(f"hidden: expected 'last', 'all' or None, found {hidden!r}")
        session = self._session
        if hidden == "last" and len(batch.starts) == 2 and not wanted and not logits:  # the usual call, without what others need
            return {f"hidden_states.{session.layers}": session.encode(batch).copy()[None]}
        parts = _Parts(batch)
        tasks = [task for task in range(len(abi.TASKS)) if logits and abi.ask("task_width", self._weights.handle, task)]
        layers = range(session.layers) if hidden == "all" else ()
        for first, end in batch.chunks(batch_tokens):
            part = batch.part(first, end)
            watcher = Watcher(layers, wanted) if layers or wanted else None
            last = session.encode(part, abi.KEEP_DECODER_INPUT if abi.TASK_EMD in tasks else 0, watcher)
            if hidden:
                parts.add_rows(f"hidden_states.{session.layers}", first, last)
            for layer, rows in (watcher.hidden if watcher else {}).items():
                parts.add_rows(f"hidden_states.{layer}", first, rows)
            for (layer, component), matrices in (watcher.attention if watcher else {}).items():
                parts.add_matrices(f"attn.{layer}.{abi.COMPONENTS[component]}", matrices)
            for task in tasks:
                by_sequence = task == abi.TASK_SEQUENCE
                found = session.logits(task, np.arange(end - first if by_sequence else len(part.ids), dtype=np.uintp))
                name = f"logits.{abi.TASKS[task]}"
                parts.add_answers(name, found) if by_sequence else parts.add_rows(name, first, found[:, 0] if task == abi.TASK_RTD else found)
        return parts.finish()

    @contextlib.contextmanager
    def ablate(self, terms: str) -> Iterator["Model"]:
        """Within the block, takes terms out: "c2p@3:5", "p2c=mean@all,c2c@0", as --ablate of the program does."""
        added = parse_ablations(terms)
        self._ablate(self._session.ablations + added, self._ablated + [terms])
        try:
            yield self
        finally:
            self._ablate(self._session.ablations[:-len(added)], self._ablated[:-1])

    def _ablate(self, ablations: "list[tuple[int, int, int, int]]", texts: List[str]) -> None:
        session = self._session
        with session.working():
            before = session.ablations
            session.close()
            session.ablations = ablations
            try:
                session.prepare(1)
            except Exception:
                session.ablations = before
                raise
            self._ablated = texts

    # ------------------------------------------------------------------------------------------------------------ tasks

    def _answers(self, texts: Any, max_tokens: Optional[int], task: int, places: Any, describe: Any) -> Any:
        """places(cut): which of its tokens the head is asked for; describe(item, cut, logits): the answer."""
        items, single = _texts(texts)
        if items is None:
            raise ArgumentError("expected a text, a pair of texts or a list of these")
        found: List[Any] = []
        with self._session.working():
            cuts = [self._cut(item, max_tokens) for item in items]
            rows = [(view(c.ids, (c.count,), "<i4"), view(c.token_types, (c.count,), "<i4")) for c in (cut.handle.contents for cut in cuts)]
            batch = batch_of_rows([row[0] for row in rows], token_types=np.concatenate([row[1] for row in rows]) if rows else None)
            for first, end in batch.chunks(2048):
                part = batch.part(first, end)
                self._session.encode(part, abi.KEEP_DECODER_INPUT if task == abi.TASK_EMD else 0)
                asked = [places(cut) + (int(start) if task != abi.TASK_SEQUENCE else k)
                         for k, (cut, start) in enumerate(zip(cuts[first:end], part.starts))]
                logits = self._session.logits(task, np.concatenate(asked).astype(np.uintp))
                if not np.isfinite(logits).all():
                    raise abi.ERRORS[-3](f"{self.path}: logits of head '{abi.TASKS[task]}' are not finite: weights of the model are damaged")
                ends = np.cumsum([len(places_of) for places_of in asked])
                found += [describe(items[first + k], cuts[first + k], logits[ends[k] - len(asked[k]):ends[k]]) for k in range(end - first)]
        return found[0] if single else found

    def classify(self, texts: Any, top: int = 5, multi_label: bool = False, max_tokens: Optional[int] = None) -> Any:
        """The most probable labels of a text or pair: {"labels": [{"label", "index", "probability"}]}; {"score"} of a regression. Of a
        list of texts a list. multi_label: each label by itself."""
        def describe(item: Text, cut: abi.Owned, logits: np.ndarray) -> Arrays:
            if logits.shape[1] == 1 and not multi_label:
                return {"score": float(logits[0, 0])}
            scores = np.array([abi.ask("sigmoid", float(v)) for v in logits[0]]) if multi_label else _softmax(logits[0])
            return {"labels": [{"label": self._label(k), "index": k, "probability": float(scores[k])} for k in _rank(scores, top)]}
        return self._answers(texts, max_tokens, abi.TASK_SEQUENCE, lambda cut: np.zeros(1, np.int64), describe)

    def fill_mask(self, texts: Any, top: int = 5, decoder: Optional[str] = None, max_tokens: Optional[int] = None) -> Any:
        """Candidates for each [MASK]: {"masks": [{"token", "characters", "bytes", "candidates": [{"id", "token", "text",
        "probability"}]}]}. decoder: "emd", the Enhanced Mask Decoder (default where there is one), or "plain"."""
        if decoder not in (None, "emd", "plain"):
            raise ArgumentError(f"decoder: expected 'emd', 'plain' or None, found {decoder!r}")
        has_emd = abi.ask("task_width", self._weights.handle, abi.TASK_EMD) > 0
        task = abi.TASK_EMD if decoder == "emd" or (decoder is None and has_emd) else abi.TASK_MLM
        mask = abi.ask("tokenizer_special_id", self._tokenizer(), abi.SPECIALS.index("mask"))

        def places(cut: abi.Owned) -> np.ndarray:
            found = np.flatnonzero(view(cut.handle.contents.ids, (cut.handle.contents.count,), "<i4") == mask)
            if not len(found):
                raise ArgumentError(f"there is no {abi.text_of(*self._token(mask))} in the text")
            return found

        def describe(item: Text, cut: abi.Owned, logits: np.ndarray) -> Arrays:
            return {"masks": [{"token": int(t), **_place(cut, int(t), item), "candidates": self._candidates(row, top)}
                              for t, row in zip(places(cut), logits)]}
        return self._answers(texts, max_tokens, task, places, describe)

    def _token(self, number: int) -> "tuple[Optional[int], abi.SIZE]":
        size = abi.SIZE()
        return abi.ask("tokenizer_token", self._tokenizer(), number, size), size

    def _candidates(self, logits: np.ndarray, top: int) -> List[Arrays]:
        probabilities, found = _softmax(logits), []
        for k in _rank(probabilities, top):
            token = abi.text_of(*self._token(k))
            found.append({"id": k, "token": token, "text": None if token is None else self._spell(np.array([k], INT32)), "probability": float(probabilities[k])})
        return found

    def detect(self, texts: Any, threshold: float = 0.5, max_tokens: Optional[int] = None) -> Any:
        """Which tokens look replaced: {"tokens": [{"index", "token", "characters", "bytes", "probability", "replaced"}]}."""
        def describe(item: Text, cut: abi.Owned, logits: np.ndarray) -> Arrays:
            tokens, size = [], abi.SIZE()
            for t, place in _text_tokens(cut, item):
                name, probability = abi.text_of(abi.ask("tokens_text", cut.handle, t, size), size), abi.ask("sigmoid", float(logits[t, 0]))
                tokens.append({"index": t, "token": name, **place, "probability": probability, "replaced": probability > threshold})
            return {"tokens": tokens}
        return self._answers(texts, max_tokens, abi.TASK_RTD, _all_tokens, describe)

    def tag(self, texts: Any, grouping: str = "first", max_tokens: Optional[int] = None) -> Any:
        """Entities: {"entities": [{"text", "characters", "bytes", "label", "probability"}]}. grouping: "first", words by their first
        token, or "simple", every token by itself."""
        if grouping not in ("first", "simple"):
            raise ArgumentError(f"grouping: expected 'first' or 'simple', found {grouping!r}")

        def describe(item: Text, cut: abi.Owned, logits: np.ndarray) -> Arrays:
            text, entities, count = _first(item), (abi.Entity * (len(logits) + 1))(), abi.SIZE()
            abi.call("entities", entities, count, self._weights.handle, cut.handle, text, len(text), address(logits), int(grouping == "simple"))
            return {"entities": [{**_described(e.place, text), "label": e.type.decode() if e.type is not None else self._label(e.label),
                                  "probability": e.probability} for e in entities[:count.value]]}
        return self._answers(texts, max_tokens, abi.TASK_TOKEN, _all_tokens, describe)

    def answer(self, question: str, context: str, top: int = 3, max_answer: int = 30, max_tokens: Optional[int] = None) -> Arrays:
        """Spans of the context: {"answers": [{"text", "characters", "bytes", "probability"}], "no_answer"}; max_answer in tokens."""
        def describe(item: Text, cut: abi.Owned, logits: np.ndarray) -> Arrays:
            if not abi.ask("context_tokens", cut.handle):
                raise ArgumentError("the context holds no tokens")
            text, answers, count, none = item[1].encode(), (abi.Answer * (top + 1))(), abi.SIZE(top), C.c_double()
            abi.call("answers", answers, count, none, cut.handle, text, address(logits), max_answer)
            return {"answers": [{**_described(a.place, text), "probability": a.probability} for a in answers[:count.value]], "no_answer": none.value}
        return self._answers((question, context), max_tokens, abi.TASK_QA, _all_tokens, describe)

    def receptive_field(self, **options: Any) -> Arrays:
        """What `deberta receptive-field --json` says of this model: docs/receptive-field.md has the members."""
        return _program.json_of("receptive-field", self.path, **options)


# ------------------------------------------------------------------------------------------------------------ pieces


def _texts(inputs: Any) -> "tuple[Optional[list[Text]], bool]":
    """Texts and pairs as a list, and whether it was one by itself; None: something else, ids."""
    if isinstance(inputs, str) or (isinstance(inputs, tuple) and len(inputs) == 2 and all(isinstance(one, str) for one in inputs)):
        return [inputs], True  # type: ignore[list-item]
    if isinstance(inputs, (list, tuple)) and inputs and isinstance(inputs[0], (str, tuple, bytes)):
        return [tuple(one) if isinstance(one, list) else one for one in inputs], False  # type: ignore[misc]
    return None, False


def _softmax(logits: np.ndarray) -> np.ndarray:
    found, logits = np.empty(len(logits), np.float64), np.ascontiguousarray(logits)
    abi.ask("softmax", address(found), address(logits), len(found))
    return found


def _rank(values: np.ndarray, top: int) -> List[int]:
    if top < 1:
        raise ArgumentError(f"top: expected a number from 1, found {top}")
    found = np.empty(min(top, len(values)), np.uintp)
    return found[:abi.ask("rank", address(found), len(found), address(values), len(values))].tolist()


def _first(item: Text) -> bytes:
    return (item if isinstance(item, str) else item[0]).encode("utf-8", "surrogatepass")


def _described(place: Any, text: bytes) -> Arrays:
    begin, end = place.bytes.begin, place.bytes.end
    return {"text": text[begin:end].decode("utf-8", "replace"), "characters": [place.characters.begin, place.characters.end], "bytes": [begin, end]}


def _place(cut: abi.Owned, token: int, item: Text) -> Arrays:
    place = abi.ask("token_place", cut.handle, token, _first(item))
    return {"characters": [place.characters.begin, place.characters.end], "bytes": [place.bytes.begin, place.bytes.end]}


def _all_tokens(cut: abi.Owned) -> np.ndarray:
    return np.arange(cut.handle.contents.count)


def _text_tokens(cut: abi.Owned, item: Text) -> "Iterator[tuple[int, Arrays]]":
    roles = view(cut.handle.contents.roles, (cut.handle.contents.count,), "|u1")
    for t in np.flatnonzero(roles != abi.FRAME).tolist():
        yield t, _place(cut, t, item)


class _Parts:
    """Results of chunks, put together."""

    def __init__(self, batch: Batch) -> None:
        self._starts, self._lengths = batch.starts.astype(np.int64), batch.lengths
        self._rows: Dict[str, np.ndarray] = {}
        self._lists: Dict[str, List[np.ndarray]] = {}
        self._answers: Dict[str, List[np.ndarray]] = {}

    def add_rows(self, name: str, first: int, rows: np.ndarray) -> None:
        if name not in self._rows:
            self._rows[name] = np.empty((int(self._starts[-1]), *rows.shape[1:]), np.float32)
        begin = int(self._starts[first])
        self._rows[name][begin:begin + len(rows)] = rows

    def add_matrices(self, name: str, matrices: Sequence[np.ndarray]) -> None:
        self._lists.setdefault(name, []).extend(matrices)

    def add_answers(self, name: str, rows: np.ndarray) -> None:
        self._answers.setdefault(name, []).append(rows)

    def finish(self) -> Arrays:
        count, equal = len(self._lengths), bool((self._lengths == self._lengths[:1]).all())
        found: Arrays = {}
        for name, rows in self._rows.items():
            found[name] = rows.reshape(count, -1, *rows.shape[1:]) if equal else np.split(rows, self._starts[1:-1])
        for name, matrices in self._lists.items():
            found[name] = matrices[0][None] if count == 1 else np.stack(matrices) if equal else matrices
        return {**found, **{name: np.concatenate(rows) for name, rows in self._answers.items()}}
