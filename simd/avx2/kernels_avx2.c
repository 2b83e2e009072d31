/* Compiles the AVX2 tier, over vectors of 8 floats. The bodies of its kernels are in simd/tmpl (softmax: row_tmpl.h);
 * kernels_tmpl.h says which file has what.
 *
 * SPDX-License-Identifier: MIT */
#include "simd/avx2/vec_avx2.h"
#include "simd/avx2/tune_avx2.h"
#define INTEGER_GEMM "simd/avx2/integer_avx2.h"
#include "simd/tmpl/kernels_tmpl.h"
