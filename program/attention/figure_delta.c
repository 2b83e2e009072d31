/* `attention delta` draws the effect of each term on the probabilities. SPDX-License-Identifier: MIT */
#include "analysis/attention_terms.h"
#include "program/attention/figure_kind.h"
#include "program/attention/figure_panels.h"

/* Returns the probabilities, or the change of the probabilities when one term is left out. It is computed on the
 * whole text, because tokens that are not shown take part in the softmax. */
static const float *figure_delta_matrix_of(void *context, const figure_source *source, size_t index,
                                           const panel_column *column)
{
    if (column->component == DEBERTA_PROBABILITIES) return captured_matrix(context, source, index, column);
    const size_t n = source->view.span[1];
    logit_terms terms = {.tokens = n, .mask = source_text_mask(source)};
    for (deberta_component c = 0; c <= DEBERTA_P2C; c++)
        terms.term[c] = capture_matrix(&source->capture, source_layer(source, index), source_head(source, index), c, 0);
    float *change = options_take(source->options, n * n, sizeof *change);
    attention_term_change(change, &terms, column->component);
    return change;
}

static void figure_delta_draw(figure_source *source, figure_sheet *sheet)
{
    static const char *const titles[ATTENTION_TERMS] = {
        "\u0394p of content to content", "\u0394p of content to position", "\u0394p of position to content"};
    static const char *const names[ATTENTION_TERMS] = {"delta_c2c", "delta_c2p", "delta_p2c"};
    static const char *const short_titles[ATTENTION_TERMS] = {"\u0394p of c2c", "\u0394p of c2p", "\u0394p of p2c"};
    panel_column columns[1 + ATTENTION_TERMS] = {component_column(source, DEBERTA_PROBABILITIES)};
    size_t count = 1;
    attention_figure figure;
    for (deberta_component c = 0; c <= DEBERTA_P2C; c++)
        if (source->components[c])
            columns[count++] =
                (panel_column){names[c], titles[c], HEATMAP_SIGNED, TOKEN_VIEW_SUM_KEYS, c, short_titles[c]};
    source_encode(source);
    sheet_note(sheet, "\u0394p: softmax of all terms minus softmax without this one. ");
    sheet_caption(sheet, "Attention, and how it changes when one term of the logits is left out. ");
    panels_open(sheet, &figure);
    figure.keep_row_mean = true;
    figure.units[HEATMAP_SIGNED] = "change of probability";
    panels_of_heads(sheet, &figure, columns, count, figure_delta_matrix_of, NULL);
    panels_finish(sheet, &figure);
}

static const option part[] = {PART_ROWS, NO_MORE_ROWS};
static const option look[] = {SCALE_ROW, PALETTE_ROW, SIGNED_PALETTE_ROW, LOG_ROW,     ANNOTATE_ROW,
                              MARK_ROW,  LETTERS_ROW, LAYOUT_ROW,         NO_MORE_ROWS};
static const option_group groups[] = FIGURE_GROUPS(part, look);

const figure_kind figure_delta = {
    FIGURE_COMMAND("delta", "the probabilities, and their change when one term is left out",
                   FIGURE_TEXT " --layers 2 --heads 0,1 -o delta.pdf", groups, FIRST_HEAD,
                   .components = SHOW_TERMS | SHOW_PROBABILITIES),
    .draw = figure_delta_draw,
};
