/* Draws heat maps of queries and keys: panels of matrices, each also in the data, in the shape of the view.
 *
 * Most kinds are a few columns and a function that gives the matrix of a head; panels_of_heads does the rest.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include "program/attention/figure_sheet.h"

typedef struct panel_column {
    const char *name;  /* name in the data: "delta_c2c" */
    const char *title; /* title of the panel */
    heatmap_kind kind;
    token_view_rule rule; /* how the pieces of a word are merged */
    deberta_component component;
    const char *short_title; /* title where space is short: "c2c" */
} panel_column;

/* Returns the column of a component: signed for components and logits, positive (logarithmic with --log) for
 * probabilities. */
panel_column component_column(const figure_source *source, deberta_component component);
/* Fills the columns of all chosen components; returns their number. */
size_t component_columns(const figure_source *source, panel_column columns[DEBERTA_COMPONENT_COUNT]);

/* Fills a figure with everything but the panels: style, look, labels, numbers, boundary and marks of the view,
 * units. */
void panels_open(const figure_sheet *sheet, attention_figure *figure);
/* Adds one panel. whole: [n][n] of the whole text; with TOKEN_VIEW_SHOWN [count][count], already in the shape of the
 * view. */
attention_panel panels_add(figure_sheet *sheet, const panel_column *column, size_t layer, size_t head,
                           const float *whole);

/* Returns the matrix of a column for the head with this index among the chosen heads. */
typedef const float *(*panel_matrix)(void *context, const figure_source *source, size_t index,
                                     const panel_column *column);
/* A panel_matrix that returns the matrix as captured; it needs no context. */
const float *captured_matrix(void *context, const figure_source *source, size_t index, const panel_column *column);
/* Draws a row of panels with a title for each head; with one column, all panels follow each other. The panel of an
 * ablated term says so in words if it is 0 everywhere. */
void panels_of_heads(figure_sheet *sheet, attention_figure *figure, const panel_column *columns, size_t count,
                     panel_matrix matrix, void *context);

/* Returns true if a panel of this many cells is 0 everywhere. */
bool panel_is_zero(const attention_panel *panel, size_t cells);
/* Refuses limits of --scale that apply to no panel, because no panel of that kind is drawn or can be drawn. */
void panels_check_limits(const figure_source *source, const heatmap_choice scales[HEATMAP_KINDS],
                         const bool drawn[HEATMAP_KINDS]);
/* Prints a note on each option of colours that was given for panels of a kind that is not drawn. */
void panels_note_unused(const figure_source *source, const bool drawn[HEATMAP_KINDS]);
/* Makes the default scale of HEATMAP_RANGE begin at 0 and end at `reach` or a larger value, for quantities that
 * cannot be negative. */
void panels_begin_at_zero(attention_figure *figure, double reach);
/* Checks the limits, then calls sheet_finish. Where tokens fit only in words, or words make a high figure
 * lower, it sets sheet->wants_words instead, and the caller draws it again; figure->columns may change. */
void panels_finish(figure_sheet *sheet, attention_figure *figure);
