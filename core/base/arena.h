/* Memory in one block, measured and carved by the same code.
 *
 * A function `carve(arena, ...)` calls arena_take for every piece. Run on an arena without a block it only adds up; run
 * again on the real block it hands out the pieces: sizes cannot drift from pointers. Pieces are 64-byte aligned; blocks
 * of 2 MiB or more ask for huge pages. Under AddressSanitizer the gaps between pieces are poisoned.
 *
 *     arena memory = {0};
 *     carve(&memory, &session);                                   // adds up
 *     DEBERTA_TRY(arena_allocate(&memory, "session", limit, err));
 *     carve(&memory, &session);                                   // hands out
 *
 * The block may also be one that is already filled, such as a mapped file: the same carving then finds the pieces.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include "core/base/status.h"

enum { ARENA_ALIGNMENT_BYTES = 64 };

typedef struct arena {
    unsigned char *block; /* NULL while measuring */
    size_t capacity_bytes, used_bytes;
    bool overflow; /* a size did not fit in size_t: arena_allocate will refuse */
    bool borrowed; /* the block belongs to somebody else, and is read only */
} arena;

/* The next piece, zero-filled when real; NULL while measuring. count * element_bytes may be 0. NULL from a real arena
 * means that the carving asked for more than it measured: a bug in the caller, asserted. */
void *arena_take(arena *memory, size_t count, size_t element_bytes);
/* The capacity that a measured arena will have; refuses what arena_allocate would refuse but for want of memory. */
deberta_status arena_predict(const arena *memory, const char *what, size_t limit_bytes, size_t *capacity_bytes,
                             deberta_error *err);
/* Turns a measured arena into a real one of that size. what: for the message, e.g. "session". limit_bytes 0: none.
 * Memory is promised here and given by the system when first touched, so a block may be larger than what is used of it.
 */
deberta_status arena_allocate(arena *memory, const char *what, size_t limit_bytes, deberta_error *err);
/* Turns a measured arena into a view of `block`, which has the capacity that arena_predict said, is aligned to
 * ARENA_ALIGNMENT_BYTES and stays until the arena is released. Pieces hold what is there and must not be written. */
void arena_borrow(arena *memory, const void *block);
/* Hands out the pieces of a real arena again, from the first one on: the same carving finds them, with what they hold.
 */
void arena_rewind(arena *memory);
/* The whole block of a real arena, gaps included, for writing it to a file. Lifts the poison. */
const void *arena_contents(const arena *memory);
/* Gives the block back and leaves an empty, measuring arena. Accepts an arena that never got a block. */
void arena_release(arena *memory);
