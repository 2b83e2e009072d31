/* recipe.json of a run's folder: which run it is, from before its first step, and a lock that the run at work holds.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include "core/io/json_file.h"

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
