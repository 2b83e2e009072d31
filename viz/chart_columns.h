/* Builds a chart from columns of numbers: panels, their series and the points of those are added one after the other;
 * the columns own all of the memory.
 *
 *     chart_columns c = {0};
 *     chart_add_panel(&c, (chart_panel){.title = "latency", .x = {.label = "tokens", .scale = CHART_LOG2}});
 *     chart_add_series(&c, (chart_series){.name = "avx2", .kind = CHART_LINE});
 *     for (...) chart_add_spread(&c, n, median, fastest, p95);              // or chart_add_point
 *     status = chart_columns_draw(&c, &style, paths, path_count, err);
 *     chart_columns_free(&c);
 *
 * Series without points and panels without series are left out.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include "output/scope.h"
#include "viz/chart.h"

typedef struct chart_column_series chart_column_series;
typedef struct chart_column_panel chart_column_panel;

typedef struct chart_columns {
    chart_column_panel *panels;
    size_t panel_count, panel_capacity;
    scope memory;             /* owner of all memory */
    size_t across;            /* panels of the figure side by side; 0: as many as fit */
    double panel_height;      /* in mm; 0: from the width */
    bool no_letters;          /* true: no letters before the titles of several panels */
    const chart_table *table; /* table below the panels, or NULL */
} chart_columns;

void chart_columns_free(chart_columns *c); /* Frees the memory of the columns. */
/* Formats into memory that lives as long as the columns. */
const char *chart_text(chart_columns *c, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Adds a panel. Its series, categories, rules and edges may be set already, or are added afterwards. */
void chart_add_panel(chart_columns *c, chart_panel panel);
/* Adds a series to the last panel; x, y, low and high are added afterwards. */
void chart_add_series(chart_columns *c, chart_series series);
/* Add a point to the last series; chart_add_spread also its low and high. */
void chart_add_point(chart_columns *c, double x, double y);
void chart_add_spread(chart_columns *c, double x, double y, double low, double high);
/* Add a category to the last panel, and a rule across it; names are not copied. */
void chart_add_category(chart_columns *c, const char *name);
void chart_add_rule(chart_columns *c, chart_rule rule);

/* Return the last panel, and the last of its series in its present state, to be read or changed; NULL if there is
 * none. Valid until something is added. */
chart_panel *chart_last_panel(chart_columns *c);
chart_series *chart_last_series(chart_columns *c);
/* Returns series number `index` of the last panel. */
chart_series *chart_nth_series(chart_columns *c, size_t index);
size_t chart_series_count(const chart_columns *c);
/* Removes the last series, if it has turned out to be empty. */
void chart_drop_series(chart_columns *c);

/* Returns all panels that have series; they live as long as the columns. */
const chart_panel *chart_columns_panels(chart_columns *c, size_t *count);
/* Draws one figure of all panels, as figure_chart; several panels have letters before their titles. Without paths it
 * only checks whether there is room. */
deberta_status chart_columns_draw(chart_columns *c, const figure_style *style, const char *const *paths,
                                  size_t path_count, deberta_error *err);
