#!/usr/bin/env python3
"""deberta beside other programs, and beside itself: who is measured takes turns, and what is compared is checked.

    tools/peers.py OPTIONS            encode: next to PyTorch, ONNX Runtime and OpenVINO (below)
    tools/peers.py JOB OPTIONS        another job; --help behind it has its options

SPDX-License-Identifier: MIT
"""
import argparse
import importlib
import os
import sys

# Modules of rivals/ by job; each docstring is the job's help.
JOBS = {
    "encode": "encode",
    "requests": "requests",
    "texts": "texts",
    "training": "training",
    "losses": "trained_losses",
    "dropout": "dropout",
    "errors": "errors_of_layers",
    "python": "python_costs",
    "libraries": "libraries",
    "ranks": "ranks",
    "itself": "itself",
    "times": "tables_of_times",
    "pairs": "pairs",
    "layers": "layers",
    "growth": "growth",
    "cores": "cores",
}
INSIDE = {"worker": "worker"}  # jobs that other jobs start


def main():
    words = sys.argv[1:]
    job = words.pop(0) if words and words[0] in JOBS | INSIDE else "encode"
    module = importlib.import_module(f"rivals.{(JOBS | INSIDE)[job]}")
    described = module.__doc__ if job != "encode" else f"{__doc__.split('SPDX')[0]}jobs: {', '.join(JOBS)}\n\n{module.__doc__}"
    parser = argparse.ArgumentParser(prog=f"peers.py{f' {job}' * (job != 'encode')}", description=described,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)  # fmt: skip
    module.options(parser)
    failure = importlib.import_module("rivals.turns").Failure
    try:
        sys.exit(module.run(parser.parse_args(words)))
    except failure as reason:
        sys.exit(f"peers.py: {reason}")
    except BrokenPipeError:  # as of `| head`
        sys.stdout = open(os.devnull, "w", encoding="utf-8")  # which the interpreter flushes once more
        sys.exit(1)


if __name__ == "__main__":
    main()
