/* Runs one backward pass through two forward passes. SiFT's clean rows go forward before the step against them is
 * known, its moved rows afterwards; their gradients are one sum, in which a shard's moved rows follow its clean ones.
 * So each pass is recorded in a half of every layer's memory, and the backward pass reads a layer's halves joined, in
 * the memory of one layer.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include "train/state/step_state.h"

/* From now on forward passes of up to `tokens` tokens are recorded in that half, and ways back read it. */
void pair_records_enter(const step_state *step, pair_half half, size_t tokens);
/* After the forward pass: its hidden states, which the next one would overwrite. */
void pair_records_keep(const step_state *step);
/* Both halves have been kept. The batch at work, of all shards, has the rows of both: what the session and the forward
 * record have of rows beside those of layers becomes that of the batch, and ways back read layers put together. */
void pair_records_join(const step_state *step, const deberta_batch *batch);
/* Before the way back through a layer. */
void pair_records_restore(const step_state *step, size_t layer);
/* Forward passes have all memory of a layer again. */
void pair_records_leave(learner *learner);
