/* The least work of a step of training, by stage: products only, three times those of the forward pass, with the
 * position projections, and the head of labelled rows alone. What the backward pass computes again is not counted.
 *
 * SPDX-License-Identifier: MIT */
#ifndef BENCH_TRAINING_COST_H
#define BENCH_TRAINING_COST_H

#include "bench/cost_model.h"
#include "train/engine/stage_clock.h"

typedef struct training_cost {
    double flops[TRAINING_STAGES], total;
} training_cost;

typedef struct training_shape {
    size_t sequences, tokens; /* of each */
    size_t labelled;          /* of all */
    bool decodes;
} training_shape;

deberta_status training_cost_compute(training_cost *cost, const deberta_model_info *model, deberta_reference reference,
                                     const training_shape *shape);

/* "forward", "input gradients" ... */
const char *training_stage_name(training_stage stage);

#endif
