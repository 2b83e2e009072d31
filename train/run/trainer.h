/* Defines deberta_trainer, for its own functions and for checks that read gradients or plant a fault in a learner.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include "include/deberta_training.h"
#include "train/data/trainer_data.h"
#include "train/run/run_parts.h"
#include "train/run/trainer_recipe.h"

/* With a generator, a pair; without, the discriminator's place is that of the model that is trained, whatever it is.
 * Strings of the options are the caller's until the trainer is open, copies of them afterwards. */
struct deberta_trainer {
    deberta_trainer_options options;
    char *model, *generator, *folder;
    training_pair pair;
    run_parts parts;
    trainer_data data;
    json_t *recipe;
    run_claim claim;           /* of a run's folder */
    run_checkpoint checkpoint; /* where the run goes on; step 0: from the beginning */
};
