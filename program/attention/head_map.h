/* Draws a few numbers for each head, as heat maps with layers down and heads across.
 *
 * Everything is measured on the tokens of the view: pieces merged into words, hidden tokens left out. Distances
 * between tokens are those in the text, including hidden tokens; distances between words are in words.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include "program/attention/figure_panels.h"
#include "viz/chart.h"

/* Allocates numbers of the chosen heads, [layers][heads] in one array. */
double *head_numbers(const figure_source *source);
/* Returns indices such as 0, 3, 5 as labels of an axis. */
const figure_label *head_number_labels(const figure_source *source, const size_t *numbers, size_t count);

/* Makes layers the rows and heads the columns of a figure's panels. */
void head_map_axes(const figure_source *source, attention_figure *figure);
/* Opens a figure of layers by heads without panels, and adds the columns "layer" and "head" to the data. */
void head_map_open(figure_sheet *sheet, attention_figure *figure);
attention_panel head_map_panel(const figure_source *source, const char *title, heatmap_kind kind, const double *values);
/* Adds a column to the data, with a line for each head. */
void head_map_column(figure_sheet *sheet, const char *name, const double *values);

/* Gives panels of bars over categories one y axis, so that bars can be compared. */
void head_bars_share_axis(chart_panel *panels, size_t count);
