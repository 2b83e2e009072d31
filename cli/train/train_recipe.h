/* What decides about the bits of a run, as JSON. SPDX-License-Identifier: MIT */
#ifndef CLI_TRAIN_TRAIN_RECIPE_H
#define CLI_TRAIN_TRAIN_RECIPE_H

#include <jansson.h>

#include "cli/train/train_data.h"

/* All options of a run but those that no bit depends on, and digests of data and models. */
deberta_status train_recipe_describe(json_t **recipe, const train_options *options, const train_data *data,
                                     const step_options *step, deberta_error *err);

#endif
