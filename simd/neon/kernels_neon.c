/* Compiles the NEON tier, over vectors of 4 floats. The bodies of its kernels are in simd/tmpl (softmax: row_tmpl.h);
 * kernels_tmpl.h says which file has what.
 *
 * SPDX-License-Identifier: MIT */
#include "simd/neon/vec_neon.h"
#include "simd/neon/tune_neon.h"
#define INTEGER_GEMM "simd/neon/integer_neon.h"
#include "simd/tmpl/kernels_tmpl.h"
