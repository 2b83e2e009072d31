/* Defines several vectors as one value, and on it the part of the vocabulary that the elementwise functions need, and those
 * functions: vs_gelu computes what vf_gelu computes of each.
 *
 * A function is a chain of some thirty operations that wait for each other. Of chains that follow each other a processor
 * sees little more than two at a time, so its units wait. Several vectors, operation by operation, keep them busy. An
 * element's own operations are the same either way.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

/* 4 is better than 2 and 8 on AVX2 and AVX-512: gelu then takes 0.68 and 0.61 of its time, exp 0.85 and 0.77, the others
 * between 0.75 and 0.82 (one core of a Cascade Lake server, gcc 12). With 8 gelu gains as much, and all others half. */
enum { AT_ONCE = 4 };
enum { VS_LANES = AT_ONCE * VF_LANES };
_Static_assert((int)VS_LANES % (int)PANEL == 0, "softmax_f32 adds to 16 partial sums");

typedef struct vs {
    vf v[AT_ONCE];
} vs;

/* A tier whose operations are long keeps the loops: the same bits, in far fewer instructions. */
#ifndef SEVERAL_LOOP
#define SEVERAL_LOOP UNROLL
#endif
#define EACH SEVERAL_LOOP for (int k = 0; k < AT_ONCE; k++)
VF vs vs_set1(float a)
{
    vs y;
    EACH y.v[k] = vf_set1(a);
    return y;
}
VF vs vs_zero(void) { return vs_set1(0.0f); }
VF vs vs_load(const float *p)
{
    vs y;
    EACH y.v[k] = vf_load(p + k * VF_LANES);
    return y;
}
VF void vs_store(float *p, vs a) { EACH vf_store(p + k * VF_LANES, a.v[k]); }
#define OF_ONE(name)                                                                                                   \
    VF vs vs_##name(vs a)                                                                                              \
    {                                                                                                                  \
        EACH a.v[k] = vf_##name(a.v[k]);                                                                               \
        return a;                                                                                                      \
    }
#define OF_TWO(name)                                                                                                   \
    VF vs vs_##name(vs a, vs b)                                                                                        \
    {                                                                                                                  \
        EACH a.v[k] = vf_##name(a.v[k], b.v[k]);                                                                       \
        return a;                                                                                                      \
    }
#define OF_THREE(name)                                                                                                 \
    VF vs vs_##name(vs a, vs b, vs c)                                                                                  \
    {                                                                                                                  \
        EACH a.v[k] = vf_##name(a.v[k], b.v[k], c.v[k]);                                                               \
        return a;                                                                                                      \
    }
OF_ONE(abs)
OF_ONE(power_of_two)
OF_TWO(add)
OF_TWO(sub)
OF_TWO(mul)
OF_TWO(div)
OF_TWO(max)
OF_TWO(min)
OF_TWO(copysign)
OF_THREE(fma)
OF_THREE(fnma)
OF_THREE(fms)
VF vs vs_select_less(vs a, vs b, vs yes, vs no)
{
    EACH a.v[k] = vf_select_less(a.v[k], b.v[k], yes.v[k], no.v[k]);
    return a;
}
#undef OF_ONE
#undef OF_TWO
#undef OF_THREE

#define V(name) vs_##name
#define vm      vs
#include "simd/tmpl/math_formulas_tmpl.h"
#undef V
#undef vm
#undef EACH
