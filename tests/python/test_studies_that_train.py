"""The studies that train their own models: their printed shares against the files of results, and the window against the program.

SPDX-License-Identifier: MIT
"""
import csv
import math
import re
import statistics
import sys

import numpy as np
import pytest
from deberta_c import _program
from studies_bench import ROOT

sys.path.append(str(ROOT / "studies"))
import label_engines  # noqa: E402
import label_flips  # noqa: E402
import place  # noqa: E402
import reach  # noqa: E402
import replaced  # noqa: E402
import seeds  # noqa: E402
import shift  # noqa: E402
import sift  # noqa: E402
import starts  # noqa: E402
import study  # noqa: E402
import study_models  # noqa: E402
import tasks  # noqa: E402
import trained  # noqa: E402
import windowed  # noqa: E402

DATA = ROOT / "docs" / "studies" / "data"


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    steps, reach.STEPS = reach.STEPS, 3
    try:
        return trained.train(reach.recipe(reach.Cell(4, 2), 1)._replace(steps=3, warm_up=1), tmp_path_factory.mktemp("state"), 1)
    finally:
        reach.STEPS = steps


def test_numpy_agrees_with_the_program(model):
    ids, _ = reach.test_texts(1, 24, 1)
    ours = trained.logits(model, ids, "mlm")
    assert np.abs(windowed.logits(model, ids) - ours).max() < 1e-4 * np.abs(ours).max()


def test_nothing_from_outside_the_window(model):
    """k = 4, two layers: token 12 is reached from 12 - 4 to 12 + 6, and from nowhere else."""
    ids, _ = reach.test_texts(1, 24, 1)
    before = windowed.logits(model, ids[:1], (-3, 2))
    reaching = []
    for place_of_change in range(24):
        changed = ids[:1].copy()
        changed[0, place_of_change] = 31
        if (windowed.logits(model, changed, (-3, 2))[0, 12] != before[0, 12]).any():
            reaching.append(place_of_change)
    assert reaching == list(range(12 - 4, 12 + 6 + 1))


@pytest.mark.parametrize("cell", [reach.Cell(4, 2, True), reach.Cell(4, 2, framed=True), reach.Cell(reach.LONG, 1, buckets=16, length=reach.LONG)])
def test_labels_say_the_distance(cell):
    made = reach.batches(1, cell)
    step, text = 5, 3
    asked = made["labels"][step, text] != trained.NOT_ASKED
    (marker,) = np.flatnonzero(made["input_ids"][step, text] == reach.MARKER)
    there = made["attention_mask"][step, text].astype(bool)
    assert asked[marker] and (made["labels"][step, text][asked] - reach.LABELS - cell.length == np.flatnonzero(asked) - marker).all()
    assert there.sum() - asked.sum() == 2 * cell.framed and (not cell.framed or (made["input_ids"][step, text, [0, -1]] == (reach.FIRST, reach.LAST)).all())


def test_bands_are_the_same_for_all_models():
    """Every distance lies in one band, whatever k and depth; of planted answers a band has the share that was put in."""
    for length in (reach.TOKENS, reach.LONG):
        distances = sorted(r for band in reach.bands_of(length) for low, high in reach.both_sides(*band) for r in range(low, high + 1) if abs(r) < length)
        assert distances == list(range(1 - length, length))
    for framed, each in ((False, 2), (True, 3)):
        cell = reach.Cell(4, 2, framed=framed)
        ids, distances = reach.test_texts(1, reach.TOKENS, each, framed)
        inner = reach.TOKENS - 2 * framed
        assert len(ids) == each * inner and (distances < 100).sum() == len(ids) * inner
        row = {"tokens": reach.TOKENS, "framed": int(framed), "each": each, "right": reach.counts(cell, (8 <= abs(distances)) & (abs(distances) < 16), distances)}
        assert [reach.share(row, reach.both_sides(*band)) for band in reach.bands_of(reach.TOKENS)] == [0, 0, 0, 100, 0, 0]
        assert reach.share(row, reach.outside(cell)) > reach.share(row, reach.inside(cell)) == 0


def test_edited_states_are_all_that_changes(model):
    """From the same text an edit moves no bit; from another it moves answers."""
    ids, _ = reach.test_texts(1, 24, 1)
    same = np.repeat(ids[3:4], 2, 0)
    for what in reach.EDITS:
        assert np.array_equal(reach.edited(model, same, what), trained.logits(model, same, "mlm")), what
        assert not np.array_equal(reach.edited(model, ids, what), trained.logits(model, ids, "mlm")), what


def test_page_has_the_shares_of_the_file():
    """EMD, and k = 32 with [CLS], summed up again from the file."""
    with open(DATA / "place.csv", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    page = (ROOT / "docs" / "studies" / "place.md").read_text(encoding="utf-8")
    for want, line in (({"k": "32", "layers": "2", "cls": "1"}, "| 2 | 32 | yes | on H[L] | 5 |"), ({"k": "4", "layers": "2", "cls": "0", "head": "mlm"}, "| 2 | 4 | no | on H[L] | 5 |")):
        cells = []
        for tokens in place.TESTS:
            shares = [sum(int(one[f"at{i}"]) for i in range(tokens)) / int(one["texts"]) / tokens * 100 for one in rows
                      if all(one[name] == value for name, value in want.items()) and one["tokens"] == str(tokens)]
            assert len(shares) == trained.SEEDS
            cells.append(f"{np.mean(shares):.1f} ({min(shares):.1f} to {max(shares):.1f})")
        assert f"{line} {' | '.join(cells)} |" in page


def test_reach_has_the_shares_of_its_file():
    """Distances inside n steps, and from 8 to 15, summed up again: clipped, in buckets, and with one term."""
    with open(DATA / "reach.csv", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    page = (ROOT / "docs" / "studies" / "reach.md").read_text(encoding="utf-8")
    for (k, layers, buckets, terms, length), (low, high), line in (((8, 2, -1, "c2p+p2c", 40), (-14, 12), "| 2 | 8 | c2p+p2c | 40 | -14 to 12 | 5 |"),
                                                                   ((4, 2, -1, "c2p", 40), (-6, 4), "| 2 | 4 | c2p | 40 | -6 to 4 | 5 |"),
                                                                   ((32, 2, 8, "c2p+p2c", 40), (-8, 8), "| 2 | 8 buckets | c2p+p2c | 40 | -8 to 8 | 5 |")):
        want = {"k": k, "layers": layers, "buckets": buckets, "terms": terms, "varied": 0, "framed": 0, "length": length, "tokens": length, "without": "nothing"}
        cells = []
        for places in (range(low, high + 1), [r for r in range(-15, 16) if abs(r) >= 8]):
            shares = [100 * sum(int(one["right"].split()[r + length - 1]) for r in places) / sum(reach.EACH * (length - abs(r)) for r in places) for one in rows
                      if all(one[name] == str(value) for name, value in want.items())]
            assert len(shares) == trained.SEEDS
            cells.append(f"{np.mean(shares):.0f} ({min(shares):.0f} to {max(shares):.0f})")
        (found,) = [one for one in page.splitlines() if one.startswith(line)]
        assert [one.strip() for one in found.split("|")][7:12:4] == cells, line


def test_shift_asks_the_same_pieces():
    """Longer windows ask the pieces of the short ones; ids that begin later change no bit of a relative model, and the losses of the twin."""
    for path, moves in zip(shift.MODELS, (False, True)):
        with trained.deberta_c.Model(ROOT / path, threads=1) as model:
            tokens = model.tokenize("[MASK]")
            mask = int(tokens.ids[tokens.roles == study.SPELLED][0])
            texts, hidden = shift.units(model, 1)
            losses = {key: shift.asked(model, texts, hidden, mask, *key)[0] for key in ((1, 0), (1, 64), (4, 0))}
        assert all((np.isfinite(found) == hidden).all() for found in losses.values())
        assert (losses[1, 0][hidden] != losses[1, 64][hidden]).any() == moves and (losses[1, 0][hidden] != losses[4, 0][hidden]).any()


def test_models_of_a_seed_read_the_same_starts():
    """[CLS] comes before the same characters and masks; the control of the decoder has one place, the others all; a text begins where a sentence does."""
    text = (DATA / "sentences.txt").read_text(encoding="utf-8")
    stream = study_models.Stream(text, study_models.alphabet(text))
    bare, framed, control = (starts.batches(stream, *which, 3) for which in ((False, "EMD"), (True, "EMD"), (True, "one place")))
    assert (framed["input_ids"][:, :, 0] == starts.CLS).all() and (framed["labels"][:, :, 0] == trained.NOT_ASKED).all()
    for name in ("input_ids", "labels"):
        assert (framed[name][:, :, 1:] == bare[name]).all() and (framed[name] == control[name]).all()
    assert (framed["position_ids"] == np.arange(starts.CHARACTERS + 1)).all() and not control["position_ids"].any()
    whole = np.where(bare["labels"] == trained.NOT_ASKED, bare["input_ids"], bare["labels"]).reshape(-1, starts.CHARACTERS)
    begins = {tuple(stream.ids[at:at + starts.CHARACTERS]) for at in stream.starts}
    assert all(tuple(one) in begins for one in whole[:50]) and (bare["labels"] != trained.NOT_ASKED).mean() == 16 / 63


def test_a_probe_finds_places_that_are_there():
    """R2 near 1 where the model adds positions to its words, near 0 where it knows none."""
    ids = np.random.default_rng(1).integers(0, 90, (200, starts.CHARACTERS))
    class Known:
        def encode(self, found, hidden):
            noise = np.random.default_rng(2).normal(size=(*found.shape, 8))
            return {"hidden_states.2": noise, "hidden_states.3": noise + 0.5 * np.arange(found.shape[1])[:, None]}
    nothing, place_there = starts.place_known(Known(), True, ids)
    assert abs(nothing) < 0.02 and place_there > 0.95


def test_a_scaled_table_is_the_same_model(tmp_path):
    """The norm behind the words takes the scale away, to the rounding of its epsilon: the encoder computes the same rows."""
    large = sift.scaled_demo(tmp_path / "large", sift.SCALE)
    ids = np.random.default_rng(1).integers(4, 5000, (2, 12))
    found = []
    for folder in (sift.DEMO, large):
        with trained.deberta_c.Model(folder, threads=1) as model:
            found += model.encode(ids.astype(np.int32)).values()
    one, other = found
    assert 0 < np.abs(one - other).max() < 1e-3 * np.abs(one).max()
    assert (trained.read_tensors(large / "model.safetensors")[sift.TABLE] == sift.SCALE * trained.read_tensors(sift.DEMO / "model.safetensors")[sift.TABLE]).all()


def test_models_of_a_seed_read_the_same_windows(tmp_path):
    """More steps begin with the steps of the others; nine pieces of a window are asked, none of its frame; no window comes twice where there are enough."""
    ids = np.random.default_rng(1).integers(5, 1990, (2 * replaced.STEPS * replaced.SEQUENCES, replaced.TOKENS))
    ids[:, 0] = np.arange(len(ids))  # tells windows apart
    np.savez(tmp_path / "windows.npz", ids=ids, mask=1999)
    short, long, other = (replaced.batches(tmp_path, *which) for which in ((3, replaced.STEPS), (3, replaced.STEPS * 3 // 2), (4, replaced.STEPS)))
    assert all((long[name][:replaced.STEPS] == short[name]).all() for name in short) and (other["labels"] != short["labels"]).any()
    asked = long["labels"] != trained.NOT_ASKED
    assert (asked.sum(-1) == replaced.HIDDEN).all() and not asked[..., [0, -1]].any() and (long["input_ids"][asked] == 1999).all()
    which = long["input_ids"][..., 0].reshape(-1)
    assert len(set(which.tolist())) == len(which)
    assert (np.where(asked, long["labels"], long["input_ids"]).reshape(-1, replaced.TOKENS) == ids[which]).all()


def test_a_generator_begins_as_the_lower_layers(tmp_path):
    """With the table of its discriminator, so that no way of sharing starts ahead; the mean cosine is that of all pairs."""
    trained.program("train", "tokenizer", "--file", str(DATA / "decoder.txt"), "--vocabulary", "300", "--depth", "4", "--width", "64", "--head-count", "2", "--out", str(tmp_path / "tokenizer"))
    folders = [replaced.begun(tmp_path, tmp_path, layers, 7, 1) for layers in (replaced.LAYERS, replaced.GENERATOR_LAYERS)]
    whole, lower = (trained.read_tensors(folder / "model.safetensors") for folder in folders)
    assert lower.keys() < whole.keys() and all((lower[name] == whole[name]).all() for name in lower)
    rows = whole[replaced.TABLE][1:].astype(float)
    pairs = [rows[i] @ rows[j] / np.linalg.norm(rows[i]) / np.linalg.norm(rows[j]) for i in range(len(rows)) for j in range(i)]
    assert abs(replaced.cosine(folders[0]) - np.mean(pairs)) < 1e-12


def test_starts_sift_and_replaced_have_the_changes_of_their_files():
    """Differences paired by seed with their t-intervals, computed again from the files of results."""
    def interval(one, other, form):
        changes = [one[seed] - other[seed] for seed in sorted(one)]
        assert len(changes) == trained.SEEDS and one.keys() == other.keys()
        half = 2.776 * statistics.stdev(changes) / math.sqrt(len(changes))
        return " ".join(form % value for value in (statistics.mean(changes), statistics.mean(changes) - half, statistics.mean(changes) + half))

    def columns(name, value, keys):
        with open(DATA / f"{name}.csv", encoding="utf-8") as file:
            found = {}
            for row in csv.DictReader(file):
                found.setdefault(tuple(row[key] for key in keys), {})[row["seed"]] = float(row[value])
        return found

    plain = lambda name: re.sub(r"[()]|to ", "", (ROOT / "docs" / "studies" / f"{name}.md").read_text(encoding="utf-8"))
    first = columns("starts", "at0", ("k", "cls", "head"))
    assert f"| {interval(first['4', '0', 'EMD'], first['4', '0', 'one place'], '%+.3f')} |" in plain("starts")
    loss = columns("sift-dose", "loss", ("task", "kind", "start", "step", "scale"))
    words = columns("replaced", "loss_words", ("kind",))
    assert f"| {interval(words['rtd-gdes',], words['rtd-es',], '%+.3f')} |" in plain("replaced")
    for kind in ("normalized", "raw"):
        assert f"| {interval(loss['asked', kind, '0.01', '1', '1'], loss['asked', 'base', '0', '0', '1'], '%+.4f')} |" in plain("sift")


def test_tasks_of_a_paragraph():
    """What is asked is taken out of the text: quotation marks, the mark at the end, capitals."""
    lines = ["\u201cWill you come to the house now?\u201d asked old Tom of the captain.", "Then the Captain and I went to Boston. So they all went home again."]
    assert tasks.sentences(lines) == [("So they all went home again.", False), ("Then the Captain and I went to Boston.", False), ("Will you come to the house now?", True)]
    assert tasks.labelled("spoken", lines)[1] == ["spoken\tWill you come to the house now?\n"]
    assert tasks.labelled("asked", lines)[1] == ["asked\tWill you come to the house now\n"]
    (named,) = tasks.labelled("named", lines)
    assert named == ["the\tO\ncaptain\tNAME\nand\tO\ni\tO\nwent\tO\nto\tO\nboston.\tNAME\n\n"]
    assert sorted(tasks.sample([["a"] * 9, ["b"] * 9], 6)) == ["a"] * 3 + ["b"] * 3


def test_always_one_answer(tmp_path):
    (tmp_path / "asked-test.tsv").write_text("asked\tis it\nsaid\tit is\nsaid\tso it is\n")
    (tmp_path / "named-test.tsv").write_text("tom\tNAME\nwent\tO\n\nhome\tO\nsir\tO\n\n")
    assert tasks.most_frequent(tmp_path, "asked") == 2 / 3 and tasks.most_frequent(tmp_path, "named") == 3 / 4


def test_batches_of_a_seed_are_the_grids():
    """With order and masks of one seed the texts are those that studies/train_studies.py draws for a step."""
    text = (DATA / "sentences.txt").read_text(encoding="utf-8")
    stream = study_models.Stream(text, study_models.alphabet(text))
    made = seeds.batches(stream, 4, 4)
    begins = stream.starts[: np.searchsorted(stream.starts, len(stream.ids) - 16)]
    at = np.random.default_rng([4, 0]).choice(begins, study_models.TOKENS_PER_STEP // 16)
    first = np.where(made["labels"][0, : len(at), :16] == trained.NOT_ASKED, made["input_ids"][0, : len(at), :16], made["labels"][0, : len(at), :16])
    assert (first == stream.ids[at[:, None] + np.arange(16)]).all()
    assert (made["labels"][0] != trained.NOT_ASKED).sum() == 4 * len(at)  # a quarter of 16
    other = seeds.batches(stream, 4, 5)
    assert (other["attention_mask"] == made["attention_mask"]).all() and (other["labels"] != made["labels"]).any()


def test_a_training_in_pieces_has_the_same_bits(tmp_path, monkeypatch):
    """Broken off after two steps and gone on with; the weights of every step stay. Another number of parts of the sums is another rounding."""
    monkeypatch.setattr(reach, "STEPS", 3)
    recipe, program = reach.recipe(reach.Cell(4, 1), 1)._replace(steps=3, warm_up=1), trained.program
    whole = trained.train(recipe, tmp_path / "whole", 1)
    other = trained.train(recipe._replace(shards=1), tmp_path / "other", 1)

    def stops(*words):
        program(*words, "--stop-at", "2")
        raise KeyboardInterrupt
    monkeypatch.setattr(trained, "program", stops)
    with pytest.raises(KeyboardInterrupt):
        trained.train_in_pieces(recipe, tmp_path / "pieces", 1, 1)
    monkeypatch.setattr(trained, "program", program)
    pieces = trained.train_in_pieces(recipe, tmp_path / "pieces", 1, 1)
    assert trained.train_in_pieces(recipe, tmp_path / "pieces", 1, 1) == pieces and [one.name for one in (tmp_path / "pieces").iterdir()] == [recipe.name]
    weights = [(folder / "model.safetensors").read_bytes() for folder in (whole, pieces, other)]
    assert weights[0] == weights[1] != weights[2]
    kept = [trained.read_tensors(folder / "model.safetensors") for folder in (pieces / "checkpoint-000001", pieces / "checkpoint-000002", pieces)]
    assert all(any((kept[k][name] != kept[k + 1][name]).any() for name in kept[2]) for k in (0, 1))


def test_longer_run_has_the_losses_of_its_file():
    """What one order of the sums and another start move the held-out loss by, from the file; the first order stands beside its own losses."""
    with open(DATA / "seeds-long.csv", encoding="utf-8") as file:
        rows = {(one["start"], one["shards"], one["few"], one["step"]): one for one in csv.DictReader(file)}
    page = (ROOT / "docs" / "studies" / "seeds.md").read_text(encoding="utf-8")
    steps = [str(step) for step in range(800, 6401, 800)]
    loss = {key: [float(rows[(*key, "0", step)]["held_out"]) for step in steps] for key in (("1", "16"), ("1", "1"), ("2", "16"))}
    for key, line in ((("1", "1"), "sums in 1 part"), (("2", "16"), "another start")):
        assert f"| {line} | {' | '.join(f'{one - base:+.5f}' for one, base in zip(loss[key], loss['1', '16']))} |" in page
    assert f"| sums in 16 parts | {' | '.join(f'{one:.4f}' for one in loss['1', '16'])} |" in page
    assert [seeds.Run(few=True).base, seeds.Run(start=2).base] == [seeds.Run(few=True), seeds.Run()]


def test_square_tells_what_was_put_in():
    rows = [{"start": i + 1, "order": j + 1, "masks": (i + j) % 5 + 1, "moved": -1, "loss": 1 + 0.1 * i + 0.01 * (j % 2)} for i in range(5) for j in range(5)]
    (start, order, masks), rest, _ = seeds.square(rows)
    assert abs(start - 0.1 * np.std(range(5), ddof=1)) < 1e-12 and abs(order - 0.01 * np.std([0, 1, 0, 1, 0], ddof=1)) < 1e-12
    assert masks < 1e-12 and rest < 1e-12 and seeds.square(rows[1:]) is None


def test_seeds_that_a_difference_needs():
    enough = seeds.needed(0.02, 0.02)
    half = [trained.student(count - 1) * 0.02 / np.sqrt(count) for count in (enough - 1, enough)]
    assert half[0] >= 0.02 > half[1] and seeds.needed(1e-6, 1.0) is None


def test_flips_of_planted_logits():
    """Labels, bits, reordered pairs and their interval, where it is known what was changed."""
    one = np.random.default_rng(3).normal(size=(40, 4)).astype(np.float32)
    other = one.copy()
    other[:3] = np.roll(one[:3], 1, 1)  # three texts of the first paragraph get another label
    other[10, 0] = np.nextafter(other[10, 0], np.float32(9))
    paragraphs = np.repeat([f"own {k}" for k in range(8)], 5)
    row = label_flips.compared(one, other, paragraphs)
    assert (row["flips"], row["bits"], row["texts"], row["paragraphs"]) == (3, 4, 40, 8)
    assert float(row["low"]) == 0 and 3 < float(row["high"]) < 12  # one paragraph of eight has all of them
    same = label_flips.compared(one, one, paragraphs)
    assert (same["flips"], same["bits"], same["reordered"]) == (0, 0, 0) and abs(float(same["high"]) - 40 * 3.84 / 11.84) < 0.06


def test_labelled_texts_are_asked_as_they_are(tmp_path):
    """A text a paragraph, its label and nothing else left out; an engine with the option reads the file of the one without."""
    (tmp_path / "asked.tsv").write_text("NUM\tHow far is it ?\nHUM\tWho\twas it ?\n")
    assert label_flips.labelled_texts(tmp_path / "asked.tsv") == [("own", 0, "How far is it ?"), ("own", 1, "Who\twas it ?")]
    precise = [engine.removesuffix(" precise") for engine in label_engines.ENGINES if engine.endswith(" precise")]
    assert len(precise) == 3 and {*precise} < {*label_engines.ENGINES}


def test_logits_by_a_program_are_the_librarys(tmp_path, monkeypatch):
    """What stands in for the library on another architecture, here the program of this one."""
    pytest.importorskip("safetensors")
    (tmp_path / "model").symlink_to(ROOT / "models" / "demo")
    ids, mask = label_flips.padded([np.array([1, 7, 3, 2]), np.array([1, 9, 40, 50, 60, 2])])
    for engine in ("deberta", "deberta int8"):
        monkeypatch.delenv("LABELS_PROGRAM", raising=False)
        library = label_flips.ENGINES[engine](tmp_path, 1)(ids, mask)
        monkeypatch.setenv("LABELS_PROGRAM", str(_program.PROGRAM))
        assert (label_engines.ENGINES[engine](tmp_path, 1)(ids, mask) == library).all() and library.shape == (2, 16)


def test_another_architecture_needs_a_program(tmp_path, monkeypatch, capsys):
    """Asked for by name it is refused; among all conditions it is left out."""
    ran = []
    monkeypatch.setattr(label_flips, "run", lambda options: ran.extend(options.conditions))
    monkeypatch.setattr(sys, "argv", ["label_flips.py", "run", "--work", str(tmp_path), "--conditions", "base,aarch64"])
    with pytest.raises(SystemExit) as ended:
        label_flips.main()
    assert ended.value.code == 2 and "needs --aarch64" in capsys.readouterr().err and not ran
    monkeypatch.setattr(sys, "argv", ["label_flips.py", "run", "--work", str(tmp_path)])
    label_flips.main()
    assert ran == [name for name in label_flips.CONDITIONS if name != "aarch64"]
