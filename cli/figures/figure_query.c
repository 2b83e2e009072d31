/* `--figure query`: the terms of one query's logits, key by key, as stacked bars. SPDX-License-Identifier: MIT */
#include <math.h>

#include "cli/figures/figure_kinds.h"
#include "cli/figures/figure_options.h"
#include "cli/figures/head_map.h"

/* More keys than that, and markers would hide the bars: the sum is a line. */
enum { MOST_MARKERS = 80 };

/* The data, one line for each head and key: raw values, as everywhere. */
typedef struct query_table {
    double *layer, *head, *key, *component[DEBERTA_COMPONENT_COUNT];
    const char **label;
} query_table;

/* One row of a matrix as it is drawn, without what is constant over the keys that are kept. */
static double *drawn_row(figure_job *job, const double *row, const unsigned char *mask)
{
    const size_t n = job->view.count;
    double *drawn = figure_job_allocate(job, n, sizeof *drawn), sum = 0, kept = 0;
    if (!drawn) return NULL;
    for (size_t j = 0; j < n; j++) {
        if (mask && !mask[j]) continue;
        sum += row[j];
        kept++;
    }
    for (size_t j = 0; j < n; j++) {
        drawn[j] = row[j] - (job->look.keep_row_mean ? 0 : sum / kept);
        if (mask && !mask[j]) drawn[j] = NAN;
    }
    return drawn;
}

static int fill_panel(figure_job *job, query_table *table, size_t index, size_t query, chart_panel *panel)
{
    const size_t n = job->view.count, layer = head_layer(job, index), head = head_number(job, index);
    chart_series *series = figure_job_allocate(job, ATTENTION_TERMS + 1, sizeof *series);
    const unsigned char *mask;
    int status = head_mask(job, &mask);
    if (status == EXIT_OK && !series) status = figure_job_out_of_memory(job);
    panel->series = series;
    for (int c = 0; c <= DEBERTA_LOGITS && status == EXIT_OK; c++) {
        const float *matrix;
        if (!job->components[c]) continue;
        status = figure_job_matrix(job, &job->capture, &job->view, layer, head, (deberta_component)c, &matrix);
        if (status != EXIT_OK) return status;
        double *raw = table->component[c] + index * n;
        for (size_t j = 0; j < n; j++) raw[j] = (double)matrix[query * n + j];
        const bool is_sum = c == DEBERTA_LOGITS;
        const double *drawn = drawn_row(job, raw, mask);
        if (!drawn) return figure_job_out_of_memory(job);
        series[panel->series_count++] =
            (chart_series){.name = is_sum ? "sum" : deberta_component_name((deberta_component)c),
                           .kind = !is_sum            ? CHART_BARS
                                   : n > MOST_MARKERS ? CHART_CURVE
                                                      : CHART_POINTS,
                           .y = drawn,
                           .count = n,
                           .look = is_sum ? 7 : (size_t)c + 1};
    }
    for (size_t j = 0; j < n; j++) {
        table->layer[index * n + j] = (double)layer;
        table->head[index * n + j] = (double)head;
        table->key[index * n + j] = (double)job->view.tokens[j];
        table->label[index * n + j] = job->view.labels[j].text;
    }
    return status;
}

static int add_table(figure_job *job, const query_table *table, size_t lines)
{
    deberta_error error = {0};
    deberta_status status = figure_data_add_numbers(&job->data, "layer", table->layer, lines, &error);
    if (status == DEBERTA_OK) status = figure_data_add_numbers(&job->data, "head", table->head, lines, &error);
    if (status == DEBERTA_OK) status = figure_data_add_numbers(&job->data, "key", table->key, lines, &error);
    if (status == DEBERTA_OK) status = figure_data_add_texts(&job->data, "key_label", table->label, lines, &error);
    for (int c = 0; c <= DEBERTA_LOGITS && status == DEBERTA_OK; c++)
        if (job->components[c])
            status = figure_data_add_numbers(&job->data, deberta_component_name((deberta_component)c),
                                             table->component[c], lines, &error);
    return status == DEBERTA_OK ? EXIT_OK : say_error(job->options, &error);
}

static int make_table(figure_job *job, query_table *table, size_t lines)
{
    table->layer = figure_job_allocate(job, lines, sizeof *table->layer);
    table->head = figure_job_allocate(job, lines, sizeof *table->head);
    table->key = figure_job_allocate(job, lines, sizeof *table->key);
    table->label = figure_job_allocate(job, lines, sizeof *table->label);
    bool all = table->layer && table->head && table->key && table->label;
    for (int c = 0; c <= DEBERTA_LOGITS; c++)
        all &= (table->component[c] = figure_job_allocate(job, lines, sizeof(double))) != NULL;
    return all ? EXIT_OK : figure_job_out_of_memory(job);
}

static int run(figure_job *job)
{
    size_t query = 0;
    query_table table;
    if (!options_has(job->options, "query"))
        return say_usage(job->options, "--figure query: say which token asks with --query I, counted from 0");
    int status = figure_options_query(job, &query);
    if (status == EXIT_OK) status = make_table(job, &table, head_count(job) * job->view.count);
    if (status == EXIT_OK) status = figure_job_encode(job);
    if (status != EXIT_OK) return status;
    chart_panel *panels = figure_job_allocate(job, head_count(job), sizeof *panels);
    if (!panels) return figure_job_out_of_memory(job);
    const char *unit = figure_job_text(job, "%s%s", job->unit, job->look.keep_row_mean ? "" : ", row mean subtracted");
    for (size_t k = 0; k < head_count(job) && status == EXIT_OK; k++) {
        panels[k] = (chart_panel){
            .title = figure_job_text(job, "layer %zu, head %zu: query %s", head_layer(job, k), head_number(job, k),
                                     job->view.labels[query].text),
            .x = {.label = "key",
                  .scale = CHART_CATEGORIES,
                  .categories = job->view.labels,
                  .category_count = job->view.count},
            .y = {.label = unit},
            .stacked = true,
        };
        if (!panels[k].title || !unit) return figure_job_out_of_memory(job);
        status = fill_panel(job, &table, k, query, &panels[k]);
    }
    head_bars_share_axis(panels, head_count(job));
    if (status == EXIT_OK) status = add_table(job, &table, head_count(job) * job->view.count);
    if (status != EXIT_OK) return status;
    figure_job_caption(job, "Terms of the logits of one query, key by key, with their sum. ");
    const chart_figure chart = {.style = job->style,
                                .panels = panels,
                                .panel_count = head_count(job),
                                .columns = job->look.columns,
                                .panel_height = 40,
                                .panel_letters = job->look.letters};
    return figure_job_finish(job, chart_layout, &chart);
}

static const char *const options[] = {"query", "center", "letters", "layout", NULL};

const figure_kind figure_query = {
    .name = "query",
    .summary = "the terms of one query's logits over the keys, as stacked bars with their sum",
    .layers = "0",
    .heads = "0",
    .components = "c2c,c2p,p2c,logits",
    .options = options,
    .run = run,
};
