/* SPDX-License-Identifier: MIT */
#include "train/step_batch.h"

#include <stdlib.h>

#include "core/kernels.h"

void step_batch_deal(const size_t *lengths, size_t count, size_t shards, size_t *shard_of)
{
    size_t filled[MAX_ROW_PARTS] = {0};
    for (size_t i = 0; i < count; i++) shard_of[i] = shards;
    for (size_t dealt = 0; dealt < count; dealt++) {
        size_t longest = count, least = 0;
        for (size_t i = 0; i < count; i++)
            if (shard_of[i] == shards && (longest == count || lengths[i] > lengths[longest])) longest = i;
        for (size_t shard = 1; shard < shards; shard++)
            if (filled[shard] < filled[least]) least = shard;
        shard_of[longest] = least;
        filled[least] += lengths[longest];
    }
}

void step_batch_free(step_batch *batch)
{
    free(batch->starts);
    free(batch->shard_bounds);
    free(batch->origin);
    free(batch->ids);
    free(batch->mask);
    free(batch->token_types);
    free(batch->positions);
    free(batch->sampled_ids);
    free(batch->labels);
    free(batch->sequence_labels);
    free(batch->targets);
    free(batch->starts_of_answer);
    free(batch->ends_of_answer);
    free(batch->question_labels);
    free(batch->delta);
    *batch = (step_batch){0};
}
