/* Defines the vector vocabulary on AVX2 + FMA: 8 lanes. simd/README.md explains the names.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include <immintrin.h>
#include <stddef.h>
#include <stdint.h>

#define VF            static inline __attribute__((always_inline))
#define VF_LANES      8
#define VF_NAME(name) name##_avx2
#define VF_ISA        "avx2"

typedef __m256 vf;
typedef __m256i vi;

VF vf vf_zero(void) { return _mm256_setzero_ps(); }
VF vf vf_set1(float a) { return _mm256_set1_ps(a); }
VF vf vf_broadcast(const float *p) { return _mm256_broadcast_ss(p); }
VF vf vf_load(const float *p) { return _mm256_loadu_ps(p); }
VF void vf_store(float *p, vf a) { _mm256_storeu_ps(p, a); }

/* Sets lanes below n to all ones. It uses a table, because maskload touches nothing beyond them. */
VF __m256i vf_first_lanes(size_t n)
{
    static const int32_t table[16] = {-1, -1, -1, -1, -1, -1, -1, -1, 0, 0, 0, 0, 0, 0, 0, 0};
    return _mm256_loadu_si256((const __m256i *)(table + 8 - n));
}
VF vf vf_load_n(const float *p, size_t n, vf rest)
{
    const __m256i mask = vf_first_lanes(n);
    return _mm256_blendv_ps(rest, _mm256_maskload_ps(p, mask), _mm256_castsi256_ps(mask));
}
VF void vf_store_n(float *p, size_t n, vf a) { _mm256_maskstore_ps(p, vf_first_lanes(n), a); }

VF vf vf_add(vf a, vf b) { return _mm256_add_ps(a, b); }
VF vf vf_sub(vf a, vf b) { return _mm256_sub_ps(a, b); }
VF vf vf_mul(vf a, vf b) { return _mm256_mul_ps(a, b); }
VF vf vf_div(vf a, vf b) { return _mm256_div_ps(a, b); }
VF vf vf_sqrt(vf a) { return _mm256_sqrt_ps(a); }
VF vf vf_fma(vf a, vf b, vf c) { return _mm256_fmadd_ps(a, b, c); }
VF vf vf_fnma(vf a, vf b, vf c) { return _mm256_fnmadd_ps(a, b, c); }
VF vf vf_fms(vf a, vf b, vf c) { return _mm256_fmsub_ps(a, b, c); }
VF vf vf_max(vf a, vf b) { return _mm256_max_ps(a, b); }
VF vf vf_min(vf a, vf b) { return _mm256_min_ps(a, b); }
VF vf vf_abs(vf a) { return _mm256_andnot_ps(_mm256_set1_ps(-0.0f), a); }
VF vf vf_copysign(vf magnitude, vf sign)
{
    const vf bit = _mm256_set1_ps(-0.0f);
    return _mm256_or_ps(_mm256_andnot_ps(bit, magnitude), _mm256_and_ps(bit, sign));
}
VF vf vf_select_less(vf a, vf b, vf yes, vf no) { return _mm256_blendv_ps(no, yes, _mm256_cmp_ps(a, b, _CMP_LT_OQ)); }
VF vf vf_power_of_two(vf shifted)
{
    return _mm256_castsi256_ps(
        _mm256_slli_epi32(_mm256_add_epi32(_mm256_castps_si256(shifted), _mm256_set1_epi32(127)), 23));
}

/* Blends at stage s (a power of two): lanes whose index has bit s come from b. */
VF vf vf_blend1(vf a, vf b) { return _mm256_blend_ps(a, b, 0xAA); }
VF vf vf_blend2(vf a, vf b) { return _mm256_blend_ps(a, b, 0xCC); }
VF vf vf_blend4(vf a, vf b) { return _mm256_blend_ps(a, b, 0xF0); }

VF vi vi_load(const int32_t *p) { return _mm256_loadu_si256((const __m256i *)p); }
VF vi vi_set1(int32_t a) { return _mm256_set1_epi32(a); }
VF vi vi_sub(vi a, vi b) { return _mm256_sub_epi32(a, b); }
VF vi vi_xor(vi a, vi b) { return _mm256_xor_si256(a, b); }
VF vi vi_multiply_even(vi a, vi b) { return _mm256_mul_epu32(a, b); }
VF vi vi_odd(vi a) { return _mm256_srli_epi64(a, 32); }
VF void vi_store(void *p, vi a) { _mm256_storeu_si256((__m256i *)p, a); }
VF vi vi_add(vi a, vi b) { return _mm256_add_epi32(a, b); }
VF vi vi_mul(vi a, vi b) { return _mm256_mullo_epi32(a, b); }
VF vi vi_shift_left7(vi a) { return _mm256_slli_epi32(a, 7); }
VF vi vi_shift_left8(vi a) { return _mm256_slli_epi32(a, 8); }
VF vi vi_shift_right7(vi a) { return _mm256_srai_epi32(a, 7); }
VF vi vf_round(vf a) { return _mm256_cvtps_epi32(a); }
VF vf vf_from_int(vi a) { return _mm256_cvtepi32_ps(a); }
VF void vi_store_u8(uint8_t *p, vi a)
{
    const __m128i words = _mm_packus_epi32(_mm256_castsi256_si128(a), _mm256_extracti128_si256(a, 1));
    _mm_storel_epi64((__m128i *)p, _mm_packus_epi16(words, words));
}
VF vf vf_permute(vf a, vi index) { return _mm256_permutevar8x32_ps(a, index); }
VF vf vf_gather(const float *p, vi index) { return _mm256_i32gather_ps(p, index, 4); }

/* Compute the tree of kernels.h over 16 partial sums, and the largest of 16. */
VF float vf_sum_lanes(vf a)
{
    __m128 x = _mm_add_ps(_mm256_castps256_ps128(a), _mm256_extractf128_ps(a, 1));
    x = _mm_add_ps(x, _mm_movehl_ps(x, x));
    return _mm_cvtss_f32(_mm_add_ss(x, _mm_movehdup_ps(x)));
}
VF float vf_max_lanes(vf a)
{
    __m128 x = _mm_max_ps(_mm256_castps256_ps128(a), _mm256_extractf128_ps(a, 1));
    x = _mm_max_ps(x, _mm_movehl_ps(x, x));
    return _mm_cvtss_f32(_mm_max_ss(x, _mm_movehdup_ps(x)));
}
VF float vf_min_lanes(vf a)
{
    __m128 x = _mm_min_ps(_mm256_castps256_ps128(a), _mm256_extractf128_ps(a, 1));
    x = _mm_min_ps(x, _mm_movehl_ps(x, x));
    return _mm_cvtss_f32(_mm_min_ss(x, _mm_movehdup_ps(x)));
}
VF void vf_transpose(vf r[VF_LANES])
{
    vf t[8];
    for (int k = 0; k < 8; k += 2) {
        t[k] = _mm256_unpacklo_ps(r[k], r[k + 1]);
        t[k + 1] = _mm256_unpackhi_ps(r[k], r[k + 1]);
    }
    for (int k = 0; k < 8; k += 4) {
        r[k] = _mm256_shuffle_ps(t[k], t[k + 2], 0x44);
        r[k + 1] = _mm256_shuffle_ps(t[k], t[k + 2], 0xEE);
        r[k + 2] = _mm256_shuffle_ps(t[k + 1], t[k + 3], 0x44);
        r[k + 3] = _mm256_shuffle_ps(t[k + 1], t[k + 3], 0xEE);
    }
    for (int k = 0; k < 4; k++) {
        t[k] = _mm256_permute2f128_ps(r[k], r[k + 4], 0x20);
        t[k + 4] = _mm256_permute2f128_ps(r[k], r[k + 4], 0x31);
    }
    for (int k = 0; k < 8; k++) r[k] = t[k];
}
VF void vf_prefetch_l2(const char *p) { _mm_prefetch(p, _MM_HINT_T1); }
