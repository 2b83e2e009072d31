/* Groups the shards of a step that are in memory at once: as many neighbours, 1, 2, 4 ..., as stay within a limit of
 * tokens, and at least one. A group is a whole part of the tree over shards (docs/training.md), so cutting changes no
 * bit.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include "core/base/parallel.h"
#include "core/base/status.h"
#include "core/kernels.h"
#include "train/state/step_batch.h"

typedef struct shard_range {
    size_t first, count;
} shard_range;

typedef struct shard_plan {
    size_t shards;
    shard_range own; /* the shards that this process computes: a whole subtree, or all without ranks */
    size_t limit;    /* most tokens of a group of several shards */
    size_t capacity; /* most tokens of any group: one shard may exceed the limit */
    size_t least;    /* fewest shards of any group, a power of two */
} shard_plan;

/* Shards [first, first + count) of a step. */
typedef struct shard_group {
    size_t first, count;
    size_t first_sequence, first_token;
} shard_group;

/* Plans steps of up to step_tokens tokens, dealt by step_batch_deal from sequences of up to longest tokens. limit 0:
 * whole steps. */
shard_plan shard_plan_make(size_t shards, size_t step_tokens, size_t longest, size_t limit);
/* Returns the plan of a process that computes only some of the shards. */
shard_plan shard_plan_of(const shard_plan *whole, shard_range own, size_t step_tokens, size_t longest);

/* Returns whether all shards of any step are one group. */
static inline bool shard_plan_is_whole(const shard_plan *plan) { return plan->least == plan->shards; }

/* Returns the group that begins with shard `first`. */
shard_group shard_group_at(const shard_plan *plan, const step_batch *batch, size_t first);

/* Returns the sequences of a group as a batch: it points into the whole one, except starts, which are `starts`
 * [sequences + 1]. Members of questions stay those of the whole batch. */
step_batch shard_group_view(const shard_group *group, const step_batch *batch, size_t *starts);

/* Gradients of a step whose shards are computed group by group: sums of groups wait here for their neighbours in the
 * tree over shards (docs/training.md). The current sum stays in its place; pointers are swapped, so that sums are not
 * copied. */

/* Locates an array of the current sum: allocated by large_floats, and owned by the place's owner. */
typedef struct gradient_place {
    float **at;
    size_t count;
} gradient_place;

typedef struct gradient_level {
    float **sums; /* [places] */
    bool there;
} gradient_level;

typedef struct gradient_tree {
    gradient_place *places;
    size_t count;
    size_t shards, first_level, end_level; /* levels of waiting sums: each of 2^level shards */
    gradient_level levels[MAX_ROW_TREE];
} gradient_tree;

/* Returns the bytes for groups of at least `least` of the shards, both powers of two, and sums of `floats` floats. */
size_t gradient_tree_bytes(size_t shards, size_t least, size_t floats);

/* Opens a tree, and takes ownership of the places. Release it also after a failure. */
deberta_status gradient_tree_open(gradient_tree *tree, gradient_place *places, size_t count, size_t shards,
                                  size_t least, deberta_error *err);
void gradient_tree_free(gradient_tree *tree);

/* Resets the tree before the first group of a step. */
void gradient_tree_begin(gradient_tree *tree);
/* Adds the current sum, of shards [first, first + count), in order of shards; is_there: whether they have a sequence.
 * After the last shard the current sum is that of all; before it the current arrays have unspecified values. */
void gradient_tree_add(gradient_tree *tree, size_t first, size_t count, bool is_there, executor *executor);
