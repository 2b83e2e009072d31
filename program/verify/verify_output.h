/* What verify found, as a table, as JSON and as a chart of the error by layer. SPDX-License-Identifier: MIT */
#ifndef PROGRAM_VERIFY_VERIFY_OUTPUT_H
#define PROGRAM_VERIFY_VERIFY_OUTPUT_H

#include "check/verify.h"
#include "output/result.h"

/* {"schema": "deberta-verify/1", "checks", "failures", "tiers": [...], "results": [...]}; in the other formats tiers
 * that agree in every number share a row. The caller frees it. */
result *verify_result(const verify_report *report, const verify_options *verify);

/* A line a quantity, over the layers: of one model the median, the 99.9th percentile and the worst, of several the
 * second. DEBERTA_E_ARGUMENT if nothing has a layer. report: verify_report. */
struct figure_style;
deberta_status verify_figure_draw(const void *report, const struct figure_style *style, const char *const *paths,
                                  size_t path_count, deberta_error *err);

#endif
