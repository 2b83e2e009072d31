/* Defines the vector vocabulary on NEON (aarch64): 4 lanes. simd/README.md explains the names.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include <arm_neon.h>
#include <stddef.h>
#include <stdint.h>

#define VF            static inline __attribute__((always_inline))
#define VF_LANES      4
#define VF_NAME(name) name##_neon
#define VF_ISA        "neon"

typedef float32x4_t vf;
typedef int32x4_t vi;

VF vf vf_zero(void) { return vdupq_n_f32(0.0f); }
VF vf vf_set1(float a) { return vdupq_n_f32(a); }
VF vf vf_broadcast(const float *p) { return vld1q_dup_f32(p); }
VF vf vf_load(const float *p) { return vld1q_f32(p); }
VF void vf_store(float *p, vf a) { vst1q_f32(p, a); }

VF vf vf_load_n(const float *p, size_t n, vf rest)
{
    float lanes[4];
    vst1q_f32(lanes, rest);
    for (size_t k = 0; k < n; k++) lanes[k] = p[k];
    return vld1q_f32(lanes);
}
VF void vf_store_n(float *p, size_t n, vf a)
{
    float lanes[4];
    vst1q_f32(lanes, a);
    for (size_t k = 0; k < n; k++) p[k] = lanes[k];
}

VF vf vf_add(vf a, vf b) { return vaddq_f32(a, b); }
VF vf vf_sub(vf a, vf b) { return vsubq_f32(a, b); }
VF vf vf_mul(vf a, vf b) { return vmulq_f32(a, b); }
VF vf vf_div(vf a, vf b) { return vdivq_f32(a, b); }
VF vf vf_sqrt(vf a) { return vsqrtq_f32(a); }
VF vf vf_fma(vf a, vf b, vf c) { return vfmaq_f32(c, a, b); }
VF vf vf_fnma(vf a, vf b, vf c) { return vfmsq_f32(c, a, b); }
VF vf vf_fms(vf a, vf b, vf c) { return vfmaq_f32(vnegq_f32(c), a, b); }
VF vf vf_max(vf a, vf b) { return vmaxq_f32(a, b); }
VF vf vf_min(vf a, vf b) { return vminq_f32(a, b); }
VF vf vf_abs(vf a) { return vabsq_f32(a); }
VF vf vf_copysign(vf magnitude, vf sign) { return vbslq_f32(vdupq_n_u32(0x80000000u), sign, magnitude); }
VF vf vf_select_less(vf a, vf b, vf yes, vf no) { return vbslq_f32(vcltq_f32(a, b), yes, no); }
VF vf vf_power_of_two(vf shifted)
{
    return vreinterpretq_f32_s32(vshlq_n_s32(vaddq_s32(vreinterpretq_s32_f32(shifted), vdupq_n_s32(127)), 23));
}

/* Blends at stage s (a power of two): lanes whose index has bit s come from b. */
VF vf vf_blend1(vf a, vf b) { return vbslq_f32((uint32x4_t){0, ~0u, 0, ~0u}, b, a); }
VF vf vf_blend2(vf a, vf b) { return vbslq_f32((uint32x4_t){0, 0, ~0u, ~0u}, b, a); }

VF vi vi_load(const int32_t *p) { return vld1q_s32(p); }
VF vi vi_set1(int32_t a) { return vdupq_n_s32(a); }
VF vi vi_load_bytes(const int8_t *p) { return vreinterpretq_s32_s8(vld1q_s8(p)); }
VF vi vi_sub(vi a, vi b) { return vsubq_s32(a, b); }
VF vi vi_xor(vi a, vi b) { return veorq_s32(a, b); }
VF vi vi_multiply_even(vi a, vi b)
{
    return vreinterpretq_s32_u64(vmull_u32(vmovn_u64(vreinterpretq_u64_s32(a)), vmovn_u64(vreinterpretq_u64_s32(b))));
}
VF vi vi_odd(vi a) { return vreinterpretq_s32_u64(vshrq_n_u64(vreinterpretq_u64_s32(a), 32)); }
VF void vi_store(void *p, vi a) { vst1q_s32((int32_t *)p, a); }
VF vi vi_add(vi a, vi b) { return vaddq_s32(a, b); }
VF vi vi_mul(vi a, vi b) { return vmulq_s32(a, b); }
VF vi vi_shift_left7(vi a) { return vshlq_n_s32(a, 7); }
VF vi vi_shift_left8(vi a) { return vshlq_n_s32(a, 8); }
VF vi vi_shift_right7(vi a) { return vshrq_n_s32(a, 7); }
VF vi vf_round(vf a) { return vcvtnq_s32_f32(a); }
VF vf vf_from_int(vi a) { return vcvtq_f32_s32(a); }
VF void vi_store_u8(uint8_t *p, vi a)
{
    const uint16x4_t words = vqmovun_s32(a);
    const uint32_t bytes = vget_lane_u32(vreinterpret_u32_u8(vqmovn_u16(vcombine_u16(words, words))), 0);
    __builtin_memcpy(p, &bytes, sizeof bytes);
}
VF vf vf_permute(vf a, vi index) /* a table look-up works on bytes: lane k of index selects bytes 4k ... 4k + 3 */
{
    const uint32x4_t bytes = vmlaq_n_u32(vdupq_n_u32(0x03020100u), vreinterpretq_u32_s32(index), 0x04040404u);
    return vreinterpretq_f32_u8(vqtbl1q_u8(vreinterpretq_u8_f32(a), vreinterpretq_u8_u32(bytes)));
}
VF vf vf_gather(const float *p, vi index)
{
    const float lanes[4] = {p[vgetq_lane_s32(index, 0)], p[vgetq_lane_s32(index, 1)], p[vgetq_lane_s32(index, 2)],
                            p[vgetq_lane_s32(index, 3)]};
    return vld1q_f32(lanes);
}

VF float vf_sum_lanes(vf a)
{
    const float32x2_t x = vadd_f32(vget_low_f32(a), vget_high_f32(a));
    return vget_lane_f32(x, 0) + vget_lane_f32(x, 1);
}
VF float vf_max_lanes(vf a) { return vmaxvq_f32(a); }
VF float vf_min_lanes(vf a) { return vminvq_f32(a); }
VF void vf_transpose(vf r[VF_LANES])
{
    const float32x4x2_t a = vtrnq_f32(r[0], r[1]), b = vtrnq_f32(r[2], r[3]);
    r[0] = vcombine_f32(vget_low_f32(a.val[0]), vget_low_f32(b.val[0]));
    r[1] = vcombine_f32(vget_low_f32(a.val[1]), vget_low_f32(b.val[1]));
    r[2] = vcombine_f32(vget_high_f32(a.val[0]), vget_high_f32(b.val[0]));
    r[3] = vcombine_f32(vget_high_f32(a.val[1]), vget_high_f32(b.val[1]));
}
VF void vf_prefetch_l2(const char *p) { __builtin_prefetch(p, 0, 2); }
