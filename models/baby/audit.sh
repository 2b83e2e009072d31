#!/bin/sh
# Trains the first steps of models/baby again, on this machine, and compares its chain of digests with the published one.
#
#     models/baby/audit.sh SOURCES OUT [STEPS [OPTIONS...]]
#
# SOURCES and OUT are those of recipe.sh; STEPS, a multiple of 200 (200: two minutes of one core). OPTIONS go to `deberta train mlm`, such as
# --isa scalar. A state is the digest of weights, moments and counters: equal states mean equal bits. Exit status 1: a state differs, or
# that of the last step is missing.
#
# SPDX-License-Identifier: MIT
set -eu
here=$(cd "$(dirname "$0")" && pwd)
[ $# -ge 2 ] || { sed -n '4s/^# */usage: /p' "$0" >&2; exit 2; }
sources=$1 out=$2 steps=${3:-200}
shift $(($# > 2 ? 3 : 2))
"$here/recipe.sh" "$sources" "$out" 10000 --stop-at "$steps" "$@"
# The published chain has a record more where that training was stopped, which changes links and no state: states are compared.
states() { sed -n 's/\(.*"state": "[0-9a-f]*"\).*/\1/p' "$1"; }
states "$here/chain.jsonl" > "$out/published.states"
states "$out/mlm/chain.jsonl" > "$out/own.states"
if grep -vxFf "$out/published.states" "$out/own.states"; then
    echo "these states are not in models/baby/chain.jsonl"
    exit 1
fi
if ! grep -q "^{\"step\": $steps," "$out/own.states"; then
    echo "$out/mlm/chain.jsonl has no state of step $steps"
    exit 1
fi
echo "steps 0 to $steps: every state is that of models/baby/chain.jsonl"
