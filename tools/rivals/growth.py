"""How time and memory grow: with tokens, layers, words, threads, and beside a busy process; exponents are fitted, a page and a figure made.

    tools/peers.py growth --out R                         all parts; a page (R/growth.md) and a figure (R/growth.png, R/growth.pdf)
    tools/peers.py growth --out R --only tokens --seconds 50     in pieces: the same command goes on where it stopped

A point is a process of `deberta bench`, and its JSON a file of R. One that other processes disturbed is marked, and measured again by the same
command; the less disturbed one is kept. SPDX-License-Identifier: MIT
"""
import contextlib
import json
import math
import os
import statistics
import sys
import time
from pathlib import Path

from rivals.results import name_list, number_list, plot
from rivals.turns import PROGRAM, Failure, Runner, busy_neighbour

LAYER, WHOLE = "synthetic:v3-base,vocab=1000,layers=1", "synthetic:v3-base,vocab=1000"
CORES = len(os.sched_getaffinity(0))
SLOW_TOKENS = 8192  # points from this length on have one sample, since each takes seconds


def tokens_part(given):
    for precision in ("float32", "int8"):
        for n in given.tokens:
            yield f"{precision}, {n} tokens", LAYER, {"-n": n, "--threads": given.threads, "--precision": precision, "--reps": 1 if n >= SLOW_TOKENS else 3}


def layers_part(given):
    for layers in (1, 3, 6, 12):
        yield f"{layers} layers", WHOLE, {"-n": 128, "--threads": given.threads, "--depth": layers}


def words_part(given):
    for words in (1000, 8000, 32000, 128100):
        yield f"{words} words", f"synthetic:v3-base,layers=3,vocab={words}", {"-n": 128, "--threads": given.threads}


def threads_part(_):
    for threads in (1, 2, 4):
        yield f"{threads} threads", WHOLE, {"-n": 128, "--threads": threads}


def neighbour_part(given):
    for beside in ("nobody", "a busy process"):
        yield f"beside {beside}", WHOLE, {"-n": 128, "--threads": given.threads}


# {name: (its points, their axis or None, its heading)}
PARTS = {
    "tokens": (tokens_part, "n", "One layer, so many tokens"),
    "layers": (layers_part, "layers", "So many layers, 128 tokens"),
    "words": (words_part, None, "So many words, three layers, 128 tokens"),
    "threads": (threads_part, None, "So many threads, twelve layers, 128 tokens"),
    "neighbour": (neighbour_part, None, "Beside a process that keeps one core busy, twelve layers, 128 tokens"),
}


def file_of(out, part, name):
    return out / part / f"{name.replace(', ', '-').replace(' ', '-')}.json"


def result_of(path):
    return json.loads(path.read_text("utf-8"))["results"][0]


def is_disturbed(given, name, result):
    """Returns true for a disturbed point; the intended neighbour of a point does not count."""
    return result["other_cores"] > given.other_cpus + ("busy" in name)


def measure(given):
    """Measures missing and disturbed points; returns false if the time ended before."""
    begun, runner = time.monotonic(), Runner(given.limit)
    for part, (points, _, _) in PARTS.items():
        for name, model, options in points(given):
            path = file_of(given.out, part, name)
            before = result_of(path) if path.exists() else None
            if part not in given.only or (before and not is_disturbed(given, name, before)):
                continue
            if time.monotonic() - begun > given.seconds:
                print(f"{part}, {name}: not measured, the time is over; the same command goes on")
                return False
            path.parent.mkdir(parents=True, exist_ok=True)
            busy = busy_neighbour(max(os.sched_getaffinity(0))) if "busy" in name else contextlib.nullcontext()
            with busy:
                words = [str(word) for pair in options.items() for word in pair]
                done = runner.run(given.program, "bench", model, *words, "--no-peak", "--json", "--quiet")
            found = json.loads(done.output)["results"][0]
            if not before or found["other_cores"] < before["other_cores"]:
                path.write_text(done.output, "utf-8")
            marked = "  DISTURBED" if is_disturbed(given, name, found) else ""
            print(f"{part}, {name}: {1e3 * found['median_s']:.4g} ms, others {found['other_cores']:.2f}{marked}", flush=True)
    return True


# ------------------------------------------------------------------------------------------------------------ the page


def exponent(places, values):
    """Returns e of y = c x^e, by least squares in the logarithms; None for fewer than three points."""
    if len(places) < 3:
        return None
    return statistics.linear_regression([math.log(x) for x in places], [math.log(y) for y in values]).slope


def step(before, now, along, value):
    return f"{math.log(now[value] / before[value]) / math.log(now[along] / before[along]):.2f}" if before else "–"


def rows_of(given, part):
    """Returns [(name, result)] of the measured points."""
    found = [(name, file_of(given.out, part, name)) for name, _, _ in PARTS[part][0](given)]
    return [(name, result_of(path)) for name, path in found if path.exists()]


def lines_of(given, part, rows):
    along = PARTS[part][1]
    titles = ["", "median ms", "minimum ms", "others, cores", "workspace MB", "peak MB"] + (["exponent of time"] if along else ["time / first"])
    yield "| " + " | ".join(titles) + " |"
    yield "|---|" + "--:|" * (len(titles) - 1)
    before = None
    for name, r in rows:
        series = before and before["precision"] == r["precision"] and not is_disturbed(given, name, before)
        last = step(before if series else None, r, along, "median_s") if along else f"{r['median_s'] / rows[0][1]['median_s']:.3f}"
        mark = "!" if is_disturbed(given, name, r) else ""
        yield (f"| {name} | {1e3 * r['median_s']:.4g}{mark} | {1e3 * r['min_s']:.4g} | {r['other_cores']:.2f} | {r['workspace_bytes'] / 1e6:.4g} | "
               f"{r['peak_rss_bytes'] / 1e6:.4g} | {last} |")  # fmt: skip
        before = r
    for precision in dict.fromkeys(r["precision"] for _, r in rows) if along else ():
        own = [r for name, r in rows if r["precision"] == precision and not is_disturbed(given, name, r)]
        fitted = [exponent([r[along] for r in own], [r[value] for r in own]) for value in ("median_s", "workspace_bytes")]
        if None not in fitted:
            yield f"\n{precision}: time grows with the power {fitted[0]:.2f} of {along}, the session's memory with {fitted[1]:.2f}."


def page(given):
    parts = {part: rows for part in PARTS if (rows := rows_of(given, part))}
    if not parts:
        raise Failure(f"{given.out} holds nothing of this")
    part, rows = next(iter(parts.items()))
    sheet = json.loads(file_of(given.out, part, rows[0][0]).read_text("utf-8"))["environment"]
    yield "# Growth\n"
    yield (f"{sheet['cpu']}, {sheet['usable_cores']} cores, {sheet['isa']}; {sheet['date'][:10]}, {sheet['version']} {sheet['commit']}; float32 and "
           f"{given.threads} threads where nothing else is said. Random weights in the shape of v3-base.\n")  # fmt: skip
    yield "    tools/peers.py growth --out R\n"
    yield f"An exponent in a row is that between it and the row above; others: cores that other processes used meanwhile; `!`: more than {given.other_cpus}, so no result."
    for part, rows in parts.items():
        yield f"\n## {PARTS[part][2]}\n"
        yield from lines_of(given, part, rows)


def draw(given):
    """Draws the figure of tokens by the program itself, from all files in one."""
    files = [file_of(given.out, "tokens", name) for name, _ in rows_of(given, "tokens")]
    reports = [json.loads(path.read_text("utf-8")) for path in files]
    whole = given.out / "tokens.json"
    whole.write_text(json.dumps(reports[0] | {"results": [report["results"][0] for report in reports], "trends": []}), "utf-8")
    print(plot(given.program, whole, "latency", [given.out / "growth.png", given.out / "growth.pdf"]), file=sys.stderr)


def options(parser):
    add = parser.add_argument
    add("--out", type=Path, required=True, help="folder of points, page and figure")
    add("--program", type=Path, default=PROGRAM)
    add("--tokens", type=number_list, default=[512, 1024, 2048, 4096, 8192, 16384])
    add("--threads", type=int, default=min(2, CORES))
    add("--only", type=name_list(PARTS), default=list(PARTS), help=f"parts to measure: {', '.join(PARTS)}")
    add("--seconds", type=float, default=math.inf, help="begin no point after so long")
    add("--other-cpus", type=float, default=0.1, help="cores that others may use while a point is measured")
    add("--limit", type=float, default=900, help="seconds that one point may take")


def run(given):
    whole = measure(given)
    text = "\n".join(page(given)) + "\n"
    (given.out / "growth.md").write_text(text, "utf-8")
    print(text, end="")
    if len(rows_of(given, "tokens")) > 1:
        draw(given)
    return int(not whole)
