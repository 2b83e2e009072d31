/* Describes rows of the backward pass and the optimiser: layernorm_backward_f32, activate_backward_f32,
 * softmax_backward_f32, adam_f32.
 *
 * SPDX-License-Identifier: MIT */
#include <float.h>
#include <math.h>

#include "check/kernels/activations.h"

/* ------------------------------------------------------------------------------------------- layernorm_backward_f32 */

enum { BACK_X, BACK_DY, BACK_NORMAL, BACK_DX, BACK_GAMMA };
static const float norm_epsilon = 1e-7f;

static void layernorm_backward_f32_lay_out(kernel_problem *p)
{
    const bool in_place = has_option(p, IN_PLACE);
    const array_kind kind = in_place ? ARRAY_OUTPUT : ARRAY_INPUT;
    take_matrix(p, BACK_X, "x", kind, p->rows, p->columns, 1);
    take_matrix(p, BACK_DY, "dy", kind, p->rows, p->columns, 1);
    if (!in_place) take_matrix(p, BACK_NORMAL, "normal", ARRAY_OUTPUT, p->rows, p->columns, 0);
    if (!in_place) take_matrix(p, BACK_DX, "dx", ARRAY_OUTPUT, p->rows, p->columns, 0);
    if (has_option(p, WITH_GAIN)) take_vector(p, BACK_GAMMA, "gamma", ARRAY_INPUT, p->columns, 1);
}

static void layernorm_backward_f32_call(const kernels *table, const kernel_problem *p)
{
    const size_t normal = has_option(p, IN_PLACE) ? BACK_X : BACK_NORMAL,
                 dx = has_option(p, IN_PLACE) ? BACK_DY : BACK_DX;
    const layernorm_backward_task task = {.rows = p->rows,
                                          .n = p->columns,
                                          .dx = now_in(p, dx),
                                          .normal = now_in(p, normal),
                                          .x = now_in(p, BACK_X),
                                          .dy = now_in(p, BACK_DY),
                                          .gamma = now_in(p, BACK_GAMMA),
                                          .lddx = p->arrays[dx].ld,
                                          .ld_normal = p->arrays[normal].ld,
                                          .ldx = p->arrays[BACK_X].ld,
                                          .lddy = p->arrays[BACK_DY].ld,
                                          .eps = norm_epsilon};
    table->layernorm_backward_f32(&task);
}

/* Statistics of a row: its mean, r, mean(u) and mean(u normal), each with the mean magnitude of its terms. */
typedef struct norm_row {
    double mean, size, r;
    exact_sum average, slope;
} norm_row;

static double gradient_of(const kernel_problem *p, size_t i, size_t e)
{
    return given(p, BACK_DY, i, e) * (has_option(p, WITH_GAIN) ? given(p, BACK_GAMMA, 0, e) : 1);
}

static norm_row norm_row_of(const kernel_problem *p, size_t i)
{
    const double n = (double)p->columns;
    norm_row row = {0};
    double variance = 0;
    for (size_t e = 0; e < p->columns; e++) {
        row.mean += given(p, BACK_X, i, e) / n;
        row.size += fabs(given(p, BACK_X, i, e)) / n;
    }
    for (size_t e = 0; e < p->columns; e++)
        variance += (given(p, BACK_X, i, e) - row.mean) * (given(p, BACK_X, i, e) - row.mean) / n;
    row.r = 1 / sqrt(variance + (double)norm_epsilon);
    for (size_t e = 0; e < p->columns; e++) {
        const double u = gradient_of(p, i, e), x = given(p, BACK_X, i, e);
        add_term(&row.average, u / n);
        row.slope.value += u * (x - row.mean) * row.r / n;
        row.slope.terms += fabs(u) * (fabs(x) + row.size) * row.r / n;
    }
    return row;
}

static void layernorm_backward_f32_exact(const kernel_problem *p, const exact_judge *judge)
{
    const size_t normal_in = has_option(p, IN_PLACE) ? BACK_X : BACK_NORMAL,
                 dx_in = has_option(p, IN_PLACE) ? BACK_DY : BACK_DX;
    const double limit = 4 * (double)((p->columns + PANEL - 1) / PANEL) + 48;
    for (size_t i = 0; i < p->rows; i++) {
        const norm_row row = norm_row_of(p, i);
        for (size_t e = 0; e < p->columns; e++) {
            const double x = given(p, BACK_X, i, e), u = gradient_of(p, i, e), normal = (x - row.mean) * row.r;
            const double reach = (fabs(x) + row.size) * row.r, smallest = 0x1p-149 * (1 + row.r);
            const double dx = row.r * (u - row.average.value - normal * row.slope.value);
            const double terms = row.r * (fabs(u) + row.average.terms + reach * row.slope.terms);
            if (!expect_result(p, judge, normal_in, i * p->arrays[normal_in].ld + e,
                               (exact_value){normal, EPS * reach + smallest, limit, UNIT_EPS_S}) ||
                !expect_result(p, judge, dx_in, i * p->arrays[dx_in].ld + e,
                               (exact_value){dx, EPS * terms + smallest, limit, UNIT_EPS_S}))
                return;
        }
    }
}

DESCRIBE_KERNEL(layernorm_backward_f32, "layernorm_backward", .drawn = {8, 0, 1000}, .measured = {96, 0, 512},
                .optional = IN_PLACE | WITH_GAIN, .moved = {4, 0, 0})

/* -------------------------------------------------------------------------------------------- activate_backward_f32 */

enum { SLOPE_X, SLOPE_DY, SLOPE_Y };

static void activate_backward_f32_lay_out(kernel_problem *p)
{
    take_matrix(p, SLOPE_X, "x", ARRAY_INPUT, p->rows, p->columns, 1);
    take_matrix(p, SLOPE_DY, "dy", ARRAY_OUTPUT_ANY_ZERO, p->rows, p->columns, 1);
    if (has_option(p, WITH_Y)) take_matrix(p, SLOPE_Y, "y", ARRAY_OUTPUT_ANY_ZERO, p->rows, p->columns, 0);
}

/* In this range exp and its gradient stay finite. */
static void activate_backward_f32_fill(kernel_problem *p)
{
    enum { LARGEST_EXPONENT = 80 };
    const problem_array *x = &p->arrays[SLOPE_X];
    for (size_t e = 0; p->function == ACTIVATION_EXP && e < p->rows * p->columns; e++) {
        float *at = x->initial + place_in(x, e / p->columns, e % p->columns);
        if (*at > LARGEST_EXPONENT) *at = LARGEST_EXPONENT;
    }
}

static void activate_backward_f32_call(const kernels *table, const kernel_problem *p)
{
    const problem_array *x = &p->arrays[SLOPE_X], *dy = &p->arrays[SLOPE_DY], *y = &p->arrays[SLOPE_Y];
    for (size_t i = 0; i < p->rows; i++)
        table->activate_backward_f32(dy->at + i * dy->ld, y->at ? y->at + i * y->ld : NULL, x->at + i * x->ld,
                                     p->columns, p->function);
}

static bool expect_slope(const kernel_problem *p, const exact_judge *judge, size_t i, size_t e)
{
    enum { FLAT = 1000 }; /* beyond this argument no slope changes, only the sizes of the bounds */
    const double x = given(p, SLOPE_X, i, e), dy = given(p, SLOPE_DY, i, e);
    const size_t at = i * p->arrays[SLOPE_DY].ld + e, y = i * p->arrays[SLOPE_Y].ld + e;
    if (has_option(p, WITH_Y) && !expect_result(p, judge, SLOPE_Y, y, activation_value(x, p->function))) return false;
    if (isnan(x)) return expect_result(p, judge, SLOPE_DY, at, (exact_value){NAN, 1, 0, UNIT_EPS_S});
    exact_sum slope = exact_slope(fmax(fmin(x, FLAT), -FLAT), p->function);
    if (p->function != ACTIVATION_EXP && !(slope.terms <= FLAT)) slope.terms = 1;
    const double exact = dy * slope.value, want = fabs(exact) > (double)FLT_MAX ? copysign(INFINITY, dy) : exact;
    const double size = EPS * fabs(dy) * slope.terms + 0x1p-140 * fmax(1, fabs(dy));
    return expect_result(p, judge, SLOPE_DY, at, (exact_value){want, size, 16, UNIT_EPS_S});
}

static void activate_backward_f32_exact(const kernel_problem *p, const exact_judge *judge)
{
    for (size_t i = 0; i < p->rows; i++)
        for (size_t e = 0; e < p->columns; e++)
            if (!expect_slope(p, judge, i, e)) return;
}

DESCRIBE_KERNEL(activate_backward_f32, "activate_backward", .fill = activate_backward_f32_fill, .drawn = {1, 0, 700},
                .measured = {1, 0, 3072}, .optional = WITH_Y, .has_function = true, .moved = {5, 0, 0},
                .restored = true)

/* --------------------------------------------------------------------------------------------- softmax_backward_f32 */

enum { DS_S, DS_DP, DS_KEY_BIAS, DS_MAXIMUM, DS_INVERSE_TOTAL, DS_DELTA, DS_EXPONENTIALS };

static void softmax_backward_f32_lay_out(kernel_problem *p)
{
    const bool is_kept = has_option(p, WITH_EXPONENTIALS);
    if (is_kept) p->options &= ~(unsigned)WITH_MASK;
    take_matrix(p, DS_S, "s", ARRAY_OUTPUT, p->rows, p->columns, is_kept ? 0 : 1);
    if (is_kept) take_matrix(p, DS_EXPONENTIALS, "exponentials", ARRAY_INPUT, p->rows, p->columns, 1);
    take_matrix(p, DS_DP, "dp", ARRAY_OUTPUT_ANY_ZERO, p->rows, p->columns, 1);
    if (has_option(p, WITH_MASK)) take_vector(p, DS_KEY_BIAS, "key_bias", ARRAY_INPUT, p->columns, 0);
    take_vector(p, DS_MAXIMUM, "maximum", ARRAY_INPUT, p->rows, 0);
    take_vector(p, DS_INVERSE_TOTAL, "inverse_total", ARRAY_INPUT, p->rows, 0);
    if (!has_option(p, OWN_DELTA)) take_vector(p, DS_DELTA, "delta", ARRAY_INPUT, p->rows, 1);
}

static float backward_logit(const kernel_problem *p, size_t i, size_t j)
{
    const float s = given_in(p, DS_S)[i * p->arrays[DS_S].ld + j];
    return has_option(p, WITH_MASK) ? s + given_in(p, DS_KEY_BIAS)[j] : s;
}

static void softmax_backward_f32_fill(kernel_problem *p)
{
    for (size_t j = 0; has_option(p, WITH_MASK) && j < p->columns; j++)
        given_in(p, DS_KEY_BIAS)[j] = draw_below(p, 3) == 0 ? -INFINITY : 0.0f;
    for (size_t i = 0; i < p->rows && has_option(p, WITH_EXPONENTIALS); i++) {
        float *exponentials = given_in(p, DS_EXPONENTIALS) + i * p->arrays[DS_EXPONENTIALS].ld;
        for (size_t j = 0; j < p->columns; j++) exponentials[j] = draw_uniform(p, 0.0f, 1.0f);
        given_in(p, DS_MAXIMUM)[i] = NAN; /* The kernel reads no such value. */
        given_in(p, DS_INVERSE_TOTAL)[i] = draw_uniform(p, 0.1f, 1.0f);
    }
    for (size_t i = 0; i < p->rows && !has_option(p, WITH_EXPONENTIALS); i++) {
        float maximum = -INFINITY;
        for (size_t j = 0; j < p->columns; j++) maximum = fmaxf(maximum, backward_logit(p, i, j));
        given_in(p, DS_MAXIMUM)[i] = maximum;
        given_in(p, DS_INVERSE_TOTAL)[i] = maximum == -INFINITY ? 0.0f : draw_uniform(p, 0.1f, 1.0f);
    }
}

static void softmax_backward_f32_call(const kernels *table, const kernel_problem *p)
{
    const softmax_backward_task task = {.rows = p->rows,
                                        .keys = p->columns,
                                        .s = now_in(p, DS_S),
                                        .dp = now_in(p, DS_DP),
                                        .lds = p->arrays[DS_S].ld,
                                        .lddp = p->arrays[DS_DP].ld,
                                        .key_bias = now_in(p, DS_KEY_BIAS),
                                        .maximum = now_in(p, DS_MAXIMUM),
                                        .inverse_total = now_in(p, DS_INVERSE_TOTAL),
                                        .delta = now_in(p, DS_DELTA),
                                        .exponentials = now_in(p, DS_EXPONENTIALS),
                                        .ld_exponentials = p->arrays[DS_EXPONENTIALS].ld};
    table->softmax_backward_f32(&task);
}

/* Computes p of a key; growth: the factor by which the rounding of the logit's difference exceeds eps. */
static double probability_of(const kernel_problem *p, size_t i, size_t j, double *growth)
{
    *growth = 1;
    if (has_option(p, WITH_EXPONENTIALS))
        return given(p, DS_EXPONENTIALS, i, j) * (double)given_in(p, DS_INVERSE_TOTAL)[i];
    const double s = (double)backward_logit(p, i, j), top = (double)given_in(p, DS_MAXIMUM)[i];
    const bool is_hidden = isinf(s) || isinf(top);
    *growth = is_hidden ? 1 : 1 + fmin(fabs(s - top), 88) / 8;
    return is_hidden ? 0 : exp(s - top) * (double)given_in(p, DS_INVERSE_TOTAL)[i];
}

static exact_sum delta_of(const kernel_problem *p, size_t i)
{
    exact_sum delta = {0};
    double growth;
    if (!has_option(p, OWN_DELTA)) add_term(&delta, given(p, DS_DELTA, 0, i));
    for (size_t j = 0; has_option(p, OWN_DELTA) && j < p->columns; j++) {
        const double term = probability_of(p, i, j, &growth) * given(p, DS_DP, i, j);
        delta.value += term;
        delta.terms += 2 * fabs(term) * growth;
    }
    return delta;
}

static void softmax_backward_f32_exact(const kernel_problem *p, const exact_judge *judge)
{
    enum { LIMIT = 8, LIMIT_OF_DS = 12 };
    for (size_t i = 0; i < p->rows; i++) {
        const exact_sum delta = delta_of(p, i);
        for (size_t j = 0; j < p->columns; j++) {
            double growth;
            const double probability = probability_of(p, i, j, &growth), dp = given(p, DS_DP, i, j);
            const double size = (EPS * probability + 0x1p-126) * growth;
            const double reach = size * (fabs(dp) + delta.terms) + 0x1p-126;
            if (!expect_result(p, judge, DS_S, i * p->arrays[DS_S].ld + j,
                               (exact_value){probability, size, LIMIT, UNIT_EPS_S}) ||
                !expect_result(p, judge, DS_DP, i * p->arrays[DS_DP].ld + j,
                               (exact_value){probability * (dp - delta.value), reach, LIMIT_OF_DS, UNIT_EPS_S}))
                return;
        }
    }
}

DESCRIBE_KERNEL(softmax_backward_f32, "softmax_backward", .fill = softmax_backward_f32_fill, .drawn = {8, 0, KEY_CHUNK},
                .measured = {96, 0, 512}, .optional = WITH_MASK | OWN_DELTA | WITH_EXPONENTIALS, .moved = {8, 0, 0},
                .restored = true)

/* --------------------------------------------------------------------------------------------------------- adam_f32 */

/* The arrays have this order in memory, because the number of lines between two streams changes the time by a third. */
enum { GRADIENT, SQUARES, WEIGHTS, MOMENTUM };

static void adam_f32_lay_out(kernel_problem *p)
{
    const size_t n = p->rows * p->columns;
    take_vector(p, WEIGHTS, "w", ARRAY_OUTPUT, n, 1);
    take_vector(p, MOMENTUM, "m", ARRAY_OUTPUT, n, 1);
    take_vector(p, SQUARES, "v", ARRAY_OUTPUT, n, 1);
    take_vector(p, GRADIENT, "g", ARRAY_INPUT, n, 1);
}

static void adam_f32_fill(kernel_problem *p)
{
    for (size_t e = 0; e < p->rows * p->columns; e++) given_in(p, SQUARES)[e] = fabsf(given_in(p, SQUARES)[e]);
}

static adam_task adam_step(const kernel_problem *p)
{
    const adam_task measured = {.scale = 1,
                                .b1 = 0.9f,
                                .c1 = 0.1f,
                                .b2 = 0.999f,
                                .c2 = 0.001f,
                                .eps = 1e-6f,
                                .rate = -1e-6f,
                                .inverse_root = 1,
                                .keep = 1,
                                .coupled = has_option(p, WITH_COUPLING)};
    adam_task task = measured;
    if (!p->plain)
        task.scale = 0.37f, task.rate = -3e-3f, task.inverse_root = 3.1f, task.keep = 0.98f, task.decay = 0.02f;
    return task;
}

static void adam_f32_call(const kernels *table, const kernel_problem *p)
{
    adam_task task = adam_step(p);
    task.n = p->rows * p->columns;
    task.w = now_in(p, WEIGHTS);
    task.m = now_in(p, MOMENTUM);
    task.v = now_in(p, SQUARES);
    task.g = now_in(p, GRADIENT);
    table->adam_f32(&task);
}

static bool expect_step(const kernel_problem *p, const exact_judge *judge, const adam_task *a, size_t e)
{
    const double b1 = (double)a->b1, c1 = (double)a->c1, eps = (double)a->eps, rate = (double)a->rate;
    const double w = given(p, WEIGHTS, 0, e), before = given(p, MOMENTUM, 0, e);
    const double g = (double)a->scale * given(p, GRADIENT, 0, e);
    const double m = b1 * before + c1 * g, size = b1 * fabs(before) + c1 * fabs(g);
    const double v = (double)a->b2 * given(p, SQUARES, 0, e) + (double)a->c2 * g * g;
    const double root = a->coupled ? sqrt(v) + eps : sqrt(v) * (double)a->inverse_root + eps;
    const double kept = a->coupled ? w + rate * (double)a->decay * w : (double)a->keep * w;
    const double step = fabs(w) + fabs(rate) * size / root, smallest = 0x1p-149 * (1 + 1 / root);
    return expect_sum(p, judge, MOMENTUM, e, (exact_sum){m, size}, 4) &&
           expect_sum(p, judge, SQUARES, e, (exact_sum){v, v}, 8) &&
           expect_result(p, judge, WEIGHTS, e,
                         (exact_value){kept + rate * m / root, EPS * step + smallest, 16, UNIT_EPS_S});
}

static void adam_f32_exact(const kernel_problem *p, const exact_judge *judge)
{
    const adam_task task = adam_step(p);
    for (size_t e = 0; e < p->rows * p->columns; e++)
        if (!expect_step(p, judge, &task, e)) return;
}

DESCRIBE_KERNEL(adam_f32, "adam", .fill = adam_f32_fill, .drawn = {1, 0, 700}, .measured = {1, 0, 3072},
                .optional = WITH_COUPLING, .moved = {7, 0, 0})
