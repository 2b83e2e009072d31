"""An encoder of transformers that has lent its weights to the library. SPDX-License-Identifier: MIT

The base model (DebertaModel, DebertaV2Model) keeps its embeddings, of which the library reads the word table where it lies; the weights of
its encoder are handed over, and come back when it is undone. Heads stay as they are: they get the last hidden state from us."""
from __future__ import annotations

import json
from typing import Any, Dict, Iterator, List, Optional, Tuple

import numpy as np
import torch
from transformers.modeling_outputs import BaseModelOutput

from . import _abi as abi
from ._abi import ArgumentError, UnsupportedError, library, whole_number
from ._inputs import INT32, SIZE, Batch, address
from ._session import Capture, Session

BASES = ("DebertaModel", "DebertaV2Model")
DTYPES = (torch.float32, torch.float16, torch.bfloat16, torch.float64)  # in the order of deberta_dtype
PROBABILITIES = abi.COMPONENTS.index("probs")
LARGEST_BATCH = 4096  # tokens that are encoded together: more saves nothing, and takes memory
NOT_THE_ENCODER_S = ("architectures", "id2label", "label2id", "num_labels")  # of a configuration
UNDO = "deberta_c.restore(model) first"


def _modules(holder: Any, depth: int = 0) -> Iterator[Any]:
    """The torch modules that a pipeline, a CrossEncoder, a GLiNER model holds."""
    if isinstance(holder, torch.nn.Module):
        yield from holder.modules()
    elif depth < 3 and hasattr(holder, "model"):
        yield from _modules(holder.model, depth + 1)


def bases(holder: Any) -> List[Any]:
    found = [module for module in _modules(holder)
             if any(one.__name__ in BASES and one.__module__.startswith("transformers.") for one in type(module).__mro__)]
    if not found:
        raise UnsupportedError(f"{type(holder).__name__} holds no DebertaModel or DebertaV2Model of transformers")
    return found


def _check(base: Any) -> None:
    name, table = type(base).__name__, base.embeddings.word_embeddings
    if base.training:
        raise UnsupportedError(f"{name} is in training mode, where dropout and gradients are needed: call eval() first")
    for weight_name, weight in base.state_dict().items():
        if weight.device.type != "cpu" or (weight.is_floating_point() and weight.dtype not in DTYPES):
            raise UnsupportedError(f"{name}: '{weight_name}' is {weight.dtype} on {weight.device}, expected float32, float16, bfloat16 or "
                                   "float64 on the CPU")
    if not isinstance(table, torch.nn.Embedding):
        raise UnsupportedError(f"{name}: its word embeddings are a {type(table).__name__}, expected torch.nn.Embedding")
    if getattr(base, "z_steps", 0) > 1:
        raise UnsupportedError(f"{name} runs its last layer {base.z_steps} times (z_steps), which is not done here")


def _open(base: Any, threads: Optional[int], precision: str) -> abi.Owned:
    """The library's model of these weights, read where they lie; nothing but the word table is needed of them afterwards."""
    weights = {name: tensor.detach() for name, tensor in base.state_dict().items() if tensor.is_floating_point()}
    tensors = [(name.encode(), one.data_ptr(), DTYPES.index(one.dtype), one.dim(),
                *((abi.SIZE * max(one.dim(), 1))(*numbers) for numbers in (one.shape, one.stride()))) for name, one in weights.items()]
    config = {key: value for key, value in base.config.to_dict().items() if key not in NOT_THE_ENCODER_S}
    options = abi.sized(abi.ModelOptions, reference=abi.REFERENCES.index("hf"), threads=whole_number("threads", threads, abi.MOST_THREADS),
                        precision=abi.PRECISIONS.index(precision))
    opened = abi.Owned(library.model_free, weights["embeddings.word_embeddings.weight"])  # keeps the table alive, whatever the module does
    name = getattr(base.config, "_name_or_path", "") or type(base).__name__
    library.model_open_memory(opened.handle, name.encode(), json.dumps(config, default=str).encode(), (abi.Tensor * len(tensors))(*tensors),
                              len(tensors), options)
    return opened


def _numbers(tensor: Any, shape: Tuple[int, ...], what: str) -> Optional[np.ndarray]:
    if tensor is None:
        return None
    if tuple(tensor.shape) not in (shape, (1, shape[1])):
        raise ArgumentError(f"{what} has shape {list(tensor.shape)}, expected {list(shape)}")
    return np.broadcast_to(tensor.detach().cpu().numpy(), shape)


class _Ragged:
    """A padded batch without its padding: of each text that has a token, what lies between its first and its last one."""

    def __init__(self, ids: np.ndarray, mask: Optional[np.ndarray], types: Optional[np.ndarray], positions: Optional[np.ndarray]) -> None:
        mask = np.ones(ids.shape, bool) if mask is None else mask
        self.mask, columns = mask.astype(bool), np.arange(ids.shape[1])
        if not np.array_equal(self.mask, mask):
            raise UnsupportedError("attention_mask holds other values than 0 and 1")
        some = self.mask.any(axis=1)
        self.begin, self.texts = self.mask.argmax(axis=1), np.flatnonzero(some)
        self.end = np.where(some, len(columns) - self.mask[:, ::-1].argmax(axis=1), 0)
        self.inside = (columns >= self.begin[:, None]) & (columns < self.end[:, None])
        self.kept = self.mask[self.inside]
        if positions is None and self.begin.any():
            positions = np.broadcast_to(columns, ids.shape)
        cut: List[Any] = [None if rows is None else np.ascontiguousarray(rows[self.inside], INT32) for rows in (ids, types, positions)]
        starts = np.append(0, np.cumsum((self.end - self.begin)[self.texts])).astype(SIZE)
        self.batch = Batch(cut[0], starts, cut[1], None if self.kept.all() else self.kept.view(np.uint8), cut[2])

    def pad(self, rows: np.ndarray) -> np.ndarray:
        """[tokens, h] as [texts, n, h], zero where the mask is."""
        if len(rows) == self.mask.size and self.kept.all():
            return rows.reshape(*self.mask.shape, -1)
        padded = np.zeros((*self.mask.shape, rows.shape[-1]), np.float32)
        padded[self.mask] = rows if self.kept.all() else rows[self.kept]
        return padded

    def pad_maps(self, matrices: Any, heads: int) -> np.ndarray:
        """[heads, n, n] of each text that has a token as [texts, heads, n, n]."""
        texts, n = self.mask.shape
        padded = np.zeros((texts, heads, n, n), np.float32)
        for text, matrix in zip(self.texts, matrices):
            place = slice(self.begin[text], self.end[text])
            padded[text, :, place, place] = matrix
        return padded


class _Lent:
    """Weights of an encoder that the library holds in its own order: let go here, and read back from it when they are wanted again. What
    does not come back bit by bit stays: differences in the last place as bytes (queries, which it holds scaled), what it folded whole."""

    def __init__(self, encoder: Any, weights: abi.Owned) -> None:
        self.encoder, self.weights, self.kept = encoder, weights, {}  # {name: shape, difference or None, tensor or None}
        for name, parameter in encoder.named_parameters():
            whole, back = parameter.data, self._read(name, parameter, parameter.shape)
            units = None if back is None else _bits(whole) - _bits(back)
            if units is None or not torch.equal(units, units.to(torch.int8)):
                self.kept[name] = (whole.shape, None, whole)
            else:
                self.kept[name] = (whole.shape, units.to(torch.int8) if units.any() else None, None)
                parameter.data = torch.empty(0, dtype=whole.dtype)

    def _read(self, name: str, parameter: Any, shape: Any) -> Any:
        """A parameter as the library gives it back, or None."""
        found = np.empty(tuple(shape), np.float32)
        try:
            library.model_read_weight(self.weights.handle, f"encoder.{name}".encode(), address(found), found.size)
        except UnsupportedError:
            return None
        return torch.from_numpy(found).to(parameter.dtype)

    def give_back(self) -> Any:
        for name, parameter in self.encoder.named_parameters():
            shape, difference, whole = self.kept[name]
            if whole is None:
                whole = self._read(name, parameter, shape)
            if difference is not None:
                whole = (_bits(whole) + difference).view(whole.dtype)
            parameter.data = whole
        return self.encoder


def _bits(values: Any) -> Any:
    """The same bits as integers, which wrap around."""
    return values.contiguous().view(getattr(torch, f"int{8 * values.element_size()}"))


class Accelerated:
    """Stands in for the forward of a base model; callable like it."""

    def __init__(self, base: Any, isa: Optional[str], threads: Optional[int], precision: str) -> None:
        _check(base)
        self.base, self.weights = base, _open(base, threads, precision)
        self.session = Session(self.weights, isa, threads)
        self.session.prepare()
        self.lent = _Lent(base.encoder, self.weights)
        self.table = base.embeddings.word_embeddings.weight
        self.dtype, self.place = self.table.dtype, self.table.data_ptr()
        base.encoder = AcceleratedEncoder(self).eval()
        base.forward, base._apply = self.forward, self.apply

    def undo(self) -> None:
        with self.session.working():
            self.base.encoder = self.lent.give_back()
            del self.base.forward, self.base._apply
            self.session.close()
            self.weights.close()

    def apply(self, fn: Any, *arguments: Any, **options: Any) -> Any:
        """to(), half(), share_memory() of the base: nothing may change, not even a part of it."""
        moved = fn(torch.zeros(1, dtype=self.dtype))
        if moved.device.type != "cpu" or moved.dtype != self.dtype:
            raise UnsupportedError(f"an accelerated encoder stays {self.dtype} on the CPU, it cannot become {moved.dtype} on {moved.device}: {UNDO}")
        return self.base

    def refuse(self, input_ids: Any, inputs_embeds: Any, others: Dict[str, Any]) -> None:
        if inputs_embeds is not None or input_ids is None:
            raise UnsupportedError(f"an accelerated encoder starts from input_ids, not from inputs_embeds: {UNDO}")
        if self.base.training:
            raise UnsupportedError("an accelerated encoder does not train: deberta_c.restore(model), or model.eval()")
        table = self.base.embeddings.word_embeddings.weight
        if table is not self.table or table.data_ptr() != self.place:
            raise UnsupportedError("the word embeddings are others than those that the library took over: deberta_c.restore(model) and "
                                   "accelerate it again")
        if input_ids.dim() != 2 or input_ids.dtype not in (torch.int64, torch.int32):
            raise ArgumentError(f"input_ids is {input_ids.dtype} {list(input_ids.shape)}, expected integers [texts, tokens]")
        unknown = [name for name, value in others.items() if value is not None and name != "use_cache"]
        if unknown:
            raise UnsupportedError(f"an accelerated encoder does not know {', '.join(unknown)}")

    def forward(self, input_ids: Any = None, attention_mask: Any = None, token_type_ids: Any = None, position_ids: Any = None,
                inputs_embeds: Any = None, output_attentions: Optional[bool] = None, output_hidden_states: Optional[bool] = None,
                return_dict: Optional[bool] = None, **others: Any) -> Any:
        self.refuse(input_ids, inputs_embeds, others)
        config, shape = self.base.config, tuple(input_ids.shape)
        attentions = config.output_attentions if output_attentions is None else output_attentions
        hidden = config.output_hidden_states if output_hidden_states is None else output_hidden_states
        given = {"attention_mask": attention_mask, "token_type_ids": token_type_ids, "position_ids": position_ids}
        ragged = _Ragged(input_ids.detach().numpy(), *(_numbers(tensor, shape, name) for name, tensor in given.items()))
        with self.session.working():
            last, states, maps = self._encode(ragged, bool(hidden), bool(attentions))
        out = BaseModelOutput(last_hidden_state=last, hidden_states=states, attentions=maps)
        return out if (config.return_dict if return_dict is None else return_dict) else out.to_tuple()

    def _tensor(self, values: np.ndarray) -> Any:
        return torch.from_numpy(values).to(self.dtype)

    def _encode(self, ragged: _Ragged, hidden: bool, attentions: bool) -> Tuple[Any, Any, Any]:
        session, layers = self.session, self.session.layers
        wanted = {(layer, PROBABILITIES): range(session.heads) for layer in range(layers * attentions)}
        capture = Capture(ragged.batch, session, range(layers + 1) if hidden else [layers], wanted)
        if len(ragged.texts):
            for _ in session.parts(ragged.batch, LARGEST_BATCH, capture=capture):
                pass
        states = tuple(self._tensor(ragged.pad(rows)) for rows in capture.hidden.values())
        maps = tuple(self._tensor(ragged.pad_maps(matrices, session.heads)) for matrices in capture.attention.values())
        return states[-1], states if hidden else None, maps if attentions else None


def _refusing(what: str) -> Any:
    def refuse(_self: Any, *_arguments: Any, **_options: Any) -> Any:
        raise UnsupportedError(f"an accelerated encoder {what}")
    return refuse


class AcceleratedEncoder(torch.nn.Module):
    """What takes the encoder's place: nothing to train, to move or to store."""

    state_dict = _refusing(f"has given its weights to the library: {UNDO}, then store it")
    __deepcopy__ = _refusing(f"cannot be copied: {UNDO}")
    __reduce_ex__ = _refusing(f"cannot be pickled: {UNDO}")
    forward = _refusing("runs as a whole, from input_ids: call the model, not its encoder")

    def __init__(self, accelerated: Accelerated) -> None:
        super().__init__()
        self.accelerated = accelerated

    def train(self, mode: bool = True) -> Any:
        return _refusing(f"does not train: {UNDO}")(self) if mode else super().train(mode)

    def extra_repr(self) -> str:
        return f"deberta_c {library.version().decode()}"
