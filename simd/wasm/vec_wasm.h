/* Defines the vector vocabulary on WebAssembly's SIMD128: 4 lanes. simd/README.md explains the names. The built module
 * selects how a multiply and an add fuse:
 *
 *     WASM_RELAXED 1  f32x4.relaxed_madd: one rounding where the engine fuses, which the module's loader must probe
 *     WASM_RELAXED 0  the product in double, which is exact, and a sum rounded to odd, demoted: one rounding everywhere
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <wasm_simd128.h>

#define VF            static inline __attribute__((always_inline))
#define VF_LANES      4
#define VF_NAME(name) name##_wasm
#define VF_ISA        "wasm"

typedef v128_t vf;
typedef v128_t vi;

VF vf vf_zero(void) { return wasm_f32x4_const_splat(0.0f); }
VF vf vf_set1(float a) { return wasm_f32x4_splat(a); }
VF vf vf_broadcast(const float *p) { return wasm_v128_load32_splat(p); }
VF vf vf_load(const float *p) { return wasm_v128_load(p); }
VF void vf_store(float *p, vf a) { wasm_v128_store(p, a); }
VF vf vf_load_n(const float *p, size_t n, vf rest)
{
    float lanes[4];
    wasm_v128_store(lanes, rest);
    for (size_t k = 0; k < n; k++) lanes[k] = p[k];
    return wasm_v128_load(lanes);
}
VF void vf_store_n(float *p, size_t n, vf a)
{
    float lanes[4];
    wasm_v128_store(lanes, a);
    for (size_t k = 0; k < n; k++) p[k] = lanes[k];
}
VF vf vf_add(vf a, vf b) { return wasm_f32x4_add(a, b); }
VF vf vf_sub(vf a, vf b) { return wasm_f32x4_sub(a, b); }
VF vf vf_mul(vf a, vf b) { return wasm_f32x4_mul(a, b); }
VF vf vf_div(vf a, vf b) { return wasm_f32x4_div(a, b); }
VF vf vf_sqrt(vf a) { return wasm_f32x4_sqrt(a); }

#if WASM_RELAXED
VF vf vf_fma(vf a, vf b, vf c) { return wasm_f32x4_relaxed_madd(a, b, c); }
#else
#define SEVERAL_LOOP _Pragma("clang loop unroll(disable)")
/* Multiplies and adds two lanes. The product of two floats is exact in double; the sum is rounded to odd, so that the
 * rounding to float that follows is the only one that shows (double has more than 2 x 24 + 2 bits; subnormal results
 * included). */
VF v128_t fma_to_odd(v128_t a, v128_t b, v128_t c)
{
    const v128_t p = wasm_f64x2_mul(a, b), s = wasm_f64x2_add(p, c);
    const v128_t t = wasm_f64x2_sub(s, p),
                 e = wasm_f64x2_add(wasm_f64x2_sub(p, wasm_f64x2_sub(s, t)), wasm_f64x2_sub(c, t));
    /* An inexact, even sum moves one step towards the error: +1 where error and sum have the same sign, else -1. */
    const v128_t inexact = wasm_f64x2_ne(e, wasm_f64x2_const_splat(0.0));
    const v128_t even = wasm_i64x2_eq(wasm_v128_and(s, wasm_i64x2_const_splat(1)), wasm_i64x2_const_splat(0));
    const v128_t step = wasm_v128_or(wasm_i64x2_shr(wasm_v128_xor(s, e), 63), wasm_i64x2_const_splat(1));
    /* For an infinite or NaN sum e is NaN; such sums stay. */
    const v128_t number = wasm_f64x2_eq(e, e);
    return wasm_i64x2_add(s, wasm_v128_and(wasm_v128_and(wasm_v128_and(inexact, even), number), step));
}
VF v128_t low_doubles(vf a) { return wasm_f64x2_promote_low_f32x4(a); }
VF v128_t high_doubles(vf a) { return wasm_f64x2_promote_low_f32x4(wasm_i32x4_shuffle(a, a, 2, 3, 2, 3)); }
VF vf floats_of_doubles(v128_t low, v128_t high)
{
    return wasm_i32x4_shuffle(wasm_f32x4_demote_f64x2_zero(low), wasm_f32x4_demote_f64x2_zero(high), 0, 1, 4, 5);
}
VF vf vf_fma(vf a, vf b, vf c)
{
    return floats_of_doubles(fma_to_odd(low_doubles(a), low_doubles(b), low_doubles(c)),
                             fma_to_odd(high_doubles(a), high_doubles(b), high_doubles(c)));
}
#endif

VF vf vf_fnma(vf a, vf b, vf c) { return vf_fma(wasm_f32x4_neg(a), b, c); }
VF vf vf_fms(vf a, vf b, vf c) { return vf_fma(a, b, wasm_f32x4_neg(c)); }

VF vf vf_max(vf a, vf b) { return wasm_f32x4_max(a, b); }
VF vf vf_min(vf a, vf b) { return wasm_f32x4_min(a, b); }
VF vf vf_abs(vf a) { return wasm_f32x4_abs(a); }
VF vf vf_copysign(vf magnitude, vf sign)
{
    return wasm_v128_bitselect(sign, magnitude, wasm_i32x4_const_splat((int32_t)0x80000000u));
}
VF vf vf_select_less(vf a, vf b, vf yes, vf no) { return wasm_v128_bitselect(yes, no, wasm_f32x4_lt(a, b)); }
VF vf vf_power_of_two(vf shifted) { return wasm_i32x4_shl(wasm_i32x4_add(shifted, wasm_i32x4_const_splat(127)), 23); }
VF vf vf_blend1(vf a, vf b) { return wasm_i32x4_shuffle(a, b, 0, 5, 2, 7); }
VF vf vf_blend2(vf a, vf b) { return wasm_i32x4_shuffle(a, b, 0, 1, 6, 7); }

VF vi vi_load(const int32_t *p) { return wasm_v128_load(p); }
VF vi vi_set1(int32_t a) { return wasm_i32x4_splat(a); }
VF vi vi_load_bytes(const int8_t *p) { return wasm_v128_load(p); }
VF vi vi_sub(vi a, vi b) { return wasm_i32x4_sub(a, b); }
VF vi vi_xor(vi a, vi b) { return wasm_v128_xor(a, b); }
VF vi vi_multiply_even(vi a, vi b)
{
    const v128_t x = wasm_i32x4_shuffle(a, a, 0, 2, 0, 2), y = wasm_i32x4_shuffle(b, b, 0, 2, 0, 2);
    return wasm_u64x2_extmul_low_u32x4(x, y);
}
VF vi vi_odd(vi a) { return wasm_u64x2_shr(a, 32); }
VF void vi_store(void *p, vi a) { wasm_v128_store(p, a); }
VF vi vi_add(vi a, vi b) { return wasm_i32x4_add(a, b); }
VF vi vi_mul(vi a, vi b) { return wasm_i32x4_mul(a, b); }
VF vi vi_shift_left7(vi a) { return wasm_i32x4_shl(a, 7); }
VF vi vi_shift_left8(vi a) { return wasm_i32x4_shl(a, 8); }
VF vi vi_shift_right7(vi a) { return wasm_i32x4_shr(a, 7); }
VF vi vf_round(vf a) { return wasm_i32x4_trunc_sat_f32x4(wasm_f32x4_nearest(a)); }
VF vf vf_from_int(vi a) { return wasm_f32x4_convert_i32x4(a); }
VF void vi_store_u8(uint8_t *p, vi a)
{
    const v128_t words = wasm_i16x8_narrow_i32x4(a, a); /* saturates to signed words, then to unsigned bytes */
    wasm_v128_store32_lane(p, wasm_u8x16_narrow_i16x8(words, words), 0);
}
VF vf vf_permute(vf a, vi index)
{
    const v128_t bytes =
        wasm_i32x4_add(wasm_i32x4_mul(index, wasm_i32x4_const_splat(0x04040404)), wasm_i32x4_const_splat(0x03020100));
    return wasm_i8x16_swizzle(a, bytes);
}
VF vf vf_gather(const float *p, vi index)
{
    return wasm_f32x4_make(p[wasm_i32x4_extract_lane(index, 0)], p[wasm_i32x4_extract_lane(index, 1)],
                           p[wasm_i32x4_extract_lane(index, 2)], p[wasm_i32x4_extract_lane(index, 3)]);
}
VF float vf_sum_lanes(vf a)
{
    const v128_t x = wasm_f32x4_add(a, wasm_i32x4_shuffle(a, a, 2, 3, 2, 3));
    return wasm_f32x4_extract_lane(x, 0) + wasm_f32x4_extract_lane(x, 1);
}
VF float vf_max_lanes(vf a)
{
    const v128_t x = wasm_f32x4_max(a, wasm_i32x4_shuffle(a, a, 2, 3, 2, 3));
    return wasm_f32x4_extract_lane(wasm_f32x4_max(x, wasm_i32x4_shuffle(x, x, 1, 1, 1, 1)), 0);
}
VF float vf_min_lanes(vf a)
{
    const v128_t x = wasm_f32x4_min(a, wasm_i32x4_shuffle(a, a, 2, 3, 2, 3));
    return wasm_f32x4_extract_lane(wasm_f32x4_min(x, wasm_i32x4_shuffle(x, x, 1, 1, 1, 1)), 0);
}
VF void vf_transpose(vf r[VF_LANES])
{
    const v128_t a = wasm_i32x4_shuffle(r[0], r[1], 0, 4, 2, 6), b = wasm_i32x4_shuffle(r[0], r[1], 1, 5, 3, 7);
    const v128_t c = wasm_i32x4_shuffle(r[2], r[3], 0, 4, 2, 6), d = wasm_i32x4_shuffle(r[2], r[3], 1, 5, 3, 7);
    r[0] = wasm_i32x4_shuffle(a, c, 0, 1, 4, 5);
    r[1] = wasm_i32x4_shuffle(b, d, 0, 1, 4, 5);
    r[2] = wasm_i32x4_shuffle(a, c, 2, 3, 6, 7);
    r[3] = wasm_i32x4_shuffle(b, d, 2, 3, 6, 7);
}
VF void vf_prefetch_l2(const char *p) { (void)p; }
