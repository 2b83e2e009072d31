"""What the page of `deberta report` shows of the model's answers, in a real browser: the table beside the matrix and the way from tokens to
the answer, against the commands that say the same; the parts that were not asked for; motion, contrast and room. Skipped where there is no
Chromium.

SPDX-License-Identifier: MIT
"""
import json
import shlex
import shutil

from cases_report_page import Page, a_browser, report, set_box, two_digits
from helpers import DEMO, check, contains, equal

MASKED = "The King and the [MASK] sat upon their thrones."
WITH_FOCUS = "#layer=3&head=0&show=probs"


def masked(bench):
    """The page of the masked text, which the tests only look at."""
    return f"file://{bench.shared('masked', lambda folder: bench.fine('report', DEMO, '-o', folder, '-q', '--text', MASKED))}/index.html"


def in_percent(value):
    return f"{two_digits(100 * value)} %"


def table_of(browser):
    """{name: its numbers, as written}, in the order shown."""
    rows = browser.evaluate("""[...document.querySelectorAll('#answers tbody tr')].map((row) => [row.querySelector('b').title,
        ...[...row.querySelectorAll('td:not(.bars)')].map((cell) => cell.textContent)])""")
    return {name: numbers for name, *numbers in rows}


def words_of(bench, *ablation):
    told = json.loads(bench.fine("fill-mask", DEMO, "--text", MASKED, "--json", *ablation).out)["masks"][0]["candidates"]["emd"]
    return {one["text"].strip(): in_percent(one["probability"]) for one in told}


def classes_of(bench, *ablation):
    told = json.loads(bench.fine("classify", DEMO, "--text", MASKED, "--json", *ablation).out)["labels"]
    return {one["label"]: in_percent(one["probability"]) for one in told}


def same_answers(browser, before, now, what):
    """Whatever both runs have among their first, and that the first of now stands above."""
    table = table_of(browser)
    equal(list(table)[0], list(now)[0], f"{what}: the first")
    for name, (old, new) in table.items():
        check(old == before.get(name, old) and (name in before or old.startswith("<")), f"{what}, {name}, before: {old}, expected {before.get(name)}")
        check(new == now.get(name, new) and (name in now or new.startswith("<")), f"{what}, {name}, without: {new}, expected {now.get(name)}")


def test_answers(bench):
    """The table says what fill-mask and classify say, with all terms and without."""
    with a_browser() as browser:
        page = Page(browser, masked(bench) + WITH_FOCUS)
        equal({name: cells[0] for name, cells in table_of(browser).items()}, words_of(bench), "all terms")
        set_box(browser, "#keep-scope", "layer")
        set_box(browser, "#keep-c2p", False)
        same_answers(browser, words_of(bench), words_of(bench, "--ablate", "c2p@3"), "c2p@3")
        check(list(words_of(bench, "--ablate", "c2p@3"))[0] in page.text("#answer-note"), page.text("#answer-note"))
        equal(page.text("#way .answer-step b"), list(table_of(browser))[0], "the end of the way")
        set_box(browser, "#keep-p2c", False)
        same_answers(browser, words_of(bench), words_of(bench, "--ablate", "c2p@3,p2c@3"), "c2p@3,p2c@3")
        set_box(browser, "#question", "1")
        same_answers(browser, classes_of(bench), classes_of(bench, "--ablate", "c2p@3,p2c@3"), "the class")
        browser.click(*page.place("#keep-all"))
        equal({name: cells[0] for name, cells in table_of(browser).items()}, classes_of(bench), "all put back")


def test_answer_that_the_page_lacks(bench):
    """Two heads of different layers: the page does not guess, but names the command, which says it."""
    with a_browser() as browser:
        page = Page(browser, masked(bench) + WITH_FOCUS + "&removed=c2p%401%3A0%2Cp2c%403%3A1")
        contains(page.text("#answer-note"), "does not hold the answer")
        check(all(numbers[1] == "…" for numbers in table_of(browser).values()), f"nothing is made up: {table_of(browser)}")
        name, *words = shlex.split(page.text("#answer-command code"))
        equal((name, words[0], words[-2:]), ("deberta", "fill-mask", ["--ablate", "c2p@1:0,p2c@3:1"]), "the command")
        bench.fine(*words)


def way_of(browser):
    return browser.evaluate("[...document.querySelectorAll('#way li')].map((step) => [step.querySelector('span').textContent, step.querySelector('small').textContent])")


def test_way(bench):
    """From the tokens to the answer: what the heads say of each layer, the layer that is looked at, by mouse and keys."""
    with a_browser() as browser:
        page = Page(browser, masked(bench) + WITH_FOCUS)
        answers = page.about["texts"][0]["answers"]
        first = lambda answer: answer["masks"][0]["tokens"][0]
        way = way_of(browser)
        equal([name for name, _ in way], ["tokens", "embeddings", *(f"layer {k}" for k in range(5)), "decoder", "answer"], "the steps")
        for k, (_, said) in enumerate(way[1:7]):
            check(said.strip("“”").startswith(first(answers["layers"][k])["token"].strip("▁")) and said.endswith(in_percent(first(answers["layers"][k])["probability"])), f"{k}: {said}")
        contains(page.text("#word-lens + dd"), "no result of the model")
        pressed = lambda: browser.evaluate("[...document.querySelectorAll('#way [aria-pressed=true]')].map((b) => Number(b.dataset.layer))")
        equal(pressed(), [3], "the layer that is looked at")
        browser.click(*page.place("#way [data-layer='1']"))
        check(page.text("#matrix-title").startswith("Layer 1,") and pressed() == [1], page.text("#matrix-title"))
        for key, layer in (("ArrowRight", 2), ("ArrowLeft", 1), ("End", 4), ("ArrowRight", 4), ("Home", 0)):
            browser.press(key)
            browser.frame()
            equal((pressed(), page.text("#matrix-title")[:8]), ([layer], f"Layer {layer},"), key)
            equal(browser.evaluate("document.activeElement.dataset.layer"), str(layer), f"{key}: the focus goes along")
        equal(browser.evaluate("document.querySelectorAll('#way [tabindex=\"0\"]').length"), 1, "Tab stops once")
        set_box(browser, "#keep-scope", "layer")
        browser.click(*page.place("#way [data-layer='2']"))
        set_box(browser, "#keep-c2p", False)
        shown = dict(way_of(browser))
        check("layer 2 −c2p" in shown and shown["layer 2 −c2p"] == shown["layer 3"] == shown["layer 4"] == "changed" and shown["layer 1"] == dict(way)["layer 1"], f"{shown}")
        equal(browser.evaluate("[...document.querySelectorAll('#way .changed span')].map((e) => e.textContent.split(',')[0])"), ["layer 3", "layer 4", "decoder", "answer"], "what the loss reaches")


def test_motion(bench):
    """Bars and the way move when a term is taken out; nothing does for whoever wants no motion, nor when a layer is chosen."""
    moving = "document.getAnimations().length"
    with a_browser() as browser:
        url = masked(bench) + WITH_FOCUS
        for wish, moves in (("no-preference", True), ("reduce", False)):
            browser.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-reduced-motion", "value": wish}])
            page = Page(browser, url + f"&scale={wish}")  # another address: the page is loaded anew
            browser.evaluate("document.getElementById('keep-c2p').click()")
            browser.frame()
            equal(browser.evaluate(moving) > 0, moves, wish)
            browser.evaluate("Promise.all(document.getAnimations().map((a) => a.finished)).then(() => true)")
            browser.click(*page.place("#way [data-layer='1']"))
            browser.frame()
            equal(browser.evaluate(moving), 0, f"{wish}: a layer is chosen")


def test_parts_not_asked_for(bench):
    """Each says by which command it comes."""
    with a_browser() as browser:
        page = Page(browser, masked(bench))
        for section, part in (("latency", "latency"), ("verification", "verify")):
            equal(shlex.split(page.text(f"#{section} code")), [*shlex.split(page.about["command"]), "--with", part], section)


def test_other_answers(bench):
    """A discriminator: the tokens that it takes for replaced, and no word."""
    with a_browser() as browser:
        model = DEMO.replace("models/demo", "models/discriminator")
        text = "an old man sat by the see"
        page = Page(browser, report(bench, model, "--text", text))
        told = json.loads(bench.fine("detect", model, "--text", text, "--json").out)["tokens"]
        wanted = sorted((one["probability"] for one in told), reverse=True)
        equal([cells[0] for cells in table_of(browser).values()][:3], [in_percent(value) for value in wanted[:3]], "the most suspicious")
        equal(page.text("#answer-what"), "replaced tokens", "what it answers")


def test_all_heads_fill_the_width(bench):
    """Few heads: the layers go on in a second column, and a click still finds its head."""
    with a_browser() as browser:
        browser.resize(1440, 900)
        page = Page(browser, masked(bench) + WITH_FOCUS + "&view=heads")
        canvas, pane = browser.evaluate("[document.getElementById('heads').clientWidth, document.querySelector('.heads-pane').clientWidth]")
        check(canvas > .85 * pane, f"{canvas} of {pane} pixels")
        left, top, right = browser.evaluate("(() => { const box = document.getElementById('heads').getBoundingClientRect(); return [box.left, box.top, box.right]; })()")
        browser.click(right - 20, top + 60)
        chosen = "[document.getElementById('layer').value, document.getElementById('head').value]"
        equal(browser.evaluate(chosen), ["3", "2"], "the first row of the second column")
        browser.click(left + 60, top + 60)
        equal(browser.evaluate(chosen), ["0", "0"], "and of the first")


def test_lines_behind_a_token(bench):
    """With a token chosen the other lines stay visible, on either ground."""
    with a_browser() as browser:
        url = masked(bench) + WITH_FOCUS + "&view=lines&token=4"
        for scheme in ("light", "dark"):
            browser.prefer(scheme)
            Page(browser, url)
            veil = browser.evaluate("""(() => { const c = document.getElementById('cursor');
                return Math.max(...Array.from({length: 9}, (_, k) => c.getContext('2d').getImageData(c.width / 2, 24 + k, 1, 1).data[3])); })()""")
            check(0 < veil <= (190 if scheme == "light" else 145), f"{scheme}: a veil of {veil} of 255")


FAINT = """(() => {
    const context = new OffscreenCanvas(1, 1).getContext('2d', {willReadFrequently: true});
    const rgb = (css) => { context.clearRect(0, 0, 1, 1); context.fillStyle = css; context.fillRect(0, 0, 1, 1); return [...context.getImageData(0, 0, 1, 1).data]; };
    const light = ([r, g, b]) => [r, g, b].map((v) => v / 255).map((v) => v <= .03928 ? v / 12.92 : ((v + .055) / 1.055) ** 2.4).reduce((sum, v, k) => sum + v * [.2126, .7152, .0722][k], 0);
    const ground = (e) => { for (; e; e = e.parentElement) { const c = rgb(getComputedStyle(e).backgroundColor); if (c[3]) return c; } return [255, 255, 255]; };
    return [...document.querySelectorAll('#way *, #answer-pane *, .way-line a, #latency *, #verification *')].filter((e) => e.checkVisibility() && [...e.childNodes].some((n) => n.nodeType === 3 && n.textContent.trim())).filter((e) => {
        const [a, b] = [light(rgb(getComputedStyle(e).color)), light(ground(e))].sort((x, y) => y - x);
        return (a + .05) / (b + .05) < 4.5;
    }).map((e) => e.outerHTML.slice(0, 80));
})()"""


def test_contrast_and_names(bench):
    """Text of the new parts is 4.5 : 1 or more, and every control has a name; a root is one root."""
    with a_browser() as browser:
        page = Page(browser, masked(bench) + WITH_FOCUS + "&removed=c2p%403")
        for scheme in ("light", "dark"):
            browser.prefer(scheme)
            browser.frame()
            equal(browser.evaluate(FAINT), [], scheme)
        unnamed = browser.evaluate("""[...document.querySelectorAll('.way-line *, #answer-pane *')].filter((e) => e.matches('button, select, a') && e.checkVisibility() &&
            !(e.labels?.length || e.getAttribute('aria-label') || e.textContent.trim())).map((e) => e.outerHTML)""")
        equal(unnamed, [], "names for a screen reader")
        equal(page.text("#formula msqrt"), "3d", "the root")


def test_small_shares_stay_in_their_column(bench):
    """Shares of which hundred-thousandths of a percent are left: numbers of two runs stand beside each other, not upon each other."""
    with a_browser() as browser:
        url = report(bench, DEMO, "--text", "Call me Ishmael the white whale and the captain of the whale ship in the sea")
        for width in (390, 1024, 1280):
            browser.resize(width, 900)
            page = Page(browser, url, opening=True)
            browser.click(*page.place("#step-4"))
            out = browser.evaluate("""[...document.querySelectorAll('#answers tbody td:not(.bars)')].filter((cell) => {
                const range = document.createRange(); range.selectNodeContents(cell);
                return range.getBoundingClientRect().right > cell.getBoundingClientRect().right + 1 || range.getBoundingClientRect().left < cell.getBoundingClientRect().left - 1;
            }).map((cell) => cell.textContent)""")
            equal(out, [], f"{width} pixels")
            small = browser.evaluate("[...document.querySelectorAll('#answers td[title]')].map((cell) => [cell.textContent, cell.title])")
            check(small and all(shown == "< 0.01 %" and whole.startswith("0.00") for shown, whole in small), f"{small}")


def test_long_labels_stay_in_their_step(bench):
    """The widest letters: the name gives way, and the percent is in the frame."""
    shutil.copytree(DEMO, bench.path("wide"))
    config = json.loads(bench.read("wide/config.json"))
    config["id2label"] = {key: f"{chr(77 + int(key) % 11)}{'WM' * 10}" for key in config["id2label"]}
    config.pop("label2id", None)
    bench.write("wide/config.json", json.dumps(config))
    with a_browser() as browser:
        url = report(bench, "wide", "--text", "a new store")
        for width in (390, 1024, 1440):
            browser.resize(width, 900)
            Page(browser, url)
            out = browser.evaluate("""[...document.querySelectorAll('#way small')].filter((line) => line.textContent && line.scrollWidth > line.clientWidth).map((line) => line.textContent)""")
            equal(out, [], f"{width} pixels")
            check(browser.evaluate("[...document.querySelectorAll('#way .answer-step small')].some((line) => line.textContent.includes('%'))"), "there are answers")
