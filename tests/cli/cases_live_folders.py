"""Folders that the reader of a page that computes picks: its model, another one, and what is none or cannot be opened. Nothing that
was there before is lost by a folder that cannot be used.

SPDX-License-Identifier: MIT
"""
import os
import pathlib
import shutil

from cases_live_page import LivePage, digests_of_program, draw_sentences, make_page
from helpers import DEMO, check, contains, equal

OTHER = str(pathlib.Path(DEMO).parent / "demo-bert")  # no relative positions, another size
SENTENCE = "Alice opened the little door"


def copy_of(bench, name, model=DEMO, without=()):
    folder = pathlib.Path(bench.path(name))
    folder.mkdir()
    for file in pathlib.Path(model).iterdir():
        if file.is_file() and file.name not in without:
            shutil.copy(file, folder)
    return folder


def pick(page, folder, words):
    page.browser.pick_folder("#folder", folder)
    page.wait(f"document.getElementById('live-note').textContent.includes({words!r}) && document.documentElement.dataset.computing === 'no'")


def check_as_before(bench, page, model=DEMO):
    """The text is still in the box, the sentence is marked as an error, and what is typed next is computed with the model from before."""
    check("bad" in page.js("document.getElementById('live-note').className"), page.text("#live-note"))
    equal(page.js("document.getElementById('words').value"), SENTENCE, "the text")
    equal([page.compute("a door")], digests_of_program(bench, ["a door"], model=model), "the model from before")
    page.compute(SENTENCE)
    check("bad" not in page.js("document.getElementById('live-note').className"), page.text("#live-note"))


def test_folder_of_the_reader(bench):
    """A page without the model opens its folder; a folder of something else is refused."""
    url = make_page(bench, "--no-model")
    check(os.path.getsize(bench.path("page.html")) < 3e6, "without the model")
    with LivePage(url) as page:
        contains(page.text("#live-note"), "holds no model", DEMO)
        pick(page, pathlib.Path(DEMO).parent.parent / "docs" / "images", "a model folder has")
        page.browser.pick_folder("#folder", DEMO)
        page.ready()
        contains(page.text("#live-note"), "identical to the program")
        sentences = draw_sentences(3)[:3]
        equal([page.compute(sentence) for sentence in sentences], digests_of_program(bench, sentences), "from the folder")


def test_other_model(bench):
    """It takes the place of the page's, with what was measured of that one; a folder that fails then leaves it open."""
    url = make_page(bench)
    damaged = copy_of(bench, "damaged", OTHER)
    os.truncate(damaged / "model.safetensors", 1000)
    with LivePage(url) as page:
        page.ready()
        page.compute(SENTENCE)
        page.browser.pick_folder("#folder", OTHER)
        page.wait("document.querySelector('h1').textContent.startsWith('demo ') === false && document.documentElement.dataset.computing === 'no'")
        check(page.js("['verification', 'commands'].every((id) => document.getElementById(id).hidden)"), "of the page's model")
        equal([page.compute(SENTENCE)], digests_of_program(bench, [SENTENCE], model=OTHER), "the other model")
        page.click("#step-2")
        contains(page.text("#guide-words"), "neither c2p nor p2c")
        pick(page, damaged, "cannot be used")
        contains(page.text("#live-note"), "model.safetensors", "is open again")
        check_as_before(bench, page, OTHER)


def test_typed_while_a_folder_is_opened(bench):
    """The sentence waits until it is known whether the folder holds another model, and is then computed with it."""
    url = make_page(bench)
    with LivePage(url) as page:
        page.ready()
        page.browser.pick_folder("#folder", OTHER)
        page.wait("!document.documentElement.dataset.live || !document.querySelector('h1').textContent.startsWith('demo ')")  # it has heard of the folder
        equal([page.compute(SENTENCE)], digests_of_program(bench, [SENTENCE], model=OTHER), "typed early")
        check(page.text("h1").split()[0] != "demo", page.text("h1"))


# The worker answers such a request only where its model came from a picked folder, so that it still runs when the folder is picked.
NEVER_OF_THE_PAGE = f"""let picked = false;
addEventListener('message', (event) => {{
    picked ||= 'file' in event.data;
    if (event.data.run?.text === {SENTENCE!r} && !picked) event.stopImmediatePropagation();
}});"""


def test_typed_before_a_folder_is_picked(bench):
    """What was asked for is computed with the model that is then open: of a page without one, also after a folder that cannot be used. Where a
    model was open before, the sentence about such a folder stays, and the text is in the box."""
    for options, model in ((["--no-model"], DEMO), ([], OTHER), ([], None)):
        url = make_page(bench, *options)
        damaged = copy_of(bench, "damaged")
        (damaged / "config.json").write_text("{")
        with LivePage(url, before=NEVER_OF_THE_PAGE) as page:
            if not options:
                page.ready()
            page.js(f"""(() => {{
                const box = document.getElementById('words');
                box.focus();
                box.value = {SENTENCE!r};
                box.dispatchEvent(new KeyboardEvent('keydown', {{key: 'Enter', bubbles: true}}));
            }})()""")
            if options or not model:
                pick(page, damaged, "config.json")
            if model:
                page.browser.pick_folder("#folder", model)
                digest = digests_of_program(bench, [SENTENCE], model=model)[0]
                page.wait(f"document.querySelector('#live-note .digest')?.title === {digest!r} && document.documentElement.dataset.computing === 'no'")
            else:
                page.ready()
                contains(page.text("#live-note"), "cannot be used", "config.json", "The model from before is open again")
            equal(page.js("document.getElementById('words').value"), SENTENCE, "the text")
        os.remove(bench.path("page.html"))
        shutil.rmtree(damaged)


def test_folders_that_cannot_be_used(bench):
    """Weights of 3 GB and more, weights in another format, a damaged config."""
    url = make_page(bench)
    large, other_format, damaged = copy_of(bench, "large"), copy_of(bench, "other-format", without=["model.safetensors"]), copy_of(bench, "damaged")
    os.truncate(large / "model.safetensors", 3_100_000_000)
    (other_format / "pytorch_model.bin").write_bytes(b"weights")
    (damaged / "config.json").write_text("{")
    with LivePage(url) as page:
        page.ready()
        page.compute(SENTENCE)
        for folder, words in ((large, "3.1 GB; a page has at most 4 GB"), (other_format, "here they are in pytorch_model.bin"), (damaged, "config.json")):
            pick(page, folder, words)
            check_as_before(bench, page)
        page.choose("#text", "0")
        page.ready()
        contains(page.text("#live-note"), "identical to the program")
