/* `attention query` draws the terms of one query's logits, key by key, as stacked bars. SPDX-License-Identifier: MIT */
#include <math.h>

#include "program/attention/figure_kind.h"
#include "program/attention/head_map.h"

/* Above this many keys, markers would hide the bars, so the sum is drawn as a line. */
enum { MOST_MARKERS = 80 };

/* The data, one line for each head and key, never centred. */
typedef struct query_table {
    double *layer, *head, *query, *key, *component[DEBERTA_COMPONENT_COUNT];
    const char **query_label, **label;
} query_table;

static void open_table(const figure_source *source, size_t query, query_table *table)
{
    const size_t n = source->view.count, lines = source_heads(source) * n;
    table->layer = options_take(source->options, lines, sizeof(double));
    table->head = options_take(source->options, lines, sizeof(double));
    table->query = options_take(source->options, lines, sizeof(double));
    table->query_label = options_take(source->options, lines, sizeof *table->query_label);
    table->key = options_take(source->options, lines, sizeof(double));
    table->label = options_take(source->options, lines, sizeof *table->label);
    for (deberta_component c = 0; c <= DEBERTA_LOGITS; c++)
        table->component[c] = options_take(source->options, lines, sizeof(double));
    for (size_t line = 0; line < lines; line++) {
        table->layer[line] = (double)source_layer(source, line / n);
        table->head[line] = (double)source_head(source, line / n);
        table->query[line] = (double)source->view.tokens[query];
        table->query_label[line] = source->view.names[query].text;
        table->key[line] = (double)source->view.tokens[line % n];
        table->label[line] = source->view.names[line % n].text;
    }
}

static void add_table(figure_sheet *sheet, const query_table *table)
{
    const figure_source *source = sheet->source;
    const size_t lines = source_heads(source) * source->view.count;
    sheet_add_numbers(sheet, "layer", table->layer, lines);
    sheet_add_numbers(sheet, "head", table->head, lines);
    sheet_add_numbers(sheet, "query", table->query, lines);
    figure_data_add_column(&sheet->data, (figure_column){.name = "query_label", .texts = table->query_label});
    sheet_add_numbers(sheet, "key", table->key, lines);
    figure_data_add_column(&sheet->data, (figure_column){.name = "key_label", .texts = table->label});
    for (deberta_component c = 0; c <= DEBERTA_LOGITS; c++)
        if (source->components[c]) sheet_add_numbers(sheet, deberta_component_name(c), table->component[c], lines);
}

/* Returns one row of a matrix as it is drawn, without the part that is constant over the kept keys. */
static const double *drawn_row(const figure_source *source, const double *row)
{
    const size_t n = source->view.count;
    const unsigned char *mask = source_mask(source);
    double *drawn = options_take(source->options, n, sizeof *drawn), sum = 0, kept = 0;
    for (size_t j = 0; j < n; j++) {
        if (mask && !mask[j]) continue;
        sum += row[j];
        kept++;
    }
    for (size_t j = 0; j < n; j++)
        drawn[j] = mask && !mask[j] ? NAN : row[j] - (source->asked->centre == CENTRE_NONE ? 0 : sum / kept);
    return drawn;
}

/* Adds a bar for each term, and their sum. */
static void fill_panel(const figure_source *source, const query_table *table, size_t index, size_t query,
                       chart_panel *panel)
{
    const size_t n = source->view.count;
    chart_series *series = options_take(source->options, DEBERTA_COMPONENT_COUNT, sizeof *series);
    panel->series = series;
    for (deberta_component c = 0; c <= DEBERTA_LOGITS; c++) {
        if (!source->components[c]) continue;
        const float *matrix = source_matrix(source, source_layer(source, index), source_head(source, index), c);
        double *raw = table->component[c] + index * n;
        const bool is_sum = c == DEBERTA_LOGITS;
        for (size_t j = 0; j < n; j++) raw[j] = (double)matrix[query * n + j];
        series[panel->series_count++] = (chart_series){.name = is_sum ? "sum" : deberta_component_name(c),
                                                       .kind = !is_sum            ? CHART_BARS
                                                               : n > MOST_MARKERS ? CHART_CURVE
                                                                                  : CHART_POINTS,
                                                       .y = drawn_row(source, raw),
                                                       .count = n,
                                                       .look = is_sum ? 7 : (size_t)c + 1};
    }
}

static void figure_query_draw(figure_source *source, figure_sheet *sheet)
{
    const attention_options *asked = source->asked;
    const size_t heads = source_heads(source);
    query_table table;
    if (!asked->query) usage_wrong(source->options, "say which token asks: --query WORD, or --query I, counted from 0");
    const size_t query = source_query(source);
    source_encode(source);
    open_table(source, query, &table);
    chart_panel *panels = options_take(source->options, heads, sizeof *panels);
    for (size_t k = 0; k < heads; k++) {
        panels[k] = (chart_panel){.title = options_text(source->options, "%s: query \u201c%s\u201d",
                                                        source_head_title(source, k), source->view.labels[query].text),
                                  .x = {.label = "key",
                                        .scale = CHART_CATEGORIES,
                                        .categories = source->view.labels,
                                        .category_count = source->view.count},
                                  .y = {.label = source->unit},
                                  .stacked = true};
        fill_panel(source, &table, k, query, &panels[k]);
    }
    head_bars_share_axis(panels, heads);
    add_table(sheet, &table);
    if (asked->centre == CENTRE_ROW) sheet_note(sheet, "The mean of the row is subtracted: a softmax ignores it. ");
    sheet_caption(sheet, "Terms of the logits of one query, key by key, with their sum. ");
    const chart_figure chart = {.style = sheet->style,
                                .panels = panels,
                                .panel_count = heads,
                                .columns = asked->columns,
                                .panel_height = 40,
                                .panel_letters = asked->letters};
    sheet_finish(sheet, chart_layout, &chart);
}

static const option part[] = {PART_ROWS, QUERY_ROW, NO_MORE_ROWS},
                    look[] = {CENTER_ROW, LETTERS_ROW, LAYOUT_ROW, NO_MORE_ROWS};
static const option_group groups[] = FIGURE_GROUPS(part, look);

const figure_kind figure_query = {
    FIGURE_COMMAND("query", "the terms of one query's logits over the keys, as stacked bars with their sum",
                   FIGURE_TEXT " --query 3 --layers 2 --heads 0,1 -o query.pdf", groups, FIRST_HEAD,
                   .components = SHOW_TERMS | SHOW_LOGITS),
    .draw = figure_query_draw,
};
