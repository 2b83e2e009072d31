/* Holds the symbols of a text and their pairs that wait to be merged, for both kinds of byte-pair encoding.
 *
 * Symbols form a linked list; a heap holds the pairs, lowest rank first, leftmost first. So a text of n bytes takes O(n
 * log n), whether it is "the" or ten megabytes of one letter. The owner decides which pairs can be merged, into which
 * symbols, and when they are pushed. All functions are inline: words are short, and calls would cost v1 4 % of its
 * speed.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include <stdbool.h>

#include "core/base/memory.h"

/* A symbol's index is the byte at which it begins; `next` is the byte at which it ends and the next one begins. */
typedef struct merge_symbol {
    int32_t what; /* value that the owner defines */
    uint32_t previous, next;
} merge_symbol;

#define MERGE_NO_SYMBOL UINT32_MAX /* no symbol before the first */
enum { MERGE_GONE = 0 };           /* value of `next`: merged into its left neighbour */

typedef struct merge_pair {
    uint32_t rank, at, end; /* bytes at which the two symbols begin and end */
    int32_t merged;         /* symbol that they become */
} merge_pair;

/* Reusable; must be zero-initialised. */
typedef struct merge_list {
    merge_symbol *symbols;
    uint32_t bytes; /* number of bytes of the text */
    merge_pair *heap;
    size_t symbol_capacity, heap_count, heap_capacity;
} merge_list;

static inline void merge_list_free(merge_list *list)
{
    free(list->symbols);
    free(list->heap);
    *list = (merge_list){0};
}

/* Empties the list and reserves memory for the symbols, which are then added from left to right. False: no memory. */
static inline bool merge_list_begin(merge_list *list, size_t bytes)
{
    merge_symbol *symbols = grown(list->symbols, &list->symbol_capacity, bytes, sizeof *symbols);
    if (!symbols) return false;
    list->symbols = symbols;
    list->bytes = (uint32_t)bytes;
    list->heap_count = 0;
    return true;
}

static inline void merge_list_add(merge_list *list, size_t at, size_t end, int32_t what, uint32_t *previous)
{
    list->symbols[at] = (merge_symbol){.what = what, .previous = *previous, .next = (uint32_t)end};
    *previous = (uint32_t)at;
}

static inline bool merge_comes_before(merge_pair a, merge_pair b)
{
    return a.rank != b.rank ? a.rank < b.rank : a.at < b.at;
}

/* Pushes a pair. False: no memory. */
static inline bool merge_list_push(merge_list *list, merge_pair pair)
{
    merge_pair *heap = grown(list->heap, &list->heap_capacity, list->heap_count + 1, sizeof *heap);
    if (!heap) return false;
    list->heap = heap;
    size_t at = list->heap_count++;
    for (; at > 0 && merge_comes_before(pair, heap[(at - 1) / 2]); at = (at - 1) / 2) heap[at] = heap[(at - 1) / 2];
    heap[at] = pair;
    return true;
}

static inline merge_pair merge_list_pop(merge_list *list)
{
    merge_pair *heap = list->heap, first = heap[0], last = heap[--list->heap_count];
    size_t at = 0, child;
    while ((child = 2 * at + 1) < list->heap_count) {
        if (child + 1 < list->heap_count && merge_comes_before(heap[child + 1], heap[child])) child++;
        if (!merge_comes_before(heap[child], last)) break;
        heap[at] = heap[child];
        at = child;
    }
    heap[at] = last;
    return first;
}

/* Removes the first pair from the heap, which must not be empty, and merges it. False: the pair is outdated, since one
 * of the two was merged with another symbol. */
static inline bool merge_list_take(merge_list *list, merge_pair *pair)
{
    *pair = merge_list_pop(list);
    merge_symbol *symbols = list->symbols, *left = &symbols[pair->at];
    /* Symbols only grow, so two neighbours that still fill the place of the pair are its symbols. */
    uint32_t middle = left->next;
    if (middle == MERGE_GONE || middle >= pair->end || symbols[middle].next != pair->end) return false;
    left->what = pair->merged;
    left->next = pair->end;
    symbols[middle].next = MERGE_GONE;
    if (pair->end < list->bytes) symbols[pair->end].previous = pair->at;
    return true;
}
