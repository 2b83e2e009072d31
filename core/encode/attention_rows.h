/* Computes whole rows of attention, one block at a time; attention.c discards each chunk at once.
 *
 * Observers and talking heads need whole rows. The code uses the fast path's functions, so observers get the same
 * values that the fast path sums.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include "core/encode/attention.h"

/* Loops over blocks of rows of a layer, sequence by sequence. */
typedef struct row_loop {
    deberta_session *session;
    size_t layer, sequence;
    const deberta_observer *observer; /* may be NULL */
} row_loop;

/* Return the number of blocks of the current sequence, and the queries of one. */
size_t row_loop_blocks(const row_loop *loop);
attention_queries row_loop_queries(const row_loop *loop, const attention_head *head, size_t block);
/* Turns logits into probabilities in place: values [rows][observed_stride]. */
void row_loop_normalise(const row_loop *loop, const attention_head *head, size_t rows, float *values,
                        worker_scratch *scratch);

/* Whether the observer wants the component; false once it has stopped. */
bool row_loop_wants(const row_loop *loop, size_t head, deberta_component component);
void row_loop_show(const row_loop *loop, const attention_head *head, const attention_queries *queries,
                   deberta_component component, const float *values);
