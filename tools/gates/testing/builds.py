"""Build folders, and the tests that meson lists in them.

SPDX-License-Identifier: MIT
"""
import json
import os
import shutil

from testing.processes import ROOT, execute

EMULATED_LIMIT = 10  # times longer than natively a test may take; tests/meson.build has the same for `meson test --setup quick`
FIRST = 10000  # seconds that a build is said to take, since others wait for it


class Listed:
    """A test as meson lists it. suites: without the project's name. folder: where it runs, the build's if it does not say."""

    def __init__(self, row, build):
        self.name, self.command, self.environment = row["name"], row["cmd"], row["env"]
        self.folder, self.limit, self.priority = row["workdir"] or os.path.join(ROOT, build), row["timeout"], row["priority"]
        self.tap, self.needs = row["protocol"] == "tap", row["depends"]
        self.suites = {suite.rpartition(":")[2] for suite in row["suite"]}


def introspect(folder, what):
    outcome = execute(["meson", "introspect", what, folder], {"PYTHONWARNINGS": "ignore"})
    if outcome.status != 0:
        return []
    return json.loads(outcome.output[outcome.output.index("["):])


def listed_tests(folder):
    return [Listed(row, folder) for row in introspect(folder, "--tests")]


def files_of_targets(folder):
    """{identity of a target: the files that ninja makes for it, relative to the folder}"""
    place = os.path.realpath(os.path.join(ROOT, folder))
    return {row["id"]: [os.path.relpath(name, place) for name in row["filename"]] for row in introspect(folder, "--targets")}


def configure_command(folder, options, native_file=None, cross_file=None):
    """Sets the folder up, or changes the options of one that was set up before."""
    options = ["-Dtests=enabled", *options]
    if os.path.exists(os.path.join(ROOT, folder, "build.ninja")):
        return ["meson", "configure", folder, *[option for option in options if not option.startswith("--libdir")]]
    files = [f"--native-file={native_file}"] * bool(native_file) + [f"--cross-file={cross_file}"] * bool(cross_file)
    if shutil.which("ccache"):  # meson puts it before its own choice of a compiler only
        files += ["--native-file=tools/gates/ccache-clang.ini"] * bool(native_file) + ["--cross-file=tools/gates/ccache-aarch64.ini"] * bool(cross_file)
    if native_file and shutil.which("ld.lld-19"):  # a hundred programs are linked, in half the time
        files.append("--native-file=tools/gates/lld-clang.ini")
    return ["meson", "setup", folder, *options, *files]


class Build:
    """A folder that stages share: its jobs belong to the first that asks. configured, built: what must have ended before something of it runs."""

    def __init__(self, stage, folder, options, environment, machine):
        self.folder, self.targets, self.everything, self.wanted = folder, set(), False, []
        # Next to other stages not all processors: their tests fill the rest, and a link at the end of a build leaves none idle.
        processors = max(1, stage.schedule.processors // (2 if stage.schedule.shared else 1))
        self.configured = stage.job(configure_command(folder, options, **machine), self._configured(stage), environment=environment, expected=FIRST)
        self.built = stage.job(["ninja", "-C", folder, "-j", str(processors)], self._built(stage), processors=processors, expected=FIRST,
                               after=[self.configured])

    def want(self, stage, tests, targets, everything):
        self.targets.update(targets)
        self.everything = self.everything or everything
        for some in tests:
            stage.wait_for_tests()
            self.wanted.append((stage, some))

    def _configured(self, stage):
        def ended(outcome):
            if outcome.status != 0:
                stage.fail_build(f"configuring {self.folder}", self.configured.command, outcome)
            stage.note_time(self.configured, outcome, f"configuring {self.folder}")
            listed, files = (listed_tests(self.folder), files_of_targets(self.folder)) if outcome.status == 0 else ([], {})
            for owner, tests in self.wanted:
                chosen, left = tests.of(listed)
                self.targets.update(file for test in chosen for need in test.needs for file in files.get(need, ()))
                owner.add_tests(tests, chosen, left, self.built)
            self.built.command += [] if self.everything else sorted(self.targets)
        return ended

    def _built(self, stage):
        def ended(outcome):
            if outcome.status != 0:
                stage.fail_build(f"building {self.folder}", self.built.command, outcome)
            stage.note_time(self.built, outcome, f"building {self.folder}")
            stage.notes.append(f"  {self.folder}: built ({outcome.processor:.0f} s of processor time)")
        return ended
