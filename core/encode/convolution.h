/* The convolution of v2-xlarge and v2-xxlarge, next to layer 0 (SPEC 6.3):
 *
 *     H[1] = LN(Y + act(conv(H[0])))        Y the output of layer 0
 *
 * As one product: with a border of zero rows around every sequence, the `width` rows that an output row sees lie one
 * after the other, so row t of the im2col matrix is simply memory from row t on, and its leading dimension is that of
 * one row.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include "core/encode/session.h"

/* Copies session->hidden into session->halo, with borders. */
void convolution_keep_input(deberta_session *session);
/* session->hidden, the output of layer 0, becomes H[1]. */
void convolution_run(deberta_session *session);
