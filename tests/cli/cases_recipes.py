"""What lies beside a model and says how its texts are cut and its vectors made, where it has another form or meets another option.

SPDX-License-Identifier: MIT
"""
import json
import os
import shutil
import signal
import subprocess

from cases_folders import KIND, copy_of, sentence_folder, tokenized, vectors, write
from cases_train import digest
from helpers import DEMO, contains, ending, equal, wait_until

KIND = "sentence_transformers.models."
TEXTS = ["a new store opened in the old town", "the king", "call me Ishmael, said the sailor who came from the old house by the river"]


def old_folder(bench, name):
    """As sentence-transformers saved it for years: the model in 0_Transformer, the rest beside that."""
    inside = copy_of(bench, name + "/0_Transformer")
    modules = [("0_Transformer", "Transformer"), ("1_Pooling", "Pooling"), ("2_Normalize", "Normalize")]
    write(bench.path(name), "modules.json", json.dumps([{"idx": i, "name": str(i), "path": path, "type": KIND + kind} for i, (path, kind) in enumerate(modules)]))
    write(bench.path(name), "1_Pooling/config.json", {"word_embedding_dimension": 192, "pooling_mode_cls_token": True, "pooling_mode_mean_tokens": False})
    write(inside, "sentence_bert_config.json", {"max_seq_length": 5, "do_lower_case": False})
    return inside


def test_model_in_0_transformer(bench):
    """The folder above says how vectors are made, by whatever name the one inside is given; without its list nothing is followed."""
    expected, _ = vectors(bench, sentence_folder(bench, "new", {"pooling_mode": "cls"}, ("Normalize", "2_Normalize"), max_seq_length=5))
    inside = old_folder(bench, "old")
    os.symlink(inside, bench.path("link"))
    for name in (inside, inside + "/", "old/0_Transformer", "link"):
        found, said = vectors(bench, name)
        equal(found, expected, name)
        contains(said, "note: vectors as modules.json", "cls, length 1, at most 5 tokens")
    contains(bench.expect(3, "encode", "old", "--text", "a", "-o", "v.npy").err, "give old/0_Transformer")
    other = copy_of(bench, "old/elsewhere")  # a folder that the list does not name
    equal(vectors(bench, other)[0], vectors(bench, DEMO)[0])
    write(bench.path("old"), "1_Pooling/config.json", {"pooling_mode": "max"})
    contains(bench.expect(3, "encode", inside, "--text", "a", "-o", "v.npy").err, "modules.json asks for the pooling 'max'")


def test_recipes_with_windows(bench):
    """Windows take the place of the length that the folder says, and of nothing else."""
    folder = sentence_folder(bench, "s", {"pooling_mode": "cls"}, ("Normalize", "2_Normalize"), max_seq_length=5)
    found, said = vectors(bench, folder, "--window", "8", "--stride", "2")
    contains(said, "cls, length 1 (")
    plain, _ = vectors(bench, DEMO, "--pool", "cls", "--window", "8", "--stride", "2")
    assert len(found) == len(plain) > 2, (len(found), len(plain))
    for row, other in zip(found, plain):
        length = sum(x * x for x in other) ** 0.5
        assert max(abs(x - y / length) for x, y in zip(row, other)) < 1e-6


def test_recipes_and_resume(bench):
    """A run that is resumed goes on as it began; with another recipe, or without one, it is another run."""
    bench.write("t.txt", "".join(f"{text}, said {number}\n" for number in range(1500) for text in TEXTS))
    folder = sentence_folder(bench, "s", {"pooling_mode": "cls"}, ("Normalize", "2_Normalize"), max_seq_length=5)
    words = ["encode", folder, "--file", "t.txt", "--batch-tokens", "128", "--threads", "1", "-q"]
    bench.fine(*words, "-o", "whole.npy")
    words += ["--resume", "-o", "v.npy"]
    journal = bench.path("v.npy.part.journal")
    running = bench.start(*words, stderr=subprocess.DEVNULL)
    with ending(running):
        wait_until(lambda: running.poll() is not None or os.path.exists(journal) and os.path.getsize(journal) > 300)
        running.send_signal(signal.SIGTERM)
        running.wait()
    modules = bench.read("s/modules.json")
    for name, changed_to in (("1_Pooling/config.json", {"pooling_mode": "mean"}), ("sentence_bert_config.json", {"max_seq_length": 6}),
                             ("modules.json", json.dumps(json.loads(modules)[:2]))):
        before = bench.read("s/" + name)
        write(folder, name, changed_to)
        contains(bench.expect(3, *words).err, "v.npy", "other settings")
        write(folder, name, before)
    contains(bench.expect(3, *words, "--pool", "cls", "--max-tokens", "5").err, "v.npy", "other settings")
    contains(bench.fine(*[word for word in words if word != "-q"]).err, "texts are done already", "cls, length 1, at most 5 tokens")
    equal(digest(bench, "v.npy"), digest(bench, "whole.npy"))


def changed(folder, **members):
    """tokenizer.json with other members below `model`."""
    path = os.path.join(folder, "tokenizer.json")
    with open(path, encoding="utf-8") as file:
        whole = json.load(file)
    write(folder, "tokenizer.json", {**whole, "model": {**whole["model"], **members}})


def test_keys_of_a_model_of_tokenizers(bench):
    """Inside `model`: what draws or cuts otherwise is refused or noted, what is off stays quiet."""
    tokenizers = os.path.join(bench.root, "tests", "golden", "tokenizers")
    for name in ("metaspace", "spm-unigram", "bpe-v1"):
        for number, (member, *words) in enumerate((({"fuse_unk": False, "dropout": None, "alpha": 0, "nbest_size": 0, "cache_capacity": 10000, "ignore_merges": False},),
                                                   ({"nbest_size": 64, "alpha": 0.1}, "nbest_size", "alpha", "none is drawn"), ({"fuse_unk": True}, "fuse_unk"),
                                                   ({"odd_key": 1}, "odd_key"), ({"dropout": 0.1}, "dropout"), ({"ignore_merges": True}, "ignore_merges"),
                                                   ({"continuing_subword_prefix": "##"}, "continuing_subword_prefix"))):
            folder = bench.path(f"{name}-{number}")
            shutil.copytree(os.path.join(tokenizers, name), folder)
            if name == "spm-unigram" and os.path.exists(os.path.join(folder, "spm.model")):
                os.remove(os.path.join(folder, "spm.model"))
            changed(folder, **member)
            refused = name == "bpe-v1" and number > 3
            if refused:
                contains(bench.expect(3, "tokenize", folder, "--text", "a new store").err, "tokenizer.json", *words)
                continue
            said = tokenized(bench, folder, "a new store")
            equal(said.code, 0, said)
            equal(said.err.count("note: "), 1 if words else 0, said.err)
            contains(said.err, *words)


def test_settings_that_a_kind_of_vocabulary_does_not_follow(bench):
    """Are named, once, where they say something; added tokens of the normalised text too; of many unknown keys the number of the rest."""
    tokenizers = os.path.join(bench.root, "tests", "golden", "tokenizers")
    for name, settings, words in (("spm-unigram", {"add_prefix_space": False}, ["add_prefix_space is false, which a SentencePiece unigram does not follow"]),
                                  ("spm-unigram", {"add_prefix_space": True}, []), ("metaspace", {"do_lower_case": False}, []),
                                  ("bpe-v1", {"do_lower_case": True}, ["do_lower_case or split_by_punct is true, which a byte-level BPE does not follow"]),
                                  ("bpe-v1", {"split_by_punct": True}, ["which a byte-level BPE does not follow"]), ("bpe-v1", {"do_lower_case": False, "add_prefix_space": False}, []),
                                  ("spm-unigram", {f"unheard_of_key_number_{k}": "a value" for k in range(20)}, ["unheard_of_key_number_0", " more: not followed"])):
        folder = bench.path("settings")
        shutil.copytree(os.path.join(tokenizers, name), folder)
        place = os.path.join(folder, "tokenizer_config.json")
        told = json.loads(open(place, encoding="utf-8").read()) if os.path.exists(place) else {}
        write(folder, "tokenizer_config.json", {**told, **settings})
        said = tokenized(bench, folder, "a new store")
        equal((said.code, said.err.count("note: ")), (0, int(bool(words))), said.err)
        contains(said.err, *words)
        shutil.rmtree(folder)


def test_added_tokens_of_the_normalised_text(bench):
    """tokenizers finds them in the lower-cased text, and this library as they are spelled."""
    folder = bench.path("added")
    shutil.copytree(os.path.join(bench.root, "tests", "golden", "tokenizers", "spm-unigram"), folder)
    if os.path.exists(os.path.join(folder, "spm.model")):
        os.remove(os.path.join(folder, "spm.model"))
    with open(os.path.join(folder, "tokenizer.json"), encoding="utf-8") as file:
        whole = json.load(file)
    steps = whole["normalizer"]["normalizers"]
    for lower, normalized, noted in ((True, True, 1), (True, False, 0)):
        extra = {"id": len(whole["model"]["vocab"]) + 7, "content": "FooBar", "single_word": False, "lstrip": False, "rstrip": False, "normalized": normalized, "special": False}
        changed = {**whole, "normalizer": {"type": "Sequence", "normalizers": [{"type": "Lowercase"}] * lower + steps}, "added_tokens": [*whole["added_tokens"], extra]}
        write(folder, "tokenizer.json", changed)
        said = tokenized(bench, folder, "a FooBar")
        equal(said.code, 0, said.err)
        equal(said.err.count("added tokens such as 'FooBar' are found as they are spelled"), noted, said.err)


POOLING = {"idx": 1, "name": "1", "path": "1_Pooling", "type": KIND + "Pooling"}


def linked_demo(bench):
    os.makedirs(bench.path("m/1_Pooling"))
    for name in os.listdir(DEMO):
        os.symlink(os.path.join(DEMO, name), bench.path(f"m/{name}"))
    bench.write("m/1_Pooling/config.json", '{"pooling_mode_cls_token": true}')
    return ["encode", bench.path("m"), "--text", "a", "-o", "v.npy"]


def test_limits_of_modules(bench):
    words = linked_demo(bench)
    bench.write("config.json", "{}")
    for modules, told in ((json.dumps([POOLING]) + " " * (16 << 20), "bytes of JSON, expected at most"), ("[" * 40 + "]" * 40, "nested deeper than 32"),
                          (json.dumps([0] * (3 << 19)), "values"), (json.dumps([POOLING] * 65), "65 modules, expected at most 64"), ("{}", "expected a JSON array"), ("", "modules.json"),
                          ('[{"path": "a", "path": "b"}]', "occurs twice"), (json.dumps([{**POOLING, "path": ".."}]), "expected the path of a folder inside, found '..'"),
                          (json.dumps([{**POOLING, "path": "1_Pooling/../.."}]), "expected the path of a folder inside"),
                          (json.dumps([{**POOLING, "path": bench.path("m/1_Pooling")}]), "expected the path of a folder inside")):
        bench.write("m/modules.json", modules)
        contains(bench.expect(3, *words).err, "modules.json", told)
    bench.write("m/modules.json", json.dumps([POOLING]))
    contains(bench.fine(*words).err, "vectors as modules.json", "cls")


def test_a_module_of_control_characters(bench):
    """They reach no terminal."""
    words = linked_demo(bench)
    os.mkdir(bench.path("m/1\x1b[31m"))
    bench.write("m/1\x1b[31m/config.json", '{"pooling_mode": ["cls", "mean"]}')
    bench.write("m/modules.json", json.dumps([{**POOLING, "path": "1\x1b[31m"}]))
    said = bench.expect(3, *words).err
    contains(said, "several poolings side by side")
    assert "\x1b" not in said, repr(said)
