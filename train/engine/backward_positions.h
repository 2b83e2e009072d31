/* Backward of the position projections and of the relative table (docs/training.md).
 *
 * SPDX-License-Identifier: MIT */
#ifndef TRAIN_BACKWARD_POSITIONS_H
#define TRAIN_BACKWARD_POSITIONS_H

#include "train/engine/step_state.h"

/* Before a step: which rows of the table its sequences reach. */
void relative_table_begin(step_state *step, const step_batch *batch);

/* Behind the attention of a layer: its table gradients, the sum of the shards at hand. */
void positions_total(const step_state *step, size_t layer);

/* From those of all layers, the sums of all shards: to the projections' weights, and through the table's norm to its
 * parameters. */
void relative_table_backward(const step_state *step);

#endif
