"""Figures stand side by side in one page: no id of one is an id of another, and the same figure is the same file.

SPDX-License-Identifier: MIT
"""
import re

from helpers import DEMO, check, equal, needs_figures

REQUIRES = [needs_figures]


def ids(svg):
    return re.findall(r' id="([^"]*)"', svg)


def test_two_figures_have_distinct_ids(bench):
    words = {"a": ["query", "--query", "1"], "b": ["distance", "--layers", "2", "--heads", "0,1"], "c": ["distance", "--layers", "1", "--heads", "0,1"]}
    found = {}
    for name, (kind, *options) in words.items():
        for out in (name, name + "again"):
            bench.fine("attention", kind, DEMO, "--text", 'a new <clipPath id="clip-0000000000000000-0"> store', *options, "--anonymous", "-q", "-o", f"{out}.svg")
        found[name] = bench.read(f"{name}.svg")
        equal(bench.read(f"{name}again.svg"), found[name])
        check(ids(found[name]), "a figure with clips")
    joined = "".join(found.values())
    equal(len(ids(joined)), len(set(ids(joined))))
    equal(set(re.findall(r'url\(#([^)]*)\)"', joined)), set(ids(joined)))
