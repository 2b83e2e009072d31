#!/usr/bin/env python3
"""Tests of the program from outside: what it prints, how it ends, what it writes and what it leaves behind.

    run_cli_tests.py --program build/deberta [--only WORD] [--update] [--show]

--update writes the golden texts in expected/ anew; --show prints every message that wrong use brings, to be read aloud.
Every test has a folder of its own and must leave nothing in it but what it asked for. The last line is
`N passed, N failed, N skipped`. SPDX-License-Identifier: MIT
"""
import argparse
import concurrent.futures
import os
import shutil
import subprocess
import sys
import tempfile
import time
import traceback
from unittest import SkipTest

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
sys.path.insert(0, HERE)
sys.dont_write_bytecode = True


class Result:
    def __init__(self, command, code, out, err):
        self.command, self.code, self.out, self.err = command, code, out, err

    def describe(self):
        return f"$ {self.command}\n[exit {self.code}]\nstdout: {self.out[-1500:]!r}\nstderr: {self.err[-1500:]!r}"


class Bench:
    """What a test works with: the program, a folder of its own, and the places of the test data."""

    def __init__(self, settings, folder):
        self.program, self.golden, self.folder = settings.program, settings.golden, folder
        self.update, self.show = settings.update, settings.show
        self.root = ROOT

    def command(self, arguments):
        return [self.program] + [str(a) for a in arguments]

    def environment(self, extra):
        environment = {k: v for k, v in os.environ.items() if k != "DEBERTA_ISA"}
        return {**environment, "LC_ALL": "C.UTF-8", **(extra or {})}

    def start(self, *arguments, env=None, **kwargs):
        return subprocess.Popen(self.command(arguments), cwd=self.folder, env=self.environment(env), **kwargs)

    def run(self, *arguments, stdin=b"", env=None, timeout=120, stdout=subprocess.PIPE):
        done = subprocess.run(self.command(arguments), cwd=self.folder, input=stdin, stdout=stdout, stderr=subprocess.PIPE,
                              env=self.environment(env), timeout=timeout)
        shown = " ".join(["deberta"] + [repr(str(a)) if not str(a) or " " in str(a) else str(a) for a in arguments])
        result = Result(shown, done.returncode, (done.stdout or b"").decode(errors="replace"), done.stderr.decode(errors="replace"))
        return result

    def fine(self, *arguments, **kwargs):
        result = self.run(*arguments, **kwargs)
        assert result.code == 0, result.describe()
        return result

    def path(self, name):
        return os.path.join(self.folder, name)

    def files(self):
        return sorted(os.listdir(self.folder))

    def expect_text(self, name, text):
        """Compares with the golden text of that name."""
        path = os.path.join(HERE, "expected", name + ".txt")
        if self.update:
            with open(path, "w", encoding="utf-8") as file:
                file.write(text)
            return
        assert os.path.exists(path), f"{path} is missing; run_cli_tests.py --update makes it"
        with open(path, encoding="utf-8") as file:
            expected = file.read()
        assert text == expected, f"expected/{name}.txt differs\n--- expected\n{expected}\n--- found\n{text}"


def run_one(settings, name, test):
    folder = tempfile.mkdtemp(prefix="deberta-cli-")
    try:
        test(Bench(settings, folder))
        return name, "passed", ""
    except SkipTest as reason:
        return name, "skipped", str(reason)
    except AssertionError as failure:
        where = traceback.extract_tb(failure.__traceback__)[-1]
        return name, "failed", f"{os.path.basename(where.filename)}:{where.lineno}: {failure or where.line}"
    except Exception:
        return name, "failed", traceback.format_exc()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--program", required=True)
    parser.add_argument("--golden", default=os.path.join(ROOT, "tests", "golden"))
    parser.add_argument("--only", default="")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--update", action="store_true")
    parser.add_argument("--show", action="store_true")
    settings = parser.parse_args()
    settings.program, settings.golden = os.path.abspath(settings.program), os.path.abspath(settings.golden)

    import cases_bench_plot
    import cases_documents
    import cases_examples
    import cases_figure_kinds
    import cases_info
    import cases_pack
    import cases_misuse
    import cases_position_figures
    import cases_results
    import cases_signals
    tests = {}
    for module in (cases_misuse, cases_info, cases_pack, cases_results, cases_bench_plot, cases_figure_kinds, cases_position_figures, cases_documents, cases_examples, cases_signals):
        for name, test in module.tests(settings):
            assert name not in tests, f"two tests are called '{name}'"
            if settings.only in name:
                tests[name] = test

    begin, counts = time.time(), {"passed": 0, "failed": 0, "skipped": 0}
    with concurrent.futures.ThreadPoolExecutor(1 if settings.show else settings.jobs) as pool:
        for done in concurrent.futures.as_completed([pool.submit(run_one, settings, n, t) for n, t in tests.items()]):
            name, outcome, text = done.result()
            counts[outcome] += 1
            if outcome != "passed":
                print(f"{outcome.upper()} {name}: {text}", flush=True)
    print(f"{time.time() - begin:.0f} s")
    print("{passed} passed, {failed} failed, {skipped} skipped".format(**counts))
    return 1 if counts["failed"] else 0


if __name__ == "__main__":
    sys.exit(main())
