"""The attributions on the page of `deberta report`: the numbers of `attribute --json`, the panel in a real browser (skipped where there is
no Chromium), and the sentence of a page without them.

SPDX-License-Identifier: MIT
"""
import json
import os
import re

from cases_heads import model
from cases_report_page import Page, a_browser
from cases_train import narrow
from helpers import DEMO, check, contains, equal, wait_until

MASKED = "The King and the [MASK] sat upon their thrones."
PLAIN = "the house beside the sea"
TINY = "synthetic:v3-xsmall,vocab=50,layers=1,hidden=64,heads=1"


def script(bench, folder, name):
    found = re.search(rf'id="json-{name}">(.*?)</script>', bench.read(f"{folder}/index.html"))
    return json.loads(found.group(1)) if found else None


def reported(bench, checkpoint, *words, folder="r"):
    bench.fine("report", checkpoint, "-q", "--skip", "receptive-field", "-o", folder, *words)
    return script(bench, folder, "page")["texts"]


def same(found, told, what):
    """Equal but for the digits: the page keeps nine of them."""
    if isinstance(told, dict):
        equal(list(found), list(told), what)
        for key, value in told.items():
            same(found[key], value, f"{what}, {key}")
    elif isinstance(told, list):
        equal(len(found), len(told), what)
        for k, value in enumerate(told):
            same(found[k], value, f"{what} {k}")
    elif isinstance(told, float):
        check(abs(found - told) <= 1e-8 * abs(told), f"{what}: {found}, expected {told}")
    else:
        equal(found, told, what)


def test_the_page_has_what_attribute_says(bench):
    """The word at [MASK], the class, a pair, narrow embeddings, a text of one word, two texts at once; the answer is the first of the page."""
    cases = [(DEMO, [MASKED], []), (DEMO, [PLAIN], []), (DEMO, [PLAIN], ["the [MASK] rose"]), (model(bench, "mlm-v1"), ["a [MASK]"], []),
             (narrow(bench), ["a new [MASK] opened"], []), (model(bench, "sequence"), ["sea", PLAIN], [])]
    for k, (checkpoint, texts, pairs) in enumerate(cases):
        given = [word for text in texts for word in ("--text", text)] + [word for pair in pairs for word in ("--pair", pair)]
        about = reported(bench, checkpoint, *given, folder=f"r{k}")
        for t, text in enumerate(texts):
            is_masked = "[MASK]" in text or any("[MASK]" in pair for pair in pairs)
            told = bench.json("attribute", checkpoint, "--text", text, *(["--pair", pairs[t]] if pairs else []), "--head", "mlm" if is_masked else "sequence", "--steps", "32")
            found = script(bench, f"r{k}", f"attribution-{t}")
            same(found, told, f"{os.path.basename(checkpoint)}, {text}")
            check("no_attribution" not in about[t] and len(found["tokens"]) == about[t]["n"], f"{checkpoint}, {text}: {about[t].get('no_attribution')}")
            full = about[t]["answers"]["full"]
            equal(found["answer"]["name"], full["masks"][0]["tokens"][0]["token"] if is_masked else full["classes"][0]["label"], f"{text}: the answer")
            check(f"{os.path.basename(bench.path(f'r{k}'))}/attribution{t}.json" in bench.read(f"r{k}/commands.sh"), "its line in commands.sh")


def test_a_page_without_says_why(bench):
    """What `attribute` refuses makes no failed report: the page has the reason in the place of the numbers."""
    long = " ".join(["the house"] * 200)
    for k, (checkpoint, words, reason) in enumerate((
            (TINY, [], "no answer"), (DEMO, ["--ids", "1"], "ids"), (DEMO, ["--text", PLAIN, "--precision", "int8"], "float32"),
            (DEMO, ["--text", PLAIN, "--ablate", "c2p@all"], "removes terms"), (DEMO, ["--text", PLAIN, "--memory-limit", "2G"], "memory"),
            (model(bench, "mlm"), ["--text", PLAIN], "no [MASK]"), (model(bench, "mlm"), ["--text", "a [MASK] and a [MASK]"], "more than one"),
            (model(bench, "rtd"), ["--text", PLAIN], "each token"), (model(bench, "misfit"), ["--text", PLAIN], "id2label"),
            (model(bench, "surplus"), ["--text", PLAIN], "id2label"), (DEMO, ["--text", long], "long"))):
        text, = reported(bench, checkpoint, *words, folder=f"r{k}")
        contains(text.get("no_attribution", ""), reason)
        equal(script(bench, f"r{k}", "attribution-0"), None, f"{checkpoint} {words}")
        check(not os.path.exists(bench.path(f"r{k}/attribution0.json")), f"{checkpoint} {words}: no file")


def test_a_second_report_removes_the_file(bench):
    reported(bench, DEMO, "--text", PLAIN)
    check(os.path.exists(bench.path("r/attribution0.json")), "the first")
    reported(bench, DEMO, "--ids", "1,7,2")
    check(not os.path.exists(bench.path("r/attribution0.json")), "the second")


def test_panel(bench):
    """Tokens, bars and tables have the numbers; pointer and keys say them; the other answer has its command; nothing is wider than a phone."""
    reported(bench, DEMO, "--text", MASKED)
    told = bench.json("attribute", DEMO, "--text", MASKED, "--head", "mlm", "--steps", "32")
    with a_browser() as browser:
        page = Page(browser, f"file://{bench.path('r/index.html')}")
        browser.click(*page.place("#attribution-pane summary"))
        contains(page.text("#attribution-words"), f"“{told['answer']['name'].lstrip('▁')}” (logit)")
        values = browser.evaluate("[...document.querySelectorAll('#attribution-tokens button')].map((button) => Number(button.dataset.value))")
        same(values, [token["word"] for token in told["tokens"]], "the tokens")
        most = max(range(len(values)), key=lambda k: abs(values[k]))
        grounds = browser.evaluate("[...document.querySelectorAll('#attribution-tokens button')].map((button) => button.style.background)")
        check(grounds[most] and grounds[0] == "", f"{grounds}: the strongest is shaded, [CLS] is not")
        browser.evaluate("document.querySelector('#attribution-tokens button').focus()")
        for _ in range(most):
            browser.press("ArrowRight")
        contains(page.text("#tip"), page.text(f"#attribution-tokens button:nth-child({most + 1})"))
        equal(page.text("#tip"), browser.evaluate("document.activeElement.getAttribute('aria-label')"), "and to a screen reader")
        browser.evaluate("document.getElementById('attribution-numbers').open = true")
        bars = browser.evaluate("""[...document.querySelectorAll('#attribution-distances g')].map((bar) => [...bar.querySelectorAll('rect')].map((rect) => Number(rect.getAttribute('height'))))""")
        equal(len(bars), len(told["distances"]), "a bar for each distance")
        heights = [(height, abs(d[name])) for bar, d in zip(bars, told["distances"]) for height, name in zip(bar, ("c2p", "p2c"))]
        scale = max(heights)[0] / max(heights)[1]
        check(all(abs(height - max(0.4, size * scale)) < 0.01 for height, size in heights), f"{heights}: heights are as the numbers")
        equal(browser.evaluate("document.querySelectorAll('#attribution-numbers tbody tr').length"), len(told["tokens"]) + len(told["distances"]), "rows of the tables")
        browser.evaluate("document.querySelector('#attribution-distances svg').focus()")
        browser.press("ArrowRight")
        contains(page.text("#tip"), "c2p")
        for width in (1440, 1024, 390):
            browser.resize(width, 844)
            check(wait_until(lambda: browser.evaluate("document.documentElement.scrollWidth") <= width), f"{width} pixels: nothing is wider")
        page.browser.evaluate("""(() => { const box = document.getElementById('question'); box.value = '1'; box.dispatchEvent(new Event('change')); })()""")
        browser.frame()
        contains(page.text("#attribution-command code"), "deberta attribute")
        contains(page.text("#attribution-command code"), "--head sequence")
        check(browser.evaluate("document.getElementById('attribution-tokens').hidden"), "the numbers of [MASK] are not those of the class")
