"""The models and inputs that all engines get: made-up weights of the published shapes, drawn ids, and what PyTorch makes of them in float64.

SPDX-License-Identifier: MIT
"""
import functools
import json
import math
import os
import shutil
from dataclasses import dataclass
from pathlib import Path
from random import Random

from rivals.turns import ROOT

DOCUMENTS = ROOT / "bench" / "shapes" / "document_lengths.txt"
DEMO, TOKENIZER = ROOT / "models" / "demo", ("spm.model", "tokenizer_config.json", "added_tokens.json")
BOOK = ROOT / "docs" / "studies" / "data" / "sentences.txt"
CALIBRATION_TEXTS, CALIBRATION_TOKENS, FEWEST_TEXTS, FEWEST_TOKENS = 32, 128, 4, 16
EXPECTED = "hidden_states.expected"  # name in the file of an input; the program ignores tensors of this name

# -------------------------------------------------------------------------------------------------------------- shapes


@dataclass(frozen=True)
class Shape:
    version: int  # 1: deberta, 3: deberta-v2 with buckets
    hidden: int
    heads: int
    layers: int
    intermediate: int
    longest: int  # longest measured row
    vocabulary: int = 1000  # one row is copied for each token, so the size costs memory, not time
    outliers: tuple[int, float] = (0, 1)  # number of channels of the hidden states that are enlarged, and their factor
    buckets: int = 256  # buckets of v3's distances
    labels: int = 0  # of a classifier, which gets the tokenizer of models/demo

    def fields(self):
        """Returns its config.json."""
        found = {
            "hidden_size": self.hidden, "num_attention_heads": self.heads, "num_hidden_layers": self.layers,
            "intermediate_size": self.intermediate, "vocab_size": self.vocabulary, "max_position_embeddings": TABLE,
            "type_vocab_size": 0, "layer_norm_eps": 1e-7, "relative_attention": True, "max_relative_positions": -1,
            "pos_att_type": "c2p|p2c", "position_biased_input": False, "pad_token_id": 0,
        }  # fmt: skip
        found |= {"num_labels": self.labels} if self.labels else {}
        return found | ({"position_buckets": self.buckets, "norm_rel_ebd": "layer_norm", "share_att_key": True} if self.version == 3 else {})


SHAPES = {
    "v3-xsmall": Shape(3, 384, 6, 12, 1536, 4096),
    "v3-small": Shape(3, 768, 12, 6, 3072, 4096),
    "v3-base": Shape(3, 768, 12, 12, 3072, 4096),
    "v1-base": Shape(1, 768, 12, 12, 3072, 1024),
    "v3-base-outliers": Shape(3, 768, 12, 12, 3072, 4096, outliers=(6, 20)),
    "v3-base-outlier": Shape(3, 768, 12, 12, 3072, 4096, outliers=(1, 60)),
    "v3-base-texts": Shape(3, 768, 12, 12, 3072, 4096, 6000, labels=3),
    "tiny-v3": Shape(3, 64, 4, 3, 128, 4096, 200),
    "tiny-v3-texts": Shape(3, 64, 4, 3, 128, 4096, 6000, labels=3),
    "tiny-v1": Shape(1, 64, 4, 3, 128, 1024, 200),
}

TABLE = 512  # max_position_embeddings: v1 distinguishes distances up to here

# q and k of standard deviation g each, over the three terms and the scale 1/sqrt(3d): logits of g squared, about 2.
QUERY_KEY_GAIN = 2**0.5


def weight_scale(name, weight):
    """Returns mean and standard deviation of a random parameter."""
    if name.endswith("LayerNorm.weight"):
        return 1.0, 0.1
    if weight.dim() == 1:
        return 0.0, 0.05
    if "embeddings" in name:
        return 0.0, 1.0
    gain = QUERY_KEY_GAIN if any(part in name for part in ("query", "key", "in_proj", "pos_")) else 1.0
    return 0.0, gain / weight.shape[1] ** 0.5


def write_model(name, folder):
    import torch
    import transformers

    shape = SHAPES[name]
    config = {1: transformers.DebertaConfig, 3: transformers.DebertaV2Config}[shape.version]
    kind = transformers.AutoModelForSequenceClassification if shape.labels else transformers.AutoModel
    model = kind.from_config(config(**shape.fields()))
    torch.manual_seed(1)
    with torch.no_grad():
        for key, weight in model.named_parameters():
            mean, deviation = weight_scale(key, weight)
            weight.copy_(mean + deviation * torch.randn_like(weight))
        if shape.outliers[0]:
            enlarge_channels(model, shape)
    partial = Path(folder + ".part")
    model.save_pretrained(partial)
    for file in TOKENIZER if shape.labels else ():
        shutil.copy(DEMO / file, partial)
    partial.rename(folder)


def outlier_channels(shape):
    """Returns the channels that `synthetic:...,outliers=,outlier_size=` enlarges (core/load/synthetic.h)."""
    count = shape.outliers[0]
    return [(2 * k + 1) * shape.hidden // (2 * count) for k in range(count)]


def enlarge_channels(model, shape):
    """Enlarges a few channels of a layer's LayerNorms, and shrinks the weights that multiply them."""
    channels, size = outlier_channels(shape), shape.outliers[1]
    columns = ("query_proj.weight", "key_proj.weight", "value_proj.weight", "intermediate.dense.weight")
    for name, weight in model.named_parameters():
        if not name.startswith("encoder.layer."):
            continue
        if "LayerNorm." in name:
            weight[channels] *= size
        elif name.endswith(columns) and not name.startswith("encoder.layer.0.attention"):
            weight[:, channels] /= size


# ------------------------------------------------------------------------------------------------------------ PyTorch


def torch_model(folder, threads, dtype="float32", answer="last_hidden_state"):
    """Returns the encoder as a module (ids, mask) -> last hidden state, or a classifier whose answer is logits."""
    import torch
    import transformers

    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()
    torch.set_num_threads(threads)
    torch.set_num_interop_threads(1)
    kind = transformers.AutoModelForSequenceClassification if answer == "logits" else transformers.AutoModel
    model = kind.from_pretrained(folder, dtype=getattr(torch, dtype)).eval()

    class Answer(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.model = model

        def forward(self, input_ids, attention_mask):
            return getattr(self.model(input_ids=input_ids, attention_mask=attention_mask), answer)

    return Answer().eval()


# ------------------------------------------------------------------------------------------------------------ inputs


def vocabulary_of(folder):
    return json.loads(Path(folder, "config.json").read_text("utf-8"))["vocab_size"]


def write_input(folder, path, lengths):
    """Writes a padded batch and its last hidden state in float64, computed one sequence at a time, so that padding cannot matter."""
    import numpy
    import torch
    from safetensors.numpy import save_file

    with open(Path(folder, "config.json"), encoding="utf-8") as file:
        config = json.load(file)
    module = torch_model(folder, os.cpu_count() or 1, "float64")
    random = numpy.random.default_rng(lengths)
    ids = numpy.zeros((len(lengths), max(lengths)), dtype=numpy.int64)
    mask = numpy.zeros_like(ids)
    expected = numpy.zeros((*ids.shape, config["hidden_size"]))
    for row, length in enumerate(lengths):
        ids[row, :length] = random.integers(1, config["vocab_size"], length)
        mask[row, :length] = 1
        with torch.inference_mode():
            part = module(*(torch.from_numpy(x[row : row + 1, :length]) for x in (ids, mask)))
        expected[row, :length] = part[0].numpy()
    save_file({"input_ids": ids, "attention_mask": mask, EXPECTED: expected}, path + ".part")
    os.rename(path + ".part", path)


def errors_of(output, tensors, shape=None):
    """Of an output, over tokens that are not padding: the largest difference from float64, and the relative error, the norm of
    the differences over that of what was expected. Of a shape with outliers the second leaves them out: they would drown the
    other channels. Not a number if that is what came out."""
    import numpy

    kept = tensors["attention_mask"].astype(bool)
    expected = tensors[EXPECTED][kept]
    difference = output.astype(numpy.float64)[kept] - expected
    usual = numpy.ones(expected.shape[-1], dtype=bool)
    usual[outlier_channels(shape) if shape else []] = False
    norms = [float(numpy.linalg.norm(x[:, usual])) for x in (difference, expected)]
    return {"max_abs_difference": float(numpy.abs(difference).max()), "relative_error": norms[0] / norms[1]}


def padded_batch(lengths, random, vocabulary):
    import numpy

    mask = (numpy.arange(max(lengths)) < numpy.array(lengths)[:, None]).astype(numpy.int64)
    return mask * random.integers(1, vocabulary, mask.shape), mask


def bucketed_batches(lengths, size, vocabulary):
    """Returns documents of similar length together, each batch padded to its longest, as usual for engines that need rectangles."""
    import numpy

    random = numpy.random.default_rng(7)
    ordered = sorted(lengths)
    return [padded_batch(ordered[start : start + size], random, vocabulary) for start in range(0, len(ordered), size)]


# --------------------------------------------------------------------------------------------- texts to calibrate with


def drawn_batches(folder, _traced):
    """Returns texts like the measured ones, drawn with another seed."""
    import numpy

    random, vocabulary = numpy.random.default_rng(20), vocabulary_of(folder)
    return [padded_batch([CALIBRATION_TOKENS], random, vocabulary) for _ in range(CALIBRATION_TEXTS)]


def same_lengths(n):
    """Returns the length of each of some texts, fewer of long ones."""
    return [n] * max(FEWEST_TEXTS, min(CALIBRATION_TEXTS, CALIBRATION_TEXTS * CALIBRATION_TOKENS // n))


def lengths_up_to(longest):
    """Returns lengths whose logarithms are evenly apart."""
    shortest = min(FEWEST_TOKENS, longest)
    return [round(shortest * (longest / shortest) ** (k / (CALIBRATION_TEXTS - 1))) for k in range(CALIBRATION_TEXTS)]


def texts_of_a_book(lengths_for):
    """Sentences one after the other, in texts of such lengths. Their pieces are those of models/demo; a model that has fewer words gets
    the rest of the division by them, so that frequent words stay frequent."""

    def take(folder, n):
        import numpy
        import sentencepiece

        pieces, lengths = sentencepiece.SentencePieceProcessor(model_file=str(DEMO / "spm.model")), lengths_for(n)
        ids = numpy.concatenate(pieces.encode(BOOK.read_text("utf-8").splitlines())).astype(numpy.int64)
        ids = numpy.resize(1 + ids % (vocabulary_of(folder) - 1), sum(lengths))
        texts = [part[None] for part in numpy.split(ids, numpy.cumsum(lengths)[:-1])]
        return [(text, numpy.ones_like(text)) for text in texts]

    return take


# ----------------------------------------------------------------------------------------------------- streams of texts

STREAMS = {"reranker": 100, "zero-shot": 20, "batch-8": 8, "batch-32": 32}  # texts
SHORTEST, LONGEST, QUERY = 60, 250, 12  # tokens


@functools.cache
def words_of_book():
    """Returns the words, and the number of tokens of each."""
    import sentencepiece

    words = BOOK.read_text("utf-8").split()
    return words, [len(ids) for ids in sentencepiece.SentencePieceProcessor(model_file=str(DEMO / "spm.model")).encode(words)]


def lines_of(stream, seed):
    """Returns a query with each passage, a text with each label, or texts; the logarithm of a line's tokens is drawn uniformly."""
    draw, (words, costs) = Random(f"{stream} {seed}"), words_of_book()

    def passage(tokens):
        first = end = draw.randrange(len(words) - LONGEST)
        while costs[end] <= tokens:
            tokens, end = tokens - costs[end], end + 1
        return " ".join(words[first:end])

    def room():
        """Returns drawn tokens, without [CLS] and [SEP]."""
        return round(math.exp(draw.uniform(math.log(SHORTEST), math.log(LONGEST)))) - 2

    if stream == "reranker":
        query = passage(QUERY)
        return [f"{query}\t{passage(room() - QUERY - 1)}" for _ in range(STREAMS[stream])]
    if stream == "zero-shot":
        text = passage(room() - QUERY - 1)
        return [f"{text}\tThis text is about {word}." for word in draw.sample(sorted({w for w in words if w.isalpha()}), STREAMS[stream])]
    return [passage(room()) for _ in range(STREAMS[stream])]


# ------------------------------------------------------------------------------------------------------------ documents


def read_lengths(path):
    text = [line.split("#")[0] for line in path.read_text("utf-8").splitlines()]
    return tuple(int(word) for line in text for word in line.split())
