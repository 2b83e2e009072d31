/* Draws heat maps of queries and keys: panels of matrices, each also in the data, in the shape of the view.
 *
 * Most kinds are a few columns and a function that gives the matrix of a head; panels_of_heads does the rest.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include "program/attention/figure_sheet.h"

typedef struct panel_column {
    const char *name;  /* in the data: "delta_c2c" */
    const char *title; /* of the panel */
    heatmap_kind kind;
    token_view_rule rule; /* how the tokens of a word become one */
    deberta_component component;
    const char *short_title; /* where titles have no room: "c2c" */
} panel_column;

/* Signed for components and logits, positive (or, with --log, logarithmic) for probabilities. */
panel_column component_column(const figure_source *source, deberta_component component);
/* Fills the columns of all chosen components; returns their number. */
size_t component_columns(const figure_source *source, panel_column columns[DEBERTA_COMPONENT_COUNT]);

/* A figure with everything but the panels: style, look, labels, numbers, boundary and marks of the view, units. */
void panels_open(const figure_sheet *sheet, attention_figure *figure);
/* Adds one panel. whole: [n][n] of the whole text; with TOKEN_VIEW_SHOWN [count][count] as it is shown. */
attention_panel panels_add(figure_sheet *sheet, const panel_column *column, size_t layer, size_t head,
                           const float *whole);

/* The matrix of a column for the head with this index among the chosen. */
typedef const float *(*panel_matrix)(void *context, const figure_source *source, size_t index,
                                     const panel_column *column);
/* Returns the matrix as captured; needs no context. */
const float *captured_matrix(void *context, const figure_source *source, size_t index, const panel_column *column);
/* A row of panels for each head, with its title; of one column one panel after the other. A panel of an ablated term
 * says so, in words where it is 0 everywhere. */
void panels_of_heads(figure_sheet *sheet, attention_figure *figure, const panel_column *columns, size_t count,
                     panel_matrix matrix, void *context);

/* Whether a panel of this many cells is 0 everywhere. */
bool panel_is_zero(const attention_panel *panel, size_t cells);
/* Refuses limits of --scale that no panel takes: no such kind is drawn, or it cannot be. */
void panels_check_limits(const figure_source *source, const heatmap_choice scales[HEATMAP_KINDS],
                         const bool drawn[HEATMAP_KINDS]);
/* A scale of HEATMAP_RANGE that is the default begins at 0 and ends at reach, or at a larger value: for quantities that
 * cannot be negative. */
void panels_begin_at_zero(attention_figure *figure, double reach);
/* Checks the limits, then sheet_finish. Instead of drawing it sets sheet->wants_words where the figure is to be made
 * again in words: in pieces it has no room on its page, in words it has. */
void panels_finish(figure_sheet *sheet, const attention_figure *figure);
