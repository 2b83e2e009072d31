"""Corpora in shards: whatever is drawn (command, format, number of shards, tier, threads, moments of death), the merged file has the
bytes of one process; and what is missing, doubled, tampered with or of another making is named.

DEBERTA_SHARDS_SEED, DEBERTA_SHARDS_CASES and DEBERTA_SHARDS_TEXTS repeat or lengthen what is drawn. SPDX-License-Identifier: MIT
"""
import contextlib
import hashlib
import json
import os
import pathlib
import random
import shutil
import signal
import subprocess
import time

from unittest import mock

from helpers import DEMO, at_most, contains, ending, make_model, wait_until

QUICK = bool(os.environ.get("DEBERTA_TEST_QUICK"))
LARGE = int(os.environ.get("DEBERTA_SHARDS_TEXTS", "8000"))
SEED, CASES = int(os.environ.get("DEBERTA_SHARDS_SEED", "1")), int(os.environ.get("DEBERTA_SHARDS_CASES", "5" if QUICK else "14"))
TIERS = ["scalar", "auto", "auto"]
WORDS = "the a new store opened beside old mall in Zürich ☃ and".split()


def other_model(bench, command="tag"):
    case, labels = {"tag": ("30", ["O", "B-PER", "I-PER", "B-LOC", "I-LOC"]), "detect": ("36", None), "fill-mask": ("33", None)}[command]
    return bench.shared(f"for-{command}", lambda path: make_model(path, case, "spm-unigram", 3001, labels))


@contextlib.contextmanager
def telling(case):
    try:
        yield
    except AssertionError:
        print(f"DEBERTA_SHARDS_SEED={SEED}, case {case}")
        raise


def make_texts(dice, count, mask=False):
    texts = [" ".join(dice.choices(WORDS, k=dice.randrange(1, 24))) for _ in range(count)]
    return [t + " [MASK]" * (mask and dice.random() < 0.9) for t in texts]


def make_input(dice, name, count, mask=False):
    """A file of lines or of objects, some of which have ids and some of which cannot be used."""
    texts, kind = make_texts(dice, count, mask), dice.choice(["txt", "jsonl"])
    path = pathlib.Path(f"{name}.{kind}")
    if kind == "txt":
        lines = [t.encode() if dice.random() < 0.97 else b"\xff broken" for t in texts]
    else:
        lines = [json.dumps({"text": t, **({"id": dice.choice([k, f"id {k}", {"n": k}])} if dice.random() < 0.7 else {})}).encode()
                 if dice.random() < 0.96 else b'{"txt": "no text"}' for k, t in enumerate(texts)]
    path.write_bytes(b"".join(line + b"\n" for line in lines))
    return path


def digest(path):
    return hashlib.sha256(pathlib.Path(path).read_bytes()).hexdigest()


def draw_command(bench, dice):
    command = dice.choice(["encode", "encode", "encode", "classify", "tag", "detect", "fill-mask"])
    words = ["--strict"] if dice.random() < 0.5 else []
    if command == "encode":
        suffix = dice.choice([".npy", ".safetensors", ".jsonl"])
        choices = {".npy": [["--pool", "mean"], ["--pool", "cls"]],
                   ".safetensors": [["--pool", "none"], ["--window", 12], ["--pool", "cls"], ["--pool", "none", "--window", 9]],
                   ".jsonl": [["--pool", "mean"], ["--window", 12, "--stride", 5], ["--pool", "none"], ["--pool", "none", "--window", 9]]}[suffix]
        return command, [DEMO, *dice.choice(choices), *words], suffix
    extra = {"classify": ["--top", dice.randrange(1, 4)], "tag": ["--grouping", dice.choice(["first", "simple", "none"])],
             "detect": ["--threshold", 0.25], "fill-mask": ["--top", 2]}[command]
    return command, [DEMO if command == "classify" else other_model(bench, command), "--json", *extra, *words], ".jsonl"


def finish_shard(bench, arguments, dice, deaths, env=None):
    """Runs one shard to its end, with some deaths before; the last exit code."""
    for _ in range(deaths):
        process = bench.start(*arguments, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=env)
        with ending(process):
            time.sleep(dice.uniform(0, 0.12))
            process.send_signal(dice.choice([signal.SIGKILL, signal.SIGKILL, signal.SIGTERM, signal.SIGUSR1]))
            process.wait()
        assert process.returncode in (0, 3, 75, -signal.SIGKILL, -signal.SIGTERM, -signal.SIGUSR1), process.returncode
    return bench.run(*arguments, env=env).code


def test_drawn_shards(bench):
    """The file that is merged is the file of one process, and an audit on another tier finds the same bytes."""
    for case in range(CASES):
        dice = random.Random(SEED * 1000 + case)
        with telling(case):
            command, words, suffix = draw_command(bench, dice)
            words += ["--file", make_input(dice, f"in{case}", dice.randrange(1, 90), command == "fill-mask")] + ["--skip-bad"] * (dice.random() < 0.6)
            one = bench.run(command, *words, "-o", f"one{case}{suffix}")
            assert one.code in (0, 3) and pathlib.Path(f"one{case}{suffix}").exists(), one.describe()
            shards = dice.randrange(1, 7)
            order = dice.sample(range(shards), shards)
            for shard in order:
                arguments = [command, *words, "-o", f"m{case}{suffix}", "--shards", shards, "--isa", dice.choice(TIERS), "--threads", dice.randrange(1, 3)]
                env = {"SLURM_ARRAY_TASK_ID": str(shard)} if dice.random() < 0.3 else None
                arguments += ["--shard", shard] if env is None else []
                if dice.random() < 0.5:
                    arguments += ["--batch-tokens", dice.choice([1, 30, 200])]
                code = finish_shard(bench, arguments, dice, dice.choice([0, 0, 0, 1, 2]), env)
                assert code in (0, one.code), (arguments, code, one.code)
                assert bench.run(*arguments, env=env).code == 0  # finished: nothing to do
            folder = f"m{case}{suffix}.shards"
            assert {p.suffix for p in pathlib.Path(folder).iterdir()} == {".json", ".items", suffix}
            audited = ["--audit", "100%", "--isa", dice.choice(TIERS)] if case % 3 == 0 else []
            if audited and dice.random() < 0.5:  # the input lies elsewhere now
                given = pathlib.Path(words[words.index("--file") + 1])
                pathlib.Path(f"moved{case}").mkdir()
                audited += ["--file", shutil.copy(given, f"moved{case}")]
            told = bench.run("merge", folder, "-o", f"m{case}{suffix}", *audited)
            assert told.code == one.code, told.describe()
            assert digest(f"m{case}{suffix}") == digest(f"one{case}{suffix}") and digest(f"m{case}{suffix}") in told.out, told.describe()


def encode_all(bench, out, source, shards, *words):
    for shard in range(shards):
        bench.fine("encode", DEMO, "--file", source, "-o", out, "--shards", shards, "--shard", shard, *words)
    return pathlib.Path(f"{out}.shards")


def plain(name, count, seed=5):
    """Texts enough to be met in the middle of; a program with a sanitizer is slower, and met in the middle of fewer."""
    path, count = pathlib.Path(name), count // 3 if QUICK and count >= 1500 else count
    path.write_text("".join(t + "\n" for t in make_texts(random.Random(seed), count)))
    return path


def test_twenty_deaths(bench):
    """Killed at 20 drawn moments: what was flushed is not computed again, and the bytes are those of an undisturbed run."""
    source, dice = plain("deaths.txt", 1500), random.Random(SEED)
    words = ["encode", DEMO, "--file", source, "--batch-tokens", 64, "--threads", 1]
    bench.fine(*words, "-o", "one.npy")
    arguments = [*words, "-o", "many.npy", "--shards", 1, "--shard", 0]
    journal, far, deaths = pathlib.Path("many.npy.shards/0-of-1.npy.part.journal"), 0, 0
    while deaths < 20:
        process = bench.start(*arguments, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        with ending(process):
            before = journal.read_bytes().count(b"\n") if journal.exists() else 0
            wait_until(lambda: process.poll() is not None or (journal.exists() and journal.read_bytes().count(b"\n") > before), 5)
            time.sleep(dice.uniform(0, 0.01))
            process.kill()
            process.wait()
        if process.returncode == 0:
            break
        deaths += 1
        lines = journal.read_bytes().split(b"\n")[1:-1]
        texts = json.loads(lines[-1])["texts"] if lines else 0
        assert texts >= far, "work that was flushed is lost"
        far = texts
    assert deaths >= 5, f"only {deaths} deaths before the end"
    bench.fine(*arguments)
    bench.fine("merge", "many.npy.shards", "-o", "many.npy")
    assert digest("many.npy") == digest("one.npy")


def stop_half_way(bench, arguments, journal, number=signal.SIGKILL, flushes=3):
    """Sends the signal when so much is in the journal; what was said."""
    process = bench.start(*arguments, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    with ending(process):
        assert wait_until(lambda: process.poll() is not None or (journal.exists() and journal.read_bytes().count(b"\n") >= flushes), 120)
        process.send_signal(number)
        _, said = process.communicate(timeout=60)
    assert process.returncode == (-number if number == signal.SIGKILL else 75), (f"DEBERTA_SHARDS_SEED={SEED}", arguments, process.returncode, said)
    return said


def test_told_to_stop(bench):
    """SIGTERM and SIGUSR1 end with 75 and keep what is done."""
    source = plain("stop.txt", 3000)
    for number, command in ((signal.SIGTERM, ["encode", DEMO]), (signal.SIGUSR1, ["classify", DEMO, "--json"])):
        out = f"stop{number}.jsonl"
        arguments = [*command, "--file", source, "-o", out, "--shards", 2, "--shard", 1, "--batch-tokens", 64]
        journal = pathlib.Path(f"{out}.shards/1-of-2.jsonl.part.journal")
        said = stop_half_way(bench, arguments, journal, number)
        assert b"the same command goes on" in said, said
        done = json.loads(journal.read_bytes().split(b"\n")[-2])["texts"]
        assert 0 < done < len(source.read_text().splitlines()) and bench.fine(*arguments).code == 0


def test_lock(bench):
    arguments = ["encode", DEMO, "--file", plain("lock.txt", 4000), "-o", "lock.npy", "--shards", 2, "--shard", 1, "--batch-tokens", 64]
    part = pathlib.Path("lock.npy.shards/1-of-2.npy.part")  # it is made once the journal, which is there before, is locked
    first = bench.start(*arguments, stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
    with ending(first):
        assert wait_until(part.exists)
        first.send_signal(signal.SIGSTOP)
        contains(bench.expect(4, *arguments).err, "1-of-2.npy.part is being written by another run")
        first.send_signal(signal.SIGCONT)
        assert first.wait() == 0
    assert "nothing is left to do" in bench.fine(*arguments).err


def test_whatever_is_read_of_an_item_counts(bench):
    """A shard, and rows that stopped, go on only with items of which everything that the command reads is the same; sizes of files are."""
    one = {"id": "x", "text": "ab", "pair": "c"}
    for command, before, after in (
            (["classify", DEMO, "--json"], {"text": "the baker", "choices": ["in", "at"]}, {"text": "the baker", "choices": ["at", "in"]}),
            (["classify", DEMO, "--json"], one, one | {"text": "a", "pair": "bc"}), (["classify", DEMO, "--json"], one | {"id": "1", "x": 1}, one | {"id": 1, "xyz": 1}),
            (["encode", DEMO], {"text": "a", "pair": "", "x": 1}, {"text": "a", "note": "", "x": 1}),
            (["encode", DEMO], {"text": "a", "pair": "b\n-"}, {"text": "a\n-", "pair": "b"})):
        source, suffix = pathlib.Path("read.jsonl"), ".jsonl" if command[0] == "classify" else ".npy"
        arguments = [*command, "--file", source, "-o", f"rows{suffix}", "--shards", 1, "--shard", 0]
        source.write_text(json.dumps(before) + "\n")
        shutil.rmtree(f"rows{suffix}.shards", ignore_errors=True)
        first = bench.run(*arguments)
        assert first.code in (0, 3), first.describe()
        contains(bench.fine(*arguments).err, "nothing is left to do")
        source.write_text(json.dumps(after) + "\n")
        contains(bench.expect(3, *arguments).err, "was made of other input (the texts of its files differ)")
        assert len(json.dumps(before)) == len(json.dumps(after)), after  # else the size would have told it


def test_null_is_no_id(bench):
    """Objects whose id is null are told apart by their places, as those without the key; their rows have no id."""
    for name, of in (("null", {"id": None}), ("none", {})):
        pathlib.Path(f"{name}.jsonl").write_text("".join(json.dumps({**of, "text": text}) + "\n" for text in make_texts(random.Random(3), 40)))
        pathlib.Path(name).mkdir()
        shutil.move(f"{name}.jsonl", f"{name}/ids.jsonl")
        encode_all(bench, f"{name}.jsonl", f"{name}/ids.jsonl", 4)
    for shard in range(4):
        rows = [pathlib.Path(f"{name}.jsonl.shards/{shard}-of-4.jsonl").read_bytes() for name in ("null", "none")]
        assert rows[0] == rows[1].replace(b"none/", b"null/") and rows[0] and b'"id"' not in rows[0], shard


def test_new_items_move_no_others(bench):
    """An id decides the shard, not the place; without ids a second file moves nothing of the first."""
    dice, texts = random.Random(7), make_texts(random.Random(8), 60)

    def owners(out, *files):
        folder, found = encode_all(bench, out, files[0], 4, *(w for f in files[1:] for w in ("--file", f))), {}
        for rows in sorted(folder.glob("*.jsonl")):
            for line in map(json.loads, rows.read_text().splitlines()):
                found[str(line.get("id", (line["file"], line["line"])))] = rows.name
        return found

    objects = [json.dumps({"id": f"item {k}", "text": t}) + "\n" for k, t in enumerate(texts)]
    pathlib.Path("ids.jsonl").write_text("".join(objects[:40]))
    pathlib.Path("more.jsonl").write_text("".join(dice.sample(objects, len(objects))))
    before, after = owners("a.jsonl", "ids.jsonl"), owners("b.jsonl", "more.jsonl")
    assert len(after) == 60 and {k: after[k] for k in before} == before and len(set(after.values())) == 4
    first, second = plain("first.txt", 30), plain("second.txt", 30, seed=6)
    before, after = owners("c.jsonl", first), owners("d.jsonl", first, second)
    assert len(after) == 60 and {k: after[k] for k in before} == before


def sign(manifest):
    """As the program does: the digest of all other members."""
    manifest.pop("digest", None)
    text = json.dumps(manifest, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return {**manifest, "digest": hashlib.sha256(text.encode()).hexdigest()}


def rewrite(path, change):
    manifest = json.loads(path.read_text())
    change(manifest)
    path.write_text(json.dumps(sign(manifest), ensure_ascii=False))


def refused(bench, folder, code, *wanted):
    for words in (["--verify"], ["-o", "refused.npy"]):
        told = bench.run("merge", folder, *words)
        assert told.code == code and all(w in told.err + told.out for w in wanted), told.describe()
    assert not os.path.exists("refused.npy")


def test_what_merge_refuses(bench):
    whole = encode_all(bench, "refuse.npy", plain("refuse.txt", 60), 8)
    bench.fine("merge", whole, "--verify")
    contains(bench.expect(2, "merge", whole, "--verify", "--out", "refuse.npy").err, "--verify and --out exclude each other")
    assert not os.path.exists("refuse.npy")

    def damaged(name):
        shutil.rmtree(name, ignore_errors=True)
        return pathlib.Path(shutil.copytree(whole, name))

    folder = damaged("missing")
    for k in (3, 5, 6, 7):
        (folder / f"{k}-of-8.json").unlink()
    refused(bench, folder, 1, "4 of 8 shards", "--array=3,5-7\n")
    folder = damaged("tampered")
    path = folder / "2-of-8.json"
    path.write_text(path.read_text().replace('"tokens": ', '"tokens": 1'))
    refused(bench, folder, 3, "2-of-8.json was changed after it was written")
    folder = damaged("rows")
    bench.flip(folder / "4-of-8.npy", -3)
    refused(bench, folder, 3, "shard 4", "4-of-8.npy is not as it was written")
    folder = damaged("gone")
    (folder / "4-of-8.npy").unlink()
    refused(bench, folder, 3, "shard 4", "4-of-8.npy: No such file")
    folder = damaged("items")
    (folder / "1-of-8.items").write_text((folder / "1-of-8.items").read_text() + "59 1 0 0\n")
    refused(bench, folder, 3, "shard 1", "1-of-8.items is not as it was written")
    folder = damaged("renamed")
    shutil.copy(folder / "1-of-8.json", folder / "2-of-8.json")
    refused(bench, folder, 3, "2-of-8.json is the manifest of shard 1 of 8")
    folder = damaged("doubled")
    for suffix in (".npy", ".items"):
        shutil.copy(folder / f"1-of-8{suffix}", folder / f"2-of-8{suffix}")
    manifest = json.loads((folder / "1-of-8.json").read_text())
    (folder / "2-of-8.json").write_text(json.dumps(sign({**manifest, "shard": 2, "file": "2-of-8.npy", "items_file": "2-of-8.items"})))
    refused(bench, folder, 3, "is in shard 1 and in shard 2")
    folder = damaged("fewer")
    for path in folder.glob("*.json"):
        rewrite(path, lambda m: m["corpus"].update(items=61))
    refused(bench, folder, 3, "item 60 is in no shard")
    for name, change, wanted in (("version", lambda m: m["settings"].update(version="0.0.9"), "its version is 0.0.9, not"),
                                 ("model", lambda m: m["settings"].update(model="ab" * 32), "its model is abab"),
                                 ("input", lambda m: m["corpus"].update(hash="0" * 16), "other input: its hash"),
                                 ("layout", lambda m: m["layout"].update(width=7), "stored in another way"),
                                 ("count", lambda m: m.update(items=1000), "is no list of its 1000 items")):
        folder = damaged(name)
        rewrite(folder / "6-of-8.json", change)
        refused(bench, folder, 3, "shard 6", wanted)
    folder = damaged("division")
    shutil.copy(folder / "1-of-8.json", folder / "1-of-9.json")
    refused(bench, folder, 3, "holds shards of")
    pathlib.Path("empty").mkdir()
    refused(bench, "empty", 3, "holds no finished shard")
    refused(bench, "nowhere", 3, "nowhere: No such file")


def test_what_a_shard_refuses(bench):
    """Another model, other options, more input, another division: the folder keeps what it has."""
    source = plain("into.txt", 40)
    arguments = ["encode", DEMO, "--file", source, "-o", "into.npy", "--shards", 3, "--shard", 1]
    bench.fine(*arguments)
    before = {p: digest(p) for p in pathlib.Path("into.npy.shards").iterdir()}
    for words, wanted in ((arguments[:-3] + [4, "--shard", 1], "holds shards of 3, and this one is of 4"), ([*arguments, "--pool", "cls"], "another value of 'options'"),
                          ([arguments[0], other_model(bench), *arguments[2:]], "another value of 'model'"), ([*arguments, "--file", source], "other input")):
        contains(bench.expect(3, *words).err, wanted)
    # A neighbour that would not be merged with this one is refused before it is computed.
    for words, wanted in (([*arguments[:-1], 2, "--precision", "int8"], "1-of-3.json was made with another value of 'precision': repeat that here"),
                          ([*arguments[:-1], 0, "--file", source], "1-of-3.json was made of other input")):
        contains(bench.expect(3, *words).err, wanted)
    assert {p: digest(p) for p in pathlib.Path("into.npy.shards").iterdir()} == before
    (pathlib.Path("into.npy.shards") / "1-of-3.npy").unlink()
    assert "are missing or have another size" in bench.expect(3, *arguments).err


def test_a_journal_that_was_left_goes(bench):
    """Of a shard that was killed after its manifest was written."""
    arguments = ["encode", DEMO, "--file", plain("left.txt", 20), "-o", "left.npy", "--shards", 1, "--shard", 0, "-q"]
    bench.fine(*arguments)
    whole = {path: digest(path) for path in pathlib.Path("left.npy.shards").iterdir()}
    pathlib.Path("left.npy.shards/0-of-1.npy.part.journal").write_text("{}\n")
    bench.fine(*arguments)
    assert {path: digest(path) for path in pathlib.Path("left.npy.shards").iterdir()} == whole


def test_words_of_shards(bench):
    source = plain("words.txt", 5)
    for env, words, wanted in (({}, ["--shards", 3], "--shard 0 to 2"), ({}, ["--shards", 3, "--shard", 3], "expected 0 to 2 of 3 shards, found 3"),
                               ({}, ["--shard", 1], "--shard needs --shards"), ({}, ["--shards", 0, "--shard", 0], "expected 1 to"),
                               ({}, ["--shards", "array"], "no task of a job array"), ({"SLURM_ARRAY_TASK_ID": "5"}, ["--shards", 3], "SLURM_ARRAY_TASK_ID"),
                               ({"SLURM_ARRAY_TASK_ID": "7", "SLURM_ARRAY_TASK_COUNT": "3", "SLURM_ARRAY_TASK_MIN": "3", "SLURM_ARRAY_TASK_MAX": "9"},
                                ["--shards", "array"], "the job array has gaps (3 tasks from 3 to 9)")):
        contains(bench.expect(2, "encode", DEMO, "--file", source, "-o", "words.npy", *words, env=env).err, wanted)
    assert not os.path.exists("words.npy.shards")
    for words in (["-o", "others.txt"], ["--json", "-o", "rows.txt"], ["--json"]):
        assert "--shards needs --out FILE.jsonl" in bench.expect(2, "classify", DEMO, "--file", source, *words, "--shards", 2, "--shard", 0).err
    for words, wanted in (([], "say what to do"), (["--audit", "0"], "expected a share"), (["--audit", "101%"], "expected a share"), (["--model", DEMO], "--model needs --audit")):
        assert wanted in bench.expect(2, "merge", "x", *words).err
    array = {"SLURM_ARRAY_TASK_COUNT": "2", "SLURM_ARRAY_TASK_MIN": "4", "SLURM_ARRAY_TASK_MAX": "5"}
    for task in "45":
        bench.fine("encode", DEMO, "--file", source, "-o", "array.npy", "--shards", "array", env={**array, "SLURM_ARRAY_TASK_ID": task})
    assert "--out: expected a name that ends as the shards' files do" in bench.expect(2, "merge", "array.npy.shards", "-o", "array.jsonl").err
    bench.fine("merge", "array.npy.shards", "-o", "array.npy")


def test_bad_items(bench):
    """Counted and listed; with --skip-bad without a row and without a failure."""
    pathlib.Path("bad.jsonl").write_text('{"text": "one"}\nnonsense\n{"text": "three"}\n{"txt": 4}\n{"text": "five"}\n')
    words = ["encode", DEMO, "--file", "bad.jsonl"]
    for out, more, code, rows in (("keep.jsonl", [], 3, 5), ("skip.jsonl", ["--skip-bad"], 0, 3)):
        bench.expect(code, *words, *more, "-o", f"one-{out}")
        codes = [bench.run(*words, *more, "-o", out, "--shards", 3, "--shard", k).code for k in range(3)]
        assert max(codes) == code, codes
        said = bench.expect(code, "merge", f"{out}.shards", "--json", "-o", out)
        found = json.loads(said.out)
        assert ("2 of 5 items could not be used, such as bad.jsonl, line " in said.err) == (code == 3), said.describe()
        bench.fine("merge", f"{out}.shards", "--verify")
        assert (found["items"], found["rows"], found["bad"]) == (5, rows, 2) and sorted(p[0] for p in found["problems"]) == ["bad.jsonl, line 2", "bad.jsonl, line 4"]
        assert digest(out) == digest(f"one-{out}") == found["sha256"] and len(pathlib.Path(out).read_text().splitlines()) == rows
    told = bench.fine("classify", DEMO, "--json", "--skip-bad", "--file", "bad.jsonl")
    assert len(told.out.splitlines()) == 3 and "line 2" in told.err


def test_audit(bench):
    """A byte that a machine got wrong before it wrote its digest is found; so are another model and another input."""
    os.mkdir("own")
    with mock.patch.dict(os.environ, TMPDIR=os.path.abspath("own")):  # other tests audit at the same time
        audit(bench)
    assert os.listdir("own") == []


def audit(bench):
    source = plain("audit.txt", 200)
    folder = encode_all(bench, "audit.npy", source, 3)
    found = bench.json("merge", folder, "--audit", "20%", "--isa", "scalar")
    assert 10 < found["audited"] < 80 and found["differing"] == 0
    assert bench.json("merge", folder, "--audit", "20%", "--seed", 2)["audited"] != 0
    rows = folder / "2-of-3.npy"
    bench.flip(rows, *range(130, rows.stat().st_size, 192 * 4))
    rewrite(folder / "2-of-3.json", lambda m: m.update(sha256=digest(rows)))
    bench.fine("merge", folder, "--verify")
    told = bench.run("merge", folder, "--audit", "20%", "-o", "audited.npy")
    assert told.code == 1 and "in shard 2, has other bytes when it is computed here" in told.out and not os.path.exists("audited.npy"), told.describe()
    assert "its model is" in bench.expect(3, "merge", folder, "--audit", "5%", "--seed", 1, "--model", other_model(bench)).err
    other = pathlib.Path("elsewhere")
    other.mkdir()
    shutil.move(source, other / "audit.txt")
    assert "audit.txt: No such file" in bench.expect(3, "merge", folder, "--audit", "5%", "--seed", 1).err
    told = bench.run("merge", folder, "--audit", "5%", "--seed", 1, "--file", other / "audit.txt")
    assert told.code in (0, 1) and "computed again" in told.out, told.describe()
    (other / "audit.txt").write_text("other\n" * 200)
    assert "other input" in bench.expect(3, "merge", folder, "--audit", "5%", "--seed", 1, "--file", other / "audit.txt").err
    assert "no item of 200 was drawn" in bench.run("merge", encode_all(bench, "few.npy", plain("few.txt", 200), 1), "--audit", "0.0001%").err


def test_full_disk(bench):
    """A shard that cannot be written to its end says so, leaves no manifest, and the next run goes on."""
    source = plain("full.txt", 400)
    arguments = ["encode", DEMO, "--file", source, "-o", "full.npy", "--shards", 1, "--shard", 0, "--batch-tokens", 64]
    bench.fine("encode", DEMO, "--file", source, "-o", "one.npy")
    for limit in (1100, 5000, 100_000, 200_000):  # below 1 KiB the OpenMP of clang ends the process
        contains(bench.expect(4, *arguments, preexec_fn=at_most("FSIZE", limit)).err, "cannot be written: File too large")
        assert not os.path.exists("full.npy.shards/0-of-1.json")
    bench.fine(*arguments)
    bench.fine("merge", "full.npy.shards", "-o", "full.npy")
    assert digest("full.npy") == digest("one.npy")


def test_audit_is_interrupted(bench):
    """Whatever signal comes, and whenever: its folder is gone, and the status says that the audit was not finished."""
    source, dice = plain("many.txt", 3000), random.Random(SEED)
    folder = encode_all(bench, "many.npy", source, 1)
    os.mkdir("own")
    numbers = [signal.SIGINT, signal.SIGTERM, signal.SIGHUP]
    for number in numbers * 2:
        process = bench.start("merge", folder, "--audit", "100%", "--threads", 1, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                              env={"TMPDIR": os.path.abspath("own")})
        with ending(process):
            assert wait_until(lambda: os.listdir("own") or process.poll() is not None)
            time.sleep(dice.uniform(0, 0.2))
            process.send_signal(number)
            process.wait(60)
        assert process.returncode in (-number, 75, 0) and os.listdir("own") == [], (f"DEBERTA_SHARDS_SEED={SEED}", number, process.returncode, os.listdir("own"))


def test_a_large_corpus(bench):
    """Eight shards: two are killed at drawn moments, one is told to stop; repeated, they merge to the bytes of one process."""
    model, dice, begin = other_model(bench), random.Random(SEED), time.monotonic()
    source = pathlib.Path("large.txt")
    source.write_text("".join(" ".join(dice.choices(WORDS, k=dice.randrange(1, 9))) + "\n" for _ in range(LARGE)))
    bench.fine("encode", model, "--file", source, "-o", "one.npy")
    stopped = dict(zip(dice.sample(range(8), 3), (signal.SIGKILL, signal.SIGKILL, signal.SIGTERM)))
    for shard in range(8):
        arguments = ["encode", model, "--file", source, "-o", "large.npy", "--shards", 8, "--shard", shard, "--batch-tokens", 512]
        if shard in stopped:
            journal, flushes = pathlib.Path(f"large.npy.shards/{shard}-of-8.npy.part.journal"), dice.randrange(2, 2 + LARGE // 8000)
            stop_half_way(bench, arguments, journal, stopped[shard], flushes)
            assert bench.run("merge", "large.npy.shards", "--verify").code in (1, 3)  # some shards are missing, or all
        bench.fine(*arguments)
    bench.fine("merge", "large.npy.shards", "-o", "large.npy")
    assert digest("large.npy") == digest("one.npy"), f"DEBERTA_SHARDS_SEED={SEED}"
    print(f"# {LARGE} texts, SHA-256 {digest('large.npy')}, {time.monotonic() - begin:.0f} s")


def test_edges_of_a_division(bench):
    """More shards than items, no items, equal ids, lines that end as other systems have them: what one process writes."""
    files = {"few.txt": "a new store\nold mall\n", "none.txt": "", "ends.txt": "".join(f"line {k}\r\n" for k in range(30)),
             "equal.jsonl": "".join(json.dumps({"id": "same", "text": f"text {k}"}) + "\n" for k in range(20))}
    for name, content in files.items():
        pathlib.Path(name).write_bytes(content.encode())
        one = bench.run("encode", DEMO, "--file", name, "-o", f"one-{name}.npy")
        codes = [bench.run("encode", DEMO, "--file", name, "-o", f"{name}.npy", "--shards", 8, "--shard", k).code for k in range(8)]
        assert set(codes) == {one.code}, (name, codes, one.describe())
        if one.code == 0:
            bench.fine("merge", f"{name}.npy.shards", "-o", f"{name}.npy")
            assert digest(f"{name}.npy") == digest(f"one-{name}.npy"), name
            rows = [json.loads(p.read_text())["rows"] for p in pathlib.Path(f"{name}.npy.shards").glob("*.json")]
            assert len(rows) == 8 and (rows.count(0) == 7 if name == "equal.jsonl" else sum(rows) == content.count("\n")), rows


def test_low_precision(bench):
    """A shard of low precision goes on with the same bytes; it does not go on, nor is it joined, with another precision."""
    source = plain("low.txt", 800)
    for precision in ("int8", "int16"):
        out, words = f"{precision}.npy", ["encode", DEMO, "--file", source, "--precision", precision, "--threads", 1]
        bench.fine(*words, "-o", f"one-{out}")
        shard = [*words, "--batch-tokens", 64, "-o", out, "--shards", 2, "--shard"]
        stop_half_way(bench, [*shard, 0], pathlib.Path(f"{out}.shards/0-of-2.npy.part.journal"))
        contains(bench.expect(3, *[w for w in shard if w not in ("--precision", precision)], 0).err, "was begun with other settings")
        for k in range(2):
            bench.fine(*shard, k)
        bench.fine("merge", f"{out}.shards", "-o", out)
        assert digest(out) == digest(f"one-{out}")
    for suffix in (".json", ".npy", ".items"):
        shutil.copy(f"int8.npy.shards/1-of-2{suffix}", "int16.npy.shards")
    refused(bench, "int16.npy.shards", 3, "shard 1", "its precision is int8, not int16")


def test_a_model_is_exchanged(bench):
    """Between two runs of a shard: the second refuses to go on, and leaves what there is."""
    source, model = plain("exchanged.txt", 1500), pathlib.Path(shutil.copytree(DEMO, "model"))
    arguments = ["encode", model, "--file", source, "-o", "exchanged.npy", "--shards", 2, "--shard", 0, "--batch-tokens", 64, "--threads", 1]
    part = pathlib.Path("exchanged.npy.shards/0-of-2.npy.part")
    stop_half_way(bench, arguments, pathlib.Path(f"{part}.journal"))
    weights, before = model / "model.safetensors", digest(part)
    data = bytearray(weights.read_bytes())
    data[-3] ^= 1
    weights.unlink()
    weights.write_bytes(data)
    told = bench.run(*arguments)
    assert told.code == 3 and "was begun with other settings" in told.err and digest(part) == before, told.describe()
