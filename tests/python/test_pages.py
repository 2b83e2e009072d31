"""Falsified pages are noticed: digits, signs, exchanged rows and words of conclusions. SPDX-License-Identifier: MIT"""
import random
import re
import sys

import pytest

from conftest import ROOT

sys.path.insert(0, str(ROOT / "tools" / "gates"))
guard = pytest.importorskip("guard")
SEED = 20260411
PLACES = 240
LEAST = 0.95  # of the numbers with a decimal point are tied to a source
OPPOSITES = dict(pair for one, other in (("more", "less"), ("higher", "lower"), ("better", "worse"), ("no", "a"), ("worst", "best"), ("largest", "smallest"),
                                         ("always", "never"), ("farther", "nearer"), ("lowest", "highest"), ("most", "least")) for pair in ((one, other), (other, one)) if one != "a")
OPPOSITES.pop("a", None)
STUDIES = [page for page in guard.pages() if page.startswith("docs/studies/") and not page.endswith("README.md")]
SOURCES = guard.Sources()
TIES = [line.split("\t") for line in (ROOT / guard.TIES).read_text(encoding="utf-8").splitlines() if not line.startswith("#")]


def text_of(page):
    return (ROOT / page).read_text(encoding="utf-8")


def places(page):
    """(kind, page, line number, begin, end, other text) of what can be falsified in a page: results of its blocks, rows of its tables, numbers and words of tied sentences."""
    text = text_of(page)
    lines = text.splitlines()
    own = [SOURCES[name] for names in guard.SOURCES.findall(text) for name in names.split()]
    headers = {rows[0] for source in own for _, rows in source.tables}
    for row in TIES:
        if row[0] == page:
            yield from tied(row[1], text)
    for begin, block in guard.blocks(text):
        table = block[0].lstrip().startswith("|")
        stated = guard.stated_numbers(block, begin, guard.section_numbers(text))
        for line, number in stated:
            for found in re.finditer(rf"(?<![\d.,]){re.escape(number)}(?![\d.])", lines[line - 1]):
                yield "digit", page, line, found.start(), found.end(), None
                if number[0] in "+-−":
                    yield "sign", page, line, found.start(), found.start() + 1, "-" if number[0] == "+" else "+"
        if table and guard.plain(block[0]) in headers:
            for k in range(2, len(block)):
                for found in re.finditer(r"(?<![\w.,])\d[\d,]*(?![\w]|[.,]\d)", lines[begin + k]):
                    yield "whole", page, begin + k + 1, found.start(), found.end(), None
        if table:
            for k in range(2, len(block) - 1):
                one, two = (begin + k, begin + k + 1)
                if stated and lines[one].lstrip().startswith("|") and lines[two].lstrip().startswith("|") and rest(lines[one]) != rest(lines[two]):
                    yield "rows", page, one + 1, 0, 0, None


def tied(words, text):
    """A number of a tied sentence, or a word that has an opposite, in the one line where it stands with the word before it."""
    page = next(row[0] for row in TIES if row[1] == words)
    opposites = [found for found in re.finditer(r"(?<=\s)([a-z]+)\b", words) if found[1] in OPPOSITES]
    for kind, found in [*(("whole", found) for found in guard.TIED.finditer(words)), *(("word", found) for found in opposites)]:
        before = (guard.TIED.sub(r"\1", words[:found.start()]).split() or [""])[-1]
        at = [(k, match) for k, line in enumerate(text.splitlines()) for match in re.finditer(rf"{re.escape(before)} {re.escape(found[1])}(?![\d.,]*\w)", line)]
        if before and len(at) == 1:
            yield kind, page, at[0][0] + 1, at[0][1].start() + len(before) + 1, at[0][1].end(), OPPOSITES.get(found[1])


def rest(line):
    return line.split("|")[2:]


def falsified(place, draw):
    kind, page, line, begin, end, other = place
    lines = text_of(page).splitlines()
    old = lines[line - 1]
    if kind in ("digit", "whole"):
        at = draw.choice([k for k in range(begin, end) if old[k].isdigit()])
        lines[line - 1] = old[:at] + draw.choice([d for d in "0123456789" if d != old[at]]) + old[at + 1:]
    elif kind == "rows":  # what the first row says goes to the second, and the other way round
        one, two = old.split("|"), lines[line].split("|")
        lines[line - 1], lines[line] = "|".join(one[:2] + two[2:]), "|".join(two[:2] + one[2:])
    else:
        lines[line - 1] = old[:begin] + other + old[end:]
    return "\n".join(lines) + "\n"


def noticed(text, sources, page):
    return any(wrong for _, _, wrong in guard.check_page(text, sources, page))


def test_pages_state_what_their_sources_say():
    sources = guard.Sources()
    wrong = [f"{page}:{w.line}: {w.stated}; found {w.found}; {w.source}" for page in guard.pages() for _, _, w in guard.check_page(text_of(page), sources, page) if w]
    assert not wrong, wrong


def test_falsified_places_are_noticed():
    sources, draw = guard.Sources(), random.Random(SEED)
    by_kind = {}
    for page in guard.pages():
        for place in places(page):
            by_kind.setdefault(place[0], []).append(place)
    count = {"digit": 90, "whole": 60, "sign": 40, "rows": 30, "word": PLACES - 220}
    missed, seen = [], []
    for kind, wanted in count.items():
        drawn = draw.sample(by_kind[kind], min(wanted, len(by_kind[kind])))
        seen += drawn
        missed += [place for place in drawn if not noticed(falsified(place, draw), sources, place[1])]
    print(f"seed {SEED}: {len(seen) - len(missed)} of {len(seen)} falsified places noticed; missed: {missed}")
    assert len(seen) >= 0.95 * PLACES
    assert len(missed) <= 0.05 * len(seen), missed


def test_most_numbers_are_tied():
    sources = guard.Sources()
    found = [(count, tied) for page in guard.pages() for count, tied, _ in guard.check_page(text_of(page), sources, page)]
    assert sum(tied for _, tied in found) >= LEAST * sum(count for count, _ in found)
