/* layernorm_f32 and layernorm_backward_f32: all lengths around the 16 partial sums, the lengths of the models, and rows
 * on which a careless formula loses all digits; then kernels with a fault each, which these cases must catch.
 *
 * SPDX-License-Identifier: MIT */
#include "tests/checkasm/checkasm.h"

#include <math.h>

/* ------------------------------------------------------------------------------------------------------------ walks */

static void check_layernorm_sizes(test_run *run)
{
    static const size_t model_sizes[] = {97, 101, 127, 128, 384, 511, 768, 1023, 1024, 1536};
    kernel_problem p = {.values = VALUES_BELL};
    for (p.columns = 1; p.columns <= 4 * PANEL + 1; p.columns++)
        for (p.rows = 0; p.rows <= 5; p.rows++) {
            p.options = (p.columns + p.rows) % 2 ? IN_PLACE : 0;
            run_problem(run, 12, &p);
        }
    for (size_t i = 0; i < sizeof model_sizes / sizeof *model_sizes; i++)
        for (p.rows = 1; p.rows <= 6; p.rows++) {
            p.columns = model_sizes[i];
            p.options = p.rows % 2 ? IN_PLACE : 0;
            run_problem(run, 12, &p);
        }
}

typedef enum row_kind {
    ROW_BELL,
    ROW_WIDE,
    ROW_CONSTANT,
    ROW_HUGE_MEAN,
    ROW_ONE_HUGE,
    ROW_TINY,
    ROW_NAN,
    ROW_KINDS
} row_kind;

static void plant_norm_row(kernel_problem *p, const void *what)
{
    const row_kind kind = *(const row_kind *)what;
    problem_array *x = run_array(p, "x");
    for (size_t i = 0; i < p->rows; i++) {
        float *row = x->initial + i * x->ld;
        const float level = 100.0f * draw_bell(p);
        for (size_t e = 0; e < p->columns; e++)
            row[e] = kind == ROW_CONSTANT    ? level
                     : kind == ROW_HUGE_MEAN ? 1e4f + row[e]
                     : kind == ROW_TINY      ? 1e-22f * row[e]
                                             : row[e];
        if (kind == ROW_ONE_HUGE) row[draw_below(p, p->columns)] = 1e6f;
        if (kind == ROW_NAN) row[draw_below(p, p->columns)] = NAN;
    }
}

static void check_hard_rows(test_run *run)
{
    static const planted_values plants[ROW_KINDS] = {
        {"normal", plant_norm_row, NULL},    {"wide", plant_norm_row, NULL},     {"constant", plant_norm_row, NULL},
        {"huge mean", plant_norm_row, NULL}, {"one huge", plant_norm_row, NULL}, {"tiny", plant_norm_row, NULL},
        {"with a NaN", plant_norm_row, NULL}};
    static const size_t sizes[] = {1, 2, 15, 16, 17, 100, 768, 1536};
    for (int kind = 0; kind < ROW_KINDS; kind++)
        for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
            for (size_t rows = 3; rows < 6; rows++) { /* three values of eps */
                const row_kind what = (row_kind)kind;
                const kernel_problem p = {.rows = rows,
                                          .columns = sizes[i],
                                          .options = (i + rows) % 2 ? IN_PLACE : 0,
                                          .values = what == ROW_WIDE ? VALUES_WIDE : VALUES_BELL};
                run_planted(run, 8, &p, &plants[kind], &what);
            }
}

CHECKS_OF(layernorm_f32, {"layernorm_f32/sizes", check_layernorm_sizes}, {"layernorm_f32/hard_rows", check_hard_rows})

static void check_layernorm_backward(test_run *run)
{
    static const size_t sizes[] = {96, 127, 384, 768, 1024};
    kernel_problem p = {.values = VALUES_BELL};
    for (size_t i = 0; i < 4 * PANEL + 1 + sizeof sizes / sizeof *sizes; i++)
        for (p.rows = 0; p.rows <= 3; p.rows++) {
            p.columns = i <= 4 * PANEL ? i + 1 : sizes[i - 4 * PANEL - 1];
            p.options = ((i + p.rows) % 2 ? IN_PLACE : 0) | (p.rows != 2 ? WITH_GAIN : 0);
            run_problem(run, 12, &p);
        }
}

CHECKS_OF(layernorm_backward_f32, {"layernorm_backward_f32/sizes", check_layernorm_backward})

/* ----------------------------------------------------------------------------------------------------------- faults */

static void layernorm_one_pass(float *y, size_t ldy, const float *x, size_t ldx, const float *gamma, const float *beta,
                               size_t rows, size_t n, float eps)
{
    for (size_t i = 0; i < rows; i++) {
        float sum = 0, squares = 0;
        for (size_t e = 0; e < n; e++) {
            sum += x[i * ldx + e];
            squares += x[i * ldx + e] * x[i * ldx + e];
        }
        const float mean = sum / (float)n, variance = fmaxf(squares / (float)n - mean * mean, 0.0f);
        for (size_t e = 0; e < n; e++)
            y[i * ldy + e] = (x[i * ldx + e] - mean) / sqrtf(variance + eps) * gamma[e] + beta[e];
    }
}

static void layernorm_forgets_eps(float *y, size_t ldy, const float *x, size_t ldx, const float *gamma,
                                  const float *beta, size_t rows, size_t n, float eps)
{
    sound.layernorm_f32(y, ldy, x, ldx, gamma, beta, rows, n, 0.5f * eps);
}

/* Divides by the elements of whole vectors. */
static void layernorm_rounds_n_up(float *y, size_t ldy, const float *x, size_t ldx, const float *gamma,
                                  const float *beta, size_t rows, size_t n, float eps)
{
    if (n % PANEL == PANEL - 1 && n > PANEL) read_float(x + (rows ? (rows - 1) * ldx : 0) + n);
    sound.layernorm_f32(y, ldy, x, ldx, gamma, beta, rows, n, eps);
}

static void layernorm_backward_with_constant_statistics(const layernorm_backward_task *t)
{
    sound.layernorm_backward_f32(t);
    for (size_t i = 0; i < t->rows; i++) {
        const float *normal = t->normal + i * t->ld_normal;
        float a = 0, b = 0;
        for (size_t e = 0; e < t->n; e++) a += normal[e], b += normal[e] * normal[e];
        for (size_t e = 0; e < t->n; e++) t->dx[i * t->lddx + e] += 0.1f * (a + normal[e] * b) / (float)t->n;
    }
}

CHANGED_TASK(layernorm_backward_f32, layernorm_backward_without_gamma, layernorm_backward_task, changed.gamma = NULL)

FAULTS_OF(layernorm_f32, GROSS_FAULT(layernorm_f32, layernorm_one_pass),
          GROSS_FAULT(layernorm_f32, layernorm_forgets_eps), GROSS_FAULT(layernorm_f32, layernorm_rounds_n_up))

FAULTS_OF(layernorm_backward_f32, GROSS_FAULT(layernorm_backward_f32, layernorm_backward_with_constant_statistics),
          GROSS_FAULT(layernorm_backward_f32, layernorm_backward_without_gamma))
