/* Maps texts to numbers, byte by byte: a double array.
 *
 * The child of node n over byte b is node first(n) ^ b, if that node's parent is n: one load and one comparison per
 * byte, whatever the number of texts. The children of a node lie in one aligned block of 256.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include <stdint.h>

#include "core/base/status.h"

typedef struct trie_node {
    uint32_t first;
    int32_t parent;
    int32_t value; /* value of the text that ends here, or TRIE_NO_VALUE */
} trie_node;

typedef struct trie {
    trie_node *nodes; /* [count], whole blocks */
    size_t count, capacity;
} trie;

enum { TRIE_ROOT = 0, TRIE_NO_NODE = -1, TRIE_NO_VALUE = -1 };

typedef struct trie_key {
    const char *text;
    size_t bytes; /* not 0 */
    int32_t value;
} trie_key;

/* Builds a trie. Sorts the keys; their texts are not needed afterwards. DEBERTA_E_FORMAT if two are the same: `where`
 * begins the message. The caller frees the trie in any case. */
deberta_status trie_build(trie *trie, trie_key *keys, size_t count, const char *where, deberta_error *err);
void trie_free(trie *trie); /* Accepts a zeroed trie. */

/* Steps from a node (not TRIE_NO_NODE) over one byte: TRIE_NO_NODE if no text continues so. */
static inline int32_t trie_step(const trie *t, int32_t node, char byte)
{
    uint32_t child = t->nodes[node].first ^ (unsigned char)byte;
    return t->nodes[child].parent == node ? (int32_t)child : TRIE_NO_NODE;
}

/* Walks over several bytes; may begin at TRIE_NO_NODE. */
int32_t trie_walk(const trie *trie, int32_t node, const char *text, size_t bytes);

/* Returns the length of the longest key with which `text` begins, or 0. */
size_t trie_longest(const trie *trie, const char *text, size_t bytes);
