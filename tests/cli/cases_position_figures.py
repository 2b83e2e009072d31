"""Kinds of `attention` about positions, and the error against float64: their --numbers against what is computed here from the formulas, from
the weights of a file and from what `encode` exports. SPDX-License-Identifier: MIT
"""
import json
import math
import os
import struct

from cases_figure_kinds import TERMS, TEXT, Model, lines, mean, near, place
from helpers import DEMO, Picture, check_message, needs_figures, quantile, read_tensors

REQUIRES = (needs_figures,)
KINDS = ["four-types", "kernel", "embeddings", "error"]
SPAN, BUCKETS, REACH = 32, 32, 512  # of the demo
V1 = "04-v1-plain-posbias-types"    # a golden case whose positions come in at the bottom


def row_of(r):
    """delta of the demo: signed logarithmic buckets beyond half of them, then clamped to the table."""
    middle, far = BUCKETS // 2, abs(max(-(REACH - 1), min(REACH - 1, r)))
    bucket = r
    if far > middle:
        bucket = int(math.copysign(math.ceil(math.log(far / middle) / math.log((REACH - 1) / middle) * (middle - 1)) + middle, r))
    return max(0, min(2 * SPAN - 1, bucket + SPAN))


def half_floats(path, name):
    """[rows][columns] of an F16 tensor; read_tensors reads what `encode` writes."""
    with open(path, "rb") as file:
        (length,) = struct.unpack("<Q", file.read(8))
        about = json.loads(file.read(length))[name]
        begin, end = about["data_offsets"]
        file.seek(8 + length + begin)
        values = struct.unpack(f"<{(end - begin) // 2}e", file.read(end - begin))
    columns = about["shape"][-1]
    return [list(values[k:k + columns]) for k in range(0, len(values), columns)]


def dot(a, b):
    return sum(x * y for x, y in zip(a, b))


def test_four_types(bench):
    """p2p from the weights: the normalised table through the projections of head 1 in layer 2, with the query's and the key's bias."""
    layer, head, size, model = 2, 1, 64, Model(bench, TEXT)
    weights = os.path.join(DEMO, "model.safetensors")
    prefix = f"deberta.encoder.layer.{layer}.attention.self."
    table, gain, shift = (half_floats(weights, "deberta.encoder." + name) for name in ("rel_embeddings.weight", "LayerNorm.weight", "LayerNorm.bias"))
    normal = []
    for row in table:
        middle = mean(row)
        spread = math.sqrt(mean((v - middle) ** 2 for v in row) + 1e-7)
        normal.append([(v - middle) / spread * g + s for v, g, s in zip(row, gain[0], shift[0])])
    projected = []
    for name in ("query_proj", "key_proj"):
        weight, bias = half_floats(weights, prefix + name + ".weight"), half_floats(weights, prefix + name + ".bias")[0]
        projected.append([[dot(weight[head * size + c], row) + bias[head * size + c] for c in range(size)] for row in normal])
    p2p = [dot(q, k) / math.sqrt(3 * size) for q, k in zip(*projected)]
    for line in lines(bench, "four-types", "--layers", str(layer), "--heads", str(head)):
        _, _, i, j = place(line)
        for term in TERMS:
            near(line[term], model.matrices[layer][head][term][i][j], (term, i, j), 1e-7)
        near(line["p2p"], p2p[row_of(i - j)], ("p2p", i, j))
    check_message(bench.run("attention", "four-types", os.path.join(bench.golden, "12-v2-b8-n33-c2p"), "--ids", "1,2", "-o", "a.png"), 2,
                  ["four-types", "no p2c"])


def test_kernel(bench):
    """Three texts of unlike length: all cells of a diagonal together."""
    texts = [TEXT, "the old mall", "she opened the door and looked at the new store beside the road"]
    bench.write("texts.txt", "\n".join(texts) + "\n")
    models = [Model(bench, text, f"{k}.safetensors") for k, text in enumerate(texts)]
    for center, ribbon in (("row", 0.1), ("none", 0.25)):
        bench.fine("attention", "kernel", DEMO, "--file", "texts.txt", "--layers", "1,2", "--heads", "2", "--center", center,
                   "--ribbon", str(ribbon), "--numbers", "k.csv", "--dpi", "50", "-o", "k.png")
        found = [{k: float(v) for k, v in line.items()} for line in bench.table("k.csv")]
        reach = max(m.n for m in models) - 1
        assert len(found) == 2 * (2 * reach + 1), len(found)
        for line in found:
            for term in ("c2p", "p2c"):
                values = []
                for m in models:
                    rows = m.matrices[int(line["layer"])][int(line["head"])][term]
                    for i, row in enumerate(rows):
                        j = i - int(line["distance"])
                        if 0 <= j < m.n:
                            values.append(row[j] - (mean(row) if center == "row" else 0))
                assert line["count"] == len(values) and line["centred"] == (center == "row"), line
                near(line[term + "_mean"], mean(values), line)
                near(line[term + "_low"], quantile(values, ribbon), line)
                near(line[term + "_high"], quantile(values, 1 - ribbon), line)
    check_message(bench.run("attention", "kernel", DEMO, "--text", "a", "--ribbon", "0.6", "-o", "a.png"), 2, ["--ribbon", "0.6"])


def test_embeddings(bench):
    path = os.path.join(DEMO, "model.safetensors")
    table = half_floats(path, "deberta.embeddings.position_embeddings.weight")
    bench.fine("encode", DEMO, "--text", TEXT, "--hidden", "all", "-o", "h.safetensors")
    hidden, _ = read_tensors(bench.path("h.safetensors"))
    _, n, width = hidden["hidden_states.4"].shape
    found = lines(bench, "embeddings")
    assert len(found) == n * width
    for line in found:
        t, c = int(line["token"]), int(line["dimension"])
        content = hidden["hidden_states.4"].values[t * width + c]
        near(line["content"], content, line, 1e-6)
        near(line["position"], table[t][c], line, 1e-8)
        near(line["sum"], content + table[t][c], line, 1e-6)
    # below the first layer: words and positions as the file has them
    folder, ids = os.path.join(bench.golden, V1), [1, 7, 3, 11]
    bench.fine("attention", "embeddings", folder, "--ids", ",".join(map(str, ids)), "--numbers", "e.safetensors", "--dpi", "50", "-o", "e.png")
    found, _ = read_tensors(bench.path("e.safetensors"))
    weights, _ = read_tensors(os.path.join(folder, "model.safetensors"))
    words, positions = (next(v for k, v in weights.items() if k.endswith(name + "_embeddings.weight")) for name in ("word", "position"))
    width = words.shape[1]
    for t, word in enumerate(ids):
        for c in range(width):
            near(found["content"].values[t * width + c], words.values[word * width + c], (t, c), 1e-7)
            near(found["position"].values[t * width + c], positions.values[t * width + c], (t, c), 1e-7)
    check_message(bench.run("attention", "embeddings", os.path.join(bench.golden, "28-v3-n1"), "--ids", "1", "-o", "a.png"), 2,
                  ["embeddings", "no absolute positions"])


def test_ablations_that_change_nothing(bench):
    """Embeddings take no ablation that cannot change them; other figures say so where all that is taken out is above what they draw."""
    draw = ("attention", "embeddings")
    bert = os.path.join(os.path.dirname(DEMO), "demo-bert")
    for model, ablated, words in ((bert, "c2c@0", ["--ablate", "below the first layer"]), (bert, "c2c@all", ["--ablate", "below the first layer"]),
                                  (DEMO, "c2p@4", ["--ablate", "below layer 4, the last"]), (DEMO, "c2p@4:1,p2c=mean@4", ["--ablate", "below layer 4, the last"])):
        check_message(bench.run(*draw, model, "--text", TEXT, "--ablate", ablated, "-o", "a.svg"), 2, words)
    plain = bench.fine(*draw, DEMO, "--text", TEXT, "--numbers", "plain.csv")
    assert not plain.err, plain.err
    for ablated, said in (("c2p@3", False), ("c2p@all", False), ("c2p@4,c2p@3", True)):
        err = bench.fine(*draw, DEMO, "--text", TEXT, "--ablate", ablated, "--numbers", "out.csv").err
        assert ("note: --ablate: " in err and "layer 4" in err) == said, (ablated, err)
        assert bench.read("out.csv") != bench.read("plain.csv"), ablated
    for kind, *layers in (("components", "--layers", "0,3"), ("entropy", "--layers", "0-3"), ("rollout", "--layers", "3"), ("distance", "--layers", "0")):
        for ablated, said in (("c2p@4", True), ("c2p@4,p2c@0", False), ("c2p@all", False)):
            err = bench.fine("attention", kind, DEMO, "--text", TEXT, *layers, "--ablate", ablated, "--numbers", "out.csv").err
            assert ("note: --ablate: layer" in err and "nothing changes" in err) == said, (kind, ablated, err)
            bench.fine("attention", kind, DEMO, "--text", TEXT, *layers, "--numbers", "plain.csv")
            assert (bench.read("out.csv") == bench.read("plain.csv")) == said, (kind, ablated)


def test_error(bench):
    """Of a golden case: what `encode` exports minus the float64 result, which is rounded to float32 in the file."""
    folder = os.path.join(bench.golden, "15-v3-b32-n130")
    expected, _ = read_tensors(os.path.join(folder, "expected.safetensors"))
    n = expected["input_ids"].shape[1]
    ids = ",".join(map(str, expected["input_ids"].values[:n]))
    bench.fine("encode", folder, "--ids", ids, "--attention-layers", "all", "--component-layers", "all", "-o", "x.safetensors")
    bench.fine("attention", "error", folder, "--ids", ids, "--components", "c2p,probs", "--layers", "1", "--heads", "1", "--numbers",
               "e.safetensors", "--dpi", "60", "-o", "e.png")
    found, _ = read_tensors(bench.path("e.safetensors"))
    engine, _ = read_tensors(bench.path("x.safetensors"))
    for name, shown in (("attn.1.c2p", "c2p"), ("attn.1.probs", "probs")):
        cells = slice(n * n, 2 * n * n)  # head 1
        ours, theirs, off = engine[name].values[cells], expected[name].values[cells], found[f"layer.1.head.1.{shown}_error"].values
        assert 0 < max(off) < 1e-4, max(off)
        for a, b, e in zip(ours, theirs, off):
            assert abs(abs(a - b) - e) <= 1.2e-7 * max(abs(b), 1e-3), (shown, a, b, e)


def test_refusals(bench):
    listed = bench.fine("attention", "list").out
    assert not bench.fine("attention", "list", "-o", "list.txt").out
    assert bench.read("list.txt") == listed
    assert [name for name in (line.split()[0] for line in listed.splitlines()) if name in KINDS] == KINDS, listed
    plain = "synthetic:v3-xsmall,layers=1,vocab=50,hidden=64,heads=2,intermediate=64"
    check_message(bench.run("attention", "error", plain, "--ids", "1,2", "--center", "none", "-o", "a.png"), 2, ["--center", "error"])
    check_message(bench.run("attention", "error", plain, "--ids", "1,2", "-o", "no/a.png"), 4, ["no/a.png"])
    for kind in KINDS:  # one token is enough for all of them
        bench.fine("attention", kind, DEMO, "--ids", "5", "--dpi", "60", "-o", f"{kind}.png")
        assert Picture.read(bench.path(f"{kind}.png")).width > 50
