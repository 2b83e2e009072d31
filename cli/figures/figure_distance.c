/* `--figure distance`: what a head does at each distance. SPDX-License-Identifier: MIT */

#include "cli/figures/distance_curves.h"
#include "cli/figures/figure_kinds.h"
#include "cli/figures/head_map.h"
#include "analysis/attention_statistics.h"
#include "viz/chart.h"

typedef struct distance_work {
    figure_job *job;
    distance_curves curves;
    const unsigned char *mask;
} distance_work;

/* The curve of one matrix into its columns. Logits without what is constant over the keys, unless that is to stay. */
static int measure(distance_work *w, size_t index, deberta_component component)
{
    figure_job *job = w->job;
    const size_t n = job->view.count, first = index * w->curves.entries;
    const float *matrix;
    deberta_error error = {0};
    attention_by_distance curve;
    const int status = figure_job_matrix(job, &job->capture, &job->view, head_layer(job, index),
                                         head_number(job, index), component, &matrix);
    if (status != EXIT_OK) return status;
    if (component != DEBERTA_PROBABILITIES && !job->look.keep_row_mean) {
        float *centred = figure_job_allocate(job, n * n, sizeof *centred);
        if (!centred) return figure_job_out_of_memory(job);
        attention_centre_rows(centred, matrix, n, w->mask);
        matrix = centred;
    }
    const deberta_status measured =
        attention_by_distance_measure(&curve, matrix, n, head_positions(job), w->mask, w->curves.part, &error);
    double **column = w->curves.column[component];
    for (size_t k = 0; k < w->curves.entries && measured == DEBERTA_OK; k++) {
        column[DISTANCE_COUNT][first + k] = (double)curve.count[k];
        column[DISTANCE_MEAN][first + k] = curve.mean[k];
        column[DISTANCE_MEDIAN][first + k] = curve.median[k];
        column[DISTANCE_LOW][first + k] = curve.low[k];
        column[DISTANCE_HIGH][first + k] = curve.high[k];
    }
    attention_by_distance_free(&curve);
    return measured == DEBERTA_OK ? EXIT_OK : say_error(job->options, &error);
}

static int draw(distance_work *w)
{
    figure_job *job = w->job;
    chart_figure chart;
    figure_job_caption(job, "Components of attention against the distance between query and key. ");
    const char *over = job->view_choice.words ? "pairs of words" : "pairs of tokens";
    const int status = distance_curves_chart(job, &w->curves, !job->view_choice.words, over, &chart);
    return status == EXIT_OK ? figure_job_finish(job, chart_layout, &chart) : status;
}

static int run(figure_job *job)
{
    distance_work w = {.job = job};
    const size_t *positions = head_positions(job), last = job->view.count - 1;
    const size_t reach = positions ? positions[last] - positions[0] : last;
    int status = distance_curves_open(job, reach, DISTANCE_MEDIAN, &w.curves);
    if (status == EXIT_OK) status = figure_job_encode(job);
    if (status == EXIT_OK) status = head_mask(job, &w.mask);
    for (size_t k = 0; k < head_count(job); k++)
        for (int c = 0; c < DEBERTA_COMPONENT_COUNT && status == EXIT_OK; c++)
            if (job->components[c]) status = measure(&w, k, (deberta_component)c);
    if (status == EXIT_OK) status = distance_curves_add_data(job, &w.curves);
    return status == EXIT_OK ? draw(&w) : status;
}

static const char *const options[] = {DISTANCE_CURVES_OPTIONS, NULL};

const figure_kind figure_distance = {
    .name = "distance",
    .summary = "each component and the probabilities against the distance of query and key",
    .layers = "0",
    .heads = "0",
    .components = "c2c,c2p,p2c,probs",
    .options = options,
    .run = run,
};
