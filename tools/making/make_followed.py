#!/usr/bin/env python3
"""Makes the tables of docs/followed.md from the lists in the code, so that page and program say the same.

    tools/making/make_followed.py [--check]

A table stands in the page between `<!-- NAME: made by tools/making/make_followed.py -->` and `<!-- end -->`; the prose around it is
written by hand. --check writes nothing and fails where a table is not what the code says, and where a key of config.json is called followed
but nobody reads it, or is read but not called followed.

SPDX-License-Identifier: MIT
"""
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "followed.md"
PLACE = re.compile(r"(<!-- ([a-z .-]+): made by tools/making/make_followed\.py -->\n)(.*?)(<!-- end -->\n)", re.S)
WORD = re.compile(r'"((?:[^"\\]|\\.)*)"|([A-Za-z_]\w*)|([({})\],])')
# Files that may read a key of config.json.
READERS = ("config.c", "wrapper.c", "train", "program/train")


def find(name):
    """Returns the only file of that name."""
    (path,) = [path for path in (ROOT / "core").rglob(name)]
    return path


class Source:
    """A C source without its comments."""

    def __init__(self, name):
        path = find(name)
        text = path.read_text(encoding="utf-8").replace("\\\n", " ")
        self.path, self.text = path.relative_to(ROOT).as_posix(), re.sub(r"/\*.*?\*/", "", text, flags=re.S)
        self.texts = {name: "".join(re.findall(r'"([^"]*)"', value)) for name, value in re.findall(r'^#define (\w+) +((?:"[^"]*"\s*)+)$', self.text, re.M)}

    def rows(self, begin, end):
        """Returns texts and names of each innermost pair of brackets between two patterns; a name that is a macro becomes its text."""
        found = re.search(f"{begin}(.*?){end}", self.text, re.S)
        if not found:
            raise SystemExit(f"{self.path}: no list that begins with {begin}")
        rows, row, cell, before = [], [], None, None
        for text, name, mark in (match.groups() for match in WORD.finditer(found.group(1))):
            if mark and mark in "({":
                row, cell, opened = [], None, before
            elif mark and mark in ")}":
                if row is not None:
                    rows.append((opened, [*row, cell]))
                row = None
            elif mark == ",":
                if row is not None:
                    row.append(cell)
                    cell = None
            elif name and name not in self.texts:
                cell = name if cell is None else cell
            else:
                cell = (cell or "") + (text if text is not None and not name else self.texts[name])
            before = name
        return rows

    def macro(self, name):
        """Returns the rows X(...) of a list."""
        return self.rows(rf"#define {name}\(X\)", "\n")

    def table(self, name):
        """Returns the rows of an array of structs, or the texts of an array of texts."""
        return [row for _, row in self.rows(rf"\b{name}\[\] = \{{", r"\n? *\};")]


def code(name):
    return f"`{name}`"


def table(head, rows):
    return "\n".join([f"| {' | '.join(head)} |", "|" + "---|" * len(head), *(f"| {' | '.join(row)} |" for row in rows)]) + "\n"


def grouped(pairs):
    """Returns rows (names, reason): all names with one reason, in the order of the first."""
    reasons = {}
    for name, reason in pairs:
        reasons.setdefault(reason, []).append(code(name))
    return [(", ".join(names), reason) for reason, names in reasons.items()]


def listed(names):
    return " ".join(code(name) for name in names) + "\n"


def config_keys():
    """Returns (use, key, why) for each key of the list."""
    source = Source("config_keys.c")
    generation = re.search(r"#define GENERATION\(X, key\) X\((\w+), key, \"(\w+)\"\)", source.text).groups()
    rows = [(generation[0], row[1], generation[1]) if head == "GENERATION" else tuple(row) for head, row in source.macro("CONFIG_KEYS")]
    assert len(rows) > 120 and all(len(row) == 3 for row in rows), rows
    return rows


def keys_of(use, head):
    return table(head, grouped((key, why) for of, key, why in config_keys() if of == use))


def leftovers():
    what = {"HARMLESS": "harmless: {}", "OFF": "note: turned off by {}"}
    rows = [(name + "*" if name.endswith(".") else name, what[use].format(", ".join(map(code, why.split(", "))) if use == "OFF" else why))
            for _, (use, name, why) in Source("tensor_account.c").macro("LEFTOVERS")]
    return table(("name", "what happens"), grouped(rows))


def folder_list(name, head, patterns=False):
    """Returns rows (file, what it is, what helps)."""
    def sentence(row):
        marker, key, what, helps = row
        return code(marker), what + (f"; the message says its {code(key)}" if key != "NULL" else ""), helps
    return table(head, map(sentence, Source("folder_kind.c").table(name)))


def folder_pairs(name, head):
    return table(head, ((code(row[0]), row[1]) for row in Source("folder_kind.c").table(name)))


def texts_of(file, name):
    return re.findall(r'"([^"]+)"', re.search(rf"\b{name}\[\] = \{{(.*?)\}};", Source(file).text, re.S).group(1))


def wrappers():
    rows = ((code(kind) if kind != "NULL" else "none, and no `hidden_size`", "" if kind == "NULL" else name, code(key) + (f", {code(inner)} in it" if inner != "NULL" else ""))
            for kind, name, key, inner in Source("wrapper.c").table("wrappers"))
    return table(("`model_type`", "class", "the model inside is named by"), rows)


def tokenizer_settings():
    rows = Source("tokenizer_keys.c").table("of_settings")
    said = [(name, "followed" if use == "USED" else f"harmless: {about}") for name, use, about in rows if use in ("USED", "HARMLESS")]
    for name, use, about in rows:
        if use == "ONE_OF":
            said.append((name, f"harmless if it is {' '.join(map(code, about.split()))}; noted otherwise"))
        elif use == "OFF":
            said.append((name, "noted if it says something" + (f": {about}" if about != "NULL" else "")))
    return table(("key", "what happens"), grouped(said))


def tokenizer_members():
    rows = Source("tokenizer_keys.c").table("of_pipeline")
    return table(("member", "what happens"), grouped((name, "followed, or refused by name" if use == "USED" else f"harmless: {about}") for name, use, about in rows))


def records(name):
    return [row for _, row in Source("record_keys.h").macro(name)]


def other_names(name):
    meant = {}
    for other, key in records(name):
        meant.setdefault(key, []).append(code(other))
    return table(("read is", "refused"), ((code(key), " ".join(others)) for key, others in meant.items()))


def lists():
    """Returns the source of each list."""
    rows = (("[config.json](#configjson)", ("config_keys.c",), "one note names them all"),
            ("[tensors](#tensors)", ("tensor_account.c",), "inside the encoder refused; beside it the business of others"),
            ("[folders](#folders)", ("folder_kind.c", "vector_recipe.c", "wrapper.c"), "not opened, so they change nothing"),
            ("[tokenizer files](#tokenizer-files)", ("tokenizer_keys.c",), "one note names them all"),
            ("[objects of texts](#objects-of-texts)", ("record_keys.h",), "one note a file names them"),
            ("[batches of ids](#batches-of-ids)", ("record_keys.h",), "refused"))
    places = (", ".join(code(find(name).relative_to(ROOT).as_posix()) for name in names) for _, names, _ in rows)
    return table(("what", "list", "keys, names, files on no list"), ((what, place, rest) for (what, _, rest), place in zip(rows, places)))


TABLES = {
    "lists": lists,
    "config.json followed": lambda: keys_of("FOLLOWED", ("followed", "for")),
    "config.json harmless": lambda: keys_of("HARMLESS", ("harmless", "why")),
    "config.json noted": lambda: keys_of("NOTED", ("noted if it says something", "the note")),
    "config.json refused": lambda: keys_of("REFUSED", ("refused if it says something", "expected")),
    "config.json wrappers": wrappers,
    "tensors left over": leftovers,
    "tensors of adapters": lambda: listed(row[0] for _, row in Source("tensor_account.c").macro("ADAPTERS")),
    "folders without config.json": lambda: folder_list("kinds", ("a folder with", "is", "what helps")),
    "folders with weights of others": lambda: folder_pairs("known", ("file", "the refusal says that it")),
    "folders with files of trainers": lambda: listed(texts_of("folder_kind.c", "none")),
    "folders with more than a model": lambda: folder_pairs("rest", ("file", "the note")),
    "tokenizers of others": lambda: folder_list("tokenizer_kinds", ("the only file of a tokenizer", "is", "what helps")),
    "tokenizer settings": tokenizer_settings,
    "tokenizer members": tokenizer_members,
    "record keys": lambda: table(("key of an object", ""), ((code(key), what) for key, what in records("RECORD_KEYS"))),
    "record names": lambda: other_names("RECORD_OTHER_NAMES"),
    "batch keys": lambda: listed(key for key, in records("BATCH_KEYS")),
    "batch beside": lambda: listed(key for key, in records("BATCH_BESIDE")),
    "batch results": lambda: listed(key + "*" for key, in records("BATCH_RESULTS")),
    "batch names": lambda: other_names("BATCH_OTHER_NAMES"),
}


def unread():
    """Returns listed keys that no reader names, and keys that config.c reads and the list lacks."""
    paths = [path for place in READERS for path in ([find(place)] if place.endswith(".c") else sorted((ROOT / place).rglob("*.c")))]
    named = {word for path in paths for word in re.findall(r'"(\w+)"', path.read_text(encoding="utf-8"))}
    followed = {key for use, key, _ in config_keys() if use == "FOLLOWED"}
    asked = set(re.findall(r'\b(?:read_\w+|present|json_object_get)\([\w>-]+, "(\w+)"', find("config.c").read_text(encoding="utf-8")))
    return [f"config_keys.c: {key} is called followed, but nobody reads it" for key in sorted(followed - named)] + \
           [f"config.c: reads {key}, which config_keys.c does not call followed" for key in sorted(asked - followed)]


def main():
    if sys.argv[1:] not in ([], ["--check"]):
        print(__doc__)
        return 2
    page = PAGE.read_text(encoding="utf-8")
    wrong = unread()
    there = [name for _, name, _, _ in PLACE.findall(page)]
    wrong += [f"docs/followed.md: the table '{name}' stands there {there.count(name)} times" for name in TABLES if there.count(name) != 1]
    wrong += [f"docs/followed.md: no table is called '{name}'" for name in there if name not in TABLES]
    made = PLACE.sub(lambda m: m[1] + "\n" + TABLES[m[2]]() + "\n" + m[4] if m[2] in TABLES else m[0], page)
    if made != page and not wrong:
        if sys.argv[1:]:
            wrong += [f"docs/followed.md: the table '{a[1]}' is not what the code says: tools/making/make_followed.py makes it again"
                      for a, b in zip(PLACE.findall(page), PLACE.findall(made)) if a[2] != b[2]]
        else:
            PAGE.write_text(made, encoding="utf-8")
    print(*wrong, sep="\n", end="\n" if wrong else "")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
