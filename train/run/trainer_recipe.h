/* The recipe of a run as JSON: all settings that determine its bits. SPDX-License-Identifier: MIT */
#pragma once

#include <jansson.h>

#include "include/deberta_training.h"
#include "train/data/trainer_data.h"
#include "train/state/step_state.h"

/* Describes all options of a run except those that affect no bit, and digests of data and models. Choices are given by
 * name. */
deberta_status trainer_recipe_describe(json_t **recipe, const deberta_trainer_options *options,
                                       const trainer_data *data, const step_options *step,
                                       const step_options *generator, deberta_error *err);
