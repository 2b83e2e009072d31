/* Measures the peak of byte products with the dot product of AVX-512 VNNI. SPDX-License-Identifier: MIT */
#include <immintrin.h>

static inline __m512i dot(__m512i sum, __m512i a, __m512i b) { return _mm512_dpbusd_epi32(sum, a, b); }

#define PEAK_BYTES_NAME   peak_bytes_avx512vnni
#define PEAK_BYTES_VECTOR __m512i
#define PEAK_DOT          dot
#define PEAK_PRODUCTS     64
#define PEAK_BYTES_CHAINS CHAINS_24
#define PEAK_REGISTER     "v"
#include "simd/tmpl/peak_u8_tmpl.h"
