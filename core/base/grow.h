/* Growing arrays: by half, with their sizes checked.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include <stdint.h>
#include <stdlib.h>

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
