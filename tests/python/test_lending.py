"""What may happen to a model that has lent its weights: loads, moves, restores, calls under way, classes around it. SPDX-License-Identifier: MIT"""
import copy
import functools
import io
import pickle
import threading
import time
import weakref

import pytest

import deberta_c
from conftest import refuses
from test_accelerate import SMALL, V1, V2, V3, made, padded, torch

from deberta_c import _as_built, _session, _under_way  # noqa: E402


def kept_of(model):
    """Whatever a refused call might have changed."""
    return {name: one.clone() for name, one in (*model.named_parameters(), *model.named_buffers()) if one.dim()}


def same(before, model):
    return all(torch.equal(one, before[name]) for name, one in (*model.named_parameters(), *model.named_buffers()) if one.dim())


class HeadFirst(torch.nn.Module):
    """Something is registered, and so moved and loaded, before the encoder."""

    def __init__(self):
        super().__init__()
        self.head = torch.nn.Linear(48, 3)
        self.model = made("DebertaV2Model", V2(**V3))

    def forward(self, input_ids, attention_mask):
        return self.head(self.model(input_ids, attention_mask).last_hidden_state[:, 0])


@pytest.mark.parametrize("strict", [True, False])
@pytest.mark.parametrize("kind", ["class of transformers", "head first", "base"])
def test_loaded_weights_are_refused_before_anything_is_copied(kind, strict):
    """Another encoder with the same embeddings would have been passed over in silence."""
    def one(seed):
        if kind == "head first":
            torch.manual_seed(seed)
            return HeadFirst().eval()
        return made("DebertaV2Model" if kind == "base" else "DebertaV2ForSequenceClassification", V2(**V3), seed)
    model, other, given = one(0), one(1), padded(3, 9, 200, 1)
    state = {name: value.clone() for name, value in other.state_dict().items()}
    deberta_c.accelerate(model)
    before = kept_of(model)
    with torch.no_grad():
        found = model(**given)
    for load in (lambda: model.load_state_dict(state, strict=strict), lambda: torch.nn.Sequential(model).load_state_dict({f"0.{k}": v for k, v in state.items()}, strict=strict)):
        refuses(deberta_c.UnsupportedError, "takes no weights", load)
        assert same(before, model)
    base = model if kind == "base" else model.model if kind == "head first" else model.deberta
    refuses(deberta_c.UnsupportedError, "takes no weights", base.encoder.load_state_dict, {}, strict=strict)
    with torch.no_grad():
        again = model(**given)
    assert torch.equal(*(out if torch.is_tensor(out) else out[0] for out in (found, again)))
    if kind != "base":  # a head by itself may be loaded
        head = {name: value for name, value in state.items() if name.startswith(("classifier", "head"))}
        assert head and not model.load_state_dict(head, strict=False).unexpected_keys
    deberta_c.restore(model).load_state_dict(state)
    assert all(torch.equal(value, state[name]) for name, value in model.state_dict().items())
    assert not model._load_state_dict_pre_hooks and not set(vars(model)) & {"train", "_apply"}


def test_a_refused_move_changes_nothing():
    model, given = deberta_c.accelerate(HeadFirst().eval()), padded(3, 9, 200, 1)
    outer = torch.nn.Sequential(torch.nn.Linear(2, 2), model)
    deberta_c.accelerate(outer)  # what holds more is guarded as well
    for one in (model, outer):
        for move in (one.half, one.double, lambda: one.to("meta"), lambda: one.to(torch.bfloat16)):
            refuses(deberta_c.UnsupportedError, "stays torch.float32 on the CPU", move)
        assert {p.dtype for p in outer.parameters()} == {torch.float32} and {p.device.type for p in outer.parameters()} == {"cpu"}
        refuses(deberta_c.UnsupportedError, "does not train", one.train)
    with torch.no_grad():
        assert model.to("cpu").float()(**given).isfinite().all()
    deberta_c.restore(outer)
    assert not any({"train", "_apply"} & set(vars(module)) for module in outer.modules())
    assert {p.dtype for p in outer.half().parameters()} == {torch.float16}


@pytest.mark.parametrize("kind", ["class of transformers", "head first", "base"])
def test_what_is_frozen_meanwhile_comes_back_frozen(kind):
    """The lent parameters are asked as well, and nothing of the model can be pickled or copied before it is restored."""
    model = {"class of transformers": lambda: made("DebertaV2ForSequenceClassification", V2(**V3)), "head first": HeadFirst,
             "base": lambda: made("DebertaV2Model", V2(**V3))}[kind]().eval()
    deberta_c.accelerate(model)
    for flag in (False, True, False):
        assert model.requires_grad_(flag) is model
    for copied in (pickle.dumps, copy.deepcopy, lambda one: torch.save(one, io.BytesIO())):
        refuses(deberta_c.UnsupportedError, "cannot be (pickled or )?copied|cannot be pickled", copied, model)
    deberta_c.restore(model)
    assert not any(one.requires_grad for one in model.parameters())
    model.requires_grad_(True)
    assert all(one.requires_grad for one in model.parameters()) and not {"train", "_apply", "requires_grad_"} & set(vars(model))
    torch.save(model, io.BytesIO())


def test_restored_in_inference_mode_it_trains():
    model, given = made("DebertaV2ForSequenceClassification", V2(**V3)), padded(3, 9, 200, 1)
    with torch.inference_mode():
        deberta_c.accelerate(model)
        model(**given)
        deberta_c.restore(model)
    assert not any(one.is_inference() for one in model.parameters())
    model.train()(**given, labels=torch.tensor([0, 1, 2])).loss.backward()
    assert all(one.grad is not None for name, one in model.named_parameters() if "encoder.layer" in name)


@pytest.mark.parametrize("name, config", [("DebertaV2Model", V2(**V3, hidden_act="gelu_pytorch_tanh")), ("DebertaModel", V1(**SMALL, hidden_act="gelu_pytorch_tanh"))])
def test_an_activation_that_is_a_partial(name, config):
    model, given = made(name, config), padded(3, 9, 200, 1)
    with torch.no_grad():
        before = model(**given).last_hidden_state
        after = deberta_c.accelerate(model)(**given).last_hidden_state
    assert (before - after)[given["attention_mask"].bool()].abs().max() < 3e-5
    gelu = functools.partial(torch.nn.functional.gelu, approximate="tanh")
    assert _as_built._same(gelu, functools.partial(torch.nn.functional.gelu, approximate="tanh"))
    assert not _as_built._same(gelu, functools.partial(torch.nn.functional.gelu, approximate="none")) and not _as_built._same(gelu, functools.partial(torch.nn.functional.relu))


def test_rounding_is_called_rounding():
    """Weights that are too large for a precision are no other computation."""
    model = made("DebertaV2Model", V2(**V3))
    for precision, words in (("int8", "at most 3e-01 expected; the weights may be too large for the rounding of precision='int8'; precision=.float32. tells"),
                             ("int16", "rounding of precision='int16'"), ("float32", "at most 1e-03 expected; something changes what it computes")):
        refuses(deberta_c.UnsupportedError, words, _as_built.check_probe, model, precision, lambda ids, mask: torch.zeros(*ids.shape, 48))


def test_a_call_under_way_comes_to_its_end(monkeypatch):
    """PyTorch's weights go only when no other thread multiplies by them; until then new calls are the library's already."""
    model, given = made("DebertaV2ForSequenceClassification", V2(**V3)), padded(3, 9, 200, 1)
    with torch.no_grad():
        plain = model(**given).logits
    entered, leave, found = threading.Event(), threading.Event(), {}
    layer = type(model.deberta.encoder.layer[0])
    forward = layer.forward

    def slow(self, *arguments, **options):
        entered.set()
        leave.wait(20)
        return forward(self, *arguments, **options)

    def call():
        with torch.no_grad():
            found["logits"] = model(**given).logits

    def accelerate():
        try:
            found["accelerated"] = deberta_c.accelerate(model)
        except deberta_c.Error as reason:
            found["accelerated"] = reason
    monkeypatch.setattr(layer, "forward", slow)
    caller = threading.Thread(target=call)
    caller.start()
    assert entered.wait(20)
    monkeypatch.setattr(layer, "forward", forward)
    other = threading.Thread(target=accelerate)
    other.start()
    time.sleep(0.3)
    assert "accelerated" not in found and not hasattr(model.deberta.encoder, "accelerated")
    with torch.no_grad():
        assert (model(**given).logits - plain).abs().max() < 1e-5  # by the library, while the other one waits
    leave.set()
    caller.join()
    other.join()
    assert found["accelerated"] is model and torch.equal(found["logits"], plain) and hasattr(model.deberta.encoder, "accelerated")
    deberta_c.restore(model)
    monkeypatch.setattr(_under_way, "PATIENCE_S", 0)
    monkeypatch.setattr(_under_way, "_still_there", lambda *_: True)
    refuses(deberta_c.UnsupportedError, "in another thread .* accelerate the model before it is first called", deberta_c.accelerate, model)
    assert "forward" not in vars(model.deberta) and not hasattr(model.deberta.encoder, "accelerated")


class Local:
    """Something that a variable holds."""


def test_variables_of_other_threads_are_let_go(monkeypatch):
    """Whoever waits for a call reads no variable of its frames: a copy of one, let go, gives that thread the turn while its frame is read."""
    model, given = made("DebertaV2Model", V2(**V3)), padded(3, 9, 200, 1)
    entered, turn, leave, kept = threading.Event(), threading.Event(), threading.Event(), []
    layer = type(model.encoder.layer[0])
    forward = layer.forward

    def slow(self, *arguments, **options):
        held = Local()
        there = weakref.ref(held)
        entered.set()
        turn.wait(20)
        del held
        kept.append(there())
        leave.wait(20)
        return forward(self, *arguments, **options)

    def call():
        with torch.no_grad():
            model(**given)
    monkeypatch.setattr(layer, "forward", slow)
    caller = threading.Thread(target=call)
    caller.start()
    assert entered.wait(20)
    monkeypatch.setattr(layer, "forward", forward)
    accelerating = threading.Thread(target=deberta_c.accelerate, args=(model,), kwargs={"threads": 1})
    accelerating.start()
    accelerating.join(0.5)
    assert accelerating.is_alive()
    turn.set()
    time.sleep(0.1)
    leave.set()
    caller.join(), accelerating.join()
    assert kept[0] is None


def test_calls_of_another_model_are_not_waited_for(monkeypatch):
    """What another model of the class begins after the library has taken over does not keep accelerate waiting: only what was there before."""
    model, other, given = made("DebertaV2Model", V2(**V3)), made("DebertaV2Model", V2(**V3)), padded(3, 9, 200, 1)
    stop, calls = threading.Event(), [0]

    def call():
        with torch.no_grad():
            while not stop.is_set():
                other(**given)
                calls[0] += 1
    monkeypatch.setattr(_under_way, "PATIENCE_S", 20)
    callers = [threading.Thread(target=call) for _ in range(3)]
    [one.start() for one in callers]
    try:
        deberta_c.accelerate(model, threads=1)
    finally:
        stop.set()
        [one.join() for one in callers]
    assert calls[0] and hasattr(model.encoder, "accelerated")


def test_a_hook_before_the_forward_is_waited_for():
    """A call that is in a hook has read PyTorch's forward already, though nothing of it runs yet."""
    model, given = made("DebertaV2Model", V2(**V3)), padded(3, 9, 200, 1)
    with torch.no_grad():
        plain = model(**given).last_hidden_state
    entered, leave, found = threading.Event(), threading.Event(), []

    def hook(_module, _arguments):
        entered.set()
        leave.wait(20)

    def call():
        with torch.no_grad():
            found.append(model(**given).last_hidden_state)
    model.register_forward_pre_hook(hook)
    caller = threading.Thread(target=call)
    caller.start()
    assert entered.wait(20)
    accelerating = threading.Thread(target=deberta_c.accelerate, args=(model,), kwargs={"threads": 1})
    accelerating.start()
    accelerating.join(0.5)
    assert accelerating.is_alive()
    leave.set()
    caller.join(), accelerating.join()
    assert torch.equal(found[0], plain) and hasattr(model.encoder, "accelerated")


def test_closed_between_two_looks(monkeypatch):
    """A call that has looked whether the model is restored, just before it is, goes on in PyTorch."""
    model, given = made("DebertaV2Model", V2(**V3)), padded(3, 9, 200, 1)
    with torch.no_grad():
        plain = model(**given).last_hidden_state
    deberta_c.accelerate(model, threads=1)
    old, real = model.encoder.accelerated, _session.check_process

    def restored_meanwhile(weights):
        monkeypatch.setattr(_session, "check_process", real)
        deberta_c.restore(model)
        real(weights)
    monkeypatch.setattr(_session, "check_process", restored_meanwhile)
    with torch.no_grad():
        assert torch.equal(old.forward(**given).last_hidden_state, plain)


def test_accelerated_while_others_call():
    """Four threads call, a fifth accelerates and restores: no number that is not finite, no error."""
    model, given = made("DebertaV2ForSequenceClassification", V2(**V3)), padded(3, 20, 200, 1)
    with torch.no_grad():
        plain = model(**given).logits
    stop, wrong, calls = threading.Event(), [], [0]

    def work():
        with torch.no_grad():
            while not stop.is_set():
                try:
                    found = model(**given).logits
                    if not (found - plain).abs().max() < 1e-4:
                        wrong.append(found)
                except Exception as reason:  # noqa: BLE001
                    wrong.append(reason)
                calls[0] += 1
    workers = [threading.Thread(target=work) for _ in range(4)]
    [one.start() for one in workers]
    try:
        for _ in range(8):
            deberta_c.accelerate(model, threads=1)
            deberta_c.restore(model)
    finally:
        stop.set()
        [one.join() for one in workers]
    assert not wrong and calls[0] > 8, wrong[:2]


def test_restored_and_accelerated_while_a_call_waits(monkeypatch):
    """A call that has begun in the library and finds it closed goes on in PyTorch, for which accelerate waits, or in the library that has the weights by then."""
    model, given = made("DebertaV2Model", V2(**V3)), padded(3, 20, 200, 1)
    with torch.no_grad():
        plain = model(**given).last_hidden_state
    deberta_c.accelerate(model, threads=1)
    old = model.encoder.accelerated
    deberta_c.restore(model)
    begun, goes_on, found = threading.Event(), threading.Event(), []
    real = type(model).forward

    def stopped(base, *arguments, **options):  # no frame here is one of PyTorch's modules
        begun.set()
        goes_on.wait(60)
        return real(base, *arguments, **options)

    def call():
        with torch.no_grad():
            found.append(old.forward(**given).last_hidden_state)

    monkeypatch.setattr(type(model), "forward", stopped)
    waiting = threading.Thread(target=call)
    waiting.start()
    assert begun.wait(60)
    monkeypatch.setattr(type(model), "forward", real)
    accelerating = threading.Thread(target=deberta_c.accelerate, args=(model,), kwargs={"threads": 1})
    accelerating.start()
    accelerating.join(1)
    assert accelerating.is_alive() and not found, "accelerate took weights that a call in PyTorch was about to read"
    goes_on.set()
    waiting.join(), accelerating.join()
    assert torch.equal(found[0], plain) and not _under_way._REGISTERED
    call()  # PyTorch's weights are gone now
    assert (found[1] - plain)[given["attention_mask"].bool()].abs().max() < 1e-4  # rows of padding are zero
    deberta_c.restore(model)
    call()
    assert torch.equal(found[2], plain)


class Inner:
    def __init__(self):
        self.model = made("DebertaV2ForSequenceClassification", V2(**V3))


class Around:
    def __init__(self, name, inner):
        self.name, self.settings = "text", {"a": 1}
        setattr(self, name, inner)


@pytest.mark.parametrize("name", ["client", "gliner", "_model", "reranker"])
def test_classes_of_other_libraries(name):
    for inner in (Inner(), Inner().model):
        outer = Around(name, inner)
        assert deberta_c.accelerate(outer) is outer
        model = inner if isinstance(inner, torch.nn.Module) else inner.model
        assert hasattr(model.deberta.encoder, "accelerated")
        assert not hasattr(deberta_c.restore(outer) and model.deberta.encoder, "accelerated")
    with pytest.raises(deberta_c.UnsupportedError, match="Around holds no DebertaModel .* give the model inside"):
        deberta_c.accelerate(Around("a", Around("b", Around("c", Inner()))))
