/* layernorm_f32 against float64: all lengths around the 16 partial sums, the lengths of the models, and rows on which a
 * careless formula loses all digits.
 *
 * SPDX-License-Identifier: MIT */
#include "tests/checkasm/checkasm.h"

#include <math.h>

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

typedef struct layernorm_case {
    size_t rows, n;
    row_kind kind;
    bool in_place;
    float eps;

    /* chosen by the body */
    size_t ldx, ldy;
    test_buffer *x, *y, *gamma, *beta;
} layernorm_case;

typedef struct layernorm_task {
    float *y;
    size_t ldy;
    const float *x;
    size_t ldx;
    const float *gamma, *beta;
    size_t rows, n;
    float eps;
} layernorm_task;

static void call_layernorm(const kernels *table, const void *task)
{
    const layernorm_task *t = task;
    table->layernorm_f32(t->y, t->ldy, t->x, t->ldx, t->gamma, t->beta, t->rows, t->n, t->eps);
}

static const void *layernorm_task_for(void *context, int copy)
{
    static layernorm_task task;
    const layernorm_case *c = context;
    task = (layernorm_task){.y = c->y->copy[copy],
                            .ldy = c->ldy,
                            .x = c->x->copy[copy],
                            .ldx = c->ldx,
                            .gamma = c->gamma->copy[copy],
                            .beta = c->beta->copy[copy],
                            .rows = c->rows,
                            .n = c->n,
                            .eps = c->eps};
    return &task;
}

static void fill_row(test_run *run, float *x, const layernorm_case *c)
{
    const float level = 100.0f * random_bell(run);
    for (size_t e = 0; e < c->n; e++) {
        switch (c->kind) {
        case ROW_CONSTANT: x[e] = level; break;
        case ROW_HUGE_MEAN: x[e] = 1e4f + random_bell(run); break;
        case ROW_TINY: x[e] = 1e-22f * random_bell(run); break;
        default: x[e] = random_bell(run);
        }
    }
    if (c->kind == ROW_WIDE) fill_matrix(run, x, 1, c->n, c->n, DIST_WIDE, 1.0f);
    if (c->kind == ROW_ONE_HUGE) x[random_index(run, c->n)] = 1e6f;
    if (c->kind == ROW_NAN) x[random_index(run, c->n)] = NAN;
}

static void compare_row(test_run *run, const layernorm_case *c, size_t i)
{
    const float *x = c->x->copy[COPY_INITIAL] + i * c->ldx, *y = c->y->copy[COPY_TESTED] + i * c->ldy;
    const float *gamma = c->gamma->copy[COPY_INITIAL], *beta = c->beta->copy[COPY_INITIAL];
    double mean = 0, size = 0, variance = 0;
    for (size_t e = 0; e < c->n; e++) {
        mean += (double)x[e] / (double)c->n;
        size += fabs((double)x[e]) / (double)c->n;
    }
    for (size_t e = 0; e < c->n; e++) variance += ((double)x[e] - mean) * ((double)x[e] - mean) / (double)c->n;

    /* To first order: the mean adds m = ceil(n / 16) + 5 roundings of mean |x|; r half as many of the variance, and its
     * own; d, the product and the fma one each. What the error of the mean does to the variance is of second order:
     * below 2 up to |mean| = 10^4 sigma. Rows of normal numbers stay below 4. */
    const double limit = 1.5 * (double)((c->n + PANEL - 1) / PANEL) + 16;
    const double r = 1.0 / sqrt(variance + (double)c->eps);
    for (size_t e = 0; e < c->n; e++) {
        const double want = (double)gamma[e] * ((double)x[e] - mean) * r + (double)beta[e];
        const double terms = (fabs((double)x[e]) + size) * r * fabs((double)gamma[e]) + fabs((double)beta[e]);
        if (!run_error(run, "y", i * c->ldy + e, (double)y[e], want, UNIT_EPS_S, EPS * terms, limit)) return;
    }
}

static void layernorm_body(test_run *run, const void *parameters)
{
    layernorm_case c = *(const layernorm_case *)parameters;
    c.ldx = random_ld(run, c.n);
    c.ldy = c.in_place ? c.ldx : random_ld(run, c.n);
    c.x = run_buffer(run, "x", matrix_span(c.rows, c.n, c.ldx), c.in_place ? BUFFER_OUTPUT : BUFFER_INPUT);
    c.y = c.in_place ? c.x : run_buffer(run, "y", matrix_span(c.rows, c.n, c.ldy), BUFFER_OUTPUT);
    c.gamma = run_buffer(run, "gamma", c.n, BUFFER_INPUT);
    c.beta = run_buffer(run, "beta", c.n, BUFFER_INPUT);
    for (size_t i = 0; i < c.rows; i++) fill_row(run, c.x->copy[COPY_INITIAL] + i * c.ldx, &c);
    for (size_t e = 0; e < c.n; e++) {
        c.gamma->copy[COPY_INITIAL][e] = 1.0f + 0.3f * random_bell(run);
        c.beta->copy[COPY_INITIAL][e] = 0.1f * random_bell(run);
    }
    if (!run_kernels(run, call_layernorm, layernorm_task_for, &c)) return;
    for (size_t i = 0; i < c.rows; i++) compare_row(run, &c, i);
}

static void run_layernorm_case(test_run *run, size_t weight, const layernorm_case *c)
{
    static const char *const kinds[] = {"normal", "wide", "constant", "huge mean", "one huge", "tiny", "with a NaN"};
    run_case(run, weight, layernorm_body, c, "rows %zu, n %zu, %s values, eps %g%s", c->rows, c->n, kinds[c->kind],
             (double)c->eps, c->in_place ? ", in place" : "");
}

void check_layernorm_sizes(test_run *run)
{
    static const size_t model_sizes[] = {97, 101, 127, 128, 384, 511, 768, 1023, 1024, 1536};
    layernorm_case c = {.eps = 1e-7f};
    for (c.n = 1; c.n <= 4 * PANEL + 1; c.n++)
        for (c.rows = 0; c.rows <= 5; c.rows++) {
            c.in_place = (c.n + c.rows) % 2;
            run_layernorm_case(run, 12, &c);
        }
    for (size_t i = 0; i < sizeof model_sizes / sizeof *model_sizes; i++)
        for (c.rows = 1; c.rows <= 6; c.rows++) {
            c.n = model_sizes[i];
            c.in_place = c.rows % 2;
            run_layernorm_case(run, 12, &c);
        }
}

void check_layernorm_hard_rows(test_run *run)
{
    static const size_t sizes[] = {1, 2, 15, 16, 17, 100, 768, 1536};
    static const float epsilons[] = {1e-7f, 1e-12f, 1e-5f};
    layernorm_case c = {.rows = 3};
    for (int kind = 0; kind < ROW_KINDS; kind++)
        for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
            for (size_t e = 0; e < sizeof epsilons / sizeof *epsilons; e++) {
                c.kind = (row_kind)kind;
                c.n = sizes[i];
                c.eps = epsilons[e];
                c.in_place = !c.in_place;
                run_layernorm_case(run, 8, &c);
            }
}
