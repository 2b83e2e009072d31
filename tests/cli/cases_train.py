"""`train` and `finetune`: gradients in the file are those of the golden data, a run leaves a model that opens, bad labels are refused.

SPDX-License-Identifier: MIT
"""
import array
import hashlib
import json
import math
import os
import random
import shutil
import signal
import statistics
import struct
import subprocess
import time

from helpers import DEMO, Tensor, contains, near, needs_speed, read_tensors, write_tensors

TRAIN = ("--dropout", "0")
# A sample trains on one instruction set; drawn cases compare plain C.
OTHER_ISA = "auto" if os.environ.get("DEBERTA_TEST_QUICK") else "scalar"


def case(bench, name):
    return os.path.join(bench.root, "tests", "golden_train", name)


def tensors(path):
    """{name: (dtype, shape, values)}"""
    return {name: (tensor.dtype, list(tensor.shape), tensor.values) for name, tensor in read_tensors(path)[0].items()}


def write(path, contents):
    write_tensors(path, {name: Tensor(*content) for name, content in contents.items()})


TEXTS = """The cat sat on the mat and looked at the dog.

The weather today is cold and rainy in the north.

Seven sailors sold their silver spoons to a stranger.
"""


def corpus(bench):
    bench.write("corpus.txt", TEXTS)


REQUIRES = (corpus,)


def test_failed_first_step(bench):
    """A run that fails at once leaves nothing in the way of the next one, in the same folder."""
    text = bench.write("few.txt", "The old sailor shook his head.\n" * 8)
    rest = ("--file", text, "--steps", "1", "--sequence-tokens", "16", "--batch-sequences", "2", "--dropout", "0", "--out", "t")
    bench.expect(3, "train", "rtd", DEMO, "--generator", DEMO, *rest)  # it has no head for that
    bench.fine("train", "mlm", DEMO, *rest)


def expect_gradients(bench, folder):
    """Those of g.safetensors are the golden ones; both files."""
    got, want = tensors(bench.path("g.safetensors")), tensors(os.path.join(folder, "expected.safetensors"))
    assert set(got) == set(want) - {"delta"}, set(got) ^ set(want)
    for tensor, (_, shape, values) in want.items():
        if tensor not in ("loss", "delta"):
            assert got[tensor][1] == shape, tensor
            assert max(abs(a - b) for a, b in zip(got[tensor][2], values)) <= 1e-4 * max(map(abs, values)) + 1e-6, (folder, tensor)
    return got, want


def test_gradients(bench):
    for name, words in (("03-v3-mlm-emd", ["train", "mlm"]), ("11-v3-rtd", ["train", "rtd"]), ("08-v2-conv-token", ["finetune", "token"]),
                        ("13-v3-sift-sequence", ["finetune", "sequence", "--sift", "5"]), ("18-v3-choice", ["finetune", "choice"]),
                        ("10-v3-qa", ["finetune", "qa"])):
        folder = case(bench, name)
        said = bench.fine(*words[:2], folder, *words[2:], *TRAIN, "--one-batch", os.path.join(folder, "batch.safetensors"), "--gradients", "g.safetensors", "--json")
        got, want = expect_gradients(bench, folder)
        assert got["loss"][0] == "F64" and abs(got["loss"][2][0] - want["loss"][2][0]) < 1e-5 * abs(want["loss"][2][0])
        assert abs(json.loads(said.out)["loss"] - got["loss"][2][0]) < 1e-7 * abs(got["loss"][2][0])


def test_company(bench):
    """A longer sequence without labels reaches more of the relative table, and changes no gradient."""
    model, short, long = "synthetic:v3-xsmall,layers=2,vocab=300,lm=1", 130, 400
    ids = [3 + i * 7 % 290 for i in range(long)]
    labels = [5 + i if i % 9 == 4 else -100 for i in range(short)]
    rows = {"alone.safetensors": (1, short), "beside.safetensors": (2, long)}
    for name, (count, tokens) in rows.items():
        padding = [0] * (tokens - short)
        parts = {"input_ids": ids[:short] + padding, "attention_mask": [1] * short + padding, "labels": labels + [-100] * len(padding)}
        if count == 2:
            parts = {"input_ids": parts["input_ids"] + ids, "attention_mask": parts["attention_mask"] + [1] * long,
                     "labels": parts["labels"] + [-100] * long}
        write(bench.path(name), {key: ("I64", [count, tokens], array.array("q", values)) for key, values in parts.items()})
        bench.fine("train", "mlm", model, *TRAIN, "--one-batch", name, "--gradients", "of-" + name)
    alone, beside = (tensors(bench.path("of-" + name)) for name in rows)
    table = next(found[2] for name, found in alone.items() if name.endswith("rel_embeddings.weight"))
    assert any(table) and not any(table[:100 * 384]), "130 tokens reach some of 512 rows"
    assert alone == beside, [name for name in alone if alone[name] != beside[name]]


def test_labels_far_apart(bench):
    """The loss is a mean, so a step with labels all over a long text has the sum of the gradients of its stretches. Labels of one stretch
    are one block of the decoder's queries; those of the whole text are blocks with gaps, which are cut."""
    model, tokens, stretch = "synthetic:v3-xsmall,layers=2,hidden=64,heads=2,intermediate=64,vocab=300,lm=1,positions=1024", 600, 120
    draw = random.Random(7)
    ids = [3 + draw.randrange(290) for _ in range(2 * tokens)]
    places = [at for at in range(2 * tokens) if draw.random() < 0.12]

    def gradients(name, chosen):
        chosen = set(chosen)
        labels = [ids[at] if at in chosen else -100 for at in range(2 * tokens)]
        write(bench.path(name), {key: ("I64", [2, tokens], array.array("q", values))
                                 for key, values in (("input_ids", ids), ("attention_mask", [1] * len(ids)), ("labels", labels))})
        bench.fine("train", "mlm", model, *TRAIN, "--one-batch", name, "--gradients", "of-" + name)
        return tensors(bench.path("of-" + name))
    whole, sums = gradients("whole", places), {}
    for begin in range(0, tokens, stretch):
        part = [at for at in places if begin <= at % tokens < begin + stretch]
        for name, (_, _, values) in gradients(f"part-{begin}", part).items():
            before = sums.get(name, [0.0] * len(values))
            sums[name] = [a + len(part) / len(places) * b for a, b in zip(before, values)]
    for name, (_, _, values) in whole.items():
        if name == "loss" or name.startswith("grad."):
            largest = max(abs(value) for value in sums[name])
            assert max(abs(a - b) for a, b in zip(values, sums[name])) <= 1e-4 * largest + 1e-7, name


def golden_pair(bench):
    """The folder of a pair, the words that train it, and its batch, which is written as that of a run of one."""
    folder = case(bench, "12-v3-rtd-gdes")
    batch = {name: (dtype, [1, *shape], values) for name, (dtype, shape, values) in tensors(os.path.join(folder, "batch.safetensors")).items()}
    write(bench.path("batches.safetensors"), batch)
    return folder, ["train", "rtd", os.path.join(folder, "discriminator"), "--generator", os.path.join(folder, "generator"), *TRAIN], batch


def test_pair(bench):
    folder, words, batch = golden_pair(bench)
    bench.fine(*words, "--one-batch", os.path.join(folder, "batch.safetensors"), "--gradients", "g.safetensors")
    got, want = expect_gradients(bench, folder)
    near(got["loss"][2][0], want["loss"][2][0], 1e-4 * abs(want["loss"][2][0]) + 1e-6)
    run = [*words, "--batches", "batches.safetensors", "--steps", "3", "--learning-rate", "0.01", "--out", "pair"]
    contains(bench.fine(*run).err, "what was trained is in pair/discriminator and pair/generator", "log: pair/log.jsonl")
    contains(bench.expect(3, "detect", "pair", "--text", "a").err, "pair: holds two models; give pair/discriminator or pair/generator")
    trained = {part: tensors(bench.path(f"pair/{part}/model.safetensors")) for part in ("generator", "discriminator")}
    name = "deberta.embeddings.word_embeddings."
    sums = zip(trained["generator"][name + "weight"][2], trained["discriminator"][name + "_weight"][2], trained["discriminator"][name + "weight"][2])
    assert all(abs(a + b - c) <= 1e-6 for a, b, c in sums), "the discriminator's table is the generator's plus the difference"
    lines = bench.objects("pair/log.jsonl")
    assert len(lines) == 3 and all(abs(line["loss_generator"] + 50 * line["loss_discriminator"] - line["loss"]) < 1e-6 for line in lines)
    batch.pop("sampled_ids")  # then the generator draws them
    write(bench.path("batches.safetensors"), batch)
    bench.fine(*run[:-1], "drawn")
    assert digest(bench, "drawn/generator/model.safetensors") == digest(bench, "pair/generator/model.safetensors"), "draws have no gradient"
    assert digest(bench, "drawn/discriminator/model.safetensors") != digest(bench, "pair/discriminator/model.safetensors")


def test_run(bench):
    folder = case(bench, "t1-v3-mlm-emd-adamw")
    recipe = ["--batches", os.path.join(folder, "batches.safetensors"), "--steps", "30", "--learning-rate", "0.002", "--warmup", "5"]
    results = []
    for threads, isa, out in (("1", "auto", "a"), ("2", OTHER_ISA, "b")):
        bench.fine("train", "mlm", folder, *TRAIN, *recipe, "--threads", threads, "--isa", isa, "--out", out)
        results.append(bench.bytes(os.path.join(out, "model.safetensors")))
    assert results[0] == results[1], "threads and instruction sets must not show"
    log = bench.objects("a/log.jsonl")
    want = tensors(os.path.join(folder, "expected.safetensors"))["loss"][2]
    assert len(log) == 30 and all(abs(line["loss"] - loss) < 1e-5 for line, loss in zip(log, want))
    assert log[0]["learning_rate"] == 0 and log[5]["learning_rate"] == 0.002
    bench.fine("info", "a")
    bench.fine("encode", "a", "--ids", "1,3,5", "-o", "x.safetensors")
    os.mkdir(bench.path("new"))
    shutil.copy(os.path.join(folder, "config.json"), bench.path("new"))
    for seed, threads, out in (("1", "1", "new1"), ("1", "2", "again1"), ("2", "1", "new2")):
        bench.fine("train", "mlm", "--config", "new", *TRAIN, *recipe, "--seed", seed, "--threads", threads, "--out", out)
    made = [digest(bench, f"{out}/model.safetensors") for out in ("new1", "again1", "new2")]
    assert made[0] == made[1] != made[2], made
    config = bench.load("new/config.json")
    bench.write("new/config.json", json.dumps(config | {"embedding_size": config["hidden_size"] // 2}))
    bench.fine("train", "mlm", "--config", "new", *TRAIN, *recipe, "--out", "slim")
    slim = json.loads(bench.fine("info", "slim", "--json").out)["model"]
    assert slim["embedding_size"] < slim["hidden_size"] and slim["heads_present"] == ["mlm"], slim
    contains(bench.expect(3, "train", "mlm", "--config", "new", *TRAIN, *recipe, "--head", "mlm_emd", "--out", "none").err, "no head 'mlm_emd'")
    result = bench.run("train", "mlm", folder, *TRAIN, *recipe, "--out", "a")
    assert result.code != 0 and "not empty" in result.err, result.describe()


def read_log(bench, folder):
    return bench.objects(f"{folder}/log.jsonl")


def test_texts(bench):
    """Three sentences are learned by heart; threads and instruction sets do not show."""
    needs_speed(bench)
    words = ["train", "mlm", DEMO, *TRAIN, "--file", "corpus.txt", "--sequence-tokens", "32", "--learning-rate", "0.001"]
    bench.fine(*words, "--steps", "60", "--warmup", "6", "--batch-sequences", "12", "--masking", "uniform", "--out", "heart")
    log = read_log(bench, "heart")
    assert sum(line["loss"] for line in log[:4]) / 4 > 2 and sum(line["loss"] for line in log[-20:]) / 20 < 0.1, log
    assert [line["sequences"] for line in log] == [12] * 60 and log[-1]["epoch"] == 240 and log[0]["labelled"] > 12
    words[2], models = narrow(bench), set()
    for threads, isa in (("1", "auto"), ("2", "scalar"), ("5", "auto")):
        bench.fine(*words, "--steps", "3", "--batch-tokens", "40", "--max-ngram", "3", "--seed", "7", "--threads", threads, "--isa", isa, "--out", f"t{threads}")
        models.add(bench.bytes(f"t{threads}/model.safetensors"))
    assert len(models) == 1
    assert all(line["tokens"] <= 40 for line in read_log(bench, "t1"))
    for probability in (0.05, 0.5):
        bench.fine(*words, "--steps", "1", "--mask-probability", str(probability), "--out", f"p{probability}")
        step = read_log(bench, f"p{probability}")[0]
        assert abs(step["labelled"] - probability * step["tokens"]) <= 0.5 * step["sequences"] + 1, step
    contains(bench.expect(2, *words, "--steps", "1", "--mask-probability", "1", "--out", "p1").err, "--mask-probability")


def digest(bench, path):
    return hashlib.sha256(bench.bytes(path)).hexdigest()


def in_two_parts(bench, words, step, out, *more):
    """A run that stops after a step and goes on, as `more` says."""
    bench.fine(*words, "--stop-at", str(step), "--out", out)
    bench.fine(*words, *more, "--resume", "--out", out)


def log_without_time(bench, folder):
    return [{name: value for name, value in line.items() if name != "seconds"} for line in read_log(bench, folder)]


def narrow(bench):
    """A model with the demo's tokenizer and two narrow layers: a step of it takes a tenth of the demo's time."""
    def make(path):
        path.mkdir()
        for name in ("spm.model", "tokenizer_config.json", "added_tokens.json"):
            shutil.copy(os.path.join(DEMO, name), path)
        size = {"hidden_size": 48, "num_hidden_layers": 2, "intermediate_size": 96, "pooler_hidden_size": 48}
        (path / "config.json").write_text(json.dumps(bench.load(os.path.join(DEMO, "config.json")) | size))
        (path / "corpus.txt").write_text(TEXTS)
        bench.fine("train", "mlm", "--config", path, "--file", path / "corpus.txt", "--steps", "1", "--learning-rate", "0", "--head", "mlm_emd",
                   "--out", path / "model")
    return bench.shared("narrow", make) / "model"


def discriminator(bench, width=48):
    """It with a head for replaced tokens."""
    shutil.copytree(narrow(bench), bench.path("d"))
    model = tensors(bench.path("d/model.safetensors"))
    head = {"dense.weight": [width, width], "dense.bias": [width], "LayerNorm.weight": [width], "LayerNorm.bias": [width],
            "classifier.weight": [1, width], "classifier.bias": [1]}
    for name, shape in head.items():
        count = shape[0] * (shape[1] if len(shape) > 1 else 1)
        values = [1.0] * count if name == "LayerNorm.weight" else [(i * 37 % 101 - 50) / 2500 for i in range(count)]
        model["mask_predictions." + name] = "F32", shape, array.array("f", values)
    write(bench.path("d/model.safetensors"), model)
    return bench.path("d")


def test_replaced_tokens(bench):
    """From texts: the generator draws, the discriminator learns to tell; threads, tiers and a cut do not show."""
    needs_speed(bench)
    folder = discriminator(bench)
    words = ["train", "rtd", folder, "--generator", narrow(bench), "--dropout", "0.1", "--file", "corpus.txt", "--eval", "corpus.txt", "--sequence-tokens", "24",
             "--batch-sequences", "6", "--learning-rate", "0.0005", "--steps", "4", "--eval-every", "2"]
    for threads, isa, out in (("1", "auto", "a"), ("3", OTHER_ISA, "b")):
        bench.fine(*words, "--threads", threads, "--isa", isa, "--out", out)
    in_two_parts(bench, words, 1, "c")
    for part in ("generator", "discriminator"):
        assert len({digest(bench, f"{out}/{part}/model.safetensors") for out in "abc"}) == 1, part
        bench.fine("info", f"a/{part}")
    assert log_without_time(bench, "c") == log_without_time(bench, "a")
    log = read_log(bench, "a")
    evaluated = [line for line in log if "eval_loss" in line]
    assert [line["step"] for line in evaluated] == [2, 4]
    for line in evaluated:
        assert abs(line["eval_loss_generator"] + 50 * line["eval_loss_discriminator"] - line["eval_loss"]) < 1e-9 * line["eval_loss"]
    bench.fine(*words, "--learning-rate", "0.002", "--steps", "40", "--dropout", "0", "--out", "learned")
    learned = [line["loss_discriminator"] for line in read_log(bench, "learned") if "loss" in line]
    assert sum(learned[-5:]) < 0.7 * sum(learned[:5]), learned
    name = "deberta.embeddings.word_embeddings."
    g, d = (tensors(bench.path(f"learned/{part}/model.safetensors")) for part in ("generator", "discriminator"))
    assert name + "_weight" in d and any(d[name + "_weight"][2])
    assert d[name + "weight"][2][5000:6000] == array.array("f", [float32(a + b) for a, b in zip(g[name + "weight"][2][5000:6000], d[name + "_weight"][2][5000:6000])])


def float32(x):
    return struct.unpack("<f", struct.pack("<f", x))[0]


def test_sharing(bench):
    folder = discriminator(bench)
    words = ["train", "rtd", folder, "--generator", narrow(bench), "--dropout", "0", "--file", "corpus.txt", "--sequence-tokens", "24", "--batch-sequences", "6",
             "--learning-rate", "0.001", "--steps", "2"]
    name = "deberta.embeddings.word_embeddings.weight"
    model = tensors(bench.path("d/model.safetensors"))
    kind, shape, values = model[name]
    model[name] = kind, shape, array.array("f", (value + (i * 37 % 101 - 50) / 2500 for i, value in enumerate(values)))
    write(bench.path("d/model.safetensors"), model)
    tables, losses = {}, {}
    for way, options in (("none", ["--sharing", "none"]), ("none_coupled", ["--sharing", "none", "--coupled"]), ("es", ["--sharing", "es", "--coupled"]),
                         ("gdes", []), ("gdes_coupled", ["--coupled"])):
        bench.fine(*words, *options, "--clip", "0", "--out", way)
        tables[way] = [tensors(bench.path(f"{way}/{part}/model.safetensors"))[name][2] for part in ("generator", "discriminator")]
        losses[way] = json.loads(bench.read(f"{way}/log.jsonl").split("\n")[0])["loss_discriminator"]
    assert abs(losses["gdes_coupled"] - losses["none_coupled"]) < 1e-6, f"a difference that no file had is what the tables differ by: {losses}"
    assert tables["es"][0] == tables["es"][1] and tables["none"][0] != tables["none"][1]
    # the generator learns nothing from the discriminator but where the table is one; without clipping coupling does not show in it either
    assert tables["none"][0] == tables["gdes"][0] == tables["gdes_coupled"][0] == tables["none_coupled"][0] != tables["es"][0]
    assert tables["none"][1] == tables["none_coupled"][1] and tables["gdes"][1] != tables["gdes_coupled"][1] != tables["none"][1]
    for options, code, part in ((["--sharing", "es"], 2, "--coupled"), (["--generator", folder, "--seed", str(1 << 32)], 3, "seed is 4294967296, expected 0 to 4294967295")):
        contains(bench.expect(code, *words, *options, "--out", "x").err, part)
    contains(bench.expect(2, "train", "rtd", folder, "--file", "corpus.txt", "--steps", "2", "--out", "x").err, "--generator MODEL")
    result = bench.run("train", "rtd", folder, "--generator", case(bench, "03-v3-mlm-emd"), "--file", "corpus.txt", "--steps", "2", "--out", "x")
    assert result.code == 3 and result.err.count("\n") == 1, result.describe()


def test_dropout(bench):
    """What is dropped depends on seed and step alone: not on threads, instruction set, or where a run was cut."""
    folder = case(bench, "03-v3-mlm-emd")
    losses = {}
    for words in ([], ["--dropout", "0"], ["--dropout", "0.1"], ["--seed", "1"]):  # its config.json says 0.1
        said = bench.fine("train", "mlm", folder, *words, "--one-batch", os.path.join(folder, "batch.safetensors"), "--json")
        losses[" ".join(words)] = json.loads(said.out)["loss"]
    assert losses[""] == losses["--dropout 0.1"] and len(set(losses.values())) == 3, losses
    words = ["train", "mlm", narrow(bench), "--dropout", "0.2", "--file", "corpus.txt", "--eval", "corpus.txt", "--sequence-tokens", "24", "--batch-sequences", "3",
             "--learning-rate", "0.001", "--steps", "4"]
    for threads, isa, out in (("1", "auto", "a"), ("3", OTHER_ISA, "b")):
        bench.fine(*words, "--threads", threads, "--isa", isa, "--out", out)
    in_two_parts(bench, words, 2, "c")
    assert len({digest(bench, f"{out}/model.safetensors") for out in "abc"}) == 1
    assert log_without_time(bench, "c") == log_without_time(bench, "a")
    result = bench.run(*words, "--dropout", "0.1", "--resume", "--out", "c")
    assert result.code == 3 and "dropout [0.2" in result.err and "no checkpoint" not in result.err, result.describe()


def test_drawn_perturbation(bench):
    """SiFT without a tensor delta draws its start: from the seed, the same for any threads and tiers."""
    folder = case(bench, "13-v3-sift-sequence")
    batch = tensors(os.path.join(folder, "batch.safetensors"))
    del batch["delta"]
    write(bench.path("batch.safetensors"), batch)
    losses = []
    for words in (["--threads", "1"], ["--threads", "3", "--isa", "scalar"], ["--seed", "7"], ["--dropout", "0.1"]):
        said = bench.fine("finetune", "sequence", folder, "--sift", "5", *TRAIN, *words, "--one-batch", "batch.safetensors", "--json")
        losses.append(json.loads(said.out)["loss"])
    assert losses[0] == losses[1] and len(set(losses)) == 3 and abs(losses[0] - losses[2]) < 0.5, losses


def philox(counter, key):
    """Philox4x32-10."""
    for _ in range(10):
        high, low = divmod(counter[0] * 0xD2511F53, 1 << 32)
        other_high, other_low = divmod(counter[2] * 0xCD9E8D57, 1 << 32)
        counter = [other_high ^ counter[1] ^ key[0], other_low, high ^ counter[3] ^ key[1], low]
        key = [(key[0] + 0x9E3779B9) % (1 << 32), (key[1] + 0xBB67AE85) % (1 << 32)]
    return counter


def test_sift_start_and_step(bench):
    """What --sift-start draws is docs/training.md's delta, computed here on its own; a small --sift-step changes the loss in proportion."""
    folder, seed = case(bench, "13-v3-sift-sequence"), 5
    batch = tensors(os.path.join(folder, "batch.safetensors"))
    dtype, (sequences, columns, width), _ = batch["delta"]
    words = ["finetune", "sequence", folder, "--sift", "5", *TRAIN, "--seed", str(seed), "--json", "--one-batch"]
    quantile = statistics.NormalDist().inv_cdf  # Wichura's AS 241

    def said(name, *more):
        write(bench.path(name), batch)
        return json.loads(bench.fine(*words, name, *more).out)["loss"]
    found = {}
    for start in (0.01, 0.4):
        values = array.array("f", [max(-2 * start, min(start * quantile((philox([e // 4, place, sequence, 18 << 26], [seed, 0])[e % 4] + 0.5) / 2 ** 32), 2 * start))
                  for sequence in range(sequences) for place in range(columns) for e in range(width)])
        batch["delta"] = (dtype, [sequences, columns, width], values)
        given = said("given.safetensors", "--sift-step", "0.2")
        del batch["delta"]
        near(said("drawn.safetensors", "--sift-start", str(start), "--sift-step", "0.2"), given, 2e-6 * abs(given))
        found[start] = given
    assert abs(found[0.01] - found[0.4]) > 1e-3, found
    none, small, twice, default = (said("drawn.safetensors", "--sift-step", step) for step in ("0", "0.001", "0.002", "0.0001"))
    near(twice - none, 2 * (small - none), 0.1 * abs(small - none))  # a straight line near 0
    assert abs(small - none) > 1e-3 and said("drawn.safetensors") == default == said("drawn.safetensors", "--sift-start", "0.01"), (none, small, default)
    for wrong in (["--sift-step", "-1"], ["--sift-start", "nan"]):
        contains(bench.expect(2, *words, "drawn.safetensors", *wrong).err, wrong[0])
    contains(bench.expect(2, *words[:3], *TRAIN, "--one-batch", "drawn.safetensors", "--sift-step", "1").err, "--sift")


def bad_run(bench, step, steps):
    """A model whose last word has weights that are no numbers, and batches in which it stands in one step alone."""
    folder = case(bench, "t4-v2-conv-token-xadam")
    model, batches = tensors(os.path.join(folder, "model.safetensors")), tensors(os.path.join(folder, "batches.safetensors"))
    vocabulary, width = model["deberta.embeddings.word_embeddings.weight"][1]
    ids, (_, sequences, columns) = batches["input_ids"][2], batches["input_ids"][1]
    for at, word in enumerate(ids):
        ids[at] = min(word, vocabulary - 2)
    ids[(step - 1) * sequences * columns] = vocabulary - 1
    model["deberta.embeddings.word_embeddings.weight"][2][(vocabulary - 1) * width] = float("nan")
    os.mkdir(bench.path("bad"))
    shutil.copy(os.path.join(folder, "config.json"), bench.path("bad"))
    write(bench.path("bad/model.safetensors"), model)
    write(bench.path("batches.safetensors"), batches)
    return ["finetune", "token", "bad", *TRAIN, "--batches", "batches.safetensors", "--steps", str(steps), "--learning-rate", "0.001"]


def test_skip_bad(bench):
    """A step whose loss is not finite ends a run with step and tensor, and the last checkpoint stays; or it is passed over."""
    words = [*bad_run(bench, 2, 4), "--checkpoint-every", "1"]
    contains(bench.expect(1, *words, "--out", "stopped").err, "step 2: the loss is", "is the first tensor", "; sequences ")
    assert os.path.exists(bench.path("stopped/checkpoint-000001/training.json")) and not os.path.exists(bench.path("stopped/model.safetensors"))
    bench.fine(*words, "--bad-steps", "1", "--out", "passed")
    log = read_log(bench, "passed")
    assert [line["step"] for line in log] == [1, 2, 3, 4] and "step 2: the loss is" in log[1]["skipped"] and "loss" in log[3], log
    in_two_parts(bench, [*words, "--bad-steps", "1"], 3, "cut")
    assert digest(bench, "cut/model.safetensors") == digest(bench, "passed/model.safetensors")


def test_memory(bench):
    """What a run takes is said before its first step, and too low a limit is refused before anything is written."""
    words = ["train", "mlm", DEMO, *TRAIN, "--file", "corpus.txt", "--sequence-tokens", "12", "--batch-sequences", "2", "--steps", "1", "--out", "x"]
    result = bench.run(*words, "--memory-limit", "60M")
    assert result.code == 4 and "steps of 24 tokens needs" in result.err and "60.0 MiB" in result.err and not os.path.exists(bench.path("x")), result.describe()
    assert "MiB" in bench.fine(*words, "--memory-limit", "400M").err


def test_resume(bench):
    """A run that is stopped behind any step and goes on, with other threads, ends with the same bits and the same log."""
    words = ["train", "mlm", narrow(bench), *TRAIN, "--file", "corpus.txt", "--sequence-tokens", "12", "--batch-sequences", "4", "--learning-rate", "0.001",
             "--steps", "6"]
    bench.fine(*words, "--threads", "1", "--checkpoint-every", "1", "--out", "whole")
    assert sorted(name for name in os.listdir(bench.path("whole")) if name.startswith("checkpoint")) == ["checkpoint-000004", "checkpoint-000005"], "the last two are kept"
    for step, threads in ((1, "1"), (2, "2"), (3, "5"), (4, "1"), (5, "2")):
        out = f"cut{step}"
        stopped = bench.fine(*words, "--stop-at", str(step), "--threads", "2", "--out", out)
        assert f"step {step} of 6" in stopped.err and not os.path.exists(bench.path(f"{out}/model.safetensors")), stopped.describe()
        bench.append(f"{out}/log.jsonl", '{"step": 99}\n')  # a step whose checkpoint was never written
        bench.fine(*words, "--resume", "--threads", threads, "--out", out)
        assert digest(bench, f"{out}/model.safetensors") == digest(bench, "whole/model.safetensors"), step
        assert log_without_time(bench, out) == log_without_time(bench, "whole"), step
    for name in ("model", "training"):
        assert digest(bench, f"cut5/checkpoint-000005/{name}.safetensors") == digest(bench, f"whole/checkpoint-000005/{name}.safetensors")
    bench.fine("info", "whole/checkpoint-000005")


def test_resume_pair(bench):
    words = [*golden_pair(bench)[1], "--batches", "batches.safetensors", "--steps", "4", "--learning-rate", "0.01"]
    bench.fine(*words, "--out", "whole")
    in_two_parts(bench, words, 2, "cut")
    for part in ("generator", "discriminator"):
        assert digest(bench, f"cut/{part}/model.safetensors") == digest(bench, f"whole/{part}/model.safetensors"), part
    assert log_without_time(bench, "cut") == log_without_time(bench, "whole")
    files = [f"whole/{part}/{name}" for part in ("generator", "discriminator") for name in ("model.safetensors", "training.safetensors", "config.json")]
    before = [digest(bench, file) for file in files]
    assert "nothing is trained or measured" in bench.fine(*words, "--resume", "--out", "whole").err
    assert "this run is finished, with weights in float32" in bench.expect(3, *words, "--save-dtype", "f16", "--resume", "--out", "whole").err
    assert [digest(bench, file) for file in files] == before


def test_resume_refused(bench):
    words = ["train", "mlm", DEMO, *TRAIN, "--file", "corpus.txt", "--sequence-tokens", "12", "--batch-sequences", "2", "--steps", "3", "--out", "run"]
    result = bench.run(*words, "--resume")
    assert result.code in (3, 4) and "run" in result.err, result.describe()
    bench.fine(*words, "--stop-at", "1")
    before = digest(bench, "run/log.jsonl")
    for change, parts in ((["--learning-rate", "0.123456"], ["learning-rate 0.0001, now 0.123456"]), (["--seed", "3", "--clip", "2"], ["seed 0, now 3", "clip 1.0, now 2.0"]),
                          (["--schedule", "constant", "--masking", "uniform"], ['schedule "linear", now "constant"', 'masking "ngram", now "uniform"']),
                          (["--file", "corpus.txt"], ["data"])):
        contains(bench.expect(3, *words, *change, "--resume").err, *["checkpoint-000001", *parts])
    assert digest(bench, "run/log.jsonl") == before
    os.rename(bench.path("run/log.jsonl"), bench.path("run/kept"))
    bench.write("run/log.jsonl", "")
    contains(bench.expect(3, *words, "--resume").err, "log.jsonl does not reach step 1")
    os.rename(bench.path("run/kept"), bench.path("run/log.jsonl"))
    with open(bench.path("run/checkpoint-000001/training.safetensors"), "r+b") as file:
        file.truncate(1000)
    contains(bench.expect(3, *words, "--resume").err, "training.safetensors")
    os.remove(bench.path("run/checkpoint-000001/training.json"))
    contains(bench.expect(3, *words, "--resume").err, "no checkpoint")


def test_held_out(bench):
    """The loss of held-out texts is that of a step on the trained model, and looking at it changes nothing."""
    bench.write("other.txt", "A dog and a cat were friends.\n\nIt rained all day in the city.\n\nShe sold her boat.\n")
    words = ["train", "mlm", narrow(bench), *TRAIN, "--file", "corpus.txt", "--sequence-tokens", "16", "--batch-sequences", "2", "--steps", "5"]
    held_out = ["--eval", "other.txt", "--eval-every", "2"]
    bench.fine(*words, "--out", "plain")
    bench.fine(*words, *held_out, "--threads", "2", "--out", "whole")
    assert digest(bench, "plain/model.safetensors") == digest(bench, "whole/model.safetensors")
    log = read_log(bench, "whole")
    found = [line for line in log if "eval_loss" in line]
    assert [line["step"] for line in found] == [2, 4, 5] and len(log) == 8 and len({line["eval_loss"] for line in found}) == 3, log
    assert all(line["eval_sequences"] == 3 and line["eval_labelled"] >= 3 for line in found)
    in_two_parts(bench, [*words, *held_out], 4, "cut")
    assert log_without_time(bench, "cut") == log_without_time(bench, "whole")
    # the best of the steps before it was interrupted is read from the log: here one that no later step reaches, then one that all do
    for loss, stays in ((0.0625, True), (100.0, False)):
        folder = f"best{loss}"
        bench.fine(*words, *held_out, "--stop-at", "2", "--out", folder)
        before = digest(bench, f"{folder}/best/model.safetensors")
        lines = [line | {"eval_loss": loss} if "eval_loss" in line else line for line in read_log(bench, folder)]
        bench.write(f"{folder}/log.jsonl", "".join(json.dumps(line) + "\n" for line in lines))
        bench.fine(*words, *held_out, "--resume", "--out", folder)
        assert (digest(bench, f"{folder}/best/model.safetensors") == before) == stays, loss
    # a run of a step with rate 0 on these texts alone, all in one batch, has the same masks only by number; so one sequence
    bench.write("one.txt", "She sold her boat to the man.\n")
    one = ["train", "mlm", narrow(bench), *TRAIN, "--file", "one.txt", "--eval", "one.txt", "--batch-sequences", "1", "--steps", "1", "--learning-rate", "0"]
    bench.fine(*one, "--out", "one")
    step, evaluated = read_log(bench, "one")
    assert step["loss"] == evaluated["eval_loss"] and step["labelled"] == evaluated["eval_labelled"], (step, evaluated)


def test_held_out_words_that_are_right(bench):
    """Where the sum of the losses is below ln 2, every word has more than half: all are right. Of another text few are."""
    bench.write("one.txt", "She sold her boat to the man.\n")
    bench.write("other.txt", "Wolves howl. Nine old kings drank cider.\n")
    words = ["train", "mlm", DEMO, *TRAIN, "--file", "one.txt", "--batch-sequences", "1", "--steps", "40", "--learning-rate", "3e-4"]
    for file, all_right in (("one.txt", True), ("other.txt", False)):
        folder = file[:-4]
        report = json.loads(bench.fine(*words, "--eval", file, "--json", "--out", folder).out)
        found = [line for line in read_log(bench, folder) if "eval_right" in line][-1]
        near(report["masked_right"], found["eval_right"] / found["eval_labelled"], 1e-8)
        if all_right:
            assert found["eval_loss"] * found["eval_labelled"] < math.log(2) and found["eval_right"] == found["eval_labelled"], found
        else:
            assert found["eval_right"] < found["eval_labelled"], found


def test_interrupt(bench):
    """Ctrl-C: the step is finished, a checkpoint written, 130; what goes on from there ends as if nothing had been."""
    words = ["train", "mlm", DEMO, *TRAIN, "--file", "corpus.txt", "--sequence-tokens", "12", "--batch-sequences", "4", "--steps", "16"]
    run = bench.start(*words, "--out", "cut", stderr=subprocess.PIPE, text=True)
    log = bench.path("cut/log.jsonl")
    until = time.monotonic() + 60
    while time.monotonic() < until and not (os.path.exists(log) and os.path.getsize(log) > 0):
        time.sleep(0.01)
    run.send_signal(signal.SIGINT)
    said = run.communicate(timeout=120)[1]
    assert run.returncode == 130 and "--resume" in said, (run.returncode, said)
    assert len(read_log(bench, "cut")) < 16
    bench.fine(*words, "--out", "cut", "--resume")
    bench.fine(*words, "--out", "whole")
    assert digest(bench, "cut/model.safetensors") == digest(bench, "whole/model.safetensors")


def test_bad_texts(bench):
    bench.write("empty.txt", "\n\n")
    bench.write("broken.txt", b"fine\nbro\xffken\n")
    run = ["--steps", "3", "--out", "x"]
    for words, code, parts in ((["--file", "corpus.txt"], 2, ["--file", "--steps"]), (["--file", "corpus.txt", "--steps", "3"], 2, ["--out FOLDER"]),
                               (["--file", "corpus.txt", "--batches", "b", *run], 2, ["--file", "--batches"]),
                               (["--file", "corpus.txt", "--masking", "uniform", "--max-ngram", "3", *run], 2, ["--max-ngram"]),
                               (["--file", "empty.txt", *run], 3, ["empty.txt", "no text"]),
                               (["--file", "broken.txt", *run], 3, ["broken.txt, line 2"]),
                               (["--file", "corpus.txt", "--sequence-tokens", "9999", *run], 3, ["9999", "position table", "512"]),
                               (["--file", "corpus.txt", "--batch-tokens", "4", *run], 3, ["at most 4"])):
        result = bench.run("train", "mlm", DEMO, *TRAIN, *words)
        assert result.code == code and all(part in result.err for part in parts), result.describe()
        assert not os.path.exists(bench.path("x")), result.describe()
    contains(bench.expect(2, "finetune", "sequence", DEMO, *TRAIN, "--file", "corpus.txt").err, "--file")


def refused(bench, name, words, change, code, *parts):
    folder = case(bench, name)
    batch = tensors(os.path.join(folder, "batch.safetensors"))
    change(batch)
    write(bench.path("batch.safetensors"), batch)
    result = bench.run(*words[:2], folder, *words[2:], *TRAIN, "--one-batch", "batch.safetensors", "--gradients", "g.safetensors")
    assert result.code == code and all(part in result.err for part in parts), result.describe()
    assert result.err.count("\n") == 1 and not os.path.exists(bench.path("g.safetensors")), result.describe()


def test_bad_batches(bench):
    mlm, token = ["train", "mlm"], ["finetune", "token"]

    def set_value(name, at, value):
        return lambda batch: batch[name][2].__setitem__(at, value)

    def no_labels(batch):
        for at in range(len(batch["labels"][2])):
            batch["labels"][2][at] = -100

    refused(bench, "03-v3-mlm-emd", mlm, set_value("labels", 1, 61), 3, "sequence 0, token 1", "label 61", "0 to 60")
    refused(bench, "03-v3-mlm-emd", mlm, set_value("input_ids", 2, -4), 3, "sequence 0, token 2", "id -4", "0 to 60")
    refused(bench, "03-v3-mlm-emd", mlm, no_labels, 3, "no label")
    refused(bench, "03-v3-mlm-emd", mlm, lambda batch: batch.pop("input_ids"), 3, "'input_ids' is missing")
    refused(bench, "08-v2-conv-token", token, set_value("labels", 0, 5), 3, "label 5", "0 to 4")
    refused(bench, "03-v3-mlm-emd", ["finetune", "qa"], lambda batch: None, 3, "has no head 'qa'")


def test_wrong_use(bench):
    folder = case(bench, "03-v3-mlm-emd")
    batch = os.path.join(folder, "batch.safetensors")
    for words, parts in ((["train"], ["expected mlm|rtd|tokenizer"]), (["finetune"], ["expected sequence|choice|token|qa MODEL"]),
                         (["train", "average"], ["'average' is none of: mlm, rtd"]), (["train", "average", "--file", "x"], ["'average' is none of: mlm, rtd"]),
                         (["train", "mlmm"], ["there is no 'mlmm'; did you mean train mlm?"]), (["finetune", "seqence", "--steps", "2"], ["did you mean finetune sequence?"]),
                         (["train", "mlm", folder, *TRAIN], ["expected --file FILE --steps N --out FOLDER"]),
                         (["train", "mlm", folder, "--one-batch", batch, "--dropout", "1"], ["--dropout"]),
                         (["train", "mlm", folder, *TRAIN, "--one-batch", batch, "--virtual-shards", "3"], ["power of two"]),
                         (["train", "mlm", folder, *TRAIN, "--batches", batch, "--steps", "3"], ["--out FOLDER"]),
                         (["train", "mlm", folder, *TRAIN, "--batches", batch, "--steps", "3", "--warmup", "4", "--out", "x"], ["--warmup"])):
        contains(bench.expect(2, *words).err, *parts)


def test_bench_train(bench):
    model = "synthetic:v3-small,layers=2,hidden=48,heads=3,intermediate=80,vocab=97,positions=32,buckets=8,lm=1"
    words = ["bench", "train", model, "-n", "24", "-b", "3", "--reps", "2", "--threads", "1"]
    found = json.loads(bench.fine(*words, "--json").out)
    assert found["schema"] == "deberta-bench-train/1" and found["tokens"] == 72 and 1 <= found["labelled"] <= 40 and found["decoder"]
    stages = {row["stage"]: row for row in found["stages"]}
    assert len(found["step_seconds"]) == 2 and abs(sum(row["percent"] for row in found["stages"]) - 100) < 1e-6
    assert stages["forward"]["gflop"] > 0 and stages["norm"]["gflop"] is None and found["peak_gflops"] > 0
    # by hand: one whole layer, and keys and values of the last; projections, products of pairs, and strips of the rows that 24 tokens reach
    linear = 2 * 72 * (4 * 48 * 48 + 2 * 48 * 80)
    rows = 16 - 1
    attention = 3 * (4 * 24 * 24 * 48 + 2 * 2 * 24 * rows * 48)
    assert abs(stages["forward"]["gflop"] * 1e9 - linear - attention) < 1, (stages["forward"], linear + attention)
    weights = {row["memory"]: row["bytes"] for row in found["memory"]}
    assert weights["weights and gradients"] == weights["moments"] > 2 * 4 * 97 * 48
    plain = json.loads(bench.fine(*words, "--json", "--head", "mlm", "--no-peak").out)
    assert not plain["decoder"] and plain["peak_gflops"] is None
    text = bench.fine(*words, "--no-peak").out
    assert "weight gradients" in text and "tokens/s" in text
    assert bench.fine(*words, "--no-peak", "--format", "csv").out.count("\n") == 1 + len(stages)
    contains(bench.expect(2, *words[:3], "--virtual-shards", "3").err, "--virtual-shards: expected a power of two, found 3")
    said = bench.run("bench", "train", model.replace(",lm=1", ""))
    assert said.code != 0 and "has no head" in said.err, said.err
    batch = os.path.join(case(bench, "03-v3-mlm-emd"), "batch.safetensors")
    said = bench.run("train", "mlm", model, *TRAIN, "--batches", batch, "--steps", "1", "--out", "run")
    assert said.code != 0 and "a made-up model has no files" in said.err and not os.path.exists(bench.path("run")), said.err
