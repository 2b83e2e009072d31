/* Declares the parts of a training run, each in a file of its name.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include <jansson.h>
#include <stdio.h>

#include "core/io/json_file.h"
#include "include/deberta_training.h"
#include "train/step/run_step.h"

/* Checkpoints of a run: folders checkpoint-NNNNNN with all that going on needs. Of a model: what save_model writes and
 * training.safetensors (m.NAME, v.NAME). Of a pair: the same in generator and discriminator. At last training.json: the
 * steps that are done, the recipe, and the files' digests. A checkpoint is made under another name, brought to the
 * disk, then renamed. */

enum { RUN_PATH_BYTES = 4096 };

typedef struct run_checkpoint {
    size_t step; /* updates that are done; 0: none, the run begins anew */
    char path[RUN_PATH_BYTES];
} run_checkpoint;

/* The models into a folder that exists. */
deberta_status run_parts_save(const run_parts *parts, const char *folder, deberta_dtype dtype, deberta_error *err);

/* Then removes the older ones. */
deberta_status run_checkpoint_write(const run_parts *parts, const char *folder, const json_t *recipe, size_t keep,
                                    deberta_error *err);
/* Keeps the checkpoint of the step and the latest before it, `keep` in all. */
deberta_status run_checkpoint_remove_older(const char *folder, size_t step, size_t keep, deberta_error *err);

/* Writes the files after the last step, in the folder itself; older checkpoints stay. */
deberta_status run_checkpoint_write_last(const run_parts *parts, const char *folder, const json_t *recipe,
                                         deberta_error *err);

/* The end of a run or its latest whole checkpoint in a folder, or none where a run has begun without getting that far;
 * and whether it is of this recipe: if not, the message names the members that differ. */
deberta_status run_checkpoint_find(run_checkpoint *found, const char *folder, const json_t *recipe, deberta_error *err);
/* Where the part of a checkpoint lies. */
void run_checkpoint_part(const run_checkpoint *checkpoint, const char *name, char path[RUN_PATH_BYTES]);
/* Moments and steps, for parts that were opened from the checkpoint. */
deberta_status run_checkpoint_read(const run_checkpoint *checkpoint, const run_parts *parts, deberta_error *err);

/* SHA-256 of what a checkpoint goes on from, which stands next to its recipe: a bit that has changed since is noticed.
 */

/* {"generator/model.safetensors": "9f86...", ...} of the configurations, weights and moments of all parts. */
deberta_status run_digests_take(json_t **digests, const run_parts *parts, const char *folder, deberta_error *err);
/* NULL, of a checkpoint that an older program wrote, fits. DEBERTA_E_FORMAT: names the first file that does not. */
deberta_status run_digests_check(const json_t *digests, const char *folder, deberta_error *err);

/* Evaluations of a run: loss and measures of held-out data into the log, the best model into the folder "best", and
 * when none has been better for too long. */

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

/* recipe.json of a run's folder: which run it is, from before its first step, and a lock that the run at work holds. */

#define RECIPE_FILE "recipe.json"

/* Limits of recipes, also of those with many labels. */
extern const json_limits run_json_limits;

typedef struct run_claim {
    int file;
    bool held;
    bool is_new; /* the run began with this claim */
} run_claim;

/* Locks the recipe of a run that is there; where none is, nothing is held. DEBERTA_E_SYSTEM: another run is at work. */
deberta_status run_claim_join(run_claim *claim, const char *folder, deberta_error *err);
/* Claims a folder that is there: makes the file where none is held, and writes the recipe where it is not whole. */
deberta_status run_claim_take(run_claim *claim, const char *folder, const json_t *recipe, deberta_error *err);
/* Removes the file of a run that has not made a step. */
void run_claim_remove(const run_claim *claim, const char *folder);
void run_claim_release(run_claim *claim);

/* The recipe of a folder, in new memory; NULL: there is none, or a run was killed while it wrote it. */
json_t *run_claim_recipe(const char *folder);
