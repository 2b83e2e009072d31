/* Turns curves over the distance into data and panels; strokes mark the distances at which buckets change.
 *
 * SPDX-License-Identifier: MIT */
#include "program/attention/distance_curves.h"

#include <math.h>
#include <string.h>

#include "include/deberta_unstable.h"
#include "program/frame/options.h"
#include "viz/chart.h"

enum { WIDE_MM = 120 /* room for two charts side by side */, LONGEST_LINEAR = 40, MOST_EDGES = 30 };

bool distance_curves_centred(const figure_source *source, deberta_component component)
{
    return source->components[component] && source->asked->centre == CENTRE_ROW && component != DEBERTA_PROBABILITIES;
}

distance_curves distance_curves_open(const figure_source *source, size_t reach)
{
    distance_curves curves = {.reach = reach, .entries = 2 * reach + 1};
    for (size_t c = 0; c < DEBERTA_COMPONENT_COUNT; c++)
        for (size_t s = 0; s < DISTANCE_STATISTICS && source->components[c]; s++) {
            const size_t lines = source_heads(source) * curves.entries;
            curves.column[c][s] = options_take(source->options, lines, sizeof(double));
        }
    return curves;
}

static void add_data(figure_sheet *sheet, const distance_curves *curves)
{
    static const char *const names[DISTANCE_STATISTICS] = {"count", "mean", "median", "low", "high"};
    const figure_source *source = sheet->source;
    const size_t lines = source_heads(source) * curves->entries;
    double *layer = options_take(source->options, lines, sizeof *layer),
           *head = options_take(source->options, lines, sizeof *head),
           *distance = options_take(source->options, lines, sizeof *distance),
           *centred = options_take(source->options, lines, sizeof *centred);
    bool any_centred = false;
    for (deberta_component c = 0; c < DEBERTA_COMPONENT_COUNT; c++) any_centred |= distance_curves_centred(source, c);
    for (size_t line = 0; line < lines; line++) {
        layer[line] = (double)source_layer(source, line / curves->entries);
        head[line] = (double)source_head(source, line / curves->entries);
        centred[line] = any_centred;
        distance[line] = (double)(line % curves->entries) - (double)curves->reach;
    }
    sheet_add_numbers(sheet, "layer", layer, lines);
    sheet_add_numbers(sheet, "head", head, lines);
    sheet_add_numbers(sheet, "distance", distance, lines);
    bool counted = false;
    for (deberta_component c = 0; c < DEBERTA_COMPONENT_COUNT; c++) {
        if (!source->components[c]) continue;
        for (size_t s = counted ? DISTANCE_MEAN : DISTANCE_COUNT; s < DISTANCE_STATISTICS; s++)
            sheet_add_numbers(sheet,
                              s == DISTANCE_COUNT
                                  ? names[s]
                                  : options_text(source->options, "%s_%s", deberta_component_name(c), names[s]),
                              curves->column[c][s], lines);
        counted = true;
    }
    sheet_add_numbers(sheet, "centred", centred, lines);
}

/* ---------------------------------------------------------------------------------------------------------- edges */

/* Edges between distances that use different rows of the position table, at least one of which serves several
 * distances. */
typedef struct bucket_edges {
    double *at;
    size_t count, step; /* only every step-th edge of each side is kept, counted from the middle: more would merge */
} bucket_edges;

/* Finds the edges on one side, from the middle outwards. An edge between two rows that serve one distance each is
 * left out. */
static size_t find_edges(const deberta_model_info *info, deberta_reference rule, ptrdiff_t reach, int side,
                         double *edges)
{
    size_t count = 0;
    for (ptrdiff_t r = 1; r <= reach; r++) {
        const size_t inner = deberta_position_row(info, rule, side * (r - 1)),
                     outer = deberta_position_row(info, rule, side * r);
        const bool wide = (r > 1 && deberta_position_row(info, rule, side * (r - 2)) == inner) ||
                          deberta_position_row(info, rule, side * (r + 1)) == outer;
        if (inner != outer && wide) edges[count++] = side * ((double)r - 0.5);
    }
    return count;
}

/* Thins out the edges of a side so that their strokes stay apart; returns how many are left. */
static size_t thin_out(double *edges, size_t count, size_t step)
{
    for (size_t k = 0; k < count; k += step) edges[k / step] = edges[k];
    return (count + step - 1) / step;
}

static bucket_edges edges_of(const figure_source *source, size_t reach)
{
    bucket_edges edges = {.at = options_take(source->options, 2 * reach, sizeof(double))};
    if (!source->info.relative_rows) return edges;
    const deberta_reference rule = (deberta_reference)source->options->reference;
    const size_t left = find_edges(&source->info, rule, (ptrdiff_t)reach, 1, edges.at);
    const size_t right = find_edges(&source->info, rule, (ptrdiff_t)reach, -1, edges.at + left),
                 most = left > right ? left : right;
    edges.step = most > MOST_EDGES ? (most + MOST_EDGES - 1) / MOST_EDGES : 1;
    edges.count = thin_out(edges.at, left, edges.step);
    const size_t kept = thin_out(edges.at + left, right, edges.step);
    memmove(edges.at + edges.count, edges.at + left, kept * sizeof *edges.at);
    edges.count += kept;
    return edges;
}

/* -------------------------------------------------------------------------------------------------------- drawing */

static const char *const probability = "probability";

/* Makes the panel of one head; it has no series if no component of the kind was chosen. */
static chart_panel make_panel(const figure_sheet *sheet, const distance_curves *curves, const bucket_edges *edges,
                              size_t index, bool probabilities)
{
    static const chart_rule zero = {.vertical = true, .at = 0};
    const figure_source *source = sheet->source;
    const size_t first = index * curves->entries;
    const distance_statistic middle = source->asked->statistic == STATISTIC_MEAN ? DISTANCE_MEAN : DISTANCE_MEDIAN;
    chart_series *series = options_take(source->options, DEBERTA_COMPONENT_COUNT, sizeof *series);
    chart_panel panel = {.title = source_head_title(source, index),
                         .x = {.label = "i \u2212 j (> 0: key to the left)",
                               .scale = curves->reach <= LONGEST_LINEAR ? CHART_WHOLE : CHART_SIGNED_LOG},
                         .y = {.label = probabilities ? probability : source->unit},
                         .series = series,
                         .rules = &zero,
                         .rule_count = 1,
                         .edges = edges->at,
                         .edge_count = edges->count};
    for (deberta_component c = 0; c < DEBERTA_COMPONENT_COUNT; c++) {
        if (!source->components[c] || (c == DEBERTA_PROBABILITIES) != probabilities) continue;
        series[panel.series_count++] =
            (chart_series){.name = probabilities ? NULL : deberta_component_name(c), /* the axis names it */
                           .kind = CHART_CURVE,
                           .x = sheet->data.columns[2].numbers + first,
                           .y = curves->column[c][middle] + first,
                           .low = curves->column[c][DISTANCE_LOW] + first,
                           .high = curves->column[c][DISTANCE_HIGH] + first,
                           .count = curves->entries,
                           .look = (size_t)c + 1};
    }
    return panel;
}

/* Gives panels of the same quantity the same limits, so that heads can be compared. */
static void share_axes(chart_panel *panels, size_t count, const char *quantity)
{
    double low = 0, high = 0;
    for (size_t k = 0; k < count; k++)
        for (size_t s = 0; s < panels[k].series_count && panels[k].y.label == quantity; s++)
            for (size_t at = 0; at < panels[k].series[s].count; at++) {
                /* fmin and fmax ignore NaN, the value of distances without pairs */
                low = fmin(low, panels[k].series[s].low[at]);
                high = fmax(high, panels[k].series[s].high[at]);
            }
    for (size_t k = 0; k < count && low < high; k++) {
        if (panels[k].y.label != quantity) continue;
        panels[k].y.low = 1.04 * low;
        panels[k].y.high = 1.04 * high;
    }
}

static void distance_curves_tell(figure_sheet *sheet, const bucket_edges *edges, const char *over)
{
    const attention_options *asked = sheet->source->asked;
    sheet_note(sheet, "%s over %s, ribbon: quantiles %g to %g. ",
               asked->statistic == STATISTIC_MEAN ? "Mean" : "Median", over, asked->ribbon, 1 - asked->ribbon);
    if (edges->count && edges->step == 1) sheet_note(sheet, "Strokes at the top: bucket edges. ");
    if (edges->step > 1) sheet_note(sheet, "Strokes at the top: one in %zu bucket edges. ", edges->step);
    bool of_logits = false;
    for (deberta_component c = 0; c < DEBERTA_COMPONENT_COUNT; c++)
        of_logits |= c != DEBERTA_PROBABILITIES && sheet->source->components[c];
    if (!of_logits)
        option_note_unused(sheet->source->options, &asked->centre, "no curve is of logits");
    else if (asked->centre == CENTRE_ROW)
        sheet_note(sheet, "Row means of logits are subtracted: a softmax ignores them. ");
}

void distance_curves_draw(figure_sheet *sheet, const distance_curves *curves, bool with_edges, const char *over)
{
    const figure_source *source = sheet->source;
    const bucket_edges edges = with_edges ? edges_of(source, curves->reach) : (bucket_edges){0};
    chart_panel *panels = options_take(source->options, 2 * source_heads(source), sizeof *panels);
    chart_figure chart = {.panels = panels, .columns = source->asked->columns, .panel_letters = source->asked->letters};
    const bool wide = sheet->style.width_mm == 0 || sheet->style.width_mm >= WIDE_MM;
    add_data(sheet, curves);
    for (size_t k = 0; k < source_heads(source); k++) {
        const size_t before = chart.panel_count;
        for (int probabilities = 0; probabilities < 2; probabilities++) {
            panels[chart.panel_count] = make_panel(sheet, curves, &edges, k, probabilities);
            chart.panel_count += panels[chart.panel_count].series_count > 0;
        }
        /* each line of the page is one head */
        if (!chart.columns && chart.panel_count == before + 2 && wide) chart.columns = 2;
    }
    share_axes(panels, chart.panel_count, source->unit);
    share_axes(panels, chart.panel_count, probability);
    distance_curves_tell(sheet, &edges, over);
    chart.style = sheet->style;
    sheet_finish(sheet, chart_layout, &chart);
}
