"""Safetensors files with nothing but Python's own library. SPDX-License-Identifier: MIT"""
import array
import json
import math
import struct

KINDS = {"F32": "f", "F64": "d", "I64": "q", "I32": "i"}


class Tensor:
    def __init__(self, dtype, shape, values):
        self.dtype, self.shape, self.values = dtype, tuple(shape), values


def read(path):
    """({name: Tensor}, metadata); checks what the format demands on the way."""
    with open(path, "rb") as file:
        data = file.read()
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


def write(path, tensors):
    header, body = {}, b""
    for name, tensor in tensors.items():
        piece = tensor.values.tobytes()
        header[name] = {"dtype": tensor.dtype, "shape": list(tensor.shape), "data_offsets": [len(body), len(body) + len(piece)]}
        body += piece
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text + body)
