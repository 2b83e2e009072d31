/* Figures of a few numbers for each head: heat maps with layers down and heads across, and what they are measured on.
 *
 * Everything is measured on the tokens of the view: words where pieces were merged, without what is not shown.
 * Distances are those in the text, across what is not shown; between words they are in words.
 *
 * SPDX-License-Identifier: MIT */
#ifndef CLI_FIGURES_HEAD_MAP_H
#define CLI_FIGURES_HEAD_MAP_H

#include "cli/figures/figure_job.h"
#include "analysis/attention_terms.h"
#include "viz/chart.h"

/* Which tokens of the view are queries and keys, for functions that take a mask; NULL: all of them. */
int head_mask(figure_job *job, const unsigned char **mask);
/* Where the rows of the view stand, for functions that take positions; NULL: one beside the other, as words do. */
const size_t *head_positions(const figure_job *job);
const char *head_unit(const figure_job *job); /* of distances: "tokens" or "words" */
/* The terms of one head as captured, in the shape of the view. */
int head_logit_terms(figure_job *job, size_t layer, size_t head, logit_terms *terms);

/* "layer 2, head 0": kept by the job; NULL without memory. */
const char *head_title(figure_job *job, size_t layer, size_t head);

/* Numbers of the chosen heads, [layers][heads] as one row: index k is layer k / head_count, head k % head_count of the
 * choice. Memory of the job; NULL without. */
double *head_numbers(figure_job *job);
size_t head_count(const figure_job *job); /* of all chosen layers together */
size_t head_layer(const figure_job *job, size_t index);
size_t head_number(const figure_job *job, size_t index);

/* Gives a figure a row for each head, with its title, of `columns` panels, which are still empty and memory of the job.
 */
int head_rows(figure_job *job, attention_figure *figure, size_t columns, attention_panel **panels);

/* A figure of layers x heads without panels, and the columns "layer" and "head" of the data. */
int head_map_figure(figure_job *job, attention_figure *figure);
int head_map_panel(figure_job *job, attention_panel *panel, const char *title, heatmap_kind kind, const double *values);
/* A column of the data, a line for each head. */
int head_map_column(figure_job *job, const char *name, const double *values);

/* One y axis for panels of bars over categories, or bars could not be compared. */
void head_bars_share_axis(chart_panel *panels, size_t count);

#endif
