/* Quads of bytes on NEON. SPDX-License-Identifier: MIT */
#ifndef SIMD_NEON_QUADS_NEON_H
#define SIMD_NEON_QUADS_NEON_H

VF vi vi_load_bytes(const int8_t *p) { return vreinterpretq_s32_s8(vld1q_s8(p)); }
VF vi quad_in_all_lanes(const uint8_t *p)
{
    int32_t quad;
    __builtin_memcpy(&quad, p, sizeof quad);
    return vdupq_n_s32(quad);
}
/* 128 less where the instruction takes signed bytes on both sides. */
VF vi vi_broadcast_quad(const uint8_t *p)
{
    const vi quad = quad_in_all_lanes(p);
    return INTEGER_OPERAND == DIGITS_LESS_128 ? veorq_s32(quad, vdupq_n_s32((int32_t)0x80808080u)) : quad;
}

#endif
