"""A small, quick PyTorch form of the DeBERTa v3 encoder with masked-language-model and sequence heads.

The module tree carries the tensor names of the published checkpoints, so state_dict() *is* the file.
It computes what transformers computes (train_demo.py check compares them), but it projects only the
relative rows in use, turns strips into matrices by skewing a view instead of gathering, and lets only
the rows that a head reads through the last layer. No dropout: the demo corpus is read a few dozen times.

SPDX-License-Identifier: MIT
"""

import json
import math

import safetensors.torch
import torch
import torch.nn.functional as F
from torch import nn


def linear(x, layer):
    """Applies a linear layer in the dtype of its input: weights stay float32 masters, products may be bfloat16."""
    return F.linear(x, layer.weight.to(x.dtype), layer.bias.to(x.dtype))


def layer_norm(x, norm):
    return F.layer_norm(x, norm.normalized_shape, norm.weight.to(x.dtype), norm.bias.to(x.dtype), norm.eps)


def bucket_rows(length, buckets, max_distance):
    """Table row of every distance -(length-1) .. length-1, ascending. Both logarithms are the same
    expression, so that the quotient at the largest distance is exactly 1 and ceil does not step up."""
    rows = []
    for distance in range(-(length - 1), length):
        size = min(abs(distance), max_distance - 1)
        if buckets > 0 and size > buckets // 2:
            mid = buckets // 2
            size = math.ceil(math.log(size / mid) / math.log((max_distance - 1) / mid) * (mid - 1)) + mid
        span = buckets if buckets > 0 else max_distance
        signed = size if distance >= 0 else -size
        rows.append(min(max(signed + span, 0), 2 * span - 1))
    return torch.tensor(rows)


def skewed(strip):
    """Returns a view: strip[..., i, c] with c = j - i + n - 1 (2n - 1 columns) seen as matrix[..., i, j]."""
    n, (outer, inner) = strip.shape[-2], (strip.stride(0), strip.stride(1))
    size = (strip.shape[0], strip.shape[1], n, n)
    return strip.as_strided(size, (outer, inner, 2 * n - 2, 1), strip.storage_offset() + n - 1)


class Skew(torch.autograd.Function):
    """skewed() with a backward of one clear and one copy; autograd's own costs three passes each way."""

    @staticmethod
    def forward(ctx, strip):
        return skewed(strip).contiguous()

    @staticmethod
    def backward(ctx, gradient):
        strip = gradient.new_zeros(*gradient.shape[:-1], 2 * gradient.shape[-1] - 1)
        skewed(strip).copy_(gradient)
        return strip


class SkewedSum(torch.autograd.Function):
    """Returns c2p skewed by query plus p2c skewed by key and transposed: the bias of a whole layer, without gathers."""

    @staticmethod
    def forward(ctx, content_to_position, position_to_content):
        return skewed(content_to_position) + skewed(position_to_content).transpose(-1, -2)

    @staticmethod
    def backward(ctx, gradient):
        return Skew.backward(ctx, gradient), Skew.backward(ctx, gradient.transpose(-1, -2))


class Named(nn.Module):
    """A bag of submodules: only their names matter, the arithmetic is in Encoder."""

    def __init__(self, /, **children):
        super().__init__()
        for name, child in children.items():
            self.add_module(name, child)


class LeanDeberta(nn.Module):
    """The encoder, the Enhanced Mask Decoder, the masked-LM head, the pooler and the classifier.

    `config` is the dictionary of config.json: relative attention with c2p, p2c or both (through shared keys and a
    normalised relative table, log buckets or clipped distances) or none, absolute positions at the input or not. Two
    keys are this file's own: enhanced_mask_decoder (default: with relative attention), scaled_start (default: without
    it) and, for controls, decoder_positions (false: the decoder's two passes without absolute positions), p2p (true: a
    term PQ[row(i - j)] PK[row(i - j)] besides the others) and p2c_from_query (true: p2c reads row(j - i))."""

    def __init__(self, config, labels):
        super().__init__()
        h, f, eps = config["hidden_size"], config["intermediate_size"], config["layer_norm_eps"]
        self.config = config
        self.heads = config["num_attention_heads"]
        self.head_size = h // self.heads
        self.disentangled = config["relative_attention"]
        self.terms = [term for term in ("c2p", "p2c") if self.disentangled and term in config["pos_att_type"]]
        self.emd = config.get("enhanced_mask_decoder", self.disentangled)
        self.p2p, self.p2c_from_query = config.get("p2p", False), config.get("p2c_from_query", False)
        self.scale = math.sqrt(self.head_size * (1 + len(self.terms) + self.p2p))

        def norm():
            return nn.LayerNorm(h, eps)

        def block():
            projections = {p: nn.Linear(h, h) for p in ("query_proj", "key_proj", "value_proj")}
            attention = Named(self=Named(**projections), output=Named(dense=nn.Linear(h, h), LayerNorm=norm()))
            return Named(attention=attention, intermediate=Named(dense=nn.Linear(h, f)),
                         output=Named(dense=nn.Linear(f, h), LayerNorm=norm()))

        embeddings = Named(word_embeddings=nn.Embedding(config["vocab_size"], h),
                           position_embeddings=nn.Embedding(config["max_position_embeddings"], h), LayerNorm=norm())
        encoder = Named(layer=nn.ModuleList(block() for _ in range(config["num_hidden_layers"])))
        if self.disentangled:
            self.max_distance = config["max_relative_positions"]
            if self.max_distance < 1:
                self.max_distance = config["max_position_embeddings"]
            buckets = config["position_buckets"]
            encoder.rel_embeddings = nn.Embedding(2 * (buckets if buckets > 0 else self.max_distance), h)
            encoder.LayerNorm = norm()
        self.deberta = Named(embeddings=embeddings, encoder=encoder)
        lm_head = Named(dense=nn.Linear(h, h), LayerNorm=norm())
        lm_head.bias = nn.Parameter(torch.zeros(config["vocab_size"]))
        self.lm_predictions = Named(lm_head=lm_head)
        self.pooler = Named(dense=nn.Linear(h, h))
        self.classifier = nn.Linear(h, labels)
        self.initialise()
        self.tables = {}

    def initialise(self):
        """Normal with the usual deviation. Plain attention with absolute positions does not leave the unigram plateau
        from there at this size (hundreds of steps at three learning rates), so it gets the better start: linear
        layers scaled by their inputs, and a position table that begins as sines and cosines of the usual size."""
        deviation = self.config["initializer_range"]
        scaled = self.config.get("scaled_start", not self.disentangled)
        for module in self.modules():
            if isinstance(module, nn.Embedding):
                nn.init.normal_(module.weight, std=deviation)
            elif isinstance(module, nn.Linear):
                nn.init.normal_(module.weight, std=module.in_features**-0.5 if scaled else deviation)
                nn.init.zeros_(module.bias)
        if self.config["position_biased_input"]:
            table = self.deberta.embeddings.position_embeddings.weight.detach()
            angle = torch.arange(len(table))[:, None] / 10000 ** (torch.arange(0, table.shape[1], 2) / table.shape[1])
            table.copy_(torch.cat([angle.sin(), angle.cos()], 1) * (deviation * math.sqrt(2)))

    def distance_rows(self, n):
        """Returns rows for c = j - i + n - 1 ascending, that is distances i - j from n - 1 down to -(n - 1)."""
        if n not in self.tables:
            self.tables[n] = bucket_rows(n, self.config["position_buckets"], self.max_distance).flip(0)
        return self.tables[n]

    def relative_table(self, n, dtype):
        if not self.disentangled:
            return None
        encoder = self.deberta.encoder
        return layer_norm(encoder.rel_embeddings.weight, encoder.LayerNorm).to(dtype)

    def split(self, x):
        """Turns [batch, n, h] into [head, batch, n, d]: heads outermost, so that one product per head meets the table."""
        return x.unflatten(-1, (self.heads, self.head_size)).permute(2, 0, 1, 3)

    def project_table(self, layer, table):
        weights = layer.attention.self
        key = linear(table, weights.key_proj).unflatten(-1, (self.heads, self.head_size)).transpose(0, 1)
        query = linear(table, weights.query_proj).unflatten(-1, (self.heads, self.head_size)).transpose(0, 1)
        return key / self.scale, query / self.scale

    def strip(self, x, table_rows):
        """Multiplies [head, batch, n, d] by [head, rows, d]: every token against every row, one product per head."""
        heads, batch, n, d = x.shape
        product = torch.bmm(x.reshape(heads, batch * n, d), table_rows.transpose(1, 2))
        return product.view(heads, batch, n, table_rows.shape[1])

    def feed_forward(self, layer, context, residual):
        attention = layer.attention.output
        a = layer_norm(linear(context, attention.dense) + residual, attention.LayerNorm)
        inner = F.gelu(linear(a, layer.intermediate.dense))
        return layer_norm(linear(inner, layer.output.dense) + a, layer.output.LayerNorm)

    def attend(self, scores, value):
        return torch.matmul(torch.softmax(scores, -1), value).permute(1, 2, 0, 3).flatten(-2)

    def scores(self, query, key, bias):
        """Returns q k^T / scale [head, batch, rows, n], added to the bias if there is one."""
        heads, batch, rows, _ = query.shape
        query, key = query.flatten(0, 1), key.flatten(0, 1).transpose(1, 2)
        if bias is None:
            product = torch.bmm(query, key / self.scale)
        else:
            product = torch.baddbmm(bias.flatten(0, 1), query, key, alpha=1 / self.scale)
        return product.view(heads, batch, rows, key.shape[2])

    def key_rows(self, n):
        """Returns rows for the key side, where c counts i - j + n - 1, so they come in the opposite order."""
        rows = self.distance_rows(n)
        return rows if self.p2c_from_query else rows.flip(0)

    def position_pairs(self, position_key, position_query, index):
        """Returns p2p of the pairs that read the rows `index`, [head, ...]: both factors are divided by the scale already."""
        return ((position_key * position_query).sum(-1) * self.scale)[:, index]

    def position_bias(self, query, key, position_key, position_query, rows):
        n = query.shape[2]
        if self.terms == ["c2p"]:
            bias = Skew.apply(self.strip(query, position_key[:, rows]))
        elif self.terms == ["p2c"]:
            bias = Skew.apply(self.strip(key, position_query[:, self.key_rows(n)])).transpose(-1, -2)
        else:
            bias = SkewedSum.apply(self.strip(query, position_key[:, rows]),
                                   self.strip(key, position_query[:, self.key_rows(n)]))
        if self.p2p:
            index = rows[torch.arange(n) - torch.arange(n)[:, None] + n - 1]
            bias = bias + self.position_pairs(position_key, position_query, index)[:, None]
        return bias

    def full_layer(self, layer, x, table):
        weights, n = layer.attention.self, x.shape[1]
        projections = [weights.query_proj, weights.key_proj, weights.value_proj]
        fused = F.linear(x, torch.cat([p.weight for p in projections]).to(x.dtype),
                         torch.cat([p.bias for p in projections]).to(x.dtype))
        query, key, value = (self.split(part) for part in fused.chunk(3, -1))
        bias = None
        if table is not None:
            bias = self.position_bias(query, key, *self.project_table(layer, table), self.distance_rows(n))
        return self.feed_forward(layer, self.attend(self.scores(query, key, bias), value), x)

    def embed(self, ids, dtype):
        embeddings = self.deberta.embeddings
        x = embeddings.word_embeddings(ids)
        if self.config["position_biased_input"]:
            x = x + embeddings.position_embeddings.weight[: ids.shape[1]]
        return layer_norm(x, embeddings.LayerNorm).to(dtype)

    def hidden_states(self, ids, dtype=torch.float32, layers=None):
        """Returns all of H[0] .. H[L], or up to H[layers]."""
        table = self.relative_table(ids.shape[1], dtype)
        states = [self.embed(ids, dtype)]
        for layer in self.deberta.encoder.layer[:layers]:
            states.append(self.full_layer(layer, states[-1], table))
        return states

    def decode(self, ids, rows, dtype=torch.float32):
        """The query rows `rows` [batch, m] as the MLM head wants them, and H[L][0] for the pooler.

        With the Enhanced Mask Decoder: two passes of the last layer over keys and values of H[L-1], queries
        H[L-1] + absolute position. Without: the rows of H[L]. A query row depends on no other query row, so
        computing only these changes nothing but the time."""
        layer, states = self.deberta.encoder.layer[-1], self.hidden_states(ids, dtype, -1)[-1]
        weights, n, m = layer.attention.self, ids.shape[1], rows.shape[1]
        key, value = self.split(linear(states, weights.key_proj)), self.split(linear(states, weights.value_proj))
        rows = torch.cat([rows, rows.new_zeros(len(rows), 1)], 1)
        queries = states.gather(1, rows[..., None].expand(-1, -1, states.shape[-1]))
        if self.emd:
            if self.config.get("decoder_positions", True):
                positions = self.deberta.embeddings.position_embeddings.weight[rows[:, :m]].to(dtype)
                queries = queries + F.pad(positions, (0, 0, 0, 1))
        if self.disentangled:
            position_key, position_query = self.project_table(layer, self.relative_table(n, dtype))
            index = self.distance_rows(n)[torch.arange(n) - rows[..., None] + n - 1].expand(self.heads, -1, -1, -1)
            from_keys = None
            if "p2c" in self.terms:
                from_keys = Skew.apply(self.strip(key, position_query[:, self.key_rows(n)]))
                from_keys = from_keys.transpose(-1, -2).gather(2, rows[None, :, :, None].expand(self.heads, -1, -1, n))

        def bias_of(query):
            """Returns the position terms of the rows: c2p depends on the queries of the pass, p2c on the keys alone."""
            count = query.shape[2]
            terms = []
            if "c2p" in self.terms:
                terms.append(self.strip(query, position_key).gather(-1, index[:, :, :count]))
            if "p2c" in self.terms:
                terms.append(from_keys[:, :, :count])
            if self.p2p:
                terms.append(self.position_pairs(position_key, position_query, index[0, :, :count]))
            return sum(terms[1:], terms[0]) if terms else None

        def one_pass(queries):
            query = self.split(linear(queries, weights.query_proj))
            return self.feed_forward(layer, self.attend(self.scores(query, key, bias_of(query)), value), queries)

        first = one_pass(queries)
        decoded = first[:, :m]
        if self.emd:
            decoded = one_pass(decoded)
        return decoded, first[:, m]

    def vocabulary_logits(self, x):
        """Applies the masked-LM head, tied to the word table; logits in float32."""
        head = self.lm_predictions.lm_head
        x = layer_norm(F.gelu(linear(x, head.dense)), head.LayerNorm)
        words = self.deberta.embeddings.word_embeddings.weight
        return F.linear(x, words.to(x.dtype)).float() + head.bias

    def class_logits(self, first):
        return self.classifier(F.gelu(linear(first, self.pooler.dense)).float())

    def masked_loss(self, ids, rows, targets):
        decoded, _ = self.decode(ids, rows)
        return F.cross_entropy(self.vocabulary_logits(decoded).flatten(0, 1), targets.flatten())

    def write(self, folder):
        """Writes a folder that the program can train: without the pooler and the classifier."""
        folder.mkdir(parents=True, exist_ok=True)
        weights = {name: weight for name, weight in self.state_dict().items() if not name.startswith(("pooler", "classifier"))}
        safetensors.torch.save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
        (folder / "config.json").write_text(json.dumps(self.config))
