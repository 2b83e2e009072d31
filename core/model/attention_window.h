/* Attention under a hard window (key_window): the same formula as attention.c, one query after the other, loading only
 * keys that the window admits. What is outside cannot influence a bit, not even as NaN. For studies: nothing here is
 * fast.
 *
 * SPDX-License-Identifier: MIT */
#ifndef CORE_MODEL_ATTENTION_WINDOW_H
#define CORE_MODEL_ATTENTION_WINDOW_H

#include "core/model/session.h"

/* attention_run for a session with a window. */
void attention_window_run(deberta_session *session, size_t layer);

#endif
