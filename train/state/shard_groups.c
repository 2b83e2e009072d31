/* Joins shards into groups within a limit of tokens. SPDX-License-Identifier: MIT */
#include "train/state/shard_groups.h"

#include "core/base/numbers.h"

/* Bounds the tokens of a shard. When a shard got its last sequence it was the emptiest, so it had no more than the
 * mean. */
static size_t largest_shard(size_t shards, size_t step_tokens, size_t longest)
{
    return minimum(step_tokens, step_tokens / shards + longest);
}

shard_plan shard_plan_make(size_t shards, size_t step_tokens, size_t longest, size_t limit)
{
    const size_t shard = largest_shard(shards, step_tokens, longest);
    shard_plan plan = {
        .shards = shards, .own = {0, shards}, .limit = SIZE_MAX, .capacity = step_tokens, .least = shards};
    if (limit == 0 || limit >= step_tokens) return plan;
    plan.limit = limit;
    plan.capacity = maximum(limit, shard);
    while (plan.least > 1 && plan.least * shard > limit) plan.least /= 2;
    return plan;
}

shard_plan shard_plan_of(const shard_plan *whole, shard_range own, size_t step_tokens, size_t longest)
{
    shard_plan plan = *whole;
    const size_t shard = largest_shard(whole->shards, step_tokens, longest);
    plan.own = own;
    plan.least = minimum(plan.least, own.count);
    plan.capacity = minimum(plan.capacity, own.count * shard);
    return plan;
}

static size_t tokens_of(const step_batch *batch, size_t first, size_t count)
{
    return batch->starts[batch->shard_bounds[first + count]] - batch->starts[batch->shard_bounds[first]];
}

shard_group shard_group_at(const shard_plan *plan, const step_batch *batch, size_t first)
{
    shard_group group = {.first = first, .count = 1, .first_sequence = batch->shard_bounds[first]};
    group.first_token = batch->starts[group.first_sequence];
    while (first % (2 * group.count) == 0 && 2 * group.count <= plan->own.count &&
           tokens_of(batch, first, 2 * group.count) <= plan->limit)
        group.count *= 2;
    return group;
}

step_batch shard_group_view(const shard_group *group, const step_batch *batch, size_t *starts)
{
    const size_t i = group->first_sequence, t = group->first_token;
    step_batch view = *batch;
    view.sequences = batch->shard_bounds[group->first + group->count] - i;
    view.tokens = batch->starts[i + view.sequences] - t;
    for (size_t k = 0; k <= view.sequences; k++) starts[k] = batch->starts[i + k] - t;
    view.starts = starts;
    view.shard_bounds = NULL; /* The learner owns these. */
    view.origin = batch->origin + i;
    view.members = batch->members ? batch->members + i : NULL;
    view.columns = batch->columns ? batch->columns + i : NULL;
    view.passes = batch->passes ? batch->passes + i : NULL;
    view.ids = batch->ids + t;
    view.mask = batch->mask + t;
    view.labels = batch->labels ? batch->labels + t : NULL;
    view.token_types = batch->token_types ? batch->token_types + t : NULL;
    view.positions = batch->positions ? batch->positions + t : NULL;
    view.sampled_ids = batch->sampled_ids ? batch->sampled_ids + t : NULL;
    view.sequence_labels = batch->sequence_labels ? batch->sequence_labels + i : NULL;
    view.targets = batch->targets ? batch->targets + i : NULL;
    view.starts_of_answer = batch->starts_of_answer ? batch->starts_of_answer + i : NULL;
    view.ends_of_answer = batch->ends_of_answer ? batch->ends_of_answer + i : NULL;
    view.delta = NULL; /* SiFT reads the member of the whole step. */
    return view;
}
