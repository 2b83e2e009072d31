#!/bin/sh
# Trains a model of the kind of models/demo, or of its twin models/demo-bert, with this program alone.
#
#     models/demo/recipe.sh CORPUS OUT [STEPS [demo-bert]]
#
# CORPUS is what tools/making/make_corpus.py makes: train.txt, valid.txt and README.md. OUT becomes mlm (the language model),
# books (with the classifier, float16) and both logs drawn. Configuration and pieces are those of the committed model,
# so that numbers can be compared; `deberta train tokenizer` makes others. Every 20th paragraph is held out for the
# classifier. DEBERTA names the program (else this tree's, else PATH's).
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
built=$(cd "$(dirname "$0")/../.." && pwd)/build/deberta
deberta() { command "${DEBERTA:-$([ -x "$built" ] && echo "$built" || echo deberta)}" "$@"; }

mkdir -p "$out/config" "$out/data"
for file in config.json spm.model added_tokens.json tokenizer_config.json; do cp "$models/$kind/$file" "$out/config"; done
python3 "$models/../tools/making/make_corpus.py" split "$corpus" \
    --text "$out/data/text.txt" --train "$out/data/train.tsv" --held-out "$out/data/held-out.tsv"

resume() { if [ -e "$1/log.jsonl" ]; then echo --resume; fi; }
# Steps of 2,048 tokens: train FOLDER STEPS WARMUP TOKENS SEQUENCES OPTIONS...
train() {
    folder=$1 count=$2 warmup=$3 tokens=$4 sequences=$5
    shift 5
    deberta train mlm "$@" --file "$out/data/text.txt" --eval "$corpus/valid.txt" --eval-every 500 --sequence-tokens "$tokens" \
        --batch-sequences "$sequences" --steps "$count" --warmup "$warmup" --beta2 0.98 --weight-decay 0.05 --mask-probability 0.25 \
        --dropout 0 --checkpoint-every 250 $(resume "$folder") --out "$folder"
}
if [ "$kind" = demo ]; then
    train "$out/mlm" "$steps" $((steps / 40)) 128 16 --config "$out/config" --learning-rate 1.2e-3
else
    # With the weights and lengths of the first kind plain attention stays at the frequencies of pieces. Larger weights and
    # short sequences lead away from there. At a higher rate the twin diverges.
    sed 's/"initializer_range": [0-9.]*/"initializer_range": 0.07/' "$models/$kind/config.json" > "$out/config/config.json"
    short=$((steps / 20))
    train "$out/mlm-16" $short $((steps / 40)) 16 128 --config "$out/config" --learning-rate 8e-4 --schedule constant
    train "$out/mlm-32" $short $((steps / 200)) 32 64 "$out/mlm-16" --learning-rate 8e-4 --schedule constant
    train "$out/mlm" $((steps - 2 * short)) $((steps / 200)) 128 16 "$out/mlm-32" --learning-rate 8e-4
fi
deberta finetune sequence "$out/mlm" --examples "$out/data/train.tsv" --eval "$out/data/held-out.tsv" --new-head \
    --freeze embeddings --freeze encoder --freeze 'lm_predictions.*' --sequence-tokens 128 --cut --batch-sequences 32 \
    --steps $((steps / 20)) --warmup $((steps / 400)) --learning-rate 2e-3 --dropout 0 --save-dtype f16 --checkpoint-every 250 \
    $(resume "$out/books") --out "$out/books"
deberta eval "$out/books" "$out/data/held-out.tsv" --max-tokens 512
deberta train plot "$out/mlm" -o "$out/mlm.svg" --smooth 50 || true # a build without figures
