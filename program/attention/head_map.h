/* Draws a few numbers for each head: heat maps with layers down and heads across.
 *
 * Everything is measured on the tokens of the view: words where pieces were merged, without what is not shown.
 * Distances are those in the text, across what is not shown; between words they are in words.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include "program/attention/figure_panels.h"
#include "viz/chart.h"

/* Numbers of the chosen heads, [layers][heads] as one row. */
double *head_numbers(const figure_source *source);
/* 0, 3, 5 as labels of an axis. */
const figure_label *head_number_labels(const figure_source *source, const size_t *numbers, size_t count);

/* A figure of layers x heads without panels, and the columns "layer" and "head" of the data. */
void head_map_open(figure_sheet *sheet, attention_figure *figure);
attention_panel head_map_panel(const figure_source *source, const char *title, heatmap_kind kind, const double *values);
/* A column of the data, a line for each head. */
void head_map_column(figure_sheet *sheet, const char *name, const double *values);

/* Gives panels of bars over categories one y axis, so that bars can be compared. */
void head_bars_share_axis(chart_panel *panels, size_t count);
