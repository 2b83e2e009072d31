"""Builds of libdeberta against each other, call by call: medians of forward passes that take turns, as a Markdown table.

    tools/peers.py libraries NAME=LIBRARY[,VARIABLE=VALUE...] ... [-n 16,128,512] [-t 2] [--busy]

    meson setup build-openmp -Dthreads=openmp && ninja -C build-openmp
    tools/peers.py libraries pool=build/libdeberta.so libgomp=build-openmp/libdeberta.so \\
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
import contextlib
import ctypes
import json
import os
import statistics
import sys
import time

from rivals.results import number_list, print_row, print_titles, ratios
from rivals.turns import ROOT, Alive, Failure, answer_turns, busy_neighbour, in_turns

PAUSE_SECONDS = 0.3  # LLVM's threads spin for 200 ms after a loop
WARM_CALLS = 2


def check(status, what):
    if status:
        sys.exit(f"{what}: status {status}")


def forward_of(library, model, tokens, threads):
    """Returns a call of one length, by the first members of the public structs, which every version has."""
    handle = ctypes.c_void_p()
    options = (ctypes.c_size_t * 4)(32, 0, tokens, threads)  # struct_size, isa, max_tokens, threads
    check(library.deberta_session_create(ctypes.byref(handle), model, options, None), "deberta_session_create")
    ids, starts = (ctypes.c_int32 * tokens)(*(1 + 7919 * t % 900 for t in range(tokens))), (ctypes.c_size_t * 2)(0, tokens)

    def forward():
        # struct_size, ids, sequence_starts, sequences; outputs with room for what older versions had.
        batch = (ctypes.c_size_t * 4)(32, ctypes.addressof(ids), ctypes.addressof(starts), 1)
        check(library.deberta_encode(handle, batch, (ctypes.c_size_t * 4)(32, 0, 0, 0), None), "deberta_encode")

    return forward


def work(path, name, lengths, threads, processor_time):
    """Runs as the process of one library."""
    library, model = ctypes.CDLL(os.path.abspath(path)), ctypes.c_void_p()
    check(library.deberta_model_open(ctypes.byref(model), name.encode(), None, None), "deberta_model_open")
    answer_turns({tokens: forward_of(library, model, tokens, threads) for tokens in lengths}, "ready", processor_time)


def begun(text, arguments):
    """Starts the process of NAME=LIBRARY,VARIABLE=VALUE..."""
    name_path, *settings = text.split(",")
    name, _, path = name_path.partition("=")
    given = json.dumps([path, arguments.model, arguments.tokens, arguments.threads, arguments.processor_time])
    command = [sys.executable, str(ROOT / "tools" / "peers.py"), "libraries", "--worker", given]
    return Alive(name, command, {**os.environ, **dict(s.split("=", 1) for s in settings)})


def cells(libraries, tokens, arguments):
    def turn_of(library):
        def measure():
            time.sleep(PAUSE_SECONDS)
            return 1e3 * statistics.median(library.seconds(tokens, WARM_CALLS, arguments.calls))

        return measure

    rounds = in_turns(arguments.rounds, {library.name: turn_of(library) for library in libraries})
    base = libraries[0].name
    for library in libraries:
        median = f"{statistics.median(found[library.name] for found in rounds):.1f}"
        yield median if library.name == base else f"{median} ({statistics.median(ratios(rounds, library.name, base)):.2f})"


def options(parser):
    add = parser.add_argument
    add("libraries", nargs="*", metavar="NAME=LIBRARY")
    add("--model", default="synthetic:v3-small,vocab=1000")
    add("-n", "--tokens", type=number_list, default=[16, 128, 512])
    add("-t", "--threads", type=int, default=os.cpu_count())
    add("--calls", type=int, default=5)
    add("--rounds", type=int, default=15)
    add("--busy", action="store_true")
    add("--processor-time", action="store_true")
    add("--worker", type=json.loads, help="(what a process of this job does)")


def run(arguments):
    if arguments.worker:
        return work(*arguments.worker)
    if len(arguments.libraries) < 2:
        raise Failure("give two libraries or more, as NAME=LIBRARY")
    libraries = [begun(text, arguments) for text in arguments.libraries]
    for library in libraries:
        library.answer()
    print_titles(["tokens", "beside", *(library.name for library in libraries)], words=(1,))
    for busy in (False, True)[: 1 + arguments.busy]:
        with busy_neighbour() if busy else contextlib.nullcontext():
            for tokens in arguments.tokens:
                print_row([tokens, "a busy process" if busy else "nothing", *cells(libraries, tokens, arguments)])
    for library in libraries:
        library.close()
    return 0
