/* Dropout of a step (docs/training.md): its numbers, the relative table as each layer sees it, and its backward pass.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include "train/state/step_state.h"

/* Begins the dropout of a step. plan: all members except its tokens; NULL: no dropout. */
void step_dropout_begin(step_state *step, const dropout_plan *plan);
/* Sets the tokens before the forward pass of a group of shards. */
void step_dropout_number(const step_state *step, const step_batch *group);

/* Turns gradients of rows after dropout into those of the rows before it. */
void step_dropout_rows(const step_state *step, const dropout_place *place, float *rows, size_t ld, size_t columns,
                       size_t count);
/* Drops into other memory, to [count][ld]; returns the rows themselves where nothing is dropped. */
float *step_dropout_copy(const step_state *step, const dropout_place *place, float *rows, size_t ld, size_t count,
                         float *to);

/* Returns R as a layer has read it: [2K][hidden_stride of the model]. */
const float *step_dropout_table(const step_state *step, size_t layer);
/* Turns its gradient in d_rows [2K][hidden_stride of the session] into that of R. */
void step_dropout_table_gradient(const step_state *step, size_t layer, float *d_rows);

static inline bool step_drops(const step_state *step) { return step->memory->forward.dropout != NULL; }
