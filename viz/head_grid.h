/* Draws the head grid: a thumbnail of every head of every layer, on one colour scale.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include "viz/figure.h"
#include "viz/heatmap.h"

typedef struct head_grid {
    figure_style style;
    const float *const *maps; /* [layers][heads] matrices of [queries][stride]; NULL leaves a place empty */
    size_t layers, heads;     /* rows and columns of the grid */
    size_t queries, keys, stride;
    const size_t *layer_numbers, *head_numbers; /* numbers beside them; NULL: 0, 1, 2 ... */
    heatmap_kind kind;
    bool keep_row_mean;   /* as in attention_figure */
    heatmap_choice scale; /* never HEATMAP_PANEL or HEATMAP_ROW, because the grid is for comparing */
    const char *palette;  /* NULL: polar for signed values, else blues */
    const char *unit;     /* NULL: "logit" or "probability" */
} head_grid;

deberta_status head_grid_layout(draw_list *list, const void *grid, figure_notes *notes, deberta_error *err);
