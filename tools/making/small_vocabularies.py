"""Small SentencePiece vocabularies for tools/gates/differential_texts.py: trained on the spot, then changed where the trainer never goes.

Scores that are whole numbers make ties, scores that nearly agree make sums that differ in their last bits, unused and user-defined
pieces are drawn at random. SPDX-License-Identifier: MIT
"""
import glob
import io
import json
import os
import random
import re
import struct

import sentencepiece

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
NORMAL, USER_DEFINED, UNUSED = 1, 4, 5
SPECIALS = {"pad_id": 0, "bos_id": 1, "eos_id": 2, "unk_id": 3, "pad_piece": "[PAD]", "bos_piece": "[CLS]", "eos_piece": "[SEP]",
            "unk_piece": "[UNK]"}


def training_lines():
    """Returns documents in English, and the texts of the golden tokenizers in some thirty languages."""
    lines = []
    for path in sorted(glob.glob(os.path.join(ROOT, "docs", "*.md"))):
        with open(path, encoding="utf-8") as file:
            lines += [" ".join(part.split())[:2000] for part in re.split(r"\n\s*\n", file.read()) if part.strip()]
    for path in sorted(glob.glob(os.path.join(ROOT, "tests", "golden", "tokenizers", "spm-*", "*.jsonl"))):
        with open(path, encoding="utf-8") as file:
            lines += [json.loads(line)["text"][:2000].replace("\0", " ") for line in file] * 2
    return lines


# ------------------------------------------------------------------------------------------- the few fields of protobuf needed


def read_varint(data, at):
    value = shift = 0
    while True:
        value |= (data[at] & 127) << shift
        shift, at = shift + 7, at + 1
        if data[at - 1] < 128:
            return value, at


def write_varint(value):
    out = b""
    while value >= 128:
        out, value = out + bytes([value & 127 | 128]), value >> 7
    return out + bytes([value])


def fields(data):
    """Yields (number, wire type, value) of each field; the wire types are 0 varint, 2 block, 5 four bytes."""
    at = 0
    while at < len(data):
        tag, at = read_varint(data, at)
        if tag & 7 == 0:
            value, at = read_varint(data, at)
        else:
            size, at = read_varint(data, at) if tag & 7 == 2 else (4, at)
            value, at = data[at:at + size], at + size
        yield tag >> 3, tag & 7, value


def block(number, data):
    return write_varint(number << 3 | 2) + write_varint(len(data)) + data


def changed(model, change):
    """Returns the model with change(text, score, kind) -> (score, kind) applied to all text pieces."""
    out = b""
    for number, wire, value in fields(model):
        if number == 1:
            piece = {n: v for n, _, v in fields(value)}
            score, kind = struct.unpack("<f", piece[2])[0], piece.get(3, NORMAL)
            if kind == NORMAL:
                score, kind = change(piece[1].decode(), score, kind)
            value = block(1, piece[1]) + b"\x15" + struct.pack("<f", score) + b"\x18" + write_varint(kind)
        out += block(number, value) if wire == 2 else write_varint(number << 3) + write_varint(value)
    return out


def rounded_to(step):
    return lambda text, score, kind: (round(score / step) * step, kind)


def nearly(base, spread):
    chance = random.Random(1)
    return lambda text, score, kind: (base + spread * chance.random(), kind)


def of_other_kinds(*kinds, share=0.25):
    """Makes some longer pieces unused or user-defined."""
    chance = random.Random(2)
    return lambda text, score, kind: (score, chance.choice(kinds) if len(text) > 1 and chance.random() < share else kind)


def shifted(by):
    return lambda text, score, kind: (score + by, kind)


def both(first, second):
    return lambda text, score, kind: second(text, *first(text, score, kind))


def same(text, score, kind):
    return score, kind


# ------------------------------------------------------------------------------------------------------------- vocabularies

USER = ["<user>", "http", "\u2581the\u2581", "😀", "aa", "a"]
RAW = {"normalization_rule_name": "identity", "add_dummy_prefix": False, "remove_extra_whitespaces": False, "split_by_whitespace": False}
VOCABULARIES = {  # name: (size, options of the trainer, change of the pieces)
    "unigram": (500, {}, same),
    "unigram-large": (6000, {}, same),
    "unigram-ties": (3000, {}, rounded_to(1)),
    "unigram-fewer-ties": (1500, {"user_defined_symbols": USER}, rounded_to(0.25)),
    "unigram-close": (2000, {}, nearly(-9, 1e-5)),
    "unigram-very-close": (1000, {}, nearly(-13, 3e-6)),
    "unigram-positive": (2000, {"user_defined_symbols": USER}, shifted(20)),
    "unigram-bytes": (1500, {"byte_fallback": True}, same),
    "unigram-raw": (2000, {**RAW, "max_sentencepiece_length": 40}, same),
    "unigram-suffix": (1000, {"treat_whitespace_as_suffix": True}, same),
    "unigram-kinds": (3000, {}, of_other_kinds(UNUSED, USER_DEFINED)),
    "unigram-kinds-ties": (1000, RAW, both(of_other_kinds(UNUSED), rounded_to(1))),
    "bpe": (500, {"model_type": "bpe"}, same),
    "bpe-large": (5000, {"model_type": "bpe"}, same),
    "bpe-ties": (2000, {"model_type": "bpe"}, lambda text, score, kind: (-float(int(-score) // 50), kind)),
    "bpe-close": (1000, {"model_type": "bpe"}, nearly(-1, 1e-6)),
    "bpe-signs": (1000, {"model_type": "bpe"}, lambda text, score, kind: (float(int(score) % 5 - 2) * 0.5 * (-1) ** len(text), kind)),
    "bpe-bytes": (1500, {"model_type": "bpe", "byte_fallback": True}, same),
    "bpe-unused": (2000, {"model_type": "bpe"}, of_other_kinds(UNUSED, share=0.4)),
    "bpe-user": (1000, {"model_type": "bpe", "user_defined_symbols": USER}, same),
    "bpe-raw-kinds": (2000, {"model_type": "bpe", **RAW, "max_sentencepiece_length": 40}, of_other_kinds(UNUSED, USER_DEFINED)),
}


def train(folder):
    """Yields folders, one for each vocabulary, with its spm.model."""
    lines = training_lines()
    for name, (size, told, change) in VOCABULARIES.items():
        told = {"model_type": "unigram", "normalization_rule_name": "nmt_nfkc", "character_coverage": 0.98, "hard_vocab_limit": False,
                "num_threads": 1, "minloglevel": 2, "vocab_size": size, **SPECIALS, **told}
        if told["model_type"] == "bpe":
            told.pop("hard_vocab_limit")
        written = io.BytesIO()
        sentencepiece.SentencePieceTrainer.train(sentence_iterator=iter(lines), model_writer=written, **told)
        target = os.path.join(folder, name)
        os.makedirs(target)
        with open(os.path.join(target, "spm.model"), "wb") as file:
            file.write(changed(written.getvalue(), change))
        yield target
