"""The checker for other implementations: ours passes, a wrong one does not. SPDX-License-Identifier: MIT"""
import json
import re
import shutil
import struct
import subprocess
import sys

import pytest

from conftest import GOLDEN, ROOT
from deberta_c import _program

CASES = ["01-v1-both-n33", "16-v3-b256-n33", "24-v3-b3-ragged", "29-v3-seqcls", "33-v3-mlm-emd", "36-v3-rtd"]


def written_by_us(case, path):
    subprocess.run([_program.PROGRAM, "encode", GOLDEN / case, "--input", GOLDEN / case / "expected.safetensors", "--reference", "hf", "--hidden", "all",
                    "--attention-layers", "all", "--component-layers", "all", "--logits", "-o", path], check=True)


def check(case, *arguments):
    return subprocess.run([sys.executable, GOLDEN / "check_vectors.py", case, *arguments], capture_output=True, text=True)


@pytest.mark.parametrize("case", CASES)
def test_ours_conforms(case, tmp_path):
    written_by_us(case, tmp_path / "out.safetensors")
    done = check(case, tmp_path / "out.safetensors", "--bits")
    assert done.returncode == 0 and "FAIL" not in done.stdout and done.stdout.count("ok   bits of") >= 5, done.stdout + done.stderr


def test_a_flipped_bit_and_a_wrong_value_are_noticed(tmp_path):
    path = tmp_path / "out.safetensors"
    written_by_us(CASES[1], path)
    data = bytearray(path.read_bytes())
    data[-4] ^= 1
    path.write_bytes(data)
    assert check(CASES[1], path).returncode == 0
    assert check(CASES[1], path, "--bits").returncode == 1
    data[-1] ^= 0x40
    path.write_bytes(data)
    assert check(CASES[1], path, "--bits").returncode == 1
    assert check(CASES[0], path).returncode == 1


def test_what_is_no_number_is_noticed(tmp_path):
    """In any text, not only in the first."""
    path = tmp_path / "out.safetensors"
    written_by_us(CASES[2], path)
    data = bytearray(path.read_bytes())
    base = 8 + int.from_bytes(data[:8], "little")
    entry = json.loads(data[8:base])["hidden_states.1"]
    begin, end = entry["data_offsets"]
    for text in range(entry["shape"][0]):
        wrong, at = bytearray(data), base + begin + text * (end - begin) // entry["shape"][0]
        wrong[at:at + 4] = struct.pack("<f", float("nan"))
        path.write_bytes(wrong)
        done = check(CASES[2], path)
        assert done.returncode == 1 and re.search(r"FAIL hidden_states.1 +error nan", done.stdout), done.stdout


def with_values(path, **values):
    """Writes the file of the program with other values in all of a tensor, whose name has _ for a full stop and - for _, or with a tensor more."""
    data = path.read_bytes()
    base = 8 + int.from_bytes(data[:8], "little")
    header, tensors = json.loads(data[8:base]), bytearray(data[base:])
    for name, value in values.items():
        entry = header.setdefault(name.replace("_", ".").replace("-", "_"), {"dtype": "F32", "shape": [2], "data_offsets": [len(tensors), len(tensors) + 8]})
        begin, end = entry["data_offsets"]
        tensors[begin:end] = struct.pack({"F32": "<f", "I64": "<q"}[entry["dtype"]], value) * ((end - begin) // {"F32": 4, "I64": 8}[entry["dtype"]])
    text = json.dumps(header).encode()
    wrong = path.with_name("changed.safetensors")
    wrong.write_bytes(len(text).to_bytes(8, "little") + text + tensors)
    return wrong


def test_no_tensor_of_the_file_is_left_unjudged_in_silence(tmp_path):
    """Logits are the sum of terms, which the case has; what it has nothing for holds numbers at least, and is named with the reason."""
    path, long = tmp_path / "out.safetensors", tmp_path / "long.safetensors"
    written_by_us(CASES[1], path)
    written_by_us("17-v3-b256-n700", long)
    for value in (7., float("nan"), float("-inf")):
        done = check(CASES[1], with_values(path, attn_0_logits=value))
        assert done.returncode == 1 and re.search(r"FAIL attn.0.logits +error", done.stdout) and "ok   attn.1.logits" in done.stdout, done.stdout
    for case, whole, name in ((CASES[1], path, "mine"), ("17-v3-b256-n700", long, "attn_1_logits")):
        fine, wrong = (check(case, with_values(whole, **{name: value})) for value in (7., float("inf")))
        assert fine.returncode == 0, fine.stdout
        assert wrong.returncode == 1 and re.search(rf"FAIL {name.replace('_', '.')} +holds what is no number", wrong.stdout), wrong.stdout
    done = check("17-v3-b256-n700", long)
    unheld = " ".join(f"attn.{layer}.{term}" for layer in (0, 1) for term in ("c2c", "c2p", "logits", "p2c"))
    assert f"\nnot compared, as the case has no values of it: {unheld}\n" in done.stdout and "not of this case" not in done.stdout, done.stdout
    assert "\nnot of this case: mine\n" in check(CASES[1], with_values(path, mine=7.)).stdout
    done = check(CASES[1], with_values(path, **{"input-ids": 7}))
    assert done.returncode == 1 and re.search(r"FAIL input_ids +are not those of the case", done.stdout), done.stdout


def test_nothing_to_compare(tmp_path):
    """A file whose tensors are named or shaped otherwise has proved nothing."""
    path = tmp_path / "out.safetensors"
    written_by_us(CASES[0], path)
    path.write_bytes(path.read_bytes().replace(b"hidden_states.", b"hidden-states.").replace(b'"attn.', b'"attn-').replace(b'"logits.', b'"logits-'))
    done = check(CASES[0], path)
    assert done.returncode == 1 and "no tensor of 01-v1-both-n33 to compare" in done.stdout
    assert check(CASES[0]).returncode == 2, "without a file it says how it is called"


def test_wrong_use_is_one_sentence(tmp_path):
    good, short, other = tmp_path / "out.safetensors", tmp_path / "short.safetensors", tmp_path / "README.md"
    written_by_us(CASES[0], good)
    short.write_bytes(good.read_bytes()[:5000])
    other.write_text("no tensors")
    for case, path, says in ((CASES[0], tmp_path / "none", "No such file"), (CASES[0], short, "is no whole safetensors file"),
                             (CASES[0], other, "is no whole safetensors file"), ("99-v9", good, "99-v9: no such case; --list names them")):
        done = check(case, path)
        assert done.returncode == 1 + (case == "99-v9") and done.stderr.count("\n") == 1 and says in done.stderr, done.stderr
    for case in (CASES[0].split("-")[0], GOLDEN / CASES[0], f"{GOLDEN}/{CASES[0]}/"):
        done = check(case, good)
        assert done.returncode == 0 and f"\n{CASES[0]}: 19 of 19" in done.stdout, done.stderr
    assert check(tmp_path / CASES[0], good).returncode == 2, "a folder elsewhere is none of these cases"
    done = check("--all", tmp_path / "nowhere")
    assert done.returncode == 2 and done.stderr.endswith("nowhere: no such folder\n") and not done.stdout
    done = check("--help")
    assert done.returncode == 0 and "check_vectors.py --list" in done.stdout and not done.stderr
    done = check(CASES[1], good)
    assert done.returncode == 1 and "has the shape" in done.stdout and not done.stderr, done.stdout + done.stderr


def test_what_is_missing_is_said(tmp_path):
    path = tmp_path / f"{CASES[0]}.safetensors"
    written_by_us(CASES[0], path)
    whole = check(CASES[0], path).stdout
    assert whole.endswith("01-v1-both-n33: 19 of 19 tensors compared, 0 checks failed\n") and "missing" not in whole, whole
    path.write_bytes(path.read_bytes().replace(b"attn.1.probs", b"attn.1.probz"))
    done = check(CASES[0], path)
    bits = check(CASES[0], path, "--bits")
    assert "bits of probs: not all of it is there, so that it has no checksum: attn.1.probs missing\n" in bits.stdout, bits.stdout
    assert "FAIL" not in bits.stdout and "ok   bits of hidden" in bits.stdout and bits.returncode == 0, bits.stdout
    assert "missing: attn.1.probs\n" in done.stdout and "18 of 19 tensors compared" in done.stdout and "not of this case: attn.1.probz\n" in done.stdout and done.returncode == 0, done.stdout
    everything = check("--all", tmp_path)
    assert everything.stdout.endswith("1 of 38 cases were there, 0 of them failed\n") and everything.returncode == 0, everything.stdout
    (tmp_path / f"{CASES[1]}.safetensors").write_bytes(path.read_bytes())
    assert check("--all", tmp_path).returncode == 1
    listed = check("--list").stdout
    assert len(listed.splitlines()) == 38 and "Enhanced Mask Decoder" in listed and "convolution" in listed and "v1's" in listed, listed


def test_every_expected_tensor_is_judged(tmp_path):
    """Also the rows of a long text, passes of the decoder, and the variants of Microsoft: the expected values agree with themselves, others do not."""
    for folder in GOLDEN.glob("[0-9]*/"):
        shutil.copy(folder / "expected.safetensors", tmp_path / f"{folder.name}.safetensors")
    done = check("--all", tmp_path)
    counts = re.findall(r": (\d+) of (\d+) tensors compared, 0 checks failed", done.stdout)
    assert done.returncode == 0 and len(counts) == 38 and all(a == b for a, b in counts) and "missing" not in done.stdout, done.stdout
    for case, name in (("33-v3-mlm-emd", "emd.pass2"), ("17-v3-b256-n700", "attn.1.probs.rows"), ("17-v3-b256-n700", "ms_clamp.attn.0.probs.rows"),
                       ("18-v2-beyond-m16-n33", "ms_clamp.hidden_states.2"), ("24-v3-b3-ragged", "zero_fill.hidden_states.1")):
        data = bytearray((GOLDEN / case / "expected.safetensors").read_bytes())
        base = 8 + int.from_bytes(data[:8], "little")
        at = base + json.loads(data[8:base])[name]["data_offsets"][0]
        data[at:at + 4] = b"\0\0\xc0\x7f"
        data[at + 4:at + 8] = b"\0\0\xf8\x7f"
        (tmp_path / "wrong").write_bytes(data)
        done = check(case, tmp_path / "wrong")
        assert done.returncode == 1 and re.search(rf"FAIL {name} +error nan", done.stdout), done.stdout
    written_by_us("17-v3-b256-n700", tmp_path / "ours.safetensors")
    done = check("17-v3-b256-n700", tmp_path / "ours.safetensors")
    assert re.search(r"ok +attn.0.probs.rows +error", done.stdout) and "missing: ms_clamp.attn.0.probs.rows" in done.stdout, done.stdout


def test_version_and_length():
    """Vectors are versioned, and the checker is short enough to be read."""
    assert re.fullmatch(r"\d+\.\d+\n", (GOLDEN / "VERSION").read_text())
    assert len((GOLDEN / "check_vectors.py").read_text().splitlines()) <= 160
    assert "check_vectors.py" in (ROOT / "docs" / "evidence.md").read_text()
