/* Transposed packed weights, with which gradients of outputs become gradients of inputs.
 *
 * SPDX-License-Identifier: MIT */
#ifndef TRAIN_LEARNER_TRANSPOSED_H
#define TRAIN_LEARNER_TRANSPOSED_H

#include "train/learner.h"

/* Returns how many floats the largest packed gradient of a matrix has. */
size_t learner_transposed_carve(learner *learner, arena *memory);
/* After every change of the weights. */
void learner_transposed_fill(learner *learner);

#endif
