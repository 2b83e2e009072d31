#!/usr/bin/env python3
"""What each part of DeBERTa is worth on recognised scores: six kinds of one shape, trained alike on ten million words, several seeds each,
beside their control, drawn weights that were never trained.

Puts to the test: c2p and p2c are needed; EMD and replaced tokens make a better encoder.

    python3 studies/variants.py RESULTS --train CORPUS SETS STATE    train and measure what RESULTS lacks, a row a model
    python3 studies/variants.py RESULTS                              the means, and each kind's difference from the first, seed by seed

CORPUS is what tools/making/book_texts.py makes, SETS what recognised.py makes. STATE holds trainings that are not finished. With
--seconds S nothing begins after S seconds, the exit status is 75, and the same command goes on; a row that stands in RESULTS is not
trained again, on any machine, since the bits are the same on all. SPDX-License-Identifier: MIT
"""
import argparse
import json
import shutil
import sys
import time
from pathlib import Path
from typing import Any, Dict, List, NamedTuple, Optional, Sequence

import study
import scores
import trained

ROOT = Path(__file__).resolve().parent.parent
PIECES, SHAPE = ROOT / "models" / "baby", ROOT / "models" / "demo"
TOKENS, STEP_TOKENS, RATE, PIECE = 128, 2048, 1.2e-3, 200
GENERATOR_LAYERS = 3  # of five: half the depth, as published


class Kind(NamedTuple):
    """What differs from the first kind."""

    config: Dict[str, Any]
    head: str = "mlm"
    generator: bool = False
    rate: float = RATE
    short: Sequence[int] = ()  # a twentieth of the steps each, at these lengths, before the rest
    drawn: bool = False  # weights as they are drawn: what the tasks give without a pre-training


# Attention without relative terms stays at the frequencies of pieces unless it begins with short sequences and larger weights: models/demo/recipe.sh.
ABSOLUTE = {"position_biased_input": True, "relative_attention": False, "pos_att_type": [], "initializer_range": 0.07}
KINDS = {"all": Kind({}), "no c2p": Kind({"pos_att_type": "p2c"}), "no p2c": Kind({"pos_att_type": "c2p"}),
         "absolute": Kind(ABSOLUTE, rate=8e-4, short=(16, 32)), "emd": Kind({}, head="mlm_emd"), "rtd": Kind({}, generator=True),
         "drawn": Kind({}, drawn=True)}
SCORES = ("masked", "blimp", "mr", "subj", "trec")
PAIRS = 1000  # of each of BLiMP's paradigms


def configuration(folder: Path, changes: Dict[str, Any]) -> Path:
    """The shape of models/demo with the pieces of models/baby."""
    folder.mkdir(parents=True, exist_ok=True)
    for name in ("spm.model", "added_tokens.json", "tokenizer_config.json"):
        shutil.copy(PIECES / name, folder)
    config = json.loads((SHAPE / "config.json").read_text())
    config = {name: value for name, value in config.items() if name not in ("id2label", "label2id", "dtype", "problem_type")}
    config["vocab_size"] = json.loads((PIECES / "config.json").read_text())["vocab_size"]
    (folder / "config.json").write_text(json.dumps({**config, **changes}))
    return folder


class Training:
    """One model, in pieces: each call to `run` goes on where the last one was stopped."""

    def __init__(self, place: Path, given: argparse.Namespace, end: float):
        self.place, self.given, self.end = place, given, end

    def run(self, folder: str, source: Sequence[str], objective: str, steps: int, *options: str) -> Path:
        """A run of `steps`, PIECE steps at a time. Nothing begins after the end."""
        out = self.place / folder
        model = out / "discriminator" if objective == "rtd" else out
        while not (model / "model.safetensors").exists():
            if time.monotonic() > self.end:
                sys.exit(scores.MORE_TO_DO)
            log = out / "log.jsonl"
            done = len(log.read_text().splitlines()) if log.exists() else 0
            stop = [] if done + PIECE >= steps else ["--stop-at", str(done // PIECE * PIECE + PIECE)]
            trained.program("train", objective, *source, "--file", str(Path(self.given.corpus) / "train.txt"), "--steps", str(steps), "--beta2", "0.98",
                            "--weight-decay", "0.05", "--mask-probability", "0.25", "--dropout", "0", "--threads", str(self.given.threads), "--quiet",
                            *options, *stop, *(["--resume"] if log.exists() else []), "--out", str(out))
            if not stop and not (model / "model.safetensors").exists():
                study.refuse(study.BAD_INPUT, f"{out}: the training ended without {model / 'model.safetensors'}")
        return model

    def model(self, kind: Kind, seed: int) -> Path:
        """The trained model. `--steps` is split between lengths, where the kind has several."""
        steps, warm_up = self.given.steps, str(self.given.steps // 40)
        config = configuration(self.place / "config", kind.config)
        if kind.drawn:
            return self.drawn("model", config, seed)
        if kind.generator:
            small = configuration(self.place / "config-generator", {"num_hidden_layers": GENERATOR_LAYERS})
            begun = [self.drawn(f"begun-{one.name}", one, seed) for one in (config, small)]
            return self.run("model", [str(begun[0]), "--generator", str(begun[1])], "rtd", steps, "--new-head", *self.lengths(TOKENS), "--warmup", warm_up,
                            "--learning-rate", str(kind.rate), "--seed", str(seed))
        source, left = ["--config", str(config)], steps
        for length in kind.short:
            part = self.run(f"at-{length}", source, "mlm", steps // 20, *self.lengths(length), "--warmup", warm_up, "--learning-rate", str(kind.rate),
                            "--schedule", "constant", "--seed", str(seed))
            source, left, warm_up = [str(part)], left - steps // 20, str(steps // 200)
        return self.run("model", source, "mlm", left, *self.lengths(TOKENS), "--warmup", warm_up, "--learning-rate", str(kind.rate), "--head", kind.head,
                        "--seed", str(seed))

    def drawn(self, folder: str, config: Path, seed: int) -> Path:
        """A step with rate 0 leaves the weights as they are drawn."""
        return self.run(folder, ["--config", str(config)], "mlm", 1, "--learning-rate", "0", "--seed", str(seed))

    @staticmethod
    def lengths(tokens: int) -> List[str]:
        return ["--sequence-tokens", str(tokens), "--batch-tokens", str(STEP_TOKENS)]


def measured(model: Path, kind: Kind, seed: int, state: Path, given: argparse.Namespace, end: float) -> Dict[str, Any]:
    """Every score of a model, in per cent. A discriminator guesses no pieces, so that it has no masked score."""
    sets = Path(given.sets)
    found: Dict[str, Any] = {"masked": ""}
    if not kind.generator:
        one = scores.kept(state / "masked", lambda: scores.masked(model, str(Path(given.corpus) / "sample.txt"), given.threads, kind.head), end)
        found["masked"] = 100 * one["right"] / one["of"]
    # Every model of this shape has a table of positions, which would be taken for a decoder's.
    how = ["--score", "rtd"] if kind.generator else ["--mlm-decoder", "emd" if kind.head == "mlm_emd" else "plain"]
    one = scores.kept(state / f"blimp-{given.blimp_every}",
                      lambda: scores.blimp(model, sets / "blimp" / "pairs.jsonl", given.blimp_every, given.threads, *how), end)
    found["blimp"] = 100 * one["accuracy"]
    by_name = sorted(one["paradigms"], key=lambda paradigm: paradigm["name"])
    found["blimp right"] = " ".join(str(paradigm["right"]) for paradigm in by_name)
    for task in SCORES[2:]:
        one = scores.kept(state / task, lambda: scores.finetuned(model, sets / task, scores.TASKS[task], seed, given.threads), end)
        found[task] = 100 * one["accuracy"]
    return found


def read(path: str) -> List[Dict[str, Any]]:
    """The rows of a file, also of one without counts by paradigm."""
    return [{**row, "blimp right": row.get("blimp right", "")} for row in trained.read_rows(path)]


def train(given: argparse.Namespace) -> None:
    end = time.monotonic() + given.seconds
    results = Path(given.results)
    rows = read(str(results)) if results.exists() else []
    for seed in given.seeds:
        for name, kind in KINDS.items():
            steps = 0 if kind.drawn else given.steps
            if any((row["kind"], row["seed"], row["steps"]) == (name, seed, steps) for row in rows):
                continue
            place = Path(given.state) / f"{name.replace(' ', '-')}-{steps}-{seed}"
            begun = time.monotonic()
            model = Training(place, given, end).model(kind, seed)
            found = measured(model, kind, seed, place / "scores", given, end)
            rows.append({"kind": name, "seed": seed, "steps": steps, **found, "blimp every": given.blimp_every,
                         "sha256": scores.digest(model / "model.safetensors"), "commit": trained.commit()})
            study.write_whole(str(results), trained.csv_of(rows).encode())
            print(f"{name}, seed {seed}: {time.monotonic() - begun:.0f} s since this command began it", file=sys.stderr)


def value_of(rows: List[Dict[str, Any]], kind: str, score: str) -> Dict[int, float]:
    """By seed."""
    return {row["seed"]: row[score] for row in rows if row["kind"] == kind and row[score] != ""}


def differences(rows: List[Dict[str, Any]], kind: str, score: str) -> Optional[study.Estimate]:
    """From the first kind, seed by seed, with the t-interval over seeds."""
    first, own = (value_of(rows, one, score) for one in (next(iter(KINDS)), kind))
    values = [own[seed] - first[seed] for seed in sorted(set(first) & set(own))]
    return trained.over_few_seeds(values) if len(values) > 1 else None


def over_paradigms(rows: List[Dict[str, Any]], kind: str) -> Optional[study.Estimate]:
    """BLiMP's difference from the first kind, mean over seeds, with the bootstrap interval over paradigms; None where a seed that both have
    lacks its counts by paradigm."""
    def shares(name: str) -> Dict[int, List[float]]:
        return {row["seed"]: [100 * int(right) * row["blimp every"] / PAIRS for right in str(row["blimp right"]).split()] for row in rows if row["kind"] == name}
    first, own = shares(next(iter(KINDS))), shares(kind)
    apart = [[one - other for one, other in zip(own[seed], first[seed])] for seed in set(first) & set(own)]
    return study.ratio([sum(of_seeds) / len(apart) for of_seeds in zip(*apart)], seed=1) if all(apart) else None


def tables(rows: List[Dict[str, Any]]) -> None:
    print(f"| kind | seeds | {' | '.join(SCORES)} |\n|---|--:|{'--:|' * len(SCORES)}")
    for kind in KINDS:
        seeds = len(value_of(rows, kind, "blimp"))
        found = [value_of(rows, kind, score) for score in SCORES]
        if seeds:
            print(f"| {kind} | {seeds} | {' | '.join(trained.seed_range(list(one.values())).show('%.1f (%.1f to %.1f)') if one else '' for one in found)} |")
    print(f"\nDifference from {next(iter(KINDS))}, seed by seed: t-interval over seeds, and BLiMP's over paradigms")
    print(f"\n| less {next(iter(KINDS))} | {' | '.join(SCORES)} | blimp, paradigms |\n|---|{'--:|' * (len(SCORES) + 1)}")
    for kind in list(KINDS)[1:]:
        found = [differences(rows, kind, score) for score in SCORES]
        if any(found):
            cells = [one.show("%+.1f (%+.1f to %+.1f)") if one else "" for one in (*found, over_paradigms(rows, kind))]
            print(f"| {kind} | {' | '.join(cells)} |")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("results", metavar="RESULTS", help="CSV, a row a model")
    parser.add_argument("--train", nargs=3, metavar=("CORPUS", "SETS", "STATE"), help="train and measure what RESULTS lacks")
    parser.add_argument("--steps", type=int, default=2000, help=f"of each model, of at most {STEP_TOKENS} tokens (default 2000)")
    parser.add_argument("--seeds", type=lambda text: [int(one) for one in text.split(",")], default=[1, 2, 3])
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=float("inf"))
    parser.add_argument("--blimp-every", type=int, default=10)
    given = parser.parse_args()
    if given.train:
        given.corpus, given.sets, given.state = given.train
        train(given)
    elif not Path(given.results).exists():
        study.refuse(study.BAD_INPUT, f"{given.results}: no such file; --train makes it")
    tables(read(given.results))


if __name__ == "__main__":
    study.run(main)
