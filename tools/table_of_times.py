#!/usr/bin/env python3
"""Tables of times from the committed results of tools/peers.py: tools/table_of_times.py docs/benchmarks/amd-zen4.csv [ERRORS.json]

Prints ours / the best float32 peer, and with the file of errors times beside errors and times of low precision as shares of others, as the pages of docs/benchmarks have them.
Of batches it prints the time a text, and ours / the best peer of float32 and of int8.
SPDX-License-Identifier: MIT
"""
import csv
import json
import sys

COMPARED = (("int8 of ORT", "deberta-int8", ("onnxruntime-int8", "onnxruntime-int8-channel")), ("int8 of bf16", "deberta-int8", ("openvino-bf16",)),
            ("int16 of bf16", "deberta-int16", ("openvino-bf16",)), ("int16 of float32", "deberta-int16", ("deberta",)),
            ("int8 of OpenVINO int8", "deberta-int8", ("openvino-int8", "openvino-int8-bf16")))
PEERS = ("torch", "onnxruntime", "openvino")
BESIDE = (("deberta", "float32", PEERS), ("deberta-int16", "bfloat16", ("torch-bf16", "openvino-bf16")),
          ("deberta-int8", "int8", ("onnxruntime-int8", "onnxruntime-int8-channel", "openvino-int8", "openvino-int8-bf16")))


def number(text):
    return float(text) if text else None


def label(model, threads):
    return f"{model}, {threads} thread{'s' if int(threads) > 1 else ''}"


def best(row):
    """The fastest float32 engine that agrees with float64; the last word says that PyTorch is the only one."""
    peers = {name: row[name]["median_ms"] for name in PEERS if name in row and row[name]["median_ms"] and row[name]["mark"] in ("", "!")}
    name = min(peers, key=lambda one: float(peers[one]), default=None)
    return name, list(peers) == ["torch"]


def ratio(row):
    name, alone = best(row)
    if not name or "deberta" not in row:
        return "–"
    text = f"{float(row['deberta']['median_ms']) / float(row[name]['median_ms']):.2f}"
    return f"({text})" if alone else text


def times_as_fast(row):
    """As the best float32 peer; None without one, and where it is PyTorch alone."""
    name, alone = best(row)
    return float(row[name]["median_ms"]) / float(row["deberta"]["median_ms"]) if name and not alone and "deberta" in row else None


def print_table(titles, rows):
    print("| " + " | ".join(titles) + " |\n|---|" + "--:|" * (len(titles) - 1))
    for row in rows:
        print("| " + " | ".join(row) + " |")
    print()


def engines_known(compared, engines):
    return compared[1] in engines and not set(compared[2]).isdisjoint(engines)


def milliseconds(cell):
    return f"{cell['median_ms']} ({cell['minimum_ms']})" if cell else "–"


def print_batches(found):
    """Time a text of equal texts at once, beside the fastest other engine of the same precision (int16: of bfloat16)."""
    rows = {}
    for line in found:
        rows.setdefault((line["model"], line["threads"]), {}).setdefault((line["tokens"], line["texts"]), {})[line["engine"]] = line
    for key, by_batch in rows.items():
        titles = [label(*key)]
        for own, precision, _ in BESIDE:
            titles += [own, f"best {precision} peer", "ours / best"]
        print_table(titles, [[f"{texts} of {tokens} tokens", *(cell for beside in BESIDE for cell in cells_of_batch(row, int(texts), *beside))]
                             for (tokens, texts), row in by_batch.items()])


def cells_of_batch(row, texts, own, _, peers):
    times = {name: float(row[name]["median_ms"]) for name in peers if name in row and "?" not in row[name]["mark"]}
    if own not in row or not times:
        return ["–", "–", "–"]
    best, ours = min(times, key=times.get), float(row[own]["median_ms"])
    return [f"{ours / texts:.3g}", f"{times[best] / texts:.3g} ({best})", f"{ours / times[best]:.2f}"]


def main():
    with open(sys.argv[1], encoding="utf-8", newline="") as file:
        found = list(csv.DictReader(file))
    rows, engines = {}, list(dict.fromkeys(line["engine"] for line in found))
    if "texts" in found[0]:
        print_batches(found)
        return 0
    for line in found:
        rows.setdefault((line["model"], line["threads"]), {}).setdefault(int(line["tokens"]), {})[line["engine"]] = line
    lengths = sorted({n for row in rows.values() for n in row})
    print_table(["model, threads", *map(str, lengths)], [[label(*key), *(ratio(row[n]) if n in row else "–" for n in lengths)] for key, row in rows.items()])
    speeds = [speed for row in rows.values() for n in row if (speed := times_as_fast(row[n]))]
    print(f"times as fast as the best float32 peer: least {min(speeds):.2f}, most {max(speeds):.2f}; {len(speeds)} rows\n")
    if len(sys.argv) < 3:
        return 0
    lines = []
    for key, row in rows.items():
        for n in row:
            name, ours = best(row[n])[0], row[n]["deberta"]
            by = [float(ours[column]) / float(row[n][name][column]) for column in ("median_ms", "minimum_ms")]
            lines.append([f"{label(*key)}, n = {n}", *(milliseconds(row[n].get(engine)) for engine in engines), name, f"**{by[0]:.3f}** ({by[1]:.3f})"])
    print_table(["row", *engines, "best peer", "ours / best"], lines)
    with open(sys.argv[2], encoding="utf-8") as file:
        errors = {(one["engine"], one["n"]): one for one in json.load(file)["results"]}
    for key, row in rows.items():
        print_table(["engine", "precision", *(f"n = {n}" for n in row)],
                    [[engine, errors[engine, min(row)]["precision"],
                      *(f"{row[n][engine]['median_ms']}, {errors[engine, n]['relative_error']:.1e}" for n in row)] for engine in engines])
    for title, ours, theirs in (one for one in COMPARED if engines_known(one, engines)):
        for column in ("median_ms", "minimum_ms"):
            found = [float(row[n][ours][column]) / min(float(row[n][one][column]) for one in theirs if one in row[n]) for row in rows.values() for n in row]
            print(f"{title}, {column[:-3]}: {' '.join(f'{one:.3f}' for one in found)}; least {min(found):.3f}, most {max(found):.3f}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
