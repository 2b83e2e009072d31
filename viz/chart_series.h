/* The series of one chart panel: how each looks, and its bars, ribbons, lines and markers.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include "viz/chart_axis.h"

/* The inside of a panel. */
typedef struct chart_plot {
    const chart_panel *panel;
    draw_rect area;
    chart_axis_map x, y;
    draw_font font, small;
} chart_plot;

double chart_plot_x(const chart_plot *p, double value);
double chart_plot_y(const chart_plot *p, double value);
draw_point chart_plot_point(const chart_plot *p, double x, double y);
/* Not NaN, not infinite, and positive on a logarithmic axis. */
bool chart_plot_shows(const chart_plot *p, double x, double y);
/* Whether a place of the page is in the area. */
bool chart_plot_holds(const chart_plot *p, draw_point at);

/* Over all series one after the other, so that no series hides the line of another: ribbons under bars, then error bars
 * and lines, both to be clipped to the area, then markers. */
void chart_series_draw_areas(draw_list *list, const chart_plot *p);
void chart_series_draw_lines(draw_list *list, const chart_plot *p);
void chart_series_draw_markers(draw_list *list, const chart_plot *p);

/* How series number place of a panel looks, drawn for a legend with its left end at (x, y); returns the width of that.
 * With no list it only tells the width. */
double chart_series_sample(draw_list *list, const chart_series *series, size_t place, double x, double y);
