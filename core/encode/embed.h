/* H[0]: rows of the tables, summed, projected if they are narrower than the model, normalised, zero for holes (SPEC 2).
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include "core/encode/session.h"

/* ids and token_types (NULL: all 0) of the session's batch into session->hidden. Failures, of reading the word table,
 * are noted in the session. */
void embed_run(deberta_session *session, const int32_t *ids, const int32_t *token_types);
