#!/bin/sh
# Tries the files of a release as somebody would who gets them and has a bare Debian system, where it runs as root:
#
#   try_release.sh FOLDER      # as tools/release.sh --try does
#
# First what needs no compiler: the sums, the wheel, vectors, the page. Then the source archive is built, which installs what is missing.
# SPDX-License-Identifier: MIT
set -eu
files=$1
tools="$(cd "$(dirname "$0")/../.." && pwd)/tests/release"
work=$(mktemp -d)
step() { echo "try_release.sh: $*"; }
install() { DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "$@" >>"$work/apt.log" 2>&1; }
cd "$files"

step sums
sha256sum --check --quiet SHA256SUMS
apt-get update -qq
install python3 python3-venv

step "wheel, without a compiler"
! command -v cc gcc clang
python3 -m venv "$work/v"
"$work/v/bin/pip" install -q "$files"/deberta_c-*_"$(uname -m)".whl
PATH=$work/v/bin:$PATH
cd "$work"
deberta examples kit
(cd kit && deberta fill-mask models/demo --text 'a new [MASK] opened' && deberta eval models/demo docs/studies/data/books.tsv >/dev/null)
python3 -c 'import deberta_c; print(deberta_c.Model("kit/models/demo").encode("a new store")["hidden_states.5"].shape)'

step "tokenizer vectors, with the wheel's tokenizers"
tar -xzf "$files"/deberta-tokenizer-vectors-*.tar.gz
python3 deberta-tokenizer-vectors-*/tests/golden/tokenizers/check_tokenizer.py all deberta tokenize '{folder}' --file '{inputs}' --json

step "vectors, with the wheel's encoder"
tar -xzf "$files"/deberta-vectors-*.tar.gz
vectors=$(echo "$work"/deberta-vectors-*/tests/golden)
mkdir mine
for case in 01-v1-both-n33 16-v3-b256-n33 31-v3-qa; do
    deberta encode "$vectors/$case" --input "$vectors/$case/expected.safetensors" --hidden all --attention-layers all --component-layers all --logits -q -o "mine/$case.safetensors"
    python3 "$vectors/check_vectors.py" $case "mine/$case.safetensors" --bits >"$work/judged" || { cat "$work/judged"; exit 1; }
    tail -n 1 "$work/judged"
done

if [ -e "$(echo "$files"/deberta-*-page.html)" ]; then
    step "page: it has modules, and asks no other machine"
    python3 "$tools/check_page.py" "$files"/deberta-*-page.html
fi

step "source archive, which is built and used"
tar -xzf "$files"/deberta-[0-9]*.tar.gz
cd deberta-[0-9]*
./build.sh >"$work/build.log" 2>&1 || { tail -n 20 "$work/build.log"; exit 1; }
build/deberta attention models/demo --text 'a new store' --layers 2 --heads 0 -o head.pdf
test -s head.pdf
step "all of it works here: $(. /etc/os-release && echo "$PRETTY_NAME")"
