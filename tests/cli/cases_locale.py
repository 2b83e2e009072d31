"""A host program may have chosen decimal commas: a library that is loaded first stands for it. What is written for machines has points all the same.

SPDX-License-Identifier: MIT
"""
import json
import os
import shutil
import subprocess
from unittest import SkipTest

from helpers import DEMO, check, equal, is_sanitized

# A locale with nothing but numbers of its own; localedef needs no other file for it.
NUMBERS = "comment_char %\nescape_char /\nLC_NUMERIC\ndecimal_point \",\"\nthousands_sep \".\"\ngrouping 3\nEND LC_NUMERIC\n"
HOST = """#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
__attribute__((constructor)) static void begin(void)
{
    char text[8];
    setlocale(LC_NUMERIC, "comma");
    snprintf(text, sizeof text, "%.1f", 1.5);
    if (strcmp(text, "1,5") != 0) _Exit(99);
}
"""
TRAIN = ["--sequence-tokens", "16", "--batch-sequences", "2", "--eval-every", "1", "--checkpoint-every", "1", "--learning-rate", "15e-4", "-t", "1", "-q"]


def commas(bench):
    """The environment of such a host."""
    if is_sanitized(bench.program):
        raise SkipTest("what is loaded first is the sanitizer's")
    if not shutil.which("localedef") or not shutil.which("cc"):
        raise SkipTest("no localedef, or no cc")
    bench.write("numbers", NUMBERS)
    subprocess.run(["localedef", "-c", "--no-archive", "-i", bench.path("numbers"), bench.path("comma")], capture_output=True, check=False)
    library = bench.path("host.so")
    subprocess.run(["cc", "-x", "c", "-", "-shared", "-fPIC", "-o", library], input=HOST, text=True, check=True)
    environment = {"LD_PRELOAD": library, "LOCPATH": bench.folder}
    if bench.run("--version", env=environment).code:
        raise SkipTest("localedef makes no locale here, or this program loads no library")
    return environment


def contents(bench, folder):
    """What a run left, without its times."""
    found = {}
    for place, _, names in os.walk(bench.path(folder)):
        for name in names:
            path = os.path.join(place, name)
            data = bench.bytes(path)
            if name == "log.jsonl":
                data = [{key: value for key, value in json.loads(line).items() if key != "seconds"} for line in data.splitlines()]
            found[os.path.relpath(path, bench.path(folder))] = data
    return found


def same(bench, found, expected):
    left, right = contents(bench, found), contents(bench, expected)
    equal(sorted(left), sorted(right))
    equal([name for name in left if left[name] != right[name]], [], found)
    check("log.jsonl" in left and len(left) > 5, sorted(left))


def test_runs_write_points(bench):
    """Masked words and a regression, in one go and resumed: every file of the run folder, and which model is the best."""
    environment = commas(bench)
    bench.write("t.txt", "".join(f"the old captain number {k} opened a new store\n" for k in range(8)))
    bench.write("t.jsonl", "".join(json.dumps({"label": k * 5 % 7, "text": f"the old captain number {k}"}) + "\n" for k in range(8)))
    for kind, words in (("mlm", ["train", "mlm", DEMO, "--file", "t.txt", "--eval", "t.txt"]),
                        ("value", ["finetune", "sequence", DEMO, "--examples", "t.jsonl", "--labels", "1", "--eval", "t.jsonl"])):
        words = [*words, "--steps", "3", *TRAIN]
        bench.fine(*words, "-o", f"{kind}-points")
        bench.fine(*words, "-o", f"{kind}-commas", env=environment)
        same(bench, f"{kind}-commas", f"{kind}-points")
        bench.fine(*words, "--stop-at", "2", "-o", f"{kind}-resumed", env=environment)
        bench.fine(*words, "--resume", "-o", f"{kind}-resumed", env=environment)
        same(bench, f"{kind}-resumed", f"{kind}-points")


def test_other_files_have_points(bench):
    environment = commas(bench)
    for words, out in ((["encode", DEMO, "--text", "a new store", "--pool", "mean"], "x.npy"), (["encode", DEMO, "--text", "a new store"], "x.safetensors"),
                       (["fill-mask", DEMO, "--text", "a new [MASK]", "--json"], "x.jsonl"),
                       (["classify", DEMO, "--text", "a new store", "--json"], "y.jsonl"), (["info", DEMO, "--json"], "x.json")):
        bench.fine(*words, "-q", "-o", out)
        expected = bench.bytes(out)
        os.remove(bench.path(out))
        bench.fine(*words, "-q", "-o", out, env=environment)
        check(bench.bytes(out) == expected, f"{words[0]}: {out} is another")
