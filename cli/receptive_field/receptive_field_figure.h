/* The figure of `receptive-field --plot`: the band over the layers, the quoted formulas beside it, and the bucket
 * function.
 *
 * SPDX-License-Identifier: MIT */
#ifndef CLI_RECEPTIVE_FIELD_RECEPTIVE_FIELD_FIGURE_H
#define CLI_RECEPTIVE_FIELD_RECEPTIVE_FIELD_FIGURE_H

#include "cli/receptive_field/receptive_field_output.h"
#include "viz/chart.h"

deberta_status receptive_field_draw(const field_findings *findings, const figure_style *style, const char *const *paths,
                                    size_t path_count, deberta_error *err);

#endif
