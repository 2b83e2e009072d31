/* Fills panels of the receptive field: the band over the layers, formulas, table rows, aliases and influence.
 *
 * SPDX-License-Identifier: MIT */
#include "program/receptive_field/receptive_field_output.h"

#include "include/deberta_unstable.h"
#include "viz/chart_columns.h"

enum { BUCKET_POINTS = 1200, INFLUENCE_CURVES = 3 };

/* The names of definitions and formulas as the figure writes them: a legend has room for a value, a minus sign is one.
 */
static const char *const definition_titles[FIELD_DEFINITIONS] = {"run", "unique set", "contiguous", "hull"};
static const char *const formula_titles[FIELD_FORMULAS] = {"(2k−1)n", "2(k−1)n", "1+2(k−1)n", "1+(2k−1)n", "1+(2k−3)n"};

static const chart_axis layer_axis = {.label = "layers n", .scale = CHART_WHOLE},
                        distance_axis = {.label = "r = i − j (r > 0: key to the left)"};

static double receptive_field_figure_width_of(const field_findings *f, int definition, size_t layers)
{
    return (double)composed_field_value(&f->composed[layers - 1], (field_definition)definition);
}

static double formula_of(const field_findings *f, int formula, size_t layers)
{
    return (double)field_formula_value((field_formula)formula, f->field.rule.span, layers);
}

/* Colours of the formulas, the same in all panels: those after the definitions'. */
static size_t formula_look(int formula) { return FIELD_DEFINITIONS + (size_t)formula + 1; }

/* ------------------------------------------------------------------------------------------------------ over layers */

/* From so many tokens at one side to so many at the other, times the layers. */
static void add_band(chart_columns *c, const field_findings *f, const char *name, double low, double high, size_t look)
{
    chart_add_series(c, (chart_series){.name = name, .kind = CHART_BAND, .look = look});
    for (size_t n = 1; n <= f->layers; n++) chart_add_spread(c, (double)n, 0, (double)n * low, (double)n * high);
}

static void add_bands(chart_columns *c, const field_findings *f)
{
    const receptive_field *field = &f->field;
    chart_add_panel(c, (chart_panel){.title = "displacements that stay unambiguous",
                                     .x = layer_axis,
                                     .y = {.label = "displacement (tokens)", .scale = CHART_LINEAR}});
    add_band(c, f, "hull", (double)field->unique_min, (double)field->unique_max, 3);
    add_band(c, f, "run", -(double)field->run_right, (double)field->run_left, 1);
    for (int sign = 1; sign >= -1; sign -= 2) /* half of a formula's tokens to each side */
        for (int k = 0; k < FIELD_FORMULAS; k++) {
            chart_add_series(c, (chart_series){.name = sign > 0 ? formula_titles[k] : NULL,
                                               .kind = CHART_CURVE,
                                               .look = formula_look(k)});
            for (size_t n = 1; n <= f->layers; n++) chart_add_point(c, (double)n, sign * (formula_of(f, k, n) - 1) / 2);
        }
}

static bool same_widths(const field_findings *f, int one, int other)
{
    bool same = true;
    for (size_t n = 1; n <= f->layers && same; n++)
        same = receptive_field_figure_width_of(f, one, n) == receptive_field_figure_width_of(f, other, n);
    return same;
}

/* "run = unique set = 161": definitions that agree are one line, named for all of them. NULL: named before. */
static const char *definitions_name(chart_columns *c, const field_findings *f, int definition)
{
    const char *names = definition_titles[definition];
    for (int k = 0; k < definition; k++)
        if (same_widths(f, k, definition)) return NULL;
    for (int k = definition + 1; k < FIELD_DEFINITIONS; k++)
        if (same_widths(f, k, definition)) names = chart_text(c, "%s = %s", names, definition_titles[k]);
    return chart_text(c, "%s = %.0f", names, receptive_field_figure_width_of(f, definition, f->layers));
}

static void add_widths(chart_columns *c, const field_findings *f)
{
    chart_add_panel(c, (chart_panel){.title = "how many, and the quoted formulas",
                                     .x = layer_axis,
                                     .y = {.label = "tokens", .from_zero = true}});
    for (int k = 0; k < FIELD_DEFINITIONS; k++) {
        const char *name = definitions_name(c, f, k);
        if (!name) continue;
        chart_add_series(c, (chart_series){.name = name, .kind = CHART_LINE, .look = (size_t)k + 1});
        for (size_t n = 1; n <= f->layers; n++) chart_add_point(c, (double)n, receptive_field_figure_width_of(f, k, n));
    }
    for (int k = 0; k < FIELD_FORMULAS; k++) {
        const char *name = chart_text(c, "%s = %.0f", formula_titles[k], formula_of(f, k, f->layers));
        chart_add_series(c, (chart_series){.name = name, .kind = CHART_CURVE, .look = formula_look(k)});
        for (size_t n = 1; n <= f->layers; n++) chart_add_point(c, (double)n, formula_of(f, k, n));
    }
}

static double excess_of(const field_findings *f, int formula, size_t layers)
{
    return formula_of(f, formula, layers) - receptive_field_figure_width_of(f, FIELD_RUN, layers);
}

static void add_excess(chart_columns *c, const field_findings *f)
{
    chart_add_panel(
        c, (chart_panel){.title = "formula minus run", .x = layer_axis, .y = {.label = "tokens", .from_zero = true}});
    for (int k = 0; k < FIELD_FORMULAS; k++) {
        const double last = excess_of(f, k, f->layers);
        const char *name = last != 0 ? chart_text(c, "%s: %+.0f", formula_titles[k], last)
                                     : chart_text(c, "%s: equal", formula_titles[k]);
        chart_add_series(c, (chart_series){.name = name, .kind = CHART_LINE, .look = formula_look(k)});
        for (size_t n = 1; n <= f->layers; n++) chart_add_point(c, (double)n, excess_of(f, k, n));
    }
}

/* --------------------------------------------------------------------------------------------------- over distances */

static void add_run_ends(chart_columns *c, const field_findings *f, const char *name)
{
    chart_add_rule(c, (chart_rule){.vertical = true, .at = (double)f->field.run_left});
    chart_add_rule(c, (chart_rule){.vertical = true, .at = -(double)f->field.run_right, .name = name});
}

/* A quarter beyond where the table ends, or all that the text has. */
static ptrdiff_t drawn_reach(const field_findings *f)
{
    const ptrdiff_t end = (ptrdiff_t)(f->info.max_relative_positions + f->info.max_relative_positions / 4);
    return f->length && (ptrdiff_t)f->length - 1 < end ? (ptrdiff_t)f->length - 1 : end;
}

static void add_rows(chart_columns *c, const field_findings *f)
{
    const ptrdiff_t reach = drawn_reach(f), step = 2 * reach / (BUCKET_POINTS - 1) + 1;
    chart_add_panel(c, (chart_panel){.title = "table row of a distance", .x = distance_axis, .y = {.label = "row"}});
    add_run_ends(c, f, "run ends");
    chart_add_series(c, (chart_series){.kind = CHART_CURVE});
    for (ptrdiff_t r = -reach; r <= reach; r += step)
        chart_add_point(c, (double)r, (double)deberta_position_row(&f->info, f->reference, r));
}

/* View of a series at both ends of the distances of a row: a square of its distances against its distances, its
 * diagonal, or their number. */
typedef enum alias_view { ALIAS_SQUARES, ALIAS_DIAGONALS, ALIAS_COUNTS } alias_view;

/* Half a distance around each, so that squares touch. The rows at the ends go on for ever; the drawing does not. */
static void add_aliases(chart_columns *c, const field_findings *f, alias_view view)
{
    const ptrdiff_t reach = drawn_reach(f);
    chart_add_series(c, (chart_series){.kind = view == ALIAS_SQUARES ? CHART_BAND : CHART_CURVE, .look = 1});
    for (size_t k = 0; k < f->field.slots_used; k++) {
        const ptrdiff_t low = f->field.rows[k].lowest < -reach ? -reach : f->field.rows[k].lowest;
        const ptrdiff_t high = f->field.rows[k].highest > reach ? reach : f->field.rows[k].highest;
        for (int end = 0; end < 2 && low <= high; end++) {
            const double from = (double)low - 0.5, to = (double)high + 0.5, x = end ? to : from;
            if (view == ALIAS_SQUARES)
                chart_add_spread(c, x, x, from, to);
            else
                chart_add_point(c, x, view == ALIAS_COUNTS ? to - from : x);
        }
    }
}

static void add_alias_panels(chart_columns *c, const field_findings *f)
{
    chart_add_panel(c, (chart_panel){.title = "aliases: distances that share a row",
                                     .x = distance_axis,
                                     .y = {.label = "distances with the same row"}});
    add_run_ends(c, f, "run ends");
    add_aliases(c, f, ALIAS_SQUARES);
    add_aliases(c, f, ALIAS_DIAGONALS); /* where every distance has its own row the squares are too small to be seen */
    chart_add_panel(c, (chart_panel){.title = "how many share it, as far as drawn",
                                     .x = distance_axis,
                                     .y = {.label = "distances", .scale = CHART_LOG10}});
    add_run_ends(c, f, "run ends");
    add_aliases(c, f, ALIAS_COUNTS);
}

/* -------------------------------------------------------------------------------------------------------- influence */

/* After the first layer, the middle and the last. */
static void add_influence_curves(chart_columns *c, const field_findings *f)
{
    const size_t layers = f->influence.layers, shown[INFLUENCE_CURVES] = {1, (layers + 1) / 2, layers};
    chart_add_panel(c, (chart_panel){.title = "influence: mean, 10 % and 90 %",
                                     .x = {.label = "r = i − j", .scale = CHART_SIGNED_LOG},
                                     .y = {.label = "|∂ output i / ∂ input j|", .scale = CHART_LOG10}});
    if (f->field.run_left < f->influence.tokens / 2) add_run_ends(c, f, "run of a layer");
    for (size_t k = 0; k < INFLUENCE_CURVES; k++) {
        const influence_layer *found = &f->influence.layer[shown[k] - 1];
        if (k > 0 && shown[k] <= shown[k - 1]) continue;
        const char *name = chart_text(c, shown[k] == 1 ? "%zu layer" : "%zu layers", shown[k]);
        chart_add_series(c, (chart_series){.name = name, .kind = CHART_CURVE});
        for (size_t b = 0; b < found->bin_count; b++)
            chart_add_spread(c, ((double)found->bins[b].from + (double)found->bins[b].to) / 2, found->bins[b].mean,
                             found->bins[b].q10, found->bins[b].q90);
    }
}

static void add_influence_reach(chart_columns *c, const field_findings *f)
{
    chart_add_panel(c, (chart_panel){.title = "how far influence comes from",
                                     .x = layer_axis,
                                     .y = {.label = "tokens", .scale = CHART_LOG10}});
    chart_add_series(c, (chart_series){.name = "95 % of influence within"});
    for (size_t l = 0; l < f->influence.layers; l++)
        chart_add_point(c, (double)l + 1, (double)f->influence.layer[l].radius95);
    chart_add_series(c, (chart_series){.name = "run to the left"});
    for (size_t l = 0; l < f->influence.layers; l++)
        chart_add_point(c, (double)l + 1, (double)((l + 1) * f->field.run_left));
}

deberta_status receptive_field_draw(const void *what, const figure_style *style, const char *const *paths,
                                    size_t path_count, deberta_error *err)
{
    const field_findings *findings = what;
    chart_columns c = {.across = 2};
    add_bands(&c, findings);
    add_widths(&c, findings);
    add_excess(&c, findings);
    add_rows(&c, findings);
    add_alias_panels(&c, findings);
    if (findings->has_influence) {
        add_influence_curves(&c, findings);
        add_influence_reach(&c, findings);
    }
    const deberta_status status = chart_columns_draw(&c, style, paths, path_count, err);
    chart_columns_free(&c);
    return status;
}
