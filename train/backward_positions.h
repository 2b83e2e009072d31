/* Backward of the position projections and of the relative table (docs/training.md).
 *
 * SPDX-License-Identifier: MIT */
#ifndef TRAIN_BACKWARD_POSITIONS_H
#define TRAIN_BACKWARD_POSITIONS_H

#include "train/learner.h"

/* Sums the table gradients of the parts and hands them on: to the projections' weights (where these are shared, to the
 * packed gradient of qkv that learner->weight and learner->vector hold) and to learner->d_table. */
void positions_backward(learner *learner, size_t layer);

/* Before the first layer, and behind the last: through the table's norm to its parameters. */
void relative_table_begin(learner *learner);
void relative_table_end(learner *learner);

#endif
