"""What the tests of the program share: places, ways to compare, processes, and files read with nothing but Python's own library:
safetensors, PNG, small models with tokenizers.

SPDX-License-Identifier: MIT
"""
import array
import contextlib
import datetime
import functools
import json
import math
import os
import pathlib
import random
import re
import resource
import shutil
import signal
import struct
import subprocess
import time
import zlib
from unittest import SkipTest

ROOT = pathlib.Path(__file__).resolve().parents[2]
GOLDEN = ROOT / "tests" / "golden"
SAMPLED = bool(os.environ.get("DEBERTA_TEST_QUICK"))
DAY = int(os.environ.get("DEBERTA_TEST_DAY") or datetime.date.today().toordinal())
DEMO = str(ROOT / "models" / "demo")
TINY = "synthetic:v3-xsmall,layers=1,vocab=50,hidden=64,heads=2,intermediate=64"
SPM = "tokenizers/spm-unigram"

# --------------------------------------------------------------------------------------------------------- comparing


def check(fine, what):
    assert fine, what


def equal(found, expected, what=""):
    assert found == expected, f"{what}: found {found!r}, expected {expected!r}"


def near(found, expected, bound, what=""):
    assert abs(found - expected) <= bound, f"{what}: found {found}, expected {expected} within {bound}"


def contains(text, *words):
    missing = [word for word in words if word not in text]
    assert not missing, f"{missing} not in: {text}"


def softmax(row):
    top = max(row)
    powers = [math.exp(value - top) for value in row]
    return [power / sum(powers) for power in powers]


def quantile(values, part):
    """Between two of the sorted values along a straight line."""
    values = sorted(values)
    at = part * (len(values) - 1)
    low = int(at)
    return values[low] + (at - low) * (values[min(low + 1, len(values) - 1)] - values[low])


def check_message(result, code, words):
    """One sentence that begins with the command's name and holds these words; with wrong usage, also where to read on."""
    assert result.code == code, f"expected exit {code}\n{result.describe()}"
    assert result.out == "", f"nothing belongs on standard output\n{result.describe()}"
    lines = result.err.strip().split("\n")
    for word in words:
        assert word in result.err, f"the message does not say '{word}'\n{result.describe()}"
    if lines[0].startswith("deberta 0") or lines[0].startswith("usage"):
        return
    assert re.match(r"deberta( [a-z-]+){0,2}: \S", lines[0]), f"a message begins with the command's name\n{result.describe()}"
    assert len(lines[0]) < 500, result.describe()
    if code == 2:
        assert len(lines) == 2 and re.match(r"see: deberta [a-z-]+", lines[1]), f"expected a sentence and where to read on\n{result.describe()}"
    else:
        assert len(lines) == 1, f"expected one sentence\n{result.describe()}"


def sample(rows, count):
    """All, or so many of the day."""
    rows = list(rows)
    return random.Random(DAY).sample(rows, count) if SAMPLED else rows


@functools.cache
def help_of(program):
    return subprocess.run([program, "--help"], check=True, capture_output=True, text=True).stdout


def has_figures(bench):
    return "\n  attention " in help_of(bench.program)


def is_sanitized(program):
    """A sanitizer makes system calls and takes memory of its own."""
    content = pathlib.Path(program).read_bytes()
    return b"__asan_init" in content or b"__tsan_init" in content


def needs_speed(bench):
    """For what takes minutes under a sanitizer, which sees the same memory touched in tests that take seconds."""
    if is_sanitized(bench.program):
        raise SkipTest("too slow with a sanitizer")


def needs_figures(bench):
    if not has_figures(bench):
        raise SkipTest("built without figures")


# --------------------------------------------------------------------------------------------------------- processes


def at_most(what, amount):
    """For preexec_fn: the process has no more of what a RLIMIT_ bounds, "FSIZE" as on a disk that is full, "DATA" as where memory is."""
    return lambda: resource.setrlimit(getattr(resource, "RLIMIT_" + what), (amount, amount))


def children_of(pid):
    try:
        with open(f"/proc/{pid}/task/{pid}/children", encoding="ascii") as file:
            return [int(word) for word in file.read().split()]
    except OSError:
        return []


def alive(pid):
    """Not if it has ended, nor if it has been killed and only waits for a processor to end on."""
    try:
        with open(f"/proc/{pid}/status", encoding="utf-8", errors="replace") as file:
            status = dict(line.rstrip("\n").split(":\t", 1) for line in file if ":\t" in line)
    except OSError:
        return False
    pending = int(status.get("ShdPnd", "0"), 16) | int(status.get("SigPnd", "0"), 16)
    return status.get("State", "X")[0] not in "ZX" and not pending & 1 << signal.SIGKILL - 1


def wait_until(condition, seconds=30):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if condition():
            return True
        time.sleep(0.005)
    return False


@contextlib.contextmanager
def ending(process):
    """A test that fails leaves no process behind."""
    try:
        yield
    finally:
        if process.poll() is None:
            process.kill()
        process.wait()


# ------------------------------------------------------------------------------------------------------- safetensors

KINDS = {"F32": "f", "F64": "d", "I64": "q", "I32": "i"}


class Tensor:
    def __init__(self, dtype, shape, values):
        self.dtype, self.shape, self.values = dtype, tuple(shape), values


def read_tensors(path):
    """({name: Tensor}, metadata); checks what the format demands on the way."""
    data = pathlib.Path(path).read_bytes()
    (length,) = struct.unpack("<Q", data[:8])
    header = json.loads(data[8:8 + length].decode("utf-8"))
    assert length % 8 == 0, f"{path}: the header has {length} bytes, no multiple of 8"
    metadata, body, tensors, spans = header.pop("__metadata__", {}), data[8 + length:], {}, []
    for name, about in header.items():
        begin, end = about["data_offsets"]
        values = array.array(KINDS[about["dtype"]])
        values.frombytes(body[begin:end])
        assert len(values) == math.prod(about["shape"]), f"{path}: {name}: {len(values)} values, shape {about['shape']}"
        tensors[name] = Tensor(about["dtype"], about["shape"], values)
        spans.append((begin, end))
    at = 0
    for begin, end in sorted(spans):
        assert begin == at, f"{path}: a hole or an overlap at byte {at} of the values"
        at = end
    assert at == len(body), f"{path}: {len(body) - at} bytes behind the last tensor"
    return tensors, metadata


def write_tensors(path, tensors):
    header, body = {}, b""
    for name, tensor in tensors.items():
        piece = tensor.values.tobytes()
        header[name] = {"dtype": tensor.dtype, "shape": tensor.shape, "data_offsets": [len(body), len(body) + len(piece)]}
        body += piece
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    pathlib.Path(path).write_bytes(struct.pack("<Q", len(text)) + text + body)


def make_model(folder, case, tokenizer, vocabulary, rename_labels=None):
    """A folder with the weights of a golden case (its number), a golden tokenizer and a word table grown to `vocabulary` rows.
    rename_labels: the value of id2label."""
    folder = pathlib.Path(folder)
    folder.mkdir()
    source = next(GOLDEN.glob(f"{case}-*"))
    config = json.loads((source / "config.json").read_text())
    tensors, _ = read_tensors(source / "model.safetensors")
    dice, before = random.Random(1), config["vocab_size"]
    for name, tensor in tensors.items():
        if tensor.shape and tensor.shape[0] == before and ("word_embeddings" in name or name.endswith("lm_head.bias")):
            width = tensor.shape[1] if len(tensor.shape) > 1 else 1
            tensor.values += array.array("f", (dice.gauss(0, 0.5) for _ in range((vocabulary - before) * width)))
            tensor.shape = (vocabulary, *tensor.shape[1:])
    config["vocab_size"] = vocabulary
    if rename_labels:
        config["id2label"] = {str(k): label for k, label in enumerate(rename_labels)}
        config.pop("label2id", None)
    (folder / "config.json").write_text(json.dumps(config))
    write_tensors(folder / "model.safetensors", tensors)
    for file in (GOLDEN / "tokenizers" / tokenizer).iterdir():
        if file.suffix in (".json", ".model", ".txt"):
            shutil.copy(file, folder)
    return folder


# --------------------------------------------------------------------------------------------------------------- PNG


class Picture:
    """width, height, texts {key: value}, dots_per_metre, and pixel(x, y) as (r, g, b). 8-bit RGB or palette without interlacing, which
    is what this program writes; anything else is refused. Checks every checksum."""

    def __init__(self, data):
        assert data[:8] == b"\x89PNG\r\n\x1a\n", "no PNG"
        at, self.packed, self.texts, self.dots_per_metre, self.palette = 8, b"", {}, None, None
        while at < len(data):
            length, kind = struct.unpack(">I4s", data[at:at + 8])
            body = data[at + 8:at + 8 + length]
            assert zlib.crc32(kind + body) == struct.unpack(">I", data[at + 8 + length:at + 12 + length])[0], f"{kind} is damaged"
            self._take(kind, body)
            at += 12 + length

    @classmethod
    def read(cls, path):
        return cls(pathlib.Path(path).read_bytes())

    def _take(self, kind, body):
        if kind == b"IHDR":
            self.width, self.height, depth, colour, _, _, interlace = struct.unpack(">IIBBBBB", body)
            assert depth == 8 and colour in (2, 3) and not interlace, f"depth {depth}, colour type {colour}, interlace {interlace}"
            self.bytes_each = 3 if colour == 2 else 1
        elif kind == b"PLTE":
            self.palette = [tuple(body[k:k + 3]) for k in range(0, len(body), 3)]
        elif kind == b"IDAT":
            self.packed += body
        elif kind == b"pHYs":
            assert body[8] == 1, "a resolution that is not in metres"
            self.dots_per_metre = struct.unpack(">II", body[:8])
        elif kind == b"tEXt":
            key, _, value = body.partition(b"\0")
            self.texts[key.decode("latin-1")] = value.decode("latin-1")
        elif kind == b"iTXt":
            key, rest = body.split(b"\0", 1)
            compressed, rest = rest[0], rest[2:]
            value = rest.split(b"\0", 2)[2]
            self.texts[key.decode("latin-1")] = (zlib.decompress(value) if compressed else value).decode("utf-8")

    @functools.cached_property
    def lines(self):
        raw, step = zlib.decompress(self.packed), self.bytes_each
        stride, lines, above = step * self.width, [], bytes(step * self.width)
        for y in range(self.height):
            kind, line = raw[y * (stride + 1)], bytearray(raw[y * (stride + 1) + 1:(y + 1) * (stride + 1)])
            if kind == 2:
                line = bytearray((a + b) & 255 for a, b in zip(line, above))
            elif kind:
                for x in range(stride):
                    left, up, corner = (line[x - step], above[x], above[x - step]) if x >= step else (0, above[x], 0)
                    line[x] = (line[x] + (left if kind == 1 else (left + up) // 2 if kind == 3 else paeth(left, up, corner))) & 255
            lines.append(bytes(line))
            above = lines[-1]
        return lines

    def pixel(self, x, y):
        value = self.lines[y][self.bytes_each * x:self.bytes_each * (x + 1)]
        return self.palette[value[0]] if self.palette else tuple(value)


def pdf_page(path):
    """Width and height of a PDF's page in points. From PDF 1.5 on, which newer cairo writes, the page may stand in a compressed stream."""
    data = pathlib.Path(path).read_bytes()
    for part in (data, *re.findall(rb"stream\r?\n(.*?)\r?\nendstream", data, re.DOTALL)):
        with contextlib.suppress(zlib.error):
            box = re.search(rb"/MediaBox \[ ?0 0 ([\d.]+) ([\d.]+)", part if part is data else zlib.decompress(part))
            if box:
                return float(box[1]), float(box[2])
    raise AssertionError(f"{path}: no page has a size")


def other_build(bench, program, name):
    """The same program, as if another commit had been built."""
    content = bench.bytes(program)
    build = re.search(rb"\d+\.\d+\.\d+ \(([^()\0]+)\)\0", content)
    check(build, f"{program} does not say which build it is")
    bench.write(name, content.replace(build[0], build[0].replace(build[1], b"z" * len(build[1]))))
    os.chmod(name, 0o755)
    return os.path.abspath(name), build[0][:-1].decode()


def paeth(left, up, corner):
    guess = left + up - corner
    return min((left, up, corner), key=lambda value: abs(guess - value))
