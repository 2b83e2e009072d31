/* Declares deliberate faults of training, to prove that a check of gradients notices them: `drawn --mutate` and the
 * golden tests of training plant them. A fault of memory gives two arrays the same place; it touches no byte beyond an
 * array.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include "train/state/learner.h"
#include "train/state/step_batch.h"

typedef struct backward_fault {
    const char *name, *description;
    void (*spoil)(learner *learner);                          /* before the step; NULL: */
    void (*spoil_batch)(learner *learner, step_batch *batch); /* when the step is known */
} backward_fault;

extern const backward_fault backward_faults[]; /* up to one without a name */
/* NULL for an unknown name. */
const backward_fault *backward_fault_find(const char *name);
