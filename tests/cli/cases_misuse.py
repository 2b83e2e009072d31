"""Wrong use and bad input: every message must be one sentence that says what is wrong, and nothing may be left behind.

misuse.tsv has a case a line: name, exit code, command line, words that the message must hold. Words are compared as they are, but for "\\n".
SPDX-License-Identifier: MIT
"""
import functools
import os
import shlex
from unittest import SkipTest

from helpers import DEMO, TINY, at_most, check_message, contains, needs_figures

# What stands in braces in misuse.tsv. G is the folder of golden data.
PLACES = {"{DEMO}": DEMO, "{ANSWERS}": os.path.join(os.path.dirname(DEMO), "answers"), "{TINY_100}": TINY.replace("vocab=50", "vocab=100"), "{TINY}": TINY, "{OTHER_ISA}": "avx2" if os.uname().machine == "aarch64" else "neon"}
# Files that are made first.
FILES = {
    "f": b"not json\n",
    "squad.json": b'{"version": "2", "data": [{"paragraphs": []}]}',
    "squad-lines.json": b'{\n "version": "2",\n "data": []\n}\n',
    "large.json": b'{"input_ids": [[1, 2, 3], [1, 2, 900]], "attention_mask": [[1, 1, 1], [0, 1, 1]]}',
    "huge.json": b'{"input_ids": [[1, 99999999999]]}',
    "types.json": b'{"input_ids": [[1, 2]], "token_type_ids": [[1, 2]]}',
    "broken.safetensors": b"\xff" * 40,
    "broken.json": b'{"input_ids": [[1, 2]',
    "ragged.json": b'{"input_ids": [[1, 2], [3]]}',
    "noids.json": b'{"ids": [[1, 2]]}',
    "noresults.json": b'{"schema": "deberta-bench/1", "environment": {}, "results": []}',
    "empty.json": b'{"input_ids": []}',
    "float.json": b'{"input_ids": [[1.5]]}',
    "latin1.txt": b"caf\xe9\n",
    "garbage.txt": b"make me a sandwich\n",
}


def prepare(bench):
    for name, data in FILES.items():
        bench.write(name, data)
    os.mkdir(bench.path("d"))
    os.mkdir(bench.path("d.safetensors"))
    os.mkdir(bench.path("d.npy"))
    os.symlink("/dev/full", bench.path("full.png"))
    return set(bench.files())


def misuse(name, arguments, code, words):
    def test(bench):
        if name.startswith(("attention", "option-cmap", "bench-plot", "bench-sweep-option", "out-picture-bench", "report-layers", "command-is-second-word")):
            needs_figures(bench)
        there = prepare(bench)
        place = lambda text: functools.reduce(lambda whole, name: whole.replace(name, PLACES[name]), PLACES, text.replace("{G}", bench.golden))
        quiet = ["-q"] if arguments and arguments[0] == "report" and len(arguments) > 1 else []
        result = bench.run(*[place(a) for a in arguments], *quiet)
        if bench.show:
            print(f"{result.command}\n    {result.err.strip()}".replace(bench.golden, "GOLDEN"))
        check_message(result, code, [place(w) for w in words])
        left = set(bench.files()) - there
        assert not left, f"left behind: {left}"
    return test


def bad_folder(folder, words):
    def test(bench):
        result = bench.run("encode", os.path.join(bench.golden, "bad", folder), "--ids", "1,2,3", "-o", "x.safetensors")
        if bench.show:
            print(f"{folder}\n    {result.err.strip()}".replace(bench.golden, "GOLDEN"))
        check_message(result, 3, [])
        for word in words:
            assert any(w in result.err for w in word.split("|")), f"the message does not say '{word}'\n{result.describe()}"
        assert bench.files() == [], bench.files()
    return test


def bad_tokenizer(folder, expect):
    def test(bench):
        result = bench.run("tokenize", os.path.join(bench.golden, "tokenizers", "bad", folder), "--text", "a b")
        if bench.show:
            print(f"{folder}\n    {result.err.strip()}".replace(bench.golden, "GOLDEN"))
        if expect == "error":
            check_message(result, 3, [])
        else:
            assert result.code == 0 or (expect != "load" and result.code == 3), result.describe()
    return test


def bad_input(folder, words):
    def test(bench):
        path = os.path.join(bench.golden, "bad", folder)
        check_message(bench.run("encode", path, "--input", os.path.join(path, "inputs.json"), "-o", "x.safetensors"), 3, words)
    return test


def isa_of_environment(bench):
    """The variable counts for every command that computes; an option overrides it."""
    tiny = [TINY, "--ids", "1,2"]
    for arguments in (["info"], ["encode", *tiny, "-o", "x.safetensors"], ["verify", TINY], ["bench", TINY]):
        check_message(bench.run(*arguments, env={"DEBERTA_ISA": "foo"}), 2, ["DEBERTA_ISA", "foo", "scalar"])
        check_message(bench.run(*arguments, env={"DEBERTA_ISA": "neon" if os.uname().machine != "aarch64" else "avx2"}), 2,
                      ["DEBERTA_ISA", "cannot run here"])
    bench.fine("info", "--isa", "scalar", env={"DEBERTA_ISA": "foo"})
    quick = ["bench", TINY, "-n", "4", "--reps", "1", "--min-time", "0", "--no-peak", "--format", "csv"]
    assert ",scalar," in bench.fine(*quick, env={"DEBERTA_ISA": "scalar"}).out


def too_long_a_list(bench):
    """A command line for which memory runs out is not a wrong one."""
    words, few = ["encode", TINY, "--ids", "1", "-o", "x.safetensors"], at_most("DATA", 1 << 25)
    if bench.run(*words, preexec_fn=few).code:
        raise SkipTest("does not run in 32 MB")
    contains(bench.expect(4, *words, *["--ablate", ",".join(["c2p@0"] * 20000)] * 14, preexec_fn=few).err, "out of memory")


def rows(path):
    with open(path, encoding="utf-8") as file:
        lines = file.read().rstrip("\n").split("\n")
    return [line.split("\t") for line in lines[1:] if not line.startswith("#")]


def tests(settings):
    for name, code, line, *words in rows(os.path.join(os.path.dirname(__file__), "misuse.tsv")):
        yield "misuse/" + name, misuse(name, shlex.split(line), int(code), [word.replace("\\n", "\n") for word in words])
    bad = os.path.join(settings.golden, "bad")
    words = {row[0]: row[1].split(",") for row in rows(os.path.join(bad, "words.tsv"))}
    for folder, expect, where, *_ in rows(os.path.join(bad, "expect.tsv")):
        if expect == "error" and where != "inputs":
            yield "bad-model/" + folder, bad_folder(folder, words.get(folder, []))
    yield "bad-input/vocabulary", bad_input("80-ids-out-of-vocab", ["inputs.json: id 11 in row ", "11 rows"])
    yield "bad-input/negative", bad_input("81-ids-negative", ["inputs.json: id -1 in row "])
    for folder, expect, *_ in rows(os.path.join(settings.golden, "tokenizers", "bad", "expect.tsv")):
        yield "bad-tokenizer/" + folder, bad_tokenizer(folder, expect)
    yield "isa-of-the-environment", isa_of_environment
    yield "too-long-a-list", too_long_a_list
