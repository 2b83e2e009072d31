"""One stage of a run: builds, tests of builds, single programs, and what they said.

SPDX-License-Identifier: MIT
"""
from testing import builds, counting
from testing.machine import turn_of_today
from testing.schedule import Job

TIER_SUITES = {"kernels", "golden"}  # they run the kernels tier by tier; the others say nothing about a tier


def say(text):
    print(text, flush=True)


class Tests:
    """Which of the tests in a build, and how. choose(listed): is it one of them? quick: as `meson test --setup quick` has them.
    slower: how many times longer than natively they take, since the longest begin first. turns, nightly: a run takes one of so many parts, another
    every day, and that nightly stage takes all."""

    def __init__(self, title, choose=lambda test: True, quick=False, wrapper=(), environment=None, slower=1, turns=1, nightly=None):
        self.title, self.choose, self.quick, self.wrapper, self.slower = title, choose, quick, list(wrapper), slower
        self.turns, self.nightly = turns, nightly
        self.environment = {**(environment or {}), **({"DEBERTA_TEST_QUICK": "1"} if quick else {})}

    def of(self, listed):
        """Those that run today, and those whose turn it is not."""
        chosen = [test for test in listed if self.choose(test) and not (self.quick and "long" in test.suites)]
        return turn_of_today(sorted(chosen, key=lambda test: (-test.priority, test.name)), self.turns)


class Group:
    """What is added up in one line."""

    def __init__(self, title):
        self.title, self.programs, self.counts, self.processor = title, 0, (0, 0, 0), 0.0

    def add(self, counts, processor=0.0):
        self.programs += 1
        self.counts = tuple(a + b for a, b in zip(self.counts, counts))
        self.processor += processor

    def line(self):
        programs = f"{self.programs} programs, " if self.programs != 1 else ""
        passed, failed, skipped = self.counts
        return f"  {self.title}: {programs}{passed} passed, {failed} failed, {skipped} skipped ({self.processor:.0f} s of processor time)"


class Stage:
    """shared: {folder: Build} of the whole run. tiers(): [(tier, how it ran)]; they have passed if no test that judges one has failed."""

    def __init__(self, name, says, schedule, shared):
        self.name, self.says, self.schedule, self.shared = name, says, schedule, shared
        self.groups, self.notes, self.failures, self.times = [], [], [], []
        self.tiers, self.tier_failures, self.unfinished = list, 0, 0
        self.left = {}  # {nightly stage: what is left to it}

    def counts(self):
        return tuple(sum(group.counts[k] for group in self.groups) for k in range(3))

    def group(self, title):
        self.groups.append(Group(title))
        return self.groups[-1]

    # -------------------------------------------------------------------------------------------------------- to be done

    def job(self, command, ended, given_up=lambda: None, **about):
        self.unfinished += 1

        def then(function):
            def both(*arguments):
                function(*arguments)
                self.finish_one()
            return both
        return self.schedule.add(Job(command, then(ended), given_up=then(given_up), **about))

    def finish_one(self):
        self.unfinished -= 1
        if self.unfinished == 0:
            self.report()

    def program(self, title, command, group=None, name=None, tap=False, programs=1, of_tiers=True, **about):
        """One process as a test, or as one of several tests of a group. programs: how many it runs itself, each with its closing line."""
        group = group or self.group(title)

        def ended(outcome):
            counts = counting.count(outcome.output, outcome.status, tap, programs)
            group.add(counts, outcome.processor)
            self.note_time(job, outcome, name or title)
            self.notes += [f"  {line}" for line in outcome.output.split("\n") if line.startswith("lint: ")]
            if counts[1]:
                self.fail(name or title, job.command, outcome, of_tiers)
        # What could not run has failed; why is said where its build failed.
        job = self.job(command, ended, given_up=lambda: group.add((0, 1, 0)), **about)
        return job

    def note_time(self, job, outcome, what):
        self.times.append((outcome.processor, outcome.seconds, job.began, f"{self.name}: {what}"))

    def build(self, folder, options=(), tests=(), targets=(), everything=False, environment=None, **machine):
        """Builds what these tests need and these targets, or everything, and runs the tests. Returns the job after which programs of the build may run."""
        if folder not in self.shared:
            self.shared[folder] = builds.Build(self, folder, options, environment, machine)
        self.shared[folder].want(self, tests, targets, everything)
        return self.shared[folder].built

    def wait_for_tests(self):
        """They become known when the build has been configured."""
        self.unfinished += 1

    def add_tests(self, tests, chosen, left, after):
        group = self.group(tests.title)
        self.leave(tests.nightly, *(test.name for test in left))
        if not chosen + left:
            group.add((0, 1, 0))
            self.failures.append(f"{tests.title}: no test ran")
        for test in chosen:
            self.program(tests.title, tests.wrapper + test.command, group, test.name, test.tap, of_tiers=bool(test.suites & TIER_SUITES),
                         environment={**test.environment, **tests.environment}, limit=test.limit * (builds.EMULATED_LIMIT if tests.quick else 1),
                         folder=test.folder, expected=max(test.priority, 0.5) * tests.slower, after=[after])
        self.finish_one()

    def leave(self, nightly, *what):
        """This run does without; the nightly stage does it. The run's end says so."""
        self.left.setdefault(nightly, []).extend(what)

    # ------------------------------------------------------------------------------------------------------ what came of it

    def fail(self, what, command, outcome, of_tiers=True):
        self.failures.append(what)
        self.tier_failures += of_tiers
        say(f"    {self.name}: {what}: {f'failed, status {outcome.status}' if outcome.status is not None else 'stopped'}")
        say(f"    {command if callable(command) else ' '.join(command)}")
        say("\n".join("    " + line for line in counting.failures_in(outcome.output).rstrip().split("\n")[-100:]))

    def fail_build(self, what, command, outcome):
        self.group(what).add((0, 1, 0), outcome.processor)
        self.fail(what, command, outcome)

    def report(self):
        say(f"{self.name}: {self.says}")
        for line in self.notes + [group.line() for group in self.groups]:
            say(line)
