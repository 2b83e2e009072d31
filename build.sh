#!/bin/sh
# The one entrance: checks what is installed, installs what is missing, configures, builds; then demo or tests.
#
#   ./build.sh                 build/deberta
#   ./build.sh demo            builds, then runs the main job on the bundled model into out/
#   ./build.sh test            builds, then tests library and program; of what takes long a sample
#   ./build.sh test --full     all of it: emulated tiers, sanitizers, a second compiler
#   ./build.sh fuzz TARGET SECONDS  clang's libFuzzer with sanitizers on a reader of files (tests/fuzz/targets.txt)
#   ./build.sh wasm            modules for JavaScript in build-wasm/, compared with the native program
#   ./build.sh test --nightly  what takes too long for every change: bare Debian systems (needs root)
#
#   --no-install   never installs: prints the command that would
#   --no-viz       without figures (cairo, pango, libpng)
#
# CC chooses the compiler. Without apt-get nothing is installed: the packages are named.
#
# SPDX-License-Identifier: MIT
set -eu
cd "$(dirname "$0")"

[ "${1:-}" != fuzz ] || { shift; exec tools/gates/fuzz.sh "$@"; }

action=build full=0 nightly=0 install=1 viz=enabled
for argument in "$@"; do
    case $argument in
    build|demo|test|wasm) action=$argument ;;
    --full) full=1 ;;
    --nightly) nightly=1 ;;
    --no-install) install=0 ;;
    --no-viz) viz=disabled ;;
    -h|--help) sed -n '2,15s/^# \{0,1\}//p' "$0"; exit 0 ;;
    *) echo "build.sh: unknown argument '$argument' (see ./build.sh --help)" >&2; exit 2 ;;
    esac
done

refuse() { echo "build.sh: $1" >&2; exit 4; }
[ "$(uname -s)" = Linux ] || refuse "this is $(uname -s); needed is Linux on x86-64 or aarch64 (on Windows inside WSL, elsewhere in a container: Containerfile)"

# What is needed, as "how to see that it is there" and the Debian package that brings it.
packages= later= fonts=
need() {
    package=$1; shift
    "$@" >/dev/null 2>&1 || packages="$packages $package"
}
# What only tests use is installed while the compiler works.
need_later() {
    package=$1; shift
    "$@" >/dev/null 2>&1 || later="$later $package"
}
need_font() {
    package=$1; shift
    "$@" >/dev/null 2>&1 || fonts="$fonts $package"
}
cc=${CC:-cc}
has_command() { command -v "$1"; }
has_library() { command -v pkg-config && pkg-config --exists "$@"; }
has_font() { [ -n "$(find -L /usr/share/fonts /usr/local/share/fonts "${HOME:-/root}/.local/share/fonts" -name "$1" 2>/dev/null | head -n 1)" ]; }
has_header() { echo "#include <$1>" | $cc -E -; }
has_package() { dpkg -s "$1" 2>/dev/null | grep -q '^Status: install ok installed'; }
has_module() { /usr/bin/python3 -c "import $1" || python3 -c "import $1"; }

clang_major() { if has_command clang >/dev/null; then clang -dumpversion | cut -d. -f1; else echo 14; fi; }
has_clang_openmp() { echo '#include <omp.h>' | clang -fopenmp -E -; }
has_clang_sanitizer() { ls "$(clang --print-resource-dir)"/lib/linux/libclang_rt.asan-*.a; }

need gcc has_command "${cc%% *}"
need libc6-dev has_header stdio.h
need pkg-config has_command pkg-config
need meson has_command meson
need ninja-build has_command ninja
need libhwloc-dev has_library hwloc
need libjansson-dev has_library jansson
need libzip-dev has_library libzip
need libpcre2-dev has_library libpcre2-8
need zlib1g-dev has_library zlib
if [ $viz = enabled ]; then
    need libcairo2-dev has_library cairo cairo-pdf
    need libpango1.0-dev has_library pangocairo harfbuzz
    need libpng-dev has_library libpng
    need_font fonts-dejavu-core has_font DejaVuSans.ttf
    need_font fonts-noto-core has_font 'NotoSansDevanagari*'
    need_font fonts-droid-fallback has_font 'DroidSansFallback*'
    need_font fonts-noto-color-emoji has_font 'NotoColorEmoji*'
fi
if [ $action = test ]; then
    need libcmocka-dev has_library cmocka
    need libsleef-dev has_header sleef.h
    need python3 has_command python3
    need git has_command git
    need binutils has_command objdump
    need python3-sentencepiece has_module sentencepiece
    [ $viz = disabled ] || need_later poppler-utils has_command pdfinfo
fi
if [ $action = test ] && [ $full = 1 ]; then
    need ccache has_command ccache
    export CCACHE_DEPEND=1 # a file that is new to it is not preprocessed first
    for package in openmpi-bin libopenmpi-dev; do need $package has_package $package; done
    need_later clang has_command clang
    need_later "libomp-$(clang_major)-dev" has_clang_openmp
    need_later "libclang-rt-$(clang_major)-dev" has_clang_sanitizer
    need_later clang-format has_command clang-format
    for package in slurmctld slurmd slurm-client munge; do need_later $package has_package $package; done
    for shell in zsh fish; do need_later $shell has_command $shell; done
    need_later groff has_command groff
    need_later chromium has_command chromium
    need_later firefox-esr has_command firefox-esr
    need_later qemu-user-static has_command qemu-aarch64-static
    need_later gcc-aarch64-linux-gnu has_command aarch64-linux-gnu-gcc
    need_later libc6-dev-arm64-cross has_package libc6-dev-arm64-cross
    for library in libhwloc-dev libjansson-dev libzip-dev libpcre2-dev zlib1g-dev libsleef-dev libcmocka-dev; do
        need_later "$library:arm64" has_package "$library:arm64"
    done
    grep -q avx512vl /proc/cpuinfo || { need_later bochs has_command bochs; need_later lz4 has_command lz4; }
fi
[ $action != test ] || [ $nightly = 0 ] || need_later gcovr has_command gcovr
if [ $action = wasm ] || { [ $action = test ] && [ $full = 1 ]; }; then
    need_later clang-19 has_command clang-19
    need_later lld-19 has_command wasm-ld-19
    need_later wasi-libc has_package wasi-libc
    need_later libclang-rt-19-dev-wasm32 has_package libclang-rt-19-dev-wasm32
    need python3 has_command python3
    need_later nodejs has_command node
fi

# All that a build needs, as each family of systems calls it. rpm finds a library by the name that pkg-config knows.
rpm_libraries="'pkgconfig(hwloc)' 'pkgconfig(jansson)' 'pkgconfig(libzip)' 'pkgconfig(libpcre2-8)' 'pkgconfig(zlib)'"
rpm_figures="'pkgconfig(cairo)' 'pkgconfig(pangocairo)' 'pkgconfig(libpng)'"
arch_figures="cairo pango libpng ttf-dejavu noto-fonts"
if [ $viz = disabled ]; then rpm_figures= arch_figures=; fi
if [ $action = test ]; then rpm_libraries="$rpm_libraries 'pkgconfig(cmocka)'" arch_figures="$arch_figures cmocka python git"; fi
sudo=; [ "$(id -u)" = 0 ] || sudo='sudo '
tell_other_systems() {
    if has_command dnf >/dev/null; then
        echo "on Fedora: ${sudo}dnf install gcc pkgconf-pkg-config meson ninja-build $rpm_libraries $rpm_figures"
    elif has_command zypper >/dev/null; then
        echo "on openSUSE: ${sudo}zypper install gcc pkg-config meson ninja $rpm_libraries $rpm_figures"
    elif has_command pacman >/dev/null; then
        echo "on Arch: ${sudo}pacman -S --needed gcc pkgconf meson ninja hwloc jansson libzip pcre2 zlib $arch_figures"
    fi >&2
}

if has_command apt-get >/dev/null && [ $install = 1 ]; then later="$later$fonts" fonts=; fi
[ $action = test ] || { packages="$packages$later" later=; }
missing=$packages$later
log=${TMPDIR:-/tmp}/deberta-install.log
run_installation() { eval "$1" >>"$log" 2>&1 || { tail -n 15 "$log" >&2; refuse "this failed: $1"; }; }
installing=
if [ -n "$missing" ]; then
    architecture=; case $missing in *:arm64*) architecture='dpkg --add-architecture arm64 && ' ;; esac
    prepare="${architecture}apt-get update" get='DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends'
    command="${sudo}sh -c '$prepare && $get$missing'"
    if ! has_command apt-get >/dev/null; then
        echo "build.sh: missing, by their Debian names:$missing" >&2
        tell_other_systems
        exit 4
    elif [ $install = 0 ]; then
        echo "build.sh: missing:$missing" >&2
        refuse "to install them: $command"
    fi
    echo "installing:$missing"
    : >"$log"
    run_installation "${sudo}sh -c '$prepare${packages:+ && $get$packages}'"
    if [ -n "$later" ]; then
        run_installation "${sudo}sh -c '$get$later'" &
        installing=$!
        trap wait EXIT
    fi
fi
[ -z "$fonts" ] || echo "build.sh: note: not found (Debian's names):$fonts; figures show a box for a character that no font has" >&2

# What is there may be too old: below NEEDED FOUND.
below() { [ "$(printf '%s\n%s\n' "$1" "$2" | sort -V | head -n 1)" = "$2" ] && [ "$1" != "$2" ]; }
version=$(meson --version)
below 1.0 "$version" && refuse "meson $version is too old, needed is 1.0 or later: pipx install meson"
version=$($cc -dumpversion)
if $cc --version | grep -qi clang; then
    below 14 "$version" && refuse "clang $version is too old, needed is 14 or later: CC=clang-14 ./build.sh"
else
    below 12 "$version" && refuse "gcc $version is too old, needed is 12 or later: CC=gcc-12 ./build.sh, where a gcc-12 is installed"
fi

# Meson keeps what it found and what it missed. So that what was installed since then counts as in a new folder, build/found.txt
# remembers everything the build files look for, and where that has changed the build is configured from nothing, with the options
# it had. Compiled files stay: ninja compiles what now has another command line.
what_is_found() {
    echo "meson $(meson --version), compiler $cc: $($cc --version | head -n 1), packages from ${PKG_CONFIG_PATH:-the usual places}"
    echo "flags ${CFLAGS:-}, ${CPPFLAGS:-}, ${LDFLAGS:-}"
    for library in hwloc jansson libzip libpcre2-8 zlib cairo cairo-pdf pangocairo harfbuzz libpng cmocka sleef ompi-c mpich; do
        echo "library $library: $(pkg-config --modversion "$library" 2>/dev/null || true)"
    done
    for header in sleef.h; do
        if has_header "$header" >/dev/null 2>&1; then echo "header $header"; fi
    done
    for command in ar awk c++ ccache mpicc objcopy python3; do echo "command $command: $(command -v "$command" || true)"; done
    for python in /usr/bin/python3 python3; do
        for module in sentencepiece; do
            if "$python" -c "import $module" >/dev/null 2>&1; then echo "module $module of $python"; fi
        done
    done
}

tests=disabled; [ $action = test ] && tests=enabled
options="-Dviz=$viz"
found=$(what_is_found)
kept=build/meson-private/cmd_line.txt
if [ "$found" = "$(cat build/found.txt 2>/dev/null)" ]; then
    [ $action = test ] && options="$options -Dtests=enabled"
    # shellcheck disable=SC2086
    meson configure build $options
else
    rm -f build/found.txt
    set --
    if [ -e $kept ]; then
        # Its lines are "name = value". The tests that were once asked for stay.
        while IFS= read -r line; do
            case $line in
            "[properties]") break ;;
            "tests = "*) [ $action = test ] || tests=${line#* = } ;;
            *" = "*) set -- "$@" "-D${line%% = *}=${line#* = }" ;;
            esac
        done <$kept
        ! grep -q '^\(cross\|native\)_file = ' $kept || refuse "build/ was configured with a machine file: rm -r build, or meson setup --wipe build"
        rm -rf build/meson-private
    else
        # Where a Debian system looks for libraries. Meson asks dpkg-dev, and without it installs into lib64, where nothing looks.
        multiarch=$($cc -print-multiarch 2>/dev/null || true)
        set -- --buildtype=release ${multiarch:+--libdir=lib/$multiarch}
    fi
    # shellcheck disable=SC2086
    meson setup build "$@" $options -Dtests=$tests
    echo "$found" >build/found.txt
fi
ninja -C build

case $action in
build) echo "built: build/deberta (try: build/deberta --help)" ;;
demo) tools/making/demo.sh ;;
wasm)
    wasm/fetch_sources.sh build-wasm/sources
    wasm/configure.py build-wasm
    ninja -C build-wasm --quiet
    wasm/pack.py build-wasm
    # shellcheck disable=SC2046
    node $(wasm/node_flags.sh) tests/wasm/run_bits.mjs build-wasm models/demo build/deberta
    ;;
test)
    [ -z "$installing" ] || wait "$installing" || exit 4
    set --
    [ $full = 0 ] || set -- --full
    [ $nightly = 0 ] || set -- --nightly
    exec python3 tools/gates/run_tests.py "$@" ;;
esac
