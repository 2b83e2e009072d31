/* Computes the activations in float64, from their definitions. SPDX-License-Identifier: MIT */
#include "analysis/reference/exact_activation.h"

#include <math.h>

/* ----------------------------------------------------------------------------------------------------------- values */

static double logistic(const mathematics *m, double x)
{
    return x < 0 ? m->exp(x) / (1 + m->exp(x)) : 1 / (1 + m->exp(-x));
}

static double gate(const mathematics *m, double x, double u) { return x == -INFINITY ? 0 : x * logistic(m, u); }

static double gelu_tanh_argument(double x) { return 2 * sqrt(2 / acos(-1)) * (x + 0.044715 * x * x * x); }
static double gelu_quick_argument(double x) { return 1.702 * x; }

static double exact_gelu(const mathematics *m, double x)
{
    return x == -INFINITY ? 0 : 0.5 * x * m->erfc(-x / sqrt(2)); /* 1 + erf(u) = erfc(-u), exact in the tail too */
}

static double exact_gelu_tanh(const mathematics *m, double x) { return gate(m, x, gelu_tanh_argument(x)); }
static double exact_gelu_quick(const mathematics *m, double x) { return gate(m, x, gelu_quick_argument(x)); }
static double exact_silu(const mathematics *m, double x) { return gate(m, x, x); }
static double exact_tanh(const mathematics *m, double x) { return m->tanh(x); }
static double exact_sigmoid(const mathematics *m, double x) { return logistic(m, x); }

static double exact_relu(const mathematics *m, double x)
{
    (void)m;
    return x < 0 ? 0 : x;
}

double activation_by(const mathematics *m, double x, activation function)
{
    if (isnan(x)) return x;
    switch (function) {
    case ACTIVATION_NONE: return x;
    case ACTIVATION_EXP: return m->exp(x);
#define VALUE(NAME, name, ...)                                                                                         \
    case ACTIVATION_##NAME: return exact_##name(m, x);
        ACTIVATIONS(VALUE)
#undef VALUE
    }
    return NAN;
}

double exact_activation(double x, activation function)
{
    static const mathematics c_library = {exp, tanh, erfc};
    return activation_by(&c_library, x, function);
}

double gate_argument(double x, activation function)
{
    if (function == ACTIVATION_GELU_TANH) return gelu_tanh_argument(x);
    if (function == ACTIVATION_GELU_QUICK) return gelu_quick_argument(x);
    return x;
}

/* ----------------------------------------------------------------------------------------------------------- bounds */

static double gelu_ulp(double x) { return x > 0 ? 2.5 : x > -1 ? 3 : x >= -3 ? 6 : x >= -5 ? 11 : x >= -5.5 ? 18 : 25; }

/* Returns the bounds of an activation. Values below the exponential's range count as 0. The error from rounding the
 * argument u of a gate grows with |u|. */
static activation_bounds gate_bounds(double u, double roundings)
{
    const double amplification = isfinite(u) ? fabs(u) / (1 + exp(u)) : 0;
    return (activation_bounds){3.7, u < -87.3 ? 0x1p-119 : 0, 1 + roundings * amplification / 3.7};
}

static activation_bounds gelu_bounds(double x) { return (activation_bounds){gelu_ulp(x), x < -5.75 ? 2.7e-10 : 0, 1}; }
static activation_bounds gelu_tanh_bounds(double x) { return gate_bounds(gelu_tanh_argument(x), 3); }
static activation_bounds gelu_quick_bounds(double x) { return gate_bounds(gelu_quick_argument(x), 1.5); }
static activation_bounds silu_bounds(double x) { return gate_bounds(x, 0); }
static activation_bounds sigmoid_bounds(double x) { return (activation_bounds){2.7, x < -87.3 ? 0x1p-126 : 0, 1}; }

static activation_bounds relu_bounds(double x)
{
    (void)x;
    return (activation_bounds){0, 0, 1};
}

static activation_bounds tanh_bounds(double x)
{
    (void)x;
    return (activation_bounds){1.4, 0, 1};
}

activation_bounds activation_bounds_of(double x, activation function)
{
    switch (function) {
    case ACTIVATION_NONE: break;
    case ACTIVATION_EXP: return (activation_bounds){x > 88.37 ? 6 : 1.3, x < -87.3365 ? 0x1p-126 : 0, 1};
#define BOUNDS(NAME, name, ...)                                                                                        \
    case ACTIVATION_##NAME: return name##_bounds(x);
        ACTIVATIONS(BOUNDS)
#undef BOUNDS
    }
    return (activation_bounds){0, 0, 1};
}

/* ----------------------------------------------------------------------------------------------------------- slopes */

/* Computes s + p s (1 - s) of the logistic function s(u). */
static exact_slope_value gate_slope(double u, double p)
{
    const double s = 1 / (1 + exp(-u)), below = exp(-fabs(u)), w = below / ((1 + below) * (1 + below));
    /* Kernels give 0 for s and w there: 2^-126, in units of 16 eps. */
    const double lost = u < -87.3 ? 0x1p-106 * (1 + fabs(p)) : 0;
    return (exact_slope_value){s + p * w, (s + fabs(p * w)) * (1 + fabs(u)) + lost};
}

static exact_slope_value exact_gelu_slope(double x)
{
    return (exact_slope_value){0.5 * erfc(-x / sqrt(2)) + x * exp(-x * x / 2) / sqrt(2 * acos(-1)), 1};
}

static exact_slope_value exact_gelu_tanh_slope(double x)
{
    const double root = 2 * sqrt(2 / acos(-1)), cubic = 0.044715;
    return gate_slope(gelu_tanh_argument(x), x * root * (1 + 3 * cubic * x * x));
}

static exact_slope_value exact_gelu_quick_slope(double x) { return gate_slope(1.702 * x, 1.702 * x); }
static exact_slope_value exact_relu_slope(double x) { return (exact_slope_value){x > 0, 1}; }
static exact_slope_value exact_silu_slope(double x) { return gate_slope(x, x); }
static exact_slope_value exact_tanh_slope(double x) { return (exact_slope_value){1 - tanh(x) * tanh(x), 1}; }

static exact_slope_value exact_sigmoid_slope(double x)
{
    const double below = exp(-fabs(x));
    return (exact_slope_value){below / ((1 + below) * (1 + below)), 1};
}

exact_slope_value exact_slope_of(double x, activation function)
{
    switch (function) {
    case ACTIVATION_NONE: return (exact_slope_value){1, 1};
    case ACTIVATION_EXP: return (exact_slope_value){exp(x), exp(x) + 0x1p-126};
#define SLOPE(NAME, name, ...)                                                                                         \
    case ACTIVATION_##NAME: return exact_##name##_slope(x);
        ACTIVATIONS(SLOPE)
#undef SLOPE
    }
    return (exact_slope_value){NAN, NAN};
}
