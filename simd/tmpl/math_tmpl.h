/* Compiles the elementwise functions for one vector (vf_gelu) and for several at once (vs_gelu).
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include "simd/math_coefficients.h"

#define V(name) vf_##name
#define vm      vf
#include "simd/tmpl/math_formulas_tmpl.h"
#undef V
#undef vm

#include "simd/tmpl/several_tmpl.h"

/* Computes gelu of n floats, n a multiple of VF_LANES, in one copy of the code. In registers it would be duplicated for
 * every vector of every tile shape, and through L1 it costs nothing beside its forty instructions. */
static __attribute__((noinline, unused)) void VF_NAME(gelu_values)(float *x, size_t n)
{
    size_t e = 0;
    for (; e + VS_LANES <= n; e += VS_LANES) vs_store(x + e, vs_gelu(vs_load(x + e)));
    for (; e < n; e += VF_LANES) vf_store(x + e, vf_gelu(vf_load(x + e)));
}
