/* SPDX-License-Identifier: MIT */
#include "cli/figures/head_map.h"

#include <math.h>

int head_mask(figure_job *job, const unsigned char **mask)
{
    *mask = NULL;
    if (!job->input.mask) return EXIT_OK;
    unsigned char *kept = figure_job_allocate(job, job->view.count, sizeof *kept);
    if (!kept) return figure_job_out_of_memory(job);
    for (size_t k = 0; k < job->view.count; k++) /* inputs with masks are ids: a row of the view is one token */
        kept[k] = job->input.mask[job->view.first_token + job->view.members[job->view.starts[k]]];
    *mask = kept;
    return EXIT_OK;
}

const size_t *head_positions(const figure_job *job)
{
    return job->view_choice.words ? NULL : token_view_numbers(&job->view);
}

const char *head_unit(const figure_job *job) { return job->view_choice.words ? "words" : "tokens"; }

int head_logit_terms(figure_job *job, size_t layer, size_t head, logit_terms *terms)
{
    *terms = (logit_terms){.tokens = job->view.count};
    int status = head_mask(job, &terms->mask);
    for (int c = 0; c < ATTENTION_TERMS && status == EXIT_OK; c++)
        status = figure_job_matrix(job, &job->capture, &job->view, layer, head, (deberta_component)c, &terms->term[c]);
    return status;
}

const char *head_title(figure_job *job, size_t layer, size_t head)
{
    return figure_job_text(job, "layer %zu, head %zu", layer, head);
}

size_t head_count(const figure_job *job) { return job->layer_count * job->head_count; }

size_t head_layer(const figure_job *job, size_t index) { return job->layers[index / job->head_count]; }

size_t head_number(const figure_job *job, size_t index) { return job->heads[index % job->head_count]; }

double *head_numbers(figure_job *job) { return figure_job_allocate(job, head_count(job), sizeof(double)); }

int head_rows(figure_job *job, attention_figure *figure, size_t columns, attention_panel **panels)
{
    const char **titles = figure_job_allocate(job, head_count(job), sizeof *titles);
    *panels = figure_job_allocate(job, head_count(job) * columns, sizeof **panels);
    if (!*panels || !titles) return figure_job_out_of_memory(job);
    for (size_t k = 0; k < head_count(job); k++)
        if (!(titles[k] = head_title(job, head_layer(job, k), head_number(job, k))))
            return figure_job_out_of_memory(job);
    figure->panels = *panels;
    figure->row_titles = titles;
    figure->grid_rows = head_count(job);
    figure->grid_columns = columns;
    return EXIT_OK;
}

/* 0, 3, 5 as labels of an axis. */
static figure_label *number_labels(figure_job *job, const size_t *numbers, size_t count)
{
    figure_label *labels = figure_job_allocate(job, count, sizeof *labels);
    for (size_t k = 0; labels && k < count; k++)
        if (!(labels[k].text = figure_job_text(job, "%zu", numbers[k]))) return NULL;
    return labels;
}

int head_map_figure(figure_job *job, attention_figure *figure)
{
    *figure = figure_job_attention(job);
    figure->queries = job->layer_count;
    figure->keys = job->head_count;
    figure->query_labels = number_labels(job, job->layers, job->layer_count);
    figure->key_labels = number_labels(job, job->heads, job->head_count);
    figure->query_numbers = job->layers;
    figure->key_numbers = job->heads;
    figure->query_axis = "layer";
    figure->key_axis = "head";
    figure->boundary_count = figure->mark_count = 0;
    figure->keep_row_mean = true;
    figure->grid_rows = 1;
    double *layers = head_numbers(job), *heads = head_numbers(job);
    if (!figure->query_labels || !figure->key_labels || !layers || !heads) return figure_job_out_of_memory(job);
    for (size_t k = 0; k < head_count(job); k++) {
        layers[k] = (double)head_layer(job, k);
        heads[k] = (double)head_number(job, k);
    }
    const int status = head_map_column(job, "layer", layers);
    return status == EXIT_OK ? head_map_column(job, "head", heads) : status;
}

int head_map_column(figure_job *job, const char *name, const double *values)
{
    deberta_error error = {0};
    return figure_data_add_numbers(&job->data, name, values, head_count(job), &error) == DEBERTA_OK
               ? EXIT_OK
               : say_error(job->options, &error);
}

int head_map_panel(figure_job *job, attention_panel *panel, const char *title, heatmap_kind kind, const double *values)
{
    float *cells = figure_job_allocate(job, head_count(job), sizeof *cells);
    if (!cells) return figure_job_out_of_memory(job);
    for (size_t k = 0; k < head_count(job); k++) cells[k] = (float)values[k];
    *panel = (attention_panel){.values = cells, .stride = job->head_count, .title = title, .kind = kind};
    return EXIT_OK;
}

void head_bars_share_axis(chart_panel *panels, size_t count)
{
    double low = 0, high = 0;
    for (size_t k = 0; k < count; k++)
        for (size_t place = 0; place < panels[k].x.category_count; place++) {
            double up = 0, down = 0;
            for (size_t s = 0; s < panels[k].series_count; s++) {
                const double value = panels[k].series[s].y[place];
                if (!isfinite(value)) continue;
                if (panels[k].series[s].kind == CHART_BARS && panels[k].stacked)
                    *(value > 0 ? &up : &down) += value;
                else if (value > up)
                    up = value;
            }
            if (up > high) high = up;
            if (down < low) low = down;
        }
    for (size_t k = 0; k < count && low < high; k++) {
        panels[k].y.low = 1.04 * low;
        panels[k].y.high = 1.04 * high;
    }
}
