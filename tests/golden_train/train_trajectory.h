/* Golden training runs: loss, norm and learning rate of every step, and the weights at the end.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include "tests/golden_train/train_case.h"

typedef struct trajectory_outcome {
    size_t steps, tensors;
    double worst_loss, worst_final; /* errors in units of the bar: float32 PyTorch's error or the floor */
    double worst_rate;              /* relative error of the learning rate */
    char where[256];                /* the tensor with the worst weight */
} trajectory_outcome;

/* Runs all steps with these threads and compares. */
deberta_status trajectory_run(const train_case *c, const json_t *entry, size_t threads, trajectory_outcome *outcome,
                              deberta_error *err);
