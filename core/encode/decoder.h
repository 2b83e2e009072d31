/* The Enhanced Mask Decoder on the last encoded batch: the last layer twice, with queries that know their absolute
 * position; keys and values are those that it computed from H[L - 1] while encoding (SPEC 8.3).
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include "core/encode/session.h"

/* An error where the session keeps no H[L - 1], or a position is outside the table. Fine for a model that has absolute
 * positions at its input, whose decoder is H[L]. */
deberta_status decoder_check(const deberta_session *session, const size_t *positions, size_t count, deberta_error *err);
/* positions: ascending tokens, at most as many as the batch has. Leaves the result in session->decoder_rows. */
void decoder_run(deberta_session *session, const size_t *positions, size_t count);
