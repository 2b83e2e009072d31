/* The activations and their slopes in float64, and how far a kernel may be from them. SPDX-License-Identifier: MIT */
#include "check/kernels/activations.h"

#include <float.h>
#include <math.h>

const char *activation_name(kernel_activation function)
{
    static const char *const names[] = {[KERNEL_GELU] = "gelu",
                                        [KERNEL_GELU_TANH] = "gelu_tanh",
                                        [KERNEL_GELU_QUICK] = "gelu_quick",
                                        [KERNEL_RELU] = "relu",
                                        [KERNEL_SILU] = "silu",
                                        [KERNEL_TANH] = "tanh",
                                        [KERNEL_SIGMOID] = "sigmoid",
                                        [KERNEL_EXP] = "exp"};
    return names[function];
}

static double logistic(const mathematics *m, double x)
{
    return x < 0 ? m->exp(x) / (1 + m->exp(x)) : 1 / (1 + m->exp(-x));
}

/* 2 sqrt(2 / pi) (x + 0.044715 x^3) and 1.702 x. */
double gate_argument(double x, kernel_activation function)
{
    if (function == KERNEL_GELU_TANH) return 2 * sqrt(2 / acos(-1)) * (x + 0.044715 * x * x * x);
    if (function == KERNEL_GELU_QUICK) return 1.702 * x;
    return x;
}

double activation_by(const mathematics *m, double x, kernel_activation function)
{
    if (isnan(x)) return x;
    switch (function) {
    case KERNEL_GELU: return x == -INFINITY ? 0 : 0.5 * x * m->erfc(-x / sqrt(2));
    case KERNEL_GELU_TANH:
    case KERNEL_GELU_QUICK:
    case KERNEL_SILU: return x == -INFINITY ? 0 : x * logistic(m, gate_argument(x, function));
    case KERNEL_RELU: return x < 0 ? 0 : x;
    case KERNEL_TANH: return m->tanh(x);
    case KERNEL_SIGMOID: return logistic(m, x);
    case KERNEL_EXP: return m->exp(x);
    }
    return NAN;
}

double exact_activation(double x, kernel_activation function)
{
    static const mathematics c_library = {exp, tanh, erfc};
    return activation_by(&c_library, x, function);
}

typedef struct error_bounds {
    double ulp, absolute; /* either is enough */
    double growth;        /* of an ULP */
} error_bounds;

static double gelu_ulp(double x) { return x > 0 ? 2.5 : x > -1 ? 3 : x >= -3 ? 6 : x >= -5 ? 11 : x >= -5.5 ? 18 : 25; }

static error_bounds bounds_of(double x, kernel_activation function)
{
    /* What is below the exponential's range counts as 0. To round the argument u of a gate costs as much as u is large.
     */
    const double u = gate_argument(x, function);
    const double gate_absolute = u < -87.3 ? 0x1p-119 : 0;
    const double amplification = isfinite(u) ? fabs(u) / (1 + exp(u)) : 0;
    switch (function) {
    case KERNEL_GELU: return (error_bounds){gelu_ulp(x), x < -5.75 ? 2.7e-10 : 0, 1};
    case KERNEL_GELU_TANH: return (error_bounds){3.7, gate_absolute, 1 + 3 * amplification / 3.7};
    case KERNEL_GELU_QUICK: return (error_bounds){3.7, gate_absolute, 1 + 1.5 * amplification / 3.7};
    case KERNEL_SILU: return (error_bounds){3.7, gate_absolute, 1};
    case KERNEL_RELU: return (error_bounds){0, 0, 1};
    case KERNEL_TANH: return (error_bounds){1.4, 0, 1};
    case KERNEL_SIGMOID: return (error_bounds){2.7, x < -87.3 ? 0x1p-126 : 0, 1};
    case KERNEL_EXP: return (error_bounds){x > 88.37 ? 6 : 1.3, x < -87.3365 ? 0x1p-126 : 0, 1};
    }
    return (error_bounds){0, 0, 1};
}

exact_value activation_value(double x, kernel_activation function)
{
    const double y = exact_activation(x, function), want = y > (double)FLT_MAX ? INFINITY : y;
    const error_bounds allowed = bounds_of(x, function);
    const double ulp = ulp_of(want) * allowed.growth;
    const double size = allowed.ulp > 0 ? fmax(ulp, allowed.absolute / allowed.ulp) : ulp;
    return (exact_value){want, size, allowed.ulp, UNIT_ULP};
}

/* s + p s (1 - s) of the logistic function s(u). */
static exact_sum gate_slope(double u, double p)
{
    const double s = 1 / (1 + exp(-u)), below = exp(-fabs(u)), w = below / ((1 + below) * (1 + below));
    const double lost = u < -87.3 ? 0x1p-106 * (1 + fabs(p)) : 0; /* s and w are 0 there: 2^-126, of 16 eps */
    return (exact_sum){s + p * w, (s + fabs(p * w)) * (1 + fabs(u)) + lost};
}

exact_sum exact_slope(double x, kernel_activation function)
{
    const double root = 2 * sqrt(2 / acos(-1)), cubic = 0.044715, below = exp(-fabs(x));
    switch (function) {
    case KERNEL_GELU: return (exact_sum){0.5 * erfc(-x / sqrt(2)) + x * exp(-x * x / 2) / sqrt(2 * acos(-1)), 1};
    case KERNEL_GELU_TANH: return gate_slope(gate_argument(x, function), x * root * (1 + 3 * cubic * x * x));
    case KERNEL_GELU_QUICK: return gate_slope(1.702 * x, 1.702 * x);
    case KERNEL_RELU: return (exact_sum){x > 0, 1};
    case KERNEL_SILU: return gate_slope(x, x);
    case KERNEL_TANH: return (exact_sum){1 - tanh(x) * tanh(x), 1};
    case KERNEL_SIGMOID: return (exact_sum){below / ((1 + below) * (1 + below)), 1};
    case KERNEL_EXP: return (exact_sum){exp(x), exp(x) + 0x1p-126};
    }
    return (exact_sum){NAN, NAN};
}
