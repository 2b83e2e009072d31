"""Kinds of `attention` that compute something: their --numbers against the same measures computed here, one formula after the other, from
what `encode` exports. SPDX-License-Identifier: MIT
"""
import csv
import itertools
import json
import math
import os
import pathlib
import re
import subprocess

from helpers import DEMO, Picture, check_message, needs_figures, quantile, read_tensors, softmax

REQUIRES = (needs_figures,)
TEXT, OTHER = "a new store opened beside the new mall", "a new store opened behind the old mall"
LAYERS, HEADS, TERMS = 5, 3, ("c2c", "c2p", "p2c")
KINDS = ["grid", "mean", "rollout", "shares", "entropy", "distance", "delta", "difference", "query", "lines", "value-weighted"]


class Model:
    """What the demo computes for a text, as lists of rows: matrices[layer][head][name][query][key]."""

    def __init__(self, bench, text, name="x.safetensors", folder=None, terms=TERMS):
        bench.fine("encode", folder or DEMO, "--text", text, "--attention-layers", "all", "--component-layers", "all", "-o", name)
        tensors, _ = read_tensors(bench.path(name))
        self.n = n = tensors["attn.0.probs"].shape[-1]
        self.matrices = [[{part: [list(tensors[f"attn.{layer}.{part}"].values[(head * n + i) * n:(head * n + i + 1) * n]) for i in range(n)]
                           for part in terms + ("logits", "probs")} for head in range(HEADS)] for layer in range(LAYERS)]


def lines(bench, kind, *arguments, text=TEXT):
    """The lines of --numbers, numbers as floats; the figure is drawn too."""
    bench.fine("attention", kind, DEMO, "--text", text, *arguments, "--dpi", "50", "-o", "f.png", "--numbers", "f.csv")
    assert Picture.read(bench.path("f.png")).width > 50
    found = bench.table("f.csv")
    return [{k: v if k.endswith("label") else float(v) for k, v in line.items()} for line in found]


def near(found, expected, what, bound=2e-5):
    assert abs(found - expected) <= bound * max(1, abs(expected)), f"{what}: {found}, expected {expected}"


def place(line):
    return tuple(int(line[k]) for k in ("layer", "head", "query", "key") if k in line)


def mean(values):
    values = list(values)
    return sum(values) / len(values)


def of_terms(one, terms, i):
    return softmax([sum(one[t][i][j] for t in terms) for j in range(len(one["c2c"]))])


def divergence(p, q):
    return sum(a * math.log2(a / b) for a, b in zip(p, q))


def test_grid(bench):
    model = Model(bench, TEXT)
    for part in ("probs", "p2c"):
        found = lines(bench, "grid", "--components", part)
        assert len(found) == LAYERS * HEADS * model.n ** 2
        for line in found:
            layer, head, i, j = place(line)
            near(line[part], model.matrices[layer][head][part][i][j], place(line), 1e-7)


def test_means(bench):
    model = Model(bench, TEXT)
    found = lines(bench, "mean", "--layers", "1,3", "--heads", "0,2")
    assert len(found) == model.n ** 2
    for line in found:
        i, j = place(line)
        for part in TERMS + ("logits", "probs"):
            near(line[part], mean(model.matrices[layer][head][part][i][j] for layer in (1, 3) for head in (0, 2)), (part, i, j))


def test_rollout(bench):
    model = Model(bench, TEXT)
    n = model.n
    product, after = [[float(i == j) for j in range(n)] for i in range(n)], []
    for layer in model.matrices:
        step = [[0.5 * mean(head["probs"][i][j] for head in layer) + 0.5 * (i == j) for j in range(n)] for i in range(n)]
        product = [[sum(step[i][k] * product[k][j] for k in range(n)) for j in range(n)] for i in range(n)]
        after.append(product)
    found = lines(bench, "rollout", "--layers", "0,4")
    assert {int(line["layer"]) for line in found} == {0, 4} and len(found) == 2 * n * n
    for line in found:
        layer, i, j = place(line)
        near(line["rollout"], after[layer][i][j], place(line))


def expected_shares(one, n):
    covariance, variance = dict.fromkeys(TERMS, 0.0), 0.0
    for i in range(n):
        centred = {t: [v - mean(one[t][i]) for v in one[t][i]] for t in TERMS}
        total = [sum(centred[t][j] for t in TERMS) for j in range(n)]
        variance += sum(v * v for v in total)
        for t in TERMS:
            covariance[t] += sum(a * b for a, b in zip(centred[t], total))

    def lost(terms):
        return mean(divergence(of_terms(one, TERMS, i), of_terms(one, terms, i)) for i in range(n))
    orders, shapley = list(itertools.permutations(TERMS)), dict.fromkeys(TERMS, 0.0)
    for order in orders:
        for k, term in enumerate(order):
            shapley[term] += (lost(order[:k]) - lost(order[:k + 1])) / len(orders)
    return {t: (covariance[t] / variance, shapley[t], lost([s for s in TERMS if s != t])) for t in TERMS}, lost(())


def test_shares(bench):
    model = Model(bench, TEXT)
    found = lines(bench, "shares", "--layers", "0,2")
    assert [place(line) for line in found] == [(layer, head) for layer in (0, 2) for head in range(HEADS)]
    for line in found:
        layer, head = place(line)
        expected, uniform = expected_shares(model.matrices[layer][head], model.n)
        near(line["kl_uniform_bits"], uniform, place(line))
        for term in TERMS:
            for column, value in zip(("variance_share", "shapley_bits", "kl_bits"), expected[term]):
                near(line[f"{term}_{column}"], value, (term, column, layer, head))
        near(sum(line[f"{t}_variance_share"] for t in TERMS), 1, "shares")
        near(sum(line[f"{t}_shapley_bits"] for t in TERMS), uniform, "Shapley values")
    for measure, form in itertools.product(("variance", "shapley", "kl"), ("map", "bars")):
        assert lines(bench, "shares", "--layers", "0,2", "--measure", measure, "--form", form) == found


def test_entropy(bench):
    model = Model(bench, TEXT)
    n = model.n
    found = lines(bench, "entropy")
    assert len(found) == LAYERS * HEADS
    for line in found:
        rows = model.matrices[int(line["layer"])][int(line["head"])]["probs"]
        near(line["entropy_bits"], mean(-sum(p * math.log2(p) for p in row) for row in rows), place(line))
        near(line["mean_distance"], mean(sum(rows[i][j] * abs(i - j) for j in range(n)) for i in range(n)), place(line))
        near(line["mean_offset"], mean(sum(rows[i][j] * (i - j) for j in range(n)) for i in range(n)), place(line))


def test_entropy_scale(bench):
    """Two heads that hardly differ look so: colours go from 0 to the entropy of even attention."""
    bench.fine("attention", "entropy", DEMO, "--text", "a new store opened", "--layers", "2", "--heads", "0,1", "-o", "e.svg")
    svg = bench.read("e.svg")
    least = re.search(r">entropy \(bits\)</text>(.*)", svg, re.S)[1]
    numbers = [float(number) for number in re.findall(r">([0-9.]+)</text>", least)]
    assert min(numbers) == 0 and max(numbers) == 2.58, numbers  # log2(6)
    bench.fine("attention", "entropy", DEMO, "--text", "a new store opened", "--layers", "2", "--scale", "1,2", "-o", "e.svg")
    assert ">2.58</text>" not in bench.read("e.svg"), "limits that were asked for stay"


def test_distance(bench):
    model = Model(bench, TEXT)
    n = model.n
    found = lines(bench, "distance", "--layers", "2,3", "--heads", "1", "--ribbon", "0.2")
    assert len(found) == 2 * (2 * n - 1)
    for line in found:
        one, r = model.matrices[int(line["layer"])][int(line["head"])], int(line["distance"])
        assert line["count"] == n - abs(r) and line["centred"] == 1
        for part in TERMS + ("probs",):
            rows = [[v - (0 if part == "probs" else mean(row)) for v in row] for row in one[part]]  # as the figure draws them
            values = [rows[i][i - r] for i in range(n) if 0 <= i - r < n]
            for column, value in (("mean", mean(values)), ("median", quantile(values, 0.5)), ("low", quantile(values, 0.2)),
                                  ("high", quantile(values, 0.8))):
                near(line[f"{part}_{column}"], value, (part, column, r))
    raw = lines(bench, "distance", "--layers", "2", "--center", "none", "--components", "logits", "--statistic", "mean")
    assert {line["centred"] for line in raw} == {0}
    first = model.matrices[2][0]["logits"]
    near(raw[0]["logits_mean"], first[0][n - 1], "the key farthest to the right")
    near(raw[-1]["logits_mean"], first[n - 1][0], "the key farthest to the left")


def bucket(r, buckets=32, longest=512):
    """The demo's: every distance up to 16 has its own, then they widen."""
    size, middle = abs(r), buckets // 2
    if size > middle:
        size = middle + math.ceil(math.log(size / middle) / math.log((longest - 1) / middle) * (middle - 1))
    return size if r > 0 else -size


def test_bucket_edges(bench):
    """On the linear axis of 40 tokens the strokes stand where the bucket changes, beyond the distances that have their own."""
    expected = [r - 0.5 for r in range(-38, 40) if bucket(r - 1) != bucket(r) and (bucket(r - 2) == bucket(r - 1) or bucket(r) == bucket(r + 1))]
    bench.fine("attention", "distance", DEMO, "--ids", ",".join(str(7 + k) for k in range(40)), "--components", "c2p",
               "-o", "e.svg")
    picture = bench.read("e.svg")
    assert "Strokes at the top: bucket edges." in picture
    paths = [re.findall(r"[-\d.]+", d) for d in re.findall(r'<path d="([^"]*)"', picture)]
    curve = [float(v) for v in max(paths, key=len)[0::2]]
    first, last = min(curve), max(curve)
    strokes = [[float(v) for v in path] for path in paths if len(path) == 4 and path[0] == path[2] and 3.3 < float(path[3]) - float(path[1]) < 3.5]
    found = sorted(-39 + 78 * (x - first) / (last - first) for x, *_ in strokes)
    assert len(found) == len(expected) > 5, (found, expected)
    for a, b in zip(found, expected):
        near(a, b, "edge", 1e-3)
    bench.fine("attention", "distance", "synthetic:v3-base,layers=1,vocab=600", "--ids", ",".join(str(7 + k) for k in range(512)),
               "--components", "c2p", "-o", "e.svg")
    assert re.search(r"one in \d+ bucket edges", bench.read("e.svg"))


def test_delta(bench):
    model = Model(bench, TEXT)
    for line in lines(bench, "delta", "--layers", "2", "--heads", "0,1"):
        layer, head, i, j = place(line)
        one = model.matrices[layer][head]
        near(line["probs"], one["probs"][i][j], place(line))
        for term in TERMS:
            without = of_terms(one, [t for t in TERMS if t != term], i)
            near(line[f"delta_{term}"], one["probs"][i][j] - without[j], (term, *place(line)))


def test_difference(bench):
    model, other = Model(bench, TEXT), Model(bench, OTHER, "y.safetensors")
    found = lines(bench, "difference", "--text", OTHER, "--layers", "2", "--heads", "0,2")
    for line in found:
        layer, head, i, j = place(line)
        for part in TERMS + ("logits", "probs"):
            near(line[part], model.matrices[layer][head][part][i][j] - other.matrices[layer][head][part][i][j], (part, *place(line)))
    assert {"[CLS]", "beside/behind", "new/old", "new"} <= {line["key_label"] for line in found}
    swapped = lines(bench, "difference", "--text", OTHER, "--layers", "2", "--heads", "0,2", "--row", "1")
    assert all(a["c2c"] == -b["c2c"] for a, b in zip(found, swapped))
    bench.fine("attention", "difference", DEMO, "--text", TEXT, "--text", OTHER, "-o", "both.pdf", "--latex", "both.tex")
    assert TEXT in bench.read("both.tex") and OTHER in bench.read("both.tex")
    assert all(line["probs"] == 0 for line in lines(bench, "difference", "--minus", DEMO))
    twin = os.path.join(bench.root, "models", "demo-bert")  # no c2p, no p2c: what both models have is compared
    other = Model(bench, TEXT, "y.safetensors", twin, ("c2c",))
    for line in lines(bench, "difference", "--minus", twin, "--layers", "2"):
        layer, head, i, j = place(line)
        assert set(line) & set(TERMS) == {"c2c"}
        for part in ("c2c", "logits", "probs"):
            near(line[part], model.matrices[layer][head][part][i][j] - other.matrices[layer][head][part][i][j], (part, *place(line)))
    smaller = "synthetic:v3-xsmall,layers=2,heads=5,hidden=320,vocab=6000"  # another shape: layer 1, head 2 is in both
    assert lines(bench, "difference", "--minus", smaller, "--layers", "1", "--heads", "2", "--components", "probs")


def test_tokens_of_both_models(bench):
    """Ids must be the same tokens for the model that is subtracted: of a text that is refused, of ids it is noted. One text is drawn, and a note says which."""
    other, pieces = bench.path("exchanged"), pathlib.Path(DEMO, "spm.model").read_bytes()
    os.mkdir(other)
    for name in os.listdir(DEMO):
        if name != "spm.model":
            os.symlink(os.path.join(DEMO, name), os.path.join(other, name))
    first, second = "\u2581boys".encode(), "\u2581girl".encode()
    assert pieces.count(b"\n" + bytes([len(first)]) + first) == 1 and len(first) == len(second)
    at = [pieces.index(b"\n" + bytes([len(one)]) + one) + 2 for one in (first, second)]
    for place, one in zip(at, (second, first)):
        pieces = pieces[:place] + one + pieces[place + len(one):]
    pathlib.Path(other, "spm.model").write_bytes(pieces)
    ids = json.loads(bench.fine("tokenize", DEMO, "--text", "the boys sat", "--json").out)["ids"]
    numbers = ("--minus", other, "--numbers", "d.csv")
    check_message(bench.run("attention", "difference", DEMO, "--text", "the boys sat", *numbers), 2,
                  [f"--minus: the tokenizer of {other} reads the text otherwise: token 2 is '\u2581boys'", f"'\u2581boys' (id {ids[2]}) for {DEMO}", "--ids"])
    assert not os.path.exists(bench.path("d.csv"))
    assert "--minus" not in bench.fine("attention", "difference", DEMO, "--text", "the captain sat", *numbers).err
    said = bench.fine("attention", "difference", DEMO, "--ids", ",".join(map(str, ids)), *numbers).err
    assert f"--minus: id {ids[2]} is '\u2581boys' in {DEMO} and '\u2581girl' in {other}" in said, said
    assert "--minus" not in bench.fine("attention", "difference", DEMO, "--ids", ",".join(map(str, ids)), "--minus", DEMO, "--numbers", "e.csv").err
    os.remove(os.path.join(other, "spm.model"))
    os.remove(os.path.join(other, "added_tokens.json"))
    assert "exchanged has no tokenizer" in bench.fine("attention", "difference", DEMO, "--text", "the boys sat", *numbers).err
    twin = os.path.join(bench.root, "models", "demo-bert")
    for more, noted in (((), True), (("--row", "1"), False)):
        said = bench.fine("attention", "difference", DEMO, "--text", "the boys sat", "--text", "the captain sat", "--minus", twin, *more, "--numbers", "d.csv").err
        assert ("row 0 of 2 is drawn" in said) == noted, said


def test_query(bench):
    model = Model(bench, TEXT)
    found = lines(bench, "query", "--query", "3", "--layers", "1,2", "--heads", "1")
    assert len(found) == 2 * model.n and found[3]["key_label"] == "store" and {line["query_label"] for line in found} == {"store"}
    for line in found:
        layer, head, query, j = place(line)
        assert query == 3
        for part in TERMS + ("logits",):
            near(line[part], model.matrices[layer][head][part][3][j], (part, *place(line)), 1e-7)
    assert lines(bench, "query", "--query", "store", "--layers", "1,2", "--heads", "1") == found, "a word is its number"
    assert lines(bench, "query", "--query", "mall", "--words", "--layers", "1", "--heads", "1"), "a word of several pieces"


def test_line_view(bench):
    """The strong pairs are lines of the SVG, the weak ones are not."""
    model = Model(bench, TEXT)
    rows = model.matrices[2][1]["probs"]
    bench.fine("attention", "lines", DEMO, "--text", TEXT, "--layers", "2", "--heads", "1", "--cutoff", "0.5", "-o", "l.svg")
    bench.fine("attention", "lines", DEMO, "--text", TEXT, "--layers", "2", "--heads", "1", "--query", "4", "--cutoff", "0", "-o", "q.svg")
    top = max(max(row) for row in rows)
    strong = sum(p >= 0.5 * top for row in rows for p in row)
    for name, count in (("l.svg", strong), ("q.svg", model.n)):
        drawn = bench.read(name).split('"layer 2, head 1"')[1].split("</g>")[0].count("<path")
        assert drawn == count, f"{name}: {drawn} lines, expected {count}"
    # The strongest line of the legend is one of the drawn query, and the numbers are its own.
    bench.fine("attention", "lines", DEMO, "--text", TEXT, "--layers", "2", "--heads", "1", "--query", "4", "-o", "q.svg", "--numbers", "q.csv")
    assert f">{max(rows[4]):.3g}<" in bench.read("q.svg"), max(rows[4])
    assert {line["query"] for line in bench.table("q.csv")} == {"4"} and len(bench.table("q.csv")) == model.n


def rows_of(tensor):
    width = tensor.shape[-1]
    return [tensor.values[k:k + width] for k in range(0, len(tensor.values), width)]


def check_value_norms(bench, case, value_rows):
    """Layer 1, every head and key. value_rows(weights, head): the head's rows of W_v, and its bias."""
    folder = os.path.join(bench.golden, case)
    weights, _ = read_tensors(os.path.join(folder, "model.safetensors"))
    ids = ("--ids", "5,9,33,2,17,40")
    bench.fine("encode", folder, *ids, "--hidden", "all", "-o", "x.safetensors")
    hidden = rows_of(read_tensors(bench.path("x.safetensors"))[0]["hidden_states.1"])
    bench.fine("attention", "value-weighted", folder, *ids, "--layers", "1", "--heads", "all", "--numbers", "f.csv")
    found = bench.table("f.csv")
    output = rows_of(weights["encoder.layer.1.attention.output.dense.weight"])
    for line in found:
        head, key = int(line["head"]), int(line["key"])
        value = [sum(a * b for a, b in zip(row, hidden[key])) + bias for row, bias in value_rows(weights, head)]
        d = len(value)
        norm = math.sqrt(sum(sum(a * b for a, b in zip(row[head * d:(head + 1) * d], value)) ** 2 for row in output))
        near(float(line["value_weighted"]), float(line["probs"]) * norm, (case, head, key), 3e-6)
    assert len(found) == 36 * len({line["head"] for line in found}) > 36


def test_value_weighted(bench):
    """v1 keeps query, key and value of a head one after the other in one matrix, v2 a matrix for each."""
    def first(weights, head, d=12):
        rows, bias = rows_of(weights["encoder.layer.1.attention.self.in_proj.weight"]), weights["encoder.layer.1.attention.self.v_bias"].values
        return list(zip(rows[(3 * head + 2) * d:(3 * head + 3) * d], bias[head * d:(head + 1) * d]))

    def second(weights, head, d=12):
        rows, bias = rows_of(weights["encoder.layer.1.attention.self.value_proj.weight"]), weights["encoder.layer.1.attention.self.value_proj.bias"].values
        return list(zip(rows[head * d:(head + 1) * d], bias[head * d:(head + 1) * d]))
    check_value_norms(bench, "01-v1-both-n33", first)
    check_value_norms(bench, "11-v2-b4-n33-noshare", second)
    model = Model(bench, TEXT)
    for line in lines(bench, "value-weighted", "--layers", "2-3", "--heads", "0,1"):
        layer, head, i, j = place(line)
        near(line["probs"], model.matrices[layer][head]["probs"][i][j], place(line), 1e-7)


def test_token_numbers(bench):
    """Whatever is shown, data and axes count tokens of the text, as --mark and --query do."""
    pair = ("--pair", OTHER)
    whole = {place(line)[2:]: line for line in lines(bench, "components", *pair, "--components", "logits")}
    labels = [whole[0, j]["key_label"] for j in range(math.isqrt(len(whole)))]
    for shown in (["--drop-special"], ["--token-range", "4:9"], ["--token-range", "8:", "--drop-special"]):
        kept = range(*{"4:9": (4, 9), "8:": (8, len(labels))}.get(shown[1] if len(shown) > 1 else "", (0, len(labels))))
        kept = [t for t in kept if "--drop-special" not in shown or not labels[t].startswith("[")]
        found = lines(bench, "components", *pair, *shown, "--components", "logits")
        assert [place(line)[2:] for line in found] == [(i, j) for i in kept for j in kept], shown
        assert all(line["logits"] == whole[place(line)[2:]]["logits"] for line in found), shown
        keys = lines(bench, "query", *pair, *shown, "--query", str(kept[1]))
        assert [(line["key"], line["key_label"]) for line in keys] == [(t, labels[t]) for t in kept], shown
        for kind, axis in (("embeddings", "token"), ("mean", "query")):
            assert {line[axis] for line in lines(bench, kind, *pair, *shown)} == set(kept), (kind, shown)
        bench.fine("attention", DEMO, "--text", TEXT, *pair, *shown, "--numbers", "n.safetensors")
        assert json.loads(read_tensors(bench.path("n.safetensors"))[1]["key_numbers"]) == kept, shown
    words = lines(bench, "components", *pair, "--words", "--components", "logits")
    assert {labels[int(line["key"])]: line["key_label"] for line in words}["ma"] == "mall", "the first piece of a word"
    bench.fine("attention", DEMO, "--ids", ",".join(str(7 + k) for k in range(320)), "--token-range", "200:320", "--components", "probs", "-o",
               "n.svg")
    numbers = re.findall(r">(\d+)</text>", bench.read("n.svg"))
    assert numbers.count("300") == 2 and "50" not in numbers and "100" not in numbers, numbers


def test_numbers_of_heads(bench):
    """Where their labels do not fit, axes of heads and layers count those that were chosen."""
    bench.fine("attention", "entropy", "synthetic:v3-xsmall,layers=1,hidden=256,heads=16,intermediate=64,vocab=50", "--ids", "1,2,3",
               "--heads", "2-15", "--width-mm", "30", "-o", "h.svg")
    assert ">15</text>" in bench.read("h.svg")


def test_distances_across_gaps(bench):
    """What is left out leaves its place empty: distances and their bucket edges are those of the text. Words are counted in words."""
    pair = ("--pair", OTHER, "--drop-special", "--layers", "2", "--heads", "1")
    cells = {place(line)[2:]: line["probs"] for line in lines(bench, "components", *pair, "--components", "probs")}
    tokens = sorted({i for i, _ in cells})
    assert tokens != list(range(tokens[0], tokens[-1] + 1)), "the [SEP] between the texts is left out"
    found = lines(bench, "distance", *pair, "--components", "probs")
    assert [line["distance"] for line in found] == list(range(tokens[0] - tokens[-1], tokens[-1] - tokens[0] + 1))
    for line in found:
        values = [p for (i, j), p in cells.items() if i - j == line["distance"]]
        assert line["count"] == len(values), line
        near(line["probs_mean"], mean(values), line)
    for shown in (pair, ("--layers", "2", "--heads", "1", "--token-range", "2:7")):
        cells = {place(line)[2:]: line["probs"] for line in lines(bench, "components", *shown, "--components", "probs")}
        tokens, whole = sorted({i for i, _ in cells}), {i: sum(p for (q, _), p in cells.items() if q == i) for i, _ in cells}
        assert max(whole.values()) < 0.97, "rows of a part"
        cells = {(i, j): p / whole[i] for (i, j), p in cells.items()}
        (line,) = lines(bench, "entropy", *shown)
        near(line["entropy_bits"], -sum(p * math.log2(p) for p in cells.values()) / len(tokens), "entropy")
        near(line["mean_distance"], sum(p * abs(i - j) for (i, j), p in cells.items()) / len(tokens), "distance")
        near(line["mean_offset"], sum(p * (i - j) for (i, j), p in cells.items()) / len(tokens), "offset")
    words = lines(bench, "distance", *pair, "--words")
    assert len(words) == 2 * 2 * len(TEXT.split()) - 1, "all words of two texts of as many"
    bench.fine("attention", "entropy", DEMO, "--text", TEXT, "--words", "-o", "w.svg")
    assert "| (words)" in bench.read("w.svg")


def ends_of_bars(svg):
    """The numbers at the ends of the colour bars, in their order."""
    bars = re.findall(r'<g aria-label="colour bar">(.*?)</g>', svg, re.S)
    return [tuple(float(t.replace("\u2212", "-")) for t in re.findall(r">([^<]*)</text>", bar)[:2]) for bar in bars]


def test_limits_of_differences(bench):
    """Limits below zero are those of the terms and, where probabilities are all there is, theirs."""
    for components, expected in (("probs", [(-0.5, 0.5)]), ("c2c", [(-0.5, 0.5)]), ("c2c,probs", None)):
        bench.fine("attention", "difference", DEMO, "--text", TEXT, "--text", OTHER, "--components", components, "--scale",
                   "-0.5,0.5", "-o", "d.svg")
        found = ends_of_bars(bench.read("d.svg"))
        assert found == expected or (not expected and found[0] == (-0.5, 0.5) and found[1][0] == -found[1][1] != -0.5), (components, found)


def test_limits_that_nothing_takes(bench):
    """An option that a figure would leave aside is refused."""
    pair = ("difference", "--text", OTHER)
    for words, kind, *arguments in ((["--scale", "logarithmic", "'0,1'"], "components", "--components", "probs", "--log", "--scale", "0,1"),
                              (["--scale", "below 0", "signed"], "grid", "--components", "probs", "--scale", "-1,1"),
                              (["--scale", "without negative values"], "grid", "--components", "c2p", "--scale", "0,1"),
                              (["--scale", "without negative values"], "embeddings", "--scale", "0,1"),
                              (["--scale", "both signs", "'0,0.5'"], *pair, "--components", "probs", "--scale", "0,0.5"),
                              (["--scale", "both signs"], *pair, "--components", "c2c", "--scale", "0,2"),
                              *((["--" + name, "--form map"], "shares", "--form", "bars", "--" + name, *value) for name, *value in (
                                  ("scale", "robust"), ("palette", "magma"), ("signed-palette", "polar"), ("annotate",)))):
        check_message(bench.run("attention", kind, DEMO, "--text", TEXT, *arguments, "-o", "w.png"), 2, words)
        assert bench.files() == [], bench.files()
    lines(bench, "grid", "--components", "probs", "--scale", "0,1")
    lines(bench, "components", "--components", "probs", "--log", "--scale", "0.001,1")


def test_shown_tokens(bench):
    """Words and left out tokens: what adds up over keys does so after merging; measures are taken on what is shown."""
    whole, words = lines(bench, "rollout", "--layers", "4"), lines(bench, "rollout", "--layers", "4", "--words")
    assert words[-2]["key_label"] == "mall"
    near(words[0]["rollout"], whole[0]["rollout"], "unmerged cell")
    near(sum(line["rollout"] for line in words if line["query"] == 0), 1, "row of words")
    merged = [line["rollout"] for line in words if line["query"] == 0 and line["key_label"] == "mall"]
    near(merged[0], sum(line["rollout"] for line in whole if line["query"] == 0 and line["key_label"] in ("ma", "ll")), "mall")
    deltas = lines(bench, "delta", "--words")
    near(sum(line["delta_c2p"] for line in deltas if line["query"] == 0), 0, "changes of a row")
    shown = lines(bench, "shares", "--drop-special", "--layers", "0", "--heads", "0")[0]
    near(sum(shown[f"{t}_variance_share"] for t in TERMS), 1, "shares without special tokens")
    assert shown != lines(bench, "shares", "--layers", "0", "--heads", "0")[0]


def test_every_model(bench):
    """Kinds draw what a model has: no position terms, one token, talking heads, a hole in the mask."""
    needs_figures(bench)
    bench.write("hole.json", json.dumps({"input_ids": [[1, 7, 9, 3, 2]], "attention_mask": [[1, 1, 0, 1, 1]]}))
    cases = (["{G}/04-v1-plain-posbias-types", "--ids", "1,7,3"], ["{G}/08-v1-talking-head", "--ids", "1,7,3"], ["{G}/28-v3-n1", "--ids", "1"],
             ["{G}/11-v2-b4-n33-noshare", "--input", "hole.json"])
    for model, *source in cases:
        model = model.replace("{G}", bench.golden)
        for kind in KINDS:
            more = {"query": ["--query", "0"], "difference": ["--minus", model]}.get(kind, [])
            bench.fine("attention", kind, model, *source, *more, "--dpi", "50", "-o", "a.png", "--numbers", "a.csv")
            with open(bench.path("a.csv"), encoding="utf-8") as file:
                numbers = [cell for line in csv.reader(file) for cell in line]
            assert len(numbers) > 1 and "inf" not in numbers, f"{model}: {kind}"
            nothing_varies = kind == "shares" and "28-v3-n1" in model
            assert ("nan" in numbers) == nothing_varies, f"{model}: {kind}: {numbers}"
            if kind == "distance" and "hole.json" in source:
                assert numbers[numbers.index("-1") + 1] == "2", "pairs with the hole in the mask count"


def test_repeatable(bench):
    for kind in KINDS:
        more = {"query": ["--query", "1"], "difference": ["--text", OTHER]}.get(kind, [])
        seen = []
        for name in ("a.png", "b.png"):
            bench.fine("attention", kind, DEMO, "--text", TEXT, *more, "--dpi", "60", "-o", name)
            seen.append(bench.bytes(name))
        assert seen[0] == seen[1], f"{kind}: the same command gives other bytes"


def test_wrong_use(bench):
    def wrong(words, kind, *arguments, code=2, text=TEXT):
        check_message(bench.run("attention", kind, DEMO, "--text", text, *arguments, "-o", "w.png", "--numbers", "w.csv"), code, words)
        assert bench.files() == [], bench.files()
    wrong(["--components", "one of them", "found 2"], "grid", "--components", "c2c,probs")
    wrong(["not one for each panel"], "grid", "--scale", "panel")
    wrong(["--measure", "'entropy'", "shapley"], "shares", "--measure", "entropy")
    wrong(["--form", "'pie'", "bars"], "shares", "--form", "pie")
    wrong(["attention grid: --measure", "these do: attention shares"], "grid", "--measure", "kl")
    wrong(["--statistic", "'mode'", "median"], "distance", "--statistic", "mode")
    wrong(["--ribbon", "0 to 0.5", "found 0.7"], "distance", "--ribbon", "0.7")
    wrong(["--ribbon", "'x'"], "distance", "--ribbon", "x")
    wrong(["difference", "two texts", "--minus", "1 text"], "difference")
    wrong(["equally many tokens", "11 and 4"], "difference", "--text", "two words")
    smaller = "synthetic:v3-xsmall,layers=2,hidden=128,heads=2,vocab=6000"
    wrong(["--layers", "layers=2", "no layer 2"], "difference", "--minus", smaller, "--layers", "2")
    wrong(["--heads", "no head 2"], "difference", "--minus", smaller, "--heads", "2")
    twin = os.path.join(bench.root, "models", "demo-bert")
    wrong(["--components", "demo-bert has no p2c", "both models have c2c, logits and probs\n"], "difference", "--minus", twin,
          "--components", "probs,p2c")
    wrong(["has no c2p", "logits and probs, p2c\n"], "difference", "--minus", smaller + ",terms=p2c", "--components", "c2p,p2c")
    wrong(["--minus", "6000"], "difference", "--minus", "synthetic:v3-xsmall,layers=5,heads=3,hidden=192,vocab=50")
    wrong(["nowhere"], "difference", "--minus", "nowhere", code=3)
    wrong(["--query WORD", "--query I"], "query")
    wrong(["--query", "'new' is shown 2 times", "--query 2 is the first, 7 the next"], "query", "--query", "new")
    wrong(["--query", "no token that is shown is 'mall'", "--words"], "lines", "--query", "mall")
    wrong(["--query", "no word that is shown is 'sea'"], "lines", "--query", "sea", "--words")
    wrong(["--query", "token 99999999999999999999 is not shown"], "query", "--query", "99999999999999999999")
    wrong(["--query", "99", "11"], "query", "--query", "99")
    wrong(["--query", "0 is not shown"], "lines", "--query", "0", "--drop-special")
    wrong(["--cutoff", "0 to 0.99", "found 1"], "lines", "--cutoff", "1")
    wrong(["--cutoff", "'nan'"], "lines", "--cutoff", "nan")
    wrong(["--components", "no common scale"], "lines", "--components", "c2c,probs")
    wrong(["side by side", "fewer"], "lines", "--layers", "all", "--heads", "all", "--layout", "24")


def test_ablated(bench):
    """A figure of an intervention says so wherever it goes; before minus after is the model minus the ablated one, cell by cell."""
    part = ["--text", TEXT, "--layers", "2,3", "--heads", "1"]
    bench.fine("attention", DEMO, *part, "--ablate", "c2p@2:1", "-o", "a.svg", "-o", "a.png", "--latex", "a.tex")
    svg = bench.read("a.svg")
    for words in (">ablated: c2p@2:1</text>", ">Ablated: c2p@2:1.</text>", ">c2p (ablated)</text>", ">c2p</text>", ">all 0</text>"):
        assert words in svg, words
    assert "Ablated: c2p@2:1." in bench.read("a.tex")
    bench.fine("attention", "difference", DEMO, *part, "--ablate", "c2p@2:1", "--numbers", "d.csv", "-o", "d.svg")
    for name, more in (("before", []), ("after", ["--ablate", "c2p@2:1"])):
        bench.fine("attention", DEMO, *part, *more, "--numbers", name + ".csv")
    tables = [list(csv.DictReader(bench.read(name + ".csv").splitlines())) for name in ("d", "before", "after")]
    moved = 0
    for difference, before, after in zip(*tables, strict=True):
        for name in ("c2c", "c2p", "p2c", "logits", "probs"):
            near(float(difference[name]), float(before[name]) - float(after[name]), (name, place(difference)), 1e-6)
        moved += abs(float(difference["probs"])) > 1e-3
    assert moved > 50, moved
    svg = bench.read("d.svg")
    assert "before minus after ablating c2p@2:1" in svg and svg.count(">identical</text>") == 2, "c2c and p2c of the ablated layer do not change"
    bench.fine("attention", "difference", DEMO, "--text", TEXT, "--layers", "all", "--heads", "1", "--ablate", "c2p@2:1", "-o", "f.svg")
    svg = bench.read("f.svg")
    assert "identical in layer 0, head 1; layer 1, head 1." in svg, "what comes before the ablation is said"
    assert [f">layer {k}, head 1</text>" in svg for k in range(5)] == [False, False, True, True, True], "and not drawn"
    twice = ["--minus", DEMO, "--minus-ablate", "c2p@2:1"]
    bench.fine("attention", "difference", DEMO, *part, *twice, "--numbers", "e.csv")
    assert bench.read("e.csv") == bench.read("d.csv"), "--minus-ablate is of the other side alone"
    said = bench.fine("attention", "difference", DEMO, *part, "--ablate", "c2p@2:1", *twice, "-o", "i.svg").err
    assert "both sides are identical" in said and "Both sides are identical." in bench.read("i.svg")
    check_message(bench.run("attention", "difference", DEMO, *part, "--minus-ablate", "c2p@0", "-o", "x.svg"), 2, ["--minus-ablate needs --minus"])
    check_message(bench.run("attention", "difference", DEMO, *part, *twice[:3], "c9p@0", "-o", "x.svg"), 2, ["--minus-ablate", "'c9p@0'"])


def test_narrow_columns(bench):
    """Words stay readable in one column; where they cannot, the program says what would."""
    text = "The committee could not agree on who should lead it this year"
    ask = [DEMO, "--text", text, "--words", "--drop-special", "--components", "c2c,c2p,p2c"]
    said = bench.fine("attention", *ask, "--width-mm", "85", "--layout", "3", "-o", "a.svg").err
    svg = bench.read("a.svg")
    assert not said and svg.count(">committee</text>") == 4 and ">c2p</text>" in svg and ">content to position</text>" not in svg
    assert min(float(size) for size in re.findall(r'font-size="([\d.]+)"', svg)) >= 5
    said = bench.fine("attention", *ask, "--width-mm", "60", "--layout", "3", "-o", "b.svg").err
    assert "do not fit at 60 mm" in said and "--layout " in said, said
    columns = re.search(r"--layout (\d+)", said).group(1)
    assert not bench.fine("attention", *ask, "--width-mm", "60", "--layout", columns, "-o", "c.svg").err and ">committee</text>" in bench.read("c.svg")
    bench.fine("attention", *ask, "--no-notes", "--font-size", "9", "-o", "d.svg", "--latex", "d.tex", "-o", "d.pdf")
    svg = bench.read("d.svg")
    assert "Pieces are merged" not in svg and "Pieces are merged" in bench.read("d.tex")
    assert 'font-size="9"' in svg


def test_pieces(bench):
    """A piece inside a word is marked in the picture, not in the data; what the model does not know is grey."""
    bench.fine("attention", DEMO, "--text", "a mall, \u65e5\u672c", "-o", "p.svg", "--numbers", "p.csv")
    svg = bench.read("p.svg")
    for label, fill in (("ma", "141414"), ("\u00b7ll", "141414"), ("[CLS]", "919191")):
        assert re.search(f'fill="#{fill}"[^>]*>{re.escape(label)}</text>', svg), label
    labels = {line["key_label"] for line in csv.DictReader(bench.read("p.csv").splitlines())}
    assert {"ma", "ll", ","} <= labels and not any(label.startswith("\u00b7") for label in labels), labels
    unknown = labels - {"[CLS]", "[SEP]", "a", "ma", "ll", ","}
    assert unknown and all(re.search(f'fill="#919191"[^>]*>{re.escape(label)}</text>', svg) or label == "\u2581" for label in unknown), unknown


def test_blocks(bench):
    """Heads keep together, and tokens stand once beside each line and once under each column."""
    ask = ["--text", TEXT, "--layers", "2", "--heads", "0,1"]
    heads = [">layer 2, head 0</text>", ">layer 2, head 1</text>"]
    for width, lines, columns in (("174", 2, 5), ("85", 4, 3)):
        said = bench.fine("attention", DEMO, *ask, "--pieces", "--width-mm", width, "-o", "h.svg").err
        svg = bench.read("h.svg")
        assert not said and all(svg.count(head) == 1 for head in heads), said
        assert svg.count(">store</text>") == lines + columns, (width, svg.count(">store</text>"))
        height = float(re.search(r' height="([\d.]+)mm"', svg).group(1))
        assert height < 260, height
    bench.fine("attention", DEMO, *ask[:-1], "all", "--components", "c2p", "-o", "f.svg")
    svg = bench.read("f.svg")
    assert "c2p, logit (scaled by 1/√(3d)), row mean" in svg and all(f">layer 2, head {k}</text>" in svg for k in range(3)), "one after the other"
    tops = re.findall(r'<text[^>]* y="([\d.]+)"[^>]*>layer 2, head \d</text>', svg)
    assert len(set(tops)) == 1, ("side by side", tops)


def test_cropped(bench):
    """The page ends where the figure does, and LaTeX is told."""
    bench.fine("attention", "entropy", DEMO, "--text", TEXT, "-o", "e.svg", "-o", "e.pdf", "--latex", "e.tex")
    width = float(re.search(r'width="([\d.]+)mm"', bench.read("e.svg")).group(1))
    assert 90 < width < 130, width
    svg = bench.read("e.svg")
    assert re.search(r">\d\.\d\d</text>", svg), "heads are few enough for numbers"
    assert abs(float(re.search(r"width=.ifdim([\d.]+)mm", bench.read("e.tex")).group(1)) - width) < 0.01


def test_anonymous(bench):
    outputs = ["-o", "a.png", "-o", "a.svg", "-o", "a.pdf", "--latex", "a.tex"]
    commands = [["attention", "difference", DEMO, "--text", TEXT, "--minus", DEMO + "-bert", "--numbers", "a.safetensors"], ["attribute", DEMO, "--text", TEXT, "--steps", "4"]]
    for command, more in itertools.product(commands, ([], ["--anonymous"])):
        bench.fine(*command, "--title", "T", *more, *outputs)
        assert not re.search(r">[^<]*-\d[^<]*</text>", bench.read("a.svg")), "a hyphen for a minus"
        for name in ["a.png", "a.svg", "a.pdf", "a.tex"] + ["a.safetensors"] * (command[0] == "attention"):
            data = bench.bytes(name)
            if name == "a.pdf":  # newer versions of cairo compress what it says of itself
                data = subprocess.run(["pdfinfo", bench.path(name)], capture_output=True, check=True).stdout
            shown = [word for word in (b"demo", TEXT.encode(), b"--text") if word in data]
            assert bool(shown) != bool(more), (name, more, shown)


def test_two_spellings(bench):
    """A kind is a command; without a word it is components."""
    bench.fine("attention", "components", DEMO, "--text", TEXT, "--numbers", "d.csv")
    bench.fine("attention", DEMO, "--text", TEXT, "--numbers", "e.csv")
    assert bench.read("d.csv") == bench.read("e.csv")


def test_figures_beyond_a_page(bench):
    """Are drawn as asked for, and said to be; what a page of text holds is never said to be too high."""
    column = ["mean", DEMO, "--text", f"{TEXT} {TEXT} a new store opened", "--width-mm", "85"]
    for words, least, most in (([DEMO, "--text", "a new store", "--layers", "all", "--heads", "all"], 240, 2000),
                               ([DEMO, "--text", "a new store", "--layers", "0", "--heads", "all"], 0, 240), (column, 0, 240)):
        said = bench.fine("attention", *words, "-o", "a.svg").err
        height = float(re.search(r'<svg[^>]* height="([0-9.]+)mm"', bench.read("a.svg"))[1])
        assert least < height < most, f"{words}: {height}"
        assert (f"{height:.0f} mm high, more than a page of text" in said) == (height > 240), f"{words}: {height}: {said}"


def outside(svg):
    """Level texts of a drawing that go beyond an edge of its page, with their ends in points."""
    page, found = float(re.search(r'viewBox="0 0 ([\d.]+)', svg)[1]), []
    for attributes, text in re.findall(r"<text ([^>]*)>([^<]*)", svg):
        given = dict(re.findall(r'([\w-]+)="([^"]*)"', attributes))
        if "x" in given and "transform" not in given:
            wide = float(given["textLength"])
            low = float(given["x"]) - {"middle": wide / 2, "end": wide}.get(given.get("text-anchor"), 0)
            found += [(text, low, low + wide, page)] * (low < -0.05 or low + wide > page + 0.05)
    return found


def test_no_text_leaves_the_page(bench):
    """In figures as narrow as they may be and with type as large, a kind refuses, or all of its words are on the page."""
    more = {"components": ["--layers", "0", "--heads", "0"], "query": ["--query", "store"], "difference": ["--ablate", "c2p=zero@all"],
            "trace": ["--corrupted", OTHER]}
    for kind in [*KINDS, "components", "four-types", "kernel", "embeddings", "error", "trace"]:
        drawn = 0
        for width, points in ((30, 5), (30, 7), (30, 12), (40, 24), (85, 24)):
            done = bench.run("attention", kind, DEMO, "--text", TEXT, *more.get(kind, []), "--width-mm", width, "--font-size", points, "-o", "page.svg")
            if done.code:
                check_message(done, done.code, ["wider figure"])
                continue
            drawn += 1
            assert not outside(bench.bytes("page.svg").decode()), (kind, width, points)
        assert drawn > 1, kind


def test_row_titles(bench):
    """A title that has no room beside its row stands above it, whole."""
    bench.fine("attention", "delta", DEMO, "--text", "a new store opened", "--layers", "2", "--heads", "0,1", "--width-mm", "85", "-o", "d.svg")
    for head in (0, 1):
        assert f">layer 2, head {head}</text>" in bench.read("d.svg"), head


def test_an_option_that_a_kind_takes_changes_its_numbers(bench):
    """What chooses layers, heads or tokens is followed, or the kind does not take it: the numbers would be of something else than was asked."""
    kinds = [line.split()[1] for line in bench.fine("attention", "--help").out.splitlines() if line.startswith("  attention ") and line.split()[1] != "trace"]
    assert len(kinds) >= 15, kinds
    text = "When the old captain resigned unhappily, his daughter took the ship to sea again."
    for kind in kinds:
        others = {"difference": ["--ablate", "c2p@1"], "query": ["--query", "3"]}.get(kind, [])
        taken = bench.fine("attention", kind, "--help").out

        def numbers(*options):
            bench.fine("attention", kind, DEMO, "--text", text, *others, *options, "--numbers", "n.csv", "-q", "-o", "o.svg")
            return bench.read("n.csv")

        of_heads = ["--layers", "1,2", "--heads", "0,1"] if "--heads LIST" in taken else []
        pieces = ["--pieces"] if "--pieces" in taken else []
        whole = numbers(*of_heads, *pieces)
        for option, more in (("--layers", ["--layers", "3", *of_heads[2:]]), ("--heads", [*of_heads[:2], "--heads", "2"])):
            assert option not in taken or numbers(*more, *pieces) != whole, (kind, option)
        for option, more in (("--token-range", ["--token-range", "2:9", *pieces]), ("--drop-special", ["--drop-special", *pieces]), ("--words", ["--words"])):
            assert option not in taken or numbers(*of_heads, *more) != whole, (kind, option)
        if kind == "embeddings":
            assert "its length that of the mean" in bench.read("o.svg")  # drawn with --words, as the last of these
