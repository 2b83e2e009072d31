/* Computes SHA-256 with the instructions that x86-64 and aarch64 processors have for it. Only these functions are
 * compiled for those instructions, so that the program runs everywhere; CPU_SHA256 says where they may be called.
 *
 * SPDX-License-Identifier: MIT */
#include "core/base/sha256_compress.h"

#if defined(__x86_64__) || defined(__i386__)
#include <immintrin.h>

/* Returns four words of the message schedule after the 16 in m, where word t is at index t mod 16. */
__attribute__((target("sha,ssse3,sse4.1"))) static inline __m128i next_words(const __m128i m[4], int group)
{
    const __m128i last = m[(group + 3) % 4];
    const __m128i sum = _mm_add_epi32(_mm_sha256msg1_epu32(m[group % 4], m[(group + 1) % 4]),
                                      _mm_alignr_epi8(last, m[(group + 2) % 4], 4));
    return _mm_sha256msg2_epu32(sum, last);
}

/* The instructions take the eight variables of the standard as {a,b,e,f} and {c,d,g,h}, the first word on top. */
__attribute__((target("sha,ssse3,sse4.1"))) void sha256_compress_by_instructions(uint32_t state[8],
                                                                                 const uint8_t *blocks, size_t count)
{
    const __m128i big_endian = _mm_set_epi8(12, 13, 14, 15, 8, 9, 10, 11, 4, 5, 6, 7, 0, 1, 2, 3);
    const __m128i abcd = _mm_shuffle_epi32(_mm_loadu_si128((const __m128i *)state), 0xb1);
    const __m128i efgh = _mm_shuffle_epi32(_mm_loadu_si128((const __m128i *)(state + 4)), 0x1b);
    __m128i abef = _mm_alignr_epi8(abcd, efgh, 8), cdgh = _mm_blend_epi16(efgh, abcd, 0xf0);
    for (; count > 0; count--, blocks += 64) {
        const __m128i abef_before = abef, cdgh_before = cdgh;
        __m128i m[4];
#pragma GCC unroll 16
        for (int group = 0; group < 16; group++) {
            __m128i *words = &m[group % 4];
            *words = group < 4 ? _mm_shuffle_epi8(_mm_loadu_si128((const __m128i *)(blocks + 16 * group)), big_endian)
                               : next_words(m, group);
            const __m128i constants = _mm_loadu_si128((const __m128i *)(sha256_round_constants + 4 * group));
            const __m128i sum = _mm_add_epi32(*words, constants);
            /* Each instruction does two rounds. The variables change places as in the standard's h = g, g = f, ... */
            cdgh = _mm_sha256rnds2_epu32(cdgh, abef, sum);
            abef = _mm_sha256rnds2_epu32(abef, cdgh, _mm_shuffle_epi32(sum, 0x0e));
        }
        abef = _mm_add_epi32(abef, abef_before);
        cdgh = _mm_add_epi32(cdgh, cdgh_before);
    }
    const __m128i feba = _mm_shuffle_epi32(abef, 0x1b), dchg = _mm_shuffle_epi32(cdgh, 0xb1);
    _mm_storeu_si128((__m128i *)state, _mm_blend_epi16(feba, dchg, 0xf0));
    _mm_storeu_si128((__m128i *)(state + 4), _mm_alignr_epi8(dchg, feba, 8));
}
#elif defined(__aarch64__)
#include <arm_neon.h>

__attribute__((target("+crypto"))) void sha256_compress_by_instructions(uint32_t state[8], const uint8_t *blocks,
                                                                        size_t count)
{
    uint32x4_t abcd = vld1q_u32(state), efgh = vld1q_u32(state + 4);
    for (; count > 0; count--, blocks += 64) {
        const uint32x4_t abcd_before = abcd, efgh_before = efgh;
        uint32x4_t m[4];
#pragma GCC unroll 16
        for (int group = 0; group < 16; group++) {
            uint32x4_t *words = &m[group % 4];
            *words = group < 4 ? vreinterpretq_u32_u8(vrev32q_u8(vld1q_u8(blocks + 16 * group)))
                               : vsha256su1q_u32(vsha256su0q_u32(*words, m[(group + 1) % 4]), m[(group + 2) % 4],
                                                 m[(group + 3) % 4]);
            const uint32x4_t sum = vaddq_u32(*words, vld1q_u32(sha256_round_constants + 4 * group));
            const uint32x4_t abcd_now = abcd;
            abcd = vsha256hq_u32(abcd, efgh, sum);
            efgh = vsha256h2q_u32(efgh, abcd_now, sum);
        }
        abcd = vaddq_u32(abcd, abcd_before);
        efgh = vaddq_u32(efgh, efgh_before);
    }
    vst1q_u32(state, abcd);
    vst1q_u32(state + 4, efgh);
}
#else
void sha256_compress_by_instructions(uint32_t state[8], const uint8_t *blocks, size_t count)
{
    (void)state, (void)blocks, (void)count; /* cpu_features never has CPU_SHA256 here */
}
#endif
