/* Grows arrays of panels, series and points, and turns them into the chart that is drawn.
 * SPDX-License-Identifier: MIT */
#include "viz/chart_columns.h"

#include <stdarg.h>

enum { COLUMN_X, COLUMN_Y, COLUMN_LOW, COLUMN_HIGH, COLUMNS };

struct chart_column_series {
    chart_series series;
    double *numbers[COLUMNS];
    size_t capacity[COLUMNS];
    bool spread; /* true: low and high were given */
};

struct chart_column_panel {
    chart_panel panel;
    chart_column_series *series;
    size_t series_count, series_capacity;
    figure_label *categories;
    size_t category_capacity;
    chart_rule *rules;
    size_t rule_capacity;
};

/* ---------------------------------------------------------------------------------------------------------- memory */

/* Makes room for one more element of a growing array. */
#define GROW(c, array, capacity, count)                                                                                \
    ((array) = scope_grown(&(c)->memory, array, &(capacity), count, sizeof *(array)))

const char *chart_text(chart_columns *c, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    const char *text = scope_print(&c->memory, format, arguments);
    va_end(arguments);
    return text;
}

void chart_columns_free(chart_columns *c)
{
    scope_free(&c->memory);
    *c = (chart_columns){0};
}

/* ---------------------------------------------------------------------------------------------------------- adding */

static chart_column_panel *last_panel(const chart_columns *c)
{
    return !c->panel_count ? NULL : &c->panels[c->panel_count - 1];
}

static chart_column_series *last_series(const chart_columns *c)
{
    chart_column_panel *panel = last_panel(c);
    return panel && panel->series_count ? &panel->series[panel->series_count - 1] : NULL;
}

void chart_add_panel(chart_columns *c, chart_panel panel)
{
    GROW(c, c->panels, c->panel_capacity, c->panel_count);
    c->panels[c->panel_count++] = (chart_column_panel){.panel = panel};
}

void chart_add_series(chart_columns *c, chart_series series)
{
    chart_column_panel *panel = last_panel(c);
    if (!panel) return;
    GROW(c, panel->series, panel->series_capacity, panel->series_count);
    panel->series[panel->series_count++] = (chart_column_series){.series = series};
}

static void add_numbers(chart_columns *c, const double numbers[COLUMNS], bool spread)
{
    chart_column_series *to = last_series(c);
    if (!to) return;
    for (size_t k = 0; k < COLUMNS; k++) {
        GROW(c, to->numbers[k], to->capacity[k], to->series.count);
        to->numbers[k][to->series.count] = numbers[k];
    }
    to->spread = to->spread || spread;
    to->series.count++;
}

void chart_add_point(chart_columns *c, double x, double y)
{
    add_numbers(c, (const double[COLUMNS]){x, y, y, y}, false);
}

void chart_add_spread(chart_columns *c, double x, double y, double low, double high)
{
    add_numbers(c, (const double[COLUMNS]){x, y, low, high}, true);
}

void chart_add_category(chart_columns *c, const char *name)
{
    chart_column_panel *to = last_panel(c);
    if (!to) return;
    GROW(c, to->categories, to->category_capacity, to->panel.x.category_count);
    to->categories[to->panel.x.category_count++] = (figure_label){.text = name};
}

void chart_add_rule(chart_columns *c, chart_rule rule)
{
    chart_column_panel *to = last_panel(c);
    if (!to) return;
    GROW(c, to->rules, to->rule_capacity, to->panel.rule_count);
    to->rules[to->panel.rule_count++] = rule;
}

/* -------------------------------------------------------------------------------------------------------- changing */

chart_panel *chart_last_panel(chart_columns *c)
{
    chart_column_panel *panel = last_panel(c);
    return panel ? &panel->panel : NULL;
}

/* Returns the series with its current arrays, which may have moved when they grew. */
static chart_series *settled(chart_column_series *s)
{
    s->series.x = s->numbers[COLUMN_X];
    s->series.y = s->numbers[COLUMN_Y];
    s->series.low = s->spread ? s->numbers[COLUMN_LOW] : NULL;
    s->series.high = s->spread ? s->numbers[COLUMN_HIGH] : NULL;
    return &s->series;
}

chart_series *chart_nth_series(chart_columns *c, size_t index)
{
    chart_column_panel *panel = last_panel(c);
    return panel && index < panel->series_count ? settled(&panel->series[index]) : NULL;
}

size_t chart_series_count(const chart_columns *c)
{
    const chart_column_panel *panel = last_panel(c);
    return panel ? panel->series_count : 0;
}

chart_series *chart_last_series(chart_columns *c) { return chart_nth_series(c, chart_series_count(c) - 1); }

void chart_drop_series(chart_columns *c)
{
    chart_column_panel *panel = last_panel(c);
    if (panel && panel->series_count) panel->series_count--;
}

/* --------------------------------------------------------------------------------------------------------- drawing */

/* Fills a panel for drawing; returns false if none of its series has points. */
static bool settle_panel(chart_columns *c, chart_column_panel *from, chart_panel *to)
{
    *to = from->panel;
    chart_series *series = scope_take(&c->memory, from->series_count, sizeof *series);
    for (size_t s = 0; s < from->series_count; s++)
        if (from->series[s].series.count) series[to->series_count++] = *settled(&from->series[s]);
    to->series = series;
    if (from->categories) to->x.categories = from->categories;
    if (from->rules) to->rules = from->rules;
    return to->series_count > 0;
}

const chart_panel *chart_columns_panels(chart_columns *c, size_t *count)
{
    chart_panel *panels = scope_take(&c->memory, c->panel_count, sizeof *panels);
    *count = 0;
    for (size_t p = 0; p < c->panel_count; p++) *count += settle_panel(c, &c->panels[p], &panels[*count]);
    return panels;
}
