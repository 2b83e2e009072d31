/* `attention distances` and `attention rows`: relative positions as numbers, before any weight comes in.
 * SPDX-License-Identifier: MIT */
#include "program/attention/figure_kind.h"
#include "program/attention/figure_panels.h"
#include "program/attention/figure_reference.h"

/* Cells of the view's tokens; of words, of their first pieces. */
static const float *pick(const figure_source *source, const float *whole)
{
    const token_view *view = &source->view;
    const size_t count = view->count, n = view->span[1];
    float *shown = options_take(source->options, count * count, sizeof *shown);
    for (size_t i = 0; i < count; i++)
        for (size_t j = 0; j < count; j++)
            shown[i * count + j] = whole[view->members[view->starts[i]] * n + view->members[view->starts[j]]];
    return shown;
}

static int finish(figure_sheet *sheet, const float *whole, const panel_column *column, const char *unit)
{
    const figure_source *source = sheet->source;
    const token_view *view = &source->view;
    const attention_panel panel = panels_add(sheet, column, no_index, no_index, pick(source, whole));
    attention_figure figure;
    const int status = panels_open(sheet, &figure);
    if (status != EXIT_OK) return status;
    if (source->asked->shown.words) sheet_note(sheet, "Positions of words are those of their first pieces. ");
    for (size_t k = 0; k < figure.mark_count; k++)
        sheet_note(sheet, "%s: query \u201c%s\u201d, key \u201c%s\u201d, %g. ", k ? "Another" : "The marked cell",
                   view->labels[figure.marks[k].query].text, view->labels[figure.marks[k].key].text,
                   (double)panel.values[figure.marks[k].query * view->count + figure.marks[k].key]);
    figure.style = sheet->style;
    figure.panels = &panel;
    figure.grid_rows = figure.grid_columns = 1;
    figure.annotate_if_room = true;
    figure.keep_row_mean = true;
    figure.units[panel.kind] = unit;
    return panels_finish(sheet, &figure);
}

static int draw_distances(figure_source *source, figure_sheet *sheet)
{
    static const panel_column column = {"distance",       "relative distance i \u2212 j", HEATMAP_SIGNED,
                                        TOKEN_VIEW_SHOWN, DEBERTA_COMPONENT_COUNT,        NULL};
    const size_t n = source->view.span[1];
    float *whole = options_take(source->options, n * n, sizeof *whole);
    position_distances(whole, n);
    sheet_caption(sheet, "Relative distances between query i and key j, positive for keys to the left. ");
    return finish(sheet, whole, &column, "tokens, positive: key to the left");
}

static int draw_rows(figure_source *source, figure_sheet *sheet)
{
    static const panel_column column = {
        "row", "row \u03b4(i,j) of the relative table", HEATMAP_RANGE, TOKEN_VIEW_SHOWN, DEBERTA_COMPONENT_COUNT, NULL};
    const size_t n = source->view.span[1];
    float *whole = options_take(source->options, n * n, sizeof *whole);
    const int status = figure_check_positions(source);
    if (status != EXIT_OK) return status;
    position_rows(whole, &source->info, (deberta_reference)source->options->reference, n);
    sheet_note(sheet, "The diagonal is row K = %zu; c2p and p2c read the same row. ", source->info.relative_rows / 2);
    sheet_caption(sheet, "Rows \u03b4(i,j) of the table of relative positions that a pair of tokens reads. ");
    return finish(sheet, whole, &column, options_text(source->options, "row, of %zu", source->info.relative_rows));
}

static const option part[] = {PART_ROWS, NO_MORE_ROWS};
static const option look[] = {SCALE_ROW, PALETTE_ROW, SIGNED_PALETTE_ROW, ANNOTATE_ROW, MARK_ROW, NO_MORE_ROWS};
static const option_group groups[] = FIGURE_GROUPS(part, look);

const figure_kind figure_distances = {
    FIGURE_COMMAND("distances", "the matrix of relative distances i - j, with numbers and a marked cell",
                   FIGURE_TEXT " --mark 3,1 -o distances.pdf", groups, FIRST_HEAD),
    .draw = draw_distances,
};

const figure_kind figure_rows = {
    FIGURE_COMMAND("rows", "the rows of the relative table that pairs of tokens read, with numbers",
                   FIGURE_TEXT " -o rows.pdf", groups, FIRST_HEAD),
    .draw = draw_rows,
};
