/* A layer's attention for the whole batch: projections, and the loops over sequences, heads and blocks of queries. What
 * a block is: attention.h.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include "core/encode/session.h"

typedef enum projected_parts { PROJECT_ALL, PROJECT_QUERIES, PROJECT_KEYS } projected_parts; /* KEYS: and values */

/* The queries, keys and values of a layer from `rows` rows of x. What is no part of `parts` stays. */
void attention_project(deberta_session *session, const model_layer *layer, size_t rows, const float *x,
                       projected_parts parts);

/* Sequences are worked on in groups whose packed keys fit: prepares [first, returned end). */
size_t attention_begin_group(deberta_session *session, size_t first);

/* session->queries, keys, values to session->context. observer may be NULL. */
void attention_run(deberta_session *session, size_t layer, const deberta_observer *observer);
