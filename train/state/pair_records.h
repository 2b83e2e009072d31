/* Runs one backward pass through two forward passes. SiFT's clean rows go forward before the displacement is known, its
 * moved rows afterwards; their gradients are one sum, in which a shard's moved rows follow its clean ones. So each pass
 * is recorded in a half of every layer's memory, and the backward pass reads a layer's halves joined, in the memory of
 * one layer.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include "train/state/step_state.h"

/* Makes later forward passes of up to `tokens` tokens record in that half, and backward passes read it. */
void pair_records_enter(const step_state *step, pair_half half, size_t tokens);
/* Keeps, after the forward pass, its hidden states, which the next one would overwrite. */
void pair_records_keep(const step_state *step);
/* Joins both halves after they have been kept. The current batch, of all shards, has the rows of both: the rows in the
 * session and the forward record, besides those of layers, become those of the batch. Backward passes then read joined
 * layers. */
void pair_records_join(const step_state *step, const deberta_batch *batch);
/* Joins a layer's halves before its backward pass. */
void pair_records_restore(const step_state *step, size_t layer);
/* Gives forward passes all memory of a layer again. */
void pair_records_leave(learner *learner);
