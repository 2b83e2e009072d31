#!/usr/bin/env python3
"""Looks for texts on which `deberta tokenize` and the libraries that the models were trained with disagree.

    tools/gates/differential_texts.py build/deberta [FOLDER...] [--train] [--texts 10000] [--seed 1]

FOLDER holds spm.model, or the vocab.json, merges.txt and tokenizer.json of a v1 model, or only the tokenizer.json that transformers 5
saves for v2 and v3 (reference: tokenizers, tested with 0.23.3); --train also makes the vocabularies of
tools/making/small_vocabularies.py. Random texts of every kind of character go through the program and through sentencepiece, with special
tokens cut out first, or through tokenizers; ids, tokens and both kinds of offsets must agree. Prints the first differing texts of each
folder; exit status 1 if there are any.

Variants of each folder are tried as well: do_lower_case and split_by_punct (the reference is transformers' last class on top of
sentencepiece, which was Python), and tokenizer.json alone. Needs sentencepiece 0.1.97 to 0.2.0 (later releases round otherwise, and so
break exact ties differently: pip install sentencepiece==0.2.0, or Debian's python3-sentencepiece), and tokenizers for v1 models; exit
status 77 without.
SPDX-License-Identifier: MIT
"""
import argparse
import itertools
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
import unicodedata

TOOLS = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, os.path.join(TOOLS, "making"))
try:
    import sentencepiece
    import small_vocabularies
except ImportError as error:
    print(f"skipped: {error}")
    sys.exit(77)
try:
    import tokenizers
except ImportError:
    tokenizers = None

SPECIALS = ["[PAD]", "[CLS]", "[SEP]", "[UNK]", "[MASK]"]
ALPHABETS = [
    " ", "  ", "abcdefghijklmnopqrstuvwxyz", "ABCDEFGHIJKLMNOPQRSTUVWXYZ", "0123456789", ".,;:!?'\"()[]{}<>-_/\\@#$%^&*+=|~`",
    "\t\n\r\v\f", "\u00a0\u1680\u2000\u2003\u200a\u2028\u2029\u202f\u205f\u3000\u0085", "\u200b\u200c\u200d\u200e\u200f\ufeff\u2060\u180e\u00ad",
    "\x00\x01\x07\x08\x1b\x1c\x1f\x7f\x80\x8f\x9f", "\u0300\u0301\u0302\u0308\u0327\u0338\u20dd\u093c\u05b0\u064b\u3099\u309a",
    "éèüßñçøåÅÉİıŁǅǆſﬁﬀ", "αβγδσςΣΟΔΪΐ", "абвгдйёЁІҐ", "אבגדשׁ\u05c1", "ابتثجلا\u0644\u0627ﷺ", "हिन्दीक्षत्र", "ไทยปีด", "中文字漢日本語一二三",
    "ｱｶﾞﾊﾟＡｂ１！　￥～", "한국어각ᄀ\u1161\u11a8", "😀👍🏽👨👩👧❤\ufe0f🇩🇪", "½⅓²³①Ⅷ㎏℃™…‰", "\ufffd\u2581\ue000\ufdd0\uffff\U0010ffff\U0001d400\U00020000",
]
WORDS = ["the", " the", "don't", "IT'S", "we'll", "http://", "<user>", "▁the▁", "of the", "🇩🇪", "👨\u200d👩\u200d👧", "\r\n", "\n\n \n", "....", "    "]


def random_character(chance):
    kind = chance.random()
    if kind < 0.75:
        return chance.choice(chance.choice(ALPHABETS))
    while True:
        code = chance.randrange(0x3000 if kind < 0.9 else 0x110000)
        if not 0xD800 <= code < 0xE000:
            return chr(code)


def random_text(chance, corpus):
    """Returns a text of corpus pieces, words, characters and runs in random order. Few are long, as only there sums of scores lost digits."""
    parts = []
    for _ in range(chance.choice([0, 1, 1, 2, 3, 5, 8, 20]) * (1 if chance.random() < 0.995 else 50)):
        kind = chance.random()
        if kind < 0.25:
            line = chance.choice(corpus)
            at = chance.randrange(len(line) + 1)
            parts.append(line[at:at + chance.randrange(40)])
        elif kind < 0.4:
            parts.append(chance.choice(WORDS))
        elif kind < 0.5:
            parts.append(chance.choice(["", " ", "  ", "\t", "\u00a0"]) + chance.choice(SPECIALS) + chance.choice(["", " ", "  ", "\n", "\u3000"]))
        elif kind < 0.55:
            parts.append(random_character(chance) * chance.choice([2, 3, 7, 70, 300]))
        elif kind < 0.75:
            alphabet = chance.choice(ALPHABETS)
            parts.append("".join(chance.choice(alphabet) for _ in range(chance.randrange(1, 9))))
        else:
            parts.append("".join(random_character(chance) for _ in range(chance.randrange(1, 12))))
    return "".join(parts)


# ---------------------------------------------------------------------------------------------------------- references


def byte_positions(text):
    return [0, *itertools.accumulate(len(c.encode()) for c in text)]


def split_specials(text):
    """Yields (chunk, where it begins, whether it is a special token)."""
    last = at = 0
    while at < len(text):
        found = next((s for s in SPECIALS if text.startswith(s, at)), None) if text[at] == "[" else None
        if found:
            if last < at:
                yield text[last:at], last, False
            yield found, at, True
            last = at = at + len(found)
        else:
            at += 1
    if last < len(text):
        yield text[last:], last, False


def is_punctuation(c):
    return 33 <= ord(c) <= 47 or 58 <= ord(c) <= 64 or 91 <= ord(c) <= 96 or 123 <= ord(c) <= 126 or unicodedata.category(c)[0] == "P"


def split_punctuation(chunk):
    last = 0
    for at, c in enumerate(chunk):
        if is_punctuation(c):
            if last < at:
                yield chunk[last:at], last
            yield c, at
            last = at + 1
    if last < len(chunk):
        yield chunk[last:], last


class Pieces:
    """Tokenizes the text between special tokens with sentencepiece."""

    def __init__(self, folder, lower=False, split=False):
        self.model = sentencepiece.SentencePieceProcessor(model_file=os.path.join(folder, "spm.model"))
        self.lower, self.split = lower, split

    def pieces_of(self, text):
        """Returns (id, piece, begin, end) with offsets in characters; later releases count bytes."""
        try:
            found = self.model.encode(text, out_type="immutable_proto")  # must live as long as its pieces
            return [(p.id, p.piece, p.begin, p.end) for p in found.pieces]
        except ValueError:
            character = {at: k for k, at in enumerate(byte_positions(text))}
            found = self.model.encode(text, return_type="proto")
            return [(p.id, p.piece, character[p.begin], character[p.end]) for p in found.pieces]

    def segment(self, text):
        for chunk, begin, special in split_specials(text):
            if special:
                yield SPECIALS.index(chunk) if chunk != "[MASK]" else self.model.get_piece_size(), chunk, begin, begin + len(chunk)
                continue
            if self.lower:  # character by character, as in transformers: there is no final sigma
                chunk = "".join(c.lower() for c in chunk)
            for part, at in split_punctuation(chunk) if self.split else [(chunk, 0)]:
                for id, piece, first, end in self.pieces_of(part):
                    yield id, piece, begin + at + first, begin + at + end

    def encode(self, text, pair):
        rows = {"ids": [1], "tokens": ["[CLS]"], "offsets": [None], "byte_offsets": [None], "type_ids": [0]}
        for kind, segment in enumerate([text] if pair is None else [text, pair]):
            bytes_at = byte_positions(segment)
            for id, token, begin, end in self.segment(segment):
                # If the lower case is longer than the text, offsets cannot be computed this way.
                spans = ([begin, end], [bytes_at[begin], bytes_at[end]]) if not self.lower else (None, None)
                for name, value in zip(rows, (id, token, *spans, kind)):
                    rows[name].append(value)
            for name, value in zip(rows, (2, "[SEP]", None, None, kind)):
                rows[name].append(value)
        return rows


class ByteLevel:
    """Runs tokenizers on the tokenizer.json of a v1 model; an empty second segment counts as a segment."""

    def __init__(self, folder):
        self.model = tokenizers.Tokenizer.from_file(os.path.join(folder, "tokenizer.json"))
        self.added = {t.content for t in self.model.get_added_tokens_decoder().values()}
        self.cls, self.sep = (self.model.token_to_id(t) for t in ("[CLS]", "[SEP]"))

    def encode(self, text, pair):
        rows = {"ids": [self.cls], "tokens": ["[CLS]"], "offsets": [None], "byte_offsets": [None], "type_ids": [0]}
        for kind, segment in enumerate([text] if pair is None else [text, pair]):
            bytes_at, at = byte_positions(segment), 0
            found = self.model.encode(segment, add_special_tokens=False)
            for id, span in zip(found.ids, found.offsets):
                token = self.model.id_to_token(id)
                end = bytes_at[span[1]] if token in self.added else at + len(token)
                begin = bytes_at[span[0]] if token in self.added else at
                for name, value in zip(rows, (id, token, list(span), [begin, end], kind)):
                    rows[name].append(value)
                at = end
            for name, value in zip(rows, (self.sep, "[SEP]", None, None, kind)):
                rows[name].append(value)
        return rows


class Metaspace:
    """Runs tokenizers on a tokenizer.json that transformers 5 saved: ids and types. Its offsets count the added U+2581 differently."""

    def __init__(self, folder):
        self.model = tokenizers.Tokenizer.from_file(os.path.join(folder, "tokenizer.json"))

    def encode(self, text, pair):
        found = self.model.encode(text) if pair is None else self.model.encode(text, pair)
        return {"ids": found.ids, "type_ids": found.type_ids}


# ---------------------------------------------------------------------------------------------------------- comparing


def tokenize(program, folder, texts, work):
    path = os.path.join(work, "texts.jsonl")
    with open(path, "w", encoding="utf-8") as file:
        for text, pair in texts:
            file.write(json.dumps({"text": text} if pair is None else {"text": text, "pair": pair}) + "\n")
    run = subprocess.run([program, "tokenize", folder, "--file", path, "--json", "-q"], capture_output=True)
    if run.returncode != 0:
        sys.exit(f"{folder}: exit status {run.returncode}: {run.stderr.decode()}")
    return [json.loads(line) for line in run.stdout.splitlines()]


def compare(name, program, folder, reference, texts, work, show=3):
    different = 0
    for (text, pair), ours in zip(texts, tokenize(program, folder, texts, work), strict=True):
        expected = reference.encode(text, pair)
        fields = [f for f in expected if expected[f] != ours[f] and not (f.endswith("offsets") and getattr(reference, "lower", False))]
        different += bool(fields)
        if fields and different <= show:
            print(f"{name}: {', '.join(fields)} of {ascii(text)}, {ascii(pair)}\n  expected {ascii(expected[fields[0]])}\n"
                  f"  found    {ascii(ours[fields[0]])}")
    print(f"{name}: {len(texts)} texts, {different} differ", flush=True)
    return different


def add_tokens(path):
    """Adds every combination of the flags that decide how much white space a token includes."""
    with open(path, encoding="utf-8") as file:
        root = json.load(file)
    for content, left, right, normalized in (("<user>", True, True, False), ("don't", False, True, False), ("http", True, False, True),
                                             ("http://", False, True, True), ("....", False, False, False), ("of the", True, False, False)):
        root["added_tokens"].append({"id": 1 + max(t["id"] for t in root["added_tokens"]), "content": content, "lstrip": left,
                                     "rstrip": right, "normalized": normalized, "single_word": False, "special": left != right})
    with open(path, "w", encoding="utf-8") as file:
        json.dump(root, file)


def variants(folder, work):
    """Yields (name, a folder for the program, a reference)."""
    name = os.path.basename(folder.rstrip("/"))

    def copy(files, settings=None):
        target = tempfile.mkdtemp(dir=work)
        for file in files:
            shutil.copy(os.path.join(folder, file), target)
        if settings:
            with open(os.path.join(target, "tokenizer_config.json"), "w", encoding="utf-8") as file:
                json.dump(settings, file)
        return target

    has = lambda file: os.path.exists(os.path.join(folder, file))
    if has("spm.model"):
        yield name, copy(["spm.model"]), Pieces(folder)
        yield f"{name}, lower case", copy(["spm.model"], {"do_lower_case": True}), Pieces(folder, lower=True)
        yield f"{name}, punctuation", copy(["spm.model"], {"split_by_punct": True}), Pieces(folder, split=True)
        if has("tokenizer.json"):
            yield f"{name}, tokenizer.json", copy(["tokenizer.json"]), Pieces(folder)
    elif has("tokenizer.json") and not has("vocab.json") and tokenizers:
        yield name, copy(["tokenizer.json"]), Metaspace(folder)
    elif not tokenizers:
        print(f"{name}: skipped: tokenizers is not installed")
    else:
        yield name, copy(["vocab.json", "merges.txt"]), ByteLevel(folder)
        yield f"{name}, tokenizer.json", copy(["tokenizer.json"]), ByteLevel(folder)
        target = copy(["tokenizer.json"])
        add_tokens(os.path.join(target, "tokenizer.json"))
        yield f"{name}, added tokens", target, ByteLevel(target)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("program")
    parser.add_argument("folders", nargs="*")
    parser.add_argument("--train", action="store_true", help="also small vocabularies of every kind, made on the spot")
    parser.add_argument("--texts", type=int, default=10000, help="how many for each folder and variant")
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    with open(os.path.join(TOOLS, "..", "README.md"), encoding="utf-8") as file:
        corpus = file.read().split("\n\n")
    different = total = 0
    with tempfile.TemporaryDirectory() as work:
        trained = small_vocabularies.train(work) if arguments.train else []
        for folder in itertools.chain(arguments.folders, trained):
            for name, target, reference in variants(folder, work):
                chance = random.Random(f"{arguments.seed} {name}")
                texts = [(random_text(chance, corpus), random_text(chance, corpus) if chance.random() < 0.1 else None)
                         for _ in range(arguments.texts)]
                different += compare(name, arguments.program, target, reference, texts, work)
                total += len(texts)
    print(f"{total - different} passed, {different} failed, 0 skipped")
    return 1 if different else 0


if __name__ == "__main__":
    sys.exit(main())
