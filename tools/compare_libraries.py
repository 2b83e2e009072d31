#!/usr/bin/env python3
"""Builds of libdeberta against each other, call by call: medians of forward passes that take turns, as a Markdown table.

    tools/compare_libraries.py NAME=LIBRARY[,VARIABLE=VALUE...] ... [-n 16,128,512] [-t 2] [--busy]

    meson setup build-openmp -Dthreads=openmp && ninja -C build-openmp
    tools/compare_libraries.py pool=build/libdeberta.so libgomp=build-openmp/libdeberta.so \\
        libgomp-passive=build-openmp/libdeberta.so,OMP_WAIT_POLICY=passive \\
        libomp=build-openmp/libdeberta.so,LD_PRELOAD=/usr/lib/llvm-14/lib/libomp.so.5 --busy

Each library lives in a process of its own, with a model and a session for each length. They take turns, in another order in every
round: a pause in which what the last one left spinning falls asleep, two forwards that are not counted, then those that are. A
number is the median over all rounds in milliseconds; in brackets the ratio to the first library, the median over the rounds of the
ratios within a round. --busy repeats all beside a process that never sleeps. --processor-time counts what the process
spends, which a neighbour moves less than what it waits: for one thread. LLVM's OpenMP in place of GCC's, as above, works because
it has the entry points of both.

SPDX-License-Identifier: MIT
"""
import argparse
import ctypes
import os
import statistics
import subprocess
import sys
import time

PAUSE_SECONDS = 0.3  # LLVM's threads spin for 200 ms behind a loop
WARM_CALLS = 2


class Session:
    """One length of one library, by the beginnings of the public structs, which every version has."""

    def __init__(self, library, model, tokens, options):
        self.library, self.tokens, self.processor_time = library, tokens, options.processor_time
        self.handle = ctypes.c_void_p()
        options = (ctypes.c_size_t * 4)(32, 0, tokens, int(options.threads))  # struct_size, isa, max_tokens, threads
        check(library.deberta_session_create(ctypes.byref(self.handle), model, options, None), "deberta_session_create")
        self.ids = (ctypes.c_int32 * tokens)(*(1 + 7919 * t % 900 for t in range(tokens)))
        self.starts = (ctypes.c_size_t * 2)(0, tokens)

    def milliseconds(self):
        # struct_size, ids, sequence_starts, sequences; outputs with room for what older versions had.
        batch = (ctypes.c_size_t * 4)(32, ctypes.addressof(self.ids), ctypes.addressof(self.starts), 1)
        outputs = (ctypes.c_size_t * 4)(32, 0, 0, 0)
        clock = time.process_time if self.processor_time else time.perf_counter
        begin = clock()
        check(self.library.deberta_encode(self.handle, batch, outputs, None), "deberta_encode")
        return 1e3 * (clock() - begin)


def check(status, what):
    if status:
        sys.exit(f"{what}: status {status}")


def work(options, lengths):
    """The process of one library: for each line `length calls` the times of so many calls."""
    library = ctypes.CDLL(os.path.abspath(options.worker))
    model = ctypes.c_void_p()
    check(library.deberta_model_open(ctypes.byref(model), options.model.encode(), None, None), "deberta_model_open")
    sessions = {tokens: Session(library, model, tokens, options) for tokens in lengths}
    print("ready", flush=True)
    for line in sys.stdin:
        tokens, calls = map(int, line.split())
        times = [sessions[tokens].milliseconds() for _ in range(WARM_CALLS + calls)][WARM_CALLS:]
        print(*times, flush=True)


class Worker:
    def __init__(self, text, options):
        name_path, *settings = text.split(",")
        self.name, _, path = name_path.partition("=")
        environment = {**os.environ, **dict(s.split("=", 1) for s in settings)}
        self.process = subprocess.Popen([sys.executable, __file__, "--worker", path, "--model", options.model, "-n", options.tokens, "-t", options.threads] + ["--processor-time"] * options.processor_time,
                                        env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def answer(self):
        line = self.process.stdout.readline()
        if not line:
            sys.exit(f"{self.name}: its process ended")
        return line

    def median(self, tokens, calls):
        time.sleep(PAUSE_SECONDS)
        self.process.stdin.write(f"{tokens} {calls}\n")
        self.process.stdin.flush()
        return statistics.median(map(float, self.answer().split()))


def compare(workers, tokens, options):
    """A cell a library."""
    rounds = []
    for number in range(options.rounds):
        turn = number % len(workers)
        rounds.append({w.name: w.median(tokens, options.calls) for w in workers[turn:] + workers[:turn]})
    base = workers[0].name
    cells = [f"{statistics.median(r[base] for r in rounds):.1f}"]
    for worker in workers[1:]:
        ratio = statistics.median(r[worker.name] / r[base] for r in rounds)
        cells.append(f"{statistics.median(r[worker.name] for r in rounds):.1f} ({ratio:.2f})")
    return cells


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("libraries", nargs="*", metavar="NAME=LIBRARY")
    parser.add_argument("--model", default="synthetic:v3-small,vocab=1000")
    parser.add_argument("-n", "--tokens", default="16,128,512")
    parser.add_argument("-t", "--threads", default=str(os.cpu_count()))
    parser.add_argument("--calls", type=int, default=5)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--busy", action="store_true")
    parser.add_argument("--processor-time", action="store_true")
    parser.add_argument("--worker", help=argparse.SUPPRESS)
    options = parser.parse_args()
    lengths = [int(n) for n in options.tokens.split(",")]
    if options.worker:
        work(options, lengths)
        return 0
    if len(options.libraries) < 2:
        parser.error("give two libraries or more")
    workers = [Worker(text, options) for text in options.libraries]
    for worker in workers:
        worker.answer()
    print("| tokens | beside | " + " | ".join(w.name for w in workers) + " |\n|--:|---|" + "--:|" * len(workers), flush=True)
    for busy in (False, True)[:1 + options.busy]:
        neighbour = subprocess.Popen([sys.executable, "-c", "while True: pass"]) if busy else None
        try:
            for tokens in lengths:
                print(f"| {tokens} | {'a busy process' if busy else 'nothing'} | " + " | ".join(compare(workers, tokens, options)) + " |", flush=True)
        finally:
            if neighbour:
                neighbour.kill()
                neighbour.wait()
    for worker in workers:
        worker.process.stdin.close()
        worker.process.wait()
    return 0


if __name__ == "__main__":
    sys.exit(main())
