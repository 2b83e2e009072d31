"""What a program that was run says of its tests: (passed, failed, skipped) from its output.

Three languages: the Test Anything Protocol, a closing line `N passed, N failed, N skipped`, and an exit status alone.
SPDX-License-Identifier: MIT
"""
import re

CLOSING_LINE = re.compile(r"^(\d+) passed, (\d+) failed(?:, (\d+) skipped)?$", re.M)
TAP_PLAN = re.compile(r"^1\.\.(\d+)", re.M)
TAP_RESULT = re.compile(r"^(not )?ok\b(.*)$", re.M)
SKIPPED_STATUS = 77  # as in meson


def checked(counts, ended_well):
    """Returns counts that fail for a program without tests, or one that ended badly without a failure to show."""
    passed, failed, skipped = counts
    if failed == 0 and (not ended_well or passed + skipped == 0):
        failed = 1
    return passed, failed, skipped


def count_output(text, ended_well):
    """Returns the counts of a program with a closing line; without one, the program itself is one test."""
    lines = CLOSING_LINE.findall(text)
    return checked(tuple(int(number or 0) for number in lines[-1]) if lines else (int(ended_well), 0, 0), ended_well)


def count_several(text, ended_well, programs):
    """Returns the counts of a program that ran others, each of which must have had its closing line."""
    lines = CLOSING_LINE.findall(text)
    passed, failed, skipped = (sum(int(line[k] or 0) for line in lines) for k in range(3))
    return checked((passed, failed + max(0, programs - len(lines)), skipped), ended_well)


def count_tap(text, ended_well):
    """Counts of a program that speaks the Test Anything Protocol. A result that was planned and did not come has failed."""
    passed = failed = skipped = 0
    for negated, rest in TAP_RESULT.findall(text):
        if negated:
            failed += 1
        elif re.search(r"#\s*SKIP", rest, re.I):
            skipped += 1
        else:
            passed += 1
    plan = TAP_PLAN.search(text)
    missing = int(plan.group(1)) - passed - failed - skipped if plan else 1
    failed += max(missing, int(missing < 0))
    return checked((passed, failed, skipped), ended_well and not re.search(r"^Bail out!", text, re.M))


def count(text, status, tap=False, programs=1):
    """Returns the counts of a program that ended with this status; None if it was stopped."""
    if tap:
        return count_tap(text, status == 0)
    if programs > 1:
        return count_several(text, status == 0, programs)
    if status == SKIPPED_STATUS:
        return 0, 0, 1
    return count_output(text, status == 0)


def failures_in(text):
    """Returns the failures with their comments of a program that speaks the Test Anything Protocol; the end of other outputs."""
    found = re.findall(r"^not ok (?!.*# SKIP).*\n(?:#.*\n)*", text, re.M)
    return "".join(found) or "\n".join(text.rstrip().split("\n")[-25:])
