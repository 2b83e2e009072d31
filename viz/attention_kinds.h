/* Declares the properties shared by panels of one kind in an attention figure. SPDX-License-Identifier: MIT */
#pragma once

#include "viz/attention_figure.h"

/* Colours of a kind, and their meaning. */
const char *attention_palette(const attention_figure *spec, heatmap_kind kind);
void attention_unit(const attention_figure *spec, heatmap_kind kind, char text[HEATMAP_UNIT_BYTES]);
/* Whether a panel has cells; an empty place or one with a word has none. */
bool attention_has_cells(const attention_figure *spec, size_t index);
/* Set of panels that share a scale within a kind; a row that is the only one shares it with all. */
heatmap_policy attention_policy(const attention_figure *spec, heatmap_kind kind);
/* Whether a bar is at the right of the panel; whether bars are in the lines of the titles of rows. */
bool attention_has_own_bar(const attention_figure *spec, size_t index);
bool attention_has_row_bars(const attention_figure *spec);

/* Colour bars of an attention figure whose rows have separate scales. */
typedef struct attention_row_bars {
    const attention_figure *spec;
    const heatmap_scale *scales; /* of every panel */
    draw_font small, bold;       /* of the bars, of the titles of rows */
    double left, right;          /* of the page */
    size_t lines;                /* beneath the titles of rows; 0: bars stand after them */
} attention_row_bars;

/* The lines that they need, and the height of each; where the last bar ends. */
size_t attention_row_bars_lines(const draw_list *list, const attention_row_bars *bars);
double attention_row_bars_height(const attention_row_bars *bars);
double attention_row_bars_end(const draw_list *list, const attention_row_bars *bars);
/* The first in a line that is centred on y. */
void attention_row_bars_draw(draw_list *list, const attention_row_bars *bars, size_t row, double y);
