/* The cuts of a normalised text and the piece of each: the result of core/text/unigram and core/text/piece_bpe.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include <stddef.h>
#include <stdint.h>

typedef struct piece_cut {
    uint32_t end; /* end in bytes; a piece begins at the end of the one before */
    int32_t id;   /* the model's unknown_id for a character that no piece covers */
} piece_cut;

/* Must be zero-initialised; reusable. */
typedef struct piece_cuts {
    piece_cut *items;
    size_t count, capacity;
} piece_cuts;
