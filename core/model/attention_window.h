/* Attention under a hard window (key_window): the same formula as attention.c, one query after the other, loading only
 * keys that the window admits. What is outside cannot influence a bit, not even as NaN. For studies: nothing here is
 * fast.
 *
 * SPDX-License-Identifier: MIT */
#ifndef CORE_MODEL_ATTENTION_WINDOW_H
#define CORE_MODEL_ATTENTION_WINDOW_H

#include "core/model/session.h"

/* DEBERTA_E_UNSUPPORTED where the window would not be the whole truth: paths that do not know it. */
deberta_status attention_window_check(const deberta_model *model, unsigned features, bool changes_terms,
                                      deberta_error *err);

/* attention_run for a session with a window. */
void attention_window_run(deberta_session *session, size_t layer);

#endif
