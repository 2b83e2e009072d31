/* Draws the attention figure: panels of query x key cells (components, logits, probabilities) for layers and heads,
 * with tokens.
 *
 * It draws other labelled matrices too, with the names of their axes: length x layers, layer x head, distances.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include "viz/figure.h"
#include "viz/heatmap.h"

typedef struct attention_panel {
    const float *values; /* [queries][stride]; NULL leaves the place empty */
    size_t stride;
    const char *title; /* title such as "content to content" */
    heatmap_kind kind;
} attention_panel;

enum { ATTENTION_MOST_ASPECT = 100 };

typedef struct attention_mark {
    size_t query, key;
} attention_mark;

/* A figure to draw. Members set to 0 or NULL mean the default or "none". Nothing is kept after the call. */
typedef struct attention_figure {
    figure_style style;

    const attention_panel *panels; /* [grid_rows][grid_columns]: a row per layer and head, a column per component */
    size_t grid_rows, grid_columns;
    const char *const *row_titles; /* [grid_rows] titles such as "layer 3, head 5" */
    /* [grid_rows][grid_columns] titles such as "c2c", used in all panels if the title of one has no room; NULL:
     * titles are cut */
    const char *const *short_titles;
    /* [grid_rows][grid_columns] or NULL: a word such as "identical" that replaces the cells, which are then ignored
     * for the scale, or NULL */
    const char *const *words;
    size_t columns;     /* panels side by side; 0: as many as leave room for the tokens */
    bool panel_letters; /* true: a, b, c ... before the titles */

    size_t queries, keys;
    const figure_label *query_labels, *key_labels; /* [queries], [keys]; NULL: positions */
    /* [queries], [keys], ascending: numbers on the axes where labels are missing or do not fit; NULL: 0, 1, 2 ... A
     * part of a text keeps the numbers of the whole text. */
    const size_t *query_numbers, *key_numbers;
    const size_t *boundaries; /* tokens that a rule is drawn before, where a second segment begins */
    size_t boundary_count;
    const attention_mark *marks; /* cells to outline, in all panels */
    size_t mark_count;
    bool annotate;                     /* true: the number in every cell */
    bool annotate_if_room;             /* true: the same, or no numbers if one of them would not fit */
    double cell_aspect;                /* height of a cell / its width, at most ATTENTION_MOST_ASPECT; 0 = 1 */
    const char *query_axis, *key_axis; /* names of the axes; NULL: "query", "key" */

    bool keep_row_mean;                   /* true: the mean over keys is kept in signed panels */
    heatmap_choice scales[HEATMAP_KINDS]; /* scale of each kind of panel */
    const char *palettes[HEATMAP_KINDS];  /* NULL: polar, blues, viridis, viridis */
    const char *units[HEATMAP_KINDS];     /* units at the colour bars; NULL: "logit", "probability", "value",
                                           * "value" */
} attention_figure;

/* Lays out the figure, for figure_save and for traces. */
deberta_status attention_layout(draw_list *list, const void *attention, figure_notes *notes, deberta_error *err);

/* Draws the figure into all paths (.png .svg .pdf). notes may be NULL. */
deberta_status figure_attention(const attention_figure *spec, const char *const *paths, size_t path_count,
                                figure_notes *notes, deberta_error *err);
