#!/bin/sh
# Trains a DeBERTa v3 of 7.0 M parameters on ten million words with this program alone.
#
#     models/baby/recipe.sh SOURCES OUT [STEPS [OPTIONS...]]
#
# SOURCES are the books that tools/making/book_texts.tsv names. OUT becomes corpus, config (pieces and configuration) and mlm, the
# language model. STEPS of at most 2,048 tokens: 10,000 (default) are 19.8 M tokens, 1.4 times the corpus, some two hours of one
# core; at least 20. OPTIONS go to `deberta train mlm`, such as --threads 2 or --stop-at 3600: neither changes a bit of
# the result. A second call goes on where the first one was stopped. DEBERTA names the program (else this tree's, else PATH's).
#
# SPDX-License-Identifier: MIT
set -eu
if [ $# -lt 2 ]; then
    echo "usage: $0 SOURCES OUT [STEPS [OPTIONS...]]" >&2
    exit 2
fi
sources=$1 out=$2 steps=${3:-10000}
if [ $# -gt 2 ]; then shift 3; else shift 2; fi
tools=$(cd "$(dirname "$0")/../../tools" && pwd)
built=$(cd "$(dirname "$0")/../.." && pwd)/build/deberta
deberta() { command "${DEBERTA:-$([ -x "$built" ] && echo "$built" || echo deberta)}" "$@"; }

[ -e "$out/corpus/train.txt" ] || python3 "$tools/making/book_texts.py" "$sources" "$out/corpus"
if ! [ -e "$out/config/config.json" ]; then
    deberta train tokenizer --file "$out/corpus/train.txt" --vocabulary 8000 --depth 6 --width 256 --head-count 4 --out "$out/new"
    # 32 buckets over 512, exact to 16, as models/demo has them: most sequences are shorter than 128.
    sed -e 's/"position_buckets": [0-9]*/"position_buckets": 32/' -e 's/_dropout_prob": [0-9.]*/_dropout_prob": 0.0/' \
        "$out/new/config.json" > "$out/new/config.part"
    mv "$out/new/config.part" "$out/new/config.json"
    mv "$out/new" "$out/config"
fi
deberta train mlm --config "$out/config" --file "$out/corpus/train.txt" --eval "$out/corpus/sample.txt" --eval-every 1000 \
    --sequence-tokens 512 --batch-tokens 2048 --steps "$steps" --warmup $((steps / 36)) --learning-rate 1e-3 --beta2 0.98 \
    --weight-decay 0.05 --mask-probability 0.2 --dropout 0 --seed 1 --save-dtype f16 --chain --chain-every 200 --keep-every 2000 \
    $(if [ -e "$out/mlm/log.jsonl" ]; then echo --resume; fi) "$@" --out "$out/mlm"
