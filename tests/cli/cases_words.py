"""What a word is, in masks and figures, also where a script parts words without white space.

SPDX-License-Identifier: MIT
"""
import json
import os
import random

from helpers import DEMO, check, contains, equal, needs_figures, read_tensors

ENGLISH = ("the old house stood beside a small river and nobody remembered who had built it but every evening the children came home over the wooden bridge "
           "while their grandmother prepared supper and listened patiently to uncommonly complicated explanations").split()
CHINESE = "今天 天气 很 好 我们 一起 去 公园 散步 孩子 喜欢 吃 苹果 老师 在 学校 教 数学 城市 的 夜晚 非常 安静 他 昨天 买 了 一 本 新 书 河边 有 许多 小 鸟".split()
JAPANESE = "今日は 天気が とても いいので 公園へ 行きました 猫が 庭で 寝ています 母は 市場で 魚を 買った カメラを テーブルに 置く".split()
THAI = "วันนี้ อากาศ ดี มาก เรา ไป เดิน เล่น ที่ สวน เด็ก ๆ ชอบ กิน ข้าว ครู สอน หนังสือ ใน โรงเรียน แม่ ซื้อ ปลา ตลาด บ้าน หลัง เก่า อยู่ ริม แม่น้ำ".split()
AMINO_ACIDS = "ACDEFGHIKLMNPQRSTVWY"

# name, what a line is made of, pieces a line, what stands between them, pieces of the vocabulary
SCRIPTS = [("english", ENGLISH, (8, 20), " ", (35, 55)), ("chinese", CHINESE, (8, 20), "", (120, 200)), ("japanese", JAPANESE, (8, 20), "", (120, 200)),
           ("thai", THAI, (8, 20), "", (80, 200)), ("protein", AMINO_ACIDS, (250, 350), "", (25, 60))]


def draw_lines(draw, parts, count, between, lines=120):
    return [between.join(draw.choices(parts, k=draw.randint(*count))) for _ in range(lines)]


def write_lines(bench, name, lines):
    bench.write(name, "".join(line + "\n" for line in lines))
    return name


def new_model(bench, folder, corpus, vocabulary):
    bench.fine("train", "tokenizer", "--file", corpus, "--vocabulary", str(vocabulary), "--depth", "1", "--width", "32", "--head-count", "1", "-o", folder)
    return folder


def shares_of(bench, model, corpus, *more):
    """Labelled tokens of all, of each step."""
    bench.fine("train", "mlm", "--config", model, "--file", corpus, "--steps", "3", "--batch-sequences", "32", "--max-ngram", "3", "-t", "1", *more, "-o", "run-" + model)
    steps = bench.objects(f"run-{model}/log.jsonl")
    return [step["labelled"] / step["tokens"] for step in steps]


def test_masked_share(bench):
    """Of five scripts, with coarse and fine pieces and drawn lengths, as many tokens are masked as were asked for."""
    draw = random.Random(5)
    for name, parts, count, between, vocabularies in SCRIPTS:
        corpus = write_lines(bench, f"{name}.txt", draw_lines(draw, parts, count, between))
        for vocabulary in vocabularies:
            model = new_model(bench, f"{name}{vocabulary}", corpus, vocabulary)
            tokens = draw.choice((64, 128, 160))
            shares = shares_of(bench, model, corpus, "--sequence-tokens", str(tokens), "--seed", str(draw.randint(1, 99)))
            for share in shares:
                check(0.13 <= share <= 0.17, f"{name}, {vocabulary} pieces, {tokens} tokens: 15 % asked for, {shares}")


def test_more_masks_than_asked(bench):
    """A text has one masked token at least: where texts are a word long that is a third of their tokens, and it is said."""
    corpus = write_lines(bench, "words.txt", ["house", "river", "bridge"] * 40)
    model = new_model(bench, "new", write_lines(bench, "corpus.txt", [" ".join(ENGLISH)] * 20 + ["house", "river", "bridge"] * 40), 40)
    run = ("train", "mlm", "--config", model, "--file", corpus, "--steps", "2", "-t", "1", "--sequence-tokens", "8")
    told = bench.fine(*run, "--sequences", "lines", "-o", "lines").err
    contains(told, "% of its tokens, --mask-probability asks for 15 %", "--sequences lines")
    told = bench.fine(*run, "-o", "joined").err
    check("--mask-probability" not in told, told)


def test_nul_in_a_corpus(bench):
    """Refused with its line by whatever learns from texts, at any place of the file: no piece can be written with it."""
    lines = ["the man sat on the mat and the dog ran"] * 40
    clean = new_model(bench, "clean", write_lines(bench, "clean.txt", lines), 24)
    for place, line in ((3, "the d\0g ran"), (38, "\0"), (39, "the dog ran\0"), (0, "\0the dog")):
        corpus = write_lines(bench, "nul.txt", lines[:place] + [line] + lines[place:])
        for command in (("train", "tokenizer", "--file", corpus, "--vocabulary", "24", "--depth", "1", "--width", "16", "--head-count", "1"),
                        ("train", "mlm", "--config", clean, "--file", corpus, "--steps", "1", "--sequence-tokens", "16"),
                        ("train", "mlm", "--config", clean, "--file", "clean.txt", "--eval", corpus, "--steps", "1", "--sequence-tokens", "16")):
            contains(bench.expect(3, *command, "-o", "none").err, f"nul.txt, line {place + 1}: holds a NUL byte", "tr -d")
            check(not os.path.exists(bench.path("none/model.safetensors")), "a model was left")


def test_nul_in_labels(bench):
    """What stands behind a NUL would be lost, and two labels be one."""
    for name, task, content in (("l.tsv", "sequence", "a\0x\tthe old house\nb\tthe sea\n"),
                                ("l.jsonl", "sequence", '{"label": "a\\u0000x", "text": "the old house"}\n{"label": "b", "text": "the sea"}\n'),
                                ("t.tsv", "token", "the\tO\nh\0use\tB\n"), ("t2.tsv", "token", "the\tO\nhouse\tB\0C\n"),
                                ("t.jsonl", "token", '{"words": ["the", "h\\u0000use"], "labels": ["O", "B"]}\n'),
                                ("t2.jsonl", "token", '{"words": ["the", "house"], "labels": ["O", "B\\u0000"]}\n')):
        bench.write(name, content)
        result = bench.expect(3, "finetune", task, DEMO, "--examples", name, "--new-head", "--steps", "1", "-o", "none")
        contains(result.err, name, "label holds a NUL character")


def figure_rows(bench, model, text, *more):
    """Names of the rows that a figure's numbers have, in order; what was said."""
    said = bench.fine("attention", model, "--text", text, "--layers", "0", "--heads", "0", "--width-mm", "60", *more, "-o", "f.svg", "--numbers", "f.csv").err
    return list(dict.fromkeys((row["query"], row["query_label"]) for row in bench.table("f.csv"))), said


def tokens_of(bench, model, text):
    return json.loads(bench.fine("tokenize", model, "--text", text, "--json").out)["tokens"]


def small_model(bench, folder, parts, between, vocabulary, count=(8, 20)):
    corpus = write_lines(bench, folder + ".txt", draw_lines(random.Random(3), parts, count, between))
    new_model(bench, folder + "-new", corpus, vocabulary)
    bench.fine("train", "mlm", "--config", folder + "-new", "--file", corpus, "--steps", "1", "--sequence-tokens", "64", "--batch-sequences", "2", "-t", "1", "-o", folder)
    return folder


def test_words_of_figures(bench):
    """Where pieces have no room, words are shown unless one would swallow the text; asked for, scripts without white space keep pieces."""
    needs_figures(bench)
    model = small_model(bench, "chinese", CHINESE, "", 120)
    text = "".join(CHINESE)
    tokens = tokens_of(bench, model, text)
    for more in ((), ("--words",)):
        rows, said = figure_rows(bench, model, text, *more)
        check(len(rows) >= len(tokens) - 1, f"{len(tokens)} tokens, {len(rows)} rows")  # a lone mark of white space joins the first piece
        check("merged" not in said, said)
    model = small_model(bench, "protein", AMINO_ACIDS, "", 25, (100, 120))
    text = "MKTAYIAKQRQISFVKSHFSRQLEERLGLIEVQ".replace("M", "A")
    tokens = tokens_of(bench, model, text)
    rows, said = figure_rows(bench, model, text)
    equal(len(rows), len(tokens), "rows of a protein")
    check("merged" not in said, said)
    equal(len(figure_rows(bench, model, text, "--words")[0]), 3, "rows of a protein as a word")
    model = small_model(bench, "english", ENGLISH, " ", 40)
    text = " ".join(ENGLISH[:9])
    rows, said = figure_rows(bench, model, text)
    equal([name for _, name in rows][1:-1], ENGLISH[:9], "words of an English text")
    check({row["words"] for row in bench.table("f.csv")} == {"1"}, "the file does not say that pieces were merged")
    figure_rows(bench, model, text, "--pieces")
    check("words" not in bench.table("f.csv")[0], "the file says of pieces that they were merged")
    for kind in ("shares", "entropy", "distance", "delta", "rollout", "embeddings"):
        bench.fine("attention", kind, model, "--text", text, "--words", "--numbers", "f.csv")
        check({row["words"] for row in bench.table("f.csv")} == {"1"}, kind)
    bench.fine("attention", model, "--text", text, "--words", "--no-notes", "-o", "n.svg", "--numbers", "f.safetensors")
    contains(read_tensors(bench.path("f.safetensors"))[1]["Words"], "merged into words")
    contains(said, "pieces are merged into words")
