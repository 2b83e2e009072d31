"""Texts as tokens, and where these lie. SPDX-License-Identifier: MIT"""
from __future__ import annotations

import os
from typing import Any, Dict, List, Optional, Tuple, Union

import numpy as np

from . import _abi as abi
from ._abi import library
from ._errors import ArgumentError, whole_number
from ._inputs import Batch, address, batch_of_rows, view

Text = Union[str, Tuple[str, str]]


def utf8(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


def as_texts(inputs: Any) -> "tuple[Optional[list[Text]], bool]":
    """Texts and pairs as a list, and whether it was one by itself; None: something else, ids."""
    if isinstance(inputs, str) or (isinstance(inputs, tuple) and len(inputs) == 2 and all(isinstance(one, str) for one in inputs)):
        return [inputs], True  # type: ignore[list-item]
    if isinstance(inputs, (list, tuple)) and inputs and isinstance(inputs[0], (str, tuple, bytes)):
        return [tuple(one) if isinstance(one, list) else one for one in inputs], False  # type: ignore[misc]
    return None, False


def described(place: Any) -> Dict[str, Any]:
    """A deberta_place."""
    return {name: [getattr(place, name).begin, getattr(place, name).end] for name in ("characters", "bytes")}


class Cut:
    """Tokens of a text or a pair, in the library's memory as long as this is there."""

    def __init__(self, tokenizer: abi.POINTER, item: Text, max_tokens: Optional[int]) -> None:
        text, pair = item if isinstance(item, tuple) else (item, None)
        if not isinstance(text, str) or not isinstance(pair, (str, type(None))):
            wrong = pair if isinstance(text, str) else text
            raise ArgumentError(f"expected a text or a pair of texts, found {type(wrong).__name__}")
        self.text, self.pair = utf8(text), None if pair is None else utf8(pair)
        asked = abi.sized(abi.Text, text=self.text, text_bytes=len(self.text), pair=self.pair, pair_bytes=len(self.pair or b""),
                          max_tokens=whole_number("max_tokens", max_tokens))
        self._owned = abi.Owned(library.tokens_free, kind=abi.TOKENS)
        self.list = self._owned.handle
        library.tokenize(self.list, tokenizer, asked)
        self.count = self.list.contents.count

    def values(self, name: str, kind: str = "<i4", *columns: int) -> np.ndarray:
        """An array of deberta_tokens by its name, copied: the list goes with its Cut."""
        return view(getattr(self.list.contents, name), (self.count, *columns), kind).copy()

    def name(self, token: int) -> Optional[str]:
        size = abi.SIZE()
        return abi.text_of(library.tokens_text(self.list, token, size), size)

    def place(self, token: int) -> Dict[str, Any]:
        return described(library.token_place(self.list, token, self.text))


def batch_of_cuts(cuts: List[Cut]) -> Batch:
    types = np.concatenate([cut.values("token_types") for cut in cuts]) if cuts else np.empty(0, np.int32)
    return batch_of_rows([cut.values("ids") for cut in cuts], token_types=types if types.any() else None)


class Tokenizer:
    """That of a model's folder, opened when it is first needed."""

    def __init__(self, folder: str) -> None:
        self._folder, self._opened = folder, abi.Owned(library.tokenizer_free)

    @property
    def handle(self) -> abi.POINTER:
        if not self._opened.handle:
            if self._folder.startswith(abi.MADE_UP):
                raise ArgumentError(f"{self._folder}: a made-up model has no tokenizer, so it cannot read texts: give ids")
            library.tokenizer_open(self._opened.handle, os.fsencode(self._folder))
        return self._opened.handle

    def cut(self, items: List[Text], max_tokens: Optional[int]) -> List[Cut]:
        return [Cut(self.handle, item, max_tokens) for item in items]

    def special(self, name: str) -> int:
        return library.tokenizer_special_id(self.handle, abi.SPECIALS.index(name))

    def token(self, number: int) -> Optional[str]:
        size = abi.SIZE()
        return abi.text_of(library.tokenizer_token(self.handle, number, size), size)

    def spell(self, ids: np.ndarray) -> str:
        text, size = abi.POINTER(), abi.SIZE()
        library.detokenize(text, size, self.handle, address(ids), len(ids))
        try:
            return abi.text_of(text.value, size) or ""
        finally:
            library.free(text)
