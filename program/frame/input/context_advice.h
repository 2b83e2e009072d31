/* How long texts may be, and what a model can still tell apart in them: what `info` says about a model.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include "program/frame/options.h"
#include "include/deberta.h"
#include "output/result.h"

/* Says it with the indentation of `info`, and returns it: an object with trained_length, position_table_limit (null:
 * none), and for models with relative positions longest_unambiguous_text, contiguous_unique and composed_run. */
json_t *context_advice(result *r, const deberta_model_info *info, deberta_reference reference);
/* A note if the longest text has more tokens than the model was trained on; nothing keeps it from being encoded. */
void note_trained_length(const common_options *options, size_t longest, const deberta_model_info *info);
