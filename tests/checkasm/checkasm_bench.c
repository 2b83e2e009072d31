/* checkasm --bench: how long each kernel takes on shapes of a base model, tier by tier.
 *
 * The tiers take turns, sample by sample, so that a machine that slows down slows all of them. A sample repeats the
 * call until it is long enough for the clock; what restoring the input of an in-place kernel costs is measured alone
 * and subtracted.
 *
 * SPDX-License-Identifier: MIT */
#include "check/kernels/activations.h"
#include "tests/checkasm/checkasm.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { SAMPLES = 15, MOST_FLOATS = 1 << 20, FLOATS_OF_A_LINE = 16 };

/* ------------------------------------------------------------------------------------------------------- the problems */

/* Every slot is measured at the size of its description; these are measured as well. */
static const kernel_problem more_problems[] = {
    {.slot = SLOT_gemm_f32, .rows = 96, .depth = 768, .columns = 192, .options = WITH_BIAS | WITH_GELU | FETCH_NEXT},
    {.slot = SLOT_gemm_f32, .rows = 1, .depth = 768, .columns = 192, .options = WITH_BIAS},
    {.slot = SLOT_position_bias_f32, .rows = 96, .map = MAP_LINEAR},
    {.slot = SLOT_position_bias_f32, .rows = 96, .map = MAP_V3, .options = WITHOUT_PROMISE},
    {.slot = SLOT_sum_rows_f32, .rows = 96, .columns = 768, .options = WITH_PRODUCTS},
    {.slot = SLOT_fold_runs_f32, .rows = 96, .columns = 512, .map = MAP_LINEAR},
    {.slot = SLOT_fold_runs_f32, .rows = 96, .columns = 512, .map = MAP_V3, .options = WITHOUT_PROMISE},
    {.slot = SLOT_adam_f32, .rows = 1, .columns = 3072, .options = WITH_COUPLING},
};

typedef struct measured_problem {
    kernel_problem problem;
    float *memory;
} measured_problem;

/* Arrays one after the other, each at the beginning of a cache line. */
static void open_problem(measured_problem *m, const kernel_problem *like)
{
    m->problem = *like;
    m->problem.plain = true;
    m->problem.values = VALUES_UNIFORM;
    if (problem_description(like->slot)->has_parts) m->problem.parts = 1;
    problem_lay_out(&m->problem);
    m->memory = aligned_alloc(64, 2 * MOST_FLOATS * sizeof(float));
    if (!m->memory) exit(4);
    memset(m->memory, 0, 2 * MOST_FLOATS * sizeof(float));
    float *place = m->memory;
    for (size_t k = 0; k < PROBLEM_ARRAYS; k++) {
        problem_array *array = &m->problem.arrays[k];
        if (!array->name) continue;
        array->initial = array->at = place;
        place += (array->words + FLOATS_OF_A_LINE - 1) / FLOATS_OF_A_LINE * FLOATS_OF_A_LINE;
        if (!problem_description(like->slot)->restored || array->kind == ARRAY_INPUT) continue;
        array->at = place;
        place += (array->words + FLOATS_OF_A_LINE - 1) / FLOATS_OF_A_LINE * FLOATS_OF_A_LINE;
    }
    problem_fill(&m->problem);
}

static void restore(const kernel_problem *p)
{
    for (size_t k = 0; k < PROBLEM_ARRAYS; k++)
        if (p->arrays[k].at != p->arrays[k].initial)
            memcpy(p->arrays[k].at, p->arrays[k].initial, p->arrays[k].words * sizeof(float));
}

/* ----------------------------------------------------------------------------------------------------------- timing */

/* CPU time of this thread: a neighbour that takes the processor does not count. */
static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Seconds of one call; table NULL: of the restoring alone. */
static double sample(const kernel_problem *p, const kernels *table, size_t repetitions)
{
    const double start = now();
    for (size_t i = 0; i < repetitions; i++) {
        restore(p);
        if (table) problem_call(table, p);
        /* The result counts as used. */
        __asm__ volatile("" ::"r"(p) : "memory");
    }
    return (now() - start) / (double)repetitions;
}

/* Repetitions that take at least 4 ms, found by doubling, which also warms up caches and vector units. */
static size_t calibrate(const kernel_problem *p, const kernels *table)
{
    size_t repetitions = 1;
    while (sample(p, table, repetitions) * (double)repetitions < 4e-3) repetitions *= 2;
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

/* GFLOP/s of a product, ns an element of anything else. */
static double rate(const kernel_problem *p, double seconds)
{
    const problem_work work = problem_work_of(p);
    return work.flop > 0 ? 1e-9 * work.flop / seconds : 1e9 * seconds / work.elements;
}

/* tables[t] is NULL for a tier that does not run. */
static void measure_problem(const kernel_problem *like, const kernels *const tables[TIER_COUNT])
{
    enum { RESTORING = TIER_COUNT };
    static double samples[TIER_COUNT + 1][SAMPLES];
    size_t repetitions[TIER_COUNT + 1];
    char label[100];
    measured_problem m;
    open_problem(&m, like);
    const kernel_problem *p = &m.problem;
    const char *unit = problem_work_of(p).flop > 0 ? "GFLOP/s" : "ns/element";
    problem_text(p, label, sizeof label);
    for (int t = 0; t <= TIER_COUNT; t++)
        if (t == RESTORING || tables[t]) repetitions[t] = calibrate(p, t == RESTORING ? NULL : tables[t]);
    for (int s = 0; s < SAMPLES; s++)
        for (int t = 0; t <= TIER_COUNT; t++)
            if (t == RESTORING || tables[t])
                samples[t][s] = sample(p, t == RESTORING ? NULL : tables[t], repetitions[t]);

    const double restoring = summarize(samples[RESTORING], 0).least;
    double standard = 0;
    for (int t = 0; t < TIER_COUNT; t++) {
        if (!tables[t]) continue;
        const bench_timing timing = summarize(samples[t], restoring);
        if (t == (int)scalar_tier()) standard = timing.least;
        printf("%-22s %-30s %-18s %9.3f %9.3f %-10s", slot_name(p->slot), label, tier_name((tier_id)t),
               rate(p, timing.least), rate(p, timing.median), unit);
        if (standard > 0) printf(" %7.2f", standard / timing.least);
        printf("\n");
    }
    free(m.memory);
    fflush(stdout);
}

/* A slot at its own size, with every function that it has. */
static size_t measure_slot(kernel_slot slot, const kernels *const tables[TIER_COUNT])
{
    const kernel_description *d = problem_description(slot);
    kernel_problem p = {
        .slot = slot, .rows = d->measured.rows, .depth = d->measured.depth, .columns = d->measured.columns};
    p.options = d->optional & (WITH_BIAS | FETCH_NEXT);
    size_t measured = 0;
    const int first = d->has_function ? ACTIVATION_GELU : 0, last = d->has_function ? ACTIVATION_EXP : 0;
    for (int function = first; function <= last; function++, measured++) {
        p.function = (activation)function;
        measure_problem(&p, tables);
    }
    for (size_t k = 0; k < sizeof more_problems / sizeof *more_problems; k++) {
        if (more_problems[k].slot != slot) continue;
        measure_problem(&more_problems[k], tables);
        measured++;
    }
    return measured;
}

int bench(const test_options *options)
{
    static kernels tables[TIER_COUNT];
    const kernels *present[TIER_COUNT] = {NULL};
    size_t measured = 0, skipped = 0;
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
    for (int slot = 0; slot < KERNEL_SLOTS; slot++) {
        const char *name = slot_name((kernel_slot)slot);
        if (options->kernel && strncmp(options->kernel, name, strlen(name)) != 0) continue;
        measured += measure_slot((kernel_slot)slot, present);
    }
    printf("%zu measured, %zu tiers skipped\n", measured, skipped);
    return 0;
}
