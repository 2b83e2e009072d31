"""tools/gates/check_hub.py on folders and over a loopback server that answers as the hub does: it agrees where it should, and notices a model
that computes something else. Skipped where transformers and what else the tool needs is not installed.

SPDX-License-Identifier: MIT
"""
import contextlib
import hashlib
import http.server
import json
import os
import pathlib
import shutil
import subprocess
import sys
import threading
from unittest import SkipTest

from helpers import DEMO, GOLDEN, ROOT

CASE = str(GOLDEN / "33-v3-mlm-emd")
TWIN, REVISION = "microsoft/deberta-v3-xsmall", "0123456789abcdef0123456789abcdef01234567"


def git_object(path):
    """The name that git gives the file's content, which is the hub's tag of it."""
    content = path.read_bytes()
    return hashlib.sha1(b"blob %d\0" % len(content) + content).hexdigest()


class Hub(http.server.BaseHTTPRequestHandler):
    """What huggingface_hub asks for: a revision's list of files, and each file with its commit and its tag. The server has `root`,
    which holds owner/name/file, and `asked`, the paths of files that were sent."""

    def log_message(self, *_):
        pass

    def answer(self, code, body, **headers):
        self.send_response(code)
        for name, value in {"Content-Length": len(body), "X-Repo-Commit": REVISION, **headers}.items():
            self.send_header(name.replace("_", "-"), str(value))
        self.end_headers()
        if self.command == "GET":
            self.wfile.write(body)

    def do_GET(self):
        words = self.path.split("?")[0].strip("/").split("/")
        if words[:2] == ["api", "models"] and len(words) >= 4 and (self.server.root / words[2] / words[3]).is_dir():
            files = sorted((self.server.root / words[2] / words[3]).iterdir())
            name = "/".join(words[2:4])
            about = {"id": name, "modelId": name, "sha": REVISION, "private": False, "siblings": [{"rfilename": file.name} for file in files]}
            if words[4:5] == ["tree"]:
                about = [{"type": "file", "path": file.name, "size": file.stat().st_size, "oid": git_object(file)} for file in files]
            self.answer(200, json.dumps(about).encode(), Content_Type="application/json")
        elif len(words) == 5 and words[2:4] == ["resolve", REVISION] and (self.server.root / words[0] / words[1] / words[4]).is_file():
            content = (self.server.root / words[0] / words[1] / words[4]).read_bytes()
            if self.command == "GET":
                self.server.asked.append(words[4])
            self.answer(200, content, ETag=f'"{git_object(self.server.root / words[0] / words[1] / words[4])}"')
        else:
            self.answer(404, b"{}", X_Error_Code="EntryNotFound" if words[:1] != ["api"] else "RepoNotFound")

    do_HEAD = do_GET


@contextlib.contextmanager
def serving(root):
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Hub)
    server.root, server.asked = pathlib.Path(root), []
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def needs_requirements():
    if subprocess.run([sys.executable, "-c", "import torch, transformers, safetensors, sentencepiece, huggingface_hub"],
                      capture_output=True, check=False).returncode:
        raise SkipTest("what tools/gates/reference-requirements.txt lists is not installed")


def check_hub(program, *checkpoints):
    needs_requirements()
    done = subprocess.run([sys.executable, os.path.join(ROOT, "tools", "gates", "check_hub.py"), "--program", program, *checkpoints],
                          capture_output=True, text=True, check=False)
    return done.returncode, done.stdout, done.stderr


def test_agrees(bench):
    code, out, err = check_hub(bench.program, CASE, DEMO)
    assert code == 0 and "2 of 2 checkpoints agree" in out, (code, out, err)
    assert "11 of 11 texts have the same ids" in out
    for kind in ("c2c", "c2p", "p2c", "probabilities", "hidden states", "logits.mlm", "logits.mlm_emd"):
        assert out.count(f"\n  {kind:14} ") == 2, (kind, out)
    for precision in ("int16", "int8"):
        for kind in ("hidden states", "logits.mlm", "logits.mlm_emd"):
            assert out.count(f"\n  {precision:5} {kind:14} relative error ") == 2, (precision, kind, out)


def test_notices_a_difference(bench):
    """The program is given another epsilon than transformers."""
    other = bench.path("other")
    shutil.copytree(CASE, other)
    config = bench.load(os.path.join(other, "config.json"))
    config["layer_norm_eps"] = 1e-5
    bench.write(os.path.join(other, "config.json"), json.dumps(config))
    wrapper = bench.path("deberta")
    bench.write(wrapper, f'#!{sys.executable}\nimport os, sys\n'
               f'os.execv({bench.program!r}, [{bench.program!r}] + [{other!r} if word == {CASE!r} else word for word in sys.argv[1:]])\n')
    os.chmod(wrapper, 0o755)
    code, out, err = check_hub(wrapper, CASE)
    assert code == 1 and "DIFFERENT" in out and "0 of 1 checkpoints agree" in out, (code, out, err)


def test_wrong_use(bench):
    code, _, err = check_hub(bench.program, bench.path("nowhere"), "owner/name@main")
    assert code == 2 and "no such folder" in err and "not a full commit hash" in err, (code, err)


def test_downloads(bench):
    """A twin of a published checkpoint, as the hub would send it: only what the program reads is asked for, and once."""
    needs_requirements()
    root, place = bench.path("hub"), os.path.join(bench.path("hub"), *TWIN.split("/"))
    made = subprocess.run([sys.executable, os.path.join(ROOT, "tools", "making", "make_hub_twin.py"), TWIN, "--layers", "1", "--vocabulary", "small", "-o", place],
                          capture_output=True, text=True, check=False)
    assert made.returncode == 0, made.stderr
    bench.write(os.path.join(place, "pytorch_model.generator.bin"), b"the hub has it, nobody wants it")
    before = {name: os.environ.get(name) for name in ("HF_HOME", "HF_HUB_DISABLE_XET", "NO_PROXY")}
    os.environ.update(HF_HOME=bench.path("cache"), HF_HUB_DISABLE_XET="1", NO_PROXY="127.0.0.1")
    try:
        with serving(root) as server:
            endpoint = ["--endpoint", f"http://127.0.0.1:{server.server_port}"]
            code, out, err = check_hub(bench.program, *endpoint, f"{TWIN}@{REVISION}")
            assert code == 0 and "1 of 1 checkpoints agree" in out and f"{TWIN}@{REVISION}" in out, (code, out, err)
            assert sorted(server.asked) == ["config.json", "pytorch_model.bin", "spm.model", "tokenizer_config.json"], server.asked
            assert "11 of 11 texts have the same ids" in out and "\n  logits.rtd " in out, out
            code, _, err = check_hub(bench.program, *endpoint, TWIN)
            assert code == 2 and f"{TWIN}@{REVISION}" in err, (code, err)
            code, _, err = check_hub(bench.program, *endpoint, f"nobody/nothing@{REVISION}")
            assert code == 3 and "cannot be downloaded" in err, (code, err)
    finally:
        for name, value in before.items():
            os.environ.pop(name) if value is None else os.environ.update({name: value})
