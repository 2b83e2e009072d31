/* Where the time goes: stages of an encode as stacked bars, and under the limits of the machine.
 * SPDX-License-Identifier: MIT */
#include <math.h>
#include <string.h>

#include "cli/bench/bench_drawing.h"

enum { WAITING = PROFILE_STAGES, PARTS }; /* the stages, and threads without work */

/* The dark grey is no stage's: it is waiting in a stack and, where nobody waits, the limits of the machine. */
enum { DARK_LOOK = 7 };
static const size_t stage_looks[PROFILE_STAGES] = {1, 2, 3, 4, 5, 6, 9, 10, 8}; /* light and dark in turn */

static double part_seconds(const bench_result *r, size_t part)
{
    return part == WAITING ? r->waiting_s : r->breakdown[part].seconds;
}

/* Names of stages and their place among those that take time at all: what gives them the same colour in all panels. */
typedef struct part_list {
    const char *names[PARTS]; /* NULL: takes no time in any result */
    size_t look[PARTS];
} part_list;

static part_list find_parts(bench_drawing *drawing)
{
    part_list list = {0};
    size_t used = 0;
    for (size_t part = 0; part < PARTS; part++) {
        bool any = false;
        for (size_t k = 0; k < drawing->results->count; k++)
            any = any || part_seconds(&drawing->results->result[k], part) > 0;
        if (!any) continue;
        list.look[part] = DARK_LOOK;
        list.names[part] = "waiting";
        if (part == WAITING) continue;
        list.look[part] = stage_looks[used++];
        const char *name = options_text(drawing->options, "%s", cost_stage_name((profile_stage)part));
        for (char *at = strchr(name, '_'); at; at = strchr(at, '_')) *at = ' ';
        list.names[part] = name;
    }
    return list;
}

/* ------------------------------------------------------------------------------------------------------- breakdown */

/* The results that stand side by side. */
typedef struct stacks {
    const bench_result **results;
    const figure_label *labels;
    size_t count;
    const char *title, *axis;
} stacks;

/* One stack a result: of milliseconds, or of percent. */
static void add_stacks(bench_drawing *drawing, const part_list *parts, const stacks *of, bool percent)
{
    chart_columns *c = &drawing->chart;
    chart_add_panel(
        c,
        (chart_panel){
            .title = of->title,
            .x = {.label = of->axis, .scale = CHART_CATEGORIES, .categories = of->labels, .category_count = of->count},
            .y = {.label = percent ? "% of an encode" : "one encode (ms)", .high = percent ? 100 : 0},
            .stacked = true});
    for (size_t part = 0; part < PARTS; part++) {
        if (!parts->names[part]) continue;
        chart_add_series(c, (chart_series){.name = parts->names[part], .kind = CHART_BARS, .look = parts->look[part]});
        for (size_t k = 0; k < of->count; k++)
            chart_add_point(c, (double)k,
                            part_seconds(of->results[k], part) * (percent ? 100 / of->results[k]->breakdown_s : 1e3));
    }
    drawing->panel_count += chart_series_count(c) > 0;
}

static void add_both(bench_drawing *drawing, const part_list *parts, const stacks *of)
{
    drawing->chart.across = 2;
    add_stacks(drawing, parts, of, false);
    add_stacks(drawing, parts, of, true);
}

/* A group over its lengths, or over its numbers of layers if it has one length; false if it has one of both. */
static bool add_group(bench_drawing *drawing, const part_list *parts, const bench_group *group)
{
    const bench_result **members = options_take(drawing->options, drawing->results->count, sizeof *members);
    figure_label *labels = options_take(drawing->options, drawing->results->count, sizeof *labels);
    stacks of = {.results = members, .labels = labels};
    trend_axis axis = TREND_LENGTH;
    for (;; axis = TREND_LAYERS) {
        const size_t found = bench_slice(drawing, group, axis, members);
        of.count = 0;
        for (size_t k = 0; k < found; k++)
            if (members[k]->has_breakdown) members[of.count++] = members[k];
        if (of.count > 1 || axis == TREND_LAYERS) break;
    }
    if (of.count < 2) return false;
    const bool layers = axis == TREND_LAYERS;
    for (size_t k = 0; k < of.count; k++)
        labels[k].text = options_text(drawing->options, "%zu", layers ? members[k]->layers : members[k]->n);
    of.title = options_text(drawing->options, "%s, %s", group->name,
                            layers ? options_text(drawing->options, "n = %zu", members[0]->n)
                                   : bench_count_text(drawing, members[0]->layers, "layer"));
    of.axis = layers ? "layers" : "tokens";
    add_both(drawing, parts, &of);
    return true;
}

/* Nothing to go along: all results beside each other, with what tells them apart. */
static void add_single_results(bench_drawing *drawing, const part_list *parts)
{
    const bench_results *all = drawing->results;
    const bench_result **results = options_take(drawing->options, all->count, sizeof *results);
    figure_label *labels = options_take(drawing->options, all->count, sizeof *labels);
    stacks of = {.results = results, .labels = labels, .title = "time by stage"};
    for (size_t k = 0; k < all->count; k++) {
        if (!all->result[k].has_breakdown) continue;
        labels[of.count].text = bench_point_name(drawing, &all->result[k]);
        results[of.count++] = &all->result[k];
    }
    if (of.count) add_both(drawing, parts, &of);
}

void bench_fill_breakdown(bench_drawing *drawing)
{
    const part_list parts = find_parts(drawing);
    bool any = false;
    for (size_t g = 0; g < drawing->group_count; g++) any = add_group(drawing, &parts, &drawing->groups[g]) || any;
    if (!any) add_single_results(drawing, &parts);
}

/* -------------------------------------------------------------------------------------------------------- roofline */

/* The limits of a tier with a number of threads. */
typedef struct roof {
    double gflops, gbs; /* the greater of the two bandwidths: a limit is the best that was seen */
} roof;

static bool find_roof(roof *found, const bench_results *results, const bench_result *r)
{
    deberta_isa isa = DEBERTA_ISA_AUTO;
    const machine_roof *measured = machine_find_roof(&results->sheet.roofs, r->threads);
    if (!measured || deberta_isa_from_name(&isa, r->isa, NULL) != DEBERTA_OK) return false;
    *found = (roof){.gflops = machine_peak_of(&results->sheet.roofs, isa, r->threads, bench_precision(r)),
                    .gbs = fmax(measured->read_gbs, measured->triad_gbs)};
    return found->gflops > 0 && found->gbs > 0;
}

/* A stage at every length: longer texts have more work for every byte of weights. False, and no series, where it has no
 * point. */
static bool add_stage_points(chart_columns *c, const bench_result *const *members, size_t count, profile_stage stage,
                             chart_series like)
{
    chart_add_series(c, like);
    for (size_t k = 0; k < count; k++) {
        const bench_stage *s = &members[k]->breakdown[stage];
        if (members[k]->has_breakdown && s->gflop > 0 && s->bytes > 0 && s->seconds > 0)
            chart_add_point(c, 1e9 * s->gflop / s->bytes, s->gflop / s->seconds);
    }
    const chart_series *added = chart_last_series(c);
    if (added && added->count) return true;
    chart_drop_series(c);
    return false;
}

/* Memory at the left, arithmetic at the right, from the lowest to the highest intensity that is drawn. */
static void add_roof_curve(chart_columns *c, const roof *limit)
{
    const double ridge = limit->gflops / limit->gbs;
    double low = ridge, high = ridge;
    for (size_t s = 0; s < chart_series_count(c); s++) {
        const chart_series *series = chart_nth_series(c, s);
        for (size_t k = 0; k < series->count; k++) {
            low = fmin(low, series->x[k]);
            high = fmax(high, series->x[k]);
        }
    }
    const double at[] = {low / 1.5, ridge, high * 1.5};
    chart_add_series(c, (chart_series){.name = "measured limits", .kind = CHART_CURVE, .look = DARK_LOOK});
    for (size_t k = 0; k < 3; k++) chart_add_point(c, at[k], fmin(limit->gflops, at[k] * limit->gbs));
}

static void add_roofline(bench_drawing *drawing, const bench_group *group, const part_list *parts)
{
    chart_columns *c = &drawing->chart;
    const bench_result **members = options_take(drawing->options, drawing->results->count, sizeof *members);
    roof limit;
    bool any = false;
    if (!find_roof(&limit, drawing->results, group->first)) return;
    const size_t count = bench_slice(drawing, group, TREND_LENGTH, members);
    chart_add_panel(
        c, (chart_panel){.title = options_text(drawing->options, "%s: %.0f GFLOP/s", group->name, limit.gflops),
                         .x = {.label = options_text(drawing->options, "FLOP a byte (slope: %.0f GB/s)", limit.gbs),
                               .scale = CHART_LOG10},
                         .y = {.label = "GFLOP/s", .scale = CHART_LOG10}});
    for (int stage = 0; stage < PROFILE_STAGES; stage++)
        any = add_stage_points(
                  c, members, count, (profile_stage)stage,
                  (chart_series){.name = parts->names[stage], .kind = CHART_LINE, .look = parts->look[stage]}) ||
              any;
    if (any) add_roof_curve(c, &limit);
    drawing->panel_count += any;
}

void bench_fill_roofline(bench_drawing *drawing)
{
    const part_list parts = find_parts(drawing);
    for (size_t g = 0; g < drawing->group_count; g++) add_roofline(drawing, &drawing->groups[g], &parts);
    if (drawing->panel_count == 0) return;
    drawing->chart.across = drawing->panel_count == 1 ? 1 : 2;
    bench_add_note(drawing, "Bytes are the least that a stage must move if nothing stays in a cache between stages; "
                            "where weights do, a point may lie above the slope. Lines join the lengths, longer texts "
                            "to the right.");
}
