/* Curves through the results of a sweep: what a layer costs, how time and memory grow with the length.
 *
 * SPDX-License-Identifier: MIT */
#ifndef BENCH_TRENDS_H
#define BENCH_TRENDS_H

#include "bench/results.h"

typedef enum trend_axis { TREND_LAYERS = 1, TREND_LENGTH = 2 } trend_axis;

typedef struct trend {
    trend_axis axis;
    size_t like; /* index of the first result of the series; all others differ from it in the axis only */
    size_t points, from, to;
    statistics_fit time;       /* median seconds: intercept and slope over layers; a + b n + c n^2 over the length */
    statistics_growth seconds; /* exponents */
    statistics_growth memory;  /* of workspace_bytes */
} trend;

typedef struct trend_list {
    trend *trends; /* owned */
    size_t count;
} trend_list;

/* Whether two results are of the same work but for the axes, a sum of trend_axis. Ragged batches are like nothing. */
bool trend_same_series(const bench_result *a, const bench_result *b, unsigned axes);

/* Every series of at least three results (two over layers) that differ in one axis only; ragged and cold ones apart. */
deberta_status trends_find(trend_list *list, const bench_results *results, deberta_error *err);
void trends_free(trend_list *list);

/* A line or two each: the fitted curve, its worst error, and the exponents of time and memory. */
deberta_status trends_print(const bench_results *results, FILE *out, deberta_error *err);

#endif
