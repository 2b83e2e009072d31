/* Attention as observers see it. Not on the fast path (attention_rows.h).
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include "core/encode/session.h"

/* Hands the wanted components of a layer to the observer, for the sequences [first, end), whose keys are packed. */
void components_run(deberta_session *session, size_t layer, size_t first, size_t end, const deberta_observer *observer);
