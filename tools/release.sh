#!/bin/sh
# What a release consists of, into a folder: wheels, the source archive, a list of what is inside (SPDX) and SHA-256 sums. Nothing is uploaded.
#
#   tools/release.sh OUT [x86_64] [aarch64]      of the last commit; needs what tools/making/wheel.sh needs, and twine
#
# SPDX-License-Identifier: MIT
set -eu
[ $# -ge 1 ] || { sed -n '2,4s/^# \{0,1\}//p' "$0" >&2; exit 2; }
root=$(cd "$(dirname "$0")/.." && pwd)
mkdir -p "$1"
out=$(cd "$1" && pwd)
shift
python=${PYTHON:-python3}
[ -z "$(ls -A "$out")" ] || { echo "release.sh: $out is not empty" >&2; exit 2; }
[ -z "$(git -C "$root" status --porcelain)" ] || { echo "release.sh: there are changes that are not committed" >&2; exit 2; }
version=$(awk '/^#define DEBERTA_VERSION_(MAJOR|MINOR|PATCH) / { printf "%s%s", dot, $3; dot = "." }' "$root/include/deberta.h")
"$root/tools/making/wheel.sh" "$out" "$@"
git -C "$root" archive --format=tar.gz --prefix="deberta-$version/" -o "$out/deberta-$version.tar.gz" HEAD
"$python" "$root/tools/making/make_sbom.py" "$out" >"$out/deberta-$version.spdx.json.part"
mv "$out/deberta-$version.spdx.json.part" "$out/deberta-$version.spdx.json"
"$python" -m twine check --strict "$out"/*.whl
(cd "$out" && sha256sum ./*.whl ./*.tar.gz ./*.spdx.json >SHA256SUMS)
cat "$out/SHA256SUMS"
