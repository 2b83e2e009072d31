/* The AVX-VNNI kernels with AVX2 in the place of their one instruction, so that all else of them runs on processors
 * that lack it. SPDX-License-Identifier: MIT */
#include <immintrin.h>

/* vpdpbusd: sums of four products of u8 and s8 added to 32-bit lanes, which wrap. Bytes 0 and 2 of a quad, then 1 and
 * 3, as 16 bits; vpmaddwd is exact for them. */
static inline __attribute__((always_inline)) __m256i stand_in_dpbusd(__m256i sum, __m256i a, __m256i b)
{
    const __m256i even = _mm256_set1_epi16(0xFF);
    const __m256i first = _mm256_madd_epi16(_mm256_and_si256(a, even), _mm256_srai_epi16(_mm256_slli_epi16(b, 8), 8));
    const __m256i second = _mm256_madd_epi16(_mm256_srli_epi16(a, 8), _mm256_srai_epi16(b, 8));
    return _mm256_add_epi32(sum, _mm256_add_epi32(first, second));
}

#undef _mm256_dpbusd_avx_epi32
#define _mm256_dpbusd_avx_epi32 stand_in_dpbusd
#define kernels_init_avxvnni    kernels_init_avxvnni_stand_in
#include "simd/avxvnni/kernels_avxvnni.c"
