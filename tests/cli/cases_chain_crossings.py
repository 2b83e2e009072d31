"""Chains crossed with what else a training can be: heads, kinds of labels, holes in masks, batches of one row, ways to save memory, data in
several files, runs by ranks. States are those that the files of checkpoints say, an audit on another instruction set finds them equal, and a
forged one not.

DEBERTA_TEST_SEED repeats what was drawn, DEBERTA_CHAIN_CASES lengthens it. SPDX-License-Identifier: MIT
"""
import os
import random
import shutil

from cases_chain import SEED, audit, check_chain, linked
from cases_mpi import needs_mpi, ranked, same, words_of
from cases_mpi_crossings import draw_run
from helpers import contains, equal

CASES = int(os.environ.get("DEBERTA_CHAIN_CASES", "6"))
KINDS = ("mlm", "rtd", "sequence", "choice")


def in_several_files(bench, dice, words):
    """The same data, cut at drawn lines: an option for each file."""
    option = next((name for name in ("--file", "--examples") if name in words), None)
    if not option:
        return words
    at = words.index(option)
    lines = bench.read(words[at + 1]).splitlines(True)
    cuts = sorted(dice.sample(range(1, len(lines)), dice.choice([1, 2])))
    pieces = []
    for k, (begin, end) in enumerate(zip([0, *cuts], [*cuts, len(lines)])):
        name = f"piece-{k}{os.path.splitext(words[at + 1])[1]}"
        bench.write(name, "".join(lines[begin:end]))
        pieces += [option, name]
    return [*words[:at], *pieces, *words[at + 2:]]


def draw_chained(bench, dice, number):
    """A run of texts or of batches, with a drawn chain; and the parts that it trains."""
    if number % 2:
        kind = dice.choice(KINDS)
        words, is_pair = in_several_files(bench, dice, words_of(bench, dice, kind)), kind == "rtd"
    else:
        words, files = draw_run(bench, dice, number // 2)
        is_pair = len(files) > 1
    words += ["--chain", "--chain-every", dice.choice(["1", "2", "3"]), "--keep-every", dice.choice(["1", "2", "4"])]
    return words, ("generator", "discriminator") if is_pair else ("",)


def chained_by(bench, dice, words, others=()):
    """One run, whole or in two halves; each half by the plain program, or by ranks where others can be."""
    ranks = dice.choice([0, *others]), dice.choice([0, *others])
    more = [["--stop-at", str(dice.randrange(1, 4))], ["--resume"]] if dice.random() < 0.5 else [[]]
    print(f"  as {'the plain program' if not any(ranks) else f'ranks {ranks}'}, {more[0]}")
    for count, part in zip(ranks, more):
        if count:
            ranked(bench, (count, [*words, *part, "--out", "run"]))
        else:
            bench.fine(*words, *part, "--out", "run")


def crossed(bench, label, others=()):
    for number in range(CASES):
        dice = random.Random(f"{SEED} {label} {number}")
        for name in set(os.listdir(bench.folder)):
            shutil.rmtree(bench.path(name)) if os.path.isdir(bench.path(name)) else os.remove(bench.path(name))
        words, parts = draw_chained(bench, dice, number)
        print(f"seed {SEED}: case {number}: {' '.join(words)}")
        chained_by(bench, dice, words, others)
        records = check_chain(bench, "run", parts)
        contains(audit(bench, "run", "--isa", dice.choice(["scalar", "auto"]), "--threads", dice.choice(["1", "2", "3"])).out, "every record is equal")
        bench.fine(*words, "--out", "plain")
        same(bench, "run", "plain", [f"{part}/model.safetensors" for part in parts])
        states = [{record["step"]: record["state"] for record in found if "state" in record} for found in (records[1:], check_chain(bench, "plain", parts)[1:])]
        equal({step: states[0][step] for step in states[1] if step in states[0]}, states[1])
        place = dice.choice([k for k, record in enumerate(records) if record.get("step") == 4 and "state" in record])
        records[place]["state"] = records[place]["state"][::-1]
        bench.write("run/chain.jsonl", linked(records))
        contains(audit(bench, "run", code=1).out, "differs: ")


def test_drawn(bench):
    crossed(bench, "chains")


def test_drawn_of_ranks(bench):
    needs_mpi(bench)
    crossed(bench, "chains of ranks", (2, 3, 4))
