#!/usr/bin/env python3
"""Tests the tests: a drawn change of one token of the library, and whether a test notices; the stage `mutation` of tools/run_tests.py.

    tools/mutation.py                     300 mutants, each compiled in a copy of the tree and run against the tests
    tools/mutation.py --count N --seed S  others, or more of them; a later call with the same seed goes on where one stopped
    tools/mutation.py --seconds 100       begins no mutant after so long
    tools/mutation.py --limit 100         seconds of tests for one mutant
    tools/mutation.py --only PATH         mutants below this path, as core/text
    tools/mutation.py --report            builds and runs nothing: prints what is known, with the survivors

A mutant changes an operator, a comparison, a constant or a bound, or drops a statement, in a line of core/, simd/ or train/.
tools/coverage.py has to have run: it knows which tests run the line. They try in turn, the quickest first, each with a limit of time;
where no test runs the line, nobody notices. A mutant that does not compile, or that compiles to the same object, is drawn again.
Fails below LEAST percent noticed.

SPDX-License-Identifier: MIT
"""
import argparse
import hashlib
import json
import os
import random
import re
import shutil
import sys
import time

import coverage
from testing import builds, counting, processes
from testing.processes import ROOT

COPY = os.path.join("build-mutation", "tree")
LOG = os.path.join("build-mutation", "mutants.jsonl")
COUNT, SEED, LEAST = 300, 20240229, 85.0
SLOWER = 5  # times longer than without a mutant a test may take, and ten seconds
LIMIT = 300  # seconds of tests for a mutant; those that would take longer are left out
OPTIONS = ["-Dviz=disabled", "-Dmpi=disabled", "-Doptimization=1", "-Db_ndebug=true"]

OPERATORS = {"<": ["<=", ">"], "<=": ["<", ">="], ">": [">=", "<"], ">=": [">", "<="], "==": ["!="], "!=": ["=="], "&&": ["||"], "||": ["&&"],
             "+": ["-"], "-": ["+"], "*": ["+"], "/": ["*"], "%": ["*"], "+=": ["-="], "-=": ["+="], "++": ["--"], "<<": [">>"], ">>": ["<<"],
             "&": ["|"], "|": ["&"], "!": [""]}
TOKEN = re.compile(r"""/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'|[A-Za-z_]\w*|0[xX][0-9a-fA-F]+[uUlL]*|\d[\w.]*(?:[eE][+-]?\d+)?"""
                   r"""|->|\+\+|--|<<=|>>=|<<|>>|<=|>=|==|!=|&&|\|\||[-+*/%&|^]=|\S|\n""", re.S)
STATEMENT = re.compile(r"^\s+(?!return\b|else\b|break\b|continue\b|goto\b|case\b|for\b|if\b|while\b|do\b|switch\b|(?:const |static |struct |unsigned )*[a-z_]\w*(?: |\s*\*)+[a-z_]\w*(?:\[.*\])*(?: =|;|,))"
                       r"[a-zA-Z_*(+-][^{}]*;\s*(?:/\*.*\*/)?$")


# -------------------------------------------------------------------------------------------------------------- drawing

def changes_of_line(line):
    """[(column, old, new)]: every change of one token in it; a dropped statement is a change of the whole line."""
    found, before = [], "("
    for match in TOKEN.finditer(line):
        token, at = match.group(), match.start()
        spaced = line[at - 1:at] == " " and line[match.end():match.end() + 1] == " "
        if token in OPERATORS:
            binary = spaced or token in ("++", "!")
            # A star and an ampersand are pointers more often than not; where clang-format puts blanks on both sides they are not.
            found += [(at, token, new) for new in OPERATORS[token]] if binary and not (token == "!" and before == "#") else []
        elif re.fullmatch(r"\d+[uUlL]*", token):
            number, suffix = re.fullmatch(r"(\d+)([uUlL]*)", token).groups()
            found.append((at, token, str(int(number) + 1) + suffix))
            if int(number) > 0:
                found.append((at, token, str(int(number) - 1) + suffix))
        elif token in ("true", "false"):
            found.append((at, token, "false" if token == "true" else "true"))
        before = token
    if STATEMENT.match(line) and not re.match(r"\s+(?:free|\w+_free)\(", line):  # leaks are the sanitizers' to notice
        found.append((len(line) - len(line.lstrip()), line.strip(), ";"))
    return found


def is_code(line):
    return not line.lstrip().startswith(("#", "*", "/*", "//", "enum", "_Static_assert"))


def candidates(lines):
    """[(file, line)] that hold code and can be changed; not of peaks, which are measured alone. lines: {file: its lines with code}"""
    found = []
    for name in sorted(name for name in lines if "peak_" not in name):
        with open(os.path.join(ROOT, name), encoding="utf-8") as source:
            text = source.read().split("\n")
        found += [(name, number) for number in sorted(map(int, lines[name])) if is_code(text[number - 1]) and changes_of_line(text[number - 1])]
    return found


def draw(rng, places):
    """One place, and one of its changes; (file, line, column, old, new)."""
    name, number = rng.choice(places)
    with open(os.path.join(ROOT, name), encoding="utf-8") as source:
        line = source.read().split("\n")[number - 1]
    return (name, number, *rng.choice(changes_of_line(line)))


def mutated(text, mutant):
    _, number, column, old, new = mutant
    lines = text.split("\n")
    line = lines[number - 1]
    assert line[column:column + len(old)] == old
    lines[number - 1] = line[:column] + new + line[column + len(old):]
    return "\n".join(lines)


# ------------------------------------------------------------------------------------------------------------- judging

def expect(outcome, what):
    if outcome.status != 0:
        sys.exit(f"{outcome.output}\nmutation.py: {what} failed")


def same_file(a, b):
    if os.path.islink(a) or os.path.islink(b):
        return os.path.islink(a) and os.path.islink(b) and os.readlink(a) == os.readlink(b)
    with open(a, "rb") as one, open(b, "rb") as other:
        return one.read() == other.read()


class Tree:
    """A copy of the tree with its build. Nothing else sees the changed sources."""

    def __init__(self, root=os.path.join(ROOT, COPY), limit=LIMIT):
        self.root, self.build, self.limit = root, os.path.join(root, "build"), limit

    def update(self):
        """As the working folder has it, without builds; and built."""
        listed = processes.execute(["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]).output
        for name in filter(None, listed.split("\0")):
            source, copy = os.path.join(ROOT, name), os.path.join(self.root, name)
            if os.path.lexists(source) and not (os.path.lexists(copy) and same_file(source, copy)):
                os.makedirs(os.path.dirname(copy), exist_ok=True)
                shutil.copy(source, copy, follow_symlinks=False)
        if not os.path.exists(os.path.join(self.build, "build.ninja")):
            expect(processes.execute(["meson", "setup", self.build, self.root, "-Dtests=enabled", *OPTIONS]), "meson")
        expect(self.ninja(), "ninja")

    def open(self):
        self.tests = {test.name: test for test in builds.listed_tests(self.build)}
        self.files = builds.files_of_targets(self.build)
        self.untouched = self.code()

    def ninja(self, *targets):
        return processes.execute(["ninja", "-C", self.build, *targets])

    def code(self):
        """One number for all code of the library: a mutant that does not change it is the same program."""
        digest = hashlib.sha256()
        for folder in ("libdeberta_core.a.p", "simd"):
            for path in coverage.files_below(os.path.join(self.build, folder), ".o"):
                with open(path, "rb") as code:
                    digest.update(code.read())
        return digest.hexdigest()

    def notices(self, name, seconds):
        """What the test says of the mutant, if anything. Late is noticed, too: a loop without an end is no silent fault."""
        test = self.tests[name]
        if self.ninja(*sorted({file for need in test.needs for file in self.files.get(need, ())})).status != 0:
            return "its program cannot be built"
        outcome = processes.execute(test.command, {**test.environment, "DEBERTA_TEST_QUICK": "1"}, 10 + SLOWER * seconds, test.folder)
        if outcome.status is None:
            return "does not end"
        return "fails" if counting.count(outcome.output, outcome.status, test.tap)[1] else ""

    def judge(self, mutant, runs):
        """runs: [(seconds, test)] of the line. What came of it: noticed, survived, or no mutant at all."""
        source = os.path.join(self.root, mutant[0])
        with open(source, encoding="utf-8") as file:
            text = file.read()
        try:
            with open(source, "w", encoding="utf-8") as file:
                file.write(mutated(text, mutant))
            if self.ninja("libdeberta_core.a").status != 0:
                return {"result": "does not compile"}
            return {"result": "same code"} if self.code() == self.untouched else self.try_tests(runs)
        finally:
            with open(source, "w", encoding="utf-8") as file:
                file.write(text)

    def try_tests(self, runs):
        begin, tried = time.monotonic(), []
        for seconds, name in runs:
            if name not in self.tests or time.monotonic() - begin + seconds > self.limit:
                continue
            tried.append(name)
            how = self.notices(name, seconds)
            if how:
                return {"result": "noticed", "by": name, "how": how, "tried": len(tried)}
        return {"result": "survived", "tried": tried, "of": len(runs)}


# ------------------------------------------------------------------------------------------------------------- running

def runs_of_lines():
    """{(file, line): [(seconds, test)], the quickest first} as tools/coverage.py has left it."""
    lines = {}
    for path in coverage.files_below(os.path.join(ROOT, coverage.FOLDER, "runs"), ".json"):
        with open(path, encoding="utf-8") as run:
            run = json.load(run)
        for name, counts in run["files"].items():
            for number, (count, _) in counts.items():
                if count > 0:
                    lines.setdefault((name, int(number)), []).append((run["seconds"], run["name"]))
    return {place: sorted(runs) for place, runs in lines.items()}


def known_mutants(seed):
    """{mutant: what came of it, the last time}"""
    if not os.path.exists(os.path.join(ROOT, LOG)):
        return {}
    with open(os.path.join(ROOT, LOG), encoding="utf-8") as rows:
        return {tuple(row["mutant"]): row for row in map(json.loads, rows) if row["seed"] == seed}


def run(options):
    """False if there was no time for all."""
    runs = runs_of_lines()
    if not runs:
        sys.exit("mutation.py: which test runs which line is not known yet: tools/coverage.py")
    places = [place for place in candidates(coverage.lines_with_code()) if place[0].startswith(options.only)]
    tree = Tree(limit=options.limit)
    tree.update()
    tree.open()
    known = known_mutants(options.seed)
    rng, drawn, judged, begin = random.Random(options.seed), set(), 0, time.monotonic()
    print(f"seed {options.seed}: {len(places)} lines can be changed")
    while judged < options.count:
        mutant = draw(rng, places)
        if mutant in drawn:
            continue
        drawn.add(mutant)
        row, tries = known.get(mutant), runs.get(mutant[:2], [])
        if row is None or (row["result"] == "survived" and row["of"] < len(tries)):  # more tests run the line than were known
            if time.monotonic() - begin > options.seconds:
                return False
            before = row["tried"] if row else []
            row = {"seed": options.seed, "mutant": mutant, **tree.judge(mutant, [run for run in tries if run[1] not in before])}
            if row["result"] == "survived":
                row.update(tried=before + row["tried"], of=len(tries))
            known[mutant] = row
            with open(os.path.join(ROOT, LOG), "a", encoding="utf-8") as log:
                log.write(json.dumps(row) + "\n")
        judged += row["result"] in ("noticed", "survived")
    return True


def report(options):
    """The exit status: 1 if too few were noticed."""
    rows = known_mutants(options.seed).values()
    noticed, survived = ([row for row in rows if row["result"] == result] for result in ("noticed", "survived"))
    for row in survived:
        name, number, _, old, new = row["mutant"]
        print(f"survived {len(row['tried'])} of {row['of']} tests: {name}:{number}: {old} -> {new or 'nothing'}")
    count = len(noticed) + len(survived)
    share = 100 * len(noticed) / count if count else 0.0
    print(f"{count} mutants: {len(noticed)} noticed ({share:.1f} %), {len(survived)} survived; not counted: "
          f"{sum(row['result'] == 'does not compile' for row in rows)} that do not compile, {sum(row['result'] == 'same code' for row in rows)} that are the same code")
    fine = share >= LEAST
    print(f"{int(fine)} passed, {int(not fine)} failed")
    return 0 if fine else 1


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=COUNT)
    parser.add_argument("--seed", type=int, default=SEED)
    parser.add_argument("--seconds", type=float, default=1e9)
    parser.add_argument("--limit", type=float, default=LIMIT)
    parser.add_argument("--only", metavar="PATH", default="")
    parser.add_argument("--report", action="store_true")
    options = parser.parse_args()
    os.chdir(ROOT)
    if not options.report and not run(options):
        report(options)
        return 75
    return report(options)


if __name__ == "__main__":
    sys.exit(main())
