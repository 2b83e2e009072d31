/* Holds the tables that turn bench results into JSON, CSV and text tables, and JSON into results again.
 *
 * SPDX-License-Identifier: MIT */
#include "bench/result_fields.h"

#include "core/base/tiers.h"

static const char *const temperatures[] = {"warm", "cold"};

/* Text tables have milliseconds, percent and MiB; files have SI units, which are in the names. */
#define MILLISECONDS .scale = 1e3, .digits = RECORD_DIGITS_OF_ROW
#define MEBIBYTES    .scale = 1.0 / (1 << 20), .digits = 1, .unknown_is_zero = true
#define IDENTIFIES   .identifies = true
#define KNOWN_IF_SET .unknown_is_zero = true
#define END                                                                                                            \
    {                                                                                                                  \
        NULL, NULL, RECORD_IS_TEXT, .at = 0                                                                            \
    }

const record_field bench_result_fields[] = {
    {"model", "model", RECORD_TEXT(bench_result, model), IDENTIFIES},
    {"model_sha256", NULL, RECORD_TEXT(bench_result, model_sha256), IDENTIFIES, .absent_is_zero = true},
    {"engine", "engine", RECORD_TEXT(bench_result, engine), IDENTIFIES},
    {"precision", "precision", RECORD_TEXT(bench_result, precision), IDENTIFIES},
    {"isa", "isa", RECORD_TEXT(bench_result, isa), IDENTIFIES},
    {"threads", "threads", RECORD_SIZE(bench_result, threads), IDENTIFIES},
    {"attention", "attention", RECORD_TEXT(bench_result, attention), IDENTIFIES},
    {"position_cache", "position cache", RECORD_FLAG(bench_result, position_cache), IDENTIFIES, .fallback = true},
    {"cold", "caches", RECORD_FLAG(bench_result, cold), IDENTIFIES, .words = temperatures},
    {"layers", "layers", RECORD_SIZE(bench_result, layers), IDENTIFIES},
    {"batch", "batch", RECORD_SIZE(bench_result, batch), IDENTIFIES},
    {"n", "n", RECORD_SIZE(bench_result, n)},
    {"tokens", NULL, RECORD_SIZE(bench_result, tokens)},
    {"median_s", "median ms", RECORD_NUMBER(bench_result, time.median), MILLISECONDS},
    {"mad_s", "MAD ms", RECORD_NUMBER(bench_result, time.mad), MILLISECONDS},
    {"min_s", "min ms", RECORD_NUMBER(bench_result, time.minimum), MILLISECONDS},
    {"p95_s", "p95 ms", RECORD_NUMBER(bench_result, time.p95), MILLISECONDS},
    {"repetitions", "samples", RECORD_SIZE(bench_result, time.count)},
    {"median_low_s", NULL, RECORD_NUMBER(bench_result, time.low)},
    {"median_high_s", NULL, RECORD_NUMBER(bench_result, time.high)},
    {"gflop", NULL, RECORD_NUMBER(bench_result, gflop)},
    {"gflop_reachable", NULL, RECORD_NUMBER(bench_result, gflop_reachable)},
    {"table_rows", NULL, RECORD_NUMBER(bench_result, table_rows)},
    {"reachable_rows", NULL, RECORD_NUMBER(bench_result, reachable_rows)},
    {"gflops", "GFLOP/s", RECORD_NUMBER(bench_result, gflops), .digits = 1, KNOWN_IF_SET},
    {"peak_fraction", "% of peak", RECORD_NUMBER(bench_result, peak_fraction), .scale = 100, .digits = 1, KNOWN_IF_SET},
    {"peak_then_fraction", "% of peak then", RECORD_NUMBER(bench_result, peak_then_fraction), .scale = 100, .digits = 1,
     KNOWN_IF_SET, .absent_is_zero = true},
    {"tokens_per_s", "tokens/s", RECORD_NUMBER(bench_result, tokens_per_s), KNOWN_IF_SET},
    {"workspace_bytes", "workspace MiB", RECORD_SIZE(bench_result, workspace_bytes), MEBIBYTES},
    {"peak_rss_bytes", "peak RSS MiB", RECORD_SIZE(bench_result, peak_rss_bytes), MEBIBYTES},
    {"other_cores", NULL, RECORD_NUMBER(bench_result, other_cores)},
    {"checksum", NULL, RECORD_BITS(bench_result, checksum)},
    {"relative_error", NULL, RECORD_NUMBER(bench_result, relative_error), .absent_is_zero = true},
    END,
};
_Static_assert(sizeof bench_result_fields / sizeof *bench_result_fields <= BENCH_MOST_RESULT_FIELDS + 1,
               "a table of results has room for each");

const record_field bench_environment_fields[] = {
    {"version", NULL, RECORD_TEXT(bench_results, sheet.version)},
    {"commit", NULL, RECORD_TEXT(bench_results, sheet.commit)},
    {"dirty", NULL, RECORD_FLAG(bench_results, sheet.dirty)},
    {"date", NULL, RECORD_TEXT(bench_results, sheet.date)},
    {"command", NULL, RECORD_TEXT(bench_results, command)},
    {"compiler", NULL, RECORD_TEXT(bench_results, sheet.compiler)},
    {"flags", NULL, RECORD_TEXT(bench_results, sheet.flags)},
    {"cpu", NULL, RECORD_TEXT(bench_results, sheet.cpu)},
    {"architecture", NULL, RECORD_TEXT(bench_results, sheet.architecture)},
    {"system", NULL, RECORD_TEXT(bench_results, sheet.system)},
    {"virtual_machine", NULL, RECORD_FLAG(bench_results, sheet.virtual_machine)},
    {"hypervisor", NULL, RECORD_TEXT(bench_results, sheet.hypervisor)},
    {"microcode", NULL, RECORD_TEXT(bench_results, sheet.microcode)},
    {"huge_pages", NULL, RECORD_TEXT(bench_results, sheet.huge_pages)},
    {"huge_page_bytes", NULL, RECORD_SIZE(bench_results, sheet.huge_page_bytes)},
    {"isa", NULL, RECORD_TEXT(bench_results, sheet.isa)},
    {"cores", NULL, RECORD_SIZE(bench_results, sheet.topology.cores)},
    {"logical", NULL, RECORD_SIZE(bench_results, sheet.topology.logical)},
    {"packages", NULL, RECORD_SIZE(bench_results, sheet.topology.packages)},
    {"numa_nodes", NULL, RECORD_SIZE(bench_results, sheet.topology.numa_nodes)},
    {"usable_cores", NULL, RECORD_SIZE(bench_results, sheet.topology.usable_cores)},
    {"cpu_quota", NULL, RECORD_NUMBER(bench_results, sheet.topology.cpu_quota)},
    {"memory_bytes", NULL, RECORD_SIZE(bench_results, sheet.memory_bytes)},
    {"governor", NULL, RECORD_TEXT(bench_results, sheet.governor)},
    {"load", NULL, RECORD_NUMBER(bench_results, sheet.load)},
    {"clock_ghz", NULL, RECORD_NUMBER(bench_results, sheet.clock_ghz)},
    {"clock_ghz_after", NULL, RECORD_NUMBER(bench_results, sheet.clock_ghz_after)},
    {"clock_wide_ghz", NULL, RECORD_NUMBER(bench_results, sheet.clock_wide_ghz)},
    {"clock_wide_ghz_after", NULL, RECORD_NUMBER(bench_results, sheet.clock_wide_ghz_after)},
    {"other_cores", NULL, RECORD_NUMBER(bench_results, sheet.activity.others)},
    {"stolen_cores", NULL, RECORD_NUMBER(bench_results, sheet.activity.stolen)},
    {"load_s", NULL, RECORD_NUMBER(bench_results, load_s)},
    {"load_peak_rss_bytes", NULL, RECORD_SIZE(bench_results, load_peak_rss_bytes)},
    END,
};

const record_field bench_cache_fields[] = {
    {"l1d_bytes", NULL, RECORD_SIZE(bench_results, sheet.topology.l1d_bytes)},
    {"l2_bytes", NULL, RECORD_SIZE(bench_results, sheet.topology.l2_bytes)},
    {"l3_bytes", NULL, RECORD_SIZE(bench_results, sheet.topology.l3_bytes)},
    END,
};

/* Members of a roof; those that were not measured are absent. */
#define ROOF .digits = 1, .absent_is_zero = true

const record_field bench_roof_fields[] = {
    {"threads", "threads", RECORD_SIZE(machine_roof, threads)},
#define X(NAME, name, ...)                                                                                             \
    {#name "_gflops", #name " GFLOP/s", RECORD_NUMBER(machine_roof, gflops[DEBERTA_ISA_##NAME]), ROOF},
    TIER_LIST(X)
#undef X
#define X(NAME, name, ...)                                                                                             \
    {#name "_gops", #name " int8 GOP/s", RECORD_NUMBER(machine_roof, gops[DEBERTA_ISA_##NAME]), ROOF},
        TIER_LIST(X)
#undef X
            {"read_gbs", "read GB/s", RECORD_NUMBER(machine_roof, read_gbs), ROOF},
    {"triad_gbs", "triad GB/s", RECORD_NUMBER(machine_roof, triad_gbs), ROOF},
    {"typical_share", NULL, RECORD_NUMBER(machine_roof, typical_share), ROOF},
    END,
};

const record_field bench_stage_fields[] = {
    {"s", NULL, RECORD_NUMBER(bench_stage, seconds)},
    {"gflop", NULL, RECORD_NUMBER(bench_stage, gflop)},
    {"bytes", NULL, RECORD_NUMBER(bench_stage, bytes)},
    END,
};

const record_field bench_then_fields[] = {
    {"gflops", NULL, RECORD_NUMBER(bench_then, gflops), ROOF},
    {"gops", NULL, RECORD_NUMBER(bench_then, gops), ROOF},
    {"read_gbs", NULL, RECORD_NUMBER(bench_then, read_gbs), ROOF},
    {"slices", NULL, RECORD_SIZE(bench_then, slices)},
    END,
};

const record_field bench_part_fields[] = {
    {"s", NULL, RECORD_NUMBER(bench_stage, seconds)},
    {"gflop", NULL, RECORD_NUMBER(bench_stage, gflop)},
    END,
};
