/* The row kernels of the backward pass and of the optimiser against float64: layernorm_backward_f32,
 * activate_backward_f32, softmax_backward_f32, adam_f32.
 *
 * SPDX-License-Identifier: MIT */
#include "tests/checkasm/checkasm.h"

#include <math.h>

typedef struct backward_case {
    size_t rows, n;
    bool in_place, optional; /* optional: with gamma, with y, with key_bias */
    bool own_delta;          /* of a row: the sum of p dp */
    float eps;
    kernel_activation function;
    int kind;

    /* chosen by the body */
    size_t ldx, lddy, lddx, ld_normal;
    test_buffer *x, *y, *dy, *dx, *normal, *gamma, *maximum, *inverse_total, *delta;
    adam_task adam;
} backward_case;

static void fill_bell(test_run *run, test_buffer *buffer, size_t rows, size_t n, size_t ld)
{
    fill_matrix(run, buffer->copy[COPY_INITIAL], rows, n, ld, DIST_BELL, 1.0f);
}

/* ------------------------------------------------------------------------------------------------ layernorm_backward */

static void call_layernorm_backward(const kernels *table, const void *task) { table->layernorm_backward_f32(task); }

static const void *layernorm_backward_task_for(void *context, int copy)
{
    static layernorm_backward_task task;
    const backward_case *c = context;
    task = (layernorm_backward_task){.rows = c->rows,
                                     .n = c->n,
                                     .dx = c->dx->copy[copy],
                                     .normal = c->normal->copy[copy],
                                     .x = c->x->copy[copy],
                                     .dy = c->dy->copy[copy],
                                     .gamma = c->optional ? c->gamma->copy[copy] : NULL,
                                     .lddx = c->lddx,
                                     .ld_normal = c->ld_normal,
                                     .ldx = c->ldx,
                                     .lddy = c->lddy,
                                     .eps = c->eps};
    return &task;
}

static double gradient_of(const backward_case *c, size_t i, size_t e)
{
    const double dy = (double)c->dy->copy[COPY_INITIAL][i * c->lddy + e];
    return c->optional ? dy * (double)c->gamma->copy[COPY_INITIAL][e] : dy;
}

static bool compare_layernorm_row(test_run *run, const backward_case *c, size_t i)
{
    const float *x = c->x->copy[COPY_INITIAL] + i * c->ldx;
    const double n = (double)c->n, limit = 4 * (double)((c->n + PANEL - 1) / PANEL) + 48;
    double mean = 0, variance = 0, size = 0, a = 0, b = 0, size_a = 0, size_b = 0;
    for (size_t e = 0; e < c->n; e++) {
        mean += (double)x[e] / n;
        size += fabs((double)x[e]) / n;
    }
    for (size_t e = 0; e < c->n; e++) variance += ((double)x[e] - mean) * ((double)x[e] - mean) / n;
    const double r = 1 / sqrt(variance + (double)c->eps);
    for (size_t e = 0; e < c->n; e++) {
        const double u = gradient_of(c, i, e), normal = ((double)x[e] - mean) * r;
        a += u / n;
        b += u * normal / n;
        size_a += fabs(u) / n;
        size_b += fabs(u) * (fabs((double)x[e]) + size) * r / n;
    }
    for (size_t e = 0; e < c->n; e++) {
        const double u = gradient_of(c, i, e), normal = ((double)x[e] - mean) * r;
        const double reach = (fabs((double)x[e]) + size) * r, terms = r * (fabs(u) + size_a + reach * size_b);
        if (!run_error(run, "normal", i * c->ld_normal + e, (double)c->normal->copy[COPY_TESTED][i * c->ld_normal + e],
                       normal, UNIT_EPS_S, EPS * reach, limit) ||
            !run_error(run, "dx", i * c->lddx + e, (double)c->dx->copy[COPY_TESTED][i * c->lddx + e],
                       r * (u - a - normal * b), UNIT_EPS_S, EPS * terms, limit))
            return false;
    }
    return true;
}

static void layernorm_backward_body(test_run *run, const void *parameters)
{
    backward_case c = *(const backward_case *)parameters;
    c.ldx = random_ld(run, c.n);
    c.lddy = random_ld(run, c.n);
    c.lddx = c.in_place ? c.lddy : random_ld(run, c.n);
    c.ld_normal = c.in_place ? c.ldx : random_ld(run, c.n);
    c.x = run_buffer(run, "x", matrix_span(c.rows, c.n, c.ldx), c.in_place ? BUFFER_OUTPUT : BUFFER_INPUT);
    c.dy = run_buffer(run, "dy", matrix_span(c.rows, c.n, c.lddy), c.in_place ? BUFFER_OUTPUT : BUFFER_INPUT);
    c.normal = c.in_place ? c.x : run_buffer(run, "normal", matrix_span(c.rows, c.n, c.ld_normal), BUFFER_OUTPUT);
    c.dx = c.in_place ? c.dy : run_buffer(run, "dx", matrix_span(c.rows, c.n, c.lddx), BUFFER_OUTPUT);
    c.gamma = run_buffer(run, "gamma", c.optional ? c.n : 0, BUFFER_INPUT);
    fill_bell(run, c.x, c.rows, c.n, c.ldx);
    fill_bell(run, c.dy, c.rows, c.n, c.lddy);
    if (c.optional) fill_bell(run, c.gamma, 1, c.n, c.n);
    if (!run_kernels(run, call_layernorm_backward, layernorm_backward_task_for, &c)) return;
    for (size_t i = 0; i < c.rows; i++)
        if (!compare_layernorm_row(run, &c, i)) return;
}

void check_layernorm_backward(test_run *run)
{
    static const size_t sizes[] = {96, 127, 384, 768, 1024};
    backward_case c = {.eps = 1e-7f};
    for (size_t i = 0; i < 4 * PANEL + 1 + sizeof sizes / sizeof *sizes; i++)
        for (c.rows = 0; c.rows <= 3; c.rows++) {
            c.n = i <= 4 * PANEL ? i + 1 : sizes[i - 4 * PANEL - 1];
            c.in_place = (i + c.rows) % 2;
            c.optional = c.rows != 2;
            run_case(run, 12, layernorm_backward_body, &c, "%zu rows of %zu%s%s", c.rows, c.n,
                     c.in_place ? ", in place" : "", c.optional ? ", gamma" : "");
        }
}

/* ------------------------------------------------------------------------------------------------- activate_backward */

typedef struct activate_backward_task {
    float *dy, *y;
    const float *x;
    size_t n;
    kernel_activation function;
} activate_backward_task;

static void call_activate_backward(const kernels *table, const void *task)
{
    const activate_backward_task *t = task;
    table->activate_backward_f32(t->dy, t->y, t->x, t->n, t->function);
}

static const void *activate_backward_task_for(void *context, int copy)
{
    static activate_backward_task task;
    const backward_case *c = context;
    task = (activate_backward_task){c->dy->copy[copy], c->optional ? c->y->copy[copy] : NULL, c->x->copy[copy], c->n,
                                    c->function};
    return &task;
}

/* s + p s (1 - s), and its size for the bound. */
static double gate_slope(double u, double p, double *size)
{
    const double s = 1 / (1 + exp(-u)), w = exp(-fabs(u)) / ((1 + exp(-fabs(u))) * (1 + exp(-fabs(u))));
    *size = (s + fabs(p * w)) * (1 + fabs(u));
    return s + p * w;
}

static double derivative_of(double x, kernel_activation function, double *size)
{
    const double root = 2 * sqrt(2 / acos(-1)), cubic = 0.044715;
    *size = 1;
    switch (function) {
    case KERNEL_GELU: return 0.5 * erfc(-x / sqrt(2)) + x * exp(-x * x / 2) / sqrt(2 * acos(-1));
    case KERNEL_GELU_TANH: return gate_slope(root * (x + cubic * x * x * x), x * root * (1 + 3 * cubic * x * x), size);
    case KERNEL_GELU_QUICK: return gate_slope(1.702 * x, 1.702 * x, size);
    case KERNEL_RELU: return x > 0;
    case KERNEL_SILU: return gate_slope(x, x, size);
    case KERNEL_TANH: return 1 - tanh(x) * tanh(x);
    case KERNEL_SIGMOID: return exp(-fabs(x)) / ((1 + exp(-fabs(x))) * (1 + exp(-fabs(x))));
    case KERNEL_EXP: *size = exp(x); return exp(x);
    }
    return NAN;
}

static void activate_backward_body(test_run *run, const void *parameters)
{
    static const float special[] = {0.0f,   -0.0f,   1e-30f, -1e-30f, 13.06f,   -13.06f,
                                    100.0f, -100.0f, 1e30f,  -1e30f,  INFINITY, -INFINITY};
    enum { SPECIAL = sizeof special / sizeof *special };
    backward_case c = *(const backward_case *)parameters;
    c.x = run_buffer(run, "x", c.n, BUFFER_INPUT);
    c.dy = run_buffer(run, "dy", c.n, BUFFER_OUTPUT_ANY_ZERO);
    /* The scalar kernel takes it from activate_f32, which is compared with float64 elsewhere. */
    c.y = run_buffer(run, "y", c.optional ? c.n : 0, BUFFER_OUTPUT_ANY_ZERO);
    float *x = c.x->copy[COPY_INITIAL], *dy = c.dy->copy[COPY_INITIAL];
    for (size_t e = 0; e < c.n; e++) {
        x[e] = c.kind == 1 ? special[random_index(run, SPECIAL)] : random_uniform(run, -8.0f, 8.0f);
        if (c.function == KERNEL_EXP && x[e] > 80) x[e] = 80;
        dy[e] = random_bell(run);
    }
    if (c.kind == 2) x[random_index(run, c.n)] = NAN;
    if (!run_kernels(run, call_activate_backward, activate_backward_task_for, &c)) return;
    for (size_t e = 0; e < c.n; e++) {
        double size, want = derivative_of((double)fmaxf(fminf(x[e], 1e3f), -1e3f), c.function, &size);
        const double got = (double)c.dy->copy[COPY_TESTED][e], factor = (double)c.dy->copy[COPY_INITIAL][e];
        if (isnan(x[e])) {
            if (!isnan(got)) run_fail(run, "dy[%zu] is %g, but x is NaN", e, got);
            continue;
        }
        /* Beyond |x| = 1000 nothing changes, but for the sizes of the bounds. */
        if (!isfinite(size) || size > 1e3) size = 1;
        if (c.function == KERNEL_EXP) size = exp((double)x[e]) + 0x1p-126;
        if (!run_error(run, "dy", e, got, want * factor, UNIT_EPS_S, EPS * fabs(factor) * size + 0x1p-140, 16)) return;
    }
}

void check_activate_backward(test_run *run)
{
    static const char *const kinds[] = {"", ", tails", ", a NaN"};
    backward_case c = {0};
    for (int function = 0; function <= KERNEL_EXP; function++)
        for (c.kind = 0; c.kind < 3; c.kind++)
            for (c.n = 1; c.n <= 2 * PANEL + 3; c.n++) {
                c.function = (kernel_activation)function;
                c.optional = (c.n + (size_t)c.kind) % 2;
                run_case(run, 12, activate_backward_body, &c, "%s of %zu%s%s", activation_name(c.function), c.n,
                         kinds[c.kind], c.optional ? ", y" : "");
            }
    c.kind = 0;
    c.optional = true;
    for (int function = 0; function <= KERNEL_EXP; function++) {
        c.function = (kernel_activation)function;
        c.n = 5000;
        run_case(run, 1, activate_backward_body, &c, "%s of %zu", activation_name(c.function), c.n);
    }
}

/* -------------------------------------------------------------------------------------------------- softmax_backward */

static void call_softmax_backward(const kernels *table, const void *task) { table->softmax_backward_f32(task); }

static const void *softmax_backward_task_for(void *context, int copy)
{
    static softmax_backward_task task;
    const backward_case *c = context;
    task = (softmax_backward_task){.rows = c->rows,
                                   .keys = c->n,
                                   .s = c->x->copy[copy],
                                   .dp = c->dy->copy[copy],
                                   .lds = c->ldx,
                                   .lddp = c->lddy,
                                   .key_bias = c->optional ? c->gamma->copy[copy] : NULL,
                                   .maximum = c->maximum->copy[copy],
                                   .inverse_total = c->inverse_total->copy[copy],
                                   .delta = c->own_delta ? NULL : c->delta->copy[copy]};
    return &task;
}

static bool is_hidden(const backward_case *c, size_t i, size_t j)
{
    return c->maximum->copy[COPY_INITIAL][i] == -INFINITY || (c->optional && c->gamma->copy[COPY_INITIAL][j] != 0);
}

static double exact_p(const backward_case *c, size_t i, size_t j)
{
    if (is_hidden(c, i, j)) return 0;
    const float s = c->x->copy[COPY_INITIAL][i * c->ldx + j], maximum = c->maximum->copy[COPY_INITIAL][i];
    return exp((double)s - (double)maximum) * (double)c->inverse_total->copy[COPY_INITIAL][i];
}

/* delta of a row; slack: how large its terms are, with their errors. */
static double exact_delta(const backward_case *c, size_t i, double *slack)
{
    double delta = (double)c->delta->copy[COPY_INITIAL][i], size = 0;
    *slack = fabs(delta);
    if (!c->own_delta) return delta;
    delta = 0;
    for (size_t j = 0; j < c->n; j++) {
        const double term = exact_p(c, i, j) * (double)c->dy->copy[COPY_INITIAL][i * c->lddy + j];
        delta += term;
        size += fabs(term);
    }
    *slack = 2 * size;
    return delta;
}

static bool compare_softmax_row(test_run *run, const backward_case *c, size_t i)
{
    double slack;
    const double delta = exact_delta(c, i, &slack);
    for (size_t j = 0; j < c->n; j++) {
        const float s = c->x->copy[COPY_INITIAL][i * c->ldx + j], maximum = c->maximum->copy[COPY_INITIAL][i];
        const double p = exact_p(c, i, j), dp = (double)c->dy->copy[COPY_INITIAL][i * c->lddy + j];
        const double limit = is_hidden(c, i, j) ? 1 : 8 + fabs((double)s - (double)maximum);
        if (!run_error(run, "p", i * c->ldx + j, (double)c->x->copy[COPY_TESTED][i * c->ldx + j], p, UNIT_EPS_S,
                       EPS * p + 0x1p-126, limit) ||
            !run_error(run, "ds", i * c->lddy + j, (double)c->dy->copy[COPY_TESTED][i * c->lddy + j], p * (dp - delta),
                       UNIT_EPS_S, EPS * p * (fabs(dp) + slack) + 0x1p-126, limit + 4))
            return false;
    }
    return true;
}

static void softmax_backward_body(test_run *run, const void *parameters)
{
    backward_case c = *(const backward_case *)parameters;
    c.ldx = random_ld(run, c.n);
    c.lddy = random_ld(run, c.n);
    c.x = run_buffer(run, "s", matrix_span(c.rows, c.n, c.ldx), BUFFER_OUTPUT);
    c.dy = run_buffer(run, "dp", matrix_span(c.rows, c.n, c.lddy), BUFFER_OUTPUT_ANY_ZERO);
    c.gamma = run_buffer(run, "key_bias", c.optional ? c.n : 0, BUFFER_INPUT);
    c.maximum = run_buffer(run, "maximum", c.rows, BUFFER_INPUT);
    c.inverse_total = run_buffer(run, "inverse_total", c.rows, BUFFER_INPUT);
    c.delta = run_buffer(run, "delta", c.rows, BUFFER_INPUT);
    fill_bell(run, c.x, c.rows, c.n, c.ldx);
    fill_bell(run, c.dy, c.rows, c.n, c.lddy);
    fill_bell(run, c.delta, 1, c.rows, c.rows);
    for (size_t j = 0; c.optional && j < c.n; j++)
        c.gamma->copy[COPY_INITIAL][j] = random_index(run, 3) == 0 ? -INFINITY : 0.0f;
    for (size_t i = 0; i < c.rows; i++) {
        const bool all_hidden = c.kind == 1 && i == 0;
        float maximum = -INFINITY;
        for (size_t j = 0; j < c.n; j++) {
            float *s = c.x->copy[COPY_INITIAL] + i * c.ldx + j;
            if (all_hidden) *s = -INFINITY;
            if (*s > maximum) maximum = *s;
        }
        c.maximum->copy[COPY_INITIAL][i] = maximum;
        c.inverse_total->copy[COPY_INITIAL][i] = all_hidden ? 0.0f : random_uniform(run, 0.1f, 1.0f);
    }
    if (!run_kernels(run, call_softmax_backward, softmax_backward_task_for, &c)) return;
    for (size_t i = 0; i < c.rows; i++)
        if (!compare_softmax_row(run, &c, i)) return;
}

void check_softmax_backward(test_run *run)
{
    backward_case c = {0};
    for (c.kind = 0; c.kind < 2; c.kind++)
        for (c.n = 1; c.n <= 5 * PANEL + 1; c.n++)
            for (c.rows = 0; c.rows <= 3; c.rows++) {
                c.optional = (c.n + c.rows) % 2;
                c.own_delta = c.n / 2 % 2;
                run_case(run, 12, softmax_backward_body, &c, "%zu rows of %zu keys%s%s%s", c.rows, c.n,
                         c.optional ? ", mask" : "", c.kind ? ", nothing seen" : "", c.own_delta ? ", own sum" : "");
            }
}

/* ------------------------------------------------------------------------------------------------------------- adam */

static void call_adam(const kernels *table, const void *task) { table->adam_f32(task); }

static const void *adam_task_for(void *context, int copy)
{
    static adam_task task;
    const backward_case *c = context;
    task = c->adam;
    task.n = c->n;
    task.w = c->x->copy[copy];
    task.m = c->dx->copy[copy];
    task.v = c->normal->copy[copy];
    task.g = c->dy->copy[copy];
    return &task;
}

static bool compare_adam(test_run *run, const backward_case *c, size_t e)
{
    const adam_task *a = &c->adam;
    const double w = (double)c->x->copy[COPY_INITIAL][e], g = (double)a->scale * (double)c->dy->copy[COPY_INITIAL][e];
    const double m = (double)a->b1 * (double)c->dx->copy[COPY_INITIAL][e] + (double)a->c1 * g;
    const double v = (double)a->b2 * (double)c->normal->copy[COPY_INITIAL][e] + (double)a->c2 * g * g;
    const double size_m = (double)a->b1 * fabs((double)c->dx->copy[COPY_INITIAL][e]) + (double)a->c1 * fabs(g);
    const double root = a->coupled ? sqrt(v) + (double)a->eps : sqrt(v) * (double)a->inverse_root + (double)a->eps;
    const double decayed = a->coupled ? w + (double)a->rate * (double)a->decay * w : (double)a->keep * w;
    return run_error(run, "m", e, (double)c->dx->copy[COPY_TESTED][e], m, UNIT_EPS_S, EPS * size_m, 4) &&
           run_error(run, "v", e, (double)c->normal->copy[COPY_TESTED][e], v, UNIT_EPS_S, EPS * v, 8) &&
           run_error(run, "w", e, (double)c->x->copy[COPY_TESTED][e], decayed + (double)a->rate * m / root, UNIT_EPS_S,
                     EPS * (fabs(w) + fabs((double)a->rate) * size_m / root), 16);
}

static void adam_body(test_run *run, const void *parameters)
{
    backward_case c = *(const backward_case *)parameters;
    c.x = run_buffer(run, "w", c.n, BUFFER_OUTPUT);
    c.dx = run_buffer(run, "m", c.n, BUFFER_OUTPUT);
    c.normal = run_buffer(run, "v", c.n, BUFFER_OUTPUT);
    c.dy = run_buffer(run, "g", c.n, BUFFER_INPUT);
    fill_bell(run, c.x, 1, c.n, c.n);
    fill_bell(run, c.dx, 1, c.n, c.n);
    fill_bell(run, c.dy, 1, c.n, c.n);
    for (size_t e = 0; e < c.n; e++) c.normal->copy[COPY_INITIAL][e] = random_uniform(run, 0.01f, 1.0f);
    c.adam = (adam_task){.scale = 0.37f,
                         .b1 = 0.9f,
                         .c1 = 0.1f,
                         .b2 = 0.999f,
                         .c2 = 0.001f,
                         .eps = 1e-6f,
                         .rate = -3e-3f,
                         .inverse_root = 3.1f,
                         .keep = 0.98f,
                         .decay = 0.02f,
                         .coupled = c.optional};
    if (!run_kernels(run, call_adam, adam_task_for, &c)) return;
    for (size_t e = 0; e < c.n; e++)
        if (!compare_adam(run, &c, e)) return;
}

void check_adam(test_run *run)
{
    backward_case c = {0};
    for (c.n = 0; c.n <= 5 * PANEL + 1; c.n++) {
        c.optional = c.n % 2;
        run_case(run, 4, adam_body, &c, "%zu weights, %s", c.n, c.optional ? "coupled" : "not coupled");
    }
}
