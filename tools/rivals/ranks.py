"""What one rank costs: the plain program and `mpirun -n 1 deberta-mpi`, in turns, at the same training and the same corpus.

    tools/peers.py ranks [--build build] [--pairs 5] [--steps 12]

Prints, of a training, the median time of a step without the first, and of a corpus the median time that `encode` tells; and, of both, how
much longer the whole command takes with its launcher. Keep the machine alone. SPDX-License-Identifier: MIT
"""
import json
import os
import re
import statistics
import tempfile
from pathlib import Path

from rivals.results import ratios
from rivals.turns import PROGRAM, ROOT, Runner, in_turns

ENVIRONMENT = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1", "OMPI_MCA_hwloc_base_binding_policy": "none"}
LINES = "".join(f"the old sailor number {n} sold {n * 7 % 13} silver spoons to a stranger\n" for n in range(1200))
DEMO = ROOT / "models" / "demo"
RUNNER = Runner()


def both_tasks(program, folder, steps):
    """Returns {task: (seconds of the computation, seconds of the whole command)}."""

    def command(*words):
        return RUNNER.run(*program, *words, "--threads", 1, environment={**os.environ, **ENVIRONMENT}, folder=folder)

    with tempfile.TemporaryDirectory(dir=folder) as out:
        trained = command("train", "mlm", DEMO, "--file", "texts.txt", "--sequence-tokens", 64, "--batch-sequences", 16, "--steps", steps,
                          "--out", f"{out}/run")
        seconds = [json.loads(line).get("seconds") for line in Path(out, "run", "log.jsonl").read_text().splitlines()]
        encoded = command("encode", DEMO, "--file", "texts.txt", "--out", f"{out}/states.npy")
    return {"train": (statistics.median([value for value in seconds if value][1:]), trained.seconds),
            "encode": (float(re.search(r"tokens in ([\d.]+) s", encoded.said)[1]), encoded.seconds)}  # fmt: skip


def options(parser):
    parser.add_argument("--build", type=Path, default=PROGRAM.parent)
    parser.add_argument("--pairs", type=int, default=5)
    parser.add_argument("--steps", type=int, default=12)


def run(arguments):
    program = arguments.build.resolve() / "deberta"
    programs = {"plain": [program], "ranked": ["mpirun", "-n", "1", f"{program}-mpi"]}
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "texts.txt").write_text(LINES)
        rounds = in_turns(arguments.pairs, {name: lambda words=words: both_tasks(words, folder, arguments.steps) for name, words in programs.items()})
    for task, what in (("train", "a step"), ("encode", "the corpus")):
        inner, whole = ([{name: found[name][task][which] for name in programs} for found in rounds] for which in (0, 1))
        middle = {name: [statistics.median(found[name] for found in times) for times in (inner, whole)] for name in programs}
        percents = [100 * (ratio - 1) for ratio in ratios(inner, "ranked", "plain")]
        print(f"{task}: {middle['plain'][0]:.4f} s and {middle['ranked'][0]:.4f} s ({what}): {statistics.median(percents):+.1f} % "
              f"(pairs {min(percents):+.1f} to {max(percents):+.1f} %); the launcher adds {middle['ranked'][1] - middle['plain'][1]:.2f} s to the command")
    return 0
