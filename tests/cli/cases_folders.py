"""What a folder is: each kind that people give in place of a model is named, with what helps; what lies beside a model is followed, noted or refused.

SPDX-License-Identifier: MIT
"""
import json
import os
import shutil

from helpers import DEMO, contains


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
