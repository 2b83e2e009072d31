#!/usr/bin/env python3
"""A step of training next to PyTorch: lean (lean_deberta.py), transformers eager and compiled, the same shapes in turn.

    tools/train_peers.py --work W --out R.jsonl [--shapes demo,xsmall,small] [--batches 16x128,4x512] [--threads 1,2]
    tools/train_peers.py --work W --out R.jsonl --rows demo:16x128:1,small:4x512:2 [--engines ours,lean] [--rounds 1]
    tools/train_peers.py --out R.jsonl --table

A row is a shape, a batch and a number of threads. In every round each engine runs once, in a process of its own: one step that does
not count, then --steps that do. Forward, backward, clipping and AdamW in float32, no dropout, 15 % of the tokens labelled. Ours and
lean run the Enhanced Mask Decoder on labelled tokens; transformers has none, and makes logits of all tokens. What is printed are
medians: seconds, and the ratios of a round by the clock; with --processor by processor time, which a busy machine disturbs less. --lock FILE: no two such
runs at once. R.jsonl gets a line for each process; W keeps the models.

Needs build/deberta and tools/peers-requirements.txt. SPDX-License-Identifier: MIT
"""
import argparse
import contextlib
import fcntl
import json
import os
import statistics
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
ENGINES = ["ours", "lean", "eager", "compile"]
NAMES = {"ours": "ours", "lean": "lean", "eager": "eager", "compile": "compiled"}
ROW = ("shape", "sequences", "tokens", "threads")
LABELLED = 0.15
COMMON = {
    "model_type": "deberta-v2", "architectures": ["DebertaV2ForMaskedLM"], "legacy": False, "hidden_act": "gelu", "layer_norm_eps": 1e-7,
    "initializer_range": 0.02, "hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0, "max_position_embeddings": 512,
    "type_vocab_size": 0, "pad_token_id": 0, "position_biased_input": False, "relative_attention": True, "max_relative_positions": -1,
    "norm_rel_ebd": "layer_norm", "share_att_key": True, "pos_att_type": "p2c|c2p", "pooler_dropout": 0, "pooler_hidden_act": "gelu",
    "tie_word_embeddings": True,
}


def shape(vocabulary, hidden, layers, heads, buckets):
    return {**COMMON, "vocab_size": vocabulary, "hidden_size": hidden, "pooler_hidden_size": hidden, "num_hidden_layers": layers,
            "num_attention_heads": heads, "intermediate_size": 4 * hidden, "position_buckets": buckets}


SHAPES = {
    "tiny": shape(500, 32, 2, 2, 16),  # does it work here?
    "demo": shape(6000, 192, 5, 3, 32),
    "xsmall": shape(128100, 384, 12, 6, 256),
    "small": shape(128100, 768, 6, 12, 256),
    "xsmall-1000": shape(1000, 384, 12, 6, 256),
    "small-1000": shape(1000, 768, 6, 12, 256),
}

# ------------------------------------------------------------------------------------------------------------- worker


def peak_bytes():
    with open("/proc/self/status", encoding="ascii") as file:
        return next(int(line.split()[1]) * 1024 for line in file if line.startswith("VmHWM:"))


def make_model(name, folder):
    """The names of lean's modules are those of a checkpoint."""
    import safetensors.torch
    import torch
    from lean_deberta import LeanDeberta

    torch.manual_seed(0)
    weights = LeanDeberta(SHAPES[name], 2).state_dict()
    folder.mkdir(parents=True)
    safetensors.torch.save_file({k: v for k, v in weights.items() if not k.startswith(("pooler", "classifier"))},
                                folder / "model.safetensors", metadata={"format": "pt"})
    (folder / "config.json").write_text(json.dumps(SHAPES[name]))


def lean_loss(config):
    import torch.nn.functional as F
    from lean_deberta import LeanDeberta

    model = LeanDeberta(config, 2)

    def loss(ids, rows, targets):
        decoded, _ = model.decode(ids, rows)
        return F.cross_entropy(model.vocabulary_logits(decoded).flatten(0, 1), targets.flatten())

    return model, loss


def transformers_loss(config, compiled):
    import torch
    from transformers import DebertaV2Config, DebertaV2ForMaskedLM

    model = DebertaV2ForMaskedLM(DebertaV2Config(**config)).train()
    run = torch.compile(model) if compiled else model

    def loss(ids, rows, targets):
        labels = torch.full_like(ids, -100).scatter(1, rows, targets)
        return run(input_ids=ids, labels=labels).loss

    return model, loss


def work(args):
    import torch

    torch.manual_seed(1)
    torch.set_num_threads(args.threads)
    config = SHAPES[args.shape]
    model, loss = lean_loss(config) if args.engine == "lean" else transformers_loss(config, args.engine == "compile")
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-8, eps=1e-6, weight_decay=0.01, fused=True)
    labelled, times, processor = round(LABELLED * args.tokens), [], []
    for step in range(args.steps + 1):
        ids = torch.randint(3, config["vocab_size"], (args.sequences, args.tokens))
        rows = torch.stack([torch.randperm(args.tokens)[:labelled].sort().values for _ in range(args.sequences)])
        targets = torch.randint(3, config["vocab_size"], rows.shape)
        began, began_processor = time.perf_counter(), time.process_time()
        optimizer.zero_grad(set_to_none=True)
        value = loss(ids, rows, targets)
        value.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        value.item()
        if step > 0:
            times.append(time.perf_counter() - began)
            processor.append(time.process_time() - began_processor)
    print(json.dumps({"seconds": statistics.median(times), "processor": statistics.median(processor), "peak_bytes": peak_bytes()}))


# --------------------------------------------------------------------------------------------------------- measuring


def read_lines(path):
    if not Path(path).exists():
        return []
    with open(path, encoding="utf-8") as file:
        return [json.loads(line) for line in file]


def run_ours(args, row):
    command = [args.program, "bench", "train", str(Path(args.work) / row["shape"]), "--batch", str(row["sequences"]), "--tokens", str(row["tokens"]),
               "--labelled", str(LABELLED), "--threads", str(row["threads"]), "--reps", str(args.steps), "--no-peak", "--json"]
    found = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    peak = next(line["bytes"] for line in found["memory"] if line["memory"] == "peak of the process")
    return {"seconds": found["median_seconds"], "processor": found["processor_seconds"], "peak_bytes": peak}


def run_theirs(args, row, engine):
    command = [sys.executable, __file__, "--worker", "--engine", engine, "--shape", row["shape"], "--sequences", str(row["sequences"]),
               "--tokens", str(row["tokens"]), "--threads-of-worker", str(row["threads"]), "--steps", str(args.steps)]
    done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, "OMP_NUM_THREADS": str(row["threads"])})
    if done.returncode != 0:
        raise SystemExit(f"{engine}, {row}: {done.stderr.strip()[-500:]}")
    return json.loads(done.stdout.strip().split("\n")[-1])


@contextlib.contextmanager
def alone(path):
    """While somebody else measures, wait."""
    if not path:
        yield
        return
    with open(path, "a", encoding="ascii") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def measure(args):
    rows = args.rows or [(name, *batch, threads) for name in args.shapes for batch in args.batches for threads in args.threads]
    for name in {row[0] for row in rows}:
        if not (Path(args.work) / name).exists():
            make_model(name, Path(args.work) / name)
    before = 1 + max((line["round"] for line in read_lines(args.out)), default=-1)
    for number in range(args.rounds):
        turn = args.engines[number % len(args.engines):] + args.engines[:number % len(args.engines)]
        for row in [dict(zip(ROW, values)) for values in rows]:
            with alone(args.lock):
                for engine in turn:
                    found = run_ours(args, row) if engine == "ours" else run_theirs(args, row, engine)
                    with open(args.out, "a", encoding="utf-8") as file:
                        file.write(json.dumps({"round": before + number, "engine": engine, **row, **found}) + "\n")


# ------------------------------------------------------------------------------------------------------------- table


def median_ratio(lines, engine, other, field):
    """other / engine of the rounds that have both."""
    by_round = {}
    for line in lines:
        by_round.setdefault(line["round"], {})[line["engine"]] = line[field]
    ratios = [found[other] / found[engine] for found in by_round.values() if engine in found and other in found]
    return statistics.median(ratios) if ratios else None


def cell(value):
    return "–" if value is None else f"{value:.2f}"


def engine_cell(lines, engine, tokens):
    """Seconds (tokens a second), GiB."""
    lines = [line for line in lines if line["engine"] == engine]
    if not lines:
        return "–"
    seconds = statistics.median(line["seconds"] for line in lines)
    return f"{seconds:.3g} ({tokens / seconds:,.0f}), {max(line['peak_bytes'] for line in lines) / 2**30:.2f}"


def print_table(path, field):
    rows = {}
    for line in read_lines(path):
        rows.setdefault(tuple(line[name] for name in ROW), []).append(line)
    titles = ["shape", "tokens", "threads", *(f"{NAMES[engine]}: s (tokens/s), GiB" for engine in ENGINES)]
    titles += [f"{NAMES[engine]} / ours" for engine in ENGINES[1:]]
    print("| " + " | ".join(titles) + " |\n" + "|---" * len(titles) + "|")
    for (name, sequences, tokens, threads), lines in sorted(rows.items()):
        cells = [name, f"{sequences} x {tokens}", threads, *(engine_cell(lines, engine, sequences * tokens) for engine in ENGINES)]
        cells += [cell(median_ratio(lines, "ours", engine, field)) for engine in ENGINES[1:]]
        print("| " + " | ".join(map(str, cells)) + " |")


def numbers(text):
    return [int(n) for n in text.split(",")]


def batches(text):
    return [tuple(int(n) for n in one.split("x")) for one in text.split(",")]


def row_list(text):
    """shape:SEQUENCESxTOKENS:THREADS, ..."""
    parts = [one.split(":") for one in text.split(",")]
    return [(name, *batches(batch)[0], int(threads)) for name, batch, threads in parts]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--work")
    parser.add_argument("--out")
    parser.add_argument("--table", action="store_true")
    parser.add_argument("--processor", action="store_true", help="ratios of processor time")
    parser.add_argument("--program", default=str(ROOT / "build" / "deberta"))
    parser.add_argument("--shapes", type=lambda text: text.split(","), default=["demo", "xsmall", "small"])
    parser.add_argument("--batches", type=batches, default=[(16, 128), (4, 512)])
    parser.add_argument("--threads", type=numbers, default=[1, 2])
    parser.add_argument("--rows", type=row_list, help="instead of all shapes, batches and threads: demo:16x128:1,...")
    parser.add_argument("--engines", type=lambda text: text.split(","), default=ENGINES)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--steps", type=int, default=3)
    parser.add_argument("--lock")
    for name, kind in (("--engine", str), ("--shape", str), ("--sequences", int), ("--tokens", int), ("--threads-of-worker", int)):
        parser.add_argument(name, type=kind, help=argparse.SUPPRESS)
    parser.add_argument("--worker", action="store_true", help=argparse.SUPPRESS)
    args = parser.parse_args()
    unknown = [name for name in args.shapes + [row[0] for row in args.rows or []] if name not in SHAPES] + [name for name in args.engines if name not in ENGINES]
    if unknown:
        parser.error(f"unknown: {', '.join(unknown)}; shapes are {', '.join(SHAPES)}, engines {', '.join(ENGINES)}")
    if args.worker:
        args.threads = args.threads_of_worker
        work(args)
        return
    if not args.out or not (args.table or args.work):
        parser.error("--out and --work are needed, or --out and --table")
    if not args.table:
        measure(args)
    print_table(args.out, "processor" if args.processor else "seconds")


if __name__ == "__main__":
    main()
