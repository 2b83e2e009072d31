/* A heap of pairs over a list of symbols.
 *
 * SPDX-License-Identifier: MIT */
#include "core/text/merge_list.h"

#include <stdlib.h>

#include "core/base/grow.h"

enum { MERGED_AWAY = 0 }; /* as `next`: where no symbol ends */

void merge_list_free(merge_list *list)
{
    free(list->symbols);
    free(list->heap);
    *list = (merge_list){0};
}

bool merge_list_begin(merge_list *list, size_t bytes)
{
    merge_symbol *symbols = grown(list->symbols, &list->symbol_capacity, bytes, sizeof *symbols);
    if (!symbols) return false;
    list->symbols = symbols;
    list->bytes = (uint32_t)bytes;
    list->heap_count = 0;
    return true;
}

static bool comes_before(merge_pair a, merge_pair b) { return a.rank != b.rank ? a.rank < b.rank : a.at < b.at; }

bool merge_list_push(merge_list *list, merge_pair pair)
{
    merge_pair *heap = grown(list->heap, &list->heap_capacity, list->heap_count + 1, sizeof *heap);
    if (!heap) return false;
    list->heap = heap;
    size_t at = list->heap_count++;
    for (; at > 0 && comes_before(pair, heap[(at - 1) / 2]); at = (at - 1) / 2) heap[at] = heap[(at - 1) / 2];
    heap[at] = pair;
    return true;
}

static merge_pair pop(merge_list *list)
{
    merge_pair *heap = list->heap, first = heap[0], last = heap[--list->heap_count];
    size_t at = 0, child;
    while ((child = 2 * at + 1) < list->heap_count) {
        if (child + 1 < list->heap_count && comes_before(heap[child + 1], heap[child])) child++;
        if (!comes_before(heap[child], last)) break;
        heap[at] = heap[child];
        at = child;
    }
    heap[at] = last;
    return first;
}

bool merge_list_take(merge_list *list, merge_pair *pair)
{
    *pair = pop(list);
    merge_symbol *symbols = list->symbols, *left = &symbols[pair->at];
    /* Symbols only grow. If two that are neighbours still fill the place of the pair, they are the two. */
    uint32_t middle = left->next;
    if (middle == MERGED_AWAY || middle >= pair->end || symbols[middle].next != pair->end) return false;
    left->what = pair->merged;
    left->next = pair->end;
    symbols[middle].next = MERGED_AWAY;
    if (pair->end < list->bytes) symbols[pair->end].previous = pair->at;
    return true;
}
