"""Drawn texts through the program and through the libraries that the vocabularies were trained with, in the releases whose results are
the specification's: sentencepiece 0.2.0, and tokenizers as it is installed. SPDX-License-Identifier: MIT"""
import os
import subprocess
import sys

import pytest

from conftest import ROOT
from deberta_c import _program

pytest.importorskip("tokenizers")
TOKENIZERS = ROOT / "tests" / "golden" / "tokenizers"


@pytest.fixture(scope="module")
def sentencepiece(tmp_path_factory):
    """A folder with the release; a Python for which there is no wheel of it passes the test over."""
    folder = tmp_path_factory.mktemp("sentencepiece")
    command = [sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--only-binary=:all:", "--target", folder, "sentencepiece==0.2.0"]
    if subprocess.run(command, capture_output=True, check=False).returncode != 0:
        pytest.skip("sentencepiece 0.2.0 cannot be installed")
    return folder


@pytest.mark.parametrize("folder", [ROOT / "models" / "demo", *(TOKENIZERS / name for name in ("spm-unigram", "spm-bpe", "spm-flags", "metaspace", "metaspace-flags", "bpe-v1"))],
                         ids=lambda path: path.name)
def test_texts(folder, sentencepiece):
    done = subprocess.run([sys.executable, ROOT / "tools" / "gates" / "differential_texts.py", _program.PROGRAM, folder, "--texts", "400"], capture_output=True, text=True,
                          check=False, env={**os.environ, "PYTHONPATH": str(sentencepiece)})
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-1000:]
    assert int(done.stdout.split("\n")[-2].split()[0]) >= 400, done.stdout
