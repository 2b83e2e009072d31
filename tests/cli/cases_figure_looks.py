"""How figures look, read from their SVG: fonts, scales, numbers of colour bars, axes and legends. SPDX-License-Identifier: MIT
"""
import base64
import re
import xml.etree.ElementTree as tree

from helpers import DEMO, Picture, check, contains, equal, needs_figures

TEXT = "a new store opened beside the new mall"
SVG, LINK = "{http://www.w3.org/2000/svg}", "{http://www.w3.org/1999/xlink}href"


def drawn(bench, kind, *arguments):
    """The SVG of `attention KIND`."""
    needs_figures(bench)
    bench.fine("attention", kind, DEMO, "--text", TEXT, *arguments, "-q", "-o", "look.svg")
    return tree.parse(bench.path("look.svg")).getroot()


def groups(root, label):
    return [g for g in root.iter(SVG + "g") if g.get("aria-label") == label]


def numbers(bar):
    return [float(t.text.replace("\N{MINUS SIGN}", "-")) for t in bar.iter(SVG + "text") if re.fullmatch("\N{MINUS SIGN}?[0-9.e-]+", t.text)]


def bars(root):
    """The numbers of each colour bar, in ascending order."""
    return [sorted(numbers(bar)) for bar in groups(root, "colour bar")]


def test_serif_is_times_or_like_it(bench):
    families = [drawn(bench, "lines", *font).get("font-family") for font in ((), ("--font", "serif"))]
    check("Sans" in families[0] and "serif" in families[0], families[0])
    contains(families[1], "Times New Roman", "Liberation Serif")
    check("Sans" not in families[1] and families[1].endswith("serif"), families[1])


def test_numbers_of_symmetric_bars_are_symmetric(bench):
    """Whatever room there is: a number stands there if its opposite does."""
    for width in range(85, 175, 5):
        for limit in ("1.28", "5.44", "13.7", "0.0237"):
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
        check(len(quantity[0]) > 2, quantity)
        equal(quantity, [quantity[0]] * 4)
    legend = [t.text for t in root.iter(SVG + "text") if t.text in ("c2c", "c2p", "p2c")]
    equal(legend, ["c2c", "c2p", "p2c"])
