"""The folder of models, inputs and graphs, each made by a process of its own when it is first asked for. A run whose time is over when one
is made stops there.

SPDX-License-Identifier: MIT
"""
import json
import math
import shutil
import sys
import time
from dataclasses import dataclass
from pathlib import Path

from rivals.engines import OWN
from rivals.graphs import GRAPHS, kinds_of, traced_length
from rivals.turns import PROGRAM, Runner, TimeOver, worker_command


@dataclass(frozen=True)
class Work:
    folder: Path
    runner: Runner = Runner()
    program: Path = PROGRAM  # packs models that are to be mapped
    end: float = math.inf  # of the time, on time.monotonic's clock

    def _made(self, path, *command):
        if not path.exists():
            print(f"making {path}", file=sys.stderr, flush=True)
            path.parent.mkdir(parents=True, exist_ok=True)
            self.runner.run(*worker_command(*command))
            if time.monotonic() > self.end:
                raise TimeOver
        return path

    def model(self, name):
        path = self.folder / "models" / name
        return self._made(path, "model", name, path)

    def own_model(self, name, engine):
        return self.packed_model(name) if OWN[engine].packed else self.model(name)

    def packed_model(self, name):
        """Returns the same weights with `deberta.packed` next to them, made by this program."""
        path = self.folder / "packed" / name
        if not path.exists():
            partial = path.with_suffix(".part")
            shutil.rmtree(partial, ignore_errors=True)
            shutil.copytree(self.model(name), partial)
            partial.rename(path)
        about = json.loads(self.runner.run(self.program, "info", path, "--json", "--quiet").output)
        if about["model"]["packed"] != "mapped":
            self.runner.run(self.program, "pack", path)
        return path

    def input(self, name, lengths):
        called = f"documents-{sum(lengths)}"
        if len(set(lengths)) == 1:
            called = str(lengths[0]) if len(lengths) == 1 else f"{len(lengths)}x{lengths[0]}"
        path = self.folder / "inputs" / name / f"{called}-float64.safetensors"
        return self._made(path, "input", self.model(name), path, "--lengths", ",".join(map(str, lengths)))

    def graphs(self, name, kind, n, one_length, answer="last_hidden_state"):
        """Returns the files that an engine reads whose graph is of this kind, for texts of n tokens or of at most so many."""
        return [self.graph(name, one, n) for one in kinds_of(kind, one_length, answer)]

    def graph(self, name, kind, n):
        traced = traced_length(kind, name, n)
        path = self.folder / "graphs" / name / f"{kind}-{traced}.{GRAPHS[kind][0]}"
        return self._made(path, "graph", self.model(name), path, "--kind", kind, "--traced", traced)
