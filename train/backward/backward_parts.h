/* Declares the parts of a backward pass, each in a file of its name.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include "train/backward/attention_job.h"
#include "train/state/step_state.h"

/* Backward pass of the embeddings and of the convolution after layer 0 (docs/training.md). */

/* Propagates the gradient of H[0], in the carried gradient, to the tables. */
void embeddings_backward(const step_state *step, const step_batch *batch);

/* Adds gradients of position rows that the decoder added: from d_first of the memory, for the labelled rows. */
void decoder_positions(const step_state *step, const head_rows *rows);

/* Turns the carried gradient of H[1] into that of layer 0's output; the direct contribution to H[0] goes to d_first of
 * the memory. */
void convolution_backward(const step_state *step);

/* Backward pass of the position projections and of the relative table (docs/training.md). */

/* Finds, before a step, the rows of the relative table that its sequences reach. */
void relative_table_begin(step_state *step, const step_batch *batch);

/* Adds the table gradients of a layer over the current shards, after its attention's backward pass. */
void positions_total(const step_state *step, size_t layer);

/* Propagates the table gradients of all layers, by now sums over all shards, to the weights of the projections and,
 * through the table's norm, to the parameters of the table. */
void relative_table_backward(const step_state *step);

/* Backward pass of disentangled attention (docs/training.md): from the gradient of the context to those of queries,
 * keys, values and position tables, a block of QUERY_BLOCK queries and a chunk of 512 keys at a time; nothing is n x
 * n. */

/* Prepares a layer's tables in the layout of sums over rows; called once for each layer, before its
 * attention_backward_run. */
void attention_backward_begin(const step_state *step, size_t layer);
/* Writes dk and dv to d_qkv of the memory, dPK and dPQ to its table_parts. */
void attention_backward_run(const attention_backward *job);
