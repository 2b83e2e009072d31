/* Declares the parts of a forward pass, which encoder.c runs in turn; each is in a file of its name.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include "core/encode/session.h"

/* H[0]: rows of the tables, summed, projected if they are narrower than the model, normalised, zero for holes (SPEC 2).
 */

/* ids and token_types (NULL: all 0) of the session's batch into session->hidden. Failures, of reading the word table,
 * are noted in the session. */
void embed_run(deberta_session *session, const int32_t *ids, const int32_t *token_types);

/* The means that ablations need (session.h). What they change in a head: attention_head.c. */

/* After the projections of a layer: the mean queries of its heads that need them. */
void ablation_take_means(deberta_session *session, size_t layer);
/* The mean of one element over the rows of n tokens from `first` on; holes do not count. It is summed in float64 in the
 * order of the tokens, so its bits are the same wherever it runs. Holes alone: 0. */
double ablation_mean(const deberta_session *session, size_t first, size_t n, const float *rows, size_t element);

/* A layer's attention for the whole batch: projections, and the loops over sequences, heads and blocks of queries. What
 * a block is: attention.h. */

typedef enum projected_parts { PROJECT_ALL, PROJECT_QUERIES, PROJECT_KEYS } projected_parts; /* KEYS: and values */

/* The queries, keys and values of a layer from `rows` rows of x. What is no part of `parts` stays. */
void attention_project(deberta_session *session, const model_layer *layer, size_t rows, const float *x,
                       projected_parts parts);

/* Sequences are worked on in groups whose packed keys fit: prepares [first, returned end). */
size_t attention_begin_group(deberta_session *session, size_t first);

/* session->queries, keys, values to session->context. observer may be NULL. */
void attention_run(deberta_session *session, size_t layer, const deberta_observer *observer);

/* v1's talking heads (SPEC 3.6): logits of all heads are mixed before the softmax, probabilities after it, so a block
 * of rows needs those of every head at once. */

/* Takes the place of the usual attention for the sequences [first, end), and shows the observer its probabilities.
 * observer may be NULL. */
void talking_heads_run(deberta_session *session, size_t layer, size_t first, size_t end,
                       const deberta_observer *observer);

/* Attention as observers see it. Not on the fast path (attention_rows.h). */

/* Hands the wanted components of a layer to the observer, for the sequences [first, end), whose keys are packed. */
void components_run(deberta_session *session, size_t layer, size_t first, size_t end, const deberta_observer *observer);

/* From the context of the attention to the output of the layer (SPEC 6.1, 6.2):
 *
 *     a = LN1(W_o context + b + x)        y = LN2(W_2 act(W_1 a + b) + b + a) */

/* x is replaced by y, both [rows][hidden_stride]; context [rows][context_stride]; uses session->normed. */
void feed_forward_run(deberta_session *session, const model_layer *layer, size_t rows, const float *context, float *x);

/* The convolution of v2-xlarge and v2-xxlarge, next to layer 0 (SPEC 6.3):
 *
 *     H[1] = LN(Y + act(conv(H[0])))        Y the output of layer 0
 *
 * As one product: with a border of zero rows around every sequence, the `width` rows that an output row sees lie one
 * after the other, so row t of the im2col matrix is simply memory from row t on, and its leading dimension is that of
 * one row. */

/* Copies session->hidden into session->halo, with borders. */
void convolution_keep_input(deberta_session *session);
/* session->hidden, the output of layer 0, becomes H[1]. */
void convolution_run(deberta_session *session);

/* The Enhanced Mask Decoder on the last encoded batch: the last layer twice, with queries that know their absolute
 * position; keys and values are those that it computed from H[L - 1] while encoding (SPEC 8.3). */

/* An error where the session keeps no H[L - 1], or a position is outside the table. Fine for a model that has absolute
 * positions at its input, whose decoder is H[L]. */
deberta_status decoder_check(const deberta_session *session, const size_t *positions, size_t count, deberta_error *err);
/* positions: ascending tokens, at most as many as the batch has. Leaves the result in session->decoder_rows. */
void decoder_run(deberta_session *session, const size_t *positions, size_t count);
