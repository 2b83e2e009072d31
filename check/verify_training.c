/* Kernels of the backward pass and of the optimiser. Scales and limits are those of core/kernels.h.
 *
 * SPDX-License-Identifier: MIT */
#include "check/verify_training.h"

#include <float.h>
#include <math.h>

/* ------------------------------------------------------------------------------------------------ sums over rows */

/* Cuts of the rows into 1, 2, 4 or 8 parts, some of them empty; the number of parts. */
static size_t cut(verify_rounds *k, size_t rows, size_t bounds[MAX_ROW_PARTS + 1])
{
    const size_t parts = (size_t)1 << rounds_below(k, 4);
    bounds[0] = 0;
    for (size_t part = 1; part < parts; part++)
        bounds[part] = bounds[part - 1] + rounds_below(k, rows - bounds[part - 1] + 1);
    bounds[parts] = rows;
    return parts;
}

static void add_term(exact_sum *sum, double term)
{
    sum->value += term;
    sum->terms += fabs(term);
}

static void add_sum_errors(verify_rounds *k, size_t at, exact_sum want, size_t count, size_t row, size_t column)
{
    EACH_TIER(t)
    verify_errors_add(&k->errors[t], TESTED(t, at), want.value,
                      FLT_EPSILON * want.terms + FLT_TRUE_MIN * (double)(count + 1), "row %zu, column %zu", row,
                      column);
}

void round_gemm_tn(verify_rounds *k)
{
    const size_t columns = rounds_size(k, ROWS), panels = 1 + rounds_below(k, COLUMNS / PANEL);
    const size_t rows = rounds_size(k, DEPTH), width = panels * PANEL, ld = width + rounds_below(k, 9);
    const bool in_parts = rounds_below(k, 2), accumulate = !in_parts && rounds_below(k, 2);
    size_t bounds[MAX_ROW_PARTS + 1];
    const size_t parts = cut(k, rows, bounds);
    rounds_fill(k, k->a, rows * columns);
    rounds_fill(k, k->b, rows * width);
    rounds_start(k, columns * ld);
    rounds_keep(k, k->extra, columns * ld);
    EACH_TIER(t)
    {
        const gemm_tn_task task = {.columns = columns,
                                   .panels = panels,
                                   .a = k->a,
                                   .lda = columns,
                                   .b = k->b,
                                   .ldb = width,
                                   .b_panel_stride = PANEL,
                                   .c = k->out[t],
                                   .ldc = ld,
                                   .c_panel_stride = PANEL,
                                   .bounds = in_parts ? bounds : NULL,
                                   .parts = in_parts ? parts : 0,
                                   .rows = rows,
                                   .accumulate = accumulate};
        k->tables[t].gemm_tn_f32(&task);
    }
    rounds_compare(k, columns * ld);
    for (size_t i = 0; i < columns; i++)
        for (size_t j = 0; j < width; j++) {
            exact_sum want = {0};
            if (accumulate) add_term(&want, (double)k->extra[i * ld + j]);
            for (size_t r = 0; r < rows; r++)
                add_term(&want, (double)k->a[r * columns + i] * (double)k->b[r * width + j]);
            add_sum_errors(k, i * ld + j, want, rows, i, j);
        }
}

void round_sum_rows(verify_rounds *k)
{
    const size_t n = rounds_size(k, COLUMNS), rows = rounds_size(k, DEPTH), ld = n + rounds_below(k, 5);
    const bool products = rounds_below(k, 2);
    size_t bounds[MAX_ROW_PARTS + 1];
    const size_t parts = cut(k, rows, bounds);
    rounds_fill(k, k->a, rows * ld);
    rounds_fill(k, k->b, rows * ld);
    rounds_start(k, n);
    EACH_TIER(t)
    {
        const sum_rows_task task = {.n = n,
                                    .a = k->a,
                                    .b = products ? k->b : NULL,
                                    .lda = ld,
                                    .ldb = ld,
                                    .bounds = bounds,
                                    .parts = parts,
                                    .y = k->out[t]};
        k->tables[t].sum_rows_f32(&task);
    }
    rounds_compare(k, n);
    for (size_t j = 0; j < n; j++) {
        exact_sum want = {0};
        for (size_t r = 0; r < rows; r++)
            add_term(&want, (double)k->a[r * ld + j] * (products ? (double)k->b[r * ld + j] : 1));
        add_sum_errors(k, j, want, rows, 0, j);
    }
}

void round_dot_rows(verify_rounds *k)
{
    const size_t rows = rounds_size(k, ROWS), n = rounds_size(k, WIDTH), ld = n + rounds_below(k, 5);
    rounds_fill(k, k->a, rows * ld);
    rounds_fill(k, k->b, rows * ld);
    rounds_start(k, rows);
    EACH_TIER(t) k->tables[t].dot_rows_f32(k->out[t], k->a, ld, k->b, ld, rows, n);
    rounds_compare(k, rows);
    for (size_t i = 0; i < rows; i++) {
        exact_sum want = {0};
        for (size_t e = 0; e < n; e++) add_term(&want, (double)k->a[i * ld + e] * (double)k->b[i * ld + e]);
        add_sum_errors(k, i, want, n, i, 0);
    }
}

/* ------------------------------------------------------------------------------------------------------- layer norm */

typedef struct norm_row {
    const float *x, *dy, *gamma; /* gamma may be NULL */
    size_t n;
    double mean, size, r;                      /* size: of x, mean */
    double average, slope, size_u, size_slope; /* mean(u), mean(u normal) and what they are made of */
} norm_row;

static double gradient_before_gain(const norm_row *row, size_t e)
{
    return (double)row->dy[e] * (row->gamma ? (double)row->gamma[e] : 1);
}

static void norm_row_sum_up(norm_row *row, double eps)
{
    const double n = (double)row->n;
    double variance = 0;
    for (size_t e = 0; e < row->n; e++) {
        row->mean += (double)row->x[e] / n;
        row->size += fabs((double)row->x[e]) / n;
    }
    for (size_t e = 0; e < row->n; e++) variance += pow((double)row->x[e] - row->mean, 2) / n;
    row->r = 1 / sqrt(variance + eps);
    for (size_t e = 0; e < row->n; e++) {
        const double u = gradient_before_gain(row, e), x = (double)row->x[e];
        row->average += u / n;
        row->slope += u * (x - row->mean) * row->r / n;
        row->size_u += fabs(u) / n;
        row->size_slope += fabs(u) * (fabs(x) + row->size) * row->r / n;
    }
}

/* dx lies at the beginning of the output, the normal rows after it. */
void round_layernorm_backward(verify_rounds *k)
{
    const size_t rows = 1 + rounds_below(k, 8), n = rounds_size(k, WIDTH), ld = n + rounds_below(k, 5);
    const bool has_gain = rounds_below(k, 2);
    const float eps = 1e-7f;
    rounds_fill(k, k->a, rows * ld);
    rounds_fill(k, k->b, rows * ld);
    rounds_fill(k, k->extra, n);
    rounds_start(k, 2 * rows * ld);
    EACH_TIER(t)
    {
        const layernorm_backward_task task = {.rows = rows,
                                              .n = n,
                                              .dx = k->out[t],
                                              .normal = k->out[t] + rows * ld,
                                              .x = k->a,
                                              .dy = k->b,
                                              .gamma = has_gain ? k->extra : NULL,
                                              .lddx = ld,
                                              .ld_normal = ld,
                                              .ldx = ld,
                                              .lddy = ld,
                                              .eps = eps};
        k->tables[t].layernorm_backward_f32(&task);
    }
    rounds_compare(k, 2 * rows * ld);
    for (size_t i = 0; i < rows; i++) {
        norm_row row = {.x = k->a + i * ld, .dy = k->b + i * ld, .gamma = has_gain ? k->extra : NULL, .n = n};
        norm_row_sum_up(&row, (double)eps);
        for (size_t e = 0; e < n; e++) {
            const double x = (double)row.x[e], normal = (x - row.mean) * row.r, reach = (fabs(x) + row.size) * row.r;
            const double u = gradient_before_gain(&row, e), smallest = FLT_TRUE_MIN * (1 + row.r);
            EACH_TIER(t)
            {
                verify_errors_add(&k->errors[t], TESTED(t, (rows + i) * ld + e), normal, FLT_EPSILON * reach + smallest,
                                  "normal row %zu, column %zu", i, e);
                verify_errors_add(&k->errors[t], TESTED(t, i * ld + e), row.r * (u - row.average - normal * row.slope),
                                  FLT_EPSILON * row.r * (fabs(u) + row.size_u + reach * row.size_slope) + smallest,
                                  "row %zu, column %zu", i, e);
            }
        }
    }
}

/* ------------------------------------------------------------------------------------------------ places, optimiser */

void round_fold_runs(verify_rounds *k)
{
    enum { PLACES = 256, FIRST = 5 };
    const size_t rows = rounds_size(k, ROWS), columns = rounds_size(k, COLUMNS);
    const bool irregular = rounds_below(k, 4) == 0;
    int32_t *place_of = k->table + rows - 1, place = FIRST;
    for (ptrdiff_t x = 1 - (ptrdiff_t)rows; x < (ptrdiff_t)columns; x++) {
        place_of[x] = irregular ? FIRST + (int32_t)rounds_below(k, PLACES) : place;
        place += (int32_t)rounds_below(k, 2);
    }
    rounds_fill(k, k->a, rows * columns);
    rounds_start(k, rows * PLACES);
    rounds_keep(k, k->b, rows * PLACES);
    EACH_TIER(t)
    {
        const fold_runs_task task = {.rows = rows,
                                     .columns = columns,
                                     .s = k->a,
                                     .row_step = columns,
                                     .column_step = 1,
                                     .place_of = place_of,
                                     .first = FIRST,
                                     .unit_steps = !irregular,
                                     .strip = k->out[t],
                                     .ld_strip = PLACES};
        k->tables[t].fold_runs_f32(&task);
    }
    rounds_compare(k, rows * PLACES);
    for (size_t i = 0; i < rows; i++) {
        exact_sum want[PLACES];
        for (size_t x = 0; x < PLACES; x++) {
            const double before = (double)k->b[i * PLACES + x];
            want[x] = (exact_sum){before, fabs(before)};
        }
        for (size_t j = 0; j < columns; j++)
            add_term(&want[place_of[(ptrdiff_t)j - (ptrdiff_t)i] - FIRST], (double)k->a[i * columns + j]);
        for (size_t x = 0; x < PLACES; x++) add_sum_errors(k, i * PLACES + x, want[x], columns, i, x);
    }
}

/* Weights, momentum and second moments lie one after the other in the output. */
void round_adam(verify_rounds *k)
{
    const size_t n = rounds_size(k, 700);
    adam_task task = {.n = n,
                      .g = k->a,
                      .scale = 0.37f,
                      .b1 = 0.9f,
                      .c1 = 0.1f,
                      .b2 = 0.999f,
                      .c2 = 0.001f,
                      .eps = 1e-6f,
                      .rate = -3e-3f,
                      .inverse_root = 3.1f,
                      .keep = 0.98f,
                      .decay = 0.02f,
                      .coupled = rounds_below(k, 2)};
    rounds_fill(k, k->a, n);
    rounds_start(k, 3 * n);
    EACH_TIER(t)
    for (size_t e = 2 * n; e < 3 * n; e++) k->out[t][e] = fabsf(k->out[t][e]);
    rounds_keep(k, k->b, 3 * n);
    EACH_TIER(t)
    {
        task.w = k->out[t], task.m = k->out[t] + n, task.v = k->out[t] + 2 * n;
        k->tables[t].adam_f32(&task);
    }
    rounds_compare(k, 3 * n);
    const double b1 = (double)task.b1, b2 = (double)task.b2, eps = (double)task.eps, rate = (double)task.rate;
    for (size_t e = 0; e < n; e++) {
        const double w = (double)k->b[e], before = (double)k->b[n + e], g = (double)task.scale * (double)k->a[e];
        const double m = b1 * before + (double)task.c1 * g, size = b1 * fabs(before) + (double)task.c1 * fabs(g);
        const double v = b2 * (double)k->b[2 * n + e] + (double)task.c2 * g * g;
        const double root = task.coupled ? sqrt(v) + eps : sqrt(v) * (double)task.inverse_root + eps;
        const double kept = task.coupled ? w + rate * (double)task.decay * w : (double)task.keep * w;
        EACH_TIER(t)
        {
            verify_errors_add(&k->errors[t], TESTED(t, n + e), m, FLT_EPSILON * size + FLT_TRUE_MIN, "m of %zu", e, 0);
            verify_errors_add(&k->errors[t], TESTED(t, 2 * n + e), v, FLT_EPSILON * v + FLT_TRUE_MIN, "v of %zu", e, 0);
            verify_errors_add(&k->errors[t], TESTED(t, e), kept + rate * m / root,
                              FLT_EPSILON * (fabs(w) + fabs(rate) * size / root) + FLT_TRUE_MIN * (1 + 1 / root),
                              "weight %zu", e, 0);
        }
    }
}

/* What is dropped is 0, the rest a product: which of both, all tiers must agree on. */
void round_dropout(verify_rounds *k)
{
    enum { MOST_ROWS = 12 };
    const size_t rows = rounds_size(k, MOST_ROWS), n = rounds_size(k, 300);
    dropout_row of[MOST_ROWS];
    for (size_t i = 0; i < rows; i++)
        of[i] = (dropout_row){(uint32_t)rounds_below(k, 1000), (uint32_t)i, (uint32_t)rounds_below(k, 50)};
    rounds_start(k, rows * n);
    rounds_keep(k, k->a, rows * n);
    const uint32_t seed = (uint32_t)rounds_below(k, 1000);
    EACH_TIER(t)
    {
        const dropout_task task = {.rows = rows,
                                   .n = n,
                                   .x = k->out[t],
                                   .ldx = n,
                                   .of = of,
                                   .seed = seed,
                                   .step = 3,
                                   .threshold = UINT32_MAX / 10,
                                   .scale = 1 / 0.9f};
        k->tables[t].dropout_f32(&task);
    }
    rounds_compare(k, rows * n);
    for (size_t e = 0; e < rows * n; e++) {
        const bool dropped = k->out[DEBERTA_ISA_SCALAR][e] == 0;
        const double want = dropped ? 0 : (double)k->a[e] * (double)(1 / 0.9f);
        EACH_TIER(t)
        verify_errors_add(&k->errors[t], TESTED(t, e), want, FLT_EPSILON * fabs(want) + FLT_TRUE_MIN, "value %zu", e,
                          0);
    }
}
