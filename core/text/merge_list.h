/* The symbols of a text, and the neighbours among them that wait to be merged: what both kinds of byte-pair encoding
 * have in common.
 *
 * Symbols form a linked list; a heap holds the pairs, lowest rank first, leftmost first. So a text of n bytes takes
 * O(n log n), whether it is "the" or ten megabytes of one letter. Which pairs can be merged, into what, and when they
 * are pushed is the owner's business.
 *
 * SPDX-License-Identifier: MIT */
#ifndef CORE_TEXT_MERGE_LIST_H
#define CORE_TEXT_MERGE_LIST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Its index is the byte that it begins at, `next` the byte that it ends at, where the next one begins. */
typedef struct merge_symbol {
    int32_t what; /* as the owner sees it */
    uint32_t previous, next;
} merge_symbol;

#define MERGE_NO_SYMBOL UINT32_MAX /* before the first */

typedef struct merge_pair {
    uint32_t rank, at, end; /* two symbols that begin and end at these bytes */
    int32_t merged;         /* what they become */
} merge_pair;

/* Reusable; zero-initialised at first. */
typedef struct merge_list {
    merge_symbol *symbols;
    uint32_t bytes; /* of the text */
    merge_pair *heap;
    size_t symbol_capacity, heap_count, heap_capacity;
} merge_list;

void merge_list_free(merge_list *list);

/* Empties the list and makes room; the symbols are then added from left to right. False: no memory. */
bool merge_list_begin(merge_list *list, size_t bytes);
static inline void merge_list_add(merge_list *list, size_t at, size_t end, int32_t what, uint32_t *previous)
{
    list->symbols[at] = (merge_symbol){.what = what, .previous = *previous, .next = (uint32_t)end};
    *previous = (uint32_t)at;
}

/* False: no memory. */
bool merge_list_push(merge_list *list, merge_pair pair);

/* Takes the first pair out of the heap, which must not be empty, and merges it. False: the pair is gone, since one of
 * the two was merged with somebody else. */
bool merge_list_take(merge_list *list, merge_pair *pair);

#endif
