"""tools/check_hub.py on folders: it agrees where it should, and notices a model that computes something else. Skipped where transformers
and what else the tool needs is not installed.

SPDX-License-Identifier: MIT
"""
import json
import os
import shutil
import subprocess
import sys
from unittest import SkipTest

from helpers import DEMO, GOLDEN, ROOT

CASE = str(GOLDEN / "33-v3-mlm-emd")


def check_hub(program, *checkpoints):
    if subprocess.run([sys.executable, "-c", "import torch, transformers, safetensors, sentencepiece, huggingface_hub"],
                      capture_output=True, check=False).returncode:
        raise SkipTest("what tools/reference-requirements.txt lists is not installed")
    done = subprocess.run([sys.executable, os.path.join(ROOT, "tools", "check_hub.py"), "--program", program, *checkpoints],
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
    with open(os.path.join(other, "config.json"), encoding="utf-8") as file:
        config = json.load(file)
    config["layer_norm_eps"] = 1e-5
    with open(os.path.join(other, "config.json"), "w", encoding="utf-8") as file:
        json.dump(config, file)
    wrapper = bench.path("deberta")
    with open(wrapper, "w", encoding="utf-8") as file:
        file.write(f'#!{sys.executable}\nimport os, sys\n'
                   f'os.execv({bench.program!r}, [{bench.program!r}] + [{other!r} if word == {CASE!r} else word for word in sys.argv[1:]])\n')
    os.chmod(wrapper, 0o755)
    code, out, err = check_hub(wrapper, CASE)
    assert code == 1 and "DIFFERENT" in out and "0 of 1 checkpoints agree" in out, (code, out, err)


def test_wrong_use(bench):
    code, _, err = check_hub(bench.program, bench.path("nowhere"), "owner/name@main")
    assert code == 2 and "no such folder" in err and "not a full commit hash" in err, (code, err)
