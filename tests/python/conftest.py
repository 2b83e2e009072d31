"""What the tests of the Python package share. SPDX-License-Identifier: MIT"""
import json
import os
import subprocess
from pathlib import Path

import numpy as np
import pytest

import deberta_c
from deberta_c import _program
from studies_bench import Bench

ROOT = Path(__file__).resolve().parents[2]
DEMO = str(ROOT / "models" / "demo")
GOLDEN = ROOT / "tests" / "golden"


@pytest.fixture()
def demo():
    with deberta_c.Model(DEMO) as model:
        yield model


@pytest.fixture(scope="session")
def shared_folder(tmp_path_factory):
    return tmp_path_factory.mktemp("studies")


@pytest.fixture()
def bench(tmp_path, shared_folder, monkeypatch):
    """Runs studies and the program in a folder of its own."""
    monkeypatch.chdir(tmp_path)
    return Bench(tmp_path, shared_folder)


def program_json(*arguments):
    """What the program says: an object a line."""
    done = subprocess.run([_program.PROGRAM, *arguments, "--json"], capture_output=True, check=True)
    return [json.loads(line) for line in done.stdout.decode().splitlines()]


def resident_kib():
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") // 1024


def read_safetensors(path):
    """{name: array}; the format is eight bytes, a JSON header, and the values."""
    data = Path(path).read_bytes()
    size = int.from_bytes(data[:8], "little")
    kinds = {"F32": "<f4", "F64": "<f8", "I64": "<i8", "I32": "<i4", "BOOL": "|b1", "U8": "|u1"}
    found = {}
    for name, entry in json.loads(data[8:8 + size]).items():
        if name != "__metadata__":
            begin, end = entry["data_offsets"]
            found[name] = np.frombuffer(data[8 + size + begin:8 + size + end], kinds[entry["dtype"]]).reshape(entry["shape"])
    return found


def refuses(kind, words, call, /, *arguments, **options):
    """The call raises such an error, which says these words (a regular expression)."""
    with pytest.raises(kind, match=words):
        call(*arguments, **options)
