/* Builds tries of texts as double arrays: finds places for the children of every node. SPDX-License-Identifier: MIT */
#include "core/text/trie.h"

#include <stdlib.h>
#include <string.h>

#include "core/base/memory.h"
#include "core/io/quote.h"

enum {
    BLOCK = 256,
    FREE = -1, /* value of parent: no node is here */
    NONE = -2, /* value of parent: the root has none */
    /* Number of places at the end of the array that are tried for a node of several children. Nodes of one child, which
       are the majority and fit anywhere, fill the free places before. */
    SEARCH_NODES = 2 * BLOCK,
};

/* The keys that go through a node: they agree in their first `depth` bytes. */
typedef struct key_range {
    size_t begin, end, depth;
    int32_t node;
} key_range;

typedef struct trie_builder {
    trie *trie;
    const trie_key *keys;
    key_range *open; /* nodes without children yet; their ranges do not overlap, so there are at most as many as keys */
    size_t open_count;
    size_t first_free; /* first free node, or a place before it */
} trie_builder;

static bool add_block(trie *t)
{
    if (t->count > INT32_MAX - BLOCK) return false;
    trie_node *nodes = grown(t->nodes, &t->capacity, t->count + BLOCK, sizeof *nodes);
    if (!nodes) return false;
    t->nodes = nodes;
    for (size_t i = 0; i < BLOCK; i++) nodes[t->count++] = (trie_node){.parent = FREE, .value = TRIE_NO_VALUE};
    return true;
}

static bool are_free(const trie *t, uint32_t first, const unsigned char *bytes, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (t->nodes[first ^ bytes[i]].parent != FREE) return false;
    return true;
}

/* Finds a `first` over which all the bytes lead to free nodes. */
static bool find_places(trie_builder *b, const unsigned char *bytes, size_t count, uint32_t *first)
{
    trie *t = b->trie;
    while (b->first_free < t->count && t->nodes[b->first_free].parent != FREE) b->first_free++;
    size_t at = b->first_free;
    if (count > 1 && t->count > at + SEARCH_NODES) at = t->count - SEARCH_NODES;
    for (; at < t->count; at++) {
        *first = (uint32_t)at ^ bytes[0];
        if (are_free(t, *first, bytes, count)) return true;
    }
    *first = (uint32_t)t->count;
    return add_block(t);
}

/* Gives the node of a range its value and its children, and adds the children to the open ones. */
static bool expand(trie_builder *b, key_range r)
{
    unsigned char bytes[BLOCK];
    size_t begins[BLOCK + 1], count = 0;
    uint32_t first;
    trie *t = b->trie;
    if (r.begin < r.end && b->keys[r.begin].bytes == r.depth) t->nodes[r.node].value = b->keys[r.begin++].value;
    for (size_t k = r.begin; k < r.end; k++) {
        unsigned char byte = (unsigned char)b->keys[k].text[r.depth];
        if (count > 0 && bytes[count - 1] == byte) continue;
        bytes[count] = byte;
        begins[count++] = k;
    }
    begins[count] = r.end;
    if (count == 0) return true;
    if (!find_places(b, bytes, count, &first)) return false;
    t->nodes[r.node].first = first;
    for (size_t i = 0; i < count; i++) {
        int32_t child = (int32_t)(first ^ bytes[i]);
        t->nodes[child].parent = r.node;
        b->open[b->open_count++] = (key_range){begins[i], begins[i + 1], r.depth + 1, child};
    }
    return true;
}

static int compare_keys(const void *a, const void *b)
{
    const trie_key *p = a, *q = b;
    int order = memcmp(p->text, q->text, p->bytes < q->bytes ? p->bytes : q->bytes);
    return order ? order : (p->bytes > q->bytes) - (p->bytes < q->bytes);
}

deberta_status trie_build(trie *t, trie_key *keys, size_t count, const char *where, deberta_error *err)
{
    *t = (trie){0};
    if (count > 0) qsort(keys, count, sizeof *keys, compare_keys);
    for (size_t i = 1; i < count; i++)
        if (compare_keys(&keys[i - 1], &keys[i]) == 0)
            DEBERTA_FAIL(err, DEBERTA_E_FORMAT, "%s: piece '%s' is already defined", where,
                         QUOTE_N(keys[i].text, keys[i].bytes));

    trie_builder b = {.trie = t, .keys = keys, .open = malloc((count + 1) * sizeof *b.open)};
    bool fits = b.open && add_block(t);
    if (fits) {
        t->nodes[TRIE_ROOT].parent = NONE;
        b.open[b.open_count++] = (key_range){0, count, 0, TRIE_ROOT};
    }
    while (fits && b.open_count > 0) fits = expand(&b, b.open[--b.open_count]);
    free(b.open);
    if (!fits) DEBERTA_FAIL(err, DEBERTA_E_MEMORY, "%s: no memory for %zu pieces", where, count);
    return DEBERTA_OK;
}

void trie_free(trie *t)
{
    free(t->nodes);
    *t = (trie){0};
}

int32_t trie_walk(const trie *t, int32_t node, const char *text, size_t bytes)
{
    for (size_t i = 0; i < bytes && node != TRIE_NO_NODE; i++) node = trie_step(t, node, text[i]);
    return node;
}

size_t trie_longest(const trie *t, const char *text, size_t bytes)
{
    size_t longest = 0;
    int32_t node = TRIE_ROOT;
    for (size_t i = 0; i < bytes && (node = trie_step(t, node, text[i])) != TRIE_NO_NODE; i++)
        if (t->nodes[node].value != TRIE_NO_VALUE) longest = i + 1;
    return longest;
}
