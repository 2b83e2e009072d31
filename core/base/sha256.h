/* SHA-256 (FIPS 180-4), which identifies models by their content.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Updates the state with `count` blocks of 64 bytes. */
typedef void sha256_compress(uint32_t state[8], const uint8_t *blocks, size_t count);

typedef struct sha256 {
    uint32_t state[8];
    uint64_t count_bytes;
    uint8_t block[64]; /* bytes that do not fill a block yet */
    sha256_compress *compress;
} sha256;

/* Begins a hash. features: those of the processor, from cpu.h. With CPU_SHA256 the hash uses the processor's
 * instructions, several times as fast as plain C; the digest is the same. */
void sha256_begin(sha256 *hash, unsigned features);
void sha256_add(sha256 *hash, const void *bytes, size_t count_bytes);
/* Writes 64 lower-case hex digits and a terminator. */
void sha256_finish(sha256 *hash, char digest[65]);
/* Returns whether a text has the form that sha256_finish writes. */
bool sha256_is_digest(const char *text);
