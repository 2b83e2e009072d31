/* Declares the optimisers AdamW and XAdam, the schedules of the learning rate, and the norm of the gradients
 * (docs/training.md). Numbers of a step are double, computed with +, -, x, / and square roots alone; elements are
 * float32, updated by the kernel adam_f32 (simd/tmpl/training_row_tmpl.h).
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include "core/base/parallel.h"
#include "include/deberta_training.h"
#include "train/state/parameters.h"

typedef struct optimizer_moment {
    float *m, *v;
} optimizer_moment;

typedef struct optimizer {
    deberta_trainer_options options; /* only those of updates are read, and none of the referenced memory */
    optimizer_moment *moments;       /* [parameters] */
    size_t count, layers, done;
    double beta1_power, beta2_power; /* beta^done */
} optimizer;

deberta_status optimizer_open(optimizer *optimizer, const parameter_set *set, size_t layers,
                              const deberta_trainer_options *options, deberta_error *err);
void optimizer_free(optimizer *optimizer);

/* Sets the optimiser's state after `done` steps; the caller sets the moments. */
void optimizer_set_done(optimizer *optimizer, size_t done);

/* Counts a step without an update. */
void optimizer_skip(optimizer *optimizer);

/* Returns the factor of the learning rate after `done` steps. */
double schedule_factor(const deberta_trainer_options *options, size_t done);

/* Runs one update from the gradients of the set, whose norm is given. Outside of executor_begin and executor_end. */
void optimizer_step(optimizer *optimizer, parameter_set *set, double norm, const kernels *table, executor *threads);
