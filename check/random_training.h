/* Made-up problems of training: a model of some random shape, and a batch for it.
 *
 * SPDX-License-Identifier: MIT */
#ifndef CHECK_RANDOM_TRAINING_H
#define CHECK_RANDOM_TRAINING_H

#include "check/exact_loss.h"
#include "train/step.h"

enum { RANDOM_TEXTS = 3, RANDOM_PADDING = 0 /* pad_token_id of made-up models */ };

typedef struct random_training {
    char path[256]; /* synthetic:... */
    exact_texts texts;
    step_batch batch; /* the same texts */
    step_options options;
    size_t starts[RANDOM_TEXTS + 1], origin[RANDOM_TEXTS], shard_bounds[DEFAULT_SHARDS + 1];
    int32_t *ids, *types, *labels; /* [tokens] */
    uint8_t *mask;
} random_training;

/* Problem number k: heads take turns, one in five has more than a block of queries, one in ten more than a chunk of
 * keys; all else is random. Release with random_training_free. */
deberta_status random_training_make(random_training *made, size_t k, uint64_t seed, deberta_error *err);
void random_training_free(random_training *made);

#endif
