/* Runs one step: a batch forward, its loss, and backward, so that the parameters have their gradients; with SiFT twice
 * over. Checks the batch before, and counts what its losses are means over.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include "include/deberta_training.h"
#include "train/backward/heads.h"
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

/* Returns the counts over which the losses of a step are averaged. */
head_counts step_counts(const step_batch *batch, deberta_training_task task, class_pairs pairs);

/* Checks that the model has the head of the task. advice: the end of the message. */
deberta_status step_check_head(const deberta_model *model, const step_options *options, const char *advice,
                               deberta_error *err);
/* Checks that a batch can be learned from: ids and labels in range, at least one label, a head for the task. The error
 * names the sequence and token of the file, the value found, and the accepted values. */
deberta_status step_check(const learner *learner, const step_batch *batch, const step_options *options,
                          deberta_error *err);

/* Scale-invariant fine-tuning (docs/training.md, "SiFT"): the embeddings are normalised without gain and bias, and the
 * loss penalises changes of the answers under a small adversarial displacement. A step is a batch of twice its
 * sequences: inside each shard the clean ones, then their moved copies. Three passes run forward and three back: clean;
 * the ascent that finds the step; moved; and the backward pass of clean and moved rows at once (pair_records.h). */

/* Runs like step_run. batch->delta is the start of the ascent; NULL: it is drawn. The learner has room for twice the
 * tokens. result->head_loss is that of the clean pass. */
deberta_status sift_step_run(learner *learner, const step_batch *batch, const step_options *options,
                             step_result *result, deberta_error *err);
