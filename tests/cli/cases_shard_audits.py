"""An audit runs no foreign command and draws what nobody knew, and shards of two builds of one version are told apart.

SPDX-License-Identifier: MIT
"""
import json
import os
import re
import shutil

from cases_shard_attacks import edit_manifest, set_in
from helpers import DEMO, check, contains, equal


def make_shard(bench, out="v.npy", text="a ship\nthe cat sat on the mat\n"):
    bench.write("one.txt", text)
    bench.fine("encode", DEMO, "--file", "one.txt", "--pool", "mean", "--shards", "1", "--shard", "0", "-q", "-o", out)


def recorded(change):
    def edit(manifest):
        manifest["command"] = change(manifest["command"])
    return edit


COMMANDS = {
    "help": recorded(lambda c: [c[0], "--help"]), "help behind": recorded(lambda c: [*c, "--help"]), "help of a letter": recorded(lambda c: [*c, "-h"]),
    "version": recorded(lambda c: [c[0], "--version"]), "version behind": recorded(lambda c: [*c, "--version"]),
    "another command": recorded(lambda c: ["info", *c[1:]]), "no shard's command": recorded(lambda c: ["merge", "v.npy.shards"]),
    "an output": recorded(lambda c: [*c, "--out", "o.npy"]), "an output by its letter": recorded(lambda c: [*c, "-oo.npy"]),
    "an output with =": recorded(lambda c: [*c, "--out=o.npy"]), "resume": recorded(lambda c: [*c, "--resume"]), "another pool": recorded(lambda c: [*c, "--pool", "cls"]),
    "an unknown option": recorded(lambda c: [*c, "--nothing"]), "a value that lacks": recorded(lambda c: [*c, "--file"]),
    "standard input": recorded(lambda c: ["-" if word == "one.txt" else word for word in c]), "two arguments": recorded(lambda c: [c[0], "x", *c[1:]]),
    "dashes": recorded(lambda c: [*c, "--"]), "no word": recorded(lambda c: []), "the name alone": recorded(lambda c: c[:1]), "shards": recorded(lambda c: [*c, "--shards", "2"]),
    "no settings": lambda m: m["settings"].pop("options"), "a model of an option": recorded(lambda c: [c[0], "--help", *c[2:]]),
    "another command in the settings": lambda m: m["settings"].update(command="classify"),
}


def test_a_recorded_command_is_not_run(bench):
    """Only the options that made the rows are taken from a manifest; whatever else it says is refused, and nothing is read, printed or written."""
    make_shard(bench)
    before = sorted(bench.files())
    contains(bench.fine("merge", "v.npy.shards", "--audit", "100%").out, "audit: 2 of 2 items", "the same bytes")
    for name, change in COMMANDS.items():
        shutil.copytree(bench.path("v.npy.shards"), bench.path("e.shards"))
        edit_manifest(bench.path("e.shards/0-of-1.json"), change)
        result = bench.run("merge", "e.shards", "--audit", "100%", stdin=b"a ship\n")
        assert result.code == 3 and result.out == "" and result.err.count("\n") == 1, f"{name}\n{result.describe()}"
        shutil.rmtree(bench.path("e.shards"))
    equal(sorted(bench.files()), before)


def test_a_recorded_value_is_wrong(bench):
    """It is the manifest that is malformed, and not the command line."""
    def pool(manifest):
        for words in (manifest["command"], manifest["settings"]["options"]):
            words[words.index("mean")] = "nonsense"
    make_shard(bench)
    for change, word in ((pool, "--pool"), (recorded(lambda c: [*c, "--batch-tokens", "x"]), "--batch-tokens"), (recorded(lambda c: [*c, "--threads", "-1"]), "--threads")):
        shutil.copytree(bench.path("v.npy.shards"), bench.path("e.shards"))
        edit_manifest(bench.path("e.shards/0-of-1.json"), change)
        contains(bench.expect(3, "merge", "e.shards", "--audit", "100%").err, word)
        shutil.rmtree(bench.path("e.shards"))


def test_an_audit_of_standard_input(bench):
    """The input is read again where the command line says so."""
    text = b"a ship\nthe cat sat on the mat\n"
    bench.fine("encode", DEMO, "--file", "-", "--pool", "mean", "--shards", "1", "--shard", "0", "-q", "-o", "s.npy", stdin=text)
    contains(bench.expect(3, "merge", "s.npy.shards", "--audit", "100%", stdin=text).err, "made of standard input: give --file -")
    contains(bench.fine("merge", "s.npy.shards", "--audit", "100%", "--file", "-", stdin=text).out, "audit: 2 of 2 items")


def test_an_audit_draws_what_nobody_knew(bench):
    """Without --seed the draw is another each time; the seed that is printed repeats it."""
    make_shard(bench, text="".join(f"the ship of {k}\n" for k in range(60)))
    seeds = {bench.json("merge", "v.npy.shards", "--audit", "40%")["seed"] for _ in range(3)}
    equal(len(seeds), 3, f"seeds {seeds}")
    told = bench.fine("merge", "v.npy.shards", "--audit", "40%").out
    found = re.search(r"(audit: \d+ of 60 items, drawn with --seed (\d+), .*)", told)
    check(found, told)
    contains(bench.fine("merge", "v.npy.shards", "--audit", "40%", "--seed", found[2]).out, found[1])


def build_of(bench, folder):
    with open(bench.path(f"{folder}/0-of-2.json"), encoding="utf-8") as file:
        return json.load(file)["settings"]["version"]


def other_build(bench, program, name):
    """The same program, as if another commit had been built."""
    with open(program, "rb") as file:
        content = file.read()
    build = re.search(rb"\d+\.\d+\.\d+ \(([^()\0]+)\)\0", content)
    check(build, f"{program} does not say which build it is")
    with open(name, "wb") as file:
        file.write(content.replace(build[0], build[0].replace(build[1], b"z" * len(build[1]))))
    os.chmod(name, 0o755)
    return os.path.abspath(name), build[0][:-1].decode()


def test_builds_of_one_version(bench):
    """A shard of another build is not joined, nor is a finished shard or an output that another build began taken for this one's."""
    program, build = other_build(bench, bench.program, "other")
    bench.write("two.txt", "a ship\nthe cat sat on the mat\n")
    words = ["encode", DEMO, "--file", "two.txt", "--pool", "mean", "--shards", "2", "-q", "-o", "b.npy"]
    bench.fine(*words, "--shard", "0")
    equal(build_of(bench, "b.npy.shards"), build)
    own, bench.program = bench.program, program
    bench.fine(*words, "--shard", "1")
    contains(bench.expect(3, *words, "--shard", "0").err, "was made with another value of 'version'")
    bench.program = own
    contains(bench.expect(3, "merge", "b.npy.shards", "--verify").err, "shard 1 does not belong to shard 0: its version is", build, "zzz")
