/* Defines deberta_trainer, for its own functions and for checks that read gradients or plant a fault in a learner.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include "include/deberta_training.h"
#include "train/data/trainer_data.h"
#include "train/run/run_parts.h"
#include "train/run/trainer_recipe.h"

/* With a generator it trains a pair; without, `discriminator` is the trained model of any task. Strings of the options
 * belong to the caller until the trainer is open; afterwards they are copies. */
struct deberta_trainer {
    deberta_trainer_options options;
    char *model, *generator, *folder;
    training_pair pair;
    run_parts parts;
    trainer_data data;
    json_t *recipe;
    run_record record;         /* of the recipe and the held-out data */
    run_claim claim;           /* claim of a run's folder */
    run_checkpoint checkpoint; /* the checkpoint from which the run resumes; step 0: from the beginning */
};
