#!/bin/sh
# Trains the first steps of models/baby again, on this machine, and compares its chain of digests with the published one.
#
#     models/baby/audit.sh SOURCES OUT [STEPS [OPTIONS...]]
#
# SOURCES and OUT are those of recipe.sh; STEPS, a multiple of 200 (200: two minutes of one core). OPTIONS go to `deberta train mlm`, such as
# --isa scalar. A state is the digest of weights, moments and counters: equal states mean equal bits.
#
# SPDX-License-Identifier: MIT
set -eu
if [ $# -lt 2 ]; then
    echo "usage: $0 SOURCES OUT [STEPS [OPTIONS...]]" >&2
    exit 2
fi
sources=$1 out=$2 steps=${3:-200}
if [ $# -gt 2 ]; then shift 3; else shift 2; fi
here=$(cd "$(dirname "$0")" && pwd)
"$here/recipe.sh" "$sources" "$out" 10000 --stop-at "$steps" "$@"
# The published chain has a record more where that training was stopped, which changes links and no state: states are compared.
states() { sed -n 's/\(.*"state": "[0-9a-f]*"\).*/\1/p' "$1"; }
states "$here/chain.jsonl" > "$out/published.states"
states "$out/mlm/chain.jsonl" | while read -r state; do
    grep -qxF "$state" "$out/published.states" || { echo "differs: $state"; exit 1; }
done
echo "steps 0 to $steps: every state is that of models/baby/chain.jsonl"
