/* Ranks of a run must have the same recipe. SPDX-License-Identifier: MIT */
#ifndef TRAIN_RANK_RECIPES_H
#define TRAIN_RANK_RECIPES_H

#include <jansson.h>

#include "train/engine/ranks.h"

/* Whether all ranks have this recipe and go on from this step; says which rank differs from rank 0, and in what. All
 * ranks find the same. */
deberta_status rank_recipes_check(const deberta_ranks *ranks, const json_t *recipe, size_t step, deberta_error *err);

#endif
