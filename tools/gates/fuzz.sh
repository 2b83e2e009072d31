#!/bin/sh
# Fuzzes readers with clang's libFuzzer under the address and undefined-behaviour sanitizers, in build-fuzz/.
#
#   tools/gates/fuzz.sh TARGET SECONDS    one target, "all" for each in turn; the targets stand in tests/fuzz/targets.txt
#
# Seconds are of processor time, and an input that takes ten of them is a finding (tests/fuzz/fuzzer_time.c): other work on the machine makes
# no reader slow. It begins with the files that the suite replays, and keeps what it learns in build-fuzz/corpus/TARGET. A finding is left in
# build-fuzz/findings/TARGET-*: it goes into tests/fuzz/corpus, and the suite replays it. A line of what was done is added to
# build-fuzz/done.tsv: date, target, seconds of processor, executions, edges, files of the corpus, findings. SPDX-License-Identifier: MIT
set -eu
cd "$(dirname "$0")/../.."
wanted=${1:-} seconds=${2:-60}
table=tests/fuzz/targets.txt
targets=$(sed -n 's/^\([a-z_]*\) .*/\1/p' $table)
# shellcheck disable=SC2086
[ -n "$wanted" ] || { echo "usage: ./build.sh fuzz TARGET SECONDS, of:" $targets all >&2; exit 2; }
[ "$wanted" = all ] || targets=$(echo "$targets" | grep -x "$wanted") || { echo "fuzz: unknown target '$wanted'" >&2; exit 2; }

compiler=tools/gates/clang.ini; command -v ccache >/dev/null && compiler=tools/gates/ccache-clang.ini
[ -e build-fuzz/build.ninja ] || meson setup build-fuzz --native-file $compiler -Dviz=disabled -Dmpi=disabled -Dtests=enabled -Dfuzzer=true \
    -Db_sanitize=address,undefined -Db_lundef=false --buildtype=debugoptimized -Db_ndebug=false "-Dc_args=-g1 -fsanitize=fuzzer-no-link" >/dev/null
mkdir -p build-fuzz/findings
# Readers of bytes have a program each, the others share one (tests/fuzz/fuzz_folder.h).
program_of() { [ -e "tests/fuzz/fuzz_$1.c" ] && echo "tests/fuzz/fuzz_$1" || echo tests/fuzz/fuzz_folder; }
# shellcheck disable=SC2046
ninja -C build-fuzz $(for target in $targets; do program_of "$target"; done | sort -u) >build-fuzz/log || { tail -n 20 build-fuzz/log >&2; exit 1; }
[ "$seconds" != 0 ] || exit 0

# The files that are replayed, each in a folder of their own, which is how libFuzzer takes them.
copy_seeds() {
    seeds=build-fuzz/seeds/$1
    rm -rf "$seeds"
    mkdir -p "$seeds"
    for place in $(sed -n "s/^$1  *[0-9]*  *[a-z-]*  *//p" $table); do
        find "tests/$place" -type f
    done | while read -r file; do cp "$file" "$seeds/$(echo "$file" | tr / _)"; done
}

# Sets `processor` to the seconds of processor that children have taken; `times` counts those of the shell that calls it, so in no other.
look_at_processor() {
    times >build-fuzz/times
    processor=$(awk 'END { for (i = 1; i <= 2; i++) { split($i, part, /[ms]/); sum += 60 * part[1] + part[2] } printf "%.0f", sum }' build-fuzz/times)
}

failed=0
for target in $targets; do
    copy_seeds "$target"
    corpus=build-fuzz/corpus/$target
    mkdir -p "$corpus"
    dictionary=$(sed -n "s/^$target  *[0-9]*  *\([a-z]*\)  *.*/\1/p" $table)
    look_at_processor
    status=0 before=$processor
    ASAN_OPTIONS=detect_leaks=1:allocator_may_return_null=1 UBSAN_OPTIONS=halt_on_error=1:print_stacktrace=1 \
        LSAN_OPTIONS=suppressions=tools/gates/leaks.supp:print_suppressions=0 FUZZ_SECONDS=$seconds FUZZ_TARGET=$target \
        "build-fuzz/$(program_of "$target")" -timeout=0 -report_slow_units=100000 -print_final_stats=1 -rss_limit_mb=2048 -max_len=65536 -verbosity=1 \
        "-artifact_prefix=build-fuzz/findings/$target-" ${dictionary:+"-dict=tests/fuzz/$dictionary.dict"} "$corpus" "$seeds" \
        >"build-fuzz/$target.log" 2>&1 || status=$?
    look_at_processor
    used=$((processor - before))
    runs=$(sed -n 's/^stat::number_of_executed_units: *//p' "build-fuzz/$target.log")
    edges=$(sed -n 's/.*cov: \([0-9]*\) .*/\1/p' "build-fuzz/$target.log" | tail -n 1)
    findings=$(find build-fuzz/findings -name "$target-*" | wc -l)
    if [ $status = 0 ]; then echo "$target: $runs runs in $used s, $edges edges, no finding"
    elif [ -z "$runs" ] && [ "$findings" = 0 ]; then failed=1; echo "$target: did not run, see build-fuzz/$target.log"; continue
    else failed=1; echo "$target: FINDING, see build-fuzz/$target.log"; fi
    printf '%s\t%s\t%s\t%s\t%s\t%s\t%s\n' "$(date +%F)" "$target" "$used" "${runs:-?}" "${edges:-?}" "$(find "$corpus" -type f | wc -l)" \
        "$findings" >>build-fuzz/done.tsv
done
exit $failed
