/* Compiles the NEON tier: the templates over vectors of 4 floats. SPDX-License-Identifier: MIT */
#include "simd/neon/vec_neon.h"
#include "simd/neon/tune_neon.h"
#define INTEGER_GEMM "simd/neon/integer_neon.h"
#include "simd/tmpl/kernels_tmpl.h"
