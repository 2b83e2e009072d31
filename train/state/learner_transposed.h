/* Transposed packed weights, with which gradients of outputs become gradients of inputs.
 *
 * SPDX-License-Identifier: MIT */
#ifndef TRAIN_LEARNER_TRANSPOSED_H
#define TRAIN_LEARNER_TRANSPOSED_H

#include "train/state/step_state.h"

/* Returns the room that gradients of the model's matrices and norms need. */
gradient_room learner_transposed_carve(learner *learner, arena *memory);
/* After every change of the weights. */
void learner_transposed_fill(learner *learner);
/* Until the same matrix of another layer is asked for. Not in a loop of several threads. */
const packed_matrix *transposed_of_layer(const step_state *step, size_t layer, layer_matrix which);

#endif
