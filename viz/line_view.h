/* Draws the line view: tokens in two columns, a line from every query to the keys it attends to, stronger for larger
 * values.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include "viz/figure.h"
#include "viz/heatmap.h"

typedef struct line_view_panel {
    const float *values; /* [queries][stride], probabilities or signed values */
    size_t stride;
    const char *title;
} line_view_panel;

typedef struct line_view {
    figure_style style;
    const line_view_panel *panels; /* heads, layers or components; one scale for all */
    size_t panel_count;
    size_t columns; /* panels side by side; 0: as many as leave room for the lines */
    size_t queries, keys;
    heatmap_kind kind;                             /* HEATMAP_SIGNED or HEATMAP_POSITIVE */
    bool keep_row_mean;                            /* as in attention_figure */
    const figure_label *query_labels, *key_labels; /* required, since lines between unnamed points mean nothing */
    double smallest; /* fraction of the largest |value| below which lines are left out; 0 = 0.05 */
    bool one_query;  /* true: only the lines of `query`, with its token in bold */
    size_t query;
    const char *unit; /* NULL: "logit" or "probability" */
} line_view;

deberta_status line_view_layout(draw_list *list, const void *view, figure_notes *notes, deberta_error *err);
