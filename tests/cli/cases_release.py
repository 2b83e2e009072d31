"""What judges a release and ports of the tokenizers: the one-line check, the check of a page, and what release.sh refuses.

SPDX-License-Identifier: MIT
"""
import base64
import os
import shutil
import subprocess
import sys

from helpers import check, contains, equal

FOLDERS = 8  # with golden.jsonl


def judged(bench, *words, code):
    script = os.path.join(bench.golden, "tokenizers", "check_tokenizer.py")
    done = subprocess.run([sys.executable, script, *words], capture_output=True, text=True, cwd=bench.folder)
    equal(done.returncode, code, done.stdout + done.stderr)
    return done


def test_check_of_tokenizers(bench):
    """This project's own tokenizers pass, as a release has them: alone in a folder."""
    copy = shutil.copytree(os.path.join(bench.golden, "tokenizers"), bench.path("alone"))
    done = subprocess.run([sys.executable, os.path.join(copy, "check_tokenizer.py"), "all", bench.program, "tokenize", "{folder}", "--file", "{inputs}", "--json"],
                          capture_output=True, text=True)
    equal(done.returncode, 0, done.stdout + done.stderr)
    rows = [line.split() for line in done.stdout.splitlines()]
    equal(len(rows), FOLDERS)
    check(all(row[1] == row[3] and int(row[1]) > 100 for row in rows), done.stdout)


def test_check_of_a_wrong_tokenizer(bench):
    """One that differs somewhere is told where; another folder's tokenizer fails; what is no answer is wrong use."""
    own = os.path.join(bench.golden, "tokenizers")
    ours = [bench.program, "tokenize", "{folder}", "--file", "{inputs}", "--json"]
    done = judged(bench, "spm-unigram", bench.program, "tokenize", os.path.join(own, "spm-bpe"), "--file", "{inputs}", "--json", code=1)
    contains(done.stdout, "spm-unigram, line 12: ", "expected [1, ")
    check(done.stdout.count("expected [") == 5, done.stdout)
    port = bench.write("port.py", "import json, subprocess, sys\n"
                       "lines = subprocess.run(sys.argv[1:], capture_output=True, text=True).stdout.split('\\n')[:-1]\n"
                       "rows = [json.loads(line)['ids'] for line in lines]\nrows[40] = rows[40][:-1] + [0]\nprint(*map(json.dumps, rows), sep='\\n')\n")
    done = judged(bench, "spm-bpe", sys.executable, port, *ours, code=1)
    contains(done.stdout, "spm-bpe, line 41: ", "spm-bpe: 151 of 152 lines")
    contains(judged(bench, "spm-bpe", "cat", code=2).stderr, "spm-bpe, line 1: expected a list of ids")
    contains(judged(bench, "spm-bpe", "true", code=2).stderr, "printed 1 lines; expected 0, and 152 lines")
    contains(judged(bench, "spm-bpe", "no-such-program", code=2).stderr, "no-such-program: No such file")
    contains(judged(bench, "spm-nothing", *ours, code=2).stderr, "expected one of bpe-v1, ")
    contains(judged(bench, "all", code=2).stderr, "and a command")


def test_check_of_a_page(bench):
    script = os.path.join(bench.root, "tests", "release", "check_page.py")
    module = base64.b64encode(b"\0asm" + bytes(30000)).decode()
    for text, code in ((f"<script>x = '{module}'</script>", 0), ("<p>no modules</p>", 1), (f"<script src='https://a.b/c.js'></script>{module}", 1)):
        done = subprocess.run([sys.executable, script, bench.write("p.html", text)], capture_output=True, text=True)
        equal(done.returncode, code, done.stdout + done.stderr)


def test_release_refuses(bench):
    script = os.path.join(bench.root, "tools", "release.sh")
    for words, said in (([], "--try OUT"), (["--help"], "--try OUT"), (["--try", bench.folder], "has no SHA256SUMS; expected what tools/release.sh has made")):
        done = subprocess.run([script, *words], capture_output=True, text=True)
        equal(done.returncode, 2, done.stderr)
        contains(done.stderr, said)
