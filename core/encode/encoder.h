/* Declares the functions of the encoder that a backward pass needs besides deberta_encode.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include "core/encode/session.h"

/* Recomputes layer `index` of the current batch, from the input in its record: fills the rest of that record with the
 * same bits. It does not run the convolution after the first layer again, and overwrites the session's hidden states.
 * Call it between executor_begin and executor_end. */
void encoder_layer_again(deberta_session *session, size_t index);

/* Makes the batch the current one, as deberta_encode does, but runs nothing: the caller fills its hidden states and
 * records. deberta_encode must accept the batch. */
void encoder_take_batch(deberta_session *session, const deberta_batch *batch);
