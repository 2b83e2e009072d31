/* Compiles the AVX-512 tier: the templates over vectors of 16 floats. SPDX-License-Identifier: MIT */
#include "simd/avx512/vec_avx512.h"
#include "simd/avx512/tune_avx512.h"
#include "simd/tmpl/kernels_tmpl.h"
