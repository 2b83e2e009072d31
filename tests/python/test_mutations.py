"""What people do to a model of transformers, before accelerate and after: results are PyTorch's, or it is refused. SPDX-License-Identifier: MIT

Every mutation meets head classes that a seed draws (DEBERTA_TEST_SEED; it is printed), and says which of both it expects: a change of
results without a word is what must not happen."""
import contextlib
import copy
import os
import random
import sys
import warnings

import pytest

import deberta_c
from test_accelerate import HEADS, SMALL, V1, V2, V2_PLAIN, V3, made, padded, torch, transformers

SEED = int(os.environ.get("DEBERTA_TEST_SEED", 1))
prune = pytest.importorskip("torch.nn.utils.prune")
EQUAL, REFUSED = "equal", "refused"
BAR = 1e-5
BEFORE, AFTER = [], []  # (function, what is expected)


def before(expected, **details):
    """A mutation of the model that is then accelerated: function(model, base, rng)."""
    return lambda function: BEFORE.append((function, expected, details)) or function


def after(expected, **details):
    """A mutation of the accelerated model. It may give back the call that stands for model(**given)."""
    return lambda function: AFTER.append((function, expected, details)) or function


def layer(base, rng):
    return rng.choice(list(base.encoder.layer))


def linear(base, rng):
    """A linear layer somewhere in the encoder: whose it is, its name, itself."""
    parent = rng.choice([layer(base, rng).output, layer(base, rng).intermediate, layer(base, rng).attention.output])
    return parent, "dense", parent.dense


# ------------------------------------------------------------------------------------------------- other modules, refused


class LoRA(torch.nn.Linear):
    def __init__(self, inner):
        super().__init__(inner.in_features, inner.out_features)
        self.weight, self.bias = inner.weight, inner.bias
        torch.manual_seed(1)
        self.lora_A = torch.nn.Parameter(torch.randn(4, inner.in_features) * 0.2)
        self.lora_B = torch.nn.Parameter(torch.randn(inner.out_features, 4) * 0.2)

    def forward(self, x):
        return super().forward(x) + x @ self.lora_A.T @ self.lora_B.T


class Adapter(torch.nn.Module):
    def __init__(self, inner):
        super().__init__()
        self.weight, self.bias = inner.weight, inner.bias
        torch.manual_seed(1)
        self.down, self.up = torch.nn.Linear(inner.out_features, 4), torch.nn.Linear(4, inner.out_features)

    def forward(self, x):
        y = torch.nn.functional.linear(x, self.weight, self.bias)
        return y + self.up(torch.relu(self.down(y)))


class Doubled(torch.nn.LayerNorm):
    def forward(self, x):
        return 2 * super().forward(x)


@before(REFUSED, match="merge")
def lora_of_a_subclass(model, base, rng):
    parent, name, inner = linear(base, rng)
    setattr(parent, name, LoRA(inner))


@before(REFUSED, match="Adapter")
def adapter_around_a_linear_layer(model, base, rng):
    parent, name, inner = linear(base, rng)
    setattr(parent, name, Adapter(inner))


@before(REFUSED, match="is no module")
def adapter_beside_a_layer(model, base, rng):
    layer(base, rng).output.adapter = torch.nn.Linear(2, 2)


@before(REFUSED, match="merge_and_unload")
def unmerged_peft(model, base, rng):
    peft = pytest.importorskip("peft")
    peft.inject_adapter_in_model(peft.LoraConfig(target_modules=["dense"], init_lora_weights=False), base)


@before(EQUAL)
def merged_peft(model, base, rng):
    peft = pytest.importorskip("peft")
    torch.manual_seed(3)
    wrapped = peft.get_peft_model(base, peft.LoraConfig(target_modules=["intermediate.dense"], init_lora_weights=False)).eval()
    assert wrapped.merge_and_unload() is base


@before(REFUSED, match="derived")
def subclass_with_its_own_forward(model, base, rng):
    kind = type(base)

    class Mine(kind):
        def forward(self, *arguments, **options):
            out = kind.forward(self, *arguments, **options)
            out.last_hidden_state = 2 * out.last_hidden_state
            return out
    base.__class__ = Mine


@before(REFUSED, match="Doubled")
def another_layer_norm(model, base, rng):
    inner = layer(base, rng).output.LayerNorm
    layer(base, rng).output.LayerNorm = Doubled(inner.weight.shape)


@before(REFUSED, match="expected transformers.activations|expected torch.nn")
def another_activation(model, base, rng):
    layer(base, rng).intermediate.intermediate_act_fn = torch.nn.Tanh()


@before(REFUSED, match="quant")
def quantized(model, base, rng):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.ao.quantization.quantize_dynamic(base.encoder, {torch.nn.Linear}, dtype=torch.qint8, inplace=True)


@before(REFUSED, match="remove_parametrizations")
def parametrized(model, base, rng):
    torch.nn.utils.parametrizations.weight_norm(linear(base, rng)[2])


@before(REFUSED, match="pre-hook|no parameter")
def pruned(model, base, rng):
    prune.l1_unstructured(linear(base, rng)[2], "weight", 0.5)


@before(EQUAL)
def pruned_for_good(model, base, rng):
    inner = linear(base, rng)[2]
    prune.l1_unstructured(inner, "weight", 0.5)
    prune.remove(inner, "weight")


@before(REFUSED, match="pre-hook|no parameter")
def weight_norm_by_hook(model, base, rng):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.nn.utils.weight_norm(linear(base, rng)[2])


@before(REFUSED, match="pre-hook|no parameter")
def spectral_norm_by_hook(model, base, rng):
    torch.nn.utils.spectral_norm(linear(base, rng)[2])


# ---------------------------------------------------------------------------------------------- hooks, methods, functions


@before(REFUSED, match="forward hook")
def hook_that_scales(model, base, rng):
    layer(base, rng).register_forward_hook(lambda module, given, out: (out[0] * 0.5, *out[1:]))


@before(REFUSED, match="forward hook")
def hook_that_reads(model, base, rng):
    rng.choice([*base.encoder.modules(), *base.embeddings.modules()]).register_forward_hook(lambda *_: None)


@before(REFUSED, match="forward pre-hook")
def hook_before(model, base, rng):
    layer(base, rng).register_forward_pre_hook(lambda module, given: (given[0] * 2, *given[1:]))


@before(REFUSED, match="backward hook")
def hook_of_gradients(model, base, rng):
    layer(base, rng).register_full_backward_hook(lambda *_: None)


@before(REFUSED, match="method of its own")
def own_forward_of_an_instance(model, base, rng):
    inner = linear(base, rng)[2]
    inner.forward = lambda x: 2 * type(inner).forward(inner, x)


@before(REFUSED, match="method of its own")
def own_helper_of_an_instance(model, base, rng):
    own = base.encoder.get_rel_embedding
    base.encoder.get_rel_embedding = lambda: own()


@before(REFUSED, match="method of its own")
def own_forward_of_the_base(model, base, rng):
    own = base.forward
    base.forward = lambda *arguments, **options: own(*arguments, **options)


@before(REFUSED, match="replaced by a function of")
def method_of_a_class(model, base, rng, undo):
    kind = type(layer(base, rng).output)
    own = kind.forward
    undo(kind, "forward", lambda self, x, y: 2 * own(self, x, y))


@before(REFUSED, match="replaced by a function of")
def function_of_the_module(model, base, rng, undo):
    home = sys.modules[type(base).__module__]
    own = home.build_relative_position
    undo(home, "build_relative_position", lambda *arguments, **options: -own(*arguments, **options))


@before(REFUSED, match="hidden states in PyTorch")
def method_replaced_by_one_of_torch(model, base, rng, undo):
    """Nothing but the probe sees it."""
    undo(type(layer(base, rng).intermediate), "forward", torch.nn.Sequential().forward.__func__.__get__(torch.nn.Sequential(torch.nn.Linear(48, 80))))


@before(REFUSED, match="hook of all modules")
def hook_of_all_modules(model, base, rng, undo):
    handle = torch.nn.modules.module.register_module_forward_hook(lambda *_: None)
    undo.callback(handle.remove)


@before(EQUAL)
def hooks_of_the_base_and_of_the_model(model, base, rng):
    model.register_forward_hook(lambda module, given, out: out)
    base.register_forward_pre_hook(lambda *_: None)
    base.register_forward_hook(lambda module, given, out: type(out)({name: 2 * value if torch.is_tensor(value) else value for name, value in out.items()}))


# ---------------------------------------------------------------------------------------------------- constants, config


@before(REFUSED, match="eps")
def epsilon(model, base, rng):
    norm = rng.choice([layer(base, rng).output.LayerNorm, base.embeddings.LayerNorm])
    setattr(norm, "eps" if hasattr(norm, "eps") else "variance_epsilon", 0.5)


@before(REFUSED, match="num_attention_heads")
def heads_of_one_layer(model, base, rng):
    attention = layer(base, rng).attention.self
    attention.num_attention_heads, attention.attention_head_size = 1, attention.all_head_size


@before(REFUSED, match="pos_att_type")
def terms_of_one_layer(model, base, rng):
    layer(base, rng).attention.self.pos_att_type = ["c2p"]


@before(REFUSED, match="max_relative_positions|position_buckets")
def distances_of_the_encoder(model, base, rng):
    base.encoder.max_relative_positions = base.encoder.position_buckets = 3


@before(REFUSED, match="max_norm")
def embedding_that_normalizes(model, base, rng):
    base.embeddings.word_embeddings.max_norm = 0.1


@before(REFUSED, match="intermediate_act_fn")
def config_says_another_activation(model, base, rng):
    base.config.hidden_act = "relu"


@before(REFUSED, match="eps")
def config_says_another_epsilon(model, base, rng):
    base.config.layer_norm_eps = 0.5


@before(REFUSED, match="is no module|missing|expected")
def config_says_fewer_layers(model, base, rng):
    base.config.num_hidden_layers = 1


@before(REFUSED, match="is no module")
def another_layer(model, base, rng):
    base.encoder.layer.append(copy.deepcopy(base.encoder.layer[0]))


@before(REFUSED, match="missing")
def a_layer_less(model, base, rng):
    del base.encoder.layer[1]


@before(EQUAL)
def a_layer_less_in_the_config_too(model, base, rng):
    del base.encoder.layer[rng.randrange(2)]
    base.config.num_hidden_layers = 1


@before(EQUAL)
def layers_in_another_order(model, base, rng):
    base.encoder.layer = torch.nn.ModuleList(reversed(base.encoder.layer))


@before(EQUAL)
def one_layer_twice(model, base, rng):
    base.encoder.layer[1] = base.encoder.layer[0]


@before(REFUSED, match="z_steps")
def last_layer_twice(model, base, rng):
    base.z_steps = 2


@before(REFUSED, match="no parameter")
def another_parameter(model, base, rng):
    layer(base, rng).output.gate = torch.nn.Parameter(torch.ones(3))


@before(REFUSED, match="no buffer")
def another_buffer(model, base, rng):
    layer(base, rng).output.register_buffer("scale", torch.ones(3))


@before(REFUSED, match="was changed")
def other_numbers_of_positions(model, base, rng):
    base.embeddings.position_ids = base.embeddings.position_ids.flip(1)


@before(REFUSED, match="training mode")
def dropout_that_stays_on(model, base, rng):
    rng.choice([one for one in base.modules() if isinstance(one, torch.nn.Dropout)]).train()


# ------------------------------------------------------------------------------------------------------ weights, casts


@before(EQUAL)
def nothing(model, base, rng):
    pass


@before(EQUAL)
def dropout_taken_out(model, base, rng):
    for module in list(base.modules()):
        for name, child in module.named_children():
            if isinstance(child, torch.nn.Dropout):
                setattr(module, name, torch.nn.Identity().eval())


@before(EQUAL)
def weights_edited(model, base, rng):
    with torch.no_grad():
        linear(base, rng)[2].weight.mul_(1.5)
        base.embeddings.LayerNorm.weight.add_(0.1)


@before(EQUAL)
def weights_in_other_places(model, base, rng):
    inner = linear(base, rng)[2]
    inner.weight.data = inner.weight.data.t().contiguous().t()
    whole = torch.cat([one.data.flatten() for one in base.embeddings.LayerNorm.parameters()])
    for one, part in zip(base.embeddings.LayerNorm.parameters(), whole.chunk(2)):
        one.data = part


@before(EQUAL)
def resized(model, base, rng):
    torch.manual_seed(4)
    model.resize_token_embeddings(210)


@before(EQUAL)
def frozen(model, base, rng):
    model.requires_grad_(False)


@before(EQUAL)
def in_shared_memory(model, base, rng):
    model.share_memory()


@before(EQUAL)
def wide(model, base, rng):
    model.double()


@before(REFUSED, match="on meta")
def on_meta(model, base, rng):
    linear(base, rng)[2].to("meta")


@before(REFUSED, match="sparse")
def sparse(model, base, rng):
    inner = linear(base, rng)[2]
    inner.weight = torch.nn.Parameter(inner.weight.detach().to_sparse_csr())


@before(REFUSED, match="integer|int8|expected")
def of_integers(model, base, rng):
    inner = linear(base, rng)[2]
    inner.weight = torch.nn.Parameter((inner.weight.detach() * 10).to(torch.int8), requires_grad=False)


@before(REFUSED, match="beside the encoder|is no module of")
def shared_with_the_head(model, base, rng):
    model.own = torch.nn.Linear(2, 2)
    model.own.bias = layer(base, rng).output.dense.bias


@before(EQUAL)
def compiled_layer_and_a_note(model, base, rng):
    base.encoder.layer[0].note = "mine"
    base.encoder.layer[0].output.compile(backend="eager")


# ------------------------------------------------------------------------------------------------ what comes afterwards


@after(EQUAL)
def moved_to_where_it_is(model, base, rng):
    model.to("cpu")
    model.requires_grad_(False)
    model.eval()


@after(EQUAL)
def words_edited(model, base, rng):
    with torch.no_grad():
        base.embeddings.word_embeddings.weight.mul_(1.25)


@after(EQUAL)
def called_with_its_own_parameters(model, base, rng):
    return lambda **given: torch.func.functional_call(model, dict(model.named_parameters()), (), given)


@after(EQUAL)
def compiled(model, base, rng):
    return torch.compile(model, backend="eager")


@after(EQUAL)
def forward_wrapped(model, base, rng):
    own = base.forward
    base.forward = lambda *arguments, **options: own(*arguments, **options)


@after(REFUSED, match="stays torch.float32")
def narrowed(model, base, rng):
    model.half()


@after(REFUSED, match="forward hook")
def hook_of_the_words(model, base, rng):
    base.embeddings.word_embeddings.register_forward_hook(lambda module, given, out: out * 2)


@after(REFUSED, match="other values")
def norm_edited(model, base, rng):
    base.embeddings.LayerNorm.weight.data.mul_(2)


@after(REFUSED, match="are others")
def epsilon_afterwards(model, base, rng):
    norm = base.embeddings.LayerNorm
    setattr(norm, "eps" if hasattr(norm, "eps") else "variance_epsilon", 0.5)


@after(REFUSED, match="are others")
def another_norm(model, base, rng):
    base.embeddings.LayerNorm = copy.deepcopy(base.embeddings.LayerNorm)


@after(REFUSED, match="are others")
def own_forward_of_the_embeddings(model, base, rng):
    base.embeddings.forward = lambda **given: None


@after(REFUSED, match="word embeddings are others")
def resized_afterwards(model, base, rng):
    model.resize_token_embeddings(210)


@after(REFUSED, match="restore")
def encoder_replaced(model, base, rng):
    base.encoder = type(base)(base.config).encoder.eval()


@after(REFUSED, match="has no 'layer'", kind=AttributeError)
def a_layer_replaced(model, base, rng):
    base.encoder.layer[0] = None


@after(REFUSED, match="single memory location", kind=RuntimeError)
def lent_weight_edited(model, base, rng):
    with torch.no_grad():
        rng.choice(HELD).mul_(2)


@after(REFUSED, match="changed after")
def lent_weight_filled(model, base, rng):
    with torch.no_grad():
        rng.choice(HELD).fill_(2)


@after(REFUSED, match="changed after")
def lent_weight_replaced(model, base, rng):
    weight = rng.choice(HELD)
    weight.data = torch.ones(weight.shape)


@after(REFUSED, match="calls no hooks")
def hook_of_the_encoder(model, base, rng):
    base.encoder.register_forward_hook(lambda *_: None)


@after(REFUSED, match="changed after")
def last_layer_twice_afterwards(model, base, rng):
    base.z_steps = 2


@after(REFUSED, match="does not train")
def trained(model, base, rng):
    model.train()


@after(REFUSED, match="traced")
def traced(model, base, rng):
    return lambda **given: torch.jit.trace(model, example_kwarg_inputs=given, strict=False)


@after(REFUSED, match="traced or exported")
def exported(model, base, rng):
    return lambda **given: torch.export.export(model, (), given, strict=False)


@after(REFUSED, match="no gradient flows")
def gradients(model, base, rng):
    def call(**given):
        with torch.enable_grad():
            model(**given)[0].sum().backward()
    return call


@after(REFUSED, match="input_ids, not from inputs_embeds")
def embeddings_given(model, base, rng):
    return lambda input_ids, **given: model(inputs_embeds=torch.zeros(*input_ids.shape, 48), **given)


# Those that PyTorch itself does not run, or not twice with the same result.
WITHOUT_RESULTS = (on_meta, of_integers, last_layer_twice, method_replaced_by_one_of_torch, dropout_that_stays_on)
HELD = []  # the parameters of the encoder, which somebody still has
CONFIGS = {"v1": lambda: V1(**SMALL, type_vocab_size=2), "v2": lambda: V2(**V2_PLAIN), "v3": lambda: V2(**V3)}


def model_of(head, version):
    config = CONFIGS[version]()
    config.num_labels = 2 if "QuestionAnswering" in head else 5
    return made(head, config)


def inputs_of(head):
    given = padded(4, 17, 200, 1, holes=True)
    return {name: value.view(1, 4, 17) for name, value in given.items()} if "MultipleChoice" in head else given


def results(call, given):
    with torch.no_grad():
        found = call(**given)
    return {name: value for name, value in found.items() if torch.is_tensor(value)}


def differences(one, other, given):
    real = given["attention_mask"].bool()
    for name, value in one.items():
        assert value.shape == other[name].shape and value.dtype == other[name].dtype
        rows = real if value.shape[:2] == real.shape else ...
        yield float((value[rows] - other[name][rows]).abs().max() / value[rows].abs().max())


class Undo(contextlib.ExitStack):
    def __call__(self, place, name, value):
        self.callback(setattr, place, name, getattr(place, name))
        setattr(place, name, value)


def drawn(function, count=2):
    """Heads and versions for a mutation, and the seed of what it draws itself."""
    rng = random.Random(f"{SEED} {function.__name__}")
    cases = [(head, version) for head in HEADS for version in (("v2", "v3") if "V2" in head else ("v1",))]
    return [(head, version, rng.randrange(10**6)) for head, version in rng.sample(cases, count)]


def mutated(function, head, version, seed, undo):
    model = model_of(head, version)
    base = getattr(model, "deberta", model)
    function(model, base, random.Random(seed), *([undo] if "undo" in function.__code__.co_varnames else []))
    return model


def callable_of(function, model, seed):
    call = function(model, getattr(model, "deberta", model), random.Random(seed))
    return model if call is None else call


@pytest.mark.parametrize("function, expected, details", BEFORE, ids=[function.__name__ for function, *_ in BEFORE])
def test_before(function, expected, details):
    for head, version, seed in drawn(function):
        print(f"DEBERTA_TEST_SEED={SEED}: {head}, {version}")
        given = inputs_of(head)
        with Undo() as undo:
            model = mutated(function, head, version, seed, undo)
            wanted = None if function in WITHOUT_RESULTS else results(model, given)
            if expected == REFUSED:
                with pytest.raises(deberta_c.Error, match=details["match"]):
                    deberta_c.accelerate(model)
                assert wanted is None or max(differences(wanted, results(model, given), given)) <= BAR, "a refusal leaves the model as it is"
                continue
            deberta_c.accelerate(model)
            assert max(differences(wanted, results(model, given), given)) <= BAR
            deberta_c.restore(model)
            assert max(differences(wanted, results(model, given), given)) == 0


@pytest.mark.parametrize("function, expected, details", AFTER, ids=[function.__name__ for function, *_ in AFTER])
def test_after(function, expected, details):
    for head, version, seed in drawn(function):
        print(f"DEBERTA_TEST_SEED={SEED}: {head}, {version}")
        given, model, plain = inputs_of(head), model_of(head, version), model_of(head, version)
        base = getattr(model, "deberta", model)
        HELD[:] = base.encoder.parameters()
        deberta_c.accelerate(model)
        if expected == REFUSED:
            with pytest.raises(details.get("kind", deberta_c.Error), match=details["match"]):
                results(callable_of(function, model, seed), given)
            continue
        call, wanted = callable_of(function, model, seed), results(callable_of(function, plain, seed), given)
        assert max(differences(wanted, results(call, given), given)) <= BAR
        deberta_c.restore(model)
        assert max(differences(wanted, results(call, given), given)) == 0
