/* Runs updates: batch, gradients, clipping, update, packing the weights again.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include "train/state/optimizer.h"
#include "train/step/step.h"

typedef struct training {
    learner *learner;
    batch_source batches;
    step_options options;
    optimizer optimizer;
    void (*on_gradients)(void *context); /* function called before the check; NULL: none */
    void *context;
} training;

typedef struct step_report {
    size_t step; /* counted from 1 */
    size_t sequences;
    double epoch; /* as in step_batch */
    step_result result;
    double learning_rate, gradient_norm; /* norm before clipping */
    bool is_bad;                         /* whether the loss or a gradient is not finite */
} step_report;

/* Reads the batch of a step (from 0). Release it with step_batch_free. */
deberta_status training_read(const training *training, size_t step, step_batch *batch, deberta_error *err);
/* Computes the gradients of a given batch. */
deberta_status training_gradients_of(const training *training, size_t step, const step_batch *batch,
                                     step_report *report, deberta_error *err);
/* Updates from the current gradients, with a norm that may include those of others; weights are not packed again: see
 * learner_take_parameters. */
void training_update(training *training, step_report *report, double norm);

/* Computes the gradients of batch number `step` (from 0), checked, and their norm. DEBERTA_E_FORMAT if the loss or a
 * gradient is not finite; the error names it. */
deberta_status training_gradients(const training *training, size_t step, step_report *report, deberta_error *err);

/* Computes gradients and updates. A failure changes nothing. */
deberta_status training_step(training *training, step_report *report, deberta_error *err);

typedef struct held_out_report {
    double loss; /* mean over everything labelled in all batches */
    size_t sequences, tokens, labelled;
} held_out_report;

/* Adds another batch of held-out data with unchanged weights; the loss is then a sum. */
deberta_status training_evaluate_batch(const training *training, const step_batch *batch, size_t number,
                                       held_out_report *report, deberta_error *err);
/* Computes the loss of all batches up to the end of an epoch with unchanged weights. */
deberta_status training_evaluate(const training *training, const batch_source *held_out, held_out_report *report,
                                 deberta_error *err);
