/* Processes that compute a step together: their shards, and messages from one rank to all. NULL: a process alone.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include "include/deberta_training.h"
#include "train/state/shard_groups.h"

/* Returns whether this process is rank 0, which writes files. */
static inline bool ranks_lead(const deberta_ranks *ranks) { return !ranks || ranks->rank == 0; }

static inline void ranks_join(const deberta_ranks *ranks, void *bytes, size_t size)
{
    if (ranks) ranks->join(ranks->context, bytes, size);
}

static inline bool ranks_any(const deberta_ranks *ranks, bool mine)
{
    uint8_t flag = mine;
    ranks_join(ranks, &flag, sizeof flag);
    return flag != 0;
}

/* Returns the size of the first half of ranks that share a node of the tree: the first half gets the odd one. */
static inline size_t ranks_first_half(size_t count) { return count - count / 2; }

/* Returns the shards of this rank, a whole subtree. There are no more ranks than shards. */
shard_range rank_shards(const deberta_ranks *ranks, size_t shards);

/* Sums of gradients over the shards of all ranks. */

/* Turns the current sum, of this rank's shards of a step, into that of all shards. */
deberta_status rank_sums_add(const deberta_ranks *ranks, size_t shards, const step_batch *batch,
                             const gradient_tree *tree, deberta_error *err);
