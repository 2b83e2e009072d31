/* Draws a text whose tokens are shaded by their values, above charts that belong to it.
 * SPDX-License-Identifier: MIT */
#pragma once

#include "viz/chart.h"

typedef struct shaded_text {
    figure_style style;
    const figure_label *tokens; /* [count] */
    const bool *begins_word;    /* [count] true: a gap comes before it */
    const double *values;       /* [count]; shades are as dark for +v as for -v */
    size_t count;               /* number of tokens; 0: the charts alone */
    const char *unit;           /* unit beside the colour bar */
    const chart_panel *panels;  /* charts below, of the same width */
    size_t panel_count;
} shaded_text;

deberta_status shaded_text_layout(draw_list *list, const void *text, figure_notes *notes, deberta_error *err);
