/* Implements gemm_u8, gemm_u8x2 and gemm_u15 on NEON without dot-product instructions: bytes are multiplied to 16 bits,
 * added in pairs there, and pairs of these to 32-bit lanes. A pair is at most 2 128 127 < 2^15, so nothing saturates;
 * activations are shifted to -128 ... 127 for that.
 *
 * 4 rows x 1 panel of four vectors: 16 of 32 registers accumulate.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#define INTEGER_MAX_ROWS             4
#define INTEGER_MAX_VECTORS          4
#define INTEGER_PANELS(digits)       1
#define INTEGER_ROWS(digits, panels) ((digits) == 1 ? 4 : 2)
#define INTEGER_OPERAND              DIGITS_LESS_128

VF vi vi_dot(vi sum, vi a, vi b)
{
    const int8x16_t x = vreinterpretq_s8_s32(a), y = vreinterpretq_s8_s32(b);
    return vpadalq_s16(sum, vpaddq_s16(vmull_s8(vget_low_s8(x), vget_low_s8(y)), vmull_high_s8(x, y)));
}

#include "simd/tmpl/integer_dot_tmpl.h"
