/* SPDX-License-Identifier: MIT */
#include "cli/bench_figures.h"

#include <stdlib.h>
#include <string.h>

#include "core/base/status.h"

/* What a panel shows of a result. */
typedef enum quantity { LATENCY_MS, MEMORY_MB, SPEED_UP } quantity;

enum { MOST_PANELS = 4 };

typedef struct figure_work {
    const bench_report *report;
    chart_panel panels[MOST_PANELS];
    size_t panel_count;
    void **memory; /* everything that panels point to */
    size_t memory_count, memory_capacity;
    bool failed;
} figure_work;

static void *take(figure_work *work, size_t bytes)
{
    if (work->memory_count == work->memory_capacity) {
        const size_t capacity = work->memory_capacity ? 2 * work->memory_capacity : 64;
        void **grown = realloc(work->memory, capacity * sizeof *grown);
        if (grown) work->memory = grown;
        work->memory_capacity = grown ? capacity : work->memory_capacity;
        if (!grown) work->failed = true;
        if (!grown) return NULL;
    }
    void *piece = calloc(1, bytes + 1);
    if (!piece) work->failed = true;
    if (piece) work->memory[work->memory_count++] = piece;
    return piece;
}

static bool same_series(const bench_result *a, const bench_result *b, bool by_layers)
{
    return strcmp(a->model, b->model) == 0 && strcmp(a->engine, b->engine) == 0 && strcmp(a->isa, b->isa) == 0 &&
           strcmp(a->precision, b->precision) == 0 && strcmp(a->attention, b->attention) == 0 &&
           a->threads == b->threads && a->position_cache == b->position_cache && a->batch == b->batch &&
           a->cold == b->cold && !a->lengths == !b->lengths && (by_layers ? a->n == b->n : a->layers == b->layers);
}

static const bench_result *scalar_partner(const bench_report *report, const bench_result *of)
{
    for (size_t k = 0; k < report->count; k++) {
        const bench_result *r = &report->results[k];
        if (strcmp(r->isa, "scalar") == 0 && strcmp(r->engine, of->engine) == 0 && r->threads == of->threads &&
            r->n == of->n && r->layers == of->layers && r->batch == of->batch &&
            strcmp(r->attention, of->attention) == 0)
            return r;
    }
    return NULL;
}

static double value_of(const figure_work *work, const bench_result *r, quantity what, double seconds)
{
    switch (what) {
    case LATENCY_MS: return seconds * 1e3;
    case MEMORY_MB: return (double)r->peak_rss_bytes / 1e6;
    default: {
        const bench_result *scalar = scalar_partner(work->report, r);
        return scalar ? scalar->time.median / seconds : 0;
    }
    }
}

/* In a grid of lengths and layers each panel shows one slice: the most layers over the lengths, the longest texts over
 * the layers. */
static bool in_slice(const bench_report *report, const bench_result *r, bool by_layers)
{
    for (size_t k = 0; k < report->count; k++) {
        const bench_result *other = &report->results[k];
        if (by_layers ? other->n > r->n : other->layers > r->layers) return false;
    }
    return true;
}

/* Distinct series of the results, in the order of their first result; how many points the longest has. */
static size_t find_series(const figure_work *work, bool by_layers, size_t *first, size_t *longest)
{
    const bench_report *report = work->report;
    size_t count = 0;
    *longest = 0;
    for (size_t k = 0; k < report->count; k++) {
        size_t s = 0;
        if (!in_slice(report, &report->results[k], by_layers)) continue;
        while (s < count && !same_series(&report->results[first[s]], &report->results[k], by_layers)) s++;
        if (s == count) first[count++] = k;
    }
    for (size_t s = 0; s < count; s++) {
        size_t points = 0;
        for (size_t k = 0; k < report->count; k++)
            points += same_series(&report->results[first[s]], &report->results[k], by_layers);
        if (points > *longest) *longest = points;
    }
    return count;
}

static void name_series(figure_work *work, chart_series *series, const bench_result *r)
{
    char *name = take(work, 96);
    if (!name) return;
    bool engines = false;
    for (size_t k = 0; k < work->report->count; k++)
        engines = engines || strcmp(work->report->results[k].engine, r->engine) != 0;
    snprintf(name, 96, "%s%s%s, %zu thread%s", engines ? r->engine : "", engines ? " " : "", r->isa, r->threads,
             r->threads == 1 ? "" : "s");
    series->name = name;
}

static void add_panel(figure_work *work, const char *title, const char *label, quantity what, bool by_layers,
                      chart_scale y_scale)
{
    const bench_report *report = work->report;
    size_t longest, *first = take(work, (report->count + 1) * sizeof *first);
    if (!first) return;
    const size_t count = find_series(work, by_layers, first, &longest);
    if (longest < 2) return;
    chart_series *series = take(work, count * sizeof *series);
    char *full_title = take(work, 96);
    if (!series || !full_title) return;
    const bench_result *slice = &report->results[first[0]];
    snprintf(full_title, 96, by_layers ? "%s (%zu tokens)" : "%s (%zu layers)", title,
             by_layers ? slice->n : slice->layers);
    for (size_t s = 0; s < count; s++) {
        double *columns = take(work, 4 * report->count * sizeof *columns);
        if (!columns) return;
        double *x = columns, *y = x + report->count, *low = y + report->count, *high = low + report->count;
        size_t n = 0;
        for (size_t k = 0; k < report->count; k++) {
            const bench_result *r = &report->results[k];
            if (!same_series(&report->results[first[s]], r, by_layers)) continue;
            x[n] = (double)(by_layers ? r->layers : r->n);
            y[n] = value_of(work, r, what, r->time.median);
            low[n] = value_of(work, r, what, r->time.minimum);
            high[n++] = value_of(work, r, what, r->time.p95);
        }
        series[s] = (chart_series){.kind = CHART_LINE, .x = x, .y = y, .count = n};
        if (what == LATENCY_MS) {
            series[s].low = low;
            series[s].high = high;
        }
        name_series(work, &series[s], &report->results[first[s]]);
    }
    work->panels[work->panel_count++] =
        (chart_panel){.title = full_title,
                      .x = {.label = by_layers ? "layers" : "tokens",
                            .scale = by_layers ? CHART_WHOLE : CHART_LOG2,
                            .from_zero = by_layers},
                      .y = {.label = label, .scale = y_scale, .from_zero = y_scale == CHART_LINEAR},
                      .series = series,
                      .series_count = count};
}

deberta_status bench_figures_draw(const bench_report *report, const figure_style *style, const char *const *paths,
                                  size_t path_count, deberta_error *err)
{
    figure_work work = {.report = report};
    bool scalar = false, others = false;
    for (size_t k = 0; k < report->count; k++)
        *(strcmp(report->results[k].isa, "scalar") == 0 ? &scalar : &others) = true;
    add_panel(&work, "latency", "median latency (ms)", LATENCY_MS, false, CHART_LOG10);
    add_panel(&work, "layers", "median latency (ms)", LATENCY_MS, true, CHART_LINEAR);
    add_panel(&work, "memory", "peak memory (MB)", MEMORY_MB, false, CHART_LINEAR);
    if (scalar && others) add_panel(&work, "speed-up", "times faster than scalar", SPEED_UP, false, CHART_LINEAR);
    deberta_status status;
    if (work.failed)
        status = status_fail(err, DEBERTA_E_MEMORY, "out of memory");
    else if (work.panel_count == 0)
        status = status_fail(err, DEBERTA_E_ARGUMENT,
                             "the results have one length and one number of layers: there is no curve to draw");
    else {
        const chart_figure figure = {.style = *style,
                                     .panels = work.panels,
                                     .panel_count = work.panel_count,
                                     .panel_letters = work.panel_count > 1};
        status = figure_chart(&figure, paths, path_count, NULL, err);
    }
    for (size_t k = 0; k < work.memory_count; k++) free(work.memory[k]);
    free(work.memory);
    return status;
}
