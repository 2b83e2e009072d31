/* Deliberate mistakes in the backward pass, to prove that a check of gradients notices such: `verify --training
 * --mutate` and the golden tests of training use the same list.
 *
 * SPDX-License-Identifier: MIT */
#ifndef CHECK_BACKWARD_FAULTS_H
#define CHECK_BACKWARD_FAULTS_H

#include "train/learner.h"

typedef struct backward_fault {
    const char *name, *description;
    void (*spoil)(learner *learner); /* before the step */
} backward_fault;

extern const backward_fault backward_faults[]; /* up to one without a name */
/* NULL for an unknown name. */
const backward_fault *backward_fault_find(const char *name);

#endif
