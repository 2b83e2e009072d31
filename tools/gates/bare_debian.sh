#!/bin/sh
# Runs a command in a copy of the committed project on a Debian system with nothing installed, as a newcomer would.
#
#   tools/gates/bare_debian.sh bookworm './build.sh demo && ./build.sh test'
#   tools/gates/bare_debian.sh trixie 'ls /home/new/a.whl' a.whl    # files that go into the folder above the project
#
# Needs root and debootstrap (installed if apt-get is there). The system is made once a suite, in ${TMPDIR:-/tmp}, from this machine's
# own package sources; each run works in a copy, which is removed at the end. The status is that of the command.
#
# SPDX-License-Identifier: MIT
set -eu
[ $# -ge 2 ] || { sed -n '2,8s/^# \{0,1\}//p' "$0" >&2; exit 2; }
suite=$1 command=$2
shift 2
project=$(cd "$(dirname "$0")/../.." && pwd)
fail() { echo "bare_debian.sh: $1" >&2; exit 4; }
[ "$(id -u)" = 0 ] || fail "a chroot needs root"
command -v debootstrap >/dev/null || apt-get install -y -qq debootstrap >/dev/null 2>&1 || fail "debootstrap is missing: apt-get install debootstrap"

# Where this machine gets Debian's packages from: the old one-line form or the new one.
mirror=$(cat /etc/apt/sources.list /etc/apt/sources.list.d/* 2>/dev/null |
    sed -n 's/^URIs: *\([^ ]*debian\/\{0,1\}\) *$/\1/p; s/^deb  *\(\[[^]]*\] *\)\{0,1\}\([^ ]*debian\/\{0,1\}\) .*/\2/p' | head -n 1)
[ -n "$mirror" ] || fail "no source of Debian packages in /etc/apt"
base=${TMPDIR:-/tmp}/bare-debian-$suite
if [ ! -e "$base/.complete" ]; then
    rm -rf "$base"
    debootstrap --variant=minbase "$suite" "$base" "$mirror" >"$base.log" 2>&1 || fail "debootstrap failed: $base.log"
    rm -rf "$base/etc/apt/sources.list.d"
    echo "deb $mirror $suite main" >"$base/etc/apt/sources.list"
    # How this machine reaches its sources: proxy, certificates, names.
    cp /etc/apt/apt.conf.d/99* "$base/etc/apt/apt.conf.d/" 2>/dev/null || true
    cp /etc/resolv.conf "$base/etc/resolv.conf" 2>/dev/null || true
    mkdir -p "$base/etc/ssl/certs"
    cp /etc/ssl/certs/ca-certificates.crt "$base/etc/ssl/certs/" 2>/dev/null || true
    cp /etc/ssl/certs/ca-certificates.crt "$base/etc/ssl/machine.crt" 2>/dev/null || true # the package of that name makes the first anew
    cp /etc/pip.conf "$base/etc/pip.conf" 2>/dev/null || true
    : >"$base/.complete"
fi

root=$(mktemp -d "${TMPDIR:-/tmp}/bare-debian.XXXXXX")
unmount() {
    for place in dev sys proc; do ! mountpoint -q "$root/$place" || umount -l "$root/$place"; done
}
trap 'unmount; rm -rf --one-file-system "$root"' EXIT
trap 'exit 130' INT TERM
cp -a "$base/." "$root/"
mount -t proc proc "$root/proc"
for place in dev sys; do
    mount --rbind "/$place" "$root/$place"
    mount --make-rslave "$root/$place"
done
mkdir -p "$root/home/new/project"
git -C "$project" archive HEAD | tar -x -C "$root/home/new/project"
[ $# -eq 0 ] || cp "$@" "$root/home/new/"
status=0
chroot "$root" /usr/bin/env -i HOME=/root PATH=/usr/sbin:/usr/bin:/sbin:/bin LANG=C.UTF-8 TERM=dumb PIP_CERT=/etc/ssl/machine.crt \
    sh -c "cd /home/new/project && $command" </dev/null || status=$?
exit $status
