/* What one step reads: sequences in the order of their shards, and what is known of each. Members that a task does not
 * need are NULL.
 *
 * SPDX-License-Identifier: MIT */
#ifndef TRAIN_STEP_BATCH_H
#define TRAIN_STEP_BATCH_H

#include <stddef.h>
#include <stdint.h>

enum { NOT_LABELLED = -100 };

typedef struct step_batch {
    size_t sequences, tokens;
    size_t *starts;                             /* [sequences + 1] */
    size_t *shard_bounds;                       /* [shards + 1], in sequences */
    size_t *origin;                             /* [sequences]: number in the step, before they were dealt to shards */
    int32_t *ids, *token_types, *positions;     /* [tokens]; token_types and positions may be NULL */
    uint8_t *mask;                              /* [tokens] */
    int32_t *labels;                            /* [tokens]: of tokens, or NOT_LABELLED */
    int32_t *sequence_labels;                   /* [sequences] */
    float *targets;                             /* [sequences]: of a regression */
    int32_t *starts_of_answer, *ends_of_answer; /* [sequences] */
    size_t choices;                             /* sequences of a question */
    size_t questions;
    int32_t *question_labels; /* [questions] */
    int32_t *sampled_ids;     /* [tokens]: what a discriminator reads */
    float *delta;             /* [tokens][h]: where the ascent of SiFT begins */
} step_batch;

#endif
