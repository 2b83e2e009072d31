/* Deals sequences to shards, longest first, and frees batches. SPDX-License-Identifier: MIT */
#include "train/state/step_batch.h"

#include <stdlib.h>

#include "core/kernels.h"

typedef struct dealt {
    size_t length, number;
} dealt;

static int longest_first(const void *left, const void *right)
{
    const dealt *a = left, *b = right;
    if (a->length != b->length) return a->length > b->length ? -1 : 1;
    return a->number < b->number ? -1 : a->number > b->number;
}

deberta_status step_batch_deal(const size_t *lengths, size_t count, size_t shards, size_t *shard_of, deberta_error *err)
{
    size_t filled[MAX_ROW_PARTS] = {0};
    dealt *order = malloc((count + 1) * sizeof *order);
    if (!order) DEBERTA_FAIL(err, DEBERTA_E_MEMORY, "no memory to deal %zu sequences to shards", count);
    for (size_t i = 0; i < count; i++) order[i] = (dealt){lengths[i], i};
    qsort(order, count, sizeof *order, longest_first);
    for (size_t i = 0; i < count; i++) {
        size_t least = 0;
        for (size_t shard = 1; shard < shards; shard++)
            if (filled[shard] < filled[least]) least = shard;
        shard_of[order[i].number] = least;
        filled[least] += order[i].length;
    }
    free(order);
    return DEBERTA_OK;
}

void step_batch_free(step_batch *batch)
{
    free(batch->starts);
    free(batch->shard_bounds);
    free(batch->origin);
    free(batch->members);
    free(batch->columns);
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
