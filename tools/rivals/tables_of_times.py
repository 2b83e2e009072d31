"""Tables of times: of a run of `tools/peers.py`, or from a CSV file of such a run.

    tools/peers.py times docs/benchmarks/amd-zen4.csv [ERRORS.json]

Prints ours / the best float32 peer, and with the file of errors times beside errors and times of low precision as shares of others, as the
pages of docs/benchmarks have them. Of batches it prints the time a text, and ours / the best peer of float32, of bfloat16 and of int8.
SPDX-License-Identifier: MIT
"""
import csv
import json
import sys

from rivals.engines import ENGINES, OURS, OWN, is_peer, precision_of
from rivals.results import print_table, read_rows

CSV_MODES = ("latency", "batches")
CSV_TITLES = ["engine", "median_ms", "minimum_ms", "mark", "largest_difference", "percent_of_peak", "peak_memory_mb", "first_result_s"]
ONE_TEXT = ("model", "threads", "n")
TEXTS = (*ONE_TEXT, "batch")
NONE = "–"
# Our precision and the others it is compared with; the float32 columns are of this project alone.
COMPARED = (("int8 of ORT", "deberta-int8", ("onnxruntime-int8", "onnxruntime-int8-channel")), ("int8 of bf16", "deberta-int8", ("openvino-bf16", "openvino-lean-bf16")),
            ("int16 of bf16", "deberta-int16", ("openvino-bf16", "openvino-lean-bf16")), ("int16 of float32", "deberta-int16", (OURS,)),
            ("int8 of OpenVINO int8", "deberta-int8", ("openvino-int8", "openvino-int8-bf16", "openvino-lean-int8")))
BESIDE = ((OURS, "float32"), ("deberta-int16", "bfloat16"), ("deberta-int8", "int8"))


# --------------------------------------------------------------------------------------------------------------- cells


def mark(*results):
    """Returns the mark of the first engine that has one."""
    return next(filter(None, (("!" if r["disturbed"] else "") + ("?" if not r["agrees"] else "") for r in results)), "")


def in_milliseconds(seconds):
    """Formats four digits, or all of those before the point."""
    return f"{1e3 * seconds:.4g}" if 1e3 * seconds < 9999.5 else f"{1e3 * seconds:.0f}"


def milliseconds(result):
    return f"{in_milliseconds(result['median_s'])} ({in_milliseconds(result['min_s'])}){mark(result)}" if result else NONE


def share(one, other, column="median_s"):
    return one[column] / other[column]


def best_peer(engines, precision="float32"):
    """Returns the best peer of this precision among those that agree."""
    peers = [r for name, r in engines.items() if is_peer(name) and r["precision"] == precision and r["agrees"]]
    return min(peers, key=lambda r: r["median_s"], default=None)


def both(engines, own=OURS, precision="float32"):
    """Returns ours and the best peer, or nothing."""
    ours, peer = engines.get(own), best_peer(engines, precision)
    return (ours, peer) if ours and peer else ()


def ratio(engines):
    """Returns ours / best peer, by medians and by minima; below 1 ours is faster."""
    if not (pair := both(engines)):
        return [NONE, NONE]
    return [pair[1]["engine"], f"**{share(*pair):.3f}** ({share(*pair, 'min_s'):.3f}){mark(*pair)}"]


def short_ratio(engines, alone):
    """Returns the ratio, in brackets where PyTorch is the only peer and that should be visible."""
    if not (pair := both(engines)):
        return NONE
    text = f"{share(*pair):.2f}{mark(*pair)}"
    return f"({text})" if alone and peers_of(engines) == ["torch"] else text


def peers_of(engines):
    return [name for name, r in engines.items() if is_peer(name) and r["precision"] == "float32" and r["agrees"]]


def label(key):
    """Returns the label of (model, threads) or (model, threads, n)."""
    model, threads, *n = key
    return f"{model}, {threads} thread{'s' if threads > 1 else ''}" + (f", n = {n[0]}" if n else "")


# -------------------------------------------------------------------------------------------------------------- tables


def by_row(results, key):
    rows = {}
    for result in results:
        rows.setdefault(tuple(result[name] for name in key), {})[result["engine"]] = result
    return dict(sorted(rows.items()))


def grouped(rows, count):
    """Returns {beginning of the keys: {rest of the key, alone or as a tuple: engines}}."""
    groups = {}
    for key, engines in rows.items():
        groups.setdefault(key[:count], {})[key[count] if len(key) == count + 1 else key[count:]] = engines
    return groups


def in_order(results):
    """Returns the names of the engines, ours first."""
    known = [*OWN, *ENGINES]
    return sorted({r["engine"] for r in results}, key=known.index)


def table(titles, rows):
    print_table(titles, rows)
    print()


def print_ratios(rows, alone=False):
    """Prints all ratios in one table."""
    lengths = sorted({n for _, _, n in rows})
    table(["model, threads", *map(str, lengths)],
          [[label(key), *(short_ratio(line.get(n, {}), alone) for n in lengths)] for key, line in grouped(rows, 2).items()])  # fmt: skip


def print_errors(lengths, names):
    """Prints a line for each engine, with its time and its error: the gain and the cost of lower precision."""
    lines = []
    for engine in names:
        found = [engines.get(engine) for engines in lengths.values()]
        if any(found):
            cells = [f"{in_milliseconds(r['median_s'])}{mark(r)}, {r['relative_error']:.1e}" if r else NONE for r in found]
            lines.append([engine, precision_of(engine), *cells])
    table(["engine", "precision", *(f"n = {n}" for n in lengths)], lines)


def print_latency(results, title):
    rows, names = by_row(results, ONE_TEXT), in_order(results)
    groups = grouped(rows, 2)
    print("Time of ours / time of the best float32 peer, batch 1, by medians, at so many tokens\n")
    print_ratios(rows)
    print(f"{title}: milliseconds, median (minimum); ratio of ours to the best float32 peer\n")
    for key, lengths in groups.items():
        print(f"**{label(key)}**\n")
        table(["tokens", *names, "best peer", "ours / best"],
              [[n, *(milliseconds(engines.get(e)) for e in names), *ratio(engines)] for n, engines in lengths.items()])  # fmt: skip
    for key, lengths in groups.items():
        print(f"{label(key)}: milliseconds and relative error of the last hidden states, by tokens\n")
        print_errors(lengths, names)


def print_batches(results):
    """Prints the time per text, for batches of equal texts."""
    names = in_order(results)
    print("Equal texts at once: milliseconds a text, by medians; ratio of ours to the best float32 peer\n")
    for key, batches in grouped(by_row(results, TEXTS), 3).items():
        print(f"**{label(key)}**\n")
        lines = []
        for texts, engines in batches.items():
            cells = [f"{in_milliseconds(engines[e]['median_s'] / texts)}{mark(engines[e])}" if e in engines else NONE for e in names]
            lines.append([texts, *cells, *ratio(engines)])
        table(["texts", *names, "best peer", "ours / best"], lines)


def print_neighbours(quiet, busy):
    alone, names = by_row(quiet, ONE_TEXT), in_order(busy)

    def slowdown(key, with_one, engine):
        without = alone.get(key, {}).get(engine)
        return f"{share(with_one, without):.2f}{mark(with_one, without)}" if with_one and without else NONE

    print("With a busy process on one core: time / time without it\n")
    table(["row", *names], [[label(key), *(slowdown(key, engines.get(e), e) for e in names)] for key, engines in by_row(busy, ONE_TEXT).items()])


def print_documents(results):
    """Prints each engine with its best number of documents in a batch."""
    best = {}
    for result in sorted(results, key=lambda r: -r["median_s"]):
        best[result["model"], result["threads"], result["engine"]] = result
    print("Throughput on documents: each engine at its best number of documents at once\n")
    lines = []
    for key, engines in by_row(best.values(), ONE_TEXT[:2]).items():
        for engine, result in sorted(engines.items(), key=lambda item: item[1]["median_s"]):
            speed = f"{result['tokens_per_s']:.0f}{mark(result)}"
            lines.append([label(key), engine, result["documents_at_once"], speed, ratio(engines)[1] if engine == OURS else ""])
    table(["row", "engine", "documents at once", "tokens / s", "time: ours / best peer"], lines)


# ------------------------------------------------------------------------------------------------------ results of runs


def csv_lines(results, key=ONE_TEXT):
    """Yields a line for each row and engine, and the version that was measured."""
    names = in_order(results)
    for row, engines in by_row(results, key).items():
        for r in (engines[name] for name in names if name in engines):
            peak = f"{100 * r['peak_fraction']:.0f}" if r["peak_fraction"] else ""
            yield [*row, r["engine"], in_milliseconds(r["median_s"]), in_milliseconds(r["min_s"]), mark(r), f"{r['max_abs_difference']:.1e}",
                   peak, f"{r['peak_rss_bytes'] / 1e6:.0f}", f"{r['first_result_s']:.2f}"], r["version"]  # fmt: skip


def print_csv(folder, mode):
    """Prints a line for each row and engine, with values that the tables leave out. Only batches have a column of texts."""
    path = folder / mode / "all.json"
    if not path.exists():
        sys.exit(f"peers.py: {folder} holds no measurements of {mode}")
    results, key = json.loads(path.read_text("utf-8"))["results"], TEXTS if mode == "batches" else ONE_TEXT
    out = csv.writer(sys.stdout, lineterminator="\n")
    out.writerow(["model", "threads", "tokens", "texts"][: len(key)] + CSV_TITLES)
    out.writerows(line for line, _ in csv_lines(results, key))


def print_tables(folder):
    found = {path.parent.name: json.loads(path.read_text("utf-8")) for path in folder.glob("*/all.json")}
    if not found:
        sys.exit(f"peers.py: {folder} holds no results: a row counts once each engine was measured in it")
    environment = next(iter(found.values()))["environment"]
    versions = sorted({r["version"] for report in found.values() for r in report["results"]})
    machine = f"{environment['cpu']}, {environment['usable_cores']} cores, {environment['isa']}, {environment['system']}"
    print(f"{machine}; {'; '.join(versions)}\n")
    print("`!` other processes disturbed it: not a result. `?` disagrees with float64.\n")
    results = {mode: report["results"] for mode, report in found.items()}
    if "latency" in results:
        print_latency(results["latency"], "Latency, batch 1")
    if "batches" in results:
        print_batches(results["batches"])
    if "neighbour" in results:
        print_neighbours(results.get("latency", []), results["neighbour"])
    if "documents" in results:
        print_documents(results["documents"])


# ------------------------------------------------------------------------------------------------------------ of a file


def result_of(line, errors):
    """Returns the part of a result that a line of CSV keeps."""
    n, engine = int(line["tokens"]), line["engine"]
    return {"model": line["model"], "threads": int(line["threads"]), "n": n, "batch": int(line.get("texts", 1)), "engine": engine,
            "precision": precision_of(engine), "median_s": float(line["median_ms"]) / 1e3, "min_s": float(line["minimum_ms"]) / 1e3,
            "disturbed": "!" in line["mark"], "agrees": "?" not in line["mark"], "relative_error": errors.get((engine, n))}  # fmt: skip


def beside(engines, texts, own, precision):
    """Returns the time per text, and that of the fastest other engine of a precision."""
    if not (pair := both(engines, own, precision)):
        return [NONE, NONE, NONE]
    ours, peer = pair
    return [f"{1e3 * ours['median_s'] / texts:.3g}", f"{1e3 * peer['median_s'] / texts:.3g} ({peer['engine']})", f"{share(*pair):.2f}"]


def print_shares(rows):
    """Prints times as fractions of the fastest other engine's."""
    for title, own, others in COMPARED:
        pairs = [(engines[own], [engines[name] for name in others if name in engines]) for engines in rows.values() if own in engines]
        for named, column in (("median", "median_s"), ("minimum", "min_s")):
            found = [ours[column] / min(theirs[column] for theirs in them) for ours, them in pairs if them]
            if found:
                print(f"{title}, {named}: {' '.join(f'{one:.3f}' for one in found)}; least {min(found):.3f}, most {max(found):.3f}")


def options(parser):
    parser.add_argument("file")
    parser.add_argument("errors", nargs="?", help="the JSON file of the same run")


def run(arguments):
    lines, errors = [line for line in read_rows(arguments.file, ",") if line.get("state") != "old"], {}
    if arguments.errors:
        with open(arguments.errors, encoding="utf-8") as file:
            errors = {(one["engine"], one["n"]): one["relative_error"] for one in json.load(file)["results"]}
    results = [result_of(line, errors) for line in lines if line["median_ms"]]
    if "texts" in lines[0]:
        for key, batches in grouped(by_row(results, TEXTS), 2).items():
            titles = [label(key), *(title for own, precision in BESIDE for title in (own, f"best {precision} peer", "ours / best"))]
            table(titles, [[f"{texts} of {n} tokens", *(cell for pair in BESIDE for cell in beside(engines, texts, *pair))]
                           for (n, texts), engines in batches.items()])  # fmt: skip
        return 0
    rows, names = by_row(results, ONE_TEXT), list(dict.fromkeys(r["engine"] for r in results))
    print_ratios(rows, alone=True)
    speeds = [1 / share(*both(engines)) for engines in rows.values() if both(engines) and peers_of(engines) != ["torch"]]
    print(f"times as fast as the best float32 peer: least {min(speeds):.2f}, most {max(speeds):.2f}; {len(speeds)} rows\n")
    if errors:
        table(["row", *names, "best peer", "ours / best"],
              [[label(key), *(milliseconds(engines.get(engine)) for engine in names), *ratio(engines)] for key, engines in rows.items()])  # fmt: skip
        for lengths in grouped(rows, 2).values():
            print_errors(lengths, names)
        print_shares(rows)
    return 0
