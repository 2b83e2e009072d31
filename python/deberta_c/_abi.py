"""include/deberta.h as ctypes has it: structs, functions, errors. SPDX-License-Identifier: MIT"""
from __future__ import annotations

import ctypes as c
import os
import threading
from pathlib import Path
from typing import Any, Optional

from . import _errors

HERE = Path(__file__).resolve().parent
INT, SIZE, DOUBLE, TEXT, POINTER, AT = c.c_int, c.c_size_t, c.c_double, c.c_char_p, c.c_void_p, c.POINTER
EVERY = SIZE(-1).value
COMPONENTS = ("c2c", "c2p", "p2c", "logits", "probs")
TASKS = ("mlm", "mlm_emd", "rtd", "sequence", "token", "qa")
SPECIALS = ("cls", "sep", "unk", "pad", "mask")
PRECISIONS = ("float32", "int16", "int8")
REFERENCES = ("microsoft", "hf")
TASK_MLM, TASK_EMD, TASK_RTD, TASK_SEQUENCE, TASK_TOKEN, TASK_QA = range(6)
MADE_UP = "synthetic:"  # what the path of a model without files begins with
OBSERVE_HIDDEN, OBSERVE_ATTENTION, KEEP_DECODER_INPUT = 1, 2, 4
FRAME = 2  # DEBERTA_TOKEN_FRAME
MOST_THREADS = 1024  # TOPOLOGY_MAX_WORKERS


def _struct(name: str, /, **members: Any) -> Any:
    """A struct of the header: deberta_model_options is ModelOptions here (tests/python/test_abi.py compares them)."""
    return type(name, (c.Structure,), {"_fields_": list(members.items())})


def _sizes(names: str) -> "dict[str, Any]":
    return dict.fromkeys(names.split(), SIZE)


Error = _struct("Error", code=INT, message=c.c_char * 504)
ModelOptions = _struct("ModelOptions", struct_size=SIZE, reference=INT, **_sizes("threads memory_limit_bytes layers"), describe_only=INT,
                       precision=INT)
Tensor = _struct("Tensor", name=TEXT, values=POINTER, dtype=INT, rank=SIZE, shape=AT(SIZE), strides=AT(SIZE))
ModelInfo = _struct(
    "ModelInfo", name=TEXT, version=INT,
    **_sizes("vocabulary_size hidden_size intermediate_size layers heads head_size embedding_size max_positions max_relative_positions "
             "position_buckets relative_rows"),
    has_c2p=INT, has_p2c=INT, position_biased_input=INT, has_position_table=INT, token_types=SIZE, convolution_width=SIZE,
    tasks_present=c.c_uint, **_sizes("sequence_labels token_labels parameters memory_bytes"), packed=INT, precision=INT)
Ablation = _struct("Ablation", term=INT, layer=SIZE, head=SIZE, kind=INT)
SessionOptions = _struct("SessionOptions", struct_size=SIZE, isa=INT, max_tokens=SIZE, threads=SIZE, features=c.c_uint, memory_limit_bytes=SIZE,
                         pin_threads=INT, ablations=AT(Ablation), ablation_count=SIZE, shared_threads=POINTER)
HiddenBlock = _struct("HiddenBlock", **_sizes("layer tokens columns stride"), values=POINTER)
AttentionBlock = _struct("AttentionBlock", **_sizes("layer sequence head first_query rows keys stride"), component=INT, values=POINTER)
ON_HIDDEN = c.CFUNCTYPE(INT, POINTER, AT(HiddenBlock))
WANTS = c.CFUNCTYPE(INT, POINTER, SIZE, SIZE, INT)
ON_ATTENTION = c.CFUNCTYPE(INT, POINTER, AT(AttentionBlock))
Observer = _struct("Observer", struct_size=SIZE, context=POINTER, on_hidden=ON_HIDDEN, wants_attention=WANTS, on_attention=ON_ATTENTION)
Batch = _struct("Batch", struct_size=SIZE, ids=POINTER, sequence_starts=POINTER, sequences=SIZE, token_types=POINTER, position_ids=POINTER,
                mask=POINTER, observer=AT(Observer))
Outputs = _struct("Outputs", struct_size=SIZE, hidden=POINTER, hidden_stride=SIZE)
Text = _struct("Text", struct_size=SIZE, text=TEXT, text_bytes=SIZE, pair=TEXT, pair_bytes=SIZE, max_tokens=SIZE, strict=INT,
               literal_specials=INT)
Span = _struct("Span", begin=SIZE, end=SIZE)
Tokens = _struct("Tokens", count=SIZE, ids=POINTER, token_types=POINTER, byte_spans=POINTER, character_spans=POINTER,
                 **_sizes("dropped replaced first_replaced_segment first_replaced_byte segments"), roles=POINTER)
Place = _struct("Place", bytes=Span, characters=Span)
Entity = _struct("Entity", place=Place, type=TEXT, label=SIZE, units=SIZE, probability=DOUBLE)
Answer = _struct("Answer", first_token=SIZE, last_token=SIZE, place=Place, probability=DOUBLE)

STATUS, TOKENS, HANDLE = object(), AT(Tokens), AT(POINTER)
# Result and parameters. Where the result is a status there is also a place for the error at the end, which library adds.
FUNCTIONS: "dict[str, tuple]" = {
    "version": (TEXT,), "free": (None, POINTER), "isa_name": (TEXT, INT), "isa_from_name": (STATUS, AT(INT), TEXT),
    "model_open": (STATUS, HANDLE, TEXT, AT(ModelOptions)), "model_free": (None, HANDLE),
    "model_open_memory": (STATUS, HANDLE, TEXT, TEXT, AT(Tensor), SIZE, AT(ModelOptions)),
    "model_describe": (AT(ModelInfo), POINTER), "model_label": (TEXT, POINTER, SIZE), "model_digest": (STATUS, POINTER, TEXT),
    "model_read_weight": (STATUS, POINTER, TEXT, POINTER, SIZE),
    "session_create": (STATUS, HANDLE, POINTER, AT(SessionOptions)), "session_free": (None, HANDLE),
    "session_isa": (INT, POINTER), "session_threads": (SIZE, POINTER), "encode": (STATUS, POINTER, AT(Batch), AT(Outputs)),
    "task_width": (SIZE, POINTER, INT), "task_logits": (STATUS, POINTER, INT, POINTER, SIZE, POINTER, SIZE),
    "tokenizer_open": (STATUS, HANDLE, TEXT), "tokenizer_free": (None, HANDLE), "tokenizer_special_id": (c.c_int32, POINTER, INT),
    "tokenizer_token": (POINTER, POINTER, c.c_int32, AT(SIZE)), "tokenize": (STATUS, AT(TOKENS), POINTER, AT(Text)),
    "tokens_free": (None, AT(TOKENS)), "tokens_text": (POINTER, TOKENS, SIZE, AT(SIZE)),
    "detokenize": (STATUS, HANDLE, AT(SIZE), POINTER, POINTER, SIZE), "softmax": (None, POINTER, POINTER, SIZE),
    "sigmoid": (DOUBLE, DOUBLE), "rank": (SIZE, POINTER, SIZE, POINTER, SIZE), "token_place": (Place, TOKENS, SIZE, TEXT),
    "entities": (STATUS, AT(Entity), AT(SIZE), POINTER, TOKENS, TEXT, SIZE, POINTER, INT), "context_tokens": (SIZE, TOKENS),
    "answers": (STATUS, AT(Answer), AT(SIZE), AT(DOUBLE), TOKENS, TEXT, POINTER, SIZE),
}


class _Library:
    """deberta_encode() is library.encode(); what returns a status raises the library's sentence instead."""

    def __init__(self) -> None:
        name = os.environ.get("DEBERTA_LIBRARY") or str(HERE / "libdeberta.so.0")
        try:
            opened = c.CDLL(name)
        except OSError as reason:
            raise ImportError(f"{name}: the library of this package cannot be loaded ({reason}); was it installed with pip?") from None
        self._local = threading.local()
        for short, (result, *parameters) in FUNCTIONS.items():
            function = getattr(opened, "deberta_" + short)
            function.restype, function.argtypes = (INT, [*parameters, AT(Error)]) if result is STATUS else (result, parameters)
            setattr(self, short, self._checked(function) if result is STATUS else function)

    def _checked(self, function: Any) -> Any:
        def call(*arguments: Any) -> None:
            error = getattr(self._local, "error", None) or self._local.__dict__.setdefault("error", Error())
            if function(*arguments, error):
                raise _errors.ERRORS.get(error.code, _errors.Error)(error.message.decode("utf-8", "replace"))
        return call

    def __getattr__(self, name: str) -> Any:  # for those who check types: all are set above
        raise AttributeError(name)


library = _Library()


def sized(kind: Any, **members: Any) -> Any:
    return kind(struct_size=c.sizeof(kind), **members)


def text_of(address: Optional[int], size: SIZE) -> Optional[str]:
    return None if address is None else c.string_at(address, size.value).decode("utf-8", "replace")


class Owned:
    """What the library made and frees. A child of fork has neither its threads nor the right to free it."""

    def __init__(self, free: Any, *needed: Any, kind: Any = POINTER) -> None:
        self.handle, self.pid, self._free, self._needed = kind(), os.getpid(), free, needed

    def close(self, getpid: Any = os.getpid) -> None:
        if self.handle and self.pid == getpid():
            self._free(self.handle)
        self.handle, self._needed = type(self.handle)(), ()

    __del__ = close
