/* `attention value-weighted` draws attention times the norm of the values that it moves.
 *
 * SPDX-License-Identifier: MIT */
#include "program/attention/figure_kind.h"
#include "program/attention/figure_panels.h"
#include "program/attention/figure_reference.h"

/* Name of the quantity in the picture and its sentence: attention times the norm of the projected value. */
#define WEIGHTED_NORM "\u03b1\u1d62\u2c7c \u2016W\u2092 v\u2c7c\u2016"

/* Norms of the projected values. A session does not expose values and the output projection, so the float64 reference
 * computes them from the observed hidden states of the engine. */
typedef struct value_norms {
    reference_model *reference;
    double *of_layer; /* [A][n] norms of the current layer */
} value_norms;

static const float *figure_value_weighted_matrix_of(void *context, const figure_source *source, size_t index,
                                                    const panel_column *column)
{
    value_norms *norms = context;
    const size_t n = source->view.span[1], layer = source_layer(source, index);
    const float *probabilities = captured_matrix(NULL, source, index, column);
    deberta_error error = {0};
    if (column->kind == HEATMAP_POSITIVE) return probabilities;
    if (index % source->head_count == 0)
        must(source->options,
             reference_value_norms(norms->reference, layer, figure_hidden(source, layer), n, norms->of_layer, &error),
             &error);
    const double *of_head = norms->of_layer + source_head(source, index) * n;
    float *weighted = options_take(source->options, n * n, sizeof *weighted);
    for (size_t c = 0; c < n * n; c++) weighted[c] = (float)((double)probabilities[c] * of_head[c % n]);
    return weighted;
}

static void figure_value_weighted_draw(figure_source *source, figure_sheet *sheet)
{
    const panel_column columns[2] = {component_column(source, DEBERTA_PROBABILITIES),
                                     {"value_weighted", "weighted by the values", HEATMAP_RANGE, TOKEN_VIEW_SUM_KEYS,
                                      DEBERTA_PROBABILITIES, "weighted"}};
    value_norms norms = {.of_layer =
                             options_take(source->options, source->info.heads * source->view.span[1], sizeof(double))};
    attention_figure figure;
    source_encode(source);
    sheet_note(sheet, "Weighted by the values: " WEIGHTED_NORM ", after Kobayashi et al. (2020). ");
    sheet_caption(sheet, "Attention, and the norm of what it writes for each key (Kobayashi et al. 2020). ");
    panels_open(sheet, &figure);
    figure.units[HEATMAP_RANGE] = WEIGHTED_NORM;
    if (!figure.palettes[HEATMAP_RANGE]) figure.palettes[HEATMAP_RANGE] = "blues";
    norms.reference = figure_reference_open(source);
    panels_of_heads(sheet, &figure, columns, 2, figure_value_weighted_matrix_of, &norms);
    reference_free(&norms.reference);
    panels_begin_at_zero(&figure, 0);
    panels_finish(sheet, &figure);
}

static const option part[] = {PART_ROWS, NO_MORE_ROWS};
static const option look[] = {SCALE_ROW, PALETTE_ROW, ANNOTATE_ROW, MARK_ROW, LETTERS_ROW, LAYOUT_ROW, NO_MORE_ROWS};
static const option_group groups[] = FIGURE_GROUPS(part, look);

const figure_kind figure_value_weighted = {
    FIGURE_COMMAND(
        "value-weighted", "attention times the norm of the values after the output projection (Kobayashi et al. 2020)",
        FIGURE_TEXT " --layers 2 --heads 0,1 -o weighted.pdf", groups, FIRST_HEAD, .components = SHOW_PROBABILITIES),
    .hidden = true,
    .draw = figure_value_weighted_draw,
};
