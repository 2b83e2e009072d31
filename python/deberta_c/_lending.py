"""An encoder of transformers that has lent its weights to the library. SPDX-License-Identifier: MIT

The base model (DebertaModel, DebertaV2Model) keeps its embeddings, of which the library reads the word table where it lies; the weights of
its encoder are handed over, and come back when it is undone. Heads stay as they are: they get the last hidden state from us."""
from __future__ import annotations

import json
from typing import Any, Dict, Iterator, List, Optional, Tuple

import numpy as np
import torch
from transformers.modeling_outputs import BaseModelOutput

from . import _abi as abi, _as_built as as_built, _under_way as under_way
from ._abi import ArgumentError, UnsupportedError, library, thread_count
from ._as_built import DTYPES
from ._inputs import address
from ._ragged import Ragged, kind_of, numbers, values_of
from ._session import Capture, Session, Sessions

PROBABILITIES = abi.COMPONENTS.index("probs")
POOLER = "ContextPooler"  # class of transformers' classifiers and multiple choice
LARGEST_BATCH = 4096  # tokens that are encoded together: more saves no time, and takes memory
NOT_THE_ENCODER_S = ("architectures", "id2label", "label2id", "num_labels")  # keys of a configuration
UNDO = "deberta_c.restore(model) first"
AGAIN = "deberta_c.restore(model) and accelerate it again"
WHOLE = (torch.int64, torch.int32)


def _modules(holder: Any) -> List[Any]:
    """Returns the torch modules that a pipeline, a CrossEncoder, a GLiNER model holds, each once."""
    return list({id(module): module for module in _held(holder, 0, True)}.values())


def _held(holder: Any, depth: int, look_around: bool) -> Iterator[Any]:
    """Follows .model, and at most once attributes of any name (.client, ._model), as classes of other libraries have them."""
    if isinstance(holder, torch.nn.Module):
        yield from holder.modules()
    elif depth < 3 and hasattr(holder, "model"):
        yield from _held(holder.model, depth + 1, look_around)
    elif depth < 3 and look_around and hasattr(holder, "__dict__"):
        private = getattr(holder, "__pydantic_private__", None) or {}
        for one in (*vars(holder).values(), *private.values()):
            yield from _held(one, depth + 1, False)


def bases(holder: Any) -> List[Any]:
    found = [module for module in _modules(holder) if as_built.is_base(module)]
    if not found:
        raise UnsupportedError(f"{type(holder).__name__} holds no DebertaModel or DebertaV2Model of transformers in itself, in .model or in an "
                               "attribute: where one is further inside, give the model inside")
    return found


def check(holder: Any, base: Any) -> None:
    """Refuses, before anything is changed, whatever the library would compute differently from PyTorch."""
    as_built.check(base)
    as_built.check_no_global_hooks()
    others = {id(one) for other in bases(holder) if other is not base for one in other.encoder.parameters()}
    if any(id(one) in others for one in base.encoder.parameters()):
        raise UnsupportedError(f"two {type(base).__name__} here have parameters of their encoders in common, which are handed over one by one: give "
                               "one of them a copy first")
    lent, inside = {id(one) for one in base.encoder.parameters()}, {id(one) for one in base.encoder.modules()}
    for module in _modules(holder):
        for name, parameter in module.named_parameters(recurse=False):
            if id(parameter) in lent and id(module) not in inside:
                raise UnsupportedError(f"'{name}' of a {type(module).__name__} beside the encoder is one of the encoder's parameters, which are "
                                       "handed over: give it a copy first")


def guard(holder: Any, accelerated: "Accelerated") -> None:
    """Makes train(), half() and load_state_dict() of all holders of the base refuse before they change anything."""
    for module in _modules(holder):
        if module is not accelerated.encoder and any(accelerated.encoder is one for one in module.modules()):
            accelerated.guard(module)


def _open(base: Any, threads: Optional[int], precision: str) -> abi.Owned:
    """Opens the library's model of these weights, read in place; later only the word table is still needed."""
    weights = {name: tensor.detach() for name, tensor in base.named_parameters(remove_duplicate=False)}
    tensors = [(name.encode(), one.data_ptr(), DTYPES.index(one.dtype), one.dim(),
                *((abi.SIZE * max(one.dim(), 1))(*numbers) for numbers in (one.shape, one.stride()))) for name, one in weights.items()]
    config = {key: value for key, value in base.config.to_dict().items() if key not in NOT_THE_ENCODER_S}
    options = abi.sized(abi.ModelOptions, reference=abi.REFERENCES.index("hf"), threads=thread_count(threads),
                        precision=abi.PRECISIONS.index(precision))
    opened = abi.Owned(library.model_free, weights["embeddings.word_embeddings.weight"])  # keeps the table alive, whatever the module does
    name = getattr(base.config, "_name_or_path", "") or type(base).__name__
    library.model_open_memory(opened.handle, name.encode(), json.dumps(config, default=str).encode(), (abi.Tensor * len(tensors))(*tensors),
                              len(tensors), options)
    return opened


class _Lent:
    """Weights of an encoder that the library holds in its own order: let go here, and read back from it when they are wanted again. What
    does not come back bit by bit stays: differences in the last place as bytes (queries, which it holds scaled), what it folded whole.

    Meanwhile a parameter has its shape, but one NaN for all its values: whoever still reads it sees that, and PyTorch writes to no such
    tensor, filling apart, which is seen."""

    def __init__(self, encoder: Any, weights: abi.Owned) -> None:
        self.encoder, self.weights, self.kept = encoder, weights, {}  # {name: shape, difference or None, tensor or None}
        self.parameters = list(encoder.parameters())
        self.nothing = {one.dtype: torch.full((), float("nan"), dtype=one.dtype) for one in self.parameters}
        self.places = {one.data_ptr() for one in self.nothing.values()}
        try:
            for name, parameter in encoder.named_parameters():
                self._lend(name, parameter)
        except BaseException:  # also after Ctrl-C: released weights come back
            self.give_back()
            raise

    def _lend(self, name: str, parameter: Any) -> None:
        whole, back = parameter.data, self._read(name, parameter, parameter.shape)
        units = None if back is None else _bits(whole) - _bits(back)
        if units is None or not torch.equal(units, units.to(torch.int8)):
            self.kept[name] = (whole.shape, None, whole)
        else:
            self.kept[name] = (whole.shape, units.to(torch.int8) if units.any() else None, None)
        parameter.data = self.nothing[whole.dtype].expand(whole.shape)

    def _read(self, name: str, parameter: Any, shape: Any) -> Any:
        """Returns a parameter as the library gives it back, or None."""
        found = np.empty(tuple(shape), np.float32)
        try:
            library.model_read_weight(self.weights.handle, f"encoder.{name}".encode(), address(found), found.size)
        except UnsupportedError:
            return None
        return torch.from_numpy(found).to(parameter.dtype)

    def untouched(self) -> bool:
        """Returns true if the lent parameters still hold their placeholder values."""
        return all(one.data_ptr() in self.places for one in self.parameters) and all(one.isnan() for one in self.nothing.values())

    def give_back(self) -> Any:
        for name, parameter in self.encoder.named_parameters():
            if parameter.data_ptr() not in self.places:
                continue  # it was given another value meanwhile, or was never released
            shape, difference, whole = self.kept[name]
            if whole is None:
                whole = self._read(name, parameter, shape)
            if difference is not None:
                whole = (_bits(whole) + difference).view(whole.dtype)
            parameter.data = whole
        return self.encoder


def _bits(values: Any) -> Any:
    """Returns the same bits as integers, which wrap around."""
    return values.contiguous().view(getattr(torch, f"int{8 * values.element_size()}"))


class _Embeddings:
    """Detects changes of tensors that stay in PyTorch and were read once. The word table is read in place."""

    def __init__(self, module: Any) -> None:
        self.module, self.table = module, module.word_embeddings.weight
        self.place, self.kinds = self.table.data_ptr(), self._kinds()
        self.values = {name: one.detach().clone() for name, one in module.named_parameters() if one is not self.table}

    def _kinds(self) -> List[Any]:
        return [(name, id(module), type(module), as_built.constants(module)) for name, module in self.module.named_modules()]

    def check(self, module: Any) -> None:
        found = dict(module.named_parameters())
        table = found.pop("word_embeddings.weight", None)
        if table is not self.table or table.data_ptr() != self.place:
            raise UnsupportedError(f"the word embeddings are others than those that the library took over: {AGAIN}")
        if module is not self.module or self._kinds() != self.kinds or list(found) != list(self.values):
            raise UnsupportedError(f"the modules of the embeddings are others than those that the library took over: {AGAIN}")
        for name, one in self.module.named_modules():
            as_built.check_unhooked(f"'embeddings{'.' * bool(name)}{name}'", one)
        for name, kept in self.values.items():
            if not torch.equal(found[name], kept):
                raise UnsupportedError(f"'embeddings.{name}' has other values than those that the library took over: {AGAIN}")


class _WithoutGradient(torch.autograd.Function):
    """Keeps outputs that require a gradient, as before, although none can be computed."""

    @staticmethod
    def forward(_context: Any, _anchor: Any, tensors: Any) -> Any:
        return tuple(tensors)

    @staticmethod
    def backward(_context: Any, *_gradients: Any) -> Any:
        raise UnsupportedError(f"no gradient flows through an accelerated encoder: {UNDO}; where the head alone shall learn, freeze the encoder "
                               "(requires_grad_(False)) before accelerate")


class Accelerated:
    """Replaces the forward of an accelerated base model, and is callable like it."""

    @torch.inference_mode(False)
    def __init__(self, base: Any, isa: Optional[str], threads: Optional[int], precision: str, sessions: int) -> None:
        self.base, self.options = base, {"isa": isa, "threads": threads, "precision": precision, "sessions": sessions}
        self.is_pooled = self.is_said = False  # a classifier reads the first row; a note on masked first tokens was given
        self.guarded: List[Tuple[Any, Any]] = []  # modules whose methods are replaced, and what else is registered with them
        self.weights = _open(base, threads, precision)
        self.sessions = Sessions(self.weights, isa, threads, sessions)
        self.dtype = base.embeddings.word_embeddings.weight.dtype
        self.embeddings, self.encoder = _Embeddings(base.embeddings), base.encoder
        self.lent: Optional[_Lent] = None
        as_built.check_probe(base, precision, self._probe)

    @torch.inference_mode(False)
    def take_over(self) -> None:
        """Lets PyTorch's weights go; until then the base is as it was. New calls are the library's at once, those that PyTorch has begun
        come to their end before."""
        self.base.forward, self.base._apply = self.forward, self.apply
        under_way.wait(self.base, self.encoder, type(self).forward)
        with self.sessions.alone():
            self.lent = _Lent(self.encoder, self.weights)
            self.encoder = AcceleratedEncoder(self).eval()
            self.base.encoder = self.encoder

    def _probe(self, ids: Any, mask: Any) -> Any:
        with self.sessions.one() as session:
            assert session
            return self._encode(session, Ragged(ids.numpy(), mask.numpy(), None, None), False, False)[0]

    @torch.inference_mode(False)  # inside inference mode weights would come back as tensors that cannot be trained
    def undo(self) -> None:
        with self.sessions.closing():
            if self.lent:
                self.base.encoder = self.encoder = self.lent.give_back()
            for name, method in (("forward", self.forward), ("_apply", self.apply)):
                if vars(self.base).get(name) == method:  # not if it has been wrapped since, in a wrapper that calls PyTorch's
                    delattr(self.base, name)
        self.weights.close()  # after its sessions
        for module, registered in self.guarded:
            registered.remove()
            if not any(isinstance(one, AcceleratedEncoder) for one in module.modules()):
                for name in GUARDED:
                    if getattr(vars(module).get(name), "__module__", None) == __name__:
                        delattr(module, name)

    def check_unwrapped(self) -> None:
        """Refuses where somebody put a method of their own around this one's, which accelerating again would take away."""
        for name, method in (("forward", self.forward), ("_apply", self.apply)):
            if vars(self.base).get(name) != method:
                raise UnsupportedError(f"'{name}' of {type(self.base).__name__} was replaced after the model was accelerated: {UNDO}")

    def succeed(self, other: "Accelerated") -> None:
        """Takes the place of another one of the same base: for its holders, and with what it has said."""
        for module, _ in other.guarded:
            self.guard(module)
        self.is_said = other.is_said

    def guard(self, module: Any) -> None:
        if any(module is one for one, _ in self.guarded):
            return
        for name, replacement in GUARDED.items():
            if name not in vars(module):
                setattr(module, name, replacement(module))
        self.is_pooled |= any(type(one).__name__ == POOLER for one in module.modules())
        refuse = _RefuseWeights([f"{name}." if name else "" for name, one in module.named_modules(remove_duplicate=False) if one is self.base])
        register = getattr(module, "register_load_state_dict_pre_hook", None)
        self.guarded.append((module, register(refuse) if register else module._register_load_state_dict_pre_hook(refuse, with_module=True)))

    def apply(self, fn: Any, *arguments: Any, **options: Any) -> Any:
        """Refuses to(), half(), share_memory() of the base, which must not change even in part."""
        self.check_move(fn)
        return self.base

    def check_move(self, fn: Any) -> None:
        moved = fn(torch.zeros(1, dtype=self.dtype))
        if moved.device.type != "cpu" or moved.dtype != self.dtype:
            raise UnsupportedError(f"an accelerated encoder stays {self.dtype} on the CPU, it cannot become {moved.dtype} on {moved.device}: {UNDO}")

    def refuse(self, input_ids: Any, inputs_embeds: Any, others: Dict[str, Any]) -> None:
        if inputs_embeds is not None or input_ids is None:
            raise UnsupportedError(f"an accelerated encoder starts from input_ids, not from inputs_embeds: {UNDO}")
        if self.base.training:
            raise UnsupportedError("an accelerated encoder does not train: deberta_c.restore(model), or model.eval()")
        if not isinstance(input_ids, torch.Tensor) or input_ids.dim() != 2 or input_ids.dtype not in WHOLE or input_ids.device.type != "cpu":
            raise ArgumentError(f"input_ids is {kind_of(input_ids)}, expected integers [texts, tokens] on the CPU")
        if not input_ids.numel():
            raise ArgumentError(f"input_ids is {kind_of(input_ids)}: there is no token in it")
        unknown = [name for name, value in others.items() if value is not None and name != "use_cache"]
        if unknown:
            raise UnsupportedError(f"an accelerated encoder does not know {', '.join(unknown)}: {UNDO}")
        if getattr(self.base, "z_steps", 0) > 1 or self.base.encoder is not self.encoder or not (self.lent is None or self.lent.untouched()):
            raise UnsupportedError(f"the encoder was changed after the library took it over: {AGAIN}")
        self.embeddings.check(self.base.embeddings)
        as_built.check_no_global_hooks()

    def forward(self, input_ids: Any = None, attention_mask: Any = None, token_type_ids: Any = None, position_ids: Any = None,
                inputs_embeds: Any = None, output_attentions: Optional[bool] = None, output_hidden_states: Optional[bool] = None,
                return_dict: Optional[bool] = None, **others: Any) -> Any:
        if torch.jit.is_tracing() or getattr(torch.compiler, "is_exporting", bool)():
            raise UnsupportedError(f"an accelerated encoder cannot be traced or exported (torch.jit.trace, torch.export, torch.onnx): {UNDO}")
        given = {"attention_mask": attention_mask, "token_type_ids": token_type_ids, "position_ids": position_ids}
        config = self.base.config
        attentions = bool(config.output_attentions if output_attentions is None else output_attentions)
        hidden = bool(config.output_hidden_states if output_hidden_states is None else output_hidden_states)
        with self.sessions.one() as session:
            if session is None:  # it was restored while this call waited
                return self._restored(input_ids, inputs_embeds=inputs_embeds, output_attentions=output_attentions,
                                      output_hidden_states=output_hidden_states, return_dict=return_dict, **given, **others)
            self.refuse(input_ids, inputs_embeds, others)
            shape = tuple(input_ids.shape)
            ragged = Ragged(values_of(input_ids), *(numbers(tensor, shape, name) for name, tensor in given.items()))
            self.check_first(ragged)
            last, states, maps = self._encode(session, ragged, hidden, attentions)
        if torch.is_grad_enabled() and self.wants_gradient():
            last, states, maps = _without_gradient(last, states, maps)
        out = BaseModelOutput(last_hidden_state=last, hidden_states=states, attentions=maps)
        return out if (config.return_dict if return_dict is None else return_dict) else out.to_tuple()

    def _restored(self, *arguments: Any, **options: Any) -> Any:
        """Calls PyTorch, or the library if the base was accelerated again meanwhile. The call is registered before base.forward is read, and
        take_over writes base.forward before it reads the register: one of them sees the other, so that no weight goes while it is read."""
        with under_way.registered(self.base):
            other = getattr(vars(self.base).get("forward"), "__self__", None)
            if not isinstance(other, Accelerated) or other is self:
                return type(self.base).forward(self.base, *arguments, **options)
        return other.forward(*arguments, **options)

    def check_first(self, ragged: Ragged) -> None:
        """Refuses a text whose first token is masked, or all of them: its first row is zero, and no head may answer from that."""
        late = np.flatnonzero(~ragged.mask[:, 0])
        if not len(late):
            return
        text, some = late[0], ragged.mask[late[0]].any()
        if self.is_pooled:
            way = "pad on the right (tokenizer.padding_side)" if some else "the mask keeps no token of it; leave the text out"
            raise UnsupportedError(f"the first token of text {text} is masked, which the classifier reads: {way}, or {UNDO}")
        if not self.is_said:
            self.is_said = True
            abi.note(f"the first token of text {text} is masked: " + ("leading holes are padding, whose rows are zero; a head must read the first token that the "
                     "mask keeps" if some else "the mask keeps no token of it, and all its rows are zero; no head may read them"))

    def wants_gradient(self) -> bool:
        weights = self.encoder.parameters() if self.lent is None else self.lent.parameters
        return any(one.requires_grad for one in (*self.embeddings.module.parameters(), *weights))

    def describe(self) -> Dict[str, Any]:
        """Returns how it runs."""
        with self.sessions.one() as session:
            assert session
            handle = session.prepare()
            return {"threads": int(library.session_threads(handle)), "isa": library.isa_name(library.session_isa(handle)).decode()}

    def memory_bytes(self) -> int:
        """Returns the library's memory: weights, and a session."""
        with self.sessions.one() as session:
            assert session
            return int(library.model_describe(self.weights.handle).contents.memory_bytes + library.session_memory_bytes(session.prepare()))

    def check_options(self, **asked: Any) -> None:
        """Refuses another accelerate() with different options for a base that is accelerated already."""
        for name, value in asked.items():
            if value != self.options[name]:
                raise UnsupportedError(f"the model is accelerated already, with {name}={self.options[name]!r}, not {value!r}: {UNDO}")

    def _tensor(self, values: np.ndarray) -> Any:
        return torch.from_numpy(values).to(self.dtype)

    def _encode(self, session: Session, ragged: Ragged, hidden: bool, attentions: bool) -> Tuple[Any, Any, Any]:
        layers = session.layers
        wanted = {(layer, PROBABILITIES): range(session.heads) for layer in range(layers * attentions)}
        capture = Capture(ragged.batch, session, range(layers + 1) if hidden else [layers], wanted)
        if len(ragged.texts):
            for _ in session.parts(ragged.batch, LARGEST_BATCH, capture=capture):
                pass
        states = tuple(self._tensor(ragged.pad(rows)) for rows in capture.hidden.values())
        maps = tuple(self._tensor(ragged.pad_maps(matrices, session.heads)) for matrices in capture.attention.values())
        return states[-1], states if hidden else None, maps if attentions else None


def _without_gradient(last: Any, states: Any, maps: Any) -> Tuple[Any, Any, Any]:
    """Returns states with the last hidden state as the last of all, if these are there, as before."""
    first = states or (last,)
    found = _WithoutGradient.apply(torch.empty(0, requires_grad=True), [*first, *(maps or ())])
    return found[len(first) - 1], states and found[:len(first)], maps and found[len(first):]


TAKES_NO_WEIGHTS = f"takes no weights (load_state_dict): {UNDO}"


def _guarded_train(module: Any) -> Any:
    def train(mode: bool = True) -> Any:
        return _refusing(f"does not train: {UNDO}")(module) if mode else type(module).train(module, mode)
    return train


def _guarded_apply(module: Any) -> Any:
    """Refuses before modules that were registered earlier than the encoder are moved."""
    def apply(fn: Any, *arguments: Any, **options: Any) -> Any:
        for one in module.modules():
            if isinstance(one, AcceleratedEncoder):
                one.accelerated.check_move(fn)
        return type(module)._apply(module, fn, *arguments, **options)
    return apply


def _guarded_requires_grad(module: Any) -> Any:
    """Freezes the lent parameters as well, which parameters() does not list: they come back as they are asked to be."""
    def requires_grad_(requires_grad: bool = True) -> Any:
        for one in module.modules():
            if isinstance(one, AcceleratedEncoder):
                one.requires_grad_(requires_grad)
        return type(module).requires_grad_(module, requires_grad)
    return requires_grad_


# Methods of the objects that hold the base, and what takes their place.
GUARDED = {"train": _guarded_train, "_apply": _guarded_apply, "requires_grad_": _guarded_requires_grad}


def _refusing(what: str) -> Any:
    def refuse(_self: Any, *_arguments: Any, **_options: Any) -> Any:
        raise UnsupportedError(f"an accelerated encoder {what}")
    return refuse


class _RefuseWeights:
    """A hook of a holder before load_state_dict; pickle and copy meet it before the encoder."""

    __reduce_ex__ = _refusing(f"cannot be pickled or copied: {UNDO}")

    def __init__(self, places: List[str]) -> None:
        self.places = places  # prefixes of the base inside the holder

    def __call__(self, module: Any, state: Any, prefix: str, *_others: Any) -> None:
        if any(name.startswith(prefix + place) for name in state for place in self.places):
            _refusing(TAKES_NO_WEIGHTS)(module)


class AcceleratedEncoder(torch.nn.Module):
    """Replaces the encoder: it has nothing to train, to move or to store."""

    load_state_dict = _refusing(TAKES_NO_WEIGHTS)
    state_dict = _refusing(f"has given its weights to the library, so it can be neither stored nor exported: {UNDO}")
    __deepcopy__ = _refusing(f"cannot be copied: {UNDO}")
    __reduce_ex__ = _refusing(f"cannot be pickled: {UNDO}")
    forward = _refusing(f"runs as a whole, from input_ids and a mask [texts, tokens] (GLiNER: without packing_config): {UNDO}")
    register_forward_hook = register_forward_pre_hook = register_full_backward_hook = register_full_backward_pre_hook = \
        register_backward_hook = _refusing(f"calls no hooks: {UNDO}")

    def __init__(self, accelerated: Accelerated) -> None:
        super().__init__()
        self.accelerated = accelerated

    def requires_grad_(self, requires_grad: bool = True) -> Any:
        """Is followed by the parameters that were lent."""
        for parameter in self.accelerated.lent.parameters if self.accelerated.lent else ():
            parameter.requires_grad_(requires_grad)
        return self

    def train(self, mode: bool = True) -> Any:
        return _refusing(f"does not train: {UNDO}")(self) if mode else super().train(mode)

    def _load_from_state_dict(self, state_dict: Any, prefix: str, *_others: Any) -> None:
        """Refuses to load weights, also as a part of a model that was not guarded."""
        if any(name.startswith(prefix) for name in state_dict):
            _refusing(TAKES_NO_WEIGHTS)(self)

    def __getattr__(self, name: str) -> Any:
        try:
            return super().__getattr__(name)
        except AttributeError:
            raise AttributeError(f"an accelerated encoder has no '{name}', its weights are with the library: {UNDO}") from None

    def extra_repr(self) -> str:
        return f"deberta_c {library.version().decode()}"
