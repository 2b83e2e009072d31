/* Declares the parts of one chart panel: its axes, its series, and their drawing. Private to chart_layout.c.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include "viz/chart.h"
#include "viz/ticks.h"

/* ------------------------------------------------------------------------------ one axis: its range, ticks, places */

typedef struct chart_axis_map {
    const chart_axis *axis;
    double low, high; /* range in data units */
    double from, to;  /* the same range, transformed (logarithms) */
    tick_set ticks;   /* empty for categories */
} chart_axis_map;

/* Makes the range and the ticks of the x or y axis (vertical) of a panel, for a plot area of that length in mm: as
 * many ticks as have numbers, in this font, that keep clear of each other. */
chart_axis_map chart_axis_make(const draw_list *list, const chart_panel *panel, bool vertical, double length,
                               const draw_font *font);

/* Returns 0 at the low end, 1 at the high end; NaN for a value that the axis cannot show. */
double chart_axis_fraction(const chart_axis_map *map, double value);
bool chart_axis_is_log(const chart_axis *axis);
void chart_axis_tick_text(const chart_axis_map *map, size_t tick, char text[TICK_TEXT_BYTES]);
/* Returns the width of the widest number, in mm. */
double chart_axis_numbers_width(const draw_list *list, const chart_axis_map *map, const draw_font *font);

/* Returns the x of a point; its index if the series has no x. */
double chart_series_x(const chart_series *series, size_t point);

/* ------------------------------------------------------------------------ series: bars, ribbons, lines and markers */

/* The inside of a panel. */
typedef struct chart_plot {
    const chart_panel *panel;
    draw_rect area;
    double page_width;
    chart_axis_map x, y;
    draw_font font, small;
} chart_plot;

double chart_plot_x(const chart_plot *p, double value);
double chart_plot_y(const chart_plot *p, double value);
draw_point chart_plot_point(const chart_plot *p, double x, double y);
/* Returns true for finite values, which must be positive on a logarithmic axis. */
bool chart_plot_shows(const chart_plot *p, double x, double y);
/* Returns true if a point of the page is in the area. */
bool chart_plot_holds(const chart_plot *p, draw_point at);

/* Draw all series layer by layer, so that no series hides the line of another: ribbons below bars, then error bars
 * and lines, both to be clipped to the area, then markers. */
void chart_series_draw_areas(draw_list *list, const chart_plot *p);
void chart_series_draw_lines(draw_list *list, const chart_plot *p);
void chart_series_draw_markers(draw_list *list, const chart_plot *p);

/* Draws series number `place` of a panel as a legend shows it, with its left end at (x, y); returns its width.
 * Without a list it only returns the width. */
double chart_series_sample(draw_list *list, const chart_series *series, size_t place, double x, double y);

/* -------------------------------------------------------------------------------- grid, series, rules and numbers */

/* Makes the axes of a panel for a plot area of that place and size. */
chart_plot chart_plot_make(const draw_list *list, const chart_panel *panel, const figure_style *style, draw_rect area);

/* Draws everything but title and legend. Adds points that cannot be drawn to notes->not_a_number, and points above or
 * below a y axis with fixed limits to notes->clipped; names that have no room raise notes->names_stride. */
void chart_plot_draw(draw_list *list, const chart_plot *plot, figure_notes *notes);

/* Return the space that the numbers and names of the axes take outside the area. */
double chart_plot_left(const draw_list *list, const chart_plot *plot);
double chart_plot_below(const draw_list *list, const chart_plot *plot);
