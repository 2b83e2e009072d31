/* Implements the elementwise functions, one number at a time: the formulas of simd/math_coefficients.h in plain C.
 * Ternary operators replace lane selects; their conditions are false for NaN, as there.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include "core/kernels.h"
#include "simd/math_coefficients.h"

#include <math.h>
#include <stdint.h>
#include <string.h>

/* Returns 2^n for t = n + ROUND_MAGIC, n in -127 ... 127, where 2^-127 counts as 0. The arithmetic is unsigned, so that
 * the result for a NaN may wrap. */
static inline float scalar_scale(float t)
{
    uint32_t bits;
    memcpy(&bits, &t, sizeof bits);
    bits = (bits + 127) << 23;
    float scale;
    memcpy(&scale, &bits, sizeof scale);
    return scale;
}

static inline float scalar_exp(float x)
{
    float t = fmaf(x, EXP_LOG2E, ROUND_MAGIC);
    t = EXP_T_LIMIT < t ? EXP_T_LIMIT : t;
    const float n = t - ROUND_MAGIC;
    float f = fmaf(n, -EXP_LN2_HIGH, x);
    f = fmaf(n, EXP_LN2_LOW, f);

    float p = EXP_P0;
    p = fmaf(p, f, EXP_P1);
    p = fmaf(p, f, EXP_P2);
    p = fmaf(p, f, EXP_P3);
    p = fmaf(p, f, EXP_P4);
    p = fmaf(p, f, EXP_P5);
    p = fmaf(p, f * f, f + 1.0f);

    float y = p * scalar_scale(t);
    y = x < EXP_LOWEST ? 0.0f : y;
    return x > EXP_HIGHEST ? INFINITY : y;
}

static inline float scalar_sigmoid(float x)
{
    const float e = scalar_exp(-fabsf(x));
    return (x < 0.0f ? e : 1.0f) / (1.0f + e);
}

/* Returns x sigmoid(argument), 0 and not NaN where x = -inf. */
static inline float scalar_gate(float x, float argument)
{
    return (x < SIGMOID_LOWEST ? SIGMOID_LOWEST : x) * scalar_sigmoid(argument);
}

static inline float scalar_silu(float x) { return scalar_gate(x, x); }

static inline float scalar_gelu_quick(float x) { return scalar_gate(x, GELU_QUICK_SLOPE * x); }

static inline float scalar_gelu_tanh(float x)
{
    return scalar_gate(x, x * fmaf(x * x, GELU_TANH_CUBIC, GELU_TANH_LINEAR));
}

static inline float scalar_relu(float x) { return x < 0.0f ? 0.0f : x; }

static inline float scalar_tanh(float x)
{
    float a = fabsf(x);
    a = TANH_HIGHEST < a ? TANH_HIGHEST : a;
    const float large = 1.0f - 2.0f / (scalar_exp(a + a) + 1.0f);

    const float z = x * x;
    float p = TANH_P0;
    p = fmaf(p, z, TANH_P1);
    p = fmaf(p, z, TANH_P2);
    p = fmaf(p, z, TANH_P3);
    p = fmaf(p, z, TANH_P4);
    const float small = fmaf(x * z, p, x);

    return copysignf(fabsf(x) < TANH_SWITCH ? small : large, x);
}

/* Returns 2^f for |f| <= 1/2. */
static inline float scalar_exp2_near_zero(float f)
{
    float p = EXP2_P0;
    p = fmaf(p, f, EXP2_P1);
    p = fmaf(p, f, EXP2_P2);
    p = fmaf(p, f, EXP2_P3);
    p = fmaf(p, f, EXP2_P4);
    p = fmaf(p, f, EXP2_P5);
    p = fmaf(p, f, 1.0f);
    return p;
}

/* Returns Phi(-a), the probability that a normal variable exceeds a, for a >= 0: relative accuracy far into the
 * tail. */
static inline float scalar_normal_tail(float a)
{
    static const float coefficients[] = {GELU_P0, GELU_P1, GELU_P2, GELU_P3, GELU_P4,  GELU_P5,
                                         GELU_P6, GELU_P7, GELU_P8, GELU_P9, GELU_P10, GELU_P11};
    const float b = GELU_FITTED < a ? GELU_FITTED : a;
    float s = coefficients[0];
    for (int i = 1; i < 12; i++) s = fmaf(s, b, coefficients[i]);

    const float h = a * a, l = fmaf(a, a, -h);
    const float t = fmaf(h, -GELU_SQUARE, s) + ROUND_MAGIC;
    const float n = t - ROUND_MAGIC;
    float f = fmaf(h, -GELU_SQUARE, -n);
    f = f + s;
    f = fmaf(l, -GELU_SQUARE, f);

    return scalar_exp2_near_zero(f) * scalar_scale(t);
}

static inline float scalar_gelu(float x)
{
    float a = fabsf(x);
    a = GELU_HIGHEST < a ? GELU_HIGHEST : a;
    return fmaf(-a, scalar_normal_tail(a), x > 0.0f ? x : 0.0f);
}

/* ------------------------------------------------------------------------------------------------------- derivatives */

/* Returns fma(product, s (1 - s), s) of s = sigmoid(u), the common form of the derivatives of all gates. */
static inline float scalar_gate_derivative(float u, float product)
{
    const float e = scalar_exp(-fabsf(u)), q = 1.0f + e;
    return fmaf(product, e / (q * q), (u < 0.0f ? e : 1.0f) / q);
}

static inline float scalar_gate_input(float x)
{
    const float z = x < SIGMOID_LOWEST ? SIGMOID_LOWEST : x;
    return -SIGMOID_LOWEST < z ? -SIGMOID_LOWEST : z;
}

static inline float scalar_gelu_derivative(float x)
{
    float a = fabsf(x);
    a = GELU_HIGHEST < a ? GELU_HIGHEST : a;
    const float h = a * a, l = fmaf(a, a, -h);
    const float t = fmaf(h, -GELU_SQUARE, ROUND_MAGIC);
    float f = fmaf(h, -GELU_SQUARE, -(t - ROUND_MAGIC));
    f = fmaf(l, -GELU_SQUARE, f);
    const float density = scalar_exp2_near_zero(f) * scalar_scale(t) * GELU_DENSITY, tail = scalar_normal_tail(a);
    return x > 0.0f ? fmaf(a, density, 1.0f - tail) : fmaf(-a, density, tail);
}

static inline float scalar_gelu_tanh_derivative(float x)
{
    const float z = scalar_gate_input(x), slope = fmaf(z * z, 3.0f * GELU_TANH_CUBIC, GELU_TANH_LINEAR);
    return scalar_gate_derivative(z * fmaf(z * z, GELU_TANH_CUBIC, GELU_TANH_LINEAR), z * slope);
}

static inline float scalar_gelu_quick_derivative(float x)
{
    const float u = GELU_QUICK_SLOPE * scalar_gate_input(x);
    return scalar_gate_derivative(u, u);
}

static inline float scalar_silu_derivative(float x)
{
    const float z = scalar_gate_input(x);
    return scalar_gate_derivative(z, z);
}

static inline float scalar_relu_derivative(float x) { return 0.0f < x ? 1.0f : x < 1.0f ? 0.0f : x; }

static inline float scalar_tanh_derivative(float x)
{
    const float y = scalar_tanh(x);
    return fmaf(-y, y, 1.0f);
}

static inline float scalar_sigmoid_derivative(float x)
{
    const float e = scalar_exp(-fabsf(x)), q = 1.0f + e;
    return e / (q * q);
}

static inline float scalar_derivative(float x, activation function)
{
    switch (function) {
    case ACTIVATION_NONE: break;
    case ACTIVATION_EXP: return scalar_exp(x);
#define SLOPE(NAME, name, ...)                                                                                         \
    case ACTIVATION_##NAME: return scalar_##name##_derivative(x);
        ACTIVATIONS(SLOPE)
#undef SLOPE
    }
    return x;
}
