/* Describes rows of the forward pass: softmax_f32, layernorm_f32, activate_f32, dropout_f32.
 *
 * SPDX-License-Identifier: MIT */
#include <math.h>

#include "check/kernels/activations.h"
#include "train/state/counters.h"

/* ------------------------------------------------------------------------------------------------------ softmax_f32 */

enum { SOFTMAX_S, SOFTMAX_KEY_BIAS, SOFTMAX_MAXIMUM, SOFTMAX_TOTAL, SOFTMAX_RESCALE };

/* In a first chunk maximum and total are only written, and rescale is not touched at all: it is NULL. */
static void softmax_f32_lay_out(kernel_problem *p)
{
    const bool is_damaged = has_option(p, DAMAGED), later = has_option(p, LATER_CHUNK);
    const array_kind kind = is_damaged ? ARRAY_OUTPUT_ANY : ARRAY_OUTPUT;
    take_matrix(p, SOFTMAX_S, "s", kind, p->rows, p->columns, 1);
    if (has_option(p, WITH_MASK)) take_vector(p, SOFTMAX_KEY_BIAS, "key_bias", ARRAY_INPUT, p->columns, 0);
    take_vector(p, SOFTMAX_MAXIMUM, "maximum", is_damaged ? kind : ARRAY_OUTPUT_ANY_ZERO, p->rows, later ? 1 : 0);
    take_vector(p, SOFTMAX_TOTAL, "total", kind, p->rows, 0);
    if (later) take_vector(p, SOFTMAX_RESCALE, "rescale", kind, p->rows, 0);
}

static void softmax_f32_fill(kernel_problem *p)
{
    for (size_t j = 0; has_option(p, WITH_MASK) && j < p->columns; j++)
        given_in(p, SOFTMAX_KEY_BIAS)[j] = draw_below(p, 3) == 0 ? -INFINITY : 0.0f;
    for (size_t i = 0; has_option(p, LATER_CHUNK) && i < p->rows; i++)
        given_in(p, SOFTMAX_TOTAL)[i] = draw_uniform(p, 1.0f, 300.0f);
    if (has_option(p, DAMAGED)) /* Only one row is damaged, so that the others can be checked. */
        given_in(p, SOFTMAX_S)[p->rows / 2 * p->arrays[SOFTMAX_S].ld + draw_below(p, p->columns)] = NAN;
}

static void softmax_f32_call(const kernels *table, const kernel_problem *p)
{
    const softmax_task task = {.rows = p->rows,
                               .keys = p->columns,
                               .s = now_in(p, SOFTMAX_S),
                               .lds = p->arrays[SOFTMAX_S].ld,
                               .key_bias = now_in(p, SOFTMAX_KEY_BIAS),
                               .maximum = now_in(p, SOFTMAX_MAXIMUM),
                               .total = now_in(p, SOFTMAX_TOTAL),
                               .rescale = now_in(p, SOFTMAX_RESCALE),
                               .first = !has_option(p, LATER_CHUNK)};
    table->softmax_f32(&task);
}

/* Judges the exponential of a difference that was rounded to float32: within 2 ULP, and never subnormal. */
static exact_value exponential(float difference)
{
    const double want = difference < -87.33654f ? 0.0 : exp((double)difference);
    return (exact_value){want, ulp_of(want), 2, UNIT_ULP};
}

static float softmax_logit(const kernel_problem *p, size_t i, size_t j)
{
    const float s = given_in(p, SOFTMAX_S)[i * p->arrays[SOFTMAX_S].ld + j];
    return has_option(p, WITH_MASK) ? s + given_in(p, SOFTMAX_KEY_BIAS)[j] : s;
}

static bool expect_softmax_row(const kernel_problem *p, const exact_judge *judge, size_t i)
{
    const bool later = has_option(p, LATER_CHUNK);
    const float old = later ? given_in(p, SOFTMAX_MAXIMUM)[i] : -INFINITY;
    float maximum = old;
    for (size_t j = 0; j < p->columns; j++) maximum = fmaxf(maximum, softmax_logit(p, i, j));
    if (!expect_result(p, judge, SOFTMAX_MAXIMUM, i, (exact_value){(double)maximum, 1, 0, UNIT_ULP})) return false;

    const float shift = maximum == -INFINITY ? 0.0f : maximum;
    double sum = 0;
    for (size_t j = 0; j < p->columns; j++) {
        const exact_value want = exponential(softmax_logit(p, i, j) - shift);
        if (!expect_result(p, judge, SOFTMAX_S, i * p->arrays[SOFTMAX_S].ld + j, want)) return false;
        sum += want.value;
    }
    /* Counts the roundings of the total: the longest of 16 chains, the tree, the step from the chunks before, and 2 ULP
     * of the exponentials. */
    const double limit = (double)(p->columns + PANEL - 1) / PANEL + 4 + 2 + 4;
    if (later) {
        const exact_value factor = exponential(old - shift);
        if (!expect_result(p, judge, SOFTMAX_RESCALE, i, factor)) return false;
        sum += (double)given_in(p, SOFTMAX_TOTAL)[i] * factor.value;
    }
    return expect_sum(p, judge, SOFTMAX_TOTAL, i, (exact_sum){sum, sum}, limit);
}

/* A NaN must appear in its row and in no other. */
static void softmax_f32_exact(const kernel_problem *p, const exact_judge *judge)
{
    for (size_t i = 0; i < p->rows; i++) {
        const bool is_hurt = has_option(p, DAMAGED) && i == p->rows / 2;
        if (is_hurt && !expect_result(p, judge, SOFTMAX_TOTAL, i, (exact_value){NAN, 1, 0, UNIT_EPS_S})) return;
        if (!is_hurt && !expect_softmax_row(p, judge, i)) return;
    }
}

DESCRIBE_KERNEL(softmax_f32, "softmax", .fill = softmax_f32_fill, .drawn = {8, 0, KEY_CHUNK}, .measured = {96, 0, 512},
                .optional = WITH_MASK | LATER_CHUNK, .most_columns = KEY_CHUNK, .moved = {4, 0, 0}, .restored = true)

/* ---------------------------------------------------------------------------------------------------- layernorm_f32 */

enum { NORM_X, NORM_Y, NORM_GAMMA, NORM_BETA };

static const float norm_epsilons[] = {1e-7f, 1e-12f, 1e-5f};

static float epsilon_of(const kernel_problem *p) { return norm_epsilons[p->plain ? 0 : p->rows % 3]; }

static void layernorm_f32_lay_out(kernel_problem *p)
{
    const bool in_place = has_option(p, IN_PLACE);
    take_matrix(p, NORM_X, "x", in_place ? ARRAY_OUTPUT : ARRAY_INPUT, p->rows, p->columns, 1);
    if (!in_place) take_matrix(p, NORM_Y, "y", ARRAY_OUTPUT, p->rows, p->columns, 0);
    take_vector(p, NORM_GAMMA, "gamma", ARRAY_INPUT, p->columns, 1);
    take_vector(p, NORM_BETA, "beta", ARRAY_INPUT, p->columns, 0.1f);
}

static size_t norm_output(const kernel_problem *p) { return has_option(p, IN_PLACE) ? NORM_X : NORM_Y; }

static void layernorm_f32_call(const kernels *table, const kernel_problem *p)
{
    const size_t y = norm_output(p);
    table->layernorm_f32(now_in(p, y), p->arrays[y].ld, now_in(p, NORM_X), p->arrays[NORM_X].ld, now_in(p, NORM_GAMMA),
                         now_in(p, NORM_BETA), p->rows, p->columns, epsilon_of(p));
}

static bool expect_norm_row(const kernel_problem *p, const exact_judge *judge, size_t i)
{
    const double n = (double)p->columns;
    const size_t out = norm_output(p);
    double mean = 0, size = 0, variance = 0;
    for (size_t e = 0; e < p->columns; e++) {
        mean += given(p, NORM_X, i, e) / n;
        size += fabs(given(p, NORM_X, i, e)) / n;
    }
    for (size_t e = 0; e < p->columns; e++)
        variance += (given(p, NORM_X, i, e) - mean) * (given(p, NORM_X, i, e) - mean) / n;

    /* Bounds the error to first order: the mean adds m = ceil(n / 16) + 5 roundings of mean |x|; r half as many of the
     * variance, and its own; d, the product and the fma one each. What the error of the mean does to the variance is of
     * second order: below 2 up to |mean| = 10^4 sigma. Rows of normal numbers stay below 4. */
    const double limit = 1.5 * (double)((p->columns + PANEL - 1) / PANEL) + 16;
    const double r = 1.0 / sqrt(variance + (double)epsilon_of(p));
    for (size_t e = 0; e < p->columns; e++) {
        const double x = given(p, NORM_X, i, e), gamma = given(p, NORM_GAMMA, 0, e), beta = given(p, NORM_BETA, 0, e);
        const exact_sum want = {gamma * (x - mean) * r + beta, (fabs(x) + size) * r * fabs(gamma) + fabs(beta)};
        if (!expect_sum(p, judge, out, i * p->arrays[out].ld + e, want, limit)) return false;
    }
    return true;
}

static void layernorm_f32_exact(const kernel_problem *p, const exact_judge *judge)
{
    for (size_t i = 0; i < p->rows; i++)
        if (!expect_norm_row(p, judge, i)) return;
}

DESCRIBE_KERNEL(layernorm_f32, "layernorm", .drawn = {8, 0, 1000}, .measured = {96, 0, 768}, .optional = IN_PLACE,
                .moved = {2, 0, 0})

/* ----------------------------------------------------------------------------------------------------- activate_f32 */

static void activate_f32_lay_out(kernel_problem *p)
{
    take_matrix(p, NORM_X, "x", ARRAY_OUTPUT, p->rows, p->columns, 1);
}

static void activate_f32_call(const kernels *table, const kernel_problem *p)
{
    for (size_t i = 0; i < p->rows; i++)
        table->activate_f32(now_in(p, NORM_X) + i * p->arrays[NORM_X].ld, p->columns, p->function);
}

static void activate_f32_exact(const kernel_problem *p, const exact_judge *judge)
{
    for (size_t i = 0; i < p->rows; i++)
        for (size_t e = 0; e < p->columns; e++)
            if (!expect_result(p, judge, NORM_X, i * p->arrays[NORM_X].ld + e,
                               activation_value(given(p, NORM_X, i, e), p->function)))
                return;
}

DESCRIBE_KERNEL(activate_f32, "activate", .drawn = {1, 0, 700}, .measured = {1, 0, 3072}, .has_function = true,
                .moved = {4, 0, 0}, .restored = true)

/* ------------------------------------------------------------------------------------------------------ dropout_f32 */

enum { DROPPED, PLACES };
static const counter_key dropout_key = {7, 0x80000001u};

/* Nothing is restored between measurements: with a scale of 1, values become 0 or stay. */
static float scale_of_kept(const kernel_problem *p) { return p->plain ? 1.0f : 1.25f; }

static void dropout_f32_lay_out(kernel_problem *p)
{
    static const uint32_t thresholds[] = {0x1999999au, 0, UINT32_MAX};
    p->threshold = thresholds[p->plain ? 0 : draw_below(p, 3)];
    p->first_counter = draw_flag(p) ? 128 : UINT32_MAX - 3; /* The counter of a column may wrap around. */
    take_matrix(p, DROPPED, "x", ARRAY_OUTPUT, p->rows, p->columns, 1);
    take_bytes(p, PLACES, "of", ARRAY_INPUT, p->rows * sizeof(dropout_row));
}

static void dropout_f32_fill(kernel_problem *p)
{
    dropout_row *of = raw_given(p, PLACES);
    for (size_t i = 0; i < p->rows; i++)
        of[i] = (dropout_row){(uint32_t)i + 5, UINT32_MAX - (uint32_t)i, (uint32_t)(i << 26 | 3)};
}

static void dropout_f32_call(const kernels *table, const kernel_problem *p)
{
    const dropout_task task = {.rows = p->rows,
                               .n = p->columns,
                               .x = now_in(p, DROPPED),
                               .ldx = p->arrays[DROPPED].ld,
                               .of = raw_in(p, PLACES),
                               .first = p->first_counter,
                               .seed = dropout_key.seed,
                               .step = dropout_key.step,
                               .threshold = p->threshold,
                               .scale = scale_of_kept(p)};
    table->dropout_f32(&task);
}

/* Computes the mask of the generator in train/state/counters.c by an implementation of its own. */
static void dropout_f32_exact(const kernel_problem *p, const exact_judge *judge)
{
    const dropout_row *of = raw_given(p, PLACES);
    uint32_t words[COUNTER_WORDS];
    for (size_t i = 0; i < p->rows; i++)
        for (size_t column = 0; column < p->columns; column++) {
            const uint32_t counter[COUNTER_WORDS] = {p->first_counter + (uint32_t)(column / 4), of[i].place,
                                                     of[i].sequence, of[i].site};
            philox4x32(counter, dropout_key, words);
            const bool is_dropped = words[column % 4] < p->threshold;
            const double want = is_dropped ? 0 : (double)scale_of_kept(p) * given(p, DROPPED, i, column);
            if (!expect_sum(p, judge, DROPPED, i * p->arrays[DROPPED].ld + column, (exact_sum){want, fabs(want)}, 1))
                return;
        }
}

DESCRIBE_KERNEL(dropout_f32, "dropout", .fill = dropout_f32_fill, .drawn = {12, 0, 300}, .measured = {96, 0, 512},
                .moved = {2, 0, 0})
