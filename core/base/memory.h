/* Provides memory: growing arrays, blocks that are measured before they are carved, and one limit for all.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include "core/base/status.h"

/* Growing arrays: their capacity grows by half, and every size is checked for overflow. */

/* Returns `items` with room for at least `count` elements and updates *capacity; NULL without memory (or beyond what a
 * size_t holds): then the old array is still the caller's. Growing by half keeps appending linear. */
static inline void *grown(void *items, size_t *capacity, size_t count, size_t item_bytes)
{
    if (items && count <= *capacity) return items;
    size_t wanted = *capacity + *capacity / 2;
    if (wanted < count) wanted = count;
    if (wanted < 16) wanted = 16;
    if (wanted > SIZE_MAX / 2 / item_bytes) return NULL;
    void *larger = realloc(items, wanted * item_bytes);
    if (larger) *capacity = wanted;
    return larger;
}

/* Poisons memory that nothing may access for a while: AddressSanitizer reports a read or a write as use-after-poison;
 * other builds do not notice it. The memory keeps its content. */

#if defined(__SANITIZE_ADDRESS__)
#define FORBIDDEN_IS_NOTICED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define FORBIDDEN_IS_NOTICED 1
#endif
#endif
#ifndef FORBIDDEN_IS_NOTICED
#define FORBIDDEN_IS_NOTICED 0
#endif

#if FORBIDDEN_IS_NOTICED
#include <sanitizer/asan_interface.h>
static inline void memory_forbid(const void *start, size_t bytes) { __asan_poison_memory_region(start, bytes); }
static inline void memory_permit(const void *start, size_t bytes) { __asan_unpoison_memory_region(start, bytes); }
#else
static inline void memory_forbid(const void *start, size_t bytes) { (void)start, (void)bytes; }
static inline void memory_permit(const void *start, size_t bytes) { (void)start, (void)bytes; }
#endif

/* An arena is memory in one block, measured and carved by the same code.
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
 * The block may also be one that is already filled, such as a mapped file: the same carving then finds the pieces. */

enum { ARENA_ALIGNMENT_BYTES = 64 };

typedef struct arena {
    unsigned char *block; /* block of memory; NULL while measuring */
    size_t capacity_bytes, used_bytes;
    bool overflow; /* whether a size did not fit in size_t; arena_allocate then refuses */
    bool borrowed; /* whether the block belongs to the caller and is read-only */
} arena;

/* Returns the next piece, zero-filled when real; NULL while measuring. count * element_bytes may be 0. NULL from a real
 * arena means that the carving requested more than it measured: a bug in the caller, asserted. */
void *arena_take(arena *memory, size_t count, size_t element_bytes);
/* Computes the capacity that a measured arena will have; refuses like arena_allocate, except for lack of memory. */
deberta_status arena_predict(const arena *memory, const char *what, size_t limit_bytes, size_t *capacity_bytes,
                             deberta_error *err);
/* Turns a measured arena into a real one of that size. what: for the message, e.g. "session". limit_bytes 0: none. The
 * system reserves the memory and provides it when first touched, so a block may be larger than its used part. */
deberta_status arena_allocate(arena *memory, const char *what, size_t limit_bytes, deberta_error *err);
/* Turns a measured arena into a view of `block`, which has the capacity from arena_predict, is aligned to
 * ARENA_ALIGNMENT_BYTES and stays until the arena is released. Pieces have the block's content and must not be
 * written. */
void arena_borrow(arena *memory, const void *block);
/* Hands out the pieces of a real arena again, from the first one on: the same carving finds them with their content. */
void arena_rewind(arena *memory);
/* Returns the whole block of a real arena, gaps included, for writing it to a file. Lifts the poison. */
const void *arena_contents(const arena *memory);
/* Frees the block and leaves an empty, measuring arena. Accepts an arena that never got a block. */
void arena_release(arena *memory);

/* Float arrays for sequential access. */

/* Returns zeros at the beginning of a cache line, in huge pages where the system has them and the array fills some; the
 * caller frees them with free(). At least one float; NULL: no memory. */
float *large_floats(size_t count);

/* One limit covers all memory of a piece of work: the model, its sessions and the results that are kept. */

typedef struct memory_need {
    size_t model_bytes, session_bytes;
    size_t kept_bytes; /* attention and hidden states; SIZE_MAX for more than can be counted */
} memory_need;

/* Fails with DEBERTA_E_MEMORY, listing all parts, where the sum is above limit_bytes (0: none). */
deberta_status memory_need_check(const memory_need *need, size_t limit_bytes, deberta_error *err);

/* A size as text, for messages: "512 bytes", "3.0 MiB (3145728 bytes)". */
typedef struct byte_text {
    char text[48];
} byte_text;
byte_text bytes_describe(size_t bytes);
