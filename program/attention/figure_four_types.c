/* `attention four-types` draws the three terms of a logit, and the fourth product, which the model leaves out.
 *
 * SPDX-License-Identifier: MIT */
#include "include/deberta_unstable.h"
#include "program/attention/figure_kind.h"
#include "program/attention/figure_panels.h"
#include "program/attention/figure_reference.h"

/* Returns a captured term, or the product of both position tables, which depends on the distance alone. */
static const float *figure_four_types_matrix_of(void *reference, const figure_source *source, size_t index,
                                                const panel_column *column)
{
    const size_t n = source->view.span[1];
    deberta_error error = {0};
    if (column->component != DEBERTA_COMPONENT_COUNT) return captured_matrix(NULL, source, index, column);
    double *products = options_take(source->options, source->info.relative_rows, sizeof *products);
    float *gathered = options_take(source->options, n * n, sizeof *gathered);
    must(source->options,
         reference_position_products(reference, source_layer(source, index), source_head(source, index), products,
                                     &error),
         &error);
    for (size_t i = 0; i < n; i++)
        for (size_t j = 0; j < n; j++)
            gathered[i * n + j] = (float)products[deberta_position_row(
                &source->info, (deberta_reference)source->options->reference, (ptrdiff_t)i - (ptrdiff_t)j)];
    return gathered;
}

static void figure_four_types_draw(figure_source *source, figure_sheet *sheet)
{
    const panel_column columns[4] = {
        component_column(source, DEBERTA_C2C),
        component_column(source, DEBERTA_C2P),
        component_column(source, DEBERTA_P2C),
        {"p2p", "position to position", HEATMAP_SIGNED, TOKEN_VIEW_MEAN, DEBERTA_COMPONENT_COUNT, "p2p"}};
    attention_figure figure;
    if (!source->info.has_c2p || !source->info.has_p2c)
        usage_wrong(source->options, "%s has no %s, and position to position is made of both", source->info.name,
                    source->info.has_c2p ? "p2c" : "c2p");
    source_encode(source);
    reference_model *reference = figure_reference_open(source);
    sheet_note(sheet,
               "Position to position is no part of the model's logits: it is computed here from the same tables, "
               "PQ[\u03b4(i,j)] \u00b7 PK[\u03b4(i,j)], and depends on the distance alone%s. ",
               source->asked->centre == CENTRE_NONE ? "" : ", but for the row mean");
    sheet_caption(sheet, "Four types of attention: the three terms of a logit, and position to position, which the "
                         "model leaves out. ");
    panels_open(sheet, &figure);
    if (!figure.columns && source_heads(source) == 1) figure.columns = 2;
    panels_of_heads(sheet, &figure, columns, 4, figure_four_types_matrix_of, reference);
    reference_free(&reference);
    panels_finish(sheet, &figure);
}

static const option part[] = {PART_ROWS, NO_MORE_ROWS};
static const option look[] = {SCALE_ROW, SIGNED_PALETTE_ROW, CENTER_ROW, ANNOTATE_ROW,
                              MARK_ROW,  LETTERS_ROW,        LAYOUT_ROW, NO_MORE_ROWS};
static const option_group groups[] = FIGURE_GROUPS(part, look);

const figure_kind figure_four_types = {
    FIGURE_COMMAND("four-types", "c2c, c2p, p2c and, computed afterwards, p2p", FIGURE_TEXT " --layers 2 -o four.pdf",
                   groups, FIRST_HEAD, .components = SHOW_TERMS),
    .draw = figure_four_types_draw,
};
