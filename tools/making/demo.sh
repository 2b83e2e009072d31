#!/bin/sh
# The main job on the bundled model (or, without one, on made-up weights): ./build.sh demo
# SPDX-License-Identifier: MIT
set -eu
cd "$(dirname "$0")/../.."
model=models/demo
[ -e models/demo/config.json ] || model=synthetic:v3-xsmall,vocab=1000
show() { echo; echo "\$ $1"; eval "$1"; }

mkdir -p out
masked='The King and the [MASK] sat upon their thrones.' text= live=
show "build/deberta info $model"
if [ $model = models/demo ] && ! build/deberta tokenize $model --text x 2>&1 | grep -q 'no tokenizers'; then
    show "build/deberta fill-mask $model --text '$masked'"
    show "build/deberta classify $model --text 'Call me Ishmael.' --top 3"
    text=" --text '$masked'"
fi
[ $model != models/demo ] || [ ! -e build-wasm/deberta-scalar.wasm ] || live=" --live"
show "build/deberta report $model$text$live -o out/report"
echo
echo "The report is in out/report/index.html: open it in a browser; --with latency,verify measures, too."
echo "build/deberta --help has the other commands."
