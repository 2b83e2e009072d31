/* Compiles the AVX2 tier: the templates over vectors of 8 floats. SPDX-License-Identifier: MIT */
#include "simd/avx2/vec_avx2.h"
#include "simd/avx2/tune_avx2.h"
#define INTEGER_GEMM "simd/avx2/integer_avx2.h"
#include "simd/tmpl/kernels_tmpl.h"
