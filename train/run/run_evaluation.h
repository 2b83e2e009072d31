/* Evaluations of a run: loss and measures of held-out data into the log, the best model into the folder "best", and
 * when none has been better for too long.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include <stdio.h>

#include "train/run/run_checkpoint.h"
#include "include/deberta_training.h"

typedef struct run_evaluation {
    const batch_source *held_out;
    const deberta_scorer *scorer; /* NULL: the loss decides, the lower the better */
    const char *folder;           /* of the run */
    double best;                  /* NaN: the measure did not exist */
    double best_loss;             /* decides between two that do not exist */
    size_t best_step;             /* 0: there has been none */
    size_t worse_runs;            /* evaluations since */
} run_evaluation;

/* What the evaluations of a log say that is gone on with, from where it stands to its end. */
void run_evaluation_recall(run_evaluation *evaluation, FILE *log);

/* Evaluates after the step at hand: a line of the log, and the model into best/ if it is the best. */
deberta_status run_evaluation_run(run_evaluation *evaluation, const run_parts *parts, FILE *log, deberta_error *err);
