/* A learner from a model's folder to its end.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include "train/state/learner.h"

/* On failure *result is NULL. */
deberta_status learner_open(learner **result, const char *folder, const learner_options *options, deberta_error *err);
void learner_free(learner **learner);

/* After the parameters have changed: packs them again, as opening would. */
deberta_status learner_take_parameters(learner *learner, deberta_error *err);
