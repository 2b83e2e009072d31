"""What a training run meets besides good data: numbers that are not finite, full disks, files of other runs; and heads, texts and tensors
that are chosen by options.

SPDX-License-Identifier: MIT
"""
import json
import os
import re
import shutil
import struct
import subprocess
from unittest import SkipTest

from cases_train import TRAIN, case, corpus, digest, in_two_parts, narrow, read_log, tensors, write
from helpers import DEMO, at_most, check, contains, equal, make_model, near, needs_figures, needs_speed

REQUIRES = (corpus,)
SMALL = ("--file", "corpus.txt", "--sequence-tokens", "12", "--batch-sequences", "2")


def names_of(bench, folder):
    return set(tensors(bench.path(f"{folder}/model.safetensors")))


def config_of(bench, folder):
    return json.loads(bench.read(f"{folder}/config.json"))


def without(bench, name, *parts):
    """The narrow model without tensors whose names have one of the parts."""
    whole = narrow(bench)
    shutil.copytree(whole, bench.path(name))
    kept = {tensor: what for tensor, what in tensors(whole / "model.safetensors").items() if not any(part in tensor for part in parts)}
    write(bench.path(f"{name}/model.safetensors"), kept)
    return name


# -------------------------------------------------------------------------------------------------------------- heads


def test_new_language_head(bench):
    """An encoder without a head gets one: with the decoder where its table of positions is there, or --head asks for it."""
    plain = without(bench, "plain", "lm_predictions", "position_embeddings")
    contains(bench.expect(3, "train", "mlm", plain, *TRAIN, *SMALL, "--steps", "2", "--out", "x").err, "has no head 'mlm'", "--new-head")
    check(not os.path.exists(bench.path("x")), "a run that is refused makes no folder")
    positions = "deberta.embeddings.position_embeddings.weight"
    for model, more, decodes in ((plain, [], False), (plain, ["--head", "mlm_emd"], True), (without(bench, "placed", "lm_predictions"), [], True)):
        out = f"{model}-{len(more)}"
        bench.fine("train", "mlm", model, *TRAIN, *SMALL, "--new-head", *more, "--steps", "8", "--learning-rate", "0.001", "--out", out)
        assert (positions in names_of(bench, out)) == decodes, out
        log = read_log(bench, out)
        assert log[-1]["loss"] < log[0]["loss"], log  # near log 6000 at first
        near(log[0]["loss"], 8.7, 0.6)
        equal(config_of(bench, out)["architectures"], ["DebertaV2ForMaskedLM"])
        equal(config_of(bench, out)["legacy"], False)
        contains(bench.fine("info", out).out, "mlm_emd" if decodes else "mlm")
        bench.fine("fill-mask", out, "--text", "The [MASK] sat.")
    in_two_parts(bench, ["train", "mlm", plain, *TRAIN, *SMALL, "--new-head", "--steps", "8", "--learning-rate", "0.001"], 3, "cut", "--threads", "2")
    equal(digest(bench, "cut/model.safetensors"), digest(bench, "plain-0/model.safetensors"))


def test_new_head_of_replaced_tokens(bench):
    """The pair: the discriminator gets a head, the generator keeps its own, and `detect` reads what came out."""
    encoder = without(bench, "encoder", "lm_predictions", "classifier", "pooler")
    bench.fine("train", "rtd", encoder, "--generator", narrow(bench), *TRAIN, *SMALL, "--new-head", "--steps", "3", "--out", "pair")
    assert {"mask_predictions.dense.weight", "mask_predictions.LayerNorm.bias", "mask_predictions.classifier.bias"} <= names_of(bench, "pair/discriminator")
    assert not any("mask_predictions" in name for name in names_of(bench, "pair/generator"))
    near(read_log(bench, "pair")[0]["loss_discriminator"], 0.69, 0.2)  # log 2
    bench.fine("detect", "pair/discriminator", "--text", "The cat sat on the mat.")


def test_pair_of_other_words(bench):
    """An id means the same to both: not another piece, and not one more of them."""
    words = ["train", "rtd", DEMO, "--new-head", *TRAIN, *SMALL, "--steps", "1", "--out", "x", "--generator"]
    for name in ("renamed", "longer"):
        shutil.copytree(DEMO, bench.path(name))
    with open(bench.path("renamed/spm.model"), "rb+") as file:
        file.seek(file.read().index(b"store"))
        file.write(b"stroe")
    said = bench.expect(3, *words, "renamed").err
    assert re.search(r"id \d+ is another token in .*demo than in renamed", said), said
    bench.write("longer/added_tokens.json", '{"[MASK]": 5990, "[MORE]": 5991}')
    said = bench.run(*words, "longer").err
    assert re.search(r"the tokenizer of .*demo has 5991 ids, that of longer 5992", said), said
    for name, rows in (("many", 3001), ("few", 2990)):
        make_model(bench.path(name), "33", "spm-unigram", rows)
    words[2] = "many"
    contains(bench.expect(3, *words, "few").err, "the tokenizer of many has ", "the word table of few 2990 rows")
    words[2] = "few"
    contains(bench.expect(3, *words, "many").err, "the word table of many has 3001 rows, but that of few, which reads what it draws, 2990")
    assert not os.path.exists(bench.path("x"))


def test_best_of_a_pair(bench):
    """The last sentence names the step whose models are kept, and folders that are there: `best` is that of the smallest sum of both losses."""
    words = ["train", "rtd", narrow(bench), "--generator", narrow(bench), "--new-head", *TRAIN, *SMALL, "--eval", "corpus.txt", "--eval-every", "2"]
    said = bench.fine(*words, "--steps", "6", "--learning-rate", "0.02", "--optimizer", "xadam", "--out", "pair").err
    losses = {line["step"]: line["eval_loss"] for line in read_log(bench, "pair") if "eval_loss" in line}
    best = min(losses, key=losses.get)
    check(all(loss > 1 for loss in losses.values()), losses)
    contains(said, f"the best is step {best} with {losses[best]:.4f}, in pair/best/discriminator and pair/best/generator")
    for part in ("discriminator", "generator"):
        bench.fine("info", f"pair/best/{part}")
    found = json.loads(bench.fine(*words, "--steps", "4", "--json", "--out", "told").out)
    check("measure" not in found and found["best_step"] in (2, 4), found)


def test_labels_without_data(bench):
    """--labels makes a head for prepared batches too; an answer has two outputs, a choice one."""
    for name, task, labels, wrong in (("08-v2-conv-token", "token", "7", None), ("10-v3-qa", "qa", "2", "3"), ("18-v3-choice", "choice", "1", "2")):
        words = ["finetune", task, case(bench, name), *TRAIN, "--one-batch", os.path.join(case(bench, name), "batch.safetensors"), "--gradients", f"{task}.safetensors"]
        bench.fine(*words, "--labels", labels)
        equal(tensors(bench.path(f"{task}.safetensors"))["grad.qa_outputs.weight" if task == "qa" else "grad.classifier.weight"][1][0], int(labels))
        if wrong:
            contains(bench.expect(3, *words, "--labels", wrong).err, f"--labels: this head has {labels} output")


def test_question_without_label(bench):
    """A question's label cannot be left out: -100 once was read as a place before the first choice."""
    folder = case(bench, "18-v3-choice")
    batch = tensors(os.path.join(folder, "batch.safetensors"))
    words = ["finetune", "choice", folder, *TRAIN, "--one-batch", "batch.safetensors"]
    batch["labels"][2][1] = -100
    write(bench.path("batch.safetensors"), batch)
    contains(bench.expect(3, *words).err, "question 1: label -100, expected 0 to")
    del batch["labels"]
    write(bench.path("batch.safetensors"), batch)
    contains(bench.expect(3, *words).err, "question 0: label -100")


# -------------------------------------------------------------------------------------------------- texts and tensors


def test_lines(bench):
    """--sequences lines: every line is a sequence of its own; what does not fit is left out."""
    bench.write("corpus.txt", "The cat sat on the mat and looked at the dog.\nYes.\nSeven sailors sold their silver spoons.\n")
    words = ["train", "mlm", narrow(bench), *TRAIN, "--file", "corpus.txt", "--steps", "1", "--batch-sequences", "3"]
    for more, tokens in ((["--sequences", "lines", "--sequence-tokens", "64"], None), (["--sequences", "lines", "--sequence-tokens", "6"], 6 + 4 + 6)):
        bench.fine(*words, *more, "--out", f"out{tokens}")
        line = read_log(bench, f"out{tokens}")[0]
        equal((line["sequences"], line["epoch"]), (3, 1))
        if tokens:
            equal(line["tokens"], tokens)
    bench.fine(*words, "--sequence-tokens", "64", "--out", "joined")
    equal(read_log(bench, "joined")[0]["epoch"], 3)  # one document, one sequence
    equal(read_log(bench, "outNone")[0]["tokens"], read_log(bench, "joined")[0]["tokens"] // 3 + 4)  # two more frames


def test_freeze(bench):
    """--freeze of pre-training: what stays is out of the norm and of the gradients; of a pair it may be in one model alone."""
    words = ["train", "mlm", narrow(bench), *TRAIN, *SMALL, "--steps", "2", "--learning-rate", "0.01", "--warmup", "1"]
    bench.fine(*words, "--freeze", "embeddings", "--freeze", "layers:0", "--out", "a")
    before = tensors(narrow(bench) / "model.safetensors")
    after = tensors(bench.path("a/model.safetensors"))
    changed = {name for name in after if after[name][2] != before[name][2]}
    assert changed and not any("embeddings." in name and "rel_" not in name for name in changed) and not any("layer.0." in name for name in changed), changed
    assert any("layer.1." in name for name in changed)
    contains(bench.expect(3, *words, "--freeze", "nothing", "--out", "x").err, "no tensor 'nothing'")
    contains(bench.expect(2, *words, "--freeze", "layers:1-0", "--out", "x").err, "--freeze: 'layers:1-0' holds no layer: expected layers:A-B with A at most B")
    pair = ["train", "rtd", narrow(bench), "--generator", narrow(bench), "--new-head", *TRAIN, *SMALL, "--steps", "2", "--learning-rate", "0.01", "--warmup", "1"]
    bench.fine(*pair, "--freeze", "mask_predictions.*", "--out", "pair")
    assert not any(tensors(bench.path("pair/discriminator/model.safetensors"))["mask_predictions.dense.bias"][2])  # zeros at the start


# --------------------------------------------------------------------------------------------------- the end of a run


def test_end_of_run(bench):
    """Behind the last step the folder holds what a checkpoint holds; going on from there does nothing, another recipe is refused."""
    words = ["train", "mlm", narrow(bench), *TRAIN, *SMALL, "--out", "run"]
    bench.fine(*words, "--steps", "3")
    state = json.loads(bench.read("run/training.json"))
    equal((state["step"], state["recipe"]["steps"]), (3, 3))
    files = {name: digest(bench, f"run/{name}") for name in ("model.safetensors", "training.safetensors", "log.jsonl")}
    bench.fine(*words, "--steps", "3", "--resume")
    equal({name: digest(bench, f"run/{name}") for name in files}, files)
    contains(bench.expect(3, *words, "--steps", "4", "--resume").err, "steps 3, now 4")


def halves(path, name):
    with open(path, "rb") as file:
        data = file.read()
    size = struct.unpack("<Q", data[:8])[0]
    entry = json.loads(data[8:8 + size])[name]
    begin, end = entry["data_offsets"]
    return entry["dtype"], struct.unpack(f"<{(end - begin) // 2}e", data[8 + size + begin:8 + size + end])


def test_half_precision(bench):
    """--save-dtype f16 rounds as Python's struct does; the configuration says what the file holds, and a checkpoint stays float32."""
    words = ["train", "mlm", narrow(bench), *TRAIN, *SMALL, "--steps", "3", "--learning-rate", "0.001", "--checkpoint-every", "2"]
    bench.fine(*words, "--out", "whole")
    bench.fine(*words, "--save-dtype", "f16", "--out", "half")
    exact = tensors(bench.path("whole/model.safetensors"))
    for name in ("deberta.embeddings.word_embeddings.weight", "deberta.encoder.layer.1.attention.self.query_proj.bias", "lm_predictions.lm_head.bias"):
        values = exact[name][2]
        equal(halves(bench.path("half/model.safetensors"), name), ("F16", struct.unpack(f"<{len(values)}e", struct.pack(f"<{len(values)}e", *values))), name)
    equal([config_of(bench, folder)["dtype"] for folder in ("whole", "half", "half/checkpoint-000002")], ["float32", "float16", "float32"])
    equal(digest(bench, "half/checkpoint-000002/model.safetensors"), digest(bench, "whole/checkpoint-000002/model.safetensors"))
    bench.fine(*words, "--save-dtype", "f16", "--resume", "--out", "half")
    bench.fine("fill-mask", "half", "--text", "The [MASK] sat.")


def test_full_disk(bench):
    """A file that may not grow any more: one sentence, exit 4, and the last checkpoint is whole."""
    if "GCOV_PREFIX" in os.environ:
        raise SkipTest("the files with counts may not grow either")
    words = ["train", "mlm", narrow(bench), *TRAIN, *SMALL, "--steps", "4"]
    bench.fine(*words, "--out", "run", "--stop-at", "2")
    for out, bytes_, more in (("run", 1 << 20, ["--resume"]), ("other", 1 << 20, ["--checkpoint-every", "1"]), ("third", 100, [])):
        contains(bench.expect(4, *words, "--out", out, *more, preexec_fn=at_most("FSIZE", bytes_)).err.strip().split("\n")[-1], "File too large")
        assert not os.path.exists(bench.path(f"{out}/model.safetensors"))
    bench.fine("info", "run/checkpoint-000002")
    bench.fine(*words, "--out", "run", "--resume")
    bench.fine(*words, "--out", "whole")
    equal(digest(bench, "run/model.safetensors"), digest(bench, "whole/model.safetensors"))
    result = bench.run(*words, "--out", "/dev/full")
    assert result.code in (3, 4) and "/dev/full" in result.err, result.describe()


def test_not_finite(bench):
    """Also without a checkpoint and from texts: exit 1, the step, the tensor and the sequences of the data."""
    model = without(bench, "bad")
    path = bench.path("bad/model.safetensors")
    contents = tensors(path)
    contents["deberta.encoder.layer.1.output.dense.weight"][2][5] = float("inf")
    write(path, contents)
    result = bench.run("train", "mlm", model, *TRAIN, *SMALL, "--steps", "3", "--out", "x")
    lines = [line for line in result.err.split("\n") if "step 1: the loss is" in line]
    assert result.code == 1 and len(lines) == 1, result.describe()
    contains(lines[0], "is the first tensor with a gradient that is not finite", "; sequences ")
    assert all(int(number) < 12 for number in lines[0].split("; sequences ")[1].split(" and ")[0].split(", ")), lines
    equal(os.listdir(bench.path("x")), [])


# ----------------------------------------------------------------------------------------------------------- the log


def test_report(bench):
    """`report` shows the log beside the model, or the one it is given; a damaged one ends it with the line's number."""
    needs_figures(bench)
    bench.fine("train", "mlm", narrow(bench), *TRAIN, *SMALL, "--steps", "3", "--out", "run")
    words = ["report", "--ids", "1,5,2", "--skip", "latency,verify,receptive-field", "-q"]
    os.mkdir(bench.path("alone"))
    os.rename(bench.path("run/log.jsonl"), bench.path("alone/log.jsonl"))
    for model, more, drawn in (("run", [], False), ("run", ["--training-log", "alone"], True), ("run", ["--training-log", "alone/log.jsonl"], True), ("beside", [], True)):
        if model == "beside":
            os.rename(bench.path("alone/log.jsonl"), bench.path("run/log.jsonl"))
            os.rename(bench.path("run"), bench.path("beside"))
        out = f"page{len(bench.files())}"
        bench.fine(*words[:1], model, *words[1:], *more, "-o", out)
        about = json.loads(bench.read(f"{out}/index.html").split('id="json-page">')[1].split("</script>")[0])
        equal(any(file["name"] == "training.png" and file["bytes"] > 1000 for file in about["files"]), drawn, (model, more))
        equal("deberta train plot" in bench.read(f"{out}/commands.sh"), drawn, (model, more))
    bench.write("bad.jsonl", "no log\n")
    contains(bench.expect(3, *words[:1], "beside", *words[1:], "--training-log", "bad.jsonl", "-o", "bad").err, "bad.jsonl, line 1")


def test_damaged_log(bench):
    """`train plot` of what is no log, of a broken line, and of runs of different tasks in one figure."""
    needs_figures(bench)
    step = '{"step": %d, "loss": %g, "gradient_norm": 1, "learning_rate": 0.1}\n'
    good = "".join(step % (n, 3 - n / 10) for n in range(1, 9))
    for content, words in ((b"\x00\xff\xfe garbage", ["line 1", "no line of a training log"]), ("[1, 2]\n", ["line 1", '"step"']),
                           (good + '{"step": 9, "lo\n', ["line 9"]), (good + step % (2, 1), ["line 9", "step 2", "8"]),
                           ('{"step": 1, "loss": "low"}\n', ["line 1", '"loss"']), ('{"step": -4, "loss": 1}\n', ["line 1", "-4"]),
                           ('{"step": 1, "eval_loss": 2}\n', ["has no step"])):
        bench.write("log.jsonl", content)
        result = bench.run("train", "plot", "log.jsonl", "-o", "x.svg")
        assert result.code == 3, result.describe()
        contains(result.err, "log.jsonl", *words)
        assert result.err.count("\n") == 1 and not os.path.exists(bench.path("x.svg")), result.describe()
    bench.write("mlm.jsonl", good)
    bench.write("pair.jsonl", '{"step": 1, "loss": 40, "gradient_norm_generator": 1, "gradient_norm_discriminator": 2, "learning_rate": 0.1}\n'
                              '{"step": 2, "skipped": "step 2: the loss is nan"}\n{"step": 2, "eval_loss": 30, "eval_accuracy": 0.5}\n')
    bench.fine("train", "plot", "mlm.jsonl", "pair.jsonl", "-o", "both.svg")
    contains(bench.read("both.svg"), ">mlm<", ">pair<", "held-out loss")
    assert "SiFT" not in bench.read("both.svg")
    bench.write("sift.jsonl", '{"step": 1, "loss": 64, "loss_clean": 0.5, "gradient_norm": 1, "learning_rate": 0.1}\n'
                              '{"step": 2, "loss": 48, "loss_clean": 0.25, "gradient_norm": 1, "learning_rate": 0.1}\n')
    bench.fine("train", "plot", "sift.jsonl", "-o", "sift.svg")  # the task's loss on one axis, the objective on another
    contains(bench.read("sift.svg"), "loss with SiFT", ">0.25<", ">50<")


# ------------------------------------------------------------------------------------------------------ first attempts


def test_marks_of_editors(bench):
    """A byte order mark and Windows line ends are no text: of what pieces are learned from, and of what a model is trained on."""
    lines = [f"the old sailor number {n} sold {n * 7 % 13} silver spoons" for n in range(40)]
    bench.write("plain.txt", "\n".join(lines) + "\n")
    bench.write("marked.txt", b"\xef\xbb\xbf" + "".join(line + "\r\n" for line in lines).encode())
    for name in ("plain", "marked"):
        bench.fine("train", "tokenizer", "--file", f"{name}.txt", "--vocabulary", "40", "--depth", "1", "--width", "32", "--head-count", "2", "--out", f"new-{name}")
        bench.fine("train", "mlm", "--config", "new-plain", "--file", f"{name}.txt", "--sequence-tokens", "16", "--steps", "2", "--out", name)
    equal(digest(bench, "new-marked/spm.model"), digest(bench, "new-plain/spm.model"))
    equal(digest(bench, "marked/model.safetensors"), digest(bench, "plain/model.safetensors"))
    few = bench.expect(3, "train", "tokenizer", "--file", "plain.txt", "--vocabulary", "5000", "--out", "few")
    contains(few.err, "pieces besides [PAD], [CLS], [SEP] and [UNK], expected 4996")
    check(not os.path.exists(bench.path("few")), "nothing is left of a tokenizer that was not learned")


def test_folders_of_runs(bench):
    """A folder in use is refused before anything is said of the run; one that is not there has no run to resume; digests are not shown."""
    bench.write("corpus.txt", "the old sailor sold silver spoons\n" * 9)
    bench.write("others.txt", "a stranger came from the cold north\n" * 9)
    words = ["train", "mlm", DEMO, *SMALL, "--steps", "2", "--learning-rate", "1e-3"]
    contains(bench.expect(3, *words, "--resume", "--out", "nowhere").err, "nowhere: there is no such folder, and so no run to resume")
    bench.fine(*words, "--stop-at", "1", "--out", "run")
    equal(bench.expect(3, *words, "--out", "run").err.count("\n"), 1)
    other = [word.replace("corpus.txt", "others.txt") for word in words]
    contains(bench.expect(3, *other, "--seed", "3", "--resume", "--out", "run").err, "seed 0, now 3; the data has other contents now; to train its model further, ")


# -------------------------------------------------------------------------------------------------------- the recipe


# What comes out of it on the two books below. Any processor and any number of threads give these bits, so another digest is another arithmetic, another
# order of batches or another recipe: a change that means to be one says so in CHANGELOG.md, and puts what this test prints here.
RECIPE_DIGESTS = {"demo": {"mlm": "8c9a73d81474c2fc0ef85649e8f0098244d89b03efd0f049b4fd858870b384c5",
                           "books": "05cc9aef94fb9bae0935056d3f046d2bb3436abba4fb093baf447c84e41e76f3"},
                  "demo-bert": {"mlm": "1812923a261051be569faf98814fd6cca4bcc470f3e7d5cbe5b90c068723a40b",
                                "books": "f53ecf084354f68fb552a062bf7ba61b5b5e187bbe4db4a08deed702c91b3f6e"}}


DISCRIMINATOR_DIGESTS = {"weak": "3f962c425f1ef088840870e7970a37937478c94d3d424871e0b25c03d4b18764",
                         "strong": "2c14c8593a19810da105ea2c110652863dc29a75c1105837ca308be17113c5bf",
                         "last/discriminator": "5c511121425df2a47c4eacbe350b1b15d7028d5f88a12b8e5066d0a40e19f344",
                         "tags": "a41ce95ede0eada2592415d3a46a2cca45c933917b1bd9e00f8230a0c9c13a8f",
                         "answers": "8f02f548309b03cf62147fb9f33ff94b9f46ecb8a79724989ec150279b090b4c"}


def needs_time(bench):
    """In samples the runs of other tests say what they can of the same arithmetic."""
    needs_speed(bench)
    if os.environ.get("DEBERTA_TEST_QUICK"):
        raise SkipTest("left out of a sample")


def run_recipe(bench, kind):
    words = ["sh", os.path.join(DEMO, "recipe.sh"), "corpus", f"out-{kind}", "20", kind]
    done = subprocess.run(words, cwd=bench.path("."), env=dict(os.environ, DEBERTA=bench.command(())[0]), capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_discriminator_recipe(bench):
    """models/discriminator/recipe.sh on a tiny book: replaced words, tags and answers, always the same bits."""
    needs_time(bench)
    book = ['"I see the sea {},"'.format(n) + " said Tom. The captain looked at the house." for n in range(20)]
    book += ['"No," said the captain.' + f" She opened the door. He ran to the door. She waited. He was very good, and it rained, {n}." for n in range(20)]
    book += ["They ran in the door. They open the door, and wait."] * 12
    names = ["Mary", "Jim", "Anne", "Will", "Kate", "Ralph", "Polly", "Fanny", "Walter", "Rose", "Emma", "Peter", "Jane", "Hugh"]
    book += [f'"Yes," said {name}. "So good," said {name}.' for name in names]
    os.mkdir(bench.path("corpus"))
    os.mkdir(bench.path("masc"))
    for name, lines in (("train", book), ("valid", book[1::2])):
        bench.write(f"corpus/{name}.txt", "".join(line + "\n" for line in lines))
    for name in ("train", "held-out"):
        bench.write(f"masc/{name}.tsv", "Tom\tNOUN\nopened\tVERB\nthe\tDET\ndoor\tNOUN\n\n" * 8)
    words = ["sh", os.path.join(os.path.dirname(DEMO), "discriminator/recipe.sh"), "corpus", "masc", "out", "18"]
    for _ in "ab":  # a second call changes nothing
        done = subprocess.run(words, cwd=bench.path("."), env=dict(os.environ, DEBERTA=bench.command(())[0]), capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        equal({part: digest(bench, f"out/{part}/model.safetensors") for part in DISCRIMINATOR_DIGESTS}, DISCRIMINATOR_DIGESTS)
    equal(json.loads(bench.read("out/data/valid.jsonl").splitlines()[0])["text"], "At noon")
    for part, heads in (("last/discriminator", "rtd"), ("tags", "token"), ("answers", "qa")):
        contains(bench.fine("info", f"out/{part}").out, f"heads             {heads}\n")


def test_drop(bench):
    """--drop: tensors that the trained model does not have; no bit of the others moves."""
    words = ["train", "rtd", DEMO, "--new-head", "--generator", DEMO, *TRAIN, *SMALL, "--steps", "2", "--learning-rate", "0.01", "--warmup", "1"]
    dropped = ["--drop", "lm_predictions*", "--drop", "embeddings.position_embeddings.*", "--drop", "pooler.*"]
    bench.fine(*words, "--out", "all")
    in_two_parts(bench, [*words, *dropped], 1, "less")
    whole, less = (tensors(bench.path(f"{out}/discriminator/model.safetensors")) for out in ("all", "less"))
    gone = {name for name in whole if "lm_predictions" in name or "position_embeddings" in name or "pooler" in name}
    assert gone and set(less) == set(whole) - gone, set(whole) - set(less)
    assert all(less[name][2] == whole[name][2] for name in less)
    contains(bench.expect(3, *words, "--drop", "nothing*", "--out", "x").err, "no tensor 'nothing*' that could be left out")
    for option in ("drop", "freeze"):
        result = bench.run(*words, f"--{option}", b"\xff*", "--out", "x")
        assert result.code in (2, 3) and f"{option}[0] is no text in UTF-8" in result.err, result.describe()


def test_labels_stay_with_their_classifier(bench):
    """A new head for answers has no labels; those of the model go with its classifier, and stay where that stays."""
    line = {"question": "Who slept?", "context": "The cat slept.", "text": "The cat", "start": 0}
    words = ["finetune", "qa", DEMO, "--examples", bench.write("train.jsonl", f"{json.dumps(line)}\n" * 4), "--new-head", "--steps", "1", *TRAIN]
    bench.fine(*words, "--out", "both")
    bench.fine(*words, "--drop", "classifier.*", "--drop", "pooler.*", "--out", "answers")
    both, answers = (config_of(bench, folder) for folder in ("both", "answers"))
    assert both["id2label"] == config_of(bench, DEMO)["id2label"] and not {"id2label", "label2id", "num_labels"} & set(answers), answers
    equal(sorted(set(both) - set(answers)), ["id2label", "label2id"])
    assert not {"id2label", "label2id"} & set(config_of(bench, os.path.join(os.path.dirname(DEMO), "answers")))


def test_demo_recipe(bench):
    """models/demo/recipe.sh on two tiny books: a language model and a classifier of their titles, always the same; a second call changes nothing."""
    needs_time(bench)
    paragraphs = {"The Sea": "The captain looked at the sea and said nothing.", "The House": "The old house stood on the hill in the rain."}
    os.mkdir(bench.path("corpus"))
    bench.write("corpus/README.md", "".join(f"| {n} | {title} | 40 | 1 | train.txt |\n" for n, title in enumerate(paragraphs)) + "| 9 | Other | 3 | 1 | valid.txt |\n")
    bench.write("corpus/train.txt", "".join(f"{text} {n}\n" for text in paragraphs.values() for n in range(40)))
    bench.write("corpus/valid.txt", "The captain saw the house.\n" * 3)
    for kind in ("demo", "demo", "demo-bert"):
        run_recipe(bench, kind)
        equal({part: digest(bench, f"out-{kind}/{part}/model.safetensors") for part in ("mlm", "books")}, RECIPE_DIGESTS[kind], kind)
    with open(bench.path("out-demo-bert/mlm/model.safetensors"), "rb") as file:
        assert b"rel_embeddings" not in file.read(20000)  # the twin has no relative positions
    equal([line.split("\t")[0] for line in bench.read("out-demo/data/held-out.tsv").splitlines()], ["The Sea"] * 2 + ["The House"] * 2)
    equal(bench.read("out-demo/data/text.txt").count("\n\n"), 1)  # books are documents
    equal(list(config_of(bench, "out-demo/books")["label2id"]), ["The House", "The Sea"])
    equal((config_of(bench, "out-demo/books")["dtype"], len(read_log(bench, "out-demo/mlm"))), ("float16", 21))
