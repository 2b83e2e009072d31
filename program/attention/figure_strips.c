/* `attention strips` and `attention four-types`: the position terms as they are before they are gathered, and the
 * fourth product, which the model leaves out. SPDX-License-Identifier: MIT */
#include <math.h>

#include "program/attention/figure_kind.h"
#include "program/attention/figure_panels.h"
#include "program/attention/figure_reference.h"
#include "include/deberta_unstable.h"

/* What both need: relative positions, the captured text, the reference. */
static int open_strips(figure_source *source, reference_model **reference)
{
    int status = figure_check_positions(source);
    if (status == EXIT_OK) status = source_encode(source);
    return status == EXIT_OK ? figure_reference_open(source, reference) : status;
}

/* -------------------------------------------------------------------------------------------------------- strips */

static size_t strips_of_a_head(const deberta_model_info *info) { return (size_t)info->has_c2p + (size_t)info->has_p2c; }

/* Heights in mm: that of a token in the smallest type, and that which a page has for each strip. */
static const double least_line = FIGURE_SMALLEST_TYPE * DRAW_MM_PER_PT, highest_strip = 90;

static double page_height(const figure_source *source)
{
    const double room = 190, titles = 6;
    return room / (double)(source_heads(source) * strips_of_a_head(&source->info)) - titles;
}

/* A line of type for each token where the page has room, else the smallest in which tokens can stand. */
static double strip_height(const figure_source *source)
{
    const double tokens = (double)source->view.count, few = 22;
    const double wanted = fmin(fmax(3.2 * tokens, few), page_height(source));
    return fmin(fmax(wanted, least_line * tokens), highest_strip);
}

/* Whether words have room beside their rows where pieces have none. */
static bool needs_words(const figure_source *source)
{
    const token_view_choice *shown = &source->asked->shown;
    const double height = fmin(page_height(source), highest_strip);
    if (shown->words || shown->pieces || least_line * (double)source->view.count <= height) return false;
    const size_t words = token_view_count_words(&source->view, &source->input, shown);
    return words < source->view.count && least_line * (double)words <= highest_strip;
}

static double cell_aspect(const figure_source *source, size_t rows)
{
    const double width = figure_defaults(&source->asked->style).width_mm - 24; /* about; tokens stand beside it */
    return fmin(strip_height(source) / (double)source->view.count * (double)rows / width, ATTENTION_MOST_ASPECT);
}

static attention_panel strip_panel(figure_sheet *sheet, const char *title, const char *name, const double *strip,
                                   size_t index, size_t rows)
{
    const figure_source *source = sheet->source;
    const float *shown = figure_view_rows(source, strip, rows);
    figure_data_add_matrix(&sheet->data, (figure_matrix){name, source_layer(source, index), source_head(source, index),
                                                         shown, source->view.count, rows});
    return (attention_panel){.values = shown, .stride = rows, .title = title, .kind = HEATMAP_SIGNED};
}

static int fill_strips(figure_sheet *sheet, const reference_model *reference, attention_figure *figure)
{
    const figure_source *source = sheet->source;
    const deberta_model_info *info = &source->info;
    const size_t n = source->view.span[1], heads = source_heads(source), rows = info->relative_rows;
    const reference_strips strips = {.c2p = options_take(source->options, n * rows, sizeof(double)),
                                     .p2c = options_take(source->options, n * rows, sizeof(double))};
    const char **titles = options_take(source->options, heads, sizeof *titles);
    attention_panel *panels = options_take(source->options, 2 * heads, sizeof *panels);
    const double *hidden = NULL;
    deberta_error error = {0};
    figure->panels = panels;
    figure->row_titles = titles;
    figure->grid_rows = heads;
    figure->grid_columns = strips_of_a_head(info);
    for (size_t k = 0; k < heads; k++) {
        titles[k] = source_head_title(source, k);
        if (k % source->head_count == 0) hidden = figure_hidden(source, source_layer(source, k));
        if (reference_position_strips(reference, source_layer(source, k), source_head(source, k), hidden, n, &strips,
                                      &error) != DEBERTA_OK)
            return say_error(source->options, &error);
        if (info->has_c2p)
            *panels++ = strip_panel(sheet, "c2p: queries against rows of PK", "c2p_strip", strips.c2p, k, rows);
        if (info->has_p2c)
            *panels++ = strip_panel(sheet, "p2c: keys against rows of PQ", "p2c_strip", strips.p2c, k, rows);
    }
    return EXIT_OK;
}

static void arrange_strips(const figure_source *source, size_t rows, attention_figure *figure)
{
    figure->columns = 1;
    figure->keys = rows;
    figure->key_labels = NULL;
    figure->key_numbers = NULL;
    figure->boundary_count = 0;
    figure->query_axis = "token";
    figure->key_axis = "row of the relative table";
    figure->cell_aspect = cell_aspect(source, rows);
    figure->keep_row_mean = true;
}

static int draw_strips(figure_source *source, figure_sheet *sheet)
{
    const deberta_model_info *info = &source->info;
    const deberta_reference rule = (deberta_reference)source->options->reference;
    const ptrdiff_t reach = (ptrdiff_t)source->view.span[1] - 1;
    reference_model *reference = NULL;
    attention_figure figure;
    if (needs_words(source)) return FIGURE_WANTS_WORDS;
    int status = open_strips(source, &reference);
    if (status != EXIT_OK) return status;
    sheet_note(sheet, "This text reads rows %zu to %zu; a pair reads row \u03b4(i,j) = %zu on the diagonal. ",
               deberta_position_row(info, rule, -reach), deberta_position_row(info, rule, reach),
               info->relative_rows / 2);
    sheet_caption(sheet, "Position terms of every row of the relative table, before they are gathered. ");
    sheet->data.row_axis = "token";
    sheet->data.column_axis = "table_row";
    sheet->data.row_labels = source->view.names;
    sheet->data.row_numbers = token_view_numbers(&source->view);
    status = panels_open(sheet, &figure);
    arrange_strips(source, info->relative_rows, &figure);
    if (status == EXIT_OK) status = fill_strips(sheet, reference, &figure);
    reference_free(&reference);
    return status == EXIT_OK ? panels_finish(sheet, &figure) : status;
}

static const option part[] = {PART_ROWS, NO_MORE_ROWS},
                    strips_look[] = {SCALE_ROW, SIGNED_PALETTE_ROW, LETTERS_ROW, NO_MORE_ROWS};
static const option_group strips_groups[] = FIGURE_GROUPS(part, strips_look);

const figure_kind figure_strips = {
    FIGURE_COMMAND("strips", "c2p and p2c against every row of the relative table, before gathering",
                   FIGURE_TEXT " --layers 2 -o strips.pdf", strips_groups, FIRST_HEAD, .components = SHOW_LOGITS),
    .hidden = true,
    .draw = draw_strips,
};

/* ---------------------------------------------------------------------------------------------------- four types */

/* Three captured terms and, of the tables alone, the product of both positions. */
static int matrix_of(void *reference, const figure_source *source, size_t index, const panel_column *column,
                     const float **whole)
{
    const size_t n = source->view.span[1];
    deberta_error error = {0};
    if (column->component != DEBERTA_COMPONENT_COUNT) return captured_matrix(NULL, source, index, column, whole);
    const reference_strips strips = {.p2p = options_take(source->options, source->info.relative_rows, sizeof(double))};
    float *gathered = options_take(source->options, n * n, sizeof *gathered);
    if (reference_position_strips(reference, source_layer(source, index), source_head(source, index), NULL, 0, &strips,
                                  &error) != DEBERTA_OK)
        return say_error(source->options, &error);
    position_gather(gathered, strips.p2p, POSITION_STRIP_NONE, &source->info,
                    (deberta_reference)source->options->reference, n);
    *whole = gathered;
    return EXIT_OK;
}

static int draw_types(figure_source *source, figure_sheet *sheet)
{
    const panel_column columns[4] = {
        component_column(source, DEBERTA_C2C),
        component_column(source, DEBERTA_C2P),
        component_column(source, DEBERTA_P2C),
        {"p2p", "position to position", HEATMAP_SIGNED, TOKEN_VIEW_MEAN, DEBERTA_COMPONENT_COUNT, "p2p"}};
    reference_model *reference = NULL;
    attention_figure figure;
    if (!source->info.has_c2p || !source->info.has_p2c)
        return say_usage(source->options, "%s has no %s, and position to position is made of both", source->info.name,
                         source->info.has_c2p ? "p2c" : "c2p");
    int status = open_strips(source, &reference);
    if (status != EXIT_OK) return status;
    sheet_note(sheet,
               "Position to position is no part of the model's logits: it is computed here from the same tables, "
               "PQ[\u03b4(i,j)] \u00b7 PK[\u03b4(i,j)], and depends on the distance alone%s. ",
               source->asked->centre == CENTRE_NONE ? "" : ", but for the row mean");
    sheet_caption(sheet, "Four types of attention: the three terms of a logit, and position to position, which the "
                         "model leaves out. ");
    status = panels_open(sheet, &figure);
    if (!figure.columns) figure.columns = 2;
    if (status == EXIT_OK) status = panels_of_heads(sheet, &figure, columns, 4, matrix_of, reference);
    reference_free(&reference);
    return status == EXIT_OK ? panels_finish(sheet, &figure) : status;
}

static const option types_look[] = {SCALE_ROW, SIGNED_PALETTE_ROW, CENTER_ROW, ANNOTATE_ROW,
                                    MARK_ROW,  LETTERS_ROW,        LAYOUT_ROW, NO_MORE_ROWS};
static const option_group types_groups[] = FIGURE_GROUPS(part, types_look);

const figure_kind figure_four_types = {
    FIGURE_COMMAND("four-types", "c2c, c2p, p2c and, computed afterwards, p2p, two by two",
                   FIGURE_TEXT " --layers 2 -o four.pdf", types_groups, FIRST_HEAD, .components = SHOW_TERMS),
    .draw = draw_types,
};
