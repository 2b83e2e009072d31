/* checkasm --bench: how long each kernel takes on shapes of a base model, tier by tier.
 *
 * The tiers take turns, sample by sample, so that a machine that slows down slows all of them. A sample repeats the
 * call until it is long enough for the clock; what restoring the input of an in-place kernel costs is measured alone
 * and subtracted.
 *
 * SPDX-License-Identifier: MIT */
#include "tests/checkasm/checkasm_bench.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { SAMPLES = 15 };

/* ----------------------------------------------------------------------------------------------------------- timing */

/* CPU time of this thread: a neighbour that takes the processor does not count. */
static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Seconds of one call; table NULL: of the restoring alone. */
static double sample(const bench_case *benchmark, const kernels *table, bench_arrays *arrays, size_t repetitions)
{
    const double start = now();
    for (size_t i = 0; i < repetitions; i++) {
        benchmark->restore(arrays);
        if (table) benchmark->call(table, arrays);
        /* The result counts as used. */
        __asm__ volatile("" ::"r"(arrays) : "memory");
    }
    return (now() - start) / (double)repetitions;
}

/* Repetitions that take at least 4 ms, found by doubling, which also warms up caches and vector units. */
static size_t calibrate(const bench_case *benchmark, const kernels *table, bench_arrays *arrays)
{
    size_t repetitions = 1;
    while (sample(benchmark, table, arrays, repetitions) * (double)repetitions < 4e-3) repetitions *= 2;
    return repetitions;
}

static int compare_doubles(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

typedef struct bench_timing {
    double least, median;
} bench_timing;

static bench_timing summarize(double samples[SAMPLES], double restoring)
{
    qsort(samples, SAMPLES, sizeof *samples, compare_doubles);
    const double least = samples[0] - restoring, median = samples[SAMPLES / 2] - restoring;
    return (bench_timing){least > 1e-12 ? least : 1e-12, median > 1e-12 ? median : 1e-12};
}

static double rate(const bench_case *benchmark, double seconds)
{
    return benchmark->scale > 0 ? benchmark->work / seconds * benchmark->scale
                                : -seconds / benchmark->work * benchmark->scale;
}

/* tables[t] is NULL for a tier that does not run. */
static void measure(const bench_case *benchmark, const kernels *const tables[TIER_COUNT], bench_arrays *arrays)
{
    enum { RESTORING = TIER_COUNT };
    static double samples[TIER_COUNT + 1][SAMPLES];
    size_t repetitions[TIER_COUNT + 1];
    arrays->variant = benchmark->variant;
    benchmark->restore(arrays);
    for (int t = 0; t <= TIER_COUNT; t++)
        if (t == RESTORING || tables[t])
            repetitions[t] = calibrate(benchmark, t == RESTORING ? NULL : tables[t], arrays);
    for (int s = 0; s < SAMPLES; s++)
        for (int t = 0; t <= TIER_COUNT; t++)
            if (t == RESTORING || tables[t])
                samples[t][s] = sample(benchmark, t == RESTORING ? NULL : tables[t], arrays, repetitions[t]);

    const double restoring = summarize(samples[RESTORING], 0).least;
    double standard = 0;
    for (int t = 0; t < TIER_COUNT; t++) {
        if (!tables[t]) continue;
        const bench_timing timing = summarize(samples[t], restoring);
        if (t == (int)scalar_tier()) standard = timing.least;
        printf("%-22s %-30s %-18s %9.3f %9.3f %-10s", slot_name(benchmark->slot), benchmark->label,
               tier_name((tier_id)t), rate(benchmark, timing.least), rate(benchmark, timing.median), benchmark->unit);
        if (standard > 0) printf(" %7.2f", standard / timing.least);
        printf("\n");
    }
    fflush(stdout);
}

/* Names a kernel that nothing here measures. */
static bool all_measured(void)
{
    bool measured[SLOT_COUNT] = {false}, all = true;
    for (const bench_case *one = bench_cases; one->call; one++) measured[one->slot] = true;
    for (int slot = 0; slot < SLOT_COUNT; slot++) {
        if (!measured[slot]) printf("no benchmark of %s\n", slot_name((slot_id)slot));
        all = all && measured[slot];
    }
    return all;
}

int bench(const test_options *options)
{
    static bench_arrays arrays;
    static kernels tables[TIER_COUNT];
    const kernels *present[TIER_COUNT] = {NULL};
    size_t measured = 0, skipped = 0;
    bench_arrays_fill(&arrays, options);
    for (int t = 0; t < TIER_COUNT; t++) {
        const char *missing = tier_missing((tier_id)t);
        if (missing) printf("skipped %s: %s\n", tier_name((tier_id)t), missing);
        if (missing) skipped++;
        const bool wanted = options->tier < 0 || options->tier == t || t == (int)scalar_tier();
        if (missing || !wanted) continue;
        tier_init((tier_id)t, &tables[t]);
        present[t] = &tables[t];
    }
    printf("%-22s %-30s %-18s %9s %9s %-10s times the speed of %s\n", "kernel", "shape", "tier", "best", "median", "",
           tier_name(scalar_tier()));
    for (const bench_case *one = bench_cases; one->call; one++) {
        const char *slot = slot_name(one->slot);
        if (options->kernel && strncmp(options->kernel, slot, strlen(slot)) != 0) continue;
        measure(one, present, &arrays);
        measured++;
    }
    printf("%zu measured, %zu tiers skipped\n", measured, skipped);
    return all_measured() ? 0 : 1;
}
