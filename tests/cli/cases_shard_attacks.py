"""A folder of shards comes from elsewhere: manifests whose digests fit, and say what is not so, are refused, and so is input that changed. An audit
runs no foreign command and draws what nobody knew, and shards of two builds of one version are told apart.

SPDX-License-Identifier: MIT
"""
import hashlib
import json
import os
import pathlib
import re
import shutil
import struct

from helpers import DEMO, check, contains, equal, other_build


def make_shard(bench, out, *options, text="a ship\nthe cat sat on the mat\n"):
    bench.write("one.txt", text)
    bench.fine("encode", DEMO, "--file", "one.txt", "--pool", "mean", *options, "--shards", "1", "--shard", "0", "-q", "-o", out)


def edit_manifest(path, change):
    """Changes the object and writes the digest anew, which has no key."""
    with open(path, encoding="utf-8") as file:
        manifest = json.load(file)
    del manifest["digest"]
    change(manifest)
    manifest["digest"] = hashlib.sha256(json.dumps(manifest, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()).hexdigest()
    with open(path, "w", encoding="utf-8") as file:
        json.dump(manifest, file)


def rewrite_rows(bench, folder, change):
    """Changes the bytes of the rows, and their digest in the manifest."""
    path = bench.path(f"{folder}/0-of-1.safetensors")
    content = change(bench.bytes(path))
    bench.write(path, content)
    return hashlib.sha256(content).hexdigest()


def set_in(part, name, value):
    def change(manifest):
        (manifest[part] if part else manifest)[name] = value
    return change


MANIFESTS = {
    "17 notes": set_in("layout", "notes", {str(k): "" for k in range(17)}), "3,000 notes": set_in("layout", "notes", {str(k): "" for k in range(3000)}),
    "a note of a number": set_in("layout", "notes", {"a": 1}), "a note of nothing": set_in("layout", "notes", {"a": None}),
    "notes in a list": set_in("layout", "notes", ["a"]), "no width": set_in("layout", "width", 0), "negative width": set_in("layout", "width", -1),
    "one column": set_in("layout", "width", 1), "a column less": set_in("layout", "width", 191), "2^60 columns": set_in("layout", "width", 1 << 60),
    "vectors of tokens": set_in("layout", "per_token", True), "windows": set_in("layout", "windows", True), "npy": set_in("layout", "format", "npy"),
    "more rows": set_in(None, "rows", 3), "fewer rows": set_in(None, "rows", 1), "negative rows": set_in(None, "rows", -1),
    "more vectors": set_in(None, "vectors", 3), "2^62 vectors": set_in(None, "vectors", 1 << 62), "fewer vectors": set_in(None, "vectors", 1),
    "more tokens": set_in(None, "tokens", 1 << 40), "negative tokens": set_in(None, "tokens", -5), "bad ones": set_in(None, "bad", 3),
    "negative bad ones": set_in(None, "bad", -1), "other bytes": set_in(None, "bytes", 7), "negative items": set_in(None, "items", -2),
    "2^62 items": set_in("corpus", "items", 1 << 62), "items in words": set_in("corpus", "items", "two"), "no hash": set_in("corpus", "hash", None),
    "a command of numbers": set_in(None, "command", [1, 2]), "problems": set_in(None, "problems", [["a", 1]]), "made": set_in(None, "made", "avx2"),
}


def test_manifests_that_say_what_is_not_so(bench):
    make_shard(bench, "v.safetensors")
    for name, change in MANIFESTS.items():
        shutil.copytree(bench.path("v.safetensors.shards"), bench.path("e.shards"))
        edit_manifest(bench.path("e.shards/0-of-1.json"), change)
        for wish in (["--verify"], ["--out", "joined.safetensors"]):
            result = bench.run("merge", "e.shards", *wish)
            assert result.code == 3 and result.err.count("\n") == 1, f"{name}\n{result.describe()}"
        shutil.rmtree(bench.path("e.shards"))
    assert "joined.safetensors" not in bench.files()


def test_rows_whose_header_is_another(bench):
    """A header's length that wraps, one that is longer or shorter, bytes behind the end: digests fit."""
    make_shard(bench, "v.safetensors")
    for change in (lambda b: struct.pack("<Q", 2**64 - 1) + b[8:], lambda b: struct.pack("<Q", 2**64 - 9) + b[8:],
                   lambda b: struct.pack("<Q", struct.unpack("<Q", b[:8])[0] + 64) + b[8:], lambda b: b + b"more", lambda b: b[:100], lambda b: b""):
        shutil.copytree(bench.path("v.safetensors.shards"), bench.path("e.shards"))
        digest = rewrite_rows(bench, "e.shards", change)
        size = os.path.getsize(bench.path("e.shards/0-of-1.safetensors"))
        edit_manifest(bench.path("e.shards/0-of-1.json"), lambda m: m.update(sha256=digest, bytes=size))
        contains(bench.expect(3, "merge", "e.shards", "--out", "joined.safetensors").err, "0-of-1.safetensors is not of the size and the header")
        shutil.rmtree(bench.path("e.shards"))


def test_items_that_count_beyond_words(bench):
    """Tokens of a row whose bytes would wrap."""
    make_shard(bench, "v.safetensors")
    for line in ("0 %d 0 0\n1 4 0 0\n" % (1 << 62), "0 %d 0 0\n1 %d 0 0\n" % (1 << 63, 1 << 63), "0\n1\n", "0 4 0 0\n"):
        shutil.copytree(bench.path("v.safetensors.shards"), bench.path("e.shards"))
        bench.write("e.shards/0-of-1.items", line)
        edit_manifest(bench.path("e.shards/0-of-1.json"), lambda m: m.update(items_sha256=hashlib.sha256(line.encode()).hexdigest()))
        bench.expect(3, "merge", "e.shards", "--out", "joined.safetensors")
        shutil.rmtree(bench.path("e.shards"))


def test_input_of_the_same_size_is_seen(bench):
    """A finished shard is that of its input, not of one with a word exchanged."""
    bench.write("e.txt", "the man went home\nthe cat sat\n")
    commands = [["encode", DEMO, "--file", "e.txt", "--pool", "mean", "--shards", "1", "--shard", "0", "-o", "e.npy"]]
    for command in commands:
        bench.fine(*command)
        contains(bench.fine(*command).err, "nothing is left to do")
        bench.write("e.txt", "the man went away\nthe cat sat\n")
        contains(bench.expect(3, *command).err, "was made of other input (the texts of its files differ)")
        bench.write("e.txt", "the man went home\nthe cat sat\n")
        bench.fine(*command)


def test_journals_that_say_what_is_not_so(bench):
    bench.write("c.txt", "a ship\n" * 3)
    command = ["encode", DEMO, "--file", "c.txt", "--pool", "mean", "--shards", "1", "--shard", "0", "-q", "-o", "j.npy"]
    bench.fine(*command)
    settings = bench.load("j.npy.shards/0-of-1.json")["settings"]
    shutil.rmtree(bench.path("j.npy.shards"))
    fine = {"texts": 1, "bad": 0, "bytes": 128 + 4 * 192, "hash": "0" * 16, "rows": [[0, 4, 0, 0]]}
    for change in ({"texts": -1}, {"bad": -1}, {"bad": 2}, {"bytes": -1}, {"bytes": 128}, {"bytes": 1 << 62}, {"rows": [[0, -4, 0, 0]]},
                   {"rows": [[0, 1 << 62, 0, 0]]}, {"rows": [[1, 4, 0, 0]]}, {"rows": {"a": 1}}, {"rows": [[0, 4, 9, 1]]}, {"rows": [[0, 4, 0, 0, 9]]},
                   {"problems": [["a"]]}, {"problems": "a"}):
        os.mkdir(bench.path("j.npy.shards"))
        bench.write("j.npy.shards/0-of-1.npy.part", bytes(128 + 4 * 192))
        bench.write("j.npy.shards/0-of-1.npy.part.journal", json.dumps(settings) + "\n" + json.dumps({**fine, **change}) + "\n")
        result = bench.run(*command)
        assert result.code == 3 and "is no journal of this program" in result.err, f"{change}\n{result.describe()}"
        shutil.rmtree(bench.path("j.npy.shards"))


def recorded(change):
    def edit(manifest):
        manifest["command"] = change(manifest["command"])
    return edit


RECORDED = {
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
    make_shard(bench, "v.npy")
    before = sorted(bench.files())
    contains(bench.fine("merge", "v.npy.shards", "--audit", "100%").out, "audit: 2 of 2 items", "the same bytes")
    for name, change in RECORDED.items():
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
    make_shard(bench, "v.npy")
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
    make_shard(bench, "v.npy", text="".join(f"the ship of {k}\n" for k in range(60)))
    seeds = {bench.json("merge", "v.npy.shards", "--audit", "40%")["seed"] for _ in range(3)}
    equal(len(seeds), 3, f"seeds {seeds}")
    told = bench.fine("merge", "v.npy.shards", "--audit", "40%").out
    found = re.search(r"(audit: \d+ of 60 items, drawn with --seed (\d+), .*)", told)
    check(found, told)
    contains(bench.fine("merge", "v.npy.shards", "--audit", "40%", "--seed", found[2]).out, found[1])


def build_of(bench, folder):
    return bench.load(f"{folder}/0-of-2.json")["settings"]["version"]


def test_builds_of_one_version(bench):
    """A shard of another build is not joined, nor is a finished shard or an output that another build began taken for this one's."""
    program, build = other_build(bench, bench.program, "other")
    bench.write("two.txt", "a ship\nthe cat sat on the mat\n")
    words = ["encode", DEMO, "--file", "two.txt", "--pool", "mean", "--shards", "2", "-q", "-o", "b.npy"]
    bench.fine(*words, "--shard", "0")
    equal(build_of(bench, "b.npy.shards"), build)
    own, bench.program = bench.program, program
    for shard in ("0", "1"):
        contains(bench.expect(3, *words, "--shard", shard).err, "0-of-2.json was made with another value of 'version'")
    bench.fine(*words[:-1], "c.npy", "--shard", "1")
    bench.program = own
    for path in pathlib.Path("c.npy.shards").iterdir():
        shutil.copy(path, "b.npy.shards")
    contains(bench.expect(3, "merge", "b.npy.shards", "--verify").err, "shard 1 does not belong to shard 0: its version is", build, "zzz")
