/* SHA-256 of what a checkpoint goes on from, which stands next to its recipe: a bit that has changed since is noticed.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include <jansson.h>

#include "train/step/run_step.h"

/* {"generator/model.safetensors": "9f86...", ...} of the configurations, weights and moments of all parts. */
deberta_status run_digests_take(json_t **digests, const run_parts *parts, const char *folder, deberta_error *err);
/* NULL, of a checkpoint that an older program wrote, fits. DEBERTA_E_FORMAT: names the first file that does not. */
deberta_status run_digests_check(const json_t *digests, const char *folder, deberta_error *err);
