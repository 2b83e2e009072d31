/* The input of one step: sequences in the order of their shards, and the properties of each. Members that a task does
 * not need are NULL.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "core/base/status.h"

enum { NOT_LABELLED = -100 };

typedef struct step_batch {
    size_t sequences, tokens;
    size_t *starts;                             /* [sequences + 1] */
    size_t *shard_bounds;                       /* [shards + 1], in sequences */
    uint8_t *passes;                            /* [sequences]: passes of SiFT; NULL: 0 */
    size_t *origin;                             /* [sequences]: number in the step, before they were dealt to shards */
    size_t *members;                            /* [sequences]: number in the data; NULL: one batch of a file */
    size_t *columns;                            /* [sequences]: column of the first token in its row; NULL: 0 */
    int32_t *ids, *token_types, *positions;     /* [tokens]; token_types and positions may be NULL */
    uint8_t *mask;                              /* [tokens] */
    int32_t *labels;                            /* [tokens]: labels of tokens, or NOT_LABELLED */
    int32_t *sequence_labels;                   /* [sequences] */
    float *targets;                             /* [sequences]: targets of a regression */
    int32_t *starts_of_answer, *ends_of_answer; /* [sequences] */
    size_t choices;                             /* sequences of a question */
    size_t questions;
    double epoch;             /* epochs of the data completed after this step */
    int32_t *question_labels; /* [questions] */
    int32_t *sampled_ids;     /* [tokens]: ids that a discriminator reads */
    float *delta;             /* [tokens][h]: start of SiFT's ascent */
} step_batch;

void step_batch_free(step_batch *batch);

/* Assigns every sequence to a shard: longest first, each to the shard with the fewest tokens; among equals the lower
 * number. In a shard sequences are in ascending number. */
deberta_status step_batch_deal(const size_t *lengths, size_t count, size_t shards, size_t *shard_of,
                               deberta_error *err);

/* Reads the batch of a step (from 0). width: the hidden size. Release it with step_batch_free. */
typedef struct batch_source {
    void *context;
    deberta_status (*read)(void *context, size_t step, size_t shards, size_t width, step_batch *batch,
                           deberta_error *err);
} batch_source;
