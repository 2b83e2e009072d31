/* Declares the properties shared by panels of one kind in an attention figure. SPDX-License-Identifier: MIT */
#pragma once

#include "viz/attention_figure.h"

/* Return the colours of a kind, and their meaning. */
const char *attention_palette(const attention_figure *spec, heatmap_kind kind);
void attention_unit(const attention_figure *spec, heatmap_kind kind, char text[HEATMAP_UNIT_BYTES]);
/* Returns true if a panel has cells; an empty place or one with a word has none. */
bool attention_has_cells(const attention_figure *spec, size_t index);
/* Returns which panels share a scale within a kind; the only row of a figure shares it with all. */
heatmap_policy attention_policy(const attention_figure *spec, heatmap_kind kind);
/* Return true if a bar is at the right of the panel; if bars are in the lines of the row titles. */
bool attention_has_own_bar(const attention_figure *spec, size_t index);
bool attention_has_row_bars(const attention_figure *spec);

/* Colour bars of an attention figure whose rows have separate scales. */
typedef struct attention_row_bars {
    const attention_figure *spec;
    const heatmap_scale *scales; /* scales of all panels */
    draw_font small, bold;       /* fonts of the bars and of the row titles */
    double left, right;          /* edges of the page */
    size_t lines;                /* lines of bars below the row titles; 0: bars follow the titles */
} attention_row_bars;

/* Return the lines that the bars need, the height of each, and the end of the last bar. */
size_t attention_row_bars_lines(const draw_list *list, const attention_row_bars *bars);
double attention_row_bars_height(const attention_row_bars *bars);
double attention_row_bars_end(const draw_list *list, const attention_row_bars *bars);
/* Draws the bars, the first of them in a line that is centred on y. */
void attention_row_bars_draw(draw_list *list, const attention_row_bars *bars, size_t row, double y);
