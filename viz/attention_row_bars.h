/* Colour bars of an attention figure whose rows have scales of their own. SPDX-License-Identifier: MIT */
#ifndef VIZ_ATTENTION_ROW_BARS_H
#define VIZ_ATTENTION_ROW_BARS_H

#include "viz/attention_kinds.h"

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

#endif
