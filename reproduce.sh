#!/bin/sh
# Makes the tables and figures of README and docs again, and compares: claim, command, what came out here, tolerance, ok.
#
#   ./reproduce.sh          what this program and the bundled models give: at most 30 minutes on two cores
#   ./reproduce.sh --all    also the long texts and the other engines (needs tools/peers-requirements.txt): hours
#
# Results are in out/reproduce: list.md, list.tsv, the figures, and the output of every command.
#
# SPDX-License-Identifier: MIT
set -eu
cd "$(dirname "$0")"
[ -x build/deberta ] || ./build.sh
exec python3 tools/reproduce.py "$@"
