#!/usr/bin/env python3
"""`deberta study` from outside: the list, the formats, and each study's numbers against an independent computation.

    test_studies.py PROGRAM

The last line is `N passed, N failed, N skipped`. SPDX-License-Identifier: MIT
"""
import csv
import io
import json
import math
import os
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
sys.dont_write_bytecode = True
import tensor_files  # noqa: E402
import unittest_counts  # noqa: E402

PROGRAM = None
ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
DEMO = os.path.join(ROOT, "models", "demo")
SENTENCES = ["The old chief stood stoical and silent.", "There came a break in the tall, cool pines.", "What put that into your simple head?"]


def run(*arguments, code=0, cwd=None):
    done = subprocess.run([PROGRAM, *map(str, arguments)], capture_output=True, cwd=cwd, check=False)
    out, err = done.stdout.decode(), done.stderr.decode()
    assert done.returncode == code, f"exit {done.returncode}, expected {code}: {err}{out[-500:]}"
    return err if code else out


def rows_of(table):
    return [dict(zip(table["columns"], row)) for row in table["rows"]]


def has_figures():
    return "\n  attention " in run("--help")


class Framework(unittest.TestCase):
    def test_list(self):
        listed = json.loads(run("study", "--json"))
        self.assertTrue(all(s["name"] and s["summary"] and s["claims"] for s in listed))
        self.assertEqual(run("study"), run("study", "list"))
        for study in listed:
            self.assertIn(study["summary"], run("study"))
            self.assertTrue(os.path.exists(os.path.join(ROOT, "docs", "studies", study["name"] + ".md")), study["name"])

    def test_wrong_use(self):
        self.assertIn("no study is called 'foo'; there are: ", run("study", "foo", code=2))
        self.assertIn("unexpected argument 'x'", run("study", "list", "x", code=2))
        self.assertIn("expected MODEL", run("study", "components", code=2))
        given = ("study", "components", DEMO, "--text", "a")
        self.assertIn("no text: give --text or --file", run("study", "components", DEMO, code=2))
        self.assertIn("--format: expected one of table, md, csv, json", run(*given, "--format", "xml", code=2))
        self.assertIn("--data: the path is empty", run(*given, "--data", "", code=2))
        self.assertIn("cannot be written", run(*given, "--data", "no/such/file", code=4))
        self.assertIn("--data: unknown suffix in 'st.foo', expected .csv", run(*given, "--data", "st.foo", code=2))
        self.assertIn("give one of --format and --json", run(*given, "--json", "--format", "csv", code=2))
        self.assertIn("--sentences: expected 1 to", run(*given, "--sentences", "0", code=2))
        self.assertIn("no tokenizer", run("study", "components", "synthetic:v3-base", "--text", "a", code=2))
        self.assertIn("text 2: ", run(*given, "--text", "x " * 40000, code=3))

    def test_formats_hold_the_same(self):
        given = ("study", "components", DEMO, "--text", SENTENCES[0])
        data = run(*given, "--format", "csv")
        with tempfile.TemporaryDirectory() as folder:
            run(*given, "--data", os.path.join(folder, "d.csv"))
            with open(os.path.join(folder, "d.csv"), encoding="utf-8", newline="") as file:
                self.assertEqual(file.read(), data)
        from_json = rows_of(json.loads(run(*given, "--json"))["data"])
        from_csv = list(csv.DictReader(io.StringIO(data)))
        self.assertEqual(len(from_csv), len(from_json))
        for a, b in zip(from_csv, from_json):
            self.assertEqual(float(a["share"]), b["share"])


class Losses(unittest.TestCase):
    def table_of_one_text(self, path):
        with open(os.path.join(ROOT, "docs", "studies", "data", "grid.csv"), encoding="utf-8") as file:
            lines = [line for line in file if not line.startswith("#")][:2]
        with open(path, "w", encoding="utf-8") as file:
            file.writelines(lines)

    def test_one_text(self):
        """One text has no spread, but it has differences; and the table may have any bytes for a name."""
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, os.fsdecode(b"caf\xe9.csv"))
            self.table_of_one_text(path)
            found = json.loads(run("study", "grid", path, "--json"))
        self.assertIn("caf\ufffd.csv", found["command"])
        for title in ("against full with decoder", "against positions at the input"):
            differences = [row[title] for row in rows_of(found["cells"])]
            self.assertEqual(sum(d == 0 for d in differences), 1, differences)

    def test_a_nul_is_no_end(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "nul.csv")
            self.table_of_one_text(path)
            with open(path, "ab") as file:
                file.write(b"\0\n")
            self.assertIn("line 3: expected a number, found a NUL byte", run("study", "grid", path, code=3))


def distance_bin(r):
    """The name of a distance's bin."""
    size = abs(r)
    if not r:
        return "itself"
    names = {1: "1", 2: "2", 4: "3..4", 8: "5..8", 16: "9..16", 32: "17..32", 64: "33.."}
    edge = next((e for e in (1, 2, 4, 8, 16, 32) if size <= e), 64)
    return ("left " if r > 0 else "right ") + names[edge]


class Components(unittest.TestCase):
    def squares(self):
        """{(group, layer, name, term): sum} from the components that `encode` writes, by the formula in docs/studies/components.md."""
        found = {}
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "o.safetensors")
            for sentence in SENTENCES:
                run("encode", DEMO, "--text", sentence, "--components", "all", "-o", path)
                for name, tensor in tensor_files.read(path)[0].items():
                    part = name.split(".")
                    if part[0] != "attn" or part[2] not in ("c2c", "c2p", "p2c"):
                        continue
                    layer, term = int(part[1]), part[2]
                    _, heads, n, _ = tensor.shape
                    for head in range(heads):
                        for i in range(n):
                            row = tensor.values[(head * n + i) * n:(head * n + i + 1) * n]
                            mean = sum(row) / n
                            for j in range(n):
                                square = (row[j] - mean) ** 2
                                token = "special" if i in (0, n - 1) else "text"
                                for place in (("head", layer, str(head)), ("head", layer, "all"), ("distance", layer, distance_bin(i - j)),
                                              ("distance", "all", distance_bin(i - j)), ("token", layer, token), ("token", "all", token)):
                                    found[(*place, term)] = found.get((*place, term), 0) + square
        return found

    def test_shares(self):
        squares = self.squares()
        given = [a for s in SENTENCES for a in ("--text", s)]
        result = json.loads(run("study", "components", DEMO, *given, "--json"))
        compared = 0
        for row in rows_of(result["data"]):
            self.assertTrue(row["low"] <= row["share"] <= row["high"], row)
            place = (row["group"], row["layer"], str(row["name"]))
            if row["term"] == "p2p" or (*place, "c2c") not in squares:
                self.assertTrue(row["term"] == "p2p" or row["name"] in ("word", "punctuation", "continuation"), row)
                continue
            whole = sum(squares[(*place, term)] for term in ("c2c", "c2p", "p2c"))
            self.assertAlmostEqual(row["share"], squares[(*place, row["term"])] / whole, delta=2e-6, msg=row)
            compared += 1
        self.assertGreater(compared, 5 * 4 * 3 + 6 * 9 * 3)
        classes = {row["token"] for row in rows_of(result["classes"])}
        self.assertEqual(classes, {"special", "punctuation", "word", "continuation"})

    def test_words_behind_punctuation(self):
        """A word needs no space before it where it stands behind a quote, a bracket or a dash."""
        result = json.loads(run("study", "components", DEMO, "--text", "(a) “a” —a [I] ‘I’", "--json"))
        self.assertEqual({row["token"] for row in rows_of(result["classes"])}, {"special", "punctuation", "word"})

    def test_losses(self):
        """The loss without p2p is the one that `study ablate` starts from."""
        given = ("--text", SENTENCES[0], "--text", SENTENCES[1], "--json")
        losses = rows_of(json.loads(run("study", "components", DEMO, *given))["losses"])
        self.assertEqual([row["model"].split()[0] for row in losses], ["as", "with", "with"])
        note = json.loads(run("study", "ablate", DEMO, *given))["note"]
        self.assertIn("Loss of the whole model: " + losses[0]["loss (nats)"].split()[0], note)
        self.assertNotEqual(losses[1]["change"], losses[2]["change"])


def random_numbers(state):
    """splitmix64, from its definition."""
    while True:
        state = (state + 0x9E3779B97F4A7C15) % 2**64
        z = state
        z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9 % 2**64
        z = (z ^ z >> 27) * 0x94D049BB133111EB % 2**64
        yield z ^ z >> 31


class Ablate(unittest.TestCase):
    def test_effects(self):
        """The losses from the decoder's logits that `encode --ablate` writes for the masked ids."""
        numbers = random_numbers(6)
        tokens = json.loads(run("tokenize", DEMO, "--text", SENTENCES[1], "--json"))["ids"]
        masked, places = list(tokens), []
        for k in range(1, len(tokens) - 1):
            if (next(numbers) >> 11) * 2.0**-53 < 0.15:
                masked[k] = 5990
                places.append(k)
        self.assertTrue(places)

        def logits(*extra):
            with tempfile.TemporaryDirectory() as folder:
                path = os.path.join(folder, "o.safetensors")
                run("encode", DEMO, "--ids", ",".join(map(str, masked)), "--logits", "-o", path, *extra)
                tensor = tensor_files.read(path)[0]["logits.mlm_emd"]
                width = tensor.shape[2]
                return [list(tensor.values[k * width:(k + 1) * width]) for k in places]

        def loss(rows):
            return sum(math.log(sum(math.exp(v) for v in row)) - row[tokens[k]] for k, row in zip(places, rows)) / len(rows)

        plain = logits()
        for kind in ("zero", "mean"):
            data = rows_of(json.loads(run("study", "ablate", DEMO, "--text", SENTENCES[1], "--kind", kind, "--seed", 6, "--json"))["data"])
            self.assertEqual(len(data), (5 * 4 + 1) * 3)
            for row in data[4:len(data):11]:
                changed = logits("--ablate", "%s=%s@%s:%s" % (row["term"], kind, row["layer"], row["head"]))
                self.assertAlmostEqual(row["loss_change"], loss(changed) - loss(plain), delta=2e-5, msg=row)
                moved = []
                for before, after in zip(plain, changed):
                    mean = sum(after) / len(after) - sum(before) / len(before)
                    moved.append(sum(abs(b - a - mean) for a, b in zip(before, after)) / len(before))
                self.assertAlmostEqual(row["logit_change"], sum(moved) / len(moved), delta=2e-5, msg=row)
            shares = {(r["layer"], r["head"]): 0 for r in data}
            for row in data:
                shares[row["layer"], row["head"]] += row["share"] or 0
            self.assertTrue(all(abs(s - 1) < 1e-5 or "all" in place for place, s in shares.items()))

    def test_a_single_term(self):
        """Where the scores have one term its share is always 1, and foretells nothing."""
        found = json.loads(run("study", "ablate", os.path.join(ROOT, "models", "demo-bert"), "--text", SENTENCES[0], "--json"))
        self.assertEqual([(row["term"], row["rho"], row["95 %"]) for row in rows_of(found["prediction"])], [("c2c", None, None), ("all", None, None)])

    def test_needs_a_head(self):
        self.assertIn("--kind: expected one of zero, mean", run("study", "ablate", DEMO, "--text", "a", "--kind", "median", code=2))

    def test_figure(self):
        if not has_figures():
            self.skipTest("built without figures")
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "effects.svg")
            done = run("study", "ablate", DEMO, "--text", SENTENCES[0], "--sentences", "1", "-o", path)
            self.assertIn("| layer | head | c2c |", done)
            with open(path, encoding="utf-8") as file:
                self.assertIn("<svg", file.read())
        same = ("study", "ablate", DEMO, "--text", SENTENCES[0], "--data", "a.svg", "-o", "./a.svg")
        self.assertIn("--data: 'a.svg' is where --out puts the figure", run(*same, code=2))


class Benchmarks(unittest.TestCase):
    FILE = os.path.join(ROOT, "docs", "studies", "data", "benchmarks.csv")

    def test_quoted_numbers(self):
        found = json.loads(run("study", "benchmarks", self.FILE, "--json"))
        findings = {(row["quoted as"], row["value"]): row["finding"] for row in rows_of(found["quoted"])}
        self.assertEqual(findings["SuperGLUE (average)", 89.9], "as published, for DeBERTa 1.5B")
        self.assertEqual(findings["SQuAD 2.0 (F1)", 95.5], "wrong: it is SQuAD 1.1 (F1) of DeBERTa-large")
        with open(self.FILE, encoding="utf-8") as file:
            rows = list(csv.DictReader(line for line in file if not line.startswith("#")))
        self.assertEqual([[str(v) for v in row] for row in found["data"]["rows"]], [[v or "None" for v in row.values()] for row in rows])
        self.assertTrue(all(row["source"] and row["verified"] in ("yes", "no") for row in rows if row["model"] != "quoted"))
        shown = {row["model"]: row for row in rows_of(found["results"])}
        for row in rows:
            if row["model"] != "quoted":
                self.assertEqual(str(shown[row["model"]][f"{row['benchmark']} ({row['metric']})"]).rstrip("*"), row["value"])

    def test_bad_tables(self):
        header = "benchmark,metric,model,value,verified,source\n"
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "t.csv")
            for text, words in (("a,b\n", "expected the header"), (header, "no published result"), (header + "a,b,c,1\n", "found 4: no verified"),
                                (header + "a,b,c,x,yes,s\n", "'x'"), (header + 'a,"b",c,1,yes,s\n', "no quote"), (header + "a,b,c,1,yes,s,t\n", "no comma")):
                with open(path, "w", encoding="utf-8") as file:
                    file.write(text)
                self.assertIn(words, run("study", "benchmarks", path, code=3))
            self.assertIn("No such file", run("study", "benchmarks", path + "x", code=3))


class Decoder(unittest.TestCase):
    FRAME = "verb\tHe {1} his hat and {2} the <door|window>.\ttook/opened,took/closed"

    def log_probabilities(self, sentence, folder, *extra):
        """[decoder][mask][word] from the logits that `encode` writes."""
        path = os.path.join(folder, "o.safetensors")
        run("encode", DEMO, "--text", sentence, "--logits", "-o", path, *extra)
        tensors, _ = tensor_files.read(path)
        ids = json.loads(run("tokenize", DEMO, "--text", sentence, "--json"))["ids"]
        found = {}
        for decoder, name in (("plain", "logits.mlm"), ("emd", "logits.mlm_emd")):
            _, n, width = tensors[name].shape
            self.assertEqual(n, len(ids))
            rows = [tensors[name].values[t * width:(t + 1) * width] for t in range(n) if ids[t] == 5990]
            found[decoder] = [[v - math.log(sum(math.exp(x) for x in row)) for v in row] for row in rows]
        return found

    def test_probabilities(self):
        found = json.loads(run("study", "decoder", DEMO, "--text", self.FRAME, "--json"))
        data = rows_of(found["data"])
        self.assertEqual(len(data), 2 * 2 * 2 * 3)
        id_of = {w: json.loads(run("tokenize", DEMO, "--text", w, "--json"))["ids"][1] for w in ("took", "opened", "closed")}
        with tempfile.TemporaryDirectory() as folder:
            expected = {s: self.log_probabilities(s, folder) for s in sorted({row["sentence"] for row in data})}
        self.assertEqual(sorted(expected), ["He [MASK] his hat and [MASK] the door.", "He [MASK] his hat and [MASK] the window."])
        right = {"plain": 0, "emd": 0, "emd_level": 0}
        for row in data:
            right[row["decoder"]] += row["log_p_word"] > row["log_p_other"]
            self.assertEqual(row["word"] == "took", row["mask"] == 1)
            if row["decoder"] != "emd_level":
                at = expected[row["sentence"]][row["decoder"]][row["mask"] - 1]
                self.assertAlmostEqual(row["log_p_word"], at[id_of[row["word"]]], delta=2e-5)
                self.assertAlmostEqual(row["log_p_other"], at[id_of[row["other"]]], delta=2e-5)
        shown = next(row for row in rows_of(found["accuracy"]) if row["position of"] == "verb")
        self.assertEqual(shown["items"], 8)
        unseen = next(row for row in rows_of(found["accuracy"]) if row["position of"] == "subject")
        self.assertEqual([unseen[title] for title in ("items", "EMD", "EMD - head")], [0, None, None])
        for title, decoder in (("head on H[L]", "plain"), ("EMD", "emd"), ("EMD, one position", "emd_level")):
            self.assertTrue(shown[title].startswith(f"{100 * right[decoder] / 8:.1f} "), (shown, right))
        self.assertTrue(all(row["with equal logits"] == 0 and row["sentences"] == 2 for row in rows_of(found["two_masks"])))

    def test_ablated(self):
        """Without the terms of the last layer both decoders answer as `encode --ablate` does."""
        found = rows_of(json.loads(run("study", "decoder", DEMO, "--text", self.FRAME, "--ablate", "c2p@4", "--json"))["data"])
        with tempfile.TemporaryDirectory() as folder:
            expected = {s: self.log_probabilities(s, folder, "--ablate", "c2p@4") for s in sorted({row["sentence"] for row in found})}
        self.assertIn("--ablate: ablation 0: layer 5", run("study", "decoder", DEMO, "--text", self.FRAME, "--ablate", "c2p@5", code=2))
        took = json.loads(run("tokenize", DEMO, "--text", "took", "--json"))["ids"][1]
        for row in found:
            if row["word"] == "took" and row["decoder"] != "emd_level":
                self.assertAlmostEqual(row["log_p_word"], expected[row["sentence"]][row["decoder"]][0][took], delta=2e-5)

    def test_positions_matter_to_one_decoder(self):
        """A level position changes the Enhanced Mask Decoder's answers, and nothing else changes the plain head's."""
        data = rows_of(json.loads(run("study", "decoder", DEMO, "--text", self.FRAME, "--json"))["data"])
        emd, level = ([r["log_p_word"] for r in data if r["decoder"] == d] for d in ("emd", "emd_level"))
        self.assertTrue(any(abs(a - b) > 1e-4 for a, b in zip(emd, level)))

    def test_without_positions(self):
        """Two masks in one sentence: the same state where a model has no positions at all, another where it has relative ones."""
        shape = "synthetic:v3-base,layers=2,hidden=64,heads=2,intermediate=64,vocab=97,lm=1"
        with tempfile.TemporaryDirectory() as folder:
            for terms, same in (("none", True), ("both", False)):
                path = os.path.join(folder, "o.safetensors")
                run("encode", f"{shape},terms={terms}", "--ids", "1,7,9,50,23,41,8,9,50,2", "--logits", "-o", path)
                tensors, _ = tensor_files.read(path)
                _, _, width = tensors["logits.mlm"].shape
                rows = [list(tensors["logits.mlm"].values[t * width:(t + 1) * width]) for t in (3, 8)]
                self.assertEqual(rows[0] == rows[1], same, terms)

    def test_bad_frames(self):
        for line, words in (("x", ["expected kind"]), ("verb\tno masks\ta/b", ["{1}", "no masks"]), ("verb\t{2} {1}\ta/b", ["{1}, then {2}"]),
                            ("verb\t{1} {2}\ta", ["word/word", "'a'"]), ("verb\t{1} <a {2}\tman/horse", ["<a|b>"]),
                            ("Verb\t{1} {2}\tman/horse", ["subject, verb, preposition or either", "'Verb'"]),
                            ("verb\t{1} {2}\tqwertyuiop/zxcvbnm", ["single tokens"])):
            err = run("study", "decoder", DEMO, "--text", line, code=3)
            for word in words:
                self.assertIn(word, err)

    def test_bad_lines_are_not_passed_over(self):
        with tempfile.TemporaryDirectory() as folder:
            for name, line, words in (("bad.jsonl", b'{"text": 3}', 'bad.jsonl, line 2: the value of "text" is not a text'),
                                      ("nul.txt", b"verb\t{1} {2}\tman/horse\0", "nul.txt, line 2: ")):
                path = os.path.join(folder, name)
                first = json.dumps({"text": self.FRAME}) if name.endswith("l") else self.FRAME
                with open(path, "wb") as file:
                    file.write(first.encode() + b"\n" + line + b"\n")
                self.assertIn(words, run("study", "decoder", DEMO, "--file", path, code=3))

    def test_bundled_items(self):
        """At least 500 items whose answer depends on the place, as docs/studies/decoder.md says."""
        found = json.loads(run("study", "decoder", DEMO, "--file", os.path.join(ROOT, "docs", "studies", "data", "decoder.txt"), "--json"))
        rows = {row["position of"]: row for row in rows_of(found["accuracy"])}
        self.assertEqual(rows["all three"]["items"], sum(rows[k]["items"] for k in ("subject", "verb", "preposition")))
        self.assertGreaterEqual(rows["all three"]["items"], 500)
        with open(os.path.join(ROOT, "docs", "studies", "decoder.md"), encoding="utf-8") as file:
            page = file.read()
        for row in rows.values():
            self.assertIn(row["head on H[L]"], page)
            self.assertIn(row["EMD - head"], page)


def main():
    global PROGRAM
    PROGRAM = os.path.abspath(sys.argv[1])
    return unittest_counts.run_tests()


if __name__ == "__main__":
    sys.exit(main())
