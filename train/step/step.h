/* Runs one step: a batch forward, its loss, and backward, so that the parameters have their gradients.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include "train/state/step_state.h"

typedef struct step_result {
    double loss; /* the loss whose gradients were computed */
    double head_loss;
    size_t tokens, labelled;
} step_result;

/* Clears the gradients of learner->set and fills them (with loss_only they are meaningless). The batch has as many
 * shards as the learner has parts. */
deberta_status step_run(learner *learner, const step_batch *batch, const step_options *options, step_result *result,
                        deberta_error *err);

/* Runs the forward pass of a batch, with dropout by its numbers; ids are step->ids. */
deberta_status step_forward(const step_state *step, const step_batch *batch, deberta_error *err);
/* Returns a batch in the encoder's form. */
deberta_batch step_encoded_batch(const step_state *step, const step_batch *batch);
