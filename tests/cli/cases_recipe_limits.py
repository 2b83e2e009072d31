"""What lists the modules of a sentence-transformers folder comes from elsewhere: it has limits of size, depth and place.

SPDX-License-Identifier: MIT
"""
import json
import os

from cases_folders import KIND
from helpers import DEMO, contains

POOLING = {"idx": 1, "name": "1", "path": "1_Pooling", "type": KIND + "Pooling"}


def linked_demo(bench):
    os.makedirs(bench.path("m/1_Pooling"))
    for name in os.listdir(DEMO):
        os.symlink(os.path.join(DEMO, name), bench.path(f"m/{name}"))
    bench.write("m/1_Pooling/config.json", '{"pooling_mode_cls_token": true}')
    return ["encode", bench.path("m"), "--text", "a", "-o", "v.npy"]


def test_limits_of_modules(bench):
    words = linked_demo(bench)
    bench.write("config.json", "{}")
    for modules, told in ((json.dumps([POOLING]) + " " * (16 << 20), "bytes of JSON, expected at most"), ("[" * 40 + "]" * 40, "nested deeper than 32"),
                          (json.dumps([0] * (3 << 19)), "values"), (json.dumps([POOLING] * 65), "65 modules, expected at most 64"), ("{}", "expected a JSON array"),
                          ('[{"path": "a", "path": "b"}]', "occurs twice"), (json.dumps([{**POOLING, "path": ".."}]), "expected the path of a folder inside, found '..'"),
                          (json.dumps([{**POOLING, "path": "1_Pooling/../.."}]), "expected the path of a folder inside"),
                          (json.dumps([{**POOLING, "path": bench.path("m/1_Pooling")}]), "expected the path of a folder inside")):
        bench.write("m/modules.json", modules)
        contains(bench.expect(3, *words).err, "modules.json", told)
    bench.write("m/modules.json", json.dumps([POOLING]))
    contains(bench.fine(*words).err, "vectors as modules.json", "cls")


def test_a_module_of_control_characters(bench):
    """They reach no terminal."""
    words = linked_demo(bench)
    os.mkdir(bench.path("m/1\x1b[31m"))
    bench.write("m/1\x1b[31m/config.json", '{"pooling_mode": ["cls", "mean"]}')
    bench.write("m/modules.json", json.dumps([{**POOLING, "path": "1\x1b[31m"}]))
    said = bench.expect(3, *words).err
    contains(said, "several poolings side by side")
    assert "\x1b" not in said, repr(said)
