#!/bin/sh
# Trains models/discriminator and models/answers with this program alone, from models/demo.
#
#     models/discriminator/recipe.sh CORPUS OUT [STEPS]
#
# CORPUS is what tools/making/make_corpus.py makes: train.txt, valid.txt and README.md. OUT becomes generator, pair, answers and
# discriminator; each has its log, the last two are committed. STEPS are those of the pair, 900 if not given, at least 10;
# the other parts grow with them. DEBERTA names the program. A second call goes on where the first one was stopped.
#
# SPDX-License-Identifier: MIT
set -eu
if [ $# -lt 2 ]; then
    echo "usage: $0 CORPUS OUT [STEPS]" >&2
    exit 2
fi
corpus=$1 out=$2 steps=${3:-900}
here=$(cd "$(dirname "$0")" && pwd)
demo=$here/../demo
deberta() { command "${DEBERTA:-deberta}" "$@"; }

mkdir -p "$out/config" "$out/data"
for file in spm.model added_tokens.json tokenizer_config.json; do cp "$demo/$file" "$out/config"; done
sed -e 's/"num_hidden_layers": 5/"num_hidden_layers": 2/' -e '/"dtype"/d' "$demo/config.json" > "$out/config/config.json"
python3 "$here/../../tools/making/make_corpus.py" split "$corpus" --text "$out/data/text.txt"
python3 "$here/make_examples.py" "$corpus/train.txt" --windows 4 --tags "$out/data/train.tsv" --questions "$out/data/train.jsonl"
python3 "$here/make_examples.py" "$corpus/valid.txt" --windows 2 --tags "$out/data/held-out.tsv" --questions "$out/data/held-out.jsonl"

# A part of the recipe: part FOLDER COMMAND...
part() {
    folder=$out/$1
    shift
    deberta "$@" --beta2 0.98 --dropout 0 --checkpoint-every 100 $(if [ -e "$folder/log.jsonl" ]; then echo --resume; fi) --out "$folder"
}
texts="--file $out/data/text.txt --eval $corpus/valid.txt --sequence-tokens 128 --batch-sequences 16 --weight-decay 0.05"

# A generator that knows little more than how frequent words are: what it draws can be found out.
part generator train mlm --config "$out/config" $texts --steps $((steps * 2 / 9)) --warmup $((steps / 45)) --learning-rate 1.5e-3 \
    --schedule constant --mask-probability 0.25
part pair train rtd "$demo" --generator "$out/generator" --new-head $texts --eval-every $((steps / 2)) --steps "$steps" \
    --warmup $((steps / 10)) --learning-rate 4e-4

# A head of a folder of its own, with the encoder, for questions; one beside that for replaced words, whose encoder stays, for tags.
head() {
    name=$1 task=$2 examples=$3
    shift 3
    part "$name" finetune "$task" "$out/pair/discriminator" --examples "$out/data/train.$examples" --eval "$out/data/held-out.$examples" --new-head \
        --drop 'lm_predictions*' --drop 'embeddings.position_embeddings.*' --drop 'embeddings.word_embeddings._weight' --drop 'pooler.*' \
        --drop 'classifier.*' --freeze embeddings --batch-sequences 16 --save-dtype f16 "$@"
}
head answers qa jsonl --drop 'mask_predictions.*' --sequence-tokens 160 --steps $((steps * 5 / 9)) --warmup $((steps / 18)) --learning-rate 3e-4
head discriminator token tsv --freeze encoder --freeze 'mask_predictions.*' --sequence-tokens 128 --cut --steps $((steps * 4 / 9)) \
    --warmup $((steps * 2 / 45)) --learning-rate 5e-3
