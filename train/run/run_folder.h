/* A training run in a folder: it writes log.jsonl, one line a step; checkpoints; and at the end the model, as any
 * program opens it.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include "include/deberta_training.h"
#include "train/run/run_parts.h"
#include "train/state/ranks.h"

/* Is told of each step. A result other than 0 stops the run after it, with a checkpoint. */
typedef int (*step_listener)(void *context, const deberta_training_step *step);

typedef struct training_run {
    run_parts parts;
    const char *folder;
    const run_claim *claim;       /* of the folder, held */
    const json_t *recipe;         /* all that decides about bits */
    const deberta_ranks *ranks;   /* NULL: none; but for rank 0 they have no files and no evaluations */
    size_t checkpoint_every;      /* steps; 0: it does not depend on them */
    double checkpoint_minutes;    /* since the last one or the beginning; 0: it does not depend on time */
    size_t keep;                  /* checkpoints */
    size_t stop_at;               /* steps; 0: runs to the end */
    const batch_source *held_out; /* evaluated at the end, and every eval_every steps; NULL: none */
    size_t eval_every;            /* 0: only at the end */
    size_t skip_bad;              /* steps that are not finite are passed over, so many of the whole run */
    const deberta_scorer *scorer; /* NULL: the loss alone */
    size_t patience;              /* evaluations without a better one before the run ends; 0: it goes on */
    step_listener on_step;
    void *context;
} training_run;

/* A folder is new or empty. */
deberta_status run_folder_check(const char *folder, deberta_error *err);
/* The same, and it is there. */
deberta_status run_folder_prepare(const char *folder, deberta_error *err);

/* From the step where the optimisers are to the last of the recipe, or until it is stopped; *finished tells which. Log
 * lines of later steps are removed first. A step that fails leaves the log of those before it, and no model; one that
 * is not finite also a checkpoint of what is done. */
deberta_status run_folder_train(const training_run *run, bool *finished, deberta_error *err);
