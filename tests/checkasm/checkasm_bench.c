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

enum { SAMPLES = 15, ROWS = 96, DEPTH = 768, PANELS = 12, KEYS = 512, TABLE_ROWS = 512, VALUES = 3072, OUTPUTS = 384 };

/* Everything that the kernels work on; large, so that it lives outside the stack. */
typedef struct bench_arrays {
    float a[ROWS * DEPTH], b[DEPTH * PANELS * PANEL], c[ROWS * DEPTH], bias[DEPTH], strips[ROWS * TABLE_ROWS];
    float normal[ROWS * KEYS];
    float state[3][ROWS], moments[2][VALUES];
    int32_t row_of[ROWS + PANEL], position_of[ROWS + PANEL], place_of[ROWS + KEYS];
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

static const size_t bounds[] = {0, ROWS};

static void call_gemm_tn(const kernels *table, bench_arrays *w)
{
    const gemm_tn_task task = {.columns = OUTPUTS,
                               .panels = PANELS,
                               .a = w->a,
                               .lda = DEPTH,
                               .b = w->b,
                               .ldb = PANELS * PANEL,
                               .b_panel_stride = PANEL,
                               .c = w->c,
                               .ldc = PANELS * PANEL,
                               .c_panel_stride = PANEL,
                               .bounds = bounds,
                               .parts = 1};
    table->gemm_tn_f32(&task);
}

static void call_sum_rows(const kernels *table, bench_arrays *w)
{
    const sum_rows_task task = {.n = DEPTH,
                                .a = w->a,
                                .lda = DEPTH,
                                .b = w->variant ? w->b : NULL,
                                .ldb = DEPTH,
                                .bounds = bounds,
                                .parts = 1,
                                .y = w->c};
    table->sum_rows_f32(&task);
}

static void call_dot_rows(const kernels *table, bench_arrays *w)
{
    table->dot_rows_f32(w->c, w->a, DEPTH, w->b, DEPTH, ROWS, DEPTH);
}

static void call_layernorm_backward(const kernels *table, bench_arrays *w)
{
    const layernorm_backward_task task = {.rows = ROWS,
                                          .n = KEYS,
                                          .dx = w->c,
                                          .normal = w->normal,
                                          .x = w->a,
                                          .dy = w->b,
                                          .gamma = w->bias,
                                          .lddx = KEYS,
                                          .ld_normal = KEYS,
                                          .ldx = KEYS,
                                          .lddy = KEYS,
                                          .eps = 1e-7f};
    table->layernorm_backward_f32(&task);
}

static void call_activate_backward(const kernels *table, bench_arrays *w)
{
    table->activate_backward_f32(w->c, w->b, VALUES, (kernel_activation)w->variant);
}

static void restore_gradients(bench_arrays *w)
{
    restore_logits(w);
    memcpy(w->normal, w->b, ROWS * KEYS * sizeof(float));
}

static void call_softmax_backward(const kernels *table, bench_arrays *w)
{
    for (size_t i = 0; i < ROWS; i++) w->state[0][i] = 4, w->state[1][i] = 0.01f, w->state[2][i] = 0;
    const softmax_backward_task task = {.rows = ROWS,
                                        .keys = KEYS,
                                        .s = w->c,
                                        .dp = w->normal,
                                        .lds = KEYS,
                                        .lddp = KEYS,
                                        .maximum = w->state[0],
                                        .inverse_total = w->state[1],
                                        .delta = w->state[2]};
    table->softmax_backward_f32(&task);
}

/* Variants as those of the position bias. The strip goes on growing, far from overflow. */
static void restore_places(bench_arrays *w)
{
    for (int x = 0; x < ROWS + KEYS; x++) w->place_of[x] = w->variant == 0 && x < TABLE_ROWS ? x : x / 2;
}

static void call_fold_runs(const kernels *table, bench_arrays *w)
{
    const fold_runs_task task = {.rows = ROWS,
                                 .columns = KEYS,
                                 .s = w->a,
                                 .lds = KEYS,
                                 .s_panel_stride = PANEL,
                                 .place_of = w->place_of + ROWS - 1,
                                 .unit_steps = w->variant != 2,
                                 .strip = w->c,
                                 .ld_strip = DEPTH};
    table->fold_runs_f32(&task);
}

static void call_adam(const kernels *table, bench_arrays *w)
{
    const adam_task task = {.n = VALUES,
                            .w = w->c,
                            .m = w->moments[0],
                            .v = w->moments[1],
                            .g = w->a,
                            .scale = 1,
                            .b1 = 0.9f,
                            .c1 = 0.1f,
                            .b2 = 0.999f,
                            .c2 = 0.001f,
                            .eps = 1e-6f,
                            .rate = -1e-6f,
                            .inverse_root = 1,
                            .keep = 1,
                            .coupled = w->variant == 1};
    table->adam_f32(&task);
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
    {SLOT_gemm_tn_f32, "384 x 96 x 192", restore_nothing, call_gemm_tn, 2.0 * OUTPUTS *ROWS *PANELS *PANEL, GFLOPS, 0},
    {SLOT_sum_rows_f32, "96 rows of 768", restore_nothing, call_sum_rows, ROWS *DEPTH, NS, 0},
    {SLOT_sum_rows_f32, "96 rows of 768, products", restore_nothing, call_sum_rows, ROWS *DEPTH, NS, 1},
    {SLOT_dot_rows_f32, "96 rows of 768", restore_nothing, call_dot_rows, ROWS *DEPTH, NS, 0},
    {SLOT_layernorm_backward_f32, "96 rows of 512", restore_nothing, call_layernorm_backward, ROWS *KEYS, NS, 0},
    {SLOT_activate_backward_f32, "gelu", restore_values, call_activate_backward, VALUES, NS, KERNEL_GELU},
    {SLOT_activate_backward_f32, "tanh", restore_values, call_activate_backward, VALUES, NS, KERNEL_TANH},
    {SLOT_softmax_backward_f32, "96 rows of 512", restore_gradients, call_softmax_backward, ROWS *KEYS, NS, 0},
    {SLOT_fold_runs_f32, "96 rows of 512, linear", restore_places, call_fold_runs, ROWS *KEYS, NS, 0},
    {SLOT_fold_runs_f32, "96 rows of 512, unit steps", restore_places, call_fold_runs, ROWS *KEYS, NS, 1},
    {SLOT_fold_runs_f32, "96 rows of 512, any map", restore_places, call_fold_runs, ROWS *KEYS, NS, 2},
    {SLOT_adam_f32, "3072 weights", restore_nothing, call_adam, VALUES, NS, 0},
    {SLOT_adam_f32, "3072 weights, coupled", restore_nothing, call_adam, VALUES, NS, 1},
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
        printf("%-22s %-30s %-10s %9.3f %9.3f %-10s", slot_name(benchmark->slot), benchmark->label,
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

/* Names a kernel that nothing here measures. */
static bool all_measured(void)
{
    bool measured[SLOT_COUNT] = {false}, all = true;
    for (size_t i = 0; i < sizeof benchmarks / sizeof *benchmarks; i++) measured[benchmarks[i].slot] = true;
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
    printf("%-22s %-30s %-10s %9s %9s %-10s times the speed of %s\n", "kernel", "shape", "tier", "best", "median", "",
           tier_name(scalar_tier()));
    for (size_t i = 0; i < sizeof benchmarks / sizeof *benchmarks; i++) {
        const char *slot = slot_name(benchmarks[i].slot);
        if (options->kernel && strncmp(options->kernel, slot, strlen(slot)) != 0) continue;
        measure(&benchmarks[i], present, &arrays);
        measured++;
    }
    printf("%zu measured, %zu tiers skipped\n", measured, skipped);
    return all_measured() ? 0 : 1;
}
