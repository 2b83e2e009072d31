"""A step of training next to PyTorch: lean (lean_deberta.py), transformers eager and compiled, the same shapes in turn.

    tools/peers.py training --work W --out R.jsonl [--shapes demo,xsmall,small] [--batches 16x128,4x512] [--threads 1,2]
    tools/peers.py training --work W --out R.jsonl --rows demo:16x128:1,small:4x512:2 [--engines ours,lean] [--rounds 1]
    tools/peers.py training --out R.jsonl --table

A row is a shape, a batch and a number of threads. In every round each engine runs once, in a process of its own: one step that does
not count, then --steps that do. Forward, backward, clipping and AdamW in float32, no dropout, 15 % of the tokens labelled. Ours and
lean run the Enhanced Mask Decoder on labelled tokens; transformers has none, and makes logits of all tokens. What is printed are
medians: seconds, and the ratios of a round by the clock; with --processor by processor time, which a busy machine disturbs less.
--lock FILE: no two such runs at once. R.jsonl gets a line for each process; W keeps the models.

Needs build/deberta and tools/peers-requirements.txt. SPDX-License-Identifier: MIT
"""
import contextlib
import dataclasses
import fcntl
import json
import statistics
import sys
import time
from pathlib import Path

from rivals.results import name_list, number_list, print_table, ratios
from rivals.shapes import SHAPES as PUBLISHED, Shape
from rivals.turns import PROGRAM, ROOT, Failure, Runner, peak_memory_bytes, rotated, with_threads

ENGINES = ["ours", "lean", "eager", "compile"]
NAMES = {"ours": "ours", "lean": "lean", "eager": "eager", "compile": "compiled"}
ROW = ("shape", "sequences", "tokens", "threads")
LABELLED = 0.15
RUNNER = Runner(limit=7200)
FURTHER = {
    "model_type": "deberta-v2", "architectures": ["DebertaV2ForMaskedLM"], "legacy": False, "hidden_act": "gelu", "initializer_range": 0.02,
    "hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0, "pooler_dropout": 0, "pooler_hidden_act": "gelu", "tie_word_embeddings": True,
}  # fmt: skip
SHAPES = {
    "tiny": Shape(3, 32, 2, 2, 128, 512, 500, buckets=16),  # a small shape for a quick test
    "demo": Shape(3, 192, 3, 5, 768, 512, 6000, buckets=32),
    "xsmall": dataclasses.replace(PUBLISHED["v3-xsmall"], vocabulary=128100),
    "small": dataclasses.replace(PUBLISHED["v3-small"], vocabulary=128100),
    "xsmall-1000": PUBLISHED["v3-xsmall"],
    "small-1000": PUBLISHED["v3-small"],
}


def config_of(name):
    return SHAPES[name].fields() | FURTHER | {"pooler_hidden_size": SHAPES[name].hidden}


# ------------------------------------------------------------------------------------------------------------- worker


def make_model(name, folder):
    """Makes a model whose modules have the names of a checkpoint."""
    import torch

    from rivals.lean_deberta import LeanDeberta

    torch.manual_seed(0)
    LeanDeberta(config_of(name), 1).write(folder)


def lean_loss(config):
    from rivals.lean_deberta import LeanDeberta

    model = LeanDeberta(config, 1)
    return model, model.masked_loss


def transformers_loss(config, compiled=False):
    """Returns the loss of a new model, or of a folder's."""
    import torch
    from transformers import DebertaV2Config, DebertaV2ForMaskedLM

    new = isinstance(config, dict)
    model = (DebertaV2ForMaskedLM(DebertaV2Config(**config)) if new else DebertaV2ForMaskedLM.from_pretrained(config)).train()
    run = torch.compile(model) if compiled else model

    def loss(ids, rows, targets):
        labels = torch.full_like(ids, -100).scatter(1, rows, targets)
        return run(input_ids=ids, labels=labels).loss

    return model, loss


def work(row, engine, steps):
    import torch

    name, sequences, tokens, threads = row
    torch.manual_seed(1)
    torch.set_num_threads(threads)
    config = config_of(name)
    model, loss = lean_loss(config) if engine == "lean" else transformers_loss(config, engine == "compile")
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-8, eps=1e-6, weight_decay=0.01, fused=True)
    labelled, times, processor = round(LABELLED * tokens), [], []
    for step in range(steps + 1):
        ids = torch.randint(3, config["vocab_size"], (sequences, tokens))
        rows = torch.stack([torch.randperm(tokens)[:labelled].sort().values for _ in range(sequences)])
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
    print(json.dumps({"seconds": statistics.median(times), "processor": statistics.median(processor), "peak_bytes": peak_memory_bytes()}))


# --------------------------------------------------------------------------------------------------------- measuring


def read_lines(path):
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()] if path.exists() else []


def run_ours(row, arguments):
    name, sequences, tokens, threads = row
    done = RUNNER.run(arguments.program, "bench", "train", arguments.work / name, "--batch", sequences, "--tokens", tokens, "--labelled", LABELLED,
                      "--threads", threads, "--reps", arguments.steps, "--no-peak", "--json")
    found = json.loads(done.output)
    peak = next(line["bytes"] for line in found["memory"] if line["memory"] == "peak of the process")
    return {"seconds": found["median_seconds"], "processor": found["processor_seconds"], "peak_bytes": peak}


def run_theirs(row, engine, arguments):
    command = [sys.executable, ROOT / "tools" / "peers.py", "training", "--worker", json.dumps([row, engine, arguments.steps])]
    try:
        return json.loads(RUNNER.run(*command, environment=with_threads(row[-1])).output.strip().split("\n")[-1])
    except Failure as reason:
        raise Failure(f"{engine}, {row}: {reason}") from None


@contextlib.contextmanager
def alone(path):
    """Waits while another measurement runs."""
    if not path:
        yield
        return
    with open(path, "a", encoding="ascii") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def measure(arguments):
    rows = arguments.rows or [(name, *batch, threads) for name in arguments.shapes for batch in arguments.batches for threads in arguments.threads]
    for name in {row[0] for row in rows}:
        if not (arguments.work / name).exists():
            make_model(name, arguments.work / name)
    before = 1 + max((line["round"] for line in read_lines(arguments.out)), default=-1)
    for number in range(arguments.rounds):
        for row in rows:
            with alone(arguments.lock):
                for engine in rotated(arguments.engines, number):
                    found = run_ours(row, arguments) if engine == "ours" else run_theirs(row, engine, arguments)
                    with arguments.out.open("a", encoding="utf-8") as file:
                        file.write(json.dumps({"round": before + number, "engine": engine, **dict(zip(ROW, row)), **found}) + "\n")


# ------------------------------------------------------------------------------------------------------------- table


def engine_cell(lines, engine, tokens):
    """Formats seconds (tokens a second), GiB."""
    lines = [line for line in lines if line["engine"] == engine]
    if not lines:
        return "–"
    seconds = statistics.median(line["seconds"] for line in lines)
    return f"{seconds:.3g} ({tokens / seconds:,.0f}), {max(line['peak_bytes'] for line in lines) / 2**30:.2f}"


def ratio_cells(lines, field):
    rounds = {}
    for line in lines:
        rounds.setdefault(line["round"], {})[line["engine"]] = line[field]
    for engine in ENGINES[1:]:
        found = ratios(rounds.values(), engine, "ours")
        yield f"{statistics.median(found):.2f}" if found else "–"


def tabulate(path, field):
    rows = {}
    for line in read_lines(path):
        rows.setdefault(tuple(line[name] for name in ROW), []).append(line)
    titles = ["shape", "tokens", "threads", *(f"{NAMES[engine]}: s (tokens/s), GiB" for engine in ENGINES)]
    titles += [f"{NAMES[engine]} / ours" for engine in ENGINES[1:]]
    table = []
    for (name, sequences, tokens, threads), lines in sorted(rows.items()):
        cells = [engine_cell(lines, engine, sequences * tokens) for engine in ENGINES]
        table.append([name, f"{sequences} x {tokens}", threads, *cells, *ratio_cells(lines, field)])
    print_table(titles, table, words=range(len(titles)))


def batches(text):
    return [tuple(int(n) for n in one.split("x")) for one in text.split(",")]


def row_list(text):
    """Parses shape:SEQUENCESxTOKENS:THREADS, ..."""
    parts = [one.split(":") for one in text.split(",")]
    name_list(SHAPES)(",".join(name for name, _, _ in parts))
    return [(name, *batches(batch)[0], int(threads)) for name, batch, threads in parts]


def options(parser):
    add = parser.add_argument
    add("--work", type=Path)
    add("--out", type=Path)
    add("--table", action="store_true")
    add("--processor", action="store_true", help="ratios of processor time")
    add("--program", type=Path, default=PROGRAM)
    add("--shapes", type=name_list(SHAPES), default=["demo", "xsmall", "small"])
    add("--batches", type=batches, default=[(16, 128), (4, 512)])
    add("--threads", type=number_list, default=[1, 2])
    add("--rows", type=row_list, help="instead of all shapes, batches and threads: demo:16x128:1,...")
    add("--engines", type=name_list(ENGINES), default=ENGINES)
    add("--rounds", type=int, default=3)
    add("--steps", type=int, default=3)
    add("--lock")
    add("--worker", type=json.loads, help="(what a process of this job does)")


def run(arguments):
    if arguments.worker:
        return work(*arguments.worker)
    if not arguments.out or not (arguments.table or arguments.work):
        raise Failure("--out and --work are needed, or --out and --table")
    if not arguments.table:
        measure(arguments)
    tabulate(arguments.out, "processor" if arguments.processor else "seconds")
    return 0
