"""How tests run the studies: scripts of this tree by the interpreter that tests the package. SPDX-License-Identifier: MIT"""
import json
import subprocess
import sys
from pathlib import Path

from deberta_c import _program

ROOT = Path(__file__).resolve().parents[2]
sys.path.append(str(ROOT / "tests" / "cli"))  # helpers.py


class Done:
    def __init__(self, out, err):
        self.out, self.err = out, err


class Bench:
    """A folder to work in; "study NAME ..." is studies/NAME.py, everything else the program."""

    def __init__(self, folder, shared):
        self.folder, self._shared = folder, shared

    def run(self, code, *arguments):
        arguments = [str(one) if isinstance(one, int) else one for one in arguments]
        words = [_program.PROGRAM, *arguments]
        if arguments[0] == "study":
            words = [sys.executable, ROOT / "studies" / f"{arguments[1]}.py", *arguments[2:]]
        done = subprocess.run(words, cwd=self.folder, capture_output=True)
        out, err = (stream.decode("utf-8", "surrogateescape") for stream in (done.stdout, done.stderr))
        assert done.returncode == code, f"{words}: exit {done.returncode}, expected {code}\n{out[-2000:]}{err[-2000:]}"
        assert code or not err, err
        assert not code or (not out and "Traceback" not in err), err
        return Done(out, err)

    def fine(self, *arguments):
        return self.run(0, *arguments)

    def json(self, *arguments):
        return json.loads(self.fine(*arguments, "--json").out)

    def path(self, name):
        return self.folder / name

    def shared(self, name, make):
        """A file that several tests look at, made once."""
        path = self._shared / name
        if not path.exists():
            make(path)
        return path


def rows_of(table):
    return [dict(zip(table["columns"], row)) for row in table["rows"]]


def run(bench, *arguments, code=0):
    """What is printed, or if it fails as expected what it says."""
    done = bench.run(code, *arguments)
    return done.err if code else done.out
