"""The forward pass of the tiny models in NumPy, with a hard window: a query reads no key but those at the distances that it is given.

Written from the formulas alone, so that without a window it checks the program too. SPDX-License-Identifier: MIT
"""
import json
import math
from pathlib import Path
from typing import Any, Optional, Tuple

import numpy as np
import trained


def logits(folder: Path, ids: Any, window: Optional[Tuple[int, int]] = None) -> np.ndarray:
    """[texts, tokens, vocabulary] of the head on H[L]. window: smallest and largest query - key; None: all keys."""
    config = json.loads((folder / "config.json").read_text())
    weights = {name: values.astype(float) for name, values in trained.read_tensors(folder / "model.safetensors").items()}
    count, heads, k = np.shape(ids)[1], config["num_attention_heads"], config["max_relative_positions"]
    distances = np.arange(count)[:, None] - np.arange(count)
    rows = np.clip(distances + k, 0, 2 * k - 1)
    hidden = np.ones((count, count), bool) if window is None else (window[0] <= distances) & (distances <= window[1])
    table = _norm(weights["deberta.encoder.rel_embeddings.weight"], weights, "deberta.encoder.LayerNorm")
    x = _norm(weights["deberta.embeddings.word_embeddings.weight"][ids], weights, "deberta.embeddings.LayerNorm")
    for layer in range(config["num_hidden_layers"]):
        name = f"deberta.encoder.layer.{layer}"
        read = _attention(x, table, rows, hidden, heads, weights, f"{name}.attention.self")
        x = _norm(x + _linear(read, weights, f"{name}.attention.output.dense"), weights, f"{name}.attention.output.LayerNorm")
        wide = _gelu(_linear(x, weights, f"{name}.intermediate.dense"))
        x = _norm(x + _linear(wide, weights, f"{name}.output.dense"), weights, f"{name}.output.LayerNorm")
    head = "lm_predictions.lm_head"
    x = _norm(_gelu(_linear(x, weights, f"{head}.dense")), weights, f"{head}.LayerNorm")
    return x @ weights["deberta.embeddings.word_embeddings.weight"].T + weights[f"{head}.bias"]


def _attention(x: Any, table: Any, rows: Any, there: Any, heads: int, weights: Any, name: str) -> Any:
    query, key, value = (_split(_linear(x, weights, f"{name}.{one}_proj"), heads) for one in ("query", "key", "value"))
    of_query, of_key = (_split(_linear(table, weights, f"{name}.{one}_proj"), heads) for one in ("query", "key"))
    scores = query @ key.swapaxes(-1, -2)
    scores = scores + np.take_along_axis(query @ of_key.swapaxes(-1, -2), np.broadcast_to(rows, scores.shape), -1)
    scores = scores + np.take_along_axis(key @ of_query.swapaxes(-1, -2), np.broadcast_to(rows.T, scores.shape), -1).swapaxes(-1, -2)
    scores = np.where(there, scores / math.sqrt(3 * query.shape[-1]), -np.inf)
    shares = np.exp(scores - scores.max(-1, keepdims=True))
    read = (shares / shares.sum(-1, keepdims=True)) @ value
    return read.swapaxes(-2, -3).reshape(x.shape)


def _split(x: Any, heads: int) -> Any:
    return x.reshape(*x.shape[:-1], heads, -1).swapaxes(-2, -3)


def _linear(x: Any, weights: Any, name: str) -> Any:
    return x @ weights[f"{name}.weight"].T + weights[f"{name}.bias"]


def _norm(x: Any, weights: Any, name: str) -> Any:
    x = x - x.mean(-1, keepdims=True)
    return x / np.sqrt((x * x).mean(-1, keepdims=True) + 1e-7) * weights[f"{name}.weight"] + weights[f"{name}.bias"]


def _gelu(x: Any) -> Any:
    return x * (1 + np.vectorize(math.erf, otypes=[float])(x / math.sqrt(2))) / 2
