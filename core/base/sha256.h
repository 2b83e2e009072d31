/* SHA-256 (FIPS 180-4), for naming models by their content.
 *
 * SPDX-License-Identifier: MIT */
#ifndef CORE_BASE_SHA256_H
#define CORE_BASE_SHA256_H

#include <stddef.h>
#include <stdint.h>

/* Works `count` blocks of 64 bytes into the state. */
typedef void sha256_compress(uint32_t state[8], const uint8_t *blocks, size_t count);

typedef struct sha256 {
    uint32_t state[8];
    uint64_t count_bytes;
    uint8_t block[64]; /* what does not fill a block yet */
    sha256_compress *compress;
} sha256;

/* features: what the processor has, of cpu.h. With CPU_SHA256 its own instructions do the work, several times as fast
 * as plain C; the digest is the same. */
void sha256_begin(sha256 *hash, unsigned features);
void sha256_add(sha256 *hash, const void *bytes, size_t count_bytes);
/* 64 lower-case hex digits and a terminator. */
void sha256_finish(sha256 *hash, char digest[65]);

/* The first 32 bits of the fractional parts of the cube roots of the first 64 primes. */
extern const uint32_t sha256_round_constants[64];
/* Only on a processor with CPU_SHA256. */
sha256_compress sha256_compress_by_instructions;

#endif
