/* Implements gemm_u8, gemm_u8x2 and gemm_u15 on SIMD128: bytes are multiplied to 16 bits, added in pairs to 32 bits,
 * and then added to their neighbours. Activations are shifted to -128 ... 127, so that a product is at most 128 128 <
 * 2^15.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#define INTEGER_MAX_ROWS             3
#define INTEGER_MAX_VECTORS          4
#define INTEGER_PANELS(digits)       1
#define INTEGER_ROWS(digits, panels) ((digits) == 1 ? 3 : 2)
#define INTEGER_OPERAND              DIGITS_LESS_128

VF vi vi_dot(vi sum, vi a, vi b)
{
    const v128_t low = wasm_i16x8_extmul_low_i8x16(a, b), high = wasm_i16x8_extmul_high_i8x16(a, b);
    const v128_t x = wasm_i32x4_extadd_pairwise_i16x8(low), y = wasm_i32x4_extadd_pairwise_i16x8(high);
    return wasm_i32x4_add(sum,
                          wasm_i32x4_add(wasm_i32x4_shuffle(x, y, 0, 2, 4, 6), wasm_i32x4_shuffle(x, y, 1, 3, 5, 7)));
}

#include "simd/tmpl/integer_dot_tmpl.h"
