/* Computes SHA-256 (FIPS 180-4) on every processor; sha256_instructions.c uses the processor's instructions for it.
 *
 * SPDX-License-Identifier: MIT */
#include "core/base/sha256.h"

#include <string.h>

#include "core/base/cpu.h"

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
        uint32_t t1 = h + sum1 + ((e & f) ^ (~e & g)) + sha256_round_constants[t] + w[t];
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

void sha256_begin(sha256 *hash, unsigned features)
{
    /* The first 32 bits of the fractional parts of the square roots of the first 8 primes. */
    *hash = (sha256){
        .state = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19},
        .compress = features & CPU_SHA256 ? sha256_compress_by_instructions : compress_plainly};
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
