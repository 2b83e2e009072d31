/* Implements exp, gelu, tanh and their relatives as explicit FMA polynomials: the same bits on every tier
 * (docs/design.md). simd/math_coefficients.h has the formulas, the order of operations, error bounds and the origin of
 * the constants. A clamp has its limit as the first operand of min and max: then a NaN passes through on every
 * instruction set.
 *
 * It is included twice: in math_tmpl.h vm is a vector and V(add) is vf_add, in several_tmpl.h vm is several vectors
 * and V(add) is vs_add.
 *
 * SPDX-License-Identifier: MIT */

/* Returns e^x for t = x log2(e) + magic already formed (and limited, for huge x). */
VF vm V(exp_from)(vm x, vm t)
{
    const vm n = V(sub)(t, V(set1)(ROUND_MAGIC));
    vm f = V(fma)(n, V(set1)(-EXP_LN2_HIGH), x);
    f = V(fma)(n, V(set1)(EXP_LN2_LOW), f);
    vm p = V(fma)(V(set1)(EXP_P0), f, V(set1)(EXP_P1));
    p = V(fma)(p, f, V(set1)(EXP_P2));
    p = V(fma)(p, f, V(set1)(EXP_P3));
    p = V(fma)(p, f, V(set1)(EXP_P4));
    p = V(fma)(p, f, V(set1)(EXP_P5));
    p = V(fma)(p, V(mul)(f, f), V(add)(f, V(set1)(1.0f)));
    return V(select_less)(x, V(set1)(EXP_LOWEST), V(zero)(), V(mul)(p, V(power_of_two)(t)));
}

/* Returns e^x for x <= 88, the range of softmax and the functions below. */
VF vm V(exp)(vm x) { return V(exp_from)(x, V(fma)(x, V(set1)(EXP_LOG2E), V(set1)(ROUND_MAGIC))); }

VF vm V(exp_any)(vm x)
{
    const vm t = V(min)(V(set1)(EXP_T_LIMIT), V(fma)(x, V(set1)(EXP_LOG2E), V(set1)(ROUND_MAGIC)));
    return V(select_less)(V(set1)(EXP_HIGHEST), x, V(set1)(__builtin_inff()), V(exp_from)(x, t));
}

VF vm V(sigmoid)(vm x)
{
    const vm one = V(set1)(1.0f), e = V(exp)(V(sub)(V(zero)(), V(abs)(x)));
    return V(div)(V(select_less)(x, V(zero)(), e, one), V(add)(one, e));
}
/* Returns x sigmoid(u); the clamp makes it -0, not NaN, at -inf. */
VF vm V(gate)(vm x, vm u) { return V(mul)(V(max)(V(set1)(SIGMOID_LOWEST), x), V(sigmoid)(u)); }
VF vm V(silu)(vm x) { return V(gate)(x, x); }
VF vm V(gelu_quick)(vm x) { return V(gate)(x, V(mul)(V(set1)(GELU_QUICK_SLOPE), x)); }
VF vm V(gelu_tanh)(vm x)
{
    return V(gate)(x, V(mul)(x, V(fma)(V(mul)(x, x), V(set1)(GELU_TANH_CUBIC), V(set1)(GELU_TANH_LINEAR))));
}
VF vm V(relu)(vm x) { return V(select_less)(x, V(zero)(), V(zero)(), x); }

VF vm V(tanh)(vm x)
{
    const vm one = V(set1)(1.0f), a = V(min)(V(set1)(TANH_HIGHEST), V(abs)(x));
    const vm large = V(sub)(one, V(div)(V(set1)(2.0f), V(add)(V(exp)(V(add)(a, a)), one)));
    const vm z = V(mul)(x, x);
    vm p = V(fma)(V(set1)(TANH_P0), z, V(set1)(TANH_P1));
    p = V(fma)(p, z, V(set1)(TANH_P2));
    p = V(fma)(p, z, V(set1)(TANH_P3));
    p = V(fma)(p, z, V(set1)(TANH_P4));
    const vm small = V(fma)(V(mul)(x, z), p, x);
    return V(copysign)(V(select_less)(V(abs)(x), V(set1)(TANH_SWITCH), small, large), x);
}

/* Returns 2^f for |f| <= 1/2. */
VF vm V(exp2_near_zero)(vm f)
{
    vm p = V(fma)(V(set1)(EXP2_P0), f, V(set1)(EXP2_P1));
    p = V(fma)(p, f, V(set1)(EXP2_P2));
    p = V(fma)(p, f, V(set1)(EXP2_P3));
    p = V(fma)(p, f, V(set1)(EXP2_P4));
    p = V(fma)(p, f, V(set1)(EXP2_P5));
    return V(fma)(p, f, V(set1)(1.0f));
}

/* Returns Phi(-a) for a >= 0. */
VF vm V(normal_tail)(vm a)
{
    const vm square = V(set1)(-GELU_SQUARE), magic = V(set1)(ROUND_MAGIC), b = V(min)(V(set1)(GELU_FITTED), a);
    vm s = V(fma)(V(set1)(GELU_P0), b, V(set1)(GELU_P1));
    s = V(fma)(s, b, V(set1)(GELU_P2));
    s = V(fma)(s, b, V(set1)(GELU_P3));
    s = V(fma)(s, b, V(set1)(GELU_P4));
    s = V(fma)(s, b, V(set1)(GELU_P5));
    s = V(fma)(s, b, V(set1)(GELU_P6));
    s = V(fma)(s, b, V(set1)(GELU_P7));
    s = V(fma)(s, b, V(set1)(GELU_P8));
    s = V(fma)(s, b, V(set1)(GELU_P9));
    s = V(fma)(s, b, V(set1)(GELU_P10));
    s = V(fma)(s, b, V(set1)(GELU_P11));
    const vm h = V(mul)(a, a), l = V(fms)(a, a, h);
    const vm t = V(add)(V(fma)(h, square, s), magic), n = V(sub)(t, magic);
    vm f = V(fms)(h, square, n);
    f = V(add)(f, s);
    f = V(fma)(l, square, f);
    return V(mul)(V(exp2_near_zero)(f), V(power_of_two)(t));
}

VF vm V(gelu)(vm x)
{
    const vm a = V(min)(V(set1)(GELU_HIGHEST), V(abs)(x));
    return V(fnma)(a, V(normal_tail)(a), V(max)(x, V(zero)())); /* In this order x86 makes +0 of -0, as the formula
                                                                 * does. */
}

/* Derivatives follow. Returns fma(product, s (1 - s), s) of s = sigmoid(u), the common form of all gates'
 * derivatives. */
VF vm V(gate_derivative)(vm u, vm product)
{
    const vm one = V(set1)(1.0f), e = V(exp)(V(sub)(V(zero)(), V(abs)(u))), q = V(add)(one, e);
    return V(fma)(product, V(div)(e, V(mul)(q, q)), V(div)(V(select_less)(u, V(zero)(), e, one), q));
}
VF vm V(gate_input)(vm x) { return V(min)(V(set1)(-SIGMOID_LOWEST), V(max)(V(set1)(SIGMOID_LOWEST), x)); }
VF vm V(silu_derivative)(vm x)
{
    const vm z = V(gate_input)(x);
    return V(gate_derivative)(z, z);
}
VF vm V(gelu_quick_derivative)(vm x)
{
    const vm u = V(mul)(V(set1)(GELU_QUICK_SLOPE), V(gate_input)(x));
    return V(gate_derivative)(u, u);
}
VF vm V(gelu_tanh_derivative)(vm x)
{
    const vm z = V(gate_input)(x), square = V(mul)(z, z), linear = V(set1)(GELU_TANH_LINEAR);
    const vm slope = V(fma)(square, V(set1)(3.0f * GELU_TANH_CUBIC), linear);
    return V(gate_derivative)(V(mul)(z, V(fma)(square, V(set1)(GELU_TANH_CUBIC), linear)), V(mul)(z, slope));
}
VF vm V(relu_derivative)(vm x)
{
    const vm one = V(set1)(1.0f);
    return V(select_less)(V(zero)(), x, one, V(select_less)(x, one, V(zero)(), x));
}
VF vm V(tanh_derivative)(vm x)
{
    const vm y = V(tanh)(x);
    return V(fnma)(y, y, V(set1)(1.0f));
}
VF vm V(sigmoid_derivative)(vm x)
{
    const vm e = V(exp)(V(sub)(V(zero)(), V(abs)(x))), q = V(add)(V(set1)(1.0f), e);
    return V(div)(e, V(mul)(q, q));
}
VF vm V(gelu_derivative)(vm x)
{
    const vm square = V(set1)(-GELU_SQUARE), magic = V(set1)(ROUND_MAGIC);
    const vm a = V(min)(V(set1)(GELU_HIGHEST), V(abs)(x)), h = V(mul)(a, a), l = V(fms)(a, a, h);
    const vm t = V(fma)(h, square, magic);
    vm f = V(fms)(h, square, V(sub)(t, magic));
    f = V(fma)(l, square, f);
    const vm density = V(mul)(V(mul)(V(exp2_near_zero)(f), V(power_of_two)(t)), V(set1)(GELU_DENSITY));
    const vm tail = V(normal_tail)(a);
    return V(select_less)(V(zero)(), x, V(fma)(a, density, V(sub)(V(set1)(1.0f), tail)), V(fnma)(a, density, tail));
}
