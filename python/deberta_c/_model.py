"""Models: tokens, hidden states and attention of texts and ids. SPDX-License-Identifier: MIT"""
from __future__ import annotations

import contextlib
import ctypes
import os
from typing import Any, Dict, Iterable, Iterator, List, NamedTuple, Optional, Tuple

import numpy as np

from . import _abi as abi
from ._abi import ArgumentError, library, one_of, terminated, whole_number
from . import _program
from ._inputs import Batch, Text, as_texts, batch_of_cuts, batch_of_ids, integers
from ._session import Capture, Matrices, Session, parse_ablations
from ._tasks import Tasks


class Tokens(NamedTuple):
    """[CLS] text [SEP], or [CLS] text [SEP] pair [SEP], n tokens."""

    ids: np.ndarray  # int32 [n]
    token_types: np.ndarray  # int32 [n]: 1 for the pair and its [SEP], else 0
    tokens: List[str]  # as the vocabulary writes them
    characters: np.ndarray  # [n, 2] begin and end in its segment, in characters; 0, 0 of [CLS] and [SEP]
    bytes: np.ndarray  # [n, 2] the same in bytes of UTF-8
    roles: np.ndarray  # uint8 [n]: 0 of the text, 1 a special token that the text spells, 2 [CLS] and [SEP]


class Model(Tasks, contextlib.AbstractContextManager["Model"]):
    """A model folder, or "synthetic:v3-base" and the like, opened for one caller.

    path: folder with config.json, weights and tokenizer. isa: a tier that `deberta info` lists; None the best here. threads: None
    OMP_NUM_THREADS, else the physical cores. reference: "microsoft" or "hf", how distances beyond the table are clamped. layers: only
    the first ones. memory_limit: bytes that the weights may take. precision: "float32", or "int16" and "int8" for linear layers of
    integers (docs/precision.md).

    path, precision, opened_with: as it was opened; opened_with has the options that are not what they are by default, without
    memory_limit. ablated: what it is without, in a block of ablate.

    One call at a time; `share()` makes a model of the same weights for another thread. Errors are `deberta_c.Error`, one sentence each.
    """

    def __init__(self, path: "str | os.PathLike[str]", isa: Optional[str] = None, threads: Optional[int] = None, *,
                 reference: str = "microsoft", layers: Optional[int] = None, memory_limit: Optional[int] = None,
                 precision: str = "float32") -> None:
        options = abi.sized(abi.ModelOptions, threads=whole_number("threads", threads, abi.MOST_THREADS), layers=whole_number("layers", layers),
                            reference=one_of("reference", reference, *abi.REFERENCES), memory_limit_bytes=whole_number("memory_limit", memory_limit),
                            precision=one_of("precision", precision, *abi.PRECISIONS))
        weights, folder = abi.Owned(library.model_free), terminated("path", path)
        library.model_open(weights.handle, folder, options)
        super().__init__(os.fsdecode(folder), weights, {"isa": isa, "threads": threads, "reference": reference, "layers": layers, "precision": precision})

    def share(self, isa: Optional[str] = None, threads: Optional[int] = None) -> "Model":
        """Another model of the same weights, with threads and memory of its own, for another thread of the program."""
        self._session.check_open()
        other = object.__new__(Model)
        Tasks.__init__(other, self.path, self._weights, {**self.opened_with, **{k: v for k, v in (("isa", isa), ("threads", threads)) if v}})
        return other

    def close(self) -> None:
        """Frees the session now; the weights go with the last model that shares them."""
        if self._weights.handle:
            with self._session.working():
                self._session.close()
                self._session.weights = self._weights = abi.Owned(library.model_free)

    def __exit__(self, *reason: Any) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"deberta_c.Model({', '.join([repr(self.path), *(f'{name}={value!r}' for name, value in self.opened_with.items())])})"

    # ------------------------------------------------------------------------------------------------------- what it is

    @property
    def info(self) -> Dict[str, Any]:
        """Shape, memory and heads: deberta_model_info by name; tasks: names of the heads that the checkpoint holds."""
        with self._session.working():
            info = library.model_describe(self._weights.handle).contents
            return {**{name: getattr(info, name) for name, _ in info._fields_ if name != "tasks_present"}, "name": info.name.decode(),
                    "precision": abi.PRECISIONS[info.precision], "tasks": [abi.TASKS[task] for task in self._widths()]}

    @property
    def labels(self) -> List[str]:
        """Of the classifier, or of the token head; LABEL_k where config.json names none."""
        info = self.info
        return [self._label(k) for k in range(info["sequence_labels"] or info["token_labels"])]

    @property
    def isa(self) -> str:
        """The instruction set that encodes."""
        with self._session.working():
            return str(library.isa_name(library.session_isa(self._session.prepare())).decode())

    @property
    def threads(self) -> int:
        """Threads that encode."""
        with self._session.working():
            return int(library.session_threads(self._session.prepare()))

    def digest(self) -> str:
        """SHA-256 of the checkpoint's files; empty for a made-up model."""
        text = ctypes.create_string_buffer(65)
        with self._session.working():
            library.model_digest(self._weights.handle, text)
        return text.value.decode()

    # ----------------------------------------------------------------------------------------------------------- tokens

    def tokenize(self, text: Text, max_tokens: Optional[int] = None) -> Tokens:
        """Tokens of a text, or of a pair (text, second text); max_tokens cuts, frame included."""
        with self._session.working():
            (cut,) = self._tokenizer.cut([text], max_tokens)
            return Tokens(cut.values("ids"), cut.values("token_types"), [cut.name(k) or "" for k in range(cut.count)],
                          cut.values("character_spans", "<i8", 2), cut.values("byte_spans", "<i8", 2), cut.values("roles", "|u1"))

    def detokenize(self, ids: Any) -> str:
        """The text that ids stand for, without [CLS], [SEP] and [PAD]."""
        with self._session.working():
            return self._tokenizer.spell(integers(ids, "ids"))

    # ----------------------------------------------------------------------------------------------------------- encode

    def encode(self, inputs: Any, *, token_types: Any = None, mask: Any = None, hidden: Optional[str] = "last", attention: Any = None,
               components: Any = None, logits: bool = False, max_tokens: Optional[int] = None, batch_tokens: int = 2048) -> Dict[str, Any]:
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
        one_of("hidden", hidden, "last", "all", None)
        most_tokens = whole_number("batch_tokens", batch_tokens)
        with self._session.working():
            texts, _ = as_texts(inputs)
            if (max_tokens if texts is None else token_types if mask is None else mask) is not None:
                raise ArgumentError("max_tokens is for texts; token_types and mask are for ids")
            batch = batch_of_ids(inputs, token_types, mask) if texts is None else batch_of_cuts(self._tokenizer.cut(texts, max_tokens))
            if hidden == "last" and len(batch.starts) == 2 and attention is None and components is None and not logits:
                rows = self._session.encode(batch)  # the usual call, without what others need
                return {f"hidden_states.{self._session.layers}": rows.copy()[None]}
            last = self._session.layers
            layers = range(last + 1) if hidden == "all" else [last] if hidden else []
            return self._encode(batch, layers, self._wanted(attention, components), logits, most_tokens)

    def _wanted(self, attention: Any, components: Any) -> Dict[Tuple[int, int], List[int]]:
        """The heads that are captured of each layer and component."""
        info = library.model_describe(self._weights.handle).contents
        terms = [k for k, there in enumerate((True, info.has_c2p, info.has_p2c, True)) if there]  # in the order of abi.COMPONENTS
        wanted: Dict[Tuple[int, int], List[int]] = {}
        for layer, head in _chosen("components", "pairs (layer, head)", components, info.layers, info.heads):
            for component in terms:
                wanted.setdefault((layer, component), []).append(head)
        for layer, in _chosen("attention", "numbers of layers", attention, info.layers):
            wanted[layer, abi.COMPONENTS.index("probs")] = list(range(info.heads))
        return wanted

    def _encode(self, batch: Batch, layers: Iterable[int], wanted: Matrices, logits: bool, most_tokens: int) -> Dict[str, Any]:
        session, texts = self._session, len(batch.starts) - 1
        capture = Capture(batch, session, layers, wanted)
        heads = {task: np.empty((texts if task == abi.TASK_SEQUENCE else len(batch.ids), width), np.float32)
                 for task, width in (self._widths() if logits else {}).items()}
        for first, begin, part in session.parts(batch, most_tokens, abi.KEEP_DECODER_INPUT if abi.TASK_EMD in heads else 0, capture):
            for task, rows in heads.items():
                start, count = (first, len(part.starts) - 1) if task == abi.TASK_SEQUENCE else (begin, len(part.ids))
                session.logits(task, np.arange(count), rows[start:start + count])
        found = {f"attn.{layer}.{abi.COMPONENTS[component]}": matrices for (layer, component), matrices in capture.attention.items()}
        if abi.TASK_SEQUENCE in heads:
            found["logits.sequence"] = heads.pop(abi.TASK_SEQUENCE)
        of_tokens = {f"hidden_states.{layer}": rows for layer, rows in capture.hidden.items()}
        of_tokens.update({f"logits.{abi.TASKS[task]}": rows[:, 0] if task == abi.TASK_RTD else rows for task, rows in heads.items()})
        for name, rows in of_tokens.items():
            found[name] = rows.reshape(texts, -1, *rows.shape[1:]) if capture.equal else np.split(rows, batch.starts[1:-1])
        return found

    @contextlib.contextmanager
    def ablate(self, terms: str) -> Iterator["Model"]:
        """Within the block, takes terms out: "c2p@3:5", "p2c=mean@all,c2c@0", as --ablate of the program does."""
        terms = "".join(str(terms).split())
        added, before = parse_ablations(terms), (self._session.ablations, self.ablated)
        try:
            self._ablate(before[0] + added, ",".join(filter(None, (before[1], terms))))
            yield self
        finally:
            self._ablate(*before)

    def _ablate(self, ablations: List[Any], terms: str) -> None:
        with self._session.working():
            self._session.close()
            self._session.ablations, self.ablated = ablations, terms
            self._session.prepare()

    def receptive_field(self, **options: Any) -> Dict[str, Any]:
        """What `deberta receptive-field --json` says of this model: docs/receptive-field.md has the members."""
        return _program.json_of("receptive-field", self.path, **options)


def _chosen(what: str, expected: str, given: Any, *counts: int) -> List[Tuple[int, ...]]:
    """Layers, or layers and heads, in ascending order: all, none, or those that are given."""
    if given is None or (isinstance(given, str) and given == "all"):
        return list(np.ndindex(*counts)) if given else []
    try:
        rows = np.transpose(list(given)) if len(given) else np.empty((len(counts), 0), int)
        places = np.unique(np.ravel_multi_index(tuple(np.atleast_2d(rows)), counts))
    except (TypeError, ValueError):
        raise ArgumentError(f"{what}: expected 'all' or {expected} below {' and '.join(map(str, counts))}, found {given!r}") from None
    return [tuple(map(int, np.unravel_index(place, counts))) for place in places]
