#!/bin/sh
# The main job on the bundled model (or, without one, on made-up weights): ./build.sh demo
# SPDX-License-Identifier: MIT
set -eu
cd "$(dirname "$0")/.."
model=models/demo
[ -e models/demo/config.json ] || model=synthetic:v3-xsmall,vocab=1000
mkdir -p out
build/deberta info
echo
build/deberta report "$model" --layers 0,2 --heads 0,1 -n 16-256*2 -o out/report
echo "open out/report/index.html"
