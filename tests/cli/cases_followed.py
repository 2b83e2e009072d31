"""config.json and tensors: what is read and could change the answer is followed, refused, or named in one note.

SPDX-License-Identifier: MIT
"""
import array
import json
import math
import pathlib
import random
import shutil
import subprocess
import sys

from helpers import ROOT, Tensor, check, contains, equal, make_model, near, read_tensors, write_tensors

TEXT = "the old house"
LAYER = "deberta.encoder.layer.0."
HEADS = {"sequence": 29, "token": 30}

# What folders of other models and libraries have; each may appear with any value that says something.
OTHER_KEYS = """rope_theta rope_scaling rope_parameters sliding_window num_key_value_heads attention_bias mlp_bias head_dim layer_types max_window_layers
    hidden_activation hidden_activation_function classifier_activation classifier_bias classifier_pooling global_attn_every_n_layers local_attention
    local_rope_theta global_rope_theta norm_eps norm_bias decoder_bias deterministic_flash_attn sparse_prediction repad_logits_with_grad
    embedding_dropout emb_layer_norm_before position_embedding_type token_dropout mask_token_prob esmfold_config is_folding_model use_mup
    n_embd n_head n_layer n_positions n_inner n_ctx attn_pdrop resid_pdrop embd_pdrop scale_attn_weights reorder_and_upcast_attn
    d_model d_kv d_ff num_layers num_decoder_layers relative_attention_num_buckets relative_attention_max_distance dropout_rate
    feed_forward_proj dense_act_fn is_gated_act encoder_layers decoder_layers encoder_ffn_dim decoder_ffn_dim activation_dropout
    scale_embedding attention_dropout activation_function classif_dropout num_experts num_experts_per_tok router_aux_loss_coef
    moe_intermediate_size shared_expert_intermediate_size partial_rotary_factor qk_norm use_qkv_bias logit_scale embedding_multiplier
    residual_multiplier attention_multiplier final_logit_softcapping attn_logit_softcapping query_pre_attn_scalar hidden_pooling
    max_seq_length do_lower_case vocab_type tokenizer_name pad_to_multiple_of unk_index lang2id langs mask_index causal asm sinusoidal_pos_embd
    end_n_top start_n_top use_lang_emb n_heads dim hidden_dim qa_dropout seq_classif_dropout tie_weights_ qat inner_group_num num_hidden_groups
    net_structure_type gap_size num_memory_blocks down_scale_factor generator_size generator_hidden_size disc_weight temperature_scaling
    label_smoothing class_weights focal_gamma threshold thresholds loss_type margin pooling_mode pooling_strategy use_crf crf_labels
    multi_sample_dropout reinit_layers freeze_layers layerwise_lr_decay mean_pooling concat_last n_last_layers token_pooling task_heads
    encoder_model_name gliner_config unsloth_version unsloth_fixed peft_type lora_alpha lora_r lora_dropout target_modules modules_to_save
    bits group_size desc_act quant_method neuron onnx_config openvino optimum_version awq z_steps ebd_size uni_attention with_think""".split()
CONFIG_NOTED = {"is_decoder": True, "add_cross_attention": True, "is_encoder_decoder": True, "cross_attention_hidden_size": 8, "auto_map": {"AutoModel": "a.B"},
                "custom_pipelines": {"a": {}, "b": 1}, "adapters": {"adapters": {"ner": "x"}}, "sentence_transformers": {"activation_fn": "torch.nn.Sigmoid"},
                "sbert_ce_default_activation_function": "torch.nn.Identity"}
CONFIG_REFUSED = {"quantization_config": {"bits": 4}, "compression_config": {"bits": 8}, "pruned_heads": {"0": [1]}, "per_layer_config": {"0": {"hidden_size": 8}}}
CONFIG_HARMLESS = {"use_cache": True, "torch_dtype": "float16", "output_attentions": True, "max_length": 20, "temperature": 0.7, "_name_or_path": "x", "legacy": True,
                   "finetuning_task": "mnli", "transformers_version": "4.1", "gradient_checkpointing": True, "chunk_size_feed_forward": 4, "prefix": "a"}
ADAPTERS = """attention.self.query_proj.lora_A attention.self.query_proj.lora_B attention.self.value_proj.lora_A.default.weight
    attention.self.query_proj.base_layer.weight attention.self.key_proj.lora_magnitude_vector.default.weight output.adapters.ner.adapter_down.0.weight
    output.adapters.ner.adapter_up.weight attention.output.adapter.weight attention.self.key_proj.ia3_l.default output.dense.ia3_l.default
    attention.self.value_proj.hada_w1_a attention.self.value_proj.lokr_w1 attention.self.query_proj.oft_r.default attention.self.query_proj.vera_lambda_b
    attention.self.prefix_key attention.self.prompt""".split()
STRANGE = """attention.self.head_gates attention.self.head_mask attention.self.gate.weight attention.self.temperature attention.self.query_proj.weight_mask
    attention.self.query_proj.weight_scale attention.self.query_proj.scales attention.self.query_proj.zeros attention.self.query_proj.SCB
    attention.self.rotary_emb.inv_freq attention.self.distance_embedding.weight attention.self.relative_bias attention.self.in_proj.bias
    attention.self.alibi attention.self.logit_scale attention.output.gate intermediate.gate.weight intermediate.dense_1.weight output.dense_2.weight
    output.LayerNorm_2.weight layer_scale_1 layer_scale_2 crossattention.self.query_proj.weight mixture.experts.0.weight router.weight film.weight""".split()
INSIDE = """encoder.final_layer_norm.weight encoder.prefix_tokens encoder.embed_tokens.weight encoder.layer_weights encoder.global_token embeddings.disc_type_embeddings.weight
    embeddings.language_embeddings.weight embeddings.pos_tag_embeddings.weight embeddings.scale embeddings.segment.weight encoder.rel_pos_bias.weight""".split()
OUTSIDE = """loss.weight crf.transitions span_head.weight lstm.weight_ih_l0 my.encoder.layer.0.x pooling.attention.weight head.dense.weight proj_out.weight
    regressor.bias aux.classifier.weight encoder.mine embeddings.mine""".split()


def made(bench, name="m", head="sequence"):
    return make_model(bench.path(name), HEADS[head], "spm-unigram", 2100)


def edit(folder, **changes):
    path = folder / "config.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **changes}))


def add(folder, changes, drop=()):
    tensors, _ = read_tensors(folder / "model.safetensors")
    for name in drop:
        del tensors[name]
    tensors.update({name: Tensor("F32", list(shape), array.array("f", [0.25] * math.prod(shape))) for name, shape in changes.items()})
    write_tensors(folder / "model.safetensors", tensors)


def classified(bench, folder, *more):
    return bench.fine("classify", str(folder), "--text", TEXT, "--json", *more)


def test_problem_type(bench):
    """Sigmoids, values, a softmax; --multi-label takes the place of each; eval and finetune refuse what they cannot score."""
    folder = made(bench)
    sigmoids = json.loads(classified(bench, folder, "--multi-label").out)
    plain = json.loads(classified(bench, folder).out)
    near(sum(one["probability"] for one in plain["labels"]), 1, 1e-6)
    edit(folder, problem_type="multi_label_classification")
    equal(json.loads(classified(bench, folder).out), sigmoids)
    bench.write("e.tsv", "0\tthe house\n1\tthe boat\n")
    contains(bench.expect(3, "eval", str(folder), "e.tsv").err, "multi_label_classification")
    contains(bench.expect(3, "finetune", "sequence", str(folder), "--examples", "e.tsv", "--out", "new", "--steps", "1").err, "multi_label_classification", "--new-head")
    edit(folder, problem_type="regression")
    values = json.loads(classified(bench, folder).out)["labels"]
    for one in values:
        near(1 / (1 + math.exp(-one["score"])), next(s["probability"] for s in sigmoids["labels"] if s["index"] == one["index"]), 1e-6)
    equal(json.loads(classified(bench, folder, "--multi-label").out), sigmoids)
    contains(bench.expect(3, "eval", str(folder), "e.tsv").err, "regression")
    edit(folder, problem_type="single_label_classification")
    equal(json.loads(classified(bench, folder).out), plain)
    edit(folder, problem_type="ranking")
    contains(bench.expect(3, "info", str(folder)).err, "problem_type", "'ranking'", "regression")


def test_keys(bench):
    """The lists of the code: what says nothing is passed over, the rest noted or refused; unknown keys are one note."""
    folder = made(bench)
    plain, original = classified(bench, folder), (folder / "config.json").read_text()
    equal(plain.err, "")
    for key in [*CONFIG_NOTED, *CONFIG_REFUSED]:
        edit(folder, **{name: value for name, value in zip((key,), (None,))})
        equal(classified(bench, folder).err, "", key)
    (folder / "config.json").write_text(original)
    edit(folder, rope_theta=1.5, sliding_window=8)
    found = classified(bench, folder)
    equal(found.out, plain.out)
    equal(found.err.count("note: "), 1)
    contains(found.err, "rope_theta", "sliding_window", "not known here")


def test_tensors(bench):
    """Adapters say that they must be merged; parts that config.json turns off and layers beyond the last are notes; heads that do not fit are not offered."""
    folder = made(bench)
    plain = classified(bench, folder)
    add(folder, {LAYER + "attention.self.query_proj.lora_A": (4, 8)})
    contains(bench.expect(3, "info", str(folder)).err, "lora_A", "merge")
    folder = made(bench, "based")  # peft's names: the plain weight is missing
    add(folder, {LAYER + "output.dense.base_layer.weight": (8, 8)}, [LAYER + "output.dense.weight"])
    contains(bench.expect(3, "info", str(folder)).err, "base_layer", "merge")
    folder = made(bench, "more")
    add(folder, {"deberta.encoder.layer.7.output.dense.bias": (8,), "deberta.encoder.layer.9.output.dense.bias": (8,), "deberta.encoder.conv.conv.bias": (8,),
                 "deberta.embeddings.position_ids": (1, 64), "encoder.of_my_own": (3,)})
    found = classified(bench, folder)
    equal(found.out, plain.out)
    contains(found.err, "layers 7 to 9", "encoder.conv.*", "conv_kernel_size")
    equal(found.err.count("note: "), 2)
    folder = made(bench, "widths")
    add(folder, {"qa_outputs.weight": (5, 7), "qa_outputs.bias": (5,), "mask_predictions.dense.weight": (3, 3), "deberta.embeddings.position_embeddings.weight": (3, 3)})
    found = classified(bench, folder)
    equal(found.out, plain.out)
    contains(found.err, "qa_outputs.weight", "mask_predictions.dense.weight", "position_embeddings", "not offered")
    contains(bench.expect(3, "answer", str(folder), "--question", "who", "--context", TEXT).err, "'qa'")


def test_heads(bench):
    """A classifier of another class than transformers' is no token head; a discriminator's masked head is a leftover."""
    folder = made(bench, head="token")
    bench.fine("tag", str(folder), "--text", TEXT)
    edit(folder, architectures=["DebertaV2Model"])
    contains(bench.expect(3, "tag", str(folder), "--text", TEXT).err, "classifier.weight", "architectures")
    check("token" not in bench.json("info", str(folder))["model"]["heads_present"], "offered")
    folder = make_model(bench.path("rtd"), 37, "spm-unigram", 3100)
    contains(bench.fine("fill-mask", str(folder), "--text", "the [MASK] house").err, "discriminator", "generator")


def test_dialect(bench):
    """Long distances and cut pairs: by the library that wrote config.json; --reference overrides the first."""
    folder = make_model(bench.path("m"), 15, "spm-unigram", 2100)
    ids = ",".join(str(5 + k % 200) for k in range(160))
    edit(folder, max_position_embeddings=40, position_buckets=16, max_relative_positions=-1)
    tensors, _ = read_tensors(folder / "model.safetensors")
    name = next(one for one in tensors if one.endswith("rel_embeddings.weight"))
    tensors[name].values = tensors[name].values[:32 * tensors[name].shape[1]]
    tensors[name].shape = [32, tensors[name].shape[1]]
    write_tensors(folder / "model.safetensors", {k: v for k, v in tensors.items() if "position_embeddings" not in k})

    def encoded(*words):
        bench.fine("encode", str(folder), "--ids", ids, "-o", "o.safetensors", *words)
        found, about = read_tensors("o.safetensors")
        return {key: bytes(value.values) for key, value in found.items()}, about["reference"]
    hf, microsoft = encoded("--reference", "hf"), encoded("--reference", "microsoft")
    check(hf[0] != microsoft[0], "the rules must differ here")
    equal(encoded(), hf, "with a model_type")
    pair = ("--text", "a b c d e f g h", "--pair", "i k l m n o p q", "--max-tokens")
    odd = [json.loads(bench.fine("tokenize", str(folder), *pair, "8", "--json").out)["ids"]]
    config = json.loads((folder / "config.json").read_text())
    del config["model_type"]
    (folder / "config.json").write_text(json.dumps(config))
    equal(encoded(), microsoft, "without one")
    odd.append(json.loads(bench.fine("tokenize", str(folder), *pair, "8", "--json").out)["ids"])
    places = [ids.index(2, 1) - 1 for ids in odd]
    equal(places, [2, 3], "tokens of the first text: five in all")


def test_page(bench):
    """docs/followed.md has the lists of the code; a list that changes is noticed, and a key that nobody reads."""
    copy = pathlib.Path(bench.path("tree"))
    for folder in ("core", "train", "program/train"):
        shutil.copytree(ROOT / folder, copy / folder)
    for file in ("tools/make_followed.py", "docs/followed.md"):
        (copy / file).parent.mkdir()
        shutil.copy(ROOT / file, copy / file)

    def checked():
        done = subprocess.run([sys.executable, "-B", str(copy / "tools" / "make_followed.py"), "--check"], capture_output=True, text=True, check=False)
        return done.returncode, done.stdout
    equal(checked(), (0, ""))
    for file, old, new, words in (
            ("core/model/config_keys.c", 'X(HARMLESS, "legacy"', 'X(NOTED, "legacy"', "the table 'config.json harmless'"),
            ("core/model/config_keys.c", 'X(HARMLESS, "xla_device"', 'X(FOLLOWED, "xla_device"', "xla_device is called followed, but nobody reads it"),
            ("core/model/config_keys.c", 'X(FOLLOWED, "conv_act"', 'X(HARMLESS, "conv_act"', "reads conv_act"),
            ("core/model/tensor_account.c", 'X("dora")', 'X("dora2")', "the table 'tensors of adapters'"),
            ("core/io/folder_kind.c", '"*.h5"', '"*.h6"', "the table 'folders with weights of others'"),
            ("core/text/tokenizer_keys.c", '"vocab_type", ONE_OF', '"vocab_type", OFF', "the table 'tokenizer settings'"),
            ("core/io/record_keys.h", 'X("sent2", "pair")', 'X("sent2", "text")', "the table 'record names'"),
            ("docs/followed.md", "`scaler.pt`", "`scaling.pt`", "the table 'folders with files of trainers'")):
        text = (copy / file).read_text(encoding="utf-8")
        check(old in text, (file, old))
        (copy / file).write_text(text.replace(old, new), encoding="utf-8")
        code, said = checked()
        check(code == 1 and words in said, (file, words, said))
        (copy / file).write_text(text, encoding="utf-8")


def test_drawn(bench):
    """A folder with one more key or tensor that real folders have: the same answer with a note, or refused; silent only for what is harmless."""
    draw = random.Random(20261128)
    folder = made(bench)
    plain, original, weights = classified(bench, folder), (folder / "config.json").read_text(), (folder / "model.safetensors").read_bytes()
    kinds = [("key", key, draw.choice([True, 3, 0.5, "x", [1, 2], {"a": 1}]), "noted") for key in OTHER_KEYS]
    kinds += [("key", key, value, "noted") for key, value in CONFIG_NOTED.items()] + [("key", key, value, "refused") for key, value in CONFIG_REFUSED.items()]
    kinds += [("key", key, value, "silent") for key, value in CONFIG_HARMLESS.items()]
    kinds += [("tensor", LAYER + name, (2, 3), "refused") for name in ADAPTERS + STRANGE] + [("tensor", "deberta." + name, (2, 3), "refused") for name in INSIDE]
    kinds += [("tensor", name, (2, 3), "silent") for name in OUTSIDE] + [("tensor", "prompt_encoder.embedding.weight", (2, 3), "noted"), ("tensor", "classifier.lora_A", (2, 3), "noted")]
    check(len(kinds) >= 200 and len({name for _, name, _, _ in kinds}) == len(kinds), len(kinds))
    for what, name, value, expected in draw.sample(kinds, 60):
        if what == "key":
            edit(folder, **{name: value})
        else:
            add(folder, {name: value})
        found = bench.run("classify", str(folder), "--text", TEXT, "--json")
        last = name.rsplit(".", 1)[-1]
        if expected == "refused":
            check(found.code == 3 and last in found.err, (name, found.describe()))
        else:
            check(found.code == 0 and found.out == plain.out, (name, found.describe()))
            check((last in found.err) if expected == "noted" else not found.err, (name, found.describe()))
        (folder / "config.json").write_text(original)
        (folder / "model.safetensors").write_bytes(weights)
