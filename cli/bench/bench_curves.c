/* Curves of bench results: latency against length and layers, memory, speed-up.
 * SPDX-License-Identifier: MIT */
#include <string.h>

#include "cli/bench/bench_drawing.h"

/* Columns of numbers for one series. */
typedef struct columns {
    double *x, *y, *low, *high;
} columns;

static bool take_columns(bench_drawing *drawing, columns *c, size_t count)
{
    double *memory = bench_take(drawing, 4 * count * sizeof *memory);
    *c = (columns){memory, memory + count, memory + 2 * count, memory + 3 * count};
    return memory != NULL;
}

/* What a panel shows of a result; a value that is not known is not positive. */
typedef struct curve {
    const char *title, *label;
    trend_axis axis;
    double (*value)(const bench_results *results, const bench_result *result);
    bool spread;    /* error bars from the fastest sample to the 95th percentile */
    bool logarithm; /* of the values; else their axis begins at zero */
} curve;

static double latency_ms(const bench_results *results, const bench_result *r)
{
    (void)results;
    return 1e3 * r->time.median;
}

static double peak_mb(const bench_results *results, const bench_result *r)
{
    (void)results;
    return 1e-6 * (double)r->peak_rss_bytes;
}

static double workspace_mb(const bench_results *results, const bench_result *r)
{
    (void)results;
    return 1e-6 * (double)r->workspace_bytes;
}

/* The same work done by the scalar tier with as many threads. */
static double speedup(const bench_results *results, const bench_result *r)
{
    for (size_t k = 0; k < results->count && strcmp(r->isa, "scalar") != 0; k++) {
        const bench_result *other = &results->result[k];
        if (strcmp(other->isa, "scalar") == 0 && !r->lengths && bench_result_alike(other, r, BENCH_ISA))
            return other->time.median / r->time.median;
    }
    return 0;
}

/* A panel whose series are still being added; `panel` is NULL if there is none. */
typedef struct curve_panel {
    chart_panel *panel;
    chart_series *series;    /* room for three a group */
    bench_group **member_of; /* the groups of the first series */
} curve_panel;

/* One series for each group that has at least two known values along the axis. */
static curve_panel add_curves(bench_drawing *drawing, const curve *what)
{
    const bench_results *results = drawing->results;
    const bench_result **members = bench_take(drawing, results->count * sizeof *members);
    chart_series *series = bench_take(drawing, 3 * drawing->group_count * sizeof *series);
    bench_group **member_of = bench_take(drawing, drawing->group_count * sizeof *member_of);
    size_t used = 0, fixed = 0;
    bool same_slice = true;
    for (size_t g = 0; g < drawing->group_count && members && series && member_of; g++) {
        const size_t found = bench_slice(drawing, &drawing->groups[g], what->axis, members);
        columns c;
        size_t count = 0;
        if (!take_columns(drawing, &c, found)) return (curve_panel){0};
        for (size_t k = 0; k < found; k++) {
            const double value = what->value(results, members[k]);
            if (!(value > 0)) continue;
            c.x[count] = (double)(what->axis == TREND_LAYERS ? members[k]->layers : members[k]->n);
            c.low[count] = value * members[k]->time.minimum / members[k]->time.median;
            c.high[count] = value * members[k]->time.p95 / members[k]->time.median;
            c.y[count++] = value;
        }
        if (count < 2 || c.x[0] == c.x[count - 1]) continue;
        const size_t slice = what->axis == TREND_LAYERS ? members[0]->n : members[0]->layers;
        same_slice = same_slice && (used == 0 || fixed == slice);
        fixed = slice;
        series[used++] = (chart_series){.kind = CHART_LINE,
                                        .x = c.x,
                                        .y = c.y,
                                        .low = what->spread ? c.low : NULL,
                                        .high = what->spread ? c.high : NULL,
                                        .count = count,
                                        .look = drawing->groups[g].look,
                                        .dash = drawing->groups[g].dash};
        member_of[used - 1] = &drawing->groups[g];
    }
    chart_panel *panel = used ? bench_add_panel(drawing) : NULL;
    if (!panel) return (curve_panel){0};
    for (size_t s = 0; s < used; s++) {
        bench_group *group = member_of[s];
        series[s].name = bench_legend_name(drawing, group);
        group->listed = group->listed || drawing->panel_count == 1;
    }
    const bool layers = what->axis == TREND_LAYERS;
    const char *const slice =
        layers ? bench_text(drawing, "n = %zu", fixed) : bench_count_text(drawing, fixed, "layer");
    *panel = (chart_panel){
        .title = same_slice ? bench_text(drawing, "%s, %s", what->title, slice) : what->title,
        .x = {.label = layers ? "layers" : "tokens", .scale = layers ? CHART_WHOLE : CHART_LOG2, .from_zero = layers},
        .y = {.label = what->label,
              .scale = what->logarithm ? CHART_LOG10 : CHART_LINEAR,
              .from_zero = !what->logarithm},
        .series = series,
        .series_count = used};
    return (curve_panel){panel, series, member_of};
}

static void add_series(curve_panel *at, chart_series series) { at->series[at->panel->series_count++] = series; }

static void explain_bars(bench_drawing *drawing)
{
    static const char explanation[] =
        "Points are medians; error bars reach from the fastest sample to the 95th percentile.";
    if (!drawing->note || !strstr(drawing->note, explanation)) bench_add_note(drawing, explanation);
}

/* The fastest that the machine could do the useful work of a series, where its peak was measured: for the group that
 * has the highest peak. */
static void add_peak_line(bench_drawing *drawing, curve_panel *at)
{
    const bench_result **members = bench_take(drawing, drawing->results->count * sizeof *members);
    const bench_group *best = NULL;
    double highest = 0;
    for (size_t g = 0; g < drawing->group_count && members; g++) {
        const bench_result *r = drawing->groups[g].first;
        const double peak = r->peak_fraction > 0 ? r->gflops / r->peak_fraction : 0;
        if (peak > highest && bench_slice(drawing, &drawing->groups[g], TREND_LENGTH, members) > 1) {
            best = &drawing->groups[g];
            highest = peak;
        }
    }
    columns c;
    if (!best || !take_columns(drawing, &c, drawing->results->count)) return;
    size_t count = 0, found = bench_slice(drawing, best, TREND_LENGTH, members);
    for (size_t k = 0; k < found; k++) {
        if (!(members[k]->gflop > 0)) continue;
        c.x[count] = (double)members[k]->n;
        c.y[count++] = 1e3 * members[k]->gflop / highest;
    }
    const char *threads = bench_count_text(drawing, best->first->threads, "thread");
    add_series(at, (chart_series){.name = bench_text(drawing, "at the measured peak of %s, %s: %.0f GFLOP/s",
                                                     best->first->isa, threads, highest),
                                  .kind = CHART_CURVE,
                                  .x = c.x,
                                  .y = c.y,
                                  .count = count,
                                  .faint = true});
}

deberta_status bench_fill_latency(bench_drawing *drawing, deberta_error *err)
{
    (void)err;
    const curve what = {"latency", "median latency (ms)", TREND_LENGTH, latency_ms, true, true};
    curve_panel at = add_curves(drawing, &what);
    if (!at.panel) return DEBERTA_OK;
    add_peak_line(drawing, &at);
    explain_bars(drawing);
    return DEBERTA_OK;
}

/* The line through the points of a series and its slope: the same fit as in the tables of `bench`. The slope stands in
 * the legend, or in the note where an earlier panel has the legend. */
static void add_slope(bench_drawing *drawing, curve_panel *at, size_t index)
{
    chart_series *points = &at->series[index];
    const statistics_fit fit = statistics_fit_polynomial(points->x, points->y, points->count, 1);
    columns c;
    if (!fit.valid || !take_columns(drawing, &c, 2)) return;
    c.x[1] = points->x[points->count - 1];
    for (size_t k = 0; k < 2; k++) c.y[k] = fit.coefficient[0] + fit.coefficient[1] * c.x[k];
    const char *group = at->member_of[index]->name,
               *slope = bench_text(drawing, "%s: %.3g ms a layer (off by at most %.1f %%)", group, fit.coefficient[1],
                                   100 * fit.worst);
    points->kind = CHART_POINTS;
    if (points->name) {
        points->name = slope;
    } else {
        bench_add_note(drawing, bench_text(drawing, "%s.", slope));
    }
    add_series(at,
               (chart_series){
                   .kind = CHART_CURVE, .x = c.x, .y = c.y, .count = 2, .look = points->look, .dash = points->dash});
}

deberta_status bench_fill_layers(bench_drawing *drawing, deberta_error *err)
{
    (void)err;
    const curve what = {"latency", "median latency (ms)", TREND_LAYERS, latency_ms, true, false};
    curve_panel at = add_curves(drawing, &what);
    if (!at.panel) return DEBERTA_OK;
    explain_bars(drawing);
    for (size_t s = 0, count = at.panel->series_count; s < count; s++) add_slope(drawing, &at, s);
    return DEBERTA_OK;
}

deberta_status bench_fill_memory(bench_drawing *drawing, deberta_error *err)
{
    (void)err;
    const curve peak = {"memory", "peak of the process (MB)", TREND_LENGTH, peak_mb, false, false},
                workspace = {"workspace", "of the session (MB)", TREND_LENGTH, workspace_mb, false, true};
    const double loading = 1e-6 * (double)drawing->results->load_peak_rss_bytes;
    chart_panel *panel = add_curves(drawing, &peak).panel;
    chart_rule *rule = panel && loading > 0 ? bench_take(drawing, sizeof *rule) : NULL;
    if (rule) {
        *rule = (chart_rule){.at = loading}; /* named in the note: a name in the panel would stand on the data */
        bench_add_note(drawing,
                       bench_text(drawing, "Dashed line of the memory: %.0f MB while the model is opened.", loading));
        panel->rules = rule;
        panel->rule_count = 1;
    }
    add_curves(drawing, &workspace);
    return DEBERTA_OK;
}

/* Results of one length: a bar for each that has a partner. */
static void add_speedup_bars(bench_drawing *drawing)
{
    const bench_results *results = drawing->results;
    figure_label *labels = bench_take(drawing, results->count * sizeof *labels);
    chart_series *bars = bench_take(drawing, sizeof *bars);
    double *y = bench_take(drawing, results->count * sizeof *y);
    size_t count = 0;
    for (size_t k = 0; k < results->count && labels && bars && y; k++) {
        const double value = speedup(results, &results->result[k]);
        if (!(value > 0)) continue;
        labels[count].text = bench_point_name(drawing, &results->result[k]);
        y[count++] = value;
    }
    chart_panel *panel = count ? bench_add_panel(drawing) : NULL;
    if (!panel) return;
    *bars = (chart_series){.kind = CHART_BARS, .y = y, .count = count};
    *panel = (chart_panel){.title = "speed-up",
                           .x = {.scale = CHART_CATEGORIES, .categories = labels, .category_count = count},
                           .y = {.label = "times faster than scalar"},
                           .series = bars,
                           .series_count = 1};
}

deberta_status bench_fill_speedup(bench_drawing *drawing, deberta_error *err)
{
    (void)err;
    static const chart_rule scalar = {.at = 1};
    const curve what = {"speed-up", "times faster than scalar", TREND_LENGTH, speedup, false, false};
    chart_panel *panel = add_curves(drawing, &what).panel;
    if (!panel) add_speedup_bars(drawing);
    if (!panel) return DEBERTA_OK;
    panel->rules = &scalar;
    panel->rule_count = 1;
    return DEBERTA_OK;
}
