/* `--figure lines`: two columns of tokens and a line for each strong pair. SPDX-License-Identifier: MIT */
#include "cli/figures/figure_kinds.h"
#include "cli/figures/figure_options.h"
#include "cli/figures/head_map.h"
#include "viz/line_view.h"

/* One scale for all panels: probabilities do not share one with logits. */
static bool same_scale(const figure_job *job, heatmap_kind *kind)
{
    bool logits = false;
    for (int c = 0; c <= DEBERTA_LOGITS; c++) logits |= job->components[c];
    *kind = logits ? HEATMAP_SIGNED : HEATMAP_POSITIVE;
    if (!logits || !job->components[DEBERTA_PROBABILITIES]) return true;
    say_usage(job->options, "--components: lines of probs and of logits have no common scale, choose one of them");
    return false;
}

static int add_panel(figure_job *job, line_view_panel *panel, size_t index, deberta_component component,
                     const char *title)
{
    const size_t layer = head_layer(job, index), head = head_number(job, index);
    *panel = (line_view_panel){.stride = job->view.count, .title = title};
    const int status = figure_job_matrix(job, &job->capture, &job->view, layer, head, component, &panel->values);
    return status == EXIT_OK ? figure_job_add_matrix(job, deberta_component_name(component), layer, head, panel->values)
                             : status;
}

/* A panel for each head and component; the titles say what distinguishes them. */
static int fill(figure_job *job, line_view *view)
{
    size_t components = 0;
    for (int c = 0; c < DEBERTA_COMPONENT_COUNT; c++) components += job->components[c];
    line_view_panel *panels = figure_job_allocate(job, head_count(job) * components, sizeof *panels);
    if (!panels) return figure_job_out_of_memory(job);
    view->panels = panels;
    for (size_t k = 0; k < head_count(job); k++)
        for (int c = 0; c < DEBERTA_COMPONENT_COUNT; c++) {
            if (!job->components[c]) continue;
            const char *title =
                figure_job_text(job, components > 1 ? "layer %zu, head %zu: %s" : "layer %zu, head %zu",
                                head_layer(job, k), head_number(job, k), deberta_component_name((deberta_component)c));
            if (!title) return figure_job_out_of_memory(job);
            const int status = add_panel(job, &panels[view->panel_count++], k, (deberta_component)c, title);
            if (status != EXIT_OK) return status;
        }
    return EXIT_OK;
}

static int run(figure_job *job)
{
    line_view view = {.one_query = options_has(job->options, "query"), .keep_row_mean = job->look.keep_row_mean};
    if (!same_scale(job, &view.kind) || !options_number(job->options, "threshold", 0.05, &view.smallest))
        return EXIT_USAGE;
    if (!(view.smallest >= 0 && view.smallest < 1))
        return say_usage(job->options, "--threshold: expected 0 to 1, a part of the strongest line, found '%s'",
                         options_value(job->options, "threshold", ""));
    if (view.smallest == 0) view.smallest = 1e-30; /* 0 means the default there */
    int status = view.one_query ? figure_options_query(job, &view.query) : EXIT_OK;
    if (status == EXIT_OK) status = figure_job_encode(job);
    if (status == EXIT_OK) status = fill(job, &view);
    if (status != EXIT_OK) return status;
    figure_job_caption(job, "Queries (left) and the keys they attend to (right). ");
    view.style = job->style;
    view.queries = view.keys = job->view.count;
    view.query_labels = view.key_labels = job->view.labels;
    view.unit = view.kind == HEATMAP_SIGNED ? job->unit : "probability";
    return figure_job_finish(job, line_view_layout, &view);
}

static const char *const options[] = {"components", "query", "threshold", "center", NULL};

const figure_kind figure_lines = {
    .name = "lines",
    .summary = "lines from the queries to their keys, between two columns of tokens",
    .layers = "0",
    .heads = "0",
    .components = "probs",
    .options = options,
    .run = run,
};
