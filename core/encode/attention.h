/* Computes disentangled attention of one head without an n x n buffer.
 *
 * A block is some query rows of one head of one sequence. It computes once the strip q . PK' over the table rows that
 * the block can reach (c2p), and then iterates over the keys, 512 at a time:
 *
 *     every 16 keys, a tile:  T = PQ rows . k', p2c transposed; bias = strip and T moved into place; s = q . k' + bias
 *     every 512 keys:         softmax with a running maximum; context = context * rescale + p . v
 *
 * Where all pairs of a tile lie so far apart that they share one table row, the bias is c2p_i + p2c_j: the same two
 * numbers, added at the same place, without strips or moves. So the result does not depend on how queries are cut into
 * blocks.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include "core/encode/attention_head.h"

/* Query rows that follow each other in memory: at most session->query_rows, from a range of the sequence no longer than
 * that. */
typedef struct attention_queries {
    const float *rows;
    size_t ld, first, count; /* first: place of the first row in the sequence */
    const size_t *tokens;    /* token of each row in the session, ascending; NULL: every place from the first on */
} attention_queries;

/* Returns how many of `count` tokens, of one sequence, form a block of at most `most` places. */
size_t attention_tokens_of_block(const size_t *tokens, size_t count, size_t most);

/* Returns the terms of attention_logits: bits 1 << DEBERTA_C2C, C2P, P2C. */
unsigned attention_terms_of(const deberta_session *session);

/* Computes c2p of the queries over all rows they can reach, into scratch; attention_logits needs it. */
void attention_strip(const deberta_session *session, const attention_head *head, const attention_queries *queries,
                     worker_scratch *scratch);
/* Computes s[i lds + j] for `keys` keys from first_key (a multiple of 16) on: the sum of the wanted terms, in the one
 * order of the arithmetic. s is written up to the next multiple of 16 keys. */
void attention_logits(const deberta_session *session, const attention_head *head, const attention_queries *queries,
                      size_t first_key, size_t keys, unsigned terms, float *s, size_t lds, worker_scratch *scratch);
/* Computes one block completely: context [count][padded_head]. */
void attention_block(const deberta_session *session, const attention_head *head, const attention_queries *queries,
                     float *context, size_t ld_context, worker_scratch *scratch);

/* Whole rows of attention, one block at a time (attention_rows.c); attention.c discards each chunk at once.
 *
 * Observers and talking heads need whole rows. The code uses the fast path's functions, so observers get the same
 * values that the fast path sums. */

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

/* Returns whether the observer wants the component; false once it has stopped. */
bool row_loop_wants(const row_loop *loop, size_t head, deberta_component component);
void row_loop_show(const row_loop *loop, const attention_head *head, const attention_queries *queries,
                   deberta_component component, const float *values);
