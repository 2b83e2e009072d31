"""What is far too large, or no text, is refused by name or shown as what it is, before it costs memory or time.

SPDX-License-Identifier: MIT
"""
import os
import shutil

from helpers import DEMO, GOLDEN, SPM, TINY, at_most, check_message, contains, is_sanitized, make_model, needs_figures, read_tensors


def sparse(bench, name, size, begin=b""):
    """A file of zeros that takes no room on the disk."""
    with open(bench.write(name, begin), "r+b") as file:
        file.truncate(size)
    return name


def refused(bench, code, words, *arguments):
    contains(bench.expect(code, *arguments, preexec_fn=None if is_sanitized(bench.program) else at_most("DATA", 1 << 29)).err, *words)


def test_lines(bench):
    """In memory that a file read whole would exceed."""
    zeros = sparse(bench, "zeros.jsonl", 1 << 34, b"x" * 64)  # a file that begins with zeros is refused for that
    for words in (("eval", DEMO, zeros), ("encode", DEMO, "--file", zeros, "-o", "x.npy")):
        refused(bench, 3, ["zeros.jsonl, line 1", "at most 67108864 bytes"], *words)
    refused(bench, 3, ["zeros.jsonl, line 1", "at most 1048576 bytes"], "bench", "kernel", zeros)


def test_line_of_a_log(bench):
    needs_figures(bench)
    log = sparse(bench, "log.jsonl", 1 << 34, b'{"step": 1, "loss": 2}\n')
    refused(bench, 3, ["log.jsonl, line 2", "at most 1048576 bytes"], "train", "plot", log, "-o", "x.svg")


def test_vocabularies(bench):
    merges = min((GOLDEN / "tokenizers").glob("*/merges.txt")).parent
    for source, name in ((GOLDEN / SPM, "spm.model"), (merges, "merges.txt")):
        folder = bench.path("of-" + name)
        shutil.copytree(source, folder)
        if name == "merges.txt" and os.path.exists(os.path.join(folder, "tokenizer.json")):
            os.remove(os.path.join(folder, "tokenizer.json"))  # which would be read in its place
        sparse(bench, os.path.join(folder, name), 100 << 30)
        refused(bench, 3, [name, "expected at most 268435456 bytes, found 107374182400"], "tokenize", folder, "--text", "a")


def test_ids(bench):
    bench.write("long.json", '{"input_ids": [[' + ",".join(["1"] * 40000) + "]]}")
    check_message(bench.run("encode", TINY, "--input", "long.json", "-o", "x.safetensors"), 3, ["row 0 has 40000 tokens, expected at most 32768", "--memory-limit"])
    assert not os.path.exists("x.safetensors")


def test_name_that_is_no_utf8(bench):
    make_model(bench.path("plain"), "33", "spm-unigram", 3001)
    os.rename(b"plain", b"na\xefve")
    contains(bench.fine("encode", b"na\xefve", "--ids", "1,2,3", "-o", "x.safetensors").err, "not UTF-8", "na\ufffdve")
    assert read_tensors("x.safetensors")[1]["model"] == "na\ufffdve"


def test_control_characters(bench):
    text = "a\x1b]0;title\x07b"
    out = bench.fine("tokenize", GOLDEN / "tokenizers" / "spm-flags", "--text", text).out
    assert "\x1b" not in out and "\x07" not in out and "\u00b7" in out, out
    contains(bench.fine("tokenize", GOLDEN / "tokenizers" / "spm-flags", "--text", text, "--json").out, "\\u001B")
