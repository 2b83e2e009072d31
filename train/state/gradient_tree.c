/* Sums the gradients of the groups of shards in the order of a tree: adds finished groups to their neighbours, level by
 * level; arrays are swapped instead of copied.
 *
 * SPDX-License-Identifier: MIT */
#include "train/state/shard_groups.h"

#include <stdlib.h>

#include "core/base/memory.h"
#include "core/base/numbers.h"

size_t gradient_tree_bytes(size_t shards, size_t least, size_t floats)
{
    return (tree_levels(shards) - tree_levels(least)) * floats * sizeof(float);
}

deberta_status gradient_tree_open(gradient_tree *tree, gradient_place *places, size_t count, size_t shards,
                                  size_t least, deberta_error *err)
{
    *tree = (gradient_tree){.places = places,
                            .count = count,
                            .shards = shards,
                            .first_level = tree_levels(least),
                            .end_level = tree_levels(shards)};
    for (size_t level = tree->first_level; level < tree->end_level; level++) {
        gradient_level *made = &tree->levels[level];
        made->sums = calloc(count, sizeof *made->sums);
        bool fine = made->sums != NULL;
        for (size_t i = 0; fine && i < count; i++) {
            made->sums[i] = large_floats(places[i].count);
            fine = made->sums[i] != NULL;
        }
        if (!fine) DEBERTA_FAIL(err, DEBERTA_E_MEMORY, "no memory for the gradients of %zu shards", (size_t)1 << level);
    }
    return DEBERTA_OK;
}

void gradient_tree_free(gradient_tree *tree)
{
    for (size_t level = tree->first_level; level < tree->end_level; level++) {
        float **sums = tree->levels[level].sums;
        for (size_t i = 0; sums && i < tree->count; i++) free(sums[i]);
        free(sums);
    }
    free(tree->places);
    *tree = (gradient_tree){0};
}

void gradient_tree_begin(gradient_tree *tree)
{
    for (size_t level = tree->first_level; level < tree->end_level; level++) tree->levels[level].there = false;
}

typedef struct adding {
    const gradient_place *place;
    const float *from;
} adding;

enum { TASK_FLOATS = 1 << 16 };

static void add_task(void *context, size_t task, size_t worker)
{
    const adding *job = context;
    const size_t first = task * TASK_FLOATS, end = minimum(first + TASK_FLOATS, job->place->count);
    float *to = *job->place->at;
    (void)worker;
    for (size_t e = first; e < end; e++) to[e] = job->from[e] + to[e];
}

static void add_level(const gradient_tree *tree, const gradient_level *level, executor *by)
{
    executor_begin(by);
    for (size_t i = 0; i < tree->count; i++) {
        adding job = {&tree->places[i], level->sums[i]};
        parallel_for(by, ceiling_divide(tree->places[i].count, TASK_FLOATS), add_task, &job);
    }
    executor_end(by);
}

static void exchange(const gradient_tree *tree, const gradient_level *level)
{
    for (size_t i = 0; i < tree->count; i++) {
        float *at_hand = *tree->places[i].at;
        *tree->places[i].at = level->sums[i];
        level->sums[i] = at_hand;
    }
}

void gradient_tree_add(gradient_tree *tree, size_t first, size_t count, bool is_there, executor *by)
{
    size_t number = tree_levels(count);
    for (; first >> number & 1; number++) {
        gradient_level *level = &tree->levels[number];
        if (!level->there) continue;
        if (is_there)
            add_level(tree, level, by);
        else
            exchange(tree, level);
        level->there = false;
        is_there = true;
    }
    if (!is_there || first + count == tree->shards) return;
    exchange(tree, &tree->levels[number]);
    tree->levels[number].there = true;
}
