/* Declares the functions of the encoder that a backward pass needs besides deberta_encode.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include "core/encode/session.h"

/* Layer `index` of the batch at work a second time, from the input that its record has: fills the rest of that record
 * with the bits of the first time. The convolution after the first layer is not run again. Overwrites the session's
 * hidden states. Between executor_begin and executor_end. */
void encoder_layer_again(deberta_session *session, size_t index);

/* The batch becomes the one at work, as deberta_encode would have it, but nothing runs: its hidden states and records
 * are the caller's to fill. It is one that deberta_encode would take. */
void encoder_take_batch(deberta_session *session, const deberta_batch *batch);
