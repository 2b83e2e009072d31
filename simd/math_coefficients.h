/* Defines the constants of the elementwise functions, and the exact order of operations that gives every tier the same
 * bits.
 *
 * Notation: fma(a, b, c) is one rounding of a b + c; every other operator rounds by itself. `c ? a : b` is a lane
 * select on an ordered comparison (false for NaN), so that NaN handling is fixed: a clamp is written so that NaN passes
 * through (on x86 max_ps(limit, x) and min_ps(limit, x) with the limit first are exactly these selects; on NEON use a
 * compare and bsl only where the sign of a zero could differ). bits() reinterprets. scale(t) = reinterpret((bits(t) +
 * 127) << 23), wrapping int32: for t = n + 1.5 2^23 the low bits of t hold n, so this is 2^n for -126 <= n <= 127, and
 * 0 for n = -127.
 *
 * exp(x), all x:
 *     t = fma(x, EXP_LOG2E, ROUND_MAGIC);  t = (EXP_T_LIMIT < t) ? EXP_T_LIMIT : t      (n <= 127)
 *     n = t - ROUND_MAGIC;  f = fma(n, -EXP_LN2_HIGH, x);  f = fma(n, EXP_LN2_LOW, f)
 *     p = EXP_P0;  p = fma(p, f, EXP_P1) ... fma(p, f, EXP_P5);  p = fma(p, f f, f + 1)
 *     y = p scale(t);  y = x < EXP_LOWEST ? 0 : y;  y = x > EXP_HIGHEST ? inf : y
 *   For x <= 0 the limit on t and the last select change nothing and may be left out. 1.3 ULP up to x = 88.37, 6 above.
 *
 * sigmoid(x):    e = exp(-|x|);  (x < 0 ? e : 1) / (1 + e) silu(x):       (x < SIGMOID_LOWEST ? SIGMOID_LOWEST : x)
 * sigmoid(x)      the clamp turns -inf 0 into -0 gelu_quick(x): (the same clamped x) sigmoid(GELU_QUICK_SLOPE x)
 * gelu_tanh(x):  u = x fma(x x, GELU_TANH_CUBIC, GELU_TANH_LINEAR);  (the same clamped x) sigmoid(u)
 *   because (1 + tanh v) / 2 = sigmoid(2 v), which has no cancellation in the negative tail.
 *   sigmoid 2.7 ULP; the gates 3.7 ULP and, where the argument u of sigmoid is rounded, up to 3 |u| sigmoid(-u) more.
 * relu(x):       x < 0 ? 0 : x      so -0 stays -0, NaN stays NaN
 *
 * tanh(x):  a = |x|;  a = (TANH_HIGHEST < a) ? TANH_HIGHEST : a;  e = exp(a + a);  large = 1 - 2 / (e + 1)
 *           z = x x;  p = TANH_P0;  p = fma(p, z, TANH_P1) ... fma(p, z, TANH_P4);  small = fma(x z, p, x)
 *           copysign(|x| < TANH_SWITCH ? small : large, x)      1.4 ULP; copysign for the sign of -0 as well
 *
 * gelu(x) = x Phi(x) = max(x, 0) - |x| Phi(-|x|), where Phi(-a) = 2^(S(a) - GELU_SQUARE a a). The square is kept apart,
 * in two pieces h + l, because it is large: as part of one polynomial its roundings cost 39 ULP of the result on [-5,
 * -1].
 *     a = |x|;  a = (GELU_HIGHEST < a) ? GELU_HIGHEST : a;  b = (GELU_FITTED < a) ? GELU_FITTED : a
 *     s = GELU_P0;  s = fma(s, b, GELU_P1) ... fma(s, b, GELU_P11)
 *     h = a a;  l = fma(a, a, -h)
 *     t = fma(h, -GELU_SQUARE, s) + ROUND_MAGIC;  n = t - ROUND_MAGIC
 *     f = fma(h, -GELU_SQUARE, -n);  f = f + s;  f = fma(l, -GELU_SQUARE, f)
 *     p = EXP2_P0;  p = fma(p, f, EXP2_P1) ... fma(p, f, EXP2_P5);  p = fma(p, f, 1)
 *     phi = p scale(t)
 *     y = fma(-a, phi, x > 0 ? x : 0)
 *   No select is needed at the far end: at GELU_HIGHEST n is -127, so phi = 0: y = x for large positive x and +inf, and
 *   y = +0 for large negative x, -inf, and both zeros. In `x > 0 ? x : 0` a NaN may give 0 or NaN: phi is NaN already.
 *   ULP of the result: 2.2 for x > 0, 2.9 on (-1, 0), 5.4 on [-3, -1], 10.8 on [-5, -3], 17.8 to -5.5, 24.6 to -5.75.
 *   Below that the error is absolute: at most 2.7e-10.
 *
 * Derivatives, by which activate_backward_f32 multiplies:
 *     gate(u): e = exp(-|u|), q = 1 + e:  s = (u < 0 ? e : 1) / q,  w = e / (q q) = s (1 - s)
 *     x in gates is clamped from both sides: z = (x < SIGMOID_LOWEST ? SIGMOID_LOWEST : x), then at most
 *         -SIGMOID_LOWEST
 *     silu        s + z w by fma(z, w, s), u = z
 *     gelu_quick  fma(u, w, s), u = GELU_QUICK_SLOPE z
 *     gelu_tanh   fma(z fma(z z, 3 GELU_TANH_CUBIC, GELU_TANH_LINEAR), w, s), u as above of z
 *     sigmoid     w of x
 *     relu        0 < x ? 1 : 0 (NaN: NaN)
 *     tanh        fma(-y, y, 1), y = tanh(x)
 *     exp         exp(x)
 *     gelu        Phi(x) + x phi(x): with a, h, l and Phi(-a) as above,
 *                 t = fma(h, -GELU_SQUARE, ROUND_MAGIC);  n = t - ROUND_MAGIC
 *                 f = fma(h, -GELU_SQUARE, -n);  f = fma(l, -GELU_SQUARE, f)
 *                 d = (EXP2 polynomial of f) scale(t) GELU_DENSITY
 *                 x > 0 ? fma(a, d, 1 - Phi(-a)) : fma(-a, d, Phi(-a))
 * Errors, in eps (s + |the other term|) for the gates: 8 (1 + |u|); gelu 16 eps absolute.
 *
 * The bounds were measured against float64 on every float of magnitude 2^-30 to 128, and on a sample of the others.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

/* 1.5 2^23: adding it rounds to the nearest integer (ties to even) and leaves that integer in the low bits. */
#define ROUND_MAGIC 12582912.0f

/* e^f on |f| <= ln(2)/2: the coefficients of Cephes' expf, p(f) = (e^f - 1 - f) / f^2. ln 2 = HIGH - LOW; HIGH has 9
 * bits, so n HIGH is exact. */
#define EXP_LOG2E    1.44269504f
#define EXP_LN2_HIGH 0.693359375f
#define EXP_LN2_LOW  2.12194440e-4f
#define EXP_T_LIMIT  12583039.0f /* ROUND_MAGIC + 127 */
#define EXP_LOWEST   -87.33654f  /* ln of the smallest normal number, so that no result is subnormal */
#define EXP_HIGHEST  88.72283f   /* the last float whose exponential is finite */
#define EXP_P0       1.9875691500e-4f
#define EXP_P1       1.3981999507e-3f
#define EXP_P2       8.3334519073e-3f
#define EXP_P3       4.1665795894e-2f
#define EXP_P4       1.6666665459e-1f
#define EXP_P5       5.0000001201e-1f

/* 2^f on |f| <= 1/2 with the constant term fixed at 1: minimax in the relative error, 5.3e-9 after rounding the
 * coefficients. */
#define EXP2_P0 1.582053083e-04f
#define EXP2_P1 1.341820229e-03f
#define EXP2_P2 9.617063217e-03f
#define EXP2_P3 5.550272390e-02f
#define EXP2_P4 2.402265519e-01f
#define EXP2_P5 6.931472421e-01f

/* S(a) = log2(erfc(a / sqrt 2) / 2) + GELU_SQUARE a^2 on [0, GELU_FITTED], constant term fixed at -1: minimax, with
 * the coefficients rounded one by one and the rest fitted again. Absolute error 3e-8 up to 1, 1.9e-7 up to 5.3, 2.8e-7
 * to the end. */
#define GELU_SQUARE  0.72134752f /* log2(e) / 2; GELU_P9 contains its rounding error */
#define GELU_HIGHEST 13.06f
#define GELU_FITTED  5.75f
#define GELU_DENSITY 0.398942280f /* 1 / sqrt(2 pi) */
#define GELU_P0      2.574581215e-09f
#define GELU_P1      -9.566969084e-08f
#define GELU_P2      1.579464083e-06f
#define GELU_P3      -1.513187635e-05f
#define GELU_P4      9.029890498e-05f
#define GELU_P5      -3.057853901e-04f
#define GELU_P6      2.474037865e-05f
#define GELU_P7      6.941472180e-03f
#define GELU_P8      -5.244928226e-02f
#define GELU_P9      2.621318400e-01f
#define GELU_P10     -1.151104927e+00f
#define GELU_P11     -1.0f

/* (tanh(x) - x) / x^3 in z = x^2 on |x| <= 0.625: minimax in the relative error of tanh, 4.6e-9. */
#define TANH_SWITCH  0.625f
#define TANH_HIGHEST 10.0f /* 1 - tanh(10) is a fourteenth of an ULP */
#define TANH_P0      -5.692296661e-03f
#define TANH_P1      2.062816732e-02f
#define TANH_P2      -5.373651534e-02f
#define TANH_P3      1.333140582e-01f
#define TANH_P4      -3.333328068e-01f

#define SIGMOID_LOWEST   -100.0f /* gates clamp x here, where the computed sigmoid is 0: -inf times 0 is NaN */
#define GELU_QUICK_SLOPE 1.702f
#define GELU_TANH_LINEAR 1.595769122f   /* 2 sqrt(2 / pi) */
#define GELU_TANH_CUBIC  0.07135481283f /* 0.044715 times that */
