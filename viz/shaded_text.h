/* Draws a text whose tokens are shaded by a number each, over charts that belong to it. SPDX-License-Identifier: MIT */
#pragma once

#include "viz/chart.h"

typedef struct shaded_text {
    figure_style style;
    const figure_label *tokens; /* [count] */
    const bool *begins_word;    /* [count]: a gap comes before it */
    const double *values;       /* [count]; shades are as dark for +v as for -v */
    size_t count;               /* 0: the charts alone */
    const char *unit;           /* beside the bar of colours */
    const chart_panel *panels;  /* beneath, of the same width */
    size_t panel_count;
} shaded_text;

deberta_status shaded_text_layout(draw_list *list, const void *text, figure_notes *notes, deberta_error *err);
