"""`deberta encode` for corpora: values against the padded tensors of plain `encode`, formats, windows, resuming, bad lines.

DEBERTA_RESUMED_TEXTS and DEBERTA_RESUMED_SEED lengthen or repeat the run that is killed again and again.

SPDX-License-Identifier: MIT
"""
import array
import filecmp
import gzip
import json
import math
import os
import pathlib
import random
import re
import signal
import struct
import subprocess
from unittest import SkipTest

from helpers import DEMO, at_most, ending, make_model, read_tensors, wait_until, write_tensors

WIDTH = 32
RESUMED, SEED = int(os.environ.get("DEBERTA_RESUMED_TEXTS", "3000")), int(os.environ.get("DEBERTA_RESUMED_SEED", "1"))


def model(bench):
    return bench.shared("model", lambda path: make_model(path, "29", "spm-unigram", 3001))


def run(bench, *words, given=b"", code=0):
    return bench.expect(code, *words, stdin=given).strict()


def corpus(name, count, seed=3):
    dice, words = random.Random(seed), "the a new store opened beside old mall in Zürich ☃ and".split()
    path = pathlib.Path(name)
    path.write_text("".join(" ".join(dice.choices(words, k=dice.randrange(20))) + "\n" for _ in range(count)))
    return path


def encode(bench, out, *words, **keywords):
    path = pathlib.Path(out)
    return path, run(bench, "encode", model(bench), *words, "-o", path, **keywords)[1]


def hidden_of(bench, *words):
    """Rows of H[L] of one text, its padding cut, by plain encode."""
    run(bench, "encode", model(bench), *words, "-o", "plain.safetensors")
    tensor = read_tensors("plain.safetensors")[0]["hidden_states.2"]
    return [tensor.values[t * WIDTH:(t + 1) * WIDTH] for t in range(tensor.shape[1])]


def read_npy(path):
    data = path.read_bytes()
    assert data[:8] == b"\x93NUMPY\x01\x00"
    size = struct.unpack("<H", data[8:10])[0]
    assert (10 + size) % 64 == 0 and data[9 + size:10 + size] == b"\n"
    facts = eval(data[10:10 + size], {"__builtins__": {}})
    assert facts["descr"] == "<f4" and not facts["fortran_order"]
    values = array.array("f", data[10 + size:])
    assert len(values) == math.prod(facts["shape"])
    return facts["shape"], values


def as_float32(x):
    return array.array("f", [x])[0]


def mean(rows):
    return [as_float32(math.fsum(column) / len(rows)) for column in zip(*rows)]


def near_rows(a, b):
    assert len(a) == len(b) and max(abs(x - y) for x, y in zip(a, b)) < 1e-6, (list(a)[:4], list(b)[:4])


def test_pooling_agrees_with_plain_encode(bench):
    texts = ["a new store", "", "the old mall in Zürich and the store beside it", "   "]
    words = [w for text in texts for w in ("--text", text)]
    means = read_npy(encode(bench, "mean.npy", *words, "--pool", "mean")[0])
    firsts = read_npy(encode(bench, "cls.npy", *words, "--pool", "cls")[0])
    assert means[0] == firsts[0] == (4, WIDTH)
    whole, _ = read_tensors(encode(bench, "none.safetensors", *words, "--pool", "none")[0])
    starts = list(whole["starts"].values)
    assert whole["starts"].shape == (5,) and whole["hidden"].shape == (starts[-1], WIDTH)
    for k, text in enumerate(texts):
        rows = hidden_of(bench, "--text", text)
        assert starts[k + 1] - starts[k] == len(rows)
        near_rows(means[1][k * WIDTH:(k + 1) * WIDTH], mean(rows))
        assert firsts[1][k * WIDTH:(k + 1) * WIDTH] == rows[0]
        assert whole["hidden"].values[starts[k] * WIDTH:starts[k + 1] * WIDTH] == sum(rows[1:], rows[0])


def test_formats_hold_the_same_rows(bench):
    path = corpus("formats.txt", 90)
    shape, values = read_npy(encode(bench, "f.npy", "--file", path)[0])
    tensors, notes = read_tensors(encode(bench, "f.safetensors", "--file", path, "--pool", "mean", "--isa", "scalar", "--reference", "hf")[0])
    assert (tensors["pooled"].shape, tensors["pooled"].values) == (tuple(shape), values) and list(tensors) == ["pooled"]
    version = run(bench, "--version")[0].split()[1]
    assert notes == {"model": str(model(bench)), "version": version, "reference": "hf", "precision": "float32", "pool": "mean"}
    _, notes = read_tensors(encode(bench, "ablated.safetensors", "--file", path, "--pool", "cls", "--ablate", "c2p@0", "--ablate", "p2c@1:0")[0])
    assert (notes["pool"], notes["ablate"]) == ("cls", "c2p@0,p2c@1:0"), notes
    lines = [json.loads(line) for line in encode(bench, "f.jsonl", "--file", path)[0].read_text().splitlines()]
    assert [line["line"] for line in lines] == list(range(1, 91))
    assert array.array("f", [x for line in lines for x in line["pooled"]]) == values


def test_suffixes_in_capitals(bench):
    path = corpus("UPPER.TXT", 5)
    for small, large in (("u.npy", "U.NPY"), ("u.jsonl", "U.JSONL"), ("u.safetensors", "U.SAFETENSORS")):
        assert encode(bench, large, "--file", path, "--pool", "mean")[0].read_bytes() == \
            encode(bench, small, "--file", path, "--pool", "mean")[0].read_bytes()
    for name in ("IN.JSONL", "IN.NDJSON"):
        objects = pathlib.Path(name)
        objects.write_text('{"text": "a", "id": 7}\n')
        assert json.loads(encode(bench, "in.jsonl", "--file", objects)[0].read_text())["id"] == 7


def test_batches_do_not_show(bench):
    path = corpus("batches.txt", 120)
    one = encode(bench, "b1.npy", "--file", path)[0].read_bytes()
    for k, words in enumerate((["--batch-tokens", 1], ["--batch-tokens", 40], ["--threads", 1, "--batch-tokens", 300])):
        assert encode(bench, f"b2{k}.npy", "--file", path, *words)[0].read_bytes() == one
    assert encode(bench, "b3.npy", "--file", "-", given=path.read_bytes())[0].read_bytes() == one


def test_windows(bench):
    text = " ".join(f"word {k} of the new store" for k in range(40))
    tensors, notes = read_tensors(encode(bench, "w.safetensors", "--text", "short", "--text", text, "--window", 24, "--stride", 9)[0])
    assert (notes["window"], notes["stride"]) == ("24", "9"), notes
    listing = json.loads(run(bench, "tokenize", model(bench), "--json", "--text", text)[0])
    content = len(listing["ids"]) - 2
    windows = 1 + max(0, math.ceil((content - 22) / 9))
    assert tensors["pooled"].shape == (1 + windows, WIDTH) and list(tensors["text"].values) == [0] + windows * [1]
    spans = list(zip(tensors["characters"].values[0::2], tensors["characters"].values[1::2]))
    assert spans[0] == (0, 5) and spans[1][0] == 0 and spans[-1][1] == len(text)
    for number in range(windows):
        first, end = 1 + 9 * number, min(1 + 9 * number + 22, 1 + content)
        rows = hidden_of(bench, "--ids", ",".join(map(str, [listing["ids"][0]] + listing["ids"][first:end] + [listing["ids"][-1]])))
        near_rows(tensors["pooled"].values[(1 + number) * WIDTH:(2 + number) * WIDTH], mean(rows))
        assert spans[1 + number][1] == listing["offsets"][end - 1][1]
    lines = [json.loads(x) for x in
             encode(bench, "w.jsonl", "--text", text, "--window", 24, "--stride", 9, "--pool", "none")[0].read_text().splitlines()]
    assert [line["window"] for line in lines] == list(range(windows)) and len(lines[0]["hidden"]) == 24
    assert read_tensors(encode(bench, "long.safetensors", "--text", "x " * 60000, "--window", 64)[0])[0]["pooled"].shape[0] > 1000


def test_bad_lines_keep_their_rows(bench):
    path = pathlib.Path("bad.txt")
    path.write_bytes(b"one\n\xff two\n" + b"x " * 1_000_000 + b"\nnul \0 four\n")
    out, notes = encode(bench, "bad.npy", "--file", path, code=3)
    shape, values = read_npy(out)
    assert shape == (4, WIDTH) and "bad.txt, line 3: " in notes
    assert re.search(r": (\d+) tokens, but without --max-tokens the limit is 32768; --max-tokens \1 takes it whole, a smaller number cuts it", notes), notes
    assert [math.isnan(values[k * WIDTH]) for k in range(4)] == [False, False, True, False]
    lines = [json.loads(x) for x in encode(bench, "bad.jsonl", "--file", path, "--strict", code=3)[0].read_text().splitlines()]
    assert ["error" in line for line in lines] == [False, True, True, False]
    tensors, _ = read_tensors(encode(bench, "bad.safetensors", "--file", path, "--pool", "none", code=3)[0])
    starts = tensors["starts"].values
    assert starts[2] == starts[3] < starts[4]
    small = corpus("memory.txt", 20)
    small.write_text(small.read_text() + "x " * 3000 + "\nlast\n")
    notes = encode(bench, "memory.npy", "--file", small, "--batch-tokens", 100, "--memory-limit", "2M", code=3)[1]
    assert "line 21: " in notes and "--memory-limit" in notes and notes.count("line ") == 1, notes
    objects = pathlib.Path("bad-in.jsonl")
    objects.write_text('{"text": "a", "id": {"x": 1}}\n[]\n{"text": "b", "pair": "c"}\n')
    lines = [json.loads(x) for x in encode(bench, "p.jsonl", "--file", objects, "--window", 8, code=3)[0].read_text().splitlines()]
    assert ["error" in line for line in lines] == [False, True, True]
    lines = [json.loads(x) for x in encode(bench, "o.jsonl", "--file", objects, code=3)[0].read_text().splitlines()]
    assert lines[0]["id"] == {"x": 1} and "error" in lines[1] and lines[2]["tokens"] > lines[0]["tokens"]


def test_resuming(bench):
    path = corpus("resume.txt", 8000)
    words = ["--file", path, "--batch-tokens", 128, "--threads", 1]
    for out, more in (("r.npy", ["--pool", "cls"]), ("r.safetensors", ["--pool", "none"]), ("r.jsonl", ["--window", 12])):
        expected = encode(bench, "whole-" + out, *words, *more)[0].read_bytes()
        target = pathlib.Path(out)
        part, journal = pathlib.Path(out + ".part"), pathlib.Path(out + ".part.journal")
        running = bench.start("encode", model(bench), *words, *more, "--resume", "-o", target, stderr=subprocess.DEVNULL)
        with ending(running):
            wait_until(lambda: running.poll() is not None or journal.exists() and journal.read_bytes().count(b"\n") >= 3)
            running.send_signal(signal.SIGTERM)
            assert running.wait() == -signal.SIGTERM, "finished before it could be stopped"
        assert part.exists() and not target.exists()
        # what a crash leaves: half a row behind the last flush, half a line in the journal
        bench.append(part, b"half")
        bench.append(journal, b'{"texts":999')
        for other in (["--strict"], ["--skip-bad"], ["--ablate", "c2p@0"]):
            assert "other settings" in run(bench, "encode", model(bench), *words, *more, *other, "--resume", "-o", target, code=3)[1]
        if out == "r.safetensors":  # whose header tells of all rows and has its room already
            assert "other settings" in run(bench, "encode", f"{model(bench)}/", *words, *more, "--resume", "-o", target, code=3)[1]
        lines = path.read_text()
        path.write_text("changed " + lines)
        assert "not those" in run(bench, "encode", model(bench), *words, *more, "--resume", "-o", target, code=3)[1]
        path.write_text(lines)
        _, notes = encode(bench, out, *words, *more, "--resume")
        assert "texts are done already" in notes, notes
        assert target.read_bytes() == expected and not part.exists() and not journal.exists()


def test_other_ids_are_another_input(bench):
    """Texts that are equal under other ids: rows of the two inputs are not mixed, and the first input goes on."""
    path, out = pathlib.Path("ids.jsonl"), pathlib.Path("ids-out.jsonl")
    texts = corpus("ids.txt", 4000).read_text().splitlines()

    def write(letter):
        path.write_text("".join(json.dumps({"text": text, "id": f"{letter}{k}"}) + "\n" for k, text in enumerate(texts)))

    words = ["encode", model(bench), "--file", path, "--batch-tokens", 128, "--threads", 1, "--resume", "-o", out]
    write("A")
    journal = pathlib.Path(f"{out}.part.journal")
    running = bench.start(*words, stderr=subprocess.DEVNULL)
    with ending(running):
        wait_until(lambda: running.poll() is not None or journal.exists() and journal.read_bytes().count(b"\n") >= 2)
        running.send_signal(signal.SIGTERM)
        assert running.wait() == -signal.SIGTERM, "finished before it could be stopped"
    write("B")
    assert "not those" in bench.run(*words).err
    write("A")
    assert "done already" in bench.fine(*words).err
    assert [json.loads(line)["id"] for line in out.read_text().splitlines()] == [f"A{k}" for k in range(len(texts))]


def test_killed_again_and_again(bench):
    """Killed at five drawn moments, and gone on from each time: the bytes of a run that nobody disturbed."""
    path, dice = corpus("killed.txt", RESUMED), random.Random(SEED)
    words = ["encode", model(bench), "--file", path, "--pool", "mean", "--batch-tokens", 512, "--threads", 1]
    bench.run(*words, "-o", "undisturbed.npy", timeout=3000)
    journal, killed = pathlib.Path("killed.npy.part.journal"), 0
    for share in sorted(dice.random() for _ in range(5)):
        process = bench.start(*words, "--resume", "-o", "killed.npy", stderr=subprocess.DEVNULL)
        flushes = journal.read_bytes().count(b"\n") if journal.exists() else 0
        with ending(process):
            wait_until(lambda: process.poll() is not None or (journal.exists() and journal.read_bytes().count(b"\n") >= flushes + 1 + int(share * RESUMED / 20000)), 300)
            process.kill()
            killed += process.wait() == -signal.SIGKILL
    bench.run(*words, "--resume", "-o", "killed.npy", timeout=3000)
    assert killed >= 1, f"DEBERTA_RESUMED_SEED={SEED}: every run ended before it could be killed"
    assert filecmp.cmp("killed.npy", "undisturbed.npy", shallow=False), f"DEBERTA_RESUMED_SEED={SEED}, killed {killed} times"
    assert not journal.exists() and sorted(bench.files()) == ["killed.npy", "killed.txt", "undisturbed.npy"], bench.files()
    print(f"# {RESUMED} texts, killed {killed} times")


def test_signals_leave_nothing_behind(bench):
    path = corpus("signal.txt", 30000)
    running = bench.start("encode", model(bench), "--file", path, "--batch-tokens", "64", "-o", "s.npy")
    with ending(running):
        wait_until(lambda: running.poll() is not None or any(name.startswith(".deberta-") for name in bench.files()))
        running.send_signal(signal.SIGINT)
        assert running.wait() == -signal.SIGINT and bench.files() == ["signal.txt"], bench.files()


def test_links(bench):
    path = corpus("links.txt", 20)
    for name, words in (("l.npy", []), ("m.npy", ["--resume"])):
        link, real = pathlib.Path(name), pathlib.Path("real", name)
        real.parent.mkdir(exist_ok=True)
        link.symlink_to(real)
        assert "symbolic link" in run(bench, "encode", model(bench), "--file", path, *words, "-o", link, code=4)[1]
        assert link.is_symlink() and not list(real.parent.iterdir())
        real.write_text("old")
        encode(bench, name, "--file", path, *words)
        assert link.is_symlink() and list(real.parent.iterdir()) == [real] and read_npy(real)[0] == (20, WIDTH)
        real.unlink()


def test_a_named_pipe_is_a_file(bench):
    pipe, out = pathlib.Path("pipe"), pathlib.Path("pipe.npy")
    os.mkfifo(pipe)
    writer = subprocess.Popen(["sh", "-c", 'printf "one\\ntwo\\n" > "$1"', "sh", pipe])
    try:
        bench.fine("encode", model(bench), "--file", pipe, "-o", out, timeout=60)
    finally:
        writer.kill()
        writer.wait()
    assert read_npy(out)[0] == (2, WIDTH)


def test_a_model_whose_name_is_not_utf8(bench):
    folder = make_model(os.fsdecode(b"mod\xe9l"), "29", "spm-unigram", 3001)
    run(bench, "encode", folder, "--text", "a new store", "--pool", "mean", "-o", "name.safetensors")
    tensors, notes = read_tensors("name.safetensors")
    assert tensors["pooled"].shape == (1, WIDTH) and notes["model"].endswith("mod\ufffdl")


def test_damaged_weights_are_no_result(bench):
    """One bias that is no number makes every output one: encode writes nothing, and verify finds more to say than that both agree."""
    folder = make_model("damaged", "29", "spm-unigram", 3001)
    tensors, _ = read_tensors(folder / "model.safetensors")
    tensors[next(n for n in tensors if n.endswith("intermediate.dense.bias"))].values[3] = math.nan
    write_tensors(folder / "model.safetensors", tensors)
    for words in (["-o", "x.jsonl", "--pool", "mean"], ["-o", "x.npy"], ["-o", "x.safetensors"], ["-o", "x.safetensors", "--hidden", "all"]):
        words[1] = pathlib.Path(words[1])
        _, said = run(bench, "encode", folder, "--text", "a new store", *words, code=3)
        assert "is nan, expected -1024 to 1024: weights of the model are damaged" in said and not words[1].exists(), said
    assert "weights of the model are damaged" in run(bench, "verify", folder, "--isa", "scalar", code=3)[1]


def test_no_memory_leaves_nothing_behind(bench):
    """Vectors of a chunk that do not fit: one sentence, exit 4, and the half-written file is gone."""
    def encode(text, *more):
        return bench.run("encode", DEMO, "--file", bench.write("corpus.txt", text), "--pool", "none", "-o", "corpus.safetensors", *more,
                         preexec_fn=at_most("DATA", 1 << 27))

    if encode("one\n").code:
        raise SkipTest("does not run in 128 MB")
    os.remove("corpus.safetensors")
    result = encode(("word " * 100 + "\n") * 3000, "--batch-tokens", 1 << 20)
    assert result.code == 4 and "out of memory" in result.err, result.describe()
    assert os.listdir(".") == ["corpus.txt"], os.listdir(".")


def refused_as_texts(bench, name, what, also=""):
    """By whatever reads texts, and nothing is written."""
    for words in (["encode", DEMO, "--file", name, "-o", "out.npy"], ["classify", DEMO, "--json", "--file", name, "-o", "out.jsonl", "--shards", 2, "--shard", 0],
                  ["finetune", "sequence", DEMO, "--examples", name, "--new-head", "--steps", 1, "--out", "out"]):
        assert f"{name}: is {what}{also}" in bench.expect(3, *words).err, words
    for words in (["train", "mlm", DEMO, "--file", name, "--steps", 1, "--out", "out"], ["train", "tokenizer", "--file", name, "--vocabulary", 50, "--out", "out"]):
        assert f"{name} is {what}{also}" in bench.expect(3, *words).err, words
    assert not [name for name in os.listdir() if name.startswith("out")]


def test_compressed_input(bench):
    """Named before anything is opened; not a bad item in every line."""
    for name, data, kind in (("a.txt.gz", gzip.compress(b"a text"), "gzip"), ("b.jsonl", b"\x28\xb5\x2f\xfd\x04\x00", "zstd"), ("c.txt", b"\xfd7zXZ\x00\x00", "xz")):
        pathlib.Path(name).write_bytes(data)
        refused_as_texts(bench, name, f"compressed ({kind})", ", and texts are expected")
        with open(name, "rb") as file:
            done = subprocess.run(bench.command(("encode", DEMO, "--file", "-", "-o", "out.npy")), stdin=file, stderr=subprocess.PIPE, text=True, check=False)
        assert done.returncode == 3 and f"standard input: is compressed ({kind}), and texts are expected" in done.stderr, done.stderr


def test_files_that_are_no_texts(bench):
    """Weights, archives and UTF-16 are refused by name; text with a NUL here and there is text."""
    pathlib.Path("utf16.txt").write_bytes("ein Text\n".encode("utf-16"))
    pathlib.Path("archive.docx").write_bytes(b"PK\x03\x04\x14\x00\x06\x00\x08\x00\x00\x00\x21\x00 rest")
    for name, what in (("utf16.txt", "in UTF-16"), ("archive.docx", "a zip archive"), (f"{DEMO}/spm.model", "no text in UTF-8"),
                       (f"{DEMO}/model.safetensors", "no text in UTF-8")):
        refused_as_texts(bench, name, what)
    pathlib.Path("text.txt").write_bytes(b"a\0b \0 \xff\n" + b"some words and many more of them, and \0 between them\n" * 100)
    bench.fine("encode", DEMO, "--file", "text.txt", "-o", "out.npy", "--max-tokens", 8)


def test_notes_are_counted(bench):
    """Of lines in another encoding the first ten are named."""
    pathlib.Path("latin.txt").write_bytes(b"".join(b"caf\xe9 %d\n" % line for line in range(13)))
    err = bench.fine("encode", DEMO, "--file", "latin.txt", "-o", "out.npy").err
    assert err.count("broken UTF-8 replaced by U+FFFD in 1 place") == 10 and "3 more texts with broken UTF-8" in err, err
    err = bench.fine("encode", DEMO, "--file", "latin.txt", "-o", "out.npy", "--max-tokens", 3).err
    assert err.count("cut to 3 tokens") == 10 and "3 more texts cut" in err, err
