#!/usr/bin/env python3
"""Claims of README and docs, each with the command that gives it: run again, and compared (./reproduce.sh).

    tools/reproduce.py --cheap [--page FILE]     pages against the outputs in docs/studies/data/outputs, cheap commands run again: seconds
    tools/reproduce.py [--all] [--only WORD] [--out out/reproduce]     the long commands as well, figures, the tutorial, times

--cheap stops at the first page that states something else, and prints how many of the numbers with a decimal point are tied to a source.
Stated numbers are read from the pages, so that a page and this list cannot disagree. A claim about time is judged only on the processor
that it was measured on; elsewhere its row says "not judged". What only --all runs says "not run". Exit status 1: a judged claim did not come out; 4: what the rows need is
not installed, which is said before the first row.

SPDX-License-Identifier: MIT
"""
import argparse
import importlib.util
import itertools
import json
import os
import re
import resource
import shlex
import struct
import subprocess
import sys
import time
import zlib
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tools" / "gates"))
import guard  # noqa: E402

PROGRAM = os.environ.get("DEBERTA_PROGRAM") or str(ROOT / "build" / "deberta")
FIGURE_TOLERANCE = 0.02  # fraction of the decoded image's bytes that may differ, since fonts differ in their hinting
TIME_TOLERANCE = 0.25
EMERALD_RAPIDS = ("GenuineIntel", "6", "207")
OTHER = None  # a row that is not judged
NOT_RUN = "not run"
LACKS = 4  # exit status where this machine lacks what the rows need


class Row:
    def __init__(self, claim, command, here, tolerance, ok):
        self.cells = [claim, command, here, tolerance, {True: "ok", False: "NO", None: "not judged"}.get(ok, ok)]
        self.ok = ok


def text_of(path):
    return (ROOT / path).read_text(encoding="utf-8")


def run(command, out, name):
    """Returns standard output of a command as the pages write it; it is kept in out/name.txt."""
    own = {"deberta": PROGRAM, "build/deberta": PROGRAM, "python3": sys.executable}
    done = subprocess.run([own.get(word, word) for word in shlex.split(command)], cwd=ROOT, capture_output=True, text=True)
    (out / f"{name}.txt").write_text(done.stdout + done.stderr)
    if done.returncode:
        raise RuntimeError((done.stderr.strip().splitlines() or [f"exit status {done.returncode}"])[0])
    return done.stdout


def pixels(path):
    """Returns size and decoded rows of a PNG."""
    data, at, body = Path(path).read_bytes(), 8, b""
    size = struct.unpack(">II", data[16:24])
    while at < len(data):
        (length,), kind = struct.unpack(">I", data[at:at + 4]), data[at + 4:at + 8]
        body += data[at + 8:at + 8 + length] if kind == b"IDAT" else b""
        at += 12 + length
    return size, zlib.decompress(body)


def same_figure(claim, command, made, stated):
    (size, found), (stated_size, expected) = pixels(made), pixels(ROOT / stated)
    if size != stated_size:
        return Row(claim, command, f"{size[0]} x {size[1]} pixels", f"{stated_size[0]} x {stated_size[1]}", False)
    share = sum(a != b for a, b in zip(found, expected)) / len(expected)
    return Row(claim, command, f"{100 * share:.2f} % differ", f"{100 * FIGURE_TOLERANCE:.0f} %", share <= FIGURE_TOLERANCE)


# ------------------------------------------------------------------------------------------------------------- the claims


def output(name, kind, command, out):
    """Checks that a command prints its output in docs/studies/data/outputs, and draws the page's figure if it has one."""
    stated = text_of(f"{guard.OUTPUTS}/{name}.txt")
    figure = next((path for path in (f"docs/images/study-{name}.png", f"docs/studies/{name}.png") if (ROOT / path).exists()), None)
    made = out / f"{name}.png"
    printed = run(command + (f" -o {made}" if figure and kind == "long" else ""), out, name)
    other = next((k for k, (one, two) in enumerate(itertools.zip_longest(lines_of(stated), lines_of(printed)), 1) if one != two), None)
    here = f"{len(lines_of(printed))} lines" if other is None else f"line {other} differs: {out}/{name}.txt"
    yield Row(f"{guard.OUTPUTS}/{name}.txt", command, here, "the same lines", other is None)
    if figure and kind == "long":
        yield same_figure(f"{figure}", command, made, figure)


def lines_of(text):
    return [" ".join(line.split()) for line in text.strip().splitlines()]


def numbers_of(page):
    """Checks that every number of a page is that of its source (tools/gates/guard.py)."""
    sources, tied, count = guard.Sources(ROOT), 0, 0
    for found, known, wrong in guard.check_page(text_of(page), sources, page):
        count, tied = count + found, tied + known
        if wrong:
            yield Row(f"{page}:{wrong.line}: states {wrong.stated}", wrong.source, f"found {wrong.found}", "-", False)
    yield Row(f"{page}: numbers", "tools/reproduce.py --cheap", f"{tied} of {count} tied", "-", True)


def tutorial(out):
    """Checks each block of output after a block of commands."""
    blocks = re.findall(r"```sh\n(.*?)```\n\n```\n(.*?)```", text_of("docs/tutorial.md"), re.S)
    for k, (commands, stated) in enumerate(blocks):
        lines = commands.replace("\\\n", " ").strip().splitlines()
        printed = "".join(run(line.split("#")[0], out, f"tutorial-{k}") for line in lines if line.startswith("build/deberta"))
        found = [line for line in stated.splitlines() if " ".join(line.split()) in " ".join(printed.split())]
        count = len(stated.splitlines())
        yield Row(f"docs/tutorial.md: output {k + 1}", lines[0], f"{len(found)} of {count} lines", "the same digits", len(found) == count)


def receptive_field(out):
    """Checks composed displacements over twelve layers."""
    text, command = text_of("docs/receptive-field.md"), "deberta receptive-field synthetic:{}-base --json"
    table = text.split("## Several layers")[1]
    found = {}
    for shape in ("v1", "v3"):
        found[shape] = json.dumps(json.loads(run(command.format(shape), out, f"receptive-field-{shape}")))
    for name, v1, v3 in re.findall(r"^\| `(\w+)` \| .* \| ([\d,]+) \| ([\d,]+) \|$", table, re.M):
        fine = all(re.search(rf"\b{number.replace(',', '')}\b", found[shape]) for shape, number in (("v1", v1), ("v3", v3)))
        yield Row(f"docs/receptive-field.md: {name} {v1}, {v3}", "; ".join(map(command.format, ("v1", "v3"))), "there" if fine else "not there", "exact", fine)


def first_figure(out):
    text = text_of("README.md")
    command = re.search(r"^(build/deberta attention models/demo .*?-o) attention\.png$", text, re.M | re.S).group(1).replace("\\\n", " ")
    run(f"{command} {out}/attention.png", out, "attention")
    yield same_figure("README.md: the first figure", " ".join(command.split()) + " attention.png", out / "attention.png", "docs/images/attention.png")


def sum_of_terms(out):
    stated = float(re.search(r"\.max\(\)\) +# (\S+): rounding", text_of("docs/tutorial.md")).group(1))
    command = f"build/deberta encode models/demo --text 'The old sailor told the boys a story about the sea.' --component-layers all -o {out}/states.safetensors"
    run(command, out, "states")
    data = (out / "states.safetensors").read_bytes()
    base = 8 + int.from_bytes(data[:8], "little")
    header = json.loads(data[8:base])

    def values(name):
        begin, end = header[name]["data_offsets"]
        return struct.unpack(f"<{(end - begin) // 4}f", data[base + begin:base + end])
    worst = max(abs(a + b + c - d) for a, b, c, d in zip(*(values(f"attn.2.{n}") for n in ("c2c", "c2p", "p2c", "logits"))))
    yield Row("docs/tutorial.md: the terms add up to the logits", command, f"{worst:.0e}", f"{stated:.0e}", worst <= 1.5 * stated)


def same_bits(out):
    command = "build/deberta verify models/demo --json"
    found = json.loads(run(command, out, "verify"))
    differing = sum(row.get("differing") or 0 for row in found["results"])
    tiers = [tier["isa"] for tier in found["tiers"] if tier["verified"]]
    yield Row("README.md: the same bits on every tier", command, f"{differing} differ; tiers: {', '.join(tiers)}; {found['failures']} failures", "0",
              differing == 0 and found["failures"] == 0)


def is_processor_of_readme(text):
    """Compares processors; virtual machines report the model's number instead of its name."""
    lines = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").split("\n\n")[0].splitlines()
    fields = {name.strip(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
    return "Emerald Rapids" in text and (fields.get("vendor_id"), fields.get("cpu family"), fields.get("model")) == EMERALD_RAPIDS


def times(out):
    """Checks the program's own times in README's table."""
    text = text_of("README.md")
    stated = [float(n.replace(",", "")) for n in re.findall(r"\*\*([\d,]+) ms\*\*", text)]
    command = "build/deberta bench synthetic:v3-base -n 40,512 --threads 2 --no-peak --json"
    found = json.loads(run(command, out, "bench-v3-base"))
    known = is_processor_of_readme(text)
    quiet = found["environment"].get("other_cores", 0) < 0.2
    for expected, row in zip(stated, found["results"]):
        here = 1e3 * row["median_s"]
        judged = abs(here / expected - 1) <= TIME_TOLERANCE if known and quiet else OTHER
        why = "" if judged is not OTHER else "; another processor" if not known else "; others use this machine"
        yield Row(f"README.md: {row['n']} tokens of v3-base take {expected:g} ms", command, f"{here:.0f} ms{why}", f"{100 * TIME_TOLERANCE:.0f} %", judged)


def long_text(out):
    """Checks the memory of 65,536 tokens in README.md."""
    stated = float(re.search(r"65,536 tokens of v3-base take ([\d.]+) GB", text_of("README.md")).group(1))
    command = "build/deberta bench synthetic:v3-base -n 65536 --reps 1 --no-peak --json"
    here = json.loads(run(command, out, "bench-long"))["results"][0]["peak_rss_bytes"] / 1e9
    yield Row(long_text.__doc__, command, f"{here:.1f} GB", f"{stated} GB + 5 %", here <= 1.05 * stated)


def other_engines(out):
    """Checks the table of engines in README.md."""
    command = f"{sys.executable} tools/peers.py --rounds 1 --models v3-base -n 40,512 --threads 2 --engines deberta,torch,torch-lean,onnxruntime,onnxruntime-lean,openvino,openvino-lean --accept-disturbed --work {out}/peers --out {out}/peers-results"
    run(command, out, "peers")
    table = run(f"{sys.executable} tools/peers.py --out {out}/peers-results --table", out, "peers-table")
    yield Row(other_engines.__doc__, command, f"{out}/peers-table.txt ({len(table.splitlines())} lines)", "to be read", OTHER)


QUICK = [sum_of_terms, first_figure, same_bits, tutorial, receptive_field, times]
LONG = [long_text, other_engines]


def not_run(function):
    yield Row(function.__doc__, "./reproduce.sh --all", "takes long, or needs other engines", "-", NOT_RUN)


def lacking(commands):
    """A sentence on what the rows of these commands need and this Python or tree does not have; empty where nothing is missing."""
    studies = [kind for kind, command in commands if kind != "record" and "studies/" in command.split(" ")[1]]
    modules = ["numpy"] * bool(studies) + ["matplotlib"] * ("long" in studies)  # a long study draws its figure again
    modules = [module for module in modules if not importlib.util.find_spec(module)]
    if modules:
        return (f"{' and '.join(modules)} not found for {sys.executable}, expected by commands of studies: "
                f"apt-get install {' '.join('python3-' + module for module in modules)}, or python3 -m venv v && v/bin/pip install {' '.join(modules)}, and PATH=$PWD/v/bin:$PATH ./reproduce.sh")
    return "" if os.access(PROGRAM, os.X_OK) else f"no program at {PROGRAM}, expected what ./build.sh builds, or its path in DEBERTA_PROGRAM"


def cheap(only, out):
    """Exit status of --cheap: 1 where a number is not what its source gives, or at the first command that prints something else."""
    sources = guard.Sources(ROOT)
    if guard.tell([only] if only else guard.pages(ROOT), sources, text_of)[2]:
        return 1
    for name, (kind, command) in sources.commands.items():
        if kind == "cheap" and (name in sources.used or not only):
            for row in attempt(name, output, (name, kind, command, out)):
                if not row.ok:
                    return 1
    return 0


def processor_seconds():
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def attempt(name, function, arguments):
    """Returns the rows of one group with their seconds; a failure is the last row."""
    rows, made = [], None
    while True:
        begin, used = time.monotonic(), processor_seconds()
        try:
            made = made or iter(function(*arguments))
            row = next(made, None)
        except (RuntimeError, OSError, KeyError, ValueError, AttributeError) as reason:
            row, made = Row(name, "-", f"failed: {reason}", "-", False), iter(())
        if row is None:
            return rows
        row.cells.append(f"{time.monotonic() - begin:.0f}")
        print(f"{row.cells[4]:10} {row.cells[0]}: {row.cells[2]} ({row.cells[5]} s, {processor_seconds() - used:.0f} of a processor)", flush=True)
        rows.append(row)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cheap", action="store_true")
    parser.add_argument("--page", metavar="FILE")
    parser.add_argument("--all", action="store_true")
    parser.add_argument("--only", default="")
    parser.add_argument("--out", type=Path, default=ROOT / "out" / "reproduce")
    options = parser.parse_args()
    out = options.out.resolve()
    sources = guard.Sources(ROOT).commands
    wanted = {name: command for name, command in sources.items() if (command[0] == "cheap" and not options.page if options.cheap or options.page else options.only in name)}
    lacks = lacking(wanted.values())
    if lacks:
        print(f"reproduce.py: {lacks}", file=sys.stderr)
        return LACKS
    out.mkdir(parents=True, exist_ok=True)
    if options.cheap or options.page:
        return cheap(options.page, out)
    begin = time.monotonic()
    groups = [(f.__name__, f, (out,)) for f in QUICK] + [(page, numbers_of, (page,)) for page in guard.pages(ROOT)]
    groups += [(name, output, (name, kind, command, out)) for name, (kind, command) in sources.items() if kind != "record"]
    groups += [(f.__name__, f if options.all else not_run, (out,) if options.all else (f,)) for f in LONG]
    rows = [row for name, function, arguments in groups if options.only in name for row in attempt(name, function, arguments)]
    titles = ["claim", "command", "here", "tolerance", "", "seconds"]
    (out / "list.tsv").write_text("\n".join("\t".join(cells) for cells in [titles, *(row.cells for row in rows)]) + "\n")
    lines = ["| " + " | ".join(cells) + " |" for cells in [titles, ["---"] * len(titles), *([c.replace("|", "\\|") for c in row.cells] for row in rows)]]
    (out / "list.md").write_text("\n".join(lines) + "\n")
    print(f"{(time.monotonic() - begin) / 60:.0f} minutes, {processor_seconds() / 60:.0f} of processor time")
    counts = [sum(row.ok is value for row in rows) for value in (True, False, OTHER, NOT_RUN)]
    print(f"{out}/list.md: {counts[0]} ok, {counts[1]} not, {counts[2]} not judged, {counts[3]} not run")
    return int(counts[1] > 0 or not rows)


if __name__ == "__main__":
    sys.exit(main())
