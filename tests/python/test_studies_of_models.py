"""The studies that compare models: positions, twins, and on tables of losses grid and clipping.

SPDX-License-Identifier: MIT
"""
import array
import itertools
import json
import math
import os
import shutil
import struct

from studies_bench import ROOT, rows_of, run
from helpers import DEMO, Tensor, check, contains, equal, near, read_tensors, write_tensors

TWIN = os.path.join(ROOT, "models", "demo-bert")
DATA = os.path.join(ROOT, "docs", "studies", "data")
PHRASES = ["The old chief stood stoical and silent.", "What put that into your simple head?"]
AMOUNTS = (1, 16, 64)


def table_of(bench, *arguments):
    return rows_of(bench.json("study", *arguments)["data"])


def result_of(bench, name, *arguments):
    """The JSON of a study that several tests look at."""
    def make(path):
        path.write_text(bench.fine("study", name, *arguments, "--json").out, encoding="utf-8")
    return json.loads(bench.shared(name + ".json", make).read_text(encoding="utf-8"))


# --------------------------------------------------------------------------------------------------------- positions
# Against what `encode` writes for the same ids, by the formulas in docs/studies/positions.md.


def texts_of_positions():
    with open(os.path.join(DATA, "sentences.txt"), encoding="utf-8") as file:
        sentences = file.read().splitlines()
    # Longer than a phrase may be: they fill the windows of the probes alone.
    long = [" ".join(sentences[at:at + 12]) for at in range(0, 144, 12)]
    return [part for text in PHRASES + long for part in ("--text", text)]


def positions(bench, what, change, amount, model="demo"):
    rows = rows_of(result_of(bench, "positions", DEMO, TWIN, *texts_of_positions())["data"])
    return [row["value"] for row in rows if (row["model"], row["what"], row["change"], row["amount"]) == (model, what, change, amount)]


def encode(bench, ids):
    path = "o.safetensors"
    run(bench, "encode", DEMO, "--ids", ",".join(map(str, ids)), "--hidden", "all", "--attention-layers", "all", "-o", path)
    return read_tensors(path)[0]


def variants(bench, change, amount):
    """For every phrase: tensors alone, tensors with the change, its tokens, and how much later it begins."""
    phrases = [json.loads(run(bench, "tokenize", DEMO, "--text", p, "--json"))["ids"][1:-1] for p in PHRASES]
    for k, phrase in enumerate(phrases):
        following = list(itertools.islice(itertools.cycle(sum(phrases[k + 1:] + phrases[:k + 1], [])), amount))
        before, after = (following, []) if change == "before" else ([], following)
        changed = encode(bench, [1, *before, *phrase, *after, 2])
        yield encode(bench, [1, *phrase, 2]), changed, len(phrase), len(before)


def test_positions_hidden(bench):
    def distance(a, i, b, j, h=192):
        return sum((x - y) ** 2 for x, y in zip(a.values[i * h:(i + 1) * h], b.values[j * h:(j + 1) * h]))

    for change in ("before", "after"):
        moved, spread = [0] * 6, [0] * 6
        for alone, changed, n, later in variants(bench, change, 16):
            for layer in range(6):
                a, b = alone[f"hidden_states.{layer}"], changed[f"hidden_states.{layer}"]
                moved[layer] += sum(distance(a, 1 + i, b, 1 + later + i) for i in range(n)) / n
                pairs = list(itertools.combinations(range(1, n + 1), 2))
                spread[layer] += sum(distance(a, i, a, j) for i, j in pairs) / len(pairs)
        for found, m, s in zip(positions(bench, "hidden", change, 16), moved, spread, strict=True):
            near(found, (m / s) ** 0.5, 2e-6)


def test_positions_attention(bench):
    moved = [0] * 5
    for alone, changed, n, later in variants(bench, "before", 1):
        for layer, head, i in itertools.product(range(5), range(3), range(n)):
            def row(tensor, first):
                size = tensor.shape[-1]
                start = (head * size + first + i) * size + first
                part = tensor.values[start:start + n]
                return [p / sum(part) for p in part]
            a, b = row(alone[f"attn.{layer}.probs"], 1), row(changed[f"attn.{layer}.probs"], 1 + later)
            moved[layer] += 0.5 * sum(abs(x - y) for x, y in zip(a, b)) / (3 * n * len(PHRASES))
    for found, expected in zip(positions(bench, "attention", "before", 1), moved, strict=True):
        near(found, expected, 2e-6)


def test_positions_relative_positions_do_not_see_a_shift(bench):
    for amount in AMOUNTS:
        equal(positions(bench, "hidden", "ids later", amount), [0] * 6)
        equal(positions(bench, "attention", "ids later", amount), [0] * 5)
    probes = positions(bench, "probe", None, 0)
    equal(len(probes), 6)
    check(all(value < 0.5 for value in probes), probes)


def test_positions_absolute_positions_do(bench):
    """At H[0] a token is a word and a position, so it does not matter what makes the position larger."""
    for amount in AMOUNTS:
        later, before, after = (positions(bench, "hidden", change, amount, "demo-bert") for change in ("ids later", "before", "after"))
        check(all(value > 0.01 for value in later), later)
        equal((later[0], after[0]), (before[0], 0))
    assert positions(bench, "probe", None, 0, "demo-bert")[0] > 0.8


def shuffle(values, state):
    """Fisher and Yates from the end, drawn by splitmix64; the state after it."""
    whole = 2 ** 64 - 1
    for left in range(len(values), 1, -1):
        state = (state + 0x9E3779B97F4A7C15) & whole
        z = (state ^ state >> 30) * 0xBF58476D1CE4E5B9 & whole
        z = (z ^ z >> 27) * 0x94D049BB133111EB & whole
        other = ((z ^ z >> 31) >> 32) * left >> 32
        values[left - 1], values[other] = values[other], values[left - 1]
    return state


def half_tensors(path):
    """{name: Tensor in float32} of a safetensors file of float16, and its metadata left out."""
    with open(path, "rb") as file:
        (length,) = struct.unpack("<Q", file.read(8))
        header, body = json.loads(file.read(length)), file.read()
    found = {}
    for name, about in header.items():
        if name != "__metadata__":
            equal(about["dtype"], "F16")
            begin, end = about["data_offsets"]
            found[name] = Tensor("F32", about["shape"], array.array("f", struct.unpack(f"<{(end - begin) // 2}e", body[begin:end])))
    return found


def test_positions_control_is_the_model_with_shuffled_layers(bench):
    """--control finds in a model what the study finds in a copy whose matrices of the layers were shuffled here."""
    folder, state = bench.path("shuffled-twin"), 7
    shutil.copytree(TWIN, folder)
    tensors = half_tensors(os.path.join(TWIN, "model.safetensors"))
    for name in sorted(tensors):
        if "encoder.layer." in name and len(tensors[name].shape) == 2:
            state = shuffle(tensors[name].values, state)
    write_tensors(os.path.join(folder, "model.safetensors"), tensors)
    texts = texts_of_positions()
    control = bench.json("study", "positions", TWIN, *texts, "--control", "--seed", "7")
    found = rows_of(control["data"])
    expected = rows_of(result_of(bench, "positions", DEMO, TWIN, *texts)["data"])
    expected = [row["value"] for row in expected if row["model"] == "demo-bert"]
    equal([row["value"] for row in found if row["model"] == "demo-bert"], expected)
    shuffled = [row["value"] for row in rows_of(bench.json("study", "positions", folder, *texts, "--seed", "7")["data"])]
    equal([row["value"] for row in found if row["model"] == "demo-bert, shuffled"], shuffled)
    assert shuffled != expected
    equal(rows_of(control["control_hidden"])[0]["demo-bert, shuffled: after"], "0.000 (0.000-0.000)")


def test_positions_control_of_nothing_learned(bench):
    made_up = "synthetic:v3-base,layers=1,vocab=6000"
    found = run(bench, "study", "positions", DEMO, made_up, *texts_of_positions(), "--control", code=3)
    contains(found, made_up + ": a made-up model has learned nothing that shuffling could take away")


def test_positions_wrong_use(bench):
    few = ("study", "positions", DEMO, "--text", PHRASES[0])
    contains(run(bench, *few, code=3), "the probes need 20 windows of 126 tokens; these texts fill 0")
    other = run(bench, "study", "positions", DEMO, "synthetic:v3-base,layers=1,vocab=100", *texts_of_positions(), code=2)
    contains(other, "expected a model with the tokenizer of")
    contains(other, "found a vocabulary of 100 instead of 6000")


# ------------------------------------------------------------------------------------------------------------- twins
# Against the matrices that `encode` writes for the same sentences, by the definitions in docs/studies/twins.md.


def twins(bench):
    return result_of(bench, "twins", DEMO, TWIN, "--text", PHRASES[0], "--text", PHRASES[1])


def matrices(bench, model):
    """For every phrase: the number of tokens, and {component: [layer][head][query][key]}."""
    for phrase in PHRASES:
        path = "o.safetensors"
        run(bench, "encode", model, "--text", phrase, "--component-layers", "all", "--attention-layers", "all", "-o", path)
        tensors = read_tensors(path)[0]
        n = tensors["attn.0.probs"].shape[-1]
        cut = lambda name: [[[tensors[name].values[(h * n + i) * n:(h * n + i + 1) * n] for i in range(n)] for h in range(3)]]
        yield n, {part: [cut(f"attn.{layer}.{part}")[0] for layer in range(5)] for part in ("c2c", "c2p", "probs") if f"attn.0.{part}" in tensors}


def value(bench, model, what, layer, head, at=""):
    found = [r["value"] for r in rows_of(twins(bench)["data"]) if (r["model"], r["what"], r["layer"], str(r["head"]), str(r["at"] if r["at"] is not None else ""))
             == (model, what, layer, str(head), at)]
    equal(len(found), 1, (model, what, layer, head, at))
    return found[0]


def test_twins_heads(bench):
    for path, name in ((DEMO, "demo"), (TWIN, "demo-bert")):
        texts = list(matrices(bench, path))
        queries = sum(n for n, _ in texts)
        for layer in range(5):
            means = []
            for head in range(3):
                rows = [(i, row) for n, parts in texts for i, row in enumerate(parts["probs"][layer][head])]
                entropy = sum(-p * math.log2(p) for _, row in rows for p in row if p > 0) / queries
                offset = sum(p * (i - j) for i, row in rows for j, p in enumerate(row)) / queries
                near(value(bench, name, "entropy", layer, head), entropy, 2e-5)
                near(value(bench, name, "offset", layer, head), offset, 2e-5)
                means.append(entropy)
            near(value(bench, name, "entropy", layer, "all"), sum(means) / 3, 2e-5)


def test_twins_places_and_curves(bench):
    for path, name in ((DEMO, "demo"), (TWIN, "demo-bert")):
        texts = list(matrices(bench, path))
        own = sum(n - 2 for n, _ in texts)
        frame = sum(row[j] for n, parts in texts for head in parts["probs"][3] for row in head[1:-1] for j in (0, n - 1))
        near(value(bench, name, "place", 3, "all", "[CLS], [SEP]"), 100 * frame / own / 3, 1e-4)
        for part in ("c2c", "probs"):
            values = []
            for n, parts in texts:
                for head in parts[part][3]:
                    for i in range(3, n - 1):
                        row = head[i][1:-1]
                        values.append(row[i - 3] - (sum(row) / len(row) if part == "c2c" else 0))
            near(value(bench, name, part, 3, "all", "2"), sum(values) / len(values), 2e-5)
    assert not ([r for r in rows_of(twins(bench)["data"]) if r["model"] == "demo-bert" and r["what"] in ("c2p", "p2c")])


def test_twins_differences(bench):
    first = rows_of(twins(bench)["differences"])[2]
    expected = value(bench, "demo", "entropy", 2, "all") - value(bench, "demo-bert", "entropy", 2, "all")
    near(float(first["entropy (bits)"].split()[0]), expected, 0.006)


def test_twins_wrong_use(bench):
    contains(run(bench, "study", "twins", DEMO, TWIN, "--text", "a", "--ablate", "p2c@0", code=2), "no term p2c")
    contains(run(bench, "study", "twins", DEMO, TWIN, "--text", "a", "--layers", "5", code=2), "--layers")
    contains(run(bench, "study", "twins", DEMO, "--text", "a", code=2), "OTHER")


# ------------------------------------------------------------------------------------------------- tables of losses
# What is printed of them: a made-up one by its means, the committed ones by their pages.


CELLS = ["input/none"] + [f"{t}/{d}" for t in ("c2c", "c2c+c2p", "c2c+p2c", "full") for d in ("none", "emd")]


def write(path, columns):
    """Text t of column c has the loss c + 1 + t / 100, so column c has the mean c + 1.495 and every difference is whole."""
    with open(path, "w", encoding="utf-8") as file:
        file.write("# made up\n" + ",".join(columns) + "\n")
        for text in range(100):
            file.write(",".join(f"{c + 1 + text / 100:.2f}" for c in range(len(columns))) + "\n")


def test_losses_grid(bench):
    path = "grid.csv"
    write(path, [f"{cell}@64#{seed}" for seed in (1, 2) for cell in CELLS])
    rows = table_of(bench, "grid", path)
    equal(len(rows), 3 * len(CELLS))
    means = [row["value"] for row in rows if not row["against"]]
    # Columns k and k + 9 are the seeds of a cell; the page has the input's cell last.
    order = list(range(1, 9)) + [0]
    for k, mean in zip(order, means, strict=True):
        near(mean, k + 1.495 + 4.5, 1e-6)
    for k, row in zip(order, (r for r in rows if r["against"] == "positions at the input"), strict=True):
        equal((row["value"], row["low"], row["high"], row["seeds"]), (k, k, k, 2))
    run(bench, "study", "grid", path, "-o", "g.svg")
    write(path, [f"{cell}@64#1" for cell in [*CELLS, "full/level", "full-ji/none"]])  # controls: those that the file has
    added = [row for row in table_of(bench, "grid", path) if not row["against"]][len(CELLS):]
    equal([(row["terms"], row["positions"], round(row["value"], 3)) for row in added],
          [("c2c c2p p2c", "decoder without them", 10.495), ("c2c c2p p2c(j-i)", "none", 11.495)])


def test_losses_clipping(bench):
    distances = [2 ** k for k in range(1, 8)]
    columns = [f"k{k}@{n}" for k in distances for n in (64, 128, 256, 512)]
    columns += [f"k{k}@{n} clipped {r}" for k in distances for n in (128, 512) for r in distances if r < k]
    columns += [f"k{k}@{n} log" for k in distances[1:] for n in (128, 512)]
    path = "clipping.csv"
    write(path, columns)
    rows = table_of(bench, "clipping", path)
    place = {name: k for k, name in enumerate(columns)}
    readings = 0
    for row in rows:
        own = place[f"k{row['k']}@{row['context']}"]
        if row["what"] == "loss":
            near(row["value"], own + 1.495, 1e-6)
        elif row["what"] == "against k 128":
            equal(row["value"], own - place[f"k128@{row['context']}"])
        else:
            name = row["what"].replace("clipped at", "clipped").replace("log buckets", "log")
            equal(row["value"], place[f"k{row['k']}@{row['context']} {name}"] - own)
            readings += 1
    equal(readings, 2 * (sum(range(1, 7)) + 6))
    run(bench, "study", "clipping", path, "-o", "c.svg")


def test_losses_outputs(bench):
    """What is printed is what is committed, with which test_pages.py compares the pages."""
    for name in ("grid", "clipping"):
        with open(os.path.join(DATA, "outputs", name + ".txt"), encoding="utf-8") as file:
            equal(run(bench, "study", name, os.path.join(DATA, name + ".csv")).split(), file.read().split())


def test_losses_wrong_tables(bench):
    path = "t.csv"
    write(path, ["full/emd@64#1"])
    contains(run(bench, "study", "grid", path, code=3), "there is no column 'c2c/none@64#1'")
    contains(run(bench, "study", "clipping", path, code=3), "there is no column 'k2@64#1'")
    with open(path, "a", encoding="utf-8") as file:
        file.write("1,2\n")
    contains(run(bench, "study", "grid", path, code=3), "line 103: expected 1 losses, found 2")
    contains(run(bench, "study", "grid", "no/such/file", code=3), "cannot be opened")
