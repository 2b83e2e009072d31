"""What judges a release and ports of the tokenizers: the one-line check, the check of a page, and what release.sh refuses.

SPDX-License-Identifier: MIT
"""
import hashlib
import os
import random
import re
import shutil
import subprocess
import sys
import tarfile
from pathlib import Path

from helpers import DEMO, check, contains, equal

TIERS = ("scalar", "exact", "relaxed")
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
    """A page of the program is taken apart into what went in; one that lacks a part, or asks another machine, is refused."""
    script, out = os.path.join(bench.root, "tests", "release", "check_page.py"), Path(bench.path("apart"))
    os.mkdir(bench.path("modules"))
    for tier in TIERS:
        bench.write(f"modules/deberta-{tier}.wasm", b"\0asm" + random.Random(tier).randbytes(70000))
    made = Path(bench.path("p.html"))
    bench.fine("report", DEMO, "--live", "--modules", bench.path("modules"), "--skip", "latency,verify", "--text", "a new store", "-o", made)
    page = made.read_text("utf-8")
    piece = '(<script type="text/plain" class="module-exact">[^<]*)[^<]{8}</script>'
    for wrong, said in ((re.sub(piece, "", page), "there is no part for exact"), (re.sub(piece, r"\1</script>", page), "while decompressing"),
                        (page.replace(':70004', ':70005'), "expected 70005"),
                        (page + "<script src='https://a.b/c.js'></script>", "it asks https://a.b/c.js"), ("<p>no modules</p>", "there are no modules")):
        done = subprocess.run([sys.executable, script, bench.write("wrong.html", wrong)], capture_output=True, text=True)
        equal(done.returncode, 1, done.stdout)
        contains(done.stderr, said)
    done = subprocess.run([sys.executable, script, made, out], capture_output=True, text=True)
    equal(done.returncode, 0, done.stderr)
    for tier in TIERS:
        check((out / f"modules/deberta-{tier}.wasm").read_bytes() == Path(bench.path(f"modules/deberta-{tier}.wasm")).read_bytes(), tier)
    for name in ("model.safetensors", "config.json", "spm.model"):
        check((out / "model" / name).read_bytes() == Path(DEMO, name).read_bytes(), name)


def small_project(bench):
    """A repository with what release.sh reads, and a wheel.sh that compiles nothing; (a function that runs words there, its folder)."""
    folder = Path(bench.path("project"))
    libraries = ("jansson", "pcre2", "zlib", "libzip", "hwloc")
    files = {"include/deberta.h": "".join(f"#define DEBERTA_VERSION_{part} {k}\n" for k, part in enumerate(("MAJOR", "MINOR", "PATCH"))), "LICENSE": "MIT\n",
             "docs/specification.md": "s", "docs/evidence.md": "e", "docs/other.md": "o", "tests/golden/a.c": "int a;", "tests/golden/bits.tsv": "b", "tests/golden/tokenizers/t.jsonl": "{}",
             "tools/making/wheel.sh": '#!/bin/sh\necho wheel of "$2" >"$1/deberta_c-0.1.2-py3-none-manylinux_2_28_$2.whl"\n'}  # fmt: skip
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    (folder / "tools/making/wheel.sh").chmod(0o755)
    for name in ("tools/release.sh", "tools/making/make_sbom.py"):
        shutil.copy(os.path.join(bench.root, name), folder / name)
    sources = folder.parent / "cache" / "sources"
    sources.mkdir(parents=True)
    for name in libraries:
        (sources / f"{name}_1.0.orig.tar.gz").write_text(name)
    environment = {**os.environ, "DEBERTA_WHEEL_CACHE": str(sources.parent), "PYTHON": sys.executable, "GIT_CONFIG_GLOBAL": "/dev/null"}
    environment |= {f"GIT_{who}_{what}": "tester" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}

    def run(*words):
        return subprocess.run([str(word) for word in words], cwd=folder, env=environment, capture_output=True, text=True)
    for words in (("init", "-q"), ("add", "."), ("commit", "-q", "-m", "all")):
        equal(run("git", *words).returncode, 0, words)
    return run, folder


def test_what_a_release_has(bench):
    """Which files, what is in them, their sums, and the same bytes again."""
    run, folder = small_project(bench)
    outs = [folder.parent / name for name in ("one", "two")]
    for out in outs:
        done = run("tools/release.sh", out, "other")
        equal(done.returncode, 0, done.stderr)
        contains(done.stderr, "the page that computes is left out")
    archives = {"deberta-0.1.2": {"LICENSE", "docs/other.md", "tests/golden/a.c", "tools/release.sh"},
                "deberta-vectors-0.1.2": {"LICENSE", "docs/specification.md", "docs/evidence.md", "tests/golden/bits.tsv", "tests/golden/tokenizers/t.jsonl"},
                "deberta-tokenizer-vectors-0.1.2": {"LICENSE", "docs/specification.md", "docs/evidence.md", "tests/golden/tokenizers/t.jsonl"}}
    names = {f"{name}.tar.gz" for name in archives} | {"deberta_c-0.1.2-py3-none-manylinux_2_28_other.whl", "deberta-0.1.2.spdx.json"}
    equal({path.name for path in outs[0].iterdir()}, names | {"SHA256SUMS"})
    for name, members in archives.items():
        with tarfile.open(outs[0] / f"{name}.tar.gz") as archive:
            found = {one.name.removeprefix(f"{name}/") for one in archive if one.isfile()}
        check(members <= found if name == "deberta-0.1.2" else members == found, (name, found))
    check((outs[0] / "SHA256SUMS").read_text() == "".join(f"{hashlib.sha256((outs[0] / name).read_bytes()).hexdigest()}  ./{name}\n" for name in sorted(names)),
          (outs[0] / "SHA256SUMS").read_text())
    for name in names | {"SHA256SUMS"}:
        check((outs[0] / name).read_bytes() == (outs[1] / name).read_bytes(), name)


def test_release_refuses_what_is_not_committed(bench):
    run, folder = small_project(bench)
    for change in (lambda: (folder / "new.txt").write_text("new"), lambda: (folder / "LICENSE").write_text("other")):
        change()
        out = folder.parent / "out"
        done = run("tools/release.sh", out)
        equal(done.returncode, 2, done.stdout)
        contains(done.stderr, "there are changes that are not committed")
        check(not list(out.iterdir()), "nothing is made")
        run("git", "clean", "-qf")
    run("git", "checkout", "-q", ".")
    (out / "old").write_text("old")
    done = run("tools/release.sh", out)
    equal(done.returncode, 2, done.stdout)
    contains(done.stderr, "is not empty")


def test_release_refuses(bench):
    script = os.path.join(bench.root, "tools", "release.sh")
    for words, said in (([], "--try OUT"), (["--help"], "--try OUT"), (["--try", bench.folder], "has no SHA256SUMS; expected what tools/release.sh has made")):
        done = subprocess.run([script, *words], capture_output=True, text=True)
        equal(done.returncode, 2, done.stderr)
        contains(done.stderr, said)
