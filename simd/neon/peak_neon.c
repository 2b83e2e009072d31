/* Measures the peak of NEON with multiply-adds of 128 bits, and with products of bytes, added in pairs.
 *
 * SPDX-License-Identifier: MIT */
#include <arm_neon.h>

static inline int32x4_t dot(int32x4_t sum, int32x4_t a, int32x4_t b)
{
    const int8x16_t x = vreinterpretq_s8_s32(a), y = vreinterpretq_s8_s32(b);
    return vpadalq_s16(sum, vpaddq_s16(vmull_s8(vget_low_s8(x), vget_low_s8(y)), vmull_high_s8(x, y)));
}

#define PEAK_BYTES_NAME   peak_bytes_neon
#define PEAK_BYTES_VECTOR int32x4_t
#define PEAK_DOT          dot
#define PEAK_PRODUCTS     16
#define PEAK_BYTES_CHAINS CHAINS_12
#define PEAK_REGISTER     "w"
#include "simd/tmpl/peak_u8_tmpl.h"

typedef float register_of_floats __attribute__((vector_size(16)));
#define PEAK_NAME   peak_neon
#define PEAK_VECTOR register_of_floats
#define PEAK_CHAINS CHAINS_24
#include "simd/tmpl/peak_tmpl.h"
