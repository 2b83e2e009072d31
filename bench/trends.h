/* Fits curves to the results of a sweep: the time of a layer, and the growth of time and memory with the length.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include "bench/results.h"

typedef enum trend_axis { TREND_LAYERS = BENCH_LAYERS, TREND_LENGTH = BENCH_LENGTH } trend_axis;

typedef struct trend {
    trend_axis axis;
    size_t like; /* index of the first result of the series; all others differ from it in the axis only */
    size_t points, from, to;
    statistics_fit time;       /* median seconds: intercept and slope over layers; a + b n + c n^2 over the length. Not
                                  valid with three lengths */
    statistics_growth seconds; /* exponents */
    statistics_growth memory;  /* of workspace_bytes */
} trend;

typedef struct trend_list {
    scope memory; /* of the trends; to be freed */
    trend *trends;
    size_t count;
} trend_list;

/* Whether two results are of the same work but for the axes, a sum of trend_axis. Ragged batches are like nothing. */
bool trend_same_series(const bench_result *a, const bench_result *b, unsigned axes);

/* Every series of at least three results that differ in one axis only; ragged and cold ones apart. A fit has more
 * points than coefficients: a parabola takes four. */
void trends_find(trend_list *list, const bench_results *results);

/* A line or two: the fitted curve and the exponents of time and memory, each with its worst error. */
void trend_say(result *r, const bench_results *results, const trend *trend);
