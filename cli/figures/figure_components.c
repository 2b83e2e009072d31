/* `--figure components`: the terms of attention, their sum and the probabilities, one row of panels a layer and head.
 * SPDX-License-Identifier: MIT */
#include "cli/figures/figure_kinds.h"
#include "cli/figures/head_map.h"

static int add_panel(figure_job *job, attention_figure *figure, attention_panel *panel, size_t layer, size_t head,
                     deberta_component component)
{
    const int status = figure_job_matrix(job, &job->capture, &job->view, layer, head, component, &panel->values);
    if (status != EXIT_OK) return status;
    panel->stride = figure->keys;
    panel->title = component_title(component);
    panel->kind = figure_job_kind_of(job, component);
    return figure_job_add_matrix(job, deberta_component_name(component), layer, head, panel->values);
}

/* One row of the figure for each layer and head, one panel in it for each component. */
static int fill(figure_job *job, attention_figure *figure)
{
    attention_panel *panels;
    size_t columns = 0;
    for (int c = 0; c < DEBERTA_COMPONENT_COUNT; c++) columns += job->components[c];
    int status = head_rows(job, figure, columns, &panels);
    for (size_t k = 0; k < head_count(job); k++)
        for (int c = 0; c < DEBERTA_COMPONENT_COUNT && status == EXIT_OK; c++)
            if (job->components[c])
                status =
                    add_panel(job, figure, panels++, head_layer(job, k), head_number(job, k), (deberta_component)c);
    return status;
}

static void tell(figure_job *job)
{
    bool any = false, signed_panels = false;
    for (int c = 0; c < DEBERTA_COMPONENT_COUNT; c++) {
        if (!job->components[c]) continue;
        figure_job_caption(job, "%s%s", any ? ", " : "Attention: ", component_title((deberta_component)c));
        any = true;
        signed_panels |= c != DEBERTA_PROBABILITIES;
    }
    figure_job_caption(job, ". ");
    if (signed_panels) figure_job_caption_unit(job);
}

static int run(figure_job *job)
{
    int status = figure_job_encode(job);
    if (status != EXIT_OK) return status;
    tell(job);
    attention_figure figure = figure_job_attention(job);
    status = fill(job, &figure);
    return status == EXIT_OK ? figure_job_finish(job, attention_layout, &figure) : status;
}

static const char *const options[] = {"components", HEATMAP_FIGURE_OPTIONS, NULL};

const figure_kind figure_components = {
    .name = "components",
    .summary = "c2c, c2p, p2c, their sum and the probabilities of chosen layers and heads (default)",
    .layers = "0",
    .heads = "0",
    .components = "c2c,c2p,p2c,logits,probs",
    .options = options,
    .run = run,
};
