#!/bin/sh
# Prints the options that this node needs, and knows, for relaxed SIMD and WASI. SPDX-License-Identifier: MIT
for flag in --experimental-wasm-relaxed-simd --experimental-wasi-unstable-preview1 --no-warnings; do
    node "$flag" -e 0 >/dev/null 2>&1 && printf '%s ' "$flag"
done
echo
