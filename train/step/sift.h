/* Scale-invariant fine-tuning (docs/training.md, "SiFT"): the embeddings are normalised without gain and bias, and the
 * loss asks that a small step against them changes the answers little. A step is a batch of twice its sequences: inside
 * each shard the clean ones, then their moved copies. Three passes forward and three back: clean, the ascent that finds
 * the step, moved, and the way back of clean and moved rows at once (pair_records.h).
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include "train/step/step.h"

/* As step_run. batch->delta is where the ascent begins; NULL: it is drawn. The learner has room for twice the tokens.
 * result->head_loss is that of the clean pass. */
deberta_status sift_step_run(learner *learner, const step_batch *batch, const step_options *options,
                             step_result *result, deberta_error *err);
