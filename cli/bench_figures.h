/* Figures of bench results. SPDX-License-Identifier: MIT */
#ifndef CLI_BENCH_FIGURES_H
#define CLI_BENCH_FIGURES_H

#include "bench/report.h"
#include "viz/chart.h"

/* Panels for whatever the results vary in: latency against length, memory against length, latency against layers with
 * the fitted slope, speed-up over the scalar tier. One series for each engine, tier and number of threads.
 * DEBERTA_E_ARGUMENT if nothing varies. */
deberta_status bench_figures_draw(const bench_report *report, const figure_style *style, const char *const *paths,
                                  size_t path_count, deberta_error *err);

#endif
