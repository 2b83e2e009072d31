/* Declares the parts of a forward pass, which encoder.c runs in turn; each is in a file of its name.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include "core/encode/session.h"

/* H[0] is the sum of rows of the tables, projected if they are narrower than the model, normalised, zero for holes
 * (SPEC 2). */

/* Embeds ids and token_types (NULL: all 0) of the session's batch into session->hidden. The session records failures of
 * reading the word table. */
void embed_run(deberta_session *session, const int32_t *ids, const int32_t *token_types);

/* Functions for the means of ablations (session.h). attention_head.c applies them to a head. */

/* Computes, after the projections of a layer, the mean queries of its heads that need them. */
void ablation_take_means(deberta_session *session, size_t layer);
/* Returns the mean of one element over the rows of n tokens from `first` on; holes do not count. It is summed in
 * float64 in the order of the tokens, so its bits are the same wherever it runs. Returns 0 if all are holes. */
double ablation_mean(const deberta_session *session, size_t first, size_t n, const float *rows, size_t element);

/* Functions for a layer's attention over the whole batch: projections, and the loops over sequences, heads and blocks
 * of queries. attention.h defines a block. */

typedef enum projected_parts { PROJECT_ALL, PROJECT_QUERIES, PROJECT_KEYS } projected_parts; /* KEYS: keys and values */

/* Computes the queries, keys and values of a layer from `rows` rows of x. Those not in `parts` stay unchanged. */
void attention_project(deberta_session *session, const model_layer *layer, size_t rows, const float *x,
                       projected_parts parts);

/* Prepares the group of sequences [first, returned end), with as many sequences as there is room for packed keys. */
size_t attention_begin_group(deberta_session *session, size_t first);

/* Computes session->context from session->queries, keys, values. observer may be NULL. */
void attention_run(deberta_session *session, size_t layer, const deberta_observer *observer);

/* v1's talking heads (SPEC 3.6) mix logits of all heads before the softmax, and probabilities after it, so a block of
 * rows needs those of every head at once. */

/* Computes this attention for the sequences [first, end), and shows the observer its probabilities. observer may be
 * NULL. */
void talking_heads_run(deberta_session *session, size_t layer, size_t first, size_t end,
                       const deberta_observer *observer);

/* Components of attention for observers are computed off the fast path (attention.h). */

/* Passes the wanted components of a layer to the observer, for the sequences [first, end), whose keys are packed. */
void components_run(deberta_session *session, size_t layer, size_t first, size_t end, const deberta_observer *observer);

/* The feed-forward part computes the output of the layer from the context of the attention (SPEC 6.1, 6.2):
 *
 *     a = LN1(W_o context + b + x)        y = LN2(W_2 act(W_1 a + b) + b + a) */

/* Replaces x by y, both [rows][hidden_stride]; context [rows][context_stride]; uses session->normed. */
void feed_forward_run(deberta_session *session, const model_layer *layer, size_t rows, const float *context, float *x);

/* The convolution of v2-xlarge and v2-xxlarge, next to layer 0 (SPEC 6.3):
 *
 *     H[1] = LN(Y + act(conv(H[0])))        Y the output of layer 0
 *
 * It is one product: with a border of zero rows around every sequence, the `width` input rows of an output row are
 * contiguous. So row t of the im2col matrix is simply memory from row t on, and its leading dimension is that of one
 * row. */

/* Copies session->hidden into session->halo, with borders. */
void convolution_keep_input(deberta_session *session);
/* Turns session->hidden, the output of layer 0, into H[1]. */
void convolution_run(deberta_session *session);

/* The last layer for some positions, whose keys and values are there: where the encode left it to the heads, and in the
 * Enhanced Mask Decoder. */

/* Replaces session->asked_rows, the inputs of these positions, by their outputs. positions: ascending is fastest. */
void last_layer_run(deberta_session *session, const size_t *positions, size_t count);
/* Computes the rows of all positions, if the encode left them. */
void encoder_finish(deberta_session *session);
/* Returns the rows of H[L] of these positions, in memory of the session that the next call overwrites: computed now if
 * the encode left them. *stride: from row to row. */
float *last_layer_rows(deberta_session *session, const size_t *positions, size_t count, size_t *stride);

/* The Enhanced Mask Decoder runs the last layer twice on the last encoded batch, with queries that include their
 * absolute position; keys and values are those computed from H[L - 1] while encoding (SPEC 8.3). */

/* Fails where the session keeps no H[L - 1], or a position is outside the table. Succeeds for a model that has absolute
 * positions at its input, whose decoder is H[L]. */
deberta_status decoder_check(const deberta_session *session, const size_t *positions, size_t count, deberta_error *err);
/* Runs the decoder. positions: ascending tokens, at most as many as the batch has. The result is in
 * session->asked_rows. */
void decoder_run(deberta_session *session, const size_t *positions, size_t count);
