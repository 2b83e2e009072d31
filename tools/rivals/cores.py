"""What an encode would take on machines of more cores, on paper. Each loop of a layer is parted as the library parts it, and takes the slowest
thread's multiply-adds, then the reading of its weights, then a cost for meeting at the end. Batch 1, float32.

    tools/peers.py cores                                 8, 32 and 96 cores, and two sockets of 96, as Markdown
    tools/peers.py cores --rate 100 --machines 1x64@300  cores of 100 GFLOP/s; one socket of 64 cores that reads 300 GB/s

The grid is that of choose_cells in core/model/linear.c, the blocks of queries those of core/encode/attention_layer.c. A loop's end costs
ENTRY and, for each thread, LINE: an atomic counter that every thread adds to twice moves from core to core. Between sockets a line
takes FAR times as long, and weights that lie beside one socket are read at that socket's rate alone. SPDX-License-Identifier: MIT
"""
import math
from typing import NamedTuple

HIDDEN, INNER, HEADS, LAYERS = 768, 3072, 12, 12  # v3-base
PANEL, TILE_PANELS, TILE_ROWS = 16, 3, 8  # of AVX-512
TASKS_PER_THREAD, ATTENTION_TASKS_PER_THREAD, MOST_ROWS = 4, 3, 192
CORE_GBS = 15  # what one core reads alone
ENTRY, LINE, FAR = 2e-6, 0.05e-6, 3.0  # seconds; the third a factor
# What is kept of a core's peak; both fit the rows of two threads in docs/benchmarks/intel-xeon-167.md (--rate 230 --machines 1x2@34).
KEPT, KEPT_IN_ATTENTION = 0.85, 0.45


class Machine(NamedTuple):
    sockets: int
    cores: int  # of a socket
    gbs: float  # of a socket

    @property
    def threads(self):
        return self.sockets * self.cores

    def meeting(self):
        return ENTRY + self.threads * LINE * (FAR if self.sockets > 1 else 1)


def slowest_share(rows, panels, threads):
    """Returns the slowest thread's share of a product, by the least cost of a grid."""
    tiles = math.ceil(panels / TILE_PANELS)
    if threads == 1:
        return 1.0
    cells = []
    least = math.ceil(rows / MOST_ROWS)
    for cut in range(4):
        row_parts = least * (cut + 1)
        for panel_parts in range(1, min(tiles, math.ceil(TASKS_PER_THREAD * threads / least)) + 1):
            if row_parts <= rows:
                cell = math.ceil(rows / row_parts) * math.ceil(tiles / panel_parts)
                cells.append(cell * math.ceil(row_parts * panel_parts / threads) * (32 + cut) / 32)
    return min(cells) / (rows * tiles)


def attention_share(n, threads):
    """Returns the slowest thread's share of a layer's heads and blocks of queries."""
    wanted = math.ceil(ATTENTION_TASKS_PER_THREAD * threads / HEADS)
    blocks = max(1, min(wanted, math.ceil(n / (2 * TILE_ROWS))))
    return math.ceil(HEADS * blocks / threads) / (HEADS * blocks)


def seconds(n, machine, rate):
    """Returns (time of an encode, its parts). Reading is not hidden behind multiplying: at 16 tokens, where both weigh, the sum is measured."""
    parts = {"arithmetic": 0.0, "memory": 0.0}
    products = [(3 * HIDDEN, HIDDEN), (HIDDEN, HIDDEN), (INNER, HIDDEN), (HIDDEN, INNER)]
    for out, inputs in products:
        parts["arithmetic"] += LAYERS * 2 * n * out * inputs * slowest_share(n, out // PANEL, machine.threads) / (KEPT * rate * 1e9)
        parts["memory"] += LAYERS * 4 * out * inputs / (machine.gbs * 1e9)
    parts["arithmetic"] += LAYERS * 8 * n * n * HIDDEN * attention_share(n, machine.threads) / (KEPT_IN_ATTENTION * rate * 1e9)
    parts["meeting"] = LAYERS * (len(products) + 3) * machine.meeting()  # and the loops of attention and of two norms
    return sum(parts.values()), parts


def machine_of(text):
    sockets, rest = text.split("x")
    cores, gbs = rest.split("@")
    return Machine(int(sockets), int(cores), float(gbs))


def options(parser):
    add = parser.add_argument
    add("--rate", type=float, default=110, help="GFLOP/s of a core whose neighbours work too (default 110: AVX-512 at 1.7 GHz, two units)")
    add("--machines", default="1x8@100,1x32@250,1x96@400,2x96@400", help="SOCKETSxCORES@GB/s of a socket, with commas")
    add("--tokens", default="16,128,512,4096")


def run(given):
    machines, lengths = [machine_of(text) for text in given.machines.split(",")], [int(n) for n in given.tokens.split(",")]
    print("| tokens, sockets × cores | ms | times as fast as one core | arithmetic % | memory % | meeting % |\n|---|--:|--:|--:|--:|--:|")
    for n in lengths:
        alone = seconds(n, Machine(1, 1, CORE_GBS), given.rate)[0]
        for machine in machines:
            time, parts = seconds(n, machine, given.rate)
            shares = " | ".join(f"{100 * part / time:.0f}" for part in parts.values())
            print(f"| {n}, {machine.sockets} × {machine.cores} | {1e3 * time:.4g} | {alone / time:.3g} | {shares} |")
    return 0
