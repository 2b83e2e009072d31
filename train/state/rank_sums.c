/* Sums gradients over ranks: each rank adds one range of the elements of a block, in the order of the tree over shards;
 * then all ranks receive all ranges. Blocks keep memory small, and join the many short arrays of a model into few
 * messages.
 *
 * SPDX-License-Identifier: MIT */
#include "train/state/ranks.h"

#include <stdlib.h>
#include <string.h>

#include "core/base/numbers.h"

enum { BLOCK_FLOATS = 1 << 19 };

shard_range rank_shards(const deberta_ranks *ranks, size_t shards)
{
    shard_range range = {0, shards};
    size_t first = 0, count = ranks->count;
    while (count > 1) {
        const size_t half = ranks_first_half(count);
        const bool is_right = ranks->rank >= first + half;
        range.count /= 2;
        if (is_right) range.first += range.count;
        first += is_right ? half : 0;
        count = is_right ? count - half : half;
    }
    return range;
}

typedef struct block {
    const deberta_ranks *ranks;
    bool *there;            /* [ranks]: whether the rank's shards have a sequence */
    float *sums, *received; /* [ranks][range] */
    size_t used;            /* number of floats in sums */
    const gradient_tree *tree;
    size_t place, element;       /* place where the next block begins, */
    size_t write_place, written; /* and where the current one begins */
} block;

/* Writes the sum of ranks [first, first + count) to the row of the first. Returns false if they have no sequence. */
static bool add_node(const block *b, size_t range, size_t first, size_t count)
{
    if (count == 1) return b->there[first];
    const size_t half = ranks_first_half(count);
    const bool left = add_node(b, range, first, half), right = add_node(b, range, first + half, count - half);
    float *sum = b->received + first * range;
    const float *other = b->received + (first + half) * range;
    if (!left && right) memcpy(sum, other, range * sizeof *sum);
    for (size_t e = 0; left && right && e < range; e++) sum[e] = sum[e] + other[e];
    return left || right;
}

static void run_block(block *b)
{
    const deberta_ranks *ranks = b->ranks;
    const size_t range = ceiling_divide(b->used, ranks->count);
    memset(b->sums + b->used, 0, (range * ranks->count - b->used) * sizeof *b->sums);
    ranks->trade(ranks->context, b->sums, b->received, range);
    add_node(b, range, 0, ranks->count);
    memcpy(b->sums + ranks->rank * range, b->received, range * sizeof *b->sums);
    ranks->gather(ranks->context, b->sums, range);
}

/* Copies the next elements of all arrays into the block, or those of the block back. Returns false if there are none.
 */
static bool pass_elements(block *b, size_t *place, size_t *element, bool back)
{
    b->used = 0;
    while (*place < b->tree->count && b->used < BLOCK_FLOATS) {
        const gradient_place *from = &b->tree->places[*place];
        const size_t count = minimum(from->count - *element, BLOCK_FLOATS - b->used);
        float *array = *from->at + *element, *mine = b->sums + b->used;
        memcpy(back ? array : mine, back ? mine : array, count * sizeof *mine);
        b->used += count;
        *element += count;
        if (*element < from->count) continue;
        *element = 0;
        ++*place;
    }
    return b->used > 0;
}

static void find_there(block *b, const step_batch *batch, size_t shards)
{
    for (size_t rank = 0; rank < b->ranks->count; rank++) {
        deberta_ranks other = *b->ranks;
        other.rank = rank;
        const shard_range range = rank_shards(&other, shards);
        b->there[rank] = batch->shard_bounds[range.first + range.count] > batch->shard_bounds[range.first];
    }
}

deberta_status rank_sums_add(const deberta_ranks *ranks, size_t shards, const step_batch *batch,
                             const gradient_tree *tree, deberta_error *err)
{
    if (!ranks) return DEBERTA_OK;
    const size_t floats = BLOCK_FLOATS + ranks->count;
    block b = {.ranks = ranks,
               .there = calloc(ranks->count, sizeof *b.there),
               .sums = malloc(floats * sizeof *b.sums),
               .received = malloc(floats * sizeof *b.received),
               .tree = tree};
    const bool fine = b.there && b.sums && b.received;
    if (fine) find_there(&b, batch, shards);
    while (fine && pass_elements(&b, &b.place, &b.element, false)) {
        run_block(&b);
        pass_elements(&b, &b.write_place, &b.written, true);
    }
    free(b.there);
    free(b.sums);
    free(b.received);
    if (fine) return DEBERTA_OK;
    DEBERTA_FAIL(err, DEBERTA_E_MEMORY, "no memory for the sums of %zu ranks", ranks->count);
}
