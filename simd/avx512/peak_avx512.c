/* Measures the peak of AVX-512 with multiply-adds of 512 bits. For products of bytes, its part with VNNI or AVX2
 * provides the measurement.
 *
 * SPDX-License-Identifier: MIT */
typedef float register_of_floats __attribute__((vector_size(64)));
#define PEAK_NAME   peak_avx512
#define PEAK_VECTOR register_of_floats
#define PEAK_CHAINS CHAINS_24
#include "simd/tmpl/peak_tmpl.h"
