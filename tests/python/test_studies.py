"""The studies from outside: their command line and formats, and each study's numbers against an independent computation.

SPDX-License-Identifier: MIT
"""
import csv
import io
import json
import math
import os
import re
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from studies_bench import ROOT, rows_of, run
from deberta_c import _program
from helpers import DEMO, check, contains, equal, near, read_tensors

sys.path.append(str(ROOT / "studies"))
import study  # noqa: E402

TWIN = os.path.join(ROOT, "models", "demo-bert")

SENTENCES = ["The old chief stood stoical and silent.", "There came a break in the tall, cool pines.", "What put that into your simple head?"]


def test_wrong_use(bench):
    given = ("study", "components", DEMO, "--text", "a")
    contains(run(bench, "study", "components", code=2), "required: MODEL")
    contains(run(bench, "study", "components", DEMO, code=2), "no text: give --text or --file")
    contains(run(bench, *given, "--format", "xml", code=2), "--format", "'xml'")
    contains(run(bench, *given, "--data", "", code=2), "--data: unknown suffix in '', expected .csv")
    contains(run(bench, *given, "--data", "no/such/file", code=4), "cannot be written")
    contains(run(bench, *given, "--data", "st.foo", code=2), "--data: unknown suffix in 'st.foo', expected .csv")
    contains(run(bench, *given, "-o", "st.foo", code=2), "--out: unknown suffix in 'st.foo', expected .png, .svg, .pdf")
    contains(run(bench, *given, "--data", "a.csv", "-o", "a.svg", "-o", "./a.svg", code=2), "name the same file")
    contains(run(bench, *given, "--json", "--format", "csv", code=2), "give one of --format and --json")
    contains(run(bench, *given, "--sentences", "0", code=2), "--sentences: expected 1 or more, found 0")
    contains(run(bench, *given, "--precision", "int4", code=2), "precision: expected 'float32', 'int16' or 'int8', found 'int4'")
    contains(run(bench, *given, "--memory-limit", "1K", code=4), "components.py: ")
    for size in ("infK", "nanG", "-1M", "0K", "1e300T"):
        contains(run(bench, *given, f"--memory-limit={size}", code=2), f"--memory-limit: expected a size such as 500M or 2G, found {size}")
    contains(run(bench, "study", "components", "no/such", "--text", "a", code=3), "no/such")
    contains(run(bench, "study", "components", DEMO, "--file", "no/such", code=3), "no/such: cannot be opened")
    contains(run(bench, "study", "components", "synthetic:v3-base,layers=1,vocab=100", "--text", "a", code=2), "no tokenizer")
    contains(run(bench, "study", "components", TWIN, "--text", "a", "--mlm-decoder", "plain", code=2), "--mlm-decoder: ", "no loss is measured")
    shift = ("study", "shift", ROOT / "docs" / "studies" / "data" / "shift.csv", "--model", DEMO)
    contains(run(bench, *shift, code=2), "--model is of --measure and --quick")
    contains(run(bench, "study", "shift", "--measure", "--model", DEMO, "--model", f"{DEMO}/.", code=2), "two folders have one name", "demo")
    contains(run(bench, "study", "twins", DEMO, TWIN, "--text", "x " * 40000, code=3), "text 1: ", "positions")
    bench.path("bytes.txt").write_bytes(b"fine\n\xff\n")
    contains(run(bench, "study", "components", DEMO, "--file", "bytes.txt", code=3), "bytes.txt: line 2: expected UTF-8")
    for name, content, found in (("a.jsonl", "a\n", "the name of a file of objects"), ("a.JSON", "{}\n", "the name of a file of objects"),
                                 ("objects.txt", '\n{"text": "a"}\n', "an object in line 2"), ("mark.txt", '\ufeff{"text": "a"}\n', "an object in line 1")):
        bench.path(name).write_text(content, encoding="utf-8")
        contains(run(bench, "study", "components", DEMO, "--file", name, code=3), f"{name}: expected a sentence a line, found {found}; write out its texts first")
        bench.path(name).unlink()
    assert not [one for one in os.listdir(".") if one != "bytes.txt"], "nothing half written"


def test_the_program_says_where_they_went(bench):
    contains(run(bench, "encode", "--help"), "usage")
    done = subprocess.run([_program.PROGRAM, "study", "twins"], capture_output=True, text=True)
    assert done.returncode == 2 and "python3 studies/NAME.py" in done.stderr and not done.stdout


def test_every_study_has_a_command_and_every_page_a_study(bench):
    """A study is the script that names its command and its claim. A page of what it found may be there."""
    pages = Path(ROOT, "docs", "studies")
    index = (pages / "README.md").read_text(encoding="utf-8")
    names = {path.stem for path in Path(ROOT, "studies").glob("*.py") if "Puts to the test: " in path.read_text(encoding="utf-8")}
    assert len(names) >= 8
    for name in names:
        contains(run(bench, "study", name, "--help"), f"python3 studies/{name}.py")
    for page in pages.glob("*.md"):
        if page.stem != "README":
            contains(index, f"[{page.stem}]({page.name})")
        if page.stem not in ("README", "benchmarks"):  # a page, no script
            assert page.stem in names, page
            contains(page.read_text(encoding="utf-8"), f"python3 studies/{page.stem}.py")


def scripts():
    return [path for path in sorted(Path(ROOT, "studies").glob("*.py")) if "Puts to the test: " in path.read_text(encoding="utf-8")]


def test_a_missing_numpy_is_a_sentence(tmp_path):
    """Whatever a study imports first."""
    (tmp_path / "numpy.py").write_text("raise ModuleNotFoundError(\"No module named 'numpy'\")\n")
    for path in scripts():
        done = subprocess.run([sys.executable, path, "--help"], capture_output=True, text=True, env={**os.environ, "PYTHONPATH": str(tmp_path)})
        assert (done.returncode, done.stdout) == (1, "") and done.stderr == f"{path.name}: No module named 'numpy': studies need NumPy (pip install numpy)\n", done


def test_quick_keeps_results_that_are_there(bench):
    """In every study that has both, and beside --train as well; before anything is trained."""
    kept, found = bench.path("kept.csv"), []
    kept.write_bytes((b"kept,as\n" + b"it,is\n") * 3)
    content = kept.read_bytes()
    for path in scripts():
        asked = run(bench, "study", path.stem, "--help")
        if "--quick" in asked and "[RESULTS]" in asked:
            found.append(path.stem)
            for more in ([], ["--train", "state"])[:1 + ("--train" in asked)]:
                contains(run(bench, "study", path.stem, "kept.csv", "--quick", *more, code=2), f"{path.name}: kept.csv is there, and --quick does not write over it")
                assert kept.read_bytes() == content and not bench.path("state").exists(), path
    assert {"place", "reach", "released", "replaced", "seeds", "shift", "sift", "starts"} <= {*found}
    contains(run(bench, "study", "labels", "kept.csv", "--quick", code=2), "kept.csv is a file, and --quick asks the folder of a classifier")
    assert kept.read_bytes() == content


def test_scores_need_a_program(tmp_path):
    """A sentence and no half table."""
    script = [sys.executable, str(Path(ROOT, "models", "discriminator", "score_discriminator.py"))]
    for words, code, sentence in ((["no/program", "no/model"], 4, "score_discriminator.py: no/program: cannot be run: No such file or directory"),
                                  ([_program.PROGRAM, "no/model"], 3, "no/model: no such folder")):
        done = subprocess.run([*script, *words], cwd=tmp_path, capture_output=True, text=True)
        assert (done.returncode, done.stdout) == (code, "") and sentence in done.stderr and "Traceback" not in done.stderr, done


def test_output_that_cannot_be_written(bench):
    """A full disk is exit 4, and no file is left half written."""
    script = [sys.executable, str(Path(ROOT, "studies", "components.py")), DEMO, "--text", "a new store"]
    with open("/dev/full", "wb") as full:
        done = subprocess.run(script, stdout=full, stderr=subprocess.PIPE, text=True)
    assert done.returncode == 4 and "cannot be written" in done.stderr, done
    os.mkdir("closed", 0o555)
    if os.geteuid():
        contains(run(bench, *("study", "components", DEMO, "--text", "a", "--data", "closed/a.csv"), code=4), "cannot be written")


def test_splitmix():
    """The first numbers of a seed, one by one and many at once, are those of the definition."""
    for seed in (0, 1, 2 ** 64 - 1):
        expected = random_numbers(seed)
        one, many = study.Random(seed), study.Random(seed).many(5).tolist()
        assert many == [next(expected) for _ in range(5)] == [one.next() for _ in range(5)]
    assert study.Random(7).many_below([3, 5, 7], 3).tolist() == [(n >> 32) * c >> 32 for n, c in zip(random_numbers(7), (3, 5, 7))]


def test_bootstrap():
    """Percentiles of ratios over units that are drawn again, from their definition; units of one part of a ratio stay together."""
    parts, wholes = [1.0, 4.0, 2.0, 8.0], [1.0, 2.0, 3.0, 4.0]
    numbers, ratios = random_numbers(5), []
    for _ in range(study.RESAMPLES):
        drawn = [(next(numbers) >> 32) * 4 >> 32 for _ in range(4)]
        ratios.append(sum(parts[k] for k in drawn) / sum(wholes[k] for k in drawn))
    found = study.ratio(parts, wholes, seed=5)
    for a, b in zip(found, (1.5, sorted(ratios)[25], sorted(ratios)[974])):
        near(a, b, 1e-12)
    assert math.isnan(study.ratio([1.0], seed=1).low) and study.ratio([1.0, 1.0], seed=1) == (1, 1, 1)
    assert study.ratio([0.0, 0.0], [0.0, 0.0], seed=1) == (0, 0, 0)
    assert study.Estimate(1.5).show("%.1f (%.1f to %.1f)") == "1.5" and study.Estimate(1, 0, 2).mapped(lambda x: 1 - x) == (0, -1, 1)


def test_distance_bins():
    for r, name in {0: "itself", 1: "left 1", 2: "left 2", 3: "left 3..4", 4: "left 3..4", 5: "left 5..8", 32: "left 17..32", 33: "left 33..",
                    500: "left 33..", -1: "right 1", -4: "right 3..4", -9: "right 9..16", -600: "right 33.."}.items():
        equal(study.distance_name(int(study.distance_bin(r))), name)


def test_framework_formats_hold_the_same(bench):
    given = ("study", "components", DEMO, "--text", SENTENCES[0])
    data = run(bench, *given, "--format", "csv")
    run(bench, *given, "--data", "d.csv")
    with open("d.csv", encoding="utf-8", newline="") as file:
        equal(file.read(), data)
    from_json = rows_of(json.loads(run(bench, *given, "--json"))["data"])
    from_csv = list(csv.DictReader(io.StringIO(data)))
    equal(len(from_csv), len(from_json))
    for a, b in zip(from_csv, from_json):
        near(float(a["share"]), b["share"], 6e-7, a)
        for name in ("layer", "name"):
            check(isinstance(b[name], int) == a[name].isdigit() or a["group"] == "distance", (a, b))
    check(any(row["share"] != round(row["share"], 6) for row in from_json), "JSON has all digits")


def table_of_one_text(bench, path):
    with open(os.path.join(ROOT, "docs", "studies", "data", "grid.csv"), encoding="utf-8") as file:
        lines = [line for line in file if not line.startswith("#")][:2]
    with open(path, "w", encoding="utf-8") as file:
        file.writelines(lines)


def test_losses_one_text(bench):
    """One text has no spread, but it has differences; and the table may have any bytes for a name."""
    path = os.fsdecode(b"caf\xe9.csv")
    table_of_one_text(bench, path)
    found = json.loads(run(bench, "study", "grid", path, "--json"))
    contains(found["command"], "caf\ufffd.csv")
    for title in ("against full with decoder", "against positions at the input"):
        differences = [row[title] for row in rows_of(found["cells"])]
        equal(sum(d == 0 for d in differences), 1, differences)


def test_losses_a_nul_is_no_end(bench):
    path = "nul.csv"
    table_of_one_text(bench, path)
    with open(path, "ab") as file:
        file.write(b"\0\n")
    contains(run(bench, "study", "grid", path, code=3), "line 3: expected a number, found a NUL byte")


def distance_bin(r):
    """The name of a distance's bin."""
    size = abs(r)
    if not r:
        return "itself"
    names = {1: "1", 2: "2", 4: "3..4", 8: "5..8", 16: "9..16", 32: "17..32", 64: "33.."}
    edge = next((e for e in (1, 2, 4, 8, 16, 32) if size <= e), 64)
    return ("left " if r > 0 else "right ") + names[edge]


def squares_of_components(bench):
    """{(group, layer, name, term): sum} from the components that `encode` writes, by the formula in docs/studies/components.md."""
    found = {}
    path = "o.safetensors"
    for sentence in SENTENCES:
        run(bench, "encode", DEMO, "--text", sentence, "--component-layers", "all", "-o", path)
        for name, tensor in read_tensors(path)[0].items():
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


def test_components_shares(bench):
    squares = squares_of_components(bench)
    given = [a for s in SENTENCES for a in ("--text", s)]
    result = json.loads(run(bench, "study", "components", DEMO, *given, "--json"))
    compared = 0
    for row in rows_of(result["data"]):
        check(row["low"] <= row["share"] <= row["high"], row)
        place = (row["group"], row["layer"], str(row["name"]))
        if row["term"] == "p2p" or (*place, "c2c") not in squares:
            check(row["term"] == "p2p" or row["name"] in ("word", "punctuation", "continuation"), row)
            continue
        whole = sum(squares[(*place, term)] for term in ("c2c", "c2p", "p2c"))
        near(row["share"], squares[(*place, row["term"])] / whole, 2e-6, row)
        compared += 1
    assert compared > 5 * 4 * 3 + 6 * 9 * 3, compared
    classes = {row["token"] for row in rows_of(result["classes"])}
    equal(classes, {"special", "punctuation", "word", "continuation"})


def test_components_words_behind_punctuation(bench):
    """A word needs no space before it where it stands behind a quote, a bracket or a dash."""
    result = json.loads(run(bench, "study", "components", DEMO, "--text", "(a) “a” —a [I] ‘I’", "--json"))
    equal({row["token"] for row in rows_of(result["classes"])}, {"special", "punctuation", "word"})


def test_components_max_tokens(bench):
    note = json.loads(run(bench, "study", "components", DEMO, "--text", SENTENCES[0], "--max-tokens", "5", "--json"))["note"]
    contains(note, "1 sentences, 5 tokens")


def test_components_losses(bench):
    """The loss without p2p is the one that `study ablate` starts from."""
    given = ("--text", SENTENCES[0], "--text", SENTENCES[1], "--json")
    losses = rows_of(json.loads(run(bench, "study", "components", DEMO, *given))["losses"])
    equal([row["model"].split()[0] for row in losses], ["as", "with", "with"])
    note = json.loads(run(bench, "study", "ablate", DEMO, *given))["note"]
    contains(note, "Loss of the whole model: " + losses[0]["loss (nats)"].split()[0])
    assert losses[1]["change"] != losses[2]["change"]


def random_numbers(state):
    """splitmix64, from its definition."""
    while True:
        state = (state + 0x9E3779B97F4A7C15) % 2**64
        z = state
        z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9 % 2**64
        z = (z ^ z >> 27) * 0x94D049BB133111EB % 2**64
        yield z ^ z >> 31


def log_softmax(row):
    whole = math.log(sum(map(math.exp, row)))
    return [v - whole for v in row]


def masked_sentence(bench, seed):
    """Ids of SENTENCES[1], the same with masks as a study with this seed hides them, and where they are."""
    numbers = random_numbers(seed)
    tokens = json.loads(run(bench, "tokenize", DEMO, "--text", SENTENCES[1], "--json"))["ids"]
    masked, places = list(tokens), []
    for k in range(1, len(tokens) - 1):
        if (next(numbers) >> 11) * 2.0**-53 < 0.15:
            masked[k] = 5990
            places.append(k)
    assert places
    return tokens, masked, places


def test_ablate_effects(bench):
    """The losses from the logits of both heads that `encode --ablate` writes for the masked ids."""
    tokens, masked, places = masked_sentence(bench, 6)

    def logits(head, *extra):
        path = "o.safetensors"
        run(bench, "encode", DEMO, "--ids", ",".join(map(str, masked)), "--logits", "-o", path, *extra)
        tensor = read_tensors(path)[0]["logits." + head]
        width = tensor.shape[2]
        return [list(tensor.values[k * width:(k + 1) * width]) for k in places]

    def loss(rows):
        return sum(math.log(sum(math.exp(v) for v in row)) - row[tokens[k]] for k, row in zip(places, rows)) / len(rows)

    for kind, head, more in (("zero", "mlm_emd", ()), ("mean", "mlm_emd", ("--mlm-decoder", "emd")), ("zero", "mlm", ("--mlm-decoder", "plain"))):
        plain = logits(head)
        data = rows_of(json.loads(run(bench, "study", "ablate", DEMO, "--text", SENTENCES[1], "--kind", kind, "--seed", 6, *more, "--json"))["data"])
        equal(len(data), (5 * 4 + 1) * 3)
        for row in data[4:len(data):11]:
            changed = logits(head, "--ablate", "%s=%s@%s:%s" % (row["term"], kind, row["layer"], row["head"]))
            near(row["loss_change"], loss(changed) - loss(plain), 2e-5, row)
            moved = []
            for before, after in zip(plain, changed):
                mean = sum(after) / len(after) - sum(before) / len(before)
                moved.append(sum(abs(b - a - mean) for a, b in zip(before, after)) / len(before))
            near(row["logit_change"], sum(moved) / len(moved), 2e-5, row)
        shares = {(r["layer"], r["head"]): 0 for r in data}
        for row in data:
            shares[row["layer"], row["head"]] += row["share"] or 0
        assert all(abs(s - 1) < 1e-5 or "all" in place for place, s in shares.items())


def test_precision_numbers(bench):
    """Answers, losses and divergences from the logits that `encode --precision` writes for the masked ids."""
    tokens, masked, places = masked_sentence(bench, 6)

    def distributions(precision):
        run(bench, "encode", DEMO, "--ids", ",".join(map(str, masked)), "--logits", "--precision", precision, "-o", "o.safetensors")
        tensor = read_tensors("o.safetensors")[0]["logits.mlm_emd"]
        width = tensor.shape[2]
        rows = [list(tensor.values[k * width:(k + 1) * width]) for k in places]
        return [log_softmax(row) for row in rows]

    data = rows_of(json.loads(run(bench, "study", "precision", DEMO, "--text", SENTENCES[1], "--seed", 6, "--json"))["data"])
    found, exact = {(row["precision"], row["measure"]): row["value"] for row in data}, distributions("float32")
    for precision in ("float32", "int16", "int8"):
        rows = distributions(precision)
        answers, same = ([row.index(max(row)) for row in of] for of in (rows, exact))
        mean = lambda values: sum(values) / len(places)
        near(found[precision, "top1"], mean([a == tokens[k] for a, k in zip(answers, places)]), 1e-9)
        near(found[precision, "same_top1"], mean([a == b for a, b in zip(answers, same)]), 1e-9)
        near(found[precision, "loss"], mean([-row[tokens[k]] for row, k in zip(rows, places)]), 2e-5)
        divergence = mean([sum(math.exp(p) * (p - q) for p, q in zip(of, to)) for of, to in zip(exact, rows)])
        near(found[precision, "divergence"], divergence, 1e-6 + 1e-3 * divergence)
    check(0 == found["float32", "divergence"] < found["int16", "divergence"] < found["int8", "divergence"], found)
    contains(run(bench, "study", "precision", DEMO, "--text", "a", "--precision", "int8", code=2), "--precision", "float32 only")


def test_ablate_a_single_term(bench):
    """Where the scores have one term its share is always 1, and foretells nothing."""
    found = json.loads(run(bench, "study", "ablate", os.path.join(ROOT, "models", "demo-bert"), "--text", SENTENCES[0], "--json"))
    equal([(row["term"], row["rho"], row["95 %"]) for row in rows_of(found["prediction"])], [("c2c", None, None), ("all", None, None)])


def test_ablate_needs_a_head(bench):
    contains(run(bench, "study", "ablate", DEMO, "--text", "a", "--kind", "median", code=2), "--kind", "'median'")
    contains(run(bench, "study", "ablate", DEMO, "--text", "a", "--mlm-decoder", "best", code=2), "--mlm-decoder", "'best'")


def test_one_unit_has_no_interval(bench):
    """One sentence says nothing about others: no interval of width 0 is printed, and none is in the data."""
    for name, more in (("ablate", ()), ("components", ()), ("twins", (os.path.join(ROOT, "models", "demo-bert"),))):
        found = run(bench, "study", name, DEMO, *more, "--text", SENTENCES[0], "--data", "one.csv")
        assert found.count("A number without an interval was measured on one unit alone.") == 1, found
        assert "nan" not in found.lower(), found
        with open(bench.path("one.csv"), encoding="utf-8") as file:
            rows = list(csv.DictReader(file))
        low = next(name for name in rows[0] if name.endswith("low"))
        assert rows and not any(row[low] for row in rows), (name, rows[0])
        assert "without an interval" not in run(bench, "study", name, DEMO, *more, "--text", SENTENCES[0], "--text", SENTENCES[1])


@pytest.mark.parametrize("name, given", [
    ("ablate", (DEMO, "--text", SENTENCES[0])), ("components", (DEMO, "--text", SENTENCES[0], "--precision", "int16")),
    ("twins", (DEMO, TWIN, "--text", SENTENCES[0], "--layers", "1")), ("decoder", (DEMO, "--text", "verb\t{1} and {2}.\ttook/opened"))])
def test_figures(bench, name, given):
    """Each format, the note in the file, and the same bytes again."""
    pytest.importorskip("matplotlib")
    outs = [f"f.{suffix}" for suffix in ("svg", "png", "pdf")]
    note = bench.json("study", name, *given)["note"]
    for _ in range(2):
        run(bench, "study", name, *given, *(word for out in outs for word in ("-o", out)))
        made = [bench.path(out).read_bytes() for out in outs]
        assert b"<svg" in made[0] and made[1].startswith(b"\x89PNG") and made[2].startswith(b"%PDF")
    contains(made[0].decode(), note.split(".")[0][:40], f"studies/{name}.py")
    contains(made[1].decode("latin-1"), note.split(".")[0][:40])
    if "--precision" in given:
        contains(note, "Linear layers in int16.")
        # Attention of int8 keeps no projections of positions to read.
        contains(run(bench, "study", name, DEMO, "--text", SENTENCES[0], "--precision", "int8", code=3), "position projections of int8 are not kept")


def test_benchmarks_page_has_the_published_numbers():
    """Every number of the page's tables is one of the collected ones, of that model, and what is said of quotations is so."""
    folder = Path(ROOT, "docs", "studies")
    with open(folder / "data" / "benchmarks.csv", encoding="utf-8") as file:
        rows = list(csv.DictReader(line for line in file if not line.startswith("#")))
    assert all(row["source"] and row["verified"] in ("yes", "no") for row in rows if row["model"] != "quoted")
    published = {(f"{row['benchmark']} ({row['metric']})", row["model"]): row["value"] for row in rows if row["model"] != "quoted"}
    lines = [[cell.strip() for cell in line.strip("|").split("|")] for line in (folder / "benchmarks.md").read_text(encoding="utf-8").split("\n")
             if line.startswith("|")]
    models = next(cells[1:] for cells in lines if not cells[0] and cells[1].startswith("BERT"))
    compared = 0
    for name, *values in (cells for cells in lines if len(cells) == len(models) + 1 and cells[0] and set(cells[0]) > {"(", ")"}):
        for model, value in zip(models, values):
            equal(published.get((name, model), "-"), value, (name, model))
            compared += value != "-"
    assert compared > 30
    quoted = 0
    for name, of, value, shown, finding in (cells for cells in lines if len(cells) == 5 and re.match(r"\d", cells[2])):
        names = ["GLUE test (average)", "GLUE dev (average)"] if name == "GLUE (average)" else [name]
        equal(", ".join(published[one, of] for one in names if (one, of) in published) or "-", shown, (name, of))
        same = [key for key, known in published.items() if abs(float(known) - float(value)) < 0.05]
        true = {"as published": any(key[0] in names and key[1] == of for key in same), "not found": not any(key[0] in names for key in same)}
        where = re.fullmatch(r"of (.*?)(, dev)?|its (.*)", finding)
        assert true.get(finding, where and any(key[0] in names and key[1] == where.group(1) or key == (where.group(3), of) for key in same)), (name, of, finding)
        quoted += 1
    equal(quoted, 18, "scores that are quoted and not as published")


FRAME = "verb\tHe {1} his hat and {2} the <door|window>.\ttook/opened,took/closed"


def log_probabilities(bench, sentence, *extra):
    """[decoder][mask][word] from the logits that `encode` writes."""
    path = "o.safetensors"
    run(bench, "encode", DEMO, "--text", sentence, "--logits", "-o", path, *extra)
    tensors, _ = read_tensors(path)
    ids = json.loads(run(bench, "tokenize", DEMO, "--text", sentence, "--json"))["ids"]
    found = {}
    for decoder, name in (("plain", "logits.mlm"), ("emd", "logits.mlm_emd")):
        _, n, width = tensors[name].shape
        equal(n, len(ids))
        rows = [tensors[name].values[t * width:(t + 1) * width] for t in range(n) if ids[t] == 5990]
        found[decoder] = [log_softmax(row) for row in rows]
    return found


def test_decoder_probabilities(bench):
    found = json.loads(run(bench, "study", "decoder", DEMO, "--text", FRAME, "--json"))
    data = rows_of(found["data"])
    equal(len(data), 2 * 2 * 2 * 3)
    id_of = {w: json.loads(run(bench, "tokenize", DEMO, "--text", w, "--json"))["ids"][1] for w in ("took", "opened", "closed")}
    expected = {s: log_probabilities(bench, s) for s in sorted({row["sentence"] for row in data})}
    equal(sorted(expected), ["He [MASK] his hat and [MASK] the door.", "He [MASK] his hat and [MASK] the window."])
    right = {"plain": 0, "emd": 0, "emd_level": 0}
    for row in data:
        right[row["decoder"]] += row["log_p_word"] > row["log_p_other"]
        equal(row["word"] == "took", row["mask"] == 1)
        if row["decoder"] != "emd_level":
            at = expected[row["sentence"]][row["decoder"]][row["mask"] - 1]
            near(row["log_p_word"], at[id_of[row["word"]]], 2e-5)
            near(row["log_p_other"], at[id_of[row["other"]]], 2e-5)
    shown = next(row for row in rows_of(found["accuracy"]) if row["position of"] == "verb")
    equal(shown["items"], 8)
    unseen = next(row for row in rows_of(found["accuracy"]) if row["position of"] == "subject")
    equal([unseen[title] for title in ("items", "EMD", "EMD - head")], [0, None, None])
    for title, decoder in (("head on H[L]", "plain"), ("EMD", "emd"), ("EMD, one position", "emd_level")):
        equal(shown[title], f"{100 * right[decoder] / 8:.1f}")  # one frame has no interval
    assert all(row["with equal logits"] == 0 and row["sentences"] == 2 for row in rows_of(found["two_masks"]))


def test_decoder_ablated(bench):
    """Without the terms of the last layer both decoders answer as `encode --ablate` does."""
    found = rows_of(json.loads(run(bench, "study", "decoder", DEMO, "--text", FRAME, "--ablate", "c2p@4", "--json"))["data"])
    expected = {s: log_probabilities(bench, s, "--ablate", "c2p@4") for s in sorted({row["sentence"] for row in found})}
    contains(run(bench, "study", "decoder", DEMO, "--text", FRAME, "--ablate", "c2p@5", code=2), "ablation 0: layer 5")
    took = json.loads(run(bench, "tokenize", DEMO, "--text", "took", "--json"))["ids"][1]
    for row in found:
        if row["word"] == "took" and row["decoder"] != "emd_level":
            near(row["log_p_word"], expected[row["sentence"]][row["decoder"]][0][took], 2e-5)


def test_decoder_positions_matter_to_one_decoder(bench):
    """A level position changes the Enhanced Mask Decoder's answers, and nothing else changes the plain head's."""
    data = rows_of(json.loads(run(bench, "study", "decoder", DEMO, "--text", FRAME, "--json"))["data"])
    emd, level = ([r["log_p_word"] for r in data if r["decoder"] == d] for d in ("emd", "emd_level"))
    assert any(abs(a - b) > 1e-4 for a, b in zip(emd, level))


def test_decoder_control_without_relative_positions(bench):
    """Without the terms only the decoder's positions tell two masks apart, in every sentence: as the page says."""
    file = os.path.join(ROOT, "docs", "studies", "data", "decoder.txt")
    found = bench.json("study", "decoder", DEMO, "--file", file, "--ablate", "c2p@all,p2c@all")
    equal = {}
    for row in rows_of(found["two_masks"]):
        some, all_ = equal.get(row["decoder"], (0, 0))
        equal[row["decoder"]] = some + row["with equal logits"], all_ + row["sentences"]
    check(equal == {"head on H[L]": (272, 272), "EMD": (0, 272), "EMD, one position": (272, 272)}, equal)
    shown = next(row for row in rows_of(found["accuracy"]) if row["position of"] == "all three")
    with open(os.path.join(ROOT, "docs", "studies", "decoder.md"), encoding="utf-8") as page:
        contains(page.read(), "| " + " | ".join(str(value) for value in shown.values()) + " |")


def test_decoder_without_positions(bench):
    """Two masks in one sentence: the same state where a model has no positions at all, another where it has relative ones."""
    shape = "synthetic:v3-base,layers=2,hidden=64,heads=2,intermediate=64,vocab=97,lm=1"
    for terms, same in (("none", True), ("both", False)):
        path = "o.safetensors"
        run(bench, "encode", f"{shape},terms={terms}", "--ids", "1,7,9,50,23,41,8,9,50,2", "--logits", "-o", path)
        tensors, _ = read_tensors(path)
        _, _, width = tensors["logits.mlm"].shape
        rows = [list(tensors["logits.mlm"].values[t * width:(t + 1) * width]) for t in (3, 8)]
        equal(rows[0] == rows[1], same, terms)


def test_decoder_bad_frames(bench):
    for line, words in (("x", ["expected kind"]), ("verb\tno masks\ta/b", ["{1}", "no masks"]), ("verb\t{2} {1}\ta/b", ["{1}, then {2}"]),
                        ("verb\t{1} {2}\ta", ["word/word", "'a'"]), ("verb\t{1} <a {2}\tman/horse", ["<a|b>"]),
                        ("Verb\t{1} {2}\tman/horse", ["subject, verb, preposition or either", "'Verb'"]),
                        ("verb\t{1} {2}\tqwertyuiop/zxcvbnm", ["single tokens"])):
        err = run(bench, "study", "decoder", DEMO, "--text", line, code=3)
        for word in words:
            contains(err, word)


def test_decoder_bad_lines_are_not_passed_over(bench):
    bench.path("nul.txt").write_bytes(FRAME.encode() + b"\nverb\t{1} {2}\tman/horse\0\n")
    contains(run(bench, "study", "decoder", DEMO, "--file", "nul.txt", code=3), "nul.txt: line 2: ", "NUL")


def test_decoder_bundled_items(bench):
    """At least 500 items whose answer depends on the place, as docs/studies/decoder.md says."""
    found = json.loads(run(bench, "study", "decoder", DEMO, "--file", os.path.join(ROOT, "docs", "studies", "data", "decoder.txt"), "--json"))
    rows = {row["position of"]: row for row in rows_of(found["accuracy"])}
    equal(rows["all three"]["items"], sum(rows[k]["items"] for k in ("subject", "verb", "preposition")))
    assert rows["all three"]["items"] >= 500, rows["all three"]["items"]
    with open(os.path.join(ROOT, "docs", "studies", "decoder.md"), encoding="utf-8") as file:
        page = file.read()
    for row in rows.values():
        contains(page, row["head on H[L]"])
        contains(page, row["EMD - head"])


def test_trace_of_number(bench):
    """On a few sentences of our own: both runs are those of fill-mask, and the table is the sum over items of what its data has."""
    nouns = [("boy", "horses", "of the"), ("store", "boys", "of the"), ("horse", "boys", "of the"), ("boy", "horses", "who had seen the"), ("store", "boys", "that had the")]
    lines = [{"sentence_good": f"The {subject} {between} {other} {'was' if other.endswith('s') else 'were'} here.",
              "sentence_bad": f"The {subject} {between} {other} {'were' if other.endswith('s') else 'was'} here."} for subject, other, between in nouns]
    marked = {"sentence_good": "The boy who has the horses was here.", "sentence_bad": "The boy who has the horses were here."}  # the clause says the number
    with zipfile.ZipFile(bench.path("own.zip"), "w") as archive:
        for kind, some in (("relational_noun", lines[:3]), ("relative_clause", [*lines[3:], marked])):
            archive.writestr(f"data/distractor_agreement_{kind}.jsonl", "\n".join(map(json.dumps, some)))
    traced = ("study", "trace", "traced.csv", "--trace", DEMO, "--blimp", "own.zip", "--json")
    found, whole = json.loads(run(bench, *traced)), Path("traced.csv").read_text(encoding="utf-8")
    Path("traced.csv").write_text("".join(whole.splitlines(keepends=True)[:3]), encoding="utf-8")  # stopped after two items
    equal((json.loads(run(bench, *traced))["data"], Path("traced.csv").read_text(encoding="utf-8")), (found["data"], whole))
    contains(run(bench, "study", "trace", "none.csv", code=3), "none.csv: cannot be opened")
    data, table = rows_of(found["data"]), {row["from the clean run"]: row for row in rows_of(found["together"])}
    assert [(row["set"], row["line"]) for row in data] == [*(("relational_noun", k) for k in (1, 2, 3)), *(("relative_clause", k) for k in (1, 2))], found["note"]
    difference = sum(row["clean"] - row["corrupted"] for row in data)
    for name, title in (("c2c", "c2c"), ("c2p", "c2p"), ("p2c", "p2c"), ("terms", "all terms"), ("heads", "outputs of heads")):
        for column, prefix in (("subject and distractor exchanged", ""), ("control: another subject of the same number", "control_")):
            assert abs(sum(row[prefix + name] for row in data) / difference - float(table[title][column].split()[0])) < 1e-3, (name, column)
    assert abs(float(table["outputs of heads"]["subject and distractor exchanged"].split()[0]) - 1) < 1e-3
    clean = [log_odds(bench, line) for line in lines]
    assert sorted(round(row["clean"], 3) for row in data) == sorted(round(one, 3) for one in clean)


def log_odds(bench, line):
    """Of the right verb against the wrong one, by fill-mask."""
    (good, bad), = [pair for pair in zip(line["sentence_good"].split(), line["sentence_bad"].split()) if pair[0] != pair[1]]
    text = line["sentence_good"].replace(f" {good} ", " [MASK] ")
    found = {one["text"]: math.log(one["probability"]) for one in
             json.loads(run(bench, "fill-mask", DEMO, "--text", text, "--top", "1000", "--json"))["masks"][0]["candidates"]["emd"]}
    return found[good] - found[bad]
