#!/bin/sh
# The one entrance: checks what is installed, installs what is missing, configures, builds; then demo or tests.
#
#   ./build.sh                 build/deberta
#   ./build.sh demo            builds, then runs the main job on the bundled model into out/
#   ./build.sh test            builds, then every test that needs no emulator
#   ./build.sh test --full     all of it: emulated tiers, sanitizers, a second compiler
#
#   --no-install   never installs: prints the command that would
#   --no-viz       without figures (cairo, pango, libpng)
#
# SPDX-License-Identifier: MIT
set -eu
cd "$(dirname "$0")"

action=build full=0 install=1 viz=enabled
for argument in "$@"; do
    case $argument in
    build|demo|test) action=$argument ;;
    --full) full=1 ;;
    --no-install) install=0 ;;
    --no-viz) viz=disabled ;;
    -h|--help) sed -n '2,10s/^# \{0,1\}//p' "$0"; exit 0 ;;
    *) echo "build.sh: unknown argument '$argument' (see ./build.sh --help)" >&2; exit 2 ;;
    esac
done

# What is needed, as "how to see that it is there" and the Debian package that brings it.
packages=
need() {
    package=$1; shift
    "$@" >/dev/null 2>&1 || packages="$packages $package"
}
has_command() { command -v "$1"; }
has_library() { command -v pkg-config && pkg-config --exists "$@"; }
has_font() { [ -n "$(ls -d /usr/share/fonts/$1 2>/dev/null)" ]; }
has_package() { dpkg -s "$1" 2>/dev/null | grep -q '^Status: install ok installed'; }

clang_major() { if has_command clang >/dev/null; then clang -dumpversion | cut -d. -f1; else echo 14; fi; }
has_clang_sanitizer() { ls "$(clang --print-resource-dir)"/lib/linux/libclang_rt.asan-*.a; }

need gcc has_command gcc
need libc6-dev test -e /usr/include/stdio.h
need pkg-config has_command pkg-config
need meson has_command meson
need ninja-build has_command ninja
need libhwloc-dev has_library hwloc
need libjansson-dev has_library jansson
need libzip-dev has_library libzip
need libpcre2-dev has_library libpcre2-8
if [ $viz = enabled ]; then
    need libcairo2-dev has_library cairo
    need libpango1.0-dev has_library pangocairo
    need libpng-dev has_library libpng
    need fonts-dejavu-core has_font truetype/dejavu
    need fonts-noto-core has_font truetype/noto/NotoSansDevanagari-Regular.ttf
    need fonts-droid-fallback has_font 'truetype/droid*/DroidSansFallback*'
    need fonts-noto-color-emoji has_font truetype/noto/NotoColorEmoji.ttf
fi
if [ $action = test ]; then
    need libcmocka-dev has_library cmocka
    need libsleef-dev test -e /usr/include/sleef.h -o -e "/usr/include/$(gcc -dumpmachine 2>/dev/null)/sleef.h"
    need python3 has_command python3
    need git has_command git
    need binutils has_command objdump
    need python3-sentencepiece has_package python3-sentencepiece
fi
if [ $action = test ] && [ $full = 1 ]; then
    need clang has_command clang
    need "libclang-rt-$(clang_major)-dev" has_clang_sanitizer
    need clang-format has_command clang-format
    for shell in zsh fish; do need $shell has_command $shell; done
    need groff has_command groff
    need chromium has_command chromium
    need qemu-user-static has_command qemu-aarch64-static
    need gcc-aarch64-linux-gnu has_command aarch64-linux-gnu-gcc
    need libc6-dev-arm64-cross has_package libc6-dev-arm64-cross
    for library in libhwloc-dev libjansson-dev libzip-dev libpcre2-dev libsleef-dev libcmocka-dev; do
        need "$library:arm64" has_package "$library:arm64"
    done
    grep -q avx512vl /proc/cpuinfo || { need bochs has_command bochs; need lz4 has_command lz4; }
fi

if [ -n "$packages" ]; then
    sudo=; [ "$(id -u)" = 0 ] || sudo='sudo '
    architecture=; case $packages in *:arm64*) architecture='dpkg --add-architecture arm64 && ' ;; esac
    command="${sudo}sh -c '${architecture}apt-get update && DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends$packages'"
    if [ $install = 0 ] || ! command -v apt-get >/dev/null; then
        echo "build.sh: missing, by their Debian names:$packages" >&2
        echo "on Debian or Ubuntu: $command" >&2
        exit 4
    fi
    echo "installing:$packages"
    log=${TMPDIR:-/tmp}/deberta-install.log
    eval "$command" >"$log" 2>&1 || { tail -n 15 "$log" >&2; echo "build.sh: this failed: $command" >&2; exit 4; }
fi

tests=disabled; [ $action = test ] && tests=enabled
options="-Dviz=$viz"
if [ ! -e build/build.ninja ]; then
    # Where a Debian system looks for libraries. Meson asks dpkg-dev, and without it installs into lib64, where nothing looks.
    multiarch=$(gcc -print-multiarch 2>/dev/null || true)
    # shellcheck disable=SC2086
    meson setup build $options -Dtests=$tests --buildtype=release ${multiarch:+--libdir=lib/$multiarch}
else
    [ $action = test ] && options="$options -Dtests=enabled"
    # shellcheck disable=SC2086
    meson configure build $options
fi
ninja -C build

case $action in
build) echo "built: build/deberta (try: build/deberta --help)" ;;
demo) tools/demo.sh ;;
test) if [ $full = 1 ]; then exec python3 tools/run_tests.py --full; else exec python3 tools/run_tests.py; fi ;;
esac
