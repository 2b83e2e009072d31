/* Backward of the embeddings and of the convolution beside layer 0 (docs/training.md).
 *
 * SPDX-License-Identifier: MIT */
#ifndef TRAIN_BACKWARD_EMBEDDINGS_H
#define TRAIN_BACKWARD_EMBEDDINGS_H

#include "train/engine/heads.h"
#include "train/engine/learner.h"
#include "train/engine/step_batch.h"

/* From the gradient of H[0], in learner->d_input, to the tables. */
void embeddings_backward(learner *learner, const step_batch *batch);

/* Position rows that the decoder added: from learner->d_first, of the labelled rows. */
void decoder_positions(learner *learner, const head_rows *rows);

/* passes[0].d_output is the gradient of H[1] and becomes that of layer 0's output; what goes to H[0] directly is left
 * in learner->d_first. */
void convolution_backward(learner *learner);

#endif
