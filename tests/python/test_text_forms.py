"""Drawn texts and pairs in every container that Python has: the same bytes as a list. SPDX-License-Identifier: MIT"""
import collections
import datetime
import os
import random

import numpy as np

import deberta_c

SEED = int(os.environ.get("DEBERTA_TEST_DAY") or datetime.date.today().toordinal())
WORDS = "a new store opened beside the mall old captain sea ä 日本 it's , .".split()


def containers(texts, pairs):
    """Functions that put texts (pairs: tuples) into something else."""
    def of_objects(items):
        array = np.empty(len(items), object)
        array[:] = items
        return array
    found = {"list": list, "objects": of_objects, "user list": collections.UserList}
    if not pairs:
        found |= {"array": np.array, "strings": lambda items: [np.str_(item) for item in items]}
    try:
        import datasets
        if not pairs:
            found |= {"column": lambda items: datasets.Dataset.from_dict({"text": items})["text"],
                      "slice": lambda items: datasets.Dataset.from_dict({"text": items})[:]["text"],
                      "numpy": lambda items: datasets.Dataset.from_dict({"text": items}).with_format("numpy")[:]["text"]}
    except ImportError:
        pass
    try:
        import pandas
        found["series"] = lambda items: pandas.Series(items, index=range(7, 7 + len(items)))
    except ImportError:
        pass
    return found


def test_drawn_texts_in_every_container(demo):
    draw = random.Random(SEED)
    calls = {"tokenize": lambda texts: [list(one.tokens) for one in demo.tokenize(texts)],
             "encode": lambda texts: [row.tobytes() for row in demo.encode(texts)["hidden_states.5"]],
             "classify": demo.classify}
    for case in range(60):
        pairs = case % 3 == 2
        one = lambda: " ".join(draw.choices(WORDS, k=draw.randint(1, 7)))
        texts = [(one(), one()) if pairs else one() for _ in range(draw.randint(1, 4))]
        name, call = draw.choice(sorted(containers(texts, pairs))), draw.choice(sorted(calls))
        given = containers(texts, pairs)[name](texts)
        assert calls[call](given) == calls[call](texts), (SEED, case, name, call, texts)
