#!/usr/bin/env python3
"""Train, evaluate and export the small models in models/: a DeBERTa v3 and its BERT-style twin.

    train_demo.py tokenizer                  Unigram model with DeBERTa's conventions
    train_demo.py train [--twin]             masked LM through the Enhanced Mask Decoder + book classifier
    train_demo.py evaluate FOLDER            the numbers that the model cards quote
    train_demo.py export [--twin] FOLDER     F16 safetensors, configuration, tokenizer, card
    train_demo.py check [FOLDER]             the lean implementation against transformers

Nothing here is needed to run the models. Needs torch, numpy, sentencepiece, safetensors; check also transformers.
A batch is a function of (seed, step) and training runs on one thread, so a stopped run that resumes from its
checkpoint sees what an uninterrupted run would have seen.

SPDX-License-Identifier: MIT
"""

import argparse
import os
import shutil
import time
from pathlib import Path

import numpy as np
import sentencepiece
import torch
import torch.nn.functional as F

from lean_deberta import LeanDeberta

PIECES, TABLE_ROWS = 5990, 6000
CLS, SEP, MASK = 1, 2, PIECES
TOKENS_PER_STEP = 6144
STEPS, WARM_UP, PEAK_RATE, WEIGHT_DECAY = 6000, 300, 1.5e-3, 0.05
BOOK_WEIGHT = 0.1
HELD_OUT_EVERY = 20

DEBERTA = {
    "model_type": "deberta-v2", "architectures": ["DebertaV2ForMaskedLM"], "legacy": False,
    "vocab_size": TABLE_ROWS, "hidden_size": 192, "num_hidden_layers": 5, "num_attention_heads": 3,
    "intermediate_size": 768, "hidden_act": "gelu", "layer_norm_eps": 1e-7, "initializer_range": 0.02,
    "hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0,
    "max_position_embeddings": 512, "type_vocab_size": 0, "pad_token_id": 0, "position_biased_input": False,
    "relative_attention": True, "max_relative_positions": -1, "position_buckets": 32, "norm_rel_ebd": "layer_norm",
    "share_att_key": True, "pos_att_type": "p2c|c2p",
    "pooler_hidden_size": 192, "pooler_dropout": 0, "pooler_hidden_act": "gelu", "tie_word_embeddings": True,
}
TWIN = {key: value for key, value in DEBERTA.items()
        if key not in ("max_relative_positions", "position_buckets", "norm_rel_ebd", "share_att_key", "pos_att_type")}
TWIN |= {"position_biased_input": True, "relative_attention": False, "pos_att_type": []}


# ------------------------------------------------------------------------------------------------ text


def train_tokenizer(corpus, state):
    state.mkdir(parents=True, exist_ok=True)
    sentencepiece.SentencePieceTrainer.train(
        input=str(corpus / "train.txt"), model_prefix=str(state / "spm"), model_type="unigram", vocab_size=PIECES,
        character_coverage=0.9999, normalization_rule_name="nmt_nfkc", max_sentence_length=16384,
        input_sentence_size=0, num_threads=2, minloglevel=1,
        pad_id=0, bos_id=CLS, eos_id=SEP, unk_id=3,
        pad_piece="[PAD]", bos_piece="[CLS]", eos_piece="[SEP]", unk_piece="[UNK]")


def book_titles(corpus):
    """(title, number of paragraphs) of the books of train.txt, in its order."""
    rows = [line.strip("|\n ").split("|") for line in open(corpus / "README.md", encoding="utf-8") if "train.txt |" in line]
    return [(row[1].strip(), int(row[2])) for row in rows]


class Corpus:
    """train.txt as one token stream per book with [SEP] between paragraphs. Every 20th paragraph is held out of
    everything, so that the classifier can be judged on paragraphs that no stage has seen."""

    def __init__(self, folder, pieces):
        paragraphs = pieces.encode((folder / "train.txt").read_text(encoding="utf-8").splitlines())
        self.titles, self.streams, self.starts, self.held_out = [], [], [], []
        first = 0
        for book, (title, count) in enumerate(book_titles(folder)):
            kept = []
            for index in range(first, first + count):
                if index % HELD_OUT_EVERY == 7:
                    self.held_out.append((book, paragraphs[index]))
                else:
                    kept.append(paragraphs[index])
            first += count
            self.titles.append(title)
            self.streams.append(np.concatenate([np.array(p + [SEP], np.int32) for p in kept]))
            self.starts.append(np.cumsum([0] + [len(p) + 1 for p in kept[:-1]]))
        assert first == len(paragraphs), "README.md of the corpus does not count the paragraphs of train.txt"
        sizes = np.array([len(s) for s in self.streams], float)
        self.share = sizes / sizes.sum()

    def batch(self, seed, step):
        """Short, usual and long sequences take turns, so that short inputs are no surprise and every row of the
        position and distance tables is trained. Half of the sequences begin with a paragraph."""
        random = np.random.Generator(np.random.PCG64([seed, step]))
        n = 512 if step % 16 == 15 else 32 if step % 4 == 3 else 128
        count = TOKENS_PER_STEP // n
        ids = np.full((count, n), SEP, np.int64)
        ids[:, 0] = CLS
        books = random.choice(len(self.streams), count, p=self.share)
        for line, book in enumerate(books):
            stream, starts = self.streams[book], self.starts[book]
            at = random.integers(0, len(stream) - n)
            if random.random() < 0.5:
                at = starts[np.searchsorted(starts, at, "right") - 1]
            ids[line, 1:-1] = stream[at : at + n - 2]
        rows = masked_rows(ids, n // 4, random)
        labels = np.take_along_axis(ids, rows, 1)
        np.put_along_axis(ids, rows, MASK, 1)
        return tuple(torch.from_numpy(x) for x in (ids, rows, labels, books.astype(np.int64)))


def masked_rows(ids, count, random):
    """`count` positions a sequence, never [CLS] or [SEP], ascending."""
    draw = random.random(ids.shape)
    draw[(ids == CLS) | (ids == SEP)] = 2
    return np.sort(np.argpartition(draw, count, 1)[:, :count], 1)


def validation_sequences(folder, pieces, n=128):
    """valid.txt as one stream with [SEP] between paragraphs, cut into sequences of n tokens; 15 % masked, seed 15."""
    paragraphs = pieces.encode((folder / "valid.txt").read_text(encoding="utf-8").splitlines())
    stream = np.concatenate([np.array(p + [SEP], np.int64) for p in paragraphs])
    count = len(stream) // (n - 2)
    ids = np.full((count, n), SEP, np.int64)
    ids[:, 0] = CLS
    ids[:, 1:-1] = stream[: count * (n - 2)].reshape(count, n - 2)
    rows = masked_rows(ids, round(0.15 * (n - 2)), np.random.Generator(np.random.PCG64(15)))
    labels = np.take_along_axis(ids, rows, 1)
    np.put_along_axis(ids, rows, MASK, 1)
    return tuple(torch.from_numpy(x) for x in (ids, rows, labels))


# ------------------------------------------------------------------------------------------------ training


def learning_rate(step):
    return PEAK_RATE * min((step + 1) / WARM_UP, (STEPS - step) / (STEPS - WARM_UP))


def make_optimizer(model):
    """Weight decay only for matrices of linear layers and the word table, as usual."""
    decayed = [p for name, p in model.named_parameters()
               if p.dim() == 2 and "rel_embeddings" not in name and "position_embeddings" not in name]
    kept = {id(p) for p in decayed}
    rest = [p for p in model.parameters() if id(p) not in kept]
    groups = [{"params": decayed, "weight_decay": WEIGHT_DECAY}, {"params": rest, "weight_decay": 0.0}]
    return torch.optim.AdamW(groups, lr=PEAK_RATE, betas=(0.9, 0.98), eps=1e-6, fused=True)


def save_checkpoint(path, model, optimizer, step):
    partial = path.with_suffix(".part")
    torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict(), "step": step}, partial)
    os.replace(partial, path)


def train(arguments):
    torch.set_num_threads(1)
    torch.manual_seed(arguments.seed)
    pieces = sentencepiece.SentencePieceProcessor(model_file=str(arguments.state / "spm.model"))
    corpus = Corpus(arguments.corpus, pieces)
    model = LeanDeberta(TWIN if arguments.twin else DEBERTA, len(corpus.titles))
    optimizer = make_optimizer(model)
    path, step = arguments.state / ("twin.pt" if arguments.twin else "demo.pt"), 0
    if path.exists():
        saved = torch.load(path, weights_only=True)
        model.load_state_dict(saved["model"])
        optimizer.load_state_dict(saved["optimizer"])
        step = saved["step"]
    probe = [part[:96] for part in validation_sequences(arguments.corpus, pieces)]
    sums, wall, cpu = np.zeros(3), time.time(), time.process_time()
    while step < STEPS:
        ids, rows, labels, books = corpus.batch(arguments.seed, step)
        decoded, first = model.decode(ids, rows, torch.bfloat16)
        logits, classes = model.vocabulary_logits(decoded), model.class_logits(first)
        loss = F.cross_entropy(logits.flatten(0, 1), labels.flatten())
        book_loss = F.cross_entropy(classes, books)
        (loss + BOOK_WEIGHT * book_loss).backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        for group in optimizer.param_groups:
            group["lr"] = learning_rate(step)
        optimizer.step()
        optimizer.zero_grad()
        step += 1
        sums += [loss.item(), book_loss.item(), (logits.argmax(-1) == labels).float().mean().item()]
        if step % 48 == 0:
            mean, sums = sums / 48, np.zeros(3)
            print(f"step {step} loss {mean[0]:.3f} top-1 {mean[2]:.3f} book {mean[1]:.3f} "
                  f"wall {time.time() - wall:.0f} s cpu {time.process_time() - cpu:.0f} s", flush=True)
        if step % 192 == 0 or step == STEPS:
            save_checkpoint(path, model, optimizer, step)
        if step % 480 == 0 or step == STEPS:
            loss, top1 = score_decoder(model, probe)
            print(f"step {step} valid loss {loss:.3f} top-1 {top1:.4f}", flush=True)


def score_decoder(model, sequences):
    """Mean loss and top-1 of the masked positions as the model was trained to predict them."""
    losses, hits = [], []
    with torch.no_grad():
        for ids, rows, labels in zip(*(part.split(32) for part in sequences)):
            logits = model.vocabulary_logits(model.decode(ids, rows)[0])
            losses.append(F.cross_entropy(logits.flatten(0, 1), labels.flatten(), reduction="none"))
            hits.append((logits.argmax(-1) == labels).flatten())
    return torch.cat(losses).mean().item(), torch.cat(hits).float().mean().item()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("command", choices=["tokenizer", "train", "evaluate", "export", "check"])
    parser.add_argument("folder", nargs="?", type=Path)
    parser.add_argument("--twin", action="store_true", help="absolute positions and plain attention")
    parser.add_argument("--corpus", type=Path, default=Path("corpus"), help="folder of train.txt and valid.txt")
    parser.add_argument("--state", type=Path, default=Path("train-state"), help="checkpoints and spm.model")
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    if arguments.command == "tokenizer":
        train_tokenizer(arguments.corpus, arguments.state)
    elif arguments.command == "train":
        train(arguments)


if __name__ == "__main__":
    main()
