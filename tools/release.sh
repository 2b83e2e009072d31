#!/bin/sh
# What a release consists of, into a folder: source archive, wheels, the page that computes, conformance vectors, a list of what is inside
# (SPDX) and SHA-256 sums. Nothing is uploaded.
#
#   tools/release.sh OUT [x86_64] [aarch64]      of the last commit; needs what tools/making/wheel.sh needs
#   tools/release.sh --try OUT [SUITE...]        tries each file of OUT in bare Debian systems (bookworm and trixie; needs root)
#
# The page needs what ./build.sh wasm needs; without it a sentence says that it is left out. Two runs of one commit on one machine give the
# same bytes.
#
# SPDX-License-Identifier: MIT
set -eu
root=$(cd "$(dirname "$0")/.." && pwd)
if [ "${1:-}" = --try ] && [ $# -ge 2 ]; then
    out=$2
    shift 2
    [ -e "$out/SHA256SUMS" ] || { echo "release.sh: $out has no SHA256SUMS; expected what tools/release.sh has made" >&2; exit 2; }
    [ $# -gt 0 ] || set -- bookworm trixie
    for suite in "$@"; do
        echo "release.sh: on a bare $suite"
        "$root/tools/gates/bare_debian.sh" "$suite" 'sh tests/release/try_release.sh /home/new' "$out"/*
    done
    exit 0
fi
case ${1:-} in ''|-*) sed -n '2,9s/^# \{0,1\}//p' "$0" >&2; exit 2 ;; esac
mkdir -p "$1"
out=$(cd "$1" && pwd)
shift
python=${PYTHON:-python3}
[ -z "$(ls -A "$out")" ] || { echo "release.sh: $out is not empty" >&2; exit 2; }
[ -z "$(git -C "$root" status --porcelain)" ] || { echo "release.sh: there are changes that are not committed" >&2; exit 2; }
version=$(awk '/^#define DEBERTA_VERSION_(MAJOR|MINOR|PATCH) / { printf "%s%s", dot, $3; dot = "." }' "$root/include/deberta.h")
# The time of every file in an archive is that of the commit, so that two runs give the same bytes.
SOURCE_DATE_EPOCH=$(git -C "$root" log -1 --format=%ct)
export SOURCE_DATE_EPOCH
work=$(mktemp -d "${TMPDIR:-/tmp}/deberta-release.XXXXXX")
trap 'rm -rf "$work"' EXIT

# pack NAME: the committed files that are named, with what links from page to page, in an archive of that name.
pack() {
    name=$1
    shift
    mkdir -p "$work/$name"
    git -C "$root" archive HEAD LICENSE docs/specification.md docs/evidence.md "$@" | tar -x -C "$work/$name"
    find "$work/$name" -name '*.[ch]' -delete # programs of this project's tests
    tar -C "$work" --sort=name --mtime="@$SOURCE_DATE_EPOCH" --owner=0 --group=0 --numeric-owner --mode=go=rX,u+w -cf - "$name" | gzip -9n >"$out/$name.tar.gz"
}

# The page of the bundled model, by the program in the wheel: what it shows depends on the commit alone.
make_page() {
    for tool in clang-19 wasm-ld-19; do
        command -v $tool >/dev/null || { echo "release.sh: $tool is missing, so the page that computes is left out; ./build.sh wasm installs it" >&2; return 0; }
    done
    wheel=$(find "$out" -name "*_$(uname -m).whl")
    [ -n "$wheel" ] || { echo "release.sh: no wheel is for this machine, so the page that computes is left out" >&2; return 0; }
    (cd "$root" && wasm/fetch_sources.sh build-wasm/sources && wasm/configure.py build-wasm &&
        ninja -C build-wasm --quiet deberta-scalar.wasm deberta-exact.wasm deberta-relaxed.wasm) >&2
    "$python" -m zipfile -e "$wheel" "$work/wheel"
    chmod +x "$work/wheel/deberta_c/deberta"
    (cd "$root" && "$work/wheel/deberta_c/deberta" report models/demo --live --modules build-wasm --skip latency,verify --progress never -o "$work/page.html") >&2
    mv "$work/page.html" "$out/deberta-$version-page.html"
}

git -C "$root" archive --format=tar.gz --prefix="deberta-$version/" -o "$out/deberta-$version.tar.gz" HEAD
pack "deberta-vectors-$version" tests/golden
pack "deberta-tokenizer-vectors-$version" tests/golden/tokenizers
"$root/tools/making/wheel.sh" "$out" "$@"
make_page
"$python" "$root/tools/making/make_sbom.py" "$out" >"$out/deberta-$version.spdx.json.part"
mv "$out/deberta-$version.spdx.json.part" "$out/deberta-$version.spdx.json"
(cd "$out" && sha256sum ./* >"$work/sums" && mv "$work/sums" SHA256SUMS)
cat "$out/SHA256SUMS"
(cd "$out" && ls -l | awk 'NR > 1 { print $5, $NF }')
