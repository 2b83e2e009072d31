/* Draws charts: lines, points, ribbons and bars over linear, logarithmic and category axes.
 *
 * A chart figure is a grid of panels. The legend is above them, once if all show the same series, so that it never
 * covers data. Series differ in colour, marker and dash, and so in greyscale. Points that cannot be drawn (not finite,
 * or not positive on a logarithmic axis) interrupt their line and are counted in a note.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include "viz/figure.h"

typedef enum chart_scale {
    CHART_LINEAR,
    CHART_WHOLE, /* linear, ticks at whole numbers: layers, distances */
    CHART_LOG10,
    CHART_LOG2,       /* ticks at powers of two: sequence lengths */
    CHART_SIGNED_LOG, /* asinh: linear around 0, logarithmic far from it, both signs: distances */
    CHART_CATEGORIES, /* x only: places 0, 1, ... with names */
} chart_scale;

typedef struct chart_axis {
    const char *label; /* label with its unit: "latency (ms)" */
    chart_scale scale;
    double low, high; /* low < high: fixed limits; else from the data */
    bool from_zero;   /* true: a linear axis with automatic limits includes 0 */
    double linear_to; /* CHART_SIGNED_LOG: end of the linear part; 0 = 10 */
    const figure_label *categories;
    size_t category_count;
} chart_axis;

typedef enum chart_kind {
    CHART_LINE,   /* a line with markers; low/high: error bars */
    CHART_CURVE,  /* a line without markers; low/high: a ribbon */
    CHART_POINTS, /* markers only; low/high: error bars */
    CHART_BARS,   /* a bar per x; low/high: error bars. Several bar series stand side by side or, `stacked`, on one
                     another */
    CHART_BAND,   /* the area between low and high, without a line; y unused */
} chart_kind;

typedef struct chart_series {
    const char *name; /* name in the legend; NULL: not listed */
    chart_kind kind;
    const double *x, *y;      /* [count]; x may be NULL: 0, 1, 2 ... */
    const double *low, *high; /* [count] or NULL */
    size_t count;
    size_t look;  /* colour, marker and dash; 0 = by its place among the series, k = look k - 1 */
    double shade; /* another luma of the look's colour, as in palette_shade, for parts of one thing; 0 = unchanged */
    size_t dash;  /* dash instead of the look's: 0 = none, k = dash k - 1 */
    bool faint;   /* true: thin and grey, for a limit beside measured data */
} chart_series;

/* A line across the panel (a measured peak, a bucket edge) with its name at one end. */
typedef struct chart_rule {
    bool vertical;
    double at;
    const char *name; /* name, or NULL */
} chart_rule;

typedef struct chart_panel {
    const char *title;
    chart_axis x, y;
    const chart_series *series;
    size_t series_count;
    bool stacked; /* true: bars are stacked, positive values upwards, negative downwards, from zero */
    const chart_rule *rules;
    size_t rule_count;
    const double *edges; /* x of small strokes on the upper side: bucket edges */
    size_t edge_count;
} chart_panel;

/* A small table below the panels, or in a place that they leave. The first row has the titles, the first column
 * names; the other columns are numbers. */
typedef struct chart_table {
    const char *const *cells; /* [rows * columns], NULL: empty */
    size_t rows, columns;
} chart_table;

typedef struct chart_figure {
    figure_style style;
    const chart_panel *panels;
    size_t panel_count;
    const chart_table *table; /* table below the panels, or NULL */
    size_t columns;           /* panels side by side; 0: all, at most as many as leave 50 mm each */
    double panel_height;      /* height of the plot area in mm; 0: 0.62 of its width, between 25 and 90 */
    bool panel_letters;
} chart_figure;

deberta_status chart_layout(draw_list *list, const void *chart, figure_notes *notes, deberta_error *err);
deberta_status figure_chart(const chart_figure *spec, const char *const *paths, size_t path_count, figure_notes *notes,
                            deberta_error *err);
