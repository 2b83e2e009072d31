#!/usr/bin/env python3
"""The studies that compare models: `study positions`, `study twins`, and `study grid` and `study clipping` on tables of losses.

    test_studies_trained.py PROGRAM

The last line is `N passed, N failed, N skipped`. SPDX-License-Identifier: MIT
"""
import csv
import io
import itertools
import json
import math
import os
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
sys.dont_write_bytecode = True
import tensor_files  # noqa: E402
import test_studies as studies  # noqa: E402
import unittest_counts  # noqa: E402

DEMO = studies.DEMO
TWIN = os.path.join(studies.ROOT, "models", "demo-bert")
DATA = os.path.join(studies.ROOT, "docs", "studies", "data")
PHRASES = ["The old chief stood stoical and silent.", "What put that into your simple head?"]
AMOUNTS = (1, 16, 64)


def table_of(*arguments):
    return studies.rows_of(json.loads(studies.run("study", *arguments, "--json"))["data"])


class Positions(unittest.TestCase):
    """Against what `encode` writes for the same ids, by the formulas in docs/studies/positions.md."""

    @classmethod
    def setUpClass(cls):
        with open(os.path.join(DATA, "sentences.txt"), encoding="utf-8") as file:
            sentences = file.read().splitlines()
        # Longer than a phrase may be: they fill the windows of the probes alone.
        long = [" ".join(sentences[at:at + 12]) for at in range(0, 144, 12)]
        cls.texts = [part for text in PHRASES + long for part in ("--text", text)]
        both = table_of("positions", DEMO, TWIN, *cls.texts)
        cls.rows, cls.twin = ([row for row in both if row["model"] == name] for name in ("demo", "demo-bert"))
        cls.phrases = [json.loads(studies.run("tokenize", DEMO, "--text", p, "--json"))["ids"][1:-1] for p in PHRASES]

    def found(self, what, change, amount, rows=None):
        return [row["value"] for row in rows or self.rows if (row["what"], row["change"], row["amount"]) == (what, change, amount)]

    def encode(self, ids, folder):
        path = os.path.join(folder, "o.safetensors")
        studies.run("encode", DEMO, "--ids", ",".join(map(str, ids)), "--hidden", "all", "--attention", "all", "-o", path)
        return tensor_files.read(path)[0]

    def variants(self, change, amount, folder):
        """For every phrase: tensors alone, tensors with the change, its tokens, and how much later it begins."""
        for k, phrase in enumerate(self.phrases):
            following = list(itertools.islice(itertools.cycle(sum(self.phrases[k + 1:] + self.phrases[:k + 1], [])), amount))
            before, after = (following, []) if change == "before" else ([], following)
            changed = self.encode([1, *before, *phrase, *after, 2], folder)
            yield self.encode([1, *phrase, 2], folder), changed, len(phrase), len(before)

    def test_hidden(self):
        def distance(a, i, b, j, h=192):
            return sum((x - y) ** 2 for x, y in zip(a.values[i * h:(i + 1) * h], b.values[j * h:(j + 1) * h]))

        with tempfile.TemporaryDirectory() as folder:
            for change in ("before", "after"):
                moved, spread = [0] * 6, [0] * 6
                for alone, changed, n, later in self.variants(change, 16, folder):
                    for layer in range(6):
                        a, b = alone[f"hidden_states.{layer}"], changed[f"hidden_states.{layer}"]
                        moved[layer] += sum(distance(a, 1 + i, b, 1 + later + i) for i in range(n)) / n
                        pairs = list(itertools.combinations(range(1, n + 1), 2))
                        spread[layer] += sum(distance(a, i, a, j) for i, j in pairs) / len(pairs)
                for found, m, s in zip(self.found("hidden", change, 16), moved, spread, strict=True):
                    self.assertAlmostEqual(found, (m / s) ** 0.5, delta=2e-6)

    def test_attention(self):
        with tempfile.TemporaryDirectory() as folder:
            moved = [0] * 5
            for alone, changed, n, later in self.variants("before", 1, folder):
                for layer, head, i in itertools.product(range(5), range(3), range(n)):
                    def row(tensor, first):
                        size = tensor.shape[-1]
                        start = (head * size + first + i) * size + first
                        part = tensor.values[start:start + n]
                        return [p / sum(part) for p in part]
                    a, b = row(alone[f"attn.{layer}.probs"], 1), row(changed[f"attn.{layer}.probs"], 1 + later)
                    moved[layer] += 0.5 * sum(abs(x - y) for x, y in zip(a, b)) / (3 * n * len(PHRASES))
            for found, expected in zip(self.found("attention", "before", 1), moved, strict=True):
                self.assertAlmostEqual(found, expected, delta=2e-6)

    def test_relative_positions_do_not_see_a_shift(self):
        for amount in AMOUNTS:
            self.assertEqual(self.found("hidden", "ids later", amount), [0] * 6)
            self.assertEqual(self.found("attention", "ids later", amount), [0] * 5)
        probes = self.found("probe", None, 0)
        self.assertEqual(len(probes), 6)
        self.assertTrue(all(value < 0.5 for value in probes), probes)

    def test_absolute_positions_do(self):
        """At H[0] a token is a word and a position, so it does not matter what makes the position larger."""
        for amount in AMOUNTS:
            later, before, after = (self.found("hidden", change, amount, self.twin) for change in ("ids later", "before", "after"))
            self.assertTrue(all(value > 0.01 for value in later), later)
            self.assertEqual((later[0], after[0]), (before[0], 0))
        self.assertGreater(self.found("probe", None, 0, self.twin)[0], 0.8)

    def test_wrong_use(self):
        few = ("study", "positions", DEMO, "--text", PHRASES[0])
        self.assertIn("the probes need 20 windows of 126 tokens; these texts fill 0", studies.run(*few, code=3))
        other = studies.run("study", "positions", DEMO, "synthetic:v3-base,layers=1,vocab=100", *self.texts, code=2)
        self.assertIn("expected a model with the tokenizer of", other)
        self.assertIn("found a vocabulary of 100 instead of 6000", other)


class Twins(unittest.TestCase):
    """Against the matrices that `encode` writes for the same sentences, by the definitions in docs/studies/twins.md."""

    @classmethod
    def setUpClass(cls):
        cls.found = json.loads(studies.run("study", "twins", DEMO, TWIN, "--text", PHRASES[0], "--text", PHRASES[1], "--json"))
        cls.rows = studies.rows_of(cls.found["data"])

    def matrices(self, model):
        """For every phrase: the number of tokens, and {component: [layer][head][query][key]}."""
        for phrase in PHRASES:
            with tempfile.TemporaryDirectory() as folder:
                path = os.path.join(folder, "o.safetensors")
                studies.run("encode", model, "--text", phrase, "--components", "all", "--attention", "all", "-o", path)
                tensors = tensor_files.read(path)[0]
            n = tensors["attn.0.probs"].shape[-1]
            cut = lambda name: [[[tensors[name].values[(h * n + i) * n:(h * n + i + 1) * n] for i in range(n)] for h in range(3)]]
            yield n, {part: [cut(f"attn.{layer}.{part}")[0] for layer in range(5)] for part in ("c2c", "c2p", "probs") if f"attn.0.{part}" in tensors}

    def value(self, model, what, layer, head, at=""):
        found = [r["value"] for r in self.rows if (r["model"], r["what"], r["layer"], str(r["head"]), str(r["at"] if r["at"] is not None else ""))
                 == (model, what, layer, str(head), at)]
        self.assertEqual(len(found), 1, (model, what, layer, head, at))
        return found[0]

    def test_heads(self):
        for path, name in ((DEMO, "demo"), (TWIN, "demo-bert")):
            texts = list(self.matrices(path))
            queries = sum(n for n, _ in texts)
            for layer in range(5):
                means = []
                for head in range(3):
                    rows = [(i, row) for n, parts in texts for i, row in enumerate(parts["probs"][layer][head])]
                    entropy = sum(-p * math.log2(p) for _, row in rows for p in row if p > 0) / queries
                    offset = sum(p * (i - j) for i, row in rows for j, p in enumerate(row)) / queries
                    self.assertAlmostEqual(self.value(name, "entropy", layer, head), entropy, delta=2e-5)
                    self.assertAlmostEqual(self.value(name, "offset", layer, head), offset, delta=2e-5)
                    means.append(entropy)
                self.assertAlmostEqual(self.value(name, "entropy", layer, "all"), sum(means) / 3, delta=2e-5)

    def test_places_and_curves(self):
        for path, name in ((DEMO, "demo"), (TWIN, "demo-bert")):
            texts = list(self.matrices(path))
            own = sum(n - 2 for n, _ in texts)
            frame = sum(row[j] for n, parts in texts for head in parts["probs"][3] for row in head[1:-1] for j in (0, n - 1))
            self.assertAlmostEqual(self.value(name, "place", 3, "all", "[CLS], [SEP]"), 100 * frame / own / 3, delta=1e-4)
            for part in ("c2c", "probs"):
                values = []
                for n, parts in texts:
                    for head in parts[part][3]:
                        for i in range(3, n - 1):
                            row = head[i][1:-1]
                            values.append(row[i - 3] - (sum(row) / len(row) if part == "c2c" else 0))
                self.assertAlmostEqual(self.value(name, part, 3, "all", "2"), sum(values) / len(values), delta=2e-5)
        self.assertFalse([r for r in self.rows if r["model"] == "demo-bert" and r["what"] in ("c2p", "p2c")])

    def test_differences(self):
        first = studies.rows_of(self.found["differences"])[2]
        expected = self.value("demo", "entropy", 2, "all") - self.value("demo-bert", "entropy", 2, "all")
        self.assertAlmostEqual(float(first["entropy (bits)"].split()[0]), expected, delta=0.006)

    def test_wrong_use(self):
        self.assertIn("no term p2c", studies.run("study", "twins", DEMO, TWIN, "--text", "a", "--ablate", "p2c@0", code=2))
        self.assertIn("--layers", studies.run("study", "twins", DEMO, TWIN, "--text", "a", "--layers", "5", code=2))
        self.assertIn("OTHER", studies.run("study", "twins", DEMO, "--text", "a", code=2))


class Losses(unittest.TestCase):
    """What is printed of tables of losses: a made-up one by its means, the committed ones by their pages."""

    CELLS = ["input/none"] + [f"{t}/{d}" for t in ("c2c", "c2c+c2p", "c2c+p2c", "full") for d in ("none", "emd")]

    def write(self, path, columns):
        """Text t of column c has the loss c + 1 + t / 100, so column c has the mean c + 1.495 and every difference is whole."""
        with open(path, "w", encoding="utf-8") as file:
            file.write("# made up\n" + ",".join(columns) + "\n")
            for text in range(100):
                file.write(",".join(f"{c + 1 + text / 100:.2f}" for c in range(len(columns))) + "\n")

    def test_grid(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "grid.csv")
            self.write(path, [f"{cell}@64#{seed}" for seed in (1, 2) for cell in self.CELLS])
            rows = table_of("grid", path)
            self.assertEqual(len(rows), 3 * len(self.CELLS))
            means = [row["value"] for row in rows if not row["against"]]
            # Columns k and k + 9 are the seeds of a cell; the page has the input's cell last.
            order = list(range(1, 9)) + [0]
            for k, mean in zip(order, means, strict=True):
                self.assertAlmostEqual(mean, k + 1.495 + 4.5, delta=1e-6)
            for k, row in zip(order, (r for r in rows if r["against"] == "positions at the input"), strict=True):
                self.assertEqual((row["value"], row["low"], row["high"], row["seeds"]), (k, k, k, 2))
            if studies.has_figures():
                studies.run("study", "grid", path, "-o", os.path.join(folder, "g.svg"))

    def test_clipping(self):
        columns = [f"k{k}@{n}" for k in (2, 8, 32, 128) for n in (64, 128, 256, 512)]
        columns += [f"k{k}@{n} clipped {r}" for k in (8, 32, 128) for n in (128, 512) for r in (2, 8, 32) if r < k]
        columns += [f"k{k}@{n} log" for k in (8, 32, 128) for n in (128, 512)]
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "clipping.csv")
            self.write(path, columns)
            rows = table_of("clipping", path)
            place = {name: k for k, name in enumerate(columns)}
            readings = 0
            for row in rows:
                own = place[f"k{row['k']}@{row['context']}"]
                if row["what"] == "loss":
                    self.assertAlmostEqual(row["value"], own + 1.495, delta=1e-6)
                elif row["what"] == "against k 128":
                    self.assertEqual(row["value"], own - place[f"k128@{row['context']}"])
                else:
                    name = row["what"].replace("clipped at", "clipped").replace("log buckets", "log")
                    self.assertEqual(row["value"], place[f"k{row['k']}@{row['context']} {name}"] - own)
                    readings += 1
            self.assertEqual(readings, 2 * (1 + 2 + 3 + 3))
            if studies.has_figures():
                studies.run("study", "clipping", path, "-o", os.path.join(folder, "c.svg"))

    def test_pages(self):
        for name in ("grid", "clipping"):
            if not os.path.exists(os.path.join(DATA, name + ".csv")):
                continue
            with open(os.path.join(studies.ROOT, "docs", "studies", name + ".md"), encoding="utf-8") as file:
                page = file.read()
            for line in studies.run("study", name, os.path.join(DATA, name + ".csv")).splitlines():
                self.assertIn(line, page)

    def test_wrong_tables(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "t.csv")
            self.write(path, ["full/emd@64#1"])
            self.assertIn("there is no column 'c2c/none@64#1'", studies.run("study", "grid", path, code=3))
            self.assertIn("there is no column 'k2@64#1'", studies.run("study", "clipping", path, code=3))
            with open(path, "a", encoding="utf-8") as file:
                file.write("1,2\n")
            self.assertIn("line 103: expected 1 losses, found 2", studies.run("study", "grid", path, code=3))
        self.assertIn("cannot be opened", studies.run("study", "grid", "no/such/file", code=3))


def main():
    studies.PROGRAM = os.path.abspath(sys.argv[1])
    return unittest_counts.run_tests()


if __name__ == "__main__":
    sys.exit(main())
