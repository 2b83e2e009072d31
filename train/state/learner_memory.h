/* The memory of a learner besides model, session and parameters: what a step's passes write to, carved from one arena
 * for steps of its size, and sums over tokens.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include "train/state/learner.h"

/* The learner has parameters, model, session and plan. Refused before anything large is taken where that would be more
 * than options.memory_limit_bytes. */
deberta_status learner_memory_open(learner *learner, deberta_error *err);
/* Room for so many rows of the decoder in `memory`, the learner's; what its passes held is lost where there is too
 * little.
 */
deberta_status learner_decoder_reserve(const learner *learner, step_memory *memory, size_t rows, deberta_error *err);
void learner_memory_free(learner *learner);

/* Sums over tokens besides the parameters' gradients: of position tables, and of groups of shards that wait. */
size_t learner_sum_bytes(const learner *learner);
/* All that it holds, with the moments of an optimiser if there will be one. */
size_t learner_bytes(const learner *learner);
