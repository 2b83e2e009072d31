#!/usr/bin/env python3
"""Train, evaluate and export the small models in models/: a DeBERTa v3 and its BERT-style twin.

    train_demo.py tokenizer                  Unigram model with DeBERTa's conventions
    train_demo.py train [--twin]             masked LM through the Enhanced Mask Decoder + book classifier
    train_demo.py evaluate FOLDER            the numbers that the model cards quote
    train_demo.py export [--twin] FOLDER     F16 safetensors, configuration, tokenizer
    train_demo.py check [FOLDER]             the lean implementation against transformers

Folders: --corpus holds what make_corpus.py makes, --state the checkpoints.
Nothing here is needed to run the models. Needs torch, numpy, sentencepiece, safetensors; check also transformers, protobuf.
A batch is a function of (seed, step) and training runs on one thread, so a stopped run that resumes from its
checkpoint sees what an uninterrupted run would have seen.

SPDX-License-Identifier: MIT
"""

import argparse
import json
import math
import os
import shutil
import sys
import time
from pathlib import Path

import numpy as np
import safetensors.torch
import sentencepiece
import torch
import torch.nn.functional as F

TOOLS = Path(__file__).resolve().parents[1]
sys.path += [str(TOOLS)]
from make_corpus import books_of, is_held_out, table_of, texts_of  # noqa: E402
from rivals.lean_deberta import LeanDeberta  # noqa: E402

PIECES, TABLE_ROWS = 5990, 6000
CLS, SEP, MASK = 1, 2, PIECES
TOKENS_PER_STEP = 6144
# (step, learning rate) with linear interpolation: warm-up, slow decay, faster decay to zero.
RATES = ((-1, 0.0), (299, 1.5e-3), (1920, 1.0737e-3), (4032, 0.0))
WEIGHT_DECAY = 0.05
# The twin diverges at the full rate, and needs short sequences (until step, length) to find out about neighbours. On the
# plateau of bare frequencies steps count, not tokens: so it takes three times as many, of a third of the tokens.
TWIN_RATE, TWIN_TOKENS_PER_STEP = 2 / 3, 2048
TWIN_STEPS = RATES[-1][0] * TOKENS_PER_STEP // TWIN_TOKENS_PER_STEP
TWIN_LENGTHS = ((600, 16), (1200, 32))
# The first steps see nothing but [MASK], which learns faster; the rest see BERT's mixture, so that the last layer
# also meets queries that show their own token.
MIXED_FROM = 1920
BOOK_WEIGHT = 0.1

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
    """Reads and writes through Python, because the trainer else records the paths of files in the model."""
    state.mkdir(parents=True, exist_ok=True)
    with (corpus / "train.txt").open(encoding="utf-8") as text, (state / "spm.model").open("wb") as model:
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=(line.rstrip("\n") for line in text), model_writer=model, model_type="unigram",
            vocab_size=PIECES, character_coverage=0.9999, normalization_rule_name="nmt_nfkc", max_sentence_length=16384,
            input_sentence_size=0, num_threads=2, minloglevel=1, pad_id=0, bos_id=CLS, eos_id=SEP, unk_id=3,
            pad_piece="[PAD]", bos_piece="[CLS]", eos_piece="[SEP]", unk_piece="[UNK]")


def titles_of_labels():
    """Returns {number of a book: its label in the classifier}; README.md of a corpus may have a longer title."""
    return {row.ebook: row.title for row in table_of()[0]}


class Corpus:
    """train.txt as one token stream per book with [SEP] between paragraphs. Every 20th paragraph is held out of
    everything, so that the classifier can be judged on paragraphs that no stage has seen."""

    def __init__(self, folder, pieces):
        self.titles, self.streams, self.starts, self.held_out = [], [], [], []
        titles, first = titles_of_labels(), 0
        for number, (book, paragraphs) in enumerate(texts_of(folder, "train.txt")):
            kept = []
            for index, paragraph in enumerate(pieces.encode(paragraphs), first):
                if is_held_out(index):
                    self.held_out.append((number, paragraph))
                else:
                    kept.append(paragraph)
            first += len(paragraphs)
            self.titles.append(titles[book.ebook])
            self.streams.append(np.concatenate([np.array(p + [SEP], np.int32) for p in kept]))
            self.starts.append(np.cumsum([0] + [len(p) + 1 for p in kept[:-1]]))
        sizes = np.array([len(s) for s in self.streams], float)
        self.share = sizes / sizes.sum()

    def batch(self, seed, step, tokens, n):
        """Returns sequences of n tokens, each within one book, half of them from the beginning of a paragraph."""
        random = np.random.Generator(np.random.PCG64([seed, step]))
        count = tokens // n
        ids = np.full((count, n), SEP, np.int64)
        ids[:, 0] = CLS
        books = random.choice(len(self.streams), count, p=self.share)
        for line, book in enumerate(books):
            stream, starts = self.streams[book], self.starts[book]
            at = random.integers(0, len(stream) - n)
            if random.random() < 0.5:
                at = starts[np.searchsorted(starts, at, "right") - 1]
            ids[line, 1:-1] = stream[at : at + n - 2]
        return *mask_sequences(ids, n // 4, random, step >= MIXED_FROM), torch.from_numpy(books)


def mask_sequences(ids, count, random, mixed):
    """Hides `count` pieces a sequence, never [CLS] or [SEP]: all of them behind [MASK] or, mixed, as BERT does,
    80 % behind [MASK], 10 % behind a random piece, 10 % not at all. Returns (ids, rows ascending, labels)."""
    draw = random.random(ids.shape)
    draw[(ids == CLS) | (ids == SEP)] = 2
    rows = np.sort(np.argpartition(draw, count, 1)[:, :count], 1)
    labels = np.take_along_axis(ids, rows, 1)
    shown = np.full(rows.shape, MASK)
    if mixed:
        dice = random.random(rows.shape)
        shown = np.where(dice < 0.8, MASK, np.where(dice < 0.9, random.integers(4, PIECES, rows.shape), labels))
    np.put_along_axis(ids, rows, shown, 1)
    return tuple(torch.from_numpy(x) for x in (ids, rows, labels))


def validation_sequences(folder, pieces, mixed, n=128):
    """Returns valid.txt as one stream with [SEP] between paragraphs, cut into sequences of n tokens; 15 % masked, seed 15."""
    paragraphs = pieces.encode((folder / "valid.txt").read_text(encoding="utf-8").splitlines())
    stream = np.concatenate([np.array(p + [SEP], np.int64) for p in paragraphs])
    count = len(stream) // (n - 2)
    ids = np.full((count, n), SEP, np.int64)
    ids[:, 0] = CLS
    ids[:, 1:-1] = stream[: count * (n - 2)].reshape(count, n - 2)
    return mask_sequences(ids, round(0.15 * (n - 2)), np.random.Generator(np.random.PCG64(15)), mixed)


# ------------------------------------------------------------------------------------------------ training


def sequence_length(step, twin):
    """Short, usual and long sequences take turns, so that short inputs are no surprise and every row of the
    position and distance tables is trained."""
    for until, n in TWIN_LENGTHS if twin else ():
        if step < until:
            return n
    return 512 if step % 16 == 15 else 32 if step % 4 == 3 else 128


def make_optimizer(model):
    """Makes an optimizer with weight decay for matrices of linear layers and the word table only, as usual."""
    decayed = [p for name, p in model.named_parameters()
               if p.dim() == 2 and "rel_embeddings" not in name and "position_embeddings" not in name]
    kept = {id(p) for p in decayed}
    rest = [p for p in model.parameters() if id(p) not in kept]
    groups = [{"params": decayed, "weight_decay": WEIGHT_DECAY}, {"params": rest, "weight_decay": 0.0}]
    return torch.optim.AdamW(groups, betas=(0.9, 0.98), eps=1e-6, fused=True)


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
    probe = [part[:96] for part in validation_sequences(arguments.corpus, pieces, False)]
    tokens = TWIN_TOKENS_PER_STEP if arguments.twin else TOKENS_PER_STEP
    rates = RATES[:-1] + ((arguments.steps, 0.0),)
    sums, wall, cpu = np.zeros(3), time.time(), time.process_time()
    while step < arguments.steps:
        ids, rows, labels, books = corpus.batch(arguments.seed, step, tokens, sequence_length(step, arguments.twin))
        decoded, first = model.decode(ids, rows, torch.bfloat16)
        logits, classes = model.vocabulary_logits(decoded), model.class_logits(first)
        loss = F.cross_entropy(logits.flatten(0, 1), labels.flatten())
        book_loss = F.cross_entropy(classes, books)
        (loss + BOOK_WEIGHT * book_loss).backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        rate = float(np.interp(step, *zip(*rates))) * (TWIN_RATE if arguments.twin else 1)
        for group in optimizer.param_groups:
            group["lr"] = rate
        optimizer.step()
        optimizer.zero_grad()
        step += 1
        sums += [loss.item(), book_loss.item(), (logits.argmax(-1) == labels).float().mean().item()]
        if step % 48 == 0:
            mean, sums = sums / 48, np.zeros(3)
            print(f"step {step} loss {mean[0]:.3f} top-1 {mean[2]:.3f} book {mean[1]:.3f} "
                  f"wall {time.time() - wall:.0f} s cpu {time.process_time() - cpu:.0f} s", flush=True)
        if step % 192 == 0 or step == arguments.steps:
            save_checkpoint(path, model, optimizer, step)
        if step % 480 == 0 or step == arguments.steps:
            with torch.no_grad():
                print(decoder_score(model, [probe]).row(f"step {step}, part of valid.txt"), flush=True)


# ------------------------------------------------------------------------------------------------ model folders


def export(arguments):
    """The trained checkpoint as a model folder. Row 0 of the distance table stands for distances of 512 and more to
    the right, which no training sequence holds; transformers would read it beyond 512 tokens, so it gets the
    values of its trained neighbour, the row that Microsoft's code reads there."""
    base, folder = TWIN if arguments.twin else DEBERTA, arguments.folder
    titles = [titles_of_labels()[book.ebook] for book in books_of(arguments.corpus)]
    weights = torch.load(arguments.state / ("twin.pt" if arguments.twin else "demo.pt"), weights_only=True)["model"]
    if not arguments.twin:
        table = weights["deberta.encoder.rel_embeddings.weight"]
        table[0] = table[1]
    folder.mkdir(parents=True, exist_ok=True)
    halves = {name: tensor.half().contiguous() for name, tensor in weights.items()}
    safetensors.torch.save_file(halves, folder / "model.safetensors", metadata={"format": "pt"})
    config = base | {"dtype": "float16", "id2label": {str(i): title for i, title in enumerate(titles)},
                     "label2id": {title: i for i, title in enumerate(titles)}}
    tokens = {"cls_token": "[CLS]", "sep_token": "[SEP]", "pad_token": "[PAD]", "unk_token": "[UNK]",
              "mask_token": "[MASK]"}
    tokenizer = {"tokenizer_class": "DebertaV2Tokenizer", "do_lower_case": False, "split_by_punct": False,
                 "vocab_type": "spm", "model_max_length": base["max_position_embeddings"]} | tokens
    for name, content in (("config.json", config), ("tokenizer_config.json", tokenizer),
                          ("added_tokens.json", {"[MASK]": MASK})):
        (folder / name).write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")
    shutil.copyfile(arguments.state / "spm.model", folder / "spm.model")


def load_folder(folder):
    config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    model = LeanDeberta(config, len(config["id2label"]))
    model.load_state_dict({n: t.float() for n, t in safetensors.torch.load_file(folder / "model.safetensors").items()})
    return model, sentencepiece.SentencePieceProcessor(model_file=str(folder / "spm.model"))


# ------------------------------------------------------------------------------------------------ evaluation


class Score:
    """Accumulates mean cross entropy and top-1 accuracy."""

    def __init__(self):
        self.loss, self.hits, self.count = 0.0, 0, 0

    def add(self, logits, labels):
        logits, labels = logits.reshape(-1, logits.shape[-1]), labels.reshape(-1)
        self.loss += F.cross_entropy(logits, labels, reduction="sum").item()
        self.hits += (logits.argmax(-1) == labels).sum().item()
        self.count += len(labels)

    def row(self, name):
        loss = self.loss / self.count
        return f"| {name} | {100 * self.hits / self.count:.1f} % | {loss:.3f} | {math.exp(loss):.1f} |"


def decoder_score(model, sequences):
    score = Score()
    for ids, rows, labels in sequences:
        score.add(model.vocabulary_logits(model.decode(ids, rows)[0]), labels)
    return score


def plain_score(model, sequences):
    """Returns the score of the same head on H[L], as in transformers."""
    score = Score()
    for ids, rows, labels in sequences:
        states = model.hidden_states(ids)[-1]
        score.add(model.vocabulary_logits(states.gather(1, rows[..., None].expand(-1, -1, states.shape[-1]))), labels)
    return score


def paragraph_sequences(folder, pieces):
    """Yields every paragraph of valid.txt alone: [CLS] at most 510 tokens [SEP], 15 % masked (at least one), seed 15."""
    random = np.random.Generator(np.random.PCG64(15))
    for paragraph in pieces.encode((folder / "valid.txt").read_text(encoding="utf-8").splitlines()):
        ids = np.array([[CLS] + paragraph[:510] + [SEP]])
        if ids.shape[1] > 2:
            yield mask_sequences(ids, max(1, round(0.15 * (ids.shape[1] - 2))), random, False)


def classifier_table(model, corpus):
    for shortest in (1, 32):
        paragraphs = [(book, p) for book, p in corpus.held_out if len(p) >= shortest]
        score, books = Score(), torch.tensor([book for book, _ in paragraphs])
        for book, paragraph in paragraphs:
            ids = torch.tensor([[CLS] + paragraph[:510] + [SEP]])
            score.add(model.class_logits(model.decode(ids, ids[:, :0])[1]), torch.tensor([book]))
        majority = books.bincount().max().item() / len(books)
        print(f"| held-out paragraphs of at least {shortest} tokens ({len(books)}) | "
              f"{100 * score.hits / score.count:.1f} % | {100 * majority:.1f} % |")


def evaluate(arguments):
    """Prints the tables of the model card, computed in float32 from the exported F16 weights."""
    model, pieces = load_folder(arguments.folder)
    packed, mixed = (list(zip(*(part.split(32) for part in validation_sequences(arguments.corpus, pieces, m))))
                     for m in (False, True))
    alone = list(paragraph_sequences(arguments.corpus, pieces))
    corpus = Corpus(arguments.corpus, pieces)
    stream = np.concatenate(corpus.streams)
    frequent = np.bincount(stream[stream != SEP]).argmax()
    labels = torch.cat([part[2].flatten() for part in packed])
    print("| masked pieces of valid.txt, 15 % | top-1 | loss | perplexity |\n|---|---|---|---|")
    if model.disentangled:
        print(decoder_score(model, packed).row("128 tokens, Enhanced Mask Decoder"))
        print(decoder_score(model, mixed).row("the same, 80 % [MASK], 10 % random, 10 % shown"))
        print(plain_score(model, packed).row("128 tokens, head on H[L]"))
        print(decoder_score(model, alone).row("single paragraphs, Enhanced Mask Decoder"))
        positions = model.deberta.embeddings.position_embeddings.weight
        kept = positions.clone()
        positions.zero_()
        print(decoder_score(model, packed).row("128 tokens, decoder with its absolute positions set to zero"))
        positions.copy_(kept)
    else:
        print(decoder_score(model, packed).row("128 tokens"))
        print(decoder_score(model, mixed).row("the same, 80 % [MASK], 10 % random, 10 % shown"))
        print(decoder_score(model, alone).row("single paragraphs"))
    share = 100 * (labels == frequent).float().mean()
    print(f"| always \"{pieces.id_to_piece(int(frequent))}\" | {share:.1f} % | | |\n")
    print("| which book? | accuracy | majority |\n|---|---|---|")
    classifier_table(model, corpus)


# ------------------------------------------------------------------------------------------------ check


class Differences:
    """Collects the largest absolute difference of every comparison, with one bound."""

    def __init__(self, bound):
        self.bound, self.failed = bound, False

    def compare(self, name, mine, theirs):
        worst = (mine - theirs).abs().max().item()
        self.failed |= not worst < self.bound
        print(f"{name}: {worst:.1e}{'' if worst < self.bound else '  FAILED'}")


def decode_with_transformers(theirs, states, positions, rows):
    """Runs the Enhanced Mask Decoder on transformers' own layers, for all query rows."""
    encoder, (batch, n, h) = theirs.encoder, states.shape
    mask = encoder.get_attention_mask(torch.ones(batch, n))
    queries = states + positions[:n]
    for _ in range(2):
        queries = encoder.layer[-1](states, mask, query_states=queries, relative_pos=encoder.get_rel_pos(states),
                                    rel_embeddings=encoder.get_rel_embedding())[0]
    return queries.gather(1, rows[..., None].expand(-1, -1, h))


def compare_models(mine, theirs, name, differences):
    for n in (1, 7, 33, 128, 512):
        ids = torch.randint(4, PIECES, (2, n))
        rows = torch.stack([torch.randperm(n)[:5] for _ in range(2)])
        expected = theirs(ids, output_hidden_states=True).hidden_states
        for layer, (a, b) in enumerate(zip(mine.hidden_states(ids), expected)):
            differences.compare(f"{name} n={n} H[{layer}]", a, b)
        if mine.disentangled:
            reference = decode_with_transformers(theirs, expected[-2], mine.deberta.embeddings.position_embeddings.weight, rows)
        else:
            reference = expected[-1].gather(1, rows[..., None].expand(-1, -1, expected[-1].shape[-1]))
        decoded, first = mine.decode(ids, rows)
        differences.compare(f"{name} n={n} decoded rows", decoded, reference)
        differences.compare(f"{name} n={n} first row", first, expected[-1][:, 0])


def check(arguments):
    """Compares random weights of all shapes, large enough that every term matters; with FOLDER also that model and its tokenizer."""
    import transformers

    transformers.logging.set_verbosity_error()
    torch.manual_seed(arguments.seed)
    differences = Differences(1e-5)
    shapes = (("random deberta", DEBERTA), ("random twin", TWIN), ("random c2p", DEBERTA | {"pos_att_type": "c2p"}),
              ("random p2c, no buckets", DEBERTA | {"pos_att_type": "p2c", "position_buckets": -1}))
    for name, base in shapes:
        mine = LeanDeberta(base, 16)
        for parameter in mine.parameters():
            parameter.add_(torch.randn_like(parameter) * 0.05)
        theirs = transformers.DebertaV2Model(transformers.DebertaV2Config(**base)).eval()
        weights = {n.removeprefix("deberta."): t for n, t in mine.state_dict().items() if n.startswith("deberta.")}
        theirs.load_state_dict({n: t for n, t in weights.items() if n in theirs.state_dict()})
        compare_models(mine, theirs, name, differences)
    if arguments.folder:
        mine, pieces = load_folder(arguments.folder)
        theirs = transformers.AutoModel.from_pretrained(arguments.folder, dtype=torch.float32).eval()
        compare_models(mine, theirs, str(arguments.folder), differences)
        lm = transformers.AutoModelForMaskedLM.from_pretrained(arguments.folder, dtype=torch.float32).eval()
        ids = torch.randint(4, PIECES, (2, 40))
        states = mine.hidden_states(ids)[-1]
        differences.compare("masked-LM logits on H[L]", mine.vocabulary_logits(states), lm(ids).logits)
        classes = transformers.AutoModelForSequenceClassification.from_pretrained(arguments.folder, dtype=torch.float32)
        differences.compare("classifier logits", mine.class_logits(states[:, 0]), classes.eval()(ids).logits)
        tokenizer = transformers.AutoTokenizer.from_pretrained(arguments.folder)
        text = "It was the best of times, it was the worst of times."
        expected = [CLS] + pieces.encode(text) + [SEP]
        same = tokenizer(text)["input_ids"] == expected and tokenizer.mask_token_id == MASK
        differences.failed |= not same
        print(f"tokenizer ids: {'same' if same else 'FAILED'}")
    return 1 if differences.failed else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("command", choices=["tokenizer", "train", "evaluate", "export", "check"])
    parser.add_argument("folder", nargs="?", type=Path)
    parser.add_argument("--twin", action="store_true", help="absolute positions and plain attention")
    parser.add_argument("--corpus", type=Path, default=Path("corpus"), help="folder of train.txt and valid.txt")
    parser.add_argument("--state", type=Path, default=Path("train-state"), help="checkpoints and spm.model")
    parser.add_argument("--steps", type=int, help="where the rate reaches zero, beyond 1920; default: 24.8 M tokens")
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_intermixed_args()
    if arguments.steps is None:
        arguments.steps = TWIN_STEPS if arguments.twin else RATES[-1][0]
    if arguments.command == "tokenizer":
        train_tokenizer(arguments.corpus, arguments.state)
    elif arguments.command == "train":
        train(arguments)
    else:
        if arguments.folder is None and arguments.command != "check":
            parser.error(f"{arguments.command} needs a model folder")
        torch.set_num_threads(1)
        with torch.no_grad():
            return {"export": export, "evaluate": evaluate, "check": check}[arguments.command](arguments)
    return 0


if __name__ == "__main__":
    sys.exit(main())
