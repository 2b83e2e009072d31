/* Measuring single kernels, tier beside tier, and three of them beside SLEEF. SPDX-License-Identifier: MIT */
#include "bench/kernel_bench.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>

#include "bench/kernel_calls.h"
#include "bench/timer.h"
#include "core/base/arena.h"
#include "core/dispatch.h"
#include "analysis/reference/sleef_math.h"

enum { DEFAULT_SAMPLES = 15 };
#define DEFAULT_SAMPLE_SECONDS 200e-6

/* ------------------------------------------------------------------------------------------------------------ SLEEF */

/* False for problems that SLEEF has no function for. */
static bool find_sleef_function(const kernel_problem *p, sleef_function *function)
{
    static const kernel_activation covered[SLEEF_FUNCTIONS] = {
        [SLEEF_EXP] = KERNEL_EXP, [SLEEF_GELU] = KERNEL_GELU, [SLEEF_TANH] = KERNEL_TANH};
    for (int f = 0; p->operation == KERNEL_ACTIVATE && f < SLEEF_FUNCTIONS; f++) {
        if ((kernel_activation)p->function != covered[f]) continue;
        *function = (sleef_function)f;
        return true;
    }
    return false;
}

static void activate_with_sleef(float *x, size_t count, kernel_activation function)
{
    sleef_function by = SLEEF_EXP;
    const kernel_problem p = {.operation = KERNEL_ACTIVATE, .function = (int)function};
    if (find_sleef_function(&p, &by)) sleef_run(by, x, count);
}

/* The largest error of one call in units of the last place of the exact value; 0: not known. */
static double worst_ulp(const kernels *table, kernel_data *d)
{
    sleef_function function = SLEEF_EXP;
    double worst = 0;
    if (!find_sleef_function(d->problem, &function)) return 0;
    kernel_call(table, d);
    for (size_t i = 0; i < d->problem->rows; i++)
        for (size_t j = 0; j < d->problem->columns; j++) {
            const double exact = sleef_expected(function, (double)d->a[i * d->lda + j]);
            const double last = exact != 0 ? ldexp(1, ilogb(exact) + 1 - FLT_MANT_DIG) : 0;
            const double unit = fmax(last, (double)FLT_TRUE_MIN);
            worst = fmax(worst, fabs((double)d->c[i * d->ldc + j] - exact) / unit);
        }
    return worst;
}

/* -------------------------------------------------------------------------------------------------------- measuring */

/* Tables of the tiers in their order, and after them one whose activations are SLEEF's. */
typedef struct competitors {
    kernels tables[DEBERTA_ISA_COUNT + 1];
    size_t tiers;
} competitors;

static size_t competitors_for(const competitors *all, const kernel_problem *problem)
{
    sleef_function function;
    return all->tiers + (sleef_is_present() && find_sleef_function(problem, &function));
}

static double seconds_of(const kernels *table, kernel_data *d, size_t calls)
{
    double start = timer_now();
    for (size_t i = 0; i < calls; i++) kernel_call(table, d);
    return (timer_now() - start) / (double)calls;
}

/* Calls that fill a sample; the attempts warm caches and vector units up. */
static size_t calibrate(const kernels *table, kernel_data *d, double sample_seconds)
{
    for (size_t calls = 1;; calls *= 2) {
        double seconds = seconds_of(table, d, calls) * (double)calls;
        if (seconds >= sample_seconds / 2) return (size_t)ceil((double)calls * sample_seconds / seconds);
    }
}

/* Which peak a kernel is held against; quantising computes in float32. */
static deberta_precision precision_of_products(kernel_operation operation)
{
    switch (operation) {
    case KERNEL_GEMM_U8: return DEBERTA_PRECISION_INT8;
    case KERNEL_GEMM_U8X2: return DEBERTA_PRECISION_INT16;
    default: return DEBERTA_PRECISION_FLOAT32;
    }
}

static deberta_status measure(kernel_measurement *found, kernel_data *d, const kernel_bench_options *o,
                              const competitors *all, double *samples, size_t count)
{
    double seconds = o->min_seconds > 0 ? o->min_seconds : DEFAULT_SAMPLE_SECONDS;
    const kernels *tables = all->tables;
    const size_t running = competitors_for(all, d->problem);
    size_t calls[DEBERTA_ISA_COUNT + 1];
    for (size_t t = 0; t < running; t++) calls[t] = calibrate(&tables[t], d, seconds);
    for (size_t s = 0; s < count; s++) {
        for (size_t t = 0; t < running; t++) samples[t * count + s] = seconds_of(&tables[t], d, calls[t]);
    }
    for (size_t t = 0; t < running; t++) {
        kernel_measurement *m = &found[t];
        m->isa = t < all->tiers ? o->isas[t] : DEBERTA_ISA_AUTO;
        m->worst_ulp = worst_ulp(&tables[t], d);
        m->implementation = kernel_implementation(&tables[t], d->problem->operation);
        m->work = kernel_work_of(d->problem);
        statistics_summarize(&m->time, samples + t * count, count);
        m->gflops = m->work.gflop / m->time.median;
        const double peak =
            o->roofs ? machine_peak_of(o->roofs, m->isa, 1, precision_of_products(d->problem->operation)) : 0;
        m->peak_fraction = peak > 0 ? m->gflops / peak : 0;
        m->speed_up = found[0].time.median / m->time.median;
    }
    return DEBERTA_OK;
}

static deberta_status measure_problem(kernel_measurement *found, const kernel_problem *problem,
                                      const kernel_bench_options *o, const competitors *all, deberta_error *err)
{
    size_t count = o->samples ? o->samples : DEFAULT_SAMPLES;
    double *samples = calloc((o->isa_count + 1) * count, sizeof *samples);
    if (!samples) DEBERTA_FAIL(err, DEBERTA_E_MEMORY, "out of memory for %zu samples", count);
    arena memory = {0};
    kernel_data data = {.problem = problem};
    kernel_data_carve(&data, &memory, o->cold);
    deberta_status status = arena_allocate(&memory, problem->text, 0, err);
    if (status == DEBERTA_OK) {
        kernel_data_carve(&data, &memory, o->cold);
        kernel_data_fill(&data);
        status = measure(found, &data, o, all, samples, count);
    }
    arena_release(&memory);
    free(samples);
    return status;
}

static deberta_status run_all(kernel_measurements *found, const kernel_problems *problems,
                              const kernel_bench_options *o, deberta_error *err)
{
    competitors all = {.tiers = o->isa_count};
    for (size_t t = 0; t < o->isa_count; t++) DEBERTA_TRY(kernels_select(&all.tables[t], o->isas[t], err));
    kernels *sleef = &all.tables[all.tiers];
    *sleef = all.tables[0];
    sleef->activate_f32 = activate_with_sleef;
    sleef->activate_f32_isa = "SLEEF";
    for (size_t i = 0; i < problems->count; i++) {
        if (o->progress && !o->progress(o->progress_context, i, problems->count)) break;
        kernel_measurement *at = &found->measurements[found->count];
        const size_t running = competitors_for(&all, &problems->problems[i]);
        for (size_t t = 0; t < running; t++) at[t].problem = i;
        DEBERTA_TRY(measure_problem(at, &problems->problems[i], o, &all, err));
        found->count += running;
    }
    return DEBERTA_OK;
}

deberta_status kernel_bench_run(kernel_measurements *found, const kernel_problems *problems,
                                const kernel_bench_options *options, deberta_error *err)
{
    *found = (kernel_measurements){0};
    if (options->isa_count == 0 || options->isa_count > DEBERTA_ISA_COUNT)
        DEBERTA_FAIL(err, DEBERTA_E_ARGUMENT, "%zu instruction sets", options->isa_count);
    found->measurements = calloc(problems->count * (options->isa_count + 1) + 1, sizeof *found->measurements);
    if (!found->measurements) DEBERTA_FAIL(err, DEBERTA_E_MEMORY, "out of memory for %zu problems", problems->count);
    deberta_status status = run_all(found, problems, options, err);
    if (status != DEBERTA_OK) kernel_measurements_free(found);
    return status;
}

void kernel_measurements_free(kernel_measurements *found)
{
    free(found->measurements);
    *found = (kernel_measurements){0};
}

/* --------------------------------------------------------------------------------------------------------- describing */

void kernel_bench_describe(result *r, const kernel_measurements *found, const kernel_problems *problems)
{
    static const result_column columns[] = {{"problem", NULL, COLUMN_TEXT, NULL, 0},
                                            {"isa", NULL, COLUMN_TEXT, NULL, 0},
                                            {"kernel", NULL, COLUMN_TEXT, NULL, 0},
                                            {"median_us", "median us", COLUMN_REAL, "%.3f", CSV_SAYS_TITLE},
                                            {"mad_us", "MAD us", COLUMN_REAL, "%.3f", CSV_SAYS_TITLE},
                                            {"min_us", "min us", COLUMN_REAL, "%.3f", CSV_SAYS_TITLE},
                                            {"gflops", "GFLOP/s", COLUMN_REAL, "%.1f", CSV_SAYS_TITLE},
                                            {"percent_of_peak", "% of peak", COLUMN_REAL, "%.1f", CSV_SAYS_TITLE},
                                            {"gbs", "GB/s", COLUMN_REAL, "%.1f", CSV_SAYS_TITLE},
                                            {"ns_an_element", "ns/element", COLUMN_REAL, "%.3f", CSV_SAYS_TITLE},
                                            {"speed_up", "speed-up", COLUMN_REAL, "%.2f", CSV_SAYS_TITLE},
                                            {"ulp", "ULP", COLUMN_REAL, "%.2f", CSV_SAYS_TITLE},
                                            {.name = NULL}};
    result_table *table = result_add_table(r, "measurements", NULL, columns);
    for (size_t i = 0; i < found->count; i++) {
        const kernel_measurement *m = &found->measurements[i];
        cell_text(table, "%s", problems->problems[m->problem].text);
        cell_text(table, "%s", m->isa == DEBERTA_ISA_AUTO ? "-" : deberta_isa_name(m->isa));
        cell_text(table, "%s", m->implementation);
        cell_real(table, 1e6 * m->time.median);
        cell_real(table, 1e6 * m->time.mad);
        cell_real(table, 1e6 * m->time.minimum);
        cell_positive(table, m->gflops);
        cell_positive(table, 100 * m->peak_fraction);
        cell_real(table, 1e-9 * m->work.bytes / m->time.median);
        cell_real(table, 1e9 * m->time.median / m->work.elements);
        cell_positive(table, m->speed_up);
        cell_positive(table, m->worst_ulp);
    }
}
