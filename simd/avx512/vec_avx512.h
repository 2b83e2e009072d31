/* Defines the vector vocabulary on AVX-512 F, BW, DQ, VL: 16 lanes. simd/README.md explains the names.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include <immintrin.h>
#include <stddef.h>
#include <stdint.h>

#define VF            static inline __attribute__((always_inline))
#define VF_LANES      16
#define VF_NAME(name) name##_avx512
#define VF_ISA        "avx512"

typedef __m512 vf;
typedef __m512i vi;

VF vf vf_zero(void) { return _mm512_setzero_ps(); }
VF vf vf_set1(float a) { return _mm512_set1_ps(a); }
VF vf vf_broadcast(const float *p) { return _mm512_set1_ps(*p); }
VF vf vf_load(const float *p) { return _mm512_loadu_ps(p); }
VF void vf_store(float *p, vf a) { _mm512_storeu_ps(p, a); }

VF __mmask16 vf_first_lanes(size_t n) { return (__mmask16)((1u << n) - 1); }
VF vf vf_load_n(const float *p, size_t n, vf rest) { return _mm512_mask_loadu_ps(rest, vf_first_lanes(n), p); }
VF void vf_store_n(float *p, size_t n, vf a) { _mm512_mask_storeu_ps(p, vf_first_lanes(n), a); }

VF vf vf_add(vf a, vf b) { return _mm512_add_ps(a, b); }
VF vf vf_sub(vf a, vf b) { return _mm512_sub_ps(a, b); }
VF vf vf_mul(vf a, vf b) { return _mm512_mul_ps(a, b); }
VF vf vf_div(vf a, vf b) { return _mm512_div_ps(a, b); }
VF vf vf_sqrt(vf a) { return _mm512_sqrt_ps(a); }
VF vf vf_fma(vf a, vf b, vf c) { return _mm512_fmadd_ps(a, b, c); }
VF vf vf_fnma(vf a, vf b, vf c) { return _mm512_fnmadd_ps(a, b, c); }
VF vf vf_fms(vf a, vf b, vf c) { return _mm512_fmsub_ps(a, b, c); }
VF vf vf_max(vf a, vf b) { return _mm512_max_ps(a, b); }
VF vf vf_min(vf a, vf b) { return _mm512_min_ps(a, b); }
VF vf vf_abs(vf a) { return _mm512_abs_ps(a); }
VF vf vf_copysign(vf magnitude, vf sign)
{
    const vf bit = _mm512_set1_ps(-0.0f);
    return _mm512_or_ps(_mm512_andnot_ps(bit, magnitude), _mm512_and_ps(bit, sign));
}
VF vf vf_select_less(vf a, vf b, vf yes, vf no)
{
    return _mm512_mask_blend_ps(_mm512_cmp_ps_mask(a, b, _CMP_LT_OQ), no, yes);
}
VF vf vf_power_of_two(vf shifted)
{
    return _mm512_castsi512_ps(
        _mm512_slli_epi32(_mm512_add_epi32(_mm512_castps_si512(shifted), _mm512_set1_epi32(127)), 23));
}

/* Blends at stage s (a power of two): lanes whose index has bit s come from b. */
VF vf vf_blend1(vf a, vf b) { return _mm512_mask_blend_ps(0xAAAA, a, b); }
VF vf vf_blend2(vf a, vf b) { return _mm512_mask_blend_ps(0xCCCC, a, b); }
VF vf vf_blend4(vf a, vf b) { return _mm512_mask_blend_ps(0xF0F0, a, b); }
VF vf vf_blend8(vf a, vf b) { return _mm512_mask_blend_ps(0xFF00, a, b); }

VF vi vi_load(const int32_t *p) { return _mm512_loadu_si512(p); }
VF vi vi_set1(int32_t a) { return _mm512_set1_epi32(a); }
VF vi vi_sub(vi a, vi b) { return _mm512_sub_epi32(a, b); }
VF vi vi_xor(vi a, vi b) { return _mm512_xor_si512(a, b); }
VF vi vi_multiply_even(vi a, vi b) { return _mm512_mul_epu32(a, b); }
VF vi vi_odd(vi a) { return _mm512_srli_epi64(a, 32); }
VF void vi_store(void *p, vi a) { _mm512_storeu_si512(p, a); }
VF vi vi_add(vi a, vi b) { return _mm512_add_epi32(a, b); }
VF vi vi_mul(vi a, vi b) { return _mm512_mullo_epi32(a, b); }
VF vi vi_shift_left7(vi a) { return _mm512_slli_epi32(a, 7); }
VF vi vi_shift_left8(vi a) { return _mm512_slli_epi32(a, 8); }
VF vi vi_shift_right7(vi a) { return _mm512_srai_epi32(a, 7); }
VF vi vf_round(vf a) { return _mm512_cvtps_epi32(a); }
VF vf vf_from_int(vi a) { return _mm512_cvtepi32_ps(a); }
VF void vi_store_u8(uint8_t *p, vi a)
{
    _mm_storeu_si128((__m128i *)p, _mm512_cvtusepi32_epi8(_mm512_max_epi32(a, _mm512_setzero_si512())));
}
VF vf vf_permute(vf a, vi index) { return _mm512_permutexvar_ps(index, a); }
VF vf vf_gather(const float *p, vi index) { return _mm512_i32gather_ps(index, p, 4); }

/* Sums halves, quarters, ... It does not use _mm512_reduce_add_ps, whose order the compiler chooses. */
VF float vf_sum_lanes(vf a)
{
    const __m256 y = _mm256_add_ps(_mm512_castps512_ps256(a), _mm512_extractf32x8_ps(a, 1));
    __m128 x = _mm_add_ps(_mm256_castps256_ps128(y), _mm256_extractf128_ps(y, 1));
    x = _mm_add_ps(x, _mm_movehl_ps(x, x));
    return _mm_cvtss_f32(_mm_add_ss(x, _mm_movehdup_ps(x)));
}
VF float vf_max_lanes(vf a)
{
    const __m256 y = _mm256_max_ps(_mm512_castps512_ps256(a), _mm512_extractf32x8_ps(a, 1));
    __m128 x = _mm_max_ps(_mm256_castps256_ps128(y), _mm256_extractf128_ps(y, 1));
    x = _mm_max_ps(x, _mm_movehl_ps(x, x));
    return _mm_cvtss_f32(_mm_max_ss(x, _mm_movehdup_ps(x)));
}
VF float vf_min_lanes(vf a)
{
    const __m256 y = _mm256_min_ps(_mm512_castps512_ps256(a), _mm512_extractf32x8_ps(a, 1));
    __m128 x = _mm_min_ps(_mm256_castps256_ps128(y), _mm256_extractf128_ps(y, 1));
    x = _mm_min_ps(x, _mm_movehl_ps(x, x));
    return _mm_cvtss_f32(_mm_min_ss(x, _mm_movehdup_ps(x)));
}
VF void vf_transpose(vf r[VF_LANES])
{
    vf t[16];
    for (int k = 0; k < 16; k += 2) { /* pairs of lanes, then of pairs, inside each 128-bit quarter */
        t[k] = _mm512_unpacklo_ps(r[k], r[k + 1]);
        t[k + 1] = _mm512_unpackhi_ps(r[k], r[k + 1]);
    }
    for (int k = 0; k < 16; k += 4) {
        r[k] = _mm512_shuffle_ps(t[k], t[k + 2], 0x44);
        r[k + 1] = _mm512_shuffle_ps(t[k], t[k + 2], 0xEE);
        r[k + 2] = _mm512_shuffle_ps(t[k + 1], t[k + 3], 0x44);
        r[k + 3] = _mm512_shuffle_ps(t[k + 1], t[k + 3], 0xEE);
    }
    for (int k = 0; k < 4; k++) { /* then the 4 x 4 quarters */
        const vf a = _mm512_shuffle_f32x4(r[k], r[k + 4], 0x88), b = _mm512_shuffle_f32x4(r[k], r[k + 4], 0xDD);
        const vf c = _mm512_shuffle_f32x4(r[k + 8], r[k + 12], 0x88),
                 d = _mm512_shuffle_f32x4(r[k + 8], r[k + 12], 0xDD);
        t[k] = _mm512_shuffle_f32x4(a, c, 0x88);
        t[k + 8] = _mm512_shuffle_f32x4(a, c, 0xDD);
        t[k + 4] = _mm512_shuffle_f32x4(b, d, 0x88);
        t[k + 12] = _mm512_shuffle_f32x4(b, d, 0xDD);
    }
    for (int k = 0; k < 16; k++) r[k] = t[k];
}
VF void vf_prefetch_l2(const char *p) { _mm_prefetch(p, _MM_HINT_T1); }
