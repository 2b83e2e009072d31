#!/usr/bin/env python3
"""`deberta eval` against the answers of `classify` and the definitions of precision, recall and F1; bad lines; outputs.

    test_eval.py PROGRAM

The last line is `N passed, N failed, N skipped`. SPDX-License-Identifier: MIT
"""
import json
import os
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
sys.dont_write_bytecode = True
import unittest_counts  # noqa: E402

PROGRAM = None
ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
DEMO = os.path.join(ROOT, "models", "demo")
BOOKS = os.path.join(ROOT, "docs", "studies", "data", "books.tsv")


class Eval(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)

    def path(self, name, text=None):
        path = os.path.join(self.folder.name, name)
        if text is not None:
            with open(path, "w", encoding="utf-8") as file:
                file.write(text)
        return path

    def run_program(self, *arguments, code=0):
        done = subprocess.run([PROGRAM, *arguments], capture_output=True, cwd=self.folder.name, check=False)
        self.assertEqual(done.returncode, code, done.stderr.decode() + done.stdout.decode()[-300:])
        return done.stdout.decode(), done.stderr.decode()

    def scores(self, *arguments, code=0):
        return json.loads(self.run_program("eval", DEMO, *arguments, "--json", code=code)[0])

    def check(self, found, pairs, names):
        """pairs: (right, answered) for every text."""
        self.assertEqual(found["labels"], names)
        self.assertEqual(found["texts"], len(pairs))
        hits = sum(a == b for a, b in pairs)
        self.assertAlmostEqual(found["accuracy"], hits / len(pairs))
        low, high = found["accuracy_interval"]
        self.assertTrue(low < hits / len(pairs) < high)
        f1 = []
        for k, row in enumerate(found["classes"]):
            right, answered, both = sum(r == k for r, _ in pairs), sum(a == k for _, a in pairs), sum(r == a == k for r, a in pairs)
            self.assertEqual((row["label"], row["index"], row["texts"], row["answers"], row["hits"]), (names[k], k, right, answered, both))
            self.assertAlmostEqual(row["precision"], both / answered if answered else 0)
            self.assertAlmostEqual(row["recall"], both / right if right else 0)
            self.assertAlmostEqual(row["f1"], 2 * both / (right + answered) if both else 0)
            f1 += [row["f1"]] * (right + answered > 0)
            for other in range(len(names)):
                self.assertEqual(found["confusion"][k][other], pairs.count((k, other)))
        self.assertAlmostEqual(found["macro_f1"], sum(f1) / len(f1))
        self.assertAlmostEqual(found["majority"], max(sum(r == k for r, _ in pairs) for k in range(len(names))) / len(pairs))

    def test_against_classify(self):
        with open(BOOKS, encoding="utf-8") as file:
            lines = [line.rstrip("\n").split("\t") for line in file][1::9]
        texts = self.path("texts.txt", "".join(text + "\n" for _, text in lines))
        answers = [json.loads(line)["labels"][0] for line in self.run_program("classify", DEMO, "--file", texts, "--json")[0].splitlines()]
        with open(os.path.join(DEMO, "config.json"), encoding="utf-8") as file:
            label_of = json.load(file)["label2id"]
        names = sorted(label_of, key=label_of.get)
        pairs = [(label_of[label], answer["index"]) for (label, _), answer in zip(lines, answers)]
        self.assertTrue(0 < sum(a != b for a, b in pairs) < len(pairs) / 2)
        by_name = self.scores(self.path("a.tsv", "label\ttext\n" + "".join(f"{n}\t{t}\n" for n, t in lines)))
        self.check(by_name, pairs, names)
        by_number = self.scores(self.path("b.tsv", "\n".join(f"{label_of[n]}\t{t}" for n, t in lines)))
        self.assertEqual(by_name, by_number)
        halves = [self.path(f"{k}.tsv", "".join(f"{n}\t{t}\n" for n, t in lines[k::2])) for k in (0, 1)]
        self.assertEqual(by_name["confusion"], self.scores(*halves)["confusion"])

    def test_pairs(self):
        words = ["Who are you?", "The Count bowed.", "I saw the whale."]
        pair = ["--text", words[0], "--pair", words[2]]
        answer = json.loads(self.run_program("classify", DEMO, *pair, "--json")[0])["labels"][0]["index"]
        found = self.scores(self.path("p.tsv", f"{answer}\t{words[0]}\t{words[2]}\n"))
        self.assertEqual((found["texts"], found["hits"]), (1, 1))

    def test_byte_order_mark(self):
        self.path("plain.tsv", "label\ttext\n0\ta\n1\tb\n")
        self.path("marked.tsv", "\ufefflabel\ttext\n0\ta\n1\tb\n")
        self.assertEqual(self.run_program("eval", DEMO, "marked.tsv")[0], self.run_program("eval", DEMO, "plain.tsv")[0])

    def test_bad_lines(self):
        bad = "7\tCall me Ishmael.\nNobody\tx\nno tab\n16\ty\n2\t\n1\ta\tb\tc\n\nlabel\tx\n7\tThe whale!\n"
        out, err = self.run_program("eval", DEMO, self.path("bad.tsv", bad), "--json", code=3)
        found = json.loads(out)
        self.assertEqual((found["texts"], found["bad"]), (2, 6))
        for line, word in ((2, "'Nobody'"), (3, "no tab"), (4, "'16'"), (5, "empty"), (6, "more fields"), (8, "'label'")):
            self.assertIn(f"bad.tsv, line {line}: ", err)
            self.assertIn(word, err.split(f"line {line}: ")[1].split("\n")[0])
        self.assertIn("none of the lines", self.run_program("eval", DEMO, self.path("none.tsv", "x\n"), code=3)[1])
        subprocess.run([PROGRAM, "eval", DEMO, "none.tsv", "-o", "s.json", "-o", "s.svg"], capture_output=True, cwd=self.folder.name, check=False)
        self.assertFalse({"s.json", "s.svg"} & set(os.listdir(self.folder.name)))

    def test_misuse(self):
        good = self.path("good.tsv", "7\tCall me Ishmael.\n")
        self.assertIn("No such file", self.run_program("eval", DEMO, "no.tsv", code=3)[1])
        self.assertIn("expected MODEL FILE.tsv", self.run_program("eval", DEMO, code=2)[1])
        self.assertIn("label, tab, text", self.run_program("eval", DEMO, "x.jsonl", code=2)[1])
        self.assertIn("--format", self.run_program("eval", DEMO, good, "--format", "x", code=2)[1])
        lm = os.path.join(ROOT, "tests", "golden", "33-v3-mlm-emd")
        self.assertNotEqual(subprocess.run([PROGRAM, "eval", lm, good], capture_output=True, check=False).returncode, 0)

    def test_outputs(self):
        good = self.path("good.tsv", "7\tCall me Ishmael.\n3\tThe Count bowed.\n")
        text = self.run_program("eval", DEMO, good)[0]
        for word in ("accuracy ", "macro F1", "precision", "Moby-Dick", "right (rows)"):
            self.assertIn(word, text)
        self.assertEqual(self.run_program("eval", DEMO, good, "-o", "scores.txt")[0], "")
        with open(self.path("scores.txt"), encoding="utf-8") as file:
            self.assertEqual(file.read(), text)
        self.assertTrue(self.run_program("eval", DEMO, good, "--format", "csv")[0].startswith("index,label,texts,answers"))
        self.assertIn("\\bottomrule", self.run_program("eval", DEMO, good, "--latex")[0])
        if "\n  attention " in self.run_program("--help")[0]:
            self.run_program("eval", DEMO, good, "-o", "scores.svg")
            with open(self.path("scores.svg"), encoding="utf-8") as file:
                self.assertIn("<svg", file.read())


def main():
    global PROGRAM
    PROGRAM = os.path.abspath(sys.argv[1])
    return unittest_counts.run_tests()


if __name__ == "__main__":
    sys.exit(main())
