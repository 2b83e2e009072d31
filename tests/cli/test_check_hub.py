#!/usr/bin/env python3
"""tools/check_hub.py on folders: it agrees where it should, and notices a model that computes something else.

    test_check_hub.py PROGRAM

Skipped (exit 77) where transformers and what else the tool needs is not installed. The last line is
`N passed, N failed, N skipped`. SPDX-License-Identifier: MIT
"""
import json
import os
import shutil
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
CASE = os.path.join(ROOT, "tests", "golden", "33-v3-mlm-emd")
DEMO = os.path.join(ROOT, "models", "demo")


def check_hub(program, *checkpoints):
    done = subprocess.run([sys.executable, os.path.join(ROOT, "tools", "check_hub.py"), "--program", program, *checkpoints],
                          capture_output=True, text=True, check=False)
    return done.returncode, done.stdout, done.stderr


def agrees(program, _):
    code, out, err = check_hub(program, CASE, DEMO)
    assert code == 0 and "2 of 2 checkpoints agree" in out, (code, out, err)
    assert "11 of 11 texts have the same ids" in out
    for kind in ("c2c", "c2p", "p2c", "probabilities", "hidden states", "logits.mlm", "logits.mlm_emd"):
        assert out.count(f"\n  {kind:14} ") == 2, (kind, out)


def notices(program, folder):
    """The program is given another epsilon than transformers."""
    other = os.path.join(folder, "other")
    shutil.copytree(CASE, other)
    with open(os.path.join(other, "config.json"), encoding="utf-8") as file:
        config = json.load(file)
    config["layer_norm_eps"] = 1e-5
    with open(os.path.join(other, "config.json"), "w", encoding="utf-8") as file:
        json.dump(config, file)
    wrapper = os.path.join(folder, "deberta")
    with open(wrapper, "w", encoding="utf-8") as file:
        file.write(f'#!{sys.executable}\nimport os, sys\n'
                   f'os.execv({program!r}, [{program!r}] + [{other!r} if word == {CASE!r} else word for word in sys.argv[1:]])\n')
    os.chmod(wrapper, 0o755)
    code, out, err = check_hub(wrapper, CASE)
    assert code == 1 and "DIFFERENT" in out and "0 of 1 checkpoints agree" in out, (code, out, err)


def wrong_use(program, folder):
    code, _, err = check_hub(program, os.path.join(folder, "nowhere"), "owner/name@main")
    assert code == 2 and "no such folder" in err and "not a full commit hash" in err, (code, err)


def main():
    program, counts = os.path.abspath(sys.argv[1]), [0, 0]
    if subprocess.run([sys.executable, "-c", "import torch, transformers, safetensors, sentencepiece, huggingface_hub"],
                      capture_output=True, check=False).returncode:
        print("what tools/reference-requirements.txt lists is not installed\n0 passed, 0 failed, 1 skipped")
        return 77
    for test in (agrees, notices, wrong_use):
        with tempfile.TemporaryDirectory(prefix="deberta-hub-") as folder:
            try:
                test(program, folder)
                counts[0] += 1
            except AssertionError as failure:
                counts[1] += 1
                print(f"FAILED {test.__name__}: {failure}")
    print(f"{counts[0]} passed, {counts[1]} failed, 0 skipped")
    return 1 if counts[1] else 0


if __name__ == "__main__":
    sys.exit(main())
