/* Fills panels of the receptive field: the band over the layers, formulas, table rows, aliases and influence.
 *
 * SPDX-License-Identifier: MIT */
#include "program/receptive_field/receptive_field_output.h"

#include <math.h>
#include <stdlib.h>

#include "include/deberta_unstable.h"
#include "viz/chart_columns.h"

enum { BUCKET_POINTS = 1200, INFLUENCE_CURVES = 3 };

/* The names in the figure's table, with a proper minus sign. */
static const char *const definition_titles[FIELD_DEFINITIONS] = {"run", "unique set", "contiguous", "hull"};
static const char *const formula_titles[FIELD_FORMULAS] = {"(2k−1)n", "2(k−1)n", "1+2(k−1)n", "1+(2k−1)n", "1+(2k−3)n"};
enum { DRAWN_FORMULA = 0 }; /* formula that is quoted most */
enum { RUN_LOOK = 1, FORMULA_LOOK = 2, HULL_LOOK = 3, WEIGHTS_LOOK = 4, ENDLESS_LOOK = 5 };

static const chart_axis layer_axis = {.label = "layers n", .scale = CHART_WHOLE},
                        distance_axis = {.label = "r = i − j (r > 0: key to the left)"};

static double width_of(const field_findings *f, int definition, size_t layers)
{
    return (double)composed_field_value(&f->composed[layers - 1], (field_definition)definition);
}

static double formula_of(const field_findings *f, int formula, size_t layers)
{
    return (double)field_formula_value((field_formula)formula, f->field.rule.span, layers);
}

/* ------------------------------------------------------------------------------------------------- what is told apart */

/* Returns the displacement of n distances, or the end of the text to that side if it is not that long. */
static double displacement_of(const field_findings *f, size_t n, ptrdiff_t distance)
{
    const double within = (double)receptive_field_within(&f->field, n * (size_t)llabs(distance));
    return distance < 0 ? -within : within;
}

/* Adds an edge that is `each` tokens per layer away on one side. */
static void add_edge(chart_columns *c, const field_findings *f, ptrdiff_t each, chart_series series)
{
    chart_add_series(c, series);
    for (size_t n = 1; n <= f->layers; n++) chart_add_point(c, (double)n, displacement_of(f, n, each));
}

static void add_bands(chart_columns *c, const field_findings *f)
{
    const receptive_field *field = &f->field;
    const ptrdiff_t run_left = (ptrdiff_t)field->run_left, run_right = -(ptrdiff_t)field->run_right,
                    hull_left = field->unique_max, hull_right = field->unique_min;
    chart_add_panel(c, (chart_panel){.title = "what is told apart",
                                     .x = layer_axis,
                                     .y = {.label = "displacement (tokens)", .scale = CHART_LINEAR}});
    chart_add_series(c, (chart_series){.name = "run", .kind = CHART_BAND, .look = RUN_LOOK});
    for (size_t n = 1; n <= f->layers; n++)
        chart_add_spread(c, (double)n, 0, displacement_of(f, n, run_right), displacement_of(f, n, run_left));
    if (hull_left != run_left || hull_right != run_right) {
        add_edge(c, f, hull_left, (chart_series){.name = "hull", .kind = CHART_CURVE, .look = HULL_LOOK});
        add_edge(c, f, hull_right, (chart_series){.kind = CHART_CURVE, .look = HULL_LOOK});
    }
    for (int sign = 1; sign >= -1 && !f->length; sign -= 2) { /* half of the formula's tokens to each side */
        chart_add_series(c, (chart_series){.name = sign > 0 ? formula_titles[DRAWN_FORMULA] : NULL,
                                           .kind = CHART_CURVE,
                                           .look = FORMULA_LOOK});
        for (size_t n = 1; n <= f->layers; n++)
            chart_add_point(c, (double)n, sign * (formula_of(f, DRAWN_FORMULA, n) - 1) / 2);
    }
}

/* ------------------------------------------------------------------------------------------------------------- table */

enum { TABLE_COLUMNS = 3, TABLE_ROWS = 1 + FIELD_DEFINITIONS + FIELD_FORMULAS };

static bool same_widths(const field_findings *f, int one, int other)
{
    bool same = true;
    for (size_t n = 1; n <= f->layers && same; n++) same = width_of(f, one, n) == width_of(f, other, n);
    return same;
}

/* Returns "run = unique set": definitions that agree share a row with all their names. NULL: an earlier row has
 * it. */
static const char *definitions_name(chart_columns *c, const field_findings *f, int definition)
{
    const char *names = definition_titles[definition];
    for (int k = 0; k < definition; k++)
        if (same_widths(f, k, definition)) return NULL;
    for (int k = definition + 1; k < FIELD_DEFINITIONS; k++)
        if (same_widths(f, k, definition)) names = chart_text(c, "%s = %s", names, definition_titles[k]);
    return names;
}

/* Returns a count as "12,253". */
static const char *count_text(chart_columns *c, double count)
{
    const long whole = (long)count;
    if (whole < 1000) return chart_text(c, "%ld", whole);
    if (whole < 1000000) return chart_text(c, "%ld,%03ld", whole / 1000, whole % 1000);
    return chart_text(c, "%ld,%03ld,%03ld", whole / 1000000, whole / 1000 % 1000, whole % 1000);
}

static void add_row(chart_columns *c, const field_findings *f, chart_table *table, const char **cells, const char *name,
                    double tokens)
{
    const double more = tokens - width_of(f, FIELD_RUN, f->layers);
    const char **row = cells + TABLE_COLUMNS * table->rows++;
    row[0] = name;
    row[1] = count_text(c, tokens);
    row[2] = more == 0  ? "equal"
             : more > 0 ? chart_text(c, "+%s", count_text(c, more))
                        : chart_text(c, "−%s", count_text(c, -more));
}

/* Fills the table with the counted reach and the formulas, over all layers. */
static void fill_table(chart_columns *c, const field_findings *f, chart_table *table,
                       const char *cells[TABLE_ROWS * TABLE_COLUMNS])
{
    *table = (chart_table){cells, 1, TABLE_COLUMNS};
    cells[0] = chart_text(c, "n = %zu, k = %zu", f->layers, f->field.rule.span);
    cells[1] = "tokens";
    cells[2] = "minus run";
    for (int k = 0; k < FIELD_DEFINITIONS; k++) {
        const char *name = definitions_name(c, f, k);
        if (name) add_row(c, f, table, cells, name, width_of(f, k, f->layers));
        if (k == FIELD_RUN) cells[TABLE_COLUMNS * table->rows - 1] = NULL;
    }
    for (int k = 0; k < FIELD_FORMULAS && !f->length; k++) /* the formulas assume texts of any length */
        add_row(c, f, table, cells, formula_titles[k], formula_of(f, k, f->layers));
    c->table = table;
}

/* --------------------------------------------------------------------------------------------------- over distances */

static void add_run_ends(chart_columns *c, const field_findings *f, const char *name)
{
    chart_add_rule(c, (chart_rule){.vertical = true, .at = (double)f->field.run_left});
    chart_add_rule(c, (chart_rule){.vertical = true, .at = -(double)f->field.run_right, .name = name});
}

/* Returns the largest distance to draw: a quarter beyond the end of the table, or all distances of the text. */
static ptrdiff_t drawn_reach(const field_findings *f)
{
    const ptrdiff_t end = (ptrdiff_t)(f->info.max_relative_positions + f->info.max_relative_positions / 4);
    return f->length && (ptrdiff_t)f->length - 1 < end ? (ptrdiff_t)f->length - 1 : end;
}

static void add_rows(chart_columns *c, const field_findings *f)
{
    const ptrdiff_t reach = drawn_reach(f), step = 2 * reach / (BUCKET_POINTS - 1) + 1;
    chart_add_panel(
        c, (chart_panel){.title = "where it ends: table row of a distance", .x = distance_axis, .y = {.label = "row"}});
    add_run_ends(c, f, "run ends");
    chart_add_series(c, (chart_series){.kind = CHART_CURVE, .look = RUN_LOOK});
    for (ptrdiff_t r = -reach; r <= reach; r += step)
        chart_add_point(c, (double)r, (double)deberta_position_row(&f->info, f->reference, r));
}

/* Returns a number of distances above all that rows with an end have: its logarithmic axis has the others below. */
static double beyond_counts(const field_findings *f)
{
    double most = 1;
    for (size_t k = 0; k < f->field.slots_used; k++)
        if (f->field.rows[k].count != SIZE_MAX) most = fmax(most, (double)f->field.rows[k].count);
    return 10 * most;
}

/* Adds, for each distance, the number of distances that share its row. Rows at the ends of the table may go on without
 * end: they are lines of that name, above all others. */
static void add_aliases(chart_columns *c, const field_findings *f)
{
    const ptrdiff_t reach = drawn_reach(f);
    const double beyond = beyond_counts(f);
    bool named = false, goes_on = false;
    chart_add_panel(c, (chart_panel){.title = "what looks alike: distances with its row",
                                     .x = distance_axis,
                                     .y = {.label = "distances", .scale = CHART_LOG10}});
    add_run_ends(c, f, NULL);
    for (size_t k = 0; k < f->field.slots_used; k++) {
        const field_row *row = &f->field.rows[k];
        const bool endless = row->count == SIZE_MAX;
        const ptrdiff_t low = row->lowest < -reach ? -reach : row->lowest;
        const ptrdiff_t high = row->highest > reach ? reach : row->highest;
        if (endless)
            chart_add_series(
                c, (chart_series){.name = named ? NULL : "without end", .kind = CHART_CURVE, .look = ENDLESS_LOOK});
        else if (!goes_on)
            chart_add_series(c, (chart_series){.kind = CHART_CURVE, .look = RUN_LOOK});
        named |= endless;
        goes_on = !endless;
        for (int end = 0; end < 2 && low <= high; end++) /* half a distance to each side, so that steps touch */
            chart_add_point(c, (double)(end ? high : low) + (end ? 0.5 : -0.5), endless ? beyond : (double)row->count);
    }
}

/* -------------------------------------------------------------------------------------------------------- influence */

/* Adds influence after the first layer, the middle and the last. */
static void add_influence_curves(chart_columns *c, const field_findings *f)
{
    const size_t layers = f->influence.layers, shown[INFLUENCE_CURVES] = {1, (layers + 1) / 2, layers};
    chart_add_panel(c, (chart_panel){.title = "influence: mean, 10 % and 90 %",
                                     .x = {.label = "r = i − j", .scale = CHART_SIGNED_LOG},
                                     .y = {.label = "|∂ output i / ∂ input j|", .scale = CHART_LOG10}});
    if (f->field.run_left < f->influence.tokens / 2) add_run_ends(c, f, "run ends");
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

/* Makes the axis of tokens to one side, on which the name of the text's end has room above its rule. */
static chart_axis reach_axis(const field_findings *f)
{
    const double run = (double)f->field.run_left;
    double low = fmin(run, (formula_of(f, DRAWN_FORMULA, 1) - 1) / 2), high = 2.5 * (double)(f->influence.tokens - 1);
    for (size_t l = 0; l < f->influence.layers; l++) low = fmin(low, (double)f->influence.layer[l].radius95);
    high = fmax(high, (formula_of(f, DRAWN_FORMULA, f->influence.layers) - 1) / 2);
    return (chart_axis){.label = "tokens to one side",
                        .scale = CHART_LOG10,
                        .low = 0.9 * fmax(low, 1),
                        .high = 1.1 * fmax(high, (double)f->influence.layers * run)};
}

static void add_influence_reach(chart_columns *c, const field_findings *f)
{
    chart_add_panel(
        c, (chart_panel){.title = "where it ends, by weights and by formula", .x = layer_axis, .y = reach_axis(f)});
    chart_add_rule(c, (chart_rule){.at = (double)f->influence.tokens - 1, .name = "end of the text"});
    for (int bounded = 1; bounded >= 0;
         bounded--) { /* a radius that the text bounds, and one that follows its length */
        bool named = false;
        for (size_t l = 0; l < f->influence.layers; l++) {
            const influence_layer *layer = &f->influence.layer[l];
            if (layer->bounded != bounded) continue;
            if (!named)
                chart_add_series(c, (chart_series){.name = bounded ? "95 % of influence"
                                                                   : "95 % of influence: not bounded by this text",
                                                   .look = WEIGHTS_LOOK,
                                                   .faint = !bounded});
            named = true;
            chart_add_point(c, (double)l + 1, (double)layer->radius95);
        }
    }
    chart_add_series(c, (chart_series){.name = "run", .look = RUN_LOOK});
    for (size_t l = 0; l < f->influence.layers; l++)
        chart_add_point(c, (double)l + 1, (double)((l + 1) * f->field.run_left));
    chart_add_series(c,
                     (chart_series){.name = formula_titles[DRAWN_FORMULA], .kind = CHART_CURVE, .look = FORMULA_LOOK});
    for (size_t l = 0; l < f->influence.layers; l++)
        chart_add_point(c, (double)l + 1, (formula_of(f, DRAWN_FORMULA, l + 1) - 1) / 2);
}

deberta_status receptive_field_draw(const void *what, const figure_style *style, const char *const *paths,
                                    size_t path_count, deberta_error *err)
{
    const field_findings *findings = what;
    const bool narrow = figure_defaults(style).width_mm < 120; /* narrow: panels and table are stacked */
    chart_columns c = {.across = narrow ? 1 : 2, .panel_height = !narrow ? 0 : findings->has_influence ? 19 : 28};
    chart_table table;
    const char *cells[TABLE_ROWS * TABLE_COLUMNS] = {0};
    add_bands(&c, findings);
    add_rows(&c, findings);
    add_aliases(&c, findings);
    fill_table(&c, findings, &table, cells);
    if (findings->has_influence) {
        add_influence_curves(&c, findings);
        add_influence_reach(&c, findings);
    }
    const deberta_status status = chart_columns_draw(&c, style, paths, path_count, err);
    chart_columns_free(&c);
    return status;
}
