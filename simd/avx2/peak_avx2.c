/* Measures the peak of AVX2 with multiply-adds of 256 bits, and with products of bytes that were widened to 16 bits.
 *
 * SPDX-License-Identifier: MIT */
#include <immintrin.h>

static inline __m256i dot(__m256i sum, __m256i a, __m256i b) { return _mm256_add_epi32(sum, _mm256_madd_epi16(a, b)); }

#define PEAK_BYTES_NAME   peak_bytes_avx2
#define PEAK_BYTES_VECTOR __m256i
#define PEAK_DOT          dot
#define PEAK_PRODUCTS     16
#define PEAK_BYTES_CHAINS CHAINS_12
#define PEAK_REGISTER     "x"
#include "simd/tmpl/peak_u8_tmpl.h"

typedef float register_of_floats __attribute__((vector_size(32)));
#define PEAK_NAME   peak_avx2
#define PEAK_VECTOR register_of_floats
#define PEAK_CHAINS CHAINS_12
#include "simd/tmpl/peak_tmpl.h"
