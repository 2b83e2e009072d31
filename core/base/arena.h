/* Memory in one block, measured and carved by the same code.
 *
 * A function `carve(arena, ...)` calls arena_take for every piece. Run on an arena without a block it only adds up; run again
 * on the real block it hands out the pieces: sizes cannot drift from pointers. Pieces are 64-byte aligned; blocks of 2 MiB or
 * more ask for huge pages. Under AddressSanitizer the gaps between pieces are poisoned.
 *
 * SPDX-License-Identifier: MIT */
#ifndef CORE_BASE_ARENA_H
#define CORE_BASE_ARENA_H

#include "core/base/status.h"

typedef struct arena {
    unsigned char *block; /* NULL while measuring */
    size_t capacity_bytes, used_bytes;
    bool overflow;        /* a size did not fit in size_t: arena_allocate will refuse */
} arena;

/* The next piece, zero-filled when real; NULL while measuring. count * element_bytes may be 0. */
void *arena_take(arena *arena, size_t count, size_t element_bytes);
/* Turns a measured arena into a real one of that size. what: for the message, e.g. "session". limit_bytes 0: none. */
deberta_status arena_allocate(arena *arena, const char *what, size_t limit_bytes, deberta_error *err);
void arena_release(arena *arena);

#endif
