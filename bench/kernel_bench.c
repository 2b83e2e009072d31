/* Measures single kernels of all tiers, and three of them against SLEEF. SPDX-License-Identifier: MIT */
#include "bench/kernel_bench.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/reference/sleef_math.h"
#include "bench/timer.h"
#include "check/kernels/activations.h"
#include "core/dispatch.h"
#include "core/model/pack.h"
#include "output/scope.h"

enum { DEFAULT_SAMPLES = 15 };
#define DEFAULT_SAMPLE_SECONDS 200e-6

/* ------------------------------------------------------------------------------------------------------------ SLEEF */

/* Finds SLEEF's function for a problem; returns false if it has none. */
static bool find_sleef_function(const kernel_problem *p, sleef_function *function)
{
    static const activation covered[SLEEF_FUNCTIONS] = {
        [SLEEF_EXP] = ACTIVATION_EXP, [SLEEF_GELU] = ACTIVATION_GELU, [SLEEF_TANH] = ACTIVATION_TANH};
    for (int f = 0; p->slot == SLOT_activate_f32 && f < SLEEF_FUNCTIONS; f++) {
        if (p->function != covered[f]) continue;
        *function = (sleef_function)f;
        return true;
    }
    return false;
}

static void activate_with_sleef(float *x, size_t count, activation function)
{
    sleef_function by = SLEEF_EXP;
    const kernel_problem p = {.slot = SLOT_activate_f32, .function = function};
    if (find_sleef_function(&p, &by)) sleef_run(by, x, count);
}

/* ----------------------------------------------------------------------------------------------------- the problem */

#define COLD_BYTES ((size_t)256 << 20)

/* A problem in memory; gemm with weights outside the caches has several copies of B, one for each call. */
typedef struct measured_problem {
    kernel_problem problem;
    problem_array *weights; /* NULL: only one copy */
    float *first_copy;
    size_t copies, copy_floats, call;
    size_t restored[PROBLEM_ARRAYS], restored_count;
} measured_problem;

static problem_array *find_weights(measured_problem *m, bool cold)
{
    for (size_t k = 0; cold && m->problem.slot == SLOT_gemm_f32 && k < PROBLEM_ARRAYS; k++)
        if (m->problem.arrays[k].name && strcmp(m->problem.arrays[k].name, "b") == 0) return &m->problem.arrays[k];
    return NULL;
}

/* Returns true if the array is restored before every call; it then has a second copy. */
static bool is_restored(const measured_problem *m, const problem_array *array)
{
    return array->kind != ARRAY_INPUT && problem_description(m->problem.slot)->restored;
}

/* Allocates an array. A vector lies as far from the next as in the engine, since streams a multiple of 4 KiB apart
 * differ in speed. */
static float *take_memory(arena *memory, const problem_array *array)
{
    const bool is_vector = array->blocks * array->rows == 1;
    return arena_take(memory, is_vector ? row_stride(array->words) : array->words, sizeof(float));
}

/* Carves the arrays; it runs once to measure and once to hand out (memory.h). */
static void carve(measured_problem *m, arena *memory)
{
    for (size_t k = 0; k < PROBLEM_ARRAYS; k++) {
        problem_array *array = &m->problem.arrays[k];
        if (!array->name) continue;
        array->initial = array->at = take_memory(memory, array);
        if (is_restored(m, array)) array->at = take_memory(memory, array);
    }
    if (!m->weights) return;
    m->copy_floats = m->weights->words;
    m->copies = COLD_BYTES / (m->copy_floats * sizeof(float)) + 1;
    m->first_copy = arena_take(memory, m->copies * m->copy_floats, sizeof(float));
}

static deberta_status open_problem(measured_problem *m, const problem_line *line, bool cold, arena *memory,
                                   deberta_error *err)
{
    *m = (measured_problem){.problem = line->problem};
    problem_lay_out(&m->problem);
    m->weights = find_weights(m, cold);
    carve(m, memory);
    DEBERTA_TRY(arena_allocate(memory, line->text, 0, err));
    carve(m, memory);
    problem_fill(&m->problem);
    for (size_t k = 0; k < PROBLEM_ARRAYS; k++)
        if (m->problem.arrays[k].at != m->problem.arrays[k].initial) m->restored[m->restored_count++] = k;
    for (size_t copy = 0; copy < m->copies; copy++)
        memcpy(m->first_copy + copy * m->copy_floats, m->weights->initial, m->copy_floats * sizeof(float));
    return DEBERTA_OK;
}

static void restore_rows(const problem_array *array)
{
    for (size_t i = 0; i < array->rows; i++)
        memcpy(array->at + i * array->ld, array->initial + i * array->ld, array->width * sizeof(float));
}

static float *next_copy(measured_problem *m) { return m->first_copy + m->call % m->copies * m->copy_floats; }

static void call(const kernels *table, measured_problem *m)
{
    kernel_problem *p = &m->problem;
    if (m->weights) {
        m->weights->at = next_copy(m);
        m->call++;
        p->next = next_copy(m);
    }
    for (size_t k = 0; k < m->restored_count; k++) restore_rows(&p->arrays[m->restored[k]]);
    problem_call(table, p);
}

static bool keep_worst(void *context, const kernel_problem *p, size_t array, size_t index, double found,
                       const exact_value *want)
{
    double *worst = context;
    (void)p, (void)array, (void)index;
    const double last = want->value != 0 ? ldexp(1, ilogb(want->value) + 1 - FLT_MANT_DIG) : 0;
    *worst = fmax(*worst, fabs(found - want->value) / fmax(last, (double)FLT_TRUE_MIN));
    return true;
}

/* Returns the largest error of one call in units in the last place of the exact value; 0: unknown. */
static double worst_ulp(const kernels *table, measured_problem *m)
{
    sleef_function function = SLEEF_EXP;
    double worst = 0;
    if (!find_sleef_function(&m->problem, &function)) return 0;
    call(table, m);
    problem_exact(&m->problem, &(exact_judge){keep_worst, &worst});
    return worst;
}

/* -------------------------------------------------------------------------------------------------------- measuring */

/* The tables of the tiers in order, followed by one whose activations are SLEEF's. */
typedef struct competitors {
    kernels tables[DEBERTA_ISA_COUNT + 1];
    size_t tiers;
} competitors;

static size_t competitors_for(const competitors *all, const kernel_problem *problem)
{
    sleef_function function;
    return all->tiers + (sleef_is_present() && find_sleef_function(problem, &function));
}

static double seconds_of(const kernels *table, measured_problem *m, size_t calls)
{
    double start = timer_now();
    for (size_t i = 0; i < calls; i++) call(table, m);
    return (timer_now() - start) / (double)calls;
}

/* Returns the calls that fill a sample; the attempts warm up caches and vector units. */
static size_t calibrate(const kernels *table, measured_problem *m, double sample_seconds)
{
    for (size_t calls = 1;; calls *= 2) {
        double seconds = seconds_of(table, m, calls) * (double)calls;
        if (seconds >= sample_seconds / 2) return (size_t)ceil((double)calls * sample_seconds / seconds);
    }
}

/* Returns the peak of one thread. */
static double peak_of(const machine_roofs *roofs, deberta_isa isa, const kernel_description *kernel)
{
    if (!kernel->byte_products) return machine_peak_gflops(roofs, isa, 1);
    return machine_peak_of(roofs, isa, 1, DEBERTA_PRECISION_INT8) / kernel->byte_products;
}

static void kernel_bench_measure(kernel_measurement *found, measured_problem *problem, const kernel_bench_options *o,
                                 const competitors *all, double *samples, size_t count)
{
    double seconds = o->min_seconds > 0 ? o->min_seconds : DEFAULT_SAMPLE_SECONDS;
    const kernels *tables = all->tables;
    const kernel_slot slot = problem->problem.slot;
    const size_t running = competitors_for(all, &problem->problem);
    size_t calls[DEBERTA_ISA_COUNT + 1];
    for (size_t t = 0; t < running; t++) calls[t] = calibrate(&tables[t], problem, seconds);
    for (size_t s = 0; s < count; s++) {
        for (size_t t = 0; t < running; t++) samples[t * count + s] = seconds_of(&tables[t], problem, calls[t]);
    }
    for (size_t t = 0; t < running; t++) {
        kernel_measurement *m = &found[t];
        m->isa = t < all->tiers ? o->isas[t] : DEBERTA_ISA_AUTO;
        m->worst_ulp = worst_ulp(&tables[t], problem);
        m->implementation = slot_isa(slot, &tables[t]);
        m->work = problem_work_of(&problem->problem);
        statistics_summarize(&m->time, samples + t * count, count);
        m->gflops = 1e-9 * m->work.flop / m->time.median;
        const double peak = o->roofs ? peak_of(o->roofs, m->isa, problem_description(slot)) : 0;
        m->peak_fraction = peak > 0 ? m->gflops / peak : 0;
        m->speed_up = found[0].time.median / m->time.median;
    }
}

static deberta_status measure_problem(kernel_measurement *found, const problem_line *line,
                                      const kernel_bench_options *o, const competitors *all, deberta_error *err)
{
    size_t count = o->samples ? o->samples : DEFAULT_SAMPLES;
    double *samples = memory_take((o->isa_count + 1) * count, sizeof *samples);
    arena memory = {0};
    measured_problem problem;
    deberta_status status = open_problem(&problem, line, o->cold, &memory, err);
    if (status == DEBERTA_OK) kernel_bench_measure(found, &problem, o, all, samples, count);
    arena_release(&memory);
    free(samples);
    return status;
}

static deberta_status run_all(kernel_measurements *found, const problem_lines *problems, const kernel_bench_options *o,
                              deberta_error *err)
{
    competitors all = {.tiers = o->isa_count};
    for (size_t t = 0; t < o->isa_count; t++) {
        DEBERTA_TRY(kernels_select_with_tiles(&all.tables[t], o->isas[t], err));
    }
    kernels *sleef = &all.tables[all.tiers];
    *sleef = all.tables[0];
    sleef->activate_f32 = activate_with_sleef;
    sleef->activate_f32_isa = "SLEEF";
    for (size_t i = 0; i < problems->count; i++) {
        if (o->progress && !o->progress(o->progress_context, i, problems->count)) break;
        kernel_measurement *at = &found->measurements[found->count];
        const size_t running = competitors_for(&all, &problems->lines[i].problem);
        for (size_t t = 0; t < running; t++) at[t].problem = i;
        DEBERTA_TRY(measure_problem(at, &problems->lines[i], o, &all, err));
        found->count += running;
    }
    return DEBERTA_OK;
}

deberta_status kernel_bench_run(kernel_measurements *found, const problem_lines *problems,
                                const kernel_bench_options *options, deberta_error *err)
{
    *found = (kernel_measurements){0};
    if (options->isa_count == 0 || options->isa_count > DEBERTA_ISA_COUNT)
        DEBERTA_FAIL(err, DEBERTA_E_ARGUMENT, "%zu instruction sets", options->isa_count);
    found->measurements =
        scope_take(&found->memory, problems->count * (options->isa_count + 1), sizeof *found->measurements);
    return run_all(found, problems, options, err);
}

/* --------------------------------------------------------------------------------------------------------- describing */

void kernel_bench_describe(result *r, const kernel_measurements *found, const problem_lines *problems)
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
        cell_text(table, "%s", problems->lines[m->problem].text);
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
