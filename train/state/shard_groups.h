/* Which shards of a step are in memory at once: as many neighbours, 1, 2, 4 ..., as have at most so many tokens, and
 * one at least. A group is a whole part of the tree over shards (docs/training.md), so cutting shows in no bit.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include "train/state/step_batch.h"

typedef struct shard_range {
    size_t first, count;
} shard_range;

typedef struct shard_plan {
    size_t shards;
    shard_range own; /* what this process computes: a whole subtree, all where it is alone */
    size_t limit;    /* tokens of a group of several shards */
    size_t capacity; /* tokens of any group: one shard may have more than the limit */
    size_t least;    /* shards that any group has, a power of two */
} shard_plan;

/* Shards [first, first + count) of a step. */
typedef struct shard_group {
    size_t first, count;
    size_t first_sequence, first_token;
} shard_group;

/* For steps of up to step_tokens tokens, dealt by step_batch_deal from sequences of up to longest tokens. limit 0:
 * whole steps. */
shard_plan shard_plan_make(size_t shards, size_t step_tokens, size_t longest, size_t limit);
/* Groups of a process that computes only some of the shards. */
shard_plan shard_plan_of(const shard_plan *whole, shard_range own, size_t step_tokens, size_t longest);

/* All shards of any step are one group. */
static inline bool shard_plan_is_whole(const shard_plan *plan) { return plan->least == plan->shards; }

/* The group that begins with shard `first`. */
shard_group shard_group_at(const shard_plan *plan, const step_batch *batch, size_t first);

/* The sequences of a group as a batch: points into the whole one, but for starts, which are `starts` [sequences + 1].
 * What belongs to questions stays that of all. */
step_batch shard_group_view(const shard_group *group, const step_batch *batch, size_t *starts);
