"""What a folder is: each kind that people give in place of a model is named, with what helps; what lies beside a model is followed, noted or refused.

SPDX-License-Identifier: MIT
"""
import json
import math
import os
import shutil

from helpers import DEMO, GOLDEN, contains


def copy_of(bench, name, *without):
    """The demo model, without some of its files."""
    folder = bench.path(name)
    shutil.copytree(DEMO, folder)
    for left_out in without:
        os.remove(os.path.join(folder, left_out))
    return folder


def write(folder, name, content=""):
    path = os.path.join(folder, name)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w", encoding="utf-8") as file:
        file.write(content if isinstance(content, str) else json.dumps(content))
    return path


def refused(bench, place, *words):
    """By what opens a model, and by what opens a tokenizer alone."""
    for command in (("info", place), ("tokenize", place, "--text", "a"), ("classify", place, "--text", "a")):
        contains(bench.expect(3, *command).err, *words)


def test_folders_without_a_config(bench):
    for name, marker, content, *words in (
            ("peft", "adapter_config.json", {"base_model_name_or_path": "microsoft/deberta-v3-base"}, "an adapter alone", "'microsoft/deberta-v3-base'", "merge it"),
            ("peft-broken", "adapter_config.json", "{", "an adapter alone", "missing", "merge it"),
            ("weights", "adapter_model.safetensors", "", "an adapter alone", "merge it"),
            ("adapters", "pytorch_adapter.bin", "", "an adapter alone", "merge it"),
            ("gliner", "gliner_config.json", {"model_name": "microsoft/deberta-v3-base"}, "GLiNER", "'microsoft/deberta-v3-base'", "config.json of that model"),
            ("original", "model_config.json", {}, "give it the name config.json")):
        write(bench.path(name), marker, content)
        refused(bench, name, f"{name}/{marker}: ", *words)


def test_configs_of_other_classes(bench):
    for kind, config in (("GLiClass", {"model_type": "GLiClass", "encoder_model_name": "microsoft/deberta-v3-base"}),
                         ("GLiNER2", {"model_type": "extractor", "model_name": "microsoft/deberta-v3-base"}),
                         ("SpanMarker", {"model_type": "span-marker", "encoder": {"_name_or_path": "microsoft/deberta-v3-base", "hidden_size": 8}})):
        folder = copy_of(bench, kind)
        write(folder, "config.json", config)
        contains(bench.expect(3, "info", folder).err, f"belongs to {kind}", "'microsoft/deberta-v3-base'", "config.json of that model", "accelerate")


def test_models_further_inside(bench):
    for name, *inside in (("cache", "models--org--name/snapshots/aaa"), ("old", "0_Transformer"), ("run", "checkpoint-900"), ("run", "checkpoint-1000")):
        for way in inside:
            shutil.copytree(DEMO, bench.path(os.path.join(name, way)))
    refused(bench, "cache", "give cache/models--org--name/snapshots/aaa")
    refused(bench, "cache/models--org--name", "give cache/models--org--name/snapshots/aaa")
    refused(bench, "old", "give old/0_Transformer")
    refused(bench, "run", "2 models in folders inside", "such as run/checkpoint-1000")
    shutil.copytree(DEMO, bench.path("cache/models--org--name/snapshots/zzz"))
    write(bench.path("cache/models--org--name"), "refs/main", "zzz")
    refused(bench, "cache/models--org--name", "such as cache/models--org--name/snapshots/zzz")
    os.makedirs(bench.path("deep/a/b/c"))
    shutil.copytree(DEMO, bench.path("deep/a/b/c/d"))
    contains(bench.expect(3, "info", "deep").err, "config.json: cannot be opened")


def test_names_of_a_hub(bench):
    for place, name in (("deberta-v3-base", "microsoft/deberta-v3-base"), ("https://hub.example/org/a-model/tree/main", "org/a-model"),
                        ("http://hub.example/org/a-model", "org/a-model"), ("hf://org/a-model", "org/a-model")):
        refused(bench, place, f"hf download {name} '*.json'", "--local-dir " + name.split("/")[1])
    for place in ("https://hub.example/org", "https://hub.example", "deberta-v9"):
        refused(bench, place, "no such folder in /", "MODEL is a folder with config.json")


def test_weights_that_are_not_read(bench):
    for name, words in (("model.onnx", "ONNX"), ("onnx/model.onnx", "onnx/"), ("openvino_model.xml", "OpenVINO"), ("tf_model.h5", "TensorFlow"),
                        ("flax_model.msgpack", "Flax"), ("deberta-q8_0.gguf", "gguf"), ("best.pth", "give it the name pytorch_model.bin"),
                        ("epoch=3-step=12.ckpt", "its state_dict"), ("model.fp16.safetensors", "variant"), ("rust_model.ot", "Rust"),
                        ("model-00001-of-00002.safetensors", "model.safetensors.index.json"), ("adapter_model.bin", "adapter alone")):
        folder = copy_of(bench, "weights", "model.safetensors")
        write(folder, name)
        write(folder, "training_args.bin")
        contains(bench.expect(3, "info", folder).err, "no weights; expected model.safetensors", words)
        shutil.rmtree(folder)


def test_tokenizers_that_are_not_read(bench):
    for name, words in (("vocab.txt", ["WordPiece", "--ids"]), ("tokenizer.model", ["spm.model"]), ("sentencepiece.bpe.model", ["XLM-R"])):
        folder = copy_of(bench, "tokenizer", "spm.model")
        write(folder, name)
        contains(bench.expect(3, "classify", folder, "--text", "a").err, f"tokenizer/{name}: ", *words)
        bench.fine("encode", folder, "--ids", "1,5,2", "-o", "x.safetensors")
        shutil.rmtree(folder)


def settings(folder, name="tokenizer_config.json", **changes):
    path = os.path.join(folder, name)
    with open(path, encoding="utf-8") as file:
        content = json.load(file)
    content.update(changes)
    write(folder, name, content)


def tokenized(bench, folder, text):
    return bench.run("tokenize", folder, "--text", text, "--json")


def test_tokenizer_json_beside_spm_model(bench):
    """Both of one tokenizer are quiet; added tokens of tokenizer.json are taken; what differs is said in one note."""
    golden = GOLDEN / "tokenizers" / "spm-unigram"
    folder = bench.path("both")
    shutil.copytree(golden, folder)
    said = tokenized(bench, folder, "a covid-19 b")
    assert not said.err and "covid-19" not in said.out, said
    whole = bench.load(os.path.join(folder, "tokenizer.json"))
    token = {"id": 3100, "content": "covid-19", "single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": False}
    write(folder, "tokenizer.json", {**whole, "added_tokens": whole["added_tokens"] + [token]})
    said = tokenized(bench, folder, "a covid-19 b")
    assert not said.err and 3100 in json.loads(said.out)["ids"], said
    pieces = whole["model"]["vocab"]
    for change, *words in (({"model": {**whole["model"], "vocab": pieces[:-2]}}, "the pieces"),
                           ({"model": {**whole["model"], "vocab": pieces[:50] + [["zzzz", pieces[50][1]]] + pieces[51:]}}, "1 pieces (50 is", "'zzzz'"),
                           ({"normalizer": {"type": "Sequence", "normalizers": [{"type": "Lowercase"}] + whole["normalizer"]["normalizers"]}}, "lower case"),
                           ({"added_tokens": whole["added_tokens"] + [{**token, "content": "[X]", "id": 77}]}, "the id 77", "[X]"),
                           ({"normalizer": {"type": "Odd"}}, "cannot be compared", "'Odd'"),
                           ({"odd_member": 1}, "odd_member")):
        write(folder, "tokenizer.json", {**whole, **change})
        said = tokenized(bench, folder, "a b")
        assert said.code == 0
        contains(said.err, "tokenizer.json", *words)
        assert said.err.count("note: ") == 1, said.err


def test_keys_of_tokenizer_files(bench):
    """Harmless ones are quiet; others are named once; names of special tokens that have an id are found in texts."""
    folder = copy_of(bench, "keys")
    plain = tokenized(bench, folder, "a new store opened")
    settings(folder, padding_side="left", model_max_length=8, truncation_side="right", sp_model_kwargs={}, add_bos_token=False, chat_template="x", auto_map=None)
    said = tokenized(bench, folder, "a new store opened")
    assert (said.out, said.err) == (plain.out, ""), said
    for key, value, *words in (("truncation_side", "left", "'left'"), ("sp_model_kwargs", {"enable_sampling": True}, "none is drawn"), ("add_bos_token", True, "frame"),
                               ("tokenizer_class", "BertTokenizer", "'BertTokenizer'"), ("keep_accents", True, "keep_accents"), ("auto_map", {"AutoTokenizer": ["a", "b"]}, "code"),
                               ("extra_special_tokens", ["<unheard>"], "'<unheard>'", "no file gives it an id")):
        other = copy_of(bench, "other")
        settings(other, **{key: value})
        said = tokenized(bench, other, "a new store opened")
        assert said.code == 0 and said.out == plain.out, said
        contains(said.err, "note: ", "other", *words)
        shutil.rmtree(other)
    piece = "\u2581store"
    ids = json.loads(bench.fine("tokenize", folder, "--text", "store", "--json").out)["ids"]
    settings(folder, additional_special_tokens=[piece])
    assert json.loads(bench.fine("tokenize", folder, "--text", piece, "--json").out)["ids"][1] == ids[1]


KIND = "sentence_transformers.models."


def sentence_folder(bench, name, pooling, *more, **settings_of_transformer):
    """As sentence-transformers saves it."""
    folder = copy_of(bench, name)
    modules = [("Transformer", ""), ("Pooling", "1_Pooling"), *more]
    write(folder, "modules.json", json.dumps([{"idx": i, "name": str(i), "path": path, "type": KIND + kind} for i, (kind, path) in enumerate(modules)]))
    write(folder, "1_Pooling/config.json", pooling)
    write(folder, "sentence_bert_config.json", settings_of_transformer)
    return folder


def vectors(bench, folder, *more):
    """Rows of numbers, and what was said."""
    said = bench.fine("encode", folder, "--text", "a new store opened in the old town", "--text", "the king", *more, "-o", "v.jsonl")
    return [json.loads(line)["pooled"] for line in bench.read("v.jsonl").splitlines()], said.err


def test_recipes_of_sentence_transformers(bench):
    """Pooling, length 1 and max_seq_length are followed; --pool takes the place of all, --max-tokens of the last; the rest is refused."""
    new, old = {"pooling_mode": "cls"}, {"pooling_mode_cls_token": True, "pooling_mode_mean_tokens": False}
    cls, _ = vectors(bench, DEMO, "--pool", "cls", "--max-tokens", "5")
    mean, _ = vectors(bench, DEMO)
    for number, pooling in enumerate((new, old)):
        folder = sentence_folder(bench, f"s{number}", pooling, ("Normalize", "2_Normalize"), max_seq_length=5)
        found, said = vectors(bench, folder)
        contains(said, "note: vectors as modules.json", "cls, length 1, at most 5 tokens")
        for row, plain in zip(found, cls):
            length = math.fsum(x * x for x in plain) ** 0.5
            assert max(abs(x - y / length) for x, y in zip(row, plain)) < 1e-7
        assert vectors(bench, folder, "--pool", "mean")[0] == mean
        contains(vectors(bench, folder, "--max-tokens", "4")[1], "at most 4 tokens")
    folder = sentence_folder(bench, "plain", {"pooling_mode": "mean"}, max_seq_length=64)
    assert vectors(bench, folder)[0] == mean
    for name, pooling, more, settings_given, words in (
            ("max", {"pooling_mode": "max"}, [], {}, "the pooling 'max'"), ("two", {"pooling_mode": ["cls", "mean"]}, [], {}, "several poolings"),
            ("dense", new, [("Dense", "2_Dense")], {}, "the module Dense (2_Dense)"), ("lower", new, [], {"do_lower_case": True}, "do_lower_case"),
            ("unheard", {"pooling_mode_median_tokens": True}, [], {}, "the pooling 'pooling_mode_median_tokens'"),
            ("cutting", new, [], {"tokenizer_args": {"do_lower_case": True}}, "tokenizer_args of its own settings"),
            ("length", new, [], {"max_seq_length": "128"}, "max_seq_length of its own settings")):
        folder = sentence_folder(bench, name, pooling, *more, **settings_given)
        contains(bench.expect(3, "encode", folder, "--text", "a", "-o", "v.npy").err, "modules.json asks for " + words, "--pool mean")
        bench.fine("encode", folder, "--text", "a", "--pool", "mean", "-o", "v.npy")
    how_it_runs = sentence_folder(bench, "runs", new, tokenizer_args={}, model_args={"attn_implementation": "eager"}, modality_config={"text": {"method": "forward"}})
    contains(vectors(bench, how_it_runs)[1], "vectors as modules.json", "cls")
    modules = json.loads(bench.read("runs/modules.json"))
    modules[0]["type"] = "custom_st.Transformer"  # code of the folder's author
    write(how_it_runs, "modules.json", json.dumps(modules))
    contains(bench.expect(3, "encode", how_it_runs, "--text", "a", "-o", "v.npy").err, "the module custom_st.Transformer")
    write(folder, "config_sentence_transformers.json", {"prompts": {"q": "query: "}, "default_prompt_name": "q"})
    write(folder, "sentence_bert_config.json", {})
    contains(bench.expect(3, "encode", folder, "--text", "a", "-o", "v.npy").err, "the prompt 'q'")
