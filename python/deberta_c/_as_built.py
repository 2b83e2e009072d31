"""Is a base model what transformers builds from its config, and nothing besides? SPDX-License-Identifier: MIT

The library runs what a config describes. A module may do something else: another class, another constant, a hook, a method of its own.
So the base is compared, module by module, with the one that transformers would build, and last a few tokens are run by both."""
from __future__ import annotations

import copy
import functools
import sys
from typing import Any, Dict, Iterator, Tuple

import torch

from ._abi import UnsupportedError

BASES = ("DebertaModel", "DebertaV2Model")
DTYPES = (torch.float32, torch.float16, torch.bfloat16, torch.float64)  # in the order of deberta_dtype
WRITTEN_BY = ("transformers", "torch")  # packages whose code the library replaces
# Attributes of a module that its output does not depend on, in eval mode.
WITHOUT_EFFECT = {"config", "p", "inplace", "padding_idx", "norm_type", "scale_grad_by_freq", "sparse", "gradient_checkpointing", "training"}
OF_TORCH = set(vars(torch.nn.Module())) | {"_compiled_call_impl"}
HOOKS = {"_forward_hooks": "a forward hook", "_forward_pre_hooks": "a forward pre-hook", "_backward_hooks": "a backward hook",
         "_backward_pre_hooks": "a backward pre-hook"}
GLOBAL_HOOKS = tuple(f"_global{name}" for name in HOOKS)
# Relative errors that the probe allows, for each type of weights in PyTorch and each precision of the library.
PROBE_TOKENS = 12
PROBE_ERROR = {torch.float64: 1e-3, torch.float32: 1e-3, torch.float16: 0.05, torch.bfloat16: 0.3}
PRECISION_ERROR = {"float32": 0.0, "int16": 0.01, "int8": 0.3}


def _called(thing: Any) -> str:
    kind = thing if isinstance(thing, type) else type(thing)
    return f"{kind.__module__}.{kind.__qualname__}"


def _named(name: str, base: Any) -> str:
    return f"'{name}'" if name else type(base).__name__


def is_base(module: Any) -> bool:
    """Returns true for a base model of transformers or a class derived from one."""
    return any(one.__name__ in BASES and one.__module__.startswith("transformers.") for one in type(module).__mro__)


def check(base: Any) -> None:
    """Refuses a base that differs from what transformers builds, without computing anything."""
    _check_kind(base)
    _check_tensors(base)
    expected = _as_built(base)
    _check_modules(base, expected)
    _check_parameters(base, expected)
    for name, module in base.named_modules():
        check_unhooked(_named(name, base), module, top=module is base)
    _check_code(base)


def _check_kind(base: Any) -> None:
    kind = type(base)
    if kind.__name__ not in BASES or not kind.__module__.startswith("transformers."):
        raise UnsupportedError(f"{_called(kind)} is derived from a model of transformers, and may do other things than it: only "
                               f"{' and '.join(BASES)} themselves are accelerated")
    if base.training:
        raise UnsupportedError(f"{kind.__name__} is in training mode, where dropout and gradients are needed: call eval() first")
    for name, module in base.named_modules():
        if module.training and isinstance(module, torch.nn.Dropout):
            raise UnsupportedError(f"'{name}' is in training mode, so that values are dropped: call eval() of the model first")
    if getattr(base, "z_steps", 0) > 1:
        raise UnsupportedError(f"{kind.__name__} runs its last layer {base.z_steps} times (z_steps), which is not done here")


def _check_tensors(base: Any) -> None:
    for name, weight in base.named_parameters():
        if weight.device.type != "cpu" or weight.dtype not in DTYPES or weight.layout is not torch.strided:
            raise UnsupportedError(f"{type(base).__name__}: '{name}' is {weight.dtype} on {weight.device}{_layout(weight)}, expected float32, "
                                   "float16, bfloat16 or float64 on the CPU")
        if type(weight) is not torch.nn.Parameter or weight.is_neg():
            raise UnsupportedError(f"{type(base).__name__}: '{name}' is a {_called(weight)}, expected plain parameters of torch")
        if weight.numel() > 1 and not any(weight.stride()):
            raise UnsupportedError(f"{type(base).__name__}: '{name}' is one number for all its values, as where another accelerated model has been "
                                   "given it: deberta_c.restore() that one first")


def _layout(weight: Any) -> str:
    return "" if weight.layout is torch.strided else f" ({weight.layout})"


def _as_built(base: Any) -> Any:
    """Returns the base that transformers builds from the same config, without memory for its weights."""
    try:
        with torch.device("meta"):
            return type(base)(copy.deepcopy(base.config)).eval()
    except Exception as reason:  # noqa: BLE001: a config can raise anything in transformers
        raise UnsupportedError(f"transformers builds no {type(base).__name__} from the model's own config ({reason}), so what it is "
                               "cannot be checked") from None


# -------------------------------------------------------------------------------------------------------------- modules


def _check_modules(base: Any, expected: Any) -> None:
    found, known = (dict(one.named_modules(remove_duplicate=False)) for one in (base, expected))
    for name, module in found.items():  # from the outside in, so that the outermost unknown module is named
        if name not in known:
            raise UnsupportedError(f"'{name}' ({_called(module)}) is no module of transformers' {type(base).__name__}{_help(module)}")
        if name:
            _check_module(name, module, known[name])
    for name, module in known.items():
        if name not in found:
            raise UnsupportedError(f"'{name}' is missing, a {_called(module)}, which the model's config asks for")


def _check_module(name: str, module: Any, expected: Any) -> None:
    if type(module) is not type(expected) and not (isinstance(expected, torch.nn.Dropout) and type(module) is torch.nn.Identity):
        raise UnsupportedError(f"'{name}' is a {_called(module)}, expected {_called(expected)}, as transformers builds it{_help(module)}")
    for attribute, value in constants(expected).items() if type(module) is type(expected) else ():
        own = vars(module).get(attribute, "nothing")
        if not _same(own, value):
            raise UnsupportedError(f"'{name}': {attribute} is {_short(own)}, but {_short(value)} where transformers builds it from the "
                                   "model's config; make both the same")


def constants(module: Any) -> Dict[str, Any]:
    """Returns the attributes of a module, beside tensors and modules, that its output may depend on."""
    return {name: value for name, value in vars(module).items()
            if name not in OF_TORCH and name not in WITHOUT_EFFECT and not name.startswith("_is_hf")}


def _same(a: Any, b: Any) -> bool:
    if hasattr(a, "__func__") and hasattr(b, "__func__"):
        return a.__func__ is b.__func__
    if type(a) is type(b) is functools.partial:  # two partials are never equal, as with hidden_act "gelu_pytorch_tanh"
        return _same(a.func, b.func) and _same(a.args, b.args) and _same(a.keywords, b.keywords)
    try:
        return a is b or (type(a) is type(b) and bool(a == b))
    except (TypeError, ValueError, RuntimeError):
        return False


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."


def _help(module: Any) -> str:
    """Returns advice by the class names of known libraries."""
    inside = " ".join([_called(module), *(name for name, _ in module.named_parameters())]).lower()
    if "lora" in inside or "peft." in inside:
        return "; merge adapters into the weights first (peft: merge_and_unload())"
    if "adapter" in inside:
        return "; take adapters out, or merge them into the weights, first"
    if "quant" in inside:
        return "; accelerate the model before it is quantized (precision=\"int8\")"
    if "parametriz" in inside:
        return "; torch.nn.utils.parametrize.remove_parametrizations() first"
    return ""


def _check_parameters(base: Any, expected: Any) -> None:
    known = {name: tensor.shape for one in (expected.named_parameters, expected.named_buffers) for name, tensor in one(remove_duplicate=False)}
    for kind, tensors in (("parameter", base.named_parameters), ("buffer", base.named_buffers)):
        for name, tensor in tensors(remove_duplicate=False):
            if name not in known:
                raise UnsupportedError(f"'{name}' is no {kind} of transformers' {type(base).__name__}: it would not be used{_help(base)}")
            if kind == "buffer" and not (tensor.shape == known[name] and torch.equal(tensor[0], torch.arange(tensor.shape[-1]))):
                raise UnsupportedError(f"'{name}' was changed, expected 0, 1, 2, ... as transformers makes it")


# ---------------------------------------------------------------------------------------------------------- hooks, code


def check_unhooked(name: str, module: Any, top: bool = False) -> None:
    """Refuses hooks that would never be called, and methods that an instance has instead of its class. The top of a base is called as
    ever, so its own hooks stay."""
    for attribute, what in {} if top else HOOKS.items():
        for hook in getattr(module, attribute, {}).values():
            raise UnsupportedError(f"{name} has {what} ({getattr(hook, '__qualname__', _called(hook))}), which would not be called: remove it "
                                   "first, and deberta_c.accelerate again")
    for attribute, value in vars(module).items():
        if attribute not in OF_TORCH and callable(value) and callable(getattr(type(module), attribute, None)):
            raise UnsupportedError(f"{name} has a method of its own in place of its class's: {attribute} "
                                   f"({getattr(value, '__qualname__', _called(value))}), which would not be called: delete it first")


def check_no_global_hooks() -> None:
    """Refuses hooks on all modules of the process, which profilers set."""
    for name in GLOBAL_HOOKS:
        for hook in getattr(torch.nn.modules.module, name, {}).values():
            raise UnsupportedError(f"a hook of all modules is registered ({getattr(hook, '__qualname__', _called(hook))}), which an accelerated "
                                   "encoder does not call: remove it, or deberta_c.restore(model) first")


def _functions(base: Any) -> Iterator[Tuple[str, Any]]:
    """Yields all code that computes: the functions of the module that defines the base, and the methods of its classes."""
    home = vars(sys.modules[type(base).__module__])
    yield from ((f"{type(base).__module__}.{name}", one) for name, one in home.items())
    kinds: Dict[type, None] = {type(base): None}
    for module in base.modules():
        if module is not base:
            kinds.update((kind, None) for kind in type(module).__mro__ if kind not in (torch.nn.Module, object))
    for kind in kinds:
        yield from ((f"{_called(kind)}.{name}", one) for name, one in vars(kind).items())


def _check_code(base: Any) -> None:
    for name, function in _functions(base):
        written = getattr(function, "__globals__", {}).get("__name__", WRITTEN_BY[0])
        if written.split(".")[0] not in WRITTEN_BY:
            raise UnsupportedError(f"{name} was replaced by a function of {written}, which would not be called: put transformers' own back first")


# ---------------------------------------------------------------------------------------------------------------- probe


def check_probe(base: Any, precision: str, encode: Any) -> None:
    """Runs a few tokens in PyTorch and by encode(ids, mask): whatever the checks by name do not see shows in the last hidden state."""
    tokens = max(1, min(PROBE_TOKENS, base.config.max_position_embeddings))
    ids = torch.linspace(0, base.config.vocab_size - 1, 2 * tokens, device="cpu").long().view(2, tokens)
    mask = torch.ones_like(ids)
    mask[1, tokens - tokens // 3:] = 0
    try:
        with torch.no_grad(), torch.autocast("cpu", enabled=False):
            expected = type(base).forward(base, input_ids=ids, attention_mask=mask, return_dict=True).last_hidden_state
    except RuntimeError as reason:
        if "not implemented for" in str(reason):
            return  # PyTorch lacks this type on this processor, the library does not
        raise UnsupportedError(f"PyTorch itself does not run this {type(base).__name__} ({reason})") from None
    before, after = (tensor[mask.bool()].double() for tensor in (expected, encode(ids, mask)))
    if not after.isfinite().all():
        raise UnsupportedError(f"the hidden states of this {type(base).__name__} are no finite numbers")
    if not before.isfinite().all():
        return  # PyTorch overflows in this type where the library does not, so there is nothing to compare with
    rounds = torch.get_float32_matmul_precision() != "highest"  # PyTorch may then multiply in bfloat16
    bar = PROBE_ERROR[torch.bfloat16 if rounds else expected.dtype] + PRECISION_ERROR[precision]
    error = float((after - before).norm() / before.norm().clamp_min(1e-30))
    if not error <= bar:
        why = "something changes what it computes" if precision == "float32" else \
            f"the weights may be too large for the rounding of precision={precision!r}; precision=\"float32\" tells whether something else changes what it computes"
        raise UnsupportedError(f"{type(base).__name__} gives other hidden states in PyTorch than the library has for the same weights: a "
                               f"difference of {error:.1e} over {ids.numel()} tokens, at most {bar:.0e} expected; {why}")
