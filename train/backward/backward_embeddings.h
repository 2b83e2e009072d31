/* Backward of the embeddings and of the convolution after layer 0 (docs/training.md).
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include "train/state/step_state.h"

/* From the gradient of H[0], in the carried gradient, to the tables. */
void embeddings_backward(const step_state *step, const step_batch *batch);

/* Position rows that the decoder added: from d_first of the memory, of the labelled rows. */
void decoder_positions(const step_state *step, const head_rows *rows);

/* The carried gradient is that of H[1] and becomes that of layer 0's output; what goes to H[0] directly is left
 * in d_first of the memory. */
void convolution_backward(const step_state *step);
