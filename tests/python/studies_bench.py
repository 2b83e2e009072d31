"""How tests run the studies: scripts of this tree by the interpreter that tests the package. SPDX-License-Identifier: MIT"""
import json
import os
import runpy
import subprocess
import sys
import tempfile
import traceback
from pathlib import Path

from deberta_c import _program

ROOT = Path(__file__).resolve().parents[2]
sys.path.append(str(ROOT / "tests" / "cli"))  # helpers.py


class Done:
    def __init__(self, out, err):
        self.out, self.err = out, err


def in_child(words, out, err):
    """The script words[0] in this process, which is a fork: what tests import takes longer than a refusal."""
    for stream, file in ((1, out), (2, err)):
        os.dup2(file.fileno(), stream)
    sys.stdout, sys.stderr = (os.fdopen(stream, "w", encoding="utf-8", errors="surrogateescape", closefd=False) for stream in (1, 2))
    for name, module in list(sys.modules.items()):
        if str(getattr(module, "__file__", None)).startswith(str(ROOT / "studies")):
            del sys.modules[name]  # it begins as a process does
    sys.path[0], sys.argv, code = str(ROOT / "studies"), [str(word) for word in words], 0
    try:
        runpy.run_path(sys.argv[0], run_name="__main__")
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else int(end.code is not None)
        if isinstance(end.code, str):
            print(end.code, file=sys.stderr)
    except BaseException:  # whatever it raises is its failure
        traceback.print_exc()
        code = 1
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


def run_forked(words, folder):
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        process = os.fork()
        if process == 0:
            try:
                os.chdir(folder)
                in_child(words, out, err)
            finally:
                os._exit(99)
        _, status = os.waitpid(process, 0)
        texts = []
        for file in (out, err):
            file.seek(0)
            texts.append(file.read())
        return subprocess.CompletedProcess(words, os.waitstatus_to_exitcode(status), *texts)


class Bench:
    """A folder to work in; "study NAME ..." is studies/NAME.py, everything else the program."""

    def __init__(self, folder, shared):
        self.folder, self._shared = folder, shared

    def run(self, code, *arguments):
        arguments = [str(one) if isinstance(one, int) else one for one in arguments]
        words = [_program.PROGRAM, *arguments]
        if arguments[0] == "study":
            words = [sys.executable, ROOT / "studies" / f"{arguments[1]}.py", *arguments[2:]]
        quick = arguments[0] == "study" and (code or "--help" in arguments)  # nothing is computed
        done = run_forked(words[1:], self.folder) if quick else subprocess.run(words, cwd=self.folder, capture_output=True)
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
