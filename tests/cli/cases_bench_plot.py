"""`bench plot`: what the figures show is computed here once more, from the JSON, and compared with the text and the coordinates of the SVG.

bench_sample.json is what `deberta bench` wrote on a busy machine; its command is in it. Times that scatter make the better test.
SPDX-License-Identifier: MIT
"""
import csv
import io
import json
import math
import os
import pathlib
import re

from helpers import Picture, check_message, needs_figures

REQUIRES = (needs_figures,)
SAMPLE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "bench_sample.json")
KINDS = ["latency", "layers", "memory", "speedup", "grid", "breakdown", "roofline"]  # that the sample holds; it has no errors
SCALAR_COLOUR, AVX2_COLOUR = "#005293", "#eb9119"


def results(isa, **fixed):
    with open(SAMPLE, encoding="utf-8") as file:
        found = [r for r in json.load(file)["results"] if r["isa"] == isa and all(r[k] == v for k, v in fixed.items())]
    return sorted(found, key=lambda r: (r["n"], r["layers"]))


def drawn(bench, kind):
    bench.fine("bench", "plot", SAMPLE, "--figure", kind, "-o", kind + ".svg")
    return bench.read(kind + ".svg")


def texts(svg):
    return re.findall(r"<text[^>]*>([^<]*)</text>", svg)


def discs(svg):
    """Middles of the scalar tier's markers, without the one of the legend."""
    return [(float(x), float(y)) for x, y in re.findall(rf'<circle cx="([\d.]+)" cy="([\d.]+)" r="[\d.]+" fill="{SCALAR_COLOUR}"', svg)][1:]


def squares(svg):
    found = re.findall(rf'<rect x="([\d.]+)" y="([\d.]+)" width="([\d.]+)" height="([\d.]+)" fill="{AVX2_COLOUR}"', svg)
    return [(float(x) + float(w) / 2, float(y) + float(h) / 2) for x, y, w, h in found][1:]


def check_linear(values, places, slack=0.01):
    """All places lie where one linear scale through the first and the last puts them."""
    assert len(values) == len(places), (values, places)
    low, high = min(range(len(values)), key=values.__getitem__), max(range(len(values)), key=values.__getitem__)
    for value, place in zip(values, places):
        expected = places[low] + (value - values[low]) / (values[high] - values[low]) * (places[high] - places[low])
        assert abs(place - expected) < slack, (values, places)


def solve(rows, right):
    """Least squares by the normal equations, eliminated with pivots."""
    n = len(rows[0])
    m = [[sum(r[i] * r[j] for r in rows) for j in range(n)] + [sum(r[i] * b for r, b in zip(rows, right))] for i in range(n)]
    for i in range(n):
        p = max(range(i, n), key=lambda k: abs(m[k][i]))
        m[i], m[p] = m[p], m[i]
        for k in range(n):
            if k != i:
                m[k] = [a - m[k][i] / m[i][i] * b for a, b in zip(m[k], m[i])]
    return [m[i][n] / m[i][i] for i in range(n)]


def test_latency(bench):
    svg, points = drawn(bench, "latency"), results("scalar", layers=4)
    check_linear([math.log(r["n"]) for r in points], [x for x, _ in discs(svg)])
    check_linear([math.log(r["median_s"]) for r in points], [y for _, y in discs(svg)])
    roofs = json.load(open(SAMPLE, encoding="utf-8"))["environment"]["roofs"]
    assert f"at the measured peak of avx2, 1 thread: {roofs[0]['avx2_gflops']:.0f} GFLOP/s" in texts(svg), texts(svg)
    assert "latency, 4 layers" in texts(svg)


def test_layers(bench):
    svg, points = drawn(bench, "layers"), results("scalar", n=128)
    check_linear([r["median_s"] for r in points], [y for _, y in discs(svg)])
    for isa in ("scalar", "avx2"):
        points = results(isa, n=128)
        start, slope = solve([[1 / r["median_s"], r["layers"] / r["median_s"]] for r in points], [1] * len(points))
        worst = max(abs((start + slope * r["layers"]) / r["median_s"] - 1) for r in points)
        assert f"{isa}, 1 thread: {1e3 * slope:.3g} ms a layer (off by at most {100 * worst:.1f} %)" in texts(svg), (slope, texts(svg))


def test_memory(bench):
    svg, points = drawn(bench, "memory"), results("scalar", layers=4)
    places = discs(svg)
    check_linear([r["peak_rss_bytes"] for r in points], [y for _, y in places[:4]])
    check_linear([math.log(r["workspace_bytes"]) for r in points], [y for _, y in places[4:]])


def test_speedup(bench):
    ratios = [a["median_s"] / b["median_s"] for a, b in zip(results("scalar", layers=4), results("avx2", layers=4))]
    check_linear(ratios, [y for _, y in squares(drawn(bench, "speedup"))])


def test_grid(bench):
    svg = drawn(bench, "grid")
    cells = [t.replace("\u2212", "-") for t in re.findall(r'font-size="6" fill="#[0f]{6}" text-anchor="middle"[^>]*>([^<]*)</text>', svg)]
    assert len(cells) == 2 * 2 * 12, cells
    for index, isa in enumerate(("scalar", "avx2")):
        points = results(isa)
        time, residual = cells[24 * index:24 * index + 12], cells[24 * index + 12:24 * index + 24]
        terms = [[c / r["median_s"] for c in (1, r["n"], r["n"]**2, r["layers"], r["layers"] * r["n"], r["layers"] * r["n"]**2)] for r in points]
        scale = [max(abs(t[k]) for t in terms) for k in range(6)]
        fit = solve([[v / s for v, s in zip(t, scale)] for t in terms], [1] * len(points))
        worst = 0
        for r, t, shown, off in zip(points, terms, time, residual):
            assert abs(float(shown) - 1e3 * r["median_s"]) <= 0.005 * 1e3 * r["median_s"], (shown, r["median_s"])
            expected = 100 * (1 - sum(v / s * f for v, s, f in zip(t, scale, fit)))
            assert abs(float(off) - expected) <= 0.051, (off, expected)
            worst = max(worst, abs(expected))
        note = " ".join(texts(svg))
        assert f"Fit, {isa}, 1 thread:" in note and f"{worst:.1f} %" in note, (worst, note)


def test_breakdown(bench):
    """Heights of the stacks of milliseconds, stage by stage, against those of the JSON: one scale for all bars of a panel."""
    svg = drawn(bench, "breakdown")
    panels = re.findall(r'<g aria-label="(scalar|avx2), 1 thread, 4 layers">(.*?)\n</g>', svg, re.S)
    assert [name for name, _ in panels] == ["scalar", "scalar", "avx2", "avx2"], [name for name, _ in panels]
    for index, (isa, panel) in enumerate(panels):
        heights = [float(h) for h in re.findall(r'<rect [^>]*height="([\d.]+)" fill="#[0-9a-f]{6}" stroke="#ffffff" stroke-width="0.25"', panel)]
        points = results(isa, layers=4)
        parts = [name for name in points[0]["breakdown"] if any(r["breakdown"][name]["s"] for i in ("scalar", "avx2") for r in results(i))]
        seconds = [r["breakdown"][name]["s"] / (r["breakdown_s"] if index % 2 else 1) for name in parts for r in points]
        check_linear([0] + seconds, [0] + heights)


def test_roofline(bench):
    svg = drawn(bench, "roofline")
    roof = json.load(open(SAMPLE, encoding="utf-8"))["environment"]["roofs"][0]
    for isa in ("scalar", "avx2"):
        title = f"{isa}, 1 thread: {roof[isa + '_gflops']:.0f} GFLOP/s"
        assert title in texts(svg), (title, texts(svg))
    assert texts(svg).count(f"FLOP per byte (slope: {max(roof['read_gbs'], roof['triad_gbs']):.0f} GB/s)") == 2, texts(svg)
    stages = [r["breakdown"]["qkv"] for isa in ("scalar", "avx2") for r in results(isa, layers=4)]
    places = squares(svg)  # of the second stage with any time, which is qkv
    assert len(places) == len(stages) == 8, (places, stages)
    for first in (0, 4):
        check_linear([math.log(s["gflop"] / s["bytes"]) for s in stages[first:first + 4]], [x for x, _ in places[first:first + 4]])
        check_linear([math.log(s["gflop"] / s["s"]) for s in stages[first:first + 4]], [y for _, y in places[first:first + 4]])


def changed_sample(bench, change):
    """The sample after change(results), as b.json."""
    content = bench.load(SAMPLE)
    change(content["results"])
    bench.write("b.json", json.dumps(content))
    return "b.json"


def test_every_part(bench):
    """Ten parts have ten colours, and the measured limits have none of a stage's."""
    def fill(results):
        for result in results:
            for k, part in enumerate(result["breakdown"].values()):
                part.update(s=1e-4 * (k + 1), gflop=1e-3 * (k + 1), bytes=1e5)
    sample = changed_sample(bench, fill)
    for kind, colours in (("breakdown", r'<rect [^>]*fill="(#[0-9a-f]{6})" stroke="#ffffff" stroke-width="0.25"'),
                          ("roofline", r'stroke="(#[0-9a-f]{6})" stroke-width="1"')):
        bench.fine("bench", "plot", sample, "--figure", kind, "-o", "p.svg")
        found = set(re.findall(colours, bench.read("p.svg")))
        assert len(found) == 10, (kind, found)


PARTS = {"qk": "q\u00b7k", "c2p": "c2p", "p2c": "p2c", "bias": "bias", "softmax": "softmax", "pv": "P\u00b7V"}


def test_attention_parts(bench):
    """Attention is drawn as its parts, in shades of one colour; what is in none of them is a slice as well; stages stay as they are."""
    def add_parts(results):
        for r in results:
            whole = r["breakdown"]["attention"]
            whole["parts"] = {p: {"s": whole["s"] * (k + 1) / 25, "gflop": whole["gflop"] / 4 if p in ("qk", "c2p", "p2c", "pv") else 0}
                              for k, p in enumerate(PARTS)}  # 21 of 25
    sample = changed_sample(bench, add_parts)
    bench.fine("bench", "plot", sample, "--figure", "breakdown", "-o", "p.svg")
    svg = bench.read("p.svg")
    legend = texts(svg)
    assert all(name in legend for name in (*PARTS.values(), "rest of attention")) and "attention" not in legend, legend
    assert "Shades of one colour are parts of attention." in " ".join(legend), legend
    panel = re.search(r'<g aria-label="scalar, 1 thread, 4 layers">(.*?)\n</g>', svg, re.S).group(1)
    bars = re.findall(r'<rect [^>]*height="([\d.]+)" fill="(#[0-9a-f]{6})" stroke="#ffffff" stroke-width="0.25"', panel)
    points, seconds = results("scalar", layers=4), []
    for name in points[0]["breakdown"]:
        for share in ((1, 2, 3, 4, 5, 6, 4) if name == "attention" else (25,)):
            if name == "waiting" or any(r["breakdown"][name]["s"] for r in points):
                seconds += [share / 25 * r["breakdown"][name]["s"] for r in points]
    check_linear([0] + seconds, [0] + [float(height) for height, _ in bars])
    assert len({colour for _, colour in bars}) == len(bars) / len(points), bars
    bench.fine("bench", "plot", sample, "--figure", "roofline", "-o", "r.svg")
    legend = texts(bench.read("r.svg"))
    drawn_parts = [PARTS[p] for p in ("qk", "c2p", "p2c", "pv")]  # the others are no matrix products
    assert [t for t in legend if t in PARTS.values() or t == "attention"] == ["attention"] + drawn_parts, legend


def other_sample(bench, name, change=None, factor=2.0, **environment):
    """The sample with times `factor` times as long and another environment, after change(results)."""
    content = bench.load(SAMPLE)
    content["environment"].update(environment)
    for result in content["results"]:
        result["samples_s"] = [factor * s for s in result["samples_s"]]
    if change:
        content["results"] = change(content["results"]) or content["results"]
    return bench.write(name, json.dumps(content))


def test_several_files(bench):
    """Curves of several files in one chart of latency, each at its place and named by what tells it from the others."""
    def legend(*files, figure=()):
        bench.fine("bench", "plot", *files, *figure, "-o", "s.svg")
        svg = bench.read("s.svg")
        return svg, [t for t in texts(svg) if re.search(r"\d threads?\b", t) and "peak" not in t]
    sample = other_sample(bench, "before.json", factor=1)
    later = other_sample(bench, "after.json")
    svg, names = legend(sample, later)
    assert names == [f"{file}, {isa}, 1 thread" for file in ("before", "after") for isa in ("scalar", "avx2")], names
    assert "on AMD EPYC, 2 cores." in " ".join(texts(svg)) and "latency, 4 layers" in texts(svg), texts(svg)
    green = re.findall(r'<path d="M([\d.]+) ([\d.]+)[^"]*Z" fill="#00966e"', svg)[1:]  # tips of the triangles of after's scalar tier
    points, own = results("scalar", layers=4), discs(svg)
    assert len(own) == len(points) == len(green), (own, green)
    check_linear([math.log(r["median_s"]) for r in points], [y for _, y in own])
    moved = [a[1] - float(b[1]) for a, b in zip(own, green)]  # twice the time is the same way up for each
    assert max(moved) - min(moved) < 0.02 < min(moved), moved
    assert legend(sample, later, figure=["--figure", "latency"])[0].count("<circle") == svg.count("<circle")

    svg, names = legend(sample, other_sample(bench, "laptop.json", cpu="Laptop 7"))
    assert names == [f"{cpu}, {isa}, 1 thread" for cpu in ("AMD EPYC", "Laptop 7") for isa in ("scalar", "avx2")], names
    assert not any("measured peak" in t or "on AMD" in t for t in texts(svg)), texts(svg)  # neither machine is that of the chart
    assert "AMD EPYC; Laptop 7" in svg  # provenance
    svg, names = legend(sample, other_sample(bench, "int8.json", lambda found: [dict(r, precision="int8", peak_fraction=r["peak_fraction"] / 8) for r in found]))
    assert names == [f"{isa}, 1 thread, {p}" for p in ("float32", "int8") for isa in ("scalar", "avx2")], names
    peaks = [re.fullmatch(r"at the measured peak of avx2(.*), 1 thread: (\d+) (.*)", t).groups() for t in texts(svg) if "measured peak" in t]
    assert [(p, unit) for p, _, unit in peaks] == [("", "GFLOP/s"), (" in int8", "GOP/s")] and int(peaks[1][1]) > 7 * int(peaks[0][1]), peaks
    _, names = legend(sample, other_sample(bench, "two.json", lambda found: [dict(r, threads=2) for r in found]))
    assert names == [f"{isa}, {t}" for t in ("1 thread", "2 threads") for isa in ("scalar", "avx2")], names
    svg, _ = legend(sample, other_sample(bench, "shallow.json", lambda found: [r for r in found if r["layers"] == 2]))
    assert {"before, avx2, 1 thread, 4 layers", "shallow, avx2, 1 thread, 2 layers"} <= set(texts(svg)), texts(svg)
    os.mkdir(bench.path("x"))
    bench.write("x/before.json", open(bench.path("after.json"), encoding="utf-8").read())
    assert legend(sample, "x/before.json")[1][2].startswith("x/before, "), names


def test_files_apart(bench):
    """Files that cannot share a chart are refused in one sentence, and nothing is written."""
    far = other_sample(bench, "far.json", lambda found: [dict(r, n=1000 * r["n"]) for r in found])
    one = other_sample(bench, "one.json", lambda found: [r for r in found if r["n"] == 64])
    there = bench.files()
    for files, words in (([SAMPLE, far], ["no length in common", "bench compare"]), ([SAMPLE, one], ["one.json: the file holds no results of two or more lengths", "bench compare"]),
                         ([SAMPLE, SAMPLE], ["given twice"])):
        check_message(bench.run("bench", "plot", *files, "-o", "a.svg"), 2, words)
    for figure in ("grid", "breakdown", "memory", "all"):
        check_message(bench.run("bench", "plot", SAMPLE, far, "--figure", figure, "-o", "a.svg"), 2, [f"--figure {figure} draws one file, found 2", "deberta bench compare"])
    assert bench.files() == there, bench.files()


def test_many_groups(bench):
    """A panel for each of as many groups as there are."""
    threads = range(1, 31)

    def multiply(results):
        results[:] = [dict(r, threads=t) for t in threads for r in results if r["isa"] == "avx2" and r["layers"] == 4]
    bench.fine("bench", "plot", changed_sample(bench, multiply), "--figure", "breakdown", "-o", "m.svg")
    panels = re.findall(r'<g aria-label="avx2, (\d+) threads?, 4 layers">', bench.read("m.svg"))
    assert [int(t) for t in panels] == [t for t in threads for _ in range(2)], panels


def test_many_layers(bench):
    """Cells without room for numbers are drawn without them; axes without room for all names count layers, not places."""
    def deepen(results):
        results[:] = [dict(r, layers=2 * layers) for layers in range(1, 61) for r in results if r["layers"] == 4]
    sample = changed_sample(bench, deepen)
    bench.fine("bench", "plot", sample, "--figure", "grid", "-o", "g.svg")
    found = texts(bench.read("g.svg"))
    layers_shown = [t for t in found if t.isdigit() and int(t) > 60 and t not in ("64", "128")]  # 60 places, and two of the lengths
    assert len(found) < 100 and layers_shown, found


def test_all_or_none(bench):
    """Where one of the kinds has no room nothing is written, not even what stands before it in the list."""
    check_message(bench.run("bench", "plot", SAMPLE, "--figure", "all", "--width-mm", "30", "-o", "a.svg"), 2, ["leave no room in 30 mm"])
    assert bench.files() == [], bench.files()


def test_list_takes_nothing_else(bench):
    """A list of kinds reads no file and draws nothing, so it takes neither file nor looks."""
    check_message(bench.run("bench", "plot", SAMPLE, "--figure", "list"), 2, ["the list of figures is of all kinds", "bench_sample.json"])
    for look in (["--dpi", "99"], ["--title", "T"], ["--no-notes"]):
        check_message(bench.run("bench", "plot", "--figure", "list", *look), 2, [look[0], "a list of figures is none"])


def test_provenance_names_every_file(bench):
    """A fact of one file that begins, or is part of, that of another is named too; equal facts are named once."""
    names = []
    for k, (command, cpu) in enumerate((("bench m -n 16 --isa avx2", "AMD EPYC 7763"), ("bench m -n 16", "AMD EPYC"), ("bench m -n 16", "AMD EPYC"))):
        content = json.loads(pathlib.Path(SAMPLE).read_text())
        content["environment"].update(command=command, cpu=cpu)
        names.append(bench.write(f"part{k}.json", json.dumps(content)))
    bench.fine("bench", "plot", *names, "-o", "p.svg")
    entries = dict(re.findall(r'<entry key="([^"]*)">([^<]*)<', bench.read("p.svg")))
    assert entries["Measured by"] == "bench m -n 16 --isa avx2; bench m -n 16", entries
    assert entries["Measured on"] == "AMD EPYC 7763; AMD EPYC", entries


def test_choices(bench):
    assert [line.split()[0] for line in bench.fine("bench", "plot", "--figure", "list").out.splitlines()] == [*KINDS, "error", "bars"]
    bench.fine("bench", "plot", SAMPLE, "--figure", "all", "--dpi", "60", "-o", "all.png")
    assert bench.files() == sorted(f"all-{kind}.png" for kind in KINDS), bench.files()
    bench.fine("bench", "plot", SAMPLE, "--dpi", "60", "--width-mm", "85", "-o", "curves.png")
    picture = Picture.read(bench.path("curves.png"))
    width, found = picture.width, picture.texts
    assert abs(width - 85 / 25.4 * 60) < 2, width
    assert {"Software", "Measured by", "Measured with", "Measured on", "Command"} <= set(found), found
    assert found["Measured with"] == "893b4588d35a-dirty", found["Measured with"]
    check_message(bench.run("bench", "plot", SAMPLE, "--figure", "pie", "-o", "a.png"), 2, ["--figure: expected one of curves, latency", "list; found 'pie'"])
    check_message(bench.run("bench", "plot", SAMPLE, "--figure", "grid", "-o", "a.txt"), 2, ["a.txt", ".svg"])


def test_lacking(bench):
    """A file that lacks what a figure shows: the message says which command writes it, and `all` draws the rest."""
    content = bench.load(SAMPLE)
    content["results"] = [r for r in content["results"] if r["layers"] == 4 and r["isa"] == "avx2"]
    for result in content["results"]:
        del result["breakdown"]
    bench.write("b.json", json.dumps(content))
    for kind, word in (("layers", "--depth"), ("speedup", "--isa all"), ("grid", "--depth"), ("breakdown", "--breakdown"), ("roofline", "--breakdown"), ("error", "tools/peers.py"), ("bars", "tools/peers.py")):
        check_message(bench.run("bench", "plot", "b.json", "--figure", kind, "-o", "a.png"), 2, [kind, "the file holds no", word])
    bench.write("b.csv", "model,model_sha256,engine\nx,,deberta\n")
    for words in (["plot", "b.csv", "-o", "a.png"], ["compare", "b.csv", "b.json"]):
        check_message(bench.run("bench", *words), 3, ["b.csv: a table in CSV", "-o FILE.json"])
    os.remove("b.csv")
    done = bench.fine("bench", "plot", "b.json", "--figure", "all", "--dpi", "60", "-o", "a.png")
    assert bench.files() == ["a-latency.png", "a-memory.png", "b.json"], bench.files()
    assert len(done.err.strip().splitlines()) == 7, done.err
    assert bench.fine("bench", "plot", "b.json", "--figure", "all", "--dpi", "60", "-q", "-o", "a.png").err == ""


def test_compare_precisions(bench):
    """Two files that differ in precision have their points in common, and the table says so."""
    report = bench.load(SAMPLE)
    for point in report["results"]:
        point["precision"] = "int8"
    said = bench.fine("bench", "compare", SAMPLE, bench.write("int8.json", json.dumps(report)), "--format", "csv").out
    rows = list(csv.DictReader(io.StringIO(said)))
    assert len(rows) == len(report["results"]), said
    assert all(" float32 " in row["isa"] and " int8 " in row["isa"] and float(row["ratio"]) == 1 for row in rows), said


def test_bars(bench):
    """A panel a length, the fastest engine first; a bar is as high as its median, from zero."""
    names = {"scalar": "deberta", "avx2": "another engine"}

    def name_engines(found):
        found[:] = [r for r in found if r["layers"] == 4 and r["n"] in (16, 128)]
        for result in found:
            result["engine"] = names.get(result["isa"], "a third one")
            result["precision"] = "int8" if result["engine"] == "another engine" else "float32"
            result["other_cores"] = 0.0
        found.sort(key=lambda r: -r["n"])
        found[1]["other_cores"] = 1.26
    path = changed_sample(bench, name_engines)
    results = bench.load(path)["results"]
    bench.fine("bench", "plot", path, "--figure", "bars", "-o", "bars.svg")
    svg = bench.read("bars.svg")
    said = texts(svg)
    panels = [sorted((r for r in results if r["n"] == n), key=lambda r: r["median_s"]) for n in (16, 128)]
    assert [t for t in said if t in {r["engine"] for r in results}] == [r["engine"] for rows in panels for r in rows], said
    assert all(word in " ".join(said) for word in ("16 tokens", "128 tokens", "float32, this project", "int8", "used up to 1.3 cores")), said
    boxes = [tuple(map(float, box)) for box in re.findall(r'<rect x="([\d.]+)" y="([\d.]+)" width="([\d.]+)" height="([\d.]+)" fill="#', svg)]
    floor = max(round(y + height, 1) for _, y, _, height in boxes)  # the panels stand side by side
    heights = [height for _, y, _, height in sorted(boxes) if round(y + height, 1) == floor]
    assert len(heights) == len(results), boxes
    for rows, found in zip(panels, (heights[:len(panels[0])], heights[len(panels[0]):])):
        check_linear([0, *(r["median_s"] for r in rows)], [0, *found])
    for width in ("85", "174"):
        bench.fine("bench", "plot", path, "--figure", "bars", "--width-mm", width, "-o", f"bars{width}.pdf")


def test_error(bench):
    """A point a length, at its latency and its error, both on logarithmic scales."""
    def add_errors(found):
        for k, result in enumerate(found):
            result["relative_error"] = 10.0 ** (-1 - k % 5)
    path = changed_sample(bench, add_errors)
    points = sorted((r for r in bench.load(path)["results"] if r["isa"] == "scalar" and r["layers"] == 4), key=lambda r: r["n"])
    bench.fine("bench", "plot", path, "--figure", "error", "-o", "error.svg")
    svg = bench.read("error.svg")
    assert "relative error of the last hidden states" in texts(svg), texts(svg)
    check_linear([math.log(r["median_s"]) for r in points], [x for x, _ in discs(svg)])
    check_linear([math.log(r["relative_error"]) for r in points], [y for _, y in discs(svg)])
