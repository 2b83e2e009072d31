/* Draws the time of an encode by stage, as stacked bars and under the limits of the machine.
 *
 * SPDX-License-Identifier: MIT */
#include <math.h>
#include <string.h>

#include "program/bench/bench_drawing.h"

/* Pieces of a stack: the stages, waiting threads, parts of attention. The piece of attention itself is the time
 * outside its parts, and all of its time if a file has no parts. */
enum { WAITING = PROFILE_STAGES, FIRST_PART, PIECES = FIRST_PART + PROFILE_PARTS };

/* The dark grey is used by no stage: it is waiting in a stack, or the limits of the machine where no thread waits. */
enum { DARK_LOOK = 7, PURPLE_LOOK = 9 }; /* purple is dark and far from grey, which leaves room for many shades */
static const size_t stage_looks[PROFILE_STAGES] = {1, 2, 3, 4, 5, 6, 9, 10, 8}; /* light and dark alternate */

static bool is_part(size_t piece) { return piece >= FIRST_PART; }

static double piece_seconds(const bench_result *r, size_t piece)
{
    if (is_part(piece)) return r->parts[piece - FIRST_PART].seconds;
    if (piece == WAITING) return r->waiting_s;
    double seconds = r->breakdown[piece].seconds;
    for (size_t part = 0; part < PROFILE_PARTS && piece == PROFILE_ATTENTION; part++) seconds -= r->parts[part].seconds;
    return fmax(seconds, 0);
}

/* Names and colours of pieces, the same in all panels. Colours follow the order of the stages that take any time;
 * parts of attention have shades of its colour. */
typedef struct piece_list {
    const char *names[PIECES]; /* NULL: the piece takes no time in any result */
    size_t look[PIECES];
    double shade[PIECES];
    bool has_parts;
} piece_list;

static bool takes_time(const bench_results *results, size_t piece)
{
    for (size_t k = 0; k < results->count; k++)
        if (piece_seconds(&results->result[k], piece) > 0) return true;
    return false;
}

static void name_parts(piece_list *list, const bench_results *results)
{
    static const char *const names[PROFILE_PARTS] = {
        [PROFILE_QK] = "q·k",    [PROFILE_C2P] = "c2p",         [PROFILE_P2C] = "p2c",
        [PROFILE_BIAS] = "bias", [PROFILE_SOFTMAX] = "softmax", [PROFILE_PV] = "P·V"};
    const double darkest = 0.4, lightest = 0.8; /* shades of the parts; the whole of attention is darker */
    for (size_t part = 0; part < PROFILE_PARTS; part++)
        list->has_parts = list->has_parts || takes_time(results, FIRST_PART + part);
    for (size_t stage = 0; stage < PROFILE_STAGES && list->has_parts; stage++)
        if (list->look[stage] == PURPLE_LOOK) list->look[stage] = list->look[PROFILE_ATTENTION];
    if (list->has_parts) list->look[PROFILE_ATTENTION] = PURPLE_LOOK;
    for (size_t part = 0; part < PROFILE_PARTS; part++) {
        const size_t piece = FIRST_PART + part;
        if (!takes_time(results, piece)) continue;
        list->names[piece] = names[part];
        list->look[piece] = list->look[PROFILE_ATTENTION];
        list->shade[piece] = darkest + (lightest - darkest) * (double)part / (PROFILE_PARTS - 1);
    }
}

static piece_list find_pieces(bench_drawing *drawing)
{
    piece_list list = {0};
    size_t used = 0;
    for (size_t stage = 0; stage < PROFILE_STAGES; stage++) {
        bool any = false; /* true: attention has time of its own, outside its parts */
        for (size_t k = 0; k < drawing->results->count; k++)
            any = any || drawing->results->result[k].breakdown[stage].seconds > 0;
        if (!any) continue;
        list.look[stage] = stage_looks[used++];
        const char *name = options_text(drawing->options, "%s", cost_stage_name((profile_stage)stage));
        for (char *at = strchr(name, '_'); at; at = strchr(at, '_')) *at = ' ';
        list.names[stage] = name;
    }
    name_parts(&list, drawing->results);
    if (takes_time(drawing->results, WAITING)) {
        list.look[WAITING] = DARK_LOOK;
        list.names[WAITING] = "waiting";
    }
    return list;
}

/* ------------------------------------------------------------------------------------------------------- breakdown */

/* The results whose stacks are side by side. */
typedef struct stacks {
    const bench_result **results;
    const figure_label *labels;
    size_t count;
    const char *title, *axis;
} stacks;

/* Adds a slice to every stack. */
static void add_piece(chart_columns *c, const piece_list *pieces, const stacks *of, size_t piece, bool percent)
{
    const bool is_rest = piece == PROFILE_ATTENTION && pieces->has_parts;
    bool any = false;
    for (size_t k = 0; k < of->count; k++) any = any || piece_seconds(of->results[k], piece) > 0;
    if (!pieces->names[piece] || (is_rest && !any)) return;
    chart_add_series(c, (chart_series){.name = is_rest ? "rest of attention" : pieces->names[piece],
                                       .kind = CHART_BARS,
                                       .look = pieces->look[piece],
                                       .shade = pieces->shade[piece]});
    for (size_t k = 0; k < of->count; k++)
        chart_add_point(c, (double)k,
                        piece_seconds(of->results[k], piece) * (percent ? 100 / of->results[k]->breakdown_s : 1e3));
}

/* Adds one stack for each result, in milliseconds or in percent. */
static void add_stacks(bench_drawing *drawing, const piece_list *pieces, const stacks *of, bool percent)
{
    chart_columns *c = &drawing->chart;
    chart_add_panel(
        c,
        (chart_panel){
            .title = of->title,
            .x = {.label = of->axis, .scale = CHART_CATEGORIES, .categories = of->labels, .category_count = of->count},
            .y = {.label = percent ? "% of an encode" : "one encode (ms)", .high = percent ? 100 : 0},
            .stacked = true});
    for (size_t stage = 0; stage < PROFILE_STAGES; stage++) {
        for (size_t part = FIRST_PART; part < PIECES && stage == PROFILE_ATTENTION; part++)
            add_piece(c, pieces, of, part, percent);
        add_piece(c, pieces, of, stage, percent);
    }
    add_piece(c, pieces, of, WAITING, percent);
    drawing->panel_count += chart_series_count(c) > 0;
}

static void add_both(bench_drawing *drawing, const piece_list *pieces, const stacks *of)
{
    drawing->chart.across = 2;
    add_stacks(drawing, pieces, of, false);
    add_stacks(drawing, pieces, of, true);
}

/* Adds a group over its lengths, or over its numbers of layers if it has one length; returns false if it has one of
 * both. */
static bool add_group(bench_drawing *drawing, const piece_list *pieces, const bench_group *group)
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
    add_both(drawing, pieces, &of);
    return true;
}

/* Puts all results side by side where no axis varies, with the facets that distinguish them. */
static void add_single_results(bench_drawing *drawing, const piece_list *pieces)
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
    if (of.count) add_both(drawing, pieces, &of);
}

void bench_fill_breakdown(bench_drawing *drawing)
{
    const piece_list pieces = find_pieces(drawing);
    bool any = false;
    for (size_t g = 0; g < drawing->group_count; g++) any = add_group(drawing, &pieces, &drawing->groups[g]) || any;
    if (!any) add_single_results(drawing, &pieces);
    if (pieces.has_parts && drawing->panel_count)
        bench_add_note(drawing, "Shades of one colour are parts of attention.");
}

/* -------------------------------------------------------------------------------------------------------- roofline */

/* Limits of a tier with a number of threads. */
typedef struct roof {
    double gflops, gbs; /* the greater of the two measured bandwidths, as a limit is the best that was seen */
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

/* Finds the median limits measured between the encodes of these results; returns false where these were not
 * measured. */
static bool find_roof_then(roof *found, const common_options *options, const bench_result *const *members, size_t count)
{
    double *gflops = options_take(options, count, sizeof *gflops), *gbs = options_take(options, count, sizeof *gbs);
    size_t measured = 0;
    for (size_t k = 0; k < count; k++) {
        const bench_then *then = &members[k]->breakdown_peak_then;
        const double rate = machine_rate_of(then->gflops, then->gops, bench_precision(members[k]));
        if (!(rate > 0) || !(then->read_gbs > 0)) continue;
        gflops[measured] = rate;
        gbs[measured++] = then->read_gbs;
    }
    if (measured)
        *found = (roof){.gflops = statistics_median(gflops, measured), .gbs = statistics_median(gbs, measured)};
    return measured > 0;
}

/* Adds a stage, or a part of attention, as a point for every length: longer texts do more work for each byte of
 * weights. Bytes are counted for attention as a whole, so a part is drawn at its FLOPs per byte. Returns false and
 * adds no series if there is no point. */
static bool add_rates(chart_columns *c, const bench_result *const *members, size_t count, size_t piece,
                      chart_series like)
{
    chart_add_series(c, like);
    for (size_t k = 0; k < count; k++) {
        const bench_stage *whole = &members[k]->breakdown[is_part(piece) ? PROFILE_ATTENTION : piece];
        const bench_stage *of = is_part(piece) ? &members[k]->parts[piece - FIRST_PART] : whole;
        if (members[k]->has_breakdown && of->gflop > 0 && whole->bytes > 0 && of->seconds > 0)
            chart_add_point(c, 1e9 * whole->gflop / whole->bytes, of->gflop / of->seconds);
    }
    const chart_series *added = chart_last_series(c);
    if (added && added->count) return true;
    chart_drop_series(c);
    return false;
}

/* Adds the roof: memory bandwidth at the left, arithmetic at the right, from the lowest to the highest intensity of
 * the stages. */
static void add_roof_curve(chart_columns *c, const roof *limit, const char *name, size_t dash)
{
    const double ridge = limit->gflops / limit->gbs;
    double low = ridge, high = ridge;
    for (size_t s = 0; s < chart_series_count(c); s++) {
        const chart_series *series = chart_nth_series(c, s);
        for (size_t k = 0; k < series->count && series->kind != CHART_CURVE; k++) {
            low = fmin(low, series->x[k]);
            high = fmax(high, series->x[k]);
        }
    }
    const double at[] = {low / 1.5, ridge, high * 1.5};
    chart_add_series(c, (chart_series){.name = name, .kind = CHART_CURVE, .look = DARK_LOOK, .dash = dash});
    for (size_t k = 0; k < 3; k++) chart_add_point(c, at[k], fmin(limit->gflops, at[k] * limit->gbs));
}

static void add_roofline(bench_drawing *drawing, const bench_group *group, const piece_list *pieces)
{
    chart_columns *c = &drawing->chart;
    const bench_result **members = options_take(drawing->options, drawing->results->count, sizeof *members);
    roof limit;
    bool any = false;
    if (!find_roof(&limit, drawing->results, group->first)) return;
    const size_t count = bench_slice(drawing, group, TREND_LENGTH, members);
    chart_add_panel(
        c, (chart_panel){.title = options_text(drawing->options, "%s: %.0f GFLOP/s", group->name, limit.gflops),
                         .x = {.label = options_text(drawing->options, "FLOP per byte (slope: %.0f GB/s)", limit.gbs),
                               .scale = CHART_LOG10},
                         .y = {.label = "GFLOP/s", .scale = CHART_LOG10}});
    for (size_t stage = 0; stage < PROFILE_STAGES; stage++) {
        any =
            add_rates(c, members, count, stage,
                      (chart_series){.name = pieces->names[stage], .kind = CHART_LINE, .look = pieces->look[stage]}) ||
            any;
        for (size_t part = FIRST_PART; part < PIECES && stage == PROFILE_ATTENTION; part++)
            add_rates(c, members, count, part,
                      (chart_series){.name = pieces->names[part],
                                     .kind = CHART_LINE,
                                     .look = pieces->look[part],
                                     .shade = pieces->shade[part],
                                     .dash = 2 + part % 3}); /* the whole of attention has the solid line */
    }
    roof then;
    if (any && find_roof_then(&then, drawing->options, members, count))
        add_roof_curve(c, &then, "limits between encodes", 2);
    if (any) add_roof_curve(c, &limit, "measured limits", 0);
    drawing->panel_count += any;
}

void bench_fill_roofline(bench_drawing *drawing)
{
    const piece_list pieces = find_pieces(drawing);
    for (size_t g = 0; g < drawing->group_count; g++) add_roofline(drawing, &drawing->groups[g], &pieces);
    if (drawing->panel_count == 0) return;
    drawing->chart.across = drawing->panel_count == 1 ? 1 : 2;
    bench_add_note(drawing, "Bytes are the least that a stage must move if nothing stays in a cache between stages; "
                            "where weights do, a point may lie above the slope. Lines join the lengths, longer texts "
                            "to the right.");
    if (pieces.has_parts)
        bench_add_note(drawing, "Parts of attention, in shades of its colour, stand at the FLOPs a byte of the whole.");
}
