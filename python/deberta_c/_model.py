"""Models: tokens, hidden states and attention of texts and ids. SPDX-License-Identifier: MIT"""
from __future__ import annotations

import collections.abc
import contextlib
import ctypes
import os
from typing import Any, Dict, Iterable, List, NamedTuple, Optional, Tuple

import numpy as np

from . import _abi as abi
from ._abi import ArgumentError, UnsupportedError, library, one_of, size_or_default, terminated, whole_number
from . import _attribution, _program
from ._inputs import SIZE, Batch, Frame, address, as_texts, batch_of_cuts, batch_of_ids, integers, token_numbers
from ._session import Capture, Changes, Matrices, check_not_closed, parse_ablations
from ._tasks import Tasks


class Tokens(NamedTuple):
    """[CLS] text [SEP], or [CLS] text [SEP] pair [SEP], n tokens."""

    ids: np.ndarray  # int32 [n]
    token_types: np.ndarray  # int32 [n]: 1 for the pair and its [SEP], else 0
    tokens: List[str]  # as written in the vocabulary
    characters: np.ndarray  # [n, 2] begin and end in its segment, in characters; 0, 0 for [CLS] and [SEP]
    bytes: np.ndarray  # [n, 2] the same in bytes of UTF-8
    roles: np.ndarray  # uint8 [n]: 0 for text, 1 for a special token spelt in the text, 2 for [CLS] and [SEP]


class Terms(NamedTuple):
    """Terms that are taken out together; the model holds these, and no Ablation, which holds the model."""

    text: str
    parsed: List[Any]


class Model(Tasks, contextlib.AbstractContextManager["Model"]):
    """A model folder, or "synthetic:v3-base" and the like, opened for one caller.

    path: folder with config.json, weights and tokenizer. isa: a tier that `deberta info` lists; None the best here. threads: None
    OMP_NUM_THREADS, else the physical cores. reference: "microsoft" or "hf", how distances beyond the table are clamped; "auto": as the
    library that wrote config.json. layers: only the first ones. memory_limit: bytes that the weights may take. precision: "float32", or "int16" and "int8" for linear layers of
    integers (docs/precision.md).

    path, precision, opened_with: as it was opened; opened_with has the options that are not what they are by default, without
    memory_limit. ablated: what it is without, after ablate.

    One call at a time; `share()` makes a model of the same weights for another thread. Errors are `deberta_c.Error`, one sentence each.
    """

    def __init__(self, path: "str | os.PathLike[str]", isa: Optional[str] = None, threads: Optional[int] = None, *,
                 reference: str = "auto", layers: Optional[int] = None, memory_limit: Optional[int] = None,
                 precision: str = "float32") -> None:
        options = abi.sized(abi.ModelOptions, threads=abi.thread_count(threads), layers=size_or_default("layers", layers),
                            reference=one_of("reference", reference, *abi.REFERENCES), memory_limit_bytes=size_or_default("memory_limit", memory_limit),
                            precision=one_of("precision", precision, *abi.PRECISIONS))
        weights, folder = abi.Owned(library.model_free), terminated("path", path)
        library.model_open(weights.handle, folder, options)
        super().__init__(os.fsdecode(folder), weights, {"isa": isa, "threads": threads, "reference": reference, "layers": layers, "precision": precision},
                         memory_limit)
        for sentence in abi.notes_of(library.model_note, weights.handle):
            abi.note(sentence)

    def share(self, isa: Optional[str] = None, threads: Optional[int] = None) -> "Model":
        """Another model of the same weights, with threads and memory of its own, for another thread of the program. Raises ArgumentError
        where this one is closed, UnsupportedError after ablate."""
        self._session.check_open()
        if self.ablated:
            raise UnsupportedError(f"this model is without {self.ablated}, and one that shares its weights would be whole: share() first, then ablate each")
        other = object.__new__(Model)
        Tasks.__init__(other, self.path, self._weights, {**self.opened_with, **{k: v for k, v in (("isa", isa), ("threads", threads)) if v}}, self._memory_limit)
        return other

    def close(self) -> None:
        """Frees the session now; the weights are freed with the last model that shares them."""
        if self._weights.handle:
            with self._session.working():
                self._session.close()
                self._session.weights = self._weights = abi.Owned(library.model_free)

    def _check_not_closed(self) -> None:
        """Raises ArgumentError after close()."""
        check_not_closed(self._weights)

    def __exit__(self, *reason: Any) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"deberta_c.Model({', '.join([repr(self.path), *(f'{name}={value!r}' for name, value in self.opened_with.items())])})"

    # ------------------------------------------------------------------------------------------------------- what it is

    @property
    def info(self) -> Dict[str, Any]:
        """Returns deberta_model_info by name: shape, memory and heads; tasks: names of the heads that the checkpoint holds."""
        with self._session.working():
            info = library.model_describe(self._weights.handle).contents
            return {**{name: getattr(info, name) for name, _ in info._fields_ if name != "tasks_present"}, "name": info.name.decode(),
                    "precision": abi.PRECISIONS[info.precision], "reference": abi.REFERENCES[info.reference],
                    "problem": abi.PROBLEMS[info.problem], "tasks": [abi.TASKS[task] for task in self._widths()]}

    @property
    def labels(self) -> List[str]:
        """Returns the labels of the classifier, or of the token head; LABEL_k where config.json names none."""
        info = self.info
        count = info["sequence_labels"] or info["token_labels"]
        if count:
            self._check_labels(count)
        return [self._label(k) for k in range(count)]

    @property
    def notes(self) -> List[str]:
        """What the folder says and the library does not follow, or follows otherwise than one may expect, a sentence each: of the weights and
        config.json, and of the tokenizer once it has read a text. Each was a NoteWarning when it was opened."""
        with self._session.working():
            return abi.notes_of(library.model_note, self._weights.handle) + self._tokenizer.notes

    @property
    def isa(self) -> str:
        """The instruction set of the session."""
        with self._session.working():
            return str(library.isa_name(library.session_isa(self._session.some())).decode())

    @property
    def threads(self) -> int:
        """The number of threads of the session."""
        with self._session.working():
            return int(library.session_threads(self._session.some()))

    def digest(self) -> str:
        """Returns the SHA-256 of the checkpoint's files; empty for a synthetic model."""
        text = ctypes.create_string_buffer(65)
        with self._session.working():
            library.model_digest(self._weights.handle, text)
        return text.value.decode()

    # ----------------------------------------------------------------------------------------------------------- tokens

    def tokenize(self, texts: Any, max_tokens: Optional[int] = None) -> Any:
        """Tokens of a text, or of a pair (text, second text); of a list of these a list. max_tokens cuts, frame included. A Tokens holds
        ids, token_types and roles [n], character_spans and byte_spans [n, 2], begin and end. Raises ArgumentError for other types,
        FileError where the folder holds no tokenizer."""
        items, single = as_texts(texts)
        assert items is not None
        with self._session.working():
            found = [Tokens(cut.values("ids"), cut.values("token_types"), [cut.name(k) or "" for k in range(cut.count)],
                            cut.values("character_spans", "<i8", 2), cut.values("byte_spans", "<i8", 2), cut.values("roles", "|u1"))
                     for cut in self._tokenizer.cut(items, max_tokens)]
        return found[0] if single else found

    def detokenize(self, ids: Any) -> str:
        """The text that ids stand for, without [CLS], [SEP] and [PAD]. ids: integers [n]. Raises ArgumentError for an id outside the vocabulary."""
        with self._session.working():
            return self._tokenizer.spell(integers(ids, "ids"))

    # ----------------------------------------------------------------------------------------------------------- encode

    def encode(self, inputs: Any, *, token_types: Any = None, mask: Any = None, position_ids: Any = None, hidden: Optional[str] = "last",
               attention: Any = None, components: Any = None, logits: Any = False, at: Any = None, edit: Any = None, row_bias: Any = None,
               max_tokens: Optional[int] = None, batch_tokens: int = 2048) -> Dict[str, Any]:
        """Hidden states, attention and logits of texts or ids, named as the files of `deberta encode`.

        inputs: a text, a pair (text, second text), a list of these; or ids: one row of integers, a list of rows, a 2-D array, or a
        mapping with input_ids (attention_mask, token_type_ids, position_ids) as tokenizers return it; other names than theirs are
        refused. token_types, mask, position_ids: rows like ids; a 0 of the mask marks a hole. Before the first and
        behind the last 1 it marks padding, which is left out: a text begins with its first 1. Rows and columns of holes and padding are zero. hidden: "last", "all" or None. attention: "all", a layer or several. components: "all" or pairs (layer, head).
        logits: True, of every head that the checkpoint holds, or names of heads ("mlm_emd"). Of all tokens, which takes 4 V bytes a token
        with the vocabulary, or of those that `at` has, a row of token numbers for each text.
        edit: {layer: function}, activation patching. A function takes H[layer] of a text, float32 [n, h], 0 being the embeddings, and
        returns what takes its place, of the same shape; it is called for each text in turn. All that follows reads that: the layers after
        it, what is returned as hidden states, the heads. row_bias: [L, A, 2K], added to c2p by row of the relative table (position_row).

        Gives float32 arrays, B texts of n tokens: "hidden_states.L" [B, n, h]; "attn.L.probs" [B, A, n, n]; "attn.L.c2c", ".c2p",
        ".p2c", ".logits" [B, heads, n, n] of the chosen heads, in the order asked for; "logits.sequence" [B, labels], "logits.rtd" [B, n],
        "logits.mlm", ".mlm_emd", ".token", ".qa" [B, n, labels]. Where lengths differ, a list of B arrays without the first axis.
        Results are the same bits for any batch_tokens, the number of tokens that are encoded together.
        Raises ArgumentError for inputs and options that it cannot take and for a closed model, UnsupportedError for a head or a term that
        the model lacks, OutOfMemoryError beyond memory_limit.
        """
        one_of("hidden", hidden, "last", "all", None)
        most_tokens = whole_number("batch_tokens", batch_tokens, least=1)
        with self._session.working():
            texts, _ = as_texts(inputs, or_ids=True)
            if any(one is not None for one in ((max_tokens,) if texts is None else (token_types, mask, position_ids))):
                raise ArgumentError("max_tokens is for texts; token_types, mask and position_ids are for ids")
            if texts is None:
                batch = batch_of_ids(inputs, token_types, mask, position_ids)
                if not self._memory_limit:
                    batch.check_lengths("row", "Model(..., memory_limit=)")
                batch.check_padding(library.model_describe(self._weights.handle).contents.padding_id)
            else:
                batch = batch_of_cuts(self._tokenizer.cut(texts, max_tokens), self._is_limited(max_tokens))
            heads = self._heads(logits, at)
            changes = None if edit is None and row_bias is None else Changes(edit, row_bias, library.model_describe(self._weights.handle).contents)
            if batch.position_ids is not None and not library.model_describe(self._weights.handle).contents.position_biased_input and (
                    abi.TASK_EMD not in heads):
                abi.note("position_ids: the encoder of this model adds no positions (position_biased_input is false), so that they change nothing")
            frame = None if batch.mask is None or batch.mask.all() else Frame(batch, batch.mask)
            if frame:
                batch, at = frame.inside(batch), None if at is None else frame.asked(at)
                frame.check_heads(abi.TASK_SEQUENCE in heads)
            if hidden == "last" and len(batch.starts) == 2 and attention is None and components is None and not heads and at is None and not changes:
                rows = self._session.encode(batch)  # the usual call, without the steps that other calls need
                found = {f"hidden_states.{self._session.layers}": rows.copy()[None]}
                return frame.put_back(found, False) if frame else found
            last = self._session.layers
            layers = range(last + 1) if hidden == "all" else [last] if hidden else []
            asked = Asked(batch, at)
            found = self._encode(batch, layers, self._wanted(attention, components), heads, asked, changes, most_tokens)
            return frame.put_back(found, at is not None) if frame else found

    def _heads(self, logits: Any, at: Any) -> Dict[int, int]:
        """Returns the number of logits of each head that is asked."""
        if isinstance(logits, (bool, np.bool_)) or logits is None:
            found = self._widths() if logits else {}
        else:
            if not isinstance(logits, (str, np.ndarray, collections.abc.Iterable)) or isinstance(logits, bytes):
                raise ArgumentError(f"logits: expected True, the name of a head or several of these ({', '.join(abi.TASKS)}), found {logits!r:.60}")
            names = [logits] if isinstance(logits, str) else list(logits)
            tasks = [one_of("logits", name, *abi.TASKS) for name in names]
            for task in tasks:
                self._check_head(task)
            found = {task: width for task, width in self._widths().items() if task in tasks}
        if at is not None and not set(found) - {abi.TASK_SEQUENCE}:
            raise ArgumentError("at: says of which tokens logits are wanted, but no head of tokens is asked")
        return found

    def _wanted(self, attention: Any, components: Any) -> Dict[Tuple[int, int], List[int]]:
        """Returns the heads to capture for each layer and component."""
        info = library.model_describe(self._weights.handle).contents
        terms = [k for k, there in enumerate((True, info.has_c2p, info.has_p2c, True)) if there]  # in the order of abi.COMPONENTS
        wanted: Dict[Tuple[int, int], List[int]] = {}
        for layer, head in _chosen("components", "pairs (layer, head)", components, info.layers, info.heads):
            for component in terms:
                wanted.setdefault((layer, component), []).append(head)
        for layer, in _chosen("attention", "numbers of layers", attention, info.layers):
            wanted[layer, abi.COMPONENTS.index("probs")] = list(range(info.heads))
        return wanted

    def _encode(self, batch: Batch, layers: Iterable[int], wanted: Matrices, widths: Dict[int, int], asked: "Asked", changes: Optional[Changes],
                most_tokens: int) -> Dict[str, Any]:
        session, texts = self._session, len(batch.starts) - 1
        capture = Capture(batch, session, layers, wanted)
        heads = {task: np.empty((texts if task == abi.TASK_SEQUENCE else asked.starts[-1], width), np.float32) for task, width in widths.items()}
        for first, begin, part in session.parts(batch, most_tokens, abi.KEEP_DECODER_INPUT if abi.TASK_EMD in heads else 0, capture, changes):
            end = first + len(part.starts) - 1
            for task, rows in heads.items():
                if task == abi.TASK_SEQUENCE:
                    session.logits(task, np.arange(end - first), rows[first:end])
                elif asked.starts[end] > asked.starts[first]:
                    here = slice(asked.starts[first], asked.starts[end])
                    session.logits(task, asked.places[here] - begin, rows[here])
        found = {f"attn.{layer}.{abi.COMPONENTS[component]}": matrices for (layer, component), matrices in capture.attention.items()}
        if abi.TASK_SEQUENCE in heads:
            found["logits.sequence"] = heads.pop(abi.TASK_SEQUENCE)
        everywhere = Asked(batch, None)
        of_tokens = {f"hidden_states.{layer}": (rows, everywhere) for layer, rows in capture.hidden.items()}
        of_tokens.update({f"logits.{abi.TASKS[task]}": (rows[:, 0] if task == abi.TASK_RTD else rows, asked) for task, rows in heads.items()})
        found.update((name, places.by_text(rows)) for name, (rows, places) in of_tokens.items())
        return found

    def position_row(self, distance: int) -> int:
        """The row, 0 to 2K - 1, of the relative table that c2p and p2c read for a query minus key distance, in tokens."""
        with self._session.working():
            info = library.model_describe(self._weights.handle).contents
            return int(library.position_row(info, abi.REFERENCES.index(self.opened_with.get("reference", "auto")), whole_number(
                "distance", distance, least=-abi.MOST_DISTANCE, most=abi.MOST_DISTANCE)))

    def positions(self, layer: int) -> Tuple[Optional[np.ndarray], Optional[np.ndarray]]:
        """The relative table as a layer's heads read it, [A, 2K, d]: keys for c2p, queries for p2c (divided by the common scale). None
        where the model has no such term."""
        with self._session.working():
            info = library.model_describe(self._weights.handle).contents
            shape = info.heads, info.relative_rows, info.head_size
            keys, queries = (np.empty(shape, np.float32) if there else None for there in (info.has_c2p, info.has_p2c))
            library.model_read_positions(self._weights.handle, whole_number("layer", layer, info.layers - 1), address(keys), address(queries))
            return keys, queries

    def ablate(self, terms: str) -> "Ablation":
        """The model without terms, from this call on: "c2p@3:5", "p2c=mean@all,c2c@0", as --ablate of the program does. It is whole again
        at the end of a block, `with m.ablate("c2p@3:5"):`, or after remove() of what is returned. Raises ArgumentError for what is no
        list of terms, FormatError and others of the library for terms that the model lacks."""
        return Ablation(self, terms)

    def _ablate(self, active: List[Terms]) -> None:
        """Makes the session anew, without the terms of all of these; where that fails it is as before."""
        with self._session.working():
            before = self._session.ablations
            self._session.close()
            try:
                self._session.ablations = [one for terms in active for one in terms.parsed]
                self._session.prepare()
            except BaseException:
                self._session.ablations = before
                raise
            self._active, self.ablated = active, ",".join(terms.text for terms in active)

    def trace(self, text: Any = None, pair: Optional[str] = None, **options: Any) -> Dict[str, Any]:
        """Which states, heads and terms bring an answer back into a corrupted text: `deberta attention trace` with its options (corrupted=,
        mask_word=, swap= or noise=; answer="were,was", class_=), as arrays. attention_figure(m, text, kind="trace", ...) draws it.

        Gives docs/json.md, deberta-trace/1, with measures and shares as float64 arrays: states [L + 1, tokens], heads, c2c, c2p and p2c
        [L, A]; shares have no unit. The member measure says what measures, clean and corrupted are: "probability" of one answer
        (answer="were"), from 0 to 1, or "logit difference" of two (answer="were,was"). Raises ArgumentError for a closed model and for options
        that the program does not take, UnsupportedError for a model opened with layers=."""
        return _program.trace(self, text, pair, **options)

    def receptive_field(self, **options: Any) -> Dict[str, Any]:
        """What `deberta receptive-field --json` says of this model, distances in tokens: docs/receptive-field.md has the members. options: as
        of the program (tokens=512, depth=2). influence and behaviour are without the terms that ablate() takes out. Raises ArgumentError for a
        closed model and for options that the program does not take, UnsupportedError for a model opened with layers=, and with precision=
        where something is measured."""
        folder, opened = _program._opened_whole(self, "fields")
        given = _program._given(options)
        measured = any(name.startswith(("influence", "behaviour")) for name in given)
        if measured and opened.get("precision", "float32") != "float32":
            raise UnsupportedError("influence and behaviour are measured in float32: open the model without precision=")
        if measured and self.ablated:
            given["ablate"] = _program._without(self.ablated, given.get("ablate"))
        return _program.json_of("receptive-field", folder, **{"reference": opened.get("reference", "auto"), **given})

    def attribute(self, text: Any, pair: Optional[str] = None, **options: Any) -> "_attribution.Attribution":
        """Which words, distances and positions an answer comes from (docs/attribution.md). text: one text, or a pair as a tuple. options: as
        of `deberta attribute` (class_="Moby-Dick", answer="store,house", token="captain", of="log-probability", baseline="pad", steps=64,
        parts=["words", "distances"]). Values are logits, or natural logarithms with of="log-probability". Raises ArgumentError for a closed
        model and for options that the program does not take, UnsupportedError after ablate and for a model opened with layers=."""
        return _attribution.attribute(self, text, pair, **options)


class Ablation(contextlib.AbstractContextManager["Model"]):
    """Terms that a model is without, until remove() or the end of a `with` block, which may be entered again."""

    def __init__(self, model: Model, terms: str) -> None:
        if not isinstance(terms, str):
            raise ArgumentError(f'terms: expected a text such as "c2p@3:5", found {terms!r:.60}')
        text = "".join(terms.split())
        self._terms, self._model, self._within = Terms(text, parse_ablations(text)), model, False
        self._apply()

    def _others(self) -> List[Terms]:
        return [one for one in self._model._active if one is not self._terms]

    def _apply(self) -> None:
        self._model._ablate([*self._others(), self._terms])

    def _holds(self) -> bool:
        return len(self._others()) < len(self._model._active)

    def remove(self) -> None:
        """Gives the terms back to the model. Those that were removed already stay so, as after close()."""
        if self._holds() and self._model._weights.handle:
            self._model._ablate(self._others())

    def __enter__(self) -> Model:
        if self._within:
            raise ArgumentError(f"the block of ablate({self._terms.text!r}) is entered already: make another with m.ablate(...)")
        if not self._holds():
            self._apply()
        self._within = True
        return self._model

    def __exit__(self, *reason: Any) -> None:
        self._within = False
        self.remove()

    def __repr__(self) -> str:
        if not self._holds():
            return f"<{self._terms.text} was removed: the model is as it was>"
        return f"<the model is without {self._model.ablated}, until remove() or the end of a with block>"


class Asked:
    """Chosen tokens of each text, in a batch of texts."""

    def __init__(self, batch: Batch, rows: Any) -> None:
        lengths = np.diff(batch.starts)
        if rows is None:
            self.places, self.starts = np.arange(len(batch.ids), dtype=SIZE), batch.starts
            return
        found = token_numbers(rows, len(lengths))
        for k, (row, length) in enumerate(zip(found, lengths)):
            if row.size and not 0 <= row.min() <= row.max() < length:
                raise ArgumentError(f"at: expected numbers of tokens below {length} for text {k}, found {row.tolist()[:8]}")
        self.places = np.concatenate([batch.starts[k] + row for k, row in enumerate(found)])
        self.starts = np.append(0, np.cumsum([len(row) for row in found])).astype(SIZE)

    def by_text(self, rows: np.ndarray) -> Any:
        """Returns an array [texts, tokens, ...] if all texts have equally many tokens, else a list."""
        counts = np.diff(self.starts)
        if (counts == counts[0]).all():
            return rows.reshape(len(counts), counts[0], *rows.shape[1:])
        return np.split(rows, self.starts[1:-1])


def _chosen(what: str, expected: str, given: Any, *counts: int) -> List[Tuple[int, ...]]:
    """Returns layers, or layers and heads: all in ascending order, none, or the given ones as they are given."""
    if given is None or (isinstance(given, str) and given == "all"):
        return list(np.ndindex(*counts)) if given else []
    try:
        several = [given] if len(counts) == 1 and isinstance(given, (int, np.integer)) and not isinstance(given, bool) else given
        if any(isinstance(one, (bool, np.bool_)) for one in np.array(list(several), object).ravel()):  # NumPy takes True for 1
            raise TypeError("a truth value")
        rows = np.transpose(list(several)) if len(several) else np.empty((len(counts), 0), int)
        places = np.ravel_multi_index(tuple(np.atleast_2d(rows)), counts)
    except (TypeError, ValueError):
        raise ArgumentError(f"{what}: expected 'all' or {expected} below {' and '.join(map(str, counts))}, found {given!r}") from None
    return [tuple(map(int, np.unravel_index(place, counts))) for place in places]
