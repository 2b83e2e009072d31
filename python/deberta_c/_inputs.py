"""Turns texts, pairs and ids into batches of the library. SPDX-License-Identifier: MIT"""
from __future__ import annotations

import collections.abc
import ctypes
import os
import sys
from functools import cached_property
from itertools import accumulate
from typing import Any, Dict, Iterator, List, Mapping, NamedTuple, Optional, Sequence, Tuple, Union

import numpy as np

from . import _abi as abi
from ._abi import ArgumentError, library, size_or_default

Text = Union[str, Tuple[str, str]]
# SIZE is signed and as wide as size_t, which no count here fills: NumPy need not mix it with unsigned numbers.
INT32, BYTE, SIZE = np.dtype(np.int32), np.dtype(np.uint8), np.dtype(np.intp)
LONGEST_UNASKED = 32768  # longest text in tokens unless the user allows more, as in the program: a longer one is usually a mistake


def integers(values: Any, what: str, kind: np.dtype = INT32) -> np.ndarray:
    """Returns one row of integers, without a copy if it is contiguous and of that type. Only a mask (BYTE) may be of booleans."""
    try:
        row = np.asarray(values)
    except ValueError:  # ragged rows
        row = np.empty((0, 0), object)
    if isinstance(values, np.ndarray) and values.dtype == object and row.ndim == 1:
        raise ArgumentError(f"{what}: expected integers, found an array of dtype object: make it one of int32")
    if row.ndim != 1 or (row.size and row.dtype.kind not in ("iub" if kind is BYTE else "iu")):
        raise ArgumentError(f"{what}: expected one row of integers for each text, found {row.ndim} dimensions of type {row.dtype}")
    converted = np.ascontiguousarray(row, kind)
    if converted is not row and not np.array_equal(converted, row):
        at = int(np.flatnonzero(converted != row)[0])
        raise ArgumentError(f"{what}: {row[at]} at token {at} does not fit into {kind}")
    return converted


def token_numbers(rows: Any, texts: int) -> List[np.ndarray]:
    """Returns the rows of `at`, one for each text."""
    try:
        count = len(rows)
    except TypeError:  # one number, or what can be read once only
        raise ArgumentError(f"at: expected a row of token numbers for each of {texts} texts, such as [[0, 3]] for one, found {rows!r:.60}") from None
    if count != texts:
        raise ArgumentError(f"at: {count} rows of token numbers, expected one for each of {texts} texts")
    return [integers(row, "at", SIZE) for row in rows]


def address(array: Optional[np.ndarray]) -> Optional[int]:
    return None if array is None else int(array.__array_interface__["data"][0])


_MEMORY: Any = ctypes.c_char * sys.maxsize  # maps memory at an address; only as much of it is read as the array's shape says


def view(place: int, shape: Tuple[int, ...], kind: str = "<f4", stride: int = 0) -> np.ndarray:
    """Returns the library's memory as an array, without a copy; valid as long as the library says. stride: floats from row to row."""
    return np.ndarray(shape, kind, _MEMORY.from_address(place), 0, (4 * stride, 4) if stride else None)


class Batch(NamedTuple):
    """Ragged rows one after the other; starts: [rows + 1]."""

    ids: np.ndarray
    starts: np.ndarray
    token_types: Optional[np.ndarray] = None
    mask: Optional[np.ndarray] = None
    position_ids: Optional[np.ndarray] = None

    @classmethod
    def of_rows(cls, rows: Sequence[np.ndarray], **others: Optional[np.ndarray]) -> Batch:
        return cls(_join(rows), np.array([0, *accumulate(map(len, rows))], SIZE), **others)

    def parts(self, most_tokens: int) -> Iterator[Tuple[int, Batch]]:
        """Yields rows that are encoded together, and the index of the first of them."""
        first, last = 0, len(self.starts) - 1
        while first < max(last, 1):  # also for an empty batch, which the library then refuses
            fitting = int(np.searchsorted(self.starts, self.starts[first] + most_tokens, "right")) - 1
            end = max(first + 1, fitting)
            tokens = slice(self.starts[first], self.starts[min(end, last)])
            cut = [None if rows is None else rows[tokens] for rows in (self.token_types, self.mask, self.position_ids)]
            yield first, Batch(self.ids[tokens], self.starts[first:end + 1] - self.starts[first], *cut)
            first = end

    def check_lengths(self, what: str, way: str) -> None:
        """Refuses texts that are too long without explicit permission. way: how to allow them."""
        if len(self.ids) > LONGEST_UNASKED and (lengths := np.diff(self.starts)).max() > LONGEST_UNASKED:
            row = int(lengths.argmax())
            raise ArgumentError(f"{what} {row} has {lengths[row]} tokens, expected at most {LONGEST_UNASKED}, or more with {way}")

    def check_padding(self, pad: int) -> None:
        """Warns, as transformers does, if a row begins or ends in padding and there is no mask."""
        if self.mask is not None or not len(self.ids):
            return
        if len(self.starts) == 2:  # the usual call, which must not cost more than a microsecond here
            rows = [0] if len(self.ids) > 1 and (self.ids[0] == pad or self.ids[-1] == pad) else []
        else:
            begins, ends = self.starts[:-1], self.starts[1:] - 1
            begins = np.minimum(begins, len(self.ids) - 1)  # an empty row at the end, which the library refuses
            rows = np.flatnonzero(((self.ids[begins] == pad) | (self.ids[ends] == pad)) & (ends > begins)).tolist()
        if rows:
            abi.note(f"row {rows[0]} begins or ends with id {pad}, which is padding, and there is no mask: padding is read as text; give mask= (attention_mask)")


class Frame:
    """Which of the tokens that were given are computed: of each row those from its first to its last one that the mask keeps. What is
    before and behind them is padding, what is between them a hole. Results have their places, and zero elsewhere."""

    def __init__(self, batch: Batch, mask: np.ndarray) -> None:
        self.starts, self.mask = batch.starts, mask.astype(bool)
        self.rows = [self.mask[begin:end] for begin, end in zip(self.starts, self.starts[1:])]
        self.texts = [k for k, row in enumerate(self.rows) if row.any()]
        self.begin = [int(row.argmax()) if row.any() else 0 for row in self.rows]
        self.end = [len(row) - int(row[::-1].argmax()) if row.any() else 0 for row in self.rows]

    def inside(self, batch: Batch) -> Batch:
        """Returns the batch without its padding. Absolute positions still count columns."""
        if not self.texts:
            raise ArgumentError("the mask keeps no token of any text")
        late = [k for k in self.texts if self.begin[k]]
        positions = batch.position_ids
        if late:
            zeros = self.begin[late[0]]
            abi.note(f"the mask of text {late[0]} begins with {zeros} zero{'s' * (zeros > 1)}: what stands there is padding and is left out, so its first token "
                     "is the first one that the mask keeps")
            if positions is None:
                positions = np.concatenate([np.arange(len(row), dtype=INT32) for row in self.rows])
        parts = [slice(self.starts[k] + self.begin[k], self.starts[k] + self.end[k]) for k in self.texts]
        cut = [None if values is None else _join([values[part] for part in parts]) for values in (batch.token_types, batch.mask, positions)]
        return Batch.of_rows([batch.ids[part] for part in parts], token_types=cut[0], mask=cut[1], position_ids=cut[2])

    def asked(self, rows: Any) -> List[np.ndarray]:
        """Converts token numbers of the given rows into those of the computed rows. Heads have no answer for a hole."""
        found = token_numbers(rows, len(self.rows))
        for k, (places, kept) in enumerate(zip(found, self.rows)):
            if places.size and not 0 <= places.min() <= places.max() < len(kept):
                raise ArgumentError(f"at: expected numbers of tokens below {len(kept)} for text {k}, found {places.tolist()[:8]}")
            if not kept[places].all():
                raise ArgumentError(f"at: token {places[~kept[places]][0]} of text {k} is masked, so that no head has anything to say of it")
        return [found[k] - self.begin[k] for k in self.texts]

    def check_heads(self, of_texts: bool) -> None:
        """Refuses a text without any token if a head reads its first one, and otherwise notes it. of_texts: a head that reads the first token of each text is asked."""
        lost = next((k for k in range(len(self.rows)) if k not in self.texts), None) if len(self.texts) < len(self.rows) else None
        if lost is None:
            return
        if of_texts:
            raise ArgumentError(f"the mask keeps no token of text {lost}, so that a head has nothing to read of it")
        abi.note(f"the mask keeps no token of text {lost}: all of its results are 0")

    def put_back(self, found: Dict[str, Any], of_places: bool) -> Dict[str, Any]:
        """Returns results by name in the shapes of the given input. of_places: logits are of chosen tokens."""
        return {name: values if name == "logits.sequence" else self._placed(values, name.startswith("attn."), of_places and name.startswith("logits."))
                for name, values in found.items()}

    def _placed(self, values: Any, of_pairs: bool, of_places: bool) -> Any:
        by_text, placed = dict(zip(self.texts, values)), []
        first = values[0]
        for k, kept in enumerate(self.rows):
            n, part, inside = len(kept), slice(self.begin[k], self.end[k]), kept[self.begin[k]:self.end[k]]
            if of_places:
                placed.append(by_text.get(k, np.empty((0, *first.shape[1:]), np.float32)))
                continue
            placed.append(np.zeros((len(first), n, n) if of_pairs else (n, *first.shape[1:]), np.float32))
            if k in by_text and of_pairs:
                placed[-1][:, part, part] = np.where(inside[:, None] & inside, by_text[k], 0)
            elif k in by_text:
                placed[-1][part][inside] = by_text[k][inside]
        return np.stack(placed) if len({one.shape for one in placed}) == 1 else placed


def _join(rows: Sequence[np.ndarray]) -> np.ndarray:
    return rows[0] if len(rows) == 1 else np.concatenate(rows) if rows else np.empty(0, INT32)


# ------------------------------------------------------------------------------------------------------------------- ids


# What may stand beside ids and affects nothing: the names of core/io/record_keys.h, and beginnings of names of results.
BESIDE = {"special_tokens_mask", "offset_mapping", "overflow_to_sample_mapping", "overflowing_tokens", "num_truncated_tokens", "length", "word_ids",
          "label", "label_ids", "next_sentence_label", "labels", "start_positions", "end_positions", "sampled_ids", "delta"}
RESULTS = ("hidden_states.", "attn.", "logits", "emd.", "probs_rows", "zero_fill.", "ms_clamp.", "last_hidden_state")
ASIDE = {"token_type_ids": "token_types", "attention_mask": "mask", "position_ids": "position_ids"}  # name in a mapping, and as an argument
MEANT = (("mask", "attention_mask"), ("type", "token_type_ids"), ("segment", "token_type_ids"), ("pos", "position_ids"))


def _of_mapping(given: Mapping[str, Any], arguments: Dict[str, Any]) -> Tuple[Any, Dict[str, Any]]:
    """Returns the ids and other inputs of a mapping, with the arguments. An unknown name is refused, as it may be a mask."""
    if "input_ids" not in given:
        texts = "; texts are given as they are, pairs as tuples (text, second text)" if "text" in given else ""
        raise ArgumentError(f"expected a mapping with input_ids, found {list(given)[:8]}{texts}")
    for name in given:
        if name != "input_ids" and name not in ASIDE and name not in BESIDE and not str(name).startswith(RESULTS):
            meant = next((f"; is {one} meant?" for part, one in MEANT if part in str(name).lower()), "; leave it out if it is no input")
            raise ArgumentError(f"the mapping holds {name!r}, which is not known: expected input_ids, {', '.join(ASIDE)}{meant}")
    found = {argument: given.get(name) for name, argument in ASIDE.items()}
    for argument, value in arguments.items():
        if value is not None and found[argument] is not None:
            raise ArgumentError(f"{argument}: given beside a mapping that has it, too; expected it once")
    return given["input_ids"], {argument: arguments[argument] if value is None else value for argument, value in found.items()}


def batch_of_ids(ids: Any, token_types: Any = None, mask: Any = None, position_ids: Any = None) -> Batch:
    """Makes a batch. ids: one row, a list of rows, a 2-D array, or a mapping from a tokenizer; the others have the same rows."""
    if _is_row(ids) and token_types is None and mask is None and position_ids is None:
        return Batch.of_rows([integers(ids, "ids")])
    if isinstance(ids, collections.abc.Mapping):
        ids, found = _of_mapping(ids, {"token_types": token_types, "mask": mask, "position_ids": position_ids})
        token_types, mask, position_ids = found["token_types"], found["mask"], found["position_ids"]
    rows, single = _rows("ids", ids, "texts or ids")

    def beside(what: str, given: Any, kind: np.dtype) -> Optional[np.ndarray]:
        if given is None:
            return None
        found, _ = _rows(what, given, what, kind, single)
        counts, lengths = ([len(row) for row in one] for one in (found, rows))
        if counts != lengths:
            raise ArgumentError(f"{what}: {counts[:8]} values in a row, expected as many as ids: {lengths[:8]}")
        return _join(found)

    holes = beside("the mask", mask, BYTE)
    if holes is not None and holes.max(initial=0) > 1:
        raise ArgumentError(f"the mask: found {holes.max()}, expected 0 (a hole) or 1")
    return Batch.of_rows(rows, token_types=beside("token types", token_types, INT32), mask=holes, position_ids=beside("position ids", position_ids, INT32))


def _is_row(given: Any) -> bool:
    """Recognizes the usual call, a single row of ids, quickly."""
    return type(given) is np.ndarray and given.ndim == 1 and given.dtype.kind in "iu"


def _rows(what: str, given: Any, expected: str, kind: np.dtype = INT32, single: Optional[bool] = None) -> Tuple[List[np.ndarray], bool]:
    """Rows of integers, and whether it is one row by itself, which the ids decide for what stands beside them."""
    if not hasattr(given, "__len__") or getattr(given, "ndim", 1) == 0 or isinstance(given, (str, bytes, dict, collections.abc.Set)):
        raise ArgumentError(f"expected {expected}, found {type(given).__name__}")
    if single is None:
        single = given.ndim == 1 and not (given.dtype == object and len(given) and hasattr(given[0], "__len__")) if hasattr(given, "ndim") else len(given) > 0 and not hasattr(given[0], "__len__")
    return [integers(row, what, kind) for row in ([given] if single else given)], single


# ----------------------------------------------------------------------------------------------------------------- texts


def as_texts(inputs: Any, or_ids: bool = False) -> "Tuple[Optional[List[Text]], bool]":
    """The one reader of texts: a list of texts and pairs, and whether it was one by itself. A str is a text, a tuple of two a pair; a
    list is several of these, as are a 1-D array and a column of them. or_ids: None for what may be ids, which others look at."""
    if or_ids and _is_row(inputs):
        return None, False
    if isinstance(inputs, (str, tuple)) and not (or_ids and isinstance(inputs, tuple) and not _textual(inputs)):
        return [_text_or_pair(inputs)], True
    several = _several(inputs)
    if several is not None and (_textual(several) or not or_ids):
        if not several:
            raise ArgumentError("expected a text, a pair of texts or a list of these, found an empty list")
        return [_text_or_pair(one, f" at place {k}") for k, one in enumerate(several)], False
    if or_ids and not way_out(inputs):
        return None, False
    raise ArgumentError(f"expected a text, a pair of texts or a list of these{' or ids' * or_ids}, found {_kind(inputs)}{way_out(inputs)}")


def is_table(given: Any) -> bool:
    """Recognizes a DataFrame, a Table, a Dataset, which give their columns' names where they are iterated over, or dictionaries."""
    return not isinstance(given, collections.abc.Mapping) and (hasattr(given, "columns") or hasattr(given, "column_names"))


def way_out(given: Any) -> str:
    """Returns what makes texts of something that is refused; nothing for all else."""
    if isinstance(given, (bytes, bytearray)):
        return ": decode() makes a text of it"
    if is_table(given):
        return "; give a column of texts: frame['text']"
    return "; give a list: list(...)" if isinstance(given, (collections.abc.Iterator, collections.abc.MappingView)) else ""


def one_text(what: str, given: Any) -> str:
    """Checks that a value is one text."""
    if not isinstance(given, str):
        raise ArgumentError(f"{what}: expected a text, found {_kind(given)}")
    return str(given)


def _textual(several: Sequence[Any]) -> bool:
    """Decides whether these are texts rather than ids: by the first element, or by any that only a list of texts has."""
    first = next(iter(several), None)
    if first is None and len(several) or any(isinstance(one, (str, bytes)) for one in several):
        return True
    return isinstance(first, (str, bytes, tuple)) or (isinstance(first, list) and len(first) > 0 and isinstance(first[0], (str, bytes)))


def _several(inputs: Any) -> Optional[List[Any]]:
    """Returns elements of a list, of a 1-D array of texts, of a column of a table; None for anything else."""
    if isinstance(inputs, list):
        return inputs
    if isinstance(inputs, (str, bytes, bytearray, tuple, range)):
        return None
    kind = getattr(getattr(inputs, "dtype", None), "kind", None)
    if kind in ("O", "U", "S", "T") and getattr(inputs, "ndim", 1) in (1, 2):
        return list(inputs.tolist())
    return list(inputs) if isinstance(inputs, collections.abc.Sequence) else None


def _text_or_pair(item: Any, where: str = "") -> Text:
    if isinstance(item, str):
        return str(item)
    if isinstance(item, tuple) and len(item) == 2 and all(isinstance(one, str) for one in item):
        return str(item[0]), str(item[1])
    if isinstance(item, list):
        raise ArgumentError(f"expected a text or a pair of texts, found a list{where}: a pair is a tuple (text, second text)")
    found = ", ".join(map(_kind, item)) or "nothing" if isinstance(item, tuple) else _kind(item)
    several = "; a tuple is a pair, several texts are a list" if isinstance(item, tuple) and not where else ""
    raise ArgumentError(f"expected a text or a pair of texts, found {found}{where}{several}")


def _kind(thing: Any) -> str:
    return type(thing).__name__


def described(place: Any) -> Dict[str, Any]:
    """Returns a deberta_place as a dictionary."""
    return {name: [getattr(place, name).begin, getattr(place, name).end] for name in ("characters", "bytes")}


def _utf8(text: str, where: str) -> bytes:
    """Encodes a text, at its place in a list; half a surrogate pair is refused, as the library would read it as U+FFFD."""
    try:
        return text.encode()
    except UnicodeEncodeError as reason:
        raise ArgumentError(f"the text{where} holds half of a surrogate pair, U+{ord(text[reason.start]):04X} at character {reason.start}, which no "
                            "UTF-8 has: text.encode('utf-8', 'replace').decode() puts '?' there") from None


class Cut:
    """Tokens of a text or a pair, in the library's memory as long as this object lives."""

    def __init__(self, tokenizer: Any, item: Text, max_tokens: Optional[int], where: str = "") -> None:
        parts = item if isinstance(item, tuple) else (item,)
        self.text, self.pair = [*(_utf8(part, where) for part in parts), None][:2]
        self.where = where  # " at place 3" of a list, for messages
        asked = abi.sized(abi.Text, text=self.text, text_bytes=len(self.text), pair=self.pair, pair_bytes=len(self.pair or b""),
                          max_tokens=size_or_default("max_tokens", max_tokens, abi.LEAST_TOKENS))
        self._owned = abi.Owned(library.tokens_free, kind=abi.AT(abi.Tokens))
        self.list = self._owned.handle
        library.tokenize(self.list, tokenizer, asked)
        self.count = self.list.contents.count
        segments = self.values("token_types")[self.values("roles", "|u1") != abi.FRAME]
        for segment, part in enumerate((self.text, self.pair)):
            if part is None or segment in segments:
                continue
            which = f"{'second text' if segment else 'text'}{where}"
            if self.list.contents.dropped and part.strip():
                abi.note(f"max_tokens cuts all of the {which}: special tokens alone stand for it")
            else:
                abi.note(f"the {which} is empty: special tokens alone stand for it")
            break

    def values(self, name: str, kind: str = "<i4", *columns: int) -> np.ndarray:
        """Returns an array of deberta_tokens by its name, copied, because the list is freed with its Cut."""
        return view(getattr(self.list.contents, name), (self.count, *columns), kind).copy()

    def name(self, token: int) -> Optional[str]:
        return abi.text_of(library.tokens_text, self.list, token)

    @cached_property
    def _segments(self) -> np.ndarray:
        return self.values("token_types")

    def place(self, token: int) -> Dict[str, Any]:
        """Returns the place of a token in its text, and of a pair which text that is."""
        segment = int(self._segments[token])
        place = described(library.token_place(self.list, token, self.pair if segment else self.text))
        return place if self.pair is None else {"segment": segment, **place}


def batch_of_cuts(cuts: List[Cut], limited: bool = True) -> Batch:
    """Makes a batch of tokenized texts. limited: the user has set no maximal length."""
    types = np.concatenate([cut.values("token_types") for cut in cuts])
    batch = Batch.of_rows([cut.values("ids") for cut in cuts], token_types=types if types.any() else None)
    if limited:
        batch.check_lengths("text", "max_tokens=")
    return batch


class Tokenizer:
    """The tokenizer of a model's folder, opened when it is first needed."""

    def __init__(self, folder: str) -> None:
        self._folder, self._opened = folder, abi.Owned(library.tokenizer_free)

    @property
    def handle(self) -> Any:
        if not self._opened.handle:
            if self._folder.startswith(abi.MADE_UP):
                raise ArgumentError(f"{self._folder}: a made-up model has no tokenizer, so it cannot read texts: give ids")
            library.tokenizer_open(self._opened.handle, os.fsencode(self._folder))
            for sentence in self.notes:
                abi.note(sentence)
        return self._opened.handle

    @property
    def notes(self) -> List[str]:
        """Returns the notes on its files, once it is open."""
        return abi.notes_of(library.tokenizer_note, self._opened.handle) if self._opened.handle else []

    def cut(self, items: List[Text], max_tokens: Optional[int]) -> List[Cut]:
        return [Cut(self.handle, item, max_tokens, f" at place {k}" * (len(items) > 1)) for k, item in enumerate(items)]

    def special(self, name: str) -> int:
        return int(library.tokenizer_special_id(self.handle, abi.SPECIALS.index(name)))

    def token(self, number: int) -> Optional[str]:
        return abi.text_of(library.tokenizer_token, self.handle, number)

    def spell(self, ids: np.ndarray) -> str:
        text, size = abi.Owned(library.free), abi.SIZE()
        library.detokenize(text.handle, size, self.handle, address(ids), len(ids))
        return abi.string(text.handle.value, size) or ""
