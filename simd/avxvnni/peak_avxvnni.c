/* Measures the peak of byte products with the dot product of AVX-VNNI. SPDX-License-Identifier: MIT */
#include <immintrin.h>

static inline __m256i dot(__m256i sum, __m256i a, __m256i b) { return _mm256_dpbusd_avx_epi32(sum, a, b); }

#define PEAK_BYTES_NAME   peak_bytes_avxvnni
#define PEAK_BYTES_VECTOR __m256i
#define PEAK_DOT          dot
#define PEAK_PRODUCTS     32
#define PEAK_BYTES_CHAINS CHAINS_12
#define PEAK_REGISTER     "x"
#include "simd/tmpl/peak_u8_tmpl.h"
