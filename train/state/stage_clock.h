/* Measures the time of a step by stage: seconds, and processor seconds of all threads. The thread that runs the stages
 * ends a lap at the end of each. The backward pass runs its stages layer by layer, so each is the sum of many laps.
 * Switched off (NULL), it costs a test of a pointer.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include "core/base/clock.h"

typedef enum training_stage {
    TRAINING_BATCH,              /* reading, drawing and checking the batch */
    TRAINING_CLEAR,              /* setting gradients to 0 */
    TRAINING_FORWARD,            /* the encoder, with records for the backward pass */
    TRAINING_DECODER,            /* the Enhanced Mask Decoder's passes */
    TRAINING_HEAD,               /* logits and loss */
    TRAINING_HEAD_BACKWARD,      /* from the logits to the encoder, and to the head's weights */
    TRAINING_ATTENTION_BACKWARD, /* from contexts to queries, keys, values and tables */
    TRAINING_INPUT_GRADIENTS,    /* products with transposed weights, activations, norms */
    TRAINING_WEIGHT_GRADIENTS,   /* sums over tokens */
    TRAINING_TABLE_GRADIENTS,    /* for the relative table and through it */
    TRAINING_EMBEDDING_GRADIENTS,
    TRAINING_NORM, /* norm of all gradients */
    TRAINING_UPDATE,
    TRAINING_PACK, /* packing weights, in both orientations, and their projections of the relative table */
    TRAINING_STAGES
} training_stage;

typedef struct stage_clock {
    double seconds[TRAINING_STAGES], processor[TRAINING_STAGES];
    double last, last_processor;
} stage_clock;

static inline void stage_begin(stage_clock *clock)
{
    if (!clock) return;
    clock->last = clock_seconds();
    clock->last_processor = clock_processor_seconds();
}

static inline void stage_lap(stage_clock *clock, training_stage stage)
{
    if (!clock) return;
    const double now = clock_seconds(), processor = clock_processor_seconds();
    clock->seconds[stage] += now - clock->last;
    clock->processor[stage] += processor - clock->last_processor;
    clock->last = now;
    clock->last_processor = processor;
}
