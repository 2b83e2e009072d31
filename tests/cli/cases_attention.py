"""`deberta attention` as a user calls it: every cell of a decoded PNG against the exported data, tokens and words, scales, files and
their provenance, bad input. Pictures are decoded here; where panels lie is read from the SVG of the same figure.

SPDX-License-Identifier: MIT
"""
import base64
import hashlib
import json
import math
import os
import pathlib
import re
import shlex
import signal
import subprocess
import xml.etree.ElementTree as tree

from helpers import DEMO, ROOT, Picture, contains, ending, make_model, needs_figures, needs_speed, read_tensors, wait_until

REQUIRES = (needs_figures,)
SMALL = "synthetic:v3-xsmall,layers=2,hidden=64,heads=2,intermediate=64,vocab=100"
TEXT = "a new store opened, un-happy beside the newest mall."
WORDS = [[0], [1], [2], [3], [4, 5], [6, 7, 8, 9, 10, 11], [12], [13], [14, 15], [16, 17, 18], [19]]  # its tokens
NAMES = {"c2c": "content to content", "c2p": "content to position", "p2c": "position to content", "logits": "logits (sum)",
         "probs": "probabilities"}
SVG = "{http://www.w3.org/2000/svg}"



def test_ablated_head_is_shown(bench):
    """Where no layer and head are chosen, an ablation is shown where it is."""
    for first, chosen in (("c2p@2:1", ["--layers", "2", "--heads", "1"]), ("p2c@3", ["--layers", "3", "--heads", "0"]), ("c2p@all", ["--layers", "0", "--heads", "0"])):
        words = ["attention", DEMO, "--text", TEXT, "--ablate", first, "--numbers"]
        bench.fine(*words, "default.csv")
        bench.fine(*words, "chosen.csv", *chosen)
        assert bench.read("default.csv") == bench.read("chosen.csv"), first


def test_replaced_scales_are_named(bench):
    """A scale that a later one replaces for every panel is named; those of different panels add up."""
    said = "note: --scale: the last counts for panels of one kind: "
    for scales, lost in ((["0,1", "row"], ["0,1"]), (["0,0.5", "0,1"], ["0,0.5"]), (["-1,1", "0,1"], []), (["row", "0,1"], []), (["0,1", "0,1"], []),
                         (["0,0.5", "row", "0,1"], ["0,0.5"]), (["row", "0,0.5", "0,1"], ["0,0.5"]), (["0.1,1", "0,1"], ["0.1,1"]), (["0.1,1", "0,1", "--log"], [])):
        words = [word for scale in scales for word in ([scale] if scale == "--log" else ["--scale", scale])]
        err = draw(bench, DEMO, "--text", "a new store", *words, "-o", "scales.svg").err
        last = [scale for scale in scales if scale != "--log"][-1]
        assert [line for line in err.splitlines() if "--scale" in line] == [f"{said}'{last}', not '{text}'" for text in lost], (scales, err)


def test_looks_without_a_picture_are_refused(bench):
    """With --numbers alone what changes the picture only is refused, as other commands do."""
    why = "changes a picture, and none is drawn"
    for look in (["--title", "T"], ["--dpi", "90"], ["--width-mm", "85"], ["--exact-width"], ["--font", "serif"], ["--font-size", "8"], ["--no-notes"], ["--letters"],
                 ["--layout", "2"], ["--palette", "magma"], ["--signed-palette", "magma"], ["--scale", "row"], ["--annotate"], ["--mark", "0,1"], ["--log"], ["--center", "none"]):
        refused(bench, 2, [look[0] + ": " + why], DEMO, "--text", "a new store", *look, "--numbers", "n.csv")
        draw(bench, DEMO, "--text", "a new store", *look, "--numbers", "n.csv", "-o", "n.svg")
        for name in ("n.csv", "n.svg"):
            os.remove(bench.path(name))
    refused(bench, 2, ["--form: " + why], "shares", DEMO, "--text", "a new store", "--form", "bars", "--numbers", "n.csv")
    for kind in ("distance", "kernel"):  # their numbers are centred too
        for centre in ("row", "none"):
            draw(bench, kind, DEMO, "--text", "a new store", "--center", centre, "--numbers", centre + ".csv")
        assert bench.read("row.csv") != bench.read("none.csv")


def draw(bench, *arguments):
    return bench.fine("attention", *arguments)


def refused(bench, code, words, *arguments):
    """Fails with that code and a message that has those words, and leaves no file behind."""
    before = bench.files()
    contains(bench.expect(code, "attention", *arguments).err, *words)
    assert bench.files() == before, f"{arguments}: left {set(bench.files()) - set(before)}"


def matrices(path):
    """{name: rows} of a data file of matrices."""
    tensors, _ = read_tensors(path)
    return {name: [list(t.values[i * t.shape[1]:(i + 1) * t.shape[1]]) for i in range(t.shape[0])] for name, t in tensors.items()}


def centred(rows):
    return [[value - sum(row) / len(row) for value in row] for row in rows]


class Drawing:
    """A figure as PNG and SVG: the colours of its cells and of its colour bars, from low to high, with their numbers."""

    def __init__(self, stem):
        self.picture, root = Picture.read(stem + ".png"), tree.parse(stem + ".svg").getroot()
        self.scale = self.picture.width / float(root.get("viewBox").split()[2])
        self.texts = [t.text for t in root.iter(SVG + "text")]
        self.fills = {t.text: t.get("fill") for t in root.iter(SVG + "text")}
        self.panels, self.bars = {}, []
        for group in root.iter(SVG + "g"):
            image, cells = group.find(SVG + "image"), group.find(SVG + "g[@shape-rendering]")
            if cells is not None:
                self.panels[group.get("aria-label")] = [value * self.scale for value in self.place_of_cells(cells)]
            if image is None:
                continue
            place = [float(image.get(key)) * self.scale for key in ("x", "y", "width", "height")]
            if group.get("aria-label") == "colour bar":
                bar = Picture(base64.b64decode(image.get("{http://www.w3.org/1999/xlink}href").split(",")[1]))
                steps = range(bar.width) if bar.width > 1 else range(bar.height - 1, -1, -1)
                self.bars.append(([bar.pixel(k, 0) if bar.width > 1 else bar.pixel(0, k) for k in steps],
                                  [t.text for t in group.iter(SVG + "text")]))
            else:
                self.panels[group.get("aria-label")] = place

    @staticmethod
    def place_of_cells(group):
        """Of cells that are rectangles, which are 1 wide and high before they are scaled."""
        x, y, across, down = (float(number) for number in re.findall(r"[\d.]+", group.get("transform")))
        runs = [tuple(map(int, re.match(r"M(\d+) (\d+)h(\d+)", path.get("d")).groups())) for path in group.iter(SVG + "path")]
        return x, y, across * max(column + cells for column, _, cells in runs), down * (1 + max(row for _, row, _ in runs))

    def cell(self, panel, i, j, n):
        x, y, width, height = self.panels[panel]
        return self.picture.pixel(int(x + (j + 0.5) * width / n), int(y + (i + 0.5) * height / n))

    def ends(self, number):
        return [float(text.replace("\u2212", "-")) for text in self.bars[number][1][:2]]


def check_cells(drawing, panel, bar, rows, low, high):
    """Every cell has the colour that stands within one step of its value on the colour bar, which has 256. Returns how many cells would
    be wrong if rows and columns were exchanged."""
    n, steps, exchanged = len(rows), drawing.bars[bar][0], 0
    assert len(steps) == 256

    def fits(value, colour):
        at = min(max((value - low) / (high - low), 0), 1) * 255
        near = steps[max(math.floor(at) - 1, 0):math.ceil(at) + 2]
        return any(max(abs(a - b) for a, b in zip(colour, seen)) <= 1 for seen in near)

    for i in range(n):
        for j in range(n):
            colour = drawing.cell(panel, i, j, n)
            assert fits(rows[i][j], colour), f"{panel}: cell {i}, {j} is {colour}, its value {rows[i][j]} of {low} to {high}"
            exchanged += not fits(rows[j][i], colour)
    return exchanged


def test_every_cell_is_the_exported_value(bench):
    draw(bench, DEMO, "--text", TEXT, "--dpi", "120", "-o", "cells.png", "-o", "cells.svg", "--numbers", "cells.safetensors")
    drawing, data = Drawing("cells"), matrices("cells.safetensors")
    signed = {name: centred(data["layer.0.head.0." + name]) for name in ("c2c", "c2p", "p2c", "logits")}
    limit = max(abs(value) for rows in signed.values() for row in rows for value in row)
    ends = drawing.ends(0)
    assert ends[0] == -ends[1] and abs(ends[1] - limit) < 0.01 * limit, f"the bar ends at {ends}, the largest value is {limit}"
    for name, rows in signed.items():
        assert check_cells(drawing, NAMES[name], 0, rows, -limit, limit) > 10, f"{name} is symmetric: the test says nothing about rows"
    probs = data["layer.0.head.0.probs"]
    assert all(abs(sum(row) - 1) < 1e-5 for row in probs), "rows of probabilities do not add up to 1: they are not queries"
    assert check_cells(drawing, NAMES["probs"], 1, probs, 0, max(map(max, probs))) > 10


def test_scales(bench):
    common = (DEMO, "--text", TEXT, "--dpi", "120", "--components", "c2p,probs", "-o", "s.png", "-o", "s.svg", "--numbers", "s.safetensors")
    draw(bench, *common, "--scale", "-9,9", "--scale", "0,2", "--center", "none", "--signed-palette", "cividis", "--palette", "viridis")
    data, drawing = matrices("s.safetensors"), Drawing("s")
    assert drawing.ends(0) == [-9, 9] and drawing.ends(1) == [0, 2], drawing.bars
    check_cells(drawing, NAMES["c2p"], 0, data["layer.0.head.0.c2p"], -9, 9)
    check_cells(drawing, NAMES["probs"], 1, data["layer.0.head.0.probs"], 0, 2)
    assert drawing.bars[0][0] != drawing.bars[1][0], "two palettes, one bar"
    assert not any("row mean" in text for text in drawing.texts), "not centred, but the bar says so"

    draw(bench, *common, "--scale", "robust:90")
    drawing = Drawing("s")
    flat = sorted(abs(value) for row in centred(data["layer.0.head.0.c2p"]) for value in row)
    limit = flat[math.ceil(0.9 * (len(flat) - 1))]
    probs = sorted(value for row in data["layer.0.head.0.probs"] for value in row)
    top = probs[math.ceil(0.9 * (len(probs) - 1))]
    clipped = sum(value > limit for value in flat) + sum(value > top for value in probs)
    assert abs(drawing.ends(0)[1] - limit) < 0.01 * limit, f"{drawing.ends(0)} instead of {limit}"
    said = " ".join(drawing.texts)
    found = re.search(r"(\d+) cells lie beyond the colour scale", said)
    assert found and abs(int(found[1]) - clipped) <= 2, f"{clipped} cells are clipped, the figure says: {said}"
    assert "percentile 90" in said

    draw(bench, *common, "--scale", "panel")
    drawing = Drawing("s")
    limit = max(flat)
    assert abs(max(drawing.ends(0)) - limit) < 0.01 * limit and len(drawing.bars) == 2, drawing.bars

    draw(bench, *common, "--log")
    drawing = Drawing("s")
    low, high = drawing.ends(1)
    values = [[math.log(value / low) / math.log(high / low) for value in row] for row in data["layer.0.head.0.probs"]]
    check_cells(drawing, NAMES["probs"], 1, values, 0, 1)


def test_data_files(bench):
    arguments = (DEMO, "--text", TEXT, "--layers", "0,2", "--heads", "1")
    draw(bench, *arguments, "--numbers", "d.safetensors")
    draw(bench, *arguments, "--numbers", "d.csv")
    tensors, notes = read_tensors("d.safetensors")
    assert sorted(tensors) == sorted(f"layer.{l}.head.1.{c}" for l in (0, 2) for c in NAMES), sorted(tensors)
    labels = json.loads(notes["query_labels"])
    lines = bench.table("d.csv")
    n = len(labels)
    assert n == 20 and len(lines) == 2 * n * n
    for k, line in enumerate(lines):
        i, j = int(line["query"]), int(line["key"])
        assert (line["layer"], line["head"], i, j) == ("02"[k // (n * n)], "1", k // n % n, k % n), line
        assert line["query_label"] == labels[i] and line["key_label"] == labels[j], line
        for name in NAMES:
            value = tensors[f"layer.{line['layer']}.head.1.{name}"].values[i * n + j]
            assert abs(float(line[name]) - value) <= 1e-8 * abs(value), f"{name}: {line}"
    bench.fine("encode", DEMO, "--text", TEXT, "--component-layers", "0,2", "--attention-layers", "0,2", "-o", "e.safetensors")
    encoded, _ = read_tensors("e.safetensors")
    for name, tensor in tensors.items():
        _, layer, _, head, component = name.split(".")
        assert tensor.values == encoded[f"attn.{layer}.{component}"].values[n * n:2 * n * n], f"{name} is not what encode gives for head 1"


def test_words(bench):
    draw(bench, DEMO, "--text", TEXT, "--numbers", "t.safetensors")
    draw(bench, DEMO, "--text", TEXT, "--words", "--numbers", "w.safetensors", "-o", "w.svg", "--token-range", "0:20")
    tokens, merged = matrices("t.safetensors"), matrices("w.safetensors")
    _, notes = read_tensors("w.safetensors")
    assert json.loads(notes["key_labels"]) == ["[CLS]", *TEXT.split(), "[SEP]"], notes["key_labels"]
    for name in NAMES:
        whole, rows = tokens["layer.0.head.0." + name], merged["layer.0.head.0." + name]
        for i, queries in enumerate(WORDS):
            for j, keys in enumerate(WORDS):
                expected = sum(whole[a][b] for a in queries for b in keys) / len(queries) / (1 if name == "probs" else len(keys))
                assert abs(rows[i][j] - expected) < 1e-5, f"{name}, word {i}, word {j}: {rows[i][j]} instead of {expected}"
    assert all(abs(sum(row) - 1) < 1e-5 for row in merged["layer.0.head.0.probs"])
    assert "merged into words" in bench.read("w.svg"), "the figure does not say how"

    draw(bench, DEMO, "--text", "\u0627\u0644\u0633\u0644\u0627\u0645 \u0639\u0644\u064a\u0643\u0645", "--words", "--drop-special", "--numbers", "w.safetensors",
         "-o", "rtl.png", "-o", "rtl.pdf", "-q")
    _, notes = read_tensors("w.safetensors")
    assert json.loads(notes["key_labels"]) == ["\u0627\u0644\u0633\u0644\u0627\u0645", "\u0639\u0644\u064a\u0643\u0645"], notes["key_labels"]


def test_labels_of_a_byte_vocabulary(bench):
    folder = str(make_model("bytes", "01", "bpe-v1", 3001))
    draw(bench, folder, "--text", "the caf\u00e9 \u4f60", "--numbers", "t.safetensors", "-o", "t.svg", "-q")
    _, notes = read_tensors("t.safetensors")
    labels = json.loads(notes["key_labels"])
    assert labels == ["[CLS]", "the", "caf\u00e9", "\u0120", "<E4>", "<BD>", "<A0>", "[SEP]"], labels
    draw(bench, folder, "--text", "the caf\u00e9 \u4f60", "--words", "--numbers", "t.safetensors")
    _, notes = read_tensors("t.safetensors")
    assert json.loads(notes["key_labels"])[1:-1] == ["the", "caf\u00e9", "\u4f60"], notes["key_labels"]


def test_words_between_other_spaces(bench):
    for folder in DEMO, str(make_model("bytes", "01", "bpe-v1", 3001)):
        for space in "\u00a0", "\u3000", "\u2003":
            draw(bench, folder, "--text", f"the store{space}and the{space}cat", "--words", "--drop-special", "--numbers", "t.safetensors")
            _, notes = read_tensors("t.safetensors")
            assert json.loads(notes["key_labels"]) == ["the", "store", "and", "the", "cat"], (folder, space, notes["key_labels"])


def test_chosen_tokens(bench):
    draw(bench, DEMO, "--text", TEXT, "--pair", "it closed", "--numbers", "t.safetensors")
    whole = matrices("t.safetensors")["layer.0.head.0.logits"]
    n = len(whole)
    for options, kept in ((("--drop-special",), [t for t in range(1, n - 1) if t != 19]), (("--token-range", "2:5"), [2, 3, 4]),
                          (("--token-range", "17:", "--drop-special"), [17, 18, *range(20, n - 1)])):
        draw(bench, DEMO, "--text", TEXT, "--pair", "it closed", *options, "--numbers", "c.safetensors")
        rows = matrices("c.safetensors")["layer.0.head.0.logits"]
        assert rows == [[whole[i][j] for j in kept] for i in kept], f"{options}: not the cells of tokens {kept}"


def test_what_stands_in_the_figure(bench):
    draw(bench, DEMO, "--text", TEXT, "--pair", "it closed", "--letters", "--title", "A title", "--mark", "3,5", "--layout", "2", "--dpi", "120",
         "-o", "f.png", "-o", "f.svg")
    drawing = Drawing("f")
    assert {"A title", "a", "b", "e", "layer 0, head 0", "query", "key", "probability"} <= set(drawing.texts)
    assert "logit (scaled by 1/√(3d)), row mean subtracted" in " ".join(drawing.texts), "a title may be two lines"
    assert drawing.fills["[CLS]"] == drawing.fills["[SEP]"] == "#919191" and drawing.fills["store"] == "#141414", "special tokens are grey"
    lefts = {round(place[0]) for place in drawing.panels.values()}
    assert len(lefts) == 2, f"--layout 2: panels begin at {lefts}"
    svg = bench.read("f.svg")
    x, y, width, _ = (value / drawing.scale for value in drawing.panels[NAMES["probs"]])
    cell = width / 23

    def near(pattern, *expected):
        return any(all(abs(float(a) - b) < 0.02 for a, b in zip(found, expected)) for found in re.findall(pattern, svg))
    assert near(r'<path d="M([\d.]+) ([\d.]+)L', x + 20 * cell, y), "no rule before the second text"
    assert near(r'<rect x="([\d.]+)" y="([\d.]+)"', x + 5 * cell, y + 3 * cell), "cell 3, 5 has no outline"

    draw(bench, DEMO, "--text", "a new store", "--annotate", "--components", "probs", "-o", "n.svg", "--numbers", "n.safetensors")
    probs = matrices("n.safetensors")["layer.0.head.0.probs"]
    numbers = [t.text for t in tree.parse("n.svg").getroot().iter(SVG + "text") if re.fullmatch(r"\.\d\d|1\.00", t.text)]
    assert numbers == [f"{value:.2f}".lstrip("0") for row in probs for value in row], numbers


def test_provenance(bench):
    ask = (DEMO, "--text", "\u4f60\u597d caf\u00e9", "--layers", "1", "--heads", "0,2", "--width-mm", "85", "--dpi", "200", "-q")
    draw(bench, *ask, "-o", "p.png", "-o", "p.svg", "-o", "p.pdf", "--numbers", "p.csv", "--latex", "p.tex")
    os.mkdir("other")
    draw(bench, *ask, "-o", "other/q.pdf", "-o", "other/q.png", "--numbers", "other/q.csv", "--numbers", "other/r.safetensors")
    for a, b in (("p.png", "other/q.png"), ("p.pdf", "other/q.pdf")):
        assert pathlib.Path(a).read_bytes() == pathlib.Path(b).read_bytes(), f"{a} and {b} differ"
    picture = Picture.read("p.png")
    digest = hashlib.sha256(b"".join((pathlib.Path(DEMO) / name).read_bytes() for name in ("config.json", "model.safetensors"))).hexdigest()
    expected = {"Model": DEMO, "Model SHA-256": digest, "Text": "\u4f60\u597d caf\u00e9", "Layers": "1", "Heads": "0,2", "Figure": "components"}
    assert {key: picture.texts.get(key) for key in expected} == expected, picture.texts
    draw(bench, DEMO, "--text", "a", "--layers", "4,0-2", "--heads", "0,1", "--dpi", "72", "-o", "ranges.png")
    texts = Picture.read("ranges.png").texts
    assert (texts["Layers"], texts["Heads"]) == ("0-2,4", "0,1"), texts
    assert picture.texts["Software"].startswith("deberta ") and "--heads 0,2" in picture.texts["Command"]
    assert "p.png" not in str(picture.texts) and "p.tex" not in str(picture.texts) and "p.csv" not in str(picture.texts)
    assert picture.dots_per_metre == (7874, 7874), picture.dots_per_metre
    assert abs(picture.width - 85 / 25.4 * 200) <= 1
    assert digest in pathlib.Path("p.svg").read_text(encoding="utf-8")
    _, notes = read_tensors("other/r.safetensors")
    assert notes["Model SHA-256"] == digest
    latex = pathlib.Path("p.tex").read_text(encoding="utf-8")
    for piece in (r"\includegraphics[width=\ifdim85mm>\linewidth\linewidth\else85mm\fi,", "keepaspectratio]{p.pdf}", r"\caption{", r"\label{fig:p}", r"\texttt{", digest[:12], "\u4f60\u597d caf\u00e9", "layer 1, heads 0,2",
                  r"logit (scaled by $1/\sqrt{3d}$)", "mean of their row"):
        assert piece in latex, f"the LaTeX file lacks {piece}: {latex}"
    assert latex.count("{") == latex.count("}") and latex.endswith("\\end{figure}\n"), latex


def test_sizes(bench):
    needs_speed(bench)
    for n, pooled in ((1, 0), (2, 0), (512, 0), (1024, 4)):
        ids = ",".join(str(3 + (7 * k * k + k) % 90) for k in range(n))
        draw(bench, SMALL, "--ids", ids, "--dpi", "300" if n < 512 else "100", "-o", f"n{n}.svg", "-o", f"n{n}.png", "-o", f"n{n}.pdf")
        texts = [t.text for t in tree.parse(f"n{n}.svg").getroot().iter(SVG + "text")]
        assert set(NAMES.values()) <= set(texts), f"n = {n}: {[t for t in texts if len(t) > 3]}"
        note = [t for t in texts if t.startswith("Each drawn cell")]
        assert note == ([f"Each drawn cell is the mean of {pooled} \u00d7 {pooled} cells."] if pooled else []), f"n = {n}: {note}"


def test_coarse_pixels(bench):
    """Where a PNG has fewer pixels than cells, a cell of pixels is their mean, as figure and note say; no token runs into the next, and files beside it stay fine."""
    done = draw(bench, "embeddings", DEMO, "--text", TEXT, "--width-mm", "85", "--dpi", "72", "-o", "c.png", "-o", "c.svg")
    contains(done.err, "a drawn cell is the mean of 1 \u00d7 4 cells at 72 dpi", "--dpi 300")
    assert draw(bench, "embeddings", DEMO, "--text", TEXT, "--dpi", "300", "-o", "f.png", "-o", "f.svg").err == ""
    drawing, n = Drawing("c"), sum(map(len, WORDS))
    assert "Each drawn cell is the mean of 1 \u00d7 4 cells." not in " ".join(filter(None, drawing.texts)), "what is vector has fine cells"
    x, y, width, height = drawing.panels["content: H[L\u22121]"]
    rows = [[drawing.picture.pixel(column, row) for column in range(int(x) + 2, int(x + width) - 2)] for row in range(int(y) + 2, int(y + height) - 1)]
    assert len(set(map(tuple, rows))) == n, f"{len(set(map(tuple, rows)))} rows of colours for {n} tokens"
    assert "mean of 11 \u00d7 11 cells at 50 dpi" in draw(bench, "grid", SMALL, "--ids", ",".join(str(3 + k * k % 90) for k in range(600)), "--dpi", "50", "-o", "g.png").err


def test_odd_texts(bench):
    long = "Donau" * 12
    draw(bench, DEMO, "--text", f"the {long} met", "--words", "-o", "long.svg", "-o", "long.png")
    labels = [t.text for t in tree.parse("long.svg").getroot().iter(SVG + "text")]
    assert any(t.startswith("Donau") and t.endswith(("\u2026", "...")) and len(t) < 30 for t in labels), labels
    draw(bench, SMALL, "--ids", "5,5,5,5", "--components", "c2c", "-o", "flat.svg", "-o", "flat.png", "--dpi", "100")
    drawing = Drawing("flat")
    assert {drawing.cell(NAMES["c2c"], i, j, 4) for i in range(4) for j in range(4)} == {(255, 255, 255)}, "equal logits, but colours"


def test_a_signal_leaves_nothing(bench):
    ids = ",".join(str(3 + k % 90) for k in range(3000))
    child = bench.start("attention", SMALL, "--ids", ids, "--numbers", "long.csv", stderr=subprocess.DEVNULL)
    with ending(child):
        wait_until(lambda: bench.files() or child.poll() is not None)
        assert child.poll() is None and bench.files(), "the numbers were written before a signal could be sent"
        child.terminate()
        assert child.wait(30) == -signal.SIGTERM and not bench.files(), (child.returncode, bench.files())


def test_commands_of_the_page(bench):
    """Every command of the tables in docs/figures.md draws a figure."""
    page = (ROOT / "docs" / "figures.md").read_text(encoding="utf-8")
    common = [DEMO, "--text", "a new store opened beside the new mall"]
    commands = re.findall(r"^\|(?: [^|]+ \|){1,2} `(?:([a-z-]+) \.\.\. )?(--?\w[^`]* -o [^`]*|-o [^`]*)`", page, re.M)
    assert len(commands) >= 30, commands
    for kind, command in commands:
        if "OTHER" not in command:
            draw(bench, *([kind] if kind else []), *common, *shlex.split(command.replace("models/", f"{ROOT}/models/")), "-q")


def test_bad_input(bench):
    ids = ("--ids", "1,2,3")
    for arguments, code, words in (
            ((*ids, "-o", "no/a.png", "--numbers", "a.csv", "--latex", "a.tex"), 4, ["no/a.png", "No such file"]),
            ((*ids, "-o", "a.png", "--numbers", "no/a.csv"), 4, ["no/a.csv"]),
            ((*ids, "-o", "a.png", "--latex", "no/a.tex"), 4, ["no/a.tex"]),
            ((*ids, "-o", "a.png", "-o", "/dev/full/a.pdf"), 4, ["/dev/full/a.pdf"]),
            ((*ids, "--numbers", "a.txt"), 2, ["a.txt", ".csv", ".safetensors"]),
            ((*ids, "-o", "a.png", "--latex", "a.txt"), 2, ["a.txt", ".tex"]),
            ((*ids, "--numbers", "a.csv", "--latex", "a.tex"), 2, ["--latex", "--out"]),
            ((*ids, "--latex", "-o", "a.pdf"), 2, ["unexpected argument 'a.pdf'", "--latex needs a value (FILE)", "took '-o'"]),
            ((*ids, "-o", "a.svg", "--latex", "a.tex"), 2, ["--latex", ".pdf"]),
            ((*ids, "--layers", "2", "--numbers", "a.csv"), 2, ["--layers", "2 is out of range", "0 to 1"]),
            ((*ids, "--scale", "3,1", "-o", "a.png"), 2, ["--scale", "'3,1'"]),
            ((*ids, "--scale", "robust:20", "-o", "a.png"), 2, ["--scale", "robust:20"]),
            ((*ids, "--scale", "1,nan", "-o", "a.png"), 2, ["--scale", "nan"]),
            ((*ids, "--scale", "-1,1", "--components", "probs", "-o", "a.png"), 2, ["--scale", "signed"]),
            ((*ids, "--palette", "jet", "-o", "a.png"), 2, ["--palette", "'jet'", "viridis, cividis, magma, blues, greys, polar"]),
            ((*ids, "--signed-palette", "", "-o", "a.png"), 2, ["--signed-palette", "polar"]),
            ((*ids, "--mark", "3,0", "-o", "a.png"), 2, ["--mark", "'3,0'", "3"]),
            ((*ids, "--mark", "1,2,3", "-o", "a.png"), 2, ["--mark", "'1,2,3'"]),
            ((*ids, "--mark", "-1,2", "-o", "a.png"), 2, ["--mark", "'-1,2'"]),
            ((*ids, "--token-range", "0:4", "-o", "a.png"), 2, ["--token-range", "3 tokens"]),
            ((*ids, "--token-range", "2:2", "-o", "a.png"), 2, ["--token-range", "'2:2'"]),
            ((*ids, "--token-range", "1", "-o", "a.png"), 2, ["--token-range", "'1'"]),
            ((*ids, "--words", "-o", "a.png"), 2, ["--words", "text"]),
            ((*ids, "--drop-special", "-o", "a.png"), 2, ["--drop-special", "text"]),
            ((*ids, "--layout", "0", "-o", "a.png"), 2, ["--layout", "1 to 100"]),
            (("--ids", ",".join(["5"] * 100), "--annotate", "-o", "a.png"), 2, ["numbers do not fit", "wider"])):
        refused(bench, code, words, SMALL, *arguments)
    refused(bench, 2, ["nothing is left"], DEMO, "--text", "", "--drop-special", "-o", "a.png")
    assert "text 1: the text is empty" in draw(bench, DEMO, "--text", "", "-o", "a.png").err
    assert draw(bench, "list").out.startswith("components ")


def test_each_kind_says_which_row_it_draws(bench):
    """Of several texts one is drawn and named, or all of them are."""
    texts = ("--text", "a new store", "--text", "a old store", "--layers", "0", "--heads", "0", "--numbers", "a.csv")
    for kind in [line.split()[0] for line in draw(bench, "list").out.splitlines()]:
        more = {"query": ["--query", "1"], "trace": ["--mask-word", "new", "--at", "3"]}.get(kind, [])
        refuses = [option for option in ("--layers", "--heads", "--numbers") if option not in bench.fine("attention", kind, "--help").out]
        words = [word for k, word in enumerate(texts) if word not in refuses and (k == 0 or texts[k - 1] not in refuses)]
        if "--numbers" in refuses:
            words += ["-o", "a.svg"]
        said = draw(bench, kind, DEMO, *words, *more).err
        assert said.count("note: row 0 of 2 is drawn; --row N draws another") == (kind not in ("kernel", "difference")), (kind, said)


def test_notes(bench):
    """What is not drawn, and type that is not there, are told of; --quiet is quiet."""
    two = (SMALL, "--ids", "1,2", "--ids", "3,4", "--numbers", "a.csv")
    assert draw(bench, *two).err == "note: row 0 of 2 is drawn; --row N draws another\n"
    assert draw(bench, *two, "-q").err == draw(bench, *two, "--row", "1").err == draw(bench, "kernel", *two).err == draw(bench, "difference", *two).err == ""
    one = (SMALL, "--ids", "1,2", "-o", "a.svg", "--font")
    assert "no font 'No Such Font' is installed" in draw(bench, *one, "No Such Font").err
    assert draw(bench, *one, "No Such Font", "-q").err == draw(bench, *one, "No Such Font, sans-serif").err == ""

