/* Whether a batch can be learned from: ids and labels in range, something labelled, a head for the task. Says which
 * sequence and token of the file is wrong, what stands there, and what may.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include "train/step/step.h"

deberta_status step_check(const learner *learner, const step_batch *batch, const step_options *options,
                          deberta_error *err);
