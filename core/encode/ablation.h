/* The means that ablations need (ablation_plan.h). What they change in a head: attention_head.c.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include "core/encode/session.h"

/* After the projections of a layer: the mean queries of its heads that need them. */
void ablation_take_means(deberta_session *session, size_t layer);
/* The mean of one element over the rows of n tokens from `first` on; holes do not count. It is summed in float64 in the
 * order of the tokens, so its bits are the same wherever it runs. Holes alone: 0. */
double ablation_mean(const deberta_session *session, size_t first, size_t n, const float *rows, size_t element);
