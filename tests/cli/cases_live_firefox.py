"""The page that computes in Firefox, as cases_live_page.py has it in Chromium. Skipped where there is no Firefox or no module.

SPDX-License-Identifier: MIT
"""
from unittest import mock

import cases_live_folders as folders
import cases_live_page as live
from firefox import Firefox, find_firefox

TESTS = (live.test_bits_of_typed_sentences, live.test_ablation_is_that_of_the_program, live.test_keys_alone, live.test_browsers_that_lack_something,
         live.test_first_screen, folders.test_folder_of_the_reader, folders.test_other_model, folders.test_folders_that_cannot_be_used)


def in_firefox(test):
    def run(bench):
        with mock.patch.multiple(live.LivePage, kind=Firefox, find=staticmethod(find_firefox), name="Firefox"):
            test(bench)
    return run


def tests(_settings):
    for test in TESTS:
        yield "live-firefox/" + test.__name__[len("test_"):].replace("_", "-"), in_firefox(test)
