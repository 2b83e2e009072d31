"""Declares include/deberta.h and deberta_unstable.h for ctypes: structs, functions, errors. SPDX-License-Identifier: MIT"""
from __future__ import annotations

import ctypes as c
import os
import sys
import warnings
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Dict, List, Optional

import numpy as np


class Error(Exception):
    """Base of all errors; the text is one sentence: what, where, found, expected."""

    __module__ = "deberta_c"  # the name under which users import it

    def __init_subclass__(cls) -> None:
        cls.__module__ = Error.__module__


class ArgumentError(Error, ValueError):
    """A wrong call: an id outside the vocabulary, an empty batch, a closed model."""


class FileError(Error, OSError):
    """A file is missing or unreadable."""


class FormatError(Error, ValueError):
    """A file is damaged, or not what its name says."""


class UnsupportedError(Error, NotImplementedError):
    """A valid file or option that is not supported."""


class OutOfMemoryError(Error, MemoryError):
    """Out of memory, or above the caller's limit."""


class SystemRefusedError(Error, OSError):
    """The operating system refused something else: a thread, a write."""


class NoteWarning(UserWarning):
    """A note of the library: something was read and is ignored, or has an unexpected meaning."""

    __module__ = "deberta_c"


def note(sentence: str) -> None:
    """Warns, at the line that called the package."""
    frame: Any = sys._getframe()
    level = 1
    while frame.f_back and frame.f_globals.get("__name__", "").split(".")[0] == __package__:
        frame, level = frame.f_back, level + 1
    warnings.warn(sentence, NoteWarning, stacklevel=level)


def notes_of(function: Any, handle: Any) -> List[str]:
    """Returns the library's notes on what it opened."""
    found: List[str] = []
    while (sentence := function(handle, len(found))) is not None:
        found.append(sentence.decode("utf-8", "replace"))
    return found


ERRORS = {-1: ArgumentError, -2: FileError, -3: FormatError, -4: UnsupportedError, -5: OutOfMemoryError, -6: SystemRefusedError,
          -7: Error}  # DEBERTA_E_NOT_FINITE occurs in training, which this package leaves to the program

# ----------------------------------------------------------------------------------------------------------- the header

VERSION_NUMBER = 100  # DEBERTA_VERSION_NUMBER of the headers that this file mirrors
HERE = Path(__file__).resolve().parent
# Library and program lie next to the modules, or, for modules used from the source tree, where ./build.sh puts them.
BUILT = next((place for place in (HERE, HERE.parents[1] / "build") if (place / "libdeberta.so.0").exists()), HERE)
INT, SIZE, DOUBLE, POINTER, AT = c.c_int, c.c_size_t, c.c_double, c.c_void_p, c.POINTER
COMPONENTS = ("c2c", "c2p", "p2c", "logits", "probs")
TASKS = ("mlm", "mlm_emd", "rtd", "sequence", "token", "qa")
SPECIALS = ("cls", "sep", "unk", "pad", "mask")
PRECISIONS = ("float32", "int16", "int8")
REFERENCES = ("auto", "microsoft", "hf")
PROBLEMS = (None, "single_label_classification", "multi_label_classification", "regression")
TASK_MLM, TASK_EMD, TASK_RTD, TASK_SEQUENCE, TASK_TOKEN, TASK_QA = range(6)
MADE_UP = "synthetic:"  # beginning of the path of a synthetic model
OBSERVE_HIDDEN, OBSERVE_ATTENTION, KEEP_DECODER_INPUT, ONLY_HEADS = 1, 2, 4, 8
FRAME = 2  # DEBERTA_TOKEN_FRAME
MOST_DISTANCE = 2 ** 31 - 1
LEAST_TOKENS = 3  # of a cut text: its frame and a token, as --max-tokens of the program
MOST_THREADS = 1024  # TOPOLOGY_MAX_WORKERS
_KINDS: Dict[str, Any] = {"int": INT, "difference": c.c_ssize_t, "int32": c.c_int32, "size": SIZE, "flags": c.c_uint, "double": DOUBLE, "text": c.c_char_p,
                          "at": POINTER, "sentence": c.c_char * 504, "obstacle": c.c_char * 160, "nothing": None, "status": INT}


def _kind(name: str) -> Any:
    return AT(_kind(name[:-1])) if name.endswith("*") else _KINDS[name]


def _struct(name: str, members: str) -> Any:
    """Declares a struct of the header with its members: deberta_model_options is ModelOptions here (tests/python/test_abi.py checks it)."""
    fields = [(member, _kind(kind)) for kind, *names in map(str.split, members.split(",")) for member in names]
    _KINDS[name] = type(name, (c.Structure,), {"_fields_": fields})
    return _KINDS[name]


def _callback(name: str, parameters: str) -> Any:
    _KINDS[name] = c.CFUNCTYPE(INT, *map(_kind, parameters.split()))
    return _KINDS[name]


ErrorPlace = _struct("Error", "int code, sentence message")
ModelOptions = _struct("ModelOptions", "size struct_size, int reference, size threads memory_limit_bytes layers, int describe_only precision")
Tensor = _struct("Tensor", "text name, at values, int dtype, size rank, size* shape strides")
ModelInfo = _struct("ModelInfo", "text name, int version, size vocabulary_size hidden_size intermediate_size layers heads head_size "
                    "embedding_size max_positions max_relative_positions position_buckets relative_rows, int has_c2p has_p2c "
                    "position_biased_input has_position_table, size token_types convolution_width, flags tasks_present, "
                    "size sequence_labels token_labels parameters memory_bytes, int packed precision reference problem padding_id")
Ablation = _struct("Ablation", "int term, size layer head, int kind")
SessionOptions = _struct("SessionOptions", "size struct_size, int isa, size max_tokens threads, flags features, size memory_limit_bytes, "
                         "int pin_threads, at ablations, size ablation_count, at shared_threads")
HiddenBlock = _struct("HiddenBlock", "size layer tokens columns stride, at values")
AttentionBlock = _struct("AttentionBlock", "size layer sequence head first_query rows keys stride, int component, at values")
ON_HIDDEN, ON_ATTENTION = _callback("on_hidden", "at HiddenBlock*"), _callback("on_attention", "at AttentionBlock*")
WANTS = _callback("wants", "at size size int")
Observer = _struct("Observer", "size struct_size, at context, on_hidden on_hidden, wants wants_attention, on_attention on_attention")
HiddenEdit = _struct("HiddenEdit", "size layer tokens columns stride, at values")
EDIT_HIDDEN = _callback("edit_hidden", "at HiddenEdit*")
Interventions = _struct("Interventions", "at context, edit_hidden edit_hidden, at row_bias patches, size patch_count first_layer, at word_noise")
Batch = _struct("Batch", "size struct_size, at ids sequence_starts, size sequences, at token_types position_ids mask observer")
Outputs = _struct("Outputs", "size struct_size, at hidden, size hidden_stride")
Text = _struct("Text", "size struct_size, text text, size text_bytes, text pair, size pair_bytes max_tokens, int strict literal_specials")
Span = _struct("Span", "size begin end")
Tokens = _struct("Tokens", "size count, at ids token_types byte_spans character_spans, "
                 "size dropped replaced first_replaced_segment first_replaced_byte segments, at roles")
Place = _struct("Place", "Span bytes characters")
Entity = _struct("Entity", "Place place, text type, size label units, double probability")
Answer = _struct("Answer", "size first_token last_token, Place place, double probability")

VectorRecipe = _struct("VectorRecipe", "int given cls normalized, size max_tokens, obstacle obstacle")

# Result and parameters of each function. If the result is a status, a parameter for the error follows.
FUNCTIONS = {
    "version": "text", "free": "nothing at", "isa_name": "text int", "isa_from_name": "status int* text", "isa_missing": "text int",
    "model_open": "status at* text ModelOptions*", "model_free": "nothing at*",
    "model_open_memory": "status at* text text Tensor* size ModelOptions*", "model_describe": "ModelInfo* at",
    "model_label": "text at size", "model_note": "text at size", "tokenizer_note": "text at size", "model_digest": "status at text", "model_read_weight": "status at text at size",
    "session_create": "status at* at SessionOptions*", "session_free": "nothing at*", "session_isa": "int at",
    "session_intervene": "status at Interventions*", "model_read_positions": "status at size at at",
    "position_row": "size ModelInfo* int difference", "session_threads": "size at", "session_memory_bytes": "size at", "encode": "status at Batch* Outputs*", "task_width": "size at int",
    "task_logits": "status at int at size at size", "tokenizer_open": "status at* text", "tokenizer_free": "nothing at*",
    "tokenizer_special_id": "int32 at int", "tokenizer_token": "at at int32 size*", "tokenize": "status Tokens** at Text*",
    "guard_files": "status", "tokens_free": "nothing Tokens**", "tokens_text": "at Tokens* size size*", "detokenize": "status at* size* at at size",
    "ablations_parse": "status Ablation* size* text", "softmax": "nothing at at size", "sigmoid": "double double",
    "vector_recipe_read": "status VectorRecipe* text",
    "rank": "size at size at size", "token_place": "Place Tokens* size text", "context_tokens": "size Tokens*",
    "entities": "status Entity* size* at Tokens* text size at int", "answers": "status Answer* size* double* Tokens* text at size",
}


def _load() -> Any:
    """Loads the library. deberta_encode() becomes library.encode(); a failing status raises the library's sentence."""
    name, library = os.environ.get("DEBERTA_LIBRARY") or str(BUILT / "libdeberta.so.0"), SimpleNamespace()
    try:
        opened = c.CDLL(name)
    except OSError as reason:
        raise ImportError(f"{name}: the library of this package cannot be loaded ({reason}); was it installed with pip, or built with ./build.sh?") from None
    _check_version(name, opened)
    for short, kinds in FUNCTIONS.items():
        result, *parameters = map(_kind, kinds.split())
        failing = kinds.startswith("status")
        kind = c.CFUNCTYPE(result, *parameters, *[AT(ErrorPlace)] * failing)
        function = kind(("deberta_" + short, opened), ((1,),) * len(parameters) + ((2,),) * failing)  # 1: passed by the caller, 2: made by ctypes
        if failing:
            function.errcheck = _check
        setattr(library, short, function)
    if os.environ.get("DEBERTA_GUARD_FILES") != "0":  # a mapped file that shrinks raises FileError instead of SIGBUS
        library.guard_files()
    return library


def _check_version(name: str, opened: Any) -> None:
    """Refuses another version, named in the message, because parts of the unstable interface may change."""
    try:
        found = int(opened.deberta_version_number())
    except AttributeError:
        raise ImportError(f"{name}: is no library of this package: it has no deberta_version_number") from None
    if found != VERSION_NUMBER:
        there, here = (f"{number // 10000}.{number // 100 % 100}.{number % 100}" for number in (found, VERSION_NUMBER))
        raise ImportError(f"{name}: is version {there} of the library, but this package was made for {here}: install both together")


def _check(status: Any, _function: Any, arguments: Any) -> Any:
    if status:
        raise ERRORS.get(status, Error)(arguments[-1].message.decode("utf-8", "replace"))


library = _load()


def sized(kind: Any, **members: Any) -> Any:
    return kind(struct_size=c.sizeof(kind), **members)


def string(place: Optional[int], size: c.c_size_t) -> Optional[str]:
    return None if place is None else c.string_at(place, size.value).decode("utf-8", "replace")


def text_of(function: Any, *arguments: Any) -> Optional[str]:
    """Returns a text that the library holds, which may contain NUL."""
    size = SIZE()
    return string(function(*arguments, size), size)


# --------------------------------------------------------------------------------------------- what is handed to the library


def one_of(what: str, value: Any, *names: Optional[str]) -> int:
    """Returns the index of an option's value among the possible ones."""
    if not (value is None or isinstance(value, str)) or value not in names:
        *others, last = map(repr, names)
        raise ArgumentError(f"{what}: expected {', '.join(others)} or {last}, found {value!r}")
    return names.index(value)


def whole_number(what: str, value: Any, most: int = sys.maxsize, least: int = 0) -> int:
    """Checks a number that must be given."""
    if not isinstance(value, (int, np.integer)) or isinstance(value, bool) or not least <= value <= most:
        raise ArgumentError(f"{what}: expected a number from {least} to {most}, found {value!r}")
    return int(value)


def thread_count(value: Any) -> int:
    """Checks a number of threads; None becomes 0, the library's default."""
    return 0 if value is None else whole_number("threads", value, MOST_THREADS)


def size_or_default(what: str, value: Any, least: int = 1) -> int:
    """Checks an option that is a size; None becomes 0, the library's default."""
    return 0 if value is None else whole_number(what, value, least=least)


def tier(value: Any, is_here: bool = True) -> int:
    """Returns the instruction set of a name, None being the best one here. is_here: one that cannot run on this machine is refused, too."""
    found, name = INT(), b"auto" if value is None else terminated("isa", str(value))
    try:
        library.isa_from_name(found, name)
    except ArgumentError as reason:
        raise ArgumentError(f"isa: {reason}") from None
    missing = library.isa_missing(found.value) if is_here and found.value else None
    if missing is not None:
        raise ArgumentError(f"isa: {value} cannot run here: {missing.decode()}")
    return found.value


def probability(what: str, value: Any) -> float:
    """Checks an option that is a number from 0 to 1."""
    if not isinstance(value, (int, float, np.integer, np.floating)) or isinstance(value, bool) or not 0 <= value <= 1:
        raise ArgumentError(f"{what}: expected a number from 0 to 1, found {value!r}")
    return float(value)


def terminated(what: str, value: Any) -> bytes:
    """Checks a text or path for the library, which reads up to the first NUL."""
    try:
        found = os.fsencode(value)
    except (TypeError, UnicodeError):
        found = b"\0"
    if b"\0" in found:
        raise ArgumentError(f"{what}: expected a text without NUL, found {value!r}")
    return found


class Owned:
    """A handle that the library made and frees. A forked child has no threads of it, and must not free it."""

    def __init__(self, free: Any, *needed: Any, kind: Any = POINTER) -> None:
        self.handle, self.pid, self._free, self._needed = kind(), os.getpid(), free, needed

    def close(self, getpid: Any = os.getpid) -> None:
        if self.handle and self.pid == getpid():
            self._free(self.handle)
        self.handle, self._needed = type(self.handle)(), ()

    __del__ = close

    def __reduce_ex__(self, _protocol: Any) -> Any:
        """Refuses to copy a model, or a part of one: the copy would free the same memory again."""
        raise UnsupportedError("an open model can be neither copied nor pickled: share() makes one of the same weights for another thread, and another "
                               "process opens its own (deberta_c.Encoder does)")
