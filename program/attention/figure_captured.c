/* Draws attention maps as they were captured, probabilities, logits and their terms: `attention components`, `grid`,
 * `mean` and `lines`.
 *
 * SPDX-License-Identifier: MIT */
#include "program/attention/figure_kind.h"
#include "program/attention/figure_panels.h"
#include "viz/head_grid.h"
#include "viz/line_view.h"

static const option part[] = {PART_ROWS, COMPONENTS_ROW, NO_MORE_ROWS};
static const option look[] = {SCALE_ROW,    PALETTE_ROW, SIGNED_PALETTE_ROW, CENTER_ROW, LOG_ROW,
                              ANNOTATE_ROW, MARK_ROW,    LETTERS_ROW,        LAYOUT_ROW, NO_MORE_ROWS};

/* ----------------------------------------------------------------------------------------------------- components */

static void caption_components(figure_sheet *sheet, const panel_column *columns, size_t count)
{
    bool signed_panels = false;
    for (size_t c = 0; c < count; c++) {
        sheet_caption(sheet, "%s%s", c ? ", " : "Attention: ", columns[c].title);
        signed_panels |= columns[c].kind == HEATMAP_SIGNED;
    }
    sheet_caption(sheet, ". ");
    if (signed_panels)
        sheet_caption(sheet, "Signed values in %s%s. ", sheet->source->unit,
                      sheet->source->asked->centre == CENTRE_NONE
                          ? ""
                          : ", less the mean of their row, which a softmax over the keys ignores");
}

/* Draws one row of the figure for each layer and head, with one panel for each component. */
static void draw_components(figure_source *source, figure_sheet *sheet)
{
    panel_column columns[DEBERTA_COMPONENT_COUNT];
    const size_t count = component_columns(source, columns);
    attention_figure figure;
    source_encode(source);
    caption_components(sheet, columns, count);
    panels_open(sheet, &figure);
    panels_of_heads(sheet, &figure, columns, count, captured_matrix, NULL);
    panels_finish(sheet, &figure);
}

const option_group figure_components_groups[] = FIGURE_GROUPS(part, look);
const figure_kind figure_components = {
    FIGURE_COMMAND("components", "c2c, c2p, p2c, their sum and the probabilities of chosen layers and heads (default)",
                   FIGURE_TEXT " -o attention.pdf", figure_components_groups, FIRST_HEAD, .components = SHOW_ALL),
    .draw = draw_components,
};

/* ----------------------------------------------------------------------------------------------------------- mean */

static const float *average(const figure_source *source, deberta_component component)
{
    const size_t cells = source->view.count * source->view.count, heads = source_heads(source);
    double *sum = options_take(source->options, cells, sizeof *sum);
    float *mean = options_take(source->options, cells, sizeof *mean);
    for (size_t k = 0; k < heads; k++) {
        const float *matrix = source_matrix(source, source_layer(source, k), source_head(source, k), component);
        for (size_t c = 0; c < cells; c++) sum[c] += (double)matrix[c];
    }
    for (size_t c = 0; c < cells; c++) mean[c] = (float)(sum[c] / (double)heads);
    return mean;
}

static void draw_mean(figure_source *source, figure_sheet *sheet)
{
    panel_column columns[DEBERTA_COMPONENT_COUNT];
    attention_panel panels[DEBERTA_COMPONENT_COUNT];
    const char *short_titles[DEBERTA_COMPONENT_COUNT];
    attention_figure figure;
    source_encode(source);
    sheet_note(sheet, "Mean of %zu %s \u00d7 %zu %s. ", source->layer_count,
               source->layer_count == 1 ? "layer" : "layers", source->head_count,
               source->head_count == 1 ? "head" : "heads");
    sheet_caption(sheet, "Components of disentangled attention, averaged over layers and heads. ");
    panels_open(sheet, &figure);
    figure.grid_rows = 1;
    figure.grid_columns = component_columns(source, columns);
    figure.panels = panels;
    figure.short_titles = short_titles;
    for (size_t c = 0; c < figure.grid_columns; c++) {
        columns[c].rule = TOKEN_VIEW_SHOWN;
        panels[c] = panels_add(sheet, &columns[c], no_index, no_index, average(source, columns[c].component));
        short_titles[c] = columns[c].short_title;
    }
    panels_finish(sheet, &figure);
}

const figure_kind figure_mean = {
    FIGURE_COMMAND("mean", "each component, averaged over the chosen layers and heads", FIGURE_TEXT " -o mean.pdf",
                   figure_components_groups, EVERY_HEAD, .components = SHOW_ALL),
    .draw = draw_mean,
};

/* ----------------------------------------------------------------------------------------------------------- grid */

static const option grid_look[] = {SCALE_ROW, PALETTE_ROW, SIGNED_PALETTE_ROW, CENTER_ROW, LOG_ROW, NO_MORE_ROWS};
static const option_group grid_groups[] = FIGURE_GROUPS(part, grid_look);

static void draw_grid(figure_source *source, figure_sheet *sheet)
{
    panel_column columns[DEBERTA_COMPONENT_COUNT];
    const attention_options *asked = source->asked;
    const size_t chosen = component_columns(source, columns), heads = source_heads(source);
    const heatmap_kind kind = columns->kind;
    attention_figure unused; /* scales and palettes are chosen in the same way */
    if (chosen != 1)
        option_wrong(source->options, &asked->components, "a head grid shows one of them, found %zu", chosen);
    bool drawn[HEATMAP_KINDS] = {false};
    drawn[kind] = true;
    panels_check_limits(source, asked->scales, drawn);
    panels_note_unused(source, drawn);
    source_encode(source);
    panels_open(sheet, &unused);
    const float **maps = options_take(source->options, heads, sizeof *maps);
    for (size_t k = 0; k < heads; k++)
        maps[k] = panels_add(sheet, columns, source_layer(source, k), source_head(source, k),
                             captured_matrix(NULL, source, k, columns))
                      .values;
    sheet_note(sheet, "Each thumbnail: %s of one head. ", columns->title);
    sheet_caption(sheet, "%s of every head, on one scale. ", columns->title);
    const head_grid grid = {.style = sheet->style,
                            .maps = maps,
                            .layers = source->layer_count,
                            .heads = source->head_count,
                            .queries = source->view.count,
                            .keys = source->view.count,
                            .stride = source->view.count,
                            .layer_numbers = source->layers,
                            .head_numbers = source->heads,
                            .kind = kind,
                            .keep_row_mean = unused.keep_row_mean,
                            .scale = unused.scales[kind],
                            .palette = unused.palettes[kind],
                            .unit = unused.units[kind]};
    sheet_finish(sheet, head_grid_layout, &grid);
}

const figure_kind figure_grid = {
    FIGURE_COMMAND("grid", "a thumbnail of one component for every head of every layer, on one scale",
                   FIGURE_TEXT " --components c2p -o grid.pdf", grid_groups, EVERY_HEAD,
                   .components = SHOW_PROBABILITIES),
    .draw = draw_grid,
};

/* ---------------------------------------------------------------------------------------------------------- lines */

static const option lines_part[] = {PART_ROWS,
                                    COMPONENTS_ROW,
                                    QUERY_ROW,
                                    {"cutoff", 0, "PART",
                                     "leave out what is weaker than this part of the strongest (default 0.05)",
                                     NUMBER_AT(attention_options, threshold, 0, 0.99)},
                                    NO_MORE_ROWS},
                    lines_look[] = {CENTER_ROW, LAYOUT_ROW, NO_MORE_ROWS};
static const option_group lines_groups[] = FIGURE_GROUPS(lines_part, lines_look);

/* Adds a panel for each head and component; the titles say what distinguishes them. */
static void add_line_panels(figure_sheet *sheet, const panel_column *columns, size_t count, line_view *view)
{
    const figure_source *source = sheet->source;
    const size_t heads = source_heads(source);
    line_view_panel *panels = options_take(source->options, heads * count, sizeof *panels);
    for (size_t k = 0; k < heads * count; k++) {
        const panel_column *column = &columns[k % count];
        const char *head = source_head_title(source, k / count);
        const attention_panel panel =
            panels_add(sheet, column, source_layer(source, k / count), source_head(source, k / count),
                       captured_matrix(NULL, source, k / count, column));
        panels[k] = (line_view_panel){panel.values, panel.stride,
                                      count > 1 ? options_text(source->options, "%s: %s", head, column->name) : head};
    }
    view->panels = panels;
    view->panel_count = heads * count;
}

/* Keeps of the data what is drawn: the row of one query. */
static void keep_query(figure_data *data, const token_view *view, size_t query)
{
    data->row_labels = view->names + query;
    data->row_numbers = view->tokens + query;
    for (size_t k = 0; k < data->matrix_count; k++) {
        data->matrices[k].values += query * data->matrices[k].columns;
        data->matrices[k].rows = 1;
    }
}

static void draw_lines(figure_source *source, figure_sheet *sheet)
{
    const attention_options *asked = source->asked;
    panel_column columns[DEBERTA_COMPONENT_COUNT];
    const size_t count = component_columns(source, columns);
    const bool probabilities = source->components[DEBERTA_PROBABILITIES];
    if (probabilities && count > 1)
        option_wrong(source->options, &asked->components,
                     "lines of probs and of logits have no common scale, choose one of them");
    line_view view = {.kind = probabilities ? HEATMAP_POSITIVE : HEATMAP_SIGNED,
                      .columns = asked->columns,
                      .keep_row_mean = asked->centre == CENTRE_NONE,
                      .one_query = asked->query,
                      .smallest = asked->threshold > 0 ? asked->threshold : 1e-30, /* 0 means the default there */
                      .queries = source->view.count,
                      .keys = source->view.count,
                      .query_labels = source->view.labels,
                      .key_labels = source->view.labels,
                      .unit = probabilities ? "probability" : source->unit};
    view.query = source_query(source);
    if (probabilities) option_note_unused(source->options, &asked->centre, "no line is of logits");
    source_encode(source);
    add_line_panels(sheet, columns, count, &view);
    if (view.one_query) keep_query(&sheet->data, &source->view, view.query);
    sheet_caption(sheet, "Queries (left) and the keys they attend to (right). ");
    view.style = sheet->style;
    sheet_finish(sheet, line_view_layout, &view);
}

const figure_kind figure_lines = {
    FIGURE_COMMAND("lines", "lines from the queries to their keys, between two columns of tokens",
                   FIGURE_TEXT " --layers 2 --heads 0,1 -o lines.pdf", lines_groups, FIRST_HEAD,
                   .components = SHOW_PROBABILITIES),
    .draw = draw_lines,
};
