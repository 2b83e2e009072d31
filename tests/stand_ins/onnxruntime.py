"""Stands in for the package of that name where tools/peers.py is tested without it: a session answers every text with the last hidden
states of the file that its graph names, and takes a moment. SPDX-License-Identifier: MIT
"""
import time
from pathlib import Path
from types import SimpleNamespace

from safetensors.numpy import load_file

__version__ = "stand-in"
SECONDS = 0.002


class GraphOptimizationLevel:
    ORT_ENABLE_ALL = 99


class SessionOptions:
    pass


class InferenceSession:
    def __init__(self, graph, options, providers):
        self.answer = load_file(Path(graph).read_text("utf-8"))["hidden_states.expected"]

    def get_inputs(self):
        return [SimpleNamespace(name=name) for name in ("input_ids", "attention_mask")]

    def run(self, names, given):
        time.sleep(SECONDS)
        return [self.answer.astype("float32")]
