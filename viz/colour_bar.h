/* Draws the colour bars of heat maps.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include "viz/heatmap.h"

/* Returns the width in mm of the widest number of the scale's bar, if this is up to 40 mm long. */
double colour_bar_numbers_width(const draw_list *list, const heatmap_scale *scale, const draw_font *font);
/* Draws a bar with numbers below (horizontal) or to its right (vertical). Pointed ends show that values were
 * clipped. */
void colour_bar_draw(draw_list *list, draw_rect bar, bool vertical, const heatmap_scale *scale, const palette *map,
                     const draw_font *font);

/* A horizontal bar below a title that is broken into lines of `room`, or after it in one line of `room`. */
typedef struct colour_legend {
    const char *title;
    const heatmap_scale *scale;
    const palette *map;
    draw_font font, small; /* fonts of the title and of the numbers */
    double width, room;
} colour_legend;

double colour_legend_height(const draw_list *list, const colour_legend *legend);
/* Draws the legend with its upper left corner at (x, y). */
void colour_legend_draw(draw_list *list, const colour_legend *legend, double x, double y);

/* Draws the bar in a line that is centred on y, in small type: title, lowest number, a short bar, highest number.
 * Returns its end, and its width. */
double colour_bar_draw_inline(draw_list *list, const colour_legend *legend, double x, double y);
double colour_bar_inline_width(const draw_list *list, const colour_legend *legend);
