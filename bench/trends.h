/* Fits curves to the results of a sweep: the time per layer, and the growth of time and memory with the length.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include "bench/results.h"

typedef enum trend_axis { TREND_LAYERS = BENCH_LAYERS, TREND_LENGTH = BENCH_LENGTH } trend_axis;

typedef struct trend {
    trend_axis axis;
    size_t like; /* index of the first result of the series; all others differ from it in the axis only */
    size_t points, from, to;
    /* median seconds: intercept and slope over layers; a + b n + c n^2 over the length, which is not valid with three
     * lengths */
    statistics_fit time;
    statistics_growth seconds; /* power law of the time */
    statistics_growth memory;  /* power law of workspace_bytes */
} trend;

typedef struct trend_list {
    scope memory; /* owner of the trends; free it */
    trend *trends;
    size_t count;
} trend_list;

/* Returns true if two results are of the same work but for the axes, a sum of trend_axis. A ragged batch has no
 * series. */
bool trend_same_series(const bench_result *a, const bench_result *b, unsigned axes);

/* Finds every series of at least three results that differ in one axis only; ragged and cold ones are separate. A fit
 * has more points than coefficients, so a parabola takes four. */
void trends_find(trend_list *list, const bench_results *results);

/* Writes a line or two: the fitted curve and the exponents of time and memory, each with its worst error. */
void trend_say(result *r, const bench_results *results, const trend *trend);
