/* `attention embeddings` draws the input of absolute positions: content, position and their sum, with norms.
 *
 * Models with position_biased_input add the positions to the words, below the first layer. Other models that have the
 * table add it to the queries of the Enhanced Mask Decoder, where the content is H[L-1].
 *
 * SPDX-License-Identifier: MIT */
#include <math.h>

#include "program/attention/figure_kind.h"
#include "program/attention/figure_panels.h"
#include "program/attention/figure_reference.h"
#include "viz/chart.h"

enum { CONTENT, POSITION, SUM, PARTS };
static const char *const part_names[PARTS] = {"content", "position", "sum"};

typedef struct embedding_parts {
    size_t width;         /* E, or h in the decoder */
    double *whole[PARTS]; /* [n][width] */
    const float *shown[PARTS];
    double *norm[PARTS]; /* [count] norm of each shown row */
} embedding_parts;

/* Reads words and positions from the tables; in the decoder H[L-1] takes the place of the words. */
static void read_parts(figure_source *source, embedding_parts *parts)
{
    const deberta_model_info *info = &source->info;
    parts->width = info->position_biased_input ? info->embedding_size : info->hidden_size;
    const size_t cells = source->view.span[1] * parts->width;
    const reference_input input = figure_reference_input(source);
    deberta_error error = {0};
    for (int p = 0; p < PARTS; p++) parts->whole[p] = options_take(source->options, cells, sizeof(double));
    reference_model *reference = figure_reference_open(source);
    must(source->options,
         reference_embedding_rows(reference, &input, parts->whole[CONTENT], parts->whole[POSITION], &error), &error);
    reference_free(&reference);
    if (!info->position_biased_input) {
        source_encode(source);
        parts->whole[CONTENT] = figure_hidden(source, info->layers - 1);
    }
    for (size_t k = 0; k < cells; k++) parts->whole[SUM][k] = parts->whole[CONTENT][k] + parts->whole[POSITION][k];
}

static void figure_embeddings_measure(figure_sheet *sheet, embedding_parts *parts)
{
    const figure_source *source = sheet->source;
    const size_t count = source->view.count;
    sheet->data.row_axis = "token";
    sheet->data.column_axis = "dimension";
    sheet->data.row_labels = source->view.names;
    sheet->data.row_numbers = token_view_numbers(&source->view);
    for (int p = 0; p < PARTS; p++) {
        const float *shown = parts->shown[p] = figure_view_rows(source, parts->whole[p], parts->width);
        parts->norm[p] = options_take(source->options, count, sizeof(double));
        for (size_t c = 0; c < count * parts->width; c++)
            parts->norm[p][c / parts->width] += (double)shown[c] * (double)shown[c];
        for (size_t t = 0; t < count; t++) parts->norm[p][t] = sqrt(parts->norm[p][t]);
        figure_data_add_matrix(&sheet->data,
                               (figure_matrix){part_names[p], no_index, no_index, shown, count, parts->width});
    }
}

/* -------------------------------------------------------------------------------------------------------- drawing */

typedef struct embedding_figure {
    attention_figure panels;
    chart_figure norms;
} embedding_figure;

/* Lays out the panels, and the norms below them. */
static deberta_status layout(draw_list *list, const void *what, figure_notes *notes, deberta_error *err)
{
    const embedding_figure *figure = what;
    figure_notes of_norms = {0};
    DEBERTA_TRY(attention_layout(list, &figure->panels, notes, err));
    const double height = draw_page_height(list) + 2;
    draw_set_origin(list, 0, height);
    const deberta_status status = chart_layout(list, &figure->norms, &of_norms, err);
    notes->names_stride = of_norms.names_stride;
    draw_set_origin(list, 0, 0);
    draw_set_page(list, draw_page_width(list), height + draw_page_height(list));
    return status;
}

/* Returns the height of a cell as a multiple of its width: each token has a line of 3.2 mm, or less in panels that
 * would be higher than 120 mm. */
static double cell_aspect(const figure_source *source, size_t width)
{
    /* width of a panel in mm, roughly: three are side by side, with the tokens in the other 39 mm */
    const double across = fmax(1, (figure_defaults(&source->asked->style).width_mm - 39) / PARTS);
    return fmin(fmin(3.2, 120 / (double)source->view.count) * (double)width / across, ATTENTION_MOST_ASPECT);
}

static void describe_panels(const figure_sheet *sheet, const embedding_parts *parts, attention_panel *panels,
                            attention_figure *figure)
{
    const figure_source *source = sheet->source;
    const bool decoder = !source->info.position_biased_input;
    const char *const titles[PARTS] = {decoder ? "content: H[L\u22121]" : "content: words", "position",
                                       decoder ? "sum: the decoder\u2019s queries" : "sum"};
    panels_open(sheet, figure);
    for (int p = 0; p < PARTS; p++)
        panels[p] = (attention_panel){parts->shown[p], parts->width, titles[p], HEATMAP_SIGNED};
    figure->panels = panels;
    figure->short_titles = part_names;
    figure->grid_rows = 1;
    figure->grid_columns = figure->columns = PARTS;
    figure->keys = parts->width;
    figure->key_labels = NULL;
    figure->key_numbers = NULL;
    figure->boundary_count = 0;
    figure->query_axis = "token";
    figure->key_axis = "dimension";
    figure->cell_aspect = cell_aspect(source, parts->width);
    figure->keep_row_mean = true;
    figure->units[HEATMAP_SIGNED] = "embedding";
    figure->style.note = NULL; /* the note stands below the norms */
    /* one scale for each panel, because a few dimensions are often far larger than all others */
    if (!option_given(source->options, &source->asked->scales)) figure->scales[HEATMAP_SIGNED].policy = HEATMAP_ROBUST;
}

static void draw_parts(figure_sheet *sheet, const embedding_parts *parts)
{
    const figure_source *source = sheet->source;
    const token_view *view = &source->view;
    attention_panel panels[PARTS];
    chart_series series[PARTS];
    for (int p = 0; p < PARTS; p++)
        series[p] =
            (chart_series){.name = part_names[p], .kind = CHART_BARS, .y = parts->norm[p], .count = view->count};
    const chart_panel norms = {
        .title = "norms",
        .x = {.scale = CHART_CATEGORIES, .categories = view->labels, .category_count = view->count},
        .y = {.label = "length of the vector"},
        .series = series,
        .series_count = PARTS};
    if (source->info.position_biased_input)
        sheet_note(sheet, "The sum enters the first layer norm%s. ",
                   source->info.token_types ? " together with the token types, which are not drawn" : "");
    else
        sheet_note(sheet, "Positions enter the Enhanced Mask Decoder alone, where they are added to H[L\u22121]. ");
    if (source->asked->shown.words)
        sheet_note(sheet, "The vector of a word is the mean of its pieces', and its length that of the mean. ");
    sheet_caption(sheet, "Content, absolute position and their sum, and the lengths of these vectors. ");
    embedding_figure figure = {.norms = {.panels = &norms, .panel_count = 1, .panel_height = 30}};
    describe_panels(sheet, parts, panels, &figure.panels);
    figure.norms.style = sheet->style;
    figure.norms.style.title = NULL;
    sheet_finish(sheet, layout, &figure);
}

/* Refuses ablations that cannot change what is drawn: the figure would be called ablated. */
static void check_ablations(const figure_source *source)
{
    const common_options *options = source->options;
    const ablation_list *ablated = &options->ablated;
    const size_t last = source->info.layers - 1;
    size_t above = 0;
    if (ablated->count && source->info.position_biased_input)
        option_wrong(options, ablated,
                     "%s adds its positions below the first layer, where there are no terms to take out",
                     source->info.name);
    for (size_t k = 0; k < ablated->count; k++)
        above += ablated->items[k].layer == last || (last == 0 && ablated->items[k].layer == DEBERTA_EVERY);
    if (above && above == ablated->count)
        option_wrong(options, ablated,
                     "the content drawn is H[L−1], below layer %zu, the last: expected a term of a lower layer", last);
    if (above)
        say_note(options, "note: --ablate: the content drawn is H[L−1], which the terms of layer %zu do not change",
                 last);
}

static void figure_embeddings_draw(figure_source *source, figure_sheet *sheet)
{
    const deberta_model_info *info = &source->info;
    embedding_parts parts;
    if (!info->has_position_table) usage_wrong(source->options, "%s has no absolute positions", info->name);
    if (!info->position_biased_input && info->embedding_size != info->hidden_size)
        usage_wrong(source->options,
                    "%s has positions of %zu numbers for hidden states of %zu: there is no "
                    "decoder that adds them",
                    info->name, info->embedding_size, info->hidden_size);
    check_ablations(source);
    panels_check_limits(source, source->asked->scales, (bool[HEATMAP_KINDS]){[HEATMAP_SIGNED] = true});
    read_parts(source, &parts);
    figure_embeddings_measure(sheet, &parts);
    draw_parts(sheet, &parts);
}

static const option part[] = {TOKENS_ROWS, NO_MORE_ROWS},
                    look[] = {SCALE_ROW, SIGNED_PALETTE_ROW, LETTERS_ROW, NO_MORE_ROWS};
static const option_group groups[] = FIGURE_GROUPS(part, look);

const figure_kind figure_embeddings = {
    FIGURE_COMMAND("embeddings", "content, absolute position and their sum, where the model adds them, with norms",
                   FIGURE_TEXT " -o embeddings.pdf", groups, FIRST_HEAD, .components = SHOW_LOGITS),
    .hidden = true,
    .draw = figure_embeddings_draw,
};
