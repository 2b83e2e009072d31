/* `--figure grid`: a thumbnail of one component for every chosen head. SPDX-License-Identifier: MIT */
#include "cli/figures/figure_kinds.h"
#include "cli/figures/head_map.h"
#include "viz/head_grid.h"

/* The one component; false after saying that there must be one. */
static bool only_component(const figure_job *job, deberta_component *component)
{
    size_t chosen = 0;
    for (int c = 0; c < DEBERTA_COMPONENT_COUNT; c++) {
        if (!job->components[c]) continue;
        *component = (deberta_component)c;
        chosen++;
    }
    if (chosen == 1) return true;
    say_usage(job->options, "--components: a head grid shows one of them, found %zu", chosen);
    return false;
}

static int run(figure_job *job)
{
    deberta_component component = DEBERTA_PROBABILITIES;
    if (!only_component(job, &component)) return EXIT_USAGE;
    const heatmap_kind kind = figure_job_kind_of(job, component);
    bool drawn[HEATMAP_KINDS] = {false};
    drawn[kind] = true;
    if (!figure_job_takes_limits(job, job->look.scales, drawn)) return EXIT_USAGE;
    int status = figure_job_encode(job);
    if (status != EXIT_OK) return status;
    const float **maps = figure_job_allocate(job, head_count(job), sizeof *maps);
    if (!maps) return figure_job_out_of_memory(job);
    for (size_t k = 0; k < head_count(job) && status == EXIT_OK; k++) {
        const size_t layer = head_layer(job, k), head = head_number(job, k);
        status = figure_job_matrix(job, &job->capture, &job->view, layer, head, component, &maps[k]);
        if (status == EXIT_OK)
            status = figure_job_add_matrix(job, deberta_component_name(component), layer, head, maps[k]);
    }
    if (status != EXIT_OK) return status;
    figure_job_note(job, "Each thumbnail: %s of one head. ", component_title(component));
    figure_job_caption(job, "%s of every head, on one scale. ", component_title(component));
    const head_grid grid = {.style = job->style,
                            .maps = maps,
                            .layers = job->layer_count,
                            .heads = job->head_count,
                            .queries = job->view.count,
                            .keys = job->view.count,
                            .stride = job->view.count,
                            .layer_numbers = job->layers,
                            .head_numbers = job->heads,
                            .kind = kind,
                            .keep_row_mean = job->look.keep_row_mean,
                            .scale = job->look.scales[kind],
                            .palette = job->look.palettes[kind],
                            .unit = kind == HEATMAP_SIGNED ? job->unit : "probability"};
    return figure_job_finish(job, head_grid_layout, &grid);
}

static const char *const options[] = {"components", "scale", "palette", "signed-palette", "center", "log", NULL};

const figure_kind figure_grid = {
    .name = "grid",
    .summary = "a thumbnail of one component for every head of every layer, on one scale",
    .layers = "all",
    .heads = "all",
    .components = "probs",
    .options = options,
    .run = run,
};
