"""`studies/variants.py` and `studies/scores.py`: pieces of a training, what is kept, and the table by hand. The long program is a stand-in; the kinds
are trained by the program itself for one step. SPDX-License-Identifier: MIT"""
import argparse
import csv
import json
import statistics
import subprocess
import sys
from pathlib import Path

import pytest

from helpers import near
from studies_bench import ROOT

sys.path.append(str(ROOT / "studies"))
import over_seeds  # noqa: E402
import scores  # noqa: E402
import trained  # noqa: E402
import variants  # noqa: E402


def given(tmp_path, **more):
    (tmp_path / "corpus").mkdir(exist_ok=True)
    words = "the old chief stood silent in the tall cool pines and a new store came there "
    for name in ("train.txt", "sample.txt"):
        (tmp_path / "corpus" / name).write_text((words * 9 + "\n\n") * 8)
    return argparse.Namespace(**{"corpus": str(tmp_path / "corpus"), "sets": str(tmp_path / "sets"), "state": str(tmp_path / "state"), "threads": 1, "steps": 2,
                                 "blimp_every": 1, "seeds": [1], "results": str(tmp_path / "r.csv"), "seconds": 1e9, **more})


def test_a_training_goes_on_in_pieces(tmp_path, monkeypatch):
    calls = []

    def program(*words):
        out = Path(words[words.index("--out") + 1])
        out.mkdir(parents=True, exist_ok=True)
        end = int(words[words.index("--stop-at" if "--stop-at" in words else "--steps") + 1])
        (out / "log.jsonl").write_text("{}\n" * end)
        if "--stop-at" not in words:
            (out / "model.safetensors").write_bytes(b"")
        calls.append(("--resume" in words, end))
        if len(calls) == 2:  # the time ends behind the second piece
            training.end = 0

    monkeypatch.setattr(trained, "program", program)
    training = variants.Training(tmp_path, given(tmp_path), 1e18)
    with pytest.raises(SystemExit) as stopped:
        training.run("model", ["--config", "c"], "mlm", 500)
    assert stopped.value.code == scores.MORE_TO_DO and calls == [(False, 200), (True, 400)]
    training.end = 1e18
    training.run("model", ["--config", "c"], "mlm", 500)
    training.run("model", ["--config", "c"], "mlm", 500)  # it is there
    assert calls[2:] == [(True, 500)]


@pytest.mark.parametrize("name", variants.KINDS)
def test_each_kind_is_what_its_name_says(tmp_path, monkeypatch, name):
    """Two steps of a narrow copy; its configuration and tensors have the parts that the kind has."""
    real = variants.configuration

    def narrow(folder, changes):
        made = real(folder, changes)
        config = json.loads((made / "config.json").read_text())
        (made / "config.json").write_text(json.dumps({**config, "hidden_size": 24, "intermediate_size": 32, "num_attention_heads": 2, "num_hidden_layers": 2,
                                                      "pooler_hidden_size": 24}))
        return made

    monkeypatch.setattr(variants, "configuration", narrow)
    kind = variants.KINDS[name]
    asked = given(tmp_path, steps=40 if kind.short else 2)
    model = variants.Training(tmp_path / "place", asked, 1e18).model(kind, 1)
    tensors = trained.read_tensors(model / "model.safetensors")
    config = json.loads((model / "config.json").read_text())
    assert ("mask_predictions.dense.weight" in tensors) == kind.generator
    assert any("rel_embeddings" in one for one in tensors) == (name != "absolute")
    assert config["position_biased_input"] == (name == "absolute")
    terms = config.get("pos_att_type") or []
    terms = terms.split("|") if isinstance(terms, str) else terms
    assert set(terms) == {"no c2p": {"p2c"}, "no p2c": {"c2p"}, "absolute": set()}.get(name, {"c2p", "p2c"})
    if not kind.generator:
        assert 0 <= scores.masked(model, str(Path(asked.corpus) / "sample.txt"), 1, kind.head)["right"]
    if kind.drawn:  # no step moves a weight, and each seed draws its own
        trained.program("train", "mlm", "--config", str(tmp_path / "place" / "config"), "--file", str(Path(asked.corpus) / "train.txt"), "--steps", "3",
                        "--learning-rate", "0", "--seed", "1", "--threads", "1", "--quiet", "--out", str(tmp_path / "three"))
        other = variants.Training(tmp_path / "other", asked, 1e18).model(kind, 2)
        assert scores.digest(tmp_path / "three" / "model.safetensors") == scores.digest(model / "model.safetensors") != scores.digest(other / "model.safetensors")
    if name == "all":  # which head was trained decides what is asked: the other one answers otherwise
        losses = [scores.masked(model, str(Path(asked.corpus) / "sample.txt"), 1, head)["loss"] for head in ("mlm", "mlm_emd")]
        assert losses[0] != losses[1]


def test_rows_are_kept_and_not_trained_again(tmp_path, monkeypatch):
    """One interrupted command and its repetition make the rows of one that is not; a row that is there costs nothing."""
    made = []

    class Training:
        def __init__(self, place, *_):
            self.place = place

        def model(self, kind, seed):
            made.append((self.place.name, seed))
            self.place.mkdir(parents=True, exist_ok=True)
            (self.place / "model.safetensors").write_bytes(self.place.name.encode())
            if len(made) == 4:
                sys.exit(scores.MORE_TO_DO)
            return self.place

    monkeypatch.setattr(variants, "Training", Training)
    monkeypatch.setattr(variants, "measured", lambda model, kind, seed, *_: {"masked": "" if kind.generator else 30.5, "blimp": 60.0, "blimp right": "6 5", "mr": 70, "subj": 80, "trec": 90})
    asked = given(tmp_path, seeds=[1, 2])
    with pytest.raises(SystemExit):
        variants.train(asked)
    assert len(trained.read_rows(asked.results)) == 3
    variants.train(asked)
    variants.train(asked)
    rows = trained.read_rows(asked.results)
    assert [(row["kind"], row["seed"]) for row in rows] == [(kind, seed) for seed in (1, 2) for kind in variants.KINDS] and len(made) == 2 * len(variants.KINDS) + 1
    assert [row["masked"] == "" for row in rows] == [row["kind"] == "rtd" for row in rows]
    older = [{name: value for name, value in row.items() if name != "blimp right"} for row in rows[:3]]
    Path(asked.results).write_text(trained.csv_of(older))  # a file whose rows have no counts by paradigm
    variants.train(asked)
    assert [row["blimp right"] for row in trained.read_rows(asked.results)] == [""] * 3 + ["6 5"] * (2 * len(variants.KINDS) - 3)


def test_differences_by_hand(tmp_path, capsys):
    """Seed by seed, with Student's t; a seed that one of the two lacks does not count."""
    values = {"all": {1: 30.0, 2: 31.0, 3: 32.5, 4: 99.0}, "no c2p": {1: 29.0, 2: 29.5, 3: 32.0}}
    with open(tmp_path / "r.csv", "w", newline="", encoding="utf-8") as file:
        table = csv.writer(file)
        table.writerow(["kind", "seed", "steps", *variants.SCORES, "blimp every", "blimp right"])
        for kind, of in values.items():
            for seed, value in of.items():
                table.writerow([kind, seed, 2, value, value + 30, 50, 60, 70, 10, "40 60 80" if kind == "all" else f"39 {57 + seed} 79"])
    rows = trained.read_rows(str(tmp_path / "r.csv"))
    found = variants.differences(rows, "no c2p", "masked")
    apart = [-1.0, -1.5, -0.5]
    half = 4.303 * statistics.stdev(apart) / 3 ** 0.5
    near(found.value, statistics.mean(apart), 1e-12, "mean")
    near(found.low, statistics.mean(apart) - half, 1e-9, "low")
    near(found.high, statistics.mean(apart) + half, 1e-9, "high")
    by_paradigm = variants.over_paradigms(rows, "no c2p")  # -1, (-2 - 1 + 0) / 3 and -1 of a hundred pairs each
    assert (by_paradigm.value, by_paradigm.low, by_paradigm.high) == (-1, -1, -1)
    assert variants.over_paradigms([{**row, "blimp right": ""} if (row["kind"], row["seed"]) == ("no c2p", 1) else row for row in rows], "no c2p") is None
    variants.tables(rows)
    printed = capsys.readouterr().out
    assert "| no c2p | 3 | 30.2 (29.0 to 32.0) |" in printed and "| no c2p | -1.0 (-2.2 to +0.2) | -1.0 (-2.2 to +0.2) | +0.0" in printed


def test_scores_of_the_bundled_model(tmp_path):
    """Pairs that differ by one word: what is right is counted as the program counts it, of every second pair."""
    pairs = [{"sentence_good": f"The old chief stood silent {k}.", "sentence_bad": f"The old chief stand silent {k}.", "UID": "u", "linguistics_term": "t"} for k in range(5)]
    (tmp_path / "p.jsonl").write_text("".join(json.dumps(one) + "\n" for one in pairs))
    found = scores.blimp(ROOT / "models" / "demo", tmp_path / "p.jsonl", 2, 1)
    assert found["pairs"] == 3 and 0 <= found["right"] <= 3 and found["paradigms"][0]["pairs"] == 3


@pytest.mark.parametrize("cells, expected", [
    (["+1.20 (+1.00 to +1.40)", "-0.20 (-0.30 to -0.10)"], "+0.50 (-0.20 to +1.20)"), (["32.0 % (31.3-32.7)", "30.0 % (1-2)"], "31.0 % (30.0 to 32.0)"),
    (["0.000 (0.000-0.000)"] * 2, "0.000 (0.000 to 0.000)"), ([15, 15], 15), ([15, 17], "16 (15 to 17)"), ([0.5, 0.25], "0.375 (0.250 to 0.500)"), ([9.96, 10.04], "10.0 (10.0 to 10.0)"), ([5e6, 4e6], "4.5e+06 (4e+06 to 5e+06)"),
    (["-0.49 to 0.53", "0.1 to 0.2"], "-0.49 to 0.53 / 0.1 to 0.2"), ([None, None], None), (["all", "all"], "all"), (["", ""], "")])
def test_one_cell_of_several_seeds(cells, expected):
    assert over_seeds.together(cells) == expected


def test_studies_over_seeds(tmp_path, monkeypatch, capsys):
    """Two models of one study: what is printed is the mean of what the study says of each; a row that one of them lacks is left out."""
    sentences = tmp_path / "s.txt"
    sentences.write_text("a new store opened beside the old mall\nthe captain said nothing\n")
    for seed, model in ((1, "demo"), (2, "baby")):
        (tmp_path / f"all-2-{seed}").mkdir()
        (tmp_path / f"all-2-{seed}" / "model").symlink_to(ROOT / "models" / model)
    words = ["--file", str(sentences), "--mlm-decoder", "plain"]
    monkeypatch.setattr(over_seeds, "COMMANDS", {"components": ["relative", *words]})
    asked = argparse.Namespace(results=str(tmp_path / "o.json"), measure=str(tmp_path), seeds=[1], seconds=1e9, steps=2, threads=1)
    over_seeds.measure(asked)
    one = json.loads(Path(asked.results).read_text())
    asked.seeds = [1, 2]
    over_seeds.measure(asked)
    found = json.loads(Path(asked.results).read_text())
    assert found["components"]["1"] == one["components"]["1"]
    over_seeds.show(found, "components")
    printed = capsys.readouterr().out
    by_hand = []
    for model in ("demo", "baby"):
        done = subprocess.run([sys.executable, str(ROOT / "studies" / "components.py"), str(ROOT / "models" / model), *words, "--format", "csv", "-q"], capture_output=True, text=True, check=True)
        by_hand.append({tuple(line.split(",")[:4]): round(100 * float(line.split(",")[4]), 1) for line in done.stdout.splitlines()[1:]})
    shares = [one["head", "4", "all", "c2p"] for one in by_hand]
    assert f"| {statistics.mean(shares):.1f} % ({min(shares):.1f} to {max(shares):.1f}) |" in next(line for line in printed.splitlines() if line.startswith("| 4 | all |"))
    assert "| 5 | all |" not in printed and "| 4 | 0 |" not in printed
    asked.seeds = [3]
    with pytest.raises(SystemExit):
        over_seeds.measure(asked)
    assert "all-2-3/model: no trained model" in capsys.readouterr().err


def test_a_bag_of_words(tmp_path):
    """Texts whose label one word decides are all found, from texts whose other words say nothing; a folder without tasks is refused."""
    pytest.importorskip("sklearn")
    command = [sys.executable, str(ROOT / "studies" / "bag_of_words.py"), str(tmp_path)]
    refused = subprocess.run(command, capture_output=True, text=True)
    assert refused.returncode == 3 and "expected a folder mr, subj, trec" in refused.stderr
    (tmp_path / "mr").mkdir()
    for name, count in (("train.tsv", 40), ("held-out.tsv", 10)):
        lines = [f"{'positive' if k % 2 else 'negative'}\tword{k % 7} {'fine' if k % 2 else 'dull'} word{k % 5}\n" for k in range(count)]
        (tmp_path / "mr" / name).write_text("".join(lines))
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert "| model | mr |" in done.stdout and "| bag of words and pairs | 100.0 |" in done.stdout
    (tmp_path / "mr" / "held-out.tsv").write_text("".join(f"{'negative' if k % 2 else 'positive'}\tfine\n" for k in range(8)))
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert "| bag of words and pairs | 50.0 |" in done.stdout
