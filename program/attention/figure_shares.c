/* `attention shares` draws how much each term contributes to each head, as heat maps or as bars.
 *
 * SPDX-License-Identifier: MIT */
#include "analysis/attention_terms.h"
#include "program/attention/figure_kind.h"
#include "program/attention/head_map.h"
#include "program/frame/progress.h"

/* Wording of a measure. Variance shares and Shapley values can be negative and have a meaningful sum; KL has neither
 * property. */
typedef struct measure_look {
    const char *column, *unit, *note;
    bool adds_up;
} measure_look;

static const measure_look looks[MEASURES] = {
    {"variance_share", "share of variance",
     "Share: covariance of a term with the sum over the variance of the sum, within rows. ", true},
    {"shapley_bits", "Shapley value (bits)",
     "Shapley values of the divergence between the full softmax and that of a subset of the terms. ", true},
    {"kl_bits", "KL without the term (bits)",
     "Divergence between the full softmax and the one without this term, mean over queries. ", false},
};

typedef struct shares {
    double *values[MEASURES][ATTENTION_TERMS]; /* [heads] */
    double *total;                             /* sum of the Shapley values in bits */
} shares;

static void measure_head(const figure_source *source, size_t index, shares *s)
{
    logit_terms terms = {.tokens = source->view.count, .mask = source_mask(source)};
    attention_term_effects effects = {0};
    for (deberta_component c = 0; c <= DEBERTA_P2C; c++)
        terms.term[c] = source_matrix(source, source_layer(source, index), source_head(source, index), c);
    attention_term_effects_measure(&effects, &terms);
    for (size_t t = 0; t < ATTENTION_TERMS; t++) {
        s->values[MEASURE_VARIANCE][t][index] = effects.variance_share[t];
        s->values[MEASURE_SHAPLEY][t][index] = effects.shapley[t];
        s->values[MEASURE_KL][t][index] = effects.kl_without[t];
    }
    s->total[index] = effects.kl_uniform;
}

static void measure_heads(const figure_source *source, shares *s)
{
    const size_t heads = source_heads(source);
    for (size_t k = 0; k < MEASURES * ATTENTION_TERMS; k++)
        s->values[k / ATTENTION_TERMS][k % ATTENTION_TERMS] = head_numbers(source);
    s->total = head_numbers(source);
    progress_bar bar = progress_begin(source->options, "measuring heads", heads);
    for (size_t k = 0; k < heads; k++) {
        progress_step(&bar, k, NULL);
        measure_head(source, k, s);
    }
    progress_end(&bar);
}

/* Adds the columns of all three measures, whichever is drawn. */
static void add_columns(figure_sheet *sheet, const shares *s)
{
    const figure_source *source = sheet->source;
    for (size_t m = 0; m < MEASURES; m++)
        for (deberta_component t = 0; t <= DEBERTA_P2C; t++)
            if (source->components[t])
                head_map_column(sheet,
                                options_text(source->options, "%s_%s", deberta_component_name(t), looks[m].column),
                                s->values[m][t]);
    head_map_column(sheet, "kl_uniform_bits", s->total);
}

/* Returns the kind of heat map for the values: without negative values, half of a diverging scale would stay
 * unused. */
static heatmap_kind kind_of_values(const figure_source *source, const shares *s)
{
    for (deberta_component t = 0; t <= DEBERTA_P2C; t++)
        for (size_t k = 0; k < source_heads(source) && source->components[t]; k++)
            if (s->values[source->asked->measure][t][k] < 0) return HEATMAP_SIGNED;
    return HEATMAP_POSITIVE;
}

static void draw_maps(figure_sheet *sheet, const shares *s, attention_figure *figure)
{
    const figure_source *source = sheet->source;
    const measure_look *look = &looks[source->asked->measure];
    const heatmap_kind kind = kind_of_values(source, s);
    attention_panel panels[ATTENTION_TERMS];
    for (deberta_component t = 0; t <= DEBERTA_P2C; t++)
        if (source->components[t])
            panels[figure->grid_columns++] =
                head_map_panel(source, deberta_component_name(t), kind, s->values[source->asked->measure][t]);
    figure->panels = panels;
    figure->units[HEATMAP_SIGNED] = figure->units[HEATMAP_POSITIVE] = look->unit;
    panels_finish(sheet, figure);
}

/* Makes one panel of bars for a layer. */
static chart_panel bars_of_layer(const figure_source *source, const shares *s, size_t layer)
{
    const int measure = source->asked->measure;
    const size_t heads = source->head_count, first = layer * heads;
    chart_series *series = options_take(source->options, ATTENTION_TERMS + 1, sizeof *series);
    chart_panel panel = {.title = options_text(source->options, "layer %zu", source->layers[layer]),
                         .x = {.label = "head",
                               .scale = CHART_CATEGORIES,
                               .categories = head_number_labels(source, source->heads, heads),
                               .category_count = heads},
                         .y = {.label = looks[measure].unit},
                         .series = series,
                         .stacked = looks[measure].adds_up};
    for (deberta_component t = 0; t <= DEBERTA_P2C; t++)
        if (source->components[t])
            series[panel.series_count++] = (chart_series){.name = deberta_component_name(t),
                                                          .kind = CHART_BARS,
                                                          .y = s->values[measure][t] + first,
                                                          .count = heads,
                                                          .look = (size_t)t + 1};
    if (measure == MEASURE_SHAPLEY)
        series[panel.series_count++] = (chart_series){
            .name = "KL from uniform", .kind = CHART_POINTS, .y = s->total + first, .count = heads, .look = 7};
    return panel;
}

static void draw_bars(figure_sheet *sheet, const shares *s)
{
    const figure_source *source = sheet->source;
    chart_panel *panels = options_take(source->options, source->layer_count, sizeof *panels);
    for (size_t layer = 0; layer < source->layer_count; layer++) panels[layer] = bars_of_layer(source, s, layer);
    head_bars_share_axis(panels, source->layer_count);
    const chart_figure chart = {.style = sheet->style,
                                .panels = panels,
                                .panel_count = source->layer_count,
                                .columns = source->asked->columns,
                                .panel_height = 30,
                                .panel_letters = source->asked->letters};
    sheet_finish(sheet, chart_layout, &chart);
}

/* Refuses options of colour scales and cells for bars, which have neither. */
static void check_form(const attention_options *asked)
{
    const void *const of_maps[] = {&asked->scales, &asked->palette, &asked->signed_palette, &asked->annotate};
    const common_options *options = &asked->reading.common;
    for (size_t k = 0; k < sizeof of_maps / sizeof *of_maps && asked->form == FORM_BARS; k++)
        if (option_given(options, of_maps[k]))
            option_wrong(options, of_maps[k], "--form bars does not take it; --form map does");
}

static void figure_shares_draw(figure_source *source, figure_sheet *sheet)
{
    const measure_look *look = &looks[source->asked->measure];
    shares s;
    attention_figure figure;
    check_form(source->asked);
    source_encode(source);
    measure_heads(source, &s);
    sheet_note(sheet, "%s", look->note);
    if (!source->view.whole) sheet_note(sheet, "Measured among the tokens that are shown. ");
    sheet_caption(sheet, "What each term of the logits is worth to each head. %s", look->note);
    head_map_open(sheet, &figure);
    add_columns(sheet, &s);
    if (source->asked->form == FORM_BARS)
        draw_bars(sheet, &s);
    else
        draw_maps(sheet, &s, &figure);
}

static const option part[] = {
    PART_ROWS,
    {"measure", 0, "WHAT", "variance (default), shapley or kl", CHOICE_AT(attention_options, measure, figure_measures)},
    NO_MORE_ROWS};
static const option look_rows[] = {
    {"form", 0, "FORM", "map (default) or bars", CHOICE_AT(attention_options, form, figure_forms)},
    SCALE_ROW,
    PALETTE_ROW,
    SIGNED_PALETTE_ROW,
    ANNOTATE_ROW,
    LETTERS_ROW,
    LAYOUT_ROW,
    NO_MORE_ROWS};
static const option_group groups[] = FIGURE_GROUPS(part, look_rows);

const figure_kind figure_shares = {
    FIGURE_COMMAND("shares", "what each term is worth to each head: share of variance, Shapley value or KL",
                   FIGURE_TEXT " --measure shapley -o shares.pdf", groups, EVERY_HEAD, .components = SHOW_TERMS),
    .draw = figure_shares_draw,
};
