/* SPDX-License-Identifier: MIT */
#include "cli/receptive_field/receptive_field_figure.h"

#include <stdlib.h>

enum { BUCKET_POINTS = 1200, PANELS = 8, INFLUENCE_CURVES = 3 };

/* The names of definitions and formulas as the figure writes them: a legend has room for a value, a minus sign is one.
 */
static const char *const definition_titles[FIELD_DEFINITIONS] = {"run", "unique set", "contiguous", "hull"};
static const char *const formula_titles[FIELD_FORMULAS] = {"(2k−1)n", "2(k−1)n", "1+2(k−1)n", "1+(2k−1)n", "1+(2k−3)n"};

typedef struct field_drawing {
    const field_findings *findings;
    double *layer;                                            /* [layers]: 1, 2, ... */
    double *run_low, *run_high, *hull_low, *hull_high;        /* [layers] */
    double *width[FIELD_DEFINITIONS];                         /* [layers] */
    double *formula[FIELD_FORMULAS], *excess[FIELD_FORMULAS]; /* [layers] */
    double *above[FIELD_FORMULAS], *below[FIELD_FORMULAS];    /* [layers] a formula's tokens, half to each side */
    double *distance, *row;                                   /* [points] */
    size_t points;
    double *alias, *alias_low, *alias_high, *alias_count; /* [alias_points] both ends of every row's distances */
    size_t alias_points;
    double *bin[INFLUENCE_CURVES], *mean[INFLUENCE_CURVES], *q10[INFLUENCE_CURVES], *q90[INFLUENCE_CURVES]; /* [bins] */
    char influence_names[INFLUENCE_CURVES][32];
    double *radius, *run_reach; /* [layers] */
    char definition_names[FIELD_DEFINITIONS][64], formula_names[FIELD_FORMULAS][64], excess_names[FIELD_FORMULAS][64];
} field_drawing;

/* One block of memory for all columns. */
static double *allocate(field_drawing *d)
{
    const size_t measured = d->findings->influence.layers;
    const size_t layers = d->findings->layers > measured ? d->findings->layers : measured;
    const size_t columns = 7 + FIELD_DEFINITIONS + 4 * FIELD_FORMULAS, aliases = 2 * d->findings->field.slots_used;
    double *memory =
               calloc(columns * layers + 2 * BUCKET_POINTS + 4 * aliases + 4 * INFLUENCE_CURVES * INFLUENCE_MOST_BINS,
                      sizeof *memory),
           *next = memory;
    if (!memory) return NULL;
    double **const fixed[] = {&d->layer,     &d->run_low, &d->run_high, &d->hull_low,
                              &d->hull_high, &d->radius,  &d->run_reach};
    for (size_t k = 0; k < sizeof fixed / sizeof *fixed; k++, next += layers) *fixed[k] = next;
    for (size_t k = 0; k < FIELD_DEFINITIONS; k++, next += layers) d->width[k] = next;
    for (size_t k = 0; k < FIELD_FORMULAS; k++, next += layers) d->formula[k] = next;
    for (size_t k = 0; k < FIELD_FORMULAS; k++, next += layers) d->excess[k] = next;
    for (size_t k = 0; k < FIELD_FORMULAS; k++, next += layers) d->above[k] = next;
    for (size_t k = 0; k < FIELD_FORMULAS; k++, next += layers) d->below[k] = next;
    double **const of_alias[] = {&d->alias, &d->alias_low, &d->alias_high, &d->alias_count};
    for (size_t k = 0; k < 4; k++, next += aliases) *of_alias[k] = next;
    for (size_t k = 0; k < INFLUENCE_CURVES; k++) {
        double **const of_curve[] = {&d->bin[k], &d->mean[k], &d->q10[k], &d->q90[k]};
        for (size_t c = 0; c < 4; c++, next += INFLUENCE_MOST_BINS) *of_curve[c] = next;
    }
    d->distance = next;
    d->row = next + BUCKET_POINTS;
    return memory;
}

static void fill_layers(field_drawing *d)
{
    const field_findings *f = d->findings;
    for (size_t k = 0; k < f->layers; k++) {
        const double n = (double)k + 1;
        d->layer[k] = n;
        d->run_low[k] = -n * (double)f->field.run_right;
        d->run_high[k] = n * (double)f->field.run_left;
        d->hull_low[k] = n * (double)f->field.unique_min;
        d->hull_high[k] = n * (double)f->field.unique_max;
        for (int c = 0; c < FIELD_DEFINITIONS; c++)
            d->width[c][k] = (double)composed_field_value(&f->composed[k], (field_definition)c);
        for (int c = 0; c < FIELD_FORMULAS; c++) {
            d->formula[c][k] = (double)field_formula_value((field_formula)c, f->field.rule.span, k + 1);
            d->excess[c][k] = d->formula[c][k] - d->width[FIELD_RUN][k];
            d->above[c][k] = (d->formula[c][k] - 1) / 2;
            d->below[c][k] = -d->above[c][k];
        }
    }
    for (int c = 0; c < FIELD_DEFINITIONS; c++)
        snprintf(d->definition_names[c], sizeof d->definition_names[c], "%s = %.0f", definition_titles[c],
                 d->width[c][f->layers - 1]);
    for (int c = 0; c < FIELD_FORMULAS; c++) {
        snprintf(d->formula_names[c], sizeof d->formula_names[c], "%s = %.0f", formula_titles[c],
                 d->formula[c][f->layers - 1]);
        const double excess = d->excess[c][f->layers - 1];
        snprintf(d->excess_names[c], sizeof d->excess_names[c], excess != 0 ? "%s: %+.0f" : "%s: equal",
                 formula_titles[c], excess);
    }
}

/* A quarter beyond where the table ends, or all that the text has. */
static ptrdiff_t drawn_reach(const field_findings *f)
{
    const ptrdiff_t end = (ptrdiff_t)(f->config.max_relative_positions + f->config.max_relative_positions / 4);
    return f->length && (ptrdiff_t)f->length - 1 < end ? (ptrdiff_t)f->length - 1 : end;
}

static void fill_buckets(field_drawing *d)
{
    const field_findings *f = d->findings;
    const ptrdiff_t reach = drawn_reach(f);
    const ptrdiff_t step = 2 * reach / (BUCKET_POINTS - 1) + 1;
    for (ptrdiff_t r = -reach; r <= reach && d->points < BUCKET_POINTS; r += step) {
        d->distance[d->points] = (double)r;
        d->row[d->points++] = (double)position_row(&f->field.rule, r);
    }
}

/* A row is a square: its distances against its distances. Half a distance around each, so that squares touch. The rows
 * at the ends go on for ever; the drawing does not. */
static void fill_aliases(field_drawing *d)
{
    const receptive_field *field = &d->findings->field;
    const ptrdiff_t reach = drawn_reach(d->findings);
    for (size_t k = 0; k < field->slots_used; k++) {
        const ptrdiff_t low = field->rows[k].lowest < -reach ? -reach : field->rows[k].lowest;
        const ptrdiff_t high = field->rows[k].highest > reach ? reach : field->rows[k].highest;
        for (int end = 0; end < 2 && low <= high; end++) {
            d->alias[d->alias_points] = end ? (double)high + 0.5 : (double)low - 0.5;
            d->alias_low[d->alias_points] = (double)low - 0.5;
            d->alias_high[d->alias_points] = (double)high + 0.5;
            d->alias_count[d->alias_points++] = (double)(high - low + 1);
        }
    }
}

/* The first layer, the middle and the last: H[n]. */
static size_t curve_layer(const field_drawing *d, size_t curve)
{
    const size_t layers = d->findings->influence.layers, shown[INFLUENCE_CURVES] = {1, (layers + 1) / 2, layers};
    return shown[curve];
}
static bool curve_is_new(const field_drawing *d, size_t curve)
{
    return curve == 0 || curve_layer(d, curve) > curve_layer(d, curve - 1);
}

static void fill_influence(field_drawing *d)
{
    const field_findings *f = d->findings;
    for (size_t k = 0; k < INFLUENCE_CURVES; k++) {
        const size_t layer = curve_layer(d, k);
        const influence_layer *found = &f->influence.layer[layer - 1];
        snprintf(d->influence_names[k], sizeof d->influence_names[k], layer == 1 ? "%zu layer" : "%zu layers", layer);
        for (size_t b = 0; b < found->bin_count; b++) {
            d->bin[k][b] = ((double)found->bins[b].from + (double)found->bins[b].to) / 2;
            d->mean[k][b] = found->bins[b].mean;
            d->q10[k][b] = found->bins[b].q10;
            d->q90[k][b] = found->bins[b].q90;
        }
    }
    for (size_t l = 0; l < f->influence.layers; l++) {
        d->layer[l] = (double)l + 1;
        d->radius[l] = (double)f->influence.layer[l].radius95;
        d->run_reach[l] = (double)((l + 1) * f->field.run_left);
    }
}

/* Two more panels; series and rules live as long as the drawing of the figure. */
typedef struct influence_panels {
    chart_series curves[INFLUENCE_CURVES], radii[2];
    chart_rule rules[2];
} influence_panels;

static size_t add_influence(const field_drawing *d, influence_panels *p, chart_panel *panels)
{
    const field_findings *f = d->findings;
    size_t count = 0;
    for (size_t k = 0; k < INFLUENCE_CURVES; k++) {
        if (!curve_is_new(d, k)) continue;
        p->curves[count++] = (chart_series){.name = d->influence_names[k],
                                            .kind = CHART_CURVE,
                                            .x = d->bin[k],
                                            .y = d->mean[k],
                                            .low = d->q10[k],
                                            .high = d->q90[k],
                                            .count = f->influence.layer[curve_layer(d, k) - 1].bin_count};
    }
    p->radii[0] =
        (chart_series){.name = "95 % of influence within", .x = d->layer, .y = d->radius, .count = f->influence.layers};
    p->radii[1] =
        (chart_series){.name = "run to the left", .x = d->layer, .y = d->run_reach, .count = f->influence.layers};
    p->rules[0] = (chart_rule){.vertical = true, .at = (double)f->field.run_left};
    p->rules[1] = (chart_rule){.vertical = true, .at = -(double)f->field.run_right, .name = "run of a layer"};
    const bool edge_in_text = f->field.run_left < f->influence.tokens / 2;
    panels[0] = (chart_panel){.title = "influence: mean, 10 % and 90 %",
                              .x = {.label = "r = i − j", .scale = CHART_SIGNED_LOG},
                              .y = {.label = "|∂ output i / ∂ input j|", .scale = CHART_LOG10},
                              .series = p->curves,
                              .series_count = count,
                              .rules = p->rules,
                              .rule_count = edge_in_text ? 2 : 0};
    panels[1] = (chart_panel){.title = "how far influence comes from",
                              .x = {.label = "layers n", .scale = CHART_WHOLE},
                              .y = {.label = "tokens", .scale = CHART_LOG10},
                              .series = p->radii,
                              .series_count = 2};
    return 2;
}

/* Series of the panels about the field itself; they live as long as the drawing of the figure. */
typedef struct field_panels {
    chart_series band[2 + 2 * FIELD_FORMULAS], widths[FIELD_DEFINITIONS + FIELD_FORMULAS], excess[FIELD_FORMULAS];
    chart_series bucket, aliases[2], counts;
    chart_rule edges[2];
} field_panels;

/* Colours of the formulas, the same in all panels: those behind the definitions'. */
static size_t formula_look(size_t formula) { return FIELD_DEFINITIONS + formula + 1; }

static void make_band(const field_drawing *d, field_panels *p)
{
    const size_t layers = d->findings->layers;
    p->band[0] = (chart_series){"hull", CHART_BAND, d->layer, NULL, d->hull_low, d->hull_high, layers, 3, NULL};
    p->band[1] = (chart_series){"run", CHART_BAND, d->layer, NULL, d->run_low, d->run_high, layers, 1, NULL};
    for (size_t k = 0; k < FIELD_FORMULAS; k++) {
        p->band[2 + k] = (chart_series){.name = formula_titles[k],
                                        .kind = CHART_CURVE,
                                        .x = d->layer,
                                        .y = d->above[k],
                                        .count = layers,
                                        .look = formula_look(k)};
        p->band[2 + FIELD_FORMULAS + k] = p->band[2 + k];
        p->band[2 + FIELD_FORMULAS + k].y = d->below[k];
        p->band[2 + FIELD_FORMULAS + k].name = NULL;
    }
}

static void make_widths(const field_drawing *d, field_panels *p)
{
    const size_t layers = d->findings->layers;
    for (size_t k = 0; k < FIELD_DEFINITIONS; k++)
        p->widths[k] = (chart_series){
            .name = d->definition_names[k], .kind = CHART_LINE, .x = d->layer, .y = d->width[k], .count = layers};
    for (size_t k = 0; k < FIELD_FORMULAS; k++) {
        p->widths[FIELD_DEFINITIONS + k] = (chart_series){.name = d->formula_names[k],
                                                          .kind = CHART_CURVE,
                                                          .x = d->layer,
                                                          .y = d->formula[k],
                                                          .count = layers,
                                                          .look = formula_look(k)};
        p->excess[k] = (chart_series){.name = d->excess_names[k],
                                      .kind = CHART_LINE,
                                      .x = d->layer,
                                      .y = d->excess[k],
                                      .count = layers,
                                      .look = formula_look(k)};
    }
}

static void make_rows(const field_drawing *d, field_panels *p)
{
    const receptive_field *field = &d->findings->field;
    p->bucket = (chart_series){.kind = CHART_CURVE, .x = d->distance, .y = d->row, .count = d->points};
    p->aliases[0] = (chart_series){
        .kind = CHART_BAND, .x = d->alias, .low = d->alias_low, .high = d->alias_high, .count = d->alias_points};
    /* where every distance has its own row the squares are too small to be seen */
    p->aliases[1] =
        (chart_series){.kind = CHART_CURVE, .x = d->alias, .y = d->alias, .count = d->alias_points, .look = 1};
    p->counts =
        (chart_series){.kind = CHART_CURVE, .x = d->alias, .y = d->alias_count, .count = d->alias_points, .look = 1};
    p->edges[0] = (chart_rule){.vertical = true, .at = (double)field->run_left};
    p->edges[1] = (chart_rule){.vertical = true, .at = -(double)field->run_right, .name = "run ends"};
}

static deberta_status draw(field_drawing *d, const figure_style *style, const char *const *paths, size_t path_count,
                           deberta_error *err)
{
    const field_findings *f = d->findings;
    const chart_axis layers = {.label = "layers n", .scale = CHART_WHOLE};
    const chart_axis distance = {.label = "r = i − j (r > 0: key to the left)"};
    field_panels p;
    make_band(d, &p);
    make_widths(d, &p);
    make_rows(d, &p);
    chart_panel panels[PANELS] = {
        {.title = "displacements that stay unambiguous",
         .x = layers,
         .y = {.label = "displacement (tokens)", .scale = CHART_LINEAR},
         .series = p.band,
         .series_count = sizeof p.band / sizeof *p.band},
        {.title = "how many, and the quoted formulas",
         .x = layers,
         .y = {.label = "tokens", .from_zero = true},
         .series = p.widths,
         .series_count = FIELD_DEFINITIONS + FIELD_FORMULAS},
        {.title = "formula minus run",
         .x = layers,
         .y = {.label = "tokens", .from_zero = true},
         .series = p.excess,
         .series_count = FIELD_FORMULAS},
        {.title = "table row of a distance",
         .x = distance,
         .y = {.label = "row"},
         .series = &p.bucket,
         .series_count = 1,
         .rules = p.edges,
         .rule_count = 2},
        {.title = "aliases: distances that share a row",
         .x = distance,
         .y = {.label = "distances with the same row"},
         .series = p.aliases,
         .series_count = 2,
         .rules = p.edges,
         .rule_count = 2},
        {.title = "how many share it, as far as drawn",
         .x = distance,
         .y = {.label = "distances", .scale = CHART_LOG10},
         .series = &p.counts,
         .series_count = 1,
         .rules = p.edges,
         .rule_count = 2},
    };
    influence_panels more;
    const size_t count = 6 + (f->has_influence ? add_influence(d, &more, panels + 6) : 0);
    const chart_figure figure = {
        .style = *style, .panels = panels, .panel_count = count, .columns = 2, .panel_letters = true};
    return figure_chart(&figure, paths, path_count, NULL, err);
}

deberta_status receptive_field_draw(const field_findings *findings, const figure_style *style, const char *const *paths,
                                    size_t path_count, deberta_error *err)
{
    field_drawing drawing = {.findings = findings};
    double *memory = allocate(&drawing);
    if (!memory) DEBERTA_FAIL(err, DEBERTA_E_MEMORY, "no memory for a figure of %zu layers", findings->layers);
    fill_layers(&drawing);
    fill_buckets(&drawing);
    fill_aliases(&drawing);
    if (findings->has_influence) fill_influence(&drawing);
    const deberta_status status = draw(&drawing, style, paths, path_count, err);
    free(memory);
    return status;
}
