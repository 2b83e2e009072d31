/* Implements exp, gelu, tanh and their relatives as explicit FMA polynomials: the same bits on every tier
 * (docs/design.md). simd/math_coefficients.h has the formulas, the order of operations, error bounds and the origin of
 * the constants. A clamp has its limit as the first operand of min and max: then a NaN passes through on every
 * instruction set.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include "simd/math_coefficients.h"

/* Returns e^x for t = x log2(e) + magic already formed (and limited, for huge x). */
VF vf vf_exp_from(vf x, vf t)
{
    const vf n = vf_sub(t, vf_set1(ROUND_MAGIC));
    vf f = vf_fma(n, vf_set1(-EXP_LN2_HIGH), x);
    f = vf_fma(n, vf_set1(EXP_LN2_LOW), f);
    vf p = vf_fma(vf_set1(EXP_P0), f, vf_set1(EXP_P1));
    p = vf_fma(p, f, vf_set1(EXP_P2));
    p = vf_fma(p, f, vf_set1(EXP_P3));
    p = vf_fma(p, f, vf_set1(EXP_P4));
    p = vf_fma(p, f, vf_set1(EXP_P5));
    p = vf_fma(p, vf_mul(f, f), vf_add(f, vf_set1(1.0f)));
    return vf_select_less(x, vf_set1(EXP_LOWEST), vf_zero(), vf_mul(p, vf_power_of_two(t)));
}

/* Returns e^x for x <= 88, the range of softmax and the functions below. */
VF vf vf_exp(vf x) { return vf_exp_from(x, vf_fma(x, vf_set1(EXP_LOG2E), vf_set1(ROUND_MAGIC))); }

VF vf vf_exp_any(vf x)
{
    const vf t = vf_min(vf_set1(EXP_T_LIMIT), vf_fma(x, vf_set1(EXP_LOG2E), vf_set1(ROUND_MAGIC)));
    return vf_select_less(vf_set1(EXP_HIGHEST), x, vf_set1(__builtin_inff()), vf_exp_from(x, t));
}

VF vf vf_sigmoid(vf x)
{
    const vf one = vf_set1(1.0f), e = vf_exp(vf_sub(vf_zero(), vf_abs(x)));
    return vf_div(vf_select_less(x, vf_zero(), e, one), vf_add(one, e));
}
/* Returns x sigmoid(u); the clamp makes it -0, not NaN, at -inf. */
VF vf vf_gate(vf x, vf u) { return vf_mul(vf_max(vf_set1(SIGMOID_LOWEST), x), vf_sigmoid(u)); }
VF vf vf_silu(vf x) { return vf_gate(x, x); }
VF vf vf_gelu_quick(vf x) { return vf_gate(x, vf_mul(vf_set1(GELU_QUICK_SLOPE), x)); }
VF vf vf_gelu_tanh(vf x)
{
    return vf_gate(x, vf_mul(x, vf_fma(vf_mul(x, x), vf_set1(GELU_TANH_CUBIC), vf_set1(GELU_TANH_LINEAR))));
}
VF vf vf_relu(vf x) { return vf_select_less(x, vf_zero(), vf_zero(), x); }

VF vf vf_tanh(vf x)
{
    const vf one = vf_set1(1.0f), a = vf_min(vf_set1(TANH_HIGHEST), vf_abs(x));
    const vf large = vf_sub(one, vf_div(vf_set1(2.0f), vf_add(vf_exp(vf_add(a, a)), one)));
    const vf z = vf_mul(x, x);
    vf p = vf_fma(vf_set1(TANH_P0), z, vf_set1(TANH_P1));
    p = vf_fma(p, z, vf_set1(TANH_P2));
    p = vf_fma(p, z, vf_set1(TANH_P3));
    p = vf_fma(p, z, vf_set1(TANH_P4));
    const vf small = vf_fma(vf_mul(x, z), p, x);
    return vf_copysign(vf_select_less(vf_abs(x), vf_set1(TANH_SWITCH), small, large), x);
}

/* Returns 2^f for |f| <= 1/2. */
VF vf vf_exp2_near_zero(vf f)
{
    vf p = vf_fma(vf_set1(EXP2_P0), f, vf_set1(EXP2_P1));
    p = vf_fma(p, f, vf_set1(EXP2_P2));
    p = vf_fma(p, f, vf_set1(EXP2_P3));
    p = vf_fma(p, f, vf_set1(EXP2_P4));
    p = vf_fma(p, f, vf_set1(EXP2_P5));
    return vf_fma(p, f, vf_set1(1.0f));
}

/* Returns Phi(-a) for a >= 0. */
VF vf vf_normal_tail(vf a)
{
    const vf square = vf_set1(-GELU_SQUARE), magic = vf_set1(ROUND_MAGIC), b = vf_min(vf_set1(GELU_FITTED), a);
    vf s = vf_fma(vf_set1(GELU_P0), b, vf_set1(GELU_P1));
    s = vf_fma(s, b, vf_set1(GELU_P2));
    s = vf_fma(s, b, vf_set1(GELU_P3));
    s = vf_fma(s, b, vf_set1(GELU_P4));
    s = vf_fma(s, b, vf_set1(GELU_P5));
    s = vf_fma(s, b, vf_set1(GELU_P6));
    s = vf_fma(s, b, vf_set1(GELU_P7));
    s = vf_fma(s, b, vf_set1(GELU_P8));
    s = vf_fma(s, b, vf_set1(GELU_P9));
    s = vf_fma(s, b, vf_set1(GELU_P10));
    s = vf_fma(s, b, vf_set1(GELU_P11));
    const vf h = vf_mul(a, a), l = vf_fms(a, a, h);
    const vf t = vf_add(vf_fma(h, square, s), magic), n = vf_sub(t, magic);
    vf f = vf_fms(h, square, n);
    f = vf_add(f, s);
    f = vf_fma(l, square, f);
    return vf_mul(vf_exp2_near_zero(f), vf_power_of_two(t));
}

VF vf vf_gelu(vf x)
{
    const vf a = vf_min(vf_set1(GELU_HIGHEST), vf_abs(x));
    return vf_fnma(a, vf_normal_tail(a), vf_max(x, vf_zero())); /* in this order x86 makes +0 of -0, as the formula does */
}

/* Derivatives follow. Returns fma(product, s (1 - s), s) of s = sigmoid(u), the common form of all gates'
 * derivatives. */
VF vf vf_gate_derivative(vf u, vf product)
{
    const vf one = vf_set1(1.0f), e = vf_exp(vf_sub(vf_zero(), vf_abs(u))), q = vf_add(one, e);
    return vf_fma(product, vf_div(e, vf_mul(q, q)), vf_div(vf_select_less(u, vf_zero(), e, one), q));
}
VF vf vf_gate_input(vf x) { return vf_min(vf_set1(-SIGMOID_LOWEST), vf_max(vf_set1(SIGMOID_LOWEST), x)); }
VF vf vf_silu_derivative(vf x)
{
    const vf z = vf_gate_input(x);
    return vf_gate_derivative(z, z);
}
VF vf vf_gelu_quick_derivative(vf x)
{
    const vf u = vf_mul(vf_set1(GELU_QUICK_SLOPE), vf_gate_input(x));
    return vf_gate_derivative(u, u);
}
VF vf vf_gelu_tanh_derivative(vf x)
{
    const vf z = vf_gate_input(x), square = vf_mul(z, z), linear = vf_set1(GELU_TANH_LINEAR);
    const vf slope = vf_fma(square, vf_set1(3.0f * GELU_TANH_CUBIC), linear);
    return vf_gate_derivative(vf_mul(z, vf_fma(square, vf_set1(GELU_TANH_CUBIC), linear)), vf_mul(z, slope));
}
VF vf vf_relu_derivative(vf x)
{
    const vf one = vf_set1(1.0f);
    return vf_select_less(vf_zero(), x, one, vf_select_less(x, one, vf_zero(), x));
}
VF vf vf_tanh_derivative(vf x)
{
    const vf y = vf_tanh(x);
    return vf_fnma(y, y, vf_set1(1.0f));
}
VF vf vf_sigmoid_derivative(vf x)
{
    const vf e = vf_exp(vf_sub(vf_zero(), vf_abs(x))), q = vf_add(vf_set1(1.0f), e);
    return vf_div(e, vf_mul(q, q));
}
VF vf vf_gelu_derivative(vf x)
{
    const vf square = vf_set1(-GELU_SQUARE), magic = vf_set1(ROUND_MAGIC);
    const vf a = vf_min(vf_set1(GELU_HIGHEST), vf_abs(x)), h = vf_mul(a, a), l = vf_fms(a, a, h);
    const vf t = vf_fma(h, square, magic);
    vf f = vf_fms(h, square, vf_sub(t, magic));
    f = vf_fma(l, square, f);
    const vf density = vf_mul(vf_mul(vf_exp2_near_zero(f), vf_power_of_two(t)), vf_set1(GELU_DENSITY));
    const vf tail = vf_normal_tail(a);
    return vf_select_less(vf_zero(), x, vf_fma(a, density, vf_sub(vf_set1(1.0f), tail)), vf_fnma(a, density, tail));
}

/* Computes gelu of n floats, n a multiple of VF_LANES, in one copy of the code. In registers it would be duplicated for
 * every vector of every tile shape, and through L1 it costs nothing beside its forty instructions. */
static __attribute__((noinline)) void VF_NAME(gelu_values)(float *x, size_t n)
{
    for (size_t e = 0; e < n; e += VF_LANES) vf_store(x + e, vf_gelu(vf_load(x + e)));
}
