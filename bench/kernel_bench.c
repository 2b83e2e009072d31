/* Measuring single kernels, tier beside tier, and three of them beside SLEEF. SPDX-License-Identifier: MIT */
#include "bench/kernel_bench.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "bench/timer.h"
#include "core/base/arena.h"
#include "core/base/random.h"
#include "core/dispatch.h"
#include "core/model/pack.h"
#include "core/model/positions.h"
#include "reference/sleef_math.h"

enum { DEFAULT_SAMPLES = 15 };
#define DEFAULT_SAMPLE_SECONDS 200e-6
#define COLD_BYTES             ((size_t)256 << 20)

/* v3's table: what position_bias is measured with. */
static const position_rule rule_of_v3 = {.span = 256, .buckets = 256, .max_distance = 512, .clamp_distance = true};
enum { V3_ROWS = 512 };

/* The data of one problem. What a kernel writes in place is refilled where it would else run away (activate, softmax).
 */
typedef struct kernel_data {
    const kernel_problem *problem;
    float *a, *b, *c, *row, *second_row, *state;
    int32_t *rows, *positions;
    size_t lda, ldc, b_floats, copies, call;
} kernel_data;

static size_t panels_of(const kernel_problem *p) { return (p->columns + PANEL - 1) / PANEL; }

static void carve(arena *memory, kernel_data *d, bool cold)
{
    const kernel_problem *p = d->problem;
    size_t panels = panels_of(p), rows_in_panels = (p->rows + PANEL - 1) / PANEL;
    d->lda = row_stride(p->operation == KERNEL_GEMM || p->operation == KERNEL_PACK ? p->depth : p->columns);
    d->ldc = row_stride(panels * PANEL);
    if (p->operation == KERNEL_POSITION_BIAS) d->lda = V3_ROWS + PANEL;
    d->b_floats = p->depth * panels * PANEL;
    if (p->operation == KERNEL_PACK) d->b_floats = rows_in_panels * PANEL * p->depth;
    if (p->operation == KERNEL_POSITION_BIAS) d->b_floats = V3_ROWS * PANEL;
    d->copies = 1;
    if (cold && p->operation == KERNEL_GEMM) d->copies = COLD_BYTES / (d->b_floats * sizeof(float)) + 1;
    d->a = arena_take(memory, p->rows * d->lda, sizeof(float));
    d->b = arena_take(memory, d->copies * d->b_floats, sizeof(float));
    d->c = arena_take(memory, p->rows * (d->ldc > PANEL ? d->ldc : PANEL), sizeof(float));
    d->row = arena_take(memory, d->ldc, sizeof(float));
    d->second_row = arena_take(memory, d->ldc, sizeof(float));
    d->state = arena_take(memory, 3 * p->rows, sizeof(float));
    d->rows = arena_take(memory, p->rows + 2 * PANEL, sizeof(int32_t));
    d->positions = arena_take(memory, p->rows + 2 * PANEL, sizeof(int32_t));
}

/* Numbers in [-1, 1): no subnormals, no runs of equal values. */
static void fill(float *x, size_t count)
{
    uint64_t state = 12345;
    for (size_t i = 0; i < count; i++) x[i] = (float)(2 * random_fraction(&state) - 1);
}

static void fill_data(kernel_data *d)
{
    const kernel_problem *p = d->problem;
    fill(d->a, p->rows * d->lda);
    fill(d->b, d->copies * d->b_floats);
    fill(d->row, d->ldc);
    fill(d->second_row, d->ldc);
    for (ptrdiff_t i = 0; i < (ptrdiff_t)p->rows + 2 * PANEL; i++) { /* index PANEL is query 0, lane 0 */
        d->rows[i] = (int32_t)position_row(&rule_of_v3, p->distance + i - PANEL);
        d->positions[(ptrdiff_t)p->rows + 2 * PANEL - 1 - i] = V3_ROWS - 1 - d->rows[i];
    }
}

/* --------------------------------------------------------------------------------------------------------- one call */

static void call_gemm(const kernels *table, kernel_data *d)
{
    const kernel_problem *p = d->problem;
    size_t copy = d->call++ % d->copies;
    gemm_task task = {
        .rows = p->rows,
        .depth = p->depth,
        .panels = panels_of(p),
        .a = d->a,
        .lda = d->lda,
        .b = d->b + copy * d->b_floats,
        .b_panel_stride = p->depth * PANEL,
        .c = d->c,
        .ldc = d->ldc,
        .c_panel_stride = PANEL,
        .bias = p->bias ? d->row : NULL,
        .gelu = p->gelu,
        .residual = p->residual ? d->c : NULL,
        .ld_residual = d->ldc,
        .residual_panel_stride = PANEL,
        .next = d->b + (copy + 1) % d->copies * d->b_floats,
    };
    table->gemm_f32(&task);
}

static void call_position_bias(const kernels *table, kernel_data *d)
{
    position_bias_task task = {
        .rows = d->problem->rows,
        .bias = d->c,
        .c2p = d->a,
        .ld_c2p = d->lda,
        .p2c = d->b,
        .row_of = d->rows + PANEL,
        .position_of = d->positions + d->problem->rows + PANEL - 1,
        .last_row = V3_ROWS - 1,
        .unit_steps = true,
    };
    table->position_bias_f32(&task);
}

static void copy_rows(kernel_data *d)
{
    for (size_t i = 0; i < d->problem->rows; i++)
        memcpy(d->c + i * d->ldc, d->a + i * d->lda, d->problem->columns * sizeof(float));
}

static void call_softmax(const kernels *table, kernel_data *d)
{
    const kernel_problem *p = d->problem;
    softmax_task task = {.rows = p->rows,
                         .keys = p->columns,
                         .s = d->c,
                         .lds = d->ldc,
                         .maximum = d->state,
                         .total = d->state + p->rows,
                         .rescale = d->state + 2 * p->rows,
                         .first = true};
    copy_rows(d);
    table->softmax_f32(&task);
}

static void call_activate(const kernels *table, kernel_data *d)
{
    copy_rows(d);
    for (size_t i = 0; i < d->problem->rows; i++)
        table->activate_f32(d->c + i * d->ldc, d->problem->columns, (kernel_activation)d->problem->function);
}

static void call(const kernels *table, kernel_data *d)
{
    const kernel_problem *p = d->problem;
    switch (p->operation) {
    case KERNEL_GEMM: call_gemm(table, d); break;
    case KERNEL_PACK: table->pack_panels_f32(d->b, p->depth * PANEL, d->a, d->lda, p->rows, p->depth); break;
    case KERNEL_POSITION_BIAS: call_position_bias(table, d); break;
    case KERNEL_SOFTMAX: call_softmax(table, d); break;
    case KERNEL_LAYERNORM:
        table->layernorm_f32(d->c, d->ldc, d->a, d->lda, d->row, d->second_row, p->rows, p->columns, 1e-7f);
        break;
    case KERNEL_ACTIVATE: call_activate(table, d); break;
    case KERNEL_OPERATIONS: break;
    }
}

static const char *implementation_of(const kernels *table, kernel_operation operation)
{
    const char *const names[KERNEL_OPERATIONS] = {
        [KERNEL_GEMM] = table->gemm_f32_isa,
        [KERNEL_PACK] = table->pack_panels_f32_isa,
        [KERNEL_POSITION_BIAS] = table->position_bias_f32_isa,
        [KERNEL_SOFTMAX] = table->softmax_f32_isa,
        [KERNEL_LAYERNORM] = table->layernorm_f32_isa,
        [KERNEL_ACTIVATE] = table->activate_f32_isa,
    };
    return names[operation];
}

/* What one call does at least. softmax and activate are counted with the copy that refills them. */
static void count_work(kernel_measurement *m, const kernel_problem *p)
{
    double rows = (double)p->rows, columns = (double)p->columns, depth = (double)p->depth;
    double floats = 0;
    m->elements = rows * columns;
    switch (p->operation) {
    case KERNEL_GEMM:
        m->gflop = 1e-9 * 2 * rows * depth * columns;
        floats = rows * depth + depth * columns + rows * columns * (p->residual ? 2 : 1);
        break;
    case KERNEL_PACK:
        m->elements = rows * depth;
        floats = 2 * rows * depth;
        break;
    case KERNEL_POSITION_BIAS:
        m->elements = rows * PANEL;
        floats = 3 * rows * PANEL;
        break;
    case KERNEL_LAYERNORM: floats = 2 * rows * columns; break;
    case KERNEL_SOFTMAX:
    case KERNEL_ACTIVATE:
    case KERNEL_OPERATIONS: floats = 4 * rows * columns; break;
    }
    m->bytes = floats * sizeof(float);
}

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
    call(table, d);
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

/* Tables of the tiers in their order, and behind them one whose activations are SLEEF's. */
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
    for (size_t i = 0; i < calls; i++) call(table, d);
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

static deberta_status measure(kernel_measurement *found, kernel_data *d, const kernel_bench_options *o,
                              const competitors *all, double *samples, size_t count, deberta_error *err)
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
        m->implementation = implementation_of(&tables[t], d->problem->operation);
        count_work(m, d->problem);
        DEBERTA_TRY(statistics_summarize(&m->time, samples + t * count, count, err));
        m->gflops = m->gflop / m->time.median;
        double peak = o->roofs ? machine_peak_gflops(o->roofs, m->isa, 1) : 0;
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
    carve(&memory, &data, o->cold);
    deberta_status status = arena_allocate(&memory, problem->text, 0, err);
    if (status == DEBERTA_OK) {
        carve(&memory, &data, o->cold);
        fill_data(&data);
        status = measure(found, &data, o, all, samples, count, err);
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

/* --------------------------------------------------------------------------------------------------------- printing */

deberta_status kernel_bench_print(const kernel_measurements *found, const kernel_problems *problems, FILE *out,
                                  result_format format, deberta_error *err)
{
    static const char *const titles[] = {"problem", "isa",       "kernel", "median us",  "MAD us",   "min us",
                                         "GFLOP/s", "% of peak", "GB/s",   "ns/element", "speed-up", "ULP"};
    text_table table = text_table_make(sizeof titles / sizeof *titles);
    text_table_add_titles(&table, titles);
    for (size_t i = 0; i < found->count; i++) {
        const kernel_measurement *m = &found->measurements[i];
        text_table_add(&table, "%s", problems->problems[m->problem].text);
        text_table_add(&table, "%s", m->isa == DEBERTA_ISA_AUTO ? "-" : deberta_isa_name(m->isa));
        text_table_add(&table, "%s", m->implementation);
        text_table_add(&table, "%.3f", 1e6 * m->time.median);
        text_table_add(&table, "%.3f", 1e6 * m->time.mad);
        text_table_add(&table, "%.3f", 1e6 * m->time.minimum);
        text_table_add_known(&table, 1, m->gflops, m->gflops > 0);
        text_table_add_known(&table, 1, 100 * m->peak_fraction, m->peak_fraction > 0);
        text_table_add(&table, "%.1f", 1e-9 * m->bytes / m->time.median);
        text_table_add(&table, "%.3f", 1e9 * m->time.median / m->elements);
        text_table_add_known(&table, 2, m->speed_up, m->speed_up > 0);
        text_table_add_known(&table, 2, m->worst_ulp, m->worst_ulp > 0);
    }
    return text_table_finish(&table, out, format, err);
}
