/* One step: a batch forward, its loss, and backward, so that the parameters have their gradients.
 *
 * SPDX-License-Identifier: MIT */
#ifndef TRAIN_STEP_H
#define TRAIN_STEP_H

#include "train/engine/heads.h"
#include "train/engine/learner.h"
#include "train/engine/step_batch.h"

/* In place of the forward pass of a group of shards: leaves what that would. */
typedef struct step_forward_pass {
    void *context;
    deberta_status (*run)(void *context, const step_batch *group, deberta_error *err);
} step_forward_pass;

typedef struct step_options {
    step_task task;
    bool decodes;       /* masked language model: behind the Enhanced Mask Decoder */
    float rtd_weight;   /* of the discriminator's loss */
    bool reads_sampled; /* replaced tokens: the ids are those that a generator has sampled */
    class_pairs pairs;
    float sift_weight;
    const float *clean; /* of the ascent of SiFT, and its rows at work: see class_options */
    float *compared[PAIR_ROWS];
    const step_forward_pass *pass;  /* NULL: step_forward */
    bool perturbs_raw;              /* the step of SiFT is made on embeddings as they are, not normalised: a control */
    const logit_listener *listener; /* of heads with classes; NULL: nobody asks */
    dropout_rates dropout;          /* not where only the loss is wanted */
    uint32_t seed;
    size_t number;     /* of the step, from 0 */
    bool is_generator; /* its random numbers are others than the discriminator's */
    bool loss_only;    /* the encoder gets no gradients */
} step_options;

typedef struct step_result {
    double loss; /* what the gradients are those of */
    double head_loss;
    size_t tokens, labelled;
} step_result;

/* Clears the gradients of learner->set and fills them (with loss_only they mean nothing). The batch has as many shards
 * as the learner has parts. */
deberta_status step_run(learner *learner, const step_batch *batch, const step_options *options, step_result *result,
                        deberta_error *err);

/* The forward pass of a batch, with dropout by its numbers; ids are learner->ids. */
deberta_status step_forward(learner *learner, const step_batch *batch, deberta_error *err);
/* A batch as the encoder takes it. */
deberta_batch step_encoded_batch(const learner *learner, const step_batch *batch);

#endif
