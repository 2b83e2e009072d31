#!/bin/sh
# Trains a model of the kind of models/demo, or of its twin models/demo-bert, with this program alone.
#
#     models/demo/recipe.sh CORPUS OUT [STEPS [demo-bert]]
#
# CORPUS holds train.txt and valid.txt, a paragraph a line, and a README.md whose table counts the paragraphs of each
# book. OUT becomes mlm (the language model), books (with the classifier, float16) and both logs drawn. Configuration
# and pieces are those of the committed model, so that numbers can be compared; `deberta train tokenizer` makes others.
# Every 20th paragraph is held out for the classifier, as in tools/train_demo.py. DEBERTA names the program.
# STEPS of 2,048 tokens: 12,096 (default) are the 24.8 M tokens of the committed model; at least 20. A second call goes
# on where the first one was stopped.
#
# SPDX-License-Identifier: MIT
set -eu
if [ $# -lt 2 ]; then
    echo "usage: $0 CORPUS OUT [STEPS [demo-bert]]" >&2
    exit 2
fi
corpus=$1 out=$2 steps=${3:-12096} kind=${4:-demo}
models=$(cd "$(dirname "$0")/.." && pwd)
deberta() { command "${DEBERTA:-deberta}" "$@"; }
rate=1.2e-3
if [ "$kind" = demo-bert ]; then rate=8e-4; fi # above it the twin diverges

mkdir -p "$out/config" "$out/data"
for file in config.json spm.model added_tokens.json tokenizer_config.json; do cp "$models/$kind/$file" "$out/config"; done
awk -F'|' '/train.txt \|$/ { gsub(/^ +| +$/, "", $3); print $4 + 0 "\t" $3 }' "$corpus/README.md" > "$out/data/books"
awk -F'\t' -v out="$out/data" '
    NR == FNR { last[++books] = last[books - 1] + $1; title[books] = $2; next }
    FNR > last[book] { book++; if (book > 1) print "" > (out "/text.txt") }
    (FNR - 1) % 20 == 7 { print title[book] "\t" $0 > (out "/held-out.tsv"); next }
    { print > (out "/text.txt"); print title[book] "\t" $0 > (out "/train.tsv") }' "$out/data/books" "$corpus/train.txt"

resume() { if [ -e "$1/log.jsonl" ]; then echo --resume; fi; }
deberta train mlm --config "$out/config" --text "$out/data/text.txt" --eval "$corpus/valid.txt" --eval-every 500 \
    --sequence-tokens 128 --batch-sequences 16 --steps "$steps" --warmup $((steps / 40)) --learning-rate $rate --beta2 0.98 \
    --weight-decay 0.05 --mask-probability 0.25 --dropout 0 --checkpoint-every 250 $(resume "$out/mlm") --out "$out/mlm"
deberta finetune sequence "$out/mlm" --data "$out/data/train.tsv" --eval "$out/data/held-out.tsv" --new-head \
    --freeze embeddings --freeze encoder --freeze 'lm_predictions.*' --sequence-tokens 128 --cut --batch-sequences 32 \
    --steps $((steps / 20)) --warmup $((steps / 400)) --learning-rate 2e-3 --dropout 0 --save-dtype f16 --checkpoint-every 250 \
    $(resume "$out/books") --out "$out/books"
deberta eval "$out/books" "$out/data/held-out.tsv"
deberta train plot "$out/mlm" -o "$out/mlm.svg" --smooth 50 || true # a build without figures
