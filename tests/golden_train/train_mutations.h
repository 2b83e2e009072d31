/* Deliberate mistakes in the backward pass, each with a golden case that must notice it.
 *
 * SPDX-License-Identifier: MIT */
#ifndef TESTS_GOLDEN_TRAIN_TRAIN_MUTATIONS_H
#define TESTS_GOLDEN_TRAIN_TRAIN_MUTATIONS_H

#include "train/learner.h"

typedef struct train_mutation {
    const char *name, *case_name, *description;
    void (*spoil)(learner *learner);
} train_mutation;

extern const train_mutation train_mutations[]; /* up to one without a name */

#endif
