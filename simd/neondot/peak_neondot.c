/* Measures the peak of byte products with the dot product of signed bytes. SPDX-License-Identifier: MIT */
#include <arm_neon.h>

static inline int32x4_t dot(int32x4_t sum, int32x4_t a, int32x4_t b)
{
    return vdotq_s32(sum, vreinterpretq_s8_s32(a), vreinterpretq_s8_s32(b));
}

#define PEAK_BYTES_NAME   peak_bytes_neondot
#define PEAK_BYTES_VECTOR int32x4_t
#define PEAK_DOT          dot
#define PEAK_PRODUCTS     16
#define PEAK_BYTES_CHAINS CHAINS_24
#define PEAK_REGISTER     "w"
#include "simd/tmpl/peak_u8_tmpl.h"
