/* Declares the parts of a training run, each in a file of its name.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include <jansson.h>
#include <stdio.h>

#include "core/io/json_file.h"
#include "include/deberta_training.h"
#include "train/step/run_step.h"

/* Checkpoints of a run are folders checkpoint-NNNNNN with all data for resuming. A model's has the output of save_model
 * and training.safetensors (m.NAME, v.NAME). A pair's has the same in generator and discriminator. training.json comes
 * last: the completed steps, the recipe, and the files' digests. A checkpoint is written under another name, synced to
 * the disk, then renamed. */

enum { RUN_PATH_BYTES = 4096 };

typedef struct run_checkpoint {
    size_t step;      /* number of completed updates; 0: there is no checkpoint, and the run begins anew */
    bool is_finished; /* whether it is the folder of a finished run */
    char path[RUN_PATH_BYTES];
} run_checkpoint;

/* What a checkpoint says of its run: the settings that determine the bits, and the SHA-256 of the held-out data, whose
 * measures are compared with each other ("": none). */
typedef struct run_record {
    const json_t *recipe;
    char held_out[65];
} run_record;

/* Saves the models into a folder that exists. */
deberta_status run_parts_save(const run_parts *parts, const char *folder, deberta_dtype dtype, deberta_error *err);

/* Rule for the checkpoints that stay: the latest, and those of multiples of a step. */
typedef struct run_keeping {
    size_t latest, every; /* number of the latest; distance in steps of the others, 0: none */
} run_keeping;

/* Writes a checkpoint, then removes the older ones. */
deberta_status run_checkpoint_write(const run_parts *parts, const char *folder, const run_record *record,
                                    run_keeping keeping, deberta_error *err);
/* Keeps the checkpoint of the step and the latest before it, keeping.latest in all, and those of keeping.every. */
deberta_status run_checkpoint_remove_older(const char *folder, size_t step, run_keeping keeping, deberta_error *err);

/* Writes the files after the last step, in the folder itself; older checkpoints stay. */
deberta_status run_checkpoint_write_last(const run_parts *parts, const char *folder, const run_record *record,
                                         deberta_error *err);

/* Refuses a folder whose models are saved in another dtype than these would be. */
deberta_status run_checkpoint_check_dtype(const run_parts *parts, const char *folder, deberta_error *err);

/* Finds the end of a run or its latest whole checkpoint in a folder, or none where a run has made none yet. It checks
 * the recipe: if it differs, the message names the differing members. */
deberta_status run_checkpoint_find(run_checkpoint *found, const char *folder, const run_record *record,
                                   deberta_error *err);
/* Finds the checkpoint of this step, for an audit. It checks all but the digests, because the audit compares the state
 * with the chain. Step 0: the beginning. */
deberta_status run_checkpoint_find_step(run_checkpoint *found, const char *folder, size_t step, const json_t *recipe,
                                        deberta_error *err);
/* Writes the path of a part of a checkpoint to path. */
void run_checkpoint_part(const run_checkpoint *checkpoint, const char *name, char path[RUN_PATH_BYTES]);
/* Reads moments and steps, for parts that were opened from the checkpoint. */
deberta_status run_checkpoint_read(const run_checkpoint *checkpoint, const run_parts *parts, deberta_error *err);

/* Evaluations of a run: they write loss and measures of held-out data to the log, save the best model in the folder
 * "best", and decide when the run has not improved for too long. */

typedef struct run_evaluation {
    const batch_source *held_out;
    const deberta_scorer *scorer; /* NULL: the loss decides, the lower the better */
    const char *folder;           /* folder of the run */
    double best;                  /* value of the measure; NaN: it was undefined */
    double best_loss;             /* decides between two undefined measures */
    size_t best_step;             /* 0: no evaluation yet */
    size_t worse_runs;            /* evaluations since then */
} run_evaluation;

/* Restores the state from the evaluations of a resumed log, from its current position to its end. */
void run_evaluation_recall(run_evaluation *evaluation, FILE *log);

/* Makes the file DEBERTA_BEST_IS_LATER, if there is a best/; it goes when best/ is written again. */
deberta_status run_evaluation_mark_later(const char *folder, deberta_error *err);

/* Evaluates after the current step: writes a line of the log, and saves the model in best/ if it is the best. */
deberta_status run_evaluation_run(run_evaluation *evaluation, const run_parts *parts, FILE *log, deberta_error *err);

/* recipe.json in a run's folder identifies the run from before its first step; an active run holds a lock on it. */

#define RECIPE_FILE "recipe.json"

/* Limits of recipes, including those with many labels. */
extern const json_limits run_json_limits;

typedef struct run_claim {
    int file;
    bool held;
    bool is_new; /* whether the run began with this claim */
} run_claim;

/* Locks the recipe of an existing run; without one, nothing is held. DEBERTA_E_SYSTEM: another run is active. */
deberta_status run_claim_join(run_claim *claim, const char *folder, deberta_error *err);
/* Claims an existing folder: creates the file where none is held, and writes the recipe where it is incomplete. */
deberta_status run_claim_take(run_claim *claim, const char *folder, const json_t *recipe, deberta_error *err);
/* Removes the file of a run that has completed no step. */
void run_claim_remove(const run_claim *claim, const char *folder);
void run_claim_release(run_claim *claim);

/* Reads the recipe of a folder into new memory; NULL: there is none, or a run was killed while writing it. */
deberta_status run_claim_recipe(json_t **recipe, const char *folder, deberta_error *err);
