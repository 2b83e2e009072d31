/* Heads in training: logits of the rows that the loss reads, the loss, and its way back to the gradient of the
 * encoder's output (the carried one, or that of the decoder's second pass). Losses are added to step->head.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include "train/state/step_state.h"

/* Losses of a group of shards, and their gradients. */
deberta_status head_mlm(step_state *step, const step_batch *group, deberta_error *err);
deberta_status head_rtd(step_state *step, const step_batch *group, deberta_error *err);
/* Heads with a few classes: sequence, choice, token, question answering. */
deberta_status head_classes(step_state *step, const step_batch *group, deberta_error *err);

/* Adds the losses of rows, in step->memory, to those of their shards; bounds: in places of theirs. */
void head_add_losses(step_state *step, size_t end, const size_t *bounds);

/* Tokens for which wanted[t] is not 0; NULL: those that are no holes. */
head_rows head_rows_of(const step_state *step, const uint8_t *wanted);
/* First tokens of sequences for which wanted[sequence] is not 0. */
head_rows head_rows_of_sequences(const step_state *step, const uint8_t *wanted);

/* Rows of H[L] -> to [count][normed_stride], and back: added to the carried gradient. */
void head_gather(const learner *learner, const head_rows *rows, float *to);
void head_scatter(const step_state *step, const head_rows *rows, const float *from, size_t ld);

/* At least that many floats as logits. */
deberta_status head_reserve(step_memory *memory, size_t rows, size_t stride, deberta_error *err);

/* Floats of a row at work while a pair is compared: logits with their last panel, or scores of a question. */
size_t pair_row_floats(const learner *learner, const step_batch *batch);
