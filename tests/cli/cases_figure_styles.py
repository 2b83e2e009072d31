"""The options that all pictures share: size, type, title, notes, margins; of attention, bench plot, receptive-field, verify, eval, train plot.

SPDX-License-Identifier: MIT
"""
import os
import pathlib
import re
import struct

from helpers import DEMO, needs_figures, pdf_page

REQUIRES = (needs_figures,)
TEXT = "When the store opened, the old captain had already resigned."
TINY = "synthetic:v3-base,layers=2,hidden=64,heads=2,intermediate=64,vocab=97,buckets=32,distance=80"


def millimetres(bench, name):
    """Width and height of a picture."""
    svg = bench.read(name)
    return [float(re.search(rf'<svg[^>]* {what}="([\d.]+)mm"', svg)[1]) for what in ("width", "height")]


def commands(bench):
    """Every command that draws beside `attention` and needs no measurement, with what it takes."""
    bench.write("labelled.tsv", "label\ttext\n0\tCall me Ishmael.\n1\tIt was the best of times.\n")
    return [["receptive-field", TINY], ["receptive-field", TINY, "--influence", "--influence-tokens", "24", "--influence-sources", "1"],
            ["verify", TINY, "-n", "8", "--isa", "scalar"], ["eval", DEMO, "labelled.tsv"]]


def test_every_width(bench):
    for command in commands(bench):
        heights = {}
        for width in (60, 85, 120, 174):
            bench.fine(*command, "-o", "w.svg", "--width-mm", str(width))
            found, heights[width] = millimetres(bench, "w.svg")
            assert abs(found - width) < 0.01 and heights[width] <= 240, f"{command}: {found} x {heights[width]} mm, asked for {width}"


def test_characters_without_a_font(bench):
    """Every command counts the characters that boxes stand for, not `attention` alone."""
    log = bench.write("log.jsonl", '{"step": 1, "loss": 2}\n{"step": 2, "loss": 1.5}\n')
    sample = pathlib.Path(bench.root) / "tests/cli/bench_sample.json"
    for command in commands(bench) + [["attention", DEMO, "--text", TEXT], ["attribute", DEMO, "--text", TEXT], ["train", "plot", log], ["bench", "plot", sample]]:
        for title, said in (("\U0010FF00", True), ("plain", False)):
            err = bench.fine(*command, "--title", title, "-o", "t.svg").err
            assert ("note: no installed font has 1 of the characters" in err) == said, f"{command}: {err}"


def test_every_option(bench):
    for command in commands(bench):
        bench.fine(*command, "-o", "o.svg", "-o", "o.png", "--title", "A title", "--font-size", "9", "--dpi", "72", "--width-mm", "100", "--no-notes", "--font", "serif")
        svg, plain = bench.read("o.svg"), "p.svg"
        bench.fine(*command, "-o", plain)
        assert ">A title</text>" in svg and ">A title</text>" not in bench.read(plain), command
        assert 'font-size="9"' in svg and 'font-size="7"' not in svg, f"{command}: type"
        assert "Termes" in svg or "serif" in svg.lower(), f"{command}: family"
        assert struct.unpack(">I", pathlib.Path("o.png").read_bytes()[16:20])[0] in (283, 284), f"{command}: dots"  # 100 mm in 72 dots an inch
        if command[0] != "eval":
            notes = re.compile('fill="#5a5a5a"[^>]*>[^<]*(?:eps|Attention is global)')
            assert notes.search(bench.read(plain)) and not notes.search(svg), f"{command}: notes"


def test_options_without_a_picture(bench):
    """Refused before anything is computed, by name."""
    for command in commands(bench) + [["verify", "--mutate", "list"], ["verify", TINY, "--publish"]]:
        for option in (["--width-mm", "85"], ["--exact-width"], ["--dpi", "72"], ["--font", "serif"], ["--font-size", "9"], ["--title", "t"], ["--no-notes"]):
            said = bench.expect(2, *command, *option).err
            assert f"{option[0]}: changes a picture, and none is drawn" in said and "--out FILE.pdf" in said, f"{command}: {said}"


def test_plot_is_out(bench):
    """receptive-field took pictures by --plot, others by --out: both do, and text goes beside them."""
    bench.fine("receptive-field", TINY, "--plot", "a.svg", "-o", "a.txt", "--width-mm", "85")
    bench.fine("receptive-field", TINY, "-o", "b.svg", "-o", "b.txt", "--width-mm", "85")
    assert bench.read("a.svg") == bench.read("b.svg") and bench.read("a.txt") == bench.read("b.txt")
    said = bench.fine("receptive-field", TINY, "-o", "c.pdf", "--plot", "d.png").out
    assert "unambiguous" in said and os.path.getsize("c.pdf") > 1000 and os.path.getsize("d.png") > 1000


def test_receptive_field_says_each_thing_once(bench):
    """A panel a question, one line for the quoted formula, every formula in a row of the table with what the text says."""
    bench.fine("receptive-field", "synthetic:v3-base", "-o", "f.svg", "--width-mm", "174")
    svg, found = bench.read("f.svg"), bench.json("receptive-field", "synthetic:v3-base")
    table = re.search(r'<g aria-label="table">(.*?)\n</g>', svg, re.S)[1]
    texts = re.findall(r">([^<]+)</text>", table)
    for formula, tokens in found["formulas"].items():
        assert formula.replace("-", "\u2212") in texts and f"{tokens:,}" in texts, f"{formula}: {texts}"
        assert f"+{found['verdicts'][formula]['over_run_by']:,}" in texts, f"{formula}: {texts}"
    for definition, tokens in ((name.replace("_", " "), value) for name, value in found["composed"].items()):
        assert definition in texts and f"{tokens:,}" in texts, f"{definition}: {texts}"
    legend = svg.replace(table, "")
    assert legend.count(">run</text>") == legend.count(">hull</text>") == legend.count(">(2k\u22121)n</text>") == 1
    assert "1+2(k" not in legend, "the other formulas are in the table"


def test_exact_width(bench):
    """White margins, the same drawing: every kind of attention that is cropped has the width that was asked for."""
    cropped = 0
    for kind, more in (("rollout", []), ("grid", []), ("entropy", []), ("shares", []), ("components", ["--layers", "0", "--heads", "0", "--components", "probs"]),
                       ("lines", ["--query", "store", "--layers", "2", "--heads", "0"]), ("value-weighted", ["--layers", "2", "--heads", "0,1"])):
        for width in (85, 174):
            ask = ("attention", kind, DEMO, "--text", TEXT, *more, "--width-mm", str(width), "-q")
            bench.fine(*ask, "-o", "a.svg", "-o", "a.pdf")
            bench.fine(*ask, "--exact-width", "-o", "b.svg", "-o", "b.pdf", "--latex", "b.tex")
            narrow, wide = millimetres(bench, "a.svg"), millimetres(bench, "b.svg")
            assert abs(wide[0] - width) < 0.01 and narrow[1] == wide[1], f"{kind}: {wide}, asked for {width}"
            assert f"ifdim{width}mm>" in bench.read("b.tex"), kind
            page = pdf_page("b.pdf")[0] / 72 * 25.4
            assert abs(page - width) < 0.1, f"{kind}: the PDF is {page} mm wide"
            shift = (wide[0] - narrow[0]) / 2 / 25.4 * 72
            cropped += shift > 1
            for name, pattern in (("texts", r'<text (?:x|transform)="(?:translate\()?([\d.]+)'), ("images", r'<(?:image|rect)[^>]* x="([\d.]+)"')):
                one, other = ([float(x) for x in re.findall(pattern, bench.read(file))] for file in ("a.svg", "b.svg"))
                moved = {round(b - a, 1) for a, b in zip(one, other)}
                assert len(one) == len(other) and all(abs(by - shift) < 0.11 for by in moved - {0.0} or {shift}), f"{kind} at {width}: {name} moved by {moved}, expected {shift}"
    assert cropped >= 5, f"only {cropped} figures were narrower"


def test_what_shows_the_tokens(bench):
    """The note about positions names what shows tokens, and each way is true."""
    text = " ".join("the old captain of the boat went home and looked for a new one".split() * 3)
    ask = ("attention", DEMO, "--text", text, "--layers", "2", "--heads", "0", "--width-mm", "85", "-o", "n.svg")
    said = bench.fine(*ask).err
    ways = re.search(r"axes show positions; tokens are shown with (.*)", said)[1].strip().split(" or ")
    assert len(ways) == 2 and "--words" not in said, said
    for way in ways:
        again = bench.fine(*ask[:-4], *(() if "--width-mm" in way else ("--width-mm", "85")), *way.split(), "-o", "n.svg")
        assert "positions" not in again.err and ">captain</text>" in bench.read("n.svg"), f"{way}: {again.err}"


def test_no_name_of_an_axis_is_cut(bench):
    """Titles, units and names of axes stand whole in a column, in every kind and in the other commands."""
    kinds = [["attention", kind, DEMO, "--text", TEXT] for kind in ("components", "mean", "rollout", "shares", "entropy", "distance", "delta", "value-weighted",
                                                                    "four-types", "embeddings", "error", "kernel")]
    kinds += [["attention", "query", DEMO, "--text", TEXT, "--query", "store"], ["attention", "difference", DEMO, "--text", "a b", "--text", "a c"]]
    for command in kinds + commands(bench)[:3]:
        for width in ("85", "174") if {"query", "distance", "verify"} & set(command) else ("85",):  # charts get wider, and no higher
            bench.fine(*command, "--width-mm", width, "-q", "-o", "n.svg")
            cut = [text for text in re.findall(r">([^<]*\u2026)</text>", bench.read("n.svg")) if text != "\u2026"]
            assert not cut, f"{command} at {width} mm: {cut}"


def test_trace_shows_tokens_at_every_width(bench):
    """Few layers leave cells no wider than 10 mm, which must not make their rows too low for the tokens."""
    for width in ("60", "85", "174", "260"):
        said = bench.fine("attention", "trace", DEMO, "--text", "the boys near the store [MASK] here", "--corrupted", "the boy near the store [MASK] here",
                          "--answer", "were,was", "--what", "states", "--width-mm", width, "-o", "t.svg").err
        assert ">boys</text>" in bench.read("t.svg") and "positions" not in said, f"{width} mm: {said}"
