"""What is written about the program against what it says of itself: the man page, the README, the help and completion scripts.
SPDX-License-Identifier: MIT
"""
import glob
import json
import os
import re
import shutil
import subprocess
import sys
from unittest import SkipTest

from helpers import DEMO, needs_figures

OPTION = re.compile(r"^  (?:-(\w),|   ) --([\w-]+)(?: (\S+))? ", re.M)


def commands_of(bench):
    """From `deberta --help` and, for commands of two words, that of the first: {name: summary}."""
    commands = dict(re.findall(r"^  (\S+) +(.*)$", bench.fine("--help").out.split("\ncommands:\n")[1].split("\n\n")[0], re.M))
    for name in list(commands):
        also = bench.fine(name, "--help").out.partition("\nalso (each has its --help):\n")[2].split("\n\n")[0]
        commands.update(re.findall(r"^  (\S+ \S+) +(.*)$", re.sub(r"\n {33}(?=\S)", " ", also), re.M))
    return commands


def options_of(text, heading):
    """{name: (letter, metavar)} under a heading of a help text."""
    if heading not in text:
        return {}
    block = text.split(heading)[1].split("\n\n")[0] + "\n"
    block = re.sub(r"\n {33}(?=\S)", " ", block)  # long texts are wrapped
    found = {name: (letter, value) for letter, name, value in OPTION.findall(block)}
    assert len(found) == len(block.strip("\n").split("\n")), f"a line of the help is no option:\n{block}"
    return found


def own_options(text):
    """Those of a command, under whatever titles: every block of options but the common ones."""
    titles = re.findall(r"\n\n?([a-z][^\n]*):\n(?= +-)", text)
    return {name: found for title in titles if title != "common options" for name, found in options_of(text, f"\n{title}:\n").items()}


def test_man_page(bench):
    """The committed page is what the program says, with the prose of docs/deberta.1.in, and no option of training stands in it twice."""
    if "attention" not in commands_of(bench):
        raise SkipTest("built without figures: the page describes the whole program")
    done = subprocess.run([sys.executable, os.path.join(bench.root, "tools", "making", "make_man.py"), "--check", bench.program],
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    assert done.returncode == 0, done.stdout
    page = bench.read(os.path.join(bench.root, "docs", "deberta.1"))
    for word in ("DEBERTA_ISA", "EXIT STATUS", "SIGPIPE"):
        assert word in page, word
    assert page.count("Write a checkpoint after step N") == page.count("fB\\-\\-layer\\-decay") == 1


def test_commands_without_ablate(bench):
    """A command that runs a model takes --ablate, or the page names it and it says why it does not."""
    page = bench.read(os.path.join(bench.root, "docs", "deberta.1.in"))
    excepted = set(re.findall(r"fB([a-z]+)", re.search(r"in every command that runs a model but (.*)\. An item is", page)[1]))
    found = set()
    for name in commands_of(bench):
        said = bench.fine(*name.split(), "--help").out
        runs = re.search(r"^ +(-\w, )?--isa ", said, re.M) and "--memory-limit " in said and name not in ("info", "pack")
        if runs and " --ablate " not in said:
            found.add(name.split()[0])
            done = bench.run(*name.split(), DEMO, "--ablate", "c2p@all")
            assert re.match(rf"deberta {name}: unknown option '--ablate'; \w.*\n", done.err), done.err
    assert found == excepted & {name.split()[0] for name in commands_of(bench)}, (found, excepted)


def test_layers_that_nobody_chose(bench):
    """Which heads a kind of figure draws by itself is in its help, and on the page of figures."""
    needs_figures(bench)
    page = bench.read(os.path.join(bench.root, "docs", "figures.md"))
    whole = re.search(r"Without `--layers` and `--heads` it is layer 0, head 0,.*?;(.*?) take all layers and all heads", page, re.S)[1]
    for name in commands_of(bench):
        said = bench.fine(*name.split(), "--help").out if name.startswith("attention") else ""
        if " --layers " in said:
            default = "all" if f"`{name.split()[-1]}`" in whole else "0"
            for option in ("layers", "heads"):
                assert re.search(rf"^ +--{option} LIST .* \(default {default}\)$", said, re.M), (name, option, default)
    numbers = [bench.fine("attention", kind, DEMO, "--text", "a new store", "--numbers", f"{kind}.csv") and bench.read(f"{kind}.csv") for kind in ("lines", "entropy")]
    assert [len(set(re.findall(r"^(\d+),(\d+),", text, re.M))) for text in numbers] == [1, 15], numbers[0][:200] + numbers[1][:200]


def needs_tool(name):
    if not shutil.which(name):
        raise SkipTest(f"{name} is not installed")


def test_man_page_form(bench):
    needs_tool("groff")
    with open(os.path.join(bench.root, "docs", "deberta.1"), "rb") as page:
        done = subprocess.run(["groff", "-man", "-Tutf8", "-ww", "-z"], stdin=page, stderr=subprocess.PIPE, check=False)
    assert done.returncode == 0 and not done.stderr, done.stderr.decode()


# Of which a sweep takes several values where other commands take one.
SEVERAL_VALUES = ("batch", "depth", "isa", "threads", "tokens")
# What is computed again: a share of a corpus, or parts of a run.
TWO_MEANINGS = ("audit",)


def test_help_texts(bench):
    """Pleasant to read: lines fit, sentences have a form, examples are real commands, one option is called the same everywhere."""
    commands, letters, values = commands_of(bench), {}, {}
    pages = {name: bench.fine(*name.split(), "--help").out for name in commands}
    for name, summary in commands.items():
        text = pages[name]
        assert text == bench.fine("help", *name.split()).out == bench.fine(*name.split(), "-h").out
        assert text.startswith(f"usage: deberta {name} ") and summary in text
        assert not summary.endswith(".") and summary[0].islower(), summary
        for line in text.split("\n"):
            assert len(line) <= 125 and line == line.rstrip() and "\t" not in line, line
        for option, (letter, value) in {**options_of(text, "\ncommon options:\n"), **own_options(text)}.items():
            if letter:
                assert letters.setdefault(letter, option) == option, f"-{letter} is --{letters[letter]} and, in {name}, --{option}"
            if option not in TWO_MEANINGS and (value != "LIST" or option not in SEVERAL_VALUES):
                known = values.setdefault(option, (value, name))
                assert known[0] == value, f"--{option} takes {value or 'nothing'} in {name}, {known[0] or 'nothing'} in {known[1]}: another meaning wants another name"
        examples = [line.split("#")[0].strip() for line in re.split(r"\nexamples?:\n", text)[1].split("\n") if "deberta " in line and line.startswith("  ")]
        assert any(f"deberta {name} " in example + " " for example in examples), f"{name} has no example"
        for example in examples:  # some make what the command reads
            called = max((word for word in commands if f"deberta {word} " in example + " "), key=len)
            assert set(re.findall(r" --([\w-]+)", example)) <= {option[1] for option in OPTION.findall(pages[called])}, example
    assert bench.fine("--help").out == bench.fine("help").out == bench.fine("-h").out
    assert re.fullmatch(r"deberta \d+\.\d+\.\d+\n", bench.fine("--version").out) and bench.fine("-V").out == bench.fine("--version").out


def test_claims(bench):
    """Every claim has a verdict that the table repeats, and commands that exist with options that exist."""
    text = bench.read(os.path.join(bench.root, "docs", "claims.md"))
    head, short = text.split("\n## ")[0], text.split("\n## Claims 26 to ")[1].split("\n## ")[0]
    sections = re.split(r"^## (?=\d+\.)", text.replace(short, ""), flags=re.M)[1:]
    verdicts = {number: verdict for verdict, numbers in re.findall(r"^\| (true|false|conditional|open) \| ([\d, ]+) \|$", head, re.M) for number in numbers.split(", ")}
    rows = re.findall(r"^\| (\d+) \| ([PRIKNV, ]+) \| ([^|]+) \| (true|false|conditional|open)[^|]* \| ([^|]{4,}) \|$", short, re.M)
    assert len(rows) == len(re.findall(r"^\| \d+ \|", short, re.M))
    numbers = [*sorted(map(int, verdicts)), *(int(row[0]) for row in rows)]
    assert len(numbers) >= 53 and numbers == list(range(1, len(numbers) + 1)), numbers
    verdicts |= {row[0]: row[3] for row in rows}
    named = [int(section.split(".")[0]) for section in sections]
    assert named[: len(numbers) - len(rows)] == numbers[: len(numbers) - len(rows)] and set(named) <= set(numbers), named
    faults = [line.split()[0] for line in bench.fine("verify", "--mutate", "list").out.splitlines()]
    for section in sections:
        number = section.split(".")[0]
        found = re.findall(r"\*\*(True|False|Conditional|Open)\*\*", section) or [row[3] for row in rows if row[0] == number]
        assert [f.lower() for f in found] == [verdicts[number]], (number, found, verdicts.get(number))
        lines = re.findall(r"^    (\S.*)$", section, re.M)
        assert lines or "arxiv.org/abs/" in section, f"claim {number} has neither a command nor a source"
        for name in re.findall(r"--mutate (\S+)", "\n".join(lines)):
            assert name in faults, f"claim {number}: no fault is called {name}"
        for words in (line.split() for line in lines):
            if words[0] != "deberta":
                assert os.path.exists(os.path.join(bench.root, words[1] if words[0] == "python3" else "tests/golden/golden.c")), words
                continue
            page = bench.fine(*words[1:2], "--help").out
            for option in re.findall(r" (--[a-z-]+)", " ".join(words)):
                assert f" {option} " in page, (number, option)


def anchors_of(text):
    """The names that a page's headings get on the web: lower case, without punctuation, blanks as dashes."""
    titles = re.findall(r"^#+ (.*)$", re.sub(r"^```.*?^```", "", text, flags=re.M | re.S), re.M)
    return {re.sub(r"[^\w\- ]", "", title.replace("`", "").lower()).replace(" ", "-") for title in titles}


def test_links(bench):
    """Every link from one page to another leads to a file that is there, and to a heading that it has."""
    pages = glob.glob("*.md", root_dir=bench.root) + glob.glob("docs/**/*.md", root_dir=bench.root, recursive=True)
    texts, found = {}, 0
    for page in pages:
        texts[page] = bench.read(os.path.join(bench.root, page))
    for page, text in texts.items():
        for link, anchor in re.findall(r"\]\(([^)#:\s]*)(?:#([^)\s]+))?\)", text):
            target = os.path.normpath(os.path.join(os.path.dirname(page), link)) if link else page
            found += 1
            assert os.path.exists(os.path.join(bench.root, target)), f"{page}: {link} does not exist"
            assert not anchor or target not in texts or anchor in anchors_of(texts[target]), f"{page}: {target} has no heading #{anchor}"
    assert found > 100, found


def members_of(value, inside=("breakdown", "parts", "kernels")):
    """Names of all members of a JSON value, but of those whose members are named after stages and slots."""
    for name, below in value.items() if isinstance(value, dict) else ():
        yield name
        yield from () if name in inside else members_of(below)
    for below in value if isinstance(value, list) else ():
        yield from members_of(below)


def test_json_members(bench):
    """docs/json.md names every member that commands with a schema print."""
    page = bench.read(os.path.join(bench.root, "docs", "json.md"))
    tiny = "synthetic:v3-xsmall,layers=1,vocab=100,hidden=64,heads=1,intermediate=64"
    books = os.path.join(bench.root, "docs", "studies", "data", "books.tsv")
    for arguments in (["bench", tiny, "-n", "8,16,24", "--reps", "2", "--min-time", "0", "--no-peak", "--breakdown"], ["verify", tiny],
                      ["eval", DEMO, books]):  # fmt: skip
        found = set(members_of(json.loads(bench.fine(*arguments, "--json").out)))
        unknown = sorted(name for name in found if not re.search(rf"\b{re.escape(name)}\b", page))
        assert found and not unknown, f"{arguments[0]}: docs/json.md does not know {unknown}"


def test_readme(bench):
    text = bench.read(os.path.join(bench.root, "README.md"))
    for name in commands_of(bench):
        assert " " in name or f"`{name}" in text, f"the README has no row for {name}"
    for word in ("./build.sh demo", "./build.sh test", "## Limits"):
        assert word in text, word
    if kinds := [name for name in commands_of(bench) if name.startswith("attention ") and name != "attention list"]:
        for page in ("README.md", "CHANGELOG.md", "docs/tutorial.md"):
            assert f"{len(kinds)} kinds" in bench.read(os.path.join(bench.root, page)), f"{page}: there are {len(kinds)} kinds of figures"
    assert len(bench.bytes(os.path.join(bench.root, "docs", "images", "attention.png"))) < 200_000


def test_completions(bench):
    commands = commands_of(bench)
    for shell in ("bash", "zsh", "fish"):
        script = bench.fine("completion", shell).out
        for name in commands:
            assert name.split()[-1] in script, f"{shell}: {name}"
            for option in own_options(bench.fine(*name.split(), "--help").out):
                assert f"--{option}" in script or f"-l {option}" in script, f"{shell}: {name} --{option}"


def completion_form(shell):
    def test(bench):
        needs_tool(shell)
        done = subprocess.run([shell, "-n"], input=bench.fine("completion", shell).out.encode(), stderr=subprocess.PIPE, check=False)
        assert done.returncode == 0, done.stderr.decode()
    return test


def test_completion_answers(bench):
    needs_tool("bash")
    script = bench.fine("completion", "bash").out
    ask = "COMP_WORDS=(deberta %s); COMP_CWORD=%d; _deberta; echo \"${COMPREPLY[@]}\""
    for words, count, expected in (("tok", 1, "tokenize"), ("encode --hid", 2, "--hidden"), ("info --isa sc", 3, "scalar"), ("bench --format", 2, "--format"),
                                   ("train toke", 2, "tokenizer"),
                                   ("encode --pool m", 3, "mean"), ("fill-mask --mlm-decoder e", 3, "emd"), ("tag --grouping s", 3, "simple"),
                                   ("verify --format l", 3, "latex"), ("bench --format l", 3, "latex"),
                                   ("bench --attention f", 3, "full"), ("bench --isa sc", 3, "scalar"), ("attribute --parts p", 3, "positions"), ("report --skip v", 3, "verify"), ("encode --attention-layers f", 3, ""),
                                   *([("attention gri", 2, "grid"), ("bench plot --figure ro", 4, "roofline"), ("attention shares --measure k", 4, "kl"), ("attention trace --what h", 4, "heads"), ("attention grid --components l", 4, "logits")] if "attention" in commands_of(bench) else [])):
        done = subprocess.run(["bash", "-c", script + ask % (words, count)], stdout=subprocess.PIPE, check=False)
        assert done.stdout.decode().strip() == expected, f"{words}: {done.stdout}"


def test_pictures(bench):
    """docs/figures.md shows every kind of `attention` beside the command that draws it, and nothing else is in its folder."""
    needs_figures(bench)
    docs = os.path.join(bench.root, "docs")
    with open(os.path.join(docs, "figures.md"), encoding="utf-8") as file:
        own, others = file.read().split("\n## Other figures\n")
    rows = [line for line in f"{own}\n{others}".splitlines() if line.startswith("| ") and "images/figures/" in line]
    shown = [re.search(r"images/figures/([\w-]+\.(?:png|svg))", row)[1] for row in rows]
    assert sorted(shown) == sorted(os.listdir(os.path.join(docs, "images", "figures"))), shown
    kinds = {found[1] for row in rows if row in own and (found := re.search(r"^[^`]*`([a-z][\w-]*) ", row))} | {"components"}
    assert kinds == {line.split()[0] for line in bench.fine("attention", "list").out.splitlines()}, kinds


def tests(settings):
    for shell in ("bash", "zsh", "fish"):
        yield f"documents/completion-form-{shell}", completion_form(shell)
