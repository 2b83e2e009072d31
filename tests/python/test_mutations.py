"""What people do to a model of transformers, before accelerate and after: results are PyTorch's, or it is refused. SPDX-License-Identifier: MIT

Every mutation meets head classes that a seed draws (DEBERTA_TEST_SEED; it is printed), and says which of both it expects: a change of
results without a word is what must not happen."""
import contextlib
import copy
import functools
import os
import random
import sys
import warnings

import pytest

import deberta_c
from conftest import refuses
from test_accelerate import HEADS, SMALL, V1, V2, V2_PLAIN, V3, made, padded, torch, transformers

SEED = int(os.environ.get("DEBERTA_TEST_SEED", 1))
prune = pytest.importorskip("torch.nn.utils.prune")
nn, hooks = torch.nn, torch.nn.modules.module
EQUAL = None
BAR = 1e-5


class Undo(contextlib.ExitStack):
    def __call__(self, place, name, value):
        self.callback(setattr, place, name, getattr(place, name))
        setattr(place, name, value)


class Place:
    """What a mutation changes: the model, its base, some layer of it, the owner of some linear layer (`dense`); undo(place, name, value) for
    what is not the model's own, held: the encoder's parameters, which somebody still has."""

    def __init__(self, model, seed, undo):
        self.model, self.base, self.rng, self.undo = model, getattr(model, "deberta", model), random.Random(seed), undo
        self.held = list(self.base.encoder.parameters())

    def layer(self):
        return self.rng.choice(list(self.base.encoder.layer))

    def owner(self):
        return self.rng.choice([self.layer().output, self.layer().intermediate, self.layer().attention.output])


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


def put(place, **values):
    """Attributes of a module, as an assignment."""
    for name, value in values.items():
        setattr(place, name, value)


def wrap(place, name, around):
    """A method of an instance or a class, or a function of a module, inside another."""
    own = getattr(place, name)
    return lambda *arguments, **options: around(own, *arguments, **options)


def passed_on(own, *arguments, **options):
    return own(*arguments, **options)


def quietly(function, *arguments, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        function(*arguments, **options)


def change_epsilon(norm):
    setattr(norm, "eps" if hasattr(norm, "eps") else "variance_epsilon", 0.5)


def peft_or_skip():
    return pytest.importorskip("peft")


def merged_peft(at):
    peft = peft_or_skip()
    torch.manual_seed(3)
    wrapped = peft.get_peft_model(at.base, peft.LoraConfig(target_modules=["intermediate.dense"], init_lora_weights=False)).eval()
    assert wrapped.merge_and_unload() is at.base


def subclass_with_its_own_forward(at):
    kind = type(at.base)

    class Mine(kind):
        def forward(self, *arguments, **options):
            out = kind.forward(self, *arguments, **options)
            out.last_hidden_state = 2 * out.last_hidden_state
            return out
    at.base.__class__ = Mine


def pruned_for_good(at):
    inner = at.owner().dense
    prune.l1_unstructured(inner, "weight", 0.5)
    prune.remove(inner, "weight")


def hooks_of_the_base_and_of_the_model(at):
    at.model.register_forward_hook(lambda module, given, out: out)
    at.base.register_forward_pre_hook(lambda *_: None)
    at.base.register_forward_hook(lambda module, given, out: type(out)({name: 2 * value if torch.is_tensor(value) else value for name, value in out.items()}))


def a_layer_less_in_the_config_too(at):
    del at.base.encoder.layer[at.rng.randrange(2)]
    at.base.config.num_hidden_layers = 1


def dropout_taken_out(at):
    for module in list(at.base.modules()):
        for name, child in module.named_children():
            if isinstance(child, nn.Dropout):
                setattr(module, name, nn.Identity().eval())


def weights_edited(at):
    with torch.no_grad():
        at.owner().dense.weight.mul_(1.5)
        at.base.embeddings.LayerNorm.weight.add_(0.1)


def weights_in_other_places(at):
    inner = at.owner().dense
    inner.weight.data = inner.weight.data.t().contiguous().t()
    whole = torch.cat([one.data.flatten() for one in at.base.embeddings.LayerNorm.parameters()])
    for one, part in zip(at.base.embeddings.LayerNorm.parameters(), whole.chunk(2)):
        one.data = part


def resized(at):
    torch.manual_seed(4)
    at.model.resize_token_embeddings(210)


def of_another_kind(at, convert):
    """The weight of a linear layer as another kind of tensor."""
    inner = at.owner().dense
    inner.weight = nn.Parameter(weight := convert(inner.weight.detach()), requires_grad=weight.is_floating_point())


def shared_with_the_head(at):
    at.model.own = nn.Linear(2, 2)
    at.model.own.bias = at.layer().output.dense.bias


def compiled_layer_and_a_note(at):
    at.base.encoder.layer[0].note = "mine"
    at.base.encoder.layer[0].output.compile(backend="eager")


HOOK = "pre-hook|no parameter"
REPLACED = "replaced by a function of"
# What is done to a model that is then accelerated: a name, what the refusal says or EQUAL, and how.
BEFORE = [
    # ---- other modules
    ("lora_of_a_subclass", "merge", lambda at: put(owner := at.owner(), dense=LoRA(owner.dense))),
    ("adapter_around_a_linear_layer", "Adapter", lambda at: put(owner := at.owner(), dense=Adapter(owner.dense))),
    ("adapter_beside_a_layer", "is no module", lambda at: put(at.layer().output, adapter=nn.Linear(2, 2))),
    ("unmerged_peft", "merge_and_unload", lambda at: peft_or_skip().inject_adapter_in_model(
        peft_or_skip().LoraConfig(target_modules=["dense"], init_lora_weights=False), at.base)),
    ("merged_peft", EQUAL, merged_peft),
    ("subclass_with_its_own_forward", "derived", subclass_with_its_own_forward),
    ("another_layer_norm", "Doubled", lambda at: put(at.layer().output, LayerNorm=Doubled([48]))),
    ("another_activation", "expected transformers.activations|expected torch.nn",
     lambda at: put(at.layer().intermediate, intermediate_act_fn=nn.Tanh())),
    ("quantized", "quant", lambda at: quietly(torch.ao.quantization.quantize_dynamic, at.base.encoder, {nn.Linear}, dtype=torch.qint8, inplace=True)),
    ("parametrized", "remove_parametrizations", lambda at: nn.utils.parametrizations.weight_norm(at.owner().dense)),
    ("pruned", HOOK, lambda at: prune.l1_unstructured(at.owner().dense, "weight", 0.5)),
    ("pruned_for_good", EQUAL, pruned_for_good),
    ("weight_norm_by_hook", HOOK, lambda at: quietly(nn.utils.weight_norm, at.owner().dense)),
    ("spectral_norm_by_hook", HOOK, lambda at: nn.utils.spectral_norm(at.owner().dense)),
    # ---- hooks, methods, functions
    ("hook_that_scales", "forward hook", lambda at: at.layer().register_forward_hook(lambda module, given, out: (out[0] * 0.5, *out[1:]))),
    ("hook_that_reads", "forward hook",
     lambda at: at.rng.choice([*at.base.encoder.modules(), *at.base.embeddings.modules()]).register_forward_hook(lambda *_: None)),
    ("hook_before", "forward pre-hook", lambda at: at.layer().register_forward_pre_hook(lambda module, given: (given[0] * 2, *given[1:]))),
    ("hook_of_gradients", "backward hook", lambda at: at.layer().register_full_backward_hook(lambda *_: None)),
    ("own_forward_of_an_instance", "method of its own",
     lambda at: put(inner := at.owner().dense, forward=wrap(inner, "forward", lambda own, x: 2 * own(x)))),
    ("own_helper_of_an_instance", "method of its own",
     lambda at: put(at.base.encoder, get_rel_embedding=wrap(at.base.encoder, "get_rel_embedding", passed_on))),
    ("own_forward_of_the_base", "method of its own", lambda at: put(at.base, forward=wrap(at.base, "forward", passed_on))),
    ("method_of_a_class", REPLACED,
     lambda at: at.undo(kind := type(at.layer().output), "forward", wrap(kind, "forward", lambda own, *given: 2 * own(*given)))),
    ("function_of_the_module", REPLACED, lambda at: at.undo(home := sys.modules[type(at.base).__module__], "build_relative_position",
                                                            wrap(home, "build_relative_position", lambda own, *given, **more: -own(*given, **more)))),
    # Nothing but the probe sees it.
    ("method_replaced_by_one_of_torch", "hidden states in PyTorch", lambda at: at.undo(
        type(at.layer().intermediate), "forward", nn.Sequential().forward.__func__.__get__(nn.Sequential(nn.Linear(48, 80))))),
    ("hook_of_all_modules", "hook of all modules", lambda at: at.undo.callback(hooks.register_module_forward_hook(lambda *_: None).remove)),
    ("hooks_of_the_base_and_of_the_model", EQUAL, hooks_of_the_base_and_of_the_model),
    # ---- constants, config
    ("epsilon", "eps", lambda at: change_epsilon(at.rng.choice([at.layer().output.LayerNorm, at.base.embeddings.LayerNorm]))),
    ("heads_of_one_layer", "num_attention_heads", lambda at: put(at.layer().attention.self, num_attention_heads=1, attention_head_size=48)),
    ("terms_of_one_layer", "pos_att_type", lambda at: put(at.layer().attention.self, pos_att_type=["c2p"])),
    ("distances_of_the_encoder", "max_relative_positions|position_buckets",
     lambda at: put(at.base.encoder, max_relative_positions=3, position_buckets=3)),
    ("embedding_that_normalizes", "max_norm", lambda at: put(at.base.embeddings.word_embeddings, max_norm=0.1)),
    ("config_says_another_activation", "intermediate_act_fn", lambda at: put(at.base.config, hidden_act="relu")),
    ("config_says_another_epsilon", "eps", lambda at: put(at.base.config, layer_norm_eps=0.5)),
    ("config_says_fewer_layers", "is no module|missing|expected", lambda at: put(at.base.config, num_hidden_layers=1)),
    ("another_layer", "is no module", lambda at: at.base.encoder.layer.append(copy.deepcopy(at.base.encoder.layer[0]))),
    ("a_layer_less", "missing", lambda at: at.base.encoder.layer.pop(1)),
    ("a_layer_less_in_the_config_too", EQUAL, a_layer_less_in_the_config_too),
    ("layers_in_another_order", EQUAL, lambda at: put(at.base.encoder, layer=nn.ModuleList(reversed(at.base.encoder.layer)))),
    ("one_layer_twice", EQUAL, lambda at: at.base.encoder.layer.__setitem__(1, at.base.encoder.layer[0])),
    ("last_layer_twice", "z_steps", lambda at: put(at.base, z_steps=2)),
    ("another_parameter", "no parameter", lambda at: put(at.layer().output, gate=nn.Parameter(torch.ones(3)))),
    ("another_buffer", "no buffer", lambda at: at.layer().output.register_buffer("scale", torch.ones(3))),
    ("other_numbers_of_positions", "was changed", lambda at: put(at.base.embeddings, position_ids=at.base.embeddings.position_ids.flip(1))),
    ("dropout_that_stays_on", "training mode", lambda at: at.rng.choice([one for one in at.base.modules() if isinstance(one, nn.Dropout)]).train()),
    # ---- weights, casts
    ("nothing", EQUAL, lambda at: None),
    ("dropout_taken_out", EQUAL, dropout_taken_out),
    ("weights_edited", EQUAL, weights_edited),
    ("weights_in_other_places", EQUAL, weights_in_other_places),
    ("resized", EQUAL, resized),
    ("frozen", EQUAL, lambda at: at.model.requires_grad_(False)),
    ("in_shared_memory", EQUAL, lambda at: at.model.share_memory()),
    ("wide", EQUAL, lambda at: at.model.double()),
    ("on_meta", "on meta", lambda at: at.owner().dense.to("meta")),
    ("sparse", "sparse", lambda at: of_another_kind(at, torch.Tensor.to_sparse_csr)),
    ("of_integers", "integer|int8|expected", lambda at: of_another_kind(at, lambda weight: (weight * 10).to(torch.int8))),
    ("shared_with_the_head", "beside the encoder|is no module of", shared_with_the_head),
    ("compiled_layer_and_a_note", EQUAL, compiled_layer_and_a_note),
]


def moved_to_where_it_is(at):
    at.model.to("cpu")
    at.model.requires_grad_(False)
    at.model.eval()


def edited(change, tensor, *arguments):
    """A tensor is changed in place where no gradient is recorded."""
    with torch.no_grad():
        change(tensor, *arguments)


def with_gradients(at):
    def call(**given):
        with torch.enable_grad():
            at.model(**given)[0].sum().backward()
    return call


# What is done to the accelerated model. A last word is the kind of exception.
AFTER = [
    ("moved_to_where_it_is", EQUAL, moved_to_where_it_is),
    ("words_edited", EQUAL, lambda at: edited(torch.Tensor.mul_, at.base.embeddings.word_embeddings.weight, 1.25)),
    ("forward_wrapped", EQUAL, lambda at: put(at.base, forward=wrap(at.base, "forward", passed_on))),
    ("narrowed", "stays torch.float32", lambda at: at.model.half()),
    ("hook_of_the_words", "forward hook", lambda at: at.base.embeddings.word_embeddings.register_forward_hook(lambda module, given, out: out * 2)),
    ("norm_edited", "other values", lambda at: at.base.embeddings.LayerNorm.weight.data.mul_(2)),
    ("epsilon_afterwards", "are others", lambda at: change_epsilon(at.base.embeddings.LayerNorm)),
    ("another_norm", "are others", lambda at: put(at.base.embeddings, LayerNorm=copy.deepcopy(at.base.embeddings.LayerNorm))),
    ("own_forward_of_the_embeddings", "are others", lambda at: put(at.base.embeddings, forward=lambda **given: None)),
    ("resized_afterwards", "word embeddings are others", lambda at: at.model.resize_token_embeddings(210)),
    ("encoder_replaced", "restore", lambda at: put(at.base, encoder=type(at.base)(at.base.config).encoder.eval())),
    ("a_layer_replaced", "has no 'layer'", lambda at: at.base.encoder.layer.__setitem__(0, None), AttributeError),
    ("lent_weight_edited", "single memory location", lambda at: edited(torch.Tensor.mul_, at.rng.choice(at.held), 2), RuntimeError),
    ("lent_weight_filled", "changed after", lambda at: edited(torch.Tensor.fill_, at.rng.choice(at.held), 2)),
    ("lent_weight_replaced", "changed after", lambda at: put(weight := at.rng.choice(at.held), data=torch.ones(weight.shape))),
    ("hook_of_the_encoder", "calls no hooks", lambda at: at.base.encoder.register_forward_hook(lambda *_: None)),
    ("last_layer_twice_afterwards", "changed after", lambda at: put(at.base, z_steps=2)),
    ("trained", "does not train", lambda at: at.model.train()),
]
# What is called in the accelerated model's place.
CALLS = [
    ("called_with_its_own_parameters", EQUAL,
     lambda at: lambda **given: torch.func.functional_call(at.model, dict(at.model.named_parameters()), (), given)),
    ("compiled", EQUAL, lambda at: torch.compile(at.model, backend="eager")),
    ("traced", "traced", lambda at: lambda **given: torch.jit.trace(at.model, example_kwarg_inputs=given, strict=False)),
    ("exported", "traced or exported", lambda at: lambda **given: torch.export.export(at.model, (), given, strict=False)),
    ("gradients", "no gradient flows", with_gradients),
    ("embeddings_given", "input_ids, not from inputs_embeds",
     lambda at: lambda input_ids, **given: at.model(inputs_embeds=torch.zeros(*input_ids.shape, 48), **given)),
]

# Those that PyTorch itself does not run, or not twice with the same result.
WITHOUT_RESULTS = ("on_meta", "of_integers", "last_layer_twice", "method_replaced_by_one_of_torch", "dropout_that_stays_on")
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


def drawn(name, count=2):
    """Inputs for heads and versions that meet a mutation, what makes such a model, and the seed of what the mutation draws itself."""
    rng = random.Random(f"{SEED} {name}")
    cases = [(head, version) for head in HEADS for version in (("v2", "v3") if "V2" in head else ("v1",))]
    for head, version, seed in [(head, version, rng.randrange(10**6)) for head, version in rng.sample(cases, count)]:
        print(f"DEBERTA_TEST_SEED={SEED}: {head}, {version}")
        yield inputs_of(head), functools.partial(model_of, head, version), seed


@pytest.mark.parametrize("name, refusal, mutate", BEFORE, ids=[name for name, *_ in BEFORE])
def test_before(name, refusal, mutate):
    for given, make, seed in drawn(name):
        with Undo() as undo:
            model = make()
            mutate(Place(model, seed, undo))
            wanted = None if name in WITHOUT_RESULTS else results(model, given)
            if refusal:
                refuses(deberta_c.Error, refusal, deberta_c.accelerate, model)
                assert wanted is None or max(differences(wanted, results(model, given), given)) <= BAR, "a refusal leaves the model as it is"
                continue
            deberta_c.accelerate(model)
            assert max(differences(wanted, results(model, given), given)) <= BAR
            deberta_c.restore(model)
            assert max(differences(wanted, results(model, given), given)) == 0


@pytest.mark.parametrize("name, refusal, mutate, kind", [(*row, deberta_c.Error)[:4] for row in AFTER + CALLS], ids=[name for name, *_ in AFTER + CALLS])
def test_after(name, refusal, mutate, kind):
    def call_of(place):
        done = mutate(place)
        return done if (name, refusal, mutate) in CALLS else place.model

    for given, make, seed in drawn(name):
        place, plain = (Place(make(), seed, None) for _ in range(2))
        deberta_c.accelerate(place.model)
        if refusal:
            with pytest.raises(kind, match=refusal):
                results(call_of(place), given)
            continue
        call, wanted = call_of(place), results(call_of(plain), given)
        assert max(differences(wanted, results(call, given), given)) <= BAR
        deberta_c.restore(place.model)
        assert max(differences(wanted, results(call, given), given)) == 0
