/* Intervals by resampling: what a number from sentences would be with other sentences of the same kind.
 *
 * The units (sentences, not tokens: tokens of a sentence are not independent) are drawn again with replacement; the
 * interval holds the middle 95 % of the results. Drawn from a seed, so the same samples give the same answer.
 *
 * SPDX-License-Identifier: MIT */
#ifndef ANALYSIS_BOOTSTRAP_H
#define ANALYSIS_BOOTSTRAP_H

#include <stdint.h>

#include "core/base/status.h"

typedef struct bootstrap_interval {
    double value;     /* of the samples themselves */
    double low, high; /* percentile interval, 95 %; NaN of one unit: it says nothing about others */
} bootstrap_interval;

enum { BOOTSTRAP_RESAMPLES = 1000 };

/* sum of parts / sum of wholes over `count` units: a share, a loss per token. wholes NULL: every one is 1, a mean. For
 * a paired comparison give the differences. count >= 1; a resample whose wholes sum to 0 counts as 0. */
deberta_status bootstrap_ratio(bootstrap_interval *interval, const double *parts, const double *wholes, size_t count,
                               uint64_t seed, deberta_error *err);

#endif
