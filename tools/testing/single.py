"""Single tests of those that meson lists: a case of the program, a check of a kernel, a golden case, a test of a unit program.

SPDX-License-Identifier: MIT
"""
import os

from testing import counting

SPLIT = 2  # seconds of processor; a unit program that takes less is tried as a whole
MOST = 128  # what has more, as every message of misuse, is quick for each and tried as a whole
OWN_LISTS = {"draw_layout", "encode_logits", "parallel", "tokenizer", "topology"}  # they do without tests/unit/test.h, which knows a single test
BY_CASE = {"golden", "oracle", "train"}  # their cases are folders below the one of --folder


class Single:
    """A test of meson's list, or with a name one of its parts. group: the test's name."""

    def __init__(self, test, part=""):
        self.test, self.group, self.name = test, test.name, f"{test.name}: {part}" if part else test.name
        self.command, self.environment = test.command + self._words(part), dict(test.environment)
        self.folder, self.tap = test.folder, test.tap
        if part and not self._words(part):
            self.environment["DEBERTA_TEST_ONLY"] = part  # tests/unit/test.h

    def _words(self, part):
        if not part:
            return []
        if self.is_of_the_program():
            return ["--only", part]
        if "kernels" in self.test.suites:
            return ["--kernel=" + part]
        return ["--only", part] if self.group in BY_CASE else []

    def is_of_the_program(self):
        return self.group.startswith("cli ")

    def lists(self):
        """Does it print its parts when it is asked to?"""
        return self.is_of_the_program() or self.group == "checkasm"

    def folders(self):
        """The cases of those that have a folder for each."""
        if self.group not in BY_CASE:
            return []
        top = os.path.join(self.folder, self.command[self.command.index("--folder") + 1])
        return sorted(name for place in (top, os.path.join(top, "formats")) if os.path.isdir(place) for name in os.listdir(place)
                      if os.path.exists(os.path.join(place, name, "config.json")))

    def parts_said(self, outcome):
        """The parts of a unit program that takes long, from what it said."""
        names = [text.rpartition(" - ")[2] for negated, text in counting.TAP_RESULT.findall(outcome.output) if not negated]
        return names if self.tap and "unit" in self.test.suites and outcome.processor > SPLIT and self.group not in OWN_LISTS else []

    def source(self):
        """The file that changes when the test does: its program, or its cases."""
        if self.is_of_the_program():
            script = next(word for word in self.command if word.endswith("run_cli_tests.py"))
            return os.path.join(self.folder, os.path.dirname(script), f"cases_{self.command[self.command.index('--cases') + 1]}.py")
        return os.path.join(self.folder, next(word for word in self.command if not word.endswith("cmocka_tap.sh")))
