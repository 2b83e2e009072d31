/* Computes head logits of a whole batch, a block of positions at a time.
 *
 * deberta_task_logits reads and packs the whole word table in every call, so asking for one position at a time costs
 * one read of the table for each token; asking for all at once would hold tokens x V floats. A block bounds both.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include "program/frame/input/input.h"

enum { ENCODE_LOGITS_BLOCK_BYTES = 96 << 20 }; /* logits of a block: 196 positions of a vocabulary of 128,100 */

/* Returns the bytes that encode_logits will allocate. */
size_t encode_logits_bytes(const deberta_model *model, deberta_task task, size_t tokens, size_t block_bytes);
/* Receives the logits [width] of one position. row: its row in the tensor [B,N] or [B]. */
typedef deberta_status (*logits_visit)(void *context, size_t row, size_t position, const float *logits,
                                       deberta_error *err);
/* Computes the logits of one head for the batch that the session encoded last, at every token that is no hole, or for
 * every row with DEBERTA_TASK_SEQUENCE. A block has at most block_bytes of logits, but at least one position. */
deberta_status encode_logits(deberta_session *session, const deberta_model *model, deberta_task task,
                             const input_batch *input, size_t block_bytes, logits_visit visit, void *context,
                             deberta_error *err);
