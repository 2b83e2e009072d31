/* `--figure rollout`: attention rollout, from the input to each chosen layer. SPDX-License-Identifier: MIT */
#include "cli/figures/figure_kinds.h"
#include "analysis/attention_statistics.h"

/* Up to five layers stand side by side, more of them in lines of four: panels of one line with twelve say little. */
enum { MOST_ABREAST = 5, FEW_ABREAST = 4 };

/* Rollout multiplies the layers from the first one on, whichever are drawn. */
static int encode_up_to(figure_job *job, size_t last)
{
    size_t *const chosen = job->layers, count = job->layer_count;
    job->layers = figure_job_allocate(job, last + 1, sizeof *job->layers);
    if (!job->layers) return figure_job_out_of_memory(job);
    job->layer_count = last + 1;
    for (size_t l = 0; l <= last; l++) job->layers[l] = l;
    const int status = figure_job_encode(job);
    job->layers = chosen;
    job->layer_count = count;
    return status;
}

/* One layer further. */
static int step(figure_job *job, double *rollout, const float **heads, size_t layer)
{
    deberta_error error = {0};
    const unsigned char *mask = job->input.mask ? job->input.mask + job->view.first_token : NULL;
    for (size_t a = 0; a < job->head_count; a++)
        heads[a] = capture_matrix(&job->capture, layer, job->heads[a], DEBERTA_PROBABILITIES, 0);
    return attention_rollout_step(rollout, heads, job->head_count, job->view.span[1], mask, &error) == DEBERTA_OK
               ? EXIT_OK
               : say_error(job->options, &error);
}

static int add_panel(figure_job *job, attention_panel *panel, const double *rollout, size_t layer)
{
    const size_t n = job->view.span[1];
    float *whole = figure_job_allocate(job, n * n, sizeof *whole);
    const char *title = figure_job_text(job, "layer %zu", layer);
    if (!whole || !title) return figure_job_out_of_memory(job);
    for (size_t c = 0; c < n * n; c++) whole[c] = (float)rollout[c];
    *panel = (attention_panel){
        .stride = job->view.count, .title = title, .kind = figure_job_kind_of(job, DEBERTA_PROBABILITIES)};
    const int status = figure_job_view_matrix(job, &job->view, whole, TOKEN_VIEW_SUM_KEYS, &panel->values);
    return status == EXIT_OK ? figure_job_add_matrix(job, "rollout", layer, no_index, panel->values) : status;
}

static int fill(figure_job *job, attention_panel *panels)
{
    const size_t n = job->view.span[1], last = job->layers[job->layer_count - 1];
    double *rollout = figure_job_allocate(job, n * n, sizeof *rollout);
    const float **heads = figure_job_allocate(job, job->head_count, sizeof *heads);
    if (!rollout || !heads) return figure_job_out_of_memory(job);
    int status = encode_up_to(job, last);
    attention_rollout_begin(rollout, n);
    for (size_t layer = 0, drawn = 0; layer <= last && status == EXIT_OK; layer++) {
        status = step(job, rollout, heads, layer);
        if (status != EXIT_OK || job->layers[drawn] != layer) continue;
        status = add_panel(job, &panels[drawn++], rollout, layer);
    }
    return status;
}

static int run(figure_job *job)
{
    attention_panel *panels = figure_job_allocate(job, job->layer_count, sizeof *panels);
    if (!panels) return figure_job_out_of_memory(job);
    figure_job_note(job,
                    "Attention rollout (Abnar and Zuidema 2020) up to the layer: the product of 0.5 A + 0.5 I, A the "
                    "mean over %zu %s. ",
                    job->head_count, job->head_count == 1 ? "head" : "heads");
    figure_job_caption(job, "Attention rollout (Abnar and Zuidema 2020): how much of each input token is in each "
                            "position, if attention and residual connections were all there is. ");
    attention_figure figure = figure_job_attention(job);
    figure.panels = panels;
    figure.grid_rows = 1;
    figure.grid_columns = job->layer_count;
    if (!figure.columns && job->layer_count > MOST_ABREAST) figure.columns = FEW_ABREAST;
    figure.units[HEATMAP_POSITIVE] = figure.units[HEATMAP_LOG] = "share of the input token";
    figure.key_axis = "input token";
    figure.query_axis = "position";
    const int status = fill(job, panels);
    return status == EXIT_OK ? figure_job_finish(job, attention_layout, &figure) : status;
}

static const char *const options[] = {"scale", "palette", "annotate", "mark", "letters", "layout", "log", NULL};

const figure_kind figure_rollout = {
    .name = "rollout",
    .summary = "attention rollout (Abnar and Zuidema 2020) from the input to each chosen layer",
    .layers = "all",
    .heads = "all",
    .components = "probs",
    .options = options,
    .run = run,
};
