#!/bin/sh
# jansson and pcre2 as Debian's source packages, unpacked into FOLDER: wasm/fetch_sources.sh FOLDER. Their own list of
# sources is used, so that that of the system stays as it is. SPDX-License-Identifier: MIT
set -eu
[ $# = 1 ] || { echo "usage: wasm/fetch_sources.sh FOLDER" >&2; exit 2; }
mkdir -p "$1/lists"
cd "$1"
if [ ! -e pcre2-10.42/src/pcre2_compile.c ] || [ ! -e jansson-2.14/src/load.c ]; then
    mirror=$(sed -n 's/^URIs: *\([^ ]*\/debian\) *$/\1/p; s/^deb \(\[[^]]*\] \)\{0,1\}\([^ ]*\/debian\) .*/\2/p' /etc/apt/sources.list /etc/apt/sources.list.d/* 2>/dev/null | head -n 1)
    [ -n "$mirror" ] || { echo "wasm/fetch_sources.sh: no mirror of Debian in the lists of apt" >&2; exit 4; }
    echo "deb-src [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] $mirror bookworm main" >sources.list
    set -- -qq -o "Dir::Etc::SourceList=$PWD/sources.list" -o Dir::Etc::SourceParts=/dev/null -o "Dir::State::Lists=$PWD/lists" -o APT::Sandbox::User=root
    apt-get "$@" update
    apt-get "$@" source --download-only jansson=2.14-2 pcre2=10.42-1
    sha256sum --check --quiet >&2 <<SUMS || { echo "wasm/fetch_sources.sh: not the sources that the modules are built from" >&2; exit 3; }
c739578bf6b764aa0752db9a2fdadcfe921c78f1228c7ec0bb47fa804c55d17b  jansson_2.14.orig.tar.gz
c33b418e3b936ee3153de2c61cc638e7e4fe3156022a5c77d0711bcbb9d64f1f  pcre2_10.42.orig.tar.gz
SUMS
    for archive in jansson_2.14.orig.tar.gz pcre2_10.42.orig.tar.gz; do tar xzf "$archive"; done
fi
