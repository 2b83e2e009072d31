/* The means that ablations need (ablation_plan.h). What they change in a head: attention_head.c.
 *
 * SPDX-License-Identifier: MIT */
#ifndef CORE_MODEL_ABLATION_H
#define CORE_MODEL_ABLATION_H

#include "core/model/session.h"

/* After the projections of a layer: the mean queries of its heads that need them. */
void ablation_take_means(deberta_session *session, size_t layer);
/* Of one element of the rows of n tokens from `first` on that are no holes, summed in float64 in their order: the same
 * bits wherever it runs. All holes: 0. */
double ablation_mean(const deberta_session *session, size_t first, size_t n, const float *rows, size_t element);

#endif
