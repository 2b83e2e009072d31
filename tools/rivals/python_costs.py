"""What the Python package costs over the library and the program: a row for each claim of docs/python.md, with its bar.

    tools/peers.py python [--only WORD] [--threads 2] [--rounds 9]

WORD: call, copies, steady, texts, memory, batches. Both sides of a comparison take turns; the quickest round of each is compared, which
is what it costs when nobody disturbs, and the median of the ratios of all rounds stands beside it. Needs the installed package
deberta_c; memory and batches also torch and transformers. Exit status 1: a bar was missed. SPDX-License-Identifier: MIT
"""
import dataclasses
import gc
import json
import os
import statistics
import subprocess
import sys
import tempfile
import threading
from pathlib import Path

import numpy as np

import deberta_c
from deberta_c._abi import library
from deberta_c._program import PROGRAM

from rivals.results import print_row, print_titles, ratios
from rivals.shapes import DOCUMENTS, SHAPES, padded_batch, read_lengths
from rivals.turns import ROOT, Runner, in_turns, seconds_of

DEMO, SENTENCES = ROOT / "models" / "demo", ROOT / "docs" / "studies" / "data" / "sentences.txt"
BASE = dataclasses.replace(SHAPES["v3-base"], vocabulary=30000).fields()


def resident_mib():
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 2**20


def quickest(rounds, ours, theirs):
    """Returns the quickest time of both, and the median of their ratio; first calls do not count."""
    ours(), theirs()
    found = in_turns(rounds, {"ours": ours, "theirs": theirs})
    return min(one["ours"] for one in found), min(one["theirs"] for one in found), statistics.median(ratios(found, "ours", "theirs"))


def of_the_program(what, bar, ours, theirs, ratio):
    here = f"{ours / theirs:.3f} ({1e3 * ours:.1f} and {1e3 * theirs:.1f} ms; median of rounds {ratio:.3f})"
    return f"{what}, of the program's time", here, f"{bar:.2f}", ours <= bar * theirs


def call_us(rounds=3000):
    """Returns microseconds of a call of 16 tokens above those of the C call inside."""
    model = deberta_c.Model("synthetic:v3-xsmall,layers=1,vocab=1000", threads=1)
    ids = np.ones(16, np.int32)
    model.encode(ids)
    session = model._session
    inner = (session._session.handle, session._batch, session._outputs)
    whole, inside, _ = quickest(rounds, lambda: seconds_of(lambda: model.encode(ids)), lambda: seconds_of(lambda: library.encode(*inner)))
    return 1e6 * (whole - inside)


def call(_options):
    cost = call_us()
    yield "a call above the C call, 16 tokens", f"{cost:.0f} us", "50 us", cost < 50


def copies(_options):
    model = deberta_c.Model(str(DEMO), threads=1)
    ids = np.array([1, 11, 442, 2], np.int32)
    model.encode(ids)
    same = model._session._batch.ids == ids.ctypes.data
    yield "contiguous int32 ids that are copied", "none" if same else "all", "none", same


def growth_mib(count=10000):
    """Returns the growth of resident memory over so many calls, after a tenth of them."""
    model, ids = deberta_c.Model(str(DEMO), threads=1), np.array([1, 11, 442, 2], np.int32)
    for k in range(count + count // 10):
        if k == count // 10:
            gc.collect()
            before = resident_mib()
        model.encode(ids)
    return resident_mib() - before


def steady(_options):
    grown = growth_mib()
    yield "memory after 10,000 calls", f"{grown:+.2f} MiB", "1 MiB", grown < 1


def texts(options):
    """Compares 1,000 sentences in Python with the program's run, less its run for one; vectors of texts keep the output small."""
    with tempfile.TemporaryDirectory() as folder:
        one = Path(folder) / "one.txt"
        one.write_text(SENTENCES.read_text().splitlines()[0] + "\n")

        def program(file):
            words = [PROGRAM, "encode", DEMO, "--file", file, "--pool", "mean", "-q", "-t", str(options.threads), "-o", f"{folder}/v.npy"]
            return seconds_of(lambda: subprocess.run(words, check=True))
        model, sentences = deberta_c.Model(str(DEMO), threads=options.threads), SENTENCES.read_text().splitlines()
        start = min(program(one) for _ in range(5))
        found = quickest(options.rounds, lambda: seconds_of(lambda: model.encode(sentences)), lambda: program(SENTENCES) - start)
    yield of_the_program(f"encode of {len(sentences):,} texts", 1.03, *found)


def memory_of_taking_over():
    """Measures in a process of its own: MiB of the weights, of the peak during accelerate, and afterwards."""
    import torch
    import transformers

    torch.set_num_threads(1)
    small = transformers.DebertaV2Model(transformers.DebertaV2Config(**{**BASE, "num_hidden_layers": 1, "vocab_size": 100})).eval()
    deberta_c.accelerate(small)  # Python and the library take this much for any model
    gc.collect()
    base, peak, done = resident_mib(), [0.0], threading.Event()
    model = transformers.DebertaV2Model(transformers.DebertaV2Config(**BASE)).eval()
    gc.collect()
    weights = sum(p.numel() * p.element_size() for p in model.parameters()) / 2**20

    def watch():
        while not done.wait(0.002):
            peak[0] = max(peak[0], resident_mib())
    watcher = threading.Thread(target=watch)
    watcher.start()
    deberta_c.accelerate(model)
    done.set()
    watcher.join()
    gc.collect()
    print(weights, peak[0] - base, resident_mib() - base)


def memory(_options):
    found = subprocess.run([sys.executable, ROOT / "tools" / "peers.py", "python", "--worker"], capture_output=True, text=True, check=True).stdout
    weights, peak, after = map(float, found.split())
    bar = 2 * weights + 200
    yield "accelerate: peak while it takes over", f"{peak:.0f} MiB", f"2 x {weights:.0f} + 200 MiB", peak <= bar
    # Beside the weights: the projections of positions, 36 MiB of this shape, which the library makes once, a session, and what PyTorch
    # keeps when it has run a few tokens, as accelerate lets it to compare.
    yield "accelerate: held afterwards", f"{after:.0f} MiB", f"{weights:.0f} + 80 MiB", after <= weights + 80


def program_seconds(shape, threads, lengths):
    words = [PROGRAM, "bench", shape, "--mix", ",".join(map(str, lengths)), "--threads", threads, "--reps", 1, "--no-peak", "--json", "--quiet"]
    return json.loads(Runner().run(*words).output)["results"][0]["median_s"]


def batches(options):
    """Compares accelerate on padded batches of v3-base's shape with the program on the same lengths."""
    import torch
    import transformers

    torch.set_num_threads(options.threads)
    model = deberta_c.accelerate(transformers.DebertaV2Model(transformers.DebertaV2Config(**BASE)).eval(), threads=options.threads)
    shape = f"synthetic:v3-base,vocab={BASE['vocab_size']}"
    for lengths, rounds in ((40,), 3 * options.rounds), (read_lengths(DOCUMENTS)[:16], min(options.rounds, 5)):
        ids, mask = map(torch.from_numpy, padded_batch(lengths, np.random.default_rng(7), BASE["vocab_size"]))

        def ours():
            with torch.inference_mode():
                model(ids, attention_mask=mask)  # warms up as the program does, because caches hold another process's data
                return seconds_of(lambda: model(ids, attention_mask=mask))
        found = quickest(rounds, ours, lambda: program_seconds(shape, options.threads, lengths))
        name = f"{len(lengths)} texts, {sum(lengths):,} tokens" if len(lengths) > 1 else f"1 text of {lengths[0]} tokens"
        yield of_the_program(f"accelerate, {name}", 1.05, *found)


def options(parser):
    parser.add_argument("--only", default="")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--worker", action="store_true", help="(what a process of this job does)")


def run(options):
    if options.worker:
        return memory_of_taking_over()
    missed = 0
    print_titles(["what", "here", "at most", ""], words=(0, 3))
    for section in (call, copies, steady, texts, memory, batches):
        for name, here, bar, ok in section(options) if options.only in section.__name__ else ():
            print_row([name, here, bar, "ok" if ok else "NO"])
            missed += not ok
    return int(missed > 0)
