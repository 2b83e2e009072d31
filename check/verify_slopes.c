/* Backward kernels of activations and of the softmax. Scales and limits are those of core/kernels.h.
 *
 * SPDX-License-Identifier: MIT */
#include <float.h>
#include <math.h>

#include "check/verify_training.h"

/* s + p s (1 - s) of the logistic s(u), and its size. */
static exact_sum gate_slope(double u, double p)
{
    const double s = 1 / (1 + exp(-u)), w = exp(-fabs(u)) / pow(1 + exp(-fabs(u)), 2);
    return (exact_sum){s + p * w, (s + fabs(p * w)) * (1 + fabs(u))};
}

static exact_sum derivative_of(kernel_activation function, double x)
{
    const double root = 2 * sqrt(2 / M_PI), cubic = 0.044715;
    switch (function) {
    case KERNEL_GELU: return (exact_sum){0.5 * erfc(-x * M_SQRT1_2) + x * exp(-x * x / 2) / sqrt(2 * M_PI), 1};
    case KERNEL_GELU_TANH: return gate_slope(root * (x + cubic * x * x * x), x * root * (1 + 3 * cubic * x * x));
    case KERNEL_GELU_QUICK: return gate_slope(1.702 * x, 1.702 * x);
    case KERNEL_RELU: return (exact_sum){x > 0, 1};
    case KERNEL_SILU: return gate_slope(x, x);
    case KERNEL_TANH: return (exact_sum){1 - tanh(x) * tanh(x), 1};
    case KERNEL_SIGMOID: return (exact_sum){exp(-fabs(x)) / pow(1 + exp(-fabs(x)), 2), 1};
    default: return (exact_sum){exp(x), exp(x) + FLT_MIN};
    }
}

void round_activate_backward(verify_rounds *k)
{
    enum { FLAT = 1000, LARGEST_EXPONENT = 80 }; /* beyond FLAT no slope changes; exp and its gradient stay finite */
    const kernel_activation function = (kernel_activation)rounds_below(k, KERNEL_EXP + 1);
    const size_t n = rounds_size(k, 700);
    rounds_fill(k, k->a, n);
    for (size_t e = 0; function == KERNEL_EXP && e < n; e++) k->a[e] = fminf(k->a[e], LARGEST_EXPONENT);
    rounds_start(k, n);
    rounds_keep(k, k->b, n);
    EACH_TIER(t) k->tables[t].activate_backward_f32(k->out[t], NULL, k->a, n, function);
    rounds_compare(k, n);
    for (size_t e = 0; e < n; e++) {
        const double x = fmax(fmin((double)k->a[e], FLAT), -FLAT), dy = (double)k->b[e];
        exact_sum slope = derivative_of(function, x);
        if (function != KERNEL_EXP && !(slope.terms <= FLAT)) slope.terms = 1;
        const double exact = dy * slope.value, want = fabs(exact) > (double)FLT_MAX ? copysign(INFINITY, dy) : exact;
        EACH_TIER(t)
        verify_errors_add(&k->errors[t], TESTED(t, e), want, FLT_EPSILON * fabs(dy) * slope.terms + 512 * FLT_TRUE_MIN,
                          "element %zu", e, 0);
    }
}

typedef struct softmax_rows {
    const float *s, *dp; /* as they were, [rows][ld] */
    const float *key_bias;
    float maximum[8], inverse_total[8], delta[8];
    size_t ld, keys;
    bool own_delta;
} softmax_rows;

/* p of a key, and how far its logit lies below the maximum, as far as that matters to the error. */
static double probability_of(const softmax_rows *rows, size_t i, size_t j, double *below)
{
    const double top = (double)rows->maximum[i], s = (double)rows->s[i * rows->ld + j] + (double)rows->key_bias[j];
    *below = isinf(s) ? 0 : fmin(top - s, 88);
    return isinf(s) ? 0 : exp(s - top) * (double)rows->inverse_total[i];
}

static exact_sum delta_of(const softmax_rows *rows, size_t i)
{
    exact_sum delta = {(double)rows->delta[i], fabs((double)rows->delta[i])};
    if (!rows->own_delta) return delta;
    delta = (exact_sum){0};
    for (size_t j = 0; j < rows->keys; j++) {
        double below;
        const double term = probability_of(rows, i, j, &below) * (double)rows->dp[i * rows->ld + j];
        delta.value += term;
        delta.terms += fabs(term) * (2 + below);
    }
    return delta;
}

/* s becomes p at the beginning of the output, dp lies after it. */
void round_softmax_backward(verify_rounds *k)
{
    const size_t rows = 1 + rounds_below(k, 8), keys = rounds_size(k, KEY_CHUNK), ld = keys + rounds_below(k, 5);
    const bool masked = rounds_below(k, 2);
    softmax_rows c = {.s = k->a, .dp = k->a + rows * ld, .key_bias = k->extra, .ld = ld, .keys = keys};
    c.own_delta = rounds_below(k, 2);
    rounds_start(k, 2 * rows * ld);
    rounds_keep(k, k->a, 2 * rows * ld);
    for (size_t j = 0; j < keys; j++) k->extra[j] = masked && rounds_below(k, 3) == 0 ? -INFINITY : 0;
    for (size_t i = 0; i < rows; i++) {
        c.maximum[i] = -INFINITY;
        for (size_t j = 0; j < keys; j++) c.maximum[i] = fmaxf(c.maximum[i], c.s[i * ld + j] + k->extra[j]);
        c.inverse_total[i] = isinf(c.maximum[i]) ? 0 : 1 / (float)(1 + rounds_below(k, 10));
        c.delta[i] = rounds_number(k);
    }
    EACH_TIER(t)
    {
        const softmax_backward_task task = {.rows = rows,
                                            .keys = keys,
                                            .s = k->out[t],
                                            .dp = k->out[t] + rows * ld,
                                            .lds = ld,
                                            .lddp = ld,
                                            .key_bias = masked ? k->extra : NULL,
                                            .maximum = c.maximum,
                                            .inverse_total = c.inverse_total,
                                            .delta = c.own_delta ? NULL : c.delta};
        k->tables[t].softmax_backward_f32(&task);
    }
    rounds_compare(k, 2 * rows * ld);
    for (size_t i = 0; i < rows; i++) {
        const exact_sum delta = delta_of(&c, i);
        for (size_t j = 0; j < keys; j++) {
            double below;
            const double p = probability_of(&c, i, j, &below), dp = (double)c.dp[i * ld + j];
            const double unit = FLT_EPSILON * (p + 1e-30) * (1 + below);
            EACH_TIER(t)
            {
                verify_errors_add(&k->errors[t], TESTED(t, i * ld + j), p, unit, "p of row %zu, key %zu", i, j);
                verify_errors_add(&k->errors[t], TESTED(t, (rows + i) * ld + j), p * (dp - delta.value),
                                  unit * (fabs(dp) + delta.terms + 1e-7), "row %zu, key %zu", i, j);
            }
        }
    }
}
