"""Figures: of one text or pair, in the format that the name says, never over what they were made of. SPDX-License-Identifier: MIT"""
import os
import re
import shutil
import stat
import subprocess
import sys
import threading
import warnings

import numpy as np
import pytest

import deberta_c
from conftest import DEMO, refuses

TEXT = "a new store"
ONE = {"layers": 2, "heads": 0, "threads": 1}
BEGINS = {".svg": b"<?xml", ".pdf": b"%PDF-", ".png": b"\x89PNG\r\n"}


def text_of(figure):
    """What the figure's own provenance says that it shows."""
    return re.findall(r'<entry key="(?:Text|Pair|Second text)">(.*?)</entry>', figure.svg.decode(), re.S)


@pytest.fixture(scope="module")
def figure():
    return deberta_c.attention_figure(DEMO, TEXT, **ONE)


def test_save_writes_what_the_name_says(figure, tmp_path):
    for name in ("a.svg", "a.pdf", "a.png", "b.PDF"):
        figure.save(tmp_path / name)
        assert (tmp_path / name).read_bytes().startswith(BEGINS[name[1:].lower()]), name
    for name in ("a.gif", "a.eps", "a", "a.svg.txt"):
        refuses(deberta_c.ArgumentError, "expected a name that ends in .svg, .pdf or .png", figure.save, tmp_path / name)
        assert not (tmp_path / name).exists()
    refuses(deberta_c.SystemRefusedError, "cannot be written", figure.save, tmp_path / "nowhere" / "a.svg")


FULL_DISK = """
import resource, sys
import deberta_c
figure = deberta_c.Figure(b"<?xml " + b"x" * 100_000, "a")
resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))
for path in sys.argv[1:]:
    try:
        figure.save(path)
    except deberta_c.SystemRefusedError as reason:
        print(reason)
"""


def test_a_failed_save_keeps_what_was_there(tmp_path):
    """A full disk, here a limit of the size of files, leaves the earlier file and nothing beside it; a full device says so."""
    place, new, full = tmp_path / "a.svg", tmp_path / "b.svg", tmp_path / "full.svg"
    place.write_text("mine")
    full.symlink_to("/dev/full")
    done = subprocess.run([sys.executable, "-c", FULL_DISK, place, new, full], capture_output=True, text=True, check=True)
    assert [line.split(": ")[0] for line in done.stdout.splitlines()] == list(map(str, (place, new, full))) and done.stdout.count("cannot be written (") == 3
    assert place.read_text() == "mine" and sorted(tmp_path.iterdir()) == [place, full], sorted(tmp_path.iterdir())


def test_what_is_replaced(tmp_path):
    """Permissions stay those that open() would give, a link stays a link, a pipe and standard output are written themselves; what may not be
    written is refused."""
    figure = deberta_c.Figure(BEGINS[".svg"], "a")
    new, old, link, loose = (tmp_path / name for name in ("new.svg", "old.svg", "link.svg", "loose.svg"))
    (tmp_path / "plain").write_text("")
    figure.save(new)
    assert new.stat().st_mode == (tmp_path / "plain").stat().st_mode
    (tmp_path / "below").mkdir()
    target = tmp_path / "below" / "target.svg"
    for path in (old, target):
        path.write_text("mine")
        path.chmod(0o640)
    link.symlink_to("below/target.svg")
    loose.symlink_to("below/not there.svg")
    for path in (old, link, loose):
        figure.save(path)
        assert path.read_bytes() == figure.svg
    assert stat.S_IMODE(old.stat().st_mode) == stat.S_IMODE(target.stat().st_mode) == 0o640 and link.is_symlink() and loose.is_symlink()
    assert sorted(path.name for path in (tmp_path / "below").iterdir()) == ["not there.svg", "target.svg"]
    pipe, read = tmp_path / "pipe.svg", []
    os.mkfifo(pipe)
    reader = threading.Thread(target=lambda: read.append(pipe.read_bytes()))
    reader.start()
    figure.save(pipe)
    reader.join()
    assert read == [figure.svg] and stat.S_ISFIFO(pipe.stat().st_mode)
    (tmp_path / "out.svg").symlink_to("/dev/stdout")
    script = f"import deberta_c; deberta_c.Figure({figure.svg!r}, 'a').save({str(tmp_path / 'out.svg')!r})"
    with open(tmp_path / "printed", "wb") as printed:
        before = os.fstat(printed.fileno()).st_ino
        subprocess.run([sys.executable, "-c", script], stdout=printed, check=True)
    assert (tmp_path / "printed").read_bytes() == figure.svg and (tmp_path / "printed").stat().st_ino == before
    refuses(deberta_c.SystemRefusedError, "cannot be written", figure.save, tmp_path / "below" / "none" / "a.svg")
    if os.geteuid():
        old.chmod(0o440)
        refuses(deberta_c.SystemRefusedError, "Permission denied", figure.save, old)


def test_notebooks_get_a_png(figure):
    png = figure._repr_png_()
    assert png.startswith(BEGINS[".png"]) and figure._repr_png_() is png
    assert deberta_c.Figure(figure.svg, "a")._repr_png_() is None  # without a way to draw it again


def test_out(figure, tmp_path):
    made = deberta_c.attention_figure(DEMO, TEXT, out=[tmp_path / "a.pdf", str(tmp_path / "a.png")], numbers=tmp_path / "n.csv", latex=tmp_path / "a.tex", **ONE)
    assert all((tmp_path / f"a{suffix}").read_bytes().startswith(BEGINS[suffix]) for suffix in (".pdf", ".png")) and made.svg == figure.svg
    assert (tmp_path / "n.csv").exists() and re.search(r"\\includegraphics\[[^]]*\]\{[^}]*a\.pdf\}", (tmp_path / "a.tex").read_text())
    refuses(deberta_c.ArgumentError, "latex: .* give out=", deberta_c.attention_figure, DEMO, TEXT, latex=tmp_path / "b.tex", **ONE)
    refuses(deberta_c.ArgumentError, "ends in .svg, .pdf or .png", deberta_c.attention_figure, DEMO, TEXT, out=tmp_path / "a.gif", **ONE)


def test_inputs_are_never_replaced(tmp_path):
    model, ids = tmp_path / "m", tmp_path / "ids.svg"
    shutil.copytree(DEMO, model)
    (model / "picture.svg").write_text("mine")
    (tmp_path / "link.pdf").symlink_to(model / "config.json")
    ids.write_text('{"input_ids": [[1, 442, 2685, 2]]}')
    kept = {path: path.read_bytes() for path in (model / "picture.svg", model / "config.json")}
    figure = deberta_c.attention_figure(model, TEXT, **ONE)
    for path in (model / "picture.svg", tmp_path / "link.pdf"):
        refuses(deberta_c.ArgumentError, "which is read: it would be replaced", figure.save, path)
        refuses(deberta_c.ArgumentError, "would be replaced", deberta_c.attention_figure, model, TEXT, out=path, **ONE)
    refuses(deberta_c.ArgumentError, "would be replaced", deberta_c.attention_figure, model, TEXT, numbers=model / "config.json", **ONE)
    assert {path: path.read_bytes() for path in kept} == kept
    figure.save(model / "another.svg")
    (model / "config.json").write_bytes(kept[model / "config.json"].replace(b'"num_hidden_layers": 5', b'"num_hidden_layers": 3'))
    assert kept[model / "config.json"] != (model / "config.json").read_bytes()
    refuses(deberta_c.UnsupportedError, "has changed since the figure was made", figure.save, tmp_path / "late.pdf")


def test_a_tuple_is_a_pair():
    pair = deberta_c.attention_figure(DEMO, (TEXT, "Call me"), **ONE)
    assert pair.svg == deberta_c.attention_figure(DEMO, TEXT, pair="Call me", **ONE).svg != deberta_c.attention_figure(DEMO, TEXT, **ONE).svg
    assert pair.title == "attention of: a new store | Call me" and text_of(pair)[0] == TEXT


def test_none_and_false_are_not_given():
    with_reference = {**ONE, "out": False, "latex": False, "file": False, "input": None, "numbers": False, "ids": None, "log": False}
    assert deberta_c.attention_figure(DEMO, TEXT, **with_reference).svg == deberta_c.attention_figure(DEMO, TEXT, **ONE).svg


@pytest.mark.parametrize("text, options, words", [
    ([TEXT, "Call me"], {}, "found a list of 2: a figure shows one text"), (["a"], {}, "found a list of 1"), (b"a", {}, "found bytes"), (5, {}, "found int"), (("a", "b", "c"), {}, "several texts are a list"),
    (np.array(["a", "b"]), {}, "found a list of 2"), (None, {}, "there is nothing to draw: expected a text, a pair"), (None, {"pair": "a"}, "pair: .* there is no text"),
    (("a", "b"), {"pair": "c"}, "pair: is the second segment of one text"), ("a", {"pair": ["b"]}, "pair: expected a text, found list"), ("a", {"ids": [1, 2]}, "expected one input, found a text and ids="),
    ("a", {"heads": {0}}, "heads: expected a number, a word or a list of these, found set"), ("a", {"title": ["a, b", "c"]}, "title: expected a number"), ("a", {"layers": [[1], [2]]}, "layers: expected"),
    ("a", {"title": b"x"}, "title: .* found bytes")])
def test_what_is_no_figure(text, options, words):
    refuses(deberta_c.ArgumentError, words, deberta_c.attention_figure, DEMO, text, **{**ONE, **options})


def test_options_that_are_repeated():
    """A list gives an option that may be repeated several times; a pair of numbers is one value of it."""
    def drawn(**options):
        return re.sub(r'<entry key="Command">.*?</entry>', "", deberta_c.attention_figure(DEMO, TEXT, **{**ONE, **options}).svg.decode(), flags=re.S)
    both = drawn(mark=["1,2", "2,1"])
    assert both == drawn(mark=[(1, 2), (2, 1)]) == drawn(mark=np.array([[1, 2], [2, 1]])) and len({both, drawn(mark=(1, 2)), drawn()}) == 3
    assert drawn(mark=(1, 2)) == drawn(mark="1,2") == drawn(mark=["1,2"])
    assert len({drawn(scale=["-6,6", "0,1"]), drawn(scale=(-6, 6)), drawn()}) == 3


def test_an_open_model_is_subtracted():
    other = f"{DEMO}-bert"
    with deberta_c.Model(DEMO, threads=1) as m, deberta_c.Model(other, threads=1) as n, deberta_c.Model(other, precision="int8", threads=1) as low:
        def drawn(**options):
            return deberta_c.attention_figure(m, TEXT, kind="difference", layers=2, heads=0, **options).svg
        whole = drawn(minus=n)
        assert whole == drawn(minus=other)
        with n.ablate("c2c@2"):
            assert drawn(minus=n) == drawn(minus=other, minus_ablate="c2c@2") != whole
        refuses(deberta_c.UnsupportedError, "minus: both models are opened in the same way, and precision= differs: None and 'int8'", drawn, minus=low)


def test_kinds_of_several_texts():
    two = deberta_c.attention_figure(DEMO, ["a new store", "a new day"], kind="difference", **ONE)
    assert two.title == "attention of: a new store and a new day"
    assert deberta_c.attention_figure(DEMO, ["a", "b b", "c"], kind="kernel", threads=1).svg != deberta_c.attention_figure(DEMO, ["a"], kind="kernel", threads=1).svg


@pytest.mark.parametrize("options, words", [({"width_mm": -3}, "width_mm=: expected 30 to 1000, found -3"), ({"frob": 3}, "unknown option 'frob='"), ({"kind": "distances"}, "there is no 'distances'; did you mean distance?")])
def test_errors_in_the_package_s_words(options, words):
    with pytest.raises(deberta_c.ArgumentError) as refused:
        deberta_c.attention_figure(DEMO, TEXT, **options)
    assert words in str(refused.value) and "--" not in str(refused.value) and "see:" not in str(refused.value) and not str(refused.value).startswith("deberta")


def test_kinds_of_the_docstring():
    """Every kind that it names is one."""
    named = re.search(r"kind: (.*?);\s*difference", deberta_c.attention_figure.__doc__, re.S)[1]
    for kind in re.findall(r"components|rollout|distances?", named):
        assert deberta_c.attention_figure(DEMO, TEXT, kind=kind, layers=2, threads=1).svg.startswith(BEGINS[".svg"])


def test_notes_of_the_program_are_warnings(tmp_path):
    """What it prints as notes, once, in the package's words."""
    with pytest.warns(deberta_c.NoteWarning, match="mm high, more than a page.* layers=, heads=") as seen:
        figure = deberta_c.attention_figure(DEMO, TEXT, layers="all", heads="all", width_mm=85)
    assert all(not str(one.message).startswith("note") and one.filename == __file__ for one in seen)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        figure.save(tmp_path / "a.pdf")


def test_figures_in_one_page_share_no_ids():
    pages = [deberta_c.attention_figure(DEMO, TEXT, kind="query", query=query, width_mm=85, threads=1)._repr_html_() for query in (1, 2)]
    named, used = ([set(re.findall(pattern, page)) for page in pages] for pattern in (r'\bid="([^"]*)"', r'url\(#([^)]*)\)|href="#([^"]*)"'))
    assert named[0] and not named[0] & named[1]
    assert all({"".join(one) for one in there} <= ids for there, ids in zip(used, named)) and used[0]


def test_files_of_results(tmp_path):
    """out= of bench and receptive_field is a file of the same JSON, under a name that says so and that is no input."""
    import json
    place = tmp_path / "result.json"
    rows = deberta_c.bench(DEMO, tokens=[4], reps=1, no_peak=True, threads=1, out=place)
    assert json.loads(place.read_text())["results"] == rows
    with deberta_c.Model(DEMO, threads=1) as model:
        assert model.receptive_field(out=place, plot=tmp_path / "field.pdf") == json.loads(place.read_text())
        assert (tmp_path / "field.pdf").read_bytes().startswith(BEGINS[".pdf"])
        refuses(deberta_c.ArgumentError, "expected a name that ends in .svg, .pdf or .png", model.receptive_field, plot=tmp_path / "field.gif")
    for name in ("a.csv", "a.pdf", "a"):
        refuses(deberta_c.ArgumentError, "expected a name that ends in .json", deberta_c.bench, DEMO, tokens=[4], out=tmp_path / name)
    folder = tmp_path / "model"
    shutil.copytree(DEMO, folder)
    before = (folder / "config.json").read_bytes()
    refuses(deberta_c.ArgumentError, "which is read", deberta_c.bench, folder, tokens=[4], out=folder / "config.json")
    assert (folder / "config.json").read_bytes() == before
    refuses(deberta_c.ArgumentError, "prints no JSON with help=", deberta_c.bench, DEMO, help=True)


def test_traces_are_arrays():
    text, given = "the boys near the store [MASK] here", {"corrupted": "the boy near the store [MASK] here", "answer": ["were", "was"], "threads": 1}
    with deberta_c.Model(DEMO) as model:
        found = model.trace(text, **given)
        with model.ablate("p2c@all"):
            without = model.trace(text, what=["terms"], **given)
        logits = [model.fill_mask(one, top=1000)["masks"][0]["candidates"] for one in (text, given["corrupted"])]
    for name, rows in zip(("clean", "corrupted"), logits):
        by_text = {row["text"]: np.log(row["probability"]) for row in rows}
        assert abs(found[name] - (by_text["were"] - by_text["was"])) < 1e-4
    assert found["shares"]["states"].shape == (6, 9) and found["measures"]["c2p"].shape == (5, 3) and np.isnan(found["shares"]["states"][-1]).all()
    np.testing.assert_allclose(found["shares"]["states"][0], [0, 0, 1, 0, 0, 0, 0, 0, 0], atol=1e-6)
    assert without["clean"] != found["clean"] and np.ptp(without["measures"]["p2c"]) == 0 and np.ptp(without["measures"]["c2c"]) > 0
    assert deberta_c.attention_figure(DEMO, text, kind="trace", **given).svg.startswith(BEGINS[".svg"])
    with deberta_c.Model(DEMO) as model:
        refuses(deberta_c.ArgumentError, "expected one way to corrupt the text", model.trace, text, answer="were")
