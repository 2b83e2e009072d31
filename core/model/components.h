/* Attention seen row by row: what observers get, and talking heads, which need it themselves.
 *
 * Nothing here is on the fast path; it uses the fast path's functions, so that what is shown is what was added up.
 *
 * SPDX-License-Identifier: MIT */
#ifndef CORE_MODEL_COMPONENTS_H
#define CORE_MODEL_COMPONENTS_H

#include "core/model/session.h"

/* Hands the wanted components of a layer to the observer, for the sequences [first, end), whose keys are packed. */
void components_run(deberta_session *session, size_t layer, size_t first, size_t end, const deberta_observer *observer);

/* v1's talking heads (SPEC 3.6): logits of all heads are mixed before the softmax, probabilities behind it. Takes the
 * place of the usual attention, and shows the observer its probabilities. observer may be NULL. */
void talking_heads_run(deberta_session *session, size_t layer, size_t first, size_t end,
                       const deberta_observer *observer);

#endif
