/* Computes SHA-256 (FIPS 180-4), in plain C and with the instructions that x86-64 and aarch64 processors have for it.
 *
 * SPDX-License-Identifier: MIT */
#include "core/base/sha256.h"

#include <string.h>
#if defined(__x86_64__) || defined(__i386__)
#include <immintrin.h>
#elif defined(__aarch64__)
#include <arm_neon.h>
#endif

#include "core/base/cpu.h"

/* The first 32 bits of the fractional parts of the cube roots of the first 64 primes. */
static const uint32_t round_constants[64] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2,
};

static uint32_t rotate(uint32_t x, int n) { return x >> n | x << (32 - n); }

static uint32_t load_big_endian(const uint8_t *at)
{
    return (uint32_t)at[0] << 24 | (uint32_t)at[1] << 16 | (uint32_t)at[2] << 8 | at[3];
}

static void store_big_endian(uint8_t *at, uint32_t x)
{
    for (int i = 0; i < 4; i++) at[i] = (uint8_t)(x >> (24 - 8 * i));
}

/* Compresses one block. The names are those of the standard. */
static void compress_block(uint32_t state[8], const uint8_t *block)
{
    uint32_t w[64];
    for (int t = 0; t < 16; t++) w[t] = load_big_endian(block + 4 * t);
    for (int t = 16; t < 64; t++) {
        uint32_t s0 = rotate(w[t - 15], 7) ^ rotate(w[t - 15], 18) ^ w[t - 15] >> 3;
        uint32_t s1 = rotate(w[t - 2], 17) ^ rotate(w[t - 2], 19) ^ w[t - 2] >> 10;
        w[t] = w[t - 16] + s0 + w[t - 7] + s1;
    }
    uint32_t a = state[0], b = state[1], c = state[2], d = state[3];
    uint32_t e = state[4], f = state[5], g = state[6], h = state[7];
    for (int t = 0; t < 64; t++) {
        uint32_t sum1 = rotate(e, 6) ^ rotate(e, 11) ^ rotate(e, 25);
        uint32_t t1 = h + sum1 + ((e & f) ^ (~e & g)) + round_constants[t] + w[t];
        uint32_t sum0 = rotate(a, 2) ^ rotate(a, 13) ^ rotate(a, 22);
        uint32_t t2 = sum0 + ((a & b) ^ (a & c) ^ (b & c));
        h = g, g = f, f = e, e = d + t1;
        d = c, c = b, b = a, a = t1 + t2;
    }
    state[0] += a, state[1] += b, state[2] += c, state[3] += d;
    state[4] += e, state[5] += f, state[6] += g, state[7] += h;
}

static void compress_plainly(uint32_t state[8], const uint8_t *blocks, size_t count)
{
    for (; count > 0; count--, blocks += 64) compress_block(state, blocks);
}

/* Only these functions are compiled for the instructions, so that the program runs everywhere; CPU_SHA256 says where
 * they may be called. */

#if defined(__x86_64__) || defined(__i386__)
/* Returns four words of the message schedule after the 16 in m, where word t is at index t mod 16. */
__attribute__((target("sha,ssse3,sse4.1"))) static inline __m128i next_words(const __m128i m[4], int group)
{
    const __m128i last = m[(group + 3) % 4];
    const __m128i sum = _mm_add_epi32(_mm_sha256msg1_epu32(m[group % 4], m[(group + 1) % 4]),
                                      _mm_alignr_epi8(last, m[(group + 2) % 4], 4));
    return _mm_sha256msg2_epu32(sum, last);
}

/* The instructions take the eight variables of the standard as {a,b,e,f} and {c,d,g,h}, the first word on top. */
__attribute__((target("sha,ssse3,sse4.1"))) static void compress_by_instructions(uint32_t state[8],
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
            const __m128i constants = _mm_loadu_si128((const __m128i *)(round_constants + 4 * group));
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
__attribute__((target("+crypto"))) static void compress_by_instructions(uint32_t state[8], const uint8_t *blocks,
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
            const uint32x4_t sum = vaddq_u32(*words, vld1q_u32(round_constants + 4 * group));
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
static void compress_by_instructions(uint32_t state[8], const uint8_t *blocks, size_t count)
{
    (void)state, (void)blocks, (void)count; /* cpu_features never has CPU_SHA256 here */
}
#endif

void sha256_begin(sha256 *hash, unsigned features)
{
    /* The first 32 bits of the fractional parts of the square roots of the first 8 primes. */
    *hash = (sha256){
        .state = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19},
        .compress = features & CPU_SHA256 ? compress_by_instructions : compress_plainly};
}

void sha256_add(sha256 *hash, const void *bytes, size_t count_bytes)
{
    const uint8_t *at = bytes;
    while (count_bytes > 0) {
        size_t used = hash->count_bytes % 64, piece = 64 - used < count_bytes ? 64 - used : count_bytes;
        if (piece == 64) {
            piece = count_bytes / 64 * 64; /* Whole blocks are hashed in place, without a copy. */
            hash->compress(hash->state, at, piece / 64);
        } else {
            memcpy(hash->block + used, at, piece);
            if (used + piece == 64) hash->compress(hash->state, hash->block, 1);
        }
        hash->count_bytes += piece;
        at += piece;
        count_bytes -= piece;
    }
}

void sha256_finish(sha256 *hash, char digest[65])
{
    static const char digits[] = "0123456789abcdef";
    static const uint8_t padding[64] = {0x80};
    uint64_t count_bits = hash->count_bytes * 8;
    uint8_t length[8];
    store_big_endian(length, (uint32_t)(count_bits >> 32));
    store_big_endian(length + 4, (uint32_t)count_bits);
    /* A 1 bit, then zeros until 8 bytes are left in the block for the length. */
    size_t used = hash->count_bytes % 64;
    sha256_add(hash, padding, used < 56 ? 56 - used : 120 - used);
    sha256_add(hash, length, sizeof length);
    for (int i = 0; i < 64; i++) digest[i] = digits[hash->state[i / 8] >> (28 - 4 * (i % 8)) & 15];
    digest[64] = 0;
}

bool sha256_is_digest(const char *text) { return strlen(text) == 64 && strspn(text, "0123456789abcdef") == 64; }
