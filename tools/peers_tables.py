"""The results of tools/peers.py as Markdown or CSV: reads the all.json of each kind of measurement, prints.

SPDX-License-Identifier: MIT
"""
import csv
import json
import sys

from peers_worker import ENGINES, OURS, OWN


def print_table(titles, rows):
    print("| " + " | ".join(titles) + " |")
    print("|---|" + "--:|" * (len(titles) - 1))
    for row in rows:
        print("| " + " | ".join(row) + " |")
    print()


def mark(result):
    return ("!" if result["disturbed"] else "") + ("?" if not result["agrees"] else "")


def in_milliseconds(seconds):
    """Four digits, or all of those before the point."""
    return f"{1e3 * seconds:.4g}" if 1e3 * seconds < 9999.5 else f"{1e3 * seconds:.0f}"


def milliseconds(result):
    return f"{in_milliseconds(result['median_s'])} ({in_milliseconds(result['min_s'])}){mark(result)}" if result else "–"


def best_peer(engines):
    """Of the float32 peers that agree."""
    peers = [r for name, r in engines.items() if name in ENGINES and r["precision"] == "float32" and r["agrees"]]
    return min(peers, key=lambda r: r["median_s"], default=None)


def ratio(engines):
    """Ours / best peer, by medians and by minima; below 1 ours is faster."""
    ours, peer = engines.get(OURS), best_peer(engines)
    if not ours or not peer:
        return ["–", "–"]
    doubt = mark(ours) or mark(peer)
    return [peer["engine"], f"**{ours['median_s'] / peer['median_s']:.3f}** ({ours['min_s'] / peer['min_s']:.3f}){doubt}"]


def by_row(results, key):
    rows = {}
    for result in results:
        rows.setdefault(tuple(result[name] for name in key), {})[result["engine"]] = result
    return dict(sorted(rows.items()))


def label(key):
    """Of (model, threads) or (model, threads, n)."""
    model, threads, *n = key
    return f"{model}, {threads} thread{'s' if threads > 1 else ''}" + (f", n = {n[0]}" if n else "")


def in_order(results):
    """Names of their engines, ours first."""
    known = [*OWN, *ENGINES]
    return sorted({r["engine"] for r in results}, key=known.index)


def print_ratios(rows):
    """All of the ratios at a glance."""
    lengths = sorted({n for _, _, n in rows})
    print("Time of ours / time of the best float32 peer, batch 1, by medians, at so many tokens\n")
    lines = {}
    for (model, threads, n), engines in rows.items():
        ours, peer = engines.get(OURS), best_peer(engines)
        if ours and peer:
            doubt = mark(ours) or mark(peer)
            lines.setdefault((model, threads), {})[n] = f"{ours['median_s'] / peer['median_s']:.2f}{doubt}"
    print_table(["model, threads", *map(str, lengths)], [[label(key), *(line.get(n, "–") for n in lengths)] for key, line in lines.items()])


def print_errors(rows, names):
    """An engine a line, a time beside its error: what lower precision buys, and what it costs."""
    groups = {}
    for (model, threads, n), engines in rows.items():
        groups.setdefault((model, threads), {})[n] = engines
    for key, lengths in groups.items():
        print(f"{label(key)}: milliseconds and relative error of the last hidden states, by tokens\n")
        lines = []
        for engine in names:
            found = [engines.get(engine) for engines in lengths.values()]
            cells = [f"{in_milliseconds(r['median_s'])}{mark(r)}, {r['relative_error']:.1e}" if r else "–" for r in found]
            precision = next((r["precision"] for r in found if r), None)
            if precision:
                lines.append([engine, precision, *cells])
        print_table(["engine", "precision", *(f"n = {n}" for n in lengths)], lines)


def print_latency(results, title):
    rows = by_row(results, ("model", "threads", "n"))
    names = in_order(results)
    print_ratios(rows)
    print(f"{title}: milliseconds, median (minimum); ratio of ours to the best float32 peer\n")
    for group in dict.fromkeys(key[:2] for key in rows):
        print(f"**{label(group)}**\n")
        print_table(["tokens", *names, "best peer", "ours / best"],
                    [[str(key[2]), *(milliseconds(engines.get(e)) for e in names), *ratio(engines)]
                     for key, engines in rows.items() if key[:2] == group])  # fmt: skip
    print_errors(rows, names)


CSV_MODES = ("latency", "batches")
CSV_TITLES = ["engine", "median_ms", "minimum_ms", "mark", "largest_difference", "percent_of_peak", "peak_memory_mb", "first_result_s"]


def print_csv(folder, mode):
    """A line for each row and engine, with what the tables leave out. Only batches have a column of texts."""
    path = folder / mode / "all.json"
    if not path.exists():
        sys.exit(f"peers.py: {folder} holds no measurements of {mode}")
    results = json.loads(path.read_text("utf-8"))["results"]
    many = mode == "batches"
    rows, names = by_row(results, ("model", "threads", "n", "batch") if many else ("model", "threads", "n")), in_order(results)
    out = csv.writer(sys.stdout, lineterminator="\n")
    out.writerow(["model", "threads", "tokens", *(["texts"] if many else []), *CSV_TITLES])
    for key, engines in rows.items():
        for name in names:
            if name in engines:
                r = engines[name]
                peak = f"{100 * r['peak_fraction']:.0f}" if r["peak_fraction"] else ""
                out.writerow([*key, name, in_milliseconds(r["median_s"]), in_milliseconds(r["min_s"]), mark(r), f"{r['max_abs_difference']:.1e}",
                              peak, f"{r['peak_rss_bytes'] / 1e6:.0f}", f"{r['first_result_s']:.2f}"])  # fmt: skip


def print_neighbours(quiet, busy):
    rows, alone = by_row(busy, ("model", "threads", "n")), by_row(quiet, ("model", "threads", "n"))
    names = in_order(busy)

    def slowdown(key, engine):
        with_one, without = rows[key].get(engine), alone.get(key, {}).get(engine)
        if not with_one or not without:
            return "–"
        return f"{with_one['median_s'] / without['median_s']:.2f}{mark(with_one) or mark(without)}"

    print("With a busy process on one core: time / time without it\n")
    print_table(["row", *names], [[label(key), *(slowdown(key, e) for e in names)] for key in rows])


def print_documents(results):
    """Each engine with the number of documents at once that suits it best."""
    best = {}
    for result in results:
        key = (result["model"], result["threads"], result["engine"])
        if key not in best or result["median_s"] < best[key]["median_s"]:
            best[key] = result
    rows = by_row(best.values(), ("model", "threads"))
    print("Throughput on documents: each engine at its best number of documents at once\n")
    lines = []
    for key, engines in rows.items():
        _, against = ratio(engines)
        for engine, result in sorted(engines.items(), key=lambda item: item[1]["median_s"]):
            speed = f"{result['tokens_per_s']:.0f}{mark(result)}"
            lines.append([label(key), engine, str(result["documents_at_once"]), speed, against if engine == OURS else ""])
    print_table(["row", "engine", "documents at once", "tokens / s", "time: ours / best peer"], lines)


def print_batches(results):
    """Time a text, of equal texts at once."""
    rows, names = by_row(results, ("model", "threads", "n", "batch")), in_order(results)
    print("Equal texts at once: milliseconds a text, by medians; ratio of ours to the best float32 peer\n")
    for group in dict.fromkeys(key[:3] for key in rows):
        print(f"**{label(group)}**\n")
        lines = [[str(key[3]), *(f"{in_milliseconds(engines[e]['median_s'] / key[3])}{mark(engines[e])}" if e in engines else "–" for e in names),
                  *ratio(engines)] for key, engines in rows.items() if key[:3] == group]  # fmt: skip
        print_table(["texts", *names, "best peer", "ours / best"], lines)


def print_tables(folder):
    found = {}
    for mode in ("latency", "batches", "neighbour", "documents"):
        path = folder / mode / "all.json"
        if path.exists():
            found[mode] = json.loads(path.read_text("utf-8"))
    if not found:
        sys.exit(f"peers.py: {folder} holds no results")
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
