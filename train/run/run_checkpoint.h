/* Checkpoints of a run: folders checkpoint-NNNNNN with all that going on needs. Of a model: what save_model writes and
 * training.safetensors (m.NAME, v.NAME). Of a pair: the same in generator and discriminator. At last training.json: the
 * steps that are done, the recipe, and the files' digests. A checkpoint is made under another name, brought to the
 * disk, then renamed.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include <jansson.h>

#include "train/step/run_step.h"

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
