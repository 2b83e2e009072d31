"""A page that computes (`deberta report --live`) in a real browser: what is typed has the bits of the program, in every module; terms
that are clicked out have the numbers of --ablate; what cannot be computed is said in a sentence. Skipped where there is no Chromium or
no module (./build.sh wasm).

SPDX-License-Identifier: MIT
"""
import contextlib
import csv
import hashlib
import json
import os
import pathlib
import random
import re
import struct
import time
import zlib
from base64 import b64decode, b64encode
from unittest import SkipTest

from browser import Browser, find_chromium
from cases_page_answers import in_percent
from helpers import DEMO, check, check_message, contains, equal, read_tensors, wait_until

MASKED = "The King and the [MASK] sat upon their thrones."
HTML = "<img src=x onerror=\"window.executed=1\"><script>window.executed=1</script> & more"
UNITS = ("king", "the", "a", "Alice", "opened", "door", ",", ".", "[MASK]", "42", "naïve", "👩‍👩‍👧", "مرحبا", "שלום", "<b>", "漢字", "é", "—", "\u200f", "  ", "'s")
SENTENCES = 50


MOST_PAGE_BYTES = 11e6  # with the bundled model


def make_page(bench, *arguments, name="page.html", model=DEMO):
    result = bench.fine("report", model, "--live", "-o", name, *arguments)
    if "no modules" in result.err:
        raise SkipTest("no module is built: ./build.sh wasm")
    check(sorted(os.listdir(bench.folder)) == [name], f"one file: {os.listdir(bench.folder)}")
    return "file://" + bench.path(name)


class LivePage:
    """In Chromium; cases_live_firefox.py has another. before: JavaScript that the worker runs first, to take something away from it."""

    kind, find, name = Browser, staticmethod(find_chromium), "Chromium"

    def __init__(self, url, width=1280, height=900, before=""):
        program = self.find()
        if not program:
            raise SkipTest(f"no {self.name} is installed")
        self.browser = self.kind(program, width, height)
        if before:
            self.browser.before_page(f"""self.Blob = class extends Blob {{
                constructor(parts, about) {{ super(about?.type === 'text/javascript' ? [{json.dumps(before)}, ...parts] : parts, about); }} }};""")
        self.url = url

    def __enter__(self):
        self.browser.open(self.url)
        self.wait("document.documentElement.dataset.ready === 'yes'")
        return self

    def __exit__(self, kind, *_):
        errors = self.browser.errors
        self.browser.close()
        if kind is None:
            check(not errors, f"errors of the page: {errors}")

    def js(self, expression):
        return self.browser.evaluate(expression)

    def wait(self, condition, seconds=60):
        check(wait_until(lambda: self.js(condition), seconds), f"not in {seconds} s: {condition}; {self.text('#live-note')}")

    def ready(self):
        """Opened, and the text of the page computed once more."""
        self.wait("document.documentElement.dataset.live && document.documentElement.dataset.computing === 'no'")
        self.browser.frame()
        return self

    def text(self, selector):
        return self.js(f"document.querySelector({json.dumps(selector)})?.textContent ?? null")

    def compute(self, words):
        """Types the text in one piece and asks for it; its digest."""
        return self.js(f"""(async () => {{
            const box = document.getElementById('words'), root = document.documentElement.dataset;
            box.focus(); // as whoever types: the page writes into a box that is left
            box.value = {json.dumps(words)};
            box.dispatchEvent(new KeyboardEvent('keydown', {{key: 'Enter', bubbles: true}}));
            while (root.computing === 'yes') await new Promise((done) => setTimeout(done, 1));
            return document.querySelector('#live-note .digest')?.title ?? document.getElementById('live-note').textContent;
        }})()""")

    def choose(self, selector, value):
        self.js(f"""(() => {{ const e = document.querySelector({json.dumps(selector)}); e.value = {json.dumps(value)};
            e.dispatchEvent(new Event('change', {{bubbles: true}})); }})()""")
        self.browser.frame()

    def click(self, selector):
        self.js(f"document.querySelector({json.dumps(selector)}).click()")
        self.browser.frame()
        self.wait("document.documentElement.dataset.computing !== 'yes'")
        self.browser.frame()


@contextlib.contextmanager
def live(bench, *arguments):
    """A page that has computed its text once more."""
    with LivePage(make_page(bench, *arguments)) as page:
        yield page.ready()


def draw_sentences(seed):
    source = random.Random(seed)
    drawn = {" ".join(source.choice(UNITS) for _ in range(source.randint(1, 12))).strip() or "x" for _ in range(3 * SENTENCES)}
    return sorted(drawn)[:SENTENCES]


def digests_of_program(bench, sentences, *options, model=DEMO):
    found = []
    for sentence in sentences:
        bench.fine("encode", model, "--text", sentence, "-q", "-o", "states.safetensors", *options)
        raw = pathlib.Path(bench.path("states.safetensors")).read_bytes()
        size = struct.unpack("<Q", raw[:8])[0]
        begin, end = next(about["data_offsets"] for name, about in json.loads(raw[8:8 + size]).items() if name.startswith("hidden_states."))
        found.append(hashlib.sha256(raw[8 + size + begin:8 + size + end]).hexdigest())
    os.remove(bench.path("states.safetensors"))
    return found


def test_bits_of_typed_sentences(bench):
    """Every module gives the hidden states of the program, to the bit."""
    seed = random.randrange(1 << 32)
    print(f"# seed {seed}")
    sentences = draw_sentences(seed)
    wanted = digests_of_program(bench, sentences)
    with live(bench) as page:
        contains(page.text("#live-note"), "identical to the program: SHA-256")
        check(os.path.getsize(bench.path("page.html")) <= MOST_PAGE_BYTES, f"{os.path.getsize(bench.path('page.html'))} bytes")
        tiers = page.js("[...document.getElementById('tier').options].map((o) => o.value)")
        check("exact" in tiers and "scalar" in tiers, f"modules: {tiers}")
        for tier in tiers:
            page.choose("#tier", tier)
            page.wait("document.documentElement.dataset.computing === 'no'")
            for sentence, digest in list(zip(sentences, wanted))[::5 if tier == "scalar" else 1]:  # which takes fifty times as long
                equal(page.compute(sentence), digest, f"seed {seed}, {tier}, {sentence!r}")
        check(page.js("window.executed") is None, "nothing that is typed runs")
        check([url for url in page.browser.requests[1:] if not url.startswith("blob:")] == [], f"nothing is loaded: {page.browser.requests}")


def test_other_masks(bench):
    """What is no mask of the model is read as text, and the page says so, as fill-mask does."""
    with live(bench) as page:
        for word, said in (("[mask]", "‘[mask]’ is read as text: a mask is [MASK]"), ("<mask>", "‘<mask>’"), ("MASK", "‘MASK’"), ("____", "‘____’"),
                           ("[MASK]", None), ("a mask", None)):
            page.compute(f"The King and the {word} sat")
            note = page.text("#live-note")
            check(said in note if said else "is read as text" not in note, f"{word}: {note}")


def test_low_precision(bench):
    sentences = draw_sentences(8)[:5]
    wanted = digests_of_program(bench, sentences, "--precision", "int8")
    with live(bench, "--precision", "int8") as page:
        contains(page.text("#live-note"), "identical to the program")
        equal([page.compute(sentence) for sentence in sentences], wanted, "int8")


def saved_numbers(bench, page):
    folder = pathlib.Path(bench.path("saved"))
    folder.mkdir(exist_ok=True)
    for old in folder.iterdir():
        old.unlink()
    page.browser.save_downloads(str(folder))
    page.click("#save-csv")
    check(wait_until(lambda: list(folder.glob("*.csv"))), "a CSV file is saved")
    time.sleep(.1)
    with next(folder.glob("*.csv")).open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def test_ablation_is_that_of_the_program(bench):
    """Terms clicked out: cells of another layer, candidates and digest are those of --ablate."""
    with live(bench) as page:
        page.compute(MASKED)
        check(wait_until(lambda: "[MASK]" in page.text("#answers")), page.text("#answers"))
        page.choose("#keep-scope", "layer")
        page.choose("#layer", "1")
        page.choose("#head", "2")
        page.click("#keep-c2p")
        contains(page.text("#keep-note"), "--ablate c2p@1")
        page.choose("#keep-scope", "head")
        page.choose("#layer", "2")
        page.click("#keep-p2c")
        contains(page.text("#keep-note"), "--ablate c2p@1, p2c@2:2")
        digest = page.js("document.querySelector('#live-note .digest').title")
        equal([digest], digests_of_program(bench, [MASKED], "--ablate", "c2p@1,p2c@2:2"), "digest")
        page.choose("#layer", "4")
        rows = saved_numbers(bench, page)
        bench.fine("encode", DEMO, "--text", MASKED, "--ablate", "c2p@1,p2c@2:2", "--component-layers", "all", "--attention-layers", "all", "-q",
                   "-o", "states.safetensors")
        tensors = read_tensors(bench.path("states.safetensors"))[0]
        n = tensors["attn.4.probs"].shape[3]
        for name, column in (("probs", "probability"), ("c2c", "c2c"), ("c2p", "c2p"), ("p2c", "p2c"), ("logits", "logit")):
            wanted = tensors[f"attn.4.{name}"].values[2 * n * n:3 * n * n]
            found = [float(row[column]) for row in rows]
            bound = 0 if name == "probs" else 2e-6 * max(1, *map(abs, wanted))
            single = [struct.unpack("<f", struct.pack("<f", value))[0] for value in found]
            check(all(abs(a - b) <= bound for a, b in zip(single, wanted)), f"{name}: {single[:5]}, {list(wanted[:5])}")
        same_as_program(bench, page, MASKED, "c2p@1,p2c@2:2")
        page.click("#keep-all")
        equal(page.js("document.querySelectorAll('#answers thead th').length"), 1, "all terms are back")


def same_as_program(bench, page, words, removed):
    """Answers before and after are those of a report and of fill-mask --ablate; so is the last of the way, which speaks of every layer."""
    told, without = (json.loads(bench.fine("fill-mask", DEMO, "--text", words, "--json", *ablation).out)["masks"][0]["candidates"]["emd"]
                     for ablation in ((), ("--ablate", removed)))
    percents = [{one["text"].strip(): in_percent(one["probability"]) for one in of} for of in (told, without)]
    rows = page.js("[...document.querySelectorAll('#answers tbody tr')].map((row) => [row.querySelector('b').title, ...[...row.cells].slice(2).map((c) => c.textContent)])")
    equal(rows[0][0], without[0]["text"].strip(), "the first without the terms")
    check(len(rows) >= 5 and all(shown == known.get(name, shown) and (name in known or shown.startswith("<"))
                                 for name, *both in rows for shown, known in zip(both, percents)), f"{rows}, expected {percents}")
    bench.fine("report", DEMO, "--text", words, "--ablate", removed, "-q", "--skip", "receptive-field", "-o", "ablated")
    about = json.loads(re.search(r'id="json-page">(.*?)</script>', pathlib.Path(bench.path("ablated/index.html")).read_text(encoding="utf-8")).group(1))
    layers = [answer["masks"][0]["tokens"][0] for answer in about["texts"][0]["answers"]["layers"]]
    wanted = [in_percent(one["probability"]) for one in layers]
    check(wait_until(lambda: [said.split(" ", 1)[1] for said in page.js("[...document.querySelectorAll('#way small')].slice(1, -2).map((e) => e.textContent)") if " " in said] == wanted),
          f"{page.text('#way')}, expected {wanted}")


def test_guide_on_own_sentence(bench):
    with live(bench) as page:
        page.compute("Alice opened the little door and looked into the garden .")
        for step in range(6):
            page.click(f"#step-{step}")
            words = page.text("#guide-words")
            check(len(words) > 60 and "undefined" not in words and "NaN" not in words, f"step {step}: {words}")
            if step == 4:
                contains(page.text("#keep-note"), "--ablate")
        check(any(word in page.text("#tokens") for word in ("Alice", "garden")), page.text("#tokens"))


def test_what_is_pasted(bench):
    """HTML stays text; 10,000 characters stay in the box; a right-to-left text keeps its direction."""
    with live(bench) as page:
        page.compute(HTML)
        check(page.js("window.executed") is None and page.js("document.querySelectorAll('img').length") == 0, "pasted HTML is text")
        equal(page.js("document.getElementById('words').value"), HTML, "it is still there")
        long = "the king opened a door . " * 400
        page.compute(long)
        equal(page.js("document.getElementById('words').value"), long, "a long text is still there")
        check(re.search(r"the first 512 tokens, \d{4} more are left out", page.text("#live-note")), page.text("#live-note"))
        page.compute("مرحبا بالعالم")
        equal(page.js("getComputedStyle(document.getElementById('words')).direction"), "rtl", "direction")


def test_long_texts_can_be_stopped(bench):
    """While the slowest module computes, the page draws on; Stop ends it and the next text is computed."""
    with live(bench) as page:
        page.choose("#tier", "scalar")
        page.wait("document.documentElement.dataset.computing === 'no'")
        page.js("""(() => { const box = document.getElementById('words'); box.value = 'the king opened a door . '.repeat(100);
            box.dispatchEvent(new KeyboardEvent('keydown', {key: 'Enter', bubbles: true})); })()""")
        page.wait("document.getElementById('live-progress').value >= 1")
        check(page.js("""new Promise((done) => { const start = performance.now(); let frames = 0;
            const count = () => performance.now() - start > 300 ? done(frames) : (frames++, requestAnimationFrame(count)); count(); })""") > 3, "the page is frozen")
        check(page.js("!document.getElementById('stop').hidden"), "Stop is there")
        page.click("#stop")
        contains(page.text("#live-note"), "Stopped")
        page.wait("!document.getElementById('compute').disabled")
        page.choose("#tier", "exact")
        page.wait("document.documentElement.dataset.computing === 'no'")
        page.compute("a door")
        contains(page.text("#live-note"), "computed here")
        contains(page.compute(" "), "There is no sentence yet")
        page.compute("a door")
        contains(page.text("#live-note"), "computed here")


def test_keys_alone(bench):
    with live(bench) as page:
        page.js("document.getElementById('words').select()")
        for letter in "a 5c h":
            page.browser.press(letter)
        page.browser.press("Enter")
        page.wait("document.documentElement.dataset.computing === 'no'")
        equal(page.js("document.getElementById('words').value"), "a 5c h", "letters in the box are no shortcuts")
        equal(page.js("document.querySelector('[name=component]:checked').id"), "component-probs", "the view stays")
        unnamed = page.js("""[...document.querySelectorAll('#live button, #live select, #live input, #live textarea')].filter((e) => e.checkVisibility() &&
            !(e.labels?.length || e.getAttribute('aria-label') || e.textContent.trim())).map((e) => e.id)""")
        equal(unnamed, [], "names for a screen reader")


LACKS = {
    "no WebAssembly": ("delete self.WebAssembly;", "this browser has no WebAssembly"),
    "no DecompressionStream": ("delete self.DecompressionStream;", "no DecompressionStream"),
}


def test_browsers_that_lack_something(bench):
    url = make_page(bench)
    for what, (before, words) in LACKS.items():
        with LivePage(url, before=before) as page:
            page.wait("document.documentElement.dataset.live === 'failed'")
            contains(page.text("#live-note"), words, "as the program computed them")
            check(page.js("document.getElementById('compute').disabled") and "opened" in page.text("#tokens"), f"{what}: the page shows what it has")
    with LivePage(url, before="WebAssembly.validate = () => false;") as page:
        page.ready()
        equal(page.js("document.getElementById('tier').value"), "scalar", "no SIMD")
        contains(page.text("#live-note"), "identical to the program")


def with_file(html, name, change):
    """The page with another content of one of its files, in one piece."""
    about = json.loads(re.search(r'id="json-page">(.*?)</script>', html).group(1))
    place = next(file["id"] for file in about["live"]["files"] if file["name"] == name)
    pieces = list(re.finditer(rf'<script type="text/plain" class="{place}">([^<]*)</script>\n', html))
    content = change("".join(piece.group(1) for piece in pieces))
    return f'{html[:pieces[0].start()]}<script type="text/plain" class="{place}">{content}</script>\n{html[pieces[-1].end():]}'


def test_damaged_model(bench):
    url = make_page(bench)
    html = pathlib.Path(bench.path("page.html")).read_text(encoding="utf-8")

    def damaged(text):
        raw = bytearray(zlib.decompress(b64decode(text)))
        raw[:8] = b"\xff" * 8
        return b64encode(zlib.compress(bytes(raw))).decode()

    for what, change in (("cut", lambda text: text[:len(text) // 2 // 4 * 4]), ("not base64", lambda text: "*" + text), ("header", damaged),
                         ("shorter", lambda text: b64encode(zlib.compress(b"short")).decode())):
        pathlib.Path(bench.path("damaged.html")).write_text(with_file(html, "model.safetensors", change), encoding="utf-8")
        with LivePage(url.replace("page.html", "damaged.html")) as page:
            page.wait("document.documentElement.dataset.live === 'failed'")
            contains(page.text("#live-note"), "Nothing can be computed here: ", "as the program computed them")
            check("opened" in page.text("#tokens"), f"{what}: the page shows what it has")


def test_wrong_use(bench):
    check_message(bench.run("report", DEMO, "--no-model"), 2, ["--live"])
    check_message(bench.run("report", DEMO, "--live", "--ablate", "c2p@1"), 2, ["--ablate"])
    check_message(bench.run("report", DEMO, "--live", "--modules", ".", "-o", "page.html"), 3, ["deberta-relaxed.wasm"])
    os.mkdir(bench.path("page.html.parts"))
    check_message(bench.run("report", DEMO, "-o", "page.html"), 4, ["page.html.parts"])
    check(os.listdir(bench.folder) == ["page.html.parts"], "nothing is written")


def test_one_page_alone(bench):
    """Without --live, too: a page that says how one that computes is made."""
    bench.fine("report", DEMO, "-q", "-o", "page.html")
    equal(os.listdir(bench.folder), ["page.html"], "one file")
    bench.fine("report", DEMO, "-q", "-o", "page.htm", "--skip", "receptive-field")
    check(os.path.isfile(bench.path("page.htm")), "a file, too")
    with LivePage("file://" + bench.path("page.html")) as page:
        contains(page.text("#commands"), "deberta report --live")
        check(page.js("document.getElementById('live').hidden"), "no box")


def test_pairs(bench):
    """The page's own pair and one that is typed over its first segment."""
    with live(bench, "--text", "the king", "--pair", "opened a door") as page:
        contains(page.text("#live-note"), "identical to the program")
        equal(page.js("[document.getElementById('words').value, document.getElementById('pair').value]"), ["the king", "opened a door"])
        equal([page.compute("the queen")], digests_of_program(bench, ["the queen"], "--pair", "opened a door"), "another first segment")
        page.choose("#text", "0")
        page.ready()
        equal(page.js("document.getElementById('pair').value"), "opened a door", "the text of the page is back")


WIDTHS = ((1440, 900), (1024, 768), (390, 844))


def test_first_screen(bench):
    """The answer, the box and the first rows of the matrix are on the first screen, light and dark; nothing scrolls sideways."""
    url = make_page(bench)
    with LivePage(url) as page:
        for width, height in WIDTHS:
            page.browser.resize(width, height)
            page.browser.open(url)
            page.ready()
            for scheme in page.browser.schemes:
                page.browser.prefer(scheme)
                page.browser.frame()
                if os.environ.get("DEBERTA_SHOTS"):
                    page.browser.screenshot(f"{os.environ['DEBERTA_SHOTS']}/{width}-{scheme}.png", full=False)
                top = lambda selector: page.js(f"document.querySelector('{selector}').getBoundingClientRect().top")
                check(top("#words") < top("#guide-words") < top("#matrix") < height - 120, f"{width}: {top('#matrix')} of {height}")
                check(page.js("document.getElementById('words').offsetWidth") > width / 2, f"{width}: the box is narrow")
                check(page.js("document.documentElement.scrollWidth") <= width, f"{width}, {scheme}: scrolls sideways")
            for step in range(6):
                page.click(f"#step-{step}")
                sentence, buttons, matrix = page.js("""['guide-words', 'guide-steps', 'matrix'].map((id) => document.getElementById(id).getBoundingClientRect())
                    .map(({top, bottom, height}) => ({top, bottom, height}))""")
                check(0 <= sentence["top"] and buttons["bottom"] < height - 300 and buttons["height"] < 60, f"{width}, step {step}: {sentence}, {buttons}")
                covered = page.js("getComputedStyle(document.getElementById('cell-pane')).position === 'fixed' && document.getElementById('cell-pane').checkVisibility()")
                equal(covered, width < 700 and step == 1, f"{width}, step {step}: the numbers of the pair lie over the page")
                check(covered or matrix["top"] < height - 80, f"{width}, step {step}: {matrix}")
                equal(page.js("document.getElementById('keep').checkVisibility()"), width > 700 or step == 4, f"{width}, step {step}: the ticks it speaks of")
