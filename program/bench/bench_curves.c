/* Draws curves of bench results: latency against length and layers, memory, speed-up. SPDX-License-Identifier: MIT */
#include <string.h>

#include "program/bench/bench_drawing.h"
#include "viz/ticks.h"

/* What a panel shows of a result; values that are not positive are unknown. */
typedef struct curve {
    const char *title, *label;
    trend_axis axis;
    double (*value)(const bench_results *results, const bench_result *result);
    bool spread;    /* true: error bars from the fastest sample to the 95th percentile */
    bool logarithm; /* true: logarithmic axis of values; false: the axis begins at zero */
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

/* Returns the time of the scalar tier for the same work and number of threads, divided by that of the result. */
static double speedup(const bench_results *results, const bench_result *r)
{
    for (size_t k = 0; k < results->count && strcmp(r->isa, "scalar") != 0; k++) {
        const bench_result *other = &results->result[k];
        if (strcmp(other->isa, "scalar") == 0 && !r->lengths && bench_result_alike(other, r, BENCH_ISA))
            return other->time.median / r->time.median;
    }
    return 0;
}

/* Adds the known values of some results as points of a new series. Returns false and adds none if all are at
 * one place of the axis. */
static bool add_curve(bench_drawing *drawing, const curve *what, bench_group *group, const bench_result *const *members,
                      size_t found)
{
    chart_columns *c = &drawing->chart;
    const double first = (double)(what->axis == TREND_LAYERS ? members[0]->layers : members[0]->n);
    bool is_curve = false;
    chart_add_series(c, (chart_series){.kind = CHART_LINE, .look = group->look, .dash = group->dash});
    for (size_t k = 0; k < found; k++) {
        const statistics_summary *time = &members[k]->time;
        const double x = (double)(what->axis == TREND_LAYERS ? members[k]->layers : members[k]->n);
        const double value = what->value(drawing->results, members[k]);
        if (!(value > 0)) continue;
        if (what->spread)
            chart_add_spread(c, x, value, value * time->minimum / time->median, value * time->p95 / time->median);
        else
            chart_add_point(c, x, value);
        is_curve = is_curve || x != first;
    }
    chart_series *series = chart_last_series(c);
    is_curve = is_curve && series && series->count > 1;
    if (is_curve)
        series->name = bench_legend_name(drawing, group);
    else
        chart_drop_series(c);
    return is_curve;
}

/* Adds a panel with one series for each group that has at least two known values along the axis; returns false if
 * there is none. */
static bool add_curves(bench_drawing *drawing, const curve *what)
{
    chart_columns *c = &drawing->chart;
    const bool layers = what->axis == TREND_LAYERS;
    const bench_result **members = options_take(drawing->options, drawing->results->count, sizeof *members);
    size_t used = 0, fixed = 0;
    bool same_slice = true;
    chart_add_panel(c, (chart_panel){.x = {.label = layers ? "layers" : "tokens",
                                           .scale = layers ? CHART_WHOLE : CHART_LOG2,
                                           .from_zero = layers},
                                     .y = {.label = what->label,
                                           .scale = what->logarithm ? CHART_LOG10 : CHART_LINEAR,
                                           .from_zero = !what->logarithm}});
    for (size_t g = 0; g < drawing->group_count; g++) {
        const size_t found = bench_slice(drawing, &drawing->groups[g], what->axis, members);
        if (!found || !add_curve(drawing, what, &drawing->groups[g], members, found)) continue;
        const size_t slice = layers ? members[0]->n : members[0]->layers;
        same_slice = same_slice && (used == 0 || fixed == slice);
        fixed = slice;
        used++;
    }
    chart_panel *panel = used ? chart_last_panel(c) : NULL;
    if (!panel) return false;
    for (size_t s = 0; s < chart_series_count(c) && !layers && !same_slice && drawing->files->count > 1; s++) {
        chart_series *series = chart_nth_series(c, s);
        const bench_group *group = bench_group_of(drawing, series);
        bench_slice(drawing, group, what->axis, members);
        series->name = options_text(drawing->options, "%s, %s", group->name,
                                    bench_count_text(drawing, members[0]->layers, "layer"));
    }
    const char *slice =
        layers ? options_text(drawing->options, "n = %zu", fixed) : bench_count_text(drawing, fixed, "layer");
    panel->title = same_slice ? options_text(drawing->options, "%s, %s", what->title, slice) : what->title;
    drawing->panel_count++;
    return true;
}

static void explain_bars(bench_drawing *drawing)
{
    static const char explanation[] =
        "Points are medians; error bars reach from the fastest sample to the 95th percentile.";
    if (!drawing->note || !strstr(drawing->note, explanation)) bench_add_note(drawing, explanation);
}

/* Adds the time at which the machine's measured peak in this precision would do the useful work of a series, for the
 * group with the highest peak. Returns false if there is none. */
static bool add_peak_line(bench_drawing *drawing, deberta_precision precision, size_t dash)
{
    const bench_result **members = options_take(drawing->options, drawing->results->count, sizeof *members);
    const bench_group *best = NULL;
    double highest = 0;
    for (size_t g = 0; g < drawing->group_count; g++) {
        const bench_result *r = drawing->groups[g].first;
        const double peak = r->peak_fraction > 0 ? r->gflops / r->peak_fraction : 0;
        if (bench_precision(r) == precision && peak > highest &&
            bench_slice(drawing, &drawing->groups[g], TREND_LENGTH, members) > 1) {
            best = &drawing->groups[g];
            highest = peak;
        }
    }
    if (!best) return false;
    const bool of_floats = precision == DEBERTA_PRECISION_FLOAT32;
    chart_add_series(
        &drawing->chart,
        (chart_series){.name = options_text(drawing->options, "at the measured peak of %s%s%s, %s: %.0f %s",
                                            best->first->isa, of_floats ? "" : " in ",
                                            of_floats ? "" : best->first->precision,
                                            bench_count_text(drawing, best->first->threads, "thread"), highest,
                                            of_floats ? "GFLOP/s" : "GOP/s"),
                       .kind = CHART_CURVE,
                       .dash = dash,
                       .faint = true});
    for (size_t k = 0, found = bench_slice(drawing, best, TREND_LENGTH, members); k < found; k++)
        if (members[k]->gflop > 0)
            chart_add_point(&drawing->chart, (double)members[k]->n, 1e3 * members[k]->gflop / highest);
    return true;
}

/* Adds a peak for each precision of the results, with its own dash; none for several machines. */
static void add_peak_lines(bench_drawing *drawing)
{
    static const deberta_precision precisions[] = {DEBERTA_PRECISION_FLOAT32, DEBERTA_PRECISION_INT16,
                                                   DEBERTA_PRECISION_INT8};
    size_t dash = 1;
    for (size_t k = 0; k < sizeof precisions / sizeof *precisions && !bench_machines_vary(drawing); k++)
        dash += add_peak_line(drawing, precisions[k], dash);
}

void bench_fill_latency(bench_drawing *drawing)
{
    const curve what = {"latency", "median latency (ms)", TREND_LENGTH, latency_ms, true, true};
    if (!add_curves(drawing, &what)) return;
    add_peak_lines(drawing);
    explain_bars(drawing);
}

/* Adds the line fitted to the points of a series, with the same fit as in the tables of `bench`. The legend shows the
 * slope; if an earlier panel has the legend, the note does. */
static void add_slope(bench_drawing *drawing, size_t index)
{
    chart_columns *c = &drawing->chart;
    const chart_series points = *chart_nth_series(c, index);
    const statistics_fit fit = statistics_fit_polynomial(points.x, points.y, points.count, 1);
    if (!fit.valid) return;
    const double last = points.x[points.count - 1];
    char each[TICK_TEXT_BYTES];
    tick_number(fit.coefficient[1], 3, false, each);
    const char *slope = options_text(drawing->options, "%s: %s ms a layer (off by at most %.1f %%)",
                                     bench_group_of(drawing, &points)->name, each, 100 * fit.worst);
    chart_add_series(c, (chart_series){.kind = CHART_CURVE, .look = points.look, .dash = points.dash});
    chart_add_point(c, 0, fit.coefficient[0]);
    chart_add_point(c, last, fit.coefficient[0] + fit.coefficient[1] * last);
    chart_series *changed = chart_nth_series(c, index);
    changed->kind = CHART_POINTS;
    if (changed->name)
        changed->name = slope;
    else
        bench_add_note(drawing, options_text(drawing->options, "%s.", slope));
}

void bench_fill_layers(bench_drawing *drawing)
{
    const curve what = {"latency", "median latency (ms)", TREND_LAYERS, latency_ms, true, false};
    if (!add_curves(drawing, &what)) return;
    explain_bars(drawing);
    for (size_t s = 0, count = chart_series_count(&drawing->chart); s < count; s++) add_slope(drawing, s);
}

void bench_fill_memory(bench_drawing *drawing)
{
    const curve peak = {"memory", "peak memory (MB)", TREND_LENGTH, peak_mb, false, false},
                workspace = {"workspace", "workspace (MB)", TREND_LENGTH, workspace_mb, false, true};
    const double loading = 1e-6 * (double)drawing->results->load_peak_rss_bytes;
    if (add_curves(drawing, &peak) && loading > 0) {
        /* the note names the rule, because a label would cover the data */
        chart_add_rule(&drawing->chart, (chart_rule){.at = loading});
        bench_add_note(drawing, options_text(drawing->options,
                                             "Dashed line of the memory: %.0f MB while the model is opened.", loading));
    }
    add_curves(drawing, &workspace);
}

/* Adds, for results of one length, a bar for each that has a scalar counterpart. */
static void add_speedup_bars(bench_drawing *drawing)
{
    const bench_results *results = drawing->results;
    chart_columns *c = &drawing->chart;
    size_t count = 0;
    chart_add_panel(c, (chart_panel){.title = "speed-up",
                                     .x = {.scale = CHART_CATEGORIES},
                                     .y = {.label = "times faster than scalar"}});
    chart_add_series(c, (chart_series){.kind = CHART_BARS});
    for (size_t k = 0; k < results->count; k++) {
        const double value = speedup(results, &results->result[k]);
        if (!(value > 0)) continue;
        chart_add_category(c, bench_point_name(drawing, &results->result[k]));
        chart_add_point(c, (double)count++, value);
    }
    drawing->panel_count += count > 0;
}

void bench_fill_speedup(bench_drawing *drawing)
{
    const curve what = {"speed-up", "times faster than scalar", TREND_LENGTH, speedup, false, false};
    if (add_curves(drawing, &what))
        chart_add_rule(&drawing->chart, (chart_rule){.at = 1});
    else
        add_speedup_bars(drawing);
}

/* ----------------------------------------------------------------------------------------------------------- error */

static bool add_errors(bench_drawing *drawing, bench_group *group, const bench_result **members)
{
    chart_columns *c = &drawing->chart;
    chart_add_series(c, (chart_series){.kind = CHART_LINE, .look = group->look, .dash = group->dash});
    for (size_t k = 0, found = bench_slice(drawing, group, TREND_LENGTH, members); k < found; k++)
        if (members[k]->relative_error > 0)
            chart_add_point(c, 1e3 * members[k]->time.median, members[k]->relative_error);
    chart_series *series = chart_last_series(c);
    const bool is_known = series && series->count > 0;
    if (is_known)
        series->name = bench_legend_name(drawing, group);
    else
        chart_drop_series(c);
    return is_known;
}

void bench_fill_error(bench_drawing *drawing)
{
    const bench_result **members = options_take(drawing->options, drawing->results->count, sizeof *members);
    size_t used = 0;
    chart_add_panel(&drawing->chart,
                    (chart_panel){.title = "Error against time",
                                  .x = {.label = "median latency (ms)", .scale = CHART_LOG10},
                                  .y = {.label = "relative error of the last hidden states", .scale = CHART_LOG10}});
    for (size_t g = 0; g < drawing->group_count; g++) used += add_errors(drawing, &drawing->groups[g], members);
    if (!used) return;
    drawing->panel_count++;
    bench_add_note(drawing, "A line joins the lengths of one engine, the shortest at the left.");
}
