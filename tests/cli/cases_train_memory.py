"""What of a step is in memory at once: `--micro-tokens` and `--recompute` change no bit, and what the program says it needs.

SPDX-License-Identifier: MIT
"""
import os
import re
import subprocess

from cases_train import TRAIN, case, digest
from helpers import DEMO, check, contains, equal, needs_speed

# One shard at a time; groups of one and two; a layer's forward pass twice; all together on other threads.
WAYS = (("--micro-tokens", "1"), ("--micro-tokens", "40"), ("--recompute",), ("--micro-tokens", "100", "--recompute", "--threads", "1"))
TASKS = (("03-v3-mlm-emd", ["train", "mlm"]), ("07-v1-sequence-types", ["finetune", "sequence"]), ("08-v2-conv-token", ["finetune", "token"]),
         ("10-v3-qa", ["finetune", "qa"]), ("11-v3-rtd", ["train", "rtd"]), ("13-v3-sift-sequence", ["finetune", "sequence", "--sift", "5"]),
         ("15-v2-plain-absolute", ["train", "mlm"]), ("18-v3-choice", ["finetune", "choice"]),
         ("18-v3-choice", ["finetune", "choice", "--sift", "2"]), ("08-v2-conv-token", ["finetune", "token", "--sift", "2"]))


def test_gradients_of_groups(bench):
    """Every task: the file of gradients is the same, byte for byte, with dropout too."""
    for name, words in TASKS:
        for dropout in ("0", "0.2"):
            folder = case(bench, name)
            run = [*words[:2], folder, *words[2:], "--dropout", dropout, "--one-batch", os.path.join(folder, "batch.safetensors"), "--json", "--gradients"]
            said = bench.fine(*run, "whole").out
            for way in WAYS:
                equal(bench.fine(*run, "part", *way).out, said, f"{name} {way}")
                equal(digest(bench, "part"), digest(bench, "whole"), f"{name}, dropout {dropout}, {way}")


def test_gradients_of_a_pair(bench):
    """What a generator draws does not depend on the group either."""
    folder = case(bench, "12-v3-rtd-gdes")
    text = bench.write("corpus.txt", open(os.path.join(bench.root, "docs", "studies", "data", "sentences.txt"), encoding="utf-8").read())
    run = ["train", "rtd", os.path.join(folder, "discriminator"), "--generator", os.path.join(folder, "generator"), *TRAIN,
           "--one-batch", os.path.join(folder, "batch.safetensors"), "--gradients"]
    bench.fine(*run, "whole")
    drawn = ["train", "rtd", DEMO, "--generator", DEMO, "--new-head", *TRAIN, "--file", text, "--steps", "2", "--sequence-tokens", "32", "--out"]
    bench.fine(*drawn, "drawn")
    for number, way in enumerate(WAYS):
        bench.fine(*run, "part", *way)
        equal(digest(bench, "part"), digest(bench, "whole"), way)
        bench.fine(*drawn, f"drawn-{number}", *way)
        for part in ("generator", "discriminator"):
            equal(digest(bench, f"drawn-{number}/{part}/model.safetensors"), digest(bench, f"drawn/{part}/model.safetensors"), way)


def test_runs_of_groups(bench):
    """Twenty steps of 8 shards, 1, 2, 4 or all of them at a time: the same weights and moments; so do runs that change it on the way."""
    needs_speed(bench)
    bench.write("corpus.txt", "".join(f"The old sailor number {n} sold {n * 7 % 13} silver spoons to a stranger.\n" for n in range(60)))
    words = ["train", "mlm", DEMO, "--file", "corpus.txt", "--sequences", "lines", "--sequence-tokens", "16", "--batch-sequences", "8", "--virtual-shards", "8",
             "--steps", "20", "--learning-rate", "0.001", "--dropout", "0.1", "--freeze", "layers:1"]
    ways = {"whole": (), "one": ("--micro-tokens", "16"), "two": ("--micro-tokens", "32", "--recompute"), "four": ("--micro-tokens", "64", "--threads", "1")}
    for out, way in ways.items():
        bench.fine(*words, *way, "--out", out)
    bench.fine(*words, "--micro-tokens", "16", "--stop-at", "8", "--out", "changed")
    bench.fine(*words, "--recompute", "--resume", "--out", "changed")
    for out in (*ways, "changed"):
        for file in ("model.safetensors", "training.safetensors"):
            equal(digest(bench, f"{out}/{file}"), digest(bench, f"whole/{file}"), f"{out}/{file}")


def test_sift_of_groups(bench):
    """Clean rows wait for the moved ones, or go forward once more: four steps of other sizes, the same weights and moments."""
    needs_speed(bench)
    lines = [f"The old sailor number {n} sold {'very ' * (n % 5)}old silver spoons." for n in range(30)]
    files = {"sequence": "".join(f"{'ab'[n % 2]}\t{line}\n" for n, line in enumerate(lines)),
             "token": "\n".join("".join(f"{word}\t{'OB'[len(word) % 2]}\n" for word in line.split()) for line in lines),
             "choice": "".join(f"{n % 2}\t{line}\tHe sold {n}.\tShe did.\n" for n, line in enumerate(lines)),
             "regression": "".join(f"{n % 5 / 2}\t{line}\n" for n, line in enumerate(lines))}
    ways = {"whole": (), "one": ("--micro-tokens", "1"), "some": ("--micro-tokens", "90", "--recompute"), "inputs": ("--recompute", "--threads", "1"),
            "threads": ("--threads", "5")}
    for task, text in files.items():
        words = ["finetune", "sequence" if task == "regression" else task, DEMO, "--examples", bench.write(f"{task}.tsv", text), "--sift", "3",
                 *(("--labels", "1") if task == "regression" else ("--new-head",)), "--freeze", "layers:3", "--batch-sequences", "4", "--dropout", "0.1",
                 "--learning-rate", "0.001", "--steps", "4"]
        for way, options in ways.items():
            out = f"{task}-{way}"
            bench.fine(*words, *options, "--out", out)
            for file in ("model.safetensors", "training.safetensors"):
                equal(digest(bench, f"{out}/{file}"), digest(bench, f"{task}-whole/{file}"), f"{out}/{file}")


def memory_of(bench, *words):
    """MiB that a run says it needs before its first step, and its peak as Linux saw it."""
    process = subprocess.Popen(bench.command(words), cwd=bench.folder, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    said = process.stderr.read().decode()
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    equal(process.returncode, 0, said)
    amount, unit = re.search(r"weights, moments and steps take ([0-9.]+) ([MG])iB", said).groups()
    return float(amount) * (1024 if unit == "G" else 1), usage.ru_maxrss / 1024


def test_less_memory(bench):
    """Steps of 64 x 128 tokens of models/demo, 10 h + 2 A floats a token and layer and more beside: each way takes less, said and measured."""
    needs_speed(bench)
    bench.write("corpus.txt", "The old sailor sold seven silver spoons to a stranger in the cold north. " * 1200)
    words = ["train", "mlm", DEMO, *TRAIN, "--file", "corpus.txt", "--sequence-tokens", "128", "--batch-sequences", "64", "--steps", "1", "--threads", "1"]
    said, peak = memory_of(bench, *words, "--out", "whole")
    kept_said, kept_peak = memory_of(bench, *words, "--recompute", "--out", "inputs")
    part_said, part_peak = memory_of(bench, *words, "--micro-tokens", "1024", "--out", "parts")
    check(kept_said < 0.8 * said and kept_peak < 0.85 * peak, (said, peak, kept_said, kept_peak))
    check(part_said < 0.5 * said and part_peak < 0.6 * peak, (said, peak, part_said, part_peak))
    for out in ("inputs", "parts"):
        equal(digest(bench, f"{out}/model.safetensors"), digest(bench, "whole/model.safetensors"), out)
    # what is kept to save time alone makes room for a limit first, layer by layer
    less = int(said) - 20
    less_said, less_peak = memory_of(bench, *words, "--memory-limit", f"{less}M", "--out", "less")
    check(less_said <= less and less_peak < peak - 15, (said, peak, less_said, less_peak))
    equal(digest(bench, "less/model.safetensors"), digest(bench, "whole/model.safetensors"))
    limit = f"{int(0.85 * said)}M"
    contains(bench.expect(4, *words, "--memory-limit", limit, "--out", "refused").err, "training", "but the limit is")
    bench.fine(*words, "--memory-limit", limit, "--micro-tokens", "1024", "--out", "within")


def test_bench_of_groups(bench):
    """`bench train` has both in its plan."""
    words = ["bench", "train", DEMO, "--batch", "16", "--tokens", "64", "--reps", "1", "--no-peak"]
    plans = []
    for way in ((), ("--recompute",), ("--micro-tokens", "64")):
        rows = {row["memory"]: row["bytes"] for row in bench.json(*words, *way)["memory"]}
        plans.append(rows)
        equal(rows["plan, together"], sum(bytes for name, bytes in rows.items() if name not in ("plan, together", "peak of the process")))
    records = "transposed weights, records, gradients of activations"
    sums = "sums of position tables and of groups of shards"
    check(plans[1][records] < plans[0][records] and plans[2][records] < plans[0][records], plans)
    check(plans[1][sums] == plans[0][sums] < plans[2][sums], plans)
