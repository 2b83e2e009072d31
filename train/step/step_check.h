/* Checks that a batch can be learned from: ids and labels in range, at least one label, a head for the task. The error
 * names the sequence and token of the file, the value found, and the accepted values.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include "train/step/step.h"

deberta_status step_check(const learner *learner, const step_batch *batch, const step_options *options,
                          deberta_error *err);
