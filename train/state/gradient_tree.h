/* Gradients of a step whose shards are computed group by group: sums of groups wait here for their neighbours in the
 * tree over shards (docs/training.md). The sum at hand is where it always is; pointers change places, so that what has
 * been summed up is not copied.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include "core/base/parallel.h"
#include "core/base/status.h"
#include "core/kernels.h"

/* Where an array of the sum at hand is: made by large_floats, and owned by whoever owns the place. */
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
    size_t shards, first_level, end_level; /* levels that sums wait on: of 2^level shards */
    gradient_level levels[MAX_ROW_TREE];
} gradient_tree;

/* Bytes for groups of at least `least` of the shards, both powers of two, and sums of so many floats. */
size_t gradient_tree_bytes(size_t shards, size_t least, size_t floats);

/* Takes the places over. Release it also after a failure. */
deberta_status gradient_tree_open(gradient_tree *tree, gradient_place *places, size_t count, size_t shards,
                                  size_t least, deberta_error *err);
void gradient_tree_free(gradient_tree *tree);

/* Before the first group of a step. */
void gradient_tree_begin(gradient_tree *tree);
/* The sum at hand is that of shards [first, first + count), in order of shards; is_there: they have a sequence. Behind
 * the last shard the sum of all is at hand; before it the arrays at hand have any values. */
void gradient_tree_add(gradient_tree *tree, size_t first, size_t count, bool is_there, executor *executor);
