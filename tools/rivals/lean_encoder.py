"""The encoder of DeBERTa v3 as an expert writes it in PyTorch: what ONNX Runtime and OpenVINO get, too.

One product makes Q, K and V. The tables of positions go through their projections when the module is made, a row for each distance, with
the scale in them. c2p and p2c are one product a head with such a table, whose strips are seen as matrices by a view, and together they
are the bias of scaled_dot_product_attention. Texts have any length up to one; without a mask all of them have all tokens.

SPDX-License-Identifier: MIT
"""
import torch
import torch.nn.functional as F
from torch import nn
from transformers.models.deberta_v2.modeling_deberta_v2 import make_log_bucket_position

PADDED = -1e9  # added to the scores of padding, which softmax then makes 0


def joined(layers):
    whole = nn.Linear(layers[0].in_features, sum(layer.out_features for layer in layers))
    whole.weight = nn.Parameter(torch.cat([layer.weight for layer in layers]))
    whole.bias = nn.Parameter(torch.cat([layer.bias for layer in layers]))
    return whole


def viewed(strip, n):
    """Views strip[..., i, j - i + n - 1] of 2n - 1 columns as [..., i, j]: rows of 2n - 2 numbers begin a column earlier each."""
    if n == 1:
        return strip
    return strip.flatten(-2)[..., n - 1 : n - 1 + n * (2 * n - 2)].unflatten(-1, (n, 2 * n - 2))[..., :n]


class LeanLayer(nn.Module):
    def __init__(self, layer, table, rows, heads):
        """`layer` is that of transformers, whose modules it keeps; `rows` of the table by distance, ascending."""
        super().__init__()
        own = layer.attention.self
        self.heads, self.head_size = heads, own.query_proj.out_features // heads
        self.scale = (3 * self.head_size) ** -0.5
        self.query_key_value = joined([own.query_proj, own.key_proj, own.value_proj])
        self.register_buffer("position_key", self.folded(own.key_proj, table, rows.flip(0)))
        self.register_buffer("position_query", self.folded(own.query_proj, table, rows))
        self.projection, self.first_norm = layer.attention.output.dense, layer.attention.output.LayerNorm
        self.up, self.down, self.last_norm = layer.intermediate.dense, layer.output.dense, layer.output.LayerNorm

    def folded(self, projection, table, rows):
        """Returns a table after its projection, [heads, head size, distances]."""
        return (projection(table)[rows].unflatten(-1, (self.heads, self.head_size)) * self.scale).permute(1, 2, 0).contiguous()

    def strips(self, x, n, positions):
        """Multiplies [heads, texts, n, head size] by a table: heads come first, so that a head's texts are one product."""
        farthest = positions.shape[-1] // 2
        if n <= farthest:  # the table is for longer texts
            positions = positions[..., farthest + 1 - n : farthest + n]
        return viewed(torch.bmm(x.flatten(1, 2), positions).unflatten(1, (-1, n)), n)

    def forward(self, x, padding=None):
        """padding: what is added to the scores of keys, [texts, 1, n]."""
        n = x.shape[1]  # of this, which an exporter knows to vary
        query, key, value = self.query_key_value(x).unflatten(-1, (3, self.heads, self.head_size)).permute(2, 3, 0, 1, 4)
        bias = self.strips(query, n, self.position_key) + self.strips(key, n, self.position_query).transpose(-1, -2)
        if padding is not None:
            bias = bias + padding
        context = F.scaled_dot_product_attention(query, key, value, attn_mask=bias, scale=self.scale)
        x = self.first_norm(x + self.projection(context.permute(1, 2, 0, 3).flatten(-2)))
        return self.last_norm(x + self.down(F.gelu(self.up(x))))


class LeanEncoder(nn.Module):
    def __init__(self, model, n):
        """Takes modules of transformers' DebertaV2Model, for texts of at most n tokens."""
        super().__init__()
        config, encoder = model.config, model.encoder
        farthest = config.max_relative_positions if config.max_relative_positions > 0 else config.max_position_embeddings
        buckets = config.position_buckets
        rows = (make_log_bucket_position(torch.arange(1 - n, n), buckets, farthest).long() + buckets).clamp(0, 2 * buckets - 1)
        self.words, self.norm = model.embeddings.word_embeddings, model.embeddings.LayerNorm
        with torch.no_grad():
            table = encoder.get_rel_embedding()
            self.layers = nn.ModuleList(LeanLayer(layer, table, rows, config.num_attention_heads) for layer in encoder.layer)

    def forward(self, input_ids, attention_mask=None):
        """Returns the last hidden state. Without a mask all texts have all tokens."""
        padding = None if attention_mask is None else (1.0 - attention_mask)[:, None] * PADDED
        x = self.norm(self.words(input_ids))
        for layer in self.layers:
            x = layer(x, padding)
        return x


class LeanClassifier(nn.Module):
    def __init__(self, model, n):
        """Takes modules of transformers' DebertaV2ForSequenceClassification, for texts of at most n tokens."""
        super().__init__()
        self.encoder, self.pooler, self.classifier = LeanEncoder(model.deberta, n), model.pooler, model.classifier

    def forward(self, input_ids, attention_mask=None):
        """Returns logits."""
        return self.classifier(self.pooler(self.encoder(input_ids, attention_mask)))


def lean_module(model, n, answer):
    """Returns what is lean of a model of transformers: the encoder, or the classifier if the answer is logits."""
    return (LeanClassifier if answer == "logits" else LeanEncoder)(model, n).eval()
