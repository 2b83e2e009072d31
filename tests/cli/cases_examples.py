"""The examples of every --help and of the man page are run as they stand, on small amounts of work. SPDX-License-Identifier: MIT
"""
import json
import os
import pathlib
import re
import shlex
import shutil
import subprocess
from unittest import SkipTest

from cases_documents import commands_of
from helpers import check, contains, equal, needs_figures
from run_cli_tests import Bench

# What would run for longer than five seconds, or minutes. Nothing else may be left out, and every one of these must be an example.
LONG = {
    "deberta verify",
    "deberta verify synthetic:v3-xsmall,layers=2 -n 100",
    "deberta report models/demo --text 'a new store opened beside the new mall' -o out/report",
    "deberta report synthetic:v3-xsmall,vocab=1000 -o out/report",
}
SWEEP = ["-n", "16,32", "--depth", "1", "--threads", "1,2", "--isa", "auto", "--reps", "1", "--min-time", "0"]  # the last one given counts
# The installed program under its name, with measurements that take a moment.
SHORT = """#!/bin/sh
case "$1 $2" in
"bench synthetic:"*) set -- "$@" {sweep} ;;
"bench models/"*) set -- "$@" --reps 1 --min-time 0 --no-peak ;;
esac
exec {program} "$@"
"""


class Ordinary(Bench):
    """The installed program, run by a user who may write into his own folder alone; without root that is who runs the tests."""

    def __init__(self, bench, prefix):
        vars(self).update(vars(bench))
        self.program, self.folder = os.path.join(prefix, "bin", "deberta"), bench.path("home")
        self.user = {"user": "nobody", "group": "nogroup", "extra_groups": []} if os.getuid() == 0 else {}
        os.mkdir(self.folder)
        if self.user:
            os.chmod(bench.folder, 0o755)
            shutil.chown(self.folder, "nobody", "nogroup")

    def run(self, *arguments, **kwargs):
        return super().run(*arguments, env={"HOME": self.folder, "TMPDIR": self.folder}, **self.user, **kwargs)


def installed(bench):
    """What `meson install` puts into a folder of this test, through DESTDIR; the prefix there."""
    build, root = os.path.dirname(bench.program), bench.path("root")
    if not os.path.exists(os.path.join(build, "libdeberta.so")) or not os.path.exists(os.path.join(build, "libdeberta.a")):
        raise SkipTest("the library is not built, so nothing can be installed")
    done = subprocess.run(["meson", "install", "-C", build, "--no-rebuild", "--quiet", "--destdir", root], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    equal(done.returncode, 0, done.stdout)
    (place,) = [os.path.dirname(path) for path, folders, files in os.walk(root) if "deberta" in files and path.endswith("/bin")]
    return place


def page_examples(bench):
    lines = []
    for name in commands_of(bench):
        lines += re.split(r"\nexamples?:\n", bench.fine(*name.split(), "--help").out)[1].split("\n\n")[0].split("\n")
    return lines


def examples_of(bench):
    """In the order in which they stand: one may read what another wrote."""
    lines = page_examples(bench)
    with open(os.path.join(bench.root, "docs", "deberta.1"), encoding="utf-8") as file:
        lines += file.read().split("\n.SH EXAMPLES\n.nf\n")[1].split("\n.fi\n")[0].replace("\\-", "-").replace("\\(aq", "'").split("\n")
    return [line.strip() for line in lines if line.strip()]


def test_examples(bench):
    """Those of the installed program as a shell runs them, in the folder that `examples` makes, for a user who may not write where it was installed."""
    needs_figures(bench)  # several draw
    bench = Ordinary(bench, installed(bench))
    bench.fine("examples", "kit")
    bench.write("deberta", SHORT.format(sweep=" ".join(SWEEP), program=bench.program))
    os.chmod(bench.path("deberta"), 0o755)
    lines, environment = examples_of(bench), {"HOME": bench.folder, "TMPDIR": bench.folder, "PATH": f"{bench.folder}:{os.environ['PATH']}"}
    commands = [re.sub(r" +#.*", "", line) for line in lines]
    check(set(commands) >= LONG and len(commands) >= 50, f"{len(commands)} examples; no examples any more: {sorted(LONG - set(commands))}")
    for command in commands:
        if command not in LONG:
            done = subprocess.run(["bash", "-ec", command], cwd=bench.path("kit"), env=bench.environment(environment), capture_output=True, text=True, timeout=120, **bench.user)
            # A deliberate fault that is noticed is what this one shows.
            equal(done.returncode, 1 if "--mutate" in command else 0, f"{command}\n{done.stdout[-1000:]}\n{done.stderr[-1000:]}")


def test_what_help_names(bench):
    """Every file of the project that a page of help names is in the folder that `examples` makes, and in the installation, as are the pages."""
    installation = installed(bench)
    told = bench.fine("examples", "kit", "--json").out
    kept = [os.path.join(path, name) for path, _, files in os.walk(bench.path("kit")) for name in files]
    equal(json.loads(told)["files"], len(kept), told)
    equal(json.loads(told)["bytes"], sum(map(os.path.getsize, kept)), told)
    pages = "\n".join(bench.fine(*name.split(), "--help").out for name in commands_of(bench))
    named = {name for name in re.findall(r"\b(?:docs|models|bench|tests)/[\w./-]*\w", pages)}
    check({"models/demo", "models/answers", "docs/precision.md", "docs/studies/data/books.tsv", "bench/shapes/edges.txt"} <= named, named)
    for name in named:
        check(os.path.exists(os.path.join(bench.folder, "kit", name)), f"{name} is named by help, and `deberta examples` does not copy it")
        check(os.path.exists(os.path.join(installation, "share", "deberta", name)), f"{name} is named by help, and not installed")
    manual = bench.read(os.path.join(bench.root, "docs", "deberta.1"))
    pages = {name for name in re.findall(r"\bdocs/[\w.-]*\.md", manual)} | {"docs/" + name for name in os.listdir(os.path.join(bench.root, "docs")) if name.endswith(".md")}
    for name in pages | {"LICENSE", "README.md"}:
        check(os.path.exists(os.path.join(installation, "share", "doc", "deberta", name)), f"{name} is not installed")
    for program in os.listdir(os.path.join(installation, "bin")):
        check(os.path.exists(os.path.join(installation, "share", "man", "man1", program + ".1")), f"{program} has no page of the manual")
    for page in pathlib.Path(installation, "share").rglob("*.md"):
        for link in re.findall(r"(?:\]\(|src=\")(?![a-z]+:|#)([^)#\s\"]+)", page.read_text(encoding="utf-8")):
            check((page.parent / link).exists(), f"{page}: {link} is not installed")
    contains(bench.expect(3, "examples", "kit").err, "kit: exists; expected a new folder")
    contains(bench.expect(4, "examples", "no/such").err, "no/such.part: this folder cannot be made: No such file or directory")
    contains(bench.expect(3, "info", "models/demo").err, "no such folder in ", "`deberta examples DIR` makes a folder")
    equal(sorted(name for name in bench.files() if name.startswith("no")), [], "nothing is left")


def commands_in(path):
    """Those of the fenced blocks of a page, with lines that go on joined."""
    with open(path, encoding="utf-8") as file:
        blocks = re.findall(r"^```sh\n(.*?)^```", file.read(), re.M | re.S)
    lines = "\n".join(blocks).replace("\\\n", " ").split("\n")
    return [line.split(" #")[0] for line in lines if line.startswith("build/deberta ")]


def test_pages_of_newcomers(bench):
    """The commands of README and tutorial as one would type them, and the answers that the tutorial shows."""
    needs_figures(bench)
    for folder in ("models", "docs"):
        os.symlink(os.path.join(bench.root, folder), bench.path(folder))
    ran, said = [], ""
    for page in ("README.md", os.path.join("docs", "tutorial.md")):
        for line in commands_in(os.path.join(bench.root, page)):
            words = shlex.split(line)[1:]
            if words[:2] in (["info", "deberta-v3-base"],):
                continue
            said += bench.fine(*words).out
            ran.append(words[0])
    assert ran == ["attention", "info", "tokenize", "fill-mask", "attention", "attention", "fill-mask", "fill-mask", "attention", "attribute", "attention", "encode"], ran
    rows = re.findall(r"^\| (?:nothing|c2\w in all layers) \| (.*) \|$", bench.read(os.path.join(bench.root, "docs", "tutorial.md")), re.M)
    answers = [(word.strip('"'), share) for row in rows for word, share in re.findall(r'(\S+) (0\.\d{3})', row)]
    assert len(answers) == 9 and all(f"  {share}  {word}\n" in said for word, share in answers), (answers, said)
    for name in ("head.pdf", "head.csv", "head.tex", "heads.png", "states.safetensors"):
        assert os.path.getsize(bench.path(name)) > 0, name


def test_output_chooses_the_format(bench):
    sweep = ["bench", "synthetic:v3-xsmall,layers=1,vocab=50", "--no-peak", *SWEEP]
    for name, begin in (("a.json", "{"), ("a.csv", "model,model_sha256,engine"), ("a.txt", "deberta ")):
        assert not bench.fine(*sweep, "-o", name).out
        assert bench.read(name).startswith(begin), name
    bench.fine(*sweep, "--format", "csv", "-o", "b.json")
    assert bench.read("b.json").startswith("model,model_sha256,engine"), "--format says more than a suffix"
