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
    for archive in *.orig.tar.gz; do tar xzf "$archive"; done
fi
