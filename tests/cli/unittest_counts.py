"""The tests of a module of unittest, counted as every test program here does: the last line is `N passed, N failed, N skipped`.

SPDX-License-Identifier: MIT
"""
import sys
import unittest


def run_tests(module="__main__"):
    """1 if one failed, else 0."""
    suite = unittest.defaultTestLoader.loadTestsFromModule(sys.modules[module])
    result = unittest.TextTestRunner(stream=sys.stdout).run(suite)
    failed = len(result.failures) + len(result.errors)
    print(f"{result.testsRun - failed - len(result.skipped)} passed, {failed} failed, {len(result.skipped)} skipped")
    return 1 if failed else 0
