/* `--figure error`: how far the engine's float32 is from the float64 reference, cell by cell.
 * SPDX-License-Identifier: MIT */
#include <math.h>

#include "cli/figures/figure_kinds.h"
#include "cli/figures/figure_reference.h"
#include "cli/figures/head_map.h"

/* Differences of the chosen layers, heads and components, [n][n] each. */
typedef struct error_work {
    figure_job *job;
    float **difference; /* [head_count][components] */
    double worst;
} error_work;

/* Called for every query of every layer: takes what was captured of it away from the reference. */
static void on_row(void *context, const reference_attention_row *row)
{
    error_work *work = context;
    const figure_job *job = work->job;
    const size_t n = job->view.span[1];
    for (size_t k = 0; k < head_count(job); k++) {
        if (head_layer(job, k) != row->layer) continue;
        for (int c = 0; c < DEBERTA_COMPONENT_COUNT; c++) {
            float *out = work->difference[k * DEBERTA_COMPONENT_COUNT + (size_t)c];
            if (!out || !row->value[c]) continue;
            const float *found =
                capture_matrix(&job->capture, row->layer, head_number(job, k), (deberta_component)c, 0);
            for (size_t j = 0; j < n; j++) {
                const size_t cell = row->query * n + j;
                const double off = fabs((double)found[cell] - row->value[c][head_number(job, k) * n + j]);
                out[cell] = (float)off;
                work->worst = fmax(work->worst, off);
            }
        }
    }
}

/* The reference reads the same ids, in float64 from the embeddings on. */
static int compare(error_work *work)
{
    figure_job *job = work->job;
    reference_model *reference = NULL;
    reference_input input;
    deberta_error error = {0};
    const size_t states = (job->info.layers + 1) * job->view.span[1] * job->info.hidden_size;
    double *hidden = figure_job_allocate(job, states, sizeof *hidden);
    int status = hidden ? figure_reference_input(job, &input) : figure_job_out_of_memory(job);
    if (status == EXIT_OK) status = figure_reference_open(job, &reference);
    const reference_observer observer = {work, on_row};
    if (status == EXIT_OK && reference_encode(reference, &input, hidden, &observer, &error) != DEBERTA_OK)
        status = say_error(job->options, &error);
    reference_free(&reference);
    return status;
}

static int take_matrices(error_work *work)
{
    figure_job *job = work->job;
    const size_t n = job->view.span[1];
    work->difference = figure_job_allocate(job, head_count(job) * DEBERTA_COMPONENT_COUNT, sizeof *work->difference);
    if (!work->difference) return figure_job_out_of_memory(job);
    for (size_t k = 0; k < head_count(job) * DEBERTA_COMPONENT_COUNT; k++) {
        if (!job->components[k % DEBERTA_COMPONENT_COUNT]) continue;
        work->difference[k] = figure_job_allocate(job, n * n, sizeof(float));
        if (!work->difference[k]) return figure_job_out_of_memory(job);
    }
    return EXIT_OK;
}

/* Errors of logits and of probabilities have scales of their own. */
static heatmap_kind kind_of(const figure_job *job, deberta_component component)
{
    if (component != DEBERTA_PROBABILITIES) return HEATMAP_POSITIVE;
    return job->look.logarithmic ? HEATMAP_LOG : HEATMAP_RANGE;
}

static int add_panel(error_work *work, attention_panel *panel, size_t index, deberta_component component)
{
    figure_job *job = work->job;
    const float *difference = work->difference[index * DEBERTA_COMPONENT_COUNT + (size_t)component];
    const char *name = figure_job_text(job, "%s_error", deberta_component_name(component));
    if (!name) return figure_job_out_of_memory(job);
    *panel = (attention_panel){
        .stride = job->view.count, .title = component_title(component), .kind = kind_of(job, component)};
    const int status = figure_job_view_matrix(job, &job->view, difference, TOKEN_VIEW_MEAN, &panel->values);
    return status == EXIT_OK
               ? figure_job_add_matrix(job, name, head_layer(job, index), head_number(job, index), panel->values)
               : status;
}

static int fill(error_work *work, attention_figure *figure)
{
    figure_job *job = work->job;
    attention_panel *panels;
    size_t columns = 0;
    for (int c = 0; c < DEBERTA_COMPONENT_COUNT; c++) columns += job->components[c];
    int status = head_rows(job, figure, columns, &panels);
    for (size_t k = 0; k < head_count(job); k++)
        for (int c = 0; c < DEBERTA_COMPONENT_COUNT && status == EXIT_OK; c++)
            if (job->components[c]) status = add_panel(work, panels++, k, (deberta_component)c);
    return status;
}

static int run(figure_job *job)
{
    error_work work = {.job = job};
    int status = take_matrices(&work);
    if (status == EXIT_OK) status = figure_job_encode(job);
    if (status == EXIT_OK) status = compare(&work);
    if (status != EXIT_OK) return status;
    figure_job_note(job, "|float32 \u2212 float64|, %s; largest %.3g. ",
                    deberta_isa_name(deberta_session_isa(job->session)), work.worst);
    figure_job_caption(job, "Absolute error of float32 against float64. ");
    attention_figure figure = figure_job_attention(job);
    figure.units[HEATMAP_POSITIVE] = figure_job_text(job, "error, %s", job->unit);
    figure.units[HEATMAP_RANGE] = figure.units[HEATMAP_LOG] = "error of a probability";
    for (int kind = 0; kind < HEATMAP_KINDS; kind++)
        if (!figure.palettes[kind]) figure.palettes[kind] = "magma";
    status = fill(&work, &figure);
    return status == EXIT_OK ? figure_job_finish(job, attention_layout, &figure) : status;
}

static const char *const options[] = {"components", "scale", "palette", "mark", "letters", "layout", "log", NULL};

const figure_kind figure_error = {
    .name = "error",
    .summary = "the absolute error of float32 against the float64 reference, by cell",
    .layers = "0",
    .heads = "0",
    .components = "logits,probs",
    .options = options,
    .run = run,
};
