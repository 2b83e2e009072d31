/* Backward of disentangled attention (docs/training.md): from the gradient of the context to those of queries, keys,
 * values and position tables, a block of QUERY_BLOCK queries and a chunk of 512 keys at a time; nothing is n x n.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include "train/backward/attention_job.h"

/* Once for each layer, before its attention_backward_run: the layer's tables in the layout of sums over rows. */
void attention_backward_begin(const step_state *step, size_t layer);
/* dk and dv go to d_qkv of the memory, dPK and dPQ to its table_parts. */
void attention_backward_run(const attention_backward *job);
