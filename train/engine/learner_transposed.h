/* Transposed packed weights, with which gradients of outputs become gradients of inputs.
 *
 * SPDX-License-Identifier: MIT */
#ifndef TRAIN_LEARNER_TRANSPOSED_H
#define TRAIN_LEARNER_TRANSPOSED_H

#include "train/engine/learner.h"

/* Returns the room that gradients of the model's matrices and norms need. */
gradient_room learner_transposed_carve(learner *learner, arena *memory);
/* After every change of the weights. */
void learner_transposed_fill(learner *learner);

#endif
