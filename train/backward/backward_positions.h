/* Backward of the position projections and of the relative table (docs/training.md).
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include "train/state/step_state.h"

/* Finds, before a step, the rows of the relative table that its sequences reach. */
void relative_table_begin(step_state *step, const step_batch *batch);

/* Adds the table gradients of a layer over the shards at hand, once its attention has gone back. */
void positions_total(const step_state *step, size_t layer);

/* Takes the table gradients of all layers, which are sums over all shards by now, to the weights of the projections
 * and, through the table's norm, to the parameters of the table. */
void relative_table_backward(const step_state *step);
