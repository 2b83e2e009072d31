"""The encoder of a transformers model, run by this library. SPDX-License-Identifier: MIT

The base model (DebertaModel, DebertaV2Model) keeps its embeddings, of which the library reads the word table where it lies; the weights of
its encoder are handed over, and come back when it is undone. Heads stay as they are: they get the last hidden state from us."""
from __future__ import annotations

import ctypes as c
import gc
import json
from typing import Any, Dict, Iterator, List, Optional, Tuple

import numpy as np

from . import _abi as abi
from ._abi import library
from ._errors import ArgumentError, UnsupportedError, one_of
from ._inputs import INT32, Batch, address
from ._session import Capture, Session, number_of_threads

BASES = ("DebertaModel", "DebertaV2Model")
PROBABILITIES = abi.COMPONENTS.index("probs")
LARGEST_BATCH = 4096  # tokens that are encoded together: more saves nothing, and takes memory
NOT_THE_ENCODER_S = ("architectures", "id2label", "label2id", "num_labels")  # of a configuration
UNDO = "deberta_c.restore(model) first"


def _modules(holder: Any, depth: int = 0) -> Iterator[Any]:
    """The torch modules that a pipeline, a CrossEncoder, a GLiNER model holds."""
    try:
        import torch
    except ImportError as reason:
        raise UnsupportedError(f"accelerate runs models of PyTorch, which is not here ({reason}): pip install torch transformers") from None

    if isinstance(holder, torch.nn.Module):
        yield holder
    elif depth < 3 and hasattr(holder, "model"):
        yield from _modules(holder.model, depth + 1)


def _bases(holder: Any) -> List[Any]:
    found: Dict[int, Any] = {}
    for outer in _modules(holder):
        for module in outer.modules():
            if any(one.__name__ in BASES and one.__module__.startswith("transformers.") for one in type(module).__mro__):
                found[id(module)] = module
    if not found:
        raise UnsupportedError(f"{type(holder).__name__} holds no DebertaModel or DebertaV2Model of transformers")
    return list(found.values())


def _check(base: Any) -> None:
    import torch

    name = type(base).__name__
    if base.training:
        raise UnsupportedError(f"{name} is in training mode, where dropout and gradients are needed: call eval() first")
    for weight_name, weight in base.state_dict().items():
        if weight.device.type != "cpu":
            raise UnsupportedError(f"{name}: '{weight_name}' is on {weight.device}, expected the CPU")
        if weight.is_floating_point() and weight.dtype not in _dtypes():
            raise UnsupportedError(f"{name}: '{weight_name}' is {weight.dtype}, expected float32, float16, bfloat16 or float64")
    if not isinstance(base.embeddings.word_embeddings, torch.nn.Embedding):
        raise UnsupportedError(f"{name}: its word embeddings are a {type(base.embeddings.word_embeddings).__name__}, expected torch.nn.Embedding")
    if getattr(base, "z_steps", 0) > 1:
        raise UnsupportedError(f"{name} runs its last layer {base.z_steps} times (z_steps), which is not done here")


def _dtypes() -> Dict[Any, int]:
    import torch

    return {torch.float32: 0, torch.float16: 1, torch.bfloat16: 2, torch.float64: 3}


def _tensors(weights: Dict[str, Any]) -> Any:
    """Torch's tensors as deberta_tensor, where they lie."""
    return (abi.Tensor * len(weights))(*(
        (name.encode(), weight.data_ptr(), _dtypes()[weight.dtype], weight.dim(),
         *((abi.SIZE * max(weight.dim(), 1))(*numbers) for numbers in (weight.shape, weight.stride())))
        for name, weight in weights.items()))


def _open(base: Any, threads: Optional[int], precision: str) -> abi.Owned:
    """The library's model of these weights; nothing but the word table is needed of them afterwards."""
    weights = {name: tensor.detach() for name, tensor in base.state_dict().items() if tensor.is_floating_point()}
    config = {key: value for key, value in base.config.to_dict().items() if key not in NOT_THE_ENCODER_S}
    options = abi.sized(abi.ModelOptions, reference=abi.REFERENCES.index("hf"), threads=number_of_threads(threads),
                        precision=abi.PRECISIONS.index(precision))
    opened = abi.Owned(library.model_free, weights["embeddings.word_embeddings.weight"])  # keeps the table alive, whatever the module does
    name = getattr(base.config, "_name_or_path", "") or type(base).__name__
    library.model_open_memory(opened.handle, name.encode(), json.dumps(config, default=str).encode(), _tensors(weights),
             len(weights), options)
    return opened


def _numbers(tensor: Any, shape: Tuple[int, ...], what: str) -> np.ndarray:
    if tuple(tensor.shape) not in (shape, (1, shape[1])):
        raise ArgumentError(f"{what} has shape {list(tensor.shape)}, expected {list(shape)}")
    return np.broadcast_to(tensor.detach().cpu().numpy(), shape)


def _mask(tensor: Any, shape: Tuple[int, int]) -> np.ndarray:
    if tensor is None:
        return np.ones(shape, bool)
    if tensor.dim() != 2:
        raise UnsupportedError(f"attention_mask has {tensor.dim()} dimensions, expected [texts, tokens]")
    mask = _numbers(tensor, shape, "attention_mask")
    if not ((mask == 0) | (mask == 1)).all():
        raise UnsupportedError("attention_mask holds other values than 0 and 1")
    return mask.astype(bool)


class _Ragged:
    """A padded batch without its padding: of each text that has a token, what lies between its first and its last one."""

    def __init__(self, ids: np.ndarray, mask: np.ndarray, types: Optional[np.ndarray], positions: Optional[np.ndarray]) -> None:
        self.shape = ids.shape
        n = ids.shape[1]
        some = mask.any(axis=1)
        self.begin = np.where(some, mask.argmax(axis=1), 0)
        self.end = np.where(some, n - mask[:, ::-1].argmax(axis=1), 0)
        self.texts = np.flatnonzero(some)
        columns = np.arange(n)
        self.inside = (columns >= self.begin[:, None]) & (columns < self.end[:, None])
        lengths = (self.end - self.begin)[self.texts]
        starts = np.zeros(len(lengths) + 1, np.uintp)
        np.cumsum(lengths, out=starts[1:])
        if positions is None and self.begin.any():
            positions = np.broadcast_to(columns, ids.shape)
        kept = mask[self.inside]
        cut = [None if rows is None else np.ascontiguousarray(rows[self.inside], INT32) for rows in (ids, types, positions)]
        self.batch = Batch(cut[0], starts, cut[1], None if kept.all() else np.ascontiguousarray(kept, np.uint8), cut[2])
        self.kept = kept
        self.whole = bool(self.inside.all()) and bool(kept.all())

    def pad(self, rows: np.ndarray) -> np.ndarray:
        """[tokens, h] as [texts, n, h], zero where the mask is."""
        if self.whole:
            return rows.reshape(*self.shape, -1)
        padded = np.zeros((*self.shape, rows.shape[-1]), np.float32)
        padded[self.inside] = rows if self.kept.all() else np.where(self.kept[:, None], rows, 0)
        return padded

    def pad_maps(self, matrices: List[np.ndarray], heads: int) -> np.ndarray:
        """[heads, n, n] of each text that has a token as [texts, heads, n, n]."""
        padded = np.zeros((self.shape[0], heads, self.shape[1], self.shape[1]), np.float32)
        for text, matrix in zip(self.texts, matrices):
            place = slice(self.begin[text], self.end[text])
            padded[text, :, place, place] = matrix
        return padded


class _Lent:
    """Weights of an encoder that the library holds in its own order: let go here, and read back from it when they are wanted again. What
    does not come back bit by bit stays: differences in the last place as bytes (queries, which it holds scaled), what it folded whole."""

    def __init__(self, encoder: Any, weights: abi.Owned) -> None:
        import torch

        self.encoder, self.kept = encoder, {}  # {name: shape, difference or None, tensor or None}
        for name, parameter in encoder.named_parameters():
            whole, back = parameter.data, self._read(name, parameter, weights)
            difference = None if back is None else self._difference(whole, back)
            if back is not None and difference is not None:
                self.kept[name] = (whole.shape, difference if difference.any() else None, None)
                parameter.data = torch.empty(0, dtype=whole.dtype)
            else:
                self.kept[name] = (whole.shape, None, whole)

    @staticmethod
    def _read(name: str, parameter: Any, weights: abi.Owned, shape: Any = None) -> Optional[np.ndarray]:
        found = np.empty(tuple(parameter.shape if shape is None else shape), np.float32)
        try:
            library.model_read_weight(weights.handle, f"encoder.{name}".encode(), address(found), found.size)
        except UnsupportedError:
            return None
        return found

    @staticmethod
    def _difference(whole: Any, back: np.ndarray) -> Optional[np.ndarray]:
        """In units of the last place, of float32; None: too large for bytes, or another type that does not come back as it was."""
        import torch

        if whole.dtype != torch.float32:
            return np.zeros(0, np.int8) if torch.equal(torch.from_numpy(back).to(whole.dtype), whole) else None
        units = whole.contiguous().numpy().view(np.int32) - back.view(np.int32)
        return units.astype(np.int8) if not units.size or (units.min() >= -128 and units.max() <= 127) else None

    def give_back(self, weights: abi.Owned) -> Any:
        import torch

        for name, parameter in self.encoder.named_parameters():
            shape, difference, whole = self.kept[name]
            if whole is None:
                back = self._read(name, parameter, weights, shape)
                assert back is not None
                if difference is not None:
                    back = (back.view(np.int32) + difference).view(np.float32)
                whole = torch.from_numpy(back).to(parameter.dtype)
            parameter.data = whole
        return self.encoder


class _Accelerated:
    """Stands in for the forward of a base model; callable like it."""

    def __init__(self, base: Any, isa: Optional[str], threads: Optional[int], precision: str) -> None:
        _check(base)
        self.base = base
        self.weights = _open(base, threads, precision)
        self.session = Session(self.weights, isa, threads)
        self.session.prepare(1)
        self.lent = _Lent(base.encoder, self.weights)
        self.table = base.embeddings.word_embeddings.weight
        self.dtype, self.place = self.table.dtype, self.table.data_ptr()
        base.encoder = _stand_in(self)
        base.forward, base._apply = self.forward, self.apply

    def undo(self) -> None:
        with self.session.working():
            self.base.encoder = self.lent.give_back(self.weights)
            del self.base.forward, self.base._apply
            self.session.close()
            self.weights.close()

    def apply(self, fn: Any, *arguments: Any, **options: Any) -> Any:
        """to(), half(), share_memory() of the base: nothing may change, not even a part of it."""
        import torch

        probe = torch.zeros(1, dtype=self.dtype)
        moved = fn(probe)
        if moved.device != probe.device or moved.dtype != probe.dtype:
            raise UnsupportedError(f"an accelerated encoder stays {probe.dtype} on the CPU, it cannot become {moved.dtype} on {moved.device}: "
                                   + UNDO)
        return self.base

    def refuse(self, input_ids: Any, inputs_embeds: Any, others: Dict[str, Any]) -> None:
        import torch

        if inputs_embeds is not None or input_ids is None:
            raise UnsupportedError(f"an accelerated encoder starts from input_ids, not from inputs_embeds: {UNDO}")
        if self.base.training:
            raise UnsupportedError("an accelerated encoder does not train: deberta_c.restore(model), or model.eval()")
        table = self.base.embeddings.word_embeddings.weight
        if table is not self.table or table.data_ptr() != self.place:
            raise UnsupportedError("the word embeddings are others than those that the library took over: deberta_c.restore(model) and accelerate it again")
        if input_ids.dim() != 2 or input_ids.dtype not in (torch.int64, torch.int32):
            raise ArgumentError(f"input_ids is {input_ids.dtype} {list(input_ids.shape)}, expected integers [texts, tokens]")
        unknown = [name for name, value in others.items() if value is not None and name not in ("use_cache",)]
        if unknown:
            raise UnsupportedError(f"an accelerated encoder does not know {', '.join(unknown)}")

    def forward(self, input_ids: Any = None, attention_mask: Any = None, token_type_ids: Any = None, position_ids: Any = None,
                inputs_embeds: Any = None, output_attentions: Optional[bool] = None, output_hidden_states: Optional[bool] = None,
                return_dict: Optional[bool] = None, **others: Any) -> Any:
        from transformers.modeling_outputs import BaseModelOutput

        self.refuse(input_ids, inputs_embeds, others)
        config, shape = self.base.config, tuple(input_ids.shape)
        attentions = config.output_attentions if output_attentions is None else output_attentions
        hidden = config.output_hidden_states if output_hidden_states is None else output_hidden_states
        types = None if token_type_ids is None else _numbers(token_type_ids, shape, "token_type_ids")
        positions = None if position_ids is None else _numbers(position_ids, shape, "position_ids")
        ragged = _Ragged(input_ids.detach().numpy(), _mask(attention_mask, shape), types, positions)
        with self.session.working():
            last, states, maps = self._encode(ragged, bool(hidden), bool(attentions))
        out = BaseModelOutput(last_hidden_state=last, hidden_states=states, attentions=maps)
        return out if (config.return_dict if return_dict is None else return_dict) else out.to_tuple()

    def _tensor(self, values: np.ndarray) -> Any:
        import torch

        return torch.from_numpy(values).to(self.dtype)

    def _encode(self, ragged: _Ragged, hidden: bool, attentions: bool) -> Tuple[Any, Any, Any]:
        session, layers = self.session, self.session.layers
        wanted = {layer: {PROBABILITIES: range(session.heads)} for layer in range(layers * attentions)}
        capture = Capture(ragged.batch, session, range(layers + 1) if hidden else [layers], wanted)
        if len(ragged.texts):
            for _ in session.parts(ragged.batch, LARGEST_BATCH, capture=capture):
                pass
        states = tuple(self._tensor(ragged.pad(capture.hidden[layer])) for layer in sorted(capture.hidden))
        maps = tuple(self._tensor(ragged.pad_maps(capture.attention[layer, PROBABILITIES], session.heads)) for layer in wanted)
        return states[-1], states if hidden else None, maps if attentions else None


def _refusing(what: str) -> Any:
    def refuse(_self: Any, *_arguments: Any, **_options: Any) -> Any:
        raise UnsupportedError(f"an accelerated encoder {what}")
    return refuse


def _stand_in(accelerated: _Accelerated) -> Any:
    """What takes the encoder's place: nothing to train, to move or to store."""
    import torch

    class AcceleratedEncoder(torch.nn.Module):
        state_dict = _refusing(f"has given its weights to the library: {UNDO}, then store it")
        __deepcopy__ = _refusing(f"cannot be copied: {UNDO}")
        __reduce_ex__ = _refusing(f"cannot be pickled: {UNDO}")
        forward = _refusing("runs as a whole, from input_ids: call the model, not its encoder")

        def train(self, mode: bool = True) -> Any:
            return _refusing(f"does not train: {UNDO}")(self) if mode else super().train(mode)

        def extra_repr(self) -> str:
            return f"deberta_c {library.version().decode()}"

    made = AcceleratedEncoder().eval()
    object.__setattr__(made, "accelerated", accelerated)
    return made


def _of(holder: Any) -> List[_Accelerated]:
    return [base.encoder.accelerated for base in _bases(holder) if hasattr(base.encoder, "accelerated")]


def accelerate(model: Any, isa: Optional[str] = None, threads: Optional[int] = None, precision: str = "float32") -> Any:
    """Runs the encoder of a transformers model by this library, for inference on the CPU. Gives back what it was given.

    model: a DebertaModel or DebertaV2Model, or anything that holds one: a model with a head, a pipeline, a CrossEncoder, a GLiNER
    model. Outputs are as before (last_hidden_state, hidden_states, attentions); rows of padding are zero. Texts of unequal lengths
    are computed without their padding. Weights are handed over in memory and then held once, by the library, until restore(model).
    float16 and bfloat16 weights are computed with in float32. precision: "int16" or "int8" for linear layers of integers
    (docs/precision.md); what these were made of is then kept as well.

    Refused with a sentence: training, inputs_embeds, masks of other values than 0 and 1, a change of dtype or device.
    """
    one_of("precision", precision, *abi.PRECISIONS)
    bases = [base for base in _bases(model) if not hasattr(base.encoder, "accelerated")]
    for base in bases:
        _Accelerated(base, isa, threads, precision)
    if bases:
        _give_back()
    return model


def _give_back() -> None:
    """Weights that were let go return to the system: glibc keeps freed blocks below its threshold."""
    gc.collect()
    trim = getattr(c.CDLL(None), "malloc_trim", None)
    if trim:
        trim(0)


def restore(model: Any) -> Any:
    """Undoes accelerate(model): the encoder of PyTorch, with the same bits in its weights. Gives back what it was given."""
    for one in _of(model):
        one.undo()
    return model
