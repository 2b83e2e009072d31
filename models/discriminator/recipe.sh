#!/bin/sh
# Trains models/discriminator, models/answers and models/tags with this program alone, from models/baby.
#
#     models/discriminator/recipe.sh CORPUS TAGS OUT [STEPS]
#
# CORPUS is what tools/making/book_texts.py makes (train.txt, valid.txt), TAGS the folder masc that studies/recognised.py makes (train.tsv,
# held-out.tsv). OUT becomes weak and strong, two generators; easy, hard and last, pairs; answers and tags. Each has its log;
# last/discriminator, answers and tags are committed. STEPS are those of the easy pair's schedule, 900 if not given, at least 18; the other
# parts grow with them. DEBERTA names the program (else this tree's, else PATH's). A second call goes on where the first one was stopped.
#
# SPDX-License-Identifier: MIT
set -eu
if [ $# -lt 3 ]; then
    echo "usage: $0 CORPUS TAGS OUT [STEPS]" >&2
    exit 2
fi
corpus=$1 tags=$2 out=$3 steps=${4:-900}
here=$(cd "$(dirname "$0")" && pwd)
baby=$here/../baby
built=$(cd "$(dirname "$0")/../.." && pwd)/build/deberta
deberta() { command "${DEBERTA:-$([ -x "$built" ] && echo "$built" || echo deberta)}" "$@"; }

mkdir -p "$out/data"
questions() {
    [ -e "$out/data/$1.jsonl" ] || python3 "$here/../answers/make_questions.py" "$corpus/$1.txt" --passages "$2" --out "$out/data/$1.jsonl"
}
questions train $((steps * 140 / 9))
questions valid $((steps * 2 / 3))
for layers in 1 2; do
    mkdir -p "$out/first-$layers"
    for file in spm.model added_tokens.json tokenizer_config.json model.safetensors; do cp "$baby/$file" "$out/first-$layers"; done
    sed -e "s/\"num_hidden_layers\": 6/\"num_hidden_layers\": $layers/" "$baby/config.json" > "$out/first-$layers/config.json"
done

places='deberta.embeddings.position_embeddings.*'

# A part of the recipe: part FOLDER COMMAND...
part() {
    folder=$out/$1
    shift
    deberta "$@" --beta2 0.98 --dropout 0 --save-dtype f16 --checkpoint-every 100 --freeze embeddings \
        $(if [ -e "$folder/log.jsonl" ]; then echo --resume; fi) --out "$folder"
}
texts="--file $corpus/train.txt --sequence-tokens 128"

# Two generators of the lower layers of models/baby, which stay as they are in the pairs: what the first draws is easy to find out.
guess="$texts --head mlm --mask-probability 0.25 --batch-sequences 16"
part weak train mlm "$out/first-1" $guess --drop "$places" --drop 'deberta.encoder.layer.[1-5].*' \
    --steps $(((steps + 29) / 30)) --warmup $((steps / 90)) --learning-rate 3e-4
part strong train mlm "$out/first-2" $guess --drop "$places" --drop 'deberta.encoder.layer.[2-5].*' \
    --steps $((steps / 3)) --warmup $((steps / 30)) --learning-rate 1e-3

# Both pairs are stopped before their rate is down; the second begins where the first one is. A step without a rate makes float16 of it.
pair="--sharing none $texts --batch-tokens 2048 --mask-probability 0.2 --freeze layers:0-1"
stopped() {
    name=$1 stop=$2 model=$3
    shift 3
    half=$out/$name/checkpoint-$(printf %06d "$stop")/discriminator
    [ -e "$half" ] || part "$name" train rtd "$model" $pair --freeze 'lm_predictions.*' --stop-at "$stop" "$@"
}
stopped easy $((steps * 4 / 9)) "$baby" --generator "$out/weak" --new-head --drop 'lm_predictions.*' --drop "$places" --steps "$steps" \
    --warmup $((steps / 15)) --learning-rate 8e-4
stopped hard $((steps * 19 / 36)) "$half" --generator "$out/strong" --steps $((steps * 11 / 18)) --warmup $((steps / 30)) --learning-rate 6e-4 --seed 2
part last train rtd "$half" --generator "$out/strong" $pair --steps 1 --learning-rate 0

# Heads with upper layers of their own, for answers and for parts of speech.
head="--new-head --drop lm_predictions.* --drop $places"
part answers finetune qa "$baby" --examples "$out/data/train.jsonl" --eval "$out/data/valid.jsonl" $head --freeze layers:0-2 --sequence-tokens 160 \
    --batch-sequences 32 --steps $((steps * 11 / 9)) --warmup $((steps / 15)) --learning-rate 6e-4
part tags finetune token "$baby" --examples "$tags/train.tsv" --eval "$tags/held-out.tsv" $head --freeze layers:0-4 --sequence-tokens 128 --cut \
    --batch-sequences 64 --steps $((steps * 14 / 45)) --warmup $((steps / 45)) --learning-rate 1e-3
