/* Computes attention under a hard window (key_window) by the formula of core/encode/attention.c, query by query,
 * loading only keys that the window admits. Keys outside cannot influence a bit, not even as NaN. It serves studies, so
 * it is not fast, and the order of its sums differs from the encoder's.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include "core/encode/session_internal_options.h"

/* The keys that a query may load: those at distances -right <= i - j <= left whose table row is in the set. The others
 * are never read. */
typedef struct key_window {
    ptrdiff_t left, right;
    const uint8_t *rows; /* [2K], 0: the row is not in the set; NULL: all rows are */
} key_window;

/* Calls session_create_within for a session whose layers attend through *window, which must outlive it. internal may be
 * NULL. DEBERTA_E_UNSUPPORTED for features that the window does not cover: ablations and other terms, talking heads,
 * observed attention, the Enhanced Mask Decoder. */
deberta_status windowed_session_create(deberta_session **session, const deberta_model *model,
                                       const deberta_session_options *options, const session_internal_options *internal,
                                       const key_window *window, deberta_error *err);
