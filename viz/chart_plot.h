/* The inside of one chart panel: grid, series, rules, and the numbers around it. Inside of
 * chart_layout.c.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include "viz/chart_series.h"

/* Axes of a panel for a plot area of that place and size. */
chart_plot chart_plot_make(const draw_list *list, const chart_panel *panel, const figure_style *style, draw_rect area);

/* Draws everything but title and legend. Adds points that cannot be drawn to notes->not_a_number, and points above or
 * below a y axis that the caller has set to notes->clipped. */
void chart_plot_draw(draw_list *list, const chart_plot *plot, figure_notes *notes);

/* Space that the numbers and names of the axes take outside the area. */
double chart_plot_left(const draw_list *list, const chart_plot *plot);
double chart_plot_below(const draw_list *list, const chart_plot *plot);
