#!/usr/bin/env python3
"""Tests the tests: drawn changes of one token of the library, and whether a test notices; the stage `mutation` of tools/run_tests.py.

    tools/mutation.py                     draws 300 mutants, builds one program that holds them all, tries each; goes on where a call stopped
    tools/mutation.py --count N --seed S  more of them, or others
    tools/mutation.py --seconds 100       begins with no other mutant after so long, and ends with status 75 if something is left
    tools/mutation.py --limit 100         seconds of tests for one mutant
    tools/mutation.py --only PATH         mutants below this path, as core/text
    tools/mutation.py --tests WORDS       single tests alone whose names contain one of these words, as "cli train,golden"
    tools/mutation.py --again             once more those that survived and are not read as equal, with the tests as they are now
    tools/mutation.py --share 1/2         every second mutant, when another call that runs at the same time has the others; the first one looks at their code
    tools/mutation.py --report            builds and runs nothing: prints what is known, with the survivors

A mutant changes an operator, a comparison, a constant or a bound, or drops a statement, in a function of core/, simd/ or train/; a line
is drawn, then one of its changes. All of them are compiled into one build, and the environment chooses one (tools/testing/mutants.py). Each
single test (tools/testing/single.py) first says which mutants it comes to; some of these then try a mutant in turn: those that noticed others
nearby, then the quickest of each program or file of cases, then the next ones, until their seconds are used up. Where none comes, nobody notices.
Assertions are on, as in the stages with sanitizers. A test fails, or takes more processor time than SLOWER allows, or waits with nothing running; a busy machine is no failure.

What came of each stands in build-mutation/mutants.tsv, the first result and later ones; tests/survivors.tsv says of survivors what a reader found.
Not counted: what does not compile, what this machine does not compile, and what compiles to the same code.
Fails below LEAST percent noticed.

SPDX-License-Identifier: MIT
"""
import argparse
import collections
import concurrent.futures
import fcntl
import glob
import hashlib
import json
import os
import random
import re
import shlex
import shutil
import subprocess
import sys
import time
import zlib

from testing import builds, mutants, processes, single, watched
from testing.processes import ROOT

FOLDER = "build-mutation"
READ = os.path.join("tests", "survivors.tsv")
ROOMS = ("core", "simd", "train")
COUNT, SEED, LEAST = 300, 20240229, 85.0
SLOWER = 5  # times the processor time that a test takes without a mutant, and ten seconds
LIMIT = 40  # seconds of tests for a mutant; those that would take longer are left out
NEARBY = 4  # tests that noticed others of the same file, and as many of the same folder, go first
OPTIONS = ["-Dviz=disabled", "-Dmpi=disabled", "-Doptimization=1", "-Db_ndebug=false"]
QUICK = {"DEBERTA_TEST_QUICK": "1"}
CARRIER = os.path.join("core", "base", "status.c")  # it holds the choice as well
# They may fail of themselves where it is busy.
CLOCKS = {"cli encode_corpus", "cli info", "cli limits", "cli signals", "cli train_interrupted", "machine", "parallel", "session", "sweep"}
# What tests tests, or draws figures, or compares other languages, comes to no place of its own.
LEFT_OUT = {"checkasm catches broken kernels", "golden notices a flipped bit", "mutations", "train faults", "identity", "appendix", "fuzz hang"}
CASES = {"cli " + name for name in ("attention corpus drawn encode_corpus eval finetune heads info limits made_up misuse pack precision results "
                                    "signals train train_edges train_interrupted train_limits train_memory").split()}
COLUMNS = ["seed", "file", "line", "column", "old", "new", "result", "by", "how", "tried", "of"]


def wanted(test):
    return test.name not in LEFT_OUT and (bool(test.suites & {"unit", "golden", "kernels", "fuzz"}) or test.name in CASES)


def expect(outcome, what):
    if outcome.status != 0:
        sys.exit(f"{outcome.output}\nmutation.py: {what} failed")


def same_file(a, b):
    if os.path.islink(a) or os.path.islink(b):
        return os.path.islink(a) and os.path.islink(b) and os.readlink(a) == os.readlink(b)
    with open(a, "rb") as one, open(b, "rb") as other:
        return one.read() == other.read()


def write(path, text):
    """Only what changes, so that ninja builds only that."""
    if os.path.exists(path):
        with open(path, encoding="utf-8") as file:
            if file.read() == text:
                return
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)


# ------------------------------------------------------------------------------------------------------------ one program

class Tree:
    """A copy of the tree with its build; nothing else sees the changed sources. origin: what is copied; carrier: the file with the choice."""

    def __init__(self, root=os.path.join(ROOT, FOLDER, "tree"), origin=ROOT, carrier=CARRIER):
        self.root, self.origin, self.carrier, self.build = root, origin, carrier, os.path.join(root, "build")

    def update(self, kept):
        """As the working folder has it, but for the files that are kept, since they hold mutants; and configured."""
        for name in self.listed():
            source, copy = os.path.join(self.origin, name), os.path.join(self.root, name)
            if name not in kept and os.path.lexists(source) and self.differs(name):
                os.makedirs(os.path.dirname(copy), exist_ok=True)
                shutil.copy(source, copy, follow_symlinks=False)
        if not os.path.exists(os.path.join(self.build, "build.ninja")):
            expect(processes.execute(["meson", "setup", self.build, self.root, "-Dtests=enabled", *OPTIONS]), "meson")

    def listed(self):
        said = processes.execute(["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"], folder=self.origin).output
        return list(filter(None, said.split("\0")))

    def differs(self, name):
        source, copy = os.path.join(self.origin, name), os.path.join(self.root, name)
        return not (os.path.lexists(copy) and same_file(source, copy))

    def ninja(self, *targets):
        return processes.execute(["ninja", "-C", self.build, "-j", str(os.cpu_count() or 1), "-k", "0", *targets])

    def library_targets(self):
        """Its objects: what a mutant is tried on; programs and tests are built once, with all mutants."""
        said = processes.execute(["ninja", "-C", self.build, "-t", "targets", "all"]).output
        return [target for target in (line.split(":")[0] for line in said.split("\n")) if target.endswith(".o") and self.of_the_library(target)]

    def open(self):
        """After a build: which objects hold which file."""
        self.tests = {test.name: test for test in builds.listed_tests(self.build)}
        self.objects = collections.defaultdict(list)
        said = processes.execute(["ninja", "-C", self.build, "-t", "deps"]).output
        target = ""
        for line in said.split("\n"):
            if line.startswith("    "):
                name = os.path.relpath(os.path.normpath(os.path.join(self.build, line.strip())), self.root)
                if self.of_the_library(target):
                    self.objects[name].append(target)
            elif ": #deps" in line:
                target = line.split(":")[0]

    @staticmethod
    def of_the_library(target):
        return target.startswith(("libdeberta_core.a.p", "simd/", "tests/stand_ins/")) and "peak_" not in target

    def plant(self, name, chosen):
        """Writes a file with these mutants, {number: mutant}."""
        text = mutants.program_text(self.origin, name, chosen) if chosen else mutants.source_of(self.origin, name).text
        if name == self.carrier:
            text = (text if chosen else mutants.HEADER + text) + mutants.SELECTION
        write(os.path.join(self.root, name), text)

    def plant_all(self, chosen):
        """These mutants, {number: mutant}, and no others in their files."""
        for name in {mutant.file for mutant in chosen.values()} | {self.carrier}:
            self.plant(name, {number: mutant for number, mutant in chosen.items() if mutant.file == name})

    def valid_of(self, chosen):
        """Those mutants that can be part of one program; their files are left with them, and with some that are in no object."""
        chosen = {number: mutant for number, mutant in chosen.items() if self.can_be_written(mutant)}
        while True:
            self.plant_all(chosen)
            outcome = self.ninja(*self.library_targets())
            if outcome.status == 0:
                there = self.compiled_numbers()
                return {number: mutant for number, mutant in chosen.items() if number in there}
            errors = {(name, int(line)) for name, line in re.findall(r"^(?:\.\./)*([\w/.]+):(\d+):\d+: (?:fatal )?error: ", outcome.output, re.M)}
            wrong = {number for number, mutant in chosen.items() if any((mutant.file, line) in errors for line in self.lines_of(mutant))}
            if not wrong:  # a header of the compiler refuses what it was given; the places are named
                errors = {(name, int(line)) for name, line in re.findall(r"([\w/.]+):(\d+):\d+", outcome.output.replace("../", ""))}
                wrong = {number for number, mutant in chosen.items() if any((mutant.file, line) in errors for line in self.lines_of(mutant))}
            if not wrong:
                expect(outcome, "the library with its mutants")
            files = collections.Counter(chosen[number].file for number in wrong)
            for name in files:
                self.plant(name, {})
            wrong -= {number for number in wrong if files[chosen[number].file] > 1 and self.can_be_built(number, chosen[number])}
            chosen = {number: mutant for number, mutant in chosen.items() if number not in wrong}

    def can_be_built(self, number, mutant):
        """Alone in its file, which is left as it was."""
        self.plant(mutant.file, {number: mutant})
        fine = self.ninja(*self.library_targets()).status == 0
        self.plant(mutant.file, {})
        return fine

    def lines_of(self, mutant):
        """Of all that stands beside its change."""
        source = mutants.source_of(self.origin, mutant.file)
        first, last, _ = source.place(mutant)
        begin, end = (source.text.count("\n", 0, source.tokens[index][0]) + 1 for index in (first, last))
        return range(begin, end + 1)

    def compiled_numbers(self):
        """The mutants that the preprocessor leaves in some object of the library."""
        with open(os.path.join(self.build, "compile_commands.json"), encoding="utf-8") as rows:
            commands = {row["output"]: row for row in json.load(rows)}

        def numbers_in(target):
            words = shlex.split(commands[target]["command"])
            words[words.index("-o") + 1] = "-"
            said = subprocess.run([*[word for word in words if word != "-c"], "-E"], cwd=commands[target]["directory"], stdout=subprocess.PIPE,
                                  stderr=subprocess.DEVNULL, text=True, check=False).stdout
            return {int(number) for number in re.findall(r"mutants_reached\[(\d+)\] = 1", said)}
        with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
            return set().union(*pool.map(numbers_in, self.library_targets()))

    def changed_files(self):
        """Those of the library that hold mutants, or the choice."""
        return [name for name in self.listed() if name.split(os.sep)[0] in ROOMS and self.differs(name)]

    def can_be_written(self, mutant):
        try:
            mutants.source_of(self.origin, mutant.file).with_choices({1: mutant})
            return True
        except mutants.NoMutant:
            return False

    def same_code(self, mutant):
        """Is the object the one that the source without a change gives? The file is left without mutants."""
        path, digests = os.path.join(self.root, mutant.file), []
        for text in (mutants.source_of(self.origin, mutant.file).text, mutants.changed_text(self.origin, mutant)):
            write(path, text + (mutants.HEADER + mutants.SELECTION if mutant.file == self.carrier else ""))
            expect(self.ninja(*self.objects[mutant.file]), "a single mutant")
            digest = hashlib.sha256()
            for target in self.objects[mutant.file]:
                with open(os.path.join(self.build, target), "rb") as code:
                    digest.update(code.read())
            digests.append(digest.hexdigest())
        return digests[0] == digests[1]


def places_below(root, path):
    """[(file, line)] that can be changed; not of peaks, which are measured alone."""
    names = sorted(os.path.relpath(name, root) for room in ROOMS for ending in ("c", "h")
                   for name in glob.glob(os.path.join(root, room, "**", "*." + ending), recursive=True))
    return [(name, number) for name in names if name.startswith(path) and "peak_" not in name
            for number in mutants.lines_with_code(mutants.source_of(root, name).text)]


def draw_and_build(tree, options):
    """{number: mutant}; the same for the same sources, count and seed. The program may hold a few more, which nobody chooses."""
    places = places_below(tree.origin, options.only)
    rng, drawn, valid = random.Random(options.seed), [], {}
    tree.update(set())
    while len(valid) < options.count:
        begin = len(drawn)
        while len(drawn) < begin + max(4, int(1.2 * (options.count - len(valid)))):
            mutant = mutants.draw(rng, tree.origin, places)
            if mutant not in drawn:
                drawn.append(mutant)
        valid = tree.valid_of({**valid, **dict(enumerate(drawn[begin:], begin + 1))})
    numbers = sorted(valid)[:options.count]
    valid = {number: valid[number] for number in numbers}
    print(f"seed {options.seed}: {len(places)} lines can be changed; {numbers[-1]} changes drawn, {len(valid)} of them can be built", flush=True)
    return valid


# ------------------------------------------------------------------------------------------------------------- the tests

class Trials:
    """The tests of the program. reached: {single test: (seconds of processor, numbers of mutants)}"""

    def __init__(self, tree, end, place=os.path.join(ROOT, FOLDER), share=(0, 1)):
        self.tree, self.end, self.place, self.share, self.reached = tree, end, place, share, {}

    def over(self):
        return time.monotonic() > self.end

    def run(self, test, number, seconds, reached=None):
        chosen = {"DEBERTA_MUTANT": str(number)} if number else {"DEBERTA_MUTANTS_REACHED": reached} if reached else {}
        return watched.run(test, {**QUICK, **test.environment, **chosen}, seconds)

    def look_at_reach(self, limit, words=()):
        """Runs once without a mutant what a mutant may meet; what is known from an earlier call is kept. False if there was no time for all."""
        os.makedirs(os.path.join(self.place, "reached"), exist_ok=True)
        self.reached, whole = {}, True
        for test in sorted(filter(wanted, self.tree.tests.values()), key=lambda test: test.priority):
            parts = self.parts_of(single.Single(test), limit, words)
            whole = whole and parts is not None
            for name in parts or ():
                one = single.Single(test, name)
                if not words or any(word in one.name for word in words):
                    seen = self.seen(one, limit)
                    whole = whole and seen is not None
                    if seen is not None:
                        self.reached[one] = (seen["seconds"], set(seen["reached"]))
        return whole

    def parts_of(self, test, limit, words):
        """Names of what is tried alone; [""] for a test that is tried as a whole, None if there was no time to see."""
        if not test.lists() and words and not any(word in test.name for word in words):
            return []
        if test.folders():
            return test.folders()
        seen = self.seen(test, limit)
        return None if seen is None else seen["parts"] or [""]

    def seen(self, test, limit):
        """What a run without a mutant showed, of this call or of an earlier one; None if there was no time."""
        path = os.path.join(self.place, "reached", re.sub(r"\W+", "_", test.name)[:80] + "_" + hashlib.sha256(test.name.encode()).hexdigest()[:8] + ".json")
        stamp = os.stat(test.source()).st_mtime_ns
        if os.path.exists(path):
            with open(path, encoding="utf-8") as file:
                known = json.load(file)
            if known["stamp"] == stamp and known.get("beyond", limit) >= limit:
                return known
        if zlib.crc32(test.name.encode()) % self.share[1] != self.share[0] or self.over():
            return None
        known = {"stamp": stamp, **(self.listed(test) if test.lists() and test.name == test.group else self.look_at_one(test, limit, path))}
        write_json(path, known)
        return known

    def listed(self, test):
        said = processes.execute([*test.command, "--list"], {**QUICK, **test.environment}, folder=test.folder)
        expect(said, f"the list of {test.name}")
        names = said.output.split("\n")[:-1]
        if len(names) <= single.MOST:
            return {"seconds": 0, "reached": [], "parts": names}
        return self.look_at_one(test, 300, os.path.join(self.place, "reached", "a whole test"))

    def look_at_one(self, test, limit, path):
        reached = path + f".{os.getpid()}.bytes"
        with open(reached, "wb") as file:
            file.write(bytes(mutants.MOST))
        outcome = self.run(test, 0, limit, reached)
        with open(reached, "rb") as file:
            numbers = [number for number, byte in enumerate(file.read()) if byte]
        os.remove(reached)
        known = {"seconds": round(outcome.processor, 2), "reached": numbers, "parts": [] if outcome.fault else test.parts_said(outcome)}
        if outcome.fault:
            print(f"{test.name} fails without a mutant ({outcome.fault}), so it tries none\n{outcome.output[-1500:]}", flush=True)
            known["reached"] = []
        return {**known, "beyond": limit} if outcome.fault == "too much processor time" else known

    def tests_of(self, number, noticed=()):
        """[(seconds, test)] in the order in which they try it. noticed: [counts by test's name] of other mutants, the nearest first."""
        left = [(seconds, test) for test, (seconds, numbers) in self.reached.items() if number in numbers]
        order = []
        for counts in noticed:
            near = sorted((row for row in left if counts[row[1].name]), key=lambda row: (row[0] + 0.3) / counts[row[1].name])[:NEARBY]
            order += near
            left = [row for row in left if row not in near]
        rounds, ranks = [], collections.Counter()
        for seconds, test in sorted(left, key=lambda row: (row[0], row[1].name)):
            group = test.group.split()[0] if test.group.startswith("fuzz") else test.group
            rounds.append((ranks[group] // (4 if group == "checkasm" else 1), seconds, test.name, test))  # a kernel's check is quick
            ranks[group] += 1
        return order + [(seconds, test) for _, seconds, _, test in sorted(rounds, key=lambda row: row[:3])]

    def judge(self, number, limit, noticed=()):
        """What came of a mutant."""
        tests, tried, spent = self.tests_of(number, noticed), 0, 0.0
        for seconds, test in tests:
            if spent + seconds > limit:
                continue
            spent += seconds
            tried += 1
            faults = [self.run(test, number, 10 + SLOWER * seconds).fault]
            if faults[0] and test.group in CLOCKS:  # it may fail of itself: so once more, and once without the mutant
                faults += [self.run(test, number, 10 + SLOWER * seconds).fault, "" if self.run(test, 0, 10 + SLOWER * seconds).fault else "passes"]
            if all(faults):
                return {"result": "noticed", "by": test.name, "how": faults[0], "tried": tried, "of": len(tests)}
        return {"result": "survived", "by": "", "how": "", "tried": tried, "of": len(tests)}


def noticed_near(mutant, rows):
    """[{a test's name: how many other mutants it noticed}] of the same file and of the same folder."""
    others = [(other.file, row["by"]) for other, row in rows.items() if row["result"] == "noticed" and other != mutant]
    folder = os.path.dirname(mutant.file)
    return [collections.Counter(by for name, by in others if name == mutant.file),
            collections.Counter(by for name, by in others if os.path.dirname(name) == folder)]


def write_json(path, value):
    with open(f"{path}.{os.getpid()}.new", "w", encoding="utf-8") as out:
        json.dump(value, out)
    os.rename(f"{path}.{os.getpid()}.new", path)


def built_mutants(tree, options):
    """({number: mutant}, the files that hold some), of this call or of an earlier one with the same wish."""
    path, wish = os.path.join(ROOT, FOLDER, "built.json"), [options.count, options.seed, options.only, digest_of_sources(ROOT)]
    known = {}
    if os.path.exists(path):
        with open(path, encoding="utf-8") as file:
            known = json.load(file)
    if known.get("wish") != wish:
        shutil.rmtree(os.path.join(ROOT, FOLDER, "reached"), ignore_errors=True)
        known = {"wish": wish, "mutants": draw_and_build(tree, options)}
        known["changed"] = tree.changed_files()
        write_json(path, known)
    return {int(number): mutants.Mutant(*mutant) for number, mutant in known["mutants"].items()}, set(known["changed"])


def digest_of_sources(root):
    digest = hashlib.sha256()
    for room in ROOMS:
        for name in sorted(glob.glob(os.path.join(root, room, "**", "*.[ch]"), recursive=True)):
            with open(name, "rb") as file:
                digest.update(file.read())
    return digest.hexdigest()


def log_path():
    return os.path.join(ROOT, FOLDER, "mutants.tsv")


def known_rows(seed, first=False):
    """{mutant: its last row}, or its first one."""
    rows = {}
    if os.path.exists(log_path()):
        with open(log_path(), encoding="utf-8") as file:
            for line in file:
                row = dict(zip(COLUMNS, line.rstrip("\n").split("\t")))
                mutant = mutants.Mutant(row["file"], int(row["line"]), int(row["column"]), row["old"], row["new"])
                if row["seed"] == str(seed) and not (first and mutant in rows):
                    rows[mutant] = row
    return rows


def note(seed, mutant, what):
    with open(log_path(), "a", encoding="utf-8") as file:
        file.write("\t".join(str({"seed": seed, **mutant._asdict(), **what}[column]) for column in COLUMNS) + "\n")


def run(options):
    """False if something is left."""
    end = time.monotonic() + options.seconds
    tree = Tree()
    os.makedirs(tree.root, exist_ok=True)
    with open(os.path.join(ROOT, FOLDER, "lock"), "w", encoding="utf-8") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # of calls that share the mutants one builds
        built, changed = built_mutants(tree, options)
        tree.update(changed)
        expect(tree.ninja(), "the build with its mutants")
    tree.open()
    if options.again:
        for mutant, row in known_rows(options.seed).items():
            if row["result"] == "survived" and reading_of(mutant)[0] != "equal":
                note(options.seed, mutant, {**row, "result": "again"})
    trials = Trials(tree, end, share=options.share)
    if not trials.look_at_reach(options.limit, options.tests):
        return False
    for number, mutant in list(built.items())[options.share[0]::options.share[1]]:
        known = known_rows(options.seed)  # another share's as well
        if mutant not in known or known[mutant]["result"] == "again":
            if trials.over():
                return False
            what = trials.judge(number, options.limit, noticed_near(mutant, known))
            if what["result"] == "survived" and mutant in known:
                what["how"] = known[mutant]["how"]  # what its code was found to be
            note(options.seed, mutant, what)
    if options.share[0] > 0:
        return True
    known = known_rows(options.seed)
    if any(row["result"] == "again" for row in known.values()) or not known.keys() >= set(built.values()):
        return False
    return look_at_survivors(tree, options.seed, end)


def look_at_survivors(tree, seed, end):
    """Those that give the same code are no mutants. A copy of its own, since the other one holds the program."""
    single = Tree(os.path.join(ROOT, FOLDER, "single"))
    opened = False
    for mutant, row in known_rows(seed).items():
        if row["result"] == "survived" and row["how"] == "" and reading_of(mutant)[0] != "equal":
            if time.monotonic() > end:
                return False
            if not opened:
                os.makedirs(single.root, exist_ok=True)
                single.update(set())
                single.objects, opened = tree.objects, True
            same = single.same_code(mutant)
            note(seed, mutant, {**row, "result": "same code" if same else "survived", "how": "" if same else "other code"})
    return True


# -------------------------------------------------------------------------------------------------------------- telling

def readings():
    """{(file, the line, old, new): (is it equal, what a reader found)}"""
    found = {}
    if os.path.exists(os.path.join(ROOT, READ)):
        with open(os.path.join(ROOT, READ), encoding="utf-8") as rows:
            for row in rows:
                if not row.startswith("#"):
                    name, line, old, new, kind, why = row.rstrip("\n").split("\t")
                    found[(name, line, old, new)] = (kind, why)
    return found


def reading_of(mutant):
    return readings().get((mutant.file, line_of(mutant), mutant.old, mutant.new), ("unread", ""))


def line_of(mutant):
    return mutants.source_of(ROOT, mutant.file).text.split("\n")[mutant.line - 1].strip()


def report(options):
    """The exit status: 1 if too few were noticed."""
    rows, first = known_rows(options.seed), known_rows(options.seed, first=True)
    sums = collections.defaultdict(collections.Counter)
    for mutant, row in sorted(rows.items()):
        result = "survived" if row["result"] == "again" else row["result"]
        if result == "survived":
            kind, why = reading_of(mutant)
            if kind == "equal":
                result = "equal"
            print(f"survived {row['tried']} of {row['of']} tests: {mutant.file}:{mutant.line}: {line_of(mutant)}: {mutant.old} -> {mutant.new or 'nothing'}"
                  f" [{kind}] {why}")
        for room in (mutant.file.split(os.sep)[0], "all"):
            sums[room][result] += 1
            sums[room]["noticed at first"] += first[mutant]["result"] == "noticed"
    fine = bool(sums)
    for room, count in sorted(sums.items(), key=lambda item: item[0] == "all"):
        real = count["noticed"] + count["survived"]
        share = 100 * count["noticed"] / real if real else 0.0
        print(f"{room}: {real + count['equal']} mutants, {count['noticed']} noticed, {count['survived']} not; {count['equal']} are equal, as read; noticed of the"
              f" others: {share:.1f} %, by the first trial {100 * count['noticed at first'] / real if real else 0.0:.1f} %;"
              f" {count['same code']} more are the same code")
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
    parser.add_argument("--tests", metavar="WORDS", default="")
    parser.add_argument("--again", action="store_true")
    parser.add_argument("--share", default="1/1")
    parser.add_argument("--report", action="store_true")
    options = parser.parse_args()
    options.share = (int(options.share.split("/")[0]) - 1, int(options.share.split("/")[1]))
    options.tests = [word for word in options.tests.split(",") if word]
    os.chdir(ROOT)
    if not options.report and not run(options):
        report(options)
        return 75
    return report(options)


if __name__ == "__main__":
    sys.exit(main())
