/* Scale-invariant fine-tuning (docs/training.md, "SiFT"): the embeddings are normalised without gain and bias, and the
 * loss penalises changes of the answers under a small step against them. A step is a batch of twice its sequences:
 * inside each shard the clean ones, then their moved copies. Three passes run forward and three back: clean; the ascent
 * that finds the step; moved; and the backward pass of clean and moved rows at once (pair_records.h).
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include "train/step/step.h"

/* Runs like step_run. batch->delta is the start of the ascent; NULL: it is drawn. The learner has room for twice the
 * tokens. result->head_loss is that of the clean pass. */
deberta_status sift_step_run(learner *learner, const step_batch *batch, const step_options *options,
                             step_result *result, deberta_error *err);
