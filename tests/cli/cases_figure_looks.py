"""How figures look, read from their SVG: fonts, scales, numbers of colour bars, axes and legends; no id of one is an id of another. SPDX-License-Identifier: MIT
"""
import base64
import itertools
import re
import xml.etree.ElementTree as tree

from helpers import DEMO, Picture, check, contains, equal, make_model, needs_figures, read_tensors, sample

TEXT = "a new store opened beside the new mall"
SVG, LINK = "{http://www.w3.org/2000/svg}", "{http://www.w3.org/1999/xlink}href"


def drawn(bench, kind, *arguments):
    """The SVG of `attention KIND`."""
    needs_figures(bench)
    text = [] if "--text" in arguments else ["--text", TEXT]
    bench.fine("attention", kind, DEMO, *text, *arguments, "-q", "-o", "look.svg")
    return tree.parse(bench.path("look.svg")).getroot()


def groups(root, label):
    return [g for g in root.iter(SVG + "g") if g.get("aria-label") == label]


def numbers(bar):
    return [float(t.text.replace("\N{MINUS SIGN}", "-")) for t in bar.iter(SVG + "text") if re.fullmatch("\N{MINUS SIGN}?[0-9.e-]+", t.text)]


def bars(root):
    """The numbers of each colour bar, in ascending order."""
    return [sorted(numbers(bar)) for bar in groups(root, "colour bar")]


def test_axes_have_two_numbers(bench):
    """One number alone shows no scale: narrow panels and large type have two on every axis, and opposites stay together."""
    needs_figures(bench)
    many = "synthetic:v3-xsmall,layers=1,vocab=600,hidden=48,heads=12,intermediate=64"
    log = bench.write("log.jsonl", "".join(f'{{"step": {k}, "loss": {9.4 - 0.4 * k}, "rate": {k * 1e-4}, "gradient_norm": {5.5 + k / 3}}}\n' for k in range(1, 11)))
    count = lambda n: ["--ids", ",".join(map(str, range(1, n + 1)))]
    for command in (["attention", "kernel", many, *count(500), "--heads", "all"], ["attention", "kernel", many, *count(60), "--heads", "all"],
                    ["attention", "distance", DEMO, *count(40), "--width-mm", "85", "--heads", "all"],
                    ["receptive-field", DEMO, "--influence", "--influence-tokens", "40", "--width-mm", "85"],
                    ["train", "plot", log, "--width-mm", "60", "--font-size", "12"]):
        bench.fine(*command, "-q", "-o", "two.svg")
        panels = [g for g in tree.parse(bench.path("two.svg")).getroot().iter(SVG + "g") if g.find(SVG + "g[@clip-path]") is not None and g.get("aria-label")]
        check(panels, command)
        for panel in panels:
            shown = [t for t in panel.findall(SVG + "text") if re.fullmatch("\N{MINUS SIGN}?[0-9.]+(e\N{MINUS SIGN}?[0-9]+)?", t.text)]
            x, y = ({t.text for t in shown if t.get("text-anchor") == anchor} for anchor in ("middle", "end"))
            check(len(x) >= 2 and len(y) >= 2, (command, panel.get("aria-label"), x, y))
            if "kernel" in command:
                check(all(number in x for number in ("\N{MINUS SIGN}" + n for n in x if n[0] not in "\N{MINUS SIGN}0")), (command, x))


def test_labels_of_axes_are_shrunk_before_they_are_cut(bench):
    """The end of a label says which way an axis counts: type gets smaller before an ellipsis takes it."""
    needs_figures(bench)
    bench.fine("attribute", DEMO, "--text", TEXT, "--width-mm", "60", "--font-size", "14", "-q", "-o", "label.svg")
    found = [t for t in tree.parse(bench.path("label.svg")).getroot().iter(SVG + "text") if t.text.startswith("distance")]
    check(found and not any("\N{HORIZONTAL ELLIPSIS}" in t.text for t in found), [t.text for t in found])
    check(all(5 <= float(t.get("font-size")) < 14 for t in found), [t.get("font-size") for t in found])


def test_serif_is_times_or_like_it(bench):
    families = [drawn(bench, "lines", *font).get("font-family") for font in ((), ("--font", "serif"))]
    check("Sans" in families[0] and "serif" in families[0], families[0])
    contains(families[1], "Times New Roman", "Liberation Serif")
    check("Sans" not in families[1] and families[1].endswith("serif"), families[1])


def test_numbers_of_symmetric_bars_are_symmetric(bench):
    """Whatever room there is: a number stands there if its opposite does."""
    for width, limit in sample(itertools.product(range(85, 175, 15), ("1.28", "5.44", "13.7", "0.0237")), 6):
        root = drawn(bench, "components", "--components", "c2c,probs", "--width-mm", str(width), "--scale", f"-{limit},{limit}")
        found = bars(root)[0]
        equal(found, sorted(-value for value in found), f"{width} mm, {limit}")
        equal(found[-1], float(limit))


def test_rollout_has_a_scale_a_layer(bench):
    """The first layer is half diagonal: on its scale the last one would be pale."""
    own = bars(drawn(bench, "rollout", "--layers", "0,4"))
    equal([bar[0] for bar in own], [0, 0])
    check(len(own) == 2 and own[0][-1] > 3 * own[1][-1], own)
    shared = bars(drawn(bench, "rollout", "--layers", "0,4", "--scale", "shared"))
    equal([bar[-1] for bar in shared], [own[0][-1]])


def test_error_goes_from_white_to_black(bench):
    root = drawn(bench, "error", "--components", "probs", "--layers", "0,1")
    equal([bar[0] for bar in bars(root)], [0])
    (image,) = groups(root, "colour bar")[0].iter(SVG + "image")
    picture = Picture(base64.b64decode(image.get(LINK).split(",")[1]))
    ends = [picture.pixel(0, picture.height - 1), picture.pixel(picture.width - 1, 0)]  # whether it lies or stands
    check(min(ends[0]) > 250 if picture.height > picture.width else min(picture.pixel(0, 0)) > 250, ends)
    check(max(ends[1] if picture.width > picture.height else picture.pixel(0, 0)) < 40, ends)


def axis(panel):
    """The numbers at the left of a panel, from its lowest to its highest."""
    return sorted(float(t.text.replace("\N{MINUS SIGN}", "-")) for t in panel.iter(SVG + "text")
                  if t.get("text-anchor") == "end" and re.fullmatch("\N{MINUS SIGN}?[0-9.]+", t.text))


def test_heads_share_axes_and_legend(bench):
    """Curves of several heads are compared: panels of one quantity have the same axis, and one legend serves all."""
    root = drawn(bench, "distance", "--layers", "1,2", "--heads", "0,1")
    panels = [axis(panel) for layer in (1, 2) for head in (0, 1) for panel in groups(root, f"layer {layer}, head {head}")]
    equal(len(panels), 8)  # logits and probabilities of four heads
    for quantity in (panels[0::2], panels[1::2]):
        check(len(quantity[0]) >= 2, quantity)
        equal(quantity, [quantity[0]] * 4)
    legend = [t.text for t in root.iter(SVG + "text") if t.text in ("c2c", "c2p", "p2c")]
    equal(legend, ["c2c", "c2p", "p2c"])


def test_larger_type_has_no_smaller_labels(bench):
    """Labels that do not fit in the type asked for have the next smaller one, or the panels more rows."""
    needs_figures(bench)
    for width, text in (("85", "The old sailor told the boys"), ("174", "The old sailor told the boys a story")):
        found = []
        for asked in ("7", "10", "12", "14"):
            bench.fine("attention", DEMO, "--text", text, "--layers", "2", "--heads", "0", "--width-mm", width, "--font-size", asked, "-o", "type.svg")
            found.append(float(re.search(r'font-size="([0-9.]+)"[^>]*>sailor<', bench.read("type.svg"))[1]))
        check(found == sorted(found) and found[0] == 7 and found[-1] >= 10, found)


LONG = "The committee told the old sailor that nobody remembered his unforgettable demonstrations."  # 12 words, 24 tokens


def size(root):
    return [float(root.get(side).removesuffix("mm")) for side in ("width", "height")]


def shown(root):
    return {t.text for t in root.iter(SVG + "text")}


def long_text(bench, kind, *arguments):
    needs_figures(bench)
    done = bench.fine("attention", kind, DEMO, "--text", LONG, "--layers", "2", *arguments, "-o", "long.svg", "--numbers", "long.csv")
    return tree.parse(bench.path("long.svg")).getroot(), done.err


def test_pieces_without_room_become_words(bench):
    """A column or a page has the words of a sentence whose pieces it has not, or only in a higher figure; figure, note, LaTeX and data say the same."""
    for width, kind, heads in (("85", "components", "1"), ("85", "components", "0,1"), ("174", "components", "0,1"), ("174", "delta", "0"), ("85", "delta", "0")):
        root, said = long_text(bench, kind, "--heads", heads, "--width-mm", width, "-o", "long.pdf", "--latex", "long.tex")
        reason, high = re.search(rf"because they (have no room|would make the figure ([0-9]+) mm high)(?: at {width} mm)?; --pieces", said).groups()
        check(bool(high) == (width == "174" or kind == "delta" and heads == "0"), (said, width, kind))
        check(not high or int(high) > size(root)[1], (high, size(root)))
        contains(" ".join(shown(root) - {None}), "unforgettable", f"Pieces {reason} and are merged into words")
        contains(bench.read("long.tex"), f"Pieces {reason} and are merged into words")
        contains(said, "note: pieces are merged into words, in the numbers too, because")
        check(size(root)[1] <= 240 and size(root)[0] <= float(width) + 0.2, size(root))
        check("unforgettable" in bench.read("long.csv"), "the data is of what is drawn")
        bench.fine("attention", kind, DEMO, "--text", LONG, "--layers", "2", "--heads", heads, "--width-mm", width, "-o", "long.svg", "--numbers", "long.safetensors")
        contains(read_tensors(bench.path("long.safetensors"))[1]["Note"], f"Pieces {reason} and are merged into words")
    root, _ = long_text(bench, "components", "--heads", "1", "--width-mm", "85")
    check(size(root)[0] > 84.9 and size(root)[1] <= 150, size(root))


def test_pieces_that_make_no_figure_higher_stay(bench):
    """Words and the note that explains them would be higher than the pieces."""
    needs_figures(bench)
    text = "The old sailor, who had lost his ship in the great storm, told the frightened boys a story about the sea."
    for width in ("85", "174"):
        done = bench.fine("attention", "rollout", DEMO, "--text", text, "--layers", "0,2,4", "--width-mm", width, "-o", "r.svg")
        check("merged" not in done.err and "sailor" in shown(tree.parse(bench.path("r.svg")).getroot()), done.err)


def test_the_note_names_what_shows_tokens(bench):
    """Other columns, smaller type, or both; and it is true."""
    needs_figures(bench)
    words = "The old mill beside the river was bought by a company that makes paper"
    arguments = ["attention", DEMO, "--text", words, "--layers", "3", "--words", "--drop-special", "--width-mm", "85", "-o", "t.svg"]
    for heads in ("1", "0,1"):
        said = bench.fine(*arguments, "--heads", heads, "--layout", "3").err
        advice = re.search(r"axes show positions; (--.*) shows words", said)[1].split()
        check(bench.fine(*arguments, "--heads", heads, *advice).err == "" and ">mill</text>" in bench.read("t.svg"), advice)


def test_names_left_out_below_bars_are_counted(bench):
    """The note is in the figure and on stderr where labels skip tokens, and nowhere else."""
    needs_figures(bench)
    long = " ".join(["the old sailor told the boys a story about the sea"] * 8)
    for kind, text, width, count in (("query", TEXT, "85", None), ("query", long, "174", 2), ("query", long, "85", 3), ("embeddings", long, "85", 3)):
        done = bench.fine("attention", kind, DEMO, "--text", text, *(["--query", "1"] if kind == "query" else []), "--width-mm", width, "-o", "bars.svg")
        found = re.search(r"one of every ([0-9]+) names is written below the bars; more with --token-range", done.err)
        equal(found and int(found[1]), count)
        equal(f"Of every {count} names below the bars one is written." in " ".join(shown(tree.parse(bench.path("bars.svg")).getroot()) - {None}), count is not None)


def test_numbers_in_cells_take_fewer_panels_a_line(bench):
    """Where the cells of five panels side by side are too small for numbers, a page has room for three lines; beyond a page they are refused."""
    root = drawn(bench, "components", "--text", "a b c", "--annotate", "--width-mm", "85")
    check(size(root)[0] <= 85.1 and size(root)[1] <= 150, size(root))
    words = ["attention", DEMO, "--text", LONG, "--pieces", "--annotate", "--width-mm", "85", "-o", "n.svg"]
    contains(bench.run(*words).err, "numbers do not fit into cells", "fewer panels side by side")


def test_axes_without_room_count_words(bench):
    """One by one, not by the tokens where they begin, and the note speaks of words."""
    needs_figures(bench)
    text = "The harpooneer, whose arm was tattooed, threw his lance at the enormous whale."
    for special, width in (((), "85"), (("--drop-special",), "60")):
        said = bench.fine("attention", DEMO, "--text", text, "--width-mm", width, "--layers", "2", "--heads", "0,1", "--words", *special, "-o", "w.svg").err
        contains(said, f"words do not fit at {width} mm, axes show positions")
        numbers = re.findall(r">(\d+)</text>", bench.read("w.svg"))
        check({"5", "10"} <= set(numbers) and not {"6", "17"} & set(numbers), numbers)


def test_many_panels_stay_readable(bench):
    """Rows beyond a page make the figure higher than one, which is said, not panels of a millimetre."""
    needs_figures(bench)
    every = ["--layers", "all", "--heads", "all", "-o", "many.svg"]
    for words in (["attention", DEMO, "--text", "the white whale swam over the mall", "--width-mm", "85"],
                  ["attention", "difference", DEMO, "--text", "the white whale swam", "--ablate", "c2p@all"]):
        said = bench.fine(*words, *every).err
        root = tree.parse(bench.path("many.svg")).getroot()
        contains(said, f"{size(root)[1]:.0f} mm high, more than a page of text")
        check(size(root)[1] > 300, size(root))
    check("do not fit" not in said and "[CLS]" in shown(root), said)


def test_a_tower_says_that_width_is_unused(bench):
    needs_figures(bench)
    for layout, said in ((("--layout", "1"), True), ((), False)):
        done = bench.fine("attention", DEMO, "--text", TEXT, "--layers", "2", "--heads", "0", *layout, "-o", "tower.svg")
        equal("mm wide and leaves the rest of 174 mm unused: a higher --layout" in done.err, said)


def test_a_layout_without_room_for_words_says_so(bench):
    """Where the columns that were asked for lose the words and the program's own choice has them, the note says that."""
    _, said = long_text(bench, "components", "--heads", "1", "--width-mm", "85", "--layout", "3")
    contains(said, "axes show positions; leaving out --layout shows tokens")


def test_pieces_stay_where_they_are_asked_for(bench):
    root, said = long_text(bench, "components", "--heads", "1", "--width-mm", "85", "--pieces")
    contains(said, "axes show positions", "leaving out --pieces, --width-mm 120 or --token-range 0:")
    check("unforgettable" not in shown(root) and size(root)[1] <= 240, size(root))
    check("unforgettable" not in bench.read("long.csv"), "pieces in the data")
    bench.fine("attention", DEMO, "--text", LONG, "--numbers", "only.csv")  # no figure, nothing to fit
    check("unforgettable" not in bench.read("only.csv"), "pieces in data without a figure")
    contains(bench.run("attention", DEMO, "--text", LONG, "--words", "--pieces", "-o", "x.svg").err, "--pieces", "--words")


def test_resolution_moves_nothing(bench):
    needs_figures(bench)
    found = []
    for dpi in ("300", "150", "72"):
        outs = [word for suffix in ("pdf", "svg", "png") for word in ("-o", f"d{dpi}.{suffix}")]
        bench.fine("attention", DEMO, "--text", TEXT, "--layers", "2", "--heads", "0,1", "--anonymous", "--dpi", dpi, *outs)
        files = []
        for suffix in ("pdf", "svg"):
            files.append(bench.bytes(f"d{dpi}.{suffix}"))
        found.append(files)
    equal(found[1:], found[:1] * 2)


def test_a_layer_above_an_ablation_has_its_own_scale(bench):
    """On the scale of the ablated layer the one above it would be white."""
    effect = ("--ablate", "c2p@2:1", "--layers", "2,3", "--heads", "1")
    root = drawn(bench, "difference", *effect)
    own = [bar[-1] for bar in bars(root)]
    check(len(own) == 4 and own[0] > 4 * own[2] and own[1] > 4 * own[3], own)
    contains(" ".join(shown(root) - {None}), "Every row of signed panels has its own colour scale")
    equal(len(bars(drawn(bench, "difference", *effect, "--scale", "shared"))), 2)
    equal(len(bars(drawn(bench, "components", "--layers", "2,3", "--scale", "row"))), 4)


def test_scales_of_rows_take_no_width_from_panels(bench):
    """Words of a sentence are labels at both widths, all panels of a row on one line where a page has room; what has no room for words has panels that can be read."""
    needs_figures(bench)
    effect = ("attention", "difference", DEMO, "--text", LONG, "--ablate", "c2p@2:1", "--heads", "1", "--words", "-o", "wide.svg")
    for width, scale, highest in (("174", "row", 125), ("174", "shared", 125), ("85", "row", 240), ("85", "shared", 240)):
        bench.fine(*effect, "--layers", "2,3", "--scale", scale, "--width-mm", width)
        root = tree.parse(bench.path("wide.svg")).getroot()
        check("unforgettable" in shown(root) and size(root)[1] < highest, (width, scale, size(root)))
        equal(len(bars(root)), 4 if scale == "row" else 2)
    bench.fine(*effect, "--layers", "2-4", "--width-mm", "85", "--drop-special")
    root = tree.parse(bench.path("wide.svg")).getroot()
    places = [float(t.get("x")) for t in root.iter(SVG + "text") if t.text in ("c2c", "c2p")]
    check(max(places) - min(places) > 60 and size(root)[1] <= 240, (places, size(root)))


def test_titles_and_bars_of_panels_keep_clear(bench):
    """The highest number of a bar stands beneath the line of the titles, and every number ends before the page does."""
    root = drawn(bench, "difference", "--ablate", "c2p@2:1", "--layers", "2,3", "--heads", "1", "--scale", "panel")
    titles = [float(t.get("y")) for t in root.iter(SVG + "text") if t.text == "content to position"]
    for bar in groups(root, "colour bar"):
        for t in bar.iter(SVG + "text"):
            check(not any(0 < float(t.get("y")) - y < 2.5 for y in titles), (t.text, titles))


def test_line_views_are_stacked(bench):
    needs_figures(bench)
    for layout in ((), ("--layout", "1")):
        root, _ = long_text(bench, "lines", "--heads", "0,1", "--width-mm", "85", *layout)
        tops = [float(t.get("y")) for t in root.iter(SVG + "text") if t.text in ("layer 2, head 0", "layer 2, head 1")]
        check(len(tops) == 2 and tops[1] - tops[0] > 30, tops)
    done = bench.run("attention", "lines", DEMO, "--text", LONG, "--heads", "0,1", "--layout", "2", "--width-mm", "85", "-o", "r.svg")
    check(done.code == 2, done.code)
    contains(done.err, "2 line views side by side leave")


def test_what_is_not_shown_is_not_spoken_of(bench):
    words = " ".join(shown(drawn(bench, "components", "--components", "c2p,p2c", "--words", "--drop-special")) - {None})
    contains(words, "logits are averaged")
    check("probabilit" not in words, words)
    needs_figures(bench)
    bench.fine("attention", DEMO, "--text", TEXT, "--anonymous", "-o", "a.pdf", "--latex", "a.tex")
    check("Model" not in bench.read("a.tex") and "SHA-256" not in bench.read("a.tex"), bench.read("a.tex"))


def ids(svg):
    return re.findall(r' id="([^"]*)"', svg)


def test_two_figures_have_distinct_ids(bench):
    words = {"a": ["query", "--query", "1"], "b": ["distance", "--layers", "2", "--heads", "0,1"], "c": ["distance", "--layers", "1", "--heads", "0,1"]}
    found = {}
    for name, (kind, *options) in words.items():
        for out in (name, name + "again"):
            bench.fine("attention", kind, DEMO, "--text", 'a new <clipPath id="clip-0000000000000000-0"> store', *options, "--anonymous", "-q", "-o", f"{out}.svg")
        found[name] = bench.read(f"{name}.svg")
        equal(bench.read(f"{name}again.svg"), found[name])
        check(ids(found[name]), "a figure with clips")
    joined = "".join(found.values())
    equal(len(ids(joined)), len(set(ids(joined))))
    equal(set(re.findall(r'url\(#([^)]*)\)"', joined)), set(ids(joined)))


def test_a_lone_blank_is_drawn(bench):
    """A token that is a blank alone, of either kind of vocabulary, has a sign that can be seen; one that begins a word has none."""
    needs_figures(bench)
    bytes_model = str(make_model(bench.path("v1"), "01", "bpe-v1", 3005))
    for model, text, word in ((DEMO, "the \N{LATIN SMALL LETTER U WITH DIAERESIS} b", "the"), (bytes_model, "the  1", "the")):
        for kind in ("components", "lines"):
            bench.fine("attention", kind, model, "--text", text, "--layers", "1", "--heads", "0", "-q", "-o", "blank.svg")
            words = shown(tree.parse(bench.path("blank.svg")).getroot()) - {None}
            contains(words, "\N{OPEN BOX}", word)
            check(not words & {"", " ", "\N{LOWER ONE EIGHTH BLOCK}", "\N{LATIN CAPITAL LETTER G WITH DOT ABOVE}"}, words)


def test_four_types_of_two_heads_stand_side_by_side(bench):
    """Two lines of four panels, not four of two, where the page is wide enough."""
    text = "When the old captain resigned, his daughter took the ship to sea again."
    root = drawn(bench, "four-types", "--text", text, "--layers", "2", "--heads", "0,1", "--width-mm", "174")
    check(size(root)[0] > 150 and size(root)[1] < 130, size(root))
