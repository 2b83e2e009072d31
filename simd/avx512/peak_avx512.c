/* The peak of AVX-512; of bytes it has what its part with VNNI or AVX2 has. SPDX-License-Identifier: MIT */
typedef float register_of_floats __attribute__((vector_size(64)));
#define PEAK_NAME   peak_avx512
#define PEAK_VECTOR register_of_floats
#define PEAK_CHAINS CHAINS_24
#include "simd/tmpl/peak_tmpl.h"
