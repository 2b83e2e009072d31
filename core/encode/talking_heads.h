/* v1's talking heads (SPEC 3.6): logits of all heads are mixed before the softmax, probabilities after it, so a block
 * of rows needs those of every head at once.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include "core/encode/session.h"

/* Takes the place of the usual attention for the sequences [first, end), and shows the observer its probabilities.
 * observer may be NULL. */
void talking_heads_run(deberta_session *session, size_t layer, size_t first, size_t end,
                       const deberta_observer *observer);
