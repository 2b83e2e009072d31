/* Compiles the AVX-512 tier, over vectors of 16 floats. The bodies of its kernels are in simd/tmpl (softmax:
 * row_tmpl.h); kernels_tmpl.h says which file has what.
 *
 * SPDX-License-Identifier: MIT */
#include "simd/avx512/vec_avx512.h"
#include "simd/avx512/tune_avx512.h"
#include "simd/tmpl/kernels_tmpl.h"
