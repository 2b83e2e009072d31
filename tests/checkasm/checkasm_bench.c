/* checkasm --bench: how long each kernel takes on shapes of a base model, tier by tier.
 *
 * The tiers take turns, sample by sample, so that a machine that slows down slows all of them. A sample repeats the
 * call until it is long enough for the clock; what restoring the input of an in-place kernel costs is measured alone
 * and subtracted.
 *
 * SPDX-License-Identifier: MIT */
#include "tests/checkasm/checkasm.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { SAMPLES = 15, ROWS = 96, DEPTH = 768, PANELS = 12, KEYS = 512, TABLE_ROWS = 512, VALUES = 3072 };

/* Everything that the kernels work on; large, so that it lives outside the stack. */
typedef struct bench_arrays {
    float a[ROWS * DEPTH], b[DEPTH * PANELS * PANEL], c[ROWS * DEPTH], bias[DEPTH], strips[ROWS * TABLE_ROWS];
    float state[3][ROWS];
    int32_t row_of[ROWS + PANEL], position_of[ROWS + PANEL];
    size_t variant; /* of the benchmark that runs */
} bench_arrays;

typedef struct bench_case {
    slot_id slot;
    const char *label;
    void (*restore)(bench_arrays *arrays);
    void (*call)(const kernels *table, bench_arrays *arrays);
    double work; /* of one call */
    const char *unit;
    double scale; /* work / seconds * scale, or seconds / work * scale if negative */
    size_t variant;
} bench_case;

/* ---------------------------------------------------------------------------------------------------------- kernels */

static void restore_nothing(bench_arrays *arrays) { (void)arrays; }

static void call_gemm(const kernels *table, bench_arrays *w)
{
    const gemm_task task = {.rows = w->variant == 1 ? 1 : ROWS,
                            .depth = DEPTH,
                            .panels = PANELS,
                            .a = w->a,
                            .lda = DEPTH,
                            .b = w->b,
                            .b_panel_stride = DEPTH * PANEL,
                            .c = w->c,
                            .ldc = DEPTH,
                            .c_panel_stride = PANEL,
                            .bias = w->bias,
                            .gelu = w->variant == 2,
                            .next = w->variant != 1 ? w->b : NULL};
    table->gemm_f32(&task);
}

static void call_pack(const kernels *table, bench_arrays *w)
{
    table->pack_panels_f32(w->b, 64 * PANEL, w->a, DEPTH, ROWS, 64);
}

/* Variants: linear, a step at every other distance, and the same map without the promise. */
static void restore_map(bench_arrays *w)
{
    for (int x = 0; x < ROWS + PANEL; x++) {
        w->row_of[x] = w->variant == 0 ? x : x / 2;
        w->position_of[ROWS + PANEL - 1 - x] = TABLE_ROWS - 1 - w->row_of[x];
    }
}

static void call_position_bias(const kernels *table, bench_arrays *w)
{
    const position_bias_task task = {.rows = ROWS,
                                     .bias = w->c,
                                     .c2p = w->strips,
                                     .ld_c2p = TABLE_ROWS,
                                     .c2p_first = TABLE_ROWS - 1 - ROWS - PANEL,
                                     .p2c = w->b,
                                     .row_of = w->row_of + PANEL - 1,
                                     .position_of = w->position_of + ROWS,
                                     .last_row = TABLE_ROWS - 1,
                                     .unit_steps = w->variant != 2};
    table->position_bias_f32(&task);
}

static void restore_logits(bench_arrays *w) { memcpy(w->c, w->a, ROWS * KEYS * sizeof(float)); }

static void call_softmax(const kernels *table, bench_arrays *w)
{
    const softmax_task task = {.rows = ROWS,
                               .keys = KEYS,
                               .s = w->c,
                               .lds = KEYS,
                               .maximum = w->state[0],
                               .total = w->state[1],
                               .rescale = w->state[2],
                               .first = true};
    table->softmax_f32(&task);
}

static void call_layernorm(const kernels *table, bench_arrays *w)
{
    table->layernorm_f32(w->c, DEPTH, w->a, DEPTH, w->bias, w->bias, ROWS, DEPTH, 1e-7f);
}

static void restore_values(bench_arrays *w) { memcpy(w->c, w->a, VALUES * sizeof(float)); }

static void call_activate(const kernels *table, bench_arrays *w)
{
    table->activate_f32(w->c, VALUES, (kernel_activation)w->variant);
}

#define GFLOPS          "GFLOP/s", 1e-9
#define NS              "ns/element", -1e9
#define GEMM_FLOP(rows) (2.0 * (rows)*DEPTH * PANELS * PANEL)
static const bench_case benchmarks[] = {
    {SLOT_gemm_f32, "96 x 768 x 192, bias", restore_nothing, call_gemm, GEMM_FLOP(ROWS), GFLOPS, 0},
    {SLOT_gemm_f32, "96 x 768 x 192, bias and gelu", restore_nothing, call_gemm, GEMM_FLOP(ROWS), GFLOPS, 2},
    {SLOT_gemm_f32, "1 x 768 x 192, bias", restore_nothing, call_gemm, GEMM_FLOP(1), GFLOPS, 1},
    {SLOT_pack_panels_f32, "96 rows of 64", restore_nothing, call_pack, ROWS * 64, NS, 0},
    {SLOT_position_bias_f32, "96 queries, linear", restore_map, call_position_bias, ROWS *PANEL, NS, 0},
    {SLOT_position_bias_f32, "96 queries, unit steps", restore_map, call_position_bias, ROWS *PANEL, NS, 1},
    {SLOT_position_bias_f32, "96 queries, any map", restore_map, call_position_bias, ROWS *PANEL, NS, 2},
    {SLOT_softmax_f32, "96 rows of 512", restore_logits, call_softmax, ROWS *KEYS, NS, 0},
    {SLOT_layernorm_f32, "96 rows of 768", restore_nothing, call_layernorm, ROWS *DEPTH, NS, 0},
    {SLOT_activate_f32, "gelu", restore_values, call_activate, VALUES, NS, KERNEL_GELU},
    {SLOT_activate_f32, "gelu_tanh", restore_values, call_activate, VALUES, NS, KERNEL_GELU_TANH},
    {SLOT_activate_f32, "gelu_quick", restore_values, call_activate, VALUES, NS, KERNEL_GELU_QUICK},
    {SLOT_activate_f32, "relu", restore_values, call_activate, VALUES, NS, KERNEL_RELU},
    {SLOT_activate_f32, "silu", restore_values, call_activate, VALUES, NS, KERNEL_SILU},
    {SLOT_activate_f32, "tanh", restore_values, call_activate, VALUES, NS, KERNEL_TANH},
    {SLOT_activate_f32, "sigmoid", restore_values, call_activate, VALUES, NS, KERNEL_SIGMOID},
    {SLOT_activate_f32, "exp", restore_values, call_activate, VALUES, NS, KERNEL_EXP},
};

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
        printf("%-18s %-30s %-10s %9.3f %9.3f %-10s", slot_name(benchmark->slot), benchmark->label,
               tier_name((tier_id)t), rate(benchmark, timing.least), rate(benchmark, timing.median), benchmark->unit);
        if (standard > 0) printf(" %7.2f", standard / timing.least);
        printf("\n");
    }
    fflush(stdout);
}

static void fill_arrays(bench_arrays *arrays, const test_options *options)
{
    test_run run = {.random_state = options->seed};
    fill_matrix(&run, arrays->a, 1, ROWS * DEPTH, ROWS * DEPTH, DIST_BELL, 1.0f);
    fill_matrix(&run, arrays->b, 1, DEPTH * PANELS * PANEL, DEPTH * PANELS * PANEL, DIST_BELL, 0.05f);
    fill_matrix(&run, arrays->bias, 1, DEPTH, DEPTH, DIST_BELL, 1.0f);
    fill_matrix(&run, arrays->strips, 1, ROWS * TABLE_ROWS, ROWS * TABLE_ROWS, DIST_BELL, 1.0f);
}

int bench(const test_options *options)
{
    static bench_arrays arrays;
    static kernels tables[TIER_COUNT];
    const kernels *present[TIER_COUNT] = {NULL};
    size_t measured = 0, skipped = 0;
    fill_arrays(&arrays, options);
    for (int t = 0; t < TIER_COUNT; t++) {
        const char *missing = tier_missing((tier_id)t);
        if (missing) printf("skipped %s: %s\n", tier_name((tier_id)t), missing);
        if (missing) skipped++;
        const bool wanted = options->tier < 0 || options->tier == t || t == (int)scalar_tier();
        if (missing || !wanted) continue;
        tier_init((tier_id)t, &tables[t]);
        present[t] = &tables[t];
    }
    printf("%-18s %-30s %-10s %9s %9s %-10s times the speed of %s\n", "kernel", "shape", "tier", "best", "median", "",
           tier_name(scalar_tier()));
    for (size_t i = 0; i < sizeof benchmarks / sizeof *benchmarks; i++) {
        const char *slot = slot_name(benchmarks[i].slot);
        if (options->kernel && strncmp(options->kernel, slot, strlen(slot)) != 0) continue;
        measure(&benchmarks[i], present, &arrays);
        measured++;
    }
    printf("%zu measured, %zu tiers skipped\n", measured, skipped);
    return 0;
}
