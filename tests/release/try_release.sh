#!/bin/sh
# Tries the files of a release as somebody would who gets them and has a bare Debian system:
#
#   try_release.sh FOLDER      # as tools/release.sh --try does, by root
#
# Root installs packages of Debian, and an ordinary user does all else: first what needs no compiler (the wheel, vectors, the page), then the
# source archive. What programs compute is compared with golden digits, and what the wheel says with what the program built from source says.
# SPDX-License-Identifier: MIT
set -eu
files=$1
version=$(basename "$files"/deberta-[0-9]*.tar.gz .tar.gz)
fail() { echo "try_release.sh: $*" >&2; exit 1; }
step() { echo "try_release.sh: $*"; }
install() { DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "$@" >>/tmp/apt.log 2>&1 || { tail -n 15 /tmp/apt.log; fail "cannot install $*"; }; }

# Golden cases, by a program: their bits.
encode_cases() {
    vectors=$HOME/$(cd && echo deberta-vectors-*)/tests/golden
    mkdir -p "$HOME/mine"
    for case in 01-v1-both-n33 16-v3-b256-n33 31-v3-qa; do
        "$1" encode "$vectors/$case" --input "$vectors/$case/expected.safetensors" --hidden all --attention-layers all --component-layers all --logits -q -o "$HOME/mine/$case.safetensors"
        "$HOME/v/bin/python" "$vectors/check_vectors.py" $case "$HOME/mine/$case.safetensors" --bits >"$HOME/judged" || { cat "$HOME/judged"; exit 1; }
        tail -n 1 "$HOME/judged"
    done
}

# What a program says of the models that are bundled.
say() {
    "$1" fill-mask models/demo --text 'a new [MASK] opened'
    "$1" answer models/answers --question 'Who opened the door?' --context 'The captain waited. Tom opened the door.'
    "$1" eval models/demo docs/studies/data/books.tsv
}

user_unpacks() {
    cd "$files"
    sha256sum --check --quiet SHA256SUMS
    cd
    for archive in "$files"/*.tar.gz; do tar -xzf "$archive"; done
}

user_wheel() {
    for tool in cc gcc clang; do ! command -v $tool || fail "a bare system has a compiler"; done
    python3 -m venv "$HOME/v"
    "$HOME/v/bin/pip" install -q "$files"/deberta_c-*_"$(uname -m)".whl
    cd
    v/bin/deberta examples kit
    cd kit
    say "$HOME/v/bin/deberta" >"$HOME/wheel.txt"
    "$HOME/v/bin/python" -c 'import deberta_c; print(deberta_c.Model("models/demo").fill_mask("a new [MASK] opened", top=1)["masks"][0]["candidates"])'
}

user_vectors() {
    cd
    python3 deberta-tokenizer-vectors-*/tests/golden/tokenizers/check_tokenizer.py all v/bin/deberta tokenize '{folder}' --file '{inputs}' --json
    encode_cases "$HOME/v/bin/deberta"
}

user_page() {
    cd "$HOME/$version"
    python3 tests/release/check_page.py "$files"/deberta-*-page.html "$HOME/page"
    # shellcheck disable=SC2046
    node $(wasm/node_flags.sh) tests/wasm/run_bits.mjs "$HOME/page/modules" "$HOME/page/model" "$HOME/v/bin/deberta"
}

user_build() {
    cd "$HOME/$version"
    ./build.sh --no-install >"$HOME/build.log" 2>&1 || { tail -n 20 "$HOME/build.log"; exit 1; }
    encode_cases "$PWD/build/deberta"
    say build/deberta >"$HOME/source.txt"
    diff "$HOME/wheel.txt" "$HOME/source.txt"
    build/deberta attention models/demo --text 'a new store' --layers 2 --heads 0 -o head.pdf
    [ "$(head -c 4 head.pdf)" = %PDF ] || fail "head.pdf is no PDF"
}

if [ $# = 2 ]; then
    "user_$2"
    exit 0
fi
as_user() {
    begun=$(date +%s)
    step "$2"
    su reader -c "sh '$0' '$files' $1"
    step "$1: $(($(date +%s) - begun)) s"
}
useradd --create-home reader
apt-get update -qq
install python3 python3-venv
as_user unpacks "sums, archives"
as_user wheel "wheel, without a compiler"
as_user vectors "vectors, with the wheel"
if [ -e "$(echo "$files"/deberta-*-page.html)" ]; then
    install nodejs
    as_user page "page: its modules have the bits of the wheel, and no other machine is asked"
fi
missing=$(su reader -c "cd ~/$version && ./build.sh --no-install" 2>&1 | sed -n 's/^build.sh: to install them: sudo //p')
[ -n "$missing" ] || fail "build.sh does not say what is missing"
eval "$missing" >>/tmp/apt.log 2>&1 || { tail -n 15 /tmp/apt.log; fail "this failed: $missing"; }
install fonts-dejavu-core # build.sh names fonts apart: it builds without them
as_user build "source archive, built and used"
step "all of it works here: $(. /etc/os-release && echo "$PRETTY_NAME")"
