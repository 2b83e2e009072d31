/* FNV-1a over bytes: for tables, names and the division of items, not against anybody's will.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include <stddef.h>
#include <stdint.h>

static const uint64_t hash_of_nothing = 0xcbf29ce484222325u;

/* Goes on with the hash of what stood before. */
static inline uint64_t hash_bytes(uint64_t hash, const char *bytes, size_t count)
{
    for (size_t k = 0; k < count; k++) hash = (hash ^ (unsigned char)bytes[k]) * 0x100000001b3u;
    return hash;
}
