#!/usr/bin/env python3
"""Makes docs/deberta.1 from its prose, docs/deberta.1.in, and what the program says of its commands and options.

    tools/making/make_man.py [--check] [PROGRAM]

PROGRAM is build/deberta, with figures. --check writes nothing and fails where the page is not what the program says.
In docs/deberta.1.in three kinds of comments stand for what is made:

    .\\" commands: attention       usage and summary of each command of two words
    .\\" options: train mlm, ...   the options of these commands, each once, with the names of those that take it
    .\\" options: common           the options of all commands
    .\\" options: shared           options that are the same in several sections, which then name them only
    .\\" also seed: A sentence.    below options: what the page adds to the help of an option

A command whose options stand nowhere, or twice, is an error, as is a sentence about an option that is not there.

SPDX-License-Identifier: MIT
"""
import os
import re
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
PROSE, PAGE = (os.path.join(ROOT, "docs", name) for name in ("deberta.1.in", "deberta.1"))
COMMON = "common options"
ROW = re.compile(r"^  (?:-(\w),|   ) --([\w-]+)(?: (\S+))?(?:  +(.*)| (?=\S)(.*))?$")
DIRECTIVE = re.compile(r'^\.\\" (commands|options): (.*)\n((?:\.\\" also .*\n)*)', re.M)


class Program:
    """Holds commands in the program's order: their summaries, and their options as (group, letter, name, value, help)."""

    def __init__(self, path):
        self.path = path
        self.summaries, self.options, self.usages = {}, {}, {}
        for name, summary in re.findall(r"^  ([a-z-]+) +(\S.*)$", self.help().split("\n\ncommands:\n")[1].split("\n\n")[0], re.M):
            self.read(name, summary)
            also = re.search(r"\nalso \(each has its --help\):\n((?:  .*\n)+)", self.help(name))
            for line in re.findall(r"^  (\S.*(?:\n {33}.*)*)", also.group(1) if also else "", re.M):
                word = re.match(rf"{name} \S+", line).group()
                self.read(word, " ".join(line[len(word):].split()))

    def help(self, name=""):
        # Without COLUMNS, and into a pipe, lines are not folded to a terminal's width.
        plain = {key: value for key, value in os.environ.items() if key != "COLUMNS"}
        return subprocess.run([self.path, *name.split(), "--help"], capture_output=True, text=True, check=True, env=plain).stdout

    def read(self, name, summary):
        group, rows, text = None, [], self.help(name)
        for line in text.split("\n"):
            title, row = re.match(r"^([a-z][^\n]*):$", line), ROW.match(line)
            if title:
                group = title.group(1)
            elif row and group:
                rows.append([group, row.group(1) or "", row.group(2), row.group(3) or "", (row.group(4) or row.group(5) or "").strip()])
            elif re.match(r"^ {33}\S", line) and rows:
                rows[-1][4] = f"{rows[-1][4]} {line.strip()}".strip()
        self.summaries[name], self.options[name] = summary, rows
        self.usages[name] = re.match(r"usage: deberta (.*) \[options\]", text).group(1)


def sentence(text):
    is_word = re.match(r"[a-z]+(?![\w_])", text)  # not c2p, not input_ids
    return (text[:1].upper() if is_word else text[:1]) + text[1:] + ("" if text.endswith((".", ":")) else ".")


def roff(text):
    text = text.replace("\\", "\\e").replace("-", "\\-").replace("'", "\\(aq")
    return re.sub(r"`([^`]*)`", r"\\fB\1\\fR", re.sub(r"(?<![\w\\])(\\-\\-[a-z][\w\\-]*)", r"\\fB\1\\fR", text))


def entry(letter, name, value, text):
    short = f"\\fB\\-{letter}\\fR, " if letter else ""
    return f".TP\n{short}\\fB{roff('--' + name)[3:-3]}\\fR{f' {chr(92)}fI{roff(value)}{chr(92)}fR' if value else ''}\n{text}\n"


def by_first_word(commands):
    groups = {}
    for name in commands:
        groups.setdefault(name.split()[0], []).append(name)
    return groups


def takers_of(commands, section):
    """Which commands of a section take it, where that are not all and can be said in a line. All of the section that begin alike are called by that word."""
    if len(commands) == len(section) or len(commands) > 6:
        return ""
    whole = by_first_word(section)
    return "(" + ", ".join(word if len(names) > 1 and names == whole.get(word) else ", ".join([names[0], *(name.split()[-1] for name in names[1:])])
                           for word, names in by_first_word(commands).items()) + ") "


def options_of(program, commands, is_common=False):
    """Returns {name: {(letter, value, help): commands}}."""
    found = {}
    for command in commands:
        for group, letter, name, value, text in program.options[command]:
            if (group == COMMON) == is_common:
                found.setdefault(name, {}).setdefault((letter, value, text), []).append(command)
    return found


def shared_options(program, sections):
    """{(name, letter, value, help)} of the options that several sections would describe in the same words, for all of their commands that take them."""
    counts = {}
    for commands in sections:
        for name, texts in options_of(program, commands).items():
            if len(texts) == 1:
                key = name, *next(iter(texts))
                counts[key] = counts.get(key, 0) + 1
    return {key for key, count in counts.items() if count > 1}


def described(name, texts, section, also, above=False):
    """Describes an option. above: its help is among the shared options."""
    letter, value, _ = next(iter(texts))
    words = ["See SHARED OPTIONS."] if above else [takers_of(takers, section) + sentence(text) for (_, _, text), takers in texts.items()]
    return entry(letter, name, value, roff(" ".join(words + [also.pop(name)] if name in also else words)))


def option_entries(program, commands, also, shared):
    """Returns the options of a section, or of all commands, or those of several sections."""
    out, elsewhere = [], {}
    if commands == ["shared"]:
        out = [described(name, {(letter, value, text): []}, [], also) for name, letter, value, text in sorted(shared)]
    else:
        is_common = commands == ["common"]
        for name, texts in options_of(program, program.options if is_common else commands, is_common).items():
            above = not is_common and len(texts) == 1 and (name, *next(iter(texts))) in shared
            if above and name not in also:
                (takers,) = texts.values()
                elsewhere.setdefault(takers_of(takers, commands), []).append(f"--{name}")
            else:
                out.append(described(name, texts, [] if is_common else commands, also, above))
    if also:
        raise SystemExit(f"docs/deberta.1.in: {', '.join(commands)}: no option is called {', '.join(also)}")
    named = "; ".join(takers + ", ".join(names) for takers, names in elsewhere.items())
    return "".join(out) + (f".PP\nShared: {roff(named)}.\n" if named else "")


def make(program):
    with open(PROSE, encoding="utf-8") as file:
        prose = file.read()
    sections = {names: [one for name in names.split(", ")
                        for one in ([kind for kind in program.options if kind.startswith(name[:-1])] if name.endswith(" *") else [name])]
                for what, names, _ in DIRECTIVE.findall(prose) if what == "options"}
    shared = shared_options(program, [commands for names, commands in sections.items() if names not in ("common", "shared")])

    def fill(match):
        what, names, lines = match.groups()
        if what == "commands":
            return "".join(f".TP\n\\fBdeberta {roff(name)}\\fR {roff(program.usages[name].split(name + ' ', 1)[-1])}\n{roff(sentence(summary))}\n"
                           for name, summary in program.summaries.items() if name.startswith(names + " "))
        return option_entries(program, sections[names], dict(re.findall(r'^\.\\" also ([\w-]+): (.*)$', lines, re.M)), shared)

    page, named = DIRECTIVE.sub(fill, prose), [name for commands in sections.values() for name in commands]
    for name, rows in program.options.items():
        own = [row for row in rows if row[0] != COMMON]
        if named.count(name) != bool(own):
            raise SystemExit(f"docs/deberta.1.in: the options of {name} stand in it {named.count(name)} times")
        if f"deberta {roff(name)}" not in page:
            raise SystemExit(f"docs/deberta.1.in: deberta {name} has no section")
    return '.\\" Made by tools/making/make_man.py from docs/deberta.1.in and what the program says.\n' + page


def main():
    words = [word for word in sys.argv[1:] if word != "--check"]
    if len(words) > 1 or words[:1] in (["-h"], ["--help"]):
        print(__doc__)
        return 2
    page = make(Program(os.path.abspath(words[0] if words else os.path.join(ROOT, "build", "deberta"))))
    if "--check" not in sys.argv:
        with open(PAGE, "w", encoding="utf-8") as file:
            file.write(page)
        return 0
    with open(PAGE, encoding="utf-8") as file:
        written = file.read()
    if written == page:
        return 0
    differing = next((k for k, lines in enumerate(zip(written.split("\n"), page.split("\n"))) if lines[0] != lines[1]), 0)
    print(f"docs/deberta.1 is out of date from line {differing + 1} on: tools/making/make_man.py makes it again")
    return 1


if __name__ == "__main__":
    sys.exit(main())
