/* Deliberate mistakes in the backward pass, each with a golden case that must notice it.
 *
 * SPDX-License-Identifier: MIT */
#ifndef TESTS_GOLDEN_TRAIN_PLANTED_FAULTS_H
#define TESTS_GOLDEN_TRAIN_PLANTED_FAULTS_H

#include "train/learner.h"

typedef struct planted_fault {
    const char *name, *case_name, *description;
    void (*spoil)(learner *learner);
} planted_fault;

extern const planted_fault planted_faults[]; /* up to one without a name */

#endif
