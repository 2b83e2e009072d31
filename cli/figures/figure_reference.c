/* SPDX-License-Identifier: MIT */
#include "cli/figures/figure_reference.h"

int figure_reference_open(figure_job *job, reference_model **reference)
{
    deberta_model_options model_options;
    deberta_error error = {0};
    fill_model_options(job->options, &model_options);
    return reference_open(reference, options_argument(job->options, 0), model_options.reference, &error) == DEBERTA_OK
               ? EXIT_OK
               : say_error(job->options, &error);
}

static int64_t *widen(figure_job *job, const int32_t *values, size_t count)
{
    int64_t *wide = figure_job_allocate(job, count, sizeof *wide);
    for (size_t t = 0; wide && t < count; t++) wide[t] = values[t];
    return wide;
}

int figure_reference_input(figure_job *job, reference_input *input)
{
    const size_t first = job->view.first_token, n = job->view.span[1];
    const input_batch *batch = &job->input;
    *input = (reference_input){.tokens = n, .mask = batch->mask ? batch->mask + first : NULL};
    input->ids = widen(job, batch->ids + first, n);
    if (batch->token_types) input->token_types = widen(job, batch->token_types + first, n);
    if (batch->position_ids) input->position_ids = widen(job, batch->position_ids + first, n);
    const bool all =
        input->ids && (input->token_types || !batch->token_types) && (input->position_ids || !batch->position_ids);
    return all ? EXIT_OK : figure_job_out_of_memory(job);
}

int figure_position_rule(figure_job *job, position_rule *rule)
{
    deberta_model_options model_options;
    fill_model_options(job->options, &model_options);
    *rule = position_rule_of(&job->info, model_options.reference);
    return rule->span ? EXIT_OK
                      : say_usage(job->options, "--figure %s: %s has no relative positions",
                                  options_value(job->options, "figure", ""), job->info.name);
}

int figure_hidden(figure_job *job, size_t layer, double **hidden)
{
    const size_t cells = job->view.span[1] * job->info.hidden_size;
    *hidden = figure_job_allocate(job, cells, sizeof **hidden);
    if (!*hidden) return figure_job_out_of_memory(job);
    for (size_t k = 0; k < cells; k++) (*hidden)[k] = (double)job->capture.hidden_states[layer][k];
    return EXIT_OK;
}

int figure_view_rows(figure_job *job, const double *rows, size_t columns, const float **shown)
{
    const token_view *view = &job->view;
    float *out = figure_job_allocate(job, view->count * columns, sizeof *out);
    if (!out) return figure_job_out_of_memory(job);
    for (size_t k = 0; k < view->count; k++) {
        const size_t members = view->starts[k + 1] - view->starts[k];
        for (size_t c = 0; c < columns; c++) {
            double sum = 0;
            for (size_t m = view->starts[k]; m < view->starts[k + 1]; m++) sum += rows[view->members[m] * columns + c];
            out[k * columns + c] = (float)(sum / (double)members);
        }
    }
    *shown = out;
    return EXIT_OK;
}
