/* From the context of the attention to the output of the layer (SPEC 6.1, 6.2):
 *
 *     a = LN1(W_o context + b + x)        y = LN2(W_2 act(W_1 a + b) + b + a)
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include "core/encode/session.h"

/* x is replaced by y, both [rows][hidden_stride]; context [rows][context_stride]; uses session->normed. */
void feed_forward_run(deberta_session *session, const model_layer *layer, size_t rows, const float *context, float *x);
