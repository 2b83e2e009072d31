"""The page of `deberta report` in a real browser: what a click, a hover and the keys show, against the exact data beside it. Skipped
where there is no Chromium.

SPDX-License-Identifier: MIT
"""
import base64
import contextlib
import itertools
import json
import math
import os
import random
import re
import shlex
import shutil
import subprocess
from unittest import SkipTest
from xml.etree import ElementTree

from browser import Browser, find_chromium
from helpers import DEMO, check, contains, equal, has_figures, read_tensors, wait_until

TEXT = "the captain saw a 👩‍👩‍👧 and wrote مرحبا on <b>paper</b>"


@contextlib.contextmanager
def a_browser():
    chromium = find_chromium()
    if not chromium:
        raise SkipTest("no Chromium is installed")
    browser = Browser(chromium)
    try:
        yield browser
        check(not browser.errors, f"errors of the page: {browser.errors}")
    finally:
        browser.close()


def report(bench, model, *arguments):
    bench.fine("report", model, "-o", "page", "-q", *arguments)
    return "file://" + bench.path("page") + "/index.html"


def data_of(bench):
    return read_tensors(bench.path("page/text0.safetensors"))[0]


class Page:
    """The page as one sees it: numbers as texts, places on the screen."""

    def __init__(self, browser, url, opening=False):
        """Without an address of its own: the plainest view, unless it is the page's opening that is looked at."""
        self.browser = browser
        url += "" if opening or "#" in url else "#layer=0&head=0&show=sum"
        browser.open(url)
        browser.frame()
        self.about = json.loads(browser.evaluate("document.getElementById('json-page').textContent"))
        check(browser.evaluate("document.documentElement.dataset.ready") == "yes", f"{url}: ready, {browser.errors}")

    def text(self, selector):
        return self.browser.evaluate(f"document.querySelector({json.dumps(selector)})?.textContent ?? null")

    def place(self, selector):
        """The middle of an element, scrolled to where it can be seen."""
        return self.browser.evaluate(f"""(() => {{
            const e = document.querySelector({json.dumps(selector)});
            e.scrollIntoView({{block: 'center'}});
            const box = e.getBoundingClientRect();
            return [box.left + box.width / 2, box.top + box.height / 2];
        }})()""")

    def cell(self, i, j):
        """Where a cell of the matrix is: the labels' room is what the canvas has beside its cells."""
        cells = self.about["texts"][0]["cells"]
        return self.browser.evaluate(f"""(() => {{
            const canvas = document.getElementById('cursor');
            canvas.scrollIntoView({{block: 'center'}});
            const box = canvas.getBoundingClientRect(), pixels = document.getElementById('matrix').getContext('2d');
            const side = Number(canvas.dataset.cell);
            return [box.right - 1 - side * ({cells} - {j} - .5), box.bottom - 1 - side * ({cells} - {i} - .5)];
        }})()""")

    def pixel(self, x, y):
        """The colour of the matrix there."""
        return self.browser.evaluate(f"""(() => {{
            const canvas = document.getElementById('matrix'), box = canvas.getBoundingClientRect(), scale = canvas.width / box.width;
            return [...canvas.getContext('2d').getImageData(({x} - box.left) * scale, ({y} - box.top) * scale, 1, 1).data.slice(0, 3)];
        }})()""")

    def keys(self, selector, *keys):
        """Presses them where the element has the focus."""
        self.browser.evaluate(f"document.querySelector({json.dumps(selector)}).focus()")
        for key in keys:
            self.browser.press(key)

    def shown(self, centred=True):
        """{component: number} of the cell that the page speaks of, as written there, with or without row means."""
        rows = self.browser.evaluate("""[...document.querySelectorAll('#readout tr[data-component]')].map(
            row => [row.dataset.component, row.children[1].textContent, row.children[2].textContent])""")
        number = lambda text: float(text.replace("−", "-"))
        return {name: number(centred and less or value) for name, value, less in rows}


def row_mean(values, i, n):
    return sum(values[i * n:(i + 1) * n]) / n


def expected(tensors, layer, head, i, j, centred):
    """What the page must say, from the file beside it."""
    result = {}
    for name, key in (("c2c", "c2c"), ("c2p", "c2p"), ("p2c", "p2c"), ("logits", "sum"), ("probs", "probs")):
        tensor = tensors.get(f"attn.{layer}.{name}")
        if tensor is None:
            continue
        n = tensor.shape[3]
        values = tensor.values[head * n * n:(head + 1) * n * n]
        result[key] = values[i * n + j] - (row_mean(values, i, n) if centred and key != "probs" else 0)
    return result


def check_cell(page, tensors, layer, head, i, j, what, centred=True, tolerance=6e-4):
    found, wanted = page.shown(centred), expected(tensors, layer, head, i, j, centred)
    check(found.keys() == wanted.keys(), f"{what}: components {found.keys()}")
    for key, value in wanted.items():
        check(abs(found.get(key, 1e9) - value) <= tolerance * max(1, abs(value)), f"{what}: {key} {found.get(key)}, expected {value}")


def explore(bench, browser):
    """Every way to choose, on a text with scripts from everywhere."""
    page = Page(browser, report(bench, DEMO, "--text", TEXT))
    tensors = data_of(bench)
    text = page.about["texts"][0]
    tokens = text["tokens"]
    check(browser.requests[1:] == [], f"nothing is loaded: {browser.requests[1:]}")
    check(page.text("#tokens button[data-token='3']") == tokens[3], "the strip of tokens")
    check(page.text("title").startswith(os.path.basename(DEMO) + ":") and page.text("h1").startswith(os.path.basename(DEMO) + " "), f"a short title: {page.text('title')}")
    check("c2p, content to position" in page.text("#explain") and page.text("#terms-count") == "3", page.text("#explain"))
    check(browser.evaluate("[...document.querySelectorAll('a[href^=\"#\"]')].every(a => document.querySelector(a.getAttribute('href')))"), "links within the page lead somewhere")
    if page.text("#printed summary"):
        check("layer {layers}, head {heads}".format(**page.about["printed"]) in page.text("#printed summary"), "the figure for print says what it shows")

    browser.move(*page.cell(2, 5))
    check_cell(page, tensors, 0, 0, 2, 5, "hover")
    check_cell(page, tensors, 0, 0, 2, 5, "hover, as it is", centred=False)
    check("less row mean" in page.text("#readout thead"), "the readout says what its numbers are")
    readout = page.text("#readout")
    check(tokens[2] in readout and tokens[5] in readout and "float32" in readout, f"hover: {readout}")
    browser.move(3, 3)
    check("Point at a cell" in page.text("#readout"), "the pointer left")
    check(page.pixel(*page.cell(2, 5)) != page.pixel(*page.cell(5, 2)) or expected(tensors, 0, 0, 2, 5, True) == expected(tensors, 0, 0, 5, 2, True),
          "a row is a query")

    browser.click(*page.place("#tokens button[data-token='6']"))
    check("“" + tokens[6] + "”" in page.text("#column-title"), "the column")
    check(browser.evaluate("document.querySelector('#tokens button[data-token=\"6\"]').ariaPressed") == "true", "the token is marked")
    browser.click(*page.cell(4, 1))
    browser.move(3, 3)
    check_cell(page, tensors, 0, 0, 4, 1, "a click stays")
    check("“" + tokens[4] + "”" in page.text("#row-title"), f"the row: {page.text('#row-title')}")

    for key in "jl":
        browser.press(key)
    check_cell(page, tensors, 1, 1, 4, 1, "layer and head by keys")
    check(page.text("#matrix-title") == "Layer 1, head 1: logit, the sum of the terms", page.text("#matrix-title"))
    browser.press("3")
    check(page.text("#matrix-title").endswith("position to content"), "component by key")
    browser.press("c")
    check_cell(page, tensors, 1, 1, 4, 1, "row means left in", centred=False)
    check("left in" in page.text("#legend-note"), "the legend says so")
    browser.press("c")
    browser.click(*page.place("label[for=component-probs]"))
    check("probability" in page.text("#legend-note"), "component by click")

    page.keys("#cursor", "ArrowDown", "ArrowRight")
    check_cell(page, tensors, 1, 1, 5, 2, "arrows")
    check("“" + tokens[5] + "”" in page.text("#row-title") and "“" + tokens[2] + "”" in page.text("#column-title"), "row and column are those of the cell")
    marked = browser.evaluate("[...document.querySelectorAll('#tokens [aria-pressed=true], #tokens .key')].map(b => Number(b.dataset.token))")
    check(marked == [2, 5], f"the strip marks the tokens of the cell: {marked}")
    address = browser.evaluate("location.href")
    again = Page(browser, address)
    check_cell(again, tensors, 1, 1, 5, 2, "the address brings the view back")
    again.keys("#cursor", "Enter")
    check("“" + tokens[5] + "”" in page.text("#column-title") and "token=5" in browser.evaluate("location.hash"), "enter chooses the query")
    browser.press("Escape")
    browser.press("Escape")
    check("Point at a cell" in page.text("#readout") and "token=" not in browser.evaluate("location.hash"), "escape lets go")
    check(browser.evaluate("document.querySelectorAll('b b, td b, #tokens b').length") <= 2, "tokens stay texts")


def two_digits(value):
    """As the page writes them: from 99.5 the whole number, without a power of ten."""
    return f"{value:.0f}" if value >= 99.5 else f"{value:#.2g}".rstrip(".")


def best_word(text, probabilities, n, i):
    """The strongest ordinary key other than the query, and its share."""
    return max((probabilities[i * n + j], j) for j in range(n) if j != i and not text["special"][j])


def opening(bench, browser):
    """The page opens on an answer that the file bears out, in the figures' colours, within the first screen; five steps follow."""
    url = report(bench, DEMO, "--text", "a new store opened beside the new mall")
    tensors = data_of(bench)
    page = Page(browser, url, opening=True)
    text, about = page.about["texts"][0], page.about["texts"][0]["heads"]
    n, words = text["n"], [t for t in range(text["n"]) if not text["special"][t]]

    def probabilities(layer, head):
        return tensors[f"attn.{layer}.probs"].values[head * n * n:(head + 1) * n * n]

    means = {}
    for layer, row in enumerate(about):
        for head, one in enumerate(row):
            p = probabilities(layer, head)
            means[layer, head] = sum(best_word(text, p, n, i)[0] for i in words) / len(words)
            check(abs(one["habits"]["word"] - means[layer, head]) < 1e-6, f"{layer}, {head}: {one['habits']}, expected {means[layer, head]}")
            check(abs(one["habits"]["left"] - sum(p[i * n + i - 1] for i in range(1, n)) / (n - 1)) < 1e-6, f"{layer}, {head}: {one['habits']}")
    layer, head = max(means, key=means.get)
    check(page.text("#matrix-title") == f"Layer {layer}, head {head}: probabilities", page.text("#matrix-title"))
    equal(page.about["printed"], {"layers": str(layer), "heads": str(head)})
    p = probabilities(layer, head)
    query = max(words, key=lambda i: best_word(text, p, n, i)[0])
    share, key = best_word(text, p, n, query)
    said = page.text("#guide-words")
    for part in (text["tokens"][query].strip("▁"), text["tokens"][key].strip("▁"), f"{two_digits(100 * share)} %", f"layer {layer}, head {head}"):
        check(part in said, f"{part} in: {said}")
    palettes = page.about["palettes"]
    check({"blues", "greys", "polar"} <= palettes.keys() and page.browser.evaluate("document.getElementById('colours').value") == "blues", f"{palettes.keys()}")
    check(sum(browser.evaluate("Array.from(atob(JSON.parse(document.getElementById('json-page').textContent).palettes.blues.rgb), c => c.charCodeAt()).slice(0, 3)")) == 765, "from white")
    check(not browser.evaluate("document.getElementById('options').open"), "options are folded")
    for width, height in ((1440, 900), (1024, 768), (390, 844)):
        browser.resize(width, height)
        Page(browser, url, opening=True)
        where = browser.evaluate("""['guide-words', 'step-5', 'matrix'].map((id) => {
            const box = document.getElementById(id).getBoundingClientRect();
            return id === 'matrix' ? box.top + box.height : box.bottom;
        })""")
        check(max(where) <= height, f"{width} x {height}: ends of the sentence, the steps and the matrix {where}")
        if width > 1000:
            formula, side = browser.evaluate("""[document.querySelector('#readout math').getBoundingClientRect().bottom,
                document.getElementById('matrix').getBoundingClientRect().width]""")
            check(0 < formula <= height and side > (500 if width > 1200 else 330), f"{width} x {height}: the formula ends at {formula}, the matrix is {side} wide")
    browser.resize(1280, 900)
    steps(browser, Page(browser, url, opening=True), tensors, (layer, head, query, key))


def steps(browser, page, tensors, where):
    layer, head, query, key = where
    n, words = page.about["texts"][0]["n"], lambda: page.text("#guide-words")
    value = lambda name: expected(tensors, layer, head, query, key, True)[name]
    browser.press("n")
    for name in ("c2c", "c2p", "p2c"):
        check(f"{name} {value(name):+.2f}".replace("-", "−") in words(), f"{name} {value(name)}: {words()}")
    browser.press("n")
    alone = probabilities_without(tensors, layer, head, query, ["c2p", "p2c"])
    strongest = max(alone)
    check(f"{two_digits(100 * strongest)} %" in words(), f"order, {strongest}: {words()}")
    browser.press("n")
    distance = sum(p * abs(k // n - k % n) for k, p in enumerate(tensors[f"attn.{layer}.probs"].values[head * n * n:(head + 1) * n * n])) / n
    check(f"{two_digits(distance)} tokens away" in words(), f"reach, {distance}: {words()}")
    browser.press("n")
    full, left = value("probs"), {name: probabilities_without(tensors, layer, head, query, [name])[key] for name in ("c2c", "c2p", "p2c")}
    term = max(left, key=lambda name: abs(left[name] - full))
    check(f"Without {term}" in words() and f"{two_digits(100 * left[term])} % instead of {two_digits(100 * full)} %" in words(), f"{left}: {words()}")
    check(f"{term}@{layer}:{head}" in page.text("#keep-note"), page.text("#keep-note"))
    browser.press("n")
    check(page.text("#keep-note") == "" and "last bit" in words(), f"the term is back: {words()}")
    browser.press("n")
    check(f"{two_digits(100 * full)} %" in words(), "from the beginning")
    map_place = page.place("#heads")
    browser.move(map_place[0], map_place[1])
    check(not browser.evaluate("document.getElementById('tip').hidden"), "the map of heads tells its numbers")
    browser.press("l")
    check(browser.evaluate("document.getElementById('tip').hidden"), "and stops when one goes on by keys")
    browser.press("4")
    browser.click(*page.place("label:has(#view-lines)"))
    check(page.text("#matrix-title").endswith("probabilities"), f"lines are of probabilities: {page.text('#matrix-title')}")
    browser.click(*page.place("[data-habit=left]"))
    best = max(((one["habits"]["left"], l, h) for l, row in enumerate(page.about["texts"][0]["heads"]) for h, one in enumerate(row)))
    check(page.text("#matrix-title").startswith(f"Layer {best[1]}, head {best[2]}:"), page.text("#matrix-title"))
    browser.press("0")
    for habit in ("first", "last", "itself", "left", "right"):  # the sentence speaks of what a query looks at most, special tokens too
        browser.click(*page.place(f"[data-habit={habit}]"))
        at, of = (int(k) for k in re.findall(r"\d+", page.text("#matrix-title"))[:2])
        flat = tensors[f"attn.{at}.probs"].values[of * n * n:(of + 1) * n * n]
        most = {f"with {two_digits(100 * max(flat[i * n:(i + 1) * n]))} %" for i in range(n)}
        check(any(words().endswith(f"{share} of its attention.") for share in most), f"{habit}: {words()}, {most}")


def colours(bench, browser):
    """Pixels are the palette's, at the place of the value."""
    ids = ",".join(str(3 + 7 * k % 90) for k in range(40))
    url = report(bench, "synthetic:v3-xsmall,vocab=100,layers=1", "--ids", ids)
    page = Page(browser, url + "#layer=0&head=2&show=c2p")
    tensors = data_of(bench)
    palette = browser.evaluate("Array.from(atob(JSON.parse(document.getElementById('json-page').textContent).palettes.polar.rgb), c => c.charCodeAt())")
    limit = page.about["texts"][0]["heads"][0][2]["centred"]
    for i, j in ((0, 1), (1, 0), (3, 30), (30, 3), (39, 39), (20, 7)):
        value = expected(tensors, 0, 2, i, j, True)["c2p"]
        level = round((.5 + value / limit / 2) * 256)
        near = [palette[3 * k:3 * k + 3] for k in (level - 1, level, level + 1) if 0 <= k < 257]
        check(page.pixel(*page.cell(i, j)) in near, f"cell {i}, {j}: {page.pixel(*page.cell(i, j))}, expected {near}")


def grades(bench, browser):
    """Eight bits, pooled, a single token, missing terms."""
    many = ",".join(str(3 + 11 * k % 90) for k in range(200))
    page = Page(browser, report(bench, "synthetic:v3-xsmall,vocab=100,layers=6", "--ids", many))
    tensors = data_of(bench)
    about = page.about["texts"][0]
    check(not about["exact"] and about["pool"] == 1, f"200 tokens: {about['exact']}, {about['pool']}")
    browser.move(*page.cell(150, 20))
    check_cell(page, tensors, 0, 0, 150, 20, "8 bits", tolerance=2 * max(about["heads"][0][0]["scale"]) / 127)
    check("8 bits" in page.text("#readout"), "the page says that numbers are rounded")

    longer = ",".join(str(3 + 13 * k % 90) for k in range(230))
    page = Page(browser, report(bench, "synthetic:v1-base,vocab=100,layers=1,hidden=64,heads=1", "--ids", longer))
    tensors = data_of(bench)
    about = page.about["texts"][0]
    check((about["pool"], about["cells"]) == (2, 115), f"230 tokens: pool {about['pool']}")
    browser.move(*page.cell(60, 10))
    under = [expected(tensors, 0, 0, i, j, True)["c2c"] for i in (120, 121) for j in (20, 21)]
    check(abs(page.shown()["c2c"] - sum(under) / 4) < about["heads"][0][0]["scale"][0] / 100, f"pooled mean: {page.shown()['c2c']} of {under}")
    check("means of 2 × 2" in page.text("#readout") and "range" in page.text("#readout"), "the page says that cells are pooled")
    low, high = (float(x.replace("−", "-")) for x in page.text("#readout tr.small td").split("…"))
    step = about["heads"][0][0]["range"][0] / 100
    check(abs(low - min(under)) < step and abs(high - max(under)) < step, f"pooled range: {low}, {high} of {under}")
    pooled_words(bench, browser, "file://" + bench.path("page") + "/index.html")

    page = Page(browser, report(bench, "synthetic:v1-base,vocab=100,layers=1,hidden=64,heads=1,terms=none", "--ids", "5"))
    browser.move(*page.cell(0, 0))
    check(page.shown() == {"c2c": 0, "sum": 0, "probs": 1}, f"one token without relative positions: {page.shown()}")
    check(browser.evaluate("document.getElementById('component-p2c').disabled"), "terms that the model lacks")


def pooled_words(bench, browser, url):
    """A mean over a block is no share of a token: sentences say what a token of the block pays, the rest says that it is a mean."""
    page = Page(browser, url, opening=True)
    text, probabilities = page.about["texts"][0], data_of(bench)["attn.0.probs"].values
    n, pool = text["n"], text["pool"]
    greatest = {(i // pool, j // pool): 0 for i in range(n) for j in range(n)}
    for k, p in enumerate(probabilities):
        place = k // n // pool, k % n // pool
        greatest[place] = max(greatest[place], p)
    said = page.text("#guide-words")
    query = max((place for place in greatest if place[0] != place[1]), key=greatest.get)[0]
    share = max(greatest[query, j] for j in range(text["cells"]))
    contains(said, f"with {two_digits(100 * share)} % of its attention", "a token of ", f"a block of {pool} tokens", "on average")
    browser.press("n")
    contains(page.text("#guide-words"), f"means over {pool} × {pool} pairs")
    browser.evaluate("document.getElementById('matrix-table').open = true")
    browser.frame()
    for place in ("#row-title", "#column-title", "#matrix-table caption", "#legend-note"):
        contains(page.text(place), f"means of {pool} × {pool} values")
    check("--scale" not in (page.text("#view-command") or ""), f"the command draws values, not means: {page.text('#view-command')}")
    browser.save_downloads(bench.folder)
    browser.click(*page.place("#save-csv"))
    check(wait_until(lambda: "probability_mean" in (bench.read("layer0-head0-sum.csv") if os.path.exists(bench.path("layer0-head0-sum.csv")) else "")), f"no CSV: {bench.files()}")
    contains(bench.read("layer0-head0-sum.csv"), "query,key,query_token,key_token,c2c_mean,", ",logit_mean,probability_mean")


FORMULA = {"demo-bert": ("qi·kj", "d", []), "12-v2-b8-n33-c2p": ("qi·kj+qi·Ki−j", "2d", ["c2p"]), "demo": ("qi·kj+qi·Ki−j+kj·Qi−j", "3d", ["c2p", "p2c"])}


def formulas(bench, browser):
    """The formula and the steps speak of the terms that the model has, and of no other."""
    for model in (os.path.join(os.path.dirname(DEMO), "demo-bert"), os.path.join(os.path.dirname(DEMO), "../tests/golden/12-v2-b8-n33-c2p"), DEMO):
        name = os.path.basename(model)
        terms, root, positions = FORMULA[name]
        page = Page(browser, report(bench, model, "--ids", "1,5,7,9,11,2") + "#layer=0&head=0&show=sum")
        shown = """(() => { const e = document.querySelector('%s math mfrac'), seen = (node) => node.nodeType === 3 ? node.textContent.trim()
            : getComputedStyle(node).display === 'none' ? '' : [...node.childNodes].map(seen).join(''); return [...e.children].map(seen); })()"""
        for place in ("#readout", "#explain"):
            equal(browser.evaluate(shown % place), [terms, root], f"{name}, {place}")
            if place == "#readout":
                browser.move(*page.cell(1, 2))
        said = page.browser.evaluate("document.getElementById('formula').ariaLabel")
        for step in range(1, 5):
            browser.press("n")
            said += page.text("#guide-words")
        lacking = {"c2p", "p2c"} - set(positions)
        named = said.replace("This model has neither c2p nor p2c", "")
        check(not any(term in named for term in lacking), f"{name} has no {lacking}: {said}")
        check(positions or "relative table" not in said, f"{name} has no relative table: {said}")
        for key, words in (("lines", "Each line"), ("heads", "Each square"), ("matrix", "Each row")):
            browser.click(*page.place("#step-0"))
            browser.click(*page.place(f"label:has(#view-{key})"))
            check(page.text("#guide-words").startswith(words), f"{key}: {page.text('#guide-words')}")


def drawn_numbers(bench, browser):
    """A number is written with the digits asked for and without a power of ten, whatever its size."""
    seed = random.randrange(1 << 32)
    print(f"# seed {seed}")
    source = random.Random(seed)
    Page(browser, report(bench, DEMO, "--ids", "1,5,2"))
    drawn = [(value, 2) for value in (9.94, 9.96, 99.4999, 99.5, 99.97, 119.6, 999.7)] + [(10 ** source.uniform(-4, 5.9) + 1e-9, source.randint(2, 4)) for _ in range(2000)]
    writer = browser.evaluate("[...document.scripts].map((s) => s.textContent.match(/function formatNumber[^]*?\\n}/)?.[0]).find(Boolean)")
    written = browser.evaluate(f"{json.dumps(drawn)}.map(([value, digits]) => ({writer})(value, digits))")
    for (value, digits), text in zip(drawn, written):
        what = f"seed {seed}: {value} with {digits} digits is {text}"
        check(re.fullmatch(r"[0-9]+(\.[0-9]+)?", text), what)
        step = 10 ** min(0, math.floor(math.log10(value)) + 1 - digits)
        check(abs(float(text) - value) <= .5001 * step, what)


def rest(bench, browser):
    """Sweeps, tables, a narrow window, paper."""
    page = Page(browser, report(bench, "synthetic:v3-xsmall,vocab=100,layers=2,hidden=64,heads=1", "-n", "4-8*2", "--reps", "1", "--isa",
                                "scalar", "--with", "verify"))
    documents = {name: json.load(open(bench.path(f"page/{name}.json"), encoding="utf-8"))
                 for name in ("lengths", "layers", "verify", "receptive-field")}
    medians = [f"{1e3 * r['median_s']:.4g}"[:4] for r in documents["lengths"]["results"]]
    browser.move(*page.place("#latency .point"))
    check(medians[0] in page.text("#tip") and "4 tokens" in page.text("#tip"), f"a point of the sweep: {page.text('#tip')}, median {medians[0]}")
    page.keys("#latency .chart", "ArrowRight", "ArrowRight")
    check(medians[1] in page.text("#tip") and "8 tokens" in page.text("#tip"), f"the next by an arrow: {page.text('#tip')}, median {medians[1]}")
    layers = browser.evaluate("document.querySelectorAll('#latency .chart')[1].querySelectorAll('.point').length")
    check(layers == len(documents["layers"]["results"]) == 2, f"numbers of layers: {layers}")
    check(f"{documents['verify']['checks']} checks, 0 failed" in page.text("#verification"), "verification")
    check(len(documents["verify"]["results"]) == browser.evaluate("document.querySelectorAll('#verification details tbody tr').length"), "all results")
    widths = browser.evaluate("[...document.querySelectorAll('#receptive-field table:first-of-type tbody tr')].slice(0, 2).map(r => Number(r.cells[1].textContent))")
    check(widths == [row["run"] for row in documents["receptive-field"]["per_layer"]], f"receptive field: {widths}")
    check("not a number" not in page.text("#verification"), "a tier without a check is a dash")
    labels = browser.evaluate("document.querySelectorAll('#latency .chart')[0].querySelectorAll('text[text-anchor=end]').length")
    check(labels >= 4, f"latency: {labels} labels")
    top = browser.evaluate("Math.min(...[...document.querySelectorAll('#latency .chart')[0].querySelectorAll('text[text-anchor=end]')].map(t => Number(t.getAttribute('y'))))")
    highest = browser.evaluate("Math.min(...[...document.querySelectorAll('#latency .chart')[0].querySelectorAll('.point')].map(t => Number(t.getAttribute('cy'))))")
    check(top - 4 <= highest, f"no point is above the highest label: {highest}, {top - 4}")
    check("_" not in browser.evaluate("[...document.querySelectorAll('#environment dt')].map(e => e.textContent).join()"), page.text("#environment"))
    check("GFLOP/s" in page.text("#environment") and "gflops" not in page.text("#environment"), page.text("#environment"))
    check(page.about["steps"][0]["command"] in page.text("#commands"), "the commands")

    browser.prefer("dark")
    browser.frame()
    dark = "getComputedStyle(document.body).backgroundColor"
    check(browser.evaluate(dark) != "rgb(255, 255, 255)", "dark where the system is")
    browser.evaluate("addEventListener('beforeprint', () => { window.onPaper = " + dark + "; })")
    browser.call("Emulation.setEmulatedMedia", media="print")
    on_paper = browser.evaluate("getComputedStyle(document.querySelector('#readout .on-screen')).display")
    equal(on_paper, "none", "paper has no advice to point at it")
    browser.call("Emulation.setEmulatedMedia", media="")
    browser.prefer("dark")
    browser.print(bench.path("page.pdf"))
    check(browser.evaluate("window.onPaper") == "rgb(255, 255, 255)", "light on paper")
    check(browser.evaluate(dark) != "rgb(255, 255, 255)", "dark again after printing")


def paper(bench, browser):
    """All of the page's words are on paper, whatever its size: nothing is cut off at its edge or hidden by a scroll bar."""
    pdftotext = shutil.which("pdftotext")
    page = Page(browser, report(bench, DEMO, "--text", "the white whale swam over the mall"))
    sentences = [" ".join(text.split()) for text in browser.evaluate("[...document.querySelectorAll('#explain li')].map(e => e.textContent)")]
    check(len(sentences) >= 4 and page.text("#answers"), sentences)
    for width, height in ((8.5, 11), (8.27, 11.69)):
        browser.resize(round((width - 0.95) * 96), 900)
        browser.call("Emulation.setEmulatedMedia", media="print")
        wide = browser.evaluate("""[...document.querySelectorAll('#stage *, .way *')].filter(e => e.getClientRects().length && !e.closest('math, .hidden, canvas'))
            .filter(e => e.getBoundingClientRect().right > innerWidth + 1 || (getComputedStyle(e).overflowX !== 'visible' && e.scrollWidth > e.clientWidth + 1 && !e.matches('svg, svg *')))
            .map(e => e.tagName + '#' + e.id + '.' + e.className)""")
        equal(wide, [], f"{width} x {height} in")
        browser.call("Emulation.setEmulatedMedia", media="")
        if not pdftotext:
            continue
        data = browser.call("Page.printToPDF", paperWidth=width, paperHeight=height)["data"]
        with open(bench.path("paper.pdf"), "wb") as file:
            file.write(base64.b64decode(data))
        words = "".join(subprocess.run([pdftotext, bench.path("paper.pdf"), "-"], capture_output=True, text=True, check=True).stdout.split())
        check("attention,termbyterm" in words, "the title")
        for sentence in sentences:
            check(sentence.replace(" ", "") in words, f"{width} x {height} in: {sentence}")


def probabilities_without(tensors, layer, head, i, terms):
    """A softmax of what is left of the logits, in float64."""
    n = tensors[f"attn.{layer}.c2c"].shape[3]
    rows = [tensors[f"attn.{layer}.{name}"].values[(head * n + i) * n:(head * n + i + 1) * n] for name in ("c2c", "c2p", "p2c") if name not in terms]
    powers = [math.exp(sum(column)) for column in zip(*rows)] if rows else [1] * n
    return [p / sum(powers) for p in powers]


def set_box(browser, selector, value):
    """A choice as a person makes it: the element changes and says so."""
    browser.evaluate(f"""(() => {{
        const e = document.querySelector({json.dumps(selector)});
        if (e.type === 'checkbox') e.checked = {json.dumps(value)}; else e.value = {json.dumps(value)};
        e.dispatchEvent(new Event('change', {{bubbles: true}}));
    }})()""")
    browser.frame()


def low_precision(bench, browser):
    """Heading, matrix, verification and files name a precision that is not float32."""
    url = report(bench, DEMO, "--text", "a new store", "--precision", "int8", "--skip", "receptive-field", "--with", "verify")
    page = Page(browser, url + "#layer=0&head=1&show=probs&cell=2,1")
    check("int8 linear layers" in page.text("#facts"), page.text("#facts"))
    check("Linear layers are in int8." in page.text("#verification"), page.text("#verification"))
    check("Computed with int8 linear layers." in page.text("#readout"), page.text("#readout"))


def without_terms(bench, browser):
    """Boxes take terms out of the softmax of a head, a layer, everything; against the file, and against --ablate."""
    url = report(bench, DEMO, "--text", TEXT)
    page = Page(browser, url + "#layer=0&head=1&show=probs&cell=4,2")
    tensors = data_of(bench)
    bench.fine("encode", DEMO, "--text", TEXT, "--component-layers", "all", "--attention-layers", "all", "--ablate", "c2p@0", "-o", "ablated.safetensors", "-q")
    ablated, _ = read_tensors("ablated.safetensors")
    n = tensors["attn.0.c2c"].shape[3]

    def same(wanted, what):
        found = page.shown()["probs"]
        check(abs(found - wanted) <= 6e-4 * max(wanted, 1e-3), f"{what}: {found}, expected {wanted}")

    set_box(browser, "#keep-c2p", False)
    same(probabilities_without(tensors, 0, 1, 4, ["c2p"])[2], "c2p out of this head")
    same(ablated["attn.0.probs"].values[(1 * n + 4) * n + 2], "as --ablate has it")
    check("without c2p" in page.text("#matrix-title") and "c2p@0:1" in page.text("#keep-note") and "not recomputed" in page.text("#keep-note"), page.text("#keep-note"))
    check(not has_figures(bench) or "--ablate c2p@0:1 " in page.text("#view-command"), page.text("#view-command"))
    browser.press("l")
    same(expected(tensors, 0, 2, 4, 2, True)["probs"], "another head is as it was")
    set_box(browser, "#keep-scope", "layer")
    check(browser.evaluate("document.getElementById('keep-c2p').indeterminate"), "half a tick: one head of the layer")
    set_box(browser, "#keep-c2c", False)
    same(probabilities_without(tensors, 0, 2, 4, ["c2c"])[2], "c2c out of the layer")
    set_box(browser, "#keep-scope", "all")
    for term in ("c2c", "c2p", "p2c"):
        set_box(browser, f"#keep-{term}", False)
    browser.press("j")
    same(1 / n, "nothing left: all keys alike")
    check("removed=c2c%40all%2Cc2p%40all%2Cp2c%40all" in browser.evaluate("location.hash"), browser.evaluate("location.hash"))
    Page(browser, browser.evaluate("location.href"))
    same(1 / n, "the address keeps it")
    browser.click(*page.place("#keep-all"))
    same(expected(tensors, 1, 2, 4, 2, True)["probs"], "all back")
    check(page.text("#keep-note") == "", "nothing to say")


def same_lines(bench, page, saved):
    """The command of the lines of c2p draws as many as the page, the negative ones dashed."""
    if not has_figures(bench):
        return
    page.browser.click(*page.place("#save-svg"))
    paths = list(ElementTree.parse(saved("text0-layer1-head1-lines-c2p.svg")).getroot().iter("{http://www.w3.org/2000/svg}path"))
    command = shlex.split(page.text("#view-command"))
    equal(command[2], "lines", "the kind")
    bench.fine(*command[1:-1], "lines.svg")
    figure = bench.read("lines.svg")
    n, left_out = page.about["texts"][0]["n"], int(re.search(r"(\d+) weaker pairs", figure).group(1))
    equal(len(paths), n * n - left_out, "lines")
    equal(sum(path.get("stroke-dasharray") is not None for path in paths), figure.count("stroke-dasharray") - 3, "dashed lines, without those of the key")


def same_colours(bench, page):
    """The command of the view draws the palette of the view: the program's own is the one that the command need not name."""
    if not has_figures(bench):
        return
    seen = []
    for palette in ("blues", "cividis", "magma"):
        set_box(page.browser, "#colours", palette)
        words = shlex.split(page.text("#view-command").split("\n")[0])[1:-1]
        chosen = ["--palette", palette]
        equal(words[words.index("--palette"):][:2] if "--palette" in words else [], [] if palette == "blues" else chosen, f"palette of the command, {palette}")
        bench.fine(*words, "asked.svg")
        bench.fine(*words, "same.svg", *chosen, "-q")
        pictures = [re.findall(r'base64,[^"]+|fill="#[0-9a-f]+"', bench.read(name)) for name in ("asked.svg", "same.svg")]
        equal(pictures[0], pictures[1], f"colours of the command, {palette}")
        check(pictures[0] not in seen, f"{palette} looks like another palette")
        seen.append(pictures[0])
    set_box(page.browser, "#colours", "blues")


def made_without_terms(bench, browser):
    """A page of `report --ablate` names what is out: above, in the first sentence, at the boxes, the matrix and the answers, in the command."""
    page = Page(browser, report(bench, DEMO, "--text", "the [MASK] sat", "--ablate", "c2p@0,p2c=mean@1:2"), opening=True)
    for said in (*map(page.text, ("#facts", "#keep-note", "#guide-words")), browser.evaluate("document.querySelector('#answers th').title")):
        contains(said, "without c2p@0, p2c=mean@1:2")
    for hash, matrix, boxes in (("layer=0&head=0", "without c2p", "[false,true]"), ("layer=1&head=2", "without p2c", "[true,false]"), ("layer=1&head=1", "probabilities", "[true,true]")):
        page = Page(browser, f"file://{bench.path('page')}/index.html#{hash}&show=probs")
        check(page.text("#matrix-title").endswith(matrix), page.text("#matrix-title"))
        equal(browser.evaluate("JSON.stringify(['c2p', 'p2c'].map((c) => document.getElementById(`keep-${c}`).checked))"), boxes, hash)
    check(not has_figures(bench) or "--ablate c2p@0,p2c=mean@1:2" in page.text("#view-command"), page.text("#view-command"))


def views(bench, browser):
    """Lines, all heads, two heads and two texts side by side, zoom, the table, files and the command."""
    url = report(bench, DEMO, "--text", "a new store opened beside the new mall", "--text", "the old man sat by the sea")
    page = Page(browser, url + "#layer=1&head=1&show=probs")
    tensors = data_of(bench)
    browser.save_downloads(bench.folder)

    def saved(name):
        check(wait_until(lambda: os.path.exists(name) and os.path.getsize(name)), f"{name} was not saved: {bench.files()}")
        return name

    browser.click(*page.place("#save-svg"))
    drawn = ElementTree.parse(saved("text0-layer1-head1-probs.svg")).getroot()
    texts = ["".join(e.itertext()) for e in drawn.iter("{http://www.w3.org/2000/svg}text")]
    tokens = page.about["texts"][0]["tokens"]
    check(all(texts.count(token) >= 2 for token in tokens) and any("probabilities" in text for text in texts), f"SVG: {texts[:40]}")
    check(sum(e.get("shape-rendering") == "crispEdges" for e in drawn.iter()) >= len(tokens) ** 2, "SVG: a rectangle a cell")
    browser.click(*page.place("#save-png"))
    with open(saved("text0-layer1-head1-probs.png"), "rb") as file:
        check(file.read(8) == b"\x89PNG\r\n\x1a\n", "PNG")

    def run_command(what):
        if not has_figures(bench):
            return  # the page then names no command
        name, *words = shlex.split(page.text("#view-command").split("\n")[0])
        equal(name, "deberta", what)
        bench.fine(*words)

    run_command("the command of a matrix")
    same_colours(bench, page)
    for key in ("c", "2"):
        browser.press(key)
    run_command("the command of a term with its row mean")
    browser.press("5")
    browser.press("v")
    check(browser.evaluate("document.getElementById('stage').dataset.view") == "lines", "lines by key")
    run_command("the command of lines")
    browser.press("2")
    same_lines(bench, page, saved)
    browser.press("5")
    page.keys("#cursor", "ArrowDown", "ArrowDown", "ArrowRight")
    check_cell(page, tensors, 1, 1, 1, 1, "arrows among lines")
    set_box(browser, "#lines", "layer")
    check(page.text("#head-colours") == "head 0head 1head 2", page.text("#head-colours"))
    browser.press("v")
    run_command("the command of all heads")
    page.keys("#heads", "ArrowDown", "Enter")
    check(page.text("#matrix-title") == "Layer 2, head 1: probabilities", page.text("#matrix-title"))

    browser.press("b")
    browser.press("l")
    check(page.text("#held-title") == "Layer 2, head 1: probabilities", f"held: {page.text('#held-title')}")
    check(page.text("#readout thead") == "layer 2, head 2layer 2, head 1", page.text("#readout thead"))
    row = browser.evaluate("[...document.querySelector('#readout tr[data-component=probs]').cells].slice(1).map(c => Number(c.textContent))")
    wanted = [expected(tensors, 2, head, 1, 1, True)["probs"] for head in (2, 1)]
    check(all(abs(a - b) < 1e-3 for a, b in zip(row, wanted)), f"two heads: {row}, expected {wanted}")
    set_box(browser, "#text", "1")
    check(page.text("#held-title").startswith("Text 0, layer 2") and page.text("#matrix-title").startswith("Text 1, layer 2"), "two texts")
    browser.press("b")
    before = browser.evaluate("document.getElementById('matrix').clientWidth")
    browser.press("+")
    check(browser.evaluate("document.getElementById('matrix').clientWidth") > 1.3 * before, "larger by key")
    check(browser.evaluate("document.documentElement.scrollWidth <= innerWidth"), "zoom scrolls within its pane")
    browser.evaluate("document.getElementById('matrix-table').open = true")
    browser.frame()
    n = page.about["texts"][1]["n"]
    check(browser.evaluate("document.querySelectorAll('#matrix-table tbody tr, #matrix-table thead th').length") == 2 * n + 1, "the matrix as a table")


SHOWN = """[...document.querySelectorAll('#view-command, .command code')].filter((e) => e.textContent && !e.hidden).flatMap((e) => e.textContent.split('\\n'))"""
TAKEN_OUT = "&centre=none&token=2&removed=c2c%400%3A1%2Cp2c%402%3A0"
OPTION_SETS = ((), ("--threads", "2", "--reference", "microsoft"), ("--precision", "int8", "--memory-limit", "4G"), ("--ablate", "c2p@0", "--ablate", "p2c=mean@1:2", "--seed", "3"),
               ("--max-tokens", "9", "-o", "it's page.html"), ("--precision", "int16", "-o", "a page's folder"))


def shown_commands(bench, browser):
    """Every command that stands on a page runs as it is typed, whatever the options of the report."""
    for options in OPTION_SETS:
        name = options[-1] if "-o" in options else "page"
        bench.fine("report", DEMO, "-q", "--text", "The King and the [MASK] sat", *(("-o", "page") if name == "page" else ()), *options)
        url = f"file://{bench.path(name).replace(' ', '%20')}{'' if name.endswith('.html') else '/index.html'}"
        lines = set()
        for k, (view, show, rest) in enumerate(itertools.product(("matrix", "lines", "heads"), ("c2c", "c2p", "p2c", "sum", "probs"), ("", TAKEN_OUT))):
            if not options or k % 4 == 1:
                Page(browser, f"{url}#layer=1&head=2&view={view}&show={show}{rest}")
                lines.update(browser.evaluate(SHOWN))
        commands = [shlex.split(line) for line in sorted(lines)]
        kinds = {" ".join(words[1:3]) for words in commands}
        check(len(commands) > 10 and all(words[0] == "deberta" for words in commands), f"{options}: {commands}")
        check(not has_figures(bench) or {"attention lines", "attention grid", "attention components"} <= kinds, f"{options}: {kinds}")
        for words in commands:
            if words[1] != "report":  # it takes the time of a report, and has tests of its own
                bench.fine(*words[1:])


WIDTHS = ((390, 844), (768, 1024), (1024, 768), (1440, 900), (1920, 1080))


def keys_alone(bench, browser):
    """Tab reaches every control, and each does its work by a key."""
    page = Page(browser, report(bench, DEMO, "--text", "a new store opened beside the new mall"))
    tensors = data_of(bench)

    def tab_to(name):
        for _ in range(60):
            browser.press("Tab")
            if browser.evaluate("document.activeElement.id") == name:
                return
        check(False, f"Tab does not reach {name}")

    tab_to("step-1")
    browser.press("Enter")
    check("A logit is a sum" in page.text("#guide-words"), "a step by Enter")
    browser.press("Escape")
    for name in ("layer", "head", "component-sum", "view-matrix", "keep-c2p"):
        tab_to(name)
    browser.press(" ")
    check("c2p@0:0" in page.text("#keep-note"), "a box by the space bar")
    browser.press(" ")
    for name in ("keep-scope", "options-fold"):
        tab_to(name)
    browser.press("Enter")
    for name in ("centre", "scale", "colours", "zoom", "hold"):
        tab_to(name)
    browser.press("Enter")
    check(browser.evaluate("document.activeElement.ariaPressed") == "true", "a button by Enter")
    browser.press("Enter")
    for name in ("heads", "cursor"):
        tab_to(name)
    browser.press("ArrowRight")
    browser.press("ArrowRight")
    check_cell(page, tensors, 0, 0, 0, 1, "a cell by keys alone")
    for name in ("save-svg", *["copy-command"] * has_figures(bench)):
        tab_to(name)


def numbers_visible(browser):
    """Whether the last number of the cell is on the screen as it is scrolled now."""
    return browser.evaluate("""(() => {
        const row = document.querySelector('#readout tr[data-component=probs]')?.getBoundingClientRect();
        return Boolean(row) && row.height > 0 && row.top >= 0 && row.bottom <= innerHeight && row.right <= innerWidth;
    })()""")


def check_targets(browser, least, what):
    """Everything that can be clicked is at least so many pixels wide and high, but links within a text."""
    small = browser.evaluate("""[...document.querySelectorAll('button, select, input, summary, a, [tabindex]')].filter((e) => e.checkVisibility()).filter((e) => {
        const box = (e.closest('label') || e).getBoundingClientRect(), inText = e.tagName == 'A' && getComputedStyle(e).display == 'inline';
        return !inText && (box.width < %d || box.height < %d);
    }).map((e) => `${e.outerHTML.slice(0, 60)} ${e.getBoundingClientRect().height}`)""" % (least, least))
    check(small == [], f"{what}: {small[:5]}")


def widths(bench, browser):
    """At every width, light and dark: the numbers of a cell on the screen beside it, by mouse, keys and touch; nothing to scroll sideways."""
    url = report(bench, DEMO, "--text", "a new store opened beside the new mall")
    tensors = data_of(bench)
    for width, height in WIDTHS:
        for scheme in ("light", "dark"):
            browser.resize(width, height)
            browser.prefer(scheme)
            page, where = Page(browser, url), f"{width} pixels, {scheme}"
            browser.move(*page.cell(1, 2))
            check_cell(page, tensors, 0, 0, 1, 2, f"{where}, mouse")
            check(numbers_visible(browser), f"{where}: numbers under the mouse are not on the screen")
            browser.move(1, 1)
            page.keys("#cursor", "ArrowDown", "ArrowDown", "ArrowDown", "ArrowRight")
            check_cell(page, tensors, 0, 0, 2, 1, f"{where}, keys")
            check(numbers_visible(browser), f"{where}: numbers by keys are not on the screen")
            check(browser.evaluate("document.documentElement.scrollWidth") <= width, f"{where}: scrolls sideways")
            check_targets(browser, 24, f"{where}: too small for a mouse")
        browser.touch(True)
        page = Page(browser, url)
        where = f"{width} pixels, touch"
        browser.tap(*page.cell(3, 1))
        check_cell(page, tensors, 0, 0, 3, 1, where)
        check(numbers_visible(browser), f"{where}: numbers are not on the screen")
        browser.tap(*page.place("#nudges [data-key=ArrowRight]"))
        check_cell(page, tensors, 0, 0, 3, 2, f"{where}: a step")
        check_targets(browser, 44, f"{where}: too small for a finger")
        browser.touch(False)
    browser.prefer("light")
    browser.resize(1280, 900)


# The page of a build without figures names no command of a figure, and is the same in all else.
OF_COMMANDS = (opening, without_terms, made_without_terms, views, keys_alone, shown_commands)


def in_a_browser(look):
    def test(bench):
        if look not in OF_COMMANDS and not has_figures(bench):
            raise SkipTest("the page of a build with figures")
        with a_browser() as browser:
            look(bench, browser)
    return test


def tests(settings):
    for look in (opening, explore, colours, grades, formulas, drawn_numbers, rest, low_precision, without_terms, made_without_terms, views, shown_commands, keys_alone, widths, paper):
        yield "report-page/" + look.__name__.replace("_", "-"), in_a_browser(look)
