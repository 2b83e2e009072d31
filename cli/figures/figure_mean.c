/* `--figure mean`: each component averaged over the chosen layers and heads. SPDX-License-Identifier: MIT */
#include "cli/figures/figure_kinds.h"
#include "cli/figures/head_map.h"

static int average(figure_job *job, deberta_component component, attention_panel *panel)
{
    const size_t cells = job->view.count * job->view.count;
    double *sum = figure_job_allocate(job, cells, sizeof *sum);
    float *mean = figure_job_allocate(job, cells, sizeof *mean);
    if (!sum || !mean) return figure_job_out_of_memory(job);
    for (size_t k = 0; k < head_count(job); k++) {
        const float *matrix;
        const int status = figure_job_matrix(job, &job->capture, &job->view, head_layer(job, k), head_number(job, k),
                                             component, &matrix);
        if (status != EXIT_OK) return status;
        for (size_t c = 0; c < cells; c++) sum[c] += (double)matrix[c];
    }
    for (size_t c = 0; c < cells; c++) mean[c] = (float)(sum[c] / (double)head_count(job));
    *panel = (attention_panel){.values = mean,
                               .stride = job->view.count,
                               .title = component_title(component),
                               .kind = figure_job_kind_of(job, component)};
    return figure_job_add_matrix(job, deberta_component_name(component), no_index, no_index, mean);
}

static int run(figure_job *job)
{
    int status = figure_job_encode(job);
    if (status != EXIT_OK) return status;
    figure_job_note(job, "Mean of %zu %s \u00d7 %zu %s. ", job->layer_count, job->layer_count == 1 ? "layer" : "layers",
                    job->head_count, job->head_count == 1 ? "head" : "heads");
    figure_job_caption(job, "Components of disentangled attention, averaged over layers and heads. ");
    attention_figure figure = figure_job_attention(job);
    attention_panel *panels = figure_job_allocate(job, DEBERTA_COMPONENT_COUNT, sizeof *panels);
    if (!panels) return figure_job_out_of_memory(job);
    figure.grid_rows = 1;
    figure.panels = panels;
    for (int c = 0; c < DEBERTA_COMPONENT_COUNT && status == EXIT_OK; c++)
        if (job->components[c]) status = average(job, (deberta_component)c, &panels[figure.grid_columns++]);
    return status == EXIT_OK ? figure_job_finish(job, attention_layout, &figure) : status;
}

static const char *const options[] = {"components", HEATMAP_FIGURE_OPTIONS, NULL};

const figure_kind figure_mean = {
    .name = "mean",
    .summary = "each component, averaged over the chosen layers and heads",
    .layers = "all",
    .heads = "all",
    .components = "c2c,c2p,p2c,logits,probs",
    .options = options,
    .run = run,
};
