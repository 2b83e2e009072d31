/* `--figure value-weighted`: attention times the norm of what it moves. SPDX-License-Identifier: MIT */
#include <math.h>

#include "cli/figures/figure_kinds.h"
#include "cli/figures/figure_reference.h"
#include "cli/figures/head_map.h"

/* Values and the output projection are no part of what a session shows, and norms need no speed: the float64 reference
 * computes them from the observed hidden states, which are the engine's. norms [A][n] of one layer. */
static int value_norms(figure_job *job, const reference_model *reference, size_t layer, double *norms)
{
    deberta_error error = {0};
    double *hidden;
    int status = figure_hidden(job, layer, &hidden);
    if (status != EXIT_OK) return status;
    return reference_value_norms(reference, layer, hidden, job->view.span[1], norms, &error) == DEBERTA_OK
               ? EXIT_OK
               : say_error(job->options, &error);
}

/* Probabilities, and the same times the norms. */
static int add_row(figure_job *job, attention_panel *panels, size_t layer, size_t head, const double *norms)
{
    const size_t n = job->view.span[1];
    const float *whole = capture_matrix(&job->capture, layer, head, DEBERTA_PROBABILITIES, 0);
    float *weighted = figure_job_allocate(job, n * n, sizeof *weighted);
    if (!weighted) return figure_job_out_of_memory(job);
    for (size_t c = 0; c < n * n; c++) weighted[c] = (float)((double)whole[c] * norms[c % n]);
    panels[0] = (attention_panel){
        .stride = job->view.count, .title = component_title(DEBERTA_PROBABILITIES), .kind = HEATMAP_POSITIVE};
    panels[1] = (attention_panel){.stride = job->view.count, .title = "weighted by the values", .kind = HEATMAP_RANGE};
    int status = figure_job_view_matrix(job, &job->view, whole, TOKEN_VIEW_SUM_KEYS, &panels[0].values);
    if (status == EXIT_OK)
        status = figure_job_view_matrix(job, &job->view, weighted, TOKEN_VIEW_SUM_KEYS, &panels[1].values);
    if (status == EXIT_OK) status = figure_job_add_matrix(job, "probs", layer, head, panels[0].values);
    return status == EXIT_OK ? figure_job_add_matrix(job, "value_weighted", layer, head, panels[1].values) : status;
}

/* From 0, as the probabilities. */
static void choose_scale(attention_figure *figure)
{
    double most = 0;
    for (size_t k = 1; k < 2 * figure->grid_rows; k += 2)
        for (size_t c = 0; c < figure->queries * figure->keys; c++)
            most = fmax(most, (double)figure->panels[k].values[c]);
    if (figure->scales[HEATMAP_RANGE].policy == HEATMAP_SHARED && most > 0)
        figure->scales[HEATMAP_RANGE] = (heatmap_choice){.policy = HEATMAP_FIXED, .low = 0, .high = most};
}

static int fill(figure_job *job, const reference_model *reference, attention_figure *figure)
{
    const size_t n = job->view.span[1];
    attention_panel *panels;
    double *norms = figure_job_allocate(job, job->info.heads * n, sizeof *norms);
    if (!norms) return figure_job_out_of_memory(job);
    int status = head_rows(job, figure, 2, &panels);
    for (size_t k = 0; k < head_count(job) && status == EXIT_OK; k++) {
        const size_t layer = head_layer(job, k), head = head_number(job, k);
        if (k % job->head_count == 0) status = value_norms(job, reference, layer, norms);
        if (status == EXIT_OK) status = add_row(job, panels + 2 * k, layer, head, norms + head * n);
    }
    return status;
}

static int run(figure_job *job)
{
    reference_model *reference = NULL;
    int status = figure_job_encode(job);
    if (status != EXIT_OK) return status;
    figure_job_note(
        job, "Weighted by the values: \u03b1\u1d62\u2c7c \u2016W\u2092 v\u2c7c\u2016, after Kobayashi et al. (2020). ");
    figure_job_caption(job, "Attention, and the norm of what it writes for each key (Kobayashi et al. 2020). ");
    attention_figure figure = figure_job_attention(job);
    figure.units[HEATMAP_RANGE] = "norm of \u03b1 v W\u2092";
    if (!figure.palettes[HEATMAP_RANGE]) figure.palettes[HEATMAP_RANGE] = "cividis";
    status = figure_reference_open(job, &reference);
    if (status == EXIT_OK) status = fill(job, reference, &figure);
    reference_free(&reference);
    if (status != EXIT_OK) return status;
    choose_scale(&figure);
    return figure_job_finish(job, attention_layout, &figure);
}

static const char *const options[] = {"scale", "palette", "annotate", "mark", "letters", "layout", NULL};

const figure_kind figure_value_weighted = {
    .name = "value-weighted",
    .summary = "attention times the norm of the values behind the output projection (Kobayashi et al. 2020)",
    .layers = "0",
    .heads = "0",
    .components = "probs",
    .hidden = true,
    .options = options,
    .run = run,
};
