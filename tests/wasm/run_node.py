#!/usr/bin/env python3
"""node with these arguments; once more where node itself ends by a signal. What a module does wrong is a trap, which node says and survives.

    run_node.py ARGUMENT ...

Seen of node 20: all tests of a program passed, and node ended by a signal while it cleaned up. SPDX-License-Identifier: MIT
"""
import subprocess
import sys

for attempt in (1, 2):
    status = subprocess.run(["node", *sys.argv[1:]]).returncode
    if status >= 0 or attempt == 2:
        break
    print(f"node itself ended by signal {-status}; once more", flush=True)
sys.exit(status if status >= 0 else 128 - status)
