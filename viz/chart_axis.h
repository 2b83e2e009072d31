/* One axis of a chart panel: its range from the data, its ticks, and where a value lies on it. Inside of
 * chart_layout.c.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include "viz/chart.h"
#include "viz/ticks.h"

typedef struct chart_axis_map {
    const chart_axis *axis;
    double low, high; /* range in data units */
    double from, to;  /* the same, transformed (logarithms) */
    tick_set ticks;   /* none for categories */
} chart_axis_map;

/* Range and ticks of the x or y axis (vertical) of a panel, for a plot area of that length in mm. The ticks are the
 * most whose numbers, written in font, keep clear of each other. */
chart_axis_map chart_axis_make(const draw_list *list, const chart_panel *panel, bool vertical, double length,
                               const draw_font *font);

/* 0 at the low end, 1 at the high end; NaN for what the axis cannot show. */
double chart_axis_fraction(const chart_axis_map *map, double value);
bool chart_axis_is_log(const chart_axis *axis);
void chart_axis_tick_text(const chart_axis_map *map, size_t tick, char text[TICK_TEXT_BYTES]);
/* Width of the widest number, in mm. */
double chart_axis_numbers_width(const draw_list *list, const chart_axis_map *map, const draw_font *font);

/* x of a point, its index where the series has none. */
double chart_series_x(const chart_series *series, size_t point);
