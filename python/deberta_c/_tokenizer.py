"""Texts as tokens, and where these lie. SPDX-License-Identifier: MIT"""
from __future__ import annotations

import os
from typing import Any, Dict, List, Optional, Tuple, Union

import numpy as np

from . import _abi as abi
from ._abi import library
from ._errors import ArgumentError, whole_number
from ._inputs import Batch, address, view

Text = Union[str, Tuple[str, str]]


def as_texts(inputs: Any) -> "Tuple[Optional[List[Text]], bool]":
    """Texts and pairs as a list, and whether it was one by itself; None: something else, ids."""
    if isinstance(inputs, str) or (isinstance(inputs, tuple) and len(inputs) == 2 and all(isinstance(one, str) for one in inputs)):
        return [inputs], True
    if isinstance(inputs, (list, tuple)) and inputs and isinstance(inputs[0], (str, tuple, bytes)):
        return list(inputs), False
    return None, False


def described(place: Any) -> Dict[str, Any]:
    """A deberta_place."""
    return {name: [getattr(place, name).begin, getattr(place, name).end] for name in ("characters", "bytes")}


class Cut:
    """Tokens of a text or a pair, in the library's memory as long as this is there."""

    def __init__(self, tokenizer: Any, item: Any, max_tokens: Optional[int]) -> None:
        parts = item if isinstance(item, (tuple, list)) else (item,)
        if not 1 <= len(parts) <= 2 or not all(isinstance(part, str) for part in parts):
            found = ", ".join(type(part).__name__ for part in parts)
            raise ArgumentError(f"expected a text or a pair of texts, found {found or 'nothing'}")
        self.text, self.pair = [*(part.encode("utf-8", "surrogatepass") for part in parts), None][:2]
        asked = abi.sized(abi.Text, text=self.text, text_bytes=len(self.text), pair=self.pair, pair_bytes=len(self.pair or b""),
                          max_tokens=whole_number("max_tokens", max_tokens))
        self._owned = abi.Owned(library.tokens_free, kind=abi.AT(abi.Tokens))
        self.list = self._owned.handle
        library.tokenize(self.list, tokenizer, asked)
        self.count = self.list.contents.count

    def values(self, name: str, kind: str = "<i4", *columns: int) -> np.ndarray:
        """An array of deberta_tokens by its name, copied: the list goes with its Cut."""
        return view(getattr(self.list.contents, name), (self.count, *columns), kind).copy()

    def name(self, token: int) -> Optional[str]:
        return abi.text_of(library.tokens_text, self.list, token)

    def place(self, token: int) -> Dict[str, Any]:
        return described(library.token_place(self.list, token, self.text))


def batch_of_cuts(cuts: List[Cut]) -> Batch:
    types = np.concatenate([cut.values("token_types") for cut in cuts])
    return Batch.of_rows([cut.values("ids") for cut in cuts], token_types=types if types.any() else None)


class Tokenizer:
    """That of a model's folder, opened when it is first needed."""

    def __init__(self, folder: str) -> None:
        self._folder, self._opened = folder, abi.Owned(library.tokenizer_free)

    @property
    def handle(self) -> Any:
        if not self._opened.handle:
            if self._folder.startswith(abi.MADE_UP):
                raise ArgumentError(f"{self._folder}: a made-up model has no tokenizer, so it cannot read texts: give ids")
            library.tokenizer_open(self._opened.handle, os.fsencode(self._folder))
        return self._opened.handle

    def cut(self, items: List[Text], max_tokens: Optional[int]) -> List[Cut]:
        return [Cut(self.handle, item, max_tokens) for item in items]

    def special(self, name: str) -> int:
        return int(library.tokenizer_special_id(self.handle, abi.SPECIALS.index(name)))

    def token(self, number: int) -> Optional[str]:
        return abi.text_of(library.tokenizer_token, self.handle, number)

    def spell(self, ids: np.ndarray) -> str:
        text, size = abi.Owned(library.free), abi.SIZE()
        library.detokenize(text.handle, size, self.handle, address(ids), len(ids))
        return abi.string(text.handle.value, size) or ""
